//! Sealed pages to Arrow arrays: every page is decompressed and decoded straight into its place in the final buffer, a run
//! of pages a task.
//!
//! A field is decoded over a list of [`Segment`]s, its element ranges in one cluster after another. Index columns give
//! the segments of the fields below them, so that a range of entries touches only the pages that hold it.

mod fields;
mod fill;
mod offsets;
mod optional;
mod values;

use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, BooleanArray, FixedSizeListArray, LargeBinaryArray, LargeListArray, LargeStringArray, NullArray,
    StructArray, UInt32Array, UInt64Array, UnionArray, make_array,
};
use arrow_buffer::{BooleanBuffer, Buffer, OffsetBuffer, ScalarBuffer};
use arrow_data::ArrayData;
use arrow_schema::{ArrowError, DataType, Fields};
use tupelo_format::encoding::{self, ColumnType, Encoding};
use tupelo_format::envelope::FeatureFlags;

use crate::schema::arrow as arrow_type;
use crate::schema::{Field, Kind, Primitive};
use crate::source::{Pages, Segment, Touch};
use crate::{Error, Result};
pub(crate) use fields::{How, fields};
use offsets::Known;
use values::Values;

/// Allocations above this are tried before they are made, in bytes, because a file may have asked for them.
const TRIED_BYTES: usize = 64 << 20;
/// More elements that nobody stored (of fields added late, of records without members) are refused: only they cost
/// a file nothing.
const MAX_UNSTORED: u64 = 1 << 32;

/// Decodes one field of a reading request.
struct Decoder<'s> {
    pages: Pages<'s>,
    /// What other fields of the request have decoded.
    known: &'s Known,
    how: How,
    nested_deferred: bool,
    /// Whether other threads may help.
    parallel: bool,
    /// Whether the whole request is more than caches hold.
    is_large: bool,
}

impl<'s> Decoder<'s> {
    fn new(pages: Pages<'s>, known: &'s Known, how: How, parallel: bool) -> Self {
        let flags = pages.source().descriptor().feature_flags();
        let nested_deferred = flags.bits().contains(&FeatureFlags::NESTED_DEFERRED_COLUMNS);
        Self { pages, known, how, nested_deferred, parallel, is_large: false }
    }

    /// The field's values over the segments, one after the other.
    fn decode(&mut self, field: &Field, segments: &[Segment]) -> Result<ArrayRef> {
        let count = total(field, segments)?;
        match &field.kind {
            Kind::Primitive(primitive) => self.primitive(field, *primitive, segments, count),
            Kind::String => self.string(field, segments),
            Kind::Streamer => {
                let offsets = self.offsets(field, segments)?;
                let bytes = self.bytes(field, 1, &offsets.items)?;
                Ok(Arc::new(LargeBinaryArray::try_new(offsets.buffer, bytes, None).map_err(misfit)?))
            }
            Kind::Cardinality { wide } => {
                let offsets = self.offsets(field, segments)?.buffer;
                let lengths = offsets.windows(2).map(|w| w[1].abs_diff(w[0]));
                match wide {
                    true => Ok(Arc::new(UInt64Array::from_iter_values(lengths))),
                    false => {
                        let narrow = lengths.map(u32::try_from).collect::<Result<Vec<_>, _>>();
                        let narrow =
                            narrow.map_err(|_| self.corrupt(field, "a collection has more than 2^32 items"))?;
                        Ok(Arc::new(UInt32Array::from(narrow)))
                    }
                }
            }
            Kind::Bitset { size } => {
                let bits = self.bits(field, &repeated(self, field, segments, *size)?)?;
                let list =
                    FixedSizeListArray::try_new(arrow_type::bits(), list_size(*size)?, bits, None).map_err(misfit)?;
                Ok(Arc::new(list))
            }
            Kind::Array { size, item } => {
                let values = self.decode(item, &repeated(self, field, segments, *size)?)?;
                let item = arrow_type::item(item, values.data_type().clone(), self.how.compressed);
                Ok(Arc::new(FixedSizeListArray::try_new(item, list_size(*size)?, values, None).map_err(misfit)?))
            }
            Kind::Wrapper(item) => self.decode(item, segments),
            Kind::Optional(item) if item.takes_nulls() => self.optional(field, item, segments),
            Kind::Optional(item) | Kind::Collection(item) => {
                let offsets = self.offsets(field, segments)?;
                if matches!(field.kind, Kind::Optional(_)) {
                    self.at_most_one(field, &offsets.buffer)?;
                }
                let values = self.decode(item, &offsets.items)?;
                let item = arrow_type::item(item, values.data_type().clone(), self.how.compressed);
                Ok(Arc::new(LargeListArray::try_new(item, offsets.buffer, values, None).map_err(misfit)?))
            }
            Kind::Map(pair) => {
                let offsets = self.offsets(field, segments)?;
                let values = self.record(pair.children(), Some(["key", "value"]), &offsets.items)?;
                let item = arrow_type::item(pair, values.data_type().clone(), self.how.compressed);
                Ok(Arc::new(LargeListArray::try_new(item, offsets.buffer, values, None).map_err(misfit)?))
            }
            Kind::Record(fields) | Kind::Tuple(fields) => {
                if fields.is_empty() {
                    self.check_unstored(field, count as u64)?;
                }
                self.record(fields, None, segments)
            }
            Kind::Variant(fields) => self.variant(field, fields, segments, count),
        }
    }

