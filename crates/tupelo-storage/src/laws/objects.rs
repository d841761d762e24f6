//! The contract of namespaces.

use std::ops::Range;
use std::sync::Arc;
use std::thread;

use bytes::Bytes;

use super::{Numbers, must, refused, some_ranges};
use crate::error::ErrorKind;
use crate::objects::{Condition, NewObject, ObjectRange, ObjectSink, ObjectSource};

/// Keys that lead out of a namespace, or that not all stores take.
const HOSTILE_KEYS: [&str; 8] = ["", "/a", "a/", "a//b", "../a", "a/../b", "./a", "a\0b"];
/// Prefixes of some keys, and of none.
const PREFIXES: [&str; 10] = ["a/", "a/1", "a/1/", "a/1/4", "a/b", "e", "empty", "emptyx", "nothing/", "a/9/x"];
/// Threads that do the same at the same time.
const THREADS: usize = 6;
/// More than any object of these laws has.
const MAX_BYTES: u64 = 1 << 30;

/// How the laws name objects.
#[derive(Debug, Clone, Copy)]
pub struct LawKeys {
    /// The key of an object, by a path that the laws choose.
    pub of: fn(&str) -> String,
    /// What all keys begin with, which can be listed.
    pub folder: &'static str,
    /// Whether keys are the paths, so that their parts are folders.
    pub are_paths: bool,
    /// Whether objects may be empty.
    pub allow_empty: bool,
}

impl LawKeys {
    /// Paths as keys.
    pub const PATHS: Self = Self { of: str::to_owned, folder: "", are_paths: true, allow_empty: true };
}

/// The laws of a namespace that is read, with some objects whose bytes are known. It has no object `missing`.
///
/// # Panics
/// If `source` violates the contract.
pub fn object_source_laws(source: &dyn ObjectSource, objects: &[(String, Vec<u8>)]) {
    object_source_laws_with(source, objects, &LawKeys::PATHS);
}

/// As [`object_source_laws`], with other keys.
///
/// # Panics
/// If `source` violates the contract.
pub fn object_source_laws_with(source: &dyn ObjectSource, objects: &[(String, Vec<u8>)], keys: &LawKeys) {
    let uri = source.to_string();
    assert!(!uri.is_empty(), "a namespace has a URI");
    let hints = source.hints();
    assert!(hints.max_request_bytes > 0 && hints.concurrency > 0, "hints are positive: {hints:?}");
    assert_eq!(must(source.get_ranges(&[]), "read nothing").len(), 0, "no ranges give no results");

    for (key, content) in objects {
        let size = content.len() as u64;
        let (bytes, version) = must(source.get(key, MAX_BYTES), format_args!("get {key}"));
        assert!(bytes == content, "get returns the whole object");
        let (bytes, again) = must(source.get(key, size), format_args!("get {key} of its exact size"));
        assert!(bytes == content && version == again, "an object that does not change has one version");
        if let Some(less) = size.checked_sub(1) {
            refused(source.get(key, less), ErrorKind::NotSupported, "get of a larger object");
        }
    }
    reads_ranges(source, objects);

    let missing: Arc<str> = (keys.of)("missing").into();
    let error = source.get(&missing, MAX_BYTES).map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound, "get a missing object: {error}");
    assert_eq!(error.uri(), format!("{uri}{missing}"), "an error names the object");
    let range = |range| ObjectRange { key: Arc::clone(&missing), range };
    refused(source.get_ranges(&[range(0..1)]), ErrorKind::NotFound, "read a missing object");
    refused(source.get_into(&missing, 0, &mut [&mut [0; 3]]), ErrorKind::NotFound, "read a missing object");
    assert!(must(source.get_ranges(&[range(5..5)]), "read an empty range").concat().is_empty(), "it needs no request");
    for key in HOSTILE_KEYS {
        refused(source.get(key, 10), ErrorKind::NotSupported, format_args!("get {key:?}"));
        let range = ObjectRange { key: key.into(), range: 0..1 };
        refused(source.get_ranges(&[range]), ErrorKind::NotSupported, format_args!("read {key:?}"));
        refused(
            source.get_into(&key.into(), 0, &mut [&mut [0]]),
            ErrorKind::NotSupported,
            format_args!("read {key:?}"),
        );
    }
}

