//! Arrow IPC: files (Feather V2) and streams.
//!
//! The messages are found first, with their sizes, so that only their own memory is allocated, and only as much as the
//! file has.

use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_buffer::{Buffer, MutableBuffer};
use arrow_ipc::convert::fb_to_schema;
use arrow_ipc::reader::{FileDecoder, read_footer_length};
use arrow_ipc::{Block, Message, MessageHeader, MetadataVersion, root_as_footer, root_as_message};
use arrow_schema::SchemaRef;

use super::guard::guarded;
use super::pieces::{Piece, expanded_bytes_of, in_pieces};
use super::{BATCH_BYTES, Batches, ForeignFile, Limits, Place, in_range};
use crate::failure::Failure;

/// The first and the last bytes of a file, but not of a stream.
const MAGIC: &[u8] = b"ARROW1";
/// The first bytes of the format before it.
const FEATHER_V1: &[u8] = b"FEA1";
/// Bytes after the footer: its length and the magic.
const TRAILER_BYTES: u64 = 10;
/// Precedes the length of a message, except in files from before Arrow 0.15.
const CONTINUATION: [u8; 4] = [0xff; 4];
/// Maximum number of messages.
const MAX_MESSAGES: usize = 1 << 22;
/// Maximum length of the metadata of a message.
const MAX_METADATA_BYTES: u64 = 256 << 20;
/// Maximum number of values for each byte of a file: bits without compression are eight.
const VALUES_PER_BYTE: u64 = 64;
/// Values that a file may have beyond that: in runs, or of types without bytes.
const SPARE_VALUES: u64 = 1 << 30;
/// Maximum number of bytes that values take when each is stored by itself, for each byte of a file.
const EXPANSION: u64 = 1024;
/// Bytes that they may take beyond that.
const SPARE_BYTES: u64 = 1 << 33;
/// What to do about a file that exceeds these.
const EXPAND_HINT: &str = "write plain arrays: in Python, cast dictionaries to their values, and decode runs with \
                           pyarrow.compute.run_end_decode()";

/// A message: a batch, or values of a dictionary.
#[derive(Debug, Clone, Copy)]
struct Part {
    block: Block,
    /// Entries of a batch.
    entries: Option<u64>,
    /// Values at all levels.
    values: u64,
}

impl Part {
    fn new(block: Block, message: Message<'_>) -> Self {
        let is_batch = message.header_type() == MessageHeader::RecordBatch;
        let batch = message.header_as_record_batch().filter(|_| is_batch);
        let count = |length: i64| u64::try_from(length).unwrap_or(0);
        let entries = batch.map(|batch| count(batch.length()));
        let nodes = contents(message).and_then(|batch| batch.nodes());
        let values = nodes.into_iter().flatten().map(|node| count(node.length())).fold(0, u64::saturating_add);
        Self { block, entries, values: values.max(entries.unwrap_or(0)) }
    }
}

