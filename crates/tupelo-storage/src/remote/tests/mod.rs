//! Reading over HTTP from servers that behave, and from servers that do not.

mod objects;
pub(crate) mod server;
mod stores;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use self::server::{Fault, Seen, Server};
use super::object::Object;
use super::upload::UploadSink;
use super::{HEAD_BYTES, MAX_WHOLE_BYTES, TAIL_BYTES, create, is_remote, list, object, open};
use crate::adapter::Cache;
use crate::cancel::cancellable;
use crate::error::ErrorKind;
use crate::laws::{SinkCase, is_cancelled_soon, sink_laws, source_laws};
use crate::net::Options;
use crate::sink::ByteSink;
use crate::source::ByteSource;

fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 31 % 251) as u8).collect()
}

/// Options with times that are short, and long enough for a machine that is busy.
fn quick() -> Options {
    Options::new([("stall_timeout", "10"), ("total_timeout", "60")]).unwrap()
}

fn is_data(seen: &Seen) -> bool {
    // Not the two requests that open an object.
    seen.header("if-match").is_some()
}

#[test]
fn http_keeps_the_laws_of_a_source() {
    for size in [0, 1, 1000, 65_536, 65_537, 1_000_000] {
        let content = bytes(size);
        let server = Server::with(content.clone());
        source_laws(&open(&server.url("/x"), &quick()).unwrap(), &content);
    }
}

#[test]
fn opening_is_two_requests_and_their_bytes_are_kept() {
    let content = bytes(10_000_000);
    let server = Server::with(content.clone());
    let source = open(&server.url("/x?token=a%2Fb+c"), &quick()).unwrap();
    let mut ranges: Vec<String> = server.seen().iter().map(|seen| seen.header("range").unwrap().to_owned()).collect();
    ranges.sort();
    assert_eq!(ranges, ["bytes=-65536", "bytes=0-16383"]);
    assert_eq!(source.size().unwrap(), 10_000_000);
    let ends = source.read_ranges(&[0..16_384, 9_999_000..10_000_000, 9_934_464..9_934_465]).unwrap();
    assert_eq!(ends[1], content[9_999_000..]);
    assert_eq!(server.seen().len(), 0, "both ends were read when it was opened");
    source.read_range(0..16_385).unwrap();
    let seen = server.seen();
    assert_eq!(seen.len(), 1);
    assert_eq!(seen[0].target, "/x?token=a%2Fb+c", "the query string is sent as it is");
    assert_eq!(seen[0].header("if-match"), Some("\"v1\""));
    assert_eq!(source.to_string(), server.url("/x"), "the query string is not shown");
}

#[test]
fn near_ranges_are_one_request_and_large_ones_are_split() {
    let content = bytes(40 << 20);
    let server = Server::with(content.clone());
    let source = open(&server.url("/x"), &quick()).unwrap();
    server.seen();
    let near: Vec<_> = (0..64).map(|i| (1 << 20) + i * 100_000..(1 << 20) + i * 100_000 + 5000).collect();
    for (range, read) in near.iter().zip(source.read_ranges(&near).unwrap()) {
        assert_eq!(read, content[range.start as usize..range.end as usize]);
    }
    assert_eq!(server.seen().len(), 1);
    assert_eq!(source.read_range(0..40 << 20).unwrap(), content);
    assert_eq!(server.seen().len(), 3, "at most 16 MiB each");
}

/// The object `/x` of a server by HTTP and by S3, with options for it.
fn both(server: &Server, attempts: &str) -> [(String, Options); 2] {
    let settings = [("stall_timeout", "0.5"), ("total_timeout", "60"), ("max_attempts", attempts), ("anonymous", "1")];
    let store = settings.into_iter().map(|(name, value)| (name, value.to_owned()));
    let store = store.chain([("aws_endpoint_url", server.url(""))]);
    [(server.url("/box/x"), Options::new(settings).unwrap()), ("s3://box/x".to_owned(), Options::new(store).unwrap())]
}

#[test]
fn transient_faults_do_not_change_the_result() {
    let content = bytes(300_000);
    for fault in [
        Fault::Status(503, "Retry-After: 0\r\n".to_owned(), "<Code>SlowDown</Code>".to_owned()),
        Fault::Status(429, String::new(), String::new()),
        Fault::Status(500, String::new(), String::new()),
        Fault::Close,
        Fault::Cut(0),
        Fault::Cut(70_000),
        Fault::Stall(0),
        Fault::Stall(12_345),
    ] {
        let server = Server::start();
        server.put("/box/x", content.clone(), "\"v1\"");
        for (url, options) in both(&server, "9") {
            server.seen();
            let shared = fault.clone();
            // The first request of all, and the first two for data.
            server.fault(move |_, count| (count == 0 || count == 3 || count == 4).then(|| shared.clone()));
            let source = open(&url, &options).unwrap_or_else(|error| panic!("{url}: {fault:?}: {error}"));
            let read = source.read_range(1000..250_000).unwrap_or_else(|error| panic!("{url}: {fault:?}: {error}"));
            assert_eq!(read, content[1000..250_000], "{url}: {fault:?}");
        }
    }
}

