//! The model with numbers that are computed by hand, its laws, and measurements of a small ntuple.

use std::collections::HashSet;
use std::fmt;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow_array::builder::{LargeListBuilder, UInt64Builder};
use arrow_array::{ArrayRef, Float32Array, RecordBatch, RecordBatchOptions, UInt64Array};
use bytes::Bytes;
use proptest::prelude::*;
use tupelo_format::compression::Compression;
use tupelo_schema::schema::Schema;
use tupelo_storage::remote::REMOTE_HINTS;
use tupelo_storage::{ByteSource, Hints, MemoryFile, MemorySink, MemorySource};

use super::trial::{ColumnBytes, Form};
use super::*;
use crate::ops::copy::{Pages, copy};
use crate::ops::cost::Cost;
use crate::ops::export::export;
use crate::ops::merge::merge_tree;
use crate::reader::{File, Ntuple};
use crate::writer::{FileWriter, MoveOptions, TreeOptions, WriteOptions};

const MIB: u64 = 1 << 20;
const HINTS: Hints = Hints { gap_bytes: 0, max_request_bytes: 16 * MIB, concurrency: 4 };

fn codec(name: &str) -> Compression {
    name.parse().unwrap()
}

/// Four columns of 8 MiB, compressed to a part of that; the second one is read. 1024 entries.
fn trial(name: &str, part: u64, write_seconds: f64, read_seconds: f64) -> Trial {
    let column = |column| ColumnBytes {
        column,
        unpacked: 8 * MIB,
        stored: 8 * MIB / part,
        pages: 8,
        counted: 8 * MIB,
        ..ColumnBytes::default()
    };
    Trial {
        form: Form::Ntuple,
        compression: codec(name),
        page_bytes: MIB,
        entries: 1024,
        columns: (0..4).map(column).collect(),
        selected: HashSet::from([1]),
        envelope_bytes: 1000,
        list_bytes_per_page: 0.0,
        file_bytes: 500,
        write_seconds,
        read_seconds,
    }
}

/// Fast and large, slow and small.
fn trials() -> [Trial; 2] {
    [trial("none", 1, 0.25, 0.125), trial("zstd:5", 4, 2.0, 1.0)]
}

fn store(latency_seconds: f64, bytes_per_second: f64) -> StoreModel {
    StoreModel { hints: HINTS, ..StoreModel::remote(Link { latency_seconds, bytes_per_second }) }
}

fn candidates(store: &StoreModel) -> Vec<Candidate> {
    let of = |trial: &Trial| DEFAULT_MAPPINGS.map(|mapping| with(trial, mapping, (store, 1)));
    trials().iter().flat_map(of).collect()
}

/// The entries in clusters of 16 MiB as objects.
fn with(trial: &Trial, mapping: Mapping, store: (&StoreModel, usize)) -> Candidate {
    trial.candidate(1024, 16 * MIB, Container::Objects(mapping), 0, store)
}

/// Written once, and read so often.
fn reads(reads: u64) -> Usage {
    Usage { writes: 1, reads }
}

/// The candidate with the least time of a write and some reads.
fn fastest(store: &StoreModel, times: u64) -> Candidate {
    *best(&candidates(store), &[&|candidate: &Candidate| candidate.seconds(reads(times))]).unwrap()
}

fn codec_of(candidate: &Candidate) -> String {
    candidate.layout.unwrap().compression.to_string()
}

