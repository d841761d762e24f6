//! Writing with checkpoints, recorded.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use bytes::Bytes;
use tupelo::schema::Schema;
use tupelo::writer::AttributeSetWriter;
use tupelo::{Compression, FileWriter, NtupleWriter, Result, WriteOptions};
use tupelo_storage::adapter::{DiskLog, RecordingDisk};
use tupelo_storage::local::Disk;
use tupelo_storage::{FileSink, FileSource};

use super::content::{self, Content, events, late_schema, schema};
use super::{Moment, Recording, contents};

/// Appends are recorded in pieces of at most this many bytes.
const APPEND_BYTES: usize = 3000;
/// Name of the file that scripts write.
const FILE: &str = "x.root";

/// What a script does to its file's disk, and what it is promised.
#[derive(Debug)]
pub struct Stage {
    log: DiskLog,
    /// After how many calls which content was promised.
    pub marks: Vec<(usize, Moment)>,
    /// What the file holds when all that was begun is promised too.
    pub moment: Moment,
}

impl Stage {
    /// Says that all that is set by now is promised.
    fn promise(&mut self) {
        self.marks.push((self.log.len(), self.moment.clone()));
    }

    /// What an ntuple holds from now on.
    fn set(&mut self, path: &str, content: Content) {
        let _ = self.moment.insert(path.to_owned(), Arc::new(content));
    }

    fn finish(&mut self, file: FileWriter) -> Result<()> {
        file.finish()?;
        self.promise();
        Ok(())
    }
}

/// Something that writes and says what it was promised.
pub type Script = fn(&mut Stage, FileWriter) -> Result<()>;

/// All scripts that begin with nothing, or with a file of Tupelo's.
pub const SCRIPTS: [(&str, bool, Script); 7] = [
    ("a new file", false, new_file),
    ("a new file without page checksums", false, new_file_without_checksums),
    ("a new file that is aborted", false, given_up),
    ("ntuples added to a file", true, added),
    ("entries added to an ntuple", true, grown),
    ("entries and fields added to an ntuple", true, widened),
    ("entries added and aborted", true, grown_and_given_up),
];

/// Runs one of [`SCRIPTS`] in a folder.
///
/// # Errors
/// Those of writing.
pub fn record(name: &str, is_update: bool, script: Script, folder: &Path) -> Result<Recording> {
    let old = if is_update { whole_file(folder)? } else { Bytes::new() };
    record_onto(name, old, script, folder)
}

/// The script of a new file with a name of `name_bytes` bytes: the name is part of what is patched in one write.
///
/// # Errors
/// Those of writing.
pub fn named(name_bytes: usize, folder: &Path) -> Result<Recording> {
    let name = "n".repeat(name_bytes);
    record_as(&format!("a new file with a name of {name_bytes} bytes"), Bytes::new(), new_file, &folder.join(name))
}

/// The script of ntuples that are added to a file with `bytes` bytes of leftovers past its end.
///
/// # Errors
/// Those of writing.
pub fn shifted(bytes: usize, folder: &Path) -> Result<Recording> {
    let old = [whole_file(folder)?, vec![0; bytes].into()].concat();
    record_onto(&format!("ntuples added behind {bytes} bytes of leftovers"), old.into(), added, folder)
}

/// Six checkpoints of a thousand entries, each append one call: what other writers were measured with.
///
/// # Errors
/// Those of writing.
pub fn measured(folder: &Path) -> Result<Recording> {
    let watch = |disk, log: &DiskLog| -> Box<dyn Disk> { Box::new(RecordingDisk::new(disk, log)) };
    let (stage, done) = perform(&Bytes::new(), six_checkpoints, &folder.join(FILE), watch);
    done?;
    Ok(Recording { name: "six checkpoints".into(), old: Bytes::new(), calls: stage.log.calls(), marks: stage.marks })
}

/// Scripts for a file of somebody else: an ntuple is added, and entries to each ntuple that takes them.
///
/// # Errors
/// Those of reading and writing.
pub fn foreign(name: &str, old: &Bytes, folder: &Path) -> Result<Vec<Recording>> {
    let scripts: [(&str, Script); 2] = [("ntuples added to", added), ("entries doubled in", doubled)];
    scripts.iter().map(|(what, script)| record_onto(&format!("{what} {name}"), old.clone(), *script, folder)).collect()
}

