//! Objects with their heads, stored member-wise, and of other versions of their class.

use std::sync::Arc;

use tupelo_format::object::Basic;
use tupelo_format::streamer::{ClassInfo, Counter};
use tupelo_format::{Error, Result};

use super::versions::extend_members;
use super::{Column, Entries, each, memory_bytes, pointed, several};
use crate::layout::{BASE, CounterPlace, ObjectLayout, OtherVersion, ValueLayout};

/// Since this version of `TStreamerInfo` the class version of the items precedes members that are stored together.
const MEMBER_WISE_SINCE: u16 = 8;

/// One object with its head, which it may lack.
pub(super) fn append_object(
    object: &ObjectLayout,
    columns: &mut [Column],
    source: &mut Entries<'_>,
    may_lack_head: bool,
) -> Result<()> {
    let within = |error: Error| error.within(format_args!("class {}", object.class.name));
    let start = source.stream.cursor.position();
    let version = source.stream.version()?;
    if may_lack_head && version.end.is_none() {
        source.stream.go_to(start)?;
        source.without_head = Some(Arc::clone(&object.class));
        return append_members(&object.members, columns, source, 1, false).map_err(within);
    }
    let checksum = match version.number {
        // Classes without a version have a checksum instead.
        0 => Some(source.stream.cursor.u32_be()?),
        _ => None,
    };
    let other = version_of(object, version.number, checksum)?;
    append_version(object, other, columns, source, 1, false).map_err(within)?;
    source.stream.check_end(version.end).map_err(within)
}

/// The version of a class that objects have, if it is another one than that of the columns.
fn version_of(object: &ObjectLayout, number: u16, checksum: Option<u32>) -> Result<Option<&OtherVersion>> {
    let is_of = |class: &ClassInfo| match checksum {
        Some(checksum) => class.checksum == checksum,
        None => class.version == i32::from(number.cast_signed()),
    };
    let class = &object.class;
    if is_of(class) {
        return Ok(None);
    }
    // Of some layouts neither version nor checksum is known.
    let is_unknown = class.checksum == 0 && (checksum.is_some() || class.version == 0);
    match object.others.iter().find(|other| is_of(&other.class)) {
        None if !is_unknown => {
            let what = format!(
                "found version {number} of class {}, the streamer info describes version {}",
                class.name, class.version
            );
            Err(Error::unsupported(what))
        }
        other => Ok(other),
    }
}

/// Objects after their head.
fn append_version(
    object: &ObjectLayout,
    other: Option<&OtherVersion>,
    columns: &mut [Column],
    source: &mut Entries<'_>,
    count: usize,
    is_member_wise: bool,
) -> Result<()> {
    let Some(other) = other else {
        return append_members(&object.members, columns, source, count, is_member_wise);
    };
    let scratch = source.scratch.remove(&std::ptr::from_ref(other));
    let new = || other.members.iter().map(|(_, member)| Column::new(member)).collect();
    let mut stored: Vec<Column> = scratch.unwrap_or_else(new);
    append_members(&other.members, &mut stored, source, count, is_member_wise)?;
    extend_members(&object.members, columns, other, &stored, count, source.memory)
        .map_err(|error| error.within(format_args!("version {}", other.class.version)))?;
    stored.iter_mut().for_each(Column::clear);
    source.scratch.insert(other, stored);
    Ok(())
}

pub(super) fn append_members(
    members: &[(String, ValueLayout)],
    columns: &mut [Column],
    source: &mut Entries<'_>,
    count: usize,
    is_member_wise: bool,
) -> Result<()> {
    for (index, (name, member)) in members.iter().enumerate() {
        let Some((before, rest)) = columns.split_at_mut_checked(index) else { break };
        let Some(column) = rest.first_mut() else { break };
        match (member, column) {
            (ValueLayout::Pointed { item, .. } | ValueLayout::CountedBy { item, .. }, Column::List(offsets, items)) => {
                let own = |counter: usize| Some((before.get(counter)?, &members.get(counter)?.1));
                let counts = match member {
                    ValueLayout::Pointed { counter: CounterPlace::InBase(counter), .. } => {
                        counter_in_base(before, members, counter)
                    }
                    ValueLayout::Pointed { counter: CounterPlace::Own(counter), .. }
                    | ValueLayout::CountedBy { counter, .. } => own(*counter),
                    _ => None,
                };
                let (counts, layout) =
                    counts.ok_or_else(|| Error::unsupported("counters in another class are not supported"))?;
                for object in (0..count).rev() {
                    let length = counts.number_from_end(layout, object)?;
                    match member {
                        ValueLayout::Pointed { .. } => pointed(item, items, offsets, source, length)?,
                        _ => several(item, items, offsets, source, length)?,
                    }
                }
            }
            (ValueLayout::Object(base), Column::Record(columns, total)) if name.starts_with(BASE) => {
                *total += count;
                match is_member_wise {
                    // Bases have no head where members of several objects are stored together.
                    true => append_members(&base.members, columns, source, count, true)?,
                    false => each(count, || append_object(base, columns, source, false))?,
                }
            }
            (member, column) => column.append(member, source, count)?,
        }
    }
    Ok(())
}

