//! Keys: the record heads of a ROOT file (`TKey::Streamer`).

use super::{Attempt, BEGIN, FetchedRanges, START_BIG_FILE};
use crate::wire::{Buffer, Cursor};
use crate::{Error, Result, compression};

/// Key versions above this have 64-bit offsets.
const BIG: u16 = 1000;
/// Version of the keys written here, small layout.
const VERSION: u16 = 4;
/// Bytes by which keys with two offsets of 32 bits are shorter than those of 64 bits.
const NARROWER: u16 = 8;
/// Read at once at the start of a record.
const HEAD_BYTES: u64 = 512;
/// Bytes of the key in front of a blob.
pub const BLOB_KEY_BYTES: u64 = 42;
/// The longest payload behind one blob key: the length in a key has 31 bits.
pub const MAX_BLOB_BYTES: u64 = i32::MAX as u64 - BLOB_KEY_BYTES;
/// Larger objects (not blobs) are refused: 1 GiB, which is ROOT's own limit.
pub const MAX_OBJECT_BYTES: u64 = 1 << 30;

/// The head of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// Bytes of the whole record on disk, key included.
    pub nbytes: u32,
    /// Version of the key, above 1000 where offsets have 64 bits.
    pub version: u16,
    /// Bytes of the object in memory; meaningless for blobs.
    pub object_bytes: u32,
    /// When it was written, in ROOT's packed form (`TDatime`).
    pub datime: u32,
    /// Bytes of the key itself: the payload starts this many bytes after `seek_key`.
    pub key_bytes: u16,
    /// Generation of the object among those of its name.
    pub cycle: u16,
    /// Offset of the record.
    pub seek_key: u64,
    /// Offset of the directory that holds it.
    pub seek_parent: u64,
    /// C++ class of the object.
    pub class_name: String,
    /// Name of the object.
    pub name: String,
    /// Title of the object.
    pub title: String,
}

/// The bits of a 64-bit offset in a key.
const SEEK_BITS: u64 = (1 << 48) - 1;

impl Key {
    /// Reads a key; `offset` is where the bytes lie in the file.
    ///
    /// # Errors
    /// Corrupt where lengths contradict each other, in particular for gaps (negative length).
    pub fn read(bytes: &[u8], offset: u64) -> Result<Self> {
        Self::parse(bytes, offset).map(|(key, _)| key)
    }

    /// As [`Key::read`], with the number of bytes up to the end of the title, where a key ends for ROOT. The length that
    /// the key has of itself, where its object begins, may be another (`TKey::ReadKeyBuffer`).
    pub(super) fn parse(bytes: &[u8], offset: u64) -> Result<(Self, usize)> {
        let mut cursor = Cursor::new(bytes, offset);
        let nbytes = match u32::try_from(cursor.i32_be()?) {
            Ok(nbytes) if nbytes > 0 => nbytes,
            _ => return Err(Error::corrupt("key of a deleted or empty record").at(offset)),
        };
        let version = cursor.u16_be()?;
        let object_bytes = cursor.u32_be()?;
        let datime = cursor.u32_be()?;
        let key_bytes = cursor.u16_be()?;
        let cycle = cursor.u16_be()?;
        if u32::from(key_bytes) > nbytes {
            return Err(Error::corrupt(format!("key of {key_bytes} bytes in a record of {nbytes} bytes")).at(offset));
        }
        let (seek_key, seek_parent) = match version > BIG {
            // The highest bits are those of another number (`TKey::fPidOffset`).
            true => (cursor.u64_be()?, cursor.u64_be()? & SEEK_BITS),
            false => (u64::from(cursor.u32_be()?), u64::from(cursor.u32_be()?)),
        };
        // An object cannot begin before the names.
        if usize::from(key_bytes) < cursor.position() {
            return Err(Error::corrupt(format!("key of {key_bytes} bytes is shorter than its fields")).at(offset));
        }
        let class_name = text(&mut cursor)?;
        let name = text(&mut cursor)?;
        let title = text(&mut cursor)?;
        if cursor.position() as u64 > u64::from(nbytes) {
            let what = format!("key of {} bytes in a record of {nbytes} bytes", cursor.position());
            return Err(Error::corrupt(what).at(offset));
        }
        if class_name.contains('\0') || name.contains('\0') {
            return Err(Error::corrupt("key name contains a zero byte").at(offset));
        }
        let key = Self {
            nbytes,
            version,
            object_bytes,
            datime,
            key_bytes,
            cycle,
            seek_key,
            seek_parent,
            class_name,
            name,
            title,
        };
        Ok((key, cursor.position()))
    }

