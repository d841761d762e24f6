//! Recommends page size, cluster size, codec and mapping for an ntuple in an object store, or for the one that a tree
//! becomes when it is imported.
//!
//! A sample is encoded and decoded in memory with each codec and page size, which gives stored bytes and
//! CPU times ([`measure`]). A model adds requests, bandwidth and latency of the store for each cluster size and mapping
//! ([`Measured::candidates`]), and [`best`] chooses. The store is described, or measured by a [`Probe`].

mod model;
mod probe;
mod sample;
#[cfg(test)]
mod tests;

use std::ops::ControlFlow;

use tupelo_format::compression::Compression;

pub use self::model::{Candidate, Link, PageSettings, Phase, StoreModel, Take, Trial};
pub use self::probe::Probe;
use self::sample::Sample;
pub(super) use self::sample::pieces;
use super::cost::{costs, selected_pages};
use crate::reader::{Read, Table};
use crate::sink::Mapping;
use crate::{Error, Result};

/// Default of the sample, in bytes in memory: 64 MiB.
pub const DEFAULT_SAMPLE_BYTES: u64 = 64 << 20;
/// Default page sizes, in bytes before compression.
pub const DEFAULT_PAGE_SIZES: [u64; 4] = [64 << 10, 256 << 10, 1 << 20, 4 << 20];
/// Page sizes that are compared too where single entries are taken.
pub const SMALL_PAGE_SIZES: [u64; 2] = [4 << 10, 16 << 10];
/// Default cluster sizes, in bytes after compression.
pub const DEFAULT_CLUSTER_SIZES: [u64; 3] = [32 << 20, 128 << 20, 512 << 20];
/// Default mappings.
pub const DEFAULT_MAPPINGS: [Mapping; 5] =
    [Mapping::Page, Mapping::Cage(1 << 20), Mapping::Cage(16 << 20), Mapping::PageGroup, Mapping::Cluster];
/// Default codecs by their names. LZMA takes long and is measured only on request.
pub const DEFAULT_CODECS: [&str; 4] = ["none", "lz4:4", "zstd:5", "zlib:1"];

/// Candidates whose values differ by at most this factor count as equal: measured times vary as much.
const TOLERANCE: f64 = 0.05;

/// The default codecs.
///
/// # Errors
/// None, since all names are known to this version.
pub fn default_codecs() -> Result<Vec<Compression>> {
    Ok(DEFAULT_CODECS.iter().map(|name| name.parse()).collect::<std::result::Result<_, tupelo_format::Error>>()?)
}

/// The measurements of an ntuple or tree, independent of the store.
#[derive(Debug)]
pub struct Measured {
    table: Table,
    read: Read,
    trials: Vec<Trial>,
    sample_entries: u64,
    present_read_seconds: f64,
    takes: u64,
}

/// Encodes and decodes a sample of about `sample_bytes` bytes of an ntuple or tree in memory, as an ntuple with each codec
/// and page size. The sample has all fields; those of `read`, a request to the table, are read. `progress` receives the
/// number of measurements that are done, and may end them: the result is then `None`.
///
/// # Errors
/// Invalid argument if the table has no entries and for page sizes that writers refuse; unsupported for fields that cannot
/// be written; the errors of reading.
pub fn measure(
    table: &Table,
    read: &Read,
    compressions: &[Compression],
    page_sizes: &[u64],
    sample_bytes: u64,
    progress: &mut dyn FnMut(usize) -> ControlFlow<()>,
) -> Result<Option<Measured>> {
    if table.entries() == 0 {
        return Err(read.context(Error::invalid_argument("it has no entries to measure")));
    }
    let mut page_sizes = page_sizes.to_vec();
    page_sizes.sort_unstable();
    page_sizes.dedup();
    let sample = match table {
        Table::Ntuple(ntuple) => Sample::of_ntuple(read, ntuple, sample_bytes),
        Table::Tree(tree) => Sample::of_tree(read, tree, sample_bytes),
        Table::Chain(_) | Table::Join(_) => {
            Err(Error::unsupported("expected one file, found several: tune with one of them"))
        }
    };
    let sample = sample.map_err(|e| read.context(e))?;
    let mut trials: Vec<Trial> = Vec::with_capacity(compressions.len() * page_sizes.len());
    for &compression in compressions {
        for &page_bytes in &page_sizes {
            let alike = trials.last().filter(|last| last.compression() == compression && last.has_whole_columns());
            let trial = match alike {
                // Larger pages are the same pages in the sample.
                Some(last) => last.clone().with_page_bytes(page_bytes),
                None => sample.trial(compression, page_bytes).map_err(|e| read.context(e))?,
            };
            trials.push(trial);
            if progress(trials.len()).is_break() {
                return Ok(None);
            }
        }
    }
    Ok(Some(Measured {
        table: table.clone(),
        read: read.clone(),
        trials,
        sample_entries: sample.entries,
        present_read_seconds: sample.read_seconds,
        takes: 0,
    }))
}

