//! Integers of any number of bits that follow each other without gaps, lowest bit first.
//!
//! Eight elements take whole bytes, as many as one element has bits. With that number known to the compiler all
//! positions and shifts within such a group are constants, and so there is a kernel for each.

/// Elements in flight between two steps: few enough to stay in L1, enough for long loops.
const BLOCK: usize = 256;
/// Elements that begin and end with a byte.
const GROUP: usize = 8;
/// Bytes of a block at the largest width.
const BLOCK_BYTES: usize = BLOCK * 4;
/// Bytes of half a group at the largest width.
const HALF_BYTES: usize = 16;
/// Bytes that are written for a group of any width.
const WIDE_BYTES: usize = 2 * HALF_BYTES;

type Integers = [u32; BLOCK];
/// Includes space for bytes written past the last group.
type Packed = [u8; BLOCK_BYTES + WIDE_BYTES];

/// Reads unsigned integers of `bits` (1 to 32) bits.
pub(super) fn unpack<T>(bits: u16, packed: &[u8], out: &mut [T], element: impl Fn(u32) -> T) {
    let Some(kernel) = UNPACK.get(usize::from(bits).wrapping_sub(1)) else { return };
    let mut integers = [0; BLOCK];
    for (out, packed) in out.chunks_mut(BLOCK).zip(packed.chunks(BLOCK / GROUP * usize::from(bits))) {
        if out.len() == BLOCK {
            kernel(packed, &mut integers);
        } else {
            let mut padded = [0; BLOCK_BYTES];
            padded.iter_mut().zip(packed).for_each(|(padded, packed)| *padded = *packed);
            kernel(&padded, &mut integers);
        }
        for (out, integer) in out.iter_mut().zip(&integers) {
            *out = element(*integer);
        }
    }
}

/// Appends what [`unpack`] reads; higher bits of an integer are dropped, the last byte is filled up with zeros.
pub(super) fn pack<T: Copy>(bits: u16, values: &[T], out: &mut Vec<u8>, integer: impl Fn(T) -> u32) {
    let Some(kernel) = PACK.get(usize::from(bits).wrapping_sub(1)) else { return };
    let (mut integers, mut packed) = ([0; BLOCK], [0; BLOCK_BYTES + WIDE_BYTES]);
    for values in values.chunks(BLOCK) {
        for (integer_out, value) in integers.iter_mut().zip(values) {
            *integer_out = integer(*value);
        }
        integers.iter_mut().skip(values.len()).for_each(|integer| *integer = 0);
        kernel(&integers, &mut packed);
        let bytes = (values.len() * usize::from(bits)).div_ceil(8);
        out.extend_from_slice(packed.get(..bytes).unwrap_or_default());
    }
}

macro_rules! for_each_width {
    ($kernel:ident) => {
        for_each_width!($kernel: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32)
    };
    ($kernel:ident: $($bits:literal)*) => { [$($kernel::<$bits>),*] };
}

type UnpackBlock = fn(&[u8], &mut Integers);
type PackBlock = fn(&Integers, &mut Packed);

static UNPACK: [UnpackBlock; 32] = for_each_width!(unpack_block);
static PACK: [PackBlock; 32] = for_each_width!(pack_block);

fn unpack_block<const BITS: usize>(packed: &[u8], out: &mut Integers) {
    let mask = u32::MAX >> (32 - BITS);
    for (group, out) in packed.as_chunks::<BITS>().0.iter().zip(out.as_chunks_mut::<GROUP>().0) {
        *out = std::array::from_fn(|index| {
            let bit = index * BITS;
            // The window of eight bytes must not reach beyond the group.
            let at = (bit / 8).min(BITS.saturating_sub(8));
            let window = group.get(at..).unwrap_or_default();
            let window = match window.first_chunk() {
                Some(bytes) => u64::from_le_bytes(*bytes),
                None => window.iter().rev().fold(0, |window, byte| window << 8 | u64::from(*byte)),
            };
            (window >> (bit - 8 * at)) as u32 & mask
        });
    }
}

fn pack_block<const BITS: usize>(integers: &Integers, out: &mut Packed) {
    let mask = u32::MAX >> (32 - BITS);
    for (index, group) in integers.as_chunks::<GROUP>().0.iter().enumerate() {
        let [a, b, c, d, e, f, g, h] = group.map(|integer| u64::from(integer & mask));
        let join = |a: u64, b: u64, c: u64, d: u64| u128::from(a | b << BITS) | u128::from(c | d << BITS) << (2 * BITS);
        let (low, high) = (join(a, b, c, d), join(e, f, g, h));
        // All 256 bits, in two; what is too much is overwritten by the next group.
        let (low, high) = match BITS {
            32 => (low, high),
            _ => (low | high << (4 * BITS), high >> (128 - 4 * BITS)),
        };
        if let Some(out) = out.get_mut(index * BITS..).and_then(|out| out.first_chunk_mut::<WIDE_BYTES>()) {
            let (low_out, high_out) = out.split_at_mut(HALF_BYTES);
            low_out.copy_from_slice(&low.to_le_bytes());
            if BITS > HALF_BYTES {
                high_out.copy_from_slice(&high.to_le_bytes());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_bit_is_where_the_format_wants_it(
            all in prop::collection::vec(any::<u32>(), 530), count in (0_usize..20).prop_union(250..530),
        ) {
            let integers = &all[..count];
            for bits in 1..=32_u16 {
                let width = usize::from(bits);
                let mut packed = vec![0xaa];
                pack(bits, integers, &mut packed, |integer| integer);
                let page = &packed[1..];
                prop_assert_eq!(page.len(), (integers.len() * width).div_ceil(8));
                for bit in 0..page.len() * 8 {
                    let wanted = integers.get(bit / width).is_some_and(|integer| integer >> (bit % width) & 1 == 1);
                    prop_assert_eq!(page[bit / 8] >> (bit % 8) & 1 == 1, wanted);
                }
                let mut out = vec![0; integers.len()];
                unpack(bits, page, &mut out, |integer| integer);
                let kept: Vec<u32> = integers.iter().map(|integer| integer & (u32::MAX >> (32 - bits))).collect();
                prop_assert_eq!(out, kept);
            }
        }
    }
}
