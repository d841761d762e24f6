//! `rm`, `mv`, `mkdir` and `repack`: changes of the objects of ROOT files.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{Place, data, summarise, tupelo};

/// Ntuples `DecayTree` and `Events`, and a tree `trees/Decay`.
fn example(place: &Place) -> (String, [String; 2]) {
    let (b2hhh, nanoaod) = (place.b2hhh(), place.nanoaod());
    let (tree, all) = (place.path("tree.root"), place.path("all.root"));
    tupelo(&["export", &b2hhh, &tree]).ok();
    tupelo(&["merge", &all, &b2hhh, &nanoaod]).ok();
    tupelo(&["copy", &format!("{tree}:DecayTree"), &format!("{all}:trees/Decay"), "--append"]).ok();
    (all, [b2hhh, nanoaod])
}

/// Paths with cycles and classes.
fn listed(file: &str) -> Vec<String> {
    let found = tupelo(&["ls", file, "--json"]).json();
    // Older cycles are called by it.
    let one = |it: &Value, name: &str| match it[name].as_str().expect("a name") {
        older if older.contains(';') => older.to_owned(),
        newest => format!("{newest};{}", it["cycle"]),
    };
    let of = |what: &str| found[what].as_array().expect("a list").clone();
    let mut all: Vec<String> = of("ntuples").iter().map(|it| one(it, "name")).collect();
    all.extend(of("trees").iter().map(|it| it["name"].as_str().expect("a name").to_owned()));
    all.extend(of("objects").iter().map(|it| one(it, "path")));
    all.sort();
    all
}

fn free_bytes(file: &str) -> u64 {
    let layout = tupelo(&["layout", file, "--json"]).json();
    assert_eq!(layout["remarks"], json!([]), "{file}");
    let regions = layout["regions"].as_array().expect("regions").iter();
    regions.filter(|it| it["what"] == "free").map(|it| it["bytes"].as_u64().expect("a number")).sum()
}

fn size(file: &str) -> u64 {
    fs::metadata(file).expect("a file").len()
}

#[test]
fn objects_are_moved_removed_and_their_space_is_given_back() {
    let place = Place::new();
    let (all, [b2hhh, nanoaod]) = example(&place);
    let at = |name: &str| format!("{all}:{name}");
    tupelo(&["mkdir", &at("empty"), &at("a/b")]).ok();
    let before = fs::read(&all).expect("a file");
    let again = tupelo(&["mkdir", &at("a/b")]);
    assert!(again.stderr.contains("directory 'a/b' exists"), "{}", again.stderr);
    again.ok();
    assert!(fs::read(&all).expect("a file") == before);
    // Defect: such directories could not be removed.
    for arguments in
        [["rm", &at("nothere")], ["mkdir", &at("DecayTree")], ["mkdir", &at("x;1")], ["mkdir", &at("a/./c")]]
    {
        assert_ne!(tupelo(&arguments).status, Some(0), "{arguments:?}");
        assert!(fs::read(&all).expect("a file") == before, "{arguments:?}");
    }
    // Names.
    let bytes = size(&all);
    tupelo(&["mv", &at("DecayTree"), &at("a/b/")]).ok();
    tupelo(&["mv", &at("Events"), &at("a/NanoAOD")]).ok();
    tupelo(&["mv", &at("trees/Decay"), &at("/")]).ok();
    assert!(size(&all) < bytes + 200_000, "pages were copied: {bytes} and {}", size(&all));
    tupelo(&["diff", &at("a/b/DecayTree"), &b2hhh]).ok();
    tupelo(&["diff", &at("a/NanoAOD"), &nanoaod]).ok();
    tupelo(&["diff", &at("Decay"), &place.path("tree.root")]).ok();
    tupelo(&["verify", &all]).ok();
    // Removing.
    let dry = tupelo(&["rm", "--dry-run", &at("a/*"), "-r"]);
    assert!(dry.stderr.contains("all.root:a/NanoAOD;1") && dry.stderr.contains("would be removed"), "{}", dry.stderr);
    dry.ok();
    let refused = tupelo(&["rm", &at("a")]).fails(1);
    assert!(refused.contains("'a' is a directory that is not empty") && refused.contains("-r "), "{refused}");
    let free = free_bytes(&all);
    let removed = tupelo(&["rm", "-r", &at("a/b")]);
    assert!(removed.stderr.contains("2 objects removed, "), "{}", removed.stderr);
    removed.ok();
    assert!(free_bytes(&all) > free + size(&b2hhh) * 9 / 10, "{free} and {}", free_bytes(&all));
    tupelo(&["verify", &all]).ok();
    tupelo(&["rm", &at("Decay"), &at("trees")]).ok();
    assert_eq!(listed(&all), ["a/NanoAOD;1", "a;1", "empty;1"]);
    // Space.
    let (bytes, out) = (size(&all), place.path("out.root"));
    let repacked = tupelo(&["repack", &all, "-o", &out]);
    assert!(repacked.stderr.contains("before") && repacked.stderr.contains("after: 1 object"), "{}", repacked.stderr);
    repacked.ok();
    assert_eq!(size(&all), bytes);
    tupelo(&["repack", &all]).ok();
    for file in [&all, &out] {
        assert!(size(file) < bytes / 2, "{bytes} and {}", size(file));
        tupelo(&["verify", file]).ok();
        tupelo(&["diff", &format!("{file}:a/NanoAOD"), &nanoaod]).ok();
        assert_eq!(free_bytes(file), 0);
        assert_eq!(listed(file), ["a/NanoAOD;1", "a;1", "empty;1"]);
    }
    // Nothing is left beside the files.
    let names: Vec<_> = fs::read_dir(Path::new(&all).parent().expect("a folder")).expect("a folder").collect();
    assert_eq!(names.len(), 5, "{names:?}");
}

