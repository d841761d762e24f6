//! The shared library as a program loads it, and containers that processes share.

use std::env;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use daos_standin::abi::{COO_RO, COO_RW, OO_RW, OT_MULTI_UINT64, ObjectId, PC_RW};
use daos_standin::class::OC_SX;
use daos_standin::daos_init;
use daos_standin::library;
use daos_standin::pool::daos_cont_alloc_oids;

use crate::support::{alone, connect, create, fetch, generate, open, open_object, set, update};

/// All functions that a client of single values looks for.
const NAMES: &[&str] = &[
    "daos_init",
    "daos_fini",
    "daos_pool_connect",
    "daos_pool_connect2",
    "daos_pool_disconnect",
    "daos_cont_create_with_label",
    "daos_cont_open",
    "daos_cont_open2",
    "daos_cont_close",
    "daos_cont_destroy",
    "daos_cont_destroy2",
    "daos_cont_query",
    "daos_cont_alloc_oids",
    "daos_eq_create",
    "daos_eq_destroy",
    "daos_eq_poll",
    "daos_event_init",
    "daos_event_fini",
    "daos_event_parent_barrier",
    "daos_event_test",
    "daos_obj_generate_oid",
    "daos_obj_generate_oid2",
    "daos_obj_open",
    "daos_obj_close",
    "daos_obj_update",
    "daos_obj_fetch",
    "daos_obj_punch",
    "daos_obj_punch_dkeys",
    "daos_obj_punch_akeys",
    "daos_obj_list_akey",
    "daos_obj_list_dkey",
    "daos_oclass_name2id",
    "daos_oclass_id2name",
    "d_errstr",
    "d_errdesc",
    "daos_standin_set",
    "daos_standin_count",
    "daos_standin_reset",
];

const RTLD_NOW: c_int = 2;

// SAFETY: the declarations of dlfcn.h.
unsafe extern "C" {
    fn dlopen(path: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
}

#[test]
fn the_library_is_loaded_with_all_names() {
    let path = CString::new(library().into_os_string().into_encoded_bytes()).unwrap();
    // SAFETY: the library runs no code when it is loaded.
    let loaded = unsafe { dlopen(path.as_ptr(), RTLD_NOW) };
    assert!(!loaded.is_null(), "{path:?}");
    // SAFETY: the library is never closed.
    let symbol = |name: &str| unsafe { dlsym(loaded, CString::new(name).unwrap().as_ptr()) };
    for name in NAMES {
        assert!(!symbol(name).is_null(), "{name}");
    }
    assert!(symbol("daos_cont_create").is_null());
    // SAFETY: the prototypes of C.
    let (init, fini, name) = unsafe {
        (
            std::mem::transmute::<*mut c_void, extern "C" fn() -> c_int>(symbol("daos_init")),
            std::mem::transmute::<*mut c_void, extern "C" fn() -> c_int>(symbol("daos_fini")),
            std::mem::transmute::<*mut c_void, extern "C" fn(c_int) -> *const c_char>(symbol("d_errstr")),
        )
    };
    assert_eq!((init(), fini(), fini()), (0, 0, -1015));
    // SAFETY: a static C string.
    assert_eq!(unsafe { CStr::from_ptr(name(-1005)) }, c"DER_NONEXIST");
}

/// The pool and the object of the tests in a container, which is created.
fn shared_object(label: &str, flags: u32) -> daos_standin::abi::Handle {
    let (pool, _) = connect("tank", PC_RW).unwrap();
    assert!([0, -1004].contains(&create(pool, label)));
    let container = open(pool, label, flags).unwrap();
    let id = generate(container, ObjectId { lo: 1, hi: 0 }, OT_MULTI_UINT64, OC_SX).unwrap();
    open_object(container, id, OO_RW).unwrap()
}

/// The writing process of the test below: it stores values until it is killed.
#[test]
fn writer() {
    let Some(folder) = env::var_os("DAOS_STANDIN_TEST_WRITER") else { return };
    assert_eq!((set("DAOS_STANDIN_DIR", folder.to_str().unwrap()), daos_init()), (0, 0));
    let oh = shared_object("shared", COO_RW);
    for akey in 0.. {
        assert_eq!(update(oh, 1, akey, &akey.to_le_bytes()), 0);
        if akey == 10 {
            // The name of the test is on the same line.
            println!("\nwritten");
            std::io::stdout().flush().unwrap();
        }
    }
}

#[test]
fn processes_share_containers() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = folder.path().to_str().unwrap().to_owned();
    if !alone("library::processes_share_containers", &[("DAOS_STANDIN_DIR", &path)]) {
        return;
    }
    let path = env::var("DAOS_STANDIN_DIR").unwrap();
    assert_eq!(daos_init(), 0);
    let mut writer = Command::new(env::current_exe().unwrap())
        .args(["library::writer", "--exact", "--nocapture"])
        .env("DAOS_STANDIN_TEST_WRITER", &path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(writer.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap() == "written"));
    let oh = shared_object("shared", COO_RO);
    assert_eq!(fetch(oh, 1, 10), Ok(10u64.to_le_bytes().to_vec()));
    // What is written after the container was opened is seen too.
    let started = Instant::now();
    while fetch(oh, 1, 50).is_err() {
        assert!(started.elapsed() < Duration::from_secs(30), "the value is not seen");
        thread::sleep(Duration::from_millis(1));
    }
    writer.kill().unwrap();
    writer.wait().unwrap();
    let last = (11..).find(|&akey| fetch(oh, 1, akey).is_err()).unwrap() - 1;
    assert_eq!(fetch(oh, 1, last), Ok(last.to_le_bytes().to_vec()));

    // As if the writer had been killed in the middle of a record.
    let file = format!("{path}/tank/shared.cont");
    OpenOptions::new().append(true).open(&file).unwrap().write_all(&[9; 400]).unwrap();
    assert_eq!(fetch(oh, 1, last), Ok(last.to_le_bytes().to_vec()));
    let oh = shared_object("shared", COO_RW);
    assert_eq!((update(oh, 2, 1, b"after"), fetch(oh, 2, 1)), (0, Ok(b"after".to_vec())));
    let mut bytes = Vec::new();
    OpenOptions::new().read(true).open(&file).unwrap().read_to_end(&mut bytes).unwrap();
    assert!(bytes.ends_with(b"after"));
}

#[test]
fn a_directory_has_its_own_containers() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = folder.path().to_str().unwrap().to_owned();
    if !alone("library::a_directory_has_its_own_containers", &[("DAOS_STANDIN_DIR", &path)]) {
        return;
    }
    assert_eq!(daos_init(), 0);
    let (kept, _) = connect("tank", PC_RW).unwrap();
    assert_eq!((create(kept, "a"), create(kept, "a")), (0, -1004));
    let first = open(kept, "a", COO_RW).unwrap();
    let mut oids = [0; 2];
    for oid in &mut oids {
        // SAFETY: space for a number.
        assert_eq!(unsafe { daos_cont_alloc_oids(first, 5, oid, std::ptr::null_mut()) }, 0);
    }
    assert_eq!(oids, [1, 6]);
    assert_eq!(set("DAOS_STANDIN_DIR", ""), 0);
    let (memory, _) = connect("tank", PC_RW).unwrap();
    assert_eq!((open(memory, "a", COO_RO), create(memory, "a")), (Err(-1005), 0));
}
