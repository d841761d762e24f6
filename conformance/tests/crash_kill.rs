//! Real processes, killed: what they said is kept is there.

#![cfg(unix)]

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use conformance::crash::content::{Content, events};
use conformance::crash::states::{self, Cause};
use conformance::crash::{Found, Moment, contents, scripts};
use conformance::mutate::Random;
use conformance::summary;
use tupelo::ops::repair::repair;

const WRITER: &str = env!("CARGO_BIN_EXE_crash_writer");
/// Processes that are killed.
const KILLS: usize = 500;
/// How many of them live at a time.
const AT_ONCE: usize = 4;
/// They are killed before this much time has passed, in microseconds.
const LIFE_MICROS: u64 = 60_000;

/// When a writer is killed.
#[derive(Debug, Clone, Copy)]
enum Life {
    /// So long after it was started.
    FromStart(Duration),
    /// So long after its first checkpoint.
    FromFirst(Duration),
}

/// Starts a writer, kills it, and gives the last number of entries that it said.
fn killed(command: &str, path: &Path, life: Life) -> u64 {
    let mut process = Command::new(WRITER)
        .args([command.as_ref(), path.as_os_str()])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the writer starts");
    let mut said = BufReader::new(process.stdout.take().expect("its output"));
    let mut text = String::new();
    let after = match life {
        Life::FromStart(after) => after,
        Life::FromFirst(after) => {
            let _ = said.read_line(&mut text).expect("a number");
            after
        }
    };
    std::thread::sleep(after);
    process.kill().expect("the writer can be killed");
    let _ = process.wait().expect("its end");
    let _ = said.read_to_string(&mut text).expect("numbers");
    // A line without an end was not said.
    let lines = text.rsplit_once('\n').map_or("", |(lines, _)| lines);
    lines.lines().last().map_or(0, |line| line.parse().expect("a number"))
}

/// The files of a folder that have a name, the temporary ones included.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> =
        fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    files
}

fn read(path: &Path) -> Moment {
    let file = Bytes::from(fs::read(path).expect("a file"));
    contents(&file).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Repairs a file, whose entries must not become fewer.
fn repaired(path: &Path, ntuple: &str, entries: u64) -> Moment {
    let _ = repair(path).unwrap_or_else(|error| panic!("{error}"));
    let found = read(path);
    assert!(found[ntuple].entries() as u64 >= entries, "a repair lost entries: {} of {entries}", found[ntuple]);
    found
}

/// A killed writer of a new file; whether anything was promised.
fn kill_new(folder: &Path, life: Life) -> bool {
    let promised = killed("new", &folder.join("x.root"), life);
    let left = files(folder);
    assert!(left.len() <= 1, "{left:?}");
    let found = match left.first() {
        Some(left) if promised > 0 => read(left),
        Some(left) => contents(&Bytes::from(fs::read(left).expect("a file"))).unwrap_or_default(),
        None => Moment::new(),
    };
    let entries = found.get("events").map_or(0, |content| content.entries() as u64);
    assert!(entries >= promised, "{entries} of {promised} entries are left");
    if let Some(content) = found.get("events") {
        assert!(**content == Content::of(&events(0..entries, 1, None)), "other values: {content}");
        // The repair gives the temporary file its name.
        let found = repaired(&folder.join("x.root"), "events", entries);
        let entries = found["events"].entries() as u64;
        assert!(*found["events"] == Content::of(&events(0..entries, 1, None)), "other values: {}", found["events"]);
    }
    promised > 0
}

/// A killed writer that adds to a file; whether anything was promised.
fn kill_grown(folder: &Path, whole: &Bytes, life: Life) -> bool {
    let path = folder.join("x.root");
    fs::write(&path, whole).expect("a file");
    let promised = killed("grow", &path, life);
    assert_eq!(files(folder), [path.as_path()]);
    let (found, mut before) = (read(&path), contents(whole).expect("the old file"));
    let entries = found["run1/hits"].entries() as u64;
    assert!(entries >= promised.max(20), "{entries} of {promised} entries are left");
    let _ = before.insert("run1/hits".to_owned(), Content::of(&events(0..entries, 2, None)).into());
    assert!(found == before, "other values");
    let found = repaired(&path, "run1/hits", entries);
    let entries = found["run1/hits"].entries() as u64;
    let _ = before.insert("run1/hits".to_owned(), Content::of(&events(0..entries, 2, None)).into());
    assert!(found == before, "other values after a repair");
    promised > 0
}

#[test]
fn killed_writers_leave_all_promised_entries() {
    let (next, promised) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let folder = tempfile::tempdir().expect("a folder");
    let whole = scripts::whole_file(folder.path()).expect("a file");
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= KILLS {
                        break;
                    }
                    let folder = tempfile::tempdir().expect("a folder");
                    let after = Duration::from_micros(Random::new(number as u64).below(LIFE_MICROS));
                    let life = if number % 4 < 2 { Life::FromStart(after) } else { Life::FromFirst(after / 4) };
                    let is_promised = match number % 2 {
                        0 => kill_new(folder.path(), life),
                        _ => kill_grown(folder.path(), &whole, life),
                    };
                    let _ = promised.fetch_add(usize::from(is_promised), Ordering::Relaxed);
                }
            });
        }
    });
    let promised = promised.into_inner();
    assert!(promised >= KILLS / 2, "only {promised} writers came to a checkpoint");
    summary::note(
        "crash-kill",
        &format!("{KILLS} writers killed, {promised} of them after a checkpoint: nothing lost"),
    );
}

