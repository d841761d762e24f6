//! The functions of libdaos, and the memory that it uses while they run.
//!
//! All unsafe code of the crate is here. The rest of the room sees calls and batches that own what libdaos reads and
//! writes: a batch that is dropped while its calls run keeps their memory, and [`Session`] frees it when they are
//! complete.

#![expect(unsafe_code, reason = "libdaos is a C library that is loaded at run time")]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::fmt;
use std::marker::PhantomData;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;

use super::abi::{
    Anchor, DEFAULT_HINTS, Descriptor, END_OF_LIST, Event, Handle, INTEGER_KEYS, Iov, KEY_BYTES, ListedKey,
    MUST_BE_NEW, MUST_EXIST, OBJECT_READ, OBJECT_WRITE, OF_EACH_AKEY, ObjectId, Pieces, SINGLE_VALUE,
};
use super::code;

/// Keys of one call that lists.
const LISTED_KEYS: usize = 512;

macro_rules! functions {
    ($($name:ident = $($symbol:literal)|+ => fn($($argument:ty),*);)*) => {
        /// The functions that are used.
        pub(super) struct Functions {
            // SAFETY: they are called with what the documentation of DAOS requires.
            $($name: unsafe extern "C" fn($($argument),*) -> c_int,)*
        }

        impl Functions {
            /// Finds all functions, or returns the name of one that is missing.
            ///
            /// # Safety
            /// Functions of the library with these names have these types.
            unsafe fn find(library: &libloading::Library) -> Result<Self, &'static str> {
                // SAFETY: the caller knows the types.
                Ok(Self { $($name: unsafe { symbol(library, &[$($symbol),+]) }?,)* })
            }
        }
    };
}

functions! {
    init = c"daos_init" => fn();
    queue_create = c"daos_eq_create" => fn(*mut Handle);
    queue_destroy = c"daos_eq_destroy" => fn(Handle, c_int);
    event_init = c"daos_event_init" => fn(*mut Event, Handle, *mut Event);
    event_fini = c"daos_event_fini" => fn(*mut Event);
    event_barrier = c"daos_event_parent_barrier" => fn(*mut Event);
    event_test = c"daos_event_test" => fn(*mut Event, i64, *mut bool);
    class_of_name = c"daos_oclass_name2id" => fn(*const c_char);
    // The headers give these the names that end in 2. Before 2.4, the other names are other functions.
    pool_connect = c"daos_pool_connect2" | c"daos_pool_connect"
        => fn(*const c_char, *const c_char, u32, *mut Handle, *mut c_void, *mut Event);
    pool_disconnect = c"daos_pool_disconnect" => fn(Handle, *mut Event);
    container_create = c"daos_cont_create_with_label"
        => fn(Handle, *const c_char, *mut c_void, *mut c_void, *mut Event);
    container_open = c"daos_cont_open2" | c"daos_cont_open"
        => fn(Handle, *const c_char, u32, *mut Handle, *mut c_void, *mut Event);
    container_close = c"daos_cont_close" => fn(Handle, *mut Event);
    generate_id = c"daos_obj_generate_oid2" | c"daos_obj_generate_oid"
        => fn(Handle, *mut ObjectId, u32, u32, u16, u32);
    object_open = c"daos_obj_open" => fn(Handle, ObjectId, u32, *mut Handle, *mut Event);
    object_close = c"daos_obj_close" => fn(Handle, *mut Event);
    update = c"daos_obj_update"
        => fn(Handle, Handle, u64, *mut Iov, u32, *mut Descriptor, *mut Pieces, *mut Event);
    fetch = c"daos_obj_fetch"
        => fn(Handle, Handle, u64, *mut Iov, u32, *mut Descriptor, *mut Pieces, *mut c_void, *mut Event);
    punch_akeys = c"daos_obj_punch_akeys" => fn(Handle, Handle, u64, *mut Iov, u32, *mut Iov, *mut Event);
    list_dkeys = c"daos_obj_list_dkey"
        => fn(Handle, Handle, *mut u32, *mut ListedKey, *mut Pieces, *mut Anchor, *mut Event);
    list_akeys = c"daos_obj_list_akey"
        => fn(Handle, Handle, *mut Iov, *mut u32, *mut ListedKey, *mut Pieces, *mut Anchor, *mut Event);
}

