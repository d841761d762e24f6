//! Options of programs that write ntuples.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

use tupelo::ops::copy::Pages;
use tupelo::reader::{Location, Object, TREE_CLASSES};
use tupelo::storage::{Storage, display_name, is_object_uri};
use tupelo::writer::{DEFAULT_CLUSTER_BYTES, DEFAULT_PAGE_BYTES, Mapping, ObjectOptions, WriteProgress};
use tupelo::{Compression, ErrorKind, FileWriter, WriteOptions, cancellable};

use super::super::ls::NTUPLE_CLASS;
use crate::console::Console;
use crate::failure::Failure;
use crate::formats::Format;
use crate::inputs::Inputs;
use crate::interrupt::{Interrupt, abort};
use crate::parse::{Bytes, Checkpoint};
use crate::table::{bytes, count, things};

/// How to store an ntuple.
#[derive(Debug, clap::Args)]
pub(crate) struct NtupleOptions {
    /// Codec and level from 1 to 9: zstd:5, lz4:4, zlib:1, lzma:7, none, or a ROOT setting such as 505 [default:
    /// zstd:5; copy and merge keep that of an ntuple if no sizes are given either]
    #[arg(long, value_name = "CODEC")]
    compression: Option<Compression>,
    /// Maximum page size, in bytes before compression [default: 1 MiB]
    #[arg(long, value_name = "SIZE")]
    page_bytes: Option<Bytes>,
    /// Target size of clusters, in compressed bytes [default: 128 MiB]
    #[arg(long, value_name = "SIZE")]
    cluster_bytes: Option<Bytes>,
    /// Stored bytes between checkpoints, which make the data readable and durable, or off [default: 1 GiB]
    #[arg(long, value_name = "SIZE", default_value = DEFAULT_CHECKPOINT_TEXT, hide_default_value = true)]
    checkpoint: Checkpoint,
}

/// The checkpoints that are made if no others are chosen.
fn is_default(checkpoint: Checkpoint) -> bool {
    DEFAULT_CHECKPOINT_TEXT.parse() == Ok(checkpoint)
}

// The defaults of the engine as text for clap; a test compares them.
const DEFAULT_CHECKPOINT_TEXT: &str = "1GiB";

impl NtupleOptions {
    /// Refuses checkpoints of a remote file, which is visible only as a whole.
    pub(crate) fn check_checkpoint(&self, to: &Location) -> Result<(), Failure> {
        if to.local_path().is_some() || self.checkpoint.0.is_none() || is_default(self.checkpoint) {
            return Ok(());
        }
        let refused = Failure::usage(format_args!(
            "{to}: checkpoints are supported only in local files; remote files appear when they are complete"
        ));
        Err(refused.with_hint("omit --checkpoint, or write a local file and copy it with --raw"))
    }

    /// Whether options affect the pages.
    pub(crate) fn has_pages(&self) -> bool {
        self.compression.is_some() || self.has_sizes()
    }

    /// What becomes of pages that are copied: they stay as they are if nothing says how to store them.
    pub(crate) fn pages(&self) -> Pages {
        if self.has_pages() { Pages::Encode } else { Pages::Keep }
    }

    /// Whether options give sizes of pages or clusters.
    pub(crate) fn has_sizes(&self) -> bool {
        self.page_bytes.is_some() || self.cluster_bytes.is_some()
    }

    /// The codec, if one is given.
    pub(crate) fn given_compression(&self) -> Option<Compression> {
        self.compression
    }

    /// The codec of what is encoded.
    pub(crate) fn compression(&self) -> Compression {
        self.compression.unwrap_or(Compression::DEFAULT)
    }

    pub(crate) fn options(&self) -> WriteOptions {
        let options = WriteOptions::default()
            .with_compression(self.compression())
            .with_page_bytes(self.page_bytes.map_or(DEFAULT_PAGE_BYTES, |bytes| bytes.0))
            .with_cluster_bytes(self.cluster_bytes.map_or(DEFAULT_CLUSTER_BYTES, |bytes| bytes.0));
        match self.checkpoint.0 {
            Some(bytes) => options.with_checkpoint_bytes(bytes.0),
            None => options.with_checkpoint_bytes(0).with_checkpoint_time(Duration::ZERO),
        }
    }
}

