//! `copy` to several files, and under other names of fields.

use std::fs;
use std::path::PathBuf;
#[cfg(unix)]
use std::process::{Command, Stdio};
#[cfg(unix)]
use std::time::Duration;

use serde_json::Value as Json;

#[cfg(unix)]
use super::command;
use super::copying::{numbers, write};
use super::{Place, data, summarise, tupelo};

fn number(file: &str, key: &str) -> u64 {
    tupelo(&["ls", file, "--json"]).json()["ntuples"][0][key].as_u64().expect("a number")
}

/// The parts of a copy, in order.
fn parts(place: &Place) -> Vec<String> {
    (1..)
        .map(|part| place.path(&format!("part_{part:04}.root")))
        .take_while(|part| PathBuf::from(part).exists())
        .collect()
}

/// Fails unless the parts one after the other are the file.
#[track_caller]
fn are_whole(place: &Place, file: &str, parts: &[String]) {
    let all = place.path("all.root");
    let inputs: Vec<&str> = parts.iter().map(String::as_str).collect();
    tupelo(&[&["copy", "-q", "-f", "-o", &all], &inputs[..]].concat()).ok();
    tupelo(&["diff", file, &all]).ok();
    for part in parts {
        tupelo(&["verify", part]).ok();
    }
}

#[test]
fn parts_have_a_number_of_entries() {
    let place = Place::new();
    let file = place.b2hhh();
    let run = tupelo(&["copy", &file, &place.path("part.root"), "--split-entries", "700"]);
    assert!(run.stderr.contains("wrote 5 files: ") && run.stderr.contains("part_0005.root"), "{}", run.stderr);
    assert!(run.stderr.contains("3 000 entries"), "{}", run.stderr);
    run.ok();
    let found = parts(&place);
    let entries: Vec<u64> = found.iter().map(|part| number(part, "entries")).collect();
    assert_eq!(entries, [700, 700, 700, 700, 200]);
    are_whole(&place, &file, &found);
    let stale = tupelo(&["copy", &file, "-o", &place.path("part.root"), "-f", "--split-entries", "1500"]);
    assert!(stale.stderr.contains("3 files: part_0003.root, part_0004.root, part_0005.root of an earlier copy"));
    stale.ok();
}

#[test]
fn parts_keep_the_pages_of_whole_clusters() {
    let place = Place::new();
    let file = place.b2hhh();
    let size = number(&file, "stored_bytes") / 3;
    tupelo(&["copy", &file, &place.path("part.root"), "--split-bytes", &size.to_string()]).ok();
    let found = parts(&place);
    assert!((2..=3).contains(&found.len()), "{found:?}");
    let stored: Vec<u64> = found.iter().map(|part| number(part, "stored_bytes")).collect();
    assert!(stored[..stored.len() - 1].iter().all(|bytes| *bytes >= size), "{stored:?} of {size}");
    assert_eq!(stored.iter().sum::<u64>(), number(&file, "stored_bytes"));
    let clusters = found.iter().map(|part| number(part, "clusters")).sum::<u64>();
    assert_eq!(clusters, number(&file, "clusters"));
    are_whole(&place, &file, &found);
}

#[test]
fn encoded_parts_are_about_as_large_as_wanted() {
    let place = Place::new();
    let file = place.b2hhh();
    let options = ["--split-bytes", "60kB", "--compression", "lz4:4"];
    tupelo(&[&["copy", &file, &place.path("part.root")], &options[..]].concat()).ok();
    let found = parts(&place);
    assert!(found.len() > 3, "{found:?}");
    for part in &found {
        let stored = number(part, "stored_bytes");
        assert!(stored < 200_000, "{part}: {stored}");
    }
    are_whole(&place, &file, &found);
}

#[test]
fn cuts_fill_parts() {
    let place = Place::new();
    let file = place.b2hhh();
    let cut = ["--cut", "H1_PX > 0"];
    let kept: u64 = tupelo(&[&["count", &file], &cut[..]].concat()).ok().trim().parse().expect("a number");
    let expected = place.path("expected.root");
    tupelo(&[&["copy", &file, &expected], &cut[..]].concat()).ok();
    for (entries, count) in [(100, kept.div_ceil(100)), (kept, 1)] {
        for part in parts(&place) {
            fs::remove_file(part).expect("a file");
        }
        let size = entries.to_string();
        tupelo(&[&["copy", &file, &place.path("part.root"), "--split-entries", &size], &cut[..]].concat()).ok();
        let found = parts(&place);
        // None is empty.
        assert_eq!(found.len() as u64, count);
        assert!(found[..found.len() - 1].iter().all(|part| number(part, "entries") == entries));
        are_whole(&place, &expected, &found);
    }
}

