//! Values of one version of a class as those of another: what ROOT calls schema evolution.

use tupelo_format::object::Basic;
use tupelo_format::{Error, Result};

use super::{Column, Offsets, memory_bytes};
use crate::layout::{Layout, place_of};

/// Appends the members of objects of another version: by name; those that it lacks are zero or empty.
pub(super) fn extend_members(
    members: &[(String, Layout)],
    columns: &mut [Column],
    others: &[(String, Layout)],
    stored: Vec<Column>,
    count: usize,
) -> Result<()> {
    let mut stored: Vec<Option<Column>> = stored.into_iter().map(Some).collect();
    for ((name, member), column) in members.iter().zip(columns) {
        let found = place_of(name, member, others);
        let found = found.and_then(|place| Some((&others.get(place)?.1, stored.get_mut(place)?.take()?)));
        match found {
            Some((other, values)) => {
                column.extend(member, other, values).map_err(|error| error.within(format_args!("member '{name}'")))?;
            }
            None => column.extend_empty(member, count),
        }
    }
    Ok(())
}

impl Column {
    /// Appends the values of another layout.
    fn extend(&mut self, to: &Layout, from: &Layout, values: Self) -> Result<()> {
        match (to, from, self, values) {
            (Layout::Headed(to), Layout::Headed(from), column, values) => column.extend(to, from, values),
            (Layout::Number(to, _), Layout::Number(from, _), column, values) if to != from => {
                column.extend_numbers(*to, *from, &values)
            }
            (Layout::Number(..), Layout::Number(..), column, values) => column.concatenate(values),
            (Layout::Counted(to), Layout::Counted(from), Self::List(offsets, items), Self::List(lengths, values)) => {
                offsets.extend(&lengths);
                items.extend(to, from, *values)
            }
            (
                Layout::Fixed(size, to),
                Layout::Fixed(same, from),
                Self::Fixed(items, total),
                Self::Fixed(values, count),
            ) if size == same => {
                *total += count;
                items.extend(to, from, *values)
            }
            (Layout::Object(to), Layout::Object(from), Self::Record(columns, total), Self::Record(values, count)) => {
                *total += count;
                extend_members(&to.members, columns, &from.members, values, count)
            }
            (to, from, column, values) if to == from => column.concatenate(values),
            _ => Err(Error::unsupported("its type changed from one version of the class to the other")),
        }
    }

    /// Appends the values of a column of the same layout.
    fn concatenate(&mut self, values: Self) -> Result<()> {
        match (self, values) {
            (Self::Numbers(out), Self::Numbers(values)) => out.extend_from_slice(values.as_slice()),
            (Self::Bools(out), Self::Bools(values)) => out.extend(values),
            (Self::Bytes(offsets, out), Self::Bytes(lengths, values)) => {
                offsets.extend(&lengths);
                out.extend_from_slice(values.as_slice());
            }
            (Self::List(offsets, items), Self::List(lengths, values)) => {
                offsets.extend(&lengths);
                items.concatenate(*values)?;
            }
            (Self::Fixed(items, total), Self::Fixed(values, count)) => {
                *total += count;
                items.concatenate(*values)?;
            }
            (Self::Record(columns, total), Self::Record(values, count)) => {
                *total += count;
                columns.iter_mut().zip(values).try_for_each(|(column, values)| column.concatenate(values))?;
            }
            _ => return Err(Error::unsupported("values of two forms")),
        }
        Ok(())
    }

    /// Appends numbers of another type, as C++ converts them.
    fn extend_numbers(&mut self, to: Basic, from: Basic, values: &Self) -> Result<()> {
        let bytes = match values {
            Self::Numbers(bytes) => bytes.as_slice(),
            Self::Bools(bytes) => bytes,
            _ => return Err(Error::unsupported("values that are not numbers")),
        };
        for value in bytes.chunks_exact(memory_bytes(from)).map(|bytes| Wide::new(from, bytes)) {
            match self {
                Self::Bools(out) => out.push(u8::from(value.is_not_zero())),
                Self::Numbers(out) => {
                    let (bytes, width) = value.narrowed(to);
                    out.extend_from_slice(bytes.get(..width).unwrap_or_default());
                }
                _ => return Err(Error::unsupported("values that are not numbers")),
            }
        }
        Ok(())
    }

    /// Appends zeros, empty lists and empty texts.
    fn extend_empty(&mut self, layout: &Layout, count: usize) {
        match (layout, self) {
            (Layout::Headed(body) | Layout::Named { item: body, .. }, column) => column.extend_empty(body, count),
            (layout, Self::Numbers(out)) => {
                let width = match layout {
                    Layout::Number(basic, _) => memory_bytes(*basic),
                    // `fPID` of references is added by their members.
                    _ => size_of::<u32>(),
                };
                out.resize(out.len().saturating_add(count.saturating_mul(width)), 0);
            }
            (_, Self::Bools(out)) => out.resize(out.len().saturating_add(count), 0),
            (_, Self::Bytes(offsets, _) | Self::List(offsets, _)) => (0..count).for_each(|_| offsets.push_length(0)),
            (layout, Self::Fixed(items, total)) => {
                *total += count;
                match layout {
                    Layout::Fixed(size, item) => items.extend_empty(item, size.saturating_mul(count)),
                    Layout::Bits(size) => {
                        items.extend_empty(&Layout::Number(Basic::Bool, None), size.saturating_mul(count));
                    }
                    _ => {}
                }
            }
            (layout, Self::Record(columns, total)) => {
                *total += count;
                let number = Layout::Number(Basic::U32, None);
                let process = [Layout::RootObject, Layout::Number(Basic::U16, None)];
                let members: Vec<&Layout> = match layout {
                    Layout::Members(members) | Layout::Triangle { members, .. } => {
                        members.iter().map(|(_, member)| member).collect()
                    }
                    Layout::Object(object) => object.members.iter().map(|(_, member)| member).collect(),
                    Layout::Pair(parts) => parts.iter().collect(),
                    Layout::Reference => process.iter().collect(),
                    _ => vec![&number, &number],
                };
                members.into_iter().zip(columns).for_each(|(member, column)| column.extend_empty(member, count));
            }
        }
    }
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
