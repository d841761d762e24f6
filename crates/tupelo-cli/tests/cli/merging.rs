//! `merge`: many files as one, and `diff`, which compares the result.

use std::fs;

use serde_json::json;

use super::objects::add_text;
use super::{Place, data, summarise, tupelo};

/// Three files with parts of the same events; the last one lacks a field.
fn parts(place: &Place) -> (String, [String; 3]) {
    let all = place.b2hhh();
    let parts = ["a.root", "b.root", "c.root"].map(|name| place.path(name));
    for (part, entries) in parts.iter().zip([":1000", "1000:2500", "2500:"]) {
        tupelo(&["copy", &all, part, "--entries", entries, "--compression", "zstd:5", "--cluster-bytes", "50kB"]).ok();
    }
    (all, parts)
}

#[test]
fn merged_files_are_the_files_one_after_the_other() {
    let place = Place::new();
    let (all, [a, b, c]) = parts(&place);
    let out = place.path("out.root");
    tupelo(&["merge", &out, &a, &b, &c]).ok();
    tupelo(&["diff", &all, &out]).ok();
    tupelo(&["verify", &out]).ok();
    // Pages are those of the inputs: the same codec, though another is the default of the writer.
    let clusters =
        |file: &str| tupelo(&["ls", file, "--json"]).json()["ntuples"][0]["clusters"].as_u64().expect("a number");
    assert_eq!(clusters(&out), [&a, &b, &c].map(|file| clusters(file)).iter().sum::<u64>());
    let again = place.path("again.root");
    tupelo(&["merge", &again, &a, &b, &c, "--compression", "lz4:4"]).ok();
    tupelo(&["diff", &out, &again]).ok();
    let itself = tupelo(&["merge", &a, &a, &b, "--append", "--extend"]).fails(2);
    assert!(itself.contains("cannot be extended with itself"), "{itself}");
    // An existing output is only replaced with --force.
    let refused = tupelo(&["merge", &out, &a, &b]).fails(2);
    assert!(refused.contains("exists"), "{refused}");
    tupelo(&["merge", &out, &a, &b, "--force"]).ok();
    let shorter = tupelo(&["diff", &all, &out]);
    assert!(shorter.stdout.contains("entries: 3000 and 2500"), "{}", shorter.stdout);
    assert_eq!(shorter.status, Some(1));
}

#[test]
fn the_mode_decides_about_missing_fields() {
    let place = Place::new();
    let (all, [a, b, c]) = parts(&place);
    let part = place.path("part.root");
    tupelo(&["copy", &c, &part, "--exclude", "H1_PX"]).ok();
    let out = place.path("out.root");
    let refused = tupelo(&["merge", &out, &a, &b, &part]).fails(1);
    assert!(refused.contains("part.root lacks it") && refused.contains("--mode union"), "{refused}");
    assert!(!fs::exists(&out).expect("a folder"));
    let run = tupelo(&["merge", &out, &a, &b, &part, "--mode", "intersect"]);
    assert!(run.stderr.contains("H1_PX"), "{}", run.stderr);
    run.ok();
    let found = tupelo(&["diff", &all, &out]);
    assert_eq!((found.status, found.stdout.as_str()), (Some(1), "field 'H1_PX': only in the first\n"));
    tupelo(&["diff", &all, &out, "--exclude", "H1_PX"]).ok();
    tupelo(&["merge", &out, &a, &b, &part, "--mode", "union", "--force"]).ok();
    tupelo(&["diff", &all, &out, "--exclude", "H1_PX"]).ok();
    let missing = tupelo(&["dump", &out, "--fields", "H1_PX", "--entries", "2999:"]).ok();
    assert_eq!(missing, "{\"H1_PX\":0.0}\n");
    tupelo(&["verify", &out]).ok();
    tupelo(&["diff", &all, &out, "--fields", "H1_PX", "--entries", ":2500"]).ok();
    // The pages of a file that lacks a field stay as they are, too.
    let clusters =
        |file: &str| tupelo(&["ls", file, "--json"]).json()["ntuples"][0]["clusters"].as_u64().expect("a number");
    assert_eq!(clusters(&out), [&a, &b, &part].map(|file| clusters(file)).iter().sum::<u64>());
    // With nulls, as by copy.
    tupelo(&["copy", &a, &part, "-o", &out, "--union", "--force"]).ok();
    let missing = tupelo(&["dump", &out, "--fields", "H1_PX", "--entries", "-1:"]).ok();
    assert_eq!(missing, "{\"H1_PX\":null}\n");
}

