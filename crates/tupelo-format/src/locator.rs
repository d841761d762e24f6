//! Where a page or an envelope lies (format specification, "Locators and Envelope Links").

use std::fmt;

use crate::wire::{Buffer, Cursor};
use crate::{Error, Result};

/// Type byte of a locator with 64-bit size and offset.
const TYPE_LARGE: u8 = 0x01;
/// Type byte of ROOT's object-store locator: a size and one 64-bit location.
const TYPE_OBJECT64: u8 = 0x02;
/// Type byte of ROOT's locator for several pages in one object: object id and byte offset.
const TYPE_MULTI: u8 = 0x03;

/// The first of the reserved bits, which ROOT set for pages that share a value.
const CAGED: u32 = 1 << 16;

/// A place on the storage medium.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Locator {
    /// A byte range of the file.
    File {
        /// From the start of the file.
        offset: u64,
        /// Stored bytes, without a page's checksum.
        bytes: u64,
    },
    /// One object of an object store.
    Object {
        /// The store's name for it.
        location: u64,
        /// Stored bytes.
        bytes: u64,
    },
    /// A byte range of one object of an object store.
    ObjectRange {
        /// The store's number for the object.
        object: u32,
        /// From the start of the object.
        offset: u32,
        /// Stored bytes.
        bytes: u64,
    },
    /// A byte range of one value in a DAOS container, as ROOT 6.28 to 6.36 wrote them on request. These versions have 32 bits
    /// for the number of a value.
    Cage {
        /// The akey of the value.
        object: u32,
        /// From the start of the value.
        offset: u32,
        /// Stored bytes.
        bytes: u64,
    },
    /// A kind unknown to this version: only the page or envelope that it points to cannot be read.
    Unknown {
        /// The locator's type byte.
        kind: u8,
    },
}

impl Locator {
    /// Reads one locator.
    pub fn read(cursor: &mut Cursor<'_>) -> Result<Self> {
        let start = cursor.offset();
        let head = cursor.i32_le()?;
        if head >= 0 {
            return Ok(Self::File { bytes: u64::from(head.unsigned_abs()), offset: cursor.u64_le()? });
        }
        let head = head.cast_unsigned();
        let own_bytes = (head & 0xffff) as usize;
        let kind = (head >> 24 & 0x7f) as u8;
        let is_caged = head & CAGED != 0;
        let Some(payload_bytes) = own_bytes.checked_sub(4) else {
            return Err(
                Error::corrupt(format!("locator gives its own size as {own_bytes} bytes, minimum is 4")).at(start)
            );
        };
        let mut payload = cursor.sub(payload_bytes)?;
        Ok(match kind {
            TYPE_LARGE => Self::File { bytes: payload.u64_le()?, offset: payload.u64_le()? },
            TYPE_OBJECT64 => {
                let bytes = Self::object_size(&mut payload)?;
                match is_caged {
                    true => Self::Cage { bytes, object: payload.u32_le()?, offset: payload.u32_le()? },
                    false => Self::Object { bytes, location: payload.u64_le()? },
                }
            }
            TYPE_MULTI => {
                let bytes = Self::object_size(&mut payload)?;
                Self::ObjectRange { bytes, object: payload.u32_le()?, offset: payload.u32_le()? }
            }
            kind => Self::Unknown { kind },
        })
    }

    /// Object locators carry their size in 32 or 64 bits; the length of the locator determines which.
    fn object_size(payload: &mut Cursor<'_>) -> Result<u64> {
        if payload.remaining() >= 16 { payload.u64_le() } else { Ok(u64::from(payload.u32_le()?)) }
    }

    /// Writes the shortest form that holds the numbers.
    pub fn write(&self, buffer: &mut Buffer) {
        let special = |buffer: &mut Buffer, kind: u8, own_bytes: u32| {
            buffer.u32_le(1 << 31 | u32::from(kind) << 24 | own_bytes);
        };
        let object = |buffer: &mut Buffer, kind: u8, flags: u32, bytes: u64| match u32::try_from(bytes) {
            Ok(bytes) => {
                special(buffer, kind, flags | 16);
                buffer.u32_le(bytes);
            }
            Err(_) => {
                special(buffer, kind, flags | 20);
                buffer.u64_le(bytes);
            }
        };
        match *self {
            Self::File { offset, bytes } => match i32::try_from(bytes) {
                Ok(bytes) => {
                    buffer.i32_le(bytes);
                    buffer.u64_le(offset);
                }
                Err(_) => {
                    special(buffer, TYPE_LARGE, 20);
                    buffer.u64_le(bytes);
                    buffer.u64_le(offset);
                }
            },
            Self::Object { location, bytes } => {
                object(buffer, TYPE_OBJECT64, 0, bytes);
                buffer.u64_le(location);
            }
            Self::ObjectRange { object: number, offset, bytes } => {
                object(buffer, TYPE_MULTI, 0, bytes);
                buffer.u32_le(number);
                buffer.u32_le(offset);
            }
            Self::Cage { object: number, offset, bytes } => {
                object(buffer, TYPE_OBJECT64, CAGED, bytes);
                buffer.u32_le(number);
                buffer.u32_le(offset);
            }
            Self::Unknown { kind } => special(buffer, kind, 4),
        }
    }

