//! Generated C++ types, generated values of them, and both as Arrow.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::*;
use arrow_buffer::{BooleanBuffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field, FieldRef, Fields, UnionFields};
use conformance::mutate::Random;
use tupelo::schema::{self, Kind, metadata};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Number {
    Bool,
    Char,
    Byte,
    I8,
    U8,
    I16,
    U16,
    I32,
    U32,
    I64,
    U64,
    F32,
    F64,
}

/// Encodings of numbers that keep the values which [`Type::value`] makes for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lossy {
    Half,
    Truncated,
    Quantised,
    Double32,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Type {
    Number(Number),
    Lossy(Lossy),
    String { index32: bool },
    List { large: bool, set: bool, item: Box<Type> },
    Array(u64, Box<Type>),
    Bitset(u64),
    Struct { name: Option<String>, members: Vec<Type> },
    Tuple(Vec<Type>),
    Map { arrow: bool, key: Box<Type>, value: Box<Type> },
    Optional { unique: bool, item: Box<Type> },
    Variant { valueless: bool, alternatives: Vec<Type> },
    Wrapper { atomic: bool, item: Number },
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    /// The bits of a number.
    Bits(u64),
    Text(String),
    Many(Vec<Value>),
    Null,
    /// Alternative and value.
    One(usize, Box<Value>),
}

impl Number {
    pub(crate) const ALL: [Self; 13] = [
        Self::Bool,
        Self::Char,
        Self::Byte,
        Self::I8,
        Self::U8,
        Self::I16,
        Self::U16,
        Self::I32,
        Self::U32,
        Self::I64,
        Self::U64,
        Self::F32,
        Self::F64,
    ];

    fn bits(self) -> u32 {
        match self {
            Self::Bool => 1,
            Self::Char | Self::Byte | Self::I8 | Self::U8 => 8,
            Self::I16 | Self::U16 => 16,
            Self::I32 | Self::U32 | Self::F32 => 32,
            Self::I64 | Self::U64 | Self::F64 => 64,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::Char => "char",
            Self::Byte => "std::byte",
            Self::I8 => "std::int8_t",
            Self::U8 => "std::uint8_t",
            Self::I16 => "std::int16_t",
            Self::U16 => "std::uint16_t",
            Self::I32 => "std::int32_t",
            Self::U32 => "std::uint32_t",
            Self::I64 => "std::int64_t",
            Self::U64 => "std::uint64_t",
            Self::F32 => "float",
            Self::F64 => "double",
        }
    }

    fn array(self, values: &[u64]) -> ArrayRef {
        macro_rules! array {
            ($array:ty, $of:expr) => {
                Arc::new(values.iter().map(|&bits| $of(bits)).collect::<$array>())
            };
        }
        match self {
            Self::Bool => Arc::new(BooleanArray::from_iter(values.iter().map(|&bits| Some(bits != 0)))),
            Self::Char | Self::I8 => array!(Int8Array, |bits| bits as i8),
            Self::Byte | Self::U8 => array!(UInt8Array, |bits| bits as u8),
            Self::I16 => array!(Int16Array, |bits| bits as i16),
            Self::U16 => array!(UInt16Array, |bits| bits as u16),
            Self::I32 => array!(Int32Array, |bits| bits as i32),
            Self::U32 => array!(UInt32Array, |bits| bits as u32),
            Self::I64 => array!(Int64Array, |bits| bits as i64),
            Self::U64 => array!(UInt64Array, |bits| bits),
            Self::F32 => array!(Float32Array, |bits| f32::from_bits(bits as u32)),
            Self::F64 => array!(Float64Array, f64::from_bits),
        }
    }

    fn at(self, array: &dyn Array, i: usize) -> u64 {
        match self {
            Self::Bool => array.as_boolean().value(i).into(),
            Self::Char | Self::I8 => array.as_primitive::<Int8Type>().value(i) as u8 as u64,
            Self::Byte | Self::U8 => array.as_primitive::<UInt8Type>().value(i).into(),
            Self::I16 => array.as_primitive::<Int16Type>().value(i) as u16 as u64,
            Self::U16 => array.as_primitive::<UInt16Type>().value(i).into(),
            Self::I32 => array.as_primitive::<Int32Type>().value(i) as u32 as u64,
            Self::U32 => array.as_primitive::<UInt32Type>().value(i).into(),
            Self::I64 => array.as_primitive::<Int64Type>().value(i) as u64,
            Self::U64 => array.as_primitive::<UInt64Type>().value(i),
            Self::F32 => array.as_primitive::<Float32Type>().value(i).to_bits().into(),
            Self::F64 => array.as_primitive::<Float64Type>().value(i).to_bits(),
        }
    }

