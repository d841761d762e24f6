//! A sample ntuple of which records, pages or bytes between two checksums are changed, as the input's numbers say.
#![no_main]

use std::sync::LazyLock;

use bytes::Bytes;
use conformance::bad::Base;
use conformance::mutate::{self, Random};
use conformance::outcome;
use libfuzzer_sys::fuzz_target;

static SEEDS: LazyLock<[Bytes; 3]> = LazyLock::new(|| Base::ALL.map(Base::bytes));

fuzz_target!(|seed: [u8; 8]| {
    let mut random = Random::new(u64::from_le_bytes(seed));
    let file = mutate::file(random.choose(&*SEEDS).clone(), &mut random);
    for page_checksums in [true, false] {
        let _read = outcome::read(&file, "fuzz", page_checksums);
    }
});
