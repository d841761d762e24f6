//! Baskets of trees to Arrow arrays: each basket is decompressed and read on its own, and the parts are joined.

mod check;
mod columns;
mod counters;
mod probe;

use std::iter::repeat_n;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{Array, ArrayRef, LargeListArray, StructArray, make_array};
use arrow_buffer::OffsetBuffer;
use arrow_data::ArrayData;
use arrow_schema::{DataType, Field as ArrowField, FieldRef, Fields};
use bytes::Bytes;
use tupelo_core::pool;
use tupelo_format::compression;
use tupelo_format::object::{Basic, Value};
use tupelo_format::wire::Memory;
use tupelo_ttree::basket::{BasketHead, open_embedded};
use tupelo_ttree::classes::Classes;
use tupelo_ttree::column::{MAX_EMPTY_ITEMS, left_out, swap};
use tupelo_ttree::fields::{COUNT, Field as TreeField, FieldKind};
use tupelo_ttree::tree::{BasketPlace, Stored};
use tupelo_ttree::{Basket, Branch, ValueLayout, layout};

pub use self::check::{BasketCheck, check_baskets};
use self::check::{counted, other_numbers, stored_bytes};
use self::columns::{BasketEntries, Piece, joined};
use self::counters::Counters;
pub use self::probe::unreadable;
use super::scratch::{sized, with_scratch};
use super::values::ValueBuffer;
use super::{mismatch, try_allocation};
use crate::source::{BlobRange, RequestMemory, TreeCache, TreeSource, UsedPart, check_record};
use crate::{Error, Result};

/// The values of fields for ranges of entries, which ascend; one array for each field, of the data type given with it.
pub fn decode_baskets(
    source: &TreeSource,
    memory: &RequestMemory,
    cache: TreeCache,
    fields: &[(&TreeField, DataType)],
    entries: &[Range<u64>],
) -> Result<Vec<ArrayRef>> {
    let counters = Counters::default();
    let decoder = BasketDecoder { source, memory, cache, counters: &counters, depth: 0 };
    let mut leaves = Vec::new();
    let forms: Vec<Form> =
        fields.iter().map(|(field, data_type)| Form::of(field, data_type, &mut leaves)).collect::<Result<_>>()?;
    let arrays = decoder.leaves(&leaves, entries)?;
    let mut arrays: Vec<Option<ArrayRef>> = arrays.into_iter().map(Some).collect();
    let entries: u64 = entries.iter().map(|range| range.end - range.start).sum();
    let named = |(form, (field, _)): (Form, &(&TreeField, DataType))| {
        form.assemble(&mut arrays, entries as usize).map_err(|error| error.in_field(&field.name))
    };
    forms.into_iter().zip(fields).map(named).collect()
}

/// The entries of a branch as objects.
pub fn basket_objects(
    source: &TreeSource,
    memory: &RequestMemory,
    branch: usize,
    entries: Range<u64>,
) -> Result<Vec<Value>> {
    let counters = Counters::default();
    let decoder = BasketDecoder { source, memory, cache: TreeCache::default(), counters: &counters, depth: 0 };
    let stored = decoder.branch(branch)?;
    let classes = Classes::new(source.infos());
    source.open_others([branch])?;
    let mut values = Vec::new();
    for (basket, entries) in decoder.baskets(branch, &[entries])? {
        let range = source.range(stored, basket)?;
        let fetched = match range.as_ref().filter(|range| !source.is_read_in_place(range)) {
            Some(range) => source.fetch(std::slice::from_ref(range))?.pop(),
            None => None,
        };
        let read = decoder.with_basket(branch, basket, range, fetched, None, |basket, _| {
            let values = Memory::new(memory.left());
            let read = layout::objects(stored, &classes, &basket, entries, &values)?;
            memory.reserve_values(values.used())?;
            Ok(read)
        });
        values.extend(read.map_err(|e| decoder.named(branch, basket, e))?);
    }
    Ok(values)
}

