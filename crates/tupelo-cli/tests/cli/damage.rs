//! `verify` and `layout` for files with known damage.

use serde_json::{Value, json};

use super::{Place, tupelo};

/// The regions of a file, which must be contiguous.
fn regions(file: &str) -> Vec<Value> {
    let layout = tupelo(&["layout", file, "--json"]).json();
    let regions = layout["regions"].as_array().expect("regions").clone();
    let mut at = 0;
    for region in &regions {
        assert_eq!(region["offset"], json!(at), "{region}");
        at += region["bytes"].as_u64().expect("a number");
        assert_ne!(region["what"], json!("unaccounted"), "{region}");
    }
    assert_eq!(layout["bytes"], json!(at));
    assert_eq!(layout["remarks"], json!([]));
    regions
}

/// Flips one bit of a file.
fn damage(file: &str, offset: u64) {
    let mut bytes = std::fs::read(file).expect("a file");
    bytes[offset as usize] ^= 0x10;
    std::fs::write(file, bytes).expect("a file");
}

fn number(region: &Value, key: &str) -> u64 {
    region[key].as_u64().expect("a number")
}

#[test]
fn intact_files_pass() {
    let place = Place::new();
    let file = place.b2hhh();
    let run = tupelo(&["verify", &file]);
    assert!(run.stderr.contains("verified in"), "{}", run.stderr);
    assert_eq!(run.ok(), "");
    assert_eq!(tupelo(&["verify", "--deep", &file]).ok(), "");
    let quiet = tupelo(&["verify", "-q", &file]);
    assert_eq!(quiet.stderr, "");
    let report = tupelo(&["verify", &file, "--json"]).json();
    assert_eq!((&report["intact"], &report["ntuples"]), (&json!(true), &json!(1)));
    // One column for each of the 26 fields, with at least one page in each cluster.
    assert!(number(&report, "pages") > 26 * 2, "{report}");
}

#[test]
fn damaged_pages_are_located() {
    let place = Place::new();
    let file = place.b2hhh();
    let regions = regions(&file);
    let pages = |field: &str, cluster: u64| {
        let found =
            regions.iter().find(|region| region["field"] == json!(field) && region["cluster"] == json!(cluster));
        found.unwrap_or_else(|| panic!("pages of {field} in cluster {cluster}")).clone()
    };
    let (first, second) = (pages("H1_PX", 0), pages("H3_isMuon", 1));
    let last_byte = |region: &Value| number(region, "offset") + number(region, "bytes") - 9;
    damage(&file, number(&first, "offset"));
    damage(&file, last_byte(&second));

    let run = tupelo(&["verify", &file]);
    let lines: Vec<_> = run.stdout.lines().map(str::to_owned).collect();
    let error = run.fails(1);
    assert!(error.contains("damage in 2 places"), "{error}");
    assert_eq!(lines.len(), 2, "{lines:?}");
    let offset = number(&first, "offset");
    for part in ["ntuple 'DecayTree'", "field 'H1_PX'", "cluster 0, page 0", &format!("at offset {offset}"), "checksum"]
    {
        assert!(lines[0].contains(part), "{part} in {}", lines[0]);
    }
    let last_page = number(&second, "first_page") + number(&second, "pages") - 1;
    for part in ["field 'H3_isMuon'", &format!("cluster 1, page {last_page}"), "checksum"] {
        assert!(lines[1].contains(part), "{part} in {}", lines[1]);
    }

    let run = tupelo(&["verify", &file, "--json"]);
    let report: Value = serde_json::from_str(&run.stdout).expect("JSON");
    run.fails(1);
    assert_eq!(report["damages"][0]["field"], json!("H1_PX"));
    assert_eq!(report["damages"][0]["offset"], json!(offset));

    // Reading reports the same place, and other entries can be read.
    let error = tupelo(&["dump", &file, "--fields", "H1_PX"]).fails(1);
    for part in ["ntuple 'DecayTree'", "field 'H1_PX'", "cluster 0", "page 0", &offset.to_string(), "tupelo verify"] {
        assert!(error.contains(part), "{part} in {error}");
    }
    assert_eq!(tupelo(&["dump", &file, "--fields", "H1_PY"]).ok().lines().count(), 3000);
}

