//! What a reader makes of bytes: data, or a reason.

use std::ops::ControlFlow;
use std::sync::Arc;

use arrow_array::RecordBatch;
use bytes::Bytes;
use tupelo::ops::{layout, verify};
use tupelo::reader::DEFAULT_MEMORY_BUDGET_BYTES;
use tupelo::schema::Kind;
use tupelo::{ErrorKind, File, FileWriter, MoveOptions, Ntuple, Result, Table, Tree};
use tupelo_storage::{ByteSource, MemoryFile, MemorySink, MemorySource};

use crate::memory::Near;

/// Entries in a batch when ntuples are read bit by bit; it fits neither pages nor clusters of the samples.
const BATCH_ENTRIES: u64 = 3;
/// Entries that are read in batches at most: damaged files may claim any number of them.
const MAX_ENTRIES: u64 = 20 * BATCH_ENTRIES;

/// Everything that was read of one ntuple.
#[derive(Debug, Clone, PartialEq)]
pub struct Data {
    /// All fields, all entries.
    pub batch: RecordBatch,
    /// Fields that could not be read by this version.
    pub warnings: Vec<String>,
}

/// Opens bytes as a file and reads all of all ntuples, attribute sets included, at once and in batches.
///
/// # Errors
/// The first one.
pub fn read(bytes: &Bytes, name: &str, page_checksums: bool) -> Result<Vec<Data>> {
    read_within(bytes, name, page_checksums, DEFAULT_MEMORY_BUDGET_BYTES)
}

/// As [`read`], with another memory budget.
///
/// # Errors
/// The first one.
pub fn read_within(bytes: &Bytes, name: &str, page_checksums: bool, memory_budget: u64) -> Result<Vec<Data>> {
    read_from(Arc::new(MemorySource::new(bytes.clone()).with_name(name)), page_checksums, memory_budget)
}

fn read_from(source: Arc<dyn ByteSource>, page_checksums: bool, memory_budget: u64) -> Result<Vec<Data>> {
    let file = File::new(source, page_checksums)?;
    let file = file.with_memory_budget(memory_budget);
    let (names, mut all) = (file.ntuple_names()?, Vec::new());
    if names.is_empty() {
        file.ntuple(None)?;
    }
    for name in names {
        let ntuple = file.ntuple(Some(&name))?;
        for set in ntuple.attribute_sets() {
            all.push(read_ntuple(&ntuple.attribute_set(set)?)?);
        }
        all.push(read_ntuple(&ntuple)?);
    }
    Ok(all)
}

fn read_ntuple(ntuple: &Ntuple) -> Result<Data> {
    let batch = ntuple.read_all().to_batch()?;
    // Batches take other paths through pages than the whole.
    let first = 0..ntuple.entries().min(MAX_ENTRIES);
    for part in ntuple.read_all().entries(first).with_binary_strings(true).batches(BATCH_ENTRIES)? {
        part?;
    }
    Ok(Data { batch, warnings: ntuple.warnings().to_vec() })
}

/// Does with bytes everything that Tupelo does with a file, page checksums compared or not, within a memory budget.
/// Gives what was read, if it was.
///
/// # Panics
/// If verifying finds nothing wrong with a file that reading refused, or if it matters whether pages are fetched ahead.
pub fn handle(bytes: &Bytes, page_checksums: bool, memory_budget: u64) -> Result<Vec<Data>> {
    let read = read_within(bytes, "handled", page_checksums, memory_budget);
    let near = MemorySource::new(bytes.clone()).with_name("handled");
    let near = read_from(Arc::new(Near(near)), page_checksums, memory_budget);
    match (&read, &near) {
        (Ok(read), Ok(near)) => assert!(read == near, "other data from a near source"),
        // More is in flight where pages are fetched ahead.
        (Err(error), _) | (_, Err(error)) if error.kind() == ErrorKind::Limit => {}
        (read, near) => assert_eq!(read.as_ref().err().map(describe), near.as_ref().err().map(describe)),
    }
    if let Ok(file) = File::new(Arc::new(MemorySource::new(bytes.clone())), true) {
        let file = file.with_memory_budget(memory_budget);
        let report = verify::verify(&file, None, &mut |_| {});
        let is_intact = report.is_ok_and(|r| r.ntuples > 0 && r.is_intact());
        assert!(!is_intact || read.is_ok(), "verify finds nothing, but {:?}", read.err());
        let _map = layout::layout(&file);
        let _rebuilt = file.recovered().and_then(|file| file.objects());
    }
    read
}

