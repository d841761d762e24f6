//! Values of all entries at a time: what is at the bottom, and the lists above it.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, BooleanArray, Float64Array, Int64Array, LargeBinaryArray, LargeListArray, LargeStringArray,
    UInt64Array,
};
use arrow_buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_cast::cast;
use arrow_schema::{DataType, Field};
use arrow_select::take::take;

use super::parse::Literal;
use crate::{Error, Result};

/// Texts that are repeated beside items take at most so many bytes: 256 MiB.
const MAX_TEXT_BYTES: u64 = 256 << 20;

/// One leaf for each item of the innermost lists; where there are none, for each entry.
#[derive(Debug, Clone)]
pub(super) struct Value {
    /// Offsets of the lists of each level, outermost first, each beginning with zero.
    pub(super) lists: Vec<OffsetBuffer<i64>>,
    pub(super) leaf: ArrayRef,
    /// Whether leaves may be missing; what is computed has the same type whether some are or not.
    pub(super) is_optional: bool,
}

/// What leaves are, as far as expressions care.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Truth,
    Integer,
    Single,
    Double,
    Text,
    Other,
}

impl Kind {
    pub(super) fn of(data_type: &DataType) -> Self {
        match data_type {
            DataType::Boolean => Self::Truth,
            DataType::Float32 => Self::Single,
            DataType::Float64 => Self::Double,
            // Texts come as bytes where some are not UTF-8.
            DataType::LargeUtf8 | DataType::LargeBinary => Self::Text,
            integer if integer.is_integer() => Self::Integer,
            _ => Self::Other,
        }
    }
}

/// What values are, in words.
pub(super) fn describe(data_type: &DataType) -> String {
    match data_type {
        DataType::LargeList(item) | DataType::List(item) | DataType::FixedSizeList(item, _) => {
            format!("a list of which an item is {}", describe(item.data_type()))
        }
        DataType::Struct(members) => {
            let names: Vec<_> = members.iter().map(|member| member.name().as_str()).collect();
            format!("a record of {}", names.join(", "))
        }
        DataType::Union(alternatives, _) => {
            // The one of variants without a value has no type.
            let types = alternatives.iter().map(|(_, alternative)| alternative.data_type());
            let types: Vec<_> = types.filter(|one| **one != DataType::Null).map(describe).collect();
            format!("a variant of {}", types.join(", "))
        }
        other => match Kind::of(other) {
            Kind::Truth => "a truth".to_owned(),
            Kind::Integer => "an integer".to_owned(),
            Kind::Single | Kind::Double => "a real number".to_owned(),
            Kind::Text => "a text".to_owned(),
            Kind::Other => format!("a value of Arrow's type {other}"),
        },
    }
}

/// Whether there are texts at the bottom.
pub(super) fn holds_texts(data_type: &DataType) -> bool {
    match data_type {
        DataType::LargeList(item) | DataType::List(item) | DataType::FixedSizeList(item, _) => {
            holds_texts(item.data_type())
        }
        DataType::Struct(members) => members.iter().any(|member| holds_texts(member.data_type())),
        other => Kind::of(other) == Kind::Text,
    }
}

