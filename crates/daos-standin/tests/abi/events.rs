//! Events, event queues, and the knobs that show in them.

use std::ptr;
use std::thread;
use std::time::{Duration, Instant};

use daos_standin::abi::{EQ_DESTROY_FORCE, Event, Handle, Iod, Iov, SgList};
use daos_standin::control::daos_standin_reset;
use daos_standin::daos_init;
use daos_standin::event::{
    daos_eq_create, daos_eq_destroy, daos_eq_poll, daos_event_fini, daos_event_init, daos_event_parent_barrier,
    daos_event_test,
};
use daos_standin::value::{daos_obj_fetch, daos_obj_update};

use crate::support::{MUST_EXIST, NO_TX, alone, count, fetch, iov, list, object, set, single, update};

/// `DAOS_HDL_INVAL`.
const NO_QUEUE: Handle = Handle { cookie: 0 };
/// `DAOS_EQ_WAIT`.
const WAIT: i64 = -1;

fn queue() -> Handle {
    let mut queue = Handle::default();
    // SAFETY: space for a handle.
    assert_eq!(unsafe { daos_eq_create(&mut queue) }, 0);
    queue
}

/// An event that stays where it is.
fn event(queue: Handle, parent: *mut Event) -> *mut Event {
    let event = Box::into_raw(Box::default());
    // SAFETY: space for an event, and a valid parent.
    assert_eq!(unsafe { daos_event_init(event, queue, parent) }, 0);
    event
}

fn fini(event: *mut Event) -> i32 {
    // SAFETY: a valid event.
    unsafe { daos_event_fini(event) }
}

fn barrier(event: *mut Event) -> i32 {
    // SAFETY: a valid event.
    unsafe { daos_event_parent_barrier(event) }
}

fn test(event: *mut Event, timeout_us: i64) -> Result<bool, i32> {
    let mut is_done = false;
    // SAFETY: a valid event.
    match unsafe { daos_event_test(event, timeout_us, &mut is_done) } {
        0 => Ok(is_done),
        error => Err(error),
    }
}

fn error(event: *const Event) -> i32 {
    // SAFETY: a valid event.
    unsafe { (*event).ev_error }
}

fn poll(queue: Handle, wait_running: i32, timeout_us: i64) -> (i32, Vec<*mut Event>) {
    let mut events = [ptr::null_mut(); 4];
    // SAFETY: space for 4 events.
    let rc = unsafe { daos_eq_poll(queue, wait_running, timeout_us, 4, events.as_mut_ptr()) };
    (rc, events[..usize::try_from(rc).unwrap_or(0)].to_vec())
}

/// The memory of one operation, which stays where it is.
struct Operation {
    keys: Box<[[u8; 8]; 2]>,
    value: Vec<u8>,
    iovs: Box<[Iov; 2]>,
    iod: Box<Iod>,
    sgl: Box<SgList>,
}

impl Operation {
    fn new(dkey: u64, akey: u64, value: &[u8]) -> Self {
        let (mut keys, mut value) = (Box::new([dkey.to_le_bytes(), akey.to_le_bytes()]), value.to_vec());
        let mut iovs = Box::new([iov(&mut value), iov(&mut keys[0])]);
        let (iod, sgl) = (Box::new(single(&mut keys[1], value.len() as u64)), Box::new(list(&mut iovs[..1])));
        Self { keys, value, iovs, iod, sgl }
    }

    fn update(&mut self, oh: Handle, event: *mut Event) -> i32 {
        let (dkey, iod, sgl) = (&mut self.iovs[1], &mut *self.iod, &mut *self.sgl);
        // SAFETY: the tests keep the operation until its event is complete.
        unsafe { daos_obj_update(oh, NO_TX, 0, dkey, 1, iod, sgl, event) }
    }

