//! Checks of baskets: each is read, decompressed and decoded, and its error is reported.

use std::collections::BTreeMap;

use bytes::Bytes;
use tupelo_core::pool;
use tupelo_format::wire::Memory;
use tupelo_ttree::{Basket, Column, ValueLayout};

use super::BasketDecoder;
use super::counters::Counters;
use crate::source::{BlobRange, TreeCache, TreeSource};
use crate::{Error, Result};

/// A basket to check.
#[derive(Debug)]
pub struct BasketCheck<'f> {
    /// Index of the branch in its tree.
    pub branch: usize,
    /// Index of the basket in its branch.
    pub basket: usize,
    /// Its record; `None` if it is in the record of the tree.
    pub range: Option<BlobRange>,
    /// How its entries are decoded; `None` if unknown.
    pub layout: Option<&'f ValueLayout>,
}

impl BasketCheck<'_> {
    /// Bytes of the basket in the file.
    pub fn stored_bytes(&self) -> u64 {
        stored_bytes(self.range.as_ref())
    }
}

/// Bytes of a record, if a basket has its own.
pub(super) fn stored_bytes(range: Option<&BlobRange>) -> u64 {
    range.map_or(0, BlobRange::bytes)
}

/// Baskets of a branch that a thread checks one after the other.
const RUN_BASKETS: usize = 64;

/// Reads, decompresses and decodes baskets in parallel, and reports the error of each.
pub fn check_baskets(source: &TreeSource, baskets: &[BasketCheck<'_>]) -> Result<Vec<Result<()>>> {
    let (memory, counters) = (source.request_memory(), Counters::default());
    let decoder = BasketDecoder { source, memory: &memory, cache: TreeCache::default(), counters: &counters, depth: 0 };
    let total: u64 = baskets.iter().map(BasketCheck::stored_bytes).sum();
    memory.add_stored(total);
    let remote = |check: &BasketCheck<'_>| check.range.filter(|range| !source.is_read_in_place(range));
    let ranges: Vec<BlobRange> = baskets.iter().filter_map(remote).collect();
    let bytes = ranges.iter().map(|range| stored_bytes(Some(range))).sum();
    let _reserved = memory.reserve_scratch(bytes, "baskets")?;
    let mut fetched = source.fetch(&ranges)?.into_iter();
    let mut by_branch: BTreeMap<usize, Vec<_>> = BTreeMap::new();
    for (number, check) in baskets.iter().enumerate() {
        let fetched = remote(check).and_then(|_| fetched.next());
        by_branch.entry(check.branch).or_default().push((number, check, fetched));
    }
    let mut runs = Vec::new();
    for mut checks in by_branch.into_values() {
        while !checks.is_empty() {
            runs.push(checks.split_off(checks.len().saturating_sub(RUN_BASKETS)));
        }
    }
    // One column for all baskets of a run: it may have more members than a basket has bytes.
    let checked = pool::map(runs, total, |run| {
        let mut column: Option<Column> = None;
        let check = |(number, check, fetched): (usize, &BasketCheck<'_>, Option<Bytes>)| {
            let checked =
                decoder.with_basket(check.branch, check.basket, check.range, fetched, None, |mut basket, expected| {
                    let all = 0..basket.entries;
                    let Some(layout) = check.layout else { return counted(&basket, expected) };
                    decoder.prepare(check.branch, check.basket, layout, &mut basket, expected, &all)?;
                    let column = column.get_or_insert_with(|| Column::new(layout));
                    column.clear();
                    column.read(layout, &basket, all, &Memory::new(memory.left()))?;
                    let ValueLayout::Rest(_) = layout else { return Ok(()) };
                    let first = decoder.first_entry(check.branch, check.basket)?;
                    let entries = first..first + basket.entries as u64;
                    decoder.check_items(check.branch, entries, column.list_lengths(), other_numbers)
                });
            (number, checked)
        };
        Ok(run.into_iter().map(check).collect::<Vec<_>>())
    })?;
    let mut checked: Vec<(usize, Result<()>)> = checked.into_iter().flatten().collect();
    checked.sort_by_key(|(number, _)| *number);
    Ok(checked.into_iter().map(|(_, checked)| checked).collect())
}

pub(super) fn other_numbers() -> Error {
    Error::corrupt("its numbers of items differ from those of its collection")
}

pub(super) fn counted(basket: &Basket<'_>, expected: usize) -> Result<()> {
    match basket.entries == expected {
        true => Ok(()),
        false => Err(Error::corrupt(format!("found {} entries, but the branch says {expected}", basket.entries))),
    }
}
