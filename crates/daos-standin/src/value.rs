//! Exported functions of single values: update and fetch.

use std::ffi::c_int;
use std::sync::Arc;

use crate::abi::{
    COND_AKEY_FETCH, COND_AKEY_INSERT, COND_AKEY_UPDATE, COND_DKEY_FETCH, COND_DKEY_INSERT, COND_DKEY_UPDATE,
    COND_PER_AKEY, COND_PUNCH, Event, Handle, IOD_ARRAY, IOD_SINGLE, Iod, Iom, Iov, SgList,
};
use crate::buffer::{gather, has_integer_akeys, has_integer_dkeys, key, scatter, space};
use crate::control::Kind;
use crate::error::{DER_EXIST, DER_INVAL, DER_NONEXIST, DER_NOTSUPPORTED, DER_REC2BIG, Outcome};
use crate::handle::OpenObject;
use crate::log::Change;
use crate::object::{change, object_of};
use crate::work::{Job, Out, operation};

/// Flags that are wrong for a fetch.
const NOT_FOR_FETCH: u64 = COND_PUNCH | COND_DKEY_INSERT | COND_DKEY_UPDATE | COND_AKEY_INSERT | COND_AKEY_UPDATE;
/// Flags that are wrong for an update.
const NOT_FOR_UPDATE: u64 = COND_PUNCH | COND_DKEY_FETCH | COND_AKEY_FETCH;
/// Flags of akeys that cannot be combined with flags per akey.
const OF_AKEYS: u64 = COND_AKEY_INSERT | COND_AKEY_UPDATE | COND_AKEY_FETCH;

/// An update or fetch.
struct Request {
    object: Arc<OpenObject>,
    flags: u64,
    dkey: Vec<u8>,
    count: u32,
    iods: Out<Iod>,
    /// Null to query sizes, or to remove values.
    sgls: Out<SgList>,
}

impl Request {
    /// Copies the dkey, and checks what libdaos checks before it sends a request.
    ///
    /// # Safety
    /// A valid dkey, `count` valid descriptors and, except for null, as many lists.
    unsafe fn new(
        (oh, th): (Handle, Handle),
        flags: u64,
        dkey: *mut Iov,
        count: u32,
        (iods, sgls): (*mut Iod, *mut SgList),
        is_update: bool,
    ) -> Outcome<Self> {
        let object = object_of(oh, th, is_update)?;
        let wrong = if is_update { NOT_FOR_UPDATE } else { NOT_FOR_FETCH };
        if flags & wrong != 0 || flags & COND_PER_AKEY != 0 && flags & OF_AKEYS != 0 || count == 0 || iods.is_null() {
            return Err(DER_INVAL);
        }
        // SAFETY: the caller passes a valid key.
        let dkey = unsafe { key(dkey, has_integer_dkeys(object.kind)) }?;
        let request = Self { object, flags, dkey, count, iods: Out::new(iods), sgls: Out::new(sgls) };
        for index in 0..count as usize {
            // SAFETY: the caller passes valid descriptors and lists.
            let (iod, sgl) = unsafe { (request.iod(index), request.sgl(index)) };
            // SAFETY: a valid descriptor has a valid key.
            unsafe { key(&iod.iod_name, has_integer_akeys(request.object.kind)) }?;
            // SAFETY: valid lists have valid buffers.
            let space = sgl.map(|sgl| unsafe { space(sgl) }).transpose()?;
            match (iod.iod_type, space) {
                (IOD_ARRAY, _) => return Err(DER_NOTSUPPORTED),
                (IOD_SINGLE, _) if iod.iod_nr != 1 => return Err(DER_INVAL),
                (IOD_SINGLE, None) if is_update && iod.iod_size != 0 => return Err(DER_INVAL),
                (IOD_SINGLE, Some(space)) if iod.iod_size > space => return Err(DER_REC2BIG),
                (IOD_SINGLE, _) => {}
                _ => return Err(DER_INVAL),
            }
        }
        Ok(request)
    }

    /// # Safety
    /// The descriptors are valid, and no other is borrowed.
    unsafe fn iod<'a>(&self, index: usize) -> &'a mut Iod {
        // SAFETY: the caller checked.
        unsafe { &mut *self.iods.get().add(index) }
    }

    /// # Safety
    /// The lists are valid, and no other is borrowed.
    unsafe fn sgl<'a>(&self, index: usize) -> Option<&'a mut SgList> {
        // SAFETY: the caller checked.
        (!self.sgls.get().is_null()).then(|| unsafe { &mut *self.sgls.get().add(index) })
    }

    /// Akeys with the flags that hold for each.
    ///
    /// # Safety
    /// The descriptors are valid.
    unsafe fn akeys(&self) -> Outcome<Vec<(Vec<u8>, u64)>> {
        let akey = |index| {
            // SAFETY: the caller checked.
            let iod = unsafe { self.iod(index) };
            let flags = if self.flags & COND_PER_AKEY == 0 { self.flags } else { iod.iod_flags };
            // SAFETY: a valid descriptor has a valid key.
            Ok((unsafe { key(&iod.iod_name, false) }?, flags))
        };
        (0..self.count as usize).map(akey).collect()
    }