#[test]
fn a_truncated_answer_is_continued_where_it_ended() {
    let content = bytes(300_000);
    let server = Server::with(content.clone());
    let source = open(&server.url("/x"), &quick()).unwrap();
    server.seen();
    // Cut twenty times, which is more than the number of attempts without progress.
    server.fault(|_, count| (count < 20).then_some(Fault::Cut(10_000)));
    assert_eq!(source.read_range(20_000..230_000).unwrap(), content[20_000..230_000]);
    let ranges: Vec<String> = server.seen().iter().map(|seen| seen.header("range").unwrap().to_owned()).collect();
    assert_eq!(ranges.len(), 21);
    assert_eq!(&ranges[..3], ["bytes=20000-229999", "bytes=30000-229999", "bytes=40000-229999"]);
    let traffic = source.traffic().unwrap();
    assert_eq!((traffic.requests(), traffic.retries()), (2 + 21, 20));
    assert_eq!(traffic.bytes(), HEAD_BYTES + TAIL_BYTES + 210_000);
}

#[test]
fn the_last_error_says_how_often_and_why() {
    let server = Server::start();
    server.put("/box/x", bytes(300_000), "\"v1\"");
    let busy = "<Error><Code>SlowDown</Code><Message>Reduce your rate</Message></Error>";
    for (url, options) in both(&server, "3") {
        server.fault(|_, _| None);
        let source = open(&url, &options).unwrap();
        server.seen();
        server.fault(move |_, _| Some(Fault::Status(503, String::new(), busy.to_owned())));
        let error = source.read_range(20_000..30_000).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        let expected = format!(
            "cannot read bytes 20000..30000 of {url}: HTTP status 503 Service Unavailable: SlowDown: Reduce your rate \
             (3 attempts in "
        );
        assert!(error.to_string().starts_with(&expected), "{error}");
        assert_eq!(server.seen().len(), 3, "retries do not multiply");
    }

    let options = Options::new([("max_attempts", "2")]).unwrap();
    let error = open("http://127.0.0.1:1/x", &options).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(
        error.to_string().starts_with("cannot open http://127.0.0.1:1/x: cannot connect to 127.0.0.1:1: "),
        "{error}"
    );
}

#[test]
fn a_stalled_server_is_left_within_the_limit() {
    let server = Server::with(bytes(300_000));
    let options = Options::new([("stall_timeout", "0.2"), ("max_attempts", "2")]).unwrap();
    let source = open(&server.url("/x"), &options).unwrap();
    server.fault(|_, _| Some(Fault::Stall(0)));
    let error = source.read_range(20_000..30_000).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
    assert!(error.to_string().contains(": no data for 0.2 s (2 attempts in "), "{error}");
}

#[test]
fn a_server_that_sends_a_byte_now_and_then_is_left_within_the_total_time() {
    let server = Server::with(bytes(300_000));
    let options = Options::new([("total_timeout", "1")]).unwrap();
    let source = open(&server.url("/x"), &options).unwrap();
    server.fault(|_, _| Some(Fault::Drip));
    let error = source.read_range(20_000..30_000).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
    assert!(error.to_string().ends_with(": no complete answer within 1 s"), "{error}");
}

#[test]
fn refusals_are_not_repeated() {
    for (status, kind) in
        [(401, ErrorKind::Denied), (403, ErrorKind::Denied), (404, ErrorKind::NotFound), (405, ErrorKind::NotSupported)]
    {
        let server = Server::with(bytes(1000));
        server.fault(move |_, _| Some(Fault::Status(status, String::new(), String::new())));
        let error = open(&server.url("/x"), &quick()).unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert_eq!(server.seen().len(), 2, "{status}");
    }
    // What a server repeats is not shown.
    let server = Server::with(bytes(1000));
    let told = "<Message>GET /x?t=secret2 with ann:secret1, Basic c2VjcmV0, is wrong</Message>";
    server.fault(move |_, _| Some(Fault::Status(403, String::new(), told.to_owned())));
    let url = server.url("/x?t=secret2").replace("http://", "http://ann:secret1@");
    let error = open(&url, &quick()).unwrap_err().to_string();
    assert!(error.ends_with("HTTP status 403 Forbidden: GET /x?*** with ann:***, Basic *** is wrong"), "{error}");
}

#[test]
fn a_replaced_object_is_an_error() {
    let server = Server::with(bytes(300_000));
    let source = open(&server.url("/x"), &quick()).unwrap();
    server.put("/x", bytes(300_000), "\"v2\"");
    let error = source.read_range(20_000..30_000).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Changed, "{error}");

    // Also on a server that ignores If-Match, and in the middle of an answer.
    let server = Server::with(bytes(300_000));
    let source = open(&server.url("/x"), &quick()).unwrap();
    server.fault(|seen, _| {
        let lines = "Content-Range: bytes 20000-29999/300000\r\nETag: \"v2\"\r\n".to_owned();
        is_data(seen).then(|| Fault::Status(206, lines, "x".repeat(10_000)))
    });
    let error = source.read_range(20_000..30_000).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Changed, "{error}");
    server.fault(|_, _| Some(Fault::ContentRange("bytes 20000-29999/400000".to_owned())));
    assert_eq!(source.read_range(20_000..30_000).unwrap_err().kind(), ErrorKind::Changed);
}

