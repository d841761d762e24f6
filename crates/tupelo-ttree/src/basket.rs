//! Baskets: the values of a range of entries of one branch (`TBasket::Streamer`, `TBasket::ReadBasketBuffers`).
//!
//! The head of a basket follows the key of its record. The positions of the entries follow the values, unless all
//! entries have the same length or the positions follow from a counter.

use std::ops::Range;

use tupelo_format::wire::Cursor;
use tupelo_format::{Error, Result};

/// Keys with a higher version have offsets of 64 bits.
pub(crate) const BIG: u16 = 1000;
/// Larger baskets are refused, in bytes: 1 GiB, which is ROOT's own limit for a buffer.
pub const MAX_BASKET_BYTES: u64 = 1 << 30;
/// Bit of a basket's features: offsets of entries are generated, or stored as sizes
/// (`ROOT::Experimental::EIOFeatures::kGenerateOffsetMap`).
const GENERATED_OFFSETS: u8 = 1;
/// Added to the flag of baskets whose positions must be generated.
const GENERATE: u8 = 80;
/// The place of what a key adds to the numbers of processes, in the bits of its parent's offset (`TKey::fPidOffset`).
pub(crate) const PROCESS_SHIFT: u32 = 48;
/// Bits of a position that old versions of ROOT used for a displacement.
const DISPLACEMENT: u32 = 0xff00_0000;

/// What precedes the values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BasketHead {
    /// Bytes of the key with the head.
    pub key_bytes: u16,
    /// Bytes of the record, key included.
    pub stored_bytes: u32,
    /// Bytes of values and positions before compression.
    pub object_bytes: u32,
    /// Number of entries.
    pub entries: u32,
    /// End of the values, counted from the start of the key.
    last: u32,
    /// ROOT's mark of what follows.
    flag: u8,
    features: u8,
    /// What is added to the numbers of the processes of its objects.
    pub(crate) process_offset: u16,
}

/// The bytes of a range of entries.
#[derive(Debug, Clone)]
pub struct Basket<'a> {
    /// Values of all entries.
    pub data: &'a [u8],
    /// Number of entries.
    pub entries: usize,
    /// Bytes between the place from which references between objects count, and the data.
    pub key_bytes: u16,
    positions: Option<Vec<u32>>,
    /// Where entries were when they were written, if they were moved since.
    origins: Option<Vec<u32>>,
    /// The numbers of values according to another branch, for each item of the entries that are read.
    pub(crate) counts: Vec<usize>,
}

impl BasketHead {
    /// Reads the key and the head from the first bytes of a record at `offset` of the file.
    ///
    /// # Errors
    /// Corrupt where lengths contradict each other; limit above [`MAX_BASKET_BYTES`].
    pub fn read(bytes: &[u8], offset: u64) -> Result<Self> {
        let head = Self::parse(&mut Cursor::new(bytes, offset))?;
        match head.stored_bytes > u32::from(head.key_bytes) || head.object_bytes == 0 {
            true => head.checked(offset),
            false => Err(Error::corrupt(format!("invalid basket size: {} bytes", head.stored_bytes)).at(offset)),
        }
    }

    /// Refuses a record at `offset` of another file that is not a basket of the branch with this name.
    ///
    /// # Errors
    /// Corrupt where the key has another class or name.
    pub fn check_branch(bytes: &[u8], offset: u64, branch: &str) -> Result<()> {
        let mut cursor = Cursor::new(bytes, offset);
        cursor.take(4)?;
        let version = cursor.u16_be()?;
        cursor.take(if version > BIG { 28 } else { 20 })?;
        let (class, name) = (cursor.text_be()?, cursor.text_be()?);
        if (class, name) == (b"TBasket", branch.as_bytes()) {
            return Ok(());
        }
        let [class, name] = [class, name].map(String::from_utf8_lossy);
        let what =
            format!("expected a basket of branch '{branch}', found a record with class '{class}', name '{name}'");
        Err(Error::corrupt(what).at(offset))
    }

