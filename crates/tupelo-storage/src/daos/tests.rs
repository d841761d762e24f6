//! Calls, sizes, waiting and failures.

use std::ops::Range;
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::connection::{Deadline, Stop};
use super::testing::{Knobs, Server, new_name};
use super::{Access, DaosContainer, DaosKey, DaosPlace, NewValue};
use crate::error::{Error, ErrorKind, Result};
use crate::laws::is_cancelled_soon;
use crate::net::Options;

fn open_as(pool: &str, container: &str, options: &Options, access: Access) -> Result<DaosContainer> {
    let place = DaosPlace::new(pool, container).unwrap();
    let base = format!("daos://{pool}/{container}:");
    DaosContainer::open(&place, &base, options, access, "open", &format!("{base}x"))
}

/// A new container of the stand-in.
fn container(knobs: &Knobs, others: &[(&str, &str)]) -> DaosContainer {
    let container = open_as("tank", &new_name(), &knobs.options(others), Access::Write).unwrap();
    // Opening is not counted.
    knobs.take_counts();
    container
}

fn key(dkey: u64, akey: u64) -> DaosKey {
    DaosKey { class: "SX".into(), hi: 1, lo: 2, dkey, akey }
}

fn value(key: &DaosKey, content: impl Into<Bytes>) -> NewValue {
    let content: Bytes = content.into();
    let middle = content.len() / 2;
    NewValue { key: key.clone(), pieces: vec![content.slice(..middle), content.slice(middle..)], is_new: true }
}

/// Bytes that depend on the key.
fn content(key: &DaosKey, bytes: usize) -> Bytes {
    (0..bytes).map(|at| (at as u64 * 7 + key.dkey * 31 + key.akey) as u8).collect()
}

fn whole(key: &DaosKey, bytes: u64) -> (DaosKey, Range<u64>) {
    (key.clone(), 0..bytes)
}

#[test]
fn akeys_of_a_dkey_share_a_call_in_batches() {
    let knobs = Knobs::new();
    let keys: Vec<DaosKey> = (0..10).flat_map(|dkey| (0..20).map(move |akey| key(dkey, akey))).collect();
    for (requests, calls) in [("batch", 10), ("queue", 200), ("blocking", 200)] {
        let container = container(&knobs, &[("daos_requests", requests)]);
        container.update(&keys.iter().map(|key| value(key, content(key, 50))).collect::<Vec<_>>()).unwrap();
        assert_eq!(knobs.take_counts(), (calls, 0), "{requests}");
        let ranges: Vec<_> = keys.iter().rev().map(|key| whole(key, 50)).collect();
        let values = container.get_ranges(&ranges).unwrap();
        assert_eq!(knobs.take_counts(), (0, calls), "{requests}");
        assert!(values.iter().zip(keys.iter().rev()).all(|(found, key)| *found == content(key, 50)));
        assert_eq!(container.sizes(&keys).unwrap(), [50; 200]);
        assert_eq!(knobs.take_counts(), (0, calls), "{requests}");
        assert_eq!(container.traffic().requests(), 3 * calls);
    }
}

#[test]
fn calls_of_a_batch_run_at_the_same_time() {
    let knobs = Knobs::new();
    let values = |container: &DaosContainer| {
        let values: Vec<_> = (0..100).map(|dkey| value(&key(dkey, 0), "content")).collect();
        container.update(&values).unwrap();
        let ranges: Vec<_> = (0..100).map(|dkey| whole(&key(dkey, 0), 7)).collect();
        let began = Instant::now();
        knobs.set_latency(50_000);
        assert_eq!(container.get_ranges(&ranges).unwrap(), ["content"; 100]);
        knobs.set_latency(0);
        began.elapsed()
    };
    for requests in ["batch", "queue"] {
        let time = values(&container(&knobs, &[("daos_requests", requests)]));
        assert!(time >= Duration::from_millis(50) && time < Duration::from_millis(1000), "{requests}: {time:?}");
    }
    let time = values(&container(&knobs, &[("daos_requests", "blocking")]));
    assert!(time >= Duration::from_millis(5000), "{time:?}");
}

