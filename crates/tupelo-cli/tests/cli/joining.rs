//! `join` and `append`: the fields of several files as one ntuple, and entries and fields of a file that has others.

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
    let refused = tupelo(&["join", &out, &muons, &few, "--prefix", "o_", "--force"]).fails(1);
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
    let refused = join(&[]).fails(1);
    assert!(refused.contains("has no entry with run = ") && refused.contains("which is entry 0 of"), "{refused}");
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

#[test]
fn entries_are_added_in_place() {
    let place = Place::new();
    let all = place.b2hhh();
    let (out, rest) = (place.path("out.root"), place.path("rest.root"));
    tupelo(&["copy", &all, &out, "--entries", ":1000"]).ok();
    tupelo(&["copy", &all, &rest, "--entries", "1000:"]).ok();
    // Output and inputs are easily confused where the output comes first.
    for command in ["merge", "join"] {
        let refused = tupelo(&[command, &out, &rest]).fails(2);
        assert!(refused.contains("the output comes before the inputs"), "{refused}");
    }
    let appended = tupelo(&["append", &out, &rest]);
    // Defect: all entries were named beside the bytes that were added.
    assert!(appended.stderr.contains(" entries added to 1 000, "), "{}", appended.stderr);
    appended.ok();
    tupelo(&["verify", &out]).ok();
    tupelo(&["diff", &all, &out]).ok();
    let refused = tupelo(&["append", &out, &out]).fails(2);
    assert!(refused.contains("cannot be extended with itself"), "{refused}");
    let refused = tupelo(&["append", &out]).fails(2);
    assert!(refused.contains("found nothing to add"), "{refused}");
    let refused = tupelo(&["append", &out, &rest, "--define", "x=1"]).fails(2);
    assert!(refused.contains("--define adds a field to all entries"), "{refused}");
    let refused = tupelo(&["append", &out, &place.nanoaod()]).fails(1);
    assert!(refused.contains("B_FlightDistance") || refused.contains("field"), "{refused}");
    tupelo(&["diff", &all, &out]).ok();
    let refused = tupelo(&["append", "s3://bucket/out.root", &rest]).fails(2);
    assert!(refused.contains("only local files can be added to"), "{refused}");
}

#[test]
fn fields_are_added_in_place() {
    let place = Place::new();
    let (all, [muons, jets]) = sides(&place);
    let pages_before = std::fs::read(&muons).expect("a file");
    tupelo(&["append", &muons, "--define", "n=len(Muon_pt)", "--define", "m=2 * n"]).ok();
    let computed = tupelo(&["dump", &muons, "--fields", "n,m", "--cut", "m != 2 * len(Muon_pt)"]).ok();
    assert_eq!(computed, "");
    assert!(std::fs::read(&muons).expect("a file").len() < pages_before.len() + 20_000);
    tupelo(&["append", &muons, &jets, "--as-fields", "--fields", "Jet_pt"]).ok();
    tupelo(&["verify", &muons]).ok();
    tupelo(&["diff", &all, &muons, "--fields", "run,event,Muon_pt,Jet_pt"]).ok();
    // Defect: readers refuse longer names, which made the whole ntuple unreadable.
    let (long, before) = ("y".repeat(70_000), std::fs::read(&muons).expect("a file"));
    assert!(tupelo(&["append", &muons, "--define", &format!("{long}=1+1")]).fails(2).contains("70000 bytes exceeds"));
    assert!(std::fs::read(&muons).expect("a file") == before);
    tupelo(&["copy", &all, "-o", &place.path("long.root"), "--rename", &format!("MET_pt={long}")]).fails(2);
    // It was a field of the name "a,nMuon=b".
    let several = tupelo(&["copy", &all, "-o", &place.path("several.root"), "--rename", "MET_pt=a,nMuon=b"]).fails(2);
    assert!(several.contains("repeat --rename for others"), "{several}");
    assert!(!std::path::Path::new(&place.path("long.root")).exists());
    // Fields that both have are in the way only if they are chosen.
    let refused = tupelo(&["append", &muons, &all, "--as-fields"]).fails(2);
    assert!(refused.contains("field 'run' is also in '") && refused.contains("--prefix"), "{refused}");
    tupelo(&["append", &muons, &all, "--as-fields", "--fields", "MET_*"]).ok();
    tupelo(&["diff", &all, &muons, "--fields", "run,event,Muon_pt,Jet_pt,MET_*"]).ok();
    // By keys, from a file with more entries in another order.
    let (half, both) = (place.path("half.root"), place.path("both.root"));
    tupelo(&["copy", &all, &half, "--entries", "250:", "--fields", "run,event"]).ok();
    tupelo(&["merge", &both, &half, &jets]).fails(1);
    let parts = [["250:", "one.root"], [":250", "two.root"]].map(|[entries, name]| {
        let path = place.path(name);
        tupelo(&["copy", &jets, &path, "--entries", entries]).ok();
        path
    });
    tupelo(&["merge", &both, &parts[0], &parts[1]]).ok();
    let mut arguments = vec!["append", &half, &both, "--as-fields", "--on", "run,event", "--prefix", "j_"];
    tupelo(&arguments).ok();
    let [own, other] = [(&half, "j_Jet_pt"), (&all, "Jet_pt")].map(|(file, field)| {
        let entries = if field == "Jet_pt" { "250:" } else { ":" };
        tupelo(&["dump", file, "--fields", field, "--entries", entries, "--format", "csv"]).ok()
    });
    assert_eq!(own.lines().skip(1).collect::<Vec<_>>(), other.lines().skip(1).collect::<Vec<_>>());
    let refused = tupelo(&arguments).fails(2);
    assert!(refused.contains("j_Jet_pt"), "{refused}");
    arguments.extend(["--fields", "j_Muon_pt"]);
    assert!(tupelo(&arguments).fails(1).contains("no field named 'j_Muon_pt'"));
    // Entries are added to all fields after that.
    let more = place.path("more.root");
    tupelo(&["copy", &half, &more, "--entries", ":10"]).ok();
    tupelo(&["append", &half, &more]).ok();
    tupelo(&["verify", &half]).ok();
    let last = |file: &str, entries: &str| tupelo(&["dump", file, "--entries", entries]).ok();
    assert_eq!(last(&half, "250:"), last(&half, ":10"));
}

