//! Bloom filters of integers.

use std::collections::BTreeSet;

use arrow_buffer::ScalarBuffer;
use tupelo_format::checksum::xxh3;

/// Bits for each different value: of the values that were not added, about one in a hundred seems to be there.
const BITS_PER_VALUE: usize = 10;
/// Bits that a value sets.
const HASHES: u64 = 7;

/// Which integers some entries may have. Without bits, all of them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Bloom(ScalarBuffer<u64>);

impl Bloom {
    /// The filter with these [`words`](Self::words).
    pub fn from_words(words: ScalarBuffer<u64>) -> Self {
        Self(words)
    }

    /// Its bits, in words of 64.
    pub fn words(&self) -> &[u64] {
        &self.0
    }

    /// The filter of values, each as 64 bits.
    pub fn of(values: impl IntoIterator<Item = i128>) -> Self {
        let values: BTreeSet<u64> = values.into_iter().map(|value| value as u64).collect();
        // Also the filter of no values has bits.
        let mut words = vec![0; (values.len() * BITS_PER_VALUE).div_ceil(64).max(1)];
        for value in values {
            for (word, bit) in places(value, words.len()) {
                words[word] |= bit;
            }
        }
        Self(words.into())
    }

    /// False if the value was not added.
    pub fn may_contain(&self, value: i128) -> bool {
        self.0.is_empty() || places(value as u64, self.0.len()).all(|(word, bit)| self.0[word] & bit != 0)
    }
}

/// The words and bits of a value in a filter of so many words.
fn places(value: u64, words: usize) -> impl Iterator<Item = (usize, u64)> {
    let (hash, bits) = (xxh3(&value.to_le_bytes()), words as u64 * 64);
    let (first, step) = (hash & 0xffff_ffff, hash >> 32 | 1);
    (0..HASHES).map(move |number| {
        let place = (first + number * step) % bits;
        ((place / 64) as usize, 1 << (place % 64))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_were_added_are_contained_and_few_others() {
        for count in [0, 1, 100, 8192] {
            let values = (0..count).map(|number| i128::from(number) * 7919 - 1000);
            let filter = Bloom::of(values.clone());
            assert!(values.clone().all(|value| filter.may_contain(value)));
            let wrong = (0..10_000).filter(|number| filter.may_contain(number * 7919 + 1)).count();
            assert!(wrong < 300, "{count}: {wrong}");
            assert!(filter.0.len() * 64 < count as usize * 10 + 128);
        }
        assert!(Bloom::default().may_contain(5));
    }
}
