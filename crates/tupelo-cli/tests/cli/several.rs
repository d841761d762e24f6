//! Several files, wildcards, directories in files.

use serde_json::json;

use super::{Place, tupelo};

#[test]
fn several_files_are_listed() {
    let place = Place::new();
    let (decays, events) = (place.b2hhh(), place.nanoaod());
    for arguments in [&["ls", &decays, &events][..], &["ls", &place.path("*.root")]] {
        let listed = tupelo(arguments).ok();
        let lines: Vec<_> = listed.lines().collect();
        assert!(lines[0].starts_with(&decays) && listed.contains(&format!("\n\n{events}, ")), "{listed}");
        assert!(listed.contains("DecayTree") && listed.contains("Events"), "{listed}");
    }
    let documents = tupelo(&["ls", "--json", &decays, &events]).ok();
    let documents: Vec<serde_json::Value> =
        serde_json::Deserializer::from_str(&documents).into_iter().map(|one| one.expect("JSON")).collect();
    assert_eq!(documents.iter().map(|one| one["file"].clone()).collect::<Vec<_>>(), [json!(decays), json!(events)]);
    let schemas = tupelo(&["schema", &format!("{}:Events", place.path("n*.root")), &decays]).ok();
    assert!(schemas.contains("Events: 500 entries") && schemas.contains("DecayTree: 3 000 entries"), "{schemas}");
    assert!(tupelo(&["ls", &place.path("x*.root")]).fails(1).contains("no file matches"));
    let differ = tupelo(&["head", &place.path("*.root")]).fails(1);
    assert!(differ.contains("no field in common") && differ.contains("--union"), "{differ}");
    assert!(tupelo(&["layout", &place.path("*.root")]).fails(2).contains("2 files match"));
    assert_eq!(tupelo(&["head", "-n1", &place.path("n*.root")]).ok(), tupelo(&["head", "-n1", &events]).ok());
    // Other files are listed after an error.
    let run = tupelo(&["ls", &place.path("none.root"), &decays]);
    assert!(run.stdout.contains("DecayTree"), "{}", run.stdout);
    let error = run.fails(1);
    assert!(error.contains("none.root") && error.contains("1 of 2 files failed"), "{error}");
}

#[test]
fn several_files_are_one_sequence_of_entries() {
    let place = Place::new();
    let (all, first, second) = (place.nanoaod(), place.path("part1.root"), place.path("part2.root"));
    tupelo(&["copy", &all, &first, "--entries", ":200"]).ok();
    tupelo(&["copy", &all, &second, "--entries", "200:", "--exclude", "MET_pt"]).ok();
    let both = format!("{}:Events", place.path("part?.root"));
    for options in [&["--entries", "150:250"][..], &["--entries", "-5:"], &["--cut", "len(Muon_pt) == 2"], &[]] {
        for command in [&["dump"][..], &["dump", "--format", "csv"], &["head"], &["head", "-n", "3"]] {
            let run = |input: &str| {
                let fields = ["--fields", "event,Muon_*", input];
                tupelo(&[command, options, &fields[..]].concat()).ok()
            };
            assert_eq!(run(&both), run(&all), "{command:?} {options:?}");
        }
    }
    // Fields that some files lack are skipped, or missing values.
    let run = tupelo(&["dump", &first, &second, "--entries", "199:201", "--fields", "event,MET_*"]);
    assert!(run.stderr.contains("skipped the fields missing in some files: MET_pt; --union"), "{}", run.stderr);
    assert!(!run.ok().contains("MET_pt"));
    let union = tupelo(&["dump", &first, &second, "--union", "--entries", "199:201", "--fields", "MET_pt"]).ok();
    let values: Vec<serde_json::Value> = union
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON")["MET_pt"].clone())
        .collect();
    assert!(values[0].is_number() && values[1].is_null(), "{union}");
    // A field that some files lack may be excluded, but one that all lack is a mistake.
    for union in [&[][..], &["--union"]] {
        let arguments = [&["dump", &first, &second, "--exclude", "MET_pt"], union].concat();
        let excluded = tupelo(&arguments).ok();
        assert!(!excluded.contains("MET_pt") && excluded.contains("event"), "{excluded}");
        let arguments = [&["dump", &first, &second, "--exclude", "MET_tp"], union].concat();
        let unknown = tupelo(&arguments).fails(1);
        assert!(unknown.contains("no field named 'MET_tp'"), "{unknown}");
    }
    let unknown = tupelo(&["dump", &first, &second, "--union", "--fields", "MET_pt,MET_tp"]).fails(1);
    assert!(unknown.contains("no field named 'MET_tp'"), "{unknown}");
    let columns = |name: &str| {
        let out = place.path(name);
        tupelo(&["dump", &both, "--union", "--fields", "event,MET_pt", "-o", &out]).ok();
        std::fs::metadata(out).expect("a file").len()
    };
    assert!(columns("all.parquet") > 0 && columns("all.arrow") > 0);
    let twice = tupelo(&["dump", &first, &first, "--metrics", "--fields", "event"]);
    assert!(twice.stderr.contains("part1.root occurs more than once"), "{}", twice.stderr);
    assert_eq!(twice.stderr.matches("requests").count(), 1, "one total: {}", twice.stderr);
    assert_eq!(twice.ok().lines().count(), 400);
    let error = tupelo(&["dump", &first, &second, "-o", &second]).fails(2);
    assert!(error.contains("both input and output"), "{error}");
    let error = tupelo(&["head", &first, &place.path("none.root")]).fails(1);
    assert!(error.contains("none.root"), "{error}");
}

