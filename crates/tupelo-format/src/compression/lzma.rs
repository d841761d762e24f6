//! `XZ` blocks: an .xz stream of LZMA2, by liblzma.

use liblzma::stream::{Action, Check, Error as LzmaError, Filters, LzmaOptions, Status, Stream};

use crate::{Error, Result};

/// Memory limit of the decoder in bytes, slightly above what the highest preset needs.
const MAX_DECODER_BYTES: u64 = 68 << 20;
/// Bytes decompressed between two calls of `go_on`, about 40 milliseconds of work.
const PIECE_BYTES: usize = 1 << 20;
/// The smallest dictionary that liblzma accepts (`LZMA_DICT_SIZE_MIN`).
const MIN_DICTIONARY_BYTES: u32 = 4096;

/// Calls `go_on` before each piece, because a block can take half a second.
pub(super) fn decompress<E: From<Error>>(
    payload: &[u8],
    out: &mut [u8],
    mut go_on: impl FnMut() -> Result<(), E>,
) -> Result<(), E> {
    let mut stream = Stream::new_stream_decoder(MAX_DECODER_BYTES, 0).map_err(refused)?;
    let (mut status, mut filled) = (Status::Ok, 0);
    for piece in out.chunks_mut(PIECE_BYTES) {
        go_on()?;
        let rest = usize::try_from(stream.total_in()).ok().and_then(|at| payload.get(at..)).unwrap_or_default();
        filled += piece.len() as u64;
        status = stream.process(rest, piece, Action::Finish).map_err(refused)?;
        if status != Status::Ok || stream.total_out() != filled {
            break;
        }
    }
    Ok(check(&stream, status, payload, out)?)
}

/// A block has what its header promises, and nothing else.
fn check(stream: &Stream, status: Status, payload: &[u8], out: &[u8]) -> Result<()> {
    if status != Status::StreamEnd {
        return Err(Error::corrupt(format!("lzma: stream does not end within {} bytes", out.len())));
    }
    if stream.total_out() != out.len() as u64 || stream.total_in() != payload.len() as u64 {
        return Err(Error::corrupt(format!(
            "lzma: block has {} bytes from {}, expected {} from {}",
            stream.total_out(),
            stream.total_in(),
            out.len(),
            payload.len()
        )));
    }
    Ok(())
}

pub(super) fn compress(level: u8, data: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let failed = |error: LzmaError| Error::limit(format!("lzma: {error}"));
    // As ROOT: a page never needs the megabytes of dictionary that the presets take, and clearing them costs time.
    let dictionary_bytes = u32::try_from(data.len() / 4).unwrap_or(u32::MAX).max(MIN_DICTIONARY_BYTES);
    let mut options = LzmaOptions::new_preset(u32::from(level)).map_err(failed)?;
    options.dict_size(dictionary_bytes.min(preset_dictionary_bytes(level)));
    let mut stream = Stream::new_stream_encoder(Filters::new().lzma2(&options), Check::Crc32).map_err(failed)?;
    // A stream that does not end within the size of its input is of no use: the caller stores the data raw.
    super::append(out, data.len(), |out| match stream.process(data, out, Action::Finish).map_err(failed)? {
        Status::StreamEnd => Ok(usize::try_from(stream.total_out()).unwrap_or(out.len())),
        _ => Ok(out.len()),
    })
}

/// What liblzma's presets take (xz(1)). From the third on it is at least a quarter of the largest block.
fn preset_dictionary_bytes(level: u8) -> u32 {
    match level {
        ..=1 => 1 << 20,
        2 => 2 << 20,
        _ => 4 << 20,
    }
}

fn refused(error: LzmaError) -> Error {
    match error {
        LzmaError::Mem => Error::limit("lzma: out of memory"),
        LzmaError::MemLimit => {
            Error::limit(format!("lzma: stream needs more than {MAX_DECODER_BYTES} bytes of memory"))
        }
        LzmaError::Options | LzmaError::UnsupportedCheck => Error::unsupported(format!("lzma: {error}")),
        _ => Error::corrupt(format!("lzma: {error}")),
    }
}
