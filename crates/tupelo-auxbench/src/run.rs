//! Loading and measuring.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::hint::black_box;
use std::ops::Range;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tupelo::storage::FileSource;
use tupelo::{Error, Result};
use tupelo_xaod::{EntryWise, Event, Format, Selection};

use crate::choose::{self, Chosen, Entries};
use crate::config::{Config, PageCache, Store};
use crate::statistics::{median_of, sorted};

/// Loads of each run that are kept as its slowest ones.
const SLOWEST: usize = 30;
/// Fields that are named where a load is explained.
const EXPLAINED: usize = 3;
/// Pairs of readings of the clock by which its cost is measured.
const CLOCK_READINGS: usize = 10_001;

/// Opens the events of a path, again for each run.
pub type Open<'o> = dyn Fn(Store, &str) -> Result<Event> + 'o;

/// One load of an entry: all variables of all stores.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Load {
    /// The entry.
    pub entry: u64,
    /// Its time.
    pub nanoseconds: u64,
    /// Number of loaded values: elements of containers, and one of each object's variables.
    pub values: u64,
    /// What the load decoded; empty if all was in memory.
    pub decoded: Vec<Decoded>,
}

/// Entries of one or more stores that were decoded together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decoded {
    /// The stores, counted from 0 in the order in which they are loaded.
    pub stores: Range<usize>,
    /// The entries.
    pub entries: Range<u64>,
}

impl Load {
    /// The range of entries that the load decoded, over all stores; `None` if all was in memory.
    pub fn decoded_entries(&self) -> Option<Range<u64>> {
        let start = self.decoded.iter().map(|decoded| decoded.entries.start).min()?;
        Some(start..self.decoded.iter().map(|decoded| decoded.entries.end).max()?)
    }
}

/// One run of one store.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Over what.
    pub store: Store,
    /// Percentage of the variables.
    pub percentage: f64,
    /// Number, counted from 1.
    pub number: usize,
    /// Opening the file and choosing variables, in seconds.
    pub open_seconds: f64,
    /// The warm-up, in seconds.
    pub warmup_seconds: f64,
    /// Sum of the loads, in seconds.
    pub seconds: f64,
    /// Number of loads.
    pub loads: u64,
    /// Number of loaded values.
    pub values: u64,
    /// Mean of a load in nanoseconds.
    pub mean: f64,
    /// Mean without the named entry.
    pub mean_without_named: Option<f64>,
    /// Median of a load in nanoseconds.
    pub median: f64,
    /// The slowest loads, slowest first.
    pub slowest: Vec<Load>,
    /// Pieces of entries that were decoded, warm-up included.
    pub pieces: u64,
}

/// Times of one variable by itself, in all entries.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct VariableTimes {
    /// Over what.
    pub store: Store,
    /// Container and variable, as in `AnalysisJets.pt`.
    pub name: String,
    /// C++ type of an element.
    pub type_name: String,
    /// Median of a load in nanoseconds.
    pub median: f64,
    /// The slowest load.
    pub slowest: Load,
}

/// What was decoded in a load.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Explained {
    /// The load.
    pub load: Load,
    /// The stores whose entries were decoded.
    pub stores: Vec<String>,
    /// Number of pages or baskets.
    pub pages: u64,
    /// Their bytes in the file.
    pub stored_bytes: u64,
    /// Their bytes once decompressed.
    pub unpacked_bytes: u64,
    /// The fields with the most bytes, and these.
    pub fields: Vec<(String, u64)>,
}

/// Chosen stores, variables and entries.
pub struct Benchmark<'o> {
    pub(crate) config: Config,
    pub(crate) open: &'o Open<'o>,
    pub(crate) stores: Vec<Chosen>,
    pub(crate) entries: Entries,
    warnings: Vec<String>,
}

impl std::fmt::Debug for Benchmark<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Benchmark").field("config", &self.config).field("stores", &self.stores).finish_non_exhaustive()
    }
}

