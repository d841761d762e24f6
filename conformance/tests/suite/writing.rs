//! What writers promise to those who make mistakes: nothing of what is refused stays, nothing is taken in vain, and what
//! another program said stays as it is.

use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type};
use arrow_array::{
    ArrayRef, Float32Array, Float64Array, Int32Array, Int64Array, LargeListArray, RecordBatch, StringArray,
};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{DataType, Field, Schema as ArrowSchema};
use tupelo::ops::copy::{Pages, copy};
use tupelo::ops::verify::verify_deep;
use tupelo::schema::Schema;
use tupelo::{ErrorKind, FileWriter, Ntuple, WriteOptions};

fn batch(range: std::ops::Range<i32>) -> RecordBatch {
    let numbers: ArrayRef = Arc::new(Int32Array::from_iter_values(range));
    RecordBatch::try_from_iter([("n", numbers)]).unwrap()
}

fn schema() -> Schema {
    schema_of(&batch(0..1))
}

fn schema_of(batch: &RecordBatch) -> Schema {
    Schema::from_arrow(&batch.schema()).unwrap()
}

fn options() -> WriteOptions {
    WriteOptions::default()
}

fn open(path: &Path) -> Ntuple {
    tupelo::open(path.to_str().unwrap()).open().unwrap()
}

/// A batch of texts, nullable where that is said.
fn texts(columns: &[(&str, bool)], value: &str) -> RecordBatch {
    let fields: Vec<Field> = columns.iter().map(|(name, null)| Field::new(*name, DataType::Utf8, *null)).collect();
    let arrays = columns.iter().map(|_| Arc::new(StringArray::from(vec![value])) as ArrayRef).collect();
    RecordBatch::try_new(ArrowSchema::new(fields).into(), arrays).unwrap()
}

/// Sets that looked like metadata but were declared otherwise were replaced by a set of ours, or left out of a copy.
#[test]
fn a_set_called_metadata_of_another_schema_stays_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let mut number = texts(&[("key", false), ("value", false)], "v").columns().to_vec();
    number.push(Arc::new(Int64Array::from(vec![7])));
    let names = ["key", "value", "more"].into_iter().zip(number);
    let foreign = [
        texts(&[("value", false), ("key", false)], "v"),
        texts(&[("key", false), ("value", true)], "v"),
        texts(&[("note", false)], "v"),
        RecordBatch::try_from_iter(names).unwrap(),
    ];
    let content = |path: &Path| {
        let rows = open(path).attributes("metadata").unwrap();
        (rows.ranges().to_vec(), rows.values().clone())
    };
    for (k, values) in foreign.iter().enumerate() {
        for rows in [0, 1] {
            let path = folder.path().join(format!("{k}-{rows}.root"));
            let values = values.slice(0, rows);
            let file = tupelo::create(&path).unwrap();
            let mut ntuple = file.ntuple("n", &schema(), options()).unwrap();
            ntuple.write(&batch(0..10)).unwrap();
            let mut set = ntuple.attribute_set("metadata", &schema_of(&values)).unwrap();
            set.write(&vec![0..10; rows], &values).unwrap();
            ntuple.finish().unwrap();
            file.finish().unwrap();
            let said = content(&path);

            let file = FileWriter::update(&path).unwrap();
            let mut ntuple = file.append("n", options()).unwrap();
            assert!(ntuple.metadata().is_empty());
            let error = ntuple.set_metadata("key", "value").unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
            assert!(error.to_string().contains("of another program"), "{error}");
            ntuple.write(&batch(10..20)).unwrap();
            ntuple.finish().unwrap();
            file.finish().unwrap();
            assert_eq!(content(&path), said);
            let error = open(&path).metadata().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");

            let other = folder.path().join("copy.root");
            let file = tupelo::create(&other).unwrap();
            let mut go_on = |_| ControlFlow::Continue(());
            let read = open(&path).read(["n"]).unwrap().entries(0..20);
            copy(read, &file, "n", options(), Pages::default(), &mut go_on).unwrap();
            file.finish().unwrap();
            assert_eq!(content(&other), said);
        }
    }
}

