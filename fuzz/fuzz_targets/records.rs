//! A sample ntuple whose records, pages or bytes between two checksums are changed, as the input's numbers say.
#![no_main]

use std::sync::LazyLock;

use bytes::Bytes;
use conformance::bad::Base;
use conformance::mutate;
use libfuzzer_sys::fuzz_target;

static SEEDS: LazyLock<[Bytes; Base::ALL.len()]> = LazyLock::new(|| Base::ALL.map(Base::bytes));

fuzz_target!(|seed: [u8; 8]| {
    let mut random = tupelo_fuzz::random(&seed);
    let file = mutate::file(random.choose(&*SEEDS).clone(), &mut random);
    tupelo_fuzz::handle(&file);
});
