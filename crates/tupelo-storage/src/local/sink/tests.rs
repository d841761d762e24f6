use std::path::PathBuf;
#[cfg(unix)]
use std::process::Command;
use std::sync::Arc;

use super::super::temporary::{dead_temporaries, is_temporary, new_temporary, temporaries_of};
use super::*;
use crate::adapter::{DiskFault, Faults, FaultyDisk, FaultySink};
use crate::laws::{SinkCase, sink_laws, update_laws};

/// A directory with one file, or none, that is named `x.root`.
fn place(old: Option<&[u8]>) -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.root");
    if let Some(old) = old {
        fs::write(&path, old).unwrap();
    }
    (directory, path)
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn create(path: &Path) -> Box<FileSink> {
    Box::new(FileSink::create(path).unwrap())
}

fn update(path: &Path) -> Box<FileSink> {
    Box::new(FileSink::update(path).unwrap())
}

#[test]
fn files_keep_the_laws_of_a_sink() {
    sink_laws(|old| {
        let (directory, path) = place(old);
        let sink = FileSink::create(&path).unwrap();
        // The closure keeps the directory alive.
        SinkCase::new(sink, move || directory.path().exists().then(|| fs::read(&path).ok()).flatten())
    });
    update_laws(|old| {
        let (directory, path) = place(Some(old));
        let sink = FileSink::update(&path).unwrap();
        SinkCase::new(sink, move || directory.path().exists().then(|| fs::read(&path).ok()).flatten())
    });
}

