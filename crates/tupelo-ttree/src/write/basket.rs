//! Baskets that are being filled, and their records (`TBasket::WriteBuffer`, `TBasket::Streamer`).

use std::ops::Range;

use arrow_array::Array;
use tupelo_format::container::streamed_key;
use tupelo_format::wire::Buffer;
use tupelo_format::{Error, Result};

use super::classes::{BASKET, BASKET_HEAD_BYTES, basket_key_bytes};
use super::{Branch, Encoding};
use crate::basket::{MAX_BASKET_BYTES, StoredEntries};

/// The place of what is added to the numbers of processes in a key of 64-bit offsets: the upper bits of the parent's.
const PROCESS_OFFSET: Range<usize> = 26..28;
/// Version of the class `TBasket`.
const VERSION: u16 = 3;

/// Values of some entries of a branch, not compressed.
#[derive(Debug, Clone)]
pub struct OpenBasket {
    data: Vec<u8>,
    /// Where entries begin in the data, if their lengths differ.
    positions: Vec<u32>,
    entries: u32,
    /// Bytes of every entry; `None` if they differ.
    entry_bytes: Option<usize>,
    key_bytes: u16,
    /// What is added to the numbers of the processes of its objects (`TKey::fPidOffset`).
    process_offset: u16,
}

/// A full basket.
#[derive(Debug, Clone)]
pub struct FinishedBasket {
    /// Values, then positions of entries.
    pub object: Vec<u8>,
    /// Number of entries.
    pub entries: u32,
    /// Bytes of key and head.
    pub key_bytes: u16,
    /// Bytes of the values.
    data_bytes: u32,
    entry_bytes: Option<usize>,
    process_offset: u16,
}

impl OpenBasket {
    /// An empty basket of a branch.
    pub fn new(branch: &Branch) -> Self {
        let entry_bytes = if branch.has_positions() { None } else { branch.entry_bytes() };
        Self::empty(entry_bytes, branch.key_bytes)
    }

    fn empty(entry_bytes: Option<usize>, key_bytes: u16) -> Self {
        Self { data: Vec::new(), positions: Vec::new(), entries: 0, entry_bytes, key_bytes, process_offset: 0 }
    }

    /// An empty basket of a branch, for entries as they are stored in other baskets.
    ///
    /// # Errors
    /// Limit for names longer than keys can hold.
    pub fn of_stored(tree: &str, branch: &str) -> Result<Self> {
        Ok(Self::empty(None, basket_key_bytes(tree, branch)?))
    }

    /// Appends entries as they are stored until the basket is full, at least one, or none to a basket of entries in another
    /// form. Returns how many, and whether it is full, as [`OpenBasket::append`].
    ///
    /// # Errors
    /// Corrupt for entries that are not in the stored ones; limit for a single entry above [`MAX_BASKET_BYTES`].
    pub fn append_stored(
        &mut self,
        stored: &StoredEntries,
        range: Range<usize>,
        basket_bytes: usize,
    ) -> Result<(usize, bool)> {
        let form = (stored.entry_bytes(), stored.process_offset());
        if self.entries == 0 {
            (self.entry_bytes, self.process_offset) = form;
        } else if (self.entry_bytes, self.process_offset) != form {
            return Ok((0, true));
        }
        let room = basket_bytes.saturating_sub(self.key_bytes.into());
        let all = range.len();
        for (taken, index) in range.enumerate() {
            let entry = stored.entry(index).ok_or_else(|| Error::corrupt(format!("entry {index} is missing")))?;
            let start = self.data.len();
            if (start + entry.len()) as u64 > MAX_BASKET_BYTES / 2 {
                return Err(too_long(entry.len()));
            }
            self.data.extend_from_slice(entry);
            let moved = self.data.get_mut(start..).unwrap_or_default();
            stored.move_references(index, moved, start as u32 + u32::from(self.key_bytes));
            if self.entry_bytes.is_none() {
                self.positions.push(start as u32);
            }
            self.entries += 1;
            if self.data.len() + 8 * self.positions.len() + entry.len() >= room && !self.data.is_empty() {
                return Ok((taken + 1, true));
            }
        }
        Ok((all, false))
    }

    /// Number of entries.
    pub fn entries(&self) -> u32 {
        self.entries
    }

