//! Any bytes as a file that is added to: refused, or all that could be read before can be read afterwards.
#![no_main]

use conformance::updating;
use libfuzzer_sys::{Corpus, fuzz_target};

fuzz_target!(|bytes: &[u8]| -> Corpus {
    match updating::check(&bytes.to_vec().into(), tupelo_fuzz::BUDGET_BYTES) {
        updating::Updated::Unreadable => Corpus::Reject,
        _ => Corpus::Keep,
    }
});