#[test]
fn temporary_files_are_removed() {
    let (directory, path) = place(Some(b"old"));
    // As where the file system has no files without names.
    let named = |path: &Path| {
        let target = Target::of(path).unwrap();
        let (file, temporary) = new_temporary(&target.name, directory.path()).unwrap();
        let (temporary, disk) = (Temporary::Named(temporary), |disk| disk);
        Box::new(FileSink::in_temporary(path, target, file, temporary, None, disk).unwrap()) as Box<dyn ByteSink>
    };
    for (ending, is_named) in ["drop", "abort", "poison", "commit"].map(|it| [(it, true), (it, false)]).concat() {
        let mut sink = if is_named { named(&path) } else { create(&path) };
        sink.append(b"new content").unwrap();
        match names(directory.path()).as_slice() {
            [target] => assert!(target == "x.root" && !is_named),
            [target, temporary] => {
                assert_eq!(target, "x.root");
                assert!(temporary.starts_with("x.root.tmp-"), "{temporary}");
                assert!(is_temporary(Path::new(temporary)) && !is_temporary(Path::new(target)));
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(fs::read(&path).unwrap(), b"old");
        match ending {
            "drop" => drop(sink),
            "abort" => assert_eq!(sink.abort().unwrap(), None),
            "poison" => {
                sink.patch(11, b"x").unwrap_err();
                let error = sink.commit().unwrap_err().to_string();
                assert_eq!(error, format!("cannot finish {}: an earlier write to it failed", path.display()));
            }
            _ => sink.commit().unwrap(),
        }
        assert_eq!(names(directory.path()), ["x.root"], "{ending}");
        if ending == "commit" {
            assert_eq!(fs::read(&path).unwrap(), b"new content");
            fs::write(&path, "old").unwrap();
        }
    }
}

/// Regression: writers that were killed before their first checkpoint left files of no use.
#[test]
#[cfg(target_os = "linux")]
fn a_file_without_a_checkpoint_has_no_name() {
    for old in [None, Some(&b"old"[..])] {
        let (directory, path) = place(old);
        let before = names(directory.path());
        let mut sink = create(&path);
        sink.append(b"kept").unwrap();
        if names(directory.path()) != before {
            // Not on this file system.
            return;
        }
        sink.checkpoint().unwrap();
        let left = temporaries_of(&path).unwrap();
        assert_eq!(left.len(), 1);
        assert_eq!(fs::read(&left[0]).unwrap(), b"kept");
        // The name is that of a living writer.
        assert!(dead_temporaries(directory.path()).unwrap().is_empty());
        sink.append(b" and more").unwrap();
        sink.checkpoint().unwrap();
        assert_eq!(temporaries_of(&path).unwrap(), left);
        sink.commit().unwrap();
        assert_eq!(names(directory.path()), ["x.root"]);
        assert_eq!(fs::read(&path).unwrap(), b"kept and more");
        let other = directory.path().join("y.root");
        let (mut first, mut second) = (create(&other), create(&other));
        first.append(b"1").unwrap();
        second.append(b"2").unwrap();
        first.commit().unwrap();
        assert_eq!(second.commit().unwrap_err().kind(), ErrorKind::Changed);
        assert_eq!(fs::read(&other).unwrap(), b"1");
        assert_eq!(names(directory.path()), ["x.root", "y.root"]);
    }
}

#[test]
fn small_appends_are_buffered() {
    let (_directory, path) = place(None);
    let mut sink = create(&path);
    for _ in 0..LOCAL_WRITE_BUFFER_BYTES / 1024 {
        sink.append(&[1; 1024]).unwrap();
    }
    assert_eq!((sink.flushed_bytes, sink.buffer.len()), (0, LOCAL_WRITE_BUFFER_BYTES));
    sink.append_vectored(&[&[2; 10], &[], &[3; 10]]).unwrap();
    assert_eq!((sink.flushed_bytes, sink.buffer.len()), (LOCAL_WRITE_BUFFER_BYTES as u64 + 20, 0));
    sink.append(&vec![4; LOCAL_WRITE_BUFFER_BYTES + 1]).unwrap();
    assert_eq!(sink.buffer.len(), 0);
    // More slices than one call may have.
    sink.append(&vec![5; LOCAL_WRITE_BUFFER_BYTES]).unwrap();
    sink.append_vectored(&vec![&[6][..]; 5000]).unwrap();
    let size = sink.position();
    sink.commit().unwrap();
    assert_eq!(fs::metadata(&path).unwrap().len(), size);
}

#[test]
#[cfg(unix)]
fn links_are_followed() {
    use std::os::unix::fs::symlink;
    for old in [Some(&b"old"[..]), None] {
        let (directory, path) = place(old);
        let (link, outer) = (directory.path().join("link"), directory.path().join("outer"));
        symlink("x.root", &link).unwrap();
        symlink(&link, &outer).unwrap();
        let mut sink = create(&outer);
        sink.append(b"new").unwrap();
        sink.commit().unwrap();
        assert!(fs::symlink_metadata(&outer).unwrap().is_symlink());
        assert!(fs::symlink_metadata(&path).unwrap().is_file());
        assert_eq!(fs::read(&path).unwrap(), b"new");
    }
}

/// Set in the process that changes its directory, to the directory that it begins in.
#[cfg(unix)]
const WANDERER: &str = "TUPELO_TEST_CHANGES_DIRECTORY";

/// Defect: a relative path was resolved at commit, and replaced another file.
#[test]
#[cfg(unix)]
fn a_change_of_directory_moves_no_output() {
    if let Some(home) = std::env::var_os(WANDERER) {
        return write_and_wander(Path::new(&home));
    }
    let (directory, path) = place(Some(b"old"));
    let elsewhere = directory.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    for name in ["x.root", "new.root"] {
        fs::write(elsewhere.join(name), b"other").unwrap();
    }
    // The working directory belongs to the process, so the test runs in a separate process.
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "local::sink::tests::a_change_of_directory_moves_no_output"]);
    let output = child.env(WANDERER, directory.path()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
    for written in [path, directory.path().join("new.root"), directory.path().join("real.root")] {
        assert_eq!(fs::read(&written).unwrap(), b"new", "{}", written.display());
    }
    for name in ["x.root", "new.root"] {
        assert_eq!(fs::read(elsewhere.join(name)).unwrap(), b"other", "{name}");
    }
    assert_eq!((names(directory.path()).len(), names(&elsewhere).len()), (5, 2));
}

#[cfg(unix)]
fn write_and_wander(home: &Path) {
    std::env::set_current_dir(home).unwrap();
    std::os::unix::fs::symlink("real.root", "link.root").unwrap();
    let mut sinks = ["x.root", "new.root", "link.root"].map(|name| create(Path::new(name)));
    std::env::set_current_dir("elsewhere").unwrap();
    for sink in &mut sinks {
        sink.append(b"new").unwrap();
        sink.checkpoint().unwrap();
    }
    sinks.into_iter().for_each(|sink| sink.commit().unwrap());
}

#[test]
#[cfg(unix)]
fn permissions_are_those_of_the_replaced_file_or_the_usual_ones() {
    use std::os::unix::fs::PermissionsExt;
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let (directory, path) = place(None);
    create(&path).commit().unwrap();
    let usual = directory.path().join("usual");
    fs::write(&usual, b"").unwrap();
    assert_eq!(mode(&path), mode(&usual));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    create(&path).commit().unwrap();
    assert_eq!(mode(&path), 0o640);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o440)).unwrap();
    // The superuser may write it anyway.
    if let Err(error) = FileSink::create(&path) {
        assert_eq!(error.kind(), ErrorKind::Denied);
        assert!(error.to_string().starts_with(&format!("cannot replace {}: ", path.display())), "{error}");
        assert!(error.to_string().contains("ermission denied"), "{error}");
    }
}

