//! Objects beside ntuples: `dump` of one of them, and `copy --objects`.

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int32Array, RecordBatch};
use serde_json::{Value as Json, json};
use tupelo::object::{Numbers, Object, Value};
use tupelo::schema::Schema;
use tupelo::{Compression, StreamerInfos, WriteOptions};

use super::{Place, data, summarise, tupelo};

fn object(class: &str, members: Vec<(&str, Value)>) -> Object {
    let members = members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect::<HashMap<_, _>>();
    Object::new(class, members, &StreamerInfos::histograms()).expect("an object")
}

/// A histogram of two bins of different width.
pub(super) fn histogram(name: &str) -> Object {
    let numbers = |values: &[f64]| Value::Numbers(Numbers::F64(values.to_vec()));
    let axis = vec![
        ("fNbins", Value::Int(2)),
        ("fXmin", Value::Float(0.0)),
        ("fXmax", Value::Float(4.0)),
        ("fXbins", numbers(&[0.0, 1.0, 4.0])),
    ];
    let members = vec![
        ("fName", Value::Text(name.to_owned())),
        ("fTitle", Value::Text("mass < 4".to_owned())),
        ("fXaxis", Value::Object(Arc::new(object("TAxis", axis)))),
        ("fNcells", Value::Int(4)),
        ("fEntries", Value::Float(10.0)),
        ("fTsumw", Value::Float(9.0)),
        ("fTsumw2", Value::Float(9.0)),
        ("fTsumwx", Value::Float(18.0)),
        ("fTsumwx2", Value::Float(45.0)),
        ("fArray", numbers(&[1.0, 3.0, 6.0, 0.0])),
    ];
    object("TH1D", members)
}

/// Adds a text to a file, which may be new.
pub(super) fn add_text(path: &str, name: &str, title: &str) {
    let file = if fs::exists(path).expect("a folder") { tupelo::update(path) } else { tupelo::create(path) };
    let file = file.expect("a file");
    let members = vec![("fName", Value::Text(name.to_owned())), ("fTitle", Value::Text(title.to_owned()))];
    file.object(name, title, &object("TNamed", members), Compression::DEFAULT).expect("an object");
    file.finish().expect("a file");
}

/// A file with histograms and an ntuple.
pub(super) fn plots(place: &Place, names: &[&str]) -> String {
    let path = place.path("plots.root");
    let file = tupelo::create(&path).expect("a file");
    for name in names {
        file.object(name, "", &histogram(name), Compression::DEFAULT).expect("an object");
    }
    let numbers: ArrayRef = Arc::new(Int32Array::from(vec![1, 2, 3]));
    let batch = RecordBatch::try_from_iter([("x", numbers)]).expect("a batch");
    let schema = Schema::from_arrow(&batch.schema()).expect("a schema");
    let mut ntuple = file.ntuple("Events", &schema, WriteOptions::default()).expect("an ntuple");
    ntuple.write(&batch).expect("entries");
    ntuple.finish().expect("an ntuple");
    file.finish().expect("a file");
    path
}

#[test]
fn an_object_is_one_document() {
    let place = Place::new();
    let file = plots(&place, &["mass", "dir/other"]);
    let named = format!("{file}:mass");
    let document = tupelo(&["dump", &named]).json();
    assert_eq!(document["_typename"], "TH1D");
    assert_eq!((&document["fName"], &document["fEntries"]), (&json!("mass"), &json!(10.0)));
    assert_eq!(document["fArray"], json!([1.0, 3.0, 6.0, 0.0]));
    assert_eq!(document["fXaxis"]["_typename"], "TAxis");
    assert_eq!(document["fXaxis"]["fXbins"], json!([0.0, 1.0, 4.0]));
    let out = place.path("mass.json");
    tupelo(&["dump", &format!("{file}:mass;1"), "-o", &out]).ok();
    assert_eq!(serde_json::from_slice::<Json>(&fs::read(&out).expect("a file")).expect("JSON"), document);
    assert_eq!(tupelo(&["dump", &format!("{file}:dir/other")]).json()["fName"], "dir/other");
    // Entries are dumped as before.
    assert_eq!(tupelo(&["dump", &format!("{file}:Events")]).ok(), "{\"x\":1}\n{\"x\":2}\n{\"x\":3}\n");
    for option in [
        &["--fields", "x"][..],
        &["--exclude", "x"],
        &["--entries", ":1"],
        &["--cut", "x > 1"],
        &["--define", "y=x"],
        &["--format", "csv"],
        &["--union"],
        &["--attributes", "runs"],
        &["--binary-strings"],
        &["-o", &place.path("x.parquet")],
    ] {
        let error = tupelo(&[&["dump", &named], option].concat()).fails(2);
        assert!(error.contains("'mass' is a TH1D") && error.contains("is for entries"), "{option:?}: {error}");
    }
    let error = tupelo(&["dump", &format!("{file}:mas")]).fails(1);
    assert!(error.contains("'mas'"), "{error}");
    let error = tupelo(&["dump", &format!("{file}:dir")]).fails(1);
    assert!(error.contains("is a directory"), "{error}");
    let small = tupelo(&["dump", &named, "--memory-budget", "100"]);
    assert_ne!(small.status, Some(0), "{}", small.stdout);
}

