//! One read request for the ntuples of many files.

use std::collections::HashSet;
use std::fmt;
use std::ops::{Range, RangeBounds};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{Schema as ArrowSchema, SchemaRef};

use super::fields::{CommonFields, FieldPolicy, UnionFields, add_missing_columns};
use crate::plan::truncated;
use crate::reader::{Batches, Read};
use crate::schema::Schema;
use crate::{Error, ErrorKind, Result};

/// Opens the file of a number and selects what to read; `None` skips the file.
type Open<'a, E> = Box<dyn Fn(usize) -> Result<Option<Read>, E> + Send + 'a>;

/// The same read request for many files, one after the other. Entries are counted through all files, and a batch never
/// spans two. One file is open at a time.
/// ```no_run
/// use tupelo::{OpenOptions, Storage};
/// use tupelo::dataset::{Chain, FieldPolicy, find};
///
/// let files = find(["run*.root:Events"], &Storage::default())?;
/// let read = |file: usize| OpenOptions::at(files[file].clone()).open()?.read(["Muon_*"]).map(Some);
/// let chain = Chain::new(files.len(), FieldPolicy::Common, read)?;
/// for batch in chain.batches_of_bytes(64 << 20) {
///     println!("{}", batch?.num_rows());
/// }
/// # Ok::<(), tupelo::Error>(())
/// ```
pub struct Chain<'a, E = Error> {
    open: Open<'a, E>,
    /// The files that are not skipped.
    files: Vec<Part>,
    entries: u64,
    range: Range<u64>,
    /// The request for the only file, which stays open.
    only: Option<Read>,
    /// The dotted paths to read of every file, where files differ.
    paths: Option<Vec<String>>,
    skipped: Option<String>,
    excluded: Vec<String>,
    schema: Schema,
    arrow_schema: SchemaRef,
    /// What decides the order of the columns; the order of the files if it is empty.
    patterns: Vec<String>,
    /// The columns in the order of the files, and the place of each column of a batch among them.
    stored: SchemaRef,
    order: Option<Vec<usize>>,
}

/// A file of a chain.
#[derive(Debug)]
struct Part {
    /// Its number for [`Open`].
    file: usize,
    /// Its first entry, counted through all files.
    first_entry: u64,
    /// The state of the file that was compared.
    identity: Option<String>,
}

impl<'a, E: From<Error>> Chain<'a, E> {
    /// Compares what `open` selects in each of `files` files, by their metadata. `open` is called again for each file
    /// when that is read.
    ///
    /// # Errors
    /// Those of `open`; invalid argument where files have different types of a field, or no field in common; not found
    /// where no file is left.
    pub fn new(
        files: usize,
        policy: FieldPolicy,
        open: impl Fn(usize) -> Result<Option<Read>, E> + Send + 'a,
    ) -> Result<Self, E> {
        if files == 1 {
            let read = open(0)?.ok_or_else(no_ntuples)?;
            return Self::of_one(0, read, open);
        }
        let (mut common, mut union, mut types) = (CommonFields::default(), UnionFields::default(), Ok(()));
        let (mut found, mut entries, mut last) = (Vec::new(), 0, None);
        for file in 0..files {
            let Some(read) = open(file)? else { continue };
            found.push(Part { file, first_entry: entries, identity: read.source().identity()? });
            entries += read.source().entries();
            common.add(read.schema());
            // Records with skipped members have different types here.
            types = types.and_then(|()| union.add(&read.arrow_schema(), &read.source().file_name()));
            last = Some(read);
        }
        let read = last.ok_or_else(no_ntuples)?;
        if let [part] = found.as_slice() {
            return Self::of_one(part.file, read, open);
        }
        let mut chain = Self { files: found, range: 0..entries, entries, only: None, ..Self::of_one(0, read, open)? };
        if policy == FieldPolicy::Common {
            chain.paths = common.paths()?;
            chain.skipped = common.skipped_text();
        }
        match chain.paths {
            Some(_) => chain.compare()?,
            None => types.and_then(|()| chain.set_schema(union.schema()))?,
        }
        Ok(chain)
    }

