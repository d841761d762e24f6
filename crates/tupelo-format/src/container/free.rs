//! The list of unused byte ranges (`TFree`, `TFile::MakeFree`, `TFile::WriteFree`).

use std::collections::BTreeMap;
use std::ops::Range;

use super::fetched::together;
use super::{Attempt, FetchedRanges, FileHeader, Key, START_BIG_FILE, read_header, read_key};
use crate::Error;
use crate::wire::{Buffer, Cursor};

/// Added to the version where the offsets have 64 bits.
const BIG: u16 = 1000;
/// ROOT lets the last, open segment end at a multiple of this, in bytes.
const OPEN_STEP_BYTES: u64 = 1_000_000_000;
/// Segments are not joined beyond this: ROOT may mark one with its length, in 32 bits.
const MAX_SEGMENT_BYTES: u64 = 2_000_000_000;

/// Memory of a free list for each of its bytes: a segment of 10 bytes becomes a node of a tree and is copied twice, to
/// sort the segments by length and to compare them with what is in use.
const SEGMENT_MEMORY: u64 = 18;

/// The most segments that are listed, if the others can do without: a list is written with every state of a file, and
/// would grow with their number.
const MAX_SEGMENTS: usize = 32;
/// This many segments below [`MAX_SEGMENTS`] must be known as records before anything is added to a file.
const SPARE_SEGMENTS: usize = 8;
/// Longer segments are not looked into, in bytes: 64 KiB. The shortest ones are left out first.
const MAX_RECORDS_BYTES: u64 = 64 << 10;

/// One unused range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Segment {
    /// Exclusive end offset.
    end: u64,
    /// Whether it consists of whole records, each with its key. Such a segment can be traversed record by record
    /// without the free list.
    is_records: bool,
}

/// Bytes of the unused ranges inside a file, as its list of them says: those that are too short to be listed do not count.
///
/// # Errors
/// Corrupt if the list is damaged, or the file was not closed.
pub fn free_bytes(fetched: &FetchedRanges) -> Attempt<u64> {
    let (list, _) = FreeList::read(fetched, &read_header(fetched)?)?;
    Ok(list.iter().fold(0, |sum: u64, range| sum.saturating_add(range.end.saturating_sub(range.start))))
}

/// The unused ranges inside a file, except the open segment past the end of the file.
///
/// ROOT also overwrites the first bytes of a segment with its negative length. Tupelo does not, so that readers which
/// opened the file earlier still find the old records.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct FreeList {
    /// By first byte; disjoint.
    segments: BTreeMap<u64, Segment>,
    /// Where the open segment begins, as the list that was read says: where the file ends.
    open: Option<u64>,
}

impl FreeList {
    /// Reads the list of a file that was closed properly, and says where its record lies.
    pub(super) fn read(fetched: &FetchedRanges, header: &FileHeader) -> Attempt<(Self, Range<u64>)> {
        if header.seek_free == 0 {
            return Err(Error::corrupt("the file was not closed: it has no free list").at(0).into());
        }
        let key = read_key(fetched, header.seek_free)?;
        let place = header.seek_free..header.seek_free.saturating_add(u64::from(key.nbytes));
        let at = header.seek_free.saturating_add(u64::from(key.key_bytes));
        let bytes = fetched.get(at, key.stored_bytes())?;
        fetched.memory().take(key.stored_bytes().saturating_mul(SEGMENT_MEMORY), "free list")?;
        let mut cursor = Cursor::new(&bytes, at);
        let mut list = Self::default();
        while cursor.remaining() > 0 {
            let offset = cursor.offset();
            let (first, last) = match cursor.u16_be()? > BIG {
                true => (cursor.u64_be()?, cursor.u64_be()?),
                false => (u64::from(cursor.u32_be()?), u64::from(cursor.u32_be()?)),
            };
            // The open segment is the last one.
            if last >= header.end {
                list.open = Some(first);
                break;
            }
            if first < header.begin || first > last {
                return Err(Error::corrupt(format!("invalid free segment from byte {first} to {last}"))
                    .at(offset)
                    .into());
            }
            list.insert(first..last.saturating_add(1), false);
        }
        Ok((list, place))
    }

