//! Every command on every damaged file ends within limits of time and memory, with a status, and without a panic.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use arrow_array::{ArrayRef, Int32Array, RecordBatch, RecordBatchOptions};
use arrow_schema::Schema as ArrowSchema;
use tupelo::schema::Schema;
use tupelo::writer::TreeOptions;

use super::{Place, data, summarise, tupelo};

/// Limit of the address space: the memory budget, and mappings of the system.
const MEMORY_KIB: u64 = 3 << 20;
/// Limits of CPU time and wall-clock time, in seconds.
const CPU_SECONDS: u64 = 20;
const WALL_SECONDS: u64 = 120;
/// Default time of a test, in seconds; `TUPELO_COMMAND_SECONDS` overrides it.
const DAMAGED_SECONDS: u64 = 45;
const MUTANT_SECONDS: u64 = 15;
/// A prime that does not divide the number of runs.
const STRIDE: usize = 7919;
/// The memory budget of the commands.
const BUDGET: &str = "256MiB";

/// Commands that read a file; `OUT` is an output file.
const COMMANDS: [&[&str]; 14] = [
    &["ls", "-l", "FILE"],
    &["ls", "--recover", "FILE"],
    &["schema", "--columns", "FILE"],
    &["head", "FILE"],
    &["dump", "FILE", "--entries", ":100000", "-o", "OUT.jsonl"],
    &["dump", "FILE", "--entries", ":100000", "-o", "OUT.arrow", "--binary-strings"],
    &["dump", "FILE", "--entries", ":100000", "-o", "OUT.parquet", "--binary-strings"],
    &["layout", "FILE"],
    &["verify", "--deep", "FILE"],
    &["index", "FILE"],
    &["copy", "FILE", "OUT.root", "--entries", ":100000"],
    &["copy", "FILE", "OUT.root", "--entries", ":100", "--split-entries", "40", "--objects"],
    &["show", "FILE"],
    &["show", "FILE", "-o", "OUT.svg"],
];
/// Commands that change the file, which are run on a copy.
const CHANGES: [&[&str]; 2] = [
    &["verify", "--repair", "--deep", "FILE"],
    &["copy", "--append", "FILE", "FILE", "--as", "again", "--entries", ":9999"],
];

/// Runs a command with limits; returns what went wrong.
fn check(arguments: &[&str], file: &Path, folder: &Path) -> Result<(), String> {
    let out = folder.join("out");
    let fill = |argument: &&str| match *argument {
        "FILE" => file.display().to_string(),
        other => other.replace("OUT", &out.display().to_string()),
    };
    let arguments: Vec<String> = arguments.iter().map(fill).collect();
    let script = format!(
        "ulimit -v {MEMORY_KIB}; ulimit -t {CPU_SECONDS}; ulimit -c 0; exec timeout -s KILL {WALL_SECONDS} \"$@\""
    );
    let mut shell = Command::new("sh");
    shell.args(["-c", &script, "sh", env!("CARGO_BIN_EXE_tupelo"), "--threads", "2"]).args(&arguments);
    shell.args(["--memory-budget", BUDGET]);
    let output = shell.stdin(Stdio::null()).stdout(Stdio::null()).output().expect("a shell");
    let said = String::from_utf8_lossy(&output.stderr);
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        if entry.file_name().to_string_lossy().starts_with("out") {
            fs::remove_file(entry.path()).expect("a file");
        }
    }
    let end: String = said.chars().take(500).collect();
    if said.contains("panicked") || said.contains("overflowed its stack") || said.contains("memory allocation of") {
        return Err(format!("{arguments:?}: {end}"));
    }
    match (output.status.code(), output.status.signal()) {
        (Some(0..=2), _) => Ok(()),
        (code, signal) => Err(format!("{arguments:?}: status {code:?}, signal {signal:?}: {end}")),
    }
}

