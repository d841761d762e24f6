//! inspect: where bytes are, as tables, JSON and a page.

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Place, data, summarise, tupelo};

fn documents(arguments: &[&str]) -> Vec<Value> {
    let run = tupelo(arguments);
    serde_json::Deserializer::from_str(&run.ok()).into_iter::<Value>().map(|value| value.expect("JSON")).collect()
}

fn sum(list: &Value, key: &str) -> u64 {
    list.as_array().expect("a list").iter().map(|item| item[key].as_u64().expect("a number")).sum()
}

/// The data in a page.
fn data_of(page: &str) -> Value {
    let (_, rest) = page.split_once("id=\"data\">").expect("data");
    serde_json::from_str(rest.split_once("</script>").expect("an end").0).expect("JSON")
}

/// The stored bytes of the pages of an ntuple by offset, as `layout` has them.
fn places(layout: &Value, name: &str) -> BTreeMap<u64, u64> {
    let regions = layout["regions"].as_array().expect("regions").iter();
    let own = regions.filter(|region| region["what"] == "pages" && region["ntuple"] == name);
    own.map(|region| (region["offset"].as_u64().expect("a number"), region["bytes"].as_u64().expect("a number")))
        .collect()
}

/// Ranges that follow each other as one.
fn joined(ranges: impl IntoIterator<Item = (u64, u64)>) -> Vec<(u64, u64)> {
    let mut joined: Vec<(u64, u64)> = Vec::new();
    for (offset, bytes) in ranges {
        match joined.last_mut() {
            Some((start, length)) if *start + *length == offset => *length += bytes,
            _ => joined.push((offset, bytes)),
        }
    }
    joined
}

#[test]
fn sums_of_real_files_are_those_of_ls() {
    let Some(folder) = data() else { return };
    let (mut ntuples, mut trees) = (0, 0);
    let names = ["", "trees", "uproot"].map(|name| folder.join(name));
    let files = names.iter().flat_map(|folder| fs::read_dir(folder).expect("a folder"));
    for path in files
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|it| it == "root"))
    {
        let file = path.to_str().expect("a path in UTF-8");
        let listed = tupelo(&["ls", file, "--json"]);
        let (Some(0), Ok(listed)) = (listed.status, serde_json::from_str::<Value>(&listed.stdout)) else { continue };
        if listed["ntuples"] == json!([]) && listed["trees"] == json!([]) {
            continue;
        }
        let run = tupelo(&["inspect", file, "--json"]);
        assert!(!run.stderr.contains("panicked"), "{file}: {}", run.stderr);
        if run.status != Some(0) {
            continue;
        }
        let layout = tupelo(&["layout", file, "--json"]).json();
        for report in serde_json::Deserializer::from_str(&run.stdout).into_iter::<Value>().map(|it| it.expect("JSON")) {
            let name = report["name"].as_str().expect("a name");
            let find =
                |kind: &str| listed[kind].as_array().and_then(|all| all.iter().find(|it| it["name"] == name)).cloned();
            let (bytes, map) = (&report["bytes"], &report["map"]);
            if let Some(known) = find("ntuples") {
                for key in ["stored_bytes", "unpacked_bytes", "metadata_bytes"] {
                    assert_eq!(bytes[key], known[key], "{file}:{name} {key}");
                }
                assert_eq!(report["entries"], known["entries"], "{file}:{name}");
                assert_eq!(sum(map, "bytes"), bytes["stored_bytes"], "{file}:{name}");
                let number = |run: &Value, key: &str| run[key].as_u64().expect("a number");
                let runs =
                    map.as_array().expect("runs").iter().map(|run| (number(run, "offset"), number(run, "span_bytes")));
                assert_eq!(joined(runs), joined(places(&layout, name)), "{file}:{name}");
                // Without sets, `ls` lists none.
                let listed = known["attribute_sets"].as_array().cloned().unwrap_or_default();
                let own = report["attribute_sets"].as_array().expect("sets");
                assert_eq!(own.len(), listed.len(), "{file}:{name}");
                for (own, listed) in own.iter().zip(&listed) {
                    for key in ["name", "entries", "stored_bytes", "metadata_bytes"] {
                        assert_eq!(own[key], listed[key], "{file}:{name}");
                    }
                }
                ntuples += 1;
            } else if let Some(known) = find("trees") {
                let readable =
                    report["fields"].as_array().expect("fields").iter().filter(|it| it.get("unreadable").is_none());
                let readable = Value::Array(readable.cloned().collect());
                for key in ["stored_bytes", "unpacked_bytes"] {
                    assert_eq!(json!(sum(&readable, key)), known[key], "{file}:{name} {key}");
                    assert_eq!(json!(sum(&report["fields"], key)), bytes[key], "{file}:{name} {key}");
                }
                trees += 1;
            }
            for part in ["columns", "codecs", "column_types", "page_sizes"] {
                assert_eq!(json!(sum(&report[part], "stored_bytes")), bytes["stored_bytes"], "{file}:{name} {part}");
            }
            assert_eq!(json!(sum(&report["clusters"]["list"], "stored_bytes")), bytes["stored_bytes"], "{file}:{name}");
        }
    }
    assert!(ntuples > 10 && trees > 50, "{ntuples} ntuples, {trees} trees");
    summarise("command-inspected", &format!("command: {ntuples} ntuples and {trees} trees of real files inspected"));
}