#[test]
fn invalid_targets_are_refused_at_once() {
    let (directory, path) = place(None);
    assert_eq!(FileSink::create(directory.path()).unwrap_err().kind(), ErrorKind::NotSupported);
    assert_eq!(FileSink::update(directory.path()).unwrap_err().kind(), ErrorKind::NotSupported);
    assert!(FileSink::create(directory.path().join("no/x.root")).unwrap_err().is_not_found());
    let error = FileSink::update(&path).unwrap_err();
    assert!(error.is_not_found());
    assert!(error.to_string().starts_with(&format!("cannot update {}: ", path.display())), "{error}");
    #[cfg(unix)]
    assert_eq!(FileSink::create("/dev/null").unwrap_err().kind(), ErrorKind::NotSupported);
    let long = directory.path().join("y".repeat(250));
    create(&long).commit().unwrap();
    assert!(long.exists());
}

#[test]
fn a_second_writer_is_refused() {
    let (_directory, path) = place(Some(b"old"));
    let first = update(&path);
    for second in [FileSink::update(&path), FileSink::create(&path)] {
        let error = second.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Busy);
        assert!(error.to_string().ends_with("another writer is writing it"), "{error}");
    }
    first.commit().unwrap();
    let first = create(&path);
    assert_eq!(FileSink::update(&path).unwrap_err().kind(), ErrorKind::Busy);
    first.commit().unwrap();
    update(&path).commit().unwrap();
}

#[test]
fn a_name_that_was_free_and_is_taken_at_commit_is_not_overwritten() {
    let (directory, path) = place(None);
    let (mut first, mut second) = (create(&path), create(&path));
    first.append(b"first").unwrap();
    second.append(b"second").unwrap();
    second.commit().unwrap();
    let error = first.commit().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Changed);
    assert!(error.to_string().ends_with("another writer has created it"), "{error}");
    assert_eq!(fs::read(&path).unwrap(), b"second");
    assert_eq!(names(directory.path()), ["x.root"]);
}

#[test]
fn an_update_changes_no_old_byte_before_commit() {
    let (_directory, path) = place(Some(b"0123456789"));
    let mut sink = update(&path);
    sink.append(&vec![b'a'; LOCAL_WRITE_BUFFER_BYTES + 1]).unwrap();
    sink.patch(8, b"XYZ").unwrap();
    let now = fs::read(&path).unwrap();
    assert_eq!(&now[..12], b"0123456789aa");
    drop(sink);
    assert_eq!(fs::read(&path).unwrap(), b"0123456789");
}