/// The first of some functions that the library has.
///
/// # Safety
/// They have the type `F`, which is one of function pointers.
unsafe fn symbol<F: Copy>(library: &libloading::Library, names: &[&'static CStr]) -> Result<F, &'static str> {
    // SAFETY: the caller knows the type.
    let found = names.iter().find_map(|name| unsafe { library.get::<F>(name.to_bytes_with_nul()) }.ok());
    // The library is never unloaded.
    found.map(|symbol| *symbol).ok_or_else(|| names[0].to_str().unwrap_or_default())
}

/// A loaded libdaos, which is never unloaded: it has threads.
pub(super) struct Library {
    functions: Functions,
    #[cfg(test)]
    library: &'static libloading::Library,
}

impl fmt::Debug for Library {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Library")
    }
}

impl Library {
    /// Loads a library by path, or by a name that the system looks for. An error is the reason.
    pub(super) fn load(path: &str) -> Result<Self, String> {
        // SAFETY: loading runs the initialisers of the library, which is libdaos or what the user chose instead.
        let library = unsafe { libloading::Library::new(path) }.map_err(|error| error.to_string())?;
        let library: &'static libloading::Library = Box::leak(Box::new(library));
        // SAFETY: the types are those of the headers of DAOS.
        let functions = unsafe { Functions::find(library) };
        let functions =
            functions.map_err(|name| format!("it lacks the function {name}: expected libdaos 2.2 or newer"))?;
        Ok(Self {
            functions,
            #[cfg(test)]
            library,
        })
    }

    /// `daos_init`. An error is the number that libdaos returned, as for all functions of this type.
    pub(super) fn start(&self) -> Result<(), c_int> {
        // SAFETY: it may be called at any time.
        checked(unsafe { (self.functions.init)() })
    }

    /// The class of objects that has a name; 0 for an unknown name.
    pub(super) fn class(&self, name: &CStr) -> u32 {
        // SAFETY: a C string.
        unsafe { (self.functions.class_of_name)(name.as_ptr()) }.cast_unsigned()
    }

    /// The id of an object with integer keys, from the bits of the user.
    pub(super) fn object_id(&self, container: Handle, class: u32, hi: u32, lo: u64) -> Result<ObjectId, c_int> {
        let mut id = ObjectId { lo, hi: hi.into() };
        // SAFETY: the id is valid during the call.
        let rc = unsafe { (self.functions.generate_id)(container, &raw mut id, INTEGER_KEYS, class, DEFAULT_HINTS, 0) };
        checked(rc).map(|()| id)
    }

    /// Calls without an event: returns when the call is complete.
    pub(super) fn call<C: Call>(&self, mut call: C) -> (Result<(), c_int>, C) {
        // SAFETY: without an event, libdaos uses the memory of the call only until it returns.
        let result = checked(unsafe { call.send(&self.functions, ptr::null_mut()) });
        call.complete(result);
        (result, call)
    }
}

/// The knobs and counters of the stand-in.
#[cfg(test)]
impl Library {
    pub(super) fn set_knob(&self, name: &CStr, value: &CStr) {
        // SAFETY: it is called with two C strings.
        type Set = unsafe extern "C" fn(*const c_char, *const c_char) -> c_int;
        // SAFETY: the type of the function of the stand-in.
        let set: Set = unsafe { symbol(self.library, &[c"daos_standin_set"]) }.unwrap();
        // SAFETY: two C strings.
        assert_eq!(unsafe { set(name.as_ptr(), value.as_ptr()) }, 0, "{name:?}={value:?}");
    }

    pub(super) fn count(&self, kind: &CStr) -> u64 {
        type Count = unsafe extern "C" fn(*const c_char) -> u64;
        // SAFETY: the type of the function of the stand-in.
        let count: Count = unsafe { symbol(self.library, &[c"daos_standin_count"]) }.unwrap();
        // SAFETY: a C string.
        unsafe { count(kind.as_ptr()) }
    }

    pub(super) fn reset_counts(&self) {
        // SAFETY: the type of the function of the stand-in.
        let reset: unsafe extern "C" fn() = unsafe { symbol(self.library, &[c"daos_standin_reset"]) }.unwrap();
        // SAFETY: it may be called at any time.
        unsafe { reset() }
    }
}

/// The result of a call: 0, or a negative error number.
fn checked(rc: c_int) -> Result<(), c_int> {
    if rc < 0 { Err(rc) } else { Ok(()) }
}

/// A call of libdaos with all memory that it uses. Pointers lead only to the call itself, which stays in its place while
/// it runs, and to the heap.
pub(super) trait Call: Send + 'static {
    /// Begins the call.
    ///
    /// # Safety
    /// `event` is null or valid. With an event, nothing may move, change or free the call before it is complete.
    unsafe fn send(&mut self, functions: &Functions, event: *mut Event) -> c_int;

    /// Takes over the results of a call that is complete.
    fn complete(&mut self, _result: Result<(), c_int>) {}
}

