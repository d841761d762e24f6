//! Exported functions of objects: ids, opening, removing and listing.

use std::ffi::c_int;
use std::sync::Arc;

use crate::abi::{
    ANCHOR_EOF, ANCHOR_HKEY, Anchor, COND_PUNCH, Event, Handle, Iov, KeyDesc, OO_EXCL, OO_RW, ObjectId, SgList,
};
use crate::buffer::{has_integer_akeys, has_integer_dkeys, key, scatter, slice, space};
use crate::class;
use crate::control::Kind;
use crate::error::{DER_INVAL, DER_KEY2BIG, DER_NO_HDL, DER_NO_PERM, DER_NONEXIST, DER_NOTSUPPORTED, Outcome, status};
use crate::handle::{self, OpenObject};
use crate::log::Change;
use crate::store::Contents;
use crate::work::{Job, Out, operation};

/// The object of a handle, outside of transactions, which the stand-in cannot open.
pub(crate) fn object_of(oh: Handle, th: Handle, is_change: bool) -> Outcome<Arc<OpenObject>> {
    let object = handle::object(oh)?;
    if th.cookie != 0 {
        return Err(DER_NO_HDL);
    }
    if is_change && !object.is_writable { Err(DER_NO_PERM) } else { Ok(object) }
}

/// Makes a change of an object.
pub(crate) fn change(object: &OpenObject, compute: impl FnOnce(&Contents) -> Outcome<Change>) -> Outcome {
    if !object.container.is_writable {
        return Err(DER_NO_PERM);
    }
    object.container.container.change(compute)
}

/// `daos_obj_generate_oid` of libdaos 2.4 and later: fills the upper 32 bits of `hi`. `-DER_INVAL` for a class that the
/// pool cannot hold.
///
/// # Safety
/// An object id.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn daos_obj_generate_oid(
    coh: Handle,
    oid: *mut ObjectId,
    kind: u32,
    class: u32,
    _hints: u16,
    _args: u32,
) -> c_int {
    let generate = || {
        let container = handle::container(coh)?;
        let spec = &container.pool.pool.spec;
        // SAFETY: the caller passes an object id.
        let oid = unsafe { oid.as_mut() }.ok_or(DER_INVAL)?;
        *oid = class::generate(*oid, kind, class, spec.targets, spec.ranks)?;
        Ok(())
    };
    status(generate())
}

/// The name that the C headers give to `daos_obj_generate_oid`.
///
/// # Safety
/// As [`daos_obj_generate_oid`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn daos_obj_generate_oid2(
    coh: Handle,
    oid: *mut ObjectId,
    kind: u32,
    class: u32,
    hints: u16,
    args: u32,
) -> c_int {
    // SAFETY: the same function.
    unsafe { daos_obj_generate_oid(coh, oid, kind, class, hints, args) }
}

/// `daos_obj_open`: `-DER_INVAL` for an id that was not generated for the pool.
///
/// # Safety
/// Space for a handle, null or a valid event.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn daos_obj_open(
    coh: Handle,
    oid: ObjectId,
    mode: u32,
    oh: *mut Handle,
    ev: *mut Event,
) -> c_int {
    let job = || -> Outcome<Job> {
        let (container, oh) = (handle::container(coh)?, Out::new(oh));
        let spec = &container.pool.pool.spec;
        let kind = class::type_of(oid, spec.targets, spec.ranks)?;
        Ok(Box::new(move || {
            // SAFETY: space for a handle until the operation is complete.
            unsafe { oh.put(handle::open_object(container, oid, kind, mode & (OO_RW | OO_EXCL) != 0)) };
            Ok(())
        }))
    };
    // SAFETY: the caller passes null or a valid event.
    unsafe { operation(ev, Kind::Other, job()) }
}

/// `daos_obj_close`.
///
/// # Safety
/// Null or a valid event.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn daos_obj_close(oh: Handle, ev: *mut Event) -> c_int {
    let job = || -> Outcome<Job> {
        handle::object(oh)?;
        Ok(Box::new(move || handle::close_object(oh)))
    };
    // SAFETY: the caller passes null or a valid event.
    unsafe { operation(ev, Kind::Other, job()) }
}

