//! Several NumPy arrays in a ZIP archive: `.npz`.
//!
//! The crate `zip` reads the directory; the members are decompressed side by side, a few entries at a time.

use std::collections::HashSet;
// FS: a file of another format; the storage of the engine is for ROOT files.
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{Schema, SchemaRef};
use flate2::Crc;
use flate2::read::DeflateDecoder;
use zip::read::Config;
use zip::unstable::read::ZipIterable;
use zip::{CompressionMethod, ZipArchive};

use super::guard::guarded;
use super::npy::{Dtype, Header, Places, field, values};
use super::{BATCH_BYTES, Batches, ForeignFile, Limits, PLAIN_BATCH_ENTRIES, Place, batch_entries};
use crate::failure::Failure;

/// The extension of members.
const EXTENSION: &str = ".npy";
/// Maximum number of bytes that deflate makes of one byte.
const MAX_DEFLATED: u64 = 1032;
/// Minimum and maximum size of the buffer of compressed bytes for each member.
const BUFFER_BYTES: (u64, u64) = (1 << 12, 1 << 16);
/// Memory that decompressing a member takes besides it, in bytes: a window of 32 KiB and tables.
const DECODER_BYTES: u64 = 3 << 14;

/// An `.npz` file.
pub(super) struct NpzFile {
    place: Place,
    file: Arc<Mutex<File>>,
    schema: SchemaRef,
    members: Vec<Member>,
    entries: u64,
    memory: u64,
}

/// An array in the archive.
#[derive(Debug, Clone)]
struct Member {
    /// Where its compressed bytes are.
    bytes: Range<u64>,
    is_deflated: bool,
    unpacked: u64,
    checksum: u32,
    dtype: Dtype,
    entry_bytes: usize,
    entries: u64,
}

/// A part of a file that others read too.
struct Part {
    file: Arc<Mutex<File>>,
    bytes: Range<u64>,
}

impl Read for Part {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.bytes.end - self.bytes.start).unwrap_or(usize::MAX).min(buffer.len());
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.seek(SeekFrom::Start(self.bytes.start))?;
        let read = file.read(buffer.get_mut(..most).unwrap_or_default())?;
        self.bytes.start += read as u64;
        Ok(read)
    }
}

/// The decompressed bytes of a member.
struct Stream {
    bytes: Box<dyn Read>,
    left: u64,
    crc: Crc,
    checksum: u32,
}

impl Stream {
    fn new(file: &Arc<Mutex<File>>, member: &Member, buffer_bytes: u64) -> Self {
        let part = Part { file: Arc::clone(file), bytes: member.bytes.clone() };
        let part = BufReader::with_capacity(buffer_bytes as usize, part);
        let bytes: Box<dyn Read> =
            if member.is_deflated { Box::new(DeflateDecoder::new(part)) } else { Box::new(part) };
        Self { bytes, left: member.unpacked, crc: Crc::new(), checksum: member.checksum }
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        let buffer = buffer.get_mut(..most).unwrap_or_default();
        let read = self.bytes.read(buffer)?;
        self.crc.update(buffer.get(..read).unwrap_or_default());
        self.left -= read as u64;
        match self.left == 0 && read > 0 && self.crc.sum() != self.checksum {
            true => Err(io::Error::new(io::ErrorKind::InvalidData, "its checksum is wrong")),
            false => Ok(read),
        }
    }
}

