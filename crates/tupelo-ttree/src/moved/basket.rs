//! Baskets at other places of a file: their keys and heads.

use std::ops::Range;

use tupelo_format::wire::{Buffer, Cursor};
use tupelo_format::{Error, Result};

use crate::basket::{BIG, BasketHead, PROCESS_SHIFT, added_processes, names_class, open_embedded};

/// A basket that was read, and can be written at another place. Its record is key, head and payload.
#[derive(Debug, Clone, Copy)]
pub struct MovedBasket {
    /// Bytes of key and head.
    key_bytes: u16,
    /// Whether the offsets in its key have 64 bits.
    is_big: bool,
    was_embedded: bool,
    /// What is added to the numbers of the processes of its objects (`TKey::fPidOffset`).
    process_offset: u16,
}

/// Places in the key of a basket, in bytes: stored bytes, version, bytes before compression, its own length, offsets.
const STORED: Range<usize> = 0..4;
const VERSION: Range<usize> = 4..6;
const OBJECT: Range<usize> = 6..10;
const KEY_BYTES: Range<usize> = 14..16;
const OFFSETS: usize = 18;
/// Where the first record of a file is, as whose part baskets are written.
const PARENT: u32 = 100;

impl MovedBasket {
    /// One in a record of a file, whose key and head were parsed.
    pub fn of_record(parsed: BasketHead, record: &[u8]) -> Self {
        let BasketHead { key_bytes, process_offset, .. } = parsed;
        Self { key_bytes, is_big: version(record) > BIG, was_embedded: false, process_offset }
    }

    /// One in the tree's own record, and what its record in a file would be without a codec.
    ///
    /// # Errors
    /// Unsupported for a form that records of baskets do not have; corrupt as [`open_embedded`].
    pub fn of_embedded(bytes: &[u8]) -> Result<(Self, Vec<u8>)> {
        let basket = open_embedded(bytes)?;
        let head_bytes = usize::from(basket.key_bytes);
        let head = bytes.get(..head_bytes).ok_or_else(|| Error::corrupt("the key of a basket is incomplete"))?;
        let mut record = Buffer::from(head.to_vec());
        record.put(basket.data);
        let count = u32::try_from(basket.entries).unwrap_or(u32::MAX);
        if basket.has_positions() {
            record.u32_be(count.saturating_add(1));
            for index in 0..basket.entries {
                let start = basket.entry(index).map_or(0, |entry| entry.start) as u32;
                record.u32_be(start + u32::from(basket.key_bytes));
            }
            record.u32_be(0);
        }
        if basket.has_origins() {
            record.u32_be(count.saturating_add(1));
            for index in 0..basket.entries {
                record.u32_be(basket.origin(index).unwrap_or(0) as u32);
            }
            record.u32_be(0);
        }
        let mut record = record.into_vec();
        if let Some(flag) = head_bytes.checked_sub(1).and_then(|last| record.get_mut(last)) {
            // Neither positions nor values follow in the head.
            *flag = 0;
        }
        let object_bytes = record.len() - head_bytes;
        put(&mut record, OBJECT, &(object_bytes as u32).to_be_bytes());
        let parsed = BasketHead::parse(&mut Cursor::new(&record, 0))?;
        Ok((Self { was_embedded: true, ..Self::of_record(parsed, &record) }, record))
    }

    /// Bytes of key and head.
    pub fn key_bytes(&self) -> usize {
        self.key_bytes.into()
    }

    /// Whether it was in the tree's own record.
    pub fn was_embedded(&self) -> bool {
        self.was_embedded
    }

    /// Adds to the numbers of the processes of its objects.
    ///
    /// # Errors
    /// Limit for a sum above 65 535.
    pub fn add_process_offset(&mut self, more: u16) -> Result<()> {
        self.process_offset = added_processes(self.process_offset, more)?;
        Ok(())
    }

    /// Whether the key has room for an offset in a file.
    pub fn fits(&self, at: u64) -> bool {
        self.is_big || i32::try_from(at).is_ok() && self.process_offset == 0
    }

    /// The same with a key of 64-bit offsets, and its record. Both records are without a codec, since the positions of values
    /// count from the start of the key.
    ///
    /// # Errors
    /// Corrupt where lengths contradict each other; limit for a key that would be too long; unsupported if references
    /// [may count](super::MovableTree::is_placed) from there, too.
    pub fn with_big_key(self, record: &[u8], is_placed: bool) -> Result<(Self, Vec<u8>)> {
        let head = BasketHead::parse(&mut Cursor::new(record, 0))?;
        let (border, last) = (head.last() as usize, head.last());
        let key_bytes = head.key_bytes.checked_add(8).ok_or_else(|| Error::limit("the key of a basket is too long"))?;
        if is_placed && names_class(record.get(head.key_bytes.into()..border).unwrap_or_default()) {
            let what =
                "its objects refer to places from the start of their basket, whose key is too short behind 2 GiB";
            return Err(Error::unsupported(what));
        }
        let split = OFFSETS + 8;
        let mut new = record.get(..OFFSETS).unwrap_or_default().to_vec();
        new.extend_from_slice(&[0; 16]);
        new.extend_from_slice(record.get(split..).unwrap_or_default());
        put(&mut new, VERSION, &(version(record) + BIG).to_be_bytes());
        put(&mut new, KEY_BYTES, &key_bytes.to_be_bytes());
        let at = usize::from(key_bytes).saturating_sub(5);
        put(&mut new, at..at + 4, &(last + 8).to_be_bytes());
        let positions = new.get_mut(border + 8..).and_then(|rest| rest.get_mut(4..));
        if let Some(positions) = positions.filter(|_| !head.stores_sizes()) {
            for position in positions.chunks_exact_mut(4).take(head.entries as usize) {
                if let Ok(bytes) = <[u8; 4]>::try_from(&*position) {
                    position.copy_from_slice(&u32::from_be_bytes(bytes).wrapping_add(8).to_be_bytes());
                }
            }
        }
        Ok((Self { key_bytes, is_big: true, ..self }, new))
    }