#[test]
fn attribute_sets_and_metadata_go_along() {
    let place = Place::new();
    let file = place.path("a.root");
    write(&file, "Events", &[("x", numbers(&[1, 2, 3, 4, 5]))], &[("generator", "a")]);
    tupelo(&["copy", &file, &place.path("part.root"), "--split-entries", "2"]).ok();
    let found = parts(&place);
    assert_eq!(found.len(), 3);
    for part in &found {
        let listed = tupelo(&["ls", part, "--json"]).json();
        assert_eq!(listed["ntuples"][0]["metadata"]["generator"], "a", "{part}");
        assert_eq!(tupelo(&["dump", part, "--attributes", "runs"]).ok().lines().count(), 1, "{part}");
    }
}

#[test]
fn existing_files_are_not_replaced() {
    let place = Place::new();
    let (file, out) = (place.b2hhh(), place.path("part.root"));
    fs::write(place.path("part_0007.root"), "mine").expect("a file");
    let refused = tupelo(&["copy", &file, &out, "--split-entries", "1000"]).fails(2);
    assert!(refused.contains("part_0007.root exists") && refused.contains("--force"), "{refused}");
    assert!(parts(&place).is_empty());
    // What is complete stays.
    fs::remove_file(place.path("part_0007.root")).expect("a file");
    fs::create_dir(place.path("part_0003.root")).expect("a folder");
    let run = tupelo(&["copy", &file, "-o", &out, "--force", "--split-entries", "1000"]);
    assert!(run.stderr.contains("complete before the error, and kept: 2 files: "), "{}", run.stderr);
    run.fails(1);
    for part in ["part_0001.root", "part_0002.root"] {
        assert_eq!(number(&place.path(part), "entries"), 1000);
    }
    let refused = tupelo(&["copy", &file, &out, "--force", "--split-entries", "1000"]).fails(2);
    assert!(refused.contains("is not given by -o") && refused.contains(&format!("--force -o {out} ")), "{refused}");
}

#[test]
#[cfg(unix)]
fn complete_parts_survive_a_signal() {
    let place = Place::new();
    let (file, out) = (place.path("many.root"), place.path("part.root"));
    tupelo(&["generate", "b2hhh", "--events", "30000", &file]).ok();
    let options = ["--split-entries", "100", "--compression", "lzma:9"];
    let arguments = [&["copy", &file, &out], &options[..]].concat();
    let mut child = command(&arguments).stderr(Stdio::piped()).spawn().expect("the command starts");
    while !fs::exists(place.path("part_0003.root")).expect("a folder") {
        assert!(child.try_wait().expect("a child").is_none(), "the command ended early");
        std::thread::sleep(Duration::from_millis(5));
    }
    Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("a signal");
    let output = child.wait_with_output().expect("the command ends");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{said}");
    let found = parts(&place);
    assert!((3..300).contains(&found.len()), "{found:?}");
    assert!(said.contains(&format!("complete before the error, and kept: {} files: ", found.len())), "{said}");
    for part in &found {
        tupelo(&["verify", part]).ok();
        assert_eq!(number(part, "entries"), 100);
    }
    // Nothing else remains.
    assert_eq!(place.files().len(), found.len() + 1);
}

#[test]
fn only_one_ntuple_is_split() {
    let place = Place::new();
    let (file, out, tree) = (place.b2hhh(), place.path("part.root"), place.path("tree.root"));
    tupelo(&["export", &file, &tree]).ok();
    let both = place.path("both.root");
    for name in ["a", "b"] {
        tupelo(&["copy", &file, &both, "--append", "--as", name]).ok();
    }
    let objects = format!("ntpl+file:{}", place.path("stored"));
    for (arguments, said) in [
        (&[&file, &out, "--append"][..], "--append"),
        (&[&file, &out, "--raw"], "--raw"),
        (&[&tree, &out], "`tupelo import`"),
        (&[&both, &out], "a single ntuple"),
        (&[&file, &objects], "not objects"),
    ] {
        let error = tupelo(&[&["copy", "--split-entries", "10"], arguments].concat()).fails(2);
        assert!(error.contains(said), "{arguments:?}: {error}");
    }
    let many = tupelo(&["copy", "--split-entries", "0", &file, &out]).fails(2);
    assert!(many.contains("--split-entries"), "{many}");
    assert!(parts(&place).is_empty());
}

