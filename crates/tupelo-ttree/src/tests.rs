//! The real trees, where they are at hand.

use std::collections::BTreeMap;
use std::path::PathBuf;

use bytes::Bytes;
use tupelo_format::compression;
use tupelo_format::container::{self, Attempt, FetchedRanges, Interrupt};

use crate::basket::{BasketHead, open_embedded};
use crate::fields::{Field, FieldKind};
use crate::tree::{Stored, TREE_CLASSES};
use crate::{Column, Tree};

fn run<T>(file: &[u8], step: impl Fn(&FetchedRanges) -> Attempt<T>) -> T {
    let mut fetched = FetchedRanges::new(file.len() as u64);
    fetched.provide(0, Bytes::copy_from_slice(file));
    match step(&fetched) {
        Ok(done) => done,
        Err(Interrupt::Failed(error)) => panic!("{error}"),
        Err(Interrupt::Missing(ranges)) => panic!("{ranges:?}"),
    }
}

fn real_files() -> Vec<(String, Vec<u8>)> {
    let data = PathBuf::from(std::env::var("TUPELO_DATA").unwrap_or_default());
    let mut paths: Vec<PathBuf> = Vec::new();
    for folder in [data.clone(), data.join("trees")] {
        paths.extend(std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()));
    }
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "root"));
    paths.sort();
    paths
        .into_iter()
        .map(|path| (path.file_name().unwrap().to_string_lossy().into(), std::fs::read(path).unwrap()))
        .collect()
}

/// What is not read in the real files.
const KNOWN: [&str; 5] = [
    "another branch has the name",
    "pointers, whose classes only the objects say",
    "pointers to several objects",
    "is not in the streamer info",
    // No entry of the branch has a byte.
    "2 bytes wanted where 0 are left",
];

fn values<'f>(fields: &'f [Field], found: &mut Vec<(&'f Field, usize, &'f crate::Layout)>) {
    for field in fields {
        match &field.kind {
            FieldKind::Value { branch, layout } => found.push((field, *branch, layout)),
            FieldKind::Record(members) | FieldKind::Collection { items: members, .. } => values(members, found),
        }
    }
}

#[test]
fn real_trees_are_read() {
    let mut wrong = BTreeMap::new();
    let (mut trees, mut branches) = (0, 0);
    for (name, file) in real_files() {
        let mut infos = run(&file, container::streamer_infos);
        infos.merge(&crate::streamer::layouts());
        for object in run(&file, container::list_objects) {
            if !TREE_CLASSES.contains(&object.key.class_name.as_str()) {
                continue;
            }
            let path = format!("{name}:{}", object.path);
            let bytes = run(&file, |fetched| container::object_bytes(fetched, &object.key));
            let tree = match Tree::read(&bytes, object.key.key_bytes, &object.key.class_name, &infos) {
                Ok(tree) => tree,
                Err(error) => {
                    wrong.insert(path, error.to_string());
                    continue;
                }
            };
            trees += 1;
            let (fields, refused) = tree.fields(&infos);
            for refused in refused {
                wrong.insert(format!("{path}:{}", refused.path), refused.reason);
            }
            let mut found = Vec::new();
            values(&fields, &mut found);
            for (_, index, layout) in found {
                branches += 1;
                let branch = &tree.branches[index];
                let mut column = Column::new(layout);
                for (number, place) in branch.baskets.iter().enumerate() {
                    let basket = match &place.stored {
                        Stored::Embedded(bytes) => open_embedded(bytes),
                        Stored::InFile { offset, bytes } => {
                            let record = &file[*offset as usize..*offset as usize + *bytes as usize];
                            BasketHead::read(record, *offset).and_then(|head| {
                                let payload = &record[usize::from(head.key_bytes)..];
                                let payload = if head.is_compressed() {
                                    compression::decompress(payload, head.object_bytes.into(), 1 << 30)?
                                } else {
                                    payload.to_vec()
                                };
                                // The basket does not outlive the buffer.
                                head.open(payload.leak())
                            })
                        }
                    };
                    let entries = (place.entries.end - place.entries.start) as usize;
                    let read = basket.and_then(|basket| column.read(layout, &basket, 0..entries));
                    if let Err(error) = read {
                        wrong.insert(
                            format!("{path}:{} basket {number}", tree.path(index)),
                            format!("{error} [{layout:?}]"),
                        );
                        break;
                    }
                }
            }
        }
    }
    let is_known = |reason: &String| KNOWN.iter().any(|known| reason.contains(known));
    let unknown: Vec<_> = wrong.iter().filter(|(_, reason)| !is_known(reason)).collect();
    assert!(unknown.is_empty(), "{unknown:#?}");
    assert_eq!(trees == 0, branches == 0);
    println!("{trees} trees, {branches} branches, {} not read", wrong.len());
}
