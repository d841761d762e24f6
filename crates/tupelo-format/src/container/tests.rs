//! What several rooms of the container do together: files that were written are read again, real ones are listed and
//! extended, damaged ones are refused.

use std::path::PathBuf;

use bytes::Bytes;

use super::anchor::tests::example;
use super::*;
use crate::compression::Compression;
use crate::streamer::StreamerInfos;

pub(super) const DATIME: u32 = 0x7eea_050b;
const CLASS: &str = "ROOT::RNTuple";

/// Calls a function like an engine: fetches the missing ranges and calls it again.
pub(crate) fn run<T>(file: &[u8], function: impl Fn(&FetchedRanges) -> Attempt<T>) -> crate::Result<T> {
    let mut fetched = FetchedRanges::new(file.len() as u64);
    for _ in 0..200 {
        match function(&fetched) {
            Ok(value) => return Ok(value),
            Err(Interrupt::Failed(error)) => return Err(error),
            Err(Interrupt::Missing(ranges)) => {
                assert!(!ranges.is_empty());
                for range in ranges {
                    let bytes = &file[range.start as usize..range.end as usize];
                    assert!(fetched.get(range.start, bytes.len() as u64).is_err(), "asked for twice: {range:?}");
                    fetched.provide(range.start, Bytes::copy_from_slice(bytes));
                }
            }
        }
    }
    panic!("still missing bytes after 200 rounds");
}

pub(super) fn whole(file: &[u8]) -> FetchedRanges {
    let mut fetched = FetchedRanges::new(file.len() as u64);
    fetched.provide(0, Bytes::copy_from_slice(file));
    fetched
}

pub(super) fn write(file: &mut Vec<u8>, tail: Tail) {
    file.extend_from_slice(&tail.append);
    for (at, bytes) in &tail.patches {
        file[*at as usize..*at as usize + bytes.len()].copy_from_slice(bytes);
    }
}

/// A small file with an object in the top directory and two in a directory.
pub(super) fn small() -> Vec<u8> {
    let (mut layout, mut file) = FileLayout::create("x.root", DATIME, [3; 16]).unwrap();
    file.extend_from_slice(&blob_key(file.len() as u64, 5, DATIME).unwrap());
    file.extend_from_slice(b"blob!");
    layout.add("n", CLASS, "", example().write()).unwrap();
    layout.add("a/b/n", CLASS, "one", example().write()).unwrap();
    layout.add("a/b/n", CLASS, "two", vec![1, 2, 3]).unwrap();
    let tail = layout.finish(file.len() as u64).unwrap();
    assert_eq!((tail.patches.len(), tail.patches[0].0), (1, 0));
    write(&mut file, tail);
    file
}

fn paths(objects: &[Object]) -> Vec<String> {
    objects.iter().map(|object| format!("{};{}", object.path, object.key.cycle)).collect()
}

#[test]
fn written_records_are_read_back() {
    let file = small();
    let objects = run(&file, list_objects).unwrap();
    assert_eq!(paths(&objects), ["n;1", "a;1", "a/b;1", "a/b/n;2", "a/b/n;1"]);
    let payload = run(&file, |fetched| object_bytes(fetched, &objects[0].key)).unwrap();
    assert_eq!(Anchor::read(&payload, 0), Ok(example()));
    let find = |path: &str| run(&file, |fetched| find_object(fetched, path)).unwrap().map(|object| object.key.title);
    assert_eq!(find("a/b/n").as_deref(), Some("two"));
    assert_eq!(find("/a/b/n;1").as_deref(), Some("one"));
    assert_eq!(find("a/b/n;3"), None);
    assert_eq!(find("a/n"), None);
    assert_eq!(find("n/n"), None);
    assert_eq!(find(""), None);
    let header = run(&file, read_header).unwrap();
    assert_eq!((header.end, header.is_big), (file.len() as u64, false));
    assert_eq!(run(&file, read_uuid).unwrap(), [3; 16]);
    assert_eq!(run(&file, streamer_infos).unwrap(), StreamerInfos::anchor());
    let records = run(&file, walk_keys).unwrap();
    assert_eq!(records.last().map(|last| last.offset + last.nbytes), Some(file.len() as u64));
    assert!(records.iter().all(|record| matches!(record.kind, RecordKind::Key(_))));
    assert_eq!(records.len(), 2 + 2 + 3 + 3 + 2);
}

