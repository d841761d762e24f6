use ColumnType::*;
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::ErrorKind;

fn of(column_type: ColumnType) -> Encoding {
    Encoding::of(column_type).unwrap()
}

fn quant(bits: u16, min: f64, max: f64) -> Encoding {
    Encoding::new(Real32Quant, bits, Some((min, max))).unwrap()
}

fn trunc(bits: u16) -> Encoding {
    Encoding::new(Real32Trunc, bits, None).unwrap()
}

/// Little-endian bytes of integers or reals.
macro_rules! le {
    ($type:ty: $($value:expr),*) => { [$(<$type>::to_le_bytes($value)),*].concat() };
}

fn assert_fixed(column_type: ColumnType, values: &[u8], packed: &[u8]) {
    let mut out = vec![0xaa; values.len()];
    decode_fixed(&of(column_type), packed, &mut out).unwrap();
    assert_eq!(out, values, "{column_type:?}");
    let mut page = b"x".to_vec();
    encode_fixed(&of(column_type), values, &mut page).unwrap();
    assert_eq!(page.strip_prefix(b"x").unwrap(), packed, "{column_type:?}");
}

fn pack_f32(encoding: &Encoding, values: &[f32]) -> Vec<u8> {
    let mut page = Vec::new();
    encode_f32(encoding, values, &mut page).unwrap();
    page
}

fn pack_f64(encoding: &Encoding, values: &[f64]) -> Vec<u8> {
    let mut page = Vec::new();
    encode_f64(encoding, values, &mut page).unwrap();
    page
}

fn pack_index(encoding: &Encoding, values: &[u64]) -> Vec<u8> {
    let mut page = Vec::new();
    encode_index(encoding, values, &mut page).unwrap();
    page
}

fn unpack_f32(encoding: &Encoding, packed: &[u8], count: usize) -> Vec<f32> {
    let mut out = vec![f32::NAN; count];
    decode_f32(encoding, packed, &mut out).unwrap();
    out
}

fn unpack_f64(encoding: &Encoding, packed: &[u8], count: usize) -> Vec<f64> {
    let mut out = vec![f64::NAN; count];
    decode_f64(encoding, packed, &mut out).unwrap();
    out
}

fn unpack_index(encoding: &Encoding, packed: &[u8], count: usize) -> Vec<u64> {
    let mut out = vec![u64::MAX; count];
    decode_index(encoding, packed, &mut out).unwrap();
    out
}

fn assert_real(encoding: &Encoding, values: &[f32], packed: &[u8]) {
    let wide: Vec<f64> = values.iter().map(|value| f64::from(*value)).collect();
    assert_eq!(unpack_f64(encoding, packed, values.len()), wide, "{encoding:?}");
    assert_eq!(pack_f64(encoding, &wide), packed, "{encoding:?}");
    if encoding.column_type().unsplit() != Real64 {
        assert_eq!(unpack_f32(encoding, packed, values.len()), values, "{encoding:?}");
        assert_eq!(pack_f32(encoding, values), packed, "{encoding:?}");
    }
}

fn assert_index(column_type: ColumnType, values: &[u64], packed: &[u8]) {
    assert_eq!(unpack_index(&of(column_type), packed, values.len()), values, "{column_type:?}");
    assert_eq!(pack_index(&of(column_type), values), packed, "{column_type:?}");
}

#[test]
fn types_have_codes_and_widths() {
    for (code, column_type) in ColumnType::ALL.iter().enumerate() {
        assert_eq!(usize::from(column_type.code()), code);
        assert_eq!(ColumnType::from_code(code as u16), Some(*column_type));
        assert_eq!(column_type.name(), format!("{column_type:?}"));
        assert!([column_type.unsplit(), column_type.split().unsplit()].iter().all(|t| !t.name().starts_with("Split")));
        assert_eq!(column_type.split().bits_range(), column_type.bits_range());
        assert_eq!(column_type.is_real(), column_type.name().contains("Real"));
        assert_eq!(column_type.is_index(), column_type.name().contains("Index"));
        if let Some(width) = column_type.width_bytes() {
            assert_eq!(*column_type.bits_range().start() as usize, 8 * width);
        }
    }
    assert_eq!(ColumnType::from_code(0x1e), None);
    assert_eq!((Real32Quant.code(), SplitInt64.code(), Index64.code()), (0x1d, 0x15, 0x0f));
}

