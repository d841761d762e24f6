//! Which bytes are requested, and in how many requests, when an ntuple is opened and read: all of it, some fields, some
//! entries. Reading a range fetches and decodes only the pages that contain it.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Float32Type;
use arrow_array::{ArrayRef, Float32Array, LargeListArray, RecordBatch};
use bytes::Bytes;
use conformance::{memory, summary};
use tupelo::schema::{Schema, tighten};
use tupelo::{Compression, File, Ntuple, WriteOptions};
use tupelo_format::compression::Algorithm;
use tupelo_format::container::{FetchedRanges, Interrupt};
use tupelo_format::envelope::{EnvelopeType, PageInfo};
use tupelo_format::locator::EnvelopeLink;
use tupelo_format::open;
use tupelo_storage::MemorySource;
use tupelo_storage::adapter::{IoEvent, IoLog, RecordingSource};

const CLUSTERS: u64 = 5;
const CLUSTER_ENTRIES: u64 = 4000;
const PAGE_BYTES: u64 = 1024;
/// Columns in the file: `x`, the index of `v`, the items of `v`.
const COLUMNS: usize = 3;

/// Items of `v` in an entry.
fn items(entry: u64) -> u64 {
    entry % 4
}

fn sample() -> Bytes {
    let batch = |cluster: u64| {
        let entries = cluster * CLUSTER_ENTRIES..(cluster + 1) * CLUSTER_ENTRIES;
        let x: Float32Array = entries.clone().map(|entry| entry as f32).collect();
        let lists = entries.map(|entry| Some((0..items(entry)).map(move |i| Some((entry + i) as f32))));
        let v = LargeListArray::from_iter_primitive::<Float32Type, _, _>(lists);
        RecordBatch::try_from_iter([("x", Arc::new(x) as ArrayRef), ("v", Arc::new(v) as ArrayRef)]).expect("a batch")
    };
    let batches: Vec<_> = (0..CLUSTERS).map(batch).collect();
    let schema = Schema::from_arrow(&tighten(&batches[0])).expect("a schema");
    let options = WriteOptions::default().with_compression(Compression::NONE).with_page_bytes(PAGE_BYTES);
    memory::write(&schema, &batches, options, true).expect("a file")
}

/// Byte ranges of the pages of a column in a cluster, each with its elements counted from the start of the cluster.
fn pages(file: &Bytes, cluster: u64, column: usize) -> Vec<(Range<u64>, Range<u64>)> {
    fn done<T>(attempt: Result<T, Interrupt>) -> T {
        attempt.unwrap_or_else(|interrupt| panic!("{interrupt:?}"))
    }
    let mut fetched = FetchedRanges::new(file.len() as u64);
    fetched.provide(0, file.clone());
    let object = done(open::ntuples(&fetched)).remove(0);
    let anchor = done(open::anchor(&fetched, &object));
    let links = anchor.links();
    let envelopes = |links: &[(EnvelopeType, EnvelopeLink)]| {
        done(open::stored_envelopes(&fetched, links.iter().copied(), anchor.max_key_size))
    };
    let stored = envelopes(&[(EnvelopeType::Header, links.header), (EnvelopeType::Footer, links.footer)]);
    let (size, memory) = (fetched.size(), fetched.memory());
    let descriptor = open::descriptor([&stored[0], &stored[1]], &links, size, memory).expect("a descriptor");
    let group = &descriptor.cluster_groups()[0];
    let stored = envelopes(&[(EnvelopeType::PageList, group.page_list)]).remove(0);
    let list = open::page_list(&stored, &descriptor, group, memory).expect("a page list");
    let pages = list.pages(cluster as usize, column).expect("pages").expect("a column").pages;
    let mut first = 0;
    let place = |page: PageInfo| {
        let (offset, bytes) = page.locator.in_file().expect("a place");
        let elements = first..first + u64::from(page.elements);
        first = elements.end;
        (elements, offset..offset + bytes + 8)
    };
    pages.into_iter().map(place).collect()
}

/// Byte ranges of the pages that hold elements of a range.
fn holding(file: &Bytes, cluster: u64, column: usize, wanted: Range<u64>) -> Vec<Range<u64>> {
    let holds = |elements: &Range<u64>| elements.start.max(wanted.start) < elements.end.min(wanted.end);
    pages(file, cluster, column).into_iter().filter(|(elements, _)| holds(elements)).map(|(_, bytes)| bytes).collect()
}

