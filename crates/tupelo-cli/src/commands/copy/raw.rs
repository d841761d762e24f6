//! `tupelo copy --raw`: copies the bytes of one file.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread;

use tupelo::reader::Location;
use tupelo::storage::adapter::MeteredSource;
use tupelo::storage::cancel::cancellable;
use tupelo::storage::range::split;
use tupelo::storage::{self, ByteSink, ByteSource, ErrorKind, PartialFile, Storage, local_path};

use super::operands::Operands;
use super::target::Target;
use crate::console::{Console, Progress};
use crate::failure::Failure;
use crate::inputs::{Inputs, check_not_standard_output};
use crate::interrupt::Interrupt;
use crate::table::bytes;

/// Bytes that are requested at once, while as many are written.
const WINDOW_BYTES: u64 = 64 << 20;
/// Bytes between two checkpoints. Less is copied again after the command was killed.
const CHECKPOINT_BYTES: u64 = 4 * WINDOW_BYTES;

/// Copies a file to another location. To a local file it continues what an earlier command began.
pub(super) fn run(
    input: &str,
    output: &str,
    operands: &Operands,
    target: &Target,
    storage: &Storage,
    console: &Console,
) -> Result<(), Failure> {
    let (from, to) = (whole(input), whole(output));
    check_not_standard_output(&from)?;
    let meter = Arc::default();
    let source = MeteredSource::new(storage.open(&from.file).map_err(tupelo::Error::from)?, &meter);
    let size = source.size().map_err(tupelo::Error::from)?;
    let inputs = Inputs::of(&[from]);
    operands.check(&to, &inputs, target)?;
    target.check(&to, &inputs, storage, false)?;
    let interrupt = Interrupt::watch()?;
    let version = source.version();
    let is_continuable = to.local_path().is_some() && version.is_some();
    let mut sink: Box<dyn ByteSink> = match (to.local_path(), &version) {
        (Some(path), Some(version)) => {
            inputs.check_output(&PartialFile::part_of(path))?;
            Box::new(PartialFile::open(path, &format!("{source} {version}"), size).map_err(tupelo::Error::from)?)
        }
        // Without a version, the next command could not tell whether it is still the same file.
        _ => storage.create(&to.file).map_err(tupelo::Error::from)?,
    };
    let start = sink.position();
    let mut progress = console.progress("copy", size, "B");
    let watched = interrupt.clone();
    let is_interrupted = move || watched.is_set();
    let copied = cancellable(is_interrupted.clone(), || copy(&source, &mut *sink, &interrupt, &mut progress));
    let copied = copied.and_then(|()| check_unchanged(&source, version.as_deref()));
    progress.finish();
    console.print_reads(&meter);
    match copied {
        _ if interrupt.is_set() => return Err(stop(sink, is_continuable, interrupt.failure())),
        Err(error) if error.kind() == ErrorKind::Changed => {
            let failure = stop(sink, false, tupelo::Error::from(error).into());
            return Err(failure.with_hint("run the same command again to copy the new version"));
        }
        Err(error) => return Err(stop(sink, is_continuable, tupelo::Error::from(error).into())),
        Ok(()) => cancellable(is_interrupted, || sink.commit()).map_err(|error| match error.kind() {
            ErrorKind::Cancelled => interrupt.failure(),
            _ => tupelo::Error::from(error).into(),
        })?,
    }
    let after = if start > 0 { format!(", continued at {}", bytes(start)) } else { String::new() };
    console.note(&format!("{to}: {} copied{after}", bytes(size)));
    Ok(())
}

/// A file as a whole: colons belong to its name.
fn whole(argument: &str) -> Location {
    let file = local_path(argument).and_then(Path::to_str).unwrap_or(argument);
    Location { file: file.to_owned(), object: None }
}

/// Appends what is missing, until a signal comes.
fn copy(
    source: &dyn ByteSource,
    sink: &mut dyn ByteSink,
    interrupt: &Interrupt,
    progress: &mut Progress,
) -> storage::Result<()> {
    let (size, request_bytes) = (source.size()?, source.hints().max_request_bytes);
    let mut kept = sink.position();
    thread::scope(|scope| {
        let (sender, windows) = sync_channel(0);
        let (mut at, watched) = (kept, interrupt.clone());
        scope.spawn(move || {
            cancellable(
                move || watched.is_set(),
                || {
                    while at < size {
                        let end = size.min(at.saturating_add(WINDOW_BYTES));
                        let window = source.read_ranges(&split(at..end, request_bytes).collect::<Vec<_>>());
                        let failed = window.is_err();
                        if sender.send(window).is_err() || failed {
                            break;
                        }
                        at = end;
                    }
                },
            );
        });
        for window in windows {
            let pieces = window?;
            sink.append_vectored(&pieces.iter().map(|piece| &piece[..]).collect::<Vec<_>>())?;
            progress.set(sink.position());
            if interrupt.is_set() {
                break;
            }
            if sink.has_checkpoints() && sink.position() - kept >= CHECKPOINT_BYTES {
                sink.checkpoint()?;
                kept = sink.position();
            }
        }
        Ok(())
    })
}

/// Checks a local file once more: unlike a server, it does not say that bytes were overwritten while others were read.
fn check_unchanged(source: &dyn ByteSource, version: Option<&str>) -> storage::Result<()> {
    let name = source.to_string();
    match local_path(&name) {
        Some(path) if storage::FileSource::open(path)?.version().as_deref() != version => {
            Err(storage::Error::new(ErrorKind::Changed, "copy", name, "the file changed while it was copied"))
        }
        _ => Ok(()),
    }
}

/// Ends a copy that is not complete, and keeps it if it can be continued.
fn stop(mut sink: Box<dyn ByteSink>, is_continuable: bool, failure: Failure) -> Failure {
    let done = sink.position();
    if is_continuable && done > 0 {
        // After an error of the sink, what it has kept before is all there is.
        let _ = sink.checkpoint();
    }
    match sink.abort() {
        Ok(None) => failure,
        Ok(Some(kept)) => failure.with_hint(format!("{kept} is kept: run the same command again to continue")),
        Err(error) => failure.with_hint(format!("the partial output could not be removed: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_local_file_that_was_overwritten_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        // FS: a test file.
        std::fs::write(&path, "old").unwrap();
        let source = storage::FileSource::open(&path).unwrap();
        let version = source.version();
        check_unchanged(&source, version.as_deref()).unwrap();
        // FS: a test file.
        std::fs::write(&path, "other").unwrap();
        let error = check_unchanged(&source, version.as_deref()).unwrap_err();
        assert!(error.to_string().ends_with("the file changed while it was copied"), "{error}");
    }
}