#[test]
fn a_value_is_fetched_once_for_all_its_ranges() {
    let knobs = Knobs::new();
    let container = container(&knobs, &[]);
    let (cage, page) = (key(1, 1), key(1, 2));
    container.update(&[value(&cage, content(&cage, 1000)), value(&page, content(&page, 80))]).unwrap();
    knobs.take_counts();
    let slices = |ranges: &[(DaosKey, Range<u64>)]| {
        let found = container.get_ranges(ranges).unwrap();
        for ((key, range), found) in ranges.iter().zip(found) {
            let all = content(key, if *key == cage { 1000 } else { 80 });
            assert_eq!(found, all.slice(range.start as usize..range.end as usize), "{key} {range:?}");
        }
        knobs.take_counts().1
    };
    let cage = |range| (cage.clone(), range);
    // The size of what begins at 0 is known.
    assert_eq!(slices(&[cage(0..1000), whole(&page, 80)]), 1);
    assert_eq!(slices(&[cage(0..1000), cage(0..10), cage(5..5)]), 1);
    // One query of sizes, one fetch.
    assert_eq!(slices(&[cage(100..200), cage(200..300), cage(0..1000), whole(&page, 80)]), 2);
    // Too short at first: then its size is queried.
    assert_eq!(slices(&[cage(0..10), whole(&page, 80)]), 3);
    let traffic = container.traffic().bytes();
    slices(&[cage(1..2), cage(998..999)]);
    assert_eq!(container.traffic().bytes() - traffic, 1000);
    assert_eq!(slices(&[cage(7..7)]), 0);
}

#[test]
fn large_values_have_calls_of_their_own() {
    let server = Server::shared();
    let container = open_as(&server.pool, &new_name(), &server.options(&[]), Access::Write).unwrap();
    let keys: Vec<DaosKey> = (0..5).map(|akey| key(1, akey)).collect();
    let sizes = [9 << 20, 9 << 20, 20 << 20, 1, 6 << 20];
    let values: Vec<_> = keys.iter().zip(sizes).map(|(key, bytes)| value(key, content(key, bytes))).collect();
    container.update(&values).unwrap();
    let ranges: Vec<_> = keys.iter().zip(sizes).map(|(key, bytes)| whole(key, bytes as u64)).collect();
    let found = container.get_ranges(&ranges).unwrap();
    assert!(found.iter().zip(&keys).zip(sizes).all(|((found, key), bytes)| *found == content(key, bytes)));
    assert_eq!(container.traffic().requests(), 8, "calls for 9, 9, 20 and 6 MiB");
}

#[test]
fn the_missing_value_is_named() {
    let server = Server::shared();
    for requests in ["batch", "queue", "blocking"] {
        let options = server.options(&[("daos_requests", requests)]);
        let container = open_as(&server.pool, &new_name(), &options, Access::Write).unwrap();
        let keys: Vec<DaosKey> = (0..300).map(|akey| key(akey % 3, akey)).collect();
        let missing = &keys[171];
        let present = keys.iter().filter(|key| *key != missing);
        container.update(&present.map(|key| value(key, "content")).collect::<Vec<_>>()).unwrap();
        for range in [0..7, 1..3] {
            let ranges: Vec<_> = keys.iter().map(|key| (key.clone(), range.clone())).collect();
            let error = container.get_ranges(&ranges).unwrap_err();
            assert_eq!(
                (error.kind(), error.uri()),
                (ErrorKind::NotFound, &*format!("{container}{missing}")),
                "{error}"
            );
        }
        // The one that exists is named.
        let error = container.update(&[value(missing, "new"), value(&keys[174], "new")]).unwrap_err();
        assert_eq!((error.kind(), error.uri()), (ErrorKind::Changed, &*format!("{container}{}", keys[174])), "{error}");
        assert_eq!(container.get(&keys[174], 100).unwrap(), "content");
        container.remove(&keys).unwrap();
        container.remove(&keys[..1]).unwrap();
        assert_eq!(container.sizes(&keys).unwrap(), [0; 300]);
    }
}

#[test]
fn values_have_a_maximum_size() {
    let server = Server::shared();
    let container = open_as(&server.pool, &new_name(), &server.options(&[]), Access::Write).unwrap();
    container.update(&[value(&key(1, 1), "content")]).unwrap();
    let error = container.get(&key(1, 1), 6).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotSupported);
    assert!(error.to_string().ends_with("expected at most 6 bytes, found 7"), "{error}");
    // A range that no value can have allocates nothing.
    let error = container.get_ranges(&[whole(&key(1, 1), u64::MAX)]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutOfRange);
    assert!(error.to_string().ends_with("it ends at byte 7"), "{error}");
}

