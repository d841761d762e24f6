//! What operators of many files need: outputs that cannot be forgotten, bad files, few open files, and a look at values.

use std::fs;

use serde_json::{Value, json};

use super::{Place, tupelo};

/// Two files that each hold a part of the same events; the second one lacks a field.
fn parts(place: &Place, all: &str) -> [String; 2] {
    let (first, second) = (place.path("part1.root"), place.path("part2.root"));
    tupelo(&["copy", all, &first, "--entries", ":200"]).ok();
    tupelo(&["copy", all, &second, "--entries", "200:", "--exclude", "MET_pt"]).ok();
    [first, second]
}

/// A file that was cut off, and one that is text.
fn bad(place: &Place, good: &str) -> [String; 2] {
    let (short, text) = (place.path("short.root"), place.path("text.root"));
    fs::write(&short, &fs::read(good).expect("a file")[..1000]).expect("a file");
    fs::write(&text, "hello\n").expect("a file");
    [short, text]
}

/// Defect: `copy --force *.root` with a forgotten output replaced the last input.
#[test]
fn a_forgotten_output_does_not_change_the_last_input() {
    let place = Place::new();
    let file = place.b2hhh();
    let [a, b, c] = ["a.root", "b.root", "c.root"].map(|name| place.path(name));
    for copy in [&a, &b, &c] {
        fs::copy(&file, copy).expect("a copy");
    }
    let before = fs::read(&c).expect("a file");
    let two = ["copy", &a, &c, "--force"];
    for arguments in
        [&two[..], &["import", &a, &c, "--force"], &["export", &a, &c, "--force"], &[&two[..], &["--raw"]].concat()]
    {
        let error = tupelo(arguments).fails(2);
        assert!(error.contains("is the last of 2 files") && error.contains("-o "), "{arguments:?}: {error}");
        assert!(fs::read(&c).expect("a file") == before, "{arguments:?} replaced the last input");
    }
    for command in ["copy", "import", "export"] {
        for options in [&["--force"][..], &["--append", "--as", "again"]] {
            let error = tupelo(&[&[command, &a, &b, &c], options].concat()).fails(2);
            assert!(error.contains("is the last of 3 files") && error.contains("-o "), "{command}: {error}");
            assert!(fs::read(&c).expect("a file") == before, "{command} {options:?} changed the last input");
        }
    }
    // With the option it is clear, and a new file needs no option.
    tupelo(&["copy", &a, &b, "--force", "-o", &c]).ok();
    assert_eq!(tupelo(&["count", &c]).ok(), "6000\n");
    tupelo(&["copy", &a, &b, &place.path("new.root"), "--force"]).ok();
    tupelo(&["copy", "--force", &a, "-o", &b]).ok();
    tupelo(&["export", &a, "--output", &place.path("tree.root")]).ok();
    tupelo(&["import", &place.path("tree.root"), "-o", &place.path("ntuple.root")]).ok();
    assert_eq!(tupelo(&["count", &place.path("ntuple.root")]).ok(), "3000\n");
    let error = tupelo(&["copy", &a]).fails(2);
    assert!(error.contains("needs an input and an output, found only") && error.contains("-o OUT"), "{error}");
}

/// The report of an import replaced whatever had its name.
#[test]
fn a_report_replaces_neither_input_nor_output() {
    let place = Place::new();
    let (tree, out) = (place.path("tree.root"), place.path("out.root"));
    tupelo(&["export", &place.b2hhh(), &tree]).ok();
    let before = fs::read(&tree).expect("a file");
    for report in [&tree, &out] {
        tupelo(&["import", &tree, &out, "--report", report]).fails(2);
        assert!(fs::read(&tree).expect("a file") == before && fs::metadata(&out).is_err());
    }
}

