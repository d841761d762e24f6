//! The random numbers of the published benchmark: `std::mt19937` and libstdc++'s `std::uniform_int_distribution`.

use std::collections::BTreeSet;

/// Numbers of the state, and the distance of those that are mixed.
const STATE: usize = 624;
const DISTANCE: usize = 397;

/// `std::mt19937`: the Mersenne Twister of 32 bits (M. Matsumoto and T. Nishimura, 1998).
#[derive(Debug, Clone)]
pub struct Random {
    state: [u32; STATE],
    next: usize,
}

impl Random {
    /// A generator with a seed.
    pub fn new(seed: u32) -> Self {
        let mut state = [seed; STATE];
        for place in 1..STATE {
            let before = state[place - 1];
            state[place] = (before ^ before >> 30).wrapping_mul(1_812_433_253).wrapping_add(place as u32);
        }
        Self { state, next: STATE }
    }

    /// The next number.
    pub fn number(&mut self) -> u32 {
        if self.next == STATE {
            for place in 0..STATE {
                let both = self.state[place] & 1 << 31 | self.state[(place + 1) % STATE] & !(1 << 31);
                let mixed = both >> 1 ^ if both & 1 == 1 { 0x9908_b0df } else { 0 };
                self.state[place] = self.state[(place + DISTANCE) % STATE] ^ mixed;
            }
            self.next = 0;
        }
        let mut number = self.state[self.next];
        self.next += 1;
        number ^= number >> 11;
        number ^= number << 7 & 0x9d2c_5680;
        number ^= number << 15 & 0xefc6_0000;
        number ^ number >> 18
    }

    /// A number from 0 to `last`, as `std::uniform_int_distribution` of libstdc++ since GCC 11 draws it (D. Lemire, 2019).
    pub fn up_to(&mut self, last: u32) -> u32 {
        let Some(count) = last.checked_add(1) else { return self.number() };
        let product = |number: u32| u64::from(number) * u64::from(count);
        let mut drawn = product(self.number());
        if (drawn as u32) < count {
            let threshold = count.wrapping_neg() % count;
            while (drawn as u32) < threshold {
                drawn = product(self.number());
            }
        }
        (drawn >> 32) as u32
    }

    /// `count` different numbers below `end`, or all of them if `count` is larger, in ascending order. As published, each is
    /// drawn from 0 to `end`; if that gives `end` itself, another one is drawn.
    pub fn distinct(&mut self, count: u64, end: u64) -> Vec<u64> {
        let last = u32::try_from(end).unwrap_or(u32::MAX);
        if count >= u64::from(last) {
            return (0..end).collect();
        }
        // Few draws are repeated if the smaller part is drawn.
        let is_most = count > u64::from(last) / 2;
        let wanted = if is_most { u64::from(last) - count } else { count };
        let mut drawn = BTreeSet::new();
        while (drawn.len() as u64) < wanted {
            drawn.extend(Some(self.up_to(last)).filter(|number| *number < last).map(u64::from));
        }
        match is_most {
            true => (0..u64::from(last)).filter(|number| !drawn.contains(number)).collect(),
            false => drawn.into_iter().collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The ten thousandth number that the standard requires of `std::mt19937` with its default seed.
    #[test]
    fn numbers_are_those_of_the_standard() {
        let mut random = Random::new(5489);
        let last = (0..10_000).map(|_| random.number()).last();
        assert_eq!(last, Some(4_123_659_995));
    }

    /// Those that the published benchmark drew. It prints 84494 as the second one, presumably a misprint.
    #[test]
    fn entries_are_those_of_the_published_benchmark() {
        let mut random = Random::new(15);
        let drawn: Vec<u32> = (0..8).map(|_| random.up_to(110_000)).collect();
        assert_eq!(drawn, [93370, 89494, 19678, 65049, 5980, 12208, 39769, 90048]);
        let chosen = Random::new(15).distinct(8, 110_000);
        assert_eq!(chosen, [5980, 12208, 19678, 39769, 65049, 89494, 90048, 93370]);
    }

    #[test]
    fn numbers_are_different_and_ascend() {
        for (count, end) in [(0, 10), (3, 10), (9, 10), (10, 10), (11, 10), (1, 0), (700, 1000)] {
            let drawn = Random::new(7).distinct(count, end);
            assert_eq!(drawn.len() as u64, count.min(end), "{count} of {end}");
            assert!(drawn.is_sorted_by(|a, b| a < b) && drawn.iter().all(|number| *number < end));
        }
        assert_eq!(Random::new(1).up_to(u32::MAX), Random::new(1).number());
    }
}
