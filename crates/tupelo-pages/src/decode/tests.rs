//! Decoding from a store of objects: nothing above the store knows about files.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use arrow_array::builder::{Float32Builder, LargeListBuilder, LargeStringBuilder};
use arrow_array::{ArrayRef, BooleanArray, Float32Array, Int32Array, RecordBatch};
use bytes::Bytes;
use tupelo::{Compression, Ntuple, WriteOptions};
use tupelo_format::container::AnchorLinks;
use tupelo_format::descriptor::AttributeSet;
use tupelo_format::envelope::{EnvelopeType, PageInfo};
use tupelo_format::locator::{EnvelopeLink, Locator};
use tupelo_format::open;
use tupelo_format::streamer::StreamerInfos;
use tupelo_schema::schema::{Field, Schema};
use tupelo_storage::{FileSource, Hints};

use super::{ValueOptions, decode};
use crate::plan;
use crate::source::{Blob, BlobRange, File, FileStore, MemoryBudget, Metadata, PageStore, Session, size_limit};
use crate::{ErrorKind, Result};

const CLUSTERS: u64 = 4;
const CLUSTER_ENTRIES: u64 = 1000;

/// Stores header, footer and every page as separate objects, numbered by their offsets in the file.
#[derive(Debug)]
struct Objects {
    file: Box<dyn PageStore>,
    anchor: AnchorLinks,
    calls: Arc<AtomicU64>,
    fails: bool,
    fetched: Arc<Mutex<Vec<u64>>>,
}

impl Objects {
    fn of(file: Box<dyn PageStore>, fails: bool) -> Self {
        let object = |link: EnvelopeLink| {
            let Locator::File { offset, bytes } = link.locator else { panic!("{link:?}") };
            EnvelopeLink { locator: Locator::Object { location: offset, bytes }, ..link }
        };
        let AnchorLinks { version, header, footer } = *file.anchor();
        let anchor = AnchorLinks { version, header: object(header), footer: object(footer) };
        Self { file, anchor, calls: Arc::default(), fails, fetched: Arc::default() }
    }
}

impl PageStore for Objects {
    fn name(&self) -> String {
        "objects".to_owned()
    }

    fn size(&self) -> Option<u64> {
        self.file.size()
    }

    fn max_blob_bytes(&self) -> u64 {
        0
    }

    fn anchor(&self) -> &AnchorLinks {
        &self.anchor
    }

    fn envelope_range(&self, link: &EnvelopeLink) -> Result<BlobRange> {
        self.file.envelope_range(link)
    }

    fn identity(&self) -> Result<u64> {
        self.file.identity()
    }

    fn envelopes(&self, envelopes: &[(EnvelopeType, EnvelopeLink)]) -> Result<Vec<Bytes>> {
        let in_file = |&(kind, link): &(EnvelopeType, EnvelopeLink)| match link.locator {
            Locator::Object { location, bytes } => {
                (kind, EnvelopeLink { locator: Locator::File { offset: location, bytes }, ..link })
            }
            _ => (kind, link),
        };
        self.file.envelopes(&envelopes.iter().map(in_file).collect::<Vec<_>>())
    }

    fn attribute_set(&self, set: &AttributeSet) -> Result<Box<dyn PageStore>> {
        self.file.attribute_set(set)
    }

    fn streamer_infos(&self) -> Result<StreamerInfos> {
        self.file.streamer_infos()
    }

    fn hints(&self) -> Hints {
        self.file.hints()
    }

    fn page_range(&self, cluster: u64, column: u32, page: &PageInfo) -> Result<BlobRange> {
        let range = self.file.page_range(cluster, column, page)?;
        Ok(BlobRange { blob: Blob::numbered(range.start), start: 0, end: range.bytes() })
    }

    fn is_read_in_place(&self, _: &BlobRange) -> bool {
        false
    }

    fn fetch(&self, ranges: &[BlobRange]) -> Result<Vec<Bytes>> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.fetched.lock().unwrap().extend(ranges.iter().map(|range| range.blob.number));
        if self.fails {
            return Err(crate::Error::new(ErrorKind::Storage, "the store is gone"));
        }
        let place = |range: &BlobRange| BlobRange {
            blob: Blob::numbered(0),
            start: range.blob.number,
            end: range.blob.number + range.end,
        };
        self.file.fetch(&ranges.iter().map(place).collect::<Vec<_>>())
    }

    fn read_into(&self, _: Blob, _: u64, _: &mut [&mut [u8]]) -> Result<()> {
        panic!("objects are not read in place")
    }
}

