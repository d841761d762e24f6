//! Sealed pages to Arrow arrays: every page is decompressed and decoded directly into its place in the final buffer.
//!
//! A field is decoded over a list of [`Segment`]s, its element ranges in one cluster after another. All fields go level by
//! level: the columns whose segments are known are decoded together, and index columns among them give the segments of the
//! fields below. So a range of entries touches only the pages that hold it, and a level of all fields takes one request.

mod baskets;
mod fetch;
mod level;
mod node;
mod offsets;
mod optional;
mod pages;
mod scratch;
#[cfg(test)]
mod tests;
mod values;
mod variant;

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_schema::ArrowError;
use tupelo_core::pool;
use tupelo_format::encoding::{self, ColumnType, Encoding};
use tupelo_format::envelope::FeatureFlags;
use tupelo_schema::schema::{Field, Kind, Primitive};

use crate::plan::{ColumnTable, PageSlice, ReadPlan, Segment};
use crate::source::{Metadata, RequestMemory};
use crate::{Error, Result};
pub use baskets::{
    BasketCheck, basket_lengths, basket_objects, branches_of, check_baskets, decode_baskets, estimated_bytes,
    unreadable,
};
use fetch::Fetcher;
use level::{Job, Target};
use node::{Assembly, Columns, Node, Offsets};
use offsets::OffsetCache;
use pages::Decode;
pub use values::ValueBuffer;
use variant::{Switch, Variants};

/// Allocations above this number of bytes are tried first, because a file may have caused them.
const TRIED_BYTES: usize = 64 << 20;
/// Maximum number of elements that are not stored (of fields added late, of records without members), which cost a file
/// nothing.
const MAX_UNSTORED: u64 = 1 << 32;
/// Requests of at least this many stored bytes write their values past the caches, which could not hold them until they
/// are used.
const LARGE_BYTES: u64 = 16 << 20;

/// How values are decoded.
#[derive(Debug, Clone, Copy)]
pub struct ValueOptions {
    /// Whether the source is compressed, which determines the default encodings, left out of the metadata.
    pub compressed: bool,
    /// Whether strings are read as bytes, which need not be UTF-8.
    pub binary_strings: bool,
}

/// The values of fields over the segments, one array per field.
pub fn decode(
    metadata: &Metadata,
    memory: &RequestMemory,
    fields: &[Field],
    segments: &[Segment],
    options: ValueOptions,
) -> Result<Vec<ArrayRef>> {
    let mut table = ColumnTable::new(metadata, memory);
    let plan = ReadPlan::new(&mut table, fields, segments)?;
    let store = metadata.store();
    let flags = metadata.descriptor().feature_flags();
    let nested_deferred = flags.bits().contains(&FeatureFlags::NESTED_DEFERRED_COLUMNS);
    let (offsets, is_large) = (OffsetCache::default(), plan.stored_bytes >= LARGE_BYTES);
    let mut decoder = Decoder { metadata, memory, table, offsets, options, nested_deferred, is_large };
    let segments: Arc<[Segment]> = segments.into();
    let mut arrays = Vec::with_capacity(fields.len());
    let groups = plan.groups(|range| !store.is_read_in_place(range), memory.fetch_bytes()).into_iter();
    let groups = groups.map(|group| (group.pages.into_iter().collect(), group.fields));
    Fetcher::new(store, memory).each(groups, |fetcher, group| {
        arrays.extend(decoder.fields(fetcher, &fields[group], &segments)?);
        fetcher.release_all();
        Ok(())
    })?;
    Ok(arrays)
}

/// Decodes the fields of one reading request.
struct Decoder<'m> {
    metadata: &'m Metadata,
    memory: &'m RequestMemory,
    table: ColumnTable<'m>,
    offsets: OffsetCache,
    options: ValueOptions,
    nested_deferred: bool,
    /// Whether the whole request exceeds the caches.
    is_large: bool,
}

/// The columns at the start of a level.
enum Step<'t, 'f> {
    /// A field that is not decoded.
    Field(&'t mut Node<'f>),
    /// The bytes of a string or an object, whose offsets are decoded.
    Bytes(&'t mut Node<'f>, Vec<Segment>),
}

impl<'m> Decoder<'m> {
    fn fields(
        &mut self,
        fetcher: &mut Fetcher<'m>,
        fields: &[Field],
        segments: &Arc<[Segment]>,
    ) -> Result<Vec<ArrayRef>> {
        let mut nodes: Vec<Node<'_>> = fields.iter().map(|field| Node::new(field, Arc::clone(segments))).collect();
        let mut steps: Vec<Step<'_, '_>> = nodes.iter_mut().map(Step::Field).collect();
        while !steps.is_empty() {
            let mut jobs = Vec::with_capacity(steps.len());
            for step in steps {
                match step {
                    Step::Field(node) => self.expand(node, &mut jobs)?,
                    Step::Bytes(node, items) => {
                        let job = self.fixed(node, 1, &items, 1, encoding::decode_fixed)?;
                        jobs.push(job);
                    }
                }
            }
            self.begin_offsets(fetcher, &mut jobs)?;
            self.decode_level(fetcher, &mut jobs)?;
            steps = self.end_level(fetcher, jobs)?;
        }
        let assembly = Assembly { table: &self.table, memory: self.memory, options: self.options };
        let bytes = nodes.iter().map(|node| node.count as u64).sum();
        pool::map(nodes, bytes, |node| assembly.array(node))
    }