    /// The request for one file, which stays open.
    fn of_one(file: usize, read: Read, open: impl Fn(usize) -> Result<Option<Read>, E> + Send + 'a) -> Result<Self, E> {
        let entries = read.source().entries();
        Ok(Self {
            open: Box::new(open),
            files: vec![Part { file, first_entry: 0, identity: None }],
            entries,
            range: 0..entries,
            paths: None,
            skipped: None,
            excluded: Vec::new(),
            schema: read.schema_with_computed()?,
            arrow_schema: read.arrow_schema(),
            patterns: Vec::new(),
            stored: read.arrow_schema(),
            order: None,
            only: Some(read),
        })
    }

    /// Finds the schema of all files.
    fn compare(&mut self) -> Result<(), E> {
        if self.only.is_some() {
            let read = self.read(0)?;
            (self.schema, self.arrow_schema) = (read.schema_with_computed()?, read.arrow_schema());
            return Ok(self.set_order()?);
        }
        let mut union = UnionFields::default();
        for index in 0..self.files.len() {
            let read = self.read(index)?;
            union.add(&read.arrow_schema(), &read.source().file_name())?;
        }
        Ok(self.set_schema(union.schema())?)
    }

    fn set_schema(&mut self, schema: ArrowSchema) -> Result<()> {
        (self.schema, self.arrow_schema) = (Schema::from_arrow(&schema)?, Arc::new(schema));
        self.set_order()
    }

    /// Puts the columns in the order of the patterns.
    fn set_order(&mut self) -> Result<()> {
        self.stored = Arc::clone(&self.arrow_schema);
        let mut ranks = vec![self.patterns.len(); self.schema.fields.len()];
        for (rank, pattern) in self.patterns.iter().enumerate().rev() {
            // Patterns may match fields that are not read.
            for chosen in self.schema.select(&[pattern]).map_or_else(|_| Vec::new(), |chosen| chosen.fields) {
                let place = self.schema.fields.iter().position(|field| field.name == chosen.name);
                place.into_iter().for_each(|place| ranks[place] = rank);
            }
        }
        let mut order: Vec<usize> = (0..ranks.len()).collect();
        order.sort_by_key(|&place| ranks[place]);
        self.order = (!order.is_sorted()).then_some(order);
        if let Some(order) = &self.order {
            let fields = order.iter().map(|&place| self.schema.fields[place].clone()).collect();
            self.schema = Schema { fields };
            self.arrow_schema = self.stored.project(order)?.into();
        }
        Ok(())
    }

    /// The same with the columns in the order in which patterns of [`Read`] name them; of those that one pattern matches,
    /// and of those that none matches, which come last, in the order of the files.
    ///
    /// # Errors
    /// None.
    pub fn in_order_of(mut self, patterns: &[String]) -> Result<Self> {
        self.patterns = patterns.to_vec();
        self.set_order()?;
        Ok(self)
    }

    /// Restricts reading to a range of entries, counted through all files. A range that extends past the last entry is
    /// truncated.
    #[must_use]
    pub fn entries(mut self, range: impl RangeBounds<u64>) -> Self {
        self.range = truncated(range, self.entries);
        self
    }

    /// Number of selected entries, before a cut.
    pub fn count(&self) -> u64 {
        self.range.end - self.range.start
    }

    /// Number of entries of all files.
    pub fn all_entries(&self) -> u64 {
        self.entries
    }

    /// Fields that are not read because some files lack them, as a list for a message; `None` if there are none.
    pub fn skipped_fields(&self) -> Option<&str> {
        self.skipped.as_deref()
    }

    /// The fields of the batches.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// The Arrow schema of the batches.
    pub fn arrow_schema(&self) -> &SchemaRef {
        &self.arrow_schema
    }

    /// What an entry takes in memory on average, in bytes, estimated from the first file with selected entries; see
    /// [`Read::bytes_per_entry`].
    ///
    /// # Errors
    /// Those of opening the file; corrupt where its page lists are damaged.
    pub fn bytes_per_entry(&self) -> Result<f64, E> {
        self.reads().next().map_or(Ok(0.0), |read| Ok(read?.1.bytes_per_entry()?))
    }