#[test]
fn clusters_and_pages_have_the_sizes_of_the_sample() {
    let [none, zstd] = trials();
    let free = store(0.0, f64::INFINITY);
    // 32 MiB in clusters of 16 MiB, with 4 MiB of each column in pages of 1 MiB.
    let page = with(&none, Mapping::Page, (&free, 1));
    assert_eq!(page.clusters, 2);
    // Besides pages there are page list, header, footer, manifest and anchor; opening needs four requests.
    assert_eq!((page.cost.objects, page.cost.write_requests, page.cost.read_requests), (32 + 5, 32 + 5, 8 + 4));
    assert_eq!((page.cost.bytes, page.cost.read_bytes), (32 * MIB + 1000, 8 * MIB + 1000));
    let group = with(&none, Mapping::PageGroup, (&free, 1));
    assert_eq!((group.cost.objects, group.cost.read_requests), (8 + 5, 2 + 4));
    // Compressed to a quarter, all of it is half of a cluster.
    let small = with(&zstd, Mapping::Cluster, (&free, 1));
    assert_eq!((small.clusters, small.cost.objects, small.cost.read_requests), (1, 1 + 5, 1 + 4));
    assert_eq!((small.cost.bytes, small.cluster_memory_bytes), (8 * MIB + 1000, 8 * MIB));
    // Four times the entries, and half a cluster more.
    let more = none.candidate(4096 + 256, 16 * MIB, Container::Objects(Mapping::Page), 0, (&free, 1));
    assert_eq!((more.clusters, more.cost.objects), (9, 8 * 16 + 8 + 5));
    assert_eq!(more.write.seconds(), 0.25 * 4.25);
}

#[test]
fn without_a_network_the_fastest_codec_wins() {
    let free = store(0.0, f64::INFINITY);
    let chosen = fastest(&free, 1);
    assert_eq!((codec_of(&chosen).as_str(), chosen.seconds(reads(1))), ("none", 0.375));
    assert_eq!((chosen.write.limit(), chosen.read.limit()), ("CPU", "CPU"));
    // Half of it with two cores.
    let two = with(&trials()[1], Mapping::Page, (&free, 2));
    assert_eq!((two.write.seconds(), two.read.seconds()), (1.0, 0.5));
}

#[test]
fn with_little_bandwidth_the_smallest_codec_wins() {
    let slow = store(0.0, MIB as f64);
    let chosen = fastest(&slow, 1);
    assert_eq!(codec_of(&chosen), "zstd:5");
    // 8 MiB are written, and a quarter of them is read; the metadata are 1000 bytes.
    assert!((chosen.seconds(reads(1)) - 10.0).abs() < 0.01, "{chosen:?}");
    assert_eq!(chosen.read.limit(), "bandwidth");
    // Where the smaller one is not read faster, its slower encoder is not worth it.
    assert_eq!(codec_of(&fastest(&store(0.0, 100.0 * MIB as f64), 1)), "none");
}

#[test]
fn with_much_latency_few_requests_win() {
    let far = store(1.0, f64::INFINITY);
    let chosen = fastest(&far, 1);
    assert!(!matches!(chosen.cost.container, Container::Objects(Mapping::Page)), "{chosen:?}");
    assert_eq!(chosen.read.limit(), "latency");
    let none = &trials()[0];
    // Of 37 requests four are concurrent, and six round trips depend on each other.
    assert_eq!(with(none, Mapping::Page, (&far, 1)).write.seconds(), 10.0 + 6.0);
    assert_eq!(with(none, Mapping::Page, (&far, 1)).read.seconds(), 3.0 + 2.0);
    assert_eq!(with(none, Mapping::PageGroup, (&far, 1)).write.seconds(), 4.0 + 6.0);
    assert_eq!(with(none, Mapping::Cluster, (&far, 1)).write.seconds(), 2.0 + 6.0);
    // Reading all pages of a column needs as many requests from an object as from a cluster.
    assert_eq!(with(none, Mapping::Cluster, (&far, 1)).read.seconds(), 2.0 + 2.0);
}

#[test]
fn where_requests_cost_money_large_objects_win() {
    let all = candidates(&store(0.0, f64::INFINITY));
    let dollars = |candidate: &Candidate| candidate.requests(reads(1)) as f64;
    let of = |mapping| {
        dollars(all.iter().find(|candidate| candidate.cost.container == Container::Objects(mapping)).unwrap())
    };
    assert!(of(Mapping::PageGroup) < of(Mapping::Page));
    let chosen = best(&all, &[&dollars]).unwrap();
    assert_eq!((chosen.cost.container.to_string(), codec_of(chosen)), ("cluster".to_owned(), "zstd:5".to_owned()));
}

