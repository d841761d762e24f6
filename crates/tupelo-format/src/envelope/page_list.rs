//! The page list envelope (format specification, "Page List Envelope"), parsed column by column on demand, so that an
//! ntuple with ten thousand columns has no cost for unread columns.
//!
//! # Page digests
//! The checksum that follows a page proves that its bytes are intact, but not that it is the expected page: two swapped
//! pages are read without an error. Therefore the digests of a column's pages follow the column's compression setting,
//! inside the column's frame, where readers skip unknown bytes (ROOT 6.40 and uproot 5.7 do): the word `DIGESTS`, then
//! the XXH3 of every stored page, the same number that follows the page itself.

use bytes::Bytes;

use super::{EnvelopeType, frame, unwrap, wrap};
use crate::locator::Locator;
use crate::wire::{Buffer, Cursor, Memory};
use crate::{Error, Result};

/// Cluster flag of sharded clusters, which readers must refuse.
pub const SHARDED: u8 = 0x01;

/// Marks the digests of a column's pages: `PageXXH3` in ASCII, little-endian.
const DIGESTS: u64 = 0x3348_5858_6567_6150;

/// Smallest page description: element count and a locator of unknown type.
const PAGE_BYTES: usize = 8;
/// Smallest cluster summary frame.
const SUMMARY_BYTES: usize = 24;
/// Smallest inner list: head and element offset.
const COLUMN_BYTES: usize = 20;

/// Entry range of one cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClusterSummary {
    /// First entry.
    pub first_entry: u64,
    /// Number of entries (56 bits).
    pub entries: u64,
    /// [`SHARDED`] or bits that are ignored.
    pub flags: u8,
}

/// One page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageInfo {
    /// Number of elements.
    pub elements: u32,
    /// Whether 8 bytes of XXH3 follow the page.
    pub has_checksum: bool,
    /// Where, without the checksum.
    pub locator: Locator,
    /// XXH3 of the stored bytes without the checksum, where the page list knows it.
    pub digest: Option<u64>,
}

/// The pages of one column in one cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnPages {
    /// In element order.
    pub pages: Vec<PageInfo>,
    /// Index of the first element, counted over all clusters; `None` for a suppressed column.
    pub first_element: Option<u64>,
    /// Compression setting; 0 for a suppressed column.
    pub compression: u32,
}

impl ColumnPages {
    /// A column that is not stored in a cluster.
    pub fn suppressed() -> Self {
        Self { pages: Vec::new(), first_element: None, compression: 0 }
    }

    /// Stored elements.
    pub fn elements(&self) -> u64 {
        self.pages.iter().map(|page| u64::from(page.elements)).sum()
    }

    fn read(cursor: &mut Cursor<'_>) -> Result<Self> {
        let (mut payload, count) = frame::list(cursor)?;
        let mut pages = payload.reserve(count, PAGE_BYTES)?;
        for _ in 0..count {
            let elements = payload.i32_le()?;
            pages.push(PageInfo {
                elements: elements.unsigned_abs(),
                has_checksum: elements < 0,
                locator: Locator::read(&mut payload)?,
                digest: None,
            });
        }
        match u64::try_from(payload.i64_le()?) {
            Ok(first) => {
                let compression = payload.u32_le()?;
                Self::read_digests(&mut payload, &mut pages)?;
                Ok(Self { pages, first_element: Some(first), compression })
            }
            Err(_) if pages.is_empty() => Ok(Self::suppressed()),
            Err(_) => Err(Error::corrupt("suppressed column has pages").at(payload.offset())),
        }
    }

    fn read_digests(payload: &mut Cursor<'_>, pages: &mut [PageInfo]) -> Result<()> {
        let digest_bytes = pages.len().saturating_add(1).saturating_mul(size_of::<u64>());
        // Anything else is of a format that is to come.
        if payload.remaining() != digest_bytes || payload.u64_le()? != DIGESTS {
            return Ok(());
        }
        pages.iter_mut().try_for_each(|page| {
            page.digest = Some(payload.u64_le()?);
            Ok(())
        })
    }

    fn write(&self, buffer: &mut Buffer) {
        let digests: Option<Vec<u64>> = self.pages.iter().map(|page| page.digest).collect();
        frame::write_list(buffer, self.pages.len(), |b| {
            for page in &self.pages {
                let elements = i64::from(page.elements);
                // 2^31 elements have no positive form in 32 bits; pages are far smaller.
                b.i32_le(if page.has_checksum { -elements } else { elements } as i32);
                page.locator.write(b);
            }
            match self.first_element {
                Some(first) => {
                    b.i64_le(first as i64);
                    b.u32_le(self.compression);
                    if let Some(digests) = digests.filter(|digests| !digests.is_empty()) {
                        b.u64_le(DIGESTS);
                        digests.into_iter().for_each(|digest| b.u64_le(digest));
                    }
                }
                None => b.i64_le(i64::MIN),
            }
        });
    }
}

