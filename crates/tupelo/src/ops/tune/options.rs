//! What is compared.

use tupelo_format::compression::Compression;
use tupelo_pages::sink::Mapping;

use crate::ops::cost::Container;
use crate::writer::{DEFAULT_AUTO_FLUSH, DEFAULT_BASKET_BYTES};

/// Default of the sample, in bytes in memory: 64 MiB.
pub const DEFAULT_SAMPLE_BYTES: u64 = 64 << 20;
/// Default page sizes, in bytes before compression.
pub const DEFAULT_PAGE_SIZES: [u64; 4] = [64 << 10, 256 << 10, 1 << 20, 4 << 20];
/// Sizes of pages and baskets that are compared too where single entries are taken.
pub const SMALL_PAGE_SIZES: [u64; 2] = [4 << 10, 16 << 10];
/// Default cluster sizes, in bytes after compression.
pub const DEFAULT_CLUSTER_SIZES: [u64; 3] = [32 << 20, 128 << 20, 512 << 20];
/// Default mappings of objects.
pub const DEFAULT_MAPPINGS: [Mapping; 5] =
    [Mapping::Page, Mapping::Cage(1 << 20), Mapping::Cage(16 << 20), Mapping::PageGroup, Mapping::Cluster];
/// Default basket sizes, in bytes before compression: that of ROOT, and one as large as a page.
pub const DEFAULT_BASKET_SIZES: [u64; 2] = [DEFAULT_BASKET_BYTES as u64, 1 << 20];
/// Default clusters of trees, as [`TreeOptions::with_auto_flush`](crate::writer::TreeOptions::with_auto_flush) takes them:
/// that of ROOT and a larger one. Smaller ones have to be measured one by one.
pub const DEFAULT_AUTO_FLUSHES: [i64; 2] = [DEFAULT_AUTO_FLUSH, -100_000_000];
/// Default codecs by their names, where objects are compared. LZMA takes long and is measured only on request.
pub const DEFAULT_CODECS: [&str; 4] = ["none", "lz4:4", "zstd:5", "zlib:1"];
/// Default codecs by their names for files.
pub const DEFAULT_FILE_CODECS: [&str; 5] = ["none", "lz4:4", "zstd:1", "zstd:5", "zlib:1"];

/// What [`measure`](super::measure) compares. An empty list stands for its default.
/// ```
/// use tupelo::ops::cost::Container;
/// use tupelo::ops::tune::TuneOptions;
///
/// let options = TuneOptions::default()
///     .with_containers([Container::File, Container::Tree])
///     .with_compressions(["zstd:5".parse()?, "lzma:7".parse()?])
///     .with_auto_flushes([100, 1000]);
/// // Two codecs with four sizes of pages and two of baskets.
/// assert_eq!(options.measurements(), 2 * (4 + 2));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct TuneOptions {
    pub(super) containers: Vec<Container>,
    compressions: Vec<Compression>,
    page_sizes: Vec<u64>,
    cluster_sizes: Vec<u64>,
    basket_sizes: Vec<u64>,
    auto_flushes: Vec<i64>,
    pub(super) takes: u64,
    pub(super) sample_bytes: u64,
}

impl Default for TuneOptions {
    fn default() -> Self {
        Self {
            containers: vec![Container::File],
            compressions: Vec::new(),
            page_sizes: Vec::new(),
            cluster_sizes: Vec::new(),
            basket_sizes: Vec::new(),
            auto_flushes: Vec::new(),
            takes: 0,
            sample_bytes: DEFAULT_SAMPLE_BYTES,
        }
    }
}

impl TuneOptions {
    /// The containers; by default an ntuple in a file.
    #[must_use]
    pub fn with_containers(self, containers: impl IntoIterator<Item = Container>) -> Self {
        Self { containers: containers.into_iter().collect(), ..self }
    }

    /// Codecs and levels; by default [`DEFAULT_CODECS`] if there are objects among the containers, and otherwise
    /// [`DEFAULT_FILE_CODECS`].
    #[must_use]
    pub fn with_compressions(self, compressions: impl IntoIterator<Item = Compression>) -> Self {
        Self { compressions: compressions.into_iter().collect(), ..self }
    }

    /// Largest pages of ntuples, in bytes before compression; by default [`DEFAULT_PAGE_SIZES`], with
    /// [`SMALL_PAGE_SIZES`] if single entries are taken.
    #[must_use]
    pub fn with_page_sizes(self, page_sizes: impl IntoIterator<Item = u64>) -> Self {
        Self { page_sizes: page_sizes.into_iter().collect(), ..self }
    }

