//! A sink that keeps objects in memory, as an object store would: for tests of everything above sinks.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tupelo_format::container::AnchorLinks;
use tupelo_format::envelope::EnvelopeType;
use tupelo_format::locator::Locator;

use super::{PageBytes, PageSink, Stored};
use crate::{Error, Result};

/// Stores each page and envelope as an object with a number.
#[derive(Debug, Default)]
pub struct MemorySink(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    objects: BTreeMap<u64, Vec<u8>>,
    next: u64,
    stored_bytes: u64,
    open: Vec<String>,
    published: BTreeMap<String, AnchorLinks>,
    checkpoints: usize,
}

impl MemorySink {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, bytes: &[u8], stored_bytes: u64) -> Locator {
        let mut state = self.state();
        let location = state.next;
        state.next += 1;
        state.stored_bytes += bytes.len() as u64;
        state.objects.insert(location, bytes.to_vec());
        Locator::Object { location, bytes: stored_bytes }
    }

    /// The object of a locator.
    pub fn object(&self, locator: &Locator) -> Vec<u8> {
        let Locator::Object { location, .. } = locator else { panic!("{locator}") };
        self.state().objects[location].clone()
    }

    /// The number of objects.
    pub fn objects(&self) -> usize {
        self.state().objects.len()
    }

    /// The links that were published last under a path.
    pub fn published(&self, path: &str) -> AnchorLinks {
        self.state().published[path]
    }

    /// The ntuples that are not finished.
    pub fn open(&self) -> Vec<String> {
        self.state().open.clone()
    }

    /// How often a checkpoint was made.
    pub fn checkpoints(&self) -> usize {
        self.state().checkpoints
    }
}

impl PageSink for MemorySink {
    fn name(&self) -> &str {
        "memory sink"
    }
    fn check_open(&self) -> Result<()> {
        Ok(())
    }
    fn position(&self) -> Result<u64> {
        Ok(self.state().stored_bytes)
    }
    fn begin(&self, path: &str, _: &str, _: Option<u16>) -> Result<()> {
        self.state().open.push(path.to_owned());
        Ok(())
    }
    fn attribute_set(self: Arc<Self>) -> Arc<dyn PageSink> {
        self
    }
    fn put_pages(&self, _: u64, pages: &[PageBytes<'_>]) -> Result<Vec<Locator>> {
        Ok(pages.iter().map(|page| self.put(page.bytes, page.stored_bytes())).collect())
    }
    fn put_envelope(&self, _: EnvelopeType, envelope: &[u8]) -> Result<Locator> {
        Ok(self.put(envelope, envelope.len() as u64))
    }
    fn put_anchor(&self, name: &str, links: &AnchorLinks) -> Result<(Locator, u32)> {
        let text = format!("{name}: {links:?}");
        Ok((self.put(text.as_bytes(), text.len() as u64), text.len() as u32))
    }
    fn publish(&self, path: &str, _: &str, links: &AnchorLinks) -> Result<()> {
        self.state().published.insert(path.to_owned(), *links);
        Ok(())
    }
    fn release(&self, stored: Stored) {
        let locators = match stored {
            Stored::Envelope(locator) | Stored::Anchor(locator) => vec![locator],
            Stored::Pages(first, last) => vec![first.locator, last.locator],
        };
        for locator in locators {
            let Locator::Object { location, .. } = locator else { panic!("{locator}") };
            self.state().objects.remove(&location);
        }
    }
    fn checkpoint(&self) -> Result<()> {
        self.state().checkpoints += 1;
        Ok(())
    }
    fn end(&self, path: &str) {
        self.state().open.retain(|open| open != path);
    }
    fn abandon(&self, path: &str) -> Result<()> {
        Err(Error::unsupported(path))
    }
    fn reported(&self) {}
}