    /// Checks that the record lies inside a file of `file_size` bytes.
    ///
    /// # Errors
    /// Corrupt where it does not.
    pub fn check_place(&self, file_size: u64) -> Result<()> {
        let fits = self.seek_key > 0
            && self.seek_parent < file_size
            && self.seek_key.checked_add(u64::from(self.nbytes)).is_some_and(|end| end <= file_size);
        match fits {
            true => Ok(()),
            false => Err(Error::corrupt(format!(
                "key '{}': record of {} bytes at byte {} (parent {}) is outside the file of {file_size} bytes",
                self.name, self.nbytes, self.seek_key, self.seek_parent
            ))
            .at(self.seek_key)),
        }
    }

    /// Bytes of the payload on disk.
    pub fn stored_bytes(&self) -> u64 {
        u64::from(self.nbytes.saturating_sub(u32::from(self.key_bytes)))
    }

    /// Offset of the payload.
    pub fn payload_offset(&self) -> u64 {
        self.seek_key.saturating_add(u64::from(self.key_bytes))
    }

    /// Whether the record is a directory that can be descended into.
    pub fn is_directory(&self) -> bool {
        matches!(self.class_name.as_str(), "TDirectory" | "TDirectoryFile")
    }

    /// A key to be written at `at`, in front of `payload_bytes` uncompressed bytes.
    pub(super) fn place(
        at: u64,
        seek_parent: u64,
        [class_name, name, title]: [&str; 3],
        payload_bytes: usize,
        datime: u32,
    ) -> Result<Self> {
        let is_big = at > START_BIG_FILE || seek_parent > START_BIG_FILE;
        Self::of_width(is_big, at, seek_parent, [class_name, name, title], payload_bytes, datime)
    }

    /// As [`Key::place`] for an object with references, which count from the start of its key: with 64-bit offsets, so
    /// that its length is known before its place.
    pub(super) fn place_wide(
        at: u64,
        seek_parent: u64,
        names: [&str; 3],
        payload_bytes: usize,
        datime: u32,
    ) -> Result<Self> {
        Self::of_width(true, at, seek_parent, names, payload_bytes, datime)
    }

    /// As [`Key::place`] for an object with references, which count from the start of a key of `length` bytes.
    pub(super) fn place_of_length(
        length: u16,
        at: u64,
        seek_parent: u64,
        names: [&str; 3],
        payload_bytes: usize,
        datime: u32,
    ) -> Result<Self> {
        let is_far = at > START_BIG_FILE || seek_parent > START_BIG_FILE;
        let wide = Self::of_width(true, at, seek_parent, names, payload_bytes, datime)?;
        match wide.key_bytes.checked_sub(length) {
            Some(0) => Ok(wide),
            Some(NARROWER) if !is_far => Self::of_width(false, at, seek_parent, names, payload_bytes, datime),
            Some(NARROWER) => {
                let what = format!("references in '{}' need a key with 32-bit offsets", names[1]);
                Err(Error::unsupported(format!("{what}, which cannot be stored at byte {at}")))
            }
            _ => Err(Error::unsupported(format!("references in '{}' need a key of {length} bytes", names[1]))),
        }
    }

    fn of_width(
        is_big: bool,
        at: u64,
        seek_parent: u64,
        [class_name, name, title]: [&str; 3],
        payload_bytes: usize,
        datime: u32,
    ) -> Result<Self> {
        let mut key = Self {
            nbytes: 0,
            version: if is_big { BIG + VERSION } else { VERSION },
            object_bytes: 0,
            datime,
            key_bytes: 0,
            cycle: 1,
            seek_key: at,
            seek_parent,
            class_name: class_name.to_owned(),
            name: name.to_owned(),
            title: title.to_owned(),
        };
        let key_bytes = key.write().len();
        let too_long = || {
            Error::limit(format!("'{name}': key of {key_bytes} bytes or payload of {payload_bytes} bytes is too long"))
        };
        // Both lengths are signed in ROOT.
        key.key_bytes = i16::try_from(key_bytes).ok().and_then(|n| u16::try_from(n).ok()).ok_or_else(too_long)?;
        let nbytes = key_bytes.checked_add(payload_bytes).and_then(|n| i32::try_from(n).ok()).ok_or_else(too_long)?;
        key.nbytes = nbytes.unsigned_abs();
        key.object_bytes = u32::try_from(payload_bytes).map_err(|_| too_long())?;
        Ok(key)
    }

