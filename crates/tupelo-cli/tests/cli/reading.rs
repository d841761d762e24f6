//! `ls`, `schema`, `head`, `dump` and `index` for generated files.

use std::io::Read;
use std::process::Stdio;

use serde_json::{Value, json};

use super::{Place, command, tupelo};

#[test]
fn help_and_version_go_to_stdout() {
    assert!(tupelo(&["--version"]).ok().starts_with("tupelo 0."));
    assert!(tupelo(&["generate", "--version"]).ok().starts_with("tupelo-generate 0."));
    assert!(!tupelo(&["--help"]).ok().contains("generate"), "`tupelo-generate` is a separate program");
    for name in ["ls", "schema", "head", "dump", "explain", "layout", "verify", "copy", "index", "generate"] {
        let help = tupelo(&[name, "--help"]).ok();
        assert!(help.contains("Example"), "{name} has an example");
    }
}

#[test]
fn a_wrong_command_line_is_status_2() {
    assert!(tupelo(&["dmup"]).fails(2).contains("dump"));
    tupelo(&["dump"]).fails(2);
    assert!(tupelo(&["dump", "x.root", "--entries", "a:b"]).fails(2).contains("START:STOP"));
    assert!(tupelo(&["generate", "b2hhh", "x.root", "--compression", "brotli"]).fails(2).contains("zstd"));
    assert!(tupelo(&["generate", "b2hhh", "x.root", "--page-bytes", "1furlong"]).fails(2).contains("1MiB"));
}

#[test]
fn a_range_after_the_last_entry_is_told() {
    let place = Place::new();
    let (file, out) = (place.b2hhh(), place.path("out.root"));
    for arguments in [vec!["dump", &file], vec!["copy", &file, "-o", &out], vec!["hist", &file, "H1_PX"]] {
        let warning = tupelo(&[&arguments[..], &["--entries", "100000:"]].concat()).fails(0);
        assert!(warning.contains("--entries selects nothing: there are only "), "{warning}");
    }
    assert_eq!(tupelo(&["count", &file, "--entries", ":0"]).fails(0), "");
}

#[test]
fn errors_are_one_line_with_the_full_context() {
    let place = Place::new();
    let file = place.nanoaod();
    let error = tupelo(&["dump", &place.path("none.root")]).fails(1);
    assert!(error.starts_with("tupelo: error: cannot open ") && error.lines().count() == 1, "{error}");
    let error = tupelo(&["dump", &format!("{file}:Evnts")]).fails(1);
    assert!(error.contains("nanoaod.root") && error.contains("'Events'"), "{error}");
    let error = tupelo(&["dump", &file, "--fields", "Muon_pT"]).fails(1);
    assert!(error.contains("Muon_pT") && error.contains("'Muon_pt'"), "{error}");
    let error = tupelo(&["dump", &file, "--attributes", "notes"]).fails(1);
    assert!(error.contains("no attribute set named 'notes'"), "{error}");
    std::fs::write(place.path("text.root"), "this is not a ROOT file, but it is long enough to look like one, almost")
        .expect("a file");
    let error = tupelo(&["ls", &place.path("text.root")]).fails(1);
    assert!(error.contains("not a ROOT file"), "{error}");
}

#[test]
fn a_file_is_listed() {
    let place = Place::new();
    let file = place.nanoaod();
    let listed = tupelo(&["ls", &file, "--json"]).json();
    let ntuple = &listed["ntuples"][0];
    assert_eq!(
        (&ntuple["name"], &ntuple["entries"], &ntuple["codec"]),
        (&json!("Events"), &json!(500), &json!("zstd:5"))
    );
    assert_eq!(listed["bytes"], json!(std::fs::metadata(&file).expect("a file").len()));
    let table = tupelo(&["ls", &file]).ok();
    assert!(table.contains("Events") && table.contains("zstd:5") && table.contains("Tupelo"), "{table}");
    let fields = tupelo(&["ls", &format!("{file}:Events"), "--json"]).json();
    let fields = fields["fields"].as_array().expect("fields");
    assert_eq!(ntuple["fields"], json!(fields.len()));
    let stored: u64 = fields.iter().map(|field| field["stored_bytes"].as_u64().expect("a number")).sum();
    assert_eq!(ntuple["stored_bytes"], json!(stored));
}

#[test]
fn a_schema_is_shown() {
    let place = Place::new();
    let file = place.nanoaod();
    let tree = tupelo(&["schema", &file, "--fields", "Muon_pt,MET_pt"]).ok();
    let expected = "Events: 500 entries\n├─ MET_pt   float\n└─ Muon_pt  std::vector<float>\n   └─ _0  float\n";
    assert_eq!(tree, expected);
    let columns = tupelo(&["schema", &file, "--fields", "Muon_pt", "--columns"]).ok();
    assert!(columns.contains("SplitIndex64, 64 bits; 500 elements") && columns.contains("SplitReal32"), "{columns}");
    let schema = tupelo(&["schema", &file, "--fields", "Muon_pt", "--columns", "--json"]).json();
    assert_eq!(schema["fields"][0]["columns"][0]["type"], json!("SplitIndex64"));
    assert_eq!(schema["fields"][0]["fields"][0]["type"], json!("float"));
    let arrow = tupelo(&["schema", &file, "--fields", "MET_pt", "--arrow"]).ok();
    assert_eq!(arrow, "MET_pt: Float32\n");
}

