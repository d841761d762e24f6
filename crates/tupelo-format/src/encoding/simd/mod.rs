//! Where an instruction does what no compiler makes of a loop. Each has its portable twin, which is its specification.
//!
//! Split encoding is made of one shuffle, the interleaving of the two halves of some blocks, byte by byte. With sixteen
//! bytes from each of two planes it joins them to 16-bit integers; with four planes two interleavings make 32-bit integers,
//! with eight planes three make 64-bit integers. Four more interleavings restore the order of sixteen elements, and so
//! these four split integers.

mod f16c;
mod stream;

pub(super) use f16c::{from_singles, to_singles};
pub(super) use stream::stream;

/// Bytes of a block: those of one vector register.
pub(super) const LANES: usize = 16;

/// Blocks whose two halves can be interleaved.
pub(super) trait Interleave {
    /// Interleaves the first half and the second one, byte by byte.
    fn interleave(self) -> Self;
}

// One after the other: even where compilers do not inline across units, loops over iterators would stay loops.
impl Interleave for [[u8; LANES]; 2] {
    #[inline(always)]
    fn interleave(self) -> Self {
        let [a, b] = self;
        zip(a, b)
    }
}

impl Interleave for [[u8; LANES]; 4] {
    #[inline(always)]
    fn interleave(self) -> Self {
        let [a, b, c, d] = self;
        let ([p, q], [r, s]) = (zip(a, c), zip(b, d));
        [p, q, r, s]
    }
}

impl Interleave for [[u8; LANES]; 8] {
    #[inline(always)]
    fn interleave(self) -> Self {
        let [a, b, c, d, e, f, g, h] = self;
        let ([p, q], [r, s], [t, u], [v, w]) = (zip(a, e), zip(b, f), zip(c, g), zip(d, h));
        [p, q, r, s, t, u, v, w]
    }
}

/// Every x86-64 has this instruction, so that nothing needs to be detected.
#[cfg(target_arch = "x86_64")]
#[expect(unsafe_code, reason = "compilers do not find it: eight times as fast as the portable loop")]
#[inline(always)]
fn zip(first: [u8; LANES], second: [u8; LANES]) -> [[u8; LANES]; 2] {
    use std::arch::x86_64::{__m128i, _mm_unpackhi_epi8, _mm_unpacklo_epi8};

    let (first, second): (__m128i, __m128i) = (bytemuck::must_cast(first), bytemuck::must_cast(second));
    // SAFETY: SSE2 is part of x86-64, and the intrinsics touch no memory.
    let (low, high) = unsafe { (_mm_unpacklo_epi8(first, second), _mm_unpackhi_epi8(first, second)) };
    [bytemuck::must_cast(low), bytemuck::must_cast(high)]
}

/// Every AArch64, too.
#[cfg(target_arch = "aarch64")]
#[expect(unsafe_code, reason = "compilers do not find it")]
#[inline(always)]
fn zip(first: [u8; LANES], second: [u8; LANES]) -> [[u8; LANES]; 2] {
    use std::arch::aarch64::{uint8x16_t, vzip1q_u8, vzip2q_u8};

    let (first, second): (uint8x16_t, uint8x16_t) = (bytemuck::must_cast(first), bytemuck::must_cast(second));
    // SAFETY: NEON is part of AArch64, and the intrinsics touch no memory.
    let (low, high) = unsafe { (vzip1q_u8(first, second), vzip2q_u8(first, second)) };
    [bytemuck::must_cast(low), bytemuck::must_cast(high)]
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
use portable_zip as zip;

#[cfg(any(test, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
#[inline(always)]
fn portable_zip(first: [u8; LANES], second: [u8; LANES]) -> [[u8; LANES]; 2] {
    let mut out = [[0; LANES]; 2];
    for ((out, first), second) in out.as_flattened_mut().as_chunks_mut().0.iter_mut().zip(first).zip(second) {
        *out = [first, second];
    }
    out
}

/// The elements of a block.
#[inline(always)]
pub(super) fn cut<const BYTES: usize, const COUNT: usize>(block: [u8; LANES]) -> [[u8; BYTES]; COUNT] {
    bytemuck::must_cast(block)
}

/// The block of some elements.
#[inline(always)]
pub(super) fn paste<const BYTES: usize, const COUNT: usize>(elements: [[u8; BYTES]; COUNT]) -> [u8; LANES] {
    bytemuck::must_cast(elements)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn instructions_match_the_portable_loop(first: [u8; LANES], second: [u8; LANES]) {
            prop_assert_eq!(zip(first, second), portable_zip(first, second));
        }

        #[test]
        fn seven_interleavings_of_eight_blocks_restore_the_order(deck: [[u8; LANES]; 8]) {
            let turned = (0..7).fold(deck, |deck, _| deck.interleave());
            prop_assert_eq!(turned, deck);
        }
    }
}