/// Numbers get the type that holds the values of all files, if that is wanted.
#[test]
fn numbers_of_different_types_are_merged() {
    let place = Place::new();
    let all = place.nanoaod();
    let (narrow, wide, out) = (place.path("narrow.root"), place.path("wide.root"), place.path("out.root"));
    tupelo(&["copy", &all, &narrow, "--fields", "MET_pt,event", "--define", "x=MET_pt"]).ok();
    tupelo(&["copy", &all, &wide, "--fields", "MET_pt,event", "--define", "x=MET_pt + 0 * event"]).ok();
    for inputs in [[&narrow, &wide], [&wide, &narrow]] {
        let refused = tupelo(&["merge", &out, inputs[0], inputs[1], "--force"]).fails(1);
        assert!(refused.contains("field 'x' has type") && refused.contains("--mode union"), "{refused}");
        let merged = tupelo(&["merge", &out, inputs[0], inputs[1], "--mode", "union", "--force"]);
        assert!(merged.stderr.contains("written in the wider type"), "{}", merged.stderr);
        merged.ok();
        tupelo(&["verify", &out]).ok();
        let schema = tupelo(&["schema", &out]).ok();
        assert!(schema.contains("double"), "{schema}");
        let half = |entries: &str| tupelo(&["dump", &out, "--fields", "x", "--entries", entries]).ok();
        assert_eq!(half(":500"), half("500:"));
    }
}

/// Entries in another order are compared by their keys.
#[test]
fn entries_in_another_order_are_compared_by_keys() {
    let place = Place::new();
    let all = place.nanoaod();
    let [one, two, other] = ["one.root", "two.root", "other.root"].map(|name| place.path(name));
    tupelo(&["copy", &all, &one, "--entries", ":200"]).ok();
    tupelo(&["copy", &all, &two, "--entries", "200:"]).ok();
    tupelo(&["merge", &other, &two, &one]).ok();
    assert_eq!(tupelo(&["diff", &all, &other]).status, Some(1));
    tupelo(&["diff", &all, &other, "--on", "run,event"]).ok();
    let found = tupelo(&["diff", &all, &two, "--on", "run,event"]);
    assert_eq!((found.status, found.stdout.as_str()), (Some(1), "200 entries only in the first\n"));
    let found = tupelo(&["diff", &two, &other, "--on", "run,event", "--json"]);
    let document: serde_json::Value = serde_json::from_str(&found.stdout).expect("a document");
    assert_eq!((found.status, &document["unpaired_entries"]), (Some(1), &json!([0, 200])));
    let twice = place.path("twice.root");
    tupelo(&["merge", "-q", &twice, &one, &one]).ok();
    let repeated = tupelo(&["diff", &twice, &one, "--on", "run,event"]).fails(2);
    assert!(repeated.contains("have the same run ="), "{repeated}");
    assert!(tupelo(&["diff", &one, &one, "--on", "MET_pt"]).fails(2).contains("expected an integer"));
}

/// Files that were written in another way are decoded where their pages cannot stay as they are.
#[test]
fn files_of_other_encodings_are_merged_too() {
    let place = Place::new();
    let (all, [a, b, c]) = parts(&place);
    let (plain, out) = (place.path("plain.root"), place.path("out.root"));
    tupelo(&["copy", &b, &plain, "--compression", "none"]).ok();
    for inputs in [[&a, &plain, &c], [&plain, &b, &c]] {
        tupelo(&["merge", "-q", &out, inputs[0], inputs[1], inputs[2], "--force"]).ok();
        tupelo(&["verify", &out]).ok();
    }
    tupelo(&["merge", "-q", &out, &a, &plain, &c, "--force"]).ok();
    tupelo(&["diff", &all, &out]).ok();
}

