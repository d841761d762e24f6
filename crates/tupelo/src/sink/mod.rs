//! Where sealed pages and envelopes go: blobs in a ROOT file.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tupelo_format::container::{
    ANCHOR_BYTES, Anchor, Fetched, Interrupt, Layout, StreamerInfos, blob_key, unlisted_key,
};
use tupelo_format::locator::Locator;
use tupelo_format::open::{ANCHOR_CLASS, first_guess};
use tupelo_storage::{ByteSink, ByteSource};

use crate::{Error, Result};

/// Largest blob under one key of the file, in bytes; ROOT's value, which the anchor repeats.
pub(crate) const MAX_KEY_BYTES: u64 = 1 << 30;

/// A ROOT file that is being written, shared by the writers of its ntuples.
#[derive(Debug, Clone)]
pub(crate) struct FileSink {
    state: Arc<Mutex<State>>,
    name: String,
}

#[derive(Debug)]
struct State {
    /// `None` once the file is finished or given up.
    sink: Option<Box<dyn ByteSink>>,
    layout: Layout,
    datime: u32,
    /// Ntuples that were begun and not finished.
    open: Vec<Open>,
    /// Paths of those that were finished.
    finished: Vec<String>,
    name: String,
    /// Whether the caller has had an error that says why the file cannot be finished.
    is_told: bool,
}

/// An ntuple that is being written, and the cycle under which it is listed once it is.
#[derive(Debug)]
struct Open {
    path: String,
    cycle: Option<u16>,
}

impl FileSink {
    /// A new file.
    pub(crate) fn create(mut sink: Box<dyn ByteSink>, file_name: &str) -> Result<Self> {
        let datime = datime();
        let (layout, head) = Layout::create(file_name, datime, uuid::Uuid::new_v4().into_bytes())?;
        sink.append(&head)?;
        Ok(Self::new(sink, layout, datime))
    }

    /// An existing file, whose bytes `source` reads and `sink` adds to.
    pub(crate) fn update(mut sink: Box<dyn ByteSink>, source: &dyn ByteSource) -> Result<Self> {
        let datime = datime();
        let size = source.size()?;
        let mut fetched = Fetched::new(size);
        let mut wanted = first_guess(size);
        let layout = loop {
            for (range, bytes) in wanted.iter().zip(source.read_ranges(&wanted)?) {
                fetched.provide(range.start, bytes);
            }
            match Layout::update(&fetched, datime) {
                Ok(layout) => break layout,
                Err(Interrupt::Need(ranges)) => wanted = ranges,
                Err(Interrupt::Failed(error)) => return Err(error.into()),
            }
        };
        // Blobs go behind everything that the file may still reach.
        let gap = layout.start().saturating_sub(sink.position());
        sink.append(&vec![0; gap as usize])?;
        Ok(Self::new(sink, layout, datime))
    }

    fn new(sink: Box<dyn ByteSink>, layout: Layout, datime: u32) -> Self {
        let name = sink.to_string();
        let state = State {
            sink: Some(sink),
            layout,
            datime,
            open: Vec::new(),
            finished: Vec::new(),
            name: name.clone(),
            is_told: false,
        };
        Self { state: Arc::new(Mutex::new(state)), name }
    }

    /// The file's name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that an ntuple was begun; `cycle` is that of one that is continued.
    pub(crate) fn begin(&self, path: &str, title: &str, cycle: Option<u16>) -> Result<()> {
        let mut state = self.lock();
        state.sink()?;
        if state.open.iter().any(|open| open.path == path) {
            return Err(Error::invalid_argument(format!("ntuple '{path}' is being written already")));
        }
        if cycle.is_some() && state.finished.iter().any(|finished| finished == path) {
            let what = "was finished by this writer; finish the file, and open it again to continue it";
            return Err(Error::invalid_argument(format!("ntuple '{path}' {what}")));
        }
        // What the directories cannot hold is to be known now, and not when all is written.
        let mut trial = state.layout.clone();
        let others = state.open.iter().map(|open| (open.path.as_str(), ""));
        for (path, title) in others.chain([(path, title)]) {
            let added = trial.add(path, ANCHOR_CLASS, title, vec![0; ANCHOR_BYTES]);
            added.map_err(|error| Error::invalid_argument(error.to_string()))?;
        }
        state.open.push(Open { path: path.to_owned(), cycle });
        Ok(())
    }

    /// Appends the pieces as one blob; gives the offset of the first byte behind the key.
    pub(crate) fn blob(&self, pieces: &[&[u8]]) -> Result<u64> {
        let mut state = self.lock();
        let datime = state.datime;
        let sink = state.sink()?;
        let at = sink.position();
        let bytes = pieces.iter().map(|piece| piece.len() as u64).sum();
        if bytes > MAX_KEY_BYTES {
            return Err(Error::limit(format!("{bytes} bytes in one piece, where ROOT files hold {MAX_KEY_BYTES}")));
        }
        let key = blob_key(at, bytes, datime)?;
        let mut all = Vec::with_capacity(pieces.len() + 1);
        all.push(key.as_slice());
        all.extend_from_slice(pieces);
        sink.append_vectored(&all)?;
        Ok(at + key.len() as u64)
    }

