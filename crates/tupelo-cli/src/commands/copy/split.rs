//! One ntuple as several files.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::Path;

use tupelo::ops::copy::{Copied, CopyOptions, copy};
use tupelo::reader::Location;
use tupelo::storage::{Storage, display_name, is_object_uri};
use tupelo::writer::WriteProgress;

use super::{Args, Copy};
use crate::console::{Console, Progress};
use crate::failure::Failure;
use crate::inputs::Inputs;
use crate::interrupt::Interrupt;
use crate::parse::Bytes;
use crate::table::{count, things};

/// Fewest digits in the names of files.
const MIN_DIGITS: usize = 4;
/// Most files of one command.
const MAX_FILES: u64 = 100_000;
/// Most files that a note names one by one.
const MAX_NAMED: usize = 3;
/// Most files of a server that are looked up before anything is written.
const MAX_CHECKED: u64 = 100;

/// Where a copy continues in another file.
#[derive(Debug, clap::Args)]
pub(super) struct Splitting {
    /// Write several files, OUT_0001.root, OUT_0002.root and so on, each with at most N entries
    #[arg(long, value_name = "N", conflicts_with = "append", value_parser = clap::value_parser!(u64).range(1..))]
    split_entries: Option<u64>,
    /// Write several files, each of about SIZE stored bytes: the next one begins at the first end of a cluster after
    /// SIZE
    #[arg(long, value_name = "SIZE", conflicts_with = "append")]
    split_bytes: Option<Bytes>,
}

impl Splitting {
    pub(super) fn is_empty(&self) -> bool {
        self.split_entries.is_none() && self.split_bytes.is_none()
    }

    /// How each file is filled.
    fn limit(&self, how: CopyOptions) -> CopyOptions {
        let how = self.split_entries.into_iter().fold(how, CopyOptions::with_max_entries);
        self.split_bytes.iter().fold(how, |how, bytes| how.with_max_stored_bytes(bytes.0))
    }
}

/// The only ntuple of a command, which can be split.
pub(super) fn single<'c>(copies: &'c [Copy], has_trees: bool, to: &Location) -> Result<&'c Copy, Failure> {
    let what = "--split-entries and --split-bytes";
    if is_object_uri(&to.file) {
        let refused = Failure::usage(format_args!("{to}: {what} write files, not objects"));
        return Err(refused.with_hint("write to a file or URL; --mapping chooses the sizes of objects"));
    }
    match copies {
        [only] if !has_trees => Ok(only),
        _ => {
            let refused = Failure::usage(format_args!("{what} split a single ntuple, but more would be written"));
            Err(refused.with_hint("select one as IN:NAME"))
        }
    }
}

/// The names of the files.
#[derive(Debug, PartialEq, Eq)]
struct Names {
    before: String,
    digits: usize,
    /// The extension, and what follows the path of a URL.
    after: String,
}

impl Names {
    fn of(file: &str, digits: usize) -> Self {
        let (path, query) = match file.find('?').filter(|_| file.contains("://")) {
            Some(end) => file.split_at(end),
            None => (file, ""),
        };
        let name = path.rsplit('/').next().unwrap_or_default();
        let extension = name.rfind('.').filter(|dot| *dot > 0).map_or(0, |dot| name.len() - dot);
        let (before, extension) = path.split_at(path.len() - extension);
        Self { before: before.to_owned(), digits, after: format!("{extension}{query}") }
    }

    fn name(&self, number: u64) -> String {
        let Self { before, digits, after } = self;
        format!("{before}_{number:0digits$}{after}")
    }

    fn last(&self) -> u64 {
        10_u64.saturating_pow(u32::try_from(self.digits).unwrap_or(u32::MAX)) - 1
    }

    /// The numbers of local files that exist, with any number of digits.
    fn existing(&self) -> BTreeSet<(u64, String)> {
        let first = self.name(1);
        let path = Path::new(&first);
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
        let start = format!("{}_", self.before.rsplit('/').next().unwrap_or_default());
        // FS: names only.
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let found = entries.filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let digits = name.strip_prefix(&start)?.strip_suffix(&self.after)?;
            let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
            Some((digits.parse().ok().filter(|_| is_number)?, name))
        });
        found.collect()
    }
}

