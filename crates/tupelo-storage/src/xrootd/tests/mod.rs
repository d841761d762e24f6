//! Tests against the `xrootd` server, and against servers that follow a script.

mod fake;
mod script;
mod unchanged;

// There is no server for other systems.
#[cfg(unix)]
mod real;
#[cfg(unix)]
mod server;
#[cfg(unix)]
mod writing;

use crate::net::Options;

pub(super) fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 7 + i / 251) as u8).collect()
}

pub(super) fn quick() -> Options {
    options(&[])
}

/// [`quick`] with more options.
pub(super) fn options(more: &[(&str, &str)]) -> Options {
    let all = [("total_timeout", "20"), ("max_attempts", "6")];
    Options::new(all.iter().chain(more).copied()).unwrap()
}
