//! An ntuple or a tree.

use arrow_schema::SchemaRef;
use tupelo_format::container::Deviation;
use tupelo_format::streamer::StreamerInfos;

use super::read::Read;
use super::sources::{EntrySource, Ntuple, Tree};
use crate::evolution::ReadRule;
use crate::schema::Schema;
use crate::source::{Metrics, TreeCache};
use crate::{Error, ErrorKind, Result};

/// An ntuple or a tree of a file. Cheap to clone, usable from many threads.
#[derive(Debug, Clone)]
#[expect(clippy::exhaustive_enums, reason = "callers treat each of them")]
pub enum Table {
    /// An RNTuple.
    Ntuple(Ntuple),
    /// A TTree.
    Tree(Tree),
}

impl From<Ntuple> for Table {
    fn from(ntuple: Ntuple) -> Self {
        Self::Ntuple(ntuple)
    }
}

impl From<Tree> for Table {
    fn from(tree: Tree) -> Self {
        Self::Tree(tree)
    }
}

macro_rules! both {
    ($self:ident, $table:ident => $value:expr) => {
        match $self {
            Self::Ntuple($table) => $value,
            Self::Tree($table) => $value,
        }
    };
}

impl Table {
    /// The ntuple.
    ///
    /// # Errors
    /// Unsupported for a tree.
    pub fn ntuple(&self) -> Result<&Ntuple> {
        match self {
            Self::Ntuple(ntuple) => Ok(ntuple),
            Self::Tree(tree) => {
                let what = format!("'{}' is a TTree, not an RNTuple", tree.path());
                Err(Error::unsupported(what).within(tree.file_name()))
            }
        }
    }

    /// The tree, if it is one.
    pub fn tree(&self) -> Option<&Tree> {
        match self {
            Self::Ntuple(_) => None,
            Self::Tree(tree) => Some(tree),
        }
    }

    /// Name, without directories.
    pub fn name(&self) -> &str {
        both!(self, table => table.name())
    }

    /// Path in the file, with the directories.
    pub fn path(&self) -> &str {
        both!(self, table => table.path())
    }

    /// Path or URL of the file.
    pub fn file_name(&self) -> String {
        both!(self, table => table.file_name())
    }

    /// Free text.
    pub fn description(&self) -> &str {
        both!(self, table => table.description())
    }

    /// Number of entries.
    pub fn entries(&self) -> u64 {
        both!(self, table => table.entries())
    }

    /// Number of clusters.
    pub fn clusters(&self) -> u64 {
        both!(self, table => table.clusters())
    }

    /// The fields.
    pub fn schema(&self) -> &Schema {
        both!(self, table => table.schema())
    }

    /// The Arrow schema of all listed fields.
    pub fn arrow_schema(&self) -> SchemaRef {
        both!(self, table => table.arrow_schema())
    }

    /// Warnings about what cannot be read: fields of an ntuple, branches of a tree.
    pub fn warnings(&self) -> Vec<String> {
        match self {
            Self::Ntuple(ntuple) => [ntuple.warnings(), &ntuple.skipped_stores()].concat(),
            Self::Tree(tree) => {
                let warning =
                    |(path, reason): (&str, &str)| format!("branch '{}' is left out: {reason}", path.escape_debug());
                tree.refused().map(warning).collect()
            }
        }
    }

    /// The rules of the format that the file around it breaks; see [`File::deviations`](super::File::deviations).
    pub fn deviations(&self) -> Vec<Deviation> {
        match self {
            Self::Ntuple(ntuple) => ntuple.source().session().deviations().list(),
            Self::Tree(tree) => tree.source().session().deviations().list(),
        }
    }

    /// The layouts of classes that the file describes.
    ///
    /// # Errors
    /// Those of [`Ntuple::streamer_infos`].
    pub fn streamer_infos(&self) -> Result<StreamerInfos> {
        match self {
            Self::Ntuple(ntuple) => ntuple.streamer_infos(),
            Self::Tree(tree) => Ok(tree.streamer_infos().clone()),
        }
    }

    /// An identifier that changes when the table, or the file around it, is rewritten; see [`Ntuple::identity`].
    ///
    /// # Errors
    /// Storage errors.
    pub fn identity(&self) -> Result<String> {
        both!(self, table => table.identity())
    }

    /// Compares with the identity of the table when it was opened before.
    ///
    /// # Errors
    /// Storage, if it has changed since.
    pub fn check_unchanged(&self, identity: &str) -> Result<()> {
        if self.identity()? == identity {
            return Ok(());
        }
        let what = "the file has changed since its fields were compared; read the files again";
        let changed = Error::new(ErrorKind::Storage, what);
        Err(both!(self, table => EntrySource::context(table, changed)))
    }

    /// The same with read rules; see [`Ntuple::with_rules`].
    ///
    /// # Errors
    /// As [`Ntuple::with_rules`].
    pub fn with_rules(&self, rules: impl IntoIterator<Item = ReadRule>) -> Result<Self> {
        Ok(match self {
            Self::Ntuple(ntuple) => Self::Ntuple(ntuple.with_rules(rules)?),
            Self::Tree(tree) => Self::Tree(tree.with_rules(rules)?),
        })
    }

    /// The same with another way of fetching baskets; see [`Tree::with_cache`]. An ntuple stays as it is.
    #[must_use]
    pub fn with_tree_cache(&self, cache: TreeCache) -> Self {
        match self {
            Self::Ntuple(_) => self.clone(),
            Self::Tree(tree) => Self::Tree(tree.with_cache(cache)),
        }
    }

    /// Read statistics, if they are collected; see [`Ntuple::metrics`].
    pub fn metrics(&self) -> Option<Metrics> {
        both!(self, table => table.metrics())
    }

    /// Selects fields to read, by dotted paths or globs; no pattern means all.
    ///
    /// # Errors
    /// Not found, with near names, for a pattern that matches no field.
    pub fn read<S: AsRef<str>>(&self, patterns: impl AsRef<[S]>) -> Result<Read> {
        both!(self, table => table.read(patterns))
    }

    /// Selects all listed fields.
    pub fn read_all(&self) -> Read {
        both!(self, table => table.read_all())
    }
}
