//! Clusters of an ntuple as they are stored.

use std::fmt;
use std::ops::Range;

use tupelo_core::pool::{self, Ahead};
use tupelo_format::descriptor::ColumnId;
use tupelo_format::envelope::PageInfo;
use tupelo_pages::encode::{ListedCluster, ListedColumn, ReadPages, SealedPage};
use tupelo_pages::plan::{self, ColumnTable, PageId};
use tupelo_pages::source::{BlobRange, Cluster, Extents};
use tupelo_schema::schema::Field;

use super::{Ntuple, Sealed};
use crate::{Error, Result};

/// Columns may share pages, which a copy stores once for each. Pages that take more than this multiple of the bytes that
/// they are stored in are decoded.
const MAX_GROWTH: u64 = 16;
/// Bytes that are read together from storage that is read in place: they are still in the cache of a core when they are
/// written.
const PIECE_BYTES: u64 = 1 << 20;

/// A page of a cluster as the store has it that listed the cluster.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StoredPage {
    pub(crate) column: ColumnId,
    /// Number in the column.
    pub(crate) number: u32,
    pub(crate) info: PageInfo,
    pub(crate) range: BlobRange,
}

/// The pages of a cluster, piece by piece, in the order in which they are stored. Their checksums are compared.
pub(crate) struct SealedPages(Box<dyn Iterator<Item = Result<ReadPages>> + Send>);

impl fmt::Debug for SealedPages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SealedPages")
    }
}

impl Iterator for SealedPages {
    type Item = Result<ReadPages>;

    fn next(&mut self) -> Option<Result<ReadPages>> {
        self.0.next()
    }
}

/// Fetches pages of a cluster as they are stored. `from` is the ntuple in the store that has listed them, `ntuple` the one in
/// any store.
pub(crate) fn fetch(
    ntuple: &Ntuple,
    from: &Ntuple,
    cluster: &Cluster,
    pages: &[StoredPage],
) -> Result<Vec<SealedPage>> {
    pool::check()?;
    ntuple.in_any_store(&|it| {
        let store = it.source().store();
        let is_listed_here = std::ptr::eq(it.source(), from.source());
        let range = |page: &StoredPage| {
            if is_listed_here {
                return Ok(page.range);
            }
            // Another store of a mirror has the pages elsewhere.
            let listed = it.source().column_pages(cluster, page.column)?;
            let info = listed.as_ref().and_then(|listed| listed.pages.get(page.number as usize));
            let info = info.ok_or_else(|| Error::corrupt("the page lists have changed"))?;
            store.page_range(cluster.number, page.column.index() as u32, info)
        };
        let ranges: Vec<BlobRange> = pages.iter().map(range).collect::<Result<_>>()?;
        let sealed = pages.iter().zip(store.fetch(&ranges)?).map(|(page, bytes)| {
            let encoding = it.descriptor().column(page.column)?.encoding;
            let packed = encoding.and_then(|encoding| encoding.packed_bytes(page.info.elements.into()));
            SealedPage::of_stored(&page.info, bytes, packed).map_err(|e| page.name(it, cluster, e))
        });
        sealed.collect()
    })
}

impl StoredPage {
    #[cold]
    fn name(&self, ntuple: &Ntuple, cluster: &Cluster, error: Error) -> Error {
        let Self { column, number, info, .. } = self;
        let descriptor = ntuple.descriptor();
        let located = error.at_page(column.index() as u32, cluster.number, (*number).into());
        let Ok(listed) = descriptor.column(*column) else { return located };
        let name = listed.encoding.map_or("unknown", |encoding| encoding.column_type().name());
        let place = format!("column {column} ({name}), cluster {}, page {number} ({})", cluster.number, info.locator);
        located.within(place).in_field(&descriptor.path(listed.field))
    }
}

pub(super) fn sealed(ntuple: &Ntuple, fields: &[Field], entries: &Range<u64>) -> Result<Sealed> {
    ntuple.in_any_store(&|from| {
        let (end, listed) = listed(from, fields, entries)?;
        let Some(Listed { cluster, about, pages, missing, elements }) = listed else { return Ok(Sealed::none(end)) };
        let elements = (cluster.number, elements);
        let cluster = Some((about, read(ntuple.clone(), from.clone(), cluster, pages)));
        Ok(Sealed { end, cluster, missing, elements })
    })
}