fn folders() -> impl Iterator<Item = PathBuf> {
    let folders = ["", "hostile", "uproot", "trees", "reports", "wild"];
    let files = folders.into_iter().filter_map(|folder| fs::read_dir(data()?.join(folder)).ok()).flatten().flatten();
    files.map(|file| file.path()).filter(|path| path.extension().is_some_and(|extension| extension == "root"))
}

/// The objects of real and hostile files that are neither ntuples, trees nor directories: file, path and class.
pub(super) fn others() -> Vec<(String, String, String)> {
    let mut all = Vec::new();
    for path in folders() {
        let file = path.to_str().expect("a path in UTF-8").to_owned();
        let Ok(listed) = serde_json::from_str::<Json>(&tupelo(&["ls", &file, "--json"]).stdout) else { continue };
        for object in listed["objects"].as_array().into_iter().flatten().take(20) {
            let text = |key: &str| object[key].as_str().expect("a text").to_owned();
            let of_others = ["TDirectory", "TTree", "TNtuple", "TChain", "ROOT::"];
            let is_other = !of_others.iter().any(|prefix| text("class").starts_with(prefix));
            // A command line cannot have a zero.
            if is_other && !text("path").contains(['\0', ':', ';']) {
                all.push((file.clone(), text("path"), text("class")));
            }
        }
    }
    all
}

#[test]
fn objects_of_real_files_are_dumped() {
    let (mut dumped, mut refused) = (0, 0);
    for (file, path, class) in others() {
        let run = tupelo(&["dump", &format!("{file}:{path}")]);
        assert!(!run.stderr.contains("panicked"), "{file}:{path}: {}", run.stderr);
        match run.status {
            Some(0) => {
                let document: Json = serde_json::from_str(&run.stdout).expect("JSON");
                assert!(document.get("_typename").is_none_or(|name| name == class.as_str()), "{file}:{path}");
                dumped += 1;
            }
            status => {
                assert_eq!(status, Some(1), "{file}:{path}: {}", run.stderr);
                refused += 1;
            }
        }
    }
    assert!(data().is_none() || dumped > 0, "{dumped} dumped, {refused} refused");
    let line = format!("command: {dumped} objects of real files dumped as JSON, {refused} refused");
    summarise("command-objects", &line);
}

#[test]
fn objects_go_along_with_ntuples() {
    let place = Place::new();
    let file = plots(&place, &["mass", "dir/other"]);
    tupelo(&["mkdir", &format!("{file}:empty/inner")]).ok();
    let document = |file: &str, path: &str| tupelo(&["dump", &format!("{file}:{path}")]).json();
    let all = place.path("all.root");
    let run = tupelo(&["copy", &file, &all, "--objects"]);
    assert!(!run.stderr.contains("not copied"), "{}", run.stderr);
    run.ok();
    for path in ["mass", "dir/other"] {
        assert_eq!(document(&all, path), document(&file, path));
    }
    tupelo(&["diff", &file, &all]).ok();
    tupelo(&["verify", &all]).ok();
    // Defect: empty directories were lost.
    assert!(tupelo(&["ls", &all]).ok().contains("empty/inner"));
    let some = place.path("some.root");
    let run = tupelo(&["copy", &file, &some, "--with-objects=ma*"]);
    assert!(run.stderr.contains("not copied: 'dir/other;1' (TH1D)\n"), "{}", run.stderr);
    run.ok();
    assert_eq!(document(&some, "mass"), document(&file, "mass"));
    let error = tupelo(&["copy", &file, &place.path("none.root"), "--objects=mess"]).fails(1);
    assert!(error.contains("no object named 'mess'") && error.contains("'mass'"), "{error}");
    // Parts have them once.
    tupelo(&["copy", &file, &place.path("part.root"), "--objects", "--split-entries", "2"]).ok();
    let objects = |name: &str| tupelo(&["ls", &place.path(name), "--json"]).json()["objects"].to_string();
    assert!(objects("part_0001.root").contains("mass") && !objects("part_0002.root").contains("mass"));
    let error = tupelo(&["copy", &file, "--raw", &place.path("raw.root"), "--objects"]).fails(2);
    assert!(error.contains("--raw"), "{error}");
}