    /// The segments in order, without the open one.
    pub(super) fn iter(&self) -> impl Iterator<Item = Range<u64>> {
        self.segments.iter().map(|(&first, segment)| first..segment.end)
    }

    /// Where the open segment begins in the list that was read, if that has one.
    pub(super) fn open(&self) -> Option<u64> {
        self.open
    }

    /// Segments, the open one included.
    pub(super) fn count(&self) -> u32 {
        u32::try_from(self.segments.len()).unwrap_or(u32::MAX).saturating_add(1)
    }

    /// Bytes of the segment that begins at an offset.
    pub(super) fn bytes_at(&self, first: u64) -> Option<u64> {
        self.segments.get(&first).map(|segment| segment.end.saturating_sub(first))
    }

    /// Adds whole records that are not used any more.
    pub(super) fn release(&mut self, records: Range<u64>) {
        if !records.is_empty() {
            self.insert(records, true);
        }
    }

    /// Adds any bytes that are not used any more.
    pub(super) fn release_bytes(&mut self, range: Range<u64>) {
        if !range.is_empty() {
            self.insert(range, false);
        }
    }

    /// Adds a range and joins it with its neighbours.
    fn insert(&mut self, mut range: Range<u64>, mut is_records: bool) {
        if let Some((&first, &before)) = self.segments.range(..=range.start).next_back()
            && before.end >= range.start
            && range.end.max(before.end).saturating_sub(first) <= MAX_SEGMENT_BYTES
        {
            range = first..range.end.max(before.end);
            is_records &= before.is_records;
        }
        while let Some((&first, &next)) = self.segments.range(range.start..=range.end).next()
            && (range.end.max(next.end).saturating_sub(range.start) <= MAX_SEGMENT_BYTES || first == range.start)
        {
            self.segments.remove(&first);
            range.end = range.end.max(next.end);
            is_records &= next.is_records;
        }
        self.segments.insert(range.start, Segment { end: range.end, is_records });
    }

    /// The shortest segments first, all but this many of the longest.
    fn shortest(&self, all_but: usize) -> impl Iterator<Item = (u64, Segment)> + use<> {
        let mut segments: Vec<_> = self.segments.iter().map(|(&first, &segment)| (first, segment)).collect();
        segments.sort_by_key(|(first, segment)| segment.end.saturating_sub(*first));
        let count = segments.len().saturating_sub(all_but);
        segments.into_iter().take(count)
    }

    /// Looks into the segments of a list that was read which are the next to be left out.
    pub(super) fn find_records(&mut self, fetched: &FetchedRanges) -> Attempt<()> {
        let shortest = self.shortest(MAX_SEGMENTS.saturating_sub(SPARE_SEGMENTS)).filter_map(|(first, segment)| {
            let bytes = segment.end.saturating_sub(first);
            (!segment.is_records && bytes <= MAX_RECORDS_BYTES).then_some((first, segment, bytes))
        });
        let known = together(shortest.map(|(first, segment, bytes)| {
            let is_records = are_records(&fetched.get(first, bytes)?, first);
            Ok((first, Segment { is_records, ..segment }))
        }))?;
        self.segments.extend(known);
        Ok(())
    }

    /// Leaves out the shortest segments that can do without a list, until it is short enough.
    pub(super) fn shorten(&mut self) {
        let mut surplus = self.segments.len().saturating_sub(MAX_SEGMENTS);
        for (first, segment) in self.shortest(0) {
            if surplus == 0 {
                break;
            }
            if segment.is_records {
                self.segments.remove(&first);
                surplus -= 1;
            }
        }
    }

    /// Bytes of the list in a record that starts at `at`, where the file ends.
    pub(super) fn write(&self, at: u64) -> (Vec<u8>, u32) {
        let mut buffer = Buffer::new();
        for range in self.iter() {
            entry(&mut buffer, range.start, range.end.saturating_sub(1));
        }
        // The open segment begins behind this very entry, whose length depends on where that is.
        let end = at.saturating_add(buffer.len() as u64 + 10);
        let first = if end < START_BIG_FILE { end } else { end.saturating_add(8) };
        let step = (first / OPEN_STEP_BYTES).saturating_add(1).saturating_mul(OPEN_STEP_BYTES);
        entry(&mut buffer, first, step.max(START_BIG_FILE));
        (buffer.into_vec(), self.count())
    }
}

