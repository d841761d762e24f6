//! The list of class layouts in a ROOT file (`TList` of `TStreamerInfo`), as far as the anchor's class needs it.
//!
//! Objects in a streamed list refer to each other by their distance from the start of the record, key included. What
//! is written here names each class anew instead, so that it can stand anywhere; what other writers wrote is kept
//! byte for byte behind a key of the same length.

use super::{Attempt, Fetched, object_bytes, read_header, read_key};
use crate::wire::{Buffer, Cursor};
use crate::{Error, Result};

/// Set in the byte count in front of every streamed object.
const BYTE_COUNT_FLAG: u32 = 0x4000_0000;
/// "The name of the class follows", in place of a reference to an earlier mention.
const NEW_CLASS: u32 = 0xffff_ffff;
/// Bits of a `TObject` of its own.
const OBJECT_BITS: u32 = 0x0001_0000;
const CLASS: &str = "ROOT::RNTuple";
const CLASS_VERSION: u32 = 2;
/// What ROOT computes from names and types of the members.
const CLASS_CHECKSUM: u32 = 0x28e6_32ec;
const U16: (&str, u32, u32) = ("unsigned short", 12, 2);
const U64: (&str, u32, u32) = ("unsigned long", 14, 8);
/// Name; type's name, its code and its bytes in memory.
const MEMBERS: [(&str, (&str, u32, u32)); 11] = [
    ("fVersionEpoch", U16),
    ("fVersionMajor", U16),
    ("fVersionMinor", U16),
    ("fVersionPatch", U16),
    ("fSeekHeader", U64),
    ("fNBytesHeader", U64),
    ("fLenHeader", U64),
    ("fSeekFooter", U64),
    ("fNBytesFooter", U64),
    ("fLenFooter", U64),
    ("fMaxKeySize", U64),
];

/// The payload of the file's streamer info record, decompressed; `None` where the file has none.
///
/// # Errors
/// Corrupt where the record is damaged.
pub fn streamer_info(fetched: &Fetched) -> Attempt<Option<Vec<u8>>> {
    let header = read_header(fetched)?;
    if header.seek_info == 0 || header.nbytes_info == 0 {
        return Ok(None);
    }
    let mut key = read_key(fetched, header.seek_info)?;
    key.seek_key = header.seek_info;
    object_bytes(fetched, &key).map(Some)
}

/// Puts a byte count in front of what `content` writes.
fn counted(buffer: &mut Buffer, content: impl FnOnce(&mut Buffer)) {
    let start = buffer.len();
    buffer.u32_be(0);
    content(buffer);
    let mut count = Buffer::new();
    count.u32_be(BYTE_COUNT_FLAG | u32::try_from(buffer.len() - start - 4).unwrap_or(0));
    buffer.patch(start, count.as_slice());
}

/// An object behind a pointer: byte count, class, content.
fn object(buffer: &mut Buffer, class: &str, content: impl FnOnce(&mut Buffer)) {
    counted(buffer, |buffer| {
        buffer.u32_be(NEW_CLASS);
        buffer.put(class.as_bytes());
        buffer.u8(0);
        content(buffer);
    });
}

/// A part of an object with a class version of its own.
fn versioned(buffer: &mut Buffer, version: u16, content: impl FnOnce(&mut Buffer)) {
    counted(buffer, |buffer| {
        buffer.u16_be(version);
        content(buffer);
    });
}

fn root_object(buffer: &mut Buffer, bits: u32) {
    buffer.u16_be(1);
    buffer.u32_be(0);
    buffer.u32_be(bits);
}

fn named(buffer: &mut Buffer, name: &str) {
    versioned(buffer, 1, |buffer| {
        root_object(buffer, OBJECT_BITS);
        buffer.string_be(name);
        buffer.string_be("");
    });
}

