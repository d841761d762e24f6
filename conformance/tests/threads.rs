//! Any number of threads gives the same data, and the same error.

use std::sync::Arc;

use arrow_array::types::Float64Type;
use arrow_array::{ArrayRef, Float64Array, Int32Array, LargeListArray, LargeStringArray, RecordBatch};
use bytes::Bytes;
use conformance::{memory, summary};
use tupelo::schema::{Schema, tighten};
use tupelo::{Ntuple, WriteOptions};

const ENTRIES: i32 = 300_000;

fn sample() -> Bytes {
    sample_in_clusters(1 << 20)
}

fn sample_in_clusters(bytes: u64) -> Bytes {
    let numbers: Int32Array = (0..ENTRIES).collect();
    let reals: Float64Array = (0..ENTRIES).map(|entry| f64::from(entry).sqrt()).collect();
    let lists = (0..ENTRIES).map(|entry| Some((0..entry % 4).map(move |item| Some(f64::from(entry ^ item)))));
    let lists = LargeListArray::from_iter_primitive::<Float64Type, _, _>(lists);
    let texts: LargeStringArray = (0..ENTRIES).map(|entry| Some(format!("{entry}"))).collect();
    let columns: [(&str, ArrayRef); 4] =
        [("i", Arc::new(numbers)), ("x", Arc::new(reals)), ("v", Arc::new(lists)), ("s", Arc::new(texts))];
    let batch = RecordBatch::try_from_iter(columns).expect("a batch");
    let schema = Schema::from_arrow(&tighten(&batch)).expect("a schema");
    let options = WriteOptions::default().with_cluster_bytes(bytes).with_page_bytes(16 << 10);
    memory::write(&schema, std::slice::from_ref(&batch), options, false).expect("a file")
}

/// A file without the time and the UUID of its creation.
fn normalized(file: &Bytes) -> Vec<u8> {
    // In the key of the first record at byte 100, and in the header.
    let (time, uuid) = (file[110..114].to_vec(), file[47..63].to_vec());
    let mut bytes = file.to_vec();
    for what in [time, uuid] {
        for start in 0..=bytes.len() - what.len() {
            if bytes[start..].starts_with(&what) {
                bytes[start..start + what.len()].fill(0);
            }
        }
    }
    bytes
}

/// In one process, and so in one test: the number of threads is that of the process.
#[test]
fn any_number_of_threads_gives_the_same() {
    let file = sample();
    let mut damaged = file.to_vec();
    // In the middle of the pages, so that tasks before and after it have something to do.
    for place in [file.len() / 3, file.len() / 2] {
        damaged[place] ^= 0x10;
    }
    let damaged = Bytes::from(damaged);
    let read = |open: fn(&Bytes) -> tupelo::Result<Ntuple>, bytes: &Bytes| {
        open(bytes).expect("an ntuple").read_all().to_batch().map_err(|error| error.to_string())
    };
    tupelo::set_threads(1);
    assert_eq!(tupelo::threads(), 1);
    let (expected, error) = (read(memory::ntuple, &file), read(memory::ntuple, &damaged));
    assert!(expected.is_ok());
    assert!(error.as_ref().is_err_and(|error| error.contains("page checksum mismatch")), "{error:?}");
    // With small clusters, pages are too few at a time to be sealed in the background.
    let (written, large) = (sample(), sample_in_clusters(32 << 20));
    for threads in [2, 3, 8] {
        tupelo::set_threads(threads);
        assert_eq!(tupelo::threads(), threads);
        for _ in 0..5 {
            for open in [memory::ntuple, memory::near_ntuple] {
                assert!(read(open, &file) == expected, "{threads} threads read other data");
                assert_eq!(read(open, &damaged), error, "{threads} threads");
            }
        }
        let again = memory::ntuple(&sample()).expect("an ntuple");
        assert!(again.read_all().to_batch().map_err(|error| error.to_string()) == expected);
        assert!(normalized(&sample()) == normalized(&written), "{threads} threads write other bytes");
        assert!(normalized(&sample_in_clusters(32 << 20)) == normalized(&large), "{threads} threads write other bytes");
    }
    let counted = |bytes: &Bytes| {
        let file = memory::file(bytes).expect("a file").with_metrics();
        let ntuple = file.ntuple(None).expect("an ntuple");
        ntuple.read_all().to_batch().expect("all data");
        ntuple.metrics().expect("metrics")
    };
    let metrics = counted(&file);
    assert_eq!(metrics.threads, 8);
    assert!(metrics.pages > 100 && metrics.page_bytes <= metrics.read_bytes, "{metrics:?}");
    assert!(metrics.read_bytes < file.len() as u64 + 64 && metrics.compression_factor() > 1.0, "{metrics:?}");
    tupelo::set_threads(1);
    let alone = counted(&file);
    let sums = |m: &tupelo::Metrics| (m.requests, m.read_bytes, m.page_bytes, m.pages, m.unpacked_bytes);
    assert_eq!(sums(&alone), sums(&metrics), "what is counted does not depend on threads");
    assert!(alone.read.wall + alone.decompress.wall + alone.decode.wall <= alone.elapsed, "{alone:?}");
    assert!(memory::ntuple(&file).expect("an ntuple").metrics().is_none(), "metrics are disabled by default");
    summary::note("threads", "1, 2, 3 and 8 threads read and write the same, and find the same damage first");
}
