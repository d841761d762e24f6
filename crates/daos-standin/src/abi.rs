//! Structures and constants of the C ABI of libdaos 2.2 to 2.8 on x86-64. Fields have the names of the C headers.

use std::ffi::c_void;
use std::ptr;

/// `daos_handle_t`: a pool, container, object or event queue; 0 is none.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Handle {
    /// The identity of what is open.
    pub cookie: u64,
}

/// `daos_obj_id_t`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId {
    /// All bits are the user's.
    pub lo: u64,
    /// The upper 32 bits are type and class, the lower ones are the user's.
    pub hi: u64,
}

/// `d_iov_t`, which is `daos_key_t` too.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Iov {
    /// The bytes.
    pub iov_buf: *mut c_void,
    /// Size of the buffer in bytes.
    pub iov_buf_len: u64,
    /// Bytes of it that are used.
    pub iov_len: u64,
}

impl Default for Iov {
    fn default() -> Self {
        Self { iov_buf: ptr::null_mut(), iov_buf_len: 0, iov_len: 0 }
    }
}

/// `d_sg_list_t`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct SgList {
    /// Number of buffers.
    pub sg_nr: u32,
    /// Number of buffers that a fetch wrote to.
    pub sg_nr_out: u32,
    /// The buffers.
    pub sg_iovs: *mut Iov,
}

/// `daos_recx_t`: an extent of an array.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Recx {
    /// First record.
    pub rx_idx: u64,
    /// Number of records.
    pub rx_nr: u64,
}

/// `daos_iod_t`: what to read or write under one akey.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Iod {
    /// The akey.
    pub iod_name: Iov,
    /// [`IOD_SINGLE`] or [`IOD_ARRAY`].
    pub iod_type: u32,
    /// Bytes of the value; 0 where it is not known.
    pub iod_size: u64,
    /// Conditions of this akey, with [`COND_PER_AKEY`].
    pub iod_flags: u64,
    /// Number of extents; 1 for a single value.
    pub iod_nr: u32,
    /// The extents; null for a single value.
    pub iod_recxs: *mut Recx,
}

/// `daos_iom_t`: extents that a fetch found. The stand-in does not fill it.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Iom {
    /// Kind of value.
    pub iom_type: u32,
    /// Number of extents that `iom_recxs` holds.
    pub iom_nr: u32,
    /// Number of extents found.
    pub iom_nr_out: u32,
    /// Flags.
    pub iom_flags: u32,
    /// Bytes of a record.
    pub iom_size: u64,
    /// First extent.
    pub iom_recx_lo: Recx,
    /// Last extent.
    pub iom_recx_hi: Recx,
    /// All extents.
    pub iom_recxs: *mut Recx,
}

/// `daos_event_t`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Event {
    /// Error of the operation, 0 or negative.
    pub ev_error: i32,
    /// The library's; the stand-in keeps the event's number in the first word.
    pub ev_private: [u64; 20],
    /// Not used.
    pub ev_debug: u64,
}

/// `daos_anchor_t`: where a listing continues.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Anchor {
    /// [`ANCHOR_EOF`] at the end.
    pub da_type: u16,
    /// The library's.
    pub da_shard: u16,
    /// Flags.
    pub da_flags: u32,
    /// The library's.
    pub da_sub_anchors: u64,
    /// The library's.
    pub da_buf: [u8; 104],
}

impl Default for Anchor {
    fn default() -> Self {
        Self { da_type: 0, da_shard: 0, da_flags: 0, da_sub_anchors: 0, da_buf: [0; 104] }
    }
}

/// `daos_key_desc_t`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct KeyDesc {
    /// Bytes of the key.
    pub kd_key_len: u64,
    /// Kind of value.
    pub kd_val_type: u32,
}

/// `daos_pool_info_t`. The stand-in fills it down to `pi_leader`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct PoolInfo {
    /// UUID of the pool.
    pub pi_uuid: [u8; 16],
    /// Number of targets.
    pub pi_ntargets: u32,
    /// Number of ranks.
    pub pi_nnodes: u32,
    /// Number of targets that are out of use.
    pub pi_ndisabled: u32,
    /// Version of the pool's map.
    pub pi_map_ver: u32,
    /// Rank of the leader.
    pub pi_leader: u32,
    /// In: what to fill.
    pub pi_bits: u64,
    /// Space, which the stand-in leaves alone.
    pub pi_space: [u64; 11],
    /// State of a rebuild, which the stand-in leaves alone.
    pub pi_rebuild_st: [u64; 7],
}

/// `daos_cont_info_t`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct ContInfo {
    /// UUID of the container.
    pub ci_uuid: [u8; 16],
    /// Last snapshot, always 0.
    pub ci_lsnapshot: u64,
    /// Number of open handles, of this process.
    pub ci_nhandles: u32,
    /// Number of snapshots, always 0.
    pub ci_nsnapshots: u32,
    /// Time of the last open, always 0.
    pub ci_md_otime: u64,
    /// Time of the last change, always 0.
    pub ci_md_mtime: u64,
}

