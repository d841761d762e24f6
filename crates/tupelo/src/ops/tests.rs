//! Ntuples in object stores: every mapping, copies to and from files, and what happens when something fails.

mod arbitration;
mod containers;
mod mirrors;
mod removal;

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use arrow_array::RecordBatch;
use bytes::Bytes;
use tupelo_format::store::JsonAnchor;
use tupelo_storage::objects::ObjectMemory;
use tupelo_storage::{Condition, MemoryFile, MemorySink, NewObject, ObjectEntry, ObjectSink, ObjectSource, Storage};

use super::gc::Collector;
use super::layout::{Content, layout};
use super::verify::{verify, verify_deep};
use crate::reader::{File, Ntuple};
use crate::writer::tests::{file_with_late_field, nested, nested_schema, open};
use crate::writer::{FileWriter, Mapping, ObjectOptions, WriteOptions};
use crate::{ErrorKind, Result};

const MAPPINGS: [&str; 6] = ["page", "cage:1", "cage:700", "cage:1GiB", "page-group", "cluster"];

pub(super) fn options(mapping: &str) -> ObjectOptions {
    ObjectOptions::default().with_mapping(mapping.parse().unwrap())
}

fn create(store: &ObjectMemory, options: ObjectOptions) -> Result<FileWriter> {
    FileWriter::create_objects_in(Arc::new(store.clone()), "dir/events", "ntpl+memory:dir/events", options)
}

fn open_objects(store: &ObjectMemory) -> Result<File> {
    File::of_objects(Arc::new(store.clone()), "dir/events", "ntpl+memory:dir/events")
}

/// Writes three clusters of 1000 entries, and an attribute.
pub(super) fn write(file: &FileWriter) -> Result<()> {
    write_clusters(file, 1000)
}

/// Writes three clusters of `entries` entries each, and an attribute.
fn write_clusters(file: &FileWriter, entries: i32) -> Result<()> {
    let pages = WriteOptions::default().with_page_bytes(512).with_description("about");
    let mut ntuple = file.ntuple("events", &nested_schema(), pages)?;
    for cluster in 0..3 {
        ntuple.write(&nested(cluster * entries..(cluster + 1) * entries, false))?;
        ntuple.flush_cluster()?;
    }
    ntuple.set_metadata("key", "value")?;
    ntuple.finish().map(drop)
}

/// The entries that [`write`] writes, from a file.
pub(super) fn in_a_file() -> RecordBatch {
    clusters_in_a_file(1000)
}

/// The entries that [`write_clusters`] writes, from a file.
fn clusters_in_a_file(entries: i32) -> RecordBatch {
    let file = MemoryFile::new();
    let writer = FileWriter::create_in(Box::new(MemorySink::create(&file)), "x.root").unwrap();
    write_clusters(&writer, entries).unwrap();
    writer.finish().unwrap();
    all(&open(&file))
}

fn stored(mapping: &str) -> ObjectMemory {
    let store = ObjectMemory::new();
    let file = create(&store, options(mapping)).unwrap();
    write(&file).unwrap();
    assert!(store.get("dir/events", 1 << 20).unwrap_err().is_not_found(), "nothing is visible before the end");
    file.finish().unwrap();
    store
}

pub(super) fn all(ntuple: &Ntuple) -> RecordBatch {
    ntuple.read_all().to_batch().unwrap()
}

pub(super) fn keys(store: &ObjectMemory) -> Vec<String> {
    store.list("").unwrap().into_iter().map(|entry| entry.key).collect()
}

