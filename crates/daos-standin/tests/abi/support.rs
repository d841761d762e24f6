//! What the tests share: handles, keys and values without pointers.

use std::env;
use std::ffi::{CString, c_int};
use std::process::Command;
use std::ptr;
use std::sync::Once;

use daos_standin::abi::{
    COO_RW, Handle, IOD_SINGLE, Iod, Iov, OO_RW, OT_MULTI_UINT64, ObjectId, PC_RW, PoolInfo, SgList,
};
use daos_standin::class::OC_SX;
use daos_standin::control::{daos_standin_count, daos_standin_set};
use daos_standin::daos_init;
use daos_standin::object::{daos_obj_generate_oid2, daos_obj_open};
use daos_standin::pool::{daos_cont_create_with_label, daos_cont_open, daos_pool_connect};
use daos_standin::value::{daos_obj_fetch, daos_obj_update};

/// Set in processes that [`alone`] starts.
const ALONE: &str = "DAOS_STANDIN_TEST_ALONE";

/// `DAOS_TX_NONE`.
pub(crate) const NO_TX: Handle = Handle { cookie: 0 };
/// `DAOS_COND_DKEY_FETCH | DAOS_COND_AKEY_FETCH`, the flags of ROOT.
pub(crate) const MUST_EXIST: u64 = 72;

/// A C string.
pub(crate) fn c(text: &str) -> CString {
    CString::new(text).unwrap()
}

/// Whether this is the separate process of a test, with its environment; otherwise starts that process and waits for it.
pub(crate) fn alone(test: &str, environment: &[(&str, &str)]) -> bool {
    if env::var_os(ALONE).is_some() {
        return true;
    }
    let mut command = Command::new(env::current_exe().unwrap());
    let status = command.args([test, "--exact"]).env(ALONE, "1").envs(environment.iter().copied()).status().unwrap();
    assert!(status.success(), "{test} failed in its process");
    false
}

/// Sets a knob.
pub(crate) fn set(knob: &str, value: &str) -> c_int {
    // SAFETY: both are C strings.
    unsafe { daos_standin_set(c(knob).as_ptr(), c(value).as_ptr()) }
}

/// Reads a counter.
pub(crate) fn count(kind: &str) -> u64 {
    // SAFETY: a C string.
    unsafe { daos_standin_count(c(kind).as_ptr()) }
}

/// `daos_init`, once in the process of parallel tests: pools with 4 targets, with 1, and with 8 on 2 ranks.
pub(crate) fn init() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        assert_eq!(set("DAOS_STANDIN_POOLS", "tank,solo:1,pair:8:2"), 0);
        assert_eq!(daos_init(), 0);
    });
}

/// `daos_pool_connect` without a system.
pub(crate) fn connect(pool: &str, flags: u32) -> Result<(Handle, PoolInfo), c_int> {
    let (mut handle, mut info) = (Handle::default(), PoolInfo::default());
    let none = ptr::null_mut();
    // SAFETY: everything is valid during the call.
    match unsafe { daos_pool_connect(c(pool).as_ptr(), ptr::null(), flags, &mut handle, &mut info, none) } {
        0 => Ok((handle, info)),
        error => Err(error),
    }
}

/// A pool for writing.
pub(crate) fn pool(name: &str) -> Handle {
    init();
    connect(name, PC_RW).unwrap().0
}

/// `daos_cont_create_with_label`.
pub(crate) fn create(pool: Handle, label: &str) -> c_int {
    let none = ptr::null_mut();
    // SAFETY: everything is valid during the call.
    unsafe { daos_cont_create_with_label(pool, c(label).as_ptr(), ptr::null_mut(), ptr::null_mut(), none) }
}

/// `daos_cont_open`.
pub(crate) fn open(pool: Handle, container: &str, flags: u32) -> Result<Handle, c_int> {
    let mut handle = Handle::default();
    let none = ptr::null_mut();
    // SAFETY: everything is valid during the call.
    match unsafe { daos_cont_open(pool, c(container).as_ptr(), flags, &mut handle, ptr::null_mut(), none) } {
        0 => Ok(handle),
        error => Err(error),
    }
}

/// `daos_obj_generate_oid2` with the hints of ROOT.
pub(crate) fn generate(container: Handle, id: ObjectId, kind: u32, class: u32) -> Result<ObjectId, c_int> {
    let mut id = id;
    // SAFETY: a valid id.
    match unsafe { daos_obj_generate_oid2(container, &mut id, kind, class, 1 | 16, 0) } {
        0 => Ok(id),
        error => Err(error),
    }
}

