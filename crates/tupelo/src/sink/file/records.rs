//! Records with keys of their own: the baskets of a tree, and the tree itself.

use std::sync::Arc;

use tupelo_format::compression::Compression;
use tupelo_format::container::{Payload, streamed_key_bytes};

use super::super::name_of;
use super::FileSink;
use crate::{Error, Result};

impl FileSink {
    /// The same file for one object. Its records are tracked, to be freed if it is abandoned.
    pub(crate) fn for_object(&self) -> Self {
        Self { own: Some(Arc::default()), ..self.clone() }
    }

    /// Begins an object of a class.
    pub(crate) fn begin_object(&self, path: &str, class_name: &str, title: &str) -> Result<()> {
        let mut state = self.lock()?;
        state.sink()?;
        if let Some(taken) = state.layout.conflict(path, class_name) {
            return Err(Error::invalid_argument(taken + "; choose another name"));
        }
        state.paths.check(path, None)?;
        let fits = state.layout.check_add(path, class_name, title, 0);
        fits.map_err(|error| Error::invalid_argument(error.to_string()))?;
        state.paths.begin(path, None);
        Ok(())
    }

    /// Appends a record: `head` makes its key for the place and the time of writing. Returns the place.
    pub(crate) fn put_record(
        &self,
        head: impl FnOnce(u64, u32) -> tupelo_format::Result<Vec<u8>>,
        payload: &[u8],
    ) -> Result<u64> {
        let mut state = self.lock()?;
        let datime = state.datime;
        let sink = state.change()?;
        let at = sink.position();
        let head = head(at, datime)?;
        sink.append_vectored(&[&head, payload])?;
        self.note(at..sink.position());
        Ok(at)
    }

    /// Lists a streamed object under the path with which it was begun: `stream` makes its bytes behind a key of so many
    /// bytes.
    pub(crate) fn publish_object(
        &self,
        path: &str,
        [class_name, title]: [&str; 2],
        stream: impl FnOnce(u16) -> Vec<u8>,
        compression: Compression,
    ) -> Result<()> {
        let object = stream(streamed_key_bytes([class_name, name_of(path), title])?);
        let payload = Payload::compressed(&object, compression)?.streamed();
        let mut guard = self.lock()?;
        let state = &mut *guard;
        state.change()?;
        let listed = state.layout.add(path, class_name, title, payload);
        match (listed, state.paths.get_mut(path)) {
            (Ok(cycle), Some(open)) => {
                open.cycle = Some(cycle);
                Ok(())
            }
            (Ok(_), None) => Err(Error::invalid_argument(format!("'{path}' is not being written"))),
            // The directories are as they were.
            (Err(error), _) => Err(error.into()),
        }
    }
}
