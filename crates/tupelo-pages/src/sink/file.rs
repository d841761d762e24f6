//! A ROOT file as a sink: pages and envelopes are blobs, anchors are objects in its directories.

mod records;
mod removal;

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tupelo_format::checksum::CHECKSUM_BYTES;
use tupelo_format::compression::Compression;
use tupelo_format::container::{
    ANCHOR_BYTES, Anchor, AnchorLinks, BLOB_KEY_BYTES, FileLayout, Payload, blob_key, unlisted_key,
};
use tupelo_format::envelope::EnvelopeType;
use tupelo_format::locator::Locator;
use tupelo_format::object::Object;
use tupelo_format::open::ANCHOR_CLASS;
use tupelo_format::streamer::StreamerInfos;
use tupelo_storage::ByteSink;

use super::paths::Paths;
use super::{PageBytes, PageSink, Stored, Target, check_process};
use crate::source::File;
use crate::{Error, Result};

/// Limit of a blob under one key, in bytes: 1 GiB, as in ROOT. The anchor records it.
pub const MAX_KEY_BYTES: u64 = 1 << 30;

/// A ROOT file that is being written, shared by the writers of its ntuples.
#[derive(Debug, Clone)]
pub struct FileSink {
    state: Arc<Mutex<State>>,
    name: String,
    /// The process that opened the file. A forked child has a copy of this value and must not write.
    process: u32,
    /// The records that were appended through this handle, if they are tracked.
    own: Option<Arc<Mutex<Vec<Range<u64>>>>>,
}

#[derive(Debug)]
struct State {
    /// `None` once the file is finished or aborted.
    sink: Option<Box<dyn ByteSink>>,
    /// Why nothing more may be written.
    closed: Option<String>,
    layout: FileLayout,
    /// Whether there are changes since the last published state.
    is_changed: bool,
    /// Padding before the first appended record.
    gap: Vec<u8>,
    datime: u32,
    paths: Paths,
    /// Records of anchors that no directory lists, including keys, by the offset of the anchor.
    unlisted: HashMap<u64, Range<u64>>,
    /// Offsets of the records that were removed from the directories.
    removed: BTreeSet<u64>,
    /// Whether the error that prevents the file from being finished was returned to the caller.
    is_reported: bool,
}

impl FileSink {
    /// Creates a file.
    pub fn create(mut sink: Box<dyn ByteSink>, file_name: &str, title: &str) -> Result<Self> {
        let datime = datime();
        let uuid = uuid::Uuid::new_v4().into_bytes();
        let (layout, head) = FileLayout::create_titled(file_name, title, datime, uuid)?;
        sink.append(&head)?;
        Ok(Self::new(sink, layout, datime, 0, true))
    }

    /// Updates an existing file, to which `sink` appends.
    pub fn update(sink: Box<dyn ByteSink>, file: &File) -> Result<Self> {
        let datime = datime();
        let layout = file.attempt_with_directories(|fetched| FileLayout::update(fetched, datime))?;
        // Blobs are appended after all records that the file may refer to.
        let gap = layout.start().saturating_sub(sink.position());
        Ok(Self::new(sink, layout, datime, gap, false))
    }

    fn new(sink: Box<dyn ByteSink>, layout: FileLayout, datime: u32, gap: u64, is_changed: bool) -> Self {
        let name = sink.to_string();
        let state = State {
            sink: Some(sink),
            closed: None,
            layout,
            is_changed,
            gap: vec![0; gap as usize],
            datime,
            paths: Paths::default(),
            unlisted: HashMap::new(),
            removed: BTreeSet::new(),
            is_reported: false,
        };
        Self { state: Arc::new(Mutex::new(state)), name, process: std::process::id(), own: None }
    }

