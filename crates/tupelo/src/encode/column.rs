//! One column being written: values become pages, pages wait sealed for their cluster.

use std::cell::RefCell;

use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder};
use tupelo_format::checksum::{CHECKSUM_BYTES, xxh3};
use tupelo_format::compression::{self, Compression};
use tupelo_format::encoding::{self, Encoding};
use tupelo_format::envelope::PageInfo;
use tupelo_format::locator::Locator;

use crate::{Error, Result, sink};

/// Room for values that wait grows by one part of so many.
const GROWTH: usize = 4;

thread_local! {
    /// The page being compressed, which takes the most that it may take.
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// An encoded page that waits for a thread to compress it.
#[derive(Debug)]
pub(crate) struct PackedPage {
    elements: u32,
    bytes: Vec<u8>,
}

impl PackedPage {
    /// Its size.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Compresses the page, and puts its checksum behind it.
    pub(crate) fn seal(self, sealing: &Sealing) -> Result<SealedPage> {
        let mut bytes = self.bytes;
        if !sealing.compression.is_none() {
            SCRATCH.with_borrow_mut(|scratch| {
                scratch.clear();
                compression::compress(sealing.compression, &bytes, scratch)?;
                // Exactly what is needed, for it waits until its cluster is full.
                bytes = Vec::with_capacity(scratch.len() + CHECKSUM_BYTES);
                bytes.extend_from_slice(scratch);
                Ok::<_, Error>(())
            })?;
        }
        let digest = sealing.has_checksum.then(|| xxh3(&bytes));
        if let Some(checksum) = digest {
            bytes.extend_from_slice(&checksum.to_le_bytes());
        }
        Ok(SealedPage { elements: self.elements, bytes, digest })
    }
}

/// A compressed page with its checksum behind it.
#[derive(Debug)]
pub(crate) struct SealedPage {
    pub(crate) elements: u32,
    /// The page and, if there is one, the checksum.
    pub(crate) bytes: Vec<u8>,
    /// The checksum.
    pub(crate) digest: Option<u64>,
}

/// The pages of one column of one cluster, which are in the file.
#[derive(Debug)]
pub(crate) struct StoredColumn {
    pub(crate) pages: Vec<PageInfo>,
    /// Compression setting.
    pub(crate) compression: u32,
}

/// How a column's pages are made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sealing {
    pub(crate) encoding: Encoding,
    pub(crate) compression: Compression,
    pub(crate) has_checksum: bool,
    /// Largest page, in bytes of packed elements.
    pub(crate) page_bytes: u64,
}

/// Values that are not in a page yet, in the form in which the encoding takes them.
#[derive(Debug)]
enum Pending {
    Bits(BooleanBufferBuilder),
    Fixed { width: usize, bytes: Vec<u8> },
    Floats(Vec<f32>),
    Doubles(Vec<f64>),
    Indexes(Vec<u64>),
    Switches { indexes: Vec<u64>, tags: Vec<u32> },
}

/// One column of one ntuple.
#[derive(Debug)]
pub(crate) struct ColumnWriter {
    sealing: Sealing,
    page_elements: usize,
    pending: Pending,
    /// Pages of the open cluster that are in the file.
    stored: Vec<PageInfo>,
    /// The sealed pages behind those.
    pages: Vec<SealedPage>,
    /// The pages behind those, not compressed yet.
    packed: Vec<PackedPage>,
    /// Items that collections (one number) or variants (one a tag) have had in the open cluster.
    ends: Vec<u64>,
    /// Stored bytes and packed bytes of the open cluster's sealed pages.
    pub(crate) sealed_bytes: u64,
    pub(crate) packed_bytes: u64,
    /// Stored bytes of those that are not in the file yet.
    pub(crate) waiting_bytes: u64,
}

/// The shape of a column's values in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Memory {
    Bits,
    Fixed(usize),
    Floats,
    Doubles,
    Indexes,
    /// With the number of alternatives.
    Switches(usize),
}

