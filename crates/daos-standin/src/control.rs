//! What tests set and count: the knobs, the counters, and the count of `daos_init`.

use std::env;
use std::ffi::{CStr, c_char, c_int};
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::error::{DER_INVAL, DER_UNINIT, Outcome, status};
use crate::name::is_label;

/// The knobs, which are environment variables.
const KNOBS: [&str; 4] = ["DAOS_STANDIN_POOLS", "DAOS_STANDIN_DIR", "DAOS_STANDIN_LATENCY_US", "DAOS_STANDIN_FAULT"];

/// Pools where `DAOS_STANDIN_POOLS` is not set.
const DEFAULT_POOLS: &str = "tank";

/// Targets of a pool that does not say how many.
const DEFAULT_TARGETS: u32 = 4;

/// A pool that the caller may connect to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PoolSpec {
    pub(crate) name: String,
    /// Targets of all ranks together.
    pub(crate) targets: u32,
    pub(crate) ranks: u32,
}

/// Kinds of operations that are counted, and that can fail on demand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Update,
    Fetch,
    Other,
}

/// What happens to an operation instead of its work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It fails with a positive error number.
    Error(c_int),
    /// It never completes.
    Hang,
}

/// A fault that waits for its operation.
#[derive(Debug)]
struct Planned {
    /// `None`: updates and fetches.
    kind: Option<Kind>,
    /// Operations up to and with the one that it hits.
    remaining: u64,
    fault: Fault,
}

struct Knobs {
    /// Number of `daos_init` without `daos_fini`.
    starts: u64,
    latency: Duration,
    faults: Vec<Planned>,
    pools: Vec<PoolSpec>,
    directory: Option<PathBuf>,
}

static KNOB_VALUES: LazyLock<Mutex<Knobs>> = LazyLock::new(|| {
    let pools = parse_pools(DEFAULT_POOLS).expect("the default is a valid list of pools");
    Mutex::new(Knobs { starts: 0, latency: Duration::ZERO, faults: Vec::new(), pools, directory: None })
});

static UPDATES: AtomicU64 = AtomicU64::new(0);
static FETCHES: AtomicU64 = AtomicU64::new(0);
static QUEUES: AtomicU64 = AtomicU64::new(0);
static IN_FLIGHT: AtomicU64 = AtomicU64::new(0);
static MAX_IN_FLIGHT: AtomicU64 = AtomicU64::new(0);

fn knobs() -> MutexGuard<'static, Knobs> {
    KNOB_VALUES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One more `daos_init`.
pub(crate) fn start() -> Outcome {
    let mut knobs = knobs();
    if knobs.starts == 0 {
        write_log();
        for name in KNOBS {
            if let Some(value) = env::var_os(name) {
                knobs.set(name, value.to_str().ok_or(DER_INVAL)?)?;
            }
        }
    }
    knobs.starts += 1;
    Ok(())
}

/// DAOS has a log with a line or more for each process, which goes to stdout unless `D_LOG_FILE` is set.
fn write_log() {
    if env::var_os("D_LOG_FILE").is_none_or(|file| file.is_empty()) {
        let _ = io::stdout().write_all(b"DAOS stand-in: D_LOG_FILE is not set\n");
    }
}

/// One less `daos_init`; whether it was the last.
pub(crate) fn stop() -> Outcome<bool> {
    let mut knobs = knobs();
    knobs.starts = knobs.starts.checked_sub(1).ok_or(DER_UNINIT)?;
    Ok(knobs.starts == 0)
}

/// An error before `daos_init`.
pub(crate) fn require_start() -> Outcome {
    if knobs().starts == 0 { Err(DER_UNINIT) } else { Ok(()) }
}

pub(crate) fn latency() -> Duration {
    knobs().latency
}

pub(crate) fn pools() -> Vec<PoolSpec> {
    knobs().pools.clone()
}

pub(crate) fn directory() -> Option<PathBuf> {
    knobs().directory.clone()
}

/// Counts the call of an operation, and says what happens to it instead of its work.
pub(crate) fn count_call(kind: Kind) -> Option<Fault> {
    match kind {
        Kind::Update => UPDATES.fetch_add(1, Ordering::Relaxed),
        Kind::Fetch => FETCHES.fetch_add(1, Ordering::Relaxed),
        Kind::Other => return None,
    };
    let mut knobs = knobs();
    let is_meant = |planned: &Planned| planned.kind.is_none_or(|wanted| wanted == kind);
    for planned in knobs.faults.iter_mut().filter(|planned| is_meant(planned)) {
        planned.remaining = planned.remaining.saturating_sub(1);
    }
    let hit = knobs.faults.iter().position(|planned| is_meant(planned) && planned.remaining == 0)?;
    Some(knobs.faults.remove(hit).fault)
}

pub(crate) fn count_queue() {
    QUEUES.fetch_add(1, Ordering::Relaxed);
}

/// An update or fetch was sent.
pub(crate) fn begin() {
    let now = IN_FLIGHT.fetch_add(1, Ordering::Relaxed) + 1;
    MAX_IN_FLIGHT.fetch_max(now, Ordering::Relaxed);
}

/// An update or fetch is done.
pub(crate) fn end() {
    IN_FLIGHT.fetch_sub(1, Ordering::Relaxed);
}

