//! Trees of several files as one.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use tupelo_core::pool;
use tupelo_schema::schema::FieldPolicy;
use tupelo_ttree::moved::BranchForm;

use crate::reader::{Skipped, Tree, TreeExtras};
use crate::writer::{FileWriter, MoveOptions, WriteProgress};
use crate::{Error, ErrorKind, Result};

/// What became of the trees of a path.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct MergedTree {
    /// What was written; `None` if the tree was left out.
    pub written: Option<WriteProgress>,
    /// What is not in the output, and why.
    pub left_out: Vec<Skipped>,
}

/// Writes the entries of `count` trees as one tree. `open` opens them by number; the next one is opened while the baskets of
/// one are copied, if [other threads](crate::set_threads) may work.
///
/// Baskets are copied as they are stored, unless the options say otherwise. The tree keeps classes, titles and all else of the
/// first one. What cannot be copied in this way is left out. `progress` receives the stored bytes that are done, and may end
/// the work: the result is then `None`.
///
/// # Errors
/// Those of `open`; invalid argument for trees that have other branches than the first one; not found, with near names, for
/// options that match no branch; corrupt where a tree is damaged; those of writing.
pub fn merge_tree<E: From<Error> + Send>(
    path: &str,
    count: usize,
    open: impl Fn(usize) -> Result<Tree, E> + Sync,
    to: &FileWriter,
    options: MoveOptions,
    progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
) -> Result<Option<MergedTree>, E> {
    let mut writer = to.moved_tree(path, options)?;
    let (mut merged, mut before) = (MergedTree::default(), 0);
    let mut later = LaterTrees::default();
    let opened = |number| {
        let tree = open(number)?;
        let movable = tree.source().movable();
        Ok::<_, E>((tree, movable))
    };
    let ended = pool::one_ahead(count, opened, |opened| {
        let (tree, movable) = match opened {
            Ok(opened) => opened,
            Err(error) => return ControlFlow::Break(Err(error)),
        };
        later.add(&tree);
        let mut done = 0;
        let appended = writer.append_movable(&tree, movable, &mut |now| {
            done = now;
            progress(before + now)
        });
        before += done;
        match appended {
            Ok(true) => ControlFlow::Continue(()),
            Ok(false) => ControlFlow::Break(Ok(None)),
            Err(error) => ControlFlow::Break(Ok(Some(error))),
        }
    })?;
    if let ControlFlow::Break(ended) = ended {
        return match ended? {
            None => Ok(None),
            Some(error) => refused(writer.abandon(), error, path),
        };
    }
    match writer.finish() {
        Ok(written) => merged.written = Some(written),
        Err(error) => return refused(writer.abandon(), error, path),
    }
    let left_out = writer.left_out().into_iter().chain(later.left_out());
    merged.left_out.extend(left_out.map(|what| Skipped::new(path, what)));
    Ok(Some(merged))
}

/// What later trees have besides entries and the first one lacks, by [`TreeExtras::beyond`]. A merged tree has only what the
/// first one has, as in ROOT.
#[derive(Debug, Default)]
pub(crate) struct LaterTrees {
    first: Option<TreeExtras>,
    /// What is left out, with a file that has it, and the number of files.
    left_out: BTreeMap<String, (String, u64)>,
}

impl LaterTrees {
    /// What the first tree has.
    pub(crate) fn first(&self) -> Option<&TreeExtras> {
        self.first.as_ref()
    }

    /// Looks at the next tree.
    pub(crate) fn add(&mut self, tree: &Tree) {
        let own = TreeExtras::of(tree.metadata());
        let Some(first) = &self.first else {
            self.first = Some(own);
            return;
        };
        for what in own.beyond(first) {
            self.left_out.entry(what).or_insert_with(|| (tree.file_name(), 0)).1 += 1;
        }
    }

    /// What is left out.
    pub(crate) fn left_out(self) -> impl Iterator<Item = String> {
        self.left_out.into_iter().map(|(what, (file, files))| match files {
            1 => format!("{what} of {file}, which the first tree does not have"),
            _ => format!("{what} of {file} and {} more, which the first tree does not have", files - 1),
        })
    }
}

