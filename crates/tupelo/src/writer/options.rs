//! Options for writing. Defaults are ROOT's (`RNTupleWriteOptions`, 6.40).

use std::collections::BTreeMap;
use std::time::Duration;

use tupelo_format::compression::Compression;
use tupelo_format::encoding::Encoding;
pub use tupelo_format::encoding::MAX_PAGE_BYTES;
use tupelo_pages::encode::PageOptions;
use tupelo_pages::sink::Mapping;
use tupelo_schema::schema::arrow;

use crate::{Error, Result};

/// Compressed size at which a cluster is complete, in bytes: 128 MiB.
pub const DEFAULT_CLUSTER_BYTES: u64 = 128 << 20;
/// Uncompressed size at which a cluster is complete even if it compresses better than expected, in bytes: 1280 MiB, or
/// ten times the compressed size where that is more.
const MAX_UNPACKED_CLUSTER_BYTES: u64 = 1280 << 20;
/// Default of the largest page, in uncompressed bytes: 1 MiB.
pub const DEFAULT_PAGE_BYTES: u64 = 1 << 20;
/// Pending values of all columns together, in bytes: 64 MiB. Beyond that, the largest pages are sealed early, so that
/// ntuples with many columns have smaller pages.
pub const PENDING_BYTES: u64 = 64 << 20;
/// Sealed pages of the open cluster that are kept in memory, in bytes: 32 MiB. Beyond that they are stored, ordered by
/// column, so that memory does not grow with the cluster size.
pub const WRITE_BYTES: u64 = 32 << 20;

/// Stored bytes after which a checkpoint is made: 1 GiB.
pub const DEFAULT_CHECKPOINT_BYTES: u64 = 1 << 30;
/// Time after which a checkpoint is made: 5 minutes.
pub const DEFAULT_CHECKPOINT_TIME: Duration = Duration::from_secs(300);

/// When a checkpoint is due: the first of these.
#[derive(Debug, Clone, Copy)]
pub(super) struct CheckpointEvery {
    pub(super) clusters: Option<u64>,
    pub(super) bytes: Option<u64>,
    pub(super) time: Option<Duration>,
}

/// Options for writing an ntuple.
#[derive(Debug, Clone)]
pub struct WriteOptions {
    pub(super) compression: Compression,
    pub(super) field_compression: BTreeMap<String, Compression>,
    pub(super) field_encoding: BTreeMap<String, Encoding>,
    pub(super) page_bytes: u64,
    pub(super) cluster_bytes: u64,
    pub(super) page_checksums: bool,
    pub(super) checkpoint: CheckpointEvery,
    pub(super) description: String,
    pub(super) extra_type_info: Vec<tupelo_format::envelope::ExtraTypeInfo>,
    pub(super) keeps_representations: bool,
}

impl Default for WriteOptions {
    fn default() -> Self {
        Self {
            compression: Compression::DEFAULT,
            field_compression: BTreeMap::new(),
            field_encoding: BTreeMap::new(),
            page_bytes: DEFAULT_PAGE_BYTES,
            cluster_bytes: DEFAULT_CLUSTER_BYTES,
            page_checksums: true,
            checkpoint: CheckpointEvery {
                clusters: None,
                bytes: Some(DEFAULT_CHECKPOINT_BYTES),
                time: Some(DEFAULT_CHECKPOINT_TIME),
            },
            description: String::new(),
            extra_type_info: Vec::new(),
            keeps_representations: false,
        }
    }
}

impl WriteOptions {
    /// Codec and level; the default is zstd, level 5. Without compression, columns do not use split encodings either.
    #[must_use]
    pub fn with_compression(mut self, compression: Compression) -> Self {
        self.compression = compression;
        self
    }

    /// Codec and level.
    pub fn compression(&self) -> Compression {
        self.compression
    }

    /// Codec and level of one field, by dotted path, and of everything below it.
    #[must_use]
    pub fn with_field_compression(mut self, path: &str, compression: Compression) -> Self {
        self.field_compression.insert(path.to_owned(), compression);
        self
    }

    /// Column encoding of one field, by dotted path: `Real16`, `Real32` (for doubles), `Real32Trunc(BITS)` of 10 to 31
    /// bits, `Real32Quant(BITS,MIN,MAX)` of 1 to 32 bits, `Index32`, or any other that fits the field's type. For a
    /// collection of numbers it applies to the numbers, unless it is an index type. ROOT 6.40 cannot read
    /// `SplitReal16`. Writing values that the encoding cannot hold is an error: values outside a range, and finite
    /// values that would become infinite.
    ///
    /// # Errors
    /// Invalid argument for an encoding that does not exist. Whether it fits the field is checked when writing begins.
    pub fn with_field_encoding(mut self, path: &str, encoding: &str) -> Result<Self> {
        self.field_encoding.insert(path.to_owned(), arrow::parse_encoding(encoding)?);
        Ok(self)
    }

    /// Largest page, in uncompressed bytes; the default is [`DEFAULT_PAGE_BYTES`].
    #[must_use]
    pub fn with_page_bytes(mut self, bytes: u64) -> Self {
        self.page_bytes = bytes;
        self
    }

