//! Reading as another schema, from files.

#[path = "../../../../tupelo-schema/src/schema/tests/kinds.rs"]
mod kinds;

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::builder::{Int32Builder, LargeListBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, UInt8Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, FixedSizeListArray, Int32Array, Int64Array, NullArray, RecordBatch, StructArray,
    UInt8Array, UnionArray,
};
use arrow_cast::display::ArrayFormatter;
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::{DataType, Field as ArrowField, Fields, Schema as ArrowSchema};
use tempfile::TempDir;
use tupelo_schema::schema::{Field, Kind, Primitive, Schema, arrow, metadata};

use self::kinds::every_kind;
use crate::reader::Ntuple;
use crate::{ErrorKind, Result, WriteOptions};

/// A nullable Arrow field only where the type is optional, of a C++ type.
fn typed(name: &str, type_name: &str, data_type: DataType) -> ArrowField {
    let metadata = HashMap::from([(metadata::TYPE.to_owned(), type_name.to_owned())]);
    ArrowField::new(name, data_type, type_name.starts_with("std::optional<")).with_metadata(metadata)
}

fn item(data_type: DataType) -> Arc<ArrowField> {
    Arc::new(ArrowField::new("item", data_type, false))
}

/// An ntuple of one field `x`, in small pages and clusters.
fn written(folder: &TempDir, field: ArrowField, array: ArrayRef) -> Ntuple {
    let batch = RecordBatch::try_new(Arc::new(ArrowSchema::new(vec![field])), vec![array]).unwrap();
    let path = folder.path().join("x.root");
    let file = crate::create(&path).unwrap();
    let options = WriteOptions::default().with_page_bytes(64).with_cluster_bytes(200);
    let mut ntuple = file.ntuple("n", &Schema::from_arrow(&batch.schema()).unwrap(), options).unwrap();
    ntuple.write(&batch).unwrap();
    ntuple.finish().unwrap();
    file.finish().unwrap();
    crate::open(path.to_str().unwrap()).open().unwrap()
}

/// Reads it as another type, whole and in parts, which must agree.
fn read_as(ntuple: &Ntuple, wanted: ArrowField) -> Result<ArrayRef> {
    let wanted = Schema::from_arrow(&ArrowSchema::new(vec![wanted])).unwrap();
    let read = ntuple.read_all().with_schema(&wanted)?;
    assert_eq!(read.schema(), &wanted);
    let whole = read.to_batch()?;
    assert_eq!(whole.schema(), read.arrow_schema());
    assert!(read.bytes_per_entry().unwrap() >= 0.0);
    let (some, rest) = (3, whole.num_rows() - 3);
    assert_eq!(read.clone().entries(some..).to_batch()?, whole.slice(3, rest));
    let mut at = 0;
    for batch in read.batches(2)? {
        let batch = batch?;
        assert_eq!(batch, whole.slice(at, batch.num_rows()));
        at += batch.num_rows();
    }
    assert_eq!(at, whole.num_rows());
    Ok(whole.column(0).clone())
}

/// 1000 lists of 0 to 4 numbers that count up.
fn lists() -> ArrayRef {
    let mut builder = LargeListBuilder::new(Int32Builder::new()).with_field(item(DataType::Int32));
    for (i, first) in (0..1000).zip((0..).step_by(3)) {
        (0..(i * 7) % 5).for_each(|k| builder.values().append_value(first + k));
        builder.append(true);
    }
    Arc::new(builder.finish())
}

