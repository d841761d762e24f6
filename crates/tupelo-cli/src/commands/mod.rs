//! The subcommands.

mod auxbench;
mod browse;
mod changes;
mod copy;
mod dump;
mod fields;
mod head;
mod index;
mod inspect;
mod ls;
mod schema;
mod tune;
mod verify;
mod write;

use std::collections::HashSet;
use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use arrow_schema::{DataType, Field as ArrowField, Schema as ArrowSchema};
use clap::Subcommand;
use tupelo::dataset::{FieldPolicy, opened_at_once};
use tupelo::reader::{Location, Read};
use tupelo::schema::Schema;
use tupelo::storage::{self, Cache, Storage, display_name};
use tupelo::{ErrorKind, Expression, File, OpenOptions, Table};

use self::copy::operands::Skipping;
use self::fields::{Fields, Selecting, SkipUnreadable};
pub(crate) use self::write::run as write;
pub use self::write::{Events, OutputOptions};
use crate::console::{Color, Console, Watch};
use crate::failure::Failure;
use crate::help;
use crate::inputs::{check_not_standard_output, repeated};
use crate::parse::{Bytes, Entries};
use crate::table::things;

/// Options of all commands.
#[derive(Debug, clap::Args)]
pub(crate) struct Common {
    /// Print only errors to stderr: no warnings, summaries or progress
    #[arg(short, long, global = true, display_order = 100)]
    pub(crate) quiet: bool,
    /// Number of threads that decode and encode; 0 means one per core [default: the variable TUPELO_THREADS, or 0]
    // Not by clap's `env`: the usage lines of errors would show the option as required where the variable is set.
    #[arg(long, global = true, value_name = "N", display_order = 102)]
    pub(crate) threads: Option<usize>,
    /// When to use colours; `auto` means on terminals, following NO_COLOR and CLICOLOR
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", display_order = 101)]
    pub(crate) color: Color,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Ls(ls::Args),
    Schema(schema::Args),
    Head(head::Args),
    Count(head::count::Args),
    Hist(head::hist::Args),
    Show(head::show::Args),
    Dump(dump::Args),
    Sql(head::sql::Args),
    #[command(visible_alias = "stat")]
    Inspect(inspect::Args),
    Browse(browse::Args),
    Explain(inspect::explain::Args),
    Layout(inspect::layout::Args),
    Verify(verify::Args),
    Diff(copy::diff::Args),
    Copy(copy::Args),
    Import(copy::import::Args),
    Export(copy::export::Args),
    Merge(copy::merge::Args),
    Join(copy::join::Args),
    Append(copy::append::Args),
    Index(index::Args),
    Rm(changes::rm::Args),
    Mv(changes::mv::Args),
    Mkdir(changes::mkdir::Args),
    Repack(changes::repack::Args),
    Gc(changes::gc::Args),
    Cost(tune::cost::Args),
    Tune(tune::Args),
    Auxbench(auxbench::Args),
    Completions(help::Completions),
    Man(help::Manual),
}

impl Command {
    /// Runs it. `own` builds the whole command.
    pub(crate) fn run(self, own: impl FnOnce() -> clap::Command, console: &Console) -> Result<(), Failure> {
        match self {
            Self::Ls(args) => ls::run(&args, console),
            Self::Schema(args) => schema::run(&args, console),
            Self::Head(args) => head::run(&args, console),
            Self::Count(args) => head::count::run(&args, console),
            Self::Hist(args) => head::hist::run(&args, console),
            Self::Show(args) => head::show::run(&args, console),
            Self::Dump(args) => dump::run(&args, console),
            Self::Sql(args) => head::sql::run(&args, console),
            Self::Inspect(args) => inspect::run(&args, console),
            Self::Browse(args) => browse::run(&args, console),
            Self::Explain(args) => inspect::explain::run(&args, console),
            Self::Layout(args) => inspect::layout::run(&args, console),
            Self::Verify(args) => verify::run(&args, console),
            Self::Diff(args) => copy::diff::run(&args, console),
            Self::Copy(args) => copy::run(&args, console),
            Self::Import(args) => copy::import::run(&args, console),
            Self::Export(args) => copy::export::run(&args, console),
            Self::Merge(args) => copy::merge::run(&args, console),
            Self::Join(args) => copy::join::run(&args, console),
            Self::Append(args) => copy::append::run(&args, console),
            Self::Index(args) => index::run(&args, console),
            Self::Rm(args) => changes::rm::run(&args, console),
            Self::Mv(args) => changes::mv::run(&args, console),
            Self::Mkdir(args) => changes::mkdir::run(&args, console),
            Self::Repack(args) => changes::repack::run(&args, console),
            Self::Gc(args) => changes::gc::run(&args, console),
            Self::Cost(args) => tune::cost::run(&args, console),
            Self::Tune(args) => tune::run(&args, console),
            Self::Auxbench(args) => auxbench::run(&args, console),
            Self::Completions(args) => help::complete(&args, own(), console),
            Self::Man(args) => help::manual(&args, own(), console),
        }
    }
}

