//! `tupelo tune`.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::{Place, tupelo};

/// Events without compression, which can be stored better.
fn unpacked(place: &Place) -> String {
    let (file, unpacked) = (place.nanoaod(), place.path("unpacked.root"));
    tupelo(&["copy", "--quiet", &file, &unpacked, "--compression", "none"]).ok();
    unpacked
}

/// The number of files below a directory.
fn files(directory: &Path) -> u64 {
    let entries = std::fs::read_dir(directory).expect("a directory");
    let count = |path: &Path| if path.is_dir() { files(path) } else { 1 };
    entries.map(|entry| count(&entry.expect("an entry").path())).sum()
}

#[test]
#[cfg(unix)]
fn the_recommended_command_stores_what_was_computed() {
    let place = Place::new();
    let file = unpacked(&place);
    let uri = format!("ntpl+file:{}", place.path("it's tuned"));
    let sizes = ["--page-bytes", "4KiB", "--cluster-bytes", "1MB", "--by", "size", "--mapping", "page"];
    let arguments = [&["tune", &file, "--measure", &uri, "--compression", "zstd:5"], &sizes[..]].concat();
    let run = tupelo(&arguments);
    assert!(run.stderr.contains("; measured"), "{}", run.stderr);
    let printed = run.ok();
    assert!(printed.contains("Recommended: zstd:5, pages of 4KiB, clusters of 1000000, mapping page;"), "{printed}");
    assert!(printed.contains("as it is"), "{printed}");
    // The measurement has removed its objects.
    assert!(
        !Path::new(&place.path("it's tuned.objects")).exists() || files(place.path("it's tuned.objects").as_ref()) == 0
    );
    let document = tupelo(&[&arguments[..], &["--json"]].concat()).json();
    let command = document["command"].as_str().expect("a command");
    assert_eq!(printed.lines().last(), Some(command));
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("tupelo() {{ \"$0\" \"$@\"; }}; {command}"), env!("CARGO_BIN_EXE_tupelo")]);
    let output = shell.current_dir(&place.directory).output().expect("a shell");
    assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(tupelo(&["dump", &uri]).ok(), tupelo(&["dump", &file]).ok());
    // The anchor is beside the folder of the other objects, whose record is not counted. All events are one cluster.
    let (expected, stored) = (&document["recommendation"], files(place.path("it's tuned.objects").as_ref()));
    assert_eq!(expected["objects"], stored);
    let costs = tupelo(&["cost", &uri, "--mapping", "page", "--json"]).json();
    let bytes = |document: &Value| document["bytes"].as_f64().expect("a number");
    let ratio = bytes(expected) / bytes(&costs["mappings"][0]);
    assert!((0.99..1.01).contains(&ratio), "{ratio}");
}

#[test]
fn the_document_has_all_candidates() {
    let place = Place::new();
    let file = unpacked(&place);
    let speed = ["--latency", "50ms", "--bandwidth", "80Mbit/s", "--cores", "2", "--reads", "3"];
    let document = tupelo(&[&["tune", &file, "--json", "--fields", "Muon_*"], &speed[..]].concat()).json();
    let candidates = document["candidates"].as_array().expect("candidates");
    assert_eq!(candidates.len(), 4 * 4 * 3 * 5);
    assert_eq!(document["present"].as_array().map(Vec::len), Some(5));
    assert_eq!(document["sample"]["entries"], 500);
    assert_eq!(document["sample"]["trials"].as_array().map(Vec::len), Some(16));
    assert_eq!(document["speed"]["origin"], "given");
    assert_eq!(document["speed"]["read"]["bytes_per_second"], 1e7);
    let number = |value: &Value| value.as_f64().expect("a number");
    let best = candidates.iter().chain(document["present"].as_array().expect("candidates"));
    let best = best.map(|candidate| number(&candidate["sum_seconds"])).fold(f64::INFINITY, f64::min);
    assert!(number(&document["recommendation"]["sum_seconds"]) <= best * 1.05);
    for candidate in candidates {
        let (write, read) = (&candidate["write"]["seconds"], &candidate["read"]["seconds"]);
        assert!((number(write) + 3.0 * number(read) - number(&candidate["sum_seconds"])).abs() < 1e-9);
    }
    let command = document["command"].as_str().expect("a command");
    assert!(command.starts_with("tupelo copy ") && command.contains(" ntpl+s3://BUCKET/PREFIX "), "{command}");
    // Without values of the user, the output says that they are assumed.
    let run = tupelo(&["tune", &file, "--store", "gs:us-central1", "--compression", "zstd:5", "--by", "money"]);
    assert!(run.stderr.contains("30.0 ms") && run.stderr.contains("assumed"), "{}", run.stderr);
    assert!(run.ok().contains("ntpl+gs://BUCKET/PREFIX"));
}

