//! Imports of files of other formats.

use std::fs::{self, File};
use std::io::Write;
use std::sync::Arc;

use arrow_array::builder::{Int64Builder, MapBuilder, StringBuilder};
use arrow_array::types::{Int8Type, Int32Type, Int64Type};
use arrow_array::{
    Array, ArrayRef, BinaryArray, Date32Array, Decimal128Array, DictionaryArray, FixedSizeBinaryArray, Float64Array,
    Int8Array, Int32Array, Int64Array, IntervalDayTimeArray, LargeListArray, ListArray, NullArray, RecordBatch,
    RunArray, StringArray, StringViewArray, StructArray, TimestampMicrosecondArray,
};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use arrow_schema::{DataType, Field};
use flate2::Crc;
use parquet::arrow::ArrowWriter;
use serde_json::Value;

use super::{Place, data, tupelo};

/// An Arrow file of a batch.
fn arrow(place: &Place, name: &str, batch: &RecordBatch) -> String {
    let path = place.path(name);
    let file = File::create(&path).expect("a file");
    let mut writer = FileWriter::try_new(file, &batch.schema()).expect("a writer");
    writer.write(batch).expect("entries");
    writer.finish().expect("a file");
    path
}

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter(columns).expect("a batch")
}

/// A NumPy array.
fn npy(descr: &str, shape: &str, values: &[u8]) -> Vec<u8> {
    let mut header = format!("{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}");
    header.push_str(&" ".repeat(63 - (header.len() + 10) % 64));
    header.push('\n');
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend_from_slice(&(header.len() as u16).to_le_bytes());
    bytes.extend_from_slice(header.as_bytes());
    bytes.extend_from_slice(values);
    bytes
}

/// A ZIP archive; with `is_deflated`, of compressed members.
fn archive(members: &[(&str, Vec<u8>)], is_deflated: bool) -> Vec<u8> {
    let (mut bytes, mut directory) = (Vec::new(), Vec::new());
    for (name, member) in members {
        let mut crc = Crc::new();
        crc.update(member);
        let mut packed = member.clone();
        if is_deflated {
            let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::default());
            encoder.write_all(member).expect("bytes");
            packed = encoder.finish().expect("bytes");
        }
        let offset = bytes.len() as u32;
        let mut common = vec![20, 0, 0, 0, if is_deflated { 8 } else { 0 }, 0, 0, 0, 0x21, 0];
        common.extend_from_slice(&crc.sum().to_le_bytes());
        common.extend_from_slice(&(packed.len() as u32).to_le_bytes());
        common.extend_from_slice(&(member.len() as u32).to_le_bytes());
        common.extend_from_slice(&(name.len() as u16).to_le_bytes());
        common.extend_from_slice(&[0, 0]);
        bytes.extend_from_slice(b"PK\x03\x04");
        bytes.extend_from_slice(&common);
        bytes.extend_from_slice(name.as_bytes());
        bytes.extend_from_slice(&packed);
        directory.extend_from_slice(b"PK\x01\x02\x14\0");
        directory.extend_from_slice(&common);
        directory.extend_from_slice(&[0; 10]);
        directory.extend_from_slice(&offset.to_le_bytes());
        directory.extend_from_slice(name.as_bytes());
    }
    let (start, count) = (bytes.len() as u32, members.len() as u16);
    bytes.extend_from_slice(&directory);
    bytes.extend_from_slice(b"PK\x05\x06\0\0\0\0");
    bytes.extend_from_slice(&[count.to_le_bytes(), count.to_le_bytes()].concat());
    bytes.extend_from_slice(&[(directory.len() as u32).to_le_bytes(), start.to_le_bytes()].concat());
    bytes.extend_from_slice(&[0, 0]);
    bytes
}

/// The types of the fields of an ntuple by their names.
fn types(location: &str) -> Vec<(String, String)> {
    let document: Value = tupelo(&["schema", location, "--json"]).json();
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let fields = document["fields"].as_array().expect("fields").iter();
    fields.map(|field| (text(&field["name"]), text(&field["type"]))).collect()
}

/// A failed import, which leaves no output and no other file.
#[track_caller]
fn refused(place: &Place, arguments: &[&str], status: i32) -> String {
    let before = fs::read_dir(&place.directory).expect("the directory").count();
    let error = tupelo(&[&["import"], arguments].concat()).fails(status);
    assert_eq!(fs::read_dir(&place.directory).expect("the directory").count(), before, "{error}");
    assert!(!error.contains("panicked"), "{error}");
    error
}

#[test]
fn dumped_columns_are_the_same_ntuple() {
    let place = Place::new();
    for (file, name) in [(place.nanoaod(), "Events"), (place.b2hhh(), "DecayTree")] {
        for extension in ["parquet", "arrow", "arrows", "feather"] {
            let (dumped, out) = (place.path(&format!("dumped.{extension}")), place.path("out.root"));
            tupelo(&["dump", &file, "-o", &dumped]).ok();
            let run = tupelo(&["import", &dumped, "-o", &out, "--as", name, "--force", "--validate", "full"]);
            assert!(run.stderr.contains(": equal") && !run.stderr.contains("warning"), "{}", run.stderr);
            run.ok();
            let difference = tupelo(&["diff", &file, &format!("{out}:{name}")]);
            assert_eq!(difference.status, Some(0), "{extension}: {}{}", difference.stdout, difference.stderr);
        }
    }
}

