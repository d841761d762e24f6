//! Laws of sources: whatever entries come from, a range is a slice of all, single entries are its rows, and a cut filters it.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Float32Type;
use arrow_array::{Array, ArrayRef, BooleanArray, Float32Array, Int32Array, LargeListArray, RecordBatch, UInt64Array};
use arrow_select::concat::concat_batches;
use arrow_select::filter::filter_record_batch;
use arrow_select::take::take_record_batch;
use bytes::Bytes;
use conformance::memory;
use tupelo::dataset::FieldPolicy;
use tupelo::reader::{Read, Unmatched};
use tupelo::schema::Schema;
use tupelo::writer::TreeOptions;
use tupelo::{FileWriter, Table, WriteOptions};
use tupelo_storage::{MemoryFile, MemorySink};

/// Entries of a number, a float and a list, counted from `first`.
fn batch(first: i32, count: i32) -> RecordBatch {
    let numbers: Int32Array = (first..first + count).collect();
    let floats: Float32Array = (first..first + count).map(|i| i as f32 / 8.0).collect();
    let items = |i: i32| (0..i % 4).map(move |k| Some((i + k) as f32));
    let lists = (first..first + count).map(|i| Some(items(i)));
    let lists = LargeListArray::from_iter_primitive::<Float32Type, _, _>(lists);
    let columns: [(&str, ArrayRef); 3] = [("i", Arc::new(numbers)), ("f", Arc::new(floats)), ("v", Arc::new(lists))];
    RecordBatch::try_from_iter(columns).expect("a batch")
}

fn schema(batch: &RecordBatch) -> Schema {
    Schema::from_arrow(&tupelo::schema::tighten(batch)).expect("a schema")
}

fn ntuple(first: i32, count: i32) -> Table {
    let batches = [batch(first, count / 3), batch(first + count / 3, count - count / 3)];
    let options = WriteOptions::default().with_page_bytes(64);
    let bytes = memory::write(&schema(&batches[0]), &batches, options, true).expect("a file");
    memory::ntuple(&bytes).expect("an ntuple").into()
}

fn tree(first: i32, count: i32) -> Table {
    let options = TreeOptions::default().with_auto_flush(7).with_basket_bytes(256);
    let bytes = tree_file(&batch(first, count), options);
    memory::file(&bytes).expect("a file").table(Some(memory::NAME)).expect("a tree")
}

/// A file with a tree.
fn tree_file(batch: &RecordBatch, options: TreeOptions) -> Bytes {
    let target = MemoryFile::new();
    let file = FileWriter::create_in(Box::new(MemorySink::create(&target)), "memory.root").expect("a file");
    let mut tree = file.tree(memory::NAME, &schema(batch), options).expect("a tree");
    tree.write(batch).expect("entries");
    tree.finish().expect("a tree");
    file.finish().expect("a file");
    target.bytes().expect("bytes")
}

/// The entries of a file that counts what is read.
fn metered(file: &Bytes) -> Table {
    memory::file(file).expect("a file").with_metrics().table(Some(memory::NAME)).expect("a table")
}

fn chain(tables: Vec<Table>, policy: FieldPolicy) -> Table {
    let open = move |number: usize| Ok(tables.get(number).cloned());
    Table::chain(3, 1, policy, open).expect("a chain")
}

/// Sources with the entries 0 to 90.
fn sources() -> Vec<(&'static str, Table)> {
    let three = |make: fn(i32, i32) -> Table| vec![make(0, 40), make(40, 1), make(41, 49)];
    let nested = || vec![chain(three(ntuple), FieldPolicy::Common), ntuple(90, 0), ntuple(90, 0)];
    vec![
        ("ntuple", ntuple(0, 90)),
        ("tree", tree(0, 90)),
        ("chain of ntuples", chain(three(ntuple), FieldPolicy::Common)),
        ("union of ntuples", chain(three(ntuple), FieldPolicy::Union)),
        ("union of ntuples with defaults", chain(three(ntuple), FieldPolicy::Defaults)),
        ("chain of trees", chain(three(tree), FieldPolicy::Common)),
        ("chain of ntuples and trees", chain(vec![ntuple(0, 40), tree(40, 1), ntuple(41, 49)], FieldPolicy::Common)),
        ("chain of chains", chain(nested(), FieldPolicy::Common)),
        ("join", joined(ntuple(0, 90), tree(0, 90))),
        ("join by keys", by_keys(ntuple(0, 90), reversed(120), Unmatched::Error)),
        ("join by keys with nulls", by_keys(tree(0, 90), ntuple(0, 90), Unmatched::Null)),
        ("join by keys that drops", by_keys(ntuple(-20, 130), reversed(90), Unmatched::Drop)),
        ("join of a chain", joined(chain(three(ntuple), FieldPolicy::Common), ntuple(0, 90))),
        (
            "chain of joins",
            chain(three(|first, count| joined(ntuple(first, count), tree(first, count))), FieldPolicy::Common),
        ),
    ]
}

