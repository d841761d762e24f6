//! Operations that are killed, or whose system calls fail, at any call: files are as before, or as after the operation.

use std::fs;

use serde_json::Value;

use super::faults::{content, strace};
use super::{Place, summarise, tupelo};

/// Calls that need space.
const WRITES: &str = "writev,pwrite64,pwritev,ftruncate,fallocate,copy_file_range";
/// Other calls that change files.
const OTHERS: &str = "fsync,fdatasync,rename,renameat,renameat2,unlink,unlinkat";
/// Most calls of a kind that are tried, beginning with the first.
const MAX_CALLS: usize = 40;

/// Readable objects of a file, and the entries of its ntuples and trees.
fn state(file: &str) -> Vec<(String, String)> {
    tupelo(&["verify", file]).ok();
    let listed = tupelo(&["ls", file, "--json"]).json();
    let of = |what: &str| listed[what].as_array().expect("a list").clone();
    let text = |it: &Value, key: &str| it[key].as_str().expect("a text").to_owned();
    let mut found: Vec<(String, String)> = of("objects").iter().map(|it| (text(it, "path"), String::new())).collect();
    for table in [of("ntuples"), of("trees")].concat() {
        let name = text(&table, "name");
        let entries = tupelo(&["dump", &format!("{file}:{name}")]).ok();
        found.push((name, entries));
    }
    found.sort();
    found
}

/// An operation on the file `target` of a place, from `one.root` and `two.root`.
struct Operation {
    name: &'static str,
    arguments: Vec<String>,
    /// Whether the target is replaced as a whole: it is then as before, byte for byte.
    replaces: bool,
}

fn operations(place: &Place) -> Vec<Operation> {
    let path = |name: &str| place.path(name);
    let [one, two, trees, target] = ["one.root", "two.root", "trees.root", "target.root"].map(path);
    let at = |name: &str| format!("{target}:{name}");
    let operation = |name, arguments: &[&str], replaces| Operation {
        name,
        arguments: arguments.iter().map(|it| (*it).to_owned()).collect(),
        replaces,
    };
    vec![
        operation("merge ntuples", &["merge", &target, &one, &two, "--force"], true),
        operation("merge trees", &["merge", &target, &trees, &trees, "--force"], true),
        operation("copy a tree", &["copy", &trees, "-o", &target, "--force", "--auto-flush", "30"], true),
        operation("join", &["join", &target, &one, &two, "--prefix", "other_", "--force"], true),
        operation("import", &["import", &trees, "-o", &target, "--force"], true),
        operation("salvage", &["verify", &trees, "--salvage", &target, "--force"], true),
        operation("repack", &["repack", &target], true),
        operation("append entries", &["append", &at("DecayTree"), &two], false),
        operation("append a field", &["append", &at("DecayTree"), "--define", "twice=2*H1_PX"], false),
        operation("rm", &["rm", &at("DecayTree")], false),
        operation("mv", &["mv", &at("DecayTree"), &at("moved/Decay")], false),
        operation("mkdir", &["mkdir", &at("new")], false),
    ]
}

/// Makes the inputs, and `target.root` with an ntuple, a tree and a hole.
fn inputs(place: &Place) {
    let [one, two, trees, target] = ["one.root", "two.root", "trees.root", "target.root"].map(|name| place.path(name));
    for (file, seed) in [(&one, "1"), (&two, "2")] {
        let sizes = ["--page-bytes", "2KiB", "--cluster-bytes", "10kB"];
        tupelo(&[&["generate", "b2hhh", "--events", "150", "--seed", seed, file], &sizes[..]].concat()).ok();
    }
    tupelo(&["export", &one, &trees]).ok();
    let _ = fs::copy(&two, &target).expect("a copy");
    tupelo(&["copy", &one, &format!("{target}:hole"), "--append"]).ok();
    tupelo(&["copy", &format!("{trees}:DecayTree"), &format!("{target}:trees/Decay"), "--append"]).ok();
    tupelo(&["rm", &format!("{target}:hole")]).ok();
}

/// Runs each operation with a fault at the first call, at the second, and so on; returns the number of faults.
fn with_faults(calls: &str, fault: &str, check: impl Fn(&Operation, &str, Option<i32>, bool)) -> Option<u64> {
    let mut faults = 0;
    for number in 0..operations(&Place::new()).len() {
        let place = Place::new();
        inputs(&place);
        let operation = &operations(&place)[number];
        let arguments: Vec<&str> = operation.arguments.iter().map(String::as_str).collect();
        let target = place.path("target.root");
        let (old, before) = (content(place.directory.path()), state(&target));
        tupelo(&arguments).ok();
        let after = state(&target);
        assert!(before != after || operation.name == "repack", "{} changes nothing", operation.name);
        for call in 1..=MAX_CALLS {
            for path in place.files() {
                fs::remove_file(path).expect("a file");
            }
            for (path, bytes) in &old {
                fs::write(path, bytes).expect("a file");
            }
            let what = format!("{} with {fault} at call {call}", operation.name);
            let (status, _) = strace(&format!("{calls}:{fault}:when={call}"), &[], &arguments)?;
            if status == Some(0) {
                assert!(state(&target) == after, "{what}");
                break;
            }
            faults += 1;
            let is_unchanged = fs::read(&target).is_ok_and(|bytes| old.values().any(|old| *old == bytes));
            let now = state(&target);
            assert!(now == before || now == after, "{what}");
            assert!(is_unchanged || !operation.replaces || now == after, "{what}");
            // Space is listed as free after the objects are gone for good.
            check(operation, &what, status, content(place.directory.path()) == old || now == after);
            // Nothing that is left over is in the way of another try.
            if now == before {
                tupelo(&arguments).ok();
                assert!(state(&target) == after, "{what}, once more");
            }
        }
    }
    Some(faults)
}

#[test]
fn operations_that_are_killed_leave_the_old_or_the_new_file() {
    let killed = with_faults(&format!("{WRITES},{OTHERS}"), "signal=SIGKILL", |_, what, status, _| {
        assert!(status.is_none_or(|status| status > 128), "{what}: {status:?}");
    });
    match killed {
        Some(count) => summarise("command-killed", &format!("command: operations were killed at {count} system calls")),
        None => summarise("command-killed", "command: no operations were killed, because strace is not available"),
    }
}

#[test]
fn operations_on_a_full_disk_leave_the_old_or_the_new_file() {
    let full = with_faults(WRITES, "error=ENOSPC", |_, what, status, is_complete| {
        assert_eq!(status, Some(1), "{what}");
        assert!(is_complete, "{what} left something half done");
    });
    summarise("command-no-space", &format!("command: {} system calls of operations failed", full.unwrap_or_default()));
}