/// Connects to a pool, or opens a container of one, or an object of one.
#[derive(Debug)]
pub(super) struct Open {
    what: What,
    found: Handle,
}

/// What to open, create or close.
#[derive(Debug)]
enum What {
    Pool { name: CString, flags: u32 },
    NewContainer { pool: Handle, label: CString },
    Container { pool: Handle, name: CString, flags: u32 },
    ClosedContainer(Handle),
    ClosedPool(Handle),
}

impl Open {
    /// `daos_pool_connect`.
    pub(super) fn pool(name: CString, flags: u32) -> Self {
        Self { what: What::Pool { name, flags }, found: Handle::NONE }
    }

    /// `daos_cont_create_with_label`.
    pub(super) fn new_container(pool: Handle, label: CString) -> Self {
        Self { what: What::NewContainer { pool, label }, found: Handle::NONE }
    }

    /// `daos_cont_open`.
    pub(super) fn container(pool: Handle, name: CString, flags: u32) -> Self {
        Self { what: What::Container { pool, name, flags }, found: Handle::NONE }
    }

    /// `daos_cont_close`.
    pub(super) fn close_container(container: Handle) -> Self {
        Self { what: What::ClosedContainer(container), found: Handle::NONE }
    }

    /// `daos_pool_disconnect`.
    pub(super) fn disconnect(pool: Handle) -> Self {
        Self { what: What::ClosedPool(pool), found: Handle::NONE }
    }

    /// The opened handle.
    pub(super) fn handle(&self) -> Handle {
        self.found
    }
}

impl Call for Open {
    // SAFETY: the caller keeps the promise of the trait.
    unsafe fn send(&mut self, functions: &Functions, event: *mut Event) -> c_int {
        let (none, found) = (ptr::null_mut(), &raw mut self.found);
        // SAFETY: names and handle are of the call, so they are valid until it is complete; the event is as well.
        unsafe {
            match &self.what {
                What::Pool { name, flags } => {
                    (functions.pool_connect)(name.as_ptr(), ptr::null(), *flags, found, none, event)
                }
                What::NewContainer { pool, label } => {
                    (functions.container_create)(*pool, label.as_ptr(), none, none, event)
                }
                What::Container { pool, name, flags } => {
                    (functions.container_open)(*pool, name.as_ptr(), *flags, found, none, event)
                }
                What::ClosedContainer(container) => (functions.container_close)(*container, event),
                What::ClosedPool(pool) => (functions.pool_disconnect)(*pool, event),
            }
        }
    }
}

/// An open object, which is closed with its last user.
#[derive(Debug)]
pub(super) struct Object {
    library: &'static Library,
    handle: Handle,
    process: u32,
}

impl Drop for Object {
    fn drop(&mut self) {
        // A forked child has no connection.
        if self.process == std::process::id() {
            // SAFETY: without an event. An error is of no use: the handle ends with the process.
            unsafe { (self.library.functions.object_close)(self.handle, ptr::null_mut()) };
        }
    }
}

