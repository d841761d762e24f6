//! How much memory writing many columns and reading hostile files takes at most, by an allocator that counts.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::{fmt, fs};

use arrow_array::{ArrayRef, Float32Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema as ArrowSchema};
use bytes::Bytes;
use conformance::mutate::Random;
use conformance::{bad, memory, outcome, samples, summary};
use peak_alloc::PeakAlloc;
use tupelo::reader::MAX_BUDGET_EXPANSION;
use tupelo::schema::Schema;
use tupelo::writer::{PENDING_BYTES, WRITE_BYTES};
use tupelo::{FileWriter, StreamerInfos, WriteOptions};
use tupelo_format::locator::Locator;
use tupelo_storage::ByteSink;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// The allocator counts for all threads: one test at a time.
static ALONE: Mutex<()> = Mutex::new(());

const MIB: usize = 1 << 20;

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The most bytes that `work` had at a time, beyond those before.
fn peak<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    let done = work();
    (done, ALLOCATOR.peak_usage().saturating_sub(before))
}

/// Takes everything and keeps nothing.
#[derive(Debug, Default)]
struct Nowhere {
    position: u64,
}

impl fmt::Display for Nowhere {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("test:nowhere")
    }
}

impl ByteSink for Nowhere {
    fn position(&self) -> u64 {
        self.position
    }

    fn append(&mut self, bytes: &[u8]) -> tupelo_storage::Result<()> {
        self.position += bytes.len() as u64;
        Ok(())
    }

    fn patch(&mut self, _: u64, _: &[u8]) -> tupelo_storage::Result<()> {
        Ok(())
    }

    fn commit(self: Box<Self>) -> tupelo_storage::Result<()> {
        Ok(())
    }

    fn checkpoint(&mut self) -> tupelo_storage::Result<()> {
        Ok(())
    }

    fn abort(self: Box<Self>) -> tupelo_storage::Result<Option<String>> {
        Ok(None)
    }
}

/// A batch of random floats.
fn batch(columns: usize, entries: usize, random: &mut Random) -> RecordBatch {
    let fields: Vec<_> = (0..columns).map(|i| Field::new(format!("c{i}"), DataType::Float32, false)).collect();
    let column =
        |_| -> ArrayRef { Arc::new((0..entries).map(|_| (random.next() >> 40) as f32).collect::<Float32Array>()) };
    RecordBatch::try_new(Arc::new(ArrowSchema::new(fields)), (0..columns).map(column).collect()).expect("a batch")
}

/// Writes random batches; gives the number of clusters and the peak of memory, one batch included.
fn write(columns: usize, entries: usize, times: usize, cluster_bytes: u64) -> (u64, usize) {
    let mut random = Random::new(1);
    let schema = Schema::from_arrow(&batch(columns, 0, &mut random).schema()).expect("a schema");
    let (clusters, bytes) = peak(|| {
        let file = FileWriter::create_in(Box::new(Nowhere::default()), "nowhere.root").expect("a file");
        let options = WriteOptions::default().with_cluster_bytes(cluster_bytes);
        let mut ntuple = file.ntuple("n", &schema, options).expect("an ntuple");
        for _ in 0..times {
            ntuple.write(&batch(columns, entries, &mut random)).expect("a batch is written");
        }
        let written = ntuple.finish().expect("an ntuple");
        file.finish().expect("a file");
        written.clusters
    });
    (clusters, bytes)
}

