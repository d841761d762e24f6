//! Files that are added to, whole or damaged: either that is refused, or all that could be read can be read afterwards.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int32Array, RecordBatch};
use bytes::Bytes;
use tupelo::ops::layout::{self, Content};
use tupelo::reader::Object;
use tupelo::schema::Schema;
use tupelo::{Error, File, FileWriter, Result, WriteOptions};
use tupelo_storage::{ByteSink, MemoryFile, MemorySink, MemorySource};

/// Name of the ntuples that are added.
const ADDED: &str = "added";
/// Entries that are added to an ntuple.
const ENTRIES: usize = 3;

/// What became of a file.
#[derive(Debug)]
pub enum Updated {
    /// It could not be read before.
    Unreadable,
    /// It was not added to.
    Refused(Error),
    /// All that could be read before can be read, and what was added.
    Kept,
}

/// All objects of a file, and the entries of its ntuples by path.
type Everything = (Vec<Object>, BTreeMap<String, RecordBatch>);

fn read(bytes: &Bytes, memory_budget: u64) -> Result<Everything> {
    let file = File::new(Arc::new(MemorySource::new(bytes.clone())), true)?.with_memory_budget(memory_budget);
    let mut ntuples = BTreeMap::new();
    for name in file.ntuple_names()? {
        let batch = file.ntuple(Some(&name))?.read_all().to_batch()?;
        ntuples.insert(name, batch);
    }
    Ok((file.objects()?, ntuples))
}

fn more() -> RecordBatch {
    let numbers: ArrayRef = Arc::new(Int32Array::from_iter_values(0..ENTRIES as i32));
    RecordBatch::try_from_iter([("x", numbers)]).expect("a batch")
}

/// Adds an ntuple to each directory, and the first entries of one ntuple once more, if it takes entries.
fn update(target: &MemoryFile, objects: &[Object], ntuples: &BTreeMap<String, RecordBatch>) -> Result<Vec<String>> {
    let file = FileWriter::update_in(Box::new(MemorySink::update(target)?), Arc::new(target.source()?))?;
    let schema = Schema::from_arrow(&more().schema())?;
    let directories = objects.iter().filter(|object| object.class_name.starts_with("TDirectory"));
    let mut added = vec![ADDED.to_owned()];
    added.extend(directories.map(|directory| format!("{}/{ADDED}", directory.path)));
    added.dedup();
    for path in &added {
        let mut ntuple = file.ntuple(path, &schema, WriteOptions::default())?;
        ntuple.write(&more())?;
        ntuple.finish()?;
    }
    if let Some((name, batch)) = ntuples.iter().find(|(_, batch)| batch.num_rows() > 0)
        && let Ok(mut ntuple) = file.append(name, WriteOptions::default())
    {
        match ntuple.write(&batch.slice(0, 1)) {
            Ok(()) => drop(ntuple.finish()?),
            Err(_) => ntuple.abandon()?,
        }
    }
    file.finish()?;
    Ok(added)
}

/// Adds to a file, if it can be read, and compares what can be read before and after.
///
/// # Panics
/// If something is lost.
pub fn check(bytes: &Bytes, memory_budget: u64) -> Updated {
    let Ok((objects, ntuples)) = read(bytes, memory_budget) else { return Updated::Unreadable };
    let target = MemoryFile::new();
    let mut sink = Box::new(MemorySink::create(&target));
    sink.append(bytes).expect("memory");
    sink.commit().expect("memory");
    let added = match update(&target, &objects, &ntuples) {
        Ok(added) => added,
        Err(error) => return Updated::Refused(error),
    };
    let after = target.bytes().unwrap_or_default();
    // What is added takes memory too.
    let (objects_after, ntuples_after) = match read(&after, memory_budget.saturating_mul(2)) {
        Ok(read) => read,
        Err(error) => panic!("nothing can be read any more: {error}"),
    };
    let place = |object: &Object| (object.path.clone(), object.class_name.clone(), object.cycle);
    let places: Vec<_> = objects_after.iter().map(place).collect();
    for object in &objects {
        assert!(places.contains(&place(object)), "{object:?} is gone");
    }
    for (name, batch) in &ntuples {
        let Some(found) = ntuples_after.get(name) else { panic!("ntuple '{name}' is gone") };
        // A new ntuple may have become the newest of its name.
        if !added.contains(name) {
            assert_eq!(found.slice(0, batch.num_rows()).columns(), batch.columns(), "ntuple '{name}'");
        }
    }
    for name in &added {
        assert_eq!(ntuples_after.get(name).map(RecordBatch::num_rows), Some(ENTRIES), "ntuple '{name}'");
    }
    Updated::Kept
}

/// The bytes of a file that no checksum covers: all but blobs.
///
/// # Panics
/// If it cannot be read.
pub fn uncovered(bytes: &Bytes) -> Vec<usize> {
    let file = File::new(Arc::new(MemorySource::new(bytes.clone())), true).expect("a file");
    let map = layout::layout(&file).expect("a map");
    let covered = |content: &Content| matches!(content, Content::Envelope { .. } | Content::Pages { .. });
    let regions = map.regions.iter().filter(|region| !covered(&region.content));
    regions.flat_map(|region| region.offset as usize..(region.offset + region.bytes) as usize).collect()
}
