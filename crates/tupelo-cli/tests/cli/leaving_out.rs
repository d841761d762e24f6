//! What cannot be read or written is left out, with a warning that names it.

use std::fs;

use super::{Place, data, tupelo};

/// A tree of 500 events whose branch `MET_phi` cannot be decompressed, beside others.
fn damaged(place: &Place) -> String {
    let (ntuple, tree) = (place.nanoaod(), place.path("tree.root"));
    tupelo(&["export", &ntuple, &format!("{tree}:Events"), "--fields", "MET_*,run,Muon_pt"]).ok();
    let mut bytes = fs::read(&tree).expect("a file");
    let key = b"\x07TBasket\x07MET_phi";
    let at = bytes.windows(key.len()).position(|window| window == key).expect("a basket");
    let payload = at + bytes[at..].windows(2).position(|window| window == b"ZS").expect("a compressed basket");
    bytes[payload + 9..payload + 40].fill(0xff);
    fs::write(&tree, bytes).expect("a file");
    tree
}

#[test]
fn a_branch_that_cannot_be_decoded_is_left_out_with_a_warning() {
    let place = Place::new();
    let tree = damaged(&place);
    for arguments in [&["head", "-n", "3", &tree][..], &["dump", &tree, "--entries", ":3"]] {
        let run = tupelo(arguments);
        assert!(run.stderr.contains("'MET_phi' is left out") && run.stderr.contains("--exclude"), "{}", run.stderr);
        // Regression: the status was 0, and with --quiet nothing told that the branch is missing.
        assert!(run.stderr.contains("the output was written without 1 field"), "{}", run.stderr);
        assert_eq!(run.status, Some(1));
        let quiet = tupelo(&[arguments, &["--quiet"]].concat()).fails(1);
        assert!(quiet.contains("written without 1 field"), "{quiet}");
        let shown = tupelo(&[arguments, &["--skip-unreadable"]].concat()).ok();
        assert_eq!(run.stdout, shown);
        assert!(shown.contains("MET_pt") && !shown.contains("MET_phi"), "{shown}");
        let silent = tupelo(&[arguments, &["--exclude", "MET_phi"]].concat());
        assert_eq!(silent.stderr.matches("warning").count(), 0, "{}", silent.stderr);
        assert_eq!(silent.ok(), shown);
        let other = tupelo(&[arguments, &["--fields", "MET_pt"]].concat());
        assert!(!other.stderr.contains("MET_phi"), "{}", other.stderr);
        other.ok();
    }
}

#[test]
fn import_and_export_fail_after_leaving_out_unless_told_otherwise() {
    let place = Place::new();
    let tree = damaged(&place);
    for command in ["import", "export"] {
        let out = place.path(&format!("{command}.root"));
        let error = tupelo(&[command, &tree, &out]).fails(1);
        assert!(error.contains("'MET_phi' is left out"), "{error}");
        assert!(error.contains("written without 1 field") && error.contains("--skip-unreadable"), "{error}");
        assert!(tupelo(&["dump", &out, "--entries", ":1"]).ok().contains("\"MET_pt\""));
        let skipped = tupelo(&[command, &tree, "-o", &out, "--force", "--skip-unreadable"]);
        assert!(skipped.stderr.contains("'MET_phi' is left out"), "{}", skipped.stderr);
        skipped.ok();
        tupelo(&[command, &tree, "-o", &out, "--force", "--exclude", "MET_phi"]).ok();
    }
    let (out, report) = (place.path("reported.root"), place.path("report.json"));
    tupelo(&["import", &tree, &out, "--skip-unreadable", "--report", &report]).ok();
    let report: serde_json::Value = serde_json::from_slice(&fs::read(report).expect("a report")).expect("JSON");
    assert_eq!(report[0]["skipped"][0]["name"], "MET_phi");
    assert!(report[0]["skipped"][0]["reason"].as_str().is_some_and(|reason| !reason.is_empty()));
}

#[test]
fn real_branches_that_cannot_be_read_do_not_spoil_their_tree() {
    let Some(file) = data().map(|data| data.join("trees/uproot-mc10events.root")).filter(|file| file.exists()) else {
        return;
    };
    let place = Place::new();
    let (file, out) = (file.to_str().expect("UTF-8"), place.path("out.root"));
    let run = tupelo(&["head", "-n", "2", file, "--skip-unreadable"]);
    assert!(run.stderr.contains("triggerBits") && run.stderr.contains("--exclude"), "{}", run.stderr);
    run.ok();
    tupelo(&["import", file, "-o", &out, "--entries", ":5"]).fails(1);
    tupelo(&["import", file, "-o", &out, "--entries", ":5", "--force", "--skip-unreadable"]).ok();
}

