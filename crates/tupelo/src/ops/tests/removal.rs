//! Ntuples that are removed, and objects of one attempt or set in the place of others.

use std::sync::Arc;
use std::time::Duration;

use arrow_array::{Int64Array, RecordBatch};
use tupelo_format::store::JsonAnchor;
use tupelo_format::store::daos::DaosAnchor;
use tupelo_schema::schema::Schema;
use tupelo_storage::objects::ObjectMemory;
use tupelo_storage::{Keys, NewObject, ObjectSink, ObjectSource, names_in_container};

use super::super::gc::{Attempt, Collector};
use super::super::verify::verify_deep;
use super::{
    MAPPINGS, all, create, in_a_file, keys, nested, nested_schema, open_objects, options, replace, stored, write,
};
use crate::reader::File;
use crate::writer::{FileWriter, WriteOptions};

fn collector(store: &ObjectMemory) -> Collector {
    Collector::over(Arc::new(store.clone()), "dir/events", "ntpl+memory:dir/events")
}

/// Makes the records of all attempts older than the time for which they are kept.
pub(super) fn make_seals_old(store: &ObjectMemory) {
    for key in keys(store) {
        let text = store.get(&key, 1 << 30).unwrap().0;
        let Ok(text) = std::str::from_utf8(&text) else { continue };
        if let Some((record, rest)) = text.split_once(" sealed ") {
            let after = rest.split_once(' ').map(|(_, after)| format!(" {after}")).unwrap_or_default();
            replace(store, &key, format!("{record} sealed 20260101T000000{after}").into());
        }
    }
}

fn sizes(attempt: &Attempt) -> (u64, u64) {
    (attempt.objects, attempt.bytes)
}

#[test]
fn nothing_is_left_of_an_ntuple_that_is_removed() {
    for mapping in MAPPINGS {
        let store = stored(mapping);
        let others = [("dir/events-2", "x"), ("dir/events.objects/notes", "x")];
        for (key, text) in others {
            store.put(&[NewObject { key: key.to_owned(), pieces: vec![text.into()] }]).unwrap();
        }
        let known = collector(&store).find_visible().unwrap();
        // Besides these there are anchor and record.
        assert_eq!(known.objects as usize, keys(&store).len() - 2 - others.len());
        assert_eq!(sizes(&collector(&store).remove_visible().unwrap()), sizes(&known));
        assert_eq!(keys(&store), others.map(|(key, _)| key));
        let error = collector(&store).remove_visible().unwrap_err();
        assert!(error.is_not_found() && error.to_string().contains("dir/events: the ntuple does not exist"), "{error}");
    }
}

#[test]
fn other_attempts_are_left_to_a_collection() {
    let store = stored("page");
    let replaced = create(&store, options("cluster")).unwrap();
    write(&replaced).unwrap();
    replaced.finish().unwrap();
    let before = keys(&store).len() as u64;
    let removed = collector(&store).remove_visible().unwrap();
    // Nothing tells any more that it was visible.
    assert_eq!(collector(&store).find(Duration::ZERO).unwrap().publishing, 1);
    make_seals_old(&store);
    let [orphan] = &collector(&store).find(Duration::ZERO).unwrap().orphans[..] else { panic!("the first attempt") };
    assert_eq!(orphan.objects + removed.objects + 3, before, "the anchor, and two records");
    let found = collector(&store).find(Duration::from_secs(3600)).unwrap();
    assert_eq!((found.orphans.len(), found.young), (0, 1));
}

/// ROOT has the objects below the anchor.
#[test]
fn ntuples_of_root_are_removed() {
    let store = stored("page");
    let mut anchor = JsonAnchor::read(&store.get("dir/events", 1 << 20).unwrap().0).unwrap();
    for key in keys(&store).iter().filter(|key| key.contains(".objects/")) {
        if key.ends_with("/record") {
            store.delete(std::slice::from_ref(key)).unwrap();
            continue;
        }
        let name = key.splitn(4, '/').nth(3).unwrap();
        let pieces = vec![store.get(key, 1 << 20).unwrap().0];
        store.put(&[NewObject { key: format!("dir/events/{name}"), pieces }]).unwrap();
        store.delete(std::slice::from_ref(key)).unwrap();
    }
    store.put(&[NewObject { key: "dir/events/other/0".to_owned(), pieces: vec!["x".into()] }]).unwrap();
    (anchor.place, anchor.extension) = (tupelo_format::store::ObjectFolder::Below, None);
    replace(&store, "dir/events", anchor.write().unwrap().into());
    assert_eq!(all(&open_objects(&store).unwrap().ntuple(None).unwrap()), in_a_file());
    assert!(collector(&store).remove_visible().unwrap().objects > 50);
    assert_eq!(keys(&store), ["dir/events/other/0"]);
}

#[test]
fn unreadable_attempts_are_not_removed() {
    let store = stored("cluster");
    let anchor = store.get("dir/events", 1 << 20).unwrap().0;
    replace(&store, "dir/events", anchor.slice(1..));
    let before = keys(&store);
    assert!(collector(&store).remove_visible().unwrap_err().is_corrupt());
    assert_eq!(keys(&store), before);
}

fn container() -> (ObjectMemory, Collector) {
    let (class, metadata_class) = ("S2".to_owned(), "SX".to_owned());
    let store = ObjectMemory::new().with_keys(Keys::Daos { class, metadata_class, separate_pages: false });
    let collector = Collector::over(Arc::new(store.clone()), "events", "daos://tank/box:events");
    (store, collector)
}

