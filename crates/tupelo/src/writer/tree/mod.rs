//! Writing trees: the entries of Arrow batches to baskets and clusters.

mod bases;
mod chosen;
mod described;
mod forms;
mod index;
mod moved;
mod options;
mod process_ids;
mod recut;

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field as ArrowField, FieldRef, Schema as ArrowSchema};
use tupelo_core::pool;
use tupelo_format::compression;
use tupelo_format::object::Value;
use tupelo_pages::sink::{FileSink, PageSink, Target, name_of};
use tupelo_schema::schema::{Schema, in_bases, metadata, tighten, with_inner_fields};
use tupelo_ttree::streamer;
use tupelo_ttree::write::{
    BasketPlace, Field as TreeField, FinishedBasket, OpenBasket, Plan, TreeRecord, Written, column,
};

pub use self::chosen::MoveOptions;
pub(crate) use self::forms::{renamed, usual_counters};
pub(crate) use self::index::IndexOfTrees;
pub use self::moved::MovedTreeWriter;
pub use self::options::{
    DEFAULT_AUTO_FLUSH, DEFAULT_BASKET_BYTES, DEFAULT_SPLIT_LEVEL, Jagged, MAX_BASKET_BYTES, TreeOptions,
};
pub(crate) use self::process_ids::CLASS as PROCESS_CLASS;
pub(super) use self::process_ids::carry_first;
use super::WriteProgress;
use crate::{Error, Result};

/// C++ class of trees.
const CLASS: &str = "TTree";
/// Bytes of full baskets that are compressed together: 8 MiB.
const PENDING_BYTES: usize = 8 << 20;
/// Entries after which the size of a cluster is compared, if a number of bytes ends it.
const STEP_ENTRIES: u64 = 256;

/// Fields that cannot be stored in a tree: their dotted paths, and why.
pub(crate) fn without_branch(schema: &Schema, options: &TreeOptions) -> Result<Vec<(String, Error)>> {
    let planning = options.planning()?;
    let plan = |schema: &Schema| {
        Ok(Plan::new("tree", &forms::fields(&bases::with_bases(schema, options), options)?, planning)?)
    };
    let mut found = Vec::new();
    if plan(schema).is_ok() {
        return Ok(found);
    }
    for field in &schema.fields {
        let before = found.len();
        forms::without_branch(field, options, &mut found);
        if found.len() == before {
            let alone: Result<Plan> = plan(&Schema { fields: vec![field.clone()] });
            found.extend(alone.err().map(|error| (field.name.clone(), error)));
        }
    }
    Ok(found)
}

/// Writes one tree. It must be finished before its file can be.
#[derive(Debug)]
pub struct TreeWriter {
    sink: FileSink,
    path: String,
    options: TreeOptions,
    schema: Schema,
    /// Arrow types of the columns.
    types: Vec<DataType>,
    plan: Plan,
    /// Lists whose counters are fields: the indices of both.
    counted: Vec<(usize, usize)>,
    /// The open basket of each branch.
    open: Vec<OpenBasket>,
    written: Vec<Written>,
    pending: Vec<Pending>,
    pending_bytes: usize,
    entries: u64,
    clusters: u64,
    /// The first entry of the open cluster.
    cluster_start: u64,
    /// Entries of a cluster, once they are known.
    cluster_entries: Option<u64>,
    flushed_bytes: u64,
    /// Clusters that were ended by the caller: last entry of a range, and entries of a cluster in it.
    ranges: Vec<(u64, u64)>,
    /// Why nothing more can be written.
    closed: Option<String>,
}

/// A full basket.
#[derive(Debug)]
struct Pending {
    branch: usize,
    first_entry: u64,
    basket: FinishedBasket,
}

