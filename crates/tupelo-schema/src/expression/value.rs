//! Values of all entries at a time: leaves, and the lists above them.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, FixedSizeListArray, Float64Array, Int64Array, LargeBinaryArray, LargeListArray,
    LargeStringArray, UInt64Array,
};
use arrow_buffer::{BooleanBuffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_cast::cast;
use arrow_schema::{DataType, Field};
use arrow_select::filter::{filter, prep_null_mask_filter};
use arrow_select::take::take;

use super::syntax::Literal;
use crate::{Error, Result};

/// Limit in bytes for strings that are broadcast to the items of lists: 256 MiB.
const MAX_TEXT_BYTES: u64 = 256 << 20;

/// Lists of one level.
#[derive(Debug, Clone)]
pub(super) struct Lists {
    /// Offsets, beginning with zero. A missing list has no items.
    pub(super) offsets: OffsetBuffer<i64>,
    /// Which lists are present; `None` if all are.
    pub(super) nulls: Option<NullBuffer>,
    /// Whether some may be missing; computed values have the same type either way.
    pub(super) is_optional: bool,
    /// The number of items of each list, if it is fixed by the type and none may be missing.
    pub(super) fixed_len: Option<i32>,
}

impl Lists {
    /// The start and end of each list.
    pub(super) fn bounds(&self) -> impl ExactSizeIterator<Item = (i64, i64)> {
        self.offsets.windows(2).map(|window| (window[0], window[1]))
    }
}

/// One leaf for each item of the innermost lists; where there are none, for each entry.
#[derive(Debug, Clone)]
pub(super) struct Value {
    /// Those of each level, outermost first.
    pub(super) lists: Vec<Lists>,
    pub(super) leaf: ArrayRef,
    /// Whether leaves may be missing, as of lists.
    pub(super) is_optional: bool,
}

/// The kinds of leaves that expressions distinguish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Boolean,
    Integer,
    Single,
    Double,
    Text,
    Other,
}

impl Kind {
    pub(super) fn of(data_type: &DataType) -> Self {
        match data_type {
            DataType::Boolean => Self::Boolean,
            DataType::Float32 => Self::Single,
            DataType::Float64 => Self::Double,
            // Strings come as bytes where some are not UTF-8.
            DataType::LargeUtf8 | DataType::LargeBinary => Self::Text,
            integer if integer.is_integer() => Self::Integer,
            _ => Self::Other,
        }
    }
}

/// A description of values for messages.
pub(super) fn describe(data_type: &DataType) -> String {
    noun(data_type, false)
}

/// The kind of the items at the bottom of lists, or of a value that is not a list.
pub(super) fn leaf_kind(data_type: &DataType) -> Kind {
    match data_type {
        DataType::LargeList(item) | DataType::List(item) | DataType::FixedSizeList(item, _) => {
            leaf_kind(item.data_type())
        }
        other => Kind::of(other),
    }
}

fn noun(data_type: &DataType, is_plural: bool) -> String {
    let choose = |one: &'static str, many: &'static str| if is_plural { many } else { one };
    match data_type {
        DataType::LargeList(item) | DataType::List(item) | DataType::FixedSizeList(item, _) => {
            format!("{} of {}", choose("a list", "lists"), noun(item.data_type(), true))
        }
        DataType::Struct(members) => {
            let names: Vec<_> = members.iter().map(|member| member.name().as_str()).collect();
            format!("{} of {}", choose("a record", "records"), names.join(", "))
        }
        DataType::Union(alternatives, _) => {
            // The one of variants without a value has no type.
            let types = alternatives.iter().map(|(_, alternative)| alternative.data_type());
            let types: Vec<_> = types.filter(|one| **one != DataType::Null).map(describe).collect();
            format!("{} of {}", choose("a variant", "variants"), types.join(", "))
        }
        other => match Kind::of(other) {
            Kind::Boolean => choose("a boolean", "booleans").to_owned(),
            Kind::Integer => choose("an integer", "integers").to_owned(),
            Kind::Single | Kind::Double => choose("a real number", "real numbers").to_owned(),
            Kind::Text => choose("a string", "strings").to_owned(),
            Kind::Other => format!("{} of Arrow's type {other}", choose("a value", "values")),
        },
    }
}