/// Regression: an object that lost its ETag, or whose ETag is not ASCII, was not compared any more.
#[test]
fn missing_validators_are_errors() {
    let without = |seen: &Seen| {
        let lines = "Content-Range: bytes 20000-29999/300000\r\n".to_owned();
        is_data(seen).then(|| Fault::Status(206, lines, "x".repeat(10_000)))
    };
    let server = Server::with(bytes(300_000));
    let source = open(&server.url("/x"), &quick()).unwrap();
    server.fault(move |seen, _| without(seen));
    assert_eq!(source.read_range(20_000..30_000).unwrap_err().kind(), ErrorKind::Changed);

    let server = Server::start();
    server.put("/x", bytes(300_000), "\"\u{e4}1\"");
    let source = open(&server.url("/x"), &quick()).unwrap();
    assert_eq!(source.read_range(20_000..30_000).unwrap(), bytes(300_000)[20_000..30_000]);
    server.put("/x", bytes(300_000), "\"\u{e4}2\"");
    assert_eq!(source.read_range(20_000..30_000).unwrap_err().kind(), ErrorKind::Changed);
}

/// Regression: an object whose ranges were all refused was read as an empty one.
#[test]
fn only_empty_objects_are_empty() {
    let server = Server::with(bytes(300_000));
    server.fault(|seen, _| seen.header("range").map(|_| Fault::Status(416, String::new(), String::new())));
    let error = open(&server.url("/x"), &quick()).unwrap_err();
    assert!(error.to_string().contains("rejects every range"), "{error}");
}

/// Regression: a connection that broke while an empty object was opened was an error at once.
#[test]
fn opening_an_empty_object_survives_broken_connections() {
    let server = Server::with(Vec::new());
    let has_failed = AtomicBool::new(false);
    server.fault(move |seen, _| {
        let is_first_whole = seen.header("range").is_none() && !has_failed.swap(true, Ordering::Relaxed);
        is_first_whole.then_some(Fault::Close)
    });
    let source = open(&server.url("/x"), &quick()).unwrap();
    assert_eq!((source.size().unwrap(), source.traffic().unwrap().retries()), (0, 1));
}

/// A server that stops to send ranges: the parts come out of the whole object, which is not kept in memory.
#[test]
fn a_part_may_come_with_the_whole_object() {
    let content = bytes(300_000);
    let server = Server::with(content.clone());
    let source = open(&server.url("/x"), &quick()).unwrap();
    server.fault(|_, _| Some(Fault::Whole));
    assert_eq!(source.read_range(20_000..30_000).unwrap(), content[20_000..30_000]);
    server.fault(|_, _| Some(Fault::WholeUntilClosed));
    let error = source.read_range(20_000..30_000).unwrap_err();
    assert!(error.to_string().contains("sends all of it without its size"), "{error}");
    server.put("/x", bytes(200_000), "\"v1\"");
    server.fault(|_, _| Some(Fault::Whole));
    assert_eq!(source.read_range(20_000..30_000).unwrap_err().kind(), ErrorKind::Changed);
}

/// Regression: two objects at one path, and two stores with the same bucket, shared what was cached.
#[test]
fn versions_are_those_of_one_url_on_one_server() {
    let servers = [Server::with(bytes(1000)), Server::with(bytes(1000))];
    servers.iter().for_each(|server| server.put("/box/x", bytes(1000), "\"v1\""));
    let version = |url: &str, options: &Options| open(url, options).unwrap().version().unwrap();
    let at = |query: &str| version(&servers[0].url(&format!("/x{query}")), &quick());
    assert_eq!(at("?file=a"), at("?file=a"));
    assert_ne!(at("?file=a"), at("?file=b"));
    assert!(!at("?file=a").contains("file=a"));
    let [first, second] = servers.each_ref().map(|server| {
        let [_, (url, options)] = both(server, "2");
        version(&url, &options)
    });
    assert_ne!(first, second);
}

#[test]
fn a_listing_must_end() {
    let server = Server::start();
    let page = |token: &str| {
        let size = "<Size>1</Size><LastModified>2026-01-01T00:00:00Z</LastModified>";
        let next = format!("<IsTruncated>true</IsTruncated><NextContinuationToken>{token}</NextContinuationToken>");
        let body = format!("<ListBucketResult>{next}<Contents><Key>f</Key>{size}</Contents></ListBucketResult>");
        Some(Fault::Status(200, String::new(), body))
    };
    server.fault(move |_, _| page("same"));
    let [_, (_, options)] = both(&server, "2");
    let error = list("s3://box/", &options).unwrap_err();
    assert!(error.to_string().contains("the same page"), "{error}");
    let options = Options::new(options.settings().chain([("total_timeout", "1")])).unwrap();
    server.fault(move |_, count| {
        std::thread::sleep(std::time::Duration::from_millis(300));
        page(&count.to_string())
    });
    let error = list("s3://box/", &options).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout, "{error}");
}

