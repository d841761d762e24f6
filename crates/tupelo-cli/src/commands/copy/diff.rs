//! `tupelo diff`: what differs between two ntuples or trees.

use std::ops::ControlFlow;

use arrow_array::{ArrayRef, RecordBatch};
use serde_json::{Value, json};
use tupelo::Table;
use tupelo::dataset::find;
use tupelo::object::Value as ObjectValue;
use tupelo::ops::diff::{
    AttributeSetDifferenceKind, Difference, FieldDifference, FieldDifferenceKind, MetadataDifference, Tolerance, diff,
};
use tupelo::reader::{Location, Paired, Read};
use tupelo::schema::Schema;

use super::super::{Opened, Selecting, policy};
use super::operands::Skipping;
use crate::console::Console;
use crate::failure::{FAILED, Failure, USAGE};
use crate::json::{Entries as JsonEntries, Text, objects};
use crate::table::{bytes, cut, things};

/// Most characters of a value.
const MAX_VALUE: usize = 60;
/// Longest text of an object, in bytes.
const MAX_OBJECT_BYTES: u64 = 1 << 20;

/// Compare the fields, metadata and values of two ntuples or trees
///
/// Fields are matched by name, in any order. Of each field that differs, the first entry with another value is printed, and
/// both values. Attribute sets of ntuples are compared as ntuples of their own, as far as they refer to the selected entries;
/// of trees, aliases and user information are compared too. Codec, page and cluster sizes do not matter, and descriptions
/// are not compared; --fields limits the fields, and nothing else. With --on, attribute sets are not compared. The exit
/// status is that of diff: 0 if both are equal, 1 if they differ, and 2 for errors.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tupelo diff events.root copy.root
  tupelo diff tree.root:Events ntuple.root:Events --fields 'MET_*'
  tupelo diff before.root after.root --fields 'Muon_*' --relative 1e-6
  tupelo diff one-thread.root many-threads.root --on run,event
  tupelo diff 'run*.root:Events' merged.root:Events --quiet && rm run*.root")]
pub(crate) struct Args {
    /// The first ntuple or tree, as FILE or FILE:NAME; wildcards match several files, whose entries follow each other
    #[arg(value_name = "FIRST")]
    first: String,
    /// The second one
    #[arg(value_name = "SECOND")]
    second: String,
    #[command(flatten)]
    fields: super::super::Fields,
    #[command(flatten)]
    range: super::super::EntryRange,
    /// Compare entries with the same values of these integer fields, such as run,event, in any order, instead of entries of the
    /// same number. Those that only one side has are a difference; their number is printed
    #[arg(long, value_name = "KEYS", value_delimiter = ',', conflicts_with = "entries")]
    on: Vec<String>,
    /// Floating-point numbers that differ by at most this much are equal; all NaNs are then equal, too. Integers must always
    /// be equal [default: 0, which compares all bits]
    #[arg(long, value_name = "NUMBER", default_value_t = 0.0, hide_default_value = true, allow_negative_numbers = true,
          value_parser = tolerance)]
    absolute: f64,
    /// The same, relative to the second number
    #[arg(long, value_name = "NUMBER", default_value_t = 0.0, hide_default_value = true, allow_negative_numbers = true,
          value_parser = tolerance)]
    relative: f64,
    /// Print one JSON document instead of lines
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    reading: super::super::Reading,
}

fn tolerance(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number >= 0.0 && number.is_finite() => Ok(number),
        _ => Err("expected a number of at least 0".to_owned()),
    }
}

pub(crate) fn run(args: &Args, console: &Console) -> Result<(), Failure> {
    let compared = compare(args, console);
    // 1 means that both differ.
    let is_equal = compared.map_err(|failure| match failure.status {
        FAILED => Failure { status: USAGE, ..failure },
        _ => failure,
    })?;
    if is_equal { Ok(()) } else { Err(Failure::reported()) }
}

/// Whether both are equal.
fn compare(args: &Args, console: &Console) -> Result<bool, Failure> {
    let (first, second) = (open(args, &args.first, console)?, open(args, &args.second, console)?);
    args.fields.check_known(&[&first, &second])?;
    let (first, second, unpaired) = match args.on.as_slice() {
        [] => (first, second, [0, 0]),
        keys => {
            let Paired { tables: [one, other], unpaired, .. } = Table::paired(&first, &second, keys)?;
            (one, other, unpaired)
        }
    };
    let (own, unread) = read(args, &first, console)?;
    let (other, unread_too) = read(args, &second, console)?;
    let reads = [own, other];
    let tolerance = Tolerance { absolute: args.absolute, relative: args.relative };
    let count = reads[0].count().min(reads[1].count());
    let mut progress = console.progress("diff", count, "entries");
    let mut report = |done| {
        progress.set(done);
        ControlFlow::Continue(())
    };
    let found = diff(&reads[0], &reads[1], tolerance, &mut report)?.unwrap_or_default();
    progress.finish();
    match args.json {
        true => console.print_json("diff", to_json([&first, &second], &reads, (&found, unpaired))?)?,
        false => console.print_data(&to_text(&reads, (&found, unpaired))?)?,
    }
    let is_equal = found.is_empty() && unpaired == [0, 0];
    if is_equal && unread + unread_too > 0 {
        let unread = unread.max(unread_too);
        let (fields, were) = (things(unread as u64, "field"), if unread == 1 { "was" } else { "were" });
        let what = format_args!("nothing differs, but {fields} cannot be read and {were} not compared");
        return Err(Failure::new(what).with_hint("--exclude FIELDS compares the others"));
    }
    if is_equal {
        let fields = things(reads[0].schema().fields.len() as u64, "field");
        console.note(&format!("equal: {} in {fields}", things(found.compared, "entry")));
    }
    Ok(is_equal)
}

