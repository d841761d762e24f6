//! Namespaces of all kinds, by their URIs, and directories.

use std::fs;
use std::path::Path;

use bytes::Bytes;

use super::{Condition, NewObject, ObjectDirectory, ObjectMemory, ObjectSink, ObjectSource, list, sink, source};
use crate::error::ErrorKind;
use crate::laws::object_laws;
use crate::net::Options;
use crate::{Storage, display_name, is_object_uri, local_path};

fn object(key: &str) -> NewObject {
    NewObject { key: key.to_owned(), pieces: vec![Bytes::from_static(b"content")] }
}

/// A directory with the URI `ntpl+file:///…/`.
fn directory() -> (tempfile::TempDir, String) {
    let directory = tempfile::tempdir().unwrap();
    let uri = format!("ntpl+file://{}/", directory.path().display());
    (directory, uri)
}

#[test]
fn a_directory_keeps_the_laws() {
    let (parent, _) = directory();
    let number = std::cell::Cell::new(0);
    let make = || {
        let path = parent.path().join(number.replace(number.get() + 1).to_string());
        fs::create_dir(&path).unwrap();
        ObjectDirectory::new(path).unwrap()
    };
    object_laws(make, true);
}

#[test]
fn memory_keeps_the_laws() {
    object_laws(ObjectMemory::new, true);
}

#[test]
fn uris_give_namespace_and_key() {
    let (parent, uri) = directory();
    let (objects, key) = sink(&format!("{uri}events/"), &Options::default()).unwrap();
    assert_eq!((objects.to_string(), key.as_str()), (uri.clone(), "events"));
    objects.put(&[object("events.objects/1")]).unwrap();
    assert_eq!(fs::read(parent.path().join("events.objects/1")).unwrap(), b"content");
    let (objects, _) = source(&format!("{uri}events"), &Options::default()).unwrap();
    assert_eq!(objects.get("events.objects/1", 10).unwrap().0, "content");

    let error = objects.get("events.objects/2", 10).unwrap_err();
    assert!(error.to_string().starts_with(&format!("cannot open {uri}events.objects/2: ")), "{error}");
    let range = super::ObjectRange { key: "events.objects/1".into(), range: 0..64 };
    let error = objects.get_ranges(&[range]).unwrap_err();
    assert_eq!(error.to_string(), format!("cannot read bytes 0..64 of {uri}events.objects/1: it ends at byte 7"));

    let uri = format!("{uri}no/events");
    let error = sink(&uri, &Options::default()).unwrap_err();
    let missing = parent.path().join("no");
    assert_eq!(error.to_string(), format!("cannot write to {uri}: the directory {} does not exist", missing.display()));
    assert_eq!(error.kind(), ErrorKind::NotFound);
    let (objects, key) = source(&uri, &Options::default()).unwrap();
    assert!(objects.get(&key, 10).unwrap_err().is_not_found());
    assert!(objects.list("").unwrap().is_empty());
    assert_eq!(ObjectDirectory::new("a").unwrap().to_string(), "ntpl+file:a/");
}

#[test]
fn data_sets_are_neither_local_files_nor_single_objects() {
    for uri in ["ntpl+file:///a/x", "ntpl+file:x", "NTPL+s3://box/x"] {
        assert!(is_object_uri(uri) && local_path(uri).is_none());
        assert_eq!(display_name(uri), uri);
        let error = Storage::default().open(uri).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("cannot open {uri}: expected a single object, found a data set of many objects")
        );
        assert!(Storage::default().create(uri).is_err());
    }
    for (uri, shown) in [
        ("ntpl+https://ann:hidden@host/x?sig=hidden#part", "ntpl+https://host/x"),
        ("ntpl+s3+https://ann:hidden@host/b/x", "ntpl+s3+https://host/b/x"),
        ("ntpl+s3://key:secret@box/x?hidden", "ntpl+s3://box/x"),
        ("ntpl+file:///a/b@c/x?hidden", "ntpl+file:///a/b@c/x"),
    ] {
        assert_eq!(display_name(uri), shown);
    }
}

