//! Arrow arrays to columns: the inverse of `decode`.

mod column;
mod page;
mod sealed;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef, BooleanArray, UInt8Array, UInt64Array};
use arrow_buffer::{Buffer, OffsetBuffer, ScalarBuffer};
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::DataType;
use tupelo_format::encoding::Encoding;
use tupelo_schema::schema::{Field, Kind, Primitive};

use self::column::Lengths;
pub use self::column::{ColumnKind, ColumnWriter, Values};
pub use self::page::{ListedPage, PackedPage, PageOptions, SealedPage, StoredColumn};
pub use self::sealed::{ListedCluster, ListedColumn, ReadPages, SealedColumn};
use crate::{Error, Result};

/// A field being written, and its columns.
#[derive(Debug, Clone)]
pub struct FieldWriter {
    /// Dotted path of the field.
    pub path: String,
    /// Kind of the field.
    pub kind: Kind,
    /// Index of its first column among all that are written.
    pub column: usize,
    /// How sealed pages of the first column may be encoded, too: each is a further representation, counted from 1.
    pub others: Vec<Encoding>,
    /// Writers of the fields inside.
    pub children: Vec<FieldWriter>,
}

impl FieldWriter {
    /// The same among the columns from this one on.
    pub fn counted_from(mut self, first: usize) -> Self {
        self.column = self.column.saturating_sub(first);
        self.children = self.children.into_iter().map(|child| child.counted_from(first)).collect();
        self
    }

    /// The places of its columns and those of its subfields, which follow each other.
    pub fn all_columns(&self) -> Range<usize> {
        let end = self.children.iter().map(|child| child.all_columns().end).max();
        self.column..end.unwrap_or(0).max(self.column + self.columns())
    }

    /// The kinds of a field's own columns.
    pub fn columns_of(field: &Field) -> Vec<ColumnKind> {
        Self::columns_of_kind(&field.kind)
    }

    /// Number of columns of the field itself, without subfields.
    pub fn columns(&self) -> usize {
        Self::columns_of_kind(&self.kind).len()
    }

    fn columns_of_kind(kind: &Kind) -> Vec<ColumnKind> {
        match kind {
            Kind::Primitive(Primitive::Bool) | Kind::Bitset { .. } => vec![ColumnKind::Bits],
            Kind::Primitive(Primitive::Float) => vec![ColumnKind::Floats],
            Kind::Primitive(Primitive::Double) => vec![ColumnKind::Doubles],
            Kind::Primitive(primitive) => vec![ColumnKind::Fixed(primitive.data_type().primitive_width().unwrap_or(1))],
            Kind::String | Kind::Streamer => vec![ColumnKind::Indexes, ColumnKind::Fixed(1)],
            Kind::Cardinality { .. } | Kind::Collection(_) | Kind::Map(_) | Kind::Optional(_) => {
                vec![ColumnKind::Indexes]
            }
            Kind::Variant(alternatives) => vec![ColumnKind::Switches(alternatives.len())],
            Kind::Array { .. } | Kind::Wrapper(_) | Kind::Record(_) | Kind::Tuple(_) => Vec::new(),
        }
    }

    /// Stages all values of an array in the columns of the field. After an error some of them may be staged: the caller
    /// discards these.
    pub fn stage(&self, array: &ArrayRef, columns: &mut [ColumnWriter]) -> Result<()> {
        // The null count of a dictionary array does not include nulls among the values of its dictionary.
        if let (DataType::Dictionary(_, values), Some(dictionary)) = (array.data_type(), array.as_any_dictionary_opt())
            && dictionary.values().null_count() > 0
        {
            return self.stage(&cast_with_options(array, values, &CastOptions::default())?, columns);
        }
        let is_optional = matches!(self.kind, Kind::Optional(_) | Kind::Wrapper(_));
        if !is_optional && array.null_count() > 0 {
            return Err(self.error(format!(
                "found {} nulls in a field that is not optional; declare it std::optional (a nullable Arrow field) \
                 from the start",
                array.null_count()
            )));
        }
        match &self.kind {
            Kind::Primitive(primitive) => self.primitive(*primitive, array, columns),
            Kind::String | Kind::Streamer => self.bytes(array, columns),
            Kind::Cardinality { .. } => {
                Err(self.error("a cardinality cannot be written; it is projected from a collection"))
            }
            Kind::Bitset { size } | Kind::Array { size, .. } => {
                let Some(list) = array.as_fixed_size_list_opt().filter(|list| list.value_length() as u64 == *size)
                else {
                    return Err(self.mismatch(array));
                };
                match self.children.first() {
                    Some(item) => item.stage(list.values(), columns),
                    None => {
                        let bits = list.values().as_boolean_opt().filter(|bits| bits.null_count() == 0);
                        let bits = bits.ok_or_else(|| self.mismatch(array))?;
                        self.put(columns, 0, Values::Bits(bits.values().clone()))
                    }
                }
            }
            Kind::Wrapper(_) => self.child(0)?.stage(array, columns),
            Kind::Optional(item) if item.takes_nulls() => self.optional(array, columns),
            Kind::Optional(_) | Kind::Collection(_) | Kind::Map(_) => self.list(array, columns),
            Kind::Record(_) | Kind::Tuple(_) => {
                let Some(record) = array.as_struct_opt().filter(|s| s.num_columns() == self.children.len()) else {
                    return Err(self.mismatch(array));
                };
                self.children.iter().zip(record.columns()).try_for_each(|(child, column)| child.stage(column, columns))
            }
            Kind::Variant(_) => self.variant(array, columns),
        }
    }

