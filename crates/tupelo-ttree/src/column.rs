//! From the bytes of entries to Arrow arrays.

mod finish;
mod numbers;
mod objects;
mod vectors;
mod versions;

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use arrow_buffer::{MutableBuffer, OffsetBuffer, ScalarBuffer};
use tupelo_format::object::Basic;
use tupelo_format::streamer::{ClassInfo, Streamed};
use tupelo_format::wire::Memory;
use tupelo_format::{Error, ErrorKind, Result};

pub use self::numbers::swap;
use self::numbers::{memory_bytes, numbers};
use self::objects::{MemberWise, append_members, append_object, triangle};
use self::vectors::Vectors;
use crate::Basket;
use crate::layout::{OtherVersion, ValueLayout};

/// Items that take no bytes; a number in the file gives their count.
pub const MAX_EMPTY_ITEMS: usize = 1 << 20;
/// Memory for the expected values, as a multiple of their estimated size.
const SLACK: f64 = 1.05;

/// The values of a layout, as they are read.
#[derive(Debug)]
pub enum Column {
    /// Numbers in the byte order of the machine.
    Numbers(MutableBuffer),
    /// `bool`, a byte each.
    Bools(Vec<u8>),
    /// Texts and objects that are left as bytes.
    Bytes(Offsets, MutableBuffer),
    /// Items of lists.
    List(Offsets, Box<Column>),
    /// Items of fixed arrays, and how many arrays there are.
    Fixed(Box<Column>, usize),
    /// Members, and how many records there are.
    Record(Vec<Column>, usize),
}

/// The error for values that were not written: ROOT writes nothing of a collection for which it has no code, such as
/// `std::bitset` in older files.
pub fn left_out() -> Error {
    Error::unsupported("its entries are empty: the program that wrote the file did not store them")
}

/// Where lists end in their items, from 0 on.
#[derive(Debug)]
pub struct Offsets(Vec<i64>);

impl Offsets {
    fn new() -> Self {
        Self(vec![0])
    }

    fn last(&self) -> i64 {
        self.0.last().copied().unwrap_or(0)
    }

    fn push_length(&mut self, length: usize) {
        self.0.push(self.last().saturating_add(length as i64));
    }

    /// Adds lists of items of a width in bytes, which begin and end at positions that ascend. The error is the number of
    /// the list that is not whole items.
    fn extend_between(&mut self, positions: &[u32], width: usize) -> std::result::Result<(), usize> {
        let Some((&first, ends)) = positions.split_first() else { return Ok(()) };
        // No basket has that many bytes.
        let width = u32::try_from(width).unwrap_or(u32::MAX);
        let (last, mut rest) = (self.last(), 0);
        let bytes = |end: &u32| end.wrapping_sub(first);
        match width.is_power_of_two() {
            // Division takes longer than all the rest.
            true => self.0.extend(ends.iter().map(bytes).map(|bytes| {
                rest |= bytes & (width - 1);
                last.saturating_add(i64::from(bytes >> width.trailing_zeros()))
            })),
            false => self.0.extend(ends.iter().map(bytes).map(|bytes| {
                rest |= bytes % width;
                last.saturating_add(i64::from(bytes / width))
            })),
        }
        let is_part = |end: &u32| !bytes(end).is_multiple_of(width);
        match rest {
            0 => Ok(()),
            _ => Err(ends.iter().position(is_part).unwrap_or(0)),
        }
    }

    fn len(&self) -> usize {
        self.0.len().saturating_sub(1)
    }

    fn finish(self) -> OffsetBuffer<i64> {
        // They ascend, because they are sums of lengths.
        OffsetBuffer::new(ScalarBuffer::from(self.0))
    }
}

/// A cursor over the entries of a basket.
struct Entries<'a> {
    stream: Streamed<'a>,
    /// Where the current entry ends.
    end: usize,
    /// Whether that is known from the positions of the entries.
    is_bounded: bool,
    /// The numbers of values of the items, if another branch has them.
    counts: std::slice::Iter<'a, usize>,
    /// The class of an object that has no head: a custom streamer may have written it.
    without_head: Option<Arc<ClassInfo>>,
    /// Columns for objects of other versions of their class, which are used again.
    scratch: HashMap<*const OtherVersion, Vec<Column>>,
    /// For values that are not in the file.
    memory: &'a Memory,
}

impl<'a> Entries<'a> {
    /// All values of a basket, or a part of them, one after the other.
    fn new(data: &'a [u8], basket: &'a Basket<'_>, memory: &'a Memory) -> Self {
        Self {
            stream: Streamed::new(data, basket.key_bytes.into()),
            end: data.len(),
            is_bounded: false,
            counts: [].iter(),
            without_head: None,
            scratch: HashMap::new(),
            memory,
        }
    }

