//! Which fields are read, and which are left out because they cannot be.

use std::ops::Range;

use serde_json::{Value, json};
use tupelo::Table;
use tupelo::reader::{Read, Skipped};
use tupelo::schema::{Field, Schema};

use super::Condition;
use crate::console::Console;
use crate::failure::Failure;
use crate::parse::{Patterns, patterns};
use crate::table::things;

/// Options of all commands that select fields.
#[derive(Debug, Default, clap::Args)]
pub(super) struct Fields {
    /// Comma-separated fields, as dotted paths or globs: MET_pt,jets.pt,'Muon_*' [default: all]
    #[arg(long, value_name = "FIELDS")]
    fields: Vec<Patterns>,
    /// Fields to exclude, in the same syntax
    #[arg(long, value_name = "FIELDS")]
    exclude: Vec<Patterns>,
}

/// The context in which fields are selected.
#[derive(Debug, Default)]
pub(super) struct Selecting {
    /// Entries that will be read: branches that cannot be decoded there are left out.
    pub(super) entries: Range<u64>,
    /// Whether the counters of selected lists are selected too.
    pub(super) with_counters: bool,
    /// Whether patterns may match nothing.
    pub(super) may_lack_fields: bool,
}

/// The fields to read from an ntuple or tree.
#[derive(Debug)]
pub(super) struct Chosen {
    pub(super) read: Read,
    /// The selected fields that cannot be read.
    pub(super) skipped: Vec<Skipped>,
    /// The counters that were not selected, and are read with their lists.
    counters: Vec<String>,
    /// Selected fields that some of several files lack, for a message.
    pub(super) missing: Option<String>,
    /// Which file lacks the first of them.
    lacking: Option<String>,
}

impl Chosen {
    /// Refuses to leave out fields that some of several files lack.
    pub(super) fn check_missing(&self, table: &Table, hint: &str) -> Result<(), Failure> {
        match &self.missing {
            None => Ok(()),
            Some(missing) => {
                let mut what = format!("{}: some files lack the fields {missing}", table.file_name());
                self.lacking.iter().for_each(|lacking| what += &format!(" ({lacking})"));
                Err(Failure::new(what).with_hint(hint))
            }
        }
    }

    /// Whether some of several files lack members of selected fields.
    pub(super) fn lacks_members(&self) -> bool {
        self.missing.as_ref().is_some_and(|missing| missing.contains('.'))
    }

    /// Refuses several files whose numbers or collections have different types.
    pub(super) fn check_types(&self, table: &Table, hint: &str) -> Result<(), Failure> {
        match table.files().and_then(|files| files.promoted().first()) {
            None => Ok(()),
            Some(promoted) => Err(Failure::new(promoted).with_hint(hint)),
        }
    }

    /// Prints what is left out, and the counters that are added.
    pub(super) fn tell(&self, table: &Table, console: &Console) {
        console.warn_of_read(table, &self.skipped);
        if let Some(missing) = &self.missing {
            console
                .warn(&format!("skipped the fields missing in some files: {missing}; --union reads them with nulls"));
        }
        if !self.counters.is_empty() {
            let counters = self.counters.join(", ");
            console.note(&format!("including the counters of selected lists: {counters} (--exclude omits them)"));
        }
    }
}

impl Fields {
    /// Whether no fields are chosen.
    pub(super) fn is_empty(&self) -> bool {
        self.fields.is_empty() && self.exclude.is_empty()
    }

    /// What is chosen, in the order in which it is shown.
    pub(super) fn patterns(&self) -> Vec<String> {
        patterns(&self.fields)
    }

    /// The patterns of what is wanted, and of what is not.
    pub(super) fn chosen(&self) -> (Vec<String>, Vec<String>) {
        (patterns(&self.fields), patterns(&self.exclude))
    }

    /// Whether a field, or a part of it, is chosen under a name.
    pub(super) fn choose(&self, field: &Field, name: &str) -> bool {
        let mut field = field.clone();
        name.clone_into(&mut field.name);
        let alone = Schema { fields: vec![field] };
        let is_match = |pattern: &String| alone.select(&[pattern]).is_ok();
        let (wanted, unwanted) = self.chosen();
        (wanted.is_empty() || wanted.iter().any(is_match)) && !unwanted.iter().any(|pattern| *pattern == name)
    }

