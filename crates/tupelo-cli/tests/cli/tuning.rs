//! `tupelo tune`.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::{Place, data, summarise, tupelo};

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

/// Runs a recommended command as it is.
#[cfg(unix)]
fn run_in(place: &Place, command: &str) {
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("tupelo() {{ \"$0\" \"$@\"; }}; {command}"), env!("CARGO_BIN_EXE_tupelo")]);
    let output = shell.current_dir(&place.directory).output().expect("a shell");
    assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Runs the command of a document; returns what it wrote, as `tupelo inspect` sees it.
#[cfg(unix)]
fn applied(place: &Place, document: &Value) -> Value {
    let command = document["command"].as_str().expect("a command");
    run_in(place, command);
    let out = command.split(' ').find(|word| word.ends_with("_tuned.root")).expect("an output");
    tupelo(&["inspect", &place.path(out), "--json"]).json()
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
    run_in(&place, command);
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
    let speed =
        ["--store", "s3:eu-west-3", "--latency", "50ms", "--bandwidth", "80Mbit/s", "--cores", "2", "--reads", "3"];
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
        (&["--into", "file", "--mapping", "page"][..], "--mapping does not apply to what is compared: file"),
        (&["--into", "tree", "--page-bytes", "64KiB"], "add --into objects or --into file"),
        (&["--store", "s3:eu-west-3", "--basket-bytes", "64KiB"], "--basket-bytes does not apply"),
        (&["--auto-flush", "100"], "add --into tree"),
        (&["--into", "tree", "--basket-bytes", "1GiB"], "basket size 1073741824 is out of range"),
        (&["--into", "table"], "possible values: objects, file, tree"),
        (&["--use", "read-often", "--reads", "3"], "cannot be used with"),
        (&["--use", "read-often", "--writes", "3"], "cannot be used with"),
        (&["--core-hour=-1"], "expected a number that is not negative"),
        (&["--months", "inf"], "expected a number that is not negative"),
        (&["--latency", "30"], "'30' is not a latency"),
        (&["--bandwidth", "1GB"], "'1GB' is not a bandwidth"),
        (&["--bandwidth", "0GB/s"], "is not a bandwidth"),
        (&["--cores", "0"], "0 is not in 1.."),
        (&["--by", "speed"], "possible values: time, cpu, money, size"),
        (&["--store", "disk:remote", "--by", "money"], "disk:remote has no prices"),
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

/// Defect: a tree whose baskets cannot be moved was not compared with ntuples either.
#[test]
fn what_cannot_hold_a_table_is_not_compared() {
    let name = "wild/root-project+roottest__root_treeformula_clones_nesting3.root";
    let Some(file) = data().map(|data| data.join(name)).filter(|file| file.exists()) else { return };
    let file = file.to_str().expect("UTF-8");
    let document = tupelo(&["tune", file, "--json", "--latency", "1ms", "--bandwidth", "80Mbit/s"]).json();
    assert_eq!(document["not_compared"][0]["what"], "trees");
    assert!(document["not_compared"][0]["error"].as_str().expect("a text").contains("GTT1.mvdrHits"), "{document}");
    assert!(!document["candidates"].as_array().expect("candidates").is_empty());
    tupelo(&["tune", file, "--into", "tree"]).fails(1);
}

/// Defect: trees were refused.
#[test]
fn a_tree_is_tuned_as_the_ntuple_that_it_becomes() {
    let place = Place::new();
    let (tree, out) = (place.path("tree.root"), place.path("out.root"));
    tupelo(&["export", &place.nanoaod(), &tree]).ok();
    let sizes = ["--page-bytes", "4KiB", "--cluster-bytes", "1MB", "--by", "size", "--compression", "zstd:5"];
    let arguments = [&["tune", &tree, "--store", "s3:eu-west-3", "--fields", "Muon_*,MET_pt"], &sizes[..]].concat();
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

/// What is predicted of the file is what the command writes, by a sample of an eighth of the entries.
#[test]
#[cfg(unix)]
fn files_are_written_as_recommended() {
    let place = Place::new();
    let (file, tree) = (place.path("events.root"), place.path("tree.root"));
    // Existing pages are larger, and so not recommended.
    tupelo(&["generate", "nanoaod", "--quiet", "--events", "20000", "--compression", "none", &file]).ok();
    tupelo(&["export", "--quiet", &file, &tree, "--compression", "none"]).ok();
    let sizes = ["--by", "size", "--sample", "1MiB", "--json"];
    for (input, into, more) in [
        (&file, "file", &["--compression", "lz4:4", "--page-bytes", "64KiB", "--cluster-bytes", "1MB"][..]),
        (&tree, "file", &["--compression", "zstd:5", "--page-bytes", "16KiB"]),
        (&file, "tree", &["--compression", "lz4:4", "--basket-bytes", "8KiB", "--auto-flush", "-500000"]),
        (&file, "tree", &["--compression", "zstd:1"]),
        (&tree, "tree", &["--compression", "zlib:1", "--basket-bytes", "16KiB", "--auto-flush", "3000"]),
        (&tree, "tree", &["--compression", "lz4:4", "--auto-flush", "100"]),
    ] {
        let what = format!("{input} as {into} with {more:?}");
        let document = tupelo(&[&["tune", input, "--into", into], &sizes[..], more].concat()).json();
        assert!(document["sample"]["entries"].as_u64() < Some(5000), "{what}");
        let (best, written) = (&document["recommendation"], applied(&place, &document));
        let number = |value: &Value| value.as_f64().expect("a number");
        let size = number(&written["bytes"]["file_bytes"]);
        assert!((0.9..1.1).contains(&(number(&best["bytes"]) / size)), "{what}: {} of {size}", best["bytes"]);
        let close = |what: &str, predicted: &Value, actual: &Value| {
            let ratio = number(predicted) / number(actual);
            assert!((0.9..1.1).contains(&ratio), "{what}: {predicted} instead of {actual}");
        };
        close(&what, &best["entry_bytes"], &written["entry_bytes"]);
        close(&what, &best["unpacked_entry_bytes"], &Value::from(number(&written["bytes"]["unpacked_bytes"]) / 20e3));
        // The settings are those of the recommendation.
        let codecs: Vec<&Value> = written["codecs"].as_array().expect("codecs").iter().map(|it| &it["name"]).collect();
        assert_eq!(codecs, [&best["compression"]], "{what}");
        let (clusters, entries) = (&written["clusters"]["count"], &written["clusters"]["entries"]["largest"]);
        match into {
            "tree" => assert_eq!((&best["clusters"], &best["auto_flush"]), (clusters, entries), "{what}"),
            _ => assert!(number(&best["clusters"]) - number(clusters) <= 1.0, "{what}: {clusters}"),
        }
        let class = if into == "tree" { "TTree" } else { "ROOT::RNTuple" };
        assert_eq!(written["class"], class, "{what}");
        let out = written["file"].as_str().expect("a file");
        assert_eq!(
            tupelo(&["dump", out, "--fields", "MET_pt"]).ok(),
            tupelo(&["dump", input, "--fields", "MET_pt"]).ok()
        );
        std::fs::remove_file(out).expect("a file");
    }
}

#[test]
#[cfg(unix)]
fn containers_and_uses_are_compared() {
    let place = Place::new();
    let file = unpacked(&place);
    let document = |arguments: &[&str]| {
        let own = ["--compression", "none", "--compression", "zstd:5", "--json"];
        tupelo(&[&["tune", &file], &own[..], arguments].concat()).json()
    };
    let number = |value: &Value| value.as_f64().expect("a number");
    let both = document(&["--into", "tree", "--into", "file", "--store", "disk:hdd", "--use", "write-often"]);
    assert_eq!((&both["writes"], &both["reads"], &both["store"]), (&100.into(), &1.into(), &"disk:hdd".into()));
    assert_eq!(both["speed"]["concurrent_requests"], 1);
    let all = both["candidates"].as_array().expect("candidates");
    let count = |container: &str| all.iter().filter(|candidate| candidate["container"] == container).count();
    assert_eq!((count("file"), count("tree"), all.len()), (2 * 4 * 3, 2 * 2 * 2, 2 * 4 * 3 + 2 * 2 * 2));
    // What encoding the existing pages takes is unknown, and matters where entries are written often.
    assert!(both["recommendation"]["compression"].is_string(), "{}", both["recommendation"]);
    // The existing ntuple is one of a file, and disks have no prices.
    assert_eq!(both["present"].as_array().map(Vec::len), Some(1));
    assert_eq!((&both["present"][0]["container"], &both["present"][0]["mapping"]), (&"file".into(), &Value::Null));
    for candidate in all {
        let sum = 100.0 * number(&candidate["write"]["seconds"]) + number(&candidate["read"]["seconds"]);
        assert!((sum - number(&candidate["sum_seconds"])).abs() < 1e-6, "{candidate}");
        assert_eq!((&candidate["write_requests"], number(&candidate["sum_dollars"])), (&1.into(), 0.0));
        assert!(number(&candidate["entry_bytes"]) < number(&candidate["entry_bytes_with_metadata"]), "{candidate}");
        assert!(number(&candidate["entry_bytes"]) <= number(&candidate["unpacked_entry_bytes"]) * 1.3, "{candidate}");
    }
    // CPU time has a price, and space in a cloud for a year.
    let rented = document(&["--store", "s3:eu-west-3", "--into", "file", "--core-hour", "3.6", "--months", "12"]);
    let best = &rented["recommendation"];
    assert!((number(&best["cpu_dollars"]) - number(&best["sum_core_seconds"]) / 1000.0).abs() < 1e-12, "{best}");
    assert!((number(&best["month_dollars"]) - 12.0 * number(&best["bytes"]) / 1e9 * 0.024).abs() < 1e-9, "{best}");
    assert!(rented["command"].as_str().is_some_and(|command| command.contains(" s3://BUCKET/unpacked_tuned.root")));
    let printed = tupelo(&["tune", &file, "--into", "file", "--by", "cpu", "--compression", "zstd:5"]).ok();
    assert!(printed.contains("An entry: ") && printed.contains(" B with metadata"), "{printed}");
    assert!(printed.contains("INTO") && printed.contains("SUM CPU"), "{printed}");
    // A tree may become either.
    let tree = place.path("tree.root");
    tupelo(&["export", &file, &tree]).ok();
    let of_tree = tupelo(&["tune", &tree, "--compression", "zstd:5", "--json"]).json();
    let found = |what: &str| {
        let all = of_tree[what].as_array().expect("candidates");
        all.iter().map(|it| it["container"].as_str().expect("a text").to_owned()).collect::<BTreeSet<_>>()
    };
    assert_eq!(found("candidates"), BTreeSet::from(["file".to_owned(), "tree".to_owned()]));
    assert_eq!(found("present"), BTreeSet::from(["tree".to_owned()]));
}

/// Fields that a tree cannot hold are left out by the command too.
#[test]
#[cfg(unix)]
fn what_a_container_cannot_hold_is_named() {
    let place = Place::new();
    let file = place.path("optional.root");
    let events = place.nanoaod();
    tupelo(&["copy", &events, &place.path("part.root"), "--exclude", "MET_pt"]).ok();
    tupelo(&["copy", &events, &place.path("part.root"), "--union", "-o", &file]).ok();
    let arguments = ["tune", &file, "--into", "tree", "--compression", "zstd:5"];
    let run = tupelo(&arguments);
    assert!(run.stderr.contains("cannot hold 1 thing of 'Events': field 'MET_pt'"), "{}", run.stderr);
    let document = tupelo(&[&arguments[..], &["--json"]].concat()).json();
    assert_eq!(document["left_out"].as_array().map(Vec::len), Some(1));
    let written = applied(&place, &document);
    assert_eq!(written["entries"], 1000);
    let error = tupelo(&[&arguments[..], &["--fields", "MET_pt"]].concat()).fails(1);
    assert!(error.contains("a tree can hold none of the fields that are read"), "{error}");
}

/// Real trees are tuned, and what is recommended can be done.
#[test]
#[cfg(unix)]
fn real_trees_are_stored_as_recommended() {
    let place = Place::new();
    let mut covered = 0;
    for (file, name) in [
        ("atlas_daod_physlite_tree.root", "CollectionTree"),
        ("cms_nanoaod_2015_ttbar_tree.root", "Events"),
        ("lhcb_phase_space_simulation.root", "PhaseSpaceTree"),
    ] {
        let Some(path) = data().map(|data| data.join(file)).filter(|path| path.exists()) else { continue };
        let input = format!("{}:{name}", path.display());
        for into in ["tree", "file"] {
            let arguments = ["tune", &input, "--into", into, "--by", "size", "--compression", "zstd:5", "--json"];
            let document = tupelo(&arguments).json();
            let written = applied(&place, &document);
            let (predicted, size) = (&document["recommendation"]["bytes"], &written["bytes"]["file_bytes"]);
            let ratio = predicted.as_f64().expect("a number") / size.as_f64().expect("a number");
            assert!((0.9..1.1).contains(&ratio), "{input} as {into}: {predicted} instead of {size}");
            std::fs::remove_file(written["file"].as_str().expect("a file")).expect("a file");
            covered += 1;
            // Regression: baskets in the record of the tree counted as if they were not compressed.
            let inspected = tupelo(&["inspect", &input, "--json"]).json();
            let number = |value: &Value, name: &str| value[name].as_f64().expect("a number");
            for present in document["present"].as_array().into_iter().flatten() {
                let bytes = number(present, "entry_bytes");
                assert!(bytes <= number(present, "entry_bytes_with_metadata"), "{input}");
                // Branches that cannot be read have bytes, too.
                assert!((1.0..1.05).contains(&(bytes / number(&inspected, "entry_bytes"))), "{input}: {bytes}");
            }
        }
    }
    summarise("command-tuned", &format!("command: {covered} recommendations for real trees applied"));
}

#[test]
fn nothing_to_tune_is_an_error() {
    let place = Place::new();
    let empty = place.path("empty.root");
    tupelo(&["copy", &place.nanoaod(), &empty, "--entries", ":0"]).ok();
    let tree = place.path("empty-tree.root");
    tupelo(&["export", &empty, &tree]).ok();
    for (file, into) in [(&empty, "file"), (&empty, "tree"), (&tree, "file"), (&tree, "tree")] {
        let error = tupelo(&["tune", file, "--into", into]).fails(2);
        assert!(error.contains("it has no entries to measure"), "{error}");
    }
    let hostile = data().map(|data| data.join("hostile")).filter(|folder| folder.is_dir());
    for entry in hostile.map(|folder| std::fs::read_dir(folder).expect("a folder")).into_iter().flatten() {
        let path = entry.expect("an entry").path();
        let run = tupelo(&["tune", path.to_str().expect("UTF-8"), "--sample", "64KiB", "--compression", "lz4:4"]);
        assert!(matches!(run.status, Some(0..=2)), "{}: {}", path.display(), run.stderr);
    }
}
