//! Tests of the programs by stdout, stderr and exit status.

#[cfg(target_os = "linux")]
mod any_file;
#[cfg(target_os = "linux")]
mod browsing;
mod copying;
mod damage;
mod deviations;
mod explaining;
mod exports;
#[cfg(target_os = "linux")]
mod faults;
mod file_operations;
mod imports;
mod inspecting;
mod joining;
mod json_documents;
mod leaving_out;
#[cfg(unix)]
mod life;
mod merging;
mod objects;
#[cfg(target_os = "linux")]
mod operation_faults;
mod operations;
#[cfg(unix)]
mod outputs;
mod raw;
mod reading;
mod real_files;
mod several;
mod showing;
mod splitting;
mod terminal;
mod tuning;
mod usage;
mod writing;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

/// The result of a run.
struct Run {
    status: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Run {
    /// Stdout of a successful run; panics otherwise.
    #[track_caller]
    fn ok(self) -> String {
        assert_eq!(self.status, Some(0), "{}{}", self.stdout, self.stderr);
        self.stdout
    }

    /// Stdout as one JSON document.
    #[track_caller]
    fn json(self) -> Value {
        serde_json::from_str(&self.ok()).expect("one JSON document")
    }

    /// Stderr of a run with this exit status; panics otherwise.
    #[track_caller]
    fn fails(self, status: i32) -> String {
        assert_eq!(self.status, Some(status), "{}{}", self.stdout, self.stderr);
        self.stderr
    }
}

/// A run of `tupelo`, or of `tupelo-generate` if the first argument is `generate`.
fn command(arguments: &[&str]) -> Command {
    let (program, arguments) = match arguments {
        ["generate", arguments @ ..] => (env!("CARGO_BIN_EXE_tupelo-generate"), arguments),
        arguments => (env!("CARGO_BIN_EXE_tupelo"), arguments),
    };
    let mut command = Command::new(program);
    // Drawings depend on the locale.
    command.args(arguments).env_remove("RUST_BACKTRACE").env("LC_ALL", "C.UTF-8");
    command
}

fn tupelo(arguments: &[&str]) -> Run {
    let Output { status, stdout, stderr } = command(arguments).output().expect("the command starts");
    let text = |bytes| String::from_utf8(bytes).expect("the command writes UTF-8");
    Run { status: status.code(), stdout: text(stdout), stderr: text(stderr) }
}

/// A temporary directory for generated files.
struct Place {
    directory: TempDir,
}

impl Place {
    fn new() -> Self {
        Self { directory: tempfile::tempdir().expect("a temporary directory") }
    }

    fn path(&self, name: &str) -> String {
        self.directory.path().join(name).to_str().expect("a path in UTF-8").to_owned()
    }

    /// The files in the directory.
    #[cfg(unix)]
    fn files(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(&self.directory).expect("the directory");
        let mut files: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
        files.sort();
        files
    }

    /// 3000 events of `b2hhh` with small pages and several clusters.
    fn b2hhh(&self) -> String {
        let path = self.path("b2hhh.root");
        let sizes = ["--page-bytes", "4KiB", "--cluster-bytes", "100kB"];
        let arguments = [&["generate", "b2hhh", "--events", "3000", "--seed", "7", &path], &sizes[..]].concat();
        tupelo(&arguments).ok();
        path
    }

    /// 500 events of `nanoaod`.
    fn nanoaod(&self) -> String {
        let path = self.path("nanoaod.root");
        tupelo(&["generate", "nanoaod", "--events", "500", &path]).ok();
        path
    }
}

/// The folder of real files, if it exists.
fn data() -> Option<PathBuf> {
    let given = std::env::var_os("TUPELO_DATA").filter(|path| !path.is_empty()).map(PathBuf::from);
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    given.or(Some(beside)).filter(|path| path.is_dir())
}

/// Adds a line to the summary of `make test`.
fn summarise(name: &str, line: &str) {
    println!("{line}");
    if let Some(folder) = std::env::var_os("TUPELO_SUMMARY") {
        let path = Path::new(&folder).join(format!("{name}.txt"));
        std::fs::create_dir_all(&folder).and_then(|()| std::fs::write(path, format!("{line}\n"))).expect("a summary");
    }
}
