//! The metadata of one ntuple: its descriptor, and its page lists as they are needed.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use tupelo_format::descriptor::{AttributeSet, ColumnId, Descriptor};
use tupelo_format::envelope::{ClusterSummary, ColumnPages, EnvelopeType, Footer, Header, PageList};
use tupelo_format::open;

use super::memory::Recent;
use super::work::MetadataBytes;
use super::{KeptPages, PageStore, RequestMemory, RequestPages, Reservation, Session, size_limit};
use crate::{Error, ErrorKind, Result};

/// Memory of a field in the schema, in its copy that a reading request makes and in the Arrow schemas of both, names
/// not counted, in bytes.
const FIELD_MEMORY: u64 = 4096;
/// Copies of a field's texts in these.
const TEXT_COPIES: u64 = 6;
/// Copies of a field's path: for a projected field and while fields are chosen by pattern.
const PATH_COPIES: u64 = 2;
/// Memory of one page in a list of pages, in bytes: place, start, and what a reading request notes of it.
pub const PAGE_MEMORY: u64 = 232;
/// The shortest description of a page in a page list, in bytes.
const MIN_LISTED_PAGE_BYTES: u64 = 8;
/// Page lists that are fetched together, in stored bytes.
const LIST_BATCH_BYTES: u64 = 8 << 20;
/// Page lists are kept until they take more than this part of the memory budget.
const LIST_BUDGET_PART: u64 = 4;

/// One cluster.
#[derive(Debug, Clone, Copy)]
pub struct Cluster {
    /// Counted through all groups.
    pub number: u64,
    /// Number of its first entry.
    pub first_entry: u64,
    /// Number of entries.
    pub entries: u64,
    group: usize,
    index: usize,
}

impl Cluster {
    #[cfg(test)]
    pub(crate) fn for_tests(number: u64, first_entry: u64, entries: u64) -> Self {
        Self { number, first_entry, entries, group: 0, index: 0 }
    }

    /// Its entries.
    pub fn entry_range(&self) -> Range<u64> {
        self.first_entry..self.first_entry + self.entries
    }
}

/// One ntuple's metadata, and where it is stored.
#[derive(Debug)]
pub struct Metadata {
    session: Session,
    store: Box<dyn PageStore>,
    descriptor: Descriptor,
    /// By cluster group.
    page_lists: Mutex<Recent<usize, CachedList>>,
    kept: KeptPages,
    verifies: bool,
    _reserved: [Reservation; 2],
}

/// A page list, and the memory that it takes.
#[derive(Debug)]
struct CachedList {
    list: Arc<PageList>,
    _reserved: Reservation,
}

impl Metadata {
    /// Reads header and footer of an ntuple, and checks them unless `verifies` is false.
    pub fn open(session: Session, store: Box<dyn PageStore>, verifies: bool) -> Result<Self> {
        let links = store.anchor();
        // The store checks that the lengths are possible.
        let stored = header_and_footer(&*store)?;
        session.take_work(MetadataBytes::of_envelopes([&links.header, &links.footer]))?;
        let (descriptor, records) = session.parse(|memory| {
            open::descriptor(stored.each_ref().map(|bytes| &bytes[..]), links, size_limit(store.size()), memory)
        })?;
        let page_lists = descriptor.cluster_groups().iter().map(|group| &group.page_list);
        session.take_work(MetadataBytes::of_envelopes(page_lists))?;
        let reserved = [records, session.budget().reserve(schema_bytes(&descriptor), "the schema")?];
        let kept = KeptPages::new(session.budget());
        let metadata =
            Self { session, store, descriptor, page_lists: Mutex::default(), kept, verifies, _reserved: reserved };
        // No entry range leads to a group without entries; but its clusters may have some.
        for (index, group) in metadata.descriptor.cluster_groups().iter().enumerate() {
            if group.entries == 0 && group.clusters > 0 {
                metadata.page_list(index)?;
            }
        }
        Ok(metadata)
    }

    /// The state shared with the other ntuples of the file.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Opens a linked attribute set.
    pub fn attribute_set(&self, set: &AttributeSet) -> Result<Self> {
        let store = self.store.attribute_set(set)?;
        if store.anchor() == self.store.anchor() {
            return Err(Error::corrupt("it is linked to the anchor of the ntuple itself"));
        }
        Self::open(self.session.clone(), store, self.verifies)
    }

    /// Header and footer as they are stored.
    pub fn envelopes(&self) -> Result<(Header, Footer)> {
        let stored = header_and_footer(&*self.store)?;
        let stored = stored.each_ref().map(|bytes| &bytes[..]);
        let parsed = self.session.parse(|memory| open::envelopes(stored, self.store.anchor(), memory));
        parsed.map(|((header, _, footer), _)| (header, footer))
    }

    /// What header and footer say.
    pub fn descriptor(&self) -> &Descriptor {
        &self.descriptor
    }

    /// The store of the ntuple.
    pub fn store(&self) -> &dyn PageStore {
        &*self.store
    }

    /// The memory of a reading request.
    pub fn request_memory(&self) -> RequestMemory {
        self.session.budget().request(size_limit(self.store.size()))
    }

    /// The decompressed pages that are kept for later requests, if the request uses them.
    pub(crate) fn kept<'k>(&'k self, request: &'k RequestMemory) -> Option<RequestPages<'k>> {
        self.kept.of(request.keep())
    }

    /// Whether page checksums are compared.
    pub(crate) fn verifies(&self) -> bool {
        self.verifies
    }