#[test]
fn dumped_texts_have_the_same_values() {
    let place = Place::new();
    let (events, decays) = (place.nanoaod(), place.b2hhh());
    for (file, extension) in [(&events, "jsonl"), (&decays, "jsonl"), (&decays, "csv")] {
        let (dumped, out) = (place.path(&format!("dumped.{extension}")), place.path("out.root"));
        tupelo(&["dump", file, "-o", &dumped]).ok();
        let run = tupelo(&["import", &dumped, "-o", &out, "--force", "--validate", "full"]);
        assert!(run.stderr.contains(": equal"), "{}", run.stderr);
        run.ok();
        let again = place.path(&format!("again.{extension}"));
        tupelo(&["dump", &format!("{out}:dumped"), "-o", &again]).ok();
        // A float is a double now, which may be written in another way.
        let values = |path| -> Vec<Value> {
            let text = fs::read_to_string(path).expect("a text");
            let is_csv = extension == "csv";
            let value = |line: &str| match is_csv {
                true => {
                    line.split(',').map(|cell| cell.parse::<f64>().map_or(Value::from(cell), Value::from)).collect()
                }
                false => serde_json::from_str(line).expect("JSON"),
            };
            text.lines().map(value).collect()
        };
        assert!(values(dumped) == values(again), "{extension}");
    }
}

#[test]
fn missing_values_may_be_nested() {
    let place = Place::new();
    let mut maps = MapBuilder::new(None, StringBuilder::new(), Int64Builder::new());
    maps.keys().append_value("a");
    maps.values().append_value(1);
    maps.append(true).expect("a map");
    maps.append(true).expect("a map");
    maps.keys().append_value("b");
    maps.values().append_null();
    maps.append(true).expect("a map");
    let x: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), Some(7), None]));
    let member = Arc::new(Field::new("x", DataType::Int64, true));
    let nulls = NullBuffer::from(vec![true, false, true]);
    let records = StructArray::new(vec![member].into(), vec![x], Some(nulls));
    let lists = ListArray::from_iter_primitive::<Int64Type, _, _>([Some(vec![Some(1), None]), None, Some(vec![])]);
    // The second list is missing, and the third has a missing record.
    let item = Arc::new(Field::new("item", records.data_type().clone(), true));
    let offsets = OffsetBuffer::from_lengths([1, 0, 2]);
    let nulls = NullBuffer::from(vec![true, false, true]);
    let inner = ListArray::new(item, offsets, Arc::new(records.clone()), Some(nulls));
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("map", Arc::new(maps.finish())),
        ("record", Arc::new(records)),
        ("list", Arc::new(lists)),
        ("inner", Arc::new(inner)),
    ];
    let file = arrow(&place, "nested.arrow", &batch(columns));
    let out = place.path("out.root");
    tupelo(&["import", &file, &out, "--validate", "full"]).ok();
    let lines = [
        "{\"map\":[[\"a\",1]],\"record\":[{\"x\":1}],\"list\":[1,null],\"inner\":[[[{\"x\":1}]]]}",
        "{\"map\":[],\"record\":[],\"list\":null,\"inner\":[]}",
        "{\"map\":[[\"b\",null]],\"record\":[{\"x\":null}],\"list\":[],\"inner\":[[[],[{\"x\":null}]]]}",
    ];
    assert_eq!(tupelo(&["dump", &out]).ok(), lines.join("\n") + "\n");
    assert_eq!(types(&out)[0].1, "std::map<std::string,std::optional<std::int64_t>>");
}

#[test]
fn real_ntuples_are_imported_equally() {
    let Some(folder) = data() else { return };
    let mut files: Vec<_> =
        fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "root"));
    files.sort();
    let (place, mut compared, mut others) = (Place::new(), 0, Vec::new());
    for path in files {
        let file = path.to_str().expect("a path");
        let listed = tupelo(&["ls", file, "--json"]);
        let Ok(document) = serde_json::from_str::<Value>(&listed.stdout) else { continue };
        for ntuple in document["ntuples"].as_array().into_iter().flatten() {
            let name = ntuple["name"].as_str().expect("a name");
            let (few, out, dumped) = (place.path("few.root"), place.path("out.root"), place.path("few.arrow"));
            let location = format!("{file}:{name}");
            let copied = tupelo(&["copy", &location, "-o", &few, "--as", "Few", "--entries", ":300", "--force"]);
            if copied.status != Some(0) {
                others.push(format!("{location}: {}", copied.stderr));
                continue;
            }
            let dump = tupelo(&["dump", &few, "-o", &dumped, "--binary-strings"]);
            if dump.status != Some(0) {
                others.push(format!("{location}: {}", dump.stderr));
                continue;
            }
            let run = tupelo(&["import", &dumped, "-o", &out, "--as", "Few", "--force"]);
            if run.status == Some(2) && run.stderr.contains("objects of ROOT's classes") {
                others.push(format!("{location}: {}", run.stderr));
                continue;
            }
            assert_eq!(run.status, Some(0), "{location}: {}", run.stderr);
            let difference = tupelo(&["diff", &few, &out, "--json"]);
            let found: Value = serde_json::from_str(&difference.stdout).expect("a document");
            // Types may lose names that Arrow does not have; values may not change.
            let is_type = |field: &Value| field["difference"] == "types" || field["difference"] == "only_first";
            let fields = found["fields"].as_array().expect("fields");
            assert!(fields.iter().all(is_type), "{location}: {}", difference.stdout);
            compared += 1;
        }
    }
    super::summarise("imports", &format!("{compared} real ntuples imported from Arrow, {} others", others.len()));
    assert!(compared > 0, "{others:?}");
}

