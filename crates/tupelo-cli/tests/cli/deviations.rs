//! Files that break rules which ROOT does not check, and files whose writer was killed.

use serde_json::{Value, json};

use super::{Place, Run, data, summarise, tupelo};

/// A file in which bytes are replaced.
struct Patched {
    path: String,
    bytes: Vec<u8>,
}

impl Patched {
    fn new(path: &str) -> Self {
        Self { path: path.to_owned(), bytes: std::fs::read(path).expect("a file") }
    }

    fn u32(&self, at: usize) -> u32 {
        u32::from_be_bytes(self.bytes[at..at + 4].try_into().expect("four bytes"))
    }

    fn put(&mut self, at: usize, number: u32) {
        self.bytes[at..at + 4].copy_from_slice(&number.to_be_bytes());
        std::fs::write(&self.path, &self.bytes).expect("a file");
    }

    /// Where the record of the top directory lies.
    fn record_at(&self) -> usize {
        100 + self.u32(28) as usize
    }

    /// Makes the file one that was never saved: no free list, and no list of keys in the record of the top directory.
    fn unsave(&mut self) {
        self.put(16, 0);
        self.put(self.record_at() + 26, 0);
    }
}

fn deviations(run: &Run) -> (Vec<(String, Value)>, Value) {
    let report: Value = serde_json::from_str(&run.stdout).expect("JSON");
    let deviations = report["deviations"].as_array().expect("a list").iter();
    let named = deviations.map(|it| (it["rule"].as_str().expect("a name").to_owned(), it["offset"].clone()));
    (named.collect(), report["intact"].clone())
}

#[test]
fn deviations_are_not_damage() {
    let place = Place::new();
    let file = place.b2hhh();
    let head = tupelo(&["head", &file]).ok();
    Patched::new(&file).put(4, (64000 - 1_000_000_i32).cast_unsigned());
    let what = "the version in the file header is negative: -936000 (at byte 4)";
    let read = tupelo(&["head", &file]);
    assert_eq!(read.stderr.matches(what).count(), 1, "{}", read.stderr);
    assert_eq!(read.ok(), head);
    assert_eq!(tupelo(&["verify", "--deep", &file]).ok(), format!("{file}: deviation: {what}\n"));
    assert!(tupelo(&["verify", "--strict", &file]).fails(1).contains("no damage found, but 1 deviation"));
    let expected = json!([{ "rule": "file_version", "offset": 4, "what": what }]);
    let report = tupelo(&["verify", &file, "--json"]).json();
    assert_eq!((&report["intact"], &report["deviations"]), (&json!(true), &expected));
    assert_eq!(tupelo(&["ls", &file, "--json"]).json()["deviations"], expected);
}

#[test]
fn key_lists_of_a_wrong_length_are_read_and_not_changed() {
    let place = Place::new();
    let file = place.b2hhh();
    let head = tupelo(&["head", &file]).ok();
    let mut patched = Patched::new(&file);
    let list = patched.u32(patched.record_at() + 26) as usize;
    let key_bytes = u32::from(u16::from_be_bytes([patched.bytes[list + 14], patched.bytes[list + 15]]));
    patched.put(list, key_bytes + 4);
    assert_eq!(tupelo(&["head", &file]).ok(), head);
    let found = deviations(&tupelo(&["verify", "--deep", "--json", &file]));
    assert_eq!(found, (vec![("key_list_length".to_owned(), json!(list))], json!(true)));
    let layout = tupelo(&["layout", &file, "--json"]).json();
    assert_eq!(layout["remarks"], json!([]));
    let refused = tupelo(&["copy", "--append", &place.nanoaod(), &file]).fails(1);
    assert!(refused.contains("cannot change a file that breaks a rule of the format, copy it instead"), "{refused}");
    assert_eq!(std::fs::read(&file).expect("the file"), patched.bytes);
    tupelo(&["copy", &file, &place.path("copy.root")]).ok();
    tupelo(&["verify", "--deep", "--strict", &place.path("copy.root")]).ok();
}

