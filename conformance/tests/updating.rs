//! Adding to files with a wrong bit that no checksum covers: refused, or nothing is lost.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, RecordBatch};
use bytes::Bytes;
use conformance::bad::Base;
use conformance::mutate::Random;
use conformance::summary;
use conformance::updating::{self, Updated};
use tupelo::schema::Schema;
use tupelo::{File, FileWriter, WriteOptions};
use tupelo_storage::{ByteSink, MemoryFile, MemorySink, MemorySource};

const BUDGET_BYTES: u64 = 256 << 20;
/// Bits that are changed in each file; all of them where there are no more.
const BITS: usize = 700;
/// Larger real files are added to as they are.
const MAX_DAMAGED_BYTES: usize = 16 << 10;

/// Ntuples in directories, one of them in two cycles.
fn directories() -> Bytes {
    let target = MemoryFile::new();
    let file = FileWriter::create_in(Box::new(MemorySink::create(&target)), "memory.root").unwrap();
    let numbers: ArrayRef = Arc::new(Float64Array::from(vec![0.5, 1.5]));
    let batch = RecordBatch::try_from_iter([("x", numbers)]).unwrap();
    let schema = Schema::from_arrow(&batch.schema()).unwrap();
    for path in ["n", "n", "d/n", "d/e/n", "f/n"] {
        let mut ntuple = file.ntuple(path, &schema, WriteOptions::default()).unwrap();
        ntuple.write(&batch).unwrap();
        ntuple.finish().unwrap();
    }
    file.finish().unwrap();
    target.bytes().unwrap()
}

/// Changes single bits; gives how often the file was added to and how often not.
fn flip(name: &str, whole: &Bytes) -> (usize, usize) {
    let places = updating::uncovered(whole);
    let mut random = Random::new(places.len() as u64);
    let all = places.len() * 8;
    let (mut kept, mut refused) = (0, 0);
    for k in 0..all.min(BITS) {
        let bit = if all <= BITS { k } else { random.below(all as u64) as usize };
        let (at, bit) = (places[bit / 8], bit % 8);
        let mut file = whole.to_vec();
        file[at] ^= 1 << bit;
        match catch_unwind(AssertUnwindSafe(|| updating::check(&file.into(), BUDGET_BYTES))) {
            Ok(Updated::Kept) => kept += 1,
            Ok(Updated::Refused(_)) => refused += 1,
            Ok(Updated::Unreadable) => {}
            Err(_) => panic!("{name}: bit {bit} of byte {at}"),
        }
    }
    (kept, refused)
}

/// Of 8000 files with a wrong bit, 17 lost everything, and the writer reported success.
#[test]
fn an_update_of_a_damaged_file_is_refused_or_loses_nothing() {
    let mut files: Vec<(String, Bytes)> = vec![("directories".to_owned(), directories())];
    files.extend(Base::ALL.iter().map(|base| (format!("{base:?}"), base.bytes())));
    let real = summary::real_files();
    let count = real.len();
    for path in real {
        let bytes = Bytes::from(std::fs::read(&path).unwrap());
        if bytes.len() <= MAX_DAMAGED_BYTES {
            files.push((path.display().to_string(), bytes));
        }
    }
    let (mut kept, mut refused) = (0, 0);
    for (name, bytes) in &files {
        match updating::check(bytes, BUDGET_BYTES) {
            Updated::Kept => {}
            // Some of the files made by hand have no free list.
            Updated::Refused(error) if error.to_string().contains("was not closed") => continue,
            other => panic!("{name} as it is: {other:?}"),
        }
        let (some, others) = flip(name, bytes);
        (kept, refused) = (kept + some, refused + others);
    }
    assert!(kept > 100 && refused > 100, "{kept} kept, {refused} refused");
    let line = format!("{kept} damaged files added to, {refused} refused; with {count} real files");
    summary::note("updating", &line);
}

