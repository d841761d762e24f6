//! Applies the transforms of [`super::resolve`] to Arrow arrays.
//!
//! Buffers are reused where possible: only numbers of another type, items of optionals and defaults are new buffers.
//! Items are transformed without what is missing among them, so that nothing below an optional sees a null.

use std::sync::Arc;

use arrow_array::builder::NullBufferBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, FixedSizeListArray, Float32Array, LargeBinaryArray, LargeListArray,
    LargeStringArray, NullArray, StructArray, UInt64Array, UnionArray, make_array, new_null_array,
};
use arrow_buffer::{Buffer, MutableBuffer, OffsetBuffer, ScalarBuffer};
use arrow_cast::cast::{CastOptions, cast_with_options};
use arrow_cast::display::ArrayFormatter;
use arrow_data::ArrayData;
use arrow_schema::{ArrowError, DataType, Fields};

use super::relabel::binary;
use super::resolve::{Call, ItemLayout, Member, Origin, Transform};
use super::rules::ReadRule;
use crate::schema::arrow as arrow_type;
use crate::schema::{Field, Kind};
use crate::{Error, Result};

/// What went wrong, and the index of the value at fault in the transformed array, if it is a single one.
pub(super) struct Fault {
    pub(super) element: Option<usize>,
    pub(super) error: Error,
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self { element: None, error }
    }
}

impl From<ArrowError> for Fault {
    #[cold]
    fn from(error: ArrowError) -> Self {
        Self { element: None, error: error.into() }
    }
}

impl Fault {
    /// The same fault, at the place in the parent that holds the value.
    fn above(self, place: impl FnOnce(usize) -> usize) -> Self {
        Self { element: self.element.map(place), ..self }
    }
}

type Outcome = Result<ArrayRef, Fault>;

/// Applies transforms of one reading request.
pub(super) struct Transformer<'r> {
    pub(super) rules: &'r [ReadRule],
    pub(super) compressed: bool,
    pub(super) binary_strings: bool,
}

