//! What a crash may leave of a file that is being written, and what must be found in it.
//!
//! A [script](scripts) writes a file through a disk that records every call. [`states`] makes of the recording the files
//! that a killed process or a power failure can leave, and says how many calls were done at least. [`Recording::check`]
//! opens one: every ntuple must be as it was at the last checkpoint that the writer had been promised, or as at the one
//! that was being made; with all its values, and never anything else.

pub mod content;
pub mod scripts;
pub mod states;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use tupelo::{File, Result};
use tupelo_storage::MemorySource;
use tupelo_storage::adapter::DiskCall;

use self::content::Content;

/// What a whole file holds: its ntuples by path.
pub type Moment = BTreeMap<String, Arc<Content>>;

/// A script that ran: what it did to the disk, and what it was promised when.
#[derive(Debug, Clone)]
pub struct Recording {
    /// The script, for messages.
    pub name: String,
    /// The file as it was before; empty for a new one.
    pub old: Bytes,
    /// What was done to it.
    pub calls: Vec<DiskCall>,
    /// After how many calls which content was promised, in order; the first one is the old file at no call.
    pub marks: Vec<(usize, Moment)>,
}

/// What a file turned out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// As at the last promise.
    Promised,
    /// As the writer was just about to promise; or some ntuples so and others not.
    Newer,
    /// It cannot be opened or read.
    Refused,
}

impl Recording {
    /// The index of the last mark that was promised when so many calls were done.
    pub fn promised(&self, calls: usize) -> usize {
        self.marks.iter().rposition(|(at, _)| *at <= calls).unwrap_or(0)
    }

    /// Looks into a file that a crash may have left when at least so many calls were done.
    ///
    /// # Errors
    /// What is wrong, if it can be read and is neither of what it may be.
    pub fn check(&self, file: &Bytes, calls: usize) -> Result<Found, String> {
        let at = self.promised(calls);
        let old = &self.marks[at].1;
        let new = self.marks.get(at + 1).map_or(old, |(_, new)| new);
        match contents(file) {
            Err(_) => Ok(Found::Refused),
            Ok(found) => compare(&found, old, new),
        }
    }
}

/// Everything that a file holds.
///
/// # Errors
/// Those of opening and reading.
pub fn contents(file: &Bytes) -> Result<Moment> {
    let file = File::new(Arc::new(MemorySource::new(file.clone())), true)?;
    let names = file.ntuple_names()?;
    names.into_iter().map(|name| Ok((name.clone(), Arc::new(Content::read(&file.ntuple(Some(&name))?)?)))).collect()
}

/// Every ntuple must be as in one of two moments.
fn compare(found: &Moment, old: &Moment, new: &Moment) -> Result<Found, String> {
    let mut verdict = Found::Promised;
    let paths: BTreeSet<&String> = found.keys().chain(old.keys()).chain(new.keys()).collect();
    for path in paths {
        let (found, old, new) = (found.get(path), old.get(path), new.get(path));
        if found != old {
            if found != new {
                let say = |content: Option<&Arc<Content>>| content.map_or("nothing".to_owned(), |it| it.to_string());
                return Err(format!("'{path}' is {}, not {} or {}", say(found), say(old), say(new)));
            }
            verdict = Found::Newer;
        }
    }
    Ok(verdict)
}
