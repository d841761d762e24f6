//! Damaged trees: each damage is listed with what reading gives. `tree.root` was written by ROOT 6.40 without compression, so
//! that damages reach the records themselves: six entries of leaves, arrays, strings, vectors and a map, in two clusters.
//! Set `TUPELO_UPDATE` to write the list again.

use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use bytes::Bytes;
use conformance::summary;
use tupelo::{File, Result, Table};
use tupelo_format::checksum::xxh3;

/// No damage of a file of 27 KB may make reading take longer, on the slowest machine.
const MOST_TIME: Duration = Duration::from_secs(2);
/// What a word is replaced by.
const WORDS: [(&str, [u8; 4]); 4] =
    [("0", [0; 4]), ("-1", [0xff; 4]), ("max", [0x7f, 0xff, 0xff, 0xff]), ("2", [0, 0, 0, 2])];
/// Distance of the words that are replaced in the record of the tree, in baskets and in the streamer info, in bytes.
const STRIDES: [usize; 3] = [28, 12, 160];

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("bad_trees")
}

/// All entries of the tree, field by field, as text; a field that is refused with its error.
fn read(bytes: Vec<u8>) -> Result<String> {
    let file = File::of_bytes("tree.root", bytes)?;
    let Table::Tree(tree) = file.table(Some("t"))? else { return Ok("no tree".to_owned()) };
    let mut text = format!("{} entries; ", tree.entries());
    for field in &tree.schema().fields {
        let read = tree.read([&field.name])?;
        text += &match read.to_batch() {
            Ok(batch) => format!("{}: {:?}\n", field.name, batch.column(0)),
            Err(error) => return Err(error),
        };
    }
    for (path, reason) in tree.refused() {
        text += &format!("{path}: {reason}\n");
    }
    Ok(text)
}

fn verdict(bytes: Vec<u8>, whole: &str) -> String {
    match read(bytes) {
        Ok(text) if text == whole => "reads as before".to_owned(),
        Ok(text) => format!("reads other values: {:016x}", xxh3(text.as_bytes())),
        Err(error) => format!("refused: {}", error.to_string().replace('\n', " ")),
    }
}

/// Places in the file that are damaged: a name and the bytes.
fn places(bytes: &Bytes) -> Vec<(String, Range<usize>, usize)> {
    let file = File::of_bytes("tree.root", bytes.to_vec()).expect("a file");
    let (header, _) = file.header().expect("a header");
    let Table::Tree(tree) = file.table(Some("t")).expect("a tree") else { panic!("no tree") };
    let mut places = Vec::new();
    for (index, branch) in tree.metadata().branches.iter().enumerate() {
        for (number, basket) in branch.baskets.iter().enumerate() {
            if let tupelo::reader::Stored::InFile { offset, bytes } = &basket.stored {
                let start = *offset as usize;
                let name = format!("branch {index} basket {number}");
                places.push((name, start..start + *bytes as usize, STRIDES[1]));
            }
        }
    }
    let last = places.iter().map(|(_, range, _)| range.end).max().expect("baskets");
    let info = header.seek_info as usize;
    // The record of the tree follows the baskets, and the streamer info follows it.
    places.push(("tree".to_owned(), last..info, STRIDES[0]));
    places.push(("streamer info".to_owned(), info..info + header.nbytes_info as usize, STRIDES[2]));
    places
}

#[test]
fn every_damage_gives_the_listed_error() {
    let bytes: Bytes = fs::read(folder().join("tree.root")).expect("the tree").into();
    let whole = read(bytes.to_vec()).expect("a whole tree");
    assert!(whole.contains("entry 5"), "{whole}");
    let mut found = BTreeMap::new();
    for (name, range, stride) in places(&bytes) {
        for (step, at) in range.clone().step_by(stride).enumerate().filter(|(_, at)| at + 4 <= range.end) {
            let (word, value) = WORDS[step % WORDS.len()];
            let mut damaged = bytes.to_vec();
            damaged[at..at + 4].copy_from_slice(&value);
            let begin = Instant::now();
            let verdict = verdict(damaged, &whole);
            assert!(begin.elapsed() < MOST_TIME, "{name} at {at}: {:?}", begin.elapsed());
            found.insert(format!("{name} +{} = {word}", at - range.start), verdict);
        }
    }
    let list = folder().join("expected.txt");
    if std::env::var_os("TUPELO_UPDATE").is_some() {
        let lines: String = found.iter().map(|(name, verdict)| format!("{name}\t{verdict}\n")).collect();
        fs::write(&list, lines).expect("the list");
    }
    let text = fs::read_to_string(list).expect("the list");
    let expected: BTreeMap<&str, &str> = text.lines().filter_map(|line| line.split_once('\t')).collect();
    assert!(found.len() >= 500, "{} damages", found.len());
    assert_eq!(found.len(), expected.len());
    let wrong: Vec<_> = found
        .iter()
        .filter(|(name, verdict)| expected.get(name.as_str()) != Some(&verdict.as_str()))
        .map(|(name, verdict)| format!("{name}\n  {verdict}\n  not {:?}", expected.get(name.as_str())))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let refused = found.values().filter(|verdict| verdict.starts_with("refused")).count();
    summary::note(
        "bad_trees",
        &format!("{} damaged trees, {refused} refused with the reason that is listed", found.len()),
    );
}

/// Only the list of free places may be missing.
#[test]
fn a_truncated_tree_is_refused() {
    let bytes = fs::read(folder().join("tree.root")).expect("the tree");
    let whole = read(bytes.clone()).expect("a whole tree");
    for length in (0..bytes.len()).step_by(97) {
        match read(bytes[..length].to_vec()) {
            Ok(text) => assert!(text == whole && length > bytes.len() - 100, "{length} bytes"),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
}
