//! Entry-wise access, as in an event loop.

use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, RecordBatch};
use arrow_buffer::OffsetBuffer;
use tupelo::reader::{Batches, Read};
use tupelo::{Error, Result};

use crate::event::{Event, Selection};

/// So many entries in a row, each near to the one before, are taken for the beginning of a sequence.
const NEAR_ONES: u32 = 4;
/// Bytes of entries that are decoded together, in memory.
const PIECE_BYTES: u64 = 1 << 20;

/// Loads variables entry by entry. Entries in ascending order are decoded in pieces, the next one while the last one is in
/// use, so that no page is decoded twice; of an entry that is far from the one before, only the pages are read that hold
/// it, and kept, decompressed, for others.
///
/// ```no_run
/// let event = tupelo_xaod::Event::open(tupelo::open("DAOD_PHYSLITE.root"))?;
/// let jets = event.select("AnalysisJets", ["pt", "eta"])?;
/// let mut entries = event.entry_wise(vec![jets])?;
/// for entry in 0..event.entries() {
///     entries.load(entry)?;
///     let (pt, range) = entries.values(0, 0).expect("the first variable of the first container");
///     println!("{} jets: {:?}", range.len(), pt.slice(range.start, range.len()));
/// }
/// # Ok::<(), tupelo::Error>(())
/// ```
#[derive(Debug)]
pub struct EntryWise {
    event: Event,
    selections: Vec<Selection>,
    read: Read,
    /// The entries that follow the piece.
    stream: Option<Batches>,
    piece: Range<u64>,
    records: Option<RecordBatch>,
    columns: Vec<Column>,
    entry: u64,
    /// Entries of about a piece: one that is at most as far away is reached by decoding those before it.
    near: u64,
    /// How many entries in a row were near to the one before.
    near_ones: u32,
    pieces: u64,
}

/// A container in the piece.
#[derive(Debug)]
struct Column {
    /// Where the elements of each entry begin, and where the last one ends; `None` for objects.
    offsets: Option<OffsetBuffer<i64>>,
    variables: Vec<ArrayRef>,
}

impl Event {
    /// Prepares entry-wise access to the selected variables. Nothing is read yet.
    ///
    /// # Errors
    /// Not found for a selection of another event; invalid argument without any variable; those of reading page lists.
    pub fn entry_wise(&self, selections: Vec<Selection>) -> Result<EntryWise> {
        let paths = self.paths(&selections)?;
        if paths.is_empty() {
            return Err(Error::invalid_argument("no variable is selected"));
        }
        let read = self.table().read(&paths)?;
        let near = ((PIECE_BYTES as f64 / read.bytes_per_entry()?.max(1.0)) as u64).max(1);
        let (event, columns) = (self.clone(), Vec::new());
        Ok(EntryWise {
            event,
            selections,
            read,
            stream: None,
            piece: 0..0,
            records: None,
            columns,
            entry: 0,
            near,
            near_ones: 0,
            pieces: 0,
        })
    }
}

impl EntryWise {
    /// The selected variables, in the order in which they were given.
    pub fn selections(&self) -> &[Selection] {
        &self.selections
    }

    /// Makes the values of an entry available. Returns whether others had to be decoded first: false if they were in memory.
    ///
    /// # Errors
    /// Those of reading; invalid argument for an entry that does not exist; unsupported, with container, variable and entry,
    /// where a variable has another number of values than the container has elements.
    #[inline]
    pub fn load(&mut self, entry: u64) -> Result<bool> {
        self.entry = entry;
        if self.piece.contains(&entry) { Ok(false) } else { self.decode(entry).map(|()| true) }
    }

    #[cold]
    fn decode(&mut self, entry: u64) -> Result<()> {
        if entry >= self.event.entries() {
            let what = format!("entry {entry} does not exist: there are {}", self.event.entries());
            return Err(Error::invalid_argument(what));
        }
        let is_near = entry >= self.piece.end && entry - self.piece.end < self.near;
        self.near_ones = if is_near { self.near_ones + 1 } else { 0 };
        if !is_near {
            self.stream = None;
        }
        // The first entry is probably followed by all others. Single ones may be near by chance.
        if self.stream.is_none() && entry > 0 && self.near_ones < NEAR_ONES {
            return self.decode_only(entry);
        }
        if self.stream.is_none() {
            self.stream = Some(self.read.clone().entries(entry..).batches_of_bytes(PIECE_BYTES)?);
        }
        while let Some(stream) = &mut self.stream {
            let first = Batches::position(stream);
            let Some(batch) = stream.next().transpose()? else { break };
            let end = Batches::position(stream);
            if entry < end {
                return self.keep(&batch, first..end);
            }
        }
        self.decode_only(entry)
    }

    /// Decodes a single entry.
    fn decode_only(&mut self, entry: u64) -> Result<()> {
        let batch = self.read.clone().with_kept_pages().entries(entry..=entry).to_batch()?;
        self.keep(&batch, entry..entry + 1)
    }

    fn keep(&mut self, batch: &RecordBatch, piece: Range<u64>) -> Result<()> {
        let records = self.event.records(&self.selections, Some(batch), piece.clone())?;
        self.columns = records.columns().iter().map(column).collect();
        self.records = Some(records);
        self.piece = piece;
        self.pieces += 1;
        Ok(())
    }

    /// Number of pieces that were decoded.
    pub fn pieces(&self) -> u64 {
        self.pieces
    }

    /// The entries in memory.
    pub fn piece(&self) -> Range<u64> {
        self.piece.clone()
    }

    /// The values of the entries in memory, as [`Event::read`] returns them; `None` if nothing was loaded.
    pub fn records(&self) -> Option<&RecordBatch> {
        self.records.as_ref()
    }

    /// The values of a variable of a selection, both counted from 0, in the entry that was loaded last: an array and the
    /// range of the entry in it, with a value for each element of a container and one for an object. `None` if there is no
    /// such variable, or nothing was loaded.
    #[inline]
    pub fn values(&self, selection: usize, variable: usize) -> Option<(&ArrayRef, Range<usize>)> {
        let column = self.columns.get(selection)?;
        let values = column.variables.get(variable)?;
        let row = usize::try_from(self.entry.checked_sub(self.piece.start)?).ok()?;
        let range = match &column.offsets {
            Some(offsets) => *offsets.get(row)? as usize..*offsets.get(row + 1)? as usize,
            None => row..row + 1,
        };
        Some((values, range))
    }
}

fn column(array: &ArrayRef) -> Column {
    match array.as_list_opt::<i64>() {
        Some(list) => {
            let variables = list.values().as_struct().columns().to_vec();
            Column { offsets: Some(list.offsets().clone()), variables }
        }
        None => Column { offsets: None, variables: array.as_struct().columns().to_vec() },
    }
}
