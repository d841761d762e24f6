//! Pages that are known: which are read together, and what is in them.

use tupelo_format::checksum::CHECKSUM_BYTES;
use tupelo_format::encoding::{ColumnType, Encoding};
use tupelo_format::wire::Cursor;

use super::super::scratch::{sized, with_scratch};
use super::{Column, Pages, Touch};
use crate::schema::Field;
use crate::{Error, Result};

/// Pages that are read at once, in bytes: together with one that is unpacked they stay in a core's own cache.
const RUN_BYTES: u64 = 256 << 10;
/// To look at the checksums of pages that are smaller on average takes as long as to decode them, in bytes.
const WORTH_COMPARING_BYTES: u64 = 8 << 10;

impl Pages<'_> {
    /// Sees to it that the first pages are at hand, as many as there is room for: they are fetched unless the source is
    /// near. Gives their number.
    pub(crate) fn provide(&mut self, field: &Field, touches: &[Touch]) -> Result<usize> {
        let is_there = |pages: &Self, touch: &Touch| {
            pages.column_of(touch).is_none_or(|column| {
                column.bytes[touch.page].is_some() || pages.source.is_near(&column.info.pages[touch.page])
            })
        };
        if !touches.first().is_none_or(|touch| is_there(self, touch)) {
            self.fetch_run(field, touches)?;
        }
        Ok(touches.iter().take_while(|touch| is_there(self, touch)).count())
    }

    /// Gives up pages that were fetched.
    pub(crate) fn release(&mut self, touches: &[Touch]) {
        for touch in touches {
            let key = (touch.cluster.number, touch.column);
            let slot = self.columns.get_mut(&key).and_then(|column| column.bytes.get_mut(touch.page));
            if let Some(bytes) = slot.and_then(Option::take) {
                self.memory.give(bytes.len() as u64);
            }
        }
    }

    /// What tells these parts of pages from others: numbers that are the same for the same elements at the same places.
    /// None where that is not certain, because there are no checksums or they are not compared, or not worth the while.
    pub(crate) fn fingerprint(&self, touches: &[Touch]) -> Result<Option<Vec<u64>>> {
        let (mut numbers, mut sealed_bytes) = (Vec::with_capacity(6 * touches.len()), 0);
        for touch in touches {
            let Some(column) = self.column_of(touch) else { return Ok(None) };
            let info = &column.info.pages[touch.page];
            let place = self.source.page_range(info)?;
            sealed_bytes += place.end - place.start;
            let encoding = u64::from(column.encoding.column_type().code()) << 16 | u64::from(column.encoding.bits());
            let parts = [touch.skip, touch.take, touch.to].map(|number| number as u64);
            numbers.extend([encoding, place.end - place.start, u64::from(info.elements), parts[0], parts[1], parts[2]]);
        }
        if !self.source.verifies() || sealed_bytes < WORTH_COMPARING_BYTES * touches.len() as u64 {
            return Ok(None);
        }
        for touch in touches {
            let Some(column) = self.column_of(touch) else { return Ok(None) };
            let Some(checksum) = self.checksum(column, touch.page)? else { return Ok(None) };
            numbers.push(checksum);
        }
        Ok(Some(numbers))
    }

    /// The checksum of a page as it is stored.
    fn checksum(&self, column: &Column, page: usize) -> Result<Option<u64>> {
        let info = &column.info.pages[page];
        if info.digest.is_some() || !info.has_checksum {
            return Ok(info.digest);
        }
        let mut stored = [0; CHECKSUM_BYTES];
        match column.bytes[page].as_deref().and_then(|bytes| bytes.last_chunk()) {
            Some(bytes) => stored = *bytes,
            // What is far is not asked for eight bytes, and what lies in pieces has them elsewhere.
            None if !self.source.is_near(info) => return Ok(None),
            None => {
                let end = self.source.page_range(info)?.end;
                self.source.read_into(end - CHECKSUM_BYTES as u64, &mut [&mut stored])?;
            }
        }
        Ok(Some(Cursor::new(&stored, 0).u64_le()?))
    }

    pub(super) fn column_of(&self, touch: &Touch) -> Option<&Column> {
        self.columns.get(&(touch.cluster.number, touch.column))
    }

    /// Touches in runs: pages of one column that lie side by side in the file and are small enough to be read at once, or
    /// one page. What is taken of one page stays together.
    pub(crate) fn runs<'t>(&self, mut touches: &'t [Touch]) -> Vec<&'t [Touch]> {
        let mut runs = Vec::new();
        while !touches.is_empty() {
            let (run, others) = touches.split_at(self.run_end(touches));
            runs.push(run);
            touches = others;
        }
        runs
    }

    /// Where the next run ends.
    fn run_end(&self, touches: &[Touch]) -> usize {
        let Some((column, first)) = touches.first().and_then(|first| Some((self.column_of(first)?, first))) else {
            return touches.len();
        };
        let place = |touch: &Touch| self.source.page_range(&column.info.pages[touch.page]).unwrap_or(0..0);
        let (mut last, mut until, start) = (first, place(first).end, place(first).start);
        for (index, touch) in touches.iter().enumerate().skip(1) {
            if touch.cluster.number != first.cluster.number || touch.column != first.column {
                return index;
            }
            if touch.page != last.page {
                let place = place(touch);
                let is_other = column.bytes[touch.page].is_some() != column.bytes[first.page].is_some();
                if is_other || place.start != until || place.end - start > RUN_BYTES {
                    return index;
                }
                until = place.end;
            }
            last = touch;
        }
        touches.len()
    }

    /// Reads, compares and decompresses the pages of a run, one after the other. `decode` is given what is wanted of one
    /// page (once, or several parts), its encoding, the number of its elements, and the page.
    pub(crate) fn unseal(
        &self,
        field: &Field,
        run: &[Touch],
        mut decode: impl FnMut(&[Touch], &Encoding, usize, &[u8]) -> Result<()>,
    ) -> Result<()> {
        let Some(column) = run.first().and_then(|touch| self.column_of(touch)) else { return Ok(()) };
        let within = |touch: &Touch, e: Error| self.named(field, column.within(&touch.cluster, touch.page, e));
        with_scratch(|scratch| {
            let sealed = self.read_run(column, run, &mut scratch.sealed).map_err(|e| within(&run[0], e))?;
            let mut at = 0;
            for touches in run.chunk_by(|a, b| a.page == b.page) {
                let page = touches[0].page;
                let info = &column.info.pages[page];
                let mut unseal = || {
                    let sealed = match &column.bytes[page] {
                        Some(bytes) => bytes,
                        None => {
                            let place = self.source.page_range(info)?;
                            let from = at;
                            at += (place.end - place.start) as usize;
                            sealed.get(from..at).ok_or_else(|| Error::corrupt("the page was not read"))?
                        }
                    };
                    let elements = info.elements as usize;
                    let packed_bytes = column.encoding.packed_bytes(elements as u64).unwrap_or(u64::MAX);
                    let is_packed = packed_bytes > sealed.len() as u64;
                    // A page of which only a part is wanted is decoded beside the output.
                    let beside = match touches {
                        [touch] if touch.take == elements => 0,
                        _ => elements as u64 * decoded_width(&column.encoding),
                    };
                    let _room = self.memory.hold(if is_packed { packed_bytes } else { 0 }, "a page")?;
                    let _beside = self.memory.hold(beside, "a page of which a part is wanted")?;
                    let counters = self.source.counters();
                    let packed = counters.decompress(sealed.len(), packed_bytes, || {
                        self.source.unseal(info, &column.encoding, sealed, &mut scratch.packed)
                    })?;
                    counters.decode(|| decode(touches, &column.encoding, elements, packed))
                };
                unseal().map_err(|e| within(&touches[0], e))?;
            }
            Ok(())
        })
    }

    /// The bytes of a run of pages that were not fetched.
    fn read_run<'r>(&self, column: &Column, run: &[Touch], room: &'r mut Vec<u8>) -> Result<&'r [u8]> {
        let (Some(first), Some(last)) = (run.first(), run.last()) else { return Ok(&[]) };
        if column.bytes[first.page].is_some() {
            return Ok(&[]);
        }
        let start = self.source.page_range(&column.info.pages[first.page])?.start;
        let end = self.source.page_range(&column.info.pages[last.page])?.end;
        let _room = self.memory.hold(end.saturating_sub(start), "sealed pages")?;
        let sealed = sized(room, end.saturating_sub(start))?;
        self.source.read_into(start, &mut [sealed])?;
        Ok(sealed)
    }

    /// Reads the pages of a run straight into their place in the output, where they are stored as they are in memory and
    /// are wanted whole; `false` where they are not.
    pub(crate) fn read_plain(&self, field: &Field, run: &[Touch], width: usize, out: &mut [u8]) -> Result<bool> {
        let Some(column) = run.first().and_then(|touch| self.column_of(touch)) else { return Ok(true) };
        let page = |touch: &Touch| &column.info.pages[touch.page];
        let is_plain = |touch: &Touch| {
            let stored = page(touch).locator.in_file().map(|(_, bytes)| bytes);
            column.bytes[touch.page].is_none()
                && touch.take == page(touch).elements as usize
                && stored.is_ok_and(|stored| stored == (touch.take * width) as u64)
        };
        // Segments may share an element, and so take a small page whole twice.
        let is_once = run.windows(2).all(|pair| pair[0].page != pair[1].page);
        if !is_once
            || !column.encoding.is_plain()
            || usize::from(column.encoding.bits()) != 8 * width
            || !run.iter().all(is_plain)
        {
            return Ok(false);
        }
        let within = |touch: &Touch, e: Error| self.named(field, column.within(&touch.cluster, touch.page, e));
        let mut checksums = vec![[0; CHECKSUM_BYTES]; run.len()];
        let (mut rest, mut pieces) = (&mut *out, Vec::with_capacity(2 * run.len()));
        for (touch, checksum) in run.iter().zip(&mut checksums) {
            let (mine, others) = rest.split_at_mut(touch.take * width);
            rest = others;
            pieces.push(mine);
            if page(touch).has_checksum {
                pieces.push(checksum);
            }
        }
        let start = self.source.page_range(page(&run[0])).map_err(|e| within(&run[0], e))?.start;
        self.source.read_into(start, &mut pieces).map_err(|e| within(&run[0], e))?;
        let mut rest = &*out;
        for (touch, checksum) in run.iter().zip(checksums) {
            let (mine, others) = rest.split_at(touch.take * width);
            rest = others;
            let checksum = page(touch).has_checksum.then_some(&checksum);
            let sealed_bytes = mine.len() + if checksum.is_some() { CHECKSUM_BYTES } else { 0 };
            self.source
                .counters()
                .decompress(sealed_bytes, mine.len() as u64, || self.source.compare(page(touch), mine, checksum))
                .map_err(|e| within(touch, e))?;
        }
        Ok(true)
    }
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