    /// Locks the state, in the process that opened the file only.
    fn lock(&self) -> Result<MutexGuard<'_, State>> {
        check_process(self.process, "file")?;
        Ok(self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn note(&self, record: Range<u64>) {
        let Some(own) = &self.own else { return };
        let mut own = own.lock().unwrap_or_else(PoisonError::into_inner);
        match own.last_mut() {
            Some(last) if last.end == record.start => last.end = record.end,
            _ => own.push(record),
        }
    }

    /// Appends the pieces as one blob; returns the offset of the first byte after the key.
    fn blob(&self, pieces: &[&[u8]]) -> Result<u64> {
        let mut state = self.lock()?;
        let datime = state.datime;
        let sink = state.change()?;
        let at = sink.position();
        let bytes = pieces.iter().map(|piece| piece.len() as u64).sum();
        if bytes > MAX_KEY_BYTES {
            return Err(Error::limit(format!(
                "blob of {bytes} bytes exceeds the limit of {MAX_KEY_BYTES} of ROOT files"
            )));
        }
        let key = blob_key(at, bytes, datime)?;
        let mut all = Vec::with_capacity(pieces.len() + 1);
        all.push(key.as_slice());
        all.extend_from_slice(pieces);
        sink.append_vectored(&all)?;
        self.note(at..sink.position());
        Ok(at + key.len() as u64)
    }

    /// Appends the pieces in as few blobs as possible; returns the offset of each piece.
    fn blobs(&self, pieces: &[&[u8]]) -> Result<Vec<u64>> {
        let mut offsets = Vec::with_capacity(pieces.len());
        let mut rest = pieces;
        while !rest.is_empty() {
            let mut bytes = 0;
            let fitting = rest.iter().take_while(|piece| {
                bytes += piece.len() as u64;
                bytes <= MAX_KEY_BYTES
            });
            let (blob, others) = rest.split_at(fitting.count().max(1));
            let mut offset = self.blob(blob)?;
            for piece in blob {
                offsets.push(offset);
                offset += piece.len() as u64;
            }
            rest = others;
        }
        Ok(offsets)
    }

    /// Checks that readers of the file take objects of these classes for what they are.
    ///
    /// # Errors
    /// Unsupported where the file describes the same version of a class with other members.
    pub fn check_layouts(&self, infos: &StreamerInfos) -> Result<()> {
        let state = self.lock()?;
        match state.layout.streamer_infos().contradiction(infos) {
            None => Ok(()),
            Some(class) => {
                let (name, version) = (&class.name, class.version);
                Err(Error::unsupported(format!(
                    "the file describes version {version} of class {name} with other members, so that a new object of the \
                     class could not be read; write to another file"
                )))
            }
        }
    }
}

impl PageSink for FileSink {
    fn name(&self) -> &str {
        &self.name
    }

    fn check_open(&self) -> Result<()> {
        self.lock()?.sink().map(|_| ())
    }

    fn position(&self) -> Result<u64> {
        Ok(self.lock()?.sink()?.position())
    }

    fn begin(&self, path: &str, title: &str, cycle: Option<u16>) -> Result<()> {
        let mut state = self.lock()?;
        state.sink()?;
        state.paths.check(path, cycle)?;
        // Limits of the directories are checked now, before any data are written.
        let fits = state.layout.check_add(path, ANCHOR_CLASS, title, ANCHOR_BYTES);
        fits.map_err(|error| Error::invalid_argument(error.to_string()))?;
        state.paths.begin(path, cycle);
        Ok(())
    }

    fn attribute_set(self: Arc<Self>) -> Arc<dyn PageSink> {
        self
    }