/// A file to run a command on, with its name in messages.
type Case<'a> = (String, Vec<u8>, &'a [&'a str]);

/// Runs commands on files, on as many threads as there are cores, until `next` returns `None` or the time is over.
/// Returns the number of runs.
fn check_all<'a>(seconds: u64, next: impl Fn(usize) -> Option<Case<'a>> + Sync) -> usize {
    let (number, runs, faults) = (AtomicUsize::new(0), AtomicUsize::new(0), Mutex::new(Vec::new()));
    let (started, patience) = (Instant::now(), Duration::from_secs(seconds));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                let folder = tempfile::tempdir().expect("a folder");
                while let Some((name, bytes, arguments)) = next(number.fetch_add(1, Ordering::Relaxed)) {
                    if started.elapsed() > patience {
                        break;
                    }
                    let file = folder.path().join("file.root");
                    fs::write(&file, &bytes).expect("a file");
                    if let Err(fault) = check(arguments, &file, folder.path()) {
                        faults.lock().expect("a list").push(format!("{name}: {fault}"));
                    }
                    runs.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    let (runs, faults) = (runs.into_inner(), faults.into_inner().expect("a list"));
    assert!(faults.is_empty(), "{} of {runs} runs:\n{}", faults.len(), faults.join("\n"));
    runs
}

/// Time for a test, in seconds.
fn seconds(usual: u64) -> u64 {
    std::env::var("TUPELO_COMMAND_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut files: Vec<_> = entries.filter(|path| path.extension().is_some_and(|e| e == "root")).collect();
    files.sort();
    files
}

fn all_commands() -> Vec<&'static [&'static str]> {
    COMMANDS.iter().chain(&CHANGES).copied().collect()
}

#[test]
fn commands_survive_damaged_files() {
    let bad = files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/bad"));
    assert!(bad.len() > 200, "{} damaged files", bad.len());
    let hostile = files(&data().map(|folder| folder.join("hostile")).unwrap_or_default());
    let (known, commands): (Vec<_>, _) = (bad.iter().chain(&hostile).collect(), all_commands());
    let all = known.len() * commands.len();
    // In an order that covers all files and commands evenly, because the time may end early on slow machines.
    let next = |number: usize| {
        let place = (number < all).then(|| number * STRIDE % all)?;
        let (path, command) = (known[place % known.len()], commands[place / known.len()]);
        Some((path.display().to_string(), fs::read(path).expect("a file"), command))
    };
    let runs = check_all(seconds(DAMAGED_SECONDS), next);
    let (bad, hostile) = (bad.len(), hostile.len());
    let line = format!("command: {runs} of {all} runs on {bad} damaged and {hostile} hostile files ended well");
    summarise("command-damaged", &line);
}

/// A portable pseudo-random number generator (SplitMix64).
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % end.max(1) as u64) as usize
    }
}

/// A file with flipped bits, changed bytes, a duplicated piece, or a truncated end.
fn mutant(file: &[u8], seed: u64) -> Vec<u8> {
    let (mut random, mut bytes) = (Random(seed), file.to_vec());
    for _ in 0..=random.below(4) {
        let at = random.below(bytes.len());
        match random.below(8) {
            0..3 => bytes[at] ^= 1 << random.below(8),
            3..6 => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][random.below(5)],
            6 => {
                let (from, length) = (random.below(bytes.len()), 1 + random.below(64));
                let piece = bytes[from..bytes.len().min(from + length)].to_vec();
                let end = bytes.len().min(at + piece.len());
                bytes[at..end].copy_from_slice(&piece[..end - at]);
            }
            _ => bytes.truncate(at.max(1)),
        }
    }
    bytes
}

#[test]
fn commands_survive_mutants() {
    let place = Place::new();
    let (small, all) = (place.path("small.root"), place.path("all.root"));
    tupelo(&["generate", "nanoaod", "--events", "5", &small]).ok();
    for name in ["dir/One", "Two"] {
        tupelo(&["copy", &small, &all, "--append", "--as", name, "--fields", "Muon_*,MET_pt", "--compression", "none"])
            .ok();
    }
    let mut originals: Vec<Vec<u8>> = [&small, &all].map(|path| fs::read(path).expect("a file")).into();
    let real = files(&data().unwrap_or_default()).into_iter().chain(files(&data().unwrap_or_default().join("trees")));
    originals.extend(real.map(|path| fs::read(path).expect("a file")).filter(|bytes| bytes.len() < 20_000));
    let commands = all_commands();
    let next = |number: usize| {
        let (seed, file) = (number / commands.len(), number / commands.len() % originals.len());
        let name = format!("mutant {seed} of file {file}");
        Some((name, mutant(&originals[file], seed as u64), commands[number % commands.len()]))
    };
    let runs = check_all(seconds(MUTANT_SECONDS), next);
    let files = originals.len();
    summarise("command-mutants", &format!("command: {runs} runs on mutants of {files} small files ended well"));
}

