//! Mirrors: ntuples that are written to several stores.

use std::ops::ControlFlow;

use tupelo_pages::source::new_names;
use tupelo_storage::{Storage, display_name};

use super::{FileWriter, ObjectOptions};
use crate::reader::File;
use crate::{Error, ErrorKind, Result};

/// How often a copy is begun again because another writer has replaced it.
const MAX_RETRIES: usize = 5;

/// The other stores of a mirror, to which the ntuple is copied from the first one.
#[derive(Debug, Default)]
pub(super) struct Copies {
    /// The URI of the ntuple in the first store.
    first: String,
    options: ObjectOptions,
    storage: Storage,
    /// The attempt that writes it there.
    attempt: String,
    /// Names for attempts to copy it once more.
    unused: Vec<String>,
    writers: Vec<(String, FileWriter)>,
}

impl FileWriter {
    /// Creates an ntuple in the first of several stores, and prepares its copies in the others.
    pub(super) fn create_mirrored(uris: &[&str], storage: &Storage, options: ObjectOptions) -> Result<Self> {
        let mut attempts = new_names(uris.len() + (uris.len() - 1) * MAX_RETRIES)?;
        let unused = attempts.split_off(uris.len());
        let mut writers = Vec::with_capacity(uris.len());
        for (uri, attempt) in uris.iter().zip(&attempts) {
            match Self::create_attempt(uri, attempt, storage, options) {
                Ok(writer) => writers.push(((*uri).to_owned(), writer)),
                Err(error) => {
                    writers.into_iter().for_each(|(_, writer)| abort(writer));
                    return Err(error);
                }
            }
        }
        let (first, mut writer) = writers.remove(0);
        let attempt = attempts.swap_remove(0);
        writer.copies = Copies { first, options, storage: storage.clone(), attempt, unused, writers };
        Ok(writer)
    }
}

impl Copies {
    pub(super) fn check_free(&self, path: &str) -> Result<()> {
        self.writers.iter().try_for_each(|(_, it)| it.check_free(path).map_err(|e| e.in_file(it.sink.name())))
    }

    /// Copies the ntuple to all stores; then returns the first error.
    pub(super) fn finish(&mut self) -> Result<()> {
        let writers = std::mem::take(&mut self.writers);
        let results: Vec<Result<()>> = writers.into_iter().map(|(uri, writer)| self.copy_to(&uri, writer)).collect();
        let done: Result<()> = results.into_iter().collect();
        done.map_err(|e| e.with_note("the ntuple is complete in the first store of the mirror"))
    }

    /// Of writers that replace the ntuple at the same time, the one that is visible in the first store wins in all others.
    fn copy_to(&mut self, uri: &str, mut writer: FileWriter) -> Result<()> {
        for _ in 0..MAX_RETRIES {
            match self.copy_once(uri, writer) {
                Err(error) if error.kind() == ErrorKind::Changed && !self.options.is_exclusive => {}
                done => return done,
            }
            let attempt = self.unused.pop().unwrap_or_default();
            writer = FileWriter::create_attempt(uri, &attempt, &self.storage, self.options)?;
        }
        self.copy_once(uri, writer)
    }

    fn copy_once(&self, uri: &str, writer: FileWriter) -> Result<()> {
        let copied = self.file().and_then(|file| {
            let ntuple = file.ntuple(None)?;
            writer.copy_sealed(&ntuple, ntuple.path(), &mut |_| ControlFlow::Continue(()))
        });
        match copied {
            Ok(_) => writer.finish(),
            Err(error) => {
                abort(writer);
                Err(error.in_file(display_name(uri)))
            }
        }
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
        self.writers.drain(..).for_each(|(_, writer)| abort(writer));
    }
}

/// Removes what was begun, after an error that is returned. What cannot be removed is left to `tupelo gc`.
fn abort(writer: FileWriter) {
    writer.sink.reported();
    let _removed = writer.abort();
}
