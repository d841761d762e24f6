//! Copies whole ntuples with their pages as they are stored: between files and object stores, and from one mapping to
//! another. Pages are compared with their checksums, and neither decompressed nor decoded.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use tupelo_core::error::Remedy;
use tupelo_format::compression::Compression;
use tupelo_format::container::AnchorLinks;
use tupelo_format::descriptor::ColumnId;
use tupelo_format::envelope::{ColumnPages, EnvelopeType, PageInfo};
use tupelo_format::locator::{EnvelopeLink, Locator};
use tupelo_pages::sink::{PageBytes, PageSink, name_of};
use tupelo_pages::source::{BlobRange, Cluster, Extents, Metadata};

use super::committer::{FORMAT_VERSION, put_envelope};
use super::groups::{self, Listed};
use super::{WRITE_BYTES, WriteProgress};
use crate::reader::{Ntuple, StoredPage, fetch};
use crate::{Error, Result};

/// Pages of an ntuple may share their bytes within a cluster. More bytes than this multiple of what they are stored in are not
/// written; with the second one where columns cannot share pages.
const MAX_GROWTH: u64 = 2;
const MAX_GROWTH_UNSHARED: u64 = 16;

/// Copies one ntuple to a sink.
pub(super) struct Transfer<'a> {
    sink: Arc<dyn PageSink>,
    progress: &'a mut dyn FnMut(u64) -> ControlFlow<()>,
    done: WriteProgress,
    /// Where the pages that were copied are stored, and how many times as many bytes are written at most.
    extents: Extents,
    max_growth: u64,
    /// Whether the pages stay where they are.
    keeps_pages: bool,
}

impl<'a> Transfer<'a> {
    pub(super) fn new(sink: Arc<dyn PageSink>, progress: &'a mut dyn FnMut(u64) -> ControlFlow<()>) -> Self {
        let (done, extents) = (WriteProgress::default(), Extents::default());
        Self { sink, progress, done, extents, max_growth: 0, keeps_pages: false }
    }

    /// The same with pages that stay where they are, for an ntuple of the file that is written.
    pub(super) fn keeping_pages(self) -> Self {
        Self { keeps_pages: true, ..self }
    }

    /// Copies an ntuple with its attribute sets under another path; `None` if the caller ended the copy.
    pub(super) fn run(mut self, ntuple: &Ntuple, path: &str) -> Result<Option<WriteProgress>> {
        if let Some(warning) = ntuple.warnings().first() {
            return Err(Error::unsupported(format!(
                "cannot copy pages from an ntuple with unsupported features: {warning}"
            )));
        }
        self.max_growth = if self.sink.shares_pages() { MAX_GROWTH } else { MAX_GROWTH_UNSHARED };
        self.sink.begin(path, ntuple.description(), None)?;
        let name = name_of(path);
        let Some(links) = self.envelopes(ntuple, name)? else { return Ok(None) };
        self.sink.publish(path, ntuple.description(), &links)?;
        self.sink.end(path);
        self.done.entries = ntuple.entries();
        self.done.clusters = ntuple.clusters();
        Ok(Some(self.done))
    }

