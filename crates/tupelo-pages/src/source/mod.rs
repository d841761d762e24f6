//! Where an ntuple is stored: ROOT files and object stores, the metadata of ntuples in them, and the store of their
//! pages.

mod anchor;
mod attempt;
mod directories;
mod keys;
mod memory;
mod metadata;
mod metrics;
mod objects;
mod recover;
mod seal;
mod session;
mod store;
mod tree;
mod work;

use std::ops::Range;
use std::sync::Arc;

use tupelo_format::container::{Attempt, FetchedRanges, Interrupt};
use tupelo_format::open;
use tupelo_storage::ByteSource;
use tupelo_storage::adapter::{MeteredSource, RecentSource};

pub(crate) use anchor::write_daos;
pub use anchor::{StoreAnchor, daos_keys, with_default_metadata};
pub(crate) use attempt::sealed_record;
pub use attempt::{PUBLISHING_TIME, began, is_attempt, new_names, removed, removed_record, replaced, sealed};
use directories::Directories;
pub(crate) use keys::DEFAULT_METADATA_CLASS;
pub use keys::{AttemptNumbers, Blob, DaosKeys, MAX_RECORD_BYTES, ObjectKeys, RECORD};
pub(crate) use memory::{CONCURRENT_FETCHES, KeptPages};
pub use memory::{
    DEFAULT_MEMORY_BUDGET_BYTES, Extents, FETCH_BYTES, Keep, MAX_BUDGET_EXPANSION, MemoryBudget, RequestMemory,
    RequestPages, Reservation, UsedPart,
};
pub use metadata::{Cluster, Metadata, PAGE_MEMORY};
pub use metrics::{Counters, Metrics};
pub(crate) use objects::clone_key;
pub use objects::{CLONES, Objects, anchor_key, and_next, may_be_elsewhere, missing};
pub use recover::{Overlay, scan};
pub use seal::{checked, compare, packed_bytes};
pub use session::Session;
pub(crate) use store::size_limit;
pub use store::{BlobRange, FileStore, PageStore};
use tree::OtherFiles;
pub use tree::{Origin, TreeCache, TreeSource, check_record};
use tupelo_core::error::Remedy;
pub use tupelo_format::encoding::MAX_PAGE_BYTES;

use crate::{Error, Result};

/// Reading the structure of a file ends after this many rounds of requests.
const MAX_ROUNDS: usize = 10_000;
/// Recent reads, and decompressed pages, are kept in this part of the memory budget.
const RECENT_BUDGET_PART: u64 = 2;

/// A ROOT file whose head and tail have been fetched.
#[derive(Debug, Clone)]
pub struct File {
    source: Arc<dyn ByteSource>,
    fetched: FetchedRanges,
    session: Session,
    directories: Arc<Directories>,
    others: Arc<OtherFiles>,
}

impl File {
    /// Reads the first bytes of a ROOT file.
    pub fn open(source: Arc<dyn ByteSource>) -> Result<Self> {
        let size = source.size()?;
        let fetched = FetchedRanges::new(size);
        let session = Session::default().with_deviations(fetched.deviations().clone());
        let mut file = Self { source, fetched, session, directories: Arc::default(), others: Arc::default() };
        file.fetched = file.provide(file.fetched.clone(), &open::first_guess(size))?;
        Ok(file)
    }

    /// The same file, which can name others.
    pub fn with_origin(self, origin: Origin) -> Self {
        Self { others: Arc::new(OtherFiles::of(origin)), ..self }
    }

    /// Size in bytes.
    pub fn size(&self) -> u64 {
        self.fetched.size()
    }

    /// The bytes of the file.
    pub fn source(&self) -> &dyn ByteSource {
        &*self.source
    }

    /// The same with another limit of memory.
    pub fn with_memory_budget(self, bytes: u64) -> Self {
        // What was kept so far counts in the previous budget.
        Self { session: self.session.with_memory_budget(bytes), directories: Arc::default(), ..self }
    }

    /// The same file for one operation on all of its ntuples: how much metadata is read is limited by the size of the
    /// file, even where ntuples share it.
    pub fn with_work_limit(self) -> Self {
        let session = self.session.clone().with_work_limit(self.size());
        Self { session, ..self }
    }

    /// Enables read statistics.
    pub fn with_metrics(self) -> Self {
        let (counters, meter) = Counters::metered();
        let session = self.session.with_counters(counters);
        let others = Arc::new(self.others.with_meter(&meter));
        Self { source: Arc::new(MeteredSource::new(self.source, &meter)), session, others, ..self }
    }

    /// The same file for an operation that reads the same pages several times: what was read last is kept, in at most
    /// half of the memory budget.
    pub fn with_recent_reads(self) -> Self {
        let max_bytes = self.session.budget().limit_bytes() / RECENT_BUDGET_PART;
        Self { source: Arc::new(RecentSource::new(self.source, max_bytes)), ..self }
    }

    /// The state shared with the ntuples of the file.
    pub fn session(&self) -> &Session {
        &self.session
    }

    fn provide(&self, mut fetched: FetchedRanges, ranges: &[Range<u64>]) -> Result<FetchedRanges> {
        for (range, bytes) in ranges.iter().zip(self.source.read_ranges(ranges)?) {
            fetched.provide(range.start, bytes);
        }
        Ok(fetched)
    }

    /// Runs a step of the format until it has the bytes that it needs.
    pub fn attempt<T>(&self, step: impl Fn(&FetchedRanges) -> Attempt<T>) -> Result<T> {
        self.attempt_reserved(step).map(|(done, _)| done)
    }

    /// As [`File::attempt`], with the reservation of the memory that the result takes.
    fn attempt_reserved<T>(&self, step: impl Fn(&FetchedRanges) -> Attempt<T>) -> Result<(T, Reservation)> {
        self.attempt_from(self.fetched.clone(), step).map(|(done, share, _)| (done, share))
    }

    /// As [`File::attempt_reserved`], from bytes that were fetched before; gives those that were fetched in the end.
    fn attempt_from<T>(
        &self,
        fetched: FetchedRanges,
        step: impl Fn(&FetchedRanges) -> Attempt<T>,
    ) -> Result<(T, Reservation, FetchedRanges)> {
        let budget = self.session.budget();
        let limit = budget.left();
        let mut fetched = fetched.with_memory_limit(limit);
        let mut fetched_bytes = 0u64;
        for _ in 0..MAX_ROUNDS {
            // The results of the last round were dropped.
            fetched.memory().reset(fetched_bytes);
            match step(&fetched) {
                Ok(done) => {
                    let kept = fetched.memory().used().saturating_sub(fetched_bytes);
                    return Ok((done, budget.reserve(kept, "metadata")?, fetched));
                }
                Err(Interrupt::Failed(error)) => return Err(error.into()),
                Err(Interrupt::Missing(ranges)) => {
                    let wanted = ranges.iter().map(|range| range.end.saturating_sub(range.start));
                    fetched_bytes = wanted.fold(fetched_bytes, u64::saturating_add);
                    if fetched_bytes > limit {
                        let wanted = format!("metadata of {fetched_bytes} stored bytes");
                        let refused = Error::limit(format!("{wanted} exceeds the {limit} bytes of memory left"));
                        return Err(refused.with_remedy(Remedy::MemoryBudget));
                    }
                    fetched = self.provide(fetched, &ranges)?;
                }
            }
        }
        Err(Error::limit(format!("the structure of the file needs more than {MAX_ROUNDS} rounds of reading")))
    }
}
