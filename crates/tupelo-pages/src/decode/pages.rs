//! Runs of pages: read together, compared with their checksums, decompressed and decoded into their place in the output.

use std::iter::repeat_n;

use bytes::Bytes;
use tupelo_core::pool;
use tupelo_format::checksum::CHECKSUM_BYTES;
use tupelo_format::compression::{self, BlockChecksums};
use tupelo_format::encoding::{ColumnType, Encoding};
use tupelo_format::envelope::PageInfo;
use tupelo_format::wire::Cursor;
use tupelo_schema::schema::Field;

use super::fetch::Fetcher;
use super::scratch::{sized, with_scratch};
use crate::plan::{ClusterColumn, ColumnTable, PageSlice};
use crate::source::{Metadata, RequestMemory, UsedPart, checked, compare, packed_bytes};
use crate::{Error, Result};

/// Pages that are read at once, in bytes: together with one that is decompressed they stay in a core's own cache.
const RUN_BYTES: u64 = 256 << 10;
/// Bytes that can be read in the time of one more call.
const CALL_BYTES: u64 = 4 << 10;
/// Comparing the checksums of pages that are smaller on average once they are decoded takes as long as decoding them.
const WORTH_COMPARING_BYTES: u64 = 8 << 10;

/// Decodes a whole page to values as they are in memory.
pub(super) type Decode = fn(&Encoding, &[u8], &mut [u8]) -> tupelo_format::Result<()>;

/// Reads pages of one request, from any number of threads.
#[derive(Clone, Copy)]
pub(super) struct PageReader<'a> {
    pub(super) metadata: &'a Metadata,
    pub(super) memory: &'a RequestMemory,
    pub(super) table: &'a ColumnTable<'a>,
    pub(super) fetcher: &'a Fetcher<'a>,
}