#[test]
fn values_keep_their_kinds() {
    let place = Place::new();
    let codes: DictionaryArray<Int8Type> = vec![Some("a"), None, Some("b")].into_iter().collect();
    let ends = Int32Array::from(vec![1, 3]);
    let runs = RunArray::try_new(&ends, &Int64Array::from(vec![7, 8])).expect("runs");
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("code", Arc::new(codes)),
        ("view", Arc::new(StringViewArray::from(vec!["x", "", "a text that is longer than a view"]))),
        ("run", Arc::new(runs)),
        ("bytes", Arc::new(BinaryArray::from(vec![&b"\x01\x02"[..], b"", b"\xff"]))),
        ("id", Arc::new(FixedSizeBinaryArray::try_from_iter([b"ab", b"cd", b"ef"].into_iter()).expect("bytes"))),
        ("maybe", Arc::new(Float64Array::from(vec![Some(0.5), None, Some(f64::NAN)]))),
        ("whole.part", Arc::new(Int32Array::from(vec![Some(1), Some(2), Some(3)]))),
    ];
    let file = arrow(&place, "kinds.arrow", &batch(columns));
    let out = place.path("out.root");
    tupelo(&["import", &file, &out, "--validate", "full", "--rename", "run=number"]).ok();
    let found = types(&format!("{out}:kinds"));
    let expected = [
        ("code", "std::optional<std::string>"),
        ("view", "std::string"),
        ("number", "std::int64_t"),
        ("bytes", "std::vector<std::byte>"),
        ("id", "std::array<std::byte,2>"),
        ("maybe", "std::optional<double>"),
        ("whole_part", "std::int32_t"),
    ];
    assert_eq!(found, expected.map(|(name, kind)| (name.to_owned(), kind.to_owned())));
    let dumped = tupelo(&["dump", &out, "--entries", "1"]).ok();
    let line =
        "{\"code\":null,\"view\":\"\",\"number\":8,\"bytes\":[],\"id\":[99,100],\"maybe\":null,\"whole_part\":2}\n";
    assert_eq!(dumped, line);
}

#[test]
fn types_without_counterpart_are_refused() {
    let place = Place::new();
    let out = place.path("out.root");
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("n", Arc::new(Int32Array::from(vec![1, 2]))),
        ("time", Arc::new(TimestampMicrosecondArray::from(vec![1_700_000_000_000_000, 5]).with_timezone("UTC"))),
        ("day", Arc::new(Date32Array::from(vec![Some(19_000), None]))),
        ("price", Arc::new(Decimal128Array::from(vec![12_345, 5]).with_precision_and_scale(10, 2).expect("digits"))),
        ("gap", Arc::new(IntervalDayTimeArray::from(vec![None, None]))),
        ("nothing", Arc::new(NullArray::new(2))),
    ];
    let file = arrow(&place, "types.arrow", &batch(columns));
    for (column, reason) in [
        ("time", "Timestamp(µs, \"UTC\") has no RNTuple type; --allow-loss stores it as std::int64_t in its unit"),
        ("day", "Date32 has no RNTuple type"),
        ("price", "Decimal128(10, 2) has no RNTuple type; --allow-loss stores it as double"),
        ("gap", "intervals of days and milliseconds have no RNTuple type"),
        ("nothing", "it has no values"),
    ] {
        let error = refused(&place, &[&file, &out, "--fields", &format!("n,{column}")], 1);
        assert!(error.contains(&format!("types.arrow: column '{column}': {reason}")), "{error}");
        assert!(error.contains(&format!("--exclude '{column}'")), "{error}");
    }
    let lossy = ["import", &file, &out, "--exclude", "gap,nothing", "--allow-loss", "time,day,price"];
    let run = tupelo(&lossy);
    assert_eq!(run.stderr.matches("warning: ").count(), 3, "{}", run.stderr);
    assert!(run.stderr.contains("column 'time': time in microseconds since 1970-01-01, time zone UTC"));
    run.ok();
    let dumped = tupelo(&["dump", &out]).ok();
    let first = "{\"n\":1,\"time\":1700000000000000,\"day\":19000,\"price\":123.45}";
    assert_eq!(dumped, format!("{first}\n{{\"n\":2,\"time\":5,\"day\":null,\"price\":0.05}}\n"));
    let document = tupelo(&["schema", &out, "--json"]).json();
    assert_eq!(document["fields"][1]["description"], "time in microseconds since 1970-01-01, time zone UTC");
}

