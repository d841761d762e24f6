//! Exported functions of pools and containers.

use std::ffi::{c_char, c_int};

use crate::abi::{
    COO_EX, COO_RO, COO_RW, ContInfo, Event, Handle, PC_EX, PC_RO, PC_RW, PROP_CO_LABEL, PROP_CO_LAYOUT_TYPE, PoolInfo,
    Prop, PropEntry,
};
use crate::control::{Kind, text};
use crate::error::{DER_INVAL, DER_NO_PERM, DER_NOTSUPPORTED, Outcome};
use crate::handle;
use crate::log::Change;
use crate::name::{Name, Uuid, is_label};
use crate::store::{self, Container};
use crate::work::{Job, Out, operation};

/// Name of the DAOS system where the caller gives none.
const DEFAULT_SYSTEM: &str = "daos_server";

/// Whether flags permit changes; they must have exactly one of the modes.
fn is_writable(flags: u32, read_only: u32, others: [u32; 2]) -> Outcome<bool> {
    let mode = flags & (read_only | others[0] | others[1]);
    if mode.count_ones() == 1 { Ok(mode != read_only) } else { Err(DER_INVAL) }
}

/// Name of a pool or container.
///
/// # Safety
/// Null, or a C string.
unsafe fn name(pointer: *const c_char) -> Outcome<Name> {
    // SAFETY: the caller checked.
    Name::parse(unsafe { text(pointer) }?)
}

/// `daos_pool_connect`. Errors: `-DER_NONEXIST`, and `-DER_INVAL` for a wrong label, system or mode.
///
/// # Safety
/// C strings, space for a handle, null or a pool info, null or a valid event.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn daos_pool_connect(
    pool: *const c_char,
    sys: *const c_char,
    flags: u32,
    poh: *mut Handle,
    info: *mut PoolInfo,
    ev: *mut Event,
) -> c_int {
    let job = || -> Outcome<Job> {
        // SAFETY: the caller passes C strings, or null for the system.
        let (name, is_system) = unsafe { (name(pool)?, sys.is_null() || text(sys)? == DEFAULT_SYSTEM) };
        let is_writable = is_writable(flags, PC_RO, [PC_RW, PC_EX])?;
        if !is_system || poh.is_null() {
            return Err(DER_INVAL);
        }
        let (poh, info) = (Out::new(poh), Out::new(info));
        Ok(Box::new(move || {
            let pool = store::connect(&name)?;
            // SAFETY: null or valid until the operation is complete.
            if let Some(info) = unsafe { info.get().as_mut() } {
                info.pi_uuid = pool.uuid;
                (info.pi_ntargets, info.pi_nnodes) = (pool.spec.targets, pool.spec.ranks);
                (info.pi_ndisabled, info.pi_map_ver, info.pi_leader) = (0, 1, 0);
            }
            // SAFETY: space for a handle until the operation is complete.
            unsafe { poh.put(handle::open_pool(pool, is_writable)) };
            Ok(())
        }))
    };
    // SAFETY: the caller passes null or a valid event.
    unsafe { operation(ev, Kind::Other, job()) }
}

/// The name that the C headers give to `daos_pool_connect`.
///
/// # Safety
/// As [`daos_pool_connect`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn daos_pool_connect2(
    pool: *const c_char,
    sys: *const c_char,
    flags: u32,
    poh: *mut Handle,
    info: *mut PoolInfo,
    ev: *mut Event,
) -> c_int {
    // SAFETY: the same function.
    unsafe { daos_pool_connect(pool, sys, flags, poh, info, ev) }
}

/// `daos_pool_disconnect`: `-DER_BUSY` while containers are open.
///
/// # Safety
/// Null or a valid event.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn daos_pool_disconnect(poh: Handle, ev: *mut Event) -> c_int {
    let job = || -> Outcome<Job> {
        handle::pool(poh)?;
        Ok(Box::new(move || handle::close_pool(poh)))
    };
    // SAFETY: the caller passes null or a valid event.
    unsafe { operation(ev, Kind::Other, job()) }
}

