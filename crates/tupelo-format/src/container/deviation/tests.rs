//! Files that break rules which ROOT does not check are read as ROOT reads them, and lost directories are rebuilt.

use super::super::directory::read_tree;
use super::super::tests::{DATIME, run, small, whole};
use super::super::*;
use crate::ErrorKind;

/// The objects of a file and the rules that it breaks.
fn listed(file: &[u8]) -> (Vec<Object>, Vec<Rule>) {
    let fetched = whole(file);
    let objects = list_objects(&fetched).unwrap();
    (objects, fetched.deviations().list().into_iter().map(|deviation| deviation.rule).collect())
}

fn top_list(file: &[u8]) -> Key {
    read_key(&whole(file), read_tree(&whole(file)).unwrap()[0].record.seek_keys).unwrap()
}

#[test]
fn a_key_list_ends_where_its_directory_says() {
    let intact = small();
    let (list, mut file) = (top_list(&intact), intact.clone());
    assert_eq!(listed(&intact).1, []);
    // As some writers do: the length of a list without keys.
    let (at, stored) = (list.seek_key as usize, u32::from(list.key_bytes) + 4);
    file[at..at + 4].copy_from_slice(&stored.to_be_bytes());
    let rule = Rule::KeyListLength { stored: stored.into(), actual: list.nbytes.into() };
    assert_eq!(listed(&file), (listed(&intact).0, vec![rule]));
    // Such a file has all of its records, but is not changed.
    let fetched = whole(&file);
    list_objects(&fetched).unwrap();
    assert_eq!(walk_keys(&fetched).unwrap().len(), walk_keys(&whole(&intact)).unwrap().len());
    let refused = run(&file, |fetched| FileLayout::update(fetched, DATIME)).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unsupported, "{refused}");
    // Where neither length has room for the keys, the last names are lost.
    let record_at = read_tree(&whole(&intact)).unwrap()[0].record_at as usize;
    file[record_at + 10..record_at + 14].copy_from_slice(&(list.nbytes - 1).to_be_bytes());
    assert!(list_objects(&whole(&file)).is_err());
}

/// Replaces bytes of a file.
fn put(file: &mut [u8], at: usize, bytes: &[u8]) {
    file[at..at + bytes.len()].copy_from_slice(bytes);
}

/// As uproot 3 wrote files: room behind the keys of a list, whose length is that of a list without keys, and a free list that
/// leaves out itself.
fn with_room(room: usize, free_list_misses: u32) -> Vec<u8> {
    let mut file = small();
    let (list, record_at) = (top_list(&file), read_tree(&whole(&file)).unwrap()[0].record_at as usize);
    let place = list.seek_key as usize..list.seek_key as usize + list.nbytes as usize;
    let at = file.len();
    file.extend_from_within(place);
    put(&mut file, at, &(u32::from(list.key_bytes) + 4).to_be_bytes());
    put(&mut file, at + 18, &(at as u32).to_be_bytes());
    put(&mut file, record_at + 26, &(at as u32).to_be_bytes());
    file.resize(file.len() + room, 0);
    let free_at = file.len();
    let key = Key::place(free_at as u64, 100, ["TFile", "x.root", ""], 10, DATIME).unwrap();
    let end = free_at as u32 + key.nbytes;
    file.extend(key.write());
    file.extend([&[0, 1], &(end - free_list_misses).to_be_bytes()[..], &2_000_000_000u32.to_be_bytes()].concat());
    for (at, number) in [(12, end), (16, free_at as u32), (20, key.nbytes)] {
        put(&mut file, at, &number.to_be_bytes());
    }
    file
}