/// Defect: only ntuples and trees could be copied alone.
#[test]
fn single_objects_are_copied() {
    let place = Place::new();
    let file = plots(&place, &["mass", "dir/other", "pt"]);
    let (out, other) = (place.path("out.root"), place.path("other.root"));
    let at = |file: &str, path: &str| format!("{file}:{path}");
    let document = |file: &str, path: &str| tupelo(&["dump", &at(file, path)]).json();
    let paths = |file: &str| -> Vec<String> {
        let listed = tupelo(&["ls", file, "--json"]).json();
        let objects = listed["objects"].as_array().expect("objects").iter();
        objects.filter_map(|object| object["path"].as_str()).filter(|path| *path != "dir").map(str::to_owned).collect()
    };
    let run = tupelo(&["copy", &at(&file, "dir/other"), &out]);
    assert!(!run.stderr.contains("warning"), "{}", run.stderr);
    run.ok();
    assert_eq!(paths(&out), ["dir/other"]);
    assert_eq!(document(&out, "dir/other"), document(&file, "dir/other"));
    // Another name, which may have another length, is also that in the object.
    for name in ["a", "deeper/and/much/longer"] {
        tupelo(&["copy", &at(&file, "mass;1"), &at(&other, name), "--append", "--compression", "lz4:4"]).ok();
        let mut renamed = document(&file, "mass");
        renamed["fName"] = json!(name.rsplit('/').next());
        assert_eq!(document(&other, name), renamed);
    }
    tupelo(&["copy", &at(&file, "pt"), &other, "--append", "--as", "b"]).ok();
    assert_eq!(document(&other, "b")["fName"], "b");
    tupelo(&["verify", &other]).ok();
    // Several, with an ntuple, into a file that has others.
    tupelo(&["copy", &at(&file, "mass"), &at(&file, "Events"), &at(&file, "pt"), "-o", &out, "--append"]).ok();
    tupelo(&["verify", &out]).ok();
    tupelo(&["diff", &at(&file, "Events"), &at(&out, "Events")]).ok();
    assert_eq!(document(&out, "pt"), document(&file, "pt"));
    // An existing one is hidden only by request.
    let again = ["copy", &at(&file, "mass"), &out, "--append"];
    let error = tupelo(&again).fails(2);
    assert!(error.contains("already contains 'mass'") && error.contains("--as NAME"), "{error}");
    tupelo(&[&again[..], &["--new-cycle"]].concat()).ok();
    assert_eq!(document(&out, "mass;1"), document(&out, "mass;2"));
}

#[test]
fn single_objects_have_their_own_paths_and_no_entries() {
    let place = Place::new();
    let file = plots(&place, &["mass", "dir/other"]);
    let out = place.path("out.root");
    let (mass, other, events) = (format!("{file}:mass"), format!("{file}:dir/other"), format!("{file}:Events"));
    let named = format!("{out}:x");
    for (inputs, to, expected) in [
        (&[&mass, &mass][..], &out, "would both be 'mass' in the output"),
        (&[&mass, &other], &named, "would both be 'x' in the output"),
        (&[&mass, &events], &named, "'x' would be the name of 2 objects"),
        (&[&file, &mass], &named, "'x' would be the name of 2 objects"),
    ] {
        let inputs: Vec<&str> = inputs.iter().map(|input| input.as_str()).collect();
        let error = tupelo(&[&["copy", "-o", to], &inputs[..]].concat()).fails(2);
        assert!(error.contains(expected), "{error}");
    }
    for option in [
        &["--fields", "x"][..],
        &["--entries", ":1"],
        &["--cut", "x > 1"],
        &["--rename", "x=y"],
        &["--union"],
        &["--auto-flush", "10"],
        &["--split-entries", "10"],
        &["--page-bytes", "1MB"],
    ] {
        let error = tupelo(&[&["copy", &mass, &out], option].concat()).fails(2);
        assert!(error.contains("mass is a TH1D; only ntuples and trees have entries for --"), "{option:?}: {error}");
    }
    let error = tupelo(&["copy", &mass, &events, "-o", &out, "--split-entries", "2"]).fails(2);
    assert!(error.contains("--objects=PATH"), "{error}");
    let error = tupelo(&["copy", &format!("{file}:mess"), &out]).fails(1);
    assert!(error.contains("'mess'"), "{error}");
    assert!(!fs::exists(&out).expect("a folder"));
}
