//! Writes the damaged files of `conformance/bad` and the list of what Tupelo says of each; `--check` only compares.
//!
//! The list is for review: a changed line is a changed promise.

use std::collections::BTreeMap;
use std::fs;
use std::process::ExitCode;

use conformance::bad::{self, Base};
use conformance::outcome::verdict;

fn main() -> ExitCode {
    let check = std::env::args().any(|argument| argument == "--check");
    let base: Vec<_> = Base::ALL.map(Base::data).into_iter().collect();
    let mut files: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    let mut list = String::new();
    for bad in bad::all() {
        let name = format!("{}.root", bad.name);
        let bytes = bad.bytes();
        list.push_str(&format!("{name}\t{}\n", verdict(&bytes, &name, true, &base[bad.base as usize])));
        files.insert(name, bytes.to_vec());
    }
    files.insert("expected.txt".into(), list.into_bytes());

    let folder = bad::folder();
    let there = fs::read_dir(&folder).into_iter().flatten().flatten();
    let there: Vec<_> = there.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    let mut different = 0;
    for name in there.iter().filter(|name| !files.contains_key(*name)) {
        println!("not made here: {name}");
        different += 1;
        if !check {
            fs::remove_file(folder.join(name)).expect("an old file to go");
        }
    }
    for (name, bytes) in &files {
        let path = folder.join(name);
        if fs::read(&path).ok().as_ref() != Some(bytes) {
            println!("{}: {name}", if check { "differs" } else { "written" });
            different += 1;
            if !check {
                fs::create_dir_all(&folder).expect("the folder");
                fs::write(path, bytes).expect("a file");
            }
        }
    }
    let total: usize = files.values().map(Vec::len).sum();
    println!("{} files, {total} bytes, {different} {}", files.len(), if check { "different" } else { "written" });
    if check && different > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
