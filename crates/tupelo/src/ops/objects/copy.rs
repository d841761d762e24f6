//! Copying one object to another path.

use tupelo_format::compression::Compression;
use tupelo_format::wire::Memory;
use tupelo_pages::sink::PageSink;

use super::rename::{Record, renamed};
use crate::reader::File;
use crate::writer::FileWriter;
use crate::{Error, Result};

/// Copies an object as [`FileWriter::copy_object`] does, under the path `to`; objects that have a name of their own
/// (`TNamed`) get the new one. Returns a note if that of an object cannot be changed.
/// ```no_run
/// use tupelo::Compression;
///
/// let (plots, out) = (tupelo::open("plots.root").open_file()?, tupelo::create("out.root")?);
/// tupelo::ops::objects::copy_as(&plots, "cuts/mass;2", &out, "mass", Compression::DEFAULT)?;
/// out.finish()?;
/// # Ok::<(), tupelo::Error>(())
/// ```
///
/// # Errors
/// Those of [`FileWriter::copy_object`]; invalid argument for paths that are not valid; unsupported for objects that
/// cannot be decoded, if the new name has another length.
pub fn copy_as(
    from: &File,
    name: &str,
    file: &FileWriter,
    to: &str,
    compression: Compression,
) -> Result<Option<String>> {
    let memory = Memory::new(from.root_file()?.session().budget().left());
    let mut is_same = false;
    let copied = from.with_object(name, |object, bytes, infos| {
        is_same = object.path == to;
        if is_same {
            return Ok(None);
        }
        if to.is_empty() || to.contains(';') || to.split('/').any(str::is_empty) {
            let what = format!("'{to}' is not a valid path; expected NAME or DIRECTORY/NAME");
            return Err(Error::invalid_argument(what));
        }
        FileWriter::check_copied(object, bytes)?;
        let Record { bytes, key_bytes, note } = renamed(object, bytes, to, infos, &memory)?;
        let names = [object.key.class_name.as_str(), object.key.title.as_str()];
        let sink = file.file_sink()?;
        sink.put_behind_key(to, names, (&bytes, key_bytes), compression).map_err(|error| error.in_file(sink.name()))?;
        file.add_streamer_info(infos)?;
        Ok(note)
    })?;
    match is_same {
        true => file.copy_object(from, name, compression).map(|()| None),
        false => Ok(copied),
    }
}
