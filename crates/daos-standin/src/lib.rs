//! A stand-in for `libdaos.so.2` in tests.
//!
//! It exports the C ABI of the functions of libdaos that store single values, over a store in memory. It lets a client
//! be tested without a DAOS server. Layouts, constants and behaviour are those that were seen on DAOS
//! 2.6.5; where that was not enough, the sources of DAOS decided. Features that the stand-in lacks are errors
//! (`-DER_NOTSUPPORTED`), never ignored.
//!
//! `d_errstr` and `d_errdesc` are in `libgurt.so.4` on real systems. The stand-in exports them too, so that one library
//! is enough: a client that looks for them in libdaos only works with the stand-in, but not with DAOS.
//!
//! # Knobs
//! Environment variables, read by the first `daos_init`; [`control::daos_standin_set`] sets the same at any time.
//!
//! | variable | what it sets | default |
//! |---|---|---|
//! | `DAOS_STANDIN_POOLS` | the pools: `name[:targets[:ranks]]`, separated by commas | `tank:4:1` |
//! | `DAOS_STANDIN_DIR` | a directory that keeps containers, for several processes | none: in memory |
//! | `DAOS_STANDIN_LATENCY_US` | microseconds of every operation; operations overlap | 0 |
//! | `DAOS_STANDIN_FAULT` | operations that fail or hang, separated by commas | none |
//!
//! A fault is `KIND:N:WHAT`: the N-th `update` or `fetch` from now, counted from 1, fails once with the error WHAT,
//! such as -1007, or never completes (`hang`). `hang` alone is the next update or fetch.
//!
//! The UUID of a pool is computed from its name. [`control::daos_standin_count`] reads the counters. The library must
//! stay loaded, without `dlclose`: it has threads.
//!
//! # What is different from DAOS
//! - Only single values: arrays, transactions, snapshots and attributes do not exist.
//! - Operations are done by threads. As in DAOS, their completion is noticed in `daos_event_test` and `daos_eq_poll`.
//! - A child that is rejected before it is sent never changes `ev_error` of its parent. In DAOS it does while other
//!   children are running.
//! - An operation with an event that is not initialised, was moved in memory, or is already launched returns an error.
//!   DAOS has no defined behaviour there.
//! - Events of an event queue that is destroyed by force stay as they are.
//! - An update whose buffers have a shorter `iov_len` than `iod_size` in total is invalid.
//! - `OC_UNKNOWN` is always one group without redundancy, whatever the hints are.
//! - `DAOS_PC_EX` and `DAOS_COO_EX` are read-write without being exclusive.
//!
//! # Modules
//! Each uses only those before it: `abi`, `error`, `name`, `control`, `class`, `log`, `store`, `handle`, `event`,
//! `work`, `buffer`, `pool`, `object`, `value`.

#![expect(unsafe_code, reason = "the crate is a C ABI: callers pass pointers, and symbols have fixed names")]

pub mod abi;
mod buffer;
pub mod class;
pub mod control;
pub mod error;
pub mod event;
mod handle;
mod log;
mod name;
pub mod object;
pub mod pool;
mod store;
pub mod value;
mod work;

use std::env;
use std::ffi::c_int;
use std::path::PathBuf;

/// Path of the shared library, which cargo builds into the folder of the test binary that uses this crate.
///
/// # Panics
/// If the program was not started by cargo, so the library is not beside it.
pub fn library() -> PathBuf {
    let program = env::current_exe().expect("the path of the running program is known");
    let folders = program.ancestors().skip(1).take(2);
    let mut candidates = folders.flat_map(|folder| [folder.to_owned(), folder.join("deps")]);
    let found = candidates.find_map(|folder| {
        let library = folder.join("libdaos_standin.so");
        library.exists().then_some(library)
    });
    found.unwrap_or_else(|| panic!("no libdaos_standin.so beside {}", program.display()))
}

/// `daos_init`: counted, the first one reads the environment.
///
/// Errors: `-DER_INVAL` when a variable of the stand-in is wrong.
// SAFETY: no other library of the process exports this name.
#[unsafe(no_mangle)]
pub extern "C" fn daos_init() -> c_int {
    error::status(control::start())
}

/// `daos_fini`: the last one closes all handles and event queues. Containers stay.
///
/// Errors: `-DER_UNINIT` without `daos_init`.
// SAFETY: no other library of the process exports this name.
#[unsafe(no_mangle)]
pub extern "C" fn daos_fini() -> c_int {
    error::status(control::stop().map(|is_last| {
        if is_last {
            handle::close_all();
            event::forget_all();
        }
    }))
}
