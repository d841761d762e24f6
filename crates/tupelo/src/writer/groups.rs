//! Merging of cluster groups: each checkpoint adds a group, and groups of similar size are merged by writing a common
//! page list. Footers list O(log n) groups, and each cluster is listed O(log n) times. Pages are not moved.

use tupelo_format::envelope::{ClusterGroupRecord, ClusterSummary, ColumnPages, PageList};

use crate::reader::Ntuple;
use crate::{Error, Result};

/// Groups are merged when together they have this many times the clusters of the largest of them, rounded up to a power
/// of it.
const FAN_IN: u64 = 8;
/// Limit of a merged page list, in bytes before compression: 1 MiB. A reader fetches and parses a page list as a whole.
const MAX_MERGED_BYTES: u64 = 1 << 20;

/// A cluster with the pages of its columns.
pub(super) type Listed = (ClusterSummary, Vec<ColumnPages>);

/// A page list in the footer.
#[derive(Debug)]
enum List {
    /// In memory.
    Known(Vec<Listed>),
    /// Existing, and not read yet.
    Stored,
    /// Never merged: it is long, or contains something that this version does not know.
    Sealed,
}

/// The groups of one ntuple, parallel to the records in its footer.
#[derive(Debug, Default)]
pub(super) struct Groups {
    lists: Vec<List>,
    /// The existing ntuple that is continued.
    existing: Option<Ntuple>,
}

impl Groups {
    /// The groups of an existing ntuple.
    pub(super) fn existing(ntuple: &Ntuple, groups: usize) -> Self {
        Self { lists: (0..groups).map(|_| List::Stored).collect(), existing: Some(ntuple.clone()) }
    }

    /// Merges new clusters, whose page list takes `list_bytes`, with the newest groups if these are due. Returns the
    /// number of groups that stay, and the clusters of the group after them.
    pub(super) fn merge(
        &mut self,
        records: &[ClusterGroupRecord],
        clusters: Vec<Listed>,
        list_bytes: u64,
    ) -> Result<(usize, Vec<Listed>)> {
        let kept = loop {
            let sealed = self.lists.iter().rposition(|list| matches!(list, List::Sealed)).map_or(0, |last| last + 1);
            let candidates = records.get(sealed..).unwrap_or_default();
            let sizes = candidates.iter().map(|record| (u64::from(record.clusters), record.page_list.length));
            let kept = sealed + first_merged(&sizes.collect::<Vec<_>>(), (clusters.len() as u64, list_bytes));
            if self.load(records, kept)? {
                break kept;
            }
        };
        let mut merged = Vec::new();
        for list in self.lists.drain(kept..) {
            if let List::Known(listed) = list {
                merged.extend(listed);
            }
        }
        merged.extend(clusters);
        Ok((kept, merged))
    }

    /// Adds a group of these clusters after all others.
    pub(super) fn push(&mut self, clusters: Vec<Listed>, list_bytes: u64) {
        // Rewriting a list longer than half the limit would gain little.
        let is_long = list_bytes > MAX_MERGED_BYTES / 2;
        self.lists.push(if is_long { List::Sealed } else { List::Known(clusters) });
    }