/// A page of a listing of S3 with these elements after the first one.
fn listing(elements: &str) -> Fault {
    let body = format!("<ListBucketResult><Name>box</Name>{elements}</ListBucketResult>");
    Fault::Status(200, String::new(), body)
}

fn listed_object(key: &str) -> String {
    format!("<Contents><Key>{key}</Key><Size>1</Size><LastModified>2026-01-01T00:00:00Z</LastModified></Contents>")
}

/// Regression: it was taken for complete.
#[test]
fn a_listing_that_does_not_say_how_it_continues_is_an_error() {
    let server = Server::start();
    let [_, (_, options)] = both(&server, "2");
    let (namespace, _) = crate::objects::source("ntpl+s3://box/a/x", &options).unwrap();
    for next in ["", "<NextContinuationToken></NextContinuationToken>", "<NextContinuationToken/>"] {
        let page = format!("<IsTruncated>true</IsTruncated>{next}{}", listed_object("a/f"));
        server.fault(move |_, _| Some(listing(&page)));
        for error in [list("s3://box/a/", &options).unwrap_err(), namespace.list("").unwrap_err()] {
            assert!(error.to_string().contains("sends no NextContinuationToken"), "{error}");
        }
    }
    let last = format!("<IsTruncated>false</IsTruncated>{}", listed_object("a/f"));
    server.fault(move |_, _| Some(listing(&last)));
    assert_eq!(list("s3://box/a/", &options).unwrap().len(), 1);
}

/// Any page is names or an error, soon, and no name leads out of the folder.
#[test]
fn damaged_listings_are_an_error_or_names() {
    const CASES: u64 = 400;
    const PIECES: [&str; 12] = [
        "<Contents>",
        "</Contents>",
        "<Key>a/../../x</Key>",
        "<Key>/etc/x</Key>",
        "<Key></Key>",
        "<Size>-1</Size>",
        "<Size>99999999999999999999</Size>",
        "<LastModified>never</LastModified>",
        "<CommonPrefixes><Prefix>a/b//</Prefix></CommonPrefixes>",
        "<IsTruncated>false</IsTruncated>",
        "&#0;&lt;&unknown;",
        "]]><!--",
    ];
    let server = Server::start();
    let [_, (_, options)] = both(&server, "2");
    let (namespace, _) = crate::objects::source("ntpl+s3://box/a/x", &options).unwrap();
    for case in 0..CASES {
        let mut random = fastrand::Rng::with_seed(case);
        let mut page = [listed_object("a/f"), listed_object("a/g"), listed_object("a/h/i")].concat().into_bytes();
        for _ in 0..=random.usize(..3) {
            let at = random.usize(..page.len());
            match random.u8(..4) {
                0 => drop(page.drain(at..(at + random.usize(..24)).min(page.len()))),
                1 => page[at] = random.u8(0x20..0x7f),
                2 => page.extend_from_within(at..),
                _ => drop(page.splice(at..at, PIECES[random.usize(..PIECES.len())].bytes())),
            }
        }
        let page = String::from_utf8(page).unwrap();
        server.fault(move |_, _| Some(listing(&page)));
        for entry in list("s3://box/a/", &options).unwrap_or_default() {
            assert!(entry.url.starts_with("s3://box/a/"), "case {case}: {}", entry.url);
            assert!(!entry.url.split('/').any(|part| part == ".."), "case {case}: {}", entry.url);
        }
        for object in namespace.list("").unwrap_or_default() {
            assert!(!object.key.split('/').any(|part| part == ".."), "case {case}: {}", object.key);
        }
    }
}

/// Regression: `object_store` panics where a URL has more than 64 KiB.
#[test]
fn names_that_are_too_long_for_a_url_are_refused() {
    let server = Server::start();
    let [_, (_, options)] = both(&server, "2");
    let (namespace, _) = crate::objects::sink("ntpl+s3://box/a/x", &options).unwrap();
    let long = "x".repeat(3 << 20);
    let token = format!("<IsTruncated>true</IsTruncated><NextContinuationToken>{long}</NextContinuationToken>");
    let folder = format!("<CommonPrefixes><Prefix>a/{long}/</Prefix></CommonPrefixes>");
    for page in [listed_object(&format!("a/{long}")), token, folder] {
        server.fault(move |_, _| Some(listing(&page)));
        for error in [list("s3://box/a/", &options).unwrap_err(), namespace.list("").unwrap_err()] {
            let text = error.to_string();
            assert!(text.contains("listing of the server is invalid: a name has 31457"), "{text:.300}");
            assert!(text.len() < 500);
        }
    }
    server.fault(|_, _| None);
    let long_url = format!("s3://box/{long}");
    let refused = [
        namespace.get(&long, 10).map(drop),
        namespace.delete(std::slice::from_ref(&long)),
        namespace.list(&long).map(drop),
        namespace.publish(&long, "x".into(), &crate::objects::Condition::Absent),
        open(&long_url, &options).map(drop),
        list(&format!("{long_url}/"), &options).map(drop),
        open(&format!("s3://{long}/x"), &options).map(drop),
        crate::objects::source(&format!("ntpl+s3+https://{long}/box/x"), &options).map(drop),
    ];
    for (number, refused) in refused.into_iter().enumerate() {
        assert!(refused.unwrap_err().to_string().contains("limit is 4096"), "{number}");
    }
    assert!(server.seen().iter().all(|seen| seen.target.len() < 10_000));
    // The id of an upload becomes a part of URLs, too.
    let id = format!("<A><UploadId>{long}</UploadId></A>");
    server.fault(move |seen, _| (seen.method == "POST").then(|| Fault::Status(200, String::new(), id.clone())));
    let large = crate::objects::NewObject { key: "x".to_owned(), pieces: vec![bytes(65 << 20).into()] };
    let error = namespace.put(&[large]).unwrap_err().to_string();
    assert!(error.contains("invalid UploadId"), "{error:.300}");
}