#[test]
fn damaged_metadata_are_found() {
    for (what, said) in [("page list", "cluster group 0"), ("footer", "footer"), ("header", "header")] {
        let place = Place::new();
        let file = place.b2hhh();
        let regions = regions(&file);
        let region = regions.iter().find(|region| region["what"] == json!(what)).expect("the envelope");
        damage(&file, number(region, "offset") + number(region, "bytes") / 2);
        let run = tupelo(&["verify", &file]);
        assert!(run.stdout.contains(said) && run.stdout.lines().count() == 1, "{what}: {}", run.stdout);
        run.fails(1);
        // The layout shows the readable parts.
        let layout = tupelo(&["layout", &file, "--json"]).json();
        assert_eq!(layout["remarks"].as_array().map(Vec::len), Some(1), "{what}: {}", layout["remarks"]);
    }
}

#[test]
fn layout_is_for_whole_files() {
    let place = Place::new();
    let file = place.b2hhh();
    assert!(tupelo(&["layout", &format!("{file}:DecayTree")]).fails(2).contains(":DecayTree"));
    let table = tupelo(&["layout", &file]).ok();
    for part in
        ["file header", "key RBlob", "record ROOT::RNTuple", "page list", "cluster 0, column 0, B_FlightDistance"]
    {
        assert!(table.contains(part), "{part} in {table}");
    }
}

#[test]
fn a_failed_dump_keeps_the_old_output() {
    let place = Place::new();
    let file = place.b2hhh();
    let out = place.path("out.jsonl");
    tupelo(&["dump", &file, "--entries", ":1", "-o", &out]).ok();
    let before = std::fs::read(&out).expect("a file");
    let last = regions(&file).into_iter().rfind(|region| region["field"] == json!("H1_PX")).expect("a page");
    damage(&file, number(&last, "offset"));
    tupelo(&["dump", &file, "-o", &out]).fails(1);
    assert_eq!(std::fs::read(&out).expect("a file"), before);
    // No temporary file is left.
    assert_eq!(std::fs::read_dir(place.directory.path()).expect("a directory").count(), 2);
}

#[test]
fn a_dump_does_not_overwrite_its_input() {
    let place = Place::new();
    let file = place.b2hhh();
    let before = std::fs::read(&file).expect("a file");
    let error = tupelo(&["dump", &file, "--entries", ":1", "-o", &file]).fails(2);
    assert!(error.contains("is both input and output"), "{error}");
    assert_eq!(std::fs::read(&file).expect("a file"), before);
    // `-` is stdout.
    assert_eq!(tupelo(&["dump", &file, "--entries", ":2", "-o", "-"]).ok().lines().count(), 2);
}

#[test]
fn wrong_record_lengths_are_found_by_deep_only() {
    let place = Place::new();
    let file = place.b2hhh();
    let mut bytes = std::fs::read(&file).expect("a file");
    // The length of this record is not needed to read its contents.
    let last = regions(&file).into_iter().rfind(|region| region["what"] == json!("blob key")).expect("a blob");
    let last = number(&last, "offset") as usize;
    bytes[last..last + 4].copy_from_slice(&7u32.to_be_bytes());
    std::fs::write(&file, bytes).expect("a file");
    assert_eq!(tupelo(&["verify", &file]).ok(), "");
    let run = tupelo(&["verify", "--deep", &file]);
    assert_eq!(run.status, Some(1), "{}", run.stderr);
    assert!(run.stdout.contains("records: "), "{}", run.stdout);
    assert_eq!(tupelo(&["verify", "--deep", &format!("{file}:ntuple")]).status, Some(1));
}