    pub(crate) fn parse(cursor: &mut Cursor<'_>) -> Result<Self> {
        let offset = cursor.offset();
        let number = |number: i32, what| {
            u32::try_from(number)
                .map_err(|_| Error::corrupt(format!("negative basket size: {number} {what}")).at(offset))
        };
        let stored_bytes = number(cursor.i32_be()?, "stored bytes")?;
        let version = cursor.u16_be()?;
        let object_bytes = number(cursor.i32_be()?, "bytes of values")?;
        let _datime = cursor.u32_be()?;
        let key_bytes = cursor.u16_be()?;
        let _cycle = cursor.u16_be()?;
        let process_offset = if version > BIG {
            cursor.take(8)?;
            (cursor.u64_be()? >> PROCESS_SHIFT) as u16
        } else {
            cursor.take(8)?;
            0
        };
        // Class, name and title.
        for _ in 0..3 {
            cursor.text_be()?;
        }
        let _version = cursor.u16_be()?;
        let _buffer_bytes = cursor.i32_be()?;
        let features = match cursor.i32_be()? {
            ..0 => cursor.u8()?,
            _ => 0,
        };
        let entries = number(cursor.i32_be()?, "entries")?;
        let last = number(cursor.i32_be()?, "bytes")?;
        let flag = cursor.u8()?;
        Ok(Self { key_bytes, stored_bytes, object_bytes, entries, last, flag, features, process_offset })
    }

    fn checked(self, offset: u64) -> Result<Self> {
        let object_bytes = u64::from(self.object_bytes);
        if object_bytes > MAX_BASKET_BYTES {
            return Err(Error::limit(format!(
                "basket of {object_bytes} bytes exceeds the limit of {MAX_BASKET_BYTES}"
            ))
            .at(offset));
        }
        match u64::from(self.last).checked_sub(u64::from(self.key_bytes)) {
            Some(border) if border <= object_bytes => Ok(self),
            _ => {
                let what =
                    format!("the values of the basket end at byte {}, outside its {object_bytes} bytes", self.last);
                Err(Error::corrupt(what).at(offset))
            }
        }
    }

    /// End of the values, counted from the start of the key.
    pub(crate) fn last(&self) -> u32 {
        self.last
    }

    /// Bytes of the positions of the entries; none where these follow from a length or a counter.
    pub fn positions_bytes(&self) -> u32 {
        self.object_bytes.saturating_sub(self.last.saturating_sub(self.key_bytes.into()))
    }

    /// Whether sizes of entries are stored instead of their positions.
    pub(crate) fn stores_sizes(&self) -> bool {
        self.features & GENERATED_OFFSETS != 0
    }

    /// Bytes of the payload in the file.
    pub fn payload_bytes(&self) -> u32 {
        self.stored_bytes.saturating_sub(self.key_bytes.into())
    }

    /// Whether the payload is compressed.
    pub fn is_compressed(&self) -> bool {
        self.payload_bytes() != self.object_bytes
    }

    /// The basket with its decompressed payload.
    ///
    /// # Errors
    /// Corrupt where positions lie outside the values or descend.
    pub fn open(self, payload: &[u8]) -> Result<Basket<'_>> {
        let border = self.last.saturating_sub(self.key_bytes.into()) as usize;
        let Some((data, rest)) = payload.split_at_checked(border) else {
            return Err(Error::corrupt(format!(
                "expected {border} bytes of values, found {} in the basket",
                payload.len()
            )));
        };
        let mut rest = Cursor::new(rest, border as u64);
        let positions = match rest.remaining() {
            0 => None,
            _ => Some(self.positions(&mut rest, border, self.stores_sizes())?),
        };
        let origins = match rest.remaining() {
            0 => None,
            _ => Some(self.places(&mut rest, "original positions")?.collect()),
        };
        Ok(self.basket(data, positions, origins))
    }

    fn basket(self, data: &[u8], positions: Option<Vec<u32>>, origins: Option<Vec<u32>>) -> Basket<'_> {
        let Self { entries, key_bytes, .. } = self;
        Basket { data, entries: entries as usize, key_bytes, positions, origins, counts: Vec::new() }
    }

    /// A list with a place for each entry. It may have more items, which are skipped.
    fn places<'a>(&self, cursor: &mut Cursor<'a>, what: &str) -> Result<impl Iterator<Item = u32> + use<'a>> {
        let (count, wanted) = (cursor.u32_be()? as usize, self.entries as usize);
        if count < wanted {
            return Err(Error::corrupt(format!("expected the {what} of {wanted} entries, found {count}")));
        }
        let stored = cursor.take(wanted.saturating_mul(4))?.as_chunks().0;
        cursor.take((count - wanted).saturating_mul(4).min(cursor.remaining()))?;
        Ok(stored.iter().map(|bytes| u32::from_be_bytes(*bytes)))
    }

    /// The positions of the entries, from the start of the values. In the tree's own record they are never sizes.
    fn positions(&self, cursor: &mut Cursor<'_>, border: usize, are_sizes: bool) -> Result<Vec<u32>> {
        let stored = self.places(cursor, "positions")?;
        let key_bytes = u32::from(self.key_bytes);
        let mask = if self.flag > 20 && self.flag < 40 { !DISPLACEMENT } else { u32::MAX };
        let mut positions = Vec::with_capacity(self.entries as usize + 1);
        match are_sizes {
            false => positions.extend(stored.map(|position| (position & mask).wrapping_sub(key_bytes))),
            // The first entry begins behind the key, whether that is stored or zero; then follow sizes.
            true => positions.extend(stored.enumerate().scan(0_u32, |sum, (index, size)| {
                *sum = if index == 0 { 0 } else { sum.wrapping_add(size) };
                Some(*sum)
            })),
        }
        positions.push(border as u32);
        if !positions.is_sorted() {
            let before = std::iter::once(&0).chain(&positions);
            let wrong = positions.iter().zip(before).find(|&(at, before)| at < before || *at as usize > border);
            let (position, before) = wrong.unwrap_or((&0, &0));
            return Err(Error::corrupt(format!(
                "invalid position of an entry: byte {position} of {border}, after byte {before}"
            )));
        }
        Ok(positions)
    }
}

