//! The first bytes of a ROOT file (`TFile::WriteHeader`).

mod other;

use std::ops::Range;

use other::kind_of;

use super::{Attempt, FetchedRanges, Rule, START_BIG_FILE};
use crate::wire::{Buffer, Cursor};
use crate::{Error, Result};

/// Magic of every ROOT file.
const MAGIC: &[u8] = b"root";
/// Added to the version where the offsets have 64 bits.
const BIG: i32 = 1_000_000;
/// Read at once at the start of a file: its header and usually the record of the top directory.
const HEAD_BYTES: u64 = 1024;
/// Bytes of the longer of the two layouts, without the UUID behind it.
const HEADER_BYTES: u64 = 57;
/// Bytes of the shorter one.
const SMALL_HEADER_BYTES: u64 = 45;

/// Offset of the first record of a file, which is that of the top directory (`TFile::kBEGIN`).
pub const BEGIN: u64 = 100;
/// Version of ROOT whose file format is written, 6.40.00.
pub(super) const ROOT_VERSION: u32 = 64000;
/// Compression setting that a header names where nothing else is known: zstd, level 5.
pub(super) const COMPRESSION: u32 = 505;

/// The header of a ROOT file. Only `begin` is needed to find objects; the rest may lie in damaged files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileHeader {
    /// Version of the ROOT that wrote the file, e.g. 64000 for 6.40.00.
    pub version: u32,
    /// Whether the offsets in the header have 64 bits.
    pub is_big: bool,
    /// Offset of the first record: the top directory.
    pub begin: u64,
    /// End offset of the last record (exclusive).
    pub end: u64,
    /// Offset of the free list's record, 0 in files that were not closed.
    pub seek_free: u64,
    /// Bytes of the free list's record, key included.
    pub nbytes_free: u32,
    /// Entries in the free list.
    pub free_count: u32,
    /// Bytes from `begin` to the record of the top directory.
    pub nbytes_name: u32,
    /// Compression setting: algorithm * 100 + level.
    pub compress: u32,
    /// Offset of the streamer info's record.
    pub seek_info: u64,
    /// Bytes of the streamer info's record, key included.
    pub nbytes_info: u32,
}

/// Reads the header of a ROOT file, small or big.
///
/// # Errors
/// Another format if this is not a ROOT file; cut off if the file ends before its first record; corrupt if that would be
/// outside the file.
pub fn read_header(fetched: &FetchedRanges) -> Attempt<FileHeader> {
    let head = fetched.get(0, fetched.size().min(HEAD_BYTES))?;
    if fetched.size() < HEADER_BYTES && !head.is_empty() && (head.starts_with(MAGIC) || MAGIC.starts_with(&head)) {
        let what =
            format!("the file was cut off: it has {} bytes, less than the header of a ROOT file", fetched.size());
        return Err(Error::cut_off(what).at(0).into());
    }
    let header = FileHeader::read(&head)?;
    if header.begin >= fetched.size() && header.end > fetched.size() {
        return Err(header.cut_off(fetched.size()).into());
    }
    if header.begin >= fetched.size() || header.begin < HEADER_BYTES {
        return Err(Error::corrupt(format!("the header puts the first record at byte {}", header.begin)).at(8).into());
    }
    let mut cursor = Cursor::new(&head, 0);
    cursor.take(MAGIC.len())?;
    let stored = cursor.i32_be()?;
    if stored < 0 {
        fetched.deviations().add(MAGIC.len() as u64, Rule::FileVersion { stored });
    }
    Ok(header)
}

/// The UUID of a ROOT file, stored after the header; zeros for files older than ROOT 3, which have none.
///
/// # Errors
/// As [`read_header`].
pub fn read_uuid(fetched: &FetchedRanges) -> Attempt<[u8; 16]> {
    let header = read_header(fetched)?;
    let end = if header.is_big { HEADER_BYTES } else { SMALL_HEADER_BYTES };
    let mut uuid = [0; 16];
    // After the class version of `TUUID`.
    let place = end + 2..end + 18;
    if place.end <= header.begin {
        uuid.copy_from_slice(Cursor::new(&fetched.get(place.start, 16)?, place.start).take(16)?);
    }
    Ok(uuid)
}

