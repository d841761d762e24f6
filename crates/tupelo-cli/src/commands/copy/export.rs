//! `tupelo export`: ntuples as trees.

use std::ops::ControlFlow;

use tupelo::Compression;
use tupelo::dataset::find;
use tupelo::ops::export::{OriginalTrees, RewrittenTree, representable, rewrite};
use tupelo::writer::{DEFAULT_AUTO_FLUSH, DEFAULT_BASKET_BYTES, DEFAULT_SPLIT_LEVEL, Jagged, TreeOptions};

use super::super::{Selecting, SkipUnreadable, policy, warn_of_repeated};
use super::jobs::JobSearch;
use super::operands::{Operands, Skipping};
use super::target::{Target, summarise};
use super::trees::{self, basket_bytes};
use crate::console::{Console, Progress};
use crate::failure::Failure;
use crate::inputs::Inputs;
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
    /// Storage of lists of numbers: counter (arrays with a counter), vector (std::vector), or same (as in IN) [default:
    /// counter]
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
        "same" => Ok(Jagged::Same),
        _ => Err("expected counter, vector or same".to_owned()),
    }
}

impl Args {
    fn options(&self) -> Result<TreeOptions, Failure> {
        let basket_bytes = self.basket_bytes.map_or(Ok(DEFAULT_BASKET_BYTES), basket_bytes)?;
        Ok(TreeOptions::default()
            .with_compression(self.compression.unwrap_or(Compression::DEFAULT))
            .with_auto_flush(self.auto_flush)
            .with_basket_bytes(basket_bytes)
            .with_optimised_baskets(!self.fixed_baskets)
            .with_split_level(self.split_level)
            .with_jagged(self.jagged))
    }
}

pub(crate) fn run(args: &Args, console: &Console) -> Result<(), Failure> {
    let (inputs, output) = args.operands.split("export")?;
    // There is only one so far.
    let Format::TTree = args.to;
    let storage = args.reading.storage()?;
    let locations = find(inputs, storage)?;
    let to = args.target.locate(output, None)?;
    warn_of_repeated(&locations, "exported", console);
    let inputs = Inputs::of(&locations);
    args.operands.check(&to, &inputs, &args.target)?;
    // All inputs are checked before anything is written.
    let finding = JobSearch {
        reading: &args.reading,
        skipping: &args.skipping,
        policy: policy(false),
        name: to.ntuple_name(),
        console,
    };
    let job = finding.job(locations.clone())?;
    args.skipping.finish(locations.len(), console)?;
    let (table, options) = (&job.table, args.options()?);
    let selecting = Selecting { entries: 0..table.entries(), with_counters: true, ..Selecting::default() };
    let mut chosen = args.fields.select(table, Some(&args.condition), &selecting)?;
    chosen.check_missing(table, "--exclude FIELDS leaves them out; or export the files one by one")?;
    let (read, without_branch) = representable(chosen.read.clone(), &options)?;
    chosen.skipped.extend(without_branch);
    chosen.tell(table, console);
    let read = args.condition.apply(read)?.entries(args.range.of(table.entries(), console));
    let mut originals = OriginalTrees::of(&read);
    for location in locations.iter().filter(|_| table.is_of_trees()) {
        // Files that cannot be read were left out before.
        if let Ok(tree) = trees::open(&args.reading, location) {
            originals.add(&tree);
        }
    }
    let mut written = None;
    args.target.write(&to, &inputs, storage, |writer, interrupt| {
        args.target.check_tree(writer, &job.name)?;
        let mut progress: Progress = console.progress(&job.name, read.count(), "entries");
        let mut report = progress.until(interrupt);
        let exported = rewrite(read, originals, writer, &job.name, options, &mut report);
        written = exported.map_err(|error| Failure::from(error).of_data())?;
        Ok(if written.is_some() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
    })?;
    let RewrittenTree { written, left_out, .. } = written.unwrap_or_default();
    if let Some(written) = written {
        summarise(&job.name, &written, console);
    }
    left_out.iter().for_each(|what| console.warn(&format!("not exported: {what}")));
    args.skip.check(chosen.skipped.len() + left_out.len(), &to.to_string())
}