/// The bytes of each entry of a basket that does not store them, where they follow from another branch; `None` if all entries
/// have the same number. The branch has values of a layout, if it is known.
pub fn basket_lengths(
    source: &TreeSource,
    branch: usize,
    layout: Option<&ValueLayout>,
    basket: usize,
) -> Result<Option<Vec<usize>>> {
    let (memory, counters) = (source.request_memory(), Counters::default());
    let decoder = BasketDecoder { source, memory: &memory, cache: TreeCache::default(), counters: &counters, depth: 0 };
    match layout {
        Some(ValueLayout::Rest(item)) => {
            let entries = decoder.place(branch, basket)?.entries.clone();
            decoder.lengths(branch, basket, item, (entries.end - entries.start) as usize).map(Some)
        }
        Some(layout) if layout.fixed_bytes().is_some() => Ok(None),
        _ => Err(Error::unsupported("the lengths of its entries are not stored")),
    }
}

/// Bytes that the values of fields take in memory for a number of entries, judged by the sizes of their branches.
pub fn estimated_bytes(source: &TreeSource, field: &TreeField, entries: u64) -> f64 {
    match &field.kind {
        FieldKind::Value { branch, .. } => {
            let branch = source.tree().branches.get(*branch);
            branch.map_or(0.0, |branch| branch.bytes[0] as f64 * entries as f64 / branch.entries.max(1) as f64)
        }
        FieldKind::Record(members) | FieldKind::Collection { items: members, .. } => {
            members.iter().map(|member| estimated_bytes(source, member, entries)).sum()
        }
    }
}

/// The branches of a field, with their dotted paths.
pub fn branches_of<'f>(field: &'f TreeField, path: &str, found: &mut Vec<(String, usize, &'f ValueLayout)>) {
    match &field.kind {
        FieldKind::Value { branch, layout } => found.push((path.to_owned(), *branch, layout)),
        FieldKind::Record(members) | FieldKind::Collection { items: members, .. } => {
            members.iter().for_each(|member| branches_of(member, &format!("{path}.{}", member.name), found));
        }
    }
}

/// A branch that is read.
struct Leaf<'f> {
    branch: usize,
    layout: &'f ValueLayout,
    data_type: DataType,
}

/// How the array of a field is assembled from the arrays of branches.
enum Form {
    Leaf(usize),
    Record(Fields, Vec<Form>),
    /// Members of the items of a collection, each a list of all items of an entry. Without members their number.
    Collection(FieldRef, Fields, Vec<Form>),
    Counts(FieldRef, usize),
}

