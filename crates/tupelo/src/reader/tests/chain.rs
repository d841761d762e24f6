//! Several files as one source.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{
    Array, ArrayRef, Float32Array, Int32Array, Int64Array, LargeListArray, LargeStringArray, RecordBatch, StringArray,
    StructArray, UInt32Array, UInt64Array,
};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{DataType, Field as ArrowField};
use tupelo_schema::schema::{FieldPolicy, Schema, tighten};

use super::super::{Read, Table};
use crate::ops::copy::{Copied, Pages, copy};
use crate::{ErrorKind, Result, WriteOptions};

fn ints(values: impl IntoIterator<Item = i32>) -> ArrayRef {
    Arc::new(Int32Array::from_iter_values(values))
}

fn write(path: &Path, batch: &RecordBatch) {
    let file = crate::create(path).unwrap();
    let schema = Schema::from_arrow(&tighten(batch)).unwrap();
    let mut ntuple = file.ntuple("events", &schema, WriteOptions::default()).unwrap();
    ntuple.write(batch).unwrap();
    ntuple.set_metadata("run", &format!("{}", path.file_stem().unwrap().display())).unwrap();
    ntuple.finish().unwrap();
    file.finish().unwrap();
}

/// A file of each list of columns.
fn files<N: AsRef<str>>(columns: Vec<Vec<(N, ArrayRef)>>) -> (tempfile::TempDir, Vec<String>) {
    let folder = tempfile::tempdir().unwrap();
    let file = |(number, columns): (usize, Vec<(N, ArrayRef)>)| {
        let path = folder.path().join(format!("{number}.root"));
        write(&path, &RecordBatch::try_from_iter(columns).unwrap());
        path.to_str().unwrap().to_owned()
    };
    let paths = columns.into_iter().enumerate().map(file).collect();
    (folder, paths)
}