/// What values are given to, each with the number of the column that they belong to.
pub(crate) trait Columns {
    fn bits(&mut self, column: usize, values: &BooleanBuffer) -> Result<()>;
    /// Little-endian values of the column's width.
    fn fixed(&mut self, column: usize, values: &[u8]) -> Result<()>;
    fn floats(&mut self, column: usize, values: &[f32]) -> Result<()>;
    fn doubles(&mut self, column: usize, values: &[f64]) -> Result<()>;
    /// Sizes of the next collections.
    fn lengths(&mut self, column: usize, lengths: impl Iterator<Item = u64>) -> Result<()>;
    /// Tags of the next variants; 0 has no value.
    fn tags(&mut self, column: usize, tags: &[u32]) -> Result<()>;
}

/// Takes them into pages.
impl Columns for [ColumnWriter] {
    fn bits(&mut self, column: usize, values: &BooleanBuffer) -> Result<()> {
        self.get_mut(column).ok_or_else(|| no_column(column))?.bits(values)
    }

    fn fixed(&mut self, column: usize, values: &[u8]) -> Result<()> {
        self.get_mut(column).ok_or_else(|| no_column(column))?.fixed(values)
    }

    fn floats(&mut self, column: usize, values: &[f32]) -> Result<()> {
        self.get_mut(column).ok_or_else(|| no_column(column))?.floats(values)
    }

    fn doubles(&mut self, column: usize, values: &[f64]) -> Result<()> {
        self.get_mut(column).ok_or_else(|| no_column(column))?.doubles(values)
    }

    fn lengths(&mut self, column: usize, lengths: impl Iterator<Item = u64>) -> Result<()> {
        self.get_mut(column).ok_or_else(|| no_column(column))?.lengths(lengths)
    }

    fn tags(&mut self, column: usize, tags: &[u32]) -> Result<()> {
        self.get_mut(column).ok_or_else(|| no_column(column))?.tags(tags)
    }
}

/// Takes nothing, but says whether the columns would.
#[derive(Debug)]
pub(crate) struct Check<'c>(pub(crate) &'c [ColumnWriter]);

impl Check<'_> {
    fn shape(&self, column: usize, fits: impl Fn(&Pending) -> bool) -> Result<&ColumnWriter> {
        let column = self.0.get(column).ok_or_else(|| no_column(column))?;
        if fits(&column.pending) { Ok(column) } else { column.mismatch().map(|()| column) }
    }
}

impl Columns for Check<'_> {
    fn bits(&mut self, column: usize, _: &BooleanBuffer) -> Result<()> {
        self.shape(column, |pending| matches!(pending, Pending::Bits(_))).map(|_| ())
    }

    fn fixed(&mut self, column: usize, values: &[u8]) -> Result<()> {
        let fits =
            |pending: &Pending| matches!(pending, Pending::Fixed { width, .. } if values.len().is_multiple_of(*width));
        self.shape(column, fits).map(|_| ())
    }

    fn floats(&mut self, column: usize, values: &[f32]) -> Result<()> {
        let column = self.shape(column, |pending| matches!(pending, Pending::Floats(_)))?;
        encoding::check_f32(&column.sealing.encoding, values).map_err(|e| Error::invalid_argument(e.what()))
    }

    fn doubles(&mut self, column: usize, values: &[f64]) -> Result<()> {
        let column = self.shape(column, |pending| matches!(pending, Pending::Doubles(_)))?;
        encoding::check_f64(&column.sealing.encoding, values).map_err(|e| Error::invalid_argument(e.what()))
    }

    fn lengths(&mut self, column: usize, _: impl Iterator<Item = u64>) -> Result<()> {
        self.shape(column, |pending| matches!(pending, Pending::Indexes(_))).map(|_| ())
    }

    fn tags(&mut self, column: usize, tags: &[u32]) -> Result<()> {
        let column = self.shape(column, |pending| matches!(pending, Pending::Switches { .. }))?;
        let is_known = |tag: &u32| (*tag as usize) < column.ends.len();
        if tags.iter().all(is_known) { Ok(()) } else { column.mismatch() }
    }
}

