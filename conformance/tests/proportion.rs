//! Work is in proportion to the size of a file, however often it refers to the same bytes. Nothing is timed here: work
//! is counted, or so much of it would be there that the test would never end.

use std::fs;
use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::Schema as ArrowSchema;
use bytes::Bytes;
use conformance::model::{Model, Page, seal_anchor};
use conformance::{memory, outcome, samples, summary};
use tupelo::reader::DEFAULT_MEMORY_BUDGET_BYTES;
use tupelo::schema::Schema;
use tupelo::{ErrorKind, File, WriteOptions, ops};
use tupelo_format::container::{self, ANCHOR_BYTES, FetchedRanges, FileLayout, Interrupt};
use tupelo_format::envelope::{AttributeSetRecord, ColumnRecord, FieldRecord};
use tupelo_format::locator::Locator;
use tupelo_format::open::{self, ANCHOR_CLASS};
use tupelo_storage::MemorySource;
use tupelo_storage::adapter::{Meter, MeteredSource};

/// A file whose reads are counted.
fn metered(bytes: &Bytes) -> (File, Arc<Meter>) {
    let meter = Arc::new(Meter::default());
    let source = MeteredSource::new(MemorySource::new(bytes.clone()), &meter);
    (File::new(Arc::new(source), true).expect("a file"), meter)
}

fn all_there<T>(attempt: Result<T, Interrupt>) -> T {
    attempt.unwrap_or_else(|interrupt| panic!("{interrupt:?}"))
}

/// The file with more objects in its top directory: name, class and payload.
fn with_objects(file: &Bytes, objects: impl Iterator<Item = (String, &'static str, Vec<u8>)>) -> Bytes {
    let mut fetched = FetchedRanges::new(file.len() as u64);
    fetched.provide(0, file.clone());
    let (mut layout, _) = all_there(FileLayout::repair(&fetched, 0));
    for (name, class, payload) in objects {
        layout.add(&name, class, "", payload).expect("a name");
    }
    let mut bytes = file.to_vec();
    bytes.resize(layout.start() as usize, 0);
    let tail = layout.finish(bytes.len() as u64).expect("a tail");
    bytes.extend_from_slice(&tail.append);
    for (offset, patch) in &tail.patches {
        bytes[*offset as usize..][..patch.len()].copy_from_slice(patch);
    }
    bytes.into()
}

/// The payload of the only anchor of a file.
fn anchor(file: &Bytes) -> (u64, Vec<u8>) {
    let mut fetched = FetchedRanges::new(file.len() as u64);
    fetched.provide(0, file.clone());
    let object = all_there(open::ntuples(&fetched)).remove(0);
    (object.key.payload_offset(), all_there(container::object_bytes(&fetched, &object.key)).to_vec())
}

/// An anchor that says the same and is another one.
fn other_anchor(anchor: &[u8], number: u16) -> Vec<u8> {
    let mut other = anchor.to_vec();
    // The patch level of the format, behind byte count, class version, epoch, major and minor version.
    other[12..14].copy_from_slice(&number.to_be_bytes());
    seal_anchor(&mut other);
    other
}

/// The flat sample with attribute sets whose anchors lie at these offsets.
fn with_sets(offsets: &[u64]) -> Bytes {
    let mut model = samples::flat();
    model.pack = false;
    let set = |(number, &offset): (usize, &u64)| AttributeSetRecord {
        schema_major: 1,
        schema_minor: 0,
        anchor_length: ANCHOR_BYTES as u32,
        anchor: Locator::File { offset, bytes: ANCHOR_BYTES as u64 },
        name: format!("set{number:05}"),
    };
    let sets: Vec<_> = offsets.iter().enumerate().map(set).collect();
    model.edit_footer(move |footer| footer.attribute_sets.clone_from(&sets));
    model.build().expect("a file")
}

/// Checks the errors for the attribute set of a file when it is opened, verified, listed and mapped.
fn is_refused(file: &Bytes, why: &str) {
    let ntuple = memory::ntuple(file).expect("the ntuple itself is whole");
    let error = ntuple.attribute_set("set00000").expect_err("no attribute set");
    assert!(error.is_corrupt() && error.to_string().ends_with(why), "{error}");
    let file = memory::file(file).expect("a file");
    let report = ops::verify::verify(&file, None, &mut |_| {}).expect("a report");
    assert_eq!((report.ntuples, report.damages.len()), (2, 1));
    assert!(report.damages[0].what.ends_with(why), "{}", report.damages[0]);
    let map = ops::layout::layout(&file).expect("a map");
    assert!(map.remarks.iter().any(|remark| remark.what.ends_with(why)), "{:?}", map.remarks);
}

/// `ls` once followed such sets until the stack ended.
#[test]
fn an_attribute_set_cannot_lead_to_itself() {
    // Only numbers differ between both files, not places.
    let (offset, _) = anchor(&with_sets(&[0]));
    is_refused(&with_sets(&[offset]), "it is linked to the anchor of the ntuple itself");
}

#[test]
fn an_attribute_set_has_no_sets() {
    let file = with_sets(&[1]);
    let file = with_sets(&[file.len() as u64]);
    let other = other_anchor(&anchor(&file).1, 77);
    let file = Bytes::from([&file[..], &other[..]].concat());
    is_refused(&file, "it must not have attribute sets, found 'set00000'");
}

/// Each anchor is small, and each would have the same large header read and unpacked.
#[test]
fn ntuples_that_share_their_metadata_do_not_multiply_work() {
    const ANCHORS: u16 = 1000;
    let mut model = samples::flat();
    model.pack = true;
    model.header.description = "x".repeat(1 << 20);
    let file = model.build().expect("a file");
    let (_, payload) = anchor(&file);
    let objects = (0..ANCHORS).map(|number| (format!("m{number}"), ANCHOR_CLASS, other_anchor(&payload, number)));
    let file = with_objects(&file, objects);
    let file = memory::file(&file).expect("a file");
    let (mut opened, mut refused) = (0, 0);
    ops::each_ntuple(&file, None, &mut |found| {
        match found.ntuple {
            Ok(_) => opened += 1,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
                refused += 1;
            }
        }
        Ok(())
    })
    .expect("directories");
    assert_eq!(opened + refused, u64::from(ANCHORS) + 1);
    // Some 64 MiB may be unpacked of any file.
    assert!((10..200).contains(&opened), "{opened}");
    // By its name each of them can be read.
    assert_eq!(file.ntuple(Some("m999")).expect("an ntuple").entries(), 10);
}

