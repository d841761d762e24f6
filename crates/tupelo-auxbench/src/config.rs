//! The configuration, with the names of the published benchmark.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use toml::Value;
use tupelo::storage::adapter::DiskSpeed;
use tupelo::{Error, Result};

/// Over what a store is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Store {
    /// Over an ntuple.
    #[serde(rename = "RAuxStore")]
    Ntuple,
    /// Over a tree.
    #[serde(rename = "TAuxStore")]
    Tree,
}

impl Store {
    /// Its published name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ntuple => "RAuxStore",
            Self::Tree => "TAuxStore",
        }
    }

    /// The option with its file.
    pub(crate) fn option(self) -> &'static str {
        match self {
            Self::Ntuple => "ntupleFilepath",
            Self::Tree => "treeFilepath",
        }
    }
}

/// What the file system remembers of a file when a run begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PageCache {
    /// What reading left there.
    Warm,
    /// Nothing, as far as the kernel forgets it when asked.
    Cold,
}

/// Names of an option, its default, and what it says: for messages and the guide.
#[derive(Debug, Clone, Copy)]
pub struct ConfigOption {
    /// The published name first.
    pub names: &'static [&'static str],
    /// Its default, as text.
    pub default: &'static str,
    /// What it says.
    pub about: &'static str,
}

const fn option(names: &'static [&'static str], default: &'static str, about: &'static str) -> ConfigOption {
    ConfigOption { names, default, about }
}

/// All options, in the order of the guide. The last ones are not in the published benchmark.
pub const OPTIONS: &[ConfigOption] = &[
    option(
        &["ntupleFilepath", "ntupleFilePath"],
        "required for RAuxStore",
        "file with the ntuple, as FILE or FILE:NAME",
    ),
    option(&["treeFilepath", "treeFilePath"], "required for TAuxStore", "file with the tree, as FILE or FILE:NAME"),
    option(&["auxStoreToRun"], "\"Both\"", "\"RAuxStore\" (0), \"TAuxStore\" (1) or \"Both\" (2)"),
    option(&["nRuns"], "20", "runs, each with newly opened stores"),
    option(&["seed"], "15", "seed of the choice of stores, variables and entries, below 2^32"),
    option(&["percentagesOfAuxIdsToPick"], "\"100\"", "comma-separated percentages of the variables of each store"),
    option(&["nStores"], "all", "number of stores, chosen by the seed"),
    option(&["minAuxids", "minAuxIds"], "1", "least number of variables of a chosen store"),
    option(&["storeNames"], "none", "names of the stores, instead of nStores and minAuxids"),
    option(&["variableNames"], "all", "variables such as AnalysisJets.pt, to which the stores are reduced"),
    option(
        &["storeNameFiltering"],
        "true",
        "leave out stores that begin with AnalysisTrigMatch, and those of storeNamesWithProblematicAuxids",
    ),
    option(&["storeNamesWithProblematicAuxids"], "none", "stores to leave out"),
    option(&["nEntries"], "all", "number of measured entries"),
    option(&["selectEntriesRandomly"], "false", "choose the entries by the seed, instead of the first ones"),
    option(&["warmup"], "true", "load other entries before the measured ones"),
    option(&["nWarmupEntries", "nEntriesForWarmup"], "1000", "number of entries of the warm-up"),
    option(
        &["warmupEntriesSameAsBenchmarkEntries"],
        "false",
        "load the first measured entries in the warm-up, instead of others",
    ),
    option(&["verbose"], "false", "also warn where the file has less than was asked for"),
    option(&["printIntermediateResults"], "false", "print each run when it ends"),
    option(&["printWarmupResults"], "false", "print the time of each warm-up"),
    option(&["writeToCSV"], "false", "write the time of every load to CSV files in logDirPath"),
    option(&["logDirPath"], "none", "folder of the CSV files"),
    option(&["namedEntry"], "none", "entry that the means are given with and without, such as 3722"),
    option(&["nProcesses"], "1", "processes, one after the other, each with nRuns runs"),
    option(
        &["legacy"],
        "false",
        "as in the first published runs: 10 variables of EventInfo, a coin for each entry, RAuxStore always first",
    ),
    option(&["pageCache"], "\"warm\"", "\"cold\": the kernel forgets the file before each run"),
    option(&["diskLatency"], "none", "milliseconds that each seek of an imitated disk with one head takes"),
    option(&["diskSpeed"], "none", "megabytes per second that the imitated disk reads"),
    option(&["variableTimes"], "false", "also measure each variable by itself, entry by entry"),
];

