//! Which fields are read, and which are left out because they cannot be.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};
use tupelo::Table;
use tupelo::reader::{Read, Skipped};

use super::Condition;
use crate::console::Console;
use crate::failure::Failure;
use crate::parse::{Patterns, patterns};
use crate::table::things;

/// Options of all commands that select fields.
#[derive(Debug, clap::Args)]
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
pub(super) struct Selecting<'m> {
    /// The table is one of several.
    pub(super) matched: Option<&'m Matched>,
    /// Entries that will be read: branches that cannot be decoded there are left out.
    pub(super) entries: Range<u64>,
    /// Whether the counters of selected lists are selected too.
    pub(super) with_counters: bool,
    /// The fields of the same table that could not be decoded, if known.
    pub(super) undecodable: Option<&'m [Skipped]>,
}

/// The fields to read from an ntuple or tree.
#[derive(Debug)]
pub(super) struct Chosen {
    pub(super) read: Read,
    /// The selected fields that cannot be read.
    pub(super) skipped: Vec<Skipped>,
    /// Those among them that were found by decoding.
    pub(super) undecodable: Vec<Skipped>,
    /// The counters that were not selected, and are read with their lists.
    counters: Vec<String>,
    /// Selected fields that some of several files lack, for a message.
    missing: Option<String>,
}

impl Chosen {
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

    /// Selects fields whose metadata alone are read.
    pub(super) fn read(&self, table: &Table, condition: Option<&Condition>) -> Result<Read, Failure> {
        Ok(self.select(table, condition, &Selecting::default())?.read)
    }

    /// Selects the fields. Columns of `--define` are always included, and may be listed.
    pub(super) fn select(
        &self,
        table: &Table,
        condition: Option<&Condition>,
        selecting: &Selecting<'_>,
    ) -> Result<Chosen, Failure> {
        let (mut wanted, mut unwanted) = (patterns(&self.fields), patterns(&self.exclude));
        if let Some(condition) = condition {
            condition.remove_defined(table, &mut wanted);
        }
        if let Some(matched) = selecting.matched {
            if matched.union {
                matched.retain(&mut wanted, table);
            }
            matched.retain(&mut unwanted, table);
        }
        let mut skipped = table.unreadable(&wanted, &unwanted);
        let missing = table.files().and_then(|chain| chain.missing_text(&wanted, &unwanted));
        let is_read = |pattern: &String| !table.is_unreadable(pattern) || table.read([pattern]).is_ok();
        unwanted.retain(is_read);
        if wanted.iter().any(is_read) {
            wanted.retain(is_read);
        } else if let (Some(skipped), false) = (skipped.first(), wanted.is_empty()) {
            let place = format_args!("{}: '{}'", table.file_name(), table.path());
            return Err(Failure::new(format_args!("{place}: '{}' cannot be read: {}", skipped.name, skipped.reason)));
        }
        if let Some(chain) = table.files() {
            chain.check(&wanted, &unwanted)?;
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
        let (read, undecodable) = match selecting.undecodable {
            Some(known) => (read.without_skipped(known)?, known.to_vec()),
            None => read.entries(selecting.entries.clone()).without_unreadable()?,
        };
        skipped.extend_from_slice(&undecodable);
        Ok(Chosen { read: read.entries(..), skipped, undecodable, counters, missing })
    }
}

/// The patterns that match fields of at least one of several files. The others are errors.
#[derive(Debug)]
pub(super) struct Matched {
    /// Whether selected fields may be missing in some files. Excluded fields always may.
    union: bool,
    patterns: Mutex<HashSet<String>>,
}

impl Matched {
    /// Nothing yet.
    pub(super) fn new(union: bool) -> Self {
        Self { union, patterns: Mutex::default() }
    }

    /// Refuses patterns that match no field of any file. The error names near fields of one of the files, which `open`
    /// opens.
    pub(super) fn check(
        &self,
        fields: &Fields,
        condition: &Condition,
        open: impl FnOnce() -> Result<Table, Failure>,
    ) -> Result<(), Failure> {
        let mut missing = self.missing(fields);
        if missing.is_empty() {
            return Ok(());
        }
        let table = open()?;
        condition.remove_defined(&table, &mut missing);
        table.read(&missing)?;
        Ok(())
    }

    /// Retains the patterns that match fields of an ntuple or tree.
    fn retain(&self, patterns: &mut Vec<String>, table: &Table) {
        patterns.retain(|pattern| table.read([pattern]).is_ok() || table.is_unreadable(pattern));
        self.patterns.lock().unwrap_or_else(PoisonError::into_inner).extend(patterns.iter().cloned());
    }

    /// The patterns that match no file.
    fn missing(&self, fields: &Fields) -> Vec<String> {
        let found = self.patterns.lock().unwrap_or_else(PoisonError::into_inner);
        let selected = if self.union { patterns(&fields.fields) } else { Vec::new() };
        let all = selected.into_iter().chain(patterns(&fields.exclude));
        all.filter(|pattern| !found.contains(pattern)).collect()
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
