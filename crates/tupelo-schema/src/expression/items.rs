//! Items of lists: by index, slice and mask.

use arrow_array::types::Int64Type;
use arrow_array::{Array, UInt64Array};
use arrow_buffer::OffsetBuffer;
use arrow_select::filter::filter;
use arrow_select::take::take;

use super::functions::{NumberType, booleans};
use super::syntax::{Literal, Slice};
use super::value::{Kind, Lists, Operand, Value, agree, describe, known};
use crate::{Error, Result};

fn check_level(value: &Value, level: usize) -> Result<()> {
    if level < value.lists.len() {
        return Ok(());
    }
    let (found, each) = (describe(value.leaf.data_type()), if level == 0 { "entry" } else { "item" });
    Err(Error::invalid_argument(format!("{found} for each {each} cannot be indexed")))
}

/// `value[start:stop:step]`, of the lists of a level.
pub(super) fn slice(value: &Value, level: usize, slice: Slice) -> Result<Value> {
    check_level(value, level)?;
    let old = &value.lists[level];
    let (mut places, mut lengths) = (Vec::new(), Vec::with_capacity(old.bounds().len()));
    for (from, to) in old.bounds() {
        let before = places.len();
        places.extend(slice.indices(to - from).map(|index| (from + index) as u64));
        lengths.push(places.len() - before);
    }
    let below = value.below(level + 1);
    let is_optional = below.is_nullable();
    let below = Value::of(&take(&below.into_array(), &UInt64Array::from(places), None)?, is_optional)?;
    let mut lists = value.lists[..level].to_vec();
    lists.push(Lists { offsets: OffsetBuffer::from_lengths(lengths), fixed_len: None, ..old.clone() });
    lists.extend(below.lists);
    Ok(Value { lists, ..below })
}

/// `value[by]`, of the lists of a level.
pub(super) fn index(value: &Value, by: &Operand, level: usize) -> Result<Value> {
    check_level(value, level)?;
    match (by, by.kind()) {
        (Operand::Value(mask), Kind::Boolean) => select(value, mask),
        (Operand::Literal(Literal::Integer(place)), _) => item(value, level, |_| Some(*place)),
        (Operand::Literal(Literal::Unsigned(_)), _) => item(value, level, |_| None),
        (Operand::Value(places), Kind::Integer) => {
            let depth = places.lists.len();
            let (mut value, mut places) = (value.clone(), places.clone());
            if value.lists.len() <= depth || agree(&mut [&mut value, &mut places]).is_err() {
                return Err(Error::invalid_argument("an index selects one item of each list"));
            }
            let places = NumberType::cast::<Int64Type>(&places.leaf)?;
            item(&value, depth, |list| (!places.is_null(list)).then(|| places.value(list)))
        }
        _ => Err(Error::invalid_argument("an index must be an integer or a list of booleans")),
    }
}

/// The items where the mask is true.
fn select(value: &Value, mask: &Value) -> Result<Value> {
    let (mut value, mut mask) = (value.clone(), mask.clone());
    let depth = mask.lists.len();
    if depth == 0 {
        return Err(Error::invalid_argument(
            "a mask must be a list of booleans, one for each item; use a cut to select entries",
        ));
    }
    if value.lists.len() < depth || agree(&mut [&mut value, &mut mask]).is_err() {
        return Err(Error::invalid_argument("a mask must have one boolean for each item of a list"));
    }
    let kept = known(&booleans(&mask.leaf, "a mask")?, false);
    let below = value.below(depth);
    let is_optional = below.is_nullable();
    let below = Value::of(&filter(&below.into_array(), &kept)?, is_optional)?;
    let mut lists = mask.lists;
    let last = &mut lists[depth - 1];
    let lengths = last.bounds().map(|(from, to)| (from..to).filter(|&at| kept.value(at as usize)).count());
    (last.offsets, last.fixed_len) = (OffsetBuffer::from_lengths(lengths), None);
    lists.extend(below.lists);
    Ok(Value { lists, ..below })
}

/// One item of each list of a level, counted from its front or, if negative, from its end; missing if there is none.
fn item(value: &Value, level: usize, place: impl Fn(usize) -> Option<i64>) -> Result<Value> {
    let places = value.lists[level].bounds().enumerate().map(|(list, (from, to))| {
        let place = place(list)?;
        let at = if place < 0 { to.checked_add(place)? } else { from.checked_add(place)? };
        (from..to).contains(&at).then_some(at as u64)
    });
    let places: UInt64Array = places.collect();
    let below = Value::of(&take(&value.below(level + 1).into_array(), &places, None)?, true)?;
    Ok(Value { lists: value.lists[..level].iter().cloned().chain(below.lists).collect(), ..below })
}
