//! Recommends codec and level, sizes of pages or baskets and of clusters, and a container: an ntuple as objects in a store, an
//! ntuple in a file, or a tree in a file.
//!
//! A sample is written and read in memory with each codec and size of pages, which gives stored bytes and
//! CPU times ([`measure`]). A model adds requests, bandwidth and latency of the store for each cluster size and container
//! ([`Measured::candidates`]), and [`best`] chooses. The store is described, or measured by a [`Probe`].

mod baskets;
mod model;
mod options;
mod probe;
mod sample;
#[cfg(test)]
mod tests;
mod trial;

use std::ops::ControlFlow;

use tupelo_format::compression::Compression;
use tupelo_pages::sink::Mapping;
use tupelo_ttree::tree::Stored;
use tupelo_ttree::write::basket_key_bytes;

use self::baskets::TreeSample;
pub use self::model::{Candidate, Link, PageSettings, Phase, Sizes, StoreModel, Take, Usage};
use self::model::{Contents, sealed_memory};
pub use self::options::{
    DEFAULT_AUTO_FLUSHES, DEFAULT_BASKET_SIZES, DEFAULT_CLUSTER_SIZES, DEFAULT_CODECS, DEFAULT_FILE_CODECS,
    DEFAULT_MAPPINGS, DEFAULT_PAGE_SIZES, DEFAULT_SAMPLE_BYTES, SMALL_PAGE_SIZES, TuneOptions,
};
pub use self::probe::Probe;
pub(super) use self::sample::pieces;
use self::sample::{Pieces, Sample};
pub use self::trial::Trial;
use super::cost::{Container, costs, file_cost, selected_baskets, selected_pages, tree_cost};
use super::inspect;
use crate::reader::{Ntuple, Read, Table, Tree};
use crate::{Error, ErrorKind, Result};

/// Candidates whose values differ by at most this factor count as equal: measured times vary as much.
const TOLERANCE: f64 = 0.05;

