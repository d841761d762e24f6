//! The only place where bytes become integers: bounded cursors and growing buffers.
//!
//! RNTuple is little-endian, the ROOT file around it big-endian; the method names say which. Every read is checked
//! against the remaining bytes, and every count against the bytes that it would need, so that no number in a file
//! decides an allocation. Memory for records is counted by a [`Memory`] before it is allocated.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::{Error, Result};

/// Strings longer than this in metadata are refused, in bytes; real type names and descriptions are far below it.
pub const MAX_STRING_BYTES: usize = 16 << 20;

/// Counts the memory that records take, before it is allocated.
#[derive(Debug)]
pub struct Memory {
    limit_bytes: u64,
    used_bytes: AtomicU64,
}

impl Memory {
    /// A limit of `limit_bytes`, with nothing taken yet.
    pub const fn new(limit_bytes: u64) -> Self {
        Self { limit_bytes, used_bytes: AtomicU64::new(0) }
    }

    /// No limit: for bytes that the caller made.
    pub const fn unlimited() -> Self {
        Self::new(u64::MAX)
    }

    /// Bytes taken so far.
    pub fn used(&self) -> u64 {
        self.used_bytes.load(Ordering::Relaxed)
    }

    /// Resets the count to `used_bytes`, because later allocations were freed.
    pub fn reset(&self, used_bytes: u64) {
        self.used_bytes.store(used_bytes, Ordering::Relaxed);
    }

    /// Takes memory for bytes that are about to be allocated for `what`.
    ///
    /// # Errors
    /// Memory if fewer bytes are left.
    pub fn take(&self, bytes: u64, what: impl fmt::Display) -> Result<()> {
        let used = self.used_bytes.fetch_add(bytes, Ordering::Relaxed).checked_add(bytes);
        match used.filter(|&used| used <= self.limit_bytes) {
            Some(_) => Ok(()),
            None => Err(Error::memory(format!(
                "{what}: needs {bytes} bytes of memory, {} of {} left",
                self.limit_bytes.saturating_sub(self.used().saturating_sub(bytes)),
                self.limit_bytes
            ))),
        }
    }

    /// Takes memory for `count` items of a type.
    ///
    /// # Errors
    /// As [`Memory::take`].
    pub fn take_items<T>(&self, count: usize, what: impl fmt::Display) -> Result<()> {
        self.take((count as u64).saturating_mul(size_of::<T>() as u64), what)
    }
}

/// A bounded reader over bytes that knows where in the file they came from.
#[derive(Debug, Clone)]
pub struct Cursor<'a> {
    bytes: &'a [u8],
    position: usize,
    base: u64,
    memory: Option<&'a Memory>,
}

