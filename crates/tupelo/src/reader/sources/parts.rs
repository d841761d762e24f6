//! Decoding entries of an ntuple: at once, or large reads of nested fields from servers in parts of small clusters. All
//! levels of a part are fetched together, so that requests are few.

use std::ops::Range;

use arrow_array::{Array, ArrayRef, make_array};
use arrow_data::ArrayData;
use arrow_schema::DataType;
use tupelo_core::pool;
use tupelo_pages::decode::{self, ValueBuffer};
use tupelo_pages::plan::{self, ColumnTable, EntrySet, ReadPlan};
use tupelo_pages::source::Cluster;
use tupelo_schema::schema::Field;

use super::{DecodeOptions, EntrySource, Ntuple};
use crate::{Error, ErrorKind, Result};

/// A part takes about this many bytes in memory.
const PART_BYTES: u64 = 64 << 20;
/// No part takes more, or nothing is read in parts.
const MAX_PART_BYTES: u64 = 2 * PART_BYTES;
/// Parts that are read at the same time.
const PARTS_AT_ONCE: usize = 4;
/// Fields by which a read is judged to need a server.
const SAMPLED_FIELDS: usize = 8;

/// The values of fields, one array per field.
pub(super) fn decode(
    ntuple: &Ntuple,
    fields: &[Field],
    entries: &EntrySet,
    options: DecodeOptions<'_>,
) -> Result<Vec<ArrayRef>> {
    // What has only a share of the memory is a part itself.
    let all = entries.as_range().filter(|_| options.shares.is_none() && !pool::is_in_pool());
    if let Some(all) = all
        && let Some(arrays) = decode_in_parts(ntuple, fields, all, options)?
    {
        return Ok(arrays);
    }
    decode_at_once(ntuple, fields, entries, options)
}

fn decode_at_once(
    ntuple: &Ntuple,
    fields: &[Field],
    entries: &EntrySet,
    options: DecodeOptions<'_>,
) -> Result<Vec<ArrayRef>> {
    let source = ntuple.source();
    let memory = source.request_memory().shared(options.shares).keeping(options.keep);
    let segments = plan::segments(&source.clusters(entries.span())?, entries);
    let values = decode::ValueOptions { compressed: ntuple.is_compressed(), binary_strings: options.binary_strings };
    source.session().counters().elapsed(|| decode::decode(source, &memory, fields, &segments, values))
}

/// The values of a range, read part by part, several at once. `None` where that is not possible or useless, or where a
/// part takes much memory: such clusters have long runs of pages, which need no parts.
fn decode_in_parts(
    ntuple: &Ntuple,
    fields: &[Field],
    entries: Range<u64>,
    options: DecodeOptions<'_>,
) -> Result<Option<Vec<ArrayRef>>> {
    if !is_read_in_parts(ntuple, fields, &entries)? {
        return Ok(None);
    }
    let parts = parts(ntuple, fields, &entries)?;
    if parts.len() < 2 {
        return Ok(None);
    }
    let options = DecodeOptions { shares: Some(PARTS_AT_ONCE as u64), ..options };
    let decode = |part: Range<u64>| decode_at_once(ntuple, fields, &part.into(), options);
    let len = usize::try_from(entries.end - entries.start).unwrap_or(usize::MAX);
    let (mut all, mut is_same): (Option<Concatenation>, _) = (None, true);
    let read = pool::each_waiting(parts, PARTS_AT_ONCE, decode, |arrays| {
        let all = match &mut all {
            Some(all) => all,
            None => all.insert(Concatenation::new(fields, &arrays, len)?),
        };
        // Strings that are not UTF-8 in some part are bytes in all of them.
        is_same &= all.has_types_of(&arrays);
        if is_same { all.push(arrays) } else { Ok(()) }
    });
    match read {
        // A part may be much larger than was estimated by the first clusters.
        Err(error) if error.kind() == ErrorKind::Limit => Ok(None),
        Err(error) => Err(error),
        Ok(()) => all.filter(|_| is_same).map(Concatenation::finish).transpose(),
    }
}