/// A job that removes something; with `DAOS_COND_PUNCH`, an error where `exists` does not find it.
fn punch_job(
    object: Arc<OpenObject>,
    flags: u64,
    exists: impl FnOnce(&Contents) -> bool + Send + 'static,
    punch: Change,
) -> Outcome<Job> {
    if flags & !COND_PUNCH != 0 {
        return Err(DER_INVAL);
    }
    Ok(Box::new(move || {
        change(
            &object,
            |contents| {
                if flags & COND_PUNCH != 0 && !exists(contents) { Err(DER_NONEXIST) } else { Ok(punch) }
            },
        )
    }))
}

/// `daos_obj_punch`: removes an object.
///
/// # Safety
/// Null or a valid event.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn daos_obj_punch(oh: Handle, th: Handle, flags: u64, ev: *mut Event) -> c_int {
    let job = || {
        let object = object_of(oh, th, true)?;
        let id = object.id;
        punch_job(object, flags, move |contents| contents.objects.contains_key(&id), Change::Punch { id })
    };
    // SAFETY: the caller passes null or a valid event.
    unsafe { operation(ev, Kind::Other, job()) }
}

/// `daos_obj_punch_dkeys`: removes one dkey; `-DER_INVAL` for more, as in DAOS.
///
/// # Safety
/// Valid dkeys, null or a valid event.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn daos_obj_punch_dkeys(
    oh: Handle,
    th: Handle,
    flags: u64,
    nr: u32,
    dkeys: *mut Iov,
    ev: *mut Event,
) -> c_int {
    let job = || {
        if nr != 1 {
            return Err(DER_INVAL);
        }
        let object = object_of(oh, th, true)?;
        // SAFETY: the caller passes valid keys.
        let dkey = unsafe { key(dkeys, has_integer_dkeys(object.kind)) }?;
        let (id, wanted) = (object.id, dkey.clone());
        let exists = move |contents: &Contents| contents.akeys(id, &wanted).is_some();
        punch_job(object, flags, exists, Change::PunchDkey { id, dkey })
    };
    // SAFETY: the caller passes null or a valid event.
    unsafe { operation(ev, Kind::Other, job()) }
}

/// `daos_obj_punch_akeys`: removes akeys of a dkey.
///
/// # Safety
/// Valid keys, null or a valid event.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn daos_obj_punch_akeys(
    oh: Handle,
    th: Handle,
    flags: u64,
    dkey: *mut Iov,
    nr: u32,
    akeys: *mut Iov,
    ev: *mut Event,
) -> c_int {
    let job = || {
        let object = object_of(oh, th, true)?;
        // SAFETY: the caller passes valid keys.
        let (dkey, akeys) = unsafe { (key(dkey, has_integer_dkeys(object.kind))?, slice(akeys, nr.into())) };
        // SAFETY: the caller passes valid keys.
        let akeys: Vec<_> =
            akeys.iter().map(|akey| unsafe { key(akey, has_integer_akeys(object.kind)) }).collect::<Outcome<_>>()?;
        if akeys.is_empty() {
            return Err(DER_INVAL);
        }
        let (id, wanted) = (object.id, (dkey.clone(), akeys.clone()));
        let exists = move |contents: &Contents| {
            contents.akeys(id, &wanted.0).is_some_and(|found| wanted.1.iter().all(|akey| found.contains_key(akey)))
        };
        punch_job(object, flags, exists, Change::PunchAkeys { id, dkey, akeys })
    };
    // SAFETY: the caller passes null or a valid event.
    unsafe { operation(ev, Kind::Other, job()) }
}

/// `daos_obj_list_dkey`: the next dkeys, in the order of their bytes, one after the other in the buffers.
/// `-DER_KEY2BIG` where the first does not fit.
///
/// # Safety
/// A number, as many descriptors, a valid list, an anchor, null or a valid event; until the operation is complete.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn daos_obj_list_dkey(
    oh: Handle,
    th: Handle,
    nr: *mut u32,
    kds: *mut KeyDesc,
    sgl: *mut SgList,
    anchor: *mut Anchor,
    ev: *mut Event,
) -> c_int {
    let job = || {
        let object = object_of(oh, th, false)?;
        let keys = |contents: &Contents, id| {
            contents.objects.get(&id).into_iter().flatten().map(|(dkey, _)| dkey.clone()).collect()
        };
        // SAFETY: as the caller promises, until the operation is complete.
        unsafe { list_job(object, keys, nr, kds, sgl, anchor) }
    };
    // SAFETY: the caller passes null or a valid event.
    unsafe { operation(ev, Kind::Other, job()) }
}