#[test]
fn small_differences_do_not_decide() {
    let (a, b, c) = (0.0, 4.0, 100.0);
    let all: Vec<Candidate> = [a, b, c].map(|latency| candidates(&store(latency, f64::INFINITY))[0]).into();
    let place = |chosen: &Candidate| all.iter().position(|it| it == chosen).unwrap();
    // The second is 4 % worse by the first value, and better by the second one.
    let first = |candidate: &Candidate| [100.0, 104.0, 106.0][place(candidate)];
    let second = |candidate: &Candidate| [3.0, 2.0, 1.0][place(candidate)];
    assert_eq!(place(best(&all, &[&first]).unwrap()), 0);
    assert_eq!(place(best(&all, &[&first, &second]).unwrap()), 1);
    assert_eq!(best(&[], &[&first]), None);
}

/// The candidate with the least time, without tolerance.
fn least(store: &StoreModel, usage: Usage) -> Candidate {
    candidates(store).into_iter().min_by(|a, b| a.seconds(usage).total_cmp(&b.seconds(usage))).unwrap()
}

proptest! {
    /// More latency, fewer bytes per second and fewer cores never make a time smaller.
    #[test]
    fn worse_links_take_longer(
        cpu in 0.0..1e3, cores in 1usize..9, requests in 0u64..1_000_000, bytes in 0u64..1 << 40,
        latency in 0.0..2.0, more in 0.0..2.0, bandwidth in 1.0..1e10, part in 0.1..1.0,
    ) {
        let phase = |cores, latency_seconds, bytes_per_second| {
            let link = Link { latency_seconds, bytes_per_second };
            Phase::new(cpu, cores, (requests, bytes), 2, link, HINTS).seconds()
        };
        let time = phase(cores, latency, bandwidth);
        prop_assert!(phase(cores, latency + more, bandwidth) >= time);
        prop_assert!(phase(cores, latency, bandwidth * part) >= time);
        prop_assert!(phase(cores + 1, latency, bandwidth) <= time);
    }

    /// What is chosen for more reads is never slower to read, but for what counts as equal.
    #[test]
    fn more_reads_favour_faster_reading(
        latency in 0.0..0.3, bandwidth in 1e5..1e10, times in 0u64..100, more in 0u64..10_000,
    ) {
        let store = store(latency, bandwidth);
        let (few, many) = (least(&store, reads(times)), least(&store, reads(times + more)));
        prop_assert!(many.read.seconds() <= few.read.seconds() * (1.0 + 1e-9));
        prop_assert!(fastest(&store, times).seconds(reads(times)) <= few.seconds(reads(times)) * 1.05);
    }

    /// What is chosen for more writes is never slower to write, and more latency never favours more requests.
    #[test]
    fn more_writes_favour_faster_writing(
        latency in 0.0..0.3, more in 0.0..2.0, bandwidth in 1e5..1e10, writes in 0u64..100, others in 0u64..10_000,
    ) {
        let (near, far) = (store(latency, bandwidth), store(latency + more, bandwidth));
        let usage = |writes| Usage { writes, reads: 1 };
        let (few, many) = (least(&near, usage(writes)), least(&near, usage(writes + others)));
        prop_assert!(many.write.seconds() <= few.write.seconds() * (1.0 + 1e-9));
        // Only the requests differ.
        let alike = |store: &StoreModel| {
            let zstd = &trials()[1];
            let own = DEFAULT_MAPPINGS.map(|mapping| with(zstd, mapping, (store, 1)));
            own.into_iter().min_by(|a, b| a.seconds(usage(1)).total_cmp(&b.seconds(usage(1)))).unwrap()
        };
        prop_assert!(alike(&far).requests(usage(1)) <= alike(&near).requests(usage(1)));
    }
}