    /// An error in values: not damage if a custom streamer wrote them.
    fn without_head(&self, error: Error) -> Error {
        match &self.without_head {
            Some(class) if error.kind() == ErrorKind::Corrupt => {
                Error::unsupported(format!("class {} has a custom format, which is not supported: {error}", class.name))
            }
            _ => error,
        }
    }

    fn left(&self) -> usize {
        self.end.saturating_sub(self.stream.cursor.position())
    }

    /// The maximum number of items.
    fn most(&self, item: &ValueLayout) -> usize {
        if is_empty(item) { MAX_EMPTY_ITEMS } else { self.stream.cursor.remaining() }
    }

    /// A number of items that take at least a byte each.
    fn count(&mut self, item: &ValueLayout) -> Result<usize> {
        let at = self.stream.cursor.offset();
        let count = self.stream.cursor.i32_be()?;
        match usize::try_from(count) {
            Ok(count) if count <= self.most(item) => Ok(count),
            _ => Err(Error::corrupt(format!("container has {count} items, but {} bytes left", self.left())).at(at)),
        }
    }
}

/// Whether values may take no bytes.
fn is_empty(item: &ValueLayout) -> bool {
    match item {
        ValueLayout::Fixed(count, item) => *count == 0 || is_empty(item),
        ValueLayout::Members(members) => members.iter().all(|(_, member)| is_empty(member)),
        // Members that are stored together have no head.
        ValueLayout::Object(object) => object.members.iter().all(|(_, member)| is_empty(member)),
        _ => false,
    }
}

impl Column {
    /// No values yet.
    pub fn new(layout: &ValueLayout) -> Self {
        match layout {
            ValueLayout::Number(Basic::Bool, _) => Self::Bools(Vec::new()),
            ValueLayout::Number(..) | ValueLayout::ObjectBits => Self::Numbers(MutableBuffer::new(0)),
            ValueLayout::Text | ValueLayout::Leaf | ValueLayout::Characters | ValueLayout::Opaque => {
                Self::Bytes(Offsets::new(), MutableBuffer::new(0))
            }
            ValueLayout::Fixed(_, item) => Self::Fixed(Box::new(Self::new(item)), 0),
            ValueLayout::Bits(_) => Self::Fixed(Box::new(Self::Bools(Vec::new())), 0),
            ValueLayout::Counted(item)
            | ValueLayout::Rest(item)
            | ValueLayout::FlaggedRest(item)
            | ValueLayout::Pointed { item, .. }
            | ValueLayout::CountedBy { item, .. }
            | ValueLayout::CountedInBranch { item, .. } => Self::List(Offsets::new(), Box::new(Self::new(item))),
            ValueLayout::Headed(body) | ValueLayout::Named { item: body, .. } => Self::new(body),
            ValueLayout::Pair(_)
            | ValueLayout::Members(_)
            | ValueLayout::Triangle { .. }
            | ValueLayout::Object(_)
            | ValueLayout::RootObject
            | ValueLayout::Reference => {
                let members = layout.members().unwrap_or_default().into_iter();
                Self::Record(members.map(|(_, member)| Self::new(member)).collect(), 0)
            }
        }
    }

    /// Bytes of the values so far.
    pub fn bytes(&self) -> usize {
        let offsets = |offsets: &Offsets| size_of_val(offsets.0.as_slice());
        match self {
            Self::Numbers(bytes) => bytes.len(),
            Self::Bools(bytes) => bytes.len(),
            Self::Bytes(ends, bytes) => offsets(ends).saturating_add(bytes.len()),
            Self::List(ends, items) => offsets(ends).saturating_add(items.bytes()),
            Self::Fixed(items, _) => items.bytes(),
            Self::Record(columns, _) => columns.iter().map(Self::bytes).fold(0, usize::saturating_add),
        }
    }

    /// Reserves memory for more values: the given multiple of the present ones, and a little more.
    pub fn reserve(&mut self, share: f64) {
        let more = |len: usize| (len as f64 * share * SLACK) as usize;
        let offsets = |offsets: &mut Offsets| offsets.0.reserve(more(offsets.0.len()));
        match self {
            Self::Numbers(bytes) => bytes.reserve(more(bytes.len())),
            Self::Bools(bytes) => bytes.reserve(more(bytes.len())),
            Self::Bytes(ends, bytes) => {
                offsets(ends);
                bytes.reserve(more(bytes.len()));
            }
            Self::List(ends, items) => {
                offsets(ends);
                items.reserve(share);
            }
            Self::Fixed(items, _) => items.reserve(share),
            Self::Record(columns, _) => columns.iter_mut().for_each(|column| column.reserve(share)),
        }
    }