/// Whether a range is best read in parts of whole clusters, judged by the first one. It is from a server, where the offsets
/// of one level decide which pages of the next one are read: then each level of many small fields takes requests in every
/// cluster. Without levels, all clusters are fetched one after the other anyway.
fn is_read_in_parts(ntuple: &Ntuple, fields: &[Field], entries: &Range<u64>) -> Result<bool> {
    let (source, store) = (ntuple.source(), ntuple.source().store());
    if store.hints().concurrency <= 1 || plan::is_flat(fields.iter().flat_map(plan::columns)) {
        return Ok(false);
    }
    let Some(cluster) = source.first_clusters(entries.clone(), 1)?.pop() else { return Ok(false) };
    let memory = source.request_memory();
    let mut table = ColumnTable::new(source, &memory);
    let fields = &fields[..fields.len().min(SAMPLED_FIELDS)];
    let segments = plan::segments(&[cluster], &cluster.entry_range().into());
    let plan = ReadPlan::new(&mut table, fields, &segments)?;
    let mut pages = plan.columns.iter().flat_map(|column| &column.pages);
    Ok(pages.any(|(_, range)| !store.is_read_in_place(range)))
}

/// Consecutive whole clusters of about [`PART_BYTES`] in memory together, limited to a range of entries.
fn parts(ntuple: &Ntuple, fields: &[Field], entries: &Range<u64>) -> Result<Vec<Range<u64>>> {
    let fields: Vec<&Field> = fields.iter().collect();
    // Damaged page lists are reported when the entries are read.
    let Ok(cost) = EntrySource::cost(ntuple, &fields, entries) else { return Ok(Vec::new()) };
    let most = (PART_BYTES as f64 / cost.bytes_per_entry.max(1.0)) as u64;
    let mut parts: Vec<Range<u64>> = Vec::new();
    for range in ntuple.source().clusters(entries.clone())?.iter().map(Cluster::entry_range) {
        let (start, end) = (range.start.max(entries.start), range.end.min(entries.end));
        match parts.last_mut().filter(|part| end - part.start <= most) {
            Some(part) => part.end = end,
            None => parts.push(start..end),
        }
    }
    let max_entries = (MAX_PART_BYTES as f64 / cost.bytes_per_entry.max(1.0)) as u64;
    let is_small = |part: &Range<u64>| part.end - part.start <= max_entries;
    Ok(if parts.iter().all(is_small) { parts } else { Vec::new() })
}

/// Arrays of consecutive parts, which are copied together as they come.
struct Concatenation {
    types: Vec<DataType>,
    columns: Vec<Column>,
    len: usize,
    bytes: u64,
}

enum Column {
    /// Values of the same width in bytes, without nulls.
    Values { values: ValueBuffer, width: usize },
    /// Copied at the end.
    Arrays(Vec<ArrayRef>),
}

impl Concatenation {
    /// Room for so many entries in arrays of the same types.
    fn new(fields: &[Field], arrays: &[ArrayRef], max_len: usize) -> Result<Self> {
        let types: Vec<DataType> = arrays.iter().map(|array| array.data_type().clone()).collect();
        let column = |(field, data_type): (&Field, &DataType)| match data_type.primitive_width() {
            Some(width) if !field.is_nullable() => {
                let too_many = || Error::limit(format!("{max_len} values are too many"));
                let len = max_len.checked_mul(width).ok_or_else(too_many)?;
                Ok(Column::Values { values: ValueBuffer::with_len(len)?, width })
            }
            _ => Ok(Column::Arrays(Vec::new())),
        };
        let columns = fields.iter().zip(&types).map(column).collect::<Result<_>>()?;
        Ok(Self { types, columns, len: 0, bytes: 0 })
    }

