//! Arrow arrays to columns: the mirror of `decode`.

mod column;

use std::borrow::Cow;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef, BooleanArray, UInt64Array};
use arrow_buffer::OffsetBuffer;
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::DataType;

pub(crate) use column::{Check, ColumnWriter, Columns, Memory, Sealing, StoredColumn};

use crate::schema::{Field, Kind, Primitive};
use crate::{Error, Result};

/// A field being written and where its columns are.
#[derive(Debug, Clone)]
pub(crate) struct FieldWriter {
    pub(crate) path: String,
    pub(crate) kind: Kind,
    /// Number of its first column among all that are written.
    pub(crate) column: usize,
    pub(crate) children: Vec<FieldWriter>,
}

impl FieldWriter {
    /// The shapes of the columns that a field has of its own.
    pub(crate) fn columns_of(field: &Field) -> Vec<Memory> {
        Self::columns_of_kind(&field.kind)
    }

    /// The number of columns of its own.
    pub(crate) fn columns(&self) -> usize {
        Self::columns_of_kind(&self.kind).len()
    }

    fn columns_of_kind(kind: &Kind) -> Vec<Memory> {
        match kind {
            Kind::Primitive(Primitive::Bool) | Kind::Bitset { .. } => vec![Memory::Bits],
            Kind::Primitive(Primitive::Float) => vec![Memory::Floats],
            Kind::Primitive(Primitive::Double) => vec![Memory::Doubles],
            Kind::Primitive(primitive) => vec![Memory::Fixed(primitive.data_type().primitive_width().unwrap_or(1))],
            Kind::String | Kind::Streamer => vec![Memory::Indexes, Memory::Fixed(1)],
            Kind::Cardinality { .. } | Kind::Collection(_) | Kind::Map(_) | Kind::Optional(_) => vec![Memory::Indexes],
            Kind::Variant(alternatives) => vec![Memory::Switches(alternatives.len())],
            Kind::Array { .. } | Kind::Wrapper(_) | Kind::Record(_) | Kind::Tuple(_) => Vec::new(),
        }
    }

    /// Gives all values of an array to the columns.
    pub(crate) fn append<C: Columns + ?Sized>(&self, array: &ArrayRef, columns: &mut C) -> Result<()> {
        let is_optional = matches!(self.kind, Kind::Optional(_) | Kind::Wrapper(_));
        if !is_optional && array.null_count() > 0 {
            return Err(self.error(format!(
                "{} nulls in a field that is not optional; declare it std::optional (a nullable Arrow field) from the start",
                array.null_count()
            )));
        }
        match &self.kind {
            Kind::Primitive(primitive) => self.primitive(*primitive, array, columns),
            Kind::String | Kind::Streamer => self.bytes(array, columns),
            Kind::Cardinality { .. } => Err(self.error("a cardinality is projected from a collection, not written")),
            Kind::Bitset { size } | Kind::Array { size, .. } => {
                let Some(list) = array.as_fixed_size_list_opt().filter(|list| list.value_length() as u64 == *size)
                else {
                    return Err(self.mismatch(array));
                };
                match self.children.first() {
                    Some(item) => item.append(list.values(), columns),
                    None => {
                        let bits = list.values().as_boolean_opt().filter(|bits| bits.null_count() == 0);
                        let bits = bits.ok_or_else(|| self.mismatch(array))?;
                        columns.bits(self.column, bits.values()).map_err(|e| self.within(e))
                    }
                }
            }
            Kind::Wrapper(_) => self.child(0)?.append(array, columns),
            Kind::Optional(item) if item.takes_nulls() => self.optional(array, columns),
            Kind::Optional(_) | Kind::Collection(_) | Kind::Map(_) => self.list(array, columns),
            Kind::Record(_) | Kind::Tuple(_) => {
                let Some(record) = array.as_struct_opt().filter(|s| s.num_columns() == self.children.len()) else {
                    return Err(self.mismatch(array));
                };
                self.children.iter().zip(record.columns()).try_for_each(|(child, column)| child.append(column, columns))
            }
            Kind::Variant(_) => self.variant(array, columns),
        }
    }

