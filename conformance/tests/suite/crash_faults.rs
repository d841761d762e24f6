//! Disks that fail: at every call, in every way, at every length. The writer says so once, and what was promised stays.

#![cfg(unix)]

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use conformance::crash::content::{Content, events, schema};
use conformance::crash::scripts::{SCRIPTS, Script, Stage, perform, whole_file};
use conformance::crash::{Moment, contents};
use conformance::summary;
use tupelo::{FileWriter, Result, WriteOptions};
use tupelo_storage::adapter::{DiskFault, FaultyDisk, RecordingDisk};
use tupelo_storage::local::Disk;
use tupelo_storage::{FileSink, FileSource};

const EINTR: i32 = 4;
const EIO: i32 = 5;
const ENOSPC: i32 = 28;
/// More bytes than any script writes but those that are aborted on purpose.
const STEP_BYTES: u64 = 211;

/// What is left of one run of a script on a faulty disk.
struct Run {
    stage: Stage,
    done: Result<()>,
    /// How many calls the disk had.
    calls: u64,
    path: PathBuf,
    folder: tempfile::TempDir,
}

fn run(old: &Bytes, script: Script, fault: DiskFault) -> Run {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("x.root");
    let calls = Arc::new(AtomicU64::new(0));
    let counted = calls.clone();
    let (stage, done) = perform(old, script, &path, |disk, log| {
        Box::new(FaultyDisk::new(Box::new(RecordingDisk::new(disk, log)), fault, &counted))
    });
    Run { stage, done, calls: calls.load(Ordering::Relaxed), path, folder }
}

/// The files of a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()).collect()
}

fn read(path: &Path) -> Result<Moment> {
    contents(&Bytes::from(fs::read(path).expect("a file")))
}

impl Run {
    /// What a failed run must leave: the target as it was promised last, or as it was about to be.
    fn check_failed(&self, is_update: bool, place: &str) {
        let error = self.done.as_ref().expect_err(place).to_string();
        if error.contains("make durable") {
            let said = ["may be lost", "may not survive"];
            assert!(said.iter().any(|said| error.contains(said)), "{place}: {error}");
        }
        assert!(!error.contains("an earlier write"), "{place}: the first error is lost behind '{error}'");
        let promised = &self.stage.marks.last().expect("the first mark").1;
        let left = files(self.folder.path());
        if is_update {
            assert_eq!(left, [self.path.as_path()], "{place}");
        } else {
            assert!(!self.path.exists(), "{place}: a file was published after an error");
            if promised.is_empty() {
                assert!(left.is_empty(), "{place}: {left:?} is left");
                return;
            }
            assert_eq!(left.len(), 1, "{place}: {left:?} is left");
        }
        let found = read(&left[0]).unwrap_or_else(|unread| panic!("{place}: {unread}, after '{error}'"));
        assert!(found == *promised || found == self.stage.moment, "{place}: other content after '{error}'");
    }
}

/// Every script, with the file that it begins with.
fn scripts() -> Vec<(&'static str, bool, Script, Bytes)> {
    let folder = tempfile::tempdir().expect("a folder");
    let whole = whole_file(folder.path()).expect("a file");
    let old = |is_update| if is_update { whole.clone() } else { Bytes::new() };
    SCRIPTS.iter().map(|(name, is_update, script)| (*name, *is_update, *script, old(*is_update))).collect()
}

const NO_FAULT: DiskFault = DiskFault::Calls { calls: 0..0, errno: EIO };