fn reads_ranges(source: &dyn ObjectSource, objects: &[(String, Vec<u8>)]) {
    let slice = |content: &[u8], range: &Range<u64>| content[range.start as usize..range.end as usize].to_vec();
    let (mut ranges, mut expected) = (Vec::new(), Vec::new());
    for (key, content) in objects {
        for range in some_ranges(content.len() as u64).into_iter().step_by(1 + objects.len() / 3) {
            expected.push(slice(content, &range));
            ranges.push(ObjectRange { key: key.as_str().into(), range });
        }
    }
    // Those of all objects in turn.
    let mut order: Vec<usize> = (0..ranges.len()).collect();
    order.sort_by_key(|at| (at.wrapping_mul(0x9e37_79b9) >> 3) % 1009);
    let ranges: Vec<ObjectRange> = order.iter().map(|at| ranges[*at].clone()).collect();
    let expected: Vec<&[u8]> = order.iter().map(|at| &*expected[*at]).collect();
    let check = || {
        let answers = must(source.get_ranges(&ranges), "read ranges of many objects");
        assert_eq!(answers.len(), ranges.len(), "one result for each range");
        let equal = answers.iter().zip(&expected).all(|(answer, expected)| answer == expected);
        assert!(equal, "get_ranges returns them in the given order");
    };
    check();
    thread::scope(|scope| (0..THREADS).for_each(|_| drop(scope.spawn(check))));

    for (ObjectRange { key, range }, expected) in ranges.iter().zip(&expected).take(20) {
        let mut room = vec![0; expected.len()];
        let (front, back) = room.split_at_mut(expected.len() / 3);
        must(source.get_into(key, range.start, &mut [front, &mut [], back]), "read into pieces");
        assert_eq!(&room, expected, "get_into fills its pieces with {range:?}");
    }
    let Some((key, content)) = objects.first() else { return };
    let (key, size): (Arc<str>, u64) = (key.as_str().into(), content.len() as u64);
    #[expect(clippy::reversed_empty_ranges, reason = "a reversed range is refused")]
    for bad in [size..size + 1, 0..size + 1, size + 10..size + 20, u64::MAX - 1..u64::MAX, 2..1] {
        let mut ranges = ranges.clone();
        ranges.push(ObjectRange { key: Arc::clone(&key), range: bad.clone() });
        let error = source.get_ranges(&ranges).map(drop).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OutOfRange, "read {bad:?} among others: {error}");
        assert_eq!(error.uri(), format!("{source}{key}"), "an error names the object");
        if let Some(bytes @ 1..100) = bad.end.checked_sub(bad.start) {
            let read = source.get_into(&key, bad.start, &mut [&mut vec![0; bytes as usize]]);
            refused(read, ErrorKind::OutOfRange, format_args!("read {bad:?} into a piece"));
        }
    }
}

/// The laws of a namespace that is written. `make` gives another one without objects each time; `refuses` says whether
/// it refuses to write an object that exists.
///
/// # Panics
/// If a namespace violates the contract.
pub fn object_laws<S: ObjectSink>(make: impl Fn() -> S, refuses: bool) {
    object_laws_with(make, refuses, &LawKeys::PATHS);
}

/// As [`object_laws`], with other keys.
///
/// # Panics
/// If a namespace violates the contract.
pub fn object_laws_with<S: ObjectSink>(make: impl Fn() -> S, refuses: bool, keys: &LawKeys) {
    writes_and_lists(&make(), refuses, keys);
    conditions(&make(), keys);
    publishes_once(&make(), keys);
    writes_from_threads(&make(), keys);
}

fn new(key: &str, pieces: &[&[u8]]) -> NewObject {
    NewObject { key: key.to_owned(), pieces: pieces.iter().map(|piece| Bytes::copy_from_slice(piece)).collect() }
}

