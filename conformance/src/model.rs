//! An ntuple taken apart into records, which can be changed and put together again with right checksums.
//!
//! What cannot be said with the format's own record types is done to bytes at a [`Stage`] between two checksums.

use bytes::Bytes;
use tupelo_format::checksum::xxh3;
use tupelo_format::container::{self, Anchor, BLOB_KEY_BYTES, FetchedRanges, FileLayout, Interrupt, blob_key};
use tupelo_format::envelope::{
    self, ClusterGroupRecord, ClusterSummary, ColumnPages, EnvelopeType, Footer, Header, MIN_ENVELOPE_BYTES, PageInfo,
    PageList,
};
use tupelo_format::locator::{EnvelopeLink, Locator};
use tupelo_format::{Error, Result, compression, open};

/// Envelopes and pages of samples are far below this.
const LIMIT_BYTES: u64 = 64 << 20;
/// Bytes of an anchor that its checksum does not cover, at the front and (the checksum itself) at the end.
const ANCHOR_HEAD_BYTES: usize = 6;
/// Where the header of a small file says where it ends.
const END: usize = 12;
/// Where it says where the streamer info is.
const SEEK_INFO: usize = 37;
/// Type and length word in front of an envelope's payload.
const ENVELOPE_HEAD_BYTES: usize = 8;
/// XXH3-64.
const CHECKSUM_BYTES: usize = 8;

/// Bytes on their way into a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// What an envelope holds, before type, length and checksum are put around it.
    Payload(EnvelopeType),
    /// An envelope with its checksum, which is not repaired.
    Envelope(EnvelopeType),
    /// An envelope as it is stored; its uncompressed size is said to be what it was before.
    Stored(EnvelopeType),
    /// The anchor; its checksum is not repaired.
    Anchor,
    /// The whole file.
    File,
}

type Edit<T> = Box<dyn Fn(&mut T)>;

/// An ntuple in parts.
#[derive(Default)]
pub struct Model {
    /// Path in the file.
    pub path: String,
    /// The header.
    pub header: Header,
    /// The footer; cluster groups are made from [`Model::groups`].
    pub footer: Footer,
    /// Cluster groups.
    pub groups: Vec<Group>,
    /// Version of the format: epoch, major, minor, patch.
    pub version: [u16; 4],
    /// Whether envelopes are compressed.
    pub pack: bool,
    edit_footer: Vec<Edit<Footer>>,
    edit_anchor: Vec<Edit<Anchor>>,
    edit_bytes: Vec<(Stage, Edit<Vec<u8>>)>,
}

/// One cluster group.
#[derive(Debug, Clone, Default)]
pub struct Group {
    /// Clusters in entry order.
    pub clusters: Vec<Cluster>,
}

/// One cluster.
#[derive(Debug, Clone)]
pub struct Cluster {
    /// Its entries.
    pub summary: ClusterSummary,
    /// Pages of every column.
    pub columns: Vec<Column>,
}

/// The pages of one column in one cluster.
#[derive(Debug, Clone)]
pub struct Column {
    /// In element order.
    pub pages: Vec<Page>,
    /// First element, counted over all clusters; `None` for a suppressed column.
    pub first_element: Option<u64>,
    /// Compression setting.
    pub compression: u32,
}

/// One sealed page.
#[derive(Debug, Clone)]
pub struct Page {
    /// Number of elements.
    pub elements: u32,
    /// As stored, without checksum.
    pub stored: Vec<u8>,
    /// Whether a checksum follows, and which if not the right one.
    pub checksum: Option<Option<u64>>,
    /// Where it is said to lie, if not where it lies.
    pub locator: Option<Locator>,
    /// What the page list says that it is.
    pub digest: Option<u64>,
}

impl std::fmt::Debug for Model {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Model").field("path", &self.path).field("header", &self.header).finish_non_exhaustive()
    }
}

fn all_there<T>(attempt: Result<T, Interrupt>) -> Result<T> {
    attempt.map_err(|interrupt| match interrupt {
        Interrupt::Failed(error) => error,
        Interrupt::Missing(_) => Error::corrupt("bytes outside of the file"),
    })
}

