//! Index columns to Arrow offsets.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use arrow_buffer::{Buffer, OffsetBuffer, ScalarBuffer};
use tupelo_format::encoding::{self, Encoding};

use super::{Decoder, total};
use crate::schema::Field;
use crate::source::{Segment, Touch};
use crate::{Error, Result};

/// Memory of a list of segments for each of them and each field, in bytes: as they are, and with the offset before.
const SEGMENT_MEMORY: u64 = 2 * size_of::<Segment>() as u64;
/// Offsets of Arrow are signed, and two of them can be added.
const MAX_ITEMS: u64 = 1 << 62;

/// Offsets that are decoded, for fields that turn out to have the same. Members that are written as collections of their
/// own, as `Muon_pt` and `Muon_eta`, store the same offsets again and again: pages of the same checksum and size are
/// neither read nor decoded twice, and arrays that have the same offsets have them in common.
#[derive(Default)]
pub(super) struct Known(Mutex<HashMap<Vec<u64>, Offsets>>);

impl Known {
    fn get(&self, fingerprint: &[u64]) -> Option<Offsets> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(fingerprint).cloned()
    }

    fn put(&self, fingerprint: Vec<u64>, offsets: &Offsets) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(fingerprint, offsets.clone());
    }
}

/// End offsets of a collection's items in the output, and where the items lie.
#[derive(Clone)]
pub(super) struct Offsets {
    pub(super) buffer: OffsetBuffer<i64>,
    pub(super) items: Vec<Segment>,
}

impl Decoder<'_> {
    /// Decodes an index column. Stored offsets count from the start of the cluster, Arrow's from that of the output.
    pub(super) fn offsets(&mut self, field: &Field, segments: &[Segment]) -> Result<Offsets> {
        let count = total(field, segments)?;
        // The offset before a segment's first is where its first item begins.
        let before = |segment: &Segment| u64::from(segment.start > 0);
        let widened: Vec<Segment> = segments
            .iter()
            .map(|segment| Segment {
                start: segment.start - before(segment),
                count: segment.count + before(segment),
                ..*segment
            })
            .collect();
        self.check(field, 0, &widened)?;
        let touches = self.pages.touches(field, 0, &widened)?;
        let fingerprint = self.fingerprint(field, segments, &touches)?;
        self.pages.memory().take(SEGMENT_MEMORY * segments.len() as u64, "parts of clusters")?;
        if let Some(known) = fingerprint.as_deref().and_then(|fingerprint| self.known.get(fingerprint)) {
            return Ok(known);
        }
        let stored = total(field, &widened)?;
        let mut out = self.values(field, stored + 1, size_of::<u64>())?;
        // What is stored comes behind the first place, and moves to the front where offsets before are dropped.
        self.fill_touches(field, &touches, size_of::<u64>(), &mut out.bytes_mut()[size_of::<u64>()..], index)?;
        let numbers = out.numbers_mut::<u64>();
        numbers[0] = 0;
        let mut items: Vec<Segment> = Vec::with_capacity(segments.len());
        let (mut base, mut from, mut to) = (0u64, 1, 1);
        for segment in segments {
            let first = if segment.start > 0 { numbers[from] } else { 0 };
            from += before(segment) as usize;
            let count = segment.count as usize;
            let mine = &numbers[from..from + count];
            let last = mine.last().copied().unwrap_or(first);
            let end = last.checked_sub(first).and_then(|items| items.checked_add(base)).filter(|end| *end < MAX_ITEMS);
            let Some(end) = end else {
                return Err(match fall(mine, first) {
                    Some(fall) => self.goes_back(field, segment, fall),
                    None => self.corrupt(field, "an index column counts over 2^62 items"),
                });
            };
            // Mostly the numbers stand where they belong, and those of the first cluster are what they should be.
            if from != to {
                numbers.copy_within(from..from + count, to);
            }
            if first != base {
                numbers[to..to + count].iter_mut().for_each(|end| *end = end.wrapping_sub(first).wrapping_add(base));
            }
            let total = self.items_in_cluster(field, segment, last)?;
            items.push(Segment { start: first, count: last - first, total, per_entry: None, ..*segment });
            (base, from, to) = (end, from + count, to + count);
        }
        out.truncate((count + 1) * size_of::<u64>());
        let offsets = match rising(ScalarBuffer::from(Buffer::from(out))) {
            Ok(buffer) => Offsets { buffer, items },
            Err(numbers) => return Err(self.where_it_falls(field, segments, &items, &numbers[1..])),
        };
        if let Some(fingerprint) = fingerprint {
            self.pages.memory().take(size_of_val(&fingerprint[..]) as u64, "what tells offsets apart")?;
            self.known.put(fingerprint, &offsets);
        }
        Ok(offsets)
    }

    /// What tells the offsets of a field from others.
    fn fingerprint(&self, field: &Field, segments: &[Segment], touches: &[Touch]) -> Result<Option<Vec<u64>>> {
        // Where columns below may be deferred, more of the column is looked at than the segments.
        if self.nested_deferred {
            return Ok(None);
        }
        let fingerprint = self.pages.fingerprint(touches).map_err(|e| self.pages.named(field, e))?;
        Ok(fingerprint.map(|mut numbers| {
            for segment in segments {
                let total = segment.total.unwrap_or(u64::MAX);
                numbers.extend([segment.cluster.number, segment.start, segment.count, total]);
            }
            numbers
        }))
    }

    /// How many items a collection has in the whole cluster, where the segment tells. Where columns below may be deferred
    /// it must be known, and so is looked up.
    fn items_in_cluster(&mut self, field: &Field, segment: &Segment, last: u64) -> Result<Option<u64>> {
        match segment.total {
            Some(total) if segment.start + segment.count == total => Ok(Some(last)),
            Some(total) if self.nested_deferred => {
                let end = Segment { start: total - 1, count: 1, ..*segment };
                Ok(self.numbers(field, 0, &[end], size_of::<u64>(), index)?.numbers_mut().first().copied())
            }
            _ => Ok(None),
        }
    }

    #[cold]
    fn where_it_falls(&self, field: &Field, segments: &[Segment], items: &[Segment], mut ends: &[i64]) -> Error {
        let mut base = 0;
        for (segment, items) in segments.iter().zip(items) {
            let (mine, others) = ends.split_at(segment.count as usize);
            let as_stored = |end: &i64| end.cast_unsigned().wrapping_sub(base).wrapping_add(items.start);
            let stored: Vec<u64> = mine.iter().map(as_stored).collect();
            if let Some(fall) = fall(&stored, items.start) {
                return self.goes_back(field, segment, fall);
            }
            (base, ends) = (base + items.count, others);
        }
        self.corrupt(field, "an index column goes back")
    }

    #[cold]
    fn goes_back(&self, field: &Field, segment: &Segment, (before, end): (u64, u64)) -> Error {
        let cluster = segment.cluster.number;
        self.corrupt(field, &format!("an index column goes back from {before} to {end} in cluster {cluster}"))
    }
}