/// Entries of every kind of column, nested too.
fn batch(cluster: u64) -> RecordBatch {
    let entries = || cluster * CLUSTER_ENTRIES..(cluster + 1) * CLUSTER_ENTRIES;
    let (mut strings, mut flags) = (LargeStringBuilder::new(), Vec::new());
    let mut lists = LargeListBuilder::new(LargeListBuilder::new(Float32Builder::new()));
    for entry in entries() {
        strings.append_value("x".repeat(entry as usize % 7));
        flags.push(entry % 3 == 0);
        for outer in 0..entry % 4 {
            for inner in 0..outer {
                lists.values().values().append_value((entry + inner) as f32);
            }
            lists.values().append(true);
        }
        lists.append(true);
    }
    let optionals: Int32Array = entries().map(|entry| (entry % 2 == 0).then_some(entry as i32)).collect();
    let numbers: Float32Array = entries().map(|entry| entry as f32).collect();
    let columns: [(&str, ArrayRef); 5] = [
        ("number", Arc::new(numbers)),
        ("lists", Arc::new(lists.finish())),
        ("text", Arc::new(strings.finish())),
        ("flag", Arc::new(BooleanArray::from(flags))),
        ("optional", Arc::new(optionals)),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

struct Sample {
    _folder: tempfile::TempDir,
    ntuple: Ntuple,
}

fn sample() -> Sample {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sample.root");
    let file = tupelo::create(&path).unwrap();
    let schema = Schema::from_arrow(&tupelo_schema::schema::tighten(&batch(0))).unwrap();
    let options = WriteOptions::default().with_compression(Compression::NONE).with_page_bytes(512);
    let mut ntuple = file.ntuple("events", &schema, options).unwrap();
    for cluster in 0..CLUSTERS {
        ntuple.write(&batch(cluster)).unwrap();
        ntuple.flush_cluster().unwrap();
    }
    ntuple.finish().unwrap();
    file.finish().unwrap();
    let ntuple = tupelo::open(path.to_str().unwrap()).open().unwrap();
    Sample { _folder: folder, ntuple }
}

/// The same ntuple in a store of objects, the calls that fetch, and the objects that were fetched.
fn objects(ntuple: &Ntuple, fails: bool) -> (Metadata, Arc<AtomicU64>, Arc<Mutex<Vec<u64>>>) {
    let file = File::open(Arc::new(FileSource::open(ntuple.file_name()).unwrap())).unwrap();
    let object = file.find_object(ntuple.path()).unwrap().unwrap();
    let anchor = file.attempt(|fetched| open::anchor(fetched, &object)).unwrap();
    let store = Objects::of(Box::new(FileStore::new(file, anchor)), fails);
    let (calls, fetched) = (Arc::clone(&store.calls), Arc::clone(&store.fetched));
    (Metadata::open(Session::default(), Box::new(store), true).unwrap(), calls, fetched)
}

fn read(metadata: &Metadata, fields: &[Field], entries: std::ops::Range<u64>, bytes: u64) -> Result<Vec<ArrayRef>> {
    let segments = plan::segments(&metadata.clusters(entries.clone())?, &entries.clone().into());
    let memory = MemoryBudget::new(bytes).request(size_limit(metadata.store().size()));
    let options = ValueOptions { compressed: false, binary_strings: false };
    decode(metadata, &memory, fields, &segments, options)
}

#[test]
fn pages_in_objects_give_the_same_arrays() {
    let sample = sample();
    let fields = &sample.ntuple.schema().fields;
    let (metadata, calls, fetched) = objects(&sample.ntuple, false);
    for entries in [0..4000, 0..1, 17..18, 999..1001, 500..3500, 1000..2000, 7..7] {
        let expected = sample.ntuple.read_all().entries(entries.clone()).to_batch().unwrap();
        for bytes in [1 << 30, 4 << 20] {
            calls.store(0, Ordering::Relaxed);
            fetched.lock().unwrap().clear();
            let arrays = read(&metadata, fields, entries.clone(), bytes).unwrap();
            assert_eq!(arrays, expected.columns(), "{entries:?} with {bytes} bytes");
            let mut pages = std::mem::take(&mut *fetched.lock().unwrap());
            let all = pages.len();
            pages.sort_unstable();
            pages.dedup();
            assert_eq!(pages.len(), all, "pages of {entries:?} were fetched twice");
        }
    }
}

#[test]
fn each_level_of_all_fields_is_one_request() {
    let sample = sample();
    let fields = &sample.ntuple.schema().fields;
    let (metadata, calls, _) = objects(&sample.ntuple, false);
    // All is known of whole clusters. Of a part the entries give one level, their offsets the next, and so on.
    for (entries, requests) in [(1000..3000, 1), (10..500, 3), (10..1500, 3)] {
        calls.store(0, Ordering::Relaxed);
        read(&metadata, fields, entries.clone(), 1 << 30).unwrap();
        assert_eq!(calls.load(Ordering::Relaxed), requests, "{entries:?}");
    }
}

#[test]
fn a_small_budget_fetches_in_parts() {
    let sample = sample();
    let fields = &sample.ntuple.schema().fields;
    let expected = sample.ntuple.read_all().to_batch().unwrap();
    let (metadata, calls, _) = objects(&sample.ntuple, false);
    // The least budget that is enough, and each below is an error of the kind that names the budget.
    let mut enough = None;
    for kib in (16..1024).step_by(16) {
        calls.store(0, Ordering::Relaxed);
        match read(&metadata, fields, 0..4000, kib << 10) {
            Ok(arrays) => {
                assert_eq!(arrays, expected.columns());
                enough = enough.or(Some(calls.load(Ordering::Relaxed)));
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
                assert!(enough.is_none(), "{kib} KiB are not enough, but less was");
            }
        }
    }
    assert!(enough.unwrap() > 10, "{enough:?}");
}

#[test]
fn errors_of_the_store_end_the_read() {
    let sample = sample();
    let (metadata, ..) = objects(&sample.ntuple, true);
    for bytes in [1 << 30, 1 << 20] {
        let error = read(&metadata, &sample.ntuple.schema().fields, 0..4000, bytes).unwrap_err();
        assert!(error.to_string().contains("the store is gone"), "{error}");
    }
}