/// All pairs had been removed, and what was then written to the set as such was overwritten by an empty one.
#[test]
fn the_set_of_metadata_is_written_by_one_of_two_ways() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.root");
    let file = tupelo::create(&path).unwrap();
    let mut ntuple = file.ntuple("n", &schema(), options()).unwrap();
    ntuple.set_metadata("key", "value").unwrap();
    ntuple.checkpoint().unwrap();
    ntuple.remove_metadata("key").unwrap();
    ntuple.finish().unwrap();
    file.finish().unwrap();
    let file = FileWriter::update(&path).unwrap();
    let mut ntuple = file.append("n", options()).unwrap();
    let pairs = schema_of(&texts(&[("key", false), ("value", false)], ""));
    let error = ntuple.attribute_set("metadata", &pairs).unwrap_err();
    assert!(error.to_string().contains("contains the metadata of the ntuple"), "{error}");
    ntuple.set_metadata("a", "b").unwrap();
    ntuple.finish().unwrap();
    file.finish().unwrap();
    assert_eq!(open(&path).metadata().unwrap().get("a").map(String::as_str), Some("b"));
}

/// Such values were found when their page was made, which was at the end or in another call.
#[test]
fn values_outside_of_a_range_are_refused_by_the_call_that_brings_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.root");
    let reals = |values: Vec<f32>| -> RecordBatch {
        let count = values.len();
        let single: ArrayRef = Arc::new(Float32Array::from(values.clone()));
        let item = Arc::new(Field::new("item", DataType::Float32, false));
        let lists = LargeListArray::new(
            item,
            OffsetBuffer::from_lengths(vec![1; count]),
            Arc::new(Float32Array::from(values)),
            None,
        );
        let n: ArrayRef = Arc::new(Int32Array::from_iter_values(0..count as i32));
        RecordBatch::try_from_iter([("n", n), ("q", single), ("jets", Arc::new(lists) as ArrayRef)]).unwrap()
    };
    let schema = schema_of(&tupelo_of(&reals(vec![0.0])));
    for quantised in ["q", "jets"] {
        let encoding = options().with_field_encoding(quantised, "Real32Quant(12,0,1)").unwrap();
        // Small clusters: the first values of what is refused would be in the file.
        let encoding = encoding.with_page_bytes(64).with_cluster_bytes(1000).with_checkpoint_clusters(1);
        let file = tupelo::create(&path).unwrap();
        let mut ntuple = file.ntuple("n", &schema, encoding).unwrap();
        ntuple.write(&reals(vec![0.25; 10])).unwrap();
        for wrong in [1.5, -0.1, f32::NAN] {
            let mut values = vec![0.5; 100_000];
            values[99_999] = wrong;
            let error = ntuple.write(&reals(values)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
            let text = error.to_string();
            assert!(text.contains(&format!("field '{quantised}'")) && text.contains("outside the range"), "{text}");
            assert_eq!(ntuple.entries(), 10);
        }
        // Of several batches none is taken either.
        let error = ntuple.write_all(&[reals(vec![0.5; 7]), reals(vec![7.0])]).unwrap_err();
        assert!(error.to_string().contains("outside the range"), "{error}");
        let mut context = ntuple.fill_context().unwrap();
        assert!(context.write(&reals(vec![0.5, 2.0])).is_err());
        context.finish().unwrap();
        ntuple.write(&reals(vec![0.75; 5])).unwrap();
        ntuple.finish().unwrap();
        file.finish().unwrap();
        assert_eq!(open(&path).read_all().to_batch().unwrap().num_rows(), 15);
    }
}

