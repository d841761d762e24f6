//! Memory for decoded values.
//!
//! Large arrays are allocated directly from the system, in huge pages where available. Released memory is kept for
//! later arrays: the system clears fresh memory first, which costs as much as decompressing into it.
//!
//! The allocator alone does less: it clears what it hands out again, and its pages are small. With all arrays from mimalloc,
//! reading a million flat entries on one thread took 34 % longer uncompressed and 12 % longer with zstd, jagged columns
//! 9 %, and a stream of batches 13 %; with fresh huge pages for each array 55, 41, 22 and 34 % (medians of nine processes
//! each, in turn, November 2026, two cores).

use std::sync::{Mutex, PoisonError};

use arrow_buffer::Buffer;
use bytemuck::{AnyBitPattern, NoUninit};
use bytes::Bytes;
use memmap2::MmapMut;

use crate::{Error, Result};

/// Arrays from this size on get memory of their own, in bytes.
const OWN_BYTES: usize = 1 << 20;
/// Memory that is kept for later arrays, in bytes.
const MAX_KEPT_BYTES: usize = 256 << 20;
/// Memory of an array is a multiple of this, so that it fits others of nearly the same size, in bytes.
const STEP_BYTES: usize = 256 << 10;

static KEPT: Mutex<Vec<MmapMut>> = Mutex::new(Vec::new());

/// The values of one array in the making. Before they are set they are unspecified.
#[derive(Debug)]
pub struct ValueBuffer {
    memory: Memory,
    len_bytes: usize,
}

#[derive(Debug)]
enum Memory {
    /// In words, so that values of every width are aligned.
    Small(Vec<u64>),
    Own(OwnMemory),
}

/// Returned to the kept memory on drop.
#[derive(Debug)]
struct OwnMemory(Option<MmapMut>);

impl ValueBuffer {
    /// Room for this many bytes.
    pub fn with_len(len_bytes: usize) -> Result<Self> {
        let memory = match len_bytes {
            OWN_BYTES.. => Memory::Own(OwnMemory::of(len_bytes)?),
            _ => Memory::Small(vec![0; len_bytes.div_ceil(size_of::<u64>())]),
        };
        Ok(Self { memory, len_bytes })
    }

    /// Its bytes, aligned for every number.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        let bytes = match &mut self.memory {
            Memory::Small(words) => bytemuck::cast_slice_mut(words),
            Memory::Own(memory) => memory.0.as_deref_mut().unwrap_or_default(),
        };
        &mut bytes[..self.len_bytes]
    }

    /// The same as numbers.
    pub(super) fn numbers_mut<T: AnyBitPattern + NoUninit>(&mut self) -> &mut [T] {
        bytemuck::cast_slice_mut(self.bytes_mut())
    }

    /// Only the first bytes.
    pub fn truncate(&mut self, len_bytes: usize) {
        self.len_bytes = self.len_bytes.min(len_bytes);
    }
}

impl AsRef<[u8]> for ValueBuffer {
    fn as_ref(&self) -> &[u8] {
        let bytes = match &self.memory {
            Memory::Small(words) => bytemuck::cast_slice(words),
            Memory::Own(memory) => memory.0.as_deref().unwrap_or_default(),
        };
        &bytes[..self.len_bytes]
    }
}

impl From<ValueBuffer> for Buffer {
    fn from(values: ValueBuffer) -> Self {
        Bytes::from_owner(values).into()
    }
}

impl OwnMemory {
    fn of(len_bytes: usize) -> Result<Self> {
        let no_memory = || Error::limit(format!("cannot allocate {len_bytes} bytes of values"));
        let wanted = len_bytes.checked_next_multiple_of(STEP_BYTES).ok_or_else(no_memory)?;
        let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
        let fitting = kept.iter().enumerate().filter(|(_, memory)| (wanted..=2 * wanted).contains(&memory.len()));
        if let Some((index, _)) = fitting.min_by_key(|(_, memory)| memory.len()) {
            return Ok(Self(Some(kept.swap_remove(index))));
        }
        // Memory that does not fit is released first: reading one array after the other never holds more than two of
        // them.
        let mut given_back = 0;
        while given_back < wanted
            && let Some(memory) = kept.pop()
        {
            given_back += memory.len();
        }
        drop(kept);
        let memory = MmapMut::map_anon(wanted);
        let memory = memory.map_err(|_| no_memory())?;
        // Optional: it also works without large pages.
        #[cfg(target_os = "linux")]
        let _tried = memory.advise(memmap2::Advice::HugePage);
        Ok(Self(Some(memory)))
    }
}

impl Drop for OwnMemory {
    fn drop(&mut self) {
        let Some(memory) = self.0.take() else { return };
        let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.iter().map(|memory| memory.len()).sum::<usize>() + memory.len() <= MAX_KEPT_BYTES {
            kept.push(memory);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_used_again_and_aligned() {
        for len in [0, 1, 7, 1000, OWN_BYTES - 1, OWN_BYTES, 3 * OWN_BYTES + 5] {
            let mut values = ValueBuffer::with_len(len).unwrap();
            assert_eq!(values.bytes_mut().len(), len);
            values.bytes_mut().fill(7);
            let buffer = Buffer::from(values);
            assert_eq!(buffer.len(), len);
            assert!(buffer.iter().all(|&byte| byte == 7));
            assert_eq!(buffer.as_ptr().align_offset(align_of::<u64>()), 0);
        }
        let mut values = ValueBuffer::with_len(80).unwrap();
        values.numbers_mut::<u64>()[9] = 1;
        values.truncate(79);
        assert_eq!(Buffer::from(values).len(), 79);
    }
}