/// An ntuple with the entries from the last to 0.
fn reversed(count: i32) -> Table {
    let all = batch(0, count);
    let places: UInt64Array = (0..count as u64).rev().collect();
    let reversed = take_record_batch(&all, &places).expect("rows");
    let bytes = memory::write(&schema(&all), &[reversed], WriteOptions::default(), true).expect("a file");
    memory::ntuple(&bytes).expect("an ntuple").into()
}

/// Fields of one table, and those of another with a prefix, where `i` is the same.
fn by_keys(one: Table, other: Table, unmatched: Unmatched) -> Table {
    Table::join_by([("", one), ("other_", other)], ["i"], unmatched).expect("a join")
}

/// Fields of one table, and those of another with a prefix.
fn joined(one: Table, other: Table) -> Table {
    Table::join([("", one), ("other_", other)]).expect("a join")
}

#[test]
fn every_source_obeys_the_same_laws() {
    let expected = batch(0, 90);
    for (what, table) in sources() {
        // Of joins, the second column is of the other side.
        let second = if what.contains("join") { "other_f" } else { "f" };
        let read = table.read(["i", second, "v"]).expect("fields").in_order_of(&["i", second, "v"].map(str::to_owned));
        let all = read.to_batch().expect("all data");
        assert_eq!((all.num_rows(), table.entries()), (90, 90), "{what}");
        for (own, other) in all.columns().iter().zip(expected.columns()) {
            let own = arrow_cast::cast(own, other.data_type()).expect("the same type");
            assert_eq!(&own, other, "{what}");
        }
        laws(what, &read, &all);
        let computed = read.clone().with_defined("double", &"2 * i".parse().expect("an expression")).expect("a column");
        laws(&format!("computed columns of {what}"), &computed, &computed.to_batch().expect("all data"));
        let cut = read.clone().with_where(&"i % 3 == 1".parse().expect("a cut")).expect("a cut");
        let keep: BooleanArray = (0..90).map(|i| Some(i % 3 == 1)).collect();
        assert_eq!(cut.to_batch().expect("a cut"), filter_record_batch(&all, &keep).expect("a filter"), "{what}");
        let explained = read.explain().expect("an explanation");
        assert_eq!(explained.entries, 90, "{what}");
        assert!(explained.columns.iter().all(|column| column.pages > 0), "{what}");
    }
}

/// A page that extends beyond one batch is kept for the next one, also beside those of another file. It was decompressed for
/// each batch.
#[test]
fn batches_decompress_each_page_once() {
    let columns = ["i", "f", "v"];
    let of_ntuple = |first, count| {
        let batch = batch(first, count);
        let bytes = memory::write(&schema(&batch), &[batch], WriteOptions::default(), true).expect("a file");
        metered(&bytes)
    };
    let of_tree = |first, count| {
        let batch = batch(first, count);
        metered(&tree_file(&batch, TreeOptions::default()))
    };
    let three = |make: &dyn Fn(i32, i32) -> Table| [make(0, 900), make(900, 100), make(1000, 500)];
    for (what, files) in [
        ("ntuple", vec![of_ntuple(0, 1500)]),
        ("tree", vec![of_tree(0, 1500)]),
        ("chain of ntuples", three(&of_ntuple).into()),
        ("chain of trees", three(&of_tree).into()),
    ] {
        let table = match files.as_slice() {
            [one] => one.clone(),
            _ => chain(files.clone(), FieldPolicy::Common),
        };
        let pages = || files.iter().map(|file| file.metrics().expect("metrics").pages).sum::<u64>();
        let read = table.read(columns).expect("fields").in_order_of(&columns.map(str::to_owned));
        let (before, all) = (pages(), read.to_batch().expect("all data"));
        let at_once = pages() - before;
        assert!(at_once >= 3 * files.len() as u64, "{what}: {at_once}");
        for count in [1, 7, 999] {
            let before = pages();
            let batches = read.clone().batches(count).expect("batches").decoded_one_by_one();
            let batches: Vec<_> = batches.map(|batch| batch.expect("a batch")).collect();
            assert_eq!(pages() - before, at_once, "{what}: batches of {count}");
            assert_eq!(concat_batches(&all.schema(), &batches).expect("all"), all, "{what}: batches of {count}");
        }
    }
}