/// Ranges in order, with those that touch joined.
fn joined(mut ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    ranges.sort_by_key(|range| range.start);
    let mut joined: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        match joined.last_mut() {
            Some(last) if last.end >= range.start => last.end = last.end.max(range.end),
            _ => joined.push(range),
        }
    }
    joined
}

fn opened(file: &Bytes) -> (Ntuple, IoLog) {
    let log = IoLog::new();
    let source = RecordingSource::new(MemorySource::new(file.clone()), &log);
    let ntuple = File::new(Arc::new(source), true).expect("a file").ntuple(None).expect("an ntuple");
    (ntuple, log)
}

/// The read requests that were logged since the last call.
fn requests(log: &IoLog) -> Vec<Range<u64>> {
    let requests = |event| match event {
        IoEvent::Read { requests, .. } => requests,
        _ => Vec::new(),
    };
    log.take().into_iter().flat_map(requests).collect()
}

#[test]
fn opening_takes_one_read_of_head_and_tail() {
    let file = sample();
    let size = file.len() as u64;
    assert!(size > 300_000);
    let (_, log) = opened(&file);
    let expected = format!(
        "size\nread 2 ranges, 2 requests, {} bytes: 0..{} {}..{size}\n",
        open::HEAD_BYTES + open::TAIL_BYTES,
        open::HEAD_BYTES,
        size - open::TAIL_BYTES
    );
    assert_eq!(log.to_string(), expected);
}

#[test]
fn a_small_file_is_one_request() {
    let file = conformance::bad::Base::Nested.bytes();
    let (ntuple, log) = opened(&file);
    assert_eq!(requests(&log), [Range { start: 0, end: file.len() as u64 }]);
    ntuple.read_all().to_batch().expect("its data");
}

#[test]
fn everything_is_read_once_with_a_request_for_each_cluster() {
    let file = sample();
    let (ntuple, log) = opened(&file);
    let all = (0..CLUSTERS).flat_map(|cluster| (0..COLUMNS).flat_map(move |column| [(cluster, column)]));
    let all = joined(all.flat_map(|(cluster, column)| holding(&file, cluster, column, 0..u64::MAX)).collect());
    assert_eq!(all.len() as u64, CLUSTERS);
    requests(&log);
    ntuple.read_all().to_batch().expect("all data");
    assert_eq!(requests(&log), all);
    // Batches that no cluster and no page fits are cut from what was read once.
    for batch in ntuple.read_all().batches(999).expect("batches") {
        batch.expect("a batch");
    }
    assert_eq!(requests(&log), all);
}

#[test]
fn a_projection_reads_its_columns_alone() {
    let file = sample();
    let (ntuple, log) = opened(&file);
    for (field, columns) in [("x", 0..1), ("v", 1..3)] {
        requests(&log);
        ntuple.read([field]).expect("a field").to_batch().expect("its data");
        let own = (0..CLUSTERS)
            .flat_map(|cluster| columns.clone().flat_map(move |column| [(cluster, column)]))
            .flat_map(|(cluster, column)| holding(&file, cluster, column, 0..u64::MAX));
        assert_eq!(requests(&log), joined(own.collect()), "{field}");
    }
}

/// The pages of a range of entries of one cluster.
fn wanted(file: &Bytes, cluster: u64, entries: Range<u64>) -> Vec<Range<u64>> {
    let before = |entry: u64| (0..entry).map(items).sum::<u64>();
    let mut wanted = holding(file, cluster, 0, entries.clone());
    // Where the first list begins is where the one before it ends.
    wanted.extend(holding(file, cluster, 1, entries.start.saturating_sub(1)..entries.end));
    wanted.extend(holding(file, cluster, 2, before(entries.start)..before(entries.end)));
    wanted
}

