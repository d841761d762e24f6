//! What trees have beside ntuples.

pub(crate) mod import;
pub(crate) mod writer;

use std::collections::BTreeMap;

use pyo3::prelude::*;
use tupelo::{Compression, Tree};

use crate::table::{ClusterInfo, Sizes, TableSizes};

/// What a tree has beside an ntuple.
#[pyclass(frozen, get_all, module = "tupelo._core")]
#[derive(Debug, Clone)]
pub(crate) struct TreeInfo {
    /// Alias, file and tree of each friend.
    friends: Vec<(String, String, String)>,
    /// The expressions of the major and the minor number of the index.
    index: Option<(String, String)>,
    /// Aliases and their expressions.
    aliases: Vec<(String, String)>,
    /// Branches that cannot be read, in file order, with the reason.
    unreadable: Vec<(String, String)>,
    /// The others, in file order, with the paths of their fields. Names are not unique.
    branches: Vec<(String, String)>,
}

pub(crate) fn info(tree: &Tree) -> TreeInfo {
    let metadata = tree.metadata();
    let friends = metadata.friends.iter().cloned().map(|[alias, file, tree]| (alias, file, tree));
    TreeInfo {
        friends: friends.collect(),
        index: metadata.index.clone().map(|[major, minor]| (major, minor)),
        aliases: metadata.aliases.clone(),
        unreadable: tree.refused().map(|(path, reason)| (path.to_owned(), reason.to_owned())).collect(),
        branches: tree.branches().into_iter().map(|(branch, path)| (metadata.path(branch), path)).collect(),
    }
}

/// A branch of a tree.
#[pyclass(frozen, get_all, module = "tupelo._core")]
#[derive(Debug, Clone)]
pub(crate) struct BranchInfo {
    name: String,
    /// Index of the parent in the list.
    parent: Option<usize>,
    /// Path of the field with its values.
    field: Option<String>,
}

/// All branches, parents first.
pub(crate) fn branches(tree: &Tree) -> Vec<BranchInfo> {
    let mut fields: BTreeMap<usize, String> = tree.branches().into_iter().collect();
    let branches = tree.metadata().branches.iter().enumerate();
    branches
        .map(|(number, branch)| BranchInfo {
            name: branch.name.clone(),
            parent: branch.parent,
            field: fields.remove(&number),
        })
        .collect()
}

/// The clusters; what each takes in the file is estimated by its share of the entries.
pub(crate) fn clusters(tree: &Tree) -> Vec<ClusterInfo> {
    let stored: u64 = tree.sizes().iter().map(|sizes| sizes.stored_bytes).sum();
    let share = |entries: u64| (stored as f64 * entries as f64 / tree.entries().max(1) as f64) as u64;
    let info = |range: std::ops::Range<u64>| {
        let entries = range.end - range.start;
        ClusterInfo { first_entry: range.start, entries, stored_bytes: share(entries) }
    };
    tree.cluster_ranges().map(info).collect()
}

/// Bytes of the record of the tree, of all baskets, and of each field with those below it.
pub(crate) fn sizes(tree: &Tree) -> TableSizes {
    let row = |stored: u64, unpacked: u64, settings: &mut dyn Iterator<Item = u32>| {
        let name =
            |setting: u32| Compression::from_setting(setting).map_or_else(|_| setting.to_string(), |it| it.to_string());
        let codec = settings.map(name).collect::<Vec<_>>().join(", ");
        Sizes { stored_bytes: stored, unpacked_bytes: unpacked, codec }
    };
    let sizes = tree.sizes();
    let mut all = std::collections::BTreeSet::new();
    sizes.iter().for_each(|sizes| all.extend(sizes.compression.iter().copied()));
    let sum = |of: fn(&tupelo::reader::TreeSizes) -> u64| sizes.iter().map(of).sum();
    let total = row(sum(|sizes| sizes.stored_bytes), sum(|sizes| sizes.unpacked_bytes), &mut all.into_iter());
    let fields = tree.paths_with_sizes().into_iter().map(|(path, sizes)| {
        (path, row(sizes.stored_bytes, sizes.unpacked_bytes, &mut sizes.compression.iter().copied()))
    });
    TableSizes { metadata_bytes: tree.record_bytes(), pages: total, fields: fields.collect() }
}
