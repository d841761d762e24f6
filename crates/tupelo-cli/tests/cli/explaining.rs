//! explain: what a read would do.

use serde_json::json;

use super::{Place, tupelo};

#[test]
fn a_read_is_explained_without_reading() {
    let place = Place::new();
    let file = place.nanoaod();
    let all = tupelo(&["explain", &file, "--fields", "MET_pt,Muon_pt", "--json"]).json();
    assert_eq!((&all["entries"], &all["clusters"]), (&json!(500), &json!(1)));
    let columns = all["columns"].as_array().expect("columns");
    let fields: Vec<_> = columns.iter().map(|column| column["field"].as_str().unwrap_or_default()).collect();
    assert_eq!(fields, ["MET_pt", "Muon_pt", "Muon_pt._0"]);
    let sum = |key: &str| columns.iter().map(|column| column[key].as_u64().unwrap_or_default()).sum::<u64>();
    for key in ["pages", "stored_bytes", "unpacked_bytes"] {
        assert_eq!(all[key], json!(sum(key)), "{key}");
    }
    assert!(columns.iter().all(|column| column["is_upper_bound"] == json!(false)));

    // Which items are read depends on offsets, and what is read besides the cut depends on the cut.
    let part = tupelo(&["explain", &file, "--fields", "Muon_pt", "--entries", "100:200", "--json"]).json();
    let bounds = |json: &serde_json::Value| -> Vec<_> {
        let columns = json["columns"].as_array().cloned().unwrap_or_default();
        columns
            .iter()
            .map(|column| (column["is_cut"] == json!(true), column["is_upper_bound"] == json!(true)))
            .collect()
    };
    assert_eq!(bounds(&part), [(false, false), (false, true)]);
    let cut = tupelo(&["explain", &file, "--fields", "Muon_pt,MET_pt", "--cut", "MET_pt > 30", "--json"]).json();
    assert_eq!(bounds(&cut), [(true, false), (false, true), (false, true)]);

    let table = tupelo(&["explain", &file, "--fields", "Muon_pt", "--entries", "100:200"]).ok();
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines[0], "100 entries in 1 cluster");
    assert!(lines[1].starts_with("FIELD") && lines[1].ends_with("REQUESTS"), "{table}");
    assert!(lines[3].contains("Muon_pt._0") && lines[3].contains('≤'), "{table}");
    assert!(lines[4].starts_with("total") && lines.len() == 5, "{table}");
    assert!(tupelo(&["explain", &file, "--fields", "Muon_pT"]).fails(1).contains("'Muon_pt'"));
}

/// Defect: explain refused wildcards.
#[test]
fn several_files_are_explained_together() {
    let place = Place::new();
    let all = place.nanoaod();
    for (name, entries) in [("part1.root", ":200"), ("part2.root", "200:")] {
        tupelo(&["copy", &all, &place.path(name), "--entries", entries]).ok();
    }
    let explain = |file: &str| tupelo(&["explain", file, "--fields", "MET_pt", "--cut", "run > 0", "--json"]).json();
    let [first, second, both] = ["part1.root", "part2.root", "part?.root"].map(|name| explain(&place.path(name)));
    for key in ["entries", "clusters", "pages", "stored_bytes", "unpacked_bytes", "requests", "zone_map_bytes"] {
        let sum = first[key].as_u64().zip(second[key].as_u64()).map(|(first, second)| first + second);
        assert_eq!(both[key].as_u64(), sum, "{key}");
    }
    assert_eq!(both["entries"], json!(500));
    let names = ["part1.root", "part2.root"].map(|name| place.path(name));
    let listed = tupelo(&["explain", &names[0], &names[1], "--fields", "MET_pt", "--cut", "run > 0", "--json"]).json();
    assert_eq!(listed["columns"], both["columns"]);
}