#[test]
fn every_call_fails_once_or_from_then_on() {
    let mut runs = 0;
    for (name, is_update, script, old) in scripts() {
        let all = run(&old, script, NO_FAULT);
        all.done.unwrap_or_else(|error| panic!("{name}: {error}"));
        for errno in [EIO, ENOSPC] {
            for n in 0..all.calls {
                for calls in [n..n + 1, n..u64::MAX] {
                    let place = format!("{name}, error {errno} at {calls:?} of {} calls", all.calls);
                    let run = run(&old, script, DiskFault::Calls { calls: calls.clone(), errno });
                    // Half a patch that cannot be taken back is the one thing that is left to a repair.
                    let is_said = run.done.as_ref().is_err_and(|e| e.to_string().contains("the file may be damaged"));
                    if !(is_said && calls.end > n + 1) {
                        run.check_failed(is_update, &place);
                    }
                    runs += 1;
                }
            }
        }
    }
    assert!(runs > 100);
    summary::note("crash-faults", &format!("{runs} writers whose disk failed at one call, or from it on"));
}

#[test]
fn short_and_interrupted_calls_are_not_noticed() {
    let mut runs = 0;
    for (name, _, script, old) in scripts() {
        let all = run(&old, script, NO_FAULT);
        let (calls, expected) = (all.calls, fs::read(files(all.folder.path())[0].clone()).expect("a file").len());
        let one = (0..calls).map(|n| n..n + 1);
        for at in one.chain([0..calls * 2, 0..20]) {
            for fault in [DiskFault::Short { calls: at.clone() }, DiskFault::Calls { calls: at.clone(), errno: EINTR }]
            {
                let place = format!("{name}, {fault:?}");
                let run = run(&old, script, fault);
                run.done.unwrap_or_else(|error| panic!("{place}: {error}"));
                let left = files(run.folder.path());
                assert_eq!(left.len(), 1, "{place}: {left:?}");
                let found = fs::read(&left[0]).expect("a file");
                assert_eq!(found.len(), expected, "{place}");
                let promised = &run.stage.marks.last().expect("a mark").1;
                assert!(contents(&found.into()).expect("a file") == *promised, "{place}");
                runs += 1;
            }
        }
    }
    assert!(runs > 100);
}

#[test]
fn a_disk_of_every_size_is_full_once() {
    let (mut full, mut fitting) = (0, 0);
    for (name, is_update, script, old) in scripts() {
        if name.contains("aborted") {
            continue;
        }
        let used_bytes = old.len() as u64;
        for bytes in (used_bytes..).step_by(STEP_BYTES as usize) {
            let run = run(&old, script, DiskFault::Room { used_bytes, bytes, errno: ENOSPC });
            let place = format!("{name}, {bytes} bytes of room");
            match &run.done {
                Ok(()) => {
                    fitting += 1;
                    break;
                }
                Err(error) => assert!(error.to_string().contains("os error 28"), "{place}: {error}"),
            }
            run.check_failed(is_update, &place);
            full += 1;
        }
    }
    assert!(full > 100 && fitting == SCRIPTS.iter().filter(|(name, ..)| !name.contains("aborted")).count());
    summary::note("crash-full", &format!("{full} disks of different sizes that became full"));
}

