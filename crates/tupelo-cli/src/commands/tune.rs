//! `tupelo tune`: the best way to store an ntuple in an object store.

use std::cmp::Ordering;
use std::ops::ControlFlow;

use serde_json::{Value, json};
use tupelo::ops::tune::{
    Candidate, DEFAULT_CLUSTER_SIZES, DEFAULT_MAPPINGS, DEFAULT_PAGE_SIZES, Link, Measured, PageSettings, Phase, Probe,
    SMALL_PAGE_SIZES, StoreModel, Trial, best, default_codecs, measure,
};
use tupelo::reader::{Location, Read};
use tupelo::storage::{display_name, is_object_uri};
use tupelo::writer::{Mapping, format_bytes};
use tupelo::{Compression, ErrorKind, cancellable};

use super::Selecting;
use super::cost::{Price, Pricing, dollars};
use crate::console::Console;
use crate::failure::Failure;
use crate::inputs::one;
use crate::interrupt::Interrupt;
use crate::parse::{Bandwidth, Bytes, Latency};
use crate::table::{Cell, Table, bytes, count, things};
use crate::text::BOLD;

/// Recommend page size, cluster size, codec and mapping for an ntuple in an object store
///
/// For a tree, the recommendation applies to the ntuple that `tupelo import` writes. A sample is encoded and decoded in
/// memory with each codec and page size. From its sizes and CPU times, and from the latency and bandwidth of the store,
/// a model computes time and money for writing all entries once and reading the selected fields --reads times, and of
/// --takes single entries.
/// Candidates within 5 % of the best count as equal; among these, the smallest is recommended, then the one with fewer
/// requests and less memory. The last line of the output is the command that applies the recommendation.
///
/// Latency and bandwidth are given with --latency and --bandwidth, measured with --measure, or typical values of the
/// store from the table of prices. Copying the existing pages unchanged is compared too, since it takes no time to
/// encode. The best new pages are always printed, for ntuples that have not been written yet.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tupelo tune events.root --store s3:eu-west-3 --reads 100 --fields 'Muon_*'
  tupelo tune events.root --latency 80ms --bandwidth 1Gbit/s --by time
  tupelo tune events.root --latency 1ms --bandwidth 1GB/s --reads 0 --takes 10000
  tupelo tune events.root --measure ntpl+file:tuned --compression lz4:4 --compression zstd:5")]
pub(crate) struct Args {
    /// Ntuple or tree, as FILE or FILE:NAME, or the URI of an ntuple in an object store
    #[arg(value_name = "FILE[:NAME]")]
    input: String,
    #[command(flatten)]
    pricing: Pricing,
    /// Number of single entries that are read once in one call, at random places, beside the --reads of all entries. Pages
    /// of 4 and 16 KiB are compared, too
    #[arg(long, value_name = "N", default_value_t = 0)]
    takes: u64,
    /// Quantity to minimise: time, money or size
    #[arg(long, value_name = "WHAT", default_value = "time")]
    by: By,
    /// Latency of a small request to the store, such as 30ms
    #[arg(long, value_name = "TIME", conflicts_with = "measure")]
    latency: Option<Latency>,
    /// Total bandwidth of concurrent requests, such as 1GB/s or 10Gbit/s
    #[arg(long, value_name = "BANDWIDTH", conflicts_with = "measure")]
    bandwidth: Option<Bandwidth>,
    /// Measure the store that will hold the ntuple, such as ntpl+s3://BUCKET/PREFIX: writes objects of 32 MiB in total
    /// beside it, reads them and removes them. A file or its URL is only read. DAOS cannot be measured
    #[arg(long, value_name = "URI")]
    measure: Option<String>,
    /// Number of cores that encode and decode [default: same as --threads]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    cores: Option<u32>,
    /// Codec and level to compare; may be repeated [default: none, lz4:4, zstd:5 and zlib:1]
    #[arg(long, value_name = "CODEC")]
    compression: Vec<Compression>,
    /// Page size to compare; may be repeated [default: 64KiB, 256KiB, 1MiB and 4MiB]
    #[arg(long, value_name = "SIZE")]
    page_bytes: Vec<Bytes>,
    /// Cluster size to compare; may be repeated [default: 32MiB, 128MiB and 512MiB]
    #[arg(long, value_name = "SIZE")]
    cluster_bytes: Vec<Bytes>,
    /// Mapping of pages to objects to compare; may be repeated [default: page, cages of 1 and 16 MiB, page-group and
    /// cluster]
    #[arg(long, value_name = "MAPPING")]
    mapping: Vec<Mapping>,
    /// Size of the sample in memory [default: 64 MiB]
    #[arg(long, value_name = "SIZE", default_value = DEFAULT_SAMPLE_TEXT, hide_default_value = true)]
    sample: Bytes,
    #[command(flatten)]
    fields: super::Fields,
    /// Print one JSON document instead of the table
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    reading: super::Reading,
}

