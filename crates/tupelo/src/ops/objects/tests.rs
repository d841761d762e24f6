//! Changes of objects of files in memory.

use std::ops::ControlFlow;
use std::sync::Arc;

use arrow_array::ArrayRef;
use tupelo_core::error::Remedy;
use tupelo_format::compression::Compression;
use tupelo_format::object::{Numbers, Object, Value};
use tupelo_format::streamer::StreamerInfos;
use tupelo_storage::{ByteSink, MemoryFile, MemorySink, Storage};

use super::super::layout::{Content, layout};
use super::*;
use crate::reader::File;
use crate::writer::tests::{nested, nested_schema};
use crate::writer::{FileWriter, TreeOptions, WriteOptions};

fn histogram(name: &str) -> Object {
    let members = [
        ("fName", Value::Text(name.to_owned())),
        ("fNcells", Value::Int(3)),
        ("fArray", Value::Numbers(Numbers::F64(vec![1.5; 3]))),
    ];
    let members = members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    Object::new("TH1D", members, &StreamerInfos::histograms()).unwrap()
}

/// Ntuples `n` and `dir/m` with metadata, a tree, histograms and an empty directory.
fn example() -> MemoryFile {
    let target = MemoryFile::new();
    let file = FileWriter::create_in(Box::new(MemorySink::create(&target)), "x.root").unwrap();
    let options = || WriteOptions::default().with_page_bytes(1 << 10).with_cluster_bytes(8 << 10);
    for (path, count) in [("n", 3000), ("dir/m", 2000)] {
        let mut ntuple = file.ntuple(path, &nested_schema(), options()).unwrap();
        ntuple.write(&nested(0..count, false)).unwrap();
        ntuple.set_metadata("generator", "pythia").unwrap();
        ntuple.finish().unwrap();
    }
    let schema = tupelo_schema::schema::Schema { fields: nested_schema().fields.into_iter().take(1).collect() };
    let mut tree = file.tree("dir/t", &schema, TreeOptions::default().with_basket_bytes(1000)).unwrap();
    for start in [0, 1000] {
        tree.write(&nested(start..start + 1000, false).project(&[0]).unwrap()).unwrap();
    }
    tree.finish().unwrap();
    for path in ["h", "dir/h"] {
        file.object(path, "a title", &histogram("h"), Compression::default()).unwrap();
    }
    file.make_directory("empty").unwrap();
    file.finish().unwrap();
    target
}

fn update(target: &MemoryFile) -> FileWriter {
    let sink = MemorySink::update(target).unwrap();
    FileWriter::update_in(Box::new(sink), Arc::new(target.source().unwrap())).unwrap()
}

fn opened(target: &MemoryFile) -> File {
    File::new(Arc::new(target.source().unwrap()), true).unwrap()
}

fn names(file: &File) -> Vec<String> {
    file.objects().unwrap().into_iter().map(|object| object.name()).collect()
}

fn values(file: &File, name: &str) -> Vec<ArrayRef> {
    file.table(Some(name)).unwrap().read_all().to_batch().unwrap().columns().to_vec()
}

/// Bytes that the file says are free; everything in it belongs to something, and nothing to two things.
fn free(file: &File) -> u64 {
    let map = layout(file).unwrap();
    assert_eq!(map.remarks, []);
    map.regions.iter().filter(|region| region.content == Content::Gap).map(|region| region.bytes).sum()
}

fn changed<T>(target: &MemoryFile, change: impl FnOnce(&FileWriter) -> T) -> T {
    let writer = update(target);
    let done = change(&writer);
    writer.finish().unwrap();
    done
}

#[test]
fn removed_objects_leave_free_space_and_others_stay() {
    let target = example();
    let file = opened(&target);
    let (m, t, before) = (values(&file, "dir/m"), values(&file, "dir/t"), free(&file));
    let found = find(&file, &["n", "h"], false).unwrap();
    let removed = changed(&target, |writer| remove(writer, &["n", "h"], false).unwrap());
    assert_eq!((&removed, removed.kept.as_ref()), (&found, None));
    assert_eq!(removed.objects.iter().map(|it| it.path.as_str()).collect::<Vec<_>>(), ["n", "h"]);
    let file = opened(&target);
    assert_eq!(names(&file), ["dir", "dir/m", "dir/t", "dir/h", "empty"]);
    assert_eq!((values(&file, "dir/m"), values(&file, "dir/t")), (m.clone(), t));
    let after = free(&file);
    assert!(after >= before + removed.bytes && removed.bytes > 20_000, "{before}, {after}, {removed:?}");
    // Nothing of the ntuple is left but free space.
    let map = layout(&file).unwrap();
    let blobs = map.regions.iter().filter(|region| region.content == Content::Unaccounted).count();
    assert_eq!(blobs, 0, "{map:?}");
    let removed = changed(&target, |writer| remove(writer, &["dir/t"], false).unwrap());
    assert!(removed.bytes > 2000, "{removed:?}");
    let file = opened(&target);
    assert_eq!((names(&file).len(), values(&file, "dir/m")), (4, m));
    free(&file);
}

