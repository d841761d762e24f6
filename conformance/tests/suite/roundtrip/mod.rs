//! Write then read is the identity, whatever the schema, the data, the sizes and the codec; and every way of reading
//! gives the same.

mod life;
mod types;

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use arrow_array::{BooleanArray, RecordBatch, UInt64Array};
use arrow_schema::{Field, Schema as ArrowSchema};
use arrow_select::concat::concat_batches;
use arrow_select::filter::filter_record_batch;
use arrow_select::take::take_record_batch;
use bytes::Bytes;
use conformance::mutate::Random;
use conformance::{memory, summary};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use tupelo::ops::copy::{Pages, copy};
use tupelo::schema::{Schema, metadata};
use tupelo::{Algorithm, Compression, FileWriter, Ntuple, WriteOptions};
use tupelo_storage::{MemoryFile, MemorySink};
use types::{Lossy, Number, Type, Value};

/// Enough for a minute at most on two cores.
const CASES: u32 = 2000;
const THREADS: u32 = 4;
/// Names that the format allows and that something may trip over.
const NAMES: [&str; 5] = ["pt", "µ", "AnalysisJetsAuxDyn:pt", "_0", "a-b;1"];

fn leaf() -> impl Strategy<Value = Type> {
    let number = prop::sample::select(Number::ALL.to_vec());
    let lossy = prop::sample::select(vec![Lossy::Half, Lossy::Truncated, Lossy::Quantised, Lossy::Double32]);
    let integer = prop::sample::select(vec![Number::I8, Number::U16, Number::I32, Number::U64]);
    prop_oneof![
        6 => number.prop_map(Type::Number),
        1 => lossy.prop_map(Type::Lossy),
        2 => any::<bool>().prop_map(|index32| Type::String { index32 }),
        1 => (1u64..70).prop_map(Type::Bitset),
        1 => (any::<bool>(), integer).prop_map(|(atomic, item)| Type::Wrapper { atomic, item }),
    ]
}

fn any_type() -> impl Strategy<Value = Type> {
    leaf().prop_recursive(3, 24, 3, |item| {
        let boxed = item.clone().prop_map(Box::new);
        let items = |range| prop::collection::vec(item.clone(), range);
        let key =
            prop_oneof![Just(Type::Number(Number::I32)), Just(Type::String { index32: false })].prop_map(Box::new);
        prop_oneof![
            3 => (any::<bool>(), boxed.clone()).prop_map(|(large, item)| Type::List { large, set: false, item }),
            1 => boxed.clone().prop_map(|item| Type::List { large: true, set: true, item }),
            1 => (1u64..5, boxed.clone()).prop_map(|(size, item)| Type::Array(size, item)),
            2 => (any::<bool>(), items(0..4)).prop_map(|(named, members)| Type::Struct {
                name: named.then(|| "My::Class".to_owned()),
                members,
            }),
            1 => items(2..4).prop_map(Type::Tuple),
            1 => (any::<bool>(), key, boxed.clone()).prop_map(|(arrow, key, value)| Type::Map { arrow, key, value }),
            3 => (any::<bool>(), boxed).prop_map(|(unique, item)| Type::Optional { unique, item }),
            2 => (any::<bool>(), items(1..4)).prop_map(|(valueless, alternatives)| Type::Variant {
                valueless,
                alternatives,
            }),
        ]
    })
}

#[derive(Debug, Clone)]
struct Case {
    types: Vec<Type>,
    entries: u64,
    seed: u64,
    page_bytes: u64,
    cluster_bytes: u64,
    compression: Compression,
    checksums: bool,
    flush: bool,
}

fn compressions() -> impl Strategy<Value = Compression> {
    let codec = |algorithm| Compression::new(algorithm, 1).expect("level 1");
    let all = [Algorithm::Zstd, Algorithm::Lz4, Algorithm::Zlib, Algorithm::Lzma].map(codec);
    prop::sample::select([[Compression::NONE, Compression::DEFAULT].as_slice(), &all].concat())
}