/// Defect: projected fields, such as those of imported trees, were taken for strings that are not UTF-8.
#[test]
fn projected_fields_are_joined() {
    let place = Place::new();
    let [tree, one, other, out] = ["tree.root", "one.root", "other.root", "out.root"].map(|name| place.path(name));
    tupelo(&["export", "-q", &place.nanoaod(), &tree, "--skip-unreadable"]).ok();
    tupelo(&["import", "-q", &tree, &one]).ok();
    assert!(tupelo(&["schema", &one]).ok().contains("(projected)"));
    // Encodings follow from the codec.
    tupelo(&["copy", "-q", &one, &other, "--compression", "none"]).ok();
    tupelo(&["join", &out, &one, &other, "--prefix", "x_"]).ok();
    let dump = |file: &str, fields: &str| tupelo(&["dump", file, "--fields", fields]).ok();
    assert_eq!(dump(&out, "x_Muon_pt,x_MET_pt").replace("x_", ""), dump(&one, "Muon_pt,MET_pt"));
    tupelo(&["copy", "-q", &one, "-o", &other, "--force", "--fields", "run,event"]).ok();
    tupelo(&["append", &other, &one, "--as-fields", "--fields", "Muon_pt,Jet_pt"]).ok();
    tupelo(&["verify", &other]).ok();
    assert_eq!(dump(&other, "Muon_pt,Jet_pt"), dump(&one, "Muon_pt,Jet_pt"));
}

/// Defect: a field that the user does not see was missing.
#[test]
fn fields_are_added_to_an_ntuple_with_projected_fields() {
    let place = Place::new();
    let [tree, one, two] = ["tree.root", "one.root", "two.root"].map(|name| place.path(name));
    tupelo(&["export", &place.nanoaod(), &tree]).ok();
    tupelo(&["import", &tree, &one]).ok();
    std::fs::copy(&one, &two).expect("a copy");
    tupelo(&["append", &two, &one, "--as-fields", "--prefix", "p_", "--fields", "p_*"]).ok();
    tupelo(&["verify", &two]).ok();
    tupelo(&["diff", &one, &two, "--fields", "Muon_pt,Jet_pt,MET_pt,run"]).ok();
    for field in ["Muon_pt", "MET_pt"] {
        let values = |file: &str, field: &str| tupelo(&["dump", file, "--fields", field]).ok();
        assert_eq!(values(&two, &format!("p_{field}")).replace("p_", ""), values(&one, field));
    }
}
