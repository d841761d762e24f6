use super::*;
use crate::laws::{SinkCase, sink_laws};

const SOURCE: &str = "https://host/x 100 tag";

struct Place {
    directory: tempfile::TempDir,
    path: PathBuf,
}

fn place() -> Place {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.root");
    Place { directory, path }
}

impl Place {
    fn open(&self, source: &str) -> Box<PartialFile> {
        Box::new(PartialFile::open(&self.path, source, 100).unwrap())
    }

    fn part(&self) -> PathBuf {
        self.path.with_file_name("x.root.part")
    }

    fn record(&self) -> PathBuf {
        self.path.with_file_name("x.root.part.source")
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.directory).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// Leaves 30 bytes that are durable, and 7 that may not be, as a process that is killed.
    fn kill_at_30(&self) {
        let mut sink = self.open(SOURCE);
        sink.append(&[1; 30]).unwrap();
        sink.checkpoint().unwrap();
        sink.append(&[2; 7]).unwrap();
        sink.sink.checkpoint().unwrap();
        let record = fs::read(self.record()).unwrap();
        drop(sink);
        assert_eq!((fs::read(self.part()).unwrap().len(), fs::read(self.record()).unwrap()), (37, record));
    }
}

#[test]
fn partial_files_keep_the_laws_of_a_sink() {
    sink_laws(|old| {
        let place = place();
        if let Some(old) = old {
            fs::write(&place.path, old).unwrap();
        }
        let sink = PartialFile::open(&place.path, SOURCE, 100).unwrap();
        let Place { directory, path } = place;
        SinkCase::new(sink, move || directory.path().exists().then(|| fs::read(&path).ok()).flatten())
    });
}

#[test]
fn a_copy_is_continued_after_its_last_checkpoint() {
    let place = place();
    place.kill_at_30();
    for (from, to) in [(30, 60), (60, 61)] {
        let mut sink = place.open(SOURCE);
        assert_eq!(sink.position(), from);
        sink.append(&vec![3; (to - from) as usize]).unwrap();
        sink.checkpoint().unwrap();
        sink.append(&[9; 5]).unwrap();
        assert_eq!(sink.abort().unwrap(), Some(place.part().display().to_string()));
        assert_eq!(place.names(), ["x.root.part", "x.root.part.source"]);
    }
    let mut sink = place.open(SOURCE);
    sink.append(&[4; 39]).unwrap();
    sink.commit().unwrap();
    assert_eq!(place.names(), ["x.root"]);
    assert_eq!(fs::read(&place.path).unwrap(), [&[1; 30][..], &[3; 31], &[4; 39]].concat());
}

#[test]
fn another_source_is_copied_from_the_beginning() {
    for change in [
        |place: &Place| fs::write(place.record(), "\"https://host/x 100 tag").unwrap(),
        |place: &Place| fs::write(place.record(), "\"https://host/x 100 tag\"\n\0\0\n").unwrap(),
        |place: &Place| fs::write(place.record(), "\"https://host/x 100 tag\"\n\n101\n").unwrap(),
        |place: &Place| fs::write(place.part(), [1; 29]).unwrap(),
        |place: &Place| fs::remove_file(place.part()).unwrap(),
    ] {
        let place = place();
        place.kill_at_30();
        change(&place);
        assert_eq!(place.open(SOURCE).position(), 0);
    }
    let place = place();
    place.kill_at_30();
    let mut sink = place.open("https://host/x 100 new");
    assert_eq!((sink.position(), fs::read(place.part()).unwrap().len()), (0, 0));
    sink.append(&[5; 3]).unwrap();
    sink.checkpoint().unwrap();
    sink.abort().unwrap();
    assert_eq!(place.open(SOURCE).position(), 0);
}

#[test]
fn a_length_that_was_cut_off_is_not_joined_with_the_next_one() {
    let place = place();
    place.kill_at_30();
    let record = fs::read_to_string(place.record()).unwrap();
    fs::write(place.record(), record + "\n3").unwrap();
    let mut sink = place.open(SOURCE);
    assert_eq!(sink.position(), 30);
    sink.append(&[1; 5]).unwrap();
    sink.checkpoint().unwrap();
    sink.abort().unwrap();
    assert_eq!(place.open(SOURCE).position(), 35);
}

#[test]
fn without_a_checkpoint_nothing_remains() {
    let place = place();
    let mut sink = place.open(SOURCE);
    sink.append(&[1; 30]).unwrap();
    assert_eq!(sink.abort().unwrap(), None);
    assert_eq!(place.names(), Vec::<String>::new());
    drop(place.open(SOURCE));
    assert_eq!(place.names(), Vec::<String>::new());
}

#[test]
fn one_run_at_a_time_writes_a_copy() {
    let place = place();
    let mut first = place.open(SOURCE);
    first.append(&[1; 30]).unwrap();
    first.checkpoint().unwrap();
    for source in [SOURCE, "another"] {
        let error = PartialFile::open(&place.path, source, 100).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Busy);
        assert!(error.to_string().contains("x.root: another writer is writing it"), "{error}");
    }
    first.append(&[1; 70]).unwrap();
    first.commit().unwrap();
    assert_eq!(fs::read(&place.path).unwrap(), [1; 100]);
}

#[test]
fn files_of_others_are_not_touched() {
    let place = place();
    fs::write(place.part(), "mine").unwrap();
    let error = PartialFile::open(&place.path, SOURCE, 100).unwrap_err();
    assert!(error.to_string().ends_with("x.root.part exists but is not a partial copy: move it away"), "{error}");
    assert_eq!(place.names(), ["x.root.part"]);
    assert_eq!(fs::read(place.part()).unwrap(), b"mine");
    #[cfg(unix)]
    for link in [place.part(), place.record()] {
        let _ = fs::remove_file(place.part());
        let other = place.path.with_file_name("other");
        fs::write(&other, "mine").unwrap();
        std::os::unix::fs::symlink(&other, &link).unwrap();
        let error = PartialFile::open(&place.path, SOURCE, 100).unwrap_err();
        assert!(error.to_string().contains("it is not a regular file"), "{error}");
        assert_eq!(fs::read(&other).unwrap(), b"mine");
        fs::remove_file(&link).unwrap();
    }
}

/// Regression: a hard link was truncated, links that lead nowhere created their target.
#[cfg(unix)]
#[test]
fn links_are_not_continued() {
    let place = place();
    let victim = place.directory.path().join("victim");
    fs::write(&victim, [1; 50]).unwrap();
    fs::hard_link(&victim, place.part()).unwrap();
    fs::write(place.record(), format!("{SOURCE:?}\n\n30\n")).unwrap();
    let refused = PartialFile::open(&place.path, SOURCE, 100).unwrap_err();
    assert!(refused.to_string().contains("it has several hard links"), "{refused}");
    assert_eq!(fs::read(&victim).unwrap().len(), 50);
    for link in [place.part(), place.record()] {
        fs::remove_file(&link).unwrap();
        std::os::unix::fs::symlink("nowhere", &link).unwrap();
        assert!(PartialFile::open(&place.path, SOURCE, 100).unwrap_err().to_string().contains("not a regular file"));
        fs::remove_file(&link).unwrap();
    }
    assert_eq!(place.names(), ["victim"]);
}