    fn put_pages(&self, _: u64, pages: &[PageBytes<'_>]) -> Result<Vec<Locator>> {
        let pieces: Vec<&[u8]> = pages.iter().map(|page| &page.bytes[..]).collect();
        let place = |(offset, page): (u64, &PageBytes<'_>)| Locator::File { offset, bytes: page.stored_bytes() };
        Ok(self.blobs(&pieces)?.into_iter().zip(pages).map(place).collect())
    }

    fn put_envelope(&self, _: EnvelopeType, envelope: &[u8]) -> Result<Locator> {
        Ok(Locator::File { offset: self.blob(&[envelope])?, bytes: envelope.len() as u64 })
    }

    fn put_anchor(&self, name: &str, links: &AnchorLinks) -> Result<(Locator, u32)> {
        let mut state = self.lock()?;
        let datime = state.datime;
        let payload = Anchor::new(links, MAX_KEY_BYTES)?.write();
        let sink = state.change()?;
        let key = unlisted_key(sink.position(), [ANCHOR_CLASS, name, ""], payload.len(), datime)?;
        let (start, offset) = (sink.position(), sink.position() + key.len() as u64);
        sink.append_vectored(&[&key, &payload])?;
        let record = start..sink.position();
        state.unlisted.insert(offset, record.clone());
        self.note(record);
        Ok((Locator::File { offset, bytes: payload.len() as u64 }, ANCHOR_BYTES as u32))
    }

    fn publish(&self, path: &str, title: &str, links: &AnchorLinks) -> Result<()> {
        let mut guard = self.lock()?;
        let state = &mut *guard;
        let payload = Anchor::new(links, MAX_KEY_BYTES)?.write();
        debug_assert_eq!(payload.len(), ANCHOR_BYTES);
        state.change()?;
        let Some(open) = state.paths.get_mut(path) else {
            return Err(Error::invalid_argument(format!("ntuple '{path}' is not open for writing")));
        };
        let listed = match open.cycle {
            Some(cycle) => state.layout.replace(path, cycle, ANCHOR_CLASS, title, payload),
            None => state.layout.add(path, ANCHOR_CLASS, title, payload).map(|cycle| open.cycle = Some(cycle)),
        };
        // The directories may lack both the old and the new anchor: they must not be published.
        listed.map_err(|error| state.poison(error.into()))
    }

    fn release(&self, stored: Stored) {
        let Ok(mut state) = self.lock() else { return };
        let record = match stored {
            Stored::Anchor(locator) => locator.in_file().ok().and_then(|(offset, _)| state.unlisted.remove(&offset)),
            Stored::Envelope(locator) => blob_record(&locator, &locator, 0),
            Stored::Pages(first, last) => {
                let checksum = if last.has_checksum { CHECKSUM_BYTES as u64 } else { 0 };
                blob_record(&first.locator, &last.locator, checksum)
            }
        };
        if let Some(record) = record {
            state.layout.release(record);
        }
    }

    fn has_checkpoints(&self) -> bool {
        // Errors are reported by what is written next.
        self.lock().is_ok_and(|mut state| state.sink().is_ok_and(|sink| sink.has_checkpoints()))
    }

    fn checkpoint(&self) -> Result<()> {
        let mut state = self.lock()?;
        state.put_tail()?;
        Ok(state.sink()?.checkpoint()?)
    }

    fn end(&self, path: &str) {
        if let Ok(mut state) = self.lock() {
            state.paths.end(path);
        }
    }

    fn abandon(&self, path: &str) -> Result<()> {
        let mut guard = self.lock()?;
        let state = &mut *guard;
        let Some(open) = state.paths.close(path).filter(|open| open.is_new) else { return Ok(()) };
        if let Some(cycle) = open.cycle {
            state.layout.remove(&format!("{path};{cycle}"));
            state.is_changed = true;
        }
        let own = self.own.as_ref().map(|own| std::mem::take(&mut *own.lock().unwrap_or_else(PoisonError::into_inner)));
        own.into_iter().flatten().for_each(|record| state.layout.release(record));
        Ok(())
    }

    fn reported(&self) {
        if let Ok(mut state) = self.lock() {
            state.is_reported = true;
        }
    }
}

impl Target for FileSink {
    /// Refuses a path at which a new ntuple would shadow another object, or could not be found.
    fn check_free(&self, path: &str) -> Result<()> {
        match self.lock()?.layout.conflict(path, ANCHOR_CLASS) {
            Some(taken) => Err(Error::invalid_argument(taken + "; use another name for the ntuple")),
            None => Ok(()),
        }
    }

    /// The same file for one ntuple. Its records are tracked, to be freed if it is [abandoned](Self::abandon).
    fn for_ntuple(&self) -> Arc<dyn PageSink> {
        Arc::new(Self { own: Some(Arc::default()), ..self.clone() })
    }

    fn file(&self) -> Result<&FileSink> {
        Ok(self)
    }

    /// Adds layouts of classes to the file's streamer info.
    fn add_streamer_info(&self, infos: &StreamerInfos) -> Result<()> {
        let mut state = self.lock()?;
        state.sink()?;
        state.is_changed |= state.layout.add_streamer_info(infos);
        Ok(())
    }

    /// The object becomes the newest cycle of its path.
    fn put_object(&self, path: &str, title: &str, object: &Object, compression: Compression) -> Result<()> {
        let payload = Payload::compressed(&object.write()?, compression)?;
        let mut state = self.lock()?;
        state.list(path, [object.class_name(), title], payload)?;
        state.layout.add_streamer_info(&object.layouts());
        Ok(())
    }

    /// Closes the file and makes it visible under its name.
    fn commit(&self) -> Result<()> {
        let mut state = self.lock()?;
        let open = state.paths.first_open().map(|path| format!("'{path}' was not finished"));
        if let Some(why) = state.closed.clone().or(open) {
            let kept = state.abort(&why)?;
            let what = format!("{why}; the file was not written{}", kept_aside(kept.as_deref()));
            return Err(Error::invalid_argument(what));
        }
        state.put_last_tail().inspect_err(|_| state.is_reported = true)?;
        state.closed = Some("the file is finished".to_owned());
        state.sink.take().map_or(Ok(()), |sink| Ok(sink.commit()?))
    }

    /// Aborts the file: restores the last checkpoint, and returns where that is kept if not under the file's name.
    fn abort(&self) -> Result<Option<String>> {
        self.lock()?.abort("the file was aborted")
    }

    /// Aborts a file whose writer was dropped, and prints a warning: the caller gets no error.
    fn forget(&self) -> Option<String> {
        // A forked child does not own the file.
        let mut state = self.lock().ok()?;
        state.sink.as_ref()?;
        let name = &self.name;
        match state.abort("the writer of the file was dropped") {
            Ok(None) if state.is_reported => None,
            Ok(kept) => Some(format!("{name} was not finished{}", kept_aside(kept.as_deref()))),
            Err(error) => Some(format!("{name} was not finished and could not be cleaned up: {error}")),
        }
    }
}

/// The record of a blob, including its key: from its first piece to its last one and the bytes after that.
fn blob_record(first: &Locator, last: &Locator, after: u64) -> Option<Range<u64>> {
    let ((start, _), (offset, bytes)) = (first.in_file().ok()?, last.in_file().ok()?);
    Some(start.saturating_sub(BLOB_KEY_BYTES)..offset + bytes + after)
}

/// The place of the last checkpoint of an unfinished file, for messages.
fn kept_aside(kept: Option<&str>) -> String {
    kept.map_or_else(String::new, |kept| format!("; its last checkpoint is kept in {kept}"))
}

impl State {
    fn sink(&mut self) -> Result<&mut Box<dyn ByteSink>> {
        if let Some(why) = &self.closed {
            return Err(Error::invalid_argument(format!("{why}; nothing more can be written")));
        }
        self.sink.as_mut().ok_or_else(|| Error::invalid_argument("the file is closed"))
    }

    /// The sink, for a change that is published later.
    fn change(&mut self) -> Result<&mut Box<dyn ByteSink>> {
        self.is_changed = true;
        let gap = std::mem::take(&mut self.gap);
        let sink = self.sink()?;
        if !gap.is_empty() {
            sink.append(&gap)?;
        }
        Ok(sink)
    }

    /// Marks the file as poisoned by an error: its layout must not be published.
    #[cold]
    fn poison(&mut self, error: Error) -> Error {
        self.closed.get_or_insert_with(|| format!("the directories of the file could not be written ({error})"));
        self.is_reported = true;
        error
    }

    /// Lists an object under a path, whose newest cycle it becomes.
    fn list(&mut self, path: &str, [class_name, title]: [&str; 2], payload: Payload) -> Result<()> {
        self.sink()?;
        self.paths.check(path, None)?;
        self.check_object(path, class_name, title, payload.object_bytes())?;
        self.change()?;
        self.layout.add(path, class_name, title, payload).map_err(|error| self.poison(error.into()))?;
        Ok(())
    }

    /// Refuses an object that cannot be added.
    fn check_object(&self, path: &str, class_name: &str, title: &str, object_bytes: usize) -> Result<()> {
        if let Some(taken) = self.layout.conflict(path, class_name) {
            return Err(Error::invalid_argument(taken + "; use another name for the object"));
        }
        let fits = self.layout.check_add(path, class_name, title, object_bytes);
        fits.map_err(|error| Error::invalid_argument(error.to_string()))
    }

    /// Appends directories, streamer info and free list, and patches the references to them. Does nothing if nothing has
    /// changed.
    fn put_tail(&mut self) -> Result<()> {
        self.sink()?;
        if !self.is_changed {
            return Ok(());
        }
        let end = self.change()?.position();
        let tail = self.layout.finish(end).map_err(|error| self.poison(error.into()))?;
        let sink = self.sink()?;
        sink.append(&tail.append)?;
        for (offset, bytes) in &tail.patches {
            sink.patch(*offset, bytes)?;
        }
        self.is_changed = false;
        Ok(())
    }

    fn abort(&mut self, why: &str) -> Result<Option<String>> {
        self.closed.get_or_insert_with(|| why.to_owned());
        match self.sink.take() {
            Some(sink) => Ok(sink.abort()?),
            None => Ok(None),
        }
    }
}

/// The current time in UTC, packed as ROOT does (`TDatime`).
pub fn datime() -> u32 {
    let now = jiff::Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC);
    let year = (i32::from(now.year()) - 1995).clamp(0, 63).unsigned_abs();
    let field = |value: i8| u32::from(value.unsigned_abs());
    year << 26
        | field(now.month()) << 22
        | field(now.day()) << 17
        | field(now.hour()) << 12
        | field(now.minute()) << 6
        | field(now.second())
}

#[cfg(test)]
mod tests {
    use tupelo_storage::{MemoryFile, MemorySink};