impl Form {
    fn of<'f>(field: &'f TreeField, data_type: &DataType, leaves: &mut Vec<Leaf<'f>>) -> Result<Self> {
        match (&field.kind, data_type) {
            (FieldKind::Value { branch, layout }, _) => Ok(Self::leaf(*branch, layout, data_type.clone(), leaves)),
            (FieldKind::Record(members), DataType::Struct(fields)) => {
                Ok(Self::Record(fields.clone(), Self::members(members, fields, leaves, Self::of)?))
            }
            (FieldKind::Collection { counts, items }, DataType::LargeList(item)) => match item.data_type() {
                DataType::Struct(fields) if !fields.is_empty() => {
                    let members = Self::members(items, fields, leaves, Self::of_member)?;
                    Ok(Self::Collection(Arc::clone(item), fields.clone(), members))
                }
                _ => {
                    leaves.push(Leaf { branch: *counts, layout: &COUNT, data_type: DataType::Int32 });
                    Ok(Self::Counts(Arc::clone(item), leaves.len() - 1))
                }
            },
            _ => Err(mistyped(field, data_type)),
        }
    }

    /// A member of the items of a collection.
    fn of_member<'f>(field: &'f TreeField, data_type: &DataType, leaves: &mut Vec<Leaf<'f>>) -> Result<Self> {
        match (&field.kind, data_type) {
            (FieldKind::Value { branch, layout: layout @ ValueLayout::Rest(_) }, _) => {
                let item = Arc::new(ArrowField::new("item", data_type.clone(), false));
                Ok(Self::leaf(*branch, layout, DataType::LargeList(item), leaves))
            }
            (FieldKind::Record(members), DataType::Struct(fields)) => {
                Ok(Self::Record(fields.clone(), Self::members(members, fields, leaves, Self::of_member)?))
            }
            _ => Err(mistyped(field, data_type)),
        }
    }

    fn leaf<'f>(branch: usize, layout: &'f ValueLayout, data_type: DataType, leaves: &mut Vec<Leaf<'f>>) -> Self {
        leaves.push(Leaf { branch, layout, data_type });
        Self::Leaf(leaves.len() - 1)
    }

    fn members<'f>(
        members: &'f [TreeField],
        fields: &Fields,
        leaves: &mut Vec<Leaf<'f>>,
        of: impl Fn(&'f TreeField, &DataType, &mut Vec<Leaf<'f>>) -> Result<Self>,
    ) -> Result<Vec<Self>> {
        // The parts of pairs have other names in Arrow.
        let is_pair = matches!(members, [first, second] if first.name == "_0" && second.name == "_1");
        let member = |(index, field): (usize, &FieldRef)| {
            let found = match is_pair && fields.len() == 2 {
                true => members.get(index),
                false => members.iter().find(|member| member.name == *field.name()),
            };
            let found = found.ok_or_else(|| Error::unsupported(format!("member '{}' does not exist", field.name())))?;
            of(found, field.data_type(), leaves)
        };
        fields.iter().enumerate().map(member).collect()
    }

    fn assemble(self, arrays: &mut [Option<ArrayRef>], entries: usize) -> Result<ArrayRef> {
        let take = |arrays: &mut [Option<ArrayRef>], index: usize| {
            arrays.get_mut(index).and_then(Option::take).ok_or_else(|| Error::corrupt("a branch was not read"))
        };
        match self {
            Self::Leaf(index) => take(arrays, index),
            Self::Record(fields, members) => {
                let members = members.into_iter().map(|member| member.assemble(arrays, entries));
                structure(&fields, members.collect::<Result<_>>()?, entries)
            }
            Self::Counts(item, index) => {
                let counts = take(arrays, index)?;
                let length = |&count: &i32| match usize::try_from(count) {
                    Ok(length) if length <= MAX_EMPTY_ITEMS => Ok(length),
                    _ => Err(Error::corrupt(format!("found {count} items without members"))),
                };
                let lengths = counts.as_primitive::<Int32Type>().values().iter();
                let lengths: Vec<usize> = lengths.map(length).collect::<Result<_>>()?;
                let total = lengths.iter().sum();
                let items = structure(&Fields::empty(), Vec::new(), total)?;
                list(&item, OffsetBuffer::from_lengths(lengths), items)
            }
            Self::Collection(item, fields, members) => {
                let mut offsets: Option<OffsetBuffer<i64>> = None;
                let mut items = Vec::with_capacity(members.len());
                for (member, field) in members.into_iter().zip(&fields) {
                    items
                        .push(member.items(arrays, &mut offsets).map_err(|e| e.within(format!("'{}'", field.name())))?);
                }
                let offsets = offsets.unwrap_or_else(|| OffsetBuffer::new_zeroed(entries));
                let total = offsets.last().copied().unwrap_or(0) as usize;
                list(&item, offsets, structure(&fields, items, total)?)
            }
        }
    }

    /// The values of all items of all entries. Each member must have as many in each entry as the others.
    fn items(self, arrays: &mut [Option<ArrayRef>], offsets: &mut Option<OffsetBuffer<i64>>) -> Result<ArrayRef> {
        match self {
            Self::Record(fields, members) => {
                let members = members.into_iter().map(|member| member.items(arrays, offsets));
                let members: Vec<ArrayRef> = members.collect::<Result<_>>()?;
                let total = members.first().map_or(0, |member| member.len());
                structure(&fields, members, total)
            }
            other => {
                let lists = other.assemble(arrays, 0)?;
                let lists = lists.as_list_opt::<i64>().ok_or_else(|| Error::corrupt("a member is not a list"))?;
                // Parts that were joined begin at 0, as those do that were not.
                match offsets {
                    None => *offsets = Some(lists.offsets().clone()),
                    Some(known) if known == lists.offsets() => {}
                    Some(_) => return Err(Error::corrupt("its numbers of items differ from the members before it")),
                }
                Ok(Arc::clone(lists.values()))
            }
        }
    }
}