#[test]
fn pages_that_another_ntuple_shares_stay() {
    let target = example();
    let n = opened(&target).ntuple(Some("n")).unwrap();
    changed(&target, |writer| writer.relist(&n, "shared").unwrap());
    let expected = values(&opened(&target), "shared");
    let first = changed(&target, |writer| remove(writer, &["n"], false).unwrap());
    let file = opened(&target);
    assert_eq!(values(&file, "shared"), expected);
    free(&file);
    let second = changed(&target, |writer| remove(writer, &["shared"], false).unwrap());
    assert!(first.bytes < 20_000 && second.bytes > 20_000, "{first:?}, {second:?}");
    // Both at once, and one after the other by the same writer.
    for together in [true, false] {
        let target = example();
        changed(&target, |writer| writer.relist(&opened(&target).ntuple(Some("n")).unwrap(), "shared").unwrap());
        let bytes = changed(&target, |writer| match together {
            true => remove(writer, &["n", "shared"], false).unwrap().bytes,
            false => ["n", "shared"].map(|name| remove(writer, &[name], false).unwrap().bytes).iter().sum(),
        });
        assert_eq!(bytes, first.bytes + second.bytes);
        free(&opened(&target));
    }
}

#[test]
fn directories_are_removed_when_they_are_empty_or_with_everything() {
    let target = example();
    let writer = update(&target);
    let error = remove(&writer, &["dir"], false).unwrap_err();
    assert_eq!((error.remedy(), error.to_string().contains("found 3 objects")), (Some(Remedy::Recursive), true));
    assert_eq!(remove(&writer, &["empty"], false).unwrap().objects.len(), 1);
    let error = remove(&writer, &["empty"], false).unwrap_err();
    assert!(error.is_not_found() && error.to_string().contains("no object named 'empty'"), "{error}");
    let removed = remove(&writer, &["d*"], true).unwrap();
    assert_eq!(removed.objects.len(), 4);
    writer.finish().unwrap();
    let file = opened(&target);
    assert_eq!(names(&file), ["n", "h"]);
    free(&file);
    // All objects in it, and then the directory.
    let target = example();
    assert_eq!(changed(&target, |writer| remove(writer, &["dir/*", "dir"], false).unwrap()).objects.len(), 4);
    assert_eq!(names(&opened(&target)), ["n", "h", "empty"]);
}

#[test]
fn nothing_but_keys_is_freed_if_another_object_cannot_be_read() {
    let target = example();
    let footer = {
        let m = opened(&target).ntuple(Some("dir/m")).unwrap();
        m.source().store().anchor().footer.locator.in_file().unwrap()
    };
    let mut bytes = target.bytes().unwrap().to_vec();
    bytes[footer.0 as usize + 20] ^= 0x55;
    let damaged = MemoryFile::new();
    let mut sink = Box::new(MemorySink::create(&damaged));
    sink.append(&bytes).unwrap();
    sink.commit().unwrap();
    let removed = changed(&damaged, |writer| remove(writer, &["n"], false).unwrap());
    assert!(removed.kept.as_ref().is_some_and(|kept| kept.contains("'dir/m'")), "{removed:?}");
    assert_eq!(removed.bytes, removed.objects[0].bytes);
    // The damaged one can be removed.
    let removed = changed(&damaged, |writer| remove(writer, &["dir/m"], false).unwrap());
    assert!(removed.kept.is_some() && removed.bytes == removed.objects[0].bytes, "{removed:?}");
    assert_eq!(names(&opened(&damaged)), ["dir", "dir/t", "dir/h", "h", "empty"]);
}

#[test]
fn renamed_objects_keep_their_pages_and_baskets() {
    let target = example();
    let file = opened(&target);
    let (n, t, size) = (values(&file, "n"), values(&file, "dir/t"), file.size().unwrap());
    let renamed = changed(&target, |writer| {
        assert_eq!(rename(writer, "dir/t", "tree_of_numbers", false).unwrap().cycles, 1);
        assert_eq!(rename(writer, "h", "dir/other", false).unwrap().notes, [""; 0]);
        assert_eq!(rename(writer, "dir/h", "/", true).unwrap().path, "h");
        rename(writer, "n", "dir/", false).unwrap()
    });
    assert_eq!((renamed.path.as_str(), renamed.cycles, renamed.kept), ("dir/n", 1, None));
    let file = opened(&target);
    assert_eq!(names(&file), ["dir", "dir/m", "dir/other", "dir/n", "empty", "tree_of_numbers", "h"]);
    assert_eq!((values(&file, "dir/n"), values(&file, "tree_of_numbers")), (n.clone(), t));
    let ntuple = file.ntuple(Some("dir/n")).unwrap();
    assert_eq!((ntuple.name(), ntuple.metadata().unwrap()["generator"].as_str()), ("n", "pythia"));
    for (path, name) in [("dir/other", "other"), ("h", "h")] {
        let object = file.object(path).unwrap();
        let object = object.as_object().unwrap();
        assert_eq!(object.get("fName"), Some(&Value::Text(name.to_owned())));
        assert_eq!(object.get("fArray"), Some(&Value::Numbers(Numbers::F64(vec![1.5; 3]))));
    }
    assert!(file.size().unwrap() < size + 20_000, "pages were copied");
    assert!(free(&file) > 0);
    // Another name is in the header.
    changed(&target, |writer| rename(writer, "dir/n", "events", false).unwrap());
    let file = opened(&target);
    assert_eq!((file.ntuple(Some("events")).unwrap().name(), values(&file, "events")), ("events", n));
    free(&file);
}

