//! SIGINT, SIGTERM and SIGHUP while a file is written.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use tupelo::FileWriter;

use crate::failure::Failure;

/// Added to the number of the signal in the exit status: 130 for SIGINT, 143 for SIGTERM, 129 for SIGHUP.
const SIGNALLED: i32 = 128;

/// Records signals; a second one ends the process at once.
#[derive(Debug, Clone)]
pub(crate) struct Interrupt {
    /// Number of the signal, 0 without one.
    signal: Arc<AtomicUsize>,
}

impl Interrupt {
    pub(crate) fn watch() -> Result<Self, Failure> {
        let (signal, again) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let hangup = if is_handled_by_default(SIGHUP) { &[SIGHUP][..] } else { &[] };
        for &number in [SIGINT, SIGTERM].iter().chain(hangup) {
            // In this order, so that the first signal does not end the process.
            flag::register_conditional_shutdown(number, SIGNALLED + number, again.clone())
                .and_then(|_| flag::register(number, again.clone()))
                .and_then(|_| flag::register_usize(number, signal.clone(), number as usize))
                .map_err(|e| Failure::new(format_args!("cannot install the signal handlers: {e}")))?;
        }
        Ok(Self { signal })
    }

    /// Whether a signal was received.
    pub(crate) fn is_set(&self) -> bool {
        self.signal.load(Ordering::Relaxed) != 0
    }

    /// The error to end with.
    pub(crate) fn failure(&self) -> Failure {
        let signal = self.signal.load(Ordering::Relaxed);
        let status = u8::try_from(SIGNALLED as usize + signal).unwrap_or(crate::failure::FAILED);
        Failure { status, ..Failure::new("interrupted") }
    }
}

/// Whether a signal is known not to be ignored. `nohup` makes a process ignore SIGHUP, which must stay so.
fn is_handled_by_default(signal: i32) -> bool {
    // FS: what the kernel says of this process.
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    ignored.is_some_and(|mask| mask & 1 << (signal - 1) == 0)
}

/// Makes a write above the file size limit (`ulimit -f`) return an error. Otherwise SIGXFSZ would end the process and
/// leave temporary files.
pub(crate) fn handle_size_limits() {
    #[cfg(unix)]
    {
        // Without the handler, the signal ends the process, as it would by default.
        let _ = flag::register(signal_hook::consts::SIGXFSZ, Arc::new(AtomicBool::new(false)));
    }
}

/// Aborts a file that cannot be finished, and adds the name of its last checkpoint to the hint.
pub(crate) fn abort(file: FileWriter, failure: Failure) -> Failure {
    match file.abort() {
        Ok(None) => failure,
        Ok(Some(kept)) => failure.with_hint(format!("`tupelo verify --repair {kept}` recovers the last checkpoint")),
        Err(error) => failure.with_hint(format!("the partial output could not be removed: {error}")),
    }
}