    fn fetch(&mut self, oh: Handle, event: *mut Event) -> i32 {
        let (dkey, iod, sgl, none) = (&mut self.iovs[1], &mut *self.iod, &mut *self.sgl, ptr::null_mut());
        // SAFETY: the tests keep the operation until its event is complete.
        unsafe { daos_obj_fetch(oh, NO_TX, MUST_EXIST, dkey, 1, iod, sgl, none, event) }
    }

    /// Makes the operation one that is rejected before it is sent.
    fn spoil(mut self) -> Self {
        self.iovs[1].iov_len = 4;
        self
    }
}

#[test]
fn a_vector_of_operations_as_root_does_it() {
    let (oh, queue) = (object("vector"), queue());
    let parent = event(queue, ptr::null_mut());
    let mut updates: Vec<_> = (0..100).map(|akey: u64| Operation::new(1, akey, &akey.to_le_bytes())).collect();
    let children: Vec<_> = updates.iter().map(|_| event(NO_QUEUE, parent)).collect();
    for (update, &child) in updates.iter_mut().zip(&children) {
        assert_eq!(update.update(oh, child), 0);
    }
    assert_eq!((barrier(parent), test(parent, WAIT)), (0, Ok(true)));
    assert!(children.iter().all(|&child| error(child) == 0) && error(parent) == 0);
    assert_eq!((fini(parent), fini(children[0])), (0, -1003));
    assert_eq!(fetch(oh, 1, 99), Ok(99u64.to_le_bytes().to_vec()));
    assert_eq!(updates[7].keys[1], 7u64.to_le_bytes());
    assert_eq!(daos_eq_destroy(queue, 0), 0);
    assert_eq!((daos_eq_destroy(queue, 0), poll(queue, 0, 0).0), (-1005, -1005));
}

#[test]
fn errors_of_the_server_reach_child_and_parent() {
    for absent in [0, 1] {
        let (oh, queue) = (object(&format!("errors{absent}")), queue());
        assert_eq!(update(oh, 1, 1, b"there"), 0);
        let parent = event(queue, ptr::null_mut());
        let mut fetches = [Operation::new(1, 1, &[0; 8]), Operation::new(1, 1, &[0; 8])];
        fetches[absent] = Operation::new(1, 2, &[0; 8]);
        let children = [event(NO_QUEUE, parent), event(NO_QUEUE, parent)];
        for (fetch, child) in fetches.iter_mut().zip(children) {
            assert_eq!(fetch.fetch(oh, child), 0);
        }
        assert_eq!((barrier(parent), test(parent, WAIT)), (0, Ok(true)));
        assert_eq!((error(children[absent]), error(children[1 - absent]), error(parent)), (-1005, 0, -1005));
        assert_eq!(&fetches[1 - absent].value[..5], b"there");
    }
}

#[test]
fn rejected_children_leave_the_parent_alone() {
    let (oh, queue) = (object("rejected"), queue());
    let (parent, lonely) = (event(queue, ptr::null_mut()), event(queue, ptr::null_mut()));
    let (child, other) = (event(NO_QUEUE, parent), event(NO_QUEUE, parent));
    let mut updates = [Operation::new(1, 1, b"x").spoil(), Operation::new(1, 1, b"x")];
    assert_eq!((updates[0].update(oh, child), error(child)), (0, -1003));
    assert_eq!(barrier(parent), -1001, "a child is not launched");
    assert_eq!(updates[1].update(oh, other), 0);
    assert_eq!((barrier(parent), test(parent, WAIT)), (0, Ok(true)));
    assert_eq!((error(child), error(other), error(parent)), (-1003, 0, 0));
    let only = event(NO_QUEUE, lonely);
    assert_eq!((updates[0].update(oh, only), barrier(lonely), test(lonely, 0)), (0, 0, Ok(true)));
    assert_eq!((error(only), error(lonely)), (-1003, 0));
    let closed = event(queue, ptr::null_mut());
    assert_eq!(
        (updates[1].update(Handle { cookie: u64::MAX }, closed), test(closed, 0), error(closed)),
        (0, Ok(true), -1002)
    );
}

