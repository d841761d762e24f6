//! Random damage for a while (`FUZZ_SECONDS`, 20 unless told otherwise): whatever the bytes, there are data or an error,
//! soon, in bounded memory. What cargo-fuzz does in `fuzz/`, without coverage and on a stable compiler.
//!
//! Cases are numbered: `FUZZ_SEED` chooses the series, and `FUZZ_CASE` runs one case of it alone.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use conformance::bad::{self, Base};
use conformance::mutate::{self, Random};
use conformance::{outcome, summary, updating};
use peak_alloc::PeakAlloc;
use tupelo_storage::xrootd::message::parse_listing;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// Seconds of work unless `FUZZ_SECONDS` says otherwise, and at most.
const SECONDS: (u64, u64) = (20, 60);
/// No case may take longer.
const MOST_TIME: Duration = Duration::from_secs(2);
/// What a case may ask for, in bytes, and what it may have at once.
const BUDGET_BYTES: u64 = 64 << 20;
const MOST_BYTES: usize = BUDGET_BYTES as usize + (64 << 20);
/// Larger real files would leave time for few cases.
const MAX_SEED_BYTES: usize = 32 << 10;

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is '{text}', not a number")))
}

/// Memory is that of the process: only one test measures it at a time.
static MEASURING: Mutex<()> = Mutex::new(());

/// Files to damage: samples, files that are damaged already, real ones.
fn seeds() -> (Vec<Bytes>, usize) {
    let mut seeds: Vec<Bytes> = Vec::new();
    // Whole files are the best to damage: they count as much as all others.
    for _ in 0..60 {
        seeds.extend(Base::ALL.map(Base::bytes));
    }
    seeds.extend(bad::all().iter().map(|bad| bad.bytes()));
    let real = summary::real_files().into_iter().filter_map(|path| std::fs::read(path).ok());
    let real: Vec<Bytes> = real.filter(|bytes| bytes.len() <= MAX_SEED_BYTES).map(Bytes::from).collect();
    (0..10).for_each(|_| seeds.extend(real.iter().cloned()));
    (seeds, real.len())
}

#[test]
fn damage_is_an_error_or_data_soon_in_bounded_memory() {
    let seconds = number("FUZZ_SECONDS").unwrap_or(SECONDS.0).min(SECONDS.1);
    let series = number("FUZZ_SEED").unwrap_or(1);
    let (seeds, real) = seeds();
    let _alone = MEASURING.lock().unwrap_or_else(PoisonError::into_inner);
    let (begin, mut cases, mut read) = (Instant::now(), 0u64, 0u64);
    let (first, only) = match number("FUZZ_CASE") {
        Some(case) => (case, true),
        None => (0, false),
    };
    for case in first.. {
        if begin.elapsed() >= Duration::from_secs(seconds) || only && case > first {
            break;
        }
        let mut random = Random::new(series.wrapping_mul(1 << 32).wrapping_add(case));
        let file = mutate::file(random.choose(&seeds).clone(), &mut random);
        let page_checksums = random.below(2) == 0;
        let before = ALLOCATOR.current_usage();
        ALLOCATOR.reset_peak_usage();
        let started = Instant::now();
        let outcome = catch_unwind(AssertUnwindSafe(|| outcome::handle(&file, page_checksums, BUDGET_BYTES).is_ok()));
        let (time, peak) = (started.elapsed(), ALLOCATOR.peak_usage().saturating_sub(before));
        let what = format!("reproduce with FUZZ_SEED={series} FUZZ_CASE={case} (a file of {} bytes)", file.len());
        assert!(outcome.is_ok(), "panic: {what}");
        assert!(time < MOST_TIME, "{time:?}: {what}");
        assert!(peak < MOST_BYTES, "{peak} bytes of memory: {what}");
        cases += 1;
        read += u64::from(outcome.unwrap_or(false));
    }
    let line = format!("{cases} damaged files in {seconds} s, {read} of them readable; seeds with {real} real files");
    summary::note("fuzz_smoke", &line);
}