#[cold]
fn no_column(column: usize) -> Error {
    Error::invalid_argument(format!("no column {column}"))
}

impl ColumnWriter {
    pub(crate) fn new(memory: Memory, sealing: Sealing) -> Self {
        let page_bits = sealing.page_bytes.saturating_mul(8);
        let page_elements = (page_bits / u64::from(sealing.encoding.bits())).clamp(1, i32::MAX as u64) as usize;
        let (pending, ends) = match memory {
            Memory::Bits => (Pending::Bits(BooleanBufferBuilder::new(0)), 0),
            Memory::Fixed(width) => (Pending::Fixed { width, bytes: Vec::new() }, 0),
            Memory::Floats => (Pending::Floats(Vec::new()), 0),
            Memory::Doubles => (Pending::Doubles(Vec::new()), 0),
            Memory::Indexes => (Pending::Indexes(Vec::new()), 1),
            Memory::Switches(alternatives) => {
                (Pending::Switches { indexes: Vec::new(), tags: Vec::new() }, alternatives + 1)
            }
        };
        Self {
            sealing,
            page_elements,
            pending,
            stored: Vec::new(),
            pages: Vec::new(),
            packed: Vec::new(),
            ends: vec![0; ends],
            sealed_bytes: 0,
            waiting_bytes: 0,
            packed_bytes: 0,
        }
    }

    /// Another column of the same kind, for another context; empty.
    pub(crate) fn another(&self) -> Self {
        let memory = match &self.pending {
            Pending::Bits(_) => Memory::Bits,
            Pending::Fixed { width, .. } => Memory::Fixed(*width),
            Pending::Floats(_) => Memory::Floats,
            Pending::Doubles(_) => Memory::Doubles,
            Pending::Indexes(_) => Memory::Indexes,
            Pending::Switches { .. } => Memory::Switches(self.ends.len() - 1),
        };
        Self::new(memory, self.sealing)
    }

    fn floats(&mut self, values: &[f32]) -> Result<()> {
        let Pending::Floats(mut pending) = self.take_pending() else { return self.mismatch() };
        let done = fill(&mut pending, values, self.page_elements, |values| {
            self.seal(values.len(), |encoding, out| encoding::encode_f32(encoding, values, out))
        });
        self.pending = Pending::Floats(pending);
        done
    }

    fn doubles(&mut self, values: &[f64]) -> Result<()> {
        let Pending::Doubles(mut pending) = self.take_pending() else { return self.mismatch() };
        let done = fill(&mut pending, values, self.page_elements, |values| {
            self.seal(values.len(), |encoding, out| encoding::encode_f64(encoding, values, out))
        });
        self.pending = Pending::Doubles(pending);
        done
    }

    /// Little-endian values of the column's width.
    fn fixed(&mut self, values: &[u8]) -> Result<()> {
        let Pending::Fixed { width, mut bytes } = self.take_pending() else { return self.mismatch() };
        let done = fill(&mut bytes, values, self.page_elements * width, |values| {
            self.seal(values.len() / width, |encoding, out| encoding::encode_fixed(encoding, values, out))
        });
        self.pending = Pending::Fixed { width, bytes };
        done
    }

    fn bits(&mut self, values: &BooleanBuffer) -> Result<()> {
        let page = self.page_elements;
        let Pending::Bits(builder) = &mut self.pending else { return self.mismatch() };
        builder.append_buffer(values);
        if builder.len() < page {
            return Ok(());
        }
        let all = builder.finish();
        let whole = all.len() / page * page;
        for start in (0..whole).step_by(page) {
            self.seal_bits(&all.slice(start, page))?;
        }
        if let Pending::Bits(builder) = &mut self.pending {
            builder.append_buffer(&all.slice(whole, all.len() - whole));
        }
        Ok(())
    }