impl PageReader<'_> {
    /// Decodes the requested elements of a run into `out`, which has exactly their size of `width` bytes each.
    pub(super) fn fill(
        &self,
        field: &Field,
        run: &[PageSlice],
        width: usize,
        out: &mut [u8],
        decode: Decode,
    ) -> Result<()> {
        if self.read_plain(field, run, width, out)? || self.read_elements(field, run, width, out)? {
            return Ok(());
        }
        let (mut rest, mut spare) = (out, Vec::<u64>::new());
        self.unseal(field, run, |slices, encoding, elements, packed| {
            let taken: usize = slices.iter().map(|slice| slice.take * width).sum();
            let mut own = rest.split_off_mut(..taken).ok_or_else(|| Error::corrupt("pages overlap"))?;
            if let [slice] = slices
                && slice.take == elements
            {
                return Ok(decode(encoding, packed, own)?);
            }
            let mut is_decoded = false;
            for slice in slices {
                let (to, others) = own.split_at_mut(slice.take * width);
                own = others;
                let wanted = slice.skip..slice.skip + slice.take;
                if let Some(part) = encoding.part(packed, elements, wanted.clone()) {
                    decode(encoding, &part, to)?;
                    continue;
                }
                if !is_decoded {
                    spare.resize((elements * width).div_ceil(size_of::<u64>()), 0);
                    decode(encoding, packed, &mut bytemuck::cast_slice_mut(&mut spare)[..elements * width])?;
                    is_decoded = true;
                }
                to.copy_from_slice(&bytemuck::cast_slice(&spare)[wanted.start * width..wanted.end * width]);
            }
            Ok(())
        })
    }

    /// Reads, compares and decompresses the pages of a run, one after the other. `decode` gets the slices of one page, its
    /// encoding, the number of its elements, and the page.
    pub(super) fn unseal(
        &self,
        field: &Field,
        run: &[PageSlice],
        mut decode: impl FnMut(&[PageSlice], &Encoding, usize, &[u8]) -> Result<()>,
    ) -> Result<()> {
        let Some(first) = run.first() else { return Ok(()) };
        let column = self.table.column(first.id);
        let within = |slice: &PageSlice, e: Error| self.table.named(field, column.within(slice.id.page, e));
        let pages = || run.chunk_by(|a, b| a.id == b.id);
        let scratch_bytes = pages().map(|slices| scratch_bytes(column, slices)).max().unwrap_or(0);
        let kept: Vec<Option<Bytes>> = pages().map(|slices| self.kept_page(slices)).collect();
        let sealed_bytes = match kept.iter().all(Option::is_some) || self.fetcher.get(first.id).is_some() {
            true => 0,
            false => run.last().map_or(0, |last| last.range.end.saturating_sub(first.range.start)),
        };
        let reserved = self.memory.reserve_scratch(sealed_bytes.saturating_add(scratch_bytes), "pages to decode");
        let _reserved = reserved.map_err(|e| within(first, e))?;
        with_scratch(|scratch| {
            let read = sized(&mut scratch.sealed, sealed_bytes).and_then(|sealed| {
                if sealed_bytes > 0 {
                    self.metadata.store().read_into(first.range.blob, first.range.start, &mut [sealed])?;
                }
                Ok(&*sealed)
            });
            let mut rest = read.map_err(|e| within(first, e))?;
            for (slices, kept_page) in pages().zip(kept) {
                let slice = &slices[0];
                let info = &column.info.pages[slice.id.page as usize];
                let unseal = || {
                    let elements = info.elements as usize;
                    let counters = self.metadata.session().counters();
                    let sealed = match self.fetcher.get(slice.id) {
                        Some(bytes) => Some(&bytes[..]),
                        None => rest.split_off(..slice.range.bytes() as usize),
                    };
                    if let Some(packed) = kept_page {
                        return counters.decode(|| decode(slices, &column.encoding, elements, &packed));
                    }
                    let sealed = sealed.ok_or_else(|| Error::corrupt("the page was not read"))?;
                    let packed_len = column.encoding.packed_bytes(elements as u64).unwrap_or(u64::MAX);
                    let mut now_kept = Bytes::new();
                    let packed = counters.decompress(sealed.len(), packed_len, || {
                        self.unpacked(column, slices, sealed, &mut scratch.packed, &mut now_kept)
                    })?;
                    counters.decode(|| decode(slices, &column.encoding, elements, packed))
                };
                unseal().map_err(|e| within(slice, e))?;
            }
            Ok(())
        })
    }

    /// The content of a page: as it is stored, in `scratch`, or in `kept`, where later requests find it.
    fn unpacked<'p>(
        &self,
        column: &ClusterColumn,
        slices: &[PageSlice],
        sealed: &'p [u8],
        scratch: &'p mut Vec<u8>,
        kept: &'p mut Bytes,
    ) -> Result<&'p [u8]> {
        let slice = &slices[0];
        let info = &column.info.pages[slice.id.page as usize];
        let stored = checked(info, sealed, self.metadata.verifies())?;
        let packed_len = packed_bytes(info, stored.len() as u64, &column.encoding)?;
        if stored.len() as u64 == packed_len {
            return Ok(stored);
        }
        let checksums = match self.metadata.verifies() && (info.has_checksum || info.digest.is_some()) {
            true => BlockChecksums::Trust,
            false => BlockChecksums::Compare,
        };
        let decompress = |packed: &mut [u8]| compression::decompress_while(stored, packed, checksums, pool::check);
        let pages = self.metadata.kept(self.memory);
        if let Some(mut room) = pages.and_then(|pages| pages.room(&slice.range, packed_len, used_part(slices, info))) {
            decompress(room.page())?;
            *kept = room.keep();
            return Ok(kept);
        }
        let packed = sized(scratch, packed_len)?;
        decompress(packed)?;
        Ok(packed)
    }

    /// A page that an earlier request decompressed and kept.
    fn kept_page(&self, slices: &[PageSlice]) -> Option<Bytes> {
        let pages = self.metadata.kept(self.memory)?;
        let slice = slices.first()?;
        let column = self.table.column(slice.id);
        let info = &column.info.pages[slice.id.page as usize];
        let packed = pages.get(&slice.range, used_part(slices, info))?;
        let bytes = column.encoding.packed_bytes(info.elements.into());
        (bytes == Some(packed.len() as u64)).then_some(packed)
    }

    /// Reads only the requested elements of a run, where few are wanted of pages that are stored as they are in memory and whose
    /// checksums are not compared; `false` where they are not.
    fn read_elements(&self, field: &Field, run: &[PageSlice], width: usize, out: &mut [u8]) -> Result<bool> {
        let Some(first) = run.first() else { return Ok(true) };
        let column = self.table.column(first.id);
        let bits_match = column.encoding.is_plain() && usize::from(column.encoding.bits()) == 8 * width;
        if self.metadata.verifies() || !bits_match {
            return Ok(false);
        }
        let taken: u64 = run.iter().map(|slice| (slice.take * width) as u64).sum();
        let pages: u64 = run.chunk_by(|a, b| a.id == b.id).map(|slices| slices[0].range.bytes()).sum();
        let is_plain = |slice: &PageSlice| {
            let info = &column.info.pages[slice.id.page as usize];
            self.fetcher.get(slice.id).is_none()
                && info.locator.stored_bytes() == u64::from(info.elements) * width as u64
        };
        // A call costs as much as reading some kilobytes.
        let calls = run.len() as u64 * CALL_BYTES;
        if taken.saturating_add(calls) >= pages || !run.iter().all(is_plain) {
            return Ok(false);
        }
        let mut rest = out;
        for slice in run {
            let own = rest.split_off_mut(..slice.take * width).ok_or_else(|| Error::corrupt("pages overlap"))?;
            let start = slice.range.start + (slice.skip * width) as u64;
            let read = self.metadata.session().counters().decompress(own.len(), own.len() as u64, || {
                self.metadata.store().read_into(slice.range.blob, start, &mut [own])
            });
            read.map_err(|e| self.table.named(field, column.within(slice.id.page, e)))?;
        }
        Ok(true)
    }

    /// Reads the pages of a run directly into their place in the output, where they are stored as they are in memory and
    /// are wanted whole; `false` where they are not.
    fn read_plain(&self, field: &Field, run: &[PageSlice], width: usize, out: &mut [u8]) -> Result<bool> {
        let Some(first) = run.first() else { return Ok(true) };
        let column = self.table.column(first.id);
        let page = |slice: &PageSlice| &column.info.pages[slice.id.page as usize];
        let is_plain = |slice: &PageSlice| {
            self.fetcher.get(slice.id).is_none()
                && slice.take == page(slice).elements as usize
                && page(slice).locator.stored_bytes() == (slice.take * width) as u64
        };
        // Segments may share an element, and so use a whole small page twice.
        let is_once = run.windows(2).all(|pair| pair[0].id != pair[1].id);
        if !is_once
            || !column.encoding.is_plain()
            || usize::from(column.encoding.bits()) != 8 * width
            || !run.iter().all(is_plain)
        {
            return Ok(false);
        }
        let within = |slice: &PageSlice, e: Error| self.table.named(field, column.within(slice.id.page, e));
        let mut checksums = vec![[0; CHECKSUM_BYTES]; run.len()];
        let (mut rest, mut pieces) = (&mut *out, Vec::with_capacity(2 * run.len()));
        for (slice, checksum) in run.iter().zip(&mut checksums) {
            let (own, others) = rest.split_at_mut(slice.take * width);
            rest = others;
            pieces.push(own);
            if page(slice).has_checksum {
                pieces.push(checksum);
            }
        }
        let read = self.metadata.store().read_into(first.range.blob, first.range.start, &mut pieces);
        read.map_err(|e| within(first, e))?;
        let mut rest = &*out;
        for (slice, checksum) in run.iter().zip(checksums) {
            let (own, others) = rest.split_at(slice.take * width);
            rest = others;
            let checksum = page(slice).has_checksum.then_some(&checksum);
            let sealed_bytes = own.len() + if checksum.is_some() { CHECKSUM_BYTES } else { 0 };
            let compared = self.metadata.session().counters().decompress(sealed_bytes, own.len() as u64, || {
                if self.metadata.verifies() { compare(page(slice), own, checksum) } else { Ok(()) }
            });
            compared.map_err(|e| within(slice, e))?;
        }
        Ok(true)
    }

    /// A fingerprint of these slices: the same numbers for the same elements at the same positions. `None`
    /// if that is not certain, because checksums are missing or not compared, or if it is not worth it.
    pub(super) fn fingerprint(&self, slices: &[PageSlice]) -> Result<Option<Vec<u64>>> {
        let pages = || slices.chunk_by(|a, b| a.id == b.id);
        let elements = |slice: &PageSlice| self.table.column(slice.id).info.pages[slice.id.page as usize].elements;
        let decoded_bytes: u64 = pages().map(|own| u64::from(elements(&own[0])) * size_of::<u64>() as u64).sum();
        if !self.metadata.verifies() || decoded_bytes < WORTH_COMPARING_BYTES * pages().count() as u64 {
            return Ok(None);
        }
        let mut numbers = Vec::with_capacity(1 + 7 * slices.len());
        numbers.push(slices.len() as u64);
        for slice in slices {
            let column = self.table.column(slice.id);
            let encoding = u64::from(column.encoding.column_type().code()) << 16 | u64::from(column.encoding.bits());
            let parts = [slice.skip, slice.take, slice.to].map(|number| number as u64);
            numbers.extend([encoding, slice.range.bytes(), elements(slice).into(), parts[0], parts[1], parts[2]]);
        }
        for own in pages() {
            let Some(checksum) = self.checksum(&own[0])? else { return Ok(None) };
            numbers.extend(repeat_n(checksum, own.len()));
        }
        Ok(Some(numbers))
    }

    /// The checksum of a page as it is stored.
    fn checksum(&self, slice: &PageSlice) -> Result<Option<u64>> {
        let info = &self.table.column(slice.id).info.pages[slice.id.page as usize];
        if info.digest.is_some() || !info.has_checksum {
            return Ok(info.digest);
        }
        let mut stored = [0; CHECKSUM_BYTES];
        match self.fetcher.get(slice.id).and_then(|bytes| bytes.last_chunk()) {
            Some(bytes) => stored = *bytes,
            // A request for eight bytes would cost more than it saves.
            None if self.fetcher.lacks(slice.id, &slice.range) => return Ok(None),
            None => {
                let start = slice.range.end - CHECKSUM_BYTES as u64;
                self.metadata.store().read_into(slice.range.blob, start, &mut [&mut stored])?;
            }
        }
        Ok(Some(Cursor::new(&stored, 0).u64_le()?))
    }

    /// Slices in runs: pages of one column that are adjacent in their blob and small enough to be read at once, or one
    /// page. The slices of one page stay together.
    pub(super) fn runs<'s>(&self, mut slices: &'s [PageSlice]) -> Vec<&'s [PageSlice]> {
        let mut runs = Vec::new();
        while !slices.is_empty() {
            let (run, others) = slices.split_at(self.run_end(slices));
            runs.push(run);
            slices = others;
        }
        runs
    }

    /// Where the next run ends.
    fn run_end(&self, slices: &[PageSlice]) -> usize {
        let first = &slices[0];
        let is_fetched = self.fetcher.get(first.id).is_some();
        let mut last = first;
        for (index, slice) in slices.iter().enumerate().skip(1) {
            if slice.id != last.id {
                let is_same_column = slice.id.column == first.id.column;
                let is_large = slice.range.end.saturating_sub(first.range.start) > RUN_BYTES;
                let is_same_kind = self.fetcher.get(slice.id).is_some() == is_fetched;
                if !is_same_column || !last.range.is_followed_by(&slice.range) || is_large || !is_same_kind {
                    return index;
                }
            }
            last = slice;
        }
        slices.len()
    }
}

