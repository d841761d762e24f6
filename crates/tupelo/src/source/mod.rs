//! Where pages come from: metadata on demand and sealed pages by locator, over any [`ByteSource`].

mod directories;
mod memory;
mod metrics;
mod pages;
mod scratch;
mod work;

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use tupelo_format::checksum::{CHECKSUM_BYTES, xxh3};
use tupelo_format::compression;
use tupelo_format::container::{self, Anchor, Attempt, Fetched, Interrupt};
use tupelo_format::descriptor::{ColumnId, Descriptor};
use tupelo_format::encoding::Encoding;
use tupelo_format::envelope::{ClusterSummary, ColumnPages, PageInfo, PageList};
use tupelo_format::{Error as FormatError, open, wire::Cursor};
use tupelo_storage::ByteSource;
use tupelo_storage::adapter::MeteredSource;

use directories::Directories;
pub(crate) use memory::{Budget, Request, Share};
pub use memory::{DEFAULT_MEMORY_BUDGET_BYTES, MAX_BUDGET_EXPANSION};
pub(crate) use metrics::Counters;
pub use metrics::Metrics;
pub(crate) use pages::{Ends, Missing, Pages, Segment, Touch};
use work::{Metadata, Work};

use crate::error::Remedy;
use crate::{Error, Result, pool};

/// Pages that are or would unpack to more are refused, in bytes; ROOT's are at most 1 MiB unless told otherwise.
pub const MAX_PAGE_BYTES: u64 = 1 << 30;
/// No codec of the format expands by more, so a page that claims to is damaged: zstd's best is a block of 128 KiB
/// that repeats one byte, which takes four.
const MAX_EXPANSION: u64 = 1 << 15;
/// A file that sends its reader further round than this is going in circles.
const MAX_ROUNDS: usize = 10_000;
/// The header of a ROOT file in its longer layout, with the UUID behind it, in bytes.
const FILE_HEADER_BYTES: u64 = 93;
/// Memory of a field in the schema, in its copy that a reading request makes and in the Arrow schemas of both, names not
/// counted, in bytes.
const FIELD_MEMORY: u64 = 4096;
/// How often a field's texts stand in these.
const TEXT_COPIES: u64 = 6;
/// How often a field's path is kept: for a projected field and while fields are chosen by pattern.
const PATH_COPIES: u64 = 2;
/// Memory of one page in a list of pages, in bytes: place, start, and what a reading request notes of it.
const PAGE_MEMORY: u64 = 208;
/// The shortest description of a page in a page list, in bytes.
const MIN_LISTED_PAGE_BYTES: u64 = 8;

/// A ROOT file of which head and tail are at hand.
#[derive(Debug, Clone)]
pub(crate) struct File {
    source: Arc<dyn ByteSource>,
    fetched: Fetched,
    budget: Budget,
    counters: Counters,
    directories: Arc<Directories>,
    work: Option<Arc<Work>>,
}

impl File {
    pub(crate) fn open(source: Arc<dyn ByteSource>) -> Result<Self> {
        let size = source.size()?;
        let budget = Budget::new(DEFAULT_MEMORY_BUDGET_BYTES);
        let (fetched, counters) = (Fetched::new(size), Counters::default());
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
        Self { budget: Budget::new(bytes), directories: Arc::default(), ..self }
    }

    /// The same file for one operation on all of its ntuples: how much metadata is read is limited by the size of the
    /// file, even where ntuples share it.
    pub(crate) fn with_work_limit(self) -> Self {
        Self { work: Some(Arc::new(Work::of_file(self.size()))), ..self }
    }

    fn take_work(&self, metadata: Metadata) -> Result<()> {
        self.work.as_ref().map_or(Ok(()), |work| work.take(metadata))
    }

    /// Counts what reading costs from now on.
    pub(crate) fn with_metrics(self) -> Self {
        let (counters, meter) = Counters::metered();
        Self { source: Arc::new(MeteredSource::new(self.source, &meter)), counters, ..self }
    }

