//! `join`: the fields of several files as one ntuple.

use super::{Place, tupelo};

/// The same events in two files, with other fields in each but for the keys.
fn sides(place: &Place) -> (String, [String; 2]) {
    let all = place.nanoaod();
    let sides = ["muons.root", "jets.root"].map(|name| place.path(name));
    for (side, fields) in sides.iter().zip(["run,event,Muon_pt", "run,event,Jet_pt"]) {
        tupelo(&["copy", &all, side, "--fields", fields]).ok();
    }
    (all, sides)
}

#[test]
fn fields_of_the_same_entries_become_one_ntuple() {
    let place = Place::new();
    let (all, [muons, jets]) = sides(&place);
    let out = place.path("out.root");
    let refused = tupelo(&["join", &out, &muons, &jets]).fails(2);
    assert!(refused.contains("'run' is also in") && refused.contains("hint: --prefix TEXT"), "{refused}");
    tupelo(&["join", &out, &muons, &jets, "--prefix", "o_", "--exclude", "o_run,o_event"]).ok();
    tupelo(&["verify", &out]).ok();
    tupelo(&["diff", &all, &out, "--fields", "run,event,Muon_pt"]).ok();
    let few = place.path("few.root");
    tupelo(&["copy", &jets, &few, "--entries", ":100"]).ok();
    let refused = tupelo(&["join", &out, &muons, &few, "--prefix", "o_", "--force"]).fails(2);
    assert!(refused.contains("has 100 entries, expected 500"), "{refused}");
}

#[test]
fn keys_say_which_entries_belong_together() {
    let place = Place::new();
    let (all, [muons, jets]) = sides(&place);
    let (parts, out) = (["one.root", "two.root"].map(|name| place.path(name)), place.path("out.root"));
    tupelo(&["copy", &jets, &parts[0], "--entries", "250:"]).ok();
    tupelo(&["copy", &jets, &parts[1], "--entries", "50:250"]).ok();
    let both = place.path("both.root");
    tupelo(&["merge", &both, &parts[0], &parts[1]]).ok();
    let join = |more: &[&str]| {
        let common = ["join", &out, &muons, &both, "--on", "run,event", "--force"];
        tupelo(&[&common[..], more].concat())
    };
    let refused = join(&[]).fails(2);
    assert!(refused.contains("has no entry with which is entry 0 of"), "{refused}");
    let dropped = join(&["--unmatched", "drop"]);
    assert!(dropped.stderr.contains("50 of 500 entries of the first input were left out"), "{}", dropped.stderr);
    dropped.ok();
    let rest = place.path("rest.root");
    tupelo(&["copy", &all, &rest, "--entries", "50:", "--fields", "run,event,Muon_pt,Jet_pt"]).ok();
    tupelo(&["diff", &rest, &out]).ok();
    join(&["--unmatched", "null"]).ok();
    let first = tupelo(&["dump", &out, "--fields", "Jet_pt", "--entries", ":1"]).ok();
    assert_eq!(first, "{\"Jet_pt\":null}\n");
    tupelo(&["diff", &all, &out, "--fields", "run,event,Muon_pt"]).ok();
    // A cut may use the fields of all inputs.
    join(&["--unmatched", "drop", "--cut", "len(Muon_pt) > len(Jet_pt)", "--fields", "event"]).ok();
    let count = tupelo(&["count", &rest, "--cut", "len(Muon_pt) > len(Jet_pt)"]).ok();
    assert_eq!(tupelo(&["count", &out]).ok(), count);
    for (arguments, expected) in [
        (["--unmatched", "keep"], "invalid value 'keep'"),
        (["--on", "Muon_pt"], "expected an integer"),
        (["--on", "evnt"], "no field named 'evnt'"),
    ] {
        let refused = join(&arguments);
        assert!(refused.stderr.contains(expected), "{}", refused.stderr);
        assert_ne!(refused.status, Some(0));
    }
    let refused = tupelo(&["join", &out, &muons, &both, "--prefix", "a", "--prefix", "b"]).fails(2);
    assert!(refused.contains("2 prefixes for 2 inputs"), "{refused}");
}