#[test]
fn cycles_are_removed_and_moved() {
    let place = Place::new();
    let (b2hhh, file) = (place.b2hhh(), place.path("file.root"));
    let at = |name: &str| format!("{file}:{name}");
    for entries in [":1000", ":2000", ":500"] {
        tupelo(&["copy", &b2hhh, &file, "--entries", entries, "--append", "--new-cycle"]).ok();
    }
    assert_eq!(listed(&file), ["DecayTree;1", "DecayTree;2", "DecayTree;3"]);
    tupelo(&["rm", &at("DecayTree;3")]).ok();
    assert_eq!(tupelo(&["count", &at("DecayTree")]).ok(), "2000\n");
    let moved = tupelo(&["mv", &at("DecayTree"), &at("Decays")]);
    assert!(moved.stderr.contains("2 cycles moved to 'Decays'"), "{}", moved.stderr);
    moved.ok();
    assert_eq!(listed(&file), ["Decays;1", "Decays;2"]);
    assert_eq!(tupelo(&["count", &at("Decays")]).ok(), "2000\n");
    assert_eq!(tupelo(&["count", &at("Decays;1")]).ok(), "1000\n");
    tupelo(&["mv", &at("Decays;1"), &at("First")]).ok();
    tupelo(&["verify", &file]).ok();
    // Defect: they became names of directories.
    for path in [".", "..", "a/../b"] {
        let refused = tupelo(&["mv", &at("First"), &at(path)]).fails(2);
        assert!(refused.contains("is not a valid path"), "{refused}");
    }
    let exists = tupelo(&["mv", &at("First"), &at("Decays")]).fails(2);
    assert!(exists.contains("'Decays' exists") && exists.contains("--force"), "{exists}");
    tupelo(&["mv", "--force", &at("First"), &at("Decays")]).ok();
    assert_eq!((listed(&file), tupelo(&["count", &file]).ok()), (vec!["Decays;1".to_owned()], "1000\n".to_owned()));
    free_bytes(&file);
    tupelo(&["copy", &b2hhh, &at("Decays"), "--append", "--new-cycle"]).ok();
    let repacked = tupelo(&["repack", &file]);
    assert!(repacked.stderr.contains("without 1 older cycle"), "{}", repacked.stderr);
    repacked.ok();
    tupelo(&["diff", &file, &b2hhh]).ok();
    tupelo(&["rm", &at("Decays")]).ok();
    assert_eq!(listed(&file), [""; 0]);
    tupelo(&["copy", &b2hhh, &file, "--append"]).ok();
    tupelo(&["diff", &file, &b2hhh]).ok();
    tupelo(&["verify", &file]).ok();
}

#[test]
fn what_cannot_be_done_is_an_error_that_changes_nothing() {
    let place = Place::new();
    let (file, other) = (place.b2hhh(), place.nanoaod());
    let before = fs::read(&file).expect("a file");
    let at = |name: &str| format!("{file}:{name}");
    let missing = place.path("missing.root");
    for (arguments, status, expected) in [
        (&["rm", &file][..], 2, "expected FILE:NAME"),
        (&["rm", &at("Decay")], 1, "no object named 'Decay'"),
        (&["rm", &at("x*")], 1, "no object named 'x*'"),
        (&["rm", &format!("{missing}:x")], 1, "missing.root"),
        (&["rm", "https://example.org/x.root:x"], 2, "only in local ROOT files"),
        (&["mkdir", &file], 2, "expected FILE:NAME"),
        (&["mkdir", &at("DecayTree")], 2, "'DecayTree' is an object, not a directory"),
        (&["mkdir", &at("DecayTree/x")], 2, "is not a directory"),
        (&["mkdir", &format!("{missing}:x")], 1, "writes a new file"),
        (&["mv", &at("DecayTree"), &format!("{other}:x")], 2, "is in another file"),
        (&["mv", &file, &at("x")], 2, "expected FILE:NAME"),
        (&["mv", &at("x"), &at("y")], 1, "no object named 'x'"),
        (&["mv", &at("DecayTree"), &at("a b")], 2, "the format forbids"),
        (&["repack", &at("DecayTree")], 2, "expected a file"),
        (&["repack", &file, "-o", &other], 2, "--force replaces it"),
        (&["repack", &file, "-o", &file], 2, "both input and output"),
        (&["repack", &missing], 1, "missing.root"),
    ] {
        let error = tupelo(arguments).fails(status);
        assert!(error.contains(expected), "{arguments:?}: {error}");
    }
    assert!(fs::read(&file).expect("a file") == before && fs::metadata(&missing).is_err());
}

