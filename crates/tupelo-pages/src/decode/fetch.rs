//! Fetches pages before they are decoded.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::thread;

use bytes::Bytes;
use tupelo_core::pool::Waiting;

use crate::Result;
use crate::plan::{PageId, requests};
use crate::source::{BlobRange, CONCURRENT_FETCHES, PageStore, RequestMemory};

/// No other batch is fetched while this number of requests is in flight.
const MAX_REQUESTS: u64 = 512;

/// Maximum number of bytes that a store fetches at a time for pages far apart, which are a small part of these bytes.
const SPARSE_BYTES: u64 = 16 << 20;

/// Fetches the pages of one reading request and keeps them until they are decoded. Pages that a store reads in place are
/// not fetched: the decoding thread reads them.
#[derive(Debug)]
pub(crate) struct Fetcher<'m> {
    store: &'m dyn PageStore,
    memory: &'m RequestMemory,
    pages: HashMap<PageId, Bytes>,
}

/// Pages that are fetched together.
#[derive(Debug, Default)]
pub(crate) struct PageBatch {
    ids: Vec<PageId>,
    ranges: Vec<BlobRange>,
    /// Of all pages.
    bytes: u64,
}

/// A batch that is being fetched.
struct Ahead<'s> {
    ids: Vec<PageId>,
    ranges: Arc<[BlobRange]>,
    requests: u64,
    bytes: u64,
    fetching: Option<Waiting<'s, Result<Vec<Bytes>>>>,
}

impl Ahead<'_> {
    /// Waits for the pages.
    fn end(self, store: &dyn PageStore) -> Result<impl Iterator<Item = (PageId, Bytes)> + use<>> {
        let fetched = match self.fetching.and_then(Waiting::join) {
            Some(fetched) => fetched?,
            None if self.ranges.is_empty() => Vec::new(),
            // There was no thread, or it panicked.
            None => fetch(store, &self.ranges)?,
        };
        Ok(self.ids.into_iter().zip(fetched))
    }
}

/// Fetches ranges; see [`sparse_parts`].
fn fetch(store: &dyn PageStore, ranges: &[BlobRange]) -> Result<Vec<Bytes>> {
    let parts = sparse_parts(store.hints().gap_bytes, ranges);
    if parts.is_empty() {
        return store.fetch(ranges);
    }
    let mut pages = vec![Bytes::new(); ranges.len()];
    for part in parts {
        let own: Vec<BlobRange> = part.iter().map(|&at| ranges[at]).collect();
        for (at, page) in part.into_iter().zip(store.fetch(&own)?) {
            // A slice would keep the gaps beside it.
            pages[at] = Bytes::copy_from_slice(&page);
        }
    }
    Ok(pages)
}

/// A store fetches near ranges together, with the gaps between them. If most of this would be gaps, returns the
/// positions of the ranges to fetch at a time; otherwise nothing.
fn sparse_parts(gap_bytes: u64, ranges: &[BlobRange]) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..ranges.len()).collect();
    order.sort_unstable_by_key(|&at| ranges[at]);
    let mut before: Option<BlobRange> = None;
    let mut parts: Vec<Vec<usize>> = Vec::new();
    let (mut fetched, mut of_part) = (0u64, 0);
    for at in order {
        let range = ranges[at];
        let near = before.filter(|it| it.blob == range.blob && range.start <= it.end.saturating_add(gap_bytes));
        let start = near.map_or(range.start, |it| it.end);
        before = Some(BlobRange { end: range.end.max(near.map_or(0, |it| it.end)), ..range });
        let bytes = range.end.saturating_sub(start);
        (fetched, of_part) = (fetched.saturating_add(bytes), of_part + bytes);
        match parts.last_mut() {
            Some(part) if of_part <= SPARSE_BYTES => part.push(at),
            _ => {
                parts.push(vec![at]);
                of_part = range.bytes();
            }
        }
    }
    let wanted: u64 = ranges.iter().map(BlobRange::bytes).sum();
    if fetched / 2 > wanted && parts.len() > 1 { parts } else { Vec::new() }
}

impl PageBatch {
    pub(crate) fn push(&mut self, id: PageId, range: BlobRange) {
        self.ids.push(id);
        self.ranges.push(range);
        self.bytes += range.bytes();
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// Bytes of all pages.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Starts fetching the pages on another thread.
    fn begin<'s, 'e: 's>(self, scope: &'s thread::Scope<'s, 'e>, store: &'e dyn PageStore) -> Ahead<'s> {
        let (requests, ranges) = (requests(store.hints(), &self.ranges), Arc::<[BlobRange]>::from(self.ranges));
        let own = Arc::clone(&ranges);
        let fetching = match ranges.is_empty() {
            true => None,
            false => Waiting::begin(scope, move || fetch(store, &own)),
        };
        Ahead { ids: self.ids, ranges, requests, bytes: self.bytes, fetching }
    }
}

impl FromIterator<(PageId, BlobRange)> for PageBatch {
    fn from_iter<I: IntoIterator<Item = (PageId, BlobRange)>>(pages: I) -> Self {
        let mut batch = Self::default();
        pages.into_iter().for_each(|(id, range)| batch.push(id, range));
        batch
    }
}

impl<'m> Fetcher<'m> {
    pub(crate) fn new(store: &'m dyn PageStore, memory: &'m RequestMemory) -> Self {
        Self { store, memory, pages: HashMap::new() }
    }

