//! One ntuple being written: batches become pages, pages clusters, clusters a group.

use arrow_array::RecordBatch;
use tupelo_format::compression::{self, Compression};
use tupelo_format::container::Anchor;
use tupelo_format::envelope::{
    ClusterGroupRecord, ClusterSummary, ColumnPages, FeatureFlags, Footer, Header, PageInfo, PageList,
};
use tupelo_format::locator::{EnvelopeLink, Locator};

use super::WriteOptions;
use super::options::PENDING_BYTES;
use super::records::{self, check_name};
use crate::encode::{ColumnWriter, FieldWriter, SealedPage};
use crate::schema::Schema;
use crate::sink::{FileSink, MAX_KEY_BYTES};
use crate::{Error, Result};

/// Entries are appended in pieces of about this many bytes, between which a cluster may end.
const PIECE_BYTES: u64 = 4 << 20;
/// Entries of the first piece, before anything is known of their size.
const FIRST_PIECE_ENTRIES: u64 = 256;
/// Pages after which a cluster group is closed, so that page lists stay readable in one piece.
const GROUP_PAGES: usize = 1 << 20;
/// What compression is expected to leave before the first page is there; ROOT's guess.
const FIRST_RATIO: f64 = 0.5;
/// Format version that is stamped, as by ROOT 6.40.
const FORMAT_VERSION: [u16; 4] = [1, 0, 2, 0];

/// What was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Written {
    /// Entries.
    pub entries: u64,
    /// Clusters.
    pub clusters: u64,
    /// Bytes of pages as stored, checksums included.
    pub stored_bytes: u64,
    /// Bytes of pages before compression.
    pub unpacked_bytes: u64,
}

/// Writes one ntuple. It must be finished, or the file is not written.
#[derive(Debug)]
pub struct NtupleWriter {
    sink: FileSink,
    path: String,
    description: String,
    compression: Compression,
    cluster_bytes: u64,
    max_unpacked_cluster_bytes: u64,
    fields: Vec<Option<FieldWriter>>,
    columns: Vec<ColumnWriter>,
    header: EnvelopeLink,
    header_checksum: u64,
    /// Entries of the open cluster.
    cluster_entries: u64,
    /// Clusters of the open group.
    clusters: Vec<(ClusterSummary, Vec<ColumnPages>)>,
    group_pages: usize,
    groups: Vec<ClusterGroupRecord>,
    written: Written,
    /// Set by an error: what was half appended must not be published.
    is_spoilt: bool,
}

impl NtupleWriter {
    pub(super) fn new(sink: FileSink, path: &str, schema: &Schema, options: &WriteOptions) -> Result<Self> {
        options.check()?;
        let name = path.rsplit_once('/').map_or(path, |(_, name)| name);
        check_name(name)?;
        if name.contains(';') {
            return Err(Error::invalid_argument(format!(
                "the name '{name}' contains ';', which ROOT files keep for cycles"
            )));
        }
        let records = records::build(schema, options)?;
        sink.begin(path)?;
        let header = Header {
            feature_flags: FeatureFlags::default(),
            name: name.to_owned(),
            description: options.description.clone(),
            writer: concat!("Tupelo ", env!("CARGO_PKG_VERSION")).to_owned(),
            schema: records.schema,
        };
        let (envelope, header_checksum) = header.write();
        let header = put_envelope(&sink, options.compression, &envelope)?;
        Ok(Self {
            sink,
            path: path.to_owned(),
            description: options.description.clone(),
            compression: options.compression,
            cluster_bytes: options.cluster_bytes,
            max_unpacked_cluster_bytes: options.max_unpacked_cluster_bytes,
            fields: records.fields,
            columns: records.columns,
            header,
            header_checksum,
            cluster_entries: 0,
            clusters: Vec::new(),
            group_pages: 0,
            groups: Vec::new(),
            written: Written::default(),
            is_spoilt: false,
        })
    }

    /// Entries written so far.
    pub fn entries(&self) -> u64 {
        self.written.entries
    }