    /// Refuses patterns that match nothing in any of several tables.
    pub(super) fn check_known(&self, tables: &[&Table]) -> Result<(), Failure> {
        let all = patterns(&self.fields).into_iter().chain(patterns(&self.exclude));
        let is_unknown = |pattern: &String| tables.iter().all(|table| table.read([pattern]).is_err());
        match (all.into_iter().find(is_unknown), tables.first()) {
            (Some(pattern), Some(table)) => Ok(table.read([pattern]).map(drop)?),
            _ => Ok(()),
        }
    }

    /// Selects fields whose metadata alone are read.
    pub(super) fn read(&self, table: &Table, condition: Option<&Condition>) -> Result<Read, Failure> {
        Ok(self.select(table, condition, &Selecting::default())?.read)
    }

    /// Selects the fields. Columns of `--define` are always included, and may be listed.
    pub(super) fn select(
        &self,
        table: &Table,
        condition: Option<&Condition>,
        selecting: &Selecting,
    ) -> Result<Chosen, Failure> {
        let (mut wanted, mut unwanted) = (patterns(&self.fields), patterns(&self.exclude));
        if let Some(condition) = condition {
            condition.remove_defined(table, &mut wanted);
        }
        if selecting.may_lack_fields {
            let is_known = |pattern: &String| table.read([pattern]).is_ok() || table.is_unreadable(pattern);
            wanted.retain(is_known);
            unwanted.retain(is_known);
        }
        let mut skipped = table.unreadable(&wanted, &unwanted);
        let missing = table.files().and_then(|chain| chain.missing_text(&wanted, &unwanted));
        let lacking = table.files().and_then(|chain| chain.missing_reason(&wanted, &unwanted));
        let is_read = |pattern: &String| !table.is_unreadable(pattern) || table.read([pattern]).is_ok();
        unwanted.retain(is_read);
        if wanted.iter().any(is_read) {
            wanted.retain(is_read);
        } else if let (Some(skipped), false) = (skipped.first(), wanted.is_empty()) {
            let place = format_args!("{}: '{}'", table.file_name(), table.path());
            return Err(Failure::new(format_args!("{place}: '{}' cannot be read: {}", skipped.name, skipped.reason)));
        }
        if let Some(chain) = table.files() {
            chain.check(&wanted, &unwanted).map_err(|error| Failure::from(error).of_data())?;
            unwanted.retain(|pattern| !chain.lacks(pattern));
        }
        let read = match (wanted.is_empty(), self.fields.is_empty()) {
            (true, true) => table.read_all(),
            (true, false) => table.read_all().without_fields(),
            (false, _) => table.read(wanted)?,
        };
        let (read, counters) = if selecting.with_counters { read.with_counters()? } else { (read, Vec::new()) };
        let read = read.without(unwanted)?;
        let is_left = |counter: &String| read.schema().fields.iter().any(|field| field.name == *counter);
        let counters = counters.into_iter().filter(is_left).collect();
        let (read, undecodable) = read.entries(selecting.entries.clone()).without_unreadable()?;
        skipped.extend(undecodable);
        Ok(Chosen { read: read.entries(..), skipped, counters, missing, lacking })
    }
}

/// The option of commands that write what they can read.
#[derive(Debug, clap::Args)]
pub(super) struct SkipUnreadable {
    /// Exit with status 0 even if fields are left out because they cannot be read or written in this format; a warning
    /// names them
    #[arg(long)]
    skip_unreadable: bool,
}

impl SkipUnreadable {
    /// Whether the option is given.
    pub(super) fn is_given(&self) -> bool {
        self.skip_unreadable
    }

    /// The failure for an `output` that is complete except for fields that were left out.
    pub(super) fn check(&self, skipped: usize, output: &str) -> Result<(), Failure> {
        if self.skip_unreadable || skipped == 0 {
            return Ok(());
        }
        let what = format_args!("{output} was written without {}", things(skipped as u64, "field"));
        Err(Failure::new(what)
            .with_hint("use --skip-unreadable to accept that, or --exclude FIELDS to select the other fields"))
    }
}

/// What is left out, for a report.
pub(super) fn skipped_to_json(skipped: &[Skipped]) -> Value {
    skipped.iter().map(|skipped| json!({ "name": skipped.name, "reason": skipped.reason })).collect()
}
