//! Trees whose baskets are moved as they are: between files, or after those of another tree (`TTreeCloner`).
//!
//! The record of the tree stays as it was written, apart from the places of baskets, numbers of entries and bytes, limits of
//! counters and ranges of clusters: names, classes, titles and whatever else is in it are kept.

mod arrange;
mod basket;
mod index;
mod new;

use std::collections::BTreeMap;
use std::ops::Range;

use tupelo_format::object::{Basic, Traced, TracedMember, TracedObject, Value};
use tupelo_format::streamer::{Edits, StreamerInfos, Streaming, code};
use tupelo_format::wire::{Buffer, Memory};
use tupelo_format::{Error, Result};

pub use self::arrange::{BranchForm, Limits};
pub use self::basket::MovedBasket;
pub use self::index::MovedIndex;
pub use self::new::{MovedBranch, MovedTree};
use crate::fields::{self, Field};
use crate::layout::ValueLayout;
use crate::tree::{Branch, Tree};
use crate::write::record::{MIN_PLACES, list};

/// A tree whose record can be written again for other baskets.
#[derive(Debug)]
pub struct MovableTree {
    /// What the record says.
    pub tree: Tree,
    traced: Traced,
    /// The `TBranch` of each branch, among the traced objects.
    branches: Vec<usize>,
    /// Whether each branch is kept.
    kept: Vec<bool>,
    /// The same of all branches of the record, in its order, and whether their values may have references that count from where
    /// an entry is.
    stored: Vec<(usize, bool)>,
}

impl MovableTree {
    /// Reads the record of a tree behind a key of `key_bytes`, from which [`Tree::read`] made `tree`, and [`Tree::fields`] the
    /// fields.
    ///
    /// # Errors
    /// Those of [`Traced::read`]; unsupported, with the reason, for a tree that cannot be moved.
    pub fn read(
        (tree, fields): (Tree, &[Field]),
        bytes: Vec<u8>,
        key_bytes: u16,
        infos: &StreamerInfos,
        memory: &Memory,
    ) -> Result<Self> {
        let traced = Traced::read(bytes, key_bytes, &tree.class_name, infos, memory)?;
        let list = root(&traced).and_then(|root| root.member("fBranches")).map(|member| member.bytes.clone());
        let list = list.ok_or_else(|| Error::unsupported("the tree has no list of branches"))?;
        let is_listed = |object: &TracedObject| {
            object.class_name == "TBranch" && object.members.first().is_some_and(|it| list.contains(&it.bytes.start))
        };
        let numbered = traced.objects.iter().enumerate();
        let branches: Vec<usize> = numbered.filter(|(_, it)| is_listed(it)).map(|(number, _)| number).collect();
        if let Some(refused) = tree.unreadable.first() {
            return Err(Error::unsupported(format!("branch '{}': {}", refused.path, refused.reason)));
        }
        if branches.len() != tree.branches.len() {
            return Err(Error::unsupported(format!(
                "found {} branches in the record, expected {}",
                branches.len(),
                tree.branches.len()
            )));
        }
        let kept = vec![true; branches.len()];
        let layouts = fields::layouts(fields);
        let is_placed = |index| matches!(layouts.get(&index), None | Some(ValueLayout::Opaque));
        let stored = branches.iter().enumerate().map(|(index, branch)| (*branch, is_placed(index))).collect();
        Ok(Self { tree, traced, branches, kept, stored })
    }

    /// The layouts of ROOT's own classes in the record that the streamer info of the file lacks.
    pub fn known_layouts(&self, infos: &StreamerInfos) -> StreamerInfos {
        let mut found = StreamerInfos::default();
        for object in self.traced.objects.iter().filter(|object| infos.spelling(&object.class_name).is_none()) {
            if let Some(info) = StreamerInfos::known().find(&object.class_name, object.version) {
                found.push(info.as_ref().clone());
            }
        }
        found
    }

