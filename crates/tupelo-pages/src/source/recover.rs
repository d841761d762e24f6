//! Recovery of damaged files: the keys of their records, and the file as it would be with other directories.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use tupelo_format::container::{self, Key, Rule};
use tupelo_format::wire::Memory;
use tupelo_storage::ByteSource;

use super::File;
use crate::Result;

/// Bytes that are read at a record, which is enough for most keys.
const HEAD_BYTES: u64 = 512;
/// In gaps, the next record is searched for in pieces of this size.
const SEARCH_BYTES: u64 = 4 << 20;
/// A key that lies on the border of two pieces must be in one of them as a whole.
const OVERLAP_BYTES: u64 = 64;
/// Memory of a key that was found, in bytes.
const KEY_MEMORY: u64 = 1024;

impl File {
    /// The same file with directories rebuilt from its keys, unless its directories lead to objects, and without streamer info
    /// that is damaged.
    ///
    /// # Errors
    /// Corrupt if this is not a ROOT file; limit if the keys exceed the memory budget.
    pub fn recovered(self) -> Result<Self> {
        let file = if self.attempt(container::is_listed)? { self } else { self.with_rebuilt_directories()? };
        match file.attempt(container::without_damaged_streamer_info)? {
            Some(patch) => file.patched(vec![patch], Rule::LostStreamerInfo),
            None => Ok(file),
        }
    }

    fn with_rebuilt_directories(self) -> Result<Self> {
        let memory = Memory::new(self.session.budget().left());
        let keep = |key: &Key| match container::is_recoverable(key) {
            true => Ok(memory.take(KEY_MEMORY, "keys of the file").map(|()| true)?),
            false => Ok(false),
        };
        let keys = scan(&*self.source, keep)?;
        let (state, count) = self.attempt(|fetched| container::recovered(fetched, &keys))?;
        self.patched(state.patches, Rule::Recovered { keys: count })
    }

    /// The file as it would be with some bytes overwritten, because it breaks a rule.
    fn patched(self, patches: Vec<(u64, Vec<u8>)>, rule: Rule) -> Result<Self> {
        let source = Arc::new(Overlay::new(self.source.clone(), patches)?);
        let file = Self::open(source)?.with_memory_budget(self.session.budget().limit_bytes());
        let file = Self { others: self.others, ..file };
        // The others are found again if they are left.
        let known = self.session.deviations().list().into_iter().map(|known| known.rule);
        let recovered = known.filter(|known| matches!(known, Rule::Recovered { .. }));
        recovered.chain([rule]).for_each(|rule| file.session.deviations().add(0, rule));
        Ok(file)
    }
}

/// The keys of all records that `keep` wants, one behind the other; where there is none, the next one that knows its
/// place.
pub fn scan(source: &dyn ByteSource, mut keep: impl FnMut(&Key) -> Result<bool>) -> Result<Vec<Key>> {
    let size = source.size()?;
    let mut keys = Vec::new();
    let mut window = Window::default();
    let mut at = container::BEGIN;
    while at < size {
        let head = window.bytes(source, at..(at + HEAD_BYTES).min(size), size)?;
        let key = Key::read(&head, at).or_else(|error| match head.get(14..16) {
            // Long names: the key says how long it is.
            Some(&[high, low]) => {
                let key_bytes = u64::from(u16::from_be_bytes([high, low]));
                let whole = window.bytes(source, at..(at + key_bytes).min(size), size).map_err(|_| error)?;
                Key::read(&whole, at)
            }
            _ => Err(error),
        });
        match key {
            Ok(key) if key.seek_key == at && at + u64::from(key.nbytes) <= size => {
                at += u64::from(key.nbytes);
                if keep(&key)? {
                    keys.push(key);
                }
            }
            _ if gap(&head).is_some_and(|bytes| at + bytes <= size) => at += gap(&head).unwrap_or(size),
            _ => match window.next_key(source, at + 1, size)? {
                Some(next) => at = next,
                None => break,
            },
        }
    }
    Ok(keys)
}