/// The default of the engine as text for clap; a test compares the two.
const DEFAULT_SAMPLE_TEXT: &str = "64MiB";

/// The quantity to minimise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum By {
    /// Time of writing once and reading --reads times.
    Time,
    /// Price of the same, with one month of storage.
    Money,
    /// Stored bytes.
    Size,
}

/// Where latency and bandwidth come from.
struct Speed {
    store: StoreModel,
    /// `given`, `measured` or `assumed`.
    origin: &'static str,
    /// What was measured, or the source of an assumption.
    source: String,
}

/// The settings that candidates are compared for.
struct Goal<'a> {
    args: &'a Args,
    price: &'a Price,
}

impl Goal<'_> {
    fn dollars(&self, candidate: &Candidate) -> f64 {
        let taking = self.args.pricing.reading(self.price, candidate.take.requests, candidate.take.bytes);
        self.args.pricing.money(self.price, &candidate.cost).sum() + taking
    }

    /// The value by which candidates are ordered.
    fn value(&self, candidate: &Candidate) -> f64 {
        match self.args.by {
            By::Time => candidate.seconds(self.args.pricing.reads),
            By::Money => self.dollars(candidate),
            By::Size => candidate.cost.bytes as f64,
        }
    }

    fn order(&self, a: &Candidate, b: &Candidate) -> Ordering {
        self.value(a).total_cmp(&self.value(b))
    }

    fn best<'c>(&self, candidates: impl IntoIterator<Item = &'c Candidate>) -> Option<&'c Candidate> {
        let time = |candidate: &Candidate| candidate.seconds(self.args.pricing.reads);
        let size = |candidate: &Candidate| candidate.cost.bytes as f64;
        let requests = |candidate: &Candidate| candidate.requests(self.args.pricing.reads) as f64;
        let memory = |candidate: &Candidate| candidate.cluster_memory_bytes as f64;
        let first = |candidate: &Candidate| self.value(candidate);
        best(candidates, &[&first, &time, &size, &requests, &memory])
    }

    /// The best of each codec and of each mapping, and the best of the existing pages, each once.
    fn summary<'c>(&self, new: &'c [Candidate], present: Option<&'c Candidate>) -> Vec<&'c Candidate> {
        let mut lines: Vec<&Candidate> = present.into_iter().collect();
        for one in new {
            let of_codec = new.iter().filter(|other| codec(other) == codec(one));
            let of_mapping = new.iter().filter(|other| other.cost.mapping == one.cost.mapping);
            for found in self.best(of_codec).into_iter().chain(self.best(of_mapping)) {
                if !lines.iter().any(|line| std::ptr::eq(*line, found)) {
                    lines.push(found);
                }
            }
        }
        lines.sort_by(|a, b| self.order(a, b));
        lines
    }
}

