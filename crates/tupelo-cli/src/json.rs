//! Entries as JSON objects, written directly from Arrow arrays.
//!
//! | field | JSON |
//! |---|---|
//! | record | object; base classes as `:_0`, … |
//! | pair, tuple, collection, fixed array | array |
//! | map | array of `[key, value]` |
//! | bitset | array of 0 and 1, in index order |
//! | optional | the value or `null` |
//! | variant | the bare value; `null` without one |
//! | integer, char, byte | number, exact to 64 bits |
//! | float, double | shortest number that reads back the same; `"NaN"`, `"Infinity"`, `"-Infinity"` |
//! | string | string; `{"base64": "…"}` where its bytes are not UTF-8 |
//! | streamer field | base64 |

pub(crate) mod objects;
#[cfg(test)]
mod tests;

use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, BooleanArray, LargeBinaryArray, LargeStringArray, RecordBatch, StructArray};
use arrow_buffer::NullBuffer;
use arrow_schema::DataType;
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use tupelo::schema::{Field, Kind, Schema};

/// Written text, with the number of strings that are not UTF-8.
#[derive(Debug, Default)]
pub(crate) struct Text {
    /// UTF-8.
    pub(crate) bytes: Vec<u8>,
    /// Number of strings that are not UTF-8, which are written as base64.
    pub(crate) odd_strings: u64,
}

impl Text {
    fn put(&mut self, text: &str) {
        self.bytes.extend_from_slice(text.as_bytes());
    }

    fn byte(&mut self, byte: u8) {
        self.bytes.push(byte);
    }

    fn integer(&mut self, value: impl itoa::Integer) {
        self.bytes.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
    }

    fn float(&mut self, value: impl ryu::Float + Into<f64> + Copy) {
        let wide: f64 = value.into();
        if wide.is_finite() {
            self.bytes.extend_from_slice(ryu::Buffer::new().format_finite(value).as_bytes());
        } else {
            self.put(if wide.is_nan() {
                "\"NaN\""
            } else {
                ["\"Infinity\"", "\"-Infinity\""][usize::from(wide < 0.0)]
            });
        }
    }

    /// A JSON string.
    pub(crate) fn string(&mut self, text: &str) {
        self.byte(b'"');
        let bytes = text.as_bytes();
        let mut done = 0;
        for (at, &byte) in bytes.iter().enumerate() {
            if byte >= 0x20 && byte != b'"' && byte != b'\\' {
                continue;
            }
            self.bytes.extend_from_slice(&bytes[done..at]);
            done = at + 1;
            match byte {
                b'"' => self.put("\\\""),
                b'\\' => self.put("\\\\"),
                b'\n' => self.put("\\n"),
                b'\r' => self.put("\\r"),
                b'\t' => self.put("\\t"),
                _ => {
                    self.put("\\u00");
                    self.byte(b"0123456789abcdef"[usize::from(byte >> 4)]);
                    self.byte(b"0123456789abcdef"[usize::from(byte & 15)]);
                }
            }
        }
        self.bytes.extend_from_slice(&bytes[done..]);
        self.byte(b'"');
    }

    fn base64(&mut self, bytes: &[u8]) {
        self.byte(b'"');
        self.put(&BASE64.encode(bytes));
        self.byte(b'"');
    }
}

/// An array whose type does not match its field; the engine does not return such arrays.
#[derive(Debug)]
pub(crate) struct UnexpectedType(String);

impl std::fmt::Display for UnexpectedType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// The entries of a batch.
pub(crate) struct Entries<'a> {
    columns: Vec<ColumnValues<'a>>,
    /// `{"first":`, then `,"second":` and so on.
    heads: Vec<Vec<u8>>,
}

impl<'a> Entries<'a> {
    /// The entries of a batch that was read with this schema.
    pub(crate) fn new(schema: &Schema, batch: &'a RecordBatch) -> Result<Self, UnexpectedType> {
        let pairs = schema.fields.iter().zip(batch.columns());
        let columns = pairs.map(|(field, array)| ColumnValues::new(field, array)).collect::<Result<_, _>>()?;
        Ok(Self { columns, heads: heads(schema.fields.iter().map(|field| field.name.as_str())) })
    }