fn case() -> impl Strategy<Value = Case> {
    let types = prop::collection::vec(any_type(), 1..4).prop_map(|mut types| {
        types.iter_mut().for_each(|item| item.give_names(false));
        types
    });
    let sizes = (
        prop::sample::select(vec![16u64, 17, 64, 1000, 1 << 16]),
        prop::sample::select(vec![1u64, 300, 5_000, 1 << 20]),
    );
    // Writers look at the first 256 entries before they judge the size of a cluster.
    let entries = prop_oneof![9 => 0u64..60, 1 => 200u64..700];
    let switches = (compressions(), any::<bool>(), any::<bool>());
    (types, entries, any::<u64>(), sizes, switches).prop_map(|(types, entries, seed, sizes, switches)| {
        let ((page_bytes, cluster_bytes), (compression, checksums, flush)) = (sizes, switches);
        Case { types, entries, seed, page_bytes, cluster_bytes, compression, checksums, flush }
    })
}

impl Case {
    fn options(&self) -> WriteOptions {
        WriteOptions::default()
            .with_compression(self.compression)
            .with_page_bytes(self.page_bytes)
            .with_cluster_bytes(self.cluster_bytes)
            .with_page_checksums(self.checksums)
            .with_description("what it is")
    }

    fn check(&self) {
        let mut random = Random::new(self.seed);
        let values: Vec<Vec<Value>> =
            self.types.iter().map(|item| (0..self.entries).map(|_| item.value(&mut random)).collect()).collect();
        let field = |(item, name): (&Type, &&str)| -> Field {
            let field = item.field(name);
            let described = field.metadata().clone().into_iter().chain([(metadata::DESCRIPTION.into(), "d".into())]);
            let described = described.collect();
            field.with_metadata(described)
        };
        let schema = ArrowSchema::new(self.types.iter().zip(&NAMES).map(field).collect::<Vec<_>>());
        let arrays = self.types.iter().zip(&values).map(|(item, values)| item.array(values)).collect();
        let whole = RecordBatch::try_new(Arc::new(schema), arrays).expect("a batch");
        // Slices have offsets into their arrays.
        let mut batches = Vec::new();
        let mut at = 0;
        while at < whole.num_rows() {
            let count = (1 + random.below(40) as usize).min(whole.num_rows() - at);
            batches.push(whole.slice(at, count));
            at += count;
        }
        let schema = Schema::from_arrow(&whole.schema()).expect("a schema");
        let file = memory::write(&schema, &batches, self.options(), self.flush).expect("a file");
        let ntuple = memory::ntuple(&file).expect("an ntuple");
        assert_eq!((ntuple.entries(), ntuple.description()), (self.entries, "what it is"));
        let all = self.same(&ntuple, &values);
        self.ways(&ntuple, &all, &mut random);
        self.ways(&memory::near_ntuple(&file).expect("an ntuple"), &all, &mut random);
        self.again(&ntuple, &all, &values);
    }

    /// The values and the types are those that were written.
    fn same(&self, ntuple: &Ntuple, values: &[Vec<Value>]) -> RecordBatch {
        let fields = &ntuple.schema().fields;
        assert_eq!(fields.len(), self.types.len());
        let all = ntuple.read_all().to_batch().expect("all data");
        assert_eq!(all.num_rows() as u64, self.entries);
        assert_eq!(all.schema(), ntuple.arrow_schema());
        for ((item, field), (values, column)) in self.types.iter().zip(fields).zip(values.iter().zip(all.columns())) {
            assert_eq!(field.description, "d");
            item.check(field);
            column.to_data().validate_full().expect("a valid array");
            for (i, value) in values.iter().enumerate() {
                assert_eq!(item.at(column, i), *value, "entry {i} of '{}' ({})", field.name, item.name());
            }
        }
        all
    }