/// A batch of two fields.
fn two_fields(entries: u64) -> RecordBatch {
    let numbers: ArrayRef = Arc::new(UInt64Array::from_iter_values(0..entries));
    let values: ArrayRef = Arc::new(Float32Array::from_iter_values((0..entries).map(|entry| (entry as f32).sin())));
    RecordBatch::try_from_iter([("number", numbers), ("value", values)]).unwrap()
}

/// A file in memory, with what `fill` writes.
fn written(fill: impl FnOnce(&FileWriter)) -> MemoryFile {
    let file = MemoryFile::new();
    let writer = FileWriter::create_in(Box::new(MemorySink::create(&file)), "memory").unwrap();
    fill(&writer);
    writer.finish().unwrap();
    file
}

fn opened(file: &MemoryFile) -> Table {
    File::new(Arc::new(file.source().unwrap()), true).unwrap().table(None).unwrap()
}

/// An ntuple in pages of 16 KiB.
fn ntuple_of(batch: &RecordBatch, cluster_bytes: u64) -> Ntuple {
    let options = WriteOptions::default().with_cluster_bytes(cluster_bytes).with_page_bytes(16 << 10);
    let file = written(|writer| {
        let mut ntuple = writer.ntuple("Events", &Schema::from_arrow(&batch.schema()).unwrap(), options).unwrap();
        ntuple.write(batch).unwrap();
        ntuple.finish().unwrap();
    });
    opened(&file).ntuple().unwrap().clone()
}

/// An ntuple of two fields, in several clusters.
fn ntuple(entries: u64, cluster_bytes: u64) -> Ntuple {
    ntuple_of(&two_fields(entries), cluster_bytes)
}

fn options(codecs: &[&str], page_sizes: &[u64], containers: &[Container]) -> TuneOptions {
    TuneOptions::default()
        .with_compressions(codecs.iter().map(|name| codec(name)))
        .with_page_sizes(page_sizes.iter().copied())
        .with_cluster_sizes([1 << 30])
        .with_containers(containers.iter().copied())
}

fn measured(table: &Table, fields: &[&str], options: &TuneOptions) -> Measured {
    let read = table.read(fields).unwrap();
    measure(table, &read, options, &mut |_| ControlFlow::Continue(())).unwrap().unwrap()
}

const PAGES: Container = Container::Objects(Mapping::Page);

#[test]
fn the_whole_of_a_small_ntuple_is_the_sample() {
    let ntuple = ntuple(50_000, 100_000);
    let sizes = [8 << 10, 64 << 10, 1 << 20, 4 << 20];
    let options = options(&["none", "zstd:5"], &sizes, &[PAGES, Container::Objects(Mapping::Auto), Container::File]);
    let all = measured(&ntuple.clone().into(), &["value"], &options);
    assert_eq!((all.sample_entries(), all.trials().len()), (50_000, 8));
    for trial in all.trials() {
        assert_eq!(trial.unpacked_bytes(), 50_000 * 12);
        assert_eq!(trial.selected, HashSet::from([1]), "the second column is read");
        assert!(trial.write_seconds() > 0.0 && trial.read_seconds() > 0.0);
    }
    // 8 bytes of checksum for each of 49 and 25 pages.
    assert_eq!(all.trials()[0].stored_bytes(), 600_000 + 8 * (49 + 25));
    assert!(all.trials()[4].stored_bytes() < 600_000);
    // No column is larger than a page of 1 MiB.
    assert_eq!(all.trials()[3], all.trials()[2].clone().with_page_bytes(4 << 20));
    // The model counts the pages that the writer made, and the same bytes up to the page list.
    let store = store(0.0, f64::INFINITY);
    let modelled = all.candidates(&store, 1)[0];
    assert_eq!((modelled.clusters, modelled.cost.objects), (1, 49 + 25 + 5));
    assert!(modelled.cost.read_bytes > 200_000 && modelled.cost.read_bytes < 210_000, "{modelled:?}");
    // The present pages are those of the file.
    let present = all.present(&store, 1).unwrap();
    let expected = costs(&ntuple, &all.read, &[Mapping::Page, Mapping::Auto], HINTS).unwrap();
    assert_eq!(present[..2].iter().map(|candidate| candidate.cost).collect::<Vec<_>>(), expected);
    assert_eq!((present[0].layout, present[0].clusters), (None, ntuple.clusters()));
    assert_eq!(present[0].write.cpu_seconds, 0.0);
    let (file, sizes) = (&present[2], inspect::summary(&ntuple).unwrap().sizes);
    assert_eq!((file.cost.container, file.cost.bytes), (Container::File, expected[0].bytes));
    assert_eq!((file.sizes.unpacked_bytes, file.sizes.stored_bytes), (600_000, sizes.stored_bytes));
}

