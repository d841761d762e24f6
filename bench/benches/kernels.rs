//! Every kernel on one page, in GB/s of decoded values, beside memcpy of the same bytes: `cargo bench -p tupelo-bench
//! --bench kernels -- [FILTER]`. On a machine that does other things, read the column `fastest`.

use std::fmt;
use std::hint::black_box;

use divan::Bencher;
use divan::counter::BytesCount;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tupelo_format::checksum::xxh3;
use tupelo_format::compression::{Compression, compress, decompress_into};
use tupelo_format::encoding::{self, ColumnType, Encoding};

/// Elements of a page. A power of two is the worst case for eight planes: they share the same sets of the cache.
const ELEMENTS: usize = 65_536;
/// Enough samples that a few of them were not disturbed.
const SAMPLES: u32 = 2000;
/// Seconds after which a slow codec has shown enough.
const MAX_SECONDS: f64 = 2.0;

fn main() {
    divan::main();
}

/// A column description that divan can name.
#[derive(Clone, Copy)]
struct Case(Encoding);

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.column_type().name())?;
        match self.0.column_type() {
            ColumnType::Real32Trunc | ColumnType::Real32Quant => write!(f, "_{}", self.0.bits()),
            _ => Ok(()),
        }
    }
}

fn cases(wanted: impl Fn(ColumnType) -> bool) -> Vec<Case> {
    let all = ColumnType::ALL.iter().filter(|column_type| wanted(**column_type));
    all.flat_map(|column_type| {
        let bits = match column_type {
            ColumnType::Real32Trunc => vec![10, 12, 16, 20, 24],
            ColumnType::Real32Quant => vec![7, 8, 12, 16, 20, 32],
            other => vec![*other.bits_range().start()],
        };
        bits.into_iter().map(|bits| Case(Encoding::new(*column_type, bits, Some((-8.0, 8.0))).unwrap()))
    })
    .collect()
}

fn fixed() -> Vec<Case> {
    // One of the four byte types is as good as the other.
    cases(|t| t.width_bytes().is_some_and(|width| width > 1 || t == ColumnType::Byte) && !t.is_real() && !t.is_index())
}

fn singles() -> Vec<Case> {
    cases(|t| t.is_real() && t.unsplit() != ColumnType::Real64)
}

fn doubles() -> Vec<Case> {
    cases(ColumnType::is_real)
}

fn indexes() -> Vec<Case> {
    cases(ColumnType::is_index)
}

/// Numbers around zero, all within eight, as momenta are.
fn reals() -> Vec<f64> {
    let mut random = StdRng::seed_from_u64(1);
    (0..ELEMENTS).map(|_| random.random_range(-1.0..1.0_f64).powi(3) * 8.0).collect()
}

/// Ends of collections of up to seven values.
fn ends() -> Vec<u64> {
    let mut random = StdRng::seed_from_u64(2);
    let mut end = 0;
    std::iter::repeat_with(|| {
        end += random.random_range(0..8_u64);
        end
    })
    .take(ELEMENTS)
    .collect()
}

fn bytes(count: usize) -> Vec<u8> {
    let mut random = StdRng::seed_from_u64(3);
    (0..count).map(|_| random.random()).collect()
}

/// The page that `encode` makes, without what it needed before.
fn page(encode: impl FnOnce(&mut Vec<u8>) -> tupelo_format::Result<()>) -> Vec<u8> {
    let mut out = Vec::new();
    encode(&mut out).unwrap();
    out
}

/// Times `encode` into a buffer that is as large as it needs to be, as a writer's is from the second page on.
fn time_encode(
    bencher: Bencher<'_, '_>,
    value_bytes: usize,
    encode: impl Fn(&mut Vec<u8>) -> tupelo_format::Result<()>,
) {
    let mut out = page(&encode);
    bencher.counter(BytesCount::new(value_bytes)).bench_local(|| {
        out.clear();
        encode(black_box(&mut out)).unwrap();
    });
}

#[divan::bench(args = [1, 2, 4, 8, 12], sample_count = SAMPLES)]
fn memcpy(bencher: Bencher<'_, '_>, width: usize) {
    let (from, mut to) = (bytes(width * ELEMENTS), vec![0; width * ELEMENTS]);
    bencher.counter(BytesCount::new(from.len())).bench_local(|| black_box(&mut to).copy_from_slice(black_box(&from)));
}

#[divan::bench_group(sample_count = SAMPLES)]
mod decode {
    use super::*;

    #[divan::bench(args = super::fixed())]
    fn fixed(bencher: Bencher<'_, '_>, case: Case) {
        let packed = bytes(ELEMENTS * usize::from(case.0.bits()) / 8);
        let mut out = vec![0; packed.len()];
        bencher.counter(BytesCount::new(out.len())).bench_local(|| {
            encoding::decode_fixed(&case.0, black_box(&packed), black_box(&mut out)).unwrap();
        });
    }

    #[divan::bench(args = singles())]
    fn f32(bencher: Bencher<'_, '_>, case: Case) {
        let packed = page(|out| encoding::encode_f64(&case.0, &reals(), out));
        let mut out = vec![0.0; ELEMENTS];
        bencher.counter(BytesCount::new(4 * ELEMENTS)).bench_local(|| {
            encoding::decode_f32(&case.0, black_box(&packed), black_box(&mut out)).unwrap();
        });
    }

    #[divan::bench(args = doubles())]
    fn f64(bencher: Bencher<'_, '_>, case: Case) {
        let packed = page(|out| encoding::encode_f64(&case.0, &reals(), out));
        let mut out = vec![0.0; ELEMENTS];
        bencher.counter(BytesCount::new(8 * ELEMENTS)).bench_local(|| {
            encoding::decode_f64(&case.0, black_box(&packed), black_box(&mut out)).unwrap();
        });
    }

