//! Baskets of several branches to columns: the baskets of a branch follow each other in one column, so that its values are
//! not copied again.

use std::collections::BTreeMap;
use std::ops::Range;

use arrow_array::{Array, ArrayRef};
use arrow_cast::cast;
use bytes::Bytes;
use tupelo_core::pool;
use tupelo_format::wire::Memory;
use tupelo_ttree::classes::Classes;
use tupelo_ttree::references::References;
use tupelo_ttree::{Column, ValueLayout};

use super::{BasketDecoder, Leaf, counted, plain, plain_width, stored_bytes};
use crate::decode::try_allocation;
use crate::source::{BlobRange, CONCURRENT_FETCHES};
use crate::{Error, Result};

/// Stored bytes of a local file that are read before the next ones: so the file is read from its start to its end.
const WINDOW_BYTES: u64 = 16 << 20;
/// Runs of baskets for each thread: the threads share them.
const RUNS_PER_THREAD: usize = 4;
/// Maximum memory allocated for the values of baskets not yet read, as a multiple of their stored bytes.
const MAX_ROOM: usize = 32;

/// Entries of one basket.
pub(super) struct BasketEntries<'o> {
    /// Its place among the parts of its leaf.
    pub(super) number: usize,
    pub(super) leaf: usize,
    pub(super) basket: usize,
    pub(super) entries: Range<usize>,
    /// The destination of the values, if they are numbers.
    pub(super) out: Option<&'o mut [u8]>,
    pub(super) range: Option<BlobRange>,
    pub(super) first_entry: u64,
}

impl BasketEntries<'_> {
    fn stored_bytes(&self) -> u64 {
        stored_bytes(self.range.as_ref())
    }
}

/// The values of parts of a leaf that follow each other.
pub(super) struct Piece {
    /// Numbers of the first part, and of the one that would be the next.
    first: usize,
    next: usize,
    column: Column,
    /// Stored bytes of the parts.
    stored: u64,
}

impl Piece {
    pub(super) fn bytes(&self) -> u64 {
        self.column.bytes() as u64
    }
}

/// Parts of a leaf that are added to a piece.
struct Run<'o> {
    leaf: usize,
    piece: Piece,
    parts: Vec<(BasketEntries<'o>, Option<Bytes>)>,
}

impl BasketDecoder<'_> {
    /// Reads parts, in parallel: the pieces of each leaf. Those of a remote file are read in batches, and several of these
    /// are fetched ahead.
    pub(super) fn columns<'o>(self, leaves: &[Leaf<'_>], parts: Vec<BasketEntries<'o>>) -> Result<Vec<Vec<Piece>>> {
        let is_remote =
            |part: &BasketEntries<'_>| part.range.as_ref().is_some_and(|range| !self.source.is_read_in_place(range));
        let mut total = vec![0; leaves.len()];
        for part in &parts {
            if let Some(total) = total.get_mut(part.leaf) {
                *total += part.stored_bytes();
            }
        }
        let mut columns = Columns { total, pieces: leaves.iter().map(|_| Vec::new()).collect() };
        if self.cache.bytes.is_none() && !parts.iter().any(is_remote) {
            for (sum, window) in self.batches(parts, WINDOW_BYTES) {
                let parts = window.into_iter().map(|part| (part, None));
                columns.add(self, leaves, parts.collect(), sum)?;
            }
            return Ok(columns.pieces);
        }
        let most = self.memory.fetch_bytes().min(self.cache.bytes.unwrap_or(u64::MAX));
        let fetch = |(sum, batch): (u64, Vec<BasketEntries<'o>>)| {
            let reserved = self.memory.reserve_scratch(sum, "baskets")?;
            let ranges: Vec<BlobRange> = batch.iter().filter_map(|part| part.range).collect();
            Ok((batch, self.source.fetch(&ranges)?, sum, reserved))
        };
        pool::each_waiting(self.batches(parts, most), CONCURRENT_FETCHES, fetch, |(batch, fetched, sum, reserved)| {
            let mut fetched = fetched.into_iter();
            let parts = batch.into_iter().map(|part| {
                let bytes = if part.range.is_some() { fetched.next() } else { None };
                (part, bytes)
            });
            columns.add(self, leaves, parts.collect(), sum)?;
            drop(reserved);
            Ok(())
        })?;
        Ok(columns.pieces)
    }

    /// Divides parts into those that are read, or that one vector read fetches, together, with their stored bytes.
    fn batches<'o>(self, parts: Vec<BasketEntries<'o>>, most: u64) -> Vec<(u64, Vec<BasketEntries<'o>>)> {
        let mut batches: Vec<(u64, Vec<BasketEntries<'o>>)> = Vec::new();
        let mut was_learning = false;
        for part in parts {
            let own = part.stored_bytes();
            let is_learning = part.first_entry < self.cache.learn_entries;
            match batches.last_mut().filter(|(sum, _)| !is_learning && !was_learning && sum + own <= most) {
                Some((sum, batch)) => {
                    *sum += own;
                    batch.push(part);
                }
                None => batches.push((own, vec![part])),
            }
            was_learning = is_learning;
        }
        batches
    }

    /// Reads the entries of one basket.
    fn append(
        self,
        leaf: &Leaf<'_>,
        column: &mut Column,
        part: BasketEntries<'_>,
        fetched: Option<Bytes>,
    ) -> Result<()> {
        let (branch, basket) = (leaf.branch, part.basket);
        let used = Some(part.entries.clone());
        let read = self.with_basket(branch, basket, part.range, fetched, used, |mut basket, expected| {
            let counters = self.source.session().counters();
            if let (Some(out), Some(width)) = (part.out, plain_width(leaf.layout)) {
                counted(&basket, expected)?;
                return counters.decode(|| plain(&basket, &part.entries, width, out));
            }
            self.prepare(branch, part.basket, leaf.layout, &mut basket, expected, &part.entries)?;
            let memory = Memory::new(self.memory.left());
            let detached = match leaf.layout {
                // Equal objects have equal bytes, wherever they are.
                ValueLayout::Opaque => References::of(self.branch(branch)?, &Classes::new(self.source.infos()))
                    .detached(&basket, part.entries.clone(), &memory)
                    .map(Some)?,
                _ => None,
            };
            let data = detached.as_deref().unwrap_or(basket.data);
            let basket = basket.with_data(data);
            counters.decode(|| column.read(leaf.layout, &basket, part.entries, &memory).map_err(Error::from))
        });
        read.map_err(|e| self.named(branch, basket, e))
    }
}

