//! `tupelo import` of files of other formats.

use std::collections::HashSet;
use std::ops::{ControlFlow, Range};
use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, FieldRef, Schema as ArrowSchema, SchemaRef};
use tupelo::ops::feed;
use tupelo::ops::import::{Validation, legal, samples};
use tupelo::reader::Location;
use tupelo::schema::{Field as StoredField, Schema, tighten};
use tupelo::storage::display_name;
use tupelo::writer::WriteProgress;
use tupelo::{File, FileWriter, Ntuple};

use super::super::target::summarise;
use super::{Args, Compared, check_new, report, written};
use crate::console::Console;
use crate::failure::Failure;
use crate::formats::read::{
    ForeignFile, INFERRED_ENTRIES, Limits, Stored, convert, convert_batch, either, open, read_back, same_type, stored,
};
use crate::formats::{Format, extension_of};
use crate::inputs::Inputs;
use crate::interrupt::Interrupt;
use crate::parse::patterns;

/// Extensions of files that are not read, with hints.
const OTHERS: [(&str, &str); 7] = [
    ("h5", "in Python, tupelo.import_hdf5(source, path) imports HDF5 files"),
    ("hdf5", "in Python, tupelo.import_hdf5(source, path) imports HDF5 files"),
    ("hdf", "in Python, tupelo.import_hdf5(source, path) imports HDF5 files"),
    ("gz", "decompress the file first: `gunzip -k FILE`"),
    ("zst", "decompress the file first: `unzstd FILE`"),
    ("xz", "decompress the file first: `unxz -k FILE`"),
    ("bz2", "decompress the file first: `bunzip2 -k FILE`"),
];
/// The extension of CSV with tabs.
const WITH_TABS: &str = "tsv";

/// The format of the inputs; `None` if they are ROOT files.
pub(super) fn format(args: &Args, locations: &[Location]) -> Result<Option<Format>, Failure> {
    let name = |location: &Location| display_name(&location.file);
    let mut formats = Vec::new();
    for location in locations {
        let path = Path::new(&location.file);
        let extension = extension_of(path);
        if let (Some((_, hint)), None) = (OTHERS.iter().find(|(other, _)| *other == extension), args.format) {
            let refused = Failure::usage(format_args!("{}: files .{extension} cannot be imported", name(location)));
            return Err(refused.with_hint(*hint));
        }
        let own = || if extension == WITH_TABS { Some(Format::Csv) } else { Format::of(path) };
        formats.push((location, args.format.or_else(own)));
    }
    let Some(&(first, format)) = formats.first() else { return Ok(None) };
    if let Some((other, _)) = formats.iter().find(|(_, other)| *other != format) {
        let (first, other) = (name(first), name(other));
        let mixed = Failure::usage(format_args!("{first} and {other} are files of different formats"));
        return Err(mixed.with_hint("import them one by one with --append --as NAME"));
    }
    if format.is_none() {
        let given = [
            ("--allow-loss", !args.allow_loss.is_empty()),
            ("--infer-rows", args.infer_rows.is_some()),
            ("--delimiter", args.delimiter.is_some()),
        ];
        if let Some((option, _)) = given.into_iter().find(|(_, is_given)| *is_given) {
            return Err(Failure::usage(format_args!("{option} is for files of other formats, not for trees")));
        }
    }
    Ok(format)
}

/// Refuses what only trees have.
fn check(args: &Args, locations: &[Location]) -> Result<(), Failure> {
    let given = [
        ("--objects", !args.carrying.is_empty()),
        ("--no-collections", args.no_collections),
        ("--skip-unreadable", args.skip.is_given()),
        ("--skip-errors", args.skipping.is_given()),
        ("--recover", args.reading.recovers()),
    ];
    if let Some((option, _)) = given.into_iter().find(|(_, is_given)| *is_given) {
        return Err(Failure::usage(format_args!("{option} is for trees, not for files of other formats")));
    }
    for location in locations {
        if let Some(name) = &location.object {
            let file = display_name(&location.file);
            return Err(Failure::usage(format_args!("{file} is not a ROOT file: nothing in it is called '{name}'"))
                .with_hint("OUT:NAME or --as NAME is the name of the ntuple"));
        }
        if location.local_path().is_none() {
            let file = display_name(&location.file);
            let refused = Failure::usage(format_args!("{file}: files of other formats are read from local disks only"));
            return Err(refused.with_hint(format!("`tupelo copy --raw {file} FILE` copies it first")));
        }
    }
    Ok(())
}