    #[divan::bench(args = indexes())]
    fn index(bencher: Bencher<'_, '_>, case: Case) {
        let packed = page(|out| encoding::encode_index(&case.0, &ends(), out));
        let mut out = vec![0; ELEMENTS];
        bencher.counter(BytesCount::new(8 * ELEMENTS)).bench_local(|| {
            encoding::decode_index(&case.0, black_box(&packed), black_box(&mut out)).unwrap();
        });
    }

    /// From the given bit on, so many bytes that one can compare with a memcpy of width 1.
    #[divan::bench(args = [0, 3])]
    fn bits(bencher: Bencher<'_, '_>, skip: usize) {
        let (packed, mut out) = (bytes(ELEMENTS + 1), vec![0; ELEMENTS]);
        bencher.counter(BytesCount::new(out.len())).bench_local(|| {
            encoding::decode_bits(black_box(&packed), skip, 8 * ELEMENTS, black_box(&mut out), 0).unwrap();
        });
    }

    #[divan::bench]
    fn switch(bencher: Bencher<'_, '_>) {
        let packed = bytes(12 * ELEMENTS);
        let (mut indexes, mut tags) = (vec![0; ELEMENTS], vec![0; ELEMENTS]);
        bencher.counter(BytesCount::new(packed.len())).bench_local(|| {
            encoding::decode_switch(black_box(&packed), black_box(&mut indexes), black_box(&mut tags)).unwrap();
        });
    }
}

#[divan::bench_group(sample_count = SAMPLES)]
mod encode {
    use super::*;

    #[divan::bench(args = super::fixed())]
    fn fixed(bencher: Bencher<'_, '_>, case: Case) {
        let values = bytes(ELEMENTS * usize::from(case.0.bits()) / 8);
        time_encode(bencher, values.len(), |out| encoding::encode_fixed(&case.0, black_box(&values), out));
    }

    #[divan::bench(args = singles())]
    fn f32(bencher: Bencher<'_, '_>, case: Case) {
        let values: Vec<f32> = reals().into_iter().map(|value| value as f32).collect();
        time_encode(bencher, 4 * ELEMENTS, |out| encoding::encode_f32(&case.0, black_box(&values), out));
    }

    #[divan::bench(args = doubles())]
    fn f64(bencher: Bencher<'_, '_>, case: Case) {
        let values = reals();
        time_encode(bencher, 8 * ELEMENTS, |out| encoding::encode_f64(&case.0, black_box(&values), out));
    }

    #[divan::bench(args = indexes())]
    fn index(bencher: Bencher<'_, '_>, case: Case) {
        let values = ends();
        time_encode(bencher, 8 * ELEMENTS, |out| encoding::encode_index(&case.0, black_box(&values), out));
    }

    #[divan::bench(args = [0, 3])]
    fn bits(bencher: Bencher<'_, '_>, skip: usize) {
        let values = bytes(ELEMENTS + 1);
        time_encode(bencher, ELEMENTS, |out| encoding::encode_bits(black_box(&values), skip, 8 * ELEMENTS, out));
    }

    #[divan::bench]
    fn switch(bencher: Bencher<'_, '_>) {
        let (indexes, tags) = (ends(), vec![1; ELEMENTS]);
        time_encode(bencher, 12 * ELEMENTS, |out| encoding::encode_switch(black_box(&indexes), black_box(&tags), out));
    }
}

#[divan::bench_group(sample_count = SAMPLES, max_time = MAX_SECONDS)]
mod bytes_of_a_page {
    use super::*;

    /// A page of split single-precision numbers with 16 of 24 digits, and of split indexes: what codecs shrink.
    #[derive(Clone, Copy)]
    struct Packed(Compression, bool);

    impl fmt::Display for Packed {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            let values = if self.1 { "reals" } else { "indexes" };
            write!(f, "{}_{values}", self.0)
        }
    }

    impl Packed {
        fn page(self) -> Vec<u8> {
            let of = |column_type| Encoding::of(column_type).unwrap();
            if self.1 {
                let cut = |value: f64| f32::from_bits((value as f32).to_bits() & !0xff);
                let values: Vec<f32> = reals().into_iter().map(cut).collect();
                page(|out| encoding::encode_f32(&of(ColumnType::SplitReal32), &values, out))
            } else {
                page(|out| encoding::encode_index(&of(ColumnType::SplitIndex64), &ends(), out))
            }
        }
    }

    fn codecs() -> Vec<Packed> {
        let settings = ["zstd:5", "lz4:4", "lz4:1", "zlib:1", "lzma:7", "lzma:1"];
        let parsed = settings.into_iter().map(|setting| setting.parse().unwrap());
        parsed.flat_map(|compression| [Packed(compression, true), Packed(compression, false)]).collect()
    }

    #[divan::bench(args = [1000, 65_536, 262_144])]
    fn xxhash3(bencher: Bencher<'_, '_>, length: usize) {
        let bytes = bytes(length);
        bencher.counter(BytesCount::new(length)).bench_local(|| xxh3(black_box(&bytes)));
    }

    #[divan::bench(args = codecs())]
    fn decompress(bencher: Bencher<'_, '_>, packed: Packed) {
        let values = packed.page();
        let stored = page(|out| compress(packed.0, &values, out));
        let mut out = vec![0; values.len()];
        bencher.counter(BytesCount::new(values.len())).bench_local(|| {
            decompress_into(black_box(&stored), black_box(&mut out)).unwrap();
        });
        assert!(out == values);
    }

    #[divan::bench(args = codecs())]
    fn shrink(bencher: Bencher<'_, '_>, packed: Packed) {
        let values = packed.page();
        time_encode(bencher, values.len(), |out| compress(packed.0, black_box(&values), out));
    }
}