#[test]
fn compressed_objects_come_back() {
    let object = b"tupelo ".repeat(1000);
    let (mut layout, mut file) = FileLayout::create("x.root", DATIME, [3; 16]).unwrap();
    let packed = Payload::compressed(&object, Compression::default()).unwrap();
    assert_eq!(packed.object_bytes(), object.len());
    layout.add("packed", "C", "", packed).unwrap();
    layout.add("short", "C", "", Payload::compressed(b"abc", Compression::default()).unwrap()).unwrap();
    let tail = layout.finish(file.len() as u64).unwrap();
    write(&mut file, tail);
    assert!(file.len() < 2000, "{} bytes", file.len());
    let objects = run(&file, list_objects).unwrap();
    let bytes = |index: usize| run(&file, |fetched| object_bytes(fetched, &objects[index].key)).unwrap();
    assert_eq!((bytes(0), bytes(1)), (object, b"abc".to_vec()));
}

#[test]
fn an_update_keeps_what_was_there() {
    let mut file = small();
    let before = run(&file, list_objects).unwrap();
    let old = file.clone();
    let mut layout = run(&file, |fetched| FileLayout::update(fetched, DATIME + 1)).unwrap();
    assert_eq!(layout.start(), file.len() as u64);
    layout.add("a/m", "TObjString", "", vec![4; 100]).unwrap();
    layout.add("n", CLASS, "newer", vec![5; 10]).unwrap();
    assert!(layout.add("n/x", CLASS, "", Vec::new()).is_err());
    assert!(layout.add("a//x", CLASS, "", Vec::new()).is_err());
    assert!(layout.add(&"x".repeat(70_000), CLASS, "", Vec::new()).is_err());
    assert!(layout.finish(5).is_err());
    let tail = layout.finish(file.len() as u64).unwrap();
    assert_eq!(tail.patches.first().map(|patch| patch.0), Some(0));
    // Until the patches are written the file is as it was.
    let mut appended = file.clone();
    appended.extend_from_slice(&tail.append);
    assert_eq!(run(&appended, list_objects).unwrap(), before);
    assert_eq!(appended[..old.len()], old);
    write(&mut file, tail);
    let objects = run(&file, list_objects).unwrap();
    assert_eq!(paths(&objects), ["n;2", "n;1", "a;1", "a/b;1", "a/b/n;2", "a/b/n;1", "a/m;1"]);
    assert!(before.iter().all(|object| objects.contains(object)));
    let gaps = |file: &Vec<u8>| {
        let records = run(file, walk_keys).unwrap();
        records.into_iter().filter(|record| record.kind == RecordKind::Gap).count()
    };
    // What the state before needs is free only once the next one is complete.
    assert_eq!(gaps(&file), 0);

    // A checkpoint: the layout goes on, and the next one supersedes what this one wrote.
    assert!(layout.remove("n") && !layout.remove("n;2") && !layout.remove("a") && !layout.remove("q/n"));
    let tail = layout.finish(file.len() as u64).unwrap();
    write(&mut file, tail);
    let objects = run(&file, list_objects).unwrap();
    assert_eq!(paths(&objects), ["n;1", "a;1", "a/b;1", "a/b/n;2", "a/b/n;1", "a/m;1"]);
    // The lists of two directories lay side by side; two free lists, which only a header needs, apart from them.
    assert_eq!(gaps(&file), 3);
    run(&file, |fetched| FileLayout::update(fetched, 0)).unwrap();
}

#[test]
fn big_files_have_big_offsets() {
    let end = 5_000_000_000;
    let (mut layout, head) = FileLayout::create("big.root", DATIME, [3; 16]).unwrap();
    layout.add("n", CLASS, "", example().write()).unwrap();
    layout.add("a/n", CLASS, "", example().write()).unwrap();
    let tail = layout.finish(end).unwrap();
    let mut fetched = FetchedRanges::new(end + tail.append.len() as u64);
    assert_eq!(tail.patches.len(), 1);
    assert_eq!(tail.patches[0].1.len(), head.len());
    fetched.provide(0, Bytes::from(tail.patches[0].1.clone()));
    fetched.provide(head.len() as u64, Bytes::from(vec![0; 2000]));
    fetched.provide(end, tail.append);
    let objects = list_objects(&fetched).unwrap();
    assert_eq!(paths(&objects), ["n;1", "a;1", "a/n;1"]);
    assert!(objects.iter().all(|object| object.key.version > 1000 && object.key.seek_key >= end));
    assert!(objects[2].key.seek_parent >= end);
    let header = read_header(&fetched).unwrap();
    assert_eq!((header.is_big, header.end), (true, fetched.size()));
    assert_eq!(FileLayout::update(&fetched, 0).unwrap().start(), fetched.size());
    assert_eq!(streamer_infos(&fetched).unwrap(), StreamerInfos::anchor());
}