#[test]
fn csv_has_types_and_missing_values() {
    let place = Place::new();
    let (file, out) = (place.path("table.csv"), place.path("out.root"));
    let text = "\u{feff}a,b c,flag,\"text\",code\r\n1,0.5,true,\"x,\"\"y\"\"\nz\",007\r\n\
                2,,false,,010\r\n3,NaN,true,\"\",100\r\n";
    fs::write(&file, text).expect("a file");
    let run = tupelo(&["import", &file, &out, "--validate", "full", "--report", &place.path("report.json")]);
    run.ok();
    let report: Value = serde_json::from_slice(&fs::read(place.path("report.json")).expect("a report")).expect("JSON");
    assert_eq!((&report[0]["equal"], &report[0]["entries"]), (&Value::from(true), &Value::from(3)));
    let expected = [
        ("a", "std::int64_t"),
        ("b_c", "std::optional<double>"),
        ("flag", "bool"),
        ("text", "std::optional<std::string>"),
        ("code", "std::string"),
    ];
    assert_eq!(types(&out), expected.map(|(name, kind)| (name.to_owned(), kind.to_owned())));
    let dumped = tupelo(&["dump", &out, "--format", "csv"]).ok();
    let same = "a,b_c,flag,text,code\n1,0.5,true,\"x,\"\"y\"\"\nz\",007\n2,,false,,010\n3,NaN,true,\"\",100\n";
    assert_eq!(dumped, same);
}

#[test]
fn wrong_values_of_texts_are_named_with_their_line() {
    let place = Place::new();
    let (file, out) = (place.path("table.csv"), place.path("out.root"));
    fs::write(&file, "a,b\n1,\"two\nlines\"\n2,x\nthree,y\n").expect("a file");
    let error = refused(&place, &[&file, &out, "--infer-rows", "2"], 1);
    assert!(error.contains("table.csv: line 5, column 'a': expected a 64-bit integer, found 'three'"), "{error}");
    assert!(error.contains("--infer-rows N"), "{error}");
    tupelo(&["import", &file, &out]).ok();
    fs::remove_file(&out).expect("a file");
    for (text, expected) in [
        ("a,b\n1,2,3\n", "line 2: expected 2 cells, found 3"),
        ("a,b\n1,\"2\n3", "line 2: a quote has no end"),
        ("a,a\n1,2\n", "two columns are called 'a'"),
        ("", "expected a first line with the names of the columns"),
        ("a,b\n1,\n", "column 'b': it has no value in the first 10000 lines"),
    ] {
        fs::write(&file, text).expect("a file");
        let error = refused(&place, &[&file, &out], 1);
        assert!(error.contains(expected), "{error}");
    }
    fs::write(&file, b"a\n\xff\n").expect("a file");
    assert!(refused(&place, &[&file, &out], 1).contains("line 2: expected text in UTF-8"));
    let lines = place.path("lines.jsonl");
    for (text, expected) in [
        ("{\"a\":1}\n{\"a\":1.5}\n", "line 2, column 'a': expected a 64-bit integer, found 1.5"),
        ("{\"a\":1}\n{\"a\":1,\"b\":2}\n", "line 2, column 'b': no line before has it"),
        ("{\"a\":[1]}\n\n{\"a\":[\"x\"]}\n", "line 3, column 'a': expected a 64-bit integer, found a string"),
        ("{\"a\":1}\n[2]\n", "line 2: expected one JSON object"),
        ("{\"a\":1}\n{\"a\":\n", "line 2: expected one JSON object"),
    ] {
        fs::write(&lines, text).expect("a file");
        let error = refused(&place, &[&lines, &out, "--infer-rows", "1"], 1);
        assert!(error.contains(expected), "{error}");
    }
    fs::write(&lines, "{\"a\":1}\n{\"a\":\"x\"}\n").expect("a file");
    assert!(refused(&place, &[&lines, &out], 1).contains("its values are of different kinds"));
}

#[test]
fn json_lines_have_nested_values() {
    let place = Place::new();
    let (file, out) = (place.path("lines.json"), place.path("out.root"));
    let text = "{\"n\":18446744073709551615,\"hits\":[{\"x\":0.5,\"id\":1},{\"x\":\"NaN\",\"id\":null}],\
                \"w\":[[1],[]]}\n{\"n\":0,\"hits\":[],\"w\":[]}\n";
    fs::write(&file, text).expect("a file");
    tupelo(&["import", &file, &out, "--validate", "full"]).ok();
    assert_eq!(tupelo(&["dump", &out]).ok(), text);
    assert_eq!(types(&out)[0].1, "std::uint64_t");
}

