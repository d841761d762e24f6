//! All read commands, and `copy`, for real files.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{Place, data, summarise, tupelo};

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let mut files: Vec<_> = entries.filter(|path| path.extension().is_some_and(|e| e == "root")).collect();
    files.sort();
    files
}

#[test]
fn real_files_are_read_and_copied() {
    let (mut covered, mut ntuples) = (0, 0);
    for path in data().map(|folder| files(&folder)).unwrap_or_default() {
        let file = path.to_str().expect("a path in UTF-8");
        let listed = tupelo(&["ls", file, "--json"]).json();
        covered += 1;
        let place = Place::new();
        let copy = place.path("copy.root");
        if listed["ntuples"] != json!([]) {
            tupelo(&["copy", file, &copy, "--compression", "lz4"]).ok();
            tupelo(&["verify", &copy]).ok();
        }
        for ntuple in listed["ntuples"].as_array().expect("ntuples") {
            ntuples += 1;
            let name = ntuple["name"].as_str().expect("a name");
            let dumped = tupelo(&["dump", &format!("{file}:{name}")]).ok();
            assert_eq!(json!(dumped.lines().count()), ntuple["entries"], "{file}:{name}");
            for line in dumped.lines() {
                serde_json::from_str::<Value>(line).expect("JSON");
            }
            let again = tupelo(&["dump", &format!("{copy}:{name}")]).ok();
            assert!(again == dumped, "{file}:{name} changed when it was copied");
            tupelo(&["schema", &format!("{file}:{name}"), "--columns"]).ok();
            tupelo(&["head", &format!("{file}:{name}")]).ok();
        }
        tupelo(&["verify", file]).ok();
        let layout = tupelo(&["layout", file, "--json"]).json();
        assert_eq!(layout["remarks"], json!([]), "{file}");
        let mut at = 0;
        for region in layout["regions"].as_array().expect("regions") {
            assert_eq!(region["offset"], json!(at), "{file}");
            assert_ne!(region["what"], json!("unaccounted"), "{file}");
            at += region["bytes"].as_u64().expect("a number");
        }
        assert_eq!(layout["bytes"], json!(at), "{file}");
    }
    summarise(
        "command",
        &format!("command: {ntuples} ntuples in {covered} real files listed, dumped, verified, mapped, copied"),
    );
}

#[test]
fn files_of_trees_are_listed() {
    let trees = data().map(|folder| folder.join("trees")).filter(|folder| folder.is_dir());
    let mut covered = 0;
    for path in trees.map(|folder| files(&folder)).unwrap_or_default() {
        let file = path.to_str().expect("a path in UTF-8");
        let listed = tupelo(&["ls", file, "--json"]).json();
        assert_eq!(listed["ntuples"], json!([]), "{file}");
        tupelo(&["layout", file]).ok();
        covered += 1;
    }
    summarise("command-trees", &format!("command: {covered} real files of trees listed and mapped"));
}

/// Defects: of `std::bitset`, ROOT has written nothing, and ROOT 4 kept an empty basket in branches that hold others.
#[test]
fn intact_files_are_not_called_damaged() {
    let (mut covered, mut unchecked) = (0, 0);
    for folder in ["", "trees", "uproot", "wild", "reports"] {
        let folder = data().map(|data| data.join(folder)).filter(|folder| folder.is_dir());
        for path in folder.map(|folder| files(&folder)).unwrap_or_default() {
            let file = path.to_str().expect("a path in UTF-8");
            let run = tupelo(&["verify", "--json", file]);
            // Its objects cannot be found.
            if file.ends_with("unclosed_never_saved.root") {
                assert_eq!(run.status, Some(1));
                continue;
            }
            // Some are from before format 1.0.
            let Ok(report) = serde_json::from_str::<Value>(&run.stdout) else { continue };
            assert_eq!(report["damages"], json!([]), "{file}");
            unchecked += report["unsupported"].as_array().map_or(0, Vec::len);
            covered += 1;
        }
    }
    let line = format!("command: no damage found in {covered} real files, {unchecked} places not checked");
    summarise("command-verified", &line);
}

