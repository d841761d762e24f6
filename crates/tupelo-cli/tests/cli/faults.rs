//! Full disks, failing system calls and unwritable places: the command fails and changes nothing.

use std::collections::BTreeMap;
use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use super::{Place, command, summarise, tupelo};

/// Sizes of small disks, in KiB.
const DISK_KIB: std::ops::RangeInclusive<u64> = 64..=2048;
/// Step between the sizes, in KiB.
const DISK_STEP_KIB: usize = 64;
/// User id of an unprivileged user.
const UNPRIVILEGED: u32 = 65534;

fn run(command: &mut Command) -> (Option<i32>, String) {
    let Output { status, stderr, .. } = command.output().expect("the command starts");
    (status.code(), String::from_utf8_lossy(&stderr).into_owned())
}

/// The files of a folder by name; for a link, its target.
pub(super) fn content(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let bytes = match fs::read_link(&path) {
            Ok(to) => to.to_string_lossy().into_owned().into_bytes(),
            Err(_) if path.is_dir() => b"a directory".to_vec(),
            Err(_) => fs::read(&path).expect("a file"),
        };
        let _ = found.insert(path, bytes);
    }
    found
}

fn is_superuser() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout == b"0\n")
}

/// A small file system, unmounted on drop.
struct Disk {
    place: PathBuf,
}

impl Disk {
    /// `None` if the user may not mount.
    fn new(place: &Path, options: &str) -> Option<Self> {
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", options, "tupelo-test"]).arg(place).stderr(Stdio::null());
        mount.status().is_ok_and(|status| status.success()).then(|| Self { place: place.to_owned() })
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.place).status();
    }
}

#[test]
fn a_full_disk_of_any_size_changes_nothing() {
    let place = Place::new();
    let small = place.path("small.root");
    tupelo(&["generate", "b2hhh", "--events", "50", &small]).ok();
    let large = place.path("large.root");
    tupelo(&["generate", "b2hhh", "--events", "6000", "--page-bytes", "16KiB", "--cluster-bytes", "100kB", &large])
        .ok();
    let mounted = place.directory.path().join("disk");
    fs::create_dir(&mounted).expect("a directory");
    let target = mounted.join("x.root");
    let output = target.to_str().expect("UTF-8");
    let ways: [&[&str]; 3] = [
        &["generate", "b2hhh", "--events", "6000", "--cluster-bytes", "100kB", output, "--force"],
        &["copy", &large, "-o", output, "--force", "--compression", "lz4"],
        &["copy", &large, &format!("{output}:again"), "--append", "--cluster-bytes", "100kB"],
    ];
    let mut full = [0; 3];
    for (way, full) in ways.iter().zip(&mut full) {
        for kib in DISK_KIB.step_by(DISK_STEP_KIB) {
            let Some(_disk) = Disk::new(&mounted, &format!("size={kib}k")) else {
                return summarise("command-full", "command: no small disks were filled, this user may not mount");
            };
            let _ = fs::copy(&small, &target).expect("a file that fits");
            let before = content(&mounted);
            let (status, said) = run(&mut command(way));
            if status == Some(0) {
                drop(tupelo(&["verify", output]).ok());
                continue;
            }
            *full += 1;
            assert_eq!(status, Some(1), "{way:?} on {kib} KiB: {said}");
            assert!(said.contains("No space left on device"), "{way:?} on {kib} KiB: {said}");
            assert!(content(&mounted) == before, "{way:?} on {kib} KiB changed something");
        }
    }
    assert!(full.iter().all(|&full| full > 2), "{full:?}");
    summarise("command-full", &format!("command: {full:?} small disks became full, nothing was changed on any"));
}

