//! One column being written: values are staged, packed into pages, and wait as sealed pages to be stored.

use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use tupelo_format::checksum::CHECKSUM_BYTES;
use tupelo_format::encoding::{self, ColumnType, Encoding};
use tupelo_format::envelope::PageInfo;
use tupelo_format::locator::Locator;

use super::page::{PackedPage, PageOptions, SealedPage, StoredColumn};
use super::sealed::SealedColumn;
use crate::{Error, Result, sink};

/// The capacity for pending values grows by at least this fraction.
const GROWTH: usize = 4;

/// The in-memory representation of a column's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnKind {
    /// Booleans.
    Bits,
    /// Little-endian values of this many bytes.
    Fixed(usize),
    /// Single-precision numbers.
    Floats,
    /// Double-precision numbers.
    Doubles,
    /// Ends of collections.
    Indexes,
    /// With the number of alternatives.
    Switches(usize),
}

/// Values of an array for one column; they share the buffers of the array.
#[derive(Debug)]
pub enum Values {
    /// Of a column of [`ColumnKind::Bits`].
    Bits(BooleanBuffer),
    /// Little-endian values of the column's width.
    Fixed(Buffer),
    /// Of a column of [`ColumnKind::Floats`].
    Floats(ScalarBuffer<f32>),
    /// Of a column of [`ColumnKind::Doubles`].
    Doubles(ScalarBuffer<f64>),
    /// Sizes of the next collections.
    Lengths(Lengths),
    /// Tags of the next variants; 0 has no value.
    Tags(Vec<u32>),
}

/// Sizes of consecutive collections.
#[derive(Debug)]
pub enum Lengths {
    /// Differences of consecutive offsets, which do not decrease.
    Narrow(OffsetBuffer<i32>),
    Wide(OffsetBuffer<i64>),
    /// One item for each valid value, none for each null.
    Valid(NullBuffer),
    /// This many collections of one item each.
    Ones(usize),
}

impl Lengths {
    /// Items of all collections together.
    pub(super) fn items(&self) -> u64 {
        match self {
            Self::Narrow(offsets) => span(offsets),
            Self::Wide(offsets) => span(offsets),
            Self::Valid(nulls) => (nulls.len() - nulls.null_count()) as u64,
            Self::Ones(count) => *count as u64,
        }
    }

    /// Items of the largest collection.
    pub(super) fn max(&self) -> u64 {
        let largest = match self {
            Self::Narrow(offsets) => offsets.lengths().max(),
            Self::Wide(offsets) => offsets.lengths().max(),
            Self::Valid(_) | Self::Ones(_) => Some(1),
        };
        largest.unwrap_or(0) as u64
    }

    /// The number of items up to the end of each collection, counted from `first`.
    pub(super) fn ends(&self, first: u64) -> Vec<u64> {
        match self {
            Self::Narrow(offsets) => ends(offsets, first),
            Self::Wide(offsets) => ends(offsets, first),
            Self::Valid(nulls) => {
                let mut end = first;
                let next = |is_valid| {
                    end += u64::from(is_valid);
                    end
                };
                nulls.iter().map(next).collect()
            }
            Self::Ones(count) => (first + 1..=first + *count as u64).collect(),
        }
    }
}

fn span<O: Copy + Into<i64>>(offsets: &[O]) -> u64 {
    let [Some(first), Some(last)] = [offsets.first(), offsets.last()] else { return 0 };
    (*last).into().abs_diff((*first).into())
}

fn ends<O: Copy + Into<i64>>(offsets: &[O], first: u64) -> Vec<u64> {
    let [start, ends @ ..] = offsets else { return Vec::new() };
    let start = (*start).into();
    ends.iter().map(|end| first + (*end).into().abs_diff(start)).collect()
}

/// Packed values that do not fill a page yet, in the form that the encoding takes.
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
///
/// Values are staged first, which checks all that the caller can get wrong, and then
/// [appended](ColumnWriter::append_staged) or [discarded](ColumnWriter::discard_staged): a refused batch leaves no trace.
#[derive(Debug)]
pub struct ColumnWriter {
    options: PageOptions,
    page_elements: usize,
    staged: Option<Values>,
    pending: Pending,
    /// Stored pages of the open cluster.
    stored: Vec<PageInfo>,
    /// The pages after those; `None` until they are sealed.
    pages: Vec<Option<SealedPage>>,
    /// The pages after those, not compressed yet.
    packed: Vec<PackedPage>,
    /// Items that collections (one number) or variants (one number for each tag) have had in the open cluster.
    ends: Vec<u64>,
    /// Stored bytes of the open cluster's sealed pages.
    pub sealed_bytes: u64,
    /// Bytes of the open cluster's pages before compression.
    pub packed_bytes: u64,
    /// Bytes of sealed pages that are not stored yet.
    pub waiting_bytes: u64,
}

