//! An ntuple or a tree, or those of several files.

mod keys;

use std::sync::Arc;

use arrow_schema::SchemaRef;
use tupelo_core::error::{Remedy, listed};
use tupelo_format::container::Deviation;
use tupelo_format::streamer::StreamerInfos;
use tupelo_pages::source::{Metrics, TreeCache};
use tupelo_schema::evolution::ReadRule;
use tupelo_schema::schema::{Differing, FieldPolicy, Schema, escaped};

pub use self::keys::Unmatched;
use self::keys::{matched, paired};
use super::location::Location;
use super::read::Read;
use super::skipped::Skipped;
use super::sources::{Chain, EntrySource, Join, Ntuple, Tree, no_ntuples};
use crate::{Error, Result};

/// An ntuple or a tree, or those of several files. Cheap to clone, usable from many threads.
#[derive(Debug, Clone)]
#[expect(clippy::exhaustive_enums, reason = "callers treat each of them")]
pub enum Table {
    /// An RNTuple.
    Ntuple(Ntuple),
    /// A TTree.
    Tree(Tree),
    /// Several of them, one after the other.
    Chain(Chain),
    /// Several of them, side by side.
    Join(Join),
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

impl From<Chain> for Table {
    fn from(chain: Chain) -> Self {
        Self::Chain(chain)
    }
}

impl Table {
    /// The ntuples or trees of several files, one after the other. `open` opens that of a number below `count`: once to
    /// compare its fields, and again when its entries are read. `None` leaves it out. `at_once` of them are opened at the
    /// same time, which pays for remote files.
    ///
    /// Which fields the chain has where files differ is decided by `policy`. Fields that have different types cannot be
    /// read, and are errors where they are chosen. If there is one file only, the result is what `open` gives for it.
    /// ```no_run
    /// use tupelo::dataset::{FieldPolicy, find};
    /// use tupelo::{OpenOptions, Storage, Table};
    ///
    /// let files = find(["run*.root:Events"], &Storage::default())?;
    /// let open = move |file: usize| OpenOptions::at(files[file].clone()).table().map(Some);
    /// let events = Table::chain(3, 1, FieldPolicy::Common, open)?;
    /// for batch in events.read(["Muon_*"])?.batches_of_bytes(64 << 20)? {
    ///     println!("{}", batch?.num_rows());
    /// }
    /// # Ok::<(), tupelo::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of `open`; not found if no file is left.
    pub fn chain(
        count: usize,
        at_once: usize,
        policy: FieldPolicy,
        open: impl Fn(usize) -> Result<Option<Self>> + Send + Sync + 'static,
    ) -> Result<Self> {
        if count == 1 {
            return open(0)?.ok_or_else(no_ntuples);
        }
        let open = move |number| Ok(open(number)?.map(|table| table.source()));
        Chain::new(count, at_once, policy, open).map(Self::Chain)
    }

    /// The fields of several ntuples, trees or chains side by side: entries of the same number belong together, as with
    /// friends of a `TTree`. Each comes with a prefix for the names of its fields, which may be empty.
    /// ```no_run
    /// use tupelo::Table;
    ///
    /// let open = |name| tupelo::open(name).table();
    /// let events = Table::join([("", open("events.root:Events")?), ("nn_", open("scores.root:Scores")?)])?;
    /// let read = events.read(["MET_pt", "nn_score"])?.with_where(&"nn_score > 0.9".parse()?)?;
    /// # Ok::<(), tupelo::Error>(())
    /// ```
    ///
    /// # Errors
    /// Invalid argument if they have different numbers of entries, if two fields would have the same name, and for none.
    pub fn join<P: Into<String>>(tables: impl IntoIterator<Item = (P, Self)>) -> Result<Self> {
        let sides = tables.into_iter().map(|(prefix, table)| (prefix.into(), table.source())).collect();
        Join::new(sides, |_, _| false).map(Self::Join)
    }