impl TreeWriter {
    /// Begins a tree in a file.
    pub(super) fn create(target: &dyn Target, path: &str, schema: &Schema, options: TreeOptions) -> Result<Self> {
        let name = name_of(path);
        if name.is_empty() || name.contains(';') {
            return Err(Error::invalid_argument(format!("'{path}' is not a valid name for a tree")));
        }
        let planning = options.planning()?;
        let stored = bases::with_bases(schema, &options);
        let fields = forms::fields(&stored, &options)?;
        let plan = Plan::new(name, &fields, planning)?;
        let plan = Plan { infos: options.as_described(&plan.infos), ..plan };
        let place = |name: &str| fields.iter().position(|field| field.name == name);
        let counter = |field: &TreeField| field.counter.as_deref().and_then(place);
        let lists = fields.iter().enumerate().filter(|(_, field)| field.is_counted(planning.jagged));
        let counted = lists.filter_map(|(list, field)| Some((list, counter(field)?))).collect();
        let sink = target.file()?.for_object();
        sink.check_layouts(&streamer::classes(|name, version| version > 0 && plan.infos.named(name).next().is_some()))?;
        sink.begin_object(path, CLASS, options.title())?;
        let open = plan.branches.iter().map(OpenBasket::new).collect();
        let none = Written { basket_bytes: options.basket_bytes, ..Written::default() };
        let types = stored.to_arrow(true).fields().iter().map(|field| field.data_type().clone()).collect();
        Ok(Self {
            sink,
            path: path.to_owned(),
            schema: schema.clone(),
            types,
            open,
            written: vec![none; plan.branches.len()],
            plan,
            counted,
            pending: Vec::new(),
            pending_bytes: 0,
            entries: 0,
            clusters: 0,
            cluster_start: 0,
            cluster_entries: u64::try_from(options.auto_flush).ok().filter(|&entries| entries > 0),
            flushed_bytes: 0,
            ranges: Vec::new(),
            closed: None,
            options,
        })
    }

    /// Entries written so far.
    pub fn entries(&self) -> u64 {
        self.entries
    }

