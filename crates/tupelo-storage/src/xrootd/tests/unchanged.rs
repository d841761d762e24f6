//! Files that are modified while they are read, and copies that differ: scripted, and on the `xrootd` server.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use super::super::*;
use super::fake::{DATA_SERVER, Fake, TIME, WITH_PAGES, code};
use super::{bytes, quick};
use crate::{ByteSource, ErrorKind};

const MODIFIED: &str = "it was modified after it was opened";

fn changed(found: crate::Result<impl std::fmt::Debug>) -> String {
    let error = found.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Changed, "{error}");
    error.to_string()
}

/// Found by an attack: a file that was overwritten in place was read as a mixture of both versions.
#[test]
fn a_file_that_is_modified_while_it_is_open_is_an_error() {
    for flags in [DATA_SERVER, WITH_PAGES] {
        let content = bytes(1 << 20);
        let (reads, expected) = (AtomicUsize::new(0), content.clone());
        let fake = Fake::start(move |peer| {
            peer.welcome(flags)?;
            loop {
                let request = peer.request()?;
                let is_read = matches!(request.code, code::READ | code::PGREAD | code::READV);
                let read = reads.fetch_add(usize::from(is_read), Ordering::Relaxed);
                match request.code {
                    code::STAT => peer.stat(request.stream, content.len(), TIME + read.saturating_sub(1))?,
                    _ => peer.respond(&request, &content)?,
                }
            }
        });
        let [one, many] = [(); 2].map(|()| open(&fake.url(), &quick()).unwrap());
        assert_eq!(one.read_range(5..5000).unwrap(), expected[5..5000]);
        assert!(changed(one.read_range(5..5000)).ends_with(MODIFIED));
        assert!(changed(many.read_ranges(&[0..10, 1_000_000..1_000_010])).ends_with(MODIFIED));
        assert_eq!(fake.count(code::READV), 1);
    }
}

#[test]
fn the_check_of_a_read_takes_no_round_trip() {
    let content = bytes(10_000);
    let expected = content.clone();
    let fake = Fake::start(move |peer| {
        peer.welcome(WITH_PAGES)?;
        loop {
            let request = peer.request()?;
            if request.code == code::PGREAD {
                let check = peer.request()?;
                assert_eq!(check.code, code::STAT);
                peer.respond(&request, &content)?;
                peer.respond(&check, &content)?;
            } else {
                peer.respond(&request, &content)?;
            }
        }
    });
    let source = open(&fake.url(), &quick()).unwrap();
    assert_eq!(source.traffic().unwrap().requests(), 1);
    assert_eq!(source.read_range(5..5000).unwrap(), expected[5..5000]);
    assert_eq!(source.traffic().unwrap().requests(), 2, "the file, and the read with its check");
}

#[test]
fn a_check_that_is_answered_before_the_read_is_repeated() {
    for postpones in [true, false] {
        let checks = AtomicUsize::new(0);
        let content = bytes(10_000);
        let fake = Fake::start(move |peer| {
            peer.welcome(WITH_PAGES)?;
            loop {
                let request = peer.request()?;
                match request.code {
                    code::PGREAD => {
                        let check = peer.request()?;
                        if postpones {
                            peer.wait(request.stream, code::WAITRESP, 10)?;
                        }
                        checks.fetch_add(1, Ordering::Relaxed);
                        peer.respond(&check, &content)?;
                        peer.respond(&request, &content)?;
                    }
                    code::STAT => {
                        let changes = checks.load(Ordering::Relaxed);
                        peer.stat(request.stream, content.len(), TIME + changes)?;
                    }
                    _ => peer.respond(&request, &content)?,
                }
            }
        });
        let source = open(&fake.url(), &quick()).unwrap();
        assert!(changed(source.read_range(5..5000)).ends_with(MODIFIED));
        assert_eq!(fake.count(code::STAT), 2);
    }
}