/// Sealed pages of one cluster, values that wait for their page within the budget, and what the columns need to be
/// there at all: no more, however many columns there are.
#[test]
fn ten_thousand_columns_are_written_in_bounded_memory() {
    let _alone = alone();
    const COLUMNS: usize = 10_000;
    const CLUSTER_BYTES: usize = 16 * MIB;
    /// Records of the schema and lists of pages, for each column.
    const COLUMN_BYTES: usize = 5 * 1024;
    let (clusters, bytes) = write(COLUMNS, 100, 20, CLUSTER_BYTES as u64);
    assert!(clusters > 2, "{clusters} clusters");
    let most = PENDING_BYTES as usize + CLUSTER_BYTES + COLUMNS * COLUMN_BYTES + 16 * MIB;
    assert!(bytes < most, "{} MiB, {} MiB are allowed", bytes / MIB, most / MIB);
    let line = format!(
        "{COLUMNS} columns of {} MiB written with at most {} MiB of memory ({} allowed)",
        COLUMNS * 100 * 20 * 4 / MIB,
        bytes / MIB,
        most / MIB
    );
    summary::note("memory", &line);
}

/// Pending values alone would be far above the budget: a mebibyte a column.
#[test]
fn pending_values_stay_within_their_budget() {
    let _alone = alone();
    let (_, bytes) = write(1000, 2500, 16, 64 << 20);
    // The sealed pages of a cluster, the values before they are written, and what columns need.
    let most = PENDING_BYTES as usize + (2 * 10 + 24) * MIB;
    println!("{} MiB", bytes / MIB);
    assert!(bytes < most, "{} MiB, {} MiB are allowed", bytes / MIB, most / MIB);
}

/// A cluster of 160 MiB was all in memory before its first byte was written.
#[test]
fn clusters_do_not_wait_in_memory() {
    let _alone = alone();
    let (clusters, bytes) = write(10, 1 << 17, 32, 256 << 20);
    assert_eq!(clusters, 1);
    // For each column a page that is filled and one that is sealed, and two batches: one is made, one is written.
    let most = WRITE_BYTES as usize + 2 * 10 * MIB + 2 * 5 * MIB;
    assert!(bytes < most, "{} MiB, {} MiB are allowed", bytes / MIB, most / MIB);
}

/// What a file of a few kilobytes may make its reader take: what zstd can really hold in them, and something to start.
const SMALL_FILE: usize = 80 * MIB;

#[test]
fn hostile_numbers_allocate_nothing() {
    let _alone = alone();
    let mut largest = (0, "");
    for bad in bad::all() {
        let file = bad.bytes();
        let (_, bytes) = peak(|| outcome::read(&file, bad.name, true));
        largest = largest.max((bytes, bad.name));
        assert!(bytes < SMALL_FILE, "{}: {} MiB", bad.name, bytes / MIB);
    }
    println!("the most was taken by {}: {} KiB", largest.1, largest.0 >> 10);
}

/// Trees, histograms and other objects of a few kilobytes: names, members of members and lists that are shared count when
/// they are copied.
#[test]
fn trees_and_objects_stay_within_their_budget() {
    const BUDGET: usize = 64 * MIB;
    let _alone = alone();
    let mut files = 0;
    for path in summary::hostile_files("") {
        let file = Bytes::from(fs::read(&path).expect("a file"));
        let (_, bytes) = peak(|| {
            let _trees = outcome::handle_trees(&file, BUDGET as u64);
            outcome::handle_objects(&file, BUDGET as u64)
        });
        // Two readers at once, each with values for its stored bytes.
        let most = 2 * BUDGET + 2 * file.len() * MAX_BUDGET_EXPANSION as usize + SMALL_FILE;
        assert!(bytes < most, "{}: {} MiB", path.display(), bytes / MIB);
        files += 1;
    }
    summary::note("hostile-trees", &format!("{files} hostile files stay within their memory"));
}

fn read(file: &Bytes) -> (String, usize) {
    let (read, bytes) = peak(|| outcome::read(file, "hostile", true));
    (read.err().map_or_else(String::new, |error| error.to_string()), bytes)
}

