//! Any bytes as a page of any encoding, and as a chain of compression blocks.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tupelo_format::compression;
use tupelo_format::encoding::{self, ColumnType, Encoding};

/// Elements in a page at most.
const MAX_ELEMENTS: u64 = 1 << 16;

fuzz_target!(|bytes: &[u8]| {
    let Some((&[code, bits, low, high], packed)) = bytes.split_first_chunk() else { return };
    let claimed = u64::from(u16::from_le_bytes([low, high]));
    let mut unpacked = vec![0; claimed as usize];
    let _into = compression::decompress_into(packed, &mut unpacked);
    let _grown = compression::decompress(packed, claimed << 8, 1 << 24);

    let range = Some((f64::from(low) - 100.0, f64::from(high)));
    let Some(column_type) = ColumnType::from_code(u16::from(code & 0x1f)) else { return };
    let Ok(encoding) = Encoding::new(column_type, u16::from(bits), range) else { return };
    // As many elements as the bytes hold, and others, which must be refused.
    for elements in [packed.len() as u64 * 8 / u64::from(encoding.bits()), claimed] {
        let elements = elements.min(MAX_ELEMENTS) as usize;
        let _fixed = encoding::decode_fixed(&encoding, packed, &mut vec![0; elements * column_type.width_bytes().unwrap_or(1)]);
        let _single = encoding::decode_f32(&encoding, packed, &mut vec![0.0; elements]);
        let _double = encoding::decode_f64(&encoding, packed, &mut vec![0.0; elements]);
        let _index = encoding::decode_index(&encoding, packed, &mut vec![0; elements]);
        let _switch = encoding::decode_switch(packed, &mut vec![0; elements], &mut vec![0; elements]);
        let _bits = encoding::decode_bits(packed, usize::from(low), elements, &mut vec![0; elements / 8 + 1], usize::from(high % 8));
    }
});