/// Baskets are kept as they are, unless there is a codec to compress them again with.
#[test]
fn trees_are_merged_by_their_baskets() {
    let place = Place::new();
    let all = place.nanoaod();
    let name = |file: &str| tupelo(&["ls", file, "--json"]).json()["trees"][0]["name"].as_str().map(str::to_owned);
    let trees = ["a.root", "b.root", "c.root"].map(|name| place.path(name));
    for (tree, entries) in trees.iter().zip([":100", "100:350", "350:"]) {
        let part = place.path("part.root");
        tupelo(&["copy", &all, "-o", &part, "-f", "--entries", entries]).ok();
        tupelo(&["export", "-q", &part, tree, "--compression", "zstd:5"]);
    }
    let [a, b, c] = &trees;
    let (out, again) = (place.path("out.root"), place.path("again.root"));
    tupelo(&["merge", &out, a, b, c]).ok();
    assert_eq!(name(&out), name(a));
    let chain = place.path("[abc].root");
    tupelo(&["diff", &out, &chain]).ok();
    tupelo(&["verify", &out]).ok();
    tupelo(&["merge", &again, a, b, c, "--compression", "lzma:7"]).ok();
    tupelo(&["diff", &out, &again]).ok();
    for (file, codec) in [(&out, "zstd:5"), (&again, "lzma:7")] {
        assert!(tupelo(&["ls", file]).ok().contains(codec), "{file}");
    }
    // A single tree under another name.
    let event = name(a).expect("a tree");
    let [first, second] = [a, b].map(|file| format!("{file}:{event}"));
    tupelo(&["merge", "-f", &format!("{again}:folder/Other"), &first, &second]).ok();
    assert_eq!(name(&again).as_deref(), Some("folder/Other"));
    tupelo(&["diff", &again, &place.path("[ab].root")]).ok();
    // Into a file that has a tree of this name.
    let exists = tupelo(&["merge", &out, a, "--append"]).fails(2);
    assert!(exists.contains("already contains a tree") && exists.contains("--new-cycle"), "{exists}");
    tupelo(&["merge", &out, a, "--append", "--new-cycle"]).ok();
    tupelo(&["diff", &out, a]).ok();
    let itself = tupelo(&["merge", a, a, b, "--append"]).fails(2);
    assert!(itself.contains("already contains a tree"), "{itself}");
}

/// A tree stays a tree, with what options choose of it.
#[test]
fn trees_are_copied_with_chosen_branches() {
    let place = Place::new();
    let [part, tree, out] = ["part.root", "tree.root", "out.root"].map(|name| place.path(name));
    tupelo(&["copy", &place.nanoaod(), &part]).ok();
    tupelo(&["export", "-q", &part, &tree, "--compression", "zstd:5"]);
    tupelo(&["copy", &tree, &out]).ok();
    tupelo(&["diff", &tree, &out]).ok();
    let names = |file: &str| {
        let fields = tupelo(&["schema", file, "--json"]).json()["fields"].clone();
        let name = |field: &serde_json::Value| field["name"].as_str().map(str::to_owned);
        fields.as_array().expect("fields").iter().filter_map(name).collect::<Vec<_>>()
    };
    tupelo(&[
        "copy",
        "-o",
        &out,
        "-f",
        &tree,
        "--fields",
        "Muon_*,MET_pt",
        "--exclude",
        "Muon_charge",
        "--compression",
        "lz4:4",
    ])
    .ok();
    let kept = names(&out);
    assert!(kept.iter().all(|name| name.contains("Muon") || name == "MET_pt") && kept.len() > 3, "{kept:?}");
    assert!(kept.contains(&"nMuon_pt".to_owned()) && !kept.contains(&"Muon_charge".to_owned()), "{kept:?}");
    tupelo(&["diff", &tree, &out, "--fields", &kept.join(",")]).ok();
    tupelo(&["verify", &out]).ok();
    assert!(tupelo(&["ls", &out]).ok().contains("lz4:4"));
    let unknown = tupelo(&["copy", "-o", &out, "-f", &tree, "--fields", "Moun_pt"]).fails(1);
    assert!(unknown.contains("no branch named 'Moun_pt'") && unknown.contains("Muon_pt"), "{unknown}");
    let none = tupelo(&["copy", "-o", &out, "-f", &tree, "--exclude", "*"]).fails(2);
    assert!(none.contains("no branch is selected"), "{none}");
    let class = tupelo(&["copy", "-o", &out, "-f", &tree, "--inherits", "Muon"]).fails(1);
    assert!(class.contains("inherits from 'Muon'"), "{class}");
    let of_ntuple = tupelo(&["copy", "-o", &out, "-f", &part, "--inherits", "Muon"]).fails(2);
    assert!(of_ntuple.contains("are for trees, but 'Events' is an ntuple"), "{of_ntuple}");
    for options in [["--define", "x=1"], ["--cluster-bytes", "1MB"]] {
        let refused = tupelo(&[&["copy", "-o", &out, "-f", &tree], &options[..]].concat()).fails(2);
        assert!(refused.contains("`tupelo import`"), "{refused}");
    }
}