/// A page list that says that a thousand pages of half a gibibyte each lie in the same few bytes.
#[test]
fn a_hostile_page_list_allocates_nothing() {
    let _alone = alone();
    let mut model = samples::flat();
    let entries = 1000 << 27;
    model.groups[0].clusters.truncate(1);
    model.groups[0].clusters[0].summary.entries = entries;
    for column in &mut model.groups[0].clusters[0].columns {
        let mut page = column.pages[0].clone();
        page.elements = 1 << 27;
        page.locator = Some(Locator::File { offset: 300, bytes: 16 });
        column.pages = vec![page; 1000];
    }
    let (error, bytes) = read(&model.build().expect("a file"));
    assert!(error.ends_with("16 stored bytes cannot hold a page of 536870912"), "{error}");
    assert!(bytes < MIB, "{bytes} bytes");
}

/// Entries and items that only a number claims.
#[test]
fn entries_that_are_not_there_allocate_nothing() {
    let _alone = alone();
    for power in [20, 30, 40, 50] {
        let mut model = samples::flat();
        model.groups[0].clusters[1].summary.entries = 1 << power;
        let (error, bytes) = read(&model.build().expect("a file"));
        assert!(
            error.ends_with(&format!("column 0 has 4 elements in cluster 1, expected {}", 1u64 << power)),
            "{error}"
        );
        assert!(bytes < MIB, "{bytes} bytes");
        let mut model = samples::nested();
        let last = model.page(0, 0, 0).stored.len() - 8;
        model.page(0, 0, 0).stored[last..].copy_from_slice(&(1u64 << power).to_le_bytes());
        let (error, bytes) = read(&model.build().expect("a file"));
        assert!(
            error.ends_with(&format!("column 1 has 7 elements in cluster 0, expected {}", 1u64 << power)),
            "{error}"
        );
        assert!(bytes < MIB, "{bytes} bytes");
    }
}

/// Reading takes what is read, about twice: the pages as they are stored and the values.
#[test]
fn reading_takes_about_twice_the_data() {
    let _alone = alone();
    let batch = batch(10, 500_000, &mut Random::new(1));
    let schema = Schema::from_arrow(&batch.schema()).expect("a schema");
    let file = memory::write(&schema, &[batch], WriteOptions::default(), false).expect("a file");
    let ntuple = memory::ntuple(&file).expect("an ntuple");
    let (data, bytes) = peak(|| ntuple.read_all().to_batch().expect("all data"));
    let values = data.get_array_memory_size();
    assert!(bytes < 2 * values + 4 * MIB, "{} MiB for {} MiB of values", bytes / MIB, values / MIB);
}

/// What reading layouts of classes may take, in bytes for each byte of a list, and to start with.
const LAYOUT_FACTOR: usize = 64;
const LAYOUT_START: usize = 4096;

/// Lists of layouts, real ones where they are at hand, whole, cut and damaged.
#[test]
fn streamer_info_takes_little_memory() {
    let _alone = alone();
    let mut lists = vec![StreamerInfos::anchor().write(64)];
    for path in summary::real_files() {
        let file = tupelo::open(&path.to_string_lossy()).open_file().expect("a ROOT file");
        lists.push(file.streamer_infos().expect("its layouts").write(64));
    }
    let mut random = Random::new(5);
    let mut largest = 0.0_f64;
    for list in &lists {
        for turn in 0..200 {
            let mut damaged = list.clone();
            if turn > 0 {
                damaged.truncate(1 + random.below(list.len() as u64) as usize);
                for _ in 0..random.below(4) {
                    let at = random.below(damaged.len() as u64) as usize;
                    damaged[at] = *random.choose(&[0, 0x40, 0x7f, 0xff]);
                }
            }
            let (_, bytes) = peak(|| StreamerInfos::read(&damaged, 64));
            largest = largest.max(bytes as f64 / damaged.len() as f64);
            let most = LAYOUT_START + LAYOUT_FACTOR * damaged.len();
            assert!(bytes <= most, "{bytes} bytes for a list of {}", damaged.len());
        }
    }
    println!("{} lists took at most {largest:.1} times their bytes", lists.len());
}
