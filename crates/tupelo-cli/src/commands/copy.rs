//! `tupelo copy`: decode and write again.

use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

use tupelo::reader::{Location, Read};
use tupelo::writer::Written;
use tupelo::{Compression, FileWriter, WriteOptions, ops};

use crate::console::Console;
use crate::failure::Failure;
use crate::interrupt::{Interrupt, give_up};
use crate::parse::{Bytes, Checkpoint, Entries, Patterns, patterns};
use crate::table::{bytes, things};

/// Decode ntuples and write them again: fewer fields or entries, more columns, another codec, other page and cluster sizes
///
/// Without NAME all ntuples of IN are copied, in their newest cycle. C++ types, descriptions and column encodings stay as
/// they are. Attribute sets and metadata go along; where --entries or --where chooses some, what attributes say is cut to
/// these.
/// Trees and histograms are left behind. OUT appears when it is complete.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tupelo copy events.root small.root --fields 'Muon_*' --entries :100000
  tupelo copy events.root dimuons.root --where 'nMuon == 2 and sum(Muon_charge) == 0'
  tupelo copy events.root with_ht.root --define 'ht=sum(Jet_pt)' --where 'ht > 500'
  tupelo copy events.root:Events all.root:run1/Events --append --compression lzma:7")]
pub(crate) struct Args {
    /// What to copy, as FILE or FILE:NAME
    #[arg(value_name = "IN[:NAME]")]
    input: String,
    /// Where to, as FILE or FILE:NAME; without NAME under the same name
    #[arg(value_name = "OUT[:NAME]")]
    output: String,
    /// Fields, by dotted paths and globs between commas: MET_pt,jets.pt,'Muon_*' [default: all]
    #[arg(long, value_name = "FIELDS")]
    fields: Vec<Patterns>,
    /// Entries, as in Python: 10:20, :100, -10: or 5 [default: all]
    #[arg(long, value_name = "START:STOP", allow_hyphen_values = true, default_value = ":", hide_default_value = true)]
    entries: Entries,
    #[command(flatten)]
    condition: super::Condition,
    #[command(flatten)]
    storage: Storage,
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    reading: super::Reading,
}

/// How to store.
#[derive(Debug, clap::Args)]
pub(crate) struct Storage {
    /// Codec and level from 1 to 9: zstd:5, lz4:4, zlib:1, lzma:7, none, or ROOT's number as 505
    #[arg(long, value_name = "CODEC", default_value_t = Compression::DEFAULT)]
    compression: Compression,
    /// Largest page, in bytes before compression [default: 1 MiB]
    #[arg(long, value_name = "SIZE", default_value = DEFAULT_PAGE_TEXT, hide_default_value = true)]
    page_bytes: Bytes,
    /// Size at which a cluster is complete, in compressed bytes [default: 128 MiB]
    #[arg(long, value_name = "SIZE", default_value = DEFAULT_CLUSTER_TEXT, hide_default_value = true)]
    cluster_bytes: Bytes,
    /// Stored bytes after which all so far is made readable and durable, so that little is lost in a crash; or off
    /// [default: 1 GiB]
    #[arg(long, value_name = "SIZE", default_value = DEFAULT_CHECKPOINT_TEXT, hide_default_value = true)]
    checkpoint: Checkpoint,
}

/// What to do where the output is there already.
#[derive(Debug, clap::Args)]
pub(crate) struct Target {
    /// Add to the file if it exists
    #[arg(long, conflicts_with = "force")]
    append: bool,
    /// Replace the file if it exists
    #[arg(short, long)]
    force: bool,
}

// The engine's defaults as clap wants them; a test holds the two together.
const DEFAULT_PAGE_TEXT: &str = "1MiB";
const DEFAULT_CLUSTER_TEXT: &str = "128MiB";
const DEFAULT_CHECKPOINT_TEXT: &str = "1GiB";

impl Storage {
    pub(crate) fn options(&self) -> WriteOptions {
        let options = WriteOptions::default()
            .with_compression(self.compression)
            .with_page_bytes(self.page_bytes.0)
            .with_cluster_bytes(self.cluster_bytes.0);
        match self.checkpoint.0 {
            Some(bytes) => options.with_checkpoint_bytes(bytes.0),
            None => options.with_checkpoint_bytes(0).with_checkpoint_time(Duration::ZERO),
        }
    }
}