/// Keys that lead to the same record are no more than one ntuple.
#[test]
fn an_anchor_is_visited_once() {
    let file = samples::flat().build().expect("a file");
    let (_, payload) = anchor(&file);
    let file = with_objects(&file, [("m".to_owned(), ANCHOR_CLASS, payload)].into_iter());
    let keys = |file: &Bytes| {
        let mut fetched = FetchedRanges::new(file.len() as u64);
        fetched.provide(0, file.clone());
        all_there(container::list_objects(&fetched))
    };
    let (first, second) = (keys(&file)[0].key.seek_key as u32, keys(&file)[1].key.seek_key as u32);
    // In the key list the second key gets the place of the first.
    let mut bytes = file.to_vec();
    let last = bytes.windows(4).rposition(|window| window == second.to_be_bytes()).expect("the listed key");
    bytes[last..last + 4].copy_from_slice(&first.to_be_bytes());
    let file = memory::file(&bytes.into()).expect("a file");
    let report = ops::verify::verify(&file, None, &mut |_| {}).expect("a report");
    assert_eq!((report.ntuples, report.damages.len()), (2, 2), "{:?}", report.damages);
    assert!(report.damages[0].what.contains("'n;1' extends to byte"), "{}", report.damages[0].what);
    assert_eq!(report.damages[1].what, "its anchor belongs to ntuple 'n'");
}

/// One page in so many columns.
fn shared_page(columns: u32) -> Bytes {
    let mut model = samples::flat();
    let schema = &mut model.header.schema;
    schema.columns.truncate(1);
    schema.fields.truncate(1);
    for id in 1..columns {
        let (name, type_name) = (format!("f{id}"), "std::int32_t".to_owned());
        schema.fields.push(FieldRecord { name, type_name, parent: id, ..FieldRecord::default() });
        schema.columns.push(ColumnRecord { field: id, ..schema.columns[0].clone() });
    }
    let cluster = &mut model.groups[0].clusters[0];
    cluster.summary.entries = 2000;
    let first = &mut cluster.columns[0];
    first.pages =
        vec![Page { elements: 2000, stored: vec![7; 8000], checksum: Some(None), locator: None, digest: None }];
    // Pages come first in the file.
    let place = offset_of_first_page(&model);
    let cluster = &mut model.groups[0].clusters[0];
    let mut listed = cluster.columns[0].clone();
    listed.pages = vec![Page { stored: Vec::new(), locator: Some(place), ..listed.pages[0].clone() }];
    listed.pages[0].checksum = Some(None);
    cluster.columns = [vec![cluster.columns[0].clone()], vec![listed; columns as usize - 1]].concat();
    model.groups[0].clusters.truncate(1);
    model.build().expect("a file")
}

fn offset_of_first_page(model: &Model) -> Locator {
    let file = model.build().expect("a file");
    let offset = file.windows(8000).position(|window| window.iter().all(|&byte| byte == 7)).expect("the page");
    Locator::File { offset: offset as u64, bytes: 8000 }
}

