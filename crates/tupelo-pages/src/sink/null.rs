//! A sink that stores nothing.

use std::sync::{Arc, Mutex, PoisonError};

use tupelo_format::container::AnchorLinks;
use tupelo_format::envelope::EnvelopeType;
use tupelo_format::locator::Locator;

use super::{PageBytes, PageSink, Stored};
use crate::Result;

/// Counts bytes and drops them: what remains is the cost of encoding and compression.
#[derive(Debug, Default)]
pub struct NullSink {
    position: Mutex<u64>,
}

impl NullSink {
    fn put(&self, stored_bytes: u64, bytes: u64) -> Locator {
        let mut position = self.position.lock().unwrap_or_else(PoisonError::into_inner);
        let offset = *position;
        *position += stored_bytes;
        Locator::File { offset, bytes }
    }
}

impl PageSink for NullSink {
    fn name(&self) -> &str {
        "null sink"
    }
    fn check_open(&self) -> Result<()> {
        Ok(())
    }
    fn position(&self) -> Result<u64> {
        Ok(*self.position.lock().unwrap_or_else(PoisonError::into_inner))
    }
    fn begin(&self, _: &str, _: &str, _: Option<u16>) -> Result<()> {
        Ok(())
    }
    fn attribute_set(self: Arc<Self>) -> Arc<dyn PageSink> {
        self
    }
    fn put_pages(&self, _: u64, pages: &[PageBytes<'_>]) -> Result<Vec<Locator>> {
        Ok(pages.iter().map(|page| self.put(page.bytes.len() as u64, page.stored_bytes())).collect())
    }
    fn put_envelope(&self, _: EnvelopeType, envelope: &[u8]) -> Result<Locator> {
        let bytes = envelope.len() as u64;
        Ok(self.put(bytes, bytes))
    }
    fn put_anchor(&self, _: &str, _: &AnchorLinks) -> Result<(Locator, u32)> {
        Ok((self.put(0, 0), 0))
    }
    fn publish(&self, _: &str, _: &str, _: &AnchorLinks) -> Result<()> {
        Ok(())
    }
    fn release(&self, _: Stored) {}
    fn checkpoint(&self) -> Result<()> {
        Ok(())
    }
    fn end(&self, _: &str) {}
    fn abandon(&self, _: &str) -> Result<()> {
        Ok(())
    }
    fn reported(&self) {}
}
