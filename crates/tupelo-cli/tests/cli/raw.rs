//! `tupelo copy --raw`. Copies from servers are in `python/tests/test_remote.py`.

use std::fs;
use std::time::SystemTime;

use super::{Place, tupelo};

/// A file that is not a ROOT file, with a colon in its name.
fn any_file(place: &Place) -> (String, Vec<u8>) {
    let bytes: Vec<u8> = (0..300_000_u32).flat_map(u32::to_le_bytes).collect();
    let path = place.path("any.root:x");
    fs::write(&path, &bytes).expect("a file");
    (path, bytes)
}

#[test]
fn a_raw_copy_has_the_same_bytes() {
    let place = Place::new();
    let (file, bytes) = any_file(&place);
    let copy = place.path("copy.parquet");
    let run = tupelo(&["copy", "--raw", &file, &copy, "--metrics"]);
    assert!(run.stderr.contains("copy.parquet: 1.14 MiB copied\n"), "{}", run.stderr);
    assert!(run.stderr.contains("requests              1\nbytes read        1.144 MiB\n"), "{}", run.stderr);
    run.ok();
    assert!(fs::read(&copy).expect("a copy") == bytes);
    let error = tupelo(&["copy", "--raw", &file, &copy]).fails(2);
    let hint = format!("hint: --force -o {copy} replaces it\n");
    assert!(error.contains("copy.parquet exists") && error.ends_with(&hint), "{error}");
    fs::write(&file, "").expect("an empty file");
    assert_eq!(tupelo(&["copy", "--raw", &file, "-o", &copy, "--force", "--quiet"]).stderr, "");
    assert_eq!(fs::read(&copy).expect("a copy"), b"");
    assert_eq!(fs::read_dir(&place.directory).expect("the directory").count(), 2);
}

#[test]
fn a_raw_copy_is_refused_where_a_copy_is() {
    let place = Place::new();
    let (file, bytes) = any_file(&place);
    let path = |name: &str| place.path(name);
    let (folder, new, missing, none, x) = (path("."), path("new/"), path("none/x"), path("none"), path("x"));
    let file = file.as_str();
    for (arguments, status, expected) in [
        (&[file][..], 2, "needs an input and an output"),
        (&[file, file, &x], 2, "--raw copies a single file, found 2"),
        (&[file, file], 2, "is both input and output"),
        (&[file, file, "--force"], 2, "is both input and output"),
        (&[file, &folder], 2, "is a directory"),
        (&[file, &new], 1, "the path lacks a file name"),
        (&[file, &missing], 1, "does not exist"),
        (&[&none, &x], 1, "cannot open"),
        (&[&folder, &x], 1, "it is a directory"),
    ] {
        let error = tupelo(&[&["copy", "--raw"][..], arguments].concat()).fails(status);
        assert!(error.contains(expected), "{arguments:?}: {error}");
    }
    for option in [
        "--fields=x",
        "--exclude=x",
        "--entries=1",
        "--define=x=1",
        "--cut=x",
        "--compression=zstd:5",
        "--page-bytes=1k",
        "--cluster-bytes=1k",
        "--checkpoint=off",
        "--append",
        "--as=x",
        "--memory-budget=1GiB",
    ] {
        let error = tupelo(&["copy", "--raw", file, &x, option]).fails(2);
        let name = option.split('=').next().expect("a name");
        assert!(error.contains("'--raw' cannot be used with") && error.contains(name), "{error}");
    }
    assert!(fs::read(file).expect("the file") == bytes);
    assert_eq!(fs::read_dir(&place.directory).expect("the directory").count(), 1);
}

#[test]
fn a_raw_copy_is_continued_unless_the_file_has_changed() {
    let place = Place::new();
    let (file, bytes) = any_file(&place);
    let (copy, part, record) = (place.path("copy"), place.path("copy.part"), place.path("copy.part.source"));
    let version = || {
        let modified = fs::metadata(&file).and_then(|file| file.modified()).expect("a time");
        let since = modified.duration_since(SystemTime::UNIX_EPOCH).expect("a time after 1970");
        format!("{} {}", bytes.len(), since.as_nanos())
    };
    // What an interrupted command leaves, with other bytes, which show what is copied again.
    let interrupted = |version: &str| {
        fs::write(&part, [7; 1000]).expect("a part");
        fs::write(&record, format!("\"{file} {version}\"\n\n700\n")).expect("a record");
    };
    interrupted(&version());
    let run = tupelo(&["copy", "--raw", &file, &copy]);
    assert!(run.stderr.ends_with("copy: 1.14 MiB copied, continued at 700 B\n"), "{}", run.stderr);
    run.ok();
    assert!(fs::read(&copy).expect("a copy") == [&[7; 700][..], &bytes[700..]].concat());
    interrupted("1 1");
    let run = tupelo(&["copy", "--raw", &file, "-o", &copy, "--force"]);
    assert!(run.stderr.ends_with("copy: 1.14 MiB copied\n"), "{}", run.stderr);
    run.ok();
    assert!(fs::read(&copy).expect("a copy") == bytes);
    assert_eq!(fs::read_dir(&place.directory).expect("the directory").count(), 2);
    // A part that no command wrote is not overwritten, nor is one that is the input.
    fs::write(&part, "mine").expect("a part");
    let error = tupelo(&["copy", "--raw", &file, "-o", &copy, "--force"]).fails(1);
    assert!(error.contains("copy.part exists but is not a partial copy"), "{error}");
    let error = tupelo(&["copy", "--raw", &part, "-o", &copy, "--force"]).fails(2);
    assert!(error.contains("copy.part is both input and output"), "{error}");
    assert_eq!(fs::read(&part).expect("a part"), b"mine");
}