/// Entries of properties.
///
/// # Safety
/// Null, or valid properties.
unsafe fn entries<'a>(prop: *mut Prop) -> &'a mut [PropEntry] {
    // SAFETY: null or valid.
    match unsafe { prop.as_ref() } {
        // SAFETY: as many entries as the properties say.
        Some(prop) if prop.dpp_nr > 0 => unsafe {
            std::slice::from_raw_parts_mut(prop.dpp_entries, prop.dpp_nr as usize)
        },
        _ => &mut [],
    }
}

/// `daos_cont_create_with_label`. Errors: `-DER_EXIST`, `-DER_INVAL` for a wrong label, `-DER_NO_PERM` where the pool
/// is read-only, `-DER_NOTSUPPORTED` for properties other than label and layout.
///
/// # Safety
/// A C string, null or properties, null or space for a UUID, null or a valid event.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn daos_cont_create_with_label(
    poh: Handle,
    label: *const c_char,
    prop: *mut Prop,
    uuid: *mut Uuid,
    ev: *mut Event,
) -> c_int {
    let job = || -> Outcome<Job> {
        // SAFETY: the caller passes a C string.
        let label = unsafe { text(label) }?.to_owned();
        // SAFETY: the caller passes null or properties.
        let entries = unsafe { entries(prop) };
        if !is_label(&label) {
            return Err(DER_INVAL);
        }
        if entries.iter().any(|entry| ![PROP_CO_LABEL, PROP_CO_LAYOUT_TYPE].contains(&entry.dpe_type)) {
            return Err(DER_NOTSUPPORTED);
        }
        let layout =
            entries.iter().find(|entry| entry.dpe_type == PROP_CO_LAYOUT_TYPE).map_or(0, |entry| entry.dpe_val);
        let (pool, uuid) = (handle::pool(poh)?, Out::new(uuid));
        Ok(Box::new(move || {
            if !pool.is_writable {
                return Err(DER_NO_PERM);
            }
            let created = pool.pool.create(&label, layout)?;
            // SAFETY: null or space for a UUID until the operation is complete.
            unsafe { uuid.put(created) };
            Ok(())
        }))
    };
    // SAFETY: the caller passes null or a valid event.
    unsafe { operation(ev, Kind::Other, job()) }
}

/// What is known about a container.
fn info_of(container: &Container) -> ContInfo {
    let ci_nhandles = container.handles.load(std::sync::atomic::Ordering::Relaxed);
    ContInfo { ci_uuid: container.uuid, ci_nhandles, ..ContInfo::default() }
}

/// `daos_cont_open`. Errors: `-DER_NONEXIST`, `-DER_INVAL` for a wrong label or mode, `-DER_NO_PERM` for writing where
/// the pool is read-only.
///
/// # Safety
/// A C string, space for a handle, null or space for the info, null or a valid event.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn daos_cont_open(
    poh: Handle,
    cont: *const c_char,
    flags: u32,
    coh: *mut Handle,
    info: *mut ContInfo,
    ev: *mut Event,
) -> c_int {
    let job = || -> Outcome<Job> {
        // SAFETY: the caller passes a C string.
        let name = unsafe { name(cont) }?;
        let is_writable = is_writable(flags, COO_RO, [COO_RW, COO_EX])?;
        if coh.is_null() {
            return Err(DER_INVAL);
        }
        let (pool, coh, info) = (handle::pool(poh)?, Out::new(coh), Out::new(info));
        Ok(Box::new(move || {
            if is_writable && !pool.is_writable {
                return Err(DER_NO_PERM);
            }
            let container = pool.pool.find(&name)?;
            let opened = handle::open_container(pool, container.clone(), is_writable);
            // SAFETY: null or space for the values until the operation is complete.
            unsafe {
                info.put(info_of(&container));
                coh.put(opened);
            }
            Ok(())
        }))
    };
    // SAFETY: the caller passes null or a valid event.
    unsafe { operation(ev, Kind::Other, job()) }
}

