//! Sizes and offsets, as a C program printed them from the headers of DAOS.

use std::mem::{align_of, offset_of, size_of};

use daos_standin::abi::{
    Anchor, ContInfo, Event, Handle, Iod, Iom, Iov, KeyDesc, ObjectId, PoolInfo, Prop, PropEntry, Recx, SgList,
};

macro_rules! layout {
    ($type:ty, $size:literal, $align:literal, $($field:ident = $offset:literal),*) => {
        assert_eq!((size_of::<$type>(), align_of::<$type>()), ($size, $align), stringify!($type));
        $(assert_eq!(offset_of!($type, $field), $offset, stringify!($type.$field));)*
    };
}

#[test]
fn structures_have_the_layout_of_c() {
    layout!(Handle, 8, 8, cookie = 0);
    layout!(ObjectId, 16, 8, lo = 0, hi = 8);
    layout!(Iov, 24, 8, iov_buf = 0, iov_buf_len = 8, iov_len = 16);
    layout!(SgList, 16, 8, sg_nr = 0, sg_nr_out = 4, sg_iovs = 8);
    layout!(Recx, 16, 8, rx_idx = 0, rx_nr = 8);
    layout!(Iod, 64, 8, iod_name = 0, iod_type = 24, iod_size = 32, iod_flags = 40, iod_nr = 48, iod_recxs = 56);
    layout!(
        Iom,
        64,
        8,
        iom_type = 0,
        iom_nr = 4,
        iom_nr_out = 8,
        iom_flags = 12,
        iom_size = 16,
        iom_recx_lo = 24,
        iom_recx_hi = 40,
        iom_recxs = 56
    );
    layout!(Event, 176, 8, ev_error = 0, ev_private = 8, ev_debug = 168);
    layout!(Anchor, 120, 8, da_type = 0, da_shard = 2, da_flags = 4, da_sub_anchors = 8, da_buf = 16);
    layout!(KeyDesc, 16, 8, kd_key_len = 0, kd_val_type = 8);
    layout!(
        PoolInfo,
        192,
        8,
        pi_uuid = 0,
        pi_ntargets = 16,
        pi_nnodes = 20,
        pi_ndisabled = 24,
        pi_map_ver = 28,
        pi_leader = 32,
        pi_bits = 40,
        pi_space = 48,
        pi_rebuild_st = 136
    );
    layout!(ContInfo, 48, 8, ci_uuid = 0);
    layout!(Prop, 16, 8, dpp_nr = 0, dpp_reserv = 4, dpp_entries = 8);
    layout!(PropEntry, 16, 8, dpe_type = 0, dpe_flags = 4, dpe_reserv = 6, dpe_val = 8);
}
