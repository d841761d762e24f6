//! Namespaces on servers that behave, and on servers that do not.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;

use super::server::{Fault, Seen, Server};
use super::{both, bytes, quick};
use crate::error::ErrorKind;
use crate::laws::{is_cancelled_soon, object_source_laws};
use crate::net::Options;
use crate::objects::{self, Condition, NewObject, ObjectRange, ObjectSink, ObjectSource};

/// The folder `/box/a/` of a server as a namespace in a store.
fn store(server: &Server) -> Arc<dyn ObjectSink> {
    let [_, (_, options)] = both(server, "4");
    objects::sink("ntpl+s3://box/a/x", &options).unwrap().0
}

/// The folder `/box/a/` of a server as one of a web server.
fn web(server: &Server) -> Arc<dyn ObjectSource> {
    let (source, key) = objects::source(&format!("ntpl+{}", server.url("/box/a/x%20y")), &quick()).unwrap();
    assert_eq!(key, "x y");
    source
}

fn range(key: &str, range: std::ops::Range<u64>) -> ObjectRange {
    ObjectRange { key: key.into(), range }
}

fn served() -> (Server, Vec<(String, Vec<u8>)>) {
    let server = Server::start();
    let objects = [("x", 5000), ("empty", 0), ("x.objects/1", 1), ("x.objects/2", 100_000)];
    let objects = objects.map(|(key, len)| (key.to_owned(), bytes(len)));
    for (key, content) in &objects {
        server.put(&format!("/box/a/{key}"), content.clone(), &format!("\"{key}\""));
    }
    (server, objects.to_vec())
}

#[test]
fn servers_keep_the_laws_of_reading() {
    let (server, objects) = served();
    object_source_laws(&web(&server), &objects);
    object_source_laws(&store(&server), &objects);
}

#[test]
fn servers_without_ranges_are_read() {
    let (server, objects) = served();
    server.fault(|_, _| Some(Fault::Whole));
    let web = web(&server);
    for (key, content) in &objects {
        assert_eq!(web.get(key, 1 << 20).unwrap().0, content);
    }
    assert_eq!(web.get_ranges(&[range("x", 10..20), range("x.objects/2", 7..90_000)]).unwrap().len(), 2);
    assert_eq!(web.get_ranges(&[range("x", 10..5001)]).unwrap_err().kind(), ErrorKind::OutOfRange);
}

#[test]
fn keys_are_encoded_in_urls_and_named_in_errors() {
    let server = Server::start();
    server.put("/box/a/x%20y%23%25%3F", &b"content"[..], "\"1\"");
    let source = web(&server);
    assert_eq!(source.get("x y#%?", 100).unwrap().0, "content");
    let error = source.get_ranges(&[range("x.objects/no", 0..64)]).unwrap_err();
    let uri = format!("ntpl+{}", server.url("/box/a/x.objects/no"));
    assert_eq!(error.to_string(), format!("cannot read bytes 0..64 of {uri}: HTTP status 404 Not Found"));
    let error = store(&server).get("no", 64).unwrap_err();
    assert!(error.to_string().starts_with("cannot read ntpl+s3://box/a/no: HTTP status 404 Not Found"), "{error}");
}

#[test]
fn web_servers_can_only_be_read() {
    let server = Server::start();
    let uri = format!("ntpl+{}", server.url("/a/x"));
    let error = objects::sink(&uri, &quick()).unwrap_err();
    assert_eq!(error.to_string(), format!("cannot write to {uri}: web servers are read-only"));
    assert_eq!(web(&server).list("").unwrap_err().kind(), ErrorKind::NotSupported);
    assert_eq!(objects::list(&uri, &quick()).unwrap_err().kind(), ErrorKind::NotSupported);
}

#[test]
fn near_ranges_are_one_request_and_requests_are_counted() {
    let (server, _) = served();
    let namespace = store(&server);
    let ranges: Vec<ObjectRange> = (0..50).map(|at| range("x.objects/2", at * 2000..at * 2000 + 100)).collect();
    let ranges = [ranges, vec![range("x", 0..10), range("x", 4000..5000)]].concat();
    namespace.get_ranges(&ranges).unwrap();
    let traffic = namespace.traffic().unwrap();
    assert_eq!((traffic.requests(), server.seen().len()), (2, 2));
    namespace.get("x", 100_000).unwrap();
    assert_eq!((traffic.requests(), server.seen().len()), (3, 1), "one request for an object of unknown size");

    let object = |at: usize| NewObject { key: format!("new/{at}"), pieces: vec![Bytes::from(bytes(at)); 2] };
    namespace.put(&(1..=40).map(object).collect::<Vec<_>>()).unwrap();
    assert_eq!((traffic.requests(), traffic.puts(), traffic.sent_bytes()), (43, 40, 40 * 41));
    assert_eq!(server.object("/box/a/new/3").unwrap(), [bytes(3), bytes(3)].concat());
    namespace.flush().unwrap();
    assert_eq!(server.seen().len(), 40);
}

