//! Ntuples in DAOS containers: the layout of ROOT, and what happens when something fails.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use arrow_array::Array;
use bytes::Bytes;
use tupelo_format::store::daos::{DaosAnchor, FOOTER_AKEY, HEADER_AKEY};
use tupelo_storage::objects::ObjectMemory;
use tupelo_storage::{Condition, Keys, MemoryFile, MemorySink, NewObject, ObjectSink, ObjectSource};

use super::super::gc::Collector;
use super::super::layout::{Content, layout};
use super::super::verify::{verify, verify_deep};
use super::{all, in_a_file, keys, options, replace, write};
use crate::reader::File;
use crate::writer::tests::{file_with_late_field, nested, nested_schema, open};
use crate::writer::{FileWriter, WriteOptions};
use crate::{ErrorKind, Result};

const URI: &str = "daos://tank/box:events";
const MAPPINGS: [&str; 5] = ["auto", "page", "cage:700", "cage:1GiB", "page-group"];
/// The first part of all keys of the ntuple.
const INDEX: &str = "/2189a20c/";
/// Anchor, header and footer.
const HEAD: &str = "SX/2189a20c/ffffffffffffffff/5a3c69f0cafe4a11/4243544b5344422";

fn container() -> ObjectMemory {
    container_with(false)
}

fn container_with(separate_pages: bool) -> ObjectMemory {
    let (class, metadata_class) = ("S2".to_owned(), "SX".to_owned());
    ObjectMemory::new().with_keys(Keys::Daos { class, metadata_class, separate_pages })
}

fn create(store: &ObjectMemory, mapping: &str) -> Result<FileWriter> {
    FileWriter::create_objects_in(Arc::new(store.clone()), "events", URI, options(mapping))
}

fn open_in(store: &ObjectMemory) -> Result<File> {
    File::of_objects(Arc::new(store.clone()), "events", URI)
}

fn stored(mapping: &str) -> ObjectMemory {
    let store = container();
    store_in(&store, mapping);
    store
}

fn store_in(store: &ObjectMemory, mapping: &str) {
    let file = create(store, mapping).unwrap();
    write(&file).unwrap();
    file.finish().unwrap();
}

#[test]
fn every_mapping_gives_the_same_entries() {
    let expected = in_a_file();
    for mapping in MAPPINGS {
        let store = stored(mapping);
        let file = open_in(&store).unwrap();
        let ntuple = file.ntuple(None).unwrap();
        assert_eq!(all(&ntuple), expected, "{mapping}");
        assert_eq!((ntuple.name(), ntuple.description()), ("events", "about"));
        assert_eq!(ntuple.metadata().unwrap()["key"], "value");
        let report = verify(&file, None, &mut |_| {}).unwrap();
        assert!(report.is_intact() && report.ntuples == 2, "{report:?}");
        assert!(verify_deep(&file, &mut |_| {}).unwrap().is_intact());
        let layout = layout(&file).unwrap();
        assert!(layout.remarks.is_empty() && layout.regions.iter().all(|it| it.content != Content::Unaccounted));
        let listed: u64 = store.list("").unwrap().iter().map(|entry| entry.bytes).sum();
        let records: u64 = store.list("SX/0/0/").unwrap().iter().map(|entry| entry.bytes).sum();
        assert_eq!(layout.size, listed - records, "{mapping}");
        // Each value is read once.
        store.reset_counts();
        let part = ntuple.read(["numbers"]).unwrap().entries(1500..1501).to_batch().unwrap();
        assert_eq!(part.column(0), &expected.column_by_name("numbers").unwrap().slice(1500, 1));
        assert_eq!(store.counts().gets, 1, "{mapping}");
    }
}

