//! What takes entries.

use arrow_array::RecordBatch;

use super::{FieldsWriter, NtupleWriter, TreeWriter, WriteProgress};
use crate::{Error, Result};

/// What takes entries, one batch after the other: an ntuple, a tree, or a file of another format.
///
/// [`pipe`](crate::ops::pipe) fills it from a read. Without [`EntrySink::finish`] nothing of it is complete.
pub trait EntrySink {
    /// The errors of the sink.
    type Error: From<Error>;

    /// Memory that batches take best, in bytes.
    const BATCH_BYTES: u64 = 16 << 20;

    /// Appends all entries of a batch, whose columns the sink knows.
    ///
    /// # Errors
    /// Those of the sink for columns and values that it cannot hold, and for its storage.
    fn write(&mut self, batch: &RecordBatch) -> Result<(), Self::Error>;

    /// Writes what is pending, and ends the sink.
    ///
    /// # Errors
    /// Those of its storage, or an error if an earlier call failed.
    fn finish(&mut self) -> Result<WriteProgress, Self::Error>;

    /// Ends the sink without what it took. Where nothing is visible before the end, dropping it is enough.
    ///
    /// # Errors
    /// Those of its storage.
    fn abandon(self) -> Result<(), Self::Error>
    where
        Self: Sized,
    {
        Ok(())
    }
}

/// Writers have these methods themselves.
macro_rules! entry_sinks {
    ($($writer:ty),*) => {
        $(impl EntrySink for $writer {
            type Error = Error;

            fn write(&mut self, batch: &RecordBatch) -> Result<()> {
                self.write(batch)
            }

            fn finish(&mut self) -> Result<WriteProgress> {
                self.finish()
            }

            fn abandon(self) -> Result<()> {
                self.abandon()
            }
        })*
    };
}

entry_sinks!(NtupleWriter, TreeWriter, FieldsWriter);
