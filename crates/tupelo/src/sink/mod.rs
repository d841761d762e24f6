//! Where sealed pages and envelopes go: blobs in a ROOT file.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tupelo_format::container::{ANCHOR_BYTES, Anchor, Fetched, Interrupt, Layout, StreamerInfos, blob_key};
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
    open: Vec<String>,
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
        Self { state: Arc::new(Mutex::new(State { sink: Some(sink), layout, datime, open: Vec::new() })), name }
    }

    /// The file's name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that an ntuple was begun.
    pub(crate) fn begin(&self, path: &str) -> Result<()> {
        let mut state = self.lock();
        state.sink()?;
        if state.open.iter().any(|open| open == path) {
            return Err(Error::invalid_argument(format!("ntuple '{path}' is being written already")));
        }
        state.open.push(path.to_owned());
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

    /// Lists a finished ntuple in the file's directories.
    pub(crate) fn publish(&self, path: &str, title: &str, anchor: &Anchor) -> Result<()> {
        let mut state = self.lock();
        let payload = anchor.write();
        debug_assert_eq!(payload.len(), ANCHOR_BYTES);
        state.layout.add(path, ANCHOR_CLASS, title, payload)?;
        state.open.retain(|open| open != path);
        Ok(())
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
            let error =
                Error::invalid_argument(format!("ntuple '{open}' was not finished, so the file is not written"));
            state.abort()?;
            return Err(error);
        }
        let end = state.sink()?.position();
        let tail = state.layout.finish(end)?;
        let sink = state.sink()?;
        sink.append(&tail.append)?;
        for (offset, bytes) in tail.patches.iter().chain(&tail.marks) {
            sink.patch(*offset, bytes)?;
        }
        match state.sink.take() {
            Some(sink) => Ok(sink.commit()?),
            None => Ok(()),
        }
    }

    /// Gives the file up: nothing new is left under its name.
    pub(crate) fn abort(&self) -> Result<()> {
        self.lock().abort()
    }
}

impl State {
    fn sink(&mut self) -> Result<&mut Box<dyn ByteSink>> {
        self.sink.as_mut().ok_or_else(|| Error::invalid_argument("the file is closed"))
    }

    fn abort(&mut self) -> Result<()> {
        match self.sink.take() {
            Some(sink) => Ok(sink.abort()?),
            None => Ok(()),
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
