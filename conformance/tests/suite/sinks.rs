//! Laws of sinks: what one took, its reader gives back; an abandoned one leaves nothing; nothing is visible before the end.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use arrow_array::types::Float64Type;
use arrow_array::{ArrayRef, Int32Array, LargeListArray, LargeStringArray, RecordBatch};
use tupelo::ops::pipe;
use tupelo::schema::Schema;
use tupelo::writer::{EntrySink, TreeOptions};
use tupelo::{FileWriter, Result, Table, WriteOptions};

fn batch() -> RecordBatch {
    let numbers: Int32Array = (0..500).collect();
    let texts: LargeStringArray = (0..500).map(|i| Some(format!("entry {i}"))).collect();
    let lists = (0..500).map(|i| Some((0..i % 3).map(move |k| Some(f64::from(i + k)))));
    let lists = LargeListArray::from_iter_primitive::<Float64Type, _, _>(lists);
    let columns: [(&str, ArrayRef); 3] = [("i", Arc::new(numbers)), ("s", Arc::new(texts)), ("v", Arc::new(lists))];
    RecordBatch::try_from_iter(columns).expect("a batch")
}

fn schema() -> Schema {
    Schema::from_arrow(&tupelo::schema::tighten(&batch())).expect("a schema")
}

fn open(path: &Path) -> Result<Table> {
    tupelo::open(path.to_str().expect("a path")).table()
}

/// The laws for a sink that `create` makes in a file.
fn laws<S: EntrySink<Error = tupelo::Error>>(what: &str, create: impl Fn(&FileWriter) -> S) {
    let folder = tempfile::tempdir().expect("a folder");
    let source = folder.path().join("source.root");
    let file = tupelo::create(&source).expect("a file");
    let mut ntuple = file.ntuple("n", &schema(), WriteOptions::default()).expect("an ntuple");
    ntuple.write(&batch()).expect("entries");
    ntuple.finish().expect("an ntuple");
    file.finish().expect("a file");
    let read = open(&source).expect("a source").read_all();

    let path = folder.path().join("out.root");
    let file = tupelo::create(&path).expect("a file");
    let mut sink = create(&file);
    let mut seen = 0;
    let mut progress = |done| {
        seen = done;
        ControlFlow::Continue(())
    };
    let cut = read.clone().with_where(&"i % 2 == 0".parse().expect("a cut")).expect("a cut");
    let taken = pipe(cut.clone(), Ok, &mut sink, &mut progress).expect("a pipe");
    assert_eq!((taken, seen), (Some(250), 500), "{what}");
    assert_eq!(sink.finish().expect("an end").entries, 250, "{what}");
    assert!(!path.exists(), "{what} is visible before its file is finished");
    file.finish().expect("a file");
    let (given, expected) = (open(&path).expect("an output"), cut.to_batch().expect("a cut"));
    let given = given.read(["i", "s", "v"]).expect("fields").to_batch().expect("all data");
    for (own, other) in given.columns().iter().zip(expected.columns()) {
        assert_eq!(&arrow_cast::cast(own, other.data_type()).expect("the same type"), other, "{what}");
    }

    // Another writer of the same file may take its name.
    let file = tupelo::create(folder.path().join("abandoned.root")).expect("a file");
    let mut sink = create(&file);
    pipe(read.clone(), Ok, &mut sink, &mut |_| ControlFlow::Continue(())).expect("a pipe");
    sink.abandon().expect("nothing");
    create(&file).finish().expect("an empty one");
    file.finish().expect("a file");
    assert_eq!(open(&folder.path().join("abandoned.root")).expect("an output").entries(), 0, "{what}");

    // A cancelled pipe leaves its sink to the caller.
    let file = tupelo::create(folder.path().join("cancelled.root")).expect("a file");
    let mut sink = create(&file);
    assert_eq!(pipe(read, Ok, &mut sink, &mut |_| ControlFlow::Break(())).expect("a pipe"), None, "{what}");
    sink.abandon().expect("nothing");
    drop(file);
    assert!(!folder.path().join("cancelled.root").exists(), "{what}");
}

#[test]
fn every_sink_obeys_the_same_laws() {
    laws("ntuple", |file| file.ntuple("out", &schema(), WriteOptions::default()).expect("an ntuple"));
    laws("tree", |file| file.tree("out", &schema(), TreeOptions::default()).expect("a tree"));
}