#[test]
fn lies_about_ranges_and_lengths_are_errors() {
    for (fault, expected) in [
        (Fault::ContentRange("bytes 0-9999/300000".to_owned()), "the server sent the bytes 0..10000, but"),
        (Fault::ContentRange("bytes 20000-49999/300000".to_owned()), "the server sent the bytes 20000..50000, but"),
        (Fault::ContentRange(format!("bytes 0-{0}/{0}", u64::MAX)), "invalid Content-Range"),
        (Fault::ContentRange("bytes 5-4/300000".to_owned()), "invalid Content-Range"),
        (Fault::ContentRange("lines 1-2/3".to_owned()), "invalid Content-Range"),
        (Fault::Body(Vec::new()), "the connection closed 10000 bytes too early (2 attempts"),
        (
            Fault::Status(206, "Content-Encoding: gzip\r\n".to_owned(), "x".repeat(10_000)),
            "the encoding gzip, which does not support ranges",
        ),
    ] {
        let server = Server::with(bytes(300_000));
        let options = Options::new([("max_attempts", "2")]).unwrap();
        let source = open(&server.url("/x"), &options).unwrap();
        let shared = fault.clone();
        server.fault(move |seen, _| is_data(seen).then(|| shared.clone()));
        let error = source.read_range(20_000..30_000).map(drop).unwrap_err();
        assert!(error.to_string().contains(expected), "{fault:?}: {error}");
    }
    // More bytes than announced are not read.
    let server = Server::with(bytes(300_000));
    let source = open(&server.url("/x"), &quick()).unwrap();
    server.fault(|seen, _| is_data(seen).then(|| Fault::Body(vec![7; 1 << 20])));
    assert_eq!(source.read_range(20_000..30_000).unwrap(), vec![7; 10_000]);
}

#[test]
fn a_server_cannot_dictate_an_allocation() {
    let server = Server::with(bytes(300_000));
    server.fault(|seen, _| {
        let lines = "Content-Range: bytes 0-16383/9000000000000000000\r\nETag: \"v1\"\r\n".to_owned();
        let is_head = seen.header("range") == Some("bytes=0-16383");
        Some(if is_head {
            Fault::Status(206, lines, "x".repeat(16_384))
        } else {
            Fault::Status(416, String::new(), String::new())
        })
    });
    let source = open(&server.url("/x"), &quick()).unwrap();
    assert_eq!(source.size().unwrap(), 9_000_000_000_000_000_000);
    let error = source.read_range(0..source.size().unwrap()).unwrap_err();
    assert!(error.to_string().ends_with("out of memory"), "{error}");

    // An error document without an end, and a whole object that is larger than announced.
    let server = Server::with(bytes(1000));
    server.fault(|_, _| Some(Fault::Status(400, String::new(), "x".repeat(5_000_000))));
    let error = open(&server.url("/x"), &quick()).unwrap_err();
    assert!(error.to_string().ends_with("HTTP status 400 Bad Request"), "{error}");
}

#[test]
fn servers_without_ranges_are_read_as_a_whole_up_to_a_limit() {
    for fault in [Fault::Whole, Fault::WholeUntilClosed] {
        let content = bytes(300_000);
        let server = Server::with(content.clone());
        let shared = fault.clone();
        server.fault(move |_, _| Some(shared.clone()));
        let source = open(&server.url("/x"), &quick()).unwrap();
        server.seen();
        source_laws(&source, &content);
        assert_eq!(server.seen().len(), 0, "everything was read when it was opened");

        let server = Server::with(vec![1; MAX_WHOLE_BYTES as usize + 1]);
        server.fault(move |_, _| Some(fault.clone()));
        let error = open(&server.url("/x"), &quick()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotSupported);
        assert!(error.to_string().contains("does not support range requests"), "{error}");
    }
}