/// Defect: `--repair` ignored `--deep`.
#[test]
fn repair_supports_deep() {
    let place = Place::new();
    let file = place.b2hhh();
    let whole = std::fs::read(&file).expect("a file");
    // An unlisted gap is damage of the file structure, not of an ntuple.
    let mut broken = whole.clone();
    let last = regions(&file).into_iter().rfind(|region| region["what"] == json!("blob key")).expect("a blob");
    let at = number(&last, "offset") as usize;
    broken[at..at + 4].fill(0);
    std::fs::write(&file, &broken).expect("a file");
    tupelo(&["verify", "--repair", &file]).ok();
    let run = tupelo(&["verify", "--repair", "--deep", &file]);
    assert!(run.stdout.contains("records:"), "{}", run.stdout);
    assert!(run.fails(1).contains("1 damage remains"));
    std::fs::write(&file, &whole).expect("a file");
    tupelo(&["verify", "--repair", "--deep", &file]).ok();
}

#[test]
fn truncated_files_are_repaired() {
    let place = Place::new();
    let file = place.b2hhh();
    let whole = std::fs::read(&file).expect("a file");
    std::fs::write(&file, &whole[..whole.len() - 3]).expect("a file");
    let run = tupelo(&["verify", &file]);
    for part in
        [format!("ends at byte {}", whole.len()), format!("ends at byte {}", whole.len() - 3), "the free list".into()]
    {
        assert!(run.stdout.contains(&part), "{part} in {}", run.stdout);
    }
    run.fails(1);
    let run = tupelo(&["verify", "--repair", &file]);
    assert!(run.stderr.contains("rewritten: the header, the list of free segments"), "{}", run.stderr);
    run.ok();
    std::fs::write(&file, &whole[..whole.len() - 3]).expect("a file");
    let run = tupelo(&["verify", "--repair", "--json", &file]);
    let json: serde_json::Value = serde_json::from_str(&run.stdout).expect("JSON");
    assert_eq!(json["rewritten"][0], "the header");
    run.ok();
    tupelo(&["verify", &file]).ok();
    tupelo(&["copy", "--append", &file, &format!("{file}:again")]).ok();
}

/// Defect: temporary files of killed writers were not mentioned.
#[test]
fn temporary_files_of_killed_writers_are_mentioned() {
    let place = Place::new();
    let file = place.b2hhh();
    let left = format!("{file}.tmp-abc");
    std::fs::copy(&file, &left).expect("a copy");
    let run = tupelo(&["verify", &file]);
    assert!(run.stderr.contains(&format!("`tupelo verify --repair {left}`")), "{}", run.stderr);
    run.ok();
    std::fs::remove_file(&file).expect("it is there");
    for command in ["ls", "head", "verify"] {
        let said = tupelo(&[command, &file]).fails(1);
        assert!(said.contains(&left) && said.contains(&format!("`tupelo verify --repair {file}`")), "{said}");
    }
    tupelo(&["verify", "--repair", &file]).ok();
    tupelo(&["verify", &file]).ok();
}

/// Defect: the memory budget could not be changed.
#[test]
fn the_memory_budget_is_an_option() {
    let place = Place::new();
    let file = place.b2hhh();
    let out = place.path("out.root");
    let commands: [&[&str]; 7] = [
        &["ls", &file],
        &["schema", &file],
        &["head", &file],
        &["dump", &file],
        &["layout", &file],
        &["verify", &file],
        &["copy", &file, &out],
    ];
    for command in commands {
        let small = tupelo(&[command, &["--memory-budget", "2kB"]].concat());
        // Commands for whole files continue after the first error.
        let hint = match command[0] {
            "verify" | "layout" => "larger memory budget",
            _ => "--memory-budget SIZE allows more",
        };
        let said = small.stdout + &small.stderr;
        assert!(said.contains(hint), "{command:?}: {said}");
        tupelo(&[command, &["--memory-budget", "64MiB"]].concat()).ok();
    }
}

