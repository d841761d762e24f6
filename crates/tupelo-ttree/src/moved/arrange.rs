//! Trees that follow each other: their branches by name, and what must be the same of them.

use std::collections::{BTreeMap, HashMap, VecDeque};

use tupelo_format::object::{TracedMember, TracedObject};

use super::{MovableTree, integer, is_limit};
use crate::tree::Branch;

/// Whose limit a number is: the branch, and which one of those in it.
pub(super) type LimitKey = (usize, usize);

/// The largest numbers of items and longest texts of trees, which readers make room for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Limits(pub(super) BTreeMap<LimitKey, i64>);

impl Limits {
    /// Adds those of another tree with the same branches.
    pub fn append(&mut self, other: Self) {
        for (key, limit) in other.0 {
            self.0.entry(key).and_modify(|own| *own = (*own).max(limit)).or_insert(limit);
        }
    }
}

impl MovableTree {
    /// Gives the branches that are kept the numbers of those of the first tree, so that its entries can follow.
    ///
    /// # Errors
    /// What differs, if they cannot.
    pub fn arrange_like(&mut self, first: &Self) -> Result<(), String> {
        if self.tree.class_name != first.tree.class_name {
            return Err(format!("its class is {}, expected {}", self.tree.class_name, first.tree.class_name));
        }
        // Branches may have the same path; they are matched in their order.
        let mut by_path: HashMap<String, VecDeque<usize>> = HashMap::new();
        for index in self.kept_branches() {
            by_path.entry(self.tree.path(index)).or_default().push_back(index);
        }
        let mut place = |index: usize| {
            if !first.is_kept(index) {
                return Ok(None);
            }
            let path = first.tree.path(index);
            let own = by_path.get_mut(&path).and_then(VecDeque::pop_front);
            own.map(Some).ok_or_else(|| format!("it lacks branch '{path}'"))
        };
        let places = (0..first.tree.branches.len()).map(&mut place).collect::<Result<Vec<_>, _>>()?;
        let spare = self.kept_branches().find(|index| by_path.values().any(|left| left.contains(index)));
        if let Some(index) = spare {
            return Err(format!("it has branch '{}', which the first one lacks", self.tree.path(index)));
        }
        let is_same = places.len() == self.tree.branches.len()
            && places.iter().enumerate().all(|(index, place)| place.is_none_or(|place| place == index));
        if !is_same {
            self.renumber(&places, &first.tree.branches);
        }
        for index in first.kept_branches() {
            let [own, other] = [&first.tree, &self.tree].map(|tree| tree.branches.get(index).map(form));
            if own != other {
                return Err(format!("branch '{}' has another type", first.tree.path(index)));
            }
        }
        match first.limits().0.keys().eq(self.limits().0.keys()) {
            true => Ok(()),
            false => Err("its leaves are described in another way".to_owned()),
        }
    }

    fn kept_branches(&self) -> impl Iterator<Item = usize> {
        (0..self.tree.branches.len()).filter(|index| self.is_kept(*index))
    }

    /// Puts the branches at other numbers: `places` has that of each so far, if it is kept. `others` are put where there is none.
    fn renumber(&mut self, places: &[Option<usize>], others: &[Branch]) {
        let mut new = vec![None; self.tree.branches.len()];
        for (number, place) in places.iter().enumerate() {
            if let Some(new) = place.and_then(|place| new.get_mut(place)) {
                *new = Some(number);
            }
        }
        let new_of = |index: usize| new.get(index).copied().flatten();
        let branch = |(place, other): (&Option<usize>, &Branch)| {
            let Some(own) = place.and_then(|place| self.tree.branches.get(place)) else {
                return Branch { entries: 0, baskets: Vec::new(), ..other.clone() };
            };
            let mut branch = own.clone();
            branch.parent = own.parent.and_then(new_of);
            branch.children = own.children.iter().filter_map(|child| new_of(*child)).collect();
            for leaf in &mut branch.leaves {
                leaf.counter = leaf.counter.and_then(|(branch, leaf)| Some((new_of(branch)?, leaf)));
            }
            branch
        };
        let branches = places.iter().zip(others).map(branch).collect();
        let records = places.iter().map(|place| place.and_then(|place| self.branches.get(place)).copied());
        self.branches = records.map(|record| record.unwrap_or(usize::MAX)).collect();
        self.kept = places.iter().map(Option::is_some).collect();
        self.tree.top_level = self.tree.top_level.iter().filter_map(|index| new_of(*index)).collect();
        self.tree.branches = branches;
    }

