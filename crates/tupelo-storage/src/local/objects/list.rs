//! Listing and removing files that are objects.

use std::fs::{self, DirEntry};
use std::io;
use std::path::Path;
use std::time::SystemTime;

use super::ObjectFiles;
use crate::error::{Error, ErrorKind, Result};
use crate::local::temporary::{is_locked, is_temporary, temporary_prefix};

/// A file in a listing.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ListedFile {
    /// Its path in the directory, with slashes.
    pub(crate) key: String,
    pub(crate) bytes: u64,
    pub(crate) modified: Option<SystemTime>,
}

impl ObjectFiles {
    /// The regular files whose keys begin with `prefix`, in all folders, in order; none if the directory does not exist.
    /// Temporary files are not among them.
    ///
    /// # Errors
    /// Errors of the system.
    pub(crate) fn list(&self, prefix: &str) -> Result<Vec<ListedFile>> {
        let mut found = Vec::new();
        self.walk(prefix, |key, entry| {
            if !is_temporary(Path::new(&key)) {
                found.extend(listed(key, entry)?);
            }
            Ok(())
        })?;
        found.sort();
        Ok(found)
    }

    /// The temporary files of an object and in a folder that no process writes, and the empty folders in the folder, whose
    /// keys end with a slash; in order.
    ///
    /// # Errors
    /// Errors of the system.
    pub(crate) fn remains(&self, object: &str, folder: &str) -> Result<Vec<ListedFile>> {
        let mut found = Vec::new();
        let mut add = |key: String, entry: &DirEntry| {
            if is_temporary(Path::new(&key)) && !is_locked(&entry.path()) {
                found.extend(listed(key, entry)?);
            }
            Ok(())
        };
        let (parent, name) = object.split_at(object.rfind('/').map_or(0, |slash| slash + 1));
        self.walk(&format!("{parent}{}", temporary_prefix(name)), &mut add)?;
        let empty = self.walk(folder, &mut add)?;
        for folder in empty {
            let modified = fs::metadata(self.path(&folder)).and_then(|metadata| metadata.modified()).ok();
            found.push(ListedFile { key: format!("{folder}/"), bytes: 0, modified });
        }
        found.sort();
        Ok(found)
    }

    /// Visits the regular files whose keys begin with `prefix`, in all folders. Returns the folders that are empty.
    fn walk(&self, prefix: &str, mut visit: impl FnMut(String, &DirEntry) -> io::Result<()>) -> Result<Vec<String>> {
        let folder = prefix.rsplit_once('/').map_or("", |(folder, _)| folder);
        self.check_links(folder, "list")?;
        let (mut empty, mut folders) = (Vec::new(), vec![folder.to_owned()]);
        while let Some(folder) = folders.pop() {
            let failed = |error: io::Error| Error::from_io("list", self.uri(&folder), error);
            let parent = if folder.is_empty() { String::new() } else { format!("{folder}/") };
            let mut entries = match fs::read_dir(self.path(&folder)) {
                Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                    continue;
                }
                entries => entries.map_err(failed)?.peekable(),
            };
            if entries.peek().is_none() && parent.starts_with(prefix) {
                empty.push(folder.clone());
            }
            for entry in entries {
                let entry = entry.map_err(failed)?;
                // A name that is not text cannot be in a key.
                let Ok(name) = entry.file_name().into_string() else { continue };
                let key = format!("{parent}{name}");
                let file_type = entry.file_type().map_err(failed)?;
                if file_type.is_dir() && (key.starts_with(prefix) || prefix.starts_with(&format!("{key}/"))) {
                    folders.push(key);
                } else if file_type.is_file() && key.starts_with(prefix) {
                    visit(key, &entry).map_err(failed)?;
                }
            }
        }
        Ok(empty)
    }

    /// The names of the regular files in the directory with their sizes, and those of its folders, in order.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] if the directory does not exist; errors of the system.
    pub(crate) fn names(&self) -> Result<Vec<(String, Option<u64>)>> {
        let failed = |error: io::Error| Error::from_io("list", self.base(), error);
        let entries = fs::read_dir(&self.root).map_err(|error| match error.kind() {
            io::ErrorKind::NotADirectory => {
                Error::new(ErrorKind::NotFound, "list", self.base(), "it is not a directory")
            }
            _ => failed(error),
        });
        let mut found = Vec::new();
        for entry in entries? {
            let entry = entry.map_err(failed)?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            // Of links, only those to folders: a namespace may be one.
            let Ok(metadata) = entry.metadata() else { continue };
            if metadata.is_file() && !is_temporary(Path::new(&name)) {
                found.push((name, Some(metadata.len())));
            } else if fs::metadata(entry.path()).is_ok_and(|target| target.is_dir()) {
                found.push((name, None));
            }
        }
        found.sort();
        Ok(found)
    }

    /// Removes a file, if it exists, and the folders in the directory that are empty then. A key that ends with a slash is
    /// that of an empty folder.
    ///
    /// # Errors
    /// Errors of the system.
    pub(crate) fn remove(&self, key: &str) -> Result<()> {
        self.check_links(key.rsplit_once('/').map_or("", |(folder, _)| folder), "remove")?;
        // On some systems an open file cannot be removed.
        self.take_open(key);
        let path = self.path(key);
        let is_folder = key.ends_with('/');
        if !is_folder {
            match fs::remove_file(&path) {
                Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {}
                removed => removed.map_err(|error| Error::from_io("remove", self.uri(key), error))?,
            }
        }
        let folders = path.ancestors().skip(usize::from(!is_folder)).take_while(|folder| **folder != self.root);
        for folder in folders {
            // The first one that is not empty.
            if fs::remove_dir(folder).is_err_and(|error| error.kind() != io::ErrorKind::NotFound) {
                break;
            }
        }
        Ok(())
    }
}

/// An entry of a folder; none if it was removed in the meantime.
fn listed(key: String, entry: &DirEntry) -> io::Result<Option<ListedFile>> {
    match entry.metadata() {
        Ok(metadata) => Ok(Some(ListedFile { key, bytes: metadata.len(), modified: metadata.modified().ok() })),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