#[test]
fn the_model_agrees_with_the_writer() {
    let ntuple = ntuple(200_000, 1 << 30);
    let mappings = [Mapping::Page, Mapping::PageGroup, Mapping::Cluster];
    let options = options(&["none"], &[16 << 10], &mappings.map(Container::Objects)).with_sample_bytes(MIB);
    let measured = measured(&ntuple.clone().into(), &["number"], &options);
    assert!(measured.sample_entries() < 150_000);
    let store = store(0.0, f64::INFINITY);
    for (modelled, mapping) in measured.candidates(&store, 1).iter().zip(mappings) {
        let options = WriteOptions::default().with_compression(codec("none")).with_page_bytes(16 << 10);
        let file = written(|writer| {
            let go_on = &mut |_| ControlFlow::Continue(());
            copy(ntuple.read_all(), writer, "Events", options, Pages::Encode, go_on).unwrap().unwrap();
        });
        let copied = opened(&file).ntuple().unwrap().clone();
        let actual = costs(&copied, &copied.read(["number"]).unwrap(), &[mapping], HINTS).unwrap()[0];
        let modelled = modelled.cost;
        assert_eq!((modelled.objects, modelled.read_requests), (actual.objects, actual.read_requests), "{mapping}");
        let difference = modelled.bytes.abs_diff(actual.bytes);
        assert!(difference * 100 < actual.bytes, "{modelled:?} {actual:?}");
    }
}

/// A file on a server, which counts requests and their bytes.
#[derive(Debug)]
struct Far {
    file: MemorySource,
    hints: Hints,
    counts: Arc<[AtomicU64; 2]>,
}

impl fmt::Display for Far {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.file.fmt(f)
    }
}

impl ByteSource for Far {
    fn size(&self) -> tupelo_storage::Result<u64> {
        self.file.size()
    }

    fn hints(&self) -> Hints {
        self.hints
    }

    fn read_range(&self, range: Range<u64>) -> tupelo_storage::Result<Bytes> {
        for (count, number) in self.counts.iter().zip([1, range.end - range.start]) {
            count.fetch_add(number, Ordering::Relaxed);
        }
        self.file.read_range(range)
    }
}

/// Requests and bytes of opening a file and reading all entries of some fields.
fn real_reads(file: &MemoryFile, fields: &[&str], hints: Hints) -> [u64; 2] {
    let counts = Arc::<[AtomicU64; 2]>::default();
    let far = Far { file: file.source().unwrap(), hints, counts: Arc::clone(&counts) };
    let file = File::new(Arc::new(far), true).unwrap();
    let batch = file.table(None).unwrap().read(fields).unwrap().to_batch().unwrap();
    assert!(batch.num_rows() > 0);
    std::array::from_fn(|index| counts[index].load(Ordering::Relaxed))
}