#[test]
fn a_range_reads_only_the_pages_that_hold_it() {
    let file = sample();
    let (ntuple, log) = opened(&file);
    // A page of `x` has 256 elements, one of the index 128.
    for range in [0..1, 3..4, 128..129, 255..257, 1000..1300, 2047..2048, 3999..4000, 0..3999, 700..701] {
        for cluster in [0, 3] {
            requests(&log);
            let entries = cluster * CLUSTER_ENTRIES + range.start..cluster * CLUSTER_ENTRIES + range.end;
            let batch = ntuple.read_all().entries(entries).to_batch().expect("a range");
            assert_eq!(batch.num_rows() as u64, range.end - range.start);
            let read = joined(requests(&log));
            assert_eq!(read, joined(wanted(&file, cluster, range.clone())), "entries {range:?} of cluster {cluster}");
        }
    }
    // Over several clusters: the end of one, all of the next, the beginning of a third.
    requests(&log);
    ntuple.read_all().entries(3990..8010).to_batch().expect("a range");
    let parts = [wanted(&file, 0, 3990..4000), wanted(&file, 1, 0..4000), wanted(&file, 2, 0..10)];
    assert_eq!(joined(requests(&log)), joined(parts.concat()));
    summary::note("io_pattern", "requests of opening, reading, projections and ranges are as planned, to the byte");
}

#[test]
fn an_explanation_lists_what_is_read() {
    let file = sample();
    let (ntuple, log) = opened(&file);
    let bytes = |ranges: &[Range<u64>]| ranges.iter().map(|range| range.end - range.start).sum::<u64>();
    // Whole clusters: exactly; parts: no less than what is read.
    for (range, is_exact) in [(0..20_000, true), (4000..12_000, true), (3990..8010, false), (7..8, false), (5..5, true)]
    {
        requests(&log);
        let read = ntuple.read_all().entries(range.clone());
        let explanation = read.explain().expect("an explanation");
        assert_eq!(requests(&log), [], "explaining reads no page");
        read.to_batch().expect("a range");
        let done = requests(&log);
        assert_eq!(explanation.entries, range.end - range.start);
        let bounds: Vec<bool> = explanation.columns.iter().map(|column| column.is_upper_bound).collect();
        if is_exact {
            let explained = (explanation.requests, explanation.stored_bytes());
            assert_eq!(explained, (done.len() as u64, bytes(&done)), "{range:?}");
            assert!(!bounds.contains(&true), "{range:?}");
        } else {
            assert!(explanation.stored_bytes() >= bytes(&done), "{range:?}");
            assert_eq!(bounds, [false, false, true], "{range:?}");
        }
    }
    let explained = |fields: &[&str]| ntuple.read(fields).unwrap().explain().unwrap();
    let column = explained(&["v"]).columns.remove(1);
    assert_eq!((column.field.as_str(), column.column_type, column.pages), ("v._0", "Real32", 5 * 24));
    assert_eq!(column.stored_bytes, column.unpacked_bytes + 8 * column.pages);
}

#[test]
fn an_empty_range_reads_nothing() {
    let file = sample();
    let (ntuple, log) = opened(&file);
    requests(&log);
    assert_eq!(ntuple.read_all().entries(7..7).to_batch().expect("nothing").num_rows(), 0);
    assert_eq!(requests(&log), []);
}

#[test]
fn damage_elsewhere_does_not_hurt_a_range() {
    let file = sample();
    let mine = wanted(&file, 2, 1000..1100);
    let mut damaged = file.to_vec();
    for cluster in 0..CLUSTERS {
        for range in (0..COLUMNS).flat_map(|column| holding(&file, cluster, column, 0..u64::MAX)) {
            if !mine.contains(&range) {
                damaged[range.start as usize] ^= 0xff;
            }
        }
    }
    let damaged = memory::ntuple(&damaged.into()).expect("an ntuple");
    let whole = memory::ntuple(&file).expect("an ntuple");
    let read = |ntuple: &Ntuple| ntuple.read_all().entries(9000..9100).to_batch().expect("a range");
    assert_eq!(read(&damaged), read(&whole));
    let error = damaged.read_all().to_batch().expect_err("damage").to_string();
    assert!(error.contains("field 'x': column 0 (Real32), cluster 0, page 0 (1024 bytes at offset "), "{error}");
    assert!(error.contains("page checksum mismatch"), "{error}");
}