/// References in an object count from the start of its key, which must keep its length.
#[test]
fn objects_with_references_keep_the_length_of_their_key() {
    let small = run(&small(), |fetched| find_object(fetched, "a/b/n;1")).unwrap().unwrap().key.key_bytes;
    let add = |layout: &mut FileLayout, key_bytes| {
        let payload = Payload::from(vec![1, 2, 3]).behind_key(key_bytes);
        layout.add("a/b/n", CLASS, "one", payload).unwrap();
    };
    let new = || FileLayout::create("x.root", DATIME, [3; 16]).unwrap();
    for key_bytes in [small, small + 8] {
        let (mut layout, mut file) = new();
        add(&mut layout, key_bytes);
        // Before the pages, which do not count here.
        let placed = layout.place_objects(file.len() as u64).unwrap();
        file.extend_from_slice(&placed);
        let end = 5_000_000_000;
        let tail = layout.finish(end).unwrap();
        for (at, bytes) in &tail.patches {
            file[*at as usize..*at as usize + bytes.len()].copy_from_slice(bytes);
        }
        let mut fetched = FetchedRanges::new(end + tail.append.len() as u64);
        file.resize(4000, 0);
        fetched.provide(0, Bytes::from(file));
        fetched.provide(end, tail.append);
        let found = find_object(&fetched, "a/b/n").unwrap().unwrap().key;
        assert_eq!((found.key_bytes, found.seek_key < 4000), (key_bytes, true));
        assert_eq!(object_bytes(&fetched, &found).unwrap(), [1, 2, 3]);
    }
    let (mut layout, _) = new();
    add(&mut layout, small);
    assert!(layout.finish(5_000_000_000).unwrap_err().what().contains("which cannot be stored at byte"));
    let (mut layout, _) = new();
    add(&mut layout, small + 1);
    assert!(layout.finish(1000).unwrap_err().what().contains("need a key of"));
}

#[test]
fn a_small_file_grows_big() {
    let file = small();
    let mut layout = run(&file, |fetched| FileLayout::update(fetched, DATIME)).unwrap();
    layout.add("a/m", CLASS, "", example().write()).unwrap();
    let end = 3_000_000_000;
    let tail = layout.finish(end).unwrap();
    let mut fetched = FetchedRanges::new(end + tail.append.len() as u64);
    let mut file = file;
    for (at, bytes) in &tail.patches {
        file[*at as usize..*at as usize + bytes.len()].copy_from_slice(bytes);
    }
    file.resize(4000, 0);
    fetched.provide(0, Bytes::from(file));
    fetched.provide(end, tail.append);
    let objects = list_objects(&fetched).unwrap();
    assert_eq!(paths(&objects), ["n;1", "a;1", "a/b;1", "a/b/n;2", "a/b/n;1", "a/m;1"]);
}

/// The real files, as `(name, bytes)`; none where they are not at hand.
pub(crate) fn real_files() -> Vec<(String, Vec<u8>)> {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data"));
    let entries = [folder.clone(), folder.join("trees")].into_iter().filter_map(|folder| folder.read_dir().ok());
    let paths = entries.flatten().filter_map(|entry| Some(entry.ok()?.path()));
    let roots = paths.filter(|path| path.extension().is_some_and(|extension| extension == "root"));
    roots.map(|path| (path.display().to_string(), std::fs::read(&path).unwrap())).collect()
}

#[test]
fn real_files_are_listed() {
    for (name, file) in real_files() {
        let objects = run(&file, list_objects).unwrap_or_else(|error| panic!("{name}: {error}"));
        for object in objects.iter().step_by(1 + objects.len() / 20) {
            let path = format!("{};{}", object.path, object.key.cycle);
            let found = run(&file, |fetched| find_object(fetched, &path)).unwrap();
            assert_eq!(found.as_ref(), Some(object), "{name}");
            if object.key.class_name == CLASS {
                let payload = run(&file, |fetched| object_bytes(fetched, &object.key)).unwrap();
                let anchor = Anchor::read(&payload, 0).unwrap_or_else(|error| panic!("{name}: {error}"));
                anchor.validate(file.len() as u64).unwrap();
            }
        }
        run(&file, streamer_infos).unwrap_or_else(|error| panic!("{name}: {error}"));
        let records = walk_keys(&whole(&file)).unwrap_or_else(|error| panic!("{name}: {error:?}"));
        assert!(records.len() >= objects.len(), "{name}");
    }
}