/// The two that were found: one of them had a zero byte in the file's name, the other a directory somewhere else.
#[test]
fn names_and_places_that_contradict_others_are_not_carried_over() {
    let whole = directories();
    let name = |file: &[u8]| file.windows(11).position(|window| window == b"memory.root").unwrap();
    let first = name(&whole);
    let second = first + 11 + name(&whole[first + 11..]);
    let mut file = whole.to_vec();
    file[second + 3] = 0;
    refused(file, "the name of the file in the top directory is");
    // Version, two times, two lengths, then the directory's own place.
    let record = 100 + u32::from_be_bytes(whole[28..32].try_into().unwrap()) as usize;
    for bit in 0..32 {
        let mut file = whole.to_vec();
        file[record + 18 + bit / 8] ^= 1 << (bit % 8);
        refused(file, "its own offset is");
    }
    for hostile in summary::hostile_files("update-") {
        let bytes = Bytes::from(std::fs::read(&hostile).unwrap());
        let outcome = updating::check(&bytes, BUDGET_BYTES);
        assert!(matches!(outcome, Updated::Refused(_)), "{}: {outcome:?}", hostile.display());
    }
}

fn number_at(file: &[u8], at: usize) -> usize {
    u32::from_be_bytes(file[at..at + 4].try_into().unwrap()) as usize
}

/// Where the key list of the top directory begins.
fn key_list(file: &[u8]) -> usize {
    // Version, two times, two lengths and two offsets stand before it.
    number_at(file, 100 + number_at(file, 28) + 26)
}

fn refused(file: Vec<u8>, said: &str) {
    match updating::check(&file.into(), BUDGET_BYTES) {
        Updated::Refused(error) => assert!(error.to_string().contains(said), "{error}"),
        other => panic!("{other:?}"),
    }
}

fn sink(file: &[u8]) -> MemorySink {
    let target = MemoryFile::new();
    let mut sink = Box::new(MemorySink::create(&target));
    sink.append(file).unwrap();
    sink.commit().unwrap();
    MemorySink::update(&target).unwrap()
}

fn paths(file: &[u8]) -> Vec<String> {
    let file = File::of_bytes("memory.root", file.to_vec()).unwrap();
    file.objects().unwrap().into_iter().map(|object| format!("{};{}", object.path, object.cycle)).collect()
}

/// One flipped bit in the length of a key hid all objects from Tupelo; ROOT and uproot do not use that length. An update
/// wrote an empty list instead.
#[test]
fn lengths_of_keys_in_key_lists_hide_no_object() {
    let whole = directories();
    let list = key_list(&whole);
    let first = list + usize::from(whole[list + 15]) + 4;
    for (key, said) in [(list, "its key is"), (first, "its key 'n' is")] {
        for bit in 0..8 {
            let mut file = whole.to_vec();
            file[key + 15] ^= 1 << bit;
            // Not shorter than its content, and not longer than its record.
            if (usize::from(whole[key + 15]) + 1..=number_at(&file, key)).contains(&usize::from(file[key + 15])) {
                assert_eq!(paths(&file), paths(&whole));
                let error = FileWriter::update_in(Box::new(sink(&file)), Arc::new(MemorySource::new(file)));
                assert!(error.as_ref().unwrap_err().to_string().contains(said), "{error:?}");
            }
        }
    }
    // A list that says that it has fewer keys than it has.
    let mut file = whole.to_vec();
    file[first - 1] -= 1;
    assert!(paths(&file).len() < paths(&whole).len());
    refused(file, "bytes follow its");
}

/// The record of a directory is overwritten in place: that must not be something else.
#[test]
fn a_directory_is_where_its_key_is() {
    let whole = directories();
    let record = (100..whole.len()).find(|&at| {
        let is_key = whole.get(at + 26..at + 37) == Some(b"\x0aTDirectory".as_slice());
        is_key && number_at(&whole, at + 18) == at && number_at(&whole, at) < 200
    });
    let record = record.expect("the record of a directory");
    // The name in its key, behind that of its class.
    let mut file = whole.to_vec();
    file[record + 38] ^= 1;
    assert_eq!(paths(&file), paths(&whole));
    refused(file, "the name in its key is");
}
