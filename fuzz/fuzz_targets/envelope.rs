//! Any bytes as header, footer or page list of a sample ntuple, with right lengths and checksums around them: gets behind
//! the checksums, byte by byte.
#![no_main]

use std::sync::LazyLock;

use bytes::Bytes;
use conformance::bad::Base;
use conformance::model::{Model, Stage};
use libfuzzer_sys::fuzz_target;
use tupelo_format::envelope::EnvelopeType::{Footer, Header, PageList};

static BASES: LazyLock<[Bytes; Base::ALL.len()]> = LazyLock::new(|| Base::ALL.map(Base::bytes));

fuzz_target!(|bytes: &[u8]| {
    let Some((&choice, payload)) = bytes.split_first() else { return };
    let kind = [Header, Footer, PageList][usize::from(choice) % 3];
    let base = &BASES[usize::from(choice / 3) % Base::ALL.len()];
    let (mut model, payload) = (Model::load(base).expect("a sample"), payload.to_vec());
    model.pack = choice & 0x80 != 0;
    // Behind the flags, a footer names its header, and a page list begins with it: let them be right.
    model.edit_bytes(Stage::Payload(kind), move |old| {
        let mut new = payload.clone();
        let known = match kind {
            Header => 0..0,
            Footer => 8..16,
            PageList => 0..8,
        };
        if new.len() >= known.end {
            new[known.clone()].copy_from_slice(&old[known]);
        }
        *old = new;
    });
    let Ok(file) = model.build() else { return };
    tupelo_fuzz::handle(&file);
});