#[test]
fn encodings_are_validated() {
    let kind = |column_type, bits, range| Encoding::new(column_type, bits, range).map_err(|error| error.kind());
    assert_eq!(kind(Int32, 32, Some((0.0, 1.0))), Ok(of(Int32)));
    for (column_type, bits) in [(Int32, 31), (Bit, 8), (Real32Trunc, 9), (Real32Trunc, 32), (Switch, 64)] {
        assert_eq!(kind(column_type, bits, None), Err(ErrorKind::Corrupt));
    }
    let wide = (f64::MIN, f64::MAX);
    for range in [(1.0, 1.0), (1.0, 0.0), (f64::NAN, 1.0), (0.0, f64::NAN), (0.0, f64::INFINITY), wide] {
        assert_eq!(kind(Real32Quant, 8, Some(range)), Err(ErrorKind::Corrupt));
    }
    assert_eq!(kind(Real32Quant, 8, None), Err(ErrorKind::Corrupt));
    assert_eq!(kind(Real32Quant, 0, Some((0.0, 1.0))), Err(ErrorKind::Corrupt));
    assert_eq!(kind(Real32Quant, 33, Some((0.0, 1.0))), Err(ErrorKind::Corrupt));
    assert_eq!((Encoding::of(Real32Trunc), Encoding::of(Real32Quant)), (None, None));
    assert_eq!(quant(8, 0.0, 1.0).range(), Some((0.0, 1.0)));

    assert_eq!(of(Bit).packed_bytes(17), Some(3));
    assert_eq!(of(Switch).packed_bytes(2), Some(24));
    assert_eq!(trunc(31).packed_bytes(9), Some(35));
    assert_eq!(of(Bit).packed_bytes(u64::MAX), Some(1 << 61));
    assert_eq!(of(Int64).packed_bytes(u64::MAX), None);
}

#[test]
fn hand_made_pages_of_fixed_width() {
    for column_type in [Byte, Char, Int8, UInt8] {
        assert_fixed(column_type, &[1, 0xff], &[1, 0xff]);
    }
    for column_type in [Int16, UInt16] {
        assert_fixed(column_type, &le!(i16: -2, 0x102), &[0xfe, 0xff, 0x02, 0x01]);
    }
    for column_type in [Int32, UInt32] {
        assert_fixed(column_type, &le!(i32: -2), &[0xfe, 0xff, 0xff, 0xff]);
    }
    for column_type in [Int64, UInt64] {
        assert_fixed(column_type, &le!(i64: 0x0102), &[2, 1, 0, 0, 0, 0, 0, 0]);
    }
    assert_fixed(Real32, &le!(f32: 1.0), &[0, 0, 0x80, 0x3f]);
    assert_fixed(Real64, &le!(f64: 1.0), &[0, 0, 0, 0, 0, 0, 0xf0, 0x3f]);
    assert_fixed(SplitUInt16, &le!(u16: 0x0102, 0x0304), &[2, 4, 1, 3]);
    assert_fixed(SplitUInt32, &le!(u32: 0x0102_0304, 0x0506_0708), &[4, 8, 3, 7, 2, 6, 1, 5]);
    let planes = [8, 24, 7, 23, 6, 22, 5, 21, 4, 20, 3, 19, 2, 18, 1, 17];
    assert_fixed(SplitUInt64, &le!(u64: 0x0102_0304_0506_0708, 0x1112_1314_1516_1718), &planes);
    assert_fixed(SplitInt16, &le!(i16: -1, 1, -2, i16::MIN), &[1, 2, 3, 0xff, 0, 0, 0, 0xff]);
    assert_fixed(SplitInt32, &le!(i32: -1, 256), &[1, 0, 0, 2, 0, 0, 0, 0]);
    assert_fixed(
        SplitInt64,
        &le!(i64: -1, i64::MAX),
        &[1, 254, 0, 255, 0, 255, 0, 255, 0, 255, 0, 255, 0, 255, 0, 255],
    );
    assert_fixed(SplitReal32, &le!(f32: 1.0, -2.0), &[0, 0, 0, 0, 0x80, 0, 0x3f, 0xc0]);
    assert_fixed(SplitReal64, &le!(f64: 1.0, -2.0), &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xf0, 0, 0x3f, 0xc0]);
}