/// The default of the engine as text for clap; a test compares the two.
const DEFAULT_BUDGET_TEXT: &str = "1GiB";

/// Options of all commands that read.
#[derive(Debug, clap::Args)]
struct Reading {
    /// Memory limit of reading in addition to the requested values; larger requests are fetched in smaller batches, or
    /// refused [default: 1 GiB]
    #[arg(long, value_name = "SIZE", default_value = DEFAULT_BUDGET_TEXT, hide_default_value = true)]
    memory_budget: Bytes,
    /// Read the complete records of a file that was cut off, or whose writer was killed before it saved the directories;
    /// trees with ROOT's own classes also if the streamer info is damaged
    #[arg(long)]
    recover: bool,
    #[command(flatten)]
    remote: Remote,
}

/// Options of all commands that read or write remote files.
#[derive(Debug, clap::Args)]
struct Remote {
    /// Storage option for remote files, such as anonymous=true or aws_endpoint_url=https://s3.example.org; may be
    /// repeated (see docs/guide/remote.md, and docs/guide/objects.md for DAOS and redundancy)
    #[arg(long = "storage-option", value_name = "NAME=VALUE")]
    options: Vec<StorageOption>,
    /// Keep fetched ranges of remote files in this directory, up to 10 GiB
    #[arg(long, value_name = "DIR")]
    cache: Option<PathBuf>,
    #[arg(skip)]
    storage: OnceLock<Storage>,
}

/// A value of `--storage-option`. The value may be a secret.
#[derive(Clone)]
struct StorageOption(String, String);

impl fmt::Debug for StorageOption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for StorageOption {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE, such as anonymous=true")?;
        Ok(Self(name.trim().to_owned(), value.to_owned()))
    }
}

impl Remote {
    fn storage(&self) -> Result<&Storage, Failure> {
        if let Some(storage) = self.storage.get() {
            return Ok(storage);
        }
        let options = self.options.iter().map(|StorageOption(name, value)| (name, value));
        let options = storage::Options::new(options).map_err(|error| Failure::usage(tupelo::Error::from(error)))?;
        let storage = Storage::new(options);
        let storage = match &self.cache {
            Some(directory) => {
                let cache = Cache::open(directory, Cache::DEFAULT_BYTES).map_err(tupelo::Error::from)?;
                storage.with_cache(cache)
            }
            None => storage,
        };
        Ok(self.storage.get_or_init(|| storage))
    }
}

/// The failure to open a file.
fn unopened(error: tupelo::Error) -> Failure {
    match error.kind() {
        // `tupelo verify` could not open it either, so no hint.
        ErrorKind::Corrupt => Failure::new(error),
        _ => Failure::from(error),
    }
}

/// How an ntuple, one of its attribute sets, or a tree is opened, perhaps again and again.
#[derive(Clone)]
struct Opening {
    location: Location,
    options: OpenOptions,
    attributes: Option<String>,
    has_friends: bool,
    watch: Watch,
}

/// Why it cannot be opened.
enum Unopened {
    File(tupelo::Error),
    /// There is a file, without the requested ntuple.
    Object(tupelo::Error),
}

impl Unopened {
    fn into_error(self) -> tupelo::Error {
        match self {
            Self::File(error) | Self::Object(error) => error,
        }
    }

    fn into_failure(self, location: &Location) -> Failure {
        match self {
            Self::File(error) => unopened(error),
            Self::Object(error) => no_ntuple(error, location),
        }
    }
}

