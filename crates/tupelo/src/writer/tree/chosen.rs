//! Which branches of a tree are moved, and how.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use tupelo_format::compression::Compression;
use tupelo_format::streamer::{ElementKind, StreamerInfos};
use tupelo_pages::plan::EntrySet;
use tupelo_schema::schema::Glob;
use tupelo_ttree::moved::MovableTree;

use super::MAX_BASKET_BYTES;
use crate::{Error, Result};

/// How trees are moved.
#[derive(Debug, Clone, Default)]
pub struct MoveOptions {
    compression: Option<Compression>,
    branches: Vec<String>,
    without: Vec<String>,
    without_paths: HashSet<String>,
    classes: Vec<String>,
    branch_compression: Vec<(String, Compression)>,
    entries: Option<Vec<Range<u64>>>,
    basket_bytes: Option<u32>,
    auto_flush: Option<u64>,
}

impl MoveOptions {
    /// Baskets are compressed again, by default not.
    #[must_use]
    pub fn with_compression(mut self, compression: Option<Compression>) -> Self {
        self.compression = compression;
        self
    }

    /// Only the branches with these paths or names, or that match these globs, with their parts, what they are part of, and
    /// their counters. By default all.
    #[must_use]
    pub fn with_branches(mut self, patterns: impl IntoIterator<Item = String>) -> Self {
        self.branches.extend(patterns);
        self
    }

    /// The same without these branches.
    #[must_use]
    pub fn without_branches(mut self, patterns: impl IntoIterator<Item = String>) -> Self {
        self.without.extend(patterns);
        self
    }

    /// The same without the branches with exactly these paths, and their parts. A tree need not have them.
    #[must_use]
    pub fn without_paths(mut self, paths: impl IntoIterator<Item = String>) -> Self {
        self.without_paths.extend(paths);
        self
    }

    /// Only branches whose class is one of these or inherits from one of them, beside those that
    /// [`with_branches`](Self::with_branches) chooses.
    #[must_use]
    pub fn with_heirs_of(mut self, classes: impl IntoIterator<Item = String>) -> Self {
        self.classes.extend(classes);
        self
    }

    /// The codec of the branches with a path or name, or that match a glob, instead of that of
    /// [`with_compression`](Self::with_compression). Of several that match, the last one counts.
    #[must_use]
    pub fn with_branch_compression(mut self, patterns: impl IntoIterator<Item = (String, Compression)>) -> Self {
        self.branch_compression.extend(patterns);
        self
    }

    /// Only these entries, counted through all trees: ascending ranges. The bytes of entries are moved from basket to basket
    /// as they are.
    #[must_use]
    pub fn with_entries(mut self, entries: Vec<Range<u64>>) -> Self {
        self.entries = Some(entries);
        self
    }

    /// Baskets of this many bytes before compression, into which the entries are moved.
    ///
    /// # Errors
    /// Invalid argument for none, and above [`MAX_BASKET_BYTES`].
    pub fn with_basket_bytes(mut self, bytes: u64) -> Result<Self> {
        let size = u32::try_from(bytes).ok().filter(|size| (1..=MAX_BASKET_BYTES).contains(size));
        let refused = || {
            let what = format!("basket size {bytes} is out of range: expected 1 to {MAX_BASKET_BYTES} bytes");
            Error::invalid_argument(what)
        };
        self.basket_bytes = Some(size.ok_or_else(refused)?);
        Ok(self)
    }

    /// Clusters of this many entries, at whose ends all branches begin another basket (`TTree::SetAutoFlush`).
    ///
    /// # Errors
    /// Invalid argument for none.
    pub fn with_auto_flush(mut self, entries: u64) -> Result<Self> {
        if entries == 0 || i64::try_from(entries).is_err() {
            return Err(Error::invalid_argument(format!("a cluster of {entries} entries is out of range")));
        }
        self.auto_flush = Some(entries);
        Ok(self)
    }

    /// Whether entries are moved to other baskets.
    pub(super) fn recuts(&self) -> bool {
        self.entries.is_some() || self.basket_bytes.is_some() || self.auto_flush.is_some()
    }

    pub(super) fn basket_bytes(&self) -> Option<u32> {
        self.basket_bytes
    }

    pub(super) fn auto_flush(&self) -> Option<u64> {
        self.auto_flush
    }

    /// The chosen entries of a tree whose first one has this number among all trees.
    pub(super) fn entries_of(&self, before: u64, count: u64) -> EntrySet {
        let all = before..before.saturating_add(count);
        match &self.entries {
            None => (0..count).into(),
            Some(chosen) => {
                let chosen: EntrySet = chosen.iter().cloned().collect();
                chosen.within(&all).ranges().iter().map(|range| range.start - before..range.end - before).collect()
            }
        }
    }

