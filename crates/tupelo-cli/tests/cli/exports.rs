//! Output formats and their extensions.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int32Array, LargeListArray, LargeStringArray, RecordBatch, StructArray};
use arrow_buffer::OffsetBuffer;
use arrow_schema::Field as ArrowField;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use tupelo::WriteOptions;
use tupelo::schema::Schema;

use super::{Place, data, tupelo};

/// Defect: `dump -o out.parquet` wrote JSON lines.
#[test]
fn the_extension_selects_the_format() {
    let place = Place::new();
    let file = place.nanoaod();
    let begins: [(&str, &[u8]); 8] = [
        ("jsonl", b"{\""),
        ("ndjson", b"{\""),
        ("csv", b"run,"),
        ("CSV", b"run,"),
        ("arrows", b"\xff\xff\xff\xff"),
        ("arrow", b"ARROW1"),
        ("feather", b"ARROW1"),
        ("parquet", b"PAR1"),
    ];
    for (extension, begin) in begins {
        let out = place.path(&format!("out.{extension}"));
        tupelo(&["dump", &file, "-o", &out]).ok();
        let bytes = std::fs::read(&out).expect("a file");
        assert!(bytes.starts_with(begin), "{extension}: {:?}", String::from_utf8_lossy(&bytes[..20]));
    }
    let file_of_arrow = std::fs::File::open(place.path("out.arrow")).expect("a file");
    let reader = arrow_ipc::reader::FileReader::try_new(file_of_arrow, None).expect("Arrow");
    assert_eq!(reader.map(|batch| batch.expect("a batch").num_rows()).sum::<usize>(), 500);
}

#[test]
fn a_format_that_contradicts_the_extension_is_refused() {
    let place = Place::new();
    let file = place.nanoaod();
    for (format, name) in [("csv", "x.parquet"), ("jsonl", "x.csv"), ("parquet", "x.feather"), ("arrow", "x.jsonl")] {
        let out = place.path(name);
        let error = tupelo(&["dump", &file, "--format", format, "-o", &out]).fails(2);
        assert!(error.contains(&format!("--format {format} contradicts")) && error.contains("hint:"), "{error}");
        assert!(!std::fs::exists(&out).expect("an answer"));
    }
    for name in ["x.csv.gz", "x.jsonl.zst", "x.root"] {
        let error = tupelo(&["dump", &file, "-o", &place.path(name)]).fails(2);
        assert!(error.contains("entries cannot be written as"), "{error}");
    }
    tupelo(&["dump", &file, "--format", "csv", "-o", &place.path("x.txt")]).ok();
    tupelo(&["dump", &file, "--format", "parquet", "-o", &place.path("x.pq")]).ok();
}

/// Defect: `dump -o events.h5` wrote JSON lines.
#[test]
fn an_unknown_extension_needs_a_format() {
    let place = Place::new();
    let file = place.nanoaod();
    for name in ["x.h5", "x.xlsx", "x.txt"] {
        let out = place.path(name);
        let error = tupelo(&["dump", &file, "-o", &out]).fails(2);
        let extension = name.trim_start_matches('x');
        assert!(error.contains(&format!("unknown extension {extension}")), "{error}");
        assert!(error.contains("--format") && error.contains(".jsonl") && error.contains(".parquet"), "{error}");
        assert!(!std::fs::exists(&out).expect("an answer"));
        tupelo(&["dump", &file, "-o", &out, "--format", "jsonl", "--entries", ":1"]).ok();
    }
    let out = place.path("without");
    tupelo(&["dump", &file, "-o", &out, "--entries", ":1"]).ok();
    assert!(std::fs::read(&out).expect("a file").starts_with(b"{\""));
    assert!(tupelo(&["dump", &file, "-o", "-", "--entries", ":1"]).ok().starts_with("{\""));
}

