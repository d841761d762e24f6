//! Trees that become one ntuple.

use std::ops::ControlFlow;

use super::{BATCH_BYTES, ImportPlan, Validation, validate::validate};
use crate::reader::{Ntuple, Table, Tree};
use crate::writer::{FileWriter, NtupleWriter, WriteOptions, WriteProgress};
use crate::{Error, Result};

/// Trees whose entries become one ntuple, one after the other.
///
/// Only the first one stays open, so that any number of them takes few open files. `open` of the methods opens another
/// one again, by its number in the order in which they were added, and plans it in the same way.
#[derive(Debug)]
pub struct Import {
    first: (Tree, ImportPlan),
    parts: Vec<Part>,
}

/// What is known about a closed tree.
#[derive(Debug)]
struct Part {
    identity: String,
    /// Number of entries to import.
    count: u64,
}

impl Part {
    fn new(tree: &Tree, plan: &ImportPlan) -> Result<Self> {
        Ok(Self { identity: tree.identity()?, count: plan.read().count() })
    }
}

impl Import {
    /// The import of a tree with its plan.
    ///
    /// # Errors
    /// Unsupported if nothing of the tree can be imported: its entries would be a number without values. Storage errors.
    pub fn new(tree: Tree, plan: ImportPlan) -> Result<Self> {
        if plan.schema().fields.is_empty() {
            let why = match plan.skipped() {
                [] => String::new(),
                [one, ..] => format!(", such as '{}': {}", one.name, one.reason),
            };
            let what = format!("no branch can be imported{why}; select other branches or another tree");
            return Err(plan.read().context(Error::unsupported(what)));
        }
        let parts = vec![Part::new(&tree, &plan)?];
        Ok(Self { first: (tree, plan), parts })
    }

    /// Adds a tree, whose fields are matched by name with those of the first one.
    ///
    /// # Errors
    /// Those of [`ImportPlan::matched`]; storage errors.
    pub fn add(&mut self, tree: &Tree, plan: ImportPlan) -> Result<()> {
        self.parts.push(Part::new(tree, &self.first.1.matched(plan)?)?);
        Ok(())
    }

    /// The first tree.
    pub fn tree(&self) -> &Tree {
        &self.first.0
    }

    /// Number of entries to import.
    pub fn count(&self) -> u64 {
        self.parts.iter().map(|part| part.count).sum()
    }

    /// Writes the ntuple; `None` if `progress`, which receives the number of entries that are done, cancels it.
    ///
    /// # Errors
    /// Those of `open`, of reading and of writing; storage, if a tree has changed since it was added.
    pub fn write<E: From<Error>>(
        &self,
        file: &FileWriter,
        path: &str,
        options: WriteOptions,
        mut open: impl FnMut(usize) -> Result<(Tree, ImportPlan), E>,
        progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<Option<WriteProgress>, E> {
        let (tree, plan) = &self.first;
        let options = match options.description().is_empty() {
            true => options.with_description(tree.description()),
            false => options,
        };
        let mut writer = file.ntuple(path, plan.schema(), options)?;
        let mut before = 0;
        for (index, part) in self.parts.iter().enumerate() {
            let plan = self.plan(index, &mut open)?;
            if append(&mut writer, &plan, &mut |done| progress(before + done))?.is_break() {
                return Ok(None);
            }
            before += part.count;
        }
        Ok(Some(writer.finish()?))
    }

    /// Compares the trees with the ntuple, entry by entry and bit by bit; of each tree at most `most` entries, half of
    /// them from its begin and half from its end.
    ///
    /// # Errors
    /// Those of `open` and of reading; storage, if a tree has changed since it was added.
    pub fn validate<E: From<Error>>(
        &self,
        ntuple: &Ntuple,
        most: u64,
        mut open: impl FnMut(usize) -> Result<(Tree, ImportPlan), E>,
    ) -> Result<Validation, E> {
        let plans = (0..self.parts.len()).map(|index| self.plan(index, &mut open));
        validate(plans, ntuple, most)
    }

    /// The plan of a tree, which is opened again unless it is the first one.
    fn plan<E: From<Error>>(
        &self,
        index: usize,
        open: &mut impl FnMut(usize) -> Result<(Tree, ImportPlan), E>,
    ) -> Result<ImportPlan, E> {
        if index == 0 {
            return Ok(self.first.1.clone());
        }
        let (tree, plan) = open(index)?;
        Table::Tree(tree).check_unchanged(&self.parts[index].identity)?;
        Ok(self.first.1.matched(plan)?)
    }
}

/// Appends what a plan reads.
fn append(
    writer: &mut NtupleWriter,
    plan: &ImportPlan,
    progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
) -> Result<ControlFlow<()>> {
    let first = plan.read.range().start;
    let stored = plan.stored();
    let mut batches = plan.read.clone().with_binary_strings(true).batches_of_bytes(BATCH_BYTES)?;
    while let Some(batch) = batches.next() {
        let batch = plan.convert(&batch?, &stored).map_err(|e| plan.read.context(e))?;
        writer.write(&batch)?;
        if progress(batches.position() - first).is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    Ok(ControlFlow::Continue(()))
}