/// Defect: the first bad file ended the command, so that each run found one.
#[test]
fn all_files_that_cannot_be_opened_are_listed() {
    let place = Place::new();
    let good = place.nanoaod();
    let [short, text] = bad(&place, &good);
    let (tree, out) = (place.path("tree.root"), place.path("out.root"));
    tupelo(&["export", &good, &tree, "--fields", "event,MET_pt"]).ok();
    for arguments in [
        &["dump", &short, &good, &text][..],
        &["head", &short, &good, &text],
        &["index", &short, &good, &text],
        &["count", &short, &good, &text],
        &["copy", &short, &good, &text, &out],
        &["import", &short, &tree, &text, &out],
        &["export", &short, &good, &text, &out, "--fields", "event,MET_pt"],
    ] {
        let error = tupelo(arguments).fails(1);
        for part in ["short.root", "text.root", "2 of 3 files cannot be opened", "--skip-errors"] {
            assert!(error.contains(part), "{part} in {arguments:?}: {error}");
        }
        assert!(fs::metadata(&out).is_err(), "{arguments:?}");
        let run = tupelo(&[arguments, &["--skip-errors"]].concat());
        assert!(run.stderr.contains("warning: left out: ") && run.stderr.contains("text.root"), "{}", run.stderr);
        let printed = run.ok();
        if fs::metadata(&out).is_ok() {
            assert_eq!(tupelo(&["count", &out]).ok(), "500\n", "{arguments:?}");
            fs::remove_file(&out).expect("a file");
        }
        if arguments[0] == "index" {
            let manifest: Value = serde_json::from_str(&printed).expect("JSON");
            assert_eq!(manifest["files"].as_array().expect("files").len(), 1);
            let left_out: Vec<&Value> = manifest["left_out"].as_array().expect("files").iter().collect();
            assert_eq!(left_out.iter().map(|file| &file["uri"]).collect::<Vec<_>>(), [&json!(short), &json!(text)]);
            assert!(left_out[1]["error"].as_str().expect("an error").contains("not a ROOT file"));
        }
    }
    // There must be a file that can be read.
    tupelo(&["dump", &short, &text, "--skip-errors"]).fails(1);
    let one = tupelo(&["dump", &text, "--skip-errors"]).fails(1);
    assert!(one.contains("not a ROOT file"), "{one}");
}

#[test]
fn copy_reads_the_union_of_the_fields() {
    let place = Place::new();
    let [first, second] = parts(&place, &place.nanoaod());
    let all = place.path("all.root");
    let error = tupelo(&["copy", &first, &second, &all]).fails(1);
    assert!(error.contains("some files lack the fields MET_pt"), "{error}");
    tupelo(&["copy", &first, &second, &all, "--union"]).ok();
    let fields = ["--fields", "event,MET_pt,Muon_*"];
    let union = tupelo(&[&["dump", &first, &second, "--union"], &fields[..]].concat()).ok();
    assert_eq!(tupelo(&[&["dump", &all], &fields[..]].concat()).ok(), union);
    tupelo(&["verify", "--deep", &all]).ok();
    // In the other order the first file lacks the field.
    tupelo(&["copy", &second, &first, &all, "--union", "--force", "--fields", "MET_pt,event"]).fails(2);
    tupelo(&["copy", &second, &first, "-o", &all, "--union", "--force", "--fields", "MET_pt,event"]).ok();
    let dumped = tupelo(&["dump", &all, "--entries", "299:301", "--fields", "event,MET_pt"]).ok();
    assert!(dumped.starts_with("{\"event\":500,\"MET_pt\":null}\n{\"event\":1,\"MET_pt\":"), "{dumped}");
    let unknown = tupelo(&["copy", &first, &second, "-o", &all, "-f", "--union", "--fields", "MET_tp"]).fails(1);
    assert!(unknown.contains("no field named 'MET_tp'"), "{unknown}");
}