/// Trees and other objects: what the target `trees` in `fuzz/` does.
#[test]
fn damaged_trees_are_an_error_or_data_soon_in_bounded_memory() {
    let seconds = number("FUZZ_SECONDS").unwrap_or(SECONDS.0 / 2).min(SECONDS.1);
    let series = number("FUZZ_SEED").unwrap_or(1);
    let mut seeds = bad::trees();
    // Trees with valid lengths: nested names, references, counters; objects and histograms that grow.
    let hostile = ["tree-", "object-", "histogram-"].into_iter().flat_map(summary::hostile_files);
    let hostile: Vec<Bytes> = hostile.filter_map(|path| std::fs::read(path).ok()).map(Bytes::from).collect();
    (0..10).for_each(|_| seeds.extend(hostile.iter().filter(|bytes| bytes.len() <= MAX_SEED_BYTES).cloned()));
    let _alone = MEASURING.lock().unwrap_or_else(PoisonError::into_inner);
    let (begin, first) = (Instant::now(), number("FUZZ_CASE"));
    let (mut cases, mut read) = (0u64, 0u64);
    for case in first.unwrap_or(0).. {
        if begin.elapsed() >= Duration::from_secs(seconds) || first.is_some_and(|first| case > first) {
            break;
        }
        let mut random = Random::new(series.wrapping_mul(1 << 32).wrapping_add(case));
        let mut file = random.choose(&seeds).to_vec();
        // Half of them with right lengths, so that what is within is read.
        let damage: fn(&mut Vec<u8>, &mut Random) = match random.below(2) {
            0 => mutate::bytes,
            _ => |file, random| mutate::values(file, random),
        };
        damage(&mut file, &mut random);
        let what = format!("reproduce with FUZZ_SEED={series} FUZZ_CASE={case} (a file of {} bytes)", file.len());
        let file = Bytes::from(file);
        let before = ALLOCATOR.current_usage();
        ALLOCATOR.reset_peak_usage();
        let started = Instant::now();
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let objects = outcome::handle_objects(&file, BUDGET_BYTES).unwrap_or(0);
            objects + outcome::handle_trees(&file, BUDGET_BYTES).unwrap_or(0)
        }));
        let (time, peak) = (started.elapsed(), ALLOCATOR.peak_usage().saturating_sub(before));
        assert!(outcome.is_ok(), "panic: {what}");
        assert!(time < MOST_TIME, "{time:?}: {what}");
        assert!(peak < MOST_BYTES, "{peak} bytes of memory: {what}");
        cases += 1;
        read += u64::from(outcome.unwrap_or(0) > 0);
    }
    summary::note(
        "fuzz_smoke_trees",
        &format!("{cases} damaged files with trees and objects in {seconds} s, something in {read} of them readable"),
    );
}

/// Adding to damaged files: what the target `update` in `fuzz/` does.
#[test]
fn damaged_files_are_added_to_without_loss_or_refused() {
    let seconds = number("FUZZ_SECONDS").unwrap_or(SECONDS.0 / 2).min(SECONDS.1);
    let series = number("FUZZ_SEED").unwrap_or(1);
    let (seeds, _) = seeds();
    let (begin, first) = (Instant::now(), number("FUZZ_CASE"));
    let (mut kept, mut refused) = (0u64, 0u64);
    for case in first.unwrap_or(0).. {
        if begin.elapsed() >= Duration::from_secs(seconds) || first.is_some_and(|first| case > first) {
            break;
        }
        let mut random = Random::new(series.wrapping_mul(1 << 32).wrapping_add(case));
        let mut file = random.choose(&seeds).to_vec();
        mutate::bytes(&mut file, &mut random);
        let outcome = catch_unwind(AssertUnwindSafe(|| updating::check(&file.into(), BUDGET_BYTES)));
        match outcome {
            Ok(updating::Updated::Kept) => kept += 1,
            Ok(updating::Updated::Refused(_)) => refused += 1,
            Ok(updating::Updated::Unreadable) => {}
            Err(_) => panic!("reproduce with FUZZ_SEED={series} FUZZ_CASE={case}"),
        }
    }
    summary::note("fuzz_smoke_update", &format!("{kept} damaged files added to, {refused} refused"));
}

/// Listings of directories of an XRootD server: names that lead elsewhere, other numbers, parts that are missing.
#[test]
fn damaged_listings_of_directories_are_an_error_or_names() {
    let seeds = [
        ".\n0 0 0 0\nevents.root\n140 2048 48 1700000000\nold\n141 4096 19 1700000001\n",
        "events.root\nold\nother.root\n",
    ];
    let (series, first) = (number("FUZZ_SEED").unwrap_or(1), number("FUZZ_CASE"));
    for case in first.unwrap_or(0)..first.map_or(100_000, |first| first + 1) {
        let mut random = Random::new(series.wrapping_mul(1 << 32).wrapping_add(case));
        let mut listing = random.choose(&seeds).as_bytes().to_vec();
        for piece in ["../", "\n", ".\n", " -1 ", "99999999999999999999", "\u{1b}[2J"] {
            if random.below(4) == 0 {
                let at = random.below(listing.len() as u64 + 1) as usize;
                listing.splice(at..at, piece.bytes());
            }
        }
        mutate::bytes(&mut listing, &mut random);
        let parsed = catch_unwind(|| parse_listing(&listing));
        let parsed = parsed.unwrap_or_else(|_| panic!("reproduce with FUZZ_SEED={series} FUZZ_CASE={case}"));
        for entry in parsed.unwrap_or_default() {
            assert!(!entry.name.contains('/') && entry.name != "..", "{entry:?}");
        }
    }
}
