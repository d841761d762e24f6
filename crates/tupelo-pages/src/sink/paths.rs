//! The ntuples of a file that are being written, and their directories.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::{Error, Result};

/// Ntuples of one file, by path.
#[derive(Debug, Default)]
pub(super) struct Paths {
    /// Ntuples that are not finished.
    open: BTreeMap<String, Open>,
    /// The directories of open ntuples, each with the number of open ntuples below it.
    directories: HashMap<String, usize>,
    finished: HashSet<String>,
    removed: HashSet<String>,
}

/// An ntuple that is being written.
#[derive(Debug, Clone, Copy)]
pub(super) struct Open {
    /// The cycle under which the file lists the ntuple, if it does.
    pub(super) cycle: Option<u16>,
    /// Whether the ntuple is new, not a continued one.
    pub(super) is_new: bool,
}

impl Paths {
    /// Checks that an ntuple can be created or, with the cycle of an existing one, continued.
    pub(super) fn check(&self, path: &str, cycle: Option<u16>) -> Result<()> {
        if self.open.contains_key(path) {
            return Err(Error::invalid_argument(format!("'{path}' is already being written")));
        }
        if cycle.is_some() && self.finished.contains(path) {
            let what = "was finished by this writer; to continue it, finish the file and open it again";
            return Err(Error::invalid_argument(format!("ntuple '{path}' {what}")));
        }
        if cycle.is_some() && self.removed.contains(path) {
            return Err(Error::invalid_argument(format!("ntuple '{path}' was removed by this writer")));
        }
        if self.directories.contains_key(path) {
            return Err(Error::invalid_argument(format!("'{path}' is a directory")));
        }
        match directories(path).find(|above| self.open.contains_key(*above)) {
            Some(above) => Err(Error::invalid_argument(format!("'{path}': '{above}' is not a directory"))),
            None => Ok(()),
        }
    }

    /// Checks that an object that the file had can be removed: this writer did not write anything of the name.
    pub(super) fn check_unused(&self, path: &str) -> Result<()> {
        let is_used = self.open.contains_key(path) || self.finished.contains(path);
        if is_used || self.directories.contains_key(path) {
            let what = "was written by this writer; to remove it, finish the file and open it again";
            return Err(Error::invalid_argument(format!("'{path}' {what}")));
        }
        Ok(())
    }

    /// Notes paths whose objects were removed.
    pub(super) fn remove(&mut self, paths: &[String]) {
        self.removed.extend(paths.iter().cloned());
    }

    pub(super) fn begin(&mut self, path: &str, cycle: Option<u16>) {
        for directory in directories(path) {
            *self.directories.entry(directory.to_owned()).or_default() += 1;
        }
        self.open.insert(path.to_owned(), Open { cycle, is_new: cycle.is_none() });
    }

    pub(super) fn get_mut(&mut self, path: &str) -> Option<&mut Open> {
        self.open.get_mut(path)
    }

    /// An ntuple that is not finished.
    pub(super) fn first_open(&self) -> Option<&str> {
        self.open.keys().next().map(String::as_str)
    }

    /// Marks an ntuple as finished.
    pub(super) fn end(&mut self, path: &str) {
        if self.close(path).is_some() {
            self.finished.insert(path.to_owned());
        }
    }

    /// Removes an open ntuple.
    pub(super) fn close(&mut self, path: &str) -> Option<Open> {
        let open = self.open.remove(path)?;
        for directory in directories(path) {
            if let Some(count) = self.directories.get_mut(directory) {
                *count -= 1;
                if *count == 0 {
                    self.directories.remove(directory);
                }
            }
        }
        // It has changed since the file was opened, so it cannot be continued from what was read then.
        if !open.is_new {
            self.finished.insert(path.to_owned());
        }
        Some(open)
    }
}

/// The parent directories of a path, without the top one.
fn directories(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').map(|(end, _)| &path[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_ntuples_keep_their_paths_and_directories() {
        let mut paths = Paths::default();
        let check = |paths: &Paths, path: &str| paths.check(path, None).map_err(|error| error.to_string());
        paths.begin("a/b/n", None);
        paths.begin("a/m", None);
        assert_eq!(check(&paths, "a/b/n").unwrap_err(), "'a/b/n' is already being written");
        assert_eq!(check(&paths, "a").unwrap_err(), "'a' is a directory");
        assert_eq!(check(&paths, "a/b").unwrap_err(), "'a/b' is a directory");
        assert_eq!(check(&paths, "a/m/n").unwrap_err(), "'a/m/n': 'a/m' is not a directory");
        paths.end("a/b/n");
        assert_eq!((check(&paths, "a/b"), check(&paths, "a/b/n")), (Ok(()), Ok(())));
        assert!(paths.check("a/b/n", Some(1)).unwrap_err().to_string().contains("was finished"));
        assert!(check(&paths, "a").is_err());
        assert!(paths.close("a/m").is_some_and(|open| open.is_new) && paths.close("a/m").is_none());
        assert_eq!((check(&paths, "a"), paths.first_open()), (Ok(()), None));
        assert!(paths.check("a/m", Some(1)).is_ok());
        assert!(paths.check_unused("a/b/n").is_err() && paths.check_unused("a/m").is_ok());
        paths.remove(&["a/m".to_owned()]);
        assert!(paths.check("a/m", Some(1)).unwrap_err().to_string().contains("was removed"));
        assert_eq!(check(&paths, "a/m"), Ok(()));
    }
}