/// Defect: imports and exports had all inputs open, and `--metrics` made every command keep them.
#[test]
#[cfg(target_os = "linux")]
fn many_inputs_need_few_open_files() {
    use std::process::Command;
    let place = Place::new();
    let (file, tree) = (place.path("small.root"), place.path("tree.root"));
    tupelo(&["copy", &place.nanoaod(), &file, "--entries", ":20", "--fields", "event,MET_pt"]).ok();
    tupelo(&["export", &file, &tree]).ok();
    for number in 0..80 {
        fs::copy(&file, place.path(&format!("n{number}.root"))).expect("a copy");
        fs::copy(&tree, place.path(&format!("t{number}.root"))).expect("a copy");
    }
    let out = place.path("out.root");
    for arguments in [
        &["copy", &place.path("n[0-9]*.root"), &out][..],
        &["export", &place.path("n[0-9]*.root"), &out],
        &["import", &place.path("t[0-9]*.root"), &out, "--validate", "full"],
        &["dump", &place.path("n[0-9]*.root"), "--metrics", "-o", &place.path("out.jsonl")],
    ] {
        let limited = "ulimit -n 48; exec \"$0\" \"$@\"";
        let output = Command::new("sh").args(["-c", limited, env!("CARGO_BIN_EXE_tupelo")]).args(arguments).output();
        let output = output.expect("the command starts");
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        if fs::metadata(&out).is_ok() {
            assert_eq!(tupelo(&["count", &out]).ok(), "1600\n", "{arguments:?}");
            fs::remove_file(&out).expect("a file");
        }
    }
}

/// The sample is one of each file, not one of all together.
#[test]
fn a_sample_of_each_imported_file_is_compared() {
    let place = Place::new();
    let tree = place.path("tree.root");
    tupelo(&["export", &place.b2hhh(), &tree, "--fields", "H1_PX"]).ok();
    let other = place.path("other.root");
    fs::copy(&tree, &other).expect("a copy");
    let run = tupelo(&["import", &tree, &other, &place.path("out.root")]);
    assert!(run.stderr.contains("in 2 000 entries: equal"), "{}", run.stderr);
    run.ok();
}

/// Defect: the columns had the order of the file.
#[test]
fn fields_are_shown_in_the_order_in_which_they_are_named() {
    let place = Place::new();
    let file = place.nanoaod();
    let names = |arguments: &[&str]| {
        let printed = tupelo(&[arguments, &["--entries", ":1"]].concat()).ok();
        printed.lines().next().expect("a line").to_owned()
    };
    let fields = ["--fields", "event,MET_pt,run"];
    assert_eq!(names(&[&["dump", &file, "--format", "csv"], &fields[..]].concat()), "event,MET_pt,run");
    assert_eq!(names(&[&["head", &file, "--format", "csv"], &fields[..]].concat()), "event,MET_pt,run");
    let head = names(&[&["head", &file], &fields[..]].concat());
    assert_eq!(head.split_whitespace().collect::<Vec<_>>(), ["event", "MET_pt", "run"]);
    let mixed = names(&["dump", &file, "--format", "csv", "--define", "x=MET_pt", "--fields", "x,Muon_p*,event"]);
    assert_eq!((mixed.split(',').next(), mixed.split(',').next_back()), (Some("x"), Some("event")));
    // Several files, and other formats.
    let [first, second] = parts(&place, &file);
    let both = names(&["dump", &first, &second, "--union", "--format", "csv", "--fields", "event,MET_pt,run"]);
    assert_eq!(both, "event,MET_pt,run");
    let parquet = place.path("x.parquet");
    tupelo(&[&["dump", &file, "-o", &parquet], &fields[..]].concat()).ok();
    // The schema is at the end, with the columns in their order.
    let text = fs::read(&parquet).expect("a file");
    let last = |name: &str| {
        text.windows(name.len()).rposition(|window| window == name.as_bytes()).expect("the name of a column")
    };
    assert!(last("event") < last("MET_pt") && last("MET_pt") < last("run"));
}