#[test]
fn a_limit_on_the_size_of_files_changes_nothing() {
    let place = Place::new();
    let (input, file) = (place.b2hhh(), place.path("old.root"));
    let _ = fs::copy(&input, &file).expect("a file");
    let folder = place.directory.path();
    let before = content(folder);
    let limited = |trap: &str, output: &str| {
        let script = format!("{trap} ulimit -f 64; exec \"$0\" copy {input} -o {output} --force --compression none");
        let mut shell = Command::new("sh");
        shell.args(["-c", &script]).arg(env!("CARGO_BIN_EXE_tupelo"));
        run(&mut shell)
    };
    // Unless it is ignored, the system sends a signal that would end the process and leave the temporary file.
    for trap in ["trap '' XFSZ;", ""] {
        for output in [&file, &place.path("new.root")] {
            let (status, said) = limited(trap, output);
            assert_eq!(status, Some(1), "{said}");
            assert!(said.contains("File too large"), "{said}");
            assert!(content(folder) == before, "something changed");
        }
    }
}

/// A readable folder with each kind of target that cannot be written.
fn unwritable_targets(folder: &Path) {
    let mode = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("a mode");
    fs::create_dir(folder.join("locked")).expect("a directory");
    fs::write(folder.join("locked/old.root"), "old").expect("a file");
    fs::create_dir(folder.join("directory.root")).expect("a directory");
    fs::write(folder.join("protected.root"), "old").expect("a file");
    symlink("nowhere/x.root", folder.join("broken.root")).expect("a link");
    symlink("circle.root", folder.join("circle.root")).expect("a link");
    let _ = fs::copy(env!("CARGO_BIN_EXE_tupelo-generate"), folder.join("tupelo")).expect("the command");
    mode(&folder.join("tupelo"), 0o777);
    mode(&folder.join("protected.root"), 0o444);
    mode(&folder.join("locked"), 0o555);
    mode(folder, 0o777);
}

#[test]
fn unwritable_targets_are_not_changed() {
    let place = Place::new();
    let folder = place.directory.path();
    unwritable_targets(folder);
    let long = format!("{}.root", "x".repeat(300));
    let cases = [
        ("locked/new.root", "Permission denied"),
        ("locked/old.root", "Permission denied"),
        ("protected.root", "Permission denied"),
        ("no/x.root", "/no does not exist"),
        ("directory.root", "it is a directory"),
        ("broken.root", "/nowhere does not exist"),
        ("circle.root", "Too many levels of symbolic links"),
        ("tupelo", "Text file busy"),
        (&long, "File name too long"),
        ("/dev/full", "not a regular file"),
    ];
    // The superuser has all permissions.
    let is_superuser = is_superuser();
    let before = (content(folder), content(&folder.join("locked")));
    for (target, expected) in cases {
        for append in ["--force", "--append"] {
            let mut command = Command::new(folder.join("tupelo"));
            command.args(["b2hhh", "--events", "10", target, append]).current_dir(folder);
            if is_superuser {
                command.uid(UNPRIVILEGED);
            }
            let (status, said) = run(&mut command);
            assert_eq!(status, Some(1), "{target} {append}: {said}");
            assert!(said.contains(expected), "{target} {append}: {said}");
            assert!(
                (content(folder), content(&folder.join("locked"))) == before,
                "{target} {append} changed something"
            );
        }
    }
    let mounted = folder.join("directory.root");
    if let Some(_disk) = Disk::new(&mounted, "size=1m,ro") {
        let (status, said) = run(command(&["generate", "b2hhh", "x.root"]).current_dir(&mounted));
        assert_eq!(status, Some(1), "{said}");
        assert!(said.contains("Read-only file system"), "{said}");
    }
}

#[test]
fn links_are_followed() {
    let place = Place::new();
    let folder = place.directory.path();
    fs::create_dir(folder.join("elsewhere")).expect("a directory");
    symlink("elsewhere/real.root", folder.join("link.root")).expect("a link");
    for events in ["10", "20"] {
        tupelo(&["generate", "b2hhh", "--events", events, &place.path("link.root"), "--force"]).ok();
        assert!(fs::symlink_metadata(folder.join("link.root")).expect("a link").is_symlink());
        let listed = tupelo(&["ls", &place.path("elsewhere/real.root"), "--json"]).json();
        assert_eq!(listed["ntuples"][0]["entries"].to_string(), events);
        assert_eq!(content(&folder.join("elsewhere")).len(), 1);
    }
}