impl ColumnWriter {
    /// A column without elements.
    pub fn new(kind: ColumnKind, options: PageOptions) -> Self {
        let (pending, ends) = match kind {
            ColumnKind::Bits => (Pending::Bits(BooleanBufferBuilder::new(0)), 0),
            ColumnKind::Fixed(width) => (Pending::Fixed { width, bytes: Vec::new() }, 0),
            ColumnKind::Floats => (Pending::Floats(Vec::new()), 0),
            ColumnKind::Doubles => (Pending::Doubles(Vec::new()), 0),
            ColumnKind::Indexes => (Pending::Indexes(Vec::new()), 1),
            ColumnKind::Switches(alternatives) => {
                (Pending::Switches { indexes: Vec::new(), tags: Vec::new() }, alternatives + 1)
            }
        };
        Self {
            options,
            page_elements: options.max_elements(),
            staged: None,
            pending,
            stored: Vec::new(),
            pages: Vec::new(),
            packed: Vec::new(),
            ends: vec![0; ends],
            sealed_bytes: 0,
            packed_bytes: 0,
            waiting_bytes: 0,
        }
    }

    /// An empty column of the same kind, for another context.
    pub fn another(&self) -> Self {
        let kind = match &self.pending {
            Pending::Bits(_) => ColumnKind::Bits,
            Pending::Fixed { width, .. } => ColumnKind::Fixed(*width),
            Pending::Floats(_) => ColumnKind::Floats,
            Pending::Doubles(_) => ColumnKind::Doubles,
            Pending::Indexes(_) => ColumnKind::Indexes,
            Pending::Switches { .. } => ColumnKind::Switches(self.ends.len() - 1),
        };
        Self::new(kind, self.options)
    }

    /// The settings of its pages.
    pub fn options(&self) -> PageOptions {
        self.options
    }

    /// Takes values that the column can hold, or none; they are not part of the cluster yet.
    pub(crate) fn stage(&mut self, values: Values) -> Result<()> {
        let encoding = &self.options.encoding;
        let is_match = match (&values, &self.pending) {
            (Values::Bits(_), Pending::Bits(_)) => true,
            (Values::Fixed(bytes), Pending::Fixed { width, .. }) => bytes.len().is_multiple_of(*width),
            (Values::Floats(values), Pending::Floats(_)) => {
                encoding::check_f32(encoding, values).map_err(invalid)?;
                true
            }
            (Values::Doubles(values), Pending::Doubles(_)) => {
                encoding::check_f64(encoding, values).map_err(invalid)?;
                true
            }
            (Values::Lengths(lengths), Pending::Indexes(_)) => {
                self.check_index(lengths.items())?;
                true
            }
            (Values::Tags(tags), Pending::Switches { .. }) => tags.iter().all(|tag| (*tag as usize) < self.ends.len()),
            _ => false,
        };
        if !is_match {
            return Err(Error::invalid_argument(format!(
                "values do not match a column of type {}",
                encoding.column_type().name()
            )));
        }
        debug_assert!(self.staged.is_none(), "a column is staged once for each piece");
        self.staged = Some(values);
        Ok(())
    }

    /// Whether the cluster should end because indexes of a piece may not fit after those of the open cluster. Half of the
    /// range is left for it: no piece has that many items, except of entries that fit no cluster.
    pub fn is_index_full(&self) -> bool {
        self.options.encoding.column_type().unsplit() == ColumnType::Index32
            && self.ends.first().is_some_and(|end| *end > u64::from(u32::MAX / 2))
    }

    fn check_index(&self, items: u64) -> Result<()> {
        let column_type = self.options.encoding.column_type();
        let end = self.ends.first().copied().unwrap_or(0).saturating_add(items);
        if column_type.unsplit() == ColumnType::Index32 && end > u64::from(u32::MAX) {
            return Err(Error::invalid_argument(format!(
                "index {end} does not fit the {} column; write smaller clusters or use Index64",
                column_type.name()
            )));
        }
        Ok(())
    }

    /// Drops the staged values.
    pub fn discard_staged(&mut self) {
        self.staged = None;
    }

