//! The subcommands.

mod copy;
mod dump;
mod generate;
mod head;
mod index;
mod layout;
mod ls;
mod schema;
mod verify;

use std::str::FromStr;

use clap::Subcommand;
use tupelo::reader::{Location, Read};
use tupelo::{Expression, File, Ntuple};

use crate::console::Console;
use crate::failure::Failure;
use crate::parse::Bytes;

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Ls(ls::Args),
    Schema(schema::Args),
    Head(head::Args),
    Dump(dump::Args),
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
    /// Memory that the file may make the command take, beyond the values that are asked for; what would need more is read
    /// in parts, or refused [default: 1 GiB]
    #[arg(long, value_name = "SIZE", default_value = DEFAULT_BUDGET_TEXT, hide_default_value = true)]
    memory_budget: Bytes,
}

impl Reading {
    /// Opens the file of `FILE[:NAME]`.
    fn open_file(&self, location: &str, console: &Console) -> Result<File, Failure> {
        let options = tupelo::open(location).with_memory_budget(self.memory_budget.0);
        Ok(console.watch(options.with_metrics(console.has_metrics()).open_file()?))
    }

    /// Opens `FILE[:NAME]`, or one of its attribute sets, and passes on its warnings.
    fn open(&self, location: &str, attributes: Option<&str>, console: &Console) -> Result<Ntuple, Failure> {
        let ntuple = self.open_file(location, console)?.ntuple(Location::parse(location).object.as_deref())?;
        let ntuple = match attributes {
            Some(set) => ntuple.attribute_set(set)?,
            None => ntuple,
        };
        warn(&ntuple, console);
        Ok(ntuple)
    }
}

/// What is computed of entries: more columns, and which entries to keep.
#[derive(Debug, clap::Args)]
struct Condition {
    /// Another column, computed for each entry, as 'ht=sum(Jet_pt)': a name and an expression as for --where; may be given
    /// several times, and later expressions may use the name
    #[arg(long, value_name = "NAME=EXPRESSION")]
    define: Vec<Definition>,
    /// Only entries for which this is true, as 'nMuon == 2 and sum(Muon_charge) == 0': written as in Python, see
    /// docs/guide/expressions.md; pages that hold no such entry are not read
    #[arg(long = "where", value_name = "EXPRESSION")]
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
