//! From Arrow arrays to the bytes of entries.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, LargeListArray};
use arrow_schema::{DataType, Field};
use tupelo_format::object::Basic;
use tupelo_format::streamer::IS_REFERENCED;
use tupelo_format::{Error, Result};

use super::form::number;

/// Set in a byte count, to tell it from a class version.
const BYTE_COUNT: u32 = 0x4000_0000;
/// In front of the name of a class (`kNewClassTag`). It may be repeated.
const NEW_CLASS: u32 = 0xffff_ffff;
/// The maximum of a byte count.
const MAX_COUNTED_BYTES: usize = 0x3fff_ffff;

/// How the values of a branch are stored.
#[derive(Debug, Clone, PartialEq)]
pub enum Encoding {
    /// Big-endian numbers.
    Number(Basic),
    /// Length in one byte, or 255 and 32 bits, then the bytes.
    Text,
    /// This number of items for each value.
    Fixed(usize, Box<Encoding>),
    /// The number of items in 32 bits, then the items.
    Counted(Box<Encoding>),
    /// The items only: another branch has their number.
    Items(Box<Encoding>),
    /// The number of items in 32 bits only.
    Count,
    /// Byte count and version, and the checksum of classes without a version; then the value.
    Headed(u16, Option<u32>, Box<Encoding>),
    /// Members of a record, one after the other.
    Members(Vec<Encoding>),
    /// A member of the records in the array.
    Column(usize, Box<Encoding>),
    /// The bits of a `TObject`, and for one that references point to the number of a process.
    ObjectBits,
    /// Version without a byte count; then the value.
    Versioned(u16, Box<Encoding>),
    /// Values with one [head](Self::Headed) for all.
    Together(Box<Encoding>),
    /// Version and checksum of the class of items; then the lists.
    ItemClass(u16, Option<u32>, Box<Encoding>),
    /// Lists of records whose members are stored for all items together: the number of items, and the values of each member.
    MemberWise(Vec<Encoding>),
    /// The same in a `TClonesArray`: its lowest index, zero, follows the number of items.
    Clones(Vec<Encoding>),
    /// A byte that says whether there are any items, then the items.
    Flagged(Box<Encoding>),
    /// These bytes, then the value.
    Prefixed(Vec<u8>, Box<Encoding>),
    /// A pointer to an object that is there: byte count, the name of its class, then the object.
    Pointer(&'static str, Box<Encoding>),
}

impl Encoding {
    /// Bytes of a value, where all have the same number.
    pub fn fixed_bytes(&self) -> Option<usize> {
        match self {
            Self::Number(basic) => Some(number(*basic).3),
            Self::Fixed(size, item) => item.fixed_bytes()?.checked_mul(*size),
            Self::Count => Some(4),
            Self::Members(members) => members.iter().try_fold(0_usize, |sum, it| sum.checked_add(it.fixed_bytes()?)),
            _ => None,
        }
    }

