//! Builders and committers over sinks in memory, and whole files in memory.

use std::iter;
use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, BooleanArray, Float32Array, Int32Array, LargeListArray, LargeStringArray, RecordBatch};
use tupelo_format::compression::Compression;
use tupelo_format::container::AnchorLinks;
use tupelo_format::descriptor::ColumnId;
use tupelo_format::envelope::{Footer, Header, PageList};
use tupelo_format::locator::Locator;
use tupelo_format::object::{Numbers, Object, Value};
use tupelo_format::streamer::StreamerInfos;
use tupelo_pages::encode::{ListedCluster, ListedColumn, ReadPages};
use tupelo_pages::sink::MemorySink;
use tupelo_pages::{encode, source};
use tupelo_schema::schema::{Schema, tighten};
use tupelo_storage::{MemoryFile, MemorySink as StorageSink};

use super::cluster_builder::ClusterBuilder;
use super::committer::{AnchorPlace, Committer};
use super::{FileWriter, NtupleWriter, WriteOptions};
use crate::reader::{File, Ntuple};
use crate::{ErrorKind, Result};

fn numbers(range: std::ops::Range<i32>) -> RecordBatch {
    let numbers: ArrayRef = Arc::new(Int32Array::from_iter_values(range));
    RecordBatch::try_from_iter([("x", numbers)]).unwrap()
}

/// The values of the only column, in the order of its clusters and pages.
fn values(sink: &MemorySink, links: &AnchorLinks) -> Vec<i32> {
    let (header, checksum) = Header::read(&sink.object(&links.header.locator)).unwrap();
    assert_eq!(header.schema.fields.len(), 1);
    let footer = Footer::read(&sink.object(&links.footer.locator)).unwrap();
    let mut values = Vec::new();
    for group in &footer.cluster_groups {
        let list = PageList::read(sink.object(&group.page_list.locator).into(), checksum).unwrap();
        for cluster in 0..list.clusters().len() {
            for page in list.pages(cluster, 0).unwrap().unwrap().pages {
                let sealed = sink.object(&page.locator);
                let (stored, checksum) = sealed.split_last_chunk::<8>().unwrap();
                assert_eq!(u64::from_le_bytes(*checksum), tupelo_format::checksum::xxh3(stored));
                let Locator::Object { bytes, .. } = page.locator else { panic!("{}", page.locator) };
                assert_eq!((bytes, page.elements as usize), (stored.len() as u64, stored.len() / 4));
                values.extend(stored.chunks(4).map(|value| i32::from_le_bytes(value.try_into().unwrap())));
            }
        }
    }
    values
}

/// Nothing above the sink knows that pages lie in a file.
#[test]
fn an_ntuple_is_written_as_objects() {
    let sink = Arc::new(MemorySink::default());
    let schema = Schema::from_arrow(&numbers(0..1).schema()).unwrap();
    let options = WriteOptions::default().with_compression("none".parse().unwrap()).with_page_bytes(64);
    let place = AnchorPlace::Listed("events".to_owned());
    let (mut committer, mut builder) = Committer::create(sink.clone(), place, &schema, options).unwrap();
    assert_eq!(sink.open(), ["events"]);
    for start in [0, 100] {
        let batch = [numbers(start..start + 100)];
        builder.validate(&batch).unwrap();
        builder.append(&batch, |cluster| committer.commit(cluster)).unwrap();
        builder.flush(|cluster| committer.commit(cluster)).unwrap();
        committer.make_checkpoint().unwrap();
        let links = sink.published("events");
        assert_eq!(values(&sink, &links), (0..start + 100).collect::<Vec<_>>());
    }
    assert_eq!(sink.checkpoints(), 2);
    let first = sink.published("events");
    let written = committer.finish().unwrap();
    assert_eq!((written.entries, written.clusters), (200, 2));
    // Nothing was new, so the envelopes are those of the checkpoint, and those before it are gone.
    assert_eq!(sink.published("events").footer, first.footer);
    let pages = 2 * 100_u64.div_ceil(16) as usize;
    // Header, footer, and one or two page lists: groups may have been joined.
    let envelopes = sink.objects() - pages;
    assert!((3..=4).contains(&envelopes), "{envelopes} envelopes");
    assert!(sink.open().is_empty());
}

/// A builder with a separate sink, and the contents of its clusters.
struct Built {
    sink: Arc<MemorySink>,
    committer: Committer,
    builder: ClusterBuilder,
}