fn open(args: &Args, input: &str, console: &Console) -> Result<Table, Failure> {
    let locations = find(&[input.to_owned()], args.reading.storage()?)?;
    if let [first, ..] = locations.as_slice() {
        check_named(args, first)?;
    }
    let skipping = Skipping::default();
    let table = args.reading.chain(&locations, policy(true), Opened::default(), &skipping, console)?;
    skipping.finish(locations.len(), console)?;
    console.warn_of(&table);
    Ok(table)
}

/// Refuses a file with an ntuple and trees: only the ntuple would be compared.
fn check_named(args: &Args, location: &Location) -> Result<(), Failure> {
    if location.object.is_some() {
        return Ok(());
    }
    let file = args.reading.open_uncounted(location)?;
    match (file.ntuple_names()?.as_slice(), file.tree_names()?.as_slice()) {
        ([ntuple], [tree, ..]) => {
            let file = file.name();
            let what = format_args!("{file} has the ntuple '{ntuple}' and the tree '{tree}'; name the one to compare");
            Err(Failure::usage(what).with_hint(format!("{file}:{ntuple} is the ntuple, {file}:{tree} the tree")))
        }
        _ => Ok(()),
    }
}

/// What is compared, and the number of fields that cannot be read. A field that only one side has need not be in the other.
fn read(args: &Args, table: &Table, console: &Console) -> Result<(Read, usize), Failure> {
    let entries = args.range.of(table.entries(), console);
    let selecting = Selecting { entries: entries.clone(), may_lack_fields: true, ..Selecting::default() };
    let chosen = args.fields.select(table, None, &selecting)?;
    chosen.tell(table, console);
    Ok((chosen.read.entries(entries), chosen.skipped.len()))
}

/// A line for each difference.
fn to_text(reads: &[Read; 2], (found, unpaired): (&Difference, [u64; 2])) -> Result<String, Failure> {
    let schemas = [reads[0].schema(), reads[1].schema()];
    let mut text = fields_to_text(&found.fields, schemas, "")?;
    let told = |value: &Option<String>| value.as_ref().map_or("none".to_owned(), |value| format!("'{value}'"));
    for (what, texts) in [("metadata", &found.metadata), ("alias", &found.aliases)] {
        for MetadataDifference { key, values: [own, other], .. } in texts {
            text += &format!("{what} '{key}': {} and {}\n", told(own), told(other));
        }
    }
    for it in &found.user_info {
        let [own, other] = it.values.each_ref().map(|values| match values.is_empty() {
            true => "none".to_owned(),
            false => cut(&values.iter().map(object).collect::<Vec<_>>().join(" "), MAX_VALUE),
        });
        text += &format!("user information '{}': {own} and {other}\n", it.name);
    }
    for it in &found.attributes {
        let set = format!("attribute set '{}': ", it.name);
        match &it.kind {
            AttributeSetDifferenceKind::OnlyFirst => text += &format!("{set}only in the first\n"),
            AttributeSetDifferenceKind::OnlySecond => text += &format!("{set}only in the second\n"),
            AttributeSetDifferenceKind::Content { difference, schemas: [own, other] } => {
                text += &fields_to_text(&difference.fields, [own, other], &set)?;
                text += &entries_to_text(difference, &set);
            }
            _ => text += &format!("{set}differs\n"),
        }
    }
    text += &entries_to_text(found, "");
    for (count, side) in unpaired.into_iter().zip(["first", "second"]).filter(|(count, _)| *count > 0) {
        text += &format!("{} only in the {side}\n", things(count, "entry"));
    }
    Ok(text)
}

/// Lines that begin with `prefix`.
fn fields_to_text(fields: &[FieldDifference], schemas: [&Schema; 2], prefix: &str) -> Result<String, Failure> {
    let mut text = String::new();
    for field in fields {
        let name = &field.name;
        text += prefix;
        text += &match &field.kind {
            FieldDifferenceKind::OnlyFirst => format!("field '{name}': only in the first\n"),
            FieldDifferenceKind::OnlySecond => format!("field '{name}': only in the second\n"),
            FieldDifferenceKind::Types(own, other) => format!("field '{name}': types {own} and {other}\n"),
            FieldDifferenceKind::Values { entry, values } => {
                let [own, other] = both_values(schemas, name, values)?.map(|value| cut(&value, MAX_VALUE));
                // As of NaN.
                let bits = if own == other { ", which have different bits" } else { "" };
                format!("field '{name}': entry {entry}: {own} and {other}{bits}\n")
            }
            _ => format!("field '{name}': differs\n"),
        };
    }
    Ok(text)
}