    /// The bytes of a page, if it was fetched.
    pub(crate) fn get(&self, id: PageId) -> Option<&Bytes> {
        self.pages.get(&id)
    }

    /// Whether a page must be fetched.
    pub(crate) fn lacks(&self, id: PageId, range: &BlobRange) -> bool {
        !self.pages.contains_key(&id) && !self.store.is_read_in_place(range)
    }

    /// Fetches batches, several at a time where memory allows for them, and passes them to `work` in order, which is
    /// expected to release pages. It decodes one batch while the next ones are fetched.
    pub(crate) fn each<T>(
        &mut self,
        batches: impl IntoIterator<Item = (PageBatch, T)>,
        mut work: impl FnMut(&mut Self, T) -> Result<()>,
    ) -> Result<()> {
        let (store, mut batches) = (self.store, batches.into_iter().peekable());
        // The rest is for decoding.
        let most_bytes = self.memory.left() / 2;
        thread::scope(|scope| {
            let mut ahead: VecDeque<(Ahead<'_>, T)> = VecDeque::new();
            loop {
                while ahead.len() < CONCURRENT_FETCHES
                    && ahead.iter().map(|(batch, _)| batch.requests).sum::<u64>() < MAX_REQUESTS
                    && let bytes = ahead.iter().map(|(batch, _)| batch.bytes).sum::<u64>()
                    && let Some((batch, task)) = batches.next_if(|(batch, _)| {
                        (ahead.is_empty() || bytes + batch.bytes() <= most_bytes) && self.reserves(batch)
                    })
                {
                    ahead.push_back((batch.begin(scope, store), task));
                }
                let Some((batch, task)) = ahead.pop_front() else {
                    // Nothing else takes memory: the next batch is too large, if there is one.
                    return batches
                        .next()
                        .map_or(Ok(()), |(batch, _)| self.memory.reserve(batch.bytes(), "sealed pages"));
                };
                self.pages.extend(batch.end(store)?);
                work(self, task)?;
            }
        })
    }

    /// Reserves the memory of a batch, if available.
    fn reserves(&self, batch: &PageBatch) -> bool {
        batch.is_empty() || self.memory.reserve(batch.bytes(), "sealed pages").is_ok()
    }

    /// Releases a fetched page.
    pub(crate) fn release(&mut self, id: PageId) {
        if let Some(bytes) = self.pages.remove(&id) {
            self.memory.release(bytes.len() as u64);
        }
    }

    /// Releases all pages.
    pub(crate) fn release_all(&mut self) {
        let bytes = self.pages.drain().map(|(_, bytes)| bytes.len() as u64).sum();
        self.memory.release(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Blob;

    const GAP: u64 = 512 << 10;

    /// Ranges of as many bytes, in reverse order.
    fn ranges(count: u64, bytes: u64, distance: u64) -> Vec<BlobRange> {
        let range = |at: u64| BlobRange { blob: Blob::numbered(7), start: at * distance, end: at * distance + bytes };
        (0..count).rev().map(range).collect()
    }

    /// Regression: 80 KB in pages of 32 bytes took as much memory as the object in which they were, 1.3 GB.
    #[test]
    fn gaps_are_fetched_a_part_at_a_time() {
        let sparse = ranges(2500, 32, GAP + 32);
        let parts = sparse_parts(GAP, &sparse);
        let mut all: Vec<usize> = parts.concat();
        all.sort_unstable();
        assert_eq!(all, (0..2500).collect::<Vec<_>>());
        for part in &parts[..parts.len() - 1] {
            let (first, last) = (sparse[part[0]], sparse[part[part.len() - 1]]);
            assert!(last.end - first.start <= SPARSE_BYTES && part.len() > 20, "{}", part.len());
        }
        // Farther apart, there are no gaps in requests.
        assert!(sparse_parts(GAP, &ranges(2500, 32, GAP + 33)).is_empty());
    }

    #[test]
    fn ranges_with_few_gaps_are_fetched_at_once() {
        assert!(sparse_parts(GAP, &[]).is_empty());
        assert!(sparse_parts(GAP, &ranges(30, 32, GAP)).is_empty(), "one part");
        assert!(sparse_parts(GAP, &ranges(1000, 64 << 10, 128 << 10)).is_empty(), "half of it");
        assert!(sparse_parts(0, &ranges(1000, 64 << 10, 64 << 10)).is_empty());
        let same = vec![BlobRange { blob: Blob::numbered(7), start: 0, end: 1 << 20 }; 100];
        assert!(sparse_parts(GAP, &same).is_empty());
    }
}
