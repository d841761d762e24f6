//! What trees have beside ntuples.

pub(crate) mod import;
pub(crate) mod writer;

use std::collections::BTreeMap;

use tupelo::{Compression, Tree};

/// Stored bytes, bytes before compression, and the codecs in use.
pub(crate) type SizesRow = (u64, u64, String);
/// A name and what belongs to it.
type Pair = (String, String);

/// Friends (alias, file, tree), the expressions of the index, aliases, branches that cannot be read with the reason, and
/// the others with the paths of their fields.
pub(crate) type TreeRow = (Vec<[String; 3]>, Option<[String; 2]>, Vec<Pair>, Vec<Pair>, Vec<Pair>);

pub(crate) fn description(tree: &Tree) -> TreeRow {
    let metadata = tree.metadata();
    let refused = tree.refused().map(|(path, reason)| (path.to_owned(), reason.to_owned()));
    let (friends, index) = (metadata.friends.clone(), metadata.index.clone());
    let branches = tree.branches().into_iter().map(|(branch, path)| (metadata.path(branch), path));
    (friends, index, metadata.aliases.clone(), refused.collect(), branches.collect())
}

/// Number of the parent, name, title, class, setting of the compression, number of the branch with the sizes, bytes before
/// and after compression, and first entry, end and stored bytes of each basket.
pub(crate) type BranchRow = (Option<usize>, String, String, String, i32, Option<usize>, [u64; 2], Vec<(u64, u64, u64)>);

/// All branches, parents first, and the paths of the fields with the values by number.
pub(crate) fn branches(tree: &Tree) -> (Vec<BranchRow>, BTreeMap<usize, String>) {
    let rows = tree.metadata().branches.iter().map(|branch| {
        let counter = branch.leaves.first().and_then(|leaf| leaf.counter).map(|(branch, _)| branch);
        let baskets = branch.baskets.iter().map(|it| (it.entries.start, it.entries.end, it.stored.bytes()));
        let (name, title, class) = (branch.name.clone(), branch.title.clone(), branch.class_name.clone());
        (branch.parent, name, title, class, branch.compression, counter, branch.bytes, baskets.collect())
    });
    (rows.collect(), tree.branches().into_iter().collect())
}

/// The clusters; what each takes in the file is estimated by its share of the entries.
pub(crate) fn clusters(tree: &Tree) -> Vec<(u64, u64, u64)> {
    let stored: u64 = tree.sizes().iter().map(|sizes| sizes.stored_bytes).sum();
    let share = |entries: u64| (stored as f64 * entries as f64 / tree.entries().max(1) as f64) as u64;
    tree.cluster_ranges().map(|range| (range.start, range.end - range.start, share(range.end - range.start))).collect()
}

/// Bytes of the record of the tree, of all baskets, and of each field with those below it.
pub(crate) fn sizes(tree: &Tree) -> (u64, SizesRow, BTreeMap<String, SizesRow>) {
    let row = |stored: u64, unpacked: u64, settings: &mut dyn Iterator<Item = u32>| {
        let name =
            |setting: u32| Compression::from_setting(setting).map_or_else(|_| setting.to_string(), |it| it.to_string());
        (stored, unpacked, settings.map(name).collect::<Vec<_>>().join(", "))
    };
    let sizes = tree.sizes();
    let mut all = std::collections::BTreeSet::new();
    sizes.iter().for_each(|sizes| all.extend(sizes.compression.iter().copied()));
    let sum = |of: fn(&tupelo::reader::TreeSizes) -> u64| sizes.iter().map(of).sum();
    let total = row(sum(|sizes| sizes.stored_bytes), sum(|sizes| sizes.unpacked_bytes), &mut all.into_iter());
    let fields = tree.paths_with_sizes().into_iter().map(|(path, sizes)| {
        (path, row(sizes.stored_bytes, sizes.unpacked_bytes, &mut sizes.compression.iter().copied()))
    });
    (tree.record_bytes(), total, fields.collect())
}