/// They were written as infinity.
#[test]
fn values_too_large_for_an_encoding_are_refused_with_their_field() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.root");
    let reals = |single: f32, double: f64| -> RecordBatch {
        let single: ArrayRef = Arc::new(Float32Array::from(vec![0.5, single]));
        let double: ArrayRef = Arc::new(Float64Array::from(vec![0.5, double]));
        RecordBatch::try_from_iter([("single", single), ("double", double)]).unwrap()
    };
    let schema = schema_of(&tupelo_of(&reals(0.0, 0.0)));
    for (half, narrow, largest) in [("Real16", "Real32Trunc(16)", "3.4028235e38"), ("SplitReal16", "Real16", "65504.0")]
    {
        let encodings = options().with_field_encoding("single", half).unwrap();
        let encodings = encodings.with_field_encoding("double", narrow).unwrap();
        let file = tupelo::create(&path).unwrap();
        let mut ntuple = file.ntuple("n", &schema, encodings).unwrap();
        ntuple.write(&reals(f32::INFINITY, f64::NEG_INFINITY)).unwrap();
        for (field, value, batch, largest) in
            [("single", "100000.0", reals(1e5, 0.0), "65504.0"), ("double", "-1e300", reals(0.0, -1e300), largest)]
        {
            let error = ntuple.write(&batch).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
            let text = error.to_string();
            for part in
                [format!("field '{field}'"), format!("value {value} is too large"), format!("value is {largest}")]
            {
                assert!(text.contains(&part), "{part} in {text}");
            }
        }
        ntuple.write(&reals(f32::NAN, f64::NAN)).unwrap();
        ntuple.finish().unwrap();
        file.finish().unwrap();
        let batch = open(&path).read_all().to_batch().unwrap();
        let single = batch.column(0).as_primitive::<Float32Type>().values();
        assert!(single[1] == f32::INFINITY && single[3].is_nan() && single.len() == 4, "{single:?}");
        let double = batch.column(1).as_primitive::<Float64Type>().values();
        assert!(double[1] == f64::NEG_INFINITY && double[3].is_nan(), "{double:?}");
    }
}

/// Nothing is nullable where nothing is missing.
fn tupelo_of(batch: &RecordBatch) -> RecordBatch {
    RecordBatch::try_new(tupelo::schema::tighten(batch).into(), batch.columns().to_vec()).unwrap()
}

/// A batch that did not fit left its first columns in pages, so that the ntuple was lost.
#[test]
fn an_ntuple_continues_after_a_refused_batch() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.root");
    let pair = |two: ArrayRef| {
        let one: ArrayRef = Arc::new(Int32Array::from(vec![1, 2]));
        RecordBatch::try_from_iter([("one", one), ("two", two)]).unwrap()
    };
    let good = pair(Arc::new(Int32Array::from(vec![3, 4])));
    let file = tupelo::create(&path).unwrap();
    let mut ntuple = file.ntuple("n", &schema_of(&tupelo_of(&good)), options()).unwrap();
    ntuple.write(&good).unwrap();
    for bad in [
        pair(Arc::new(Int32Array::from(vec![None, Some(1)]))),
        pair(Arc::new(Int64Array::from(vec![1, 2]))),
        pair(Arc::new(StringArray::from(vec!["a", "b"]))),
        batch(0..2),
    ] {
        let error = ntuple.write(&bad).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    }
    ntuple.write(&good).unwrap();
    ntuple.finish().unwrap();
    file.finish().unwrap();
    let read = open(&path).read_all().to_batch().unwrap();
    assert_eq!(read.column(0).len(), 4);
    assert_eq!(read.column(0).to_data(), Int32Array::from(vec![1, 2, 1, 2]).into());
}

/// What was written after the end was taken, and lost without a word.
#[test]
fn writes_after_the_end_of_the_file_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    type End = fn(FileWriter);
    let ends: [(&str, End); 3] = [
        ("was aborted", |file| drop(file.abort())),
        ("'n' was not finished", |file| drop(file.finish())),
        ("was dropped", drop),
    ];
    for (k, (said, end)) in ends.into_iter().enumerate() {
        let file = tupelo::create(folder.path().join(format!("{k}.root"))).unwrap();
        let mut ntuple = file.ntuple("n", &schema(), options()).unwrap();
        let mut other = file.ntuple("other", &schema(), options()).unwrap();
        let mut set = ntuple.attribute_set("runs", &schema()).unwrap();
        let mut context = other.fill_context().unwrap();
        ntuple.write(&batch(0..1)).unwrap();
        end(file);
        let errors = [
            ntuple.write(&batch(0..1)).unwrap_err(),
            ntuple.flush_cluster().unwrap_err(),
            ntuple.set_metadata("a", "b").unwrap_err(),
            ntuple.add_fields(&schema()).unwrap_err(),
            ntuple.attribute_set("more", &schema()).unwrap_err(),
            ntuple.fill_context().unwrap_err(),
            ntuple.checkpoint().unwrap_err(),
            ntuple.finish().unwrap_err(),
            context.write(&batch(0..1)).unwrap_err(),
            set.write(std::slice::from_ref(&(0..1)), &batch(0..1)).unwrap_err(),
        ];
        for error in errors {
            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
            assert!(error.to_string().contains(said), "{said}: {error}");
        }
    }
    // An ntuple that is finished takes nothing either, nor do its sets.
    let path = folder.path().join("x.root");
    let file = tupelo::create(&path).unwrap();
    let mut ntuple = file.ntuple("n", &schema(), options()).unwrap();
    let mut set = ntuple.attribute_set("runs", &schema()).unwrap();
    ntuple.write(&batch(0..1)).unwrap();
    ntuple.finish().unwrap();
    let late = [
        ntuple.write(&batch(0..1)).unwrap_err(),
        ntuple.finish().unwrap_err(),
        set.write(std::slice::from_ref(&(0..1)), &batch(0..1)).unwrap_err(),
    ];
    for error in late {
        assert!(error.to_string().contains("it is finished"), "{error}");
    }
    file.finish().unwrap();
    assert_eq!(open(&path).entries(), 1);
}