/// `daos_obj_open`.
#[derive(Debug)]
pub(super) struct OpenObject {
    library: &'static Library,
    container: Handle,
    id: ObjectId,
    mode: u32,
    handle: Handle,
    opened: Option<Arc<Object>>,
}

impl OpenObject {
    pub(super) fn new(library: &'static Library, container: Handle, id: ObjectId, is_writable: bool) -> Self {
        let mode = if is_writable { OBJECT_WRITE } else { OBJECT_READ };
        Self { library, container, id, mode, handle: Handle::NONE, opened: None }
    }

    /// The object, after success.
    pub(super) fn opened(self) -> Option<Arc<Object>> {
        self.opened
    }
}

impl Call for OpenObject {
    // SAFETY: the caller keeps the promise of the trait.
    unsafe fn send(&mut self, functions: &Functions, event: *mut Event) -> c_int {
        // SAFETY: the handle is of the call, so it is valid until it is complete; the event is as well.
        unsafe { (functions.object_open)(self.container, self.id, self.mode, &raw mut self.handle, event) }
    }

    fn complete(&mut self, result: Result<(), c_int>) {
        let (library, handle, process) = (self.library, self.handle, std::process::id());
        self.opened = result.ok().map(|()| Arc::new(Object { library, handle, process }));
    }
}

/// The operations on values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    Sizes,
    Fetch,
    Update,
    Remove,
}

/// A call for values of one dkey of an object.
#[derive(Debug)]
pub(super) struct Values {
    action: Action,
    /// Open until the call is complete.
    object: Arc<Object>,
    flags: u64,
    dkey: u64,
    dkey_iov: Iov,
    akeys: Vec<u64>,
    akey_iovs: Vec<Iov>,
    descriptors: Vec<Descriptor>,
    lists: Vec<Pieces>,
    iovs: Vec<Iov>,
    /// What an update reads, whose owners keep it.
    sent: Vec<Vec<Bytes>>,
    /// What a fetch writes to. Their lengths are 0 until it is complete.
    fetched: Vec<Vec<u8>>,
}

// SAFETY: the pointers lead to the call's own memory, which no other thread uses.
unsafe impl Send for Values {}

impl Values {
    fn new(action: Action, object: Arc<Object>, flags: u64, dkey: u64, akeys: Vec<u64>) -> Self {
        let descriptor =
            Descriptor { akey: Iov::NONE, kind: SINGLE_VALUE, bytes: 0, flags: 0, count: 1, extents: ptr::null_mut() };
        Self {
            action,
            object,
            flags,
            dkey,
            dkey_iov: Iov::NONE,
            descriptors: vec![descriptor; akeys.len()],
            akeys,
            akey_iovs: Vec::new(),
            lists: Vec::new(),
            iovs: Vec::new(),
            sent: Vec::new(),
            fetched: Vec::new(),
        }
    }

    /// Queries sizes; absent values have 0.
    pub(super) fn sizes(object: Arc<Object>, dkey: u64, akeys: Vec<u64>) -> Self {
        Self::new(Action::Sizes, object, 0, dkey, akeys)
    }

    /// Fetches whole values into as many bytes as expected.
    pub(super) fn fetch(object: Arc<Object>, dkey: u64, values: &[(u64, usize)]) -> Self {
        let akeys = values.iter().map(|(akey, _)| *akey).collect();
        let mut call = Self::new(Action::Fetch, object, MUST_EXIST, dkey, akeys);
        call.fetched = values.iter().map(|(_, bytes)| Vec::with_capacity(*bytes)).collect();
        call
    }