    /// Appends the values of some entries of a basket. Members that the stored version of their class lacks take `memory`.
    ///
    /// # Errors
    /// Corrupt where the bytes do not fit the layout; unsupported for unknown versions and forms of classes; memory if
    /// values that are not stored exceed the memory.
    pub fn read(
        &mut self,
        layout: &ValueLayout,
        basket: &Basket<'_>,
        entries: Range<usize>,
        memory: &Memory,
    ) -> Result<()> {
        if let Some(width) = layout.fixed_bytes() {
            return self.read_fixed(layout, basket, entries, width, memory);
        }
        let is_empty = basket.data.is_empty();
        self.read_streamed(layout, basket, entries, memory).map_err(|error| match is_empty {
            true => left_out(),
            false => error,
        })
    }

    /// The number of items in each list; empty for other columns.
    pub fn list_lengths(&self) -> impl Iterator<Item = usize> {
        let offsets = match self {
            Self::List(offsets, _) => offsets.0.as_slice(),
            _ => &[],
        };
        let ends = offsets.iter().skip(1);
        offsets.iter().zip(ends).map(|(start, end)| usize::try_from(end - start).unwrap_or(0))
    }

    /// Values of any length.
    fn read_streamed(
        &mut self,
        layout: &ValueLayout,
        basket: &Basket<'_>,
        entries: Range<usize>,
        memory: &Memory,
    ) -> Result<()> {
        let mut source = Entries {
            is_bounded: basket.has_positions(),
            counts: basket.counts.iter(),
            ..Entries::new(basket.data, basket, memory)
        };
        if basket.has_positions() {
            if let (ValueLayout::Rest(item), Self::List(offsets, values)) = (layout, &mut *self)
                && let Some(width) = item.fixed_bytes().filter(|&width| width > 0)
            {
                return values.read_counted((item, width), offsets, basket, entries, memory);
            }
            if let Some(mut vectors) = Vectors::of(layout, self)
                && vectors.read(basket, entries.clone())
            {
                return Ok(());
            }
            for index in entries {
                let range = basket.entry(index).unwrap_or_default();
                source.stream.go_to(range.start)?;
                source.end = range.end;
                self.append_entry(layout, &mut source, index)?;
                if source.stream.cursor.position() != range.end {
                    let taken = source.stream.cursor.position().saturating_sub(range.start);
                    let what = format!("entry {index} takes {taken} bytes, expected {}", range.len());
                    return Err(source.without_head(Error::corrupt(what)));
                }
            }
            return Ok(());
        }
        // One entry after the other, each as long as its values.
        let (skipped, read) = (0..entries.start.min(entries.end), entries);
        if !skipped.is_empty() {
            let mut unused = Self::new(layout);
            skipped.into_iter().try_for_each(|index| unused.append_entry(layout, &mut source, index))?;
        }
        read.into_iter().try_for_each(|index| self.append_entry(layout, &mut source, index))
    }

    fn append_entry(&mut self, layout: &ValueLayout, source: &mut Entries<'_>, index: usize) -> Result<()> {
        self.append(layout, source, 1).map_err(|error| source.without_head(error.within(format_args!("entry {index}"))))
    }

    /// Values that all have the same length.
    fn read_fixed(
        &mut self,
        layout: &ValueLayout,
        basket: &Basket<'_>,
        entries: Range<usize>,
        width: usize,
        memory: &Memory,
    ) -> Result<()> {
        let (bytes, count) = (basket.fixed_range(&entries, width)?, entries.len());
        let data = basket.data.get(bytes).unwrap_or_default();
        let mut source = Entries::new(data, basket, memory);
        self.append(layout, &mut source, count)
    }

    /// As many items as fit into each entry.
    fn read_counted(
        &mut self,
        (item, width): (&ValueLayout, usize),
        offsets: &mut Offsets,
        basket: &Basket<'_>,
        entries: Range<usize>,
        memory: &Memory,
    ) -> Result<()> {
        let positions = basket.positions(&entries).unwrap_or_default();
        let (start, end) = (positions.first().copied().unwrap_or(0), positions.last().copied().unwrap_or(0));
        offsets.extend_between(positions, width).map_err(|index| {
            let bytes = basket.entry(entries.start + index).unwrap_or_default().len();
            Error::corrupt(format!("entry {} has {bytes} bytes, not a multiple of {width}", entries.start + index))
        })?;
        let data = basket.data.get(start as usize..end as usize).unwrap_or_default();
        let mut source = Entries::new(data, basket, memory);
        self.append(item, &mut source, data.len() / width)
    }

