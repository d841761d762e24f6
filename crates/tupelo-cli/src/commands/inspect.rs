//! `tupelo inspect`: where the bytes of a file are, why it is large or slow, and what to do.

pub(super) mod explain;
pub(super) mod layout;
mod page;
pub(super) mod text;

use std::io::Write;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tupelo::dataset::find;
use tupelo::ops::inspect::{Report, Sampled, inspect, sample};
use tupelo::ops::tune::DEFAULT_SAMPLE_BYTES;
use tupelo::reader::{Explanation, Location};
use tupelo::{File, Table};

use crate::console::{Console, Output, Pending};
use crate::failure::Failure;
use crate::inputs::Inputs;

/// Show where the bytes of ntuples and trees are, why they are large or slow, and what to do
///
/// Lists sizes of fields, columns, codecs, pages and clusters, and advice with reasons. Without NAME, all ntuples and
/// trees of the file follow each other. Only metadata are read, except with --read. --html writes a page for a browser,
/// with a map of the file; it needs no network.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tupelo inspect events.root
  tupelo inspect events.root:Events --html report.html
  tupelo inspect events.root --fields 'Muon_*' --entries :10000
  tupelo inspect events.root --json | jq '.advice[].what'")]
pub(crate) struct Args {
    /// Ntuples or trees, as FILE or FILE:NAME; FILE may contain wildcards
    #[arg(value_name = "FILE[:NAME]", required = true)]
    inputs: Vec<String>,
    /// List all fields and columns, not only the 20 largest ones
    #[arg(long)]
    all: bool,
    /// Also read a sample of about 64 MiB of values: which fields never vary, and which doubles are exact as float
    #[arg(long)]
    read: bool,
    #[command(flatten)]
    fields: super::Fields,
    #[command(flatten)]
    range: super::EntryRange,
    /// Write an HTML page with charts of all inputs; `-` writes to stdout
    #[arg(long, value_name = "PAGE.html")]
    html: Option<PathBuf>,
    /// Replace the HTML page if it exists
    #[arg(short, long, requires = "html")]
    force: bool,
    /// Print one JSON document for each ntuple or tree instead of tables
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    reading: super::Reading,
}

/// What is known of an ntuple or tree.
struct Inspected {
    report: Report,
    /// What reading the chosen fields and entries would do.
    query: Option<Explanation>,
    sampled: Option<Sampled>,
}

pub(crate) fn run(args: &Args, console: &Console) -> Result<(), Failure> {
    let storage = args.reading.storage()?;
    let locations = find(&args.inputs, storage)?;
    let page = args.html.as_deref().map(|path| open_page(path, args, &locations)).transpose()?;
    let (mut all, mut is_first) = (Vec::new(), true);
    let done = console.for_each(&locations, args.json.then_some("inspect"), |location| {
        let file = args.reading.open_file(location, console)?;
        for table in tables(&file, location)? {
            let table = table?;
            console.warn_of(&table);
            let inspected = inspect_one(&file, &table, args, console)?;
            if args.json {
                console.print_json("inspect", to_json(&inspected))?;
            } else if args.html.is_none() {
                let mut text = console.text();
                if !std::mem::take(&mut is_first) {
                    text.end_line();
                }
                text::add(&inspected, args.all, &mut text);
                console.print(&text)?;
            }
            if args.html.is_some() {
                all.push(inspected);
            }
        }
        Ok(())
    });
    // A page of what could be read is better than none.
    if let (Some((mut output, pending)), false) = (page, all.is_empty()) {
        output.write_all(page::write(&all)?.as_bytes()).and_then(|()| output.flush())?;
        pending.map_or(Ok(()), Pending::publish)?;
        if done.is_err() {
            console.warn("the page shows only what could be read");
        }
    }
    done
}

/// Creates the page, which must not replace anything without `--force`.
fn open_page(path: &Path, args: &Args, locations: &[Location]) -> Result<(Output, Option<Pending>), Failure> {
    if path.as_os_str() == "-" && args.json {
        return Err(Failure::usage("--json and --html - both write to stdout").with_hint("give the page a name"));
    }
    let inputs = Inputs::of(locations);
    inputs.check_output(path)?;
    if !args.force && path.is_file() {
        return Err(Failure::usage(format_args!("{} exists", path.display())).with_hint("--force replaces it"));
    }
    Output::open(Some(path), &inputs)
}

/// The ntuple or tree of a location, or all of a file, each opened when its turn comes.
fn tables<'f>(
    file: &'f File,
    location: &'f Location,
) -> Result<impl Iterator<Item = Result<Table, Failure>> + 'f, Failure> {
    let names = match &location.object {
        Some(name) => vec![Some(name.clone())],
        None => match file.table_names()? {
            // The error says what the file has instead.
            names if names.is_empty() => vec![None],
            names => names.into_iter().map(Some).collect(),
        },
    };
    Ok(names.into_iter().map(|name| file.table(name.as_deref()).map_err(|error| super::no_ntuple(error, location))))
}

fn inspect_one(file: &File, table: &Table, args: &Args, console: &Console) -> Result<Inspected, Failure> {
    let mut report = inspect(file, table)?;
    let query = match args.fields.is_empty() && args.range.is_whole() {
        true => None,
        false => Some(args.fields.read(table, None)?.entries(args.range.of(table.entries(), console)).explain()?),
    };
    let sampled = match args.read {
        true => Some(sample(table, &mut report, DEFAULT_SAMPLE_BYTES)?),
        false => None,
    };
    Ok(Inspected { report, query, sampled })
}

fn to_json(inspected: &Inspected) -> Value {
    let mut value = json!(inspected.report);
    if let Some(query) = &inspected.query {
        value["query"] = explain::to_json(query);
    }
    if let Some(sampled) = &inspected.sampled {
        value["sample"] = json!(sampled);
    }
    value
}