    /// Appends some values of an array.
    ///
    /// # Errors
    /// Unsupported for arrays of another type; limit for values too long for their heads.
    pub fn put(&self, array: &dyn Array, range: Range<usize>, out: &mut Vec<u8>) -> Result<()> {
        match self {
            Self::Number(basic) => numbers(*basic, array, range, out),
            Self::Text => texts(array, range, out),
            Self::Fixed(size, item) => match array.as_fixed_size_list_opt() {
                Some(list) if list.value_length() == small(*size)? => {
                    item.put(list.values(), range.start.saturating_mul(*size)..range.end.saturating_mul(*size), out)
                }
                _ => Err(wrong("fixed-size lists", array)),
            },
            Self::Items(item) => {
                let (list, ends) = (list(array)?, ends(list(array)?, &range)?);
                item.put(list.values(), ends.first().copied().unwrap_or(0)..ends.last().copied().unwrap_or(0), out)
            }
            Self::Count => {
                let ends = ends(list(array)?, &range)?;
                for (start, end) in ends.iter().zip(ends.iter().skip(1)) {
                    out.extend_from_slice(&small(end - start)?.to_be_bytes());
                }
                Ok(())
            }
            Self::Counted(item) => {
                let list = list(array)?;
                let ends = ends(list, &range)?;
                for (&start, &end) in ends.iter().zip(ends.iter().skip(1)) {
                    out.extend_from_slice(&small(end - start)?.to_be_bytes());
                    item.put(list.values(), start..end, out)?;
                }
                Ok(())
            }
            Self::Headed(version, checksum, body) => {
                for index in range {
                    headed(*version, *checksum, body, array, index..index + 1, out)?;
                }
                Ok(())
            }
            Self::Column(column, item) => {
                let column = array.as_struct_opt().and_then(|record| record.columns().get(*column));
                item.put(column.ok_or_else(|| wrong("structs with more members", array))?, range, out)
            }
            Self::ObjectBits => {
                let bits = array.as_primitive_opt::<UInt32Type>().and_then(|array| array.values().get(range));
                for bits in bits.ok_or_else(|| wrong("unsigned int", array))? {
                    out.extend_from_slice(&bits.to_be_bytes());
                    if bits & IS_REFERENCED != 0 {
                        out.extend_from_slice(&[0; 2]);
                    }
                }
                Ok(())
            }
            Self::Versioned(version, body) => {
                for index in range {
                    out.extend_from_slice(&version.to_be_bytes());
                    body.put(array, index..index + 1, out)?;
                }
                Ok(())
            }
            Self::Together(value) => match &**value {
                Self::Headed(version, checksum, body) => headed(*version, *checksum, body, array, range, out),
                value => value.put(array, range, out),
            },
            Self::ItemClass(version, checksum, lists) => {
                out.extend_from_slice(&version.to_be_bytes());
                checksum.iter().for_each(|checksum| out.extend_from_slice(&checksum.to_be_bytes()));
                lists.put(array, range, out)
            }
            Self::MemberWise(members) | Self::Clones(members) => {
                let list = list(array)?;
                let ends = ends(list, &range)?;
                let is_clones = matches!(self, Self::Clones(_));
                for (&start, &end) in ends.iter().zip(ends.iter().skip(1)) {
                    out.extend_from_slice(&small(end - start)?.to_be_bytes());
                    if is_clones {
                        out.extend_from_slice(&[0; 4]);
                    }
                    // Of an empty list, ROOT writes no heads of members.
                    if start < end || is_clones {
                        members.iter().try_for_each(|member| member.put(list.values(), start..end, out))?;
                    }
                }
                Ok(())
            }
            Self::Flagged(item) => {
                let list = list(array)?;
                let ends = ends(list, &range)?;
                for (&start, &end) in ends.iter().zip(ends.iter().skip(1)) {
                    out.push((start < end).into());
                    item.put(list.values(), start..end, out)?;
                }
                Ok(())
            }
            Self::Prefixed(bytes, value) => {
                for index in range {
                    out.extend_from_slice(bytes);
                    value.put(array, index..index + 1, out)?;
                }
                Ok(())
            }
            Self::Pointer(class_name, object) => {
                for index in range {
                    let start = out.len();
                    out.extend_from_slice(&[0; 4]);
                    out.extend_from_slice(&NEW_CLASS.to_be_bytes());
                    out.extend_from_slice(class_name.as_bytes());
                    out.push(0);
                    object.put(array, index..index + 1, out)?;
                    patch_byte_count(out, start)?;
                }
                Ok(())
            }
            Self::Members(members) => {
                let record = array.as_struct_opt().filter(|record| record.num_columns() == members.len());
                let record = record.ok_or_else(|| wrong("structs", array))?;
                for index in range {
                    for (member, column) in members.iter().zip(record.columns()) {
                        member.put(column, index..index + 1, out)?;
                    }
                }
                Ok(())
            }
        }
    }
}

/// Some values with one head.
fn headed(
    version: u16,
    checksum: Option<u32>,
    body: &Encoding,
    array: &dyn Array,
    range: Range<usize>,
    out: &mut Vec<u8>,
) -> Result<()> {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&version.to_be_bytes());
    checksum.iter().for_each(|checksum| out.extend_from_slice(&checksum.to_be_bytes()));
    body.put(array, range, out)?;
    patch_byte_count(out, start)
}