#[test]
fn objects_open_where_the_end_cannot_be_requested() {
    for status in [400, 416, 501] {
        let content = bytes(300_000);
        let server = Server::with(content.clone());
        server.fault(move |seen, _| {
            let is_tail = seen.header("range") == Some("bytes=-65536");
            is_tail.then(|| Fault::Status(status, String::new(), String::new()))
        });
        source_laws(&open(&server.url("/x"), &quick()).unwrap(), &content);
    }
    // Some servers take the end for the start.
    let content = bytes(300_000);
    let server = Server::with(content.clone());
    server.fault(|seen, _| {
        let is_tail = seen.header("range") == Some("bytes=-65536");
        is_tail.then(|| Fault::ContentRange("bytes 0-65535/300000".to_owned()))
    });
    source_laws(&open(&server.url("/x"), &quick()).unwrap(), &content);
}

#[test]
fn credentials_stay_with_their_host() {
    let (front, other) = (Server::start(), Server::with(bytes(1000)));
    // The same address by another name is another host.
    let target = other.url("/x?signature=s").replace("127.0.0.1", "localhost");
    let lines = format!("Location: {target}\r\n");
    front.fault(move |_, _| Some(Fault::Status(302, lines.clone(), String::new())));
    let url = front.url("/x?token=t").replace("http://", "http://ann:hidden@");
    let source = open(&url, &quick()).unwrap();
    assert_eq!(source.read_range(10..20).unwrap(), bytes(1000)[10..20]);
    assert!(front.seen().iter().all(|seen| seen.header("authorization").is_some()));
    for seen in other.seen() {
        assert_eq!(seen.target, "/x?signature=s");
        assert_eq!((seen.header("authorization"), seen.header("referer")), (None, None));
    }
    assert_eq!(source.to_string(), front.url("/x"));
    assert!(!format!("{source:?}").contains("hidden"));

    // Further requests go to the other host at once, until that refuses them.
    let large = Server::with(bytes(300_000));
    let lines = format!("Location: {}\r\n", large.url("/x").replace("127.0.0.1", "localhost"));
    front.fault(move |_, _| Some(Fault::Status(307, lines.clone(), String::new())));
    let source = open(&url, &quick()).unwrap();
    front.seen();
    for (expected, refusals) in [(0, 0), (1, 1), (1, 0)] {
        large.seen();
        large.fault(move |_, count| (count < refusals).then(|| Fault::Status(403, String::new(), String::new())));
        assert_eq!(source.read_range(20_000..30_000).unwrap(), bytes(300_000)[20_000..30_000]);
        assert_eq!(front.seen().len(), expected);
    }

    for (target, expected) in [
        ("ftp://127.0.0.1/x", "redirect"),
        ("file:///etc/passwd", "redirect"),
        (front.url("/x").as_str(), "too many redirects"),
    ] {
        let lines = format!("Location: {target}\r\n");
        front.fault(move |_, _| Some(Fault::Status(302, lines.clone(), String::new())));
        let error = open(&url, &quick()).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
        assert!(!error.to_string().contains("hidden") && !error.to_string().contains("token"), "{error}");
    }
}

#[test]
fn a_request_that_waits_is_cancelled() {
    let server = Server::with(bytes(300_000));
    let source = open(&server.url("/x"), &quick()).unwrap();
    server.fault(|_, _| Some(Fault::Stall(10)));
    is_cancelled_soon(|| source.read_range(20_000..30_000));
    server.fault(|_, _| Some(Fault::Silence));
    is_cancelled_soon(|| source.read_ranges(&[20_000..30_000, 200_000..200_001]));
    is_cancelled_soon(|| open(&server.url("/x"), &quick()));
    is_cancelled_soon(|| {
        let mut sink = create(&server.url("/x"), &quick())?;
        sink.append(b"new")?;
        sink.commit()
    });
    server.fault(|_, _| None);
    assert_eq!(source.read_range(20_000..30_000).unwrap(), bytes(300_000)[20_000..30_000]);
}

#[test]
fn a_cancelled_upload_is_removed() {
    let server = Server::start();
    let mut sink = upload(&server, false, Vec::new());
    let is_sent = Arc::new(AtomicBool::new(false));
    let seen_put = Arc::clone(&is_sent);
    server.fault(move |seen, _| match seen.method.as_str() {
        "PUT" => {
            seen_put.store(true, Ordering::Relaxed);
            Some(Fault::Silence)
        }
        "POST" => Some(Fault::Status(200, String::new(), "<A><UploadId>u1</UploadId></A>".to_owned())),
        _ => Some(Fault::Status(204, String::new(), String::new())),
    });
    let began = Instant::now();
    let cancelled = cancellable(
        move || is_sent.load(Ordering::Relaxed),
        || {
            let appended = sink.append(&bytes(7000));
            drop(sink);
            appended
        },
    );
    assert_eq!(cancelled.unwrap_err().kind(), ErrorKind::Cancelled);
    let removed = server.seen().into_iter().filter(|seen| seen.method == "DELETE").count();
    assert_eq!(removed, 1);
    assert!(began.elapsed() < Duration::from_secs(10));
}

#[test]
fn http_keeps_the_laws_of_a_sink() {
    sink_laws(|old| {
        let server = Server::start();
        if let Some(old) = old {
            server.put("/out", old, "\"old\"");
        }
        let sink = create(&server.url("/out"), &quick()).unwrap();
        SinkCase::new(sink, move || server.object("/out")).streamed(u64::MAX)
    });
}