    /// Clusters of ntuples, in bytes after compression; by default [`DEFAULT_CLUSTER_SIZES`].
    #[must_use]
    pub fn with_cluster_sizes(self, cluster_sizes: impl IntoIterator<Item = u64>) -> Self {
        Self { cluster_sizes: cluster_sizes.into_iter().collect(), ..self }
    }

    /// Baskets of trees, in bytes before compression; by default [`DEFAULT_BASKET_SIZES`], with [`SMALL_PAGE_SIZES`] if
    /// single entries are taken.
    #[must_use]
    pub fn with_basket_sizes(self, basket_sizes: impl IntoIterator<Item = u64>) -> Self {
        Self { basket_sizes: basket_sizes.into_iter().collect(), ..self }
    }

    /// Clusters of trees: numbers of entries, of compressed bytes if negative, and 0 for a single one; by default
    /// [`DEFAULT_AUTO_FLUSHES`].
    #[must_use]
    pub fn with_auto_flushes(self, auto_flushes: impl IntoIterator<Item = i64>) -> Self {
        Self { auto_flushes: auto_flushes.into_iter().collect(), ..self }
    }

    /// Number of single entries, at random, that are read once in one call, beside the reads of all entries. By default none.
    #[must_use]
    pub fn with_takes(self, takes: u64) -> Self {
        Self { takes, ..self }
    }

    /// Size of the sample in bytes in memory; by default [`DEFAULT_SAMPLE_BYTES`].
    #[must_use]
    pub fn with_sample_bytes(self, sample_bytes: u64) -> Self {
        Self { sample_bytes, ..self }
    }

    /// How many measurements are made at most: one of each codec with each size of pages and of baskets.
    pub fn measurements(&self) -> usize {
        let sizes = |is_wanted: bool, sizes: Vec<u64>| if is_wanted { sizes.len() } else { 0 };
        self.compressions().len()
            * (sizes(self.compares_ntuples(), self.page_sizes()) + sizes(self.compares_trees(), self.basket_sizes()))
    }

    pub(super) fn compares_trees(&self) -> bool {
        self.containers.contains(&Container::Tree)
    }

    pub(super) fn compares_ntuples(&self) -> bool {
        self.containers.iter().any(|container| *container != Container::Tree)
    }

    pub(super) fn compressions(&self) -> Vec<Compression> {
        let has_objects = self.containers.iter().any(|container| container.mapping().is_some());
        let names = if has_objects { &DEFAULT_CODECS[..] } else { &DEFAULT_FILE_CODECS };
        match self.compressions.is_empty() {
            true => names.iter().filter_map(|name| name.parse().ok()).collect(),
            false => self.compressions.clone(),
        }
    }

    pub(super) fn page_sizes(&self) -> Vec<u64> {
        self.sizes(&self.page_sizes, &DEFAULT_PAGE_SIZES)
    }

    pub(super) fn basket_sizes(&self) -> Vec<u64> {
        self.sizes(&self.basket_sizes, &DEFAULT_BASKET_SIZES)
    }

    pub(super) fn cluster_sizes(&self) -> &[u64] {
        if self.cluster_sizes.is_empty() { &DEFAULT_CLUSTER_SIZES } else { &self.cluster_sizes }
    }

    pub(super) fn auto_flushes(&self) -> &[i64] {
        if self.auto_flushes.is_empty() { &DEFAULT_AUTO_FLUSHES } else { &self.auto_flushes }
    }

    /// Each size once, in ascending order.
    fn sizes(&self, given: &[u64], default: &[u64]) -> Vec<u64> {
        let small: &[u64] = if self.takes > 0 { &SMALL_PAGE_SIZES } else { &[] };
        let mut sizes = if given.is_empty() { [small, default].concat() } else { given.to_vec() };
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_depend_on_containers() {
        let files = TuneOptions::default();
        assert_eq!((files.compressions().len(), files.measurements()), (DEFAULT_FILE_CODECS.len(), 5 * 4));
        let objects = files.clone().with_containers([Container::Objects(Mapping::Page)]);
        assert_eq!((objects.compressions().len(), objects.measurements()), (DEFAULT_CODECS.len(), 4 * 4));
        let both = files.clone().with_containers([Container::File, Container::Tree]).with_takes(1);
        assert_eq!(both.measurements(), 5 * (6 + 4));
        assert_eq!(both.page_sizes()[..3], [4 << 10, 16 << 10, 64 << 10]);
        assert_eq!(files.with_basket_sizes([7, 5, 7]).basket_sizes(), [5, 7]);
    }
}
