//! Zone maps never change what a cut keeps, and save reading.

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::builder::{Float32Builder, LargeListBuilder, UInt64Builder};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt64Type};
use arrow_array::{
    ArrayRef, BooleanArray, Float32Array, Float64Array, Int32Array, Int64Array, LargeStringArray, RecordBatch,
    UInt64Array,
};
use arrow_schema::{DataType, Field as ArrowField};
use proptest::prelude::*;
use tupelo::ops::index::zones::{ZONE_MAPS_SET, ZoneOptions, ZonesWritten, write_zones};
use tupelo::schema::Schema;
use tupelo::{Expression, FileWriter, Ntuple, Remedy, Result, Table, WriteOptions};

/// Values in no order, all different.
fn id(entry: i64) -> i64 {
    entry * 7_368_787 % 10_007 - 5000
}

/// Entries from a number on: some columns ascend, others do not.
fn batch(first: i64, count: i64) -> RecordBatch {
    let entries = || first..first + count;
    let noise = |entry: i64, modulus: i64| (entry * 7919 + 13) % modulus;
    let mut lists = LargeListBuilder::new(Float32Builder::new());
    for entry in entries() {
        (0..noise(entry, 4)).for_each(|item| lists.values().append_value((entry / 20 + item) as f32 * 0.1));
        lists.append(true);
    }
    let nan = |entry: i64| if noise(entry, 11) == 0 { f64::NAN } else { entry as f64 / 3.0 };
    let columns: Vec<(&str, ArrayRef, bool)> = vec![
        ("run", Arc::new(entries().map(|entry| Some((entry / 50) as i32)).collect::<Int32Array>()), false),
        ("event", Arc::new(entries().map(|entry| Some(entry + (1 << 53))).collect::<Int64Array>()), false),
        ("large", Arc::new(entries().map(|entry| Some(u64::MAX - entry as u64)).collect::<UInt64Array>()), false),
        ("id", Arc::new(entries().map(|entry| Some(id(entry))).collect::<Int64Array>()), false),
        ("x", Arc::new(entries().map(|entry| Some(nan(entry))).collect::<Float64Array>()), false),
        ("single", Arc::new(entries().map(|entry| Some((entry / 40) as f32 * 0.7)).collect::<Float32Array>()), false),
        (
            "maybe",
            Arc::new(entries().map(|entry| (noise(entry, 3) > 0).then_some(entry as f64)).collect::<Float64Array>()),
            true,
        ),
        ("pt", Arc::new(lists.finish()), false),
        ("flag", Arc::new(entries().map(|entry| Some(entry % 2 == 0)).collect::<BooleanArray>()), false),
        ("name", Arc::new(entries().map(|entry| Some(format!("n{entry}"))).collect::<LargeStringArray>()), false),
    ];
    RecordBatch::try_from_iter_with_nullable(columns).expect("columns")
}

/// Writes several clusters.
fn write(path: &Path, clusters: &[i64]) {
    let file = FileWriter::create(path).expect("a file");
    let schema = Schema::from_arrow(&batch(0, 1).schema()).expect("a schema");
    let options = WriteOptions::default().with_page_bytes(128);
    let mut ntuple = file.ntuple("events", &schema, options).expect("an ntuple");
    let mut first = 0;
    for count in clusters {
        ntuple.write(&batch(first, *count)).expect("entries");
        ntuple.flush_cluster().expect("a cluster");
        first += count;
    }
    ntuple.finish().expect("an ntuple");
    file.finish().expect("a file");
}

/// Writes two files with the same clusters.
fn write_both(folder: &tempfile::TempDir, clusters: &[i64]) -> [PathBuf; 2] {
    ["with.root", "without.root"].map(|name| {
        let path = folder.path().join(name);
        write(&path, clusters);
        path
    })
}

fn add_zones(path: &Path, entries: u64) -> ZonesWritten {
    add(path, &ZoneOptions::default().with_zone_entries(entries))
}

fn add(path: &Path, options: &ZoneOptions) -> ZonesWritten {
    try_add(path, options).expect("zones")
}