/// Whether the leaves are strings.
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
            let mut fixed_len = None;
            let (offsets, values, item) = match leaf.data_type() {
                DataType::LargeList(item) => {
                    let list = leaf.as_list::<i64>();
                    (list.offsets().clone(), Arc::clone(list.values()), item)
                }
                DataType::List(item) => {
                    let list = leaf.as_list::<i32>();
                    let wide: Vec<i64> = list.offsets().iter().map(|&offset| i64::from(offset)).collect();
                    (OffsetBuffer::new(wide.into()), Arc::clone(list.values()), item)
                }
                DataType::FixedSizeList(item, len) => {
                    let list = leaf.as_fixed_size_list();
                    fixed_len = Some(*len).filter(|&len| len > 0 && !is_optional);
                    let lengths = std::iter::repeat_n(usize::try_from(*len).unwrap_or(0), list.len());
                    (OffsetBuffer::from_lengths(lengths), Arc::clone(list.values()), item)
                }
                _ => return Ok(Self { lists, leaf, is_optional }),
            };
            let nulls = leaf.nulls().filter(|nulls| nulls.null_count() > 0).cloned();
            let item_is_optional = item.is_nullable();
            let (offsets, values) = emptied(&offsets, &values, nulls.as_ref())?;
            lists.push(Lists { offsets, nulls, is_optional, fixed_len });
            (leaf, is_optional) = (values, item_is_optional);
        }
    }

    /// Whether the value for each entry may be missing.
    pub(super) fn is_nullable(&self) -> bool {
        self.lists.first().map_or(self.is_optional, |lists| lists.is_optional)
    }

    /// As one array.
    pub(super) fn into_array(self) -> ArrayRef {
        let mut is_optional = self.is_optional;
        self.lists.into_iter().rev().fold(self.leaf, |items, lists| {
            let item_is_optional = std::mem::replace(&mut is_optional, lists.is_optional);
            let item = Arc::new(Field::new("item", items.data_type().clone(), item_is_optional));
            match lists.fixed_len {
                Some(len) => Arc::new(FixedSizeListArray::new(item, len, items, None)),
                None => Arc::new(LargeListArray::new(item, lists.offsets, items, lists.nulls)),
            }
        })
    }

    /// The items of the lists above a level, without these.
    pub(super) fn below(&self, level: usize) -> Self {
        Self { lists: self.lists[level..].to_vec(), ..self.clone() }
    }

    /// The same, with more missing lists of a level.
    fn without(&self, level: usize, nulls: Option<&NullBuffer>) -> Result<Self> {
        let (mut lists, below) = (self.lists[..=level].to_vec(), self.below(level + 1));
        let (last, is_optional) = (&mut lists[level], below.is_nullable());
        let items;
        (last.offsets, items) = emptied(&last.offsets, &below.into_array(), nulls)?;
        last.nulls = nulls.cloned();
        let below = Self::of(&items, is_optional)?;
        lists.extend(below.lists);
        Ok(Self { lists, ..below })
    }

    /// Whether it is missing, asked of the outermost that may be.
    pub(super) fn is_missing(&self) -> Self {
        let level = self.lists.iter().position(|lists| lists.is_optional);
        let (nulls, count) = match level {
            Some(level) => (self.lists[level].nulls.as_ref(), self.lists[level].bounds().len()),
            None => (self.leaf.nulls(), self.leaf.len()),
        };
        let booleans = nulls.map_or_else(|| BooleanBuffer::new_unset(count), |nulls| !nulls.inner());
        let lists = self.lists[..level.unwrap_or(self.lists.len())].to_vec();
        Self { lists, leaf: Arc::new(BooleanArray::new(booleans, None)), is_optional: false }
    }

    pub(super) fn kind(&self) -> Kind {
        Kind::of(self.leaf.data_type())
    }

    /// A member of the records at the leaves.
    pub(super) fn member(&self, name: &str) -> Result<Self> {
        let Some(record) = self.leaf.as_struct_opt() else {
            let what = format!("{} has no member '{name}'", describe(self.leaf.data_type()));
            return Err(Error::invalid_argument(what));
        };
        let Some((index, field)) = record.fields().find(name) else {
            return Err(Error::no_such("member", name, record.column_names().into_iter()));
        };
        let column = with_nulls(record.column(index), record.nulls())?;
        let below = Self::of(&column, self.is_optional || field.is_nullable())?;
        Ok(Self { lists: self.lists.iter().cloned().chain(below.lists).collect(), ..below })
    }
}

/// An array with more nulls.
pub(super) fn with_nulls(array: &ArrayRef, nulls: Option<&NullBuffer>) -> Result<ArrayRef> {
    match nulls.filter(|nulls| nulls.null_count() > 0) {
        None => Ok(Arc::clone(array)),
        more => {
            let nulls = NullBuffer::union(array.nulls(), more);
            Ok(arrow_array::make_array(array.to_data().into_builder().nulls(nulls).build()?))
        }
    }
}

