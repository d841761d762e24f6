//! `tupelo auxbench`: the published benchmark of ATLAS's auxiliary stores.

mod report;
mod tables;

use std::collections::BTreeMap;
// FS: the configuration, the times of loads, and the report.
use std::fs;
use std::io::{BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Deserialize;
use serde_json::json;
use tupelo::OpenOptions;
use tupelo::reader::Location;
use tupelo_auxbench::{Benchmark, Config, Load, Open, Report, Run, Store};
use tupelo_xaod::Event;

use super::Reading;
use crate::console::Console;
use crate::failure::Failure;
use crate::table::{count, things};

/// Run the published benchmark of ATLAS's auxiliary stores over ntuples and trees
///
/// CONFIG is a TOML file with the options of the published benchmark, by their names; docs/guide/auxbench.md lists them. Entry
/// by entry, all chosen variables of the chosen stores are loaded, over an ntuple (RAuxStore) and over a tree (TAuxStore)
/// with the same events. What the stores load is compared, value by value: the exit status is 1 if they differ.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tupelo auxbench aux.toml
  tupelo auxbench aux.toml --experiment figure-6.1 --report figure-6.1
  tupelo auxbench aux.toml --json > results.json")]
pub(crate) struct Args {
    /// TOML file with the options
    #[arg(value_name = "CONFIG")]
    config: PathBuf,
    /// Use the options of a published experiment that the file does not give: table-5.1, table-5.2, table-5.3, table-6.5 or
    /// figure-6.1
    #[arg(long, value_name = "NAME")]
    experiment: Option<String>,
    /// Also write a report to this folder: report.md with tables, machine and configuration, and a plot of the time of each
    /// load over its entry for each store and percentage, of its last run
    #[arg(long, value_name = "DIR")]
    report: Option<PathBuf>,
    /// Create the folder of logDirPath if it is missing, without asking
    #[arg(long)]
    create_log_dir: bool,
    /// Print one JSON document with all runs instead of tables
    #[arg(long)]
    json: bool,
    /// Do the runs of one of several processes, counted from 0, and print only them
    #[arg(long, hide = true, value_name = "NUMBER")]
    process: Option<usize>,
    #[command(flatten)]
    reading: Reading,
}

pub(crate) fn run(args: &Args, console: &Console) -> Result<(), Failure> {
    let name = args.config.display();
    let text = fs::read_to_string(&args.config)
        .map_err(|error| Failure::usage(format_args!("cannot read {name}: {error}")))?;
    let config = match &args.experiment {
        Some(experiment) => Config::parse_experiment(experiment, &text),
        None => Config::parse(&text),
    };
    let config = config.map_err(|error| {
        Failure::usage(format_args!("{name}: {error}"))
            .with_hint("docs/guide/auxbench.md lists the options and experiments")
    })?;
    if let Some(folder) = &args.report {
        fs::create_dir_all(folder).map_err(|error| not_made(folder, &error))?;
    }
    if let Some(folder) = config.log_dir_path.as_deref().filter(|_| config.write_csv) {
        make_folder(folder, args.create_log_dir)?;
    }
    let disk = config.disk();
    let open = |_: Store, path: &str| {
        let options = args
            .reading
            .options(&Location::parse(path))
            .map_err(|failure| tupelo::Error::invalid_argument(failure.message.unwrap_or_default()))?;
        Event::open(disk.into_iter().fold(options, OpenOptions::with_disk_speed))
    };
    let benchmark = Benchmark::new(config, &open)?;
    if args.process.is_none() {
        benchmark.warnings().iter().for_each(|warning| console.warn(warning));
    }
    let mut last = report::LastRuns::default();
    let after = |run: &Run, loads: &[Load]| {
        if args.report.is_some() && run.number == benchmark.config().n_runs {
            last.keep(run, loads);
        }
        let number = run.number + args.process.unwrap_or(0) * benchmark.config().n_runs;
        after(&Run { number, ..run.clone() }, loads, benchmark.config(), console)
    };
    let runs = match (args.process, benchmark.config().n_processes) {
        (None, processes @ 2..) => in_processes(processes)?,
        _ => benchmark.run(after)?,
    };
    if let Some(folder) = &args.report {
        last.draw(folder)?;
    }
    if args.process.is_some() {
        return console.print_json("auxbench", json!({ "file": name.to_string(), "runs": runs }));
    }
    let report = Report::of(&benchmark, runs)?;
    if let Some(folder) = &args.report {
        let about = args.experiment.as_deref().unwrap_or("auxiliary stores");
        report::write(folder, about, &report, &benchmark, &open)?;
    }
    match args.json {
        true => console.print_json("auxbench", to_json(&report, args, &open)?)?,
        false => console.print(&tables::print(&report, &benchmark, console.text()))?,
    }
    match report.compared.differing.as_slice() {
        [] => Ok(()),
        [first, others @ ..] => {
            let others = if others.is_empty() { String::new() } else { format!(" and {} more", others.len()) };
            let what = format_args!("the stores load different values of '{first}'{others}");
            Err(Failure::new(what).with_hint("are they of the same events? `tupelo diff` compares the files"))
        }
    }
}

/// The runs of processes that do what this one was told, one after the other.
fn in_processes(processes: usize) -> Result<Vec<Run>, Failure> {
    #[derive(Deserialize)]
    struct Done {
        runs: Vec<Run>,
    }
    let failed = |error: &dyn std::fmt::Display| Failure::new(format_args!("cannot start a process: {error}"));
    let program = std::env::current_exe().map_err(|error| failed(&error))?;
    let mut runs = Vec::new();
    for process in 0..processes {
        let mut command = Command::new(&program);
        for argument in std::env::args_os().skip(1) {
            let is_own = argument == "auxbench";
            command.arg(argument);
            if is_own {
                command.args(["--process", &process.to_string()]);
            }
        }
        command.stderr(Stdio::inherit());
        let output = command.output().map_err(|error| failed(&error))?;
        if !output.status.success() {
            return Err(Failure::new(format_args!("process {process} failed: {}", output.status)));
        }
        let done: Done = serde_json::from_slice(&output.stdout)
            .map_err(|error| Failure::new(format_args!("process {process} printed no runs: {error}")))?;
        runs.extend(done.runs);
    }
    Ok(runs)
}

/// Makes the folder of CSV files if it is wanted.
fn make_folder(folder: &Path, is_wanted: bool) -> Result<(), Failure> {
    if folder.is_dir() {
        return Ok(());
    }
    let name = folder.display();
    if folder.exists() {
        return Err(Failure::usage(format_args!("{name}, the logDirPath, is not a folder")));
    }
    if !is_wanted {
        let missing = || Failure::usage(format_args!("the folder {name} of logDirPath does not exist"));
        let hint = "--create-log-dir makes it";
        if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
            return Err(missing().with_hint(hint));
        }
        eprint!("The folder {name} of logDirPath does not exist. Make it? [y/N] ");
        let mut answer = String::new();
        let is_read = std::io::stdin().read_line(&mut answer).is_ok();
        if !is_read || !matches!(answer.trim(), "y" | "Y" | "yes") {
            return Err(missing().with_hint(hint));
        }
    }
    fs::create_dir_all(folder).map_err(|error| not_made(folder, &error))
}

