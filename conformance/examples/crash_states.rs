//! Writes files that a killed writer can leave, and what must be found in each: for other readers.
//!
//! `crash_states FOLDER [FILE…]` writes `states.json` and one file for each state between two calls of the scripts, and
//! of those that add to the given files of other writers. A state is `{"file", "what", "allowed"}`, where `allowed` has
//! one or two contents, each of which gives for every ntuple `{"entries", "sums"}`. Standard output has a line for each
//! file that Tupelo cannot add to.

use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use bytes::Bytes;
use conformance::crash::states::{self, Cause};
use conformance::crash::{Found, Moment, Recording, scripts};
use serde_json::{Value, json};
use tupelo_format::checksum::xxh3;
use tupelo_storage::adapter::DiskCall;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let Some(folder) = arguments.next() else {
        eprintln!("crash_states FOLDER [FILE…]");
        return ExitCode::from(2);
    };
    fs::create_dir_all(&folder).expect("the folder");
    let work = folder.join("work");
    fs::create_dir_all(&work).expect("a folder below it");
    let own = scripts::SCRIPTS.iter().filter(|(name, ..)| !name.contains("aborted"));
    let own = own.map(|(name, is_update, script)| scripts::record(name, *is_update, *script, &work));
    let mut recordings = own.collect::<Result<Vec<_>, _>>().expect("recordings");
    for path in arguments {
        let old = Bytes::from(fs::read(&path).expect("a file"));
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        match scripts::foreign(&name, &old, &work) {
            Ok(foreign) => recordings.extend(foreign),
            // The tests that read the states report the missing file.
            Err(error) => println!("{name} cannot be added to: {error}"),
        }
    }
    fs::remove_dir_all(&work).expect("the folder to go");

    let mut listing = Vec::new();
    let mut seen = HashSet::new();
    for recording in &recordings {
        states::killed(recording, |state| {
            let promised = recording.promised(state.calls);
            if state.cause != Cause::Between
                || recording.marks[promised].1.is_empty()
                || is_dull(recording, state.calls)
            {
                return;
            }
            if !seen.insert(xxh3(&state.file)) {
                return;
            }
            let found = recording.check(&state.file, state.calls);
            assert!(matches!(found, Ok(Found::Promised | Found::Newer)), "{}: {found:?}", recording.name);
            let name = format!("{:03}.root", listing.len());
            fs::write(folder.join(&name), &state.file).expect("a state");
            let allowed: BTreeSet<usize> = [promised, (promised + 1).min(recording.marks.len() - 1)].into();
            let allowed: Vec<Value> = allowed.iter().map(|&mark| describe(&recording.marks[mark].1)).collect();
            let what = format!("{}, after {} calls", recording.name, state.calls);
            listing.push(json!({"file": name, "what": what, "allowed": allowed}));
        });
    }
    fs::write(folder.join("states.json"), Value::from(listing).to_string()).expect("the list");
    ExitCode::SUCCESS
}

/// Between two appends nothing changes that a reader sees: one state of them is enough.
fn is_dull(recording: &Recording, calls: usize) -> bool {
    let is_append = |at: usize| matches!(recording.calls.get(at), Some(DiskCall::Append(_)));
    calls > 1 && is_append(calls) && is_append(calls - 1) && is_append(calls - 2)
}

fn describe(moment: &Moment) -> Value {
    let ntuple =
        |content: &conformance::crash::content::Content| json!({"entries": content.entries(), "sums": content.sums()});
    moment.iter().map(|(path, content)| (path.clone(), ntuple(content))).collect::<serde_json::Map<_, _>>().into()
}