/// A tree of one batch.
fn write_tree(path: &str, batch: &RecordBatch) {
    let file = tupelo::create(path).expect("a file");
    let schema = Schema::from_arrow(&batch.schema()).expect("a schema");
    let mut tree = file.tree("Events", &schema, TreeOptions::default().with_auto_flush(0)).expect("a tree");
    tree.write(batch).expect("entries");
    tree.finish().expect("a tree");
    file.finish().expect("a file");
}

/// Defect: these took hours to import, to export and to count with a cut.
#[test]
fn entries_without_values_take_no_time() {
    let place = Place::new();
    let (file, out) = (place.path("nothing.root"), place.path("out.root"));
    for entries in [1 << 48, 1 << 62] {
        let options = RecordBatchOptions::new().with_row_count(Some(entries));
        let batch = RecordBatch::try_new_with_options(ArrowSchema::empty().into(), Vec::new(), &options);
        write_tree(&file, &batch.expect("a batch"));
        if entries == 1 << 62 {
            let error = tupelo(&["count", &file]).fails(1);
            assert!(
                error.contains("tree of 4611686018427387904 entries exceeds the limit of 281474976710656"),
                "{error}"
            );
            continue;
        }
        assert_eq!(tupelo(&["count", &file]).ok(), format!("{entries}\n"));
        let folder = tempfile::tempdir().expect("a folder");
        let others: [&[&str]; 9] = [
            &["import", "FILE", "OUT.root"],
            &["import", "FILE", "OUT.root", "--validate", "full"],
            &["export", "FILE", "OUT.root"],
            &["head", "FILE", "--entries", ":"],
            &["head", "FILE", "--entries", ":", "--format", "jsonl"],
            &["dump", "FILE"],
            &["dump", "FILE", "-o", "OUT.parquet"],
            &["count", "FILE", "--cut", "1 > 0"],
            &["verify", "FILE"],
        ];
        let faults = all_commands().into_iter().chain(others).filter_map(|command| {
            let fault = check(command, Path::new(&file), folder.path()).err()?;
            Some(format!("{command:?}: {fault}"))
        });
        let faults: Vec<String> = faults.collect();
        assert!(faults.is_empty(), "{}", faults.join("\n"));
        // A command has added a copy.
        let tree = format!("{file}:Events");
        for (command, refused) in [("import", "no branch can be imported"), ("export", "no field can be exported")] {
            let error = tupelo(&[command, &tree, &out]).fails(1);
            assert!(error.contains(refused), "{error}");
            assert!(!fs::exists(&out).expect("an answer"));
        }
    }
}

/// The others of the file are imported.
#[test]
fn a_tree_without_branches_is_not_an_ntuple() {
    let place = Place::new();
    let (one, other, both) = (place.path("one.root"), place.path("other.root"), place.path("both.root"));
    let x: ArrayRef = Arc::new(Int32Array::from(vec![1, 2]));
    let options = RecordBatchOptions::new().with_row_count(Some(3));
    let file = tupelo::create(&both).expect("a file");
    let batches = [
        ("empty", RecordBatch::try_new_with_options(ArrowSchema::empty().into(), Vec::new(), &options)),
        ("full", RecordBatch::try_from_iter([("x", x)])),
    ];
    for (name, batch) in batches {
        let batch = batch.expect("a batch");
        let schema = Schema::from_arrow(&batch.schema()).expect("a schema");
        let mut tree = file.tree(name, &schema, TreeOptions::default()).expect("a tree");
        tree.write(&batch).expect("entries");
        tree.finish().expect("a tree");
    }
    file.finish().expect("a file");
    let run = tupelo(&["import", &both, &one]);
    assert!(run.stderr.contains("tree 'empty' is left out: none of its branches can be imported"), "{}", run.stderr);
    run.ok();
    assert_eq!(tupelo(&["count", &one]).ok(), "2\n");
    let error = tupelo(&["import", &format!("{both}:empty"), &other]).fails(1);
    assert!(error.contains("both.root") && error.contains("no branch can be imported"), "{error}");
}
