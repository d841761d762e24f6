//! Values of NumPy arrays as Arrow arrays.

use std::sync::Arc;

use arrow_array::builder::{LargeBinaryBuilder, LargeStringBuilder};
use arrow_array::types::{
    ArrowPrimitiveType, DurationMicrosecondType, DurationMillisecondType, DurationNanosecondType, DurationSecondType,
    Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type, UInt32Type,
    UInt64Type,
};
use arrow_array::{ArrayRef, BooleanArray, FixedSizeListArray, NullArray, PrimitiveArray, StructArray};
use arrow_schema::{DataType, Field, Fields, TimeUnit};
use tupelo::schema::metadata;

use super::super::{REFUSED, refused};
use super::places::Places;

/// What NumPy calls "not a time".
const NOT_A_TIME: i64 = i64::MIN;

/// The type of the values at one place.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::formats::read) enum Dtype {
    Bool,
    /// A number in these bytes, perhaps big-endian.
    Number {
        kind: Number,
        is_big: bool,
    },
    /// Two floating-point numbers of this many bytes.
    Complex {
        bytes: usize,
        is_big: bool,
    },
    /// A string of bytes, filled up with zeros.
    Bytes(usize),
    /// A string of UTF-32 characters, filled up with zeros.
    Text {
        characters: usize,
        is_big: bool,
    },
    Array(i32, Box<Dtype>),
    Record(Vec<Member>),
    /// What cannot be converted, with its size, if it has one, and the reason.
    Refused(Option<usize>, String),
}

/// Numbers, and times counted in a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::formats::read) enum Number {
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    F16,
    F32,
    F64,
    Time(TimeUnit),
    Duration(TimeUnit),
}

/// A member of a structured type.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::formats::read) struct Member {
    pub(in crate::formats::read) name: String,
    /// Its place, in bytes.
    pub(in crate::formats::read) offset: usize,
    pub(in crate::formats::read) dtype: Dtype,
}

impl Dtype {
    /// The type of a description such as `<f8`.
    pub(super) fn parse(text: &str) -> Self {
        let refuse = |bytes| Self::Refused(bytes, format!("NumPy's type '{text}' has no RNTuple type"));
        let (order, rest) = match text.strip_prefix(['<', '>', '|', '=']) {
            Some(rest) => (text.chars().next(), rest),
            None => (None, text),
        };
        let is_big = order == Some('>');
        let mut letters = rest.chars();
        let Some(letter) = letters.next() else { return refuse(None) };
        let (size, unit) = letters.as_str().split_once('[').unwrap_or((letters.as_str(), ""));
        let Ok(size) = size.parse::<usize>() else { return refuse(None) };
        let number = |kind| Self::Number { kind, is_big };
        let unit = match unit {
            "s]" => Some(TimeUnit::Second),
            "ms]" => Some(TimeUnit::Millisecond),
            "us]" => Some(TimeUnit::Microsecond),
            "ns]" => Some(TimeUnit::Nanosecond),
            _ => None,
        };
        match (letter, size, unit) {
            ('b', 1, _) => Self::Bool,
            ('i', 1, _) => number(Number::I8),
            ('i', 2, _) => number(Number::I16),
            ('i', 4, _) => number(Number::I32),
            ('i', 8, _) => number(Number::I64),
            ('u', 1, _) => number(Number::U8),
            ('u', 2, _) => number(Number::U16),
            ('u', 4, _) => number(Number::U32),
            ('u', 8, _) => number(Number::U64),
            ('f', 2, _) => number(Number::F16),
            ('f', 4, _) => number(Number::F32),
            ('f', 8, _) => number(Number::F64),
            ('M', 8, Some(unit)) => number(Number::Time(unit)),
            ('m', 8, Some(unit)) => number(Number::Duration(unit)),
            ('c', 8 | 16, _) => Self::Complex { bytes: size / 2, is_big },
            ('S' | 'a', 1.., _) => Self::Bytes(size),
            ('U', 1.., _) => Self::Text { characters: size, is_big },
            ('O', ..) => Self::Refused(None, "it has objects of Python; save arrays of numbers instead".to_owned()),
            ('U', ..) => refuse(size.checked_mul(4)),
            _ => refuse(Some(size)),
        }
    }

    /// A structured type of `bytes` bytes.
    pub(super) fn record(members: Vec<Member>, bytes: usize) -> Self {
        let used = members.last().and_then(|last| last.offset.checked_add(last.dtype.bytes()?));
        match used {
            Some(used) if used == bytes => Self::Record(members),
            Some(_) => {
                // The padding at the end is a member without a name.
                let mut members = members;
                let start = used.unwrap_or(0);
                let padding = Self::Refused(Some(bytes - start), String::new());
                members.push(Member { name: String::new(), offset: start, dtype: padding });
                Self::Record(members)
            }
            None => Self::Refused(Some(bytes), "it has no members".to_owned()),
        }
    }