    /// Completes the key of its record for an offset that [fits](Self::fits).
    pub fn place(&self, record: &mut [u8], at: u64) {
        let stored = u32::try_from(record.len()).unwrap_or(u32::MAX);
        put(record, STORED, &stored.to_be_bytes());
        if self.is_big {
            put(record, OFFSETS..OFFSETS + 8, &at.to_be_bytes());
            let parent = u64::from(PARENT) | u64::from(self.process_offset) << PROCESS_SHIFT;
            put(record, OFFSETS + 8..OFFSETS + 16, &parent.to_be_bytes());
        } else {
            put(record, OFFSETS..OFFSETS + 4, &(at as u32).to_be_bytes());
            put(record, OFFSETS + 4..OFFSETS + 8, &PARENT.to_be_bytes());
        }
    }
}

/// The version of the key of a record.
fn version(record: &[u8]) -> u16 {
    record.get(VERSION).and_then(|bytes| bytes.first_chunk()).map_or(0, |it| u16::from_be_bytes(*it))
}

fn put(bytes: &mut [u8], place: Range<usize>, new: &[u8]) {
    if let Some(place) = bytes.get_mut(place).filter(|place| place.len() == new.len()) {
        place.copy_from_slice(new);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A basket of the entries `a`, `bc` and `` with a key of 32-bit or 64-bit offsets.
    fn basket(is_big: bool) -> (Vec<u8>, Vec<u8>) {
        basket_of([b"a", b"bc", b""], is_big)
    }

    fn basket_of(entries: [&[u8]; 3], is_big: bool) -> (Vec<u8>, Vec<u8>) {
        let (key_bytes, data) = (if is_big { 65 } else { 57 }, entries.concat());
        let mut head = Buffer::new();
        head.u32_be(0);
        head.u16_be(if is_big { 1004 } else { 4 });
        head.u32_be(data.len() as u32 + 20);
        head.u32_be(7);
        head.u16_be(key_bytes);
        head.u16_be(1);
        head.put(&vec![0; if is_big { 16 } else { 8 }]);
        for text in ["TBasket", "b", "t"] {
            head.string_be(text);
        }
        let last = u32::from(key_bytes) + data.len() as u32;
        head.u16_be(3);
        for number in [32_000, 1000, 3, last] {
            head.u32_be(number);
        }
        head.u8(0);
        let mut object = Buffer::from(data.to_vec());
        object.u32_be(4);
        let starts = [0, entries[0].len() as u32, (entries[0].len() + entries[1].len()) as u32];
        starts.iter().for_each(|start| object.u32_be(start + u32::from(key_bytes)));
        object.u32_be(0);
        assert_eq!(head.len(), usize::from(key_bytes));
        (head.into_vec(), object.into_vec())
    }

    #[test]
    fn a_basket_can_be_anywhere_in_a_file() {
        let [small, big] = [false, true].map(|is_big| {
            let (head, object) = basket(is_big);
            [head, object].concat()
        });
        let at_once = |record: &[u8]| {
            let head = BasketHead::read(record, 0).unwrap();
            let basket = head.open(&record[usize::from(head.key_bytes)..]).unwrap();
            (0..3).map(|entry| basket.data[basket.entry(entry).unwrap()].to_vec()).collect::<Vec<_>>()
        };
        let of_record =
            |record: &[u8]| MovedBasket::of_record(BasketHead::parse(&mut Cursor::new(record, 0)).unwrap(), record);
        let placed = |basket: MovedBasket, record: &[u8], at| {
            let mut record = record.to_vec();
            basket.place(&mut record, at);
            record
        };
        let moved = of_record(&small);
        assert!(moved.fits(5) && !moved.fits(1 << 31) && of_record(&big).fits(1 << 40));
        let near = placed(moved, &small, 0x1234);
        assert_eq!((&near[..4], &near[18..22]), (&[0, 0, 0, 80][..], &[0, 0, 0x12, 0x34][..]));
        let (longer, longer_record) = moved.with_big_key(&small, false).unwrap();
        assert_eq!(longer_record[longer.key_bytes()..], big[longer.key_bytes()..]);
        let far = placed(longer, &longer_record, 1 << 40);
        assert_eq!(far, placed(of_record(&big), &big, 1 << 40));
        let expected = [&b"a"[..], b"bc", b""];
        assert_eq!(at_once(&near), expected);
        assert_eq!(at_once(&far), expected);
        // References in objects would be wrong. Without the name of a class there are none.
        assert!(moved.with_big_key(&small, true).is_ok());
        let (head, object) = basket_of([b"a", b"\xff\xff\xff\xffH", b""], false);
        let named = [head, object].concat();
        assert!(of_record(&named).with_big_key(&named, false).is_ok());
        let refused = of_record(&named).with_big_key(&named, true).unwrap_err().to_string();
        assert!(refused.contains("its objects refer to places"), "{refused}");
    }
}