    pub(crate) fn counters(&self) -> &Counters {
        &self.counters
    }

    pub(crate) fn budget(&self) -> &Budget {
        &self.budget
    }

    fn provide(&self, mut fetched: Fetched, ranges: &[Range<u64>]) -> Result<Fetched> {
        for (range, bytes) in ranges.iter().zip(self.source.read_ranges(ranges)?) {
            fetched.provide(range.start, bytes);
        }
        Ok(fetched)
    }

    /// Runs a step of the format until it has the bytes that it wants.
    pub(crate) fn attempt<T>(&self, step: impl Fn(&Fetched) -> Attempt<T>) -> Result<T> {
        self.attempt_to_keep(step).map(|(done, _)| done)
    }

    /// As [`File::attempt`], with the share of the memory budget that what was made takes as long as it is kept.
    fn attempt_to_keep<T>(&self, step: impl Fn(&Fetched) -> Attempt<T>) -> Result<(T, Share)> {
        self.attempt_from(self.fetched.clone(), step).map(|(done, share, _)| (done, share))
    }

    /// As [`File::attempt_to_keep`], from bytes that were fetched before; gives those that were fetched in the end.
    fn attempt_from<T>(&self, fetched: Fetched, step: impl Fn(&Fetched) -> Attempt<T>) -> Result<(T, Share, Fetched)> {
        let limit = self.budget.left();
        let mut fetched = fetched.with_memory_limit(limit);
        let mut fetched_bytes = 0u64;
        for _ in 0..MAX_ROUNDS {
            // What the last round made is gone.
            fetched.memory().reset(fetched_bytes);
            match step(&fetched) {
                Ok(done) => {
                    let kept = fetched.memory().used().saturating_sub(fetched_bytes);
                    return Ok((done, self.budget.share(kept, "metadata")?, fetched));
                }
                Err(Interrupt::Failed(error)) => return Err(error.into()),
                Err(Interrupt::Need(ranges)) => {
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

/// One cluster.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cluster {
    /// Counted through all groups.
    pub(crate) number: u64,
    pub(crate) first_entry: u64,
    pub(crate) entries: u64,
    group: usize,
    index: usize,
}

impl Cluster {
    pub(crate) fn entry_range(&self) -> Range<u64> {
        self.first_entry..self.first_entry + self.entries
    }
}

/// One ntuple's metadata and pages.
#[derive(Debug)]
pub(crate) struct PageSource {
    file: File,
    anchor: Anchor,
    descriptor: Descriptor,
    /// Each with what it takes of the memory budget.
    page_lists: Vec<OnceLock<(PageList, Share)>>,
    verify: bool,
    _metadata: [Share; 2],
}

impl PageSource {
    pub(crate) fn open(file: File, anchor: Anchor, verify: bool) -> Result<Self> {
        file.take_work(Metadata::of_anchor(&anchor))?;
        let (descriptor, records) = file.attempt_to_keep(|fetched| open::descriptor(fetched, &anchor))?;
        file.take_work(Metadata::of_page_lists(&descriptor))?;
        let metadata = [records, file.budget.share(schema_bytes(&descriptor), "the schema")?];
        let page_lists = descriptor.cluster_groups().iter().map(|_| OnceLock::new()).collect();
        let source = Self { file, anchor, descriptor, page_lists, verify, _metadata: metadata };
        // Nobody would ask for a group without entries; but its clusters may have some.
        for (index, group) in source.descriptor.cluster_groups().iter().enumerate() {
            if group.entries == 0 && group.clusters > 0 {
                source.page_list(index)?;
            }
        }
        Ok(source)
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    pub(crate) fn anchor(&self) -> &Anchor {
        &self.anchor
    }

    pub(crate) fn descriptor(&self) -> &Descriptor {
        &self.descriptor
    }

    fn page_list(&self, group: usize) -> Result<&PageList> {
        let (Some(slot), Some(group)) = (self.page_lists.get(group), self.descriptor.cluster_groups().get(group))
        else {
            return Err(Error::corrupt(format!("there is no cluster group {group}")));
        };
        if let Some((list, _)) = slot.get() {
            return Ok(list);
        }
        let list =
            self.file.attempt_to_keep(|fetched| open::page_list(fetched, &self.anchor, &self.descriptor, group))?;
        Ok(&slot.get_or_init(|| list).0)
    }

    /// XXH3 of what is different when the ntuple or the file around it is written anew: the file's header with its
    /// UUID, its size, the anchor, and the footer as it is stored. Page lists and pages are not read.
    pub(crate) fn identity(&self) -> Result<u64> {
        let (size, anchor) = (self.file.size(), &self.anchor);
        let footer_bytes = anchor.nbytes_footer.min(size.saturating_sub(anchor.seek_footer));
        let parts = |fetched: &Fetched| {
            Ok((fetched.get(0, FILE_HEADER_BYTES.min(size))?, fetched.get(anchor.seek_footer, footer_bytes)?))
        };
        let (head, footer) = self.file.attempt(parts)?;
        Ok(xxh3(&[&head[..], &size.to_le_bytes(), &anchor.write(), &footer[..]].concat()))
    }

    pub(crate) fn counters(&self) -> &Counters {
        &self.file.counters
    }

    /// The memory of a reading request.
    pub(crate) fn request(&self) -> Request {
        self.file.budget.request(self.file.size())
    }

    /// Whether page checksums are compared.
    pub(crate) fn verifies(&self) -> bool {
        self.verify
    }

    /// The clusters that hold entries of a range, in order, those without entries left out.
    pub(crate) fn clusters(&self, entries: Range<u64>) -> Result<Vec<Cluster>> {
        self.first_clusters(entries, usize::MAX)
    }

    /// The first clusters that hold entries of a range, at most so many. Page lists behind them are not read.
    pub(crate) fn first_clusters(&self, entries: Range<u64>, most: usize) -> Result<Vec<Cluster>> {
        let mut clusters = Vec::new();
        let groups = self.descriptor.cluster_groups();
        let first = groups.partition_point(|group| group.first_entry + group.entries <= entries.start);
        for (group, record) in groups.iter().enumerate().skip(first) {
            if record.first_entry >= entries.end || clusters.len() >= most {
                break;
            }
            // They follow each other, here and in the list of groups.
            let listed = self.page_list(group)?.clusters();
            let first = listed.partition_point(|cluster| cluster.first_entry + cluster.entries <= entries.start);
            let in_range = |(_, cluster): &(usize, &ClusterSummary)| cluster.first_entry < entries.end;
            let found = listed.iter().enumerate().skip(first).take_while(in_range).filter(|(_, it)| it.entries > 0);
            clusters.extend(found.take(most - clusters.len()).map(|(index, summary)| Cluster {
                number: record.first_cluster + index as u64,
                first_entry: summary.first_entry,
                entries: summary.entries,
                group,
                index,
            }));
        }
        Ok(clusters)
    }

    /// The clusters of one cluster group, those without entries too.
    pub(crate) fn group_clusters(&self, group: usize) -> Result<Vec<Cluster>> {
        let first = self.descriptor.cluster_groups().get(group).map_or(0, |record| record.first_cluster);
        let cluster = |(index, summary): (usize, &ClusterSummary)| Cluster {
            number: first + index as u64,
            first_entry: summary.first_entry,
            entries: summary.entries,
            group,
            index,
        };
        Ok(self.page_list(group)?.clusters().iter().enumerate().map(cluster).collect())
    }

    /// How many columns the page list has for a cluster: those that are older than it.
    pub(crate) fn listed_columns(&self, cluster: &Cluster) -> Result<usize> {
        Ok(self.page_list(cluster.group)?.columns(cluster.index))
    }

    /// The pages of a column in a cluster; `None` where the page list is older than the column.
    pub(crate) fn column_pages(&self, cluster: &Cluster, column: ColumnId) -> Result<Option<ColumnPages>> {
        let list = self.page_list(cluster.group)?;
        // As many pages as there can be: their number is known once they are there.
        let most = list.listed_bytes(cluster.index, column.index()) / MIN_LISTED_PAGE_BYTES;
        let _room = self.file.budget.share(most * PAGE_MEMORY, "the pages of a column")?;
        let group = self.descriptor.cluster_groups().get(cluster.group);
        let place = group.and_then(|group| group.page_list.locator.in_file().ok()).map_or(0, |(offset, _)| offset);
        Ok(list.pages(cluster.index, column.index()).map_err(|e| e.in_envelope(place))?)
    }

    /// Fetches sealed pages (with their checksums), all in one go.
    pub(crate) fn fetch(&self, pages: &[PageInfo]) -> Result<Vec<Bytes>> {
        let ranges = pages.iter().map(|page| self.page_range(page)).collect::<Result<Vec<_>>>()?;
        if !ranges.iter().any(|range| self.is_spread(range)) {
            return Ok(self.file.source.read_ranges(&ranges)?);
        }
        let max_key = self.anchor.max_key_size;
        let gather = |range: &Range<u64>| {
            self.file.attempt(|fetched| container::payload(fetched, range.start, range.end - range.start, max_key))
        };
        ranges.iter().map(gather).collect()
    }

    /// Fetches pages that are missing, all in one go.
    pub(crate) fn fetch_pages(&self, missing: &[Missing], memory: &Request) -> Result<Vec<Bytes>> {
        if missing.is_empty() {
            return Ok(Vec::new());
        }
        memory.take(missing.iter().map(|page| page.bytes).sum(), "sealed pages")?;
        self.fetch(&missing.iter().map(|page| page.info).collect::<Vec<_>>())
    }

    /// The bytes of a sealed page in the file, its checksum included.
    pub(crate) fn page_range(&self, page: &PageInfo) -> Result<Range<u64>> {
        let (offset, bytes) = page.locator.in_file()?;
        if bytes > MAX_PAGE_BYTES && bytes <= self.file.size() {
            return Err(Error::limit(format!("a page of {bytes} stored bytes, at most {MAX_PAGE_BYTES} are read")));
        }
        let checksum = if page.has_checksum { CHECKSUM_BYTES as u64 } else { 0 };
        match offset.checked_add(bytes).and_then(|end| end.checked_add(checksum)) {
            Some(end) if end <= self.file.size() => Ok(offset..end),
            _ => Err(Error::corrupt(format!(
                "{bytes} bytes at offset {offset} lie behind the end of the file ({} bytes)",
                self.file.size()
            ))),
        }
    }

    /// Whether a page is read by whoever decodes it, and not fetched ahead.
    pub(crate) fn is_near(&self, page: &PageInfo) -> bool {
        self.file.source.hints().is_near && self.page_range(page).is_ok_and(|range| !self.is_spread(&range))
    }

    /// Whether a page has to be put together from several keys.
    fn is_spread(&self, range: &Range<u64>) -> bool {
        let max_key = self.anchor.max_key_size;
        max_key > 0 && range.end - range.start > max_key
    }

    /// Reads bytes of the file into pieces that follow each other.
    pub(crate) fn read_into(&self, start: u64, pieces: &mut [&mut [u8]]) -> Result<()> {
        Ok(self.file.source.read_into(start, pieces)?)
    }

    /// Compares a page, as it is stored, with its checksum and with the digest in the page list, if that is wanted.
    pub(crate) fn compare(
        &self,
        page: &PageInfo,
        stored: &[u8],
        checksum: Option<&[u8; CHECKSUM_BYTES]>,
    ) -> Result<()> {
        if self.verify { compare(page, stored, checksum) } else { Ok(()) }
    }

    /// Checks and decompresses a page. `room` is used where there is something to decompress.
    pub(crate) fn unseal<'a>(
        &self,
        page: &PageInfo,
        encoding: &Encoding,
        sealed: &'a [u8],
        room: &'a mut Vec<u8>,
    ) -> Result<&'a [u8]> {
        let stored = checked(page, sealed, self.verify)?;
        let packed_bytes = packed_bytes(page, stored.len() as u64, encoding)?;
        if stored.len() as u64 == packed_bytes {
            return Ok(stored);
        }
        let packed = scratch::sized(room, packed_bytes)?;
        compression::decompress_while(stored, packed, pool::check)?;
        Ok(packed)
    }
}

/// Memory of the schema that is made of the fields that can be read.
fn schema_bytes(descriptor: &Descriptor) -> u64 {
    let mut paths: Vec<u64> = Vec::with_capacity(descriptor.fields().len());
    for field in descriptor.fields() {
        // Parents come before their children.
        let above = field.parent.and_then(|parent| paths.get(parent.index())).map_or(0, |path| path + 1);
        paths.push(above + field.record.name.len() as u64);
    }
    let mut bytes = 0u64;
    for (field, path) in descriptor.fields().iter().zip(&paths) {
        let record = &field.record;
        let source = record.source.and_then(|source| paths.get(source as usize)).copied().unwrap_or(0);
        let texts = [&record.name, &record.type_name, &record.type_alias, &record.description];
        let texts: u64 = texts.iter().map(|text| text.len() as u64).sum();
        bytes += FIELD_MEMORY + TEXT_COPIES * (texts + source) + PATH_COPIES * path;
    }
    bytes
}

/// Bytes of a page once it is decompressed, if `stored_bytes` can hold that much.
pub(crate) fn packed_bytes(page: &PageInfo, stored_bytes: u64, encoding: &Encoding) -> Result<u64> {
    let packed_bytes = match encoding.packed_bytes(page.elements.into()) {
        Some(bytes) if bytes <= MAX_PAGE_BYTES => bytes,
        _ => return Err(Error::limit(format!("a page of {} elements is over 1 GiB", page.elements))),
    };
    if stored_bytes > packed_bytes || packed_bytes / MAX_EXPANSION > stored_bytes {
        return Err(Error::corrupt(format!("{stored_bytes} stored bytes cannot hold a page of {packed_bytes}")));
    }
    Ok(packed_bytes)
}

/// The page without its checksum. Both that and the digest in the page list are compared if wanted.
pub(crate) fn checked<'a>(page: &PageInfo, sealed: &'a [u8], verify: bool) -> Result<&'a [u8]> {
    let (stored, checksum) = match page.has_checksum {
        true => match sealed.split_last_chunk::<CHECKSUM_BYTES>() {
            Some((stored, checksum)) => (stored, Some(checksum)),
            None => return Err(FormatError::corrupt("page without its checksum").into()),
        },
        false => (sealed, None),
    };
    if verify {
        compare(page, stored, checksum)?;
    }
    Ok(stored)
}

fn compare(page: &PageInfo, stored: &[u8], checksum: Option<&[u8; CHECKSUM_BYTES]>) -> Result<()> {
    let checksum = checksum.map(|bytes| Cursor::new(bytes, 0).u64_le()).transpose()?;
    let Some(expected) = checksum.or(page.digest) else { return Ok(()) };
    let computed = xxh3(stored);
    let hex = |it: u64| format!("{it:016x}");
    if computed != expected {
        let (expected, computed) = (hex(expected), hex(computed));
        return Err(Error::corrupt(format!("page checksum mismatch (stored {expected}, computed {computed})")));
    }
    if let Some(digest) = page.digest.filter(|&digest| digest != computed) {
        let (digest, computed) = (hex(digest), hex(computed));
        return Err(Error::corrupt(format!(
            "the page is whole, but it is another one than the page list means (XXH3 {computed}, not {digest}): it was misdirected, or overwritten later"
        )));
    }
    Ok(())
}