pub(crate) fn run(args: &Args, console: &Console) -> Result<(), Failure> {
    let (date, price) = args.pricing.price()?;
    let location = one(&args.input, args.reading.storage()?)?;
    let table = args.reading.open(&location, None, console)?;
    let read = read(args, &table, console)?;
    let interrupt = Interrupt::watch()?;
    let speed = speed(args, &price, &interrupt)?;
    let mappings = or_default(&args.mapping, &DEFAULT_MAPPINGS);
    let clusters =
        or_default(&args.cluster_bytes.iter().map(|size| size.0).collect::<Vec<_>>(), &DEFAULT_CLUSTER_SIZES);
    let cores = args.cores.map_or_else(tupelo::threads, |cores| cores as usize);
    let measured = measured(args, &table, &read, &interrupt, console)?;
    let candidates = measured.candidates(&speed.store, cores, &clusters, &mappings);
    let present = measured.present(&speed.store, cores, &mappings)?;
    let goal = Goal { args, price: &price };
    let present_best = goal.best(&present);
    // Existing pages that are as good need not be encoded again.
    let Some(chosen) = goal.best(present_best.into_iter().chain(&candidates)) else {
        return Err(Failure::usage("no candidates to compare"));
    };
    // For ntuples that have not been written yet.
    let new = goal.best(&candidates);
    let verb = if table.is_of_trees() { "import" } else { "copy" };
    let command = command(args, verb, &location, chosen);
    if args.json {
        let one = |candidate: &Candidate| to_json(candidate, &goal);
        return console.print_json(
            "tune",
            json!({
                "file": table.file_name(),
                "name": table.path(),
                "entries": table.entries(),
                "store": args.pricing.store,
                "prices": { "source": price.source, "date": date },
                "reads": args.pricing.reads,
                "takes": args.takes,
                "by": format!("{:?}", args.by).to_lowercase(),
                "cores": cores,
                "speed": speed_json(&speed),
                "sample": {
                    "entries": measured.sample_entries(),
                    "trials": trials(&measured),
                },
                "recommendation": one(chosen),
                "new_pages": new.map(one),
                "command": command,
                "present": present.iter().map(one).collect::<Value>(),
                "candidates": candidates.iter().map(one).collect::<Value>(),
            }),
        );
    }
    let mut text = console.text();
    let lines = goal.summary(&candidates, present_best);
    compared(&lines, chosen, &goal).add_to(&mut text);
    text.end_line().add("Recommended: ").add(sentence(chosen)).end_line();
    if let Some(new) = new.filter(|new| !std::ptr::eq(*new, chosen)) {
        text.add("Best of the new pages: ").add(sentence(new)).end_line();
    }
    text.add(&command).end_line();
    console.print(&text)?;
    notes(table.entries(), &measured, &speed, &goal, (cores, &date), console);
    if let Some(present) = present_best.filter(|present| !std::ptr::eq(*present, chosen)) {
        let (old, new) = (goal.value(present), goal.value(chosen));
        let what = match args.by {
            By::Time => "time",
            By::Money => "money",
            By::Size => "size",
        };
        console.note(&format!("{what} of the existing pages: {:.2} times as much", old / new.max(f64::MIN_POSITIVE)));
    }
    Ok(())
}

/// The read; for a tree, without the branches that cannot be decoded.
fn read(args: &Args, table: &tupelo::Table, console: &Console) -> Result<Read, Failure> {
    if !table.is_of_trees() {
        return args.fields.read(table, None);
    }
    let selecting = Selecting { entries: 0..table.entries(), with_counters: true, ..Selecting::default() };
    let chosen = args.fields.select(table, None, &selecting)?;
    chosen.tell(table, console);
    Ok(chosen.read)
}

fn or_default<T: Copy>(given: &[T], default: &[T]) -> Vec<T> {
    if given.is_empty() { default.to_vec() } else { given.to_vec() }
}

