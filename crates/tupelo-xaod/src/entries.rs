//! Entry-wise access, as in an event loop.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, RecordBatch};
use arrow_buffer::OffsetBuffer;
use tupelo::reader::{Batches, Location, Read};
use tupelo::{Error, Result};

use crate::event::{Event, Selection};

/// So many entries in a row, each near to the one before, are taken for the beginning of a sequence.
const NEAR_ONES: u32 = 4;
/// Bytes of a piece, in memory.
const PIECE_BYTES: u64 = 1 << 20;

/// Loads variables entry by entry. Entries in ascending order are decoded in pieces, so that no page is decoded twice. Each
/// container has its own pieces, and the next one is decoded while one is in use: those of different containers at different
/// entries, so that no load waits for all of them. From servers, all containers are read together. Of an entry that is far
/// from the one before, only the pages are read that hold it, and kept, decompressed, for others.
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
    /// All of them, for single entries.
    read: Read,
    parts: Vec<Part>,
    /// The pieces in memory, of each selection.
    columns: Vec<Column>,
    /// Whether entries are decoded in pieces.
    is_sequence: bool,
    /// Entries that are in memory, and before which no other piece has to be decoded.
    at_hand: Range<u64>,
    entry: u64,
    /// Entries of about a piece of all selections: one that is at most as far away is reached by decoding those before it.
    near: u64,
    /// How many entries in a row were near to the one before.
    near_ones: u32,
    /// Entries before this one are decoded alone, because a piece with one of them is damaged.
    alone_until: u64,
    decoded: Vec<Decoded>,
    pieces: u64,
}

/// What was decoded in a load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decoded {
    /// The places of the selections.
    pub selections: Range<usize>,
    /// The entries.
    pub entries: Range<u64>,
}

/// Selections that are decoded together.
#[derive(Debug)]
struct Part {
    /// Their places.
    places: Range<usize>,
    read: Read,
    /// What follows the last piece; `None` before the first one, and after an error.
    stream: Option<Batches>,
    /// The next piece, once it is decoded.
    next: Option<Vec<Column>>,
}

/// A container in a piece; without entries at first.
#[derive(Debug, Clone, Default)]
struct Column {
    /// The entries of the piece.
    entries: Range<u64>,
    /// As [`Event::read`] returns it.
    records: Option<ArrayRef>,
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
        let read = self.table().read(&paths)?.with_kept_pages();
        let near = ((PIECE_BYTES as f64 / read.bytes_per_entry()?.max(1.0)) as u64).max(1);
        let is_local = Location::parse(&self.table().file_name()).local_path().is_some();
        // Requests to a server take about as long for one as for all of them.
        let together = if is_local { 1 } else { selections.len() };
        let part = |start| {
            let places = start..start + together;
            let read = self.table().read(self.paths(&selections[places.clone()])?)?.with_kept_pages();
            Ok(Part { places, read, stream: None, next: None })
        };
        let parts = (0..selections.len()).step_by(together).map(part).collect::<Result<_>>()?;
        Ok(EntryWise {
            event: self.clone(),
            selections,
            read,
            parts,
            columns: Vec::new(),
            is_sequence: false,
            at_hand: 0..0,
            entry: 0,
            near,
            near_ones: 0,
            alone_until: 0,
            decoded: Vec::new(),
            pieces: 0,
        })
    }
}

impl EntryWise {
    /// The selected variables, in the order in which they were given.
    pub fn selections(&self) -> &[Selection] {
        &self.selections
    }

    /// Makes the values of an entry available. What is not in memory is decoded first; see [`EntryWise::decoded`].
    ///
    /// # Errors
    /// Those of reading; invalid argument for an entry that does not exist; unsupported, with container, variable and entry,
    /// where a variable has another number of values than the container has elements.
    #[inline]
    pub fn load(&mut self, entry: u64) -> Result<()> {
        self.entry = entry;
        self.decoded.clear();
        if self.at_hand.contains(&entry) {
            return Ok(());
        }
        self.decode(entry)?;
        self.pieces += self.decoded.len() as u64;
        Ok(())
    }

    #[cold]
    fn decode(&mut self, entry: u64) -> Result<()> {
        if entry >= self.event.entries() {
            let what = format!("entry {entry} does not exist: there are {}", self.event.entries());
            return Err(Error::invalid_argument(what));
        }
        let known = self.known();
        if !known.contains(&entry) {
            let is_near = (known.start..known.end.saturating_add(self.near)).contains(&entry);
            self.near_ones = if is_near { self.near_ones + 1 } else { 0 };
            self.is_sequence &= is_near;
            // The first entry is probably followed by all others. Single ones may be near by chance.
            let begins = entry == 0 || self.near_ones >= NEAR_ONES && entry >= self.alone_until;
            if !self.is_sequence && !begins {
                return self.decode_only(entry);
            }
        }
        if !self.is_sequence {
            self.parts.iter_mut().for_each(|part| (part.stream, part.next) = (None, None));
        }
        self.is_sequence = true;
        if self.reach(entry).is_ok() {
            return Ok(());
        }
        // Another entry of a piece may be damaged.
        self.alone_until = entry.saturating_add(self.near);
        self.decode_only(entry)
    }