/// The bytes of entries are moved to baskets and clusters of other sizes, and some entries are chosen.
#[test]
fn entries_of_trees_are_moved_to_other_baskets() {
    let place = Place::new();
    let [tree, out] = ["tree.root", "out.root"].map(|name| place.path(name));
    tupelo(&["export", "-q", &place.nanoaod(), &tree, "--compression", "zstd:5", "--skip-unreadable"]).ok();
    let copied = |options: &[&str]| {
        tupelo(&[&["copy", "-o", &out, "-f", &tree], options].concat()).ok();
        tupelo(&["verify", &out]).ok();
        let listed = tupelo(&["ls", &out, "--json"]).json()["trees"][0].clone();
        ["baskets", "clusters"].map(|what| listed[what].as_u64().expect("a number"))
    };
    let before = copied(&[]);
    let after = copied(&["--auto-flush", "100", "--basket-bytes", "500", "--branch-compression", "Muon_*=lzma:3"]);
    assert!(after[0] > 4 * before[0] && after[1] == 5, "{before:?} {after:?}");
    tupelo(&["diff", &tree, &out]).ok();
    let codecs = tupelo(&["ls", &out, "--branches"]);
    if codecs.status == Some(0) {
        assert!(codecs.stdout.contains("lzma:3") && codecs.stdout.contains("zstd:5"), "{}", codecs.stdout);
    }
    // The same clusters as before, in larger baskets.
    let merged = copied(&["--basket-bytes", "1MB"]);
    assert_eq!(merged[1], before[1]);
    tupelo(&["diff", &tree, &out]).ok();
    let dump = |file: &str, options: &[&str]| tupelo(&[&["dump", file], options].concat()).ok();
    for options in
        [["--entries", "100:350"], ["--entries", "-1:"], ["--cut", "MET_pt > 25"], ["--cut", "len(Muon_pt) == 2"]]
    {
        copied(&options);
        assert_eq!(dump(&out, &[]), dump(&tree, &options), "{options:?}");
    }
    tupelo(&["copy", "-o", &out, "-f", &tree, "--cut", "MET_pt < 0"]).ok();
    assert_eq!(tupelo(&["count", &out]).ok(), "0\n");
    // Of two files as one.
    tupelo(&["copy", &tree, &tree, "-o", &out, "-f", "--entries", "400:600", "--auto-flush", "70"]).ok();
    let both = [dump(&tree, &["--entries", "400:"]), dump(&tree, &["--entries", ":100"])].concat();
    assert_eq!(dump(&out, &[]), both);
    for (option, value, hint) in [
        ("--split-entries", "10", "one by one with --entries"),
        ("--page-bytes", "10kB", "--basket-bytes and --auto-flush are for trees"),
        ("--rename", "MET_pt=met", "`tupelo import`"),
    ] {
        let refused = tupelo(&["copy", &tree, "-o", &out, "-f", option, value]).fails(2);
        assert!(refused.contains("cannot be used with trees") && refused.contains(hint), "{refused}");
        assert!(refused.contains(option), "{refused}");
    }
    for (option, value) in [("--basket-bytes", "0"), ("--auto-flush", "0"), ("--branch-compression", "x")] {
        tupelo(&["copy", "-o", &out, "-f", &tree, option, value]).fails(2);
    }
    let unknown = tupelo(&["copy", "-o", &out, "-f", &tree, "--branch-compression", "Moun_pt=lz4:4"]).fails(1);
    assert!(unknown.contains("no branch named 'Moun_pt'"), "{unknown}");
}