macro_rules! integers {
    ($($(#[$doc:meta])* $name:ident: $type:ty = $from:ident;)*) => {$(
        $(#[$doc])*
        pub fn $name(&mut self) -> Result<$type> {
            Ok(<$type>::$from(self.array()?))
        }
    )*};
}

impl<'a> Cursor<'a> {
    /// A cursor whose first byte has offset `base` in the file or envelope.
    pub fn new(bytes: &'a [u8], base: u64) -> Self {
        Self { bytes, position: 0, base, memory: None }
    }

    /// The same cursor, which counts what it allocates.
    #[must_use]
    pub fn within(self, memory: &'a Memory) -> Self {
        Self { memory: Some(memory), ..self }
    }

    fn count(&self, bytes: usize) -> Result<()> {
        self.memory.map_or(Ok(()), |memory| memory.take(bytes as u64, "records").map_err(|e| e.at(self.offset())))
    }

    /// Offset of the next byte.
    pub fn offset(&self) -> u64 {
        self.base.saturating_add(self.position as u64)
    }

    /// Bytes consumed so far.
    pub fn position(&self) -> usize {
        self.position
    }

    /// Bytes not yet read.
    pub fn remaining(&self) -> usize {
        self.bytes.len().saturating_sub(self.position)
    }

    /// Takes the next `count` bytes.
    pub fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let rest = self.bytes.get(self.position..).unwrap_or_default();
        match rest.get(..count) {
            Some(taken) => {
                self.position += count;
                Ok(taken)
            }
            None => Err(Error::corrupt(format!("expected {count} bytes, {} left", rest.len())).at(self.offset())),
        }
    }

    /// A cursor over only the next `count` bytes; this one continues after them.
    pub fn sub(&mut self, count: usize) -> Result<Cursor<'a>> {
        let base = self.offset();
        Ok(Cursor { bytes: self.take(count)?, position: 0, base, memory: self.memory })
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    integers! {
        /// One byte.
        u8: u8 = from_le_bytes;
        /// Little-endian.
        u16_le: u16 = from_le_bytes;
        /// Little-endian.
        u32_le: u32 = from_le_bytes;
        /// Little-endian.
        u64_le: u64 = from_le_bytes;
        /// Little-endian two's complement.
        i32_le: i32 = from_le_bytes;
        /// Little-endian two's complement.
        i64_le: i64 = from_le_bytes;
        /// Little-endian IEEE 754.
        f64_le: f64 = from_le_bytes;
        /// Big-endian.
        u16_be: u16 = from_be_bytes;
        /// Big-endian.
        u32_be: u32 = from_be_bytes;
        /// Big-endian.
        u64_be: u64 = from_be_bytes;
        /// Big-endian two's complement.
        i16_be: i16 = from_be_bytes;
        /// Big-endian two's complement.
        i32_be: i32 = from_be_bytes;
        /// Big-endian two's complement.
        i64_be: i64 = from_be_bytes;
        /// Big-endian IEEE 754.
        f32_be: f32 = from_be_bytes;
        /// Big-endian IEEE 754.
        f64_be: f64 = from_be_bytes;
    }

    /// A string of the RNTuple format: 32-bit length, then UTF-8.
    pub fn string_le(&mut self) -> Result<String> {
        let length = self.u32_le()? as usize;
        self.utf8(length)
    }

    /// A string of the ROOT file format (`TString`) that must be UTF-8.
    pub fn string_be(&mut self) -> Result<String> {
        let length = self.length_be()?;
        self.utf8(length)
    }

    /// A string of the ROOT file format (`TString`) as it stands. ROOT does not know encodings.
    pub fn text_be(&mut self) -> Result<&'a [u8]> {
        let length = self.length_be()?;
        self.take(length)
    }

    /// One byte of length, or 255 and a 32-bit length.
    fn length_be(&mut self) -> Result<usize> {
        Ok(match self.u8()? {
            255 => self.u32_be()? as usize,
            short => usize::from(short),
        })
    }

    fn utf8(&mut self, length: usize) -> Result<String> {
        let offset = self.offset();
        if length > MAX_STRING_BYTES {
            return Err(
                Error::limit(format!("string of {length} bytes exceeds the limit of {MAX_STRING_BYTES}")).at(offset)
            );
        }
        let bytes = self.take(length)?;
        match std::str::from_utf8(bytes) {
            Ok(text) => {
                self.count(length)?;
                Ok(text.to_owned())
            }
            Err(error) => Err(Error::corrupt("string is not UTF-8").at(offset + error.valid_up_to() as u64)),
        }
    }

    /// A copy of the next `count` bytes.
    pub fn copy(&mut self, count: usize) -> Result<Vec<u8>> {
        let bytes = self.take(count)?;
        self.count(count)?;
        Ok(bytes.to_vec())
    }

    /// A `Vec` with room for `count` items of at least `item_bytes` each on disk.
    ///
    /// # Errors
    /// Corrupt if fewer bytes follow than the items need; limit if the memory is used up.
    pub fn reserve<T>(&self, count: usize, item_bytes: usize) -> Result<Vec<T>> {
        if count > self.remaining() / item_bytes.max(1) {
            let what =
                format!("expected {count} items of at least {item_bytes} bytes, {} bytes left", self.remaining());
            return Err(Error::corrupt(what).at(self.offset()));
        }
        self.count(count.saturating_mul(size_of::<T>()))?;
        Ok(Vec::with_capacity(count))
    }
}