#[test]
fn renamed_fields_keep_their_pages() {
    let place = Place::new();
    let (file, out, back) = (place.b2hhh(), place.path("renamed.root"), place.path("back.root"));
    // Two names are swapped.
    tupelo(&["copy", &file, &out, "--rename", "H1_PX=px", "--rename", "H1_PY=H1_PZ", "--rename", "H1_PZ=H1_PY"]).ok();
    for key in ["stored_bytes", "clusters", "pages"] {
        assert_eq!(number(&out, key), number(&file, key), "{key}");
    }
    let column = |file: &str, field: &str| {
        let text = tupelo(&["dump", file, "--fields", field, "--format", "csv"]).ok();
        text.lines().skip(1).map(str::to_owned).collect::<Vec<_>>()
    };
    for (old, new) in [("H1_PX", "px"), ("H1_PY", "H1_PZ"), ("H1_PZ", "H1_PY"), ("H2_PX", "H2_PX")] {
        assert_eq!(column(&file, old), column(&out, new), "{old}");
    }
    tupelo(&["copy", &out, &back, "--rename", "px=H1_PX", "--rename", "H1_PY=H1_PZ", "--rename", "H1_PZ=H1_PY"]).ok();
    tupelo(&["diff", &file, &back]).ok();
    tupelo(&["verify", &out]).ok();
    // Encoded, with a cut and a new column, too.
    let other = place.path("other.root");
    tupelo(&[
        "copy",
        &file,
        &other,
        "--cut",
        "H1_PX > 0",
        "--define",
        "n=H1_PX * 2",
        "--rename",
        "n=m",
        "--rename",
        "H1_PX=x",
    ])
    .ok();
    assert_eq!(tupelo(&["count", &other, "--cut", "m == 2 * x"]).ok(), tupelo(&["count", &other]).ok());
}

#[test]
fn names_that_cannot_be_given_are_refused() {
    let place = Place::new();
    let (file, out, tree) = (place.b2hhh(), place.path("out.root"), place.path("tree.root"));
    tupelo(&["export", &file, &tree]).ok();
    for (file, rename, status, said) in [
        (&file, "H1_PX=H1_PY", 2, "two fields would have the name 'H1_PY'"),
        (&file, "H1_Px=x", 1, "'H1_PX'"),
        (&file, "H1_PX", 2, "OLD=NEW"),
        (&file, "H1_PX=a.b", 2, "a.b"),
        (&tree, "H1_PX=x", 2, "`tupelo import`"),
    ] {
        let error = tupelo(&["copy", file, &out, "--rename", rename]).fails(status);
        assert!(error.contains(said), "{rename}: {error}");
        assert!(!fs::exists(&out).expect("a folder"));
    }
    // In an object store, names are changed too.
    let stored = format!("ntpl+file:{}", place.path("stored"));
    tupelo(&["copy", &file, &stored]).ok();
    tupelo(&["copy", &stored, &out, "--rename", "H1_PX=x"]).ok();
    assert_eq!(number(&out, "stored_bytes"), number(&file, "stored_bytes"));
}

/// Projected fields follow: all fields of real files get other names.
#[test]
fn fields_of_real_files_are_renamed() {
    let (place, mut renamed) = (Place::new(), 0);
    for path in data().and_then(|folder| fs::read_dir(folder).ok()).into_iter().flatten().flatten() {
        let path = path.path();
        let Some(file) = path.to_str().filter(|file| file.ends_with(".root")) else { continue };
        let listed = tupelo(&["ls", file, "--json"]).json();
        for ntuple in listed["ntuples"].as_array().into_iter().flatten() {
            let (named, out) = (format!("{file}:{}", ntuple["name"].as_str().expect("a name")), place.path("out.root"));
            let schema = tupelo(&["schema", &named, "--json"]).json();
            let fields = schema["fields"].as_array().expect("fields").iter();
            let names: Vec<&str> = fields.filter_map(|field| field["name"].as_str()).take(200).collect();
            let mut arguments =
                vec!["copy".to_owned(), "-q".into(), "-f".into(), "-o".into(), out.clone(), named.clone()];
            for name in &names {
                arguments.extend(["--rename".into(), format!("{name}=new_{name}")]);
            }
            tupelo(&arguments.iter().map(String::as_str).collect::<Vec<_>>()).ok();
            tupelo(&["verify", &out]).ok();
            let (before, after) = (tupelo(&["dump", &named]).ok(), tupelo(&["dump", &out]).ok());
            assert_eq!(before.lines().count(), after.lines().count(), "{named}");
            for (before, after) in before.lines().zip(after.lines()) {
                let [before, after]: [Json; 2] = [before, after].map(|line| serde_json::from_str(line).expect("JSON"));
                let before = before.as_object().expect("an object").iter();
                let values = before.map(|(name, value)| {
                    let is_renamed = names.contains(&name.as_str());
                    (if is_renamed { format!("new_{name}") } else { name.clone() }, value.clone())
                });
                assert_eq!(Json::Object(values.collect()), after, "{named}");
            }
            renamed += names.len();
        }
    }
    summarise("command-renamed", &format!("command: {renamed} fields of real files copied under other names"));
}