impl Transformer<'_> {
    pub(super) fn apply(&self, transform: &Transform, array: ArrayRef) -> Outcome {
        match transform {
            Transform::Same => Ok(array),
            Transform::Number { to, path, type_name } => number(&array, to).map_err(|fault| {
                let wanted = format!("field '{path}', read as '{type_name}'");
                Fault { error: fault.error.within(wanted), ..fault }
            }),
            Transform::Items { from, to, label, item } => self.items(*from, *to, label, item, array),
            Transform::Sizes { from, wide, path } => sizes(&array, *from, *wide).map_err(|fault| {
                let error = fault.error.within(format!("field '{path}'"));
                Fault { error, ..fault }
            }),
            Transform::Members { calls, members } => self.members(calls, members, array.as_struct()),
            Transform::Alternatives(alternatives) => self.alternatives(alternatives, array.as_union()),
        }
    }

    fn items(
        &self,
        from: ItemLayout,
        to: ItemLayout,
        label: &Field,
        transform: &Transform,
        array: ArrayRef,
    ) -> Outcome {
        let (values, offsets) = Offsets::of(from, &array)?;
        let values = self.apply(transform, values).map_err(|fault| {
            fault.above(|item| match &offsets {
                Offsets::Each => item,
                // The last one that begins at or before the item.
                Offsets::Any(offsets) => offsets.partition_point(|&offset| offset as usize <= item) - 1,
                Offsets::Fixed(size) => item / (*size).max(1),
            })
        })?;
        let item = || arrow_type::item(label, values.data_type().clone(), self.compressed);
        Ok(match to {
            ItemLayout::One => values,
            ItemLayout::Nullable => spread(values, &offsets, array.len())?,
            ItemLayout::List => {
                let offsets = offsets.into_list(array.len())?;
                Arc::new(LargeListArray::try_new(item(), offsets, values, None)?)
            }
            ItemLayout::Fixed(size) => {
                let size = i32::try_from(size)
                    .map_err(|_| Error::limit(format!("fixed array of {size} items is too large")))?;
                Arc::new(FixedSizeListArray::try_new_with_length(item(), size, values, None, array.len())?)
            }
        })
    }

    fn members(&self, calls: &[Call], members: &[Member], record: &StructArray) -> Outcome {
        let count = record.len();
        let mut outputs = Vec::with_capacity(calls.len());
        for call in calls {
            let sources = call.sources.iter().map(|names| drill(record, names)).collect::<Result<Vec<_>>>()?;
            outputs.push(self.rules[call.rule].call(&sources, count, self.compressed)?);
        }
        let (mut fields, mut arrays) = (Vec::with_capacity(members.len()), Vec::with_capacity(members.len()));
        for Member { label, name, origin } in members {
            let array = match origin {
                Origin::Read(index, transform) => self.apply(transform, record.column(*index).clone())?,
                Origin::Default => self.defaults(label, count)?,
                Origin::Computed { call, output, transform } => {
                    self.apply(transform, self.strings(outputs[*call][*output].clone())?)?
                }
            };
            fields.push(arrow_type::named(label, name, array.data_type().clone(), self.compressed));
            arrays.push(array);
        }
        if arrays.is_empty() {
            return Ok(Arc::new(StructArray::new_empty_fields(count, None)));
        }
        Ok(Arc::new(StructArray::try_new(Fields::from(fields), arrays, None)?))
    }

    fn alternatives(&self, alternatives: &[(Field, Transform)], union: &UnionArray) -> Outcome {
        let offsets = union.offsets().ok_or_else(|| Error::invalid_argument("a variant must be a dense union"))?;
        let mut children: Vec<ArrayRef> = vec![union.child(0).clone()];
        let mut fields = Vec::with_capacity(alternatives.len());
        for (tag, (label, transform)) in (1i8..).zip(alternatives) {
            let child = self.apply(transform, union.child(tag).clone()).map_err(|fault| {
                fault.above(|item| {
                    let mut places = union.type_ids().iter().zip(offsets.iter());
                    places.position(|(&id, &offset)| id == tag && offset as usize == item).unwrap_or(item)
                })
            })?;
            fields.push(arrow_type::named(label, &label.name, child.data_type().clone(), self.compressed));
            children.push(child);
        }
        let fields = arrow_type::union_fields(fields.into());
        Ok(Arc::new(UnionArray::try_new(fields, union.type_ids().clone(), Some(offsets.clone()), children)?))
    }

    /// The value of a member that is not on disk: zero, empty, nothing.
    fn defaults(&self, field: &Field, count: usize) -> Result<ArrayRef> {
        let label = |field: &Field, name: &str, array: &ArrayRef| {
            arrow_type::named(field, name, array.data_type().clone(), self.compressed)
        };
        let no_lists = || OffsetBuffer::new_zeroed(count);
        Ok(match &field.kind {
            Kind::Primitive(_) | Kind::Cardinality { .. } => {
                zeros(&arrow_type::data_type(field, self.compressed), count)?
            }
            Kind::String if self.binary_strings => Arc::new(LargeBinaryArray::new(no_lists(), Buffer::default(), None)),
            Kind::String => Arc::new(LargeStringArray::new(no_lists(), Buffer::default(), None)),
            Kind::Streamer => return Err(Error::invalid_argument("a streamed class has no default")),
            Kind::Wrapper(item) => self.defaults(item, count)?,
            Kind::Optional(item) if item.takes_nulls() => new_null_array(self.defaults(item, 0)?.data_type(), count),
            Kind::Optional(item) | Kind::Collection(item) => {
                let values = self.defaults(item, 0)?;
                let item = arrow_type::item(item, values.data_type().clone(), self.compressed);
                Arc::new(LargeListArray::try_new(item, no_lists(), values, None)?)
            }
            Kind::Map(pair) => {
                let values = self.default_members(pair.children(), arrow_type::PAIR.into_iter(), 0)?;
                let item = arrow_type::item(pair, values.data_type().clone(), self.compressed);
                Arc::new(LargeListArray::try_new(item, no_lists(), values, None)?)
            }
            Kind::Bitset { size } => {
                let (size, items) = fixed_size(*size, count)?;
                let bits = zeros(&DataType::Boolean, items)?;
                Arc::new(FixedSizeListArray::try_new_with_length(arrow_type::bits(), size, bits, None, count)?)
            }
            Kind::Array { size, item } => {
                let (size, items) = fixed_size(*size, count)?;
                let values = self.defaults(item, items)?;
                let item = arrow_type::item(item, values.data_type().clone(), self.compressed);
                Arc::new(FixedSizeListArray::try_new_with_length(item, size, values, None, count)?)
            }
            Kind::Record(members) | Kind::Tuple(members) => {
                self.default_members(members, members.iter().map(|member| member.name.as_str()), count)?
            }
            // As in C++, a default-constructed variant holds its first alternative.
            Kind::Variant(alternatives) => {
                let mut children: Vec<ArrayRef> = vec![Arc::new(NullArray::new(0))];
                let mut fields = Vec::with_capacity(alternatives.len());
                for (index, alternative) in alternatives.iter().enumerate() {
                    let child = self.defaults(alternative, if index == 0 { count } else { 0 })?;
                    fields.push(label(alternative, &alternative.name, &child));
                    children.push(child);
                }
                let last = i32::try_from(count).map_err(|_| Error::limit("more than 2^31 variants at once"))?;
                let offsets = ScalarBuffer::from_iter(0..last);
                let fields = arrow_type::union_fields(fields.into());
                Arc::new(UnionArray::try_new(fields, vec![1; count].into(), Some(offsets), children)?)
            }
        })
    }

    fn default_members<'n>(
        &self,
        members: &[Field],
        names: impl Iterator<Item = &'n str>,
        count: usize,
    ) -> Result<ArrayRef> {
        if members.is_empty() {
            return Ok(Arc::new(StructArray::new_empty_fields(count, None)));
        }
        let arrays = members.iter().map(|member| self.defaults(member, count)).collect::<Result<Vec<_>>>()?;
        let fields =
            members.iter().zip(names).zip(&arrays).map(|((member, name), array)| {
                arrow_type::named(member, name, array.data_type().clone(), self.compressed)
            });
        Ok(Arc::new(StructArray::try_new(fields.collect::<Vec<_>>().into(), arrays, None)?))
    }

    /// What rules computed, with strings as the caller wants them.
    fn strings(&self, array: ArrayRef) -> Result<ArrayRef> {
        match self.binary_strings {
            false => Ok(array),
            true => binary(array),
        }
    }
}

