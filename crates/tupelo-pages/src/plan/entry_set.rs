//! The entries of a request.

use std::ops::Range;

/// Entries of a source: ascending ranges that are not empty and do not touch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EntrySet {
    ranges: Vec<Range<u64>>,
    len: u64,
}

impl From<Range<u64>> for EntrySet {
    fn from(range: Range<u64>) -> Self {
        std::iter::once(range).collect()
    }
}

/// From ranges that ascend.
impl FromIterator<Range<u64>> for EntrySet {
    fn from_iter<I: IntoIterator<Item = Range<u64>>>(ranges: I) -> Self {
        let mut set = Self::default();
        for range in ranges {
            if range.is_empty() {
                continue;
            }
            set.len += range.end - range.start;
            match set.ranges.last_mut().filter(|last| last.end == range.start) {
                Some(last) => last.end = range.end,
                None => set.ranges.push(range),
            }
        }
        set
    }
}

impl EntrySet {
    /// Number of entries.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The entries as ranges, in order.
    pub fn ranges(&self) -> &[Range<u64>] {
        &self.ranges
    }

    /// The range from the first to the last entry.
    pub fn span(&self) -> Range<u64> {
        let start = self.ranges.first().map_or(0, |first| first.start);
        start..self.ranges.last().map_or(start, |last| last.end)
    }

    /// The entries, if they follow each other.
    pub fn as_range(&self) -> Option<Range<u64>> {
        (self.ranges.len() <= 1).then(|| self.span())
    }

    /// The entries in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u64> {
        self.ranges.iter().cloned().flatten()
    }

    /// The entry at a place among the entries of the set; the place itself if it is past the last one.
    pub fn get(&self, place: u64) -> u64 {
        let mut before = 0;
        for range in &self.ranges {
            let len = range.end - range.start;
            if place - before < len {
                return range.start + place - before;
            }
            before += len;
        }
        place
    }

    /// The entries at ranges of places, which ascend.
    pub fn at(&self, places: impl IntoIterator<Item = Range<u64>>) -> Self {
        let mut places = places.into_iter().peekable();
        let mut chosen = Vec::new();
        let mut before = 0;
        for range in &self.ranges {
            let until = before + range.end - range.start;
            while let Some(place) = places.peek() {
                let (from, to) = (place.start.max(before), place.end.min(until));
                if from < to {
                    chosen.push(range.start + from - before..range.start + to - before);
                }
                if place.end > until {
                    break;
                }
                places.next();
            }
            before = until;
        }
        chosen.into_iter().collect()
    }

    /// Gives the place of an entry among those of the set; none of one that is not in it.
    pub fn places(&self) -> impl Fn(u64) -> Option<u64> {
        let befores: Vec<u64> = self
            .ranges
            .iter()
            .scan(0, |before, range| Some(std::mem::replace(before, *before + range.end - range.start)))
            .collect();
        move |entry| {
            let number = self.ranges.partition_point(|own| own.end <= entry);
            let (range, before) = self.ranges.get(number).zip(befores.get(number))?;
            Some(before + entry.checked_sub(range.start)?)
        }
    }

    /// Whether some entries are in a range.
    pub fn meets(&self, range: &Range<u64>) -> bool {
        let first = self.ranges.partition_point(|own| own.end <= range.start);
        self.ranges.get(first).is_some_and(|own| own.start < range.end && !range.is_empty())
    }

    /// The entries within a range.
    pub fn within(&self, range: &Range<u64>) -> Self {
        let first = self.ranges.partition_point(|own| own.end <= range.start);
        let own = self.ranges[first..].iter().take_while(|own| own.start < range.end);
        own.map(|own| own.start.max(range.start)..own.end.min(range.end)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(ranges: &[Range<u64>]) -> EntrySet {
        ranges.iter().cloned().collect()
    }

    #[test]
    fn ranges_that_touch_become_one() {
        let entries = set(&[1..3, 3..3, 3..5, 8..9]);
        assert_eq!((entries.ranges(), entries.len()), (&[1..5, 8..9][..], 5));
        assert_eq!((entries.span(), entries.as_range()), (1..9, None));
        assert_eq!(entries.iter().collect::<Vec<_>>(), [1, 2, 3, 4, 8]);
        assert_eq!(EntrySet::from(4..9).as_range(), Some(4..9));
        assert_eq!((EntrySet::default().as_range(), EntrySet::from(7..7).len()), (Some(0..0), 0));
    }

    #[test]
    fn places_count_through_all_ranges() {
        let entries = set(&[1..3, 8..12, 20..25]);
        assert_eq!([0, 1, 2, 5, 6, 10].map(|place| entries.get(place)), [1, 2, 8, 11, 20, 24]);
        assert_eq!(entries.at([0..1, 1..4, 5..8, 10..11]), set(&[1..3, 8..10, 11..12, 20..22, 24..25]));
        assert_eq!(entries.at([]), EntrySet::default());
        let places = entries.places();
        assert_eq!(
            [0, 1, 2, 3, 8, 11, 24, 25].map(places),
            [None, Some(0), Some(1), None, Some(2), Some(5), Some(10), None]
        );
    }

    #[test]
    fn a_part_is_within_a_range() {
        let entries = set(&[1..3, 8..12, 20..25]);
        assert_eq!(entries.within(&(2..10)), set(&[2..3, 8..10]));
        assert_eq!(entries.within(&(3..8)), EntrySet::default());
        assert_eq!(entries.within(&(0..100)), entries);
        let meets = [0..1, 0..2, 2..3, 3..8, 3..9, 24..30, 25..30, 9..9].map(|range| entries.meets(&range));
        assert_eq!(meets, [false, true, true, false, true, true, false, false]);
    }
}