impl<'a> Basket<'a> {
    /// A basket of entries without positions.
    #[cfg(test)]
    pub(crate) fn of(data: &'a [u8], entries: usize) -> Self {
        Self { data, entries, key_bytes: 0, positions: None, origins: None, counts: Vec::new() }
    }
}

impl Basket<'_> {
    /// The same with other values of the same lengths.
    #[must_use]
    pub fn with_data(self, data: &[u8]) -> Basket<'_> {
        let Self { entries, key_bytes, positions, origins, counts, .. } = self;
        Basket { data, entries, key_bytes, positions, origins, counts }
    }

    /// Whether the positions of the entries are known.
    pub fn has_positions(&self) -> bool {
        self.positions.is_some()
    }

    /// The bytes of an entry, where the positions are known.
    pub fn entry(&self, index: usize) -> Option<Range<usize>> {
        let positions = self.positions.as_ref()?;
        Some(*positions.get(index)? as usize..*positions.get(index + 1)? as usize)
    }

    /// Whether it is stored where the entries were when they were written.
    pub(crate) fn has_origins(&self) -> bool {
        self.origins.is_some()
    }

    /// Where an entry was when it was written, from the start of its key: the place from which references between its objects
    /// count.
    pub fn origin(&self, index: usize) -> Option<usize> {
        match &self.origins {
            Some(origins) => origins.get(index).map(|origin| *origin as usize),
            None => Some(usize::from(self.key_bytes).saturating_add(self.entry(index)?.start)),
        }
    }

    /// Where entries begin, and where the last of them ends, if the positions of the entries are known.
    pub fn positions(&self, entries: &Range<usize>) -> Option<&[u32]> {
        self.positions.as_ref()?.get(entries.start..=entries.end)
    }

    /// The bytes of entries that all have the same number of bytes.
    ///
    /// # Errors
    /// Corrupt if the basket has another number of bytes.
    pub fn fixed_range(&self, entries: &Range<usize>, width: usize) -> Result<Range<usize>> {
        let Some(positions) = &self.positions else {
            if width.checked_mul(self.entries) != Some(self.data.len()) {
                let (entries, bytes) = (self.entries, self.data.len());
                return Err(Error::corrupt(format!(
                    "basket of {bytes} bytes does not match {entries} entries of {width} bytes"
                )));
            }
            return Ok(entries.start * width..entries.end * width);
        };
        // With wrong positions of some entries, a range of entries would have other values than all of them.
        let lengths = positions.iter().zip(positions.iter().skip(1)).map(|(start, end)| end.saturating_sub(*start));
        if let Some((entry, length)) = lengths.enumerate().find(|&(_, length)| length as usize != width) {
            return Err(Error::corrupt(format!("entry {entry} has {length} bytes, expected {width}")));
        }
        let at = |entry: usize| positions.get(entry).map_or(self.data.len(), |&position| position as usize);
        Ok(at(entries.start)..at(entries.end))
    }

    /// Sets how many values each item of the entries has that are read next: all of the basket up to their end, or only
    /// they themselves where the positions of the entries are known.
    pub fn set_counts(&mut self, counts: Vec<usize>) {
        self.counts = counts;
    }

    /// Sets the positions of the entries from their lengths in bytes.
    ///
    /// # Errors
    /// Corrupt if the numbers of entries or bytes differ.
    pub fn set_lengths(&mut self, lengths: impl IntoIterator<Item = usize>) -> Result<()> {
        self.positions = Some(positions_of(lengths, self.entries, self.data.len())?);
        Ok(())
    }
}

