//! Where a stream of batches best ends one chunk and begins the next.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Range;

use tupelo_schema::schema::Field;

use super::{ColumnOf, ColumnTable, columns};
use crate::Result;
use crate::source::Cluster;

/// Columns whose pages are looked at to find out where pages end.
const SAMPLED_COLUMNS: usize = 32;

/// The best entry to end a chunk after, so that few pages must be decoded again by the next chunk. It
/// is in the window, near its middle, if most columns have a page that ends there; else the first one after the window
/// where they have, before the limit; else that in the window where at least some have. `place` moves an entry back to
/// one that is allowed.
pub fn batch_end(
    table: &mut ColumnTable<'_>,
    clusters: &[Cluster],
    fields: &[&Field],
    window: &Range<u64>,
    limit: u64,
    place: impl Fn(u64) -> u64,
) -> Result<Option<u64>> {
    let columns: Vec<ColumnOf<'_>> = fields.iter().flat_map(|field| columns(field)).collect();
    let columns: Vec<_> = columns.iter().filter(|column| column.per_entry == Some(1)).take(SAMPLED_COLUMNS).collect();
    let most = columns.len() / 2 + 1;
    let mut votes: BTreeMap<u64, usize> = BTreeMap::new();
    for cluster in clusters {
        for column in &columns {
            let mut ends: Vec<u64> =
                table.page_ends(column.field, column.k, cluster)?.into_iter().map(&place).collect();
            ends.dedup();
            for end in ends {
                if (window.start..limit).contains(&end) {
                    *votes.entry(end).or_default() += 1;
                }
            }
        }
        // All page ends of the window are known, and one has enough votes.
        if cluster.entry_range().end >= window.end && votes.values().any(|&votes| votes >= most) {
            break;
        }
    }
    let middle = window.start.midpoint(window.end);
    let near = votes.range(window.clone()).max_by_key(|&(end, votes)| (votes, Reverse(end.abs_diff(middle))));
    let far = || votes.range(window.end..).find(|&(_, &votes)| votes >= most);
    let found = near.filter(|&(_, &votes)| votes >= most).or_else(far).or(near);
    Ok(found.map(|(&end, _)| end))
}
