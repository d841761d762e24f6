//! What trees have besides entries, for a tree to which these are written again.

use std::collections::{BTreeSet, HashSet};
use std::ops::Range;

use tupelo_format::object::Value;
use tupelo_format::streamer::Streaming;

use crate::Result;
use crate::ops::merge::LaterTrees;
use crate::reader::{Read, Tree};
use crate::writer::{FileWriter, IndexOfTrees, PROCESS_CLASS, TreeOptions};

/// The trees whose entries are decoded and written as one tree: those of all files that are read, in order.
///
/// The new tree has the index of all of them, and weight, aliases, friends and user information of the first one.
#[derive(Debug)]
pub struct OriginalTrees {
    /// The entries that are read, counted through all trees.
    chosen: Range<u64>,
    has_cut: bool,
    entries: u64,
    index: IndexOfTrees,
    /// Of the first tree; null without any.
    friends: Value,
    user_info: Value,
    names: HashSet<String>,
    /// The first tree whose file says which processes made objects, and whether others do so too.
    of_processes: Option<Tree>,
    has_more_processes: bool,
    not_kept: BTreeSet<String>,
    later: LaterTrees,
}

impl OriginalTrees {
    /// No trees yet; [`add`](Self::add) takes those that `read` reads.
    pub fn of(read: &Read) -> Self {
        Self {
            chosen: read.range(),
            has_cut: read.has_cut(),
            entries: 0,
            index: IndexOfTrees::default(),
            friends: Value::Null,
            user_info: Value::Null,
            names: HashSet::new(),
            of_processes: None,
            has_more_processes: false,
            not_kept: BTreeSet::new(),
            later: LaterTrees::default(),
        }
    }

    /// Looks at the next tree.
    pub fn add(&mut self, tree: &Tree) {
        let metadata = tree.metadata();
        let is_first = self.later.first().is_none();
        self.later.add(tree);
        // A damaged directory is an error where it is needed.
        let listing = tree.source().file().listing();
        if listing.is_ok_and(|all| all.objects().any(|(object, _)| object.key.class_name == PROCESS_CLASS)) {
            self.has_more_processes |= self.of_processes.is_some();
            self.of_processes.get_or_insert_with(|| tree.clone());
        }
        self.names.extend(metadata.branches.iter().filter(|it| it.parent.is_none()).map(|it| it.name.clone()));
        if metadata.has_references {
            self.not_kept.insert("its table of references between objects (TRef)".to_owned());
        }
        let base = self.entries;
        self.entries += tree.entries();
        let has_lists = !metadata.friends.is_empty() || !metadata.user_info.is_empty();
        let movable = match metadata.index.is_some() || is_first && has_lists {
            true => tree.source().movable().map(|(movable, _)| Some(movable)),
            false => Ok(None),
        };
        match &movable {
            Ok(movable) => {
                let chosen = &self.chosen;
                let number = |entry: u64| {
                    let entry = base.checked_add(entry).filter(|entry| chosen.contains(entry))?;
                    Some(entry - chosen.start)
                };
                // One without entries has no values for an index.
                if tree.entries() > 0 {
                    self.index.append(movable.as_ref(), number);
                }
                if let (true, Some(movable)) = (is_first, movable) {
                    self.friends = self.writable("its list of friends", movable.attached("fFriends"));
                    self.user_info = self.writable("its user information", movable.attached("fUserInfo"));
                }
            }
            Err(error) => {
                self.not_kept.insert(format!("its index, friends and user information: {error}"));
            }
        }
    }

    /// Keeps which processes made the objects that references point to.
    pub(super) fn keep_processes(&mut self, file: &FileWriter) -> Result<()> {
        let Some(tree) = self.of_processes.take() else { return Ok(()) };
        if self.has_more_processes || !file.keep_processes(&tree)? {
            self.not_kept.insert("which processes made its objects that references point to (TProcessID)".to_owned());
        }
        Ok(())
    }

    /// An object that can be written; null otherwise, and the reason is kept.
    fn writable(&mut self, what: &str, value: Value) -> Value {
        match value.write_pointer(&mut Streaming::without_references()) {
            Ok(()) => value,
            Err(error) => {
                self.not_kept.insert(format!("{what}: {error}"));
                Value::Null
            }
        }
    }

    /// The options to write a tree with all that it can keep of these. The source of the entries has `entries` of them.
    pub(super) fn options(&mut self, options: TreeOptions, entries: u64) -> TreeOptions {
        if self.has_cut {
            self.index.refuse("because entries are chosen by a condition");
        }
        if self.entries != entries {
            self.index.refuse("which some of the trees lack");
        }
        let [friends, user_info] = [&mut self.friends, &mut self.user_info].map(std::mem::take);
        match self.later.first() {
            Some(first) => options.with_extras(first, [self.index.object(), friends, user_info]),
            None => options,
        }
    }

    /// What the new tree does not have, whose top-level branches have these names.
    pub(super) fn left_out(self, branches: &[String]) -> impl Iterator<Item = String> {
        let is_known = |name: &str| self.names.contains(name);
        let old_name = |name: &String| {
            let shorter = [name.trim_end_matches(['.', '_']).to_owned(), name.replace("_.", ".")];
            shorter.into_iter().find(|old| is_known(old))
        };
        let changed = branches.iter().filter(|name| !is_known(name));
        let changed = changed.filter_map(|new| {
            let old = old_name(new)?;
            Some(format!(
                "the name of branch '{old}': it is '{new}', so that no other branch has the names of its parts"
            ))
        });
        let names: Vec<String> = changed.collect();
        let index = self.index.left_out();
        self.not_kept.into_iter().chain(index).chain(names).chain(self.later.left_out())
    }
}