/// The measurements of an ntuple or tree, independent of the store.
#[derive(Debug)]
pub struct Measured {
    table: Table,
    read: Read,
    options: TuneOptions,
    trials: Vec<Trial>,
    sample_entries: u64,
    present_read_seconds: f64,
    /// What ntuples and trees do not have of the table.
    left_out: [Vec<String>; 2],
    /// `ntuples` or `trees`, and why.
    not_compared: Vec<(&'static str, Error)>,
}

/// Writes and reads a sample of an ntuple or tree in memory, as ntuple or as tree, with each codec and size of pages or
/// baskets. The sample has all fields; those of `read`, a request to the table, are read. `progress` receives the
/// number of [measurements](TuneOptions::measurements) that are done, and may end them: the result is then `None`.
///
/// # Errors
/// Invalid argument if the table has no entries or fields, and for sizes that writers refuse; unsupported for fields that
/// cannot be written; the errors of reading.
pub fn measure(
    table: &Table,
    read: &Read,
    options: &TuneOptions,
    progress: &mut dyn FnMut(usize) -> ControlFlow<()>,
) -> Result<Option<Measured>> {
    measured(table, read, options, progress).map_err(|e| read.context(e))
}

fn measured(
    table: &Table,
    read: &Read,
    options: &TuneOptions,
    progress: &mut dyn FnMut(usize) -> ControlFlow<()>,
) -> Result<Option<Measured>> {
    if table.entries() == 0 {
        return Err(Error::invalid_argument("it has no entries to measure"));
    }
    let (all, clusters) = match table {
        Table::Ntuple(ntuple) => (ntuple.read_all(), ntuple.cluster_ranges()?),
        Table::Tree(tree) => (tree.read_all(), tree.cluster_ranges().collect()),
        Table::Chain(_) | Table::Join(_) => {
            return Err(Error::unsupported("expected one file, found several: tune with one of them"));
        }
    };
    if all.schema().fields.is_empty() {
        return Err(Error::invalid_argument("it has no fields to measure"));
    }
    let pieces = Pieces::new(read, &all, &clusters, options.sample_bytes)?;
    let (mut trials, mut left_out, codecs) = (Vec::new(), [Vec::new(), Vec::new()], options.compressions());
    let mut not_compared = Vec::new();
    let may_lack_one = options.compares_ntuples() && options.compares_trees();
    let mut refuse = |what, error: Error| {
        if !may_lack_one || error.kind() != ErrorKind::Unsupported {
            return Err(error);
        }
        not_compared.push((what, error));
        Ok(())
    };
    let mut done = 0;
    let mut progress = || {
        done += 1;
        progress(done)
    };
    if options.compares_ntuples() {
        let sample = match table.tree() {
            Some(tree) => Sample::of_tree(read, tree, &pieces),
            None => Sample::of_ntuple(read, table.ntuple()?, &pieces),
        };
        match sample {
            Err(error) => refuse("ntuples", error)?,
            Ok(mut sample) => {
                left_out[0] = std::mem::take(&mut sample.left_out);
                let trial = |compression, page_bytes| Ok(vec![sample.trial(compression, page_bytes)?]);
                if add_trials(&mut trials, &codecs, &options.page_sizes(), &trial, &mut progress)?.is_break() {
                    return Ok(None);
                }
            }
        }
    }
    if options.compares_trees() {
        let sample = match table.tree() {
            Some(tree) => TreeSample::of_tree(read, tree, &pieces),
            None => TreeSample::of_ntuple(read, table.ntuple()?, &pieces),
        };
        match sample {
            Err(error) => refuse("trees", error)?,
            Ok(mut sample) => {
                left_out[1] = std::mem::take(&mut sample.left_out);
                let trial =
                    |compression, basket_bytes| sample.trials(compression, basket_bytes, options.auto_flushes());
                if add_trials(&mut trials, &codecs, &options.basket_sizes(), &trial, &mut progress)?.is_break() {
                    return Ok(None);
                }
            }
        }
    }
    Ok(Some(Measured {
        table: table.clone(),
        read: read.clone(),
        options: options.clone(),
        trials,
        sample_entries: pieces.entries,
        present_read_seconds: pieces.read_seconds,
        left_out,
        not_compared,
    }))
}

/// Adds the trials that `of` makes with each codec and each of these ascending sizes.
fn add_trials(
    trials: &mut Vec<Trial>,
    compressions: &[Compression],
    sizes: &[u64],
    of: &dyn Fn(Compression, u64) -> Result<Vec<Trial>>,
    progress: &mut dyn FnMut() -> ControlFlow<()>,
) -> Result<ControlFlow<()>> {
    for &compression in compressions {
        let mut last: Vec<Trial> = Vec::new();
        for &size in sizes {
            last = match !last.is_empty() && last.iter().all(Trial::has_whole_columns) {
                // Larger pages are the same pages in the sample.
                true => last.into_iter().map(|trial| trial.with_page_bytes(size)).collect(),
                false => of(compression, size)?,
            };
            trials.extend_from_slice(&last);
            if progress().is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
    }
    Ok(ControlFlow::Continue(()))
}

impl Measured {
    /// What is not compared, since it cannot hold the table: `ntuples` or `trees`, and why.
    pub fn not_compared(&self) -> &[(&'static str, Error)] {
        &self.not_compared
    }

    /// The measurements: one of each codec and size of pages, of trees with each size of clusters.
    pub fn trials(&self) -> &[Trial] {
        &self.trials
    }

    /// Entries of the sample.
    pub fn sample_entries(&self) -> u64 {
        self.sample_entries
    }

    /// What the ntuple or tree in a container does not have of the table: fields and branches that it cannot hold, and what a
    /// tree has besides entries.
    pub fn left_out(&self, container: Container) -> &[String] {
        &self.left_out[usize::from(container == Container::Tree)]
    }

    /// The costs in a store, for all measured codecs and sizes of pages with all sizes of clusters and containers.
    /// `cores` encode and decode.
    pub fn candidates(&self, store: &StoreModel, cores: usize) -> Vec<Candidate> {
        let (entries, takes) = (self.table.entries(), self.options.takes);
        let mut candidates = Vec::new();
        for trial in &self.trials {
            // The trials of trees have one size of clusters each.
            let cluster_sizes = if trial.auto_flush().is_some() { &[0] } else { self.options.cluster_sizes() };
            for &cluster_bytes in cluster_sizes {
                let own = self.options.containers.iter().filter(|container| trial.is_for(**container));
                candidates.extend(own.map(|&it| trial.candidate(entries, cluster_bytes, it, takes, (store, cores))));
            }
        }
        candidates
    }

    /// The costs of the existing pages or baskets in the same kind of container, if copied unchanged: writing them takes no
    /// CPU time.
    ///
    /// # Errors
    /// As [`costs`] and [`tree_cost`].
    pub fn present(&self, store: &StoreModel, cores: usize) -> Result<Vec<Candidate>> {
        match &self.table {
            Table::Ntuple(ntuple) => self.present_pages(ntuple, store, cores),
            Table::Tree(tree) if self.options.compares_trees() => Ok(vec![self.present_baskets(tree, store, cores)?]),
            _ => Ok(Vec::new()),
        }
    }

    fn present_pages(&self, ntuple: &Ntuple, store: &StoreModel, cores: usize) -> Result<Vec<Candidate>> {
        let containers = &self.options.containers;
        let mappings: Vec<Mapping> = containers.iter().filter_map(|container| container.mapping()).collect();
        let resolve = |mapping: &Mapping| mapping.resolve(store.is_local, store.hints.max_request_bytes);
        let resolved: Vec<Mapping> = mappings.iter().map(resolve).collect();
        let mut found = match resolved.is_empty() {
            true => Vec::new(),
            false => costs(ntuple, &self.read, &resolved, store.hints)?,
        };
        if containers.contains(&Container::File) {
            found.push(file_cost(ntuple, &self.read, store.hints)?);
        }
        if found.is_empty() {
            return Ok(Vec::new());
        }
        let selected = if self.options.takes > 0 { selected_pages(ntuple, &self.read)? } else { Vec::new() };
        let (take, read_cpu) = self.present_reads(&selected, store, cores);
        let (clusters, sizes) = (ntuple.clusters(), inspect::summary(ntuple)?.sizes);
        let of = |cost: super::cost::Cost| {
            let contents = Contents {
                sizes: Sizes { unpacked_bytes: sizes.unpacked_bytes, stored_bytes: sizes.stored_bytes },
                clusters,
                memory_bytes: sealed_memory(cost.container, cost.bytes / clusters.max(1)),
                cpu: (0.0, read_cpu),
                take,
            };
            Candidate::new(None, cost, contents, (store, cores))
        };
        Ok(found.into_iter().map(of).collect())
    }

    fn present_baskets(&self, tree: &Tree, store: &StoreModel, cores: usize) -> Result<Candidate> {
        let mut cost = tree_cost(tree, &self.read, store.hints)?;
        // Baskets in the record of the tree get records of their own.
        for branch in &tree.metadata().branches {
            let own = branch.baskets.iter().filter(|place| matches!(place.stored, Stored::Embedded(_))).count();
            let key_bytes = basket_key_bytes(tree.name(), &branch.name).unwrap_or_default();
            cost.bytes = cost.bytes.saturating_add(own as u64 * u64::from(key_bytes));
        }
        let selected = selected_baskets(tree, &self.read)?;
        let (take, read_cpu) = self.present_reads(&selected, store, cores);
        let branches = &tree.metadata().branches;
        // What ROOT counted as stored also counts baskets in the record of the tree as if they were not compressed.
        let stored = branches.iter().flat_map(|branch| &branch.baskets).map(|place| tree.stored_bytes(&place.stored));
        let unpacked = branches.iter().map(|branch| branch.bytes[0]);
        let [unpacked_bytes, stored_bytes] =
            [unpacked.fold(0, u64::saturating_add), stored.fold(0, u64::saturating_add)];
        let sizes = Sizes { unpacked_bytes, stored_bytes };
        let (clusters, memory_bytes) = (tree.clusters(), 0);
        let contents = Contents { sizes, clusters, memory_bytes, cpu: (0.0, read_cpu), take };
        Ok(Candidate::new(None, cost, contents, (store, cores)))
    }

    /// Single entries of columns with these numbers of pages and bytes, and the CPU time of decoding all of them.
    fn present_reads(&self, selected: &[(u64, u64)], store: &StoreModel, cores: usize) -> (Take, f64) {
        let scale = self.table.entries() as f64 / self.sample_entries.max(1) as f64;
        let read_cpu = self.present_read_seconds * scale;
        (Take::new(self.options.takes, selected, read_cpu, store, cores), read_cpu)
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
