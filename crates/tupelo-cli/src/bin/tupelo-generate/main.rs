//! Writes simulated events with realistic kinematics and no detector, for demonstrations, benchmarks and tests.
//!
//! The same seed gives the same events whatever the batch size: the random number generator is a fixed one
//! (xoshiro256++), and tests pin what is drawn from it. Events of `b2hhh` are the same on every machine to the last
//! bit; those of `nanoaod` up to the rounding of the machine's hyperbolic and inverse functions. Events of `physlite` are
//! drawn from those of a real file.

mod b2hhh;
mod kinematics;
mod nanoaod;
mod physlite;

use std::cell::OnceCell;
use std::ops::Range;
use std::process::ExitCode;

use arrow_array::{ArrayRef, RecordBatch};
use clap::Parser;
use tupelo::schema::Schema;
use tupelo::{Error, FileWriter, Result};
use tupelo_cli::{Events, OutputOptions};

use crate::physlite::Original;

/// As in the program `tupelo`.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Entries of a batch.
const BATCH_ENTRIES: usize = 1 << 13;

/// Kinds of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Kind {
    /// B mesons that decay to three hadrons, the 26 columns of LHCb's open data; ntuple DecayTree
    B2hhh,
    /// Muons, electrons, jets and taus as jagged lists, in the style of CMS; ntuple Events
    Nanoaod,
    /// The events of a real DAOD_PHYSLITE file, drawn again and again, with its other ntuples; ntuple EventData
    Physlite,
}

/// Write an ntuple of simulated events
///
/// The same seed gives the same events, on every machine.
#[derive(Debug, Parser)]
#[command(
    name = "tupelo-generate",
    version,
    after_help = "Examples:
  tupelo-generate b2hhh --events 2000000 --seed 1 b2hhh.root
  tupelo-generate physlite --from DAOD_PHYSLITE.root --events 110000 physlite.root"
)]
struct Arguments {
    /// Kind of events
    #[arg(value_name = "KIND")]
    kind: Kind,
    #[command(flatten)]
    output: OutputOptions,
    /// Number of events
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    events: u64,
    /// Seed of the random number generator
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Of physlite, the file whose events are drawn
    #[arg(long, value_name = "FILE", required_if_eq("kind", "physlite"))]
    from: Option<String>,
    #[arg(skip)]
    original: OnceCell<Original>,
}

impl Arguments {
    /// The file whose events are drawn, opened once.
    fn original(&self) -> Result<&Original> {
        if let Some(original) = self.original.get() {
            return Ok(original);
        }
        let original = Original::open(self.from.as_deref().unwrap_or_default())?;
        Ok(self.original.get_or_init(|| original))
    }
}

impl Events for Arguments {
    fn output(&self) -> &OutputOptions {
        &self.output
    }

    fn ntuple(&self) -> &str {
        match self.kind {
            Kind::B2hhh => "DecayTree",
            Kind::Nanoaod => "Events",
            Kind::Physlite => "EventData",
        }
    }

    fn entries(&self) -> u64 {
        self.events
    }

    fn schema(&self) -> Result<Schema> {
        if let (Kind::B2hhh | Kind::Nanoaod, Some(file)) = (self.kind, &self.from) {
            let refused = format!("--from {file} is for physlite: other events are not drawn from those of a file");
            return Err(Error::invalid_argument(refused));
        }
        match self.kind {
            Kind::B2hhh => Schema::from_arrow(&b2hhh::schema()),
            Kind::Nanoaod => Schema::from_arrow(&nanoaod::schema()),
            Kind::Physlite => Ok(self.original()?.schema()),
        }
    }

    fn batches(&self) -> Result<Box<dyn Iterator<Item = Result<RecordBatch>>>> {
        Ok(match self.kind {
            Kind::B2hhh => Box::new(b2hhh::batches(self.events, self.seed, BATCH_ENTRIES).map(Ok)),
            Kind::Nanoaod => Box::new(nanoaod::batches(self.events, self.seed, BATCH_ENTRIES).map(Ok)),
            Kind::Physlite => Box::new(self.original()?.batches(self.events, self.seed)),
        })
    }

    fn write_others(&self, file: &FileWriter) -> Result<()> {
        match self.kind {
            Kind::B2hhh | Kind::Nanoaod => Ok(()),
            Kind::Physlite => self.original()?.write_others(file),
        }
    }
}

fn main() -> ExitCode {
    ExitCode::from(tupelo_cli::write::<Arguments>(std::env::args_os()))
}

/// The named columns of one batch, none of them nullable.
type Columns = Vec<(String, ArrayRef)>;

/// Divides `0..events` into batches and makes each from its entry range, in order.
fn in_batches(
    events: u64,
    batch_entries: usize,
    mut make: impl FnMut(Range<u64>) -> Columns,
) -> impl Iterator<Item = RecordBatch> {
    let step = batch_entries.max(1) as u64;
    (0..events.div_ceil(step)).map(move |batch| {
        let start = batch * step;
        record_batch(make(start..events.min(start.saturating_add(step))))
    })
}

/// Columns of one length as a record batch.
fn record_batch(columns: Columns) -> RecordBatch {
    let columns = columns.into_iter().map(|(name, array)| (name, array, false));
    RecordBatch::try_from_iter_with_nullable(columns).expect("a generator fills all columns alike")
}