    fn primitive(
        &mut self,
        field: &Field,
        primitive: Primitive,
        segments: &[Segment],
        count: usize,
    ) -> Result<ArrayRef> {
        let data_type = primitive.data_type();
        if primitive == Primitive::Bool {
            return self.bits(field, segments);
        }
        let width = data_type.primitive_width().unwrap_or(1);
        let decode = match (primitive, self.is_large) {
            (Primitive::Float, true) => single::<true>,
            (Primitive::Float, false) => single::<false>,
            (Primitive::Double, true) => double::<true>,
            (Primitive::Double, false) => double::<false>,
            (_, true) => fixed::<true>,
            (_, false) => fixed::<false>,
        };
        let values = self.numbers(field, 0, segments, width, decode)?;
        primitive_array(data_type, count, values.into())
    }

    /// Elements of one column, of `width` bytes each.
    fn numbers(
        &mut self,
        field: &Field,
        k: usize,
        segments: &[Segment],
        width: usize,
        decode: fill::Decode,
    ) -> Result<Values> {
        self.check(field, k, segments)?;
        let mut out = self.values(field, total(field, segments)?, width)?;
        self.fill(field, k, segments, width, out.bytes_mut(), decode)?;
        Ok(out)
    }

    /// One byte an element: characters and streamed bytes.
    fn bytes(&mut self, field: &Field, k: usize, segments: &[Segment]) -> Result<Buffer> {
        Ok(self.numbers(field, k, segments, 1, encoding::decode_fixed)?.into())
    }

    fn bits(&mut self, field: &Field, segments: &[Segment]) -> Result<ArrayRef> {
        self.check(field, 0, segments)?;
        let count = total(field, segments)?;
        let mut out = self.values(field, count.div_ceil(8), 1)?;
        let bits = out.bytes_mut();
        bits.fill(0);
        self.visit(field, 0, segments, |touch, _, _, packed| {
            Ok(encoding::decode_bits(packed, touch.skip, touch.take, bits, touch.to)?)
        })?;
        Ok(Arc::new(BooleanArray::new(BooleanBuffer::new(out.into(), 0, count), None)))
    }

    fn string(&mut self, field: &Field, segments: &[Segment]) -> Result<ArrayRef> {
        let offsets = self.offsets(field, segments)?;
        let bytes = self.bytes(field, 1, &offsets.items)?;
        if !self.how.binary_strings
            && let Ok(strings) = LargeStringArray::try_new(offsets.buffer.clone(), bytes.clone(), None)
        {
            return Ok(Arc::new(strings));
        }
        Ok(Arc::new(LargeBinaryArray::try_new(offsets.buffer, bytes, None).map_err(misfit)?))
    }

    fn record(&mut self, fields: &[Field], names: Option<[&str; 2]>, segments: &[Segment]) -> Result<ArrayRef> {
        let mut arrays = Vec::with_capacity(fields.len());
        let mut arrow_fields = Vec::with_capacity(fields.len());
        for (index, field) in fields.iter().enumerate() {
            let array = self.decode(field, segments)?;
            let name = names.and_then(|names| names.get(index).copied()).unwrap_or(&field.name);
            arrow_fields.push(arrow_type::named(field, name, array.data_type().clone(), self.how.compressed));
            arrays.push(array);
        }
        if arrays.is_empty() {
            let count = segments.iter().map(|segment| segment.count as usize).sum();
            return Ok(Arc::new(StructArray::new_empty_fields(count, None)));
        }
        Ok(Arc::new(StructArray::try_new(Fields::from(arrow_fields), arrays, None).map_err(misfit)?))
    }