#[test]
fn branches_are_chosen_by_their_class() {
    let Some(file) = data().map(|folder| folder.join("atlas_daod_physlite_tree.root")).filter(|file| file.exists())
    else {
        return;
    };
    let place = Place::new();
    let (out, file) = (place.path("out.root"), file.to_string_lossy().into_owned());
    let tree = format!("{file}:CollectionTree");
    tupelo(&["copy", &tree, &out, "--inherits", "xAOD::AuxContainerBase"]).ok();
    let [all, kept] = [&file, &out].map(|file| {
        let trees = tupelo(&["ls", file, "--json"]).json()["trees"].as_array().expect("trees").clone();
        let tree = trees.into_iter().find(|tree| tree["name"] == "CollectionTree").expect("a tree");
        tree["baskets"].as_u64().expect("a number")
    });
    assert!(0 < kept && kept < all / 2, "{kept} of {all} baskets");
    tupelo(&["verify", &out]).ok();
    // Options for branches are for all trees of a file.
    for option in [["--inherits", "xAOD::AuxContainerBase"], ["--branch-compression", "*Jets*=lz4:4"]] {
        let other = place.path("other.root");
        let unknown = tupelo(&["copy", &file, "-o", &other, option[0], option[1]]).fails(1);
        assert!(unknown.contains("hint: options for branches are for all trees; select one, as IN:"), "{unknown}");
    }
    // Defect: branches of objects that are stored with their classes were refused.
    tupelo(&["copy", &tree, "-o", &out, "--force", "--auto-flush", "7", "--basket-bytes", "4kB"]).ok();
    tupelo(&["diff", &tree, &out]).ok();
    tupelo(&["verify", &out]).ok();
}

/// Defect: names for trees were ignored, and histograms were hidden by those of other files.
#[test]
fn outputs_have_the_names_that_are_given() {
    let place = Place::new();
    let file = place.b2hhh();
    let [tree, out] = ["tree.root", "out.root"].map(|name| place.path(name));
    tupelo(&["export", &file, &tree]).ok();
    for arguments in [
        ["merge", &out, &tree, "--force", "--as", "renamed"],
        ["copy", &tree, "-o", &format!("{out}:renamed"), "--force", "--quiet"],
    ] {
        tupelo(&arguments).ok();
        assert_eq!(tupelo(&["ls", &out, "--json"]).json()["trees"][0]["name"], "renamed");
    }
    tupelo(&["copy", &tree, &format!("{out}:second"), "--append"]).ok();
    let refused = tupelo(&["merge", &place.path("new.root"), &out, "--as", "one"]).fails(2);
    assert!(refused.contains("would be the name of 2 trees") && refused.contains("IN:renamed"), "{refused}");
    let refused = tupelo(&["merge", &place.path("new.root"), &tree, "--page-bytes", "10kB"]).fails(2);
    assert!(refused.contains("for ntuples"), "{refused}");
    let refused = tupelo(&["merge", &out, &tree]).fails(2);
    assert!(refused.contains("hint: --force replaces it"), "{refused}");
    // Histograms.
    let (plots, sum) = (super::objects::plots(&place, &["mass"]), place.path("sum.root"));
    tupelo(&["merge", &sum, &plots]).ok();
    let before = fs::read(&sum).expect("a file");
    let refused = tupelo(&["merge", &sum, &plots, "--append", "--extend"]).fails(2);
    assert!(refused.contains("already contains 'mass'"), "{refused}");
    assert!(fs::read(&sum).expect("a file") == before);
}

