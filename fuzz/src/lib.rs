//! What the targets share.

use bytes::Bytes;
use conformance::mutate::Random;
use conformance::outcome;

/// What a file may make its reader take here, in bytes; `run.sh` sets the limit of one allocation above it.
pub const BUDGET_BYTES: u64 = 64 << 20;

/// Reads, verifies and maps a file, page checksums compared and not.
pub fn handle(file: &Bytes) {
    let _read = outcome::handle(file, true, BUDGET_BYTES);
    let _unverified = outcome::read_within(file, "unverified", false, BUDGET_BYTES);
}

/// Numbers that follow from the input, and change little where it changes little.
pub fn random(seed: &[u8]) -> Random {
    let mut word = [0; 8];
    seed.iter().zip(&mut word).for_each(|(byte, place)| *place = *byte);
    Random::new(u64::from_le_bytes(word))
}
