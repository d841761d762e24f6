//! Operations on whole ntuples and files.

pub mod copy;
pub mod cost;
pub mod diff;
pub mod export;
pub mod gc;
pub mod import;
pub mod index;
pub mod inspect;
pub mod layout;
pub mod merge;
pub mod objects;
pub mod repair;
#[cfg(test)]
mod tests;
pub mod tune;
pub mod verify;

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::ControlFlow;

use arrow_array::RecordBatch;
use tupelo_format::descriptor::AttributeSet;
use tupelo_format::open::{ANCHOR_CLASS, PRE_RELEASE_CLASS};

pub use copy::append;

use crate::reader::{File, Listed, Ntuple, Object, Read, TREE_CLASSES};
use crate::writer::{EntrySink, FileWriter, PROCESS_CLASS};
use crate::{Error, ErrorKind, Result};

/// Receives the number of selected entries that are done, and may cancel.
pub type Progress<'p> = dyn FnMut(u64) -> ControlFlow<()> + 'p;

/// Passes the selected entries to a sink, in batches of the size that it likes, each converted by `convert`. Returns the
/// number of entries that the sink took, which a cut makes fewer than those that are done; `None` if `progress` cancelled.
/// The sink is neither finished nor abandoned.
/// ```no_run
/// use std::ops::ControlFlow;
/// use tupelo::WriteOptions;
/// use tupelo::ops::pipe;
///
/// let read = tupelo::open("events.root:Events").open()?.read(["MET_pt"])?.with_where(&"MET_pt > 100".parse()?)?;
/// let file = tupelo::create("met.root")?;
/// let mut sink = file.ntuple("Events", read.schema(), WriteOptions::default())?;
/// pipe(read, Ok, &mut sink, &mut |_| ControlFlow::Continue(()))?;
/// println!("{}", sink.finish()?.entries);
/// file.finish()?;
/// # Ok::<(), tupelo::Error>(())
/// ```
///
/// # Errors
/// Those of reading, of `convert` and of the sink.
pub fn pipe<S: EntrySink>(
    read: Read,
    mut convert: impl FnMut(RecordBatch) -> Result<RecordBatch>,
    sink: &mut S,
    progress: &mut Progress<'_>,
) -> Result<Option<u64>, S::Error> {
    let first = read.range().start;
    let mut batches = read.batches_of_bytes(S::BATCH_BYTES)?;
    let converted = std::iter::from_fn(|| {
        let batch = batches.next()?.and_then(&mut convert).map_err(<S::Error as From<Error>>::from);
        Some(batch.map(|batch| (batch, batches.position() - first)))
    });
    pass(converted, sink, |error| error, progress)
}

/// Passes batches to a sink, from any source: each comes with the number of entries of the source that are done with
/// it. Returns the number of entries that the sink took; `None` if `progress` cancelled. The sink is neither finished nor
/// abandoned.
/// ```
/// use std::ops::ControlFlow;
/// use std::sync::Arc;
/// use arrow_array::{ArrayRef, Float32Array, RecordBatch};
/// use tupelo::ops::feed;
/// use tupelo::schema::Schema;
/// use tupelo::{NtupleWriter, WriteOptions};
///
/// let pt: ArrayRef = Arc::new(Float32Array::from(vec![41.5, 30.25]));
/// let batch = RecordBatch::try_from_iter([("pt", pt)])?;
/// let schema = Schema::from_arrow(&batch.schema())?;
/// let mut sink = NtupleWriter::dry_run("Events", &schema, WriteOptions::default())?;
/// let batches = [Ok::<_, tupelo::Error>((batch, 2))];
/// assert_eq!(feed(batches, &mut sink, &mut |_| ControlFlow::Continue(()))?, Some(2));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// Those of the source and of the sink.
pub fn feed<S: EntrySink, E: From<S::Error>>(
    batches: impl IntoIterator<Item = Result<(RecordBatch, u64), E>>,
    sink: &mut S,
    progress: &mut Progress<'_>,
) -> Result<Option<u64>, E> {
    pass(batches, sink, E::from, progress)
}

fn pass<S: EntrySink, E>(
    batches: impl IntoIterator<Item = Result<(RecordBatch, u64), E>>,
    sink: &mut S,
    wrap: impl Fn(S::Error) -> E,
    progress: &mut Progress<'_>,
) -> Result<Option<u64>, E> {
    let mut taken = 0;
    for batch in batches {
        let (batch, done) = batch?;
        sink.write(&batch).map_err(&wrap)?;
        taken += batch.num_rows() as u64;
        if progress(done).is_break() {
            return Ok(None);
        }
    }
    Ok(Some(taken))
}

/// Whether objects of a class have entries: ntuples of every version, and trees.
pub fn is_entries(class_name: &str) -> bool {
    TREE_CLASSES.contains(&class_name) || [ANCHOR_CLASS, PRE_RELEASE_CLASS].contains(&class_name)
}

