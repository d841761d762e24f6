//! All records of a file one after the other, listed in a directory or not: a byte map (`TFile::Map`).

use super::fetched::readable;
use super::free::FreeList;
use super::recover::SEEK_END;
use super::{Attempt, FetchedRanges, Key, find_key, read_header, read_key};
use crate::wire::Cursor;
use crate::{Error, Result};

/// Bytes to fetch at each record: some records are short enough that the next one is then there too.
const HEAD_BYTES: u64 = 512;

/// One record of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Offset in the file.
    pub offset: u64,
    /// Bytes, key included.
    pub nbytes: u64,
    /// The kind of the record.
    pub kind: RecordKind,
}

/// The kinds of records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordKind {
    /// A key with its payload.
    Key(Key),
    /// Bytes that nothing uses any more.
    Gap,
}

/// A walk over all records. It remembers its place, so a missing range costs one record and not all before it.
#[derive(Debug, Clone)]
pub struct Walk {
    at: u64,
    end: u64,
    free: FreeList,
}

impl Walk {
    /// A walk over the records of a file.
    ///
    /// Gaps are known by the negative length at their start and by the free list: ROOT itself leaves gaps unmarked
    /// where a blob did not fill the one it was put into. A file without a readable free list is walked nevertheless.
    /// Key lists that are longer than their own key says are known where the directories were read before.
    ///
    /// # Errors
    /// Corrupt if this is not a ROOT file.
    pub fn new(fetched: &FetchedRanges) -> Attempt<Self> {
        let header = read_header(fetched)?;
        let free = readable(FreeList::read(fetched, &header))?.map(|(free, _)| free).unwrap_or_default();
        Ok(Self { at: header.begin, end: header.end.min(fetched.size()), free })
    }

    /// Returns the next record, or `None` after the last one.
    ///
    /// # Errors
    /// [`Interrupt::Missing`](super::Interrupt::Missing) for the next few bytes: provide them and call again. Corrupt
    /// if a record has no length or extends past the end of the file; the walk cannot continue then.
    pub fn next(&mut self, fetched: &FetchedRanges) -> Attempt<Option<Record>> {
        if self.at >= self.end {
            return Ok(None);
        }
        let bytes = fetched.get(self.at, HEAD_BYTES.min(fetched.size().saturating_sub(self.at)))?;
        let (nbytes, kind) = match self.free.bytes_at(self.at) {
            Some(nbytes) => (nbytes, RecordKind::Gap),
            None => match Cursor::new(&bytes, self.at).i32_be()? {
                length @ ..0 => (u64::from(length.unsigned_abs()), RecordKind::Gap),
                _ => {
                    let key = read_key(fetched, self.at)?;
                    let nbytes = match fetched.deviations().key_list_bytes(self.at) {
                        // Writers of such lists leave room for more keys behind them.
                        Some(actual) => {
                            let end = self.at.saturating_add(actual);
                            actual.saturating_add(zeros_before_record(fetched, end, self.end)?)
                        }
                        None => u64::from(key.nbytes),
                    };
                    (nbytes, RecordKind::Key(key))
                }
            },
        };
        let record = Record { offset: self.at, nbytes, kind };
        self.at = self.behind(&record)?;
        Ok(Some(record))
    }

    /// The offset at which the walk continues, which always increases.
    fn behind(&self, record: &Record) -> Result<u64> {
        match record.offset.checked_add(record.nbytes) {
            Some(end) if end > record.offset && end <= self.end => Ok(end),
            _ => {
                let what =
                    format!("record of {} bytes extends past the end of the file at byte {}", record.nbytes, self.end);
                Err(Error::corrupt(what).at(record.offset))
            }
        }
    }
}

/// The zero bytes from `at` to the next record or, where there is none, to `end`; 0 where other bytes follow.
fn zeros_before_record(fetched: &FetchedRanges, at: u64, end: u64) -> Attempt<u64> {
    let all = end.saturating_sub(at);
    let mut window = HEAD_BYTES;
    loop {
        let bytes = fetched.get(at, window.min(all))?;
        let zeros = bytes.iter().take_while(|&&byte| byte == 0).count();
        let is_cut = (bytes.len() as u64) < all && zeros + SEEK_END > bytes.len();
        match find_key(&bytes, at) {
            // The length at the start of a record has zeros too.
            Some(place) if place <= zeros => return Ok(place as u64),
            None if is_cut => window = window.saturating_mul(2),
            None if zeros == bytes.len() => return Ok(all),
            _ => return Ok(0),
        }
    }
}

/// Returns all records of a file. All bytes needed should already be fetched: if some are missing, the next call starts
/// again at the first record, unlike [`Walk`].
///
/// # Errors
/// As [`Walk::next`].
pub fn walk_keys(fetched: &FetchedRanges) -> Attempt<Vec<Record>> {
    let mut walk = Walk::new(fetched)?;
    let mut records = Vec::new();
    while let Some(record) = walk.next(fetched)? {
        records.push(record);
    }
    Ok(records)
}
