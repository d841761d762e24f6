//! The anchor of an ntuple: the object of class `ROOT::RNTuple` in a directory (format specification, "Embedding
//! RNTuple in a ROOT file").

use crate::checksum::{CHECKSUM_BYTES, xxh3};
use crate::locator::{EnvelopeLink, Locator};
use crate::wire::{Buffer, Cursor};
use crate::{Error, Result};

/// Bytes of the anchor that is written here, checksum included.
pub const ANCHOR_BYTES: usize = 78;
/// Set in the 32-bit byte count in front of every streamed object.
const BYTE_COUNT_FLAG: u32 = 0x4000_0000;
/// Byte count and class version, which the checksum does not cover.
const HEAD_BYTES: usize = 6;
/// Version of the class `ROOT::RNTuple`; later ones may only append.
const CLASS_VERSION: u16 = 2;
/// First version of the class `ROOT::Experimental::RNTuple` that has the version of the format, as ROOT 6.30 wrote it.
const PRE_RELEASE_VERSION: u16 = 4;
/// The only existing epoch.
const EPOCH: u16 = 1;
/// Smallest envelope: type and length, checksum.
const MIN_ENVELOPE_BYTES: u64 = 16;

/// Where the header and the footer of an ntuple lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Anchor {
    /// Version of the format: epoch; incompatible between values.
    pub epoch: u16,
    /// Version of the format: major.
    pub major: u16,
    /// Version of the format: minor.
    pub minor: u16,
    /// Version of the format: patch.
    pub patch: u16,
    /// Offset of the header envelope.
    pub seek_header: u64,
    /// Bytes of the header envelope on disk.
    pub nbytes_header: u64,
    /// Bytes of the header envelope, decompressed.
    pub len_header: u64,
    /// Offset of the footer envelope.
    pub seek_footer: u64,
    /// Bytes of the footer envelope on disk.
    pub nbytes_footer: u64,
    /// Bytes of the footer envelope, decompressed.
    pub len_footer: u64,
    /// Payloads with more bytes on disk are split over several blobs; 0 for never.
    pub max_key_size: u64,
}

/// The content of an anchor, wherever header and footer are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnchorLinks {
    /// Epoch, major, minor and patch version of the format.
    pub version: [u16; 4],
    /// The header envelope.
    pub header: EnvelopeLink,
    /// The footer envelope.
    pub footer: EnvelopeLink,
}

impl Anchor {
    /// The anchor in a ROOT file of an ntuple whose envelopes are in the same file.
    ///
    /// # Errors
    /// Unsupported for envelopes that are not byte ranges of a file.
    pub fn new(links: &AnchorLinks, max_key_size: u64) -> Result<Self> {
        let [epoch, major, minor, patch] = links.version;
        let (seek_header, nbytes_header) = links.header.locator.in_file()?;
        let (seek_footer, nbytes_footer) = links.footer.locator.in_file()?;
        Ok(Self {
            epoch,
            major,
            minor,
            patch,
            seek_header,
            nbytes_header,
            len_header: links.header.length,
            seek_footer,
            nbytes_footer,
            len_footer: links.footer.length,
            max_key_size,
        })
    }

    /// The links to header and footer.
    pub fn links(&self) -> AnchorLinks {
        let link = |length, offset, bytes| EnvelopeLink { length, locator: Locator::File { offset, bytes } };
        AnchorLinks {
            version: [self.epoch, self.major, self.minor, self.patch],
            header: link(self.len_header, self.seek_header, self.nbytes_header),
            footer: link(self.len_footer, self.seek_footer, self.nbytes_footer),
        }
    }