    /// Reads the page lists from a group on that are not in memory yet. Returns false if one of them must not be
    /// merged.
    fn load(&mut self, records: &[ClusterGroupRecord], from: usize) -> Result<bool> {
        for group in from..self.lists.len() {
            if let (Some(List::Stored), Some(record)) = (self.lists.get(group), records.get(group)) {
                let list = self.read(group, record)?;
                let is_sealed = matches!(list, List::Sealed);
                self.lists[group] = list;
                if is_sealed {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// The clusters of an existing group.
    pub(super) fn listed(&self, group: usize, record: &ClusterGroupRecord) -> Result<Vec<Listed>> {
        match self.read(group, record)? {
            List::Known(clusters) => Ok(clusters),
            _ => Err(Error::unsupported(format!(
                "the page list of cluster group {group} has content that this version does not know"
            ))),
        }
    }

    fn read(&self, group: usize, record: &ClusterGroupRecord) -> Result<List> {
        let Some(source) = self.existing.as_ref().map(Ntuple::source) else { return Ok(List::Sealed) };
        let descriptor = source.descriptor();
        let described = descriptor.cluster_groups().get(group).filter(|group| group.page_list == record.page_list);
        if described.is_none() {
            return Ok(List::Sealed);
        }
        let list = source.page_list(group)?;
        let mut clusters = Vec::with_capacity(list.clusters().len());
        for (cluster, summary) in list.clusters().iter().enumerate() {
            let columns = (0..list.columns(cluster)).map(|column| list.pages(cluster, column));
            let columns = columns.filter_map(|pages| pages.transpose()).collect::<Result<Vec<_>, _>>()?;
            clusters.push((*summary, columns));
        }
        let again = write(descriptor.header_checksum(), &clusters);
        // Unknown content of another writer would be lost.
        Ok(if again == list.envelope() { List::Known(clusters) } else { List::Sealed })
    }
}

/// Serializes the page list of these clusters.
pub(super) fn write(header_checksum: u64, clusters: &[Listed]) -> Vec<u8> {
    let clusters = clusters.iter().map(|(summary, columns)| (*summary, columns.iter()));
    PageList::write(header_checksum, clusters)
}

/// The index from which groups are merged with a new one; each has a number of clusters and a page list size in bytes.
///
/// A group of at least `FAN_IN^level` clusters is of that level. The newest groups up to a level are merged as soon as
/// together they are of a higher one. So each level has fewer than `FAN_IN` groups, and each cluster is merged at most
/// once per level.
fn first_merged(groups: &[(u64, u64)], new: (u64, u64)) -> usize {
    let level = |clusters: u64| clusters.max(1).ilog(FAN_IN);
    let highest = groups.iter().map(|group| level(group.0)).max().unwrap_or(0);
    let mut first = groups.len();
    for wanted in level(new.0)..=highest {
        let (mut clusters, mut bytes, mut from) = (new.0, new.1, groups.len());
        for (index, group) in groups.iter().enumerate().rev() {
            if level(group.0) > wanted || bytes + group.1 > MAX_MERGED_BYTES {
                break;
            }
            (clusters, bytes, from) = (clusters + group.0, bytes + group.1, index);
        }
        if level(clusters) > wanted {
            first = first.min(from);
        }
    }
    first
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Adds groups one after the other; gives the most that there were, and how often a cluster was written at most.
    fn grow(sizes: impl Iterator<Item = u64>, bytes_per_cluster: u64) -> (usize, u64) {
        let mut groups: Vec<(u64, u64)> = Vec::new();
        let (mut most, mut all, mut written) = (0, 0, 0);
        for size in sizes {
            let new = (size, size * bytes_per_cluster);
            let first = first_merged(&groups, new);
            let joined = groups.drain(first..).fold(new, |sum, group| (sum.0 + group.0, sum.1 + group.1));
            groups.push(joined);
            assert!(joined.1 <= MAX_MERGED_BYTES.max(new.1));
            most = most.max(groups.len());
            all += size;
            written += joined.0;
        }
        (most, written.div_ceil(all))
    }

    #[test]
    fn groups_are_few_and_clusters_are_rarely_written_anew() {
        let rounds = 100_000;
        // Six levels of seven groups each.
        let (groups, written) = grow((0..rounds).map(|_| 1), 1);
        assert!(groups <= 42 && written <= 7, "{groups} groups, each cluster written {written} times");
        for sizes in [[1, 1, 1, 100], [1000, 1, 1, 1], [7, 8, 9, 63]] {
            let (groups, written) = grow((0..rounds).map(|round| sizes[round % 4]), 0);
            assert!(groups <= 60 && written <= 8, "{sizes:?}: {groups} groups, each cluster written {written} times");
        }
    }

    #[test]
    fn page_lists_that_are_long_together_are_not_joined() {
        let (groups, written) = grow((0..1000).map(|_| 1), MAX_MERGED_BYTES / 4);
        assert!((250..=1000).contains(&groups) && written <= 4, "{groups} groups, {written} times");
    }
}
