//! What all back ends over a network share: options, retries, tokens, and names without credentials.
//!
//! | module | what it does |
//! |---|---|
//! | `failure` | why an attempt failed, and whether another one may succeed |
//! | [`retry`](Limits) | what is repeated, how long to wait, and when to stop |
//! | [`options`](Options) | options by name |
//! | `secret` | hides credentials in names and messages |
//! | `token` | WLCG bearer token discovery |
//! | `certificates` | the authorities of the option `ca_certificates` |
//! | `runtime` | the threads that run requests |

mod certificates;
mod failure;
mod options;
mod retry;
mod runtime;
mod secret;
mod token;

use std::time::{Duration, SystemTime};

pub(crate) use self::certificates::authorities;
pub(crate) use self::failure::Failure;
pub use self::options::{Options, Redundancy};
pub(crate) use self::retry::{Attempts, repeat, unless_stalled};
pub use self::retry::{Limits, SLOWEST_BYTES_PER_SECOND};
pub(crate) use self::runtime::{run, run_cleaning};
pub(crate) use self::secret::{XROOTD, display_name, hide_in_message, hide_parameters, is_secret};
pub(crate) use self::token::{bearer_token, variable};

/// Age of a modification time that identifies a version: 10 seconds, for clocks that differ. Servers send whole seconds,
/// so a file that has just been modified may be modified again without another time.
const SETTLED_AFTER: Duration = Duration::from_secs(10);

/// Whether a modification time is old enough to identify a version.
pub(crate) fn is_settled(modified: SystemTime, now: SystemTime) -> bool {
    now.duration_since(modified).is_ok_and(|age| age >= SETTLED_AFTER)
}

/// A file or a folder in a listing.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// Its URL; that of a folder ends with a slash.
    pub url: String,
    /// Size of a file in bytes, `None` for a folder.
    pub size: Option<u64>,
}
