//! The file of a container: changes, each one record, in the order in which they were made.
//!
//! A record is the length of its payload (8 bytes), the XXH3 checksum of the payload (8 bytes) and the payload; all
//! integers are little-endian. A record that is not complete or has a wrong checksum is the end: its writer was killed.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use twox_hash::XxHash3_64;

use crate::abi::ObjectId;
use crate::name::Uuid;

/// Bytes before the payload of a record.
const HEAD_BYTES: usize = 16;

/// A change of a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Change {
    /// The first record: what the container is.
    Created { uuid: Uuid, label: String, layout: u64 },
    /// The last object number that was handed out.
    LastOid(u64),
    /// Values of some akeys under one dkey; an empty value removes the akey.
    Update { id: ObjectId, dkey: Vec<u8>, values: Vec<(Vec<u8>, Vec<u8>)> },
    /// Removes an object.
    Punch { id: ObjectId },
    /// Removes a dkey.
    PunchDkey { id: ObjectId, dkey: Vec<u8> },
    /// Removes akeys.
    PunchAkeys { id: ObjectId, dkey: Vec<u8>, akeys: Vec<Vec<u8>> },
}

impl Change {
    fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            Self::Created { uuid, label, layout } => {
                out.push(0);
                put(&mut out, uuid);
                put(&mut out, label.as_bytes());
                out.extend(layout.to_le_bytes());
            }
            Self::LastOid(last) => {
                out.push(1);
                out.extend(last.to_le_bytes());
            }
            Self::Update { id, dkey, values } => {
                start(&mut out, 2, *id, dkey);
                for (akey, value) in values {
                    put(&mut out, akey);
                    put(&mut out, value);
                }
            }
            Self::Punch { id } => start(&mut out, 3, *id, &[]),
            Self::PunchDkey { id, dkey } => start(&mut out, 4, *id, dkey),
            Self::PunchAkeys { id, dkey, akeys } => {
                start(&mut out, 5, *id, dkey);
                akeys.iter().for_each(|akey| put(&mut out, akey));
            }
        }
        out
    }

    /// `None` for what [`Change::encode`] did not write.
    fn decode(mut bytes: &[u8]) -> Option<Self> {
        let from = &mut bytes;
        let (&tag, rest) = from.split_first()?;
        *from = rest;
        match tag {
            0 => {
                let uuid = take(from)?.try_into().ok()?;
                let label = String::from_utf8(take(from)?).ok()?;
                return Some(Self::Created { uuid, label, layout: take_integer(from)? });
            }
            1 => return Some(Self::LastOid(take_integer(from)?)),
            _ => {}
        }
        let id = ObjectId { lo: take_integer(from)?, hi: take_integer(from)? };
        let dkey = take(from)?;
        match tag {
            2 => {
                let mut values = Vec::new();
                while !from.is_empty() {
                    values.push((take(from)?, take(from)?));
                }
                Some(Self::Update { id, dkey, values })
            }
            3 => Some(Self::Punch { id }),
            4 => Some(Self::PunchDkey { id, dkey }),
            5 => {
                let mut akeys = Vec::new();
                while !from.is_empty() {
                    akeys.push(take(from)?);
                }
                Some(Self::PunchAkeys { id, dkey, akeys })
            }
            _ => None,
        }
    }

    /// The bytes of the record.
    fn record(&self) -> Vec<u8> {
        let payload = self.encode();
        let mut record = Vec::with_capacity(HEAD_BYTES + payload.len());
        record.extend((payload.len() as u64).to_le_bytes());
        record.extend(XxHash3_64::oneshot(&payload).to_le_bytes());
        record.extend(payload);
        record
    }
}

fn start(out: &mut Vec<u8>, tag: u8, id: ObjectId, dkey: &[u8]) {
    out.push(tag);
    out.extend(id.lo.to_le_bytes());
    out.extend(id.hi.to_le_bytes());
    put(out, dkey);
}

fn put(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend((bytes.len() as u64).to_le_bytes());
    out.extend(bytes);
}

fn take_integer(from: &mut &[u8]) -> Option<u64> {
    let (bytes, rest) = from.split_first_chunk()?;
    *from = rest;
    Some(u64::from_le_bytes(*bytes))
}