#[test]
fn real_files_are_extended() {
    for (name, mut file) in real_files() {
        let before = run(&file, list_objects).unwrap();
        let infos = run(&file, streamer_infos).unwrap();
        let mut layout = match run(&file, |fetched| FileLayout::update(fetched, DATIME)) {
            Ok(layout) => layout,
            Err(error) => panic!("{name}: {error}"),
        };
        layout.add("tupelo/n", CLASS, "", example().write()).unwrap();
        let tail = layout.finish(file.len() as u64).unwrap();
        write(&mut file, tail);
        let objects = run(&file, list_objects).unwrap();
        assert_eq!(objects.len(), before.len() + 2, "{name}");
        assert!(before.iter().all(|object| objects.contains(object)), "{name}");
        let mut expected = infos.clone();
        expected.merge(&StreamerInfos::anchor());
        assert_eq!(run(&file, streamer_infos).unwrap(), expected, "{name}");
        walk_keys(&whole(&file)).unwrap_or_else(|error| panic!("{name}: {error:?}"));
    }
}

/// Such files were called whole by those who read them, and refused by those who write.
#[test]
fn a_file_that_lacks_its_last_records_is_mended() {
    let file = small();
    let header = run(&file, read_header).unwrap();
    let objects = run(&file, list_objects).unwrap();
    for length in 0..file.len() {
        let mut cut = file[..length].to_vec();
        let mended = run(&cut, |fetched| FileLayout::repair(fetched, DATIME));
        if (length as u64) < header.seek_info {
            assert!(length < 100 || run(&cut, list_objects).is_err() && mended.is_err(), "{length} bytes");
            continue;
        }
        let (mut layout, lost) = mended.unwrap();
        let is_info_lost = (length as u64) < header.seek_free;
        let all = ["the header", "the list of free segments", "the streamer info"];
        assert_eq!(lost, all[..2 + usize::from(is_info_lost)]);
        let error = run(&cut, |fetched| FileLayout::update(fetched, DATIME)).unwrap_err();
        let said = format!("it ends at byte {}, but it ends at byte {length}; the last", file.len());
        assert!(error.what().contains(&said) && error.what().contains("the free list"), "{error}");
        assert_eq!(error.what().contains("the streamer info"), is_info_lost, "{error}");
        cut.resize(layout.start() as usize, 0);
        let tail = layout.finish(layout.start()).unwrap();
        write(&mut cut, tail);
        assert_eq!(run(&cut, list_objects).unwrap(), objects);
        assert_eq!(run(&cut, streamer_infos).unwrap(), StreamerInfos::anchor());
        run(&cut, |fetched| FileLayout::update(fetched, DATIME)).unwrap();
    }
    // What lacks nothing is not changed by that either.
    assert_eq!(run(&file, |fetched| FileLayout::repair(fetched, DATIME)).unwrap().1, [""; 0]);
}

/// Everything that reads a file; the results do not matter, only that there are some.
fn read_all(file: &[u8]) {
    let objects = run(file, list_objects).unwrap_or_default();
    for object in objects {
        if let Ok(payload) = run(file, |fetched| object_bytes(fetched, &object.key)) {
            let _ = Anchor::read(&payload, 0).map(|anchor| anchor.validate(file.len() as u64));
        }
    }
    let _ = run(file, |fetched| find_object(fetched, "a/b/n"));
    let _ = run(file, streamer_infos);
    let _ = run(file, walk_keys);
    if let Ok((mut layout, _)) = run(file, |fetched| FileLayout::repair(fetched, DATIME)) {
        let _ = layout.finish(layout.start());
    }
    if let Ok(mut layout) = run(file, |fetched| FileLayout::update(fetched, DATIME)) {
        let _ = layout.add("a/b/n", CLASS, "", vec![0; 9]);
        let _ = layout.finish(layout.start());
    }
}

#[test]
fn truncated_files_are_refused() {
    let file = small();
    for length in 0..file.len() {
        read_all(&file[..length]);
        assert!(run(&file[..length], |fetched| FileLayout::update(fetched, DATIME)).is_err(), "{length} bytes");
    }
}

#[test]
fn flipped_bits_do_no_harm() {
    let file = small();
    for bit in 0..file.len() * 8 {
        let mut file = file.clone();
        file[bit / 8] ^= 1 << (bit % 8);
        read_all(&file);
    }
}