/// What to do if the output exists.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Target {
    /// Add to the file if it exists
    #[arg(long, conflicts_with = "force")]
    append: bool,
    /// Replace the file if it exists
    #[arg(short, long)]
    force: bool,
    /// Name of what is written, as in OUT:NAME
    #[arg(long = "as", value_name = "NAME")]
    name: Option<String>,
    /// With --append, if the file contains an ntuple of this name: add the entries to it; the fields must be the same
    #[arg(long, requires = "append", conflicts_with = "new_cycle")]
    extend: bool,
    /// With --append, if the file contains an ntuple of this name: write a newer cycle, which hides the old entries
    #[arg(long, requires = "append")]
    new_cycle: bool,
    /// In an object store, the pages that share an object: page (one per object), cage:SIZE (pages of a column, up to
    /// SIZE), page-group (a column of a cluster), cluster (not in DAOS), or auto [default: auto]
    #[arg(long, value_name = "MAPPING")]
    mapping: Option<Mapping>,
    /// The position of the output in commands that take it as an argument, without `-o`.
    #[arg(skip)]
    operand: Option<Operand>,
}

/// The position of an output among the arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operand {
    /// Before the inputs.
    First,
    /// The command takes no inputs.
    Only,
}

/// How an ntuple is added to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Destination {
    /// As a new ntuple or a newer cycle.
    New,
    /// Its entries are appended to the ntuple of that name.
    Existing,
}

impl Target {
    /// An existing file to which something is added.
    pub(crate) fn adding() -> Self {
        Self { append: true, force: false, name: None, extend: true, new_cycle: false, mapping: None, operand: None }
    }

    /// Whether an existing file may be added to.
    pub(crate) fn can_append(&self) -> bool {
        self.append
    }

    /// Whether an existing file may be replaced or added to.
    pub(crate) fn changes_existing(&self) -> bool {
        self.append || self.force
    }

    /// The output file and the name of the ntuple, if it is given. An extension of another format is refused, with a
    /// hint that mentions the input file `source`.
    pub(crate) fn locate(&self, output: &str, source: Option<&str>) -> Result<Location, Failure> {
        let location = Location::parse(output);
        if location.file == "-" {
            let refused =
                Failure::usage("a ROOT file cannot be written to stdout, because parts of it are written last");
            return Err(refused.with_hint("./- is a file of this name"));
        }
        if let Some(format) = Format::of(Path::new(&location.file)) {
            let out = display_name(&location.file);
            let refused = Failure::usage(format_args!("{out}: this command writes only ROOT files"));
            return Err(refused.with_hint(match source {
                _ if !format.is_written() => "use a name such as out.root".to_owned(),
                Some(source) => format!("`tupelo dump {source} -o {out}` writes this format"),
                None => format!("write a ROOT file, then use `tupelo dump FILE -o {out}`"),
            }));
        }
        match (&location.object, &self.name) {
            (Some(name), Some(other)) => {
                Err(Failure::usage(format_args!("the output is given two names, '{name}' and '{other}'")))
            }
            (object, name) => Ok(Location { object: object.clone().or_else(|| name.clone()), file: location.file }),
        }
    }

    /// Creates or updates the file, and calls `fill` to write it. After an error or a signal the old file is unchanged.
    /// `fill` breaks when it was interrupted by a signal.
    pub(crate) fn write(
        &self,
        to: &Location,
        inputs: &Inputs,
        storage: &Storage,
        fill: impl FnOnce(&FileWriter, &Interrupt) -> Result<ControlFlow<()>, Failure>,
    ) -> Result<(), Failure> {
        let fill = |file: &FileWriter, interrupt: &Interrupt| Ok(fill(file, interrupt)?.is_continue().then_some(true));
        self.write_if(to, (inputs, storage), &Interrupt::watch()?, fill)
    }

    /// The same for a file that appears only if `fill` returns true; `None` is that it was interrupted.
    pub(crate) fn write_if(
        &self,
        to: &Location,
        (inputs, storage): (&Inputs, &Storage),
        interrupt: &Interrupt,
        fill: impl FnOnce(&FileWriter, &Interrupt) -> Result<Option<bool>, Failure>,
    ) -> Result<(), Failure> {
        let watched = interrupt.clone();
        let is_interrupted = move || watched.is_set();
        let opened = cancellable(is_interrupted.clone(), || self.open(to, inputs, storage));
        let file = opened.map_err(|failure| if interrupt.is_set() { interrupt.failure() } else { failure })?;
        match cancellable(is_interrupted.clone(), || fill(&file, interrupt)) {
            Ok(Some(true)) => cancellable(is_interrupted, || file.finish())
                .map_err(|error| if error.kind() == ErrorKind::Cancelled { interrupt.failure() } else { error.into() }),
            Ok(Some(false)) => Ok(file.abort().map(|_| ())?),
            // Requests to servers end with errors after a signal.
            Err(failure) if !interrupt.is_set() => Err(abort(file, failure)),
            _ => Err(abort(file, interrupt.failure())),
        }
    }

