//! The kernels: what the encodings mean, in plain loops over whole slices that the compiler can vectorise.
//!
//! Callers have checked all lengths; a wrong one cuts the work short, it never panics. This is the one room besides
//! `wire` that makes integers of bytes, as its loops need whole pages of them.

use half::f16;
use half::slice::HalfFloatSliceExt;

/// Elements in flight between two steps of a kernel: few enough to stay in L1, enough for long loops.
const BLOCK: usize = 256;
/// Bytes of one Switch element: 64-bit index, then 32-bit tag.
pub(super) const SWITCH_BYTES: usize = 12;

/// A little-endian unsigned integer as wide as the elements of a page.
///
/// Split encoding stores all lowest bytes first, then all second bytes, and so on. Planes are joined pairwise, bytes
/// to 16 bits to 32 to 64, because compilers vectorise each of these loops well (measured: 15–40 GB/s where a single
/// loop over eight planes makes 6), and none for itself.
pub(super) trait Word: Copy + Sized {
    /// Reads plain elements.
    fn load<T>(packed: &[u8], out: &mut [T], element: impl FnMut(Self) -> T);
    /// Reads split elements.
    fn unsplit<T>(packed: &[u8], out: &mut [T], element: impl FnMut(Self) -> T);
    /// Writes plain elements.
    fn store<T: Copy>(values: &[T], out: &mut [u8], word: impl FnMut(T) -> Self);
    /// Writes split elements.
    fn split<T: Copy>(values: &[T], out: &mut [u8], word: impl FnMut(T) -> Self);
    /// Two's complement to 0, -1, 1, -2, …
    fn zigzag(self) -> Self;
    /// And back.
    fn unzigzag(self) -> Self;
}

