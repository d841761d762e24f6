//! Output of the command: data to stdout, messages and progress to stderr.

mod output;

use std::collections::HashSet;
use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anstream::stream::RawStream;
use anstream::{AutoStream, ColorChoice};
use anstyle::Style;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::{Value, json};

use tupelo::reader::{Deviation, Skipped};
use tupelo::storage::adapter::Meter;
use tupelo::storage::is_mirror;
use tupelo::{Table, printable};

pub(crate) use self::output::{Output, Pending, pipe_is_closed};
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::table::things;
use crate::text::{CYAN, RED, Text, YELLOW};

/// Version of the keys of all JSON documents: changed when one of them changes its meaning or goes.
const JSON_VERSION: u64 = 1;

/// How many fields that are left out of an ntuple or tree get separate warnings; the others share one.
const MAX_SKIPPED: usize = 10;

/// Time after which a progress bar appears.
const PROGRESS_DELAY: Duration = Duration::from_secs(1);

/// Width of a terminal that does not report one.
const DEFAULT_WIDTH: usize = 80;

/// When to use colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub(crate) enum Color {
    /// On terminals, following NO_COLOR, CLICOLOR and CLICOLOR_FORCE.
    #[default]
    Auto,
    /// Also in pipes and files.
    Always,
    /// Never.
    Never,
}

impl Color {
    fn applies_to(self, stream: &impl RawStream) -> bool {
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::Auto => AutoStream::choice(stream) != ColorChoice::Never,
        }
    }
}

/// Gives the read statistics of a file, which need not be open any more.
type Statistics = Box<dyn Fn() -> Option<tupelo::Metrics> + Send>;

/// The files and ntuples that the console reports on at the end.
#[derive(Clone)]
pub(crate) struct Watch {
    /// Files whose read statistics are printed; `None` without `--metrics`.
    files: Option<Arc<Mutex<Vec<Statistics>>>>,
    /// Ntuples in mirrors, and how many of their warnings were printed.
    mirrored: Arc<Mutex<Vec<(Table, usize)>>>,
}

impl Watch {
    /// Collects the read statistics of a file, if they are printed.
    pub(crate) fn file(&self, file: tupelo::File) -> tupelo::File {
        let Some(files) = &self.files else { return file };
        let file = file.with_metrics();
        files.lock().unwrap_or_else(PoisonError::into_inner).push(Box::new(file.metrics_later()));
        file
    }

    /// Prints at the end which stores of a mirror were passed over while its ntuple was read.
    pub(crate) fn follow(&self, table: &Table) {
        if is_mirror(&table.file_name()) {
            let printed = table.warnings().len();
            self.mirrored.lock().unwrap_or_else(PoisonError::into_inner).push((table.clone(), printed));
        }
    }
}

/// Output options of the command.
pub(crate) struct Console {
    quiet: bool,
    watch: Watch,
    documents: AtomicU64,
    /// Deviations of files that were printed, with the names of the files.
    deviations: Mutex<HashSet<(String, Deviation)>>,
    color_out: bool,
    color_err: bool,
}

impl Console {
    pub(crate) fn new(quiet: bool, color: Color, metrics: bool) -> Self {
        let (color_out, color_err) = (color.applies_to(&io::stdout()), color.applies_to(&io::stderr()));
        Self {
            quiet,
            watch: Watch { files: metrics.then(Arc::default), mirrored: Arc::default() },
            deviations: Mutex::default(),
            documents: AtomicU64::new(0),
            color_out,
            color_err,
        }
    }

    /// Whether to print only errors.
    pub(crate) fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// Whether to collect read statistics.
    pub(crate) fn has_metrics(&self) -> bool {
        self.watch.files.is_some()
    }

    /// What follows the files that are opened.
    pub(crate) fn watch(&self) -> &Watch {
        &self.watch
    }

    /// Prints the read statistics of all files together with `--metrics`.
    pub(crate) fn print_metrics(&self) {
        let Some(files) = &self.watch.files else { return };
        let files: Vec<Statistics> = std::mem::take(&mut *files.lock().unwrap_or_else(PoisonError::into_inner));
        let total = files.iter().filter_map(|metrics| metrics()).reduce(|mut total, metrics| {
            total += metrics;
            total
        });
        if let Some(metrics) = total {
            self.write_error(&metrics.to_string());
        }
    }

    /// Prints the read statistics of a source with `--metrics`.
    pub(crate) fn print_reads(&self, meter: &Meter) {
        if self.has_metrics() {
            let time = meter.time();
            let (wall, cpu) = (time.wall.as_secs_f64() * 1e3, time.cpu.as_secs_f64() * 1e3);
            let (requests, bytes) = (meter.requests(), meter.bytes() as f64 / f64::from(1 << 20));
            self.write_error(&format!(
                "read         {wall:10.3} ms wall, {cpu:.3} ms CPU\n\
                 requests     {requests:10}\n\
                 bytes read   {bytes:10.3} MiB\n"
            ));
        }
    }