    fn variant(
        &mut self,
        field: &Field,
        alternatives: &[Field],
        segments: &[Segment],
        count: usize,
    ) -> Result<ArrayRef> {
        self.check(field, 0, segments)?;
        self.take_values(field, count, size_of::<(u64, u32, i8, i32)>())?;
        let mut switch = Switch { indexes: vec![0; count], tags: vec![0; count], ..Switch::default() };
        self.visit(field, 0, segments, |touch, encoding, elements, packed| {
            switch.decode(touch, encoding, elements, packed)
        })?;
        let mut type_ids = Vec::with_capacity(count);
        let mut offsets = Vec::with_capacity(count);
        // Per alternative: where its elements lie, and how many came before.
        let mut items: Vec<Vec<Segment>> = vec![Vec::new(); alternatives.len()];
        let mut counts = vec![0u64; alternatives.len() + 1];
        let mut position = 0;
        for segment in segments {
            let mut open: Vec<Option<(u64, u64)>> = vec![None; alternatives.len() + 1];
            for _ in 0..segment.count {
                let (tag, index) = (switch.tags[position] as usize, switch.indexes[position]);
                position += 1;
                if tag > alternatives.len() {
                    return Err(self.corrupt(field, &format!("a variant has tag {tag} of {}", alternatives.len())));
                }
                if tag > 0 {
                    let (_, next) = open[tag].get_or_insert((index, index));
                    if *next != index {
                        return Err(self.corrupt(field, &format!("item {index} of alternative {tag} is out of order")));
                    }
                    *next = index.checked_add(1).ok_or_else(|| self.corrupt(field, "an alternative has 2^64 items"))?;
                }
                let offset = i32::try_from(counts[tag]);
                offsets.push(offset.map_err(|_| Error::limit("more than 2^31 values of a variant in one batch"))?);
                counts[tag] += 1;
                type_ids.push(tag as i8);
            }
            // All of a cluster's variants are all that its alternatives have.
            let is_whole = segment.start == 0 && segment.total == Some(segment.count);
            for (range, items) in open[1..].iter().zip(&mut items) {
                let (start, end) = match *range {
                    Some(range) => range,
                    None if is_whole => (0, 0),
                    None => continue,
                };
                let total = (is_whole && start == 0).then_some(end);
                items.push(Segment { start, count: end - start, total, per_entry: None, ..*segment });
            }
        }
        let mut children: Vec<ArrayRef> = vec![Arc::new(NullArray::new(counts[0] as usize))];
        let mut fields = Vec::with_capacity(alternatives.len());
        for (alternative, items) in alternatives.iter().zip(&items) {
            let array = self.decode(alternative, items)?;
            fields.push(arrow_type::named(
                alternative,
                &alternative.name,
                array.data_type().clone(),
                self.how.compressed,
            ));
            children.push(array);
        }
        let union_fields = arrow_type::union_fields(fields.into());
        let (type_ids, offsets) = (ScalarBuffer::from(type_ids), ScalarBuffer::from(offsets));
        Ok(Arc::new(UnionArray::try_new(union_fields, type_ids, Some(offsets), children).map_err(misfit)?))
    }

    /// Refuses what is not stored before room is made for it.
    fn check(&mut self, field: &Field, k: usize, segments: &[Segment]) -> Result<()> {
        let unstored = self.pages.check(field, k, segments)?;
        self.check_unstored(field, unstored)
    }

    /// Counts the memory of values before it is allocated, and tries it if it is much.
    fn take_values(&mut self, field: &Field, count: usize, width: usize) -> Result<()> {
        let bytes = count.saturating_mul(width);
        let taken = self.pages.memory().take_values(bytes as u64).and_then(|()| try_room(bytes));
        taken.map_err(|e| self.pages.named(field, e))
    }

    fn values(&mut self, field: &Field, count: usize, width: usize) -> Result<Values> {
        self.take_values(field, count, width)?;
        Values::with_len(count.saturating_mul(width)).map_err(|e| self.pages.named(field, e))
    }

