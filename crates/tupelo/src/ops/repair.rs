//! Brings a file back to the newest state that is whole on disk.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tupelo_format::container::{self, RecoveredState};
use tupelo_pages::sink::datime;
use tupelo_pages::source::{self, Overlay, scan};
use tupelo_storage::local::{FileSink, FileSource, is_temporary, publish_temporary, temporaries_of};
use tupelo_storage::{ByteSink, ByteSource};

use super::layout::{self, Content};
use super::verify::{self, Report};
use crate::reader::{DEFAULT_MEMORY_BUDGET_BYTES, DEFAULT_PAGE_CHECKSUMS, File};
use crate::{Error, Result, reader};

/// States that are tried, the newest first.
const MAX_STATES: usize = 64;

/// Ntuples by path, with their numbers of entries.
type Entries = Vec<(String, u64)>;

/// The result of a repair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repaired {
    /// The file that can be read now.
    pub path: PathBuf,
    /// The temporary file of a writer that was interrupted, if it has become `path`.
    pub from: Option<PathBuf>,
    /// Whether bytes of the file were overwritten.
    pub is_changed: bool,
    /// Parts that were cut off or damaged and are rewritten at the end.
    pub rewritten: Vec<&'static str>,
    /// Bytes at the end that belong to nothing readable.
    pub lost_bytes: u64,
    /// Ntuples by path, with their numbers of entries.
    pub ntuples: Vec<(String, u64)>,
    /// Other findings of [`verify`](verify::verify) in the state.
    pub report: Report,
}

/// Restores a file to the newest state in which every page is intact: its present one, or a checkpoint whose last step
/// was torn. If the file does not exist but an interrupted writer left a temporary file, that one is repaired and
/// renamed. Symbolic links are followed.
///
/// Only the header, the records of directories and the file's name are changed; what follows the end of the restored state
/// is cut off. If the end of the file was cut off and only the list of free segments and the streamer info are lost, both are
/// rewritten; of the streamer info, only what ntuples need. Repairing a repaired file changes nothing.
///
/// # Errors
/// Not found where there is neither, and for a temporary file without a checkpoint; invalid argument where there are
/// several temporary files; corrupt where no state can be read; storage errors, `Busy` in particular while a writer has
/// the file.
pub fn repair(path: impl AsRef<Path>) -> Result<Repaired> {
    repair_within(path, DEFAULT_MEMORY_BUDGET_BYTES)
}

/// As [`repair`], with a limit for the memory that reading takes, in bytes
/// (see [`with_memory_budget`](crate::reader::OpenOptions::with_memory_budget)).
///
/// # Errors
/// As [`repair`].
pub fn repair_within(path: impl AsRef<Path>, memory_budget: u64) -> Result<Repaired> {
    let path = path.as_ref();
    let work = || {
        if path.exists() {
            return in_place(path, memory_budget);
        }
        let temporaries = temporaries_of(path)?;
        match temporaries.as_slice() {
            [] => Err(Error::not_found("neither the file nor a temporary file of its name exists")),
            [temporary] => {
                let repaired = in_place(temporary, memory_budget)?;
                publish_temporary(temporary, path)?;
                Ok(Repaired { path: path.to_owned(), from: Some(temporary.clone()), ..repaired })
            }
            several => {
                let names: Vec<_> = several.iter().map(|path| path.display().to_string()).collect();
                let what =
                    "the file does not exist, but several temporary files do; repair one of them by its own name";
                Err(Error::invalid_argument(format!("{what}: {}", names.join(", "))))
            }
        }
    };
    work().map_err(|e: Error| e.in_file(path.display()))
}

/// Whether there may be something to restore in a temporary file, by its size alone; [`repair`] says it exactly.
pub fn may_be_repaired(temporary: impl AsRef<Path>) -> bool {
    reader::may_be_repaired(temporary.as_ref())
}

/// Whether a temporary file has a checkpoint, whose entries [`repair`] restores.
pub(crate) fn is_restorable(temporary: &Path) -> bool {
    let Ok(source) = FileSource::open(temporary) else { return false };
    let source: Arc<dyn ByteSource> = Arc::new(source);
    let header = source::File::open(source.clone()).and_then(|file| file.attempt(container::read_header));
    header.is_ok() && has_checkpoint(&source, &states(&source)).unwrap_or(true)
}