fn not_made(folder: &Path, error: &std::io::Error) -> Failure {
    Failure::new(format_args!("cannot make {}: {error}", folder.display()))
}

/// What is done after each run: its line, and its loads as CSV.
fn after(run: &Run, loads: &[Load], config: &Config, console: &Console) -> Result<(), Failure> {
    let (store, number) = (run.store.name(), run.number);
    if config.print_warmup_results {
        console.note(&format!("{store} run {number}, {}%: warm-up {:.3} ms", run.percentage, run.warmup_seconds * 1e3));
    }
    if config.print_intermediate_results {
        let Run { seconds, mean, median, .. } = run;
        let of = format!("{} values in {}", count(run.values), things(run.loads, "load"));
        let times = format!("mean {:.2} µs, median {:.2} µs", mean / 1e3, median / 1e3);
        console.note(&format!("{store} run {number}, {}%: {:.3} ms, {of}, {times}", run.percentage, seconds * 1e3));
    }
    match config.log_dir_path.as_deref().filter(|_| config.write_csv) {
        Some(folder) => {
            let path = folder.join(format!("loads_{store}_{}.csv", run.percentage));
            write_loads(&path, run.number, loads)
                .map_err(|error| Failure::new(format_args!("cannot write {}: {error}", path.display())))
        }
        None => Ok(()),
    }
}

/// Writes the loads of a run; the first run begins the file.
fn write_loads(path: &Path, run: usize, loads: &[Load]) -> std::io::Result<()> {
    let file = if run == 1 { fs::File::create(path)? } else { fs::File::options().append(true).open(path)? };
    let mut out = BufWriter::new(file);
    if run == 1 {
        writeln!(out, "run,entry,nanoseconds,values,decoded_from,decoded_to")?;
    }
    for load in loads {
        let Load { entry, nanoseconds, values, .. } = load;
        let decoded = load.decoded_entries().map(|entries| format!("{},{}", entries.start, entries.end));
        let decoded = decoded.unwrap_or_else(|| ",".to_owned());
        writeln!(out, "{run},{entry},{nanoseconds},{values},{decoded}")?;
    }
    out.flush()
}

/// The machine and the versions, as far as the system says.
fn machine() -> BTreeMap<&'static str, String> {
    let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let cpu = text("/proc/cpuinfo");
    let model = cpu.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    let kernel = text("/proc/sys/kernel/osrelease");
    BTreeMap::from([
        ("version", env!("CARGO_PKG_VERSION").to_owned()),
        ("cpu", model.map_or("", |(_, model)| model.trim()).to_owned()),
        ("cores", std::thread::available_parallelism().map_or(0, usize::from).to_string()),
        ("threads", tupelo::threads().to_string()),
        ("kernel", kernel.trim().to_owned()),
    ])
}

/// The identities of the ntuple and the tree.
fn identities(config: &Config, open: &Open<'_>) -> Result<serde_json::Map<String, serde_json::Value>, Failure> {
    let mut identities = serde_json::Map::new();
    for store in &config.stores {
        let event = open(*store, config.path(*store))?;
        identities.insert(store.name().to_owned(), event.table().identity()?.into());
    }
    Ok(identities)
}

fn to_json(report: &Report, args: &Args, open: &Open<'_>) -> Result<serde_json::Value, Failure> {
    let value = serde_json::to_value(report).map_err(|error| Failure::new(error.to_string()))?;
    let identities = identities(&report.config, open)?;
    let file = args.config.display().to_string();
    let mut document = json!({ "file": file, "machine": machine(), "identities": identities });
    if let (Some(document), serde_json::Value::Object(members)) = (document.as_object_mut(), value) {
        document.extend(members);
    }
    Ok(document)
}