/// Lists without those that are missing, and the items of these: they begin with zero.
fn emptied(
    offsets: &OffsetBuffer<i64>,
    items: &ArrayRef,
    nulls: Option<&NullBuffer>,
) -> Result<(OffsetBuffer<i64>, ArrayRef)> {
    let holds = |at: usize| offsets[at] < offsets[at + 1];
    if let Some(nulls) = nulls.filter(|nulls| (0..nulls.len()).any(|at| nulls.is_null(at) && holds(at))) {
        let mut is_kept = vec![false; items.len()];
        let mut lengths = Vec::with_capacity(nulls.len());
        for (at, window) in offsets.windows(2).enumerate() {
            let range = window[0] as usize..window[1] as usize;
            lengths.push(if nulls.is_valid(at) { range.len() } else { 0 });
            is_kept[range].fill(nulls.is_valid(at));
        }
        return Ok((OffsetBuffer::from_lengths(lengths), filter(items, &BooleanArray::from(is_kept))?));
    }
    let (first, last) = (offsets[0], offsets[offsets.len() - 1]);
    let items = items.slice(first as usize, (last - first) as usize);
    Ok(match first {
        0 => (offsets.clone(), items),
        _ => (OffsetBuffer::new(offsets.iter().map(|offset| offset - first).collect::<Vec<_>>().into()), items),
    })
}

/// Booleans in which null counts as `missing`.
pub(super) fn known(booleans: &BooleanArray, missing: bool) -> BooleanArray {
    match (booleans.nulls(), missing) {
        (None, _) => booleans.clone(),
        (Some(_), false) => prep_null_mask_filter(booleans),
        (Some(nulls), true) => BooleanArray::new(booleans.values() | &!nulls.inner(), None),
    }
}

/// A value, or one that has no type of its own yet.
#[derive(Debug, Clone)]
pub(super) enum Operand {
    Literal(Literal),
    Value(Value),
}

impl Operand {
    pub(super) fn kind(&self) -> Kind {
        match self {
            Self::Value(value) => value.kind(),
            Self::Literal(literal) => Kind::of(literal.array().data_type()),
        }
    }

    fn value_mut(&mut self) -> Option<&mut Value> {
        match self {
            Self::Literal(_) => None,
            Self::Value(value) => Some(value),
        }
    }
}

/// Operands aligned to common lists. Literals keep a single value.
pub(super) struct Aligned {
    pub(super) lists: Vec<Lists>,
    pub(super) leaves: Vec<ArrayRef>,
    /// Number of leaves of each operand other than a literal.
    pub(super) count: usize,
    /// Whether all operands are literals.
    pub(super) is_literal: bool,
    /// Whether leaves may be null.
    pub(super) is_optional: bool,
}

impl Aligned {
    /// A leaf for all aligned operands; a literal if all are literals.
    pub(super) fn operand(self, leaf: ArrayRef) -> Operand {
        if !self.is_literal {
            return Operand::Value(Value { lists: self.lists, leaf, is_optional: self.is_optional });
        }
        Operand::Literal(match leaf.as_boolean_opt() {
            Some(booleans) => Literal::Boolean(booleans.value(0)),
            None => match leaf.as_primitive_opt::<Int64Type>() {
                Some(integers) => Literal::Integer(integers.value(0)),
                None => Literal::Real(leaf.as_primitive::<Float64Type>().value(0)),
            },
        })
    }
}

impl Literal {
    pub(super) fn array(&self) -> ArrayRef {
        match self {
            Self::Boolean(boolean) => Arc::new(BooleanArray::from(vec![*boolean])),
            Self::Integer(integer) => Arc::new(Int64Array::from(vec![*integer])),
            Self::Unsigned(integer) => Arc::new(UInt64Array::from(vec![*integer])),
            Self::Real(real) => Arc::new(Float64Array::from(vec![*real])),
            Self::Text(text) => Arc::new(LargeStringArray::from(vec![text.as_str()])),
        }
    }
}