    /// The entries in memory, of all selections.
    fn known(&self) -> Range<u64> {
        let start = self.columns.iter().map(|column| column.entries.start).max();
        let end = self.columns.iter().map(|column| column.entries.end).min();
        start.unwrap_or(0)..end.unwrap_or(0)
    }

    /// Decodes a single entry.
    fn decode_only(&mut self, entry: u64) -> Result<()> {
        (self.is_sequence, self.at_hand) = (false, 0..0);
        let entries = entry..entry + 1;
        let batch = self.read.clone().entries(entries.clone()).to_batch()?;
        self.columns = columns(&self.event, &self.selections, &batch, &entries)?;
        self.decoded.push(Decoded { selections: 0..self.selections.len(), entries: entries.clone() });
        self.at_hand = entries;
        Ok(())
    }

    /// Makes the pieces with an entry available, and decodes the next ones of the parts whose turn has come.
    fn reach(&mut self, entry: u64) -> Result<()> {
        let Self { event, selections, parts, columns, decoded, .. } = self;
        let (all, turns) = (event.entries(), parts.len() as u64 + 1);
        columns.resize(selections.len(), Column::default());
        self.at_hand = 0..all;
        for (turn, part) in (1..).zip(parts) {
            let own = &mut columns[part.places.clone()];
            while !own[0].entries.contains(&entry) {
                let mut piece = match part.next.take() {
                    Some(piece) => piece,
                    None => part.decode(event, selections, entry, decoded)?,
                };
                own.swap_with_slice(&mut piece);
            }
            let Range { start, end } = own[0].entries;
            let due = start + (end - start) * turn / turns;
            if end < all && part.next.is_none() && entry >= due {
                // An error belongs to the entries of the next piece, and is returned when they are loaded.
                part.next = part.decode(event, selections, end, decoded).ok();
            }
            let is_due_later = end < all && part.next.is_none() && entry < due;
            let until = if is_due_later { due } else { end };
            self.at_hand = self.at_hand.start.max(start)..self.at_hand.end.min(until);
        }
        Ok(())
    }

    /// What the last load decoded, for its entry and for later ones; empty if all was in memory.
    pub fn decoded(&self) -> &[Decoded] {
        &self.decoded
    }

    /// Number of pieces that were decoded.
    pub fn pieces(&self) -> u64 {
        self.pieces
    }

    /// The entries in memory of a selection, and their values as [`Event::read`] returns them. Selections are numbered from 0.
    /// Returns `None` for an unknown selection, and before the first load.
    pub fn piece(&self, selection: usize) -> Option<(Range<u64>, &ArrayRef)> {
        let column = self.columns.get(selection)?;
        Some((column.entries.clone(), column.records.as_ref()?))
    }

    /// The values of a variable of a selection, both counted from 0, in the entry that was loaded last: an array and the
    /// range of the entry in it, with a value for each element of a container and one for an object. `None` if there is no
    /// such variable, or nothing was loaded.
    #[inline]
    pub fn values(&self, selection: usize, variable: usize) -> Option<(&ArrayRef, Range<usize>)> {
        let column = self.columns.get(selection)?;
        let values = column.variables.get(variable)?;
        let row = usize::try_from(self.entry.checked_sub(column.entries.start)?).ok()?;
        let range = match &column.offsets {
            Some(offsets) => *offsets.get(row)? as usize..*offsets.get(row + 1)? as usize,
            None => row..row + 1,
        };
        Some((values, range))
    }
}

impl Part {
    /// Decodes the next piece; the first one begins with an entry.
    fn decode(
        &mut self,
        event: &Event,
        selections: &[Selection],
        entry: u64,
        decoded: &mut Vec<Decoded>,
    ) -> Result<Vec<Column>> {
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => self.read.clone().entries(entry..).batches_of_bytes(PIECE_BYTES)?.decoded_one_by_one(),
        };
        let start = Batches::position(&stream);
        let batch = stream.next().ok_or_else(|| Error::unsupported(format!("entry {entry} was not read")))??;
        let entries = start..Batches::position(&stream);
        let piece = columns(event, &selections[self.places.clone()], &batch, &entries)?;
        self.stream = Some(stream);
        decoded.push(Decoded { selections: self.places.clone(), entries });
        Ok(piece)
    }
}

/// What was read of the fields of some selections: a column for each of them.
fn columns(event: &Event, selections: &[Selection], batch: &RecordBatch, entries: &Range<u64>) -> Result<Vec<Column>> {
    let records = event.records(selections, Some(batch), entries.clone())?;
    let column = |array: &ArrayRef| {
        let (offsets, variables) = match array.as_list_opt::<i64>() {
            Some(list) => (Some(list.offsets().clone()), list.values().as_struct().columns().to_vec()),
            None => (None, array.as_struct().columns().to_vec()),
        };
        Column { entries: entries.clone(), records: Some(Arc::clone(array)), offsets, variables }
    };
    Ok(records.columns().iter().map(column).collect())
}