    fn open(&self, to: &Location, inputs: &Inputs, storage: &Storage) -> Result<FileWriter, Failure> {
        let path = to.local_path();
        if let Some(path) = path.filter(|path| self.append && path.exists()) {
            // Appending does not move the data that are read.
            return Ok(tupelo::update(path)?);
        }
        if is_object_uri(&to.file) && self.append {
            let refused = Failure::usage(format_args!("{to}: cannot add to an ntuple in an object store"));
            return Err(refused.with_hint("copy it with the new entries to another URI"));
        }
        if path.is_none() && self.append {
            let refused = Failure::usage(format_args!("{to}: cannot add to a remote file"));
            return Err(refused.with_hint("copy it with the new entries to another file"));
        }
        let is_object = is_object_uri(&to.file);
        if self.mapping.is_some() && !is_object {
            let refused = Failure::usage(format_args!("{to}: --mapping requires an object store"));
            return Err(refused.with_hint("write to ntpl+s3://BUCKET/PREFIX or ntpl+file:///DIRECTORY/NAME"));
        }
        self.check(to, inputs, storage, true)?;
        match path {
            Some(path) => Ok(tupelo::create(path)?),
            None if is_object => {
                let options = ObjectOptions::default().with_mapping(self.mapping.unwrap_or_default());
                let created = FileWriter::create_objects(&to.file, storage, options.with_exclusive(!self.force));
                created.map_err(|error| match error.kind() {
                    ErrorKind::Changed => Failure::new(error).with_hint("--force replaces it"),
                    ErrorKind::Unsupported if error.storage_kind().is_none() && !self.force => {
                        Failure::new(error).with_hint("--force writes without this protection")
                    }
                    _ => error.into(),
                })
            }
            None => Ok(FileWriter::create_at(&to.file, storage)?),
        }
    }

    /// Checks that the file is not an input, and that it does not exist or may be replaced. With `can_append`, hints
    /// mention that option.
    pub(crate) fn check(
        &self,
        to: &Location,
        inputs: &Inputs,
        storage: &Storage,
        can_append: bool,
    ) -> Result<(), Failure> {
        let name = display_name(&to.file);
        if inputs.contain(to) {
            let refused = Failure::usage(format_args!("{name} is both input and output"));
            return Err(refused.with_hint(match can_append && to.local_path().is_some() {
                true => "write to another file, or add a copy to this one with --append --as NAME",
                false => "write to another file",
            }));
        }
        if self.force {
            return Ok(());
        }
        match to.local_path() {
            Some(path) if path.is_dir() => {
                let refused = Failure::usage(format_args!("{name} is a directory"));
                return Err(
                    refused.with_hint(format!("specify a file in it, such as {}", path.join("out.root").display()))
                );
            }
            Some(path) if !path.exists() => return Ok(()),
            Some(_) => {}
            // The engine looks, with a condition that holds until the end.
            None if is_object_uri(&to.file) => return Ok(()),
            None => match storage.open(&to.file).map_err(tupelo::Error::from) {
                Ok(_) => {}
                Err(error) if error.is_not_found() => return Ok(()),
                Err(error) => {
                    return Err(Failure::new(error).with_hint("--force writes without checking the old file"));
                }
            },
        }
        Err(Failure::usage(format_args!("{name} exists")).with_hint(match (to.local_path(), can_append) {
            (Some(_), true) => match self.operand {
                Some(Operand::First) => {
                    "--force replaces it; --append adds to it; the output comes before the inputs".to_owned()
                }
                Some(Operand::Only) => "--force replaces it; --append adds to it".to_owned(),
                None => format!("--force -o {name} replaces it; --append adds to it"),
            },
            (Some(_), false) => format!("--force -o {name} replaces it"),
            (None, _) => "--force replaces it".to_owned(),
        }))
    }

    /// The target of a command whose output is a positional argument of its own.
    pub(crate) fn operand(&self, operand: Operand) -> Self {
        Self { operand: Some(operand), ..self.clone() }
    }

    /// Whether entries are added to an existing ntuple.
    pub(crate) fn extends(&self) -> bool {
        self.extend
    }

