//! Frames and the three envelopes, as records that say exactly what the format lists (format specification,
//! "Frames" and "Envelopes"). Whether the records make sense together is the business of [`crate::descriptor`].

mod footer;
mod frame;
mod header;
mod page_list;

pub use footer::{AttributeSetRecord, ClusterGroupRecord, Footer};
pub use header::{
    AliasColumnRecord, ColumnRecord, ExtraTypeInfo, FieldRecord, Header, SchemaRecords, column_flag, field_flag, role,
};
pub use page_list::{ClusterSummary, ColumnPages, PageInfo, PageList, SHARDED};

use crate::checksum::{CHECKSUM_BYTES, xxh3};
use crate::wire::{Buffer, Cursor};
use crate::{Error, Result};

/// Smallest possible envelope: type and length word, and the checksum.
pub const MIN_ENVELOPE_BYTES: u64 = 16;

/// Feature flags may not take more words than this; one is in use today.
pub const MAX_FLAG_WORDS: usize = 16;
/// More fields are refused: ten million, which the format specification does not foresee to be reached.
pub const MAX_FIELDS: usize = 10_000_000;
/// More columns are refused, and more alias columns.
pub const MAX_COLUMNS: usize = 10_000_000;
/// More cluster groups are refused; each has a page list of its own.
pub const MAX_CLUSTER_GROUPS: usize = 1_000_000;
/// More attribute sets are refused: each is an ntuple of its own.
pub const MAX_ATTRIBUTE_SETS: usize = 65_536;
/// Longer names of ntuples, fields and attribute sets are refused, in bytes.
pub const MAX_NAME_BYTES: usize = 64 << 10;

/// A name, which stays short where other strings need not.
fn name(cursor: &mut Cursor<'_>) -> Result<String> {
    let offset = cursor.offset();
    let name = cursor.string_le()?;
    match name.len() {
        ..=MAX_NAME_BYTES => Ok(name),
        bytes => Err(Error::limit(format!("name of {bytes} bytes exceeds the limit of {MAX_NAME_BYTES}")).at(offset)),
    }
}

/// The kinds of envelopes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EnvelopeType {
    /// Schema.
    Header = 0x01,
    /// Schema extension, cluster groups, attribute sets.
    Footer = 0x02,
    /// Clusters of one group and their pages.
    PageList = 0x03,
}

impl EnvelopeType {
    /// Its name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Header => "header",
            Self::Footer => "footer",
            Self::PageList => "page list",
        }
    }
}

/// Checks type, length and checksum of a whole (decompressed) envelope; returns a cursor over its payload and the
/// checksum, by which other envelopes refer to a header.
pub fn unwrap(bytes: &[u8], expected: EnvelopeType) -> Result<(Cursor<'_>, u64)> {
    let name = expected.name();
    let mut cursor = Cursor::new(bytes, 0);
    let word = cursor.u64_le().map_err(|e| e.within(name))?;
    if word & 0xffff != expected as u64 {
        return Err(Error::corrupt(format!("{name}: found an envelope of type {:#06x}", word & 0xffff)));
    }
    if word >> 16 != bytes.len() as u64 {
        return Err(Error::corrupt(format!(
            "{name}: envelope gives its size as {} bytes, but has {}",
            word >> 16,
            bytes.len()
        )));
    }
    let Some(payload_bytes) = cursor.remaining().checked_sub(CHECKSUM_BYTES) else {
        return Err(Error::corrupt(format!("{name}: envelope of {} bytes is too short", bytes.len())));
    };
    let payload = cursor.sub(payload_bytes)?;
    let stored = cursor.u64_le()?;
    let computed = xxh3(bytes.get(..bytes.len().saturating_sub(CHECKSUM_BYTES)).unwrap_or_default());
    if stored != computed {
        return Err(Error::corrupt(format!(
            "{name}: checksum mismatch (stored {stored:016x}, computed {computed:016x})"
        )));
    }
    Ok((payload, stored))
}

/// Puts type, length and checksum around a payload; returns the envelope and its checksum.
pub fn wrap(kind: EnvelopeType, payload: &[u8]) -> (Vec<u8>, u64) {
    let length = payload.len() as u64 + MIN_ENVELOPE_BYTES;
    let mut buffer = Buffer::new();
    buffer.u64_le(length << 16 | kind as u64);
    buffer.put(payload);
    let checksum = xxh3(buffer.as_slice());
    buffer.u64_le(checksum);
    (buffer.into_vec(), checksum)
}

/// The forward-incompatible features that a data set uses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FeatureFlags {
    bits: Vec<u32>,
}

