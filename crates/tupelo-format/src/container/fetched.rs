//! The byte ranges of a file that were fetched so far.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use super::deviation::Deviations;
use crate::Error;
use crate::wire::Memory;

/// Why a reading function did not finish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Interrupt {
    /// Byte ranges of the file that were not fetched yet: fetch them, [`FetchedRanges::provide`] them and call again.
    Missing(Vec<Range<u64>>),
    /// The bytes were rejected; more of them cannot help.
    Failed(Error),
}

impl From<Error> for Interrupt {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// The result of everything that reads from [`FetchedRanges`].
pub type Attempt<T> = Result<T, Interrupt>;

/// What was read; `None` where the bytes were rejected.
pub(super) fn readable<T>(read: Attempt<T>) -> Attempt<Option<T>> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(Interrupt::Failed(_)) => Ok(None),
        Err(missing) => Err(missing),
    }
}

/// Collects the results of several steps. The missing ranges of all steps are requested together, because a separate
/// fetch for each step would repeat all preceding steps.
pub(crate) fn together<T>(steps: impl Iterator<Item = Attempt<T>>) -> Attempt<Vec<T>> {
    let (mut done, mut missing) = (Vec::with_capacity(steps.size_hint().0), Vec::new());
    for step in steps {
        match step {
            Ok(result) => done.push(result),
            Err(Interrupt::Missing(ranges)) => missing.extend(ranges),
            Err(failed) => return Err(failed),
        }
    }
    if missing.is_empty() { Ok(done) } else { Err(Interrupt::Missing(disjoint(missing))) }
}

/// The same bytes in order, each in one range.
fn disjoint(mut ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    ranges.sort_unstable_by_key(|range| range.start);
    ranges.dedup_by(|next, before| {
        let overlaps = next.start < before.end;
        if overlaps {
            before.end = before.end.max(next.end);
        }
        overlaps
    });
    ranges
}

/// The bytes of one file that were fetched so far, as disjoint pieces.
#[derive(Debug, Clone)]
pub struct FetchedRanges {
    size: u64,
    pieces: BTreeMap<u64, Bytes>,
    memory: Arc<Memory>,
    deviations: Arc<Deviations>,
}

fn end_of(start: u64, bytes: &Bytes) -> u64 {
    start.saturating_add(bytes.len() as u64)
}

impl FetchedRanges {
    /// Nothing yet of a file of `size` bytes.
    pub fn new(size: u64) -> Self {
        Self { size, pieces: BTreeMap::new(), memory: Arc::new(Memory::unlimited()), deviations: Arc::default() }
    }

    /// The same bytes with a memory limit for what is made from them: decompressed bytes, records, tables. Clones
    /// count together.
    #[must_use]
    pub fn with_memory_limit(self, limit_bytes: u64) -> Self {
        Self { memory: Arc::new(Memory::new(limit_bytes)), ..self }
    }

    /// The memory used so far.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// The rules that the file breaks, as far as they were found in bytes of this and its clones.
    pub fn deviations(&self) -> &Arc<Deviations> {
        &self.deviations
    }

    /// Size of the file in bytes, as the storage reported it.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Adds bytes that start at `offset`. Bytes past the end of the file are ignored. Pieces may overlap. The file must
    /// not change while it is read: which of two different versions is kept is unspecified.
    pub fn provide(&mut self, offset: u64, mut bytes: Bytes) {
        bytes.truncate(usize::try_from(self.size.saturating_sub(offset)).unwrap_or(usize::MAX));
        let mut start = offset;
        let end = end_of(start, &bytes);
        if let Some((&left, piece)) = self.pieces.range(..=start).next_back() {
            let covered = end_of(left, piece);
            if covered >= end {
                return;
            }
            // A piece that starts at the very same place is shorter: it is replaced below.
            if covered > start && left < start {
                let _known = bytes.split_to(usize::try_from(covered - start).unwrap_or(usize::MAX).min(bytes.len()));
                start = covered;
            }
        }
        let inside: Vec<u64> = self.pieces.range(start..end).map(|(&at, _)| at).collect();
        for at in inside {
            match self.pieces.get(&at) {
                // Reaches behind the new bytes: only the last of them can, the pieces being disjoint.
                Some(piece) if end_of(at, piece) > end => {
                    bytes.truncate(usize::try_from(at - start).unwrap_or(usize::MAX));
                }
                _ => {
                    self.pieces.remove(&at);
                }
            }
        }
        if !bytes.is_empty() {
            self.pieces.insert(start, bytes);
        }
    }

