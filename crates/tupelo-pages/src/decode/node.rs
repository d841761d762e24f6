//! Fields over segments: the columns that each needs, level by level, and the arrays made of them.

use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, BooleanArray, FixedSizeListArray, LargeBinaryArray, LargeListArray, LargeStringArray, NullArray,
    StructArray, UInt32Array, UInt64Array, UnionArray, make_array,
};
use arrow_buffer::{BooleanBuffer, Buffer, OffsetBuffer, ScalarBuffer};
use arrow_data::ArrayData;
use arrow_schema::{DataType, Fields};
use tupelo_schema::schema::arrow as arrow_type;
use tupelo_schema::schema::{Field, Kind, Primitive};

use super::variant::Variants;
use super::{ValueOptions, mismatch};
use crate::plan::{ColumnTable, Segment};
use crate::source::RequestMemory;
use crate::{Error, Result};

/// A field over segments, and its decoded columns.
pub(super) struct Node<'f> {
    pub(super) field: &'f Field,
    pub(super) segments: Arc<[Segment]>,
    /// Number of elements.
    pub(super) count: usize,
    pub(super) columns: Columns,
    pub(super) children: Vec<Node<'f>>,
}

/// The decoded columns of a field itself.
pub(super) enum Columns {
    /// None, or none yet.
    Nothing,
    Values(Buffer),
    Offsets(OffsetBuffer<i64>),
    /// Offsets, and the bytes between them.
    Bytes(OffsetBuffer<i64>, Buffer),
    Variants(Variants),
}

/// End offsets of a collection's items in the output, and where the items are.
#[derive(Clone)]
pub(super) struct Offsets {
    pub(super) buffer: OffsetBuffer<i64>,
    pub(super) items: Vec<Segment>,
}

impl<'f> Node<'f> {
    pub(super) fn new(field: &'f Field, segments: Arc<[Segment]>) -> Self {
        Self { field, segments, count: 0, columns: Columns::Nothing, children: Vec::new() }
    }

    /// Adds nodes for the fields below, which all have the same segments; returns them.
    pub(super) fn add_children(&mut self, segments: &Arc<[Segment]>) -> std::slice::IterMut<'_, Self> {
        self.children = self.field.children().iter().map(|child| Self::new(child, Arc::clone(segments))).collect();
        self.children.iter_mut()
    }
}

/// Assembles arrays from decoded columns.
#[derive(Clone, Copy)]
pub(super) struct Assembly<'a> {
    pub(super) table: &'a ColumnTable<'a>,
    pub(super) memory: &'a RequestMemory,
    pub(super) options: ValueOptions,
}

