use proptest::prelude::*;

use super::*;
use crate::ErrorKind;

fn all() -> impl Iterator<Item = Compression> {
    Algorithm::ALL
        .into_iter()
        .flat_map(|algorithm| (1..=9).map(move |level| Compression::new(algorithm, level).unwrap()))
}

fn compressed(compression: Compression, data: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    compress(compression, data, &mut out).unwrap();
    out
}

/// Numbers that every codec can shrink, of any length.
fn shrinkable(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|i| (i / 7 % 251) as u8).collect()
}

/// The low bytes of a xorshift generator: nothing for any codec.
fn noise(bytes: usize) -> Vec<u8> {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    std::iter::repeat_with(next).take(bytes).collect()
}

fn assert_round_trip(compression: Compression, data: &[u8]) -> Vec<u8> {
    let stored = compressed(compression, data);
    let mut out = vec![0xaa; data.len()];
    decompress_into(&stored, &mut out).unwrap();
    assert!(out == data, "{compression}");
    let size = data.len() as u64;
    check_size(&stored, size).unwrap();
    // As many bytes as are stored are not compressed.
    let others = [size.saturating_sub(1), size + 1].into_iter();
    for other in others.filter(|other| ![size, stored.len() as u64].contains(other)) {
        // Data that are not compressed begin with any codec.
        let kind = check_size(&stored, other).unwrap_err().kind();
        let may_be_unknown = stored == data && kind == ErrorKind::Unsupported;
        assert!(kind == ErrorKind::Corrupt || may_be_unknown, "{compression}: {kind:?}");
    }
    assert!(decompress(&stored, data.len() as u64, data.len() as u64).unwrap() == data, "{compression}");
    stored
}

#[test]
fn every_codec_and_level_round_trips() {
    for compression in all() {
        for bytes in [0, 1, 9, 10, 11, 100, 65_536] {
            let stored = assert_round_trip(compression, &shrinkable(bytes));
            assert!(bytes < 100 || stored.len() < bytes, "{compression}");
        }
    }
}

#[test]
fn incompressible_data_stays_raw() {
    for compression in all().chain([Compression::NONE]) {
        let data = noise(5000);
        assert!(assert_round_trip(compression, &data) == data, "{compression}");
    }
    let data = shrinkable(5000);
    assert!(assert_round_trip(Compression::NONE, &data) == data);
    assert_eq!(compressed(Compression::DEFAULT, b"abc"), b"abc");
}

#[test]
fn large_data_become_blocks_of_equal_size() {
    let data = shrinkable(2 * MAX_BLOCK_BYTES + 3);
    for algorithm in Algorithm::ALL {
        let stored = assert_round_trip(Compression::new(algorithm, 1).unwrap(), &data);
        let (mut chain, mut sizes) = (&stored[..], Vec::new());
        while !chain.is_empty() {
            let (block, rest) = next_block(chain, data.len()).unwrap();
            sizes.push(block.uncompressed_bytes);
            chain = rest;
        }
        assert_eq!(sizes, [11_184_811, 11_184_811, 11_184_811]);
    }
    // One block that does not shrink makes all of it raw, as in ROOT.
    let mut mixed = shrinkable(MAX_BLOCK_BYTES);
    mixed.extend(noise(MAX_BLOCK_BYTES));
    assert!(assert_round_trip(Compression::new(Algorithm::Lz4, 1).unwrap(), &mixed) == mixed);
}

#[test]
fn compress_appends() {
    let mut out = b"before".to_vec();
    compress(Compression::DEFAULT, &shrinkable(1000), &mut out).unwrap();
    compress(Compression::DEFAULT, b"raw", &mut out).unwrap();
    let block = out.strip_prefix(b"before").unwrap().strip_suffix(b"raw").unwrap();
    assert_eq!(&block[..3], b"ZS\x01");
    assert_eq!(decompress(block, 1000, 1000).unwrap(), shrinkable(1000));
}

#[test]
fn headers_are_those_of_root() {
    let data = shrinkable(70_000);
    for (algorithm, tag) in Algorithm::ALL.into_iter().zip([b"ZL\x08", b"XZ\x00", b"L4\x01", b"ZS\x01"]) {
        let stored = compressed(Compression::new(algorithm, 5).unwrap(), &data);
        let after = stored.len() - BLOCK_HEADER_BYTES;
        assert_eq!(&stored[..3], tag);
        assert_eq!(stored[3..9], [after as u8, (after >> 8) as u8, (after >> 16) as u8, 0x70, 0x11, 0x01]);
    }
}

#[test]
fn blocks_of_the_old_algorithm_are_bare_deflate() {
    let data = shrinkable(1000);
    let mut stored = vec![0; 1000];
    let mut compressor = libdeflater::Compressor::new(libdeflater::CompressionLvl::best());
    let bytes = compressor.deflate_compress(&data, &mut stored[9..]).unwrap();
    stored.truncate(9 + bytes);
    stored[..9].copy_from_slice(&[b'C', b'S', 8, bytes as u8, (bytes >> 8) as u8, 0, 0xe8, 0x03, 0]);
    assert_eq!(decompress(&stored, 1000, 1000).unwrap(), data);
    stored[6] += 1;
    assert!(decompress(&stored, 1001, 1001).is_err());
}

