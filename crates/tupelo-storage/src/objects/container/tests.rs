//! A container keeps the laws of namespaces, and what DAOS adds to them.

use bytes::Bytes;
use twox_hash::XxHash3_64;

use crate::daos::testing::{Knobs, Server};
use crate::error::ErrorKind;
use crate::laws::{LawKeys, object_laws_with};
use crate::objects::{Condition, Keys, NewObject, ObjectRange, ObjectSink, ObjectSource, sink, source};

/// Keys of one object, in some dkeys.
const KEYS: LawKeys = LawKeys {
    of: |path| {
        let number = XxHash3_64::oneshot(path.as_bytes());
        format!("SX/7/1f/{:x}/{number:x}", number % 5)
    },
    folder: "SX/7/1f/",
    are_paths: false,
    allow_empty: false,
};

fn object(key: &str, content: &'static str) -> NewObject {
    let (front, back) = content.split_at(content.len() / 3);
    NewObject { key: key.to_owned(), pieces: vec![front.into(), Bytes::new(), back.into()] }
}

#[test]
fn a_container_keeps_the_laws() {
    let server = Server::shared();
    for requests in ["batch", "queue", "blocking"] {
        let options = server.options(&[("daos_requests", requests)]);
        object_laws_with(|| sink(&server.uri("x"), &options).unwrap().0, true, &KEYS);
    }
}

#[test]
fn values_are_listed_by_object_and_dkey() {
    let server = Server::shared();
    let (objects, name) = sink(&server.uri("Events"), &server.options(&[])).unwrap();
    assert_eq!(name, "Events");
    let keys = ["SX/1/2/10/a", "SX/1/2/10/b", "SX/1/2/10/8000000000000000", "SX/1/2/3/a", "SX/1/3/10/a", "S1/1/4/10/a"];
    objects.put(&keys.map(|key| object(key, "content"))).unwrap();
    let listed = |prefix: &str| -> Vec<String> {
        let entries = objects.list(prefix).unwrap();
        assert!(entries.iter().all(|entry| entry.bytes == 7 && entry.modified.is_none()));
        entries.into_iter().map(|entry| entry.key).collect()
    };
    let (ten, three) = (["SX/1/2/10/8000000000000000", keys[0], keys[1]], keys[3]);
    assert_eq!(listed("SX/1/2/"), [ten[0], ten[1], ten[2], three]);
    assert_eq!(listed("SX/1/2/10/"), ten);
    assert_eq!(listed("SX/1/2/10"), ten);
    assert_eq!(listed("SX/1/2/1"), ten);
    assert_eq!(listed("SX/1/2/10/a"), [keys[0]]);
    assert_eq!(listed("SX/1/3/"), [keys[4]]);
    assert!(listed("SX/9/9/").is_empty());
    for prefix in ["", "SX", "SX/1", "SX/1/2", "SX/01/2/", "SX/1/2/10/a/", "SX/1/2//", "sx/1/2/"] {
        let error = objects.list(prefix).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotSupported, "{prefix}: {error}");
        assert!(error.to_string().ends_with("the prefix must begin with CLASS/HI/LO/"), "{error}");
    }
}

/// More keys than one call lists.
#[test]
fn many_values_are_listed() {
    let server = Server::shared();
    let (objects, _) = sink(&server.uri("x"), &server.options(&[])).unwrap();
    let mut keys: Vec<String> =
        (0..1200).map(|at| format!("SX/1/2/{:x}/{at:x}", if at < 600 { 1 } else { at })).collect();
    objects.put(&keys.iter().map(|key| object(key, "content")).collect::<Vec<_>>()).unwrap();
    keys.sort();
    let listed: Vec<String> = objects.list("SX/1/2/").unwrap().into_iter().map(|entry| entry.key).collect();
    assert_eq!(listed, keys);
}

#[test]
fn several_values_are_published_at_once() {
    let server = Server::shared();
    let (objects, _) = sink(&server.uri("x"), &server.options(&[])).unwrap();
    let [anchor, header, footer] = ["SX/1/2/3/1", "SX/1/2/3/2", "SX/1/2/3/3"];
    let others = |content| [object(header, content), object(footer, content)];
    let publish = |content: &'static str, condition: &Condition| {
        objects.publish_with(&others(content), anchor, content.into(), condition)
    };
    let content = || [anchor, header, footer].map(|key| objects.get(key, 100).unwrap().0);
    publish("first", &Condition::Absent).unwrap();
    let (first, _) = objects.state(anchor, 100).unwrap();
    assert_eq!(publish("none", &Condition::Absent).unwrap_err().kind(), ErrorKind::Changed);
    assert_eq!(content(), ["first"; 3], "all or none are written");
    publish("second", &first).unwrap();
    let error = publish("none", &first).unwrap_err();
    assert_eq!((error.kind(), error.uri()), (ErrorKind::Changed, &*format!("{objects}{anchor}")));
    assert_eq!(content(), ["second"; 3], "all or none are written");
    // The anchor is the same again, but was replaced meanwhile.
    publish("first", &objects.state(anchor, 100).unwrap().0).unwrap();
    assert_eq!(publish("none", &first).unwrap_err().kind(), ErrorKind::Changed);
    publish("third", &objects.state(anchor, 100).unwrap().0).unwrap();
    assert_eq!(objects.list("SX/1/2/").unwrap().len(), 3, "locks are not listed");

    for other in ["S1/1/2/3/4", "SX/2/2/3/4", "SX/1/1/3/4", "SX/1/2/4/4"] {
        let error = objects.publish_with(&[object(other, "x")], anchor, "x".into(), &first).unwrap_err();
        assert_eq!((error.kind(), error.uri()), (ErrorKind::NotSupported, &*format!("{objects}{other}")));
    }
}