    /// The key on disk.
    pub(super) fn write(&self) -> Vec<u8> {
        let mut buffer = Buffer::new();
        buffer.u32_be(self.nbytes);
        buffer.u16_be(self.version);
        buffer.u32_be(self.object_bytes);
        buffer.u32_be(self.datime);
        buffer.u16_be(self.key_bytes);
        buffer.u16_be(self.cycle);
        for offset in [self.seek_key, self.seek_parent] {
            match u32::try_from(offset) {
                Ok(small) if self.version <= BIG => buffer.u32_be(small),
                _ => buffer.u64_be(offset),
            }
        }
        buffer.string_be(&self.class_name);
        buffer.string_be(&self.name);
        buffer.string_be(&self.title);
        buffer.into_vec()
    }
}

/// A `TString`. ROOT does not know encodings: what is not UTF-8 is shown as well as possible.
pub(super) fn text(cursor: &mut Cursor<'_>) -> Result<String> {
    Ok(String::from_utf8_lossy(cursor.text_be()?).into_owned())
}

/// Reads the key of the record at `offset`.
///
/// # Errors
/// As [`Key::read`], and where the file ends before the record does.
pub fn read_key(fetched: &FetchedRanges, offset: u64) -> Attempt<Key> {
    parse_key(fetched, offset).map(|(key, _)| key)
}

/// As [`read_key`], with the number of bytes up to the end of the title, as [`Key::parse`] gives it.
pub(super) fn parse_key(fetched: &FetchedRanges, offset: u64) -> Attempt<(Key, usize)> {
    let head_bytes = fetched.size().saturating_sub(offset).min(HEAD_BYTES);
    let head = fetched.get(offset, head_bytes)?;
    let mut cursor = Cursor::new(&head, offset);
    cursor.take(14)?;
    let key_bytes = u64::from(cursor.u16_be()?);
    let (key, content_bytes) = Key::parse(&fetched.get(offset, key_bytes.max(head_bytes))?, offset)?;
    let end = offset.saturating_add(u64::from(key.nbytes));
    if end > fetched.size() {
        let what = format!("record of {} bytes extends past the end of the file", key.nbytes);
        return Err(Error::corrupt(what).at(offset).into());
    }
    Ok((key, content_bytes))
}

/// The payload behind a key, decompressed where it is shorter than the object.
///
/// # Errors
/// Corrupt where lengths contradict each other or the block is damaged; limit above [`MAX_OBJECT_BYTES`].
pub fn object_bytes(fetched: &FetchedRanges, key: &Key) -> Attempt<Vec<u8>> {
    key.check_place(fetched.size())?;
    let (stored, whole) = (key.stored_bytes(), u64::from(key.object_bytes));
    if stored.max(whole) > MAX_OBJECT_BYTES {
        return Err(Error::limit(format!(
            "'{}' has {} bytes, limit is {MAX_OBJECT_BYTES}",
            key.name,
            stored.max(whole)
        ))
        .at(key.seek_key)
        .into());
    }
    if stored > whole {
        let what = format!("'{}' has {whole} bytes but {stored} on disk", key.name);
        return Err(Error::corrupt(what).at(key.seek_key).into());
    }
    let block = fetched.get(key.payload_offset(), stored)?;
    if stored == whole {
        fetched.memory().take(whole, format_args!("'{}'", key.name))?;
        return Ok(block.into());
    }
    let decompressed = compression::decompress_within(&block, whole, MAX_OBJECT_BYTES, fetched.memory());
    Ok(decompressed.map_err(|error| error.within(format_args!("'{}'", key.name)).at(key.payload_offset()))?)
}