impl Opening {
    fn table(&self) -> Result<Table, Unopened> {
        let file = self.options.clone().open_file().map_err(Unopened::File)?;
        // Batches may need the same parts of a remote file.
        let file = self.watch.file(file).with_recent_requests();
        let mut table = file.table(self.location.object.as_deref()).map_err(Unopened::Object)?;
        if self.has_friends {
            let open = |friend: &Location| {
                let options = self.options.clone().for_another(friend.clone());
                self.watch.file(options.open_file()?).with_recent_requests().table(friend.object.as_deref())
            };
            table = table.with_friends(open).map_err(Unopened::Object)?;
        }
        let set = |set: &String| Ok(Table::Ntuple(table.ntuple()?.attribute_set(set)?));
        self.attributes.as_ref().map_or_else(|| Ok(table.clone()), set).map_err(Unopened::Object)
    }
}

impl Reading {
    /// Whether files are recovered.
    fn recovers(&self) -> bool {
        self.recover
    }

    /// Where files come from and go to.
    fn storage(&self) -> Result<&Storage, Failure> {
        self.remote.storage()
    }

    /// Opens the file of a location.
    fn open_file(&self, location: &Location, console: &Console) -> Result<File, Failure> {
        // Batches may need the same parts of a remote file.
        Ok(console.watch().file(self.open_uncounted(location)?).with_recent_requests())
    }

    /// Opens the file of a location without read statistics.
    fn open_uncounted(&self, location: &Location) -> Result<File, Failure> {
        self.try_open(location)?.map_err(unopened)
    }

    /// The same, with the error of the engine.
    fn try_open(&self, location: &Location) -> Result<tupelo::Result<File>, Failure> {
        Ok(self.options(location)?.open_file())
    }

    fn options(&self, location: &Location) -> Result<OpenOptions, Failure> {
        check_not_standard_output(location)?;
        let options = OpenOptions::at(location.clone()).with_memory_budget(self.memory_budget.0);
        Ok(options.with_recover(self.recover).with_storage(self.storage()?.clone()))
    }

    fn opening(&self, location: &Location, attributes: Option<&str>, console: &Console) -> Result<Opening, Failure> {
        let (options, watch) = (self.options(location)?, console.watch().clone());
        let attributes = attributes.map(str::to_owned);
        Ok(Opening { location: location.clone(), options, attributes, has_friends: false, watch })
    }

    /// Opens an ntuple, one of its attribute sets, or a tree, and prints its warnings.
    fn open(&self, location: &Location, attributes: Option<&str>, console: &Console) -> Result<Table, Failure> {
        let table = self.open_silently(location, attributes, console)?;
        console.warn_of(&table);
        Ok(table)
    }

    /// Opens an ntuple, one of its attribute sets, or a tree.
    fn open_silently(
        &self,
        location: &Location,
        attributes: Option<&str>,
        console: &Console,
    ) -> Result<Table, Failure> {
        self.opening(location, attributes, console)?.table().map_err(|error| error.into_failure(location))
    }
}

/// One request for several files.
#[derive(Debug, clap::Args)]
struct Files {
    /// Ntuples or trees, as FILE or FILE:NAME; wildcards match files ('run*.root:Events'). The entries of several files are read
    /// as one sequence, numbered consecutively
    #[arg(value_name = "FILE[:NAME]", required = true)]
    inputs: Vec<String>,
    #[command(flatten)]
    sources: Sources,
}

/// How several files are read as one.
#[derive(Debug, clap::Args)]
struct Sources {
    /// With several files: also read the fields missing in some files, with nulls for their entries. The fields
    /// of --cut and --define must exist in every file
    #[arg(long)]
    union: bool,
    /// Read the attribute set of this name linked to the ntuple
    #[arg(long, value_name = "SET")]
    attributes: Option<String>,
    /// Also read the friends of trees: the names of their fields begin with the alias of the friend and '_'
    #[arg(long, conflicts_with = "attributes")]
    friends: bool,
    #[command(flatten)]
    skipping: Skipping,
    #[command(flatten)]
    reading: Reading,
}

/// What was found when files were opened for the first time.
#[derive(Default)]
struct FirstLook {
    opened: HashSet<usize>,
    failure: Option<Failure>,
}