fn mistyped(field: &TreeField, data_type: &DataType) -> Error {
    Error::unsupported(format!("field '{}' cannot be read as {data_type}", field.name))
}

/// The fields may have the types of bytes instead of strings.
fn retyped(field: &FieldRef, array: &ArrayRef) -> FieldRef {
    match field.data_type() == array.data_type() {
        true => Arc::clone(field),
        false => Arc::new(field.as_ref().clone().with_data_type(array.data_type().clone())),
    }
}

fn structure(fields: &Fields, arrays: Vec<ArrayRef>, len: usize) -> Result<ArrayRef> {
    let fields: Fields = fields.iter().zip(&arrays).map(|(field, array)| retyped(field, array)).collect();
    Ok(Arc::new(StructArray::try_new_with_length(fields, arrays, None, len).map_err(mismatch)?))
}

fn list(item: &FieldRef, offsets: OffsetBuffer<i64>, items: ArrayRef) -> Result<ArrayRef> {
    Ok(Arc::new(LargeListArray::try_new(retyped(item, &items), offsets, items, None).map_err(mismatch)?))
}

/// Reads the baskets of one request.
#[derive(Clone, Copy)]
struct BasketDecoder<'r> {
    source: &'r TreeSource,
    memory: &'r RequestMemory,
    cache: TreeCache,
    counters: &'r Counters,
    /// How many counters are read on the way.
    depth: u8,
}

