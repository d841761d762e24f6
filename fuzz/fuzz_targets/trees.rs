//! Any bytes as a file with trees and other objects: every field of each tree is read, at once and in batches, and every
//! other object.
#![no_main]

use conformance::outcome;
use libfuzzer_sys::{Corpus, fuzz_target};

fuzz_target!(|bytes: &[u8]| -> Corpus {
    let bytes = bytes.to_vec().into();
    let _objects = outcome::handle_objects(&bytes, tupelo_fuzz::BUDGET_BYTES);
    match outcome::handle_trees(&bytes, tupelo_fuzz::BUDGET_BYTES) {
        Ok(_) => Corpus::Keep,
        Err(_) => Corpus::Reject,
    }
});
