//! Attribute sets and metadata in copies, checkpoints, and interrupted writers.

use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::{ArrayRef, Int32Array, RecordBatch, StringArray};
use serde_json::json;
use tupelo::WriteOptions;
use tupelo::schema::Schema;

use super::{Place, command, tupelo};

/// Time limit for the end of an interrupted command; many tests share few cores.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Ten entries in `Events`, with metadata, and attributes of the ranges 0–3, 3–8, 8–10, an empty one, and one past the
/// end.
fn described(place: &Place) -> String {
    described_as(place.path("described.root"), 10, ["good", "bad", "good", "empty", "late"])
}

/// The same with another end of the third range, and other texts.
fn described_as(path: String, third_end: u64, qualities: [&str; 5]) -> String {
    let file = tupelo::create(&path).expect("a file");
    let column = |values: Vec<i32>| Arc::new(Int32Array::from(values)) as ArrayRef;
    let events = RecordBatch::try_from_iter([("x", column((0..10).collect()))]).expect("a batch");
    let schema = Schema::from_arrow(&events.schema()).expect("a schema");
    let mut ntuple = file.ntuple("Events", &schema, WriteOptions::default()).expect("an ntuple");
    ntuple.write(&events).expect("entries");
    ntuple.set_metadata("generator", "pythia\n8.3").expect("metadata");
    let texts: ArrayRef = Arc::new(StringArray::from(qualities.to_vec()));
    let runs = [("run", column(vec![1, 2, 3, 4, 5])), ("quality", texts)];
    let runs = RecordBatch::try_from_iter(runs).expect("a batch");
    let schema = Schema::from_arrow(&runs.schema()).expect("a schema");
    let mut set = ntuple.attribute_set("runs", &schema).expect("a set");
    set.write(&[0..3, 3..8, 8..third_end, 5..5, 10..20], &runs).expect("rows");
    ntuple.finish().expect("an ntuple");
    file.finish().expect("a file");
    path
}

/// Start, length, run and quality of each entry of the attribute set.
fn rows(file: &str) -> Vec<serde_json::Value> {
    let text = tupelo(&["dump", "--attributes", "runs", "--format", "jsonl", file]).ok();
    let row = |line: &str| -> serde_json::Value {
        let row: serde_json::Value = serde_json::from_str(line).expect("JSON");
        let data = &row["_userData"];
        json!([row["_rangeStart"], row["_rangeLen"], data["run"], data["quality"]])
    };
    text.lines().map(row).collect()
}

#[test]
fn copies_keep_attribute_sets() {
    let place = Place::new();
    let (file, copy) = (described(&place), place.path("copy.root"));
    let run = tupelo(&["copy", &file, &copy]);
    assert!(!run.stderr.contains("warning"), "{}", run.stderr);
    run.ok();
    assert_eq!(rows(&copy), rows(&file));
    assert_eq!(rows(&copy).len(), 5);
    tupelo(&["verify", &copy]).ok();
    tupelo(&["copy", &file, "--force", "-o", &copy, "--entries", "2:9"]).ok();
    assert_eq!(rows(&copy), [json!([0, 1, 1, "good"]), json!([1, 5, 2, "bad"]), json!([6, 1, 3, "good"])]);
    tupelo(&["copy", &file, "--force", "-o", &copy, "--where", "x % 4 == 0 or x == 7"]).ok();
    assert_eq!(tupelo(&["dump", &copy]).ok(), "{\"x\":0}\n{\"x\":4}\n{\"x\":7}\n{\"x\":8}\n");
    assert_eq!(rows(&copy), [json!([0, 1, 1, "good"]), json!([1, 2, 2, "bad"]), json!([3, 1, 3, "good"])]);
    tupelo(&["copy", &file, "--force", "-o", &copy, "--entries", "4:", "--where", "x < 6"]).ok();
    assert_eq!(rows(&copy), [json!([0, 2, 2, "bad"])]);
    let listed = tupelo(&["ls", &copy, "--json"]).json();
    assert_eq!(listed["ntuples"][0]["metadata"], json!({ "generator": "pythia\n8.3" }));
    let error = tupelo(&["copy", &file, "--force", "-o", &copy, "--where", "y > 6"]).fails(1);
    assert!(error.contains("expression 'y > 6': no field named 'y'"), "{error}");
    assert_eq!(rows(&copy).len(), 1);
    tupelo(&["verify", &copy]).ok();
}