    /// The request for the file at an index of the list.
    fn read(&self, index: usize) -> Result<Read, E> {
        let read = match &self.only {
            Some(read) => read.clone(),
            None => {
                let part = &self.files[index];
                let opened = (self.open)(part.file)?;
                let read = opened.ok_or_else(|| Error::not_found("a file no longer contains the ntuple"))?;
                if read.source().identity()? != part.identity {
                    let what = "the file has changed since its fields were compared; read the files again";
                    return Err(read.context(Error::new(ErrorKind::Storage, what)).into());
                }
                read
            }
        };
        let read = match &self.paths {
            Some(paths) => read.with_fields(paths)?,
            None => read,
        };
        if self.excluded.is_empty() {
            return Ok(read);
        }
        // A file of a union may lack some of them.
        let own: HashSet<String> = read.schema().paths().into_iter().map(|(path, _)| path).collect();
        let excluded: Vec<&String> = self.excluded.iter().filter(|path| own.contains(*path)).collect();
        Ok(read.without(excluded)?)
    }

    /// The first entry of the file at an index of the list, and its selected entries, which may be none; `None` after the
    /// last file.
    fn selected(&self, index: usize) -> Option<(u64, Range<u64>)> {
        let first = self.files.get(index)?.first_entry;
        let end = self.files.get(index + 1).map_or(self.entries, |next| next.first_entry);
        let within = |entry: u64| entry.clamp(first, end) - first;
        Some((first, within(self.range.start)..within(self.range.end)))
    }

    /// The files that have selected entries: for each the number of its first entry in the chain, and the request for its
    /// selected entries.
    pub fn reads(&self) -> impl Iterator<Item = Result<(u64, Read), E>> {
        let selected = (0..self.files.len()).filter_map(|index| Some((index, self.selected(index)?)));
        let selected = selected.filter(|(_, (_, range))| !range.is_empty());
        selected.map(|(index, (first, range))| Ok((first, self.read(index)?.entries(range))))
    }

    /// A batch of one file with the columns of all: in their order, with nulls for those that the file lacks.
    ///
    /// # Errors
    /// Invalid argument if the file was changed and its types differ now.
    pub fn conform(&self, batch: RecordBatch) -> Result<RecordBatch> {
        let batch = match batch.schema() == self.stored || self.only.is_some() {
            true => batch,
            false => add_missing_columns(&batch, &self.stored)?,
        };
        match &self.order {
            Some(order) => Ok(batch.project(order)?),
            None => Ok(batch),
        }
    }

    /// The same without the fields of dotted paths and all below them; see [`Read::without`].
    ///
    /// # Errors
    /// Those of [`Chain::new`].
    pub fn without(mut self, paths: Vec<String>) -> Result<Self, E> {
        self.excluded = paths;
        self.compare()?;
        Ok(self)
    }

    /// Batches of about `bytes` bytes in memory; see [`Read::batches_of_bytes`].
    pub fn batches_of_bytes(self, bytes: u64) -> ChainBatches<'a, E> {
        ChainBatches { position: self.range.start, chain: self, bytes, next: 0, current: None }
    }
}

/// The batches of a [`Chain`], in entry order.
#[derive(Debug)]
pub struct ChainBatches<'a, E = Error> {
    chain: Chain<'a, E>,
    bytes: u64,
    position: u64,
    /// Index of the next file.
    next: usize,
    /// The first entry of the current file, and its batches.
    current: Option<(u64, Batches)>,
}