fn try_add(path: &Path, options: &ZoneOptions) -> Result<ZonesWritten> {
    let file = tupelo::update(path)?;
    let written = write_zones(&file, "events", options, &mut |_| ControlFlow::Continue(()))?.expect("not ended");
    file.finish()?;
    Ok(written)
}

fn open(path: &Path) -> Table {
    tupelo::open(path.to_str().expect("a name")).open().expect("an ntuple").into()
}

fn kept(table: &Table, cut: &str) -> RecordBatch {
    let cut: Expression = cut.parse().expect("a cut");
    table.read_all().with_where(&cut).expect("a cut").to_batch().expect("entries")
}

fn pages(table: &Table, cut: &str) -> u64 {
    let cut: Expression = cut.parse().expect("a cut");
    table.read(["event"]).expect("a field").with_where(&cut).expect("a cut").explain().expect("an explanation").pages()
}

fn assert_same(with: &Table, without: &Table, cut: &str) {
    let [a, b] = [with, without].map(|table| kept(table, cut));
    for ((a, b), field) in a.columns().iter().zip(b.columns()).zip(a.schema_ref().fields()) {
        assert!(a == b, "{cut}: {}: {a:?}, expected {b:?}", field.name());
    }
    let cut: Expression = cut.parse().expect("a cut");
    let batches = |table: &Table| {
        let read = table.read(["event"]).expect("a field").with_where(&cut).expect("a cut");
        let batches = read.entries(3..).batches(29).expect("batches").map(|batch| batch.expect("a batch").num_rows());
        batches.collect::<Vec<_>>()
    };
    assert_eq!(batches(with), batches(without), "{cut}");
}

/// Comparisons with numbers near to those of the columns, also at the edges of zones.
fn comparison() -> impl Strategy<Value = String> {
    let operator = prop::sample::select(vec!["<", "<=", ">", ">=", "==", "!="]);
    let column = prop::sample::select(vec![
        ("run", -1.0, 9.0),
        ("id", -5001.0, 5010.0),
        ("event", 9_007_199_254_740_990.0, 9_007_199_254_741_400.0),
        ("x", -5.0, 140.0),
        ("single", -1.0, 8.0),
        ("maybe", -3.0, 420.0),
        ("abs(x)", 0.0, 140.0),
        ("large", 1.0, 1.8e19),
        ("-run", -9.0, 1.0),
        ("max(pt)", 0.0, 2.5),
        ("len(pt)", -1.0, 4.0),
        ("run + x", 0.0, 150.0),
    ]);
    let number = |(name, low, high): (&'static str, f64, f64)| (Just(name), low..high, any::<bool>());
    (column.prop_flat_map(number), operator).prop_map(|((name, number, is_whole), operator)| match is_whole {
        true => format!("{name} {operator} {}", number.round() as i128),
        false => format!("{name} {operator} {number:?}"),
    })
}

fn cut() -> impl Strategy<Value = String> {
    let member = prop::collection::vec(-1..9_i32, 1..4).prop_map(|numbers| format!("run in {numbers:?}"));
    let same = (prop::sample::select(vec!["==", "!="]), -2..420_i64);
    let same = same.prop_map(|(operator, entry)| format!("id {operator} {}", id(entry)));
    let list = (-0.5..2.5_f64).prop_map(|number| format!("any(pt > {number:?})"));
    let single = prop_oneof![6 => comparison(), 2 => same, 1 => member, 1 => list, 1 => Just("flag".to_owned())];
    single.prop_recursive(2, 5, 2, |inner| {
        prop_oneof![
            (inner.clone(), prop::sample::select(vec!["and", "or"]), inner.clone())
                .prop_map(|(a, operator, b)| format!("({a}) {operator} ({b})")),
            inner.prop_map(|a| format!("not ({a})")),
        ]
    })
}

#[test]
fn zone_maps_save_pages_and_change_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let [with, without] = write_both(&folder, &[120, 80, 1, 200]);
    let made = add_zones(&with, 16);
    assert_eq!((made.fields, made.zones), (8, 8 * (8 + 5 + 1 + 13)));
    // Filters are added to zones that have none.
    let single = format!("id == {} and x > 0", id(77));
    assert!(pages(&open(&with), &single) > 20);
    let options = ZoneOptions::default().with_filters(["run", "event", "large", "id"]).with_zone_entries(10);
    let made = add(&with, &options);
    assert_eq!((made.fields, made.zones), (4, 4 * (12 + 8 + 1 + 20)));
    assert_eq!(add(&with, &options).zones, 0);
    let [table, plain] = [&with, &without].map(|path| open(path));
    for cut in [
        "run == 3",
        "x > 100 and x < 110",
        "any(pt > 1.9)",
        "event < 9007199254740999",
        "run in [1, 7]",
        "single > 6",
        &single,
    ] {
        assert!(
            pages(&table, cut) * 5 < pages(&plain, cut) * 2,
            "{cut}: {} of {}",
            pages(&table, cut),
            pages(&plain, cut)
        );
        assert_same(&table, &plain, cut);
    }
    assert_eq!((pages(&table, "run > 100"), kept(&table, "run > 100").num_rows()), (0, 0));
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
        cases: 400,
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    let tested = runner.run(&cut(), |cut| {
        assert_same(&table, &plain, &cut);
        Ok(())
    });
    tested.expect("the same entries");
    // A chain has the zones of its files.
    let (file, other) = (with.display().to_string(), without.display().to_string());
    let of = |first: &str| {
        let names = [first.to_owned(), other.clone()];
        Table::chain(2, 1, tupelo::dataset::FieldPolicy::Common, move |number| {
            tupelo::open(&names[number]).open().map(|ntuple| Some(ntuple.into()))
        })
        .expect("a chain")
    };
    for cut in ["run == 3", "x > 100 and x < 110", "maybe > 30"] {
        assert_same(&of(&file), &of(&other), cut);
    }
    assert!(pages(&of(&file), "run == 3") < pages(&of(&other), "run == 3"));
}

