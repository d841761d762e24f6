//! Sealed pages to Arrow arrays: every page is decompressed and decoded straight into its place in the final buffer.
//!
//! A field is decoded over a list of [`Segment`]s, its element ranges in one cluster after another. Index columns give
//! the segments of the fields below them, so that a range of entries touches only the pages that hold it.

use std::sync::Arc;

use arrow_array::builder::NullBufferBuilder;
use arrow_array::{
    Array, ArrayRef, BooleanArray, FixedSizeListArray, LargeBinaryArray, LargeListArray, LargeStringArray, NullArray,
    StructArray, UInt32Array, UInt64Array, UnionArray, make_array,
};
use arrow_buffer::{BooleanBuffer, Buffer, MutableBuffer, OffsetBuffer, ScalarBuffer};
use arrow_data::ArrayData;
use arrow_schema::{ArrowError, DataType, Fields};
use tupelo_format::encoding::{self, ColumnType};
use tupelo_format::envelope::FeatureFlags;

use crate::schema::arrow as arrow_type;
use crate::schema::{Field, Kind, Primitive};
use crate::source::{Pages, Piece, Segment};
use crate::{Error, Result};

/// Allocations above this are tried before they are made, in bytes, because a file may have asked for them.
const TRIED_BYTES: usize = 64 << 20;
/// Memory of a list of segments for each of them and each field, in bytes: as they are, and with the offset before.
const SEGMENT_MEMORY: u64 = 2 * size_of::<Segment>() as u64;

/// More elements that nobody stored (of fields added late, of records without members) are refused: only they cost
/// a file nothing.
const MAX_UNSTORED: u64 = 1 << 32;

/// Decodes fields of one reading request.
pub(crate) struct Decoder<'s> {
    pages: Pages<'s>,
    /// Whether the source is compressed, which decides what encodings need no mention in the metadata.
    compressed: bool,
    binary_strings: bool,
    nested_deferred: bool,
}

/// End offsets of a collection's items in the output, and where the items lie.
struct Offsets {
    buffer: OffsetBuffer<i64>,
    items: Vec<Segment>,
}

impl<'s> Decoder<'s> {
    pub(crate) fn new(pages: Pages<'s>, compressed: bool, binary_strings: bool) -> Self {
        let flags = pages.source().descriptor().feature_flags();
        let nested_deferred = flags.bits().contains(&FeatureFlags::NESTED_DEFERRED_COLUMNS);
        Self { pages, compressed, binary_strings, nested_deferred }
    }