/// A verified page list. Column entries are parsed when asked for.
#[derive(Debug, Clone)]
pub struct PageList {
    envelope: Bytes,
    summaries: Vec<ClusterSummary>,
    /// For every cluster, where in the envelope each column's inner list begins; the last item is the end.
    columns: Vec<Vec<u32>>,
}

impl PageList {
    /// Reads a decompressed envelope that must belong to the header with the given checksum.
    pub fn read(envelope: Bytes, header_checksum: u64) -> Result<Self> {
        Self::read_within(envelope, header_checksum, &Memory::unlimited())
    }

    /// As [`PageList::read`], with memory that is counted.
    pub fn read_within(envelope: Bytes, header_checksum: u64, memory: &Memory) -> Result<Self> {
        let (cursor, _) = unwrap(&envelope, EnvelopeType::PageList)?;
        let (summaries, columns) =
            Self::read_payload(&mut cursor.within(memory), header_checksum).map_err(|e| e.within("page list"))?;
        Ok(Self { envelope, summaries, columns })
    }

    fn read_payload(cursor: &mut Cursor<'_>, header_checksum: u64) -> Result<(Vec<ClusterSummary>, Vec<Vec<u32>>)> {
        let found = cursor.u64_le()?;
        if found != header_checksum {
            return Err(Error::corrupt(format!(
                "belongs to another header (expected checksum {header_checksum:016x}, found {found:016x})"
            )));
        }
        let summaries = frame::read_list(cursor, "entry range", SUMMARY_BYTES, usize::MAX, |cursor| {
            let mut record = frame::record(cursor)?;
            let first_entry = record.u64_le()?;
            let word = record.u64_le()?;
            let flags = (word >> 56) as u8;
            if flags & SHARDED != 0 {
                return Err(Error::unsupported("sharded clusters are reserved by the format for future use"));
            }
            Ok(ClusterSummary { first_entry, entries: word & ((1 << 56) - 1), flags })
        })?;
        let columns = frame::read_list(cursor, "cluster", 12, usize::MAX, |cursor| {
            let (mut outer, count) = frame::list(cursor)?;
            // One more start than columns: the last one is the end. Growing on demand would reserve at least four.
            let mut starts: Vec<u32> = outer.reserve(count, COLUMN_BYTES)?;
            starts.reserve_exact(count.saturating_add(1));
            for _ in 0..count {
                starts.push(Self::position(&outer)?);
                frame::list(&mut outer)?;
            }
            starts.push(Self::position(&outer)?);
            Ok(starts)
        })?;
        if summaries.len() != columns.len() {
            return Err(Error::corrupt(format!(
                "found {} cluster summaries, but pages of {} clusters",
                summaries.len(),
                columns.len()
            )));
        }
        Ok((summaries, columns))
    }

    fn position(cursor: &Cursor<'_>) -> Result<u32> {
        u32::try_from(cursor.offset()).map_err(|_| Error::limit("page list exceeds 4 GiB"))
    }

    /// The envelope that was read.
    pub fn envelope(&self) -> &[u8] {
        &self.envelope
    }

    /// Entry ranges of the group's clusters.
    pub fn clusters(&self) -> &[ClusterSummary] {
        &self.summaries
    }

    /// Number of columns listed for a cluster of this group; columns added later have none.
    pub fn columns(&self, cluster: usize) -> usize {
        self.columns.get(cluster).map_or(0, |starts| starts.len().saturating_sub(1))
    }

    /// Bytes of a column's list of pages in the `cluster`-th cluster of this group: what to expect of it in memory.
    pub fn listed_bytes(&self, cluster: usize, column: usize) -> u64 {
        let starts = self.columns.get(cluster).map(Vec::as_slice).unwrap_or_default();
        let place = |column: usize| starts.get(column).map_or(0, |&start| u64::from(start));
        place(column.saturating_add(1)).saturating_sub(place(column))
    }

    /// The pages of a column in the `cluster`-th cluster of this group; `None` if the column is not listed, because
    /// it was added to the schema after this page list was written.
    pub fn pages(&self, cluster: usize, column: usize) -> Result<Option<ColumnPages>> {
        let Some(starts) = self.columns.get(cluster) else { return Ok(None) };
        let (Some(&start), Some(&end)) = (starts.get(column), starts.get(column.saturating_add(1))) else {
            return Ok(None);
        };
        let bytes = self.envelope.get(start as usize..end as usize).unwrap_or_default();
        ColumnPages::read(&mut Cursor::new(bytes, u64::from(start)))
            .map(Some)
            .map_err(|e| e.within(format_args!("page list: cluster {cluster}: column {column}")))
    }