    /// Sizes of the next collections.
    fn lengths(&mut self, lengths: impl Iterator<Item = u64>) -> Result<()> {
        let mut end = self.ends.first().copied().unwrap_or(0);
        let ends: Vec<u64> = lengths
            .map(|length| {
                end += length;
                end
            })
            .collect();
        let Pending::Indexes(mut pending) = self.take_pending() else { return self.mismatch() };
        let done = fill(&mut pending, &ends, self.page_elements, |values| {
            self.seal(values.len(), |encoding, out| encoding::encode_index(encoding, values, out))
        });
        self.pending = Pending::Indexes(pending);
        self.ends = vec![end];
        done
    }

    /// Tags of the next variants; 0 has no value.
    fn tags(&mut self, values: &[u32]) -> Result<()> {
        for &tag in values {
            let Some(next) = self.ends.get_mut(tag as usize) else { return self.mismatch() };
            let Pending::Switches { indexes, tags } = &mut self.pending else { return self.mismatch() };
            indexes.push(if tag == 0 { 0 } else { *next });
            tags.push(tag);
            *next += 1;
            if tags.len() >= self.page_elements {
                self.seal_pending()?;
            }
        }
        Ok(())
    }

    /// What waits for its page, in bytes of memory.
    pub(crate) fn pending_bytes(&self) -> u64 {
        let bytes = match &self.pending {
            Pending::Bits(builder) => builder.capacity() / 8,
            Pending::Fixed { bytes, .. } => bytes.capacity(),
            Pending::Floats(values) => values.capacity() * 4,
            Pending::Doubles(values) => values.capacity() * 8,
            Pending::Indexes(values) => values.capacity() * 8,
            Pending::Switches { indexes, tags } => indexes.capacity() * 8 + tags.capacity() * 4,
        };
        bytes as u64
    }

    /// What waits for its page, in bytes as it will be packed.
    pub(crate) fn pending_packed_bytes(&self) -> u64 {
        let elements = match &self.pending {
            Pending::Bits(builder) => builder.len(),
            Pending::Fixed { width, bytes } => bytes.len() / width,
            Pending::Floats(values) => values.len(),
            Pending::Doubles(values) => values.len(),
            Pending::Indexes(values) => values.len(),
            Pending::Switches { tags, .. } => tags.len(),
        };
        self.sealing.encoding.packed_bytes(elements as u64).unwrap_or(u64::MAX)
    }

    /// Makes a page of what is pending, however small, and frees its memory.
    pub(crate) fn seal_pending(&mut self) -> Result<()> {
        match self.take_pending() {
            Pending::Bits(mut builder) if !builder.is_empty() => self.seal_bits(&builder.finish()),
            Pending::Fixed { width, bytes } if !bytes.is_empty() => {
                self.seal(bytes.len() / width, |encoding, out| encoding::encode_fixed(encoding, &bytes, out))
            }
            Pending::Floats(values) if !values.is_empty() => {
                self.seal(values.len(), |encoding, out| encoding::encode_f32(encoding, &values, out))
            }
            Pending::Doubles(values) if !values.is_empty() => {
                self.seal(values.len(), |encoding, out| encoding::encode_f64(encoding, &values, out))
            }
            Pending::Indexes(values) if !values.is_empty() => {
                self.seal(values.len(), |encoding, out| encoding::encode_index(encoding, &values, out))
            }
            Pending::Switches { indexes, tags } if !tags.is_empty() => {
                self.seal(tags.len(), |_, out| encoding::encode_switch(&indexes, &tags, out))
            }
            _ => Ok(()),
        }
    }

