//! Any bytes behind the header of a ROOT file: keys, directories, free list, the walk over all records. The first byte
//! chooses what else the file brings of its own.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use tupelo_format::container::{self, Anchor, Attempt, Chunks, FetchedRanges, Interrupt, RecordKind};
use tupelo_format::envelope::EnvelopeType;
use tupelo_format::open;

/// Files above this are cut: what takes long here takes long everywhere.
const MAX_BYTES: usize = 16 << 10;

/// All of the file is there: a function that asks for more asks for what it has.
fn run<T>(name: &str, step: impl FnOnce() -> Attempt<T>) -> Option<T> {
    match step() {
        Ok(done) => Some(done),
        Err(Interrupt::Failed(_)) => None,
        Err(Interrupt::Missing(ranges)) => panic!("{name} needs {ranges:?} of a file that is there"),
    }
}

fuzz_target!(|bytes: &[u8]| {
    let Some((&choice, rest)) = bytes.split_first() else { return };
    let mut file = rest[..rest.len().min(MAX_BYTES)].to_vec();
    if choice & 1 == 0 && file.len() >= 12 {
        // A header that leads somewhere: the first record at 100.
        file[..4].copy_from_slice(b"root");
        file[8..12].copy_from_slice(&100u32.to_be_bytes());
    }
    let mut fetched = FetchedRanges::new(file.len() as u64).with_memory_limit(tupelo_fuzz::BUDGET_BYTES);
    fetched.provide(0, Bytes::from(file.clone()));
    run("header", || container::read_header(&fetched));
    let records = run("walk", || container::walk_keys(&fetched)).unwrap_or_default();
    let keys = records.into_iter().filter_map(|record| match record.kind {
        RecordKind::Key(key) => container::is_recoverable(&key).then_some(key),
        RecordKind::Gap => None,
    });
    let keys: Vec<_> = keys.collect();
    run("states", || container::states(&fetched, &keys, 4));
    run("recovered", || container::recovered(&fetched, &keys));
    for object in run("ntuples", || open::ntuples(&fetched)).unwrap_or_default() {
        let found = run("object", || container::find_object(&fetched, &object.path));
        assert!(found.flatten().is_some() || object.path.contains([';', '/']) || object.path.is_empty(), "{object:?}");
        run("anchor", || open::anchor(&fetched, &object));
    }
    for object in run("objects", || container::list_objects(&fetched)).unwrap_or_default() {
        run("bytes", || container::object_bytes(&fetched, &object.key));
    }
    let word = |at: usize| file.get(at..at + 8).map_or(0, |w| u64::from_be_bytes(w.try_into().expect("eight bytes")));
    let [offset, nbytes, max] = [0, 8, 16].map(word);
    let [small, little, few] = [offset, nbytes, max].map(|word| word % (1 << 14));
    for (offset, nbytes, max) in [(offset, nbytes, max), (small, little, few)] {
        if let Ok(Some(chunks)) = Chunks::split(offset, nbytes, max)
            && nbytes <= MAX_BYTES as u64
        {
            assert!(chunks.first.end - chunks.first.start + chunks.other_bytes().sum::<u64>() >= nbytes, "{chunks:?}");
        }
        run("payload", || container::payload(&fetched, offset, nbytes, max));
    }
    if let Ok(anchor) = Anchor::read(&file, 0) {
        let _valid = anchor.validate(file.len() as u64);
        let links = anchor.links();
        let envelopes = [(EnvelopeType::Header, links.header), (EnvelopeType::Footer, links.footer)];
        let stored = || open::stored_envelopes(&fetched, envelopes.into_iter(), anchor.max_key_size);
        if let Some(stored) = run("envelopes", stored) {
            let _read = open::descriptor([&stored[0], &stored[1]], &links, fetched.size(), fetched.memory());
        }
    }
});
