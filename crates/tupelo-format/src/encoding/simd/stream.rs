//! Non-temporal stores, which bypass the caches. An ordinary store loads the cache line that it changes and evicts
//! another one. For values that are not read soon, this doubles the memory traffic without benefit.

use super::LANES;

/// Fills the front of `out` with the blocks that `next` returns for consecutive indexes, until it returns `None` or
/// `out` is full. Returns the number of indexes stored, which is 0 on other processors and if `out` is not aligned.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[expect(unsafe_code, reason = "no safe code asks for such a store: a sixth of all time of large reads")]
#[inline(always)]
pub(in super::super) fn stream<const N: usize>(
    out: &mut [u8],
    mut next: impl FnMut(usize) -> Option<[[u8; LANES]; N]>,
) -> usize {
    use std::arch::x86_64::{__m128i, _mm_sfence, _mm_stream_si128};

    let (before, registers, _) = bytemuck::pod_align_to_mut::<u8, __m128i>(out);
    if !before.is_empty() {
        return 0;
    }
    let mut done = 0;
    for registers in registers.as_chunks_mut::<N>().0 {
        let Some(blocks) = next(done) else { break };
        for (register, block) in registers.iter_mut().zip(blocks) {
            // SAFETY: SSE2 is part of x86-64, and a reference is aligned and may be written.
            unsafe { _mm_stream_si128(register, bytemuck::must_cast(block)) };
        }
        done += 1;
    }
    // SAFETY: SSE is part of x86-64; no other reference to `out` exists before the fence.
    unsafe { _mm_sfence() };
    done
}

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
#[inline(always)]
pub(in super::super) fn stream<const N: usize>(
    _: &mut [u8],
    _: impl FnMut(usize) -> Option<[[u8; LANES]; N]>,
) -> usize {
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_come_in_order_and_no_further_than_there_is_room() {
        for (offset, len) in [(0, 0), (0, 31), (0, 32), (0, 100), (1, 100), (16, 64)] {
            let mut words = [0_u128; 16];
            let out = &mut bytemuck::must_cast_slice_mut::<_, u8>(&mut words)[offset..offset + len];
            let done = stream(out, |index| (index < 2).then_some([[index as u8 + 1; LANES]; 2]));
            let expected =
                if offset == 1 || cfg!(any(miri, not(target_arch = "x86_64"))) { 0 } else { (len / 32).min(2) };
            assert_eq!(done, expected, "{len} bytes at {offset}");
            let value = |at: usize| if at < 32 * done { at as u8 / 32 + 1 } else { 0 };
            assert!(out.iter().enumerate().all(|(at, &byte)| byte == value(at)));
        }
    }
}
