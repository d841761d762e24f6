//! Any schema and any data, written, read and damaged. Whole files read as what was written; rot is an error or changes
//! nothing; files with something wrong behind right checksums are an error or other data.
#![no_main]

#[path = "../../conformance/tests/suite/roundtrip/types.rs"]
#[expect(dead_code, reason = "the property test looks at more")]
mod types;

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::Schema as ArrowSchema;
use conformance::mutate::{self, Random};
use conformance::{memory, outcome};
use libfuzzer_sys::{Corpus, fuzz_target};
use tupelo::schema::Schema;
use tupelo::{Algorithm, Compression, WriteOptions};
use types::{Lossy, Number, Type, Value};

/// Types nest no deeper.
const MAX_DEPTH: u64 = 4;
const NAMES: [&str; 4] = ["a", "µ", "b:c", "_0"];

/// Numbers that are the input's bytes while there are any, so that a changed byte changes one decision.
struct Decisions<'a> {
    bytes: std::slice::Iter<'a, u8>,
}

impl Decisions<'_> {
    fn below(&mut self, end: u64) -> u64 {
        u64::from(self.bytes.next().copied().unwrap_or(0)) % end
    }

    fn choose<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }
}

fn any_type(decide: &mut Decisions<'_>, depth: u64) -> Type {
    let items = |decide: &mut Decisions<'_>, least: u64, most: u64| -> Vec<Type> {
        (0..least + decide.below(most - least + 1)).map(|_| any_type(decide, depth + 1)).collect()
    };
    let kinds = if depth < MAX_DEPTH { 13 } else { 5 };
    match decide.below(kinds) {
        0 | 1 => Type::Number(decide.choose(&Number::ALL)),
        2 => Type::Lossy(decide.choose(&[Lossy::Half, Lossy::Truncated, Lossy::Quantised, Lossy::Double32])),
        3 => Type::String { index32: decide.below(2) == 1 },
        4 => match decide.below(2) {
            0 => Type::Bitset(1 + decide.below(70)),
            _ => Type::Wrapper {
                atomic: decide.below(2) == 1,
                item: decide.choose(&[Number::I8, Number::U16, Number::I32, Number::U64]),
            },
        },
        5 | 6 => {
            let set = decide.below(4) == 0;
            let large = set || decide.below(2) == 0;
            Type::List { large, set, item: Box::new(any_type(decide, depth + 1)) }
        }
        7 => Type::Array(1 + decide.below(4), Box::new(any_type(decide, depth + 1))),
        8 => {
            let name = (decide.below(2) == 1).then(|| "My::Class".to_owned());
            Type::Struct { name, members: items(decide, 0, 3) }
        }
        9 => Type::Tuple(items(decide, 2, 3)),
        10 => {
            let key = match decide.below(2) {
                0 => Type::Number(Number::I32),
                _ => Type::String { index32: false },
            };
            let (arrow, value) = (decide.below(2) == 1, Box::new(any_type(decide, depth + 1)));
            Type::Map { arrow, key: Box::new(key), value }
        }
        11 => Type::Optional { unique: decide.below(2) == 1, item: Box::new(any_type(decide, depth + 1)) },
        _ => Type::Variant { valueless: decide.below(2) == 1, alternatives: items(decide, 1, 3) },
    }
}

fuzz_target!(|bytes: &[u8]| -> Corpus {
    let Some((seed, rest)) = bytes.split_first_chunk::<8>() else { return Corpus::Reject };
    let mut decide = Decisions { bytes: rest.iter() };
    let mut random: Random = tupelo_fuzz::random(seed);
    let mut types: Vec<Type> = (0..1 + decide.below(3)).map(|_| any_type(&mut decide, 0)).collect();
    types.iter_mut().for_each(|item| item.give_names(false));
    let entries = decide.below(60);
    let codecs = [Algorithm::Zstd, Algorithm::Lz4, Algorithm::Zlib, Algorithm::Lzma];
    let compression = match decide.below(5) {
        0 => Compression::NONE,
        codec => Compression::new(codecs[codec as usize - 1], 1).expect("level 1"),
    };
    let checksums = decide.below(4) > 0;
    let options = WriteOptions::default()
        .with_compression(compression)
        .with_page_bytes(decide.choose(&[16, 64, 1000]))
        .with_cluster_bytes(decide.choose(&[300, 5000]))
        .with_page_checksums(checksums);

    let values: Vec<Vec<Value>> =
        types.iter().map(|item| (0..entries).map(|_| item.value(&mut random)).collect()).collect();
    let fields: Vec<_> = types.iter().zip(NAMES).map(|(item, name)| item.field(name)).collect();
    let arrays = types.iter().zip(&values).map(|(item, values)| item.array(values)).collect();
    let batch = RecordBatch::try_new(Arc::new(ArrowSchema::new(fields)), arrays).expect("a batch");
    let schema = Schema::from_arrow(&batch.schema()).expect("a schema");
    let half = (entries / 2) as usize;
    let batches = [batch.slice(0, half), batch.slice(half, entries as usize - half)];
    let file = memory::write(&schema, &batches, options, decide.below(2) == 1).expect("a file");

    let whole = outcome::handle(&file, true, tupelo_fuzz::BUDGET_BYTES).expect("a whole file");
    for ((item, values), column) in types.iter().zip(&values).zip(whole[0].batch.columns()) {
        for (entry, value) in values.iter().enumerate() {
            assert_eq!(item.at(column, entry), *value, "entry {entry} of {}", item.name());
        }
    }
    if checksums {
        let mut rotten = file.to_vec();
        let bit = random.below(rotten.len() as u64 * 8) as usize;
        rotten[bit / 8] ^= 1 << (bit % 8);
        if let Ok(data) = outcome::handle(&rotten.into(), true, tupelo_fuzz::BUDGET_BYTES) {
            // A name in a directory has no checksum: the ntuple may be gone, but not changed.
            assert!(data.iter().all(|data| data.batch.columns() == whole[0].batch.columns()), "bit {bit}");
        }
    }
    let changed = mutate::file(file, &mut random);
    let _read = outcome::handle(&changed, true, tupelo_fuzz::BUDGET_BYTES);
    Corpus::Keep
});