/// Branches are matched by name. Those that some trees lack are dropped, or filled with zeros.
#[test]
fn trees_with_other_branches_are_merged() {
    let place = Place::new();
    let [ntuple, one, other, moved, out] =
        ["n.root", "one.root", "other.root", "moved.root", "out.root"].map(|name| place.path(name));
    tupelo(&["copy", &place.nanoaod(), "-o", &ntuple, "--fields", "Muon_*,Jet_*,MET_*,run"]).ok();
    tupelo(&["export", "-q", &ntuple, &one, "--exclude", "MET_pt"]).ok();
    tupelo(&["export", "-q", &ntuple, &other, "--exclude", "Jet_*"]).ok();
    let both = place.path("o[nt]*e*.root");
    tupelo(&["merge", &out, &one, &other]).fails(1);
    let dropped = tupelo(&["merge", &out, &one, &other, "--mode", "intersect"]);
    assert!(dropped.stderr.contains("dropped the branches missing in some files: Jet_"), "{}", dropped.stderr);
    dropped.ok();
    tupelo(&["verify", &out]).ok();
    let names = |file: &str| {
        let fields = tupelo(&["schema", file, "--json"]).json()["fields"].clone();
        let name = |field: &serde_json::Value| field["name"].as_str().map(str::to_owned);
        fields.as_array().expect("fields").iter().filter_map(name).collect::<Vec<_>>()
    };
    let kept = names(&out);
    assert!(!kept.iter().any(|name| name.contains("Jet") || name == "MET_pt"), "{kept:?}");
    tupelo(&["diff", &out, &both, "--fields", &kept.join(",")]).ok();
    let filled = tupelo(&["merge", &out, &one, &other, "--mode", "union", "--force"]);
    assert!(filled.stderr.contains("entries are decoded, because some files lack Jet_"), "{}", filled.stderr);
    filled.ok();
    let form = |file: &str| {
        let fields = tupelo(&["schema", file, "--json"]).json()["fields"].clone();
        fields.as_array().expect("fields").iter().find(|field| field["name"] == "Jet_pt").cloned().expect("a field")
    };
    assert_eq!(form(&out)["type"], form(&one)["type"], "an array with a counter");
    let all = names(&out);
    assert!(names(&one).iter().chain(&names(&other)).all(|name| all.contains(name)), "{all:?}");
    tupelo(&["diff", &one, &out, "--exclude", "MET_pt", "--entries", ":500"]).ok();
    let zeros = tupelo(&["dump", &out, "--fields", "MET_pt,Jet_pt", "--entries", "0:1"]).ok();
    assert!(zeros.contains("\"MET_pt\":0.0"), "{zeros}");
    // The same branches in another order are moved as they are.
    tupelo(&["merge", &moved, &out, "--mode", "union"]).ok();
    tupelo(&["export", "-q", &ntuple, "-o", &one, "--force", "--fields", "run,MET_pt,Muon_pt"]).ok();
    tupelo(&["export", "-q", &ntuple, "-o", &other, "--force", "--fields", "Muon_pt,MET_pt,run"]).ok();
    tupelo(&["merge", &out, &one, &other, "--force"]).ok();
    tupelo(&["diff", &out, &both]).ok();
}

/// Entries are decoded to be stored in other branches.
#[test]
fn trees_are_split_to_another_level() {
    let place = Place::new();
    let [ntuple, tree, out] = ["n.root", "tree.root", "out.root"].map(|name| place.path(name));
    tupelo(&["copy", &place.nanoaod(), "-o", &ntuple, "--fields", "Muon_*,MET_*,run"]).ok();
    tupelo(&["export", "-q", &ntuple, &tree]).ok();
    for level in ["0", "99"] {
        let options = ["--split-level", level, "--compression", "lz4:4", "--entries", "100:"];
        tupelo(&[&["copy", &tree, "-o", &out, "-f"], &options[..]].concat()).ok();
        let [rest, copied] = [&tree, &out].map(|file| tupelo(&["dump", file, "--entries", "-400:"]).ok());
        assert_eq!(rest, copied);
        assert!(tupelo(&["ls", &out]).ok().contains("lz4:4"));
    }
    let refused = tupelo(&["copy", &tree, "-o", &out, "-f", "--split-level", "100"]).fails(2);
    assert!(refused.contains("split level 100 is out of range"), "{refused}");
    let refused = tupelo(&["copy", &ntuple, "-o", &out, "-f", "--split-level", "0"]).fails(2);
    assert!(refused.contains("are for trees"), "{refused}");
    // The parts of these branches have the same names.
    let alike = data().map(|folder| folder.join("trees/uproot-issue126b.root")).filter(|file| file.exists());
    let Some(alike) = alike else { return };
    let refused = tupelo(&["copy", &alike.to_string_lossy(), "-o", &out, "-f", "--split-level", "99"]).fails(1);
    assert!(
        refused.contains("not copied: tree 'ChannelSet': the name of branch 'DC_UP': it is 'DC_UP.', "),
        "{refused}"
    );
}