/// `daos_obj_list_akey`: the next akeys of a dkey, as [`daos_obj_list_dkey`]; none if the dkey does not exist.
///
/// # Safety
/// As [`daos_obj_list_dkey`]; a valid dkey.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn daos_obj_list_akey(
    oh: Handle,
    th: Handle,
    dkey: *mut Iov,
    nr: *mut u32,
    kds: *mut KeyDesc,
    sgl: *mut SgList,
    anchor: *mut Anchor,
    ev: *mut Event,
) -> c_int {
    let job = || {
        let object = object_of(oh, th, false)?;
        // SAFETY: the caller passes a valid key.
        let dkey = unsafe { key(dkey, has_integer_dkeys(object.kind)) }?;
        let keys = move |contents: &Contents, id| {
            contents.akeys(id, &dkey).into_iter().flatten().map(|(akey, _)| akey.clone()).collect()
        };
        // SAFETY: as the caller promises, until the operation is complete.
        unsafe { list_job(object, keys, nr, kds, sgl, anchor) }
    };
    // SAFETY: the caller passes null or a valid event.
    unsafe { operation(ev, Kind::Other, job()) }
}

/// A job that lists the keys that `keys` finds, in the order of their bytes.
///
/// # Safety
/// As [`daos_obj_list_dkey`].
unsafe fn list_job(
    object: Arc<OpenObject>,
    keys: impl FnOnce(&Contents, ObjectId) -> Vec<Vec<u8>> + Send + 'static,
    nr: *mut u32,
    kds: *mut KeyDesc,
    sgl: *mut SgList,
    anchor: *mut Anchor,
) -> Outcome<Job> {
    // SAFETY: null or a number.
    let is_wrong = unsafe { nr.as_ref() }.is_none_or(|&nr| nr == 0);
    if is_wrong || kds.is_null() || sgl.is_null() || anchor.is_null() {
        return Err(DER_INVAL);
    }
    let (nr, kds, sgl, anchor) = (Out::new(nr), Out::new(kds), Out::new(sgl), Out::new(anchor));
    Ok(Box::new(move || {
        // SAFETY: as the caller promises, until the operation is complete; not null.
        let (nr, sgl, anchor) = unsafe { (&mut *nr.get(), &mut *sgl.get(), &mut *anchor.get()) };
        // SAFETY: as above.
        let kds = unsafe { slice(kds.get(), (*nr).into()) };
        let keys = object.container.container.read(|contents| keys(contents, object.id))?;
        // SAFETY: as above.
        unsafe { list(keys, nr, kds, sgl, anchor) }
    }))
}

/// Lists the keys after the one in the anchor, which has its length in one byte, then its bytes.
///
/// # Safety
/// A valid list.
unsafe fn list(
    mut keys: Vec<Vec<u8>>,
    nr: &mut u32,
    kds: &mut [KeyDesc],
    sgl: &mut SgList,
    anchor: &mut Anchor,
) -> Outcome {
    *nr = 0;
    if anchor.da_type == ANCHOR_EOF {
        return Ok(());
    }
    let last = anchor.da_buf[1..].get(..anchor.da_buf[0].into()).ok_or(DER_INVAL)?;
    keys.retain(|key| key.as_slice() > last);
    // SAFETY: the caller checked.
    let (space, mut out) = (unsafe { space(sgl) }?, Vec::new());
    for (kd, key) in kds.iter_mut().zip(&keys) {
        *kd = KeyDesc { kd_key_len: key.len() as u64, kd_val_type: 0 };
        if out.len() as u64 + key.len() as u64 > space {
            break;
        }
        out.extend_from_slice(key);
        *nr += 1;
    }
    // SAFETY: the caller checked, and the keys fit.
    unsafe { scatter(sgl, &out) };
    match keys[..*nr as usize].last() {
        _ if *nr as usize == keys.len() => anchor.da_type = ANCHOR_EOF,
        None => return Err(DER_KEY2BIG),
        Some(key) => {
            let place = anchor.da_buf[1..].get_mut(..key.len()).ok_or(DER_NOTSUPPORTED)?;
            place.copy_from_slice(key);
            anchor.da_buf[0] = u8::try_from(key.len()).map_err(|_| DER_NOTSUPPORTED)?;
            anchor.da_type = ANCHOR_HKEY;
        }
    }
    Ok(())
}