/// Defect: the hint suggested a repair that failed.
#[test]
fn without_a_checkpoint_there_is_nothing_to_repair() {
    let place = Place::new();
    let (file, left) = (place.path("x.root"), place.path("x.root.tmp-abc123"));
    std::fs::write(&left, "").expect("a file");
    for command in ["ls", "head", "verify"] {
        let said = tupelo(&[command, &file]).fails(1);
        assert!(
            said.contains(&left) && said.contains("it contains no checkpoint") && said.contains("delete it"),
            "{said}"
        );
        assert!(!said.contains("--repair"), "{said}");
    }
    for name in [&file, &left] {
        let said = tupelo(&["verify", "--repair", name]).fails(1);
        assert!(said.contains(&format!("{left} contains no checkpoint")) && said.contains("delete it"), "{said}");
    }
    assert_eq!(std::fs::read(&left).expect("a file"), b"");
    tupelo(&["generate", "b2hhh", "--events", "10", &file]).ok();
    let run = tupelo(&["verify", &file]);
    assert!(run.stderr.contains(&format!("{left} belongs to")) && run.stderr.contains("delete it"), "{}", run.stderr);
    run.ok();
}

#[test]
fn the_hint_to_verify_has_the_file_name() {
    let place = Place::new();
    let file = place.b2hhh();
    let page = regions(&file).into_iter().find(|region| region["field"] == json!("H1_PX")).expect("a page");
    damage(&file, number(&page, "offset"));
    for arguments in [&["dump", &file][..], &["head", &file], &["copy", &file, &place.path("copy.root")]] {
        let said = tupelo(arguments).fails(1);
        assert!(said.contains(&format!("hint: `tupelo verify {file}` lists everything")), "{said}");
    }
    let text = place.path("text.root");
    std::fs::write(&text, "this is not a ROOT file, but it is long enough to look like one, almost\n".repeat(2))
        .expect("a file");
    for arguments in [&["ls", &text][..], &["copy", "--append", &place.nanoaod(), &text]] {
        let said = tupelo(arguments).fails(1);
        assert!(said.contains("not a ROOT file") && !said.contains("tupelo verify"), "{said}");
    }
}

/// Regression: `verify` called a tree with overwritten baskets intact. Those of LZ4 have checksums.
#[test]
fn damaged_baskets_are_found() {
    let place = Place::new();
    let (file, tree) = (place.b2hhh(), place.path("tree.root"));
    tupelo(&["export", &file, &tree, "--compression", "lz4:4"]).ok();
    let intact = tupelo(&["verify", &tree, "--json"]).json();
    assert_eq!((&intact["intact"], &intact["trees"]), (&json!(true), &json!(1)), "{intact}");
    let regions = tupelo(&["layout", &tree, "--json"]).json()["regions"].clone();
    let baskets: Vec<_> = regions.as_array().expect("regions").iter().filter(|it| it["class"] == "TBasket").collect();
    assert_eq!(json!(baskets.len()), intact["baskets"]);
    let bytes = std::fs::read(&tree).expect("a file");
    let mut damages = 0;
    for basket in baskets {
        let number = |key: &str| basket[key].as_u64().expect("a number") as usize;
        // Values that do not become shorter are stored as they are.
        if !bytes[number("offset") + number("key_bytes")..].starts_with(b"L4") {
            continue;
        }
        damages += 1;
        let (offset, middle) = (number("offset"), number("offset") + (number("key_bytes") + number("bytes")) / 2);
        let mut damaged = bytes.clone();
        damaged[middle..middle + 16].iter_mut().for_each(|byte| *byte ^= 0xff);
        std::fs::write(&tree, damaged).expect("a file");
        let run = tupelo(&["verify", &tree, "--json"]);
        assert_eq!(run.status, Some(1), "{basket}: {}", run.stdout);
        let report: Value = serde_json::from_str(&run.stdout).expect("JSON");
        let [damage] = &report["damages"].as_array().expect("damages")[..] else { panic!("{report}") };
        assert_eq!((&damage["tree"], &damage["offset"]), (&json!("DecayTree"), &json!(offset)), "{report}");
        assert_eq!(damage["field"], basket["name"], "{report}");
        let line = tupelo(&["verify", &format!("{tree}:DecayTree")]);
        assert!(
            line.stdout.contains(&format!("tree 'DecayTree': branch '{}': basket ", &basket["name"].as_str().unwrap())),
            "{}",
            line.stdout
        );
        line.fails(1);
    }
    assert!(damages > 5, "{damages} compressed baskets");
}

