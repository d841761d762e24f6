//! `tupelo copy` and `tupelo-generate`.

use serde_json::json;

use super::{Place, tupelo};

#[test]
fn the_same_seed_gives_the_same_events() {
    let place = Place::new();
    let dump = |name: &str, seed: &str| {
        let path = place.path(name);
        tupelo(&["generate", "nanoaod", "--events", "50", "--seed", seed, &path]).ok();
        tupelo(&["dump", &path]).ok()
    };
    let first = dump("a.root", "1");
    assert_eq!(dump("b.root", "1"), first);
    assert_ne!(dump("c.root", "2"), first);
}

#[test]
fn the_generator_names_and_refuses_its_own_options() {
    let place = Place::new();
    let path = place.path("a.root");
    let arguments = ["generate", "b2hhh", "--events", "10", &path];
    // Regression: the option was ignored, and the events were others than those of the file.
    let error = tupelo(&[&arguments[..], &["--from", "events.root"]].concat()).fails(2);
    assert!(error.contains("error: --from events.root is for physlite"), "{error}");
    assert!(!std::fs::exists(&path).expect("a folder"), "nothing is written");
    tupelo(&arguments).ok();
    // Regression: the hint named -o, which the program does not have.
    let error = tupelo(&arguments).fails(2);
    assert!(error.contains("hint: --force replaces it; --append adds to it"), "{error}");
    tupelo(&[&arguments[..], &["--force"]].concat()).ok();
}

#[test]
fn copies_have_the_same_entries() {
    let place = Place::new();
    let file = place.nanoaod();
    let copy = place.path("copy.root");
    for codec in ["none", "lz4", "zlib:6", "lzma:1", "zstd:9", "404"] {
        tupelo(&["copy", &file, "-o", &copy, "--force", "--compression", codec, "--page-bytes", "1k"]).ok();
        assert_eq!(tupelo(&["dump", &copy]).ok(), tupelo(&["dump", &file]).ok(), "{codec}");
        tupelo(&["verify", &copy]).ok();
    }
    let listed = tupelo(&["ls", &copy, "--json"]).json();
    assert_eq!(listed["ntuples"][0]["codec"], json!("lz4:4"));
}

#[test]
fn fields_and_entries_are_selected() {
    let place = Place::new();
    let file = place.nanoaod();
    let copy = place.path("copy.root");
    let chosen = ["--fields", "MET_*,Muon_pt", "--entries", "100:-100"];
    tupelo(&[&["copy", &file, &format!("{copy}:small/Few")], &chosen[..]].concat()).ok();
    let expected = tupelo(&[&["dump", &file], &chosen[..]].concat()).ok();
    assert_eq!(expected.lines().count(), 300);
    assert_eq!(tupelo(&["dump", &format!("{copy}:small/Few")]).ok(), expected);
}

#[test]
fn existing_files_need_an_option() {
    let place = Place::new();
    let (nanoaod, b2hhh) = (place.nanoaod(), place.b2hhh());
    let all = place.path("all.root");
    tupelo(&["copy", &nanoaod, &all]).ok();
    let error = tupelo(&["copy", &b2hhh, &all]).fails(2);
    assert!(error.contains("exists") && error.contains("--force") && error.contains("--append"), "{error}");
    tupelo(&["copy", &b2hhh, &all, "--append"]).ok();
    let names = |file: &str| {
        let listed = tupelo(&["ls", file, "--json"]).json();
        let ntuples = listed["ntuples"].as_array().expect("ntuples").clone();
        ntuples.iter().map(|ntuple| ntuple["name"].as_str().expect("a name").to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(&all), ["Events", "DecayTree"]);
    let error = tupelo(&["dump", &all]).fails(2);
    assert!(error.contains("'Events'") && error.contains("'DecayTree'"), "{error}");
    assert!(tupelo(&["copy", &all, &place.path("one.root:Name")]).fails(2).contains("cannot have the same name"));
    tupelo(&["verify", &all]).ok();
    let both = place.path("both.root");
    tupelo(&["copy", &all, &both]).ok();
    assert_eq!(names(&both), ["Events", "DecayTree"]);
    tupelo(&["copy", &b2hhh, "-o", &all, "--force"]).ok();
    assert_eq!(names(&all), ["DecayTree"]);
}

#[test]
fn a_failed_copy_leaves_no_file() {
    let place = Place::new();
    let file = place.nanoaod();
    let copy = place.path("copy.root");
    tupelo(&["copy", &file, &copy, "--fields", "no_such_field"]).fails(1);
    assert!(!std::fs::exists(&copy).expect("an answer"));
}

#[test]
fn copies_have_defined_columns() {
    let place = Place::new();
    let file = place.nanoaod();
    let copy = place.path("defined.root");
    let define =
        ["--define", "ht=sum(Muon_pt)", "--define", "twice = ht * 2", "--define", "hard=Muon_pt[Muon_pt > 10]"];
    let cut = ["--where", "twice > 20 and MET_pt > 5"];
    let fields = ["--fields", "MET_pt,Muon_pt"];
    tupelo(&[&["copy", &file, &copy], &define[..], &cut, &fields].concat()).ok();
    let written = tupelo(&["dump", &copy]).ok();
    assert_eq!(tupelo(&[&["dump", &file], &define[..], &cut, &fields].concat()).ok(), written);
    let first: serde_json::Value = serde_json::from_str(written.lines().next().expect("an entry")).expect("JSON");
    let names: Vec<&String> = first.as_object().expect("an object").keys().collect();
    assert_eq!(names.len(), 5, "{names:?}");
    let sum: f64 = first["Muon_pt"].as_array().expect("a list").iter().filter_map(serde_json::Value::as_f64).sum();
    assert!((first["twice"].as_f64().expect("a number") - 2.0 * sum).abs() < 1e-3, "{first}");
    // Also in other formats, and as a table.
    let csv = tupelo(&[&["dump", "--format", "csv", &file], &define[..], &cut, &fields].concat()).ok();
    assert_eq!(csv.lines().next(), Some("MET_pt,Muon_pt,ht,twice,hard"));
    assert_eq!(csv.lines().count(), written.lines().count() + 1);
    let head = tupelo(&[&["head", "-n", "3", &file], &define[..], &cut, &fields].concat()).ok();
    assert!(head.lines().next().expect("names").ends_with("hard"), "{head}");
    assert_eq!(head.lines().count(), 4);
    let lines = tupelo(&[&["head", "-n", "3", "--format", "jsonl", &file], &define[..], &cut, &fields].concat()).ok();
    assert_eq!(lines.lines().collect::<Vec<_>>(), written.lines().take(3).collect::<Vec<_>>());
}

#[test]
fn invalid_definitions_are_explained() {
    let place = Place::new();
    let file = place.nanoaod();
    let copy = place.path("no.root");
    for (definition, wanted) in [
        ("ht", "expected NAME=EXPRESSION"),
        ("=1", "expected NAME=EXPRESSION"),
        ("ht==1", "expected NAME=EXPRESSION"),
        ("ht=sum(", "expected a value at the end"),
        ("ht=sum(Muon_p)", "no field named 'Muon_p'"),
        ("MET_pt=1.5", "field 'MET_pt' already exists"),
        ("ht=MET_pt ^ 2", "write ** for powers"),
    ] {
        let done = tupelo(&["copy", &file, &copy, "--define", definition]);
        assert_ne!(done.status, Some(0));
        let error = done.stderr;
        assert!(error.contains(wanted), "{definition}: {error}");
        assert!(!std::path::Path::new(&copy).exists());
    }
}