    pub(crate) fn pages(&mut self) -> &mut Pages<'s> {
        &mut self.pages
    }

    /// The field's values over the segments, one after the other.
    pub(crate) fn decode(&mut self, field: &Field, segments: &[Segment]) -> Result<ArrayRef> {
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
                let list = FixedSizeListArray::try_new(arrow_type::bits(), self.list_size(field, *size)?, bits, None)
                    .map_err(misfit)?;
                Ok(Arc::new(list))
            }
            Kind::Array { size, item } => {
                let values = self.decode(item, &repeated(self, field, segments, *size)?)?;
                let item = arrow_type::item(item, values.data_type().clone(), self.compressed);
                Ok(Arc::new(
                    FixedSizeListArray::try_new(item, self.list_size(field, *size)?, values, None).map_err(misfit)?,
                ))
            }
            Kind::Wrapper(item) => self.decode(item, segments),
            Kind::Optional(item) if item.takes_nulls() => self.optional(field, item, segments),
            Kind::Optional(item) | Kind::Collection(item) => {
                let offsets = self.offsets(field, segments)?;
                if matches!(field.kind, Kind::Optional(_)) {
                    self.at_most_one(field, &offsets.buffer)?;
                }
                let values = self.decode(item, &offsets.items)?;
                let item = arrow_type::item(item, values.data_type().clone(), self.compressed);
                Ok(Arc::new(LargeListArray::try_new(item, offsets.buffer, values, None).map_err(misfit)?))
            }
            Kind::Map(pair) => {
                let offsets = self.offsets(field, segments)?;
                let values = self.record(pair.children(), Some(["key", "value"]), &offsets.items)?;
                let item = arrow_type::item(pair, values.data_type().clone(), self.compressed);
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
        self.check(field, 0, segments)?;
        let width = data_type.primitive_width().unwrap_or(1);
        let mut out = self.zeroed(field, count, width)?;
        match primitive {
            Primitive::Float => {
                let values = out.typed_data_mut::<f32>();
                let mut spare = Vec::new();
                self.visit(field, 0, segments, |piece| piece.decode(values, &mut spare, encoding::decode_f32))?;
            }
            Primitive::Double => {
                let values = out.typed_data_mut::<f64>();
                let mut spare = Vec::new();
                self.visit(field, 0, segments, |piece| piece.decode(values, &mut spare, encoding::decode_f64))?;
            }
            _ => self.fixed(field, 0, segments, width, &mut out)?,
        }
        primitive_array(data_type, count, out.into())
    }

    fn fixed(&mut self, field: &Field, k: usize, segments: &[Segment], width: usize, out: &mut [u8]) -> Result<()> {
        let mut spare: Vec<u8> = Vec::new();
        self.visit(field, k, segments, |piece| {
            let bytes = |elements: usize| elements * width;
            let out = &mut out[bytes(piece.to)..bytes(piece.to + piece.take)];
            if piece.is_whole() {
                return Ok(encoding::decode_fixed(piece.encoding, piece.packed, out)?);
            }
            spare.resize(bytes(piece.elements), 0);
            encoding::decode_fixed(piece.encoding, piece.packed, &mut spare)?;
            out.copy_from_slice(&spare[bytes(piece.skip)..bytes(piece.skip + piece.take)]);
            Ok(())
        })
    }

    /// One byte an element: characters and streamed bytes.
    fn bytes(&mut self, field: &Field, k: usize, segments: &[Segment]) -> Result<Buffer> {
        self.check(field, k, segments)?;
        let mut out = self.zeroed(field, total(field, segments)?, 1)?;
        self.fixed(field, k, segments, 1, &mut out)?;
        Ok(out.into())
    }

    fn bits(&mut self, field: &Field, segments: &[Segment]) -> Result<ArrayRef> {
        self.check(field, 0, segments)?;
        let count = total(field, segments)?;
        let mut out = self.zeroed(field, count.div_ceil(8), 1)?;
        self.visit(field, 0, segments, |piece| {
            Ok(encoding::decode_bits(piece.packed, piece.skip, piece.take, &mut out, piece.to)?)
        })?;
        Ok(Arc::new(BooleanArray::new(BooleanBuffer::new(out.into(), 0, count), None)))
    }

    fn string(&mut self, field: &Field, segments: &[Segment]) -> Result<ArrayRef> {
        let offsets = self.offsets(field, segments)?;
        let bytes = self.bytes(field, 1, &offsets.items)?;
        if !self.binary_strings
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
            arrow_fields.push(arrow_type::named(field, name, array.data_type().clone(), self.compressed));
            arrays.push(array);
        }
        if arrays.is_empty() {
            let count = segments.iter().map(|segment| segment.count as usize).sum();
            return Ok(Arc::new(StructArray::new_empty_fields(count, None)));
        }
        Ok(Arc::new(StructArray::try_new(Fields::from(arrow_fields), arrays, None).map_err(misfit)?))
    }

    /// Items that are there stand dense on disk; Arrow wants a place for the missing ones too.
    fn optional(&mut self, field: &Field, item: &Field, segments: &[Segment]) -> Result<ArrayRef> {
        let offsets = self.offsets(field, segments)?;
        self.at_most_one(field, &offsets.buffer)?;
        let dense = self.decode(item, &offsets.items)?;
        let count = offsets.buffer.len() - 1;
        if dense.len() == count && offsets.buffer.windows(2).all(|w| w[1] - w[0] == 1) {
            return Ok(dense);
        }
        // Arrow makes a place for every missing one, and a copy of all that are there.
        let missing = (count - dense.len().min(count)) as u64;
        let bytes = missing.saturating_mul(slot_bytes(dense.data_type()));
        let bytes = bytes.saturating_add(dense.get_array_memory_size() as u64).saturating_add(count as u64 * 9);
        self.take_values(field, usize::try_from(bytes).unwrap_or(usize::MAX), 1)?;
        let mut places = Vec::with_capacity(count);
        let mut valid = NullBufferBuilder::new(count);
        for window in offsets.buffer.windows(2) {
            valid.append(window[1] > window[0]);
            places.push(window[0].unsigned_abs());
        }
        let places = UInt64Array::new(places.into(), valid.finish());
        arrow_select::take::take(&dense, &places, None).map_err(misfit)
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
        self.visit(field, 0, segments, |piece| switch.decode(&piece))?;
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
            fields.push(arrow_type::named(alternative, &alternative.name, array.data_type().clone(), self.compressed));
            children.push(array);
        }
        let union_fields = arrow_type::union_fields(fields.into());
        let (type_ids, offsets) = (ScalarBuffer::from(type_ids), ScalarBuffer::from(offsets));
        Ok(Arc::new(UnionArray::try_new(union_fields, type_ids, Some(offsets), children).map_err(misfit)?))
    }

    /// Decodes an index column. Stored offsets count from the start of the cluster, Arrow's from that of the output.
    fn offsets(&mut self, field: &Field, segments: &[Segment]) -> Result<Offsets> {
        let count = total(field, segments)?;
        // The offset before a segment's first is where its first item begins.
        let widened: Vec<Segment> = segments
            .iter()
            .map(|segment| {
                let before = u64::from(segment.start > 0);
                Segment { start: segment.start - before, count: segment.count + before, ..*segment }
            })
            .collect();
        let stored = self.indexes(field, &widened)?;
        self.take_values(field, count + 1, size_of::<i64>())?;
        self.pages.memory().take(SEGMENT_MEMORY * segments.len() as u64, "parts of clusters")?;
        let mut buffer = Vec::with_capacity(count + 1);
        buffer.push(0i64);
        let mut items = Vec::with_capacity(segments.len());
        let (mut base, mut rest) = (0u64, stored.as_slice());
        for (segment, wide) in segments.iter().zip(&widened) {
            let (mine, others) = rest.split_at(wide.count as usize);
            rest = others;
            let (first, mine) = match (segment.start > 0, mine) {
                (true, [first, mine @ ..]) => (*first, mine),
                _ => (0, mine),
            };
            let mut last = first;
            for &end in mine {
                if end < last {
                    return Err(self.corrupt(
                        field,
                        &format!(
                            "an index column goes back from {last} to {end} in cluster {}",
                            segment.cluster.number
                        ),
                    ));
                }
                last = end;
                match (end - first).checked_add(base).map(i64::try_from) {
                    Some(Ok(offset)) if offset < i64::MAX / 2 => buffer.push(offset),
                    _ => return Err(self.corrupt(field, "an index column counts over 2^62 items")),
                }
            }
            base += last - first;
            let total = self.items_in_cluster(field, segment, last)?;
            items.push(Segment { start: first, count: last - first, total, per_entry: None, ..*segment });
        }
        Ok(Offsets { buffer: OffsetBuffer::new(buffer.into()), items })
    }

    fn indexes(&mut self, field: &Field, segments: &[Segment]) -> Result<Vec<u64>> {
        self.check(field, 0, segments)?;
        let count = total(field, segments)?;
        self.take_values(field, count, size_of::<u64>())?;
        let mut out = vec![0u64; count];
        let mut spare = Vec::new();
        self.visit(field, 0, segments, |piece| piece.decode(&mut out, &mut spare, encoding::decode_index))?;
        Ok(out)
    }

    /// How many items a collection has in the whole cluster, where the segment tells. Where columns below may be deferred
    /// it must be known, and so is looked up.
    fn items_in_cluster(&mut self, field: &Field, segment: &Segment, last: u64) -> Result<Option<u64>> {
        match segment.total {
            Some(total) if segment.start + segment.count == total => Ok(Some(last)),
            Some(total) if self.nested_deferred => {
                let end = Segment { start: total - 1, count: 1, ..*segment };
                Ok(self.indexes(field, &[end])?.first().copied())
            }
            _ => Ok(None),
        }
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

    fn zeroed(&mut self, field: &Field, count: usize, width: usize) -> Result<MutableBuffer> {
        self.take_values(field, count, width)?;
        Ok(MutableBuffer::from_len_zeroed(count.saturating_mul(width)))
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

    fn visit(
        &mut self,
        field: &Field,
        k: usize,
        segments: &[Segment],
        visit: impl FnMut(Piece<'_>) -> Result<()>,
    ) -> Result<()> {
        self.pages.visit(field, k, segments, visit)
    }

    fn list_size(&self, field: &Field, size: u64) -> Result<i32> {
        i32::try_from(size).map_err(|_| self.corrupt(field, &format!("a fixed array of {size} items")))
    }

    #[cold]
    fn corrupt(&self, field: &Field, what: &str) -> Error {
        self.pages.named(field, Error::corrupt(what))
    }
}

impl Piece<'_> {
    /// Decodes the piece into its place in `out`; a part of a page goes through `spare`.
    fn decode<T: Copy + Default>(
        &self,
        out: &mut [T],
        spare: &mut Vec<T>,
        decode: fn(&encoding::Encoding, &[u8], &mut [T]) -> tupelo_format::Result<()>,
    ) -> Result<()> {
        let out = &mut out[self.to..self.to + self.take];
        if self.is_whole() {
            return Ok(decode(self.encoding, self.packed, out)?);
        }
        spare.resize(self.elements, T::default());
        decode(self.encoding, self.packed, spare)?;
        out.copy_from_slice(&spare[self.skip..self.skip + self.take]);
        Ok(())
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
    fn decode(&mut self, piece: &Piece<'_>) -> Result<()> {
        debug_assert_eq!(piece.encoding.column_type(), ColumnType::Switch);
        let (indexes, tags) = &mut self.spare;
        indexes.resize(piece.elements, 0);
        tags.resize(piece.elements, 0);
        encoding::decode_switch(piece.packed, indexes, tags)?;
        let (from, to) = (piece.skip..piece.skip + piece.take, piece.to..piece.to + piece.take);
        self.indexes[to.clone()].copy_from_slice(&indexes[from.clone()]);
        self.tags[to].copy_from_slice(&tags[from]);
        Ok(())
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