#[test]
fn every_mapping_gives_the_same_entries() {
    let expected = in_a_file();
    assert_eq!(expected.num_rows(), 3000);
    let mut objects = Vec::new();
    for mapping in MAPPINGS {
        let store = stored(mapping);
        let file = open_objects(&store).unwrap();
        let ntuple = file.ntuple(None).unwrap();
        assert_eq!(all(&ntuple), expected, "{mapping}");
        assert_eq!((ntuple.name(), ntuple.description()), ("events", "about"));
        assert_eq!(ntuple.metadata().unwrap()["key"], "value");
        assert_eq!(ntuple.metadata().unwrap().len(), 1);
        let report = verify(&file, None, &mut |_| {}).unwrap();
        assert!(report.is_intact() && report.ntuples == 2, "{report:?}");
        assert!(verify_deep(&file, &mut |_| {}).unwrap().is_intact());
        let layout = layout(&file).unwrap();
        assert_eq!(layout.regions.iter().map(|region| region.bytes).sum::<u64>(), layout.size);
        assert!(layout.remarks.is_empty() && layout.regions.iter().all(|it| it.content != Content::Unaccounted));
        let is_record = |entry: &&ObjectEntry| entry.key.ends_with("/record");
        let listed: u64 = store.list("").unwrap().iter().filter(|it| !is_record(it)).map(|entry| entry.bytes).sum();
        assert_eq!(layout.size, listed, "{mapping}");
        objects.push(keys(&store).len());
        // A range of entries reads its pages only, and each object once at most.
        store.reset_counts();
        let part = ntuple.read(["numbers"]).unwrap().entries(1500..1501).to_batch().unwrap();
        assert_eq!(part.column(0), &expected.column_by_name("numbers").unwrap().slice(1500, 1));
        assert_eq!(store.counts().gets, 1, "{mapping}");
    }
    let [page, one, cage, group_cage, group, cluster] = objects[..] else { panic!() };
    assert_eq!((page, group_cage), (one, group));
    assert!(page > cage && cage > group && group > cluster, "{objects:?}");
    // Anchor, header, footer, page list, manifest; the same and one page group for the metadata; three clusters.
    assert!(cluster < 20, "{cluster}");
}

#[test]
fn pages_are_copied_as_they_are() {
    let original = file_with_late_field();
    let ntuple = open(&original);
    let expected = all(&ntuple);
    let store = ObjectMemory::new();
    let mut last = ntuple;
    for mapping in MAPPINGS {
        // Each is made of the one before.
        let file = create(&store, options(mapping)).unwrap();
        let mut done = 0;
        let written = file.copy_sealed(&last, "events", &mut |bytes| {
            done = bytes;
            ControlFlow::Continue(())
        });
        let written = written.unwrap().unwrap();
        file.finish().unwrap();
        assert_eq!((written.entries, written.clusters), (last.entries(), last.clusters()));
        assert!(done > 0 && done <= written.stored_bytes);
        last = open_objects(&store).unwrap().ntuple(Some("events")).unwrap();
        assert_eq!(all(&last), expected, "{mapping}");
        assert_eq!(last.metadata().unwrap()["kept"], "with its ntuple");
        assert!(verify_deep(&open_objects(&store).unwrap(), &mut |_| {}).unwrap().is_intact());
    }
    let target = MemoryFile::new();
    let file = FileWriter::create_in(Box::new(MemorySink::create(&target)), "x.root").unwrap();
    file.copy_sealed(&last, "dir/other", &mut |_| ControlFlow::Continue(())).unwrap().unwrap();
    file.finish().unwrap();
    let file = File::new(Arc::new(target.source().unwrap()), true).unwrap();
    let back = file.ntuple(Some("dir/other")).unwrap();
    assert_eq!((back.name(), all(&back).columns()), ("other", expected.columns()));
    assert_eq!(back.metadata().unwrap()["kept"], "with its ntuple");
    assert!(verify_deep(&file, &mut |_| {}).unwrap().is_intact());
}