/// Latency and bandwidth: given, measured or assumed.
fn speed(args: &Args, price: &Price, interrupt: &Interrupt) -> Result<Speed, Failure> {
    if let Some(uri) = &args.measure {
        let watched = interrupt.clone();
        let probe = Probe::new(uri, args.reading.storage()?)?;
        let measured = cancellable(move || watched.is_set(), || probe.measure());
        // Outside the cancelled scope, so that the objects are removed after a signal too.
        let removed = probe.remove();
        let store = measured.map_err(|error| cancelled(error, interrupt))?;
        removed?;
        return Ok(Speed { store, origin: "measured", source: display_name(uri) });
    }
    let typical = price.typical.as_ref();
    let latency = args.latency.map(|latency| latency.0).or(typical.map(|typical| typical.latency_ms / 1e3));
    let bandwidth = args.bandwidth.map(|bandwidth| bandwidth.0).or(typical.map(|typical| typical.mb_per_s * 1e6));
    let (Some(latency_seconds), Some(bytes_per_second)) = (latency, bandwidth) else {
        let unknown =
            Failure::usage(format_args!("the table of prices lacks a typical speed for '{}'", args.pricing.store));
        return Err(unknown.with_hint("use --latency TIME and --bandwidth BANDWIDTH, or --measure URI"));
    };
    let is_given = args.latency.is_some() && args.bandwidth.is_some();
    let (origin, source) = match typical {
        Some(typical) if !is_given => ("assumed", typical.source.clone()),
        _ => ("given", String::new()),
    };
    let store = StoreModel::remote(Link { latency_seconds, bytes_per_second });
    Ok(Speed { store, origin, source })
}