    /// Stores values, all or none. Of those that must be new, none may exist.
    pub(super) fn update(object: Arc<Object>, dkey: u64, values: Vec<(u64, Vec<Bytes>, IsNew)>) -> Self {
        let akeys = values.iter().map(|(akey, ..)| *akey).collect();
        let new = values.iter().filter(|(.., is_new)| is_new.0).count();
        let flags = match new {
            0 => 0,
            _ if new == values.len() => MUST_BE_NEW,
            _ => OF_EACH_AKEY,
        };
        let mut call = Self::new(Action::Update, object, flags, dkey, akeys);
        for (descriptor, (_, pieces, is_new)) in call.descriptors.iter_mut().zip(&values) {
            descriptor.flags = if flags == OF_EACH_AKEY && is_new.0 { MUST_BE_NEW } else { 0 };
            descriptor.bytes = pieces.iter().map(|piece| piece.len() as u64).sum();
        }
        call.sent = values.into_iter().map(|(_, pieces, _)| pieces).collect();
        call
    }

    /// Removes values; missing ones are not an error.
    pub(super) fn remove(object: Arc<Object>, dkey: u64, akeys: Vec<u64>) -> Self {
        Self::new(Action::Remove, object, 0, dkey, akeys)
    }

    /// Sizes of the values, of a call that is complete. After an error they may be wrong.
    pub(super) fn stored_bytes(&self) -> impl Iterator<Item = u64> {
        self.descriptors.iter().map(|descriptor| descriptor.bytes)
    }

    /// The values of a fetch that is complete.
    pub(super) fn fetched(self) -> Vec<Vec<u8>> {
        self.fetched
    }

    /// Points the structures of libdaos to the memory of the call, which does not move any more.
    fn link(&mut self) {
        self.dkey_iov = Iov::key(&raw mut self.dkey);
        let akeys = self.akeys.as_mut_ptr();
        // `wrapping_add` stays in the vector: there are as many descriptors as akeys.
        let akey = |at: usize| Iov::key(akeys.wrapping_add(at));
        for (at, descriptor) in self.descriptors.iter_mut().enumerate() {
            descriptor.akey = akey(at);
        }
        let mut counts = Vec::new();
        match self.action {
            Action::Sizes => return,
            Action::Remove => {
                self.akey_iovs = (0..self.akeys.len()).map(akey).collect();
                return;
            }
            Action::Fetch => {
                let iov = |buffer: &mut Vec<u8>| Iov::new(buffer.as_mut_ptr(), buffer.capacity());
                self.iovs = self.fetched.iter_mut().map(iov).collect();
                counts.resize(self.fetched.len(), 1);
            }
            Action::Update => {
                for pieces in &self.sent {
                    let before = self.iovs.len();
                    // libdaos does not write to what an update stores.
                    let iov = |piece: &Bytes| Iov::new(piece.as_ptr().cast_mut(), piece.len());
                    self.iovs.extend(pieces.iter().filter(|piece| !piece.is_empty()).map(iov));
                    counts.push(self.iovs.len() - before);
                }
            }
        }
        let (mut at, iovs) = (0, self.iovs.as_mut_ptr());
        for count in counts {
            // A value in four billion pieces does not fit into memory.
            self.lists.push(Pieces { count: count as u32, used: 0, iovs: iovs.wrapping_add(at) });
            at += count;
        }
    }
}

/// Whether a value must not exist when it is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct IsNew(pub(super) bool);

impl Call for Values {
    // SAFETY: the caller keeps the promise of the trait.
    unsafe fn send(&mut self, functions: &Functions, event: *mut Event) -> c_int {
        self.link();
        let (handle, flags, dkey) = (self.object.handle, self.flags, &raw mut self.dkey_iov);
        // Calls have at most some hundred akeys.
        let (count, descriptors) = (self.akeys.len() as u32, self.descriptors.as_mut_ptr());
        let (no_transaction, none) = (Handle::NONE, ptr::null_mut());
        // SAFETY: keys, descriptors, lists and buffers are of the call, and there are as many as `count`, so all are valid
        // until it is complete; the event is as well.
        unsafe {
            match self.action {
                Action::Sizes => {
                    let lists = ptr::null_mut();
                    (functions.fetch)(handle, no_transaction, flags, dkey, count, descriptors, lists, none, event)
                }
                Action::Fetch => {
                    let lists = self.lists.as_mut_ptr();
                    (functions.fetch)(handle, no_transaction, flags, dkey, count, descriptors, lists, none, event)
                }
                Action::Update => {
                    let lists = self.lists.as_mut_ptr();
                    (functions.update)(handle, no_transaction, flags, dkey, count, descriptors, lists, event)
                }
                Action::Remove => {
                    let akeys = self.akey_iovs.as_mut_ptr();
                    (functions.punch_akeys)(handle, no_transaction, flags, dkey, count, akeys, event)
                }
            }
        }
    }