/// The values read for each leaf.
struct Columns {
    /// Stored bytes of all parts of each leaf.
    total: Vec<u64>,
    pieces: Vec<Vec<Piece>>,
}

impl Columns {
    /// Reads parts; `bytes` is their stored size.
    fn add(
        &mut self,
        decoder: BasketDecoder<'_>,
        leaves: &[Leaf<'_>],
        parts: Vec<(BasketEntries<'_>, Option<Bytes>)>,
        bytes: u64,
    ) -> Result<()> {
        let most = match pool::threads() {
            1 => parts.len(),
            threads => parts.len().div_ceil(RUNS_PER_THREAD * threads),
        };
        let runs = self.runs(leaves, parts, most.max(1));
        let total = &self.total;
        let read = pool::map(runs, bytes, |run| {
            let Run { leaf, mut piece, parts } = run;
            let Some(of) = leaves.get(leaf) else { return Ok((leaf, piece)) };
            piece.make_room(total.get(leaf).copied().unwrap_or(0));
            for (part, fetched) in parts {
                piece.next = part.number + 1;
                piece.stored += part.stored_bytes();
                let before = piece.bytes();
                decoder.append(of, &mut piece.column, part, fetched)?;
                decoder.memory.reserve_values(piece.bytes().saturating_sub(before))?;
            }
            Ok((leaf, piece))
        })?;
        for (leaf, piece) in read {
            if let Some(pieces) = self.pieces.get_mut(leaf) {
                pieces.push(piece);
            }
        }
        Ok(())
    }

    /// Runs of at most `most` parts: each goes on with the piece that ends where it begins.
    fn runs<'o>(
        &mut self,
        leaves: &[Leaf<'_>],
        parts: Vec<(BasketEntries<'o>, Option<Bytes>)>,
        most: usize,
    ) -> Vec<Run<'o>> {
        let mut by_leaf: BTreeMap<usize, Vec<(BasketEntries<'o>, Option<Bytes>)>> = BTreeMap::new();
        for part in parts {
            by_leaf.entry(part.0.leaf).or_default().push(part);
        }
        let mut runs: Vec<Run<'o>> = Vec::new();
        for (leaf, mut parts) in by_leaf {
            let (Some(of), Some(pieces)) = (leaves.get(leaf), self.pieces.get_mut(leaf)) else { continue };
            parts.sort_by_key(|(part, _)| part.number);
            for (part, fetched) in parts {
                let number = part.number;
                let follows = |run: &&mut Run<'_>| {
                    let last = run.parts.last().map(|(part, _)| part.number + 1);
                    run.leaf == leaf && last == Some(number) && run.parts.len() < most
                };
                match runs.last_mut().filter(follows) {
                    Some(run) => run.parts.push((part, fetched)),
                    None => {
                        let known = pieces.iter().rposition(|piece| piece.next == number);
                        let new = || Piece { first: number, next: number, column: Column::new(of.layout), stored: 0 };
                        let piece = known.map_or_else(new, |at| pieces.swap_remove(at));
                        runs.push(Run { leaf, piece, parts: vec![(part, fetched)] });
                    }
                }
            }
        }
        runs
    }
}

impl Piece {
    /// Makes room for the values of all parts of its leaf, judged by those that were read.
    fn make_room(&mut self, total: u64) {
        let left = total.saturating_sub(self.stored);
        if self.first != 0 || self.stored == 0 || left == 0 {
            return;
        }
        let share = left as f64 / self.stored as f64;
        let bytes = (self.column.bytes() as f64 * share) as usize;
        let is_plausible = bytes / MAX_ROOM <= usize::try_from(left).unwrap_or(usize::MAX);
        if is_plausible && try_allocation(bytes).is_ok() {
            self.column.reserve(share);
        }
    }
}

/// The array of a leaf.
pub(super) fn joined(leaf: &Leaf<'_>, mut pieces: Vec<Piece>) -> Result<ArrayRef> {
    pieces.sort_by_key(|piece| piece.first);
    let finish = |column: Column| column.finish(leaf.layout, &leaf.data_type);
    let mut arrays: Vec<ArrayRef> = pieces.into_iter().map(|piece| finish(piece.column)).collect::<Result<_, _>>()?;
    match arrays.len() {
        0 => Ok(finish(Column::new(leaf.layout))?),
        1 => Ok(arrays.swap_remove(0)),
        _ => {
            // Strings that are not UTF-8 in some part are bytes in all parts.
            if let Some(other) = arrays.iter().map(|part| part.data_type()).find(|part| **part != leaf.data_type) {
                let other = other.clone();
                arrays = arrays.iter().map(|part| cast(part, &other)).collect::<Result<_, _>>()?;
            }
            let arrays: Vec<&dyn Array> = arrays.iter().map(AsRef::as_ref).collect();
            Ok(arrow_select::concat::concat(&arrays)?)
        }
    }
}