    /// The codec of each branch, if it gets one.
    pub(super) fn codecs(&self, tree: &MovableTree) -> Result<Vec<Option<Compression>>> {
        let mut codecs = vec![self.compression; tree.tree.branches.len()];
        if self.branch_compression.is_empty() {
            return Ok(codecs);
        }
        let names = names(tree);
        for (pattern, compression) in &self.branch_compression {
            for index in matching(pattern, &names)? {
                let mut next = vec![index];
                while let Some(index) = next.pop() {
                    codecs[index] = Some(*compression);
                    next.extend_from_slice(&tree.tree.branches[index].children);
                }
            }
        }
        Ok(codecs)
    }

    pub(super) fn compression(&self) -> Option<Compression> {
        self.compression
    }

    /// Keeps the chosen branches of a tree.
    pub(super) fn choose(&self, tree: &mut MovableTree, infos: &StreamerInfos) -> Result<()> {
        let is_all = self.branches.is_empty() && self.without.is_empty() && self.classes.is_empty();
        if is_all && self.without_paths.is_empty() {
            return Ok(());
        }
        let names = names(tree);
        let mut wanted = vec![self.branches.is_empty() && self.classes.is_empty(); names.len()];
        for pattern in &self.branches {
            matching(pattern, &names)?.into_iter().for_each(|index| wanted[index] = true);
        }
        for class in &self.classes {
            let mut heirs = Heirs { infos, of: class, known: HashMap::new() };
            let heirs: Vec<usize> =
                (0..names.len()).filter(|&index| heirs.contains(&tree.tree.branches[index].class_name)).collect();
            if heirs.is_empty() {
                return Err(Error::not_found(format!("no branch has a class that inherits from '{class}'")));
            }
            heirs.into_iter().for_each(|index| wanted[index] = true);
        }
        let mut unwanted: Vec<bool> = names.iter().map(|[.., path]| self.without_paths.contains(path)).collect();
        for pattern in &self.without {
            matching(pattern, &names)?.into_iter().for_each(|index| unwanted[index] = true);
        }
        for (index, branch) in tree.tree.branches.iter().enumerate() {
            if let Some(parent) = branch.parent {
                wanted[index] |= wanted[parent];
            }
        }
        keep(tree, &wanted, unwanted)
    }
}

/// Keeps the wanted branches of a tree that are not unwanted, nor parts of unwanted ones.
fn keep(tree: &mut MovableTree, wanted: &[bool], mut unwanted: Vec<bool>) -> Result<()> {
    for (index, branch) in tree.tree.branches.iter().enumerate() {
        if let Some(parent) = branch.parent {
            unwanted[index] |= unwanted[parent];
        }
    }
    // Such a branch is not kept with all of its parts.
    let mut has_lost = unwanted.clone();
    for (index, branch) in tree.tree.branches.iter().enumerate().rev() {
        if let Some(parent) = branch.parent {
            has_lost[parent] |= has_lost[index];
        }
    }
    let whole: Vec<bool> = wanted.iter().zip(&has_lost).map(|(wanted, lost)| *wanted && !lost).collect();
    if !whole.contains(&true) {
        return Err(Error::invalid_argument("no branch is selected; select at least one"));
    }
    Ok(tree.keep(|index| whole[index])?)
}

/// The dotted path, the name and the path of each branch.
fn names(tree: &MovableTree) -> Vec<[String; 3]> {
    let names = |index: usize| {
        let (path, name) = (tree.tree.path(index), &tree.tree.branches[index].name);
        [path.replace('/', "."), name.trim_end_matches('.').to_owned(), path]
    };
    (0..tree.tree.branches.len()).map(names).collect()
}

/// The branches that a pattern chooses.
fn matching(pattern: &str, names: &[[String; 3]]) -> Result<Vec<usize>> {
    let glob = Glob::new(pattern, '.')?;
    let numbered = || names.iter().enumerate();
    let exact: Vec<usize> =
        numbered().filter(|(_, names)| names.iter().any(|name| name == pattern)).map(|(index, _)| index).collect();
    let found = match (&glob, exact.is_empty()) {
        (Some(glob), true) => {
            numbered().filter(|(_, names)| glob.is_match(&names[0])).map(|(index, _)| index).collect()
        }
        _ => exact,
    };
    match found.is_empty() {
        true => Err(Error::no_such("branch", pattern, names.iter().map(|names| names[0].as_str()))),
        false => Ok(found),
    }
}

/// Classes, and whether each is a class or has it as a base, however far.
struct Heirs<'i> {
    infos: &'i StreamerInfos,
    of: &'i str,
    known: HashMap<String, bool>,
}

impl Heirs<'_> {
    fn contains(&mut self, class: &str) -> bool {
        if let Some(&known) = self.known.get(class) {
            return known;
        }
        let (mut next, mut seen) = (vec![class.to_owned()], HashSet::new());
        let mut found = false;
        while let Some(name) = next.pop().filter(|_| !found) {
            found = name == self.of;
            if let Some(info) = self.infos.newest(&name)
                && seen.insert(name)
            {
                let bases = info.elements.iter().filter(|element| matches!(element.kind, ElementKind::Base { .. }));
                next.extend(bases.map(|base| base.name.clone()));
            }
        }
        self.known.insert(class.to_owned(), found);
        found
    }
}