#[test]
fn keys_are_those_of_root() {
    let store = stored("page");
    let (records, own): (Vec<String>, Vec<String>) =
        keys(&store).into_iter().partition(|key| key.starts_with("SX/0/0/"));
    let record = "SX/0/0/2189a20c/1".to_owned();
    assert_eq!(records, ["SX/0/0/2189a20c/0", &record]);
    assert_eq!(store.get("SX/0/0/2189a20c/0", 100).unwrap().0, "events");
    assert!(String::from_utf8_lossy(&store.get(&record, 100).unwrap().0).contains(" S2 sealed "));
    let is_key = |key: &String| key.matches('/').count() == 4;
    assert!(own.iter().all(|key| is_key(key) && key.contains(INDEX)), "{own:?}");
    for akey in ["a", "b", "c"] {
        assert!(own.contains(&format!("{HEAD}{akey}")), "{akey}");
    }
    // Pages of cluster 2 and column 0.
    assert!(own.iter().any(|key| key.starts_with("S2/2189a20c/2/0/100000000")), "{own:?}");
    let anchor = DaosAnchor::read(&store.get(&format!("{HEAD}a"), 100).unwrap().0).unwrap();
    assert_eq!((anchor.class.as_str(), anchor.extension.unwrap().attempt), ("S2", 1));
    let [header, footer] = [HEADER_AKEY, FOOTER_AKEY].map(|akey| {
        let key = format!("{}{akey:x}", HEAD.strip_suffix("4243544b5344422").unwrap());
        store.get(&key, 1 << 20).unwrap().0.len() as u64
    });
    assert_eq!(anchor.links.header.locator.stored_bytes(), header);
    assert_eq!(anchor.links.footer.locator.stored_bytes(), footer);
}

#[test]
fn pages_have_separate_objects_where_that_is_chosen() {
    let store = container_with(true);
    store_in(&store, "auto");
    assert!(create(&store, "cage:700").unwrap_err().to_string().contains("use the mapping page"));
    let pages: Vec<String> = keys(&store).into_iter().filter(|key| key.starts_with("S2/")).collect();
    assert!(pages.iter().all(|key| key.ends_with("/5a3c69f0cafe4a11/4243544b53444229")), "{pages:?}");
    assert!(pages.contains(&"S2/2189a20c/10000000000/5a3c69f0cafe4a11/4243544b53444229".to_owned()), "{pages:?}");
    // A reader with other options follows the anchor.
    let other = container();
    for key in keys(&store) {
        let pieces = vec![store.get(&key, 1 << 20).unwrap().0];
        other.put(&[NewObject { key, pieces }]).unwrap();
    }
    assert_eq!(all(&open_in(&other).unwrap().ntuple(None).unwrap()), in_a_file());
    assert!(verify_deep(&open_in(&other).unwrap(), &mut |_| {}).unwrap().is_intact());
    // Another layout replaces it, and its objects are collected.
    store_in(&other, "cage:700");
    let collector = Collector::over(Arc::new(other.clone()), "events", URI);
    for orphan in collector.find(Duration::ZERO).unwrap().orphans {
        assert!(orphan.objects >= pages.len() as u64, "{orphan:?}");
        collector.remove(&orphan).unwrap();
    }
    assert!(keys(&other).iter().all(|key| !key.ends_with("4243544b53444229")));
    assert_eq!(all(&open_in(&other).unwrap().ntuple(None).unwrap()), in_a_file());
}

/// ROOT leaves arbitrary bytes after the object class, and numbers pages and page lists from 0.
#[test]
fn ntuples_of_root_are_read_and_replaced() {
    let store = stored("page");
    let expected = all(&open_in(&store).unwrap().ntuple(None).unwrap());
    let key = format!("{HEAD}a");
    let anchor = DaosAnchor::read(&store.get(&key, 100).unwrap().0).unwrap();
    let mut bytes = DaosAnchor { extension: None, ..anchor }.write().unwrap();
    bytes[40..].fill(0xee);
    replace(&store, &key, bytes.into());
    let file = open_in(&store).unwrap();
    assert_eq!(all(&file.ntuple(None).unwrap()), expected);
    // Attribute sets need the number of the attempt; ROOT writes none.
    store_in(&store, "cage:700");
    assert_eq!(all(&open_in(&store).unwrap().ntuple(None).unwrap()), expected);
}

#[test]
fn pages_are_copied_as_they_are() {
    let original = file_with_late_field();
    let ntuple = open(&original);
    let expected = all(&ntuple);
    let (store, mut last) = (container(), ntuple);
    for mapping in MAPPINGS {
        // Each is made of the one before.
        let file = create(&store, mapping).unwrap();
        file.copy_sealed(&last, "events", &mut |_| ControlFlow::Continue(())).unwrap().unwrap();
        file.finish().unwrap();
        last = open_in(&store).unwrap().ntuple(Some("events")).unwrap();
        assert_eq!(all(&last), expected, "{mapping}");
        assert_eq!(last.metadata().unwrap()["kept"], "with its ntuple");
        assert!(verify_deep(&open_in(&store).unwrap(), &mut |_| {}).unwrap().is_intact());
    }
    let target = MemoryFile::new();
    let file = FileWriter::create_in(Box::new(MemorySink::create(&target)), "x.root").unwrap();
    file.copy_sealed(&last, "other", &mut |_| ControlFlow::Continue(())).unwrap().unwrap();
    file.finish().unwrap();
    let file = File::new(Arc::new(target.source().unwrap()), true).unwrap();
    assert_eq!(all(&file.ntuple(Some("other")).unwrap()).columns(), expected.columns());
    assert!(verify_deep(&file, &mut |_| {}).unwrap().is_intact());
}

