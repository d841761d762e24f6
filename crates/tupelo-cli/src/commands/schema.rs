//! `tupelo schema`: the fields of an ntuple and how they are stored.

use std::collections::HashMap;

use serde_json::{Value, json};
use tupelo::Ntuple;
use tupelo::ops::inspect::{self, ColumnInfo};
use tupelo::schema::{Field, Schema};

use crate::console::{Console, Style};
use crate::failure::Failure;
use crate::parse::{Patterns, patterns};
use crate::table::{bytes, pad, things, width};

/// Show the fields of an ntuple as a tree with their C++ types
///
/// The items of collections are called _0, base classes :_0, :_1 and so on.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tupelo schema events.root
  tupelo schema events.root:Events --fields 'Muon_*' --columns")]
pub(crate) struct Args {
    /// The ntuple, as FILE or FILE:NAME
    #[arg(value_name = "FILE[:NAME]")]
    input: String,
    /// Fields, by dotted paths and globs between commas: MET_pt,jets.pt,'Muon_*' [default: all]
    #[arg(long, value_name = "FIELDS")]
    fields: Vec<Patterns>,
    /// Columns too: type, bits, representation, elements, pages, bytes, codec
    #[arg(long)]
    columns: bool,
    /// The Arrow types that the fields are read as, instead of the tree
    #[arg(long, conflicts_with_all = ["columns", "json"])]
    arrow: bool,
    /// Read the attribute set of this name that is linked to the ntuple
    #[arg(long, value_name = "SET")]
    attributes: Option<String>,
    /// One JSON document instead of the tree
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    reading: super::Reading,
}

/// Columns by the dotted path of their field.
type Columns = HashMap<String, Vec<ColumnInfo>>;

pub(crate) fn run(args: &Args, console: &Console) -> Result<(), Failure> {
    let ntuple = args.reading.open(&args.input, args.attributes.as_deref(), console)?;
    let read = ntuple.read(patterns(&args.fields))?;
    if args.arrow {
        let line = |field: &arrow_schema::FieldRef| format!("{}: {}\n", field.name(), field.data_type());
        return console.print(&read.arrow_schema().fields().iter().map(line).collect::<String>());
    }
    let mut columns = Columns::new();
    if args.columns {
        for column in inspect::columns(&ntuple)? {
            columns.entry(column.field.clone()).or_default().push(column);
        }
    }
    match args.json {
        true => print_json(&ntuple, read.schema(), &columns, console),
        false => print_tree(&ntuple, read.schema(), &columns, console),
    }
}

fn print_tree(ntuple: &Ntuple, schema: &Schema, columns: &Columns, console: &Console) -> Result<(), Failure> {
    let mut text = format!("{}: {}", console.paint(Style::Bold, ntuple.path()), things(ntuple.entries(), "entry"));
    if !ntuple.description().is_empty() {
        text += &format!("  {}", console.paint(Style::Dim, &format!("\"{}\"", ntuple.description())));
    }
    text.push('\n');
    // Types of neighbours begin in one column, unless a name is very long.
    let names = schema.fields.iter().map(|field| width(&field.name)).max().unwrap_or(0).min(32);
    let last = schema.fields.len();
    for (index, field) in schema.fields.iter().enumerate() {
        let path = field.name.clone();
        branch(field, &path, ("", index + 1 == last), names, columns, console, &mut text);
    }
    console.print(&text)
}