/// Runs a command under strace, which makes system calls fail; `None` if that is not possible.
pub(super) fn strace(inject: &str, options: &[&str], arguments: &[&str]) -> Option<(Option<i32>, String)> {
    let call = inject.split(':').next().unwrap_or_default();
    let mut strace = Command::new("strace");
    strace.args(["-f", "-qq", "-o", "/dev/null", "-e", &format!("trace={call}"), "-e", &format!("inject={inject}")]);
    strace.args(options).arg(env!("CARGO_BIN_EXE_tupelo")).args(arguments);
    let mut probe = Command::new("strace");
    let works = probe.args(["-o", "/dev/null", "true"]).stderr(Stdio::null()).status().is_ok_and(|it| it.success());
    works.then(|| run(&mut strace))
}

#[test]
fn failing_system_calls_change_nothing() {
    let place = Place::new();
    let (source, target) = (place.b2hhh(), place.path("x.root"));
    let _ = fs::copy(&source, &target).expect("a file");
    let folder = place.directory.path();
    let (before, mut runs) = (content(folder), 0);
    let replace: &[&str] = &["copy", &source, "-o", &target, "--force", "--compression", "lz4"];
    let added = format!("{target}:again");
    let add: &[&str] = &["copy", &source, &added, "--append"];
    // The second sync of an update follows the patches.
    let failing = [
        (replace, "fsync:error=EIO:when=1", "may be lost"),
        (replace, "fsync:error=EIO:when=2", "may be lost"),
        (replace, "fsync:error=EIO", "may be lost"),
        (replace, "writev:error=ENOSPC:when=1", "No space left on device"),
        (replace, "writev:error=EDQUOT:when=1+", "quota exceeded"),
        (replace, "pwrite64:error=EIO:when=1", "Input/output error"),
        (replace, "rename,renameat,renameat2:error=EACCES", "Permission denied"),
        (add, "fsync:error=EIO:when=1", "may be lost"),
        (add, "writev:error=ENOSPC:when=1", "No space left on device"),
        (add, "pwrite64:error=EIO:when=1", "its old content is restored"),
    ];
    for (arguments, inject, expected) in failing {
        let Some((status, said)) = strace(inject, &[], arguments) else {
            return summarise(
                "command-strace",
                "command: failing system calls were not tested, because strace is not available",
            );
        };
        assert_eq!(status, Some(1), "{inject}: {said}");
        assert!(said.contains(expected), "{inject}: {said}");
        assert!(content(folder) == before, "{inject} changed something");
        runs += 1;
    }
    for inject in [
        "fsync:error=EINTR:when=1",
        "writev:error=EINTR:when=1",
        "pwrite64:error=EINTR:when=1",
        "close:error=EIO:when=6+",
    ] {
        // Sync reports errors before close, so the file is complete.
        let done = strace(inject, &[], replace);
        assert_eq!(done.map(|(status, said)| (status, said.contains("cannot"))), Some((Some(0), false)), "{inject}");
        assert!(content(folder).len() == before.len() && content(folder) != before, "{inject}");
        tupelo(&["verify", &target]).ok();
        let _ = fs::copy(&source, &target).expect("a file");
        runs += 1;
    }
    // The last sync of an update fails: an error, but the data are written.
    let (status, said) = strace("fsync:error=EIO:when=2", &[], add).expect("strace has worked before");
    assert_eq!(status, Some(1), "{said}");
    assert!(said.contains("the new content is visible but may not survive a power failure"), "{said}");
    tupelo(&["verify", &target]).ok();
    assert_eq!(tupelo(&["dump", &added]).ok(), tupelo(&["dump", &source]).ok());
    summarise("command-strace", &format!("command: {} runs with calls of the system that fail on demand", runs + 1));
}

