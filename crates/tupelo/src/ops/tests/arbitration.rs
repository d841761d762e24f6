//! Writers and collections at the same time: one of both yields.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use arrow_array::RecordBatch;
use bytes::Bytes;
use tupelo_storage::objects::{ObjectMemory, ObjectRange, ObjectVersion};
use tupelo_storage::{
    Condition, Hints, Keys, NewObject, ObjectEntry, ObjectSink, ObjectSource, Result as StorageResult, Storage,
};

use super::super::gc::{Collector, Leftovers};
use super::super::verify::verify_deep;
use super::removal::make_seals_old;
use super::{all, clusters_in_a_file, keys, options, write_clusters};
use crate::reader::File;
use crate::writer::FileWriter;
use crate::{Error, Result};

/// Entries of a cluster: each column has several pages, but few, because each call of a writer or a collection is tried.
const ENTRIES: i32 = 300;

static EXPECTED: LazyLock<RecordBatch> = LazyLock::new(|| clusters_in_a_file(ENTRIES));

/// What another process does meanwhile.
type Action = Box<dyn FnOnce() + Send>;

/// Memory in which another process acts before one of the calls.
struct Interrupted {
    memory: ObjectMemory,
    calls: AtomicU64,
    at: At,
    action: Mutex<Option<Action>>,
}

/// A call of a process.
#[derive(Debug, PartialEq)]
enum At {
    Number(u64),
    /// The one that seals the record of an attempt, when all of its objects are there.
    Seal,
}

impl Interrupted {
    fn new(memory: &ObjectMemory, at: At, action: Action) -> Arc<Self> {
        let action = Mutex::new(Some(action));
        Arc::new(Self { memory: memory.clone(), calls: AtomicU64::new(0), at, action })
    }

    fn call(&self) -> &ObjectMemory {
        self.act_at(&At::Number(self.calls.fetch_add(1, Ordering::SeqCst)));
        &self.memory
    }

    fn act_at(&self, at: &At) {
        if *at == self.at {
            let action = self.action.lock().unwrap_or_else(PoisonError::into_inner).take();
            action.expect("there is one such call")();
        }
    }

    fn was_called(&self) -> bool {
        self.action.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }
}

impl fmt::Debug for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Interrupted({:?})", self.at)
    }
}

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.memory.fmt(f)
    }
}

impl ObjectSource for Interrupted {
    fn keys(&self) -> Keys {
        self.memory.keys()
    }

    fn hints(&self) -> Hints {
        self.memory.hints()
    }

    fn get(&self, key: &str, max_bytes: u64) -> StorageResult<(Bytes, ObjectVersion)> {
        self.call().get(key, max_bytes)
    }

    fn get_ranges(&self, ranges: &[ObjectRange]) -> StorageResult<Vec<Bytes>> {
        self.call().get_ranges(ranges)
    }

    fn list(&self, prefix: &str) -> StorageResult<Vec<ObjectEntry>> {
        self.call().list(prefix)
    }
}

impl ObjectSink for Interrupted {
    fn put(&self, objects: &[NewObject]) -> StorageResult<()> {
        objects.iter().try_for_each(|object| self.call().put(std::slice::from_ref(object)))
    }

    fn flush(&self) -> StorageResult<()> {
        self.call().flush()
    }

    fn publish(&self, key: &str, bytes: Bytes, condition: &Condition) -> StorageResult<()> {
        if bytes.windows(6).any(|text| text == b"sealed") {
            self.act_at(&At::Seal);
        }
        self.call().publish(key, bytes, condition)
    }

    fn publish_with(&self, others: &[NewObject], key: &str, bytes: Bytes, condition: &Condition) -> StorageResult<()> {
        self.call().publish_with(others, key, bytes, condition)
    }

    fn honours_conditions(&self, probe: &str) -> StorageResult<bool> {
        self.call().honours_conditions(probe)
    }

    fn delete(&self, keys: &[String]) -> StorageResult<()> {
        keys.iter().try_for_each(|key| self.call().delete(std::slice::from_ref(key)))
    }
}

/// A kind of store: its keys, and the name of an ntuple in it.
struct Kind {
    keys: Keys,
    base: &'static str,
}

fn kinds() -> [Kind; 2] {
    let (class, metadata_class) = ("S2".to_owned(), "SX".to_owned());
    let keys = Keys::Daos { class, metadata_class, separate_pages: false };
    [Kind { keys: Keys::Paths, base: "dir/events" }, Kind { keys, base: "events" }]
}

impl Kind {
    fn name(&self) -> String {
        format!("test:{}", self.base)
    }

