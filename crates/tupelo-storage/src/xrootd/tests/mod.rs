//! Tests against the `xrootd` server, and against servers that follow a script.

mod fake;
mod script;

// There is no server for other systems.
#[cfg(unix)]
mod real;
#[cfg(unix)]
mod server;
#[cfg(unix)]
mod writing;

use std::time::Duration;

use super::Options;

pub(super) fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 7 + i / 251) as u8).collect()
}

pub(super) fn quick() -> Options {
    Options::default().with_total_timeout(Duration::from_secs(20)).with_retries(5)
}