    fn primitive<C: Columns + ?Sized>(&self, primitive: Primitive, array: &ArrayRef, columns: &mut C) -> Result<()> {
        let array = self.cast(array, &primitive.data_type())?;
        let column = self.column;
        match primitive {
            Primitive::Bool => columns.bits(column, array.as_boolean().values()),
            Primitive::Float => columns.floats(column, array.as_primitive::<Float32Type>().values()),
            Primitive::Double => columns.doubles(column, array.as_primitive::<Float64Type>().values()),
            _ => {
                let data = array.to_data();
                let width = data.data_type().primitive_width().unwrap_or(1);
                let bytes = data.buffers()[0].as_slice();
                columns.fixed(column, &bytes[data.offset() * width..(data.offset() + data.len()) * width])
            }
        }
        .map_err(|e| self.within(e))
    }

    fn bytes<C: Columns + ?Sized>(&self, array: &ArrayRef, columns: &mut C) -> Result<()> {
        let target = match array.data_type() {
            DataType::Binary | DataType::LargeBinary | DataType::BinaryView => DataType::LargeBinary,
            _ => DataType::LargeUtf8,
        };
        let array = self.cast(array, &target)?;
        let data = array.to_data();
        let offsets: &[i64] = &data.buffers()[0].typed_data::<i64>()[data.offset()..=data.offset() + data.len()];
        let bytes = data.buffers()[1].as_slice();
        let range = self.checked(offsets, bytes.len())?;
        columns.lengths(self.column, lengths(offsets)).map_err(|e| self.within(e))?;
        columns.fixed(self.column + 1, &bytes[range]).map_err(|e| self.within(e))
    }

    fn list<C: Columns + ?Sized>(&self, array: &ArrayRef, columns: &mut C) -> Result<()> {
        let wide = |offsets: &OffsetBuffer<i32>| offsets.iter().map(|&o| i64::from(o)).collect::<Vec<_>>();
        let bytes = |array: ArrayRef| {
            let data = array.to_data();
            let offsets = data.buffers()[0].typed_data::<i64>()[data.offset()..=data.offset() + data.len()].to_vec();
            let values = data.buffers()[1].clone();
            let count = values.len();
            let values = arrow_array::UInt8Array::new(arrow_buffer::ScalarBuffer::new(values, 0, count), None);
            (Cow::Owned(offsets), std::sync::Arc::new(values) as ArrayRef)
        };
        let (offsets, values): (Cow<'_, [i64]>, ArrayRef) = match array.data_type() {
            DataType::LargeList(_) => {
                let list = array.as_list::<i64>();
                (Cow::Borrowed(list.value_offsets()), list.values().clone())
            }
            DataType::List(_) => {
                let list = array.as_list::<i32>();
                (Cow::Owned(wide(list.offsets())), list.values().clone())
            }
            DataType::Map(..) => {
                let map = array.as_map();
                (Cow::Owned(wide(map.offsets())), std::sync::Arc::new(map.entries().clone()))
            }
            DataType::Binary | DataType::LargeBinary | DataType::BinaryView => {
                bytes(self.cast(array, &DataType::LargeBinary)?.into_owned())
            }
            _ => return Err(self.mismatch(array)),
        };
        let range = self.checked(&offsets, values.len())?;
        if matches!(self.kind, Kind::Optional(_)) && lengths(&offsets).any(|length| length > 1) {
            return Err(self.error("an optional has more than one value"));
        }
        columns.lengths(self.column, lengths(&offsets)).map_err(|e| self.within(e))?;
        self.child(0)?.append(&values.slice(range.start, range.len()), columns)
    }

