//! Objects with the places of their members, for writing them again with some of these changed.

use std::ops::Range;

use super::reader::Reader;
use super::value::{TracedObject, Value};
use crate::Result;
use crate::streamer::{Edits, Marks, StreamerInfos};
use crate::wire::Memory;

/// An object that can be written again with other members.
#[derive(Debug)]
pub struct Traced {
    /// The object.
    pub value: Value,
    /// All objects in it that have layouts, itself and bases included, in the order in which they begin.
    pub objects: Vec<TracedObject>,
    bytes: Vec<u8>,
    key_bytes: u16,
    marks: Marks,
    /// What could not be read.
    opaque: Vec<Range<usize>>,
}

impl Traced {
    /// Reads the payload of a file's record: [`read_behind_key`](super::read_behind_key).
    ///
    /// # Errors
    /// As there.
    pub fn read(
        bytes: Vec<u8>,
        key_bytes: u16,
        class_name: &str,
        infos: &StreamerInfos,
        memory: &Memory,
    ) -> Result<Self> {
        let mut reader = Reader::new(&bytes, key_bytes.into(), infos, memory);
        reader.stream.marks = Some(Marks::default());
        reader.traced = Some(Vec::new());
        let value = reader.whole(class_name)?;
        let (marks, objects) = (reader.stream.marks.take().unwrap_or_default(), reader.traced.take());
        let opaque = std::mem::take(&mut reader.opaque);
        Ok(Self { value, objects: objects.unwrap_or_default(), bytes, key_bytes, marks, opaque })
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Where the object begins that a reference at this place refers to.
    pub fn target(&self, reference: usize) -> Option<usize> {
        self.marks.target(reference, self.key_bytes)
    }

    /// The object as it is, to replace parts of its bytes.
    pub fn edits(&self) -> Edits<'_> {
        Edits::new(&self.bytes, self.key_bytes, &self.marks).with_fixed(&self.opaque)
    }
}