#[test]
fn a_directory_is_listed_with_its_ntuples_and_trees() {
    let place = Place::new();
    let file = place.nanoaod();
    tupelo(&["export", &file, &place.path("tree.root"), "--fields", "event"]).ok();
    fs::write(place.path("notes.txt"), "text\n").expect("a file");
    fs::create_dir(place.path("sub")).expect("a folder");
    let folder = place.path("");
    let listed = tupelo(&["ls", &folder]).ok();
    assert!(listed.contains(", 2 ROOT files") && listed.contains("sub/") && !listed.contains("notes"), "{listed}");
    let entries = listed.lines().filter(|line| line.ends_with("Events     500") || line.contains("Events")).count();
    assert_eq!(entries, 2, "{listed}");
    let json = tupelo(&["ls", &folder, "--json"]).json();
    let objects: Vec<&Value> = json["entries"].as_array().expect("entries").iter().map(|one| &one["objects"]).collect();
    let events = json!([{ "name": "Events", "entries": 500 }]);
    assert_eq!(objects, [&events, &Value::Null, &events]);
    // A file that cannot be read is listed too.
    fs::write(place.path("bad.root"), "root").expect("a file");
    let run = tupelo(&["ls", &folder]);
    assert!(run.stdout.contains("unreadable") && run.stdout.contains("tree.root"), "{}", run.stdout);
    assert!(run.fails(1).contains("bad.root"));
}

#[test]
fn entries_are_counted() {
    let place = Place::new();
    let file = place.nanoaod();
    let cut = "len(Muon_pt) == 2 and sum(Muon_charge) == 0";
    let expected = tupelo(&["dump", &file, "--cut", cut, "--fields", "event"]).ok().lines().count();
    assert_eq!(tupelo(&["count", &file, "--cut", cut]).ok(), format!("{expected}\n"));
    assert_eq!(tupelo(&["count", &file]).ok(), "500\n");
    let [first, second] = parts(&place, &file);
    assert_eq!(tupelo(&["count", &first, &second, "--cut", cut]).ok(), format!("{expected}\n"));
    assert_eq!(tupelo(&["count", &first, "--entries", ":50"]).ok(), "50\n");
    let defined = tupelo(&["count", &file, "--define", "n=len(Muon_pt)", "--cut", "n == 2"]).ok();
    assert_eq!(defined, tupelo(&["count", &file, "--cut", "len(Muon_pt) == 2"]).ok());
}

#[test]
fn histograms_are_drawn_in_the_terminal_and_as_png() {
    let place = Place::new();
    let file = place.nanoaod();
    let counts = |arguments: &[&str]| -> Vec<u64> {
        let drawn = tupelo(&[&["hist", &file], arguments].concat()).ok();
        let bins = drawn.lines().skip(1).filter_map(|line| line.split('│').nth(1)?.split_whitespace().next());
        bins.map(|count| count.parse().expect("a count")).collect()
    };
    // One bin for each integer, as the lists say.
    let muons = tupelo(&["dump", &file, "--define", "n=len(Muon_pt)", "--fields", "n", "--format", "csv"]).ok();
    let numbers: Vec<usize> = muons.lines().skip(1).map(|line| line.parse().expect("a number")).collect();
    let mut expected = vec![0; numbers.iter().max().expect("entries") + 1];
    numbers.iter().for_each(|&number| expected[number] += 1);
    let first = expected.iter().position(|count| *count > 0).expect("a count");
    assert_eq!(counts(&["len(Muon_pt)"]), expected[first..]);
    // Each item of a list counts, and cuts choose entries.
    let all: u64 = counts(&["Muon_pt", "--bins", "7"]).iter().sum();
    assert_eq!(all as usize, numbers.iter().sum::<usize>());
    let pairs: u64 = counts(&["Muon_pt", "--cut", "len(Muon_pt) == 2", "--log"]).iter().sum();
    assert_eq!(pairs as usize, 2 * numbers.iter().filter(|&&number| number == 2).count());
    let run = tupelo(&["hist", &file, "MET_pt", "--range", "0:10", "--bins", "5"]);
    assert!(run.stderr.contains("500 values, mean ") && run.stderr.contains(" above"), "{}", run.stderr);
    assert_eq!(run.ok().lines().count(), 7);
    let picture = place.path("x.png");
    tupelo(&["hist", &file, "Muon_pt[abs(Muon_eta) < 1]", "-o", &picture]).ok();
    assert!(fs::read(&picture).expect("a picture").starts_with(b"\x89PNG\r\n\x1a\n"));
    for (arguments, said) in [
        (&["MET_pt", "-o", &place.path("x.pdf")][..], "written as .png or .svg"),
        (&["MET_pt", "-o", &file], "both input and output"),
        (&["MET_pt", "--range", "3:1"], "LOW:HIGH"),
        (&["MET_tp"], "MET_pt"),
    ] {
        let run = tupelo(&[&["hist", &file], arguments].concat());
        assert!(run.status != Some(0) && run.stderr.contains(said), "{arguments:?}: {}", run.stderr);
    }
}