impl Built {
    fn new(schema: &Schema, options: WriteOptions) -> Self {
        let sink = Arc::new(MemorySink::default());
        let place = AnchorPlace::Listed("events".to_owned());
        let (committer, builder) = Committer::create(sink.clone(), place, schema, options).unwrap();
        Self { sink, committer, builder }
    }

    fn write(&mut self, batches: &[RecordBatch]) -> Result<()> {
        self.builder.validate(batches)?;
        self.builder.append(batches, |cluster| self.committer.commit(cluster))
    }

    /// All objects that are reachable after the end: pages with their numbers of elements, cluster by cluster.
    fn finish(mut self) -> Vec<Vec<(u32, Vec<u8>)>> {
        self.builder.flush(|cluster| self.committer.commit(cluster)).unwrap();
        self.committer.finish().unwrap();
        let links = self.sink.published("events");
        let checksum = Header::read(&self.sink.object(&links.header.locator)).unwrap().1;
        let footer = Footer::read(&self.sink.object(&links.footer.locator)).unwrap();
        let mut clusters = Vec::new();
        for group in &footer.cluster_groups {
            let list = PageList::read(self.sink.object(&group.page_list.locator).into(), checksum).unwrap();
            for cluster in 0..list.clusters().len() {
                let columns = (0..list.columns(cluster)).map(|column| list.pages(cluster, column).unwrap().unwrap());
                let pages = columns.flat_map(|column| column.pages);
                clusters.push(pages.map(|page| (page.elements, self.sink.object(&page.locator))).collect());
            }
        }
        clusters
    }
}

fn uncompressed() -> WriteOptions {
    WriteOptions::default().with_compression("none".parse().unwrap())
}

/// Nested columns of so many entries. `bad` makes the last value of the last column one that its encoding cannot hold.
pub(crate) fn nested(entries: std::ops::Range<i32>, bad: bool) -> RecordBatch {
    let lists = entries.clone().map(|n| Some((0..n % 4).map(move |item| Some(n ^ item))));
    let lists = LargeListArray::from_iter_primitive::<Int32Type, _, _>(lists);
    let texts: LargeStringArray = entries.clone().map(|n| Some(format!("{n}"))).collect();
    let flags: BooleanArray = entries.clone().map(|n| Some(n % 3 == 0)).collect();
    let optional: Int32Array = entries.clone().map(|n| (n % 5 > 0).then_some(n)).collect();
    let mut halves: Vec<f32> = entries.clone().map(|n| n as f32 / 8.0).collect();
    if bad {
        halves.pop();
        halves.push(1e6);
    }
    let numbers: ArrayRef = Arc::new(Int32Array::from_iter_values(entries));
    let columns: [(&str, ArrayRef, bool); 6] = [
        ("numbers", numbers, false),
        ("lists", Arc::new(lists), false),
        ("texts", Arc::new(texts), false),
        ("flags", Arc::new(flags), false),
        ("optional", Arc::new(optional), true),
        ("halves", Arc::new(Float32Array::from(halves)), false),
    ];
    RecordBatch::try_from_iter_with_nullable(columns).unwrap()
}

pub(crate) fn nested_schema() -> Schema {
    Schema::from_arrow(&tighten(&nested(0..1, false))).unwrap()
}

#[test]
fn a_refused_batch_leaves_no_trace() {
    let options = || uncompressed().with_page_bytes(256).with_field_encoding("halves", "Real16").unwrap();
    let mut expected = Built::new(&nested_schema(), options());
    for range in [0..100, 100..1000, 1000..1010] {
        expected.write(&[nested(range, false)]).unwrap();
    }
    let expected = expected.finish();
    let mut built = Built::new(&nested_schema(), options());
    for range in [0..100, 100..1000, 1000..1010] {
        // One piece, several pieces, and several batches with a bad last one.
        for entries in [1, 50, 5000] {
            let bad = nested(range.start..range.start + entries, true);
            let error = built.write(std::slice::from_ref(&bad)).unwrap_err().to_string();
            assert!(error.contains("field 'halves'") && error.contains("too large for the Real16 column"), "{error}");
            assert!(built.write(&[nested(range.clone(), false), bad]).is_err());
        }
        assert!(built.write(&[numbers(range.clone())]).is_err(), "a batch of another schema");
        built.write(&[nested(range, false)]).unwrap();
    }
    assert_eq!(built.finish(), expected);
}