/// The temporary files that writers of a name have left behind when they were stopped, or are writing now; see
/// [`repair`]. None where the directory cannot be read.
pub fn leftovers(path: impl AsRef<Path>) -> Vec<PathBuf> {
    temporaries_of(path.as_ref()).unwrap_or_default()
}

fn in_place(path: &Path, memory_budget: u64) -> Result<Repaired> {
    // The sink's lock keeps writers away from now on.
    let mut sink = Box::new(FileSink::update(path)?);
    let source: Arc<dyn ByteSource> = Arc::new(FileSource::open(path)?);
    let size = source.size()?;
    let states = states(&source);
    if is_temporary(path) && !has_checkpoint(&source, &states)? {
        let path = path.display();
        return Err(Error::not_found(format!(
            "{path} contains no checkpoint, because its writer stopped before the first one; nothing can be restored, \
             so delete it"
        )));
    }
    let open = |source: Arc<dyn ByteSource>| {
        File::new(source, DEFAULT_PAGE_CHECKSUMS).map(|file| file.with_memory_budget(memory_budget))
    };
    let present = open(source.clone()).and_then(|file| Ok((check(&file)?, end(&file)?, entries(&file)?)));
    // What can be read now is kept, damaged or not: only what the last step tore is repaired.
    let (present_end, present_entries) = match &present {
        // An end behind that of the file may be a torn number: nothing is known by it.
        Ok((_, end, entries)) => (if *end <= size { *end } else { 0 }, entries.as_slice()),
        Err(_) => (0, &[] as &[_]),
    };
    let mut best: Option<(RecoveredState, Report, Entries)> = None;
    for state in states? {
        // The present state and all before it are not better.
        if state.end < present_end || present_end > 0 && is_in_place(&state, &*source)? {
            break;
        }
        let overlay = Overlay::new(source.clone(), state.patches.clone())?;
        let Ok(file) = open(Arc::new(overlay)) else { continue };
        let Ok(report) = check(&file) else { continue };
        // Bytes past the end of an intact file may belong to an older state.
        let found = entries(&file)?;
        if !are_kept(present_entries, &found) {
            continue;
        }
        // An older state is better where it lacks what is damaged in the newer one, and that came with the newer one.
        if best.as_ref().is_some_and(|(_, newer, _)| report.num_damages >= newer.num_damages) {
            break;
        }
        let found_whole = report.num_damages == 0;
        best = Some((state, report, found));
        if found_whole {
            break;
        }
    }
    let path = path.to_owned();
    // A present state that can be read is left only for a better one.
    let damages = present.as_ref().map_or(u64::MAX, |(report, ..)| report.num_damages);
    match (best, present) {
        (Some((state, report, ntuples)), _) if report.num_damages == 0 || report.num_damages < damages => {
            // What lies past the end of a whole state is of no use.
            overwrite(sink, &state.patches, report.is_intact().then_some(state.end))?;
            let lost_bytes = size.saturating_sub(state.end);
            Ok(Repaired { path, from: None, is_changed: true, rewritten: Vec::new(), lost_bytes, ntuples, report })
        }
        (_, Ok((report, end, ntuples))) => {
            let is_damaged = verify::around(&open(source.clone())?)?.is_some_and(|error| error.is_corrupt());
            let rewrite = if is_damaged { rewrite_around(&source, open)? } else { None };
            // Rewriting must not lose entries that can be read.
            let better = rewrite.filter(|new| new.report.num_damages < damages && are_kept(&ntuples, &new.ntuples));
            match better {
                Some(Rewrite { appended, patches, parts: rewritten, ntuples, report }) => {
                    sink.append(&appended)?;
                    overwrite(sink, &patches, None)?;
                    Ok(Repaired { path, from: None, is_changed: true, rewritten, lost_bytes: 0, ntuples, report })
                }
                None => {
                    let (rewritten, lost_bytes) = (Vec::new(), size.saturating_sub(end));
                    // What a killed writer left at the end of an intact file.
                    let is_changed = lost_bytes > 0 && !is_damaged && report.is_intact();
                    if is_changed {
                        sink.cut(end)?;
                    }
                    Ok(Repaired { path, from: None, is_changed, rewritten, lost_bytes, ntuples, report })
                }
            }
        }
        (_, Err(error)) => Err(Error::corrupt(format!("no state of the file can be read; unrepaired: {error}"))),
    }
}