    /// Keeps only the chosen branches, with all of their parts, what they are part of, and their counters.
    ///
    /// # Errors
    /// Unsupported for a `TNtuple`, which knows its branches.
    pub fn keep(&mut self, chosen: impl Fn(usize) -> bool) -> Result<()> {
        let mut kept = vec![false; self.branches.len()];
        let mut next: Vec<usize> = (0..self.branches.len()).filter(|&index| chosen(index)).collect();
        let mut counters = Vec::new();
        let mut keep = |index: usize| {
            let branch = self.tree.branches.get(index)?;
            let is_new = !std::mem::replace(kept.get_mut(index)?, true);
            is_new.then_some(branch)
        };
        while let Some(index) = next.pop() {
            let Some(branch) = keep(index) else { continue };
            next.extend_from_slice(&branch.children);
            counters.extend(branch.counters());
        }
        // Its other parts need not be kept with a counter of items.
        while let Some(index) = counters.pop() {
            counters.extend(keep(index).into_iter().flat_map(Branch::counters));
        }
        if self.tree.class_name != "TTree" && kept.contains(&false) {
            return Err(Error::unsupported(format!("branches of a {} cannot be left out", self.tree.class_name)));
        }
        self.kept = kept;
        for (index, branch) in self.tree.branches.iter().enumerate().rev() {
            if self.is_kept(index)
                && let Some(parent) = branch.parent.and_then(|parent| self.kept.get_mut(parent))
            {
                *parent = true;
            }
        }
        Ok(())
    }

    /// Whether a branch is kept.
    pub fn is_kept(&self, index: usize) -> bool {
        self.kept.get(index).copied().unwrap_or(false)
    }

    /// Whether the values of a branch may have references that count from where an entry is: objects with the names of their
    /// classes, and what cannot be decoded.
    pub fn is_placed(&self, index: usize) -> bool {
        self.number_in_file(index).and_then(|number| self.stored.get(number)).is_some_and(|(_, is_placed)| *is_placed)
    }

    /// The number that a branch has in its own file.
    pub fn number_in_file(&self, index: usize) -> Option<usize> {
        let record = self.branches.get(index)?;
        self.stored.binary_search_by_key(record, |(stored, _)| *stored).ok()
    }

    /// Refuses what cannot be moved of the branches that are kept.
    ///
    /// # Errors
    /// Unsupported, with branch and reason.
    pub fn check(&self) -> Result<()> {
        for (index, branch) in self.tree.branches.iter().enumerate().filter(|(index, _)| self.is_kept(*index)) {
            let refused = |what: String| Err(Error::unsupported(format!("branch '{}' {what}", self.tree.path(index))));
            if branch.entries != self.tree.entries && (branch.entries > 0 || !branch.baskets.is_empty()) {
                return refused(format!("has {} entries, the tree {}", branch.entries, self.tree.entries));
            }
            // Branches that only have parts may have a basket without entries.
            let end = branch.baskets.last().map_or(0, |basket| basket.entries.end);
            if end != branch.entries && (end > 0 || branch.children.is_empty()) {
                return refused(format!("has baskets of {end} entries, expected {}", branch.entries));
            }
            let has_offsets = |branch: &TracedObject| {
                let is_wide = |seeks: &TracedMember| element(seeks) == Some(Basic::I64);
                stores_width(branch) || branch.member("fBasketSeek").is_some_and(is_wide)
            };
            if !self.branch(index).is_some_and(has_offsets) {
                return refused("was written by a version of ROOT before 3".to_owned());
            }
        }
        Ok(())
    }

    /// The size of the baskets of a branch before compression in bytes, if the record says it.
    pub fn basket_bytes(&self, index: usize) -> Option<u32> {
        let bytes = self.traced.bytes().get(self.branch(index)?.member("fBasketSize")?.bytes.clone())?;
        u32::try_from(integer(bytes)?).ok().filter(|size| *size > 0)
    }

    fn branch(&self, index: usize) -> Option<&TracedObject> {
        self.traced.objects.get(*self.branches.get(index)?)
    }

    /// Whether the tree has an index.
    pub fn has_index(&self) -> bool {
        self.is_set("fTreeIndex")
    }

    /// An object of the tree, such as `fFriends`; null without one.
    pub fn attached(&self, name: &str) -> Value {
        self.traced.value.as_object().and_then(|tree| tree.get(name)).cloned().unwrap_or_default()
    }

    /// Whether the tree has a table of references between objects (`TRef`), which is not kept.
    pub fn has_references(&self) -> bool {
        self.is_set("fBranchRef")
    }

    fn is_set(&self, name: &str) -> bool {
        let member = root(&self.traced).and_then(|root| root.member(name));
        // A null pointer takes four bytes.
        member.is_some_and(|member| member.bytes.len() > 4)
    }

