//! Objects that are taken out of a file, and those that get another name.

use std::collections::BTreeSet;
use std::ops::Range;

use tupelo_format::compression::Compression;
use tupelo_format::container::Payload;

use super::{FileSink, State};
use crate::{Error, Result};

impl FileSink {
    /// Takes the objects and directories whose records begin at these offsets out of their directories, and frees these
    /// blobs. `paths` are those of all objects that are lost.
    pub fn remove(&self, offsets: &BTreeSet<u64>, paths: &[String], blobs: &[Range<u64>]) -> Result<()> {
        let mut guard = self.lock()?;
        let state = &mut *guard;
        state.sink()?;
        for path in paths {
            state.paths.check_unused(path)?;
        }
        state.layout.remove_at(offsets).map_err(|error| Error::invalid_argument(error.to_string()))?;
        state.change()?;
        blobs.iter().for_each(|blob| state.layout.release(blob.clone()));
        state.removed.extend(offsets);
        state.paths.remove(paths);
        Ok(())
    }

    /// The offsets of the records that were removed.
    pub fn removed(&self) -> Result<BTreeSet<u64>> {
        Ok(self.lock()?.removed.clone())
    }

    /// Whether there is an object or a directory at a path, and whether it is a directory.
    pub fn has(&self, path: &str) -> Result<(bool, bool)> {
        let state = self.lock()?;
        Ok((state.layout.has(path), state.layout.has_directory(path)))
    }

    /// Lists an object under a path: its bytes, whose references count from the start of a key of `key_bytes`.
    pub fn put_behind_key(
        &self,
        path: &str,
        names: [&str; 2],
        (bytes, key_bytes): (&[u8], u16),
        compression: Compression,
    ) -> Result<()> {
        let payload = Payload::compressed(bytes, compression)?.behind_key(key_bytes);
        self.lock()?.list(path, names, payload)
    }
}

impl State {
    /// As [`State::put_tail`], for the end of the file. What was removed is listed as free by a second state: while the
    /// first one is made, a directory may still lead to it.
    pub(super) fn put_last_tail(&mut self) -> Result<()> {
        self.put_tail()?;
        if self.removed.is_empty() {
            return Ok(());
        }
        self.sink()?.checkpoint()?;
        self.is_changed = true;
        self.put_tail()
    }
}