/// Asking too early made the ntuple unfit, and with it all that the contexts had written.
#[test]
fn an_ntuple_is_finished_once_its_contexts_are() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.root");
    let file = tupelo::create(&path).unwrap();
    let mut ntuple = file.ntuple("n", &schema(), options()).unwrap();
    ntuple.write(&batch(0..1)).unwrap();
    let mut context = ntuple.fill_context().unwrap();
    context.write(&batch(1..3)).unwrap();
    for _ in 0..2 {
        let error = ntuple.finish().unwrap_err();
        assert!(error.to_string().contains("1 fill contexts are not finished"), "{error}");
    }
    context.write(&batch(3..4)).unwrap();
    ntuple.write(&batch(4..5)).unwrap();
    context.finish().unwrap();
    assert_eq!(ntuple.finish().unwrap().entries, 5);
    file.finish().unwrap();
    assert_eq!(open(&path).read_all().to_batch().unwrap().num_rows(), 5);
}

#[test]
fn no_part_of_a_batch_of_a_dropped_context_is_missing_in_silence() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.root");
    // Its cluster was flushed: nothing is missing, and what it wrote stays.
    let file = tupelo::create(&path).unwrap();
    let mut ntuple = file.ntuple("n", &schema(), options()).unwrap();
    let mut context = ntuple.fill_context().unwrap();
    context.write(&batch(0..3)).unwrap();
    context.flush_cluster().unwrap();
    drop(context);
    assert_eq!(ntuple.finish().unwrap().entries, 3);
    file.finish().unwrap();
    let before = fs::read(&path).unwrap();
    // A batch lies half in a cluster that is written and half in one that is not.
    let small = options().with_page_bytes(64).with_cluster_bytes(500);
    let file = tupelo::create(&path).unwrap();
    let mut ntuple = file.ntuple("n", &schema(), small).unwrap();
    let mut context = ntuple.fill_context().unwrap();
    context.write(&batch(0..10_001)).unwrap();
    let written = ntuple.entries();
    assert!(0 < written && written < 10_001, "{written}");
    drop(context);
    let error = ntuple.finish().unwrap_err();
    assert!(error.to_string().contains("a fill context was dropped with"), "{error}");
    assert!(file.finish().is_err());
    assert_eq!(fs::read(&path).unwrap(), before);
}