/// Runs the measurements with a progress bar.
fn measured(
    args: &Args,
    table: &tupelo::Table,
    read: &Read,
    interrupt: &Interrupt,
    console: &Console,
) -> Result<Measured, Failure> {
    let compressions = if args.compression.is_empty() { default_codecs()? } else { args.compression.clone() };
    let default = match args.takes {
        0 => DEFAULT_PAGE_SIZES.to_vec(),
        _ => [&SMALL_PAGE_SIZES[..], &DEFAULT_PAGE_SIZES].concat(),
    };
    let pages = or_default(&args.page_bytes.iter().map(|size| size.0).collect::<Vec<_>>(), &default);
    let mut bar = console.progress("measuring", (compressions.len() * pages.len()) as u64, "trials");
    let mut progress = |done: usize| {
        bar.set(done as u64);
        if interrupt.is_set() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let watched = interrupt.clone();
    let work = || measure(table, read, &compressions, &pages, args.sample.0, &mut progress);
    let measured = cancellable(move || watched.is_set(), work).map_err(|error| cancelled(error, interrupt));
    bar.finish();
    Ok(measured?.ok_or_else(|| interrupt.failure())?.with_takes(args.takes))
}

/// Work that a signal ended fails with the exit status of the signal.
fn cancelled(error: tupelo::Error, interrupt: &Interrupt) -> Failure {
    if error.kind() == ErrorKind::Cancelled { interrupt.failure() } else { error.into() }
}

/// The codec of a candidate; `as it is` for the existing pages.
fn codec(candidate: &Candidate) -> String {
    candidate.layout.map_or_else(|| "as it is".to_owned(), |layout| layout.compression.to_string())
}

fn compared(lines: &[&Candidate], chosen: &Candidate, goal: &Goal<'_>) -> Table {
    let heads = [
        "CODEC",
        ">PAGES",
        ">CLUSTERS",
        "MAPPING",
        ">SIZE",
        ">WRITE",
        ">READ",
        ">READ REQUESTS",
        ">TAKE",
        ">SUM TIME",
        ">SUM $",
    ];
    let mut table = Table::new(&heads);
    for candidate in lines {
        let size = |of: fn(&PageSettings) -> u64| {
            candidate.layout.as_ref().map_or_else(|| "-".to_owned(), |layout| format_bytes(of(layout)))
        };
        let cells = [
            codec(candidate),
            size(|layout| layout.page_bytes),
            size(|layout| layout.cluster_bytes),
            candidate.cost.mapping.to_string(),
            bytes(candidate.cost.bytes),
            time(candidate.write.seconds()),
            time(candidate.read.seconds()),
            count(candidate.cost.read_requests),
            candidate.take.phase.map_or_else(|| "-".to_owned(), |phase| time(phase.seconds())),
            time(candidate.seconds(goal.args.pricing.reads)),
            dollars(goal.dollars(candidate)),
        ];
        let is_chosen = std::ptr::eq(*candidate, chosen);
        table.line(cells.map(|cell| if is_chosen { Cell::styled(BOLD, &cell) } else { Cell::from(cell) }));
    }
    table
}

/// The recommendation in words.
fn sentence(chosen: &Candidate) -> String {
    let (mapping, clusters) = (chosen.cost.mapping, things(chosen.clusters, "cluster"));
    let layout = match chosen.layout {
        Some(layout) => format!(
            "{}, pages of {}, clusters of {}, mapping {mapping}",
            layout.compression,
            format_bytes(layout.page_bytes),
            format_bytes(layout.cluster_bytes)
        ),
        None => format!("the existing pages, mapping {mapping}"),
    };
    let limits = (chosen.write.limit(), chosen.read.limit());
    format!("{layout}; {clusters}; writing is limited by {}, reading by {}.", limits.0, limits.1)
}

/// What was measured and assumed.
fn notes(
    entries: u64,
    measured: &Measured,
    speed: &Speed,
    goal: &Goal<'_>,
    (cores, date): (usize, &str),
    console: &Console,
) {
    let Goal { args, price } = goal;
    console.note(&format!(
        "sample: {} of {}, {} before compression; times are for {}",
        count(measured.sample_entries()),
        things(entries, "entry"),
        bytes(measured.trials().first().map_or(0, Trial::unpacked_bytes)),
        things(cores as u64, "core")
    ));
    let StoreModel { get, put, .. } = speed.store;
    let link = |link: Link| format!("{}, {}/s", time(link.latency_seconds), bytes(link.bytes_per_second as u64));
    let links = if get == put { link(get) } else { format!("read {}; write {}", link(get), link(put)) };
    console.note(&match (speed.origin, speed.source.as_str()) {
        ("assumed", source) => format!("{}: {links}; assumed, from {source}", args.pricing.store),
        ("measured", source) => format!("{source}: {links}; measured"),
        (origin, _) => format!("{}: {links}; {origin}", args.pricing.store),
    });
    let reads =
        if args.pricing.reads == 1 { "one read".to_owned() } else { format!("{} reads", count(args.pricing.reads)) };
    console.note(&format!("{}, {reads}, one month; prices of {date}, {}", args.pricing.store, price.source));
}

/// The command that applies a recommendation.
fn command(args: &Args, verb: &str, location: &Location, chosen: &Candidate) -> String {
    let place = match (&args.measure, args.pricing.store.split(':').next()) {
        (Some(uri), _) if is_object_uri(uri) => display_name(uri),
        (_, Some(scheme @ ("gs" | "s3"))) => format!("ntpl+{scheme}://BUCKET/PREFIX"),
        (_, Some("az")) => "ntpl+az://CONTAINER/PREFIX".to_owned(),
        _ => "URI".to_owned(),
    };
    let mut command = format!("tupelo {verb} {} {}", quoted(&location.to_string()), quoted(&place));
    if let Some(layout) = chosen.layout {
        let (pages, clusters) = (format_bytes(layout.page_bytes), format_bytes(layout.cluster_bytes));
        command += &format!(" --compression {} --page-bytes {pages} --cluster-bytes {clusters}", layout.compression);
    }
    command + &format!(" --mapping {}", chosen.cost.mapping)
}

/// A word for a shell.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_./:+=,@%-".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// A time with three digits: `1.20 ms`, `45.1 s`, `2.50 h`.
fn time(seconds: f64) -> String {
    let (value, unit) = match seconds {
        _ if seconds < 0.000_999_5 => (seconds * 1e6, "µs"),
        _ if seconds < 0.999_5 => (seconds * 1e3, "ms"),
        _ if seconds < 119.95 => (seconds, "s"),
        _ if seconds < 7197.0 => (seconds / 60.0, "min"),
        _ => (seconds / 3600.0, "h"),
    };
    let digits = match value {
        _ if value >= 99.95 => 0,
        _ if value >= 9.995 => 1,
        _ => 2,
    };
    format!("{value:.digits$} {unit}")
}

fn phase_json(phase: &Phase) -> Value {
    json!({
        "seconds": phase.seconds(),
        "limit": phase.limit(),
        "cpu_seconds": phase.cpu_seconds,
        "transfer_seconds": phase.transfer_seconds,
        "wait_seconds": phase.wait_seconds,
        "round_trip_seconds": phase.round_trip_seconds,
    })
}

fn speed_json(speed: &Speed) -> Value {
    let link =
        |link: Link| json!({ "latency_seconds": link.latency_seconds, "bytes_per_second": link.bytes_per_second });
    json!({
        "origin": speed.origin,
        "source": speed.source,
        "read": link(speed.store.get),
        "write": link(speed.store.put),
        "concurrent_requests": speed.store.hints.concurrency,
        "max_request_bytes": speed.store.hints.max_request_bytes,
        "gap_bytes": speed.store.hints.gap_bytes,
    })
}

fn trials(measured: &Measured) -> Value {
    let one = |trial: &Trial| {
        json!({
            "compression": trial.compression().to_string(),
            "page_bytes": trial.page_bytes(),
            "unpacked_bytes": trial.unpacked_bytes(),
            "stored_bytes": trial.stored_bytes(),
            "write_cpu_seconds": trial.write_seconds(),
            "read_cpu_seconds": trial.read_seconds(),
        })
    };
    measured.trials().iter().map(one).collect()
}

fn to_json(candidate: &Candidate, goal: &Goal<'_>) -> Value {
    let pricing = &goal.args.pricing;
    let money = pricing.money(goal.price, &candidate.cost);
    let taking = pricing.reading(goal.price, candidate.take.requests, candidate.take.bytes);
    let layout = candidate.layout;
    json!({
        "compression": layout.map(|layout| layout.compression.to_string()),
        "page_bytes": layout.map(|layout| layout.page_bytes),
        "cluster_bytes": layout.map(|layout| layout.cluster_bytes),
        "mapping": candidate.cost.mapping.to_string(),
        "clusters": candidate.clusters,
        "cluster_memory_bytes": candidate.cluster_memory_bytes,
        "objects": candidate.cost.objects,
        "bytes": candidate.cost.bytes,
        "write_requests": candidate.cost.write_requests,
        "read_requests": candidate.cost.read_requests,
        "read_bytes": candidate.cost.read_bytes,
        "write": phase_json(&candidate.write),
        "read": phase_json(&candidate.read),
        "take_requests": candidate.take.requests,
        "take_bytes": candidate.take.bytes,
        "take": candidate.take.phase.as_ref().map(phase_json),
        "sum_seconds": candidate.seconds(goal.args.pricing.reads),
        "write_dollars": money.write,
        "reads_dollars": money.reads,
        "month_dollars": money.month,
        "take_dollars": taking,
        "sum_dollars": money.sum() + taking,
    })
}

#[cfg(test)]
mod tests {
    use tupelo::ops::tune::{DEFAULT_CODECS, DEFAULT_SAMPLE_BYTES};

    use super::*;

    #[test]
    fn defaults_match_the_engine() {
        // The help has these texts.
        assert_eq!(DEFAULT_SAMPLE_TEXT.parse(), Ok(Bytes(DEFAULT_SAMPLE_BYTES)));
        assert_eq!(DEFAULT_CODECS, ["none", "lz4:4", "zstd:5", "zlib:1"]);
        assert_eq!(DEFAULT_PAGE_SIZES.map(format_bytes), ["64KiB", "256KiB", "1MiB", "4MiB"]);
        assert_eq!(DEFAULT_CLUSTER_SIZES.map(format_bytes), ["32MiB", "128MiB", "512MiB"]);
        let mappings = DEFAULT_MAPPINGS.map(|mapping| mapping.to_string());
        assert_eq!(mappings, ["page", "cage:1MiB", "cage:16MiB", "page-group", "cluster"]);
    }

    #[test]
    fn words_are_quoted_for_shells() {
        assert_eq!(quoted("a/b.root:Events"), "a/b.root:Events");
        assert_eq!(quoted("two words"), "'two words'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted("$(x)"), "'$(x)'");
        assert_eq!(quoted(""), "''");
    }

    #[test]
    fn times_have_units() {
        let times = [0.0, 12.3e-6, 0.0301, 0.9999, 9.999, 100.0, 600.0, 7200.0, 1e6];
        let expected = ["0.00 µs", "12.3 µs", "30.1 ms", "1.00 s", "10.0 s", "100 s", "10.0 min", "2.00 h", "278 h"];
        assert_eq!(times.map(time), expected);
    }
}