#[test]
fn numpy_arrays_become_columns() {
    let place = Place::new();
    let out = place.path("out.root");
    let mut values = Vec::new();
    for (x, flag, name, pair) in [(0.5f64, 1u8, b"ab\0", [1i16, 2]), (1.5, 0, b"c\0\0", [3, -4])] {
        values.extend_from_slice(&x.to_be_bytes());
        values.push(flag);
        values.extend_from_slice(name);
        pair.iter().for_each(|number| values.extend_from_slice(&number.to_le_bytes()));
    }
    let descr = "[('x', '>f8'), ('flag', '|b1'), ('name', '|S3'), ('pair', '<i2', (2,))]";
    fs::write(place.path("records.npy"), npy(descr, "(2,)", &values)).expect("a file");
    tupelo(&["import", &place.path("records.npy"), &out, "--validate", "full"]).ok();
    let first = "{\"x\":0.5,\"flag\":true,\"name\":\"ab\",\"pair\":[1,2]}";
    let second = "{\"x\":1.5,\"flag\":false,\"name\":\"c\",\"pair\":[3,-4]}";
    assert_eq!(tupelo(&["dump", &format!("{out}:records")]).ok(), format!("{first}\n{second}\n"));

    let floats: Vec<u8> = (0..6).flat_map(|number| (number as f32).to_le_bytes()).collect();
    let text: Vec<u8> = "aé\0b\0\0".chars().flat_map(|letter| (letter as u32).to_le_bytes()).collect();
    fs::write(place.path("plain.npy"), npy("'<f4'", "(2, 3)", &floats)).expect("a file");
    tupelo(&["import", &place.path("plain.npy"), &out, "--append"]).ok();
    assert_eq!(types(&format!("{out}:plain")), [("data".to_owned(), "std::array<float,3>".to_owned())]);
    let members = [("m.npy", npy("'<f4'", "(2, 3)", &floats)), ("s.npy", npy("'<U3'", "(2,)", &text))];
    for is_deflated in [false, true] {
        fs::write(place.path("several.npz"), archive(&members, is_deflated)).expect("a file");
        tupelo(&["import", &place.path("several.npz"), "-o", &out, "--force", "--validate", "full"]).ok();
        let lines = "{\"m\":[0.0,1.0,2.0],\"s\":\"aé\"}\n{\"m\":[3.0,4.0,5.0],\"s\":\"b\"}\n";
        assert_eq!(tupelo(&["dump", &out]).ok(), lines);
    }
}

#[test]
fn several_files_are_concatenated() {
    let place = Place::new();
    let out = place.path("out.root");
    let file = |name: &str, numbers: Vec<Option<i32>>| {
        arrow(&place, name, &batch(vec![("n", Arc::new(Int32Array::from(numbers)))]))
    };
    let first = file("run1.arrow", vec![Some(1), Some(2)]);
    file("run2.arrow", vec![None, Some(4)]);
    let pattern = place.path("run*.arrow");
    tupelo(&["import", &pattern, "-o", &out, "--validate", "full"]).ok();
    assert_eq!(tupelo(&["dump", &out, "--format", "csv"]).ok(), "n\n1\n2\n\n4\n");
    tupelo(&["import", &pattern, "-o", &out, "--entries", "-1:", "--as", "last", "--append"]).ok();
    assert_eq!(tupelo(&["dump", &format!("{out}:last"), "--format", "csv"]).ok(), "n\n4\n");
    assert_eq!(types(&format!("{out}:last"))[0].1, "std::int32_t");
    let texts = arrow(&place, "text.arrow", &batch(vec![("n", Arc::new(StringArray::from(vec!["x"])))]));
    let new = place.path("new.root");
    let error = refused(&place, &[&first, &texts, "-o", &new], 1);
    assert!(error.contains("have different columns: 'n' is Int32 and Utf8"), "{error}");
    for (number, text) in ["a,b\n1,x\n", "a,b\n2.5,y\n", "b,a\nz,3\n"].into_iter().enumerate() {
        fs::write(place.path(&format!("{number}.csv")), text).expect("a file");
    }
    let csv = |number: u32| place.path(&format!("{number}.csv"));
    let error = refused(&place, &[&csv(0), &csv(1), "-o", &new], 1);
    assert!(error.contains("1.csv: line 2, column 'a'"), "{error}");
    let error = refused(&place, &[&csv(0), &csv(2), "-o", &new], 1);
    assert!(error.contains("the columns are not those of the first file"), "{error}");
    let error = refused(&place, &[&csv(0), &first, "-o", &new], 2);
    assert!(error.contains("are files of different formats"), "{error}");
}

