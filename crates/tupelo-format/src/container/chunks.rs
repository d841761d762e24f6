//! Payloads that are too long for one key and are split over several blobs.
//!
//! The first chunk is filled up to the limit: payload, then the 64-bit little-endian offsets of all other chunks
//! (`RNTupleFileWriter::WriteBlob`, `ComputeNumChunks` in `RMiniFile.cxx`).

use std::ops::Range;

use bytes::Bytes;

use super::fetched::together;
use super::{Attempt, FetchedRanges};
use crate::wire::Cursor;
use crate::{Error, Result};

/// Bytes of one entry of the table of offsets.
const OFFSET_BYTES: u64 = 8;

/// Memory that a chunk takes while its payload is put together, in bytes.
const CHUNK_MEMORY: u64 = 96;

/// How one payload is split.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunks {
    /// The first bytes of the payload.
    pub first: Range<u64>,
    /// The table of the offsets of the other chunks, right after them.
    pub table: Range<u64>,
    rest_bytes: u64,
    max_bytes: u64,
}

impl Chunks {
    /// How `nbytes` of payload at `offset` are split if a key holds at most `max_key_size` bytes; `None` if they are
    /// not split. The caller has checked that the file has `nbytes` bytes.
    ///
    /// # Errors
    /// Corrupt if the table of offsets would not fit into the first chunk.
    pub fn split(offset: u64, nbytes: u64, max_key_size: u64) -> Result<Option<Self>> {
        if max_key_size == 0 || nbytes <= max_key_size {
            return Ok(None);
        }
        let others = nbytes.div_ceil(max_key_size) - 1;
        let tail = nbytes % max_key_size;
        let extra = if tail > 0 { max_key_size - tail } else { 0 };
        let wrong =
            || Error::corrupt(format!("{nbytes} bytes cannot be split into keys of {max_key_size} bytes")).at(offset);
        let table_bytes = others.checked_mul(OFFSET_BYTES).ok_or_else(wrong)?;
        // The table takes place from the payload, which may push its end into one more chunk.
        let table_bytes = if table_bytes > extra { table_bytes.saturating_add(OFFSET_BYTES) } else { table_bytes };
        let first_bytes = max_key_size.checked_sub(table_bytes).ok_or_else(wrong)?;
        let first = offset..offset.checked_add(first_bytes).ok_or_else(wrong)?;
        let table = first.end..offset.checked_add(max_key_size).ok_or_else(wrong)?;
        Ok(Some(Self { first, table, rest_bytes: nbytes.saturating_sub(first_bytes), max_bytes: max_key_size }))
    }

    /// Number of chunks after the first one.
    pub fn others(&self) -> u64 {
        (self.table.end - self.table.start) / OFFSET_BYTES
    }

    /// Payload bytes of each chunk after the first one, in order.
    pub fn other_bytes(&self) -> impl Iterator<Item = u64> + use<> {
        let (max_bytes, rest_bytes) = (self.max_bytes, self.rest_bytes);
        (0..self.others()).map(move |i| rest_bytes.saturating_sub(i.saturating_mul(max_bytes)).min(max_bytes))
    }

    /// The ranges of the chunks after the first one, from the bytes of the table.
    ///
    /// # Errors
    /// Corrupt where a chunk would not lie inside a file of `file_size` bytes.
    pub fn ranges(&self, table: &[u8], file_size: u64) -> Result<Vec<Range<u64>>> {
        let mut cursor = Cursor::new(table, self.table.start);
        let others = usize::try_from(self.others()).unwrap_or(usize::MAX);
        let mut ranges = cursor.reserve(others, OFFSET_BYTES as usize)?;
        for bytes in self.other_bytes() {
            let at = cursor.offset();
            let start = cursor.u64_le()?;
            match start.checked_add(bytes) {
                Some(end) if start > 0 && end <= file_size => ranges.push(start..end),
                _ => {
                    return Err(
                        Error::corrupt(format!("chunk of {bytes} bytes at byte {start} is outside the file")).at(at)
                    );
                }
            }
        }
        Ok(ranges)
    }
}

/// The payload at `offset`, joined where it was split because of `max_key_size` (0 for never).
///
/// # Errors
/// Corrupt where it does not lie inside the file.
pub fn payload(fetched: &FetchedRanges, offset: u64, nbytes: u64, max_key_size: u64) -> Attempt<Bytes> {
    let Some(chunks) = Chunks::split(offset, nbytes, max_key_size)? else {
        return fetched.get(offset, nbytes);
    };
    if nbytes > fetched.size() {
        let what = format!("expected {nbytes} bytes in a file of {} bytes", fetched.size());
        return Err(Error::corrupt(what).at(offset).into());
    }
    let table = fetched.get(chunks.table.start, chunks.table.end - chunks.table.start)?;
    // Range, place among the missing and piece of every chunk; then all of them joined.
    fetched.memory().take(chunks.others().saturating_mul(CHUNK_MEMORY).saturating_add(nbytes), "chunks")?;
    let mut ranges = chunks.ranges(&table, fetched.size())?;
    ranges.insert(0, chunks.first);
    let parts = together(ranges.into_iter().map(|range| fetched.get(range.start, range.end - range.start)))?;
    Ok(Bytes::from(parts.concat()))
}