#[test]
fn room_after_a_key_list_is_part_of_it() {
    let intact = small();
    let records = walk_keys(&whole(&intact)).unwrap().len();
    for room in [0, 1, 27, 600, 70_000] {
        let file = with_room(room, 0);
        let (objects, rules) = listed(&file);
        assert_eq!(objects, listed(&intact).0);
        assert!(matches!(rules.as_slice(), [Rule::KeyListLength { .. }]), "{rules:?}");
        let fetched = whole(&file);
        list_objects(&fetched).unwrap();
        // The list and the free list are new; the old ones remain.
        assert_eq!(walk_keys(&fetched).unwrap().len(), records + 2, "{room} bytes");
        // Bytes other than zero are not reserved room.
        if room > 0 {
            let mut file = file;
            let at = top_list(&file).seek_key + u64::from(top_list(&intact).nbytes);
            file[at as usize + room - 1] = 1;
            let fetched = whole(&file);
            list_objects(&fetched).unwrap();
            assert!(walk_keys(&fetched).is_err(), "{room} bytes");
        }
    }
}

/// As uproot leaves the bytes of an older list behind a shorter one.
#[test]
fn a_key_list_ends_with_its_last_key() {
    let intact = small();
    let (list, record_at) = (top_list(&intact), read_tree(&whole(&intact)).unwrap()[0].record_at as usize);
    let behind = |bytes: &[u8]| {
        let mut file = with_room(bytes.len(), 0);
        let at = top_list(&file).seek_key as usize;
        put(&mut file, at + list.nbytes as usize, bytes);
        for at in [at, record_at + 10] {
            put(&mut file, at, &(list.nbytes + bytes.len() as u32).to_be_bytes());
        }
        file
    };
    let deviating = behind(&[1; 50]);
    assert_eq!(listed(&deviating), (listed(&intact).0, vec![Rule::KeyListRest { keys: 2, bytes: 50 }]));
    assert_eq!(listed(&behind(&[0; 50])), (listed(&intact).0, vec![]));
    // A key after the last one is no rest: the number of keys is wrong, and a writer would lose it.
    let mut file = intact.clone();
    put(&mut file, list.payload_offset() as usize, &1u32.to_be_bytes());
    assert_eq!(listed(&file).1, []);
    let refused = run(&file, |fetched| FileLayout::update(fetched, DATIME)).unwrap_err();
    assert!(refused.what().contains("bytes follow its 1 keys"), "{refused}");
    // A file with such a rest is changed, and its list is then without it.
    run(&deviating, |fetched| FileLayout::update(fetched, DATIME)).unwrap();
}

#[test]
fn a_free_list_may_leave_out_itself() {
    let free_list_end = |missing: u32| {
        let fetched = whole(&with_room(27, missing));
        let refused = FileLayout::update(&fetched, DATIME).map(drop).unwrap_err();
        let Interrupt::Failed(refused) = refused else { panic!("missing bytes") };
        let rules = fetched.deviations().list().into_iter().map(|deviation| deviation.rule);
        (refused.kind(), rules.filter(|rule| matches!(rule, Rule::FreeListEnd { .. })).count())
    };
    assert_eq!(free_list_end(0), (ErrorKind::Unsupported, 0));
    assert_eq!(free_list_end(10), (ErrorKind::Unsupported, 1));
    // Other records than itself are not free.
    assert_eq!(free_list_end(200), (ErrorKind::Corrupt, 0));
}

/// As files of CMS, whose class is `TStorageFactoryFile`.
#[test]
fn files_have_other_classes_than_tfile() {
    let mut file = small();
    while let Some(at) = file.windows(6).position(|bytes| bytes == b"\x05TFile") {
        put(&mut file, at, b"\x05XFile");
    }
    assert_eq!(listed(&file), (listed(&small()).0, vec![]));
    run(&file, |fetched| FileLayout::update(fetched, DATIME)).unwrap();
    let keys = keys(&file);
    let state = states(&whole(&file), &keys, 1).unwrap().remove(0);
    assert_eq!(state.end, file.len() as u64);
    put(&mut file, 16, &[0; 4]);
    unlist(&mut file);
    let (state, _) = recovered(&whole(&file), &keys).unwrap();
    assert_eq!(listed(&patched(&file, &state)).0.len(), listed(&small()).0.len());
}