/// Twelve numbers of noise and two lists.
fn wide(entries: u64) -> RecordBatch {
    let noise = |entry: u64, seed: u64| {
        let mixed = (entry * 100 + seed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed ^ (mixed >> 27)) >> 24
    };
    let column = |number: u64| -> (String, ArrayRef) {
        let values = (0..entries).map(|entry| noise(entry, number));
        (format!("x{number}"), Arc::new(UInt64Array::from_iter_values(values)))
    };
    let list = |number: u64| -> (String, ArrayRef) {
        let item = Arc::new(arrow_schema::Field::new("item", arrow_schema::DataType::UInt64, false));
        let mut list = LargeListBuilder::new(UInt64Builder::new()).with_field(item);
        for entry in 0..entries {
            list.values().extend((0..entry % 5).map(|item| Some(noise(entry, 20 + 5 * number + item))));
            list.append(true);
        }
        (format!("list{number}"), Arc::new(list.finish()))
    };
    let columns = (0..12).map(column).chain((0..2).map(list));
    let fields: Vec<(String, ArrayRef, bool)> = columns.map(|(name, array)| (name, array, false)).collect();
    RecordBatch::try_from_iter_with_nullable(fields).unwrap()
}

/// What is predicted for files is what the reader of the file requests that is then written.
#[test]
fn the_model_agrees_with_readers_of_files() {
    let ntuple = Table::from(ntuple_of(&wide(150_000), 1 << 30));
    let go_on = &mut |_| ControlFlow::Continue(());
    let tree = written(|writer| {
        export(ntuple.read_all(), writer, "Events", TreeOptions::default(), go_on).unwrap().unwrap();
    });
    let tree = opened(&tree);
    let requests = [&["x3"][..], &["x1", "x2", "x11"], &["list0"], &[]];
    let far = [Hints { gap_bytes: 0, max_request_bytes: 16 * MIB, concurrency: 16 }, REMOTE_HINTS];
    let cases = [(&ntuple, Container::File), (&ntuple, Container::Tree), (&tree, Container::Tree)];
    for ((table, container), page_bytes) in cases.into_iter().flat_map(|it| [(it, 16 << 10), (it, 256 << 10)]) {
        let options = options(&["lz4:4"], &[page_bytes], &[container])
            .with_basket_sizes([page_bytes])
            .with_cluster_sizes([4 * MIB])
            .with_auto_flushes([-4_000_000]);
        let mut file: Option<MemoryFile> = None;
        for fields in requests {
            let all = measured(table, fields, &options);
            for hints in far {
                let store = StoreModel { hints, ..store(0.0, f64::INFINITY) };
                let modelled = all.candidates(&store, 1)[0];
                let file = file.get_or_insert_with(|| apply(table, &modelled));
                let bytes = file.bytes().unwrap().len() as u64;
                assert!(modelled.cost.bytes.abs_diff(bytes) * 50 < bytes, "{container}: {modelled:?} {bytes}");
                let [requests, read_bytes] = real_reads(file, fields, hints);
                let Cost { read_requests: predicted, read_bytes: predicted_bytes, .. } = modelled.cost;
                let what = format!(
                    "{container}, pages of {page_bytes}, {fields:?}, gaps of {}: {predicted} requests and \
                     {predicted_bytes} bytes instead of {requests} and {read_bytes}",
                    hints.gap_bytes
                );
                // More than metadata is read of the end of a small file at once, and a gap may be just too large.
                assert!(predicted.abs_diff(requests) <= 1 + requests / 10, "{what}");
                assert!(predicted_bytes.abs_diff(read_bytes) <= (128 << 10) + read_bytes / 10, "{what}");
            }
        }
    }
}

