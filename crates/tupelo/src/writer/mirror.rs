//! Mirrors: ntuples that are written to several stores.

use std::ops::ControlFlow;

use tupelo_storage::Storage;

use super::FileWriter;
use crate::reader::File;
use crate::{Error, Result};

/// The other stores of a mirror, to which the ntuple is copied from the first one.
#[derive(Debug, Default)]
pub(super) struct Copies {
    /// The URI of the ntuple in the first store.
    first: String,
    /// The attempt that writes it there.
    attempt: String,
    storage: Storage,
    writers: Vec<FileWriter>,
}

impl Copies {
    pub(super) fn new(first: &str, attempt: &str, storage: &Storage, writers: Vec<FileWriter>) -> Self {
        Self { first: first.to_owned(), attempt: attempt.to_owned(), storage: storage.clone(), writers }
    }

    pub(super) fn check_free(&self, path: &str) -> Result<()> {
        self.writers.iter().try_for_each(|writer| writer.check_free(path).map_err(|e| e.within(writer.sink.name())))
    }

    /// Copies the ntuple to all stores; then returns the first error.
    pub(super) fn finish(&mut self) -> Result<()> {
        let results: Vec<Result<()>> =
            std::mem::take(&mut self.writers).into_iter().map(|writer| self.copy_to(writer)).collect();
        results.into_iter().collect()
    }

    fn copy_to(&self, writer: FileWriter) -> Result<()> {
        let name = writer.sink.name().to_owned();
        let copied = self.file().and_then(|file| {
            let ntuple = file.ntuple(None)?;
            writer.copy_sealed(&ntuple, ntuple.path(), &mut |_| ControlFlow::Continue(()))
        });
        let finished = match copied {
            Ok(_) => writer.finish(),
            Err(error) => {
                abort_all(&mut vec![writer]);
                Err(error.within(name))
            }
        };
        finished.map_err(|e| e.with_note("the ntuple is complete in the first store of the mirror"))
    }

    /// The ntuple in the first store, if no other writer has replaced it.
    fn file(&self) -> Result<File> {
        let file = File::of_uri(&self.first, &self.storage)?;
        match file.stored_objects() {
            Some(objects) if objects.is_of_attempt(&self.attempt)? => Ok(file),
            _ => Err(Error::invalid_argument(format!("{}: another writer has replaced the ntuple", file.name()))),
        }
    }
}

impl Drop for Copies {
    fn drop(&mut self) {
        abort_all(&mut self.writers);
    }
}

/// Removes what was begun in the stores, after an error that is returned. What cannot be removed is left to `tupelo gc`.
pub(super) fn abort_all(writers: &mut Vec<FileWriter>) {
    for writer in writers.drain(..) {
        writer.sink.reported();
        let _removed = writer.abort();
    }
}