    fn optional<C: Columns + ?Sized>(&self, array: &ArrayRef, columns: &mut C) -> Result<()> {
        let Some(nulls) = array.nulls().filter(|nulls| nulls.null_count() > 0) else {
            columns.lengths(self.column, (0..array.len()).map(|_| 1)).map_err(|e| self.within(e))?;
            return self.child(0)?.append(array, columns);
        };
        columns.lengths(self.column, nulls.iter().map(u64::from)).map_err(|e| self.within(e))?;
        let there = BooleanArray::new(nulls.inner().clone(), None);
        self.child(0)?.append(&arrow_select::filter::filter(array, &there)?, columns)
    }

    fn variant<C: Columns + ?Sized>(&self, array: &ArrayRef, columns: &mut C) -> Result<()> {
        let (Some(union), DataType::Union(fields, _)) = (array.as_union_opt(), array.data_type()) else {
            return Err(self.mismatch(array));
        };
        let Some(offsets) = union.offsets() else {
            return Err(self.error("a sparse union; only dense unions can be written"));
        };
        // Arrow numbers alternatives as it likes; on disk 0 has no value and the others follow in order.
        let mut tags = [None; 128];
        let mut children = Vec::new();
        for (id, field) in fields.iter() {
            let tag = if *field.data_type() == DataType::Null { 0 } else { children.len() + 1 };
            tags[id as usize] = Some(tag as u32);
            if tag > 0 {
                children.push(union.child(id));
            }
        }
        let mut places: Vec<Vec<u64>> = vec![Vec::new(); children.len() + 1];
        let mut values = Vec::with_capacity(union.len());
        for (&id, &offset) in union.type_ids().iter().zip(offsets.iter()) {
            let Some(tag) = usize::try_from(id).ok().and_then(|id| tags.get(id).copied().flatten()) else {
                return Err(self.error(format!("a union's type id {id} is that of no alternative")));
            };
            values.push(tag);
            match union.child(id).len() > offset.unsigned_abs() as usize && offset >= 0 {
                true => places[tag as usize].push(u64::from(offset.unsigned_abs())),
                false => return Err(self.error(format!("a union's offset {offset} lies outside of its child"))),
            }
        }
        columns.tags(self.column, &values).map_err(|e| self.within(e))?;
        for ((writer, child), places) in self.children.iter().zip(children).zip(&places[1..]) {
            let first = places.first().copied().unwrap_or(0);
            let in_order = places.iter().zip(first..).all(|(place, expected)| *place == expected);
            match in_order {
                true => writer.append(&child.slice(first as usize, places.len()), columns)?,
                false => {
                    let places = UInt64Array::from(places.clone());
                    writer.append(&arrow_select::take::take(child, &places, None)?, columns)?;
                }
            }
        }
        Ok(())
    }

    /// The array in the one Arrow type that its kind is written from: dictionaries, views and narrow offsets go.
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

    /// The range of values that offsets span. Arrays from other libraries come unchecked.
    fn checked(&self, offsets: &[i64], values: usize) -> Result<std::ops::Range<usize>> {
        let place = |offset: Option<&i64>| usize::try_from(offset.copied().unwrap_or(0)).ok();
        match (place(offsets.first()), place(offsets.last())) {
            (Some(start), Some(end)) if end <= values && offsets.is_sorted() => Ok(start..end),
            _ => Err(self.error("its Arrow array has offsets that go back or point outside of its values")),
        }
    }

    fn child(&self, index: usize) -> Result<&FieldWriter> {
        self.children.get(index).ok_or_else(|| self.error("no such subfield"))
    }

    #[cold]
    fn mismatch(&self, array: &ArrayRef) -> Error {
        self.error(format!("an Arrow array of type {} does not fit the field's declared type", array.data_type()))
    }

    #[cold]
    fn error(&self, what: impl Into<String>) -> Error {
        self.within(Error::invalid_argument(what))
    }

    fn within(&self, error: Error) -> Error {
        error.within(format!("field '{}'", self.path))
    }
}

fn lengths(offsets: &[i64]) -> impl Iterator<Item = u64> + '_ {
    offsets.windows(2).map(|w| w[1].abs_diff(w[0]))
}
