//! Events and event queues. The states, and the order in which parents and children get their errors, follow
//! `src/client/api/event.c` of DAOS.
//!
//! The result of an operation waits at its event queue until somebody calls [`daos_event_test`] or [`daos_eq_poll`]: a
//! library that makes progress only then does not complete children before the parent's barrier.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::c_int;
use std::sync::{Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::abi::{EQ_DESTROY_FORCE, Event, Handle};
use crate::control;
use crate::error::{DER_BUSY, DER_INVAL, DER_NO_PERM, DER_NONEXIST, Outcome, status};
use crate::handle::new_cookie;

/// The number of an event. Events that do not exist have none.
pub(crate) type EventId = u64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Status {
    Ready,
    Running,
    Completed,
}

/// What the library knows about an event.
#[derive(Debug)]
struct State {
    /// The caller's structure.
    at: At,
    status: Status,
    /// Cookie of the event queue; 0 for none.
    queue: u64,
    parent: Option<EventId>,
    children: Vec<EventId>,
    /// Children so far, with finalised ones.
    child_count: usize,
    running: usize,
    completed: usize,
    is_barrier: bool,
}

/// Where the caller has an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct At(*mut Event);

// SAFETY: the caller leaves the event where it is from `daos_event_init` to `daos_event_fini`, for all threads; it is
// written only while `REGISTRY` is locked.
unsafe impl Send for At {}

/// An event queue; the one with cookie 0 has the results of events without a queue.
#[derive(Debug, Default)]
struct Queue {
    /// Events without a parent that are running.
    running: Vec<EventId>,
    /// Events without a parent that are complete, but were not polled.
    completed: VecDeque<EventId>,
    /// Results of operations, with 0 or negative errors.
    arrived: Vec<(EventId, c_int)>,
}

#[derive(Debug, Default)]
struct Registry {
    events: BTreeMap<EventId, State>,
    queues: BTreeMap<u64, Queue>,
}

static REGISTRY: LazyLock<Mutex<Registry>> = LazyLock::new(Mutex::default);
/// Signalled when a result arrives.
static ARRIVED: Condvar = Condvar::new();

fn registry() -> MutexGuard<'static, Registry> {
    REGISTRY.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    /// Sets `ev_error`.
    fn set_error(&self, error: c_int) {
        // SAFETY: see `At`; the event was not finalised, for it is in the registry.
        unsafe { (*self.at.0).ev_error = error };
    }

    fn error(&self) -> c_int {
        // SAFETY: as in `set_error`.
        unsafe { (*self.at.0).ev_error }
    }
}

impl Registry {
    /// The event that the caller has at an address.
    fn find(&self, event: *const Event) -> Outcome<EventId> {
        if event.is_null() {
            return Err(DER_INVAL);
        }
        // SAFETY: the caller passes a valid event, or one that was never initialised, whose number is then unknown.
        let id = unsafe { (*event).ev_private[0] };
        self.events.get(&id).filter(|state| state.at.0.cast_const() == event).map(|_| id).ok_or(DER_INVAL)
    }

    fn event(&mut self, id: EventId) -> &mut State {
        self.events.get_mut(&id).expect("ids are of events that exist")
    }

    /// The queue of an event, which the caller may have destroyed.
    fn queue_of(&mut self, id: EventId) -> Outcome<&mut Queue> {
        let queue = self.event(id).queue;
        if queue == 0 {
            return Ok(self.queues.entry(0).or_default());
        }
        self.queues.get_mut(&queue).ok_or(DER_NONEXIST)
    }

    fn launch(&mut self, id: EventId) -> Outcome {
        self.queue_of(id)?;
        let event = self.event(id);
        if event.status != Status::Ready || event.child_count > event.running + event.completed {
            return Err(DER_NO_PERM);
        }
        event.status = Status::Running;
        let is_complete = event.is_barrier && event.child_count > 0 && event.child_count == event.completed;
        match event.parent {
            Some(parent) => self.event(parent).running += 1,
            None => self.queue_of(id)?.running.push(id),
        }
        if is_complete {
            self.complete(id, 0, true)?;
        }
        Ok(())
    }

    /// Ends a running event. A parent gets the error of a child only when the operation was sent.
    fn complete(&mut self, id: EventId, error: c_int, was_sent: bool) -> Outcome {
        let event = self.event(id);
        event.status = Status::Completed;
        event.set_error(error);
        let mut top = id;
        if let Some(parent) = event.parent {
            let parent_state = self.event(parent);
            parent_state.running -= 1;
            parent_state.completed += 1;
            let is_last = parent_state.completed == parent_state.child_count;
            let waits = parent_state.status == Status::Running && parent_state.is_barrier;
            if (!is_last || waits) && was_sent && parent_state.error() == 0 {
                parent_state.set_error(error);
            }
            if !is_last || !waits {
                return Ok(());
            }
            parent_state.status = Status::Completed;
            top = parent;
        }
        let queue = self.queue_of(top)?;
        queue.running.retain(|&running| running != top);
        queue.completed.push_back(top);
        Ok(())
    }