/// Files of three entries each, with `x` from 10 times the number of the file on, and other columns from zero on.
fn numbered(columns: &[&[&'static str]]) -> (tempfile::TempDir, Vec<String>) {
    let column = |number: usize, name: &'static str| {
        let first = if name == "x" { 10 * number as i32 } else { 0 };
        (name, ints(first..first + 3))
    };
    let file = |(number, columns): (usize, &&[&'static str])| columns.iter().map(|name| column(number, name)).collect();
    files(columns.iter().enumerate().map(file).collect())
}

fn chain(paths: &[String], policy: FieldPolicy) -> Result<Table> {
    let paths = paths.to_vec();
    Table::chain(paths.len(), 1, policy, move |file| crate::open(&paths[file]).table().map(Some))
}

fn values(read: Read) -> Vec<i32> {
    let batches = read.batches_of_bytes(8).unwrap().map(Result::unwrap);
    let x = |batch: RecordBatch| batch.column_by_name("x").unwrap().as_primitive::<Int32Type>().values().to_vec();
    batches.flat_map(x).collect()
}

fn column(batch: &RecordBatch, name: &str) -> Vec<i32> {
    batch.column_by_name(name).unwrap().as_primitive::<Int32Type>().values().to_vec()
}

#[test]
fn entries_count_through_all_files() {
    let (_folder, paths) = numbered(&[&["x"], &["x"], &["x"]]);
    let table = chain(&paths, FieldPolicy::Common).unwrap();
    let all = || table.read_all();
    assert_eq!((table.entries(), table.clusters(), table.name()), (9, 3, "events"));
    assert_eq!(values(all()), [0, 1, 2, 10, 11, 12, 20, 21, 22]);
    assert_eq!(values(all().entries(2..7)), [2, 10, 11, 12, 20]);
    assert_eq!(values(all().entries(4..)), [11, 12, 20, 21, 22]);
    assert_eq!((values(all().entries(9..)), values(all().entries(3..3))), (vec![], vec![]));
    assert_eq!(column(&all().entries(1..8).to_batch().unwrap(), "x"), [1, 2, 10, 11, 12, 20, 21]);
    assert_eq!(column(&all().take(&[8, 0, 4, 4]).unwrap(), "x"), [22, 0, 11, 11]);
    let chain = table.files().unwrap();
    assert_eq!(chain.parts().iter().map(|part| part.entries.clone()).collect::<Vec<_>>(), [0..3, 3..6, 6..9]);
    assert_eq!([0, 2, 3, 8].map(|entry| chain.part_of(entry)), [0, 0, 1, 2]);
    let mut batches = all().entries(2..4).batches(1).unwrap();
    let positions: Vec<u64> = std::iter::from_fn(|| batches.next().map(|_| batches.position())).collect();
    assert_eq!(positions, [3, 4]);
}

#[test]
fn cuts_and_columns_are_those_of_any_source() {
    let (_folder, paths) = numbered(&[&["x", "a"], &["x", "a"], &["a", "x"]]);
    let table = chain(&paths, FieldPolicy::Common).unwrap();
    let read = table.read(["a"]).unwrap().with_computed("s", &"x + a".parse().unwrap()).unwrap();
    let read = read.with_where(&"x % 10 > 0 and x > 1".parse().unwrap()).unwrap().with_entry_numbers("n");
    let batch = read.to_batch().unwrap();
    assert_eq!(column(&batch, "a"), [2, 1, 2, 1, 2]);
    let numbers = batch.column_by_name("n").unwrap().as_primitive::<arrow_array::types::UInt64Type>();
    assert_eq!(numbers.values(), &[2, 4, 5, 7, 8]);
    let explained = read.explain().unwrap();
    assert_eq!((explained.entries, explained.clusters, explained.columns.len()), (9, 3, 2));
    assert_eq!(explained.pages(), 6);
    let ordered = table.read_all().with_computed("s", &"x".parse().unwrap()).unwrap();
    let ordered = ordered.in_order_of(&["s".to_owned(), "a".to_owned()]);
    let names = |schema: &arrow_schema::Schema| schema.fields().iter().map(|it| it.name().clone()).collect::<Vec<_>>();
    assert_eq!(names(&ordered.arrow_schema()), ["s", "a", "x"]);
    assert_eq!(names(&ordered.to_batch().unwrap().schema()), ["s", "a", "x"]);
    assert_eq!(ordered.schema_with_computed().unwrap().fields[0].name, "s");
}

#[test]
fn files_may_have_other_fields() {
    let (_folder, paths) = numbered(&[&["a", "x"], &["x", "b"], &["x", "b"]]);
    let common = chain(&paths, FieldPolicy::Common).unwrap();
    assert_eq!(common.files().unwrap().missing::<&str>(&[], &[]), ["a", "b"]);
    assert_eq!(common.files().unwrap().missing(&["b"], &["a"]), ["b"]);
    assert_eq!(common.arrow_schema().fields().len(), 1);
    assert_eq!(values(common.read_all()), [0, 1, 2, 10, 11, 12, 20, 21, 22]);
    let error = common.read(["a"]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(
        error.to_string().contains("field 'a' is not in all files: ") && error.to_string().contains("1.root lacks it")
    );
    assert!(common.read(["c"]).unwrap_err().to_string().contains("no field named 'c'"));
    let union = chain(&paths, FieldPolicy::Union).unwrap();
    let batch = union.read_all().to_batch().unwrap();
    assert_eq!(batch.columns().iter().map(|it| it.null_count()).collect::<Vec<_>>(), [6, 0, 3]);
    assert_eq!(batch.schema(), union.read_all().arrow_schema());
    let some = union.read(["b", "x"]).unwrap().entries(2..4).to_batch().unwrap();
    assert_eq!((column(&some, "x"), some.column_by_name("b").unwrap().null_count()), (vec![2, 10], 1));
}

#[test]
fn records_are_read_with_the_members_that_all_files_have() {
    let record = |members: [&'static str; 2], value: i32| -> Vec<(&'static str, ArrayRef)> {
        let member = |name: &str| (Arc::new(ArrowField::new(name, DataType::Int32, false)), ints([value, value + 1]));
        vec![("r", Arc::new(StructArray::from(members.map(member).to_vec())))]
    };
    let (_folder, paths) = files(vec![record(["p", "q"], 1), record(["q", "s"], 5), record(["q", "p"], 8)]);
    let common = chain(&paths, FieldPolicy::Common).unwrap();
    assert_eq!(common.files().unwrap().missing::<&str>(&[], &[]), ["r.p", "r.s"]);
    let batch = common.read_all().to_batch().unwrap();
    let records = batch.column(0).as_struct();
    assert_eq!(records.column_names(), ["q"]);
    assert_eq!(records.column(0).as_primitive::<Int32Type>().values(), &[1, 2, 5, 6, 8, 9]);
    let error = chain(&paths, FieldPolicy::Union).unwrap().read::<&str>([]).unwrap_err();
    assert!(error.to_string().contains("field 'r' has type struct of q, s in "), "{error}");
    // Members in another order are the same.
    let same = chain(&[paths[0].clone(), paths[2].clone()], FieldPolicy::Union).unwrap();
    let batch = same.read(["r.p"]).unwrap().to_batch().unwrap();
    assert_eq!(batch.column(0).as_struct().column(0).as_primitive::<Int32Type>().values(), &[1, 2, 8, 9]);
}

#[test]
fn other_types_are_an_error_where_they_are_chosen() {
    let floats: ArrayRef = Arc::new(Float32Array::from(vec![0.5]));
    let (_folder, paths) = files(vec![vec![("x", ints([1])), ("y", ints([2]))], vec![("x", ints([3])), ("y", floats)]]);
    let table = chain(&paths, FieldPolicy::Common).unwrap();
    assert_eq!(values(table.read(["x"]).unwrap()), [1, 3]);
    for patterns in [vec![], vec!["y"], vec!["*"]] {
        let error = table.read(&patterns).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.to_string().contains("field 'y' has type float in "), "{error}");
        assert!(table.files().unwrap().check(&patterns, &["y"]).is_ok());
    }
}

#[test]
fn strings_that_are_bytes_in_one_file_are_bytes_in_all() {
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["a", "b"]));
    let bytes: ArrayRef = Arc::new(arrow_array::LargeBinaryArray::from(vec![&b"\xff"[..]]));
    let (_folder, paths) = files(vec![vec![("s", texts)]]);
    let other = Path::new(&paths[0]).with_file_name("1.root");
    let like = Schema::from_arrow(&crate::open(&paths[0]).table().unwrap().arrow_schema()).unwrap();
    let file = crate::create(&other).unwrap();
    let mut ntuple = file.ntuple("events", &like, WriteOptions::default()).unwrap();
    ntuple.write(&RecordBatch::try_from_iter([("s", bytes)]).unwrap()).unwrap();
    ntuple.finish().unwrap();
    file.finish().unwrap();
    let table = chain(&[paths[0].clone(), other.to_str().unwrap().to_owned()], FieldPolicy::Common).unwrap();
    let batch = table.read_all().to_batch().unwrap();
    let column: Vec<&[u8]> = batch.column(0).as_binary::<i64>().iter().flatten().collect();
    assert_eq!(column, [&b"a"[..], b"b", b"\xff"]);
}

/// Regression: entries of the new file were returned as those of the old one.
#[test]
fn a_file_that_is_replaced_is_an_error() {
    let (_folder, paths) = numbered(&[&["x"], &["x"]]);
    let table = chain(&paths, FieldPolicy::Common).unwrap();
    // FS: test files.
    std::fs::copy(&paths[0], &paths[1]).unwrap();
    let error = table.read_all().to_batch().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Changed);
    assert!(error.to_string().contains("1.root") && error.to_string().contains("has changed"), "{error}");
    assert_eq!(values(table.read_all().entries(..3)), [0, 1, 2]);
}