    /// The table without some fields, by their names; those that it lacks count for nothing.
    ///
    /// # Errors
    /// Invalid argument if no field is left.
    pub fn without(&self, names: &[String]) -> Result<Self> {
        let is_left_out = |_, name: &str| names.iter().any(|it| it == name);
        let table = Self::Join(Join::new(vec![(String::new(), self.source())], is_left_out)?);
        match table.schema().fields.is_empty() && !self.schema().fields.is_empty() {
            true => Err(self.source().context(Error::invalid_argument("all fields are left out"))),
            false => Ok(table),
        }
    }

    /// The fields of several tables side by side, where entries with the same values of some integer fields belong together,
    /// such as `run` and `event`. The entries are those of the first table, in its order; several of them may have the same
    /// keys, as all events of a run. In each other table, all keys must differ. Keys are dotted paths, and are fields of the
    /// first table only.
    /// ```no_run
    /// use tupelo::Table;
    /// use tupelo::reader::Unmatched;
    ///
    /// let open = |name| tupelo::open(name).table();
    /// let tables = [("", open("events.root:Events")?), ("nn_", open("scores.root:Scores")?)];
    /// let events = Table::join_by(tables, ["run", "event"], Unmatched::Drop)?;
    /// println!("{} events have scores", events.entries());
    /// # Ok::<(), tupelo::Error>(())
    /// ```
    ///
    /// The keys of all tables are read now and kept in memory, with 8 bytes for each and for each entry.
    ///
    /// # Errors
    /// Not found for a key that a table lacks; invalid argument for keys that are not integers, without keys, for entries
    /// of another table with the same keys, for unmatched entries unless `unmatched` says what becomes of them, and as
    /// [`Table::join`]; those of reading.
    pub fn join_by<P: Into<String>, K: Into<String>>(
        tables: impl IntoIterator<Item = (P, Self)>,
        keys: impl IntoIterator<Item = K>,
        unmatched: Unmatched,
    ) -> Result<Self> {
        let keys: Vec<String> = keys.into_iter().map(Into::into).collect();
        if keys.is_empty() {
            return Err(Error::invalid_argument("a join by keys needs at least one key"));
        }
        let (prefixes, sources): (Vec<String>, Vec<_>) =
            tables.into_iter().map(|(prefix, table)| (prefix.into(), table.source())).unzip();
        let sources = matched(sources, &keys, unmatched)?;
        let is_left_out = |side, name: &str| side > 0 && keys.iter().any(|key| key == name);
        Join::new(prefixes.into_iter().zip(sources).collect(), is_left_out).map(Self::Join)
    }

    /// The entries of two tables that have the same values of some integer fields, side by side: in both the keys of all entries
    /// must differ. The order is that of the first table.
    ///
    /// # Errors
    /// As [`Table::join_by`].
    pub fn paired<K: Into<String>>(first: &Self, second: &Self, keys: impl IntoIterator<Item = K>) -> Result<Paired> {
        let keys: Vec<String> = keys.into_iter().map(Into::into).collect();
        let given = [first.source(), second.source()];
        let sources = paired(&given[0], &given[1], &keys)?;
        let of = |source: &Arc<dyn EntrySource>| {
            Join::new(vec![(String::new(), Arc::clone(source))], |_, _| false).map(Self::Join)
        };
        let tables = sources.iter().map(of).collect::<Result<Vec<_>>>()?;
        let [one, other] = <[Self; 2]>::try_from(tables).map_err(|_| Error::corrupt("expected two tables"))?;
        let unpaired = given.map(|source| source.entries() - one.entries());
        Ok(Paired { tables: [one, other], unpaired })
    }