impl Value {
    /// An array, with the lists on its outside opened.
    pub(super) fn of(array: &ArrayRef, is_optional: bool) -> Result<Self> {
        let (mut lists, mut leaf, mut is_optional) = (Vec::new(), Arc::clone(array), is_optional);
        loop {
            let (offsets, values) = match leaf.data_type() {
                DataType::LargeList(_) => {
                    let list = leaf.as_list::<i64>();
                    (list.offsets().clone(), Arc::clone(list.values()))
                }
                DataType::List(_) => {
                    let list = leaf.as_list::<i32>();
                    let wide: Vec<i64> = list.offsets().iter().map(|&offset| i64::from(offset)).collect();
                    (OffsetBuffer::new(wide.into()), Arc::clone(list.values()))
                }
                DataType::FixedSizeList(_, _) => {
                    let list = leaf.as_fixed_size_list();
                    let size = usize::try_from(list.value_length()).unwrap_or(0);
                    (OffsetBuffer::from_lengths(std::iter::repeat_n(size, list.len())), Arc::clone(list.values()))
                }
                _ => return Ok(Self { lists, leaf, is_optional }),
            };
            if let DataType::LargeList(item) | DataType::List(item) | DataType::FixedSizeList(item, _) =
                leaf.data_type()
            {
                is_optional = item.is_nullable();
            }
            let is_missing = |index: usize| leaf.is_null(index) && offsets[index] < offsets[index + 1];
            if leaf.null_count() > 0 && (0..leaf.len()).any(is_missing) {
                return Err(Error::unsupported("lists that are missing and hold something"));
            }
            let (first, last) = (offsets[0], offsets[offsets.len() - 1]);
            let values = values.slice(first as usize, (last - first) as usize);
            let offsets = match first {
                0 => offsets,
                _ => OffsetBuffer::new(offsets.iter().map(|offset| offset - first).collect::<Vec<_>>().into()),
            };
            lists.push(offsets);
            leaf = values;
        }
    }

    /// As one array.
    pub(super) fn into_array(self) -> ArrayRef {
        let mut is_optional = self.is_optional;
        self.lists.into_iter().rev().fold(self.leaf, |items, offsets| {
            // Lists are never missing.
            let item = Field::new("item", items.data_type().clone(), std::mem::take(&mut is_optional));
            Arc::new(LargeListArray::new(Arc::new(item), offsets, items, None))
        })
    }

    pub(super) fn kind(&self) -> Kind {
        Kind::of(self.leaf.data_type())
    }

    /// A member of the records at the bottom.
    pub(super) fn member(&self, name: &str) -> Result<Self> {
        let Some(record) = self.leaf.as_struct_opt() else {
            let what = format!("there is no member '{name}' in {}", describe(self.leaf.data_type()));
            return Err(Error::invalid_argument(what));
        };
        let Some((index, field)) = record.fields().find(name) else {
            return Err(Error::no_such("member", name, record.column_names().into_iter()));
        };
        let below = Self::of(record.column(index), self.is_optional || field.is_nullable())?;
        let missing = record.nulls().filter(|nulls| nulls.null_count() > 0);
        let leaf = match missing {
            Some(missing) if !below.lists.is_empty() => {
                let holds = |at: usize| missing.is_null(at) && below.lists[0][at] < below.lists[0][at + 1];
                if (0..missing.len()).any(holds) {
                    return Err(Error::unsupported("records that are missing and hold lists"));
                }
                below.leaf
            }
            Some(missing) => with_nulls(&below.leaf, NullBuffer::union(below.leaf.nulls(), Some(missing)))?,
            None => below.leaf,
        };
        let is_optional = self.is_optional || below.is_optional;
        Ok(Self { lists: self.lists.iter().cloned().chain(below.lists).collect(), leaf, is_optional })
    }
}

fn with_nulls(array: &ArrayRef, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
    Ok(arrow_array::make_array(array.to_data().into_builder().nulls(nulls).build()?))
}

/// A value, or one that has no type of its own yet.
#[derive(Debug, Clone)]
pub(super) enum Operand {
    Literal(Literal),
    Value(Value),
}

/// Leaves that stand beside each other. Those of literals are one for all.
pub(super) struct Aligned {
    pub(super) lists: Vec<OffsetBuffer<i64>>,
    pub(super) leaves: Vec<ArrayRef>,
    /// How many there are of each, but of literals.
    pub(super) count: usize,
    /// Whether all are literals.
    pub(super) is_literal: bool,
    /// Whether some may be missing.
    pub(super) is_optional: bool,
}

