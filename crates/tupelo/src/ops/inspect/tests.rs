//! Reports of files in memory, and the rules of advice.

use std::sync::Arc;

use tupelo_storage::objects::ObjectMemory;
use tupelo_storage::{MemoryFile, MemorySink};

use super::report::ratio;
use super::*;
use crate::ops::tests::{options, write};
use crate::reader::{File, Table};
use crate::writer::FileWriter;

/// Three clusters of 1000 entries in a file, in pages of at most 512 bytes.
fn file() -> File {
    let memory = MemoryFile::new();
    let writer = FileWriter::create_in(Box::new(MemorySink::create(&memory)), "x.root").unwrap();
    write(&writer).unwrap();
    writer.finish().unwrap();
    File::new(Arc::new(memory.source().unwrap()), true).unwrap()
}

fn report() -> Report {
    let file = file();
    inspect(&file, &file.table(None).unwrap()).unwrap()
}

fn rules(report: &Report) -> Vec<&'static str> {
    advice::of(report).iter().map(|advice| advice.rule).collect()
}

/// The parts are those that the rest of the module gives, and each page occurs once.
fn check(file: &File, table: &Table) -> Report {
    let (report, ntuple) = (inspect(file, table).unwrap(), table.ntuple().unwrap());
    let summary = summary(ntuple).unwrap();
    let own = summary.sizes.pages - summary.sizes.shared_pages;
    assert_eq!((report.entries, report.clusters.count, report.pages), (summary.entries, summary.clusters, own));
    assert_eq!(report.bytes.stored_bytes, summary.sizes.stored_bytes);
    assert_eq!(report.bytes.unpacked_bytes, summary.sizes.unpacked_bytes);
    assert_eq!(report.bytes.metadata_bytes, summary.metadata_bytes);
    let known = fields(ntuple).unwrap();
    assert!(report.fields.iter().zip(&known).all(|(own, known)| {
        own.name == known.name && own.stored_bytes == known.sizes.stored_bytes && own.pages == known.sizes.pages
    }));
    assert_eq!(report.fields.len(), known.len());
    let known = columns(ntuple).unwrap();
    assert!(report.columns.iter().zip(&known).all(|(own, known)| {
        own.path == known.field && own.stored_bytes == known.sizes.stored_bytes && own.codec == known.sizes.codec()
    }));
    let stored = report.bytes.stored_bytes;
    for group in [&report.codecs, &report.column_types] {
        assert_eq!(group.iter().map(|it| it.stored_bytes).sum::<u64>(), stored);
        assert_eq!(group.iter().map(|it| it.pages).sum::<u64>(), own);
    }
    assert_eq!(
        report.page_sizes.iter().map(|it| (it.stored_bytes, it.pages)).fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1)),
        (stored, own)
    );
    assert_eq!(report.clusters.list.iter().map(|it| it.stored_bytes).sum::<u64>(), stored);
    assert_eq!(report.clusters.list.iter().map(|it| it.entries).sum::<u64>(), report.entries);
    assert_eq!(
        report.map.iter().map(|it| (it.bytes, it.pages)).fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1)),
        (stored, own)
    );
    // In order, and apart from each other.
    assert!(
        report
            .map
            .windows(2)
            .all(|runs| { runs[0].object != runs[1].object || runs[0].offset + runs[0].span_bytes <= runs[1].offset })
    );
    report
}

#[test]
fn the_sums_are_those_of_the_ntuple() {
    let file = file();
    let report = check(&file, &file.table(None).unwrap());
    assert_eq!(report.clusters.entries, Some(Spread { smallest: 1000, median: 1000, largest: 1000 }));
    assert_eq!(report.pages_without_checksum, Some(0));
    assert_eq!((report.description.as_str(), report.store), ("about", Store::Local));
    let envelopes: Vec<&str> = report.parts.iter().map(|part| part.what.as_str()).collect();
    assert!(envelopes.starts_with(&["header", "footer", "page list of cluster group 0"]), "{envelopes:?}");
    // What the map has lies in the file.
    let size = file.size().unwrap();
    assert!(report.map.iter().all(|run| run.object.is_none() && run.offset + run.span_bytes <= size));
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["bytes"]["stored_bytes"], report.bytes.stored_bytes);
    assert_eq!(json["store"], "local");
}

