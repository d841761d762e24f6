//! Every damaged file says exactly what is wrong with it, or reads as if nothing were; and no bit that flips anywhere
//! in a file goes unnoticed where it matters.

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

use bytes::Bytes;
use conformance::bad::{self, Bad, Base, MAX_FILE_BYTES};
use conformance::model::{Column, Group, Page};
use conformance::outcome::{self, Data, verdict};
use conformance::{memory, samples, summary};
use rustix::time::{ClockId, clock_gettime};
use tupelo::{File, ops};
use tupelo_format::envelope::{ColumnRecord, FieldRecord, SchemaRecords, role};
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
fn every_damaged_file_gives_the_listed_error() {
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

/// An error says on which file, and on what in it or where.
#[test]
fn every_error_names_its_place() {
    let objects =
        ["field ", "column ", "cluster ", "ntuple '", "key '", "directory '", "header", "footer", "page list"];
    let mut missing = Vec::new();
    for bad in bad::all() {
        let Err(error) = outcome::read(&bad.bytes(), bad.name, true) else { continue };
        let text = error.to_string();
        let Some(text) = text.strip_prefix(&format!("memory:{}: ", bad.name)) else {
            missing.push(format!("{}: the file is not named: {text}", bad.name));
            continue;
        };
        let inside = text.strip_prefix("ntuple 'n': ").unwrap_or(text);
        let is_placed = inside.contains("at byte ") || inside.contains("at offset ");
        // There is nothing to be named where nothing is.
        let is_nothing = text.starts_with("the file contains no ntuple");
        if !is_placed && !objects.iter().any(|object| inside.contains(object)) && !is_nothing {
            missing.push(format!("{}: {text}", bad.name));
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

/// The classes of malformed input that have files here, and those that are made where they are tried: they would be
/// large.
#[test]
fn every_class_is_tried() {
    const MADE: [(u32, &str); 2] =
        [(35, "deep_nesting_takes_linear_time"), (37, "a_hundred_thousand_fields_take_linear_time")];
    let class = |bad: &Bad| bad.name.split('-').next().and_then(|number| number.parse().ok()).expect("a class");
    let mut classes: BTreeMap<u32, usize> = BTreeMap::new();
    bad::all().iter().for_each(|bad| *classes.entry(class(bad)).or_default() += 1);
    let missing: Vec<u32> =
        (1..=72).filter(|class| !classes.contains_key(class) && MADE.iter().all(|(made, _)| made != class)).collect();
    assert!(missing.is_empty(), "{missing:?}");
    assert!(MADE.iter().all(|(class, _)| !classes.contains_key(class)));
}

/// What reading refuses, verifying finds, and names its place; and it finds nothing in whole files.
#[test]
fn verify_finds_all_damage_that_reading_refuses() {
    let verify = |bytes: &Bytes| {
        let file = File::new(std::sync::Arc::new(MemorySource::new(bytes.clone())), true)?;
        ops::verify::verify_deep(&file, &mut |_| {})
    };
    for base in Base::ALL {
        let report = verify(&base.bytes()).expect("a whole file");
        assert!(report.damages.is_empty() && report.unsupported.is_empty(), "{base:?}: {:?}", report.damages);
    }
    for bad in bad::all() {
        let (bytes, report) = (bad.bytes(), verify(&bad.bytes()));
        let Err(error) = outcome::read(&bytes, bad.name, true) else { continue };
        let Ok(report) = report else { continue };
        let found: Vec<_> = report.damages.iter().chain(&report.unsupported).collect();
        assert!(!found.is_empty() || report.ntuples == 0, "{}: nothing found where reading says: {error}", bad.name);
        for damage in found {
            assert!(
                damage.to_string().contains(['\'', ':']) || damage.what.contains("offset"),
                "{}: {damage}",
                bad.name
            );
        }
    }
}

#[test]
fn the_files_are_those_that_are_made() {
    let files = files();
    for bad in bad::all() {
        let name = format!("{}.root", bad.name);
        assert_eq!(files.get(&name), Some(&bad.bytes()), "{name}: cargo run -p conformance --example make_bad");
    }
}

/// Checksums cover everything but names, titles, dates and unused numbers.
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

/// Time that this thread had a processor, which is less than what passed on a busy machine.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// How long work takes, at best of three.
fn time(mut work: impl FnMut()) -> Duration {
    let once = |_| {
        let begin = processor_time();
        work();
        processor_time() - begin
    };
    (0..3).map(once).min().unwrap_or_default()
}

/// Four times as much may take twelve times as long, where others want the caches too; squares would take sixteen
/// times, and cubes sixty-four. What is over at once is not judged.
fn is_linear(what: &str, mut work: impl FnMut(u64)) {
    const SMALL: u64 = 1;
    let (small, large) = (time(|| work(SMALL)), time(|| work(4 * SMALL)));
    assert!(large < 12 * small.max(Duration::from_millis(20)), "{what}: {small:?}, four times as much {large:?}");
}

fn many_fields(count: u32) -> Bytes {
    let mut model = samples::flat();
    let schema = &mut model.header.schema;
    schema.columns.truncate(1);
    schema.fields.truncate(1);
    for id in 1..count {
        let (name, type_name) = (format!("f{id}"), "std::int32_t".to_owned());
        schema.fields.push(FieldRecord { name, type_name, parent: id, ..FieldRecord::default() });
        schema.columns.push(ColumnRecord { field: id, ..schema.columns[0].clone() });
    }
    for cluster in &mut model.groups[0].clusters {
        cluster.columns = vec![cluster.columns[0].clone(); count as usize];
    }
    model.build().expect("a file")
}

/// Class 37: what is long must not be slow.
#[test]
fn a_hundred_thousand_fields_take_linear_time() {
    let files = [25_000, 100_000].map(many_fields);
    let file = |times: u64| &files[usize::from(times > 1)];
    is_linear("opening many fields", |times| drop(memory::ntuple(file(times)).expect("an ntuple")));
    is_linear("reading many fields", |times| {
        let batch = memory::ntuple(file(times)).expect("an ntuple").read_all().to_batch().expect("all data");
        assert_eq!(batch.num_columns() as u64, 25_000 * times);
    });
    is_linear("choosing among many fields", |times| {
        let ntuple = memory::ntuple(file(times)).expect("an ntuple");
        assert_eq!(ntuple.read(["f7", "f1*9"]).expect("fields").to_batch().expect("data").num_rows(), 10);
    });
}

/// Vectors of vectors of one float, `depth` deep, in one entry; and as many such fields beside each other.
fn deep(depth: u32, times: u32) -> Bytes {
    let mut model = samples::nested();
    let (vector, float) = (model.header.schema.fields[0].clone(), model.header.schema.fields[1].clone());
    let (index, values) = (model.header.schema.columns[0].clone(), model.header.schema.columns[1].clone());
    let page =
        |elements: u32, stored: Vec<u8>| Page { elements, stored, checksum: Some(None), locator: None, digest: None };
    model.header.schema = SchemaRecords::default();
    let schema = &mut model.header.schema;
    let cluster = &mut model.groups[0].clusters[0];
    cluster.summary.entries = 1;
    cluster.columns.clear();
    let column = |page| Column { pages: vec![page], first_element: Some(0), compression: 0 };
    for number in 0..times {
        for level in 0..depth {
            let id = schema.fields.len() as u32;
            let (parent, name) = if level == 0 { (id, format!("v{number}")) } else { (id - 1, "_0".to_owned()) };
            let type_name = format!("{}float{}", "std::vector<".repeat((depth - level) as usize), ">".repeat(9));
            schema.fields.push(FieldRecord { name, parent, type_name, ..vector.clone() });
            schema.columns.push(ColumnRecord { field: id, ..index.clone() });
            cluster.columns.push(column(page(1, 1u64.to_le_bytes().to_vec())));
        }
        let id = schema.fields.len() as u32;
        schema.fields.push(FieldRecord { parent: id - 1, ..float.clone() });
        schema.columns.push(ColumnRecord { field: id, ..values.clone() });
        cluster.columns.push(column(page(1, 1.5f32.to_le_bytes().to_vec())));
    }
    model.build().expect("a file")
}

/// Classes 35 and 36: depth costs no more than length does, up to the limit, and behind it there is an error.
#[test]
fn deep_nesting_takes_linear_time() {
    let read = |file: &Bytes| outcome::read(file, "deep", true);
    let files = [16, 64].map(|depth| deep(depth, 50));
    is_linear("deep vectors", |times| {
        let data = read(&files[usize::from(times > 1)]).expect("it is whole");
        assert_eq!((data[0].batch.num_rows(), data[0].batch.num_columns()), (1, 50));
    });
    assert!(read(&deep(50, 1)).is_ok());
    let error = read(&deep(65, 1)).expect_err("too deep").to_string();
    assert!(error.contains("field 65: fields are nested more than 64 deep"), "{error}");
    for levels in [20_000, 100_000] {
        let mut model = samples::flat();
        let first = model.header.schema.fields.len() as u32;
        let field = |id: u32| FieldRecord {
            name: "r".into(),
            role: role::RECORD,
            parent: id.saturating_sub(1).max(first),
            ..FieldRecord::default()
        };
        model.header.schema.fields.extend((first..first + levels).map(field));
        let error = read(&model.build().expect("a file")).expect_err("too deep").to_string();
        assert!(error.contains("field 67: fields are nested more than 64 deep"), "{error}");
    }
}

#[test]
fn ten_thousand_clusters_take_linear_time() {
    let file = |clusters: u64, groups: u64| {
        let mut model = samples::flat();
        let cluster = model.groups[0].clusters[1].clone();
        let of_group = |group: u64| {
            let number = |number: u64| {
                let first = (group * (clusters / groups) + number) * 4;
                let mut cluster = cluster.clone();
                cluster.summary.first_entry = first;
                cluster.columns.iter_mut().for_each(|column| column.first_element = Some(first));
                cluster
            };
            Group { clusters: (0..clusters / groups).map(number).collect() }
        };
        model.groups = (0..groups).map(of_group).collect();
        model.build().expect("a file")
    };
    // In one group, and class 57: in as many groups as a writer that never rests may make.
    for (what, groups) in [("clusters", [1, 1]), ("cluster groups", [500, 2000])] {
        let files = [file(2500, groups[0]), file(10_000, groups[1])];
        is_linear(what, |times| {
            let data = outcome::read(&files[usize::from(times > 1)], "many", true).expect("it is whole");
            assert_eq!(data[0].batch.num_rows() as u64, 10_000 * times);
        });
    }
}

/// Class 43: a representation has a number of 16 bits.
#[test]
fn seventy_thousand_representations_are_refused() {
    let mut model = samples::flat();
    let column = model.header.schema.columns[0].clone();
    let representation = |number: u32| ColumnRecord { representation: number as u16, ..column.clone() };
    model.header.schema.columns.extend((1..70_000).map(representation));
    let error = outcome::read(&model.build().expect("a file"), "many", true).expect_err("too many").to_string();
    assert!(error.contains("column 65537: found representation 0 of 'i' after 65536 others"), "{error}");
}
