//! Decompressed pages and baskets that are kept for later requests.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use super::MemoryBudget;
use super::recent::Recent;
use crate::source::{BlobRange, RECENT_BUDGET_PART};

/// A page that takes more than one of this many parts of the memory is not kept.
const MOST_PARTS: u64 = 4;
/// Maximum memory of the pages of a stream, in bytes.
const STREAM_BYTES: u64 = 64 << 20;

/// Which decompressed pages and baskets a request keeps for later ones, and uses.
#[derive(Debug, Clone, Default)]
pub enum Keep {
    /// No pages.
    #[default]
    Nothing,
    /// Those that are used in part, for requests for any entries.
    Parts,
    /// Those that extend beyond its entries, for the next request of a stream.
    Stream(Arc<StreamPages>),
}

/// The pages of an ntuple, or the baskets of a tree, that were used last, by where they are stored.
#[derive(Debug)]
pub(crate) struct KeptPages {
    id: SourceId,
    pages: Mutex<Recent<BlobRange, Bytes>>,
    max_bytes: u64,
}

/// Tells the pages of one source from those of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct SourceId(u64);

impl SourceId {
    fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

impl KeptPages {
    /// None so far; they will take a part of a budget.
    pub(crate) fn new(budget: &MemoryBudget) -> Self {
        Self::with_max_bytes(budget.limit_bytes() / RECENT_BUDGET_PART)
    }

    fn with_max_bytes(max_bytes: u64) -> Self {
        Self { id: SourceId::new(), pages: Mutex::default(), max_bytes }
    }

    fn pages(&self) -> MutexGuard<'_, Recent<BlobRange, Bytes>> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The pages that a request may use; `None` if it keeps none.
    pub(crate) fn of<'k>(&'k self, keep: &'k Keep) -> Option<RequestPages<'k>> {
        let stream = match keep {
            Keep::Nothing => return None,
            Keep::Parts => None,
            Keep::Stream(stream) => Some(&**stream),
        };
        Some(RequestPages { source: self, stream })
    }
}

/// The pages that a stream of requests for one range of entries after another keeps, until they are used to their end.
#[derive(Debug, Default)]
pub struct StreamPages(Mutex<InStream>);

#[derive(Debug, Default)]
struct InStream {
    pages: Recent<(SourceId, BlobRange), StreamPage>,
    /// Number of the request.
    request: u64,
}

#[derive(Debug)]
struct StreamPage {
    page: Bytes,
    last_request: u64,
}

impl StreamPages {
    fn lock(&self) -> MutexGuard<'_, InStream> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins the next request.
    pub fn begin_request(&self) {
        self.lock().request += 1;
    }
}

impl InStream {
    fn get(&mut self, key: (SourceId, BlobRange), used: UsedPart) -> Option<Bytes> {
        let page = self.pages.get(&key)?.page.clone();
        match used.end < used.total {
            true => self.insert(key, page.clone()),
            false => self.pages.remove(&key),
        }
        Some(page)
    }

    fn insert(&mut self, key: (SourceId, BlobRange), page: Bytes) {
        let bytes = page.len() as u64;
        self.pages.insert(key, StreamPage { page, last_request: self.request }, bytes, u64::MAX);
    }

    /// Whether there is memory for another page. Pages of this request and of the one before are not removed for it: of those
    /// that do not fit together, it is better to keep some than each in its turn.
    fn has_room(&mut self, bytes: u64, max_bytes: u64) -> bool {
        while self.pages.bytes().saturating_add(bytes) > max_bytes {
            match self.pages.oldest() {
                Some((&key, oldest)) if oldest.last_request + 1 < self.request => self.pages.remove(&key),
                _ => return false,
            }
        }
        true
    }
}

/// The elements of a page, or the entries of a basket, that a request uses.
#[derive(Debug, Clone, Copy)]
pub struct UsedPart {
    /// How many it uses.
    pub(crate) count: usize,
    /// Where the last one that it uses ends.
    pub(crate) end: usize,
    /// How many there are.
    pub(crate) total: usize,
}

/// The kept pages of a source, as one request sees them.
#[derive(Debug, Clone, Copy)]
pub struct RequestPages<'k> {
    source: &'k KeptPages,
    /// Whose they are, unless they are those of the source.
    stream: Option<&'k StreamPages>,
}

impl<'k> RequestPages<'k> {
    /// A page that was kept; it stays if later requests may need it.
    pub(crate) fn get(self, range: &BlobRange, used: UsedPart) -> Option<Bytes> {
        match self.stream {
            None => self.source.pages().get(range).cloned(),
            Some(stream) => stream.lock().get((self.source.id, *range), used),
        }
    }

