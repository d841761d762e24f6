//! Half precision by the instructions that x86-64 has had since 2012, found at run time.

use crate::encoding::halves::{BLOCK, from_single, to_single};

/// Half precision to single.
#[cfg_attr(
    target_arch = "x86_64",
    expect(unsafe_code, reason = "four times as fast as what compilers make of the loop")
)]
pub(in crate::encoding) fn to_singles(halves: &[u16; BLOCK], singles: &mut [f32; BLOCK]) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx") && is_x86_feature_detected!("f16c") {
        // SAFETY: the processor has the instructions that the function is compiled for.
        return unsafe { x86::to_singles(halves, singles) };
    }
    for (single, half) in singles.iter_mut().zip(halves) {
        *single = to_single(*half);
    }
}

/// Single precision to half, to nearest even.
#[cfg_attr(
    target_arch = "x86_64",
    expect(unsafe_code, reason = "four times as fast as what compilers make of the loop")
)]
pub(in crate::encoding) fn from_singles(singles: &[f32; BLOCK], halves: &mut [u16; BLOCK]) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx") && is_x86_feature_detected!("f16c") {
        // SAFETY: the processor has the instructions that the function is compiled for.
        return unsafe { x86::from_singles(singles, halves) };
    }
    for (half, single) in halves.iter_mut().zip(singles) {
        *half = from_single(*single);
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{_MM_FROUND_TO_NEAREST_INT, _mm256_cvtph_ps, _mm256_cvtps_ph};

    use super::BLOCK;

    const LANES: usize = 8;

    #[target_feature(enable = "avx,f16c")]
    pub(super) fn to_singles(halves: &[u16; BLOCK], singles: &mut [f32; BLOCK]) {
        for (half, single) in halves.as_chunks::<LANES>().0.iter().zip(singles.as_chunks_mut().0) {
            let converted: [f32; LANES] = bytemuck::must_cast(_mm256_cvtph_ps(bytemuck::must_cast(*half)));
            *single = converted;
        }
    }

    #[target_feature(enable = "avx,f16c")]
    pub(super) fn from_singles(singles: &[f32; BLOCK], halves: &mut [u16; BLOCK]) {
        for (single, half) in singles.as_chunks::<LANES>().0.iter().zip(halves.as_chunks_mut().0) {
            let rounded = _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(bytemuck::must_cast(*single));
            let converted: [u16; LANES] = bytemuck::must_cast(rounded);
            *half = converted;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn assert_same(halves: &[u16; BLOCK]) {
        let mut singles = [0.0; BLOCK];
        to_singles(halves, &mut singles);
        assert_eq!(singles.map(f32::to_bits), halves.map(|half| to_single(half).to_bits()));
    }

    #[test]
    fn every_half_converts_as_specified() {
        for high in 0..=u8::MAX {
            assert_same(&std::array::from_fn(|low| u16::from_le_bytes([low as u8, high])));
        }
    }

    proptest! {
        #[test]
        fn singles_are_rounded_as_the_specification_says(bits in prop::collection::vec(any::<u32>(), BLOCK)) {
            let singles: [f32; BLOCK] = std::array::from_fn(|index| f32::from_bits(bits[index]));
            let mut halves = [0; BLOCK];
            from_singles(&singles, &mut halves);
            prop_assert_eq!(halves, singles.map(from_single));
        }
    }
}