#[test]
fn data_sets_in_a_directory_are_listed() {
    let (parent, uri) = directory();
    for name in ["x.objects", "sub/y.objects", "z.objects", "w.objects"] {
        fs::create_dir_all(parent.path().join(name)).unwrap();
    }
    for name in ["x", "sub/y", "v", "w"] {
        fs::write(parent.path().join(name), "anchor").unwrap();
    }
    let listed = |uri: &str| -> Vec<(String, Option<u64>)> {
        Storage::default().list(uri).unwrap().into_iter().map(|entry| (entry.url, entry.size)).collect()
    };
    let expected = [(format!("{uri}sub/"), None), (format!("{uri}w"), Some(6)), (format!("{uri}x"), Some(6))];
    assert_eq!(listed(&uri), expected);
    assert_eq!(listed(uri.trim_end_matches('/')), expected);
    assert_eq!(listed(&format!("{uri}x")), expected[2..]);
    assert_eq!(listed(&format!("{uri}sub/")), [(format!("{uri}sub/y"), Some(6))]);
    for missing in ["v", "no", "no/", "z"] {
        let error = list(&format!("{uri}{missing}"), &Options::default()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    }
}

#[cfg(unix)]
#[test]
fn links_and_devices_are_not_read() {
    use std::os::unix::fs::symlink;
    let (parent, uri) = directory();
    let (outside, _) = directory();
    fs::write(outside.path().join("secret"), "secret").unwrap();
    let inside = |name: &str| parent.path().join(name);
    symlink(outside.path().join("secret"), inside("file")).unwrap();
    symlink(outside.path(), inside("folder")).unwrap();
    let objects = ObjectDirectory::named(parent.path(), uri.clone()).unwrap();
    for key in ["file", "folder/secret", "folder"] {
        let error = objects.get(key, 100).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotSupported, "{error}");
        assert!(error.to_string().ends_with("is a symbolic link; links are not followed"), "{error}");
        assert!(objects.delete(&[format!("{key}/x")]).is_err());
    }
    for key in ["file", "folder/new"] {
        assert!(objects.put(&[object(key)]).is_err());
        assert!(objects.publish(key, Bytes::new(), &Condition::Absent).is_err());
        let (_, version) = { (0, super::directory::version_of(b"secret")) };
        assert!(objects.publish(key, Bytes::new(), &Condition::Version(version)).is_err());
    }
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1, "nothing is written outside");
    assert!(objects.list("").unwrap().is_empty() && objects.list("folder/").is_err());

    // Opening a pipe would wait for its other end.
    std::process::Command::new("mkfifo").arg(inside("pipe")).status().unwrap();
    assert_eq!(objects.get("pipe", 100).unwrap_err().kind(), ErrorKind::NotSupported);
    // The directory itself may be reached by a link.
    let link = outside.path().join("link");
    symlink(parent.path(), &link).unwrap();
    let objects = ObjectDirectory::new(&link).unwrap();
    objects.put(&[object("a/new")]).unwrap();
    objects.flush().unwrap();
    assert_eq!(fs::read(inside("a/new")).unwrap(), b"content");
}

#[test]
fn folders_that_become_empty_are_removed() {
    let (parent, _) = directory();
    let objects = ObjectDirectory::new(parent.path()).unwrap();
    objects.put(&[object("a/b/1"), object("a/b/2"), object("a/c/3")]).unwrap();
    let exists = |name: &str| parent.path().join(name).exists();
    objects.delete(&["a/b/1".to_owned()]).unwrap();
    assert!(exists("a/b"));
    objects.delete(&["a/b/2".to_owned(), "a/b/x/y".to_owned()]).unwrap();
    assert!(!exists("a/b") && exists("a/c"));
    objects.delete(&["a/c/3".to_owned()]).unwrap();
    assert!(!exists("a") && parent.path().is_dir());
    // Removed objects need not be durable.
    objects.flush().unwrap();
}

#[test]
fn many_files_are_read_with_few_open() {
    let (parent, _) = directory();
    let objects = ObjectDirectory::new(parent.path()).unwrap();
    let keys: Vec<String> = (0..100).map(|at| format!("a/{at}")).collect();
    objects.put(&keys.iter().map(|key| object(key)).collect::<Vec<_>>()).unwrap();
    for _ in 0..2 {
        for key in &keys {
            let mut room = [0; 3];
            objects.get_into(&key.as_str().into(), 4, &mut [&mut room]).unwrap();
            assert_eq!(&room, b"ent");
        }
    }
    assert!(open_files_in(parent.path()) <= 40, "{}", open_files_in(parent.path()));
    // One that was removed and written again is not read from the old file.
    objects.delete(&keys).unwrap();
    let new = NewObject { key: "a/99".to_owned(), pieces: vec![Bytes::from_static(b"another")] };
    objects.put(&[new]).unwrap();
    let mut room = [0; 7];
    objects.get_into(&"a/99".into(), 0, &mut [&mut room]).unwrap();
    assert_eq!(&room, b"another");
}

/// Number of open files in a directory; 0 on systems that do not say it.
fn open_files_in(directory: &Path) -> usize {
    let Ok(open) = fs::read_dir("/proc/self/fd") else { return 0 };
    open.filter_map(|link| fs::read_link(link.ok()?.path()).ok()).filter(|path| path.starts_with(directory)).count()
}
