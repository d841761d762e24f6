//! The state shared by everything opened through one file.

use std::sync::Arc;

use tupelo_format::container::Deviations;
use tupelo_format::wire::Memory;

use super::work::{MetadataBytes, Work};
use super::{Counters, DEFAULT_MEMORY_BUDGET_BYTES, MemoryBudget, Reservation};
use crate::Result;

/// The memory budget, the read statistics, the work limit and the deviations of a file and its ntuples.
#[derive(Debug, Clone)]
pub struct Session {
    budget: MemoryBudget,
    counters: Counters,
    work: Option<Arc<Work>>,
    deviations: Arc<Deviations>,
}

impl Default for Session {
    fn default() -> Self {
        let budget = MemoryBudget::new(DEFAULT_MEMORY_BUDGET_BYTES);
        Self { budget, counters: Counters::default(), work: None, deviations: Arc::default() }
    }
}

impl Session {
    pub(super) fn with_memory_budget(self, bytes: u64) -> Self {
        Self { budget: MemoryBudget::new(bytes), ..self }
    }

    pub(super) fn with_deviations(self, deviations: Arc<Deviations>) -> Self {
        Self { deviations, ..self }
    }

    pub(super) fn with_counters(self, counters: Counters) -> Self {
        Self { counters, ..self }
    }

    /// Limits how much metadata is read, by the size of the file.
    pub(super) fn with_work_limit(self, file_bytes: u64) -> Self {
        Self { work: Some(Arc::new(Work::of_file(file_bytes))), ..self }
    }

    /// The memory that requests may use.
    pub fn budget(&self) -> &MemoryBudget {
        &self.budget
    }

    /// Broken rules that were found.
    pub fn deviations(&self) -> &Deviations {
        &self.deviations
    }

    /// What requests took.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Counts metadata that is about to be read.
    pub(super) fn take_work(&self, metadata: MetadataBytes) -> Result<()> {
        self.work.as_ref().map_or(Ok(()), |work| work.take(metadata))
    }

    /// Parses bytes within the memory budget; returns the reservation of the memory that the result takes.
    pub(super) fn parse<T>(&self, step: impl FnOnce(&Memory) -> tupelo_format::Result<T>) -> Result<(T, Reservation)> {
        let memory = Memory::new(self.budget.left());
        let done = step(&memory)?;
        Ok((done, self.budget.reserve(memory.used(), "metadata")?))
    }
}
