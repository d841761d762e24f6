//! The files of a chain that are open.

use std::sync::Arc;

use tupelo_core::pool::Spawned;

use super::super::EntrySource;
use crate::Result;

/// Sources that are kept open.
pub(super) const OPEN_SOURCES: usize = 8;

/// Parts that are open, or being opened, the one that was used last first.
#[derive(Default)]
pub(super) struct OpenParts(Vec<(usize, Opened)>);

pub(super) enum Opened {
    Now(Arc<dyn EntrySource>),
    Later(Spawned<Result<Arc<dyn EntrySource>>>),
    /// A thread that needs it opens it.
    Elsewhere,
}

impl OpenParts {
    pub(super) fn has(&self, index: usize) -> bool {
        self.0.iter().any(|(known, _)| *known == index)
    }

    /// Returns the state of a part, and removes the part if it is still being opened.
    pub(super) fn take(&mut self, index: usize) -> Option<Opened> {
        let place = self.0.iter().position(|(known, _)| *known == index)?;
        let (_, opened) = self.0.remove(place);
        if let Opened::Now(source) = &opened {
            self.put(index, Opened::Now(Arc::clone(source)));
        }
        Some(opened)
    }

    pub(super) fn put(&mut self, index: usize, opened: Opened) {
        self.0.retain(|(known, _)| *known != index);
        self.0.truncate(OPEN_SOURCES - 1);
        self.0.insert(0, (index, opened));
    }
}