#[test]
fn files_may_be_left_out_or_fail() {
    let (_folder, paths) = numbered(&[&["x"], &["x"], &["x"]]);
    let opened = Arc::new(AtomicUsize::new(0));
    let (known, count) = (paths.clone(), Arc::clone(&opened));
    let open = move |file: usize| {
        count.fetch_add(1, Ordering::Relaxed);
        if file == 1 { Ok(None) } else { crate::open(&known[file]).table().map(Some) }
    };
    let table = Table::chain(3, 2, FieldPolicy::Common, open).unwrap();
    assert_eq!(opened.swap(0, Ordering::Relaxed), 3);
    assert_eq!(values(table.read_all()), [0, 1, 2, 20, 21, 22]);
    assert_eq!(values(table.read_all()), [0, 1, 2, 20, 21, 22]);
    // They stay open. A thread of the pool that needs one does not wait for another that opens it.
    assert!((2..=3).contains(&opened.load(Ordering::Relaxed)));
    assert_eq!(table.files().unwrap().parts()[1].number, 2);
    let none = Table::chain(2, 1, FieldPolicy::Common, |_| Ok(None)).unwrap_err();
    assert_eq!(none.kind(), ErrorKind::NotFound);
    let missing = [paths[0].clone(), "missing.root".to_owned()];
    assert_eq!(chain(&missing, FieldPolicy::Common).unwrap_err().kind(), ErrorKind::MissingFile);
}

