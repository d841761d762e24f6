//! Mirrors: ntuples in several stores, and what happens when one does not answer.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::time::Duration;

use tempfile::TempDir;
use tupelo_format::store::{JsonAnchor, ObjectFolder};
use tupelo_storage::{Condition, MemoryFile, MemorySink, NewObject, Options, Storage};

use super::super::gc::Collector;
use super::super::inspect::summary;
use super::super::verify::verify_deep;
use super::{all, in_a_file, nested, nested_schema, open as in_memory, options, write};
use crate::reader::{METADATA_SET, Ntuple};
use crate::writer::{FileWriter, ObjectOptions, WriteOptions};
use crate::{Result, open};

/// The members of a mirror in one directory.
struct Stores {
    folder: TempDir,
    names: Vec<&'static str>,
}

impl Stores {
    fn new(names: &[&'static str]) -> Self {
        Self { folder: tempfile::tempdir().unwrap(), names: names.to_vec() }
    }

    fn uri(&self, name: &str) -> String {
        format!("ntpl+file://{}/{name}", self.folder.path().display())
    }

    fn mirror(&self) -> String {
        let members: Vec<String> = self.names.iter().map(|name| self.uri(name)).collect();
        format!("ntpl+mirror:{}", members.join(","))
    }

    fn create(&self, options: ObjectOptions) -> Result<FileWriter> {
        FileWriter::create_objects(&self.mirror(), &Storage::default(), options)
    }

    fn write(&self, options: ObjectOptions) -> Result<()> {
        let file = self.create(options)?;
        write(&file)?;
        file.finish()
    }

    fn open(&self, name: &str) -> Result<Ntuple> {
        open(&self.uri(name)).open()
    }

    /// Keys that begin with a prefix.
    fn keys(&self, prefix: &str) -> Vec<String> {
        let (namespace, _) = Storage::default().object_source(&self.uri("x")).unwrap();
        namespace.list(prefix).unwrap().into_iter().map(|entry| entry.key).collect()
    }

    /// Removes the objects whose keys begin with a prefix.
    fn lose(&self, prefix: &str) {
        let (namespace, _) = Storage::default().object_sink(&self.uri("x")).unwrap();
        namespace.delete(&self.keys(prefix)).unwrap();
    }

    /// Replaces an object.
    fn replace(&self, key: &str, bytes: Vec<u8>) {
        let (namespace, _) = Storage::default().object_sink(&self.uri("x")).unwrap();
        namespace.delete(&[key.to_owned()]).unwrap();
        namespace.put(&[NewObject { key: key.to_owned(), pieces: vec![bytes.into()] }]).unwrap();
    }

    /// The names of the attempts.
    fn attempts(&self, name: &str) -> HashSet<String> {
        let attempt = |key: String| key.split('/').nth(1).unwrap().to_owned();
        self.keys(&format!("{name}.objects/")).into_iter().map(attempt).collect()
    }

    fn orphans(&self, name: &str) -> usize {
        let collector = Collector::new(&self.uri(name), &Storage::default()).unwrap();
        collector.find(Duration::ZERO).unwrap().orphans.len()
    }
}

/// The attempt that an anchor names.
fn attempt_of(anchor: &[u8]) -> String {
    String::from_utf8_lossy(anchor).split('/').nth(1).unwrap().to_owned()
}

#[test]
fn all_members_have_the_same_pages() {
    let stores = Stores::new(&["a", "b", "c"]);
    for mapping in ["auto", "page"] {
        stores.write(options(mapping)).unwrap();
        let ntuple = open(&stores.mirror()).open().unwrap();
        for name in &stores.names {
            let file = open(&stores.uri(name)).open_file().unwrap();
            assert!(verify_deep(&file, &mut |_| {}).unwrap().is_intact());
            let member = file.ntuple(None).unwrap();
            assert_eq!(all(&member), in_a_file(), "{name}");
            assert_eq!(member.metadata().unwrap()["key"], "value");
            assert_eq!(member.identity().unwrap(), ntuple.identity().unwrap());
        }
        assert!(stores.attempts("a").is_disjoint(&stores.attempts("b")));
    }
    assert_eq!(stores.names.iter().map(|name| stores.orphans(name)).collect::<Vec<_>>(), [1, 1, 1], "replaced");
}

#[test]
fn reading_continues_in_the_next_member_that_answers() {
    let stores = Stores::new(&["a", "b", "c"]);
    stores.write(options("page-group")).unwrap();
    let ntuple = open(&stores.mirror()).with_metrics(true).open().unwrap();
    let half = |ntuple: &Ntuple| ntuple.read(["numbers"]).unwrap().entries(..1500).to_batch().unwrap();
    let expected = half(&ntuple);
    let set = ntuple.attribute_set(METADATA_SET).unwrap();
    stores.lose("a.objects/");
    assert_eq!(half(&ntuple), expected);
    assert_eq!(all(&set).num_rows(), 1);
    // Anchor, header and footer of the first member are known, its page list too.
    assert_eq!(all(&ntuple), in_a_file());
    assert!(ntuple.metrics().unwrap().requests > 0);
    stores.lose("b.objects/");
    assert_eq!(all(&ntuple), in_a_file());
    assert_eq!(ntuple.metadata().unwrap()["key"], "value");
    // Opened again: the first two have an anchor and nothing else.
    let again = open(&stores.mirror()).open().unwrap();
    assert_eq!(all(&again), in_a_file());
    assert_eq!(again.identity().unwrap(), ntuple.identity().unwrap());
    assert_eq!(again.skipped_stores().len(), 2);
    stores.lose("a");
    let skipped = open(&stores.mirror()).open().unwrap().skipped_stores();
    assert!(
        skipped.len() == 2 && skipped[0].contains("/a was skipped") && skipped[1].contains("missing"),
        "{skipped:?}"
    );
    stores.lose("b");
    assert_eq!(all(&open(&stores.mirror()).open().unwrap()), in_a_file());
    stores.lose("c.objects/");
    assert!(ntuple.read_all().to_batch().unwrap_err().to_string().contains("missing"));
    stores.lose("c");
    assert!(open(&stores.mirror()).open().unwrap_err().is_not_found());
}

#[test]
fn a_copy_of_pages_continues_in_the_next_member() {
    let stores = Stores::new(&["a", "b"]);
    stores.write(options("page-group")).unwrap();
    let ntuple = open(&stores.mirror()).open().unwrap();
    let file = MemoryFile::new();
    let writer = FileWriter::create_in(Box::new(MemorySink::create(&file)), "x.root").unwrap();
    let mut calls = 0;
    let copied = writer.copy_sealed(&ntuple, "events", &mut |_| {
        calls += 1;
        if calls == 2 {
            stores.lose("a.objects/");
        }
        ControlFlow::Continue(())
    });
    assert_eq!(copied.unwrap().unwrap().entries, 3000);
    writer.finish().unwrap();
    let copy = in_memory(&file);
    assert_eq!(all(&copy), in_a_file());
    assert_eq!(copy.metadata().unwrap()["key"], "value");
    assert!(calls > 3, "{calls}");
}

#[test]
fn a_copy_of_pages_passes_over_each_damaged_object() {
    let stores = Stores::new(&["a", "b"]);
    stores.write(options("page-group")).unwrap();
    let (namespace, _) = Storage::default().object_source(&stores.uri("a")).unwrap();
    let keys = stores.keys("a.objects/");
    assert!(keys.len() > 8, "{keys:?}");
    for key in keys {
        let good = namespace.get(&key, 1 << 20).unwrap().0;
        // The first byte of what is compressed is a part of the name of the codec.
        for (place, is_open) in [(good.len() / 2, true), (good.len() / 2, false), (0, true), (0, false)] {
            let known = is_open.then(|| open(&stores.mirror()).open().unwrap());
            let mut damaged = good.to_vec();
            damaged[place] ^= 1;
            stores.replace(&key, damaged);
            // Opened before or after the damage.
            let ntuple = known.unwrap_or_else(|| open(&stores.mirror()).open().unwrap());
            assert_eq!(ntuple.entries(), summary(&ntuple).unwrap().entries);
            let file = MemoryFile::new();
            let writer = FileWriter::create_in(Box::new(MemorySink::create(&file)), "x.root").unwrap();
            let copied = writer.copy_sealed(&ntuple, "events", &mut |_| ControlFlow::Continue(()));
            copied.unwrap_or_else(|error| panic!("{key}, byte {place}, opened before: {is_open}: {error}"));
            writer.finish().unwrap();
            let copy = in_memory(&file);
            assert_eq!(all(&copy), in_a_file(), "{key}");
            assert_eq!(copy.metadata().unwrap()["key"], "value");
            stores.replace(&key, good.to_vec());
        }
    }
}

#[test]
fn members_that_were_written_at_other_times_are_not_mixed() {
    let stores = Stores::new(&["a", "b"]);
    for name in &stores.names {
        let file = FileWriter::create_objects(&stores.uri(name), &Storage::default(), options("page")).unwrap();
        write(&file).unwrap();
        file.finish().unwrap();
    }
    let ntuple = open(&stores.mirror()).open().unwrap();
    stores.lose("a.objects/");
    let error = ntuple.read_all().to_batch().unwrap_err().to_string();
    assert!(error.contains("was not written together with this one"), "{error}");
    let error = open(&stores.mirror()).open().unwrap_err().to_string();
    assert!(error.contains("was not written together with this one"), "{error}");
    stores.lose("a");
    let ntuple = open(&stores.mirror()).open().unwrap();
    assert_eq!(all(&ntuple), in_a_file(), "nothing tells that there was another one");
    let skipped = ntuple.skipped_stores();
    assert!(skipped.len() == 1 && skipped[0].contains("/a was skipped: cannot"), "{skipped:?}");
}

#[test]
fn damage_is_read_in_the_next_member() {
    let stores = Stores::new(&["a", "b"]);
    for damaged in ["header", "page", "anchor"] {
        stores.write(options("page-group")).unwrap();
        let [ntuple, set] = [(); 2].map(|()| open(&stores.mirror()).open().unwrap());
        let set = set.attribute_set(METADATA_SET).unwrap();
        let (namespace, _) = Storage::default().object_sink(&stores.uri("a")).unwrap();
        let (anchor, _) = namespace.get("a", 1 << 20).unwrap();
        let attempt = attempt_of(&anchor);
        let key = match damaged {
            "anchor" => "a".to_owned(),
            "header" => format!("a.objects/{attempt}/0"),
            _ => format!("a.objects/{attempt}/1"),
        };
        let mut bytes = namespace.get(&key, 1 << 20).unwrap().0.to_vec();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        stores.replace(&key, bytes);
        assert_eq!(all(&ntuple), in_a_file(), "{damaged}");
        assert_eq!(ntuple.skipped_stores().is_empty(), damaged != "page", "{damaged}");
        assert_eq!(all(&set).num_rows(), 1);
        let again = open(&stores.mirror()).open().unwrap();
        assert_eq!(all(&again), in_a_file(), "{damaged}");
        assert_eq!(again.skipped_stores().len(), 1, "{damaged}");
        // Now it can be replaced.
        namespace.delete(&["a".to_owned()]).unwrap();
        namespace.publish("a", anchor, &Condition::Absent).unwrap();
    }
}

#[test]
fn the_writer_that_is_visible_in_the_first_member_wins_in_all() {
    let stores = Stores::new(&["a", "b"]);
    let files = [(); 3].map(|()| stores.create(ObjectOptions::default()).unwrap());
    let mut results = Vec::new();
    for (number, file) in files.into_iter().enumerate() {
        write(&file).unwrap();
        if number == 0 {
            // Another writer has replaced the second member only.
            let other = FileWriter::create_objects(&stores.uri("b"), &Storage::default(), options("page")).unwrap();
            write(&other).unwrap();
            other.finish().unwrap();
        }
        results.push(file.finish().is_ok());
    }
    assert_eq!(results, [true, false, false]);
    assert_eq!(stores.open("a").unwrap().identity().unwrap(), stores.open("b").unwrap().identity().unwrap());
    assert_eq!(stores.orphans("a"), 0);
    assert_eq!(stores.orphans("b"), 1, "that of the other writer");
}

#[test]
fn a_forged_copy_is_found() {
    let stores = Stores::new(&["a", "b"]);
    stores.write(options("page")).unwrap();
    let ntuple = open(&stores.mirror()).open().unwrap();
    stores.lose("a.objects/");
    // Another ntuple under the name of the attempt.
    stores.lose("b.objects/");
    let (namespace, _) = Storage::default().object_sink(&stores.uri("b")).unwrap();
    let anchor = namespace.get("b", 1 << 20).unwrap().0;
    let attempt = attempt_of(&anchor);
    let other = FileWriter::create_objects(&stores.uri("other"), &Storage::default(), options("page")).unwrap();
    let mut writer = other.ntuple("events", &nested_schema(), WriteOptions::default()).unwrap();
    writer.write(&nested(0..10, false)).unwrap();
    writer.finish().unwrap();
    other.finish().unwrap();
    let own = stores.attempts("other").into_iter().next().unwrap();
    for key in stores.keys("other.objects/") {
        let pieces = vec![namespace.get(&key, 1 << 20).unwrap().0];
        let key = key.replace("other.objects", "b.objects").replace(&own, &attempt);
        namespace.put(&[NewObject { key, pieces }]).unwrap();
    }
    let mut anchor = JsonAnchor::read(&namespace.get("other", 1 << 20).unwrap().0).unwrap();
    anchor.place = ObjectFolder::Attempt(attempt);
    let (old, _) = namespace.state("b", 1 << 20).unwrap();
    namespace.publish("b", anchor.write().unwrap().into(), &old).unwrap();
    assert_eq!(all(&stores.open("b").unwrap()).num_rows(), 10);
    let error = ntuple.read_all().to_batch().unwrap_err().to_string();
    assert!(error.contains("its fields, columns or clusters differ"), "{error}");
}

#[test]
fn a_member_that_cannot_be_written_is_an_error() {
    let stores = Stores::new(&["a", "b"]);
    let error = FileWriter::create_objects(
        &format!("ntpl+mirror:{},ntpl+file:///no/such/folder/x", stores.uri("a")),
        &Storage::default(),
        ObjectOptions::default(),
    );
    assert!(error.unwrap_err().is_not_found());
    assert!(stores.keys("a").is_empty(), "nothing is left in the first");
    let exclusive = ObjectOptions::default().with_exclusive(true);
    let file = stores.create(exclusive).unwrap();
    write(&file).unwrap();
    // Another writer creates it in the second member meanwhile.
    let other = FileWriter::create_objects(&stores.uri("b"), &Storage::default(), options("page")).unwrap();
    write(&other).unwrap();
    other.finish().unwrap();
    let identity = stores.open("b").unwrap().identity().unwrap();
    let error = file.finish().unwrap_err().to_string();
    assert!(error.contains("the ntuple is complete in the first store of the mirror"), "{error}");
    assert_eq!(all(&stores.open("a").unwrap()), in_a_file());
    assert_eq!(stores.open("b").unwrap().identity().unwrap(), identity);
    assert_eq!(stores.orphans("b"), 0);
    assert!(stores.create(exclusive).is_err());
    stores.write(ObjectOptions::default()).unwrap();
    assert_eq!(stores.open("a").unwrap().identity().unwrap(), stores.open("b").unwrap().identity().unwrap());
}

#[test]
fn writers_that_stop_leave_nothing_in_any_member() {
    let stores = Stores::new(&["a", "b"]);
    let file = stores.create(ObjectOptions::default()).unwrap();
    write(&file).unwrap();
    file.abort().unwrap();
    let file = stores.create(ObjectOptions::default()).unwrap();
    assert!(file.ntuple("dir/events", &nested_schema(), Default::default()).is_err());
    drop(file);
    for name in &stores.names {
        assert!(stores.keys(name).is_empty(), "{name}");
    }
}

#[test]
fn the_same_place_twice_loses_nothing() {
    let stores = Stores::new(&["a", "./a"]);
    let exclusive = ObjectOptions::default().with_exclusive(true);
    let error = stores.write(exclusive).unwrap_err().to_string();
    assert!(error.contains("complete in the first store"), "{error}");
    assert_eq!(all(&stores.open("a").unwrap()), in_a_file());
    assert_eq!(stores.orphans("a"), 0);
    // The second one replaces the first.
    stores.write(ObjectOptions::default()).unwrap();
    assert_eq!(all(&stores.open("a").unwrap()), in_a_file());
}

#[test]
fn a_member_that_cannot_be_reached_is_passed_over() {
    let stores = Stores::new(&["a"]);
    let file = FileWriter::create_objects(&stores.uri("a"), &Storage::default(), options("page")).unwrap();
    write(&file).unwrap();
    file.finish().unwrap();
    // Nothing listens there.
    let options = Options::new([("max_attempts", "1")]).unwrap();
    let uri = format!("ntpl+mirror:ntpl+http://127.0.0.1:1/a,{}", stores.uri("a"));
    let ntuple = open(&uri).with_storage(Storage::new(options)).open().unwrap();
    assert_eq!(all(&ntuple), in_a_file());
    assert!(ntuple.file_name().starts_with("ntpl+mirror:"));
}