    /// A store, with an ntuple if it is replaced.
    fn store(&self, is_replaced: bool) -> ObjectMemory {
        let store = ObjectMemory::new().with_keys(self.keys.clone());
        if is_replaced {
            self.write_to(Arc::new(store.clone())).and_then(|file| file.finish()).unwrap();
        }
        store
    }

    /// Everything but the end of a writer.
    fn write_to(&self, store: Arc<dyn ObjectSink>) -> Result<FileWriter> {
        let file = FileWriter::create_objects_in(store, self.base, &self.name(), options("page-group"))?;
        write_clusters(&file, ENTRIES)?;
        Ok(file)
    }

    fn collector(&self, store: Arc<dyn ObjectSink>) -> Collector {
        Collector::over(store, self.base, &self.name())
    }

    /// What a collection finds and removes, however young; the number of attempts that it removes.
    fn collect(&self, store: Arc<dyn ObjectSink>) -> Result<(Leftovers, u64)> {
        let collector = self.collector(store);
        let found = collector.find(Duration::ZERO)?;
        let mut removed = 0;
        for orphan in &found.orphans {
            removed += u64::from(collector.remove(orphan)?);
        }
        Ok((found, removed))
    }

    /// Checks what is visible after a writer has ended so: an ntuple that can be read, or none where there was none.
    fn check(&self, store: &ObjectMemory, is_replaced: bool, ended: &Result<()>, at: u64) {
        if let Err(error) = ended {
            assert!(error.to_string().contains("write it again"), "call {at}: {error}");
        }
        match File::of_objects(Arc::new(store.clone()), self.base, &self.name()) {
            Ok(file) => {
                assert!(verify_deep(&file, &mut |_| {}).unwrap().is_intact(), "call {at}");
                assert_eq!(all(&file.ntuple(None).unwrap()), *EXPECTED, "call {at}");
            }
            Err(error) => {
                assert!(error.is_not_found(), "call {at}: {error}");
                assert!(ended.is_err() && !is_replaced, "call {at}: nothing is visible");
            }
        }
    }
}

/// Tries all kinds of stores at the same time, each with an ntuple that is replaced and without.
fn try_all(each: fn(&Kind, bool)) {
    let kinds = kinds();
    thread::scope(|scope| {
        for kind in &kinds {
            for is_replaced in [false, true] {
                scope.spawn(move || each(kind, is_replaced));
            }
        }
    });
}

/// Regression: objects were removed between the last look of the writer and its anchor.
#[test]
fn a_collection_between_any_two_calls_of_a_writer_leaves_a_readable_ntuple() {
    try_all(|kind, is_replaced| {
        let (mut ended_well, mut at) = (0, 0);
        loop {
            let store = kind.store(is_replaced);
            let own = Kind { keys: kind.keys.clone(), base: kind.base };
            let inner = store.clone();
            let action = Box::new(move || drop(own.collect(Arc::new(inner)).unwrap()));
            let interrupted = Interrupted::new(&store, At::Number(at), action);
            let ended = kind.write_to(Arc::clone(&interrupted) as _).and_then(|file| file.finish());
            if !interrupted.was_called() {
                break;
            }
            kind.check(&store, is_replaced, &ended, at);
            ended_well += u64::from(ended.is_ok());
            at += 1;
        }
        assert!(at > 20 && ended_well > 0 && ended_well < at, "{ended_well} of {at}");
    });
}

#[test]
fn a_writer_that_ends_between_any_two_calls_of_a_collection_leaves_a_readable_ntuple() {
    try_all(|kind, is_replaced| {
        let (mut kept, mut at) = (0, 0);
        loop {
            let store = kind.store(is_replaced);
            let (tell, is_complete) = mpsc::channel();
            let (go, may_go) = mpsc::channel();
            let wait = Box::new(move || {
                tell.send(()).unwrap();
                // The sender is gone after the last call of the collection.
                let _ = may_go.recv();
            });
            let own = Kind { keys: kind.keys.clone(), base: kind.base };
            let waiting = Interrupted::new(&store, At::Seal, wait);
            let writer = thread::spawn(move || own.write_to(waiting).and_then(|file| file.finish()));
            is_complete.recv().unwrap();
            let ended: Arc<Mutex<Option<Result<()>>>> = Arc::default();
            let end = Arc::clone(&ended);
            let action = Box::new(move || {
                go.send(()).unwrap();
                *end.lock().unwrap() = Some(writer.join().unwrap());
            });
            let interrupted = Interrupted::new(&store, At::Number(at), action);
            kind.collect(Arc::clone(&interrupted) as _).unwrap();
            if !interrupted.was_called() {
                break;
            }
            let ended = ended.lock().unwrap().take().unwrap();
            kind.check(&store, is_replaced, &ended, at);
            kept += u64::from(ended.is_ok());
            at += 1;
        }
        assert!(at > 5 && kept > 0 && kept < at, "{kept} of {at}");
    });
}