    /// The record of the tree behind a key of `key_bytes`, with other baskets.
    ///
    /// # Errors
    /// Unsupported for a record with parts of unknown classes; limit above 1 GiB.
    pub fn write(&self, key_bytes: u16, new: &MovedTree) -> Result<Vec<u8>> {
        let mut edits = self.traced.edits();
        let total = |which: usize| new.branches.iter().filter_map(|it| it.bytes.get(which)).sum::<u64>();
        let root = root(&self.traced).ok_or_else(|| Error::unsupported("the tree has no members"))?;
        let (ends, sizes): (Vec<u64>, Vec<u64>) = new.cluster_ranges.iter().copied().unzip();
        for (name, number) in [
            ("fEntries", new.entries.cast_signed()),
            ("fTotBytes", total(0).cast_signed()),
            ("fZipBytes", total(1).cast_signed()),
            ("fSavedBytes", 0),
            ("fFlushedBytes", total(1).cast_signed()),
            ("fAutoFlush", new.auto_flush),
            ("fNClusterRange", ends.len() as i64),
        ] {
            put_number(&mut edits, root, name, number)?;
        }
        let is_own = |object: &&TracedObject| {
            let base = root.member("TNamed").zip(object.member("fName"));
            object.class_name == "TNamed" && base.is_some_and(|(base, name)| base.bytes.contains(&name.bytes.start))
        };
        if let Some(name) = self.traced.objects.iter().find(is_own).and_then(|named| named.member("fName")) {
            let mut text = Buffer::new();
            text.string_be(&new.name);
            edits.replace(name.bytes.clone(), text.into_vec());
        }
        put_numbers(&mut edits, root, "fClusterRangeEnd", &ends)?;
        put_numbers(&mut edits, root, "fClusterSize", &sizes)?;
        let index: &[&str] = match &new.index {
            Some(index) => {
                index.put(self, &mut edits)?;
                &[]
            }
            None if new.keeps_index() => &[],
            None => &["fTreeIndex", "fIndexValues", "fIndex"],
        };
        for &name in index.iter().chain(&["fBranchRef"]) {
            // A null pointer, or an array without items.
            if let Some(member) = root.member(name).filter(|member| member.bytes.len() > 4) {
                edits.replace(member.bytes.clone(), vec![0; 4]);
            }
        }
        let removed = self.remove(&mut edits, root)?;
        for (key, member, bytes, _) in self.limited() {
            let Some(limit) = new.limits.0.get(&key).filter(|_| !removed.contains(member.bytes.start)) else {
                continue;
            };
            let all = limit.to_be_bytes();
            edits.replace(member.bytes.clone(), all.get(all.len() - bytes..).unwrap_or_default().to_vec());
        }
        for (index, moved) in new.branches.iter().enumerate().filter(|(index, _)| self.is_kept(*index)) {
            let Some(branch) = self.branch(index) else { continue };
            self.put_branch(&mut edits, branch, moved, new)?;
        }
        edits.finish(key_bytes)
    }

    /// Removes the branches that are not kept from the lists of branches, and their leaves from that of the tree. Returns
    /// where they are.
    fn remove(&self, edits: &mut Edits<'_>, root: &TracedObject) -> Result<Removed> {
        let mut removed = Removed::default();
        if !self.kept.contains(&false) {
            return Ok(removed);
        }
        let lists = Lists::of(&self.traced);
        let owners =
            self.tree.branches.iter().enumerate().map(|(index, branch)| (self.branch(index), &branch.children));
        // Lists before those in their items.
        for (owner, children) in std::iter::once((Some(root), &self.tree.top_level)).chain(owners) {
            let Some(list) = owner.and_then(|owner| lists.of_member(owner, "fBranches")) else { continue };
            let items = list.items().filter(|item| item.bytes.len() > 4).zip(children);
            let lost: Vec<_> =
                items.filter(|(_, child)| !self.is_kept(**child)).map(|(it, _)| it.bytes.clone()).collect();
            if !lost.iter().all(|range| removed.contains(range.start)) {
                shorten(edits, list, &lost)?;
                removed.0.extend(lost.into_iter().map(|range| (range.start, range.end)));
            }
        }
        if let Some(leaves) = lists.of_member(root, "fLeaves") {
            let is_lost = |item: &&TracedMember| {
                self.traced.target(item.bytes.start).is_some_and(|target| removed.contains(target))
            };
            let lost: Vec<_> = leaves.items().filter(is_lost).map(|item| item.bytes.clone()).collect();
            shorten(edits, leaves, &lost)?;
        }
        Ok(removed)
    }