    /// Ranges, batches, projections, single entries and cuts are parts of the whole.
    fn ways(&self, ntuple: &Ntuple, all: &RecordBatch, random: &mut Random) {
        assert_eq!(&ntuple.read_all().to_batch().expect("all data"), all);
        for _ in 0..4 {
            let start = random.below(self.entries + 1);
            let count = random.below(self.entries - start + 1);
            let range = ntuple.read_all().entries(start..start + count).to_batch().expect("a range");
            assert_eq!(range, all.slice(start as usize, count as usize), "entries {start}..{}", start + count);
        }
        let size = 1 + random.below(20);
        let mut at = 0;
        for batch in ntuple.read_all().batches(size).expect("batches") {
            let batch = batch.expect("a batch");
            assert!(batch.num_rows() as u64 == size || at as u64 + batch.num_rows() as u64 == self.entries);
            assert_eq!(batch, all.slice(at, batch.num_rows()));
            at += batch.num_rows();
        }
        assert_eq!(at as u64, self.entries);
        let chosen = random.below(self.types.len() as u64) as usize;
        let one = ntuple.read([NAMES[chosen]]).expect("a field").to_batch().expect("its data");
        assert_eq!((one.num_columns(), one.column(0)), (1, all.column(chosen)));
        let entries: Vec<u64> = (0..random.below(9).min(self.entries)).map(|_| random.below(self.entries)).collect();
        let places = UInt64Array::from(entries.clone());
        let taken = take_record_batch(all, &places).expect("single entries");
        assert_eq!(ntuple.read_all().take(&entries).expect("single entries"), taken);
        // Few runs of entries are read one by one, of many all is read.
        let (every, length) = (1 + random.below(200), 1 + random.below(5));
        let keep: BooleanArray = (0..self.entries).map(|entry| Some(entry % every < length)).collect();
        let kept = filter_record_batch(all, &keep).expect("what is kept");
        let next = AtomicUsize::new(0);
        let cut = move |batch: &RecordBatch| {
            let from = next.fetch_add(batch.num_rows(), Ordering::Relaxed);
            Ok(keep.slice(from, batch.num_rows()))
        };
        let read = ntuple.read_all().with_cut([NAMES[chosen]], cut).expect("a cut");
        let parts: Vec<_> = read.batches(7).expect("batches").map(|batch| batch.expect("a batch")).collect();
        assert_eq!(concat_batches(&all.schema(), &parts).expect("parts"), kept);
    }

    /// What was read can be written again, and copied with other options.
    fn again(&self, ntuple: &Ntuple, all: &RecordBatch, values: &[Vec<Value>]) {
        let schema = Schema::from_arrow(&all.schema()).expect("the schema that was read");
        let file = memory::write(&schema, std::slice::from_ref(all), self.options(), false).expect("a second file");
        assert_eq!(&memory::ntuple(&file).expect("it").read_all().to_batch().expect("its data"), all);
        for (compression, pages) in [
            (Compression::NONE, Pages::Encode),
            (Compression::DEFAULT, Pages::Encode),
            (Compression::NONE, Pages::Keep),
        ] {
            let options = WriteOptions::default().with_compression(compression).with_page_bytes(40);
            let copied = memory::ntuple(&copied(ntuple, options, pages)).expect("a copy");
            if pages == Pages::Keep {
                assert_eq!(copied.clusters(), ntuple.clusters());
            }
            assert_eq!(copied.description(), "what it is");
            self.same(&copied, values);
        }
    }
}

fn copied(ntuple: &Ntuple, options: WriteOptions, pages: Pages) -> Bytes {
    let target = MemoryFile::new();
    let file = FileWriter::create_in(Box::new(MemorySink::create(&target)), "copy.root").expect("a file");
    let mut go_on = |_| ControlFlow::Continue(());
    copy(ntuple.read_all(), &file, memory::NAME, options, pages, &mut go_on).expect("a copy");
    file.finish().expect("a file");
    target.bytes().expect("its bytes")
}

#[test]
fn write_then_read_is_the_identity() {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(CASES);
    let check = || {
        let cases = cases.div_ceil(THREADS);
        let config = Config { cases, failure_persistence: None, max_shrink_iters: 2000, ..Config::default() };
        let outcome = TestRunner::new(config).run(&case(), |case| {
            case.check();
            Ok(())
        });
        outcome.unwrap_or_else(|failure| panic!("{failure}"));
    };
    thread::scope(|scope| (0..THREADS).for_each(|_| drop(scope.spawn(check))));
    summary::note("roundtrip", &format!("{cases} generated ntuples written, read in every way, copied, and equal"));
}