/// Pages of columns do not depend on batches, whether these are one piece or many.
#[test]
fn batches_of_any_size_give_the_same_pages() {
    let built = |step: usize| {
        let mut built = Built::new(&nested_schema(), uncompressed().with_page_bytes(512));
        for start in (0..3000).step_by(step) {
            built.write(&[nested(start..(start + step as i32).min(3000), false)]).unwrap();
        }
        built.finish()
    };
    let expected = built(3000);
    for step in [1, 7, 256, 257, 1000] {
        assert_eq!(built(step), expected, "batches of {step}");
    }
}

/// A cluster ends when it is full, between two pieces.
#[test]
fn clusters_end_when_they_are_full() {
    let mut built = Built::new(
        &Schema::from_arrow(&numbers(0..1).schema()).unwrap(),
        uncompressed().with_cluster_bytes(8 << 10).with_page_bytes(1 << 10),
    );
    built.write(&[numbers(0..20_000)]).unwrap();
    let clusters = built.finish();
    let bytes = |cluster: &Vec<(u32, Vec<u8>)>| cluster.iter().map(|(_, bytes)| bytes.len()).sum::<usize>();
    let sizes: Vec<usize> = clusters.iter().map(bytes).collect();
    let (last, full) = sizes.split_last().unwrap();
    // A piece is an eighth of a cluster.
    assert!(full.iter().all(|size| (8 << 10..9 << 10).contains(size)), "{sizes:?}");
    assert!(full.len() == 9 && *last < 9 << 10, "{sizes:?}");
}

/// Writes entries in clusters of 1000; the field `late` is added after half of them.
pub(crate) fn file_with_late_field() -> MemoryFile {
    let target = MemoryFile::new();
    let file = FileWriter::create_in(Box::new(StorageSink::create(&target)), "x.root").unwrap();
    let schema = nested_schema();
    let mut ntuple = file.ntuple("events", &schema, WriteOptions::default().with_page_bytes(512)).unwrap();
    for start in [0, 1000, 2000, 3000] {
        let batch = nested(start..start + 1000, false);
        if start == 2000 {
            ntuple.add_fields(&late_schema()).unwrap();
        }
        let late = (start >= 2000).then(|| numbers(start..start + 1000).column(0).clone());
        let schema = batch.schema();
        let names = schema.fields().iter().map(|field| field.name().as_str()).chain(["late"]);
        let columns = names.zip(batch.columns().iter().cloned().chain(late));
        ntuple.write(&RecordBatch::try_from_iter(columns).unwrap()).unwrap();
        ntuple.flush_cluster().unwrap();
    }
    ntuple.set_metadata("kept", "with its ntuple").unwrap();
    ntuple.finish().unwrap();
    file.finish().unwrap();
    target
}

fn late_schema() -> Schema {
    let mut schema = Schema::from_arrow(&numbers(0..1).schema()).unwrap();
    "late".clone_into(&mut schema.fields[0].name);
    schema
}

pub(crate) fn open(file: &MemoryFile) -> Ntuple {
    let file = File::over(source::File::open(Arc::new(file.source().unwrap())).unwrap());
    file.ntuple(Some("events")).unwrap()
}

/// A cluster of an ntuple as it is stored, with its first columns.
fn sealed(file: &MemoryFile, ntuple: &Ntuple, cluster: usize, columns: usize) -> (ListedCluster, ReadPages) {
    let bytes = file.bytes().unwrap();
    let (source, descriptor) = (ntuple.source(), ntuple.descriptor());
    let groups = 0..descriptor.cluster_groups().len();
    let clusters: Vec<_> = groups.flat_map(|group| source.group_clusters(group).unwrap()).collect();
    let mut read = Vec::new();
    let mut listed = Vec::new();
    for index in 0..columns {
        let id = ColumnId::from(index as u32);
        let Some(pages) = source.column_pages(&clusters[cluster], id).unwrap() else { continue };
        let encoding = descriptor.column(id).unwrap().encoding.unwrap();
        for (number, page) in pages.pages.iter().enumerate() {
            let (offset, stored) = page.locator.in_file().unwrap();
            let bytes = bytes::Bytes::from(bytes[offset as usize..][..stored as usize + 8].to_vec());
            let sealed = |elements: u32| {
                encode::SealedPage::of_stored(page, bytes.clone(), encoding.packed_bytes(elements.into()))
            };
            // Regression: pages were copied that have another size than their elements.
            assert_eq!(sealed(page.elements + 64).unwrap_err().kind(), ErrorKind::Corrupt);
            read.push(((listed.len(), number), sealed(page.elements).unwrap()));
        }
        let pages_of = pages.pages.iter().map(Into::into).collect();
        listed.push(ListedColumn { encoding, compression: pages.compression, pages: pages_of });
    }
    (ListedCluster { entries: clusters[cluster].entries, columns: listed }, read)
}