#[test]
fn hand_made_pages_of_reals() {
    let halves = [1.0, -2.0, 65504.0, 2.0_f32.powi(-24), f32::NEG_INFINITY];
    assert_real(&of(Real16), &halves, &[0, 0x3c, 0, 0xc0, 0xff, 0x7b, 1, 0, 0, 0xfc]);
    assert_real(&of(SplitReal16), &halves, &[0, 0, 0xff, 1, 0, 0x3c, 0xc0, 0x7b, 0, 0xfc]);
    assert_real(&of(Real32), &[1.0, -2.0], &[0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0]);
    assert_real(&of(SplitReal32), &[1.0, -2.0], &[0, 0, 0, 0, 0x80, 0, 0x3f, 0xc0]);
    assert_real(&of(Real64), &[1.0], &[0, 0, 0, 0, 0, 0, 0xf0, 0x3f]);
    assert_real(&of(SplitReal64), &[1.0, -2.0], &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xf0, 0, 0x3f, 0xc0]);
    // 0x3f800000 >> 22 = 0x0fe and 0xc0000000 >> 22 = 0x300: the bits 0b11_00000000_0011_111110.
    assert_real(&trunc(10), &[1.0, -2.0], &[0xfe, 0x00, 0x0c]);
    assert_real(&trunc(31), &[1.0], &[0, 0, 0xc0, 0x1f]);
    assert_real(&quant(3, 0.0, 7.0), &[1.0, 6.0, 7.0], &[0xf1, 0x01]);
    assert_real(&quant(32, -1.0, 1.0), &[-1.0, 1.0], &[0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff]);
    assert_real(&quant(1, -1.0, 1.0), &[-1.0, 1.0, 1.0], &[0b110]);
}

#[test]
fn rounding_is_that_of_root() {
    // Real16 to nearest even; Real32Trunc cuts; Real32Quant to the nearest step.
    let step = 2.0_f32.powi(-11);
    let packed = pack_f32(&of(Real16), &[1.0 + step, 1.0 + 3.0 * step, 65519.99, 1e-9]);
    assert_eq!(packed, [0x00, 0x3c, 0x02, 0x3c, 0xff, 0x7b, 0, 0]);
    let cut = unpack_f32(&trunc(12), &pack_f32(&trunc(12), &[1.999, -1.999]), 2);
    assert_eq!(cut, [1.875, -1.875]);
    let steps = quant(2, 0.0, 3.0);
    assert_eq!(unpack_f64(&steps, &pack_f64(&steps, &[0.49, 0.5, 1.51, 2.4999]), 4), [0.0, 1.0, 2.0, 2.0]);
    // The product is rounded before the sum: no fused multiply-add.
    let fifth = quant(16, 0.1, 0.7);
    let scale = (0.7 - 0.1) / 65535.0;
    assert_eq!(unpack_f64(&fifth, &[0x39, 0x30], 1)[0].to_bits(), (f64::from(0x3039) * scale + 0.1).to_bits());
}