/// The file that the command of a recommendation makes.
fn apply(table: &Table, candidate: &Candidate) -> MemoryFile {
    let layout = candidate.layout.unwrap();
    let (read, go_on) = (table.read_all(), &mut |_| ControlFlow::Continue(()));
    written(|writer| match (candidate.cost.container, table.tree()) {
        (Container::Tree, Some(tree)) => {
            let options = MoveOptions::default()
                .with_compression(Some(layout.compression))
                .with_basket_bytes(layout.page_bytes)
                .and_then(|options| options.with_auto_flush(layout.cluster_entries));
            let moved = merge_tree("Events", 1, |_| Ok::<_, Error>(tree.clone()), writer, options.unwrap(), go_on);
            assert!(moved.unwrap().unwrap().left_out.is_empty());
        }
        (Container::Tree, None) => {
            let options = TreeOptions::default()
                .with_compression(layout.compression)
                .with_basket_bytes(layout.page_bytes as u32)
                .with_auto_flush(layout.cluster_entries as i64)
                .with_optimised_baskets(false);
            export(read, writer, "Events", options, go_on).unwrap().unwrap();
        }
        _ => {
            let options = WriteOptions::default()
                .with_compression(layout.compression)
                .with_page_bytes(layout.page_bytes)
                .with_cluster_bytes(layout.cluster_bytes);
            copy(read, writer, "Events", options, Pages::Encode, go_on).unwrap().unwrap();
        }
    })
}

#[test]
fn samples_come_from_all_parts_of_an_ntuple() {
    let ntuple = ntuple(200_000, 20_000);
    assert!(ntuple.clusters() >= 8);
    let clusters = ntuple.cluster_ranges().unwrap();
    let ranges = sample::pieces(&clusters, 200_000, 1000);
    assert!(ranges.len() == 4 && ranges.iter().all(|range| range.end - range.start == 250), "{ranges:?}");
    let quarters: Vec<u64> = ranges.iter().map(|range| (range.start + 10_000) / 50_000).collect();
    assert_eq!(quarters, [0, 1, 2, 3], "{ranges:?}");
    assert_eq!(sample::pieces(&clusters, 200_000, 200_000), std::slice::from_ref(&(0..200_000)));
    let all = ntuple.read_all();
    let pieces = Pieces::new(&all, &all, &clusters, 100_000).unwrap();
    assert!(pieces.entries > 4 && pieces.entries < 20_000, "{} entries", pieces.entries);
    let sample = Sample::of_ntuple(&all, &ntuple, &pieces).unwrap();
    let trial = sample.trial(codec("none"), 1 << 20).unwrap();
    assert_eq!(trial.unpacked_bytes(), pieces.entries * 12);
}

#[test]
fn unmeasurable_sources_are_errors() {
    let mut progress = |_| ControlFlow::Continue(());
    let none = options(&["none"], &[1 << 20], &[Container::File, Container::Tree]);
    let mut error = |table: &Table, options: &TuneOptions| {
        measure(table, &table.read_all(), options, &mut progress).unwrap_err().to_string()
    };
    let empty = error(&ntuple(0, 1 << 20).into(), &none);
    assert!(empty.contains("no entries to measure"), "{empty}");
    let some = Table::from(ntuple(10, 1 << 20));
    let error_of = |options: TuneOptions| {
        measure(&some, &some.read_all(), &options, &mut |_| ControlFlow::Continue(())).unwrap_err().to_string()
    };
    let large = error_of(none.clone().with_page_sizes([1 << 40]));
    assert!(large.contains("page size"), "{large}");
    for baskets in [0, 1 << 40] {
        let wrong = error_of(none.clone().with_basket_sizes([baskets]));
        assert!(wrong.contains("basket size"), "{wrong}");
    }
    let ended = measure(&some, &some.read_all(), &none, &mut |_| ControlFlow::Break(()));
    assert!(ended.unwrap().is_none());
    let no_fields = RecordBatch::try_new_with_options(
        Arc::new(arrow_schema::Schema::empty()),
        Vec::new(),
        &RecordBatchOptions::new().with_row_count(Some(3)),
    );
    let nothing = error(&ntuple_of(&no_fields.unwrap(), 1 << 20).into(), &none);
    assert!(nothing.contains("no fields to measure"), "{nothing}");
}