/// Whether a new file has got as far as its first checkpoint: its header says so, or what the checkpoint has appended.
/// That the states cannot be read is reported later.
fn has_checkpoint(source: &Arc<dyn ByteSource>, states: &Result<Vec<RecoveredState>>) -> Result<bool> {
    if source.size()? < container::BEGIN {
        return Ok(false);
    }
    let header = source::File::open(source.clone())?.attempt(container::read_header);
    Ok(header.is_ok_and(|header| header.seek_free > 0) || states.as_ref().map_or(true, |states| !states.is_empty()))
}

/// Overwrites parts of a file, and then removes what follows `end`.
fn overwrite(mut sink: Box<FileSink>, patches: &[(u64, Vec<u8>)], end: Option<u64>) -> Result<()> {
    for (offset, bytes) in patches {
        sink.patch(*offset, bytes)?;
    }
    if let Some(end) = end {
        sink.checkpoint()?;
        sink.cut(end)?;
    }
    Ok(sink.commit()?)
}

/// Whether all ntuples are found again with no fewer entries.
fn are_kept(ntuples: &[(String, u64)], found: &Entries) -> bool {
    let found: HashMap<&str, u64> = found.iter().map(|(name, entries)| (name.as_str(), *entries)).collect();
    ntuples.iter().all(|(name, entries)| found.get(name.as_str()).is_some_and(|found| found >= entries))
}

/// New records around the objects, for those that cannot be read.
struct Rewrite {
    /// The bytes to append, and then to overwrite.
    appended: Vec<u8>,
    patches: Vec<(u64, Vec<u8>)>,
    /// What it is.
    parts: Vec<&'static str>,
    /// The resulting file.
    ntuples: Entries,
    report: Report,
}

fn is_data(content: &Content) -> bool {
    matches!(content, Content::Envelope { .. } | Content::Pages { .. })
}

/// None where new records are not needed, or not enough.
fn rewrite_around(
    source: &Arc<dyn ByteSource>,
    open: impl Fn(Arc<dyn ByteSource>) -> Result<File>,
) -> Result<Option<Rewrite>> {
    let (size, file) = (source.size()?, open(source.clone())?);
    let mended = file.root_file()?.attempt(|fetched| container::FileLayout::repair(fetched, datime()));
    let Some((mut layout, parts)) = mended.ok().filter(|(_, parts)| !parts.is_empty()) else { return Ok(None) };
    // That a record was cut off is known from the header alone, which may be wrong.
    if let Some(cut) = layout.cut()
        && layout::layout(&file)?
            .regions
            .iter()
            .any(|region| is_data(&region.content) && region.offset + region.bytes > cut)
    {
        return Ok(None);
    }
    // What was cut off leaves a free segment, which has a shortest length.
    let mut appended = vec![0; layout.start().saturating_sub(size) as usize];
    let tail = layout.finish(size + appended.len() as u64)?;
    appended.extend_from_slice(&tail.append);
    let mut patches = tail.patches.clone();
    patches.push((size, appended.clone()));
    let file = open(Arc::new(Overlay::new(source.clone(), patches)?))?;
    let (ntuples, report) = (entries(&file)?, check(&file)?);
    Ok(Some(Rewrite { appended, patches: tail.patches, parts, ntuples, report }))
}

/// Whether nothing would be changed.
fn is_in_place(state: &RecoveredState, source: &dyn ByteSource) -> Result<bool> {
    for (offset, bytes) in &state.patches {
        if source.read_range(*offset..offset + bytes.len() as u64)? != bytes {
            return Ok(false);
        }
    }
    Ok(true)
}

fn check(file: &File) -> Result<Report> {
    verify::verify(file, None, &mut |_| {})
}

fn end(file: &File) -> Result<u64> {
    Ok(file.root_file()?.attempt(container::read_header)?.end)
}

fn entries(file: &File) -> Result<Entries> {
    let names = file.ntuple_names()?;
    let entries = |name: String| file.ntuple(Some(&name)).map(|ntuple| (name, ntuple.entries()));
    Ok(names.into_iter().filter_map(|name| entries(name).ok()).collect())
}

fn states(source: &Arc<dyn ByteSource>) -> Result<Vec<RecoveredState>> {
    let keys = scan(&**source, |_| Ok(true))?;
    let file = source::File::open(source.clone())?;
    file.attempt(|fetched| container::states(fetched, &keys, MAX_STATES))
}