#[test]
fn errors_of_daos_have_their_names() {
    let knobs = Knobs::new();
    for requests in ["batch", "queue", "blocking"] {
        let container = container(&knobs, &[("daos_requests", requests)]);
        let values = [value(&key(1, 1), "a"), value(&key(2, 1), "b"), value(&key(3, 1), "c")];
        knobs.set_fault("update:2:-1007");
        let error = container.update(&values).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NoSpace);
        let reason = "the pool is full (DER_NOSPACE, -1007)";
        assert_eq!(error.to_string(), format!("cannot write {container}SX/1/2/2/1: {reason}"));
        container.update(&[value(&key(2, 1), "b")]).unwrap();
        let ranges = [whole(&key(1, 1), 1), whole(&key(2, 1), 1), whole(&key(3, 1), 1)];
        knobs.set_fault("fetch:3:-2001");
        let error = container.get_ranges(&ranges).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("cannot read {container}SX/1/2/3/1: I/O error on the medium (DER_IO, -2001)")
        );
        assert_eq!(container.get_ranges(&ranges).unwrap(), ["a", "b", "c"]);
    }
}

#[test]
fn containers_for_reading_are_not_written() {
    let server = Server::shared();
    let (name, options) = (new_name(), server.options(&[]));
    let writer = open_as(&server.pool, &name, &options, Access::Write).unwrap();
    writer.update(&[value(&key(1, 1), "content")]).unwrap();
    let reader = open_as(&server.pool, &name, &options, Access::Read).unwrap();
    assert_eq!(reader.get(&key(1, 1), 100).unwrap(), "content");
    for error in [reader.update(&[value(&key(1, 2), "x")]), reader.remove(&[key(1, 1)])].map(Result::unwrap_err) {
        assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
        assert!(error.to_string().contains("DER_NO_PERM"), "{error}");
    }
    assert_eq!(reader.get(&key(1, 1), 100).unwrap(), "content");
}

#[test]
fn a_call_that_hangs_ends_by_its_time_limit() {
    let knobs = Knobs::new();
    for requests in ["batch", "queue"] {
        let container = container(&knobs, &[("total_timeout", "0.1"), ("daos_requests", requests)]);
        container.update(&[value(&key(1, 1), "content"), value(&key(2, 1), "other")]).unwrap();
        let is_late = |work: &dyn Fn() -> Result<()>| {
            let began = Instant::now();
            let error: Error = work().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Timeout);
            assert!(error.to_string().ends_with("no answer within 0.1 s (storage option total_timeout)"), "{error}");
            assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
        };
        knobs.set_fault("fetch:2:hang");
        is_late(&|| container.get_ranges(&[whole(&key(1, 1), 7), whole(&key(2, 1), 5)]).map(drop));
        knobs.set_fault("update:1:hang");
        is_late(&|| container.update(&[value(&key(1, 2), vec![7; 10_000])]));
        // The connection is used on, beside what still runs.
        let ranges = [whole(&key(1, 1), 7), whole(&key(2, 1), 5)];
        assert_eq!(container.get_ranges(&ranges).unwrap(), ["content", "other"]);
    }
}

/// What a caller no longer waits for is complete later, and writes to memory that is still there.
#[test]
fn late_answers_find_their_memory() {
    let knobs = Knobs::new();
    let container = container(&knobs, &[("total_timeout", "0.05")]);
    let keys: Vec<DaosKey> = (0..20).map(|dkey| key(dkey, 1)).collect();
    container.update(&keys.iter().map(|key| value(key, content(key, 1_000))).collect::<Vec<_>>()).unwrap();
    let ranges: Vec<_> = keys.iter().map(|key| whole(key, 1_000)).collect();
    knobs.set_latency(200_000);
    assert_eq!(container.get_ranges(&ranges).unwrap_err().kind(), ErrorKind::Timeout);
    knobs.set_latency(0);
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(container.get_ranges(&ranges).unwrap()[7], content(&keys[7], 1_000));
}

#[test]
fn cancelling_ends_the_wait() {
    let knobs = Knobs::new();
    let container = container(&knobs, &[]);
    container.update(&[value(&key(1, 1), "content")]).unwrap();
    is_cancelled_soon(|| {
        knobs.set_fault("hang");
        container.get(&key(1, 1), 100)
    });
    is_cancelled_soon(|| {
        knobs.set_fault("hang");
        container.update(&[value(&key(1, 2), "content")])
    });
    knobs.set_fault("");
    assert_eq!(container.get(&key(1, 1), 100).unwrap(), "content");
    drop(container);
}