macro_rules! put {
    ($($(#[$doc:meta])* $name:ident: $type:ty = $to:ident;)*) => {$(
        $(#[$doc])*
        pub fn $name(&mut self, value: $type) {
            self.bytes.extend_from_slice(&value.$to());
        }
    )*};
}

/// A growing buffer that writes what [`Cursor`] reads.
#[derive(Debug, Default, Clone)]
pub struct Buffer {
    bytes: Vec<u8>,
}

impl From<Vec<u8>> for Buffer {
    /// Appends to existing bytes.
    fn from(bytes: Vec<u8>) -> Self {
        Self { bytes }
    }
}

impl Buffer {
    /// An empty buffer.
    pub fn new() -> Self {
        Self::default()
    }

    put! {
        /// One byte.
        u8: u8 = to_le_bytes;
        /// Little-endian.
        u16_le: u16 = to_le_bytes;
        /// Little-endian.
        u32_le: u32 = to_le_bytes;
        /// Little-endian.
        u64_le: u64 = to_le_bytes;
        /// Little-endian two's complement.
        i32_le: i32 = to_le_bytes;
        /// Little-endian two's complement.
        i64_le: i64 = to_le_bytes;
        /// Little-endian IEEE 754.
        f64_le: f64 = to_le_bytes;
        /// Big-endian.
        u16_be: u16 = to_be_bytes;
        /// Big-endian.
        u32_be: u32 = to_be_bytes;
        /// Big-endian.
        u64_be: u64 = to_be_bytes;
        /// Big-endian two's complement.
        i16_be: i16 = to_be_bytes;
        /// Big-endian two's complement.
        i32_be: i32 = to_be_bytes;
        /// Big-endian two's complement.
        i64_be: i64 = to_be_bytes;
        /// Big-endian IEEE 754.
        f32_be: f32 = to_be_bytes;
        /// Big-endian IEEE 754.
        f64_be: f64 = to_be_bytes;
    }

    /// Raw bytes.
    pub fn put(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// A string of the RNTuple format. Strings over 4 GiB cannot exist in it and are cut.
    pub fn string_le(&mut self, text: &str) {
        let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
        self.u32_le(length);
        self.put(text.as_bytes().get(..length as usize).unwrap_or_default());
    }

    /// A string of the ROOT file format.
    pub fn string_be(&mut self, text: &str) {
        self.text_be(text.as_bytes());
    }

    /// A string of the ROOT file format in whatever encoding it has.
    pub fn text_be(&mut self, text: &[u8]) {
        match u8::try_from(text.len()) {
            Ok(short) if short < 255 => self.u8(short),
            _ => {
                self.u8(255);
                self.u32_be(u32::try_from(text.len()).unwrap_or(u32::MAX));
            }
        }
        self.put(text);
    }

    /// Bytes written so far.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether nothing was written yet.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Overwrites bytes that were written earlier, for lengths that are known only later.
    ///
    /// Does nothing if the bytes would extend past the end.
    pub fn patch(&mut self, position: usize, bytes: &[u8]) {
        if let Some(place) = self.bytes.get_mut(position..).and_then(|rest| rest.get_mut(..bytes.len())) {
            place.copy_from_slice(bytes);
        }
    }

    /// The bytes written so far.
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes
    }

    /// The bytes written so far.
    pub fn into_vec(self) -> Vec<u8> {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_reads_the_output_of_a_buffer() {
        let mut buffer = Buffer::new();
        buffer.u16_le(0x0102);
        buffer.u32_be(7);
        buffer.string_le("tupelo");
        buffer.string_be(&"x".repeat(300));
        buffer.f64_le(-0.5);
        let bytes = buffer.into_vec();
        let mut cursor = Cursor::new(&bytes, 1000);
        assert_eq!(cursor.u16_le(), Ok(0x0102));
        assert_eq!(cursor.u32_be(), Ok(7));
        assert_eq!(cursor.string_le().as_deref(), Ok("tupelo"));
        assert_eq!(cursor.string_be().unwrap().len(), 300);
        assert_eq!(cursor.f64_le(), Ok(-0.5));
        assert_eq!(cursor.remaining(), 0);
        assert_eq!(cursor.u8().unwrap_err().offset(), Some(1000 + bytes.len() as u64));
    }

    #[test]
    fn a_length_cannot_extend_past_the_end() {
        let bytes = [0xff, 0xff, 0xff, 0x00, 0x41];
        assert_eq!(
            Cursor::new(&bytes, 0).string_le().unwrap_err().to_string(),
            "expected 16777215 bytes, 1 left (at byte 4)"
        );
        assert_eq!(Cursor::new(&bytes, 0).reserve::<u64>(5, 1).unwrap().capacity(), 5);
        assert_eq!(
            Cursor::new(&bytes, 7).reserve::<u64>(3, 2).unwrap_err().to_string(),
            "expected 3 items of at least 2 bytes, 5 bytes left (at byte 7)"
        );
    }

    #[test]
    fn memory_is_counted_before_it_is_taken() {
        let memory = Memory::new(100);
        memory.take(60, "a").unwrap();
        assert_eq!((memory.used(), memory.take_items::<u64>(5, "b")), (60, Ok(())));
        assert_eq!(memory.take(1, "c").unwrap_err().to_string(), "c: needs 1 bytes of memory, 0 of 100 left");
        memory.reset(30);
        let error = memory.take_items::<u64>(9, "d").unwrap_err();
        assert!(error.to_string().starts_with("d: needs 72 bytes of memory, 70 of 100 left"), "{error}");
        assert!(Memory::unlimited().take(u64::MAX, "all").is_ok());
        // A string, a copy and a list each count.
        let mut buffer = Buffer::new();
        buffer.string_le("tupelo");
        let memory = Memory::new(5);
        let cursor = || Cursor::new(buffer.as_slice(), 0).within(&memory);
        assert_eq!(cursor().string_le().unwrap_err().kind(), crate::ErrorKind::Memory);
        memory.reset(0);
        assert_eq!(cursor().sub(6).unwrap().copy(6).unwrap_err().offset(), Some(6));
        memory.reset(0);
        assert_eq!(cursor().reserve::<u32>(2, 1).unwrap_err().kind(), crate::ErrorKind::Memory);
        memory.reset(0);
        assert_eq!(cursor().reserve::<u8>(5, 1).unwrap().capacity(), 5);
    }

    #[test]
    fn strings_have_limits_and_both_kinds_of_length() {
        let limit = |length: usize| {
            let bytes = u32::try_from(length).unwrap().to_le_bytes();
            Cursor::new(&bytes, 0).string_le().unwrap_err().kind()
        };
        assert_eq!(limit(MAX_STRING_BYTES), crate::ErrorKind::Corrupt);
        assert_eq!(limit(MAX_STRING_BYTES + 1), crate::ErrorKind::Limit);
        let bytes = [4, 0, 0, 0, b'a', b'b', 0xff, b'c'];
        assert_eq!(Cursor::new(&bytes, 100).string_le().unwrap_err().offset(), Some(106));
        let length = |count: usize| {
            let mut buffer = Buffer::new();
            assert!(buffer.is_empty());
            buffer.string_be(&"x".repeat(count));
            assert!(!buffer.is_empty());
            assert_eq!(Cursor::new(buffer.as_slice(), 0).string_be().unwrap().len(), count);
            buffer.len()
        };
        assert_eq!([254, 255, 256].map(length), [255, 260, 261]);
    }
}