#[test]
fn a_failed_writer_leaves_nothing() {
    let objects = keys(&stored("page")).len() as u64;
    for after in [0, 1, 7, objects / 2, objects - 2] {
        let store = ObjectMemory::new();
        let file = create(&store, options("page")).unwrap();
        store.fail_put(after);
        let error = write(&file).and_then(|()| file.finish().map(drop)).unwrap_err();
        assert!(error.is_retryable(), "{error}");
        assert!(open_objects(&store).unwrap_err().is_not_found());
        assert_eq!(keys(&store), Vec::<String>::new(), "after {after} objects");
    }
    for abort in [true, false] {
        let store = ObjectMemory::new();
        let file = create(&store, options("cluster")).unwrap();
        write(&file).unwrap();
        if abort {
            drop(file.abort().unwrap())
        } else {
            drop(file)
        }
        assert_eq!(keys(&store), Vec::<String>::new());
    }
    let store = ObjectMemory::new();
    let error = create(&store, options("page")).unwrap().finish().unwrap_err().to_string();
    assert!(error.ends_with("no ntuple was written; nothing was stored"), "{error}");
}

#[test]
fn an_ntuple_is_replaced_as_a_whole() {
    let store = stored("page");
    let (old, old_keys) = (open_objects(&store).unwrap().ntuple(None).unwrap(), keys(&store));
    let file = create(&store, options("cluster")).unwrap();
    let mut ntuple = file.ntuple("events", &nested_schema(), WriteOptions::default()).unwrap();
    ntuple.write(&nested(0..10, false)).unwrap();
    ntuple.finish().unwrap();
    assert_eq!(open_objects(&store).unwrap().ntuple(None).unwrap().entries(), 3000);
    file.finish().unwrap();
    let file = open_objects(&store).unwrap();
    assert_eq!(file.ntuple(None).unwrap().entries(), 10);
    // Readers that opened the old one can go on until its objects are collected.
    assert_eq!(all(&old).num_rows(), 3000);
    assert!(old_keys.iter().all(|key| keys(&store).contains(key)));
    assert!(verify(&file, None, &mut |_| {}).unwrap().is_intact());
}

#[test]
fn one_of_two_writers_succeeds() {
    for before in [None, Some(stored("page"))] {
        let store = before.clone().unwrap_or_default();
        let writers = [create(&store, options("page")).unwrap(), create(&store, options("cluster")).unwrap()];
        writers.iter().for_each(|file| write(file).unwrap());
        let [first, second] = writers;
        first.finish().unwrap();
        let error = second.finish().unwrap_err();
        assert_eq!(error.storage_kind(), Some(tupelo_storage::ErrorKind::Changed), "{error}");
        let anchor = JsonAnchor::read(&store.get("dir/events", 1 << 20).unwrap().0).unwrap();
        assert_eq!(anchor.extension.unwrap().mapping, "page");
        // The objects of the one that failed are gone.
        let attempts = |keys: &[String]| {
            keys.iter().filter_map(|key| key.split('/').nth(2).map(str::to_owned)).collect::<HashSet<_>>()
        };
        assert_eq!(attempts(&keys(&store)).len(), 1 + usize::from(before.is_some()));
        assert!(verify_deep(&open_objects(&store).unwrap(), &mut |_| {}).unwrap().is_intact());
    }
}

#[test]
fn exclusive_writers_need_conditions() {
    let exclusive = options("page").with_exclusive(true);
    let store = stored("page");
    let error = create(&store, exclusive).unwrap_err();
    assert!(error.to_string().ends_with("it already exists"), "{error}");
    let store = ObjectMemory::new();
    create(&store, exclusive).unwrap().abort().unwrap();
    store.ignore_conditions(true);
    let error = create(&store, exclusive).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("the store ignores the conditions If-None-Match and If-Match"), "{error}");
    assert_eq!(keys(&store), Vec::<String>::new(), "the probe is removed");
}

#[test]
fn objects_other_than_ntuples_are_not_replaced() {
    for content in [&b"root file"[..], &[b' '; 10_000]] {
        let store = ObjectMemory::new();
        store.publish("dir/events", Bytes::copy_from_slice(content), &Condition::Absent).unwrap();
        let error = create(&store, options("page")).unwrap_err().to_string();
        assert!(error.contains("an object that is not an ntuple exists under this name"), "{error}");
        assert_eq!(store.get("dir/events", 1 << 20).unwrap().0, content);
    }
}