    /// Reads an anchor (of this or a later class version) from its decompressed payload, which lies at `offset`.
    ///
    /// # Errors
    /// Corrupt if byte count or checksum do not match, unsupported for another epoch.
    pub fn read(payload: &[u8], offset: u64) -> Result<Self> {
        if payload.len() < ANCHOR_BYTES {
            return Err(Error::corrupt(format!("{} bytes, expected at least {ANCHOR_BYTES}", payload.len())).at(offset));
        }
        let mut cursor = Cursor::new(payload, offset);
        let byte_count = cursor.u32_be()?;
        let class_version = cursor.u16_be()?;
        // The byte count leaves out itself and the checksum.
        if u64::from(byte_count ^ BYTE_COUNT_FLAG) != (payload.len() - 4 - CHECKSUM_BYTES) as u64 {
            return Err(Error::corrupt(format!("wrong byte count {byte_count:#x}")).at(offset));
        }
        if class_version < CLASS_VERSION {
            return Err(Error::unsupported(format!(
                "class version {class_version}, expected at least {CLASS_VERSION}"
            ))
            .at(offset));
        }
        let fields = cursor.clone().take(payload.len() - HEAD_BYTES - CHECKSUM_BYTES)?;
        let anchor = Self {
            epoch: cursor.u16_be()?,
            major: cursor.u16_be()?,
            minor: cursor.u16_be()?,
            patch: cursor.u16_be()?,
            seek_header: cursor.u64_be()?,
            nbytes_header: cursor.u64_be()?,
            len_header: cursor.u64_be()?,
            seek_footer: cursor.u64_be()?,
            nbytes_footer: cursor.u64_be()?,
            len_footer: cursor.u64_be()?,
            max_key_size: cursor.u64_be()?,
        };
        cursor.take(cursor.remaining() - CHECKSUM_BYTES)?;
        let checksum = cursor.u64_be()?;
        if checksum != xxh3(fields) {
            return Err(Error::corrupt("checksum mismatch").at(offset));
        }
        if anchor.epoch != EPOCH {
            return Err(Error::unsupported(format!("format version with unknown epoch {}", anchor.epoch)).at(offset));
        }
        Ok(anchor)
    }

    /// The format version in the payload of an anchor from before format 1.0, of class `ROOT::Experimental::RNTuple`;
    /// `None` for the oldest anchors, which do not store it.
    ///
    /// # Errors
    /// Corrupt if the payload ends before the version.
    pub fn pre_release_version(payload: &[u8], offset: u64) -> Result<Option<[u16; 4]>> {
        let mut cursor = Cursor::new(payload, offset);
        let _byte_count = cursor.u32_be()?;
        match cursor.u16_be()? {
            PRE_RELEASE_VERSION.. => Ok(Some([cursor.u16_be()?, cursor.u16_be()?, cursor.u16_be()?, cursor.u16_be()?])),
            _ => Ok(None),
        }
    }

    /// Checks that header and footer can lie in a file of `file_size` bytes.
    ///
    /// # Errors
    /// Corrupt if they cannot.
    pub fn validate(&self, file_size: u64) -> Result<()> {
        let envelopes = [
            ("header", self.seek_header, self.nbytes_header, self.len_header),
            ("footer", self.seek_footer, self.nbytes_footer, self.len_footer),
        ];
        for (name, seek, nbytes, len) in envelopes {
            // Only the first chunk of a split envelope must lie at `seek`.
            let together = if self.max_key_size == 0 { nbytes } else { nbytes.min(self.max_key_size) };
            let fits = seek.checked_add(together).is_some_and(|end| end <= file_size) && nbytes <= file_size;
            if seek == 0 || !fits {
                let what = format!("{name} of {nbytes} bytes at byte {seek} is outside the file of {file_size} bytes");
                return Err(Error::corrupt(what));
            }
            if nbytes < MIN_ENVELOPE_BYTES || len < nbytes {
                return Err(Error::corrupt(format!(
                    "{name} has invalid sizes: {nbytes} bytes on disk, {len} bytes uncompressed"
                )));
            }
        }
        Ok(())
    }