impl NpzFile {
    pub(super) fn open(place: Place, limits: Limits) -> Result<Self, Failure> {
        let file = Arc::new(Mutex::new(place.handle()?));
        let found = guarded(|| list(&place)).unwrap_or_else(|| Err("its directory cannot be decoded".to_owned()));
        let found = found.map_err(|error| {
            place.failure(format_args!("is not a complete .npz file: {error}")).with_hint("copy the file again")
        })?;
        if let Some(name) = found.repeated {
            let what = format!("expected arrays of different names, found '{}' twice", name.escape_debug());
            return Err(place.failure(what).with_hint("save each array under another name"));
        }
        let (mut fields, mut members) = (Vec::new(), Vec::new());
        for (name, mut member) in found.arrays {
            let header = check(&member).and_then(|()| Header::read(&mut Stream::new(&file, &member, BUFFER_BYTES.0)));
            let opened = header.and_then(|header| Ok((header.entry_bytes(limits.memory)?, header)));
            let (entry_bytes, header) = opened.map_err(|what| place.failure(format_args!("array '{name}': {what}")))?;
            let needed = (entry_bytes as u64).checked_mul(header.entries).and_then(|n| n.checked_add(header.length));
            if needed != Some(member.unpacked) {
                let needed = needed.map_or("more than 2⁶⁴".to_owned(), |needed| needed.to_string());
                let what = format_args!("array '{name}': expected {needed} bytes, found {}", member.unpacked);
                return Err(place.failure(what));
            }
            (member.entry_bytes, member.entries) = (entry_bytes, header.entries);
            member.dtype = header.entry;
            fields.push(field(&name, &member.dtype));
            members.push(member);
        }
        let entries = members.first().map_or(0, |member| member.entries);
        let mut lengths = fields.iter().zip(&members);
        if let Some((other, member)) = lengths.find(|(_, member)| member.entries != entries) {
            let first = fields.first().map_or("", |field| field.name());
            let what = format_args!(
                "array '{first}' has {entries} entries, but '{}' has {}; all must have the same first dimension",
                other.name(),
                member.entries
            );
            return Err(place.failure(what).with_hint("save the arrays of each length in a file of their own"));
        }
        Ok(Self { place, file, schema: Arc::new(Schema::new(fields)), members, entries, memory: limits.memory })
    }
}

/// What the directory of an archive lists.
struct Listed {
    arrays: Vec<(String, Member)>,
    /// The name of several arrays.
    repeated: Option<String>,
}

/// The arrays in the directory of an archive.
fn list(place: &Place) -> Result<Listed, String> {
    let file = place.rewound().map_err(|failure| failure.message.unwrap_or_default())?;
    let mut archive = ZipArchive::new(BufReader::new(file)).map_err(|error| error.to_string())?;
    let repeated = if archive.has_duplicate_names() { repeated(place)? } else { None };
    let mut arrays = Vec::new();
    for number in 0..archive.len() {
        let entry = archive.by_index_raw(number).map_err(|error| error.to_string())?;
        let name = entry.name().map_err(|error| error.to_string())?.into_owned();
        let Some(name) = name.strip_suffix(EXTENSION) else { continue };
        let start = entry.data_start().ok_or("a member has no place")?;
        let end = start.checked_add(entry.compressed_size()).filter(|end| *end <= place.bytes);
        let end = end.ok_or_else(|| format!("array '{name}' ends after the file"))?;
        let is_deflated = match entry.compression() {
            CompressionMethod::Stored => false,
            CompressionMethod::DEFLATE => true,
            other => return Err(format!("array '{name}' is compressed by {other}; use numpy.savez_compressed")),
        };
        if entry.encrypted() {
            return Err(format!("array '{name}' is encrypted"));
        }
        let member = Member {
            bytes: start..end,
            is_deflated,
            unpacked: entry.size(),
            checksum: entry.crc32(),
            dtype: Dtype::Bool,
            entry_bytes: 1,
            entries: 0,
        };
        arrays.push((name.to_owned(), member));
    }
    match arrays.is_empty() {
        true => Err("it has no arrays".to_owned()),
        false => Ok(Listed { arrays, repeated }),
    }
}

/// The name of several arrays. Of these, the type `ZipArchive` has only the last one.
fn repeated(place: &Place) -> Result<Option<String>, String> {
    let file = place.rewound().map_err(|failure| failure.message.unwrap_or_default())?;
    let mut archive =
        ZipIterable::try_new(BufReader::new(file), Config::default()).map_err(|error| error.to_string())?;
    let mut known = HashSet::new();
    for entry in archive.files().map_err(|error| error.to_string())? {
        let entry = entry.map_err(|error| error.to_string())?;
        let name = entry.name().map_err(|error| error.to_string())?.into_owned();
        if let Some(array) = name.strip_suffix(EXTENSION).filter(|_| !known.insert(name.clone())) {
            return Ok(Some(array.to_owned()));
        }
    }
    Ok(None)
}

/// Refuses sizes that no member has.
fn check(member: &Member) -> Result<(), String> {
    let (packed, unpacked) = (member.bytes.end - member.bytes.start, member.unpacked);
    let most = if member.is_deflated { packed.saturating_mul(MAX_DEFLATED) } else { packed };
    match unpacked > most {
        true => Err(format!("{packed} bytes cannot be {unpacked} bytes when they are decompressed")),
        false => Ok(()),
    }
}

