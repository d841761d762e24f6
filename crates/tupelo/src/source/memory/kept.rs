//! Decompressed pages and baskets that are kept for later requests.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use crate::source::BlobRange;

/// A page that takes more than one of this many parts of the memory is not kept.
const MOST_PARTS: u64 = 4;

/// The pages of an ntuple, or the baskets of a tree, that were used last, by where they are stored.
#[derive(Debug, Default)]
pub(crate) struct KeptPages(Mutex<Pages>);

#[derive(Debug, Default)]
struct Pages {
    pages: HashMap<BlobRange, Page>,
    /// Places in order of their last use.
    by_use: BTreeMap<u64, BlobRange>,
    bytes: u64,
    uses: u64,
}

#[derive(Debug)]
struct Page {
    bytes: Arc<[u8]>,
    last_use: u64,
}

impl KeptPages {
    fn pages(&self) -> std::sync::MutexGuard<'_, Pages> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn get(&self, range: &BlobRange) -> Option<Arc<[u8]>> {
        let pages = &mut *self.pages();
        pages.uses += 1;
        let page = pages.pages.get_mut(range)?;
        pages.by_use.remove(&page.last_use);
        pages.by_use.insert(pages.uses, *range);
        page.last_use = pages.uses;
        Some(Arc::clone(&page.bytes))
    }

    /// Keeps a page that consists of parts, in at most `max_bytes` with the others.
    pub(crate) fn keep(&self, range: &BlobRange, parts: &[&[u8]], max_bytes: u64) {
        let len: u64 = parts.iter().map(|part| part.len() as u64).sum();
        if len > max_bytes / MOST_PARTS {
            return;
        }
        let bytes: Arc<[u8]> = match parts {
            [whole] => (*whole).into(),
            parts => parts.concat().into(),
        };
        let pages = &mut *self.pages();
        pages.remove(range);
        while pages.bytes.saturating_add(len) > max_bytes {
            let Some((_, &oldest)) = pages.by_use.first_key_value() else { break };
            pages.remove(&oldest);
        }
        pages.uses += 1;
        pages.bytes += len;
        pages.by_use.insert(pages.uses, *range);
        pages.pages.insert(*range, Page { bytes, last_use: pages.uses });
    }
}

impl Pages {
    fn remove(&mut self, range: &BlobRange) {
        if let Some(page) = self.pages.remove(range) {
            self.by_use.remove(&page.last_use);
            self.bytes -= page.bytes.len() as u64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_that_were_used_last_stay() {
        let kept = KeptPages::default();
        let place = |start| BlobRange::in_file(start..start + 1);
        for start in 0..4 {
            kept.keep(&place(start), &[&[start as u8; 6], &[9; 4]], 40);
        }
        assert_eq!(kept.get(&place(0)).as_deref(), Some(&[0, 0, 0, 0, 0, 0, 9, 9, 9, 9][..]));
        kept.keep(&place(4), &[&[4; 10]], 40);
        // The second one was used least recently; one that is too long is not kept.
        kept.keep(&place(5), &[&[5; 11]], 40);
        let is_kept: Vec<bool> = (0..6).map(|start| kept.get(&place(start)).is_some()).collect();
        assert_eq!(is_kept, [true, false, true, true, true, false]);
        kept.keep(&place(4), &[&[7; 10]], 40);
        assert_eq!(kept.get(&place(4)).unwrap()[0], 7);
        assert_eq!(kept.pages().bytes, 40);
    }
}