/// Files with torn headers, repaired by processes that are killed on the way: the last one finds what there is.
#[test]
fn killed_repairs_can_be_repeated() {
    let folder = tempfile::tempdir().expect("a folder");
    let (name, is_update, script) = scripts::SCRIPTS[5];
    let recording = scripts::record(name, is_update, script, folder.path()).expect("a recording");
    let mut torn = Vec::new();
    states::killed(&recording, |state| {
        if let (Cause::TornOverwrite(_), Ok(Found::Refused)) = (state.cause, recording.check(&state.file, state.calls))
        {
            torn.push(state);
        }
    });
    let path = folder.path().join("torn.root");
    let mut finished = 0;
    for number in 0..50 {
        let state = &torn[number as usize % torn.len()];
        fs::write(&path, &state.file).expect("a file");
        let mut process =
            Command::new(WRITER).arg("repair").arg(&path).stderr(Stdio::null()).spawn().expect("it starts");
        std::thread::sleep(Duration::from_micros(Random::new(number).below(20_000)));
        process.kill().expect("it can be killed");
        finished += usize::from(process.wait().expect("its end").success());
        let _ = repair(&path).unwrap_or_else(|error| panic!("{error}"));
        let found = recording.check(&fs::read(&path).expect("a file").into(), state.calls);
        assert!(matches!(found, Ok(Found::Promised | Found::Newer)), "{found:?}");
    }
    summary::note("crash-repair-kill", &format!("50 repairs killed, {finished} of them too late"));
}

#[test]
fn a_writer_that_is_forgotten_says_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("x.root");
    let output = Command::new(WRITER).arg("forget").arg(&path).output().expect("the writer starts");
    let left = files(folder.path());
    assert_eq!(left.len(), 1, "{left:?}");
    let kept = left[0].display().to_string();
    assert!(kept.contains("x.root.tmp-"), "{kept}");
    let expected = format!("tupelo: {} was not finished; its last checkpoint is kept in {kept}\n", path.display());
    assert_eq!(String::from_utf8_lossy(&output.stderr), expected);
    assert_eq!(read(&left[0])["events"].entries(), 25);
}

/// Any error that the caller had handled silenced the destructor, whatever came after it.
#[test]
fn the_error_that_loses_a_file_is_reported_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("x.root");
    let said = |command: &str| {
        let output = Command::new(WRITER).arg(command).arg(&path).output().expect("the writer starts");
        assert!(output.status.success(), "{output:?}");
        assert_eq!(files(folder.path()), [] as [&Path; 0]);
        String::from_utf8(output.stderr).expect("UTF-8")
    };
    assert_eq!(said("handle"), format!("tupelo: {} was not finished\n", path.display()));
    assert_eq!(said("fail"), "");
}

/// Two processes write one name again and again: the file is that of one or of the other, never of both.
#[test]
fn two_processes_of_one_name_never_mix() {
    const ROUNDS: usize = 200;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("x.root");
    let (mut won, mut both) = ([0, 0], 0);
    for round in 0..ROUNDS {
        // Now the name is free, now it is not.
        if round % 2 == 0 {
            fs::remove_file(&path).unwrap_or_default();
        }
        let start = |salt: u64| {
            let mut command = Command::new(WRITER);
            command.arg("once").arg(&path).arg(salt.to_string()).stderr(Stdio::piped()).stdout(Stdio::null());
            command.spawn().expect("the writer starts")
        };
        let ends = [start(2), start(3)].map(|process| process.wait_with_output().expect("its end"));
        let done: Vec<bool> = ends.iter().map(|end| end.status.success()).collect();
        for end in ends.iter().filter(|end| !end.status.success()) {
            let text = String::from_utf8_lossy(&end.stderr);
            let known = ["another writer is writing it", "another writer has created it"];
            assert!(known.iter().any(|known| text.contains(known)), "{text}");
        }
        assert!(done.contains(&true), "neither process has written the file");
        let found = read(&path);
        let winner = [2, 3].iter().position(|&salt| *found["events"] == Content::of(&events(0..500, salt, None)));
        let winner = winner.unwrap_or_else(|| panic!("neither has written this: {}", found["events"]));
        assert!(done[winner], "what is there is of one that failed");
        won[winner] += 1;
        both += usize::from(done == [true, true]);
        assert_eq!(files(folder.path()), [path.as_path()], "something is left");
    }
    summary::note(
        "crash-race",
        &format!(
            "{ROUNDS} rounds of two writers of one name: {won:?} won, {both} times one after the other, never mixed"
        ),
    );
}
