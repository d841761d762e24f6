//! Where an ntuple is stored: ROOT files, the metadata of ntuples in them, and the store of their pages.

mod directories;
mod memory;
mod metadata;
mod metrics;
mod seal;
mod store;
mod work;

use std::ops::Range;
use std::sync::Arc;

use tupelo_format::container::{Attempt, FetchedRanges, Interrupt};
use tupelo_format::open;
use tupelo_format::wire::Memory;
use tupelo_storage::ByteSource;
use tupelo_storage::adapter::MeteredSource;

use directories::Directories;
pub use memory::{DEFAULT_MEMORY_BUDGET_BYTES, MAX_BUDGET_EXPANSION};
pub(crate) use memory::{MemoryBudget, RequestMemory, Reservation};
pub(crate) use metadata::{Cluster, Metadata, PAGE_MEMORY};
pub(crate) use metrics::Counters;
pub use metrics::Metrics;
pub(crate) use seal::{checked, compare, packed_bytes};
pub(crate) use store::{BlobRange, FileStore, PageStore};
pub use tupelo_format::encoding::MAX_PAGE_BYTES;
use work::{MetadataBytes, Work};

use crate::error::Remedy;
use crate::{Error, Result};

/// Reading the structure of a file ends after this many rounds of requests.
const MAX_ROUNDS: usize = 10_000;

/// A ROOT file of which head and tail are at hand.
#[derive(Debug, Clone)]
pub(crate) struct File {
    source: Arc<dyn ByteSource>,
    fetched: FetchedRanges,
    budget: MemoryBudget,
    counters: Counters,
    directories: Arc<Directories>,
    work: Option<Arc<Work>>,
}

impl File {
    pub(crate) fn open(source: Arc<dyn ByteSource>) -> Result<Self> {
        let size = source.size()?;
        let budget = MemoryBudget::new(DEFAULT_MEMORY_BUDGET_BYTES);
        let (fetched, counters) = (FetchedRanges::new(size), Counters::default());
        let mut file = Self { source, fetched, budget, counters, directories: Arc::default(), work: None };
        file.fetched = file.provide(file.fetched.clone(), &open::first_guess(size))?;
        Ok(file)
    }

    pub(crate) fn size(&self) -> u64 {
        self.fetched.size()
    }

    pub(crate) fn source(&self) -> &dyn ByteSource {
        &*self.source
    }

    pub(crate) fn with_memory_budget(self, bytes: u64) -> Self {
        // What was kept so far counts in the budget before.
        Self { budget: MemoryBudget::new(bytes), directories: Arc::default(), ..self }
    }

    /// The same file for one operation on all of its ntuples: how much metadata is read is limited by the size of the
    /// file, even where ntuples share it.
    pub(crate) fn with_work_limit(self) -> Self {
        Self { work: Some(Arc::new(Work::of_file(self.size()))), ..self }
    }

    fn take_work(&self, metadata: MetadataBytes) -> Result<()> {
        self.work.as_ref().map_or(Ok(()), |work| work.take(metadata))
    }

    /// Enables read statistics.
    pub(crate) fn with_metrics(self) -> Self {
        let (counters, meter) = Counters::metered();
        Self { source: Arc::new(MeteredSource::new(self.source, &meter)), counters, ..self }
    }

    pub(crate) fn counters(&self) -> &Counters {
        &self.counters
    }

    pub(crate) fn budget(&self) -> &MemoryBudget {
        &self.budget
    }

    fn provide(&self, mut fetched: FetchedRanges, ranges: &[Range<u64>]) -> Result<FetchedRanges> {
        for (range, bytes) in ranges.iter().zip(self.source.read_ranges(ranges)?) {
            fetched.provide(range.start, bytes);
        }
        Ok(fetched)
    }

    /// Runs a step of the format until it has the bytes that it wants.
    pub(crate) fn attempt<T>(&self, step: impl Fn(&FetchedRanges) -> Attempt<T>) -> Result<T> {
        self.attempt_reserved(step).map(|(done, _)| done)
    }

    /// As [`File::attempt`], with the reservation of the memory that the result takes.
    fn attempt_reserved<T>(&self, step: impl Fn(&FetchedRanges) -> Attempt<T>) -> Result<(T, Reservation)> {
        self.attempt_from(self.fetched.clone(), step).map(|(done, share, _)| (done, share))
    }

    /// Parses bytes within the memory budget; gives the reservation of the memory that the result takes.
    fn parse<T>(&self, step: impl FnOnce(&Memory) -> tupelo_format::Result<T>) -> Result<(T, Reservation)> {
        let memory = Memory::new(self.budget.left());
        let done = step(&memory)?;
        Ok((done, self.budget.reserve(memory.used(), "metadata")?))
    }

    /// As [`File::attempt_reserved`], from bytes that were fetched before; gives those that were fetched in the end.
    fn attempt_from<T>(
        &self,
        fetched: FetchedRanges,
        step: impl Fn(&FetchedRanges) -> Attempt<T>,
    ) -> Result<(T, Reservation, FetchedRanges)> {
        let limit = self.budget.left();
        let mut fetched = fetched.with_memory_limit(limit);
        let mut fetched_bytes = 0u64;
        for _ in 0..MAX_ROUNDS {
            // What the last round made is gone.
            fetched.memory().reset(fetched_bytes);
            match step(&fetched) {
                Ok(done) => {
                    let kept = fetched.memory().used().saturating_sub(fetched_bytes);
                    return Ok((done, self.budget.reserve(kept, "metadata")?, fetched));
                }
                Err(Interrupt::Failed(error)) => return Err(error.into()),
                Err(Interrupt::Missing(ranges)) => {
                    let wanted = ranges.iter().map(|range| range.end.saturating_sub(range.start));
                    fetched_bytes = wanted.fold(fetched_bytes, u64::saturating_add);
                    if fetched_bytes > limit {
                        let wanted = format!("metadata of {fetched_bytes} stored bytes");
                        let refused = Error::limit(format!("{wanted} where {limit} bytes of memory are left"));
                        return Err(refused.with_remedy(Remedy::MemoryBudget));
                    }
                    fetched = self.provide(fetched, &ranges)?;
                }
            }
        }
        Err(Error::limit(format!("the file's structure needs more than {MAX_ROUNDS} rounds of reading")))
    }
}
