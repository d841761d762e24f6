//! Which branches of a tree are moved, and how.

use std::collections::{HashMap, HashSet};

use tupelo_format::compression::Compression;
use tupelo_format::streamer::{ElementKind, StreamerInfos};
use tupelo_ttree::moved::MovableTree;

use crate::schema::Glob;
use crate::{Error, Result};

/// How trees are moved.
#[derive(Debug, Clone, Default)]
pub struct MoveOptions {
    compression: Option<Compression>,
    branches: Vec<String>,
    without: Vec<String>,
    classes: Vec<String>,
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

    /// Only branches whose class is one of these or inherits from one of them, beside those that
    /// [`with_branches`](Self::with_branches) chooses.
    #[must_use]
    pub fn with_heirs_of(mut self, classes: impl IntoIterator<Item = String>) -> Self {
        self.classes.extend(classes);
        self
    }

    pub(super) fn compression(&self) -> Option<Compression> {
        self.compression
    }

    /// Keeps the chosen branches of a tree.
    pub(super) fn choose(&self, tree: &mut MovableTree, infos: &StreamerInfos) -> Result<()> {
        if self.branches.is_empty() && self.without.is_empty() && self.classes.is_empty() {
            return Ok(());
        }
        let names: Vec<[String; 3]> = (0..tree.tree.branches.len())
            .map(|index| {
                let (path, name) = (tree.tree.path(index), &tree.tree.branches[index].name);
                [path.replace('/', "."), name.trim_end_matches('.').to_owned(), path]
            })
            .collect();
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
        let mut unwanted = vec![false; names.len()];
        for pattern in &self.without {
            matching(pattern, &names)?.into_iter().for_each(|index| unwanted[index] = true);
        }
        for (index, branch) in tree.tree.branches.iter().enumerate() {
            if let Some(parent) = branch.parent {
                wanted[index] |= wanted[parent];
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