    /// A tree together with its [friends](Tree::friends), which `open` opens: the names of their fields begin with the alias
    /// and `_`. The entries of a friend with an index are those with the same values of its major and minor field, and null
    /// where it has none; those of others are those of the same number. What is not a tree, or has no friends, stays as it is.
    ///
    /// # Errors
    /// Those of `open`, [`Table::join`] and [`Table::join_by`]; unsupported for an index of other expressions than fields.
    pub fn with_friends(&self, mut open: impl FnMut(&Location) -> Result<Self>) -> Result<Self> {
        let mut joined = self.clone();
        for (alias, location) in self.tree().map(Tree::friends).unwrap_or_default() {
            let friend =
                open(&location).map_err(|error| error.within(format!("friend '{alias}' of {}", self.file_name())))?;
            let index = friend.tree().and_then(|tree| tree.metadata().index.clone());
            let sides = [(String::new(), joined), (format!("{alias}_"), friend)];
            joined = match index {
                None => Self::join(sides)?,
                Some(index) => {
                    // ROOT writes "0" as the minor expression of an index without one.
                    let keys: Vec<String> = index.into_iter().filter(|name| !name.is_empty() && name != "0").collect();
                    let is_field = |name: &String| sides.iter().all(|(_, table)| table.read([escaped(name)]).is_ok());
                    if let Some(other) = keys.iter().find(|name| !is_field(name)) {
                        let what =
                            format!("friend '{alias}' has an index of '{other}', which both trees need as a field");
                        return Err(Error::unsupported(what).in_file(self.file_name()));
                    }
                    Self::join_by(sides, keys, Unmatched::Null)?
                }
            };
        }
        Ok(joined)
    }

    pub(super) fn as_source(&self) -> &dyn EntrySource {
        match self {
            Self::Ntuple(ntuple) => ntuple,
            Self::Tree(tree) => tree,
            Self::Chain(chain) => chain,
            Self::Join(join) => join,
        }
    }

    pub(super) fn source(&self) -> Arc<dyn EntrySource> {
        match self {
            Self::Ntuple(ntuple) => Arc::new(ntuple.clone()),
            Self::Tree(tree) => Arc::new(tree.clone()),
            Self::Chain(chain) => Arc::new(chain.clone()),
            Self::Join(join) => Arc::new(join.clone()),
        }
    }

    /// The ntuple.
    ///
    /// # Errors
    /// Unsupported for a tree, and for several files.
    pub fn ntuple(&self) -> Result<&Ntuple> {
        let what = match self {
            Self::Ntuple(ntuple) => return Ok(ntuple),
            Self::Tree(tree) => format!("'{}' is a TTree, not an RNTuple", tree.path()),
            Self::Chain(chain) => format!("expected one RNTuple, found {} files", chain.parts().len()),
            Self::Join(join) => format!("expected one RNTuple, found a join of {}", join.sides()),
        };
        Err(Error::unsupported(what).in_file(self.file_name()))
    }

    /// Whether the entries are those of trees, of one or of several.
    pub fn is_of_trees(&self) -> bool {
        self.as_source().schema().is_of_tree()
    }

    /// The tree, if it is one.
    pub fn tree(&self) -> Option<&Tree> {
        match self {
            Self::Tree(tree) => Some(tree),
            Self::Ntuple(_) | Self::Chain(_) | Self::Join(_) => None,
        }
    }

    /// The files, if there are several.
    pub fn files(&self) -> Option<&Chain> {
        match self {
            Self::Chain(chain) => Some(chain),
            Self::Ntuple(_) | Self::Tree(_) | Self::Join(_) => None,
        }
    }

    /// Name, without directories.
    pub fn name(&self) -> &str {
        match self {
            Self::Ntuple(ntuple) => ntuple.name(),
            Self::Tree(tree) => tree.name(),
            Self::Chain(_) | Self::Join(_) => self.path().rsplit('/').next().unwrap_or_default(),
        }
    }

    /// Path in the file, with the directories; of several files that in the first one.
    pub fn path(&self) -> &str {
        self.as_source().path()
    }

    /// Path or URL of the file; of several files the first ones and their number.
    pub fn file_name(&self) -> String {
        self.as_source().file_name()
    }

    /// Free text; of several files that of the first one.
    pub fn description(&self) -> &str {
        self.as_source().sidecar().description()
    }

    /// Number of entries.
    pub fn entries(&self) -> u64 {
        self.as_source().entries()
    }

