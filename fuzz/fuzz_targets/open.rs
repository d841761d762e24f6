//! Any bytes as a file: opened, and all of it read, verified and mapped, with and without page checksums.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| tupelo_fuzz::handle(&bytes.to_vec().into()));