    /// The limits of the branches that are kept.
    pub fn limits(&self) -> Limits {
        Limits(self.limited().map(|(key, _, _, limit)| (key, limit)).collect())
    }

    /// The members that are limits of branches that are kept, each with its number of bytes and value.
    pub(super) fn limited(&self) -> impl Iterator<Item = (LimitKey, &TracedMember, usize, i64)> {
        let starts = self.starts();
        let mut counts: HashMap<usize, usize> = HashMap::new();
        let objects = self.traced.objects.iter().enumerate();
        let members = objects.flat_map(|(number, object)| {
            let own = object.member("fMaximum");
            // The length of a text is a member of its base.
            let base = self.traced.objects.get(number + 1).filter(|_| object.class_name == "TLeafC");
            let length = base.and_then(|base| base.member("fLen"));
            own.into_iter().chain(length).filter_map(|member| {
                let bytes = self.traced.bytes().get(member.bytes.clone())?;
                Some((member, bytes.len(), integer(bytes).filter(|_| is_limit(member))?))
            })
        });
        members.filter_map(move |(member, bytes, limit)| {
            let owner = innermost(&starts, member.bytes.start).filter(|owner| self.is_kept(*owner))?;
            let count = counts.entry(owner).or_default();
            *count += 1;
            Some(((owner, *count), member, bytes, limit))
        })
    }

    /// Where the record of each branch begins, in order; where it ends; and the branch.
    fn starts(&self) -> Vec<(usize, usize, usize)> {
        let place = |(index, &number): (usize, &usize)| {
            let base = self.traced.objects.get(number)?;
            let first = base.members.first()?;
            // The base class of a branch of objects.
            let heir = number.checked_sub(1).and_then(|before| self.traced.objects.get(before));
            let whole = heir.filter(|heir| contains(heir, first)).unwrap_or(base);
            Some((whole.members.first()?.bytes.start, whole.members.last()?.bytes.end, index))
        };
        let mut starts: Vec<_> = self.branches.iter().enumerate().filter_map(place).collect();
        starts.sort_unstable();
        starts
    }
}

/// Whether an object has a member that begins with another one.
fn contains(object: &TracedObject, first: &TracedMember) -> bool {
    object.member("TBranch").is_some_and(|base| base.bytes.contains(&first.bytes.start))
}

/// The branch in whose record a place is, but not in those of its parts.
fn innermost(starts: &[(usize, usize, usize)], place: usize) -> Option<usize> {
    let before = starts.partition_point(|(start, ..)| *start <= place);
    let around = starts.get(..before)?.iter().rev().find(|(_, end, _)| place < *end);
    around.map(|(.., branch)| *branch)
}

/// What the entries of two branches must have in common.
fn form(branch: &Branch) -> impl PartialEq {
    let leaves: Vec<_> = branch
        .leaves
        .iter()
        .map(|leaf| {
            // Of a text it is the longest one.
            let length = if leaf.leaf_class == "TLeafC" { 0 } else { leaf.length };
            (leaf.name.clone(), leaf.title.clone(), leaf.leaf_class.clone(), length, leaf.is_unsigned, leaf.counter)
        })
        .collect();
    let element = branch.element.as_ref().map(|element| {
        let class =
            (element.class_version, element.checksum, element.parent_class.clone(), element.clones_class.clone());
        (element.kind, element.streamer_type, element.id, class)
    });
    (branch.branch_class.clone(), branch.class_name.clone(), branch.parent, element, leaves)
}