/// A published experiment.
#[derive(Debug, Clone, Copy)]
pub struct Experiment {
    /// Its table or figure.
    pub name: &'static str,
    /// What is measured.
    pub about: &'static str,
    /// Its options, as TOML.
    options: &'static str,
}

/// The published experiments whose configuration is known.
pub const EXPERIMENTS: &[Experiment] = &[
    Experiment {
        name: "table-5.1",
        about: "10 variables of EventInfo, 20 runs in one process",
        options: "legacy = true\nnRuns = 20\nnWarmupEntries = 1000\nprintIntermediateResults = true",
    },
    Experiment {
        name: "table-5.2",
        about: "the same, one run in each of 20 processes",
        options: "legacy = true\nnRuns = 1\nnProcesses = 20\nnWarmupEntries = 1000\nprintIntermediateResults = true",
    },
    Experiment {
        name: "table-5.3",
        about: "the same, 20 runs in each of 20 processes",
        options: "legacy = true\nnRuns = 20\nnProcesses = 20\nnWarmupEntries = 1000\nprintIntermediateResults = true",
    },
    Experiment {
        name: "table-6.5",
        about: "8 entries at random, by the seed 15, 20 runs in each of five processes",
        options: "seed = 15\nselectEntriesRandomly = true\nnEntries = 8\nnRuns = 20\nnProcesses = 5",
    },
    Experiment {
        name: "figure-6.1",
        about: "all entries in order, once: the time of each load, with and without that of entry 3722",
        options: "nRuns = 1\nnamedEntry = 3722",
    },
];

/// How the benchmark runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_excessive_bools, reason = "they are the published options")]
pub struct Config {
    /// The file with the ntuple.
    pub ntuple_filepath: Option<String>,
    /// The file with the tree.
    pub tree_filepath: Option<String>,
    /// The stores that run.
    #[serde(rename = "auxStoreToRun")]
    pub stores: Vec<Store>,
    /// Number of runs.
    pub n_runs: usize,
    /// Seed of all choices.
    pub seed: u32,
    /// Percentages of the variables of each store.
    #[serde(rename = "percentagesOfAuxIdsToPick")]
    pub percentages: Vec<f64>,
    /// Number of stores; `None` for all.
    pub n_stores: Option<usize>,
    /// Least number of variables of a store.
    pub min_auxids: usize,
    /// The stores by name, instead.
    pub store_names: Vec<String>,
    /// Variables to which the stores are reduced.
    pub variable_names: Vec<String>,
    /// Whether some stores are left out.
    pub store_name_filtering: bool,
    /// Stores that are left out with the others.
    #[serde(rename = "storeNamesWithProblematicAuxids")]
    pub problematic_stores: Vec<String>,
    /// Number of measured entries; `None` for all.
    pub n_entries: Option<u64>,
    /// Whether the seed chooses them.
    pub select_entries_randomly: bool,
    /// Whether other entries are loaded before.
    pub warmup: bool,
    /// Their number.
    pub n_warmup_entries: u64,
    /// Whether they are the first measured ones.
    #[serde(rename = "warmupEntriesSameAsBenchmarkEntries")]
    pub warmup_is_same: bool,
    /// Whether to warn where the file has less than was asked for.
    pub verbose: bool,
    /// Whether each run is printed when it ends.
    pub print_intermediate_results: bool,
    /// Whether the time of each warm-up is printed.
    pub print_warmup_results: bool,
    /// Whether the time of every load is written.
    #[serde(rename = "writeToCSV")]
    pub write_csv: bool,
    /// Where to.
    pub log_dir_path: Option<PathBuf>,
    /// An entry that means are given with and without.
    pub named_entry: Option<u64>,
    /// Number of processes, each with all runs.
    pub n_processes: usize,
    /// Whether the choices are those of the first published runs.
    pub legacy: bool,
    /// What the file system remembers of the files.
    pub page_cache: PageCache,
    /// Milliseconds that each seek of the imitated disk takes.
    pub disk_latency: Option<f64>,
    /// Megabytes per second that the imitated disk reads.
    pub disk_speed: Option<f64>,
    /// Whether each variable is measured by itself, too.
    pub variable_times: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            ntuple_filepath: None,
            tree_filepath: None,
            stores: vec![Store::Ntuple, Store::Tree],
            n_runs: 20,
            seed: 15,
            percentages: vec![100.0],
            n_stores: None,
            min_auxids: 1,
            store_names: Vec::new(),
            variable_names: Vec::new(),
            store_name_filtering: true,
            problematic_stores: Vec::new(),
            n_entries: None,
            select_entries_randomly: false,
            warmup: true,
            n_warmup_entries: 1000,
            warmup_is_same: false,
            verbose: false,
            print_intermediate_results: false,
            print_warmup_results: false,
            write_csv: false,
            log_dir_path: None,
            named_entry: None,
            n_processes: 1,
            legacy: false,
            page_cache: PageCache::Warm,
            disk_latency: None,
            disk_speed: None,
            variable_times: false,
        }
    }
}

