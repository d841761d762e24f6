//! Handles: the numbers that callers have for open pools, containers and objects. Closed ones are never used again.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use crate::abi::{Handle, ObjectId};
use crate::error::{DER_BUSY, DER_NO_HDL, Outcome};
use crate::store::{Container, Pool};

/// An open pool.
#[derive(Debug)]
pub(crate) struct OpenPool {
    pub(crate) pool: Pool,
    pub(crate) is_writable: bool,
    /// Open containers of this handle.
    containers: AtomicU32,
}

/// An open container.
#[derive(Debug)]
pub(crate) struct OpenContainer {
    pub(crate) pool: Arc<OpenPool>,
    pub(crate) container: Arc<Container>,
    pub(crate) is_writable: bool,
    /// Open objects of this handle.
    objects: AtomicU32,
}

/// An open object.
#[derive(Debug)]
pub(crate) struct OpenObject {
    pub(crate) container: Arc<OpenContainer>,
    pub(crate) id: ObjectId,
    /// The `DAOS_OT_` type in the id.
    pub(crate) kind: u32,
    /// Whether the mode permits changes.
    pub(crate) is_writable: bool,
}

#[derive(Debug, Clone)]
enum Open {
    Pool(Arc<OpenPool>),
    Container(Arc<OpenContainer>),
    Object(Arc<OpenObject>),
}

static OPEN: LazyLock<Mutex<HashMap<u64, Open>>> = LazyLock::new(Mutex::default);
static LAST: AtomicU64 = AtomicU64::new(0);

fn open() -> MutexGuard<'static, HashMap<u64, Open>> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A number that no handle had before.
pub(crate) fn new_cookie() -> u64 {
    LAST.fetch_add(1, Ordering::Relaxed) + 1
}

fn insert(what: Open) -> Handle {
    let cookie = new_cookie();
    open().insert(cookie, what);
    Handle { cookie }
}

/// Opens a pool.
pub(crate) fn open_pool(pool: Pool, is_writable: bool) -> Handle {
    insert(Open::Pool(Arc::new(OpenPool { pool, is_writable, containers: AtomicU32::new(0) })))
}

/// Opens a container of a pool.
pub(crate) fn open_container(pool: Arc<OpenPool>, container: Arc<Container>, is_writable: bool) -> Handle {
    pool.containers.fetch_add(1, Ordering::Relaxed);
    container.handles.fetch_add(1, Ordering::Relaxed);
    insert(Open::Container(Arc::new(OpenContainer { pool, container, is_writable, objects: AtomicU32::new(0) })))
}

/// Opens an object of a container.
pub(crate) fn open_object(container: Arc<OpenContainer>, id: ObjectId, kind: u32, is_writable: bool) -> Handle {
    container.objects.fetch_add(1, Ordering::Relaxed);
    insert(Open::Object(Arc::new(OpenObject { container, id, kind, is_writable })))
}

/// The pool of a handle.
pub(crate) fn pool(handle: Handle) -> Outcome<Arc<OpenPool>> {
    match open().get(&handle.cookie) {
        Some(Open::Pool(pool)) => Ok(pool.clone()),
        _ => Err(DER_NO_HDL),
    }
}

/// The container of a handle.
pub(crate) fn container(handle: Handle) -> Outcome<Arc<OpenContainer>> {
    match open().get(&handle.cookie) {
        Some(Open::Container(container)) => Ok(container.clone()),
        _ => Err(DER_NO_HDL),
    }
}

/// The object of a handle.
pub(crate) fn object(handle: Handle) -> Outcome<Arc<OpenObject>> {
    match open().get(&handle.cookie) {
        Some(Open::Object(object)) => Ok(object.clone()),
        _ => Err(DER_NO_HDL),
    }
}

/// Closes a pool.
///
/// # Errors
/// `DER_BUSY` while containers are open.
pub(crate) fn close_pool(handle: Handle) -> Outcome {
    let pool = pool(handle)?;
    close(handle, &pool.containers)
}

/// Closes a container.
///
/// # Errors
/// `DER_BUSY` while objects are open.
pub(crate) fn close_container(handle: Handle) -> Outcome {
    let container = container(handle)?;
    close(handle, &container.objects)?;
    container.pool.containers.fetch_sub(1, Ordering::Relaxed);
    container.container.handles.fetch_sub(1, Ordering::Relaxed);
    Ok(())
}

/// Closes an object.
pub(crate) fn close_object(handle: Handle) -> Outcome {
    let object = object(handle)?;
    close(handle, &AtomicU32::new(0))?;
    object.container.objects.fetch_sub(1, Ordering::Relaxed);
    Ok(())
}

fn close(handle: Handle, users: &AtomicU32) -> Outcome {
    if users.load(Ordering::Relaxed) > 0 {
        return Err(DER_BUSY);
    }
    open().remove(&handle.cookie).map(drop).ok_or(DER_NO_HDL)
}

/// Closes everything, as the last `daos_fini` does.
pub(crate) fn close_all() {
    for closed in open().drain() {
        if let Open::Container(container) = closed.1 {
            container.container.handles.fetch_sub(1, Ordering::Relaxed);
        }
    }
}
