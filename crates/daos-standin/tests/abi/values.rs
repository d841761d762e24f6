//! Single values: keys, sizes, buffers, conditions, removal and listing.

use std::ptr;

use daos_standin::abi::{
    ANCHOR_EOF, Anchor, COND_AKEY_FETCH, COND_AKEY_INSERT, COND_AKEY_UPDATE, COND_DKEY_FETCH, COND_DKEY_INSERT,
    COND_DKEY_UPDATE, COND_PER_AKEY, COND_PUNCH, COO_RW, Handle, IOD_ARRAY, Iov, KeyDesc, OO_RO, OO_RW, ObjectId,
};
use daos_standin::class::OC_S1;
use daos_standin::object::{
    daos_obj_list_akey, daos_obj_list_dkey, daos_obj_punch, daos_obj_punch_akeys, daos_obj_punch_dkeys,
};
use daos_standin::value::{daos_obj_fetch, daos_obj_update};

use crate::support::{
    Fetched, MUST_EXIST, NO_TX, fetch, fetch_into, generate, iov, list, object, open, open_object, pool, single,
    update, update_as,
};

const ONE: [u8; 8] = 1u64.to_le_bytes();
const TWO: [u8; 8] = 2u64.to_le_bytes();

/// The error of a fetch into 8 bytes.
fn rc(oh: Handle, flags: u64, dkey: &[u8], akey: &[u8]) -> i32 {
    fetch_into(oh, flags, (dkey, akey), 0, &[8]).rc
}

/// Size of a value by a fetch without buffers.
fn size(oh: Handle, flags: u64, akey: [u8; 8]) -> Result<u64, i32> {
    let (mut dkey, mut akey) = (ONE, akey);
    let mut iod = single(&mut akey, 0);
    let (dkey, none) = (&mut iov(&mut dkey), ptr::null_mut());
    // SAFETY: everything is valid during the call.
    match unsafe { daos_obj_fetch(oh, NO_TX, flags, dkey, 1, &mut iod, ptr::null_mut(), ptr::null_mut(), none) } {
        0 => Ok(iod.iod_size),
        error => Err(error),
    }
}

#[test]
fn integer_keys_have_8_bytes() {
    let oh = object("keys");
    for (dkey, akey) in [(&ONE[..4], &ONE[..]), (&ONE, &ONE[..4]), (&[0; 9], &ONE), (&ONE, &[])] {
        assert_eq!((update_as(oh, 0, (dkey, akey), b"x", 1), rc(oh, 0, dkey, akey)), (-1003, -1003));
    }
    let pool = pool("tank");
    let container = open(pool, "keys", COO_RW).unwrap();
    let hashed = open_object(container, generate(container, ObjectId::default(), 0, OC_S1).unwrap(), OO_RW).unwrap();
    assert_eq!(update_as(hashed, 0, (b"dkey", b"a"), b"x", 1), 0);
    assert_eq!(fetch_into(hashed, MUST_EXIST, (b"dkey", b"a"), 0, &[1]).buffers, [b"x"]);
}

#[test]
fn conditions_of_the_wrong_kind_are_invalid() {
    let oh = object("flags");
    assert_eq!(rc(oh, COND_DKEY_FETCH | COND_AKEY_INSERT, &ONE, &ONE), -1003);
    assert_eq!(rc(oh, COND_PER_AKEY | COND_AKEY_FETCH, &ONE, &ONE), -1003);
    for flags in [COND_DKEY_FETCH, COND_AKEY_FETCH, COND_PUNCH, COND_PER_AKEY | COND_AKEY_INSERT] {
        assert_eq!(update_as(oh, flags, (&ONE, &ONE), b"x", 1), -1003);
    }
}

#[test]
fn absent_keys() {
    let oh = object("absent");
    let untouched = |rc, iod_size, sg_nr_out| {
        let (iov_lens, buffers) = (vec![8], vec![vec![0xee; 8]]);
        Fetched { rc, iod_size, sg_nr_out, iov_lens, buffers }
    };
    assert_eq!(fetch_into(oh, 0, (&ONE, &ONE), 5, &[8]), untouched(0, 0, 0));
    assert_eq!(fetch_into(oh, MUST_EXIST, (&ONE, &ONE), 5, &[8]), untouched(-1005, 5, 77));
    assert_eq!(update(oh, 1, 1, b"x"), 0);
    assert_eq!((rc(oh, COND_DKEY_FETCH, &ONE, &TWO), rc(oh, COND_AKEY_FETCH, &ONE, &TWO)), (0, -1005));
    assert_eq!((rc(oh, 0, &TWO, &TWO), rc(oh, COND_DKEY_FETCH, &TWO, &TWO)), (0, -1005));
}