/// The layout of items.
enum Offsets {
    /// One item for each value.
    Each,
    Any(OffsetBuffer<i64>),
    Fixed(usize),
}

impl Offsets {
    /// The items of an array, without those that are missing, and where they belong.
    fn of(layout: ItemLayout, array: &ArrayRef) -> Result<(ArrayRef, Self), Fault> {
        Ok(match layout {
            ItemLayout::One => (array.clone(), Self::Each),
            ItemLayout::List => {
                let list = array.as_list::<i64>();
                let (offsets, values) = (list.offsets(), list.values());
                let (first, last) = (offsets[0], offsets[offsets.len() - 1]);
                // Only what rules computed may begin elsewhere.
                let offsets = match first {
                    0 => offsets.clone(),
                    first => OffsetBuffer::new(offsets.iter().map(|offset| offset - first).collect()),
                };
                (values.slice(first as usize, (last - first) as usize), Self::Any(offsets))
            }
            ItemLayout::Fixed(_) => {
                let list = array.as_fixed_size_list();
                let size = list.value_length() as usize;
                (list.values().slice(list.offset() * size, list.len() * size), Self::Fixed(size))
            }
            ItemLayout::Nullable => match array.nulls().filter(|nulls| nulls.null_count() > 0) {
                None => (without_nulls(array)?, Self::Each),
                Some(nulls) => {
                    let valid = BooleanArray::new(nulls.inner().clone(), None);
                    let values = without_nulls(&arrow_select::filter::filter(array, &valid)?)?;
                    let ends = nulls.iter().scan(0i64, |end, valid| {
                        *end += i64::from(valid);
                        Some(*end)
                    });
                    (values, Self::Any(OffsetBuffer::new(std::iter::once(0).chain(ends).collect())))
                }
            },
        })
    }

    fn into_list(self, count: usize) -> Result<OffsetBuffer<i64>> {
        let steps = |size: usize| match count.checked_mul(size).map(i64::try_from) {
            Some(Ok(_)) => Ok(OffsetBuffer::from_repeated_length(size, count)),
            _ => Err(Error::limit("more than 2^63 items")),
        };
        match self {
            Self::Each => steps(1),
            Self::Fixed(size) => steps(size),
            Self::Any(offsets) => Ok(offsets),
        }
    }
}

/// Also adds slots for missing items.
fn spread(values: ArrayRef, offsets: &Offsets, count: usize) -> Outcome {
    let Offsets::Any(offsets) = offsets else { return Ok(values) };
    if values.len() == count && offsets.windows(2).all(|w| w[1] > w[0]) {
        return Ok(values);
    }
    let mut places = Vec::with_capacity(count);
    let mut valid = NullBufferBuilder::new(count);
    for window in offsets.windows(2) {
        valid.append(window[1] > window[0]);
        places.push(window[0].unsigned_abs());
    }
    let places = UInt64Array::new(places.into(), valid.finish());
    Ok(arrow_select::take::take(&values, &places, None)?)
}

fn without_nulls(array: &ArrayRef) -> Result<ArrayRef> {
    if array.nulls().is_none() {
        return Ok(array.clone());
    }
    Ok(make_array(array.to_data().into_builder().nulls(None).build()?))
}