/// Opens bytes as a file and reads all of all trees, each field on its own, at once and in batches, from sources that are
/// read ahead and in place. Gives how many fields were read.
///
/// # Errors
/// Those of opening the file; trees and fields that cannot be read are left out.
///
/// # Panics
/// If it matters how baskets are fetched.
pub fn handle_trees(bytes: &Bytes, memory_budget: u64) -> Result<usize> {
    let source = || MemorySource::new(bytes.clone()).with_name("handled");
    let file = File::new(Arc::new(source()), true)?.with_memory_budget(memory_budget);
    let near = File::new(Arc::new(Near(source())), true)?.with_memory_budget(memory_budget);
    let mut count = 0;
    for name in file.tree_names()? {
        let (Ok(Table::Tree(tree)), Ok(Table::Tree(near))) = (file.table(Some(&name)), near.table(Some(&name))) else {
            continue;
        };
        for field in &tree.schema().fields {
            let read = read_tree_field(&tree, &field.name);
            match (&read, &read_tree_field(&near, &field.name)) {
                (Ok(read), Ok(near)) => assert!(read == near, "other values of {} from a near source", field.name),
                (Err(error), _) | (_, Err(error)) if error.kind() == ErrorKind::Limit => {}
                (read, near) => assert_eq!(read.as_ref().err().map(describe), near.as_ref().err().map(describe)),
            }
            if let Kind::Streamer = field.kind {
                // What cannot be decoded is a value that says why.
                let _objects = tree.objects(&field.name, ..);
            }
            count += usize::from(read.is_ok());
        }
        // Its baskets at other places, of all branches or of one.
        for name in [None, tree.schema().fields.first().map(|field| field.name.clone())] {
            let target = FileWriter::create_in(Box::new(MemorySink::create(&MemoryFile::new())), "moved")?;
            let mut moved = target.moved_tree("t", MoveOptions::default().with_branches(name))?;
            let _moved = moved.append(&tree, &mut |_| ControlFlow::Continue(())).and_then(|_| moved.finish());
            target.abort()?;
        }
    }
    Ok(count)
}

/// Reads all objects of a file that are not ntuples. Gives how many could be read.
///
/// # Errors
/// Those of opening the file; objects that cannot be read are left out.
pub fn handle_objects(bytes: &Bytes, memory_budget: u64) -> Result<usize> {
    let source = MemorySource::new(bytes.clone()).with_name("handled");
    let file = File::new(Arc::new(source), true)?.with_memory_budget(memory_budget);
    Ok(file.objects()?.iter().filter(|object| file.object(&object.name()).is_ok()).count())
}

fn read_tree_field(tree: &Tree, field: &str) -> Result<RecordBatch> {
    let first = 0..tree.entries().min(MAX_ENTRIES);
    for part in tree.read([field])?.entries(first).with_binary_strings(true).batches(BATCH_ENTRIES)? {
        part?;
    }
    tree.read([field])?.to_batch()
}

fn describe(error: &tupelo::Error) -> String {
    error.to_string()
}

/// The line of `expected.txt` for bytes that were made from those that read as `base`.
pub fn verdict(bytes: &Bytes, name: &str, page_checksums: bool, base: &[Data]) -> String {
    match read(bytes, name, page_checksums) {
        Err(error) => {
            let text = error.to_string();
            text.strip_prefix(&format!("memory:{name}: ")).unwrap_or(&text).to_owned()
        }
        Ok(data) => {
            let same = data.len() == base.len() && data.iter().zip(base).all(|(a, b)| is_same(&a.batch, &b.batch));
            let mut line = if same { "reads: same data" } else { "reads: other data" }.to_owned();
            for warning in data.iter().flat_map(|data| &data.warnings) {
                line.push_str("; ");
                line.push_str(warning);
            }
            line
        }
    }
}

/// Fields of the same names with the same values; C++ type names cannot be checked and may differ at the top level.
fn is_same(a: &RecordBatch, b: &RecordBatch) -> bool {
    let (fields, others) = (a.schema(), b.schema());
    let names = fields.fields().iter().map(|field| field.name());
    names.eq(others.fields().iter().map(|field| field.name())) && a.columns() == b.columns()
}