    /// The values of each top-level field.
    pub(crate) fn columns(&self) -> &[ColumnValues<'a>] {
        &self.columns
    }

    /// One entry as an object, without a line break.
    pub(crate) fn write(&self, entry: usize, out: &mut Text) {
        object(&self.heads, &self.columns, entry, out);
    }
}

/// The text before each member of an object.
fn heads<'n>(names: impl Iterator<Item = &'n str>) -> Vec<Vec<u8>> {
    let head = |(index, name): (usize, &str)| {
        let mut text = Text::default();
        text.byte(if index == 0 { b'{' } else { b',' });
        text.string(name);
        text.byte(b':');
        text.bytes
    };
    names.enumerate().map(head).collect()
}

fn object(heads: &[Vec<u8>], members: &[ColumnValues<'_>], i: usize, out: &mut Text) {
    if heads.is_empty() {
        out.byte(b'{');
    }
    for (head, member) in heads.iter().zip(members) {
        out.bytes.extend_from_slice(head);
        member.write(i, out);
    }
    out.byte(b'}');
}

/// The values of a field, by type.
pub(crate) enum ColumnValues<'a> {
    Bool(&'a BooleanArray),
    Int8(&'a [i8]),
    Int16(&'a [i16]),
    Int32(&'a [i32]),
    Int64(&'a [i64]),
    UInt8(&'a [u8]),
    UInt16(&'a [u16]),
    UInt32(&'a [u32]),
    UInt64(&'a [u64]),
    Float(&'a [f32]),
    Double(&'a [f64]),
    String(&'a LargeStringArray),
    /// Strings that may not be UTF-8.
    AnyString(&'a LargeBinaryArray),
    Bytes(&'a LargeBinaryArray),
    Bits(&'a BooleanArray, usize),
    List(&'a [i64], Box<Self>),
    FixedList(usize, Box<Self>),
    /// Optionals as lists of at most one item.
    AtMostOne(&'a [i64], Box<Self>),
    Object(Vec<Vec<u8>>, Vec<Self>),
    Tuple(Vec<Self>),
    /// Tags, and positions in the alternative of a tag above 0.
    Variant(&'a [i8], &'a [i32], Vec<Self>),
    Nullable(&'a NullBuffer, Box<Self>),
}

impl<'a> ColumnValues<'a> {
    fn new(field: &Field, array: &'a dyn Array) -> Result<Self, UnexpectedType> {
        let values = Self::without_nulls(field, array)?;
        match array.nulls() {
            Some(nulls) if nulls.null_count() > 0 => Ok(Self::Nullable(nulls, Box::new(values))),
            _ => Ok(values),
        }
    }

    fn without_nulls(field: &Field, array: &'a dyn Array) -> Result<Self, UnexpectedType> {
        let unexpected = || {
            UnexpectedType(format!(
                "field '{}' ({}) has an unexpected type: {}",
                field.name,
                field.type_name,
                array.data_type()
            ))
        };
        let list = |item: &Field| {
            let list = array.as_list_opt::<i64>().ok_or_else(unexpected)?;
            let items = Self::new(item, list.values())?;
            Ok((list.value_offsets(), Box::new(items)))
        };
        Ok(match &field.kind {
            Kind::Primitive(_) | Kind::Cardinality { .. } => Self::numbers(array).ok_or_else(unexpected)?,
            Kind::String => match array.as_string_opt::<i64>() {
                Some(strings) => Self::String(strings),
                None => Self::AnyString(array.as_binary_opt::<i64>().ok_or_else(unexpected)?),
            },
            Kind::Streamer => Self::Bytes(array.as_binary_opt::<i64>().ok_or_else(unexpected)?),
            Kind::Bitset { .. } => {
                let list = array.as_fixed_size_list_opt().ok_or_else(unexpected)?;
                let bits = list.values().as_boolean_opt().ok_or_else(unexpected)?;
                Self::Bits(bits, list.value_length().unsigned_abs() as usize)
            }
            Kind::Array { item, .. } => {
                let list = array.as_fixed_size_list_opt().ok_or_else(unexpected)?;
                Self::FixedList(list.value_length().unsigned_abs() as usize, Box::new(Self::new(item, list.values())?))
            }
            Kind::Wrapper(item) => Self::without_nulls(item, array)?,
            Kind::Optional(item) if item.takes_nulls() => Self::without_nulls(item, array)?,
            Kind::Optional(item) => {
                let (ends, item) = list(item)?;
                Self::AtMostOne(ends, item)
            }
            Kind::Collection(item) | Kind::Map(item) => {
                let (ends, items) = list(item)?;
                Self::List(ends, items)
            }
            Kind::Record(fields) => {
                let members = Self::members(fields, array.as_struct_opt().ok_or_else(unexpected)?)?;
                Self::Object(heads(fields.iter().map(|field| field.name.as_str())), members)
            }
            Kind::Tuple(fields) => Self::Tuple(Self::members(fields, array.as_struct_opt().ok_or_else(unexpected)?)?),
            Kind::Variant(alternatives) => {
                let union = array.as_union_opt().ok_or_else(unexpected)?;
                let DataType::Union(children, _) = array.data_type() else { return Err(unexpected()) };
                let known = |tag: i8| children.iter().any(|(id, _)| id == tag);
                let alternative = |(tag, field): (i8, &Field)| match known(tag) {
                    true => Self::new(field, union.child(tag)),
                    false => Err(unexpected()),
                };
                let values = (1..=i8::MAX).zip(alternatives).map(alternative).collect::<Result<_, _>>()?;
                Self::Variant(union.type_ids(), union.offsets().ok_or_else(unexpected)?, values)
            }
        })
    }

    fn members(fields: &[Field], array: &'a StructArray) -> Result<Vec<Self>, UnexpectedType> {
        fields.iter().zip(array.columns()).map(|(field, column)| Self::new(field, column)).collect()
    }

    fn numbers(array: &'a dyn Array) -> Option<Self> {
        Some(match array.data_type() {
            DataType::Boolean => Self::Bool(array.as_boolean_opt()?),
            DataType::Int8 => Self::Int8(array.as_primitive_opt::<Int8Type>()?.values()),
            DataType::Int16 => Self::Int16(array.as_primitive_opt::<Int16Type>()?.values()),
            DataType::Int32 => Self::Int32(array.as_primitive_opt::<Int32Type>()?.values()),
            DataType::Int64 => Self::Int64(array.as_primitive_opt::<Int64Type>()?.values()),
            DataType::UInt8 => Self::UInt8(array.as_primitive_opt::<UInt8Type>()?.values()),
            DataType::UInt16 => Self::UInt16(array.as_primitive_opt::<UInt16Type>()?.values()),
            DataType::UInt32 => Self::UInt32(array.as_primitive_opt::<UInt32Type>()?.values()),
            DataType::UInt64 => Self::UInt64(array.as_primitive_opt::<UInt64Type>()?.values()),
            DataType::Float32 => Self::Float(array.as_primitive_opt::<Float32Type>()?.values()),
            DataType::Float64 => Self::Double(array.as_primitive_opt::<Float64Type>()?.values()),
            _ => return None,
        })
    }

    /// Whether the value is missing.
    pub(crate) fn is_null(&self, i: usize) -> bool {
        match self {
            Self::Nullable(nulls, values) => nulls.is_null(i) || values.is_null(i),
            Self::AtMostOne(ends, _) => ends[i] == ends[i + 1],
            Self::Variant(tags, ..) => tags[i] == 0,
            _ => false,
        }
    }

    /// Whether the values are single numbers.
    pub(crate) fn is_number(&self) -> bool {
        match self {
            Self::Nullable(_, values) => values.is_number(),
            Self::Int8(_) | Self::Int16(_) | Self::Int32(_) | Self::Int64(_) | Self::UInt8(_) => true,
            Self::UInt16(_) | Self::UInt32(_) | Self::UInt64(_) | Self::Float(_) | Self::Double(_) => true,
            _ => false,
        }
    }

    /// The value as plain text: strings without quotes, a missing value as an empty text, other values as in JSON.
    pub(crate) fn write_plain(&self, i: usize, out: &mut Text) {
        match self {
            Self::Nullable(nulls, values) if nulls.is_valid(i) => values.write_plain(i, out),
            _ if self.is_null(i) => {}
            Self::String(strings) => out.put(strings.value(i)),
            Self::AnyString(strings) => match std::str::from_utf8(strings.value(i)) {
                Ok(text) => out.put(text),
                Err(_) => self.write(i, out),
            },
            Self::Float(_) | Self::Double(_) | Self::Bytes(_) => {
                let start = out.bytes.len();
                self.write(i, out);
                // NaN, infinities and base64 have no quotes in plain text.
                if out.bytes.get(start) == Some(&b'"') {
                    out.bytes.remove(start);
                    out.bytes.pop();
                }
            }
            _ => self.write(i, out),
        }
    }

    /// The value as JSON.
    pub(crate) fn write(&self, i: usize, out: &mut Text) {
        match self {
            Self::Bool(values) => out.put(if values.value(i) { "true" } else { "false" }),
            Self::Int8(values) => out.integer(values[i]),
            Self::Int16(values) => out.integer(values[i]),
            Self::Int32(values) => out.integer(values[i]),
            Self::Int64(values) => out.integer(values[i]),
            Self::UInt8(values) => out.integer(values[i]),
            Self::UInt16(values) => out.integer(values[i]),
            Self::UInt32(values) => out.integer(values[i]),
            Self::UInt64(values) => out.integer(values[i]),
            Self::Float(values) => out.float(values[i]),
            Self::Double(values) => out.float(values[i]),
            Self::String(strings) => out.string(strings.value(i)),
            Self::AnyString(strings) => match std::str::from_utf8(strings.value(i)) {
                Ok(text) => out.string(text),
                Err(_) => {
                    out.odd_strings += 1;
                    out.put("{\"base64\":");
                    out.base64(strings.value(i));
                    out.byte(b'}');
                }
            },
            Self::Bytes(values) => out.base64(values.value(i)),
            Self::Bits(values, size) => {
                out.byte(b'[');
                for at in i * size..(i + 1) * size {
                    if at > i * size {
                        out.byte(b',');
                    }
                    out.byte(b'0' + u8::from(values.value(at)));
                }
                out.byte(b']');
            }
            Self::List(ends, items) => items.write_array(ends[i] as usize..ends[i + 1] as usize, out),
            Self::FixedList(size, items) => items.write_array(i * size..(i + 1) * size, out),
            Self::AtMostOne(ends, item) => match ends[i] == ends[i + 1] {
                true => out.put("null"),
                false => item.write(ends[i] as usize, out),
            },
            Self::Object(heads, members) => object(heads, members, i, out),
            Self::Tuple(items) => {
                out.byte(b'[');
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        out.byte(b',');
                    }
                    item.write(i, out);
                }
                out.byte(b']');
            }
            Self::Variant(tags, places, alternatives) => {
                let tag = usize::from(tags[i].unsigned_abs());
                match tag.checked_sub(1).and_then(|index| alternatives.get(index)) {
                    Some(alternative) => alternative.write(places[i].unsigned_abs() as usize, out),
                    None => out.put("null"),
                }
            }
            Self::Nullable(nulls, values) => match nulls.is_valid(i) {
                true => values.write(i, out),
                false => out.put("null"),
            },
        }
    }

    /// A JSON array of a range of values. The type is matched once for all values.
    fn write_array(&self, range: Range<usize>, out: &mut Text) {
        out.byte(b'[');
        match self {
            Self::Int32(values) => separated(&values[range], out, |value, out| out.integer(*value)),
            Self::Int64(values) => separated(&values[range], out, |value, out| out.integer(*value)),
            Self::UInt8(values) => separated(&values[range], out, |value, out| out.integer(*value)),
            Self::UInt32(values) => separated(&values[range], out, |value, out| out.integer(*value)),
            Self::UInt64(values) => separated(&values[range], out, |value, out| out.integer(*value)),
            Self::Float(values) => separated(&values[range], out, |value, out| out.float(*value)),
            Self::Double(values) => separated(&values[range], out, |value, out| out.float(*value)),
            _ => separated(range, out, |i, out| self.write(i, out)),
        }
        out.byte(b']');
    }
}

fn separated<T>(items: impl IntoIterator<Item = T>, out: &mut Text, write: impl Fn(T, &mut Text)) {
    for (index, item) in items.into_iter().enumerate() {
        if index > 0 {
            out.byte(b',');
        }
        write(item, out);
    }
}