#[test]
fn a_large_range_is_several_requests() {
    let server = Server::start();
    let content = bytes(40 << 20);
    server.put("/box/a/large", content.clone(), "\"1\"");
    let read = store(&server).get_ranges(&[range("large", 1..40 << 20), range("large", 5..6)]).unwrap();
    assert!(read[0] == content[1..] && read[1] == content[5..6]);
    assert!(server.seen().len() >= 3, "at most 16 MiB each");
}

#[test]
fn transient_faults_do_not_change_data() {
    for fault in [Fault::Status(503, String::new(), String::new()), Fault::Close, Fault::Cut(100), Fault::Lost] {
        let (server, objects) = served();
        let (namespace, shared) = (store(&server), fault.clone());
        server.fault(move |_, count| (count % 3 == 0).then(|| shared.clone()));
        let ranges: Vec<ObjectRange> = objects
            .iter()
            .filter(|(_, content)| !content.is_empty())
            .map(|(key, c)| range(key, 0..c.len() as u64))
            .collect();
        let read = namespace.get_ranges(&ranges).unwrap_or_else(|error| panic!("{fault:?}: {error}"));
        assert_eq!(read[2], objects[3].1, "{fault:?}");
        namespace.put(&[NewObject { key: "new".to_owned(), pieces: vec![Bytes::from_static(b"new")] }]).unwrap();
        assert_eq!(server.object("/box/a/new").unwrap(), b"new");
    }
}

fn is_put(seen: &Seen) -> bool {
    seen.method == "PUT"
}

/// Makes the first request that writes have a fault.
fn fault_at_first_put(server: &Server, fault: Fault) {
    let puts = AtomicUsize::new(0);
    server.fault(move |seen, _| (is_put(seen) && puts.fetch_add(1, Ordering::Relaxed) == 0).then(|| fault.clone()));
}

#[test]
fn a_lost_answer_to_a_publication_is_cleared_up() {
    let server = Server::start();
    let namespace = store(&server);
    fault_at_first_put(&server, Fault::Lost);
    namespace.publish("x", "anchor".into(), &Condition::Absent).unwrap();
    let puts = server.seen().iter().filter(|seen| is_put(seen)).count();
    assert_eq!(puts, 1, "it was read back");
    let version = Condition::Version(namespace.get("x", 100).unwrap().1);
    fault_at_first_put(&server, Fault::Lost);
    namespace.publish("x", "other anchor".into(), &version).unwrap();
    assert_eq!(server.object("/box/a/x").unwrap(), b"other anchor");

    // The answer is lost, and the object cannot be read back at once: the repetition finds it written.
    let reads = AtomicUsize::new(0);
    let version = Condition::Version(namespace.get("x", 100).unwrap().1);
    server.seen();
    server.fault(move |seen, count| match is_put(seen) {
        true => (count == 0).then_some(Fault::Lost),
        false => (reads.fetch_add(1, Ordering::Relaxed) < 4).then(|| Fault::Status(503, String::new(), String::new())),
    });
    namespace.publish("x", "third".into(), &version).unwrap();
    let puts: Vec<bool> = server.seen().iter().map(is_put).filter(|is_put| *is_put).collect();
    assert_eq!(puts.len(), 2);
}

/// Regression: the repetition found the object written, and it could not be read back. That was taken for the work of another
/// writer, after which the objects of the new ntuple were removed.
#[test]
fn a_publication_that_cannot_be_read_back_is_unclear() {
    let server = Server::start();
    let unavailable = || Some(Fault::Status(503, String::new(), String::new()));
    server.fault(move |seen, count| match is_put(seen) {
        true => (count == 0).then_some(Fault::Lost),
        false => unavailable(),
    });
    let error = store(&server).publish("x", "ours".into(), &Condition::Absent).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(error.to_string().contains("whether it was written is unknown"), "{error}");
    assert_eq!(server.object("/box/a/x").unwrap(), b"ours");
}

