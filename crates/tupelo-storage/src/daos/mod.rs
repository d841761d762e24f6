//! Values in DAOS containers, by libdaos, which is loaded at run time.
//!
//! A container has objects, an object has dkeys, a dkey has akeys, and an akey has one value here, which is read and
//! written as a whole. Objects, dkeys and akeys are integers, as ROOT has them.
//!
//! | module | what it does |
//! |---|---|
//! | `code` | what the error numbers of DAOS mean |
//! | `place` | the names of pools and containers |
//! | `key` | the address of a value, and its text |
//! | `plan` | which calls read or write a set of values |
//! | `abi` | structures and constants of the C ABI |
//! | `ffi` | the functions of libdaos, and the memory that it uses while they run; the only unsafe code |
//! | `connection` | a container that is open, which all its users in the process share |
//! | `container` | opens containers, and runs the calls of a set of values |
//! | `class` | object classes and levels of redundancy that a pool can hold |
//! | `fetch` | reads values and their sizes |
//! | `list` | lists the values of an object |
//! | `update` | writes and removes values |

mod abi;
mod class;
mod code;
mod connection;
mod container;
mod fetch;
mod ffi;
mod key;
mod list;
mod place;
mod plan;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod update;

pub(crate) use self::class::Classes;
pub(crate) use self::container::{Access, DaosContainer};
pub(crate) use self::key::{DaosKey, parse_number};
pub(crate) use self::place::DaosPlace;
pub(crate) use self::update::NewValue;
