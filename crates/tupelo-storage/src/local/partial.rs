//! A new local file that several runs of a program write.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use tempfile::TempPath;

use super::disk::Locked;
use super::sink::FileSink;
use super::source::{check_regular, is_own};
use super::target::{Target, follow_links, open_locked};
use super::temporary::Temporary;
use super::text::read_text;
use crate::error::{Error, ErrorKind, Result};
use crate::sink::ByteSink;

/// Ends the name of the file with the bytes so far.
const PART: &str = ".part";
/// Ends the name of its record.
const RECORD: &str = ".part.source";

/// A copy of a source that another run can continue: as a [`FileSink`] that writes to `NAME.part`, and begins after its
/// last checkpoint if that is a checkpoint of the same source.
///
/// The record `NAME.part.source` has the name and version of the source in its first line. Each checkpoint adds a line
/// with the length that is durable, which is all that is continued: after a crash the file may be longer. The record is
/// locked while the copy is written, and removed with the part.
#[derive(Debug)]
pub struct PartialFile {
    // Dropped first: the record remains if the part does.
    sink: FileSink,
    record: Record,
}

impl PartialFile {
    /// The path of the bytes so far.
    pub fn part_of(path: &Path) -> PathBuf {
        with_suffix(&follow_links(path.to_owned()), PART)
    }

    /// Continues the copy of a source of `size` bytes, or begins a new one. `source` is its name and version.
    ///
    /// # Errors
    /// As [`FileSink::create`]; [`ErrorKind::Busy`] while another run writes the copy, and [`ErrorKind::NotSupported`]
    /// for a file `NAME.part` without a record.
    pub fn open(path: impl AsRef<Path>, source: &str, size: u64) -> Result<Self> {
        let path = path.as_ref();
        let failed = |error: io::Error| Error::from_io("create", path.display(), error);
        let target = Target::of(path)?;
        let part = with_suffix(&target.path, PART);
        let record_path = with_suffix(&target.path, RECORD);
        [&part, &record_path].into_iter().try_for_each(|file| check_own(file))?;
        let record = Record::open(record_path, &part, path)?;
        let mut options = File::options();
        let mut file = options.read(true).write(true).create(true).truncate(false).open(&part).map_err(failed)?;
        let len = file.metadata().map_err(failed)?.len();
        let known = record.read();
        if known.is_none() && len > 0 {
            let reason = format!("{} exists but is not a partial copy: move it away", part.display());
            return Err(Error::new(ErrorKind::NotSupported, "create", path.display(), reason));
        }
        let same = known.filter(|known| known.source == line(source) && known.bytes <= len.min(size));
        let kept_bytes = same.map(|known| known.bytes).filter(|bytes| *bytes > 0);
        file.set_len(kept_bytes.unwrap_or(0)).map_err(failed)?;
        if kept_bytes.is_none() {
            // The old bytes must be gone before they could be taken for those of the new source.
            file.sync_all().and_then(|()| record.begin(source)).map_err(failed)?;
        }
        file.seek(SeekFrom::End(0)).map_err(failed)?;
        let mut temporary = TempPath::try_from_path(part).map_err(failed)?;
        temporary.disable_cleanup(kept_bytes.is_some());
        let sink = FileSink::in_temporary(path, target, file, Temporary::Named(temporary), kept_bytes, |disk| disk)?;
        Ok(Self { sink, record })
    }
}

impl fmt::Display for PartialFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.sink, f)
    }
}

impl ByteSink for PartialFile {
    fn position(&self) -> u64 {
        self.sink.position()
    }

    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.sink.append(bytes)
    }

    fn append_vectored(&mut self, pieces: &[&[u8]]) -> Result<()> {
        self.sink.append_vectored(pieces)
    }

    fn patch(&mut self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.sink.patch(offset, bytes)
    }

    fn checkpoint(&mut self) -> Result<()> {
        self.sink.checkpoint()?;
        let added = self.record.add(self.sink.position());
        added.map_err(|error| Error::from_io("record the progress of", &self, error))
    }

    fn commit(self: Box<Self>) -> Result<()> {
        let Self { sink, record: _record } = *self;
        Box::new(sink).commit()
    }

    fn abort(self: Box<Self>) -> Result<Option<String>> {
        let Self { sink, record: _record } = *self;
        Box::new(sink).abort()
    }
}

/// The file that says what the part is a copy of. On drop, it is removed if it is empty or without a part.
#[derive(Debug)]
struct Record {
    file: Locked,
    path: PathBuf,
    part: PathBuf,
}

/// What a record says.
struct Known {
    /// As by [`line`].
    source: String,
    /// Durable bytes of the part.
    bytes: u64,
}

impl Record {
    /// Opens and locks a record, which is empty if it is new.
    fn open(record: PathBuf, part: &Path, path: &Path) -> Result<Self> {
        let file = open_locked(File::options().read(true).append(true).create(true), &record, "create", path)?;
        Ok(Self { file: Locked::new(file), path: record, part: part.to_owned() })
    }

    /// What it says; `None` if it is empty.
    fn read(&self) -> Option<Known> {
        let text = read_text(&self.path).filter(|text| !text.is_empty())?;
        // A crash may leave the beginning of a line.
        let mut lines = text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
        let source = lines.next().unwrap_or_default().to_owned();
        Some(Known { source, bytes: lines.filter_map(|line| line.parse().ok()).next_back().unwrap_or(0) })
    }

    /// Begins it with no durable bytes.
    fn begin(&self, source: &str) -> io::Result<()> {
        self.file.file.set_len(0)?;
        (&self.file.file).write_all((line(source) + "\n").as_bytes())?;
        self.file.file.sync_all()
    }

    /// Adds a durable length. It need not be durable itself: a shorter one is true too.
    fn add(&self, bytes: u64) -> io::Result<()> {
        // The first line break ends what a crash left of another length.
        (&self.file.file).write_all(format!("\n{bytes}\n").as_bytes())
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        let is_empty = self.file.file.metadata().is_ok_and(|record| record.len() == 0);
        if is_empty || fs::symlink_metadata(&self.part).is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
            // Errors cannot be reported from drop; what remains does no harm.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Refuses anything that an earlier copy of this user did not create: links, and files of others.
fn check_own(path: &Path) -> Result<()> {
    let Ok(metadata) = fs::symlink_metadata(path) else { return Ok(()) };
    check_regular(&metadata, "continue", path)?;
    let refused = |reason| Err(Error::new(ErrorKind::NotSupported, "continue", path.display(), reason));
    if !is_own(&metadata) {
        return refused("it belongs to another user");
    }
    #[cfg(unix)]
    if std::os::unix::fs::MetadataExt::nlink(&metadata) > 1 {
        return refused("it has several hard links");
    }
    Ok(())
}

/// A source as one line.
fn line(source: &str) -> String {
    format!("{source:?}")
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

#[cfg(test)]
mod tests;
