//! The kernels: what the encodings mean, in plain loops over whole slices that the compiler can vectorise.
//!
//! Callers have checked all lengths; a wrong one cuts the work short, it never panics. This is the one room besides
//! `wire` that makes integers of bytes, as its loops need whole pages of them.

use super::simd::{self, Interleave, LANES};

/// Bytes of one Switch element: 64-bit index, then 32-bit tag.
pub(super) const SWITCH_BYTES: usize = 12;

/// A little-endian unsigned integer as wide as the elements of a page.
///
/// Split encoding stores all lowest bytes first, then all second bytes, and so on: as many planes as an integer has
/// bytes. Sixteen elements at a time are [interleaved](Interleave::interleave) or deinterleaved; the remainder of a
/// page is processed byte by byte.
pub(super) trait Word: Copy + Sized {
    /// Reads plain elements.
    fn load<T>(packed: &[u8], out: &mut [T], element: impl FnMut(Self) -> T);
    /// Reads split elements, in their order.
    fn unsplit<T>(packed: &[u8], out: &mut [T], element: impl FnMut(Self) -> T);
    /// Reads split elements, in their order, to little-endian ones of the same width; past the caches where that is
    /// possible.
    fn unsplit_past_caches(packed: &[u8], out: &mut [u8], element: impl FnMut(Self) -> Self);
    /// Writes plain elements.
    fn store<T: Copy>(values: &[T], out: &mut [u8], word: impl FnMut(T) -> Self);
    /// Writes split elements, in their order.
    fn split<T: Copy>(values: &[T], out: &mut [u8], word: impl FnMut(T) -> Self);
    /// Two's complement to 0, -1, 1, -2, …
    fn zigzag(self) -> Self;
    /// And back.
    fn unzigzag(self) -> Self;
}

/// `$plane` are names for the planes, `$interleave` is said once for each interleave that joins them.
macro_rules! word {
    ($word:ty, [$($plane:ident)*], $($interleave:ident)*) => {
        impl Word for $word {
            #[inline(always)]
            fn load<T>(packed: &[u8], out: &mut [T], mut element: impl FnMut(Self) -> T) {
                for (out, bytes) in out.iter_mut().zip(packed.as_chunks().0) {
                    *out = element(<$word>::from_le_bytes(*bytes));
                }
            }

            #[inline(always)]
            fn store<T: Copy>(values: &[T], out: &mut [u8], mut word: impl FnMut(T) -> Self) {
                for (out, value) in out.as_chunks_mut().0.iter_mut().zip(values) {
                    *out = word(*value).to_le_bytes();
                }
            }

            #[inline(always)]
            fn unsplit<T>(packed: &[u8], out: &mut [T], mut element: impl FnMut(Self) -> T) {
                let planes: [&[u8]; size_of::<$word>()] = planes(packed);
                let (blocks, rest) = out.as_chunks_mut::<LANES>();
                let done = blocks.len() * LANES;
                let [$($plane),*] = planes.map(|plane| plane.as_chunks::<LANES>().0);
                for (index, elements) in blocks.iter_mut().enumerate() {
                    let ($(Some($plane)),*) = ($($plane.get(index)),*) else { return };
                    let joined = [$(*$plane),*]$(.$interleave())*;
                    for (out, bytes) in elements.as_chunks_mut().0.iter_mut().zip(joined) {
                        let words: [[u8; size_of::<$word>()]; LANES / size_of::<$word>()] = simd::cut(bytes);
                        let out: &mut [T; LANES / size_of::<$word>()] = out;
                        for (out, bytes) in out.iter_mut().zip(words) {
                            *out = element(<$word>::from_le_bytes(bytes));
                        }
                    }
                }
                for (index, out) in rest.iter_mut().enumerate() {
                    let bytes = planes.map(|plane| plane.get(done + index).copied().unwrap_or_default());
                    *out = element(<$word>::from_le_bytes(bytes));
                }
            }

            #[inline(always)]
            fn unsplit_past_caches(packed: &[u8], out: &mut [u8], mut element: impl FnMut(Self) -> Self) {
                const WIDTH: usize = size_of::<$word>();
                let mut bytes = |bytes| element(<$word>::from_le_bytes(bytes)).to_le_bytes();
                let planes: [&[u8]; WIDTH] = planes(packed);
                let [$($plane),*] = planes.map(|plane| plane.as_chunks::<LANES>().0);
                let done = LANES * simd::stream(out, |index| {
                    let joined = [$(*$plane.get(index)?),*]$(.$interleave())*;
                    Some(joined.map(|block| {
                        let words: [[u8; WIDTH]; LANES / WIDTH] = simd::cut(block);
                        simd::paste(words.map(&mut bytes))
                    }))
                });
                let rest = out.get_mut(done * WIDTH..).unwrap_or_default();
                if done == 0 {
                    return Self::unsplit(packed, rest.as_chunks_mut().0, |word| bytes(word.to_le_bytes()));
                }
                for (index, out) in rest.as_chunks_mut().0.iter_mut().enumerate() {
                    *out = bytes(planes.map(|plane| plane.get(done + index).copied().unwrap_or_default()));
                }
            }

            #[inline(always)]
            fn split<T: Copy>(values: &[T], out: &mut [u8], mut word: impl FnMut(T) -> Self) {
                let mut planes: [&mut [u8]; size_of::<$word>()] = planes_mut(out);
                let (blocks, rest) = values.as_chunks::<LANES>();
                let done = blocks.len() * LANES;
                let [$($plane),*] = planes.each_mut().map(|plane| plane.as_chunks_mut::<LANES>().0);
                for (index, elements) in blocks.iter().enumerate() {
                    let ($(Some($plane)),*) = ($($plane.get_mut(index)),*) else { return };
                    let mut bytes = [[0; LANES]; size_of::<$word>()];
                    let mut values = elements.iter();
                    for bytes in &mut bytes {
                        let mut words = [[0; size_of::<$word>()]; LANES / size_of::<$word>()];
                        for bytes in &mut words {
                            *bytes = values.next().map(|value| word(*value).to_le_bytes()).unwrap_or_default();
                        }
                        *bytes = simd::paste(words);
                    }
                    // Four interleavings of sixteen elements and the ones that would join the planes are a whole turn.
                    [$(*$plane),*] = bytes.interleave().interleave().interleave().interleave();
                }
                for (index, value) in rest.iter().enumerate() {
                    for (plane, byte) in planes.iter_mut().zip(word(*value).to_le_bytes()) {
                        if let Some(out) = plane.get_mut(done + index) {
                            *out = byte;
                        }
                    }
                }
            }

            #[inline(always)]
            fn zigzag(self) -> Self {
                (self << 1) ^ (self >> (<$word>::BITS - 1)).wrapping_neg()
            }

            #[inline(always)]
            fn unzigzag(self) -> Self {
                (self >> 1) ^ (self & 1).wrapping_neg()
            }
        }
    };
}