/// Names of the objects that begin with a prefix.
fn names(sink: &impl ObjectSink, prefix: &str) -> Vec<String> {
    must(sink.list(prefix), format_args!("list {prefix}")).into_iter().map(|entry| entry.key).collect()
}

fn writes_and_lists(sink: &impl ObjectSink, refuses: bool, keys: &LawKeys) {
    assert!(names(sink, keys.folder).is_empty(), "an empty namespace has no objects");
    let mut numbers = Numbers(7);
    let mut objects: Vec<(String, Vec<u8>)> = vec![((keys.of)("b c+d%20é/0"), vec![1; 100_000])];
    let least = if keys.allow_empty { 0 } else { 1 };
    if keys.allow_empty {
        objects.push(((keys.of)("empty"), vec![]));
    }
    for at in 0..60 {
        let content: Vec<u8> = (0..numbers.below(5000).max(least)).map(|i| (i * 31 % 251 + at) as u8).collect();
        objects.push(((keys.of)(&format!("a/{}/{at}", at % 3)), content));
    }
    let put = |(key, content): &(String, Vec<u8>)| {
        let (front, back) = content.split_at(content.len() / 3);
        new(key, &[front, &[], back])
    };
    must(sink.put(&objects.iter().map(put).collect::<Vec<_>>()), "put");
    must(sink.put(&[]), "put nothing");
    must(sink.flush(), "flush");
    must(sink.flush(), "flush nothing");
    object_source_laws_with(sink, &objects, keys);

    objects.sort();
    let listed = must(sink.list(keys.folder), "list");
    let listed: Vec<(&str, u64)> = listed.iter().map(|entry| (entry.key.as_str(), entry.bytes)).collect();
    let expected: Vec<(&str, u64)> =
        objects.iter().map(|(key, content)| (key.as_str(), content.len() as u64)).collect();
    assert_eq!(listed, expected, "a listing has all objects in order");
    let prefixes: &[&str] = if keys.are_paths { &PREFIXES } else { &[] };
    for prefix in prefixes {
        let expected: Vec<&str> = objects.iter().map(|(key, _)| &**key).filter(|key| key.starts_with(prefix)).collect();
        assert_eq!(names(sink, prefix), expected, "a prefix is one of the text: {prefix}");
    }
    refused(sink.list("../"), ErrorKind::NotSupported, "list beside the namespace");
    for key in HOSTILE_KEYS {
        refused(sink.put(&[new(key, &[b"x"])]), ErrorKind::NotSupported, format_args!("put {key:?}"));
        let published = sink.publish(key, Bytes::new(), &Condition::Absent);
        refused(published, ErrorKind::NotSupported, format_args!("publish {key:?}"));
        refused(sink.delete(&[key.to_owned()]), ErrorKind::NotSupported, format_args!("delete {key:?}"));
    }
    if refuses {
        refused(sink.put(&[new(&(keys.of)("a/0/0"), &[b"other"])]), ErrorKind::Changed, "put of an object that exists");
    }
    object_source_laws_with(sink, &objects, keys);

    let all: Vec<String> = objects.iter().map(|(key, _)| key.clone()).chain([(keys.of)("no/such")]).collect();
    must(sink.delete(&all[..10]), "delete some");
    assert_eq!(names(sink, keys.folder), all[10..all.len() - 1], "the others are left");
    must(sink.delete(&all), "delete all, some again");
    assert!(names(sink, keys.folder).is_empty(), "all are deleted");
    refused(sink.get(&all[3], MAX_BYTES), ErrorKind::NotFound, "get a deleted object");
    must(sink.put(&[new(&all[3], &[b"new"])]), "put again under the name of a deleted object");
}

