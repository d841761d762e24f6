//! Events of a real file of ATLAS, resampled: each event is one of the file, drawn at random.

use std::ops::ControlFlow;

use arrow_array::RecordBatch;
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use tupelo::ops::copy::{CopyOptions, copy};
use tupelo::schema::Schema;
use tupelo::writer::WriteOptions;
use tupelo::{Error, File, FileWriter, MoveOptions, Ntuple, Result, Table};
use tupelo_xaod::{EVENTS, METADATA};

/// Events of a batch: one has about 50 KiB.
const BATCH_EVENTS: u64 = 256;
/// The file whose events are drawn.
#[derive(Debug, Clone)]
pub(crate) struct Original {
    file: File,
    events: Ntuple,
}

impl Original {
    pub(crate) fn open(path: &str) -> Result<Self> {
        let file = tupelo::open(path).open_file()?;
        let names = file.ntuple_names()?;
        // The last one is of trees.
        let [usual, early, _] = EVENTS;
        let Some(name) = [usual, early].into_iter().find(|name| names.iter().any(|known| known == name)) else {
            let what = format!("{path} contains no ntuple '{usual}' with ATLAS's events");
            return Err(Error::invalid_argument(what));
        };
        let events = file.ntuple(Some(name))?;
        match events.entries() {
            0 => Err(Error::invalid_argument(format!("{path} contains no event"))),
            _ => Ok(Self { file, events }),
        }
    }

    pub(crate) fn schema(&self) -> Schema {
        self.events.read_all().schema().clone()
    }

    /// Batches of events, each the one that the seed draws for its number.
    pub(crate) fn batches(&self, events: u64, seed: u64) -> impl Iterator<Item = Result<RecordBatch>> + use<> {
        let (read, all) = (self.events.read_all(), self.events.entries());
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        (0..events.div_ceil(BATCH_EVENTS)).map(move |batch| {
            let count = BATCH_EVENTS.min(events - batch * BATCH_EVENTS);
            let drawn: Vec<u64> = (0..count).map(|_| random.random_range(0..all)).collect();
            read.take(&drawn)
        })
    }

    /// Copies the other ntuples of the file, and trees with metadata, which may have the keys of links.
    pub(crate) fn write_others(&self, file: &FileWriter) -> Result<()> {
        for name in self.file.ntuple_names()?.iter().filter(|name| *name != self.events.path()) {
            let read = self.file.ntuple(Some(name))?.read_all();
            let (options, how) = (WriteOptions::default(), CopyOptions::default());
            copy(read, file, name, options, how, &mut |_| ControlFlow::Continue(()))?;
        }
        let trees = self.file.tree_names()?;
        for name in trees.iter().filter(|name| name.starts_with(METADATA)) {
            if let Table::Tree(tree) = self.file.table(Some(name))? {
                let mut moved = file.moved_tree(name, MoveOptions::default())?;
                moved.append(&tree, &mut |_| ControlFlow::Continue(()))?;
                moved.finish()?;
            }
        }
        Ok(())
    }
}
