//! `tupelo cost`: requests, bytes and money of an ntuple or tree in an object store.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;
use serde_json::{Value, json};
use tupelo::ops::cost::{Cost, costs, tree_cost};
use tupelo::ops::tune::Usage;
use tupelo::reader::Read;
use tupelo::storage::remote::REMOTE_HINTS;
use tupelo::writer::Mapping;

use crate::console::Console;
use crate::failure::Failure;
use crate::inputs::one;
use crate::table::{Table, bytes, count, things};

/// Compute the cost of an ntuple or tree in an object store
///
/// Computes objects, requests and money for writing the ntuple once and reading the selected fields of all entries
/// --reads times, for each mapping of pages to objects. Page sizes come from the metadata; no page is read, and the
/// ntuple may be in a file. A tree is stored as one object, and only its own baskets count; `tupelo tune` compares it
/// with ntuples. The built-in prices, with their source and date, are in crates/tupelo-cli/src/commands/prices.json of
/// the source code. Prices change: edit a copy and pass it with --prices.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tupelo cost events.root --store s3:eu-west-3 --reads 100 --fields 'Muon_*'
  tupelo cost events.root --mapping page --mapping cage:4MiB --reads 10")]
pub(crate) struct Args {
    /// The ntuple or tree, as FILE or FILE:NAME, or the URI of an ntuple in an object store
    #[arg(value_name = "FILE[:NAME]")]
    input: String,
    /// Store and region, by their name in the table of prices
    #[arg(long, value_name = "STORE", default_value = DEFAULT_STORE)]
    store: String,
    #[command(flatten)]
    pricing: Pricing,
    /// Number of times that the fields are read
    #[arg(long, value_name = "N", default_value_t = 1)]
    reads: u64,
    /// Mapping of pages to objects; may be repeated [default: page, cages of 1, 4 and 16 MiB, page-group and cluster]
    #[arg(long, value_name = "MAPPING")]
    mapping: Vec<Mapping>,
    #[command(flatten)]
    fields: super::super::Fields,
    /// Print one JSON document instead of the table
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    reading: super::super::Reading,
}

/// The store of an object, unless another is given.
pub(super) const DEFAULT_STORE: &str = "s3:eu-west-3";

/// Whether a name in the table of prices is that of a kind of disk, which has no prices.
pub(super) fn is_disk(name: &str) -> bool {
    name.starts_with("disk:")
}

impl Price {
    /// Whether neither requests nor space nor traffic cost anything.
    pub(super) fn is_free(&self) -> bool {
        [self.put_per_1000, self.get_per_1000, self.month_per_gb, self.read_per_gb].iter().all(|price| *price == 0.0)
    }
}

/// The prices of stores.
#[derive(Debug, clap::Args)]
pub(super) struct Pricing {
    /// JSON file with a table of prices to use instead of the built-in one
    #[arg(long, value_name = "FILE")]
    prices: Option<PathBuf>,
    /// Include the price of traffic out of the region
    #[arg(long)]
    from_outside: bool,
}

impl Pricing {
    /// The date of the table, and the prices of a store, which is one of those that are offered.
    pub(super) fn price(&self, store: &str, is_offered: fn(&str) -> bool) -> Result<(String, Price), Failure> {
        let (text, name) = match &self.prices {
            Some(path) => {
                // FS: a table of the user, not data.
                let read = std::fs::read_to_string(path);
                let name = path.display().to_string();
                (read.map_err(|error| Failure::usage(format_args!("cannot read {name}: {error}")))?, name)
            }
            None => (PRICES.to_owned(), "the built-in table".to_owned()),
        };
        let prices: Prices = serde_json::from_str(&text)
            .map_err(|error| Failure::usage(format_args!("{name} is not a valid table of prices: {error}")))?;
        match prices.stores.get(store).filter(|_| is_offered(store)) {
            Some(price) => Ok((prices.date, price.clone())),
            None => {
                let known: Vec<_> = prices.stores.keys().map(String::as_str).filter(|name| is_offered(name)).collect();
                let unknown = Failure::usage(format_args!("{name} lacks prices for '{store}'"));
                Err(unknown.with_hint(format!("available: {}", known.join(", "))))
            }
        }
    }