impl Sources {
    /// What is chosen of all files, one after the other; of no more entries than `most`, if that is known. Prints what is
    /// left out, and returns the number of such fields.
    fn read(
        &self,
        table: &Table,
        fields: &Fields,
        condition: &Condition,
        (range, most): (&EntryRange, Option<u64>),
        console: &Console,
    ) -> Result<(Read, usize), Failure> {
        let entries = range.of(table.entries(), console);
        let entries = entries.start..entries.end.min(entries.start.saturating_add(most.unwrap_or(u64::MAX)));
        let selecting = Selecting { entries: entries.clone(), ..Selecting::default() };
        let chosen = fields.select(table, Some(condition), &selecting)?;
        if let (true, Some(skipped)) = (chosen.read.schema().fields.is_empty(), chosen.skipped.first()) {
            let place = format_args!("{}: '{}'", table.file_name(), table.path());
            return Err(Failure::new(format_args!("{place}: none of the fields can be read: {}", skipped.reason)));
        }
        chosen.tell(table, console);
        let read = condition.apply(chosen.read)?.entries(entries).in_order_of(&fields.patterns());
        Ok((read, chosen.skipped.len()))
    }

    /// The only file, or all files one after the other. Prints what is left out because files cannot be opened.
    fn table(&self, locations: &[Location], console: &Console) -> Result<Table, Failure> {
        warn_of_repeated(locations, "read", console);
        let what = Opened { set: self.attributes.as_deref(), has_friends: self.friends };
        let table = self.reading.chain(locations, policy(self.union), what, &self.skipping, console)?;
        self.skipping.finish(locations.len(), console)?;
        Ok(table)
    }
}

/// Warns of an input that was given twice; `done` is what happens to its entries.
fn warn_of_repeated(locations: &[Location], done: &str, console: &Console) {
    if let Some(repeated) = repeated(locations) {
        console.warn(&format!("{repeated} occurs more than once; its entries are {done} each time"));
    }
}

/// Which fields several files have together.
fn policy(union: bool) -> FieldPolicy {
    if union { FieldPolicy::Union } else { FieldPolicy::Common }
}

/// What is opened of each file.
#[derive(Clone, Copy, Default)]
struct Opened<'a> {
    /// An attribute set, instead of the ntuple.
    set: Option<&'a str>,
    /// Whether the friends of trees are opened, too.
    has_friends: bool,
}

impl Reading {
    /// The only file, or all files one after the other. Files that cannot be opened are noted.
    fn chain(
        &self,
        locations: &[Location],
        policy: FieldPolicy,
        what: Opened<'_>,
        skipping: &Skipping,
        console: &Console,
    ) -> Result<Table, Failure> {
        let opening =
            |location| Ok(Opening { has_friends: what.has_friends, ..self.opening(location, what.set, console)? });
        let openings: Vec<Opening> = locations.iter().map(opening).collect::<Result<_, Failure>>()?;
        let count = openings.len();
        let at_once = opened_at_once(locations.iter().map(|location| location.file.as_str()));
        let (looked, noting) = (Arc::new(Mutex::<FirstLook>::default()), skipping.clone());
        let looks = Arc::clone(&looked);
        let open = move |number: usize| {
            let opening: &Opening = &openings[number];
            let looked = || looks.lock().unwrap_or_else(PoisonError::into_inner);
            if looked().opened.contains(&number) {
                return opening.table().map(Some).map_err(Unopened::into_error);
            }
            let opened = opening.table().map_err(|error| error.into_failure(&opening.location));
            match noting.note(&opening.location, count, opened) {
                Ok(None) => Ok(None),
                Ok(Some(table)) => {
                    opening.watch.follow(&table);
                    looked().opened.insert(number);
                    Ok(Some(table))
                }
                Err(failure) => {
                    let error = tupelo::Error::invalid_argument(failure.message.clone().unwrap_or_default());
                    looked().failure = Some(failure);
                    Err(error)
                }
            }
        };
        let table = Table::chain(count, at_once, policy, open);
        let failure = looked.lock().unwrap_or_else(PoisonError::into_inner).failure.take();
        match (table, failure) {
            (Ok(table), None) => Ok(table),
            (_, Some(failure)) => Err(failure),
            (Err(error), None) => {
                // It may be that no file is left.
                skipping.finish(count, console)?;
                Err(error.into())
            }
        }
    }
}

/// The error of a file without the requested ntuple.
fn no_ntuple(error: tupelo::Error, location: &Location) -> Failure {
    let is_missing = error.is_not_found() || error.kind() == ErrorKind::Unsupported;
    let failure = Failure::from(error);
    match is_missing {
        true => {
            failure.with_hint(format!("`tupelo ls {}` lists the contents of the file", display_name(&location.file)))
        }
        false => failure,
    }
}