/// The values of a counter that is a member of a base class.
fn counter_in_base<'c>(
    columns: &'c [Column],
    members: &'c [(String, ValueLayout)],
    counter: &Counter,
) -> Option<(&'c Column, &'c ValueLayout)> {
    columns.iter().zip(members).find_map(|(column, (name, layout))| match (column, layout) {
        (Column::Record(columns, _), ValueLayout::Object(base)) if name.starts_with(BASE) => {
            let is_own =
                |(member, _): &(String, ValueLayout)| base.class.name == counter.class_name && *member == counter.name;
            match base.members.iter().position(is_own) {
                Some(place) => Some((columns.get(place)?, &base.members.get(place)?.1)),
                None => counter_in_base(columns, &base.members, counter),
            }
        }
        _ => None,
    })
}

/// A `TMatrixTSym`: the base, then as many elements as its rows need.
pub(super) fn triangle(
    rows: usize,
    members: &[(String, ValueLayout)],
    columns: &mut [Column],
    source: &mut Entries<'_>,
) -> Result<()> {
    let ([(_, base), (_, ValueLayout::Counted(item))], [object, Column::List(offsets, items)]) = (members, columns)
    else {
        return Err(Error::unsupported("symmetric matrix lacks elements"));
    };
    object.append(base, source, 1)?;
    let rows = match (base, &*object) {
        (ValueLayout::Object(base), Column::Record(columns, _)) => columns.get(rows).zip(base.members.get(rows)),
        _ => None,
    };
    let (column, (_, layout)) = rows.ok_or_else(|| Error::unsupported("symmetric matrix lacks a number of rows"))?;
    let rows = column.number_from_end(layout, 0)?;
    several(item, items, offsets, source, rows.saturating_mul(rows.saturating_add(1)) / 2)
}

impl Column {
    /// Values after their common head.
    pub(super) fn headed(&mut self, body: &ValueLayout, source: &mut Entries<'_>, count: usize) -> Result<()> {
        let version = source.stream.version()?;
        match version.is_member_wise {
            false => self.append(body, source, count)?,
            true => self.member_wise(body, source, count, version.number)?,
        }
        source.stream.check_end(version.end)
    }

    /// Collections whose items' members are stored together.
    fn member_wise(&mut self, body: &ValueLayout, source: &mut Entries<'_>, count: usize, writer: u16) -> Result<()> {
        let class = MemberWise::read(source, writer)?;
        each(count, || self.append_member_wise(body, source, class))
    }

    /// One collection whose items' members are stored together.
    pub(super) fn append_member_wise(
        &mut self,
        body: &ValueLayout,
        source: &mut Entries<'_>,
        class: MemberWise,
    ) -> Result<()> {
        if let (ValueLayout::Fixed(size, item), Self::Fixed(items, total)) = (body, &mut *self) {
            *total += 1;
            return each(*size, || items.append_member_wise(item, source, class));
        }
        let (ValueLayout::Counted(item), Self::List(offsets, items)) = (body, self) else {
            return Err(Error::corrupt("values stored member-wise have no members"));
        };
        let length = source.count(item)?;
        offsets.push_length(length);
        if length == 0 {
            return Ok(());
        }
        let Self::Record(columns, total) = &mut **items else {
            return Err(Error::corrupt("items stored member-wise have no members"));
        };
        *total += length;
        match &**item {
            ValueLayout::Pair(parts) => {
                parts.iter().zip(columns).try_for_each(|(part, column)| column.append(part, source, length))
            }
            ValueLayout::Object(object) => {
                let other = version_of(object, class.number, class.checksum)?;
                append_version(object, other, columns, source, length, true)
            }
            _ => Err(Error::corrupt("items stored member-wise have no members")),
        }
    }
}

impl Column {
    /// A counter, counted from the last one; 0 where it is negative.
    pub(super) fn number_from_end(&self, layout: &ValueLayout, index: usize) -> Result<usize> {
        let (Self::Numbers(bytes), ValueLayout::Number(basic, None)) = (self, layout) else {
            return Err(Error::unsupported("counter is not numeric"));
        };
        let width = memory_bytes(*basic);
        let end = bytes.len().saturating_sub(index.saturating_mul(width));
        let stored = bytes.get(end.saturating_sub(width)..end).unwrap_or_default();
        let mut wide = [0; 8];
        if let Some(low) = wide.get_mut(..stored.len()) {
            low.copy_from_slice(stored);
        }
        let number = u64::from_le_bytes(wide);
        let is_negative = match basic {
            Basic::I8 => (number as u8).cast_signed() < 0,
            Basic::I16 => (number as u16).cast_signed() < 0,
            Basic::I32 => (number as u32).cast_signed() < 0,
            Basic::I64 => number.cast_signed() < 0,
            Basic::U8 | Basic::U16 | Basic::U32 | Basic::U64 => false,
            _ => return Err(Error::unsupported("counter is not an integer")),
        };
        Ok(if is_negative { 0 } else { usize::try_from(number).unwrap_or(usize::MAX) })
    }
}

/// The class of items whose members are stored together.
#[derive(Clone, Copy)]
pub(super) struct MemberWise {
    number: u16,
    /// Classes without a version have a checksum instead.
    checksum: Option<u32>,
}

impl MemberWise {
    pub(super) fn read(source: &mut Entries<'_>, writer: u16) -> Result<Self> {
        if writer < MEMBER_WISE_SINCE {
            return Err(Error::unsupported("member-wise collections from before ROOT 5.24 are not supported"));
        }
        let number = source.stream.cursor.u16_be()?;
        let checksum = if number == 0 { Some(source.stream.cursor.u32_be()?) } else { None };
        Ok(Self { number, checksum })
    }
}
