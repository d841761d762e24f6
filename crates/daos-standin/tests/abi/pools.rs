//! The library, pools, containers and object ids.

use std::ffi::{CStr, c_char};
use std::ptr;

use daos_standin::abi::{
    COO_RO, COO_RW, ContInfo, Handle, OO_RW, ObjectId, PC_RO, PC_RW, PROP_CO_LABEL, PROP_CO_LAYOUT_ROOT,
    PROP_CO_LAYOUT_TYPE, PoolInfo, Prop, PropEntry,
};
use daos_standin::class::{
    OC_EC_2P1GX, OC_RP_2G1, OC_RP_XSF, OC_S1, OC_S2, OC_SX, OC_UNKNOWN, daos_oclass_id2name, daos_oclass_name2id,
};
use daos_standin::error::{d_errdesc, d_errstr};
use daos_standin::object::{daos_obj_close, daos_obj_generate_oid};
use daos_standin::pool::{
    daos_cont_alloc_oids, daos_cont_close, daos_cont_create_with_label, daos_cont_destroy, daos_cont_query,
    daos_pool_connect, daos_pool_disconnect,
};
use daos_standin::{daos_fini, daos_init};

use crate::support::{alone, c, connect, create, generate, init, open, open_object, pool, set, update};

/// The text of a UUID.
fn text(uuid: [u8; 16]) -> String {
    let mut text: String = uuid.iter().map(|byte| format!("{byte:02x}")).collect();
    [8, 13, 18, 23].into_iter().for_each(|index| text.insert(index, '-'));
    text
}

fn disconnect(pool: Handle) -> i32 {
    // SAFETY: without an event.
    unsafe { daos_pool_disconnect(pool, ptr::null_mut()) }
}

fn close(container: Handle) -> i32 {
    // SAFETY: without an event.
    unsafe { daos_cont_close(container, ptr::null_mut()) }
}

fn destroy(pool: Handle, name: &str, force: i32) -> i32 {
    // SAFETY: a C string, without an event.
    unsafe { daos_cont_destroy(pool, c(name).as_ptr(), force, ptr::null_mut()) }
}

fn alloc(container: Handle, count: u64) -> Result<u64, i32> {
    let mut first = 0;
    // SAFETY: space for a number.
    match unsafe { daos_cont_alloc_oids(container, count, &mut first, ptr::null_mut()) } {
        0 => Ok(first),
        error => Err(error),
    }
}

#[test]
fn init_is_counted() {
    if !alone("pools::init_is_counted", &[]) {
        return;
    }
    assert_eq!(daos_fini(), -1015);
    assert_eq!(connect("tank", PC_RW).unwrap_err(), -1015);
    assert_eq!((daos_init(), daos_init()), (0, 0));
    let (first, _) = connect("tank", PC_RW).unwrap();
    assert_eq!(create(first, "kept"), 0);
    assert_eq!(daos_fini(), 0);
    assert!(open(first, "kept", COO_RO).is_ok());
    assert_eq!(daos_fini(), 0);
    assert_eq!(open(first, "kept", COO_RO).unwrap_err(), -1015);
    assert_eq!(daos_init(), 0);
    assert_eq!(open(first, "kept", COO_RO).unwrap_err(), -1002);
    let (second, _) = connect("tank", PC_RW).unwrap();
    assert!(open(second, "kept", COO_RO).is_ok());
}

#[test]
fn a_wrong_variable_is_an_error_of_init() {
    if alone("pools::a_wrong_variable_is_an_error_of_init", &[("DAOS_STANDIN_LATENCY_US", "soon")]) {
        assert_eq!(daos_init(), -1003);
    }
}

#[test]
fn pools_are_those_of_the_variable() {
    if !alone("pools::pools_are_those_of_the_variable", &[("DAOS_STANDIN_POOLS", "one:2,two:6:3")]) {
        return;
    }
    assert_eq!(daos_init(), 0);
    let targets = |pool| connect(pool, PC_RO).map(|(_, info)| (info.pi_ntargets, info.pi_nnodes));
    assert_eq!([targets("one"), targets("two"), targets("tank")], [Ok((2, 1)), Ok((6, 3)), Err(-1005)]);
    assert_eq!((set("DAOS_STANDIN_POOLS", "three"), targets("three")), (0, Ok((4, 1))));
    assert_eq!((set("DAOS_STANDIN_POOLS", "three:0"), set("DAOS_STANDIN_X", "1")), (-1003, -1003));
}