/// `a` and `b` have the same offsets everywhere, and `c` in the first cluster only. Pages are large enough to be worth
/// it.
fn members(compression: Compression) -> Bytes {
    let batch = |cluster: u64| {
        let entries = cluster * CLUSTER_ENTRIES..(cluster + 1) * CLUSTER_ENTRIES;
        let lists = |times: f32, more: u64| {
            let lists =
                entries.clone().map(|entry| Some((0..items(entry) + more).map(move |i| Some(times * i as f32))));
            Arc::new(LargeListArray::from_iter_primitive::<Float32Type, _, _>(lists)) as ArrayRef
        };
        let columns = [("a", lists(1.0, 0)), ("b", lists(2.0, 0)), ("c", lists(3.0, u64::from(cluster > 0)))];
        RecordBatch::try_from_iter(columns).expect("a batch")
    };
    let batches: Vec<_> = (0..CLUSTERS).map(batch).collect();
    let schema = Schema::from_arrow(&tighten(&batches[0])).expect("a schema");
    let options = WriteOptions::default().with_compression(compression).with_page_bytes(16 << 10);
    memory::write(&schema, &batches, options, true).expect("a file")
}

/// Regression: pages were compared only if they take 8 KiB in the file. Offsets of 16 KiB take some hundred bytes.
#[test]
fn the_same_compressed_offsets_are_read_once() {
    tupelo::set_threads(1);
    let compression = Compression::new(Algorithm::Zstd, 5).expect("a setting");
    let [plain, compressed] =
        [Compression::NONE, compression].map(|it| memory::ntuple(&members(it)).expect("an ntuple"));
    let entries = 0..CLUSTERS * CLUSTER_ENTRIES;
    let all = |ntuple: &Ntuple| ntuple.read_all().entries(entries.clone()).to_batch().expect("all");
    let found = all(&compressed);
    assert_eq!(found, all(&plain));
    let [a, b, c] = [0, 1, 2].map(|at| found.column(at).as_list::<i64>().offsets());
    assert!(a.ptr_eq(b) && !a.ptr_eq(c));
    // Far enough apart to be read by themselves, many of them from each page.
    let single: Vec<u64> = entries.clone().step_by(97).collect();
    let take = |ntuple: &Ntuple| ntuple.read_all().take(&single).expect("entries");
    assert_eq!(take(&compressed), take(&plain));
}

#[test]
fn the_same_offsets_are_read_once() {
    // Of two threads that come at the same time neither waits for the other.
    tupelo::set_threads(1);
    let bytes = members(Compression::NONE);
    let ntuple = memory::near_ntuple(&bytes).expect("an ntuple");
    let read =
        |ntuple: &Ntuple, names: &[&str], range: Range<u64>| ntuple.read(names).unwrap().entries(range).to_batch();
    for range in [0..CLUSTERS * CLUSTER_ENTRIES, 0..CLUSTER_ENTRIES, 3000..9000, 7..8] {
        let all = read(&ntuple, &[], range.clone()).unwrap();
        for (index, name) in ["a", "b", "c"].into_iter().enumerate() {
            assert_eq!(all.column(index), read(&ntuple, &[name], range.clone()).unwrap().column(0), "{name} {range:?}");
        }
        let offsets = |index: usize| all.column(index).as_list::<i64>().offsets().inner().inner().as_ptr();
        assert_eq!(offsets(0), offsets(1), "{range:?}");
        assert_eq!(offsets(0) == offsets(2), range.end <= CLUSTER_ENTRIES, "{range:?}");
    }

    // The columns are the index of `a`, its items, the index of `b` and so on.
    let damaged_bytes = |column: usize| {
        let mut damaged = bytes.to_vec();
        let (_, page) = pages(&bytes, 2, column).remove(1);
        damaged[page.start as usize + 100] ^= 1;
        Bytes::from(damaged)
    };
    let damaged = |column: usize| memory::near_ntuple(&damaged_bytes(column)).expect("an ntuple");
    let everything = 0..CLUSTERS * CLUSTER_ENTRIES;
    let whole = read(&ntuple, &["a", "b"], everything.clone()).unwrap();
    // Damaged pages have no effect unless they are read; reading them is an error.
    assert_eq!(read(&damaged(2), &["a", "b"], everything.clone()).unwrap(), whole);
    for (column, names) in [(2, &["b"][..]), (0, &["a", "b"]), (4, &["a", "b", "c"])] {
        let error = read(&damaged(column), names, everything.clone()).unwrap_err();
        assert!(error.to_string().contains("checksum"), "{error}");
    }
    let file = memory::file(&damaged_bytes(2)).expect("a file");
    assert_eq!(tupelo::ops::verify::verify(&file, None, &mut |_| {}).expect("a report").damages.len(), 1);
}
