//! The small ntuples from which damaged files are made.

use std::sync::Arc;

use arrow_array::builder::{Int32Builder, LargeListBuilder, LargeStringBuilder};
use arrow_array::types::Float32Type;
use arrow_array::{ArrayRef, FixedSizeListArray, Float32Array, Int32Array, LargeListArray, RecordBatch, UnionArray};
use arrow_schema::{DataType, Field, Schema as ArrowSchema, UnionFields};
use tupelo::schema::Schema;
use tupelo::{Compression, WriteOptions};

use crate::memory;
use crate::model::Model;

/// Two columns of numbers (`i`, an `std::int32_t`, and `f`, a `float`) in two clusters of 6 and 4 entries, pages of at
/// most 4 elements, nothing compressed.
///
/// # Panics
/// If Tupelo cannot write that, or read what it wrote.
pub fn flat() -> Model {
    let batch = |numbers: std::ops::Range<i32>| {
        let f: Float32Array = numbers.clone().map(|i| i as f32 / 4.0).collect();
        let i: Int32Array = numbers.collect();
        RecordBatch::try_from_iter([("i", Arc::new(i) as ArrayRef), ("f", Arc::new(f) as ArrayRef)]).expect("a batch")
    };
    model(&[batch(100..106), batch(106..110)], 16)
}

/// One cluster of 5 entries, a page a column, nothing compressed:
///
/// | field | type | columns |
/// |---|---|---|
/// | `v` | `std::vector<float>` | 0: Index64, 1: Real32 |
/// | `s` | `std::string` | 2: Index64, 3: Char |
/// | `o` | `std::optional<std::int32_t>` | 4: Index64, 5: Int32 |
/// | `u` | `std::variant<std::int32_t,float>` | 6: Switch, 7: Int32, 8: Real32 |
/// | `a` | `std::array<float,2>` | 9: Real32 |
///
/// # Panics
/// If Tupelo cannot write that, or read what it wrote.
pub fn nested() -> Model {
    let floats = |items: &[&[f32]]| {
        let items = items.iter().map(|item| Some(item.iter().copied().map(Some)));
        LargeListArray::from_iter_primitive::<Float32Type, _, _>(items)
    };
    let v = floats(&[&[1.0, 2.0], &[], &[3.0], &[4.0, 5.0, 6.0], &[7.0]]);
    let mut s = LargeStringBuilder::new();
    ["tupelo", "", "water", "ä", "end"].iter().for_each(|text| s.append_value(text));
    let o = Int32Array::from(vec![Some(1), None, Some(3), None, Some(5)]);
    let alternatives = UnionFields::try_new(
        [0, 1],
        [Field::new("i", DataType::Int32, false), Field::new("f", DataType::Float32, false)],
    )
    .expect("two alternatives");
    let children: Vec<ArrayRef> =
        vec![Arc::new(Int32Array::from(vec![10, 20])), Arc::new(Float32Array::from(vec![0.5, 1.5, 2.5]))];
    let (ids, offsets) = (vec![0i8, 1, 1, 0, 1], vec![0i32, 0, 1, 1, 2]);
    let u = UnionArray::try_new(alternatives, ids.into(), Some(offsets.into()), children).expect("a union");
    let item = Arc::new(Field::new("item", DataType::Float32, false));
    let numbers: Float32Array = (0..10).map(|i| i as f32).collect();
    let a = FixedSizeListArray::try_new(item, 2, Arc::new(numbers), None).expect("an array of arrays");
    let item = |data_type| Arc::new(Field::new("item", data_type, false));
    let v =
        LargeListArray::try_new(item(DataType::Float32), v.offsets().clone(), v.values().clone(), None).expect("lists");
    let columns: Vec<(&str, ArrayRef, bool)> = vec![
        ("v", Arc::new(v), false),
        ("s", Arc::new(s.finish()), false),
        ("o", Arc::new(o), true),
        ("u", Arc::new(u), false),
        ("a", Arc::new(a), false),
    ];
    model(&[named(columns)], 1 << 16)
}

/// `c`, an untyped collection of `x` (an `std::int32_t`) with 2 + 1 items; with the member gone, it is one of records
/// that have nothing in them.
///
/// # Panics
/// If Tupelo cannot write that, or read what it wrote.
pub fn counted() -> Model {
    let mut list = LargeListBuilder::new(Int32Builder::new());
    for items in [[Some(1), Some(2)].as_slice(), &[Some(3)]] {
        list.values().extend(items.iter().copied());
        list.append(true);
    }
    let list = list.finish();
    let x: ArrayRef = list.values().clone();
    let member = Arc::new(Field::new("x", DataType::Int32, false));
    let records = arrow_array::StructArray::new(vec![member].into(), vec![x], None);
    let item = Arc::new(Field::new("item", DataType::Struct(records.fields().clone()), false));
    let list = LargeListArray::new(item, list.offsets().clone(), Arc::new(records), None);
    model(&[named(vec![("c", Arc::new(list) as ArrayRef, false)])], 1 << 16)
}

fn named(columns: Vec<(&str, ArrayRef, bool)>) -> RecordBatch {
    let field =
        |(name, array, nullable): &(&str, ArrayRef, bool)| Field::new(*name, array.data_type().clone(), *nullable);
    let schema = ArrowSchema::new(columns.iter().map(field).collect::<Vec<_>>());
    RecordBatch::try_new(Arc::new(schema), columns.into_iter().map(|(_, array, _)| array).collect()).expect("a batch")
}

fn model(batches: &[RecordBatch], page_bytes: u64) -> Model {
    let schema = Schema::from_arrow(&tupelo::schema::tighten(&batches[0])).expect("a schema");
    let options = WriteOptions::default().with_compression(Compression::NONE).with_page_bytes(page_bytes);
    let bytes = memory::write(&schema, batches, options, true).expect("an ntuple");
    let mut model = Model::load(&bytes).expect("its records");
    // The version of Tupelo must not change the bytes.
    model.header.writer = "Tupelo".to_owned();
    model.pack = true;
    model
}