#[test]
fn pools_have_labels_and_uuids() {
    init();
    let (handle, info) = connect("tank", PC_RW).unwrap();
    assert_eq!((info.pi_ntargets, info.pi_nnodes), (4, 1));
    assert_ne!(info.pi_uuid, [0; 16]);
    let (again, same) = connect(&text(info.pi_uuid), PC_RO).unwrap();
    assert_eq!(same.pi_uuid, info.pi_uuid);
    assert_ne!(again, handle);
    for (name, error) in [("nowhere", -1005), ("no label", -1003), ("", -1003), (&text([1; 16]), -1005)] {
        assert_eq!(connect(name, PC_RW).unwrap_err(), error, "{name}");
    }
    assert_eq!((connect("tank", 0).unwrap_err(), connect("tank", PC_RO | PC_RW).unwrap_err()), (-1003, -1003));
    for (system, expected) in [("daos_server", 0), ("wrong", -1003)] {
        let (system, label, mut handle) = (c(system), c("tank"), Handle::default());
        let none = ptr::null_mut::<PoolInfo>();
        // SAFETY: C strings and space for a handle.
        let rc =
            unsafe { daos_pool_connect(label.as_ptr(), system.as_ptr(), PC_RW, &mut handle, none, ptr::null_mut()) };
        assert_eq!(rc, expected);
    }
    assert_eq!((disconnect(again), disconnect(again), disconnect(Handle::default())), (0, -1002, -1002));
}

#[test]
fn containers_have_labels_and_uuids() {
    let pool = pool("tank");
    let (label, mut uuid, mut info) = (c("named"), [0; 16], ContInfo::default());
    let mut entry =
        PropEntry { dpe_type: PROP_CO_LAYOUT_TYPE, dpe_flags: 0, dpe_reserv: 0, dpe_val: PROP_CO_LAYOUT_ROOT };
    let mut prop = Prop { dpp_nr: 1, dpp_reserv: 0, dpp_entries: &mut entry };
    // SAFETY: everything is valid during the call.
    let rc = unsafe { daos_cont_create_with_label(pool, label.as_ptr(), &mut prop, &mut uuid, ptr::null_mut()) };
    assert_eq!((rc, create(pool, "named")), (0, -1004));
    let by_label = open(pool, "named", COO_RW).unwrap();
    let by_uuid = open(pool, &text(uuid), COO_RO).unwrap();
    let mut entry = PropEntry { dpe_val: 0, ..entry };
    prop.dpp_entries = &mut entry;
    // SAFETY: everything is valid during the call.
    assert_eq!(unsafe { daos_cont_query(by_uuid, &mut info, &mut prop, ptr::null_mut()) }, 0);
    assert_eq!((info.ci_uuid, info.ci_nhandles, entry.dpe_val), (uuid, 2, PROP_CO_LAYOUT_ROOT));
    let mut entry = PropEntry { dpe_type: PROP_CO_LABEL, ..entry };
    prop.dpp_entries = &mut entry;
    // SAFETY: everything is valid during the call.
    assert_eq!(unsafe { daos_cont_query(by_uuid, ptr::null_mut(), &mut prop, ptr::null_mut()) }, -2037);
    for (name, error) in [("unknown", -1005), ("no label", -1003), (&text([1; 16]), -1005)] {
        assert_eq!(open(pool, name, COO_RW).unwrap_err(), error, "{name}");
    }
    for label in ["", "a/b", &"x".repeat(128), &text([1; 16])] {
        assert_eq!(create(pool, label), -1003, "{label}");
    }
    assert_eq!(create(pool, &"x".repeat(127)), 0);
    assert_eq!(disconnect(pool), -1012);
    assert_eq!((close(by_label), close(by_label), open(by_label, "named", COO_RO)), (0, -1002, Err(-1002)));
    assert_eq!(destroy(pool, "named", 0), -1012);
    assert_eq!(close(by_uuid), 0);
    assert_eq!((destroy(pool, "named", 0), destroy(pool, "named", 0), disconnect(pool)), (0, -1005, 0));
}

#[test]
fn a_destroyed_container_is_gone_for_its_handles() {
    let pool = pool("tank");
    assert_eq!(create(pool, "doomed"), 0);
    let container = open(pool, "doomed", COO_RW).unwrap();
    assert_eq!((destroy(pool, "doomed", 1), alloc(container, 1)), (0, Err(-1002)));
    assert_eq!(create(pool, "doomed"), 0);
    assert_eq!(alloc(open(pool, "doomed", COO_RW).unwrap(), 1), Ok(1));
}

#[test]
fn reading_only_is_enforced() {
    let writable = pool("tank");
    let (read_only, _) = connect("tank", PC_RO).unwrap();
    assert_eq!(create(read_only, "never"), -1001);
    assert_eq!(create(writable, "reading"), 0);
    assert_eq!((open(read_only, "reading", COO_RW), destroy(read_only, "reading", 0)), (Err(-1001), -1001));
    assert_eq!(open(writable, "reading", COO_RO | COO_RW), Err(-1003));
    let container = open(read_only, "reading", COO_RO).unwrap();
    assert_eq!(alloc(container, 1), Err(-1001));
    let id = generate(container, ObjectId::default(), 4, OC_S1).unwrap();
    let object = open_object(container, id, OO_RW).unwrap();
    assert_eq!(update(object, 1, 1, b"x"), -1001);
    assert_eq!(close(container), -1012);
    // SAFETY: without an event.
    assert_eq!(unsafe { daos_obj_close(object, ptr::null_mut()) }, 0);
    assert_eq!((update(object, 1, 1, b"x"), close(container)), (-1002, 0));
}

