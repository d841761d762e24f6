//! `tupelo tune`: the best way to store entries, as objects or in files.

mod apply;
pub(super) mod cost;
mod document;
mod report;

use std::cmp::Ordering;
use std::ops::ControlFlow;

use tupelo::ops::cost::Container;
use tupelo::ops::tune::{
    Candidate, DEFAULT_MAPPINGS, Link, Measured, Probe, StoreModel, TuneOptions, Usage, best, measure,
};
use tupelo::reader::Read;
use tupelo::storage::{display_name, is_object_uri};
use tupelo::writer::Mapping;
use tupelo::{Compression, ErrorKind, Table, cancellable};

use self::cost::{DEFAULT_STORE, Price, Pricing, is_disk};
use super::Selecting;
use crate::console::Console;
use crate::failure::Failure;
use crate::inputs::one;
use crate::interrupt::Interrupt;
use crate::parse::{Bandwidth, Bytes, Latency};
use crate::table::things;

/// Recommend codec and level, sizes of pages or baskets and of clusters, and how to store entries
///
/// Compares ntuples in object stores (`--into objects`), ntuples in ROOT files (`--into file`) and trees in ROOT files
/// (`--into tree`). A sample is written and read in memory with each codec and size of pages or baskets. From its sizes and
/// CPU times, and from the latency and bandwidth of the store or disk, a model computes time, CPU time and money for writing
/// all entries --writes times, reading the selected fields --reads times, and reading --takes single entries. Candidates
/// within 5 % of the best count as equal; among these, the fastest is recommended, then the smallest, then the one with fewer
/// requests and less memory. The last line of the output is the command that applies the recommendation.
///
/// Latency and bandwidth are given with --latency and --bandwidth, measured with --measure, or typical values of the
/// store or disk from the table of prices. Copying the existing pages or baskets unchanged is compared too, since it takes no
/// time to encode, unless entries are written more than once. The best new ones are always printed, for data that have not been
/// written yet.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tupelo tune events.root --use read-often --fields 'Muon_*'
  tupelo tune events.root --into file --into tree --store disk:hdd --use write-often
  tupelo tune tree.root --into tree --auto-flush 100 --auto-flush 1000 --compression zstd:5 --compression lzma:1 --by size
  tupelo tune events.root --store s3:eu-west-3 --by money --core-hour 0.04 --months 12
  tupelo tune events.root --store s3:eu-west-3 --reads 100 --fields 'Muon_*'
  tupelo tune events.root --latency 1ms --bandwidth 1GB/s --reads 0 --takes 10000
  tupelo tune events.root --measure ntpl+file:tuned --compression lz4:4 --compression zstd:5")]
