//! Limits the memory that a file can make its reader use.
//!
//! A file's metadata and what one reading request has in flight are counted before they are allocated. Values that the
//! caller asked for may be more than the budget, where the file has stored enough bytes for them.

mod kept;
mod recent;

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use tupelo_core::error::Remedy;

pub(crate) use self::kept::KeptPages;
pub use self::kept::{Keep, RequestPages, UsedPart};
pub(super) use self::recent::Recent;
use super::{Blob, BlobRange};
use crate::{Error, Result};

/// Default memory budget of an open file: 1 GiB.
pub const DEFAULT_MEMORY_BUDGET_BYTES: u64 = 1 << 30;
/// Values may exceed the memory budget if they take at most this multiple of the stored bytes that they come from.
pub const MAX_BUDGET_EXPANSION: u64 = 1024;

/// Sealed pages that are fetched together, in bytes, if the memory budget allows it.
pub const FETCH_BYTES: u64 = 16 << 20;
/// Number of page batches fetched at the same time.
pub(crate) const CONCURRENT_FETCHES: usize = 8;

/// The memory that one open file may take; clones count together.
#[derive(Debug, Clone)]
pub struct MemoryBudget {
    limit_bytes: u64,
    used_bytes: Arc<AtomicU64>,
}

/// Memory that is released on drop.
#[derive(Debug)]
pub struct Reservation {
    used_bytes: Arc<AtomicU64>,
    bytes: u64,
}

impl MemoryBudget {
    /// A budget of so many bytes.
    pub(crate) fn new(limit_bytes: u64) -> Self {
        Self { limit_bytes, used_bytes: Arc::default() }
    }

    /// The limit in bytes.
    pub fn limit_bytes(&self) -> u64 {
        self.limit_bytes
    }

    /// Bytes that are not reserved.
    pub fn left(&self) -> u64 {
        self.limit_bytes.saturating_sub(self.used_bytes.load(Ordering::Relaxed))
    }

    /// Reserves bytes that are about to be allocated for `what`.
    pub fn reserve(&self, bytes: u64, what: impl fmt::Display) -> Result<Reservation> {
        // Counted first, so that of two concurrent reservations not both get what is left once.
        let reserved = Reservation { used_bytes: Arc::clone(&self.used_bytes), bytes };
        let used = self.used_bytes.fetch_add(bytes, Ordering::Relaxed).checked_add(bytes);
        match used.filter(|&used| used <= self.limit_bytes) {
            Some(_) => Ok(reserved),
            None => {
                drop(reserved);
                let (left, limit) = (self.left(), self.limit_bytes);
                let wanted = format!("{what}: needs {bytes} bytes of memory, {left} of {limit} left");
                Err(Error::limit(wanted).with_remedy(Remedy::MemoryBudget))
            }
        }
    }

    /// The memory of a reading request: what the metadata left is its own, however many threads read at once.
    pub(crate) fn request(&self, file_bytes: u64) -> RequestMemory {
        let (counts, released) = (Mutex::default(), Condvar::new());
        RequestMemory {
            limit_bytes: self.left(),
            file_bytes,
            strict: false,
            keep: Keep::Nothing,
            counts,
            extents: Mutex::default(),
            released,
        }
    }
}

impl Reservation {
    /// Number of reserved bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.used_bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// The memory of one reading request, which several threads may work on.
#[derive(Debug)]
pub struct RequestMemory {
    limit_bytes: u64,
    file_bytes: u64,
    strict: bool,
    keep: Keep,
    counts: Mutex<Counts>,
    extents: Mutex<Extents>,
    /// Signals that scratch memory was given back.
    released: Condvar,
}

/// The memory of a reading request, in bytes.
#[derive(Debug, Default, Clone, Copy)]
struct Counts {
    /// Tables of pages, sealed pages, pages being decoded.
    flight: u64,
    /// The part of it that threads release after a run of pages.
    scratch: u64,
    /// Values, and what is needed to make them.
    values: u64,
    /// Stored bytes of the pages that values come from.
    stored: u64,
}

/// Pages, which may share their bytes.
#[derive(Debug, Default)]
pub struct Extents {
    /// Of each blob, the range in which they are.
    by_blob: HashMap<Blob, Range<u64>>,
    /// Bytes of these ranges.
    bytes: u64,
    /// Bytes of all pages.
    page_bytes: u64,
}

impl Extents {
    /// Adds the bytes of a page.
    pub fn add(&mut self, page: &BlobRange) {
        let extent = self.by_blob.entry(page.blob).or_insert(page.start..page.start);
        let before = extent.end - extent.start;
        *extent = extent.start.min(page.start)..extent.end.max(page.end);
        self.bytes = self.bytes.saturating_add(extent.end - extent.start - before);
        self.page_bytes = self.page_bytes.saturating_add(page.bytes());
    }