#[test]
fn only_the_number_of_the_attempt_is_left_in_a_container() {
    for mapping in ["page", "page-group"] {
        let (store, collector) = container();
        let uri = "daos://tank/box:events";
        let write_again = || {
            let file = FileWriter::create_objects_in(Arc::new(store.clone()), "events", uri, options(mapping)).unwrap();
            write(&file).unwrap();
            file.finish().unwrap();
        };
        write_again();
        assert_eq!(names_in_container(&store).unwrap(), ["events"]);
        assert!(collector.remove_visible().unwrap().objects > 5);
        assert!(names_in_container(&store).unwrap().is_empty());
        assert_eq!(keys(&store), ["SX/0/0/2189a20c/1"], "the record, which keeps its number for a day");
        assert!(collector.remove_visible().unwrap_err().is_not_found());
        write_again();
        let file = File::of_objects(Arc::new(store.clone()), "events", uri).unwrap();
        assert_eq!(all(&file.ntuple(None).unwrap()), in_a_file());
    }
}

/// ROOT numbers pages and page lists from 0, and has no records.
#[test]
fn ntuples_of_root_are_removed_from_a_container() {
    let (store, collector) = container();
    let uri = "daos://tank/box:events";
    let file = FileWriter::create_objects_in(Arc::new(store.clone()), "events", uri, options("page")).unwrap();
    write(&file).unwrap();
    file.finish().unwrap();
    let anchor_key = keys(&store).into_iter().find(|key| key.ends_with("4243544b5344422a")).unwrap();
    let anchor = DaosAnchor::read(&store.get(&anchor_key, 100).unwrap().0).unwrap();
    replace(&store, &anchor_key, DaosAnchor { extension: None, ..anchor }.write().unwrap().into());
    for key in ["S2/2189a20c/0/0/7", "S2/2189a20c/3/1/8", "SX/2189a20c/fffffffffffffffe/5a3c69f0cafe4a11/3"] {
        store.put(&[NewObject { key: key.to_owned(), pieces: vec!["x".into()] }]).unwrap();
    }
    let before = keys(&store).len();
    assert_eq!(collector.remove_visible().unwrap().objects, 3);
    // Anchor, header, footer and name too; what an attempt of Tupelo has written is an orphan.
    assert_eq!(keys(&store).len(), before - 3 - 4);
    make_seals_old(&store);
    assert_eq!(collector.find(Duration::ZERO).unwrap().orphans.len(), 1);
}

/// Regression: with the anchors of two attribute sets exchanged, each had the entries of the other.
#[test]
fn attribute_sets_cannot_be_exchanged() {
    let store = ObjectMemory::new();
    let file = create(&store, options("cluster")).unwrap();
    let mut ntuple = file.ntuple("events", &nested_schema(), WriteOptions::default()).unwrap();
    let batch = nested(0..10, false);
    ntuple.write(&batch).unwrap();
    for (first, name) in [(0, "runs"), (2, "lumi")] {
        let mut set = ntuple.attribute_set(name, &nested_schema()).unwrap();
        set.write(&[0..5, 5..10], &batch.slice(first, 2)).unwrap();
    }
    ntuple.finish().unwrap();
    file.finish().unwrap();
    let read = |name: &str| {
        let ntuple = open_objects(&store).unwrap().ntuple(None).unwrap();
        ntuple.attribute_set(name).map(|set| all(&set))
    };
    assert!(read("runs").is_ok() && read("lumi").is_ok());
    let key = |name: &str| keys(&store).into_iter().find(|key| key.ends_with(&format!("_clone/{name}"))).unwrap();
    let [runs, lumi] = ["runs", "lumi"].map(|name| (key(name), store.get(&key(name), 1 << 20).unwrap().0));
    replace(&store, &runs.0, lumi.1);
    replace(&store, &lumi.0, runs.1);
    for name in ["runs", "lumi"] {
        let error = read(name).unwrap_err();
        assert!(error.is_corrupt() && error.to_string().contains("it does not match the anchor"), "{error}");
    }
}

/// Regression: a page list of another attempt was read if its size was not that of one that the anchor names.
#[test]
fn page_lists_that_the_anchor_does_not_name_are_refused() {
    let store = stored("cluster");
    let mut anchor = JsonAnchor::read(&store.get("dir/events", 1 << 20).unwrap().0).unwrap();
    anchor.extension.as_mut().unwrap().page_lists[0].bytes -= 1;
    replace(&store, "dir/events", anchor.write().unwrap().into());
    let error = open_objects(&store).and_then(|file| file.ntuple(None)?.read_all().to_batch()).unwrap_err();
    assert!(error.is_corrupt() && error.to_string().contains("it does not match the anchor"), "{error}");
}

/// Objects of more than 32 MiB are compared a piece at a time.
#[test]
fn large_objects_are_verified() {
    let store = ObjectMemory::new();
    let file = create(&store, options("cluster")).unwrap();
    let schema = arrow_schema::Schema::new(vec![arrow_schema::Field::new("x", arrow_schema::DataType::Int64, false)]);
    let pages = WriteOptions::default().with_compression("none".parse().unwrap());
    let mut ntuple = file.ntuple("events", &Schema::from_arrow(&schema).unwrap(), pages).unwrap();
    let values = Arc::new(Int64Array::from_iter_values(0..5_000_000));
    ntuple.write(&RecordBatch::try_new(Arc::new(schema), vec![values]).unwrap()).unwrap();
    ntuple.finish().unwrap();
    file.finish().unwrap();
    let is_intact = || verify_deep(&open_objects(&store).unwrap(), &mut |_| {}).unwrap().is_intact();
    assert!(is_intact());
    let objects = store.list("dir/events.objects/").unwrap();
    let large = objects.iter().find(|object| object.bytes > 40_000_000 - 1).unwrap();
    let mut bytes = store.get(&large.key, 1 << 30).unwrap().0.to_vec();
    bytes[39_000_000] ^= 1;
    replace(&store, &large.key, bytes.into());
    assert!(!is_intact());
}
