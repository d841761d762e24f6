//! Giving objects of a ROOT file other paths.

use std::collections::BTreeSet;

use tupelo_core::error::Remedy;
use tupelo_format::compression::Compression;
use tupelo_format::container::{self, streamed_key_bytes};
use tupelo_format::object::Traced;
use tupelo_format::open::{ANCHOR_CLASS, PRE_RELEASE_CLASS};
use tupelo_format::streamer::StreamerInfos;
use tupelo_format::wire::Memory;
use tupelo_pages::sink::{FileSink, name_of};

use super::extents::used_only_by;
use super::remove::{Removal, remove};
use crate::reader::{File, TREE_CLASSES};
use crate::writer::FileWriter;
use crate::{Error, ErrorKind, Result};

/// Bytes by which keys with offsets of 32 bits are shorter than those of 64 bits.
const NARROWER: u16 = 8;

/// What was renamed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Renamed {
    /// The new path.
    pub path: String,
    /// Number of cycles that got it.
    pub cycles: u64,
    /// Objects whose own names could not be changed, one sentence each.
    pub notes: Vec<String>,
    /// Why old envelopes of an ntuple stay in use, if they do: something in the file cannot be read.
    pub kept: Option<String>,
}

/// Gives an object of a file that is updated another path; with `from` as `PATH;CYCLE` only that cycle, otherwise all,
/// in their order. A path `to` that is a directory, or ends with a slash, means the same name in that directory;
/// missing directories are made. With `replace`, an object that has the path is removed first.
///
/// Pages of ntuples and baskets of trees stay where they are; what leads to them is written again. Objects that have a
/// name of their own (`TNamed`) get the new one.
/// ```no_run
/// let file = tupelo::update("events.root")?;
/// tupelo::ops::objects::rename(&file, "Events", "raw/", false)?;
/// file.finish()?;
/// # Ok::<(), tupelo::Error>(())
/// ```
///
/// # Errors
/// Not found, with similar names; invalid argument for names that exist, and for objects that were written by this
/// writer; unsupported for directories, and for what cannot be decoded as far as that is needed. The writer may have
/// written a part by then, and should be aborted.
pub fn rename(file: &FileWriter, from: &str, to: &str, replace: bool) -> Result<Renamed> {
    let (existing, sink) = file.updated()?;
    let rename = || {
        let left = Removal::of(existing, &sink.removed()?)?;
        let mut moved: Vec<&container::Object> =
            left.named(from, false)?.into_iter().map(|(object, _)| object).collect();
        moved.sort_by_key(|object| object.key.cycle);
        let path = moved.first().map(|object| object.path.clone()).unwrap_or_default();
        if moved.iter().any(|object| object.key.is_directory()) {
            let what =
                format!("'{path}' is a directory, which cannot be renamed; make another one and move what is in it");
            return Err(Error::unsupported(what));
        }
        let target = target(sink, &path, to)?;
        if sink.has(&target)?.0 {
            if !replace {
                return Err(Error::invalid_argument(format!("'{target}' exists")).with_remedy(Remedy::Replace));
            }
            remove(file, std::slice::from_ref(&target), false)?;
        }
        let mut renamed = Renamed { path: target, ..Renamed::default() };
        for object in &moved {
            match object.key.class_name.as_str() {
                ANCHOR_CLASS | PRE_RELEASE_CLASS => file.relist(&existing.ntuple_of(object)?, &renamed.path)?,
                _ => renamed.notes.extend(move_object(existing, sink, object, &renamed.path)?),
            }
            renamed.cycles += 1;
        }
        let offsets: BTreeSet<u64> = moved.iter().map(|object| object.key.seek_key).collect();
        let freed = used_only_by(existing, &offsets, &sink.removed()?, true)?;
        sink.remove(&offsets, &[path], &freed.records)?;
        renamed.kept = freed.kept;
        Ok(renamed)
    };
    rename().map_err(|error| error.or_in_file(existing.name()))
}

/// The new path of an object.
fn target(sink: &FileSink, path: &str, to: &str) -> Result<String> {
    let directory = to.trim_matches('/');
    let is_directory = to.ends_with('/') || sink.has(directory)?.1;
    let target = match (is_directory, directory) {
        (true, "") => name_of(path).to_owned(),
        (true, directory) => format!("{directory}/{}", name_of(path)),
        (false, target) => target.to_owned(),
    };
    if target.is_empty() || target.contains(';') || target.split('/').any(container::is_relative) {
        return Err(Error::invalid_argument(format!("'{to}' is not a valid path; expected NAME or DIRECTORY/NAME")));
    }
    if target == path {
        return Err(Error::invalid_argument(format!("source and destination are both '{path}'")));
    }
    if sink.has(&target)?.1 {
        return Err(Error::invalid_argument(format!("'{target}' is a directory; give another path")));
    }
    Ok(target)
}

/// Writes the record of an object under another path. Returns a note if its own name stays.
fn move_object(file: &File, sink: &FileSink, object: &container::Object, path: &str) -> Result<Option<String>> {
    let (root, key) = (file.root_file()?, &object.key);
    let infos = root.attempt(container::streamer_infos)?;
    let bytes = root.attempt(|fetched| container::object_bytes(fetched, key))?;
    let memory = Memory::new(root.session().budget().left());
    let record = renamed(object, &bytes, path, &infos, &memory).map_err(|error| {
        let is_tree = TREE_CLASSES.contains(&key.class_name.as_str());
        error.in_object(if is_tree { "tree" } else { "object" }, &object.path)
    })?;
    let names = [key.class_name.as_str(), key.title.as_str()];
    sink.put_behind_key(path, names, (&record.bytes, record.key_bytes), Compression::DEFAULT)?;
    Ok(record.note)
}

/// An object as it is written under another path.
pub(super) struct Record {
    pub(super) bytes: Vec<u8>,
    /// Size of the key that references in the bytes count from.
    pub(super) key_bytes: u16,
    /// Why the own name of the object stays, if it does.
    pub(super) note: Option<String>,
}

/// The record of an object under another path, from its bytes. Objects that have a name of their own get the new one.
pub(super) fn renamed(
    object: &container::Object,
    bytes: &[u8],
    path: &str,
    infos: &StreamerInfos,
    memory: &Memory,
) -> Result<Record> {
    let key = &object.key;
    let class_name = key.class_name.as_str();
    let key_bytes = streamed_key_bytes([class_name, name_of(path), key.title.as_str()])?;
    let traced = Traced::read(bytes.to_vec(), key.key_bytes, class_name, infos, memory);
    let error = match traced.and_then(|traced| traced.with_name(name_of(path), key_bytes)) {
        Ok((bytes, _)) => return Ok(Record { bytes, key_bytes, note: None }),
        Err(error) => Error::from(error),
    };
    if TREE_CLASSES.contains(&class_name) || error.is_corrupt() || error.kind() == ErrorKind::Limit {
        return Err(error);
    }
    // Its bytes can stay as they are if references in them count from the start of a key of the same length.
    if ![Some(0), Some(NARROWER)].contains(&key_bytes.checked_sub(key.key_bytes)) {
        let wanted = name_of(&object.path).len();
        let what = format!("cannot be decoded ({})", error.reason());
        let what = format!("{what}, so that its new name must have as many bytes as the old one, {wanted}");
        return Err(Error::unsupported(what));
    }
    let note = format!("'{path}' keeps the name that is in the object, which cannot be decoded: {}", error.reason());
    Ok(Record { bytes: bytes.to_vec(), key_bytes: key.key_bytes, note: Some(note) })
}
