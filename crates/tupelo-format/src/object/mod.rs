//! Objects that ROOT's streamers wrote, as values: `TH1D`, `TObjArray`, `std::map`, anybody's class.
//!
//! Layouts come from the streamer info that is stored with the bytes ([`StreamerInfos`]). Trees, histograms and graphs
//! are read without it too, by the layouts that their classes had ([`StreamerInfos::known`]). Beyond that, only what
//! ROOT streams by custom code is known here: `TObject`, `TNamed`, `TString`, `TObjString`, `TArray*`, `TObjArray`,
//! `TList` and its heirs, `TDatime`, `std::string` and the containers of the standard library, object by object or
//! member by member. Objects that cannot be read are an error that names the class or, after a pointer, an
//! [`Value::Opaque`] inside the readable object.
//!
//! [`Object::new`] makes an object of values by name, and [`Object::write`] streams it for a record of a file. [`Traced`] is
//! an object whose record can be written again with some members changed and all else as it is.
//!
//! The facts come from ROOT's `TBufferFile.cxx`, `TStreamerInfoReadBuffer.cxx`, `TGenCollectionStreamer.cxx` and the
//! `Streamer` functions of the classes.

mod builtin;
mod classes;
mod cpp;
mod make;
mod members;
mod packing;
mod reader;
mod stl;
#[cfg(test)]
mod tests;
mod traced;
mod value;
mod write;

pub use classes::{array_item, has_no_columns, has_own_format, symmetric_matrix_item};
pub use cpp::{Basic, Type, pair};
pub use packing::Packing;
pub use traced::Traced;
pub use value::{Numbers, Object, Opaque, TracedMember, TracedObject, Value};

use std::sync::Arc;

use crate::streamer::{ClassInfo, Element, Marks, StreamerInfos};
use crate::wire::Memory;
use crate::{Error, Result};

/// Objects nested deeper than this are refused.
pub const MAX_DEPTH: u32 = 64;
/// Maximum memory of an object as a multiple of its streamed size, in addition to [`FREE_BYTES`].
pub const MAX_EXPANSION: usize = 128;
/// Memory in bytes that any object may use, regardless of its streamed size.
pub const FREE_BYTES: usize = 1 << 20;
/// Maximum number of steps for an object beside its bytes, such as the letters of the classes in it, as a multiple of its
/// streamed size, in addition to [`FREE_WORK`].
pub const MAX_WORK: usize = 64;
/// Steps for any object, regardless of its streamed size.
pub const FREE_WORK: usize = 1 << 20;

/// Reads an object that was streamed alone: the bytes of a streamer field.
///
/// # Errors
/// Those of [`read_behind_key`].
pub fn read(bytes: &[u8], class_name: &str, infos: &StreamerInfos, memory: &Memory) -> Result<Value> {
    read_behind_key(bytes, 0, class_name, infos, memory)
}

/// Reads the payload of a file's record, whose references count from its key, of `key_bytes`.
///
/// # Errors
/// Unsupported, with class and reason, for what this version or the streamer info does not know; corrupt where byte
/// counts contradict each other; limit above [`MAX_DEPTH`], [`MAX_EXPANSION`] and [`MAX_WORK`]; memory where the values
/// take more than is left.
pub fn read_behind_key(
    bytes: &[u8],
    key_bytes: u16,
    class_name: &str,
    infos: &StreamerInfos,
    memory: &Memory,
) -> Result<Value> {
    reader::Reader::new(bytes, key_bytes.into(), infos, memory).whole(class_name)
}

/// The position of an object in an entry of a branch, and what is needed to read it.
#[derive(Debug, Clone, Copy)]
pub struct Entry<'a> {
    /// The bytes of the entry. Bytes after the object are ignored.
    pub bytes: &'a [u8],
    /// Bytes before them from which references count.
    pub origin: usize,
    /// The layouts of the file.
    pub infos: &'a StreamerInfos,
    /// Counts what the values take.
    pub memory: &'a Memory,
}

/// How the object in an entry of a branch is streamed.
#[derive(Debug, Clone, Copy)]
pub enum EntryForm<'a> {
    /// An object of a class without a head, or a container with one.
    Alone(&'a str, Option<&'a Arc<ClassInfo>>),
    /// An object with its head: of a class that is streamed by its own code.
    Headed(&'a str),
    /// An object that the name of its class precedes: of a branch of the old form (`TBranchObject`).
    Named,
    /// A member of a class.
    Member(&'a ClassInfo, &'a Element),
}

impl Entry<'_> {
    /// Reads the object.
    ///
    /// # Errors
    /// Those of [`read_behind_key`].
    pub fn read(self, form: EntryForm<'_>) -> Result<Value> {
        self.reader().entry(form)
    }

    /// The places of all words of the entry that refer to an object or a class in it, and so depend on the
    /// [`origin`](Self::origin); ascending.
    ///
    /// # Errors
    /// Those of [`read_behind_key`]; unsupported if a part of the entry cannot be read, and for references to what is outside of
    /// it.
    pub fn references(self, form: EntryForm<'_>) -> Result<Vec<usize>> {
        let mut reader = self.reader();
        reader.stream.marks = Some(Marks::default());
        reader.entry(form)?;
        if !reader.opaque.is_empty() || reader.remaining() > 0 {
            return Err(Error::unsupported("a part of the object cannot be read"));
        }
        let marks = reader.stream.marks.take().unwrap_or_default();
        let all = self.origin..self.origin.saturating_add(self.bytes.len());
        marks.references_within(all).ok_or_else(|| Error::unsupported("a reference leads out of the entry"))
    }

    fn reader(&self) -> reader::Reader<'_> {
        reader::Reader::new(self.bytes, self.origin, self.infos, self.memory)
    }
}
