//! What many runs say together.

use serde::Serialize;

use crate::choose::Entries;
use crate::compare::Compared;
use crate::config::{Config, Store};
use crate::run::{Benchmark, Explained, Load, Run, VariableTimes, clock_nanoseconds, slowest};
use crate::statistics::{DISTANCE, Median, NEIGHBOURS, clusters, outliers};

/// The runs of one store and percentage.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// Over what.
    pub store: Store,
    /// Percentage of the variables.
    pub percentage: f64,
    /// Mean of all runs, in seconds.
    pub mean: f64,
    /// The first run, in seconds.
    pub first: f64,
    /// Mean of the others, in seconds; `None` of a single run.
    pub others: Option<f64>,
    /// Median of all runs, in seconds.
    pub median: Median,
    /// Median over the runs of the median load, in nanoseconds.
    pub median_load: f64,
    /// The slowest load of all runs divided by the median load.
    pub slowest_to_median: f64,
    /// Numbers of the runs that depart from the others.
    pub outliers: Vec<usize>,
    /// Values loaded in a run.
    pub values: u64,
    /// The slowest loads of all runs.
    pub slow: SlowLoads,
}

/// The slowest loads of a store, and the clusters that they form.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SlowLoads {
    /// Slowest first.
    pub loads: Vec<Load>,
    /// The cluster of each; `None` for those without enough neighbours.
    pub clusters: Vec<Option<usize>>,
    /// How many of them had to decode entries.
    pub decoded: usize,
    /// What was decoded in the slowest one.
    pub explained: Option<Explained>,
}

impl Summary {
    /// Of all runs with a store and a percentage; `None` if there are none.
    pub fn of(runs: &[Run], store: Store, percentage: f64) -> Option<Self> {
        let own: Vec<&Run> = runs.iter().filter(|run| run.store == store && run.percentage == percentage).collect();
        let seconds: Vec<f64> = own.iter().map(|run| run.seconds).collect();
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
        let (first, others) = seconds.split_first()?;
        let loads = slowest(own.iter().flat_map(|run| run.slowest.iter().cloned()).collect());
        let times: Vec<f64> = loads.iter().map(|load| load.nanoseconds as f64 / 1000.0).collect();
        let median_load = Median::of(own.iter().map(|run| run.median)).median;
        let longest = loads.first().map_or(0.0, |load| load.nanoseconds as f64);
        Some(Self {
            store,
            percentage,
            mean: mean(&seconds),
            first: *first,
            others: (!others.is_empty()).then(|| mean(others)),
            median: Median::of(seconds.iter().copied()),
            median_load,
            slowest_to_median: longest / median_load.max(1.0),
            outliers: outliers(&seconds).into_iter().map(|place| own[place].number).collect(),
            values: own.first().map_or(0, |run| run.values),
            slow: SlowLoads {
                clusters: clusters(&times, DISTANCE, NEIGHBOURS),
                decoded: loads.iter().filter(|load| !load.decoded.is_empty()).count(),
                explained: None,
                loads,
            },
        })
    }
}

/// All results, for programs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// The configuration with all defaults.
    pub config: Config,
    /// What reading the clock adds to a load, in nanoseconds.
    pub clock_nanoseconds: f64,
    /// What was chosen with less than was asked for, or left out.
    pub warnings: Vec<String>,
    /// The entries that are loaded.
    pub entries: Entries,
    /// The comparison of what the stores load.
    pub compared: Compared,
    /// Of each percentage and store.
    pub summaries: Vec<Summary>,
    /// All runs.
    pub runs: Vec<Run>,
    /// Each variable by itself, if it was measured.
    pub variables: Vec<VariableTimes>,
}

impl Report {
    /// The report of runs, perhaps of several processes, in the order in which they were done. They are numbered again.
    ///
    /// # Errors
    /// Those of opening and reading.
    pub fn of(benchmark: &Benchmark<'_>, mut runs: Vec<Run>) -> tupelo::Result<Self> {
        let config = benchmark.config();
        let (compared, mut summaries) = (benchmark.compare()?, Vec::new());
        for percentage in &config.percentages {
            for store in &config.stores {
                let own = runs.iter_mut().filter(|run| run.store == *store && run.percentage == *percentage);
                own.enumerate().for_each(|(number, run)| run.number = number + 1);
                let Some(mut summary) = Summary::of(&runs, *store, *percentage) else { continue };
                if let Some(slowest) = summary.slow.loads.first() {
                    summary.slow.explained = benchmark.explain(*store, *percentage, slowest.clone())?;
                }
                summaries.push(summary);
            }
        }
        let variables = if config.variable_times { benchmark.variable_times()? } else { Vec::new() };
        let (config, warnings) = (config.clone(), benchmark.warnings().to_vec());
        let (entries, clock_nanoseconds) = (benchmark.entries.clone(), clock_nanoseconds());
        Ok(Self { config, clock_nanoseconds, warnings, entries, compared, summaries, runs, variables })
    }
}