#[test]
fn a_failed_writer_leaves_nothing() {
    for after in [0, 1, 2, 30] {
        let store = container();
        let begun = create(&store, "page");
        store.fail_put(after);
        let error = begun.and_then(|file| write(&file).and_then(|()| file.finish())).unwrap_err();
        assert!(error.is_retryable(), "{error}");
        assert!(open_in(&store).unwrap_err().is_not_found());
        assert_eq!(keys(&store), Vec::<String>::new(), "after {after} objects");
    }
}

#[test]
fn an_ntuple_is_replaced_as_a_whole() {
    for mapping in ["page", "cage:700"] {
        let store = stored(mapping);
        let old = open_in(&store).unwrap().ntuple(None).unwrap();
        let writers = [create(&store, "page").unwrap(), create(&store, mapping).unwrap()];
        let [first, second] = writers;
        let mut ntuple = first.ntuple("events", &nested_schema(), WriteOptions::default()).unwrap();
        ntuple.write(&nested(0..10, false)).unwrap();
        ntuple.finish().unwrap();
        write(&second).unwrap();
        assert_eq!(open_in(&store).unwrap().ntuple(None).unwrap().entries(), 3000);
        first.finish().unwrap();
        assert_eq!(open_in(&store).unwrap().ntuple(None).unwrap().entries(), 10);
        // Readers that opened the old one can go on until its objects are collected.
        assert_eq!(all(&old).num_rows(), 3000);
        let error = second.finish().unwrap_err();
        assert_eq!(error.storage_kind(), Some(tupelo_storage::ErrorKind::Changed), "{error}");
        assert!(verify_deep(&open_in(&store).unwrap(), &mut |_| {}).unwrap().is_intact());
    }
}

/// A reader that has the anchor of the old ntuple must not take header and footer of the new one.
#[test]
fn anchor_and_footer_belong_together() {
    let store = stored("page");
    let file = open_in(&store).unwrap();
    store_in(&store, "page");
    let error = file.ntuple(None).unwrap_err();
    assert!(error.is_corrupt() && error.to_string().contains("do not match the anchor"), "{error}");
    assert!(open_in(&store).unwrap().ntuple(None).is_ok());
}

#[test]
fn orphans_are_collected() {
    let store = stored("page");
    store_in(&store, "cage:700");
    // What a killed writer leaves: two clusters, but not the first one.
    let killed = "SX/0/0/2189a20c/3".to_owned();
    for (key, bytes) in [
        (killed.as_str(), "20260101T000000-0123456789ab S1"),
        ("S1/2189a20c/1/0/30000000000", "page"),
        ("S1/2189a20c/7/5/30000000001", "page"),
        ("S1/2189a20c/8000000000000000/5/30000000002", "page"),
    ] {
        store.put(&[NewObject { key: key.to_owned(), pieces: vec![bytes.into()] }]).unwrap();
    }
    let collector = Collector::over(Arc::new(store.clone()), "events", URI);
    let hour = Duration::from_secs(3600);
    assert_eq!(collector.find(hour).unwrap().orphans.iter().map(|it| it.objects).collect::<Vec<_>>(), [3]);
    let orphans = collector.find(Duration::ZERO).unwrap().orphans;
    assert_eq!(orphans.len(), 2);
    assert!(orphans.iter().all(|it| it.objects > 0 && it.bytes > 0 && it.newest.is_some()));
    assert!(orphans.iter().all(|orphan| collector.remove(orphan).unwrap()));
    assert_eq!(collector.find(Duration::ZERO).unwrap().orphans, []);
    assert!(verify_deep(&open_in(&store).unwrap(), &mut |_| {}).unwrap().is_intact());
    let left = keys(&store);
    assert!(left.iter().all(|key| !key.starts_with("S1/")), "{left:?}");
    // As many as were there with one attempt, and two records, which keep the numbers for a day.
    assert_eq!(left.len(), keys(&stored("cage:700")).len() + 2);
    let marker = String::from_utf8_lossy(&store.get(&killed, 100).unwrap().0).into_owned();
    let (record, _) = marker.split_once(" removed ").unwrap();
    let old = NewObject { key: killed.clone(), pieces: vec![format!("{record} removed 20260101T000000").into()] };
    store.delete(std::slice::from_ref(&killed)).unwrap();
    store.put(&[old]).unwrap();
    assert_eq!(collect(&store), 1);
    assert!(!keys(&store).contains(&killed));
    let killed = container();
    let text = "20260101T000000-0123456789ab SX removed 20260101T000000";
    let record = NewObject { key: "SX/0/0/2189a20c/1".to_owned(), pieces: vec![text.into()] };
    let name = NewObject { key: "SX/0/0/2189a20c/0".to_owned(), pieces: vec!["events".into()] };
    killed.put(&[record, name]).unwrap();
    let collector = Collector::over(Arc::new(killed.clone()), "events", URI);
    assert!(collector.find(hour).unwrap().orphans.iter().all(|orphan| collector.remove(orphan).unwrap()));
    assert_eq!(keys(&killed), Vec::<String>::new());
}