    fn value(self, random: &mut Random) -> u64 {
        let mask = u64::MAX >> (64 - self.bits());
        let extremes = [0, 1, mask, mask >> 1, (mask >> 1) + 1];
        let special = match self {
            // Infinities, NaNs with payloads, the smallest subnormal, minus zero.
            Self::F32 => [0x7f80_0000, 0xff80_0000, 0x7fc0_1234, 0xffbf_ffff, 0x8000_0000],
            Self::F64 => [0x7ff0 << 48, 0xfff0 << 48, 0x7ff8_0000_dead_beef, 0xfff7 << 48, 1 << 63],
            _ => extremes,
        };
        match random.below(4) {
            0 => *random.choose(&extremes),
            1 => *random.choose(&special),
            2 => random.below(100) & mask,
            _ => random.next() & mask,
        }
    }
}

impl Lossy {
    fn number(self) -> Number {
        if self == Self::Double32 { Number::F64 } else { Number::F32 }
    }

    pub(crate) fn encoding(self) -> &'static str {
        match self {
            Self::Half => "Real16",
            Self::Truncated => "Real32Trunc(16)",
            Self::Quantised => "Real32Quant(8,0.0,255.0)",
            Self::Double32 => "SplitReal32",
        }
    }

    fn value(self, random: &mut Random) -> u64 {
        match self {
            Self::Half => u64::from((random.below(2048) as f32 / 8.0 - 100.0).to_bits()),
            Self::Truncated => random.next() & 0xffff_0000,
            Self::Quantised => u64::from((random.below(256) as f32).to_bits()),
            Self::Double32 => f64::from(random.below(1 << 20) as f32 / 3.0).to_bits(),
        }
    }
}

type Entries = HashMap<String, String>;

fn entry(key: &str, value: impl Into<String>) -> Entries {
    HashMap::from([(key.to_owned(), value.into())])
}

impl Type {
    /// The C++ name that the writer gives or is given; empty for untyped records and lists of them.
    pub(crate) fn name(&self) -> String {
        let names = |types: &[Self]| types.iter().map(Self::name).collect::<Vec<_>>().join(",");
        match self {
            Self::Number(number) => number.name().into(),
            Self::Lossy(lossy) => lossy.number().name().into(),
            Self::String { .. } => "std::string".into(),
            Self::List { item, .. } if item.name().is_empty() => String::new(),
            Self::List { set: true, item, .. } => format!("std::set<{}>", item.name()),
            Self::List { item, .. } => format!("std::vector<{}>", item.name()),
            Self::Array(size, item) => format!("std::array<{},{size}>", item.name()),
            Self::Bitset(size) => format!("std::bitset<{size}>"),
            Self::Struct { name, .. } => name.clone().unwrap_or_default(),
            Self::Tuple(items) if items.len() == 2 => format!("std::pair<{}>", names(items)),
            Self::Tuple(items) => format!("std::tuple<{}>", names(items)),
            Self::Map { key, value, .. } => format!("std::map<{},{}>", key.name(), value.name()),
            Self::Optional { unique: true, item } => format!("std::unique_ptr<{}>", item.name()),
            Self::Optional { item, .. } => format!("std::optional<{}>", item.name()),
            Self::Variant { alternatives, .. } => format!("std::variant<{}>", names(alternatives)),
            Self::Wrapper { atomic: true, item } => format!("std::atomic<{}>", item.name()),
            Self::Wrapper { .. } => "Colour".into(),
        }
    }