pub(crate) struct Args {
    /// Ntuple or tree, as FILE or FILE:NAME, or the URI of an ntuple in an object store
    #[arg(value_name = "FILE[:NAME]")]
    input: String,
    /// How entries are stored: as objects, in an ntuple in a file, or in a tree in a file; may be repeated to compare these
    /// [default: objects if --store, --measure or --mapping means an object store, otherwise file, and for a tree file and tree]
    #[arg(long, value_name = "CONTAINER")]
    into: Vec<Kind>,
    /// Store and region, or kind of disk (disk:nvme, disk:ssd, disk:hdd, disk:remote), by their names in the table of prices
    /// [default: disk:ssd, and s3:eu-west-3 for objects]
    #[arg(long, value_name = "STORE")]
    store: Option<String>,
    #[command(flatten)]
    pricing: Pricing,
    /// How often entries are read and written: read-often (100 reads of what is written once), read-once (1 read), write-often
    /// (100 writes for 1 read)
    #[arg(long = "use", value_name = "USE", conflicts_with_all = ["reads", "writes"])]
    usage: Option<Use>,
    /// Number of times that the fields of all entries are read [default: 1]
    #[arg(long, value_name = "N")]
    reads: Option<u64>,
    /// Number of times that all entries are written [default: 1]
    #[arg(long, value_name = "N")]
    writes: Option<u64>,
    /// Number of single entries that are read once in one call, at random places, beside the --reads of all entries. Pages
    /// and baskets of 4 and 16 KiB are compared, too
    #[arg(long, value_name = "N", default_value_t = 0)]
    takes: u64,
    /// Quantity to minimise: time, cpu, money or size
    #[arg(long, value_name = "WHAT", default_value = "time")]
    by: By,
    /// Price of a core for an hour, in dollars, which makes CPU time a part of the money
    #[arg(long, value_name = "DOLLARS", default_value = "0", value_parser = amount)]
    core_hour: f64,
    /// Number of months for which the entries are stored
    #[arg(long, value_name = "N", default_value = "1", value_parser = amount)]
    months: f64,
    /// Latency of a small request to the store, such as 30ms
    #[arg(long, value_name = "TIME", conflicts_with = "measure")]
    latency: Option<Latency>,
    /// Total bandwidth of concurrent requests, such as 1GB/s or 10Gbit/s
    #[arg(long, value_name = "BANDWIDTH", conflicts_with = "measure")]
    bandwidth: Option<Bandwidth>,
    /// Measure the store that will hold the entries, such as ntpl+s3://BUCKET/PREFIX: writes objects of 32 MiB in total
    /// beside it, reads them and removes them. A file or its URL is only read. DAOS cannot be measured
    #[arg(long, value_name = "URI")]
    measure: Option<String>,
    /// Number of cores that encode and decode [default: same as --threads]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    cores: Option<u32>,
    /// Codec and level to compare; may be repeated [default: none, lz4:4, zstd:5 and zlib:1, and for files zstd:1]
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
    /// Basket size of trees to compare; may be repeated [default: 32000 and 1MiB]
    #[arg(long, value_name = "SIZE")]
    basket_bytes: Vec<Bytes>,
    /// Size of clusters of trees to compare: N entries, -N compressed bytes, or 0 for a single cluster; may be repeated
    /// [default: -30000000 and -100000000]
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    auto_flush: Vec<i64>,
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
/// The store of a file, unless another is given.
const DEFAULT_DISK: &str = "disk:ssd";

/// The quantity to minimise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum By {
    /// Time of --writes and --reads.
    Time,
    /// CPU time of the same, of all cores together.
    Cpu,
    /// Price of the same: requests, storage, and CPU time if --core-hour is given.
    Money,
    /// Stored bytes.
    Size,
}

/// A kind of container.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Kind {
    /// An ntuple as objects.
    Objects,
    /// An ntuple in a ROOT file.
    File,
    /// A tree in a ROOT file.
    Tree,
}

impl Kind {
    fn of(container: Container) -> Self {
        match container {
            Container::Objects(_) => Self::Objects,
            Container::File => Self::File,
            Container::Tree => Self::Tree,
        }
    }

    /// Its name in options.
    fn name(self) -> &'static str {
        match self {
            Self::Objects => "objects",
            Self::File => "file",
            Self::Tree => "tree",
        }
    }
}

/// What data are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Use {
    /// Written once, read 100 times.
    ReadOften,
    /// Written once, read once.
    ReadOnce,
    /// Written 100 times for each read.
    WriteOften,
}

fn amount(text: &str) -> Result<f64, String> {
    let amount = text.parse().ok().filter(|amount: &f64| amount.is_finite() && *amount >= 0.0);
    amount.ok_or_else(|| "expected a number that is not negative, such as 0.04".to_owned())
}

impl Args {
    fn usage(&self) -> Usage {
        match self.usage {
            Some(Use::ReadOften) => Usage::READ_OFTEN,
            Some(Use::ReadOnce) => Usage::READ_ONCE,
            Some(Use::WriteOften) => Usage::WRITE_OFTEN,
            None => Usage { writes: self.writes.unwrap_or(1), reads: self.reads.unwrap_or(1) },
        }
    }

