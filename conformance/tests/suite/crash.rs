//! Every state in which a crash can leave a file: opened, read as a whole, compared with what was promised.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use arrow_array::RecordBatch;
use bytes::Bytes;
use conformance::crash::content::{Content, events, named, schema};
use conformance::crash::scripts::{self, SCRIPTS};
use conformance::crash::states::{self, Cause, State};
use conformance::crash::{Found, Moment, Recording, contents};
use conformance::summary;
use tupelo::ops::repair::repair;
use tupelo::{FileWriter, WriteOptions};
use tupelo_format::checksum::xxh3;
use tupelo_storage::adapter::DiskCall;
use tupelo_storage::{MemoryFile, MemorySink};

/// Small real files of ROOT's to which something is added.
const REAL: [&str; 4] = [
    "cms_run2012_dimuon_ntuple.root",
    "test_multiple_cluster_groups_rntuple_v1-0-0-0.root",
    "test_stl_containers_rntuple_v1-0-0-0.root",
    "test_extension_columns_rntuple_v1-0-0-0.root",
];

/// Bytes of a directory's record before the lowest byte of the place of its key list.
const LAST_BYTE_OF_PLACE: u64 = 29;

fn recordings() -> Vec<Recording> {
    let folder = tempfile::tempdir().expect("a folder");
    let own = SCRIPTS.iter().map(|(name, is_update, script)| {
        scripts::record(name, *is_update, *script, folder.path()).unwrap_or_else(|error| panic!("{name}: {error}"))
    });
    let mut all: Vec<Recording> = own.collect();
    all.push(scripts::named(240, folder.path()).expect("a file with a long name"));
    for path in summary::real_files() {
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        if REAL.contains(&name.as_str()) {
            let old = Bytes::from(std::fs::read(&path).expect("a real file"));
            all.extend(scripts::foreign(&name, &old, folder.path()).unwrap_or_else(|error| panic!("{name}: {error}")));
        }
    }
    all
}

/// The file after a repair, which is that of a second one.
fn repaired(file: &Bytes) -> tupelo::Result<Bytes> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("x.root");
    std::fs::write(&path, file).expect("a file");
    let first = repair(&path)?;
    let read = || Bytes::from(std::fs::read(&path).expect("a file"));
    let once = read();
    assert!(!repair(&path)?.is_changed || !first.is_changed, "a repair changes what a repair made");
    assert!(read() == once, "a second repair changes what the first one made");
    Ok(once)
}

/// What happened to how many states.
#[derive(Debug, Default)]
struct Tally {
    seen: HashSet<(u64, usize)>,
    found: BTreeMap<&'static str, usize>,
}

impl Tally {
    fn count(&mut self, what: &'static str) {
        *self.found.entry(what).or_default() += 1;
    }

    /// Looks into a state that was not seen before; fails where it breaks a promise.
    fn check(&mut self, recording: &Recording, state: &State) {
        let promised = recording.promised(state.calls);
        if !self.seen.insert((xxh3(&state.file), promised)) {
            return;
        }
        let Recording { name, .. } = recording;
        let place = || format!("{name}, after {} calls, {:?}", state.calls, state.cause);
        let check =
            |file: &Bytes| recording.check(file, state.calls).unwrap_or_else(|wrong| panic!("{}: {wrong}", place()));
        match check(&state.file) {
            Found::Promised => return self.count("as promised"),
            Found::Newer => return self.count("newer"),
            Found::Refused => {}
        }
        if recording.marks[promised].1.is_empty() {
            // Nothing was promised yet.
            return self.count("nothing yet");
        }
        let is_torn = matches!(state.cause, Cause::TornOverwrite(_) | Cause::Power { is_torn: true });
        let why = contents(&state.file).err();
        assert!(is_torn, "{}: {why:?}", place());
        assert_ne!(check(&repaired(&state.file).unwrap_or_else(|e| panic!("{}: {e}", place()))), Found::Refused);
        self.count("repaired");
    }