#[test]
fn options_choose_and_replace() {
    let place = Place::new();
    let (file, out) = (place.path("data.txt"), place.path("out.root"));
    fs::write(&file, "a.b,c\n1,2\n3,4\n").expect("a file");
    let imported = |options: &[&str]| {
        tupelo(&[&["import", &file, "-o", &out, "--format", "csv"], options].concat()).ok();
        tupelo(&["dump", &format!("{out}:data"), "--format", "csv"]).ok()
    };
    assert_eq!(imported(&["--dots", ":"]), "a:b,c\n1,2\n3,4\n");
    assert!(refused(&place, &[&file, "-o", &out, "--format", "csv"], 2).contains("exists"));
    assert_eq!(imported(&["--force", "--fields", "c", "--entries", "1"]), "c\n4\n");
    assert_eq!(imported(&["--force", "--exclude", "c", "--rename", "a.b=x"]), "x\n1\n3\n");
    let error = refused(&place, &[&file, "-o", &out, "--format", "csv", "--append"], 2);
    assert!(error.contains("already contains an ntuple 'data'"), "{error}");
    let missing = refused(&place, &[&file, "-o", &out, "--format", "csv", "--force", "--fields", "d"], 1);
    assert!(missing.contains("'d'"), "{missing}");
    for option in ["--objects", "--no-collections", "--skip-unreadable", "--skip-errors", "--recover"] {
        let error = refused(&place, &[&file, "-o", &out, "--format", "csv", "--force", option], 2);
        assert!(error.contains(&format!("{option} is for trees")), "{error}");
    }
    let error = refused(&place, &[&place.path("x.root"), "-o", &place.path("y.root"), "--allow-loss", "t"], 2);
    assert!(error.contains("--allow-loss is for files of other formats"), "{error}");
    fs::write(place.path("x.h5"), "").expect("a file");
    let error = refused(&place, &[&place.path("x.h5"), "-o", &place.path("y.root")], 2);
    assert!(error.contains("tupelo.import_hdf5(source, path)"), "{error}");
    let error = tupelo(&["dump", &out, "-o", &place.path("out.npy")]).fails(2);
    assert!(error.contains("cannot be written as npy"), "{error}");
}

#[test]
fn compressed_columns_are_read() {
    let place = Place::new();
    let numbers = batch(vec![("n", Arc::new(Int32Array::from_iter_values(0..100_000)))]);
    let out = place.path("out.root");
    for (name, codec) in [("lz4.arrows", CompressionType::LZ4_FRAME), ("zstd.arrows", CompressionType::ZSTD)] {
        let options = IpcWriteOptions::default().try_with_compression(Some(codec)).expect("a codec");
        let file = File::create(place.path(name)).expect("a file");
        let mut writer = StreamWriter::try_new_with_options(file, &numbers.schema(), options).expect("a writer");
        writer.write(&numbers).expect("entries");
        writer.finish().expect("a stream");
        tupelo(&["import", &place.path(name), "-o", &out, "--force", "--validate", "full"]).ok();
        let error = refused(&place, &[&place.path(name), "-o", &out, "--force", "--memory-budget", "100kB"], 1);
        assert!(error.contains("a batch takes") && error.contains("--memory-budget"), "{error}");
    }
    for compression in ["SNAPPY", "GZIP(6)", "LZ4_RAW", "ZSTD(3)"] {
        let properties = parquet::file::properties::WriterProperties::builder();
        let properties = properties.set_compression(compression.parse().expect("a codec")).build();
        let file = File::create(place.path("n.parquet")).expect("a file");
        let mut writer = ArrowWriter::try_new(file, numbers.schema(), Some(properties)).expect("a writer");
        writer.write(&numbers).expect("entries");
        writer.close().expect("a file");
        tupelo(&["import", &place.path("n.parquet"), "-o", &out, "--force", "--validate", "full"]).ok();
    }
    assert_eq!(tupelo(&["dump", &out, "--entries", "-1"]).ok(), "{\"n\":99999}\n");
}