/// The option for a range of entries.
#[derive(Debug, Default, clap::Args)]
struct EntryRange {
    /// Entry range, as in Python: 10:20, :100, -10:, or 5 for a single entry [default: all]
    #[arg(long, value_name = "START:STOP", allow_hyphen_values = true)]
    entries: Option<Entries>,
}

impl EntryRange {
    /// Whether no range is chosen.
    fn is_whole(&self) -> bool {
        self.entries.is_none()
    }

    /// The range in `count` entries, limited to them. Warns if some are asked for and none is in it.
    fn of(&self, count: u64, console: &Console) -> Range<u64> {
        let entries = self.entries.unwrap_or_default();
        if entries.is_after(count) {
            console.warn(&format!("--entries selects nothing: there are only {}", things(count, "entry")));
        } else if entries.is_reversed(count) {
            console.warn("--entries selects nothing: the range ends before it begins");
        }
        entries.of(count)
    }
}

/// Options with expressions: additional columns, and a cut.
#[derive(Debug, Default, clap::Args)]
struct Condition {
    /// Add a computed column, such as 'ht=sum(Jet_pt)': a name and an expression in the syntax of --cut; may be
    /// repeated, and later expressions may use the name
    #[arg(long, value_name = "NAME=EXPRESSION")]
    define: Vec<Definition>,
    /// Keep only entries for which this expression is true, such as 'len(Muon_pt) == 2 and sum(Muon_charge) == 0', in
    /// Python syntax (see docs/guide/expressions.md); pages without such entries are not read
    #[arg(long = "cut", visible_alias = "where", value_name = "EXPRESSION")]
    expression: Option<Expression>,
}

/// A column of `--define`.
#[derive(Debug, Clone)]
struct Definition {
    name: String,
    expression: Expression,
}

impl FromStr for Definition {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, expression) = match text.split_once('=') {
            Some((name, expression)) if !name.trim().is_empty() && !expression.starts_with('=') => {
                (name.trim(), expression)
            }
            _ => return Err("expected NAME=EXPRESSION, such as 'ht=sum(Jet_pt)'".to_owned()),
        };
        let expression = expression.trim().parse().map_err(|error: tupelo::Error| error.to_string())?;
        Ok(Self { name: name.to_owned(), expression })
    }
}

impl Condition {
    /// Whether no expression is given.
    fn is_empty(&self) -> bool {
        self.define.is_empty() && self.expression.is_none()
    }

    /// Whether columns are added.
    fn has_columns(&self) -> bool {
        !self.define.is_empty()
    }

    fn has_cut(&self) -> bool {
        self.expression.is_some()
    }

    /// Removes patterns that match a defined column but no field.
    fn remove_defined(&self, table: &Table, wanted: &mut Vec<String>) {
        // Only the names matter.
        let column = |column: &Definition| ArrowField::new(&column.name, DataType::Boolean, false);
        let columns: Vec<_> = self.define.iter().map(column).collect();
        let Ok(defined) = Schema::from_arrow(&ArrowSchema::new(columns)) else { return };
        let is_column = |pattern: &String| defined.select(&[pattern]).is_ok();
        wanted.retain(|pattern| !is_column(pattern) || table.read([pattern]).is_ok());
    }

    /// Prints a note if the cut keeps no entry.
    fn note_if_empty(&self, requested: u64, kept: u64, console: &Console) {
        if self.has_cut() && requested > 0 && kept == 0 {
            console.note("no entry matches --cut");
        }
    }

    fn apply(&self, read: Read) -> Result<Read, Failure> {
        let define = |read: Read, column: &Definition| read.with_defined(&column.name, &column.expression);
        let read = self.define.iter().try_fold(read, define)?;
        match &self.expression {
            None => Ok(read),
            Some(expression) => Ok(read.with_where(expression)?),
        }
    }
}

#[cfg(test)]
mod tests {
    use tupelo::reader::DEFAULT_MEMORY_BUDGET_BYTES;

    use super::*;

    #[test]
    fn the_default_budget_matches_the_engine() {
        assert_eq!(DEFAULT_BUDGET_TEXT.parse(), Ok(Bytes(DEFAULT_MEMORY_BUDGET_BYTES)));
    }
}