    fn states(&self) -> usize {
        self.found.values().sum()
    }
}

#[test]
fn a_killed_process_leaves_the_last_checkpoint() {
    let mut tally = Tally::default();
    for recording in recordings() {
        states::killed(&recording, |state| tally.check(&recording, &state));
    }
    let (states, found) = (tally.states(), &tally.found);
    assert!(found["newer"] > 0 && states > 3000, "{found:?}");
    summary::note("crash", &format!("{states} files that a killed process can leave: {found:?}"));
}

/// A recording in which a sector boundary splits the one number of a directory's record that changes, the offset of its
/// key list: leftovers past the end of the old file move it there.
fn torn_record() -> Recording {
    let folder = tempfile::tempdir().expect("a folder");
    let record_at = |recording: &Recording| {
        let patches = recording.calls.iter().filter_map(|call| match call {
            DiskCall::Overwrite { offset, .. } if *offset > recording.old.len() as u64 => Some(*offset),
            _ => None,
        });
        patches.max().expect("a directory that is made and changed")
    };
    let torn_at = states::SECTOR_BYTES - LAST_BYTE_OF_PLACE;
    let at = record_at(&scripts::shifted(0, folder.path()).expect("a file"));
    let by = states::SECTOR_BYTES + (torn_at + states::SECTOR_BYTES - at % states::SECTOR_BYTES) % states::SECTOR_BYTES;
    // Other envelopes do not always compress to the same length.
    let near = (by..by + 40).map(|by| scripts::shifted(by as usize - 20, folder.path()).expect("a file"));
    let mut torn = near.filter(|recording| record_at(recording) % states::SECTOR_BYTES == torn_at);
    torn.next().expect("a record that a sector's end tears")
}

#[test]
fn a_power_failure_leaves_the_last_checkpoint() {
    let mut tally = Tally::default();
    for recording in recordings().into_iter().chain([torn_record()]) {
        states::unpowered(&recording, |state| tally.check(&recording, &state));
    }
    let (states, found) = (tally.states(), &tally.found);
    assert!(found["newer"] > 0 && found["repaired"] > 0 && states > 3000, "{found:?}");
    summary::note("crash-power", &format!("{states} files that a power failure can leave: {found:?}"));
}

/// The header and what else is patched with it lie in one sector, which disks write as a whole, unless the name is
/// long.
#[test]
fn the_last_patch_fits_a_sector_unless_the_name_is_long() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name_bytes, is_one) in [(1, true), (158, true), (159, false)] {
        let recording = scripts::named(name_bytes, folder.path()).expect("a file");
        let patches = recording.calls.iter().filter_map(|call| match call {
            DiskCall::Overwrite { offset: 0, bytes } => Some(bytes.len() as u64),
            _ => None,
        });
        let longest = patches.max().expect("a patch");
        assert_eq!(longest <= states::SECTOR_BYTES, is_one, "{longest} bytes for a name of {name_bytes}");
    }
}

/// The row of docs/internals/durability.md.
#[test]
fn the_row_of_the_table() {
    let folder = tempfile::tempdir().expect("a folder");
    let recording = scripts::measured(folder.path()).expect("a file");
    let (mut readable, mut all, mut entries) = (0, 0, Vec::new());
    states::killed(&recording, |state| {
        if state.cause == Cause::Between {
            all += 1;
            let found = contents(&state.file).unwrap_or_default();
            readable += usize::from(!found.is_empty());
            entries.push(found.get("events").map_or(0, |content| content.entries()));
        }
    });
    let syncs = recording.calls.iter().filter(|call| **call == DiskCall::Sync).count();
    assert!(entries.is_sorted() && entries.last() == Some(&6000), "{entries:?}");
    assert_eq!((readable, all, syncs), (23, 26, 13), "{entries:?}");
}