#[test]
fn pages_in_objects_are_found_too() {
    for mapping in ["page", "cluster"] {
        let store = ObjectMemory::default();
        let place = ("dir/events", "ntpl+memory:dir/events");
        let writer =
            FileWriter::create_objects_in(Arc::new(store.clone()), place.0, place.1, options(mapping)).unwrap();
        write(&writer).unwrap();
        writer.finish().unwrap();
        let file = File::of_objects(Arc::new(store), place.0, place.1).unwrap();
        let report = check(&file, &file.table(None).unwrap());
        let objects: HashSet<u32> = report.map.iter().filter_map(|run| run.object).collect();
        let expected = if mapping == "page" { report.pages } else { 3 };
        assert_eq!(objects.len() as u64, expected, "{mapping}");
        assert!(report.objects.len() > objects.len() && report.bytes.free_bytes.is_none());
    }
}

#[test]
fn a_sample_says_what_never_varies() {
    let file = file();
    let table = file.table(None).unwrap();
    let mut report = inspect(&file, &table).unwrap();
    let sampled = sample(&table, &mut report, 1 << 30).unwrap();
    assert_eq!((sampled.entries, sampled.of), (3000, 3000));
    let paths: HashSet<&str> = report.columns.iter().map(|column| column.path.as_str()).collect();
    let unknown: Vec<_> = sampled.constant.iter().filter(|path| !paths.contains(path.as_str())).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
    assert_eq!(report.advice.iter().any(|it| it.rule == "never-varies"), !sampled.constant.is_empty());
}

#[test]
fn small_pages_and_clusters_are_noticed() {
    let report = report();
    // Pages of 512 bytes by choice, in clusters of a few kilobytes.
    assert!(["small-pages", "small-clusters"].iter().all(|rule| rules(&report).contains(rule)), "{:?}", rules(&report));
    assert!(!rules(&report).contains(&"small-requests"));
    let remote = Report { store: Store::Remote, ..report.clone() };
    let advice = advice::of(&remote);
    assert!(advice.iter().any(|it| it.rule == "small-requests" && it.level == Level::High));
    assert!(advice.is_sorted_by_key(|it| it.level));
    let mut single = report;
    single.clusters.count = 1;
    assert!(!rules(&single).contains(&"small-clusters"));
}

#[test]
fn advice_begins_at_its_thresholds() {
    let with = |change: &dyn Fn(&mut Report)| {
        let mut changed = report();
        changed.advice.clear();
        change(&mut changed);
        rules(&changed)
    };
    let codec = |name: &str, part: u64| {
        let rules = with(&|report| {
            report.codecs[0].name = name.to_owned();
            report.codecs[0].stored_bytes = report.bytes.stored_bytes / part;
        });
        rules.contains(&"slow-codec")
    };
    assert!(codec("lzma:7", 1) && codec("lzma:7", 9) && !codec("lzma:7", 20) && !codec("zstd:5", 1));
    let free = |free: u64, all: u64| {
        with(&|report| {
            report.bytes.free_bytes = Some(free);
            report.bytes.file_bytes = Some(all);
        })
        .contains(&"free-space")
    };
    assert!(free(64 << 10, 1 << 20) && !free(64 << 10, 2 << 20) && !free(1000, 2000));
    let metadata = |bytes: u64| {
        with(&|report| {
            report.bytes.metadata_bytes = bytes;
            report.bytes.stored_bytes = 1 << 20;
        })
        .contains(&"large-metadata")
    };
    assert!(metadata(105_000) && !metadata(104_000));
    let large = |codec: &str, bytes: u64| {
        with(&|report| {
            report.columns[0].codec = codec.to_owned();
            report.columns[0].stored_bytes = bytes;
            report.bytes.stored_bytes = 4 << 20;
        })
        .contains(&"uncompressed")
    };
    assert!(large("none", 1 << 20) && !large("none", 1 << 19) && !large("zstd:5", 1 << 20));
    let constant = |column_type: &str, unpacked: u64| {
        with(&|report| {
            report.columns[0].column_type = column_type.to_owned();
            report.columns[0].unpacked_bytes = unpacked;
            report.columns[0].stored_bytes = 1000;
        })
        .contains(&"nearly-constant")
    };
    assert!(constant("SplitReal32", 100_000) && !constant("SplitReal32", 99_000) && !constant("SplitIndex64", 100_000));
    assert!(with(&|report| report.pages_without_checksum = Some(1)).contains(&"no-checksums"));
    assert!(with(&|report| report.entries = 10).contains(&"many-pages"));
    let unpacked = |bytes| {
        with(&|report| report.clusters.unpacked_bytes = Some(Spread { smallest: 1, median: 1, largest: bytes }))
    };
    assert!(
        unpacked((1280 << 20) + 1).contains(&"large-clusters") && !unpacked(1280 << 20).contains(&"large-clusters")
    );
    assert!(with(&|report| report.format_version.clear()).iter().all(|rule| *rule != "tree"));
    assert!((ratio(10, 4), ratio(0, 0)) == (2.5, 1.0));
}