    /// Checks that objects can be added, as [`Target::check_tree`] does.
    pub(crate) fn check_objects(&self, file: &FileWriter, paths: &BTreeSet<String>) -> Result<(), Failure> {
        self.check_paths(file, paths, "merge all files to a new one; --new-cycle writes a newer cycle that hides it")
    }

    /// The same for objects that are copied alone.
    pub(crate) fn check_single_objects(&self, file: &FileWriter, paths: &BTreeSet<String>) -> Result<(), Failure> {
        self.check_paths(file, paths, "--as NAME uses another name; --new-cycle writes a newer cycle that hides it")
    }

    fn check_paths(&self, file: &FileWriter, paths: &BTreeSet<String>, hint: &str) -> Result<(), Failure> {
        match file.objects()?.into_iter().find(|existing| paths.contains(&existing.path) && !self.new_cycle) {
            Some(Object { path, .. }) => {
                let exists =
                    Failure::usage(format_args!("the file already contains '{path}', and nothing is added to it"));
                Err(exists.with_hint(hint))
            }
            None => Ok(()),
        }
    }

    /// Checks that a tree can be added. An existing one is hidden only with `--new-cycle`.
    pub(crate) fn check_tree(&self, file: &FileWriter, name: &str) -> Result<(), Failure> {
        if self.extend {
            return Err(Failure::usage("a tree cannot be extended").with_hint("--as NAME writes another tree"));
        }
        let is_tree = |class_name: &str| TREE_CLASSES.contains(&class_name);
        let exists = file.objects()?.iter().any(|object| is_tree(&object.class_name) && object.path == name);
        match exists && !self.new_cycle {
            true => {
                let exists = Failure::usage(format_args!("the file already contains a tree '{name}'"));
                Err(exists.with_hint("--as NAME uses another name; --new-cycle writes a newer cycle that hides it"))
            }
            false => Ok(()),
        }
    }

    /// How to add each of several ntuples, before any is written; with the output, and whether it is an input too.
    pub(crate) fn destinations<'n>(
        &self,
        file: &FileWriter,
        names: impl Iterator<Item = &'n str>,
        (to, is_input): (&Location, bool),
    ) -> Result<Vec<Destination>, Failure> {
        let destinations = names.map(|name| self.destination(file, name)).collect::<Result<Vec<_>, _>>()?;
        if is_input && destinations.contains(&Destination::Existing) {
            let itself = format!("{to} is also the input: an ntuple cannot be extended with itself");
            return Err(Failure::usage(itself).with_hint("--as NAME writes a copy under another name"));
        }
        Ok(destinations)
    }

    /// How to add an ntuple. An existing ntuple is hidden only with `--new-cycle`.
    pub(crate) fn destination(&self, file: &FileWriter, name: &str) -> Result<Destination, Failure> {
        let objects = file.objects()?;
        let exists = objects.iter().any(|object| object.class_name == NTUPLE_CLASS && object.path == name);
        match (exists, self) {
            (true, Self { extend: true, .. }) => Ok(Destination::Existing),
            (true, Self { new_cycle: false, .. }) => {
                let exists = Failure::usage(format_args!("the file already contains an ntuple '{name}'"));
                Err(exists.with_hint(
                    "--as NAME uses another name; --extend adds the entries to it; --new-cycle writes a newer cycle \
                     that hides it",
                ))
            }
            _ => Ok(Destination::New),
        }
    }
}

/// Prints a summary of what was written of an ntuple or a tree.
pub(crate) fn summarise(name: &str, written: &WriteProgress, console: &Console) {
    let WriteProgress { entries, entries_before, clusters, unpacked_bytes, stored_bytes } = *written;
    let entries = match entries_before {
        0 => format!("{} in {}", things(entries, "entry"), things(clusters, "cluster")),
        before => format!("{} added to {}", things(entries.saturating_sub(before), "entry"), count(before)),
    };
    console.note(&format!("{name}: {entries}, {} in {}", bytes(unpacked_bytes), bytes(stored_bytes)));
}

#[cfg(test)]
mod tests {
    use tupelo::writer::DEFAULT_CHECKPOINT_BYTES;

    use super::*;

    #[test]
    fn defaults_match_the_engine() {
        // The help has these texts.
        assert_eq!((DEFAULT_PAGE_BYTES, DEFAULT_CLUSTER_BYTES), (1 << 20, 128 << 20));
        assert_eq!(Compression::DEFAULT.to_string(), "zstd:5");
        assert_eq!(DEFAULT_CHECKPOINT_TEXT.parse(), Ok(Checkpoint(Some(Bytes(DEFAULT_CHECKPOINT_BYTES)))));
    }
}