/// After a publish whose result is unknown, the objects are kept: the ntuple may be visible.
#[test]
fn objects_stay_where_the_result_is_unknown() {
    let store = ObjectMemory::new();
    let file = create(&store, options("page-group")).unwrap();
    write(&file).unwrap();
    store.make_publish_ambiguous("dir/events");
    let error = file.finish().unwrap_err().to_string();
    assert!(error.contains("objects may remain beside ntpl+memory:dir/events; "), "{error}");
    assert!(verify_deep(&open_objects(&store).unwrap(), &mut |_| {}).unwrap().is_intact());
}

fn damages(store: &ObjectMemory, is_deep: bool) -> Vec<String> {
    let file = open_objects(store).unwrap();
    let report = if is_deep { verify_deep(&file, &mut |_| {}) } else { verify(&file, None, &mut |_| {}) };
    report.unwrap().damages.iter().map(ToString::to_string).collect()
}

pub(super) fn replace(store: &ObjectMemory, key: &str, bytes: Bytes) {
    store.delete(&[key.to_owned()]).unwrap();
    store.put(&[NewObject { key: key.to_owned(), pieces: vec![bytes] }]).unwrap();
}

#[test]
fn objects_that_are_missing_or_swapped_are_found() {
    let store = stored("page");
    let all = store.list("dir/events.objects/").unwrap();
    let object = |number: usize| {
        let key = &all.iter().find(|entry| entry.key.ends_with(&format!("/{number}"))).unwrap().key;
        (key.clone(), store.get(key, 1 << 30).unwrap().0)
    };
    // Two pages of the same size: number 0 is the header.
    // Besides these there are the anchor of the attribute set and the record.
    let sizes: Vec<usize> = (0..all.len() - 2).map(|number| object(number).1.len()).collect();
    let same = (1..sizes.len()).find_map(|a| Some((a, (a + 1..sizes.len()).find(|b| sizes[*b] == sizes[a])?)));
    let (first, second) = same.unwrap();
    let ((a, a_bytes), (b, b_bytes)) = (object(first), object(second));
    assert_ne!(a_bytes, b_bytes);
    replace(&store, &a, b_bytes.clone());
    replace(&store, &b, a_bytes.clone());
    let found = damages(&store, false);
    assert!(found.len() >= 2 && found.iter().all(|it| it.contains("not the one in the page list")), "{found:?}");
    let error = open_objects(&store).unwrap().ntuple(None).unwrap().read_all().to_batch().unwrap_err();
    assert!(error.is_corrupt(), "{error}");
    let deep = damages(&store, true);
    assert!(deep.contains(&format!("object {first} differs from what was written")), "{deep:?}");
    replace(&store, &a, a_bytes);
    replace(&store, &b, b_bytes.slice(1..));
    assert!(damages(&store, false).iter().any(|it| it.starts_with(&format!("object {second} has "))));
    store.delete(std::slice::from_ref(&b)).unwrap();
    assert!(damages(&store, false).contains(&format!("object {second} is missing")));
    let error = open_objects(&store).unwrap().ntuple(None).unwrap().read_all().to_batch().unwrap_err();
    assert!(error.is_corrupt() && error.to_string().contains("an object of the ntuple is missing"), "{error}");
}

#[test]
fn another_manifest_is_found() {
    let store = stored("cluster");
    let file = open_objects(&store).unwrap();
    let objects = file.stored_objects().unwrap();
    let key = format!("{}{}", objects.folder().unwrap(), objects.anchor().manifest.unwrap().object);
    let mut bytes = store.get(&key, 1 << 20).unwrap().0.to_vec();
    *bytes.last_mut().unwrap() ^= 1;
    replace(&store, &key, bytes.into());
    assert_eq!(damages(&store, false), ["manifest: it does not match the anchor"]);
    store.delete(&[key]).unwrap();
    assert!(damages(&store, false)[0].starts_with("manifest: an object of the ntuple is missing: "));
}