/// Each checkpoint lists all cluster groups before it: many small ones took room by the square of their number.
#[test]
fn checkpoints_take_room_in_proportion_to_the_data() {
    let folder = tempfile::tempdir().unwrap();
    let size = |name: &str, clusters: i32, every: u64| {
        let path = folder.path().join(name);
        let file = tupelo::create(&path).unwrap();
        let mut ntuple = file.ntuple("n", &schema(), options().with_checkpoint_clusters(every)).unwrap();
        for k in 0..clusters {
            ntuple.write(&batch(k * 10..k * 10 + 10)).unwrap();
            ntuple.flush_cluster().unwrap();
        }
        ntuple.finish().unwrap();
        file.finish().unwrap();
        assert_eq!(open(&path).entries(), 10 * clusters as u64);
        fs::metadata(&path).unwrap().len()
    };
    let (none, short, long) = (size("none", 4000, 0), size("short", 2000, 1), size("long", 4000, 1));
    let checkpoints = long - none;
    println!("4000 clusters of ten numbers: {none} bytes without checkpoints, {long} with one wanted after each");
    assert!(long < short * 5 / 2, "{short} bytes become {long} when the data are doubled");
    assert!(checkpoints < 2 * none, "{checkpoints} bytes of checkpoints beside {none}");
    // The first ones, which are small, are all made.
    let path = folder.path().join("first");
    let file = tupelo::create(&path).unwrap();
    let mut ntuple = file.ntuple("n", &schema(), options().with_checkpoint_clusters(1)).unwrap();
    for k in 1..=5 {
        ntuple.write(&batch(0..1)).unwrap();
        ntuple.flush_cluster().unwrap();
        let kept = tupelo::ops::repair::leftovers(&path);
        assert_eq!(open(&kept[0]).entries(), k);
    }
    file.abort().unwrap();
}

/// An update to which nothing was added wrote new lists, and the file grew each time.
#[test]
fn an_update_of_nothing_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.root");
    let file = tupelo::create(&path).unwrap();
    let mut ntuple = file.ntuple("d/n", &schema(), options()).unwrap();
    ntuple.set_metadata("a", "b").unwrap();
    ntuple.write(&batch(0..3)).unwrap();
    let mut set = ntuple.attribute_set("runs", &schema()).unwrap();
    set.write(std::slice::from_ref(&(0..1)), &batch(0..1)).unwrap();
    ntuple.finish().unwrap();
    file.finish().unwrap();
    // Leftovers of a writer that was killed are cut off.
    let whole = fs::read(&path).unwrap();
    for before in [whole.clone(), [&whole, &b"xy"[..]].concat(), [&whole, &b"half a blob"[..]].concat()] {
        fs::write(&path, &before).unwrap();
        FileWriter::update(&path).unwrap().finish().unwrap();
        assert_eq!(fs::read(&path).unwrap(), whole);
        let file = FileWriter::update(&path).unwrap();
        let mut ntuple = file.append("d/n", options()).unwrap();
        let _ = ntuple.attribute_set("runs", &schema()).unwrap();
        ntuple.checkpoint().unwrap();
        ntuple.finish().unwrap();
        file.finish().unwrap();
        assert_eq!(fs::read(&path).unwrap(), whole);
        // And something is something.
        let file = FileWriter::update(&path).unwrap();
        let mut ntuple = file.append("d/n", options()).unwrap();
        ntuple.set_metadata("c", "d").unwrap();
        ntuple.finish().unwrap();
        file.finish().unwrap();
        let file = tupelo::open(path.to_str().unwrap()).open_file().unwrap();
        let report = verify_deep(&file, &mut |_| {}).unwrap();
        assert!(report.damages.is_empty(), "{:?}", report.damages);
        assert_eq!(open(&path).metadata().unwrap().len(), 2);
    }
}

/// A cluster whose pages are more than what waits in memory lies in several blobs.
#[test]
fn a_cluster_may_be_written_in_parts() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.root");
    let numbers = |start: i32| Arc::new(Int32Array::from_iter_values((start..).step_by(7).take(5 << 20))) as ArrayRef;
    let batch = RecordBatch::try_from_iter([("a", numbers(0)), ("b", numbers(1))]).unwrap();
    let file = tupelo::create(&path).unwrap();
    let options = options().with_compression("none".parse().unwrap());
    let mut ntuple = file.ntuple("n", &schema_of(&batch), options).unwrap();
    ntuple.write(&batch).unwrap();
    let written = ntuple.finish().unwrap();
    file.finish().unwrap();
    assert_eq!(written.clusters, 1);
    assert_eq!(written.stored_bytes, (40 << 20) + 40 * 8);
    let file = tupelo::open(path.to_str().unwrap()).open_file().unwrap();
    let report = verify_deep(&file, &mut |_| {}).unwrap();
    assert!(report.damages.is_empty(), "{:?}", report.damages);
    assert_eq!(open(&path).read_all().to_batch().unwrap().columns(), batch.columns());
}