/// Regression: attribute sets were not compared.
#[test]
fn diff_compares_attribute_sets() {
    let place = Place::new();
    let qualities = ["good", "bad", "good", "empty", "late"];
    let file = described(&place);
    let copy = described_as(place.path("copy.root"), 10, qualities);
    tupelo(&["diff", &file, &copy]).ok();
    let other = described_as(place.path("other.root"), 9, ["good", "worse", "good", "empty", "late"]);
    let found = tupelo(&["diff", &file, &other]);
    let (range, text) =
        ("field '_rangeLen': entry 2: 2 and 1", "field 'quality': entry 1: \"bad\" and \"worse\"".replace('"', ""));
    assert_eq!(found.stdout, format!("attribute set 'runs': {range}\nattribute set 'runs': {text}\n"));
    assert_eq!(found.status, Some(1));
    let json = tupelo(&["diff", &file, &other, "--json"]);
    assert_eq!(json.status, Some(1));
    let json: serde_json::Value = serde_json::from_str(&json.stdout).expect("a document");
    assert_eq!(json["equal"], false);
    let set = &json["attribute_sets"][0];
    assert_eq!((&set["name"], &set["fields"][1]["values"]), (&json!("runs"), &json!(["bad", "worse"])));
    // Attributes of entries that are not selected do not matter.
    tupelo(&["diff", &file, &other, "--entries", ":3"]).ok();
    assert!(tupelo(&["diff", &file, &other, "--entries", "3:"]).stdout.contains("entry 0: bad and worse"));
    // A part has fewer entries of the set; parts together have all again.
    let [a, b, plain] = ["a.root", "b.root", "plain.root"].map(|name| place.path(name));
    tupelo(&["copy", &file, &a, "--entries", ":3"]).ok();
    tupelo(&["copy", &file, &b, "--entries", "3:"]).ok();
    let parts = place.path("[ab].root");
    let merged = place.path("merged.root");
    tupelo(&["merge", &merged, &a, &b]).ok();
    tupelo(&["diff", &parts, &merged]).ok();
    assert!(tupelo(&["diff", &a, &file]).stdout.contains("attribute set 'runs': entries: 1 and 5"));
    let rows = place.path("rows.jsonl");
    std::fs::write(&rows, tupelo(&["dump", &file]).ok()).expect("a file");
    tupelo(&["import", &rows, &plain]).ok();
    assert!(tupelo(&["diff", &file, &plain]).stdout.contains("attribute set 'runs': only in the first\n"));
    assert!(tupelo(&["diff", &plain, &file]).stdout.contains("attribute set 'runs': only in the second\n"));
}

#[test]
fn ls_shows_attribute_sets_and_metadata() {
    let place = Place::new();
    let file = described(&place);
    let listed = tupelo(&["ls", &file, "--json"]).json();
    let ntuple = &listed["ntuples"][0];
    assert_eq!(ntuple["attribute_sets"][0]["name"], "runs");
    assert_eq!(ntuple["attribute_sets"][0]["entries"], 5);
    assert_eq!(tupelo(&["ls", &format!("{file}:Events"), "--json"]).json()["metadata"], ntuple["metadata"]);
    let short = tupelo(&["ls", &file]).ok();
    assert!(short.contains("@runs") && !short.contains("pythia"), "{short}");
    for file in [file.clone(), format!("{file}:Events")] {
        let long = tupelo(&["ls", "-l", &file]).ok();
        assert!(long.contains("generator  pythia\\n8.3\n"), "{long}");
    }
}

#[test]
fn names_of_directories_are_refused() {
    let place = Place::new();
    let (file, copy) = (described(&place), place.path("copy.root"));
    tupelo(&["copy", &file, &format!("{copy}:dir/Events")]).ok();
    let before = std::fs::read(&copy).expect("the copy");
    for (name, expected) in [("dir", "directory of that name"), ("dir/Events/x", "'dir/Events' is a ROOT::RNTuple")] {
        let error = tupelo(&["copy", &file, &format!("{copy}:{name}"), "--append"]).fails(2);
        assert!(error.contains(expected), "{error}");
    }
    assert_eq!(std::fs::read(&copy).expect("the copy"), before);
}

