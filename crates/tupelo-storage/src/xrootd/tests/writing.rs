//! Listing and writing on the `xrootd` server.

use std::fs;

use super::super::*;
use super::fake::{DATA_SERVER, Fake, code};
use super::server::Server;
use super::{bytes, options, quick};
use crate::laws::{SinkCase, sink_laws};
use crate::{ByteSink, ByteSource, ErrorKind, Storage};

#[test]
fn directories_are_listed_with_sizes() {
    let Some(server) = Server::start() else { return };
    server.put("folder/b.root", &bytes(23));
    server.put("folder/a b", b"");
    server.put("folder/nested/x", b"");
    let expected = |query: &str| {
        let entry = |name: &str, size| Entry { url: server.url(&format!("folder/{name}{query}")), size };
        [entry("a b", Some(0)), entry("b.root", Some(23)), entry("nested/", None)]
    };
    for url in [server.url("folder"), server.url("folder/"), server.url("folder/?")] {
        assert_eq!(list(&url, &quick()).unwrap(), expected(""), "{url}");
    }
    assert_eq!(Storage::new(quick()).list(&server.url("folder?a=1")).unwrap(), expected("?a=1"));
    let file = server.url("folder/b.root?a=1");
    assert_eq!(Storage::new(quick()).list(&file).unwrap(), [Entry { url: file, size: Some(23) }]);
    let missing = list(&server.url("missing"), &quick()).unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::NotFound, "{missing}");

    // More than fits into one response.
    for i in 0..3000 {
        fs::write(server.path("folder").join(format!("nested/{i:040}")), b"").unwrap();
    }
    let entries = list(&server.url("folder/nested/"), &quick()).unwrap();
    assert_eq!(entries.len(), 3001);
    assert!(entries.is_sorted_by_key(|entry| &entry.url));
}

#[test]
fn old_servers_list_names_only() {
    let fake = Fake::start(|peer| {
        peer.welcome(DATA_SERVER)?;
        loop {
            let request = peer.request()?;
            let body: &[u8] = match request.text().as_str() {
                "/folder/x.root" => b"b\na\0",
                "/folder/x.root/a" => b"1 5 0 1700000000\0",
                _ => b"2 4096 2 1700000000\0",
            };
            peer.reply(request.stream, code::OK, body)?;
        }
    });
    let entries = list(&fake.url(), &quick()).unwrap();
    let entry = |name: &str, size| Entry { url: format!("{}/{name}", fake.url()), size };
    assert_eq!(entries, [entry("a", Some(5)), entry("b/", None)]);
}

#[test]
fn files_keep_the_laws_of_a_sink() {
    let Some(server) = Server::start() else { return };
    let server = std::rc::Rc::new(server);
    server.put("other", b"");
    sink_laws(|old| {
        let url = server.url("folder/x.root");
        match old {
            Some(old) => drop(server.put("folder/x.root", old)),
            None => drop(fs::remove_file(server.path("folder/x.root"))),
        }
        let path = server.path("folder/x.root");
        SinkCase::new(create(&url, &quick()).unwrap(), move || fs::read(&path).ok())
    });
}

/// Names in the folder of a file.
fn names(server: &Server) -> Vec<String> {
    let entries = fs::read_dir(server.path("folder")).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn no_temporary_file_is_left_without_a_checkpoint() {
    let Some(server) = Server::start() else { return };
    server.put("other", b"");
    let url = server.url("folder/x.root");
    for ending in ["abort", "drop", "commit"] {
        let mut sink = Box::new(create(&url, &quick()).unwrap());
        sink.append(&bytes(9 << 20)).unwrap();
        assert!(names(&server).iter().all(|name| name.starts_with("x.root.tmp-")));
        match ending {
            "abort" => assert_eq!(sink.abort().unwrap(), None),
            "drop" => drop(sink),
            _ => sink.commit().unwrap(),
        }
        let expected: &[&str] = if ending == "commit" { &["x.root"] } else { &[] };
        assert_eq!(names(&server), expected, "{ending}");
    }
    let written = open(&url, &quick()).unwrap();
    assert!(written.read_range(0..9 << 20).unwrap() == bytes(9 << 20));

    let mut sink = Box::new(create(&url, &quick()).unwrap());
    sink.append(b"kept").unwrap();
    sink.patch(0, b"K").unwrap();
    sink.checkpoint().unwrap();
    sink.append(b" and more").unwrap();
    let kept = sink.abort().unwrap().unwrap();
    assert_eq!(open(&kept, &quick()).unwrap().read_range(0..4).unwrap(), "Kept");
    assert_eq!(open(&kept, &quick()).unwrap().size().unwrap(), 4);
}

#[test]
fn a_server_that_stops_ends_an_upload() {
    let Some(mut server) = Server::start() else { return };
    server.put("other", b"");
    let url = server.url("folder/x.root");
    let mut sink = Box::new(create(&url, &options(&[("max_attempts", "1")])).unwrap());
    sink.append(&bytes(100)).unwrap();
    server.kill();
    let error = sink.checkpoint().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(sink.append(b"x").is_err(), "it is poisoned");
    assert!(sink.commit().is_err());
}

#[test]
fn a_server_that_refuses_is_an_error() {
    let read_only = |_: &std::path::Path| "all.export / r/o\n".to_owned();
    let Some(server) = Server::configured(read_only) else { return };
    server.put("other", b"");
    let error = create(&server.url("folder/x.root"), &quick()).unwrap_err();
    assert!(error.to_string().ends_with("file path marked read/only"), "{error}");
}