    fn has_types_of(&self, arrays: &[ArrayRef]) -> bool {
        self.types.iter().eq(arrays.iter().map(Array::data_type))
    }

    fn push(&mut self, arrays: Vec<ArrayRef>) -> Result<()> {
        let start = self.len;
        self.len += arrays.first().map_or(0, |array| array.len());
        let end = self.len;
        for (column, array) in self.columns.iter_mut().zip(arrays) {
            match column {
                Column::Values { values, width } => {
                    let (data, width) = (array.to_data(), *width);
                    let from = data.buffers().first().and_then(|from| from.get(data.offset() * width..));
                    let to = values.bytes_mut().get_mut(start * width..end * width);
                    let (Some(to), Some(from)) = (to, from.and_then(|from| from.get(..(end - start) * width))) else {
                        return Err(Error::corrupt("parts have more entries than the ntuple"));
                    };
                    to.copy_from_slice(from);
                }
                Column::Arrays(arrays) => {
                    self.bytes += array.get_array_memory_size() as u64;
                    arrays.push(array);
                }
            }
        }
        Ok(())
    }

    /// Each array of the parts is freed as soon as it is copied.
    fn finish(self) -> Result<Vec<ArrayRef>> {
        let len = self.len;
        let columns = self.columns.into_iter().zip(self.types).collect();
        pool::map(columns, self.bytes, |(column, data_type)| match column {
            Column::Values { mut values, width } => {
                values.truncate(len * width);
                let data = ArrayData::builder(data_type).len(len).add_buffer(values.into());
                Ok(make_array(data.build()?))
            }
            Column::Arrays(arrays) => {
                Ok(arrow_select::concat::concat(&arrays.iter().map(AsRef::as_ref).collect::<Vec<_>>())?)
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{BooleanArray, Float32Array, Int64Array, LargeStringArray};
    use arrow_select::concat::concat;
    use tupelo_schema::schema::{Kind, Primitive};

    use super::*;

    #[test]
    fn parts_follow_each_other() {
        let field = |name: &str, kind| Field::new(name, "", kind);
        let number = || Kind::Primitive(Primitive::Int64);
        let fields = [
            field("floats", Kind::Primitive(Primitive::Float)),
            field("optional", Kind::Optional(Box::new(field("_0", number())))),
            field("flags", Kind::Primitive(Primitive::Bool)),
            field("texts", Kind::String),
        ];
        let part = |len: usize| -> Vec<ArrayRef> {
            vec![
                Arc::new(Float32Array::from_iter_values((0..len).map(|entry| entry as f32))),
                Arc::new((0..len).map(|entry| (entry % 3 > 0).then_some(entry as i64)).collect::<Int64Array>()),
                Arc::new((0..len).map(|entry| Some(entry % 2 == 0)).collect::<BooleanArray>()),
                Arc::new(LargeStringArray::from_iter_values((0..len).map(|entry| "x".repeat(entry)))),
            ]
        };
        // A slice begins within its buffers.
        let sliced = part(20).iter().map(|array| array.slice(3, 10)).collect();
        let parts: [Vec<ArrayRef>; 4] = [part(7), part(0), sliced, part(2)];
        for max_len in [19, 100] {
            let mut all = Concatenation::new(&fields, &parts[0], max_len).unwrap();
            parts.iter().try_for_each(|part| all.push(part.clone())).unwrap();
            for (index, array) in all.finish().unwrap().iter().enumerate() {
                let expected: Vec<&dyn Array> = parts.iter().map(|part| part[index].as_ref()).collect();
                assert_eq!(array, &concat(&expected).unwrap());
            }
        }
        let mut short = Concatenation::new(&fields, &parts[0], 10).unwrap();
        assert!(parts.iter().try_for_each(|part| short.push(part.clone())).is_err());
        assert!(Concatenation::new(&fields, &parts[0], usize::MAX).is_err());
        assert!(Concatenation::new(&fields, &parts[0], usize::MAX / 4).is_err());
    }
}