#[test]
fn hand_made_blocks() {
    // What Python's zlib makes of thirty times "a".
    let stream = [0x78, 0x9c, 0x4b, 0x4c, 0xc4, 0x07, 0x00, 0xb0, 0x4f, 0x0b, 0x5f];
    let stored = [&[b'Z', b'L', 8, 11, 0, 0, 30, 0, 0][..], &stream[..]].concat();
    assert_eq!(decompress(&stored, 30, 30).unwrap(), [b'a'; 30]);
    // LZ4: literal "a", then a match of 24 at distance 1, then the five literals that end every block.
    let lz4 = [0x1f, b'a', 1, 0, 5, 0x50, b'a', b'a', b'a', b'a', b'a'];
    let mut stored = vec![b'L', b'4', 1, 19, 0, 0, 30, 0, 0];
    stored.extend(twox_hash::XxHash64::oneshot(0, &lz4).to_be_bytes());
    stored.extend(lz4);
    assert_eq!(decompress(&stored, 30, 30).unwrap(), [b'a'; 30]);
}

#[test]
fn damaged_blocks_are_refused() {
    let data = shrinkable(3000);
    for algorithm in Algorithm::ALL {
        let good = compressed(Compression::new(algorithm, 5).unwrap(), &data);
        let refused = |stored: &[u8], bytes: usize, what: &str| {
            assert!(decompress_into(stored, &mut vec![0; bytes]).is_err(), "{algorithm}: {what}");
            assert!(decompress(stored, bytes as u64, u64::MAX).is_err(), "{algorithm}: {what}");
        };
        let changed = |position: usize, by: i8| {
            let mut stored = good.clone();
            stored[position] = stored[position].wrapping_add_signed(by);
            stored
        };
        for length in 0..good.len() {
            refused(&good[..length], 3000, "truncated");
        }
        for position in 0..9 {
            for by in [-1, 1] {
                refused(&changed(position, by), 3000, "header");
            }
        }
        for (position, by, bytes) in [(6, 1, 3001), (6, -1, 2999)] {
            refused(&changed(position, by), bytes, "size in header and caller agree, the stream does not");
        }
        for bytes in [2999, 3001, good.len() - 1, 0] {
            refused(&good, bytes, "size of the caller");
        }
        refused(&[&good[..], b"x"].concat(), 3000, "trailing byte");
        refused(&[&good[..], &good[..]].concat(), 3000, "trailing block");
        refused(&[&[b'Z', b'S', 1, 0, 0, 0, 0, 0, 0], &good[..]].concat(), 3000, "empty block");
    }
}

#[test]
fn the_checksums_of_lz4_zlib_and_xz_are_verified() {
    let data = shrinkable(3000);
    for (algorithm, position_from_end) in [(Algorithm::Lz4, None), (Algorithm::Zlib, Some(1))] {
        let mut stored = compressed(Compression::new(algorithm, 4).unwrap(), &data);
        let position = position_from_end.map_or(BLOCK_HEADER_BYTES, |back| stored.len() - back);
        stored[position] ^= 1;
        assert_eq!(decompress(&stored, 3000, 3000).unwrap_err().kind(), ErrorKind::Corrupt);
    }
    let good = compressed(Compression::new(Algorithm::Lzma, 4).unwrap(), &data);
    for position in BLOCK_HEADER_BYTES..good.len() {
        let mut stored = good.clone();
        stored[position] ^= 1;
        assert!(decompress(&stored, 3000, 3000).is_err());
    }
}

#[test]
fn a_claimed_size_is_not_believed() {
    let error = decompress(b"abc", 1 << 40, 1 << 30).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Limit);
    // A terabyte within the limit is reserved only as blocks prove it.
    assert_eq!(decompress(b"abc", 1 << 40, u64::MAX).unwrap_err().kind(), ErrorKind::Corrupt);
    let stored = compressed(Compression::DEFAULT, &shrinkable(3000));
    assert_eq!(decompress(&stored, 1 << 40, u64::MAX).unwrap_err().kind(), ErrorKind::Corrupt);
    let exact = decompress(&stored, 3000, 3000).unwrap();
    assert_eq!(exact.capacity(), 3000);
}