/// Defect: verifying read every page twice, and told no time.
#[test]
fn verifying_reads_a_file_once() {
    let place = Place::new();
    let file = place.b2hhh();
    let run = tupelo(&["verify", &file, "--metrics"]);
    let read = run.stderr.lines().find(|line| line.starts_with("bytes read")).expect("statistics").to_owned();
    let mib: f64 = read.split_whitespace().nth(2).expect("a number").parse().expect("a number");
    let size = fs::metadata(&file).expect("a file").len() as f64 / f64::from(1 << 20);
    assert!(mib < 1.3 * size, "{mib} MiB of {size}");
    run.ok();
}

/// Defect: what a killed writer had appended was never removed.
#[test]
fn an_append_and_a_repair_reclaim_what_a_killed_writer_left() {
    let place = Place::new();
    let file = place.b2hhh();
    let size = || fs::metadata(&file).expect("a file").len();
    let whole = size();
    let leave = || {
        use std::io::Write;
        let mut end = fs::File::options().append(true).open(&file).expect("a file");
        end.write_all(&vec![7; 1 << 20]).expect("bytes");
    };
    let expected = tupelo(&["dump", &file]).ok();
    leave();
    let run = tupelo(&["verify", "--repair", &file]);
    assert!(run.stderr.contains("1.00 MiB at the end"), "{}", run.stderr);
    run.ok();
    assert_eq!(size(), whole);
    assert!(tupelo(&["verify", "--repair", &file]).stderr.contains("nothing to repair"));
    leave();
    tupelo(&["copy", &file, &file, "--append", "--as", "again", "--entries", ":10"]).ok();
    assert!(size() < whole + (1 << 19), "{} after {whole}", size());
    assert!(tupelo(&["dump", &format!("{file}:DecayTree")]).ok() == expected);
    tupelo(&["verify", "--deep", &file]).ok();
}

/// Defect: the hint led to `verify`, which said the same again.
#[test]
fn the_hint_for_a_file_that_was_cut_off_says_more_than_the_error() {
    let place = Place::new();
    let file = place.b2hhh();
    let size = fs::metadata(&file).expect("a file").len();
    let cut = |len| fs::File::options().write(true).open(&file).and_then(|file| file.set_len(len)).expect("a file");
    cut(size - 100);
    tupelo(&["verify", "--repair", &file]).ok();
    assert_eq!(tupelo(&["count", &file]).ok(), "3000\n");
    cut(size / 2);
    for command in ["head", "verify"] {
        let error = tupelo(&[command, &file]).fails(1);
        assert!(
            error.contains("the file was cut off") && error.contains("copy the file from its source again"),
            "{command}: {error}"
        );
        assert!(!error.contains("lists everything"), "{command}: {error}");
    }
}