fn append(ntuple: &mut NtupleWriter, (cluster, mut read): (ListedCluster, ReadPages)) {
    let checked = ntuple.check_sealed(cluster, Vec::new()).unwrap();
    // In pieces, in another order.
    let rest = read.split_off(read.len() / 2);
    ntuple.append_sealed(checked, [rest, read].into_iter().map(Ok)).unwrap();
}

#[test]
fn sealed_clusters_are_copied_without_decoding() {
    let original = file_with_late_field();
    let ntuple = open(&original);
    let target = MemoryFile::new();
    let file = FileWriter::create_in(Box::new(StorageSink::create(&target)), "x.root").unwrap();
    let first = nested_schema();
    let all = ntuple.descriptor().columns().len();
    let mut copy = file.ntuple("events", &first, WriteOptions::default()).unwrap();
    append(&mut copy, sealed(&original, &ntuple, 0, all - 1));
    // Entries that were written otherwise come before: they are flushed.
    copy.write(&nested(1000..2000, false)).unwrap();
    copy.add_fields(&late_schema()).unwrap();
    append(&mut copy, sealed(&original, &ntuple, 2, all));
    append(&mut copy, sealed(&original, &ntuple, 3, all));
    copy.set_metadata("kept", "with its ntuple").unwrap();
    let progress = copy.finish().unwrap();
    assert_eq!((progress.entries, progress.clusters), (4000, 4));
    file.finish().unwrap();
    // For ROOT and uproot: conformance/test_sealed.py.
    if let Some(folder) = std::env::var_os("TUPELO_SEALED") {
        for (name, file) in [("original.root", &original), ("copy.root", &target)] {
            std::fs::write(std::path::Path::new(&folder).join(name), file.bytes().unwrap()).unwrap();
        }
    }
    let copied = open(&target);
    assert_eq!(copied.read_all().to_batch().unwrap(), ntuple.read_all().to_batch().unwrap());
    assert_eq!(copied.metadata().unwrap(), ntuple.metadata().unwrap());
}

#[test]
fn sealed_clusters_that_do_not_match_are_refused() {
    let original = file_with_late_field();
    let ntuple = open(&original);
    let all = ntuple.descriptor().columns().len();
    let target = MemoryFile::new();
    let file = FileWriter::create_in(Box::new(StorageSink::create(&target)), "x.root").unwrap();
    let mut copy = file.ntuple("events", ntuple.schema(), WriteOptions::default()).unwrap();
    let refused = |copy: &NtupleWriter, change: &dyn Fn(&mut ListedCluster), expected: &str| {
        let (mut cluster, _) = sealed(&original, &ntuple, 3, all);
        change(&mut cluster);
        let error = copy.check_sealed(cluster, Vec::new()).unwrap_err().to_string();
        assert!(error.contains(expected), "{error} lacks {expected}");
    };
    fn pages(cluster: &mut ListedCluster, column: usize) -> &mut Vec<encode::ListedPage> {
        &mut cluster.columns[column].pages
    }
    refused(&copy, &|cluster| cluster.entries = 0, "has no entries");
    refused(&copy, &|cluster| drop(cluster.columns.pop()), "columns, expected");
    refused(&copy, &|cluster| cluster.columns.swap(0, 1), "column 0: its pages are encoded as");
    refused(&copy, &|cluster| pages(cluster, 0).truncate(0), "field 'numbers'");
    refused(&copy, &|cluster| pages(cluster, 1).truncate(0), "field 'lists'");
    refused(&copy, &|cluster| cluster.entries += 1, "values in column 0 for 1001 entries");
    refused(&copy, &|cluster| pages(cluster, 2)[0].bytes = 0, "column 2: page 0");
    refused(&copy, &|cluster| pages(cluster, 2)[0].elements = 1, "column 2: page 0");
    // Pages that are missing, and those of no column.
    let mut other = file.ntuple("other", ntuple.schema(), WriteOptions::default()).unwrap();
    let (cluster, mut read) = sealed(&original, &ntuple, 3, all);
    let (_, missing) = read.pop().unwrap();
    let checked = other.check_sealed(cluster, Vec::new()).unwrap();
    let error = other.append_sealed(checked, iter::once(Ok(read))).unwrap_err();
    assert!(error.to_string().contains("a page of the cluster is missing"), "{error}");
    other.abandon().unwrap();
    let mut other = file.ntuple("other", ntuple.schema(), WriteOptions::default()).unwrap();
    let checked = other.check_sealed(sealed(&original, &ntuple, 3, all).0, Vec::new()).unwrap();
    let error = other.append_sealed(checked, iter::once(Ok(vec![((all, 0), missing)]))).unwrap_err();
    assert!(error.to_string().contains("is not in the cluster"), "{error}");
    other.abandon().unwrap();
    append(&mut copy, sealed(&original, &ntuple, 3, all));
    copy.finish().unwrap();
    file.finish().unwrap();
    assert_eq!(open(&target).entries(), 1000);
}