/// Of format 1.0 and later, all fields of every ntuple are read. Those from before are refused with their version.
#[test]
fn ntuples_of_other_projects_are_read_or_refused_by_version() {
    let wild = data().map(|folder| folder.join("wild")).filter(|folder| folder.is_dir());
    let (mut read, mut refused) = (0, 0);
    for path in wild.map(|folder| files(&folder)).unwrap_or_default() {
        let file = path.to_str().expect("a path in UTF-8");
        let listed = tupelo(&["ls", file, "--json"]).json();
        for ntuple in listed["ntuples"].as_array().expect("ntuples") {
            let name = format!("{file}:{}", ntuple["name"].as_str().expect("a name"));
            let dump = tupelo(&["dump", &name]);
            assert_eq!(dump.stderr, "", "{name}");
            assert_eq!(json!(dump.ok().lines().count()), ntuple["entries"], "{name}");
            tupelo(&["verify", "--deep", "--strict", file]).ok();
            read += 1;
        }
        for object in listed["objects"].as_array().expect("objects") {
            if object["class"] == json!("ROOT::Experimental::RNTuple") {
                let name = object["path"].as_str().expect("a name");
                let error = tupelo(&["head", file]).fails(1);
                assert!(error.contains(&format!("ntuple '{name}': it has")), "{error}");
                assert!(
                    error.contains("the pre-release format 0.2.0.0") || error.contains("ROOT 6.28 or earlier"),
                    "{error}"
                );
                refused += 1;
            }
        }
    }
    assert!((read, refused) == (0, 0) || read >= 2 && refused >= 4, "{read} read, {refused} refused");
    let line = format!("command: {read} ntuples of other projects read, {refused} refused, from before format 1.0");
    summarise("command-other-ntuples", &line);
}

/// The sizes of containers and of the other fields are those of the whole.
#[test]
fn containers_of_atlas_are_listed_with_their_sizes() {
    let Some(data) = data().filter(|data| data.join("atlas_daod_physlite_tree.root").exists()) else { return };
    for (file, name, least) in
        [("atlas_daod_physlite_ntuple.root", "EventData", 40), ("atlas_daod_physlite_tree.root", "CollectionTree", 70)]
    {
        let place = format!("{}:{name}", data.join(file).display());
        let listed = tupelo(&["ls", &place, "--xaod", "--json"]).json();
        let containers = listed["containers"].as_array().expect("containers");
        assert!(containers.len() > least, "{}", containers.len());
        let jets = containers.iter().find(|it| it["name"] == "AnalysisJets").expect("jets");
        assert_eq!((&jets["class"], &jets["object"]), (&"DataVector<xAOD::Jet_v1>".into(), &false.into()));
        let momentum = jets["variables"].as_array().expect("variables").iter().find(|it| it["name"] == "pt");
        assert_eq!(momentum.expect("pt")["type"], "float");
        let fields = tupelo(&["ls", &place, "--json"]).json();
        let own = |it: &&serde_json::Value| {
            let name = it["name"].as_str().expect("a name");
            name.starts_with("AnalysisJetsAux") || name == "AnalysisJets"
        };
        let stored = |it: &serde_json::Value| it["stored_bytes"].as_u64().expect("bytes");
        let sum: u64 = fields["fields"].as_array().expect("fields").iter().filter(own).map(stored).sum();
        assert_eq!(stored(jets), sum);
        tupelo(&["ls", &place, "--xaod"]).ok();
    }
    let other = format!("{}:PhaseSpaceTree", data.join("lhcb_phase_space_simulation.root").display());
    let error = tupelo(&["ls", &other, "--xaod"]).fails(1);
    assert!(error.contains("'PhaseSpaceTree' has no auxiliary store"), "{error}");
    assert!(tupelo(&["ls", "x.root", "--xaod"]).fails(1).contains("x.root"));
}