    /// Stored bytes, without a page's checksum; 0 for a locator of unknown kind.
    pub fn stored_bytes(&self) -> u64 {
        match *self {
            Self::File { bytes, .. }
            | Self::Object { bytes, .. }
            | Self::ObjectRange { bytes, .. }
            | Self::Cage { bytes, .. } => bytes,
            Self::Unknown { .. } => 0,
        }
    }

    /// Offset in the file or object, for messages.
    pub fn offset(&self) -> u64 {
        match *self {
            Self::File { offset, .. } => offset,
            Self::ObjectRange { offset, .. } | Self::Cage { offset, .. } => offset.into(),
            Self::Object { .. } | Self::Unknown { .. } => 0,
        }
    }

    /// The byte range in the file, without a checksum that may follow.
    pub fn in_file(&self) -> Result<(u64, u64)> {
        match *self {
            Self::File { offset, bytes } => Ok((offset, bytes)),
            Self::Object { .. } | Self::ObjectRange { .. } | Self::Cage { .. } => {
                Err(Error::unsupported(format!("found {self} in a ROOT file, expected an offset in the file")))
            }
            Self::Unknown { kind } => Err(Error::unsupported(format!("locator of unknown type {kind:#04x}"))),
        }
    }
}

impl fmt::Display for Locator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { offset, bytes } => write!(f, "{bytes} bytes at offset {offset}"),
            Self::Object { location, bytes } => write!(f, "{bytes} bytes in object {location:#x}"),
            Self::ObjectRange { object, offset, bytes } | Self::Cage { object, offset, bytes } => {
                write!(f, "{bytes} bytes at offset {offset} of object {object}")
            }
            Self::Unknown { kind } => write!(f, "locator of unknown type {kind:#04x}"),
        }
    }
}

/// An envelope's place and its size after decompression.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct EnvelopeLink {
    /// Uncompressed bytes, the envelope's frame and checksum included.
    pub length: u64,
    /// Where it lies, and in how many stored bytes.
    pub locator: Locator,
}

impl EnvelopeLink {
    /// Reads one link.
    pub fn read(cursor: &mut Cursor<'_>) -> Result<Self> {
        Ok(Self { length: cursor.u64_le()?, locator: Locator::read(cursor)? })
    }

    /// Writes what [`EnvelopeLink::read`] reads.
    pub fn write(&self, buffer: &mut Buffer) {
        buffer.u64_le(self.length);
        self.locator.write(buffer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_records_are_read_back() {
        for locator in [
            Locator::File { offset: 1 << 40, bytes: 12 },
            Locator::File { offset: 7, bytes: 1 << 31 },
            Locator::Object { location: u64::MAX, bytes: 5 },
            Locator::Object { location: 1, bytes: 1 << 32 },
            Locator::ObjectRange { object: 3, offset: 9, bytes: 8 },
            Locator::ObjectRange { object: u32::MAX, offset: u32::MAX, bytes: u64::MAX },
            Locator::Cage { object: 7, offset: u32::MAX, bytes: 100 },
            Locator::Cage { object: 7, offset: 1, bytes: 1 << 32 },
            Locator::Unknown { kind: 0x7e },
        ] {
            let mut buffer = Buffer::new();
            locator.write(&mut buffer);
            let mut cursor = Cursor::new(buffer.as_slice(), 0);
            assert_eq!(Locator::read(&mut cursor), Ok(locator));
            assert_eq!(cursor.remaining(), 0);
        }
    }

    #[test]
    fn an_unknown_locator_is_skipped_by_its_own_size() {
        let mut buffer = Buffer::new();
        buffer.u32_le(1 << 31 | 0x55 << 24 | 7);
        buffer.put(&[1, 2, 3, 0xaa]);
        let mut cursor = Cursor::new(buffer.as_slice(), 0);
        assert_eq!(Locator::read(&mut cursor), Ok(Locator::Unknown { kind: 0x55 }));
        assert_eq!(cursor.u8(), Ok(0xaa));
    }

    #[test]
    fn a_locator_smaller_than_its_head_is_refused() {
        let bytes = (1u32 << 31 | 1 << 24 | 3).to_le_bytes();
        assert!(Locator::read(&mut Cursor::new(&bytes, 0)).is_err());
    }

    #[test]
    fn only_ranges_of_the_file_lie_in_it() {
        assert_eq!(Locator::File { offset: 7, bytes: 5 }.in_file(), Ok((7, 5)));
        for (elsewhere, name) in [
            (
                Locator::Object { location: 16, bytes: 5 },
                "found 5 bytes in object 0x10 in a ROOT file, expected an offset in the file",
            ),
            (
                Locator::ObjectRange { object: 3, offset: 9, bytes: 8 },
                "found 8 bytes at offset 9 of object 3 in a ROOT file, expected an offset in the file",
            ),
            (Locator::Unknown { kind: 0x55 }, "locator of unknown type 0x55"),
        ] {
            let error = elsewhere.in_file().unwrap_err();
            assert_eq!((error.what(), error.kind()), (name, crate::ErrorKind::Unsupported));
        }
    }
}