/// Why real files are not repacked.
const NOT_REPACKED: [&str; 3] = ["written by a version of ROOT before 3", "cannot be kept", "pre-release format"];

/// Real files, without those that are damaged.
fn real_files() -> Vec<PathBuf> {
    let mut files = Vec::new();
    for folder in ["", "trees", "uproot", "wild", "reports"] {
        let folder = data().map(|data| data.join(folder)).filter(|folder| folder.is_dir());
        for entry in folder.into_iter().flat_map(|folder| fs::read_dir(folder).expect("a folder")) {
            let path = entry.expect("an entry").path();
            let is_root = path.extension().is_some_and(|extension| extension == "root");
            files.extend(is_root.then_some(path));
        }
    }
    files.sort();
    files
}

#[test]
fn real_files_are_repacked() {
    let (mut covered, mut refused) = (0, Vec::new());
    for path in real_files() {
        let place = Place::new();
        let (file, out) = (path.to_str().expect("a path in UTF-8"), place.path("out.root"));
        let run = tupelo(&["repack", file, "-o", &out]);
        if run.status != Some(0) {
            assert!(NOT_REPACKED.iter().any(|reason| run.stderr.contains(reason)), "{file}: {}", run.stderr);
            assert!(fs::metadata(&out).is_err(), "{file}");
            refused.push(run.stderr);
            continue;
        }
        covered += 1;
        let [before, after] = [file, &out].map(|file| tupelo(&["ls", file, "--json"]).json());
        let names = |found: &Value, kind: &str| {
            let of = |it: &Value| it["name"].as_str().or(it["path"].as_str()).expect("a name").to_owned();
            let mut all: Vec<String> = found[kind].as_array().expect("a list").iter().map(of).collect();
            // Older cycles are called by them.
            all.retain(|name| !name.contains(';'));
            all.sort();
            all.dedup();
            all
        };
        for kind in ["ntuples", "trees", "objects"] {
            assert_eq!(names(&before, kind), names(&after, kind), "{file}: {kind}");
        }
        for name in names(&after, "ntuples").into_iter().chain(names(&after, "trees")) {
            let differences = tupelo(&["diff", &format!("{file}:{name}"), &format!("{out}:{name}")]);
            // Branches that cannot be read in either file make a warning and status 1.
            let is_warned = differences.stdout.is_empty() && differences.stderr.contains("is left out");
            assert!(
                differences.status == Some(0) || is_warned,
                "{file}:{name}: {}{}",
                differences.stdout,
                differences.stderr
            );
        }
        tupelo(&["layout", &out]).ok();
    }
    let refused = refused.len();
    summarise("command-repack", &format!("command: {covered} real files repacked, {refused} refused with a reason"));
}

#[test]
fn histograms_of_real_files_are_renamed() {
    let Some(path) = data().map(|data| data.join("uproot/uproot-histograms.root")).filter(|path| path.exists()) else {
        return;
    };
    let place = Place::new();
    let file = place.path("file.root");
    fs::write(&file, fs::read(path).expect("a file")).expect("a file");
    let names = listed(&file);
    let first = names.first().and_then(|name| name.split(';').next()).expect("an object").to_owned();
    let at = |name: &str| format!("{file}:{name}");
    tupelo(&["mv", &at(&first), &at("a/longer_name_than_before")]).ok();
    tupelo(&["verify", &file]).ok();
    assert!(listed(&file).contains(&"a/longer_name_than_before;1".to_owned()), "{:?}", listed(&file));
    tupelo(&["mv", &at("a/longer_name_than_before"), &at(&first)]).ok();
    tupelo(&["rm", &at("a")]).ok();
    let mut after = listed(&file);
    after.sort();
    assert_eq!(after, names);
    tupelo(&["repack", &file]).ok();
    assert_eq!(listed(&file).len(), names.len());
}