/// What a request uses of the page that holds its slices.
fn used_part(slices: &[PageSlice], page: &PageInfo) -> UsedPart {
    UsedPart {
        count: slices.iter().map(|slice| slice.take).sum(),
        end: slices.last().map_or(0, |slice| slice.skip + slice.take),
        total: page.elements as usize,
    }
}

/// Memory that decoding the slices of one page needs besides its stored bytes.
fn scratch_bytes(column: &ClusterColumn, slices: &[PageSlice]) -> u64 {
    let Some(slice) = slices.first() else { return 0 };
    let elements = u64::from(column.info.pages[slice.id.page as usize].elements);
    let packed_bytes = column.encoding.packed_bytes(elements).unwrap_or(u64::MAX);
    let is_packed = packed_bytes > slice.range.bytes();
    // A page that is needed only in part is decoded beside the output.
    let beside = match slices {
        [slice] if slice.take as u64 == elements => 0,
        _ => elements * decoded_width(&column.encoding),
    };
    beside.saturating_add(if is_packed { packed_bytes } else { 0 })
}

/// Bytes of one element in memory, of the widest way to decode it.
fn decoded_width(encoding: &Encoding) -> u64 {
    match encoding.column_type() {
        ColumnType::Bit => 0,
        ColumnType::Switch => 12,
        ColumnType::Byte | ColumnType::Char | ColumnType::Int8 | ColumnType::UInt8 => 1,
        _ => 8,
    }
}