    /// Bytes of the values.
    pub fn data_bytes(&self) -> usize {
        self.data.len()
    }

    /// Appends values until the basket is full, at least one. Returns how many, and whether it is full: whether another
    /// entry like the last one might not fit into `basket_bytes` with key and positions (`TBranch::FillImpl`).
    ///
    /// # Errors
    /// As [`Encoding::put`]; limit for a single entry above [`MAX_BASKET_BYTES`].
    pub fn append(
        &mut self,
        encoding: &Encoding,
        array: &dyn Array,
        range: Range<usize>,
        basket_bytes: usize,
    ) -> Result<(usize, bool)> {
        let room = basket_bytes.saturating_sub(self.key_bytes.into());
        match self.entry_bytes {
            Some(width) => {
                if width as u64 > MAX_BASKET_BYTES / 2 {
                    return Err(too_long(width));
                }
                let left = room.saturating_sub(self.data.len()).saturating_sub(width);
                let fitting = left.div_ceil(width.max(1)).max(1);
                let count = range.len().min(fitting);
                encoding.put(array, range.start..range.start + count, &mut self.data)?;
                self.entries += count as u32;
                Ok((count, self.data.len() + width >= room && width > 0))
            }
            None => {
                let all = range.len();
                for (taken, index) in range.enumerate() {
                    let start = self.data.len();
                    encoding.put(array, index..index + 1, &mut self.data)?;
                    if self.data.len() as u64 > MAX_BASKET_BYTES / 2 {
                        let bytes = self.data.len() - start;
                        self.data.truncate(start);
                        return Err(too_long(bytes));
                    }
                    self.positions.push(start as u32);
                    self.entries += 1;
                    let end = self.data.len();
                    if end + 8 * self.positions.len() + (end - start) >= room {
                        return Ok((taken + 1, true));
                    }
                }
                Ok((all, false))
            }
        }
    }

    /// Ends the basket and begins the next one.
    pub fn finish(&mut self) -> FinishedBasket {
        let next = Self { data: Vec::new(), positions: Vec::new(), entries: 0, ..*self };
        let Self { data, positions, entries, entry_bytes, key_bytes, process_offset } = std::mem::replace(self, next);
        let data_bytes = data.len() as u32;
        let mut object = Buffer::from(data);
        if entry_bytes.is_none() {
            object.u32_be(entries + 1);
            positions.iter().for_each(|position| object.u32_be(position + u32::from(key_bytes)));
            // ROOT has room for one more and leaves it at zero.
            object.u32_be(0);
        }
        FinishedBasket { object: object.into_vec(), entries, key_bytes, data_bytes, entry_bytes, process_offset }
    }
}

#[cold]
fn too_long(bytes: usize) -> Error {
    Error::limit(format!("entry of {bytes} bytes exceeds the limit of {}", MAX_BASKET_BYTES / 2))
}

impl FinishedBasket {
    /// Key and head in front of a payload of `payload_bytes` at a place in the file.
    ///
    /// # Errors
    /// Limit for lengths that do not fit in keys.
    pub fn head(&self, at: u64, tree: &str, branch: &str, payload_bytes: usize, datime: u32) -> Result<Vec<u8>> {
        let [head, object] = [usize::from(BASKET_HEAD_BYTES), self.object.len()];
        let mut key = streamed_key(at, [BASKET, branch, tree], [payload_bytes + head, object], datime)?;
        // The length of the key includes the head.
        if let Some(place) = key.get_mut(14..16) {
            place.copy_from_slice(&self.key_bytes.to_be_bytes());
        }
        // The offset of the parent is short.
        if let Some(place) = key.get_mut(PROCESS_OFFSET) {
            place.copy_from_slice(&self.process_offset.to_be_bytes());
        }
        let mut out = Buffer::from(key);
        let last = u32::from(self.key_bytes) + self.data_bytes;
        out.u16_be(VERSION);
        out.u32_be(last);
        out.u32_be(self.entry_bytes.map_or(self.entries + 1, |bytes| bytes as u32));
        out.u32_be(self.entries);
        out.u32_be(last);
        // Neither positions nor values follow in the head.
        out.u8(0);
        Ok(out.into_vec())
    }
}