    /// Names the structs that cannot go without.
    pub(crate) fn give_names(&mut self, needed: bool) {
        match self {
            Self::Struct { name, members } => {
                if needed && name.is_none() {
                    *name = Some("Record".into());
                }
                members.iter_mut().for_each(|member| member.give_names(false));
            }
            Self::List { item, .. } => item.give_names(needed),
            Self::Array(_, item) | Self::Optional { item, .. } => item.give_names(true),
            Self::Map { key, value, .. } => [key, value].into_iter().for_each(|item| item.give_names(true)),
            Self::Tuple(items) | Self::Variant { alternatives: items, .. } => {
                items.iter_mut().for_each(|item| item.give_names(true));
            }
            _ => {}
        }
    }

    fn takes_nulls(&self) -> bool {
        !matches!(self, Self::Optional { .. } | Self::Variant { .. })
    }

    fn is_null_optional(&self) -> bool {
        matches!(self, Self::Optional { item, .. } if item.takes_nulls())
    }

    fn item(&self) -> FieldRef {
        Arc::new(self.field("item"))
    }

    pub(crate) fn field(&self, name: &str) -> Field {
        let nullable = self.is_null_optional() || matches!(self, Self::Variant { .. });
        Field::new(name, self.data_type(), nullable).with_metadata(self.entries())
    }

    fn fields(types: &[Self], prefix: &str) -> Fields {
        types.iter().enumerate().map(|(i, item)| item.field(&format!("{prefix}{i}"))).collect()
    }

    fn pair(key: &Self, value: &Self) -> FieldRef {
        let fields = vec![key.field("key"), value.field("value")];
        Arc::new(Field::new("entries", DataType::Struct(fields.into()), false))
    }

    fn union(valueless: bool, alternatives: &[Self]) -> UnionFields {
        // Any numbers that Arrow allows do: Tupelo counts for itself.
        let fields = Self::fields(alternatives, "alternative");
        let first = valueless.then(|| (2, Arc::new(Field::new("nothing", DataType::Null, true))));
        first.into_iter().chain(fields.iter().enumerate().map(|(i, f)| (3 + 2 * i as i8, f.clone()))).collect()
    }

    fn data_type(&self) -> DataType {
        match self {
            Self::Number(number) => number.array(&[]).data_type().clone(),
            Self::Lossy(lossy) => lossy.number().array(&[]).data_type().clone(),
            Self::Wrapper { item, .. } => item.array(&[]).data_type().clone(),
            Self::String { .. } => DataType::Utf8,
            Self::List { large: true, item, .. } => DataType::LargeList(item.item()),
            Self::List { item, .. } => DataType::List(item.item()),
            Self::Array(size, item) => DataType::FixedSizeList(item.item(), *size as i32),
            Self::Bitset(size) => DataType::FixedSizeList(Self::Number(Number::Bool).item(), *size as i32),
            Self::Struct { members, .. } => DataType::Struct(Self::fields(members, "m")),
            Self::Tuple(items) => DataType::Struct(Self::fields(items, "t")),
            Self::Map { arrow: true, key, value } => DataType::Map(Self::pair(key, value), false),
            Self::Map { key, value, .. } => DataType::LargeList(Self::pair(key, value)),
            Self::Optional { item, .. } if item.takes_nulls() => item.data_type(),
            Self::Optional { item, .. } => DataType::LargeList(item.item()),
            Self::Variant { valueless, alternatives } => {
                DataType::Union(Self::union(*valueless, alternatives), arrow_schema::UnionMode::Dense)
            }
        }
    }

    fn entries(&self) -> Entries {
        let typed = || entry(metadata::TYPE, self.name());
        match self {
            Self::Number(Number::Char | Number::Byte) | Self::Bitset(_) | Self::Tuple(_) => typed(),
            Self::Lossy(lossy) => entry(metadata::ENCODING, lossy.encoding()),
            Self::String { index32: true } => entry(metadata::ENCODING, "SplitIndex32"),
            Self::List { set: true, .. } if !self.name().is_empty() => typed(),
            Self::Struct { name: Some(_), .. } | Self::Map { arrow: false, .. } => typed(),
            Self::Optional { item, .. } if item.takes_nulls() => below(typed(), item),
            Self::Optional { .. } => typed(),
            Self::Wrapper { item, .. } => below(typed(), &Self::Number(*item)),
            _ => Entries::new(),
        }
    }