    fn put_branch(
        &self,
        edits: &mut Edits<'_>,
        branch: &TracedObject,
        moved: &MovedBranch,
        new: &MovedTree,
    ) -> Result<()> {
        let places = (moved.baskets.len() + 1).max(MIN_PLACES);
        for (name, number) in [
            ("fWriteBasket", moved.baskets.len() as i64),
            ("fEntryNumber", new.entries.cast_signed()),
            ("fMaxBaskets", places as i64),
            ("fEntries", moved.entries.cast_signed()),
            ("fTotBytes", moved.bytes[0].cast_signed()),
            ("fZipBytes", moved.bytes[1].cast_signed()),
        ] {
            put_number(edits, branch, name, number)?;
        }
        if let Some(compression) = moved.compression.or(new.compression) {
            put_number(edits, branch, "fCompress", compression.into())?;
        }
        if let Some(basket_bytes) = new.basket_bytes {
            put_number(edits, branch, "fBasketSize", basket_bytes.into())?;
        }
        let padded =
            |numbers: Vec<u64>| numbers.into_iter().chain(std::iter::repeat(0)).take(places).collect::<Vec<_>>();
        let bytes = moved.baskets.iter().map(|basket| basket.bytes.into()).collect();
        put_numbers(edits, branch, "fBasketBytes", &padded(bytes))?;
        let end = if moved.baskets.is_empty() { 0 } else { new.entries };
        let starts = moved.baskets.iter().map(|basket| basket.first_entry).chain([end]).collect();
        put_numbers(edits, branch, "fBasketEntry", &padded(starts))?;
        let seeks = moved.baskets.iter().map(|basket| basket.offset).collect();
        put_numbers(edits, branch, "fBasketSeek", &padded(seeks))?;
        let baskets = branch.member("fBaskets").ok_or_else(|| Error::unsupported("a branch lacks fBaskets"))?;
        edits.replace(baskets.bytes.clone(), empty_list());
        // All baskets are in the file of the tree now.
        if let Some(file) = branch.member("fFileName") {
            let mut text = Buffer::new();
            text.string_be("");
            edits.replace(file.bytes.clone(), text.into_vec());
        }
        Ok(())
    }
}

/// Where removed objects were: starts and ends, which do not overlap.
#[derive(Debug, Default)]
struct Removed(BTreeMap<usize, usize>);

impl Removed {
    fn contains(&self, place: usize) -> bool {
        self.0.range(..=place).next_back().is_some_and(|(_, end)| place < *end)
    }
}

/// The lists of objects (`TObjArray`) by where they begin.
struct Lists<'t>(BTreeMap<usize, &'t TracedObject>);

impl<'t> Lists<'t> {
    fn of(traced: &'t Traced) -> Self {
        let lists = traced.objects.iter().filter(|object| object.class_name == "TObjArray");
        Self(lists.filter_map(|list| Some((list.member("fSize")?.bytes.start, list))).collect())
    }

    /// The list of a member.
    fn of_member(&self, owner: &TracedObject, name: &str) -> Option<&'t TracedObject> {
        self.0.range(owner.member(name)?.bytes.clone()).next().map(|(_, list)| *list)
    }
}

/// Removes items of a list.
fn shorten(edits: &mut Edits<'_>, list: &TracedObject, lost: &[Range<usize>]) -> Result<()> {
    if lost.is_empty() {
        return Ok(());
    }
    put_number(edits, list, "fSize", list.items().count() as i64 - lost.len() as i64)?;
    lost.iter().for_each(|range| edits.replace(range.clone(), Vec::new()));
    Ok(())
}

/// The object with the members of `TTree`.
fn root(traced: &Traced) -> Option<&TracedObject> {
    traced.objects.iter().find(|object| object.class_name == "TTree")
}

fn integer(bytes: &[u8]) -> Option<i64> {
    match *bytes {
        [a] => Some(a.cast_signed().into()),
        [a, b] => Some(i16::from_be_bytes([a, b]).into()),
        [a, b, c, d] => Some(i32::from_be_bytes([a, b, c, d]).into()),
        [a, b, c, d, e, f, g, h] => Some(i64::from_be_bytes([a, b, c, d, e, f, g, h])),
        _ => None,
    }
}

/// Whether a number of this type is a limit that ROOT keeps: leaves of integers and texts have them, of signed types.
fn is_limit(member: &TracedMember) -> bool {
    matches!(Basic::from_code(member.code), Some(Basic::I8 | Basic::I16 | Basic::I32 | Basic::I64))
}

/// The type of the items of an array whose length another member is.
fn element(member: &TracedMember) -> Option<Basic> {
    Basic::from_code(member.code.checked_sub(code::POINTER)?)
}

#[cold]
fn other_type(object: &TracedObject, member: &TracedMember) -> Error {
    let (class, name, code) = (&object.class_name, &member.name, member.code);
    Error::unsupported(format!("{class}::{name} has a type with code {code}"))
}