/// A repair goes to the last checkpoint or to the one that was being made, whatever it finds, and never back.
#[test]
fn repairing_an_intact_file_loses_no_promised_entry() {
    let (mut kept, mut newer) = (0, 0);
    for recording in recordings() {
        states::killed(&recording, |state| {
            let promised = recording.promised(state.calls);
            if state.cause != Cause::Between || recording.marks[promised].1.is_empty() {
                return;
            }
            let place = || format!("{}, after {} calls", recording.name, state.calls);
            let file = repaired(&state.file).unwrap_or_else(|error| panic!("{}: {error}", place()));
            let found = recording.check(&file, state.calls).unwrap_or_else(|wrong| panic!("{}: {wrong}", place()));
            match found {
                Found::Promised => kept += 1,
                Found::Newer => newer += 1,
                Found::Refused => panic!("{}: repaired, and cannot be read", place()),
            }
        });
    }
    assert!(kept > 100 && newer > 10, "{kept} kept, {newer} newer");
    summary::note("crash-repair", &format!("{kept} files kept by a repair, {newer} brought to a newer checkpoint"));
}

/// The promises of a script are kept by the file itself, call by call: the file is as promised the moment it is, and
/// something is promised.
#[test]
fn promised_entries_are_readable_at_once() {
    for recording in recordings() {
        let mut file = recording.old.to_vec();
        let mut done = 0;
        for (at, (calls, moment)) in recording.marks.iter().enumerate() {
            recording.calls[done..*calls].iter().for_each(|call| call.replay(&mut file));
            done = *calls;
            let found = contents(&Bytes::from(file.clone()));
            match moment.is_empty() {
                true => assert!(found.is_err() || found.is_ok_and(|found| found.is_empty()), "{}", recording.name),
                false => assert!(found.expect("a file") == *moment, "{}: mark {at}", recording.name),
            }
        }
        assert!(recording.marks.len() > 1, "{}", recording.name);
    }
}

/// What a crash leaves is a file like any other: an ntuple can be added, and entries to those that are there.
#[test]
fn the_remaining_file_can_be_extended() {
    let mut added = 0;
    for recording in recordings().into_iter().take(SCRIPTS.len()) {
        states::killed(&recording, |state| {
            if let (Cause::Between, Ok(before)) = (state.cause, contents(&state.file))
                && !before.is_empty()
            {
                let after = add_to(&state.file, &before);
                let found =
                    contents(&after).unwrap_or_else(|e| panic!("{} after {}: {e}", recording.name, state.calls));
                let mut expected = before.clone();
                for content in expected.values_mut() {
                    let mut more = (**content).clone();
                    more.repeat(more.entries());
                    *content = Arc::new(more);
                }
                let _ = expected.insert("again".to_owned(), Arc::new(Content::of(&events(0..3, 5, None))));
                assert!(found == expected, "{} after {} calls", recording.name, state.calls);
                added += 1;
            }
        });
    }
    summary::note("crash-again", &format!("{added} files that a killed process can leave were added to"));
    assert!(added > 100, "{added}");
}

fn batch(content: &Content) -> RecordBatch {
    named(content.columns.iter().map(|(name, column)| (name.as_str(), column.clone())).collect())
}

/// Adds an ntuple `again`, and to each ntuple its own entries once more.
fn add_to(file: &Bytes, before: &Moment) -> Bytes {
    let target = MemoryFile::from(file.clone());
    let sink = MemorySink::update(&target).expect("a sink");
    let writer =
        FileWriter::update_in(Box::new(sink), Arc::new(target.source().expect("its bytes"))).expect("a writer");
    let options = WriteOptions::default();
    for (path, content) in before {
        let mut ntuple = writer.append(path, options.clone()).expect("an ntuple to add to");
        ntuple.write(&batch(content)).expect("more entries");
        ntuple.finish().expect("it to be finished");
    }
    let mut ntuple = writer.ntuple("again", &schema(false), options).expect("an ntuple");
    ntuple.write(&events(0..3, 5, None)).expect("entries");
    ntuple.finish().expect("it to be finished");
    writer.finish().expect("the file to be finished");
    target.bytes().expect("a file")
}