/// Whole clusters are saved, and what is lost is listed by entries and fields.
#[test]
fn what_is_whole_is_salvaged() {
    let place = Place::new();
    let (file, out, expected) = (place.b2hhh(), place.path("saved.root"), place.path("expected.root"));
    let intact = place.path("intact.root");
    std::fs::copy(&file, &intact).expect("a copy");
    tupelo(&["verify", &file, "--salvage", &out]).ok();
    tupelo(&["diff", &intact, &out]).ok();
    let regions = regions(&file);
    let of_cluster =
        |cluster: u64| move |region: &&Value| region["field"] == json!("H1_PX") && region["cluster"] == json!(cluster);
    let page = regions.iter().find(of_cluster(1)).expect("a page");
    damage(&file, number(page, "offset") + 20);
    let exists = tupelo(&["verify", &file, "--salvage", &out]).fails(2);
    assert!(exists.contains("exists") && exists.contains("--force"), "{exists}");
    let run = tupelo(&["verify", &file, "--salvage", &out, "--force", "--json"]);
    assert_eq!(run.status, Some(1), "{}", run.stderr);
    let report: Value = serde_json::from_str(&run.stdout).expect("JSON");
    let lost = &report["lost"][0];
    let (first, end) = (number(lost, "first"), number(lost, "end"));
    assert!(0 < first && first < end && end < 3000, "{report}");
    assert_eq!((number(&report, "lost_entries"), number(&report, "entries")), (end - first, 3000 - (end - first)));
    assert_eq!(lost["fields"][0]["name"], json!("H1_PX"));
    assert!(lost["fields"][0]["reason"].as_str().is_some_and(|it| it.contains("checksum mismatch")), "{lost}");
    let parts = [format!(":{first}"), format!("{end}:")].map(|entries| {
        let part = place.path(&format!("part{}.root", entries.len()));
        tupelo(&["copy", &intact, "-o", &part, "-f", "--entries", &entries]).ok();
        part
    });
    tupelo(&["merge", &expected, &parts[0], &parts[1]]).ok();
    tupelo(&["diff", &expected, &out]).ok();
    tupelo(&["verify", &out]).ok();
    let lines = tupelo(&["verify", &file, "--salvage", &out, "--force"]);
    assert!(lines.stdout.starts_with(&format!("lost: entries {first}:{end}: field 'H1_PX': ")), "{}", lines.stdout);
    let itself = tupelo(&["verify", &file, "--salvage", &file, "--force"]).fails(2);
    assert!(itself.contains("both input and output"), "{itself}");
    // All of its entries are lost with the page list.
    let list = regions.iter().find(|region| region["what"] == json!("page list")).expect("a page list");
    damage(&file, number(list, "offset") + 20);
    let run = tupelo(&["verify", &file, "--salvage", &out, "--force", "--json"]);
    let report: Value = serde_json::from_str(&run.stdout).expect("JSON");
    assert_eq!((run.status, number(&report, "lost_entries"), number(&report, "entries")), (Some(1), 3000, 0));
}