impl Model {
    /// Takes the first ntuple of a file apart.
    ///
    /// # Errors
    /// Those of reading its metadata, and not finding one.
    pub fn load(bytes: &Bytes) -> Result<Self> {
        let mut fetched = FetchedRanges::new(bytes.len() as u64);
        fetched.provide(0, bytes.clone());
        let objects = all_there(open::ntuples(&fetched))?;
        let object = objects.first().ok_or_else(|| Error::corrupt("no ntuple in the file"))?;
        let anchor = all_there(open::anchor(&fetched, object))?;
        let get = |offset: u64, stored: u64, length: u64| {
            let stored = all_there(container::payload(&fetched, offset, stored, anchor.max_key_size))?;
            compression::decompress(&stored, length, LIMIT_BYTES)
        };
        let (header, checksum) = Header::read(&get(anchor.seek_header, anchor.nbytes_header, anchor.len_header)?)?;
        let footer = Footer::read(&get(anchor.seek_footer, anchor.nbytes_footer, anchor.len_footer)?)?;
        let mut groups = Vec::new();
        for record in &footer.cluster_groups {
            let (offset, stored) = record.page_list.locator.in_file()?;
            let list = PageList::read(get(offset, stored, record.page_list.length)?.into(), checksum)?;
            let mut clusters = Vec::new();
            for (index, summary) in list.clusters().iter().enumerate() {
                let mut columns = Vec::new();
                for column in 0..list.columns(index) {
                    let listed = list.pages(index, column)?.unwrap_or_else(ColumnPages::suppressed);
                    let page = |info: &PageInfo| {
                        let (offset, stored) = info.locator.in_file()?;
                        let stored = all_there(container::payload(&fetched, offset, stored, anchor.max_key_size))?;
                        let checksum = info.has_checksum.then_some(None);
                        Ok(Page {
                            elements: info.elements,
                            stored: stored.to_vec(),
                            checksum,
                            locator: None,
                            digest: None,
                        })
                    };
                    let pages = listed.pages.iter().map(page).collect::<Result<_>>()?;
                    let (first_element, compression) = (listed.first_element, listed.compression);
                    columns.push(Column { pages, first_element, compression });
                }
                clusters.push(Cluster { summary: *summary, columns });
            }
            groups.push(Group { clusters });
        }
        let version = [anchor.epoch, anchor.major, anchor.minor, anchor.patch];
        Ok(Self { path: object.path.clone(), header, footer, groups, version, ..Self::default() })
    }

    /// The pages of a column in a cluster of the first group.
    pub fn column(&mut self, cluster: usize, column: usize) -> &mut Column {
        &mut self.groups[0].clusters[cluster].columns[column]
    }

    /// A page of a column in a cluster of the first group.
    pub fn page(&mut self, cluster: usize, column: usize, page: usize) -> &mut Page {
        &mut self.column(cluster, column).pages[page]
    }

    /// Changes the footer once its cluster groups are known.
    pub fn edit_footer(&mut self, edit: impl Fn(&mut Footer) + 'static) {
        self.edit_footer.push(Box::new(edit));
    }

    /// Changes the anchor once all places are known.
    pub fn edit_anchor(&mut self, edit: impl Fn(&mut Anchor) + 'static) {
        self.edit_anchor.push(Box::new(edit));
    }

    /// Changes bytes at a stage. Page lists of all groups pass through the same edits.
    pub fn edit_bytes(&mut self, stage: Stage, edit: impl Fn(&mut Vec<u8>) + 'static) {
        self.edit_bytes.push((stage, Box::new(edit)));
    }

    fn apply(&self, stage: Stage, bytes: &mut Vec<u8>) {
        self.edit_bytes.iter().filter(|(at, _)| *at == stage).for_each(|(_, edit)| edit(bytes));
    }