    /// A value for where there is none.
    fn filler(&self) -> Value {
        match self {
            Self::Number(_) | Self::Lossy(_) | Self::Wrapper { .. } => Value::Bits(0),
            Self::String { .. } => Value::Text(String::new()),
            Self::List { .. } | Self::Map { .. } => Value::Many(Vec::new()),
            Self::Array(size, item) => Value::Many(vec![item.filler(); *size as usize]),
            Self::Bitset(size) => Value::Many(vec![Value::Bits(0); *size as usize]),
            Self::Struct { members: items, .. } | Self::Tuple(items) => {
                Value::Many(items.iter().map(Self::filler).collect())
            }
            Self::Optional { .. } => Value::Null,
            Self::Variant { alternatives, .. } => Value::One(0, Box::new(alternatives[0].filler())),
        }
    }

    pub(crate) fn value(&self, random: &mut Random) -> Value {
        let many = |item: &Self, count: u64, random: &mut Random| {
            Value::Many((0..count).map(|_| item.value(random)).collect())
        };
        match self {
            Self::Number(number) | Self::Wrapper { item: number, .. } => Value::Bits(number.value(random)),
            Self::Lossy(lossy) => Value::Bits(lossy.value(random)),
            Self::String { .. } => Value::Text((*random.choose(&TEXTS)).repeat(random.below(3) as usize)),
            Self::List { item, .. } => {
                let count = *random.choose(&[0, 0, 1, 2, 3, 7]);
                many(item, count, random)
            }
            Self::Array(size, item) => many(item, *size, random),
            Self::Bitset(size) => many(&Self::Number(Number::Bool), *size, random),
            Self::Struct { members: items, .. } | Self::Tuple(items) => {
                Value::Many(items.iter().map(|item| item.value(random)).collect())
            }
            Self::Map { key, value, .. } => {
                let count = random.below(3);
                Value::Many((0..count).map(|_| Value::Many(vec![key.value(random), value.value(random)])).collect())
            }
            Self::Optional { .. } if random.below(3) == 0 => Value::Null,
            Self::Optional { item, .. } => Value::One(0, Box::new(item.value(random))),
            Self::Variant { valueless: true, .. } if random.below(4) == 0 => Value::Null,
            Self::Variant { alternatives, .. } => {
                let chosen = random.below(alternatives.len() as u64) as usize;
                Value::One(chosen, Box::new(alternatives[chosen].value(random)))
            }
        }
    }