#[test]
fn trees_that_do_not_fit_are_refused() {
    let place = Place::new();
    let (all, [a, b, _]) = parts(&place);
    let [one, other, out] = ["one.root", "other.root", "out.root"].map(|name| place.path(name));
    tupelo(&["export", &a, &one]).ok();
    tupelo(&["export", &b, &other, "--exclude", "H1_PX"]).ok();
    let refused = tupelo(&["merge", &out, &one, &other]).fails(1);
    assert!(
        refused.contains("other.root: tree 'DecayTree': does not fit the first tree: it lacks branch 'H1_PX'"),
        "{refused}"
    );
    assert!(refused.contains("some files lack the branches H1_PX; `tupelo merge --mode intersect`"), "{refused}");
    // A basket that is damaged in its head.
    let mut bytes = fs::read(&one).expect("a file");
    let at = bytes.windows(7).position(|window| window == b"TBasket").expect("a basket") - 29;
    bytes[at] ^= 0x7f;
    fs::write(&other, bytes).expect("a file");
    let damaged = tupelo(&["merge", &out, &one, &other]).fails(1);
    assert!(damaged.contains("other.root: tree 'DecayTree': branch"), "{damaged}");
    assert!(!fs::exists(&out).expect("a folder"), "{all}");
}

#[test]
fn slimmed_copies_keep_their_pages() {
    let place = Place::new();
    let all = place.b2hhh();
    let (slim, codec) = (place.path("slim.root"), place.path("lz4.root"));
    tupelo(&["copy", &all, &codec, "--compression", "lz4:4", "--cluster-bytes", "50kB"]).ok();
    tupelo(&["copy", &codec, &slim, "--fields", "H1_PX,H2_PY"]).ok();
    tupelo(&["diff", &all, &slim, "--fields", "H1_PX,H2_PY"]).ok();
    tupelo(&["verify", &slim]).ok();
    let layout = |file: &str| tupelo(&["explain", file, "--fields", "H1_PX,H2_PY", "--json"]).json();
    let (own, other) = (layout(&slim), layout(&codec));
    for what in ["clusters", "pages", "stored_bytes", "unpacked_bytes"] {
        assert_eq!(own[what], other[what], "{what}");
    }
    // Of a cluster that is not chosen as a whole, the entries are decoded.
    tupelo(&["copy", &codec, "-o", &slim, "-f", "--entries", "100:2900"]).ok();
    let cut = place.path("cut.root");
    tupelo(&["copy", &all, &cut, "--entries", "100:2900", "--compression", "none"]).ok();
    tupelo(&["diff", &cut, &slim]).ok();
}

#[test]
fn differences_are_named() {
    let place = Place::new();
    let all = place.b2hhh();
    let (one, other) = (place.path("one.root"), place.path("other.root"));
    tupelo(&["copy", &all, &one, "--fields", "H1_PX,H1_PY", "--entries", ":100"]).ok();
    tupelo(&["copy", &all, &other, "--fields", "H1_PX,H2_PX", "--entries", "1:100"]).ok();
    let found = tupelo(&["diff", &one, &other, "--json"]);
    assert_eq!(found.status, Some(1));
    let found: serde_json::Value = serde_json::from_str(&found.stdout).expect("JSON");
    let fields = found["fields"].as_array().expect("fields");
    let kinds: Vec<_> = fields.iter().map(|it| (it["name"].clone(), it["difference"].clone())).collect();
    let expected = [("H1_PY", "only_first"), ("H2_PX", "only_second"), ("H1_PX", "values")];
    assert_eq!(kinds, expected.map(|(name, kind)| (json!(name), json!(kind))));
    assert_eq!((&fields[2]["entry"], &found["equal"]), (&json!(0), &json!(false)));
    assert_eq!(found["compared_entries"], 99);
    // All numbers are within a million of each other.
    let close = tupelo(&["diff", &one, &other, "--fields", "H1_PX", "--entries", ":99", "--absolute", "1e6"]);
    close.ok();
    let missing = tupelo(&["diff", &one, &place.path("missing.root")]).fails(2);
    assert!(missing.contains("missing.root"), "{missing}");
    let unknown = tupelo(&["diff", &one, &other, "--fields", "H1_PXX"]).fails(2);
    assert!(unknown.contains("H1_PX"), "{unknown}");
}

