//! Half precision (IEEE 754 binary16) to single precision and back. The conversion of a number has no branches, so that
//! loops over blocks become vector instructions on every processor; most have one for just this.

use super::scalar::{self, Word};
use super::simd;

/// Elements in flight between two steps: few enough to stay in L1, enough for long loops.
pub(super) const BLOCK: usize = 256;

const SIGN: u32 = 0x8000;
/// Exponent of infinities and of what is not a number, and the bit that keeps the latter quiet.
const INFINITE: u32 = 0x7c00;
const QUIET: u32 = 0x0200;
/// Bits by which a mantissa grows, and the difference of the two exponents' zeros in its place.
const SHIFT: u32 = 13;
const BIAS: u32 = (127 - 15) << 23;
/// Bits of the smallest normal half-precision number and of the smallest that is too large, in single precision.
const NORMAL: u32 = (127 - 14) << 23;
const OVERFLOW: u32 = (127 + 16) << 23;
/// Adding 0.5 leaves the step of half-precision subnormals, 2^-24, as that of the sum.
const SUBNORMAL_MAGIC: f32 = 0.5;

/// Reads half-precision numbers.
pub(super) fn decode<T>(split: bool, packed: &[u8], out: &mut [T], number: impl Fn(f32) -> T) {
    let (mut plain, [mut low, mut high]) = (packed, scalar::planes::<2>(packed));
    let (mut halves, mut singles) = ([0; BLOCK], [0.0; BLOCK]);
    for out in out.chunks_mut(BLOCK) {
        if split {
            let [low, high] = [&mut low, &mut high].map(|plane| plane.split_off(..out.len()).unwrap_or_default());
            for ((half, low), high) in halves.iter_mut().zip(low).zip(high) {
                *half = u16::from_le_bytes([*low, *high]);
            }
        } else {
            u16::load(plain.split_off(..2 * out.len()).unwrap_or_default(), &mut halves, |half| half);
        }
        simd::to_singles(&halves, &mut singles);
        for (out, single) in out.iter_mut().zip(&singles) {
            *out = number(*single);
        }
    }
}

/// Writes half-precision numbers, rounded to nearest even.
pub(super) fn encode<T: Copy>(split: bool, values: &[T], out: &mut [u8], single: impl Fn(T) -> f32) {
    let (mut halves, mut singles) = ([0; BLOCK], [0.0; BLOCK]);
    let (mut out, mut high) = if split { out.split_at_mut(out.len() / 2) } else { (out, Default::default()) };
    for values in values.chunks(BLOCK) {
        for (single_out, value) in singles.iter_mut().zip(values) {
            *single_out = single(*value);
        }
        simd::from_singles(&singles, &mut halves);
        if split {
            let [low, high] =
                [&mut out, &mut high].map(|plane| plane.split_off_mut(..values.len()).unwrap_or_default());
            for ((half, low), high) in halves.iter().zip(low).zip(high) {
                [*low, *high] = half.to_le_bytes();
            }
        } else {
            u16::store(&halves, out.split_off_mut(..2 * values.len()).unwrap_or_default(), |half| half);
        }
    }
}

/// One number, as the specification of the instruction.
#[inline(always)]
pub(super) fn to_single(half: u16) -> f32 {
    let half = u32::from(half);
    let (sign, rest) = ((half & SIGN) << 16, half & !SIGN);
    // Whole steps of the smallest number: exact, and never subnormal in single precision.
    let subnormal = (rest as i32 as f32 * 2.0_f32.powi(-24)).to_bits();
    let normal = (rest << SHIFT) + BIAS;
    let quiet = if rest > INFINITE { QUIET << SHIFT } else { 0 };
    let infinite = (normal + BIAS) | quiet;
    let bits = if rest >= INFINITE { infinite } else { normal };
    f32::from_bits(sign | if rest < 1 << 10 { subnormal } else { bits })
}

/// One number, as the specification of the instruction.
#[inline(always)]
pub(super) fn from_single(single: f32) -> u16 {
    let bits = single.to_bits();
    let (sign, rest) = (bits >> 16 & SIGN, bits & !(SIGN << 16));
    let subnormal = (f32::from_bits(rest) + SUBNORMAL_MAGIC).to_bits().wrapping_sub(SUBNORMAL_MAGIC.to_bits());
    // Half a step less, or exactly half a step where the last bit that stays is odd.
    let odd = rest >> SHIFT & 1;
    let normal = rest.wrapping_sub(BIAS).wrapping_add((1 << (SHIFT - 1)) - 1 + odd) >> SHIFT;
    let not_a_number = INFINITE | QUIET | rest >> SHIFT & (QUIET - 1);
    let large = if rest > f32::INFINITY.to_bits() { not_a_number } else { INFINITE };
    let finite = if rest < NORMAL { subnormal } else { normal };
    (sign | if rest >= OVERFLOW { large } else { finite }) as u16
}

#[cfg(test)]
mod tests {
    use half::f16;
    use proptest::prelude::*;

    use super::*;

    /// Every half-precision number, and all that lies between it and the next ones as far as rounding can tell.
    #[test]
    fn every_number_converts_as_in_the_half_crate() {
        for bits in 0..=u16::MAX {
            let single = f16::from_bits(bits).to_f32();
            assert_eq!(to_single(bits).to_bits(), single.to_bits(), "{bits:04x}");
            for step in [0, 1, 0x0fff, 0x1000, 0x1001, 0x1fff] {
                let near = f32::from_bits(single.to_bits().wrapping_add(step));
                assert_eq!(from_single(near), f16::from_f32(near).to_bits(), "{near:e}");
            }
        }
    }

    proptest! {
        #[test]
        fn any_number_is_rounded_as_by_the_half_crate(bits: u32) {
            let single = f32::from_bits(bits);
            prop_assert_eq!(from_single(single), f16::from_f32(single).to_bits());
        }
    }
}