/// Whether bytes at an offset are whole records, each of which knows its place.
fn are_records(bytes: &[u8], offset: u64) -> bool {
    let mut at = 0;
    while at < bytes.len() {
        let rest = bytes.get(at..).unwrap_or_default();
        let Ok(key) = Key::read(rest, offset.saturating_add(at as u64)) else { return false };
        if key.seek_key != offset.saturating_add(at as u64) || key.nbytes == 0 {
            return false;
        }
        at = at.saturating_add(usize::try_from(key.nbytes).unwrap_or(usize::MAX));
    }
    at == bytes.len()
}

fn entry(buffer: &mut Buffer, first: u64, last: u64) {
    match (u32::try_from(first), u32::try_from(last)) {
        (Ok(first), Ok(small)) if last <= START_BIG_FILE => {
            buffer.u16_be(1);
            buffer.u32_be(first);
            buffer.u32_be(small);
        }
        _ => {
            buffer.u16_be(BIG + 1);
            buffer.u64_be(first);
            buffer.u64_be(last);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Interrupt;
    use super::*;

    /// Where the file ends whose list is read.
    const END: u64 = 1000;

    fn ranges(list: &FreeList) -> Vec<(u64, u64)> {
        list.iter().map(|range| (range.start, range.end)).collect()
    }

    /// A list was written with each checkpoint that had one segment more than the one before.
    #[test]
    fn short_segments_of_whole_records_are_left_out() {
        let mut list = FreeList::default();
        for k in 0..100 {
            list.release(1000 * k..1000 * k + 100 + k);
        }
        list.release_bytes(500_000..500_010);
        list.shorten();
        let kept = ranges(&list);
        assert_eq!(kept.len(), MAX_SEGMENTS);
        assert_eq!((kept[0], kept[31]), ((69_000, 69_169), (500_000, 500_010)));
        // Segments other than records must stay in the list.
        let mut list = FreeList::default();
        (0..100).for_each(|k| list.release_bytes(1000 * k..1000 * k + 10));
        list.release(200_000..200_005);
        list.shorten();
        assert_eq!(list.segments.len(), 100);
    }

    #[test]
    fn segments_that_were_read_are_known_as_records_by_their_keys() {
        let key = |at: u64| Key::place(at, 100, ["C", "n", ""], 20, 0).unwrap();
        let bytes = key(0).nbytes as usize;
        let mut file = vec![0; 100_000];
        let mut list = FreeList::default();
        for k in 1..50 {
            let at = 1000 * k;
            for at in [at, at + bytes] {
                file[at..at + bytes - 20].copy_from_slice(&key(at as u64).write());
            }
            // A third of them are longer than the records in them.
            let end = at + 2 * bytes + usize::from(k % 3 == 0);
            list.insert(at as u64..end as u64, false);
        }
        let mut fetched = FetchedRanges::new(100_000);
        let Err(Interrupt::Missing(wanted)) = list.find_records(&fetched) else { panic!("nothing is there yet") };
        assert_eq!(wanted.len(), 49 - (MAX_SEGMENTS - SPARE_SEGMENTS));
        fetched.provide(0, file.into());
        list.find_records(&fetched).unwrap();
        let known = list.segments.values().filter(|segment| segment.is_records).count();
        assert!(known >= wanted.len() / 2 && list.segments.get(&3000).is_some_and(|segment| !segment.is_records));
        list.shorten();
        assert_eq!(list.segments.len(), MAX_SEGMENTS.max(49 - known));
    }

    #[test]
    fn neighbours_join() {
        let mut list = FreeList::default();
        list.release(100..200);
        list.release(300..400);
        assert_eq!(ranges(&list), Vec::from([(100, 200), (300, 400)]));
        list.release(200..300);
        list.release(500..600);
        assert_eq!(ranges(&list), Vec::from([(100, 400), (500, 600)]));
        list.release(600..700 + MAX_SEGMENT_BYTES);
        assert_eq!(list.segments.len(), 3);
    }

    #[test]
    fn a_segment_that_is_too_long_to_be_joined_keeps_its_bytes() {
        let mut list = FreeList::default();
        list.release(200..201 + MAX_SEGMENT_BYTES);
        list.release(200..300);
        assert_eq!(ranges(&list), Vec::from([(200, 201 + MAX_SEGMENT_BYTES)]));
        list.release(100..200);
        assert_eq!(ranges(&list), Vec::from([(100, 200), (200, 201 + MAX_SEGMENT_BYTES)]));
        // As long as it may get.
        let mut list = FreeList::default();
        list.release(200..100 + MAX_SEGMENT_BYTES);
        list.release(100..200);
        assert_eq!(ranges(&list), Vec::from([(100, 100 + MAX_SEGMENT_BYTES)]));
    }

    /// Reads a list of these entries, in a file whose first record lies at byte 100.
    fn read(version: u16, entries: &[(u64, u64)]) -> Attempt<Vec<(u64, u64)>> {
        let mut list = Buffer::new();
        for &(first, last) in entries {
            list.u16_be(version);
            for offset in [first, last] {
                if version > 1000 { list.u64_be(offset) } else { list.u32_be(offset as u32) }
            }
        }
        let key = Key::place(400, 100, ["TFile", "f", ""], list.len(), 0).unwrap();
        let mut bytes = [key.write(), list.into_vec()].concat();
        bytes.resize((END - 400) as usize, 0);
        let mut fetched = FetchedRanges::new(END);
        fetched.provide(400, bytes.into());
        let header = FileHeader {
            version: 64000,
            is_big: false,
            begin: 100,
            end: END,
            seek_free: 400,
            nbytes_free: key.nbytes,
            free_count: 0,
            nbytes_name: 0,
            compress: 0,
            seek_info: 0,
            nbytes_info: 0,
        };
        let (list, place) = FreeList::read(&fetched, &header)?;
        assert_eq!(place, 400..400 + u64::from(key.nbytes));
        assert_eq!(list.count() as usize, list.segments.len() + 1);
        assert_eq!(list.open().is_some(), entries.contains(&(END, 2_000_000_000)));
        Ok(ranges(&list))
    }

    #[test]
    fn segments_lie_between_the_first_record_and_the_end() {
        let open = (END, 2_000_000_000);
        // The highest version with 32-bit offsets; a list without the open segment; one byte, the first and the last.
        for version in [1, 1000, 1001] {
            let entries = [(100, 100), (150, 199), (END - 1, END - 1), open, (0, 0)];
            let segments = Vec::from([(100, 101), (150, 200), (END - 1, END)]);
            assert_eq!(read(version, &entries), Ok(segments.clone()));
            assert_eq!(read(version, &entries[..3]), Ok(segments));
        }
        for (first, last) in [(99, 99), (99, 200), (151, 150), (u64::from(u32::MAX), 0)] {
            let Err(Interrupt::Failed(error)) = read(1, &[(first, last), open]) else { panic!("{first} to {last}") };
            assert_eq!(error.what(), format!("invalid free segment from byte {first} to {last}"));
        }
    }

    #[test]
    fn the_open_segment_begins_where_the_file_ends() {
        for at in [1000, START_BIG_FILE - 11, START_BIG_FILE - 10, START_BIG_FILE, 7_654_321_000] {
            let (bytes, count) = FreeList::default().write(at);
            assert_eq!(count, 1);
            let mut cursor = Cursor::new(&bytes, 0);
            let (first, last) = match cursor.u16_be().unwrap() {
                1 => (u64::from(cursor.u32_be().unwrap()), u64::from(cursor.u32_be().unwrap())),
                _ => (cursor.u64_be().unwrap(), cursor.u64_be().unwrap()),
            };
            assert_eq!((first, cursor.remaining()), (at + bytes.len() as u64, 0));
            assert!(last > first && last % OPEN_STEP_BYTES == 0 && last - first <= START_BIG_FILE);
        }
    }
}