#[test]
fn attempts_that_cannot_be_read_are_reported_and_kept() {
    let store = stored("page");
    let records = [
        ("SX/0/0/2189a20c/4", "nonsense".to_owned()),
        ("SX/0/0/2189a20c/5", "20260101T000000-0123456789ab S1/x".to_owned()),
        ("SX/0/0/2189a20c/6", "x".repeat(10_000)),
    ];
    for (key, text) in records {
        store.put(&[NewObject { key: key.to_owned(), pieces: vec![text.into()] }]).unwrap();
    }
    let before = keys(&store);
    let found = Collector::over(Arc::new(store.clone()), "events", URI).find(Duration::ZERO).unwrap();
    assert_eq!(found.orphans, []);
    let unreadable = |number| format!("the record of attempt {number} cannot be read; its objects are kept");
    assert_eq!(found.unreadable, [4, 5, 6].map(unreadable));
    assert_eq!(collect(&store), 0);
    assert_eq!(keys(&store), before);
}

#[test]
fn another_name_with_the_same_hash_is_not_taken() {
    let store = stored("page");
    // As if both names had one hash.
    let other = "SX/2235e9aa/ffffffffffffffff/5a3c69f0cafe4a11/4243544b5344422";
    let found: Vec<_> = ["a", "b", "c"].map(|akey| store.get(&format!("{HEAD}{akey}"), 1 << 20).unwrap().0).into();
    for (akey, bytes) in ["a", "b", "c"].into_iter().zip(found) {
        store.put(&[NewObject { key: format!("{other}{akey}"), pieces: vec![bytes] }]).unwrap();
    }
    let open = || File::of_objects(Arc::new(store.clone()), "tracks", "daos://tank/box:tracks");
    let error = open().unwrap().ntuple(None).unwrap_err();
    let expected =
        "daos://tank/box:tracks: the container lacks ntuple 'tracks', but has 'events', whose name has the same hash";
    assert!(error.is_not_found() && error.to_string().contains(expected), "{error}");
    let create = || {
        let name = "daos://tank/box:tracks";
        FileWriter::create_objects_in(Arc::new(store.clone()), "tracks", name, options("page"))
    };
    assert!(create().unwrap_err().to_string().contains(expected));
}

#[test]
fn unsupported_mappings_of_a_container_are_refused() {
    let store = container();
    let error = create(&store, "cluster").unwrap_err();
    assert!(
        error.kind() == ErrorKind::InvalidArgument && error.to_string().contains("support the mapping 'cluster'"),
        "{error}"
    );
    let file = create(&store, "page").unwrap();
    let error = file.ntuple("tracks", &nested_schema(), WriteOptions::default()).unwrap_err().to_string();
    assert!(error.contains("must have the name in its URI, 'events'"), "{error}");
    drop(file);
    store.publish(&format!("{HEAD}a"), Bytes::from_static(b"no anchor"), &Condition::Absent).unwrap();
    let error = create(&store, "page").unwrap_err().to_string();
    assert!(error.contains("an object that is not an ntuple exists under this name"), "{error}");
}

fn collector(store: &ObjectMemory) -> Collector {
    Collector::over(Arc::new(store.clone()), "events", URI)
}