impl Knobs {
    fn set(&mut self, name: &str, value: &str) -> Outcome {
        match name {
            "DAOS_STANDIN_POOLS" => self.pools = parse_pools(value).ok_or(DER_INVAL)?,
            "DAOS_STANDIN_DIR" => self.directory = (!value.is_empty()).then(|| PathBuf::from(value)),
            "DAOS_STANDIN_LATENCY_US" => {
                self.latency = Duration::from_micros(value.parse().map_err(|_| DER_INVAL)?);
            }
            "DAOS_STANDIN_FAULT" => self.faults = parse_faults(value).ok_or(DER_INVAL)?,
            _ => return Err(DER_INVAL),
        }
        Ok(())
    }
}

fn parse_pools(text: &str) -> Option<Vec<PoolSpec>> {
    let pool = |text: &str| {
        let mut parts = text.split(':');
        let name = parts.next().filter(|name| is_label(name))?.to_owned();
        let targets = parts.next().map_or(Some(DEFAULT_TARGETS), |number| number.parse().ok())?;
        let ranks = parts.next().map_or(Some(1), |number| number.parse().ok())?;
        let is_possible = ranks >= 1 && targets >= ranks && parts.next().is_none();
        is_possible.then_some(PoolSpec { name, targets, ranks })
    };
    text.split(',').map(pool).collect()
}

fn parse_faults(text: &str) -> Option<Vec<Planned>> {
    let fault = |text: &str| {
        if text == "hang" {
            return Some(Planned { kind: None, remaining: 1, fault: Fault::Hang });
        }
        let mut parts = text.split(':');
        let kind = match parts.next()? {
            "update" => Kind::Update,
            "fetch" => Kind::Fetch,
            _ => return None,
        };
        let remaining = parts.next()?.parse().ok().filter(|&number: &u64| number >= 1)?;
        let fault = match parts.next()? {
            "hang" => Fault::Hang,
            number => Fault::Error(number.parse().ok().filter(|&number: &c_int| number < 0)?.checked_neg()?),
        };
        parts.next().is_none().then_some(Planned { kind: Some(kind), remaining, fault })
    };
    text.split(',').filter(|text| !text.is_empty()).map(fault).collect()
}

/// Text of a C string; an error for null and for what is not UTF-8.
///
/// # Safety
/// Null, or a pointer to a C string.
pub(crate) unsafe fn text<'a>(pointer: *const c_char) -> Outcome<&'a str> {
    if pointer.is_null() {
        return Err(DER_INVAL);
    }
    // SAFETY: not null, so a C string.
    unsafe { CStr::from_ptr(pointer) }.to_str().map_err(|_| DER_INVAL)
}

/// Sets a knob by the name of its environment variable; an empty value of `DAOS_STANDIN_FAULT` and `DAOS_STANDIN_DIR`
/// is none. Pools and containers that are open stay as they are.
///
/// Errors: `-DER_INVAL` for an unknown name or a wrong value.
///
/// # Safety
/// Both are C strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn daos_standin_set(name: *const c_char, value: *const c_char) -> c_int {
    // SAFETY: the caller passes C strings.
    let texts = unsafe { (text(name), text(value)) };
    status((|| knobs().set(texts.0?, texts.1?))())
}

/// A counter: calls of `update` and `fetch`, event queues created (`eq_create`), and the most updates and fetches that
/// were in flight at the same time (`max_in_flight`). `u64::MAX` for other names.
///
/// # Safety
/// A C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn daos_standin_count(kind: *const c_char) -> u64 {
    // SAFETY: the caller passes a C string.
    let counter = match unsafe { text(kind) } {
        Ok("update") => &UPDATES,
        Ok("fetch") => &FETCHES,
        Ok("eq_create") => &QUEUES,
        Ok("max_in_flight") => &MAX_IN_FLIGHT,
        _ => return u64::MAX,
    };
    counter.load(Ordering::Relaxed)
}

/// Sets the counters to 0; what is in flight stays counted.
// SAFETY: no other library of the process exports this name.
#[unsafe(no_mangle)]
pub extern "C" fn daos_standin_reset() {
    for counter in [&UPDATES, &FETCHES, &QUEUES] {
        counter.store(0, Ordering::Relaxed);
    }
    MAX_IN_FLIGHT.store(IN_FLIGHT.load(Ordering::Relaxed), Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pools_have_targets_and_ranks() {
        let spec = |name: &str, targets, ranks| PoolSpec { name: name.to_owned(), targets, ranks };
        assert_eq!(parse_pools("a,b:1,c:8:2"), Some(vec![spec("a", 4, 1), spec("b", 1, 1), spec("c", 8, 2)]));
        for wrong in ["", "a,", "a b", "a:0", "a:x", "a:1:2", "a:4:1:1"] {
            assert_eq!(parse_pools(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn faults_have_kind_number_and_error() {
        let faults = parse_faults("update:3:-1007,fetch:1:hang,hang").unwrap();
        let found: Vec<_> = faults.iter().map(|planned| (planned.kind, planned.remaining, planned.fault)).collect();
        let expected =
            [(Some(Kind::Update), 3, Fault::Error(1007)), (Some(Kind::Fetch), 1, Fault::Hang), (None, 1, Fault::Hang)];
        assert_eq!(found, expected);
        assert!(parse_faults("").unwrap().is_empty());
        for wrong in ["update", "update:0:-1", "punch:1:-1", "update:1:1007", "fetch:1:-1:2"] {
            assert!(parse_faults(wrong).is_none(), "{wrong}");
        }
    }
}