/// As many akeys as other calls never have.
#[test]
fn publishing_is_one_call() {
    let knobs = Knobs::new();
    let (objects, _) = sink(&knobs.uri("tank", "x"), &knobs.options(&[("daos_requests", "queue")])).unwrap();
    let others: Vec<NewObject> = (0..200).map(|at| object(&format!("SX/1/2/3/{at:x}"), "content")).collect();
    knobs.take_counts();
    objects.publish_with(&others, "SX/1/2/3/fff", "anchor".into(), &Condition::Absent).unwrap();
    assert_eq!(knobs.take_counts(), (1, 0));
    assert_eq!(objects.list("SX/1/2/3/").unwrap().len(), 201);
}

#[test]
fn a_lock_is_a_value_with_its_content() {
    let server = Server::shared();
    let (objects, _) = sink(&server.uri("x"), &server.options(&[])).unwrap();
    let keys = ["SX/1/2/3/8000000000000001", "SX/1/2/3/8000000000000002", "SX/1/2/3/1"];
    objects.put(&[object(keys[0], "tupelock"), object(keys[1], "tupelocy"), object(keys[2], "tupelock")]).unwrap();
    let listed: Vec<String> = objects.list("SX/1/2/").unwrap().into_iter().map(|entry| entry.key).collect();
    assert_eq!(listed, [keys[2], keys[1]]);
    // The mixing must never change.
    let lock = super::lock_of(&keys[2].parse().unwrap(), 7, 0);
    assert_eq!(lock.to_string(), "SX/1/2/3/c7e78d07d4a5455e");
}

#[test]
fn a_publication_of_unknown_result_is_read_back() {
    let knobs = Knobs::new();
    let (objects, _) = sink(&knobs.uri("tank", "x"), &knobs.options(&[])).unwrap();
    let key = "SX/1/2/3/4";
    knobs.set_fault("update:1:-1006");
    let error = objects.publish(key, "one".into(), &Condition::Absent).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().ends_with("a server cannot be reached (DER_UNREACH, -1006)"), "{error}");
    // Another writer of the same content looks the same as a lost answer.
    objects.publish(key, "one".into(), &Condition::Absent).unwrap();
    knobs.set_fault("update:1:-1006");
    objects.publish(key, "one".into(), &Condition::Absent).unwrap();
    // The fault is used up: the next one is refused.
    assert_eq!(objects.publish(key, "one".into(), &Condition::Absent).unwrap_err().kind(), ErrorKind::Changed);
}

#[test]
fn keys_have_the_classes_of_the_options() {
    let knobs = Knobs::new();
    let daos = |class: &str, metadata: &str| Keys::Daos {
        class: class.to_owned(),
        metadata_class: metadata.to_owned(),
        separate_pages: false,
    };
    let keys = |pool: &str, options: &[(&str, &str)]| {
        sink(&knobs.uri(pool, "x"), &knobs.options(options)).map(|(objects, _)| objects.keys())
    };
    assert_eq!(keys("tank", &[]).unwrap(), daos("SX", "SX"));
    let chosen = [("daos_class", "S2"), ("daos_metadata_class", "S1"), ("redundancy", "max")];
    assert_eq!(keys("tank", &chosen).unwrap(), daos("S2", "S1"));
    for (pool, level, class) in [
        ("tank", "none", "SX"),
        ("pair", "replicate", "RP_2GX"),
        ("pair", "max", "RP_2GX"),
        ("wide", "max", "RP_3GX"),
        ("wide", "erasure", "EC_16P2GX"),
    ] {
        assert_eq!(keys(pool, &[("redundancy", level)]).unwrap(), daos(class, "SX"), "{pool} {level}");
    }

    let error = keys("pair", &[("redundancy", "erasure")]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotSupported);
    let expected = "the pool has too few servers for the storage option redundancy=erasure; it supports: none, \
                    replicate, max";
    assert!(error.to_string().ends_with(expected), "{error}");
    for (option, class, reason) in [
        ("daos_class", "S3000", "unknown DAOS object class S3000"),
        ("daos_class", "sx", "unknown DAOS object class sx"),
        ("daos_metadata_class", "RP_2GX", "the pool has too few servers or targets for objects of the class RP_2GX"),
        ("daos_class", "S8", "the pool has too few servers or targets for objects of the class S8"),
    ] {
        let error = keys("tank", &[(option, class)]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotSupported);
        let expected = format!("{reason}; classes of this pool for the storage option {option}: S1, S2, S4, SX");
        assert!(error.to_string().ends_with(&expected), "{error}");
    }
    // The options of readers are not checked; the classes of keys are.
    let uri = knobs.uri("tank", "x");
    let writer = sink(&uri, &knobs.options(&[])).unwrap().0;
    writer.put(&[object("SX/1/2/3/4", "content")]).unwrap();
    let reader = source(&uri, &knobs.options(&[("daos_class", "RP_2GX")])).unwrap().0;
    assert_eq!(reader.keys(), daos("RP_2GX", "SX"));
    for key in ["S3000/1/2/3/4", "RP_2GX/1/2/3/4"] {
        let error = reader.get(key, 10).unwrap_err();
        assert_eq!((error.kind(), error.uri()), (ErrorKind::NotSupported, &*format!("{reader}{key}")), "{error}");
    }
}