/// `struct daos_prop_entry`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct PropEntry {
    /// Which property, such as [`PROP_CO_LAYOUT_TYPE`].
    pub dpe_type: u32,
    /// Flags.
    pub dpe_flags: u16,
    /// Not used.
    pub dpe_reserv: u16,
    /// The value, or a pointer to it.
    pub dpe_val: u64,
}

/// `daos_prop_t`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Prop {
    /// Number of entries.
    pub dpp_nr: u32,
    /// Not used.
    pub dpp_reserv: u32,
    /// The entries.
    pub dpp_entries: *mut PropEntry,
}

/// `DAOS_PC_RO`: pool for reading.
pub const PC_RO: u32 = 1;
/// `DAOS_PC_RW`: pool for reading and writing.
pub const PC_RW: u32 = 2;
/// `DAOS_PC_EX`: pool for exclusive use.
pub const PC_EX: u32 = 4;
/// `DAOS_COO_RO`: container for reading.
pub const COO_RO: u32 = 1;
/// `DAOS_COO_RW`: container for reading and writing.
pub const COO_RW: u32 = 2;
/// `DAOS_COO_EX`: container for exclusive use.
pub const COO_EX: u32 = 4;
/// `DAOS_OO_RO`: object for reading.
pub const OO_RO: u32 = 2;
/// `DAOS_OO_RW`: object for reading and writing.
pub const OO_RW: u32 = 4;
/// `DAOS_OO_EXCL`: object for exclusive use.
pub const OO_EXCL: u32 = 8;
/// `DAOS_IOD_SINGLE`: a single value.
pub const IOD_SINGLE: u32 = 1;
/// `DAOS_IOD_ARRAY`: an array, which the stand-in does not have.
pub const IOD_ARRAY: u32 = 2;
/// `DAOS_EQ_DESTROY_FORCE`.
pub const EQ_DESTROY_FORCE: i32 = 1;
/// `DAOS_COND_PUNCH`: punch only what exists.
pub const COND_PUNCH: u64 = 1;
/// `DAOS_COND_DKEY_INSERT`: the dkey must be new.
pub const COND_DKEY_INSERT: u64 = 2;
/// `DAOS_COND_DKEY_UPDATE`: the dkey must exist.
pub const COND_DKEY_UPDATE: u64 = 4;
/// `DAOS_COND_DKEY_FETCH`: the dkey must exist.
pub const COND_DKEY_FETCH: u64 = 8;
/// `DAOS_COND_AKEY_INSERT`: the akeys must be new.
pub const COND_AKEY_INSERT: u64 = 16;
/// `DAOS_COND_AKEY_UPDATE`: the akeys must exist.
pub const COND_AKEY_UPDATE: u64 = 32;
/// `DAOS_COND_AKEY_FETCH`: the akeys must exist.
pub const COND_AKEY_FETCH: u64 = 64;
/// `DAOS_COND_PER_AKEY`: each akey has its own conditions, in `iod_flags`.
pub const COND_PER_AKEY: u64 = 128;
/// `DAOS_PROP_CO_LABEL`.
pub const PROP_CO_LABEL: u32 = 4097;
/// `DAOS_PROP_CO_LAYOUT_TYPE`.
pub const PROP_CO_LAYOUT_TYPE: u32 = 4098;
/// `DAOS_PROP_CO_LAYOUT_ROOT`.
pub const PROP_CO_LAYOUT_ROOT: u64 = 6;
/// `DAOS_PROP_LABEL_MAX_LEN`, in bytes.
pub const LABEL_MAX_LEN: usize = 127;
/// `DAOS_OT_DKEY_UINT64`: dkeys of 8 bytes.
pub const OT_DKEY_UINT64: u32 = 2;
/// `DAOS_OT_AKEY_UINT64`: akeys of 8 bytes.
pub const OT_AKEY_UINT64: u32 = 3;
/// `DAOS_OT_MULTI_UINT64`: dkeys and akeys of 8 bytes.
pub const OT_MULTI_UINT64: u32 = 4;
/// `DAOS_OT_MAX`: the last type of objects.
pub const OT_MAX: u32 = 14;
/// `DAOS_ANCHOR_TYPE_HKEY`: within a listing.
pub const ANCHOR_HKEY: u16 = 1;
/// `DAOS_ANCHOR_TYPE_EOF`: the end of a listing.
pub const ANCHOR_EOF: u16 = 3;
/// `MAX_OBJ_CLASS_NAME_LEN`, in bytes.
pub const CLASS_NAME_MAX_LEN: usize = 24;