    /// The price of writing and reading so often, and of storing for some months.
    pub(super) fn money(&self, price: &Price, cost: &Cost, usage: Usage, months: f64) -> Money {
        Money {
            write: usage.writes as f64 * cost.write_requests as f64 / 1e3 * price.put_per_1000,
            reads: usage.reads as f64 * self.reading(price, cost.read_requests, cost.read_bytes),
            month: months * gigabytes(cost.bytes) * price.month_per_gb,
        }
    }

    /// The price of requests that read.
    pub(super) fn reading(&self, price: &Price, requests: u64, bytes: u64) -> f64 {
        let traffic = if self.from_outside { gigabytes(bytes) * price.read_per_gb } else { 0.0 };
        requests as f64 / 1e3 * price.get_per_1000 + traffic
    }
}

/// The built-in table.
const PRICES: &str = include_str!("../prices.json");

/// A table of prices, in US dollars.
#[derive(Debug, Deserialize)]
struct Prices {
    date: String,
    stores: BTreeMap<String, Price>,
}

/// The prices of a store.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Price {
    pub(super) source: String,
    put_per_1000: f64,
    get_per_1000: f64,
    read_per_gb: f64,
    month_per_gb: f64,
    /// Its typical speed, assumed if nothing else is known.
    pub(super) typical: Option<Typical>,
}

/// The speed of a store, assumed unless it is measured.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Typical {
    pub(super) source: String,
    pub(super) latency_ms: f64,
    /// Bandwidth of all concurrent requests together, in units of 1000 kB.
    pub(super) mb_per_s: f64,
    /// Of a disk of this machine, how many requests it answers at the same time.
    pub(super) disk_requests: Option<usize>,
}

/// The price of one mapping.
pub(super) struct Money {
    pub(super) write: f64,
    pub(super) reads: f64,
    pub(super) month: f64,
}

impl Money {
    /// All of it.
    pub(super) fn sum(&self) -> f64 {
        self.write + self.reads + self.month
    }
}

fn gigabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e9
}

pub(crate) fn run(args: &Args, console: &Console) -> Result<(), Failure> {
    let (date, price) = args.pricing.price(&args.store, |name| !is_disk(name))?;
    let location = one(&args.input, args.reading.storage()?)?;
    let stored = args.reading.open(&location, None, console)?;
    let read = args.fields.read(&stored, None)?;
    let lines = lines(args, &stored, &read)?;
    let usage = Usage { writes: 1, reads: args.reads };
    let money = |line: &Cost| args.pricing.money(&price, line, usage, 1.0);
    if args.json {
        let one = |line: &Cost| to_json(line, &money(line));
        return console.print_json(
            "cost",
            json!({
                "file": stored.file_name(),
                "name": stored.path(),
                "store": args.store,
                "prices": { "source": price.source, "date": date },
                "reads": args.reads,
                "mappings": lines.iter().map(one).collect::<Value>(),
            }),
        );
    }
    let columns = ["MAPPING", ">OBJECTS", ">WRITE $", ">READ REQUESTS", ">READ SIZE", ">READS $", ">MONTH $", ">SUM $"];
    let mut table = Table::new(&columns);
    for line in &lines {
        let money = money(line);
        table.line([
            mapping(line),
            count(line.objects),
            dollars(money.write),
            count(line.read_requests),
            bytes(line.read_bytes),
            dollars(money.reads),
            dollars(money.month),
            dollars(money.sum()),
        ]);
    }
    let mut text = console.text();
    table.add_to(&mut text);
    console.print(&text)?;
    let reads = times(args.reads, "read");
    console.note(&format!("{}, {reads}, one month; prices of {date}, {}", args.store, price.source));
    Ok(())
}

/// The mapping of pages; `file` for a tree.
fn mapping(cost: &Cost) -> String {
    cost.container.mapping().map_or_else(|| "file".to_owned(), |mapping| mapping.to_string())
}