#[test]
fn containers_are_created_on_request() {
    let server = Server::shared();
    let uri = server.uri("x");
    let (base, _) = uri.rsplit_once(':').unwrap();
    let (_, name) = base.rsplit_once('/').unwrap();
    let plain = server.options(&[("daos_create", "false")]);
    let error = sink(&uri, &plain).unwrap_err();
    assert_eq!((error.kind(), error.uri()), (ErrorKind::NotFound, uri.as_str()));
    let hint = "; the storage option daos_create=true creates it";
    let reason = format!("cannot write to {uri}: the container {name} does not exist in the DAOS pool {}", server.pool);
    assert_eq!(error.to_string(), format!("{reason}{hint}"));
    let error = source(&uri, &server.options(&[])).unwrap_err();
    assert_eq!(error.to_string(), reason.replace("write to", "open"));
    for _ in 0..2 {
        sink(&uri, &server.options(&[])).unwrap();
    }
    sink(&uri, &plain).unwrap();
    let (reader, key) = source(&uri, &plain).unwrap();
    assert_eq!((reader.to_string(), key.as_str()), (format!("{base}:"), "x"));
    let error = source("daos://no-such-pool/c:x", &plain).unwrap_err();
    assert_eq!(error.to_string(), "cannot open daos://no-such-pool/c:x: the DAOS pool no-such-pool does not exist");
}

#[test]
fn refused_objects_are_not_sent() {
    let server = Server::shared();
    let (objects, _) = sink(&server.uri("x"), &server.options(&[])).unwrap();
    let error = objects.put(&[object("SX/1/2/3/4", "x"), NewObject { key: "SX/1/2/3/5".into(), pieces: vec![] }]);
    assert!(error.unwrap_err().to_string().ends_with("SX/1/2/3/5: DAOS does not support empty values"));
    let error = objects.put(&[object("SX/1/2/3/4", "x"), object("SX/1/2/3/4", "y")]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Changed);
    assert!(objects.list("SX/1/2/").unwrap().is_empty());
    let error = objects.get("a/b", 10).unwrap_err();
    let reason = "expected a DAOS key of the form CLASS/HI/LO/DKEY/AKEY, with hexadecimal numbers";
    assert_eq!(error.to_string(), format!("cannot read {objects}a/b: {reason}"));
    let range = ObjectRange { key: "SX/1/2/3/4".into(), range: 0..1 };
    assert!(objects.get_ranges(&[range]).unwrap_err().is_not_found());
}

#[test]
fn traffic_counts_calls_and_bytes() {
    let server = Server::shared();
    let (objects, _) = sink(&server.uri("x"), &server.options(&[])).unwrap();
    objects.put(&[object("SX/1/2/3/4", "abc"), object("SX/1/2/3/5", "defg"), object("SX/1/2/4/4", "hi")]).unwrap();
    let traffic = objects.traffic().unwrap();
    assert_eq!((traffic.requests(), traffic.puts(), traffic.sent_bytes()), (2, 3, 9));
    let range = |key: &str, range| ObjectRange { key: key.into(), range };
    let ranges = [range("SX/1/2/3/4", 0..3), range("SX/1/2/3/5", 0..4), range("SX/1/2/3/5", 0..2)];
    assert_eq!(objects.get_ranges(&ranges).unwrap(), ["abc", "defg", "de"]);
    assert_eq!((traffic.requests(), traffic.bytes(), traffic.retries()), (3, 7, 0));
}