impl<E: From<Error>> ChainBatches<'_, E> {
    /// First entry of the next batch, counted through all files.
    pub fn position(&self) -> u64 {
        self.position
    }

    fn advance(&mut self) -> Result<Option<RecordBatch>, E> {
        loop {
            if let Some((first, batches)) = &mut self.current
                && let Some(batch) = batches.next().transpose()?
            {
                self.position = *first + Batches::position(batches);
                return Ok(Some(self.chain.conform(batch)?));
            }
            let Some((first, range)) = self.chain.selected(self.next) else { return Ok(None) };
            self.next += 1;
            if range.is_empty() {
                continue;
            }
            let read = self.chain.read(self.next - 1)?.entries(range);
            self.current = Some((first, read.batches_of_bytes(self.bytes)?));
        }
    }
}

impl<E: From<Error>> Iterator for ChainBatches<'_, E> {
    type Item = Result<RecordBatch, E>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.advance();
        if next.is_err() {
            // An error ends the stream.
            (self.next, self.current) = (self.chain.files.len(), None);
        }
        next.transpose()
    }
}

fn no_ntuples() -> Error {
    Error::not_found("no ntuples to read: the list of files is empty, or no file contains one")
}

impl<E> fmt::Debug for Chain<'_, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { files, range, paths, .. } = self;
        let chain = &mut f.debug_struct("Chain");
        chain.field("files", files).field("range", range).field("paths", paths).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use arrow_array::cast::AsArray;
    use arrow_array::types::Int32Type;
    use arrow_array::{ArrayRef, Int32Array, StructArray};
    use arrow_schema::{DataType, Field as ArrowField};

    use super::*;
    use crate::schema::tighten;
    use crate::{ErrorKind, WriteOptions};

    fn zeros() -> ArrayRef {
        Arc::new(Int32Array::from(vec![0; 3]))
    }

    fn write(path: &Path, batch: &RecordBatch) {
        let file = crate::create(path).unwrap();
        let schema = Schema::from_arrow(&tighten(batch)).unwrap();
        let mut ntuple = file.ntuple("events", &schema, WriteOptions::default()).unwrap();
        ntuple.write(batch).unwrap();
        ntuple.finish().unwrap();
        file.finish().unwrap();
    }

    /// Files of three entries each, with `x` from 10 times the number of the file on, and other columns of zeros.
    fn files(columns: &[&[&'static str]]) -> (tempfile::TempDir, Vec<String>) {
        let folder = tempfile::tempdir().unwrap();
        let file = |(number, columns): (usize, &&[&'static str])| {
            let path = folder.path().join(format!("{number}.root"));
            let array = |&name: &&'static str| {
                let first = if name == "x" { 10 * number as i32 } else { 0 };
                (name, Arc::new(Int32Array::from_iter_values((first..).take(3))) as ArrayRef)
            };
            let batch = RecordBatch::try_from_iter(columns.iter().map(array)).unwrap();
            write(&path, &batch);
            path.to_str().unwrap().to_owned()
        };
        let paths = columns.iter().enumerate().map(file).collect();
        (folder, paths)
    }

    fn chain(paths: &[String], policy: FieldPolicy) -> Result<Chain<'_>> {
        Chain::new(paths.len(), policy, |file| Ok(Some(crate::open(&paths[file]).open()?.read_all())))
    }

    fn values(chain: Chain<'_>) -> Vec<i32> {
        let batches = chain.batches_of_bytes(8).map(|batch| batch.unwrap());
        let x = |batch: RecordBatch| batch.column_by_name("x").unwrap().as_primitive::<Int32Type>().values().to_vec();
        batches.flat_map(x).collect()
    }

    #[test]
    fn entries_count_through_all_files() {
        let (_folder, paths) = files(&[&["x"], &["x"], &["x"]]);
        let all = || chain(&paths, FieldPolicy::Common).unwrap();
        assert_eq!(values(all()), [0, 1, 2, 10, 11, 12, 20, 21, 22]);
        assert_eq!(values(all().entries(2..7)), [2, 10, 11, 12, 20]);
        assert_eq!(values(all().entries(4..)), [11, 12, 20, 21, 22]);
        assert_eq!((values(all().entries(9..)), values(all().entries(3..3))), (vec![], vec![]));
        let firsts = all().entries(2..4).reads().map(|read| read.unwrap().0).collect::<Vec<_>>();
        assert_eq!(firsts, [0, 3]);
        let mut batches = all().entries(2..4).batches_of_bytes(1 << 20);
        let positions: Vec<u64> = std::iter::from_fn(|| batches.next().map(|_| batches.position())).collect();
        assert_eq!(positions, [3, 4]);
    }

    #[test]
    fn files_may_have_other_fields() {
        let (_folder, paths) = files(&[&["a", "x"], &["x", "b"]]);
        let common = chain(&paths, FieldPolicy::Common).unwrap();
        assert_eq!(common.skipped_fields(), Some("a, b"));
        assert_eq!(common.arrow_schema().fields().len(), 1);
        assert_eq!(values(common), [0, 1, 2, 10, 11, 12]);
        let union = chain(&paths, FieldPolicy::Union).unwrap();
        let nulls = |batch: Result<RecordBatch>| batch.unwrap().columns().iter().map(|c| c.null_count()).collect();
        let nulls: Vec<Vec<usize>> = union.batches_of_bytes(1 << 20).map(nulls).collect();
        assert_eq!(nulls, [[0, 0, 3], [3, 0, 0]]);
        let without = chain(&paths, FieldPolicy::Union).unwrap().without(vec!["b".to_owned()]).unwrap();
        assert_eq!(without.arrow_schema().fields().len(), 2);
        assert_eq!(values(without), [0, 1, 2, 10, 11, 12]);
    }

    #[test]
    fn records_are_read_with_the_members_that_all_files_have() {
        let folder = tempfile::tempdir().unwrap();
        let write = |(number, members): (usize, [&str; 2])| {
            let path = folder.path().join(format!("{number}.root"));
            let member = |name| (Arc::new(ArrowField::new(name, DataType::Int32, false)), zeros());
            let record: ArrayRef = Arc::new(StructArray::from(members.map(member).to_vec()));
            write(&path, &RecordBatch::try_from_iter([("r", record)]).unwrap());
            path.to_str().unwrap().to_owned()
        };
        let paths: Vec<String> = [["p", "q"], ["q", "s"]].into_iter().enumerate().map(write).collect();
        let common = chain(&paths, FieldPolicy::Common).unwrap();
        assert_eq!(common.skipped_fields(), Some("r.p, r.s"));
        let members = |batch: Result<RecordBatch>| batch.unwrap().column(0).as_struct().num_columns();
        assert_eq!(common.batches_of_bytes(1 << 20).map(members).collect::<Vec<_>>(), [1, 1]);
        let error = chain(&paths, FieldPolicy::Union).unwrap_err();
        assert!(error.to_string().contains("field 'r' has type"), "{error}");
    }

    /// Regression: entries of the new file were returned as those of the old one.
    #[test]
    fn a_file_that_is_replaced_is_an_error() {
        let (_folder, paths) = files(&[&["x"], &["x"]]);
        let chain = chain(&paths, FieldPolicy::Common).unwrap();
        std::fs::copy(&paths[0], &paths[1]).unwrap();
        let batches: Vec<Result<RecordBatch>> = chain.batches_of_bytes(1 << 20).collect();
        assert_eq!(batches.len(), 2);
        let error = batches[1].as_ref().unwrap_err().to_string();
        assert!(error.contains("1.root") && error.contains("has changed"), "{error}");
    }

    #[test]
    fn files_may_be_skipped_or_fail() {
        let (_folder, paths) = files(&[&["x"], &["x"]]);
        let second = |file: usize| match file {
            0 => Ok(None),
            _ => Ok(Some(crate::open(&paths[file]).open()?.read_all())),
        };
        assert_eq!(values(Chain::new(2, FieldPolicy::Common, second).unwrap()), [10, 11, 12]);
        let none: Error = Chain::new(2, FieldPolicy::Common, |_| Ok(None)).unwrap_err();
        assert_eq!(none.kind(), ErrorKind::NotFound);
        let missing = [paths[0].clone(), "missing.root".to_owned()];
        assert_eq!(chain(&missing, FieldPolicy::Common).unwrap_err().kind(), ErrorKind::NotFound);
    }
}
