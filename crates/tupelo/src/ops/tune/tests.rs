//! The model with numbers that are computed by hand, its laws, and measurements of a small ntuple.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use arrow_array::{ArrayRef, Float32Array, RecordBatch, UInt64Array};
use proptest::prelude::*;
use tupelo_format::compression::Compression;
use tupelo_storage::{Hints, MemoryFile, MemorySink};

use super::model::{ColumnBytes, Phase};
use super::*;
use crate::ops::copy::{Pages, copy};
use crate::reader::{File, Ntuple};
use crate::schema::Schema;
use crate::writer::{FileWriter, WriteOptions};

const MIB: u64 = 1 << 20;
const HINTS: Hints = Hints { gap_bytes: 0, max_request_bytes: 16 * MIB, concurrency: 4 };

fn codec(name: &str) -> Compression {
    name.parse().unwrap()
}

/// Four columns of 8 MiB, compressed to a part of that; the second one is read. 1024 entries.
fn trial(name: &str, part: u64, write_seconds: f64, read_seconds: f64) -> Trial {
    let column = |column| ColumnBytes { column, unpacked: 8 * MIB, stored: 8 * MIB / part };
    Trial {
        compression: codec(name),
        page_bytes: MIB,
        entries: 1024,
        columns: (0..4).map(column).collect(),
        selected: HashSet::from([1]),
        envelope_bytes: 1000,
        list_bytes_per_page: 0.0,
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
    let of = |trial: &Trial| DEFAULT_MAPPINGS.map(|mapping| trial.candidate(1024, 16 * MIB, mapping, 0, (store, 1)));
    trials().iter().flat_map(of).collect()
}

/// The candidate with the least time of a write and some reads.
fn fastest(store: &StoreModel, reads: u64) -> Candidate {
    *best(&candidates(store), &[&|candidate: &Candidate| candidate.seconds(reads)]).unwrap()
}

fn codec_of(candidate: &Candidate) -> String {
    candidate.layout.unwrap().compression.to_string()
}

#[test]
fn clusters_and_pages_have_the_sizes_of_the_sample() {
    let [none, zstd] = trials();
    let free = store(0.0, f64::INFINITY);
    // 32 MiB in clusters of 16 MiB, with 4 MiB of each column in pages of 1 MiB.
    let page = none.candidate(1024, 16 * MIB, Mapping::Page, 0, (&free, 1));
    assert_eq!(page.clusters, 2);
    // Besides pages there are page list, header, footer, manifest and anchor; opening needs four requests.
    assert_eq!((page.cost.objects, page.cost.write_requests, page.cost.read_requests), (32 + 5, 32 + 5, 8 + 4));
    assert_eq!((page.cost.bytes, page.cost.read_bytes), (32 * MIB + 1000, 8 * MIB + 1000));
    let group = none.candidate(1024, 16 * MIB, Mapping::PageGroup, 0, (&free, 1));
    assert_eq!((group.cost.objects, group.cost.read_requests), (8 + 5, 2 + 4));
    // Compressed to a quarter, all of it is half of a cluster.
    let small = zstd.candidate(1024, 16 * MIB, Mapping::Cluster, 0, (&free, 1));
    assert_eq!((small.clusters, small.cost.objects, small.cost.read_requests), (1, 1 + 5, 1 + 4));
    assert_eq!((small.cost.bytes, small.cluster_memory_bytes), (8 * MIB + 1000, 8 * MIB));
    // Four times the entries, and half a cluster more.
    let more = none.candidate(4096 + 256, 16 * MIB, Mapping::Page, 0, (&free, 1));
    assert_eq!((more.clusters, more.cost.objects), (9, 8 * 16 + 8 + 5));
    assert_eq!(more.write.seconds(), 0.25 * 4.25);
}

#[test]
fn without_a_network_the_fastest_codec_wins() {
    let free = store(0.0, f64::INFINITY);
    let chosen = fastest(&free, 1);
    assert_eq!((codec_of(&chosen).as_str(), chosen.seconds(1)), ("none", 0.375));
    assert_eq!((chosen.write.limit(), chosen.read.limit()), ("CPU", "CPU"));
    // Half of it with two cores.
    let two = trials()[1].candidate(1024, 16 * MIB, Mapping::Page, 0, (&free, 2));
    assert_eq!((two.write.seconds(), two.read.seconds()), (1.0, 0.5));
}

#[test]
fn with_little_bandwidth_the_smallest_codec_wins() {
    let slow = store(0.0, MIB as f64);
    let chosen = fastest(&slow, 1);
    assert_eq!(codec_of(&chosen), "zstd:5");
    // 8 MiB are written, and a quarter of them is read; the metadata are 1000 bytes.
    assert!((chosen.seconds(1) - 10.0).abs() < 0.01, "{chosen:?}");
    assert_eq!(chosen.read.limit(), "bandwidth");
    // Where the smaller one is not read faster, its slower encoder is not worth it.
    assert_eq!(codec_of(&fastest(&store(0.0, 100.0 * MIB as f64), 1)), "none");
}

#[test]
fn with_much_latency_few_requests_win() {
    let far = store(1.0, f64::INFINITY);
    let chosen = fastest(&far, 1);
    assert!(matches!(chosen.cost.mapping, Mapping::Cluster | Mapping::PageGroup | Mapping::Cage(_)), "{chosen:?}");
    assert_eq!(chosen.read.limit(), "latency");
    let none = &trials()[0];
    // Of 37 requests four are concurrent, and six round trips depend on each other.
    assert_eq!(none.candidate(1024, 16 * MIB, Mapping::Page, 0, (&far, 1)).write.seconds(), 10.0 + 6.0);
    assert_eq!(none.candidate(1024, 16 * MIB, Mapping::Page, 0, (&far, 1)).read.seconds(), 3.0 + 2.0);
    assert_eq!(none.candidate(1024, 16 * MIB, Mapping::PageGroup, 0, (&far, 1)).write.seconds(), 4.0 + 6.0);
    assert_eq!(none.candidate(1024, 16 * MIB, Mapping::Cluster, 0, (&far, 1)).write.seconds(), 2.0 + 6.0);
    // Reading all pages of a column needs as many requests from an object as from a cluster.
    assert_eq!(none.candidate(1024, 16 * MIB, Mapping::Cluster, 0, (&far, 1)).read.seconds(), 2.0 + 2.0);
}

#[test]
fn where_requests_cost_money_large_objects_win() {
    let all = candidates(&store(0.0, f64::INFINITY));
    let dollars = |candidate: &Candidate| candidate.requests(1) as f64;
    let of = |mapping| dollars(all.iter().find(|candidate| candidate.cost.mapping == mapping).unwrap());
    assert!(of(Mapping::PageGroup) < of(Mapping::Page));
    let chosen = best(&all, &[&dollars]).unwrap();
    assert_eq!((chosen.cost.mapping, codec_of(chosen).as_str()), (Mapping::Cluster, "zstd:5"));
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
        latency in 0.0..0.3, bandwidth in 1e5..1e10, reads in 0u64..100, more in 0u64..10_000,
    ) {
        let store = store(latency, bandwidth);
        let chosen = |reads: u64| {
            let least = candidates(&store).into_iter().min_by(|a, b| a.seconds(reads).total_cmp(&b.seconds(reads)));
            least.unwrap()
        };
        let (few, many) = (chosen(reads), chosen(reads + more));
        prop_assert!(many.read.seconds() <= few.read.seconds() * (1.0 + 1e-9));
        prop_assert!(fastest(&store, reads).seconds(reads) <= few.seconds(reads) * 1.05);
    }
}