#[test]
fn nonsense_is_refused() {
    let place = Place::new();
    let file = place.nanoaod();
    for (arguments, expected) in [
        (&["--latency", "30"][..], "'30' is not a latency"),
        (&["--bandwidth", "1GB"], "'1GB' is not a bandwidth"),
        (&["--bandwidth", "0GB/s"], "is not a bandwidth"),
        (&["--cores", "0"], "0 is not in 1.."),
        (&["--by", "speed"], "possible values: time, money, size"),
        (&["--store", "s3:mars"], "lacks prices for 's3:mars'"),
        (&["--mapping", "pages"], "is not a mapping"),
        (&["--compression", "brotli:3"], "brotli"),
        (&["--page-bytes", "2GiB"], "page size of"),
        (&["--latency", "1ms", "--measure", "ntpl+file:x"], "cannot be used with"),
    ] {
        let error = tupelo(&[&["tune", &file], arguments].concat()).fails(2);
        assert!(error.contains(expected), "{arguments:?}: {error}");
    }
    tupelo(&["tune", &file, "--fields", "nothing"]).fails(1);
    let missing = format!("ntpl+file:{}", place.path("missing/events"));
    tupelo(&["tune", &file, "--measure", &missing]).fails(1);
    let table = place.path("prices.json");
    let prices = r#""put_per_1000": 1, "get_per_1000": 2, "read_per_gb": 3, "month_per_gb": 4, "source": "ours""#;
    let text = format!(r#"{{ "date": "today", "stores": {{ "here": {{ {prices} }} }} }}"#);
    std::fs::write(&table, text).expect("a file");
    let here = ["tune", &file, "--prices", &table, "--store", "here", "--latency", "1ms"];
    let error = tupelo(&here).fails(2);
    assert!(error.contains("a typical speed for 'here'") && error.contains("--measure URI"), "{error}");
    let both = [&here[..], &["--bandwidth", "1GB/s", "--compression", "none"]].concat();
    assert!(tupelo(&both).ok().contains(" URI "));
}

/// Defect: trees were refused.
#[test]
fn a_tree_is_tuned_as_the_ntuple_that_it_becomes() {
    let place = Place::new();
    let (tree, out) = (place.path("tree.root"), place.path("out.root"));
    tupelo(&["export", &place.nanoaod(), &tree]).ok();
    let sizes = ["--page-bytes", "4KiB", "--cluster-bytes", "1MB", "--by", "size", "--compression", "zstd:5"];
    let arguments = [&["tune", &tree, "--fields", "Muon_*,MET_pt"], &sizes[..]].concat();
    let printed = tupelo(&arguments).ok();
    let command = printed.lines().last().expect("a command");
    assert!(command.starts_with(&format!("tupelo import {tree} ntpl+s3://BUCKET/PREFIX ")), "{command}");
    let document = tupelo(&[&arguments[..], &["--json"]].concat()).json();
    assert_eq!(document["present"], serde_json::json!([]));
    assert_eq!(document["entries"], 500);
    // What it says is what the import takes.
    let import = ["import", &tree, &out, "--page-bytes", "4KiB", "--cluster-bytes", "1MB", "--compression", "zstd:5"];
    tupelo(&import).ok();
    let mapping = document["recommendation"]["mapping"].as_str().expect("a mapping");
    let costs = tupelo(&["cost", &out, "--mapping", mapping, "--fields", "Muon_*,MET_pt", "--json"]).json();
    for what in ["bytes", "read_bytes"] {
        let number = |document: &Value| document[what].as_f64().expect("a number");
        let ratio = number(&document["recommendation"]) / number(&costs["mappings"][0]);
        assert!((0.97..1.03).contains(&ratio), "{what}: {ratio}");
    }
}

#[test]
fn a_tree_costs_what_its_baskets_take() {
    let place = Place::new();
    let tree = place.path("tree.root");
    tupelo(&["export", &place.nanoaod(), &tree]).ok();
    let cost = |fields: &str| tupelo(&["cost", &tree, "--fields", fields, "--reads", "1000", "--json"]).json();
    let (one, all) = (cost("MET_pt"), cost("*"));
    let number = |document: &Value, what: &str| document["mappings"][0][what].as_f64().expect("a number");
    assert_eq!(
        (one["mappings"][0]["mapping"].as_str(), one["mappings"][0]["objects"].as_u64()),
        (Some("file"), Some(1))
    );
    let size = std::fs::metadata(&tree).expect("a file").len() as f64;
    for document in [&one, &all] {
        assert!((0.5 * size..=1.2 * size).contains(&number(document, "bytes")), "{document}");
    }
    assert!(number(&one, "read_bytes") < number(&all, "read_bytes"));
    assert!(number(&all, "read_bytes") <= number(&all, "bytes") * 1.1);
    let error = tupelo(&["cost", &tree, "--mapping", "page"]).fails(2);
    assert!(error.contains("--mapping does not apply to a tree") && error.contains("tupelo import"), "{error}");
}

/// Single entries are taken fastest from small pages.
#[test]
fn small_pages_are_recommended_for_single_entries() {
    let place = Place::new();
    let file = place.b2hhh();
    let speed =
        ["--latency", "10us", "--bandwidth", "8Mbit/s", "--compression", "lz4:4", "--mapping", "page", "--json"];
    let takes = ["--reads", "0", "--takes", "5"];
    let document = tupelo(&[&["tune", &file], &speed[..], &takes[..]].concat()).json();
    assert_eq!(document["candidates"].as_array().map(Vec::len), Some(6 * 3));
    let best = &document["new_pages"];
    assert_eq!(best["page_bytes"], 4096, "{best}");
    let number = |value: &Value| value.as_f64().expect("a number");
    let sum = number(&best["write"]["seconds"]) + number(&best["take"]["seconds"]);
    assert!((sum - number(&best["sum_seconds"])).abs() < 1e-9, "{best}");
    // A page of each column for each entry, but for those that share one.
    assert!(best["take_requests"].as_u64().is_some_and(|requests| (50..=5 * 26).contains(&requests)), "{best}");
    assert!(number(&best["take_dollars"]) > 0.0, "{best}");
    let document = tupelo(&[&["tune", &file], &speed[..]].concat()).json();
    assert_eq!((&document["takes"], &document["new_pages"]["take"]), (&Value::from(0), &Value::Null));
}