#[test]
fn misuse_of_events_is_an_error() {
    let (oh, queue) = (object("misuse"), queue());
    let parent = event(queue, ptr::null_mut());
    assert_eq!((barrier(parent), barrier(Box::into_raw(Box::default()))), (-1003, -1003));
    let child = event(NO_QUEUE, parent);
    assert_eq!(test(child, 0), Err(-1001));
    let nested = Box::into_raw(Box::default());
    // SAFETY: space for an event, and a valid parent.
    assert_eq!(unsafe { daos_event_init(nested, NO_QUEUE, child) }, -1001);
    // SAFETY: space for an event.
    assert_eq!(unsafe { daos_event_init(nested, Handle { cookie: u64::MAX }, ptr::null_mut()) }, -1005);
    // SAFETY: a valid event is copied to space for one.
    unsafe { nested.write(*child) };
    assert_eq!(Operation::new(1, 1, b"x").update(oh, nested), -1003, "it was moved");
    assert_eq!(test(parent, 0), Ok(true), "it is ready");
    let mut update = Operation::new(1, 1, b"x");
    assert_eq!((update.update(oh, child), barrier(parent)), (0, 0));
    // SAFETY: space for an event, and a valid parent.
    assert_eq!(unsafe { daos_event_init(nested, NO_QUEUE, parent) }, -1003, "the parent is running");
    assert_eq!((test(parent, WAIT), update.update(oh, child)), (Ok(true), -1001));
    assert_eq!((fini(child), fini(parent), daos_eq_destroy(queue, 0)), (0, 0, 0));
}

#[test]
fn events_need_no_queue() {
    let oh = object("no_queue");
    let (event, mut update) = (event(NO_QUEUE, ptr::null_mut()), Operation::new(1, 1, b"x"));
    for _ in 0..3 {
        assert_eq!((update.update(oh, event), test(event, WAIT), error(event)), (0, Ok(true), 0));
    }
    assert_eq!((fini(event), fetch(oh, 1, 1)), (0, Ok(b"x".to_vec())));
}

#[test]
fn queues_are_polled() {
    let (oh, queue) = (object("poll"), queue());
    assert_eq!(
        (poll(queue, 0, 0), poll(queue, 1, WAIT), poll(queue, 0, 1000)),
        ((0, vec![]), (0, vec![]), (0, vec![]))
    );
    let (plain, parent) = (event(queue, ptr::null_mut()), event(queue, ptr::null_mut()));
    let child = event(NO_QUEUE, parent);
    let mut updates = [Operation::new(1, 1, b"x"), Operation::new(1, 2, b"y")];
    assert_eq!((updates[0].update(oh, plain), updates[1].update(oh, child), barrier(parent)), (0, 0, 0));
    assert_eq!((daos_eq_destroy(queue, 0), fini(parent)), (-1012, -1012));
    let mut found = Vec::new();
    while found.len() < 2 {
        found.extend(poll(queue, 1, WAIT).1);
    }
    found.sort();
    let mut expected = vec![plain, parent];
    expected.sort();
    assert_eq!((found, poll(queue, 1, WAIT).0), (expected, 0));
    // SAFETY: no space is needed for no events.
    assert_eq!(unsafe { daos_eq_poll(queue, 0, 0, 0, ptr::null_mut()) }, -1003);
}

#[test]
fn a_child_that_is_done_waits_for_progress() {
    let (oh, queue) = (object("progress"), queue());
    let parent = event(queue, ptr::null_mut());
    let (child, mut absent) = (event(NO_QUEUE, parent), Operation::new(1, 1, &[0; 8]));
    assert_eq!(absent.fetch(oh, child), 0);
    thread::sleep(Duration::from_millis(50));
    assert_eq!((barrier(parent), test(parent, WAIT), error(parent)), (0, Ok(true), -1005));
}