#[test]
fn several_files_are_verified() {
    let place = Place::new();
    let (a, b) = (place.b2hhh(), place.nanoaod());
    let run = tupelo(&["verify", &a, &b]);
    assert!(run.stderr.contains("2 files: all intact"), "{}", run.stderr);
    assert_eq!(run.ok(), "");
    let mut bytes = std::fs::read(&a).expect("a file");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&a, bytes).expect("a file");
    let run = tupelo(&["verify", &place.path("*.root")]);
    assert!(run.stdout.starts_with(&format!("{a}: ")), "{}", run.stdout);
    let error = run.fails(1);
    assert!(error.contains("damage in") && error.contains("1 of 2 files failed"), "{error}");
    assert!(error.contains("nanoaod.root: 72 pages"), "the others are checked too: {error}");
}

#[test]
fn a_directory_in_a_file_is_listed() {
    let place = Place::new();
    let (file, all) = (place.nanoaod(), place.path("all.root"));
    for name in ["top", "dir/One", "dir/deep/Two", "dirt/Three"] {
        tupelo(&["copy", &file, &all, "--append", "--as", name]).ok();
    }
    for directory in ["dir", "dir/"] {
        let listed = tupelo(&["ls", &format!("{all}:{directory}"), "--json"]).json();
        let names: Vec<_> =
            listed["ntuples"].as_array().expect("ntuples").iter().map(|one| one["name"].clone()).collect();
        assert_eq!(names, [json!("dir/One"), json!("dir/deep/Two")]);
    }
    let table = tupelo(&["ls", &format!("{all}:dir/deep")]).ok();
    assert!(table.contains("dir/deep/Two") && !table.contains("One"), "{table}");
    for command in ["ls", "head", "schema", "verify"] {
        tupelo(&[command, &format!("{all}:dir/deep/Two")]).ok();
    }
    let error = tupelo(&["ls", &format!("{all}:dri")]).fails(1);
    assert!(error.contains("'dri'") && error.contains(&format!("`tupelo ls {all}`")), "{error}");
}

/// Defect: files without ntuples were reported as intact without a warning.
#[test]
fn files_without_an_ntuple_are_counted() {
    let place = Place::new();
    let file = place.b2hhh();
    let empty = ["a.root", "b.root"].map(|name| place.path(name));
    for path in &empty {
        tupelo::create(path).expect("a file").finish().expect("a file");
    }
    let run = tupelo(&["verify", &empty[0], &file]);
    assert!(run.stderr.contains("2 files: all intact; 1 of them contains no ntuple"), "{}", run.stderr);
    assert!(
        run.stderr.contains(&format!("warning: {}: the file contains no ntuple and no tree", empty[0])),
        "{}",
        run.stderr
    );
    run.ok();
    let run = tupelo(&["verify", "--json", &empty[0], &file, &empty[1]]);
    assert!(run.stderr.contains("3 files: all intact; 2 of them contain no ntuple"), "{}", run.stderr);
    let documents = run.ok();
    let documents = serde_json::Deserializer::from_str(&documents).into_iter();
    let warnings: Vec<_> =
        documents.map(|one: Result<serde_json::Value, _>| one.expect("JSON")["warnings"].clone()).collect();
    assert_eq!(
        warnings,
        [
            json!(["the file contains no ntuple and no tree"]),
            json!([]),
            json!(["the file contains no ntuple and no tree"])
        ]
    );
    let run = tupelo(&["verify", &empty[0]]);
    assert!(run.stderr.contains("warning: ") && run.stderr.contains("contains no ntuple"), "{}", run.stderr);
    run.ok();
}

/// Defect: duplicate inputs were copied without a warning.
#[test]
fn duplicate_inputs_are_reported() {
    let place = Place::new();
    let file = place.b2hhh();
    let copy = place.path("copy.root");
    let folder = place.directory.path().file_name().expect("a name").to_str().expect("UTF-8");
    let other = place.path(&format!("../{folder}/b2hhh.root"));
    let run = tupelo(&["copy", &file, &other, &copy]);
    assert!(run.stderr.contains(&format!("warning: {other} occurs more than once")), "{}", run.stderr);
    run.ok();
    assert_eq!(tupelo(&["ls", &copy, "--json"]).json()["ntuples"][0]["entries"], json!(6000));
    let run = tupelo(&["copy", &file, &copy, &place.path("all.root")]);
    assert!(!run.stderr.contains("warning"), "{}", run.stderr);
    run.ok();
}

/// Defect: the hint was to leave it out.
#[test]
fn a_forgotten_option_of_the_output_has_a_hint() {
    let place = Place::new();
    let (file, out) = (place.b2hhh(), place.path("out.parquet"));
    let error = tupelo(&["dump", &file, &out]).fails(1);
    assert!(error.contains(&format!("use -o {out} to make it the output")), "{error}");
    let missing = ["a.root", "b.root"].map(|name| place.path(name));
    let error = tupelo(&["dump", &missing[0], &missing[1]]).fails(1);
    assert!(!error.contains("--skip-errors"), "{error}");
}