    /// The kinds of containers to compare.
    fn kinds(&self, is_tree: bool) -> Result<Vec<Kind>, Failure> {
        let is_object_store = match &self.measure {
            Some(uri) => is_object_uri(uri),
            None => self.store.as_ref().is_some_and(|store| !is_disk(store)),
        };
        let kinds = match is_tree {
            _ if !self.into.is_empty() => self.into.clone(),
            _ if is_object_store || !self.mapping.is_empty() => vec![Kind::Objects],
            true => vec![Kind::File, Kind::Tree],
            false => vec![Kind::File],
        };
        let of_ntuples = [Kind::Objects, Kind::File];
        for (option, is_given, fitting) in [
            ("--mapping", !self.mapping.is_empty(), &of_ntuples[..1]),
            ("--page-bytes", !self.page_bytes.is_empty(), &of_ntuples),
            ("--cluster-bytes", !self.cluster_bytes.is_empty(), &of_ntuples),
            ("--basket-bytes", !self.basket_bytes.is_empty(), &[Kind::Tree]),
            ("--auto-flush", !self.auto_flush.is_empty(), &[Kind::Tree]),
        ] {
            if is_given && !fitting.iter().any(|kind| kinds.contains(kind)) {
                let compared: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
                let what = format_args!("{option} does not apply to what is compared: {}", compared.join(", "));
                let needed: Vec<String> = fitting.iter().map(|kind| format!("--into {}", kind.name())).collect();
                return Err(Failure::usage(what).with_hint(format!("add {}", needed.join(" or "))));
            }
        }
        Ok(kinds)
    }

    /// What is measured.
    fn options(&self, kinds: &[Kind]) -> TuneOptions {
        let mappings = if self.mapping.is_empty() { &DEFAULT_MAPPINGS[..] } else { &self.mapping };
        let mut containers = Vec::new();
        for kind in [Kind::Objects, Kind::File, Kind::Tree].into_iter().filter(|kind| kinds.contains(kind)) {
            match kind {
                Kind::Objects => containers.extend(mappings.iter().copied().map(Container::Objects)),
                Kind::File => containers.push(Container::File),
                Kind::Tree => containers.push(Container::Tree),
            }
        }
        let sizes = |given: &[Bytes]| given.iter().map(|size| size.0).collect::<Vec<_>>();
        TuneOptions::default()
            .with_containers(containers)
            .with_compressions(self.compression.iter().copied())
            .with_page_sizes(sizes(&self.page_bytes))
            .with_cluster_sizes(sizes(&self.cluster_bytes))
            .with_basket_sizes(sizes(&self.basket_bytes))
            .with_auto_flushes(self.auto_flush.iter().copied())
            .with_takes(self.takes)
            .with_sample_bytes(self.sample.0)
    }
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
    /// Name of the store in the table of prices.
    store: &'a str,
    price: &'a Price,
    usage: Usage,
}

impl Goal<'_> {
    /// The prices of taking single entries, of CPU time, and of all.
    fn dollars(&self, candidate: &Candidate) -> [f64; 3] {
        let Args { pricing, months, core_hour, .. } = self.args;
        let taking = pricing.reading(self.price, candidate.take.requests, candidate.take.bytes);
        let cpu = candidate.core_seconds(self.usage) / 3600.0 * core_hour;
        [taking, cpu, pricing.money(self.price, &candidate.cost, self.usage, *months).sum() + taking + cpu]
    }

    /// The value by which candidates are ordered.
    fn value(&self, candidate: &Candidate) -> f64 {
        match self.args.by {
            By::Time => candidate.seconds(self.usage),
            By::Cpu => candidate.core_seconds(self.usage),
            By::Money => self.dollars(candidate)[2],
            By::Size => candidate.cost.bytes as f64,
        }
    }

    fn order(&self, a: &Candidate, b: &Candidate) -> Ordering {
        self.value(a).total_cmp(&self.value(b))
    }

    fn best<'c>(&self, candidates: impl IntoIterator<Item = &'c Candidate>) -> Option<&'c Candidate> {
        let time = |candidate: &Candidate| candidate.seconds(self.usage);
        let size = |candidate: &Candidate| candidate.cost.bytes as f64;
        let requests = |candidate: &Candidate| candidate.requests(self.usage) as f64;
        let memory = |candidate: &Candidate| candidate.cluster_memory_bytes as f64;
        let first = |candidate: &Candidate| self.value(candidate);
        best(candidates, &[&first, &time, &size, &requests, &memory])
    }

    /// The best of each codec and of each container, and the best of the existing pages, each once.
    fn summary<'c>(&self, new: &'c [Candidate], present: Option<&'c Candidate>) -> Vec<&'c Candidate> {
        let mut lines: Vec<&Candidate> = present.into_iter().collect();
        for one in new {
            let of_codec = new.iter().filter(|other| report::codec(other) == report::codec(one));
            let of_container = new.iter().filter(|other| other.cost.container == one.cost.container);
            for found in self.best(of_codec).into_iter().chain(self.best(of_container)) {
                if !lines.iter().any(|line| std::ptr::eq(*line, found)) {
                    lines.push(found);
                }
            }
        }
        lines.sort_by(|a, b| self.order(a, b));
        lines
    }
}