    /// Completes the events of a queue whose results arrived.
    fn progress(&mut self, queue: u64) -> Outcome {
        for (id, error) in
            self.queues.get_mut(&queue).map(|queue| std::mem::take(&mut queue.arrived)).into_iter().flatten()
        {
            if self.events.get(&id).is_some_and(|event| event.status == Status::Running) {
                self.complete(id, error, true)?;
            }
        }
        Ok(())
    }

    /// Makes a complete event ready again, if it is complete.
    fn take_completed(&mut self, id: EventId) -> Outcome<bool> {
        let event = self.event(id);
        if event.status != Status::Completed || event.running > 0 {
            return Ok(event.status == Status::Ready);
        }
        event.status = Status::Ready;
        self.queue_of(id)?.completed.retain(|&completed| completed != id);
        Ok(true)
    }

    fn finalise(&mut self, id: EventId) -> Outcome {
        self.queue_of(id)?;
        if self.event(id).status == Status::Running {
            return Err(DER_BUSY);
        }
        while let Some(&child) = self.event(id).children.first() {
            if self.event(child).status == Status::Running {
                return Err(DER_INVAL);
            }
            self.finalise(child)?;
        }
        if let Some(parent) = self.event(id).parent {
            let parent = self.event(parent);
            if parent.status != Status::Ready {
                return Err(DER_INVAL);
            }
            parent.children.retain(|&child| child != id);
        }
        self.queue_of(id)?.completed.retain(|&completed| completed != id);
        self.events.remove(&id);
        Ok(())
    }

    fn polled(&mut self, queue: u64, limit: usize) -> Outcome<Vec<*mut Event>> {
        let completed = self.queues.get(&queue).ok_or(DER_NONEXIST)?.completed.clone();
        let mut found = Vec::new();
        for id in completed {
            if found.len() < limit && self.take_completed(id)? {
                found.push(self.event(id).at.0);
            }
        }
        Ok(found)
    }
}

/// Marks an event as running; what [`reject`] or [`arrive`] needs then.
///
/// # Safety
/// A valid event.
pub(crate) unsafe fn launch(event: *const Event) -> Outcome<EventId> {
    let mut registry = registry();
    let id = registry.find(event)?;
    registry.launch(id)?;
    Ok(id)
}

/// Completes an event whose operation was not sent, with a negative error.
pub(crate) fn reject(id: EventId, error: c_int) -> Outcome {
    registry().complete(id, error, false)
}

/// The operation of an event has a result, 0 or a negative error.
pub(crate) fn arrive(id: EventId, error: c_int) {
    let mut registry = registry();
    if registry.events.contains_key(&id)
        && let Ok(queue) = registry.queue_of(id)
    {
        queue.arrived.push((id, error));
        ARRIVED.notify_all();
    }
}

/// Forgets all events and queues, as the last `daos_fini` does.
pub(crate) fn forget_all() {
    *registry() = Registry::default();
}

/// Calls until there is a result or the time is over; `timeout_us` is negative to wait without end.
fn wait<T>(timeout_us: i64, mut attempt: impl FnMut(&mut Registry) -> Outcome<Option<T>>) -> Outcome<Option<T>> {
    let deadline = u64::try_from(timeout_us).ok().map(|micros| Instant::now() + Duration::from_micros(micros));
    let mut registry = registry();
    loop {
        if let Some(result) = attempt(&mut registry)? {
            return Ok(Some(result));
        }
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        registry = match left {
            None => ARRIVED.wait(registry).unwrap_or_else(PoisonError::into_inner),
            Some(Duration::ZERO) => return Ok(None),
            Some(left) => ARRIVED.wait_timeout(registry, left).unwrap_or_else(PoisonError::into_inner).0,
        };
    }
}

/// `daos_eq_create`.
///
/// # Safety
/// Space for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn daos_eq_create(eqh: *mut Handle) -> c_int {
    if let Err(error) = control::require_start() {
        return -error;
    }
    control::count_queue();
    let cookie = new_cookie();
    registry().queues.insert(cookie, Queue::default());
    // SAFETY: the caller has space for a handle.
    unsafe { eqh.write(Handle { cookie }) };
    0
}

