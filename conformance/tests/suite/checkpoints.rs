//! Files with many states behind them: nothing that is needed is called free, and nothing is written twice.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int32Array, RecordBatch};
use tupelo::ops::verify::verify_deep;
use tupelo::schema::Schema;
use tupelo::{ErrorKind, FileWriter, WriteOptions};

fn batch(range: std::ops::Range<i32>) -> RecordBatch {
    let numbers: ArrayRef = Arc::new(Int32Array::from_iter_values(range));
    RecordBatch::try_from_iter([("n", numbers)]).unwrap()
}

fn schema() -> Schema {
    Schema::from_arrow(&batch(0..1).schema()).unwrap()
}

/// The anchors of attribute sets that had not changed stood in the free list, and another writer could overwrite them.
#[test]
fn records_of_the_last_state_are_not_free() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.root");
    let deep = |states: usize| {
        let file = tupelo::open(path.to_str().unwrap()).open_file().unwrap();
        let report = verify_deep(&file, &mut |_| {}).unwrap();
        assert!(report.damages.is_empty(), "after {states} states: {:?}", report.damages);
    };
    let file = tupelo::create(&path).unwrap();
    let mut ntuple = file.ntuple("in/events", &schema(), WriteOptions::default()).unwrap();
    let mut other = file.ntuple("other", &schema(), WriteOptions::default()).unwrap();
    let mut set = ntuple.attribute_set("runs", &schema()).unwrap();
    set.write(std::slice::from_ref(&(0..10)), &batch(7..8)).unwrap();
    ntuple.set_metadata("made", "here").unwrap();
    for k in 0..5 {
        ntuple.write(&batch(k..k + 1)).unwrap();
        ntuple.checkpoint().unwrap();
        other.write(&batch(k..k + 1)).unwrap();
        other.checkpoint().unwrap();
    }
    ntuple.finish().unwrap();
    other.finish().unwrap();
    file.finish().unwrap();
    deep(5);
    for k in 0..6 {
        let file = FileWriter::update(&path).unwrap();
        let mut ntuple = file.append("in/events", WriteOptions::default()).unwrap();
        ntuple.write(&batch(k..k + 1)).unwrap();
        if k == 3 {
            let mut set = ntuple.attribute_set("runs", &schema()).unwrap();
            set.write(std::slice::from_ref(&(0..10)), &batch(8..9)).unwrap();
        }
        ntuple.finish().unwrap();
        file.finish().unwrap();
        deep(6 + k as usize);
    }
    let ntuple = tupelo::open(&format!("{}:in/events", path.display())).open().unwrap();
    assert_eq!((ntuple.entries(), ntuple.attributes("runs").unwrap().ranges().len()), (11, 2));
    assert_eq!(ntuple.metadata().unwrap().get("made").map(String::as_str), Some("here"));
}

/// The second continuation began with what the first had found, and the first was lost.
#[test]
fn an_ntuple_is_continued_once_by_a_writer() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.root");
    let file = tupelo::create(&path).unwrap();
    file.ntuple("n", &schema(), WriteOptions::default()).unwrap().finish().unwrap();
    file.finish().unwrap();
    let file = FileWriter::update(&path).unwrap();
    let mut ntuple = file.append("n", WriteOptions::default()).unwrap();
    ntuple.write(&batch(0..1)).unwrap();
    ntuple.finish().unwrap();
    for again in ["n", "n;1", "/n"] {
        let error = file.append(again, WriteOptions::default()).unwrap_err();
        assert!(error.kind() == ErrorKind::InvalidArgument && error.to_string().contains("was finished"), "{error}");
    }
    file.finish().unwrap();
    assert_eq!(tupelo::open(path.to_str().unwrap()).open().unwrap().entries(), 1);
}

/// Such names were refused when all was written, and all of it was lost.
#[test]
fn names_that_no_directory_can_hold_are_refused_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.root");
    let file = tupelo::create(&path).unwrap();
    let mut good = file.ntuple("d/n", &schema(), WriteOptions::default()).unwrap();
    let long = "n".repeat(40_000);
    for (bad, description) in
        [("d", ""), ("d/n/m", ""), ("a//b", ""), (long.as_str(), ""), ("m", "t".repeat(70_000).as_str())]
    {
        let options = WriteOptions::default().with_description(description);
        let error = file.ntuple(bad, &schema(), options).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    }
    good.finish().unwrap();
    file.finish().unwrap();
}
