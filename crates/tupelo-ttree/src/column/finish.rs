//! Columns as Arrow arrays.

use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, BooleanArray, FixedSizeListArray, GenericBinaryArray, LargeListArray, LargeStringArray,
    StructArray, make_array,
};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, ScalarBuffer};
use arrow_schema::{DataType, Fields};
use tupelo_format::object::Basic;
use tupelo_format::{Error, Result};

use super::Column;
use crate::layout::ValueLayout;

impl Column {
    /// The array of all values, of a data type that may leave members out.
    ///
    /// # Errors
    /// Corrupt if the numbers of values of members differ.
    pub fn finish(self, layout: &ValueLayout, data_type: &DataType) -> Result<ArrayRef> {
        let len = self.len(layout);
        match (self, layout, data_type) {
            (column, ValueLayout::Headed(body) | ValueLayout::Named { item: body, .. }, _) => {
                column.finish(body, data_type)
            }
            (Self::Numbers(bytes), ..) => primitive(bytes.into(), len, data_type),
            (Self::Bools(bytes), ..) => Ok(Arc::new(BooleanArray::new(packed(&bytes), None))),
            (Self::Bytes(offsets, bytes), _, DataType::LargeUtf8) => {
                let (offsets, bytes) = (offsets.finish(), Buffer::from(bytes));
                match LargeStringArray::try_new(offsets.clone(), bytes.clone(), None) {
                    Ok(texts) => Ok(Arc::new(texts)),
                    // Bytes of an unknown encoding, which the caller gets as they are.
                    Err(_) => Ok(Arc::new(GenericBinaryArray::<i64>::new(offsets, bytes, None))),
                }
            }
            (Self::Bytes(offsets, bytes), ..) => {
                Ok(Arc::new(GenericBinaryArray::<i64>::new(offsets.finish(), Buffer::from(bytes), None)))
            }
            (Self::List(offsets, items), layout, DataType::LargeList(field)) => {
                let item = item_of(layout)?;
                let items = items.finish(item, field.data_type())?;
                let field = Arc::new(field.as_ref().clone().with_data_type(items.data_type().clone()));
                let list = LargeListArray::try_new(field, offsets.finish(), items, None);
                list.map(|list| Arc::new(list) as ArrayRef).map_err(mismatch)
            }
            (Self::Fixed(items, len), layout, DataType::FixedSizeList(field, size)) => {
                let boolean = ValueLayout::Number(Basic::Bool, None);
                let item = match layout {
                    ValueLayout::Fixed(_, item) => item,
                    _ => &boolean,
                };
                let items = items.finish(item, field.data_type())?;
                let field = Arc::new(field.as_ref().clone().with_data_type(items.data_type().clone()));
                let list = match *size {
                    0 => FixedSizeListArray::try_new_with_length(field, 0, items, None, len),
                    size => FixedSizeListArray::try_new(field, size, items, None),
                };
                list.map(|list| Arc::new(list) as ArrayRef).map_err(mismatch)
            }
            (Self::Record(columns, len), layout, DataType::Struct(fields)) => record(columns, layout, fields, len),
            (column, ..) => Err(Error::unsupported(format!("{column:?} cannot be read as {data_type}"))),
        }
    }
}

fn item_of(layout: &ValueLayout) -> Result<&ValueLayout> {
    match layout {
        ValueLayout::Counted(item)
        | ValueLayout::Rest(item)
        | ValueLayout::FlaggedRest(item)
        | ValueLayout::Pointed { item, .. }
        | ValueLayout::CountedBy { item, .. }
        | ValueLayout::CountedInBranch { item, .. } => Ok(item),
        other => Err(Error::unsupported(format!("{other:?} cannot be read as a list"))),
    }
}