fn branch(
    field: &Field,
    path: &str,
    (indent, is_last): (&str, bool),
    names: usize,
    columns: &Columns,
    console: &Console,
    text: &mut String,
) {
    let mut line = format!("{indent}{}", if is_last { "└─ " } else { "├─ " });
    line += &pad(&field.name, names, false);
    line += "  ";
    line += &console.paint(Style::Cyan, field.display_type());
    if let Some(source) = &field.projected_from {
        line += &format!("  = {source} (projected)");
    }
    if field.soa {
        line += "  (structure of arrays)";
    }
    if !field.description.is_empty() {
        line += &format!("  {}", console.paint(Style::Dim, &format!("\"{}\"", field.description.replace('\n', " "))));
    }
    *text += line.trim_end();
    text.push('\n');
    let below = format!("{indent}{}", if is_last { "   " } else { "│  " });
    let has_children = !field.children().is_empty();
    for column in columns.get(path).into_iter().flatten() {
        let line = format!("{below}{}   {}", if has_children { "│" } else { " " }, column_text(column));
        *text += &console.paint(Style::Dim, line.trim_end());
        text.push('\n');
    }
    let names = field.children().iter().map(|child| width(&child.name)).max().unwrap_or(0).min(32);
    let last = field.children().len();
    for (index, child) in field.children().iter().enumerate() {
        let path = format!("{path}.{}", child.name);
        branch(child, &path, (&below, index + 1 == last), names, columns, console, text);
    }
}

fn column_text(column: &ColumnInfo) -> String {
    let mut text =
        format!("column {}: {}, {} bits", column.id, column.column_type.unwrap_or("unknown type"), column.bits);
    if let Some((min, max)) = column.range {
        text += &format!(" over {min:?}..{max:?}");
    }
    if column.representation > 0 {
        text += &format!(", representation {}", column.representation);
    }
    if column.in_extension {
        text += &format!(", added late (first element {})", column.first_element);
    }
    let sizes = &column.sizes;
    text += &format!(
        "; {}, {}, {} in {}",
        things(sizes.elements, "element"),
        things(sizes.pages, "page"),
        bytes(sizes.unpacked_bytes),
        bytes(sizes.stored_bytes)
    );
    if sizes.shared_pages > 0 {
        text += &format!(", {} shared with columns above", things(sizes.shared_pages, "page"));
    }
    if !sizes.codec().is_empty() {
        text += &format!(" ({})", sizes.codec());
    }
    text
}

fn print_json(ntuple: &Ntuple, schema: &Schema, columns: &Columns, console: &Console) -> Result<(), Failure> {
    let fields: Vec<_> = schema.fields.iter().map(|field| to_json(field, &field.name, columns)).collect();
    console.print_json(&json!({
        "file": ntuple.file_name(),
        "name": ntuple.path(),
        "description": ntuple.description(),
        "entries": ntuple.entries(),
        "fields": fields,
    }))
}

fn to_json(field: &Field, path: &str, columns: &Columns) -> Value {
    let mut value = json!({ "name": field.name, "type": field.type_name });
    for (key, text) in [("type_alias", &field.type_alias), ("description", &field.description)] {
        if !text.is_empty() {
            value[key] = json!(text);
        }
    }
    if field.type_version > 0 {
        value["type_version"] = json!(field.type_version);
    }
    if let Some(checksum) = field.checksum {
        value["type_checksum"] = json!(checksum);
    }
    if let Some(source) = &field.projected_from {
        value["projected_from"] = json!(source);
    }
    if field.soa {
        value["soa"] = json!(true);
    }
    if let Some(columns) = columns.get(path) {
        value["columns"] = columns.iter().map(column_to_json).collect();
    }
    if !field.children().is_empty() {
        let child = |child: &Field| to_json(child, &format!("{path}.{}", child.name), columns);
        value["fields"] = field.children().iter().map(child).collect();
    }
    value
}

fn column_to_json(column: &ColumnInfo) -> Value {
    json!({
        "id": column.id,
        "type": column.column_type,
        "bits": column.bits,
        "index": column.index,
        "representation": column.representation,
        "range": column.range.map(|(min, max)| [min, max]),
        "first_element": column.first_element,
        "added_late": column.in_extension,
        "elements": column.sizes.elements,
        "pages": column.sizes.pages,
        "shared_pages": column.sizes.shared_pages,
        "stored_bytes": column.sizes.stored_bytes,
        "unpacked_bytes": column.sizes.unpacked_bytes,
        "codec": column.sizes.codec(),
    })
}