#[test]
fn fields_that_no_branch_can_hold_are_left_out_of_exports() {
    let Some(file) = data().map(|data| data.join("reports/export_map_of_vectors.root")).filter(|file| file.exists())
    else {
        return;
    };
    let place = Place::new();
    let (file, out) = (file.to_str().expect("UTF-8"), place.path("out.root"));
    let error = tupelo(&["export", file, &out]).fails(1);
    assert!(error.contains("'p.m' is left out: ROOT needs a dictionary to read a std::map<"), "{error}");
    tupelo(&["export", file, "-o", &out, "--force", "--exclude", "p.m"]).ok();
    assert_eq!(tupelo(&["dump", &out, "--entries", ":1"]).ok(), "{\"p\":{\"n\":0}}\n");
}

#[test]
fn selected_lists_bring_their_counters() {
    let place = Place::new();
    let (ntuple, tree, out) = (place.nanoaod(), place.path("tree.root"), place.path("out.root"));
    tupelo(&["export", &ntuple, &tree, "--fields", "Muon_*"]).ok();
    tupelo(&["import", &tree, &out]).ok();
    for (command, file) in [("import", &tree), ("export", &tree), ("export", &out), ("copy", &out)] {
        let to = place.path("to.root");
        let run = tupelo(&[command, file, "-o", &to, "--fields", "Muon_p*", "--force"]);
        assert!(run.stderr.contains("counters of selected lists: nMuon_p"), "{command}: {}", run.stderr);
        run.ok();
        assert!(tupelo(&["dump", &to, "--entries", ":1"]).ok().contains("\"nMuon_pt\""), "{command}");
    }
    let without = ["copy", &out, &place.path("without.root"), "--fields", "Muon_pt", "--exclude", "nMuon_pt"];
    let without = tupelo(&without);
    assert!(!without.stderr.contains("nMuon_pt"), "{}", without.stderr);
    without.ok();
}

#[test]
fn branches_of_one_name_are_told_apart_by_their_own() {
    let Some(file) = data().map(|data| data.join("trees/uproot-issue403.root")).filter(|file| file.exists()) else {
        return;
    };
    let place = Place::new();
    let (tree, out) = (format!("{}:Event", file.to_str().expect("UTF-8")), place.path("out.root"));
    tupelo(&["import", &tree, &out, "--rename", "Primary.=Primary2", "--skip-unreadable"]).ok();
    let listed = tupelo(&["schema", &out]).ok();
    assert!(listed.contains("Primary2"), "{listed}");
    let dumped = tupelo(&["dump", &tree, "--fields", "Primary.", "--entries", ":1"]).ok();
    assert!(dumped.starts_with("{\"Primary_\":"), "{dumped}");
}

/// Defect: they were refused, after all was written.
#[test]
fn fixed_arrays_of_counted_items_are_imported() {
    let Some(file) = data().map(|data| data.join("reports/import_counted_2d.root")).filter(|file| file.exists()) else {
        return;
    };
    let place = Place::new();
    let (file, out) = (file.to_str().expect("UTF-8"), place.path("out.root"));
    tupelo(&["import", file, "-o", &out, "--validate", "full"]).ok();
    let dumped = |file: &str| tupelo(&["dump", file, "--fields", "n,x,y"]).ok();
    assert_eq!(dumped(&out), dumped(file));
}

/// Defect: the copy had all entries and no field.
#[test]
fn a_copy_has_a_field() {
    let place = Place::new();
    let (file, out) = (place.b2hhh(), place.path("out.root"));
    let error = tupelo(&["copy", &file, &out, "--exclude", "*"]).fails(2);
    assert!(error.contains("DecayTree: no field is selected; select at least one"), "{error}");
    assert!(!fs::exists(&out).expect("a folder"));
    tupelo(&["copy", &file, &out, "--exclude", "*", "--define", "one = 1"]).ok();
    assert_eq!(tupelo(&["dump", "--entries", ":1", &out]).ok().trim(), "{\"one\":1}");
}
