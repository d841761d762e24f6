//! Objects with the places of their members, for writing them again with some of these changed.

use std::ops::Range;

use super::reader::Reader;
use super::value::{TracedMember, TracedObject, Value};
use crate::Result;
use crate::streamer::{Edits, Marks, StreamerInfos};
use crate::wire::{Buffer, Memory};

/// Most levels of bases that are looked through for the name of an object.
const MAX_BASES: usize = 16;

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

    /// The bytes of the object behind a key of `key_bytes`, with this name if it is a `TNamed`; and whether it is one.
    ///
    /// # Errors
    /// Those of [`Edits::finish`].
    pub fn with_name(&self, name: &str, key_bytes: u16) -> Result<(Vec<u8>, bool)> {
        let mut edits = self.edits();
        let class_name = self.value.as_object().map_or("", |object| object.class_name());
        // A list may begin with an object that has a name.
        let root = self.objects.first().filter(|object| object.class_name == class_name);
        let own = root.and_then(|root| self.name_of(root, MAX_BASES));
        if let Some(own) = own {
            let mut text = Buffer::new();
            text.string_be(name);
            edits.replace(own.bytes.clone(), text.into_vec());
        }
        Ok((edits.finish(key_bytes)?, own.is_some()))
    }

    /// The name of an object, which it has from a base; up to this number of `levels` of bases are looked through.
    fn name_of<'t>(&'t self, object: &'t TracedObject, levels: usize) -> Option<&'t TracedMember> {
        if object.class_name == "TNamed" {
            return object.member("fName");
        }
        let levels = levels.checked_sub(1)?;
        object.members.iter().find_map(|base| {
            let starts_in =
                |it: &TracedObject| it.members.first().is_some_and(|it| base.bytes.contains(&it.bytes.start));
            let part = self.objects.iter().find(|it| it.class_name == base.name && starts_in(it))?;
            self.name_of(part, levels)
        })
    }

    /// The object as it is, to replace parts of its bytes.
    pub fn edits(&self) -> Edits<'_> {
        Edits::new(&self.bytes, self.key_bytes, &self.marks).with_fixed(&self.opaque)
    }
}
