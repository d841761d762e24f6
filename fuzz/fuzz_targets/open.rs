//! Any bytes as a file: opened, and all of it read, with and without page checksums.
#![no_main]

use conformance::outcome;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let bytes = bytes.to_vec().into();
    for page_checksums in [true, false] {
        let _read = outcome::read(&bytes, "fuzz", page_checksums);
    }
});
