//! Programs that write events of their own, such as `tupelo-generate`.

use std::ops::ControlFlow;

use arrow_array::RecordBatch;
use tupelo::schema::Schema;
use tupelo::{FileWriter, Result, Storage};

use super::copy::target::{Destination, NtupleOptions, Operand, Target, summarise};
use crate::console::Console;
use crate::failure::Failure;
use crate::inputs::Inputs;

/// The output file and how it is written, as in `tupelo copy`: arguments of a program that writes [`Events`].
#[derive(Debug, clap::Args)]
pub struct OutputOptions {
    /// The output, as FILE or FILE:NAME
    #[arg(value_name = "OUT[:NAME]")]
    output: String,
    #[command(flatten)]
    ntuple: NtupleOptions,
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    pub(crate) common: super::Common,
}

/// Events to write with [`write`](crate::write).
pub trait Events {
    /// The arguments that concern the output.
    fn output(&self) -> &OutputOptions;

    /// Name of the ntuple, unless the arguments give another.
    fn ntuple(&self) -> &str;

    /// Number of entries in all batches, for the progress bar.
    fn entries(&self) -> u64;

    /// Schema of all batches.
    ///
    /// # Errors
    /// Those of reading what the events are made from; invalid argument if options contradict each other.
    fn schema(&self) -> Result<Schema>;

    /// The events. An interrupt takes effect after a batch, so batches should take well below a second.
    ///
    /// # Errors
    /// As [`Events::schema`], also for each batch.
    fn batches(&self) -> Result<Box<dyn Iterator<Item = Result<RecordBatch>>>>;

    /// Writes what belongs to the events, after them, unless they are added to others.
    ///
    /// # Errors
    /// Those of reading and writing it.
    fn write_others(&self, _: &FileWriter) -> Result<()> {
        Ok(())
    }
}

pub(crate) fn run(events: &impl Events, console: &Console) -> std::result::Result<(), Failure> {
    let OutputOptions { output, ntuple: options, target, .. } = events.output();
    let target = target.operand(Operand::Only);
    let to = target.locate(output, None)?;
    let schema = events.schema()?;
    let name = to.ntuple_name().unwrap_or(events.ntuple());
    let mut progress = console.progress(name, events.entries(), "events");
    let mut written = None;
    target.write(&to, &Inputs::default(), &Storage::default(), |file, interrupt| {
        let (mut ntuple, is_new) = match target.destination(file, name)? {
            Destination::New => (file.ntuple(name, &schema, options.options())?, true),
            Destination::Existing => (file.append(name, options.options())?, false),
        };
        for batch in events.batches()? {
            ntuple.write(&batch?)?;
            progress.set(ntuple.entries());
            if interrupt.is_set() {
                return Ok(ControlFlow::Break(()));
            }
        }
        written = Some(ntuple.finish()?);
        if is_new {
            events.write_others(file)?;
        }
        Ok(ControlFlow::Continue(()))
    })?;
    progress.finish();
    if let Some(written) = written {
        summarise(name, &written, console);
    }
    Ok(())
}
