//! `tupelo export`: ntuples as trees.

use std::ops::{ControlFlow, Range};

use tupelo::dataset::find;
use tupelo::ops::copy::check_alike;
use tupelo::ops::export::{Exporter, representable};
use tupelo::reader::{Location, Skipped};
use tupelo::writer::{
    DEFAULT_AUTO_FLUSH, DEFAULT_BASKET_BYTES, DEFAULT_SPLIT_LEVEL, Jagged, TreeOptions, WriteProgress,
};
use tupelo::{Compression, FileWriter, Table};

use super::super::fields::Chosen;
use super::super::{Selecting, SkipUnreadable};
use super::operands::{Operands, Skipping};
use super::target::{Target, summarise};
use crate::console::{Console, Progress};
use crate::failure::Failure;
use crate::inputs::{Inputs, repeated};
use crate::interrupt::Interrupt;
use crate::parse::Bytes;

/// Export ntuples or trees as TTrees, which ROOT and uproot read
///
/// The entries of several IN become one tree; their fields must be the same. Lists become arrays with a counter (nx/I
/// and x[nx]/F) or vectors; records become one branch per member or one branch of objects. Fields that a branch cannot
/// hold (maps, optional values, variants, pairs) and branches that cannot be read are left out with a warning, and the
/// exit status is 1 unless --skip-unreadable or --exclude is given. The counters of selected lists are included.
/// Attribute sets and metadata are not exported. OUT appears when it is complete.
#[derive(Debug, clap::Args)]
#[command(override_usage = "tupelo export [OPTIONS] <IN[:NAME]>... <OUT[:TREE]>")]
#[command(after_help = "Examples:
  tupelo export events.root tree.root --to ttree
  tupelo export events.root:Events tree.root:Events --compression lz4:4 --auto-flush 10000
  tupelo export events.root tree.root --jagged vector --split-level 0
  tupelo export events.root dimuons.root --fields 'Muon_*' --cut 'len(Muon_pt) == 2'")]
pub(crate) struct Args {
    #[command(flatten)]
    operands: Operands,
    #[command(flatten)]
    skipping: Skipping,
    /// Format of the output: ttree [default: ttree]
    #[arg(long, value_name = "FORMAT", default_value = "ttree", hide_default_value = true, value_parser = format)]
    to: Format,
    #[command(flatten)]
    fields: super::super::Fields,
    #[command(flatten)]
    range: super::super::EntryRange,
    #[command(flatten)]
    condition: super::super::Condition,
    /// Codec and level from 1 to 9: zstd:5, lz4:4, zlib:1, lzma:7, none, or a ROOT setting such as 505 [default:
    /// zstd:5]
    #[arg(long, value_name = "CODEC")]
    compression: Option<Compression>,
    /// Size of clusters: N entries, -N compressed bytes (later clusters have as many entries as the first), or 0 for a
    /// single cluster [default: -30000000]
    #[arg(long, value_name = "N", default_value_t = DEFAULT_AUTO_FLUSH, hide_default_value = true, allow_hyphen_values = true)]
    auto_flush: i64,
    /// Size of a basket in bytes, before compression [default: 32000]
    #[arg(long, value_name = "SIZE")]
    basket_bytes: Option<Bytes>,
    /// Keep the basket size after the first cluster, instead of writing one basket per branch and cluster
    #[arg(long)]
    fixed_baskets: bool,
    /// Number of levels to which members of records are split into branches, from 0 to 99 [default: 99]
    #[arg(long, value_name = "LEVEL", default_value_t = DEFAULT_SPLIT_LEVEL, hide_default_value = true)]
    split_level: u8,
    /// Storage of lists of numbers: counter (arrays with a counter) or vector (std::vector) [default: counter]
    #[arg(long, value_name = "FORM", default_value = "counter", hide_default_value = true, value_parser = jagged)]
    jagged: Jagged,
    #[command(flatten)]
    skip: SkipUnreadable,
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    reading: super::super::Reading,
}

/// Formats of the output.
#[derive(Debug, Clone, Copy)]
enum Format {
    TTree,
}

fn format(text: &str) -> Result<Format, String> {
    match text {
        "ttree" => Ok(Format::TTree),
        _ => Err("expected ttree; `tupelo dump -o FILE` writes Parquet, Arrow, CSV and JSON".to_owned()),
    }
}

fn jagged(text: &str) -> Result<Jagged, String> {
    match text {
        "counter" => Ok(Jagged::Counter),
        "vector" => Ok(Jagged::Vector),
        _ => Err("expected counter or vector".to_owned()),
    }
}

