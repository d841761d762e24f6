//! Ntuples in DAOS containers, in the layout of ROOT's back end (`RPageStorageDaos.cxx`).
//!
//! A value in a container has a place of four numbers: the upper and the lower half of the object's id, dkey and akey. The
//! upper half tells the ntuples of a container apart.
//!
//! | value | lower half | dkey | akey |
//! |---|---|---|---|
//! | page, or pages of one column | number of the cluster | number of the column | what the locator says |
//! | page in a separate object | what the locator says | [`METADATA_DKEY`] | [`PAGE_AKEY`] |
//! | page list | 2⁶⁴−2 | [`METADATA_DKEY`] | what the locator says |
//! | anchor, header, footer | 2⁶⁴−1 | [`METADATA_DKEY`] | [`ANCHOR_AKEY`], [`HEADER_AKEY`], [`FOOTER_AKEY`] |

use crate::checksum::xxh3;
use crate::container::AnchorLinks;
use crate::locator::{EnvelopeLink, Locator};
use crate::wire::{Buffer, Cursor};
use crate::{Error, Result};

/// Lower half of the id of the object with anchor, header and footer.
pub const METADATA_OBJECT: u64 = u64::MAX;
/// Lower half of the id of the object with the page lists.
pub const PAGE_LIST_OBJECT: u64 = u64::MAX - 1;
/// The dkey of all values that are not pages.
pub const METADATA_DKEY: u64 = 0x5a3c_69f0_cafe_4a11;
/// The akey of pages in separate objects (`kAttributeKeyDefault`).
pub const PAGE_AKEY: u64 = 0x4243_544b_5344_4229;
/// The akey of the anchor.
pub const ANCHOR_AKEY: u64 = 0x4243_544b_5344_422a;
/// The akey of the header.
pub const HEADER_AKEY: u64 = 0x4243_544b_5344_422b;
/// The akey of the footer.
pub const FOOTER_AKEY: u64 = 0x4243_544b_5344_422c;
/// The index that no ntuple has.
pub const RESERVED_INDEX: u32 = 0;
/// Bytes of an anchor, all of which ROOT reads.
pub const ANCHOR_BYTES: usize = 100;

/// The version of ROOT's anchor.
const ANCHOR_VERSION: u64 = 1;
/// The only epoch of the format.
const EPOCH: u16 = 1;
/// `TUPELO` in ASCII and the version of [`DaosExtension`], little-endian.
const EXTENSION_MAGIC: u64 = 0x0001_4f4c_4550_5554;
/// Bit beside the number of the attempt.
const SEPARATE_PAGES: u64 = 1 << 32;
/// Where the extension begins. ROOT leaves the bytes after the name of the object class as they are.
const EXTENSION_START: usize = 52;
/// Bytes of an anchor before the name of the object class, its length included.
const FIXED_BYTES: usize = 36;
/// Object classes have shorter names in all versions of DAOS.
const MAX_CLASS_BYTES: usize = EXTENSION_START - FIXED_BYTES;

/// The upper half of the ids of an ntuple's objects: a hash of its name. ROOT uses `std::hash`, here that of libstdc++.
pub fn ntuple_index(name: &str) -> u32 {
    let hash = std_hash(name.as_bytes());
    // Both casts take one half, as ROOT does.
    let seed = (hash >> 32) as u32;
    let mixed = (hash as u32).wrapping_add(0x9e37_79b9).wrapping_add(seed << 6).wrapping_add(seed >> 2);
    (seed ^ mixed).max(RESERVED_INDEX + 1)
}

/// `std::hash<std::string>` of libstdc++ on 64-bit systems: MurmurHash64A with a fixed seed.
fn std_hash(bytes: &[u8]) -> u64 {
    const SEED: u64 = 0xc70f_6907;
    const FACTOR: u64 = 0xc6a4_a793_5bd1_e995;
    let mix = |word: u64| word ^ word >> 47;
    let number = |bytes: &[u8]| bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte));
    let mut hash = SEED ^ (bytes.len() as u64).wrapping_mul(FACTOR);
    let words = bytes.chunks_exact(8);
    let rest = words.remainder();
    for word in words {
        hash = (hash ^ mix(number(word).wrapping_mul(FACTOR)).wrapping_mul(FACTOR)).wrapping_mul(FACTOR);
    }
    if !rest.is_empty() {
        hash = (hash ^ number(rest)).wrapping_mul(FACTOR);
    }
    mix(mix(hash).wrapping_mul(FACTOR))
}

/// Tupelo's extension of the anchor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DaosExtension {
    /// Bytes of all values.
    pub bytes: u64,
    /// Number of the attempt that wrote the ntuple.
    pub attempt: u32,
    /// Whether each page is in a separate object.
    pub separate_pages: bool,
    /// XXH3 of the header as it is stored.
    pub header_digest: u64,
    /// XXH3 of the footer as it is stored.
    pub footer_digest: u64,
}