/// Removes all attempts that are not visible, however new.
fn collect(store: &ObjectMemory) -> usize {
    let orphans = collector(store).find(Duration::ZERO).unwrap().orphans;
    assert!(orphans.iter().all(|orphan| collector(store).remove(orphan).unwrap()));
    orphans.len()
}

#[test]
fn a_collected_writer_fails_and_removes_nothing_of_others() {
    for ends in [true, false] {
        let store = container();
        let first = create(&store, "page").unwrap();
        write(&first).unwrap();
        assert_eq!(collect(&store), 1);
        // Another writer gets another number.
        let second = create(&store, "page").unwrap();
        match ends {
            true => {
                let error = first.finish().unwrap_err().to_string();
                assert!(error.contains("while it was written; write it again"), "{error}");
            }
            false => drop(first.abort().unwrap()),
        }
        write(&second).unwrap();
        second.finish().unwrap();
        assert_eq!(all(&open_in(&store).unwrap().ntuple(None).unwrap()), in_a_file());
        assert!(verify_deep(&open_in(&store).unwrap(), &mut |_| {}).unwrap().is_intact());
        // What the first one wrote after it was collected.
        collect(&store);
        assert_eq!(collect(&store), 0);
        assert!(!keys(&store).iter().any(|key| key.ends_with("/10000000000")));
    }
}

#[test]
fn a_writer_that_ends_is_not_collected() {
    let store = container();
    let file = create(&store, "page").unwrap();
    write(&file).unwrap();
    let orphans = collector(&store).find(Duration::ZERO).unwrap().orphans;
    file.finish().unwrap();
    assert!(!collector(&store).remove(&orphans[0]).unwrap());
    // A collector that has seen the anchor before it was written.
    let head: Vec<String> = keys(&store).into_iter().filter(|key| key.starts_with(HEAD)).collect();
    let anchor = store.get(&head[0], 1 << 20).unwrap().0;
    store.delete(&head[..1]).unwrap();
    assert!(!collector(&store).remove(&orphans[0]).unwrap());
    store.publish(&head[0], anchor, &Condition::Absent).unwrap();
    assert!(verify_deep(&open_in(&store).unwrap(), &mut |_| {}).unwrap().is_intact());
}

#[test]
fn the_number_of_a_visible_attempt_is_not_used_again() {
    let store = stored("page");
    store.delete(&["SX/0/0/2189a20c/1".to_owned()]).unwrap();
    let other = create(&store, "page").unwrap();
    write(&other).unwrap();
    assert!(keys(&store).contains(&"SX/0/0/2189a20c/2".to_owned()));
    drop(other.abort().unwrap());
    assert!(verify_deep(&open_in(&store).unwrap(), &mut |_| {}).unwrap().is_intact());
}

#[test]
fn forged_records_lead_to_nothing_else() {
    let store = stored("page");
    let before = keys(&store).len();
    let name = "20260101T000000-0123456789ab";
    let records = [
        ("2", format!("{name} S2/2189a20c/0")),
        ("3", format!("{name} ../x")),
        ("4", "garbage".to_owned()),
        ("5", "x".repeat(2000)),
        ("ffffffff", format!("{name} S2")),
    ];
    for (number, text) in &records {
        let key = format!("SX/0/0/2189a20c/{number}");
        store.put(&[NewObject { key, pieces: vec![Bytes::from(text.clone())] }]).unwrap();
    }
    assert_eq!(collect(&store), 1, "the last one");
    assert_eq!(keys(&store).len(), before + 5);
    store_in(&store, "page-group");
    assert_eq!(all(&open_in(&store).unwrap().ntuple(None).unwrap()), in_a_file());
    assert_eq!(collect(&store), 1, "the one before");
    assert!(verify_deep(&open_in(&store).unwrap(), &mut |_| {}).unwrap().is_intact());
}

#[test]
fn another_class_of_metadata_does_not_hide_an_ntuple() {
    let store = stored("page");
    let keys = Keys::Daos { class: "S2".to_owned(), metadata_class: "S1".to_owned(), separate_pages: false };
    let other = store.clone().with_keys(keys);
    let error = create(&other, "page").unwrap_err().to_string();
    assert!(error.contains("it already exists with daos_metadata_class=SX"), "{error}");
    assert_eq!(collect(&other), 0);
    assert!(verify_deep(&open_in(&store).unwrap(), &mut |_| {}).unwrap().is_intact());
}
