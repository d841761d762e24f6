//! Pages that are fetched before they are decoded.

use std::collections::HashMap;
use std::thread;

use bytes::Bytes;

use crate::Result;
use crate::plan::PageId;
use crate::pool::Waiting;
use crate::source::{BlobRange, PageStore, RequestMemory};

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
}

impl PageBatch {
    pub(crate) fn push(&mut self, id: PageId, range: BlobRange) {
        self.ids.push(id);
        self.ranges.push(range);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// Bytes of all pages.
    fn bytes(&self) -> u64 {
        self.ranges.iter().map(BlobRange::bytes).sum()
    }
}

impl FromIterator<(PageId, BlobRange)> for PageBatch {
    fn from_iter<I: IntoIterator<Item = (PageId, BlobRange)>>(pages: I) -> Self {
        let (ids, ranges) = pages.into_iter().unzip();
        Self { ids, ranges }
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

    /// Fetches a batch, and then the next one while `work` decodes the one before. Where memory does not allow for both,
    /// the next one is fetched after `work`, which is expected to release pages.
    pub(crate) fn each<T>(
        &mut self,
        batches: impl IntoIterator<Item = (PageBatch, T)>,
        mut work: impl FnMut(&mut Self, T) -> Result<()>,
    ) -> Result<()> {
        let mut batches = batches.into_iter();
        let Some((batch, mut task)) = batches.next() else { return Ok(()) };
        self.fetch(batch)?;
        loop {
            let Some((batch, next)) = batches.next() else { return work(self, task) };
            let is_ahead = !batch.is_empty() && self.memory.reserve(batch.bytes(), "sealed pages").is_ok();
            if is_ahead {
                let (store, ranges) = (self.store, &batch.ranges);
                let (done, fetched) = thread::scope(|scope| {
                    let fetching = Waiting::begin(scope, || store.fetch(ranges));
                    let done = work(self, task);
                    // Without a thread, or where it panicked, the pages are fetched now.
                    (done, fetching.and_then(Waiting::join).unwrap_or_else(|| store.fetch(ranges)))
                });
                done?;
                self.pages.extend(batch.ids.into_iter().zip(fetched?));
            } else {
                work(self, task)?;
                self.fetch(batch)?;
            }
            task = next;
        }
    }

    fn fetch(&mut self, batch: PageBatch) -> Result<()> {
        if batch.is_empty() {
            return Ok(());
        }
        self.memory.reserve(batch.bytes(), "sealed pages")?;
        let fetched = self.store.fetch(&batch.ranges)?;
        self.pages.extend(batch.ids.into_iter().zip(fetched));
        Ok(())
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