/// Files that no writer writes: each is an error, without output.
#[test]
fn hostile_files_are_errors() {
    let place = Place::new();
    let out = place.path("out.root");
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("n", Arc::new(Int32Array::from_iter_values(0..1000))),
        ("t", Arc::new(StringArray::from_iter_values((0..1000).map(|number| format!("text {number}"))))),
    ];
    let whole = batch(columns);
    let file = arrow(&place, "whole.arrow", &whole);
    let mut stream = StreamWriter::try_new(Vec::new(), &whole.schema()).expect("a writer");
    stream.write(&whole).expect("entries");
    let stream = stream.into_inner().expect("bytes");
    let mut writer = ArrowWriter::try_new(Vec::new(), whole.schema(), None).expect("a writer");
    writer.write(&whole).expect("entries");
    let parquet = writer.into_inner().expect("bytes");
    let array = npy("'<f8'", "(100,)", &[1; 800]);
    let several = archive(&[("a.npy", array.clone()), ("b.npy", array.clone())], true);
    let formats = [
        ("bad.arrow", fs::read(file).expect("bytes")),
        ("bad.arrows", stream),
        ("bad.parquet", parquet),
        ("bad.npy", array.clone()),
        ("bad.npz", several),
    ];
    for (name, bytes) in &formats {
        let bad = place.path(name);
        fs::write(&bad, b"").expect("a file");
        for length in [0, 4, 9, 40, bytes.len() / 3, bytes.len() / 2, bytes.len() - 20, bytes.len() - 1] {
            // Without its last bytes, a stream has ended all the same.
            if *name == "bad.arrows" && length + 20 >= bytes.len() {
                continue;
            }
            fs::write(&bad, &bytes[..length]).expect("a file");
            let error = refused(&place, &[&bad, &out], 1);
            assert!(error.contains(name), "{error}");
        }
        fs::write(&bad, [0xa5; 5000]).expect("a file");
        refused(&place, &[&bad, &out], 1);
        // Other damage may go unnoticed by formats without checksums, but never ends in a panic.
        for place_of_byte in (0..bytes.len()).step_by(bytes.len() / 40 + 1) {
            let mut damaged = bytes.clone();
            damaged[place_of_byte] ^= 0x5a;
            fs::write(&bad, &damaged).expect("a file");
            let run = tupelo(&["import", &bad, "-o", &out, "--force"]);
            assert!(matches!(run.status, Some(0..=2)), "{name} {place_of_byte}: {}", run.stderr);
            assert!(!run.stderr.contains("panicked"), "{name} {place_of_byte}: {}", run.stderr);
            drop(fs::remove_file(&out));
        }
        fs::remove_file(&bad).expect("a file");
    }
    let bad = place.path("claims.npy");
    fs::write(&bad, "").expect("a file");
    for (descr, shape) in [
        ("'<f8'", "(1000000000000000000,)"),
        ("'<f8'", "(18446744073709551615, 2)"),
        ("'<f8'", "(2, 2000000000, 2000000000)"),
        ("'|V9000000000000000000'", "(3,)"),
        ("[('a', '|S9000000000000000000'), ('b', '|S9000000000000000000')]", "(1,)"),
        ("'|S0'", "(1000000000000000000,)"),
        ("'|O'", "(1,)"),
    ] {
        fs::write(&bad, npy(descr, shape, &[0; 64])).expect("a file");
        refused(&place, &[&bad, &out], 1);
    }
    let deep = npy(&"(".repeat(60_000), "(1,)", &[]);
    fs::write(&bad, deep).expect("a file");
    refused(&place, &[&bad, &out], 1);
    // A member that says it is a thousand times as large as deflate can make it.
    let zip = place.path("bomb.npz");
    let mut bomb = archive(&[("a.npy", npy("'<f8'", "(500000000,)", &[0; 800]))], true);
    let end = bomb.len() - 22;
    let directory = (0..end).rev().find(|&at| bomb[at..].starts_with(b"PK\x01\x02")).expect("a directory");
    bomb[directory + 24..directory + 28].copy_from_slice(&4_000_000_128u32.to_le_bytes());
    fs::write(&zip, bomb).expect("a file");
    let error = refused(&place, &[&zip, &out], 1);
    assert!(error.contains("bytes cannot be 4000000128 bytes"), "{error}");
}

#[test]
fn arrays_of_an_archive_have_the_same_entries() {
    let place = Place::new();
    let members = [("a.npy", npy("'|u1'", "(3,)", &[1; 3])), ("b.npy", npy("'|u1'", "(2,)", &[1; 2]))];
    fs::write(place.path("x.npz"), archive(&members, false)).expect("a file");
    let error = refused(&place, &[&place.path("x.npz"), &place.path("out.root")], 1);
    assert!(error.contains("array 'a' has 3 entries, but 'b' has 2"), "{error}");
}

/// Defect: the last of them was taken.
#[test]
fn repeated_names_are_refused() {
    let place = Place::new();
    let out = place.path("out.root");
    let array = |value| npy("'|u1'", "(3,)", &[value; 3]);
    for members in [
        &[("a.npy", array(1)), ("a.npy", array(2))][..],
        &[("b.npy", array(0)), ("a.npy", array(1)), ("c.npy", array(1)), ("a.npy", array(2))],
    ] {
        let file = place.path("x.npz");
        fs::write(&file, archive(members, true)).expect("a file");
        let error = refused(&place, &[&file, &out], 1);
        assert!(error.contains("x.npz: expected arrays of different names, found 'a' twice"), "{error}");
        assert!(!error.contains("copy the file again"), "{error}");
        fs::remove_file(file).expect("a file");
    }
    let file = place.path("x.jsonl");
    for text in ["{\"a\":1,\"b\":2}\n{\"a\":1,\"b\":2,\"a\":1}\n", "{\"c\":0}\n{\"c\":[{\"a\":1,\"a\":2}]}\n"] {
        fs::write(&file, text).expect("a file");
        let error = refused(&place, &[&file, &out], 1);
        assert!(error.contains("x.jsonl: line 2: expected keys that are different, found 'a' twice"), "{error}");
    }
}

