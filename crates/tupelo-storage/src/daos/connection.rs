//! A container that is open, which all its users in the process share.

use std::collections::HashMap;
use std::ffi::CString;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, TryLockError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use super::abi::{Handle, READ, WRITE};
use super::code;
use super::ffi::{Batch, Call, Library, Object, Open, OpenObject, Results, Session};
use super::key::ObjectName;
use super::place::DaosPlace;
use crate::cancel::{POLL_INTERVAL, Scope, is_cancelled, with_flag};
use crate::error::{Error, ErrorKind, Result};
use crate::net::Limits;

/// Name of the library, which the system looks for.
const LIBRARY: &str = "libdaos.so.2";
/// Objects that a connection keeps open: 256, which is more than the clusters that are read at the same time.
const MAX_OBJECTS: usize = 256;
/// Maximum time of closing a container or a pool: 5 s. What is still open then ends with the process.
const CLOSE_TIME: Duration = Duration::from_secs(5);
/// Maximum number of calls that run at the same time: 1024.
const MAX_CALLS: usize = 1024;
/// `OC_UNKNOWN`: DAOS chooses the class. It has no number by its name.
const ANY_CLASS: &str = "UNKNOWN";

/// When an operation ends without a result.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deadline {
    total: Duration,
    /// `None` for a time that the clock cannot reach.
    until: Option<Instant>,
}

impl Deadline {
    pub(super) fn after(total: Duration) -> Self {
        Self { total, until: Instant::now().checked_add(total) }
    }

    /// A later one, for calls that transfer as many bytes over a slow network.
    pub(super) fn for_bytes(self, bytes: u64) -> Self {
        let more = Limits::slowest(bytes);
        let until = self.until.and_then(|until| until.checked_add(more));
        Self { total: self.total.saturating_add(more), until }
    }

    /// An error when the time is over, or the caller cancelled the work.
    pub(super) fn check(&self) -> Result<(), Stop> {
        match self.until {
            Some(until) if Instant::now() >= until => Err(Stop::TimedOut(self.total)),
            _ if is_cancelled() => Err(Stop::Cancelled),
            _ => Ok(()),
        }
    }
}

/// Why an operation has no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// libdaos returned this number.
    Failed(i32),
    TimedOut(Duration),
    Cancelled,
    /// This is a forked child of the process that is connected.
    Forked,
}

impl Stop {
    #[cold]
    pub(super) fn into_error(self, action: impl Into<std::borrow::Cow<'static, str>>, uri: String) -> Error {
        let (kind, reason) = match self {
            Self::Failed(number) => (code::kind(number), code::text(number)),
            Self::TimedOut(total) => {
                let seconds = total.as_secs_f64();
                (ErrorKind::Timeout, format!("no answer within {seconds} s (storage option total_timeout)"))
            }
            Self::Cancelled => (ErrorKind::Cancelled, "cancelled by the caller".to_owned()),
            Self::Forked => {
                let reason = "DAOS cannot be used in a process forked after its first use: start a new process \
                              instead, in Python with the method spawn or forkserver";
                (ErrorKind::NotSupported, reason.to_owned())
            }
        };
        Error::new(kind, action, uri, reason)
    }
}