fn record_onto(name: &str, old: Bytes, script: Script, folder: &Path) -> Result<Recording> {
    record_as(name, old, script, &folder.join(FILE))
}

fn record_as(name: &str, old: Bytes, script: Script, path: &Path) -> Result<Recording> {
    let watch = |disk, log: &DiskLog| -> Box<dyn Disk> {
        Box::new(RecordingDisk::new(disk, log).with_append_bytes(APPEND_BYTES))
    };
    let (stage, done) = perform(&old, script, path, watch);
    done?;
    Ok(Recording { name: name.to_owned(), old, calls: stage.log.calls(), marks: stage.marks })
}

/// Runs a script that writes `path`, where `old` lies before unless that is empty, through a disk that `wrap` makes.
/// Gives what was promised, and how the script ended.
///
/// # Panics
/// If the folder cannot be written.
pub fn perform(
    old: &Bytes,
    script: Script,
    path: &Path,
    wrap: impl FnOnce(Box<dyn Disk>, &DiskLog) -> Box<dyn Disk>,
) -> (Stage, Result<()>) {
    let mut stage = Stage { log: DiskLog::default(), marks: vec![(0, Moment::new())], moment: Moment::new() };
    let log = stage.log.clone();
    let wrap = move |disk| wrap(disk, &log);
    let run = || {
        let file = if old.is_empty() {
            let _ = std::fs::remove_file(path);
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            FileWriter::create_in(Box::new(FileSink::create_through(path, wrap)?), &name)?
        } else {
            std::fs::write(path, old).expect("a file in the temporary folder");
            stage.moment = contents(old)?;
            stage.marks = vec![(0, stage.moment.clone())];
            let source = Arc::new(FileSource::open(path)?);
            FileWriter::update_in(Box::new(FileSink::update_through(path, wrap)?), source)?
        };
        script(&mut stage, file)
    };
    let done = run();
    (stage, done)
}

/// A file with an ntuple `events` of 60 entries and everything that an ntuple can have, `run1/hits` of 20, and `other`.
///
/// # Errors
/// Those of writing.
///
/// # Panics
/// If the folder cannot be read.
pub fn whole_file(folder: &Path) -> Result<Bytes> {
    let path = folder.join("whole.root");
    let file = FileWriter::create(&path)?;
    let mut writer = file.ntuple("events", &schema(false), options())?;
    writer.write(&events(0..40, 1, None))?;
    writer.flush_cluster()?;
    writer.write(&events(40..60, 1, None))?;
    writer.set_metadata("made", "before")?;
    let mut set = writer.attribute_set("quality", &quality_schema())?;
    grade(&mut set, &[(0..30, 7)])?;
    writer.finish()?;
    for (name, entries) in [("run1/hits", 20), ("other", 5)] {
        let mut writer = file.ntuple(name, &schema(false), options())?;
        writer.write(&events(0..entries, 2, None))?;
        writer.finish()?;
    }
    file.finish()?;
    Ok(std::fs::read(&path).expect("the file that was written").into())
}

fn options() -> WriteOptions {
    WriteOptions::default().with_page_bytes(256)
}

/// For more than a sink keeps in memory.
fn large() -> WriteOptions {
    WriteOptions::default().with_compression(Compression::NONE)
}

fn quality_schema() -> Schema {
    Schema::from_arrow(&quality(&[]).schema()).expect("a schema")
}

fn quality(values: &[i64]) -> RecordBatch {
    content::named(vec![("grade", Arc::new(Int64Array::from(values.to_vec())) as ArrayRef)])
}

fn grade(set: &mut AttributeSetWriter, grades: &[(Range<u64>, i64)]) -> Result<()> {
    let (ranges, values): (Vec<_>, Vec<_>) = grades.iter().cloned().unzip();
    set.write(&ranges, &quality(&values))
}