/// The arrays of a batch or a dictionary.
fn contents(message: Message<'_>) -> Option<arrow_ipc::RecordBatch<'_>> {
    let of_dictionary = || message.header_as_dictionary_batch().and_then(|dictionary| dictionary.data());
    message.header_as_record_batch().or_else(of_dictionary)
}

/// An Arrow file or stream.
pub(super) struct ArrowFile {
    place: Place,
    schema: SchemaRef,
    version: MetadataVersion,
    parts: Vec<Part>,
    entries: u64,
    memory: u64,
}

impl ArrowFile {
    pub(super) fn open(place: Place, limits: Limits) -> Result<Self, Failure> {
        let mut magic = [0; 6];
        read_at(&place, 0, &mut magic).map_err(|_| place.failure("is neither an Arrow file nor a stream"))?;
        if magic.starts_with(FEATHER_V1) {
            let refused = place.failure("is in the format Feather V1, which is not supported");
            return Err(refused.with_hint("pyarrow.feather.write_feather() writes version 2"));
        }
        let memory = limits.memory;
        match magic == *MAGIC {
            true => Self::of_file(place, memory),
            false => Self::of_stream(place, memory),
        }
    }

    fn of_file(place: Place, memory: u64) -> Result<Self, Failure> {
        let cut_off = || place.failure("the Arrow file is incomplete: it has no footer").with_hint("copy it again");
        let mut trailer = [0; TRAILER_BYTES as usize];
        let end = place.bytes.checked_sub(TRAILER_BYTES).ok_or_else(cut_off)?;
        read_at(&place, end, &mut trailer)?;
        let length = read_footer_length(trailer).map_err(|_| cut_off())? as u64;
        let start = end.checked_sub(length).filter(|_| length <= MAX_METADATA_BYTES);
        let start = start.ok_or_else(|| damaged(&place, "the length of its footer is wrong"))?;
        let mut bytes = vec![0; length as usize];
        read_at(&place, start, &mut bytes)?;
        let footer = root_as_footer(&bytes).map_err(|error| damaged(&place, error))?;
        let Some(schema) = footer.schema() else { return Err(damaged(&place, "its footer has no schema")) };
        check_byte_order(&place, schema)?;
        let schema = guarded(|| fb_to_schema(schema)).ok_or_else(|| damaged(&place, "its schema is invalid"))?;
        let blocks = || footer.dictionaries().into_iter().chain(footer.recordBatches()).flatten().copied();
        let mut parts = Vec::new();
        for block in blocks() {
            parts.push(part(&place, block, parts.len())?);
        }
        let (schema, entries) = (Arc::new(schema), sum(&parts));
        Self { schema, version: footer.version(), entries, parts, place, memory }.checked()
    }

    fn of_stream(place: Place, memory: u64) -> Result<Self, Failure> {
        let (mut at, mut schema, mut parts) = (0, None, Vec::new());
        while at < place.bytes {
            let Some((start, length)) = prefix(&place, at)? else { break };
            let bytes = metadata(&place, at + start, length)?;
            let message = root_as_message(&bytes).map_err(|error| damaged(&place, error))?;
            let block = Block::new(
                i64::try_from(at).unwrap_or(i64::MAX),
                i32::try_from(start + length).unwrap_or(i32::MAX),
                message.bodyLength(),
            );
            let (end, part) = (end_of(&place, &block)?, Part::new(block, message));
            match (&schema, message.header_as_schema()) {
                (None, Some(found)) => {
                    check_byte_order(&place, found)?;
                    let converted = guarded(|| fb_to_schema(found));
                    let converted = converted.ok_or_else(|| damaged(&place, "its schema is invalid"))?;
                    schema = Some((Arc::new(converted), message.version()));
                }
                (Some(_), None) if parts.len() < MAX_MESSAGES => parts.push(part),
                (Some(_), None) => return Err(damaged(&place, "it has too many messages")),
                _ => return Err(place.failure("is neither an Arrow file nor a stream")),
            }
            at = end;
        }
        let (schema, version) = schema.ok_or_else(|| place.failure("is neither an Arrow file nor a stream"))?;
        Self { schema, version, entries: sum(&parts), parts, place, memory }.checked()
    }

    /// Refuses more values than the file can be expected to have: reading them would take any time.
    fn checked(self) -> Result<Self, Failure> {
        let values = self.parts.iter().map(|part| part.values).fold(0, u64::saturating_add);
        let most = |bytes: u64| bytes.saturating_mul(VALUES_PER_BYTE).saturating_add(SPARE_VALUES);
        if values <= most(self.place.bytes) {
            return Ok(self);
        }
        // Compressed ones may be more.
        let mut bytes = 0u64;
        for part in &self.parts {
            bytes = bytes.saturating_add(self.message(part)?.1);
        }
        if values <= most(bytes) {
            return Ok(self);
        }
        let most = most(bytes);
        let what = format_args!("expected at most {most} values in {bytes} bytes of data, found {values}");
        Err(self.place.failure(what).with_hint(EXPAND_HINT))
    }

    /// The bytes of a message, and their number when they are decompressed.
    fn message(&self, part: &Part) -> Result<(Buffer, u64), Failure> {
        let (start, end) = (part.block.offset().unsigned_abs(), end_of(&self.place, &part.block)?);
        let most = |bytes: u64| {
            let what = format_args!("a batch takes {bytes} bytes, more than the limit of {}", self.memory);
            self.place.failure(what).with_hint("--memory-budget SIZE allows more, for example 4GiB")
        };
        if end - start > self.memory {
            return Err(most(end - start));
        }
        let mut bytes = MutableBuffer::from_len_zeroed((end - start) as usize);
        read_at(&self.place, start, bytes.as_slice_mut())?;
        let bytes = Buffer::from(bytes);
        let length = part.block.metaDataLength().unsigned_abs() as usize;
        let wrong = || damaged(&self.place, "a batch is invalid");
        let (metadata, body) = bytes.as_slice().split_at_checked(length).ok_or_else(wrong)?;
        let skipped = if metadata.starts_with(&CONTINUATION) { 8 } else { 4 };
        let message = metadata.get(skipped..).ok_or_else(wrong)?;
        let message = root_as_message(message).map_err(|error| damaged(&self.place, error))?;
        match unpacked_bytes(message, body).ok_or_else(wrong)? {
            unpacked if unpacked > self.memory => Err(most(unpacked)),
            unpacked => Ok((bytes, unpacked)),
        }
    }

    /// All batches from a part on.
    fn decoded(&self, columns: Vec<usize>, first: usize) -> impl Iterator<Item = Result<RecordBatch, Failure>> {
        let mut decoder = FileDecoder::new(self.schema.clone(), self.version).with_projection(columns);
        let decode = move |(number, part): (usize, &Part)| -> Option<Result<RecordBatch, Failure>> {
            if part.entries.is_some() && number < first {
                return None;
            }
            let bytes = match self.message(part) {
                Ok((bytes, _)) => bytes,
                Err(failure) => return Some(Err(failure)),
            };
            let decoded = guarded(|| match part.entries {
                None => decoder.read_dictionary(&part.block, &bytes).map(|()| None),
                Some(_) => decoder.read_record_batch(&part.block, &bytes),
            });
            match decoded {
                None => Some(Err(damaged(&self.place, "a batch cannot be decoded"))),
                Some(Err(error)) => Some(Err(self.place.failure(error))),
                Some(Ok(batch)) => batch.map(Ok),
            }
        };
        self.parts.iter().enumerate().filter_map(decode)
    }
}

/// The number of entries in all parts.
fn sum(parts: &[Part]) -> u64 {
    parts.iter().filter_map(|part| part.entries).fold(0, u64::saturating_add)
}

fn damaged(place: &Place, what: impl std::fmt::Display) -> Failure {
    place.failure(format_args!("the Arrow file is damaged: {what}")).with_hint("copy the file again")
}

fn check_byte_order(place: &Place, schema: arrow_ipc::Schema<'_>) -> Result<(), Failure> {
    match schema.endianness().equals_to_target_endianness() {
        true => Ok(()),
        false => Err(place.failure("its numbers are big-endian, which is not supported")),
    }
}

/// Reads bytes that the file must have.
fn read_at(place: &Place, at: u64, bytes: &mut [u8]) -> Result<(), Failure> {
    let mut file = place.handle()?;
    let read = file.seek(SeekFrom::Start(at)).and_then(|_| file.read_exact(bytes));
    read.map_err(|error| place.failure(format_args!("cannot be read at byte {at}: {error}")))
}

/// Length of what precedes the metadata of a message, and of the metadata; `None` at the end of a stream.
fn prefix(place: &Place, at: u64) -> Result<Option<(u64, u64)>, Failure> {
    let mut word = [0; 4];
    read_at(place, at, &mut word)?;
    let start = match word == CONTINUATION {
        true => {
            read_at(place, at + 4, &mut word)?;
            8
        }
        false => 4,
    };
    let length = u64::from(u32::from_le_bytes(word));
    Ok((length > 0).then_some((start, length)))
}

/// The metadata of a message.
fn metadata(place: &Place, at: u64, length: u64) -> Result<Vec<u8>, Failure> {
    let left = place.bytes.saturating_sub(at);
    if length > left || length > MAX_METADATA_BYTES {
        let what = format!("a message at byte {at} has {length} bytes of metadata, but {left} bytes are left");
        return Err(damaged(place, what));
    }
    let mut bytes = vec![0; length as usize];
    read_at(place, at, &mut bytes)?;
    Ok(bytes)
}

/// The end of a message, which the file must have.
fn end_of(place: &Place, block: &Block) -> Result<u64, Failure> {
    let parts = [block.offset(), i64::from(block.metaDataLength()), block.bodyLength()];
    let end = parts.into_iter().try_fold(0u64, |end, part| end.checked_add(u64::try_from(part).ok()?));
    match end {
        Some(end) if end <= place.bytes => Ok(end),
        Some(end) => {
            let what = format!("a batch ends at byte {end}, but the file at byte {}", place.bytes);
            Err(damaged(place, what))
        }
        None => Err(damaged(place, "the size of a batch is negative")),
    }
}

/// A message of a file.
fn part(place: &Place, block: Block, before: usize) -> Result<Part, Failure> {
    end_of(place, &block)?;
    if before >= MAX_MESSAGES {
        return Err(damaged(place, "it has too many messages"));
    }
    let at = block.offset().unsigned_abs();
    let Some((start, length)) = prefix(place, at)? else { return Err(damaged(place, "a batch is empty")) };
    let bytes = metadata(place, at + start, length)?;
    let message = root_as_message(&bytes).map_err(|error| damaged(place, error))?;
    Ok(Part::new(block, message))
}

/// Bytes of the buffers of a message when they are decompressed; `None` if that is invalid.
fn unpacked_bytes(message: Message<'_>, body: &[u8]) -> Option<u64> {
    let Some(batch) = contents(message).filter(|batch| batch.compression().is_some()) else {
        return Some(body.len() as u64);
    };
    let mut sum = 0u64;
    for buffer in batch.buffers().into_iter().flatten() {
        let (start, length) = (usize::try_from(buffer.offset()).ok()?, usize::try_from(buffer.length()).ok()?);
        let bytes = body.get(start..start.checked_add(length)?)?;
        let Some(unpacked) = bytes.first_chunk().map(|word| i64::from_le_bytes(*word)) else { continue };
        // -1 means that the buffer is not compressed.
        let unpacked = if unpacked == -1 { length as u64 } else { u64::try_from(unpacked).ok()? };
        sum = sum.checked_add(unpacked)?;
    }
    Some(sum)
}

impl ForeignFile for ArrowFile {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn entries(&self) -> Option<u64> {
        Some(self.entries)
    }

    fn batches(&self, columns: &[usize], range: Range<u64>) -> Result<Batches<'_>, Failure> {
        // Whole batches before the range are not read.
        let (mut before, mut first) = (0u64, 0);
        for (number, part) in self.parts.iter().enumerate() {
            let entries = part.entries.unwrap_or(0);
            if before.saturating_add(entries) > range.start {
                break;
            }
            before += entries;
            first = number + 1;
        }
        let mut expanded = 0u64;
        let pieces = move |batch: Result<RecordBatch, Failure>| -> Batches<'_> {
            let batch = batch.and_then(|batch| {
                expanded = expanded.saturating_add(expanded_bytes_of(&batch));
                self.check_expanded(expanded)?;
                Ok(batch)
            });
            match batch {
                Ok(batch) => Box::new(in_pieces(batch).map(|piece| self.check_piece(piece))),
                Err(failure) => Box::new(std::iter::once(Err(failure))),
            }
        };
        let mut is_over = false;
        let until_failure = move |batch: &Result<RecordBatch, Failure>| {
            let is_wanted = !is_over;
            is_over = batch.is_err();
            is_wanted
        };
        let batches = self.decoded(columns.to_vec(), first).flat_map(pieces).take_while(until_failure);
        Ok(in_range(batches, before, range))
    }
}

impl ArrowFile {
    /// Refuses values that take much more bytes in an ntuple than in the file.
    fn check_expanded(&self, expanded: u64) -> Result<(), Failure> {
        let most = self.place.bytes.saturating_mul(EXPANSION).saturating_add(SPARE_BYTES);
        if expanded <= most {
            return Ok(());
        }
        let what = format_args!(
            "expected values of at most {most} bytes in a file of {}, found {expanded} when each is stored by itself",
            self.place.bytes
        );
        Err(self.place.failure(what).with_hint(EXPAND_HINT))
    }

    /// Refuses an entry that takes too much memory.
    fn check_piece(&self, Piece { batch, bytes }: Piece) -> Result<RecordBatch, Failure> {
        if bytes <= self.memory.max(BATCH_BYTES) {
            return Ok(batch);
        }
        let what = format_args!("an entry takes {bytes} bytes, more than the limit of {}", self.memory);
        Err(self.place.failure(what).with_hint("--memory-budget SIZE allows more, for example 4GiB"))
    }
}
