//! Where the tests of DAOS run: a pool of a real server, or the stand-in.
//!
//! With `TUPELO_DAOS_POOL`, the name of a pool, and `TUPELO_DAOS_LIBRARY`, tests that need no knobs run on that server.

use std::ffi::CString;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{SystemTime, UNIX_EPOCH};

use super::connection::library;
use super::ffi::Library;
use crate::net::{Options, variable};

/// Held by tests with knobs, which change what all others see.
static KNOBS: RwLock<()> = RwLock::new(());

/// The pools of the stand-in: `tank` for all tests; one rank with one target; two ranks; twenty ranks.
const POOLS: &str = "tank:4:1,solo:1:1,pair:8:2,wide:40:20";

/// Path of the stand-in.
fn standin_path() -> String {
    daos_standin::library().to_str().unwrap().to_owned()
}

/// The stand-in, with the pools of the tests.
fn standin() -> &'static Library {
    static POOLS_SET: std::sync::Once = std::sync::Once::new();
    let library = library(Some(&standin_path()), "open", "test").unwrap();
    POOLS_SET.call_once(|| library.set_knob(c"DAOS_STANDIN_POOLS", &CString::new(POOLS).unwrap()));
    library
}

/// A name that no container has.
pub(crate) fn new_name() -> String {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros();
    format!("tupelo-test-{}-{time}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed))
}

/// A server that tests share.
pub(crate) struct Server {
    pub(crate) pool: String,
    library: Option<String>,
    _no_knobs: RwLockReadGuard<'static, ()>,
}

impl Server {
    /// The server of the environment, or the stand-in.
    pub(crate) fn shared() -> Self {
        let no_knobs = KNOBS.read().unwrap_or_else(PoisonError::into_inner);
        match variable("TUPELO_DAOS_POOL") {
            Some(pool) => Self { pool, library: variable("TUPELO_DAOS_LIBRARY"), _no_knobs: no_knobs },
            None => {
                standin();
                Self { pool: "tank".to_owned(), library: Some(standin_path()), _no_knobs: no_knobs }
            }
        }
    }

    /// Options that find the library and create containers, and others.
    pub(crate) fn options(&self, others: &[(&str, &str)]) -> Options {
        options(self.library.as_deref(), others)
    }

    /// The URI of something in a new container.
    pub(crate) fn uri(&self, name: &str) -> String {
        format!("daos://{}/{}:{name}", self.pool, new_name())
    }
}

fn options(library: Option<&str>, others: &[(&str, &str)]) -> Options {
    let library = library.map(|library| ("daos_library", library));
    Options::new([("daos_create", "true")].into_iter().chain(library).chain(others.iter().copied())).unwrap()
}

/// The stand-in for one test, which may set knobs.
pub(crate) struct Knobs {
    library: &'static Library,
    _alone: RwLockWriteGuard<'static, ()>,
}

impl Knobs {
    pub(crate) fn new() -> Self {
        let alone = KNOBS.write().unwrap_or_else(PoisonError::into_inner);
        let knobs = Self { library: standin(), _alone: alone };
        knobs.reset();
        knobs
    }

    pub(crate) fn options(&self, others: &[(&str, &str)]) -> Options {
        options(Some(&standin_path()), others)
    }

    /// The URI of something in a new container of a pool.
    pub(crate) fn uri(&self, pool: &str, name: &str) -> String {
        format!("daos://{pool}/{}:{name}", new_name())
    }

    /// Microseconds of each operation.
    pub(crate) fn set_latency(&self, micros: u32) {
        self.library.set_knob(c"DAOS_STANDIN_LATENCY_US", &CString::new(micros.to_string()).unwrap());
    }

    pub(crate) fn set_fault(&self, fault: &str) {
        self.library.set_knob(c"DAOS_STANDIN_FAULT", &CString::new(fault).unwrap());
    }

    /// Updates and fetches since the last call.
    pub(crate) fn take_counts(&self) -> (u64, u64) {
        let counts = (self.library.count(c"update"), self.library.count(c"fetch"));
        self.library.reset_counts();
        counts
    }

    /// Event queues so far.
    pub(crate) fn queues(&self) -> u64 {
        self.library.count(c"eq_create")
    }

    fn reset(&self) {
        self.set_latency(0);
        self.set_fault("");
        self.library.reset_counts();
    }
}

impl Drop for Knobs {
    fn drop(&mut self) {
        self.reset();
    }
}