/// The array at the end of a path of names from a record.
fn drill(record: &StructArray, names: &[String]) -> Result<ArrayRef> {
    let missing = |name: &str| Error::invalid_argument(format!("member '{name}' does not exist"));
    let (name, rest) = names.split_first().ok_or_else(|| missing(""))?;
    let array = record.column_by_name(name).ok_or_else(|| missing(name))?;
    if rest.is_empty() { Ok(array.clone()) } else { drill(array.as_struct(), rest) }
}

/// Numbers as others. `float` from `double` is checked as ROOT does: `EnsureValidConversion` in `RColumnElement.hxx`.
fn number(array: &ArrayRef, to: &DataType) -> Outcome {
    if (array.data_type(), to) == (&DataType::Float64, &DataType::Float32) {
        return single(array);
    }
    let strict = CastOptions { safe: false, ..CastOptions::default() };
    cast_with_options(array, to, &strict).map_err(|error| {
        let safe = CastOptions { safe: true, ..CastOptions::default() };
        let lost = cast_with_options(array, to, &safe).ok();
        let lost = lost.and_then(|cast| (0..array.len()).find(|&i| array.is_valid(i) && cast.is_null(i)));
        match lost {
            Some(element) => lost_value(array, element, "is out of range"),
            None => error.into(),
        }
    })
}

fn single(array: &ArrayRef) -> Outcome {
    let doubles = array.as_primitive::<Float64Type>();
    let keeps_class = |double: f64| double.classify() == (double as f32).classify();
    if let Some(element) = doubles.values().iter().position(|&double| !keeps_class(double)) {
        let what = format!("would become {:e}", doubles.value(element) as f32);
        return Err(lost_value(array, element, &what));
    }
    let singles: Float32Array = doubles.unary::<_, Float32Type>(|double| double as f32);
    Ok(Arc::new(singles))
}

#[cold]
fn lost_value(array: &ArrayRef, element: usize, what: &str) -> Fault {
    let value = ArrayFormatter::try_new(array, &Default::default()).map(|text| text.value(element).to_string());
    let error = Error::invalid_argument(format!("the value {} {what}", value.unwrap_or_default()));
    Fault { element: Some(element), error }
}

fn sizes(array: &ArrayRef, from: ItemLayout, wide: bool) -> Outcome {
    let sizes: Vec<u64> = match from {
        ItemLayout::List => array.as_list::<i64>().offsets().windows(2).map(|w| w[1].abs_diff(w[0])).collect(),
        ItemLayout::Nullable => (0..array.len()).map(|i| u64::from(array.is_valid(i))).collect(),
        ItemLayout::One => vec![1; array.len()],
        ItemLayout::Fixed(size) => vec![size; array.len()],
    };
    let wide_sizes: ArrayRef = Arc::new(UInt64Array::from(sizes));
    match wide {
        true => Ok(wide_sizes),
        false => number(&wide_sizes, &DataType::UInt32),
    }
}

fn zeros(data_type: &DataType, count: usize) -> Result<ArrayRef> {
    let bytes = match data_type {
        DataType::Boolean => count.div_ceil(8),
        other => count.saturating_mul(other.primitive_width().unwrap_or(8)),
    };
    let buffer = MutableBuffer::from_len_zeroed(bytes);
    Ok(make_array(ArrayData::builder(data_type.clone()).len(count).add_buffer(buffer.into()).build()?))
}

fn fixed_size(size: u64, count: usize) -> Result<(i32, usize)> {
    let items = usize::try_from(size).ok().and_then(|size| size.checked_mul(count));
    match (i32::try_from(size), items) {
        (Ok(size), Some(items)) => Ok((size, items)),
        _ => Err(Error::limit(format!("{count} fixed arrays of {size} items are too large"))),
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::Float64Array;

    use super::*;

    #[test]
    fn singles_of_doubles_stay_in_their_class() {
        let doubles = [0.0, -0.0, 1.1, f64::INFINITY, f64::NAN, 3.402_823_5e38, 1.175_494_34e-38, 1.175_494_3e-38];
        for (double, is_kept) in
            doubles.map(|d| (d, true)).into_iter().chain([1e39, -1e39, 1e-40, 1e-46, 5e-324].map(|d| (d, false)))
        {
            let array: ArrayRef = Arc::new(Float64Array::from(vec![1.0, double]));
            match number(&array, &DataType::Float32) {
                Ok(single) => {
                    assert!(is_kept, "{double}");
                    let single = single.as_primitive::<Float32Type>().value(1);
                    assert_eq!(single.to_bits(), (double as f32).to_bits());
                }
                Err(fault) => assert_eq!((is_kept, fault.element), (false, Some(1)), "{double}"),
            }
        }
    }
}