impl Config {
    /// Reads the text of a TOML file. Paths are those of the working directory.
    ///
    /// # Errors
    /// Invalid argument for what is not TOML, an option that is given twice by two of its names, a value that an option does
    /// not take, and options that need others; not found for an unknown option, with near names.
    ///
    /// ```
    /// let config = tupelo_auxbench::Config::parse(r#"
    ///     ntupleFilepath = "DAOD_PHYSLITE.ntuple.root"
    ///     auxStoreToRun = "RAuxStore"
    ///     percentagesOfAuxIdsToPick = "10,50,100"
    /// "#)?;
    /// assert_eq!(config.percentages, [10.0, 50.0, 100.0]);
    /// # Ok::<(), tupelo::Error>(())
    /// ```
    pub fn parse(text: &str) -> Result<Self> {
        Self::default().with(text)?.checked()
    }

    /// The same for one of the [`EXPERIMENTS`]. The options of the text replace those of the experiment.
    ///
    /// # Errors
    /// As [`parse`](Self::parse), and not found for an unknown experiment, with near names.
    ///
    /// ```
    /// let config = tupelo_auxbench::Config::parse_experiment("table-5.1", "
    ///     ntupleFilepath = 'ntuple.root'
    ///     treeFilepath = 'tree.root'
    ///     nRuns = 5
    /// ")?;
    /// assert_eq!((config.legacy, config.n_runs), (true, 5));
    /// # Ok::<(), tupelo::Error>(())
    /// ```
    pub fn parse_experiment(name: &str, text: &str) -> Result<Self> {
        let known = EXPERIMENTS.iter().find(|experiment| experiment.name == name);
        let names = || EXPERIMENTS.iter().map(|experiment| experiment.name);
        let known = known.ok_or_else(|| Error::no_such("experiment", name, names()))?;
        Self::default().with(known.options)?.with(text)?.checked()
    }

    /// With the options of a text.
    fn with(mut self, text: &str) -> Result<Self> {
        let table: toml::Table =
            text.parse().map_err(|error: toml::de::Error| Error::invalid_argument(error.to_string()))?;
        let mut seen: Vec<&str> = Vec::new();
        for (name, value) in &table {
            let known = OPTIONS.iter().find(|option| option.names.contains(&name.as_str()));
            let names = || OPTIONS.iter().flat_map(|option| option.names.iter().copied());
            let option = known.ok_or_else(|| Error::no_such("option", name, names()))?.names[0];
            if seen.contains(&option) {
                return Err(Error::invalid_argument(format!("'{option}' is given twice")));
            }
            seen.push(option);
            self.set(option, value)
                .map_err(|expected| Error::invalid_argument(format!("'{name}': expected {expected}, found {value}")))?;
        }
        Ok(self)
    }

    /// The file that a store is over; empty if none is given.
    pub fn path(&self, store: Store) -> &str {
        let path = match store {
            Store::Ntuple => &self.ntuple_filepath,
            Store::Tree => &self.tree_filepath,
        };
        path.as_deref().unwrap_or_default()
    }

    /// The slower disk that is imitated, if any.
    pub fn disk(&self) -> Option<DiskSpeed> {
        let latency = self.disk_latency.unwrap_or_default();
        let speed = self.disk_speed.map_or(f64::INFINITY, |speed| speed * 1e6);
        let is_slow = self.disk_latency.is_some() || self.disk_speed.is_some();
        is_slow.then(|| DiskSpeed::new(Duration::from_secs_f64(latency / 1e3), speed))
    }