#[test]
fn object_numbers_are_handed_out_once() {
    let pool = pool("tank");
    assert_eq!(create(pool, "numbers"), 0);
    let container = open(pool, "numbers", COO_RW).unwrap();
    let first = alloc(container, 10).unwrap();
    let other = open(pool, "numbers", COO_RW).unwrap();
    assert!(alloc(other, 1).unwrap() >= first + 10);
    assert_eq!(alloc(container, 0), Err(-1003));
}

#[test]
fn object_ids_depend_on_pool_and_class() {
    let container = |name| {
        let pool = pool(name);
        assert_eq!(create(pool, "ids"), 0);
        open(pool, "ids", COO_RW).unwrap()
    };
    let [four, one, pair] = ["tank", "solo", "pair"].map(container);
    let id = ObjectId { lo: 5, hi: 0xdead_beef_0000_0007 };
    let upper = |container, class| {
        let generated = generate(container, id, 4, class)?;
        assert_eq!((generated.lo, generated.hi & 0xffff_ffff), (5, 7));
        Ok(generated.hi >> 32)
    };
    for (class, on_four, on_one) in [
        (OC_SX, Ok(0x0401_0004), Ok(0x0401_0001)),
        (OC_S1, Ok(0x0401_0001), Ok(0x0401_0001)),
        (OC_UNKNOWN, Ok(0x0401_0001), Ok(0x0401_0001)),
        (OC_RP_XSF, Ok(0x0400_0050), Ok(0x0400_0050)),
        (OC_S2, Ok(0x0401_0002), Err(-1003)),
        (OC_RP_2G1, Err(-1003), Err(-1003)),
        (OC_EC_2P1GX, Err(-1003), Err(-1003)),
        (51, Err(-1003), Err(-1003)),
    ] {
        assert_eq!((upper(four, class), upper(one, class)), (on_four, on_one), "{class:#x}");
    }
    assert_eq!(upper(pair, OC_RP_2G1), Ok(0x0408_0001));
    assert_eq!(generate(four, id, 15, OC_S1), Err(-1003));
    assert_eq!(generate(Handle::default(), id, 4, OC_S1), Err(-1002));
    let mut plain = id;
    // SAFETY: a valid id.
    assert_eq!(unsafe { daos_obj_generate_oid(four, &mut plain, 4, OC_SX, 17, 0) }, 0);
    assert_eq!(Ok(plain), generate(four, id, 4, OC_SX));
    for (container, class) in [(four, OC_SX), (one, OC_RP_XSF), (pair, OC_RP_2G1)] {
        assert!(open_object(container, generate(container, id, 4, class).unwrap(), OO_RW).is_ok());
    }
    let of_four = generate(four, id, 4, OC_SX).unwrap();
    for wrong in [ObjectId { lo: 5, hi: 7 }, id, ObjectId { lo: 5, hi: of_four.hi | 1 << 63 }] {
        assert_eq!(open_object(four, wrong, OO_RW), Err(-1003));
    }
    assert_eq!(open_object(one, of_four, OO_RW), Err(-1003));
}

#[test]
fn classes_have_names_without_prefix() {
    // SAFETY: a C string.
    let id = |name| unsafe { daos_oclass_name2id(c(name).as_ptr()) };
    assert_eq!((id("SX"), id("RP_XSF"), id("OC_SX"), id("")), (0x0100_ffff, 80, 0, 0));
    let name = |class| {
        let mut name: [c_char; 24] = [0; 24];
        // SAFETY: space for a name.
        let rc = unsafe { daos_oclass_id2name(class, name.as_mut_ptr()) };
        // SAFETY: a C string was written.
        (rc, unsafe { CStr::from_ptr(name.as_ptr()) }.to_str().unwrap().to_owned())
    };
    assert_eq!((name(OC_SX), name(7)), ((0, "SX".to_owned()), (-1, "UNKNOWN".to_owned())));
}

#[test]
fn errors_have_names_and_descriptions() {
    // SAFETY: static C strings.
    let text = |pointer| unsafe { CStr::from_ptr(pointer) }.to_str().unwrap();
    assert_eq!((text(d_errstr(-1007)), text(d_errdesc(-1007))), ("DER_NOSPACE", "No space on storage target"));
    assert_eq!((text(d_errstr(0)), text(d_errstr(1007))), ("DER_SUCCESS", "DER_UNKNOWN"));
}