#[test]
fn an_upload_is_repeated_as_a_whole() {
    let server = Server::start();
    let faults = [Fault::Close, Fault::Status(503, String::new(), String::new())];
    server.fault(move |_, count| faults.get(count).cloned());
    let mut sink = create(&server.url("/out"), &quick()).unwrap();
    sink.append(&bytes(1_000_000)).unwrap();
    sink.patch(0, b"patched").unwrap();
    sink.commit().unwrap();
    let written = server.object("/out").unwrap();
    assert_eq!((&written[..7], &written[7..]), (&b"patched"[..], &bytes(1_000_000)[7..]));
    assert_eq!(server.seen().len(), 3);

    server.fault(|_, _| Some(Fault::Status(403, String::new(), String::new())));
    let error = create(&server.url("/out"), &quick()).unwrap().commit().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied);
    assert_eq!(error.to_string(), format!("cannot write to {}: HTTP status 403 Forbidden", server.url("/out")));
}

/// Regression: a success before the body was received was believed.
#[test]
fn an_early_success_is_an_error() {
    let server = Server::start();
    server.fault(|seen, _| (seen.method == "PUT").then(|| Fault::Status(201, String::new(), String::new())));
    let mut sink = create(&server.url("/x"), &quick()).unwrap();
    sink.append(&bytes(3 << 20)).unwrap();
    let error = sink.commit().unwrap_err();
    assert!(error.to_string().contains("before it had received everything"), "{error}");
}

#[test]
fn uploads_follow_redirects_and_send_the_body_once() {
    let (front, other) = (Server::start(), Server::start());
    let upload = |content: &[u8]| {
        let url = front.url("/out?token=t").replace("http://", "http://ann:hidden@");
        let mut sink = create(&url, &quick()).unwrap();
        sink.append(content).unwrap();
        sink.commit()
    };
    for (status, size) in [(301, 2_000_000), (302, 10), (307, 2_000_000), (308, 0)] {
        let content = bytes(size);
        // The same address by another name is another host.
        let target = other.url("/there?signature=s").replace("127.0.0.1", "localhost");
        let lines = format!("Location: {target}\r\n");
        front.fault(move |_, _| Some(Fault::Status(status, lines.clone(), String::new())));
        let before = (front.received(), other.received());
        upload(&content).unwrap();
        assert_eq!(other.object("/there").unwrap(), content);
        let sent = (front.received() - before.0, other.received() - before.1);
        assert_eq!(sent, (if size == 10 { 10 } else { 0 }, size), "{status}");
        let (first, second) = (front.seen(), other.seen());
        assert_eq!((first.len(), second.len()), (1, 1), "{status}");
        assert_eq!((first[0].method.as_str(), second[0].method.as_str()), ("PUT", "PUT"));
        assert!(first[0].header("authorization").is_some());
        assert_eq!(second[0].header("authorization"), None);
        assert_eq!(second[0].target, "/there?signature=s");
    }

    // On the same host, credentials are kept.
    front.fault(|seen, _| {
        let is_front = seen.target.starts_with("/out");
        is_front.then(|| Fault::Status(307, "Location: /here\r\n".to_owned(), String::new()))
    });
    upload(b"content").unwrap();
    assert_eq!(front.object("/here").unwrap(), b"content");
    assert!(front.seen().iter().all(|seen| seen.header("authorization").is_some()));

    for (status, target, expected) in [
        (307, "ftp://127.0.0.1/x", "redirect to another protocol"),
        (307, "http://", "the server redirects to an invalid address"),
        (307, "/out?token=t", "too many redirects"),
        (303, "/here", "HTTP status 303 See Other, a redirect that is not followed"),
    ] {
        let lines = format!("Location: {target}\r\n");
        front.fault(move |_, _| Some(Fault::Status(status, lines.clone(), String::new())));
        let error = upload(b"content").unwrap_err();
        assert_eq!(error.to_string(), format!("cannot write to {}: {expected}", front.url("/out")));
    }
}

/// A new object of parts with 1000 bytes, on a server with the protocol of S3 that gives these answers to the request
/// that completes an upload. `replaces` an object that looks like the new one, which appears otherwise.
fn upload(server: &Server, replaces: bool, completions: Vec<Fault>) -> Box<UploadSink> {
    let ok = |lines: &str, body: &str| Some(Fault::Status(200, lines.to_owned(), body.to_owned()));
    let completed = AtomicUsize::new(0);
    server.fault(move |seen, _| match seen.method.as_str() {
        "POST" if seen.target.ends_with("?uploads") || seen.target.ends_with("?uploads=") => {
            let id = "<UploadId>u1</UploadId>";
            ok("", &format!("<InitiateMultipartUploadResult>{id}</InitiateMultipartUploadResult>"))
        }
        "POST" => {
            let count = completed.fetch_add(1, Ordering::Relaxed);
            completions.get(count).cloned().or_else(|| Some(Fault::Status(404, String::new(), String::new())))
        }
        "PUT" => ok("ETag: \"part\"\r\n", ""),
        "HEAD" if !replaces && completed.load(Ordering::Relaxed) == 0 => {
            Some(Fault::Status(404, String::new(), String::new()))
        }
        "HEAD" => ok("ETag: \"new\"\r\nLast-Modified: Thu, 01 Jan 2026 00:00:00 GMT\r\n", &"x".repeat(5500)),
        _ => ok("", ""),
    });
    let [_, (url, options)] = both(server, "6");
    let Ok(Object::Store(object)) = object(&url, &options) else { panic!("{url} is in a store") };
    Box::new(UploadSink::new(object, url, options.limits(), 1000))
}