impl Target {
    /// Begins the file, or continues it, and lets `fill` do the rest. What goes wrong, and a signal, leaves what was
    /// there before; `fill` says whether it did all, or stopped for a signal.
    pub(crate) fn write(
        &self,
        path: &Path,
        fill: impl FnOnce(&FileWriter, &Interrupt) -> Result<ControlFlow<()>, Failure>,
    ) -> Result<(), Failure> {
        let interrupt = Interrupt::watch()?;
        let file = self.open(path)?;
        match fill(&file, &interrupt) {
            Ok(ControlFlow::Continue(())) => Ok(file.finish()?),
            Ok(ControlFlow::Break(())) => Err(give_up(file, interrupt.failure())),
            Err(failure) => Err(give_up(file, failure)),
        }
    }

    fn open(&self, path: &Path) -> Result<FileWriter, Failure> {
        match (path.exists(), self) {
            (true, Self { append: true, .. }) => Ok(tupelo::update(path)?),
            (true, Self { force: false, .. }) => {
                let refused = Failure::usage(format_args!("{} exists", path.display()));
                Err(refused.with_hint("--force replaces it, --append adds to it"))
            }
            _ => Ok(tupelo::create(path)?),
        }
    }
}

pub(crate) fn run(args: &Args, console: &Console) -> Result<(), Failure> {
    let (from, to) = (Location::parse(&args.input), Location::parse(&args.output));
    let file = args.reading.open_file(&args.input, console)?;
    let names = match from.object {
        Some(name) => vec![name],
        None => file.ntuple_names()?,
    };
    if names.is_empty() {
        return Err(Failure::new(format_args!("{} holds no ntuple", file.name())));
    }
    if let (Some(name), 2..) = (&to.object, names.len()) {
        let several = Failure::usage(format_args!("{} ntuples cannot all be called '{name}'", names.len()));
        return Err(several.with_hint("name one ntuple as IN:NAME, or leave the name of the output out"));
    }
    // All is opened before anything is written.
    let ntuples = names.iter().map(|name| file.ntuple(Some(name))).collect::<tupelo::Result<Vec<_>>>()?;
    let fields = patterns(&args.fields);
    let mut chosen = Vec::with_capacity(ntuples.len());
    for ntuple in &ntuples {
        super::warn(ntuple, console);
        let read = ntuple.read(&fields)?.entries(args.entries.of(ntuple.entries()));
        chosen.push((ntuple, args.condition.apply(read)?));
    }
    args.target.write(&to.path, |writer, interrupt| {
        for (ntuple, read) in chosen {
            let path = ntuple.path().split(';').next().unwrap_or_default();
            let name = to.object.as_deref().unwrap_or(path);
            let Some(written) = copy(read, name, args, writer, interrupt, console)? else {
                return Ok(ControlFlow::Break(()));
            };
            summarise(name, &written, console);
        }
        Ok(ControlFlow::Continue(()))
    })
}

fn copy(
    read: Read,
    name: &str,
    args: &Args,
    writer: &FileWriter,
    interrupt: &Interrupt,
    console: &Console,
) -> Result<Option<Written>, Failure> {
    let mut progress = console.progress(name, read.count(), "entries");
    let options = args.storage.options();
    let mut told = |done| {
        progress.set(done);
        if interrupt.is_there() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    Ok(ops::copy::copy(read, writer, name, options, &mut told)?)
}

/// One line about what was written.
pub(crate) fn summarise(name: &str, written: &Written, console: &Console) {
    console.note(&format!(
        "{name}: {} in {}, {} in {}",
        things(written.entries, "entry"),
        things(written.clusters, "cluster"),
        bytes(written.unpacked_bytes),
        bytes(written.stored_bytes)
    ));
}

#[cfg(test)]
mod tests {
    use tupelo::writer::{DEFAULT_CHECKPOINT_BYTES, DEFAULT_CLUSTER_BYTES, DEFAULT_PAGE_BYTES};

    use super::*;

    #[test]
    fn defaults_are_those_of_the_engine() {
        assert_eq!(DEFAULT_PAGE_TEXT.parse(), Ok(Bytes(DEFAULT_PAGE_BYTES)));
        assert_eq!(DEFAULT_CLUSTER_TEXT.parse(), Ok(Bytes(DEFAULT_CLUSTER_BYTES)));
        assert_eq!(DEFAULT_CHECKPOINT_TEXT.parse(), Ok(Checkpoint(Some(Bytes(DEFAULT_CHECKPOINT_BYTES)))));
    }
}