/// Defect: `copy events.root out.parquet` wrote a ROOT file of that name.
#[test]
fn copies_to_other_formats_are_refused() {
    let place = Place::new();
    let file = place.nanoaod();
    for name in ["x.parquet", "x.csv", "x.arrow", "x.jsonl", "x.CSV"] {
        let out = place.path(name);
        let error = tupelo(&["copy", &file, &out]).fails(2);
        assert!(error.contains("writes only ROOT files"), "{error}");
        assert!(error.contains(&format!("`tupelo dump {file} -o {out}`")), "{error}");
        assert!(tupelo(&["generate", "nanoaod", &out]).fails(2).contains("`tupelo dump FILE -o "));
        assert!(!std::fs::exists(&out).expect("an answer"));
    }
    for name in ["x.dat", "x", "x.root.2"] {
        tupelo(&["copy", &file, &place.path(name)]).ok();
    }
}

/// A number and two records without members, one of them the only member of another record.
fn empty_records(place: &Place) -> String {
    let nothing = || Arc::new(StructArray::new_empty_fields(2, None)) as ArrayRef;
    let around = RecordBatch::try_from_iter([("nothing", nothing())]).expect("a batch");
    let x: ArrayRef = Arc::new(Int32Array::from(vec![1, 2]));
    let around: ArrayRef = Arc::new(StructArray::from(around));
    let batch = RecordBatch::try_from_iter([("nothing", nothing()), ("around", around), ("x", x)]).expect("a batch");
    ntuple_of(place, &batch)
}

/// An ntuple `Events` of a batch.
fn ntuple_of(place: &Place, batch: &RecordBatch) -> String {
    let path = place.path("made.root");
    let file = tupelo::create(&path).expect("a file");
    let schema = Schema::from_arrow(&batch.schema()).expect("a schema");
    let mut ntuple = file.ntuple("Events", &schema, WriteOptions::default()).expect("an ntuple");
    ntuple.write(batch).expect("entries");
    ntuple.finish().expect("an ntuple");
    file.finish().expect("a file");
    path
}

/// Lists of 0 and 2 items.
fn lists(items: ArrayRef) -> ArrayRef {
    let item = Arc::new(ArrowField::new("item", items.data_type().clone(), false));
    Arc::new(LargeListArray::new(item, OffsetBuffer::from_lengths([0, 2]), items, None))
}

/// Names and number of entries of a Parquet file.
fn content(parquet: &str) -> (Vec<String>, usize) {
    let file = std::fs::File::open(parquet).expect("a file");
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).expect("Parquet");
    let names = reader.schema().fields().iter().map(|field| field.name().clone()).collect();
    (names, reader.build().expect("Parquet").map(|batch| batch.expect("a batch").num_rows()).sum())
}

/// Defect: the whole export was refused.
#[test]
fn parquet_omits_records_without_members() {
    let place = Place::new();
    let (file, out) = (empty_records(&place), place.path("out.parquet"));
    let run = tupelo(&["dump", &file, "-o", &out]);
    assert!(run.stderr.contains("warning: omitted") && run.stderr.contains("'nothing', 'around'"), "{}", run.stderr);
    run.ok();
    assert_eq!(content(&out), (vec!["x".to_owned()], 2));
    let run = tupelo(&["dump", &file, "-o", &out, "--exclude", "nothing,around"]);
    assert_eq!(run.stderr, "");
    run.ok();
    assert_eq!(content(&out), (vec!["x".to_owned()], 2));
    let error = tupelo(&["dump", &file, "-o", &out, "--exclude", "x"]).fails(2);
    assert!(error.contains("Parquet supports none of the fields"), "{error}");
}