impl<'o> Benchmark<'o> {
    /// Opens the files, in both orders, and chooses what is measured.
    ///
    /// # Errors
    /// Those of opening; not found for a store that the files lack; invalid argument if nothing is left to measure, or if the
    /// files have different numbers of entries.
    pub fn new(config: Config, open: &'o Open<'o>) -> Result<Self> {
        let mut warnings = Vec::new();
        let opened = |store: &Store| Ok((*store, open(*store, config.path(*store))?));
        let events: Vec<(Store, Event)> = config.stores.iter().map(opened).collect::<Result<_>>()?;
        for (store, event) in &events {
            let (wanted, other) = match store {
                Store::Ntuple => (Format::Ntuple, "a tree"),
                Store::Tree => (Format::Tree, "an ntuple"),
            };
            if event.format() != wanted {
                let what = format!("{} names {other}: {}", store.option(), config.path(*store));
                return Err(Error::invalid_argument(what));
            }
        }
        let stores = choose::stores(&config, &events, &mut warnings)?;
        // Whichever is opened first: nothing of one may depend on the other.
        let mut reversed: Vec<(Store, Event)> = config.stores.iter().rev().map(opened).collect::<Result<_>>()?;
        reversed.reverse();
        if choose::stores(&config, &reversed, &mut Vec::new())? != stores {
            return Err(Error::invalid_argument("the variables depend on the order in which the files are opened"));
        }
        let mut counts = events.iter().map(|(store, event)| (store.name(), event.entries()));
        let (_, all) = counts.next().unwrap_or_default();
        if let Some((name, other)) = counts.find(|(_, count)| *count != all) {
            let what = format!("{name} has {other} entries, {} has {all}", config.stores[0].name());
            return Err(Error::invalid_argument(what));
        }
        let entries = choose::entries(&config, all, &mut warnings);
        if entries.measured.is_empty() {
            return Err(Error::invalid_argument("no entry is left to measure"));
        }
        Ok(Self { config, open, stores, entries, warnings })
    }

    /// The configuration.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// What the files have less than was asked for, and what is left out.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Number of stores, and of measured entries.
    pub fn size(&self) -> (usize, usize) {
        (self.stores.len(), self.entries.measured.len())
    }

    /// Number of variables of all stores, for a percentage.
    pub fn variables(&self, percentage: f64) -> usize {
        choose::variables(&self.config, &self.stores, percentage).iter().map(|it| it.variables.len()).sum()
    }

    fn event(&self, store: Store) -> Result<Event> {
        let path = self.config.path(store);
        if self.config.page_cache == PageCache::Cold {
            forget(path)?;
        }
        (self.open)(store, path)
    }

    /// All runs of all percentages. The stores take turns, and begin in turns. `done` gets each run with its loads, in entry
    /// order.
    ///
    /// # Errors
    /// Those of opening and reading, and of `done`.
    pub fn run<E: From<Error>>(
        &self,
        mut done: impl FnMut(&Run, &[Load]) -> std::result::Result<(), E>,
    ) -> std::result::Result<Vec<Run>, E> {
        let (mut runs, mut loads) = (Vec::new(), Vec::with_capacity(self.entries.measured.len()));
        for percentage in &self.config.percentages {
            let chosen = choose::variables(&self.config, &self.stores, *percentage);
            for number in 1..=self.config.n_runs {
                let mut stores = self.config.stores.clone();
                if number % 2 == 0 && !self.config.legacy {
                    stores.reverse();
                }
                for store in stores {
                    let run = self.run_once(store, (*percentage, number), &chosen, &mut loads)?;
                    done(&run, &loads)?;
                    runs.push(run);
                }
            }
        }
        Ok(runs)
    }

    fn run_once(&self, store: Store, about: (f64, usize), chosen: &[Chosen], loads: &mut Vec<Load>) -> Result<Run> {
        let begin = Instant::now();
        let event = self.event(store)?;
        let mut entries = event.entry_wise(selections(&event, chosen)?)?;
        let open_seconds = begin.elapsed().as_secs_f64();
        let warmup_seconds = self.measure(&mut entries, loads)?.as_secs_f64();
        let ((percentage, number), named) = (about, self.config.named_entry);
        let mean_of = |named: Option<u64>| {
            let times = loads.iter().filter(|load| Some(load.entry) != named).map(|load| load.nanoseconds);
            times.clone().sum::<u64>() as f64 / times.count().max(1) as f64
        };
        Ok(Run {
            store,
            percentage,
            number,
            open_seconds,
            warmup_seconds,
            seconds: Duration::from_nanos(loads.iter().map(|load| load.nanoseconds).sum()).as_secs_f64(),
            loads: loads.len() as u64,
            values: loads.iter().map(|load| load.values).sum(),
            mean: mean_of(None),
            mean_without_named: named.map(|_| mean_of(named)),
            median: median(loads),
            slowest: slowest(loads.clone()),
            pieces: entries.pieces(),
        })
    }

    /// Loads the entries of the warm-up, then the measured ones. Returns the time of the warm-up.
    fn measure(&self, entries: &mut EntryWise, loads: &mut Vec<Load>) -> Result<Duration> {
        let begin = Instant::now();
        for entry in &self.entries.warmup {
            black_box(load(entries, *entry)?);
        }
        let warmup = begin.elapsed();
        loads.clear();
        for entry in &self.entries.measured {
            loads.push(load(entries, *entry)?);
        }
        Ok(warmup)
    }

