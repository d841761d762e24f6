//! Error numbers of DAOS, and their names and descriptions.

use std::ffi::{CStr, c_char, c_int};

/// What an operation gives: an error is a positive `DER_` number, which C gets as a negative one.
pub type Outcome<T = ()> = Result<T, c_int>;

/// The number that C gets: 0 or the negative error.
pub(crate) fn status(outcome: Outcome) -> c_int {
    outcome.map_or_else(|error| -error, |()| 0)
}

macro_rules! errors {
    ($($name:ident = $number:literal, $description:literal;)*) => {
        $(
            #[doc = concat!("`", stringify!($name), "`: ", $description, ".")]
            pub const $name: c_int = $number;
        )*

        /// Numbers, names and descriptions, as C strings.
        const TABLE: &[(c_int, &str, &str)] =
            &[$(($number, concat!(stringify!($name), "\0"), concat!($description, "\0")),)*];
    };
}

errors! {
    DER_SUCCESS = 0, "Success";
    DER_NO_PERM = 1001, "Operation not permitted";
    DER_NO_HDL = 1002, "Invalid handle";
    DER_INVAL = 1003, "Invalid parameters";
    DER_EXIST = 1004, "Entity already exists";
    DER_NONEXIST = 1005, "The specified entity does not exist";
    DER_UNREACH = 1006, "Unreachable node";
    DER_NOSPACE = 1007, "No space on storage target";
    DER_ALREADY = 1008, "Operation already performed";
    DER_NOMEM = 1009, "Out of memory";
    DER_TIMEDOUT = 1011, "Time out";
    DER_BUSY = 1012, "Device or resource busy";
    DER_AGAIN = 1013, "Try again";
    DER_UNINIT = 1015, "Device or resource not initialized";
    DER_TRUNC = 1016, "Buffer too short";
    DER_CANCELED = 1018, "Operation canceled";
    DER_MISC = 1025, "Miscellaneous error";
    DER_IO = 2001, "I/O error";
    DER_KEY2BIG = 2012, "Key is too large";
    DER_REC2BIG = 2013, "Record is too large";
    DER_AGENT_COMM = 2034, "Agent communication error";
    DER_NOTSUPPORTED = 2037, "Operation not supported";
}

fn entry(number: c_int) -> Option<&'static (c_int, &'static str, &'static str)> {
    TABLE.iter().find(|(known, ..)| -known == number)
}

fn c_string(text: &'static str) -> *const c_char {
    CStr::from_bytes_with_nul(text.as_bytes()).expect("the table has C strings").as_ptr()
}

/// `d_errstr` of libgurt: the name of a negative error number, `DER_UNKNOWN` for others.
// SAFETY: the process loads either libgurt or the stand-in.
#[unsafe(no_mangle)]
pub extern "C" fn d_errstr(number: c_int) -> *const c_char {
    c_string(entry(number).map_or("DER_UNKNOWN\0", |(_, name, _)| name))
}

/// `d_errdesc` of libgurt: the description of a negative error number, without the number for unknown ones.
// SAFETY: the process loads either libgurt or the stand-in.
#[unsafe(no_mangle)]
pub extern "C" fn d_errdesc(number: c_int) -> *const c_char {
    c_string(entry(number).map_or("Unknown error\0", |(_, _, description)| description))
}
