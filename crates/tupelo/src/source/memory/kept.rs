//! Decompressed pages and baskets that are kept for later requests.

use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use super::MemoryBudget;
use super::recent::Recent;
use crate::source::{BlobRange, RECENT_BUDGET_PART};

/// A page that takes more than one of this many parts of the memory is not kept.
const MOST_PARTS: u64 = 4;

/// The pages of an ntuple, or the baskets of a tree, that were used last, by where they are stored.
#[derive(Debug)]
pub(crate) struct KeptPages {
    pages: Mutex<Recent<BlobRange, Bytes>>,
    max_bytes: u64,
}

impl KeptPages {
    /// None so far; they will take a part of a budget.
    pub(crate) fn new(budget: &MemoryBudget) -> Self {
        Self { pages: Mutex::default(), max_bytes: budget.limit_bytes() / RECENT_BUDGET_PART }
    }

    fn pages(&self) -> MutexGuard<'_, Recent<BlobRange, Bytes>> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn get(&self, range: &BlobRange) -> Option<Bytes> {
        self.pages().get(range).cloned()
    }

    /// Room for a page of `bytes` bytes; `None` if it is too large to keep.
    pub(crate) fn room(&self, range: &BlobRange, bytes: u64) -> Option<Room<'_>> {
        let len = usize::try_from(bytes).ok().filter(|_| bytes <= self.max_bytes / MOST_PARTS)?;
        let mut page = Vec::new();
        page.try_reserve_exact(len).ok()?;
        page.resize(len, 0);
        Some(Room { kept: self, range: *range, page })
    }
}

/// Memory of a page that is kept once it is filled.
pub(crate) struct Room<'k> {
    kept: &'k KeptPages,
    range: BlobRange,
    page: Vec<u8>,
}

impl Room<'_> {
    /// Zeros at first.
    pub(crate) fn page(&mut self) -> &mut [u8] {
        &mut self.page
    }

    pub(crate) fn keep(self) -> Bytes {
        let (bytes, page) = (self.page.len() as u64, Bytes::from(self.page));
        self.kept.pages().insert(self.range, page.clone(), bytes, self.kept.max_bytes);
        page
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_that_were_used_last_stay() {
        let kept = KeptPages { pages: Mutex::default(), max_bytes: 40 };
        let place = |start| BlobRange::in_file(start..start + 1);
        let keep = |start, bytes: &[u8]| {
            let Some(mut room) = kept.room(&place(start), bytes.len() as u64) else { return false };
            room.page().copy_from_slice(bytes);
            assert_eq!(room.keep(), bytes);
            true
        };
        for start in 0..4 {
            let first = start as u8;
            assert!(keep(start, &[first, first, first, first, first, first, 9, 9, 9, 9]));
        }
        assert_eq!(kept.get(&place(0)).as_deref(), Some(&[0, 0, 0, 0, 0, 0, 9, 9, 9, 9][..]));
        assert!(keep(4, &[4; 10]));
        // The second one was used least recently; one that is too long is not kept.
        assert!(!keep(5, &[5; 11]));
        let is_kept: Vec<bool> = (0..6).map(|start| kept.get(&place(start)).is_some()).collect();
        assert_eq!(is_kept, [true, false, true, true, true, false]);
        assert!(keep(4, &[7; 10]));
        assert_eq!(kept.get(&place(4)).unwrap()[0], 7);
        assert_eq!(kept.pages().bytes(), 40);
    }
}