/// The anchor of an ntuple in a DAOS container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DaosAnchor {
    /// The format version, and the links to header and footer.
    pub links: AnchorLinks,
    /// The object class of the pages.
    pub class: String,
    /// The part unknown to ROOT; `None` in anchors that ROOT wrote.
    pub extension: Option<DaosExtension>,
}

impl DaosAnchor {
    /// Reads an anchor.
    ///
    /// # Errors
    /// Corrupt if it is too short or damaged; unsupported for another version of the anchor or the format.
    pub fn read(bytes: &[u8]) -> Result<Self> {
        read(bytes).map_err(|error| error.within("anchor"))
    }

    /// The anchor as bytes.
    ///
    /// # Errors
    /// Limit for envelopes of more than 4 GiB and for long names of object classes.
    pub fn write(&self) -> Result<Vec<u8>> {
        let mut buffer = Buffer::new();
        buffer.u64_le(ANCHOR_VERSION);
        self.links.version.into_iter().for_each(|part| buffer.u16_le(part));
        for link in [self.links.header, self.links.footer] {
            for bytes in [link.locator.stored_bytes(), link.length] {
                let small = u32::try_from(bytes)
                    .map_err(|_| Error::limit(format!("envelope of {bytes} bytes exceeds 4 GiB")))?;
                buffer.u32_le(small);
            }
        }
        if self.class.len() > MAX_CLASS_BYTES {
            return Err(Error::limit(format!(
                "the name of object class '{}' is longer than {MAX_CLASS_BYTES} bytes",
                self.class
            )));
        }
        buffer.string_le(&self.class);
        buffer.put([0; ANCHOR_BYTES].get(buffer.len()..).unwrap_or_default());
        if let Some(extension) = &self.extension {
            let mut own = Buffer::new();
            own.u64_le(EXTENSION_MAGIC);
            own.u64_le(extension.bytes);
            own.u64_le(u64::from(extension.attempt) | if extension.separate_pages { SEPARATE_PAGES } else { 0 });
            own.u64_le(extension.header_digest);
            own.u64_le(extension.footer_digest);
            buffer.patch(EXTENSION_START, own.as_slice());
            let digest = digest(buffer.as_slice());
            own.u64_le(digest);
            buffer.patch(EXTENSION_START, own.as_slice());
        }
        Ok(buffer.into_vec())
    }
}

/// Of all bytes but the digest itself, which is the last one.
fn digest(anchor: &[u8]) -> u64 {
    xxh3(anchor.get(..ANCHOR_BYTES - 8).unwrap_or_default())
}

fn read(bytes: &[u8]) -> Result<DaosAnchor> {
    let mut cursor = Cursor::new(bytes, 0);
    match cursor.u64_le()? {
        ANCHOR_VERSION => {}
        other => return Err(Error::unsupported(format!("version {other} of the anchor is not supported"))),
    }
    let mut version = [0; 4];
    for part in &mut version {
        *part = cursor.u16_le()?;
    }
    if version[0] != EPOCH {
        return Err(Error::unsupported(format!("format version with unknown epoch {}", version[0])));
    }
    let mut link = |akey| -> Result<EnvelopeLink> {
        let (bytes, length) = (cursor.u32_le()?, cursor.u32_le()?);
        Ok(EnvelopeLink { length: length.into(), locator: Locator::Object { location: akey, bytes: bytes.into() } })
    };
    let links = AnchorLinks { version, header: link(HEADER_AKEY)?, footer: link(FOOTER_AKEY)? };
    let class = cursor.string_le()?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if class.len() > ANCHOR_BYTES - FIXED_BYTES || !class.chars().all(is_name) {
        return Err(Error::corrupt(format!("'{}' is not the name of an object class", class.escape_debug())));
    }
    Ok(DaosAnchor { links, class, extension: extension(bytes)? })
}

