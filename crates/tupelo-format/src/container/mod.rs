//! The ROOT file around the ntuples: header, keys, directories, free list, streamer info, anchor.
//!
//! Nothing here performs I/O. Reading functions get [`FetchedRanges`], the bytes fetched so far, and either finish or
//! return [`Interrupt::Missing`] with the missing ranges; the caller fetches these and calls again. Writing
//! goes through [`FileLayout`], which knows what a file holds and says which bytes to append and which to overwrite.
//!
//! Every integer of the file format is big-endian. The facts come from ROOT's `io/doc/TFile`, `TFile.cxx`, `TKey.cxx`
//! and `tree/ntuple/src/RMiniFile.cxx`; the anchor from the format specification, "Embedding RNTuple in a ROOT file".

mod anchor;
mod chunks;
mod deviation;
mod directory;
mod fetched;
mod free;
mod header;
mod key;
mod layout;
mod recover;
mod streamer_info;
mod walk;

#[cfg(test)]
pub(crate) mod tests;

pub use anchor::{ANCHOR_BYTES, Anchor, AnchorLinks};
pub use chunks::{Chunks, payload};
pub use deviation::{Deviation, Deviations, Rule};
pub use directory::{
    Directory, Level, MAX_DIRECTORY_DEPTH, MAX_PATH_BYTES, Object, Tree, find_object, find_object_in, list_objects,
};
pub(crate) use fetched::together;
pub use fetched::{Attempt, FetchedRanges, Interrupt};
pub use free::free_bytes;
pub use header::{BEGIN, FileHeader, read_header, read_uuid};
pub use key::{
    BLOB_KEY_BYTES, Key, MAX_BLOB_BYTES, MAX_OBJECT_BYTES, blob_key, object_bytes, read_key, streamed_key,
    streamed_key_bytes, unlisted_key,
};
pub use layout::{FileLayout, Payload, Tail, is_relative};
pub use recover::{
    RecoveredState, find_key, is_listed, is_recoverable, recovered, states, without_damaged_streamer_info,
};
pub use streamer_info::streamer_infos;
pub use walk::{Record, RecordKind, Walk, walk_keys};

/// Offsets above this need the 64-bit layouts (`TFile::kStartBigFile`).
pub const START_BIG_FILE: u64 = 2_000_000_000;

/// Replaces bytes from `at` on; does nothing where they do not fit.
fn overwrite(bytes: &mut [u8], at: usize, with: &[u8]) {
    if let Some(place) = bytes.get_mut(at..).and_then(|rest| rest.get_mut(..with.len())) {
        place.copy_from_slice(with);
    }
}