    /// Size of a value; `None` if it has none, or if it overflows.
    pub(in crate::formats::read) fn bytes(&self) -> Option<usize> {
        match self {
            Self::Bool => Some(1),
            Self::Number { kind, .. } => Some(kind.bytes()),
            Self::Complex { bytes, .. } => Some(2 * bytes),
            Self::Bytes(bytes) => Some(*bytes),
            Self::Text { characters, .. } => characters.checked_mul(4),
            Self::Array(size, item) => item.bytes()?.checked_mul(usize::try_from(*size).ok()?),
            Self::Record(members) => match members.last() {
                Some(last) => last.offset.checked_add(last.dtype.bytes()?),
                None => Some(0),
            },
            Self::Refused(bytes, _) => *bytes,
        }
    }

    /// Why a type has no size.
    pub(super) fn unsized_reason(&self) -> &str {
        match self {
            Self::Refused(_, reason) => reason,
            _ => "its values are too large",
        }
    }

    /// Whether values may be missing: times may be "not a time".
    pub(in crate::formats::read) fn has_missing(&self) -> bool {
        match self {
            Self::Number { kind, .. } => matches!(kind, Number::Time(_) | Number::Duration(_)),
            Self::Array(_, item) => item.has_missing(),
            Self::Record(members) => members.iter().any(|member| member.dtype.has_missing()),
            _ => false,
        }
    }
}

impl Number {
    fn bytes(self) -> usize {
        self.data_type().primitive_width().unwrap_or(1)
    }

    fn data_type(self) -> DataType {
        match self {
            Self::I8 => DataType::Int8,
            Self::I16 => DataType::Int16,
            Self::I32 => DataType::Int32,
            Self::I64 => DataType::Int64,
            Self::U8 => DataType::UInt8,
            Self::U16 => DataType::UInt16,
            Self::U32 => DataType::UInt32,
            Self::U64 => DataType::UInt64,
            Self::F16 => DataType::Float16,
            Self::F32 => DataType::Float32,
            Self::F64 => DataType::Float64,
            Self::Time(unit) => DataType::Timestamp(unit, None),
            Self::Duration(unit) => DataType::Duration(unit),
        }
    }
}

/// The Arrow field of a type.
pub(in crate::formats::read) fn field(name: &str, dtype: &Dtype) -> Field {
    let data_type = match dtype {
        Dtype::Bool => DataType::Boolean,
        Dtype::Number { kind, .. } => kind.data_type(),
        Dtype::Complex { .. } => DataType::Struct(complex(dtype)),
        // NumPy's strings of bytes are in no particular encoding.
        Dtype::Bytes(_) => {
            let entries = [(metadata::TYPE.to_owned(), "std::string".to_owned())];
            return Field::new(name, DataType::LargeBinary, false).with_metadata(entries.into());
        }
        Dtype::Text { .. } => DataType::LargeUtf8,
        Dtype::Array(size, item) => match field("item", item) {
            item if item.metadata().contains_key(REFUSED) => return item.with_name(name),
            item => DataType::FixedSizeList(Arc::new(item), *size),
        },
        Dtype::Record(members) => {
            let members: Vec<Field> = named(members).map(|member| field(&member.name, &member.dtype)).collect();
            match members.iter().find_map(|member| Some((member.name(), member.metadata().get(REFUSED)?))) {
                Some((member, reason)) => return refused(name, &format!("member '{member}': {reason}")),
                None => DataType::Struct(members.into()),
            }
        }
        Dtype::Refused(_, reason) => return refused(name, reason),
    };
    Field::new(name, data_type, matches!(dtype, Dtype::Number { .. }) && dtype.has_missing())
}

/// The members that are not padding.
fn named(members: &[Member]) -> impl Iterator<Item = &Member> {
    members.iter().filter(|member| !member.name.is_empty())
}

/// The members of complex numbers.
fn complex(dtype: &Dtype) -> Fields {
    let data_type = match dtype {
        Dtype::Complex { bytes: 4, .. } => DataType::Float32,
        _ => DataType::Float64,
    };
    ["real", "imag"].map(|name| Field::new(name, data_type.clone(), false)).to_vec().into()
}