    fn complete(&mut self, result: Result<(), c_int>) {
        if self.action != Action::Fetch || result.is_err() {
            return;
        }
        for (buffer, descriptor) in self.fetched.iter_mut().zip(&self.descriptors) {
            let bytes = usize::try_from(descriptor.bytes).unwrap_or(usize::MAX).min(buffer.capacity());
            // SAFETY: the fetch wrote the whole value, whose size is in the descriptor, and it fits.
            unsafe { buffer.set_len(bytes) };
        }
    }
}

/// Lists the keys of an object, or of a dkey of it, in several calls.
#[derive(Debug)]
pub(super) struct List {
    object: Arc<Object>,
    /// The akeys of this dkey.
    dkey: Option<u64>,
    dkey_iov: Iov,
    count: u32,
    listed: Vec<ListedKey>,
    buffer: Vec<u8>,
    iov: Iov,
    list: Pieces,
    anchor: Anchor,
    /// What was found so far.
    keys: Vec<Vec<u8>>,
}

// SAFETY: the pointers lead to the call's own memory, which no other thread uses.
unsafe impl Send for List {}

impl List {
    /// The dkeys of an object, or the akeys of a dkey.
    pub(super) fn new(object: Arc<Object>, dkey: Option<u64>) -> Self {
        Self {
            object,
            dkey,
            dkey_iov: Iov::NONE,
            count: 0,
            listed: vec![ListedKey::default(); LISTED_KEYS],
            buffer: vec![0; LISTED_KEYS * KEY_BYTES],
            iov: Iov::NONE,
            list: Pieces { count: 1, used: 0, iovs: ptr::null_mut() },
            anchor: Anchor { kind: 0, shard: 0, flags: 0, private: 0, place: [0; 104] },
            keys: Vec::new(),
        }
    }

    /// Whether the same call has to be made again.
    pub(super) fn has_more(&self) -> bool {
        self.anchor.kind != END_OF_LIST
    }

    /// All keys; `None` if one is not an integer.
    pub(super) fn keys(&self) -> Option<Vec<u64>> {
        self.keys.iter().map(|key| Some(u64::from_le_bytes(key.as_slice().try_into().ok()?))).collect()
    }
}

impl Call for List {
    // SAFETY: the caller keeps the promise of the trait.
    unsafe fn send(&mut self, functions: &Functions, event: *mut Event) -> c_int {
        let (handle, no_transaction) = (self.object.handle, Handle::NONE);
        self.count = self.listed.len() as u32;
        self.iov = Iov::new(self.buffer.as_mut_ptr(), self.buffer.len());
        self.list.iovs = &raw mut self.iov;
        let (count, listed) = (&raw mut self.count, self.listed.as_mut_ptr());
        let (list, anchor) = (&raw mut self.list, &raw mut self.anchor);
        // SAFETY: all of it is of the call, and there are `count` descriptors, so it is valid until the call is complete;
        // the event is as well.
        unsafe {
            match &mut self.dkey {
                None => (functions.list_dkeys)(handle, no_transaction, count, listed, list, anchor, event),
                Some(dkey) => {
                    self.dkey_iov = Iov::key(&raw mut *dkey);
                    let dkey = &raw mut self.dkey_iov;
                    (functions.list_akeys)(handle, no_transaction, dkey, count, listed, list, anchor, event)
                }
            }
        }
    }

