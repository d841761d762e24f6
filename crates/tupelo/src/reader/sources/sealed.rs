//! Clusters of an ntuple as they are stored.

use std::ops::Range;

use super::{Ntuple, Sealed};
use crate::Result;
use crate::encode::{SealedCluster, SealedColumn, SealedPage};
use crate::plan::{self, ColumnTable, PageId};
use crate::schema::Field;
use crate::source::{BlobRange, Extents};

/// Columns may share pages, which a copy stores once for each. Pages that take more than this multiple of the bytes that
/// they are stored in are decoded.
const MAX_GROWTH: u64 = 16;

pub(super) fn sealed(ntuple: &Ntuple, fields: &[Field], entries: &Range<u64>) -> Result<Sealed> {
    let source = ntuple.source();
    let clusters = source.first_clusters(entries.clone(), 1)?;
    let Some(cluster) = clusters.first() else { return Ok(Sealed::none(entries.end)) };
    let own = cluster.entry_range();
    let none = Ok(Sealed::none(own.end.min(entries.end)));
    if own.start != entries.start || own.end > entries.end {
        return none;
    }
    let memory = source.request_memory();
    let mut table = ColumnTable::new(source, &memory);
    let (mut columns, mut ranges) = (Vec::new(), Vec::new());
    for column in fields.iter().filter(|field| field.projected_from.is_none()).flat_map(plan::columns) {
        let Some((index, pages)) = table.stored(column.field, column.k, cluster)? else { return none };
        columns.push((column.field, index));
        ranges.extend(pages);
    }
    let bytes = ranges.iter().map(BlobRange::bytes).fold(0, u64::saturating_add);
    let mut extents = Extents::default();
    ranges.iter().for_each(|range| extents.add(range));
    if bytes > source.session().budget().left() || bytes > extents.bytes().saturating_mul(MAX_GROWTH) {
        return none;
    }
    let mut fetched = source.store().fetch(&ranges)?.into_iter();
    let sealed = columns.into_iter().map(|(field, index)| {
        let column = table.column(PageId { column: index, page: 0 });
        let pages = (0..).zip(&column.info.pages).zip(&mut fetched).map(|((page, listed), bytes)| {
            SealedPage::of_stored(listed, bytes).map_err(|error| table.named(field, column.within(page, error)))
        });
        let pages = pages.collect::<Result<_>>()?;
        Ok(SealedColumn { encoding: column.encoding, compression: column.info.compression, pages })
    });
    let cluster = SealedCluster { entries: cluster.entries, columns: sealed.collect::<Result<_>>()? };
    Ok(Sealed { end: own.end, cluster: Some(cluster) })
}