/// The `TStreamerInfo` of the anchor's class, and the empty option behind it in the list.
fn anchor_info() -> Vec<u8> {
    let mut buffer = Buffer::new();
    object(&mut buffer, "TStreamerInfo", |buffer| {
        versioned(buffer, 10, |buffer| {
            named(buffer, CLASS);
            buffer.u32_be(CLASS_CHECKSUM);
            buffer.u32_be(CLASS_VERSION);
            object(buffer, "TObjArray", |buffer| versioned(buffer, 3, members));
        });
    });
    buffer.u8(0);
    buffer.into_vec()
}

fn members(buffer: &mut Buffer) {
    root_object(buffer, 0);
    buffer.string_be("");
    buffer.u32_be(MEMBERS.len() as u32);
    buffer.u32_be(0);
    for (name, (type_name, code, bytes)) in MEMBERS {
        object(buffer, "TStreamerBasicType", |buffer| {
            versioned(buffer, 2, |buffer| {
                versioned(buffer, 4, |buffer| {
                    named(buffer, name);
                    buffer.u32_be(code);
                    buffer.u32_be(bytes);
                    // Array length, array dimensions, five maximum indexes.
                    buffer.put(&[0; 28]);
                    buffer.string_be(type_name);
                });
            });
        });
    }
}

/// The payload of a streamer info record that holds the anchor's class alone.
pub(super) fn anchor_list() -> Vec<u8> {
    let mut buffer = Buffer::new();
    versioned(&mut buffer, 5, |buffer| {
        root_object(buffer, 0);
        buffer.string_be("");
        buffer.u32_be(1);
        buffer.put(&anchor_info());
    });
    buffer.into_vec()
}

/// The list with the anchor's class added; `None` where it has it already.
pub(super) fn with_anchor(list: &[u8]) -> Result<Option<Vec<u8>>> {
    // Name, empty title, checksum and version stand together in the layout of a class.
    let mut signature = Buffer::new();
    signature.string_be(CLASS);
    signature.string_be("");
    signature.u32_be(CLASS_CHECKSUM);
    signature.u32_be(CLASS_VERSION);
    if list.windows(signature.len()).any(|window| window == signature.as_slice()) {
        return Ok(None);
    }
    let mut cursor = Cursor::new(list, 0);
    let byte_count = cursor.u32_be()?;
    let version = cursor.u16_be()?;
    // uproot leaves room behind the list, which is none of it.
    let end = usize::try_from(byte_count ^ BYTE_COUNT_FLAG).unwrap_or(usize::MAX).saturating_add(4);
    let Some(list) = list.get(..end).filter(|_| (4..=5).contains(&version)) else {
        let bytes = list.len();
        return Err(Error::unsupported(format!("streamer info list of version {version}, {end} of {bytes} bytes")));
    };
    let _object = cursor.take(10)?;
    let _name = cursor.string_be()?;
    let count_at = cursor.position();
    let mut count = Buffer::new();
    count.u32_be(cursor.u32_be()?.saturating_add(1));
    let mut buffer = Buffer::new();
    buffer.put(list);
    buffer.put(&anchor_info());
    buffer.patch(count_at, count.as_slice());
    let mut byte_count = Buffer::new();
    byte_count.u32_be(BYTE_COUNT_FLAG | u32::try_from(buffer.len().saturating_sub(4)).unwrap_or(0));
    buffer.patch(0, byte_count.as_slice());
    Ok(Some(buffer.into_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_gets_the_anchor_once() {
        let list = anchor_list();
        assert_eq!(with_anchor(&list), Ok(None));
        let mut other = list.clone();
        let name = other.windows(CLASS.len()).position(|window| window == CLASS.as_bytes()).unwrap();
        other[name] = b'X';
        let both = with_anchor(&other).unwrap().unwrap();
        assert_eq!(both.len(), other.len() + anchor_info().len());
        assert_eq!(both[21..other.len()], other[21..]);
        assert_eq!(both[17..21], [0, 0, 0, 2]);
        assert_eq!(with_anchor(&both), Ok(None));
        let room = [other.as_slice(), &[0; 100]].concat();
        assert_eq!(with_anchor(&room), Ok(Some(both)));
        assert!(with_anchor(&other[..100]).is_err());
        assert!(with_anchor(&[]).is_err());
    }
}
