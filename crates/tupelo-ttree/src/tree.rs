//! The content of a streamed `TTree`: branches, leaves, and the positions of baskets.

mod record;

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use tupelo_format::object::Value;
use tupelo_format::{Error, ErrorKind, Result};

/// Classes whose objects are trees.
pub const TREE_CLASSES: [&str; 3] = ["TTree", "TNtuple", "TNtupleD"];
/// Maximum number of clusters, whatever size the file gives.
const MAX_CLUSTERS: u64 = 1 << 20;

/// A branch that is not read as a field, and the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// Names of its parents and its own, joined by slashes.
    pub path: String,
    /// Why it cannot be read.
    pub reason: String,
    /// Whether it is damaged, or in a form that is not known.
    pub kind: ErrorKind,
}

/// A tree.
#[derive(Debug, Clone, PartialEq)]
pub struct Tree {
    /// Name.
    pub name: String,
    /// Free text.
    pub title: String,
    /// C++ class: `TTree`, `TNtuple` or `TNtupleD`.
    pub class_name: String,
    /// Number of entries.
    pub entries: u64,
    /// Bytes of all baskets before and after compression.
    pub bytes: [u64; 2],
    /// Size of a cluster: a number of entries if it is positive, of bytes if it is negative; 0 if nothing is flushed.
    pub auto_flush: i64,
    /// Ranges of entries whose clusters have other sizes than those at the end: last entry and size of a cluster.
    pub cluster_ranges: Vec<(u64, u64)>,
    /// All branches; parents before their children.
    pub branches: Vec<Branch>,
    /// The branches that have no parent.
    pub top_level: Vec<usize>,
    /// Branches that cannot be read, and why.
    pub unreadable: Vec<Refused>,
    /// Friend trees: alias, file and tree.
    pub friends: Vec<[String; 3]>,
    /// Expressions of the major and minor key of the index, if the tree has one.
    pub index: Option<[String; 2]>,
    /// Aliases: name and expression.
    pub aliases: Vec<(String, String)>,
    /// Objects that a program has added (`TTree::GetUserInfo`).
    pub user_info: Vec<Value>,
    /// Weight of the entries in histograms.
    pub weight: f64,
    /// Whether there is a table of references between objects (`TRef`).
    pub has_references: bool,
}

/// A branch of a tree.
#[derive(Debug, Clone, PartialEq)]
pub struct Branch {
    /// Name, in ROOT's spelling: with a dot at the end, or with dimensions in brackets.
    pub name: String,
    /// Free text; of leaves the list with their types.
    pub title: String,
    /// ROOT's class of the branch: `TBranch`, `TBranchElement`.
    pub branch_class: String,
    /// C++ class of the objects; empty for branches of leaves.
    pub class_name: String,
    /// Properties of a `TBranchElement`.
    pub element: Option<BranchElement>,
    /// The branch that this one is part of.
    pub parent: Option<usize>,
    /// Its parts.
    pub children: Vec<usize>,
    /// Leaves in the order in which they are stored.
    pub leaves: Vec<Leaf>,
    /// Number of entries.
    pub entries: u64,
    /// Where the values are, in order of entries.
    pub baskets: Vec<BasketPlace>,
    /// ROOT's compression setting: algorithm × 100 + level.
    pub compression: i32,
    /// Path or URL of another file that has the baskets, as ROOT wrote it (`TBranch::SetFile`); empty for the tree's own.
    pub file_name: String,
    /// Bytes of the baskets before and after compression, those in the tree's own record included.
    pub bytes: [u64; 2],
}

/// Properties of a branch of objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BranchElement {
    /// ROOT's kind of branch: 0 for a value or an unsplit object, 1 a base class, 2 a split object, 3 and 4 the number of
    /// items in a `TClonesArray` or another collection, 31 and 41 members of those items.
    pub kind: i32,
    /// ROOT's code of the type of the member; -1 for whole objects.
    pub streamer_type: i32,
    /// Number of the member in its class; negative for whole objects.
    pub id: i32,
    /// Version of the class that has the member.
    pub class_version: i32,
    /// Checksum of that class.
    pub checksum: u32,
    /// The class whose member the branch is.
    pub parent_class: String,
    /// The class of the items of a `TClonesArray`.
    pub clones_class: String,
    /// The largest number of items in an entry, of branches that count.
    pub max_items: i64,
}