    /// What is stored at most for the pages, in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// Scratch memory of one thread, released on drop.
pub(crate) struct ScratchReservation<'r> {
    request: &'r RequestMemory,
    bytes: u64,
}

impl Drop for ScratchReservation<'_> {
    fn drop(&mut self) {
        let mut counts = self.request.counts();
        counts.flight = counts.flight.saturating_sub(self.bytes);
        counts.scratch = counts.scratch.saturating_sub(self.bytes);
        drop(counts);
        self.request.released.notify_all();
    }
}

impl RequestMemory {
    /// Refuses values above one of this many shares of the budget, whatever is stored for them, because the caller did
    /// not request that many at once. `None` changes nothing.
    #[must_use]
    pub fn shared(self, shares: Option<u64>) -> Self {
        match shares {
            Some(shares) => Self { strict: true, limit_bytes: self.limit_bytes / shares.max(1), ..self },
            None => self,
        }
    }

    /// Sets which decompressed pages are kept for later requests, and used by this one.
    #[must_use]
    pub fn keeping(self, keep: &Keep) -> Self {
        Self { keep: keep.clone(), ..self }
    }

    /// Which pages are kept for later requests.
    pub(crate) fn keep(&self) -> &Keep {
        &self.keep
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that pages are about to become values. Pages may share their bytes: of each blob, no more counts than the range in
    /// which they are, because the size of an object store is only what its writer said.
    pub(crate) fn add_pages<'r>(&self, pages: impl IntoIterator<Item = &'r BlobRange>) {
        let mut extents = self.extents.lock().unwrap_or_else(PoisonError::into_inner);
        pages.into_iter().for_each(|page| extents.add(page));
        let bytes = extents.bytes.min(extents.page_bytes).min(self.file_bytes);
        drop(extents);
        let mut counts = self.counts();
        counts.stored = counts.stored.max(bytes);
    }

    /// Notes that baskets of this many stored bytes are about to become values.
    pub(crate) fn add_stored(&self, stored_bytes: u64) {
        // Pages may share their bytes; together they are at most the size of the file.
        let mut counts = self.counts();
        counts.stored = counts.stored.saturating_add(stored_bytes).min(self.file_bytes);
    }

    /// Whether the stored bytes justify this many bytes of values.
    fn is_backed(&self, values: u64, stored: u64) -> bool {
        !self.strict && values <= stored.saturating_mul(MAX_BUDGET_EXPANSION)
    }

    /// Reserves memory for values until the end of the request.
    pub(crate) fn reserve_values(&self, bytes: u64) -> Result<()> {
        let mut counts = self.counts();
        let values = counts.values.saturating_add(bytes);
        if values.saturating_add(counts.flight) > self.limit_bytes && !self.is_backed(values, counts.stored) {
            let (stored, allowed) = (counts.stored, self.limit_bytes.saturating_sub(counts.flight));
            let wanted = format!("the values of {stored} stored bytes need {values} bytes of memory");
            let refused = Error::limit(format!("{wanted}, {allowed} left"));
            return Err(refused.with_remedy(Remedy::FewerEntries));
        }
        counts.values = values;
        Ok(())
    }

    /// Reserves memory for what is needed on the way to the values, until [`RequestMemory::release`].
    pub(crate) fn reserve(&self, bytes: u64, what: impl fmt::Display) -> Result<()> {
        let mut counts = self.counts();
        let left = self.left_of(&counts);
        if bytes > left {
            return Err(too_much(bytes, left, what));
        }
        counts.flight += bytes;
        Ok(())
    }