    fn complete(&mut self, result: Result<(), c_int>) {
        let mut rest = &self.buffer[..];
        for listed in self.listed.iter().take(if result.is_ok() { self.count as usize } else { 0 }) {
            let bytes = usize::try_from(listed.bytes).unwrap_or(usize::MAX).min(rest.len());
            let (key, others) = rest.split_at(bytes);
            self.keys.push(key.to_vec());
            rest = others;
        }
    }
}

/// The event queue of a connection, and what still runs in it although its caller no longer waits.
#[derive(Debug)]
pub(super) struct Session {
    library: &'static Library,
    queue: Handle,
    has_abandoned: AtomicBool,
    abandoned: Mutex<Vec<Box<dyn Abandoned>>>,
    process: u32,
}

impl Session {
    /// A new event queue.
    pub(super) fn new(library: &'static Library) -> Result<Arc<Self>, c_int> {
        let mut queue = Handle::NONE;
        // SAFETY: space for a handle.
        checked(unsafe { (library.functions.queue_create)(&raw mut queue) })?;
        let (has_abandoned, abandoned) = (AtomicBool::new(false), Mutex::default());
        Ok(Arc::new(Self { library, queue, has_abandoned, abandoned, process: std::process::id() }))
    }

    /// Whether this process made the connection. A forked child must not use it.
    pub(super) fn is_own(&self) -> bool {
        self.process == std::process::id()
    }

    /// Frees what was abandoned and is complete now; whether nothing else runs.
    pub(super) fn reap(&self) -> bool {
        if !self.has_abandoned.load(Ordering::Acquire) {
            return true;
        }
        let mut abandoned = self.abandoned.lock().unwrap_or_else(PoisonError::into_inner);
        abandoned.retain_mut(|running| !running.is_complete());
        self.has_abandoned.store(!abandoned.is_empty(), Ordering::Release);
        abandoned.is_empty()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if self.is_own() && self.reap() {
            // SAFETY: nothing runs in the queue. An error is of no use: the queue ends with the process.
            unsafe { (self.library.functions.queue_destroy)(self.queue, 0) };
        }
    }
}

/// A batch without a caller.
trait Abandoned: fmt::Debug + Send {
    fn is_complete(&mut self) -> bool;
}

/// Calls that are complete, in the order in which they were given, each after its result.
pub(super) type Results<C> = Vec<(Result<(), c_int>, C)>;

/// Calls that run at the same time.
#[derive(Debug)]
pub(super) struct Batch<C: Call> {
    session: Arc<Session>,
    running: Option<Running<C>>,
}

/// Calls and their events. libdaos uses this memory, so nothing of it changes before the calls are complete.
struct Running<C: Call> {
    library: &'static Library,
    /// The parent, then one of each call.
    events: Vec<Event>,
    calls: Vec<C>,
    /// Errors of calls that did not begin.
    refused: Vec<(usize, c_int)>,
    /// Whether calls may be running.
    is_running: bool,
    no_copy: PhantomData<*mut ()>,
}

// SAFETY: the pointers lead to memory that only this batch uses; events may be tested by any thread.
unsafe impl<C: Call> Send for Running<C> {}

impl<C: Call> fmt::Debug for Running<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Running({} calls)", self.calls.len())
    }
}

impl<C: Call> Running<C> {
    /// Begins all calls. Operations that cannot begin have their error in the results.
    fn send(library: &'static Library, queue: Handle, calls: Vec<C>) -> Result<Self, c_int> {
        let mut running = Self {
            library,
            events: vec![Event::default(); calls.len() + 1],
            calls,
            refused: Vec::new(),
            is_running: false,
            no_copy: PhantomData,
        };
        let (functions, parent) = (&library.functions, running.events.as_mut_ptr());
        // SAFETY: space for an event, which stays where it is until it is finalised.
        checked(unsafe { (functions.event_init)(parent, queue, ptr::null_mut()) })?;
        for (at, call) in running.calls.iter_mut().enumerate() {
            let event = parent.wrapping_add(at + 1);
            // SAFETY: as above; the parent is valid.
            let mut begun = checked(unsafe { (functions.event_init)(event, queue, parent) });
            if begun.is_ok() {
                // Whatever happens from here on, memory is kept until the parent is complete.
                running.is_running = true;
                // SAFETY: a valid event. The calls are not touched before `is_running` is false again.
                begun = checked(unsafe { call.send(functions, event) });
                if begun.is_err() {
                    // SAFETY: the event was not launched, and the parent would wait for it.
                    unsafe { (functions.event_fini)(event) };
                }
            }
            running.refused.extend(begun.err().map(|error| (at, error)));
        }
        match running.refused.len() == running.calls.len() {
            true => running.is_running = false,
            // SAFETY: the parent is valid, and has children.
            false => checked(unsafe { (functions.event_barrier)(parent) })?,
        }
        if !running.is_running {
            // SAFETY: the parent is valid, and nothing runs.
            unsafe { (functions.event_fini)(parent) };
        }
        Ok(running)
    }