    /// The fields that a batch must have.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Appends all entries of a batch. Its columns must be the fields of the schema.
    ///
    /// # Errors
    /// Invalid argument if columns do not match the schema, contain nulls, or have other numbers of items than those with
    /// the same counter: then nothing of the batch is written. Storage errors, after which the tree cannot be finished.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let columns = self.check_open().and_then(|()| self.columns(batch)).map_err(|error| self.context(error))?;
        self.append(&columns, batch.num_rows()).map_err(|error| self.poison(error))
    }

    /// Ends the open cluster: stores all baskets, and records the range of entries (`TTree::FlushBaskets`). Does nothing if
    /// it has no entries.
    ///
    /// # Errors
    /// Storage errors, after which the tree cannot be finished.
    pub fn flush_cluster(&mut self) -> Result<()> {
        self.check_open().map_err(|error| self.context(error))?;
        if self.entries == self.cluster_start {
            return Ok(());
        }
        let before = self.ranges.last().map_or(0, |range| range.0 + 1);
        let size = self.cluster_entries.unwrap_or(self.entries - before);
        self.end_cluster().map_err(|error| self.poison(error))?;
        self.ranges.push((self.entries - 1, size));
        Ok(())
    }

    /// Writes the remaining data and the tree itself. It becomes visible when its file is finished, and accepts no more
    /// data.
    ///
    /// # Errors
    /// Storage errors, or an error if an earlier call failed; limit for a tree whose record is longer than 1 GiB.
    pub fn finish(&mut self) -> Result<WriteProgress> {
        self.check_open().map_err(|error| self.context(error))?;
        self.try_finish().map_err(|error| self.poison(error))
    }

    /// Abandons the tree: its name is free again. Other objects of the file are not affected.
    ///
    /// # Errors
    /// Invalid argument in a process other than the one that began the tree.
    pub fn abandon(self) -> Result<()> {
        self.sink.abandon(&self.path).map_err(|error| self.context(error))
    }

    /// The names of the branches that are not parts of others.
    pub(crate) fn branch_names(&self) -> Vec<String> {
        self.plan.branches.iter().filter(|it| it.parent.is_none()).map(|it| it.name.clone()).collect()
    }

    fn check_open(&self) -> Result<()> {
        match &self.closed {
            Some(why) => Err(Error::invalid_argument(format!("{why}, so nothing more can be written"))),
            None => self.sink.check_open(),
        }
    }

    /// The columns of all branches, in the types that their encodings take.
    fn columns(&mut self, batch: &RecordBatch) -> Result<Vec<Option<ArrayRef>>> {
        // Names of types do not matter: vectors, sets and other collections are branches of the same kind.
        let order = unnamed(&self.schema.to_arrow(true))?.order_of(&unnamed(&tighten(batch))?)?;
        let mut fields = Vec::with_capacity(order.len());
        for (place, wanted) in order.iter().zip(&self.types) {
            fields.push(converted(batch.column(*place), wanted)?);
        }
        for &(list, counter) in &self.counted {
            self.check_counter(&fields[list], &fields[counter], [list, counter])?;
        }
        let mut columns = Vec::with_capacity(self.plan.branches.len());
        for branch in &self.plan.branches {
            columns.push(match &branch.values {
                Some((path, _)) => {
                    match path.split_first().and_then(|(&field, below)| Some((fields.get(field)?, below))) {
                        Some((field, below)) => Some(column(field, below)?),
                        None => None,
                    }
                }
                None => None,
            });
        }
        for (branch, array) in self.plan.branches.iter().zip(&columns) {
            if let Some(array) = array.as_ref().filter(|_| branch.is_text()) {
                check_text(array, self.entries).map_err(|error| error.in_field(&branch.name))?;
            }
            let counter = branch.counter().and_then(|counter| Some((counter, columns.get(counter)?.as_ref()?)));
            if let (Some((counter, counts)), Some(array)) = (counter, array)
                && !has_same_lengths(array, counts)
            {
                let counter = self.plan.branches.get(counter).map_or("", |counter| counter.name.as_str());
                let what = format!("differs in its numbers of items from the lists with the same counter '{counter}'");
                return Err(Error::invalid_argument(what).in_field(&branch.name));
            }
        }
        Ok(columns)
    }

    /// Refuses numbers of items that contradict the list.
    fn check_counter(&self, list: &ArrayRef, counts: &ArrayRef, names: [usize; 2]) -> Result<()> {
        match contradiction(list, counts)? {
            None => Ok(()),
            Some((entry, count, length)) => {
                let [list, counter] = names.map(|index| self.schema.fields.get(index).map_or("", |field| &field.name));
                let count = count.map_or("null".to_owned(), |count| count.to_string());
                let entry = self.entries + entry as u64;
                let what = format!(
                    "entry {entry}: it counts the items of '{list}', but is {count} while the list has {length}; \
                     rename one of them"
                );
                Err(Error::invalid_argument(what).in_field(counter))
            }
        }
    }

    fn append(&mut self, columns: &[Option<ArrayRef>], count: usize) -> Result<()> {
        for ((branch, column), written) in self.plan.branches.iter().zip(columns).zip(&mut self.written) {
            if let Some(column) = column.as_ref().filter(|_| branch.is_counter() || branch.is_text()) {
                written.maximum = written.maximum.max(longest(column));
            }
        }
        let mut done = 0;
        while done < count {
            pool::check()?;
            let step = self.step((count - done) as u64) as usize;
            self.append_step(columns, done..done + step)?;
            done += step;
            self.entries += step as u64;
            if self.pending_bytes >= PENDING_BYTES {
                self.store()?;
            }
            self.flush_if_due()?;
        }
        Ok(())
    }

    /// Number of entries that can be appended before the end of a cluster must be checked.
    fn step(&self, left: u64) -> u64 {
        match (self.cluster_entries, self.options.auto_flush) {
            (Some(entries), _) => {
                let start = self.ranges.last().map_or(0, |range| range.0 + 1);
                left.min(entries - (self.entries - start) % entries)
            }
            (None, ..0) => left.min(STEP_ENTRIES - self.entries % STEP_ENTRIES),
            (None, _) => left,
        }
    }

    fn append_step(&mut self, columns: &[Option<ArrayRef>], entries: Range<usize>) -> Result<()> {
        for (index, (branch, column)) in self.plan.branches.iter().zip(columns).enumerate() {
            let (Some((_, encoding)), Some(column)) = (&branch.values, column) else { continue };
            let (open, basket_bytes) = (&mut self.open[index], self.written[index].basket_bytes as usize);
            let mut range = entries.clone();
            while !range.is_empty() {
                let appended = open.append(encoding, column, range.clone(), basket_bytes);
                let (taken, is_full) = appended.map_err(|error| Error::from(error).in_field(&branch.name))?;
                range.start += taken;
                if is_full {
                    let end = self.entries + (range.start - entries.start) as u64;
                    let basket = open.finish();
                    self.pending_bytes += basket.object.len();
                    self.pending.push(Pending { branch: index, first_entry: end - u64::from(basket.entries), basket });
                }
            }
        }
        Ok(())
    }

    /// Ends a cluster as `TTree::Fill` does.
    fn flush_if_due(&mut self) -> Result<()> {
        if let Some(entries) = self.cluster_entries {
            let start = self.ranges.last().map_or(0, |range| range.0 + 1);
            return if (self.entries - start).is_multiple_of(entries) { self.end_cluster() } else { Ok(()) };
        }
        let limit = match self.options.auto_flush {
            // Not at the end of every batch, so that the result does not depend on them.
            bytes @ ..0 if self.entries.is_multiple_of(STEP_ENTRIES) => bytes.unsigned_abs(),
            _ => return Ok(()),
        };
        // Compressed baskets are not larger than they were.
        if self.stored_bytes() + self.pending_bytes as u64 > limit {
            self.store()?;
        }
        if self.stored_bytes() > limit {
            self.cluster_entries = Some(self.entries);
            self.end_cluster()?;
        }
        Ok(())
    }

    fn stored_bytes(&self) -> u64 {
        self.written.iter().map(|written| written.bytes[1]).sum()
    }

    /// Stores all baskets.
    fn end_cluster(&mut self) -> Result<()> {
        self.flush()?;
        if self.clusters == 0 && self.options.optimise_baskets {
            let entries = self.entries;
            for (branch, written) in self.plan.branches.iter().zip(&mut self.written) {
                written.optimise(branch, entries, MAX_BASKET_BYTES);
            }
        }
        self.clusters += 1;
        self.cluster_start = self.entries;
        self.flushed_bytes = self.stored_bytes();
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        for (branch, open) in self.open.iter_mut().enumerate() {
            if open.entries() > 0 {
                let basket = open.finish();
                self.pending_bytes += basket.object.len();
                self.pending.push(Pending { branch, first_entry: self.entries - u64::from(basket.entries), basket });
            }
        }
        self.store()
    }

    /// Compresses the full baskets and appends them to the file.
    fn store(&mut self) -> Result<()> {
        let (pending, bytes) = (std::mem::take(&mut self.pending), std::mem::take(&mut self.pending_bytes));
        let compression = self.options.compression;
        let sealed = pool::map(pending, bytes as u64, |pending: Pending| {
            let mut payload = Vec::new();
            compression::compress(compression, &pending.basket.object, &mut payload)?;
            Ok((pending, payload))
        })?;
        let name = name_of(&self.path);
        for (Pending { branch, first_entry, basket }, payload) in sealed {
            let branch_name = &self.plan.branches[branch].name;
            let head = |at, datime| basket.head(at, name, branch_name, payload.len(), datime);
            let offset = self.sink.put_record(head, &payload)?;
            let written = &mut self.written[branch];
            let stored_bytes = u64::from(basket.key_bytes) + payload.len() as u64;
            written.bytes[0] += u64::from(basket.key_bytes) + basket.object.len() as u64;
            written.bytes[1] += stored_bytes;
            written.baskets.push(BasketPlace { first_entry, offset, bytes: stored_bytes as u32 });
        }
        Ok(())
    }

    fn try_finish(&mut self) -> Result<WriteProgress> {
        if self.entries > self.cluster_start {
            self.flush()?;
            self.clusters += 1;
        }
        let record = TreeRecord {
            name: name_of(&self.path),
            title: &self.options.title,
            entries: self.entries,
            compression: self.options.compression.setting(),
            auto_flush: self.cluster_entries.map_or(self.options.auto_flush, u64::cast_signed),
            flushed_bytes: self.flushed_bytes,
            cluster_ranges: &self.ranges,
            weight: self.options.weight,
            aliases: &self.options.aliases,
            attached: self.options.attached.each_ref(),
            branches: &self.plan.branches,
            written: &self.written,
        };
        let stream = |key_bytes| record.stream(key_bytes);
        self.sink.publish_object(&self.path, [CLASS, &self.options.title], stream, self.options.compression)?;
        self.sink.add_streamer_info(&self.plan.infos)?;
        for object in self.options.attached.iter().filter_map(Value::as_object) {
            self.sink.add_streamer_info(&object.layouts())?;
        }
        self.sink.end(&self.path);
        self.closed = Some("the tree is finished".to_owned());
        Ok(WriteProgress {
            entries: self.entries,
            entries_before: 0,
            clusters: self.clusters,
            stored_bytes: self.stored_bytes(),
            unpacked_bytes: self.written.iter().map(|written| written.bytes[0]).sum(),
        })
    }

    #[cold]
    fn poison(&mut self, error: Error) -> Error {
        self.closed.get_or_insert_with(|| format!("an earlier write failed ({error})"));
        self.sink.reported();
        self.context(error)
    }

    #[cold]
    fn context(&self, error: Error) -> Error {
        error.in_object("tree", &self.path).in_file(self.sink.name())
    }
}