impl From<i32> for Stop {
    fn from(number: i32) -> Self {
        Self::Failed(number)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits for a lock that is held during requests.
fn lock_until<'a, T>(mutex: &'a Mutex<T>, deadline: &Deadline) -> Result<MutexGuard<'a, T>, Stop> {
    loop {
        match mutex.try_lock() {
            Ok(guard) => return Ok(guard),
            Err(TryLockError::Poisoned(poisoned)) => return Ok(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => deadline.check()?,
        }
        thread::sleep(POLL_INTERVAL);
    }
}

/// A library that is loaded and started, and the process that did it.
type Started = (&'static Library, u32);

/// The library of a path, or the system's.
pub(super) fn library(path: Option<&str>, action: &'static str, uri: &str) -> Result<&'static Library> {
    static LOADED: LazyLock<Mutex<HashMap<String, Started>>> = LazyLock::new(Mutex::default);
    if !cfg!(all(unix, target_arch = "x86_64")) {
        let reason = "DAOS is supported only on x86-64 Linux";
        return Err(Error::new(ErrorKind::NotSupported, action, uri, reason));
    }
    let path = path.unwrap_or(LIBRARY);
    let mut loaded = lock(&LOADED);
    if let Some((library, process)) = loaded.get(path) {
        return match *process == std::process::id() {
            true => Ok(library),
            false => Err(Stop::Forked.into_error(action, uri.to_owned())),
        };
    }
    let library = Library::load(path).map_err(|reason| {
        let reason = format!(
            "the DAOS library {path} cannot be loaded: {reason}; install the DAOS client (package daos-client), or set \
             the storage option daos_library to the path of {LIBRARY}"
        );
        Error::new(ErrorKind::NotSupported, action, uri, reason)
    })?;
    library.start().map_err(|number| Stop::Failed(number).into_error(action, uri.to_owned()))?;
    // Not dropped: it has threads, and other connections may need it later.
    let library: &'static Library = Box::leak(Box::new(library));
    loaded.insert(path.to_owned(), (library, std::process::id()));
    Ok(library)
}

/// Which connection is shared.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Target {
    /// `None` for the one that the system finds.
    pub(super) library: Option<String>,
    pub(super) place: DaosPlace,
    pub(super) is_writable: bool,
    /// The process: a forked child has its own connections.
    pub(super) process: u32,
}

/// A connection, while it has users. It is locked while it is made.
type Slot = Arc<Mutex<Weak<Connection>>>;

static CONNECTIONS: LazyLock<Mutex<HashMap<Target, Slot>>> = LazyLock::new(Mutex::default);

/// An open container.
#[derive(Debug)]
pub(super) struct Connection {
    library: &'static Library,
    session: Arc<Session>,
    pool: Handle,
    container: Handle,
    is_writable: bool,
    objects: Mutex<Objects>,
}

/// Why a connection was not made.
#[derive(Debug)]
pub(super) enum Refused {
    Pool(Stop),
    /// The container could not be opened or created.
    Container(Stop),
}

impl Connection {
    /// The connection of the process to a container; `creates` also makes the container, if it does not exist.
    pub(super) fn shared(
        library: &'static Library,
        target: &Target,
        creates: bool,
        deadline: &Deadline,
    ) -> Result<Arc<Self>, Refused> {
        let slot = {
            let mut connections = lock(&CONNECTIONS);
            // Those without users. A slot that is being filled has another reference.
            connections.retain(|_, slot| Arc::strong_count(slot) > 1 || lock(slot).strong_count() > 0);
            Arc::clone(connections.entry(target.clone()).or_default())
        };
        let mut slot = lock_until(&slot, deadline).map_err(Refused::Pool)?;
        if let Some(connection) = slot.upgrade() {
            return Ok(connection);
        }
        let connection = Arc::new(Self::open_aside(library, target, creates, deadline)?);
        *slot = Arc::downgrade(&connection);
        Ok(connection)
    }

    /// Opens a container on a separate thread: `daos_pool_connect` looks for the servers of the pool before it returns,
    /// also with an event, and may wait for them longer than the caller.
    fn open_aside(
        library: &'static Library,
        target: &Target,
        creates: bool,
        deadline: &Deadline,
    ) -> Result<Self, Refused> {
        let (sender, receiver) = mpsc::channel();
        let flag = Scope::current().map(|scope| scope.flag());
        let (target, until) = (target.clone(), *deadline);
        let work = move || {
            let opened = with_flag(flag, || Self::open(library, &target, creates, &until));
            // Without a receiver, it is closed again.
            drop(sender.send(opened));
        };
        let thread = thread::Builder::new().name("tupelo-daos".to_owned()).spawn(work);
        thread.map_err(|_| Refused::Pool(Stop::Failed(code::NO_MEMORY)))?;
        loop {
            match receiver.recv_timeout(POLL_INTERVAL) {
                Ok(opened) => return opened,
                Err(RecvTimeoutError::Timeout) => deadline.check().map_err(Refused::Pool)?,
                // The thread ended by a panic.
                Err(RecvTimeoutError::Disconnected) => return Err(Refused::Pool(Stop::Failed(code::UNKNOWN))),
            }
        }
    }

    fn open(library: &'static Library, target: &Target, creates: bool, deadline: &Deadline) -> Result<Self, Refused> {
        let Target { place: DaosPlace { pool, container }, is_writable, .. } = target;
        let session = Session::new(library).map_err(|number| Refused::Pool(number.into()))?;
        let flags = if *is_writable { WRITE } else { READ };
        // What is open by then is closed when this is dropped.
        let mut connection = Self {
            library,
            session,
            pool: Handle::NONE,
            container: Handle::NONE,
            is_writable: *is_writable,
            objects: Mutex::default(),
        };
        let name = |name: &str| CString::new(name).map_err(|_| Stop::Failed(code::INVALID));
        let pool = name(pool).and_then(|pool| connection.one(Open::pool(pool, flags), deadline));
        connection.pool = pool.map_err(Refused::Pool)?.handle();
        let container = name(container).map_err(Refused::Container)?;
        if creates {
            let created = connection.one(Open::new_container(connection.pool, container.clone()), deadline);
            match created {
                Ok(_) | Err(Stop::Failed(code::EXISTS)) => {}
                Err(stop) => return Err(Refused::Container(stop)),
            }
        }
        let opened = connection.one(Open::container(connection.pool, container, flags), deadline);
        connection.container = opened.map_err(Refused::Container)?.handle();
        Ok(connection)
    }

    /// Makes one call.
    fn one<C: Call>(&self, call: C, deadline: &Deadline) -> Result<C, Stop> {
        let mut results = self.run(vec![call], deadline)?;
        match results.pop() {
            Some((result, call)) => Ok(result.map(|()| call)?),
            None => Err(Stop::Failed(code::INVALID)),
        }
    }

    /// Makes calls at the same time, and waits for all. Results are in the order of the calls.
    pub(super) fn run<C: Call>(&self, calls: Vec<C>, deadline: &Deadline) -> Result<Results<C>, Stop> {
        let mut results = Vec::with_capacity(calls.len());
        let mut calls = calls.into_iter();
        loop {
            let some: Vec<C> = calls.by_ref().take(MAX_CALLS).collect();
            if some.is_empty() {
                return Ok(results);
            }
            self.check_process()?;
            deadline.check()?;
            let mut batch = Batch::send(&self.session, some)?;
            // A batch that is dropped here keeps its memory until libdaos no longer uses it.
            while !batch.wait(POLL_INTERVAL)? {
                deadline.check()?;
                // The caller's function may have forked.
                self.check_process()?;
            }
            results.extend(batch.results());
        }
    }

    /// Makes calls one after the other, without events.
    pub(super) fn run_blocking<C: Call>(&self, calls: Vec<C>, deadline: &Deadline) -> Result<Results<C>, Stop> {
        let one = |call| {
            self.check_process()?;
            deadline.check()?;
            Ok(self.library.call(call))
        };
        calls.into_iter().map(one).collect()
    }

    fn check_process(&self) -> Result<(), Stop> {
        if self.session.is_own() { Ok(()) } else { Err(Stop::Forked) }
    }

    /// Open objects, in the order of the names. An error has the name that it belongs to.
    pub(super) fn objects(
        &self,
        names: &[&ObjectName],
        deadline: &Deadline,
    ) -> Result<HashMap<ObjectName, Arc<Object>>, (usize, NoObject)> {
        let mut found: HashMap<ObjectName, Arc<Object>> = HashMap::new();
        let mut missing: Vec<usize> = Vec::new();
        let mut calls = Vec::new();
        {
            let mut objects = lock(&self.objects);
            for (at, name) in names.iter().enumerate() {
                match objects.get(name) {
                    Some(object) => drop(found.insert((*name).clone(), object)),
                    None => missing.push(at),
                }
            }
        }
        for at in &missing {
            let (class, hi, lo) = names[*at];
            let id = self.check_process().map_err(NoObject::Stopped).and_then(|()| {
                let class = self.class(class).ok_or(NoObject::UnknownClass)?;
                self.library.object_id(self.container, class, *hi, *lo).map_err(NoObject::RefusedClass)
            });
            let id = id.map_err(|why| (*at, why))?;
            calls.push(OpenObject::new(self.library, self.container, id, self.is_writable));
        }
        let first = missing.first().copied().unwrap_or_default();
        let results = self.run(calls, deadline).map_err(|stop| (first, NoObject::Stopped(stop)))?;
        let mut objects = lock(&self.objects);
        for (at, (result, call)) in missing.into_iter().zip(results) {
            result.map_err(|number| (at, NoObject::Stopped(number.into())))?;
            if let Some(object) = call.opened() {
                objects.insert(names[at].clone(), Arc::clone(&object));
                found.insert(names[at].clone(), object);
            }
        }
        Ok(found)
    }

    /// The number of a class; `None` for an unknown name.
    pub(super) fn class(&self, name: &str) -> Option<u32> {
        if name == ANY_CLASS {
            return Some(0);
        }
        let class = CString::new(name).map_or(0, |name| self.library.class(&name));
        Some(class).filter(|class| *class != 0)
    }

    /// Whether the pool can hold objects of a class.
    pub(super) fn holds(&self, class: u32) -> Result<(), i32> {
        self.library.object_id(self.container, class, 1, 1).map(drop)
    }
}

/// Why an object cannot be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoObject {
    UnknownClass,
    /// The pool cannot hold objects of the class, as libdaos says by this number.
    RefusedClass(i32),
    Stopped(Stop),
}

/// Why a class is refused that DAOS does not know.
pub(super) fn unknown(class: &str) -> String {
    format!("unknown DAOS object class {}", class.escape_debug())
}

/// Why a class is refused that the pool cannot hold.
pub(super) fn too_demanding(class: &str) -> String {
    format!("the pool has too few servers or targets for objects of the class {class}")
}

impl Drop for Connection {
    fn drop(&mut self) {
        // What was abandoned uses the handles: they end with the process then. A forked child has none.
        if !self.session.is_own() || !self.session.reap() {
            return;
        }
        lock(&self.objects).clear();
        let close = |handle: Handle, call: fn(Handle) -> Open| {
            let Ok(mut batch) = Batch::send(&self.session, vec![call(handle)]) else { return };
            // Not by `run`: cancelled work closes what it opened.
            let until = Instant::now() + CLOSE_TIME;
            while batch.wait(POLL_INTERVAL) == Ok(false) && Instant::now() < until {}
        };
        if self.container != Handle::NONE {
            close(self.container, Open::close_container);
        }
        if self.pool != Handle::NONE {
            close(self.pool, Open::disconnect);
        }
    }
}

/// Open objects; the most recently used ones are kept.
#[derive(Debug, Default)]
struct Objects {
    /// Each with the time of its last use.
    open: HashMap<ObjectName, (Arc<Object>, u64)>,
    time: u64,
}

impl Objects {
    fn get(&mut self, name: &ObjectName) -> Option<Arc<Object>> {
        self.time += 1;
        let (object, used) = self.open.get_mut(name)?;
        *used = self.time;
        Some(Arc::clone(object))
    }

    fn insert(&mut self, name: ObjectName, object: Arc<Object>) {
        self.time += 1;
        self.open.insert(name, (object, self.time));
        if self.open.len() > MAX_OBJECTS {
            // Half of them at once, so that this is rare.
            let mut times: Vec<u64> = self.open.values().map(|(_, used)| *used).collect();
            times.sort_unstable();
            let median = times[times.len() / 2];
            self.open.retain(|_, (_, used)| *used >= median);
        }
    }

    fn clear(&mut self) {
        self.open.clear();
    }
}
