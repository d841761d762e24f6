//! Wrappers that are themselves sources and sinks.

mod fault;
mod record;

pub use fault::{Faults, FaultySink, FaultySource};
pub use record::{IoEvent, IoLog, RecordingSink, RecordingSource};