/// Brings values to common lists, on all levels that they have: one that is missing in one of them is missing in all.
///
/// # Errors
/// Invalid argument for lists of different lengths.
pub(super) fn agree(values: &mut [&mut Value]) -> Result<()> {
    let depth = values.iter().map(|value| value.lists.len()).max().unwrap_or(0);
    for level in 0..depth {
        let mut some: Vec<&mut Value> =
            values.iter_mut().filter(|value| value.lists.len() > level).map(|value| &mut **value).collect();
        let [first, others @ ..] = &mut some[..] else { continue };
        if others.is_empty() {
            break;
        }
        let is_optional = first.lists[level].is_optional || others.iter().any(|value| value.lists[level].is_optional);
        if is_optional {
            let nulls = others.iter().fold(first.lists[level].nulls.clone(), |nulls, value| {
                NullBuffer::union(nulls.as_ref(), value.lists[level].nulls.as_ref())
            });
            if nulls.is_some() {
                for value in std::iter::once(&mut *first).chain(others.iter_mut()) {
                    **value = value.without(level, nulls.as_ref())?;
                }
            }
        }
        let one = &first.lists[level];
        if let Some(other) = others.iter().map(|value| &value.lists[level]).find(|other| other.offsets != one.offsets) {
            return Err(differ(&one.offsets, &other.offsets));
        }
        let is_fixed = !is_optional && others.iter().all(|value| value.lists[level].fixed_len == one.fixed_len);
        let fixed_len = one.fixed_len.filter(|_| is_fixed);
        for value in some {
            value.lists[level].is_optional = is_optional;
            value.lists[level].fixed_len = fixed_len;
        }
    }
    Ok(())
}

/// Aligns operands to the lists of the most deeply nested one: a value of a list is broadcast to the items of the list.
pub(super) fn align(operands: &[Operand]) -> Result<Aligned> {
    let mut operands = operands.to_vec();
    let mut values: Vec<&mut Value> = operands.iter_mut().filter_map(Operand::value_mut).collect();
    agree(&mut values)?;
    let deepest = values.iter().max_by_key(|value| value.lists.len());
    let lists = deepest.map(|value| value.lists.clone()).unwrap_or_default();
    let count = deepest.map_or(1, |value| value.leaf.len());
    let (is_literal, is_optional) = (values.is_empty(), values.iter().any(|value| value.is_optional));
    let mut leaves = Vec::with_capacity(operands.len());
    for operand in &operands {
        leaves.push(match operand {
            Operand::Literal(literal) => literal.array(),
            Operand::Value(value) if value.lists.len() == lists.len() => Arc::clone(&value.leaf),
            Operand::Value(value) => {
                let owners = repeated(&lists[value.lists.len()..]);
                check_texts(&value.leaf, &owners)?;
                take(&value.leaf, &owners, None)?
            }
        });
    }
    Ok(Aligned { lists, leaves, count, is_literal, is_optional })
}

/// Strings as their bytes.
pub(super) fn as_bytes(strings: &ArrayRef) -> Result<LargeBinaryArray> {
    Ok(cast(strings, &DataType::LargeBinary)?.as_binary().clone())
}

/// Checks the size of broadcast strings before they are copied.
///
/// # Errors
/// A limit error if they take more than [`MAX_TEXT_BYTES`].
fn check_texts(leaf: &ArrayRef, owners: &UInt64Array) -> Result<()> {
    if Kind::of(leaf.data_type()) != Kind::Text {
        return Ok(());
    }
    let strings = as_bytes(leaf)?;
    let length = |owner: u64| strings.value_length(owner as usize).unsigned_abs();
    let bytes = owners.values().iter().fold(0, |sum: u64, &owner| sum.saturating_add(length(owner)));
    match bytes <= MAX_TEXT_BYTES {
        true => Ok(()),
        false => Err(Error::limit(format!("repeating strings for each item of lists would need {bytes} bytes"))),
    }
}

#[cold]
fn differ(one: &OffsetBuffer<i64>, other: &OffsetBuffer<i64>) -> Error {
    let lengths = |offsets: &OffsetBuffer<i64>, at: usize| offsets.get(at + 1).map_or(0, |end| end - offsets[at]);
    let at = (0..one.len().min(other.len()) - 1).find(|&at| lengths(one, at) != lengths(other, at)).unwrap_or(0);
    let (one, other) = (lengths(one, at), lengths(other, at));
    Error::invalid_argument(format!("lists have different lengths, first {one} and {other}"))
}

/// For each item of the innermost of these lists, the index of the value that is broadcast to it.
fn repeated(lists: &[Lists]) -> UInt64Array {
    let mut owners: Option<Vec<u64>> = None;
    for level in lists {
        let mut next = Vec::with_capacity(level.offsets[level.offsets.len() - 1] as usize);
        for (index, (from, to)) in level.bounds().enumerate() {
            let owner = owners.as_ref().map_or(index as u64, |owners| owners[index]);
            next.resize(next.len() + (to - from) as usize, owner);
        }
        owners = Some(next);
    }
    UInt64Array::new(ScalarBuffer::from(owners.unwrap_or_default()), None)
}