/// Replaces a number, if the class has such a member in its version.
fn put_number(edits: &mut Edits<'_>, object: &TracedObject, name: &str, number: i64) -> Result<()> {
    let Some(member) = object.member(name) else { return Ok(()) };
    let mut out = Buffer::new();
    match Basic::from_code(member.code) {
        Some(Basic::I32) => out.i32_be(i32::try_from(number).unwrap_or(i32::MAX)),
        Some(Basic::U32) => out.u32_be(u32::try_from(number).unwrap_or(0)),
        Some(Basic::I64) => out.i64_be(number),
        Some(Basic::F64) => out.f64_be(number as f64),
        _ => return Err(other_type(object, member)),
    }
    if out.len() != member.bytes.len() {
        return Err(Error::unsupported(format!("{}::{name} has {} bytes", object.class_name, member.bytes.len())));
    }
    edits.replace(member.bytes.clone(), out.into_vec());
    Ok(())
}

/// Whether a branch says itself whether its offsets have 32 or 64 bits, whatever the streamer info says (`TBranch::Streamer`).
fn stores_width(branch: &TracedObject) -> bool {
    branch.class_name == "TBranch" && (6..10).contains(&branch.version)
}

/// Replaces an array whose length another member is.
fn put_numbers(edits: &mut Edits<'_>, object: &TracedObject, name: &str, numbers: &[u64]) -> Result<()> {
    let Some(member) = object.member(name) else { return Ok(()) };
    let mut out = Buffer::new();
    let is_wide = name == "fBasketSeek" && stores_width(object);
    out.u8(if numbers.is_empty() { 0 } else { 1 + u8::from(is_wide) });
    for &number in numbers {
        match element(member) {
            _ if is_wide => out.u64_be(number),
            Some(Basic::I32) => out.u32_be(u32::try_from(number).unwrap_or(0)),
            Some(Basic::I64) => out.u64_be(number),
            _ => return Err(other_type(object, member)),
        }
    }
    edits.replace(member.bytes.clone(), out.into_vec());
    Ok(())
}

/// A `TObjArray` without objects.
fn empty_list() -> Vec<u8> {
    let mut out = Streaming::without_references();
    list(&mut out, 0, |_| ());
    out.buffer.into_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(entries: u64, auto_flush: i64, cluster_ranges: &[(u64, u64)]) -> Tree {
        Tree {
            name: String::new(),
            title: String::new(),
            class_name: "TTree".to_owned(),
            entries,
            bytes: [0; 2],
            auto_flush,
            cluster_ranges: cluster_ranges.to_vec(),
            branches: Vec::new(),
            top_level: Vec::new(),
            unreadable: Vec::new(),
            friends: Vec::new(),
            index: None,
            aliases: Vec::new(),
            user_info: Vec::new(),
            weight: 1.0,
            has_references: false,
        }
    }

    /// The clusters of trees one after the other are those of each of them.
    #[test]
    fn clusters_end_where_they_did() {
        let cases: [&[Tree]; 9] = [
            &[tree(10, 5, &[])],
            &[tree(10, 5, &[]), tree(10, 5, &[])],
            &[tree(7, 5, &[]), tree(10, 5, &[])],
            &[tree(5, -100, &[]), tree(5, -100, &[]), tree(5, -100, &[]), tree(3, -100, &[])],
            &[tree(10, 5, &[]), tree(10, 4, &[]), tree(9, 4, &[(2, 3)])],
            &[tree(10, 5, &[(3, 4)]), tree(10, 5, &[(3, 4)])],
            &[tree(10, 5, &[(3, 2), (7, 4)]), tree(0, 5, &[]), tree(1, 0, &[])],
            &[tree(0, 0, &[]), tree(10, 3, &[])],
            &[tree(8, 4, &[]), tree(6, 4, &[]), tree(8, 4, &[])],
        ];
        for trees in cases {
            let (mut moved, mut expected, mut base) = (MovedTree::new("t", None), Vec::new(), 0);
            for (number, one) in trees.iter().enumerate() {
                moved.append(one);
                // Without a number of entries, the last tree has clusters by bytes, and the others are one cluster.
                let is_last = number + 1 == trees.len();
                let bytes = if is_last { 1 } else { u64::MAX };
                expected.extend(one.clusters(bytes).into_iter().map(|it| base + it.start..base + it.end));
                base += one.entries;
            }
            let all = tree(moved.entries, moved.auto_flush, &moved.cluster_ranges);
            assert_eq!((all.clusters(1), moved.trees), (expected, trees.len()), "{trees:?}");
        }
        let mut many = MovedTree::new("t", None);
        (0..1000).for_each(|_| many.append(&tree(7, -1, &[])));
        assert_eq!(many.cluster_ranges, [(999 * 7 - 1, 7)]);
    }
}
