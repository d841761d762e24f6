//! `tupelo index`: manifests for planning distributed reads, and zone maps.

use std::io::Write;
use std::ops::ControlFlow;
use std::path::PathBuf;

use tupelo::dataset::find;
use tupelo::ops::index::Manifest;
use tupelo::ops::index::zones::{ZoneOptions, ZonesWritten, write_zones};
use tupelo::reader::Location;
use tupelo::storage::{display_name, local_path};

use super::changes::update;
use crate::console::{Console, Output, Pending};
use crate::failure::Failure;
use crate::inputs::Inputs;
use crate::parse::Patterns;
use crate::table::things;

/// Write a manifest of ntuples and trees for planning reads, or add zone maps so that cuts read less
///
/// Writes one JSON document with the size and identity of each file, its clusters with first entry, number of entries
/// and stored bytes, its fields with their sizes, and the distinct schemas. In Python, tupelo.partitions and
/// tupelo.dask accept it as manifest=. No page is read. If files cannot be read, an error lists them and no manifest is
/// written; with --skip-errors, the manifest lists them under "left_out".
///
/// With --zone-maps, ntuples in local files get the lowest and highest value of each field in ranges of entries, as an
/// attribute set. A cut such as 'run == 7 and MET_pt > 200' then reads only ranges in which it can be true; `tupelo
/// explain` shows what is left. With --bloom, each range also gets a Bloom filter of its values, with which 'event == 7'
/// reads few ranges even if the values are not sorted. ROOT reads the file as before. After entries were added, the same
/// command adds their zone maps; copies have none. If a file fails, it is unchanged, the other files still get their
/// zone maps, and the exit status is not 0.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tupelo index run*.root > manifest.json
  tupelo index -o manifest.json a.root:Events b.root:Events
  tupelo index run*.root | jq '[.files[].entries] | add'
  tupelo index --zone-maps events.root:Events --fields 'run,MET_*' --bloom event")]
pub(crate) struct Args {
    /// Ntuples and trees, each as FILE or FILE:NAME; FILE may contain wildcards
    #[arg(value_name = "FILE[:NAME]", required = true)]
    inputs: Vec<String>,
    /// Output file, replaced if it exists, or - for stdout [default: -]
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    /// Add zone maps to the ntuples instead, in their files
    #[arg(long, conflicts_with_all = ["output", "skip_errors"])]
    zone_maps: bool,
    /// Fields with zone maps, as dotted paths or globs [default: all that are numbers or lists of numbers]
    #[arg(long, requires = "zone_maps")]
    fields: Vec<Patterns>,
    /// Fields of integers with Bloom filters too, for cuts with == and in
    #[arg(long, value_name = "FIELDS", requires = "zone_maps")]
    bloom: Vec<Patterns>,
    /// Number of entries of a zone; larger ones are made once more [default: 8192]
    #[arg(long, value_name = "N", requires = "zone_maps", value_parser = clap::value_parser!(u64).range(1..))]
    zone_entries: Option<u64>,
    /// Make all zone maps again, and drop those of other fields: for zone maps that cannot be read or are wrong
    #[arg(long, requires = "zone_maps")]
    rebuild: bool,
    #[command(flatten)]
    skipping: super::Skipping,
    #[command(flatten)]
    reading: super::Reading,
}

pub(crate) fn run(args: &Args, console: &Console) -> Result<(), Failure> {
    let locations = find(&args.inputs, args.reading.storage()?)?;
    if args.zone_maps {
        return console.for_each(&locations, None, |location| add_zones(args, location, console));
    }
    let is_secret = |file: &str| local_path(file).is_none() && display_name(file) != file;
    if let Some(location) = locations.iter().find(|location| is_secret(&location.file)) {
        let refused =
            Failure::usage(format_args!("{location}: a manifest cannot store user names, passwords or query strings"));
        return Err(refused.with_hint("pass credentials with --storage-option or in the environment"));
    }
    let mut progress = console.progress("index", locations.len() as u64, "files");
    let mut manifest = Manifest::new();
    for (done, location) in (1..).zip(&locations) {
        let added = args.reading.open(location, None, console).and_then(|table| Ok(manifest.add(&table)?));
        args.skipping.note(location, locations.len(), added)?;
        progress.set(done);
    }
    progress.finish();
    args.skipping.finish(locations.len(), console)?;
    for (location, error) in args.skipping.left_out() {
        manifest.leave_out(&location, &error)?;
    }
    let text = manifest.to_json()? + "\n";
    let (mut output, pending) = Output::open(args.output.as_deref(), &Inputs::of(&locations))?;
    output.write_all(text.as_bytes()).and_then(|()| output.flush())?;
    pending.map_or(Ok(()), Pending::publish)
}

/// Adds zone maps to the ntuple of a location.
fn add_zones(args: &Args, location: &Location, console: &Console) -> Result<(), Failure> {
    let table = args.reading.open(location, None, console)?;
    let refused = |e| Failure::from(e).with_hint("`tupelo import` writes a tree as an ntuple");
    let path = table.ntuple().map_err(refused)?.path().to_owned();
    let patterns = |of: &'_ [Patterns]| of.iter().flat_map(|patterns| patterns.0.clone()).collect::<Vec<String>>();
    let fields = match args.fields.is_empty() && !args.bloom.is_empty() {
        // Not only those with filters.
        true => vec!["*".to_owned()],
        false => patterns(&args.fields),
    };
    let options =
        ZoneOptions::default().with_fields(fields).with_filters(patterns(&args.bloom)).with_rebuild(args.rebuild);
    let options = args.zone_entries.into_iter().fold(options, ZoneOptions::with_zone_entries);
    let file = Location { object: None, ..location.clone() };
    let ZonesWritten { fields, zones } = update(&file, |writer| {
        let mut progress = console.progress(&path, table.entries(), "entries");
        let mut report = |done| {
            progress.set(done);
            ControlFlow::Continue(())
        };
        match write_zones(writer, &path, &options, &mut report)?.unwrap_or_default() {
            ZonesWritten { fields: 0, .. } => {
                Err(Failure::usage(format_args!("{location}: '{path}': none of the fields has numbers")))
            }
            written => Ok(written),
        }
    })?;
    let (zones, fields) = (things(zones as u64, "new zone"), things(fields as u64, "field"));
    console.note(&format!("{file}: '{path}' has {zones} of {fields}"));
    Ok(())
}
