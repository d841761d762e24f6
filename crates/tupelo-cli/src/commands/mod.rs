//! The subcommands.

mod copy;
mod dump;
mod explain;
mod generate;
mod head;
mod index;
mod layout;
mod ls;
mod schema;
mod target;
mod verify;

use std::str::FromStr;

use arrow_schema::{DataType, Field as ArrowField, Schema as ArrowSchema};
use clap::Subcommand;
use tupelo::reader::{Location, Read};
use tupelo::schema::Schema;
use tupelo::{ErrorKind, Expression, File, Ntuple, OpenOptions};

use crate::console::Console;
use crate::failure::Failure;
use crate::inputs::{check_not_standard_output, one};
use crate::parse::{Bytes, Patterns, patterns};
use crate::table::things;

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Ls(ls::Args),
    Schema(schema::Args),
    Head(head::Args),
    Dump(dump::Args),
    Explain(explain::Args),
    Layout(layout::Args),
    Verify(verify::Args),
    Copy(copy::Args),
    Index(index::Args),
    Generate(generate::Args),
}

impl Command {
    pub(crate) fn run(self, console: &Console) -> Result<(), Failure> {
        match self {
            Self::Ls(args) => ls::run(&args, console),
            Self::Schema(args) => schema::run(&args, console),
            Self::Head(args) => head::run(&args, console),
            Self::Dump(args) => dump::run(&args, console),
            Self::Explain(args) => explain::run(&args, console),
            Self::Layout(args) => layout::run(&args, console),
            Self::Verify(args) => verify::run(&args, console),
            Self::Copy(args) => copy::run(&args, console),
            Self::Index(args) => index::run(&args, console),
            Self::Generate(args) => generate::run(&args, console),
        }
    }
}

/// The engine's default as clap wants it; a test holds the two together.
const DEFAULT_BUDGET_TEXT: &str = "1GiB";

/// How to read: what all commands have that do.
#[derive(Debug, clap::Args)]
struct Reading {
    /// Limit of the memory that reading may take in addition to the requested values; what needs more is read in parts,
    /// or refused [default: 1 GiB]
    #[arg(long, value_name = "SIZE", default_value = DEFAULT_BUDGET_TEXT, hide_default_value = true)]
    memory_budget: Bytes,
}

impl Reading {
    /// Opens the file of a location.
    fn open_file(&self, location: &Location, console: &Console) -> Result<File, Failure> {
        let file = self.look_into(location)?;
        Ok(console.watch(if console.has_metrics() { file.with_metrics() } else { file }))
    }

    /// Opens the file of a location, for what is not counted as reading it.
    fn look_into(&self, location: &Location) -> Result<File, Failure> {
        check_not_standard_output(&location.path)?;
        let opened = OpenOptions::at(location.clone()).with_memory_budget(self.memory_budget.0).open_file();
        opened.map_err(|error| match error.kind() {
            // `tupelo verify` could not open it either.
            ErrorKind::Corrupt => Failure::new(error),
            _ => Failure::from(error),
        })
    }

    /// Opens the one ntuple that an argument `FILE[:NAME]` names, or one of its attribute sets.
    fn open(&self, argument: &str, attributes: Option<&str>, console: &Console) -> Result<Ntuple, Failure> {
        self.open_ntuple(&one(argument)?, attributes, console)
    }

    /// Opens an ntuple, or one of its attribute sets, and passes on its warnings.
    fn open_ntuple(&self, location: &Location, attributes: Option<&str>, console: &Console) -> Result<Ntuple, Failure> {
        let file = self.open_file(location, console)?;
        let ntuple = file.ntuple(location.object.as_deref()).map_err(|error| no_ntuple(error, location))?;
        let ntuple = match attributes {
            Some(set) => ntuple.attribute_set(set)?,
            None => ntuple,
        };
        warn(&ntuple, console);
        Ok(ntuple)
    }
}

/// The failure of a file in which the wanted ntuple is not.
fn no_ntuple(error: tupelo::Error, location: &Location) -> Failure {
    let is_missing = matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Unsupported);
    let failure = Failure::from(error);
    match is_missing {
        true => failure.with_hint(format!("`tupelo ls {}` lists what the file holds", location.path.display())),
        false => failure,
    }
}