/// Zones of entries that were added are missing until they are made; those of other pages are not used.
#[test]
fn stale_and_foreign_zone_maps_are_not_used() {
    let folder = tempfile::tempdir().expect("a folder");
    let [with, without] = write_both(&folder, &[100, 100]);
    assert_eq!(add_zones(&with, 50).zones, 8 * 4);
    assert_eq!(add_zones(&with, 50).zones, 0);
    for path in [&with, &without] {
        let file = tupelo::update(path).expect("a file");
        let mut ntuple = file.append("events", WriteOptions::default()).expect("an ntuple");
        ntuple.write(&batch(200, 100)).expect("entries");
        ntuple.finish().expect("an ntuple");
        file.finish().expect("a file");
    }
    let [table, plain] = [&with, &without].map(|path| open(path));
    for cut in ["run == 1", "run == 5", "event > 9007199254741100"] {
        assert_same(&table, &plain, cut);
    }
    assert!(pages(&table, "run == 1") < pages(&plain, "run == 1"));
    assert_eq!(add_zones(&with, 50).zones, 8 * 2);
    assert_same(&open(&with), &plain, "run == 5");
    // A copy has none, since its pages are others.
    let copy = folder.path().join("copy.root");
    let file = FileWriter::create(&copy).expect("a file");
    let how = tupelo::ops::copy::CopyOptions::default();
    let (read, options) = (open(&with).read_all(), WriteOptions::default());
    tupelo::ops::copy::copy(read, &file, "events", options, how, &mut |_| ControlFlow::Continue(())).expect("a copy");
    file.finish().expect("a file");
    assert!(!open(&copy).ntuple().expect("an ntuple").attribute_sets().any(|set| set == ZONE_MAPS_SET));
    // Sets of other programs, and zones of other pages.
    let foreign = RecordBatch::try_from_iter([("text", Arc::new(LargeStringArray::from(vec!["x"])) as ArrayRef)]);
    let item = ArrowField::new_list_field(DataType::UInt64, false);
    let mut filters = LargeListBuilder::new(UInt64Builder::new()).with_field(item);
    [0, 1, 0].iter().for_each(|words| filters.append_value(vec![Some(0); *words]));
    let filters = filters.finish();
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("field", Arc::new(LargeStringArray::from(vec!["run", "run", "nothing"]))),
        ("lowest", Arc::new(Float64Array::from(vec![900.0, f64::NAN, 5.0]))),
        ("highest", Arc::new(Float64Array::from(vec![1000.0, 3.0, -5.0]))),
        ("has_nan", Arc::new(BooleanArray::from(vec![false, false, true]))),
        ("nulls", Arc::new(UInt64Array::from(vec![0, 0, u64::MAX]))),
        ("digest", Arc::new(UInt64Array::from(vec![1, 2, u64::MAX]))),
        ("filter", Arc::new(filters)),
    ];
    for (number, set) in
        [foreign.expect("a batch"), RecordBatch::try_from_iter(columns).expect("a batch")].iter().enumerate()
    {
        let path = folder.path().join(format!("foreign{number}.root"));
        write(&path, &[100, 100]);
        let file = tupelo::update(&path).expect("a file");
        let mut ntuple = file.append("events", WriteOptions::default()).expect("an ntuple");
        let schema = Schema::from_arrow(&set.schema()).expect("a schema");
        let ranges = vec![0..u64::MAX; set.num_rows()];
        ntuple.attribute_set(ZONE_MAPS_SET, &schema).expect("a set").write(&ranges, set).expect("zones");
        ntuple.finish().expect("an ntuple");
        file.finish().expect("a file");
        assert_eq!(kept(&open(&path), "run == 1").num_rows(), 50, "{number}");
        if number == 0 {
            let error = try_add(&path, &ZoneOptions::default()).expect_err("zone maps of another program");
            assert_eq!(error.remedy(), Some(Remedy::RebuildZoneMaps), "{error}");
        }
        assert_eq!(add(&path, &ZoneOptions::default().with_zone_entries(50).with_rebuild(true)).zones, 8 * 4);
        assert_eq!(kept(&open(&path), "run == 1").num_rows(), 50, "{number}");
        assert!(pages(&open(&path), "run == 1") < pages(&plain, "run == 1"));
    }
}