    /// Adds the jobs of all columns of a field whose segments are known.
    fn expand<'t, 'f>(&mut self, node: &'t mut Node<'f>, jobs: &mut Vec<Job<'t, 'f>>) -> Result<()> {
        let (field, segments) = (node.field, Arc::clone(&node.segments));
        node.count = total(field, &segments)?;
        match &field.kind {
            Kind::Primitive(Primitive::Bool) => jobs.push(self.bits(node, &segments)?),
            Kind::Bitset { size } => {
                let bits = self.repeated(field, &segments, *size)?;
                jobs.push(self.bits(node, &bits)?);
            }
            Kind::Primitive(primitive) => {
                let width = primitive.data_type().primitive_width().unwrap_or(1);
                jobs.push(self.fixed(node, 0, &segments, width, self.decode_of(*primitive))?);
            }
            Kind::Array { .. } | Kind::Wrapper(_) | Kind::Record(_) | Kind::Tuple(_) => {
                let below = match &field.kind {
                    Kind::Array { size, .. } => self.repeated(field, &segments, *size)?.into(),
                    _ => segments,
                };
                if field.children().is_empty() {
                    self.check_unstored(field, node.count as u64)?;
                }
                node.add_children(&below).try_for_each(|child| self.expand(child, jobs))?;
            }
            Kind::Variant(_) => jobs.push(self.switch(node, &segments)?),
            _ => jobs.push(self.index(node)?),
        }
        Ok(())
    }

    fn decode_of(&self, primitive: Primitive) -> Decode {
        match (primitive, self.is_large) {
            (Primitive::Float, true) => single::<true>,
            (Primitive::Float, false) => single::<false>,
            (Primitive::Double, true) => double::<true>,
            (Primitive::Double, false) => double::<false>,
            (_, true) => fixed::<true>,
            (_, false) => fixed::<false>,
        }
    }

    /// A job for values of `width` bytes each.
    fn fixed<'t, 'f>(
        &mut self,
        node: &'t mut Node<'f>,
        k: usize,
        segments: &[Segment],
        width: usize,
        decode: Decode,
    ) -> Result<Job<'t, 'f>> {
        let slices = self.slices(node.field, k, segments)?;
        let values = self.values(node.field, total(node.field, segments)?, width)?;
        Ok(Job { node, slices, target: Target::Fixed { values, front: 0, width, decode } })
    }

    fn bits<'t, 'f>(&mut self, node: &'t mut Node<'f>, segments: &[Segment]) -> Result<Job<'t, 'f>> {
        let slices = self.slices(node.field, 0, segments)?;
        let mut values = self.values(node.field, total(node.field, segments)?.div_ceil(8), 1)?;
        values.bytes_mut().fill(0);
        Ok(Job { node, slices, target: Target::Bits(values) })
    }

    fn switch<'t, 'f>(&mut self, node: &'t mut Node<'f>, segments: &[Segment]) -> Result<Job<'t, 'f>> {
        let slices = self.slices(node.field, 0, segments)?;
        self.reserve_values(node.field, node.count, size_of::<(u64, u32, i8, i32)>())?;
        let target = Target::Switch(Switch::of(node.count));
        Ok(Job { node, slices, target })
    }

    /// The pages of a column; too many unstored elements are refused.
    fn slices(&mut self, field: &Field, k: usize, segments: &[Segment]) -> Result<Vec<PageSlice>> {
        let column = self.table.slices(field, k, segments)?;
        self.check_unstored(field, column.unstored)?;
        Ok(column.slices)
    }

    /// Moves decoded columns into their nodes, and returns the steps of the next level.
    fn end_level<'t, 'f>(&mut self, fetcher: &mut Fetcher<'m>, jobs: Vec<Job<'t, 'f>>) -> Result<Vec<Step<'t, 'f>>> {
        let offsets = self.end_offsets(fetcher, jobs)?;
        let mut steps = Vec::new();
        for (Job { node, target, .. }, offsets) in offsets {
            let field = node.field;
            match (target, offsets) {
                (_, Some(Offsets { buffer, items })) => match &field.kind {
                    Kind::String | Kind::Streamer => {
                        node.columns = Columns::Offsets(buffer);
                        steps.push(Step::Bytes(node, items));
                    }
                    kind => {
                        if matches!(kind, Kind::Optional(_)) {
                            at_most_one(&buffer).map_err(|e| self.table.named(field, e))?;
                        }
                        node.columns = Columns::Offsets(buffer);
                        // The items of a cardinality are not read: it has no children.
                        steps.extend(node.add_children(&items.into()).map(Step::Field));
                    }
                },
                (Target::Switch(switch), _) => {
                    let alternatives = field.children();
                    let variants = Variants::new(&switch, &node.segments, alternatives.len());
                    let (variants, items) = variants.map_err(|e| self.table.named(field, e))?;
                    node.columns = Columns::Variants(variants);
                    let below = alternatives.iter().zip(items);
                    node.children = below.map(|(child, items)| Node::new(child, items.into())).collect();
                    steps.extend(node.children.iter_mut().map(Step::Field));
                }
                (Target::Fixed { values, .. } | Target::Bits(values), _) => {
                    node.columns = match std::mem::replace(&mut node.columns, Columns::Nothing) {
                        Columns::Offsets(offsets) => Columns::Bytes(offsets, values.into()),
                        _ => Columns::Values(values.into()),
                    };
                }
                (Target::Index { .. } | Target::Known(_) | Target::SameAs(_) | Target::Nothing, None) => {}
            }
        }
        Ok(steps)
    }