    /// Stages values in a column of the field itself.
    fn put(&self, columns: &mut [ColumnWriter], own: usize, values: Values) -> Result<()> {
        let index = self.column + own;
        let column = columns.get_mut(index).ok_or_else(|| self.error(format!("column {index} does not exist")))?;
        column.stage(values).map_err(|e| self.within(e))
    }

    fn primitive(&self, primitive: Primitive, array: &ArrayRef, columns: &mut [ColumnWriter]) -> Result<()> {
        let array = self.cast(array, &primitive.data_type())?;
        let values = match primitive {
            Primitive::Bool => Values::Bits(array.as_boolean().values().clone()),
            Primitive::Float => Values::Floats(array.as_primitive::<Float32Type>().values().clone()),
            Primitive::Double => Values::Doubles(array.as_primitive::<Float64Type>().values().clone()),
            _ => {
                let data = array.to_data();
                let width = data.data_type().primitive_width().unwrap_or(1);
                Values::Fixed(data.buffers()[0].slice_with_length(data.offset() * width, data.len() * width))
            }
        };
        self.put(columns, 0, values)
    }

    fn bytes(&self, array: &ArrayRef, columns: &mut [ColumnWriter]) -> Result<()> {
        let (lengths, bytes) = match array.data_type() {
            DataType::Utf8 => self.narrow(array.as_string::<i32>().offsets(), array.as_string::<i32>().values()),
            DataType::Binary => self.narrow(array.as_binary::<i32>().offsets(), array.as_binary::<i32>().values()),
            DataType::LargeBinary | DataType::BinaryView => {
                let array = self.cast(array, &DataType::LargeBinary)?;
                self.wide(array.as_binary::<i64>().offsets(), array.as_binary::<i64>().values())
            }
            _ => {
                let array = self.cast(array, &DataType::LargeUtf8)?;
                self.wide(array.as_string::<i64>().offsets(), array.as_string::<i64>().values())
            }
        }?;
        self.put(columns, 0, Values::Lengths(lengths))?;
        self.put(columns, 1, Values::Fixed(bytes))
    }

    fn narrow(&self, offsets: &OffsetBuffer<i32>, bytes: &Buffer) -> Result<(Lengths, Buffer)> {
        let range = self.checked(offsets, bytes.len())?;
        Ok((Lengths::Narrow(offsets.clone()), bytes.slice_with_length(range.start, range.len())))
    }

    fn wide(&self, offsets: &OffsetBuffer<i64>, bytes: &Buffer) -> Result<(Lengths, Buffer)> {
        let range = self.checked(offsets, bytes.len())?;
        Ok((Lengths::Wide(offsets.clone()), bytes.slice_with_length(range.start, range.len())))
    }

    fn list(&self, array: &ArrayRef, columns: &mut [ColumnWriter]) -> Result<()> {
        let narrow = |offsets: &OffsetBuffer<i32>, values: ArrayRef| -> Result<(Lengths, ArrayRef)> {
            let range = self.checked(offsets, values.len())?;
            Ok((Lengths::Narrow(offsets.clone()), values.slice(range.start, range.len())))
        };
        let wide = |offsets: &OffsetBuffer<i64>, values: ArrayRef| -> Result<(Lengths, ArrayRef)> {
            let range = self.checked(offsets, values.len())?;
            Ok((Lengths::Wide(offsets.clone()), values.slice(range.start, range.len())))
        };
        let numbers = |bytes: &Buffer| {
            Arc::new(UInt8Array::new(ScalarBuffer::new(bytes.clone(), 0, bytes.len()), None)) as ArrayRef
        };
        let (lengths, values) = match array.data_type() {
            DataType::LargeList(_) => wide(array.as_list().offsets(), array.as_list::<i64>().values().clone()),
            DataType::List(_) => narrow(array.as_list().offsets(), array.as_list::<i32>().values().clone()),
            DataType::Map(..) => narrow(array.as_map().offsets(), Arc::new(array.as_map().entries().clone())),
            DataType::Binary => {
                let binary = array.as_binary::<i32>();
                narrow(binary.offsets(), numbers(binary.values()))
            }
            DataType::LargeBinary | DataType::BinaryView => {
                let array = self.cast(array, &DataType::LargeBinary)?;
                let binary = array.as_binary::<i64>();
                wide(binary.offsets(), numbers(binary.values()))
            }
            _ => return Err(self.mismatch(array)),
        }?;
        if matches!(self.kind, Kind::Optional(_)) && lengths.max() > 1 {
            return Err(self.error("an optional has more than one value"));
        }
        self.put(columns, 0, Values::Lengths(lengths))?;
        self.child(0)?.stage(&values, columns)
    }

