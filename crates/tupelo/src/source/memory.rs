//! How much memory a file may make its reader take.
//!
//! A file's metadata and what one reading request has in flight are counted before they are allocated. Values that the
//! caller asked for may be more than the budget, where the file has stored bytes to show for them.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::error::Remedy;
use crate::{Error, Result};

/// Memory that a file may make its reader take unless told otherwise: 1 GiB.
pub const DEFAULT_MEMORY_BUDGET_BYTES: u64 = 1 << 30;
/// Values may be more than the memory budget if they are at most so many times the stored bytes that they come from.
pub const MAX_BUDGET_EXPANSION: u64 = 1024;

/// Sealed pages that are fetched at once, in bytes, where the memory budget has so much left.
const FETCH_BYTES: u64 = 64 << 20;

/// The memory that one open file may take; clones count together.
#[derive(Debug, Clone)]
pub(crate) struct Budget {
    limit_bytes: u64,
    used_bytes: Arc<AtomicU64>,
}

/// Memory that is given back when this is dropped.
#[derive(Debug)]
pub(crate) struct Share {
    used_bytes: Arc<AtomicU64>,
    bytes: u64,
}

impl Budget {
    pub(crate) fn new(limit_bytes: u64) -> Self {
        Self { limit_bytes, used_bytes: Arc::default() }
    }

    /// Bytes that nobody took yet.
    pub(crate) fn left(&self) -> u64 {
        self.limit_bytes.saturating_sub(self.used_bytes.load(Ordering::Relaxed))
    }

    /// Takes bytes that are about to be allocated for `what`.
    pub(crate) fn share(&self, bytes: u64, what: impl fmt::Display) -> Result<Share> {
        // Counted first, so that two who ask at once cannot both get what is only left once.
        let share = Share { used_bytes: Arc::clone(&self.used_bytes), bytes };
        let used = self.used_bytes.fetch_add(bytes, Ordering::Relaxed).checked_add(bytes);
        match used.filter(|&used| used <= self.limit_bytes) {
            Some(_) => Ok(share),
            None => {
                drop(share);
                let (left, limit) = (self.left(), self.limit_bytes);
                let wanted = format!("{what}: {bytes} bytes of memory wanted where {left} of {limit} are left");
                Err(Error::limit(wanted).with_remedy(Remedy::MemoryBudget))
            }
        }
    }

    /// A reading request: what the metadata left is its own, however many threads read at once.
    pub(crate) fn request(&self, file_bytes: u64) -> Request {
        Request { limit_bytes: self.left(), file_bytes, strict: false, counts: Mutex::default() }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.used_bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// The memory of one reading request, which several threads may work on.
#[derive(Debug)]
pub(crate) struct Request {
    limit_bytes: u64,
    file_bytes: u64,
    strict: bool,
    counts: Mutex<Counts>,
}

/// What a reading request has, in bytes.
#[derive(Debug, Default, Clone, Copy)]
struct Counts {
    /// Tables of pages, sealed pages, pages being unpacked.
    flight: u64,
    /// Values, and what is needed to make them.
    values: u64,
    /// Stored bytes of the pages that values come from.
    stored: u64,
}

/// What a request takes until this is dropped.
pub(crate) struct Held<'r> {
    request: &'r Request,
    bytes: u64,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.request.give(self.bytes);
    }
}