    /// Makes the staged values part of the open cluster, and packs all pages that they fill.
    pub fn append_staged(&mut self) -> Result<()> {
        let Some(values) = self.staged.take() else { return Ok(()) };
        let page = self.page_elements;
        match (values, self.take_pending()) {
            (Values::Bits(values), Pending::Bits(builder)) => self.append_bits(builder, &values),
            (Values::Fixed(values), Pending::Fixed { width, mut bytes }) => {
                let filled = fill(&mut bytes, &values, page * width, |values| {
                    self.pack(values.len() / width, |encoding, out| encoding::encode_fixed(encoding, values, out))
                });
                self.pending = Pending::Fixed { width, bytes };
                filled
            }
            (Values::Floats(values), Pending::Floats(mut pending)) => {
                let filled = fill(&mut pending, &values, page, |values| {
                    self.pack(values.len(), |encoding, out| encoding::encode_f32(encoding, values, out))
                });
                self.pending = Pending::Floats(pending);
                filled
            }
            (Values::Doubles(values), Pending::Doubles(mut pending)) => {
                let filled = fill(&mut pending, &values, page, |values| {
                    self.pack(values.len(), |encoding, out| encoding::encode_f64(encoding, values, out))
                });
                self.pending = Pending::Doubles(pending);
                filled
            }
            (Values::Lengths(lengths), Pending::Indexes(mut pending)) => {
                let ends = lengths.ends(self.ends.first().copied().unwrap_or(0));
                if let Some(end) = ends.last() {
                    self.ends = vec![*end];
                }
                let filled = fill(&mut pending, &ends, page, |values| {
                    self.pack(values.len(), |encoding, out| encoding::encode_index(encoding, values, out))
                });
                self.pending = Pending::Indexes(pending);
                filled
            }
            (Values::Tags(tags), pending) => {
                self.pending = pending;
                self.append_tags(&tags)
            }
            // `stage` refuses all other pairs.
            (_, pending) => {
                self.pending = pending;
                Ok(())
            }
        }
    }

    fn append_bits(&mut self, mut builder: BooleanBufferBuilder, values: &BooleanBuffer) -> Result<()> {
        let page = self.page_elements;
        builder.append_buffer(values);
        if builder.len() >= page {
            let all = builder.finish();
            let whole = all.len() / page * page;
            for start in (0..whole).step_by(page) {
                self.pack_bits(&all.slice(start, page))?;
            }
            builder.append_buffer(&all.slice(whole, all.len() - whole));
        }
        self.pending = Pending::Bits(builder);
        Ok(())
    }

    fn append_tags(&mut self, values: &[u32]) -> Result<()> {
        for &tag in values {
            let (Some(next), Pending::Switches { indexes, tags }) =
                (self.ends.get_mut(tag as usize), &mut self.pending)
            else {
                continue;
            };
            indexes.push(if tag == 0 { 0 } else { *next });
            tags.push(tag);
            *next += 1;
            if tags.len() >= self.page_elements {
                self.pack_pending()?;
            }
        }
        Ok(())
    }