impl FileHeader {
    /// The error of a file of `size` bytes, which is shorter than its header says.
    #[cold]
    pub fn cut_off(&self, size: u64) -> Error {
        let records = [
            ("the streamer info", self.seek_info, self.nbytes_info),
            ("the free list", self.seek_free, self.nbytes_free),
        ];
        let is_lost = |seek: u64, nbytes: u32| seek.saturating_add(u64::from(nbytes)) > size;
        let lost = records.iter().filter(|(_, seek, nbytes)| is_lost(*seek, *nbytes));
        let lost: Vec<_> = lost.map(|(name, ..)| *name).collect();
        let lost = if lost.is_empty() { String::new() } else { format!(", including {},", lost.join(" and ")) };
        let what = format!(
            "the file was cut off: its header says that it ends at byte {}, but it ends at byte {size}; the last {} \
             bytes{lost} are lost",
            self.end,
            self.end.saturating_sub(size)
        );
        Error::cut_off(what).at(12)
    }

    pub(super) fn read(bytes: &[u8]) -> Result<Self> {
        let mut cursor = Cursor::new(bytes, 0);
        if !bytes.starts_with(MAGIC) {
            return Err(Error::other_format(format!("not a ROOT file: {}", kind_of(bytes))).at(0));
        }
        cursor.take(MAGIC.len())?;
        // A negative one has 32-bit offsets for ROOT (`TFile::Init`): some writers subtract once too often.
        let version = cursor.i32_be()?;
        let is_big = version >= BIG;
        let offset = |cursor: &mut Cursor<'_>| match is_big {
            true => cursor.u64_be(),
            false => cursor.u32_be().map(u64::from),
        };
        let begin = u64::from(cursor.u32_be()?);
        let end = offset(&mut cursor)?;
        let seek_free = offset(&mut cursor)?;
        let nbytes_free = cursor.u32_be()?;
        let free_count = cursor.u32_be()?;
        let nbytes_name = cursor.u32_be()?;
        let _bytes_per_offset = cursor.u8()?;
        let compress = cursor.u32_be()?;
        let seek_info = offset(&mut cursor)?;
        let nbytes_info = cursor.u32_be()?;
        Ok(Self {
            version: version.rem_euclid(BIG).unsigned_abs(),
            is_big,
            begin,
            end,
            seek_free,
            nbytes_free,
            free_count,
            nbytes_name,
            compress,
            seek_info,
            nbytes_info,
        })
    }

    /// Where the header on disk says where the streamer info is.
    pub(super) fn streamer_info_at(&self) -> Range<u64> {
        if self.is_big { 45..57 } else { 37..45 }
    }

    /// The header on disk, with the UUID behind it as ROOT does; big where `is_big` says so or `end` needs it.
    pub(super) fn write(&self, uuid: &[u8; 16]) -> Vec<u8> {
        let is_big = self.is_big || self.end > START_BIG_FILE;
        let mut buffer = Buffer::new();
        let offset = |buffer: &mut Buffer, value: u64| match u32::try_from(value) {
            Ok(value) if !is_big => buffer.u32_be(value),
            _ => buffer.u64_be(value),
        };
        buffer.put(MAGIC);
        buffer.u32_be(if is_big { self.version.saturating_add(BIG.unsigned_abs()) } else { self.version });
        buffer.u32_be(u32::try_from(self.begin).unwrap_or(u32::MAX));
        offset(&mut buffer, self.end);
        offset(&mut buffer, self.seek_free);
        buffer.u32_be(self.nbytes_free);
        buffer.u32_be(self.free_count);
        buffer.u32_be(self.nbytes_name);
        buffer.u8(if is_big { 8 } else { 4 });
        buffer.u32_be(self.compress);
        offset(&mut buffer, self.seek_info);
        buffer.u32_be(self.nbytes_info);
        buffer.u16_be(1);
        buffer.put(uuid);
        buffer.into_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_layouts_come_back() {
        for end in [1000, START_BIG_FILE, START_BIG_FILE + 1, 1 << 50] {
            let header = FileHeader {
                version: 64000,
                is_big: end > START_BIG_FILE,
                begin: 100,
                end,
                seek_free: end - 60,
                nbytes_free: 60,
                free_count: 1,
                nbytes_name: 54,
                compress: 505,
                seek_info: end - 500,
                nbytes_info: 440,
            };
            let bytes = header.write(&[7; 16]);
            assert_eq!(bytes.len(), if header.is_big { 75 } else { 63 });
            assert_eq!(FileHeader::read(&bytes), Ok(header.clone()));
            let Range { start, end } = header.streamer_info_at();
            let mut without = bytes;
            without[start as usize..end as usize].fill(0);
            assert_eq!(FileHeader::read(&without), Ok(FileHeader { seek_info: 0, nbytes_info: 0, ..header }));
        }
    }
}
