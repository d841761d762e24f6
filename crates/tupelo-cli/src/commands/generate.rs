//! `tupelo generate`: events to try things out.

use std::ops::ControlFlow;

use arrow_array::RecordBatch;
use arrow_schema::Schema as ArrowSchema;
use tupelo::schema::Schema;

use super::target::{Onto, Storage, Target, summarise};
use crate::console::Console;
use crate::failure::Failure;
use crate::generate::{b2hhh, nanoaod};
use crate::inputs::Inputs;

/// Entries that are made at once: few enough for the command to stop soon when it is asked to.
const BATCH_ENTRIES: usize = 1 << 13;

/// Kinds of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Kind {
    /// B mesons that decay to three hadrons, the 26 columns of LHCb's open data; ntuple DecayTree
    B2hhh,
    /// Muons, electrons, jets and taus as jagged lists, in the style of CMS; ntuple Events
    Nanoaod,
}

impl Kind {
    fn ntuple(self) -> &'static str {
        match self {
            Self::B2hhh => "DecayTree",
            Self::Nanoaod => "Events",
        }
    }
}

/// Write an ntuple of simulated events
///
/// The same seed gives the same events, on every machine.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  tupelo generate b2hhh --events 2000000 --seed 1 b2hhh.root")]
pub(crate) struct Args {
    /// Kind of events
    #[arg(value_name = "KIND")]
    kind: Kind,
    /// The output, as FILE or FILE:NAME
    #[arg(value_name = "OUT[:NAME]")]
    output: String,
    /// How many events
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    events: u64,
    /// Seed of the random numbers
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    storage: Storage,
    #[command(flatten)]
    target: Target,
}

pub(crate) fn run(args: &Args, console: &Console) -> Result<(), Failure> {
    let Args { events, seed, .. } = *args;
    match args.kind {
        Kind::B2hhh => write(args, &b2hhh::schema(), b2hhh::batches(events, seed, BATCH_ENTRIES), console),
        Kind::Nanoaod => write(args, &nanoaod::schema(), nanoaod::batches(events, seed, BATCH_ENTRIES), console),
    }
}

fn write(
    args: &Args,
    schema: &ArrowSchema,
    batches: impl Iterator<Item = RecordBatch>,
    console: &Console,
) -> Result<(), Failure> {
    let to = args.target.locate(&args.output, None)?;
    let name = to.object.as_deref().unwrap_or(args.kind.ntuple());
    let mut progress = console.progress("generate", args.events, "events");
    let mut written = None;
    args.target.write(&to.path, &Inputs::default(), |file, interrupt| {
        let options = args.storage.options();
        let mut ntuple = match args.target.onto(file, name)? {
            Onto::New => file.ntuple(name, &Schema::from_arrow(schema)?, options)?,
            Onto::Existing => file.append(name, options)?,
        };
        for batch in batches {
            ntuple.write(&batch)?;
            progress.set(ntuple.entries());
            if interrupt.is_there() {
                return Ok(ControlFlow::Break(()));
            }
        }
        written = Some(ntuple.finish()?);
        Ok(ControlFlow::Continue(()))
    })?;
    progress.finish();
    if let Some(written) = written {
        summarise(name, &written, console);
    }
    Ok(())
}