#[test]
fn one_absent_akey_fails_the_whole_fetch() {
    let oh = object("several");
    assert_eq!((update(oh, 1, 1, b"first"), update(oh, 1, 2, b"second")), (0, 0));
    for (second, flags, expected) in [(2, MUST_EXIST, 0), (3, MUST_EXIST, -1005), (3, 0, 0)] {
        let (mut dkey, mut akeys) = (ONE, [ONE, u64::to_le_bytes(second)]);
        let mut buffers = [[0; 8]; 2];
        let mut iovs: Vec<[Iov; 1]> = buffers.iter_mut().map(|buffer| [iov(buffer)]).collect();
        let mut sgls: Vec<_> = iovs.iter_mut().map(|iovs| list(iovs)).collect();
        let mut iods: Vec<_> = akeys.iter_mut().map(|akey| single(akey, 0)).collect();
        let (dkey, iods_at, sgls_at) = (&mut iov(&mut dkey), iods.as_mut_ptr(), sgls.as_mut_ptr());
        // SAFETY: everything is valid during the call.
        let rc =
            unsafe { daos_obj_fetch(oh, NO_TX, flags, dkey, 2, iods_at, sgls_at, ptr::null_mut(), ptr::null_mut()) };
        assert_eq!(rc, expected);
        let sizes: Vec<u64> = iods.iter().map(|iod| iod.iod_size).collect();
        match (rc, second) {
            (0, 2) => assert_eq!((sizes, buffers), (vec![5, 6], [*b"first\0\0\0", *b"second\0\0"])),
            (0, _) => assert_eq!((sizes, buffers), (vec![5, 0], [*b"first\0\0\0", [0; 8]])),
            _ => assert_eq!((sizes, buffers), (vec![0, 0], [[0; 8]; 2])),
        }
    }
}

#[test]
fn sizes_are_queried_without_buffers() {
    let oh = object("sizes");
    assert_eq!(update(oh, 1, 1, b"value"), 0);
    assert_eq!((size(oh, 0, ONE), size(oh, 0, TWO), size(oh, MUST_EXIST, TWO)), (Ok(5), Ok(0), Err(-1005)));
}

#[test]
fn buffers_may_be_larger_but_not_smaller() {
    let oh = object("buffers");
    assert_eq!(update(oh, 1, 1, b"value"), 0);
    let fetched = |iod_size, sizes: &[usize]| fetch_into(oh, MUST_EXIST, (&ONE, &ONE), iod_size, sizes);
    let small = fetched(0, &[4]);
    assert_eq!((small.rc, small.iod_size, small.buffers), (-2013, 5, vec![vec![0xee; 4]]));
    let small = fetched(4, &[4]);
    assert_eq!((small.rc, small.iod_size), (-2013, 5));
    let small = fetched(4, &[8]);
    assert_eq!((small.rc, small.iod_size), (-2013, 5));
    for iod_size in [0, 5, 8] {
        let large = fetched(iod_size, &[8]);
        assert_eq!((large.rc, large.iod_size, large.sg_nr_out, large.iov_lens), (0, 5, 1, vec![5]));
        assert_eq!(large.buffers, [b"value\xee\xee\xee"]);
    }
    assert_eq!(fetched(9, &[8]).rc, -2013);
    let split = fetched(0, &[2, 1, 4, 3]);
    assert_eq!((split.rc, split.iod_size, split.sg_nr_out, split.iov_lens), (0, 5, 3, vec![2, 1, 2, 3]));
    assert_eq!(split.buffers, [&b"va"[..], b"l", b"ue\xee\xee", b"\xee\xee\xee"]);
}

#[test]
fn updates_have_the_size_of_the_descriptor() {
    let oh = object("updates");
    assert_eq!((update_as(oh, 0, (&ONE, &ONE), b"value", 6), size(oh, 0, ONE)), (-2013, Ok(0)));
    assert_eq!((update_as(oh, 0, (&ONE, &ONE), b"value", 3), fetch(oh, 1, 1)), (0, Ok(b"val".to_vec())));
    assert_eq!((update(oh, 1, 1, b"a longer value"), update(oh, 1, 1, b"short")), (0, 0));
    assert_eq!(fetch(oh, 1, 1), Ok(b"short".to_vec()));
    assert_eq!((update_as(oh, 0, (&ONE, &ONE), b"value", 0), fetch(oh, 1, 1)), (0, Err(-1005)));
}

