//! The record with the layouts of the classes in a file.

use super::key::Key;
use super::{Attempt, FetchedRanges, object_bytes, read_header, read_key};
use crate::streamer::StreamerInfos;

/// The file's streamer info; empty where it has none.
///
/// # Errors
/// Corrupt where the record is damaged, unsupported where it is older than ROOT 3.
pub fn streamer_infos(fetched: &FetchedRanges) -> Attempt<StreamerInfos> {
    let header = read_header(fetched)?;
    if header.seek_info == 0 || header.nbytes_info == 0 {
        return Ok(StreamerInfos::default());
    }
    // No more than the record: an update of the file may take back what is behind it.
    let known = u64::from(header.nbytes_info).min(fetched.size().saturating_sub(header.seek_info));
    let mut key = match Key::read(&fetched.get(header.seek_info, known)?, header.seek_info) {
        Ok(key) => key,
        Err(_) => read_key(fetched, header.seek_info)?,
    };
    key.seek_key = header.seek_info;
    let list = object_bytes(fetched, &key)?;
    let infos = StreamerInfos::read(&list, key.key_bytes);
    Ok(infos.map_err(|error| error.within("streamer info"))?)
}