    /// Number of values so far.
    fn len(&self, layout: &ValueLayout) -> usize {
        match (self, layout) {
            (_, ValueLayout::Headed(body) | ValueLayout::Named { item: body, .. }) => self.len(body),
            (Self::Numbers(bytes), ValueLayout::Number(basic, _)) => bytes.len() / memory_bytes(*basic),
            (Self::Numbers(bytes), _) => bytes.len() / 4,
            (Self::Bools(bytes), _) => bytes.len(),
            (Self::Bytes(offsets, _) | Self::List(offsets, _), _) => offsets.len(),
            (Self::Fixed(_, count) | Self::Record(_, count), _) => *count,
        }
    }

    /// Appends values that follow each other.
    fn append(&mut self, layout: &ValueLayout, source: &mut Entries<'_>, count: usize) -> Result<()> {
        match (layout, self) {
            (ValueLayout::Number(_, packing), Self::Bools(out)) => {
                debug_assert!(packing.is_none());
                out.extend(source.stream.cursor.take(count)?.iter().map(|&byte| u8::from(byte != 0)));
                Ok(())
            }
            (ValueLayout::Number(basic, packing), Self::Numbers(out)) => numbers(*basic, *packing, source, count, out),
            // ROOT writes nothing for an empty text in a leaf.
            (ValueLayout::Leaf, Self::Bytes(offsets, _)) if source.is_bounded && source.left() == 0 && count == 1 => {
                offsets.push_length(0);
                Ok(())
            }
            (ValueLayout::Text | ValueLayout::Leaf, Self::Bytes(offsets, out)) => each(count, || {
                let text = source.stream.cursor.text_be()?;
                offsets.push_length(text.len());
                out.extend_from_slice(text);
                Ok(())
            }),
            (ValueLayout::Characters, Self::Bytes(offsets, out)) => each(count, || {
                let length = usize::try_from(source.stream.cursor.i32_be()?).unwrap_or(0);
                let text = source.stream.cursor.take(length)?;
                offsets.push_length(text.len());
                out.extend_from_slice(text);
                Ok(())
            }),
            (ValueLayout::Opaque, Self::Bytes(offsets, out)) => {
                let bytes = source.stream.cursor.take(source.left())?;
                offsets.push_length(bytes.len());
                out.extend_from_slice(bytes);
                Ok(())
            }
            (ValueLayout::Fixed(size, item), Self::Fixed(items, total)) => {
                let wanted = size.checked_mul(count).filter(|&wanted| wanted <= source.most(item));
                let wanted = wanted
                    .ok_or_else(|| Error::corrupt(format!("{count} arrays of {size} items exceed the bytes left")))?;
                *total += count;
                items.append(item, source, wanted)
            }
            (ValueLayout::Bits(size), Self::Fixed(bits, total)) => each(count, || {
                let stored = source.count(&ValueLayout::Number(Basic::Bool, None))?;
                if stored != *size {
                    return Err(Error::corrupt(format!("bitset has {stored} bits, expected {size}")));
                }
                *total += 1;
                bits.append(&ValueLayout::Number(Basic::Bool, None), source, stored)
            }),
            (ValueLayout::Counted(item), Self::List(offsets, items)) => each(count, || {
                let length = source.count(item)?;
                offsets.push_length(length);
                items.append(item, source, length)
            }),
            (ValueLayout::Rest(item), Self::List(offsets, items)) => rest(item, items, offsets, source),
            (ValueLayout::FlaggedRest(item), Self::List(offsets, items)) => match source.left() {
                0 => {
                    offsets.push_length(0);
                    Ok(())
                }
                _ => {
                    source.stream.cursor.u8()?;
                    rest(item, items, offsets, source)
                }
            },
            (ValueLayout::Headed(body), column) => column.headed(body, source, count),
            (ValueLayout::Named { class_name, item }, column) => each(count, || {
                let length = source.stream.cursor.u8()?;
                let name = source.stream.cursor.take(length.into())?;
                source.stream.cursor.u8()?;
                if name != class_name.as_bytes() {
                    let what =
                        format!("expected an object of class {class_name}, found {}", String::from_utf8_lossy(name));
                    return Err(Error::unsupported(what));
                }
                column.append(item, source, 1)
            }),
            (ValueLayout::Pair(parts), Self::Record(columns, total)) => {
                *total += count;
                each(count, || {
                    for (part, column) in parts.iter().zip(columns.iter_mut()) {
                        let part = if let ValueLayout::Headed(body) = part { body } else { part };
                        column.append(part, source, 1)?;
                    }
                    Ok(())
                })
            }
            (ValueLayout::Members(members), Self::Record(columns, total)) => {
                *total += count;
                each(count, || append_members(members, columns, source, 1, false))
            }
            (ValueLayout::Object(object), Self::Record(columns, total)) => {
                *total += count;
                each(count, || append_object(object, columns, source, object.may_lack_head))
            }
            (ValueLayout::RootObject, Self::Record(columns, total)) => {
                *total += count;
                each(count, || {
                    let (number, bits) = source.stream.object()?;
                    push_object(columns, number, bits);
                    Ok(())
                })
            }
            (ValueLayout::ObjectBits, Self::Numbers(out)) => each(count, || {
                out.push(source.stream.object_bits()?);
                Ok(())
            }),
            (ValueLayout::Reference, Self::Record(columns, total)) => {
                *total += count;
                each(count, || {
                    let (number, bits, process) = source.stream.reference()?;
                    let process = process
                        .ok_or_else(|| Error::unsupported("a TRef to an object with a TUUID is not supported"))?;
                    if let [Self::Record(object, total), Self::Numbers(processes)] = columns.as_mut_slice() {
                        *total += 1;
                        push_object(object, number, bits);
                        processes.push(process);
                    }
                    Ok(())
                })
            }
            (ValueLayout::Triangle { rows, members }, Self::Record(columns, total)) => {
                *total += count;
                each(count, || triangle(*rows, members, columns, source))
            }
            (ValueLayout::CountedInBranch { item, .. }, Self::List(offsets, items)) => each(count, || {
                let length = source.counts.next().copied();
                let length = length.ok_or_else(|| Error::corrupt("the counter has fewer entries"))?;
                pointed(item, items, offsets, source, length)
            }),
            (layout, _) => Err(Error::unsupported(format!("unexpected values of layout {layout:?}"))),
        }
    }
}

