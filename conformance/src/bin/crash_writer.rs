//! A writer process for tests that kill it, fill its disk or make its system calls fail.
//!
//! | command | what it does |
//! |---|---|
//! | `new FILE` | makes a file with an ntuple `events`, checkpoint after checkpoint; says the entries of each |
//! | `grow FILE` | adds to `run1/hits` of [`whole_file`](conformance::crash::scripts::whole_file) in the same way |
//! | `forget FILE` | makes a file with a checkpoint, and ends without finishing it |
//! | `handle FILE` | has an error that changes nothing, and ends without finishing |
//! | `fail FILE` | has the error by which the file cannot be finished, and ends |
//! | `once FILE SALT` | writes a file without checkpoints, with entries of that salt |
//! | `repair FILE` | repairs a file |

use std::io::Write;
use std::process::ExitCode;

use conformance::crash::content::{events, schema};
use tupelo::ops::repair::repair;
use tupelo::{FileWriter, NtupleWriter, Result, WriteOptions};

/// Entries between two checkpoints.
const STEP: u64 = 25;
/// Checkpoints of a process that is not killed.
const CHECKPOINTS: u64 = 400;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match arguments.as_slice() {
        ["new", path] => new(path),
        ["grow", path] => grow(path),
        ["forget", path] => forget(path),
        ["handle", path] => handle(path),
        ["fail", path] => fail(path),
        ["repair", path] => repair(path).map(drop),
        ["once", path, salt] => once(path, salt.parse().unwrap_or_default()),
        _ => {
            eprintln!("crash_writer new|grow|forget|handle|fail|repair FILE, or once FILE SALT");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("crash_writer: {error}");
            ExitCode::FAILURE
        }
    }
}

fn options() -> WriteOptions {
    WriteOptions::default().with_page_bytes(256)
}

fn say(words: &str) {
    let mut out = std::io::stdout().lock();
    // Who is killed by a reader that went away has nothing more to say either.
    let _ = writeln!(out, "{words}").and_then(|()| out.flush());
}

fn fill(writer: &mut NtupleWriter, salt: u64) -> Result<()> {
    for _ in 0..CHECKPOINTS {
        let at = writer.entries();
        writer.write(&events(at..at + STEP, salt, None))?;
        writer.checkpoint()?;
        say(&format!("{}", at + STEP));
    }
    Ok(())
}

fn new(path: &str) -> Result<()> {
    let file = FileWriter::create(path)?;
    let mut writer = file.ntuple("events", &schema(false), options())?;
    fill(&mut writer, 1)?;
    writer.finish()?;
    file.finish()
}

fn grow(path: &str) -> Result<()> {
    let file = FileWriter::update(path)?;
    let mut writer = file.append("run1/hits", options())?;
    fill(&mut writer, 2)?;
    writer.finish()?;
    file.finish()
}

fn forget(path: &str) -> Result<()> {
    let file = FileWriter::create(path)?;
    let mut writer = file.ntuple("events", &schema(false), options())?;
    writer.write(&events(0..STEP, 1, None))?;
    writer.checkpoint()
}

fn handle(path: &str) -> Result<()> {
    let file = FileWriter::create(path)?;
    let mut writer = file.ntuple("events", &schema(false), options())?;
    writer.write(&events(0..STEP, 1, None))?;
    // Another one of that name, and fields that there are.
    assert!(file.ntuple("events", &schema(false), options()).is_err());
    assert!(writer.add_fields(&schema(false)).is_err());
    Ok(())
}

fn fail(path: &str) -> Result<()> {
    let file = FileWriter::create(path)?;
    let mut writer = file.ntuple("events", &schema(false), options())?;
    let mut context = writer.fill_context()?;
    context.write(&events(0..STEP, 1, None))?;
    drop(context);
    assert!(writer.finish().is_err());
    Ok(())
}

fn once(path: &str, salt: u64) -> Result<()> {
    let file = FileWriter::create(path)?;
    let mut writer = file.ntuple("events", &schema(false), options())?;
    for step in 0..20 {
        writer.write(&events(step * STEP..(step + 1) * STEP, salt, None))?;
        writer.flush_cluster()?;
    }
    writer.finish()?;
    file.finish()
}
