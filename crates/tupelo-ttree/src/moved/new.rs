//! What is new of a tree whose baskets are moved: their places, numbers of entries, and clusters.

use super::{Limits, MovedIndex};
use crate::tree::Tree;
use crate::write::BasketPlace;

/// What is new of a branch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MovedBranch {
    /// The baskets in order.
    pub baskets: Vec<BasketPlace>,
    /// Bytes of all baskets with their keys before and after compression.
    pub bytes: [u64; 2],
    /// Number of entries: 0 for branches that only have parts.
    pub entries: u64,
    /// ROOT's compression setting, if it is another one than that of [`MovedTree::compression`].
    pub compression: Option<u32>,
}

/// What is new of a tree.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MovedTree {
    /// Number of trees that were appended.
    pub trees: usize,
    /// Number of entries.
    pub entries: u64,
    /// Of each branch, in the order of [`Tree::branches`].
    pub branches: Vec<MovedBranch>,
    /// Ranges of clusters that do not follow from the last one: last entry, and entries of each cluster.
    pub cluster_ranges: Vec<(u64, u64)>,
    /// Size of the clusters after these, as in [`Tree::auto_flush`].
    pub auto_flush: i64,
    /// The first entry after these ranges.
    open: u64,
    /// The limits of counters and texts.
    pub limits: Limits,
    /// The index, if it is new. [`has_all_entries`](Self::has_all_entries) says whether that of the record stays.
    pub index: Option<MovedIndex>,
    /// Name.
    pub name: String,
    /// ROOT's compression setting of all branches, if it is new.
    pub compression: Option<u32>,
    /// Size of baskets before compression in bytes, if it is new.
    pub basket_bytes: Option<u32>,
    /// Whether the numbers of entries are those of the tree, so that an index of them stays.
    pub has_all_entries: bool,
}

impl MovedTree {
    /// A tree of this name without entries, whose branches have this compression setting, if it is new.
    pub fn new(name: &str, compression: Option<u32>) -> Self {
        Self { name: name.to_owned(), compression, has_all_entries: true, ..Self::default() }
    }

    /// Adds chosen entries of a tree in clusters of these sizes; `auto_flush` is the size of all but the last one, if it is the
    /// same.
    pub fn append_clusters(&mut self, tree: &Tree, sizes: impl IntoIterator<Item = u64>, auto_flush: Option<u64>) {
        if self.entries > self.open {
            self.add_range(self.entries, self.entries - self.open);
        }
        for size in sizes {
            self.entries += size;
            self.add_range(self.entries, size);
        }
        self.auto_flush = auto_flush.map_or(tree.auto_flush, |size| i64::try_from(size).unwrap_or(i64::MAX));
        self.trees += 1;
        self.has_all_entries &= self.entries == tree.entries;
    }

    /// Whether the index of the only tree stays as it is.
    pub fn keeps_index(&self) -> bool {
        self.trees < 2 && self.has_all_entries
    }

    /// Leaves out ranges of clusters that follow from [`MovedTree::auto_flush`] anyway.
    pub fn end_clusters(&mut self) {
        let size = u64::try_from(self.auto_flush).ok().filter(|&size| size > 0);
        while let (Some(size), Some(&(_, own))) = (size, self.cluster_ranges.last()) {
            let start = match self.cluster_ranges.as_slice() {
                [.., (before, _), _] => before + 1,
                _ => 0,
            };
            // The last cluster may be shorter.
            let is_same = own == size || own < size && self.entries - start == own;
            if self.open != self.entries || !is_same {
                return;
            }
            self.cluster_ranges.pop();
            self.open = start;
        }
    }

    /// Adds the entries of a tree and its clusters.
    pub fn append(&mut self, tree: &Tree) {
        let size = u64::try_from(self.auto_flush).ok().filter(|&size| size > 0);
        let left = self.entries - self.open;
        let goes_on = tree.auto_flush == self.auto_flush
            && tree.cluster_ranges.is_empty()
            && size.is_some_and(|size| left.is_multiple_of(size));
        if left > 0 && !goes_on {
            // Of a size in bytes it is not known where clusters end.
            self.add_range(self.entries, size.unwrap_or(left));
        }
        for &(last, size) in &tree.cluster_ranges {
            self.add_range(self.entries + last + 1, size);
        }
        (self.entries, self.auto_flush) = (self.entries + tree.entries, tree.auto_flush);
        self.trees += 1;
    }

    /// Adds clusters of this size up to an entry.
    fn add_range(&mut self, end: u64, size: u64) {
        // A file may list its ranges in any order.
        if end <= self.open {
            return;
        }
        let start = match self.cluster_ranges.as_slice() {
            [.., (before, _), _] => before + 1,
            _ => 0,
        };
        let is_same = self.cluster_ranges.last().is_some_and(|&(_, known)| known == size);
        if is_same && (self.open - start).is_multiple_of(size.max(1)) {
            self.cluster_ranges.pop();
        }
        self.cluster_ranges.push((end - 1, size));
        self.open = end;
    }
}