#[test]
fn checkpoints_are_sizes_or_off() {
    let place = Place::new();
    let path = place.path("f.root");
    for checkpoint in ["off", "10kB", "1GiB"] {
        let sizes = ["--cluster-bytes", "20kB", "--checkpoint", checkpoint, "--force"];
        tupelo(&[&["generate", "b2hhh", "--events", "3000", &path], &sizes[..]].concat()).ok();
        tupelo(&["verify", &path]).ok();
        tupelo(&["copy", &path, "--force", "-o", &place.path("copy.root"), "--checkpoint", checkpoint]).ok();
    }
    let error = tupelo(&["generate", "b2hhh", &path, "--checkpoint", "never"]).fails(2);
    assert!(error.contains("'never' is not a size") && error.contains("or off"), "{error}");
}

/// A running command, killed on drop.
struct Running(Option<Child>);

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            drop(child.kill());
            drop(child.wait());
        }
    }
}

/// Starts a command that would write for hours, and waits until it has written something; returns it and its file. Without a
/// checkpoint that file may have no name.
fn writing(place: &Place, arguments: &[&str]) -> (Running, PathBuf) {
    let known: Vec<_> = place.files();
    let mut command = command(&["generate", "b2hhh", "--events", "1000000000", "--cluster-bytes", "100kB"]);
    let child = command.args(arguments).stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
    let running = Running(Some(child.expect("it starts")));
    let began = Instant::now();
    loop {
        let new = place.files().into_iter().find(|file| !known.contains(file));
        let new = new.or_else(|| running.0.as_ref().and_then(|child| unnamed_file(place, child.id())));
        let grown = |path: &Path| std::fs::metadata(path).is_ok_and(|file| file.len() > 1_000_000);
        match new {
            Some(path) if grown(&path) => return (running, path),
            None if known.iter().any(|path| grown(path)) => return (running, known[0].clone()),
            _ => assert!(began.elapsed() < TIMEOUT, "nothing was written"),
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A file without a name in the directory that a process has open: its link in `/proc`.
fn unnamed_file(place: &Place, process: u32) -> Option<PathBuf> {
    let mut open = std::fs::read_dir(format!("/proc/{process}/fd")).ok()?.flatten().map(|file| file.path());
    let folder = place.directory.path().canonicalize().ok()?;
    open.find(|file| std::fs::read_link(file).is_ok_and(|name| name.parent() == Some(&*folder) && !name.exists()))
}

/// Sends a signal; returns the exit status and stderr.
fn stop(mut running: Running, signal: &str) -> (Option<i32>, String) {
    let child = running.0.take().expect("a command");
    let began = Instant::now();
    let sent = std::process::Command::new("kill").args([signal, &child.id().to_string()]).status();
    assert!(sent.expect("kill").success());
    let output = child.wait_with_output().expect("its end");
    assert!(began.elapsed() < TIMEOUT, "it went on for {:?}", began.elapsed());
    (output.status.code(), String::from_utf8(output.stderr).expect("UTF-8"))
}

#[test]
fn an_interrupted_writer_keeps_the_last_checkpoint() {
    let place = Place::new();
    let target = place.path("f.root");
    let (running, _) = writing(&place, &["--checkpoint", "off", &target]);
    let (status, said) = stop(running, "-TERM");
    assert_eq!((status, said.as_str()), (Some(143), "tupelo: error: interrupted\n"));
    assert_eq!(place.files(), Vec::<PathBuf>::new());
    let (running, _) = writing(&place, &["--checkpoint", "300kB", &target]);
    let (status, said) = stop(running, "-INT");
    let [temporary] = place.files().try_into().expect("one file");
    assert_eq!(status, Some(130), "{said}");
    assert!(said.contains("tupelo verify --repair") && said.contains(temporary.to_str().expect("UTF-8")), "{said}");
    let temporary = temporary.to_str().expect("UTF-8");
    tupelo(&["verify", temporary]).ok();
    let listed = tupelo(&["ls", temporary, "--json"]).json();
    assert!(listed["ntuples"][0]["entries"].as_u64() > Some(1000), "{listed}");
}

/// Defect: repair turned such a file into one without ntuples, or reported a lost record.
#[test]
fn a_writer_killed_before_its_first_checkpoint_cannot_be_repaired() {
    let place = Place::new();
    let target = place.path("f.root");
    let (running, mut temporary) = writing(&place, &["--checkpoint", "off", &target]);
    if temporary.starts_with("/proc") {
        // As where the file system has no files without names.
        let named = PathBuf::from(place.path("f.root.tmp-abcdef"));
        std::fs::copy(&temporary, &named).expect("a copy");
        temporary = named;
    }
    assert_eq!(stop(running, "-KILL").0, None);
    let temporary = temporary.to_str().expect("UTF-8");
    let before = std::fs::read(temporary).expect("a file");
    assert!(tupelo(&["ls", &target]).fails(1).contains(temporary));
    for name in [target.as_str(), temporary] {
        let said = tupelo(&["verify", "--repair", name]).fails(1);
        assert!(said.contains(&format!("{temporary} contains no checkpoint")) && said.contains("delete it"), "{said}");
    }
    assert_eq!(place.files().len(), 1);
    assert!(std::fs::read(temporary).expect("a file") == before);
}

#[test]
fn an_interrupted_append_changes_nothing() {
    let place = Place::new();
    let file = place.b2hhh();
    let before = std::fs::read(&file).expect("the file");
    let (running, _) = writing(&place, &["--checkpoint", "off", "--append", &format!("{file}:more")]);
    assert_eq!(stop(running, "-INT").0, Some(130));
    assert_eq!(std::fs::read(&file).expect("the file"), before);
}

/// Regression: killed writers left files beside the output, and `gc` refused directories.
#[test]
#[cfg(target_os = "linux")]
fn gc_removes_what_killed_writers_left() {
    let place = Place::new();
    let folder = place.directory.path();
    let names = || {
        let mut names: Vec<String> = std::fs::read_dir(folder)
            .expect("a directory")
            .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    };
    let out = place.path("out.root");
    let kill = |arguments: &[&str]| {
        let mut child = command(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("a process");
        std::thread::sleep(Duration::from_millis(400));
        child.kill().expect("a running process");
        child.wait().expect("an end");
    };
    kill(&["generate", "nanoaod", "--events", "10000000", &out]);
    // Other file systems need a name from the beginning.
    let left = names();
    assert!(left.is_empty() || left.iter().all(|name| name.starts_with("out.root.tmp-")), "{left:?}");
    left.iter().for_each(|name| std::fs::remove_file(folder.join(name)).expect("a file"));

    let good = described(&place);
    let copy = |name: &str| std::fs::copy(&good, folder.join(name)).expect("a copy");
    // Complete, of a target that exists; complete, of one that does not; without a checkpoint; of the command before.
    copy("described.root.tmp-aaaaaa-tupelo");
    copy("other.root.tmp-bbbbbb-tupelo");
    std::fs::write(folder.join("third.root.tmp-cccccc-tupelo"), [0; 1000]).expect("a file");
    std::fs::write(folder.join(".tupelo-dddddd"), "{").expect("a file");
    std::fs::write(folder.join("notes.tmp-old.txt"), "mine").expect("a file");
    // Defect: files of others with six letters were removed.
    std::fs::write(folder.join("notes.root.tmp-backup"), "mine").expect("a file");
    let all = names();
    let path = folder.to_str().expect("UTF-8");
    let young = tupelo(&["gc", path]);
    assert!(young.stderr.contains("0 temporary files") && young.stderr.contains("3 files younger"), "{}", young.stderr);
    young.ok();
    let planned = tupelo(&["gc", "--dry-run", "--older-than", "0s", "--json", path]).ok();
    let planned: serde_json::Value = serde_json::from_str(&planned).expect("a document");
    assert_eq!((planned["temporary"].as_array().map(Vec::len), &planned["removed"]), (Some(3), &json!(false)));
    assert_eq!(planned["restorable"], json!([format!("{path}/other.root.tmp-bbbbbb-tupelo")]));
    assert_eq!(names(), all);
    let done = tupelo(&["gc", "--older-than", "0s", path]);
    assert!(done.stderr.contains("3 temporary files of killed writers"), "{}", done.stderr);
    assert!(done.stderr.contains("`tupelo verify --repair") && done.ok().contains("third.root.tmp-cccccc-tupelo"));
    assert_eq!(
        names(),
        ["described.root", "notes.root.tmp-backup", "notes.tmp-old.txt", "other.root.tmp-bbbbbb-tupelo"]
    );
    tupelo(&["verify", "--repair", &place.path("other.root")]).ok();
    assert_eq!(names(), ["described.root", "notes.root.tmp-backup", "notes.tmp-old.txt", "other.root"]);
}
