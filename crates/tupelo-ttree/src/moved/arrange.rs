//! Trees that follow each other: their branches by name, and what must be the same of them.

use std::collections::{BTreeMap, HashMap, VecDeque};

use tupelo_format::object::{TracedMember, TracedObject};

use super::{MovableTree, integer, is_limit};
use crate::tree::{Branch, BranchElement, Leaf, Tree};

/// Whose limit a number is: the branch, and which one of those in it.
pub(super) type LimitKey = (usize, usize);

/// The largest numbers of items and longest texts of trees, which readers make room for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Limits(pub(super) BTreeMap<LimitKey, i64>);

impl Limits {
    /// Adds those of another tree, whose branches were [arranged](MovableTree::arrange_like) like those of the first one.
    ///
    /// # Errors
    /// What differs, if it has other limits.
    pub fn append(&mut self, other: &Self) -> Result<(), String> {
        if !self.0.keys().eq(other.0.keys()) {
            return Err("its leaves are described in another way".to_owned());
        }
        for (own, limit) in self.0.values_mut().zip(other.0.values()) {
            *own = (*own).max(*limit);
        }
        Ok(())
    }
}

/// What branches must have in common for their entries to follow each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BranchForm {
    branch_class: String,
    class_name: String,
    parent: Option<String>,
    element: Option<BranchElement>,
    leaves: Vec<Leaf>,
    /// For each leaf the branch that counts its values.
    counters: Vec<Option<String>>,
}

impl BranchForm {
    /// That of a branch of a tree.
    pub fn of(tree: &Tree, branch: &Branch) -> Self {
        let leaf = |leaf: &Leaf| Leaf {
            // Of a text it is the longest one.
            length: if leaf.leaf_class == "TLeafC" { 0 } else { leaf.length },
            // Branches have other numbers in other trees.
            counter: leaf.counter.map(|(_, leaf)| (0, leaf)),
            is_virtual: false,
            ..leaf.clone()
        };
        Self {
            branch_class: branch.branch_class.clone(),
            class_name: branch.class_name.clone(),
            parent: branch.parent.map(|parent| tree.path(parent)),
            element: branch.element.clone().map(|element| BranchElement { max_items: 0, ..element }),
            leaves: branch.leaves.iter().map(leaf).collect(),
            counters: branch.leaves.iter().map(|leaf| Some(tree.path(leaf.counter?.0))).collect(),
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
        if let Some(&index) = by_path.values().flatten().min() {
            return Err(format!("it has branch '{}', which the first one lacks", self.tree.path(index)));
        }
        let is_same = places.len() == self.tree.branches.len()
            && places.iter().enumerate().all(|(index, place)| place.is_none_or(|place| place == index));
        if !is_same {
            self.renumber(&places, &first.tree.branches);
        }
        for index in first.kept_branches() {
            let [own, other] = [&first.tree, &self.tree]
                .map(|tree| tree.branches.get(index).map(|branch| BranchForm::of(tree, branch)));
            if own != other {
                return Err(format!("branch '{}' has another type", first.tree.path(index)));
            }
        }
        Ok(())
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
        let records = self.records();
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
            let owner = self.owner(&records, member.bytes.start).filter(|owner| self.is_kept(*owner))?;
            let count = counts.entry(owner).or_default();
            *count += 1;
            Some(((owner, *count), member, bytes, limit))
        })
    }

    /// Where the records of branches are.
    fn records(&self) -> Records {
        let mut records = Records { starts: Vec::new(), ends: vec![0; self.branches.len()] };
        for (index, (&number, end)) in self.branches.iter().zip(&mut records.ends).enumerate() {
            let Some((base, first)) = self.traced.objects.get(number).and_then(|it| Some((it, it.members.first()?)))
            else {
                continue;
            };
            // The base class of a branch of objects.
            let heir = number.checked_sub(1).and_then(|before| self.traced.objects.get(before));
            let whole = heir.filter(|heir| contains(heir, first)).unwrap_or(base);
            if let (Some(first), Some(last)) = (whole.members.first(), whole.members.last()) {
                records.starts.push((first.bytes.start, index));
                *end = last.bytes.end;
            }
        }
        records.starts.sort_unstable();
        records
    }

    /// The branch in whose record a place is, but not in those of its parts.
    fn owner(&self, records: &Records, place: usize) -> Option<usize> {
        let before = records.starts.partition_point(|(start, _)| *start <= place);
        let last = records.starts.get(..before)?.last().map(|(_, branch)| *branch);
        let parent = |branch: &usize| self.tree.branches.get(*branch)?.parent;
        std::iter::successors(last, parent).find(|branch| records.ends.get(*branch).is_some_and(|end| place < *end))
    }
}

/// Where the records of branches are. Those of its parts are in that of a branch.
struct Records {
    /// Where each begins, in order, and the branch.
    starts: Vec<(usize, usize)>,
    /// Where that of each branch ends.
    ends: Vec<usize>,
}

/// Whether an object has a member that begins with another one.
fn contains(object: &TracedObject, first: &TracedMember) -> bool {
    object.member("TBranch").is_some_and(|base| base.bytes.contains(&first.bytes.start))
}