#[test]
fn the_head_is_a_table() {
    let place = Place::new();
    let file = place.nanoaod();
    let table = tupelo(&["head", "-n", "3", &file, "--fields", "event,Muon_pt"]).ok();
    let lines: Vec<_> = table.lines().collect();
    assert_eq!(lines.len(), 4);
    assert!(lines[0].contains("event") && lines[0].contains("Muon_pt") && lines[1].starts_with('0'), "{table}");
    let dumped = tupelo(&["dump", &file, "--entries", ":3", "--fields", "event,Muon_pt"]).ok();
    assert_eq!(tupelo(&["head", "-n3", &file, "--fields", "event,Muon_pt", "--format", "jsonl"]).ok(), dumped);
}

#[test]
fn colours_follow_the_option() {
    let place = Place::new();
    let file = place.nanoaod();
    assert!(!tupelo(&["ls", &file]).ok().contains('\x1b'));
    assert!(tupelo(&["ls", &file, "--color", "always"]).ok().contains('\x1b'));
    assert!(!tupelo(&["--color=never", "ls", &file]).ok().contains('\x1b'));
}

#[test]
fn entry_ranges_follow_python() {
    let place = Place::new();
    let file = place.b2hhh();
    let all = tupelo(&["dump", &file]).ok();
    let all: Vec<_> = all.lines().collect();
    assert_eq!(all.len(), 3000);
    for (entries, range) in [("10:12", 10..12), (":1", 0..1), ("2999:", 2999..3000), ("-2:", 2998..3000), ("7", 7..8)] {
        let some = tupelo(&["dump", &file, "--entries", entries]).ok();
        assert_eq!(some.lines().collect::<Vec<_>>(), all[range], "{entries}");
    }
    assert_eq!(tupelo(&["dump", &file, "--entries", "5:2"]).ok(), "");
    let one: Value = serde_json::from_str(all[0]).expect("JSON");
    assert_eq!(one.as_object().expect("an object").len(), 26);
    assert!(one["B_FlightDistance"].is_f64() && one["H1_Charge"].is_i64());
}

#[test]
fn csv_has_a_header_and_quotes_nested_values() {
    let place = Place::new();
    let file = place.nanoaod();
    let csv = tupelo(&["dump", &file, "--format", "csv", "--fields", "event,MET_pt,Jet_pt"]).ok();
    let json = tupelo(&["dump", &file, "--fields", "event,MET_pt,Jet_pt"]).ok();
    let mut lines = csv.lines();
    assert_eq!(lines.next(), Some("event,MET_pt,Jet_pt"));
    for (csv, json) in lines.by_ref().zip(json.lines()) {
        let json: Value = serde_json::from_str(json).expect("JSON");
        let cells: Vec<_> = csv.splitn(3, ',').collect();
        assert_eq!(cells[0], json["event"].to_string());
        let jets: Vec<f64> = serde_json::from_str(cells[2].trim_matches('"')).expect("a JSON array");
        assert_eq!(json!(jets), json["Jet_pt"]);
    }
    assert_eq!(csv.lines().count(), 501);
}

#[test]
fn arrow_and_parquet_have_the_same_values() {
    let place = Place::new();
    let file = place.nanoaod();
    let parquet = place.path("out.parquet");
    tupelo(&["dump", &file, "--format", "parquet", "-o", &parquet]).ok();
    let parquet = std::fs::File::open(parquet).expect("a file");
    let reader = parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder::try_new(parquet).expect("Parquet");
    let from_parquet =
        reader.with_batch_size(1000).build().expect("Parquet").next().expect("a batch").expect("a batch");
    let output = command(&["dump", &file, "--format", "arrow"]).output().expect("the command starts");
    let mut reader = arrow_ipc::reader::StreamReader::try_new(output.stdout.as_slice(), None).expect("Arrow");
    let from_arrow = reader.next().expect("a batch").expect("a batch");
    assert_eq!(from_arrow.num_rows(), 500);
    assert_eq!(from_arrow.columns(), from_parquet.columns());
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    let place = Place::new();
    let file = place.b2hhh();
    for format in ["jsonl", "csv", "arrow"] {
        let mut child = command(&["dump", &file, "--format", format])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the command starts");
        let mut first = [0; 10];
        child.stdout.take().expect("a pipe").read_exact(&mut first).expect("ten bytes");
        let output = child.wait_with_output().expect("the command ends");
        assert_eq!(output.status.code(), Some(0), "{format}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{format}");
    }
}