#[test]
fn connecting_has_a_time_limit() {
    let knobs = Knobs::new();
    knobs.set_latency(500_000);
    let error = open_as("tank", &new_name(), &knobs.options(&[("total_timeout", "0.05")]), Access::Write).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout, "{error}");
    knobs.set_latency(0);
    is_cancelled_soon(|| {
        knobs.set_latency(400_000);
        let opened = open_as("tank", &new_name(), &knobs.options(&[]), Access::Write);
        knobs.set_latency(0);
        opened
    });
}

#[test]
fn connections_are_shared_while_they_are_used() {
    let knobs = Knobs::new();
    let (name, options) = (new_name(), knobs.options(&[]));
    let open = || open_as("tank", &name, &options, Access::Write).unwrap();
    let (a, b) = (open(), open());
    assert!(std::ptr::eq(a.connection(), b.connection()));
    let reader = open_as("tank", &name, &options, Access::Read).unwrap();
    assert!(!std::ptr::eq(a.connection(), reader.connection()));
    let threads: Vec<_> = (0..4).map(|_| (open_as("tank", &name, &options, Access::Write), knobs.queues())).collect();
    assert!(threads.iter().all(|(opened, queues)| opened.is_ok() && *queues == threads[0].1));
    drop((a, b, threads));
    let queues = knobs.queues();
    open();
    assert_eq!(knobs.queues(), queues + 1, "the last user closed the connection");
}

/// More objects than a connection keeps open.
#[test]
fn objects_are_opened_again() {
    let server = Server::shared();
    let container = open_as(&server.pool, &new_name(), &server.options(&[]), Access::Write).unwrap();
    let keys: Vec<DaosKey> = (0..600).map(|lo| DaosKey { lo, ..key(1, 1) }).collect();
    container.update(&keys.iter().map(|key| value(key, "content")).collect::<Vec<_>>()).unwrap();
    for keys in [&keys[..300], &keys[250..], &keys] {
        let ranges: Vec<_> = keys.iter().map(|key| whole(key, 7)).collect();
        assert_eq!(container.get_ranges(&ranges).unwrap(), vec!["content"; keys.len()]);
    }
}

#[test]
fn a_missing_library_is_explained() {
    let options = Options::new([("daos_library", "/no/such/libdaos.so")]).unwrap();
    let error = open_as("tank", "x", &options, Access::Read).unwrap_err();
    assert_eq!((error.kind(), error.uri()), (ErrorKind::NotSupported, "daos://tank/x:x"));
    let text = error.to_string();
    assert!(text.contains("the DAOS library /no/such/libdaos.so cannot be loaded: "), "{text}");
    assert!(text.contains("install the DAOS client") && text.contains("storage option daos_library"), "{text}");
    // A library without the functions of DAOS.
    let libc = ["libc.so.6", "libSystem.dylib"].map(|name| Options::new([("daos_library", name)]).unwrap());
    let errors = libc.map(|options| open_as("tank", "x", &options, Access::Read).unwrap_err().to_string());
    assert!(errors.iter().any(|text| text.contains("it lacks the function daos_init")), "{errors:?}");
}

#[test]
fn forked_children_are_refused() {
    let error = Stop::Forked.into_error("read", "daos://p/c:SX/1/2/3/4".to_owned());
    assert_eq!(error.kind(), ErrorKind::NotSupported);
    assert!(error.to_string().contains("start a new process instead"), "{error}");
}

#[test]
fn a_deadline_may_be_beyond_the_clock() {
    assert_eq!(Deadline::after(Duration::MAX).check(), Ok(()));
    assert_eq!(Deadline::after(Duration::ZERO).for_bytes(1 << 20).check(), Ok(()), "a large transfer has more time");
    assert_eq!(Deadline::after(Duration::ZERO).check(), Err(Stop::TimedOut(Duration::ZERO)));
}

#[test]
fn a_uuid_may_name_a_container() {
    let server = Server::shared();
    // None has this one, but DAOS looks for it.
    let uuid = "01234567-89ab-cdef-0123-456789abcdef";
    let error = open_as(&server.pool, uuid, &server.options(&[]), Access::Read).unwrap_err();
    assert!(
        error.is_not_found() && error.to_string().contains(&format!("the container {uuid} does not exist")),
        "{error}"
    );
}