    /// # Safety
    /// As [`Request::new`], until the operation is complete.
    unsafe fn update(&self) -> Outcome {
        // SAFETY: the caller lends everything until the operation is complete.
        let akeys = unsafe { self.akeys() }?;
        let mut values = Vec::new();
        for (index, (akey, _)) in akeys.iter().enumerate() {
            // SAFETY: as above.
            let (iod, sgl) = unsafe { (self.iod(index), self.sgl(index)) };
            // SAFETY: as above.
            values.push((akey.clone(), unsafe { gather(sgl, iod.iod_size) }?));
        }
        change(&self.object, |contents| {
            let found = contents.akeys(self.object.id, &self.dkey);
            let is_new = |akey: &Vec<u8>| found.is_none_or(|found| !found.contains_key(akey));
            let any = |flag, wanted| akeys.iter().any(|(akey, flags)| flags & flag != 0 && is_new(akey) == wanted);
            if self.flags & COND_DKEY_INSERT != 0 && found.is_some() || any(COND_AKEY_INSERT, false) {
                return Err(DER_EXIST);
            }
            if self.flags & COND_DKEY_UPDATE != 0 && found.is_none() || any(COND_AKEY_UPDATE, true) {
                return Err(DER_NONEXIST);
            }
            Ok(Change::Update { id: self.object.id, dkey: self.dkey.clone(), values })
        })
    }

    /// # Safety
    /// As [`Request::new`], until the operation is complete.
    unsafe fn fetch(&self) -> Outcome {
        // SAFETY: the caller lends everything until the operation is complete.
        let akeys = unsafe { self.akeys() }?;
        let values = self.object.container.container.read(|contents| {
            let found = contents.akeys(self.object.id, &self.dkey);
            if found.is_none() && self.flags & COND_DKEY_FETCH != 0 {
                return Err(DER_NONEXIST);
            }
            let value = |(akey, flags): &(Vec<u8>, u64)| {
                let value = found.and_then(|found| found.get(akey)).cloned();
                if value.is_none() && flags & COND_AKEY_FETCH != 0 { Err(DER_NONEXIST) } else { Ok(value) }
            };
            akeys.iter().map(value).collect::<Outcome<Vec<_>>>()
        })??;
        let mut fits = true;
        for (index, value) in values.iter().enumerate() {
            // SAFETY: as above.
            let (iod, sgl) = unsafe { (self.iod(index), self.sgl(index)) };
            let size = value.as_ref().map_or(0, |value| value.len() as u64);
            // SAFETY: as above.
            let space = sgl.filter(|sgl| sgl.sg_nr > 0).map(|sgl| unsafe { space(sgl) }).transpose()?;
            fits &= (iod.iod_size == 0 || size <= iod.iod_size) && space.is_none_or(|space| size <= space);
            iod.iod_size = size;
        }
        if !fits {
            return Err(DER_REC2BIG);
        }
        for (index, value) in values.iter().enumerate() {
            // SAFETY: as above.
            if let Some(sgl) = unsafe { self.sgl(index) } {
                // SAFETY: the value fits, as checked above.
                unsafe { scatter(sgl, value.as_ref().map_or(&[], |value| value.as_slice())) };
            }
        }
        Ok(())
    }
}

/// `daos_obj_update`: stores single values under one dkey, all or none.
///
/// # Safety
/// A valid dkey, `nr` valid descriptors and lists, null or a valid event; all of it until the operation is complete.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn daos_obj_update(
    oh: Handle,
    th: Handle,
    flags: u64,
    dkey: *mut Iov,
    nr: u32,
    iods: *mut Iod,
    sgls: *mut SgList,
    ev: *mut Event,
) -> c_int {
    let job = || -> Outcome<Job> {
        // SAFETY: as the caller promises.
        let request = unsafe { Request::new((oh, th), flags, dkey, nr, (iods, sgls), true) }?;
        // SAFETY: as the caller promises, until the operation is complete.
        Ok(Box::new(move || unsafe { request.update() }))
    };
    // SAFETY: the caller passes null or a valid event.
    unsafe { operation(ev, Kind::Update, job()) }
}

/// `daos_obj_fetch`: reads single values of one dkey, or their sizes. Nothing is read when one is too large.
///
/// # Safety
/// As [`daos_obj_update`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn daos_obj_fetch(
    oh: Handle,
    th: Handle,
    flags: u64,
    dkey: *mut Iov,
    nr: u32,
    iods: *mut Iod,
    sgls: *mut SgList,
    ioms: *mut Iom,
    ev: *mut Event,
) -> c_int {
    let job = || -> Outcome<Job> {
        // SAFETY: as the caller promises.
        let request = unsafe { Request::new((oh, th), flags, dkey, nr, (iods, sgls), false) }?;
        if !ioms.is_null() {
            return Err(DER_NOTSUPPORTED);
        }
        // SAFETY: as the caller promises, until the operation is complete.
        Ok(Box::new(move || unsafe { request.fetch() }))
    };
    // SAFETY: the caller passes null or a valid event.
    unsafe { operation(ev, Kind::Fetch, job()) }
}