fn patch_byte_count(out: &mut [u8], start: usize) -> Result<()> {
    let bytes = out.len().saturating_sub(start).saturating_sub(4);
    if bytes > MAX_COUNTED_BYTES {
        return Err(Error::limit(format!("object of {bytes} bytes exceeds ROOT's limit of {MAX_COUNTED_BYTES}")));
    }
    if let Some(place) = out.get_mut(start..).and_then(|rest| rest.first_chunk_mut()) {
        *place = (BYTE_COUNT | bytes as u32).to_be_bytes();
    }
    Ok(())
}

fn numbers(basic: Basic, array: &dyn Array, range: Range<usize>, out: &mut Vec<u8>) -> Result<()> {
    macro_rules! put {
        ($type:ty) => {{
            let values = array.as_primitive_opt::<$type>().and_then(|array| array.values().get(range));
            let values = values.ok_or_else(|| wrong(number(basic).1, array))?;
            out.extend(values.iter().flat_map(|value| value.to_be_bytes()));
        }};
    }
    match basic {
        Basic::Bool => {
            let values = array.as_boolean_opt().ok_or_else(|| wrong("bool", array))?.values();
            out.extend(range.map(|index| u8::from(index < values.len() && values.value(index))));
        }
        Basic::I8 => put!(Int8Type),
        Basic::U8 => put!(UInt8Type),
        Basic::I16 => put!(Int16Type),
        Basic::U16 => put!(UInt16Type),
        Basic::I32 => put!(Int32Type),
        Basic::U32 => put!(UInt32Type),
        Basic::I64 => put!(Int64Type),
        Basic::U64 => put!(UInt64Type),
        Basic::F32 | Basic::Float16 => put!(Float32Type),
        Basic::F64 | Basic::Double32 => put!(Float64Type),
    }
    Ok(())
}

fn texts(array: &dyn Array, range: Range<usize>, out: &mut Vec<u8>) -> Result<()> {
    let utf8 = array.as_string_opt::<i64>();
    let binary = array.as_binary_opt::<i64>();
    for index in range {
        let text = match (utf8, binary) {
            (Some(texts), _) if index < texts.len() => texts.value(index).as_bytes(),
            (_, Some(texts)) if index < texts.len() => texts.value(index),
            _ => return Err(wrong("texts", array)),
        };
        match u8::try_from(text.len()) {
            Ok(short) if short < 255 => out.push(short),
            _ => {
                out.push(255);
                out.extend_from_slice(&small(text.len())?.to_be_bytes());
            }
        }
        out.extend_from_slice(text);
    }
    Ok(())
}

fn list(array: &dyn Array) -> Result<&LargeListArray> {
    array.as_list_opt::<i64>().ok_or_else(|| wrong("lists", array))
}

/// Where some lists begin in their items, and where the last one ends.
fn ends(list: &LargeListArray, range: &Range<usize>) -> Result<Vec<usize>> {
    let offsets = list.value_offsets().get(range.start..=range.end);
    let offsets = offsets
        .ok_or_else(|| Error::limit(format!("lists {range:?} are outside the {} lists of the array", list.len())))?;
    Ok(offsets.iter().map(|&offset| usize::try_from(offset).unwrap_or(0)).collect())
}

fn small(count: usize) -> Result<i32> {
    i32::try_from(count).map_err(|_| Error::limit(format!("value of {count} items or bytes is too large")))
}

#[cold]
fn wrong(wanted: &str, array: &dyn Array) -> Error {
    Error::unsupported(format!("column has type {}, expected {wanted}", array.data_type()))
}

/// The column of a member: of the records in an array, or of those in the lists of an array.
///
/// # Errors
/// Unsupported if the member does not exist.
pub fn column(array: &ArrayRef, path: &[usize]) -> Result<ArrayRef> {
    let Some((&member, below)) = path.split_first() else { return Ok(Arc::clone(array)) };
    match array.data_type() {
        DataType::Struct(fields) if member < fields.len() => column(array.as_struct().column(member), below),
        DataType::LargeList(item) => {
            let list = array.as_list::<i64>();
            let items = column(list.values(), path)?;
            let item = Arc::new(Field::new(item.name(), items.data_type().clone(), true));
            let list = LargeListArray::try_new(item, list.offsets().clone(), items, None);
            Ok(Arc::new(list.map_err(|error| Error::corrupt(error.to_string()))?))
        }
        _ => Err(wrong("structs", array)),
    }
}