/// Where entries with these lengths begin, and where the last one ends: at the end of `bytes`.
fn positions_of(lengths: impl IntoIterator<Item = usize>, entries: usize, bytes: usize) -> Result<Vec<u32>> {
    let mut positions = vec![0];
    let mut end = 0_usize;
    for length in lengths {
        end = end.saturating_add(length);
        if end > bytes {
            break;
        }
        positions.push(end as u32);
    }
    match end == bytes && positions.len() == entries + 1 {
        true => Ok(positions),
        false => Err(Error::corrupt(format!("{entries} entries need {end} bytes, found {bytes} in the basket"))),
    }
}

/// The entries of a basket as they are stored, whatever their types are.
#[derive(Debug, Clone)]
pub struct StoredEntries {
    data: Vec<u8>,
    /// Where entries begin, and where the last one ends; `None` if all have the same length.
    positions: Option<Vec<u32>>,
    /// Where entries were when they were written, if references between their objects count from there.
    origins: Option<Vec<u32>>,
    /// Where these references are in the data, ascending.
    references: Vec<u32>,
    entries: usize,
    /// Whether the positions are not stored, although the lengths may differ.
    lacks_lengths: bool,
    /// Bytes of the key in front of the first one.
    key_bytes: u16,
    /// What is added to the numbers of the processes of their objects.
    process_offset: u16,
}

impl StoredEntries {
    /// The entries of a basket with its decompressed payload.
    ///
    /// # Errors
    /// As [`BasketHead::open`].
    pub fn of_record(head: BasketHead, payload: &[u8]) -> Result<Self> {
        Ok(Self::of(&head.open(payload)?, head.stores_sizes(), head.process_offset))
    }

    /// The same of a basket in the tree's own record.
    ///
    /// # Errors
    /// As [`StoredEntries::of_record`].
    pub fn of_embedded(bytes: &[u8]) -> Result<Self> {
        let (head, _) = embedded(bytes)?;
        Ok(Self::of(&open_embedded(bytes)?, head.flag >= GENERATE, head.process_offset))
    }

    fn of(basket: &Basket<'_>, is_generated: bool, process_offset: u16) -> Self {
        let Basket { data, entries, key_bytes, .. } = *basket;
        let (positions, origins) = (basket.positions.clone(), basket.origins.clone());
        let is_whole = data.len().checked_rem(entries).is_none_or(|rest| rest == 0);
        let lacks_lengths = positions.is_none() && (is_generated || !is_whole);
        let data = data.to_vec();
        Self { data, positions, origins, references: Vec::new(), entries, lacks_lengths, key_bytes, process_offset }
    }

    /// Whether the lengths of the entries are not stored: they must be set.
    pub fn lacks_lengths(&self) -> bool {
        self.lacks_lengths
    }

    /// Sets the lengths of the entries in bytes; `None` if all are the same.
    ///
    /// # Errors
    /// Corrupt if the numbers of entries or bytes differ.
    pub fn set_lengths(&mut self, lengths: Option<Vec<usize>>) -> Result<()> {
        let (entries, bytes) = (self.entries, self.data.len());
        match lengths {
            Some(lengths) => self.positions = Some(positions_of(lengths, entries, bytes)?),
            None if bytes.checked_rem(entries).is_some_and(|rest| rest > 0) => {
                let what = format!("basket of {bytes} bytes does not match {entries} entries of the same length");
                return Err(Error::corrupt(what));
            }
            None => {}
        }
        self.lacks_lengths = false;
        Ok(())
    }

    /// Finds the references between the objects of each entry, which count from where it is: `find` returns where they are,
    /// ascending, in the bytes of an entry that was written at an origin. Entries without positions have no references.
    ///
    /// # Errors
    /// Those of `find`, for an entry in which classes are named.
    pub fn find_references(&mut self, find: impl Fn(&[u8], usize) -> Result<Vec<usize>>) -> Result<()> {
        let Some(positions) = &self.positions else { return Ok(()) };
        let origins = self.origins.get_or_insert_with(|| {
            positions.iter().map(|position| position.saturating_add(self.key_bytes.into())).collect()
        });
        for ((start, end), origin) in positions.iter().zip(positions.iter().skip(1)).zip(origins) {
            let entry = self.data.get(*start as usize..*end as usize).unwrap_or_default();
            let found = match find(entry, *origin as usize) {
                // References are to objects behind pointers, whose classes are named.
                Err(_) if !names_class(entry) => continue,
                found => found?,
            };
            self.references.extend(found.into_iter().map(|place| start.saturating_add(place as u32)));
        }
        Ok(())
    }