    /// Writes an envelope; `columns` yields, for each cluster, the pages of all columns in order.
    pub fn write<'a, C>(
        header_checksum: u64,
        clusters: impl ExactSizeIterator<Item = (ClusterSummary, C)> + Clone,
    ) -> Vec<u8>
    where
        C: ExactSizeIterator<Item = &'a ColumnPages>,
    {
        let mut buffer = Buffer::new();
        buffer.u64_le(header_checksum);
        frame::write_list(&mut buffer, clusters.len(), |b| {
            for (summary, _) in clusters.clone() {
                frame::write_record(b, |b| {
                    b.u64_le(summary.first_entry);
                    b.u64_le(summary.entries | u64::from(summary.flags) << 56);
                });
            }
        });
        frame::write_list(&mut buffer, clusters.len(), |b| {
            for (_, columns) in clusters {
                frame::write_list(b, columns.len(), |b| columns.for_each(|column| column.write(b)));
            }
        });
        wrap(EnvelopeType::PageList, buffer.as_slice()).0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(flags: u8) -> (Vec<u8>, [ColumnPages; 3]) {
        let locator = Locator::File { offset: 300, bytes: 40 };
        let page = PageInfo { elements: 10, has_checksum: true, locator, digest: None };
        let stored = ColumnPages { pages: vec![page; 2], first_element: Some(5), compression: 505 };
        let mut columns = [stored.clone(), ColumnPages::suppressed(), stored];
        columns[2].pages.iter_mut().zip(7..).for_each(|(page, digest)| page.digest = Some(digest));
        let summary = ClusterSummary { first_entry: 5, entries: 20, flags };
        let bytes = PageList::write(7, [(summary, columns.iter())].into_iter());
        (bytes, columns)
    }

    #[test]
    fn written_records_are_read_back() {
        let (bytes, columns) = sample(0x80);
        let list = PageList::read(bytes.into(), 7).unwrap();
        assert_eq!(list.clusters(), [ClusterSummary { first_entry: 5, entries: 20, flags: 0x80 }]);
        assert_eq!(list.pages(0, 0), Ok(Some(columns[0].clone())));
        assert_eq!(list.pages(0, 1), Ok(Some(columns[1].clone())));
        assert_eq!(list.pages(0, 2), Ok(Some(columns[2].clone())));
        assert_eq!((list.pages(0, 3), list.pages(1, 0)), (Ok(None), Ok(None)));
    }

    #[test]
    fn unknown_bytes_after_a_column_are_ignored() {
        let (mut bytes, columns) = sample(0);
        let mark = bytes.windows(8).position(|word| word == DIGESTS.to_le_bytes()).unwrap();
        bytes[mark] ^= 1;
        let payload = bytes[8..bytes.len() - 8].to_vec();
        let list = PageList::read(wrap(EnvelopeType::PageList, &payload).0.into(), 7).unwrap();
        assert_eq!(list.pages(0, 2), Ok(Some(columns[0].clone())));
    }

    #[test]
    fn digests_of_more_or_fewer_pages_are_none() {
        let (_, columns) = sample(0);
        let mut buffer = Buffer::new();
        columns[2].write(&mut buffer);
        let whole = buffer.into_vec();
        assert_eq!(ColumnPages::read(&mut Cursor::new(&whole, 0)), Ok(columns[2].clone()));
        for bytes in [whole[..whole.len() - 8].to_vec(), [&whole[..], &[0; 8]].concat()] {
            let size = -(bytes.len() as i64);
            let bytes = [&size.to_le_bytes(), &bytes[8..]].concat();
            assert_eq!(ColumnPages::read(&mut Cursor::new(&bytes, 0)), Ok(columns[0].clone()));
        }
    }

    #[test]
    fn a_suppressed_column_has_no_pages() {
        let (_, columns) = sample(0);
        let mut buffer = Buffer::new();
        ColumnPages { first_element: None, ..columns[0].clone() }.write(&mut buffer);
        let error = ColumnPages::read(&mut Cursor::new(buffer.as_slice(), 0)).unwrap_err();
        assert_eq!(error.what(), "suppressed column has pages");
    }

    #[test]
    fn a_sharded_cluster_and_a_foreign_header_are_refused() {
        let sharded = PageList::read(sample(SHARDED).0.into(), 7).unwrap_err();
        assert_eq!(sharded.kind(), crate::ErrorKind::Unsupported);
        assert!(PageList::read(sample(0).0.into(), 8).unwrap_err().to_string().contains("another header"));
    }

    #[test]
    fn sizes_match_the_listed_pages() {
        let (bytes, columns) = sample(0);
        assert_eq!((columns[0].elements(), columns[1].elements()), (20, 0));
        let list = PageList::read(bytes.into(), 7).unwrap();
        assert_eq!((list.columns(0), list.columns(1)), (columns.len(), 0));
        // Head, two pages, first element, compression setting; a suppressed column has no setting and no pages.
        assert_eq!((list.listed_bytes(0, 0), list.listed_bytes(0, 1)), (12 + 2 * 16 + 12, 20));
        assert_eq!((list.listed_bytes(0, columns.len()), list.listed_bytes(1, 0)), (0, 0));
        let mut nothing = columns[0].clone();
        nothing.pages.iter_mut().for_each(|page| (page.elements, page.has_checksum) = (0, false));
        let summary = ClusterSummary { first_entry: 0, entries: 0, flags: 0 };
        let bytes = PageList::write(7, [(summary, [nothing.clone()].iter())].into_iter());
        assert_eq!(PageList::read(bytes.into(), 7).unwrap().pages(0, 0), Ok(Some(nothing)));
    }
}