impl Assembly<'_> {
    /// The array of a field.
    pub(super) fn array(self, node: Node<'_>) -> Result<ArrayRef> {
        let Node { field, count, columns, children, .. } = node;
        match (&field.kind, columns) {
            (Kind::Primitive(Primitive::Bool), Columns::Values(bits)) => Ok(Arc::new(booleans(bits, count))),
            (Kind::Primitive(primitive), Columns::Values(values)) => {
                primitive_array(primitive.data_type(), count, values)
            }
            (Kind::String, Columns::Bytes(offsets, bytes)) => {
                if !self.options.binary_strings
                    && let Ok(strings) = LargeStringArray::try_new(offsets.clone(), bytes.clone(), None)
                {
                    return Ok(Arc::new(strings));
                }
                Ok(Arc::new(LargeBinaryArray::try_new(offsets, bytes, None).map_err(mismatch)?))
            }
            (Kind::Streamer, Columns::Bytes(offsets, bytes)) => {
                Ok(Arc::new(LargeBinaryArray::try_new(offsets, bytes, None).map_err(mismatch)?))
            }
            (Kind::Cardinality { wide }, Columns::Offsets(offsets)) => {
                cardinality(&offsets, *wide).map_err(|e| self.table.named(field, e))
            }
            (Kind::Bitset { size }, Columns::Values(bits)) => {
                let bits = Arc::new(booleans(bits, count.saturating_mul(*size as usize)));
                let list = FixedSizeListArray::try_new(arrow_type::bits(), list_size(*size)?, bits, None);
                Ok(Arc::new(list.map_err(mismatch)?))
            }
            (Kind::Array { size, item }, _) => {
                let values = self.only(children)?;
                let item = arrow_type::item(item, values.data_type().clone(), self.options.compressed);
                let list = FixedSizeListArray::try_new(item, list_size(*size)?, values, None);
                Ok(Arc::new(list.map_err(mismatch)?))
            }
            (Kind::Wrapper(_), _) => self.only(children),
            (Kind::Optional(item), Columns::Offsets(offsets)) if item.takes_nulls() => {
                let dense = self.only(children)?;
                self.optional(field, dense, &offsets)
            }
            (Kind::Optional(item) | Kind::Collection(item), Columns::Offsets(offsets)) => {
                let values = self.only(children)?;
                let item = arrow_type::item(item, values.data_type().clone(), self.options.compressed);
                Ok(Arc::new(LargeListArray::try_new(item, offsets, values, None).map_err(mismatch)?))
            }
            (Kind::Map(pair), Columns::Offsets(offsets)) => {
                let Some(node) = children.into_iter().next() else { return Err(incomplete()) };
                let values = self.record(node.count, node.children, Some(["key", "value"]))?;
                let item = arrow_type::item(pair, values.data_type().clone(), self.options.compressed);
                Ok(Arc::new(LargeListArray::try_new(item, offsets, values, None).map_err(mismatch)?))
            }
            (Kind::Record(_) | Kind::Tuple(_), _) => self.record(count, children, None),
            (Kind::Variant(alternatives), Columns::Variants(variants)) => {
                self.variant(alternatives, variants, children)
            }
            _ => Err(incomplete()),
        }
    }

    fn only(self, children: Vec<Node<'_>>) -> Result<ArrayRef> {
        children.into_iter().next().map_or_else(|| Err(incomplete()), |child| self.array(child))
    }

    fn record(self, count: usize, members: Vec<Node<'_>>, names: Option<[&str; 2]>) -> Result<ArrayRef> {
        let mut arrays = Vec::with_capacity(members.len());
        let mut fields = Vec::with_capacity(members.len());
        for (index, child) in members.into_iter().enumerate() {
            let field = child.field;
            let array = self.array(child)?;
            let name = names.and_then(|names| names.get(index).copied()).unwrap_or(&field.name);
            fields.push(arrow_type::named(field, name, array.data_type().clone(), self.options.compressed));
            arrays.push(array);
        }
        if arrays.is_empty() {
            return Ok(Arc::new(StructArray::new_empty_fields(count, None)));
        }
        Ok(Arc::new(StructArray::try_new(Fields::from(fields), arrays, None).map_err(mismatch)?))
    }

    fn variant(self, alternatives: &[Field], variants: Variants, children: Vec<Node<'_>>) -> Result<ArrayRef> {
        let mut arrays: Vec<ArrayRef> = vec![Arc::new(NullArray::new(variants.without_value))];
        let mut fields = Vec::with_capacity(alternatives.len());
        for (alternative, child) in alternatives.iter().zip(children) {
            let array = self.array(child)?;
            let (name, data_type) = (&alternative.name, array.data_type().clone());
            fields.push(arrow_type::named(alternative, name, data_type, self.options.compressed));
            arrays.push(array);
        }
        let fields = arrow_type::union_fields(fields.into());
        let (type_ids, offsets) = (ScalarBuffer::from(variants.type_ids), ScalarBuffer::from(variants.offsets));
        Ok(Arc::new(UnionArray::try_new(fields, type_ids, Some(offsets), arrays).map_err(mismatch)?))
    }
}

#[cold]
fn incomplete() -> Error {
    Error::corrupt("a column was not decoded")
}

fn booleans(bits: Buffer, count: usize) -> BooleanArray {
    BooleanArray::new(BooleanBuffer::new(bits, 0, count), None)
}

fn cardinality(offsets: &OffsetBuffer<i64>, wide: bool) -> Result<ArrayRef> {
    let lengths = offsets.windows(2).map(|pair| pair[1].abs_diff(pair[0]));
    if wide {
        return Ok(Arc::new(UInt64Array::from_iter_values(lengths)));
    }
    let narrow = lengths.map(u32::try_from).collect::<Result<Vec<_>, _>>();
    Ok(Arc::new(UInt32Array::from(narrow.map_err(|_| Error::corrupt("collection has more than 2^32 items"))?)))
}

fn list_size(items: u64) -> Result<i32> {
    i32::try_from(items).map_err(|_| Error::limit(format!("fixed array of {items} items is too large")))
}

fn primitive_array(data_type: DataType, count: usize, values: Buffer) -> Result<ArrayRef> {
    Ok(make_array(ArrayData::builder(data_type).len(count).add_buffer(values).build().map_err(mismatch)?))
}
