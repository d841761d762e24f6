//! The files of events, which have their metadata.

use std::fmt;
use std::sync::{Arc, OnceLock};

use tupelo::{File, Result};

/// The number of files that stay open: metadata are read table by table, and a file on a server takes several requests to
/// open.
const MAX_KEPT_OPEN: usize = 16;

/// The files whose entries are those of an event, in their order. They are opened when their metadata are needed; the
/// first 16 stay open, and others are opened each time. The default is none: links are then not resolved, and copies
/// have no metadata.
///
/// ```no_run
/// use tupelo_xaod::Files;
///
/// let paths = ["run1.root", "run2.root"];
/// let files = Files::new(paths.len(), move |number| tupelo::open(paths[number]).open_file());
/// # let _ = files;
/// ```
#[derive(Clone)]
pub struct Files {
    count: usize,
    open: Arc<dyn Fn(usize) -> Result<File> + Send + Sync>,
    kept: Arc<[OnceLock<File>]>,
}

impl Files {
    /// `count` files, which `open` opens by their numbers.
    pub fn new(count: usize, open: impl Fn(usize) -> Result<File> + Send + Sync + 'static) -> Self {
        let kept = (0..count.min(MAX_KEPT_OPEN)).map(|_| OnceLock::new()).collect();
        Self { count, open: Arc::new(open), kept }
    }

    /// Number of files.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// The first file, if there is one.
    pub(crate) fn first(&self) -> Result<Option<File>> {
        (self.count > 0).then(|| self.open(0)).transpose()
    }

    /// A file.
    pub(crate) fn open(&self, number: usize) -> Result<File> {
        let Some(kept) = self.kept.get(number) else { return (self.open)(number) };
        if let Some(file) = kept.get() {
            return Ok(file.clone());
        }
        let file = (self.open)(number)?;
        Ok(kept.get_or_init(|| file).clone())
    }

    /// The paths of the ntuples and trees that any file has, each once.
    pub(crate) fn table_names(&self) -> Result<Vec<String>> {
        let mut names = Vec::new();
        for number in 0..self.count {
            let new = self.open(number)?.table_names()?;
            names.extend(new.into_iter().filter(|name| !names.contains(name)).collect::<Vec<_>>());
        }
        Ok(names)
    }
}

impl Default for Files {
    fn default() -> Self {
        Self::new(0, |number| Err(tupelo::Error::invalid_argument(format!("file {number} does not exist"))))
    }
}

impl From<File> for Files {
    fn from(file: File) -> Self {
        Self::new(1, move |_| Ok(file.clone()))
    }
}

impl fmt::Debug for Files {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Files").field("count", &self.count).finish_non_exhaustive()
    }
}
