//! XXH3-64, the checksum of anchors, envelopes and pages (format specification, "Envelopes" and "Page Locations").

use std::fmt;
use std::hash::Hasher;

use twox_hash::XxHash3_64;

/// Bytes that a checksum takes on disk.
pub const CHECKSUM_BYTES: usize = 8;

/// XXH3-64 with seed 0.
pub fn xxh3(bytes: &[u8]) -> u64 {
    XxHash3_64::oneshot(bytes)
}

/// XXH3-64 with seed 0 of pieces that follow each other.
pub fn xxh3_of_pieces<'b>(pieces: impl IntoIterator<Item = &'b [u8]>) -> u64 {
    let mut checksum = Xxh3::default();
    pieces.into_iter().for_each(|piece| checksum.add(piece));
    checksum.finish()
}

/// XXH3-64 with seed 0 in the making.
#[derive(Default)]
pub struct Xxh3(XxHash3_64);

impl fmt::Debug for Xxh3 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Xxh3").field(&self.finish()).finish()
    }
}

impl Xxh3 {
    /// Adds the next bytes.
    pub fn add(&mut self, piece: &[u8]) {
        self.0.write(piece);
    }

    /// The checksum of what was added.
    pub fn finish(&self) -> u64 {
        self.0.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_change_the_hash() {
        assert_eq!(xxh3(b""), 0x2d06_8005_38d3_94c2);
        assert_eq!(xxh3(b"a"), 0xe6c6_32b6_1e96_4e1f);
        let bytes: Vec<u8> = (0..=255).cycle().take(10_000).collect();
        assert_eq!(xxh3_of_pieces(bytes.chunks(700)), xxh3(&bytes));
        assert_eq!(xxh3_of_pieces([]), xxh3(b""));
    }
}