    /// Returns the bytes of a range: zero-copy if a single piece contains it, otherwise joined from several pieces.
    ///
    /// # Errors
    /// [`Interrupt::Failed`] if the range extends past the end of the file, [`Interrupt::Missing`] with the parts of it
    /// that are not fetched yet.
    pub fn get(&self, offset: u64, length: u64) -> Attempt<Bytes> {
        let end = match offset.checked_add(length) {
            Some(end) if end <= self.size => end,
            _ => {
                let what = format!("expected {length} bytes in a file of {} bytes", self.size);
                return Err(Error::corrupt(what).at(offset).into());
            }
        };
        let (mut at, mut parts, mut missing) = (offset, Vec::new(), Vec::new());
        let first = self.pieces.range(..=offset).next_back().map_or(offset, |(&start, _)| start);
        for (&start, piece) in self.pieces.range(first..end) {
            let covered = end_of(start, piece).min(end);
            if covered <= at {
                continue;
            }
            if start > at {
                missing.push(at..start);
                at = start;
            }
            let from = usize::try_from(at - start).unwrap_or(usize::MAX);
            let to = usize::try_from(covered - start).unwrap_or(usize::MAX);
            parts.push(piece.slice(from.min(piece.len())..to.min(piece.len())));
            at = covered;
        }
        if at < end {
            missing.push(at..end);
        }
        match (missing.is_empty(), parts.len()) {
            (false, _) => Err(Interrupt::Missing(missing)),
            (true, 0 | 1) => Ok(parts.pop().unwrap_or_default()),
            (true, _) => {
                self.memory.take(length, "bytes fetched in pieces")?;
                Ok(Bytes::from(parts.concat()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_join_and_gaps_are_named() {
        let file: Vec<u8> = (0..100).collect();
        let mut fetched = FetchedRanges::new(100);
        let give = |fetched: &mut FetchedRanges, range: Range<usize>| {
            fetched.provide(range.start as u64, Bytes::copy_from_slice(&file[range]));
        };
        assert_eq!(fetched.get(10, 5), Err(Interrupt::Missing(vec![Range { start: 10, end: 15 }])));
        give(&mut fetched, 10..20);
        give(&mut fetched, 30..40);
        assert_eq!(fetched.get(5, 40), Err(Interrupt::Missing(vec![5..10, 20..30, 40..45])));
        give(&mut fetched, 15..35);
        assert_eq!(fetched.get(12, 25).unwrap(), &file[12..37]);
        give(&mut fetched, 10..11);
        give(&mut fetched, 0..90);
        assert_eq!(fetched.get(0, 90).unwrap(), &file[..90]);
        assert_eq!(fetched.get(100, 0).unwrap().len(), 0);
        assert!(matches!(fetched.get(99, 2), Err(Interrupt::Failed(_))));
        assert!(matches!(fetched.get(u64::MAX, u64::MAX), Err(Interrupt::Failed(_))));
    }

    #[test]
    fn steps_request_bytes_once() {
        let fetched = FetchedRanges::new(100);
        let steps = [(40, 10), (0, 20), (45, 20), (10, 5), (20, 5)].map(|(offset, length)| fetched.get(offset, length));
        assert_eq!(together(steps.into_iter()), Err(Interrupt::Missing(vec![0..20, 20..25, 40..65])));
    }

    proptest::proptest! {
        #[test]
        fn every_order_of_pieces_gives_the_file(pieces in proptest::collection::vec((0usize..64, 1usize..40), 1..20)) {
            let file: Vec<u8> = (0..64).collect();
            let mut fetched = FetchedRanges::new(64);
            let mut known = [false; 64];
            for (start, length) in pieces {
                let end = (start + length).min(64);
                fetched.provide(start as u64, Bytes::copy_from_slice(&file[start..end]));
                known[start..end].fill(true);
                for (at, known) in known.iter().enumerate() {
                    match fetched.get(at as u64, 1) {
                        Ok(bytes) => assert!(*known && bytes[..] == file[at..=at]),
                        Err(_) => assert!(!known),
                    }
                }
            }
        }
    }
}