    pub(crate) fn array(&self, values: &[Value]) -> ArrayRef {
        let bits = |value: &Value| match value {
            Value::Bits(bits) => *bits,
            other => panic!("{other:?} is not a number"),
        };
        let items = |values: &[Value]| values.iter().flat_map(|value| value.many().to_vec()).collect::<Vec<_>>();
        let column = |i: usize, values: &[Value]| values.iter().map(|v| v.many()[i].clone()).collect::<Vec<_>>();
        let lengths = || values.iter().map(|value| value.many().len());
        let columns = |types: &[Self], values: &[Value]| {
            types.iter().enumerate().map(|(i, item)| item.array(&column(i, values))).collect::<Vec<_>>()
        };
        let record = |fields: Fields, arrays: Vec<ArrayRef>, count| -> ArrayRef {
            Arc::new(StructArray::try_new_with_length(fields, arrays, None, count).expect("a struct array"))
        };
        match self {
            Self::Number(number) | Self::Wrapper { item: number, .. } => {
                number.array(&values.iter().map(bits).collect::<Vec<_>>())
            }
            Self::Lossy(lossy) => lossy.number().array(&values.iter().map(bits).collect::<Vec<_>>()),
            Self::String { .. } => Arc::new(StringArray::from_iter_values(values.iter().map(|value| match value {
                Value::Text(text) => text,
                other => panic!("{other:?} is not a string"),
            }))),
            Self::List { large: true, item, .. } => {
                let offsets = OffsetBuffer::from_lengths(lengths());
                Arc::new(LargeListArray::new(item.item(), offsets, item.array(&items(values)), None))
            }
            Self::List { item, .. } => {
                let offsets = OffsetBuffer::from_lengths(lengths());
                Arc::new(ListArray::new(item.item(), offsets, item.array(&items(values)), None))
            }
            Self::Array(size, item) => {
                Arc::new(FixedSizeListArray::new(item.item(), *size as i32, item.array(&items(values)), None))
            }
            Self::Bitset(size) => {
                let item = Self::Number(Number::Bool);
                Arc::new(FixedSizeListArray::new(item.item(), *size as i32, item.array(&items(values)), None))
            }
            Self::Struct { members, .. } => record(Self::fields(members, "m"), columns(members, values), values.len()),
            Self::Tuple(types) => record(Self::fields(types, "t"), columns(types, values), values.len()),
            Self::Map { arrow, key, value } => {
                let pairs = items(values);
                let arrays = columns(&[(**key).clone(), (**value).clone()], &pairs);
                let field = Self::pair(key, value);
                let DataType::Struct(fields) = field.data_type() else { unreachable!("a pair") };
                let pairs = StructArray::new(fields.clone(), arrays, None);
                match arrow {
                    true => {
                        let offsets = OffsetBuffer::from_lengths(lengths());
                        Arc::new(MapArray::new(field, offsets, pairs, None, false))
                    }
                    false => {
                        let offsets = OffsetBuffer::from_lengths(lengths());
                        Arc::new(LargeListArray::new(field, offsets, Arc::new(pairs), None))
                    }
                }
            }
            Self::Optional { item, .. } if item.takes_nulls() => {
                let there: BooleanBuffer = values.iter().map(|value| *value != Value::Null).collect();
                let dense: Vec<_> = values
                    .iter()
                    .map(|value| match value {
                        Value::One(_, value) => (**value).clone(),
                        _ => item.filler(),
                    })
                    .collect();
                let data = item.array(&dense).into_data().into_builder().nulls(Some(NullBuffer::new(there)));
                make_array(data.build().expect("an array with nulls"))
            }
            Self::Optional { item, .. } => {
                let there: Vec<_> = values.iter().filter_map(Value::one).map(|(_, value)| value.clone()).collect();
                let offsets = OffsetBuffer::from_lengths(values.iter().map(|v| usize::from(*v != Value::Null)));
                Arc::new(LargeListArray::new(item.item(), offsets, item.array(&there), None))
            }
            Self::Variant { valueless, alternatives } => {
                let fields = Self::union(*valueless, alternatives);
                let mut children: Vec<Vec<Value>> = vec![Vec::new(); alternatives.len()];
                let (mut ids, mut offsets, mut nulls) = (Vec::new(), Vec::new(), 0);
                for value in values {
                    match value.one() {
                        None => {
                            ids.push(2);
                            offsets.push(nulls);
                            nulls += 1;
                        }
                        Some((chosen, value)) => {
                            ids.push(3 + 2 * chosen as i8);
                            offsets.push(children[chosen].len() as i32);
                            children[chosen].push(value.clone());
                        }
                    }
                }
                let nothing: ArrayRef = Arc::new(NullArray::new(nulls as usize));
                let arrays = alternatives.iter().zip(&children).map(|(item, values)| item.array(values));
                let arrays = valueless.then_some(nothing).into_iter().chain(arrays).collect();
                let (ids, offsets) = (ScalarBuffer::from(ids), ScalarBuffer::from(offsets));
                Arc::new(UnionArray::try_new(fields, ids, Some(offsets), arrays).expect("a union"))
            }
        }
    }

