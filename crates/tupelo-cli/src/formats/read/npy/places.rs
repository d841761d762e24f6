//! Where values are in the bytes of an array.

/// Places at regular distances, as NumPy's strides are.
#[derive(Debug, Clone)]
pub(in crate::formats::read) struct Places {
    first: usize,
    /// Numbers of places and the bytes from one to the next, from the outermost to the innermost.
    axes: Vec<(usize, usize)>,
}

impl Places {
    /// The places of entries, from the first byte on.
    pub(in crate::formats::read) fn of_entries(count: usize, entry_bytes: usize) -> Self {
        Self { first: 0, axes: vec![(count, entry_bytes)] }
    }

    /// The places of a member in each value.
    pub(in crate::formats::read) fn at(&self, offset: usize) -> Self {
        Self { first: self.first.saturating_add(offset), axes: self.axes.clone() }
    }

    /// The places of `count` items in each value.
    pub(super) fn items(&self, count: usize, width: usize) -> Self {
        let mut axes = self.axes.clone();
        match axes.last_mut() {
            // Items of neighbours follow each other: long runs are fast.
            Some(last) if Some(last.1) == count.checked_mul(width) => *last = (last.0.saturating_mul(count), width),
            _ => axes.push((count, width)),
        }
        Self { first: self.first, axes }
    }

    /// Number of places.
    pub(super) fn count(&self) -> usize {
        self.axes.iter().fold(1, |all, (count, _)| all.saturating_mul(*count))
    }

    /// Each place.
    pub(super) fn starts(&self) -> impl Iterator<Item = usize> {
        self.runs().flat_map(|(start, count, distance)| (0..count).map(move |number| start + number * distance))
    }

    /// The values at all places; `None` if one is outside of the bytes.
    pub(super) fn all<T, const WIDTH: usize>(&self, bytes: &[u8], from: impl Fn([u8; WIDTH]) -> T) -> Option<Vec<T>> {
        let mut values = Vec::with_capacity(self.count().min(bytes.len() / WIDTH));
        for (start, count, distance) in self.runs() {
            if distance == WIDTH {
                let (chunks, _) = bytes.get(start..)?.as_chunks();
                let run = chunks.get(..count)?;
                values.extend(run.iter().map(|bytes| from(*bytes)));
                continue;
            }
            for number in 0..count {
                values.push(from(*bytes.get(start + number * distance..)?.first_chunk()?));
            }
        }
        Some(values)
    }

    /// Runs of places: the first, their number, and the bytes from one to the next.
    fn runs(&self) -> impl Iterator<Item = (usize, usize, usize)> {
        let (&(count, distance), outer) = self.axes.split_last().unwrap_or((&(1, 0), &[]));
        let runs = outer.iter().fold(1usize, |all, (count, _)| all.saturating_mul(*count));
        (0..runs).map(move |mut number| {
            let mut start = self.first;
            for (count, distance) in outer.iter().rev() {
                start += number % count * distance;
                number /= count;
            }
            (start, count, distance)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_one_run() {
        let entries = Places::of_entries(3, 12);
        let items = entries.items(3, 4).items(2, 2);
        assert_eq!(items.axes, [(18, 2)]);
        assert!(items.starts().eq((0..36).step_by(2)));
    }

    #[test]
    fn members_are_apart() {
        let entries = Places::of_entries(2, 10);
        let items = entries.at(1).items(2, 4).at(1).items(3, 1);
        assert_eq!((items.count(), items.axes.len()), (12, 3));
        let starts: Vec<usize> = items.starts().collect();
        assert_eq!(starts, [2, 3, 4, 6, 7, 8, 12, 13, 14, 16, 17, 18]);
        let bytes: Vec<u8> = (0..19).collect();
        assert_eq!(items.all(&bytes, |[byte]| usize::from(byte)), Some(starts));
        assert_eq!(items.all(&bytes[..18], |[byte]| byte), None);
        assert_eq!(Places::of_entries(5, 0).at(30).all(&bytes, |[byte]| byte), None);
    }
}