/// Ranges, batches and single entries are parts of the whole.
fn laws(what: &str, read: &Read, all: &RecordBatch) {
    for (start, end) in [(0, 0), (0, 1), (39, 42), (40, 41), (13, 90), (90, 90), (5, 77)] {
        let range = read.clone().entries(start..end).to_batch().expect("a range");
        assert_eq!(range, all.slice(start as usize, (end - start) as usize), "{what}: {start}..{end}");
    }
    let batches = read.clone().batches(7).expect("batches").map(|batch| batch.expect("a batch")).collect::<Vec<_>>();
    assert_eq!(&concat_batches(&all.schema(), &batches).expect("all"), all, "{what}");
    let entries = [89, 0, 40, 40, 41, 3];
    let taken = take_record_batch(all, &UInt64Array::from(entries.to_vec())).expect("rows");
    assert_eq!(read.take(&entries).expect("entries"), taken, "{what}");
    // The first time pages are kept, the second time they are used.
    for entry in (0..all.num_rows()).step_by(7).chain((0..all.num_rows()).step_by(5)) {
        let one = read.clone().with_kept_pages().entries(entry as u64..=entry as u64);
        assert_eq!(one.to_batch().expect("an entry"), all.slice(entry, 1), "{what}: entry {entry}");
    }
}

/// Entries without a counterpart are errors, null or left out; repeated keys and keys of other types are errors.
#[test]
fn joins_by_keys_tell_what_does_not_match() {
    let join = |one: Table, other: Table, unmatched| Table::join_by([("", one), ("o_", other)], ["i"], unmatched);
    let error = join(ntuple(0, 90), ntuple(0, 60), Unmatched::Error).expect_err("60 has no counterpart").to_string();
    assert!(error.contains("has no entry with i = 60, which is entry 60 of"), "{error}");
    let kept = join(ntuple(30, 60), ntuple(0, 60), Unmatched::Drop).expect("a join");
    assert_eq!(kept.entries(), 30);
    let nulls = join(ntuple(30, 60), reversed(60), Unmatched::Null).expect("a join");
    let read = nulls.read(["i", "o_f", "o_v"]).expect("fields").to_batch().expect("values");
    assert_eq!((read.num_rows(), read.column(1).null_count(), read.column(2).null_count()), (60, 30, 30));
    let other = read.column(1).as_primitive::<Float32Type>();
    assert!((0..30).all(|entry| other.value(entry) == (30 + entry) as f32 / 8.0));
    // Many entries may have the counterpart of one.
    let twice = chain(vec![ntuple(0, 30), ntuple(0, 30), ntuple(30, 3)], FieldPolicy::Common);
    let both = join(twice.clone(), reversed(40), Unmatched::Error).expect("a join");
    let read = both.read(["o_f"]).expect("fields").to_batch().expect("values");
    let values = read.column(0).as_primitive::<Float32Type>();
    assert!((0..30).all(|entry| values.value(entry) == values.value(entry + 30)));
    let error = join(ntuple(0, 30), twice, Unmatched::Null).expect_err("two entries have i = 0").to_string();
    assert!(error.contains("entries 0 and 30 have the same i = 0"), "{error}");
    let by =
        |keys: &[&str]| Table::join_by([("", ntuple(0, 3)), ("o_", ntuple(0, 3))], keys.to_vec(), Unmatched::Error);
    let error = by(&["f"]).expect_err("floats").to_string();
    assert!(error.contains("key 'f' has type float, expected an integer"), "{error}");
    assert!(by(&["j"]).expect_err("no such field").is_not_found());
    assert!(by(&[]).expect_err("no key").to_string().contains("at least one key"));
}
