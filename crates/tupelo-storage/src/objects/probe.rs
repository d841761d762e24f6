//! Finds out whether a store honours conditions. Some that speak the protocol of S3 ignore them.

use bytes::Bytes;

use super::{Condition, ObjectSink};
use crate::error::{ErrorKind, Result};

/// Maximum size of the probe, in bytes.
const PROBE_BYTES: u64 = 64;

/// The first content of the probe.
const FIRST: &[u8] = b"probe 1";

/// Whether [`ObjectSink::publish`] refuses to write what its condition forbids. `probe` must be a new key.
pub(super) fn honours_conditions(sink: &(impl ObjectSink + ?Sized), probe: &str) -> Result<bool> {
    let answer = ask(sink, probe);
    let removed = sink.delete(&[probe.to_owned()]);
    let answer = answer?;
    removed.map(|()| answer)
}

fn ask(sink: &(impl ObjectSink + ?Sized), probe: &str) -> Result<bool> {
    // The contents differ, so that none is taken for another that a lost answer belongs to.
    let publish = |content: &'static [u8], condition: &Condition| {
        match sink.publish(probe, Bytes::from_static(content), condition) {
            Ok(()) => Ok(Answer::Written),
            // A new key cannot be refused because of the condition.
            Err(error) if error.kind() == ErrorKind::Changed && content != FIRST => Ok(Answer::Refused),
            // Not implemented.
            Err(error) if error.kind() == ErrorKind::NotSupported => Ok(Answer::Unknown),
            Err(error) => Err(error),
        }
    };
    if publish(FIRST, &Condition::Absent)? != Answer::Written
        || publish(b"probe 2", &Condition::Absent)? != Answer::Refused
    {
        return Ok(false);
    }
    let (_, version) = sink.get(probe, PROBE_BYTES)?;
    let condition = Condition::Version(version);
    Ok(publish(b"probe 3", &condition)? == Answer::Written && publish(b"probe 4", &condition)? == Answer::Refused)
}

/// What a store did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    Written,
    Refused,
    Unknown,
}
