//! Every damaged file says exactly what is wrong with it, or reads as if nothing were; and no bit that flips anywhere in
//! a file goes unnoticed where it matters.

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

use bytes::Bytes;
use conformance::bad::{self, Bad, Base, MAX_FILE_BYTES};
use conformance::model::Model;
use conformance::outcome::{self, Data, verdict};
use conformance::{memory, samples, summary};
use tupelo::{File, ops};
use tupelo_format::container::ANCHOR_BYTES;
use tupelo_format::envelope::{AttributeSetRecord, ColumnRecord, FieldRecord};
use tupelo_format::locator::Locator;
use tupelo_storage::MemorySource;

/// No file of a few kilobytes may take longer, on the slowest machine.
const MOST_TIME: Duration = Duration::from_secs(2);

fn files() -> BTreeMap<String, Bytes> {
    let entries = fs::read_dir(bad::folder()).expect("conformance/bad").map(|entry| entry.expect("an entry").path());
    let name = |path: &std::path::PathBuf| path.file_name().expect("a name").to_string_lossy().into_owned();
    let roots = entries.filter(|path| path.extension().is_some_and(|ending| ending == "root"));
    roots.map(|path| (name(&path), fs::read(&path).expect("a file").into())).collect()
}

fn expected() -> BTreeMap<String, String> {
    let list = fs::read_to_string(bad::folder().join("expected.txt")).expect("the list");
    let line = |line: &str| {
        let (name, verdict) = line.split_once('\t').expect("a tab between file and verdict");
        (name.to_owned(), verdict.to_owned())
    };
    list.lines().map(line).collect()
}

fn base_of(name: &str) -> Option<Bad> {
    bad::all().into_iter().find(|bad| name.strip_suffix(".root") == Some(bad.name))
}