impl FeatureFlags {
    /// Columns below collections may be deferred (format 1.0.2.1).
    pub const NESTED_DEFERRED_COLUMNS: u32 = 0;

    /// Numbers of the bits that are set. Words count 64 bits, as in ROOT, though the last one of each only says that
    /// another word follows.
    pub fn bits(&self) -> &[u32] {
        &self.bits
    }

    /// Reads words until one without the continuation bit.
    pub fn read(cursor: &mut Cursor<'_>) -> Result<Self> {
        let start = cursor.offset();
        let mut bits = Vec::new();
        for word_index in 0..MAX_FLAG_WORDS as u32 {
            let word = cursor.u64_le()?;
            bits.extend((0..63).filter(|bit| word >> bit & 1 == 1).map(|bit| word_index * 64 + bit));
            if word >> 63 == 0 {
                return Ok(Self { bits });
            }
        }
        Err(Error::limit(format!("feature flags exceed the limit of {MAX_FLAG_WORDS} words")).at(start))
    }

    /// Writes the words.
    pub fn write(&self, buffer: &mut Buffer) {
        let last = self.bits.iter().max().map_or(0, |bit| bit / 64);
        for word_index in 0..=last {
            let word =
                self.bits.iter().filter(|&bit| bit / 64 == word_index).fold(0, |word, bit| word | 1 << (bit % 64));
            buffer.u64_le(if word_index == last { word } else { word | 1 << 63 });
        }
    }

    /// Adds the bits of another set: flags of header and footer count together.
    pub fn merge(&mut self, other: &Self) {
        for &bit in &other.bits {
            if !self.bits.contains(&bit) {
                self.bits.push(bit);
            }
        }
    }

    /// Refuses features that this version does not know.
    pub fn check(&self) -> Result<()> {
        match self.bits.iter().find(|&&bit| bit != Self::NESTED_DEFERRED_COLUMNS) {
            None => Ok(()),
            Some(bit) => Err(Error::unsupported(format!("the ntuple uses an unknown format feature (flag bit {bit})"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_envelope_unwraps_to_its_payload() {
        let (bytes, checksum) = wrap(EnvelopeType::Footer, b"payload");
        let (mut cursor, read) = unwrap(&bytes, EnvelopeType::Footer).unwrap();
        assert_eq!((cursor.take(7).unwrap(), read), (b"payload".as_slice(), checksum));
    }

    #[test]
    fn every_flipped_bit_of_an_envelope_is_noticed() {
        let (bytes, _) = wrap(EnvelopeType::Header, b"payload");
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(unwrap(&damaged, EnvelopeType::Header).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn an_envelope_of_another_type_is_named() {
        for (kind, name) in
            [(EnvelopeType::Header, "header"), (EnvelopeType::Footer, "footer"), (EnvelopeType::PageList, "page list")]
        {
            let error = unwrap(&[0; 16], kind).unwrap_err();
            assert_eq!(error.what(), format!("{name}: found an envelope of type 0x0000"));
        }
    }

    #[test]
    fn names_have_a_limit() {
        let read = |length: usize| {
            let mut buffer = Buffer::new();
            buffer.string_le(&"n".repeat(length));
            name(&mut Cursor::new(buffer.as_slice(), 5)).map(|name| name.len())
        };
        assert_eq!(read(MAX_NAME_BYTES), Ok(64 << 10));
        let error = read(MAX_NAME_BYTES + 1).unwrap_err();
        assert_eq!(error.to_string(), "name of 65537 bytes exceeds the limit of 65536 (at byte 5)");
        assert_eq!(error.kind(), crate::ErrorKind::Limit);
    }

    #[test]
    fn feature_flags_name_the_unknown_bit() {
        let flags = FeatureFlags { bits: vec![0, 137] };
        let mut buffer = Buffer::new();
        flags.write(&mut buffer);
        assert_eq!(buffer.len(), 24);
        let read = FeatureFlags::read(&mut Cursor::new(buffer.as_slice(), 0)).unwrap();
        assert_eq!(read, flags);
        assert!(read.check().unwrap_err().to_string().contains("bit 137"));
        assert_eq!(FeatureFlags { bits: vec![0] }.check(), Ok(()));
    }

    #[test]
    fn endless_feature_flags_end() {
        let bytes = [0xff; 16 * 8];
        assert!(FeatureFlags::read(&mut Cursor::new(&bytes, 0)).is_err());
    }

    #[test]
    fn flags_of_header_and_footer_count_together_and_once() {
        let mut flags = FeatureFlags { bits: vec![0, 7] };
        flags.merge(&FeatureFlags { bits: vec![7, 70] });
        assert_eq!(flags.bits(), [0, 7, 70]);
    }
}