/// The content of `batch` with metadata and attributes.
fn told(batch: &RecordBatch, metadata: &[(&str, &str)], grades: &[(Range<u64>, i64)]) -> Content {
    let mut content = Content::of(batch);
    content.metadata = metadata.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    if !grades.is_empty() {
        let (ranges, values): (Vec<_>, Vec<_>) = grades.iter().cloned().unzip();
        content.sets = BTreeMap::from([("quality".to_owned(), (ranges, quality(&values).columns().to_vec()))]);
    }
    content
}

fn new_file(stage: &mut Stage, file: FileWriter) -> Result<()> {
    two_ntuples(stage, file, options())
}

/// Nothing would tell pages that are lost from pages of zeros.
fn new_file_without_checksums(stage: &mut Stage, file: FileWriter) -> Result<()> {
    two_ntuples(stage, file, options().with_page_checksums(false).with_compression(Compression::NONE))
}

/// Two ntuples in turn, one of them in a directory below another; three checkpoints; an attribute set, metadata and a
/// late field between them.
fn two_ntuples(stage: &mut Stage, file: FileWriter, options: WriteOptions) -> Result<()> {
    let mut main = file.ntuple("events", &schema(false), options.clone())?;
    let mut hits = file.ntuple("run1/calo/hits", &schema(false), options)?;
    main.write(&events(0..30, 1, None))?;
    main.set_metadata("state", "begun")?;
    let mut set = main.attribute_set("quality", &quality_schema())?;
    grade(&mut set, &[(0..10, 1)])?;
    stage.set("events", told(&events(0..30, 1, None), &[("state", "begun")], &[(0..10, 1)]));
    main.checkpoint()?;
    stage.promise();

    hits.write(&events(0..25, 2, None))?;
    stage.set("run1/calo/hits", Content::of(&events(0..25, 2, None)));
    hits.checkpoint()?;
    stage.promise();

    main.write(&events(30..45, 1, None))?;
    main.add_fields(&late_schema())?;
    main.write(&events(45..70, 1, Some(45)))?;
    main.set_metadata("state", "halfway")?;
    grade(&mut set, &[(10..70, 2), (3..5, 3)])?;
    let grades = [(0..10, 1), (10..70, 2), (3..5, 3)];
    stage.set("events", told(&events(0..70, 1, Some(45)), &[("state", "halfway")], &grades));
    main.checkpoint()?;
    stage.promise();

    // What both write from here on becomes visible at once.
    hits.write(&events(25..40, 2, None))?;
    stage.set("run1/calo/hits", Content::of(&events(0..40, 2, None)));
    hits.finish()?;
    main.write(&events(70..80, 1, Some(45)))?;
    main.set_metadata("state", "done")?;
    stage.set("events", told(&events(0..80, 1, Some(45)), &[("state", "done")], &grades));
    main.finish()?;
    stage.finish(file)
}

/// A checkpoint, more entries, and no end.
fn given_up(stage: &mut Stage, file: FileWriter) -> Result<()> {
    let mut writer = file.ntuple("a/events", &schema(false), large())?;
    writer.write(&events(0..30, 1, None))?;
    stage.set("a/events", Content::of(&events(0..30, 1, None)));
    writer.checkpoint()?;
    stage.promise();
    give_up(stage, file, writer)
}

/// Fills the sink's buffer, so that something is written after the last checkpoint, and forgets it.
fn give_up(stage: &mut Stage, file: FileWriter, mut writer: NtupleWriter) -> Result<()> {
    static BATCH: OnceLock<RecordBatch> = OnceLock::new();
    let batch = BATCH.get_or_init(|| events(0..30_000, 9, None));
    while stage.log.len() == stage.marks.last().map_or(0, |(calls, _)| *calls) {
        writer.write(batch)?;
        writer.flush_cluster()?;
    }
    drop(writer);
    file.abort()?;
    Ok(())
}

fn six_checkpoints(stage: &mut Stage, file: FileWriter) -> Result<()> {
    let mut writer = file.ntuple("events", &schema(false), WriteOptions::default())?;
    for end in (1000..=6000).step_by(1000) {
        writer.write(&events(end - 1000..end, 1, None))?;
        stage.set("events", Content::of(&events(0..end, 1, None)));
        writer.checkpoint()?;
        stage.promise();
    }
    writer.finish()?;
    stage.finish(file)
}

