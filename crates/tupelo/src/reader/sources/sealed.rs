//! Clusters of an ntuple as they are stored.

use std::ops::Range;

use super::{Ntuple, Sealed};
use crate::encode::{SealedCluster, SealedColumn, SealedPage};
use crate::plan::{self, ColumnTable};
use crate::schema::Field;
use crate::source::{BlobRange, Extents, checked};
use crate::{Error, Result};

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
        let Some((stored, pages)) = table.stored(column.field, column.k, cluster)? else { return none };
        let path = column.field.id.map_or_else(|| column.field.name.clone(), |id| source.descriptor().path(id));
        columns.push((path, stored.encoding, stored.info.clone()));
        ranges.extend(pages);
    }
    let bytes = ranges.iter().map(BlobRange::bytes).fold(0, u64::saturating_add);
    let mut extents = Extents::default();
    ranges.iter().for_each(|range| extents.add(range));
    if bytes > source.session().budget().left() || bytes > extents.bytes().saturating_mul(MAX_GROWTH) {
        return none;
    }
    let mut fetched = source.store().fetch(&ranges)?.into_iter();
    let mut sealed = Vec::with_capacity(columns.len());
    for (path, encoding, info) in columns {
        let mut pages = Vec::with_capacity(info.pages.len());
        for (page, (listed, bytes)) in info.pages.iter().zip(&mut fetched).enumerate() {
            let content = checked(listed, &bytes, true).map_err(|error: Error| {
                let column = encoding.column_type().name();
                error.within(format!("{column} column, cluster {}, page {page}", cluster.number)).in_field(&path)
            })?;
            let digest = match content.len() < bytes.len() {
                true => bytes.last_chunk().copied().map(u64::from_le_bytes),
                false => None,
            };
            pages.push(SealedPage { elements: listed.elements, bytes, digest });
        }
        sealed.push(SealedColumn { encoding, compression: info.compression, pages });
    }
    let cluster = SealedCluster { entries: cluster.entries, columns: sealed };
    Ok(Sealed { end: own.end, cluster: Some(cluster) })
}
