//! The only place where bytes become integers: bounded cursors and growing buffers.
//!
//! RNTuple is little-endian, the ROOT file around it big-endian; the method names say which. Every read is checked
//! against the bytes that are there, and every count against the bytes that it would need, so that no number in
//! a file decides an allocation.

use crate::{Error, Result};

/// Strings longer than this in metadata are refused; real names are far below it.
pub const MAX_STRING_BYTES: usize = 16 << 20;

/// A bounded reader over bytes that knows where in the file they came from.
#[derive(Debug, Clone)]
pub struct Cursor<'a> {
    bytes: &'a [u8],
    position: usize,
    base: u64,
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
        Self { bytes, position: 0, base }
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
            None => {
                Err(Error::corrupt(format!("{count} bytes wanted where {} are left", rest.len())).at(self.offset()))
            }
        }
    }

    /// A cursor over the next `count` bytes alone; this one goes on behind them.
    pub fn sub(&mut self, count: usize) -> Result<Cursor<'a>> {
        let base = self.offset();
        Ok(Cursor::new(self.take(count)?, base))
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
            return Err(Error::limit(format!("string of {length} bytes")).at(offset));
        }
        let bytes = self.take(length)?;
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(text.to_owned()),
            Err(error) => Err(Error::corrupt("string is not UTF-8").at(offset + error.valid_up_to() as u64)),
        }
    }

    /// A `Vec` with room for `count` items of at least `item_bytes` each on disk, never more than can still follow.
    pub fn reserve<T>(&self, count: usize, item_bytes: usize) -> Vec<T> {
        Vec::with_capacity(count.min(self.remaining() / item_bytes.max(1)))
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

    /// Overwrites bytes that were written before, for lengths that are known only afterwards.
    ///
    /// Bytes that would fall behind the end are dropped.
    pub fn patch(&mut self, position: usize, bytes: &[u8]) {
        if let Some(place) = self.bytes.get_mut(position..).and_then(|rest| rest.get_mut(..bytes.len())) {
            place.copy_from_slice(bytes);
        }
    }

    /// What was written.
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes
    }

    /// What was written.
    pub fn into_vec(self) -> Vec<u8> {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_buffer_writes_a_cursor_reads() {
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
    fn a_length_cannot_reach_behind_the_end() {
        let bytes = [0xff, 0xff, 0xff, 0x00, 0x41];
        assert_eq!(
            Cursor::new(&bytes, 0).string_le().unwrap_err().to_string(),
            "16777215 bytes wanted where 1 are left (at byte 4)"
        );
        assert_eq!(Cursor::new(&bytes, 0).reserve::<u64>(usize::MAX, 1).capacity(), 5);
    }
}