/// Does the same for each of several files. A failure is reported, and the next file follows.
fn for_each(
    locations: &[Location],
    console: &Console,
    mut run: impl FnMut(&Location) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let [_, _, ..] = locations else {
        return locations.iter().try_for_each(run);
    };
    let (mut failed, mut status) = (0, 0);
    for location in locations {
        if let Err(failure) = run(location) {
            if crate::console::reader_is_gone() {
                return Err(failure);
            }
            console.fail(&failure);
            status = status.max(failure.status);
            failed += 1;
        }
    }
    match failed {
        0 => Ok(()),
        _ => Err(Failure {
            status,
            ..Failure::new(format_args!("{failed} of {} failed", things(locations.len() as u64, "file")))
        }),
    }
}

/// Which fields: what all commands have that show or copy some.
#[derive(Debug, clap::Args)]
struct Fields {
    /// Fields, by dotted paths and globs between commas: MET_pt,jets.pt,'Muon_*' [default: all]
    #[arg(long, value_name = "FIELDS")]
    fields: Vec<Patterns>,
    /// Fields to leave out of these, written likewise
    #[arg(long, value_name = "FIELDS")]
    exclude: Vec<Patterns>,
}

impl Fields {
    /// Chooses them. Columns that are defined are there in any case, and may be named.
    fn read(&self, ntuple: &Ntuple, condition: Option<&Condition>) -> Result<Read, Failure> {
        let mut wanted = patterns(&self.fields);
        if let Some(condition) = condition {
            condition.forget_defined(ntuple, &mut wanted);
        }
        let read = match wanted.is_empty() && !self.fields.is_empty() {
            true => ntuple.read_all().without_fields(),
            false => ntuple.read(wanted)?,
        };
        Ok(read.without(patterns(&self.exclude))?)
    }
}

/// What is computed of entries: more columns, and which entries to keep.
#[derive(Debug, clap::Args)]
struct Condition {
    /// Add a column computed for each entry, as 'ht=sum(Jet_pt)': a name and an expression as for --where; may be given
    /// several times, and later expressions may use the name
    #[arg(long, value_name = "NAME=EXPRESSION")]
    define: Vec<Definition>,
    /// Only entries for which this is true, as 'len(Muon_pt) == 2 and sum(Muon_charge) == 0': written as in Python, see
    /// docs/guide/expressions.md; pages that hold no such entry are not read
    #[arg(long = "where", visible_alias = "cut", value_name = "EXPRESSION")]
    expression: Option<Expression>,
}

/// A name and what it stands for.
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
            _ => return Err("a name, '=' and an expression are wanted, as 'ht=sum(Jet_pt)'".to_owned()),
        };
        let expression = expression.trim().parse().map_err(|error: tupelo::Error| error.to_string())?;
        Ok(Self { name: name.to_owned(), expression })
    }
}

impl Condition {
    fn is_there(&self) -> bool {
        self.expression.is_some()
    }

    /// Takes out of field patterns those that fit no field but a column that is defined.
    fn forget_defined(&self, ntuple: &Ntuple, wanted: &mut Vec<String>) {
        // Only the names count.
        let column = |column: &Definition| ArrowField::new(&column.name, DataType::Boolean, false);
        let columns: Vec<_> = self.define.iter().map(column).collect();
        let Ok(defined) = Schema::from_arrow(&ArrowSchema::new(columns)) else { return };
        let is_column = |pattern: &String| defined.select(&[pattern]).is_ok();
        wanted.retain(|pattern| !is_column(pattern) || ntuple.schema().select(&[pattern]).is_ok());
    }

    /// Says so where of the entries that are asked for none is kept.
    fn tell_kept(&self, asked: u64, kept: u64, console: &Console) {
        if self.is_there() && asked > 0 && kept == 0 {
            console.note("0 entries: --where is true for none");
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

/// Passes on what the engine cannot read of an ntuple.
fn warn(ntuple: &Ntuple, console: &Console) {
    for warning in ntuple.warnings() {
        console.warn(&format!("{}: ntuple '{}': {warning}", ntuple.file_name(), ntuple.path()));
    }
}

#[cfg(test)]
mod tests {
    use tupelo::reader::DEFAULT_MEMORY_BUDGET_BYTES;

    use super::*;

    #[test]
    fn the_default_budget_is_that_of_the_engine() {
        assert_eq!(DEFAULT_BUDGET_TEXT.parse(), Ok(Bytes(DEFAULT_MEMORY_BUDGET_BYTES)));
    }
}