impl BasketDecoder<'_> {
    /// One array for each leaf.
    fn leaves(self, leaves: &[Leaf<'_>], entries: &[Range<u64>]) -> Result<Vec<ArrayRef>> {
        let count: u64 = entries.iter().map(|range| range.end - range.start).sum();
        let mut buffers: Vec<Option<ValueBuffer>> = Vec::with_capacity(leaves.len());
        let mut baskets = Vec::with_capacity(leaves.len());
        self.source.open_others(leaves.iter().map(|leaf| leaf.branch))?;
        for leaf in leaves {
            // Every entry is in a basket, so values are backed by stored bytes.
            let found = self.baskets(leaf.branch, entries)?;
            self.memory.add_stored(self.stored_bytes(leaf.branch, &found)?);
            baskets.push(found);
            buffers.push(match plain_width(leaf.layout) {
                Some(width) => {
                    let bytes = usize::try_from(count).unwrap_or(usize::MAX).saturating_mul(width);
                    self.memory.reserve_values(bytes as u64)?;
                    try_allocation(bytes)?;
                    Some(ValueBuffer::with_len(bytes)?)
                }
                None => None,
            });
        }
        let mut parts = Vec::new();
        for (((index, leaf), baskets), buffer) in leaves.iter().enumerate().zip(baskets).zip(&mut buffers) {
            let mut out = buffer.as_mut().map(ValueBuffer::bytes_mut);
            let width = plain_width(leaf.layout).unwrap_or(0);
            let branch = self.branch(leaf.branch)?;
            for (number, (basket, entries)) in baskets.into_iter().enumerate() {
                let own = out.take().map(|bytes| {
                    let (own, rest) = bytes.split_at_mut((entries.len() * width).min(bytes.len()));
                    out = Some(rest);
                    own
                });
                let range = self.source.range(branch, basket);
                let range = range.map_err(|e| self.named(leaf.branch, basket, e))?;
                let first_entry = self.first_entry(leaf.branch, basket)?;
                parts.push(BasketEntries { number, leaf: index, basket, entries, out: own, range, first_entry });
            }
        }
        // One cluster after the other, each as it lies in the file, so that few requests fetch it.
        let place = |part: &BasketEntries<'_>| part.range;
        parts.sort_by_cached_key(|part| (self.source.cluster_of(part.first_entry), place(part)));
        let columns = self.columns(leaves, parts)?;
        let bytes = columns.iter().flatten().map(Piece::bytes).sum();
        let join = |((leaf, pieces), buffer): ((&Leaf<'_>, Vec<Piece>), Option<ValueBuffer>)| match buffer {
            Some(buffer) => {
                let data = ArrayData::builder(leaf.data_type.clone()).len(count as usize).add_buffer(buffer.into());
                Ok(make_array(data.build().map_err(mismatch)?))
            }
            None => joined(leaf, pieces),
        };
        pool::map(leaves.iter().zip(columns).zip(buffers).collect(), bytes, join)
    }

    fn branch(&self, index: usize) -> Result<&Branch> {
        self.source.tree().branches.get(index).ok_or_else(|| Error::corrupt("the branch does not exist"))
    }

    /// Where a basket is, and its entries.
    fn place(&self, branch: usize, basket: usize) -> Result<&BasketPlace> {
        let place = self.branch(branch)?.baskets.get(basket);
        place.ok_or_else(|| Error::corrupt("the basket does not exist"))
    }

    fn named(&self, branch: usize, basket: usize, error: impl Into<Error>) -> Error {
        let path = self.source.tree().path(branch);
        error.into().within(format!("basket {basket}")).within(format!("branch '{path}'"))
    }

    /// The baskets that hold entries, and which of their entries.
    fn baskets(&self, branch: usize, entries: &[Range<u64>]) -> Result<Vec<(usize, Range<usize>)>> {
        let branch = self.branch(branch)?;
        let mut found = Vec::new();
        for wanted in entries {
            let first = branch.baskets.partition_point(|place| place.entries.end <= wanted.start);
            let mut next = wanted.start;
            for (basket, place) in branch.baskets.iter().enumerate().skip(first) {
                if place.entries.start >= wanted.end {
                    break;
                }
                let (start, end) = (place.entries.start.max(wanted.start), place.entries.end.min(wanted.end));
                if start >= end {
                    continue;
                }
                next = end;
                let within = |entry: u64| (entry - place.entries.start) as usize;
                found.push((basket, within(start)..within(end)));
            }
            if next < wanted.end {
                let what = format!("branch '{}' has no entry {next}", branch.name);
                return Err(Error::corrupt(what));
            }
        }
        Ok(found)
    }

    /// Bytes of baskets in the file.
    fn stored_bytes(&self, branch: usize, baskets: &[(usize, Range<usize>)]) -> Result<u64> {
        let branch = self.branch(branch)?;
        let places = baskets.iter().filter_map(|(basket, _)| branch.baskets.get(*basket));
        Ok(places.map(|place| place.stored.bytes()).sum())
    }

    /// The entry of the branch with which a basket begins.
    fn first_entry(self, branch: usize, basket: usize) -> Result<u64> {
        Ok(self.place(branch, basket)?.entries.start)
    }

    /// Checks a basket against its branch, and adds the numbers of items that other branches store for its entries.
    fn prepare(
        self,
        branch: usize,
        number: usize,
        layout: &ValueLayout,
        basket: &mut Basket<'_>,
        expected: usize,
        entries: &Range<usize>,
    ) -> Result<()> {
        counted(basket, expected)?;
        let ValueLayout::Rest(item) = layout else { return Ok(()) };
        if !basket.has_positions() {
            basket.set_lengths(self.lengths(branch, number, item, basket.entries)?)?;
        }
        let first = self.first_entry(branch, number)?;
        let (start, end) = (first + entries.start as u64, first + entries.end as u64);
        if let ValueLayout::CountedInBranch { counter, .. } = **item {
            let start = if basket.has_positions() { start } else { first };
            basket.set_counts(self.counts(counter, start..end)?);
        }
        // If nothing is stored for any item, the lists look empty.
        match basket.data.is_empty() && item.fixed_bytes() != Some(0) {
            true => self.check_items(branch, start..end, repeat_n(0, entries.len()), || left_out().into()),
            false => Ok(()),
        }
    }

    /// Passes a basket, decompressed, and the number of entries that the branch expects in it. `used` are the entries that
    /// are needed, counted within the basket; `None` for all.
    fn with_basket<T>(
        self,
        branch: usize,
        basket: usize,
        range: Option<BlobRange>,
        fetched: Option<Bytes>,
        used: Option<Range<usize>>,
        work: impl FnOnce(Basket<'_>, usize) -> Result<T>,
    ) -> Result<T> {
        let place = self.place(branch, basket)?;
        let expected = (place.entries.end - place.entries.start) as usize;
        let range = match (&place.stored, range) {
            (Stored::Embedded(bytes), _) => {
                let basket = open_embedded(bytes)?;
                self.source.session().counters().decompress(bytes.len(), bytes.len() as u64, || ());
                return work(basket, expected);
            }
            (Stored::InFile { .. }, Some(range)) => range,
            (Stored::InFile { .. }, None) => return Err(Error::corrupt("basket lacks a position")),
        };
        let of = self.branch(branch)?;
        let names = [of.file_name.as_str(), of.name.as_str()];
        let used = used.unwrap_or(0..expected);
        let used = UsedPart { count: used.len(), end: used.end, total: expected };
        let baskets = self.source.kept(self.memory);
        if let Some(kept) = baskets.and_then(|baskets| baskets.get(&range, used)) {
            check_record(names, &kept, range.start)?;
            let head = BasketHead::read(&kept, range.start)?;
            let payload = kept.get(usize::from(head.key_bytes)..).unwrap_or_default();
            return work(head.open(payload)?, expected);
        }
        with_scratch(|scratch| {
            let _reserved;
            let record: &[u8] = match &fetched {
                Some(bytes) => bytes,
                None => {
                    let bytes = range.bytes();
                    _reserved = self.memory.reserve_scratch(bytes, "a basket")?;
                    let record = sized(&mut scratch.sealed, bytes)?;
                    self.source.read_into(&range, record)?;
                    record
                }
            };
            check_record(names, record, range.start)?;
            let head = BasketHead::read(record, range.start)?;
            let payload = record.get(usize::from(head.key_bytes)..head.stored_bytes as usize);
            let payload = payload.ok_or_else(|| {
                Error::corrupt(format!("record has {} bytes, but the tree says {}", head.stored_bytes, record.len()))
            })?;
            let counters = self.source.session().counters();
            if !head.is_compressed() {
                counters.decompress(payload.len(), payload.len() as u64, || ());
                return work(head.open(payload)?, expected);
            }
            let unpacked_bytes = u64::from(head.object_bytes);
            let _unpacked = self.memory.reserve_scratch(unpacked_bytes, "a decompressed basket")?;
            let decompress = |unpacked: &mut [u8]| {
                counters.decompress(payload.len(), unpacked_bytes, || compression::decompress_into(payload, unpacked))
            };
            let (key, _) = record.split_at(usize::from(head.key_bytes));
            let kept_bytes = key.len() as u64 + unpacked_bytes;
            if let Some(mut room) = baskets.and_then(|baskets| baskets.room(&range, kept_bytes, used)) {
                let (front, unpacked) = room.page().split_at_mut(key.len());
                front.copy_from_slice(key);
                decompress(unpacked)?;
                return work(head.open(&room.keep()[key.len()..])?, expected);
            }
            let unpacked = sized(&mut scratch.packed, unpacked_bytes)?;
            decompress(unpacked)?;
            work(head.open(unpacked)?, expected)
        })
    }
}

/// Bytes of numbers that are in memory as they are in the file, except for their byte order.
fn plain_width(layout: &ValueLayout) -> Option<usize> {
    match layout {
        ValueLayout::Number(Basic::Bool | Basic::Double32 | Basic::Float16, _) => None,
        ValueLayout::Number(..) => layout.fixed_bytes(),
        _ => None,
    }
}

/// Copies numbers into their place.
fn plain(basket: &Basket<'_>, entries: &Range<usize>, width: usize, out: &mut [u8]) -> Result<()> {
    let bytes = basket.fixed_range(entries, width)?;
    swap(width, basket.data.get(bytes).unwrap_or_default(), out);
    Ok(())
}