    /// Copies an ntuple or an attribute set.
    fn envelopes(&mut self, ntuple: &Ntuple, name: &str) -> Result<Option<AnchorLinks>> {
        let (mut header, mut footer) = ntuple.in_any_store(&|it| it.source().envelopes())?;
        let (header_link, header_checksum) = if header.name == name {
            let header = |it: &Ntuple| {
                let (store, checksum) = (it.source().store(), it.descriptor().header_checksum());
                let link = store.anchor().header;
                Ok((store.envelopes(&[(EnvelopeType::Header, link)])?, link, checksum))
            };
            let (stored, link, checksum) = ntuple.in_any_store(&header)?;
            let stored = stored.first().map(|bytes| &bytes[..]).unwrap_or_default();
            let locator = self.sink.put_envelope(EnvelopeType::Header, stored)?;
            (EnvelopeLink { locator, ..link }, checksum)
        } else {
            name.clone_into(&mut header.name);
            let (envelope, checksum) = header.write();
            (self.put(EnvelopeType::Header, envelope)?, checksum)
        };
        footer.header_checksum = header_checksum;
        for (group, record) in footer.cluster_groups.iter_mut().enumerate() {
            let listed = |it: &Ntuple| {
                let summaries = it.source().page_list(group)?.clusters().to_vec();
                Ok((summaries, it.source().group_clusters(group)?))
            };
            let (summaries, found) = ntuple.in_any_store(&listed)?;
            let mut clusters: Vec<Listed> = Vec::with_capacity(summaries.len());
            for (summary, cluster) in summaries.into_iter().zip(found) {
                let Some(columns) = self.cluster(ntuple, &cluster)? else { return Ok(None) };
                clusters.push((summary, columns));
            }
            record.page_list = self.put(EnvelopeType::PageList, groups::write(header_checksum, &clusters))?;
        }
        for (record, set) in footer.attribute_sets.iter_mut().zip(ntuple.descriptor().attribute_sets()) {
            let own = Arc::clone(&self.sink).attribute_set();
            let outer = std::mem::replace(&mut self.sink, own);
            let copied = ntuple.open_attribute_set(set).and_then(|set| self.envelopes(&set, set.name()));
            self.sink = outer;
            let Some(links) = copied.map_err(|e| e.within(format!("attribute set '{}'", set.name)))? else {
                return Ok(None);
            };
            (record.anchor, record.anchor_length) = self.sink.put_anchor(&set.name, &links)?;
        }
        let footer = self.put(EnvelopeType::Footer, footer.write())?;
        // The footer contains what older versions lack.
        let version = ntuple.source().store().anchor().version.max(FORMAT_VERSION);
        Ok(Some(AnchorLinks { version, header: header_link, footer }))
    }

    fn put(&self, kind: EnvelopeType, envelope: Vec<u8>) -> Result<EnvelopeLink> {
        put_envelope(&*self.sink, kind, Compression::DEFAULT, envelope)
    }

    /// Copies the pages of a cluster; returns where they are stored then, and `None` if the caller ended the copy.
    fn cluster(&mut self, ntuple: &Ntuple, cluster: &Cluster) -> Result<Option<Vec<ColumnPages>>> {
        if self.keeps_pages {
            return kept_columns(ntuple, cluster).map(Some);
        }
        let shares_pages = self.sink.shares_pages();
        let mut known: HashMap<(BlobRange, Option<u32>), usize> = HashMap::new();
        // The listed pages, by their place among those to store.
        let (mut pages, mut listed): (Vec<StoredPage>, Vec<usize>) = Default::default();
        let mut columns = Vec::new();
        let (from, listed_columns) = ntuple.in_any_store(&|it| Ok((it.clone(), stored_columns(it, cluster)?)))?;
        for (column, (own, ranges)) in (0..).zip(listed_columns) {
            for ((number, info), range) in (0..).zip(&own.pages).zip(ranges) {
                let place = known.entry((range, (!shares_pages).then_some(column))).or_insert_with(|| {
                    pages.push(StoredPage { column: ColumnId::from(column), number, info: *info, range });
                    pages.len() - 1
                });
                listed.push(*place);
            }
            self.done.unpacked_bytes += unpacked_bytes(ntuple.source(), column, &own);
            columns.push(own);
        }
        let mut stored: Vec<(Locator, Option<u64>)> = Vec::with_capacity(pages.len());
        let mut rest = pages.as_slice();
        while !rest.is_empty() {
            let mut bytes = 0;
            let fits = rest.iter().take_while(|page| {
                bytes += page.range.bytes();
                self.sink.stores_whole_clusters() || bytes <= WRITE_BYTES
            });
            let (batch, others) = rest.split_at(fits.count().max(1));
            stored.extend(self.pages(ntuple, &from, cluster, batch)?);
            rest = others;
            if (self.progress)(self.done.stored_bytes).is_break() {
                return Ok(None);
            }
        }
        for (info, place) in columns.iter_mut().flat_map(|own| &mut own.pages).zip(listed) {
            let (locator, digest) = stored.get(place).ok_or_else(|| Error::corrupt("a page was not copied"))?;
            (info.locator, info.digest) = (*locator, info.digest.or(*digest));
        }
        Ok(Some(columns))
    }

