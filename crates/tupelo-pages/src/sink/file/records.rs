//! Records with keys of their own: the baskets of a tree, and the tree itself.

use std::sync::Arc;

use tupelo_format::compression::Compression;
use tupelo_format::container::{self, Payload, streamed_key_bytes};

use super::super::name_of;
use super::FileSink;
use crate::{Error, Result};

impl FileSink {
    /// The same file for one object. Its records are tracked, to be freed if it is abandoned.
    pub fn for_object(&self) -> Self {
        Self { own: Some(Arc::default()), ..self.clone() }
    }

    /// Begins an object of a class.
    pub fn begin_object(&self, path: &str, class_name: &str, title: &str) -> Result<()> {
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

    /// Makes a directory and those above it, as far as they are missing; without a title its name is the title.
    pub fn make_directory(&self, path: &str, title: Option<&str>) -> Result<()> {
        if path.split('/').any(|part| container::is_relative(part) || part.contains(';')) {
            return Err(Error::invalid_argument(format!("'{path}' is not a valid path of a directory")));
        }
        let mut state = self.lock()?;
        state.sink()?;
        // What is in it may be open, it itself and what is above it may not.
        state.paths.check(&format!("{path}/"), None)?;
        let made = state.layout.add_directory(path, title);
        if made.map_err(|error| Error::invalid_argument(error.to_string()))? {
            state.change()?;
        }
        Ok(())
    }

    /// The names and titles of the objects of a class in the top directory.
    pub fn titles(&self, class_name: &str) -> Result<Vec<(String, String)>> {
        Ok(self.lock()?.layout.titles(class_name))
    }

    /// Appends a record: `head` makes its key for the place and the time of writing. Returns the place.
    pub fn put_record(
        &self,
        head: impl FnOnce(u64, u32) -> tupelo_format::Result<Vec<u8>>,
        payload: &[u8],
    ) -> Result<u64> {
        let mut head = Some(head);
        let head = |_, at, datime| head.take().map_or(Ok(Vec::new()), |head| head(at, datime));
        Ok(self.put_records(&[payload], head)?.first().copied().unwrap_or_default())
    }

    /// Appends records by one call: `head` makes the key of the record of a number for the place and the time of writing.
    /// Returns the places.
    pub fn put_records(
        &self,
        payloads: &[&[u8]],
        mut head: impl FnMut(usize, u64, u32) -> tupelo_format::Result<Vec<u8>>,
    ) -> Result<Vec<u64>> {
        let mut state = self.lock()?;
        let datime = state.datime;
        let sink = state.change()?;
        let start = sink.position();
        let (mut at, mut places, mut heads) = (start, Vec::new(), Vec::new());
        for (number, payload) in payloads.iter().enumerate() {
            let head = head(number, at, datime)?;
            places.push(at);
            at += (head.len() + payload.len()) as u64;
            heads.push(head);
        }
        let pieces: Vec<&[u8]> = heads.iter().zip(payloads).flat_map(|(head, payload)| [&head[..], payload]).collect();
        sink.append_vectored(&pieces)?;
        self.note(start..sink.position());
        Ok(places)
    }

    /// Appends records that have their keys: `place` completes these for the place. Returns the place.
    pub fn put_placed(&self, records: &mut [u8], place: impl FnOnce(u64, &mut [u8])) -> Result<u64> {
        let mut state = self.lock()?;
        let sink = state.change()?;
        let start = sink.position();
        place(start, records);
        sink.append(records)?;
        self.note(start..sink.position());
        Ok(start)
    }

    /// Writes an object of another file under the path that it has there: its bytes, behind a key of the same length. It
    /// becomes the newest cycle of its path.
    pub fn copy_object(&self, object: &container::Object, bytes: &[u8], compression: Compression) -> Result<()> {
        let (path, key) = (&object.path, &object.key);
        let payload = Payload::compressed(bytes, compression)?.behind_key(key.key_bytes);
        let mut state = self.lock()?;
        state.list(path, [&key.class_name, &key.title], payload)?;
        let at = state.sink()?.position();
        // Now, since its key may have no room for a place behind the pages.
        let placed = state.layout.place_objects(at).map_err(|error| state.poison(error.into()))?;
        Ok(state.sink()?.append(&placed)?)
    }

    /// Lists a streamed object under the path with which it was begun: `stream` makes its bytes behind a key of so many
    /// bytes.
    pub fn publish_object(
        &self,
        path: &str,
        [class_name, title]: [&str; 2],
        stream: impl FnOnce(u16) -> tupelo_format::Result<Vec<u8>>,
        compression: Compression,
    ) -> Result<()> {
        let key_bytes = streamed_key_bytes([class_name, name_of(path), title])?;
        let payload = Payload::compressed(&stream(key_bytes)?, compression)?.behind_key(key_bytes);
        let mut guard = self.lock()?;
        let state = &mut *guard;
        state.change()?;
        let listed = state.layout.add(path, class_name, title, payload);
        match (listed, state.paths.get_mut(path)) {
            (Ok(cycle), Some(open)) => {
                open.cycle = Some(cycle);
                Ok(())
            }
            (Ok(_), None) => Err(Error::invalid_argument(format!("'{path}' is not open for writing"))),
            // The directories are as they were.
            (Err(error), _) => Err(error.into()),
        }
    }
}