    /// Puts the ntuple into a file of its own. The same model gives the same bytes.
    ///
    /// # Errors
    /// Limit where something is too large for a file.
    pub fn build(&self) -> Result<Bytes> {
        let (mut layout, mut file) = FileLayout::create("b", 0, [0; 16])?;
        // All is one blob, which keeps small files small; its key is known when it ends.
        let start = file.len();
        file.extend_from_slice(&[0; BLOB_KEY_BYTES as usize]);
        let pages: Vec<&Page> =
            self.groups.iter().flat_map(|g| &g.clusters).flat_map(|c| &c.columns).flat_map(|c| &c.pages).collect();
        let mut blob = Vec::new();
        let mut offsets = Vec::new();
        for page in pages {
            offsets.push(blob.len() as u64);
            blob.extend_from_slice(&page.stored);
            if let Some(checksum) = page.checksum {
                blob.extend_from_slice(&checksum.unwrap_or_else(|| xxh3(&page.stored)).to_le_bytes());
            }
        }
        let begin = put(&mut file, &blob);
        let mut places = offsets.into_iter().map(|offset| begin + offset);

        let (header, _) = self.header.write();
        let header = self.envelope(&mut file, EnvelopeType::Header, &header);
        let mut footer = Footer { header_checksum: header.checksum, cluster_groups: Vec::new(), ..self.footer.clone() };
        for group in &self.groups {
            let mut info = |page: &Page| PageInfo {
                elements: page.elements,
                has_checksum: page.checksum.is_some(),
                locator: page.locator.unwrap_or(Locator::File {
                    offset: places.next().unwrap_or_default(),
                    bytes: page.stored.len() as u64,
                }),
                digest: page.digest,
            };
            let mut listed: Vec<(ClusterSummary, Vec<ColumnPages>)> = Vec::new();
            for cluster in &group.clusters {
                let columns = cluster.columns.iter().map(|column| ColumnPages {
                    pages: column.pages.iter().map(&mut info).collect(),
                    first_element: column.first_element,
                    compression: column.compression,
                });
                listed.push((cluster.summary, columns.collect()));
            }
            let list =
                PageList::write(header.checksum, listed.iter().map(|(summary, columns)| (*summary, columns.iter())));
            let page_list = self.envelope(&mut file, EnvelopeType::PageList, &list).link;
            footer.cluster_groups.push(ClusterGroupRecord {
                min_entry: group.clusters.first().map_or(0, |cluster| cluster.summary.first_entry),
                entry_span: group.clusters.iter().map(|cluster| cluster.summary.entries).sum(),
                clusters: group.clusters.len() as u32,
                page_list,
            });
        }
        self.edit_footer.iter().for_each(|edit| edit(&mut footer));
        let footer = self.envelope(&mut file, EnvelopeType::Footer, &footer.write());

        let (seek_header, nbytes_header) = header.link.locator.in_file()?;
        let (seek_footer, nbytes_footer) = footer.link.locator.in_file()?;
        let [epoch, major, minor, patch] = self.version;
        let mut anchor = Anchor {
            epoch,
            major,
            minor,
            patch,
            seek_header,
            nbytes_header,
            len_header: header.link.length,
            seek_footer,
            nbytes_footer,
            len_footer: footer.link.length,
            max_key_size: 1 << 30,
        };
        self.edit_anchor.iter().for_each(|edit| edit(&mut anchor));
        let mut anchor = anchor.write();
        self.apply(Stage::Anchor, &mut anchor);
        layout.add(&self.path, open::ANCHOR_CLASS, "", anchor)?;
        let blob_bytes = file.len() as u64 - start as u64 - BLOB_KEY_BYTES;
        file[start..][..BLOB_KEY_BYTES as usize].copy_from_slice(&blob_key(start as u64, blob_bytes, 0)?);
        let tail = layout.finish(file.len() as u64)?;
        file.extend_from_slice(&tail.append);
        for (offset, bytes) in &tail.patches {
            file[*offset as usize..][..bytes.len()].copy_from_slice(bytes);
        }
        strip(&mut file);
        self.apply(Stage::File, &mut file);
        Ok(file.into())
    }

    fn envelope(&self, file: &mut Vec<u8>, kind: EnvelopeType, envelope: &[u8]) -> Placed {
        let mut payload = envelope[ENVELOPE_HEAD_BYTES..envelope.len() - CHECKSUM_BYTES].to_vec();
        self.apply(Stage::Payload(kind), &mut payload);
        let (mut envelope, checksum) = envelope::wrap(kind, &payload);
        self.apply(Stage::Envelope(kind), &mut envelope);
        let length = (envelope.len() as u64).max(MIN_ENVELOPE_BYTES);
        match self.edit_bytes.iter().any(|(at, _)| *at == Stage::Stored(kind)) {
            true => self.apply(Stage::Stored(kind), &mut envelope),
            false if self.pack => envelope = zstd(&envelope),
            false => {}
        }
        let offset = put(file, &envelope);
        let locator = Locator::File { offset, bytes: envelope.len() as u64 };
        Placed { link: EnvelopeLink { length, locator }, checksum }
    }
}

struct Placed {
    link: EnvelopeLink,
    checksum: u64,
}

fn put(file: &mut Vec<u8>, bytes: &[u8]) -> u64 {
    let offset = file.len() as u64;
    file.extend_from_slice(bytes);
    offset
}

/// Drops streamer info and free list, which stand last and which no reader of ntuples needs: small files stay small.
fn strip(file: &mut Vec<u8>) {
    let seek_info = [SEEK_INFO, SEEK_INFO + 1, SEEK_INFO + 2, SEEK_INFO + 3].map(|at| file[at]);
    file.truncate(u32::from_be_bytes(seek_info) as usize);
    let end = (file.len() as u32).to_be_bytes();
    file[END..END + 4].copy_from_slice(&end);
    // Place and size of the free list and how many segments it has; place and size of the streamer info.
    file[END + 4..END + 16].fill(0);
    file[SEEK_INFO..SEEK_INFO + 8].fill(0);
}

/// Makes an anchor's checksum right again.
pub fn seal_anchor(anchor: &mut [u8]) {
    let end = anchor.len() - CHECKSUM_BYTES;
    let checksum = xxh3(&anchor[ANCHOR_HEAD_BYTES..end]);
    anchor[end..].copy_from_slice(&checksum.to_be_bytes());
}

/// Compresses with zstd.
///
/// # Panics
/// If there is no memory for it.
pub fn zstd(bytes: &[u8]) -> Vec<u8> {
    let mut packed = Vec::new();
    compression::compress(compression::Compression::DEFAULT, bytes, &mut packed).expect("zstd compresses");
    packed
}