    /// Number of clusters.
    pub fn clusters(&self) -> u64 {
        self.as_source().clusters()
    }

    /// The fields.
    pub fn schema(&self) -> &Schema {
        self.as_source().schema().schema()
    }

    /// The Arrow schema of all listed fields.
    pub fn arrow_schema(&self) -> SchemaRef {
        let schema = self.as_source().schema();
        schema.to_arrow(&schema.schema().listed()).into()
    }

    /// What cannot be read of it, for a warning: fields of an ntuple, branches of a tree. A warning of one of several files
    /// names the file.
    pub fn warnings(&self) -> Vec<String> {
        self.as_source().sidecar().warnings()
    }

    /// The rules of the format that the file around it, or any of several files, breaks; see
    /// [`File::deviations`](super::File::deviations).
    pub fn deviations(&self) -> Vec<Deviation> {
        self.as_source().sidecar().deviations()
    }

    /// The layouts of classes that the file describes.
    ///
    /// # Errors
    /// Those of [`Ntuple::streamer_infos`].
    pub fn streamer_infos(&self) -> Result<StreamerInfos> {
        match self {
            Self::Ntuple(ntuple) => ntuple.streamer_infos(),
            Self::Tree(tree) => Ok(tree.streamer_infos().clone()),
            Self::Chain(_) | Self::Join(_) => self.as_source().sidecar().streamer_infos(),
        }
    }

    /// An identifier that changes when the table, or a file around it, is rewritten; see [`Ntuple::identity`].
    ///
    /// # Errors
    /// Storage errors.
    pub fn identity(&self) -> Result<String> {
        self.as_source().identity()
    }

    /// The same with read rules; see [`Ntuple::with_rules`].
    ///
    /// # Errors
    /// As [`Ntuple::with_rules`]; unsupported for several files: add the rules to each file before you chain or join them.
    pub fn with_rules(&self, rules: impl IntoIterator<Item = ReadRule>) -> Result<Self> {
        Ok(match self {
            Self::Ntuple(ntuple) => Self::Ntuple(ntuple.with_rules(rules)?),
            Self::Tree(tree) => Self::Tree(tree.with_rules(rules)?),
            Self::Chain(_) | Self::Join(_) => {
                let what = "rules are for one file: give them to each before they are chained or joined";
                return Err(Error::unsupported(what).in_file(self.file_name()));
            }
        })
    }

    /// The same with another way of fetching baskets; see [`Tree::with_cache`]. What is not a tree stays as it is.
    #[must_use]
    pub fn with_tree_cache(&self, cache: TreeCache) -> Self {
        match self {
            Self::Tree(tree) => Self::Tree(tree.with_cache(cache)),
            Self::Ntuple(_) | Self::Chain(_) | Self::Join(_) => self.clone(),
        }
    }

    /// Read statistics, if they are collected; see [`Ntuple::metrics`]. For several files there are none: each has its own.
    pub fn metrics(&self) -> Option<Metrics> {
        match self {
            Self::Ntuple(ntuple) => ntuple.metrics(),
            Self::Tree(tree) => tree.metrics(),
            Self::Chain(_) | Self::Join(_) => None,
        }
    }

    /// Selects fields to read, by dotted paths or globs; no pattern means all.
    ///
    /// # Errors
    /// Not found, with near names, for a pattern that matches no field, or only fields that some of several files lack;
    /// invalid argument for fields that have other types in other files.
    pub fn read<S: AsRef<str>>(&self, patterns: impl AsRef<[S]>) -> Result<Read> {
        let patterns = patterns.as_ref();
        if let Self::Chain(chain) = self {
            chain.check(patterns, &[])?;
        }
        Read::select(self.source(), patterns)
    }