word!(u16, [a b], interleave);
word!(u32, [a b c d], interleave interleave);
word!(u64, [a b c d e f g h], interleave interleave interleave);

pub(super) fn planes<const N: usize>(packed: &[u8]) -> [&[u8]; N] {
    let (elements, mut rest) = (packed.len() / N, packed);
    std::array::from_fn(|_| rest.split_off(..elements).unwrap_or_default())
}

pub(super) fn planes_mut<const N: usize>(packed: &mut [u8]) -> [&mut [u8]; N] {
    let (elements, mut rest) = (packed.len() / N, packed);
    std::array::from_fn(|_| rest.split_off_mut(..elements).unwrap_or_default())
}

/// Copies `count` bits, lowest bit of a byte first; no other bit of `to` changes.
pub(super) fn copy_bits(from: &[u8], from_bit: usize, count: usize, to: &mut [u8], to_bit: usize) {
    if count == 0 {
        return;
    }
    let mut to = to.get_mut(to_bit / 8..).unwrap_or_default().iter_mut();
    // Eight bits from any position; zeros past the end.
    let byte_at = |bit: usize| {
        let byte = |index: usize| from.get(index).copied().unwrap_or_default();
        eight(byte(bit / 8), byte(bit / 8 + 1), bit % 8)
    };
    let mut copied = 0;
    if !to_bit.is_multiple_of(8) {
        copied = count.min(8 - to_bit % 8);
        let mask = (0xff_u8 >> (8 - copied)) << (to_bit % 8);
        if let Some(to) = to.next() {
            *to = *to & !mask | (byte_at(from_bit) << (to_bit % 8)) & mask;
        }
    }
    let (whole, shift) = ((count - copied) / 8, (from_bit + copied) % 8);
    let rest = from.get((from_bit + copied) / 8..).unwrap_or_default();
    let (head, tail) = to.into_slice().split_at_mut_checked(whole).unwrap_or_default();
    if shift == 0 {
        head.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
    } else {
        for ((to, low), high) in head.iter_mut().zip(rest).zip(rest.get(1..).unwrap_or_default()) {
            *to = eight(*low, *high, shift);
        }
    }
    copied += whole * 8;
    if let (Some(to), left @ 1..) = (tail.first_mut(), count - copied) {
        let mask = 0xff_u8 >> (8 - left);
        *to = *to & !mask | byte_at(from_bit + copied) & mask;
    }
}

/// Eight of sixteen bits.
#[inline(always)]
fn eight(low: u8, high: u8, shift: usize) -> u8 {
    (u16::from_le_bytes([low, high]) >> shift) as u8
}

/// Reads the 64-bit index and the 32-bit tag of each element.
pub(super) fn unswitch(elements: &[[u8; SWITCH_BYTES]], indexes: &mut [u64], tags: &mut [u32]) {
    for ((element, index), tag) in elements.iter().zip(indexes).zip(tags) {
        let [i0, i1, i2, i3, i4, i5, i6, i7, t0, t1, t2, t3] = *element;
        *index = u64::from_le_bytes([i0, i1, i2, i3, i4, i5, i6, i7]);
        *tag = u32::from_le_bytes([t0, t1, t2, t3]);
    }
}