/// The key to put right in front of a blob: pages and envelopes that no directory lists.
///
/// It always has the 64-bit layout and so [`BLOB_KEY_BYTES`], as in ROOT (`RNTupleFileWriter::PrepareBlobKey`).
///
/// # Errors
/// Limit above [`MAX_BLOB_BYTES`].
pub fn blob_key(at: u64, payload_bytes: u64, datime: u32) -> Result<Vec<u8>> {
    if payload_bytes > MAX_BLOB_BYTES {
        return Err(Error::limit(format!("blob of {payload_bytes} bytes exceeds the limit of {MAX_BLOB_BYTES}")));
    }
    let key = Key {
        nbytes: u32::try_from(payload_bytes.saturating_add(BLOB_KEY_BYTES)).unwrap_or(u32::MAX),
        version: BIG + VERSION,
        object_bytes: u32::try_from(payload_bytes).unwrap_or(u32::MAX),
        datime,
        key_bytes: BLOB_KEY_BYTES as u16,
        cycle: 1,
        seek_key: at,
        seek_parent: BEGIN,
        class_name: "RBlob".to_owned(),
        name: String::new(),
        title: String::new(),
    };
    Ok(key.write())
}

/// A key for an object that no directory lists, at `at`: class, name and title.
///
/// # Errors
/// Limit for names and payloads longer than keys can say.
pub fn unlisted_key(at: u64, names: [&str; 3], payload_bytes: usize, datime: u32) -> Result<Vec<u8>> {
    Key::place(at, BEGIN, names, payload_bytes, datime).map(|key| key.write())
}

/// Bytes of a key with 64-bit offsets, which an object can have wherever it lies (see
/// [`Payload::behind_key`](super::Payload::behind_key)): class, name and title.
///
/// # Errors
/// Limit for names longer than keys can hold.
pub fn streamed_key_bytes(names: [&str; 3]) -> Result<u16> {
    Key::place_wide(0, 0, names, 0, 0).map(|key| key.key_bytes)
}

/// The key of a record with references at `at` that no directory lists, with 64-bit offsets: class, name and title; bytes
/// of the payload as it is stored and before compression.
///
/// # Errors
/// Limit for names and payloads longer than keys can say.
pub fn streamed_key(at: u64, names: [&str; 3], payload_bytes: [usize; 2], datime: u32) -> Result<Vec<u8>> {
    let mut key = Key::place_wide(at, BEGIN, names, payload_bytes[0], datime)?;
    key.object_bytes = u32::try_from(payload_bytes[1]).map_err(|_| Error::limit("payload exceeds 4 GiB"))?;
    Ok(key.write())
}

#[cfg(test)]
mod tests {
    use super::super::Interrupt;
    use super::super::tests::run;
    use super::*;

    #[test]
    fn keys_come_back_in_both_layouts() {
        for at in [100, START_BIG_FILE, START_BIG_FILE + 1, 1 << 60] {
            let mut key = Key::place(at, 100, ["TTree", &"n".repeat(300), "title"], 77, 5).unwrap();
            key.cycle = 9;
            let bytes = key.write();
            assert_eq!(bytes.len(), usize::from(key.key_bytes));
            assert_eq!(Key::read(&bytes, at), Ok(key.clone()));
            assert_eq!(key.version, if at > START_BIG_FILE { 1004 } else { 4 });
            let inside = Key::place(100, at, ["TTree", "n", "title"], 77, 5).unwrap();
            assert_eq!((inside.version, inside.seek_parent), (key.version, at));
            for length in 0..bytes.len() {
                assert!(Key::read(&bytes[..length], at).is_err());
            }
        }
        assert!(Key::place(100, 100, ["TTree", &"n".repeat(40_000), ""], 77, 5).is_err());
    }

    #[test]
    fn a_blob_key_has_always_the_same_length() {
        let bytes = blob_key(100, MAX_BLOB_BYTES, 5).unwrap();
        assert_eq!(bytes.len() as u64, BLOB_KEY_BYTES);
        let key = Key::read(&bytes, 100).unwrap();
        assert_eq!((key.nbytes, key.payload_offset(), key.version), (i32::MAX as u32, 142, 1004));
        assert!(blob_key(100, MAX_BLOB_BYTES + 1, 5).is_err());
    }