fn entries_to_text(found: &Difference, prefix: &str) -> String {
    found.entries.map_or_else(String::new, |(own, other)| format!("{prefix}entries: {own} and {other}\n"))
}

fn both_values(schemas: [&Schema; 2], name: &str, values: &[ArrayRef; 2]) -> Result<[String; 2], Failure> {
    Ok([value(schemas[0], name, &values[0])?, value(schemas[1], name, &values[1])?])
}

/// A value as text, as `dump --format csv` writes it.
fn value(schema: &Schema, name: &str, value: &ArrayRef) -> Result<String, Failure> {
    let fields = schema.fields.iter().filter(|field| field.name == name).cloned().collect();
    let batch = RecordBatch::try_from_iter([(name, value.clone())]).map_err(Failure::new)?;
    let mut text = Text::default();
    let schema = Schema { fields };
    let entries = JsonEntries::new(&schema, &batch)?;
    entries.columns().iter().for_each(|column| column.write_plain(0, &mut text));
    Ok(String::from_utf8_lossy(&text.bytes).into_owned())
}

/// An object as JSON.
fn object(value: &ObjectValue) -> String {
    match objects::to_json(value, MAX_OBJECT_BYTES) {
        Ok(text) => String::from_utf8_lossy(&text.bytes).into_owned(),
        Err(_) => format!("\"more than {} of text\"", bytes(MAX_OBJECT_BYTES)),
    }
}

fn to_json(
    tables: [&Table; 2],
    reads: &[Read; 2],
    (found, unpaired): (&Difference, [u64; 2]),
) -> Result<Value, Failure> {
    let side = |table: &Table, read: &Read| json!({ "file": table.file_name(), "name": table.path(), "entries": read.count() });
    let texts = |texts: &[MetadataDifference]| -> Vec<Value> {
        texts.iter().map(|it| json!({ "key": it.key, "values": it.values })).collect()
    };
    let mut user_info = Vec::new();
    for it in &found.user_info {
        let values = it.values.each_ref().map(|values| -> Result<Vec<Value>, Failure> {
            values.iter().map(|value| serde_json::from_str(&object(value)).map_err(Failure::new)).collect()
        });
        let [own, other] = values;
        user_info.push(json!({ "name": it.name, "values": [own?, other?] }));
    }
    let mut attributes = Vec::new();
    for it in &found.attributes {
        let name = &it.name;
        attributes.push(match &it.kind {
            AttributeSetDifferenceKind::OnlyFirst => json!({ "name": name, "difference": "only_first" }),
            AttributeSetDifferenceKind::OnlySecond => json!({ "name": name, "difference": "only_second" }),
            AttributeSetDifferenceKind::Content { difference, schemas: [own, other] } => {
                let fields = fields_to_json(&difference.fields, [own, other])?;
                let entries = difference.entries.map(|(own, other)| [own, other]);
                json!({ "name": name, "difference": "content", "fields": fields, "entries": entries })
            }
            _ => json!({ "name": name, "difference": "other" }),
        });
    }
    Ok(json!({
        "file": tables[0].file_name(),
        "first": side(tables[0], &reads[0]),
        "second": side(tables[1], &reads[1]),
        "equal": found.is_empty() && unpaired == [0, 0],
        "compared_entries": found.compared,
        "unpaired_entries": unpaired,
        "fields": fields_to_json(&found.fields, [reads[0].schema(), reads[1].schema()])?,
        "metadata": texts(&found.metadata),
        "aliases": texts(&found.aliases),
        "user_info": user_info,
        "attribute_sets": attributes,
    }))
}

fn fields_to_json(fields: &[FieldDifference], schemas: [&Schema; 2]) -> Result<Vec<Value>, Failure> {
    let one = |FieldDifference { name, kind, .. }: &FieldDifference| {
        Ok(match kind {
            FieldDifferenceKind::OnlyFirst => json!({ "name": name, "difference": "only_first" }),
            FieldDifferenceKind::OnlySecond => json!({ "name": name, "difference": "only_second" }),
            FieldDifferenceKind::Types(own, other) => {
                json!({ "name": name, "difference": "types", "types": [own, other] })
            }
            FieldDifferenceKind::Values { entry, values } => {
                let values = both_values(schemas, name, values)?;
                json!({ "name": name, "difference": "values", "entry": entry, "values": values })
            }
            _ => json!({ "name": name, "difference": "other" }),
        })
    };
    fields.iter().map(one).collect()
}