#[cfg(test)]
mod tests {
    use super::super::Interrupt;
    use super::*;

    /// Writes as `RNTupleFileWriter::WriteBlob` does (without the keys) and returns the file and the offset.
    fn split(payload: &[u8], max: usize) -> (Vec<u8>, u64) {
        let mut file = vec![0xee; 10];
        let chunks = Chunks::split(0, payload.len() as u64, max as u64).unwrap().unwrap();
        let (first, mut rest) = payload.split_at(chunks.first.end as usize);
        let mut table = Vec::new();
        for bytes in chunks.other_bytes() {
            table.push(file.len() as u64);
            let (chunk, behind) = rest.split_at(bytes as usize);
            assert!(!chunk.is_empty());
            file.extend_from_slice(chunk);
            file.push(0xee);
            rest = behind;
        }
        assert!(rest.is_empty());
        let offset = file.len() as u64;
        file.extend_from_slice(first);
        let mut buffer = crate::wire::Buffer::new();
        table.iter().for_each(|&at| buffer.u64_le(at));
        file.extend_from_slice(buffer.as_slice());
        assert_eq!(file.len() as u64, offset + max as u64);
        (file, offset)
    }

    #[test]
    fn every_split_joins() {
        for max in [16usize, 64, 100, 256] {
            for nbytes in max + 1..max * 5 {
                let payload_bytes: Vec<u8> = (0..nbytes).map(|i| i as u8).collect();
                if Chunks::split(0, nbytes as u64, max as u64).is_err() {
                    assert_eq!(max, 16);
                    continue;
                }
                let (file, offset) = split(&payload_bytes, max);
                let mut fetched = FetchedRanges::new(file.len() as u64);
                let mut rounds = 0;
                let joined = loop {
                    match payload(&fetched, offset, nbytes as u64, max as u64) {
                        Ok(joined) => break joined,
                        Err(Interrupt::Missing(ranges)) => ranges.into_iter().for_each(|range| {
                            let bytes = file[range.start as usize..range.end as usize].to_vec();
                            fetched.provide(range.start, bytes.into());
                        }),
                        Err(Interrupt::Failed(error)) => panic!("{error}"),
                    }
                    rounds += 1;
                    assert!(rounds <= 2);
                };
                assert_eq!(joined, payload_bytes);
            }
        }
    }

    #[test]
    fn nonsense_is_refused() {
        assert_eq!(Chunks::split(100, 50, 50), Ok(None));
        assert_eq!(Chunks::split(100, u64::MAX, 0), Ok(None));
        for max in [1, 7, 8, 9, 16] {
            assert!(Chunks::split(100, 1000, max).is_err());
        }
        assert!(Chunks::split(u64::MAX - 5, 1 << 40, 1 << 30).is_err());
        assert!(Chunks::split(100, u64::MAX, 1 << 30).is_err());
        assert!(Chunks::split(100, u64::MAX, u64::MAX - 1).is_err());
        let mut fetched = FetchedRanges::new(1000);
        fetched.provide(0, Bytes::from(vec![0xff; 1000]));
        assert!(matches!(payload(&fetched, 100, 900, 300), Err(Interrupt::Failed(_))));
        assert!(matches!(payload(&fetched, 100, 1001, 1000), Err(Interrupt::Failed(_))));
    }

    #[test]
    fn a_table_that_just_fits_takes_no_chunk_more() {
        // The last chunk has eight bytes left, which are those that the table takes from the first.
        let chunks = Chunks::split(0, 120, 64).unwrap().unwrap();
        assert_eq!((chunks.first.clone(), chunks.others()), (0..56, 1));
        assert_eq!(chunks.other_bytes().collect::<Vec<_>>(), [64]);
        let range = |at: u64| chunks.ranges(&at.to_le_bytes(), 1000).map(|ranges| ranges[0].clone());
        assert_eq!((range(1), range(936)), (Ok(1..65), Ok(936..1000)));
        assert!(range(0).is_err() && range(937).is_err());
    }

    #[test]
    fn chunks_cannot_make_more_of_a_file_than_it_has() {
        let mut file = vec![7; 1000];
        // Every chunk is the same hundred bytes.
        let mut whole = |nbytes: u64| {
            let chunks = Chunks::split(100, nbytes, 100).unwrap().unwrap();
            for at in (chunks.table.start..chunks.table.end).step_by(8) {
                file[at as usize..at as usize + 8].copy_from_slice(&300u64.to_le_bytes());
            }
            let mut fetched = FetchedRanges::new(1000);
            fetched.provide(0, Bytes::from(file.clone()));
            payload(&fetched, 100, nbytes, 100).map(|bytes| bytes.len())
        };
        assert_eq!(whole(1000), Ok(1000));
        assert!(matches!(whole(1001), Err(Interrupt::Failed(_))));
    }
}