#[test]
fn an_object_published_by_another_writer_is_not_taken_for_ours() {
    for fault in [Fault::Close, Fault::Status(503, String::new(), String::new())] {
        let server = Server::start();
        let namespace = store(&server);
        // Another writer is first, and the answer to our first request is lost.
        server.put("/box/a/x", &b"theirs"[..], "\"1\"");
        fault_at_first_put(&server, fault);
        let error = namespace.publish("x", "ours".into(), &Condition::Absent).unwrap_err();
        let expected = "cannot write ntpl+s3://box/a/x: it already exists (2 attempts in ";
        assert!(error.to_string().starts_with(expected), "{error}");
        assert_eq!(server.object("/box/a/x").unwrap(), b"theirs");
    }
    // Without a lost answer, the same content is not a success either.
    let server = Server::start();
    server.put("/box/a/x", &b"same"[..], "\"1\"");
    let error = store(&server).publish("x", "same".into(), &Condition::Absent).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Changed);
    assert_eq!(server.seen().len(), 1);
}

#[test]
fn a_publication_that_never_succeeds_is_a_failure() {
    let server = Server::start();
    server.fault(|seen, _| is_put(seen).then_some(Fault::Status(503, String::new(), String::new())));
    let error = store(&server).publish("x", "ours".into(), &Condition::Absent).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(error.to_string().contains("(4 attempts in "), "{error}");
    // Of two writers at the same time, S3 may ask one to try again.
    let server = Server::start();
    let conflict = "<Error><Code>ConditionalRequestConflict</Code></Error>".to_owned();
    fault_at_first_put(&server, Fault::Status(409, String::new(), conflict));
    store(&server).publish("x", "ours".into(), &Condition::Absent).unwrap();
}

#[test]
fn stores_that_ignore_conditions_are_noticed() {
    let server = Server::start();
    let deleted = || {
        Some(Fault::Status(
            200,
            String::new(),
            "<DeleteResult><Deleted><Key>x</Key></Deleted></DeleteResult>".to_owned(),
        ))
    };
    server.fault(move |seen, _| if seen.method == "POST" { deleted() } else { None });
    assert!(store(&server).honours_conditions("probe 1").unwrap());
    // As if all conditions were met.
    server.fault(move |seen, _| match seen.method.as_str() {
        "POST" => deleted(),
        "PUT" => Some(Fault::Status(200, "ETag: \"1\"\r\n".to_owned(), String::new())),
        _ => None,
    });
    assert!(!store(&server).honours_conditions("probe 2").unwrap());
    server.fault(move |seen, _| match seen.method.as_str() {
        "POST" => deleted(),
        _ => Some(Fault::Status(501, String::new(), "<Code>NotImplemented</Code>".to_owned())),
    });
    assert!(!store(&server).honours_conditions("probe 3").unwrap());
}

#[test]
fn requests_can_be_cancelled() {
    let server = Server::start();
    server.fault(|_, _| Some(Fault::Silence));
    let options = Options::new([("aws_endpoint_url", server.url("").as_str()), ("anonymous", "1")]).unwrap();
    let (namespace, _) = objects::sink("ntpl+s3://box/x", &options).unwrap();
    is_cancelled_soon(|| namespace.get("x", 10));
    is_cancelled_soon(|| namespace.get_ranges(&[range("x", 0..1)]));
    is_cancelled_soon(|| namespace.put(&[NewObject { key: "x".to_owned(), pieces: vec![] }]));
    is_cancelled_soon(|| namespace.list(""));
}

#[test]
fn a_server_in_the_uri_is_used() {
    let (server, _) = served();
    let options = Options::new([("aws_endpoint_url", "http://127.0.0.1:1"), ("anonymous", "1")]).unwrap();
    let uri = format!("ntpl+s3+{}", server.url("/box/a/x"));
    let (source, key) = objects::source(&uri, &options).unwrap();
    assert_eq!(source.get(&key, 10_000).unwrap().0.len(), 5000);
    assert_eq!(format!("{source}{key}"), uri);
    assert_eq!(server.seen()[0].target, "/box/a/x", "the bucket is in the path");
    for uri in ["ntpl+s3+https://host/x", "ntpl+s3://box//x", "ntpl+ftp://host/a/x", "ntpl+s3+https:///box/x"] {
        let error = objects::source(uri, &options).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotSupported, "{error}");
    }
}
