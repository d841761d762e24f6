//! Being asked to stop while a file is written: by Ctrl-C, by `kill`, by a batch system.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use tupelo::FileWriter;

use crate::failure::Failure;

/// Exit status of a program that a signal ended is this and the signal's number: 130 for SIGINT, 143 for SIGTERM.
const SIGNALLED: i32 = 128;

/// Takes note of signals that ask to stop; a second one ends the program at once.
#[derive(Debug, Clone)]
pub(crate) struct Interrupt {
    /// The signal, 0 while there is none.
    signal: Arc<AtomicUsize>,
}

impl Interrupt {
    pub(crate) fn watch() -> Result<Self, Failure> {
        let (signal, again) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        for number in [SIGINT, SIGTERM] {
            // In this order: the first signal finds the second flag down.
            flag::register_conditional_shutdown(number, SIGNALLED + number, again.clone())
                .and_then(|_| flag::register(number, again.clone()))
                .and_then(|_| flag::register_usize(number, signal.clone(), number as usize))
                .map_err(|e| Failure::new(format_args!("cannot watch for signals: {e}")))?;
        }
        Ok(Self { signal })
    }

    /// Whether there is a reason to stop.
    pub(crate) fn is_there(&self) -> bool {
        self.signal.load(Ordering::Relaxed) != 0
    }

    /// What to end with.
    pub(crate) fn failure(&self) -> Failure {
        let signal = self.signal.load(Ordering::Relaxed);
        let status = u8::try_from(SIGNALLED as usize + signal).unwrap_or(crate::failure::FAILED);
        Failure { status, ..Failure::new("interrupted") }
    }
}

/// Makes a write above the file size limit (`ulimit -f`) an error like any other. Otherwise its signal would end the
/// process at once, and temporary files would stay.
pub(crate) fn survive_size_limits() {
    #[cfg(unix)]
    {
        // A signal that is handled does not end the process. Without the handler all is as it would be without us.
        let _ = flag::register(signal_hook::consts::SIGXFSZ, Arc::new(AtomicBool::new(false)));
    }
}

/// Gives a file up that cannot be finished, and says where its last checkpoint is.
pub(crate) fn give_up(file: FileWriter, failure: Failure) -> Failure {
    match file.abort() {
        Ok(None) => failure,
        Ok(Some(kept)) => failure.with_hint(format!("the last checkpoint is kept: tupelo verify --repair {kept}")),
        Err(error) => failure.with_hint(format!("what was written could not be removed: {error}")),
    }
}