    fn page_lists(&self) -> std::sync::MutexGuard<'_, Recent<usize, CachedList>> {
        self.page_lists.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The page list of a cluster group.
    pub fn page_list(&self, group: usize) -> Result<Arc<PageList>> {
        if let Some(list) = self.known_page_list(group) {
            return Ok(list);
        }
        match self.read_page_lists(&[group]) {
            // Other lists may have taken the memory.
            Err(error) if error.kind() == ErrorKind::Limit && !self.page_lists().is_empty() => {
                *self.page_lists() = Recent::default();
                self.read_page_lists(&[group])?;
            }
            read => read?,
        }
        let read = self.known_page_list(group);
        read.ok_or_else(|| Error::corrupt(format!("cluster group {group} does not exist")))
    }

    fn known_page_list(&self, group: usize) -> Option<Arc<PageList>> {
        self.page_lists().get(&group).map(|cached| Arc::clone(&cached.list))
    }

    /// Reads page lists with one vector read, and keeps them.
    fn read_page_lists(&self, groups: &[usize]) -> Result<()> {
        let records = self.descriptor.cluster_groups();
        let wanted: Vec<_> = groups.iter().filter_map(|&group| Some((group, records.get(group)?))).collect();
        let links: Vec<_> = wanted.iter().map(|(_, record)| (EnvelopeType::PageList, record.page_list)).collect();
        let stored = self.store.envelopes(&links)?;
        for ((group, record), stored) in wanted.into_iter().zip(stored) {
            let read = self.session.parse(|memory| open::page_list(&stored, &self.descriptor, record, memory));
            // A damaged list of several is an error only for those who read its entries.
            let (list, reserved) = match read {
                Err(_) if groups.len() > 1 => continue,
                read => read?,
            };
            let max_bytes = self.session.budget().limit_bytes() / LIST_BUDGET_PART;
            let bytes = reserved.bytes();
            let cached = CachedList { list: Arc::new(list), _reserved: reserved };
            self.page_lists().insert(group, cached, bytes, max_bytes);
        }
        Ok(())
    }

    /// Reads the page lists of several groups with few requests, if possible: a list that fails is read again
    /// separately when it is needed.
    fn prefetch_page_lists(&self, groups: Range<usize>) {
        let records = self.descriptor.cluster_groups();
        let missing: Vec<usize> = {
            let lists = self.page_lists();
            groups.filter(|group| !lists.contains(group)).collect()
        };
        let stored = |group: usize| records.get(group).map_or(0, |record| record.page_list.locator.stored_bytes());
        let (mut batch, mut bytes) = (Vec::new(), 0u64);
        let max_bytes = LIST_BATCH_BYTES.min(self.session.budget().left() / LIST_BUDGET_PART);
        for group in missing {
            bytes = bytes.saturating_add(stored(group));
            if bytes > max_bytes {
                break;
            }
            batch.push(group);
        }
        if batch.len() > 1 {
            let _tried = self.read_page_lists(&batch);
        }
    }

    /// The clusters that hold entries of a range, in order, those without entries left out.
    pub fn clusters(&self, entries: Range<u64>) -> Result<Vec<Cluster>> {
        self.first_clusters(entries, usize::MAX)
    }

    /// The first clusters that hold entries of a range, at most `most`. Page lists after them are not read.
    pub fn first_clusters(&self, entries: Range<u64>, most: usize) -> Result<Vec<Cluster>> {
        let mut clusters = Vec::new();
        let groups = self.descriptor.cluster_groups();
        let first = groups.partition_point(|group| group.first_entry + group.entries <= entries.start);
        let last = groups.partition_point(|group| group.first_entry < entries.end);
        for (group, record) in groups.iter().enumerate().take(last).skip(first) {
            if clusters.len() >= most {
                break;
            }
            if most == usize::MAX && !self.page_lists().contains(&group) {
                self.prefetch_page_lists(group..last);
            }
            // They follow each other, here and in the list of groups.
            let list = self.page_list(group)?;
            let listed = list.clusters();
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
    pub fn group_clusters(&self, group: usize) -> Result<Vec<Cluster>> {
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
    pub fn listed_columns(&self, cluster: &Cluster) -> Result<usize> {
        Ok(self.page_list(cluster.group)?.columns(cluster.index))
    }

    /// The pages of a column in a cluster; `None` where the page list is older than the column.
    pub fn column_pages(&self, cluster: &Cluster, column: ColumnId) -> Result<Option<ColumnPages>> {
        let list = self.page_list(cluster.group)?;
        // As many pages as there can be: their number is known once they are parsed.
        let most = list.listed_bytes(cluster.index, column.index()) / MIN_LISTED_PAGE_BYTES;
        let _reserved = self.session.budget().reserve(most * PAGE_MEMORY, "the pages of a column")?;
        let group = self.descriptor.cluster_groups().get(cluster.group);
        let place = group.map_or(0, |group| group.page_list.locator.offset());
        Ok(list.pages(cluster.index, column.index()).map_err(|e| e.in_envelope(place))?)
    }
}

/// The stored bytes of header and footer, fetched together.
fn header_and_footer(store: &dyn PageStore) -> Result<[Bytes; 2]> {
    let links = store.anchor();
    let envelopes = [(EnvelopeType::Header, links.header), (EnvelopeType::Footer, links.footer)];
    let fetched = <[Bytes; 2]>::try_from(store.envelopes(&envelopes)?);
    fetched.map_err(|_| Error::corrupt("the store returned fewer envelopes than were requested"))
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