fn added(stage: &mut Stage, file: FileWriter) -> Result<()> {
    // One beside what is there, one in a directory that may be there, both with a checkpoint on the way.
    let mut beside = file.ntuple("added", &schema(false), options())?;
    let mut below = file.ntuple("run1/more/added", &schema(true), options())?;
    beside.write(&events(0..20, 3, None))?;
    stage.set("added", Content::of(&events(0..20, 3, None)));
    beside.checkpoint()?;
    stage.promise();
    below.write(&events(0..30, 4, Some(0)))?;
    stage.set("run1/more/added", told(&events(0..30, 4, Some(0)), &[("k", "v")], &[]));
    below.set_metadata("k", "v")?;
    below.checkpoint()?;
    stage.promise();
    beside.write(&events(20..33, 3, None))?;
    stage.set("added", Content::of(&events(0..33, 3, None)));
    beside.finish()?;
    below.write(&events(30..31, 4, Some(0)))?;
    stage.set("run1/more/added", told(&events(0..31, 4, Some(0)), &[("k", "v")], &[]));
    below.finish()?;
    stage.finish(file)
}

fn grown(stage: &mut Stage, file: FileWriter) -> Result<()> {
    let mut writer = file.append("run1/hits", options())?;
    for end in [35, 50, 51] {
        let start = writer.entries();
        writer.write(&events(start..end, 2, None))?;
        stage.set("run1/hits", Content::of(&events(0..end, 2, None)));
        match end {
            51 => break,
            _ => writer.checkpoint()?,
        }
        stage.promise();
    }
    writer.finish()?;
    stage.finish(file)
}

fn widened(stage: &mut Stage, file: FileWriter) -> Result<()> {
    let mut writer = file.append("events", options())?;
    writer.write(&events(60..70, 1, None))?;
    stage.set("events", told(&events(0..70, 1, None), &[("made", "before")], &[(0..30, 7)]));
    writer.checkpoint()?;
    stage.promise();
    writer.add_fields(&late_schema())?;
    writer.write(&events(70..90, 1, Some(70)))?;
    let mut set = writer.attribute_set("quality", &quality_schema())?;
    grade(&mut set, &[(70..90, 8)])?;
    writer.set_metadata("made", "after")?;
    let batch = events(0..90, 1, Some(70));
    stage.set("events", told(&batch, &[("made", "after")], &[(0..30, 7), (70..90, 8)]));
    writer.checkpoint()?;
    stage.promise();
    writer.write(&events(90..100, 1, Some(70)))?;
    let batch = events(0..100, 1, Some(70));
    stage.set("events", told(&batch, &[("made", "after")], &[(0..30, 7), (70..90, 8)]));
    writer.finish()?;
    stage.finish(file)
}

fn grown_and_given_up(stage: &mut Stage, file: FileWriter) -> Result<()> {
    let mut writer = file.append("run1/hits", large())?;
    writer.write(&events(20..44, 2, None))?;
    stage.set("run1/hits", Content::of(&events(0..44, 2, None)));
    writer.checkpoint()?;
    stage.promise();
    give_up(stage, file, writer)
}

/// Writes the entries of each ntuple once more, with a checkpoint in the middle, where the ntuple can be added to.
fn doubled(stage: &mut Stage, file: FileWriter) -> Result<()> {
    for (path, content) in stage.moment.clone() {
        let Ok(mut writer) = file.append(&path, options()) else { continue };
        let batch =
            content::named(content.columns.iter().map(|(name, column)| (name.as_str(), column.clone())).collect());
        let half = batch.num_rows() / 2;
        for (from, len) in [(0, half), (half, batch.num_rows() - half)] {
            writer.write(&batch.slice(from, len))?;
            let mut more = (*content).clone();
            more.repeat(from + len);
            stage.set(&path, more);
            if from == 0 {
                writer.checkpoint()?;
                stage.promise();
            }
        }
        writer.finish()?;
    }
    stage.finish(file)
}