#[test]
fn a_chain_is_copied_with_what_is_attached_to_its_files() {
    let (folder, paths) = numbered(&[&["x"], &["x", "y"]]);
    let table = chain(&paths, FieldPolicy::Common).unwrap();
    let path = folder.path().join("all.root");
    let file = crate::create(&path).unwrap();
    let mut progress = |_| std::ops::ControlFlow::Continue(());
    let (options, pages) = (WriteOptions::default(), Pages::default());
    let copied = copy(table.read_all(), &file, "events", options, pages, &mut progress).unwrap();
    let Copied { written, warnings, .. } = copied.unwrap();
    file.finish().unwrap();
    assert_eq!((written.entries, warnings.len()), (6, 1));
    assert!(warnings[0].contains("metadata 'run': kept the value '0', '1' was not copied"), "{warnings:?}");
    let copied = crate::open(path.to_str().unwrap()).open().unwrap();
    assert_eq!(values(copied.read_all()), [0, 1, 2, 10, 11, 12]);
    assert_eq!(copied.metadata().unwrap()["run"], "0");
}

#[test]
fn narrower_numbers_are_read_in_the_wider_type() {
    let longs = |values: [i64; 2]| Arc::new(Int64Array::from(values.to_vec())) as ArrayRef;
    let record = |member: ArrayRef| -> ArrayRef {
        let field = ArrowField::new("m", member.data_type().clone(), false);
        Arc::new(StructArray::from(vec![(Arc::new(field), member)]))
    };
    let narrow = vec![("x", ints([1, 2])), ("r", record(ints([5, 6])))];
    let wide = vec![("x", longs([3, 1 << 40])), ("r", record(longs([7, 8])))];
    for order in [[0, 1], [1, 0]] {
        let all = [narrow.clone(), wide.clone()];
        let (_folder, paths) = files(order.iter().map(|&file| all[file].clone()).collect());
        let table = chain(&paths, FieldPolicy::Common).unwrap();
        let promoted = table.files().unwrap().promoted();
        assert!(promoted.len() == 2 && promoted[0].starts_with("field 'x' has type std::int"), "{promoted:?}");
        let batch = table.read_all().to_batch().unwrap();
        let values = batch.column(0).as_primitive::<Int64Type>().values().to_vec();
        let members = batch.column(1).as_struct().column(0).as_primitive::<Int64Type>().values().to_vec();
        let (mut expected, mut others) = (vec![1, 2, 3, 1 << 40], vec![5, 6, 7, 8]);
        expected.rotate_left(2 * order[0]);
        others.rotate_left(2 * order[0]);
        assert_eq!((values, members), (expected, others));
        let cut = table.read(["x"]).unwrap().with_where(&"x > 2".parse().unwrap()).unwrap().to_batch().unwrap();
        assert_eq!(cut.num_rows(), 2);
    }
}