/// Bytes of a gap, which ROOT marks by its negative length.
fn gap(head: &[u8]) -> Option<u64> {
    let length = i32::from_be_bytes(*head.first_chunk()?);
    (length < -4).then_some(u64::from(length.unsigned_abs()))
}

/// A piece of the file in which keys are looked for.
#[derive(Default)]
struct Window {
    start: u64,
    bytes: Bytes,
}

impl Window {
    /// Bytes of the file. Those of places near each other are read together.
    fn bytes(&mut self, source: &dyn ByteSource, range: Range<u64>, size: u64) -> tupelo_storage::Result<Bytes> {
        if range.start < self.start || range.end > self.start + self.bytes.len() as u64 {
            let is_near = range.start < self.start + SEARCH_BYTES;
            let end = if is_near { range.end.max(range.start + SEARCH_BYTES).min(size) } else { range.end };
            self.bytes = source.read_range(range.start..end)?;
            self.start = range.start;
        }
        Ok(self.bytes.slice((range.start - self.start) as usize..(range.end - self.start) as usize))
    }

    fn next_key(&mut self, source: &dyn ByteSource, mut at: u64, size: u64) -> Result<Option<u64>> {
        while at < size {
            let end = self.start + self.bytes.len() as u64;
            // What begins before the overlap lies in the window as a whole.
            let covered = if end == size { size } else { end.saturating_sub(OVERLAP_BYTES) };
            if at < self.start || at >= covered {
                self.bytes = source.read_range(at..(at + SEARCH_BYTES + OVERLAP_BYTES).min(size))?;
                self.start = at;
                continue;
            }
            if let Some(place) = container::find_key(&self.bytes[(at - self.start) as usize..], at) {
                return Ok(Some(at + place as u64));
            }
            at = covered;
        }
        Ok(None)
    }
}

/// A file as it would be with some bytes overwritten, and others appended.
#[derive(Debug)]
pub struct Overlay {
    inner: Arc<dyn ByteSource>,
    inner_size: u64,
    /// By offset; they do not overlap.
    patches: Vec<(u64, Vec<u8>)>,
}

impl Overlay {
    /// The bytes of `inner`, with patches at offsets.
    pub fn new(inner: Arc<dyn ByteSource>, mut patches: Vec<(u64, Vec<u8>)>) -> Result<Self> {
        patches.sort_unstable_by_key(|(offset, _)| *offset);
        Ok(Self { inner_size: inner.size()?, inner, patches })
    }

    /// The patches that touch a range.
    fn touching(&self, range: &Range<u64>) -> &[(u64, Vec<u8>)] {
        let first = self.patches.partition_point(|(offset, patch)| offset + patch.len() as u64 <= range.start);
        let behind = self.patches.partition_point(|(offset, _)| *offset < range.end);
        &self.patches[first..behind.max(first)]
    }
}

impl fmt::Display for Overlay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl ByteSource for Overlay {
    fn size(&self) -> tupelo_storage::Result<u64> {
        let end = self.patches.last().map_or(0, |(offset, patch)| offset + patch.len() as u64);
        Ok(self.inner_size.max(end))
    }

    fn hints(&self) -> tupelo_storage::Hints {
        self.inner.hints()
    }

    fn reads_in_place(&self, range: &Range<u64>) -> bool {
        self.inner.reads_in_place(range)
    }

    fn read_range(&self, range: Range<u64>) -> tupelo_storage::Result<Bytes> {
        let known = range.start.min(self.inner_size)..range.end.min(self.inner_size);
        let bytes = self.inner.read_range(known)?;
        let patches = self.touching(&range);
        if patches.is_empty() {
            return Ok(bytes);
        }
        let mut bytes = bytes.to_vec();
        bytes.resize((range.end - range.start) as usize, 0);
        for (offset, patch) in patches {
            let (start, end) = (range.start.max(*offset), range.end.min(offset + patch.len() as u64));
            let (to, from) = ((start - range.start) as usize, (start - offset) as usize);
            let len = (end - start) as usize;
            bytes[to..to + len].copy_from_slice(&patch[from..from + len]);
        }
        Ok(bytes.into())
    }
}
