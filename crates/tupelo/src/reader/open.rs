//! How a file is opened.

use std::path::Path;
use std::sync::Arc;

use tupelo_format::container;
use tupelo_storage::adapter::{DiskSpeed, SlowSource};
use tupelo_storage::local::{FileSource, temporaries_of};
use tupelo_storage::{ByteSource, Storage, is_object_uri};

use super::file::{DEFAULT_MEMORY_BUDGET_BYTES, DEFAULT_PAGE_CHECKSUMS};
use super::sources::Ntuple;
use super::table::Table;
use super::{File, Location};
use crate::{Error, Result};

/// How to open; made by [`crate::open`].
#[derive(Debug, Clone)]
pub struct OpenOptions {
    location: Location,
    page_checksums: bool,
    memory_budget: u64,
    metrics: bool,
    recover: bool,
    storage: Storage,
    disk_speed: Option<DiskSpeed>,
}

impl OpenOptions {
    pub(crate) fn new(location: &str) -> Self {
        Self::at(Location::parse(location))
    }

    /// Opens what a location names.
    pub fn at(location: Location) -> Self {
        Self {
            location,
            page_checksums: DEFAULT_PAGE_CHECKSUMS,
            memory_budget: DEFAULT_MEMORY_BUDGET_BYTES,
            metrics: false,
            recover: false,
            storage: Storage::default(),
            disk_speed: None,
        }
    }

    /// Options and cache for remote files.
    #[must_use]
    pub fn with_storage(mut self, storage: Storage) -> Self {
        self.storage = storage;
        self
    }

    /// Whether to compare the checksums of pages. Those of anchor and envelopes are always compared.
    #[must_use]
    pub fn with_page_checksums(mut self, verify: bool) -> Self {
        self.page_checksums = verify;
        self
    }

    /// Memory budget in bytes, by default [`DEFAULT_MEMORY_BUDGET_BYTES`]. It limits the metadata of everything that is
    /// opened, in total, and the data in flight of each read request; larger requests are fetched in batches. Returned
    /// values may exceed the budget, up to [`MAX_BUDGET_EXPANSION`](super::MAX_BUDGET_EXPANSION) times the stored bytes
    /// that they are decoded from; beyond that, reading fails.
    #[must_use]
    pub fn with_memory_budget(mut self, bytes: u64) -> Self {
        self.memory_budget = bytes;
        self
    }

    /// What is opened.
    pub fn location(&self) -> &Location {
        &self.location
    }

    /// The same options for another file.
    #[must_use]
    pub fn for_another(self, location: Location) -> Self {
        Self { location, ..self }
    }

    /// Whether to collect read statistics for [`Ntuple::metrics`]. Off by default: the timers add about a microsecond
    /// per page.
    #[must_use]
    pub fn with_metrics(mut self, metrics: bool) -> Self {
        self.metrics = metrics;
        self
    }

    /// Whether to rebuild the directories of a file that was not saved or was cut off, and to do without damaged streamer info; see
    /// [`File::recovered`].
    #[must_use]
    pub fn with_recover(mut self, recover: bool) -> Self {
        self.recover = recover;
        self
    }

    /// Imitates a slower disk for ROOT files, for experiments: each request takes at least the time of that disk, also for
    /// bytes that were read before.
    #[must_use]
    pub fn with_disk_speed(mut self, speed: DiskSpeed) -> Self {
        self.disk_speed = Some(speed);
        self
    }

    /// Opens the file.
    ///
    /// # Errors
    /// Not found, with the temporary files that an interrupted writer may have left; storage errors of system, network
    /// and servers; corrupt if the file is not a ROOT file.
    pub fn open_file(self) -> Result<File> {
        let name = &self.location.file;
        let file = if is_object_uri(name) {
            File::of_uri(name, &self.storage)?.with_page_checksums(self.page_checksums)
        } else {
            let source = self.storage.open(name);
            let source = source.map_err(|error| missing(self.location.local_path(), error))?;
            let source = match self.disk_speed {
                Some(speed) => Arc::new(SlowSource::new(source, speed)),
                None => source,
            };
            File::new(source, self.page_checksums)?.with_origin(name, &self.storage)
        };
        let file = file.with_memory_budget(self.memory_budget);
        let file = if self.recover { file.recovered()? } else { file };
        Ok(if self.metrics { file.with_metrics() } else { file })
    }

    /// Opens the ntuple that the location names, or the only one in the file.
    ///
    /// # Errors
    /// Those of [`OpenOptions::open_file`]; not found, with near names, if the ntuple does not exist; invalid argument
    /// if the location names none and the file has several.
    pub fn open(self) -> Result<Ntuple> {
        let object = self.location.object.clone();
        self.open_file()?.ntuple(object.as_deref())
    }

    /// Opens the ntuple or tree that the location names, or the only one in the file.
    ///
    /// # Errors
    /// Those of [`OpenOptions::open_file`] and [`File::table`].
    pub fn table(self) -> Result<Table> {
        let object = self.location.object.clone();
        self.open_file()?.table(object.as_deref())
    }
}

/// The error of a file that cannot be opened. If it does not exist, the temporary files of its writers are listed.
#[cold]
fn missing(path: Option<&Path>, error: tupelo_storage::Error) -> Error {
    let Some(path) = path else { return error.into() };
    let left = match error.kind() {
        tupelo_storage::ErrorKind::NotFound => temporaries_of(path).unwrap_or_default(),
        _ => Vec::new(),
    };
    let names: Vec<_> = left.iter().map(|path| path.display().to_string()).collect();
    let useful: Vec<_> = left.iter().filter(|path| may_be_repaired(path)).collect();
    let advice = match (names.as_slice(), useful.as_slice()) {
        ([], _) => return error.into(),
        ([_], [_]) => format!("`tupelo verify --repair {}` gives it this name", path.display()),
        (_, [.., newest]) => {
            format!("`tupelo verify --repair {}` repairs the newest under its own name", newest.display())
        }
        ([_], []) => {
            "it contains no checkpoint, so nothing can be restored; delete it if no writer is running".to_owned()
        }
        (_, []) => {
            "they contain no checkpoint, so nothing can be restored; delete them if no writer is running".to_owned()
        }
    };
    let left = format!("an interrupted or running writer left {}", names.join(", "));
    Error::not_found(format!("{error}; {left}: {advice}")).caused_by(error)
}

/// Whether the temporary file of a stopped writer is large enough to hold a checkpoint. Writers keep the first bytes in
/// memory, so a writer that was killed early leaves less than a file header.
pub(crate) fn may_be_repaired(temporary: &Path) -> bool {
    FileSource::open(temporary).and_then(|source| source.size()).map_or(true, |size| size >= container::BEGIN)
}