    /// Compressed size at which a cluster is complete, in bytes; the default is [`DEFAULT_CLUSTER_BYTES`]. A cluster
    /// that compresses well is complete at 1280 MiB uncompressed, or at ten times this size where that is more.
    #[must_use]
    pub fn with_cluster_bytes(mut self, bytes: u64) -> Self {
        self.cluster_bytes = bytes;
        self
    }

    /// The same with clusters of at most this target size.
    #[must_use]
    pub(crate) fn with_max_cluster_bytes(mut self, bytes: u64) -> Self {
        self.cluster_bytes = self.cluster_bytes.min(bytes);
        self
    }

    /// Makes a checkpoint every `clusters` clusters; 0, the default, disables that. See
    /// [`NtupleWriter::checkpoint`](super::NtupleWriter::checkpoint).
    ///
    /// Automatic checkpoints are delayed until the records of all checkpoints together take no more bytes than the
    /// data, except for the first 64 KiB of records.
    #[must_use]
    pub fn with_checkpoint_clusters(mut self, clusters: u64) -> Self {
        self.checkpoint.clusters = (clusters > 0).then_some(clusters);
        self
    }

    /// Makes a checkpoint every `bytes` stored bytes, at the end of a cluster; 0 disables that. The default is
    /// [`DEFAULT_CHECKPOINT_BYTES`].
    #[must_use]
    pub fn with_checkpoint_bytes(mut self, bytes: u64) -> Self {
        self.checkpoint.bytes = (bytes > 0).then_some(bytes);
        self
    }

    /// Makes a checkpoint every `time`, when the next batch is written and if there is enough data; this closes the
    /// open cluster. Zero disables that. The default is [`DEFAULT_CHECKPOINT_TIME`].
    #[must_use]
    pub fn with_checkpoint_time(mut self, time: Duration) -> Self {
        self.checkpoint.time = (!time.is_zero()).then_some(time);
        self
    }

    /// Whether pages carry checksums, and page lists digests of the pages; yes by default.
    #[must_use]
    pub fn with_page_checksums(mut self, checksums: bool) -> Self {
        self.page_checksums = checksums;
        self
    }

    /// Description of the ntuple.
    #[must_use]
    pub fn with_description(mut self, description: &str) -> Self {
        description.clone_into(&mut self.description);
        self
    }

    /// The description of the ntuple, or an empty string.
    pub(crate) fn description(&self) -> &str {
        &self.description
    }

    /// Extra type information, which streamer fields of another ntuple need.
    #[must_use]
    pub(crate) fn with_extra_type_info(mut self, info: Vec<tupelo_format::envelope::ExtraTypeInfo>) -> Self {
        self.extra_type_info = info;
        self
    }

    /// Options for the pages of a column.
    /// Sets whether clusters may be stored in any of the representations that the fields were read in.
    pub(crate) fn with_kept_representations(mut self, keeps_representations: bool) -> Self {
        self.keeps_representations = keeps_representations;
        self
    }

    pub(super) fn page_options(&self, encoding: Encoding, compression: Compression) -> PageOptions {
        PageOptions { encoding, compression, has_checksum: self.page_checksums, page_bytes: self.page_bytes }
    }

    /// The options for fields that are added later.
    pub(super) fn without_fields(mut self) -> Self {
        self.keeps_representations = false;
        self.field_compression.clear();
        self.field_encoding.clear();
        self
    }

    /// The options for attribute sets.
    pub(super) fn for_attributes(self) -> Self {
        Self { description: String::new(), extra_type_info: Vec::new(), ..self.without_fields() }
    }

    /// Uncompressed size at which a cluster is complete regardless of its compressed size.
    pub(crate) fn max_unpacked_cluster_bytes(&self) -> u64 {
        MAX_UNPACKED_CLUSTER_BYTES.max(self.cluster_bytes.saturating_mul(10))
    }

    /// Checks the options that do not depend on fields, before a file is created. Writing checks them as well.
    ///
    /// # Errors
    /// Invalid argument for sizes of pages and clusters that are 0 or too large.
    pub fn check(&self) -> Result<()> {
        let sizes = [("page", self.page_bytes, MAX_PAGE_BYTES), ("cluster", self.cluster_bytes, i64::MAX as u64)];
        for (what, bytes, most) in sizes {
            if bytes == 0 || bytes > most {
                return Err(Error::invalid_argument(format!(
                    "{what} size of {bytes} bytes is out of range: expected 1 to {most}"
                )));
            }
        }
        Ok(())
    }
}

/// How an ntuple is written to an object store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ObjectOptions {
    pub(super) mapping: Mapping,
    pub(super) is_exclusive: bool,
}

impl ObjectOptions {
    /// Which pages share an object; [`Mapping::Auto`] by default.
    #[must_use]
    pub fn with_mapping(self, mapping: Mapping) -> Self {
        Self { mapping, ..self }
    }

    /// Whether to refuse an existing ntuple instead of replacing it; no by default. Of several writers one succeeds. A
    /// store that ignores the conditions which that needs is refused.
    #[must_use]
    pub fn with_exclusive(self, is_exclusive: bool) -> Self {
        Self { is_exclusive, ..self }
    }
}