/// Regression: on NFS the sync of the folder may fail with a stale handle although the anchor is there. That was taken for the
/// work of another writer, and the objects were removed.
#[test]
fn an_ntuple_in_a_directory_can_be_read_after_any_failing_sync() {
    let place = Place::new();
    let (source, uri) = (place.b2hhh(), format!("ntpl+file:{}", place.path("events")));
    let expected = tupelo(&["dump", &source]).ok();
    for is_replaced in [true, false] {
        for (error, when) in ["ESTALE", "EIO"].into_iter().flat_map(|error| (1..6).map(move |when| (error, when))) {
            if is_replaced {
                tupelo(&["copy", &source, &uri, "--force"]).ok();
            } else {
                tupelo(&["rm", &uri]).ok();
            }
            let inject = format!("fsync:error={error}:when={when}");
            let Some((status, said)) = strace(&inject, &[], &["copy", &source, &uri, "--force"]) else { return };
            // Not all calls are made.
            assert!(status == Some(0) || status == Some(1) && said.contains("cannot"), "{inject}: {said}");
            if is_replaced || Path::new(&place.path("events")).exists() {
                tupelo(&["verify", "--deep", &uri]).ok();
                assert_eq!(tupelo(&["dump", &uri]).ok(), expected, "{inject}: {said}");
            } else {
                assert_eq!(status, Some(1), "{inject}: {said}");
                tupelo(&["copy", &source, &uri]).ok();
            }
        }
    }
}

#[test]
fn failing_reads_are_errors() {
    let place = Place::new();
    let file = place.b2hhh();
    let copy = place.path("copy.root");
    let expected = tupelo(&["dump", &file]).ok();
    // Metadata and whole clusters are read by one of the calls, pages to decode by the other.
    let mut failed = HashSet::new();
    let codecs = [("pread64", "zstd:5"), ("preadv", "zstd:5"), ("pread64", "")];
    for ((call, codec), n) in codecs.into_iter().flat_map(|what| (1..8).map(move |n| (what, n))) {
        for (error, is_fine) in [("EIO", false), ("EINTR", true)] {
            let inject = format!("{call}:error={error}:when={n}");
            let mut arguments = vec!["copy", &file, "-o", &copy, "--force"];
            if !codec.is_empty() {
                arguments.extend(["--compression", codec]);
            }
            let Some((status, said)) = strace(&inject, &["-P", &file], &arguments) else {
                return;
            };
            match status {
                Some(0) => assert!(tupelo(&["dump", &copy]).ok() == expected, "{inject}"),
                _ => {
                    assert!(!is_fine && status == Some(1) && said.contains("Input/output error"), "{inject}: {said}");
                    failed.insert((call, n));
                }
            }
        }
    }
    assert!([("pread64", 1), ("pread64", 6), ("preadv", 1)].iter().all(|call| failed.contains(call)), "{failed:?}");
}

#[test]
fn full_stdout_is_an_error() {
    let place = Place::new();
    let file = place.nanoaod();
    for arguments in [&["dump", &file][..], &["ls", &file], &["schema", &file]] {
        let full = fs::File::options().write(true).open("/dev/full").expect("a full device");
        let (status, said) = run(command(arguments).stdout(full));
        assert_eq!(status, Some(1), "{arguments:?}: {said}");
        assert!(said.contains("No space left on device"), "{arguments:?}: {said}");
    }
}

/// Regression: the statistics panicked, with status 101, after the output was written.
#[test]
fn statistics_that_cannot_be_printed_change_nothing() {
    let place = Place::new();
    let (file, target) = (place.nanoaod(), place.path("copy.root"));
    let commands: [&[&str]; 4] = [
        &["dump", &file, "--metrics"],
        &["copy", &file, "-o", &target, "--force", "--metrics"],
        &["copy", "--raw", &file, "-o", &target, "--force", "--metrics"],
        &["verify", &file, "--metrics"],
    ];
    for arguments in commands {
        let full = fs::File::options().write(true).open("/dev/full").expect("a full device");
        let status = command(arguments).stdout(Stdio::null()).stderr(full).status().expect("the command starts");
        assert_eq!(status.code(), Some(0), "{arguments:?} with a full stderr");
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let both = writer.try_clone().expect("a second end");
        let status = command(arguments).stdout(both).stderr(writer).status().expect("the command starts");
        assert_eq!(status.code(), Some(0), "{arguments:?} with closed pipes");
    }
}