#[test]
fn values_are_gathered_from_buffers() {
    let oh = object("gather");
    let (mut dkey, mut akey, mut parts) = (ONE, ONE, [b"one".to_vec(), Vec::new(), b"two, three".to_vec()]);
    let mut iovs: Vec<Iov> = parts.iter_mut().map(|part| iov(part)).collect();
    let update = |iovs: &mut [Iov], akey: &mut [u8], dkey: &mut [u8], size| {
        let (mut iod, mut sgl) = (single(akey, size), list(iovs));
        // SAFETY: everything is valid during the call.
        unsafe { daos_obj_update(oh, NO_TX, 0, &mut iov(dkey), 1, &mut iod, &mut sgl, ptr::null_mut()) }
    };
    assert_eq!(update(&mut iovs, &mut akey, &mut dkey, 13), 0);
    assert_eq!(fetch(oh, 1, 1), Ok(b"onetwo, three".to_vec()));
    iovs[2].iov_len = 1;
    assert_eq!(update(&mut iovs, &mut akey, &mut dkey, 13), -1003);
}

#[test]
fn large_values_come_back() {
    let oh = object("large");
    let value: Vec<u8> = (0..64u32 << 20).map(|index| (index.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    assert_eq!(update(oh, 1, 1, &value), 0);
    let fetched = fetch_into(oh, MUST_EXIST, (&ONE, &ONE), 0, &[1 << 20, 63 << 20]);
    assert_eq!((fetched.rc, fetched.sg_nr_out, fetched.buffers.concat() == value), (0, 2, true));
}

#[test]
fn conditional_updates() {
    let oh = object("conditions");
    let update = |flags, dkey: &[u8], akey: &[u8]| update_as(oh, flags, (dkey, akey), b"x", 1);
    assert_eq!((update(COND_DKEY_UPDATE, &ONE, &ONE), update(COND_AKEY_UPDATE, &ONE, &ONE)), (-1005, -1005));
    assert_eq!((update(COND_DKEY_INSERT, &ONE, &ONE), update(COND_DKEY_INSERT, &ONE, &TWO)), (0, -1004));
    assert_eq!((update(COND_AKEY_INSERT, &ONE, &ONE), update(COND_AKEY_INSERT, &ONE, &TWO)), (-1004, 0));
    assert_eq!((update(COND_DKEY_UPDATE, &ONE, &ONE), update(COND_AKEY_UPDATE, &ONE, &ONE)), (0, 0));
}

#[test]
fn other_requests_are_errors() {
    let oh = object("others");
    let (mut dkey, mut akey, mut value) = (ONE, ONE, [0]);
    let mut iovs = [iov(&mut value)];
    let mut update = |th, nr, change: &dyn Fn(&mut daos_standin::abi::Iod)| {
        let (mut iod, mut sgl) = (single(&mut akey, 1), list(&mut iovs));
        change(&mut iod);
        // SAFETY: everything is valid during the call.
        unsafe { daos_obj_update(oh, th, 0, &mut iov(&mut dkey), nr, &mut iod, &mut sgl, ptr::null_mut()) }
    };
    assert_eq!(update(NO_TX, 1, &|_| ()), 0);
    assert_eq!((update(Handle { cookie: 1 }, 1, &|_| ()), update(NO_TX, 0, &|_| ())), (-1002, -1003));
    assert_eq!(update(NO_TX, 1, &|iod| iod.iod_nr = 2), -1003);
    assert_eq!(
        (update(NO_TX, 1, &|iod| iod.iod_type = 7), update(NO_TX, 1, &|iod| iod.iod_type = IOD_ARRAY)),
        (-1003, -2037)
    );
    let container = open(pool("tank"), "others", COO_RW).unwrap();
    let id = generate(container, ObjectId { lo: 7, hi: 9 }, 4, OC_S1).unwrap();
    let read_only = open_object(container, id, OO_RO).unwrap();
    assert_eq!(crate::support::update(read_only, 1, 1, b"x"), -1001);
}

#[test]
fn objects_and_keys_are_removed() {
    let oh = object("punch");
    for (dkey, akey) in [(1, 1), (1, 2), (2, 1), (3, 1)] {
        assert_eq!(update(oh, dkey, akey, b"x"), 0);
    }
    let none = ptr::null_mut();
    let punch_dkey = |flags, mut dkey: [u8; 8]| {
        // SAFETY: a valid key.
        unsafe { daos_obj_punch_dkeys(oh, NO_TX, flags, 1, &mut iov(&mut dkey), none) }
    };
    let punch_akey = |flags, mut dkey: [u8; 8], mut akey: [u8; 8]| {
        // SAFETY: valid keys.
        unsafe { daos_obj_punch_akeys(oh, NO_TX, flags, &mut iov(&mut dkey), 1, &mut iov(&mut akey), none) }
    };
    // SAFETY: without an event.
    let punch = |flags| unsafe { daos_obj_punch(oh, NO_TX, flags, none) };
    assert_eq!((punch_akey(0, ONE, ONE), fetch(oh, 1, 1), fetch(oh, 1, 2)), (0, Err(-1005), Ok(b"x".to_vec())));
    assert_eq!((punch_akey(0, ONE, ONE), punch_akey(COND_PUNCH, ONE, ONE)), (0, -1005));
    assert_eq!((punch_dkey(COND_PUNCH, TWO), punch_dkey(0, TWO), punch_dkey(COND_PUNCH, TWO)), (0, 0, -1005));
    assert_eq!((fetch(oh, 2, 1), fetch(oh, 3, 1)), (Err(-1005), Ok(b"x".to_vec())));
    assert_eq!((punch(COND_PUNCH), punch(0), punch(COND_PUNCH), punch(8)), (0, 0, -1005, -1003));
    assert_eq!((fetch(oh, 3, 1), update(oh, 3, 1, b"y"), fetch(oh, 3, 1)), (Err(-1005), 0, Ok(b"y".to_vec())));
    // SAFETY: the number is refused before the keys are read.
    assert_eq!(unsafe { daos_obj_punch_dkeys(oh, NO_TX, 0, 2, ptr::null_mut(), none) }, -1003);
}

#[test]
fn dkeys_are_listed_in_parts() {
    let oh = object("list");
    (1..=5).for_each(|dkey| assert_eq!(update(oh, dkey, 1, b"x"), 0));
    let mut anchor = Anchor::default();
    let call = |anchor: &mut Anchor, count: u32, space: usize| {
        let (mut nr, mut kds, mut buffer) = (count, [KeyDesc::default(); 9], vec![0; space]);
        let mut iovs = [iov(&mut buffer)];
        let mut sgl = list(&mut iovs);
        // SAFETY: everything is valid during the call.
        let rc = unsafe { daos_obj_list_dkey(oh, NO_TX, &mut nr, kds.as_mut_ptr(), &mut sgl, anchor, ptr::null_mut()) };
        let keys = buffer.chunks_exact(8).map(|key| u64::from_le_bytes(key.try_into().unwrap()));
        (rc, keys.take(nr as usize).collect::<Vec<_>>(), kds[0].kd_key_len)
    };
    assert_eq!(call(&mut anchor, 0, 8), (-1003, vec![], 0));
    assert_eq!(call(&mut anchor, 2, 7), (-2012, vec![], 8));
    assert_eq!(call(&mut anchor, 2, 100), (0, vec![1, 2], 8));
    assert_eq!(update(oh, 1, 1, b""), 0);
    assert_eq!(call(&mut anchor, 9, 17), (0, vec![3, 4], 8));
    assert_ne!(anchor.da_type, ANCHOR_EOF);
    assert_eq!(call(&mut anchor, 9, 100), (0, vec![5], 8));
    assert_eq!(anchor.da_type, ANCHOR_EOF);
    assert_eq!(call(&mut anchor, 9, 100), (0, vec![], 0));
}

#[test]
fn akeys_of_a_dkey_are_listed_in_parts() {
    let oh = object("list-akeys");
    for akey in 1..=3 {
        assert_eq!(update(oh, 7, akey, b"x"), 0);
    }
    assert_eq!(update(oh, 8, 9, b"x"), 0);
    let call = |anchor: &mut Anchor, dkey: &[u8]| {
        let (mut nr, mut kds, mut buffer, mut dkey) = (2, [KeyDesc::default(); 2], [0; 16], dkey.to_vec());
        let (mut iovs, mut dkey) = ([iov(&mut buffer)], iov(&mut dkey));
        let (mut sgl, none) = (list(&mut iovs), ptr::null_mut());
        // SAFETY: everything is valid during the call.
        let rc = unsafe { daos_obj_list_akey(oh, NO_TX, &mut dkey, &mut nr, kds.as_mut_ptr(), &mut sgl, anchor, none) };
        let keys = buffer.chunks_exact(8).map(|key| u64::from_le_bytes(key.try_into().unwrap()));
        (rc, keys.take(nr as usize).collect::<Vec<_>>(), anchor.da_type == ANCHOR_EOF)
    };
    let mut anchor = Anchor::default();
    assert_eq!(call(&mut anchor, &7u64.to_le_bytes()), (0, vec![1, 2], false));
    assert_eq!(call(&mut anchor, &7u64.to_le_bytes()), (0, vec![3], true));
    assert_eq!(call(&mut Anchor::default(), &8u64.to_le_bytes()), (0, vec![9], true));
    assert_eq!(call(&mut Anchor::default(), &1u64.to_le_bytes()), (0, vec![], true), "an absent dkey has no akeys");
    assert_eq!(call(&mut Anchor::default(), b"short").0, -1003);
}
