//! The directories of a file: each is read once, and kept for all clones of the file.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use tupelo_format::container::{self, Attempt, Directory, FetchedRanges, Key, Object, Tree};

use super::{File, Reservation};
use crate::{Error, Result};

/// The directories read so far, with their share of the memory budget.
#[derive(Debug, Default)]
pub(super) struct Directories {
    /// The directories visited by lookups, by the offset of their key; the top directory at 0.
    opened: Mutex<HashMap<u64, Opened>>,
    listing: OnceLock<Listing>,
}

/// Everything that the directories of a file list.
#[derive(Debug)]
pub struct Listing {
    /// All cycles, in file order.
    objects: Vec<Object>,
    /// For each object whether no other of its path has a higher cycle.
    is_newest: Vec<bool>,
    /// The bytes of all directories.
    fetched: FetchedRanges,
    _shares: Vec<Reservation>,
}

impl Listing {
    /// All objects in file order, and whether each is the newest cycle of its path.
    pub fn objects(&self) -> impl Iterator<Item = (&Object, bool)> {
        self.objects.iter().zip(self.is_newest.iter().copied())
    }
}

#[derive(Debug, Clone)]
struct Opened(Arc<(Directory, Reservation)>);

impl AsRef<Directory> for Opened {
    fn as_ref(&self) -> &Directory {
        &self.0.0
    }
}

impl File {
    /// The object at a path, by the directories on it and no others; see [`container::find_object_in`].
    pub fn find_object(&self, path: &str) -> Result<Option<Object>> {
        container::find_object_in(path, self.size(), |key| self.directory(key)).map_err(|error| self.or_cut_off(error))
    }

    fn directory(&self, key: Option<&Key>) -> Result<Opened> {
        let opened = || self.directories.opened.lock().unwrap_or_else(PoisonError::into_inner);
        let offset = key.map_or(0, |key| key.seek_key);
        if let Some(known) = opened().get(&offset) {
            return Ok(known.clone());
        }
        let read = self.attempt_reserved(|fetched| match key {
            None => Directory::top(fetched),
            Some(key) => Directory::below(fetched, key),
        })?;
        Ok(opened().entry(offset).or_insert(Opened(Arc::new(read))).clone())
    }

    /// Everything that the directories list.
    pub fn listing(&self) -> Result<&Listing> {
        match self.directories.listing.get() {
            Some(known) => Ok(known),
            None => self.read_listing().map_err(|error| self.or_cut_off(error)),
        }
    }

    /// The damage of a file that is shorter than its header says, which is then given as the reason.
    #[cold]
    fn or_cut_off(&self, error: Error) -> Error {
        match self.attempt(container::read_header) {
            Ok(header) if error.is_corrupt() && header.end > self.size() => header.cut_off(self.size()).into(),
            _ => error,
        }
    }

    fn read_listing(&self) -> Result<&Listing> {
        let (mut tree, share, mut fetched) = self.attempt_from(self.fetched.clone(), Tree::new)?;
        let mut shares = vec![share];
        while !tree.is_complete() {
            // Level by level: a round of reading does not parse again what is known.
            let (level, share, more) = self.attempt_from(fetched, |fetched| tree.next_level(fetched))?;
            tree.add(level)?;
            shares.push(share);
            fetched = more;
        }
        let (objects, share) = self.attempt_reserved(|fetched| Ok(tree.objects(fetched.memory())?))?;
        shares.push(share);
        let mut newest: HashMap<&str, u16> = HashMap::with_capacity(objects.len());
        for object in &objects {
            let cycle = newest.entry(&object.path).or_default();
            *cycle = object.key.cycle.max(*cycle);
        }
        let is_newest = objects.iter().map(|object| newest[object.path.as_str()] == object.key.cycle).collect();
        let listing = Listing { objects, is_newest, fetched, _shares: shares };
        Ok(self.directories.listing.get_or_init(|| listing))
    }

    /// As [`File::attempt`], with the bytes of all directories at hand: for steps that need them beside much else.
    pub fn attempt_with_directories<T>(&self, step: impl Fn(&FetchedRanges) -> Attempt<T>) -> Result<T> {
        let fetched = self.listing()?.fetched.clone();
        self.attempt_from(fetched, step).map(|(done, ..)| done)
    }
}