fn conditions(sink: &impl ObjectSink, keys: &LawKeys) {
    let anchor = (keys.of)("x/anchor");
    let publish = |content: &'static str, condition: &Condition| sink.publish(&anchor, content.into(), condition);
    let content = || must(sink.get(&anchor, MAX_BYTES), "get what is published");
    let state = || must(sink.state(&anchor, MAX_BYTES), "state");
    assert!(must(sink.honours_conditions(&(keys.of)("x/probe")), "probe"), "conditions are honoured");
    assert!(names(sink, keys.folder).is_empty(), "the probe is removed");
    assert_eq!(state(), (Condition::Absent, None), "there is no object yet");

    must(publish("one", &Condition::Absent), "publish");
    refused(publish("other", &Condition::Absent), ErrorKind::Changed, "publish twice");
    let (bytes, first) = content();
    assert_eq!(bytes, "one", "what was refused is not written");
    let range = ObjectRange { key: anchor.as_str().into(), range: 0..3 };
    assert_eq!(must(sink.get_ranges(std::slice::from_ref(&range)), "read"), ["one"]);

    must(publish("number two", &Condition::Version(first.clone())), "replace");
    let (bytes, second) = content();
    assert_eq!(bytes, "number two", "the new object is read");
    assert_ne!(first, second, "another content is another version");
    let long = ObjectRange { range: 0..10, ..range };
    assert_eq!(must(sink.get_ranges(&[long]), "read"), ["number two"], "the new object is read, also in ranges");
    refused(publish("three", &Condition::Version(first.clone())), ErrorKind::Changed, "replace an old version");
    assert_eq!(content(), ("number two".into(), second.clone()), "what was refused is not written");
    must(publish("three", &Condition::Version(second)), "replace again");
    // The contents are those of before in turn.
    for content in ["number two", "three", "number two", "three"] {
        let (condition, _) = state();
        must(publish(content, &condition), "publish the first content again");
        assert_eq!(state().1, Some(content.into()), "state has the object");
        if content == "number two" {
            refused(publish("lost", &condition), ErrorKind::Changed, "replace an old version");
        }
    }

    must(sink.delete(std::slice::from_ref(&anchor)), "delete");
    refused(publish("four", &Condition::Version(first)), ErrorKind::Changed, "replace a deleted object");
    assert!(names(sink, keys.folder).is_empty(), "what was refused is not written");
    if keys.allow_empty {
        must(publish("", &Condition::Absent), "publish an empty object");
        let (bytes, empty) = content();
        assert!(bytes.is_empty(), "an empty object can be published");
        must(publish("five", &Condition::Version(empty)), "replace an empty object");
    } else {
        refused(publish("", &Condition::Absent), ErrorKind::NotSupported, "publish an empty object");
        must(publish("five", &Condition::Absent), "publish again");
    }
    assert_eq!(names(sink, keys.folder), [anchor.as_str()], "nothing else is left");
}

/// Of several writers only one meets the condition.
fn publishes_once(sink: &impl ObjectSink, keys: &LawKeys) {
    let anchor = (keys.of)("anchor");
    let mut condition = Condition::Absent;
    for round in 0..3 {
        let publish = |at: usize| {
            let content = format!("round {round} writer {at}");
            match sink.publish(&anchor, content.clone().into(), &condition) {
                Ok(()) => Some(content),
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Changed, "publish while others do: {error}");
                    None
                }
            }
        };
        let written: Vec<String> = thread::scope(|scope| {
            let writers: Vec<_> = (0..THREADS).map(|at| scope.spawn(move || publish(at))).collect();
            writers.into_iter().filter_map(|writer| writer.join().expect("a writer does not panic")).collect()
        });
        let (bytes, version) = must(sink.get(&anchor, MAX_BYTES), "get what is published");
        assert_eq!(written, [String::from_utf8_lossy(&bytes)], "one writer has published, and it was not overwritten");
        condition = Condition::Version(version);
    }
}

fn writes_from_threads(sink: &impl ObjectSink, keys: &LawKeys) {
    thread::scope(|scope| {
        for at in 0..THREADS {
            scope.spawn(move || {
                for round in 0..5 {
                    let (key, content) = ((keys.of)(&format!("a/{round}/{at}")), format!("{round} {at}"));
                    must(sink.put(&[new(&key, &[content.as_bytes()])]), "put from threads");
                    must(sink.flush(), "flush from threads");
                    assert_eq!(must(sink.get(&key, MAX_BYTES), "get").0, content, "what was written can be read");
                }
            });
        }
    });
    assert_eq!(names(sink, keys.folder).len(), THREADS * 5, "nothing is lost");
}