/// Defect: zone maps that are damaged could not be replaced.
#[test]
fn damaged_zone_maps_are_rebuilt() {
    let folder = tempfile::tempdir().expect("a folder");
    let [with, without] = write_both(&folder, &[100, 100]);
    add_zones(&with, 50);
    let (whole, plain) = (fs::read(&with).expect("a file"), open(&without));
    let mut rebuilt = 0;
    for place in (0..whole.len()).step_by(97) {
        let mut bytes = whole.clone();
        bytes[place] ^= 0x55;
        fs::write(&with, &bytes).expect("a file");
        let Err(error) = try_add(&with, &ZoneOptions::default()) else { continue };
        if error.remedy() != Some(Remedy::RebuildZoneMaps) {
            continue;
        }
        add(&with, &ZoneOptions::default().with_zone_entries(50).with_rebuild(true));
        assert_same(&open(&with), &plain, "run == 1");
        assert!(pages(&open(&with), "run == 1") < pages(&plain, "run == 1"), "{place}: {error}");
        assert_eq!(try_add(&with, &ZoneOptions::default()).expect("zones").zones, 0, "{place}: {error}");
        rebuilt += 1;
    }
    assert!(rebuilt > 10, "{rebuilt}");
}

/// Defect: a cut read the zones of all fields, and `explain` did not count them.
#[test]
fn a_cut_reads_the_zone_maps_of_its_fields() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("events.root");
    let names: Vec<String> = (0..16).map(|number| format!("x{number}")).collect();
    let file = FileWriter::create(&path).expect("a file");
    let of = |number: usize| (0..40_000).map(move |entry| Some(((entry * 7919 + number as i64 * 31) % 40_009) as f64));
    let columns = names.iter().enumerate();
    let columns = columns.map(|(number, name)| (name, Arc::new(of(number).collect::<Float64Array>()) as ArrayRef));
    let id = Arc::new((0..40_000).map(|entry| Some(entry * 7919 % 40_009)).collect::<Int64Array>()) as ArrayRef;
    let id_name = "id".to_owned();
    let batch = RecordBatch::try_from_iter(columns.chain([(&id_name, id)])).expect("columns");
    let schema = Schema::from_arrow(&batch.schema()).expect("a schema");
    let mut ntuple = file.ntuple("events", &schema, WriteOptions::default()).expect("an ntuple");
    ntuple.write(&batch).expect("entries");
    ntuple.finish().expect("an ntuple");
    file.finish().expect("a file");
    let options = ZoneOptions::default().with_fields(["x*"]).with_filters(["id"]).with_zone_entries(10);
    assert_eq!(add(&path, &options).zones, 17 * 4000);
    let found = kept(&open(&path), &format!("id == {} and x3 >= 0", 777 * 7919 % 40_009));
    assert_eq!(found["x0"].as_primitive::<Float64Type>().values()[..], [of(0).nth(777).flatten().expect("a number")]);
    // No value is below zero: nothing else is read.
    let read = |cut: &str| {
        let ntuple = tupelo::open(path.to_str().expect("a name")).with_metrics(true).open().expect("an ntuple");
        let pages = |table: &Ntuple| table.metrics().expect("metrics").page_bytes;
        let before = pages(&ntuple);
        let read = ntuple.read(["x0"]).expect("a field").with_where(&cut.parse().expect("a cut")).expect("a cut");
        assert_eq!(read.to_batch().expect("entries").num_rows(), 0);
        let bytes = pages(&ntuple) - before;
        let explained = read.explain().expect("an explanation");
        assert_eq!((explained.ruled_out, explained.pages(), explained.zone_map_bytes), (40_000, 0, bytes), "{cut}");
        assert!(explained.to_string().contains("; zone maps rule out 40000 entries, and take "), "{explained}");
        bytes
    };
    let set = open(&path).ntuple().expect("an ntuple").attribute_set(ZONE_MAPS_SET).expect("a set");
    let all = set.read_all().explain().expect("an explanation").stored_bytes();
    let (one, two) = (read("x3 < 0"), read("x3 < 0 and x14 < 0"));
    // A field has no filter, and another one has.
    assert!(read("x3 == -1") < read("x3 < 0") + 200);
    assert!(read("id == -1") > read("id < 0") + 10_000);
    assert!(one < two && one * 6 < all, "{one}, {two} of {all}");
}