#[test]
fn parquet_supports_events_of_atlas() {
    let Some(file) = data().map(|folder| folder.join("atlas_daod_physlite_ntuple.root")).filter(|file| file.exists())
    else {
        return;
    };
    let place = Place::new();
    let (input, out) = (format!("{}:EventData", file.display()), place.path("out.parquet"));
    // Defect: the status was 0, although the lengths of lists are lost.
    let lost = tupelo(&["dump", &input, "--fields", "AnalysisElectrons*", "-o", &out]).fails(1);
    assert!(lost.contains("lists of records without members: 'AnalysisElectrons'"), "{lost}");
    assert!(lost.contains("was written without 1 field") && lost.contains("--skip-unreadable"), "{lost}");
    let run = tupelo(&["dump", &input, "--entries", ":5", "-o", &out, "--skip-unreadable"]);
    assert!(run.stderr.contains("warning: omitted") && run.stderr.contains("'EventInfoAux:'"), "{}", run.stderr);
    run.ok();
    let (names, entries) = content(&out);
    assert!(names.len() > 700 && entries == 5, "{entries} entries of {} fields", names.len());
}

/// Defect: `--threads 1` did not limit the threads that format text.
#[test]
fn lines_are_the_same_with_any_number_of_threads() {
    let place = Place::new();
    let file = place.path("events.root");
    tupelo(&["generate", "nanoaod", "--events", "3000", &file]).ok();
    for format in ["jsonl", "csv"] {
        let dump = |threads| tupelo(&["dump", &file, "--format", format, "--threads", threads]).ok();
        let one = dump("1");
        assert!(one.lines().count() >= 3000);
        assert!(dump("2") == one && dump("5") == one, "{format}");
    }
}

/// Defect: a field that only has the name of a counter refused the export.
#[test]
fn fields_named_like_counters_are_exported() {
    let place = Place::new();
    let numbers = |numbers: [i32; 2]| Arc::new(Int32Array::from(numbers.to_vec())) as ArrayRef;
    let list = || lists(numbers([1, 2]));
    let columns = [("nx", numbers([0, 2])), ("x", list()), ("ny", numbers([0, 3])), ("y", list())];
    let ntuple = ntuple_of(&place, &RecordBatch::try_from_iter(columns).expect("a batch"));
    let out = place.path("tree.root");
    tupelo(&["export", &ntuple, &out]).ok();
    let dumped = tupelo(&["dump", &out, "--fields", "nx,x,ny,ny_,y"]).ok();
    let [first, second] =
        ["{\"nx\":0,\"x\":[],\"ny\":0,\"ny_\":0,\"y\":[]}", "{\"nx\":2,\"x\":[1,2],\"ny\":3,\"ny_\":2,\"y\":[1,2]}"];
    assert_eq!(dumped, format!("{first}\n{second}\n"));
}

/// Defect: ROOT ended with a crash where a vector of objects had texts, and read a text with a zero byte up to there.
#[test]
fn texts_that_root_could_not_read_are_not_exported() {
    let place = Place::new();
    let texts = |texts: [&str; 2]| Arc::new(LargeStringArray::from(texts.to_vec())) as ArrayRef;
    let numbers: ArrayRef = Arc::new(Int32Array::from(vec![1, 2]));
    let items = RecordBatch::try_from_iter([("s", texts(["a", "b"])), ("i", numbers)]).expect("a batch");
    let hits = lists(Arc::new(StructArray::from(items)));
    let columns = [("hits", hits), ("cut", texts(["a", "b\0c"]))];
    let ntuple = ntuple_of(&place, &RecordBatch::try_from_iter(columns).expect("a batch"));
    let out = place.path("tree.root");
    let export = |options: &[&str]| tupelo(&[&["export", &ntuple, "-o", &out], options].concat());
    let error = export(&[]).fails(1);
    assert!(error.contains("entry 1: the string contains a zero byte"), "{error}");
    assert!(!std::fs::exists(&out).expect("an answer"));
    let error = export(&["--jagged", "vector", "--exclude", "cut"]).fails(1);
    assert!(error.contains("'hits.s' is left out: ROOT cannot read strings in a vector of objects"), "{error}");
    assert_eq!(tupelo(&["dump", &out]).ok(), "{\"hits\":[]}\n{\"hits\":[{\"i\":1},{\"i\":2}]}\n");
    export(&["--exclude", "cut", "--force"]).ok();
    assert!(tupelo(&["dump", &out]).ok().contains("\"hits_s\":[\"a\",\"b\"]"));
}