#[test]
fn a_dry_run_counts_what_would_be_stored() {
    let (batch, schema) = (nested(0..5000, false), nested_schema());
    let target = MemoryFile::new();
    let file = FileWriter::create_in(Box::new(StorageSink::create(&target)), "x.root").unwrap();
    let stored = file.ntuple("events", &schema, WriteOptions::default()).unwrap();
    let dry = NtupleWriter::dry_run("events", &schema, WriteOptions::default()).unwrap();
    let [stored, dry] = [stored, dry].map(|mut ntuple| {
        ntuple.write(&batch).unwrap();
        ntuple.finish().unwrap()
    });
    assert_eq!(stored, dry);
    assert!(dry.stored_bytes > 0);
}

/// A histogram beside an ntuple, in a file of its own, and added to a file.
#[test]
fn objects_are_written_and_read() {
    let histogram = |bins: Vec<f64>| {
        let members = [("fNcells", Value::Int(bins.len() as i64)), ("fArray", Value::Numbers(Numbers::F64(bins)))];
        let members = members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        Object::new("TH1D", members, &StreamerInfos::histograms()).unwrap()
    };
    let bins = |file: &File, name: &str| match file.object(name).unwrap().as_object().unwrap().get("fArray") {
        Some(Value::Numbers(Numbers::F64(bins))) => bins.clone(),
        other => panic!("{other:?}"),
    };
    let target = MemoryFile::new();
    let put = |file: &FileWriter, path: &str, bins: Vec<f64>| {
        file.object(path, "title", &histogram(bins), Compression::default()).map_err(|error| error.to_string())
    };
    let writer = FileWriter::create_in(Box::new(StorageSink::create(&target)), "x.root").unwrap();
    put(&writer, "dir/h", vec![1.5; 10_000]).unwrap();
    let schema = Schema::from_arrow(&numbers(0..1).schema()).unwrap();
    let mut ntuple = writer.ntuple("n", &schema, WriteOptions::default()).unwrap();
    assert!(put(&writer, "n", vec![0.0]).unwrap_err().contains("'n' is already being written"));
    assert!(put(&writer, "dir", vec![0.0]).unwrap_err().contains("the file has a directory of that name"));
    assert!(writer.ntuple("dir/h", &schema, WriteOptions::default()).unwrap_err().to_string().contains("TH1D"));
    ntuple.finish().unwrap();
    assert_eq!(target.bytes(), None);
    writer.finish().unwrap();
    let bytes = target.bytes().unwrap();
    assert!(bytes.len() < 20_000, "{} bytes of 80 kB of equal bins", bytes.len());
    let file = File::of_bytes("x.root", bytes).unwrap();
    assert_eq!(bins(&file, "dir/h"), vec![1.5; 10_000]);
    assert!(file.streamer_infos().unwrap().find("TH1", 8).is_some());
    assert_eq!(file.ntuple_names().unwrap(), ["n"]);
    for (name, expected) in [
        ("dir/g", "x.root: no object named 'dir/g' (available: 'dir/h'"),
        ("n", "x.root: 'n' is an RNTuple, not a single object"),
        ("dir", "x.root: 'dir' is a directory, not a single object"),
    ] {
        let error = file.object(name).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}
