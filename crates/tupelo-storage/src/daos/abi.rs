//! Structures and constants of the C ABI of libdaos 2.2 to 2.8 on x86-64.

use std::ffi::{c_int, c_void};
use std::ptr;

/// `DAOS_PC_RO`, `DAOS_COO_RO`.
pub(super) const READ: u32 = 1;
/// `DAOS_PC_RW`, `DAOS_COO_RW`.
pub(super) const WRITE: u32 = 2;
/// `DAOS_OO_RO`.
pub(super) const OBJECT_READ: u32 = 2;
/// `DAOS_OO_RW`.
pub(super) const OBJECT_WRITE: u32 = 4;
/// `DAOS_OT_MULTI_UINT64`: dkeys and akeys are integers.
pub(super) const INTEGER_KEYS: u32 = 4;
/// `DAOS_OCH_RDD_DEF | DAOS_OCH_SHD_DEF`, the hints of ROOT.
pub(super) const DEFAULT_HINTS: u16 = 1 | 16;
/// `DAOS_IOD_SINGLE`.
pub(super) const SINGLE_VALUE: u32 = 1;
/// `DAOS_COND_DKEY_FETCH | DAOS_COND_AKEY_FETCH`: an absent value is an error.
pub(super) const MUST_EXIST: u64 = 8 | 64;
/// `DAOS_COND_AKEY_INSERT`: an existing value is an error.
pub(super) const MUST_BE_NEW: u64 = 16;
/// `DAOS_COND_PER_AKEY`: each akey has its own conditions.
pub(super) const OF_EACH_AKEY: u64 = 128;
/// `DAOS_ANCHOR_TYPE_EOF`.
pub(super) const END_OF_LIST: u16 = 3;
/// Bytes of an integer key.
pub(super) const KEY_BYTES: usize = size_of::<u64>();

/// `daos_handle_t`: what is open; 0 is none. libdaos checks handles, so one that is closed is an error.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Handle(u64);

impl Handle {
    pub(super) const NONE: Self = Self(0);
}

/// `daos_obj_id_t`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(super) struct ObjectId {
    pub(super) lo: u64,
    pub(super) hi: u64,
}

/// `d_iov_t` and `daos_key_t`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(super) struct Iov {
    pub(super) buffer: *mut c_void,
    pub(super) buffer_bytes: u64,
    pub(super) bytes: u64,
}

impl Iov {
    pub(super) const NONE: Self = Self { buffer: ptr::null_mut(), buffer_bytes: 0, bytes: 0 };

    pub(super) fn new(buffer: *mut u8, bytes: usize) -> Self {
        Self { buffer: buffer.cast(), buffer_bytes: bytes as u64, bytes: bytes as u64 }
    }

    pub(super) fn key(key: *mut u64) -> Self {
        Self::new(key.cast(), KEY_BYTES)
    }
}

/// `d_sg_list_t`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(super) struct Pieces {
    pub(super) count: u32,
    pub(super) used: u32,
    pub(super) iovs: *mut Iov,
}

/// `daos_iod_t`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(super) struct Descriptor {
    pub(super) akey: Iov,
    pub(super) kind: u32,
    pub(super) bytes: u64,
    pub(super) flags: u64,
    pub(super) count: u32,
    pub(super) extents: *mut c_void,
}

/// `daos_event_t`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Event {
    pub(super) error: c_int,
    pub(super) private: [u64; 20],
    pub(super) debug: u64,
}

/// `daos_anchor_t`: where a listing continues.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(super) struct Anchor {
    pub(super) kind: u16,
    pub(super) shard: u16,
    pub(super) flags: u32,
    pub(super) private: u64,
    pub(super) place: [u8; 104],
}

/// `daos_key_desc_t`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ListedKey {
    pub(super) bytes: u64,
    pub(super) kind: u32,
}

#[cfg(test)]
mod tests {
    use daos_standin::abi;

    use super::*;

    #[test]
    fn layouts_are_those_of_the_headers() {
        let ours = [
            size_of::<Handle>(),
            size_of::<ObjectId>(),
            size_of::<Iov>(),
            size_of::<Pieces>(),
            size_of::<Descriptor>(),
            size_of::<Event>(),
            size_of::<Anchor>(),
            size_of::<ListedKey>(),
        ];
        assert_eq!(ours, [8, 16, 24, 16, 64, 176, 120, 16]);
        assert_eq!(std::mem::offset_of!(Descriptor, bytes), std::mem::offset_of!(abi::Iod, iod_size));
        assert_eq!(std::mem::offset_of!(Descriptor, extents), std::mem::offset_of!(abi::Iod, iod_recxs));
        assert_eq!(std::mem::offset_of!(Pieces, iovs), std::mem::offset_of!(abi::SgList, sg_iovs));
        assert_eq!(std::mem::offset_of!(Anchor, place), std::mem::offset_of!(abi::Anchor, da_buf));
        assert_eq!((READ, WRITE), (abi::PC_RO, abi::PC_RW));
        assert_eq!((OBJECT_READ, OBJECT_WRITE), (abi::OO_RO, abi::OO_RW));
        assert_eq!(MUST_EXIST, abi::COND_DKEY_FETCH | abi::COND_AKEY_FETCH);
        assert_eq!((MUST_BE_NEW, OF_EACH_AKEY), (abi::COND_AKEY_INSERT, abi::COND_PER_AKEY));
        assert_eq!((INTEGER_KEYS, END_OF_LIST), (abi::OT_MULTI_UINT64, abi::ANCHOR_EOF));
    }
}