/// Every real file with ntuples is the same as two halves of it, merged.
#[test]
fn halves_of_real_files_are_merged_to_the_whole() {
    let place = Place::new();
    let mut covered = 0;
    for file in data().and_then(|folder| fs::read_dir(folder).ok()).into_iter().flatten() {
        let path = file.expect("an entry").path();
        let Some(file) = path.to_str().filter(|file| file.ends_with(".root")) else { continue };
        let listed = tupelo(&["ls", file, "--json"]).json();
        for ntuple in listed["ntuples"].as_array().expect("ntuples") {
            let (name, entries) =
                (ntuple["name"].as_str().expect("a name"), ntuple["entries"].as_u64().expect("a number"));
            let input = format!("{file}:{name}");
            let [first, second, out] = ["first.root", "second.root", "out.root"].map(|name| place.path(name));
            let middle = entries / 2;
            tupelo(&["copy", "-q", &input, "-o", &first, "-f", "--entries", &format!(":{middle}")]).ok();
            tupelo(&["copy", "-q", &input, "-o", &second, "-f", "--entries", &format!("{middle}:")]).ok();
            tupelo(&["merge", "-q", &out, &first, &second, "--force"]).ok();
            tupelo(&["diff", "-q", &input, &out]).ok();
            covered += 1;
        }
    }
    summarise("merging", &format!("{covered} real ntuples are the same as their halves, merged"));
}

/// Defect: the error was about the output, as if it had an object of that name.
#[test]
fn objects_of_two_kinds_with_one_name_are_refused() {
    let place = Place::new();
    let (with, without, out) = (place.b2hhh(), place.path("other.root"), place.path("out.root"));
    let name = tupelo(&["ls", &with, "--json"]).json()["ntuples"][0]["name"].as_str().expect("a name").to_owned();
    tupelo(&["copy", &place.nanoaod(), &without]).ok();
    add_text(&without, &name, "a text");
    for inputs in [[&with, &without], [&without, &with]] {
        let error = tupelo(&["merge", &out, inputs[0], inputs[1]]).fails(1);
        assert!(
            error.contains(&format!("'{name}' is an ntuple or a tree in some of the files, and another")),
            "{error}"
        );
        assert!(!fs::exists(&out).expect("a folder"));
    }
}

/// Defect: nothing accepted that objects which cannot be merged are left out.
#[test]
fn objects_that_cannot_be_merged_may_be_left_out() {
    let place = Place::new();
    let [one, other, out] = ["one.root", "other.root", "out.root"].map(|name| place.path(name));
    for (file, title) in [(&one, "2022"), (&other, "2023")] {
        for number in 0..7 {
            add_text(file, &format!("note{number}"), title);
        }
        add_text(file, "same", "text");
    }
    let arguments = ["merge", &out, &one, &other, "--force"];
    let run = tupelo(&arguments);
    let skipped = tupelo(&[&arguments[..], &["--skip-unmergeable"]].concat());
    for warned in [&run.stderr, &skipped.stderr] {
        for number in 0..7 {
            assert!(warned.contains(&format!("warning: not merged: 'note{number}': that of ")), "{warned}");
        }
    }
    let error = run.fails(1);
    assert!(
        error.contains("was written without what the warnings name") && error.contains("use --skip-unmergeable"),
        "{error}"
    );
    skipped.ok();
    assert_eq!(tupelo(&["dump", &format!("{out}:note6")]).json()["fTitle"], "2022");
}