/// Defect: another number of entries was ignored where there were zones.
#[test]
fn smaller_zones_are_made_where_there_are_larger_ones() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("events.root");
    write(&path, &[100, 100]);
    let fields = ZoneOptions::default().with_fields(["run"]);
    assert_eq!(add(&path, &fields.clone().with_filters(["run"])).zones, 2);
    assert_eq!(add(&path, &fields.clone().with_zone_entries(25)).zones, 8);
    assert_eq!(add(&path, &fields.clone().with_zone_entries(50)).zones, 0);
    assert_eq!(add(&path, &fields).zones, 0);
    let set = open(&path).ntuple().expect("an ntuple").attributes(ZONE_MAPS_SET).expect("a set");
    let filters = set.values()["filter"].as_list::<i64>();
    assert!(filters.value_offsets().windows(2).all(|ends| ends[0] < ends[1]), "filters stay");
    let zones = open(&path).read_all().zones(&["run"]);
    assert_eq!(zones.iter().map(|zone| zone.entries.start).collect::<Vec<_>>(), [0, 25, 50, 75, 100, 125, 150, 175]);
}

/// `verify` names zone maps that do not agree with the values: readers believe those that are of the right pages.
#[test]
fn verify_finds_zone_maps_that_lie() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("events.root");
    write(&path, &[100, 100]);
    add(&path, &ZoneOptions::default().with_zone_entries(50));
    let damages = || {
        let file = tupelo::open(path.to_str().expect("a name")).open_file().expect("a file");
        let report = tupelo::ops::verify::verify(&file, None, &mut |_| ()).expect("a report");
        report.damages.into_iter().map(|damage| damage.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(damages(), Vec::<String>::new());
    let table = open(&path);
    let set = table.ntuple().expect("an ntuple").attributes(ZONE_MAPS_SET).expect("a set");
    let (ranges, honest) = (set.ranges().to_vec(), set.values().clone());
    let place_of = |field: &str, entry: u64| {
        let fields = honest["field"].as_string::<i64>();
        (0..ranges.len()).find(|place| fields.value(*place) == field && ranges[*place].start == entry).expect("a zone")
    };
    let numbers = |column: &str, place: usize, number: f64| {
        let with = honest[column].as_primitive::<Float64Type>().iter().flatten().enumerate();
        let all = with.map(|(k, known)| if k == place { number } else { known });
        (column.to_owned(), Arc::new(Float64Array::from_iter_values(all)) as ArrayRef)
    };
    let nan = |place: usize| {
        let all = honest["has_nan"].as_boolean().iter().enumerate();
        let all: BooleanArray = all.map(|(k, known)| if k == place { Some(false) } else { known }).collect();
        ("has_nan".to_owned(), Arc::new(all) as ArrayRef)
    };
    let filter = |place: usize| {
        let item = ArrowField::new_list_field(DataType::UInt64, false);
        let mut all = LargeListBuilder::new(UInt64Builder::new()).with_field(item);
        (0..ranges.len()).for_each(|k| all.append_value((k == place).then_some(Some(0))));
        ("filter".to_owned(), Arc::new(all.finish()) as ArrayRef)
    };
    let nulls = |place: usize| {
        let all = honest["nulls"].as_primitive::<UInt64Type>().iter().flatten().enumerate();
        let all = all.map(|(k, known)| if k == place { 0 } else { known });
        ("nulls".to_owned(), Arc::new(UInt64Array::from_iter_values(all)) as ArrayRef)
    };
    let lies = [
        (
            numbers("lowest", place_of("run", 50), 2.0),
            "entries 50 to 99 has the bounds 2 to 1, but the values are 1 to 1",
        ),
        (numbers("highest", place_of("pt", 150), 0.5), "entries 150 to 199 has the bounds"),
        (numbers("lowest", place_of("maybe", 0), 9.0), "field 'maybe': cluster 0: the zone map of entries 0 to 49 "),
        (nan(place_of("x", 100)), "says that no value is NaN, but one is"),
        (nulls(place_of("maybe", 50)), "counts 0 nulls, but 16 of the values are null"),
        (filter(place_of("id", 0)), "has a filter without some of the values"),
        (filter(place_of("single", 0)), "has a filter, but the values are not integers"),
    ];
    for ((column, lie), expected) in lies {
        let columns = honest.schema_ref().fields().iter().zip(honest.columns());
        let columns = columns.map(|(field, array)| (field.name(), if *field.name() == column { &lie } else { array }));
        let columns = columns.map(|(name, array)| (name.clone(), Arc::clone(array)));
        let lying = RecordBatch::try_from_iter(columns).expect("a batch");
        write(&path, &[100, 100]);
        let file = tupelo::update(&path).expect("a file");
        let mut ntuple = file.append("events", WriteOptions::default()).expect("an ntuple");
        let schema = Schema::from_arrow(&lying.schema()).expect("a schema");
        ntuple.attribute_set(ZONE_MAPS_SET, &schema).expect("a set").write(&ranges, &lying).expect("zones");
        ntuple.finish().expect("an ntuple");
        file.finish().expect("a file");
        let found = damages();
        assert!(matches!(&found[..], [one] if one.contains(expected)), "{column}: {found:?}, expected {expected}");
        add(&path, &ZoneOptions::default().with_zone_entries(50).with_rebuild(true));
        assert_eq!(damages(), Vec::<String>::new(), "{column}");
    }
}