impl Args {
    fn options(&self) -> Result<TreeOptions, Failure> {
        let basket_bytes = match self.basket_bytes {
            None => DEFAULT_BASKET_BYTES,
            Some(Bytes(bytes)) => u32::try_from(bytes).map_err(|_| {
                Failure::usage(format_args!("--basket-bytes {bytes}: a basket can have at most 256 MiB"))
            })?,
        };
        Ok(TreeOptions::default()
            .with_compression(self.compression.unwrap_or(Compression::DEFAULT))
            .with_auto_flush(self.auto_flush)
            .with_basket_bytes(basket_bytes)
            .with_optimised_baskets(!self.fixed_baskets)
            .with_split_level(self.split_level)
            .with_jagged(self.jagged))
    }

    /// The chosen fields that branches can hold.
    fn choose(&self, table: &Table, options: &TreeOptions, undecodable: Option<&[Skipped]>) -> Result<Chosen, Failure> {
        let selecting = Selecting { matched: None, entries: 0..table.entries(), with_counters: true, undecodable };
        let mut chosen = self.fields.select(table, Some(&self.condition), &selecting)?;
        let (read, without_branch) = representable(chosen.read, options)?;
        chosen.skipped.extend(without_branch);
        chosen.read = read;
        Ok(chosen)
    }
}

pub(crate) fn run(args: &Args, console: &Console) -> Result<(), Failure> {
    let (inputs, output) = args.operands.split("export")?;
    // There is only one so far.
    let Format::TTree = args.to;
    let storage = args.reading.storage()?;
    let locations = find(inputs, storage)?;
    let to = args.target.locate(output, None)?;
    if let Some(repeated) = repeated(&locations) {
        console.warn(&format!("{repeated} occurs more than once; its entries are exported each time"));
    }
    let inputs = Inputs::of(&locations);
    args.operands.check(&to, &inputs, &args.target)?;
    // All inputs are checked before anything is written. Only the first one stays open.
    let mut parts: Vec<Part> = Vec::with_capacity(locations.len());
    let (mut first, mut total, mut name) = (None, 0, to.ntuple_name().map(str::to_owned));
    let (options, mut skipped) = (args.options()?, 0);
    for location in &locations {
        let opened = args.reading.open_silently(location, None, console);
        let Some(table) = args.skipping.note(location, locations.len(), opened)? else { continue };
        let chosen = args.choose(&table, &options, None)?;
        chosen.tell(&table, console);
        skipped += chosen.skipped.len();
        let read = chosen.read;
        name.get_or_insert_with(|| super::without_cycle(table.path()).to_owned());
        match &first {
            Some(first) => check_alike(first, &read)?,
            None => first = Some(read),
        }
        let entries = total..total + table.entries();
        total = entries.end;
        let identity = table.identity()?;
        parts.push(Part { location: location.clone(), identity, entries, undecodable: chosen.undecodable });
    }
    args.skipping.finish(locations.len(), console)?;
    let name = name.unwrap_or_default();
    let wanted = args.range.of(total);
    let mut written = None;
    args.target.write(&to, &inputs, storage, |writer, interrupt| {
        args.target.check_tree(writer, &name)?;
        written = export(&parts, &wanted, args, (writer, &name, options), interrupt, console)?;
        Ok(if written.is_some() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
    })?;
    if let Some(written) = written {
        summarise(&name, &written, console);
    }
    args.skip.check(skipped, &to.to_string())
}

/// Entries of an input, counted through all of them.
struct Part {
    location: Location,
    identity: String,
    entries: Range<u64>,
    /// The branches that cannot be decoded.
    undecodable: Vec<Skipped>,
}

fn export(
    parts: &[Part],
    wanted: &Range<u64>,
    args: &Args,
    (file, name, options): (&FileWriter, &str, TreeOptions),
    interrupt: &Interrupt,
    console: &Console,
) -> Result<Option<WriteProgress>, Failure> {
    let mut progress: Progress = console.progress(name, wanted.end - wanted.start, "entries");
    let (mut exporter, mut before) = (None, 0);
    for Part { location, identity, entries: place, undecodable } in parts {
        let within = |entry: u64| entry.clamp(place.start, place.end) - place.start;
        let entries = within(wanted.start)..within(wanted.end);
        let count = entries.end - entries.start;
        let table = args.reading.reopen(location, identity, console)?;
        let read = args.choose(&table, &options, Some(undecodable))?.read.entries(entries);
        let read = args.condition.apply(read)?;
        let exporter = match &mut exporter {
            Some(exporter) => exporter,
            none => none.insert(Exporter::create(&read, file, name, options.clone())?),
        };
        let mut report = |done| {
            progress.set(before + done);
            if interrupt.is_set() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        if exporter.append(read, &mut report)?.is_break() {
            return Ok(None);
        }
        before += count;
    }
    Ok(match exporter {
        Some(exporter) => Some(exporter.finish()?),
        None => Some(WriteProgress::default()),
    })
}