/// A leaf of a branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leaf {
    /// Name.
    pub name: String,
    /// Name with dimensions: `x[n][3]`.
    pub title: String,
    /// ROOT's class of the leaf: `TLeafF`.
    pub leaf_class: String,
    /// Number of values for each count; of a fixed array all of them.
    pub length: u64,
    /// Whether integers have no sign.
    pub is_unsigned: bool,
    /// Whether the names of classes precede objects.
    pub is_virtual: bool,
    /// The leaf that says how many values there are: branch, and number of the leaf in it.
    pub counter: Option<(usize, usize)>,
}

/// Where a basket is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BasketPlace {
    /// Its entries.
    pub entries: Range<u64>,
    /// Its bytes.
    pub stored: Stored,
}

/// Where the bytes of a basket are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stored {
    /// In a record of the file.
    InFile {
        /// Offset of the record.
        offset: u64,
        /// Its length in bytes, key included.
        bytes: u32,
    },
    /// In the tree's own record, with a copy of its key.
    Embedded(Arc<[u8]>),
}

impl Stored {
    /// Its length in bytes.
    pub fn bytes(&self) -> u64 {
        match self {
            Self::InFile { bytes, .. } => (*bytes).into(),
            Self::Embedded(bytes) => bytes.len() as u64,
        }
    }
}

impl Branch {
    /// The branches that count the values of its leaves.
    pub(crate) fn counters(&self) -> impl Iterator<Item = usize> {
        self.leaves.iter().filter_map(|leaf| leaf.counter).map(|(branch, _)| branch)
    }

    /// Whether its baskets are in a separate file.
    pub fn is_elsewhere(&self) -> bool {
        !self.file_name.is_empty()
    }
}

impl Tree {
    /// The clusters: ranges of entries that were flushed together. Where the tree does not say, they are made from its
    /// size, of about `cluster_bytes` compressed bytes each.
    pub fn clusters(&self, cluster_bytes: u64) -> Vec<Range<u64>> {
        let mut clusters = Vec::new();
        let mut start = 0;
        let mut add = |end: u64, size: u64| {
            // A file may say that a cluster has one entry, of as many as there are.
            let left = MAX_CLUSTERS.saturating_sub(clusters.len() as u64).max(1);
            let size = size.max(end.saturating_sub(start).div_ceil(left)).max(1);
            while start < end {
                let next = start.saturating_add(size).min(end);
                clusters.push(start..next);
                start = next;
            }
        };
        for &(last, size) in &self.cluster_ranges {
            let end = last.saturating_add(1).min(self.entries);
            if end > 0 && size > 0 {
                add(end, size);
            }
        }
        let size = match u64::try_from(self.auto_flush) {
            Ok(entries) if entries > 0 => entries,
            _ => {
                let bytes = self.bytes[1].max(1);
                (u128::from(self.entries) * u128::from(cluster_bytes) / u128::from(bytes))
                    .try_into()
                    .unwrap_or(u64::MAX)
            }
        };
        add(self.entries, size);
        clusters
    }

    /// Full name of a branch: the names of its parents and its own, joined by slashes.
    pub fn path(&self, index: usize) -> String {
        let mut names = self.names_upwards(index).collect::<Vec<_>>();
        names.reverse();
        names.join("/")
    }

    /// Bytes of the full name of a branch.
    pub(crate) fn path_bytes(&self, index: usize) -> usize {
        self.names_upwards(index).map(|name| name.len() + 1).sum()
    }

    /// The name of a branch and those of its parents.
    fn names_upwards(&self, index: usize) -> impl Iterator<Item = &str> {
        let branch = |index: usize| self.branches.get(index);
        let branches = std::iter::successors(branch(index), move |at| at.parent.and_then(branch));
        branches.map(|branch| branch.name.as_str())
    }
}

/// Refuses baskets that share bytes: a small file could have any number of them.
pub(crate) fn check_places(branches: &[Branch]) -> Result<()> {
    let mut files: HashMap<&str, Vec<Range<u64>>> = HashMap::new();
    for branch in branches {
        let places = branch.baskets.iter().filter_map(|basket| match basket.stored {
            Stored::InFile { offset, bytes } => Some(offset..offset.saturating_add(bytes.into())),
            Stored::Embedded(_) => None,
        });
        files.entry(&branch.file_name).or_default().extend(places);
    }
    for places in files.values_mut() {
        places.sort_unstable_by_key(|place| (place.start, place.end));
        for (place, next) in places.iter().zip(places.iter().skip(1)) {
            if next.start < place.end {
                return Err(Error::corrupt("two baskets overlap").at(next.start));
            }
        }
    }
    Ok(())
}