impl Request {
    /// Refuses values above the budget whatever is stored for them, because nobody asked for so many at once.
    #[must_use]
    pub(crate) fn strict(self) -> Self {
        Self { strict: true, ..self }
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Pages of so many stored bytes are about to become values.
    pub(crate) fn touch(&self, stored_bytes: u64) {
        // Pages may share their bytes; the file cannot show for more than it has.
        let mut counts = self.counts();
        counts.stored = counts.stored.saturating_add(stored_bytes).min(self.file_bytes);
    }

    /// Whether the stored bytes that were touched can show for so many bytes of values.
    fn is_backed(&self, values: u64, stored: u64) -> bool {
        !self.strict && values <= stored.saturating_mul(MAX_BUDGET_EXPANSION)
    }

    /// Takes memory for values.
    pub(crate) fn take_values(&self, bytes: u64) -> Result<()> {
        let mut counts = self.counts();
        let values = counts.values.saturating_add(bytes);
        if values.saturating_add(counts.flight) > self.limit_bytes && !self.is_backed(values, counts.stored) {
            let (stored, allowed) = (counts.stored, self.limit_bytes.saturating_sub(counts.flight));
            let wanted = format!("{values} bytes of memory wanted for the values of {stored} stored bytes");
            let refused = Error::limit(format!("{wanted}, {allowed} are allowed"));
            return Err(refused.with_remedy(Remedy::FewerEntries));
        }
        counts.values = values;
        Ok(())
    }

    /// Takes memory for what is needed on the way to the values.
    pub(crate) fn take(&self, bytes: u64, what: impl fmt::Display) -> Result<()> {
        let mut counts = self.counts();
        let left = self.left_of(&counts);
        if bytes > left {
            let refused = Error::limit(format!("{what}: {bytes} bytes of memory wanted where {left} are left"));
            return Err(refused.with_remedy(Remedy::FewerEntries));
        }
        counts.flight += bytes;
        Ok(())
    }

    /// As [`Request::take`], until what it gives is dropped.
    pub(crate) fn hold(&self, bytes: u64, what: impl fmt::Display) -> Result<Held<'_>> {
        self.take(bytes, what).map(|()| Held { request: self, bytes })
    }

    /// Gives back what [`Request::take`] took.
    pub(crate) fn give(&self, bytes: u64) {
        let mut counts = self.counts();
        counts.flight = counts.flight.saturating_sub(bytes);
    }

    /// What is left on the way to the values.
    pub(crate) fn left(&self) -> u64 {
        self.left_of(&self.counts())
    }

    /// Sealed pages that may be fetched at once, in bytes: half of what is left, for they are unpacked one by one.
    pub(crate) fn room(&self) -> u64 {
        FETCH_BYTES.min(self.left() / 2)
    }

    fn left_of(&self, counts: &Counts) -> u64 {
        // Values that are backed do not take from the pages, or a large request could not end.
        let values = if self.is_backed(counts.values, counts.stored) { 0 } else { counts.values };
        self.limit_bytes.saturating_sub(counts.flight).saturating_sub(values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_given_back() {
        let budget = Budget::new(100);
        let first = budget.share(60, "a").unwrap();
        assert_eq!(
            budget.clone().share(41, "b").unwrap_err().to_string(),
            "b: 41 bytes of memory wanted where 40 of 100 are left; allow a larger memory budget"
        );
        let second = budget.share(40, "b").unwrap();
        assert_eq!(budget.left(), 0);
        drop((first, second));
        assert_eq!(budget.left(), 100);
        assert!(budget.share(u64::MAX, "all").is_err());
        assert_eq!(budget.left(), 100);
    }

    #[test]
    fn values_above_the_budget_need_stored_bytes() {
        let request = Budget::new(1000).request(50);
        request.take_values(1000).unwrap();
        assert!(request.take_values(1).is_err());
        request.touch(1);
        request.take_values(24).unwrap();
        assert!(request.take_values(1).is_err());
        // Pages that share their bytes count once: the file has no more.
        request.touch(u64::MAX);
        request.take_values(50 * 1024 - 1024).unwrap();
        assert!(request.take_values(1).is_err());
        let strict = Budget::new(1000).request(1 << 40).strict();
        strict.touch(1 << 30);
        strict.take_values(1000).unwrap();
        assert!(strict.take_values(1).is_err());
    }

    #[test]
    fn what_is_in_flight_leaves_room_for_values_that_nothing_backs() {
        let request = Budget::new(1000).request(50);
        request.take(600, "pages").unwrap();
        assert!(request.take(401, "pages").is_err());
        assert!(request.take_values(401).is_err());
        request.take_values(400).unwrap();
        assert_eq!(request.left(), 0);
        // With their bytes touched the same values are backed.
        request.touch(1);
        assert_eq!(request.left(), 400);
        request.give(600);
        assert_eq!(request.left(), 1000);
    }
}