/// Branches that are not the same in several trees, by path, in order.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnlikeBranches {
    /// Those that some trees lack.
    pub missing: Vec<String>,
    /// Those with different types.
    pub differing: Vec<String>,
}

impl UnlikeBranches {
    /// Whether all trees have the same branches.
    pub fn is_empty(&self) -> bool {
        self.missing.is_empty() && self.differing.is_empty()
    }

    /// Looks at `count` trees. `open` opens them by number; one is open at a time.
    ///
    /// # Errors
    /// Those of `open`.
    pub fn of<E>(count: usize, mut open: impl FnMut(usize) -> Result<Tree, E>) -> Result<Self, E> {
        let mut known: BTreeMap<String, Seen> = BTreeMap::new();
        for number in 0..count {
            let tree = open(number)?;
            let tree = tree.metadata();
            for (index, branch) in tree.branches.iter().enumerate() {
                let form = BranchForm::of(tree, branch);
                let parent = branch.parent.map(|parent| tree.path(parent));
                let seen = known.entry(tree.path(index)).or_insert_with(|| Seen::new(form.clone(), parent));
                seen.differs |= seen.form != form;
                // A tree may have several branches of a name.
                if seen.last != Some(number) {
                    (seen.trees, seen.last) = (seen.trees + 1, Some(number));
                }
            }
        }
        let is_missing = |seen: &Seen| seen.trees < count;
        // Parts are missing with what they are part of.
        let is_part = |seen: &Seen| seen.parent.as_ref().and_then(|parent| known.get(parent)).is_some_and(is_missing);
        let paths = |is_chosen: &dyn Fn(&Seen) -> bool| {
            known.iter().filter(|(_, seen)| is_chosen(seen)).map(|(path, _)| path.clone()).collect()
        };
        let missing = paths(&|seen| is_missing(seen) && !is_part(seen));
        Ok(Self { missing, differing: paths(&|seen| seen.differs) })
    }
}

/// What is done with branches that some of several trees lack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MissingBranches {
    /// Refuse them.
    Refuse,
    /// Leave them out, and write numbers of different types in the type that holds all values.
    Drop,
    /// Write default values, and numbers of different types in the type that holds all values.
    Fill,
}

impl MissingBranches {
    /// The fields that are read where the entries of trees are decoded.
    pub fn policy(self) -> FieldPolicy {
        match self {
            Self::Fill => FieldPolicy::Defaults,
            Self::Refuse | Self::Drop => FieldPolicy::Common,
        }
    }

    /// How the baskets of trees are moved; `None` if their entries must be decoded.
    pub fn moving(self, unlike: &UnlikeBranches, moving: MoveOptions) -> Option<MoveOptions> {
        match self {
            Self::Fill if !unlike.is_empty() => None,
            Self::Drop if !unlike.differing.is_empty() => None,
            Self::Drop => Some(moving.without_paths(unlike.missing.iter().cloned())),
            _ => Some(moving),
        }
    }
}

/// A branch in the trees so far.
struct Seen {
    form: BranchForm,
    parent: Option<String>,
    differs: bool,
    trees: usize,
    last: Option<usize>,
}

impl Seen {
    fn new(form: BranchForm, parent: Option<String>) -> Self {
        Self { form, parent, differs: false, trees: 0, last: None }
    }
}

/// What became of a tree that cannot be written: it was abandoned.
fn refused<E: From<Error>>(abandoned: Result<()>, error: Error, path: &str) -> Result<Option<MergedTree>, E> {
    if error.kind() != ErrorKind::Unsupported {
        return Err(error.into());
    }
    abandoned?;
    let reason = match error.file() {
        Some(file) => format!("{file}: {}", error.reason()),
        None => error.reason(),
    };
    Ok(Some(MergedTree { written: None, left_out: vec![Skipped::new(path, reason)] }))
}