impl ForeignFile for NpzFile {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn entries(&self) -> Option<u64> {
        Some(self.entries)
    }

    fn is_complete(&self, column: usize) -> bool {
        self.members.get(column).is_some_and(|member| !member.dtype.has_missing())
    }

    fn batches(&self, columns: &[usize], range: Range<u64>) -> Result<Batches<'_>, Failure> {
        let schema = Arc::new(self.schema.project(columns).map_err(|error| self.place.failure(error))?);
        let mut streams = Vec::with_capacity(columns.len());
        let buffer_bytes = self.buffer_bytes(columns)?;
        for member in columns.iter().filter_map(|&column| self.members.get(column)) {
            let mut stream = Stream::new(&self.file, member, buffer_bytes);
            Header::read(&mut stream).map_err(|what| self.place.failure(what))?;
            streams.push((stream, member));
        }
        let sum = streams.iter().map(|(_, member)| member.entry_bytes as u64).fold(0, u64::saturating_add);
        let most = batch_entries(sum, PLAIN_BATCH_ENTRIES);
        let (first, end) = (range.start, range.end);
        let mut bytes = Vec::new();
        // What precedes the range is decompressed only.
        for (stream, member) in &mut streams {
            let skipped = first * member.entry_bytes as u64;
            let passed = io::copy(&mut stream.take(skipped), &mut io::sink());
            if !matches!(passed, Ok(passed) if passed == skipped) {
                return Err(self.place.failure("an array is incomplete; copy the file again"));
            }
        }
        let mut next = first;
        let batches = std::iter::from_fn(move || {
            let count = most.min(end.checked_sub(next)?);
            if count == 0 {
                return None;
            }
            let arrays = streams.iter_mut().zip(schema.fields()).map(|((stream, member), field)| {
                let failed = |what: &dyn std::fmt::Display| {
                    let what = format_args!("array '{}': {what}; copy the file again", field.name());
                    self.place.failure(what)
                };
                let read = read(stream, member, count as usize, &mut bytes).map_err(|what| failed(&what))?;
                let is_last = next + count == self.entries;
                // Bytes after the last entry have a checksum, too.
                if is_last {
                    io::copy(stream, &mut io::sink()).map_err(|error| failed(&error))?;
                }
                Ok(read)
            });
            let arrays = arrays.collect::<Result<Vec<_>, Failure>>();
            let batch = arrays.and_then(|arrays| {
                RecordBatch::try_new(schema.clone(), arrays).map_err(|error| self.place.failure(error))
            });
            next = if batch.is_ok() { next + count } else { end };
            Some(batch)
        });
        Ok(Box::new(batches))
    }
}

impl NpzFile {
    /// Size of the buffer for each of some members that are read side by side.
    fn buffer_bytes(&self, columns: &[usize]) -> Result<u64, Failure> {
        let members = columns.iter().filter_map(|&column| self.members.get(column));
        let (count, deflated) = (columns.len() as u64, members.filter(|member| member.is_deflated).count() as u64);
        let buffer_bytes = (BATCH_BYTES / count.max(1)).clamp(BUFFER_BYTES.0, BUFFER_BYTES.1);
        let needed = count.saturating_mul(buffer_bytes).saturating_add(deflated.saturating_mul(DECODER_BYTES));
        if needed > self.memory.max(BATCH_BYTES) {
            let what = format_args!(
                "reading {count} arrays side by side takes {needed} bytes of memory, more than the limit of {}",
                self.memory
            );
            let hint = "--memory-budget SIZE allows more, for example 4GiB; --fields FIELDS chooses some of them";
            return Err(self.place.failure(what).with_hint(hint));
        }
        Ok(buffer_bytes)
    }
}

/// The next entries of a member.
fn read(stream: &mut Stream, member: &Member, count: usize, bytes: &mut Vec<u8>) -> Result<ArrayRef, String> {
    bytes.resize(member.entry_bytes.checked_mul(count).ok_or("its entries are too large")?, 0);
    stream.read_exact(bytes).map_err(|error| error.to_string())?;
    values(&member.dtype, bytes, &Places::of_entries(count, member.entry_bytes))
}