    /// Whether all calls are complete, after waiting for at most `time`.
    fn wait(&mut self, time: Duration) -> Result<bool, c_int> {
        if self.is_running {
            let micros = i64::try_from(time.as_micros()).unwrap_or(i64::MAX);
            let (mut is_complete, parent) = (false, self.events.as_mut_ptr());
            // SAFETY: a valid event, and space for the answer.
            match checked(unsafe { (self.library.functions.event_test)(parent, micros, &raw mut is_complete) }) {
                Err(error) if error != code::TIMED_OUT => return Err(error),
                _ => {}
            }
            if is_complete {
                self.is_running = false;
                self.finish();
            }
        }
        Ok(!self.is_running)
    }

    /// Takes over the results of all calls.
    fn finish(&mut self) {
        let parent = self.events.as_mut_ptr();
        // SAFETY: the parent is complete. This finalises its children, too, whose errors stay where they are.
        unsafe { (self.library.functions.event_fini)(parent) };
        for at in 0..self.calls.len() {
            let result = self.result(at);
            self.calls[at].complete(result);
        }
    }

    /// The result of a call that is complete.
    fn result(&self, at: usize) -> Result<(), c_int> {
        let refused = self.refused.iter().find(|(refused, _)| *refused == at);
        checked(refused.map_or(self.events[at + 1].error, |(_, error)| *error))
    }
}

impl<C: Call> Abandoned for Running<C> {
    fn is_complete(&mut self) -> bool {
        // An event that cannot be tested stays: its calls may be running.
        self.wait(Duration::ZERO).unwrap_or(false)
    }
}

impl<C: Call> Drop for Running<C> {
    fn drop(&mut self) {
        if self.is_running {
            // libdaos may still write to this memory, so it is never freed.
            std::mem::forget((std::mem::take(&mut self.events), std::mem::take(&mut self.calls)));
        }
    }
}

impl<C: Call> Batch<C> {
    /// Begins calls.
    pub(super) fn send(session: &Arc<Session>, calls: Vec<C>) -> Result<Self, c_int> {
        session.reap();
        let running = match calls.is_empty() {
            true => None,
            false => Some(Running::send(session.library, session.queue, calls)?),
        };
        Ok(Self { session: Arc::clone(session), running })
    }

    /// Whether all calls are complete, after waiting for at most `time`.
    pub(super) fn wait(&mut self, time: Duration) -> Result<bool, c_int> {
        self.running.as_mut().map_or(Ok(true), |running| running.wait(time))
    }

    /// The calls and their results, when all are complete.
    pub(super) fn results(mut self) -> Results<C> {
        let Some(mut running) = self.running.take_if(|running| !running.is_running) else { return Vec::new() };
        let results: Vec<_> = (0..running.calls.len()).map(|at| running.result(at)).collect();
        results.into_iter().zip(std::mem::take(&mut running.calls)).collect()
    }
}

impl<C: Call> Drop for Batch<C> {
    fn drop(&mut self) {
        if let Some(running) = self.running.take_if(|running| running.is_running) {
            let mut abandoned = self.session.abandoned.lock().unwrap_or_else(PoisonError::into_inner);
            abandoned.push(Box::new(running));
            self.session.has_abandoned.store(true, Ordering::Release);
        }
    }
}