    /// Copies pages of a cluster, which was listed in the store of `from`; gives their locators and digests.
    fn pages(
        &mut self,
        ntuple: &Ntuple,
        from: &Ntuple,
        cluster: &Cluster,
        pages: &[StoredPage],
    ) -> Result<Vec<(Locator, Option<u64>)>> {
        let bytes: u64 = pages.iter().map(|page| page.range.bytes()).sum();
        let left = ntuple.source().session().budget().left();
        if bytes > left {
            let what = format!("cluster of {bytes} stored bytes exceeds the {left} bytes of memory left");
            return Err(Error::limit(what).with_remedy(Remedy::MemoryBudget));
        }
        self.done.stored_bytes += bytes;
        pages.iter().for_each(|page| self.extents.add(&page.range));
        if self.done.stored_bytes > self.extents.bytes().saturating_mul(self.max_growth) {
            return Err(Error::corrupt("its pages overlap: their total size exceeds the stored bytes"));
        }
        let fetched = fetch(ntuple, from, cluster, pages)?;
        let column = |page: &StoredPage| page.column.index() as u32;
        let sealed: Vec<PageBytes<'_>> =
            pages.iter().zip(&fetched).map(|(page, fetched)| fetched.as_stored(column(page))).collect();
        let digests = fetched.iter().map(|page| page.digest);
        Ok(self.sink.put_pages(cluster.number, &sealed)?.into_iter().zip(digests).collect())
    }
}

/// The columns of a cluster whose pages stay where they are. The new anchor allows longer blobs, so that pages that are
/// split over several blobs could not be put together.
fn kept_columns(ntuple: &Ntuple, cluster: &Cluster) -> Result<Vec<ColumnPages>> {
    let max_bytes = ntuple.source().store().max_blob_bytes();
    let columns = stored_columns(ntuple, cluster)?;
    let is_split = |range: &BlobRange| max_bytes > 0 && range.bytes() > max_bytes;
    if columns.iter().any(|(_, ranges)| ranges.iter().any(is_split)) {
        return Err(Error::unsupported(format!("pages are split over several blobs of {max_bytes} bytes")));
    }
    Ok(columns.into_iter().map(|(own, _)| own).collect())
}

/// The columns of a cluster, each with the stored bytes of its pages.
fn stored_columns(ntuple: &Ntuple, cluster: &Cluster) -> Result<Vec<(ColumnPages, Vec<BlobRange>)>> {
    let source = ntuple.source();
    let mut columns = Vec::new();
    for column in 0..source.listed_columns(cluster)? as u32 {
        let Some(pages) = source.column_pages(cluster, ColumnId::from(column))? else { continue };
        let range = |info| source.store().page_range(cluster.number, column, info);
        let ranges = pages.pages.iter().map(range).collect::<Result<_>>()?;
        columns.push((pages, ranges));
    }
    Ok(columns)
}

/// Bytes of the pages of a column before compression.
fn unpacked_bytes(source: &Metadata, column: u32, pages: &ColumnPages) -> u64 {
    let encoding = source.descriptor().column(ColumnId::from(column)).ok().and_then(|column| column.encoding);
    let packed = |page: &PageInfo| encoding.and_then(|encoding| encoding.packed_bytes(page.elements.into()));
    pages.pages.iter().filter_map(packed).fold(0, u64::saturating_add)
}
