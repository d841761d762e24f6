//! Decompressed pages and baskets that are kept for later requests.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::MemoryBudget;
use super::recent::Recent;
use crate::source::{BlobRange, RECENT_BUDGET_PART};

/// A page that takes more than one of this many parts of the memory is not kept.
const MOST_PARTS: u64 = 4;

/// The pages of an ntuple, or the baskets of a tree, that were used last, by where they are stored.
#[derive(Debug)]
pub(crate) struct KeptPages {
    pages: Mutex<Recent<BlobRange, Arc<[u8]>>>,
    max_bytes: u64,
}

impl KeptPages {
    /// None so far; they will take a part of a budget.
    pub(crate) fn new(budget: &MemoryBudget) -> Self {
        Self { pages: Mutex::default(), max_bytes: budget.limit_bytes() / RECENT_BUDGET_PART }
    }

    fn pages(&self) -> MutexGuard<'_, Recent<BlobRange, Arc<[u8]>>> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn get(&self, range: &BlobRange) -> Option<Arc<[u8]>> {
        self.pages().get(range).map(Arc::clone)
    }

    /// Keeps a page that consists of parts.
    pub(crate) fn keep(&self, range: &BlobRange, parts: &[&[u8]]) {
        let bytes: u64 = parts.iter().map(|part| part.len() as u64).sum();
        if bytes <= self.max_bytes / MOST_PARTS {
            self.pages().insert(*range, parts.concat().into(), bytes, self.max_bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_that_were_used_last_stay() {
        let kept = KeptPages { pages: Mutex::default(), max_bytes: 40 };
        let place = |start| BlobRange::in_file(start..start + 1);
        for start in 0..4 {
            kept.keep(&place(start), &[&[start as u8; 6], &[9; 4]]);
        }
        assert_eq!(kept.get(&place(0)).as_deref(), Some(&[0, 0, 0, 0, 0, 0, 9, 9, 9, 9][..]));
        kept.keep(&place(4), &[&[4; 10]]);
        // The second one was used least recently; one that is too long is not kept.
        kept.keep(&place(5), &[&[5; 11]]);
        let is_kept: Vec<bool> = (0..6).map(|start| kept.get(&place(start)).is_some()).collect();
        assert_eq!(is_kept, [true, false, true, true, true, false]);
        kept.keep(&place(4), &[&[7; 10]]);
        assert_eq!(kept.get(&place(4)).unwrap()[0], 7);
        assert_eq!(kept.pages().bytes(), 40);
    }
}