    /// Changes the references in the bytes of an entry that are now at an origin.
    pub(crate) fn move_references(&self, index: usize, entry: &mut [u8], origin: u32) {
        let (Some(origins), Some(positions)) = (&self.origins, &self.positions) else { return };
        let (Some(start), Some(before)) = (positions.get(index), origins.get(index)) else { return };
        let first = self.references.partition_point(|place| place < start);
        let places = self.references.iter().skip(first).map(|place| (place - start) as usize);
        let bytes = entry.len();
        shift_references(entry, places.take_while(|place| *place < bytes), origin.wrapping_sub(*before));
    }

    /// Adds to the numbers of the processes of their objects.
    ///
    /// # Errors
    /// Limit for a sum above 65 535.
    pub fn add_process_offset(&mut self, more: u16) -> Result<()> {
        self.process_offset = added_processes(self.process_offset, more)?;
        Ok(())
    }

    /// What is added to the numbers of the processes of their objects.
    pub(crate) fn process_offset(&self) -> u16 {
        self.process_offset
    }

    /// Number of entries.
    pub fn entries(&self) -> usize {
        self.entries
    }

    /// Bytes of each entry, if no positions are stored.
    pub fn entry_bytes(&self) -> Option<usize> {
        if self.positions.is_some() { None } else { Some(self.data.len().checked_div(self.entries).unwrap_or(0)) }
    }

    /// The bytes of an entry.
    pub fn entry(&self, index: usize) -> Option<&[u8]> {
        let (start, end) = match &self.positions {
            Some(positions) => (*positions.get(index)? as usize, *positions.get(index + 1)? as usize),
            None => {
                let width = self.entry_bytes()?;
                (index.checked_mul(width)?, index.checked_add(1)?.checked_mul(width)?)
            }
        };
        self.data.get(start..end).filter(|_| index < self.entries)
    }
}

/// Whether a class may be named in streamed bytes, for an object behind a pointer: all bits set, and a name.
pub(crate) fn names_class(bytes: &[u8]) -> bool {
    let is_named = |window: &[u8]| matches!(window, [0xff, 0xff, 0xff, 0xff, first] if first.is_ascii_alphabetic() || *first == b'_');
    bytes.windows(5).any(is_named)
}

/// Adds to the references at some places in the bytes of an entry.
pub(crate) fn shift_references(entry: &mut [u8], places: impl IntoIterator<Item = usize>, shift: u32) {
    for place in places {
        if let Some(word) = entry.get_mut(place..).and_then(<[u8]>::first_chunk_mut) {
            *word = u32::from_be_bytes(*word).wrapping_add(shift).to_be_bytes();
        }
    }
}

/// The sum of what two files add to the numbers of processes.
pub(crate) fn added_processes(own: u16, more: u16) -> Result<u16> {
    own.checked_add(more).ok_or_else(|| Error::limit("the number of a process exceeds 65 535"))
}

/// Number of entries of a basket in the tree's own record.
pub(crate) fn embedded_entries(bytes: &[u8]) -> Result<u64> {
    embedded(bytes).map(|(head, _)| head.entries.into())
}

fn embedded(bytes: &[u8]) -> Result<(BasketHead, Cursor<'_>)> {
    let mut cursor = Cursor::new(bytes, 0);
    let head = BasketHead::parse(&mut cursor)?;
    Ok((head, cursor))
}

/// A basket in the tree's own record: head, positions, and a copy of the key with the values behind it.
///
/// # Errors
/// As [`BasketHead::open`].
pub fn open_embedded(bytes: &[u8]) -> Result<Basket<'_>> {
    let (mut head, mut cursor) = embedded(bytes)?;
    let border = head.last.saturating_sub(head.key_bytes.into()) as usize;
    let must_generate = head.flag >= GENERATE;
    head.flag %= GENERATE;
    let (mut positions, mut origins) = (None, None);
    if !must_generate && head.flag != 0 && head.flag % 10 != 2 {
        if head.entries > 0 {
            positions = Some(head.positions(&mut cursor, border, false)?);
        }
        if head.flag > 40 {
            origins = Some(head.places(&mut cursor, "original positions")?.collect());
        }
    }
    let data = match head.flag {
        1 | 11.. => {
            cursor.take(head.key_bytes.into())?;
            cursor.take(border)?
        }
        _ => &[],
    };
    Ok(head.basket(data, positions, origins))
}