    /// Says that a record, its key included, is not used any more once the next state of the file is.
    pub(crate) fn release(&self, record: Range<u64>) {
        self.lock().layout.release(record);
    }

    /// Appends the anchor of an ntuple that no directory lists; gives its place, and that of the whole record.
    pub(crate) fn put_anchor(&self, name: &str, anchor: &Anchor) -> Result<(Locator, Range<u64>)> {
        let mut state = self.lock();
        let datime = state.datime;
        let payload = anchor.write();
        let sink = state.sink()?;
        let key = unlisted_key(sink.position(), [ANCHOR_CLASS, name, ""], payload.len(), datime)?;
        let (start, offset) = (sink.position(), sink.position() + key.len() as u64);
        sink.append_vectored(&[&key, &payload])?;
        Ok((Locator::File { offset, bytes: payload.len() as u64 }, start..sink.position()))
    }

    /// Lists an ntuple in the file's directories, in place of its earlier anchor.
    pub(crate) fn publish(&self, path: &str, title: &str, anchor: &Anchor) -> Result<()> {
        let mut guard = self.lock();
        let state = &mut *guard;
        let payload = anchor.write();
        debug_assert_eq!(payload.len(), ANCHOR_BYTES);
        let Some(open) = state.open.iter_mut().find(|open| open.path == path) else {
            return Err(Error::invalid_argument(format!("ntuple '{path}' is not being written")));
        };
        if let Some(cycle) = open.cycle {
            state.layout.remove(&format!("{path};{cycle}"));
        }
        open.cycle = Some(state.layout.add(path, ANCHOR_CLASS, title, payload)?);
        Ok(())
    }

    /// Notes that an ntuple is finished.
    pub(crate) fn end(&self, path: &str) {
        let mut state = self.lock();
        state.open.retain(|open| open.path != path);
        state.finished.push(path.to_owned());
    }

    /// Makes what is published so far readable and durable.
    pub(crate) fn checkpoint(&self) -> Result<()> {
        let mut state = self.lock();
        state.put_tail()?;
        Ok(state.sink()?.checkpoint()?)
    }

    /// Adds layouts of classes to the file's streamer info.
    pub(crate) fn add_streamer_info(&self, infos: &StreamerInfos) -> Result<()> {
        let mut state = self.lock();
        state.sink()?;
        state.layout.add_streamer_info(infos);
        Ok(())
    }

    /// Closes the file and makes it visible under its name.
    pub(crate) fn commit(&self) -> Result<()> {
        let mut state = self.lock();
        if let Some(open) = state.open.first() {
            let reason = format!("ntuple '{}' was not finished, so the file is not written", open.path);
            let kept = state.abort()?;
            return Err(Error::invalid_argument(reason + &kept_aside(kept.as_deref())));
        }
        state.put_tail()?;
        match state.sink.take() {
            Some(sink) => Ok(sink.commit()?),
            None => Ok(()),
        }
    }

    /// Notes that the caller gets an error, and need not be told by the destructor once more.
    pub(crate) fn told(&self) {
        self.lock().is_told = true;
    }

    /// Gives the file up: goes back to the last checkpoint, and says where that is kept if not under its name.
    pub(crate) fn abort(&self) -> Result<Option<String>> {
        self.lock().abort()
    }
}

/// Where the last checkpoint of a file is that was not finished, for messages.
fn kept_aside(kept: Option<&str>) -> String {
    kept.map_or_else(String::new, |kept| format!("; its last checkpoint is kept in {kept}"))
}

impl State {
    fn sink(&mut self) -> Result<&mut Box<dyn ByteSink>> {
        self.sink.as_mut().ok_or_else(|| Error::invalid_argument("the file is closed"))
    }

    /// Appends directories, streamer info and free list, and patches what points to them.
    fn put_tail(&mut self) -> Result<()> {
        let end = self.sink()?.position();
        let tail = self.layout.finish(end)?;
        let sink = self.sink()?;
        sink.append(&tail.append)?;
        for (offset, bytes) in &tail.patches {
            sink.patch(*offset, bytes)?;
        }
        Ok(())
    }

    fn abort(&mut self) -> Result<Option<String>> {
        match self.sink.take() {
            Some(sink) => Ok(sink.abort()?),
            None => Ok(None),
        }
    }
}

impl Drop for State {
    /// Whoever forgets to finish a file is told so: nothing else would.
    #[expect(clippy::print_stderr, reason = "a destructor has no other way to speak")]
    fn drop(&mut self) {
        if self.sink.is_none() {
            return;
        }
        match self.abort() {
            Ok(None) if self.is_told => {}
            Ok(kept) => eprintln!("tupelo: {} was not finished{}", self.name, kept_aside(kept.as_deref())),
            Err(error) => eprintln!("tupelo: {} was not finished, and could not be cleaned up: {error}", self.name),
        }
    }
}

/// Now, as ROOT packs it (`TDatime`), in UTC.
fn datime() -> u32 {
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