    /// Whether stdout has colours.
    pub(crate) fn has_color(&self) -> bool {
        self.color_out
    }

    /// An empty text for stdout.
    pub(crate) fn text(&self) -> Text {
        Text::new(self.color_out)
    }

    /// Prints text.
    pub(crate) fn print(&self, text: &Text) -> Result<(), Failure> {
        self.print_data(&text.to_ansi())
    }

    /// Prints one JSON document: which one it is, the version of its keys, and these.
    pub(crate) fn print_json(&self, document: &str, mut value: Value) -> Result<(), Failure> {
        value["document"] = document.into();
        value["version"] = JSON_VERSION.into();
        self.documents.fetch_add(1, Ordering::Relaxed);
        self.print_data(&format!("{value:#}\n"))
    }

    /// How many JSON documents were printed.
    pub(crate) fn documents(&self) -> u64 {
        self.documents.load(Ordering::Relaxed)
    }

    /// Prints data without escaping.
    pub(crate) fn print_data(&self, data: &str) -> Result<(), Failure> {
        let mut out = Output::stdout();
        out.write_all(data.as_bytes())?;
        Ok(out.flush()?)
    }

    /// Prints a warning.
    pub(crate) fn warn(&self, text: &str) {
        if !self.quiet {
            self.message("warning", YELLOW, text);
        }
    }

    /// Prints which rules of the format a file breaks, each once.
    pub(crate) fn warn_of_deviations(&self, file: &str, deviations: Vec<Deviation>) {
        for deviation in deviations {
            let text = format!("{file}: {deviation}");
            let mut printed = self.deviations.lock().unwrap_or_else(PoisonError::into_inner);
            if printed.insert((file.to_owned(), deviation)) {
                self.warn(&text);
            }
        }
    }

    /// Prints the warnings of an ntuple or tree and of the file around it, and follows it.
    pub(crate) fn warn_of(&self, table: &Table) {
        self.warn_of_deviations(&table.file_name(), table.deviations());
        self.print_warnings(table, 0);
        self.watch.follow(table);
    }

    /// Prints what is left out of an ntuple or tree that is read, and its other warnings, and follows it.
    pub(crate) fn warn_of_read(&self, table: &Table, skipped: &[Skipped]) {
        self.warn_of_deviations(&table.file_name(), table.deviations());
        let kind = if table.is_of_trees() { "tree" } else { "ntuple" };
        let place = format!("{}: {kind} '{}'", table.file_name(), table.path());
        for Skipped { name, reason, .. } in skipped.iter().take(MAX_SKIPPED) {
            let (name, quoted) = (name.escape_debug(), name.replace('/', "."));
            self.warn(&format!(
                "{place}: '{name}' is left out: {reason} (--exclude '{quoted}' leaves it out without a warning)"
            ));
        }
        let more: Vec<String> =
            skipped.iter().skip(MAX_SKIPPED).map(|skipped| format!("'{}'", skipped.name.escape_debug())).collect();
        if !more.is_empty() {
            self.warn(&format!("{place}: also left out for such reasons: {}", more.join(", ")));
        }
        self.print_warnings(table, table.unreadable::<&str>(&[], &[]).len());
        self.watch.follow(table);
    }