/// `daos_obj_open`.
pub(crate) fn open_object(container: Handle, id: ObjectId, mode: u32) -> Result<Handle, c_int> {
    let mut handle = Handle::default();
    // SAFETY: space for a handle.
    match unsafe { daos_obj_open(container, id, mode, &mut handle, ptr::null_mut()) } {
        0 => Ok(handle),
        error => Err(error),
    }
}

/// An object with integer keys in a new container of the pool `tank`.
pub(crate) fn object(label: &str) -> Handle {
    let pool = pool("tank");
    assert_eq!(create(pool, label), 0);
    let container = open(pool, label, COO_RW).unwrap();
    let id = generate(container, ObjectId { lo: 7, hi: 9 }, OT_MULTI_UINT64, OC_SX).unwrap();
    open_object(container, id, OO_RW).unwrap()
}

/// A key or a buffer over bytes that live as long as it is used.
pub(crate) fn iov(bytes: &mut [u8]) -> Iov {
    let length = bytes.len() as u64;
    Iov { iov_buf: bytes.as_mut_ptr().cast(), iov_buf_len: length, iov_len: length }
}

/// Buffers of one value.
pub(crate) fn list(iovs: &mut [Iov]) -> SgList {
    SgList { sg_nr: u32::try_from(iovs.len()).unwrap(), sg_nr_out: 77, sg_iovs: iovs.as_mut_ptr() }
}

/// A descriptor of a single value.
pub(crate) fn single(akey: &mut [u8], size: u64) -> Iod {
    let iod_recxs = ptr::null_mut();
    Iod { iod_name: iov(akey), iod_type: IOD_SINGLE, iod_size: size, iod_flags: 0, iod_nr: 1, iod_recxs }
}

/// Stores one value, whose size is said to be `size`.
pub(crate) fn update_as(oh: Handle, flags: u64, keys: (&[u8], &[u8]), value: &[u8], size: u64) -> c_int {
    let (mut dkey, mut akey, mut value) = (keys.0.to_vec(), keys.1.to_vec(), value.to_vec());
    let (mut iod, mut iovs) = (single(&mut akey, size), [iov(&mut value)]);
    let mut sgl = list(&mut iovs);
    // SAFETY: everything is valid during the call.
    unsafe { daos_obj_update(oh, NO_TX, flags, &mut iov(&mut dkey), 1, &mut iod, &mut sgl, ptr::null_mut()) }
}

/// Stores one value under integer keys.
pub(crate) fn update(oh: Handle, dkey: u64, akey: u64, value: &[u8]) -> c_int {
    update_as(oh, 0, (&dkey.to_le_bytes(), &akey.to_le_bytes()), value, value.len() as u64)
}

/// What a fetch of one value into buffers left behind.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Fetched {
    pub(crate) rc: c_int,
    pub(crate) iod_size: u64,
    pub(crate) sg_nr_out: u32,
    pub(crate) iov_lens: Vec<u64>,
    /// The buffers, which had 0xee everywhere.
    pub(crate) buffers: Vec<Vec<u8>>,
}

/// Fetches one value into buffers of some sizes.
pub(crate) fn fetch_into(oh: Handle, flags: u64, keys: (&[u8], &[u8]), iod_size: u64, sizes: &[usize]) -> Fetched {
    let (mut dkey, mut akey) = (keys.0.to_vec(), keys.1.to_vec());
    let mut buffers: Vec<Vec<u8>> = sizes.iter().map(|&size| vec![0xee; size]).collect();
    let mut iovs: Vec<Iov> = buffers.iter_mut().map(|buffer| iov(buffer)).collect();
    let (mut iod, mut sgl) = (single(&mut akey, iod_size), list(&mut iovs));
    let (dkey, none) = (&mut iov(&mut dkey), ptr::null_mut());
    // SAFETY: everything is valid during the call.
    let rc = unsafe { daos_obj_fetch(oh, NO_TX, flags, dkey, 1, &mut iod, &mut sgl, ptr::null_mut(), none) };
    let iov_lens = iovs.iter().map(|iov| iov.iov_len).collect();
    Fetched { rc, iod_size: iod.iod_size, sg_nr_out: sgl.sg_nr_out, iov_lens, buffers }
}

/// The value of integer keys, of at most 64 bytes.
pub(crate) fn fetch(oh: Handle, dkey: u64, akey: u64) -> Result<Vec<u8>, c_int> {
    let fetched = fetch_into(oh, MUST_EXIST, (&dkey.to_le_bytes(), &akey.to_le_bytes()), 0, &[64]);
    match fetched.rc {
        0 => Ok(fetched.buffers[0][..usize::try_from(fetched.iod_size).unwrap()].to_vec()),
        error => Err(error),
    }
}