/// `one read`, `3 reads`.
pub(super) fn times(number: u64, what: &str) -> String {
    if number == 1 { format!("one {what}") } else { things(number, what) }
}

/// The costs of each mapping, or of a tree.
fn lines(args: &Args, stored: &tupelo::Table, read: &Read) -> Result<Vec<Cost>, Failure> {
    if let Some(tree) = stored.tree() {
        if !args.mapping.is_empty() {
            let refused =
                Failure::usage(format_args!("{location}: --mapping does not apply to a tree", location = args.input));
            return Err(refused.with_hint("omit --mapping, or convert the tree to an ntuple with `tupelo import`"));
        }
        return Ok(vec![tree_cost(tree, read, REMOTE_HINTS)?]);
    }
    let mappings = match args.mapping.as_slice() {
        [] => ["page", "cage:1MiB", "cage:4MiB", "cage:16MiB", "page-group", "cluster"]
            .iter()
            .filter_map(|name| name.parse().ok())
            .collect(),
        chosen => chosen.to_vec(),
    };
    Ok(costs(stored.ntuple()?, read, &mappings, REMOTE_HINTS)?)
}

/// Four significant digits: sums are often tiny.
pub(super) fn dollars(sum: f64) -> String {
    let digits = if sum > 0.0 { (3.0 - sum.log10().floor()).clamp(2.0, 9.0) } else { 2.0 };
    format!("{sum:.*}", digits as usize)
}

fn to_json(cost: &Cost, money: &Money) -> Value {
    json!({
        "mapping": mapping(cost),
        "objects": cost.objects,
        "write_requests": cost.write_requests,
        "bytes": cost.bytes,
        "read_requests": cost.read_requests,
        "read_bytes": cost.read_bytes,
        "write_dollars": money.write,
        "reads_dollars": money.reads,
        "month_dollars": money.month,
    })
}

#[cfg(test)]
mod tests {
    use tupelo::ops::cost::Container;

    use super::*;

    #[test]
    fn the_built_in_table_is_valid() {
        let prices: Prices = serde_json::from_str(PRICES).unwrap();
        assert!(prices.stores.contains_key(DEFAULT_STORE));
        for (name, price) in &prices.stores {
            let typical = price.typical.as_ref().unwrap();
            assert!(typical.latency_ms > 0.0 && typical.mb_per_s > 0.0 && !typical.source.is_empty());
            let is_disk = is_disk(name);
            assert_eq!(is_disk, price.put_per_1000 == 0.0 && price.month_per_gb == 0.0 && price.read_per_gb == 0.0);
            assert!(is_disk || price.put_per_1000 > price.get_per_1000 && price.source.starts_with("https://"));
            assert!(!price.source.is_empty());
        }
    }

    #[test]
    fn money_is_requests_and_bytes() {
        let price = Price {
            source: String::new(),
            put_per_1000: 5.0,
            get_per_1000: 1.0,
            read_per_gb: 0.5,
            month_per_gb: 0.1,
            typical: None,
        };
        let cost = Cost {
            container: Container::Objects(Mapping::Page),
            objects: 1000,
            write_requests: 2000,
            bytes: 3_000_000_000,
            read_requests: 500,
            read_bytes: 2_000_000_000,
        };
        let sums = |from_outside, writes, months| {
            let pricing = Pricing { prices: None, from_outside };
            let Money { write, reads, month } = pricing.money(&price, &cost, Usage { writes, reads: 4 }, months);
            [write, reads, month].map(dollars)
        };
        assert_eq!(sums(false, 1, 1.0), ["10.00", "2.000", "0.3000"]);
        assert_eq!(sums(true, 1, 1.0), ["10.00", "6.000", "0.3000"]);
        assert_eq!(sums(false, 3, 12.0), ["30.00", "2.000", "3.600"]);
        assert_eq!([0.0, 0.000_123_4, 1234.5].map(dollars), ["0.00", "0.0001234", "1234.50"]);
        assert_eq!([times(1, "read"), times(2000, "write")], ["one read", "2 000 writes"]);
    }
}