/// Defect: nothing was saved of an ntuple with one cluster.
#[test]
fn fields_are_left_out_where_most_entries_would_be_lost() {
    let place = Place::new();
    let [file, out, expected] = ["file.root", "saved.root", "expected.root"].map(|name| place.path(name));
    tupelo(&["copy", &place.b2hhh(), "-o", &file, "--cluster-bytes", "100MB"]).ok();
    tupelo(&["copy", &file, "-o", &expected, "--exclude", "H1_PX,H2_PX"]).ok();
    for field in ["H1_PX", "H2_PX"] {
        let page = regions(&file).into_iter().find(|region| region["field"] == json!(field)).expect("a page");
        damage(&file, number(&page, "offset") + 20);
    }
    let run = tupelo(&["verify", &file, "--salvage", &out, "--json"]);
    assert_eq!(run.status, Some(1), "{}", run.stderr);
    let report: Value = serde_json::from_str(&run.stdout).expect("JSON");
    assert_eq!((number(&report, "lost_entries"), number(&report, "entries")), (0, 3000), "{report}");
    let lost = report["lost"].as_array().expect("a list");
    let names: Vec<_> = lost.iter().map(|lost| lost["fields"][0]["name"].clone()).collect();
    assert_eq!(names, [json!("H1_PX"), json!("H2_PX")]);
    let reason = lost[0]["fields"][0]["reason"].as_str().expect("a reason");
    assert!(reason.starts_with("left out in all entries: 3000 entries are damaged: "), "{reason}");
    tupelo(&["diff", &expected, &out]).ok();
    tupelo(&["verify", &out]).ok();
}

/// Defect: nothing was saved of a tree with one cluster, and other objects of the file were not mentioned.
#[test]
fn branches_are_left_out_where_most_entries_would_be_lost() {
    let place = Place::new();
    let [tree, intact, out] = ["tree.root", "intact.root", "saved.root"].map(|name| place.path(name));
    tupelo(&["export", &place.b2hhh(), &intact, "--compression", "lz4:4"]).ok();
    std::fs::copy(&intact, &tree).expect("a copy");
    let regions = tupelo(&["layout", &tree, "--json"]).json()["regions"].clone();
    let mut baskets = regions.as_array().expect("regions").iter().filter(|region| region["class"] == json!("TBasket"));
    let basket = baskets.find(|region| region["name"] == json!("H1_isMuon")).expect("a basket");
    damage(&tree, number(basket, "offset") + (number(basket, "key_bytes") + number(basket, "bytes")) / 2);
    let run = tupelo(&["verify", &tree, "--salvage", &out, "--json"]);
    assert_eq!(run.status, Some(1), "{}", run.stderr);
    let report: Value = serde_json::from_str(&run.stdout).expect("JSON");
    assert_eq!((number(&report, "lost_entries"), number(&report, "entries")), (0, 3000), "{report}");
    assert_eq!(report["lost"][0]["fields"][0]["name"], json!("H1_isMuon"));
    let reason = report["lost"][0]["fields"][0]["reason"].as_str().expect("a reason");
    assert!(reason.starts_with("left out in all entries: 3000 entries are damaged: basket 0: "), "{reason}");
    let expected = place.path("expected.root");
    tupelo(&["copy", &intact, "-o", &expected, "--exclude", "H1_isMuon"]).ok();
    tupelo(&["diff", &expected, &out]).ok();
    tupelo(&["verify", &out]).ok();
    tupelo(&["copy", &format!("{intact}:DecayTree"), "-o", &format!("{tree}:Other"), "--append"]).ok();
    let both = tupelo(&["verify", &format!("{tree}:DecayTree"), "--salvage", &out, "--force"]);
    assert!(both.status == Some(1) && !both.stderr.contains("not salvaged"), "{}", both.stderr);
}

