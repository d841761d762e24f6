//! Wrappers that are themselves sources and sinks.

mod disk;
mod fault;
mod record;

pub use disk::{DiskCall, DiskFault, DiskLog, FaultyDisk, RecordingDisk};
pub use fault::{Faults, FaultySink, FaultySource};
pub use record::{IoEvent, IoLog, RecordingSink, RecordingSource};