    /// Sets an option by its first name. The error is what it takes.
    fn set(&mut self, option: &str, value: &Value) -> std::result::Result<(), &'static str> {
        match option {
            "ntupleFilepath" => self.ntuple_filepath = Some(text(value)?),
            "treeFilepath" => self.tree_filepath = Some(text(value)?),
            "auxStoreToRun" => self.stores = stores(value)?,
            "nRuns" => self.n_runs = positive(value)?,
            "seed" => self.seed = u32::try_from(number(value)?).map_err(|_| "a number below 2^32")?,
            "percentagesOfAuxIdsToPick" => self.percentages = percentages(value)?,
            "nStores" => self.n_stores = Some(positive(value)?),
            "minAuxids" => self.min_auxids = positive(value)?,
            "storeNames" => self.store_names = texts(value)?,
            "variableNames" => self.variable_names = texts(value)?,
            "storeNameFiltering" => self.store_name_filtering = flag(value)?,
            "storeNamesWithProblematicAuxids" => self.problematic_stores = texts(value)?,
            "nEntries" => self.n_entries = Some(positive(value)? as u64),
            "selectEntriesRandomly" => self.select_entries_randomly = flag(value)?,
            "warmup" => self.warmup = flag(value)?,
            "nWarmupEntries" => self.n_warmup_entries = number(value)?,
            "warmupEntriesSameAsBenchmarkEntries" => self.warmup_is_same = flag(value)?,
            "verbose" => self.verbose = flag(value)?,
            "printIntermediateResults" => self.print_intermediate_results = flag(value)?,
            "printWarmupResults" => self.print_warmup_results = flag(value)?,
            "writeToCSV" => self.write_csv = flag(value)?,
            "logDirPath" => self.log_dir_path = Some(text(value)?.into()),
            "namedEntry" => self.named_entry = Some(number(value)?),
            "nProcesses" => self.n_processes = positive(value)?,
            "legacy" => self.legacy = flag(value)?,
            "pageCache" => {
                self.page_cache = match value.as_str() {
                    Some("warm") => PageCache::Warm,
                    Some("cold") => PageCache::Cold,
                    _ => return Err("\"warm\" or \"cold\""),
                }
            }
            "diskLatency" => {
                self.disk_latency = Some(limited(value, 0.0..=1000.0, "milliseconds from 0 to 1000")?);
            }
            "diskSpeed" => {
                self.disk_speed = Some(limited(value, 1.0..=f64::MAX, "megabytes per second, 1 or more")?);
            }
            "variableTimes" => self.variable_times = flag(value)?,
            _ => return Err("another option"),
        }
        Ok(())
    }

    /// The same if its options fit together.
    fn checked(self) -> Result<Self> {
        let chosen = !self.store_names.is_empty() || self.n_stores.is_some() || self.percentages != [100.0];
        if self.legacy && (chosen || self.select_entries_randomly || self.warmup_is_same) {
            let what = "'legacy' chooses stores, variables and entries itself";
            return Err(Error::invalid_argument(what));
        }
        for store in &self.stores {
            if self.path(*store).is_empty() {
                return Err(Error::invalid_argument(format!("{} needs '{}'", store.name(), store.option())));
            }
        }
        let twice = |names: Vec<String>| {
            (1..names.len()).find(|at| names[..*at].contains(&names[*at])).map(|at| names[at].clone())
        };
        let percentages = self.percentages.iter().map(f64::to_string).collect();
        for (option, names) in [
            ("percentagesOfAuxIdsToPick", percentages),
            ("storeNames", self.store_names.clone()),
            ("variableNames", self.variable_names.clone()),
        ] {
            if let Some(name) = twice(names) {
                return Err(Error::invalid_argument(format!("'{option}': '{name}' is given twice")));
            }
        }
        match self.write_csv && self.log_dir_path.is_none() {
            true => Err(Error::invalid_argument("'writeToCSV' needs 'logDirPath'")),
            false => Ok(self),
        }
    }
}

fn text(value: &Value) -> std::result::Result<String, &'static str> {
    value.as_str().filter(|text| !text.is_empty()).map(str::to_owned).ok_or("a text")
}

fn flag(value: &Value) -> std::result::Result<bool, &'static str> {
    value.as_bool().ok_or("true or false")
}

fn number(value: &Value) -> std::result::Result<u64, &'static str> {
    value.as_integer().and_then(|number| u64::try_from(number).ok()).ok_or("a number that is not negative")
}

/// A number in a range.
fn limited(
    value: &Value,
    range: RangeInclusive<f64>,
    expected: &'static str,
) -> std::result::Result<f64, &'static str> {
    let number = value.as_float().or_else(|| value.as_integer().map(|number| number as f64));
    number.filter(|number| range.contains(number)).ok_or(expected)
}

fn positive(value: &Value) -> std::result::Result<usize, &'static str> {
    let found = value.as_integer().and_then(|number| usize::try_from(number).ok()).filter(|number| *number > 0);
    found.ok_or("a positive number")
}

/// An array of texts, or one text with commas.
fn texts(value: &Value) -> std::result::Result<Vec<String>, &'static str> {
    let expected = "an array of names, or one text with commas";
    match value {
        Value::String(names) => {
            Ok(names.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect())
        }
        Value::Array(names) => {
            names.iter().map(|name| name.as_str().map(str::to_owned)).collect::<Option<_>>().ok_or(expected)
        }
        _ => Err(expected),
    }
}