    /// Prints the warnings that came while ntuples were read.
    pub(crate) fn print_late_warnings(&self) {
        for (table, printed) in self.watch.mirrored.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            self.print_warnings(&table, printed);
        }
    }

    fn print_warnings(&self, table: &Table, printed: usize) {
        let kind = if table.is_of_trees() { "tree" } else { "ntuple" };
        for warning in table.warnings().iter().skip(printed) {
            self.warn(&format!("{}: {kind} '{}': {warning}", table.file_name(), table.path()));
        }
    }

    /// Prints a summary.
    pub(crate) fn note(&self, text: &str) {
        if !self.quiet {
            self.line(text);
        }
    }

    /// Runs a command for each of several files. After an error it continues with the next file, unless it was interrupted.
    /// If the command prints a JSON document for each file, the document of a failed file contains the error.
    pub(crate) fn for_each<L: fmt::Display>(
        &self,
        locations: &[L],
        document: Option<&str>,
        mut run: impl FnMut(&L) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let mut run = |location: &L| {
            let before = self.documents();
            let done = run(location);
            if let (Err(failure), Some(document)) = (&done, document)
                && self.documents() == before
                && !pipe_is_closed()
            {
                self.print_json(document, json!({ "file": location.to_string(), "error": failure.message }))?;
            }
            done
        };
        let [_, _, ..] = locations else {
            return locations.iter().try_for_each(run);
        };
        let (mut failed, mut status) = (0, 0);
        for location in locations {
            if let Err(failure) = run(location) {
                if pipe_is_closed() || failure.is_interrupt() {
                    return Err(failure);
                }
                self.fail(&failure);
                status = status.max(failure.status);
                failed += 1;
            }
        }
        match failed {
            0 => Ok(()),
            _ => Err(Failure {
                status,
                ..Failure::new(format_args!("{failed} of {} failed", things(locations.len() as u64, "file")))
            }),
        }
    }

    /// Prints an error with its hint.
    pub(crate) fn fail(&self, failure: &Failure) {
        if let Some(message) = &failure.message {
            self.message("error", RED, message);
        }
        if let Some(hint) = &failure.hint {
            self.message("hint", CYAN, hint);
        }
    }

    fn message(&self, what: &str, style: Style, text: &str) {
        let mut line = Text::new(self.color_err);
        line.add("tupelo: ").styled(style, format!("{what}:")).add(" ").add(text).end_line();
        self.write_error(&line.to_ansi());
    }

    fn line(&self, text: &str) {
        let mut line = Text::new(self.color_err);
        line.add(text).end_line();
        self.write_error(&line.to_ansi());
    }

    /// Names and messages are escaped, so each message is one line.
    fn write_error(&self, text: &str) {
        // If stderr is closed or full, that cannot be reported. `eprint!` would panic.
        drop(io::stderr().write_all(text.as_bytes()));
    }

    /// A progress bar for `total` units of work; the unit `B` means bytes.
    pub(crate) fn progress(&self, what: &str, total: impl Into<Option<u64>>, unit: &'static str) -> Progress {
        let (shown, total) = (!self.quiet && io::stderr().is_terminal(), total.into());
        Progress { started: Instant::now(), what: printable(what).into_owned(), total, done: 0, unit, shown, bar: None }
    }
}

/// Progress of a long operation.
#[derive(Debug)]
pub(crate) struct Progress {
    started: Instant,
    what: String,
    /// `None` if it is not known.
    total: Option<u64>,
    done: u64,
    unit: &'static str,
    shown: bool,
    bar: Option<ProgressBar>,
}

impl Progress {
    /// Sets the number of units that are done.
    pub(crate) fn set(&mut self, done: u64) {
        self.done = done;
        if !self.shown || (self.bar.is_none() && self.started.elapsed() < PROGRESS_DELAY) {
            return;
        }
        self.bar
            .get_or_insert_with(|| bar(&self.what, self.total, self.unit))
            .set_position(self.total.map_or(done, |total| done.min(total)));
    }

    /// What a running operation calls with the units that are done; a signal ends it.
    pub(crate) fn until<'p>(&'p mut self, interrupt: &'p Interrupt) -> impl FnMut(u64) -> ControlFlow<()> + 'p {
        |done| {
            self.set(done);
            if interrupt.is_set() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        }
    }

    /// Time since the start.
    pub(crate) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Removes the bar.
    pub(crate) fn finish(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.finish();
    }
}

fn bar(what: &str, total: Option<u64>, unit: &str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::stderr());
    let template = match (unit, total) {
        ("B", None) => "{msg} {bytes} {bytes_per_sec}".to_owned(),
        (unit, None) => format!("{{msg}} {{human_pos}} {unit}"),
        ("B", Some(_)) => "{msg} {bar:32} {bytes}/{total_bytes} {bytes_per_sec} {eta}".to_owned(),
        (unit, Some(_)) => format!("{{msg}} {{bar:32}} {{human_pos}}/{{human_len}} {unit} {{eta}}"),
    };
    if let Ok(style) = ProgressStyle::with_template(&template) {
        bar.set_style(style);
    }
    bar.with_message(what.to_owned())
}

/// Width of the terminal in characters; `None` if stdout is not a terminal.
pub(crate) fn terminal_width() -> Option<usize> {
    let stdout = io::stdout();
    if !stdout.is_terminal() {
        return None;
    }
    Some(terminal_size::terminal_size_of(&stdout).map_or(DEFAULT_WIDTH, |(width, _)| usize::from(width.0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::FAILED;

    #[test]
    fn an_error_leaves_the_other_files_but_an_interrupt_ends_the_command() {
        let console = Console::new(true, Color::Never, false);
        // The status of each run, those that ran, and the status of all.
        for (statuses, ran, expected) in [([0, 1, 0], 3, 1), ([1, 2, 0], 3, 2), ([1, 130, 0], 2, 130)] {
            let (mut runs, mut left) = (0, statuses.into_iter());
            let done = console.for_each(&["a", "b", "c"], None, |_| {
                runs += 1;
                match left.next().unwrap_or(FAILED) {
                    0 => Ok(()),
                    status => Err(Failure { status, ..Failure::reported() }),
                }
            });
            assert_eq!((runs, done.unwrap_err().status), (ran, expected), "{statuses:?}");
        }
    }
}