/// The first entry whose number differs from the number of items of its list, with both numbers.
pub(crate) fn contradiction(list: &ArrayRef, counts: &ArrayRef) -> Result<Option<(usize, Option<i64>, i64)>> {
    let Some(list) = list.as_list_opt::<i64>() else { return Ok(None) };
    let counts = arrow_cast::cast(counts, &DataType::Int64)?;
    let lengths = list.value_offsets().windows(2).map(|pair| pair[1] - pair[0]);
    let mut both = counts.as_primitive::<Int64Type>().iter().zip(lengths).enumerate();
    let wrong = both.find(|(_, (count, length))| *count != Some(*length));
    Ok(wrong.map(|(entry, (count, length))| (entry, count, length)))
}

/// Refuses texts in a leaf that ROOT would end early.
fn check_text(array: &ArrayRef, first_entry: u64) -> Result<()> {
    let texts = arrow_cast::cast(array, &DataType::LargeBinary)?;
    match texts.as_binary::<i64>().iter().position(|text| text.is_some_and(|text| text.contains(&0))) {
        None => Ok(()),
        Some(entry) => {
            let entry = first_entry + entry as u64;
            let what =
                format!("entry {entry}: the string contains a zero byte, where ROOT would end it; leave the field out");
            Err(Error::invalid_argument(what))
        }
    }
}