fn primitive(bytes: Buffer, len: usize, data_type: &DataType) -> Result<ArrayRef> {
    use arrow_array::types::*;
    fn array<T: arrow_array::ArrowPrimitiveType>(bytes: Buffer, len: usize) -> ArrayRef {
        Arc::new(arrow_array::PrimitiveArray::<T>::new(ScalarBuffer::new(bytes, 0, len), None))
    }
    Ok(match data_type {
        DataType::Int8 => array::<Int8Type>(bytes, len),
        DataType::UInt8 => array::<UInt8Type>(bytes, len),
        DataType::Int16 => array::<Int16Type>(bytes, len),
        DataType::UInt16 => array::<UInt16Type>(bytes, len),
        DataType::Int32 => array::<Int32Type>(bytes, len),
        DataType::UInt32 => array::<UInt32Type>(bytes, len),
        DataType::Int64 => array::<Int64Type>(bytes, len),
        DataType::UInt64 => array::<UInt64Type>(bytes, len),
        DataType::Float32 => array::<Float32Type>(bytes, len),
        DataType::Float64 => array::<Float64Type>(bytes, len),
        other => return Err(Error::unsupported(format!("numbers cannot be read as {other}"))),
    })
}

/// A struct of the wanted members.
fn record(columns: Vec<Column>, layout: &ValueLayout, fields: &Fields, len: usize) -> Result<ArrayRef> {
    let members = layout.members().unwrap_or_default();
    let mut columns: Vec<Option<Column>> = columns.into_iter().map(Some).collect();
    let mut arrays = Vec::with_capacity(fields.len());
    let mut typed = Vec::with_capacity(fields.len());
    // The parts of pairs have other names in Arrow.
    let is_pair = matches!(layout, ValueLayout::Pair(_)) && fields.len() == 2;
    for (index, field) in fields.iter().enumerate() {
        let place = match is_pair {
            true => Some(index),
            false => members.iter().position(|(name, _)| *name == field.name()),
        };
        let found = place.and_then(|place| Some((members.get(place)?.1, columns.get_mut(place)?.take()?)));
        let (member, column) =
            found.ok_or_else(|| Error::unsupported(format!("member '{}' does not exist", field.name())))?;
        let array = column.finish(member, field.data_type())?;
        typed.push(Arc::new(field.as_ref().clone().with_data_type(array.data_type().clone())));
        arrays.push(array);
    }
    let array = StructArray::try_new_with_length(typed.into(), arrays, None::<NullBuffer>, len).map_err(mismatch)?;
    Ok(make_array(array.into()))
}

/// The error if values do not make an array.
fn mismatch(error: impl std::fmt::Display) -> Error {
    Error::corrupt(format!("the values do not make an array: {error}"))
}

/// One bit for each byte, set where the byte is not zero.
fn packed(bytes: &[u8]) -> BooleanBuffer {
    let eight = |chunk: &[u8]| {
        let mut flags = [0; 8];
        for (flag, &byte) in flags.iter_mut().zip(chunk) {
            *flag = u8::from(byte != 0);
        }
        // The product has flag n in bit 56 + n, and nothing is carried into these.
        (u64::from_le_bytes(flags).wrapping_mul(0x0102_0408_1020_4080) >> 56) as u8
    };
    let (whole, rest) = bytes.as_chunks::<8>();
    let mut bits: Vec<u8> = whole.iter().map(|chunk| eight(chunk)).collect();
    if !rest.is_empty() {
        bits.push(eight(rest));
    }
    BooleanBuffer::new(bits.into(), 0, bytes.len())
}

#[cfg(test)]
mod tests {
    use super::packed;

    #[test]
    fn bits_are_set_where_bytes_are_not_zero() {
        for len in 0..40 {
            for shift in 0..8 {
                let bytes: Vec<u8> = (0..len).map(|n| if (n + shift) % 3 == 0 { 0 } else { n | 1 }).collect();
                let expected: Vec<bool> = bytes.iter().map(|&byte| byte != 0).collect();
                assert_eq!(packed(&bytes).iter().collect::<Vec<_>>(), expected);
            }
        }
        for flags in 0..=u8::MAX {
            let bytes: Vec<u8> = (0..8).map(|bit| if flags >> bit & 1 == 1 { 0x80 } else { 0 }).collect();
            assert_eq!(packed(&bytes).values(), [flags]);
        }
    }
}