/// Defect: nothing of a tree was salvaged if the streamer info of its file was damaged.
#[test]
fn a_tree_without_readable_streamer_info_is_salvaged() {
    let place = Place::new();
    let [tree, intact, out] = ["tree.root", "intact.root", "saved.root"].map(|name| place.path(name));
    tupelo(&["export", &place.b2hhh(), &intact]).ok();
    std::fs::copy(&intact, &tree).expect("a copy");
    let regions = tupelo(&["layout", &tree, "--json"]).json()["regions"].clone();
    let mut regions = regions.as_array().expect("regions").iter();
    let info = regions.find(|region| region["name"] == json!("StreamerInfo")).expect("streamer info");
    damage(&tree, number(info, "offset") + (number(info, "key_bytes") + number(info, "bytes")) / 2);
    assert!(tupelo(&["verify", &tree]).fails(1).contains("found damage"));
    let refused = tupelo(&["count", &tree, "--cut", "B_FlightDistance > 0"]).fails(1);
    assert!(refused.contains("'StreamerInfo': "), "{refused}");
    let run = tupelo(&["verify", &tree, "--salvage", &out]);
    assert!(run.stderr.contains("its streamer info is damaged"), "{}", run.stderr);
    run.ok();
    tupelo(&["diff", &intact, &out]).ok();
    tupelo(&["verify", &out]).ok();
    tupelo(&["diff", "--recover", &intact, &tree]).ok();
}

/// Entries of trees are lost where a basket of any branch is damaged.
#[test]
fn what_is_whole_of_a_tree_is_salvaged() {
    let place = Place::new();
    let [tree, intact, out] = ["tree.root", "intact.root", "saved.root"].map(|name| place.path(name));
    tupelo(&["export", &place.b2hhh(), &intact, "--compression", "lz4:4", "--auto-flush", "500"]).ok();
    std::fs::copy(&intact, &tree).expect("a copy");
    tupelo(&["verify", &tree, "--salvage", &out]).ok();
    tupelo(&["diff", &intact, &out]).ok();
    let regions = tupelo(&["layout", &tree, "--json"]).json()["regions"].clone();
    let baskets = regions.as_array().expect("regions").iter().filter(|region| region["class"] == json!("TBasket"));
    // Those of numbers that are not compressed have no checksum.
    for (name, place) in [("H1_isMuon", 1), ("H2_isMuon", 1), ("H1_isMuon", 4)] {
        let basket = baskets.clone().filter(|region| region["name"] == json!(name)).nth(place).expect("a basket");
        damage(&tree, number(basket, "offset") + (number(basket, "key_bytes") + number(basket, "bytes")) / 2);
    }
    // A codec that does not exist.
    let basket = baskets.clone().filter(|region| region["name"] == json!("H2_isMuon")).nth(4).expect("a basket");
    damage(&tree, number(basket, "offset") + number(basket, "key_bytes"));
    // Defect: fields that neither side can read were not compared, and the status was 0.
    let unread = tupelo(&["diff", "--quiet", &tree, &tree]).fails(2);
    assert!(unread.contains("2 fields cannot be read and were not compared"), "{unread}");
    let run = tupelo(&["verify", &tree, "--salvage", &out, "--force", "--json"]);
    assert_eq!(run.status, Some(1), "{}", run.stderr);
    let report: Value = serde_json::from_str(&run.stdout).expect("JSON");
    assert_eq!(report["tree"], json!("DecayTree"));
    let lost: Vec<_> = report["lost"].as_array().expect("losses").iter().collect();
    let ranges: Vec<_> = lost.iter().map(|lost| (number(lost, "first"), number(lost, "end"))).collect();
    assert_eq!(ranges, [(500, 1000), (2000, 2500)], "{report}");
    let names: Vec<_> = lost[0]["fields"].as_array().expect("fields").iter().map(|it| &it["name"]).collect();
    assert_eq!(names, [&json!("H1_isMuon"), &json!("H2_isMuon")]);
    assert_eq!((number(&report, "lost_entries"), number(&report, "entries")), (1000, 2000));
    let dump = |file: &str, entries: &str| tupelo(&["dump", file, "--entries", entries]).ok();
    assert_eq!(dump(&out, ":"), [":500", "1000:2000", "2500:"].map(|entries| dump(&intact, entries)).concat());
    tupelo(&["verify", &out]).ok();
}