/// A cluster whose pages can be copied.
struct Listed {
    cluster: Cluster,
    about: ListedCluster,
    /// Each with the places of its column and its own.
    pages: Vec<((usize, usize), StoredPage)>,
    /// As those of [`Sealed`].
    missing: Vec<(usize, u64)>,
    /// Of each column.
    elements: Vec<(ColumnId, Range<u64>)>,
}

/// The end of the first cluster of the entries, and its pages if they can stay as they are.
fn listed(ntuple: &Ntuple, fields: &[Field], entries: &Range<u64>) -> Result<(u64, Option<Listed>)> {
    let source = ntuple.source();
    let clusters = source.first_clusters(entries.clone(), 1)?;
    let Some(cluster) = clusters.into_iter().next() else { return Ok((entries.end, None)) };
    let own = cluster.entry_range();
    let end = own.end.min(entries.end);
    if own.start != entries.start || own.end > entries.end {
        return Ok((end, None));
    }
    let memory = source.request_memory();
    let mut table = ColumnTable::new(source, &memory);
    let (mut columns, mut pages, mut missing, mut elements) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (number, field) in fields.iter().enumerate().filter(|(_, field)| field.projected_from.is_none()) {
        let own = plan::columns(field);
        let Some(without) = table.missing_entries(&own, &cluster)? else { return Ok((end, None)) };
        if without > 0 {
            missing.push((number, without));
        }
        if without == cluster.entries {
            continue;
        }
        for column in own {
            let Some((index, ranges)) = table.stored(column.field, column.k, &cluster)? else { return Ok((end, None)) };
            let stored = table.column(PageId { column: index, page: 0 });
            if let Some(first) = stored.info.first_element
                && !source.descriptor().column(stored.id)?.is_deferred()
            {
                elements.push((stored.id, first..first.saturating_add(stored.info.elements())));
            }
            let place = columns.len();
            let page = |(number, (info, range)): (usize, (&PageInfo, BlobRange))| {
                ((place, number), StoredPage { column: stored.id, number: number as u32, info: *info, range })
            };
            pages.extend(stored.info.pages.iter().zip(ranges).enumerate().map(page));
            columns.push(ListedColumn {
                encoding: stored.encoding,
                compression: stored.info.compression,
                pages: stored.info.pages.iter().map(Into::into).collect(),
            });
        }
    }
    let bytes = pages.iter().map(|(_, page)| page.range.bytes()).fold(0, u64::saturating_add);
    let mut extents = Extents::default();
    pages.iter().for_each(|(_, page)| extents.add(&page.range));
    let is_in_place = pages.iter().all(|(_, page)| source.store().is_read_in_place(&page.range));
    let fits = is_in_place || bytes <= source.session().budget().left();
    if !fits || bytes > extents.bytes().saturating_mul(MAX_GROWTH) {
        return Ok((end, None));
    }
    let about = ListedCluster { entries: cluster.entries, columns };
    Ok((end, Some(Listed { cluster, about, pages, missing, elements })))
}

/// Reads the pages of a cluster. Those of storage that is not read in place are fetched together.
fn read(ntuple: Ntuple, from: Ntuple, cluster: Cluster, mut pages: Vec<((usize, usize), StoredPage)>) -> SealedPages {
    pages.sort_by_key(|(_, page)| page.range);
    let store = from.source().store();
    let is_in_place = pages.iter().all(|(_, page)| store.is_read_in_place(&page.range));
    let piece_bytes = if is_in_place { PIECE_BYTES } else { u64::MAX };
    let mut pieces: Vec<Vec<((usize, usize), StoredPage)>> = Vec::new();
    let mut left = 0;
    for page in pages {
        let bytes = page.1.range.bytes();
        match pieces.last_mut().filter(|_| bytes <= left) {
            Some(piece) => piece.push(page),
            None => {
                pieces.push(vec![page]);
                left = piece_bytes;
            }
        }
        left = left.saturating_sub(bytes);
    }
    let fetch = move |piece: Vec<((usize, usize), StoredPage)>| {
        let (places, pages): (Vec<(usize, usize)>, Vec<StoredPage>) = piece.into_iter().unzip();
        let fetched = fetch(&ntuple, &from, &cluster, &pages).map_err(|e| ntuple.context(e))?;
        Ok(places.into_iter().zip(fetched).collect())
    };
    SealedPages(Box::new(Ahead::new(pieces.into_iter(), fetch)))
}