/// The name that the C headers give to `daos_cont_open`.
///
/// # Safety
/// As [`daos_cont_open`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn daos_cont_open2(
    poh: Handle,
    cont: *const c_char,
    flags: u32,
    coh: *mut Handle,
    info: *mut ContInfo,
    ev: *mut Event,
) -> c_int {
    // SAFETY: the same function.
    unsafe { daos_cont_open(poh, cont, flags, coh, info, ev) }
}

/// `daos_cont_close`: `-DER_BUSY` while objects are open.
///
/// # Safety
/// Null or a valid event.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn daos_cont_close(coh: Handle, ev: *mut Event) -> c_int {
    let job = || -> Outcome<Job> {
        handle::container(coh)?;
        Ok(Box::new(move || handle::close_container(coh)))
    };
    // SAFETY: the caller passes null or a valid event.
    unsafe { operation(ev, Kind::Other, job()) }
}

/// `daos_cont_destroy`: `-DER_BUSY` while it is open in this process, except by force.
///
/// # Safety
/// A C string, null or a valid event.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn daos_cont_destroy(poh: Handle, cont: *const c_char, force: c_int, ev: *mut Event) -> c_int {
    let job = || -> Outcome<Job> {
        // SAFETY: the caller passes a C string.
        let name = unsafe { name(cont) }?;
        let pool = handle::pool(poh)?;
        Ok(Box::new(move || if pool.is_writable { pool.pool.destroy(&name, force != 0) } else { Err(DER_NO_PERM) }))
    };
    // SAFETY: the caller passes null or a valid event.
    unsafe { operation(ev, Kind::Other, job()) }
}

/// The name that the C headers give to `daos_cont_destroy`.
///
/// # Safety
/// As [`daos_cont_destroy`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn daos_cont_destroy2(poh: Handle, cont: *const c_char, force: c_int, ev: *mut Event) -> c_int {
    // SAFETY: the same function.
    unsafe { daos_cont_destroy(poh, cont, force, ev) }
}

/// `daos_cont_query`: `-DER_NOTSUPPORTED` for properties other than the layout.
///
/// # Safety
/// Null or space for the info, null or properties, null or a valid event.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn daos_cont_query(coh: Handle, info: *mut ContInfo, prop: *mut Prop, ev: *mut Event) -> c_int {
    let job = || -> Outcome<Job> {
        let (container, info, prop) = (handle::container(coh)?, Out::new(info), Out::new(prop));
        Ok(Box::new(move || {
            let container = &container.container;
            // SAFETY: null or properties until the operation is complete.
            for entry in unsafe { entries(prop.get()) } {
                if entry.dpe_type != PROP_CO_LAYOUT_TYPE {
                    return Err(DER_NOTSUPPORTED);
                }
                entry.dpe_val = container.layout;
            }
            // SAFETY: null or space for the info until the operation is complete.
            unsafe { info.put(info_of(container)) };
            Ok(())
        }))
    };
    // SAFETY: the caller passes null or a valid event.
    unsafe { operation(ev, Kind::Other, job()) }
}

/// `daos_cont_alloc_oids`: the first of `num_oids` numbers that no caller gets again.
///
/// # Safety
/// Space for a number, null or a valid event.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn daos_cont_alloc_oids(coh: Handle, num_oids: u64, oid: *mut u64, ev: *mut Event) -> c_int {
    let job = || -> Outcome<Job> {
        if num_oids == 0 || oid.is_null() {
            return Err(DER_INVAL);
        }
        let (container, oid) = (handle::container(coh)?, Out::new(oid));
        Ok(Box::new(move || {
            if !container.is_writable {
                return Err(DER_NO_PERM);
            }
            let mut first = 0;
            container.container.change(|contents| {
                first = contents.last_oid + 1;
                Ok(Change::LastOid(contents.last_oid.checked_add(num_oids).ok_or(DER_INVAL)?))
            })?;
            // SAFETY: space for a number until the operation is complete.
            unsafe { oid.put(first) };
            Ok(())
        }))
    };
    // SAFETY: the caller passes null or a valid event.
    unsafe { operation(ev, Kind::Other, job()) }
}