impl Measured {
    /// The same where this number of single entries, at random, is read once in one call, beside the reads of all entries.
    /// By default none.
    #[must_use]
    pub fn with_takes(self, entries: u64) -> Self {
        Self { takes: entries, ..self }
    }

    /// The measurements: one of each codec and page size.
    pub fn trials(&self) -> &[Trial] {
        &self.trials
    }

    /// Entries of the sample.
    pub fn sample_entries(&self) -> u64 {
        self.sample_entries
    }

    /// The costs of the ntuple in a store, for all measured codecs and page sizes with these cluster sizes and
    /// mappings.
    /// `cores` encode and decode.
    pub fn candidates(
        &self,
        store: &StoreModel,
        cores: usize,
        cluster_sizes: &[u64],
        mappings: &[Mapping],
    ) -> Vec<Candidate> {
        let entries = self.table.entries();
        let mut candidates = Vec::with_capacity(self.trials.len() * cluster_sizes.len() * mappings.len());
        for trial in &self.trials {
            for &cluster_bytes in cluster_sizes {
                let of =
                    |&mapping: &Mapping| trial.candidate(entries, cluster_bytes, mapping, self.takes, (store, cores));
                candidates.extend(mappings.iter().map(of));
            }
        }
        candidates
    }

    /// The costs of the existing pages in a store with each mapping, if copied unchanged: writing them takes no CPU
    /// time. None for a tree.
    ///
    /// # Errors
    /// As [`costs`].
    pub fn present(&self, store: &StoreModel, cores: usize, mappings: &[Mapping]) -> Result<Vec<Candidate>> {
        let Table::Ntuple(ntuple) = &self.table else { return Ok(Vec::new()) };
        let clusters = ntuple.clusters();
        let read_cpu = self.present_read_seconds * ntuple.entries() as f64 / self.sample_entries.max(1) as f64;
        let resolved: Vec<Mapping> = mappings
            .iter()
            .map(|mapping| mapping.resolve(store.reads_in_place, store.hints.max_request_bytes))
            .collect();
        let selected = if self.takes > 0 { selected_pages(ntuple, &self.read)? } else { Vec::new() };
        let take = Take::new(self.takes, &selected, read_cpu, store, cores);
        let of = |cost: super::cost::MappingCost| {
            let clusters = (clusters, cost.bytes / clusters.max(1));
            Candidate::new(None, cost, clusters, (0.0, read_cpu), take, (store, cores))
        };
        Ok(costs(ntuple, &self.read, &resolved, store.hints)?.into_iter().map(of).collect())
    }
}

/// The candidate with the smallest values. Those whose first value is at most 5 % more than the smallest count as equal;
/// of these the second value decides in the same way, and so on.
pub fn best<'a>(
    candidates: impl IntoIterator<Item = &'a Candidate>,
    values: &[&dyn Fn(&Candidate) -> f64],
) -> Option<&'a Candidate> {
    let mut left: Vec<&Candidate> = candidates.into_iter().collect();
    for value in values {
        let smallest = left.iter().map(|candidate| value(candidate)).fold(f64::INFINITY, f64::min);
        left.retain(|candidate| value(candidate) <= smallest * (1.0 + TOLERANCE));
    }
    left.first().copied()
}