impl Literal {
    pub(super) fn array(&self) -> ArrayRef {
        match self {
            Self::Truth(truth) => Arc::new(BooleanArray::from(vec![*truth])),
            Self::Integer(integer) => Arc::new(Int64Array::from(vec![*integer])),
            Self::Unsigned(integer) => Arc::new(UInt64Array::from(vec![*integer])),
            Self::Real(real) => Arc::new(Float64Array::from(vec![*real])),
            Self::Text(text) => Arc::new(LargeStringArray::from(vec![text.as_str()])),
        }
    }
}

/// Brings operands to the lists of the deepest: what has one value for a list stands beside each of its items.
pub(super) fn align(operands: &[Operand]) -> Result<Aligned> {
    let values = || {
        operands.iter().filter_map(|operand| match operand {
            Operand::Value(value) => Some(value),
            Operand::Literal(_) => None,
        })
    };
    let deepest = values().max_by_key(|value| value.lists.len());
    let lists = deepest.map(|value| value.lists.clone()).unwrap_or_default();
    let mut leaves = Vec::with_capacity(operands.len());
    for operand in operands {
        let value = match operand {
            Operand::Literal(literal) => {
                leaves.push(literal.array());
                continue;
            }
            Operand::Value(value) => value,
        };
        let depth = value.lists.len();
        if let Some(level) = (0..depth).find(|&level| value.lists[level] != lists[level]) {
            return Err(differ(&value.lists[level], &lists[level]));
        }
        leaves.push(match &lists[depth..] {
            [] => Arc::clone(&value.leaf),
            below => {
                let owners = repeated(below);
                check_texts(&value.leaf, &owners)?;
                take(&value.leaf, &owners, None)?
            }
        });
    }
    let count = deepest.map_or(1, |value| value.leaf.len());
    let is_optional = values().any(|value| value.is_optional);
    Ok(Aligned { lists, leaves, count, is_literal: deepest.is_none(), is_optional })
}

/// Texts as the bytes that they are anyway.
pub(super) fn as_bytes(texts: &ArrayRef) -> Result<LargeBinaryArray> {
    Ok(cast(texts, &DataType::LargeBinary)?.as_binary().clone())
}

/// Texts may be long, and stand beside many items.
fn check_texts(leaf: &ArrayRef, owners: &UInt64Array) -> Result<()> {
    if Kind::of(leaf.data_type()) != Kind::Text {
        return Ok(());
    }
    let texts = as_bytes(leaf)?;
    let length = |owner: u64| texts.value_length(owner as usize).unsigned_abs();
    let bytes = owners.values().iter().fold(0, |sum: u64, &owner| sum.saturating_add(length(owner)));
    match bytes <= MAX_TEXT_BYTES {
        true => Ok(()),
        false => Err(Error::limit(format!("texts beside each item of lists would take {bytes} bytes"))),
    }
}

#[cold]
fn differ(one: &OffsetBuffer<i64>, other: &OffsetBuffer<i64>) -> Error {
    let lengths = |offsets: &OffsetBuffer<i64>, at: usize| offsets.get(at + 1).map_or(0, |end| end - offsets[at]);
    let at = (0..one.len().min(other.len()) - 1).find(|&at| lengths(one, at) != lengths(other, at)).unwrap_or(0);
    let (one, other) = (lengths(one, at), lengths(other, at));
    Error::invalid_argument(format!("lists of different lengths, first {one} and {other}, have no common items"))
}

/// Which value stands beside each item of the innermost of these lists.
fn repeated(lists: &[OffsetBuffer<i64>]) -> UInt64Array {
    let mut owners: Option<Vec<u64>> = None;
    for offsets in lists {
        let mut next = Vec::with_capacity(offsets[offsets.len() - 1] as usize);
        for (index, window) in offsets.windows(2).enumerate() {
            let owner = owners.as_ref().map_or(index as u64, |owners| owners[index]);
            next.resize(next.len() + (window[1] - window[0]) as usize, owner);
        }
        owners = Some(next);
    }
    UInt64Array::new(ScalarBuffer::from(owners.unwrap_or_default()), None)
}