    /// The sealed pages that are not stored yet.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = sink::SealedPage<'_>> {
        self.pages.iter().map(|page| {
            let checksum_bytes = if page.digest.is_some() { CHECKSUM_BYTES } else { 0 };
            sink::SealedPage { bytes: &page.bytes, checksum_bytes }
        })
    }

    /// Notes where the pages are that were waiting.
    pub(crate) fn place(&mut self, locators: &mut impl Iterator<Item = Locator>) {
        self.waiting_bytes = 0;
        for (page, locator) in self.pages.drain(..).zip(locators) {
            let (elements, digest) = (page.elements, page.digest);
            self.stored.push(PageInfo { elements, has_checksum: digest.is_some(), locator, digest });
        }
    }

    /// Ends the cluster, whose pages are all in the file, and gives them.
    pub(crate) fn take_cluster(&mut self) -> StoredColumn {
        debug_assert!(self.packed.is_empty() && self.pages.is_empty(), "pages are left behind");
        self.ends.fill(0);
        (self.sealed_bytes, self.packed_bytes) = (0, 0);
        let compression = self.sealing.compression.setting();
        StoredColumn { pages: std::mem::take(&mut self.stored), compression }
    }

    fn seal_bits(&mut self, bits: &BooleanBuffer) -> Result<()> {
        self.seal(bits.len(), |_, out| encoding::encode_bits(bits.values(), bits.offset(), bits.len(), out))
    }

    fn seal(
        &mut self,
        elements: usize,
        encode: impl FnOnce(&Encoding, &mut Vec<u8>) -> tupelo_format::Result<()>,
    ) -> Result<()> {
        let elements = u32::try_from(elements).map_err(|_| Error::limit(format!("a page of {elements} elements")))?;
        let packed_bytes = self.sealing.encoding.packed_bytes(elements.into()).unwrap_or_default();
        let mut bytes = Vec::with_capacity(packed_bytes as usize + CHECKSUM_BYTES);
        // Values that an encoding cannot hold are the caller's.
        encode(&self.sealing.encoding, &mut bytes).map_err(|e| Error::invalid_argument(e.what()))?;
        self.packed_bytes += bytes.len() as u64;
        self.packed.push(PackedPage { elements, bytes });
        Ok(())
    }

    /// How its pages are made.
    pub(crate) fn sealing(&self) -> Sealing {
        self.sealing
    }

    /// The pages that wait to be sealed, in order; they must come back by [`ColumnWriter::put`].
    pub(crate) fn take_packed(&mut self) -> Vec<PackedPage> {
        std::mem::take(&mut self.packed)
    }

    /// The next sealed page.
    pub(crate) fn put(&mut self, page: SealedPage) {
        self.sealed_bytes += page.bytes.len() as u64;
        self.waiting_bytes += page.bytes.len() as u64;
        self.pages.push(page);
    }

    fn take_pending(&mut self) -> Pending {
        let empty = match &self.pending {
            Pending::Bits(_) => Pending::Bits(BooleanBufferBuilder::new(0)),
            Pending::Fixed { width, .. } => Pending::Fixed { width: *width, bytes: Vec::new() },
            Pending::Floats(_) => Pending::Floats(Vec::new()),
            Pending::Doubles(_) => Pending::Doubles(Vec::new()),
            Pending::Indexes(_) => Pending::Indexes(Vec::new()),
            Pending::Switches { .. } => Pending::Switches { indexes: Vec::new(), tags: Vec::new() },
        };
        std::mem::replace(&mut self.pending, empty)
    }

    #[cold]
    fn mismatch(&self) -> Result<()> {
        Err(Error::invalid_argument(format!(
            "values that do not fit a {} column",
            self.sealing.encoding.column_type().name()
        )))
    }
}

/// Cuts values into pages of `page` values. Whole pages are sealed where they stand; only the rest is copied.
fn fill<T: Copy>(
    pending: &mut Vec<T>,
    mut values: &[T],
    page: usize,
    mut seal: impl FnMut(&[T]) -> Result<()>,
) -> Result<()> {
    while !values.is_empty() {
        if pending.is_empty() && values.len() >= page {
            let (whole, rest) = values.split_at(page);
            seal(whole)?;
            values = rest;
            continue;
        }
        let room = page - pending.len();
        let (taken, rest) = values.split_at(room.min(values.len()));
        if pending.capacity() < pending.len() + taken.len() {
            // Where columns are many and all grow at a time, twice the room for each would be too much.
            pending.reserve_exact(taken.len().max(pending.len() / GROWTH).min(room));
        }
        pending.extend_from_slice(taken);
        values = rest;
        if pending.len() == page {
            seal(pending)?;
            pending.clear();
        }
    }
    Ok(())
}