    /// Tells which pages were decoded in a load; `None` if its entry was in memory.
    ///
    /// # Errors
    /// Those of opening and of reading page lists.
    pub fn explain(&self, store: Store, percentage: f64, load: Load) -> Result<Option<Explained>> {
        if load.decoded.is_empty() {
            return Ok(None);
        }
        let event = (self.open)(store, self.config.path(store))?;
        let chosen = choose::variables(&self.config, &self.stores, percentage);
        let (mut stores, [mut pages, mut stored_bytes, mut unpacked_bytes]) = (Vec::new(), [0; 3]);
        let mut bytes_by_field: BTreeMap<String, u64> = BTreeMap::new();
        for Decoded { stores: places, entries } in &load.decoded {
            let mut paths = Vec::new();
            for it in chosen.get(places.clone()).unwrap_or_default() {
                let container = event.stores().container(&it.store)?;
                for name in &it.variables {
                    paths.push(container.variable(name)?.path());
                }
                stores.push(it.store.clone());
            }
            let explanation = event.table().read(&paths)?.entries(entries.clone()).explain()?;
            pages += explanation.pages();
            stored_bytes += explanation.stored_bytes();
            unpacked_bytes += explanation.unpacked_bytes();
            for column in &explanation.columns {
                let field = paths.iter().find(|path| {
                    column.field.strip_prefix(**path).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
                });
                let field = field.copied().unwrap_or(&column.field);
                *bytes_by_field.entry(field.to_owned()).or_default() += column.unpacked_bytes;
            }
        }
        let mut fields = Vec::from_iter(bytes_by_field);
        fields.sort_by_key(|(_, bytes)| Reverse(*bytes));
        fields.truncate(EXPLAINED);
        Ok(Some(Explained { load, stores, pages, stored_bytes, unpacked_bytes, fields }))
    }

    /// Measures each variable of the stores by itself, in all measured entries.
    ///
    /// # Errors
    /// Those of opening and reading.
    pub fn variable_times(&self) -> Result<Vec<VariableTimes>> {
        let mut found = Vec::new();
        let mut loads = Vec::with_capacity(self.entries.measured.len());
        for store in &self.config.stores {
            let event = self.event(*store)?;
            for chosen in &self.stores {
                for variable in &chosen.variables {
                    let selection = event.select(&chosen.store, [variable])?;
                    let mut entries = event.entry_wise(vec![selection])?;
                    self.measure(&mut entries, &mut loads)?;
                    let Some(slowest) = slowest(loads.clone()).into_iter().next() else { continue };
                    let type_name = event.stores().container(&chosen.store)?.variable(variable)?.type_name().to_owned();
                    let name = format!("{}.{variable}", chosen.store);
                    found.push(VariableTimes { store: *store, name, type_name, median: median(&loads), slowest });
                }
            }
        }
        Ok(found)
    }
}

pub(crate) fn selections(event: &Event, chosen: &[Chosen]) -> Result<Vec<Selection>> {
    chosen.iter().map(|it| event.select(&it.store, &it.variables)).collect()
}

/// The places of all variables: that of the selection, and that in it.
pub(crate) fn places(entries: &EntryWise) -> impl Iterator<Item = (usize, usize)> + use<'_> {
    let selections = entries.selections().iter().enumerate();
    selections.flat_map(|(place, selection)| (0..selection.variables().len()).map(move |variable| (place, variable)))
}

/// Loads an entry and finds the values of all variables.
fn load(entries: &mut EntryWise, entry: u64) -> Result<Load> {
    let begin = Instant::now();
    entries.load(entry)?;
    let mut values = 0;
    for (selection, variable) in places(entries) {
        if let Some((array, range)) = entries.values(selection, variable) {
            values += range.len() as u64;
            black_box((array, range));
        }
    }
    let nanoseconds = u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
    let decoded = entries.decoded().iter();
    let decoded = decoded.map(|it| Decoded { stores: it.selections.clone(), entries: it.entries.clone() }).collect();
    Ok(Load { entry, nanoseconds, values, decoded })
}

/// The median time in nanoseconds.
fn median(loads: &[Load]) -> f64 {
    median_of(&sorted(loads.iter().map(|load| load.nanoseconds as f64)))
}

/// The slowest loads, slowest first.
pub(crate) fn slowest(mut loads: Vec<Load>) -> Vec<Load> {
    loads.sort_by_key(|load| Reverse(load.nanoseconds));
    loads.truncate(SLOWEST);
    loads
}

/// What reading the clock adds to a load, in nanoseconds.
pub(crate) fn clock_nanoseconds() -> f64 {
    let reading = |_| {
        let begin = Instant::now();
        black_box(begin).elapsed().as_nanos() as f64
    };
    median_of(&sorted((0..CLOCK_READINGS).map(reading)))
}

/// Lets the system forget what it has in memory of a local file.
fn forget(path: &str) -> Result<()> {
    let location = tupelo::reader::Location::parse(path);
    let Some(local) = location.local_path() else {
        return Err(Error::invalid_argument(format!(
            "pageCache = \"cold\" needs local files, found {}",
            location.file
        )));
    };
    Ok(FileSource::open(local).and_then(|file| file.forget_cached())?)
}
