//! Sources and sinks that wrap others.

mod cache;
#[cfg(any(test, feature = "testing"))]
mod disk;
#[cfg(any(test, feature = "testing"))]
mod fault;
mod meter;
mod recent;
#[cfg(any(test, feature = "testing"))]
mod record;
mod slow;

pub use cache::{Cache, CachedSource};
#[cfg(any(test, feature = "testing"))]
pub use disk::{DiskCall, DiskFault, DiskLog, FaultyDisk, RecordingDisk};
#[cfg(any(test, feature = "testing"))]
pub use fault::{Faults, FaultySink, FaultySource};
pub use meter::{Clock, Meter, MeteredObjects, MeteredSource, Time, process_cpu};
pub use recent::{RecentObjects, RecentSource};
#[cfg(any(test, feature = "testing"))]
pub use record::{IoEvent, IoLog, RecordingSink, RecordingSource};
pub use slow::{DiskSpeed, SlowSource};
