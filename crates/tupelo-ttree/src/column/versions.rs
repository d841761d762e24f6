//! Converts values of one version of a class to another: ROOT's schema evolution.

use std::sync::Arc;

use tupelo_format::object::Basic;
use tupelo_format::wire::Memory;
use tupelo_format::{Error, Result};

use super::{Column, Offsets, memory_bytes};
use crate::layout::{OtherVersion, ValueLayout};

/// Appends the members of objects of another version; those that it lacks are zero or empty.
pub(super) fn extend_members(
    members: &[(String, ValueLayout)],
    columns: &mut [Column],
    other: &OtherVersion,
    stored: &[Column],
    count: usize,
    memory: &Memory,
) -> Result<()> {
    for (((name, member), column), counterpart) in members.iter().zip(columns).zip(&other.counterparts) {
        let found = counterpart.and_then(|it| Some((it, other.members.get(it.place)?, stored.get(it.place)?)));
        match found {
            Some((it, _, values)) if it.is_equal => column.concatenate(values)?,
            Some((_, (_, from), values)) => {
                let extended = column.extend(member, from, values, memory);
                extended.map_err(|error| error.within(format_args!("member '{name}'")))?;
            }
            None => column.extend_empty(member, count, memory)?,
        }
    }
    Ok(())
}

impl Column {
    /// Appends the values of another layout. Items of lists that are all empty are not looked at.
    fn extend(&mut self, to: &ValueLayout, from: &ValueLayout, values: &Self, memory: &Memory) -> Result<()> {
        match (to, from, self, values) {
            (ValueLayout::Headed(to), ValueLayout::Headed(from), column, values) => {
                column.extend(to, from, values, memory)
            }
            (ValueLayout::Number(to, _), ValueLayout::Number(from, _), column, values) if to != from => {
                column.extend_numbers(*to, *from, values)
            }
            (ValueLayout::Number(..), ValueLayout::Number(..), column, values) => column.concatenate(values),
            (
                ValueLayout::Counted(to),
                ValueLayout::Counted(from),
                Self::List(offsets, items),
                Self::List(lengths, values),
            ) => {
                offsets.extend(lengths);
                if lengths.last() == 0 { Ok(()) } else { items.extend(to, from, values, memory) }
            }
            (
                ValueLayout::Fixed(size, to),
                ValueLayout::Fixed(same, from),
                Self::Fixed(items, total),
                Self::Fixed(values, count),
            ) if size == same => {
                *total += count;
                items.extend(to, from, values, memory)
            }
            (
                ValueLayout::Object(to),
                ValueLayout::Object(from),
                Self::Record(columns, total),
                Self::Record(values, count),
            ) => {
                *total += count;
                // Of bases, each version of a class states one.
                match to.others.iter().find(|other| Arc::ptr_eq(&other.class, &from.class)) {
                    Some(other) => extend_members(&to.members, columns, other, values, *count, memory),
                    None => Err(changed()),
                }
            }
            _ => Err(changed()),
        }
    }

    /// Appends the values of a column of the same layout.
    fn concatenate(&mut self, values: &Self) -> Result<()> {
        match (self, values) {
            (Self::Numbers(out), Self::Numbers(values)) => out.extend_from_slice(values.as_slice()),
            (Self::Bools(out), Self::Bools(values)) => out.extend_from_slice(values),
            (Self::Bytes(offsets, out), Self::Bytes(lengths, values)) => {
                offsets.extend(lengths);
                out.extend_from_slice(values.as_slice());
            }
            (Self::List(offsets, items), Self::List(lengths, values)) => {
                offsets.extend(lengths);
                if lengths.last() > 0 {
                    items.concatenate(values)?;
                }
            }
            (Self::Fixed(items, total), Self::Fixed(values, count)) => {
                *total += count;
                items.concatenate(values)?;
            }
            (Self::Record(columns, total), Self::Record(values, count)) => {
                *total += count;
                columns.iter_mut().zip(values).try_for_each(|(column, values)| column.concatenate(values))?;
            }
            _ => return Err(Error::unsupported("values have incompatible layouts")),
        }
        Ok(())
    }

    /// Removes all values, and keeps their memory. Items of lists that are all empty have none.
    pub fn clear(&mut self) {
        match self {
            Self::Numbers(bytes) => bytes.clear(),
            Self::Bools(bytes) => bytes.clear(),
            Self::Bytes(offsets, bytes) => {
                offsets.0.truncate(1);
                bytes.clear();
            }
            Self::List(offsets, items) => {
                if offsets.last() > 0 {
                    items.clear();
                }
                offsets.0.truncate(1);
            }
            Self::Fixed(items, count) => {
                *count = 0;
                items.clear();
            }
            Self::Record(columns, count) => {
                *count = 0;
                columns.iter_mut().for_each(Self::clear);
            }
        }
    }