/// Regression: where pages and page list were exchanged for those of an ntuple like it, only `verify` noticed.
#[test]
fn another_page_list_is_found_by_readers() {
    let store = stored("cluster");
    let mut anchor = JsonAnchor::read(&store.get("dir/events", 1 << 20).unwrap().0).unwrap();
    let extension = anchor.extension.as_mut().unwrap();
    assert_eq!(extension.page_lists.len(), 1);
    extension.page_lists[0].digest ^= 1;
    replace(&store, "dir/events", anchor.write().unwrap().into());
    let error = open_objects(&store).unwrap().ntuple(None).unwrap().read_all().to_batch().unwrap_err();
    assert!(error.is_corrupt() && error.to_string().contains("it does not match the anchor"), "{error}");
}

#[test]
fn a_store_takes_one_new_ntuple() {
    let store = ObjectMemory::new();
    let file = create(&store, ObjectOptions::default()).unwrap();
    write(&file).unwrap();
    let error = file.ntuple("other", &nested_schema(), WriteOptions::default()).unwrap_err().to_string();
    assert!(error.contains("the URI of an object store names one ntuple"), "{error}");
    assert!(file.append("events", WriteOptions::default()).is_err());
    file.finish().unwrap();
    let file = open_objects(&store).unwrap();
    let error = file.ntuple(Some("event")).unwrap_err();
    assert!(error.is_not_found() && error.to_string().contains("'events'"), "{error}");
    assert_eq!(file.ntuple_names().unwrap(), ["events"]);
    assert!(file.ntuple(Some("events;1")).is_ok() && file.ntuple(Some("events;2")).is_err());
    assert_eq!(file.objects().unwrap()[0].name(), "events");
    assert!(file.header().is_err() && file.newest_ntuple("events").is_err());
    assert_eq!(Mapping::default().resolve(false, 1 << 20), Mapping::Cage(1 << 20));
}

#[test]
fn orphans_are_collected() {
    let folder = tempfile::tempdir().unwrap();
    let (uri, storage) = (format!("ntpl+file://{}/events", folder.path().display()), Storage::default());
    let write_to = |mapping: &str| {
        let file = FileWriter::create_objects(&uri, &storage, options(mapping)).unwrap();
        write(&file).unwrap();
        file.finish().unwrap();
    };
    write_to("page");
    let first = crate::open(&uri).open().unwrap();
    write_to("cluster");
    // What a killed writer leaves.
    let (namespace, _) = storage.object_sink(&uri).unwrap();
    let key = "events.objects/20260101T000000-0123456789ab/0".to_owned();
    namespace.put(&[NewObject { key, pieces: vec![Bytes::from_static(b"header")] }]).unwrap();
    let collector = Collector::new(&uri, &storage).unwrap();
    assert_eq!(collector.find(Duration::from_secs(3600)).unwrap().orphans, []);
    let orphans = collector.find(Duration::ZERO).unwrap().orphans;
    assert_eq!(orphans.len(), 2);
    assert!(orphans.iter().all(|it| it.objects > 0 && it.bytes > 0 && it.newest.is_some()));
    assert_eq!(all(&first).num_rows(), 3000);
    assert!(orphans.iter().all(|orphan| collector.remove(orphan).unwrap()));
    assert_eq!(collector.find(Duration::ZERO).unwrap().orphans, []);
    let file = crate::open(&uri).open_file().unwrap();
    assert!(verify_deep(&file, &mut |_| {}).unwrap().is_intact());
    assert!(first.read_all().to_batch().unwrap_err().is_corrupt());
    // The anchor tells what is visible: without it nothing is removed.
    namespace.delete(&["events".to_owned()]).unwrap();
    namespace.publish("events", Bytes::from_static(b"{}"), &Condition::Absent).unwrap();
    assert!(collector.find(Duration::ZERO).is_err());
}