/// Reads items to the end of the entry.
fn rest(item: &ValueLayout, items: &mut Column, offsets: &mut Offsets, source: &mut Entries<'_>) -> Result<()> {
    if let Some(width) = item.fixed_bytes().filter(|&width| width > 0) {
        let length = source.left() / width;
        offsets.push_length(length);
        return items.append(item, source, length);
    }
    let before = items.len(item);
    // One head serves all items.
    let (item, head) = match item {
        ValueLayout::Headed(body) if source.left() > 0 => (&**body, Some(source.stream.version()?)),
        _ => (item, None),
    };
    // Their number is known only at the end. Members may be stored member-wise in each of them.
    if let Some(version) = head.filter(|version| version.is_member_wise) {
        let class = MemberWise::read(source, version.number)?;
        while source.left() > 0 {
            items.append_member_wise(item, source, class)?;
        }
        offsets.push_length(items.len(item).saturating_sub(before));
        return Ok(());
    }
    while source.left() > 0 {
        let at = source.stream.cursor.position();
        items.append(item, source, 1)?;
        if source.stream.cursor.position() == at {
            return Err(Error::corrupt("items without bytes cannot extend to the end of an entry"));
        }
    }
    offsets.push_length(items.len(item).saturating_sub(before));
    Ok(())
}

/// Number and bits of a `TObject`.
fn push_object(columns: &mut [Column], number: u32, bits: u32) {
    for (column, value) in columns.iter_mut().zip([number, bits]) {
        if let Column::Numbers(out) = column {
            out.push(value);
        }
    }
}

/// Values after a pointer: a byte tells whether there are any.
fn pointed(
    item: &ValueLayout,
    items: &mut Column,
    offsets: &mut Offsets,
    source: &mut Entries<'_>,
    length: usize,
) -> Result<()> {
    let is_there = source.stream.cursor.u8()? != 0;
    several(item, items, offsets, source, if is_there { length } else { 0 })
}

/// The number of values that a counter gives.
fn several(
    item: &ValueLayout,
    items: &mut Column,
    offsets: &mut Offsets,
    source: &mut Entries<'_>,
    length: usize,
) -> Result<()> {
    if length > source.stream.cursor.remaining() {
        return Err(Error::corrupt(format!("expected {length} values, {} bytes left", source.left())));
    }
    offsets.push_length(length);
    items.append(item, source, length)
}

fn each(count: usize, mut read: impl FnMut() -> Result<()>) -> Result<()> {
    (0..count).try_for_each(|_| read())
}
