//! Events that look like real ones, for demonstrations and tests: no detector, but honest kinematics.
//!
//! The same seed gives the same events whatever the batch size: the generator of random numbers is a named one
//! (xoshiro256++), and tests pin what is drawn from it. Events of `b2hhh` are the same on every machine to the last
//! bit; those of `nanoaod` up to the rounding of the machine's hyperbolic and inverse functions.

pub(crate) mod b2hhh;
mod kinematics;
pub(crate) mod nanoaod;

use std::ops::Range;

use arrow_array::{ArrayRef, RecordBatch};

/// The named columns of one batch, none of them nullable.
type Columns = Vec<(String, ArrayRef)>;

/// Cuts `0..events` into batches and makes each from its entry range, in order.
fn in_batches(
    events: u64,
    batch_entries: usize,
    mut make: impl FnMut(Range<u64>) -> Columns,
) -> impl Iterator<Item = RecordBatch> {
    let step = batch_entries.max(1) as u64;
    (0..events.div_ceil(step)).map(move |batch| {
        let start = batch * step;
        record_batch(make(start..events.min(start.saturating_add(step))))
    })
}

/// Columns of one length as a record batch.
fn record_batch(columns: Columns) -> RecordBatch {
    let columns = columns.into_iter().map(|(name, array)| (name, array, false));
    RecordBatch::try_from_iter_with_nullable(columns).expect("a generator fills all columns alike")
}