#[test]
fn a_page_that_columns_share_is_compared_once() {
    const COLUMNS: u32 = 2000;
    let bytes = shared_page(COLUMNS);
    let file = memory::file(&bytes).expect("a file");
    let report = ops::verify::verify(&file, None, &mut |_| {}).expect("a report");
    assert_eq!((report.pages, report.damages.len()), (u64::from(COLUMNS), 0), "{:?}", report.damages.first());
    assert!(report.bytes <= 2 * bytes.len() as u64 + (16 << 20), "{} of {}", report.bytes, bytes.len());
    // The damage of a shared page is found in every column.
    let mut damaged = bytes.to_vec();
    let page = damaged.windows(8000).position(|window| window.iter().all(|&byte| byte == 7)).expect("the page");
    damaged[page + 5] ^= 1;
    let file = memory::file(&damaged.into()).expect("a file");
    let report = ops::verify::verify(&file, None, &mut |_| {}).expect("a report");
    assert_eq!(report.damages.len(), COLUMNS as usize);
}

/// The key list once was read and parsed again for each name.
#[test]
fn directories_are_read_once() {
    const OBJECTS: u16 = 2000;
    let file = samples::flat().build().expect("a file");
    let (_, payload) = anchor(&file);
    let objects = (0..OBJECTS).map(|number| (format!("d{}/m{number}", number % 7), ANCHOR_CLASS, payload.clone()));
    let bytes = with_objects(&file, objects);
    let (file, meter) = metered(&bytes);
    let names = file.ntuple_names().expect("names");
    assert_eq!(names.len(), usize::from(OBJECTS) + 1);
    for name in &names {
        assert_eq!(file.clone().ntuple(Some(name)).expect("an ntuple").entries(), 10);
    }
    assert_eq!(file.objects().expect("objects").len(), usize::from(OBJECTS) + 1 + 7);
    // Anchor, header and footer of each are requested, in pieces of a few hundred bytes.
    assert!(meter.bytes() < 8 * bytes.len() as u64, "{} bytes read of {}", meter.bytes(), bytes.len());
    // A new budget starts its own count.
    assert!(file.with_memory_budget(1 << 10).ntuple_names().is_err());
}

/// Regression: these files took minutes to read, crashed Tupelo, or read as values that were never written.
#[test]
fn hostile_files_end_at_once() {
    let folder = std::env::var_os("TUPELO_DATA").map(|data| std::path::Path::new(&data).join("hostile"));
    let entries = folder.and_then(|folder| fs::read_dir(folder).ok()).into_iter().flatten().flatten();
    let mut files = 0;
    for path in entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|e| e == "root")) {
        let bytes = Bytes::from(fs::read(&path).expect("a file"));
        let read = outcome::handle(&bytes, true, DEFAULT_MEMORY_BUDGET_BYTES);
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if ["ls-stack-overflow", "verify-hang-groups", "verify-hang-sets", "late-not-deferred"].contains(&name.as_str())
        {
            let error = read.expect_err(&name);
            assert!(error.is_corrupt(), "{name}: {error}");
        }
        files += 1;
    }
    let line = match files {
        0 => "NOT RUN: no hostile files ($TUPELO_DATA/hostile); those made by the tests are tried".to_owned(),
        files => format!("{files} hostile files end at once"),
    };
    summary::note("hostile", &line);
}

/// Defect: a file without values could claim any number of entries, and a stream of batches visited all of them.
#[test]
fn entries_without_values_are_refused_at_once() {
    let nothing = |entries: usize| {
        let options = RecordBatchOptions::new().with_row_count(Some(entries));
        RecordBatch::try_new_with_options(ArrowSchema::empty().into(), Vec::new(), &options).expect("a batch")
    };
    let schema = Schema { fields: Vec::new() };
    let file = memory::write(&schema, &[nothing(5)], WriteOptions::default(), true).expect("an ntuple");
    let mut model = Model::load(&file).expect("a model");
    model.groups[0].clusters[0].summary.entries = 1 << 48;
    model.edit_footer(|footer| footer.cluster_groups[0].entry_span = 1 << 48);
    let file = model.build().expect("a file");
    let file = File::new(Arc::new(MemorySource::new(file)), true).expect("a file");
    let ntuple = file.ntuple(None).expect("an ntuple");
    assert_eq!(ntuple.entries(), 1 << 48);
    let numbered = || ntuple.read_all().with_entry_numbers("entry");
    let errors = [
        ntuple.read_all().batches(1000).map(|_| ()),
        ntuple.read_all().batches_of_bytes(1 << 20).map(|_| ()),
        numbered().batches(1000).map(|_| ()),
        numbered().to_batch().map(|_| ()),
    ];
    for error in errors {
        let error = error.expect_err("too many entries");
        assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
        assert!(error.to_string().contains("281474976710656 entries, but none of the fields stores values"), "{error}");
    }
    assert_eq!(ntuple.read_all().to_batch().expect("a batch").num_rows(), 1 << 48, "a number");
    assert_eq!(ntuple.read_all().entries(7..1000).to_batch().expect("a batch").num_rows(), 993);
}