#[test]
fn hand_made_pages_of_indexes_and_switches() {
    assert_index(Index32, &[1, 0x0102_0304], &[1, 0, 0, 0, 4, 3, 2, 1]);
    assert_index(Index64, &[1], &[1, 0, 0, 0, 0, 0, 0, 0]);
    assert_index(SplitIndex32, &[2, 5, 5, 261], &[2, 3, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_index(SplitIndex64, &[2, 5], &[2, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    // Sums wrap around within the width of the column.
    assert_index(SplitIndex32, &[3, 1], &[3, 0xfe, 0, 0xff, 0, 0xff, 0, 0xff]);
    assert_index(SplitIndex64, &[0, u64::MAX], &[0, 255, 0, 255, 0, 255, 0, 255, 0, 255, 0, 255, 0, 255, 0, 255]);

    let page = [7, 0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let (mut indexes, mut tags) = ([9; 2], [9; 2]);
    decode_switch(&page, &mut indexes, &mut tags).unwrap();
    assert_eq!((indexes, tags), ([7 | 1 << 56, 0], [2, 0]));
    let mut packed = Vec::new();
    encode_switch(&indexes, &tags, &mut packed).unwrap();
    assert_eq!(packed, page);
}

#[test]
fn hand_made_pages_of_bits() {
    let page = [0b0000_1101, 0b1];
    let mut out = [0xff; 3];
    decode_bits(&page, 0, 9, &mut out, 0).unwrap();
    assert_eq!(out, [0b0000_1101, 0xff, 0xff]);
    let mut out = [0; 2];
    decode_bits(&page, 2, 3, &mut out, 6).unwrap();
    assert_eq!(out, [0b1100_0000, 0b0]);
    let mut packed = Vec::new();
    encode_bits(&[0xff; 2], 3, 10, &mut packed).unwrap();
    assert_eq!(packed, [0xff, 0b11]);
}

#[test]
fn wrong_lengths_and_types_are_refused() {
    for column_type in ColumnType::ALL {
        let bits = *column_type.bits_range().end();
        let encoding = Encoding::new(*column_type, bits, Some((0.0, 1.0))).unwrap();
        let page = vec![0; encoding.packed_bytes(16).unwrap() as usize];
        for wrong in [&page[1..], &[&page[..], &[0]].concat()] {
            assert!(decode_fixed(&encoding, wrong, &mut vec![0; page.len()]).is_err());
            assert!(decode_fixed_past_caches(&encoding, wrong, &mut vec![0; page.len()]).is_err());
            assert!(decode_f32(&encoding, wrong, &mut [0.0; 16]).is_err());
            assert!(decode_f64(&encoding, wrong, &mut [0.0; 16]).is_err());
            assert!(decode_index(&encoding, wrong, &mut [0; 16]).is_err());
        }
        assert_eq!(
            decode_fixed(&encoding, &page, &mut vec![0; page.len()]).is_ok(),
            column_type.width_bytes().is_some()
        );
        assert_eq!(decode_f64(&encoding, &page, &mut [0.0; 16]).is_ok(), column_type.is_real());
        let narrow = column_type.is_real() && column_type.unsplit() != Real64;
        assert_eq!(decode_f32(&encoding, &page, &mut [0.0; 16]).is_ok(), narrow);
        assert_eq!(decode_index(&encoding, &page, &mut [0; 16]).is_ok(), column_type.is_index());
        assert_eq!(encode_f64(&encoding, &[0.5], &mut Vec::new()).is_ok(), column_type.is_real());
        assert_eq!(encode_f32(&encoding, &[0.5], &mut Vec::new()).is_ok(), narrow);
        assert_eq!(encode_index(&encoding, &[5], &mut Vec::new()).is_ok(), column_type.is_index());
    }
    assert!(encode_fixed(&of(Int32), &[0; 7], &mut Vec::new()).is_err());
    assert!(decode_fixed(&of(Int32), &[0; 8], &mut [0; 9]).is_err());
    assert!(decode_bits(&[0; 2], 8, 9, &mut [0; 9], 0).is_err());
    assert!(decode_bits(&[0; 9], 0, 9, &mut [0; 2], 8).is_err());
    assert!(decode_bits(&[0; 9], usize::MAX, 9, &mut [0; 2], 8).is_err());
    assert!(encode_bits(&[0; 2], 8, 9, &mut Vec::new()).is_err());
    assert!(decode_switch(&[0; 23], &mut [0; 2], &mut [0; 2]).is_err());
    assert!(decode_switch(&[0; 24], &mut [0; 2], &mut [0; 1]).is_err());
    assert!(encode_switch(&[0], &[], &mut Vec::new()).is_err());
}

#[test]
fn values_that_do_not_fit_are_refused() {
    let mut out = Vec::new();
    for value in [-0.1, 1.1, f64::NAN, f64::INFINITY] {
        let error = encode_f64(&quant(8, 0.0, 1.0), &[0.5, value], &mut out).unwrap_err();
        assert!(error.what().starts_with(&format!("value {value} is outside the range [0, 1]")), "{error}");
    }
    for column_type in [Index32, SplitIndex32] {
        encode_index(&of(column_type), &[u64::from(u32::MAX) + 1], &mut out).unwrap_err();
    }
    assert!(out.is_empty());
}

/// They were written as infinity.
#[test]
fn finite_values_that_would_become_infinite_are_refused() {
    let mut out = Vec::new();
    let mut refused = |encoding: Encoding, value: f64| {
        let error = encode_f64(&encoding, &[0.5, value, f64::NAN], &mut out).unwrap_err();
        if f64::from(value as f32) == value {
            let error = encode_f32(&encoding, &[0.5, value as f32], &mut out).unwrap_err();
            assert!(error.what().contains("is too large"), "{error}");
        }
        error.what().to_owned()
    };
    for column_type in [Real16, SplitReal16] {
        // The last one is rounded up twice.
        for value in [65520.0, -65520.0, 1e5_f32.into(), f32::MAX.into(), 1e300, -f64::MAX, 65520.0_f64.next_down()] {
            let name = column_type.name();
            let wanted = format!("value {value:?} is too large for the {name} column: the largest value is 65504.0");
            assert_eq!(refused(of(column_type), value), wanted);
        }
    }
    // Half a step above the largest number.
    let overflow = (2.0 - 2.0_f64.powi(-24)) * 2.0_f64.powi(127);
    for encoding in [of(Real32), of(SplitReal32), trunc(10), trunc(31)] {
        for value in [1e300, -1e39, overflow] {
            let name = encoding.column_type().name();
            let wanted =
                format!("value {value:?} is too large for the {name} column: the largest value is 3.4028235e38");
            assert_eq!(refused(encoding, value), wanted);
        }
    }
    assert!(out.is_empty());
}

#[test]
fn infinities_and_nan_stay_what_they_are() {
    let strange = [f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
    for encoding in [of(Real16), of(SplitReal16), of(Real32), of(SplitReal32), trunc(10), of(Real64), of(SplitReal64)] {
        let back = unpack_f64(&encoding, &pack_f64(&encoding, &strange), 3);
        assert!(back[..2] == strange[..2] && back[2].is_nan(), "{encoding:?}: {back:?}");
        if encoding.column_type().unsplit() != Real64 {
            let back = unpack_f32(&encoding, &pack_f32(&encoding, &strange.map(|value| value as f32)), 3);
            assert!(back[0] == f32::INFINITY && back[1] == f32::NEG_INFINITY && back[2].is_nan(), "{encoding:?}");
        }
    }
    // The largest numbers are held, too.
    let (largest, nearest) = (f64::from(f32::MAX), ((2.0 - 2.0_f64.powi(-24)) * 2.0_f64.powi(127)).next_down());
    let page = pack_f64(&of(Real32), &[largest, -largest, nearest]);
    assert_eq!(unpack_f64(&of(Real32), &page, 3), [largest, -largest, largest]);
    assert_eq!(unpack_f64(&of(Real16), &pack_f64(&of(Real16), &[65519.9]), 1), [65504.0]);
}

/// Split encoding as the specification words it, one byte at a time.
fn split_reference(values: &[u8], width: usize) -> Vec<u8> {
    (0..width).flat_map(|byte| values.chunks(width).map(move |value| value[byte])).collect()
}

/// Around the blocks in which kernels work.
const COUNTS: [usize; 11] = [0, 1, 15, 16, 17, 33, 255, 256, 257, 512, 1000];

proptest! {
    #[test]
    fn fixed_width_round_trips(bytes in vec(any::<u8>(), 8000), count in (0_usize..=257).prop_union(0..=1000)) {
        for column_type in ColumnType::ALL {
            let Some(width) = column_type.width_bytes() else { continue };
            for count in COUNTS.into_iter().chain([count]) {
                let (values, mut page, mut out) = (&bytes[..count * width], Vec::new(), vec![0; count * width]);
                encode_fixed(&of(*column_type), values, &mut page).unwrap();
                if *column_type != column_type.unsplit() && !column_type.name().contains("tInt") {
                    prop_assert_eq!(&page, &split_reference(values, width));
                }
                decode_fixed(&of(*column_type), &page, &mut out).unwrap();
                prop_assert_eq!(&out[..], values);
                for offset in [0, 1, 16] {
                    let mut room = vec![0_u128; out.len().div_ceil(16) + 1];
                    let out = &mut bytemuck::cast_slice_mut(&mut room)[offset..][..out.len()];
                    decode_fixed_past_caches(&of(*column_type), &page, out).unwrap();
                    prop_assert_eq!(&*out, values);
                }
                // Every page is one that the encoder could have written.
                decode_fixed(&of(*column_type), values, &mut out).unwrap();
                page.clear();
                encode_fixed(&of(*column_type), &out, &mut page).unwrap();
                prop_assert_eq!(&page[..], values);
            }
        }
    }

    #[test]
    fn reals_round_trip(values in vec(any::<f32>(), 0..=257)) {
        let wide: Vec<f64> = values.iter().map(|value| f64::from(*value) * 0.9).collect();
        for column_type in [Real32, SplitReal32] {
            let page = pack_f32(&of(column_type), &values);
            prop_assert_eq!(&unpack_f32(&of(column_type), &page, values.len()), &values);
            let cast: Vec<f64> = wide.iter().map(|value| f64::from(*value as f32)).collect();
            prop_assert_eq!(unpack_f64(&of(column_type), &pack_f64(&of(column_type), &wide), wide.len()), cast);
        }
        for column_type in [Real64, SplitReal64] {
            prop_assert_eq!(&unpack_f64(&of(column_type), &pack_f64(&of(column_type), &wide), wide.len()), &wide);
        }
    }

    #[test]
    fn every_half_round_trips(count in 0_usize..=257, split in any::<bool>(), first in any::<u16>()) {
        let encoding = of(if split { SplitReal16 } else { Real16 });
        let halves = (0..count).map(|i| half::f16::from_bits(first.wrapping_add(i as u16 * 251)));
        let values: Vec<f32> = halves.map(f32::from).filter(|value| !value.is_nan()).collect();
        let page = pack_f32(&encoding, &values);
        prop_assert_eq!(&unpack_f32(&encoding, &page, values.len()), &values);
        prop_assert_eq!(pack_f64(&encoding, &unpack_f64(&encoding, &page, values.len())), page);
    }

    #[test]
    fn truncated_reals_keep_their_upper_bits(values in vec(any::<f32>(), 0..=257)) {
        for bits in 10..=31 {
            let page = pack_f32(&trunc(bits), &values);
            prop_assert_eq!(page.len() as u64, trunc(bits).packed_bytes(values.len() as u64).unwrap());
            let kept: Vec<f32> =
                values.iter().map(|value| f32::from_bits(value.to_bits() & (u32::MAX << (32 - bits)))).collect();
            prop_assert_eq!(unpack_f32(&trunc(bits), &page, values.len()), kept);
        }
    }

    #[test]
    fn quantized_reals_are_half_a_step_away(
        shares in vec(0.0..=1.0_f64, 0..=257), min in -1e6..1e6_f64, width in 1e-3..1e6_f64,
    ) {
        for bits in 1..=32 {
            let encoding = quant(bits, min, min + width);
            let values: Vec<f64> = shares.iter().map(|share| (min + share * width).min(min + width)).collect();
            let page = pack_f64(&encoding, &values);
            let half_step = 0.5 * width / ((1_u64 << bits) - 1) as f64;
            let out = unpack_f64(&encoding, &page, values.len());
            for (value, back) in values.iter().zip(&out) {
                prop_assert!((value - back).abs() <= half_step * 1.000_001 + 1e-9, "{value} {back} {bits}");
            }
            // What was read can be written again, to the same bits.
            let inside: Vec<f64> = out.iter().map(|value| value.clamp(min, min + width)).collect();
            prop_assert_eq!(pack_f64(&encoding, &inside), page);
        }
    }

    #[test]
    fn steps_are_cut_as_by_a_cast(share in 0.0..=1.0_f64, min in -1e6..1e6_f64, width in 1e-3..1e6_f64, bits in 1_u32..=32) {
        let quantum = Quantum { min, max: min + width, steps: ((1_u64 << bits) - 1) as f64 };
        let scale = quantum.steps / (quantum.max - quantum.min);
        let whole = (share * quantum.steps).floor();
        // Anywhere, and around the places where the next step begins.
        for value in [min + share * width, min + (whole + 0.5) / scale, min + whole / scale] {
            let value = value.clamp(quantum.min, quantum.max);
            for value in [value.next_down().max(quantum.min), value, value.next_up().min(quantum.max)] {
                prop_assert_eq!(quantum.encoder()(value), (0.5 + (value - quantum.min) * scale) as u32);
            }
        }
    }

    #[test]
    fn indexes_round_trip(sizes in vec(any::<u64>(), 0..=257)) {
        for column_type in [Index64, SplitIndex64, Index32, SplitIndex32] {
            let narrow = column_type.unsplit() == Index32;
            let values: Vec<u64> = sizes.iter().map(|size| if narrow { size >> 32 } else { *size }).collect();
            prop_assert_eq!(unpack_index(&of(column_type), &pack_index(&of(column_type), &values), values.len()), values);
        }
    }

    #[test]
    fn bits_move_one_by_one(
        from in vec(any::<u8>(), 40), to in vec(any::<u8>(), 40), skip in 0_usize..60, count in 0_usize..=257, at in 0_usize..60,
    ) {
        let bit = |bytes: &[u8], index: usize| bytes[index / 8] >> (index % 8) & 1;
        let mut out = to.clone();
        decode_bits(&from, skip, count, &mut out, at).unwrap();
        for index in 0..320 {
            let moved = index >= at && index < at + count;
            prop_assert_eq!(bit(&out, index), if moved { bit(&from, index - at + skip) } else { bit(&to, index) });
        }
        let mut page = Vec::new();
        encode_bits(&from, skip, count, &mut page).unwrap();
        prop_assert_eq!(page.len(), count.div_ceil(8));
        for index in 0..page.len() * 8 {
            prop_assert_eq!(bit(&page, index), if index < count { bit(&from, skip + index) } else { 0 });
        }
    }

    #[test]
    fn a_part_of_a_page_is_a_page(page in vec(any::<u8>(), 8 * 70 + 1), elements in 0_usize..=70, start in 0_usize..=70, take in 0_usize..=70) {
        let start = start.min(elements);
        let wanted = start..(start + take).min(elements);
        for column_type in [
            Byte, Char, Int8, UInt16, Int32, UInt64, Real32, Real64, SplitInt16, SplitUInt16, SplitInt32, SplitUInt32,
            SplitInt64, SplitUInt64, SplitReal32, SplitReal64,
        ] {
            let encoding = of(column_type);
            let width = usize::from(encoding.bits() / 8);
            let packed = &page[..elements * width];
            let part = encoding.part(packed, elements, wanted.clone()).expect("a part");
            let (mut whole, mut alone) = (vec![0; elements * width], vec![0; wanted.len() * width]);
            decode_fixed(&encoding, packed, &mut whole).unwrap();
            decode_fixed(&encoding, &part, &mut alone).unwrap();
            prop_assert_eq!(&whole[wanted.start * width..wanted.end * width], alone);
            prop_assert!(encoding.part(&page[..elements * width + 1], elements, wanted.clone()).is_none());
            prop_assert!(encoding.part(packed, elements, start..elements + 1).is_none());
        }
        for column_type in [SplitIndex32, SplitIndex64, Bit, Switch] {
            let encoding = of(column_type);
            let packed = &page[..encoding.packed_bytes(8).unwrap() as usize];
            prop_assert!(encoding.part(packed, 8, 1..3).is_none());
        }
    }
}