fn percentages(value: &Value) -> std::result::Result<Vec<f64>, &'static str> {
    let number = |value: &Value| value.as_float().or(value.as_integer().map(|number| number as f64));
    let found: Option<Vec<f64>> = match value {
        Value::String(text) => text.split(',').map(|part| part.trim().parse().ok()).collect(),
        Value::Array(values) => values.iter().map(number).collect(),
        value => number(value).map(|number| vec![number]),
    };
    let is_right = |found: &Vec<f64>| !found.is_empty() && found.iter().all(|it| *it > 0.0 && *it <= 100.0);
    found.filter(is_right).ok_or("percentages above 0 and up to 100, separated by commas")
}

fn stores(value: &Value) -> std::result::Result<Vec<Store>, &'static str> {
    match (value.as_str(), value.as_integer()) {
        (Some("RAuxStore"), _) | (_, Some(0)) => Ok(vec![Store::Ntuple]),
        (Some("TAuxStore"), _) | (_, Some(1)) => Ok(vec![Store::Tree]),
        (Some("Both"), _) | (_, Some(2)) => Ok(vec![Store::Ntuple, Store::Tree]),
        _ => Err("\"RAuxStore\", \"TAuxStore\" or \"Both\", or 0, 1 or 2"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_have_the_published_names() {
        let text = r#"
            ntupleFilePath = "a.root"
            treeFilePath = "b.root"
            auxStoreToRun = 2
            nEntriesForWarmup = 10
            minAuxIds = 4
            percentagesOfAuxIdsToPick = "5, 12.5,100"
            storeNames = "EventInfo,AnalysisJets"
        "#;
        let config = Config::parse(text).unwrap();
        assert_eq!((config.n_warmup_entries, config.min_auxids), (10, 4));
        assert_eq!(config.percentages, [5.0, 12.5, 100.0]);
        assert_eq!(config.store_names, ["EventInfo", "AnalysisJets"]);
        assert_eq!(config.stores, [Store::Ntuple, Store::Tree]);
        let one =
            Config::parse("auxStoreToRun = 0\nntupleFilepath = 'a'\npercentagesOfAuxIdsToPick = [1, 2.5]").unwrap();
        assert_eq!((one.stores, one.percentages), (vec![Store::Ntuple], vec![1.0, 2.5]));
    }

    #[test]
    fn experiments_are_valid() {
        let files = "ntupleFilepath = 'a'\ntreeFilepath = 'b'\n";
        for experiment in EXPERIMENTS {
            let config = Config::parse_experiment(experiment.name, files).unwrap();
            assert_ne!(config, Config::parse(files).unwrap(), "{}", experiment.name);
            let scaled = Config::parse_experiment(experiment.name, &format!("{files}nEntries = 7")).unwrap();
            assert_eq!(scaled.n_entries, Some(7));
        }
        let error = Config::parse_experiment("table-5.4", files).unwrap_err().to_string();
        assert!(error.contains("table-5.3"), "{error}");
    }

    /// Each option takes what its documentation says, and nothing else.
    #[test]
    fn every_option_is_checked() {
        for option in OPTIONS {
            let error = Config::parse(&format!("{} = {{}}", option.names[0])).unwrap_err().to_string();
            assert!(error.contains("expected") && !error.contains("another option"), "{error}");
        }
        let files = "ntupleFilepath = 'a'\ntreeFilepath = 'b'\n";
        for (line, expected) in [
            ("nRun = 3", "nRuns"),
            ("nRuns = 0", "a positive number"),
            ("seed = 4294967296", "below 2^32"),
            ("percentagesOfAuxIdsToPick = '0'", "above 0"),
            ("percentagesOfAuxIdsToPick = '10,x'", "above 0"),
            ("minAuxids = 1\nminAuxIds = 2", "twice"),
            ("writeToCSV = true", "logDirPath"),
            ("percentagesOfAuxIdsToPick = '50, 50.0'", "'50' is given twice"),
            ("storeNames = 'a,b,a'", "'a' is given twice"),
            ("legacy = true\nnStores = 3", "itself"),
            ("nRuns = ", "expected"),
        ] {
            let error = Config::parse(&format!("{files}{line}")).unwrap_err().to_string();
            assert!(error.contains(expected), "{line}: {error}");
        }
        assert!(Config::parse("treeFilepath = 'b'").unwrap_err().to_string().contains("ntupleFilepath"));
    }
}