#[test]
fn keys_in_a_list_end_after_their_names() {
    let intact = small();
    let (list, mut file) = (top_list(&intact), intact.clone());
    let length_at = list.payload_offset() as usize + 4 + 14;
    let actual = u16::from_be_bytes([file[length_at], file[length_at + 1]]);
    file[length_at..length_at + 2].copy_from_slice(&(actual - 2).to_be_bytes());
    let (objects, rules) = listed(&file);
    let paths = |objects: &[Object]| objects.iter().map(|object| object.path.clone()).collect::<Vec<_>>();
    assert_eq!(paths(&objects), paths(&listed(&intact).0));
    assert_eq!(rules, [Rule::KeyLength { name: "n".to_owned(), stored: actual - 2, actual: actual.into() }]);
    // An object cannot begin among the numbers of its key.
    file[length_at..length_at + 2].copy_from_slice(&20u16.to_be_bytes());
    assert!(list_objects(&whole(&file)).is_err());
}

#[test]
fn a_negative_version_has_short_offsets() {
    let intact = small();
    let mut file = intact.clone();
    file[4..8].copy_from_slice(&(64000 - 1_000_000_i32).to_be_bytes());
    assert_eq!(read_header(&whole(&file)).unwrap(), read_header(&whole(&intact)).unwrap());
    assert_eq!(listed(&file), (listed(&intact).0, vec![Rule::FileVersion { stored: -936_000 }]));
}

/// The keys of all records that are recovered.
fn keys(file: &[u8]) -> Vec<Key> {
    let records = walk_keys(&whole(file)).unwrap().into_iter();
    let key = |record: Record| match record.kind {
        RecordKind::Key(key) if is_recoverable(&key) => Some(key),
        _ => None,
    };
    records.filter_map(key).collect()
}

/// Removes what leads to the lists of keys.
fn unlist(file: &mut [u8]) {
    for directory in read_tree(&whole(file)).unwrap() {
        put(file, directory.record_at as usize + 26, &[0; 4]);
    }
}

/// The file in a state.
fn patched(file: &[u8], state: &RecoveredState) -> Vec<u8> {
    let mut patched = file.to_vec();
    patched.resize(state.end as usize, 0);
    state.patches.iter().for_each(|(at, bytes)| put(&mut patched, *at as usize, bytes));
    patched
}

#[test]
fn a_file_that_was_never_saved_differs_from_an_empty_one() {
    let empty = {
        let (mut layout, mut file) = FileLayout::create("x.root", DATIME, [3; 16]).unwrap();
        let tail = layout.finish(file.len() as u64).unwrap();
        file.extend_from_slice(&tail.append);
        tail.patches.iter().for_each(|(at, bytes)| put(&mut file, *at as usize, bytes));
        file
    };
    assert_eq!(listed(&empty), (vec![], vec![]));
    // Saved when it was empty, and not again.
    assert_eq!(listed(&[&empty[..], &[1; 100]].concat()), (vec![], vec![Rule::Saved]));
    // Saved, but not closed: ROOT does not mind.
    let mut saved = small();
    put(&mut saved, 16, &[0; 4]);
    assert_eq!(listed(&saved), (listed(&small()).0, vec![]));
}

#[test]
fn lost_directories_are_rebuilt_from_keys() {
    let intact = small();
    let keys = keys(&intact);
    // As before the first save: no list of keys, no list of free segments.
    let mut file = intact.clone();
    put(&mut file, 16, &[0; 4]);
    unlist(&mut file);
    assert_eq!(listed(&file), (vec![], vec![Rule::Saved]));
    assert!(!is_listed(&whole(&file)).unwrap() && is_listed(&whole(&intact)).unwrap());
    let (state, count) = recovered(&whole(&file), &keys).unwrap();
    let mended = patched(&file, &state);
    let by_path = |file: &[u8]| {
        let mut objects = listed(file).0;
        objects.sort_by_key(|object| (object.path.clone(), object.key.cycle));
        objects
    };
    assert_eq!(by_path(&mended), by_path(&intact));
    assert_eq!(count, by_path(&intact).len() as u64);
    assert_eq!(listed(&mended).1, []);
}