#[test]
fn operations_overlap_during_their_latency() {
    if !alone("events::operations_overlap_during_their_latency", &[("DAOS_STANDIN_LATENCY_US", "50000")]) {
        return;
    }
    assert_eq!(daos_init(), 0);
    let (oh, queue) = (object("latency"), queue());
    daos_standin_reset();
    let started = Instant::now();
    let parent = event(queue, ptr::null_mut());
    let mut updates: Vec<_> = (0..32).map(|akey| Operation::new(1, akey, b"x")).collect();
    let children: Vec<_> = updates.iter().map(|_| event(NO_QUEUE, parent)).collect();
    updates.iter_mut().zip(children).for_each(|(update, child)| assert_eq!(update.update(oh, child), 0));
    assert_eq!((barrier(parent), test(parent, 0), test(parent, 1000)), (0, Ok(false), Ok(false)));
    assert_eq!((test(parent, WAIT), started.elapsed() >= Duration::from_millis(50)), (Ok(true), true));
    assert!(started.elapsed() < Duration::from_millis(50 * 32), "they do not wait for each other");
    assert_eq!((count("update"), count("fetch"), count("max_in_flight")), (32, 0, 32));
    assert_eq!((count("eq_create"), count("other")), (0, u64::MAX));
    assert_eq!(fetch(oh, 1, 31), Ok(b"x".to_vec()));
    assert_eq!(count("fetch"), 1);
}

#[test]
fn faults_hit_one_operation() {
    if !alone("events::faults_hit_one_operation", &[("DAOS_STANDIN_FAULT", "update:2:-1007,fetch:1:-2001")]) {
        return;
    }
    assert_eq!(daos_init(), 0);
    let oh = object("faults");
    assert_eq!([1, 2, 3].map(|akey| update(oh, 1, akey, b"x")), [0, -1007, 0]);
    assert_eq!([1, 1, 2].map(|akey| fetch(oh, 1, akey)), [Err(-2001), Ok(b"x".to_vec()), Err(-1005)]);
    assert_eq!(set("DAOS_STANDIN_FAULT", "update:1:-1006"), 0);
    let parent = event(queue(), ptr::null_mut());
    let (child, mut failing) = (event(NO_QUEUE, parent), Operation::new(1, 1, b"y"));
    assert_eq!((failing.update(oh, child), barrier(parent), test(parent, WAIT)), (0, 0, Ok(true)));
    assert_eq!((error(child), error(parent), fetch(oh, 1, 1)), (-1006, -1006, Ok(b"x".to_vec())));
}

#[test]
fn an_operation_hangs() {
    if !alone("events::an_operation_hangs", &[("DAOS_STANDIN_FAULT", "hang")]) {
        return;
    }
    assert_eq!(daos_init(), 0);
    let (oh, queue) = (object("hang"), queue());
    let (hanging, next) = (event(queue, ptr::null_mut()), event(queue, ptr::null_mut()));
    let mut updates = [Operation::new(1, 1, b"x"), Operation::new(1, 2, b"y")];
    assert_eq!((updates[0].update(oh, hanging), updates[1].update(oh, next)), (0, 0));
    assert_eq!((test(next, WAIT), test(hanging, 20_000)), (Ok(true), Ok(false)));
    assert_eq!((fini(hanging), daos_eq_destroy(queue, 0)), (-1012, -1012));
    assert_eq!((fetch(oh, 1, 1), fetch(oh, 1, 2)), (Err(-1005), Ok(b"y".to_vec())));
    assert_eq!((daos_eq_destroy(queue, EQ_DESTROY_FORCE), test(hanging, 0)), (0, Err(-1005)));
    assert_eq!(set("DAOS_STANDIN_FAULT", "fetch:1:hang"), 0);
    let blocked = thread::spawn(move || fetch(oh, 1, 2));
    thread::sleep(Duration::from_millis(50));
    assert!(!blocked.is_finished());
}