    #[test]
    fn keys_are_checked_at_their_edges() {
        let mut key = Key::place(100, 100, ["C", "n", "t"], 0, 5).unwrap();
        // Nothing behind the key; the highest version with 32-bit offsets.
        key.version = BIG;
        assert_eq!(Key::read(&key.write(), 100), Ok(key.clone()));
        assert_eq!((key.stored_bytes(), u32::from(key.key_bytes)), (0, key.nbytes));
        for nbytes in [0, 1 << 31, u32::MAX] {
            let error = Key::read(&Key { nbytes, ..key.clone() }.write(), 100).unwrap_err();
            assert_eq!(error.what(), "key of a deleted or empty record");
        }
        for (class_name, name) in [("C\0", "n"), ("C", "n\0")] {
            let key = Key::place(100, 100, [class_name, name, "t"], 0, 5).unwrap();
            assert!(Key::read(&key.write(), 100).unwrap_err().to_string().contains("zero byte"));
        }
        let end = 100 + u64::from(key.nbytes);
        let place =
            |seek_key: u64, seek_parent: u64, size: u64| Key { seek_key, seek_parent, ..key.clone() }.check_place(size);
        assert_eq!(place(100, 99, end), Ok(()));
        assert_eq!(place(1, end - 1, end), Ok(()));
        for (seek_key, seek_parent, size) in [(100, 99, end - 1), (0, 99, end), (100, end, end), (u64::MAX, 99, end)] {
            assert!(place(seek_key, seek_parent, size).is_err(), "{seek_key}, {seek_parent} of {size}");
        }
    }

    #[test]
    fn an_object_is_as_large_as_it_may_get() {
        let object = |bytes: u64| {
            let key = Key::place(100, 100, ["C", "n", "t"], 0, 5).unwrap();
            let size = bytes + 100 + u64::from(key.key_bytes);
            let key = Key { nbytes: (size - 100) as u32, object_bytes: bytes as u32, ..key };
            object_bytes(&FetchedRanges::new(size), &key)
        };
        assert!(matches!(object(MAX_OBJECT_BYTES), Err(Interrupt::Missing(_))));
        let Err(Interrupt::Failed(error)) = object(MAX_OBJECT_BYTES + 1) else { panic!("more than a gibibyte") };
        assert_eq!(
            (error.what(), error.kind()),
            ("'n' has 1073741825 bytes, limit is 1073741824", crate::ErrorKind::Limit)
        );
    }

    /// The object behind a key that says that it has `object_bytes`.
    fn read_object(payload: &[u8], object_bytes: usize) -> Result<Vec<u8>> {
        let key = Key::place(100, 100, ["C", &"n".repeat(600), "t"], payload.len(), 5).unwrap();
        let key = Key { object_bytes: object_bytes as u32, ..key };
        let file = [&[0; 100][..], &key.write(), payload].concat();
        run(&file, |fetched| {
            assert_eq!(read_key(fetched, 100)?, key);
            super::object_bytes(fetched, &key)
        })
    }

    #[test]
    fn objects_are_decompressed_where_they_are_shorter_than_they_say() {
        let object = b"tupelo ".repeat(400);
        let mut packed = Vec::new();
        let setting = compression::Compression::new(compression::Algorithm::Zstd, 5).unwrap();
        compression::compress(setting, &object, &mut packed).unwrap();
        assert_eq!(read_object(&packed, object.len()), Ok(object.clone()));
        assert_eq!(read_object(&packed, packed.len()), Ok(packed.clone()));
        assert_eq!(read_object(&object, object.len()), Ok(object.clone()));
        let error = read_object(&object, object.len() - 1).unwrap_err();
        assert!(error.what().ends_with("' has 2799 bytes but 2800 on disk"), "{error}");
        assert!(read_object(&packed, object.len() - 1).is_err());
        assert!(read_object(&packed, object.len() + 1).is_err());
    }

    #[test]
    fn an_unlisted_key_names_its_object() {
        let bytes = unlisted_key(300, ["C", "n", "t"], 7, 5).unwrap();
        let key = Key::read(&bytes, 300).unwrap();
        assert_eq!([key.class_name.as_str(), &key.name, &key.title], ["C", "n", "t"]);
        assert_eq!((key.seek_key, key.seek_parent, key.stored_bytes(), key.object_bytes), (300, BEGIN, 7, 7));
    }
}