/// The fields of Arrow types alone.
fn unnamed(schema: &ArrowSchema) -> Result<Schema> {
    fn plain(field: &FieldRef) -> FieldRef {
        let data_type = match field.data_type() {
            DataType::LargeBinary => DataType::LargeUtf8,
            // Ntuples have no fixed arrays of records without a name.
            DataType::FixedSizeList(item, size) if matches!(item.data_type(), DataType::Struct(_)) => {
                let name = HashMap::from([(metadata::TYPE.to_owned(), "Item".to_owned())]);
                DataType::FixedSizeList(Arc::new(plain(item).as_ref().clone().with_metadata(name)), *size)
            }
            other => with_inner_fields(other, plain),
        };
        Arc::new(ArrowField::new(field.name(), data_type, field.is_nullable()))
    }
    let fields: Vec<FieldRef> = schema.fields().iter().map(plain).collect();
    Schema::from_arrow(&ArrowSchema::new(fields))
}

/// An array in the type of a field, whose classes have their bases as members.
fn converted(array: &ArrayRef, wanted: &DataType) -> Result<ArrayRef> {
    if is_alike(array.data_type(), wanted) {
        return Ok(array.clone());
    }
    let array = in_bases(array, wanted)?;
    Ok(if is_alike(array.data_type(), wanted) { array } else { arrow_cast::cast(&array, wanted)? })
}

/// Whether an array of one type can be taken for one of the other, texts being bytes.
fn is_alike(given: &DataType, wanted: &DataType) -> bool {
    match (given, wanted) {
        (DataType::LargeBinary, DataType::LargeUtf8) => true,
        (DataType::LargeList(a), DataType::LargeList(b)) => is_alike(a.data_type(), b.data_type()),
        (DataType::FixedSizeList(a, m), DataType::FixedSizeList(b, n)) => {
            m == n && is_alike(a.data_type(), b.data_type())
        }
        (DataType::Struct(a), DataType::Struct(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_alike(a.data_type(), b.data_type()))
        }
        (a, b) => a == b,
    }
}

/// Whether two arrays of lists have the same numbers of items.
fn has_same_lengths(a: &ArrayRef, b: &ArrayRef) -> bool {
    let (Some(a), Some(b)) = (a.as_list_opt::<i64>(), b.as_list_opt::<i64>()) else { return true };
    let lengths = |offsets: &[i64]| offsets.windows(2).map(|pair| pair[1] - pair[0]).collect::<Vec<_>>();
    a.offsets().ptr_eq(b.offsets()) || lengths(a.value_offsets()) == lengths(b.value_offsets())
}

/// The largest number of items in a list, of bytes in a text, or in a member that has numbers of items.
fn longest(array: &ArrayRef) -> i64 {
    let offsets = match array.data_type() {
        DataType::Int32 => {
            return array.as_primitive::<Int32Type>().values().iter().max().map_or(0, |most| (*most).into());
        }
        DataType::LargeUtf8 => array.as_string::<i64>().value_offsets(),
        DataType::LargeBinary => array.as_binary::<i64>().value_offsets(),
        DataType::LargeList(_) => array.as_list::<i64>().value_offsets(),
        _ => &[],
    };
    offsets.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0)
}