    /// Appends numbers of another type, as C++ converts them.
    fn extend_numbers(&mut self, to: Basic, from: Basic, values: &Self) -> Result<()> {
        let bytes = match values {
            Self::Numbers(bytes) => bytes.as_slice(),
            Self::Bools(bytes) => bytes,
            _ => return Err(Error::unsupported("values are not numeric")),
        };
        for value in bytes.chunks_exact(memory_bytes(from)).map(|bytes| Wide::new(from, bytes)) {
            match self {
                Self::Bools(out) => out.push(u8::from(value.is_not_zero())),
                Self::Numbers(out) => {
                    let (bytes, width) = value.narrowed(to);
                    out.extend_from_slice(bytes.get(..width).unwrap_or_default());
                }
                _ => return Err(Error::unsupported("values are not numeric")),
            }
        }
        Ok(())
    }

    /// Appends zeros, empty lists and empty texts. They take memory from the budget first, because no stored bytes limit
    /// their number.
    fn extend_empty(&mut self, layout: &ValueLayout, count: usize, memory: &Memory) -> Result<()> {
        let take = |bytes: usize| memory.take_items::<u8>(count.saturating_mul(bytes), "members that are not stored");
        match (layout, self) {
            (ValueLayout::Headed(body) | ValueLayout::Named { item: body, .. }, column) => {
                column.extend_empty(body, count, memory)
            }
            (layout, Self::Numbers(out)) => {
                let width = match layout {
                    ValueLayout::Number(basic, _) => memory_bytes(*basic),
                    // The bits of an object.
                    _ => size_of::<u32>(),
                };
                take(width)?;
                out.resize(out.len().saturating_add(count.saturating_mul(width)), 0);
                Ok(())
            }
            (_, Self::Bools(out)) => {
                take(1)?;
                out.resize(out.len().saturating_add(count), 0);
                Ok(())
            }
            (_, Self::Bytes(offsets, _) | Self::List(offsets, _)) => {
                take(size_of::<i64>())?;
                (0..count).for_each(|_| offsets.push_length(0));
                Ok(())
            }
            (layout, Self::Fixed(items, total)) => {
                *total += count;
                match layout {
                    ValueLayout::Fixed(size, item) => items.extend_empty(item, size.saturating_mul(count), memory),
                    ValueLayout::Bits(size) => {
                        items.extend_empty(&ValueLayout::Number(Basic::Bool, None), size.saturating_mul(count), memory)
                    }
                    _ => Ok(()),
                }
            }
            (layout, Self::Record(columns, total)) => {
                *total += count;
                let mut members = layout.members().unwrap_or_default().into_iter().zip(columns);
                members.try_for_each(|((_, member), column)| column.extend_empty(member, count, memory))
            }
        }
    }
}

#[cold]
fn changed() -> Error {
    Error::unsupported("its type differs between versions of the class")
}

impl Offsets {
    fn extend(&mut self, lengths: &Self) {
        let start = self.last();
        self.0.extend(lengths.0.iter().skip(1).map(|end| start.saturating_add(*end)));
    }
}

/// A number of any type.
#[derive(Debug, Clone, Copy)]
enum Wide {
    Integer(i128),
    Float(f64),
}

impl Wide {
    fn new(basic: Basic, bytes: &[u8]) -> Self {
        fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
            bytes.first_chunk().copied().unwrap_or([0; N])
        }
        match basic {
            Basic::Bool | Basic::U8 => Self::Integer(u8::from_le_bytes(array(bytes)).into()),
            Basic::I8 => Self::Integer(i8::from_le_bytes(array(bytes)).into()),
            Basic::I16 => Self::Integer(i16::from_le_bytes(array(bytes)).into()),
            Basic::U16 => Self::Integer(u16::from_le_bytes(array(bytes)).into()),
            Basic::I32 => Self::Integer(i32::from_le_bytes(array(bytes)).into()),
            Basic::U32 => Self::Integer(u32::from_le_bytes(array(bytes)).into()),
            Basic::I64 => Self::Integer(i64::from_le_bytes(array(bytes)).into()),
            Basic::U64 => Self::Integer(u64::from_le_bytes(array(bytes)).into()),
            Basic::F32 | Basic::Float16 => Self::Float(f32::from_le_bytes(array(bytes)).into()),
            Basic::F64 | Basic::Double32 => Self::Float(f64::from_le_bytes(array(bytes))),
        }
    }

    fn is_not_zero(self) -> bool {
        match self {
            Self::Integer(value) => value != 0,
            Self::Float(value) => value != 0.0,
        }
    }

    /// The bytes of a number of a type, and how many they are.
    fn narrowed(self, basic: Basic) -> ([u8; 8], usize) {
        let bits = match (basic, self) {
            (Basic::F32 | Basic::Float16, Self::Integer(value)) => (value as f32).to_bits().into(),
            (Basic::F32 | Basic::Float16, Self::Float(value)) => (value as f32).to_bits().into(),
            (Basic::F64 | Basic::Double32, Self::Integer(value)) => (value as f64).to_bits(),
            (Basic::F64 | Basic::Double32, Self::Float(value)) => value.to_bits(),
            (Basic::U64, Self::Float(value)) => value as u64,
            (_, Self::Float(value)) => (value as i64).cast_unsigned(),
            // The low bytes, as C++ narrows integers.
            (_, Self::Integer(value)) => value as u64,
        };
        (bits.to_le_bytes(), memory_bytes(basic))
    }
}