macro_rules! word {
    ($word:ty) => {
        #[inline]
        fn load<T>(packed: &[u8], out: &mut [T], mut element: impl FnMut(Self) -> T) {
            for (out, bytes) in out.iter_mut().zip(packed.as_chunks().0) {
                *out = element(<$word>::from_le_bytes(*bytes));
            }
        }

        #[inline]
        fn store<T: Copy>(values: &[T], out: &mut [u8], mut word: impl FnMut(T) -> Self) {
            for (out, value) in out.as_chunks_mut().0.iter_mut().zip(values) {
                *out = word(*value).to_le_bytes();
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
    };
}

impl Word for u16 {
    word!(u16);

    fn unsplit<T>(packed: &[u8], out: &mut [T], mut element: impl FnMut(Self) -> T) {
        let [low, high] = planes::<2>(packed);
        join(low, high, out, |low, high| element(wide16(low, high)));
    }

    fn split<T: Copy>(values: &[T], out: &mut [u8], mut word: impl FnMut(T) -> Self) {
        let [low, high] = planes_mut::<2>(out);
        part(values, low, high, |value| halves16(word(value)));
    }
}

impl Word for u32 {
    word!(u32);

    fn unsplit<T>(packed: &[u8], out: &mut [T], mut element: impl FnMut(Self) -> T) {
        let mut planes = planes::<4>(packed);
        let (mut low, mut high) = ([0; BLOCK], [0; BLOCK]);
        for out in out.chunks_mut(BLOCK) {
            let [a, b, c, d] = planes.each_mut().map(|plane| plane.split_off(..out.len()).unwrap_or_default());
            join(a, b, &mut low, wide16);
            join(c, d, &mut high, wide16);
            join(&low, &high, out, |low, high| element(wide32(low, high)));
        }
    }

    fn split<T: Copy>(values: &[T], out: &mut [u8], mut word: impl FnMut(T) -> Self) {
        let mut planes = planes_mut::<4>(out);
        let (mut low, mut high) = ([0; BLOCK], [0; BLOCK]);
        for values in values.chunks(BLOCK) {
            let [a, b, c, d] = planes.each_mut().map(|plane| plane.split_off_mut(..values.len()).unwrap_or_default());
            part(values, &mut low, &mut high, |value| halves32(word(value)));
            part(&low, a, b, halves16);
            part(&high, c, d, halves16);
        }
    }
}

impl Word for u64 {
    word!(u64);

    fn unsplit<T>(packed: &[u8], out: &mut [T], mut element: impl FnMut(Self) -> T) {
        let mut planes = planes::<8>(packed);
        let (mut p, mut q, mut low, mut high) = ([0; BLOCK], [0; BLOCK], [0; BLOCK], [0; BLOCK]);
        for out in out.chunks_mut(BLOCK) {
            let [a, b, c, d, e, f, g, h] =
                planes.each_mut().map(|plane| plane.split_off(..out.len()).unwrap_or_default());
            join(a, b, &mut p, wide16);
            join(c, d, &mut q, wide16);
            join(&p, &q, &mut low, wide32);
            join(e, f, &mut p, wide16);
            join(g, h, &mut q, wide16);
            join(&p, &q, &mut high, wide32);
            join(&low, &high, out, |low, high| element(wide64(low, high)));
        }
    }

    fn split<T: Copy>(values: &[T], out: &mut [u8], mut word: impl FnMut(T) -> Self) {
        let mut planes = planes_mut::<8>(out);
        let (mut p, mut q, mut low, mut high) = ([0; BLOCK], [0; BLOCK], [0; BLOCK], [0; BLOCK]);
        for values in values.chunks(BLOCK) {
            let [a, b, c, d, e, f, g, h] =
                planes.each_mut().map(|plane| plane.split_off_mut(..values.len()).unwrap_or_default());
            part(values, &mut low, &mut high, |value| halves64(word(value)));
            part(&low, &mut p, &mut q, halves32);
            part(&p, a, b, halves16);
            part(&q, c, d, halves16);
            part(&high, &mut p, &mut q, halves32);
            part(&p, e, f, halves16);
            part(&q, g, h, halves16);
        }
    }
}

fn planes<const N: usize>(packed: &[u8]) -> [&[u8]; N] {
    let (elements, mut rest) = (packed.len() / N, packed);
    std::array::from_fn(|_| rest.split_off(..elements).unwrap_or_default())
}

fn planes_mut<const N: usize>(packed: &mut [u8]) -> [&mut [u8]; N] {
    let (elements, mut rest) = (packed.len() / N, packed);
    std::array::from_fn(|_| rest.split_off_mut(..elements).unwrap_or_default())
}

#[inline(always)]
fn join<H: Copy, T>(low: &[H], high: &[H], out: &mut [T], mut wide: impl FnMut(H, H) -> T) {
    for ((out, low), high) in out.iter_mut().zip(low).zip(high) {
        *out = wide(*low, *high);
    }
}

#[inline(always)]
fn part<T: Copy, H>(values: &[T], low: &mut [H], high: &mut [H], mut halves: impl FnMut(T) -> (H, H)) {
    for ((value, low), high) in values.iter().zip(low).zip(high) {
        (*low, *high) = halves(*value);
    }
}

#[inline(always)]
fn wide16(low: u8, high: u8) -> u16 {
    u16::from(low) | u16::from(high) << 8
}

#[inline(always)]
fn wide32(low: u16, high: u16) -> u32 {
    u32::from(low) | u32::from(high) << 16
}

#[inline(always)]
fn wide64(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

#[inline(always)]
fn halves16(word: u16) -> (u8, u8) {
    (word as u8, (word >> 8) as u8)
}

#[inline(always)]
fn halves32(word: u32) -> (u16, u16) {
    (word as u16, (word >> 16) as u16)
}

#[inline(always)]
fn halves64(word: u64) -> (u32, u32) {
    (word as u32, (word >> 32) as u32)
}

/// Reads unsigned integers of `bits` (1 to 32) bits that follow each other without gaps, lowest bit first.
pub(super) fn unpack<T>(bits: u16, packed: &[u8], out: &mut [T], element: impl Fn(u32) -> T) {
    let (bits, mask) = (u64::from(bits), u32::MAX >> 32_u32.saturating_sub(u32::from(bits)));
    let mut position = 0_u64;
    for out in out {
        let rest = packed.get((position / 8) as usize..).unwrap_or_default();
        let window = match rest.first_chunk() {
            Some(bytes) => u64::from_le_bytes(*bytes),
            // The last seven bytes of a page.
            None => rest.iter().rev().fold(0, |window, byte| window << 8 | u64::from(*byte)),
        };
        *out = element((window >> (position % 8)) as u32 & mask);
        position += bits;
    }
}

/// Writes what [`unpack`] reads; higher bits of an integer are dropped, the last byte is filled up with zeros.
pub(super) fn pack<T: Copy>(bits: u16, values: &[T], out: &mut Vec<u8>, integer: impl Fn(T) -> u32) {
    let (bits, mask) = (u32::from(bits), u32::MAX >> 32_u32.saturating_sub(u32::from(bits)));
    let (mut pending, mut pending_bits) = (0_u64, 0);
    for value in values {
        pending |= u64::from(integer(*value) & mask) << pending_bits;
        pending_bits += bits;
        if pending_bits >= 32 {
            out.extend_from_slice(&(pending as u32).to_le_bytes());
            pending >>= 32;
            pending_bits -= 32;
        }
    }
    out.extend(pending.to_le_bytes().iter().take(pending_bits.div_ceil(8) as usize));
}

/// Copies `count` bits, lowest bit of a byte first; no other bit of `to` changes.
pub(super) fn copy_bits(from: &[u8], from_bit: usize, count: usize, to: &mut [u8], to_bit: usize) {
    if count == 0 {
        return;
    }
    let mut to = to.get_mut(to_bit / 8..).unwrap_or_default().iter_mut();
    // Eight bits from any position; zeros behind the end.
    let byte_at = |bit: usize| {
        let byte = |index: usize| from.get(index).copied().unwrap_or_default();
        (wide16(byte(bit / 8), byte(bit / 8 + 1)) >> (bit % 8)) as u8
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
        join(rest, rest.get(1..).unwrap_or_default(), head, |low, high| (wide16(low, high) >> shift) as u8);
    }
    copied += whole * 8;
    if let (Some(to), left @ 1..) = (tail.first_mut(), count - copied) {
        let mask = 0xff_u8 >> (8 - left);
        *to = *to & !mask | byte_at(from_bit + copied) & mask;
    }
}

/// Reads half-precision numbers; the `half` crate converts blocks of them by instruction where there is one.
pub(super) fn halves<T>(split: bool, packed: &[u8], out: &mut [T], number: impl Fn(f32) -> T) {
    let [mut low, mut high] = planes::<2>(packed);
    let mut plain = packed;
    let (mut half, mut single) = ([f16::ZERO; BLOCK], [0.0; BLOCK]);
    for out in out.chunks_mut(BLOCK) {
        if split {
            let [low, high] = [&mut low, &mut high].map(|plane| plane.split_off(..out.len()).unwrap_or_default());
            join(low, high, &mut half, |low, high| f16::from_bits(wide16(low, high)));
        } else {
            let plain = plain.split_off(..out.len() * 2).unwrap_or_default();
            u16::load(plain, &mut half, f16::from_bits);
        }
        half.convert_to_f32_slice(&mut single);
        for (out, single) in out.iter_mut().zip(single) {
            *out = number(single);
        }
    }
}

/// Reads the 64-bit index and the 32-bit tag of each element.
pub(super) fn unswitch(elements: &[[u8; SWITCH_BYTES]], indexes: &mut [u64], tags: &mut [u32]) {
    for ((element, index), tag) in elements.iter().zip(indexes).zip(tags) {
        let [i0, i1, i2, i3, i4, i5, i6, i7, t0, t1, t2, t3] = *element;
        *index = u64::from_le_bytes([i0, i1, i2, i3, i4, i5, i6, i7]);
        *tag = u32::from_le_bytes([t0, t1, t2, t3]);
    }
}