/// The newest cycles of the objects of a file that are neither ntuples, trees nor directories, nor belong to trees.
///
/// # Errors
/// Corrupt if a directory is damaged.
pub fn other_objects(file: &File) -> Result<Vec<Object>> {
    let objects = file.objects()?;
    let has_trees = objects.iter().any(|object| TREE_CLASSES.contains(&object.class_name.as_str()));
    let is_other = |class_name: &str| {
        let is_of_trees = TREE_CLASSES.contains(&class_name) || has_trees && comes_with_trees(class_name);
        !is_of_trees && class_name != ANCHOR_CLASS && !is_directory(class_name)
    };
    Ok(objects.into_iter().filter(|object| object.is_newest && is_other(&object.class_name)).collect())
}

/// Whether objects of a class come along with trees whose baskets are moved: the processes to which references point.
pub fn comes_with_trees(class_name: &str) -> bool {
    class_name == PROCESS_CLASS
}

/// The directories of a file, parents before what is in them.
///
/// # Errors
/// Corrupt if a directory is damaged.
pub fn directories(file: &File) -> Result<Vec<Object>> {
    let objects = file.objects()?.into_iter();
    Ok(objects.filter(|object| object.is_newest && is_directory(&object.class_name)).collect())
}

/// Makes the chosen directories of a file with their titles. Returns the paths of those that cannot be made because an object
/// has the name, with the reasons.
fn make_directories(from: &File, to: &FileWriter, is_chosen: impl Fn(&str) -> bool) -> Result<Vec<(String, String)>> {
    let mut refused = Vec::new();
    for directory in directories(from)?.into_iter().filter(|directory| is_chosen(&directory.path)) {
        match to.file_sink()?.make_directory(&directory.path, Some(&directory.title)) {
            Err(error) if error.kind() == ErrorKind::InvalidArgument => refused.push((directory.path, error.reason())),
            made => made?,
        }
    }
    Ok(refused)
}

fn is_directory(class_name: &str) -> bool {
    class_name.starts_with("TDirectory")
}

/// An ntuple or an attribute set, as far as it can be opened.
#[derive(Debug)]
pub struct FoundNtuple {
    /// Path in the file, with the cycle if it is not the newest, and behind `@` the attribute set.
    pub name: String,
    /// What the directories say of the ntuple; `None` for attribute sets, and where one was asked for by its name.
    pub object: Option<Object>,
    /// Name of the attribute set.
    pub set: Option<String>,
    /// The opened ntuple, or the error.
    pub ntuple: Result<Ntuple>,
}

/// Visits one ntuple, or all of a file with all their cycles, each with its attribute sets behind it. One is open at a
/// time, and no anchor is visited twice, so that the visit takes time in proportion to the file.
///
/// # Errors
/// Not found if the file lacks the name; corrupt if the ntuples cannot be reached; those of `visit`.
pub fn each_ntuple(file: &File, name: Option<&str>, visit: &mut dyn FnMut(FoundNtuple) -> Result<()>) -> Result<()> {
    let file = file.clone().with_work_limit();
    if let Some(name) = name {
        let ntuple = file.ntuple(Some(name));
        return match ntuple {
            Err(error) if error.is_not_found() => Err(error),
            ntuple => with_attribute_sets(name.to_owned(), None, ntuple, visit),
        };
    }
    let names: RefCell<HashMap<u64, String>> = RefCell::default();
    let other_name = |_: &Object, seek_key: u64| {
        let names = names.borrow();
        names.get(&seek_key).map(|other| Error::corrupt(format!("its anchor belongs to ntuple '{other}'")))
    };
    file.each_listed(other_name, |Listed { object, seek_key, ntuple }| {
        let name = object.name();
        names.borrow_mut().entry(seek_key).or_insert_with(|| name.clone());
        with_attribute_sets(name, Some(object), ntuple, visit)
    })
}

fn with_attribute_sets(
    name: String,
    object: Option<Object>,
    ntuple: Result<Ntuple>,
    visit: &mut dyn FnMut(FoundNtuple) -> Result<()>,
) -> Result<()> {
    let opened = ntuple.as_ref().ok().cloned();
    visit(FoundNtuple { name: name.clone(), object, set: None, ntuple })?;
    let Some(ntuple) = opened else { return Ok(()) };
    let visit_set = |set: &AttributeSet| {
        let (name, set_name) = (format!("{name}@{}", set.name), Some(set.name.clone()));
        visit(FoundNtuple { name, object: None, set: set_name, ntuple: ntuple.open_attribute_set(set) })
    };
    ntuple.descriptor().attribute_sets().iter().try_for_each(visit_set)
}

/// Items that are read together: of at most `max_bytes` bytes and `max_items` items, but at least one.
fn batches<T>(items: &[T], max_bytes: u64, max_items: usize, bytes: impl Fn(&T) -> u64) -> impl Iterator<Item = &[T]> {
    let mut rest = items;
    std::iter::from_fn(move || {
        let mut sum: u64 = 0;
        let fits = |item: &&T| {
            sum = sum.saturating_add(bytes(item));
            sum <= max_bytes
        };
        let count = rest.iter().take(max_items).take_while(fits).count().max(1);
        let (batch, others) = rest.split_at_checked(count)?;
        rest = others;
        Some(batch)
    })
}
