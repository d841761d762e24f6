//! The manifest of an ntuple in an object store: size and digest of every object.

use crate::wire::{Buffer, Cursor, Memory};
use crate::{Error, Result};

/// `TUPELOMF` in ASCII, little-endian.
const MAGIC: u64 = 0x464d_4f4c_4550_5554;
/// Bytes of a digest in a manifest.
const DIGEST_BYTES: usize = 16;
/// The shortest named object: length of the name, digest.
const NAMED_BYTES: usize = 4 + DIGEST_BYTES;

/// An object as it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct ObjectDigest {
    /// Its size in bytes.
    pub bytes: u64,
    /// XXH3 of its bytes.
    pub digest: u64,
}

/// All objects of an ntuple but its anchor and the manifest.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Manifest {
    /// The objects with numbers, from 0.
    pub numbered: Vec<ObjectDigest>,
    /// Anchors of attribute sets, by their key in the folder of the objects.
    pub named: Vec<(String, ObjectDigest)>,
}

impl Manifest {
    /// Reads what [`Manifest::write`] writes; what follows is ignored.
    ///
    /// # Errors
    /// Corrupt where it is damaged, limit where it takes more than `memory`.
    pub fn read(bytes: &[u8], memory: &Memory) -> Result<Self> {
        let mut cursor = Cursor::new(bytes, 0).within(memory);
        if cursor.u64_le()? != MAGIC {
            return Err(Error::corrupt("not a manifest: wrong magic number").at(0));
        }
        let (numbered, named) = (cursor.u64_le()?, cursor.u64_le()?);
        let count = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
        let mut manifest = Self {
            numbered: cursor.reserve(count(numbered), DIGEST_BYTES)?,
            named: cursor.reserve(count(named), NAMED_BYTES)?,
        };
        for _ in 0..numbered {
            manifest.numbered.push(digest(&mut cursor)?);
        }
        for _ in 0..named {
            manifest.named.push((cursor.string_le()?, digest(&mut cursor)?));
        }
        Ok(manifest)
    }

    /// The manifest as bytes: a mark, the number of both kinds of objects, their sizes and digests.
    pub fn write(&self) -> Vec<u8> {
        let mut buffer = Buffer::new();
        buffer.u64_le(MAGIC);
        buffer.u64_le(self.numbered.len() as u64);
        buffer.u64_le(self.named.len() as u64);
        let put = |buffer: &mut Buffer, object: &ObjectDigest| {
            buffer.u64_le(object.bytes);
            buffer.u64_le(object.digest);
        };
        self.numbered.iter().for_each(|object| put(&mut buffer, object));
        for (name, object) in &self.named {
            buffer.string_le(name);
            put(&mut buffer, object);
        }
        buffer.into_vec()
    }
}

fn digest(cursor: &mut Cursor<'_>) -> Result<ObjectDigest> {
    Ok(ObjectDigest { bytes: cursor.u64_le()?, digest: cursor.u64_le()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_records_are_read_back() {
        let object = |bytes| ObjectDigest { bytes, digest: !bytes };
        let named = vec![("_clone/a set".to_owned(), object(7))];
        for manifest in [Manifest::default(), Manifest { numbered: (0..100).map(object).collect(), named }] {
            let bytes = manifest.write();
            assert_eq!(Manifest::read(&bytes, &Memory::unlimited()), Ok(manifest));
            for cut in 0..bytes.len() {
                assert!(Manifest::read(&bytes[..cut], &Memory::unlimited()).is_err(), "{cut}");
            }
        }
    }

    #[test]
    fn no_count_makes_an_allocation() {
        let mut buffer = Buffer::new();
        [MAGIC, u64::MAX, 0].into_iter().for_each(|word| buffer.u64_le(word));
        assert!(Manifest::read(buffer.as_slice(), &Memory::unlimited()).is_err());
        let bytes = Manifest { numbered: vec![ObjectDigest::default(); 1000], named: Vec::new() }.write();
        assert!(Manifest::read(&bytes, &Memory::new(1000)).is_err());
        assert!(Manifest::read(b"JSON is not", &Memory::unlimited()).is_err());
    }
}