#[test]
fn every_damaged_file_says_what_is_listed() {
    let (files, expected) = (files(), expected());
    let unlisted: Vec<_> = files.keys().filter(|name| !expected.contains_key(*name)).collect();
    let missing: Vec<_> = expected.keys().filter(|name| !files.contains_key(*name)).collect();
    assert!(unlisted.is_empty() && missing.is_empty(), "not listed: {unlisted:?}; not there: {missing:?}");
    let data: Vec<Vec<Data>> = Base::ALL.map(Base::data).into_iter().collect();
    let mut wrong = Vec::new();
    for (name, bytes) in &files {
        assert!(bytes.len() <= MAX_FILE_BYTES, "{name} has {} bytes", bytes.len());
        let begin = Instant::now();
        // A file from elsewhere is compared with nothing: it cannot read as the same.
        let base = base_of(name).map_or(&[][..], |bad| &data[bad.base as usize]);
        let verdict = verdict(bytes, name, true, base);
        if verdict != expected[name] {
            wrong.push(format!("{name}\n  says {verdict}\n  not  {}", expected[name]));
        }
        // Without page checksums more is believed, but nothing breaks.
        let _unverified = outcome::read(bytes, name, false);
        if let Ok(file) = File::new(std::sync::Arc::new(MemorySource::new(bytes.clone())), true) {
            let _report = ops::verify::verify(&file, None, &mut |_| {});
            let _map = ops::layout::layout(&file);
        }
        assert!(begin.elapsed() < MOST_TIME, "{name} took {:?}", begin.elapsed());
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let refused = expected.values().filter(|verdict| !verdict.starts_with("reads: ")).count();
    let line = format!("{} damaged files, {refused} refused with the reason that is listed", files.len());
    summary::note("bad_files", &line);
}

#[test]
fn the_files_are_those_that_are_made() {
    let files = files();
    for bad in bad::all() {
        let name = format!("{}.root", bad.name);
        assert_eq!(files.get(&name), Some(&bad.bytes()), "{name}: cargo run -p conformance --example make_bad");
    }
}

/// Everything but names, titles, dates and numbers that nobody needs lies under a checksum.
#[test]
fn a_flipped_bit_is_an_error_or_changes_nothing() {
    for base in [Base::Flat, Base::Nested] {
        let (whole, data) = (base.bytes(), base.data());
        for bit in 0..whole.len() * 8 {
            let mut file = whole.to_vec();
            file[bit / 8] ^= 1 << (bit % 8);
            let verdict = verdict(&file.into(), "flipped", true, &data);
            assert!(!verdict.starts_with("reads: other data"), "{base:?}: bit {bit}: {verdict}");
        }
    }
}

#[test]
fn a_cut_file_is_an_error_or_reads_the_same() {
    for base in [Base::Flat, Base::Nested] {
        let (whole, data) = (base.bytes(), base.data());
        for length in 0..whole.len() {
            let verdict = verdict(&whole.slice(..length), "cut", true, &data);
            assert!(!verdict.starts_with("reads: other data"), "{base:?}: {length} bytes: {verdict}");
        }
    }
}

fn takes(what: &str, model: &Model, check: impl Fn(tupelo::Result<Vec<Data>>)) {
    let file = model.build().expect("a file");
    let begin = Instant::now();
    check(outcome::read(&file, "many", true));
    assert!(begin.elapsed() < 5 * MOST_TIME, "{what} took {:?}", begin.elapsed());
}

/// Class 37: what is long must not be slow.
#[test]
fn a_hundred_thousand_fields_take_seconds() {
    let mut model = samples::flat();
    let schema = &mut model.header.schema;
    schema.columns.truncate(1);
    schema.fields.truncate(1);
    for id in 1..100_000 {
        let (name, type_name) = (format!("f{id}"), "std::int32_t".to_owned());
        schema.fields.push(FieldRecord { name, type_name, parent: id, ..FieldRecord::default() });
        schema.columns.push(ColumnRecord { field: id, ..schema.columns[0].clone() });
    }
    for cluster in &mut model.groups[0].clusters {
        cluster.columns = vec![cluster.columns[0].clone(); 100_000];
    }
    let file = model.build().expect("a file");
    let begin = Instant::now();
    let ntuple = memory::ntuple(&file).expect("an ntuple");
    let (opened, begin) = (begin.elapsed(), Instant::now());
    assert_eq!(ntuple.read_all().to_batch().expect("all data").num_columns(), 100_000);
    let read = begin.elapsed();
    assert!(opened < 2 * MOST_TIME && read < 5 * MOST_TIME, "opened in {opened:?}, read in {read:?}");
}

/// Class 36: what is deep must not use up the stack.
#[test]
fn a_hundred_thousand_levels_are_refused() {
    let mut model = samples::flat();
    let first = model.header.schema.fields.len() as u32;
    let field = |id: u32| FieldRecord {
        name: "r".into(),
        role: tupelo_format::envelope::role::RECORD,
        parent: id.saturating_sub(1).max(first),
        ..FieldRecord::default()
    };
    model.header.schema.fields.extend((first..first + 100_000).map(field));
    takes("a schema of 100 000 levels", &model, |read| assert!(read.is_err()));
}

#[test]
fn ten_thousand_clusters_take_seconds() {
    let mut model = samples::flat();
    let cluster = model.groups[0].clusters[1].clone();
    model.groups[0].clusters = (0..10_000u64)
        .map(|number| {
            let mut cluster = cluster.clone();
            cluster.summary.first_entry = number * 4;
            cluster.columns.iter_mut().for_each(|column| column.first_element = Some(number * 4));
            cluster
        })
        .collect();
    takes("10 000 clusters", &model, |read| {
        assert_eq!(read.expect("it is whole")[0].batch.num_rows(), 40_000);
    });
}

/// Attribute sets have none of their own; those of a hostile file are the ntuple itself, again and again.
#[test]
fn attribute_sets_in_circles_take_no_time() {
    const SETS: usize = 100;
    let build = |offset: u64| {
        let mut model = samples::flat();
        model.pack = false;
        model.edit_footer(move |footer| {
            let set = |i| AttributeSetRecord {
                schema_major: 1,
                schema_minor: 0,
                anchor_length: ANCHOR_BYTES as u32,
                anchor: Locator::File { offset, bytes: ANCHOR_BYTES as u64 },
                name: format!("set{i:03}"),
            };
            footer.attribute_sets = (0..SETS).map(set).collect();
        });
        model.build().expect("a file")
    };
    // Only the numbers differ between both files, not the places.
    let file = build(0);
    let class = b"\x0dROOT::RNTuple\x01n\x00";
    let key = file.windows(class.len()).position(|window| window == class).expect("the anchor's key");
    let file = build((key + class.len()) as u64);
    let begin = Instant::now();
    assert_eq!(outcome::read(&file, "sets", true).expect("data").len(), SETS + 1);
    let file = memory::file(&file).expect("a file");
    let report = ops::verify::verify(&file, None, &mut |_| {}).expect("a report");
    assert_eq!((report.ntuples as usize, report.damages.len()), (SETS + 1, 0));
    ops::layout::layout(&file).expect("a map");
    assert!(begin.elapsed() < MOST_TIME, "{:?}", begin.elapsed());
}