    /// The payload of the anchor, [`ANCHOR_BYTES`] long; to be stored uncompressed.
    pub fn write(&self) -> Vec<u8> {
        let mut buffer = Buffer::new();
        buffer.u32_be(BYTE_COUNT_FLAG | (ANCHOR_BYTES - 4 - CHECKSUM_BYTES) as u32);
        buffer.u16_be(CLASS_VERSION);
        for part in [self.epoch, self.major, self.minor, self.patch] {
            buffer.u16_be(part);
        }
        for number in [
            self.seek_header,
            self.nbytes_header,
            self.len_header,
            self.seek_footer,
            self.nbytes_footer,
            self.len_footer,
            self.max_key_size,
        ] {
            buffer.u64_be(number);
        }
        let checksum = xxh3(buffer.as_slice().get(HEAD_BYTES..).unwrap_or_default());
        buffer.u64_be(checksum);
        buffer.into_vec()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::ErrorKind;

    pub(crate) fn example() -> Anchor {
        Anchor {
            epoch: 1,
            major: 0,
            minor: 2,
            patch: 0,
            seek_header: 260,
            nbytes_header: 113,
            len_header: 172,
            seek_footer: 595,
            nbytes_footer: 81,
            len_footer: 160,
            max_key_size: 1 << 30,
        }
    }

    #[test]
    fn the_bytes_are_those_that_root_writes() {
        // The anchor of an ntuple with one entry, written by ROOT 6.40.
        let root = concat!(
            "40000042",
            "0002",
            "0001000000020000",
            "0000000000000104000000000000007100000000000000ac",
            "0000000000000253000000000000005100000000000000a0",
            "0000000040000000",
            "942ab64a633dd47d",
        );
        let hex: String = example().write().iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, root);
        assert_eq!(Anchor::read(&example().write(), 0), Ok(example()));
    }

    #[test]
    fn damage_is_refused_and_growth_accepted() {
        let bytes = example().write();
        for bit in 0..bytes.len() * 8 {
            let mut bytes = bytes.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            // A later class version is legal and lies outside of the checksum.
            assert!(Anchor::read(&bytes, 0).is_err() || bit / 8 == 4 || bit / 8 == 5, "bit {bit}");
        }
        let mut longer = bytes[..70].to_vec();
        longer[3] += 8;
        longer[5] = 3;
        longer.extend_from_slice(&[1, 2, 3, 4, 5, 6, 7, 8]);
        let checksum = xxh3(&longer[6..]);
        longer.extend_from_slice(&[0; 8]);
        longer[78..].copy_from_slice(&checksum.to_be_bytes());
        assert_eq!(Anchor::read(&longer, 0), Ok(example()));
        let other_epoch = Anchor { epoch: 2, ..example() };
        assert_eq!(Anchor::read(&other_epoch.write(), 0).unwrap_err().kind(), ErrorKind::Unsupported);
    }

    #[test]
    fn places_are_checked() {
        let size = 1346;
        assert_eq!(example().validate(size), Ok(()));
        for bad in [
            Anchor { seek_header: 0, ..example() },
            Anchor { seek_header: u64::MAX, ..example() },
            Anchor { seek_footer: 1 << 63, ..example() },
            Anchor { nbytes_footer: 0, ..example() },
            Anchor { nbytes_header: u64::MAX, len_header: u64::MAX, ..example() },
            Anchor { nbytes_header: u64::MAX, len_header: u64::MAX, max_key_size: 64, ..example() },
            Anchor { len_header: 112, ..example() },
        ] {
            assert!(bad.validate(size).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn only_the_first_chunk_of_a_split_envelope_is_at_the_offset() {
        let size = 1346;
        let split = Anchor { seek_footer: size - 50, max_key_size: 50, ..example() };
        assert_eq!(split.validate(size), Ok(()));
        assert!(Anchor { max_key_size: 0, ..split.clone() }.validate(size).is_err());
        assert!(Anchor { max_key_size: 51, ..split.clone() }.validate(size).is_err());
        assert!(Anchor { nbytes_footer: size + 1, len_footer: size + 1, ..split }.validate(size).is_err());
        // Stored as it is, and as small as an envelope gets.
        let small = Anchor { nbytes_footer: 16, len_footer: 16, ..example() };
        assert_eq!(small.validate(size), Ok(()));
        assert!(Anchor { nbytes_footer: 15, ..small }.validate(size).is_err());
    }
}