/// An ntuple of two fields, in several clusters.
fn ntuple(entries: u64, cluster_bytes: u64) -> Ntuple {
    let numbers: ArrayRef = Arc::new(UInt64Array::from_iter_values(0..entries));
    let values: ArrayRef = Arc::new(Float32Array::from_iter_values((0..entries).map(|entry| (entry as f32).sin())));
    let batch = RecordBatch::try_from_iter([("number", numbers), ("value", values)]).unwrap();
    let file = MemoryFile::new();
    let writer = FileWriter::create_in(Box::new(MemorySink::create(&file)), "memory").unwrap();
    let options = WriteOptions::default().with_cluster_bytes(cluster_bytes).with_page_bytes(16 << 10);
    let mut ntuple = writer.ntuple("Events", &Schema::from_arrow(&batch.schema()).unwrap(), options).unwrap();
    ntuple.write(&batch).unwrap();
    ntuple.finish().unwrap();
    writer.finish().unwrap();
    File::new(Arc::new(file.source().unwrap()), true).unwrap().ntuple(None).unwrap()
}

fn measured(ntuple: &Ntuple, fields: &[&str], codecs: &[&str], page_sizes: &[u64], bytes: u64) -> Measured {
    let codecs: Vec<_> = codecs.iter().map(|name| codec(name)).collect();
    let read = ntuple.read(fields).unwrap();
    measure(&ntuple.clone().into(), &read, &codecs, page_sizes, bytes, &mut |_| ControlFlow::Continue(()))
        .unwrap()
        .unwrap()
}