/// What follows the object class. In anchors that ROOT wrote, these bytes are arbitrary.
fn extension(anchor: &[u8]) -> Result<Option<DaosExtension>> {
    let Some(own) = anchor.get(EXTENSION_START..ANCHOR_BYTES) else { return Ok(None) };
    let mut cursor = Cursor::new(own, EXTENSION_START as u64);
    if cursor.u64_le()? != EXTENSION_MAGIC {
        // An anchor of Tupelo whose magic bytes are damaged must not be taken for one of ROOT.
        let mut restored = anchor.to_vec();
        restored.splice(EXTENSION_START..EXTENSION_START + 8, EXTENSION_MAGIC.to_le_bytes());
        return match anchor.get(ANCHOR_BYTES - 8..ANCHOR_BYTES) == Some(&digest(&restored).to_le_bytes()[..]) {
            true => Err(Error::corrupt("the word TUPELO is damaged")),
            false => Ok(None),
        };
    }
    let (bytes, attempt) = (cursor.u64_le()?, cursor.u64_le()?);
    let (header_digest, footer_digest) = (cursor.u64_le()?, cursor.u64_le()?);
    let (stored, computed) = (cursor.u64_le()?, digest(anchor));
    if stored != computed {
        return Err(Error::corrupt(format!("checksum mismatch (stored {stored:016x}, computed {computed:016x})")));
    }
    let separate_pages = attempt & SEPARATE_PAGES != 0;
    let number = attempt & !SEPARATE_PAGES;
    let unknown = |_| Error::unsupported(format!("unknown flags ({:016x})", number >> 32 << 32));
    let attempt = u32::try_from(number).map_err(unknown)?;
    Ok(Some(DaosExtension { bytes, attempt, separate_pages, header_digest, footer_digest }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn anchor() -> DaosAnchor {
        let link = |location, bytes, length| EnvelopeLink { length, locator: Locator::Object { location, bytes } };
        DaosAnchor {
            links: AnchorLinks {
                version: [1, 0, 1, 0],
                header: link(HEADER_AKEY, 10, 20),
                footer: link(FOOTER_AKEY, 30, u32::MAX.into()),
            },
            class: "EC_16P2GX".to_owned(),
            extension: Some(DaosExtension {
                bytes: 1 << 40,
                attempt: 7,
                separate_pages: false,
                header_digest: 1,
                footer_digest: u64::MAX,
            }),
        }
    }

    /// The values were computed with g++.
    #[test]
    fn names_have_the_index_that_root_gives() {
        for (name, index) in [
            ("", 0x744c_be9b),
            ("a", 0xce89_4939),
            ("Events", 0x87d4_b929),
            ("ntuple", 0x5ceb_4a60),
            ("x1234567", 0x0284_d0d2),
            ("DecayTree", 0x9923_67fb),
            ("EventData", 0x354d_c96a),
            ("a name of more than sixteen bytes", 0xdae2_102e),
        ] {
            assert_eq!(ntuple_index(name), index, "{name}");
        }
        assert_eq!(std_hash(b"EventData"), 0xa574_a611_6b7b_47fe);
    }

    #[test]
    fn written_records_are_read_back() {
        let separate = anchor().extension.map(|own| DaosExtension { separate_pages: true, ..own });
        for extension in [anchor().extension, separate, None] {
            let anchor = DaosAnchor { extension, ..anchor() };
            let bytes = anchor.write().unwrap();
            assert_eq!(bytes.len(), ANCHOR_BYTES);
            assert_eq!(DaosAnchor::read(&bytes), Ok(anchor));
        }
        let long = DaosAnchor { class: "A_LONG_OBJECT_CLASS".to_owned(), ..anchor() };
        assert!(long.write().is_err());
    }

    #[test]
    fn bytes_that_root_leaves_are_ignored() {
        let plain = DaosAnchor { extension: None, class: "SX".to_owned(), ..anchor() };
        let mut bytes = plain.write().unwrap();
        bytes[FIXED_BYTES + 2..].fill(0xab);
        assert_eq!(DaosAnchor::read(&bytes), Ok(plain.clone()));
        bytes.truncate(FIXED_BYTES + 2);
        assert_eq!(DaosAnchor::read(&bytes), Ok(plain));
    }

    #[test]
    fn damaged_anchors_are_errors() {
        let bytes = anchor().write().unwrap();
        for cut in 0..FIXED_BYTES + anchor().class.len() {
            assert!(DaosAnchor::read(&bytes[..cut]).is_err(), "{cut}");
        }
        let error = |at: usize, byte: u8| {
            let mut bytes = bytes.clone();
            bytes[at] = byte;
            DaosAnchor::read(&bytes).map(drop).unwrap_err().to_string()
        };
        assert_eq!(error(0, 2), "anchor: version 2 of the anchor is not supported");
        assert_eq!(error(8, 2), "anchor: format version with unknown epoch 2");
        assert_eq!(error(FIXED_BYTES, b'/'), "anchor: '/C_16P2GX' is not the name of an object class");
        for at in [20, EXTENSION_START + 8, ANCHOR_BYTES - 1] {
            assert!(error(at, 0x55).starts_with("anchor: checksum mismatch"), "{at}");
        }
        assert_eq!(error(EXTENSION_START, b'U'), "anchor: the word TUPELO is damaged");
        let mut other = bytes.clone();
        other[EXTENSION_START + 20] = 2;
        let digest = digest(&other).to_le_bytes();
        other[ANCHOR_BYTES - 8..].copy_from_slice(&digest);
        let error = DaosAnchor::read(&other).map(drop).unwrap_err().to_string();
        assert_eq!(error, "anchor: unknown flags (0000000200000000)");
    }
}