/// What is split.
pub(super) struct Split<'a> {
    pub(super) args: &'a Args,
    pub(super) copy: &'a Copy,
    pub(super) to: &'a Location,
    pub(super) inputs: &'a Inputs,
    pub(super) storage: &'a Storage,
    pub(super) console: &'a Console,
}

impl Split<'_> {
    /// Writes the files, with the chosen objects in the first one, which `carry` writes.
    pub(super) fn write(
        &self,
        mut carry: impl FnMut(&tupelo::FileWriter) -> Result<(), Failure>,
    ) -> Result<WriteProgress, Failure> {
        let names = self.names()?;
        self.check(&names)?;
        let interrupt = Interrupt::watch()?;
        let mut files: Vec<String> = Vec::new();
        let written = self.write_all(&names, &interrupt, &mut carry, &mut files);
        match &written {
            Ok(_) => {
                self.console.note(&format!("wrote {}", listed(&files)));
                let stale: Vec<String> = match self.is_local() {
                    true => {
                        names.existing().into_iter().filter(|it| it.0 > files.len() as u64).map(|it| it.1).collect()
                    }
                    false => Vec::new(),
                };
                if !stale.is_empty() {
                    let what = format!("{} of an earlier copy remain beside the new ones", listed(&stale));
                    self.console.warn(&what);
                }
            }
            Err(_) if files.is_empty() => {}
            Err(_) => self.console.warn(&format!("complete before the error, and kept: {}", listed(&files))),
        }
        written
    }

    fn write_all(
        &self,
        names: &Names,
        interrupt: &Interrupt,
        carry: &mut dyn FnMut(&tupelo::FileWriter) -> Result<(), Failure>,
        files: &mut Vec<String>,
    ) -> Result<WriteProgress, Failure> {
        let range = self.copy.read.range();
        let mut progress: Progress = self.console.progress(&self.copy.job.name, self.copy.read.count(), "entries");
        let (mut next, mut all, mut warned) = (range.start, None::<WriteProgress>, BTreeSet::new());
        loop {
            let number = files.len() as u64 + 1;
            if number > names.last() {
                let many = Failure::new(format_args!("more than {} files would be needed", count(names.last())));
                return Err(many.with_hint("choose a larger --split-entries or --split-bytes"));
            }
            if interrupt.is_set() {
                return Err(interrupt.failure());
            }
            let place = Location { file: names.name(number), object: self.to.object.clone() };
            let mut copied = None;
            self.args.target.write_if(&place, (self.inputs, self.storage), interrupt, |writer, interrupt| {
                if number == 1 {
                    carry(writer)?;
                }
                let read = self.copy.read.clone().entries(next..range.end);
                let mut tell = progress.until(interrupt);
                let before = next - range.start;
                let mut tell = |done| -> ControlFlow<()> { tell(before + done) };
                let how = self.args.splitting.limit(self.args.how());
                let name = &self.copy.job.name;
                copied = copy(read, writer, name, self.args.ntuple.options(), how, &mut tell)?;
                // A cut may keep none of the last entries.
                Ok(copied.as_ref().map(|copied| number == 1 || copied.written.entries > 0))
            })?;
            let Some(Copied { written, warnings, end, .. }) = copied else { return Err(interrupt.failure()) };
            for warning in warnings {
                if warned.insert(warning.clone()) {
                    self.console.warn(&warning);
                }
            }
            if number == 1 || written.entries > 0 {
                files.push(display_name(&place.file).to_string());
            }
            let sum = all.get_or_insert(WriteProgress { entries: 0, clusters: 0, ..written });
            if sum.clusters > 0 {
                sum.stored_bytes += written.stored_bytes;
                sum.unpacked_bytes += written.unpacked_bytes;
            }
            sum.entries += written.entries;
            sum.clusters += written.clusters;
            // Every file takes at least one entry.
            if end >= range.end || end <= next {
                return Ok(*sum);
            }
            next = end;
        }
    }

    fn is_local(&self) -> bool {
        self.to.local_path().is_some()
    }

    /// The names, with as many digits as the files need.
    fn names(&self) -> Result<Names, Failure> {
        let Splitting { split_entries, split_bytes } = &self.args.splitting;
        let by_entries = split_entries.map_or(0, |entries| self.copy.read.count().div_ceil(entries));
        if by_entries > MAX_FILES {
            let many = format_args!("{} would be written, expected at most {}", files(by_entries), count(MAX_FILES));
            return Err(Failure::usage(many).with_hint("choose a larger --split-entries"));
        }
        let mut by_bytes = 0;
        if let Some(size) = split_bytes {
            let mut stored: u64 = 0;
            for location in &self.copy.job.locations {
                stored = stored.saturating_add(self.args.reading.open_uncounted(location)?.size().unwrap_or(0));
            }
            // Another codec may need more.
            by_bytes = (stored / size.0.max(1)).saturating_mul(2);
        }
        let digits = by_entries.saturating_add(by_bytes).min(MAX_FILES).to_string().len();
        Ok(Names::of(&self.to.file, digits.max(MIN_DIGITS)))
    }

    /// Refuses files that exist before anything is written.
    fn check(&self, names: &Names) -> Result<(), Failure> {
        let Splitting { split_entries, split_bytes } = &self.args.splitting;
        let known = match (split_entries, split_bytes) {
            (Some(entries), None) => self.copy.read.count().div_ceil(*entries).clamp(1, MAX_CHECKED),
            _ => 1,
        };
        let replaces = || format!("--force -o {} replaces it", self.to);
        for number in 1..=known {
            let place = Location { file: names.name(number), object: None };
            let exists = place.local_path().is_some_and(std::path::Path::is_file);
            self.args.target.check(&place, self.inputs, self.storage, false).map_err(|refused| match exists {
                true => refused.with_hint(replaces()),
                false => refused,
            })?;
            if exists && self.args.target.changes_existing() && !self.args.operands.has_output() {
                let exists = format_args!("{place} exists, and {} is not given by -o", self.to);
                return Err(Failure::usage(exists).with_hint(replaces()));
            }
        }
        let existing = if self.is_local() { names.existing() } else { BTreeSet::new() };
        match existing.first().filter(|_| !self.args.target.changes_existing()) {
            None => Ok(()),
            Some((_, name)) => {
                let exists = Failure::usage(format_args!("{name} exists beside the files to write"));
                Err(exists.with_hint("--force replaces files of these names; remove those of an earlier copy"))
            }
        }
    }
}