    /// Reserves the memory of values before it is allocated, and tries large allocations.
    fn reserve_values(&self, field: &Field, count: usize, width: usize) -> Result<()> {
        let bytes = count.saturating_mul(width);
        let reserved = self.memory.reserve_values(bytes as u64).and_then(|()| try_allocation(bytes));
        reserved.map_err(|e| self.table.named(field, e))
    }

    fn values(&self, field: &Field, count: usize, width: usize) -> Result<ValueBuffer> {
        self.reserve_values(field, count, width)?;
        ValueBuffer::with_len(count.saturating_mul(width)).map_err(|e| self.table.named(field, e))
    }

    fn check_unstored(&self, field: &Field, unstored: u64) -> Result<()> {
        match unstored {
            ..=MAX_UNSTORED => Ok(()),
            _ => {
                let what = format!("{unstored} unstored elements exceed the limit of {MAX_UNSTORED}");
                Err(self.table.named(field, Error::limit(what)))
            }
        }
    }

    /// The segments of a fixed array's items.
    fn repeated(&self, field: &Field, segments: &[Segment], size: u64) -> Result<Vec<Segment>> {
        let too_many = || self.table.named(field, Error::corrupt("fixed array has more than 2^64 items"));
        let times = |n: u64| n.checked_mul(size).ok_or_else(too_many);
        let repeat = |segment: &Segment| {
            times(segment.start + segment.count)?;
            Ok(Segment {
                start: times(segment.start)?,
                count: times(segment.count)?,
                total: segment.total.map(times).transpose()?,
                per_entry: segment.per_entry.and_then(|n| n.checked_mul(size)),
                ..*segment
            })
        };
        segments.iter().map(repeat).collect()
    }
}

fn at_most_one(offsets: &[i64]) -> Result<()> {
    match offsets.windows(2).map(|pair| pair[1] - pair[0]).find(|&count| count > 1) {
        None => Ok(()),
        Some(more) => Err(Error::corrupt(format!("optional has {more} values, expected at most one"))),
    }
}

/// Elements as they are, few or many in a request.
fn fixed<const LARGE: bool>(encoding: &Encoding, packed: &[u8], out: &mut [u8]) -> tupelo_format::Result<()> {
    match LARGE {
        true => encoding::decode_fixed_past_caches(encoding, packed, out),
        false => encoding::decode_fixed(encoding, packed, out),
    }
}

/// Single-precision numbers; of the usual types they only have to be put together from their bytes.
fn single<const LARGE: bool>(encoding: &Encoding, packed: &[u8], out: &mut [u8]) -> tupelo_format::Result<()> {
    match encoding.column_type().unsplit() {
        ColumnType::Real32 => fixed::<LARGE>(encoding, packed, out),
        _ => encoding::decode_f32(encoding, packed, bytemuck::cast_slice_mut(out)),
    }
}

/// Double-precision numbers, likewise.
fn double<const LARGE: bool>(encoding: &Encoding, packed: &[u8], out: &mut [u8]) -> tupelo_format::Result<()> {
    match encoding.column_type().unsplit() {
        ColumnType::Real64 => fixed::<LARGE>(encoding, packed, out),
        _ => encoding::decode_f64(encoding, packed, bytemuck::cast_slice_mut(out)),
    }
}

/// Number of elements of all segments together.
fn total(field: &Field, segments: &[Segment]) -> Result<usize> {
    let mut total = 0u64;
    for segment in segments {
        total = total.saturating_add(segment.count);
    }
    match usize::try_from(total) {
        Ok(total) if total < isize::MAX as usize / 16 => Ok(total),
        _ => Err(Error::limit(format!("cannot read {total} elements of field '{}' at once", field.name))),
    }
}

/// Arrow's buffers abort the process if allocation fails; an error is better.
fn try_allocation(bytes: usize) -> Result<()> {
    if bytes > TRIED_BYTES {
        let mut room = Vec::<u8>::new();
        room.try_reserve_exact(bytes).map_err(|_| Error::limit(format!("cannot allocate {bytes} bytes")))?;
    }
    Ok(())
}

/// The error if decoded columns do not make an array, which is the fault of the file, not of the caller.
#[cold]
fn mismatch(error: ArrowError) -> Error {
    Error::corrupt(format!("the decoded columns are inconsistent: {error}"))
}