/// All that was found.
struct Found<'f> {
    table: &'f Table,
    measured: &'f Measured,
    speed: &'f Speed,
    cores: usize,
    /// Date of the prices.
    date: &'f str,
    candidates: &'f [Candidate],
    present: &'f [Candidate],
    /// The best of the existing pages, of the new ones, and of both.
    present_best: Option<&'f Candidate>,
    new: Option<&'f Candidate>,
    chosen: &'f Candidate,
    command: String,
}

pub(crate) fn run(args: &Args, console: &Console) -> Result<(), Failure> {
    let location = one(&args.input, args.reading.storage()?)?;
    let table = args.reading.open(&location, None, console)?;
    let kinds = args.kinds(table.is_of_trees())?;
    let default = if kinds.contains(&Kind::Objects) { DEFAULT_STORE } else { DEFAULT_DISK };
    let store = args.store.as_deref().unwrap_or(default);
    let (date, price) = args.pricing.price(store, |_| true)?;
    if args.by == By::Money && price.is_free() {
        let without = format!("{store} has no prices");
        if args.core_hour == 0.0 {
            return Err(Failure::usage(format_args!("{without}, so that all money is 0"))
                .with_hint("give --core-hour DOLLARS, or a table of your prices with --prices FILE"));
        }
        console.warn(&format!(
            "{without}: money is that of cores, and space costs nothing; --prices takes a table of yours"
        ));
    }
    let read = read(args, &table, console)?;
    let interrupt = Interrupt::watch()?;
    let speed = speed(args, (store, &price), &interrupt)?;
    let cores = args.cores.map_or_else(tupelo::threads, |cores| cores as usize);
    let measured = measured(&table, &read, &args.options(&kinds), &interrupt, console)?;
    let candidates = measured.candidates(&speed.store, cores);
    let present = measured.present(&speed.store, cores)?;
    let goal = Goal { args, store, price: &price, usage: args.usage() };
    // They were encoded once, so nothing is known of what encoding them again takes.
    let present_best = goal.best(&present).filter(|_| goal.usage.writes <= 1);
    // Existing pages that are as good need not be encoded again.
    let Some(chosen) = goal.best(present_best.into_iter().chain(&candidates)) else {
        return Err(Failure::usage("no candidates to compare"));
    };
    for (what, error) in measured.not_compared() {
        console.warn(&format!("{what} are not compared: {error}"));
    }
    let left_out = measured.left_out(chosen.cost.container);
    if let [first, ..] = left_out {
        let number = things(left_out.len() as u64, "thing");
        console.warn(&format!("what is recommended cannot hold {number} of '{}': {first}", table.path()));
    }
    let found = Found {
        table: &table,
        measured: &measured,
        speed: &speed,
        cores,
        date: &date,
        candidates: &candidates,
        present: &present,
        present_best,
        new: goal.best(&candidates),
        chosen,
        command: apply::command(&goal, &location, table.is_of_trees(), chosen, !left_out.is_empty()),
    };
    match args.json {
        true => console.print_json("tune", document::document(&found, &goal)),
        false => report::print(&found, &goal, console),
    }
}

