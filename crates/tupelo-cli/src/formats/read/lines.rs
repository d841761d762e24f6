//! Columns of texts while they are read, and the kinds of values that decide on their types.

use std::sync::Arc;

use arrow_array::builder::{BooleanBuilder, Float64Builder, Int64Builder, LargeStringBuilder, UInt64Builder};
use arrow_array::{ArrayRef, LargeListArray, RecordBatch, RecordBatchOptions, StructArray};
use arrow_buffer::{NullBufferBuilder, OffsetBuffer};
use arrow_schema::{DataType, Field, Fields, SchemaRef};

use super::Place;
use crate::failure::Failure;

/// Maximum length of a line of text, in bytes.
pub(super) const MAX_LINE_BYTES: usize = 64 << 20;

/// The batches of a text. `fill` adds the entries of the next one to empty columns; it returns their number, which is 0 at the
/// end of the file.
pub(super) fn batches<'f>(
    place: &'f Place,
    schema: SchemaRef,
    mut fill: impl FnMut(&mut [Values]) -> Result<usize, Failure> + 'f,
) -> impl Iterator<Item = Result<RecordBatch, Failure>> + 'f {
    let mut next = move || {
        let unknown = || place.failure("the type of a column is unknown");
        let values = |field: &Arc<Field>| Values::of(field.data_type()).ok_or_else(unknown);
        let mut columns = schema.fields().iter().map(values).collect::<Result<Vec<_>, _>>()?;
        let count = fill(&mut columns)?;
        if count == 0 {
            return Ok(None);
        }
        let arrays = columns.iter_mut().map(Values::finish).collect::<Result<_, _>>();
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        let batch = arrays.and_then(|arrays| RecordBatch::try_new_with_options(schema.clone(), arrays, &options));
        batch.map(Some).map_err(|error| place.failure(error))
    };
    let mut is_over = false;
    std::iter::from_fn(move || {
        if is_over {
            return None;
        }
        let batch = next().transpose();
        is_over = !matches!(batch, Some(Ok(_)));
        batch
    })
}

/// A set of kinds of values.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Kinds(u8);

impl Kinds {
    pub(super) const BOOL: Self = Self(1);
    /// An integer that fits `i64`, but no negative one.
    pub(super) const NATURAL: Self = Self(2);
    pub(super) const NEGATIVE: Self = Self(4);
    /// An integer that fits `u64` only.
    pub(super) const BIG: Self = Self(8);
    pub(super) const REAL: Self = Self(16);
    pub(super) const TEXT: Self = Self(32);
    /// `NaN`, `Infinity` or `-Infinity`, which JSON has as texts.
    pub(super) const NOT_FINITE: Self = Self(64);
    /// An integer that no `double` has exactly.
    pub(super) const WIDE: Self = Self(128);

    /// The kinds of an integer.
    pub(super) fn of_integer(value: i128) -> Self {
        let mut kinds = match value {
            ..0 => Self::NEGATIVE,
            value if i64::try_from(value).is_ok() => Self::NATURAL,
            _ => Self::BIG,
        };
        if !is_exact(value) {
            kinds.add(Self::WIDE);
        }
        kinds
    }

    pub(super) fn add(&mut self, other: Self) {
        self.0 |= other.0;
    }

    fn is_within(self, others: &[Self]) -> bool {
        self.0 & !others.iter().fold(0, |all, other| all | other.0) == 0
    }

    pub(super) fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The type that has all of these values without loss; `None` if there is none.
    pub(super) fn data_type(self) -> Option<DataType> {
        let integers = [Self::NATURAL, Self::NEGATIVE, Self::WIDE];
        let numbers = [Self::NATURAL, Self::NEGATIVE, Self::BIG, Self::REAL, Self::NOT_FINITE];
        match self {
            Self(0) => None,
            Self::BOOL => Some(DataType::Boolean),
            _ if self.is_within(&[Self::TEXT, Self::NOT_FINITE]) => Some(DataType::LargeUtf8),
            _ if self.is_within(&integers) => Some(DataType::Int64),
            _ if self.is_within(&[Self::NATURAL, Self::BIG, Self::WIDE]) => Some(DataType::UInt64),
            _ if self.is_within(&numbers) => Some(DataType::Float64),
            _ => None,
        }
    }
}

/// Whether a `double` has an integer exactly.
fn is_exact(value: i128) -> bool {
    (value as f64) as i128 == value
}

/// A value of a text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Scalar<'t> {
    Bool(bool),
    Int(i64),
    Uint(u64),
    Real(f64),
    Text(&'t str),
}

/// Values of a column.
#[derive(Debug)]
pub(super) enum Values {
    Bool(BooleanBuilder),
    Int(Int64Builder),
    Uint(UInt64Builder),
    Real(Float64Builder),
    Text(LargeStringBuilder),
    List { ends: Vec<i64>, nulls: NullBufferBuilder, items: Box<Values>, item: Arc<Field> },
    Record { members: Vec<Values>, fields: Fields, nulls: NullBufferBuilder },
}

