//! Wrappers that are themselves sources and sinks.

mod disk;
mod fault;
mod meter;
mod record;

pub use disk::{DiskCall, DiskFault, DiskLog, FaultyDisk, RecordingDisk};
pub use fault::{Faults, FaultySink, FaultySource};
pub use meter::{Clock, Meter, MeteredSource, Time};
pub use record::{IoEvent, IoLog, RecordingSink, RecordingSource};