/// A caller that ignores every error publishes nothing after the first one.
#[test]
fn nothing_is_published_after_an_error_that_is_overlooked() {
    let whole = scripts().into_iter().find(|(_, is_update, ..)| *is_update).expect("an update").3;
    for is_update in [false, true] {
        for n in 0.. {
            let folder = tempfile::tempdir().expect("a folder");
            let path = folder.path().join("x.root");
            fs::write(&path, &whole).expect("a file");
            let calls = Arc::new(AtomicU64::new(0));
            let fault = DiskFault::Calls { calls: n..n + 1, errno: EIO };
            let wrap = |disk| -> Box<dyn Disk> { Box::new(FaultyDisk::new(disk, fault, &calls)) };
            let file = match is_update {
                false => {
                    FileWriter::create_in(Box::new(FileSink::create_through(&path, wrap).expect("a sink")), "x.root")
                }
                true => {
                    let source = Arc::new(FileSource::open(&path).expect("a file"));
                    FileWriter::update_in(Box::new(FileSink::update_through(&path, wrap).expect("a sink")), source)
                }
            };
            let file = file.expect("a writer");
            let before = contents(&whole).expect("the old file");
            let mut allowed = vec![before.clone()];
            let mut errors = Vec::new();
            let mut note = |result: Result<()>| errors.extend(result.err().map(|error| error.to_string()));
            let mut moment = if is_update { before } else { Moment::new() };
            let mut writer = file.ntuple("new/events", &schema(false), WriteOptions::default()).expect("an ntuple");
            for start in [0, 10, 20] {
                note(writer.write(&events(start..start + 10, 1, None)));
                note(writer.checkpoint());
                let _ = moment.insert("new/events".to_owned(), Content::of(&events(0..start + 10, 1, None)).into());
                if is_update {
                    allowed.push(moment.clone());
                }
            }
            note(writer.finish().map(drop));
            let finished = file.finish();
            let is_done = finished.is_ok();
            note(finished);
            let had_its_turn = calls.load(Ordering::Relaxed) > n;
            let found = read(&path).unwrap_or_else(|error| panic!("call {n}: {error}"));
            if !had_its_turn {
                assert!(is_done && errors.is_empty() && found == moment, "{errors:?}");
                assert!(n > 4);
                break;
            }
            assert!(!is_done, "call {n} failed, and the file was finished");
            assert!(allowed.contains(&found), "call {n}: {errors:?}");
            let told = errors.iter().filter(|error| error.contains("os error 5")).count();
            assert_eq!(told, 1, "call {n}: {errors:?}");
            assert!(errors[0].contains("os error 5"), "call {n}: {errors:?}");
        }
    }
}

#[test]
fn a_name_that_cannot_be_taken_at_the_end() {
    for has_checkpoint in [false, true] {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("x.root");
        let file = FileWriter::create(&path).expect("a writer");
        let mut writer = file.ntuple("events", &schema(false), WriteOptions::default()).expect("an ntuple");
        writer.write(&events(0..10, 1, None)).expect("entries");
        if has_checkpoint {
            writer.checkpoint().expect("a checkpoint");
        }
        writer.finish().expect("it to be finished");
        fs::create_dir(&path).expect("a directory in the way");
        let error = file.finish().expect_err("no file").to_string();
        let mut left = files(folder.path());
        left.retain(|left| *left != path);
        assert!(path.is_dir());
        assert_eq!(left.len(), usize::from(has_checkpoint), "{left:?}");
        for left in left {
            assert!(error.contains(&left.display().to_string()), "{error}");
            assert_eq!(read(&left).expect("the checkpoint")["events"].entries(), 10);
        }
    }
}

/// Which calls a checkpoint makes and in which order is what all promises rest on.
#[test]
fn the_order_of_calls_is_append_sync_patch_sync() {
    use tupelo_storage::adapter::DiskCall;
    for (name, patches, checkpoints) in
        [("entries added to an ntuple", &["header", "patch of 60"][..], 3), ("a new file", &["header"], 1)]
    {
        let (_, _, script, old) = scripts().into_iter().find(|(it, ..)| *it == name).expect("it");
        let folder = tempfile::tempdir().expect("a folder");
        let mut log = None;
        let (stage, done) = perform(&old, script, &folder.path().join("x.root"), |disk, recorded| {
            log = Some(recorded.clone());
            Box::new(RecordingDisk::new(disk, recorded))
        });
        done.expect("it is written");
        let calls = log.expect("a log").calls();
        let ranges: Vec<Range<usize>> = stage.marks.windows(2).map(|pair| pair[0].0..pair[1].0).collect();
        for range in ranges.into_iter().take(checkpoints) {
            let shape: Vec<String> = calls[range]
                .iter()
                .map(|call| match call {
                    DiskCall::Append(_) => "append".to_owned(),
                    DiskCall::Overwrite { offset: 0, .. } => "header".to_owned(),
                    DiskCall::Overwrite { bytes, .. } => format!("patch of {}", bytes.len()),
                    DiskCall::Sync => "sync".to_owned(),
                    DiskCall::Truncate(_) => "truncate".to_owned(),
                })
                .collect();
            assert_eq!(shape, [&["append", "sync"], patches, &["sync"]].concat(), "{name}");
        }
    }
}