    /// Selects all listed fields.
    pub fn read_all(&self) -> Read {
        Read::all(self.source())
    }
}

/// The entries of two tables with the same keys: made by [`Table::paired`].
#[derive(Debug)]
#[non_exhaustive]
pub struct Paired {
    /// Both with the same number of entries.
    pub tables: [Table; 2],
    /// The number of entries of each that the other lacks.
    pub unpaired: [u64; 2],
}

impl Chain {
    /// Refuses what cannot be chosen because files differ: fields that some files lack, where `wanted` names no others, and
    /// fields that have other types in other files, unless `unwanted` names them.
    ///
    /// # Errors
    /// Not found and invalid argument, with the files.
    pub fn check<S: AsRef<str>>(&self, wanted: &[S], unwanted: &[S]) -> Result<()> {
        let missing = self.missing::<&str>(&[], &[]);
        if let (true, true, Some(_)) = (wanted.is_empty(), self.schema().schema().fields.is_empty(), missing.first()) {
            let what = format!("the files have no field in common ({})", listed(&missing));
            return Err(self.context(Error::invalid_argument(what).with_remedy(Remedy::UnionFields)));
        }
        for differing in self.differing().iter().filter(|it| !is_meant_by(it, unwanted)) {
            let Differing { path, reason, is_missing } = differing;
            match is_missing {
                true if wanted
                    .iter()
                    .any(|pattern| is_meant_by(differing, &[pattern]) && self.lacks(pattern.as_ref())) =>
                {
                    let what = format!("field '{path}' is not in all files: {reason}");
                    return Err(self.context(Error::not_found(what).with_remedy(Remedy::UnionFields)));
                }
                false if wanted.is_empty() || is_meant_by(differing, wanted) => {
                    let what = format!("field '{path}' {reason}; select other fields, or read the files one by one");
                    return Err(self.context(Error::invalid_argument(what)));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Whether a pattern names only fields that are left out because files differ.
    pub fn lacks(&self, pattern: &str) -> bool {
        self.differing().iter().any(|it| is_meant_by(it, &[pattern])) && self.schema().select(&[pattern]).is_err()
    }

    /// Refuses to leave out fields that some files lack; with patterns, of those that [`Chain::missing`] chooses.
    ///
    /// # Errors
    /// Invalid argument, with the fields.
    pub fn check_complete<S: AsRef<str>>(&self, wanted: &[S], unwanted: &[S]) -> Result<()> {
        match self.missing_text(wanted, unwanted) {
            None => Ok(()),
            Some(missing) => {
                let what = format!("some files lack the fields {missing}; select other fields");
                Err(self.context(Error::invalid_argument(what)))
            }
        }
    }

    /// As [`Chain::missing`], as a list for a message; `None` if there are none.
    pub fn missing_text<S: AsRef<str>>(&self, wanted: &[S], unwanted: &[S]) -> Option<String> {
        let missing = self.missing(wanted, unwanted);
        (!missing.is_empty()).then(|| listed(&missing))
    }

    /// Which file lacks the first of [`Chain::missing`].
    pub fn missing_reason<S: AsRef<str>>(&self, wanted: &[S], unwanted: &[S]) -> Option<String> {
        let first = *self.missing(wanted, unwanted).first()?;
        let differing = self.differing().iter().find(|it| it.is_missing && it.path == first)?;
        Some(format!("'{first}': {}", differing.reason))
    }

    /// The dotted paths of fields that are left out because some files lack them. With patterns, only what `wanted` names,
    /// if it names anything, and `unwanted` does not.
    pub fn missing<S: AsRef<str>>(&self, wanted: &[S], unwanted: &[S]) -> Vec<&str> {
        let missing = self.differing().iter().filter(|it| it.is_missing);
        let chosen = missing.filter(|it| (wanted.is_empty() || is_meant_by(it, wanted)) && !is_meant_by(it, unwanted));
        chosen.map(|it| it.path.as_str()).collect()
    }
}

/// Whether one of the patterns names a field.
fn is_meant_by<S: AsRef<str>>(field: &Differing, patterns: &[S]) -> bool {
    patterns.iter().any(|pattern| Skipped::new(&field.path, "").is_meant_by(pattern.as_ref()))
}
