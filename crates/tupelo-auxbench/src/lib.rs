//! The published benchmark of ATLAS's auxiliary stores: entry by entry, all chosen variables of all chosen stores are loaded, over
//! an ntuple (`RAuxStore`) and over a tree (`TAuxStore`) of the same events. Stores, variables and entries are chosen by the
//! published random numbers, and the options have the published names.
//!
//! Beyond the published one, what both stores load is compared value by value, medians have confidence intervals, runs that
//! depart are named, and the slow loads are explained by what was decoded in them.
//!
//! ```no_run
//! use tupelo_auxbench::{Benchmark, Config, Report, Store};
//! use tupelo_xaod::Event;
//!
//! let config = Config::parse("ntupleFilepath = 'ntuple.root'\ntreeFilepath = 'tree.root'\nnRuns = 5")?;
//! let open = |_: Store, path: &str| Event::open(tupelo::open(path));
//! let benchmark = Benchmark::new(config, &open)?;
//! let runs = benchmark.run(|_, _| Ok::<_, tupelo::Error>(()))?;
//! for summary in Report::of(&benchmark, runs)?.summaries {
//!     println!("{}: {} s", summary.store.name(), summary.median.median);
//! }
//! # Ok::<(), tupelo::Error>(())
//! ```

mod choose;
mod compare;
mod config;
mod digest;
mod random;
mod report;
mod run;
mod statistics;

pub use choose::Entries;
pub use compare::Compared;
pub use config::{Config, ConfigOption, EXPERIMENTS, Experiment, OPTIONS, PageCache, Store};
pub use random::Random;
pub use report::{Report, SlowLoads, Summary};
pub use run::{Benchmark, Explained, Load, Open, Run, VariableTimes};
pub use statistics::Median;