#[test]
fn an_attempt_that_may_become_visible_is_kept_for_a_while() {
    for kind in kinds() {
        let puts = {
            let store = kind.store(false);
            kind.write_to(Arc::new(store.clone())).and_then(|file| file.finish()).unwrap();
            store.counts().puts
        };
        let store = kind.store(false);
        // The anchor is the last object.
        store.fail_put(puts - 1);
        let file = kind.write_to(Arc::new(store.clone())).unwrap();
        let error: Error = file.finish().unwrap_err();
        assert!(error.to_string().contains("objects may remain"), "{error}");
        let (found, _) = kind.collect(Arc::new(store.clone())).unwrap();
        assert_eq!((found.publishing, found.young, found.orphans.len()), (1, 0, 0));
        make_seals_old(&store);
        let (found, removed) = kind.collect(Arc::new(store.clone())).unwrap();
        assert_eq!((found.publishing, found.orphans.len(), removed), (0, 1, 1));
        if kind.keys == Keys::Paths {
            assert_eq!(keys(&store), Vec::<String>::new());
        }
    }
}

#[test]
fn a_record_that_cannot_be_read_keeps_its_objects() {
    let kind = &kinds()[0];
    for text in ["", "nonsense", "20260101T000000-0123456789ab", "20260102T000000-0123456789ab sealed 20260101T000000"]
    {
        let store = kind.store(true);
        for (name, text) in [("0", "header"), ("record", text)] {
            let key = format!("dir/events.objects/20260101T000000-0123456789ab/{name}");
            store.put(&[NewObject { key, pieces: vec![text.into()] }]).unwrap();
        }
        let before = keys(&store);
        let (found, removed) = kind.collect(Arc::new(store.clone())).unwrap();
        let expected = "the record of attempt 20260101T000000-0123456789ab cannot be read; its objects are kept";
        assert_eq!((found.unreadable, removed), (vec![expected.to_owned()], 0));
        assert_eq!(keys(&store), before);
    }
}

/// Where the first object of an attempt is not there yet, its record tells the writer of the collection.
#[test]
fn the_record_of_a_collection_stays_where_a_writer_could_miss_it() {
    let kind = &kinds()[0];
    let store = kind.store(false);
    let folder = "dir/events.objects/20260101T000000-0123456789ab";
    store.put(&[NewObject { key: format!("{folder}/1"), pieces: vec!["page".into()] }]).unwrap();
    assert_eq!(kind.collect(Arc::new(store.clone())).unwrap().1, 1);
    assert_eq!(keys(&store), [format!("{folder}/record")]);
    let (found, _) = kind.collect(Arc::new(store.clone())).unwrap();
    assert_eq!((found.orphans.len(), found.unreadable.len()), (0, 0), "it stays for a day");
    super::replace(&store, &format!("{folder}/record"), "20260101T000000-0123456789ab removed 20260101T000000".into());
    assert_eq!(kind.collect(Arc::new(store.clone())).unwrap().1, 1);
    assert_eq!(keys(&store), Vec::<String>::new());
}

#[test]
fn a_directory_survives_collections_beside_its_writers() {
    let folder = tempfile::tempdir().unwrap();
    let (uri, storage) = (format!("ntpl+file://{}/events", folder.path().display()), Storage::default());
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let collector = Collector::new(&uri, &storage).unwrap();
            while !is_over.load(Ordering::SeqCst) {
                let found = collector.find(Duration::ZERO).unwrap();
                for orphan in &found.orphans {
                    collector.remove(orphan).unwrap();
                }
            }
        });
        let _end = End(&is_over);
        let mut is_visible = false;
        for round in 0..40 {
            let written = FileWriter::create_objects(&uri, &storage, options("cluster"))
                .and_then(|file| write_clusters(&file, ENTRIES).and_then(|()| file.finish()));
            match written {
                Ok(()) => is_visible = true,
                Err(error) => assert!(error.to_string().contains("write it again"), "round {round}: {error}"),
            }
            if is_visible {
                assert_eq!(all(&crate::open(&uri).open().unwrap()), *EXPECTED, "round {round}");
            }
        }
    });
}

/// Ends another thread, also where this one panics.
struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}