fn take(from: &mut &[u8]) -> Option<Vec<u8>> {
    let length = usize::try_from(take_integer(from)?).ok()?;
    let (bytes, rest) = from.split_at_checked(length)?;
    *from = rest;
    Some(bytes.to_vec())
}

/// The open file of a container.
#[derive(Debug)]
pub(crate) struct Log {
    file: File,
    /// End of the records that were replayed, in bytes.
    end: u64,
}

impl Log {
    /// A new file with its first record. The name appears with the record in it; the error is `AlreadyExists` where the
    /// name is taken.
    pub(crate) fn create(path: &Path, first: &Change) -> io::Result<Self> {
        let folder = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
        fs::create_dir_all(folder)?;
        // Containers are created one at a time in a process.
        let draft = folder.join(format!(".draft-{}", std::process::id()));
        fs::write(&draft, first.record())?;
        let linked = fs::hard_link(&draft, path);
        fs::remove_file(&draft)?;
        linked?;
        Self::open(path)
    }

    /// An existing file, not yet replayed.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        Ok(Self { file, end: 0 })
    }

    /// Number of the file in its file system.
    pub(crate) fn inode(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.ino())
    }

    /// Keeps other processes, and other handles of this file, away until [`Log::unlock`].
    pub(crate) fn lock(&self) -> io::Result<()> {
        self.file.lock()
    }

    pub(crate) fn unlock(&self) -> io::Result<()> {
        self.file.unlock()
    }

    /// Complete changes that were not replayed yet.
    pub(crate) fn replay(&mut self, mut apply: impl FnMut(Change)) -> io::Result<()> {
        let size = self.file.metadata()?.len();
        while let Some(left) = size.checked_sub(self.end + HEAD_BYTES as u64) {
            let mut head = [0; HEAD_BYTES];
            self.file.read_exact_at(&mut head, self.end)?;
            let head = u128::from_le_bytes(head);
            let (length, checksum) = (head as u64, (head >> 64) as u64);
            if length > left {
                break;
            }
            let mut payload = vec![0; usize::try_from(length).map_err(io::Error::other)?];
            self.file.read_exact_at(&mut payload, self.end + HEAD_BYTES as u64)?;
            if XxHash3_64::oneshot(&payload) != checksum {
                break;
            }
            apply(Change::decode(&payload).ok_or(io::ErrorKind::InvalidData)?);
            self.end += HEAD_BYTES as u64 + length;
        }
        Ok(())
    }

    /// Adds a change after the replayed ones, over what a killed writer left there.
    pub(crate) fn append(&mut self, change: &Change) -> io::Result<()> {
        let record = change.record();
        self.file.set_len(self.end)?;
        self.file.write_all_at(&record, self.end)?;
        self.file.flush()?;
        self.end += record.len() as u64;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_truncation_of_the_last_record_is_ignored() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pool/a.cont");
        let id = ObjectId { lo: 1, hi: 2 };
        let changes = [
            Change::Created { uuid: [7; 16], label: "a".to_owned(), layout: 6 },
            Change::LastOid(9),
            Change::Punch { id },
            Change::PunchDkey { id, dkey: vec![1] },
            Change::PunchAkeys { id, dkey: vec![1], akeys: vec![vec![2], vec![3]] },
            Change::Update { id, dkey: vec![1; 8], values: vec![(vec![2], vec![]), (vec![3], vec![4; 100])] },
        ];
        let mut log = Log::create(&path, &changes[0]).unwrap();
        assert_eq!(Log::create(&path, &changes[0]).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        let replayed = |log: &mut Log| {
            let mut found = Vec::new();
            log.replay(|change| found.push(change)).unwrap();
            found
        };
        assert_eq!(replayed(&mut log), changes[..1]);
        changes[1..].iter().for_each(|change| log.append(change).unwrap());
        let mut other = Log::open(&path).unwrap();
        assert_eq!(replayed(&mut other), changes);
        let size = log.end;
        for lost in 1..changes[5].record().len() as u64 {
            log.file.set_len(size - lost).unwrap();
            let mut torn = Log::open(&path).unwrap();
            assert_eq!(replayed(&mut torn), changes[..5], "{lost} bytes are lost");
        }
        let mut torn = Log::open(&path).unwrap();
        replayed(&mut torn);
        torn.append(&changes[1]).unwrap();
        assert_eq!(replayed(&mut Log::open(&path).unwrap()).last(), Some(&changes[1]));
    }
}