#[test]
fn numbers_are_checked_one_by_one() {
    let folder = tempfile::tempdir().unwrap();
    let numbers: ArrayRef =
        Arc::new(Int32Array::from_iter_values((0..1000).map(|i| if i == 777 { -1 } else { i % 200 })));
    let ntuple = written(&folder, ArrowField::new("x", DataType::Int32, false), numbers.clone());
    let wide = read_as(&ntuple, ArrowField::new("x", DataType::Int64, false)).unwrap();
    let expected = Int64Array::from_iter_values(numbers.as_primitive::<Int32Type>().values().iter().map(|&i| i.into()));
    assert_eq!(&*wide, &expected as &dyn Array);
    let error = read_as(&ntuple, ArrowField::new("x", DataType::UInt8, false)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    let expected = "entry 777: field 'x', read as 'std::uint8_t': the value -1 is out of range";
    assert!(error.to_string().ends_with(expected), "{error}");
    // The entries before it can be read.
    let wanted = Schema::from_arrow(&ArrowSchema::new(vec![ArrowField::new("x", DataType::UInt8, false)])).unwrap();
    let read = ntuple.read_all().with_schema(&wanted).unwrap();
    let bytes = read.entries(100..777).to_batch().unwrap().column(0).clone();
    assert_eq!(bytes.as_primitive::<UInt8Type>().value(676), 176);
    let truth = read_as(&ntuple, ArrowField::new("x", DataType::Boolean, false)).unwrap();
    assert_eq!(truth.as_boolean().false_count(), 5);
}

#[test]
fn items_find_their_place_in_every_layout() {
    let folder = tempfile::tempdir().unwrap();
    let ntuple =
        written(&folder, typed("x", "std::set<std::int32_t>", DataType::LargeList(item(DataType::Int32))), lists());
    let longs = DataType::LargeList(item(DataType::Int64));
    let vector = read_as(&ntuple, ArrowField::new("x", longs.clone(), false)).unwrap();
    assert_eq!(vector.as_list::<i64>().offsets(), lists().as_list::<i64>().offsets());
    let optional = read_as(&ntuple, ArrowField::new("x", longs, true)).unwrap();
    assert_eq!(&optional, &vector);
    let items = Arc::new(ArrowField::new("item", DataType::Int16, true));
    let optionals = read_as(&ntuple, ArrowField::new("x", DataType::LargeList(items), false)).unwrap();
    assert_eq!(optionals.as_list::<i64>().values().len(), 2000);
    let size = typed("x", "ROOT::RNTupleCardinality<std::uint32_t>", DataType::UInt32);
    let sizes = read_as(&ntuple, size).unwrap();
    let lengths = lists().as_list::<i64>().offsets().lengths().map(|n| n as u32).collect::<Vec<_>>();
    assert_eq!(sizes.as_primitive::<arrow_array::types::UInt32Type>().values(), lengths.as_slice());
    // A value that does not fit is found in its entry.
    let bytes = ArrowField::new("x", DataType::LargeList(item(DataType::Int8)), false);
    let error = read_as(&ntuple, bytes).unwrap_err().to_string();
    let first = lists()
        .as_list::<i64>()
        .iter()
        .position(|list| list.is_some_and(|list| list.as_primitive::<Int32Type>().values().iter().any(|&i| i > 127)));
    assert!(
        error.contains(&format!("entry {}: field 'x', read as 'std::int8_t': the value 128", first.unwrap())),
        "{error}"
    );
}

#[test]
fn optionals_and_arrays_become_lists() {
    let folder = tempfile::tempdir().unwrap();
    let numbers = |i: i32| (i % 3 > 0).then_some(i);
    let array: ArrayRef = Arc::new((0..1000).map(numbers).collect::<Int32Array>());
    let ntuple = written(&folder, ArrowField::new("x", DataType::Int32, true), array);
    let lists = read_as(&ntuple, ArrowField::new("x", DataType::LargeList(item(DataType::Int64)), false)).unwrap();
    let lists = lists.as_list::<i64>();
    assert!(lists.offsets().lengths().eq((0..1000).map(|i| usize::from(numbers(i).is_some()))));
    assert_eq!(lists.values().len(), 666);
    let wide = read_as(&ntuple, ArrowField::new("x", DataType::Int64, true)).unwrap();
    assert_eq!((wide.null_count(), wide.as_primitive::<arrow_array::types::Int64Type>().value(998)), (334, 998));
    // Arrow has one null only: an optional of an optional is a list of at most one.
    let twice = DataType::LargeList(Arc::new(ArrowField::new("item", DataType::Int16, true)));
    let twice = typed("x", "std::optional<std::optional<std::int16_t>>", twice).with_nullable(false);
    let lists = read_as(&ntuple, twice).unwrap();
    assert_eq!((lists.as_list::<i64>().values().len(), lists.as_list::<i64>().values().null_count()), (666, 0));

    let fixed =
        FixedSizeListArray::new(item(DataType::Int32), 3, Arc::new(Int32Array::from_iter_values(0..3000)), None);
    let array = ArrowField::new("x", fixed.data_type().clone(), false);
    let ntuple = written(&folder, array, Arc::new(fixed));
    let lists = read_as(&ntuple, ArrowField::new("x", DataType::LargeList(item(DataType::Int64)), false)).unwrap();
    assert_eq!(lists.as_list::<i64>().value_offsets()[999], 2997);
    let bytes = ArrowField::new("x", DataType::FixedSizeList(item(DataType::UInt8), 3), false);
    assert!(read_as(&ntuple, bytes).unwrap_err().to_string().contains("entry 85: field 'x'"));
}

/// A record of class `A` with an integer that counts.
fn numbered() -> (ArrowField, ArrayRef) {
    let numbers: ArrayRef = Arc::new(Int32Array::from_iter_values(0..100));
    let fields =
        Fields::from(vec![ArrowField::new("i", DataType::Int32, false), ArrowField::new("j", DataType::Int32, false)]);
    let array = StructArray::new(fields.clone(), vec![numbers.clone(), numbers], None);
    (typed("x", "A", DataType::Struct(fields)), Arc::new(array))
}

#[test]
fn members_that_are_not_there_are_zero_empty_or_null() {
    let folder = tempfile::tempdir().unwrap();
    let (field, array) = numbered();
    let ntuple = written(&folder, field, array);
    let mut members = every_kind();
    // A streamed class has no default bytes, and a cardinality needs an existing collection.
    members.retain(|member| member.kind != Kind::Streamer);
    members.push(Field::new("j", "std::int64_t", Kind::Primitive(Primitive::Int64)));
    let wanted = Schema { fields: vec![Field::new("x", "A", Kind::Record(members))] };
    for binary in [false, true] {
        let read = ntuple.read_all().with_schema(&wanted).unwrap().with_binary_strings(binary);
        let batch = read.to_batch().unwrap();
        assert_eq!(batch.schema(), read.arrow_schema());
        let record = batch.column(0).as_struct();
        assert_eq!(record.column_by_name("j").unwrap().as_primitive::<arrow_array::types::Int64Type>().value(99), 99);
        let text = |name: &str| {
            let column = record.column_by_name(name).unwrap();
            ArrayFormatter::try_new(column, &Default::default()).unwrap().value(99).to_string()
        };
        for (name, expected) in [
            ("quantised", "0.0"),
            ("class", "{:_0: {i: 0}}"),
            ("text", ""),
            ("bits", "[false, false, false, false, false]"),
            ("array", "[0, 0, 0]"),
            ("atomic", "0"),
            ("map", "[]"),
            ("pair", "{_0: 0, _1: 0.0}"),
            ("optional", ""),
            ("variant", "{_0=0}"),
            ("record", "{a: 0, empty: {}}"),
        ] {
            assert_eq!(text(name), expected, "{name}");
        }
        assert_eq!(record.column_by_name("optional").unwrap().null_count(), 100);
    }
}

#[test]
fn a_record_without_wanted_members_still_has_entries() {
    let folder = tempfile::tempdir().unwrap();
    let (field, array) = numbered();
    let ntuple = written(&folder, field, array);
    let other = typed("x", "A", DataType::Struct(vec![ArrowField::new("k", DataType::Boolean, false)].into()));
    let record = read_as(&ntuple, other).unwrap();
    assert_eq!(record.as_struct().column(0).as_ref(), &BooleanArray::from(vec![false; 100]) as &dyn Array);
    // Neither of the integers was read for it.
    let wanted = Schema { fields: vec![Field::new("x", "", Kind::Record(Vec::new()))] };
    let read = ntuple.read_all().with_schema(&wanted).unwrap();
    assert_eq!(read.bytes_per_entry().unwrap(), 0.0);
    assert_eq!(read.to_batch().unwrap().column(0).len(), 100);
}

#[test]
fn variants_evolve_in_their_alternatives() {
    let folder = tempfile::tempdir().unwrap();
    let count = 100usize;
    let variant = |small: DataType, values: ArrayRef, bytes: ArrayRef| {
        let fields = vec![ArrowField::new("_0", small, false), ArrowField::new("_1", DataType::UInt8, false)];
        let fields = arrow::union_fields(fields.into());
        let ids: Vec<i8> = (0..count).map(|i| if i == 42 { 0 } else { 1 + (i % 2) as i8 }).collect();
        let mut seen = [0; 3];
        let offsets = ids.iter().map(|&id| (seen[id as usize], seen[id as usize] += 1).0).collect::<Vec<i32>>();
        let valueless: ArrayRef = Arc::new(NullArray::new(1));
        UnionArray::try_new(fields, ids.into(), Some(offsets.into()), vec![valueless, values, bytes]).unwrap()
    };
    let bytes: ArrayRef = Arc::new(UInt8Array::from_iter_values(0..50));
    let ints: ArrayRef = Arc::new(Int32Array::from_iter_values((0..49).map(|i| i * 10)));
    let union = variant(DataType::Int32, ints.clone(), bytes.clone());
    let field = ArrowField::new("x", union.data_type().clone(), true);
    let ntuple = written(&folder, field, Arc::new(union));
    let longs = cast_with_options(&ints, &DataType::Int64, &CastOptions::default()).unwrap();
    let wanted = variant(DataType::Int64, longs, bytes.clone());
    let read = read_as(&ntuple, ArrowField::new("x", wanted.data_type().clone(), true)).unwrap();
    assert_eq!(read.as_union().child(1), wanted.child(1));
    let small = variant(DataType::Int8, Arc::new(arrow_array::Int8Array::from(vec![0; 49])), bytes);
    let error = read_as(&ntuple, ArrowField::new("x", small.data_type().clone(), true)).unwrap_err();
    // The 14th integer stands in entry 26.
    assert!(error.to_string().contains("entry 26: field 'x._0', read as 'std::int8_t': the value 130"), "{error}");
}

#[test]
fn fields_are_found_by_name_and_once() {
    let folder = tempfile::tempdir().unwrap();
    let (field, array) = numbered();
    let ntuple = written(&folder, field, array);
    let wanted = |names: &[&str]| {
        let field = |name: &&str| Field::new(*name, "", Kind::Record(Vec::new()));
        ntuple.read_all().with_schema(&Schema { fields: names.iter().map(field).collect() })
    };
    let error = wanted(&["X"]).unwrap_err();
    assert!(error.is_not_found() && error.to_string().contains("(available: 'x')"), "{error}");
    assert_eq!(wanted(&["x", "x"]).unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(wanted(&[]).unwrap().to_batch().unwrap().num_rows(), 100);
    // Its own schema does not count as another one.
    let same = ntuple.read_all().with_schema(ntuple.schema()).unwrap().to_batch().unwrap();
    assert_eq!(same, ntuple.read_all().to_batch().unwrap());
}