/// `daos_eq_destroy`: `-DER_BUSY` while there are events that run or were not polled, except by force.
// SAFETY: no other library of the process exports this name.
#[unsafe(no_mangle)]
pub extern "C" fn daos_eq_destroy(eqh: Handle, flags: c_int) -> c_int {
    let mut registry = registry();
    match registry.queues.get(&eqh.cookie).filter(|_| eqh.cookie != 0) {
        None => return -DER_NONEXIST,
        Some(queue) if flags & EQ_DESTROY_FORCE == 0 && !(queue.running.is_empty() && queue.completed.is_empty()) => {
            return -DER_BUSY;
        }
        Some(_) => registry.queues.remove(&eqh.cookie),
    };
    0
}

/// `daos_eq_poll`: the number of events that are complete, never children.
///
/// # Safety
/// Space for `nevents` pointers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn daos_eq_poll(
    eqh: Handle,
    wait_running: c_int,
    timeout_us: i64,
    nevents: u32,
    events: *mut *mut Event,
) -> c_int {
    if nevents == 0 || events.is_null() {
        return -DER_INVAL;
    }
    let polled = wait(timeout_us, |registry| {
        registry.progress(eqh.cookie)?;
        let found = registry.polled(eqh.cookie, nevents as usize)?;
        let is_over = wait_running != 0 && registry.queues[&eqh.cookie].running.is_empty();
        Ok((!found.is_empty() || is_over).then_some(found))
    });
    match polled {
        Ok(found) => {
            let found = found.unwrap_or_default();
            // SAFETY: the caller has space for `nevents` pointers, and no more were polled.
            unsafe { events.copy_from_nonoverlapping(found.as_ptr(), found.len()) };
            c_int::try_from(found.len()).expect("there are not more events than the number that the caller passed")
        }
        Err(error) => -error,
    }
}

/// `daos_event_init`. The event must not move in memory before `daos_event_fini`.
///
/// # Safety
/// Space for an event; `parent` is null or a valid event.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn daos_event_init(ev: *mut Event, eqh: Handle, parent: *mut Event) -> c_int {
    let init = || {
        control::require_start()?;
        let mut registry = registry();
        let (mut queue, mut parent_id) = (eqh.cookie, None);
        let id = new_cookie();
        if !parent.is_null() {
            let found = registry.find(parent)?;
            let state = registry.event(found);
            if state.status != Status::Ready {
                return Err(DER_INVAL);
            }
            if state.parent.is_some() {
                return Err(DER_NO_PERM);
            }
            state.children.push(id);
            state.child_count += 1;
            (queue, parent_id) = (state.queue, Some(found));
        } else if queue != 0 && !registry.queues.contains_key(&queue) {
            return Err(DER_NONEXIST);
        }
        let mut event = Event::default();
        event.ev_private[0] = id;
        // SAFETY: the caller has space for an event.
        unsafe { ev.write(event) };
        let state = State {
            at: At(ev),
            status: Status::Ready,
            queue,
            parent: parent_id,
            children: Vec::new(),
            child_count: 0,
            running: 0,
            completed: 0,
            is_barrier: false,
        };
        registry.events.insert(id, state);
        Ok(())
    };
    status(init())
}

/// `daos_event_fini`: of a parent, with its children.
///
/// # Safety
/// A valid event.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn daos_event_fini(ev: *mut Event) -> c_int {
    let mut registry = registry();
    status(registry.find(ev).and_then(|id| registry.finalise(id)))
}

/// `daos_event_parent_barrier`: the parent completes with its last child. `-DER_INVAL` without children.
///
/// # Safety
/// A valid event.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn daos_event_parent_barrier(ev: *mut Event) -> c_int {
    let mut registry = registry();
    let barrier = registry.find(ev).and_then(|id| {
        let event = registry.event(id);
        if event.child_count == 0 {
            return Err(DER_INVAL);
        }
        event.is_barrier = true;
        registry.launch(id)
    });
    status(barrier)
}

/// `daos_event_test`: whether the event is complete, which makes it ready again. `-DER_NO_PERM` for a child.
///
/// # Safety
/// A valid event; space for a `bool`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn daos_event_test(ev: *mut Event, timeout_us: i64, flag: *mut bool) -> c_int {
    let tested = wait(timeout_us, |registry| {
        let id = registry.find(ev)?;
        let event = registry.event(id);
        if event.parent.is_some() {
            return Err(DER_NO_PERM);
        }
        let queue = event.queue;
        registry.queue_of(id)?;
        registry.progress(queue)?;
        Ok(registry.take_completed(id)?.then_some(()))
    });
    match tested {
        Ok(done) => {
            // SAFETY: the caller has space for a bool.
            unsafe { flag.write(done.is_some()) };
            0
        }
        Err(error) => -error,
    }
}
