//! Objects that are not copied, and copies to existing ntuples.

use std::sync::Arc;

use arrow_array::{ArrayRef, Float32Array, Float64Array, Int32Array, RecordBatch, StringArray};
use serde_json::json;
use tupelo::WriteOptions;
use tupelo::schema::Schema;

use super::{Place, data, summarise, tupelo};

/// Writes an ntuple of one batch, adding to the file if there is one. The command does that: a file that this process
/// had open for writing may be locked as long as a child of another test has not started.
pub(super) fn write(path: &str, name: &str, columns: &[(&str, ArrayRef)], about: &[(&str, &str)]) {
    let batch = RecordBatch::try_from_iter(columns.iter().cloned()).expect("a batch");
    let part = format!("{path}.part");
    let file = tupelo::create(&part).expect("a file");
    let schema = Schema::from_arrow(&batch.schema()).expect("a schema");
    let mut ntuple = file.ntuple(name, &schema, WriteOptions::default()).expect("an ntuple");
    ntuple.write(&batch).expect("entries");
    about.iter().for_each(|(key, value)| ntuple.set_metadata(key, value).expect("metadata"));
    let quality: ArrayRef = Arc::new(StringArray::from(vec!["good"]));
    let values = RecordBatch::try_from_iter([("quality", quality)]).expect("a batch");
    let schema = Schema::from_arrow(&values.schema()).expect("a schema");
    let mut set = ntuple.attribute_set("runs", &schema).expect("a set");
    set.write(std::slice::from_ref(&(0..batch.num_rows() as u64)), &values).expect("a row");
    ntuple.finish().expect("an ntuple");
    file.finish().expect("a file");
    tupelo(&["copy", &part, path, "--append", "--new-cycle"]).ok();
    std::fs::remove_file(part).expect("a file");
}

pub(super) fn numbers(values: &[i32]) -> ArrayRef {
    Arc::new(Int32Array::from(values.to_vec()))
}

fn floats(values: &[f32]) -> ArrayRef {
    Arc::new(Float32Array::from(values.to_vec()))
}

/// Defect: older cycles, trees and histograms were dropped without a warning.
#[test]
fn objects_that_are_not_copied_are_reported() {
    let place = Place::new();
    let (file, copy) = (place.path("a.root"), place.path("copy.root"));
    for _ in 0..8 {
        write(&file, "Events", &[("x", numbers(&[1]))], &[]);
    }
    let run = tupelo(&["copy", &file, &copy]);
    assert!(run.stderr.contains("not copied: 'Events;7' (ROOT::RNTuple), 'Events;6'"), "{}", run.stderr);
    assert!(run.stderr.contains(" and 2 more"), "{}", run.stderr);
    run.ok();
    // Other ntuples are not listed if one is selected.
    for arguments in
        [&["copy", &format!("{file}:Events"), "-o", &copy, "-f"][..], &["copy", "-f", &copy, &place.path("b.root")]]
    {
        let run = tupelo(arguments);
        assert!(!run.stderr.contains("not copied"), "{}", run.stderr);
        run.ok();
    }
    assert_eq!(tupelo(&["copy", "-q", &file, "-o", &copy, "-f"]).stderr, "");
}

#[test]
fn objects_of_real_files_that_are_not_copied_are_reported() {
    let place = Place::new();
    let mut covered = 0;
    for file in data().and_then(|folder| std::fs::read_dir(folder).ok()).into_iter().flatten() {
        let path = file.expect("an entry").path();
        let Some(file) = path.to_str().filter(|file| file.ends_with(".root")) else { continue };
        let listed = tupelo(&["ls", file, "--json"]).json();
        let objects = listed["objects"].as_array().expect("objects");
        let others = objects.iter().filter(|object| !object["class"].as_str().unwrap_or("").starts_with("TDirectory"));
        let Some(first) = others.clone().next() else { continue };
        if listed["ntuples"] == json!([]) {
            continue;
        }
        let run = tupelo(&["copy", file, "-o", &place.path("copy.root"), "-f"]);
        let named = format!("'{};{}'", first["path"].as_str().expect("a path"), first["cycle"]);
        assert!(run.stderr.contains(&named), "{named} in {}", run.stderr);
        assert!(others.count() <= 5 || run.stderr.contains(" more"), "{}", run.stderr);
        assert!(run.stderr.len() < 2000, "{}", run.stderr);
        run.ok();
        covered += 1;
    }
    summarise("command-left", &format!("command: what copies leave behind is named for {covered} real files"));
}