/// The read; for a tree, without the branches that cannot be decoded.
fn read(args: &Args, table: &Table, console: &Console) -> Result<Read, Failure> {
    if !table.is_of_trees() {
        return args.fields.read(table, None);
    }
    let selecting = Selecting { entries: 0..table.entries(), with_counters: true, ..Selecting::default() };
    let chosen = args.fields.select(table, None, &selecting)?;
    chosen.tell(table, console);
    Ok(chosen.read)
}

/// Latency and bandwidth: given, measured or assumed.
fn speed(args: &Args, (name, price): (&str, &Price), interrupt: &Interrupt) -> Result<Speed, Failure> {
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
        let unknown = Failure::usage(format_args!("the table of prices lacks a typical speed for '{name}'"));
        return Err(unknown.with_hint("use --latency TIME and --bandwidth BANDWIDTH, or --measure URI"));
    };
    let is_given = args.latency.is_some() && args.bandwidth.is_some();
    let (origin, source) = match typical {
        Some(typical) if !is_given => ("assumed", typical.source.clone()),
        _ => ("given", String::new()),
    };
    let link = Link { latency_seconds, bytes_per_second };
    let store = match typical.and_then(|typical| typical.disk_requests) {
        Some(requests) => StoreModel::disk(link, requests),
        None => StoreModel::remote(link),
    };
    Ok(Speed { store, origin, source })
}

/// Runs the measurements with a progress bar.
fn measured(
    table: &Table,
    read: &Read,
    options: &TuneOptions,
    interrupt: &Interrupt,
    console: &Console,
) -> Result<Measured, Failure> {
    let mut bar = console.progress("measuring", options.measurements() as u64, "trials");
    let mut progress = |done: usize| {
        bar.set(done as u64);
        if interrupt.is_set() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let watched = interrupt.clone();
    let work = || measure(table, read, options, &mut progress);
    let measured = cancellable(move || watched.is_set(), work).map_err(|error| cancelled(error, interrupt));
    bar.finish();
    measured?.ok_or_else(|| interrupt.failure())
}

/// Work that a signal ended fails with the exit status of the signal.
fn cancelled(error: tupelo::Error, interrupt: &Interrupt) -> Failure {
    if error.kind() == ErrorKind::Cancelled { interrupt.failure() } else { error.into() }
}

#[cfg(test)]
mod tests {
    use tupelo::ops::tune::{
        DEFAULT_AUTO_FLUSHES, DEFAULT_BASKET_SIZES, DEFAULT_CLUSTER_SIZES, DEFAULT_CODECS, DEFAULT_FILE_CODECS,
        DEFAULT_PAGE_SIZES, DEFAULT_SAMPLE_BYTES,
    };
    use tupelo::writer::format_bytes;

    use super::*;

    #[test]
    fn defaults_match_the_engine() {
        // The help has these texts.
        assert_eq!(DEFAULT_SAMPLE_TEXT.parse(), Ok(Bytes(DEFAULT_SAMPLE_BYTES)));
        assert_eq!(DEFAULT_CODECS, ["none", "lz4:4", "zstd:5", "zlib:1"]);
        assert_eq!(DEFAULT_FILE_CODECS, ["none", "lz4:4", "zstd:1", "zstd:5", "zlib:1"]);
        assert_eq!(DEFAULT_PAGE_SIZES.map(format_bytes), ["64KiB", "256KiB", "1MiB", "4MiB"]);
        assert_eq!(DEFAULT_CLUSTER_SIZES.map(format_bytes), ["32MiB", "128MiB", "512MiB"]);
        let mappings = DEFAULT_MAPPINGS.map(|mapping| mapping.to_string());
        assert_eq!(mappings, ["page", "cage:1MiB", "cage:16MiB", "page-group", "cluster"]);
        assert_eq!(DEFAULT_BASKET_SIZES.map(format_bytes), ["32000", "1MiB"]);
        assert_eq!(DEFAULT_AUTO_FLUSHES, [-30_000_000, -100_000_000]);
        let uses = [Usage::READ_OFTEN, Usage::READ_ONCE, Usage::WRITE_OFTEN];
        assert_eq!(uses.map(|usage| (usage.writes, usage.reads)), [(1, 100), (1, 1), (100, 1)]);
    }
}