#[test]
fn cuts_select_entries() {
    let place = Place::new();
    let file = place.nanoaod();
    let is_hard = |line: &&str| {
        let event: Value = serde_json::from_str(line).expect("JSON");
        let jets: Vec<f64> = serde_json::from_value(event["Jet_pt"].clone()).expect("numbers");
        jets.iter().filter(|pt| **pt > 40.0).count() >= 2
    };
    let all = tupelo(&["dump", &file]).ok();
    let kept: Vec<&str> = all.lines().filter(is_hard).collect();
    assert!(!kept.is_empty() && kept.len() < 500, "{} of 500", kept.len());
    let cut = tupelo(&["dump", &file, "--where", "count(Jet_pt[Jet_pt > 40]) >= 2"]).ok();
    assert_eq!(cut.lines().collect::<Vec<_>>(), kept);
    // Also with fields that are not written.
    let cut = tupelo(&["dump", &file, "--fields", "MET_pt", "--where", "count(Jet_pt[Jet_pt > 40]) >= 2"]).ok();
    assert_eq!(cut.lines().count(), kept.len());
    assert_eq!(tupelo(&["dump", &file, "--where", "len(Jet_pt) < 0"]).ok(), "");
    assert_eq!(tupelo(&["dump", &file, "--where", "True"]).ok(), all);
    let error = tupelo(&["dump", &file, "--where", "Jet_pt >"]).fails(2);
    assert!(error.contains("expression 'Jet_pt >': expected a value at the end"), "{error}");
    let error = tupelo(&["dump", &file, "--where", "Jet_pt > 5"]).fails(2);
    assert!(error.contains("a cut must be one boolean for each entry, not a list"), "{error}");
    let error = tupelo(&["dump", &file, "--where", "Jet_pq > 5"]).fails(1);
    assert!(error.contains("'Jet_pt'"), "{error}");
}

#[test]
fn head_applies_cuts() {
    let place = Place::new();
    let file = place.nanoaod();
    let cut = ["--where", "count(Jet_pt[Jet_pt > 40]) >= 2", "--fields", "MET_pt"];
    let dumped = tupelo(&[&["dump", &file], &cut[..]].concat()).ok();
    let head = tupelo(&[&["head", &file, "-n", "3", "--format", "jsonl"], &cut[..]].concat()).ok();
    assert_eq!(head.lines().collect::<Vec<_>>(), dumped.lines().take(3).collect::<Vec<_>>());
    // The table shows entry numbers.
    let table = tupelo(&[&["head", &file, "-n", "3"], &cut[..]].concat()).ok();
    let numbers: Vec<&str> = table.lines().skip(1).filter_map(|line| line.split_whitespace().next()).collect();
    for (number, line) in numbers.into_iter().zip(head.lines()) {
        assert_eq!(tupelo(&["dump", &file, "--fields", "MET_pt", "--entries", number]).ok().trim_end(), line);
    }
    let none = tupelo(&["head", &file, "--fields", "MET_pt", "--where", "MET_pt < 0"]).ok();
    assert_eq!(none.lines().count(), 1);
    assert_eq!(tupelo(&["head", &file, "-n", "0", "--fields", "MET_pt", "--where", "True"]).ok().lines().count(), 1);
}

#[test]
fn index_writes_a_manifest_of_all_files() {
    let place = Place::new();
    let (decays, events) = (place.b2hhh(), place.nanoaod());
    let manifest = tupelo(&["index", &decays, &format!("{events}:Events"), &decays]).json();
    assert_eq!((&manifest["format"], &manifest["version"]), (&json!("tupelo-manifest"), &json!(1)));
    assert_eq!(manifest["schemas"].as_array().expect("schemas").len(), 2);
    let files = manifest["files"].as_array().expect("files");
    assert_eq!(files[0], files[2]);
    assert_eq!(
        (&files[1]["uri"], &files[1]["ntuple"], &files[1]["entries"]),
        (&json!(events), &json!("Events"), &json!(500))
    );
    let listed = tupelo(&["ls", &decays, "--json"]).json();
    let clusters = files[0]["clusters"].as_array().expect("clusters");
    assert!(clusters.len() > 1 && listed["ntuples"][0]["clusters"] == json!(clusters.len()), "{clusters:?}");
    let stored: u64 = clusters.iter().map(|cluster| cluster[2].as_u64().expect("bytes")).sum();
    assert_eq!(listed["ntuples"][0]["stored_bytes"], json!(stored));
    let entries: u64 = clusters.iter().map(|cluster| cluster[1].as_u64().expect("entries")).sum();
    assert_eq!(entries, 3000);

    let output = place.path("manifest.json");
    assert_eq!(tupelo(&["index", "-o", &output, &decays, &events, &decays]).ok(), "");
    let written = std::fs::read_to_string(&output).expect("a manifest");
    assert_eq!(serde_json::from_str::<Value>(&written).expect("JSON"), manifest);
    // An unreadable file is reported, and the old manifest is kept.
    let error = tupelo(&["index", "-o", &output, &decays, &place.path("none.root")]).fails(1);
    assert!(error.contains("none.root"), "{error}");
    assert_eq!(std::fs::read_to_string(&output).expect("a manifest"), written);
    tupelo(&["index"]).fails(2);
    let signed = tupelo(&["index", "https://ann:pass@host/x.root?signature=1"]).fails(2);
    assert!(signed.contains("https://host/x.root: a manifest cannot store user names"), "{signed}");
}
