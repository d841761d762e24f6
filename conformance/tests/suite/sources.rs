//! Laws of sources: whatever entries come from, a range is a slice of all, single entries are its rows, and a cut filters it.

use std::sync::Arc;

use arrow_array::types::Float32Type;
use arrow_array::{ArrayRef, BooleanArray, Float32Array, Int32Array, LargeListArray, RecordBatch, UInt64Array};
use arrow_select::concat::concat_batches;
use arrow_select::filter::filter_record_batch;
use arrow_select::take::take_record_batch;
use bytes::Bytes;
use conformance::memory;
use tupelo::dataset::FieldPolicy;
use tupelo::reader::Read;
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
    let batch = batch(first, count);
    let target = MemoryFile::new();
    let file = FileWriter::create_in(Box::new(MemorySink::create(&target)), "memory.root").expect("a file");
    let options = TreeOptions::default().with_auto_flush(7).with_basket_bytes(256);
    let mut tree = file.tree(memory::NAME, &schema(&batch), options).expect("a tree");
    tree.write(&batch).expect("entries");
    tree.finish().expect("a tree");
    file.finish().expect("a file");
    let bytes: Bytes = target.bytes().expect("bytes");
    memory::file(&bytes).expect("a file").table(Some(memory::NAME)).expect("a tree")
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
        ("chain of trees", chain(three(tree), FieldPolicy::Common)),
        ("chain of ntuples and trees", chain(vec![ntuple(0, 40), tree(40, 1), ntuple(41, 49)], FieldPolicy::Common)),
        ("chain of chains", chain(nested(), FieldPolicy::Common)),
        ("join", joined(ntuple(0, 90), tree(0, 90))),
        ("join of a chain", joined(chain(three(ntuple), FieldPolicy::Common), ntuple(0, 90))),
        (
            "chain of joins",
            chain(three(|first, count| joined(ntuple(first, count), tree(first, count))), FieldPolicy::Common),
        ),
    ]
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
}
