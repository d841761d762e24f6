//! Options, and errors of invalid command lines.

use serde_json::json;

use super::objects::{histogram, plots};
use super::{Place, command, tupelo};

/// Exit status and stderr with `TUPELO_THREADS` set.
fn with_threads(value: &str, arguments: &[&str]) -> (Option<i32>, String) {
    let output = command(arguments).env("TUPELO_THREADS", value).output().expect("the command starts");
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn where_is_an_alias_of_cut() {
    let place = Place::new();
    let file = place.nanoaod();
    let cut = "len(Muon_pt) == 2 and sum(Muon_charge) == 0";
    let kept = tupelo(&["dump", &file, "--where", cut]).ok();
    assert!(!kept.is_empty());
    assert_eq!(tupelo(&["dump", &file, "--cut", cut]).ok(), kept);
    tupelo(&["dump", &file, "--cut", cut, "--where", cut]).fails(2);
    assert!(tupelo(&["dump", "--help"]).ok().contains("--cut <EXPRESSION>"));
}

#[test]
fn numeric_options_suggest_n() {
    for (number, arguments) in [("5", &["head", "-5", "x.root"][..]), ("20", &["head", "x.root", "-20", "--quiet"])] {
        let error = tupelo(arguments).fails(2);
        assert!(error.contains(&format!("'-n {number}' shows the first {number} entries")), "{error}");
    }
    assert!(!tupelo(&["dump", "-5", "x.root"]).fails(2).contains("-n 5"));
    assert!(!tupelo(&["head", "-x", "x.root"]).fails(2).contains("shows the first"));
}

#[test]
fn files_without_a_command_suggest_ls() {
    for file in ["events.root", "data/events", "events.root:Events"] {
        let error = tupelo(&[file]).fails(2);
        assert!(error.contains(&format!("'tupelo ls {file}'")), "{error}");
    }
    assert!(!tupelo(&["nonsense"]).fails(2).contains("tupelo ls"));
}

#[test]
fn head_takes_a_range_of_entries() {
    let place = Place::new();
    let file = place.nanoaod();
    let head = |arguments: &[&str]| {
        let jsonl = ["--format", "jsonl", "--fields", "event,MET_pt"];
        tupelo(&[&["head", &file], &jsonl[..], arguments].concat()).ok()
    };
    let dump = |entries: &str| tupelo(&["dump", &file, "--fields", "event,MET_pt", "--entries", entries]).ok();
    assert_eq!(head(&[]), dump(":10"));
    assert_eq!(head(&["--entries", "100:130"]), dump("100:130"));
    assert_eq!(head(&["--entries", "100:130", "-n", "3"]), dump("100:103"));
    assert_eq!(head(&["--entries", "-3:"]), dump("-3:"));
    assert_eq!(head(&["--entries", "-3:", "--where", "True", "-n", "2"]), dump("497:499"));
    let table = tupelo(&["head", &file, "--fields", "event", "--entries", "7:9"]).ok();
    let numbers: Vec<_> = table.lines().skip(1).map(|line| line.split_whitespace().next().expect("a number")).collect();
    assert_eq!(numbers, ["7", "8"]);
}

#[test]
fn defined_columns_can_be_selected() {
    let place = Place::new();
    let file = place.nanoaod();
    let names = |arguments: &[&str]| {
        let csv = ["--format", "csv", "--entries", ":1", "--define", "ht=sum(Jet_pt)", "--define", "n=len(Jet_pt)"];
        tupelo(&[&["dump", &file], &csv[..], arguments].concat()).ok().lines().next().expect("names").to_owned()
    };
    assert_eq!(names(&["--fields", "MET_pt"]), "MET_pt,ht,n");
    assert_eq!(names(&["--fields", "ht,MET_pt"]), "ht,MET_pt,n");
    assert_eq!(names(&["--fields", "ht"]), "ht,n");
    assert_eq!(names(&["--fields", "h*", "--fields", "n"]), "ht,n");
    let copy = place.path("copy.root");
    tupelo(&["copy", &file, &copy, "--define", "ht=sum(Jet_pt)", "--fields", "event,ht"]).ok();
    assert_eq!(tupelo(&["schema", &copy, "--json"]).json()["fields"].as_array().map(Vec::len), Some(2));
    let head = tupelo(&["head", &file, "-n", "1", "--define", "ht=sum(Jet_pt)", "--fields", "ht"]).ok();
    assert_eq!(head.lines().next().map(str::trim), Some("ht"));
    tupelo(&["dump", &file, "--define", "ht=sum(Jet_pt)", "--fields", "hx"]).fails(1);
}

#[test]
fn fields_are_excluded() {
    let place = Place::new();
    let file = place.nanoaod();
    let names = |command: &str, arguments: &[&str]| {
        let listed = tupelo(&[&[command, &file, "--arrow"], arguments].concat()).ok();
        listed.lines().map(|line| line.split(':').next().expect("a name").to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names("schema", &["--fields", "MET_*", "--exclude", "MET_phi"]), ["MET_pt", "MET_sumEt"]);
    let all = names("schema", &[]);
    let some = names("schema", &["--exclude", "Muon_*,Jet_*", "--exclude", "MET_pt"]);
    let expected =
        all.iter().filter(|name| !name.starts_with("Muon_") && !name.starts_with("Jet_") && *name != "MET_pt");
    assert_eq!(some, expected.cloned().collect::<Vec<_>>());
    // An excluded field need not be selected, but must exist.
    let chosen = ["--entries", ":2", "--fields", "event,Muon_pt", "--exclude", "Muon_*,Jet_pt"];
    let expected = tupelo(&["dump", &file, "--entries", ":2", "--fields", "event"]).ok();
    assert_eq!(tupelo(&[&["dump", &file], &chosen[..]].concat()).ok(), expected);
    let head = ["head", &file, "-n", "2", "--format", "jsonl", "--fields", "event,Muon_pt", "--exclude", "Muon_pt"];
    assert_eq!(tupelo(&head).ok(), expected);
    let copy = place.path("copy.root");
    tupelo(&[&["copy", &file, &copy], &chosen[..]].concat()).ok();
    assert_eq!(tupelo(&["dump", &copy]).ok(), expected);
    let error = tupelo(&["dump", &file, "--exclude", "muon_p"]).fails(1);
    assert!(error.contains("no field named 'muon_p'") && error.contains("'Muon_pt'"), "{error}");
}

#[test]
fn suggestions_ignore_case() {
    let place = Place::new();
    let file = place.nanoaod();
    let error = tupelo(&["schema", &file, "--fields", "muon*"]).fails(1);
    assert!(error.contains("'Muon_"), "{error}");
}

/// Defect: an empty variable was an error, and a set one appeared as `--threads <N>` in the usage of every command.
#[test]
fn threads_can_be_set_by_the_environment() {
    let place = Place::new();
    let file = place.nanoaod();
    for value in ["", " ", "0", "2"] {
        assert_eq!(with_threads(value, &["ls", &file]).0, Some(0), "'{value}'");
    }
    let (status, said) = with_threads("many", &["ls", &file]);
    assert_eq!(status, Some(2), "{said}");
    assert!(said.contains("TUPELO_THREADS") && said.contains("'many'") && said.contains("hint"), "{said}");
    assert_eq!(with_threads("many", &["ls", "--threads", "1", &file]).0, Some(0));
    let (_, said) = with_threads("2", &["dump"]);
    assert!(said.contains("Usage: tupelo dump") && !said.contains("--threads"), "{said}");
    assert!(tupelo(&["ls", "--help"]).ok().contains("TUPELO_THREADS"));
}

#[test]
fn directories_are_refused_as_output() {
    let place = Place::new();
    let file = place.nanoaod();
    std::fs::create_dir(place.path("folder")).expect("a folder");
    let error = tupelo(&["copy", &file, &place.path("folder")]).fails(2);
    assert!(error.contains("folder is a directory") && !error.contains("--force"), "{error}");
}

#[test]
fn empty_results_of_cuts_are_reported() {
    let place = Place::new();
    let file = place.nanoaod();
    let cut = ["--where", "MET_pt < 0"];
    let note = "no entry matches --cut";
    let out = place.path("out.parquet");
    for arguments in [
        &["dump", &file][..],
        &["dump", &file, "--format", "csv"],
        &["dump", &file, "-o", &out],
        &["head", &file],
        &["head", &file, "--format", "jsonl"],
    ] {
        let run = tupelo(&[arguments, &cut].concat());
        assert!(run.stderr.contains(note), "{arguments:?}: {}", run.stderr);
        run.ok();
        let run = tupelo(&[arguments, &["--where", "MET_pt >= 0"]].concat());
        assert!(!run.stderr.contains(note), "{arguments:?}: {}", run.stderr);
    }
    let run = tupelo(&[&["copy", &file, &place.path("copy.root")], &cut[..]].concat());
    assert!(run.stderr.contains("0 entries"), "{}", run.stderr);
}

/// The files that the examples of the help name.
#[cfg(unix)]
fn example_files() -> Place {
    let place = Place::new();
    let [events, tree, scores] = ["events.root", "tree.root", "scores.root"].map(|name| place.path(name));
    let named = |file: &str, name: &str| format!("{}:{name}", place.path(file));
    tupelo(&["generate", "nanoaod", "--events", "500", &events]).ok();
    for name in ["run1.root", "run2.root", "more.root", "a.root", "b.root", "ntuple.root"] {
        std::fs::copy(&events, place.path(name)).expect("a file");
    }
    let daod = ["--fields", "Jet_pt", "--rename", "Jet_pt=JetsAuxDyn:pt"];
    tupelo(&[&["copy", "-q", &events, &named("DAOD_PHYSLITE.root", "EventData")], &daod[..]].concat()).ok();
    let score = ["--fields", "run,event", "--define", "score=MET_pt / (MET_pt + 1)"];
    tupelo(&[&["copy", "-q", &events, &format!("{scores}:Scores")], &score[..]].concat()).ok();
    tupelo(&["export", "-q", &events, &tree, "--skip-unreadable"]).ok();
    tupelo(&["export", "-q", &events, &named("daod.root", "CollectionTree"), "--skip-unreadable"]).ok();
    std::fs::copy(&tree, place.path("nano.root")).expect("a file");
    let b2hhh = place.b2hhh();
    tupelo(&["export", "-q", &b2hhh, &place.path("lhcb.root")]).ok();
    std::fs::remove_file(b2hhh).expect("a file");
    tupelo(&["merge", "-q", &place.path("merged.root"), &place.path("run1.root"), &place.path("run2.root")]).ok();
    tupelo(&["dump", "-q", &events, "--fields", "MET_pt", "-o", &place.path("events.parquet")]).ok();
    std::fs::write(place.path("run1.csv"), "run,started\n1,2026-01-02T03:04:05\n").expect("a file");
    tupelo(&["copy", "-q", &events, &format!("ntpl+file:{}", place.path("test-1"))]).ok();
    plots(&place, &["mass", "dir/mass", "pt"]);
    let file = tupelo::update(&events).expect("a file");
    for name in ["histograms/old_pt", "calibration/scale", "h_pt", "old", "new"] {
        file.object(name, "", &histogram(name), tupelo::Compression::DEFAULT).expect("an object");
    }
    file.finish().expect("a file");
    for name in ["copy.root", "before.root", "after.root", "one-thread.root", "many-threads.root"] {
        std::fs::copy(&events, place.path(name)).expect("a file");
    }
    place
}

#[cfg(unix)]
fn shell(directory: &std::path::Path, line: &str) -> std::process::Output {
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", &format!("tupelo() {{ \"$0\" \"$@\"; }}; {line}"), env!("CARGO_BIN_EXE_tupelo")]);
    shell.current_dir(directory).output().expect("a shell")
}

/// Defect: the examples used fields that generated events do not have.
#[test]
#[cfg(unix)]
fn examples_of_the_help_run_on_generated_events() {
    let files = example_files();
    let (mut examples, mut failed) = (0, Vec::new());
    // Those of `sql` need the Python package, and run with the pages of the guide; those of `auxbench` need events of ATLAS, and
    // those of `browse` a terminal.
    let others = ["help", "sql", "auxbench", "browse"];
    for name in subcommands().iter().filter(|name| !others.contains(&name.as_str())) {
        let help = tupelo(&[name, "--help"]).ok();
        let (_, text) = help.split_once("Examples:\n").expect(name);
        // Lines are wrapped.
        let lines = text.trim().replace("\n  tupelo ", "\0tupelo ").replace('\n', "");
        let mut place = None;
        for line in lines.split('\0').map(str::trim).filter(|line| !line.contains('|')) {
            // Those of `copy` go on with what the ones before wrote.
            let directory = place.take().filter(|_| name == "copy").unwrap_or_else(|| {
                let fresh = Place::new();
                let copied = shell(files.directory.path(), &format!("cp -r . '{}'", fresh.directory.path().display()));
                assert!(copied.status.success(), "{copied:?}");
                fresh
            });
            if name == "gc" {
                std::fs::create_dir(directory.path("results")).expect("a directory");
                let stored = format!("ntpl+file:{}", directory.path("events"));
                tupelo(&["copy", "-q", &directory.path("run1.root"), &stored]).ok();
            }
            // They write what others read.
            for (writer, file) in [("import", "events.root"), ("export", "tree.root")] {
                if name == writer {
                    std::fs::remove_file(directory.path(file)).expect("a file");
                }
            }
            let output = shell(directory.directory.path(), line);
            if !output.status.success() {
                failed.push(format!("{line}: {}", String::from_utf8_lossy(&output.stderr)));
            }
            examples += 1;
            place = Some(directory);
        }
        if let Some(place) = place.filter(|_| name == "copy") {
            let pairs = tupelo(&["ls", &place.path("dimuons.root"), "--json"]).json()["ntuples"][0]["entries"].clone();
            assert!(pairs.as_u64() > Some(0) && pairs != json!(500), "{pairs}");
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    assert!(examples > 70, "{examples} examples");
}

/// The names of the subcommands in the help of the command.
fn subcommands() -> Vec<String> {
    let help = tupelo(&["--help"]).ok();
    let (list, _) = help.split_once("\nOptions:").expect("options");
    let (_, list) = list.split_once("\nUsage: ").expect("usage");
    let is_name = |line: &&str| line.starts_with("  ") && !line.starts_with("   ");
    list.lines().filter(is_name).filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

#[test]
fn shells_complete_subcommands_and_options() {
    for shell in ["bash", "zsh", "fish"] {
        let script = tupelo(&["completions", shell]).ok();
        assert!(script.contains("salvage") && script.contains("repack"), "{shell}");
    }
    let place = Place::new();
    let script = place.path("tupelo.bash");
    std::fs::write(&script, tupelo(&["completions", "bash"]).ok()).expect("a file");
    let complete = format!(
        "source '{script}'; COMP_WORDS=(tupelo ver); COMP_CWORD=1; _tupelo tupelo ver tupelo; echo \"${{COMPREPLY[@]}}\""
    );
    // A machine may lack the shell.
    if let Ok(done) = std::process::Command::new("bash").args(["-c", &complete]).output() {
        assert_eq!(String::from_utf8_lossy(&done.stdout).trim(), "verify", "{done:?}");
    }
    tupelo(&["completions", "tcsh"]).fails(2);
}

#[test]
fn each_subcommand_has_a_page() {
    let place = Place::new();
    let folder = place.path("man/man1");
    tupelo(&["man", "--out", &folder]).ok();
    for name in subcommands().iter().filter(|name| *name != "help") {
        let page = std::fs::read_to_string(format!("{folder}/tupelo-{name}.1")).expect("a page");
        assert!(page.contains(&format!(".TH tupelo-{name} 1")) && page.contains("Examples"), "{page}");
        assert_eq!(tupelo(&["man", name]).ok(), page);
    }
    assert_eq!(tupelo(&["man"]).ok(), std::fs::read_to_string(format!("{folder}/tupelo.1")).expect("a page"));
    assert!(tupelo(&["man", "cpy"]).fails(1).contains("'copy'"));
}

#[test]
fn options_may_stand_between_the_files_of_a_copy() {
    let place = Place::new();
    let (file, out) = (place.nanoaod(), place.path("out.root"));
    tupelo(&["copy", &file, "--fields", "event", &out]).ok();
    assert_eq!(tupelo(&["schema", &out, "--json"]).json()["fields"].as_array().map(Vec::len), Some(1));
    let error = tupelo(&["copy", &file]).fails(2);
    assert!(error.contains("copy needs an input and an output"), "{error}");
    let error = tupelo(&["copy", &file, &place.path("new/")]).fails(1);
    assert!(error.contains("the path lacks a file name"), "{error}");
}

#[test]
fn options_of_other_programs_are_translated() {
    let place = Place::new();
    let file = place.nanoaod();
    for (option, name) in [("--branches", "--fields"), ("--columns", "--fields"), ("--filter", "--cut")] {
        let error = tupelo(&["head", &file, option, "x"]).fails(2);
        assert!(error.contains(&format!("the option is '{name}'")), "{error}");
    }
    let error = tupelo(&["merge", &place.path("all.root"), &file, "--recompress"]).fails(2);
    assert!(error.contains("the option is '--compression'"), "{error}");
    let error = tupelo(&["head", &file, "--qqq"]).fails(2);
    assert!(!error.contains("as a value"), "{error}");
}

#[test]
fn sql_says_what_it_needs() {
    let run = |python: &str| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_tupelo"));
        let output = command.args(["sql", "select 1"]).env("TUPELO_PYTHON", python).output().expect("the command");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (status, error) = run("no-such-python");
    assert_eq!(status, Some(1));
    assert!(
        error.contains("sql needs Python, and no-such-python was not found") && error.contains("duckdb"),
        "{error}"
    );
    // A program that answers as Python without the package does.
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let place = Place::new();
        let python = place.path("python");
        std::fs::write(&python, "#!/bin/sh\nexit 77\n").expect("a program");
        std::fs::set_permissions(&python, std::fs::Permissions::from_mode(0o755)).expect("a program");
        let (status, error) = run(&python);
        assert_eq!(status, Some(1));
        assert!(error.contains("sql needs the Python package tupelo"), "{error}");
    }
    tupelo(&["sql"]).fails(2);
    assert!(tupelo(&["sql", "select 1", "--format", "xml"]).fails(2).contains("parquet"));
}