#[test]
fn numbers_with_and_without_sign_are_read_in_a_type_that_holds_both() {
    let nested = |numbers: ArrayRef| -> ArrayRef {
        let list = |items: ArrayRef| -> ArrayRef {
            let item = Arc::new(ArrowField::new("item", items.data_type().clone(), false));
            let offsets = OffsetBuffer::from_lengths([items.len()]);
            Arc::new(LargeListArray::new(item, offsets, items, None))
        };
        list(list(numbers))
    };
    let signed: ArrayRef = Arc::new(Int32Array::from(vec![-1, 2]));
    let unsigned: ArrayRef = Arc::new(UInt32Array::from(vec![u32::MAX]));
    for order in [[0, 1], [1, 0]] {
        let all = [signed.clone(), unsigned.clone()].map(|numbers| vec![("x", nested(numbers))]);
        let (_folder, paths) = files(order.iter().map(|&file| all[file].clone()).collect());
        let table = chain(&paths, FieldPolicy::Common).unwrap();
        let schema = table.schema();
        let fields = std::iter::successors(schema.fields.first(), |field| field.children().first());
        let types: Vec<_> = fields.map(|field| field.type_name.as_str()).collect();
        assert_eq!(types, ["std::vector<std::vector<std::int64_t>>", "std::vector<std::int64_t>", "std::int64_t"]);
        let batch = table.read_all().to_batch().unwrap();
        let inner = batch.column(0).as_list::<i64>().values().as_list::<i64>().values().clone();
        let mut expected = [vec![-1, 2], vec![i64::from(u32::MAX)]];
        expected.rotate_left(order[0]);
        assert_eq!(inner.as_primitive::<Int64Type>().values().to_vec(), expected.concat());
    }
    let wide: ArrayRef = Arc::new(UInt64Array::from(vec![1]));
    let (_folder, paths) = files(vec![vec![("x", signed)], vec![("x", wide)]]);
    let error = chain(&paths, FieldPolicy::Common).unwrap().read(["x"]).unwrap_err();
    assert!(error.to_string().contains("field 'x' has type std::uint64_t"), "{error}");
}

#[test]
fn fields_that_files_lack_may_have_default_values() {
    let lists = LargeListArray::from_iter_primitive::<Int32Type, _, _>([Some(vec![Some(1)]), Some(vec![])]);
    let lists = LargeListArray::new(
        Arc::new(ArrowField::new("item", DataType::Int32, false)),
        lists.offsets().clone(),
        lists.values().clone(),
        None,
    );
    let texts: ArrayRef = Arc::new(LargeStringArray::from(vec!["a", "b"]));
    let (_folder, paths) = files(vec![vec![("x", ints([1, 2]))], vec![("l", Arc::new(lists)), ("s", texts)]]);
    let table = chain(&paths, FieldPolicy::Defaults).unwrap();
    let batch = table.read_all().to_batch().unwrap();
    assert_eq!(batch.columns().iter().map(|column| column.null_count()).collect::<Vec<_>>(), [0, 0, 0]);
    assert_eq!(batch.column(0).as_primitive::<Int32Type>().values(), &[1, 2, 0, 0]);
    assert_eq!(batch.column(1).as_list::<i64>().offsets().to_vec(), [0, 0, 0, 1, 1]);
    let texts: Vec<&str> = batch.column(2).as_string::<i64>().iter().flatten().collect();
    assert_eq!(texts, ["", "", "a", "b"]);
}