    fn optional(&self, array: &ArrayRef, columns: &mut [ColumnWriter]) -> Result<()> {
        let Some(nulls) = array.nulls().filter(|nulls| nulls.null_count() > 0) else {
            self.put(columns, 0, Values::Lengths(Lengths::Ones(array.len())))?;
            return self.child(0)?.stage(array, columns);
        };
        self.put(columns, 0, Values::Lengths(Lengths::Valid(nulls.clone())))?;
        let is_valid = BooleanArray::new(nulls.inner().clone(), None);
        self.child(0)?.stage(&arrow_select::filter::filter(array, &is_valid)?, columns)
    }

    fn variant(&self, array: &ArrayRef, columns: &mut [ColumnWriter]) -> Result<()> {
        let (Some(union), DataType::Union(fields, _)) = (array.as_union_opt(), array.data_type()) else {
            return Err(self.mismatch(array));
        };
        let Some(offsets) = union.offsets() else {
            return Err(self.error("sparse unions cannot be written; use a dense union"));
        };
        // Arrow numbers alternatives freely; on disk, 0 has no value and the alternatives follow in order.
        let mut tags = [None; 128];
        let mut children = Vec::new();
        for (id, field) in fields.iter() {
            let tag = if *field.data_type() == DataType::Null { 0 } else { children.len() + 1 };
            tags[id as usize] = Some(tag as u32);
            if tag > 0 {
                children.push(union.child(id));
            }
        }
        let mut indices: Vec<Vec<u64>> = vec![Vec::new(); children.len() + 1];
        let mut values = Vec::with_capacity(union.len());
        for (&id, &offset) in union.type_ids().iter().zip(offsets.iter()) {
            let Some(tag) = usize::try_from(id).ok().and_then(|id| tags.get(id).copied().flatten()) else {
                return Err(self.error(format!("type id {id} of the union does not match any alternative")));
            };
            values.push(tag);
            match union.child(id).len() > offset.unsigned_abs() as usize && offset >= 0 {
                true => indices[tag as usize].push(u64::from(offset.unsigned_abs())),
                false => return Err(self.error(format!("offset {offset} of the union is out of bounds for its child"))),
            }
        }
        self.put(columns, 0, Values::Tags(values))?;
        for ((writer, child), indices) in self.children.iter().zip(children).zip(&indices[1..]) {
            let first = indices.first().copied().unwrap_or(0);
            let in_order = indices.iter().zip(first..).all(|(index, expected)| *index == expected);
            match in_order {
                true => writer.stage(&child.slice(first as usize, indices.len()), columns)?,
                false => {
                    let indices = UInt64Array::from(indices.clone());
                    writer.stage(&arrow_select::take::take(child, &indices, None)?, columns)?;
                }
            }
        }
        Ok(())
    }

    /// Converts dictionaries, views and other types that hold the same values to the type that is written.
    fn cast<'a>(&self, array: &'a ArrayRef, to: &DataType) -> Result<Cow<'a, ArrayRef>> {
        if array.data_type() == to {
            return Ok(Cow::Borrowed(array));
        }
        let is_same_kind = match array.data_type() {
            DataType::Dictionary(_, values) => **values == *to || values.is_string() && to.is_string(),
            DataType::Float16 => *to == DataType::Float32,
            from => {
                from.is_string() && to.is_string()
                    || matches!(from, DataType::Binary | DataType::BinaryView) && *to == DataType::LargeBinary
            }
        };
        if !is_same_kind {
            return Err(self.mismatch(array));
        }
        Ok(Cow::Owned(cast_with_options(array, to, &CastOptions { safe: false, ..CastOptions::default() })?))
    }

    /// The range of values that offsets span. Arrays from other libraries are not validated.
    fn checked<O: Copy + Ord + Into<i64>>(&self, offsets: &[O], values: usize) -> Result<std::ops::Range<usize>> {
        let index = |offset: Option<&O>| usize::try_from(offset.map_or(0, |offset| (*offset).into())).ok();
        match (index(offsets.first()), index(offsets.last())) {
            (Some(start), Some(end)) if end <= values && offsets.is_sorted() => Ok(start..end),
            _ => Err(self.error("offsets of the Arrow array decrease or are out of bounds")),
        }
    }

    fn child(&self, index: usize) -> Result<&FieldWriter> {
        self.children.get(index).ok_or_else(|| self.error("subfield does not exist"))
    }

    #[cold]
    fn mismatch(&self, array: &ArrayRef) -> Error {
        self.error(format!("Arrow type {} does not match the declared type of the field", array.data_type()))
    }

    #[cold]
    fn error(&self, what: impl Into<String>) -> Error {
        self.within(Error::invalid_argument(what))
    }

    fn within(&self, error: Error) -> Error {
        error.within(format!("field '{}'", self.path))
    }
}