#[test]
fn a_patch_that_fails_at_commit_restores_the_old_content() {
    let (_directory, path) = place(Some(b"0123456789"));
    let mut sink = update(&path);
    sink.append(b"abc").unwrap();
    sink.patch(2, b"XX").unwrap();
    sink.patch(6, b"YY").unwrap();
    // Truncate the file, so that the second patch is out of range.
    sink.write_through(&[]).unwrap();
    sink.disk.truncate(5).unwrap();
    let error = sink.commit().unwrap_err().to_string();
    assert!(error.contains("cannot patch 2 bytes at byte 6 of"), "{error}");
    assert!(error.contains("its old content is restored"), "{error}");
    assert_eq!(&fs::read(&path).unwrap()[..5], b"01234");
}

#[test]
fn a_full_disk_at_any_call_leaves_the_old_file() {
    let write = |sink: &mut dyn ByteSink| -> Result<()> {
        sink.append(b"head")?;
        sink.append_vectored(&[b"page", b"page"])?;
        sink.patch(0, b"HEAD")
    };
    for make in [|path: &Path| create(path), |path: &Path| update(path)] {
        for n in 0.. {
            let (directory, path) = place(Some(b"0123456789"));
            let faults = Faults::at(n, ErrorKind::NoSpace);
            let mut sink = Box::new(FaultySink::new(make(&path), &faults));
            // The error is ignored on purpose: commit must fail anyway.
            let written = write(&mut *sink);
            let done = sink.commit();
            assert_eq!(names(directory.path()), ["x.root"]);
            if faults.calls() <= n {
                written.and(done).unwrap();
                assert_eq!(n, 4);
                break;
            }
            let first = written.and(done).unwrap_err();
            assert_eq!(first.kind(), ErrorKind::NoSpace);
            assert_eq!(fs::read(&path).unwrap(), b"0123456789", "fault at call {n}");
        }
    }
}

/// An update of `0123456789` by `abc` and a patch of byte 0, on a disk that fails with `EIO` at these calls. Returns
/// the error and the file. The calls are append, sync, read, overwrite, sync.
#[cfg(unix)]
fn update_on_a_faulty_disk(calls: std::ops::Range<u64>) -> (String, Vec<u8>) {
    let (_directory, path) = place(Some(b"0123456789"));
    let fault = DiskFault::Calls { calls, errno: rustix::io::Errno::IO.raw_os_error() };
    let wrap = |disk| -> Box<dyn Disk> { Box::new(FaultyDisk::new(disk, fault, &Arc::default())) };
    let mut sink = Box::new(FileSink::update_through(&path, wrap).unwrap());
    sink.append(b"abc").unwrap();
    sink.patch(0, b"X").unwrap();
    (sink.commit().unwrap_err().to_string(), fs::read(&path).unwrap())
}

/// Defect: the file was truncated after its header referred to the truncated bytes.
#[test]
#[cfg(unix)]
fn appended_bytes_are_kept_when_only_the_last_sync_fails() {
    let (error, file) = update_on_a_faulty_disk(4..5);
    assert!(error.contains("the new content is visible but may not survive a power failure"), "{error}");
    assert_eq!(file, b"X123456789abc");
    // Before the patches, the old file is kept.
    let (error, file) = update_on_a_faulty_disk(1..2);
    assert!(error.contains("data written since the last checkpoint may be lost"), "{error}");
    assert_eq!(file, b"0123456789");
    let (error, file) = update_on_a_faulty_disk(3..4);
    assert!(error.contains("cannot patch 1 bytes at byte 0 of"), "{error}");
    assert!(error.contains("its old content is restored"), "{error}");
    assert_eq!(file, b"0123456789");
}