    /// Reserves scratch memory. Where other threads have taken what is missing, waits until they give it back, so that
    /// what one thread can read, several can: they must not wait for this thread, nor reserve any more meanwhile.
    pub(crate) fn reserve_scratch(&self, bytes: u64, what: impl fmt::Display) -> Result<ScratchReservation<'_>> {
        let mut counts = self.counts();
        loop {
            let left = self.left_of(&counts);
            if bytes <= left {
                counts.flight += bytes;
                counts.scratch += bytes;
                return Ok(ScratchReservation { request: self, bytes });
            }
            if bytes > left.saturating_add(counts.scratch) {
                return Err(too_much(bytes, left.saturating_add(counts.scratch), what));
            }
            counts = self.released.wait(counts).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Releases what [`RequestMemory::reserve`] reserved.
    pub(crate) fn release(&self, bytes: u64) {
        let mut counts = self.counts();
        counts.flight = counts.flight.saturating_sub(bytes);
    }

    /// What is left on the way to the values.
    pub(crate) fn left(&self) -> u64 {
        self.left_of(&self.counts())
    }

    /// Sealed pages to fetch together, in bytes, so that those of several batches fit, and pages being decoded.
    pub fn fetch_bytes(&self) -> u64 {
        FETCH_BYTES.min(self.left() / CONCURRENT_FETCHES as u64 / 2)
    }

    fn left_of(&self, counts: &Counts) -> u64 {
        // Values that are backed do not take from the pages, or a large request could not end.
        let values = if self.is_backed(counts.values, counts.stored) { 0 } else { counts.values };
        self.limit_bytes.saturating_sub(counts.flight).saturating_sub(values)
    }
}

#[cold]
fn too_much(bytes: u64, left: u64, what: impl fmt::Display) -> Error {
    let refused = Error::limit(format!("{what}: needs {bytes} bytes of memory, {left} left"));
    refused.with_remedy(Remedy::FewerEntries)
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn reservations_are_given_back() {
        let budget = MemoryBudget::new(100);
        let first = budget.reserve(60, "a").unwrap();
        assert_eq!(
            budget.clone().reserve(41, "b").unwrap_err().to_string(),
            "b: needs 41 bytes of memory, 40 of 100 left; allow a larger memory budget"
        );
        let second = budget.reserve(40, "b").unwrap();
        assert_eq!(budget.left(), 0);
        drop((first, second));
        assert_eq!(budget.left(), 100);
        assert!(budget.reserve(u64::MAX, "all").is_err());
        assert_eq!(budget.left(), 100);
    }

    #[test]
    fn values_above_the_budget_need_stored_bytes() {
        let request = MemoryBudget::new(1000).request(50);
        request.reserve_values(1000).unwrap();
        assert!(request.reserve_values(1).is_err());
        request.add_stored(1);
        request.reserve_values(24).unwrap();
        assert!(request.reserve_values(1).is_err());
        // Pages that share their bytes count once: the file has no more.
        request.add_stored(u64::MAX);
        request.reserve_values(50 * 1024 - 1024).unwrap();
        assert!(request.reserve_values(1).is_err());
        let strict = MemoryBudget::new(1000).request(1 << 40).shared(Some(1));
        strict.add_stored(1 << 30);
        strict.reserve_values(1000).unwrap();
        assert!(strict.reserve_values(1).is_err());
        let half = MemoryBudget::new(1000).request(1 << 40).shared(Some(2));
        half.reserve_values(500).unwrap();
        assert!(half.reserve_values(1).is_err());
    }

    /// An object store is as large as its writer said.
    #[test]
    fn pages_that_share_their_bytes_count_once() {
        let request = MemoryBudget::new(1000).request(u64::MAX);
        let page = |number, start, end| BlobRange { blob: Blob::numbered(number), start, end };
        (0..700).for_each(|_| request.add_pages(&[page(1, 10, 12)]));
        request.reserve_values(2 * 1024).unwrap();
        assert!(request.reserve_values(1).is_err());
        // Others in the same object, and in another one.
        request.add_pages(&[page(1, 12, 13), page(1, 9, 11), page(2, 0, 1)]);
        request.reserve_values(3 * 1024).unwrap();
        assert!(request.reserve_values(1).is_err());
        // Gaps between pages do not count as pages.
        let request = MemoryBudget::new(1000).request(u64::MAX);
        request.add_pages(&[page(1, 0, 1), page(1, 1000, 1001)]);
        request.reserve_values(2 * 1024).unwrap();
        assert!(request.reserve_values(1).is_err());
    }

    #[test]
    fn data_in_flight_leaves_room_for_values_without_stored_bytes() {
        let request = MemoryBudget::new(1000).request(50);
        request.reserve(600, "pages").unwrap();
        assert!(request.reserve(401, "pages").is_err());
        assert!(request.reserve_values(401).is_err());
        request.reserve_values(400).unwrap();
        assert_eq!(request.left(), 0);
        // With stored bytes the same values are backed.
        request.add_stored(1);
        assert_eq!(request.left(), 400);
        request.release(600);
        assert_eq!(request.left(), 1000);
    }

    #[test]
    fn threads_wait_for_the_scratch_memory_of_others() {
        let request = MemoryBudget::new(1000).request(50);
        request.reserve(100, "tables").unwrap();
        thread::scope(|scope| {
            let held = request.reserve_scratch(600, "pages").unwrap();
            let waiting = scope.spawn(|| request.reserve_scratch(900, "pages").map(drop));
            let too_much = request.reserve_scratch(901, "pages").map(drop).unwrap_err();
            assert!(too_much.to_string().starts_with("pages: needs 901 bytes of memory, 900 left"));
            drop(held);
            waiting.join().unwrap().unwrap();
        });
        assert_eq!(request.left(), 900);
    }
}
