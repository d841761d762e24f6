//! Where ntuples are written to, and how they are stored: what all commands have that make some.

use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

use tupelo::reader::Location;
use tupelo::writer::WriteProgress;
use tupelo::{Compression, FileWriter, WriteOptions};

use super::ls::NTUPLE_CLASS;
use crate::console::Console;
use crate::export::Format;
use crate::failure::Failure;
use crate::inputs::Inputs;
use crate::interrupt::{Interrupt, give_up};
use crate::parse::{Bytes, Checkpoint};
use crate::table::{bytes, things};

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

/// What to do where the output is there already.
#[derive(Debug, clap::Args)]
pub(crate) struct Target {
    /// Add to the file if it exists
    #[arg(long, conflicts_with = "force")]
    append: bool,
    /// Replace the file if it exists
    #[arg(short, long)]
    force: bool,
    /// Write under this name, as OUT:NAME does
    #[arg(long = "as", value_name = "NAME")]
    name: Option<String>,
    /// With --append, where the file has an ntuple of the name: add the entries to it; its fields must be the same
    #[arg(long, requires = "append", conflicts_with = "new_cycle")]
    extend: bool,
    /// With --append, where the file has an ntuple of the name: write a newer cycle, which hides the entries of the old
    #[arg(long, requires = "append")]
    new_cycle: bool,
}

/// How an ntuple goes into its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Onto {
    /// It is a new one, or a newer cycle.
    New,
    /// Its entries go behind those of the ntuple of that name.
    Existing,
}

impl Target {
    /// The file and the name under which it is to hold what is written, if one is given. ROOT files are written, so one
    /// that would be called as another format is refused; of `source`, the file that is read, an advice may speak.
    pub(crate) fn locate(&self, output: &str, source: Option<&str>) -> Result<Location, Failure> {
        let location = Location::parse(output);
        if Format::of(&location.path).is_some() {
            let out = location.path.display();
            let refused = Failure::usage(format_args!("{out}: this command writes ROOT files, and no others"));
            return Err(refused.with_hint(match source {
                Some(source) => format!("`tupelo dump {source} -o {out}` writes this format"),
                None => format!("write a ROOT file, and then `tupelo dump FILE -o {out}`"),
            }));
        }
        match (&location.object, &self.name) {
            (Some(name), Some(other)) => {
                Err(Failure::usage(format_args!("the output has two names, '{name}' and '{other}'")))
            }
            (object, name) => Ok(Location { object: object.clone().or_else(|| name.clone()), path: location.path }),
        }
    }

    /// Begins the file, or continues it, and lets `fill` do the rest. What goes wrong, and a signal, leaves what was
    /// there before; `fill` says whether it did all, or stopped for a signal.
    pub(crate) fn write(
        &self,
        path: &Path,
        inputs: &Inputs,
        fill: impl FnOnce(&FileWriter, &Interrupt) -> Result<ControlFlow<()>, Failure>,
    ) -> Result<(), Failure> {
        let interrupt = Interrupt::watch()?;
        let file = self.open(path, inputs)?;
        match fill(&file, &interrupt) {
            Ok(ControlFlow::Continue(())) => Ok(file.finish()?),
            Ok(ControlFlow::Break(())) => Err(give_up(file, interrupt.failure())),
            Err(failure) => Err(give_up(file, failure)),
        }
    }

    fn open(&self, path: &Path, inputs: &Inputs) -> Result<FileWriter, Failure> {
        match (path.exists(), self) {
            // What is appended goes behind all that is read, which stays where it is.
            (true, Self { append: true, .. }) => Ok(tupelo::update(path)?),
            (true, _) if inputs.contain(path) => {
                let hint = "write into another file, or add a copy to this one by --append --as NAME";
                inputs.check_output(path).map_err(|refused| refused.with_hint(hint))?;
                Ok(tupelo::create(path)?)
            }
            (true, Self { force: false, .. }) if path.is_dir() => {
                let refused = Failure::usage(format_args!("{} is a directory", path.display()));
                Err(refused.with_hint(format!("name a file in it, as {}", path.join("out.root").display())))
            }
            (true, Self { force: false, .. }) => {
                let refused = Failure::usage(format_args!("{} exists", path.display()));
                Err(refused.with_hint("--force replaces it, --append adds to it"))
            }
            _ => Ok(tupelo::create(path)?),
        }
    }

    /// How an ntuple is to be written. One whose name the file has is not hidden by another unasked.
    pub(crate) fn onto(&self, file: &FileWriter, name: &str) -> Result<Onto, Failure> {
        let objects = file.objects()?;
        let exists = objects.iter().any(|object| object.class_name == NTUPLE_CLASS && object.path == name);
        match (exists, self) {
            (true, Self { extend: true, .. }) => Ok(Onto::Existing),
            (true, Self { new_cycle: false, .. }) => {
                let exists = Failure::usage(format_args!("the file has an ntuple '{name}' already"));
                Err(exists.with_hint(
                    "--as NAME writes under another name, --extend adds the entries to it, --new-cycle hides it behind \
                     a newer cycle",
                ))
            }
            _ => Ok(Onto::New),
        }
    }
}

/// One line about what was written.
pub(crate) fn summarise(name: &str, written: &WriteProgress, console: &Console) {
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