fn files(number: u64) -> String {
    things(number, "file")
}

/// The names of files, for a message.
fn listed(names: &[String]) -> String {
    let number = files(names.len() as u64);
    match names {
        [first, .., last] if names.len() > MAX_NAMED => format!("{number}: {first} to {last}"),
        names => format!("{number}: {}", names.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_precede_extensions() {
        for (file, first) in [
            ("out.root", "out_0001.root"),
            ("a.b/out", "a.b/out_0001"),
            ("dir/.hidden", "dir/.hidden_0001"),
            ("run.1.root", "run.1_0001.root"),
            ("https://host/out.root?key=a.b", "https://host/out_0001.root?key=a.b"),
        ] {
            assert_eq!(Names::of(file, 4).name(1), first);
        }
        assert_eq!((Names::of("x.root", 5).name(12), Names::of("x", 5).last()), ("x_00012.root".to_owned(), 99_999));
    }

    #[test]
    fn files_are_listed() {
        let names = |count: usize| (1..=count).map(|number| format!("a{number}")).collect::<Vec<_>>();
        assert_eq!(listed(&names(1)), "1 file: a1");
        assert_eq!(listed(&names(3)), "3 files: a1, a2, a3");
        assert_eq!(listed(&names(4)), "4 files: a1 to a4");
    }
}