/// The values at these places.
///
/// # Errors
/// A text for strings that are invalid, and for values outside of the bytes.
pub(in crate::formats::read) fn values(dtype: &Dtype, bytes: &[u8], places: &Places) -> Result<ArrayRef, String> {
    let outside = || "values are missing".to_owned();
    let width = dtype.bytes().ok_or_else(outside)?;
    let at = |start: usize| bytes.get(start..start.checked_add(width)?);
    Ok(match dtype {
        Dtype::Bool => {
            let bits = places.all(bytes, |[byte]| byte != 0).ok_or_else(outside)?;
            Arc::new(BooleanArray::from(bits))
        }
        Dtype::Number { kind, is_big } => numbers(*kind, bytes, places, *is_big).ok_or_else(outside)?,
        Dtype::Complex { bytes: size, is_big } => {
            let kind = if *size == 4 { Number::F32 } else { Number::F64 };
            let part = |offset: usize| numbers(kind, bytes, &places.at(offset), *is_big).ok_or_else(outside);
            let parts = vec![part(0)?, part(*size)?];
            Arc::new(StructArray::try_new(complex(dtype), parts, None).map_err(|error| error.to_string())?)
        }
        Dtype::Bytes(_) => {
            let mut builder = LargeBinaryBuilder::new();
            for start in places.starts() {
                let text = at(start).ok_or_else(outside)?;
                let length = text.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
                builder.append_value(text.get(..length).unwrap_or_default());
            }
            Arc::new(builder.finish())
        }
        Dtype::Text { is_big, .. } => {
            let mut builder = LargeStringBuilder::new();
            for start in places.starts() {
                let text = at(start).ok_or_else(outside)?;
                builder.append_value(utf32(text, *is_big).ok_or("a string is not in UTF-32")?);
            }
            Arc::new(builder.finish())
        }
        Dtype::Array(size, item) => {
            let (width, item_field) = (item.bytes().ok_or_else(outside)?, field("item", item));
            let count = usize::try_from(*size).map_err(|_| outside())?;
            let items = values(item, bytes, &places.items(count, width))?;
            let list =
                FixedSizeListArray::try_new_with_length(Arc::new(item_field), *size, items, None, places.count());
            Arc::new(list.map_err(|error| error.to_string())?)
        }
        Dtype::Record(members) => {
            let member = |member: &Member| values(&member.dtype, bytes, &places.at(member.offset));
            let arrays = named(members).map(member).collect::<Result<Vec<_>, _>>()?;
            let fields: Fields = named(members).map(|member| field(&member.name, &member.dtype)).collect();
            Arc::new(StructArray::try_new(fields, arrays, None).map_err(|error| error.to_string())?)
        }
        Dtype::Refused(..) => Arc::new(NullArray::new(places.count())),
    })
}

/// A string of UTF-32 without the zeros at its end.
fn utf32(bytes: &[u8], is_big: bool) -> Option<String> {
    let letter = |bytes: &[u8]| {
        let bytes = bytes.first_chunk().copied()?;
        char::from_u32(if is_big { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) })
    };
    let text: String = bytes.chunks_exact(4).map(letter).collect::<Option<_>>()?;
    Some(text.trim_end_matches('\0').to_owned())
}

fn numbers(kind: Number, bytes: &[u8], places: &Places, is_big: bool) -> Option<ArrayRef> {
    macro_rules! all {
        ($arrow:ty, $native:ty) => {{
            // Two calls, so that each is compiled for its order of bytes.
            let numbers = match is_big {
                true => places.all(bytes, <$native>::from_be_bytes),
                false => places.all(bytes, <$native>::from_le_bytes),
            };
            Some(Arc::new(PrimitiveArray::<$arrow>::new(numbers?.into(), None)) as ArrayRef)
        }};
    }
    macro_rules! times {
        ($arrow:ty) => {{
            let from = if is_big { i64::from_be_bytes } else { i64::from_le_bytes };
            let known = |bytes| Some(from(bytes)).filter(|count| *count != NOT_A_TIME);
            let counts = places.all(bytes, known)?;
            Some(Arc::new(counts.into_iter().collect::<PrimitiveArray<$arrow>>()) as ArrayRef)
        }};
    }
    match kind {
        Number::I8 => all!(Int8Type, i8),
        Number::I16 => all!(Int16Type, i16),
        Number::I32 => all!(Int32Type, i32),
        Number::I64 => all!(Int64Type, i64),
        Number::U8 => all!(UInt8Type, u8),
        Number::U16 => all!(UInt16Type, u16),
        Number::U32 => all!(UInt32Type, u32),
        Number::U64 => all!(UInt64Type, u64),
        Number::F16 => all!(Float16Type, <Float16Type as ArrowPrimitiveType>::Native),
        Number::F32 => all!(Float32Type, f32),
        Number::F64 => all!(Float64Type, f64),
        Number::Time(TimeUnit::Second) => times!(TimestampSecondType),
        Number::Time(TimeUnit::Millisecond) => times!(TimestampMillisecondType),
        Number::Time(TimeUnit::Microsecond) => times!(TimestampMicrosecondType),
        Number::Time(TimeUnit::Nanosecond) => times!(TimestampNanosecondType),
        Number::Duration(TimeUnit::Second) => times!(DurationSecondType),
        Number::Duration(TimeUnit::Millisecond) => times!(DurationMillisecondType),
        Number::Duration(TimeUnit::Microsecond) => times!(DurationMicrosecondType),
        Number::Duration(TimeUnit::Nanosecond) => times!(DurationNanosecondType),
    }
}
