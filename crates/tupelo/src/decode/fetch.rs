//! Pages that are fetched before they are decoded.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::thread;

use bytes::Bytes;

use crate::Result;
use crate::plan::{PageId, requests};
use crate::pool::Waiting;
use crate::source::{BlobRange, CONCURRENT_FETCHES, PageStore, RequestMemory};

/// No other batch is fetched while this number of requests is in flight.
const MAX_REQUESTS: u64 = 512;

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
            None => store.fetch(&self.ranges)?,
        };
        Ok(self.ids.into_iter().zip(fetched))
    }
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

    /// Begins to fetch the pages on another thread.
    fn begin<'s, 'e: 's>(self, scope: &'s thread::Scope<'s, 'e>, store: &'e dyn PageStore) -> Ahead<'s> {
        let (requests, ranges) = (requests(store.hints(), &self.ranges), Arc::<[BlobRange]>::from(self.ranges));
        let own = Arc::clone(&ranges);
        let fetching = match ranges.is_empty() {
            true => None,
            false => Waiting::begin(scope, move || store.fetch(&own)),
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

    /// Whether a page has to be fetched.
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

    /// Reserves the memory of a batch, if there is so much.
    fn reserves(&self, batch: &PageBatch) -> bool {
        batch.is_empty() || self.memory.reserve(batch.bytes(), "sealed pages").is_ok()
    }

    /// Gives up a page that was fetched.
    pub(crate) fn release(&mut self, id: PageId) {
        if let Some(bytes) = self.pages.remove(&id) {
            self.memory.release(bytes.len() as u64);
        }
    }

    /// Gives up all pages.
    pub(crate) fn release_all(&mut self) {
        let bytes = self.pages.drain().map(|(_, bytes)| bytes.len() as u64).sum();
        self.memory.release(bytes);
    }
}
