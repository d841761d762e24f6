//! All directories of a file.

use std::collections::HashSet;

use super::super::fetched::together;
use super::super::{Attempt, FetchedRanges, read_header};
use super::{Directory, ListedDirectory, ListedKey, MAX_DIRECTORY_DEPTH, Object, below, join, read_directory, top};
use crate::wire::Memory;
use crate::{Error, Result};

/// All directories of a file, read level by level: a parent precedes its children, and the first is the top directory.
#[derive(Debug)]
pub struct Tree {
    directories: Vec<Directory>,
    /// The directories to read next.
    level: Vec<ListedDirectory>,
    levels: usize,
    seen: HashSet<u64>,
    list_bytes: u64,
    file_size: u64,
}

/// Directories of one level.
#[derive(Debug)]
pub struct Level(Vec<Directory>);

impl Tree {
    /// A tree before its first read.
    ///
    /// # Errors
    /// Corrupt where the file has no top directory.
    pub fn new(fetched: &FetchedRanges) -> Attempt<Self> {
        let top = top(fetched, read_header(fetched)?.begin)?;
        let seen = HashSet::from([top.record_at]);
        let (directories, level) = (Vec::new(), vec![top]);
        Ok(Self { directories, level, levels: 0, seen, list_bytes: 0, file_size: fetched.size() })
    }

    /// Whether all directories are read.
    pub fn is_complete(&self) -> bool {
        self.level.is_empty()
    }

    /// Reads the next level, for [`Tree::add`].
    ///
    /// # Errors
    /// Corrupt where a key list is damaged or a record lies outside of the file.
    pub fn next_level(&self, fetched: &FetchedRanges) -> Attempt<Level> {
        let level = Level(together(self.level.iter().map(|place| read_directory(fetched, place)))?);
        if let (0, Some(top)) = (self.levels, level.0.first()) {
            top.check_saved(fetched)?;
        }
        Ok(level)
    }

    /// Adds a level, and finds the directories below it.
    ///
    /// # Errors
    /// Corrupt where key lists overlap or a directory contains itself; limit where directories are nested too deep.
    pub fn add(&mut self, level: Level) -> Result<()> {
        let (first, count) = (self.directories.len(), level.0.len());
        let mut below_these = Vec::new();
        for (index, mut directory) in level.0.into_iter().enumerate() {
            self.list_bytes = self.list_bytes.saturating_add(directory.list_bytes);
            if self.list_bytes > self.file_size {
                return Err(Error::corrupt("key lists overlap").at(directory.record.seek_keys));
            }
            for listed in directory.keys.iter_mut().filter(|listed| listed.key.is_directory()) {
                let path = join(&directory.path, &listed.key.name)?;
                let place = below(self.file_size, &listed.key, path, first + index)?;
                if !self.seen.insert(place.record_at) {
                    let what = format!("directory '{}' is listed twice", place.path);
                    return Err(Error::corrupt(what).at(listed.key.seek_key));
                }
                listed.child = Some(first + count + below_these.len());
                below_these.push(place);
            }
            self.directories.push(directory);
        }
        self.level = below_these;
        self.levels += 1;
        if self.levels == MAX_DIRECTORY_DEPTH && !self.is_complete() {
            return Err(Error::limit(format!("directories are nested more than {MAX_DIRECTORY_DEPTH} deep")));
        }
        Ok(())
    }

    /// Every key of every directory; a directory's content follows it. Directories themselves are listed too. The
    /// memory of the list is counted in `memory`.
    ///
    /// # Errors
    /// Corrupt where a record lies outside of the file.
    pub fn objects(&self, memory: &Memory) -> Result<Vec<Object>> {
        let mut objects = Vec::new();
        // The keys not yet listed, for each directory on the path.
        let mut way: Vec<(&Directory, std::slice::Iter<'_, ListedKey>)> = Vec::new();
        way.extend(self.directories.first().map(|top| (top, top.keys.iter())));
        while let Some((directory, keys)) = way.last_mut() {
            let Some(listed) = keys.next() else {
                way.pop();
                continue;
            };
            listed.key.check_place(self.file_size)?;
            let path = join(&directory.path, &listed.key.name)?;
            // Once here and once where the newest cycle is looked for.
            memory.take(2 * path.len() as u64, "paths of objects")?;
            objects.push(Object { path, key: listed.key.clone() });
            if let Some(child) = listed.child.and_then(|child| self.directories.get(child)) {
                way.push((child, child.keys.iter()));
            }
        }
        Ok(objects)
    }
}

/// Every directory, level by level, so that a parent comes before its children and the first is the top directory.
pub(in super::super) fn read_tree(fetched: &FetchedRanges) -> Attempt<Vec<Directory>> {
    complete_tree(fetched).map(|tree| tree.directories)
}

fn complete_tree(fetched: &FetchedRanges) -> Attempt<Tree> {
    let mut tree = Tree::new(fetched)?;
    while !tree.is_complete() {
        tree.add(tree.next_level(fetched)?)?;
    }
    Ok(tree)
}

/// Every key of every directory, as [`Tree::objects`].
///
/// # Errors
/// Corrupt where a key list is damaged, a record lies outside of the file or a directory contains itself.
pub fn list_objects(fetched: &FetchedRanges) -> Attempt<Vec<Object>> {
    Ok(complete_tree(fetched)?.objects(fetched.memory())?)
}