#[test]
fn a_read_that_is_repeated_is_checked_again() {
    let content = bytes(10_000);
    let expected = content.clone();
    let reads = AtomicUsize::new(0);
    let fake = Fake::start(move |peer| {
        peer.welcome(WITH_PAGES)?;
        loop {
            let request = peer.request()?;
            if request.code == code::PGREAD && reads.fetch_add(1, Ordering::Relaxed) == 0 {
                peer.wait(request.stream, code::WAIT, 0)?;
            } else {
                peer.respond(&request, &content)?;
            }
        }
    });
    let source = open(&fake.url(), &quick()).unwrap();
    assert_eq!(source.read_range(5..5000).unwrap(), expected[5..5000]);
    assert_eq!((fake.count(code::PGREAD), fake.count(code::STAT)), (2, 2));
}

/// Found by an attack: the bytes of a copy that was another version followed those of the first one.
#[test]
fn another_copy_continues_a_file_only_if_size_and_time_are_equal() {
    for (size, time, expected) in [
        (1000, TIME, None),
        (1000, TIME + 1, Some("it may be another version; open it again")),
        (1001, TIME, Some("its size changed from 1000 to 1001 bytes")),
    ] {
        let server = |size: usize, time: usize, is_lost: bool| {
            Fake::start(move |peer| {
                peer.welcome(DATA_SERVER)?;
                loop {
                    let request = peer.request()?;
                    match request.code {
                        code::OPEN => peer.opened(request.stream, size, time)?,
                        code::READ if is_lost && request.range().0 > 0 => return None,
                        _ => peer.respond(&request, &bytes(size))?,
                    }
                }
            })
        };
        let (first, second) = (server(1000, TIME, true), server(size, time, false));
        let ports = [first.port, second.port].map(i32::from);
        let opens = AtomicUsize::new(0);
        let redirector = Fake::start(move |peer| {
            peer.welcome(DATA_SERVER)?;
            loop {
                let request = peer.request()?;
                match request.code {
                    code::OPEN => {
                        let port = ports[opens.fetch_add(1, Ordering::Relaxed).min(1)];
                        peer.redirect(request.stream, port, "127.0.0.1")?;
                    }
                    _ => peer.respond(&request, &[])?,
                }
            }
        });
        let source = open(&redirector.url(), &quick()).unwrap();
        assert_eq!(source.read_range(0..10).unwrap(), bytes(10));
        match expected {
            None => assert_eq!(source.read_range(5..10).unwrap(), bytes(10)[5..]),
            Some(expected) => {
                let error = changed(source.read_range(5..10));
                assert!(error.contains(expected), "{error}");
                changed(source.read_range(0..10));
            }
        }
    }
}

/// A second has many versions.
#[test]
fn a_file_that_was_modified_just_now_has_no_version() {
    let time = Arc::new(AtomicUsize::new(0));
    let times = Arc::clone(&time);
    let fake = Fake::start(move |peer| {
        peer.welcome(DATA_SERVER)?;
        loop {
            let request = peer.request()?;
            match request.code {
                code::OPEN => peer.opened(request.stream, 7, times.load(Ordering::Relaxed))?,
                _ => peer.respond(&request, &bytes(7))?,
            }
        }
    });
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as usize;
    for (modified, has_version) in
        [(0, false), (1, true), (TIME, true), (now - 11, true), (now - 5, false), (now + 60, false), (1 << 62, false)]
    {
        time.store(modified, Ordering::Relaxed);
        let source = open(&fake.url(), &quick()).unwrap();
        assert_eq!(source.version(), has_version.then(|| format!("7 {modified}")), "modified {modified}, now {now}");
        assert_eq!(source.read_range(0..7).unwrap(), bytes(7));
    }
}

#[cfg(unix)]
#[test]
fn a_file_that_is_overwritten_on_a_real_server_is_an_error() {
    let Some(server) = super::server::Server::start() else { return };
    for len in [1000, 5 << 20] {
        let source = open(&server.put("x", &bytes(len)), &quick()).unwrap();
        assert!(source.read_range(0..len as u64).unwrap() == bytes(len));
        let before = std::fs::metadata(server.path("x")).unwrap().modified().unwrap();
        let file = std::fs::File::options().write(true).open(server.path("x")).unwrap();
        file.set_modified(before + std::time::Duration::from_secs(1)).unwrap();
        for range in [0..10, 0..len as u64] {
            assert!(changed(source.read_range(range)).ends_with(MODIFIED));
        }
        assert!(changed(source.read_ranges(&[0..10, len as u64 - 10..len as u64])).ends_with(MODIFIED));
    }
}