impl Values {
    /// No values yet; `None` for types that texts do not have.
    pub(super) fn of(data_type: &DataType) -> Option<Self> {
        // By default a builder takes 8 KiB, and a file may have any number of columns.
        Some(match data_type {
            DataType::Boolean => Self::Bool(BooleanBuilder::with_capacity(0)),
            DataType::Int64 => Self::Int(Int64Builder::with_capacity(0)),
            DataType::UInt64 => Self::Uint(UInt64Builder::with_capacity(0)),
            DataType::Float64 => Self::Real(Float64Builder::with_capacity(0)),
            DataType::LargeUtf8 => Self::Text(LargeStringBuilder::with_capacity(0, 0)),
            DataType::LargeList(item) => Self::List {
                ends: vec![0],
                nulls: NullBufferBuilder::new(0),
                items: Box::new(Self::of(item.data_type())?),
                item: Arc::clone(item),
            },
            DataType::Struct(fields) => Self::Record {
                members: fields.iter().map(|field| Self::of(field.data_type())).collect::<Option<_>>()?,
                fields: fields.clone(),
                nulls: NullBufferBuilder::new(0),
            },
            _ => return None,
        })
    }

    /// What it holds, for messages.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Bool(_) => "true or false",
            Self::Int(_) => "a 64-bit integer",
            Self::Uint(_) => "an integer from 0 to 2⁶⁴−1",
            Self::Real(_) => "a number",
            Self::Text(_) => "a string",
            Self::List { .. } => "a list",
            Self::Record { .. } => "an object",
        }
    }

    /// Adds a value; false if it does not fit.
    pub(super) fn push(&mut self, value: Scalar<'_>) -> bool {
        match (self, value) {
            (Self::Bool(values), Scalar::Bool(value)) => values.append_value(value),
            (Self::Int(values), Scalar::Int(value)) => values.append_value(value),
            (Self::Uint(values), Scalar::Uint(value)) => values.append_value(value),
            (Self::Uint(values), Scalar::Int(value)) => match u64::try_from(value) {
                Ok(value) => values.append_value(value),
                Err(_) => return false,
            },
            (Self::Real(values), Scalar::Real(value)) => values.append_value(value),
            (Self::Real(values), Scalar::Int(value)) if is_exact(value.into()) => values.append_value(value as f64),
            (Self::Real(values), Scalar::Uint(value)) if is_exact(value.into()) => values.append_value(value as f64),
            (Self::Text(values), Scalar::Text(value)) => values.append_value(value),
            _ => return false,
        }
        true
    }

    /// Adds a missing value.
    pub(super) fn push_null(&mut self) {
        match self {
            Self::Bool(values) => values.append_null(),
            Self::Int(values) => values.append_null(),
            Self::Uint(values) => values.append_null(),
            Self::Real(values) => values.append_null(),
            Self::Text(values) => values.append_null(),
            Self::List { ends, nulls, .. } => {
                ends.push(ends.last().copied().unwrap_or(0));
                nulls.append_null();
            }
            Self::Record { members, nulls, .. } => {
                members.iter_mut().for_each(Self::push_null);
                nulls.append_null();
            }
        }
    }

    /// Number of values.
    pub(super) fn count(&self) -> usize {
        use arrow_array::builder::ArrayBuilder;
        match self {
            Self::Bool(values) => values.len(),
            Self::Int(values) => values.len(),
            Self::Uint(values) => values.len(),
            Self::Real(values) => values.len(),
            Self::Text(values) => values.len(),
            Self::List { ends, .. } => ends.len() - 1,
            Self::Record { nulls, .. } => nulls.len(),
        }
    }

    /// All values as an array; none are left.
    pub(super) fn finish(&mut self) -> Result<ArrayRef, arrow_schema::ArrowError> {
        Ok(match self {
            Self::Bool(values) => Arc::new(values.finish()),
            Self::Int(values) => Arc::new(values.finish()),
            Self::Uint(values) => Arc::new(values.finish()),
            Self::Real(values) => Arc::new(values.finish()),
            Self::Text(values) => Arc::new(values.finish()),
            Self::List { ends, nulls, items, item } => {
                let offsets = OffsetBuffer::new(std::mem::replace(ends, vec![0]).into());
                Arc::new(LargeListArray::try_new(Arc::clone(item), offsets, items.finish()?, nulls.finish())?)
            }
            Self::Record { members, fields, nulls } => {
                let count = nulls.len();
                let members = members.iter_mut().map(Self::finish).collect::<Result<_, _>>()?;
                Arc::new(StructArray::try_new_with_length(fields.clone(), members, nulls.finish(), count)?)
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::Array;

    use super::*;

    /// Defect: each column of each batch took 8 KiB, so that 100 000 columns of three lines took 2.7 GB.
    #[test]
    fn columns_without_values_take_no_memory() {
        let item = Arc::new(Field::new_list_field(DataType::Int64, true));
        let types = [DataType::Boolean, DataType::Int64, DataType::UInt64, DataType::Float64, DataType::LargeUtf8];
        for data_type in types.into_iter().chain([DataType::LargeList(item)]) {
            let mut values = Values::of(&data_type).expect("a column");
            let bytes = values.finish().expect("an array").get_buffer_memory_size();
            assert!(bytes <= 128, "{data_type}: {bytes}");
        }
    }
}