/// As above, after a patch that could not be rolled back.
#[test]
#[cfg(unix)]
fn appended_bytes_are_kept_when_patches_cannot_be_rolled_back() {
    let (error, file) = update_on_a_faulty_disk(3..10);
    assert!(error.contains("its old content could not be restored; the file may be damaged"), "{error}");
    assert_eq!(file, b"0123456789abc");
}

/// Defect: the last checkpoint was removed when the finished file could not be renamed.
#[test]
fn checkpoints_are_kept_when_a_commit_fails() {
    for is_moved in [false, true] {
        let (directory, path) = place(None);
        let mut sink = create(&path);
        sink.append(b"kept").unwrap();
        sink.checkpoint().unwrap();
        sink.append(b" or not").unwrap();
        match is_moved {
            // Another writer creates the file.
            false => fs::write(&path, b"other").unwrap(),
            true => sink.patch(u64::MAX, b"x").map_or_else(drop, |()| panic!("the patch is out of range")),
        }
        let error = sink.commit().unwrap_err().to_string();
        let temporary = names(directory.path()).into_iter().find(|name| name.contains(".tmp-")).unwrap();
        assert!(error.contains(&temporary) && error.contains("its last checkpoint is kept in"), "{error}");
        let kept = fs::read(directory.path().join(&temporary)).unwrap();
        assert_eq!(kept, if is_moved { &b"kept"[..] } else { b"kept or not" });
    }
}

/// Set in the process that runs under a limit on the size of files.
#[cfg(unix)]
const LIMITED: &str = "TUPELO_TEST_BELOW_A_LIMIT";

#[test]
#[cfg(unix)]
fn a_real_limit_on_the_size_of_files() {
    if std::env::var_os(LIMITED).is_some() {
        return below_a_limit_of_64_kib();
    }
    // `ulimit -f` counts blocks of 512 bytes in a POSIX shell; without the trap the process would be killed.
    let script =
        r#"trap '' XFSZ; ulimit -f 128; exec "$0" --exact local::sink::tests::a_real_limit_on_the_size_of_files"#;
    let mut shell = Command::new("sh");
    let output = shell.args(["-c", script]).arg(std::env::current_exe().unwrap()).env(LIMITED, "1").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

#[cfg(unix)]
fn below_a_limit_of_64_kib() {
    let (directory, path) = place(Some(b"old"));
    let other = directory.path().join("other");
    fs::write(&other, b"other").unwrap();
    for mut sink in [create(&path), update(&other)] {
        let big = vec![1; LOCAL_WRITE_BUFFER_BYTES + 1];
        let error = sink.append(&big).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NoSpace);
        assert!(error.to_string().contains(&format!("cannot append {} bytes at byte ", big.len())), "{error}");
        sink.append(b"x").unwrap_err();
        sink.commit().unwrap_err();
    }
    let mut late = create(&path);
    late.append(&[1; 100_000]).unwrap();
    assert_eq!(late.commit().unwrap_err().kind(), ErrorKind::NoSpace);
    assert_eq!(names(directory.path()), ["other", "x.root"]);
    assert_eq!(fs::read(&path).unwrap(), b"old");
    assert_eq!(fs::read(&other).unwrap(), b"other");
}

/// Regression: on NFS the sync of a directory may fail with a stale handle, which was taken for the failure of a condition. The
/// writer then removed the objects of an ntuple that was visible.
#[test]
fn a_possibly_visible_object_is_not_a_failed_condition() {
    let path = Path::new("x.root");
    for kind in [io::ErrorKind::StaleNetworkFileHandle, io::ErrorKind::AlreadyExists, io::ErrorKind::TimedOut] {
        let error = not_durable(path, kind.into());
        assert!(error.kind() != ErrorKind::Changed, "{error:?}");
        assert!(error.to_string().contains("the new content is visible"), "{error}");
    }
    // The rename itself: its folder does not exist any more.
    let (directory, path) = place(Some(b"old"));
    let (_, temporary) = new_temporary("x.root", directory.path()).unwrap();
    let error = publish(Temporary::Named(temporary), &directory.path().join("gone/x.root"), None, &path).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
}