#[test]
fn objects_of_a_file_follow_each_other() {
    let place = Place::new();
    let (file, both) = (place.b2hhh(), place.path("both.root"));
    tupelo(&["export", &file, &both]).ok();
    tupelo(&["copy", "--append", &file, "-o", &format!("{both}:Other")]).ok();
    let all = documents(&["inspect", &both, "--json"]);
    let names: Vec<_> = all
        .iter()
        .map(|it| (it["name"].as_str().unwrap_or_default(), it["class"].as_str().unwrap_or_default()))
        .collect();
    assert_eq!(names, [("Other", "ROOT::RNTuple"), ("DecayTree", "TTree")]);
    let text = tupelo(&["inspect", &both]).ok();
    assert!(text.contains(&format!("{both}:Other  ROOT::RNTuple, 3 000 entries")), "{text}");
    assert!(text.contains(&format!("{both}:DecayTree  TTree, 3 000 entries")), "{text}");
    assert_eq!(tupelo(&["stat", &both]).ok(), text);
    let missing = tupelo(&["inspect", &format!("{both}:Othe"), "--json"]);
    assert!(missing.stdout.contains("\"error\""), "{}", missing.stdout);
    assert!(missing.fails(1).contains("'Other'"));
    let page = place.path("both.html");
    tupelo(&["inspect", &both, "--html", &page]).ok();
    assert_eq!(data_of(&fs::read_to_string(&page).expect("a page"))["tables"].as_array().map(Vec::len), Some(2));
}

#[test]
fn text_lists_the_largest_fields_and_advice() {
    let place = Place::new();
    let file = place.b2hhh();
    let text = tupelo(&["inspect", &file]).ok();
    assert!(text.contains("and 6 smaller (--all lists them)"), "{text}");
    assert!(text.contains("Pages by stored size, from\n") && text.contains('█'), "{text}");
    // The clusters of the file are small by choice.
    assert!(text.contains("\nAdvice\n") && text.contains("begins another page in each cluster"), "{text}");
    assert!(!tupelo(&["inspect", &file, "--all"]).ok().contains("--all lists them"));
}

#[test]
fn attribute_sets_are_listed() {
    let place = Place::new();
    let file = place.b2hhh();
    assert!(!tupelo(&["inspect", &file]).ok().contains("Attribute set"));
    tupelo(&["index", "--zone-maps", &file]).ok();
    let report = tupelo(&["inspect", &file, "--json"]).json();
    let [set] = &report["attribute_sets"].as_array().expect("sets")[..] else { panic!("one set: {report}") };
    assert!(set["entries"].as_u64() > Some(0) && set["stored_bytes"].as_u64() > Some(0), "{set}");
    let name = set["name"].as_str().expect("a name");
    let text = tupelo(&["inspect", &file]).ok();
    let line = text.lines().find(|line| line.starts_with("Attribute set")).expect("a line");
    assert!(line.starts_with(&format!("Attribute set {name}: {} entr", set["entries"])), "{line}");
    let page = place.path("sets.html");
    tupelo(&["inspect", &file, "--html", &page]).ok();
    let data = data_of(&fs::read_to_string(&page).expect("a page"));
    let row = json!([name, set["entries"], set["stored_bytes"], set["metadata_bytes"], null]);
    assert_eq!(data["tables"][0]["sets"], json!([row]));
}

#[test]
fn filters_are_added_to_zones_of_all_fields() {
    let place = Place::new();
    let file = place.nanoaod();
    tupelo(&["index", "--zone-maps", &file, "--bloom", "event"]).ok();
    let again = tupelo(&["index", "--zone-maps", &file]).fails(0);
    assert!(again.contains("has 0 new zones of "), "{again}");
    let error = tupelo(&["index", "--zone-maps", &file, "--zone-entries", "0"]).fails(2);
    assert!(error.contains("0 is not in 1.."), "{error}");
    let again = tupelo(&["index", "--zone-maps", &file, "--fields", "event", "--rebuild"]).fails(0);
    assert!(!again.contains("has 0 new zones") && again.contains("of 1 field"), "{again}");
}

#[test]
fn zone_maps_are_added_to_the_other_files_if_one_fails() {
    let place = Place::new();
    let (first, last, broken) = (place.b2hhh(), place.nanoaod(), place.path("broken.root"));
    fs::write(&broken, b"root").expect("a file");
    // Regression: the files after the one that failed were left as they were.
    let error = tupelo(&["index", "--zone-maps", &first, &broken, &last]).fails(1);
    assert!(error.contains("broken.root") && error.contains("1 of 3 files failed"), "{error}");
    for file in [&first, &last] {
        let report = tupelo(&["inspect", file, "--json"]).json();
        assert_eq!(report["attribute_sets"].as_array().map(Vec::len), Some(1), "{file}");
    }
    assert_eq!(fs::read(&broken).expect("a file"), b"root");
}