/// Defect: `--append` hid the entries of an existing ntuple by a new cycle.
#[test]
fn copies_to_an_existing_ntuple_need_an_option() {
    let place = Place::new();
    let (a, b) = (place.path("a.root"), place.path("b.root"));
    write(&a, "Events", &[("x", numbers(&[1, 2])), ("y", floats(&[0.5, 1.5]))], &[("generator", "a"), ("only a", "1")]);
    write(&b, "Events", &[("y", floats(&[2.5])), ("x", numbers(&[3]))], &[("generator", "b"), ("only b", "2")]);
    let before = std::fs::read(&a).expect("a file");
    for arguments in [["copy", "--append", &b, &a], ["generate", "--append", "nanoaod", &a]] {
        let error = tupelo(&arguments).fails(2);
        for part in ["already contains an ntuple 'Events'", "--as NAME", "--extend", "--new-cycle"] {
            assert!(error.contains(part), "{part} in {error}");
        }
        assert!(std::fs::read(&a).expect("a file") == before);
    }
    tupelo(&["copy", &b, &a, "--extend"]).fails(2);
    tupelo(&["copy", &b, &a, "--append", "--extend", "--new-cycle"]).fails(2);
    tupelo(&["copy", &b, &format!("{a}:One"), "--append", "--as", "Two"]).fails(2);

    let dump = |name: &str| tupelo(&["dump", &format!("{a}:{name}")]).ok();
    // The fields are in a different order.
    let (first, second) = (dump("Events"), "{\"x\":3,\"y\":2.5}\n");
    tupelo(&["copy", &b, &a, "--append", "--as", "dir/Other"]).ok();
    assert_eq!(dump("dir/Other"), tupelo(&["dump", &b]).ok());
    let run = tupelo(&["copy", &b, &a, "--append", "--extend"]);
    assert!(run.stderr.contains("metadata 'generator': kept the value 'a', 'b' was not copied"), "{}", run.stderr);
    run.fails(1);
    assert_eq!(dump("Events"), first.clone() + second);
    let listed = tupelo(&["ls", &format!("{a}:Events"), "--json"]).json();
    assert_eq!(listed["metadata"], json!({ "generator": "a", "only a": "1", "only b": "2" }));
    let rows = tupelo(&["dump", "--attributes", "runs", &format!("{a}:Events")]).ok();
    let starts: Vec<_> = rows.lines().map(|row| row.split("_userData").next().expect("a row").to_owned()).collect();
    assert_eq!(starts, [r#"{"_rangeStart":0,"_rangeLen":2,""#, r#"{"_rangeStart":2,"_rangeLen":1,""#]);
    tupelo(&["copy", &b, &a, "--append", "--new-cycle"]).ok();
    assert_eq!(dump("Events"), tupelo(&["dump", &b]).ok());
    // The previous state has the number of the extended cycle.
    assert_eq!(dump("Events;1"), first + second);
    tupelo(&["verify", "--deep", &a]).ok();
    // Without an existing ntuple, a new one is created.
    let new = place.path("new.root");
    for lines in 1..4 {
        tupelo(&["copy", &b, &new, "--append", "--extend"]).ok();
        assert_eq!(tupelo(&["dump", &new]).ok().lines().count(), lines);
    }
}

#[test]
fn extending_needs_the_same_fields() {
    let place = Place::new();
    let a = place.path("a.root");
    write(&a, "Events", &[("x", numbers(&[1, 2])), ("y", floats(&[0.5, 1.5]))], &[]);
    let before = std::fs::read(&a).expect("a file");
    let doubles: ArrayRef = Arc::new(Float64Array::from(vec![2.5]));
    type Columns<'c> = &'c [(&'c str, ArrayRef)];
    let cases: [(Columns<'_>, [&str; 2]); 3] = [
        (
            &[("x", numbers(&[3])), ("y", doubles)],
            ["field 'y' has type double, expected float", "field 'y' has type float in"],
        ),
        (&[("x", numbers(&[3])), ("z", floats(&[1.0]))], ["field 'y' is missing", "some files lack the fields y, z"]),
        (
            &[("x", numbers(&[3])), ("y", floats(&[1.0])), ("z", floats(&[1.0]))],
            ["found 3 fields, expected 2: 'z'", "some files lack the fields z"],
        ),
    ];
    for (index, (columns, expected)) in cases.into_iter().enumerate() {
        let b = place.path(&format!("b{index}.root"));
        write(&b, "Events", columns, &[]);
        let both = place.path("both.root");
        let commands = [&["copy", &b, &a, "--append", "--extend"][..], &["copy", &a, &b, &both]];
        for (arguments, expected) in commands.into_iter().zip(expected) {
            let run = tupelo(arguments);
            assert_eq!(run.status, Some(1), "{arguments:?}: {}", run.stderr);
            assert!(run.stderr.contains(expected), "{expected} in {}", run.stderr);
        }
        assert!(std::fs::read(&a).expect("a file") == before);
        if index == 2 {
            tupelo(&["copy", &b, &a, "--append", "--extend", "--fields", "y,x"]).ok();
        }
    }
    assert!(!std::fs::exists(place.path("both.root")).expect("an answer"));
}

#[test]
fn several_inputs_are_concatenated() {
    let place = Place::new();
    let all = place.path("all.root");
    for (index, name) in ["in1.root", "in2.root", "in3.root"].into_iter().enumerate() {
        let x = index as i32 * 10;
        write(&place.path(name), "Events", &[("x", numbers(&[x, x + 1, x + 2]))], &[("run", "1")]);
        write(&place.path(name), "dir/Runs", &[("n", numbers(&[x]))], &[]);
    }
    let pattern = place.path("in*.root");
    let run = tupelo(&["copy", &pattern, &all]);
    assert!(!run.stderr.contains("tupelo:"), "{}", run.stderr);
    run.ok();
    let values = |name: &str, field: &str| -> Vec<i64> {
        let lines = tupelo(&["dump", &format!("{all}:{name}")]).ok();
        let value = |line| serde_json::from_str::<serde_json::Value>(line).expect("JSON")[field].as_i64();
        lines.lines().map(|line| value(line).expect("a number")).collect()
    };
    assert_eq!(values("Events", "x"), [0, 1, 2, 10, 11, 12, 20, 21, 22]);
    assert_eq!(values("dir/Runs", "n"), [0, 10, 20]);
    let rows = tupelo(&["dump", "--attributes", "runs", "--format", "csv", &format!("{all}:Events")]).ok();
    assert!(rows.contains("\n3,3,") && rows.contains("\n6,3,"), "{rows}");
    tupelo(&["verify", "--deep", &all]).ok();
    // Entries are numbered consecutively, and the cut applies to all files.
    tupelo(&["copy", "-f", &format!("{pattern}:Events"), "-o", &all, "--entries", "2:-1"]).ok();
    assert_eq!(values("Events", "x"), [2, 10, 11, 12, 20, 21]);
    tupelo(&["copy", "-f", &format!("{pattern}:Events"), "-o", &format!("{all}:Cut"), "--where", "x % 10 == 1"]).ok();
    assert_eq!(values("Cut", "x"), [1, 11, 21]);
    // An ntuple that some files lack is an error.
    write(&place.path("in2.root"), "More", &[("n", numbers(&[1]))], &[]);
    assert!(tupelo(&["copy", "-f", &pattern, &all]).fails(2).contains("contains no ntuple 'More'"));
    let (first, second) = (place.path("in2.root"), place.path("in1.root"));
    assert!(tupelo(&["copy", "-f", &first, &second, &all]).fails(2).contains("contains no ntuple 'More'"));
}

#[test]
fn remote_files_have_no_checkpoints() {
    let place = Place::new();
    let error = tupelo(&["copy", &place.b2hhh(), "http://127.0.0.1:9/x.root", "--checkpoint", "1MiB"]).fails(2);
    assert!(error.contains("checkpoints are supported only in local files"), "{error}");
    let error = tupelo(&["head", "http://127.0.0.1:9/*.root"]).fails(2);
    assert!(error.contains("web servers do not list files"), "{error}");
}
