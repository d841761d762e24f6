//! XXH3-64, the checksum of anchors, envelopes and pages (format specification, "Envelopes" and "Page Locations").

use twox_hash::XxHash3_64;

/// Bytes that a checksum takes on disk.
pub const CHECKSUM_BYTES: usize = 8;

/// XXH3-64 with seed 0.
pub fn xxh3(bytes: &[u8]) -> u64 {
    XxHash3_64::oneshot(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_change_the_hash() {
        assert_eq!(xxh3(b""), 0x2d06_8005_38d3_94c2);
        assert_eq!(xxh3(b"a"), 0xe6c6_32b6_1e96_4e1f);
    }
}