    fn check_unstored(&self, field: &Field, unstored: u64) -> Result<()> {
        match unstored {
            ..=MAX_UNSTORED => Ok(()),
            _ => {
                let what = format!("{unstored} elements that are stored nowhere");
                Err(self.pages.named(field, Error::limit(what)))
            }
        }
    }

    fn at_most_one(&self, field: &Field, offsets: &OffsetBuffer<i64>) -> Result<()> {
        match offsets.windows(2).map(|w| w[1] - w[0]).find(|&count| count > 1) {
            None => Ok(()),
            Some(more) => Err(self.corrupt(field, &format!("an optional has {more} values"))),
        }
    }

    #[cold]
    fn corrupt(&self, field: &Field, what: &str) -> Error {
        self.pages.named(field, Error::corrupt(what))
    }
}

/// A switch column in memory.
#[derive(Default)]
struct Switch {
    indexes: Vec<u64>,
    tags: Vec<u32>,
    /// A whole page, of which a part is taken.
    spare: (Vec<u64>, Vec<u32>),
}

impl Switch {
    fn decode(&mut self, touch: &Touch, encoding: &Encoding, elements: usize, packed: &[u8]) -> Result<()> {
        debug_assert_eq!(encoding.column_type(), ColumnType::Switch);
        let (indexes, tags) = &mut self.spare;
        indexes.resize(elements, 0);
        tags.resize(elements, 0);
        encoding::decode_switch(packed, indexes, tags)?;
        let (from, to) = (touch.skip..touch.skip + touch.take, touch.to..touch.to + touch.take);
        self.indexes[to.clone()].copy_from_slice(&indexes[from.clone()]);
        self.tags[to].copy_from_slice(&tags[from]);
        Ok(())
    }
}

/// Elements as they are, of which the request has few or many.
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

/// The segments of a fixed array's items.
fn repeated(decoder: &Decoder<'_>, field: &Field, segments: &[Segment], size: u64) -> Result<Vec<Segment>> {
    let times = |n: u64| n.checked_mul(size).ok_or_else(|| decoder.corrupt(field, "a fixed array has over 2^64 items"));
    segments
        .iter()
        .map(|segment| {
            times(segment.start + segment.count)?;
            Ok(Segment {
                start: times(segment.start)?,
                count: times(segment.count)?,
                total: segment.total.map(times).transpose()?,
                per_entry: segment.per_entry.and_then(|n| n.checked_mul(size)),
                ..*segment
            })
        })
        .collect()
}

fn list_size(items: u64) -> Result<i32> {
    i32::try_from(items).map_err(|_| Error::limit(format!("a fixed array of {items} items")))
}

/// Number of elements of all segments together.
fn total(field: &Field, segments: &[Segment]) -> Result<usize> {
    let mut total = 0u64;
    for segment in segments {
        total = total.saturating_add(segment.count);
    }
    match usize::try_from(total) {
        Ok(total) if total < isize::MAX as usize / 16 => Ok(total),
        _ => Err(Error::limit(format!("{total} elements of field '{}' at once", field.name))),
    }
}

/// What a missing value takes in memory where Arrow makes a place for it.
fn slot_bytes(data_type: &DataType) -> u64 {
    match data_type {
        DataType::Null => 0,
        DataType::FixedSizeList(item, size) => {
            slot_bytes(item.data_type()).saturating_mul(u64::from(size.unsigned_abs())).saturating_add(1)
        }
        DataType::Struct(fields) => {
            fields.iter().map(|field| slot_bytes(field.data_type())).fold(1, u64::saturating_add)
        }
        // Offsets of lists and strings, places of variants: no wider than the widest number, and a bit for its absence.
        _ => 9,
    }
}

/// Arrow's buffers abort the process where memory is refused; an error is better.
fn try_room(bytes: usize) -> Result<()> {
    if bytes > TRIED_BYTES {
        let mut room = Vec::<u8>::new();
        room.try_reserve_exact(bytes).map_err(|_| Error::limit(format!("no memory for {bytes} bytes")))?;
    }
    Ok(())
}

fn primitive_array(data_type: DataType, count: usize, values: Buffer) -> Result<ArrayRef> {
    Ok(make_array(ArrayData::builder(data_type).len(count).add_buffer(values).build().map_err(misfit)?))
}

/// What was decoded does not make an array: that is the file's fault, not the caller's.
#[cold]
fn misfit(error: ArrowError) -> Error {
    Error::corrupt(format!("the decoded columns do not fit together: {error}"))
}