    /// Allocated memory of pending values, in bytes.
    pub fn pending_bytes(&self) -> u64 {
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

    /// Size of the page that the pending values would make, before compression.
    pub fn pending_packed_bytes(&self) -> u64 {
        let elements = match &self.pending {
            Pending::Bits(builder) => builder.len(),
            Pending::Fixed { width, bytes } => bytes.len() / width,
            Pending::Floats(values) => values.len(),
            Pending::Doubles(values) => values.len(),
            Pending::Indexes(values) => values.len(),
            Pending::Switches { tags, .. } => tags.len(),
        };
        self.options.encoding.packed_bytes(elements as u64).unwrap_or(u64::MAX)
    }

    /// Packs the pending values into a page, however small, and frees their memory.
    pub fn pack_pending(&mut self) -> Result<()> {
        match self.take_pending() {
            Pending::Bits(mut builder) if !builder.is_empty() => self.pack_bits(&builder.finish()),
            Pending::Fixed { width, bytes } if !bytes.is_empty() => {
                self.pack(bytes.len() / width, |encoding, out| encoding::encode_fixed(encoding, &bytes, out))
            }
            Pending::Floats(values) if !values.is_empty() => {
                self.pack(values.len(), |encoding, out| encoding::encode_f32(encoding, &values, out))
            }
            Pending::Doubles(values) if !values.is_empty() => {
                self.pack(values.len(), |encoding, out| encoding::encode_f64(encoding, &values, out))
            }
            Pending::Indexes(values) if !values.is_empty() => {
                self.pack(values.len(), |encoding, out| encoding::encode_index(encoding, &values, out))
            }
            Pending::Switches { indexes, tags } if !tags.is_empty() => {
                self.pack(tags.len(), |_, out| encoding::encode_switch(&indexes, &tags, out))
            }
            _ => Ok(()),
        }
    }

    fn pack_bits(&mut self, bits: &BooleanBuffer) -> Result<()> {
        self.pack(bits.len(), |_, out| encoding::encode_bits(bits.values(), bits.offset(), bits.len(), out))
    }

    fn pack(
        &mut self,
        elements: usize,
        encode: impl FnOnce(&Encoding, &mut Vec<u8>) -> tupelo_format::Result<()>,
    ) -> Result<()> {
        let elements =
            u32::try_from(elements).map_err(|_| Error::limit(format!("page of {elements} elements is too large")))?;
        let mut page = PackedPage { elements, bytes: Vec::new() };
        let packed_bytes = self.options.encoding.packed_bytes(elements.into()).unwrap_or_default();
        page.bytes.reserve_exact(packed_bytes as usize + CHECKSUM_BYTES);
        encode(&self.options.encoding, &mut page.bytes).map_err(invalid)?;
        self.packed_bytes += page.bytes();
        self.packed.push(page);
        Ok(())
    }

    /// The pages to seal, in order. Each must be returned by [`ColumnWriter::put_sealed`] under its number.
    pub fn take_packed(&mut self) -> impl Iterator<Item = (usize, PackedPage)> + use<> {
        let packed = std::mem::take(&mut self.packed);
        let first = self.pages.len();
        self.pages.resize_with(first + packed.len(), || None);
        (first..).zip(packed)
    }

    /// The sealed page of a number.
    pub fn put_sealed(&mut self, number: usize, page: SealedPage) {
        self.sealed_bytes += page.bytes.len() as u64;
        self.waiting_bytes += page.bytes.len() as u64;
        if let Some(place) = self.pages.get_mut(number) {
            *place = Some(page);
        }
    }

    /// The sealed pages that are not stored yet, as those of the column with this number.
    pub fn waiting(&self, column: u32) -> impl Iterator<Item = sink::PageBytes<'_>> {
        self.pages.iter().flatten().map(move |page| page.as_stored(column))
    }

    /// Notes the locators of the pages that were [waiting](ColumnWriter::waiting).
    pub fn set_stored(&mut self, locators: &mut impl Iterator<Item = Locator>) {
        debug_assert!(self.pages.iter().all(Option::is_some), "pages are stored in order");
        self.waiting_bytes = 0;
        for (page, locator) in self.pages.drain(..).flatten().zip(locators) {
            self.stored.push(page.stored_at(locator));
        }
    }

    /// Ends the cluster, whose pages are all stored.
    pub fn take_stored(&mut self) -> StoredColumn {
        debug_assert!(self.packed.is_empty() && self.pages.is_empty(), "pages are left behind");
        self.end_cluster();
        let compression = self.options.compression.setting();
        StoredColumn { pages: std::mem::take(&mut self.stored), compression, representation: 0 }
    }

    /// Ends the cluster, whose pages are all sealed and none of them stored.
    pub fn take_sealed(&mut self) -> SealedColumn {
        debug_assert!(self.packed.is_empty() && self.stored.is_empty(), "pages are left behind");
        self.end_cluster();
        let pages = self.pages.drain(..).flatten().collect();
        SealedColumn { compression: self.options.compression.setting(), pages, representation: 0 }
    }

    fn end_cluster(&mut self) {
        self.ends.fill(0);
        (self.sealed_bytes, self.packed_bytes, self.waiting_bytes) = (0, 0, 0);
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
}

/// Values that an encoding cannot hold are an error of the caller.
fn invalid(error: tupelo_format::Error) -> Error {
    Error::invalid_argument(error.what())
}

/// Cuts values into pages of `page` values. Whole pages are packed in place; only the rest is copied.
fn fill<T: Copy>(
    pending: &mut Vec<T>,
    mut values: &[T],
    page: usize,
    mut pack: impl FnMut(&[T]) -> Result<()>,
) -> Result<()> {
    while !values.is_empty() {
        if pending.is_empty() && values.len() >= page {
            let (whole, rest) = values.split_at(page);
            pack(whole)?;
            values = rest;
            continue;
        }
        let room = page - pending.len();
        let (taken, rest) = values.split_at(room.min(values.len()));
        if pending.capacity() < pending.len() + taken.len() {
            // Doubling the capacity would take too much memory where many columns grow at the same time.
            pending.reserve_exact(taken.len().max(pending.len() / GROWTH).min(room));
        }
        pending.extend_from_slice(taken);
        values = rest;
        if pending.len() == page {
            pack(pending)?;
            pending.clear();
        }
    }
    Ok(())
}