    /// Room for a page of `bytes` bytes; `None` if later requests need nothing of it, or if it is too large to keep.
    pub(crate) fn room(self, range: &BlobRange, bytes: u64, used: UsedPart) -> Option<Room<'k>> {
        let max_bytes = self.source.max_bytes;
        let is_kept = match self.stream {
            _ if bytes > max_bytes / MOST_PARTS => false,
            None => used.count < used.total,
            Some(stream) => used.end < used.total && stream.lock().has_room(bytes, max_bytes.min(STREAM_BYTES)),
        };
        let len = usize::try_from(bytes).ok().filter(|_| is_kept)?;
        let mut page = Vec::new();
        page.try_reserve_exact(len).ok()?;
        page.resize(len, 0);
        Some(Room { kept: self, range: *range, page })
    }
}

/// Memory of a page that is kept once it is filled.
#[derive(Debug)]
pub(crate) struct Room<'k> {
    kept: RequestPages<'k>,
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
        let source = self.kept.source;
        match self.kept.stream {
            None => source.pages().insert(self.range, page.clone(), bytes, source.max_bytes),
            Some(stream) => stream.lock().insert((source.id, self.range), page.clone()),
        }
        page
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(start: u64) -> BlobRange {
        BlobRange::in_file(start..start + 1)
    }

    /// The use of the elements before `end` of ten.
    fn until(end: usize) -> UsedPart {
        UsedPart { count: end, end, total: 10 }
    }

    #[test]
    fn pages_that_were_used_last_stay() {
        let kept = KeptPages::with_max_bytes(40);
        let pages = kept.of(&Keep::Parts).unwrap();
        let keep = |start, bytes: &[u8]| {
            let Some(mut room) = pages.room(&place(start), bytes.len() as u64, until(9)) else { return false };
            room.page().copy_from_slice(bytes);
            assert_eq!(room.keep(), bytes);
            true
        };
        let get = |start| pages.get(&place(start), until(9));
        for start in 0..4 {
            let first = start as u8;
            assert!(keep(start, &[first, first, first, first, first, first, 9, 9, 9, 9]));
        }
        assert_eq!(get(0).as_deref(), Some(&[0, 0, 0, 0, 0, 0, 9, 9, 9, 9][..]));
        assert!(keep(4, &[4; 10]));
        // The second one was used least recently; one that is too long is not kept.
        assert!(!keep(5, &[5; 11]));
        let is_kept: Vec<bool> = (0..6).map(|start| get(start).is_some()).collect();
        assert_eq!(is_kept, [true, false, true, true, true, false]);
        assert!(keep(4, &[7; 10]));
        assert_eq!(get(4).unwrap()[0], 7);
        assert_eq!(kept.pages().bytes(), 40);
    }

    #[test]
    fn a_page_that_is_used_up_is_not_kept() {
        let kept = KeptPages::with_max_bytes(400);
        let at_the_end = UsedPart { count: 1, end: 10, total: 10 };
        for (keep, expected) in
            [(Keep::Parts, [true, false, true]), (Keep::Stream(Arc::default()), [true, false, false])]
        {
            let pages = kept.of(&keep).unwrap();
            let is_kept = [until(3), until(10), at_the_end].map(|used| pages.room(&place(0), 10, used).is_some());
            assert_eq!(is_kept, expected, "{keep:?}");
        }
        assert!(kept.of(&Keep::Nothing).is_none());
    }

    #[test]
    fn a_stream_keeps_pages_until_they_are_used_up() {
        let stream = Arc::<StreamPages>::default();
        let keep = Keep::Stream(Arc::clone(&stream));
        let sources = [KeptPages::with_max_bytes(40), KeptPages::with_max_bytes(40)];
        let [one, other] = [&sources[0], &sources[1]].map(|source| source.of(&keep).unwrap());
        let add = |start| one.room(&place(start), 10, until(5)).map(Room::keep).is_some();
        let has = |start| one.get(&place(start), until(6)).is_some();
        assert!(add(0) && add(1) && add(2));
        // The same place in another file.
        assert!(other.get(&place(0), until(6)).is_none());

        stream.begin_request();
        assert!(has(0) && has(0) && has(1) && has(2));
        assert!(one.get(&place(1), until(10)).is_some());
        assert!(!has(1), "it was used to its end");
        stream.begin_request();
        // There may be nothing to read of a page for a request.
        assert!(has(0));
        stream.begin_request();
        assert!(has(2));
        assert!(add(3) && add(4), "the memory of four pages");
        // These were used by this request or the one before.
        assert!(!add(5));
        stream.begin_request();
        assert!(has(2) && add(6), "the first page makes room");
        assert_eq!([0, 2, 3, 4, 5, 6].map(has), [false, true, true, true, false, true]);
    }
}
