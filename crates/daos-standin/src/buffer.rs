//! Memory of the caller: keys and lists of buffers.

use crate::abi::{Iov, OT_AKEY_UINT64, OT_DKEY_UINT64, OT_MULTI_UINT64, SgList};
use crate::error::{DER_INVAL, Outcome};

/// A slice of the caller, empty for null.
///
/// # Safety
/// Null, or that many valid values for as long as the slice is used.
pub(crate) unsafe fn slice<'a, T>(pointer: *mut T, count: u64) -> &'a mut [T] {
    match usize::try_from(count) {
        // SAFETY: not null, so the caller has that many values.
        Ok(count) if count > 0 && !pointer.is_null() => unsafe { std::slice::from_raw_parts_mut(pointer, count) },
        _ => &mut [],
    }
}

/// Bytes of a key.
///
/// # Safety
/// Null, or a valid key.
pub(crate) unsafe fn key(key: *const Iov, is_integer: bool) -> Outcome<Vec<u8>> {
    // SAFETY: null or valid.
    let key = unsafe { key.as_ref() }.ok_or(DER_INVAL)?;
    // SAFETY: a valid key has as many bytes as it says.
    let bytes = unsafe { slice(key.iov_buf.cast::<u8>(), key.iov_len) };
    if bytes.is_empty() || is_integer && bytes.len() != 8 { Err(DER_INVAL) } else { Ok(bytes.to_vec()) }
}

/// Whether dkeys of a type of objects are integers.
pub(crate) fn has_integer_dkeys(kind: u32) -> bool {
    [OT_DKEY_UINT64, OT_MULTI_UINT64].contains(&kind)
}

/// Whether akeys of a type of objects are integers.
pub(crate) fn has_integer_akeys(kind: u32) -> bool {
    [OT_AKEY_UINT64, OT_MULTI_UINT64].contains(&kind)
}

/// Bytes that the buffers of a list have.
///
/// # Safety
/// A valid list.
pub(crate) unsafe fn space(sgl: &SgList) -> Outcome<u64> {
    // SAFETY: the caller checked.
    let iovs = unsafe { slice(sgl.sg_iovs, sgl.sg_nr.into()) };
    let is_wrong = |iov: &Iov| iov.iov_buf.is_null() && iov.iov_buf_len > 0;
    if iovs.len() != sgl.sg_nr as usize || iovs.iter().any(is_wrong) {
        return Err(DER_INVAL);
    }
    Ok(iovs.iter().map(|iov| iov.iov_buf_len).sum())
}

/// The value in the buffers of a list.
///
/// # Safety
/// A valid list.
pub(crate) unsafe fn gather(sgl: Option<&mut SgList>, size: u64) -> Outcome<Vec<u8>> {
    let Some(sgl) = sgl.filter(|_| size > 0) else { return Ok(Vec::new()) };
    let size = usize::try_from(size).map_err(|_| DER_INVAL)?;
    let mut value = Vec::with_capacity(size);
    // SAFETY: the caller checked.
    for iov in unsafe { slice(sgl.sg_iovs, sgl.sg_nr.into()) } {
        // SAFETY: buffers have as many bytes as they say.
        let bytes = unsafe { slice(iov.iov_buf.cast::<u8>(), iov.iov_len.min(iov.iov_buf_len)) };
        value.extend_from_slice(&bytes[..bytes.len().min(size - value.len())]);
    }
    if value.len() == size { Ok(value) } else { Err(DER_INVAL) }
}

/// Writes bytes that fit to the buffers of a list, and how much each has.
///
/// # Safety
/// A valid list.
pub(crate) unsafe fn scatter(sgl: &mut SgList, mut bytes: &[u8]) {
    sgl.sg_nr_out = 0;
    // SAFETY: the caller checked.
    for iov in unsafe { slice(sgl.sg_iovs, sgl.sg_nr.into()) } {
        if bytes.is_empty() {
            break;
        }
        // SAFETY: buffers have as much space as they say.
        let space = unsafe { slice(iov.iov_buf.cast::<u8>(), iov.iov_buf_len) };
        let (now, later) = bytes.split_at(space.len().min(bytes.len()));
        space[..now.len()].copy_from_slice(now);
        iov.iov_len = now.len() as u64;
        sgl.sg_nr_out += 1;
        bytes = later;
    }
}
