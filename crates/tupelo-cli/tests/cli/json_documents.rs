//! What `--json` prints, and the page that describes it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;

use super::{Place, tupelo};

/// The keys of each document in the guide; those of all documents under an empty name.
fn documented() -> BTreeMap<String, BTreeSet<String>> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/json.md");
    let page = std::fs::read_to_string(page).expect("a page");
    let mut documents: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut document = String::new();
    for line in page.lines() {
        if let Some(title) = line.strip_prefix("## ") {
            document = title.trim_matches('`').to_owned();
        }
        let Some(keys) = line.strip_prefix("| `").and_then(|rest| rest.split(" |").next()) else { continue };
        documents
            .entry(document.clone())
            .or_default()
            .extend(keys.split("`, `").map(|key| key.trim_matches('`').into()));
    }
    documents
}

fn documents(arguments: &[&str]) -> Vec<Value> {
    let run = tupelo(arguments);
    serde_json::Deserializer::from_str(&run.stdout).into_iter::<Value>().map(|value| value.expect("JSON")).collect()
}

#[test]
fn the_guide_has_the_keys_of_all_documents() {
    let place = Place::new();
    let file = place.b2hhh();
    let tree = place.path("tree.root");
    tupelo(&["export", &file, &tree]).ok();
    let (named, uri) = (format!("{file}:DecayTree"), format!("ntpl+file:{}", place.path("stored")));
    tupelo(&["copy", &file, &uri]).ok();
    let speed = ["--latency", "1ms", "--bandwidth", "80Mbit/s"];
    let tune = [&["tune", &file, "--json"], &speed[..]].concat();
    let saved = place.path("saved.root");
    let runs: [&[&str]; 15] = [
        &["ls", &file, "--json"],
        &["ls", &named, "--json"],
        &["ls", &tree, "--json"],
        &["ls", &format!("{tree}:DecayTree"), "--json"],
        &["schema", &file, "--json"],
        &["verify", &file, &tree, "--json"],
        &["verify", "--repair", &file, "--json"],
        &["verify", "--salvage", &saved, &file, "--json"],
        &["layout", &file, "--json"],
        &["explain", &file, "--json"],
        &["inspect", &file, "--json", "--read", "--fields", "H1_*"],
        &["inspect", &tree, "--json"],
        &["cost", &file, "--json"],
        &["gc", "--dry-run", &uri, "--json"],
        &tune,
    ];
    let documented = documented();
    let common = &documented[""];
    for arguments in runs {
        let printed = documents(arguments);
        assert!(!printed.is_empty(), "{arguments:?}");
        for document in printed {
            let name = document["document"].as_str().expect("a name");
            assert_eq!((name, document["version"].as_u64()), (arguments[0], Some(1)), "{arguments:?}");
            assert!(document["file"].is_string() && document.get("error").is_none(), "{arguments:?}");
            let known = &documented[name];
            let unknown: Vec<_> = document
                .as_object()
                .expect("keys")
                .keys()
                .filter(|key| !known.contains(*key) && !common.contains(*key))
                .collect();
            assert!(unknown.is_empty(), "{arguments:?}: {unknown:?} are not in docs/guide/json.md");
        }
    }
}

#[test]
fn a_file_that_cannot_be_opened_has_a_document_with_the_error() {
    let place = Place::new();
    let (file, missing) = (place.b2hhh(), place.path("missing.root"));
    for command in ["ls", "verify", "schema"] {
        let run = tupelo(&[command, "--json", &missing, &file]);
        assert_eq!(run.status, Some(1), "{command}");
        let printed = documents(&[command, "--json", &missing, &file]);
        assert_eq!(printed.len(), 2, "{command}");
        assert!(printed[0]["error"].as_str().is_some_and(|error| error.contains("missing.root")), "{command}");
        assert_eq!(printed[0]["file"], missing.as_str(), "{command}");
        assert!(printed[1].get("error").is_none(), "{command}");
        let [alone] = &documents(&[command, "--json", &missing])[..] else { panic!("{command}") };
        assert!(alone["error"].is_string(), "{command}");
    }
}