    use super::*;

    /// A sink that returns a wrong position while the flag is set.
    #[derive(Debug)]
    struct Lying(MemorySink, Arc<Mutex<bool>>);

    impl std::fmt::Display for Lying {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            self.0.fmt(f)
        }
    }

    impl ByteSink for Lying {
        fn position(&self) -> u64 {
            if *self.1.lock().unwrap() { 1 } else { self.0.position() }
        }
        fn append(&mut self, bytes: &[u8]) -> tupelo_storage::Result<()> {
            self.0.append(bytes)
        }
        fn patch(&mut self, offset: u64, bytes: &[u8]) -> tupelo_storage::Result<()> {
            self.0.patch(offset, bytes)
        }
        fn checkpoint(&mut self) -> tupelo_storage::Result<()> {
            self.0.checkpoint()
        }
        fn commit(self: Box<Self>) -> tupelo_storage::Result<()> {
            Box::new(self.0).commit()
        }
        fn abort(self: Box<Self>) -> tupelo_storage::Result<Option<String>> {
            Box::new(self.0).abort()
        }
    }

    /// The layout was partly updated, and a later commit would have published it.
    #[test]
    fn nothing_is_published_after_a_layout_that_failed() {
        let (target, lies) = (MemoryFile::new(), Arc::new(Mutex::new(false)));
        let sink = Box::new(Lying(MemorySink::create(&target), lies.clone()));
        let file = FileSink::create(sink, "x.root", "").unwrap();
        *lies.lock().unwrap() = true;
        let error = file.checkpoint().unwrap_err();
        assert!(error.to_string().contains("blobs from byte"), "{error}");
        *lies.lock().unwrap() = false;
        for error in [file.checkpoint(), file.blob(&[b"x"]).map(|_| ()), file.begin("n", "", None), file.commit()] {
            let text = error.unwrap_err().to_string();
            assert!(
                text.contains("the directories of the file could not be written (invalid range of blobs from byte"),
                "{text}"
            );
        }
        assert_eq!(target.bytes(), None);
        assert!(file.lock().unwrap().is_reported);
    }
}