#[test]
fn objects_that_a_killed_writer_never_listed_are_recovered() {
    let place = Place::new();
    let file = place.b2hhh();
    let names = tupelo(&["ls", &file, "--json"]).json();
    let ntuple = format!("{file}:{}", names["ntuples"][0]["name"].as_str().expect("a name"));
    let head = tupelo(&["head", &ntuple]).ok();
    let whole = std::fs::read(&file).expect("a file");
    Patched::new(&file).unsave();
    let listed = tupelo(&["ls", &file]);
    assert!(listed.stderr.contains("the writer of the file did not save its directories"), "{}", listed.stderr);
    assert_eq!(listed.ok().lines().count(), 1);
    // Defects: such a file was intact, and merging left it out.
    let found = deviations(&tupelo(&["verify", "--json", &file]));
    assert_eq!(found, (vec![("saved".to_owned(), json!(0))], json!(false)));
    assert!(tupelo(&["verify", &file]).fails(1).contains("found damage in 1 place"));
    let out = place.path("not.root");
    for command in [["merge", &out, &file], ["copy", &file, &out], ["import", &file, &out]] {
        let said = tupelo(&command).fails(1);
        assert!(said.contains("its writer did not save the directories"), "{command:?}: {said}");
        assert!(said.contains("--recover reads the objects that it finds in it"), "{command:?}: {said}");
        assert!(!std::path::Path::new(&out).exists());
    }
    let recovered = tupelo(&["head", "--recover", &ntuple]);
    assert!(recovered.stderr.contains("its directories were rebuilt"), "{}", recovered.stderr);
    assert_eq!(recovered.ok(), head);
    assert_eq!(tupelo(&["verify", "--recover", &file, "--json"]).json()["intact"], json!(true));
    tupelo(&["copy", "--recover", &file, &place.path("copy.root")]).ok();
    tupelo(&["verify", "--deep", "--strict", &place.path("copy.root")]).ok();
    // A file that was cut off has lost more than its end.
    std::fs::write(&file, &whole[..whole.len() / 2]).expect("a file");
    assert!(tupelo(&["ls", &file]).fails(1).contains("the file was cut off"));
    assert!(tupelo(&["ls", "--recover", &file]).ok().starts_with(&file));
    // An intact file is read as it is.
    std::fs::write(&file, &whole).expect("a file");
    let intact = tupelo(&["head", "--recover", &ntuple]);
    assert_eq!((intact.stderr.as_str(), intact.stdout.as_str()), ("", head.as_str()));
}

/// `--repair` does not take away what `--recover` finds.
#[test]
fn a_file_that_was_never_saved_is_not_repaired_to_an_empty_one() {
    let place = Place::new();
    let file = place.b2hhh();
    Patched::new(&file).unsave();
    let recovered = tupelo(&["ls", "--recover", &file]).ok();
    drop(tupelo(&["verify", "--repair", &file]));
    assert_eq!(tupelo(&["ls", "--recover", &file]).ok(), recovered);
}

#[test]
fn real_files_that_deviate_are_read() {
    let Some(folder) = data().filter(|data| data.join("reports").is_dir()) else {
        return summarise("deviations", "files that deviate from the format: no folder of reports");
    };
    let cases = [
        ("reports/key_list_length.root", vec!["key_list_length"]),
        ("reports/negative_version.root", vec!["file_version"]),
        ("reports/verify_deep_cms.root", vec![]),
        ("reports/unclosed_never_saved.root", vec!["saved"]),
        ("uproot/uproot-issue64.root", vec!["key_length"; 2]),
        ("wild/CoffeaTeam+coffea__tests_samples_nano_dy_SpecialTree.root", vec!["file_version", "key_list_rest"]),
    ];
    for (name, expected) in &cases {
        let path = folder.join(name);
        let path = path.to_str().expect("a path in UTF-8");
        let (rules, intact) = deviations(&tupelo(&["verify", "--deep", "--json", path]));
        let rules: Vec<_> = rules.into_iter().map(|(rule, _)| rule).collect();
        let is_intact = !expected.contains(&"saved");
        let expected = expected.iter().map(|&rule| rule.to_owned()).collect();
        assert_eq!((&rules, &intact), (&expected, &json!(is_intact)), "{name}");
        tupelo(&["ls", path]).ok();
        let layout = tupelo(&["layout", path, "--json"]).json();
        assert_eq!(layout["remarks"], json!([]), "{name}");
    }
    let path = folder.join("reports/unclosed_never_saved.root");
    let listed = tupelo(&["ls", "--recover", "--json", path.to_str().expect("a path in UTF-8")]).json();
    // Whether the tree is listed as one depends on the layouts of its classes, which the file lacks.
    let both = [&listed["trees"], &listed["objects"]].into_iter().flat_map(|list| list.as_array().expect("a list"));
    let mut names: Vec<_> = both.map(|it| it.get("path").or(it.get("name")).cloned()).collect();
    names.sort_by_key(|name| format!("{name:?}"));
    assert_eq!(names, [Some(json!("h")), Some(json!("t"))], "as ROOT recovers: {listed}");
    summarise("deviations", &format!("{} files that deviate from the format are read", cases.len()));
}