#[test]
fn the_first_part_is_sent_last() {
    let server = Server::start();
    let done = "<CompleteMultipartUploadResult><ETag>e</ETag></CompleteMultipartUploadResult>";
    let mut sink = upload(&server, false, vec![Fault::Status(200, String::new(), done.to_owned())]);
    sink.append(&bytes(5500)).unwrap();
    sink.patch(990, &[1; 10]).unwrap();
    sink.patch(5490, &[1; 10]).unwrap();
    sink.commit().unwrap();
    let seen: Vec<String> = server.seen().into_iter().map(|seen| format!("{} {}", seen.method, seen.target)).collect();
    let part = |text: &String| text.split("partNumber=").nth(1).map(|rest| rest[..1].to_owned());
    let mut parts: Vec<String> = seen.iter().filter_map(part).collect();
    assert_eq!((seen.len(), parts.len()), (9, 6), "{seen:?}");
    parts.sort();
    assert_eq!(parts.concat(), "123456");
}

#[test]
fn a_lost_answer_to_the_end_of_an_upload_is_cleared_up() {
    let server = Server::start();
    let failed = "<Error><Code>InternalError</Code></Error>";
    let sink = upload(&server, false, vec![Fault::Status(200, String::new(), failed.to_owned()), Fault::Close]);
    let mut sink: Box<dyn ByteSink> = sink;
    sink.append(&bytes(5500)).unwrap();
    sink.commit().unwrap();

    // Without a lost answer, a missing upload is an error, and so is an object of another size, or the one before.
    for (completions, size, replaces) in
        [(vec![], 5500, false), (vec![Fault::Close], 5600, false), (vec![Fault::Close], 5500, true)]
    {
        let mut sink: Box<dyn ByteSink> = upload(&server, replaces, completions);
        sink.append(&bytes(size)).unwrap();
        assert_eq!(sink.commit().unwrap_err().kind(), ErrorKind::NotFound);
    }
}

#[test]
fn unfinished_uploads_are_removed() {
    let server = Server::start();
    for ending in ["abort", "drop", "poisoned", "failed commit"] {
        let mut sink: Box<dyn ByteSink> = upload(&server, false, Vec::new());
        sink.append(&bytes(5500)).unwrap();
        match ending {
            "abort" => drop(sink.abort().unwrap()),
            "drop" => drop(sink),
            "poisoned" => {
                assert_eq!(sink.patch(2000, b"x").unwrap_err().kind(), ErrorKind::NotSupported);
                assert!(sink.append(b"x").is_err());
                assert!(sink.commit().is_err());
            }
            _ => assert!(sink.commit().is_err()),
        }
        let removed = server.seen().into_iter().filter(|seen| seen.method == "DELETE").count();
        assert_eq!(removed, 1, "{ending}");
    }
}

#[test]
fn a_cached_object_costs_one_request() {
    let content = bytes(3_000_000);
    let server = Server::with(content.clone());
    let directory = tempfile::tempdir().unwrap();
    let cache = Cache::open(directory.path(), Cache::DEFAULT_BYTES).unwrap();
    let analysis = |content: &[u8]| {
        let source = cache.open_object(&server.url("/x?token=1"), &quick()).unwrap();
        for ranges in [vec![0..16_384, 2_900_000..3_000_000], vec![1_000_000..1_001_000, 2_000_000..2_001_000]] {
            for (range, read) in ranges.iter().zip(source.read_ranges(&ranges).unwrap()) {
                assert_eq!(read, content[range.start as usize..range.end as usize]);
            }
        }
        server.seen().len()
    };
    assert_eq!(analysis(&content), 5);
    assert_eq!(analysis(&content), 1, "only the request that says the version");
    let other: Vec<u8> = content.iter().map(|byte| byte ^ 1).collect();
    server.put("/x", other.clone(), "\"v2\"");
    assert_eq!(analysis(&other), 5);
    server.put("/x", content.clone(), "W/\"v3\"");
    assert_eq!(analysis(&content), 5);
    server.put("/x", other.clone(), "W/\"v4\"");
    assert_eq!(analysis(&other), 5, "the same size and time, and another weak ETag");
    assert_eq!(analysis(&other), 1);
}

#[test]
fn other_schemes_are_not_supported() {
    for url in ["ftp://host/x", "root://host//x", "x.root"] {
        assert!(!is_remote(url));
        assert_eq!(open(url, &quick()).unwrap_err().kind(), ErrorKind::NotSupported);
    }
    assert_eq!(list("http://host/x/", &quick()).unwrap_err().kind(), ErrorKind::NotSupported);
}