#[test]
fn the_whole_of_a_small_ntuple_is_the_sample() {
    let ntuple = ntuple(50_000, 100_000);
    let all = measured(&ntuple, &["value"], &["none", "zstd:5"], &[8 << 10, 64 << 10, 1 << 20, 4 << 20], 64 * MIB);
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
    let modelled = all.candidates(&store, 1, &[128 << 20], &[Mapping::Page])[0];
    assert_eq!((modelled.clusters, modelled.cost.objects), (1, 49 + 25 + 5));
    assert!(modelled.cost.read_bytes > 200_000 && modelled.cost.read_bytes < 210_000, "{modelled:?}");
    // The present pages are those of the file.
    let present = all.present(&store, 1, &[Mapping::Page, Mapping::Auto]).unwrap();
    let expected = costs(&ntuple, &all.read, &[Mapping::Page, Mapping::Auto], HINTS).unwrap();
    assert_eq!(present.iter().map(|candidate| candidate.cost).collect::<Vec<_>>(), expected);
    assert_eq!((present[0].layout, present[0].clusters), (None, ntuple.clusters()));
    assert_eq!(present[0].write.cpu_seconds, 0.0);
}

#[test]
fn the_model_agrees_with_the_writer() {
    let ntuple = ntuple(200_000, 1 << 30);
    let measured = measured(&ntuple, &["number"], &["none"], &[16 << 10], MIB);
    assert!(measured.sample_entries() < 150_000);
    let store = store(0.0, f64::INFINITY);
    for mapping in [Mapping::Page, Mapping::PageGroup, Mapping::Cluster] {
        let modelled = measured.candidates(&store, 1, &[1 << 30], &[mapping])[0].cost;
        let file = MemoryFile::new();
        let writer = FileWriter::create_in(Box::new(MemorySink::create(&file)), "memory").unwrap();
        let options = WriteOptions::default().with_compression(codec("none")).with_page_bytes(16 << 10);
        copy(ntuple.read_all(), &writer, "Events", options, Pages::Encode, &mut |_| ControlFlow::Continue(()))
            .unwrap()
            .unwrap();
        writer.finish().unwrap();
        let copied = File::new(Arc::new(file.source().unwrap()), true).unwrap().ntuple(None).unwrap();
        let actual = costs(&copied, &copied.read(["number"]).unwrap(), &[mapping], HINTS).unwrap()[0];
        assert_eq!((modelled.objects, modelled.read_requests), (actual.objects, actual.read_requests), "{mapping}");
        let difference = modelled.bytes.abs_diff(actual.bytes);
        assert!(difference * 100 < actual.bytes, "{modelled:?} {actual:?}");
    }
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
    let sample = Sample::of_ntuple(&ntuple.read_all(), &ntuple, 100_000).unwrap();
    assert!(sample.entries > 4 && sample.entries < 20_000, "{} entries", sample.entries);
    let trial = sample.trial(codec("none"), 1 << 20).unwrap();
    assert_eq!(trial.unpacked_bytes(), sample.entries * 12);
}

#[test]
fn unmeasurable_sources_are_errors() {
    let mut progress = |_| ControlFlow::Continue(());
    let empty = ntuple(0, 1 << 20);
    let of = |ntuple: &Ntuple| (Table::from(ntuple.clone()), ntuple.read_all());
    let (table, read) = of(&empty);
    let error = measure(&table, &read, &[codec("none")], &[1 << 20], MIB, &mut progress).unwrap_err();
    assert!(error.to_string().contains("no entries to measure"), "{error}");
    let some = ntuple(10, 1 << 20);
    let (table, read) = of(&some);
    let error = measure(&table, &read, &[codec("none")], &[1 << 40], MIB, &mut progress).unwrap_err();
    assert!(error.to_string().contains("page size"), "{error}");
    let ended = measure(&table, &read, &[codec("none")], &[1 << 20], MIB, &mut |_| ControlFlow::Break(()));
    assert!(ended.unwrap().is_none());
    assert_eq!(default_codecs().unwrap().len(), DEFAULT_CODECS.len());
}
