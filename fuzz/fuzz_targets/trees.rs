//! Any bytes as a file with trees: every field of each is read, at once and in batches.
#![no_main]

use conformance::outcome;
use libfuzzer_sys::{Corpus, fuzz_target};

fuzz_target!(|bytes: &[u8]| -> Corpus {
    match outcome::handle_trees(&bytes.to_vec().into(), tupelo_fuzz::BUDGET_BYTES) {
        Ok(_) => Corpus::Keep,
        Err(_) => Corpus::Reject,
    }
});