#[test]
fn a_query_is_what_explain_says() {
    let place = Place::new();
    let file = place.nanoaod();
    let chosen = ["--fields", "Muon_pt,MET_*", "--entries", ":100", "--json"];
    let mut explained = tupelo(&[&["explain", &file], &chosen[..]].concat()).json();
    let inspected = tupelo(&[&["inspect", &file], &chosen[..]].concat()).json();
    for key in ["document", "version", "file", "name"] {
        explained.as_object_mut().expect("keys").remove(key);
    }
    assert_eq!(inspected["query"], explained);
    let text = tupelo(&["inspect", &file, "--fields", "Muon_pt", "--entries", ":100"]).ok();
    assert!(text.contains("Query     100 entries: at most "), "{text}");
    assert!(tupelo(&["inspect", &file, "--fields", "Muon_pT"]).fails(1).contains("'Muon_pt'"));
}

#[test]
fn values_are_read_only_on_request() {
    let place = Place::new();
    let file = place.b2hhh();
    let rules = |arguments: &[&str]| -> Vec<String> {
        let report = tupelo(&[&["inspect", &file, "--json"], arguments].concat()).json();
        report["advice"]
            .as_array()
            .expect("advice")
            .iter()
            .map(|it| it["rule"].as_str().unwrap_or_default().to_owned())
            .collect()
    };
    assert!(!rules(&[]).iter().any(|rule| ["fits-float", "never-varies"].contains(&rule.as_str())));
    let metrics = tupelo(&["inspect", &file, "--metrics"]).stderr;
    let pages = metrics.lines().find(|line| line.starts_with("pages")).expect("pages");
    assert!(pages.split_whitespace().nth(1) == Some("0"), "{metrics}");
    let sample = tupelo(&["inspect", &file, "--json", "--read"]).json()["sample"].clone();
    assert_eq!((&sample["entries"], &sample["of"]), (&json!(3000), &json!(3000)));
}

#[test]
fn a_page_does_not_replace_anything() {
    let place = Place::new();
    let (file, page) = (place.b2hhh(), place.path("page.html"));
    assert_eq!(tupelo(&["inspect", &file, "--html", &page]).ok(), "");
    let first = fs::read_to_string(&page).expect("a page");
    assert!(first.starts_with("<!DOCTYPE html>") && first.contains("default-src 'none'"));
    assert!(tupelo(&["inspect", &file, "--html", &page]).fails(2).contains("--force replaces it"));
    tupelo(&["inspect", &file, "--html", &page, "--force"]).ok();
    assert_eq!(tupelo(&["inspect", &file, "--html", "-"]).ok(), first);
    assert!(tupelo(&["inspect", &file, "--html", "-", "--json"]).fails(2).contains("both write to stdout"));
    assert!(tupelo(&["inspect", &file, "--html", &file, "--force"]).fails(2).contains("both input and output"));
    // Nothing appears where nothing could be read.
    tupelo(&["inspect", &place.path("missing.root"), "--html", &place.path("none.html")]).fails(1);
    assert!(!fs::exists(place.path("none.html")).expect("an answer"));
}

#[test]
fn hostile_names_stay_text() {
    let place = Place::new();
    let file = place.b2hhh();
    let name = "x<script><img_src=x_onerror=alert(1)>\u{2028}{script}&amp;";
    let hostile = place.path("<img src=x onerror=alert(1)>{data}.root");
    tupelo(&["copy", &file, &hostile, "--rename", &format!("H1_PX={name}")]).ok();
    let page = tupelo(&["inspect", &hostile, "--html", "-"]).ok();
    assert!(!page.contains("<img") && page.matches("</script>").count() == 2, "the name ends the script");
    assert!(page.matches("'use strict'").count() == 1, "the name is taken for a place of the template");
    let fields = data_of(&page)["tables"][0]["fields"].clone();
    let shown = name.replace('\u{2028}', "\\u{2028}");
    assert!(fields.as_array().expect("fields").iter().any(|field| field[0] == shown.as_str()), "{fields}");
}

#[test]
fn a_page_of_many_columns_is_small_and_fast() {
    let place = Place::new();
    let (csv, file) = (place.path("wide.csv"), place.path("wide.root"));
    let names: Vec<String> = (0..10_000).map(|number| format!("Container{}_variable{number}", number / 40)).collect();
    let line: Vec<String> = (0..10_000).map(|number| number.to_string()).collect();
    fs::write(&csv, format!("{}\n{}\n{}\n", names.join(","), line.join(","), line.join(","))).expect("a file");
    tupelo(&["import", &csv, &file]).ok();
    let began = Instant::now();
    let page = tupelo(&["inspect", &file, "--html", "-"]).ok();
    // In release it takes 2 seconds at most; this is the profile of tests on a busy machine.
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    assert!(page.len() <= 3 << 20, "{} bytes", page.len());
    assert_eq!(data_of(&page)["tables"][0]["columns"].as_array().map(Vec::len), Some(10_000));
}
