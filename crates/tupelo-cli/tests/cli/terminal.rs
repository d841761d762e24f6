//! Escape sequences in files do not reach the terminal.

use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int32Array, RecordBatch, StringArray};
use tupelo::WriteOptions;
use tupelo::schema::Schema;

use super::{Place, Run, data, summarise, tupelo};

/// Control characters, escape sequences and bidirectional overrides.
const HOSTILE: &str = "\x1b]0;pwned\x07\x1b[31mRED\r\u{202e}\u{9b}2J\u{2066}";

/// Characters that are allowed in names.
const NAME: &str = "N\u{202e}\u{2066}eman";

/// An ntuple with escape sequences in all texts.
fn hostile(place: &Place) -> String {
    let path = place.path("hostile.root");
    let file = tupelo::create(&path).expect("a file");
    let numbers: ArrayRef = Arc::new(Int32Array::from(vec![1, 2]));
    let texts: ArrayRef = Arc::new(StringArray::from(vec![HOSTILE, "b"]));
    let batch = RecordBatch::try_from_iter([(NAME, numbers), ("text", texts)]).expect("a batch");
    let mut schema = Schema::from_arrow(&batch.schema()).expect("a schema");
    schema.fields[0].description = HOSTILE.to_owned();
    schema.fields[0].type_alias = HOSTILE.to_owned();
    let options = WriteOptions::default().with_description(HOSTILE);
    let mut ntuple = file.ntuple(NAME, &schema, options).expect("an ntuple");
    ntuple.write(&batch).expect("entries");
    ntuple.set_metadata(HOSTILE, HOSTILE).expect("metadata");
    ntuple.finish().expect("an ntuple");
    file.finish().expect("a file");
    path
}

#[track_caller]
fn is_harmless(what: &str, run: &Run) {
    let bad = |c: &char| (c.is_control() && *c != '\n') || "\u{202e}\u{2066}".contains(*c);
    for text in [&run.stdout, &run.stderr] {
        assert_eq!(text.chars().find(bad), None, "{what}: {text:?}");
    }
}

/// Defect: escape sequences in names, types and the name of the writer reached the terminal.
#[test]
fn texts_of_a_file_are_escaped() {
    let place = Place::new();
    let file = hostile(&place);
    let named = format!("{file}:{NAME}");
    let copy = place.path("copy.root");
    let commands: [&[&str]; 13] = [
        &["ls", &file],
        &["ls", "-l", &file],
        &["ls", "-l", &named],
        &["schema", &file],
        &["schema", "--columns", &file],
        &["schema", "--arrow", &file],
        &["head", &file],
        &["layout", &file],
        &["verify", "--deep", &file],
        &["copy", &file, &copy],
        &["copy", &file, &copy, "--append"],
        &["dump", &file, "--fields", "no_such"],
        &["dump", &format!("{file}:no_such")],
    ];
    for arguments in commands {
        let run = tupelo(arguments);
        assert!(!run.stdout.is_empty() || !run.stderr.is_empty(), "{arguments:?}");
        is_harmless(&format!("{arguments:?}"), &run);
    }
    let shown = tupelo(&["ls", "-l", &file]).ok();
    assert!(shown.contains(r"N\u{202e}\u{2066}eman"), "{shown}");
    assert!(shown.contains(r"\u{1b}]0;pwned\u{7}\u{1b}[31mRED\r\u{202e}\u{9b}2J\u{2066}"), "{shown}");
    assert!(tupelo(&["schema", &file]).ok().lines().count() == 3);
    // The error of a damaged page contains the field name.
    let layout = tupelo(&["layout", "--json", &file]).json();
    let page = layout["regions"].as_array().expect("regions").iter().find(|region| region["what"] == "pages");
    let mut bytes = std::fs::read(&file).expect("a file");
    bytes[page.expect("pages")["offset"].as_u64().expect("a number") as usize] ^= 1;
    std::fs::write(&file, bytes).expect("a file");
    for command in ["verify", "head", "dump"] {
        let run = tupelo(&[command, &file]);
        assert!((run.stdout.clone() + &run.stderr).contains("eman"), "{}", run.stderr);
        is_harmless(command, &run);
    }
}

/// Data are not escaped.
#[test]
fn values_are_not_changed() {
    let place = Place::new();
    let file = hostile(&place);
    let csv = tupelo(&["dump", &file, "--format", "csv"]).ok();
    assert!(csv.starts_with(&format!("{NAME},text\n1,\"{HOSTILE}\"\n")), "{csv:?}");
    let json: serde_json::Value =
        serde_json::from_str(tupelo(&["dump", &file]).ok().lines().next().expect("a line")).expect("JSON");
    assert_eq!(json["text"], HOSTILE);
}

/// Reported files, and those of `conformance/bad` whose names and types have control characters.
#[test]
fn known_hostile_files_are_harmless() {
    let bad = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/bad");
    let names = ["24-field-name-escape", "24-ntuple-name-escape", "33-type-of-control-characters"];
    let mut files: Vec<_> = names.iter().map(|name| bad.join(format!("{name}.root"))).collect();
    let reported = data().map(|folder| folder.join("hostile/terminal-escapes.root")).filter(|file| file.exists());
    if reported.is_none() {
        summarise("command-terminal", "command: the reported file with escape sequences is not here");
    }
    files.extend(reported);
    for file in &files {
        let file = file.to_str().expect("UTF-8");
        for arguments in [
            &["ls", file][..],
            &["schema", file],
            &["head", file],
            &["layout", file],
            &["verify", file],
            &["dump", &format!("{file}:none")],
        ] {
            is_harmless(&format!("{arguments:?}"), &tupelo(arguments));
        }
    }
}