/// A file to import.
struct Input {
    name: String,
    file: Box<dyn ForeignFile>,
    /// Number of entries.
    entries: u64,
}

/// What is imported.
struct Plan {
    inputs: Vec<Input>,
    /// The chosen columns of the files.
    columns: Vec<usize>,
    /// Their names in the files.
    names: Vec<String>,
    /// The fields in the types that are written.
    schema: SchemaRef,
    /// The entries to import, counted through all files.
    range: Range<u64>,
}

pub(super) fn run(
    args: &Args,
    format: Format,
    locations: &[Location],
    to: &Location,
    console: &Console,
) -> Result<(), Failure> {
    check(args, locations)?;
    let plan = Plan::new(args, format, locations, console)?;
    let storage = args.reading.storage()?;
    let first = locations.first().and_then(Location::local_path);
    let stem = first.and_then(Path::file_stem).map(|stem| stem.to_string_lossy().into_owned());
    let name = to.ntuple_name().map_or_else(|| legal(&stem.unwrap_or_default(), args.dots), str::to_owned);
    let inputs = Inputs::of(locations);
    let mut summary = None;
    args.target.write(to, &inputs, storage, |writer, interrupt| {
        check_new(args, writer, &name)?;
        summary = plan.write(&name, args, writer, interrupt, console)?;
        Ok(if summary.is_some() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
    })?;
    summary.iter().for_each(|written| summarise(&name, written, console));
    if args.validate == 0 && args.report.is_none() {
        return Ok(());
    }
    let file = written(args, to)?;
    let validation = plan.validate(&ntuple(&file, &name)?, args.validate)?;
    let compared = Compared { name: &name, skipped: &[], not_kept: &[], renamed: None, validation: &validation };
    report(args, to, &inputs, std::iter::once(compared), console)
}

fn ntuple(file: &File, name: &str) -> Result<Ntuple, Failure> {
    Ok(file.ntuple(Some(name))?)
}

impl Plan {
    fn new(args: &Args, format: Format, locations: &[Location], console: &Console) -> Result<Self, Failure> {
        let limits = Limits {
            inferred: args.infer_rows.map_or(INFERRED_ENTRIES, |rows| rows.try_into().unwrap_or(usize::MAX)),
            memory: args.reading.memory_budget.0,
            delimiter: args.delimiter,
        };
        let mut inputs: Vec<Input> = Vec::with_capacity(locations.len());
        for location in locations {
            let path = location.local_path().unwrap_or(Path::new(&location.file));
            let like = inputs.first().map(|first| first.file.schema().clone());
            let delimiter = args.delimiter.or((extension_of(path) == WITH_TABS).then_some(b'\t'));
            let file = open(path, format, Limits { delimiter, ..limits }, like.as_ref())?;
            let entries = file.entries().unwrap_or(0);
            inputs.push(Input { name: path.display().to_string(), file, entries });
        }
        let Some(first) = inputs.first() else { return Err(Failure::usage("no file to import")) };
        let mut chosen = Chosen::new(args, first, console)?;
        for other in inputs.iter().skip(1) {
            chosen.join(first, other)?;
        }
        let is_counted = inputs.iter().all(|input| input.file.entries().is_some());
        let known: u64 = inputs.iter().map(|input| input.entries).sum();
        let range = if is_counted { args.range.of(known, console) } else { 0..u64::MAX };
        let Chosen { columns, names, fields, .. } = chosen;
        let complete = |place: usize| {
            let column = columns.get(place).copied().unwrap_or(usize::MAX);
            inputs.iter().all(|input| input.file.is_complete(column))
        };
        let settled = |(place, field): (usize, Field)| match complete(place) {
            true => field.with_nullable(false),
            false => field,
        };
        let schema = ArrowSchema::new(fields.into_iter().enumerate().map(settled).collect::<Vec<_>>());
        let mut plan = Self { inputs, columns, names, schema: Arc::new(schema), range };
        plan.survey(is_counted, console)?;
        if !is_counted {
            let all = plan.inputs.iter().map(|input| input.entries).sum();
            plan.range = args.range.of(all, console);
        }
        Ok(plan)
    }

    /// Counts the entries, and finds out in which fields values are missing.
    fn survey(&mut self, is_counted: bool, console: &Console) -> Result<(), Failure> {
        let places: Vec<usize> = (0..self.columns.len()).collect();
        let wanted: Vec<usize> = match is_counted {
            true => places.into_iter().filter(|&place| has_nullable(self.schema.field(place))).collect(),
            false => places,
        };
        if wanted.is_empty() {
            return Ok(());
        }
        let columns: Vec<usize> = wanted.iter().filter_map(|&place| self.columns.get(place).copied()).collect();
        let part = Arc::new(self.schema.project(&wanted).map_err(Failure::new)?);
        let total = is_counted.then(|| self.range.end - self.range.start);
        let mut progress = console.progress("missing values", total, "entries");
        let (mut found, mut done): (Option<Vec<Arc<Field>>>, u64) = (None, 0);
        let mut before = 0;
        for input in &mut self.inputs {
            let all = if is_counted { input.entries } else { u64::MAX };
            let range = part_of(&self.range, before, all);
            let mut count = 0;
            for batch in input.file.batches(&columns, range)? {
                let batch = converted(&input.name, &batch?, &part)?;
                let tight = tighten(&batch).fields().iter().cloned().collect::<Vec<_>>();
                found = Some(match found {
                    None => tight,
                    Some(found) => found.iter().zip(&tight).map(|(one, other)| Arc::new(either(one, other))).collect(),
                });
                count += batch.num_rows() as u64;
                done += batch.num_rows() as u64;
                progress.set(done);
            }
            if !is_counted {
                input.entries = count;
            }
            before = before.saturating_add(input.entries);
        }
        let mut fields: Vec<Arc<Field>> = self.schema.fields().iter().cloned().collect();
        for (place, found) in wanted.iter().zip(found.into_iter().flatten()) {
            fields.get_mut(*place).into_iter().for_each(|field| *field = Arc::clone(&found));
        }
        self.schema = Arc::new(ArrowSchema::new(fields));
        Ok(())
    }

    /// Writes the ntuple; `None` if it was interrupted.
    fn write(
        &self,
        name: &str,
        args: &Args,
        file: &FileWriter,
        interrupt: &Interrupt,
        console: &Console,
    ) -> Result<Option<WriteProgress>, Failure> {
        let schema = Schema::from_arrow(&self.schema)?;
        let mut writer = file.ntuple(name, &schema, args.ntuple.options())?;
        let mut progress = console.progress(name, self.range.end - self.range.start, "entries");
        let mut tell = progress.until(interrupt);
        let (mut before, mut done) = (0, 0);
        for input in &self.inputs {
            let range = part_of(&self.range, before, input.entries);
            before += input.entries;
            let batches = input.file.batches(&self.columns, range)?.map(|batch| {
                let batch = converted(&input.name, &batch?, &self.schema)?;
                done += batch.num_rows() as u64;
                Ok::<_, Failure>((batch, done))
            });
            if feed(batches, &mut writer, &mut tell)?.is_none() {
                return Ok(None);
            }
        }
        Ok(Some(writer.finish()?))
    }

    /// Compares the entries of the files with those of the ntuple: of each file at most `most`.
    fn validate(&self, ntuple: &Ntuple, most: u64) -> Result<Validation, Failure> {
        let mut validation = Validation::default();
        let read = ntuple.read_all().with_binary_strings(true);
        let schema = Schema::from_arrow(&self.schema)?;
        let layout = schema.to_arrow(true);
        let fields: Vec<_> = schema.fields.iter().zip(layout.fields()).collect();
        let (mut before, mut next) = (0, 0);
        for input in &self.inputs {
            let range = part_of(&self.range, before, input.entries);
            before += input.entries;
            let count = range.end - range.start;
            for sample in samples(count, most) {
                let entries = range.start + sample.start..range.start + sample.end;
                let mut entry = next + sample.start;
                for batch in input.file.batches(&self.columns, entries)? {
                    let batch = batch?;
                    let theirs = (input.name.as_str(), batch.columns());
                    let count = batch.num_rows() as u64;
                    let ours = read.clone().entries(entry..entry + count).to_batch()?;
                    self.compare(&fields, theirs, &ours, entry, &mut validation)?;
                    validation.entries += count;
                    entry += count;
                }
            }
            next += count;
        }
        Ok(validation)
    }

    /// Compares columns with those of the ntuple, whose first entry is `first`. `fields` are those of the ntuple.
    fn compare(
        &self,
        fields: &[(&StoredField, &FieldRef)],
        (file, theirs): (&str, &[ArrayRef]),
        ours: &RecordBatch,
        first: u64,
        validation: &mut Validation,
    ) -> Result<(), Failure> {
        let ours = ours.columns().iter().zip(self.names.iter().zip(self.schema.fields()));
        for ((theirs, (field, layout)), (ours, (name, written))) in theirs.iter().zip(fields).zip(ours) {
            // To the type that was written first: what is lost is not compared.
            let stored = convert(theirs, written.data_type())
                .and_then(|stored| convert(&stored, layout.data_type()))
                .and_then(|stored| convert(&read_back(&stored, field)?, ours.data_type()));
            let theirs = stored.map_err(|error| Failure::new(format_args!("{file}: column '{name}': {error}")))?;
            validation.compare(name, &field.name, &theirs, ours, first)?;
        }
        Ok(())
    }
}

/// The part of a range of all entries that is in a file with `count` entries after `before` others.
fn part_of(range: &Range<u64>, before: u64, count: u64) -> Range<u64> {
    let start = range.start.saturating_sub(before).min(count);
    start..range.end.saturating_sub(before).clamp(start, count)
}

fn converted(file: &str, batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, Failure> {
    convert_batch(batch, schema).map_err(|what| Failure::new(format_args!("{file}: {what}")))
}

/// Whether a field or one below it may have missing values.
fn has_nullable(field: &Field) -> bool {
    let below = |data_type: &DataType| match data_type {
        DataType::LargeList(item) | DataType::FixedSizeList(item, _) | DataType::Map(item, _) => has_nullable(item),
        DataType::Struct(members) => members.iter().any(|member| has_nullable(member)),
        DataType::Union(fields, _) => fields.iter().any(|(_, field)| has_nullable(field)),
        _ => false,
    };
    field.is_nullable() || below(field.data_type())
}

/// The columns that were chosen, and what they become.
struct Chosen {
    columns: Vec<usize>,
    names: Vec<String>,
    fields: Vec<Field>,
    /// The names of those that may lose something.
    lossy: HashSet<String>,
}

impl Chosen {
    fn new(args: &Args, input: &Input, console: &Console) -> Result<Self, Failure> {
        let schema = input.file.schema();
        // Only the names matter.
        let name = |field: &Arc<Field>| Field::new(field.name(), DataType::Boolean, false);
        let names = Schema::from_arrow(&ArrowSchema::new(schema.fields().iter().map(name).collect::<Vec<_>>()))?;
        let all = |patterns: &[String]| -> Result<HashSet<String>, Failure> {
            let found = if patterns.is_empty() { Schema::default() } else { names.select(patterns)? };
            Ok(found.fields.into_iter().map(|field| field.name).collect())
        };
        let (wanted, unwanted) = args.fields.chosen();
        let is_all = wanted.is_empty();
        let (wanted, unwanted) = (all(&wanted)?, all(&unwanted)?);
        let lossy = all(&patterns(&args.allow_loss))?;
        let is_chosen = |name: &String| (is_all || wanted.contains(name)) && !unwanted.contains(name);
        for (old, _) in args.renaming.pairs() {
            // The engine's error has similar names.
            names.get(&old)?;
        }
        let mut chosen = Self { columns: Vec::new(), names: Vec::new(), fields: Vec::new(), lossy };
        let mut known = HashSet::new();
        for (column, field) in schema.fields().iter().enumerate().filter(|(_, field)| is_chosen(field.name())) {
            let renamed = args.renaming.pairs().find(|(old, _)| old == field.name());
            let name = renamed.map_or_else(|| legal(field.name(), args.dots), |(_, new)| new);
            let Stored { field: stored, losses } =
                chosen_field(input, field, &name, chosen.lossy.contains(field.name()))?;
            for (path, what) in losses {
                console.warn(&format!("{}: column '{}': {what}", input.name, path.escape_debug()));
            }
            if !known.insert(name.clone()) {
                let what = format_args!("{}: two fields would have the name '{name}'", input.name);
                return Err(Failure::usage(what).with_hint("--rename OLD=NEW renames one of them"));
            }
            chosen.columns.push(column);
            chosen.names.push(field.name().clone());
            chosen.fields.push(stored);
        }
        match chosen.columns.is_empty() {
            true if schema.fields().is_empty() => Err(Failure::new(format_args!("{}: it has no columns", input.name))),
            true => Err(Failure::usage(format_args!("{}: no column is chosen; choose at least one", input.name))),
            false => Ok(chosen),
        }
    }

    /// Adds a file, whose columns must be those of the first.
    fn join(&mut self, first: &Input, other: &Input) -> Result<(), Failure> {
        let differ = |what: String| {
            let what = format_args!("{} and {} have different columns: {what}", first.name, other.name);
            let hint = "--exclude FIELDS leaves columns out; or import the files one by one with --append --as NAME";
            Err(Failure::new(what).with_hint(hint))
        };
        let (own, others) = (first.file.schema(), other.file.schema());
        let names = |schema: &SchemaRef| schema.fields().iter().map(|field| field.name().clone()).collect::<Vec<_>>();
        if names(own) != names(others) {
            let (own, others) = (names(own), names(others));
            let missing =
                own.iter().find(|name| !others.contains(name)).map(|name| format!("the second lacks '{name}'"));
            let added =
                || others.iter().find(|name| !own.contains(name)).map(|name| format!("the first lacks '{name}'"));
            return differ(missing.or_else(added).unwrap_or_else(|| "their order is another".to_owned()));
        }
        for ((&column, field), name) in self.columns.iter().zip(&mut self.fields).zip(&self.names) {
            let theirs = chosen_field(other, others.field(column), field.name(), self.lossy.contains(name))?.field;
            if !same_type(field, &theirs) {
                let types = (own.field(column).data_type(), others.field(column).data_type());
                return differ(format!("'{name}' is {} and {}", types.0, types.1));
            }
            *field = either(field, &theirs);
        }
        Ok(())
    }
}

/// The field for a column.
fn chosen_field(input: &Input, column: &Field, name: &str, may_lose: bool) -> Result<Stored, Failure> {
    stored(column, name, may_lose).map_err(|(path, why)| {
        let (top, path) = (column.name().escape_debug(), path.escape_debug());
        let hint = format!("--exclude '{top}' leaves the column out");
        Failure::new(format_args!("{}: column '{path}': {why}", input.name)).with_hint(hint)
    })
}