#[test]
fn settings_have_names_and_numbers() {
    assert_eq!(Compression::default().setting(), 505);
    assert_eq!(Compression::NONE.setting(), 0);
    assert!(Compression::NONE.is_none() && !Compression::DEFAULT.is_none());
    for compression in all().chain([Compression::NONE]) {
        assert_eq!(Compression::from_setting(compression.setting()), Ok(compression));
        assert_eq!(compression.to_string().parse(), Ok(compression));
        assert_eq!(compression.setting().to_string().parse(), Ok(compression));
    }
    let setting = |text: &str| text.parse::<Compression>().map(Compression::setting);
    for (text, number) in [("zstd", 505), ("lz4", 404), ("zlib", 101), ("lzma", 207), ("lz4:9", 409), ("none", 0)] {
        assert_eq!(setting(text), Ok(number));
    }
    // ROOT's global default was zlib.
    assert_eq!(Compression::from_setting(1), Compression::from_setting(101));
    for text in ["", "zst", "zstd:", "zstd:0", "zstd:10", "zstd:x", "305", "510", "10", "-1", "none:1"] {
        assert_eq!(setting(text).unwrap_err().kind(), ErrorKind::Unsupported, "{text}");
    }
}

proptest! {
    #[test]
    fn any_bytes_round_trip(data in prop::collection::vec(0_u8..4, 0..2000), which in 0_usize..36) {
        assert_round_trip(all().nth(which).unwrap(), &data);
    }

    #[test]
    fn no_bytes_panic(
        tag in prop::sample::select(vec![*b"ZL\x08", *b"CS\x08", *b"XZ\x00", *b"L4\x01", *b"ZS\x01", *b"??\x00"]),
        sizes in (0_u8..60, 0_u8..100),
        payload in prop::collection::vec(any::<u8>(), 0..60),
        wanted in 0_u64..200,
    ) {
        let header = [tag[0], tag[1], tag[2], sizes.0, 0, 0, sizes.1, 0, 0];
        let _ = decompress(&[&header[..], &payload[..]].concat(), wanted, 1000);
    }
}

/// Who wanted no more of a large page waited for half a second.
#[test]
fn large_payloads_are_given_up_in_between() {
    let data = shrinkable(2 * MAX_BLOCK_BYTES + 1);
    for algorithm in Algorithm::ALL {
        let stored = compressed(Compression::new(algorithm, 1).unwrap(), &data);
        let mut out = vec![0; data.len()];
        let mut asked = 0;
        decompress_while(&stored, &mut out, BlockChecksums::Compare, || {
            asked += 1;
            Ok::<_, Error>(())
        })
        .unwrap();
        assert!(out == data, "{algorithm:?}");
        assert!(asked >= if matches!(algorithm, Algorithm::Lzma) { 32 } else { 3 }, "{algorithm:?}: {asked} times");
        for last in 1..=3 {
            let mut left = last;
            let enough = || {
                left -= 1;
                if left == 0 { Err(Error::limit("enough")) } else { Ok(()) }
            };
            assert_eq!(
                decompress_while(&stored, &mut out, BlockChecksums::Compare, enough).unwrap_err().what(),
                "enough"
            );
        }
    }
}

#[test]
fn a_checksum_of_a_block_can_be_trusted() {
    let data = shrinkable(10_000);
    let mut stored = compressed(Compression::new(Algorithm::Lz4, 1).unwrap(), &data);
    stored[BLOCK_HEADER_BYTES] ^= 1;
    let mut out = vec![0; data.len()];
    assert!(decompress_into(&stored, &mut out).unwrap_err().what().contains("lz4: checksum mismatch"));
    decompress_while(&stored, &mut out, BlockChecksums::Trust, || Ok::<_, Error>(())).unwrap();
    assert!(out == data);
    // The block itself is still checked.
    stored.truncate(stored.len() - 1);
    assert!(decompress_while(&stored, &mut out, BlockChecksums::Trust, || Ok::<_, Error>(())).is_err());
}

/// They are decompressed in pieces.
#[test]
fn large_lzma_blocks_are_refused_where_they_are_damaged() {
    let data = shrinkable(3 << 20);
    let whole = compressed(Compression::new(Algorithm::Lzma, 1).unwrap(), &data);
    let mut out = vec![0; data.len()];
    for cut in [1, 12, 40, whole.len() / 2, whole.len() - BLOCK_HEADER_BYTES - 1] {
        let mut stored = whole[..whole.len() - cut].to_vec();
        let [s0, s1, s2, ..] = (stored.len() - BLOCK_HEADER_BYTES).to_le_bytes();
        stored[3..6].copy_from_slice(&[s0, s1, s2]);
        assert_eq!(decompress_into(&stored, &mut out).unwrap_err().kind(), ErrorKind::Corrupt, "{cut}");
    }
    for at in (BLOCK_HEADER_BYTES..whole.len()).step_by(7) {
        let mut stored = whole.clone();
        stored[at] ^= 0x10;
        assert!(decompress_into(&stored, &mut out).is_err(), "{at} of {}", whole.len());
    }
    // The header promises a size that the stream does not have.
    for bytes in [1, 1 << 20, (3 << 20) - 1, (3 << 20) + 1, 4 << 20] {
        let mut stored = whole.clone();
        let [u0, u1, u2, ..] = usize::to_le_bytes(bytes);
        stored[6..9].copy_from_slice(&[u0, u1, u2]);
        let error = decompress_into(&stored, &mut vec![0; bytes]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{bytes}: {error}");
    }
    decompress_into(&whole, &mut out).unwrap();
    assert!(out == data);
}
