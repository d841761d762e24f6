//! The index of trees whose entries become those of one tree.

use tupelo_format::object::Value;
use tupelo_ttree::moved::{MovableTree, MovedIndex};

/// The index of several trees, one after the other.
#[derive(Debug, Default)]
pub(crate) struct IndexOfTrees {
    /// The index so far, or why there is none; `None` without a tree that has one.
    index: Option<Result<MovedIndex, &'static str>>,
    /// The object of the first tree that has one.
    object: Value,
    has_trees: bool,
}

impl IndexOfTrees {
    /// Adds the index of a tree under the new numbers of its entries; `None` for a tree without one.
    pub(crate) fn append(&mut self, tree: Option<&MovableTree>, number: impl Fn(u64) -> Option<u64>) {
        let lacking = Err("which some of the trees lack");
        let is_first = !std::mem::replace(&mut self.has_trees, true);
        let tree = tree.filter(|tree| tree.has_index());
        self.index = match (self.index.take(), tree) {
            (None, None) => None,
            (None, Some(_)) if !is_first => Some(lacking),
            (Some(Ok(_)), None) => Some(lacking),
            (Some(Err(reason)), _) => Some(Err(reason)),
            (known, Some(tree)) => {
                if is_first {
                    self.object = tree.attached("fTreeIndex");
                }
                let own = MovedIndex::of(tree).map(|own| own.renumbered(number));
                Some(match (known, own) {
                    (Some(Ok(mut all)), Ok(own)) => all.append(own).map(|()| all),
                    (_, own) => own,
                })
            }
        };
    }

    /// Gives up the index, if there is one.
    pub(crate) fn refuse(&mut self, reason: &'static str) {
        self.index = self.index.take().map(|known| known.and(Err(reason)));
    }

    /// The index, if there is one.
    pub(super) fn get(&self) -> Option<&MovedIndex> {
        self.index.as_ref()?.as_ref().ok()
    }

    /// The index as an object; null without one.
    pub(crate) fn object(&self) -> Value {
        self.get().map(|index| index.like(&self.object)).unwrap_or_default()
    }

    /// The reason for leaving out the index, if any tree has one.
    pub(crate) fn left_out(&self) -> Option<String> {
        match &self.index {
            Some(Err(reason)) => Some(format!("its index, {reason}")),
            _ => None,
        }
    }
}
