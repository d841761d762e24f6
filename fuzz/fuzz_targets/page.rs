//! Any bytes as a page of any encoding behind any codec, and as a chain of compression blocks.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tupelo_format::compression::{self, Algorithm, Compression};
use tupelo_format::encoding::{self, ColumnType, Encoding};
use twox_hash::XxHash64;

/// Elements in a page at most.
const MAX_ELEMENTS: u64 = 1 << 16;

/// The payload as one block of a codec, with a right header and, for LZ4, a right checksum.
fn block(codec: u8, payload: &[u8], unpacked: u64) -> Vec<u8> {
    let tag = [b"ZL\x08", b"XZ\x00", b"L4\x01", b"ZS\x01", b"CS\x08"][usize::from(codec) % 5];
    let hash = XxHash64::oneshot(0, payload).to_be_bytes();
    let checksum: &[u8] = if tag == b"L4\x01" { &hash } else { &[] };
    let stored = (payload.len() + checksum.len()) as u64;
    [&tag[..], &stored.to_le_bytes()[..3], &unpacked.to_le_bytes()[..3], checksum, payload].concat()
}

/// Every way to decode a page; of as many elements as its bytes hold, and of others, which must be refused.
fn decode(encoding: &Encoding, packed: &[u8], claimed: u64, [low, high]: [u8; 2]) {
    let width = encoding.column_type().width_bytes().unwrap_or(1);
    for elements in [packed.len() as u64 * 8 / u64::from(encoding.bits()), claimed] {
        let elements = elements.min(MAX_ELEMENTS) as usize;
        let _fixed = encoding::decode_fixed(encoding, packed, &mut vec![0; elements * width]);
        let _single = encoding::decode_f32(encoding, packed, &mut vec![0.0; elements]);
        let _double = encoding::decode_f64(encoding, packed, &mut vec![0.0; elements]);
        let _index = encoding::decode_index(encoding, packed, &mut vec![0; elements]);
        let _switch = encoding::decode_switch(packed, &mut vec![0; elements], &mut vec![0; elements]);
        let mut bits = vec![0; elements / 8 + 1];
        let _bits = encoding::decode_bits(packed, usize::from(low), elements, &mut bits, usize::from(high % 8));
    }
}

fuzz_target!(|bytes: &[u8]| {
    let Some((&[code, bits, codec, low, high], packed)) = bytes.split_first_chunk() else { return };
    let claimed = u64::from(u16::from_le_bytes([low, high]));
    let mut unpacked = vec![0; claimed as usize];
    let _into = compression::decompress_into(packed, &mut unpacked);
    let _grown = compression::decompress(packed, claimed << 8, 1 << 24);
    let whole = compression::decompress_into(&block(codec, packed, claimed), &mut unpacked).is_ok();

    // What every codec packs, it unpacks.
    let algorithm = [Algorithm::Zlib, Algorithm::Lzma, Algorithm::Lz4, Algorithm::Zstd][usize::from(codec) % 4];
    let compression = Compression::new(algorithm, 1 + codec % 9).expect("a level");
    let mut blocks = Vec::new();
    compression::compress(compression, packed, &mut blocks).expect("memory");
    assert_eq!(compression::decompress(&blocks, packed.len() as u64, u64::MAX).as_deref(), Ok(packed));

    let range = Some((f64::from(low) - 100.0, f64::from(high)));
    let Some(column_type) = ColumnType::from_code(u16::from(code & 0x1f)) else { return };
    let Ok(encoding) = Encoding::new(column_type, u16::from(bits), range).or(Encoding::of(column_type).ok_or(()))
    else {
        return;
    };
    decode(&encoding, packed, claimed, [low, high]);
    if whole {
        decode(&encoding, &unpacked, claimed, [low, high]);
    }
});