#[test]
fn what_cannot_be_renamed_is_refused() {
    let target = example();
    let writer = update(&target);
    for (from, to, expected) in [
        ("dir", "d", "'dir' is a directory, which cannot be renamed"),
        ("n", "h", "'h' exists"),
        ("n", "n", "source and destination are both 'n'"),
        ("n", "a;1", "'a;1' is not a valid path"),
        ("n", "a.b", "the format forbids"),
        ("n", "h/n", "'h' is a TH1D, not a directory"),
        ("N", "m", "no object named 'N'"),
        ("*", "m", "no object named '*'"),
    ] {
        let error = rename(&writer, from, to, false).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    assert_eq!(rename(&writer, "n", "h", false).unwrap_err().remedy(), Some(Remedy::Replace));
    // In place of a histogram.
    rename(&writer, "n", "h", true).unwrap();
    writer.finish().unwrap();
    assert_eq!(names(&opened(&target)), ["dir", "dir/m", "dir/t", "dir/h", "empty", "h"]);
    let new = FileWriter::create_in(Box::new(MemorySink::create(&MemoryFile::new())), "x.root").unwrap();
    let error = remove(&new, &["n"], false).unwrap_err().to_string();
    assert!(error.contains("only in a file that is updated"), "{error}");
    new.abort().unwrap();
}

#[test]
fn a_writer_neither_removes_what_it_wrote_nor_continues_what_it_removed() {
    let target = example();
    let writer = update(&target);
    writer.append("n", WriteOptions::default()).unwrap().finish().unwrap();
    let error = remove(&writer, &["n"], false).unwrap_err().to_string();
    assert!(error.contains("'n' was written by this writer"), "{error}");
    remove(&writer, &["dir/m"], false).unwrap();
    let error = writer.append("dir/m", WriteOptions::default()).unwrap_err().to_string();
    assert!(error.contains("'dir/m' was removed by this writer"), "{error}");
    // A new one of the name.
    let mut again = writer.ntuple("dir/m", &nested_schema(), WriteOptions::default()).unwrap();
    again.write(&nested(0..10, false)).unwrap();
    again.finish().unwrap();
    writer.finish().unwrap();
    assert_eq!(values(&opened(&target), "dir/m")[0].len(), 10);
    free(&opened(&target));
}

#[test]
fn a_repacked_file_has_everything_and_is_smaller() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("y.root");
    let to = path.to_str().unwrap();
    let target = example();
    changed(&target, |writer| {
        let mut newer = writer.ntuple("n", &nested_schema(), WriteOptions::default()).unwrap();
        newer.write(&nested(0..5, false)).unwrap();
        newer.finish().unwrap();
    });
    let file = opened(&target);
    let done = repack(&file, to, &Storage::default(), &mut |_| ControlFlow::Continue(())).unwrap().unwrap();
    assert_eq!((done.objects, done.older_cycles), (5, 1));
    assert_eq!(done.bytes_before, file.size().unwrap());
    assert!(done.bytes_after < done.bytes_before, "{done:?}");
    let packed = crate::open(to).open_file().unwrap();
    let sorted = |file: &File| {
        let mut found: Vec<_> = file.objects().unwrap().into_iter().filter(|it| it.is_newest).collect();
        found.sort_by(|one, other| one.path.cmp(&other.path));
        found.into_iter().map(|it| (it.path, it.class_name, it.title)).collect::<Vec<_>>()
    };
    assert_eq!(sorted(&packed), sorted(&file));
    for name in ["n", "dir/m", "dir/t"] {
        assert_eq!(values(&packed, name), values(&file, name), "{name}");
    }
    assert_eq!(free(&packed), 0);
    // Cancelled.
    let cancelled = repack(&file, to, &Storage::default(), &mut |_| ControlFlow::Break(())).unwrap();
    assert_eq!((cancelled, crate::open(to).open_file().unwrap().size()), (None, Some(done.bytes_after)));
}