    /// The `i`-th value of what Tupelo reads this type as.
    pub(crate) fn at(&self, array: &ArrayRef, i: usize) -> Value {
        let all = |item: &Self, array: ArrayRef| Value::Many((0..array.len()).map(|i| item.at(&array, i)).collect());
        match self {
            Self::Number(number) | Self::Wrapper { item: number, .. } => Value::Bits(number.at(array, i)),
            Self::Lossy(lossy) => Value::Bits(lossy.number().at(array, i)),
            Self::String { .. } => Value::Text(array.as_string::<i64>().value(i).to_owned()),
            Self::List { item, .. } => all(item, array.as_list::<i64>().value(i)),
            Self::Array(_, item) => all(item, array.as_fixed_size_list().value(i)),
            Self::Bitset(_) => all(&Self::Number(Number::Bool), array.as_fixed_size_list().value(i)),
            Self::Struct { members: items, .. } | Self::Tuple(items) => {
                let columns = array.as_struct().columns();
                assert_eq!(columns.len(), items.len());
                Value::Many(items.iter().zip(columns).map(|(item, column)| item.at(column, i)).collect())
            }
            Self::Map { key, value, .. } => {
                all(&Self::Tuple(vec![(**key).clone(), (**value).clone()]), array.as_list::<i64>().value(i))
            }
            Self::Optional { item, .. } if item.takes_nulls() => match array.is_null(i) {
                true => Value::Null,
                false => Value::One(0, Box::new(item.at(array, i))),
            },
            Self::Optional { item, .. } => {
                let items = array.as_list::<i64>().value(i);
                assert!(items.len() < 2);
                if items.is_empty() { Value::Null } else { Value::One(0, Box::new(item.at(&items, 0))) }
            }
            Self::Variant { alternatives, .. } => {
                let union = array.as_union();
                let (tag, offset) = (union.type_id(i), union.value_offset(i));
                match tag {
                    0 => Value::Null,
                    tag => {
                        let chosen = tag as usize - 1;
                        Value::One(chosen, Box::new(alternatives[chosen].at(union.child(tag), offset)))
                    }
                }
            }
        }
    }

    /// Compares with the field that was read: its C++ type, what it is, its encoding, and all below.
    pub(crate) fn check(&self, field: &schema::Field) {
        assert_eq!(field.type_name, self.name());
        let below: Vec<Self> = match (self, &field.kind) {
            (Self::Number(_) | Self::String { index32: false }, Kind::Primitive(_) | Kind::String) => vec![],
            (Self::String { index32: true }, Kind::String) => {
                assert_eq!(field.encoding.expect("an index").bits(), 32);
                vec![]
            }
            (Self::Lossy(lossy), Kind::Primitive(_)) => {
                let name = field.encoding.expect("a number is stored").column_type().unsplit().name();
                let wanted = lossy.encoding().split('(').next().unwrap_or_default().replace("Split", "");
                assert_eq!(name, wanted);
                vec![]
            }
            (Self::List { item, .. }, Kind::Collection(_)) | (Self::Optional { item, .. }, Kind::Optional(_)) => {
                vec![(**item).clone()]
            }
            (Self::Array(size, item), Kind::Array { size: read, .. }) => {
                assert_eq!(size, read);
                vec![(**item).clone()]
            }
            (Self::Bitset(size), Kind::Bitset { size: read }) => {
                assert_eq!(size, read);
                vec![]
            }
            (Self::Map { key, value, .. }, Kind::Map(_)) => {
                vec![Self::Tuple(vec![(**key).clone(), (**value).clone()])]
            }
            (Self::Struct { members, .. }, Kind::Record(_)) => members.clone(),
            (Self::Tuple(items), Kind::Tuple(_)) => items.clone(),
            (Self::Variant { alternatives, .. }, Kind::Variant(_)) => alternatives.clone(),
            (Self::Wrapper { item, .. }, Kind::Wrapper(_)) => vec![Self::Number(*item)],
            (own, read) => panic!("{own:?} was read as {read:?}"),
        };
        assert_eq!(below.len(), field.children().len());
        below.iter().zip(field.children()).for_each(|(own, read)| own.check(read));
    }
}

/// Metadata of a layer that Arrow does not have, with those of what it wraps.
fn below(mut outer: Entries, item: &Type) -> Entries {
    outer.insert(format!("{}/0", metadata::TYPE), item.name());
    outer.extend(item.entries().into_iter().map(|(key, value)| {
        // `key/0/0` is two layers down already.
        match key.split_once('/') {
            Some((key, rest)) => (format!("{key}/0/{rest}"), value),
            None => (format!("{key}/0"), value),
        }
    }));
    outer
}

impl Value {
    fn many(&self) -> &[Self] {
        match self {
            Self::Many(values) => values,
            other => panic!("{other:?} is not many"),
        }
    }

    fn one(&self) -> Option<(usize, &Self)> {
        match self {
            Self::One(chosen, value) => Some((*chosen, value)),
            _ => None,
        }
    }
}

const TEXTS: [&str; 6] = ["", "a", "tupelo", "ä\u{1f333}", "line\nbreak\0zero", "\u{feff}"];