/// A bit that no reader looks at was copied into the new header or key list, and nothing could be read any more.
#[test]
fn an_update_is_refused_or_keeps_all_that_could_be_read() {
    let whole = small();
    let (mut refused, mut updated) = (0, 0);
    for bit in 0..whole.len() * 8 {
        let mut file = whole.clone();
        file[bit / 8] ^= 1 << (bit % 8);
        let Ok(before) = run(&file, list_objects) else { continue };
        let Ok(mut layout) = run(&file, |fetched| FileLayout::update(fetched, DATIME)) else {
            refused += 1;
            continue;
        };
        // A directory may be another thing now.
        let paths = ["new", "a/new", "a/b/c/new"];
        let added = paths.iter().filter(|path| layout.add(path, CLASS, "", vec![1]).is_ok()).count();
        file.resize(layout.start() as usize, 0);
        let Ok(tail) = layout.finish(file.len() as u64) else {
            refused += 1;
            continue;
        };
        write(&mut file, tail);
        let after = run(&file, list_objects).unwrap_or_else(|error| panic!("bit {bit}: {error}"));
        assert!(added > 0 && after.len() >= before.len() + added, "bit {bit}");
        assert!(before.iter().all(|object| after.contains(object)), "bit {bit}");
        run(&file, |fetched| FileLayout::update(fetched, DATIME)).unwrap_or_else(|error| panic!("bit {bit}: {error}"));
        updated += 1;
    }
    assert!(refused > 500 && updated > 3000, "{refused} refused, {updated} updated");
}

#[test]
fn inconsistent_files_are_not_extended() {
    let refused = |file: &[u8]| run(file, |fetched| FileLayout::update(fetched, DATIME)).unwrap_err().to_string();
    let header = run(&small(), read_header).unwrap();
    let record = (header.begin + u64::from(header.nbytes_name)) as usize;
    for (at, bit, said) in [
        (31, 1, "the length of the file's name in the header is"),
        (15, 2, "the end of the file in the free list is"),
        (record + 17, 1, "the top directory: the length of its name is"),
        (record + 21, 1, "the top directory: its own offset is"),
        (record + 25, 1, "the parent of the top directory is"),
        (record + 13, 1, "the top directory: the length of its key list is"),
    ] {
        let mut file = small();
        file[at] ^= bit;
        assert!(refused(&file).contains(said), "byte {at}: {}", refused(&file));
    }
    // The name is both in the key and behind it.
    let mut file = small();
    let name = file.windows(6).rposition(|window| window == b"x.root").unwrap();
    let first = file.windows(6).position(|window| window == b"x.root").unwrap();
    assert!(first < name);
    file[first] = 0;
    assert!(run(&file, |fetched| FileLayout::update(fetched, DATIME)).is_err());
    let second = first + 6 + file[first + 6..].windows(6).position(|window| window == b"x.root").unwrap();
    let mut file = small();
    file[second] = 0;
    assert!(refused(&file).contains("the name of the file in the top directory is"), "{}", refused(&file));
}

proptest::proptest! {
    #[test]
    fn overwritten_numbers_do_no_harm(changes in proptest::collection::vec((0usize..2000, 0u64..=u64::MAX, 0u32..64), 1..4)) {
        let mut file = small();
        for (at, value, shift) in changes {
            let at = at % file.len();
            let mut number = crate::wire::Buffer::new();
            number.u32_be((value >> shift) as u32);
            let end = (at + 4).min(file.len());
            file[at..end].copy_from_slice(&number.as_slice()[..end - at]);
        }
        read_all(&file);
    }
}

#[test]
fn a_directory_in_itself_is_refused() {
    let file = small();
    let records = run(&file, walk_keys).unwrap();
    let is_a = |key: &Key| key.class_name == "TDirectory" && key.name == "a";
    let list = records.iter().rfind(|record| matches!(&record.kind, RecordKind::Key(key) if is_a(key)));
    let list = list.map(|record| record.offset as usize).unwrap();
    let a = run(&file, |fetched| find_object(fetched, "a")).unwrap().unwrap().key;
    let b = run(&file, |fetched| find_object(fetched, "a/b")).unwrap().unwrap().key;
    // The key of `a/b` in the list of `a` gets the place of `a`.
    let mut file = file;
    let (from, to) = ((b.seek_key as u32).to_be_bytes(), (a.seek_key as u32).to_be_bytes());
    let entry = list + usize::from(a.key_bytes);
    let at = entry + file[entry..].windows(4).position(|window| window == from).unwrap();
    file[at..at + 4].copy_from_slice(&to);
    assert!(run(&file, list_objects).unwrap_err().what().contains("listed twice"));
    // A path through it ends where the path does.
    assert_eq!(run(&file, |fetched| find_object(fetched, "a/b/b/b/b/n")), Ok(None));
    let error = run(&file, |fetched| FileLayout::update(fetched, DATIME)).unwrap_err();
    assert!(error.what().contains("listed twice"));
}