    /// Appends all entries of a batch, whose columns must be the schema's fields, in order.
    ///
    /// # Errors
    /// Invalid argument where columns do not fit the schema, contain nulls that it does not declare or values that an
    /// encoding cannot hold; storage errors. After an error the ntuple cannot be finished.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        if self.is_spoilt {
            return Err(self.spoilt());
        }
        let done = self.append(batch);
        self.is_spoilt = done.is_err();
        done.map_err(|e| self.context(e))
    }

    fn append(&mut self, batch: &RecordBatch) -> Result<()> {
        if batch.num_columns() != self.fields.len() {
            return Err(Error::invalid_argument(format!(
                "a batch of {} columns for an ntuple of {} fields",
                batch.num_columns(),
                self.fields.len()
            )));
        }
        let (mut start, entries) = (0, batch.num_rows());
        while start < entries {
            let count = self.piece_entries().min((entries - start) as u64) as usize;
            let piece = batch.slice(start, count);
            for (field, array) in self.fields.iter().zip(piece.columns()) {
                if let Some(field) = field {
                    field.append(array, &mut self.columns)?;
                }
            }
            start += count;
            self.cluster_entries += count as u64;
            self.written.entries += count as u64;
            self.relieve()?;
            if self.is_cluster_full() {
                self.commit_cluster()?;
            }
        }
        Ok(())
    }

    /// As many entries as fit into a piece, judged by those of the open cluster, or else by those before it.
    fn piece_entries(&self) -> u64 {
        let (entries, bytes) = match self.cluster_entries {
            0 => (self.written.entries, self.written.unpacked_bytes),
            entries => (entries, self.unpacked_bytes()),
        };
        if entries == 0 {
            return FIRST_PIECE_ENTRIES;
        }
        let piece = PIECE_BYTES.min(self.cluster_bytes / 8).min(self.max_unpacked_cluster_bytes / 8).max(1);
        (piece as f64 / (bytes as f64 / entries as f64).max(1e-3)).clamp(1.0, f64::from(1 << 24)) as u64
    }

    fn unpacked_bytes(&self) -> u64 {
        self.columns.iter().map(|column| column.packed_bytes + column.pending_packed_bytes()).sum()
    }

    /// Keeps the memory of values that wait for their pages within [`PENDING_BYTES`], however many columns there are.
    fn relieve(&mut self) -> Result<()> {
        let mut pending: u64 = self.columns.iter().map(ColumnWriter::pending_bytes).sum();
        if pending <= PENDING_BYTES {
            return Ok(());
        }
        let mut largest: Vec<&mut ColumnWriter> = self.columns.iter_mut().collect();
        largest.sort_by_key(|column| std::cmp::Reverse(column.pending_bytes()));
        for column in largest {
            if pending <= PENDING_BYTES / 2 {
                break;
            }
            pending -= column.pending_bytes();
            column.seal_pending()?;
        }
        Ok(())
    }

    fn is_cluster_full(&self) -> bool {
        let sum = |of: fn(&ColumnWriter) -> u64| self.columns.iter().map(of).sum::<u64>();
        let (sealed, packed) = (sum(|c| c.sealed_bytes), sum(|c| c.packed_bytes));
        let pending = sum(ColumnWriter::pending_packed_bytes);
        let (known_stored, known_packed) = (sealed + self.written.stored_bytes, packed + self.written.unpacked_bytes);
        let ratio = match known_packed {
            _ if self.compression.is_none() => 1.0,
            0 => FIRST_RATIO,
            packed => known_stored as f64 / packed as f64,
        };
        packed + pending >= self.max_unpacked_cluster_bytes
            || sealed as f64 + pending as f64 * ratio >= self.cluster_bytes as f64
    }

    /// Ends the open cluster before it is full. Does nothing where it has no entries.
    ///
    /// # Errors
    /// Storage errors, after which the ntuple cannot be finished.
    pub fn flush_cluster(&mut self) -> Result<()> {
        if self.is_spoilt {
            return Err(self.spoilt());
        }
        let done = self.commit_cluster();
        self.is_spoilt = done.is_err();
        done.map_err(|e| self.context(e))
    }

    fn commit_cluster(&mut self) -> Result<()> {
        if self.cluster_entries == 0 {
            return Ok(());
        }
        let first_elements: Vec<u64> = self.columns.iter().map(|column| column.first_element).collect();
        self.written.unpacked_bytes += self.unpacked_bytes();
        let sealed = self.columns.iter_mut().map(ColumnWriter::take_cluster).collect::<Result<Vec<_>>>()?;
        let mut places = self.put_pages(&sealed)?.into_iter();
        let mut columns = Vec::with_capacity(sealed.len());
        for ((pages, column), first_element) in sealed.iter().zip(&self.columns).zip(first_elements) {
            let pages: Vec<PageInfo> = pages
                .iter()
                .zip(places.by_ref())
                .map(|(page, locator)| PageInfo { elements: page.elements, has_checksum: page.has_checksum, locator })
                .collect();
            self.group_pages += pages.len();
            let compression = column.sealing().compression.setting();
            columns.push(ColumnPages { pages, first_element: Some(first_element), compression });
        }
        let first_entry = self.written.entries - self.cluster_entries;
        self.clusters.push((ClusterSummary { first_entry, entries: self.cluster_entries, flags: 0 }, columns));
        self.written.clusters += 1;
        self.cluster_entries = 0;
        if self.group_pages >= GROUP_PAGES {
            self.commit_group()?;
        }
        Ok(())
    }

    /// Appends all pages, ordered by column, in as few blobs as the file format allows.
    fn put_pages(&mut self, columns: &[Vec<SealedPage>]) -> Result<Vec<Locator>> {
        let pages: Vec<&SealedPage> = columns.iter().flatten().collect();
        let mut locators = Vec::with_capacity(pages.len());
        let mut rest = pages.as_slice();
        while !rest.is_empty() {
            let mut bytes = 0;
            let fitting = rest.iter().take_while(|page| {
                bytes += page.bytes.len() as u64;
                bytes <= MAX_KEY_BYTES
            });
            let count = fitting.count().max(1);
            let (blob, others) = rest.split_at(count);
            let pieces: Vec<&[u8]> = blob.iter().map(|page| page.bytes.as_slice()).collect();
            let mut offset = self.sink.blob(&pieces)?;
            for page in blob {
                let sealed = page.bytes.len() as u64;
                let checksum = if page.has_checksum { 8 } else { 0 };
                locators.push(Locator::File { offset, bytes: sealed - checksum });
                offset += sealed;
                self.written.stored_bytes += sealed;
            }
            rest = others;
        }
        Ok(locators)
    }

    fn commit_group(&mut self) -> Result<()> {
        let Some(first) = self.clusters.first() else { return Ok(()) };
        let min_entry = first.0.first_entry;
        let clusters = self.clusters.iter().map(|(summary, columns)| (*summary, columns.iter()));
        let envelope = PageList::write(self.header_checksum, clusters);
        self.groups.push(ClusterGroupRecord {
            min_entry,
            entry_span: self.clusters.iter().map(|(summary, _)| summary.entries).sum(),
            clusters: u32::try_from(self.clusters.len()).map_err(|_| Error::limit("more than 2^32 clusters"))?,
            page_list: put_envelope(&self.sink, self.compression, &envelope)?,
        });
        self.clusters.clear();
        self.group_pages = 0;
        Ok(())
    }

    /// Writes what is pending, page list, footer and anchor. The ntuple is visible once its file is finished too.
    ///
    /// # Errors
    /// Storage errors, or that of an earlier call that failed.
    pub fn finish(mut self) -> Result<Written> {
        if self.is_spoilt {
            return Err(self.spoilt());
        }
        self.publish().map_err(|e| self.context(e))
    }

    fn publish(&mut self) -> Result<Written> {
        self.commit_cluster()?;
        self.commit_group()?;
        let footer = Footer {
            header_checksum: self.header_checksum,
            cluster_groups: std::mem::take(&mut self.groups),
            ..Footer::default()
        };
        let footer = put_envelope(&self.sink, self.compression, &footer.write())?;
        let (seek_header, nbytes_header) = self.header.locator.in_file()?;
        let (seek_footer, nbytes_footer) = footer.locator.in_file()?;
        let [epoch, major, minor, patch] = FORMAT_VERSION;
        let anchor = Anchor {
            epoch,
            major,
            minor,
            patch,
            seek_header,
            nbytes_header,
            len_header: self.header.length,
            seek_footer,
            nbytes_footer,
            len_footer: footer.length,
            max_key_size: MAX_KEY_BYTES,
        };
        self.sink.publish(&self.path, &self.description, &anchor)?;
        Ok(self.written)
    }

    #[cold]
    fn spoilt(&self) -> Error {
        self.context(Error::invalid_argument("an earlier write failed, so nothing more can be written"))
    }

    fn context(&self, error: Error) -> Error {
        error.within(format!("ntuple '{}'", self.path)).within(self.sink.name())
    }
}

fn put_envelope(sink: &FileSink, compression: Compression, envelope: &[u8]) -> Result<EnvelopeLink> {
    let mut stored = Vec::new();
    compression::compress(compression, envelope, &mut stored)?;
    let offset = sink.blob(&[&stored])?;
    let locator = Locator::File { offset, bytes: stored.len() as u64 };
    Ok(EnvelopeLink { length: envelope.len() as u64, locator })
}