/// Entries of several dimensions, members of records, and their strides.
#[test]
fn values_of_arrays_are_at_their_places() {
    let place = Place::new();
    let out = place.path("out.root");
    let bytes: Vec<u8> = (0..24).collect();
    let dumped = |name: &str, array: Vec<u8>| {
        fs::write(place.path(name), array).expect("a file");
        tupelo(&["import", &place.path(name), "-o", &out, "--force", "--as", "x", "--validate", "full"]).ok();
        tupelo(&["dump", &format!("{out}:x")]).ok()
    };
    let cube = dumped("cube.npy", npy("'|u1'", "(2, 3, 2, 2)", &bytes));
    assert_eq!(cube.lines().next(), Some("{\"data\":[[[0,1],[2,3]],[[4,5],[6,7]],[[8,9],[10,11]]]}"));
    let record = "[('a', '|u1'), ('b', [('c', '>u2', (2, 2)), ('', '|V1'), ('d', '|b1')])]";
    let records = dumped("records.npy", npy(record, "(2,)", &bytes[..22]));
    assert_eq!(
        records,
        "{\"a\":0,\"b\":{\"c\":[[258,772],[1286,1800]],\"d\":true}}\n\
         {\"a\":11,\"b\":{\"c\":[[3085,3599],[4113,4627]],\"d\":true}}\n"
    );
}

/// Defect: each of any number of arrays took a buffer and a window.
#[test]
fn arrays_that_are_read_side_by_side_have_little_memory() {
    let place = Place::new();
    let names: Vec<String> = (0..400).map(|number| format!("a{number}.npy")).collect();
    let array = npy("'|u1'", "(3,)", &[1; 3]);
    let members: Vec<(&str, Vec<u8>)> = names.iter().map(|name| (name.as_str(), array.clone())).collect();
    let file = place.path("many.npz");
    fs::write(&file, archive(&members, true)).expect("a file");
    let arguments = [file.as_str(), &place.path("out.root"), "--memory-budget", "17MiB"];
    let error = refused(&place, &arguments, 1);
    assert!(error.contains("many.npz: reading 400 arrays side by side takes 36438000 bytes"), "{error}");
    assert!(error.contains("--memory-budget"), "{error}");
    tupelo(&[&["import", "--fields", "a1?"], &arguments[..]].concat()).ok();
}

/// Defect: each took any time, or ended in an abort.
#[test]
fn arrow_values_without_bytes_are_limited() {
    let place = Place::new();
    let out = place.path("out.root");
    let runs = |ends: Vec<i64>, values: ArrayRef| -> ArrayRef {
        Arc::new(RunArray::<Int64Type>::try_new(&Int64Array::from(ends), &values).expect("runs"))
    };
    let number: ArrayRef = Arc::new(Int64Array::from(vec![7]));
    let large = "x".repeat(1 << 20);
    let text: ArrayRef = Arc::new(StringArray::from(vec![large.as_str()]));
    let nothing: ArrayRef = Arc::new(StructArray::new_empty_fields(1 << 40, None));
    let item = Arc::new(Field::new_list_field(nothing.data_type().clone(), true));
    let offsets = OffsetBuffer::from_lengths([1 << 40]);
    let lists = LargeListArray::try_new(item, offsets, Arc::clone(&nothing), None).expect("lists");
    let keys = Int8Array::from(vec![0; 1 << 20]);
    let dictionary: ArrayRef = Arc::new(DictionaryArray::<Int8Type>::new(keys, Arc::clone(&text)));
    for (name, column, expected) in [
        ("runs", runs(vec![1 << 62], number), "found 4611686018427387"),
        ("structs", nothing, "found 1099511627776"),
        ("lists", Arc::new(lists), "found 1099511627777"),
        ("texts", runs(vec![1 << 20], text), "found 1099511627776 when each is stored by itself"),
        ("dictionary", dictionary, "found 1099511627776 when each is stored by itself"),
    ] {
        let file = arrow(&place, &format!("{name}.arrow"), &batch(vec![("x", column)]));
        let error = refused(&place, &[&file, &out], 1);
        assert!(error.contains(&format!("{name}.arrow: expected ")) && error.contains(expected), "{error}");
        assert!(error.contains("write plain arrays"), "{error}");
    }
    let empty: ArrayRef = Arc::new(
        FixedSizeBinaryArray::try_new(0, Vec::<u8>::new().into(), Some(NullBuffer::new_valid(3))).expect("values"),
    );
    let file = arrow(&place, "empty.arrow", &batch(vec![("x", empty)]));
    let error = refused(&place, &[&file, &out], 1);
    assert!(error.contains("column 'x': binary values of no bytes"), "{error}");
}

/// Defect: the text of all entries of a piece was made at once, whose offsets overflowed.
#[test]
fn large_values_that_are_stored_once_are_imported() {
    let place = Place::new();
    let out = place.path("out.root");
    let large = "x".repeat(1 << 20);
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["", large.as_str()]));
    let ends = Int32Array::from(vec![100, 2200]);
    let runs: ArrayRef = Arc::new(RunArray::<Int32Type>::try_new(&ends, &texts).expect("runs"));
    let file = arrow(&place, "runs.arrow", &batch(vec![("x", runs)]));
    tupelo(&["import", &file, &out]).ok();
    let count = |cut: &str| tupelo(&["count", &out, "--cut", cut]).ok();
    assert_eq!((count("x == ''").trim(), count("x != ''").trim()), ("100", "2100"));
}
