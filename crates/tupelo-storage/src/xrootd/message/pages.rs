//! Pages with checksums: the responses to `kXR_pgread`.

use std::ops::Range;

use bytes::BytesMut;

use super::{Chunk, Malformed};

/// Size of a page. Pages are aligned in the file: the first and the last one of a request may be shorter.
pub const PAGE_BYTES: u64 = 4096;
/// Size of the checksum before each page.
const CHECKSUM_BYTES: usize = 4;

/// Maximum number of gaps and of damaged pages: servers send pages almost in order, and damage few.
const MAX_RANGES: usize = 1024;

/// Collects the pages of a range, in any order.
#[derive(Debug)]
pub struct PageBuffer {
    start: u64,
    bytes: BytesMut,
    /// The ranges not received yet, by ascending start.
    missing: Vec<Range<u64>>,
    /// Pages with wrong checksums.
    damaged: Vec<Range<u64>>,
}

impl PageBuffer {
    /// A buffer for the range of a request, in memory that may already be there.
    pub fn new(chunk: Chunk, mut bytes: BytesMut) -> Self {
        let range = chunk.offset..chunk.offset.saturating_add(chunk.len.into());
        bytes.resize(chunk.len as usize, 0);
        Self { start: chunk.offset, bytes, missing: vec![range], damaged: Vec::new() }
    }

    /// The size of the page that begins at an offset; at most `left` bytes follow, including its checksum.
    pub fn unit_bytes(at: u64, left: usize) -> usize {
        left.min((PAGE_BYTES - at % PAGE_BYTES) as usize + CHECKSUM_BYTES)
    }

    /// Adds pages that begin at `offset` of the file, each after its checksum.
    ///
    /// # Errors
    /// [`Malformed`] for pages that were not requested or were already received.
    pub fn add(&mut self, offset: u64, mut wire: &[u8]) -> Result<(), Malformed> {
        let mut at = offset;
        while let Some((checksum, rest)) = wire.split_first_chunk::<CHECKSUM_BYTES>() {
            let (page, rest) = rest.split_at(Self::unit_bytes(at, wire.len()) - CHECKSUM_BYTES);
            self.put(at, page)?;
            if crc32c::crc32c(page) != u32::from_be_bytes(*checksum) {
                if self.damaged.len() >= MAX_RANGES {
                    return Err(Malformed::new("the server sent too many pages with wrong checksums"));
                }
                self.damaged.push(at..at + page.len() as u64);
            }
            at += page.len() as u64;
            wire = rest;
        }
        if wire.is_empty() { Ok(()) } else { Err(Malformed::new("the server sent a page without its checksum")) }
    }

    /// Puts a page where one is missing, without a checksum.
    ///
    /// # Errors
    /// [`Malformed`] for a page that was not requested or was already received.
    pub fn put(&mut self, offset: u64, page: &[u8]) -> Result<(), Malformed> {
        let index = offset.checked_sub(self.start).and_then(|index| usize::try_from(index).ok());
        let place = index.and_then(|index| self.bytes.get_mut(index..index.checked_add(page.len())?));
        let place = place.filter(|_| !page.is_empty()).ok_or_else(|| unexpected(offset))?;
        place.copy_from_slice(page);
        self.received(offset..offset + page.len() as u64)
    }

    /// Takes a range out of what is missing, which must have all of it.
    fn received(&mut self, range: Range<u64>) -> Result<(), Malformed> {
        let contains = |gap: &Range<u64>| gap.start <= range.start && range.end <= gap.end;
        let Some(index) = self.missing.iter().position(contains) else { return Err(unexpected(range.start)) };
        if self.missing.len() > MAX_RANGES {
            return Err(Malformed::new("the server sent pages in too many parts"));
        }
        let gap = self.missing.remove(index);
        let parts = [range.end..gap.end, gap.start..range.start];
        parts.into_iter().filter(|part| !part.is_empty()).for_each(|part| self.missing.insert(index, part));
        Ok(())
    }

    /// The ranges to read again, because their checksums are wrong.
    pub fn take_damaged(&mut self) -> Vec<Range<u64>> {
        let damaged = std::mem::take(&mut self.damaged);
        self.missing.extend(damaged.iter().cloned());
        damaged
    }

    /// Number of bytes that were received.
    pub fn received_bytes(&self) -> u64 {
        self.bytes.len() as u64 - self.missing.iter().map(|gap| gap.end - gap.start).sum::<u64>()
    }

    /// The bytes of the range, if all were received.
    pub fn finish(self) -> Option<BytesMut> {
        (self.missing.is_empty() && self.damaged.is_empty()).then_some(self.bytes)
    }
}

#[cold]
fn unexpected(at: u64) -> Malformed {
    Malformed::new(format!("the server sent a page at {at}, which was not requested"))
}