/// The offsets, if none is smaller than the one before it; they begin with zero.
#[expect(unsafe_code, reason = "Arrow would look at all of them once more: a tenth of reading jagged columns")]
fn rising(offsets: ScalarBuffer<i64>) -> Result<OffsetBuffer<i64>, ScalarBuffer<i64>> {
    // Without a branch the compiler compares several at a time.
    let is_rising = offsets.windows(2).fold(true, |is_rising, pair| is_rising & (pair[0] <= pair[1]));
    if !is_rising || offsets.first() != Some(&0) {
        return Err(offsets);
    }
    // SAFETY: that there is one, that none is negative and that they rise is what the function asks for.
    Ok(unsafe { OffsetBuffer::new_unchecked(offsets) })
}

/// The first of the numbers that is smaller than the one before it, and that one; `first` comes before them all.
fn fall(numbers: &[u64], mut first: u64) -> Option<(u64, u64)> {
    let mut steps = numbers.iter().map(|&end| (std::mem::replace(&mut first, end), end));
    steps.find(|(before, end)| end < before)
}

fn index(encoding: &Encoding, packed: &[u8], out: &mut [u8]) -> tupelo_format::Result<()> {
    encoding::decode_index(encoding, packed, bytemuck::cast_slice_mut(out))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_offsets_that_rise_from_zero_pass() {
        for good in [vec![0], vec![0, 0], vec![0, 3, 3, i64::MAX]] {
            assert_eq!(rising(good.clone().into()).unwrap().to_vec(), good);
        }
        for bad in [vec![], vec![1], vec![-1, 2], vec![0, 2, 1], vec![0, i64::MIN], vec![0, 1, 2, 3, 4, 5, 6, 7, 3]] {
            assert!(rising(bad.clone().into()).is_err(), "{bad:?}");
        }
        assert_eq!((fall(&[1, 1, 2], 1), fall(&[1, 0], 0), fall(&[1], 2)), (None, Some((1, 0)), Some((2, 1))));
    }
}
