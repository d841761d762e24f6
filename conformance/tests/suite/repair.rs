//! What `repair` makes of files whose writer was stopped in the middle of its last step.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, Int32Array, RecordBatch};
use conformance::samples;
use tupelo::ops::repair::repair;
use tupelo::ops::verify::{verify, verify_deep};
use tupelo::schema::Schema;
use tupelo::{ErrorKind, FileWriter, WriteOptions};
use tupelo_format::locator::Locator;

fn batch(range: std::ops::Range<i32>) -> RecordBatch {
    let numbers: ArrayRef = Arc::new(Int32Array::from_iter_values(range));
    RecordBatch::try_from_iter([("n", numbers)]).unwrap()
}

fn temporary(folder: &Path) -> PathBuf {
    let mut names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    names.find(|path| path.to_string_lossy().contains(".tmp-")).unwrap()
}

/// The file after each of six checkpoints of ten entries, in turn of an ntuple in a directory and of one that is not.
fn checkpoints(folder: &Path) -> Vec<Vec<u8>> {
    let file = tupelo::create(folder.join("x.root")).unwrap();
    let schema = Schema::from_arrow(&batch(0..1).schema()).unwrap();
    let mut one = file.ntuple("one", &schema, WriteOptions::default()).unwrap();
    let mut two = file.ntuple("deep/down/two", &schema, WriteOptions::default()).unwrap();
    let mut states = Vec::new();
    for k in 0..3 {
        one.write(&batch(k * 10..k * 10 + 10)).unwrap();
        two.write(&batch(k * 10..k * 10 + 10)).unwrap();
        two.checkpoint().unwrap();
        states.push(fs::read(temporary(folder)).unwrap());
        one.checkpoint().unwrap();
        states.push(fs::read(temporary(folder)).unwrap());
    }
    file.abort().unwrap().unwrap();
    fs::remove_file(temporary(folder)).unwrap();
    states
}

/// Entries of both ntuples, after looking at every value.
fn entries(path: &Path) -> [u64; 2] {
    ["one", "deep/down/two"].map(|name| {
        let ntuple = tupelo::open(&format!("{}:{name}", path.display())).open().unwrap();
        let batch = ntuple.read_all().to_batch().unwrap();
        assert!(batch.column(0).as_primitive::<Int32Type>().values().iter().copied().eq(0..batch.num_rows() as i32));
        ntuple.entries()
    })
}

#[test]
fn a_header_that_is_torn_at_any_byte_is_made_whole() {
    let folder = tempfile::tempdir().unwrap();
    let states = checkpoints(folder.path());
    let path = folder.path().join("torn.root");
    let head = states[1].iter().zip(&states[5]).take(400).rposition(|(old, new)| old != new).unwrap() + 1;
    for cut in 0..=head {
        for old in [&states[1], &states[3], &vec![0; head]] {
            let mut torn = states[5].clone();
            torn[cut..head].copy_from_slice(&old[cut..head]);
            fs::write(&path, &torn).unwrap();
            let is_lost = old[0] == 0 && cut < 200;
            match repair(&path) {
                // Zeros instead of the file's name are damage that stays.
                Ok(repaired) if is_lost && !repaired.report.damages.is_empty() => {}
                Ok(repaired) => {
                    assert_eq!(entries(&path), [30, 30], "cut at {cut}");
                    assert!(repaired.report.damages.is_empty(), "{:?}", repaired.report);
                    assert_eq!(repaired.ntuples.iter().map(|(_, entries)| entries).sum::<u64>(), 60);
                    let again = repair(&path).unwrap();
                    assert!(!again.is_changed && again.ntuples == repaired.ntuples, "cut at {cut}: {again:?}");
                }
                Err(error) => assert!(is_lost, "cut at {cut}: {error}"),
            }
        }
    }
}

#[test]
fn a_lost_page_leads_back_to_the_checkpoint_before() {
    let folder = tempfile::tempdir().unwrap();
    let states = checkpoints(folder.path());
    let path = folder.path().join("lost.root");
    // Of what was appended for the last checkpoint only some is there, and the header was torn.
    let mut bytes = states[5].clone();
    bytes[states[4].len() + 42..states[4].len() + 60].fill(0);
    bytes[20..28].fill(0xff);
    bytes[160..240].fill(0xff);
    fs::write(&path, &bytes).unwrap();
    let repaired = repair(&path).unwrap();
    assert_eq!(entries(&path), [20, 30]);
    assert!(repaired.is_changed && repaired.lost_bytes > 0, "{repaired:?}");
    let again = repair(&path).unwrap();
    assert!(!again.is_changed && again.lost_bytes == 0, "{again:?}");
}

/// One flipped bit once took the file back to before all entries that followed.
#[test]
fn a_damaged_page_does_not_discard_readable_entries() {
    let folder = tempfile::tempdir().unwrap();
    let states = checkpoints(folder.path());
    let path = folder.path().join("rot.root");
    for torn in [false, true] {
        let mut bytes = states[5].clone();
        // In the pages of the second checkpoint.
        bytes[states[0].len() + 45] ^= 1;
        if torn {
            bytes[20..28].fill(0xff);
            bytes[160..240].fill(0xff);
        }
        fs::write(&path, &bytes).unwrap();
        let repaired = repair(&path).unwrap();
        assert_eq!((repaired.is_changed, repaired.report.damages.len()), (torn, 1), "{repaired:?}");
        assert_eq!(repaired.ntuples.iter().map(|(_, entries)| entries).sum::<u64>(), 60);
    }
}

/// Regression: `verify` and `repair` reported such a file as intact, but an update of it was refused.
#[test]
fn a_file_that_lacks_its_last_bytes_is_damaged_for_all_or_for_none() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cut.root");
    let file = tupelo::create(&path).unwrap();
    let schema = Schema::from_arrow(&batch(0..1).schema()).unwrap();
    for name in ["one", "deep/down/two"] {
        let mut ntuple = file.ntuple(name, &schema, WriteOptions::default()).unwrap();
        ntuple.write(&batch(0..30)).unwrap();
        ntuple.finish().unwrap();
    }
    file.finish().unwrap();
    let whole = fs::read(&path).unwrap();
    let (mut mended, mut lost) = (0, 0);
    // Every length around the last record, and some of all others.
    for length in (0..whole.len()).rev().filter(|length| whole.len() - length < 70 || length % 9 == 0) {
        fs::write(&path, &whole[..length]).unwrap();
        let open = || tupelo::open(path.to_str().unwrap()).open_file();
        let said = open().and_then(|file| verify(&file, None, &mut |_| {}));
        let error = FileWriter::update(&path).unwrap_err();
        let Ok(report) = said else {
            // No directory can be read any more, and this file had no state before.
            lost += 1;
            assert!(repair(&path).is_err(), "{length} bytes");
            assert_eq!(fs::read(&path).unwrap(), whole[..length]);
            continue;
        };
        let first = &report.damages[0];
        assert!(error.to_string().contains(&first.what), "{error}, but {first}");
        let ends = format!("ends at byte {}, but it ends at byte {length}; the last", whole.len());
        assert!(first.what.contains(&ends) && first.what.contains("the free list"), "{first}");
        let repaired = repair(&path).unwrap();
        assert!(repaired.is_changed && repaired.rewritten.contains(&"the header"), "{repaired:?}");
        assert!(repaired.report.damages.is_empty(), "{:?}", repaired.report);
        assert_eq!(entries(&path), [30, 30]);
        let again = repair(&path).unwrap();
        assert!(!again.is_changed, "{length} bytes: {again:?}");
        let deep = verify_deep(&open().unwrap(), &mut |_| {}).unwrap();
        assert!(deep.damages.is_empty(), "{length} bytes: {:?}", deep.damages);
        let file = FileWriter::update(&path).unwrap();
        let mut ntuple = file.append("one", WriteOptions::default()).unwrap();
        ntuple.write(&batch(30..40)).unwrap();
        ntuple.finish().unwrap();
        file.finish().unwrap();
        assert_eq!(entries(&path), [40, 30]);
        mended += 1;
    }
    assert!(mended > 100 && lost > 50, "{mended} mended, {lost} lost");
}

/// What the older state has of an ntuple is less, and nothing of the newer one was lost but the free list.
#[test]
fn a_cut_does_not_cost_entries_that_can_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let states = checkpoints(folder.path());
    let path = folder.path().join("cut.root");
    fs::write(&path, &states[5][..states[5].len() - 1]).unwrap();
    assert!(repair(&path).unwrap().is_changed);
    assert_eq!(entries(&path), [30, 30]);
    // So much is missing that no directory can be read: the checkpoint before is what there is.
    fs::write(&path, &states[5][..states[4].len() + 100]).unwrap();
    assert!(repair(&path).unwrap().is_changed);
    assert_eq!(entries(&path), [20, 30]);
}

/// The header's place of the free list has no checksum: a forged one led into a page behind all records, and the new
/// records took its place.
#[test]
fn rewriting_records_loses_no_page() {
    let mut model = samples::flat();
    let page = &mut model.groups[0].clusters[0].columns[0].pages[0];
    let stored = std::mem::take(&mut page.stored);
    // As long as with its true place.
    page.checksum = None;
    page.locator = Some(Locator::File { offset: 1000, bytes: stored.len() as u64 });
    let offset = model.build().unwrap().len() as u64;
    let page = &mut model.groups[0].clusters[0].columns[0].pages[0];
    page.locator = Some(Locator::File { offset, bytes: stored.len() as u64 });
    let mut file = model.build().unwrap().to_vec();
    assert_eq!(file.len() as u64, offset);
    file.extend(&stored);
    let end = file.len() as u32;
    // Where the file ends, and where its free list is said to be.
    for (at, number) in [(12, end), (16, end - 10), (20, 100_000)] {
        file[at..at + 4].copy_from_slice(&u32::to_be_bytes(number));
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("forged.root");
    fs::write(&path, &file).unwrap();
    let read = || tupelo::open(path.to_str().unwrap()).open().unwrap().read_all().to_batch().unwrap();
    let before = read();
    let repaired = repair(&path).unwrap();
    assert_eq!(read(), before, "{repaired:?}");
}

#[cfg(unix)]
#[test]
fn a_repair_follows_links() {
    let folder = tempfile::tempdir().unwrap();
    let states = checkpoints(folder.path());
    let (there, here) = (folder.path().join("there"), folder.path().join("here"));
    fs::create_dir(&there).unwrap();
    fs::create_dir(&here).unwrap();
    let (real, link) = (there.join("real.root"), here.join("link.root"));
    std::os::unix::fs::symlink("../there/real.root", &link).unwrap();
    // The temporary file lies beside the file that the link names, as writers make it.
    let left = there.join("real.root.tmp-abc");
    fs::write(&left, &states[3]).unwrap();
    let missing = tupelo::open(link.to_str().unwrap()).open_file().unwrap_err().to_string();
    assert!(missing.contains("there/real.root.tmp-abc: `tupelo verify --repair"), "{missing}");
    let repaired = repair(&link).unwrap();
    assert!(repaired.from.unwrap().ends_with("there/real.root.tmp-abc"));
    assert!(real.exists() && !left.exists() && link.is_symlink());
    assert_eq!(entries(&link), [20, 20]);
    // A file that is there is repaired in its place.
    let mut torn = states[5].clone();
    torn[20..28].fill(0xff);
    torn[160..240].fill(0xff);
    fs::write(&real, &torn).unwrap();
    assert!(repair(&link).unwrap().is_changed);
    assert!(link.is_symlink());
    assert_eq!(entries(&real), [30, 30]);
}

#[test]
fn the_temporary_of_a_killed_writer_takes_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let states = checkpoints(folder.path());
    let path = folder.path().join("x.root");
    let missing = repair(&path).unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::NotFound);
    let left = folder.path().join("x.root.tmp-abc");
    fs::write(&left, [states[3].as_slice(), b"half a blob"].concat()).unwrap();
    fs::write(folder.path().join("x.root.tmp-def"), b"").unwrap();
    let several = repair(&path).unwrap_err().to_string();
    assert!(several.contains("x.root.tmp-abc") && several.contains("x.root.tmp-def"), "{several}");
    fs::remove_file(folder.path().join("x.root.tmp-def")).unwrap();
    let repaired = repair(&path).unwrap();
    assert_eq!((repaired.from.as_deref(), repaired.lost_bytes), (Some(left.as_path()), 11));
    assert!(!left.exists());
    assert_eq!(entries(&path), [20, 20]);
}

#[test]
fn a_file_that_is_being_written_is_not_repaired() {
    let folder = tempfile::tempdir().unwrap();
    let file = tupelo::create(folder.path().join("x.root")).unwrap();
    let schema = Schema::from_arrow(&batch(0..1).schema()).unwrap();
    let mut ntuple = file.ntuple("one", &schema, WriteOptions::default()).unwrap();
    ntuple.write(&batch(0..10)).unwrap();
    // Only now there is something that could be repaired.
    ntuple.checkpoint().unwrap();
    let busy = repair(temporary(folder.path())).unwrap_err();
    assert!(busy.to_string().contains("another writer is writing it"), "{busy}");
    file.abort().unwrap();
}

#[test]
fn other_files_are_not_changed_by_a_repair() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.root");
    for bytes in [&b""[..], b"root", &[7; 5000]] {
        fs::write(&path, bytes).unwrap();
        let error = repair(&path).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
        assert_eq!(fs::read(&path).unwrap(), bytes);
    }
}

#[test]
fn real_files_stay_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.root");
    let mut count = 0;
    for real in conformance::summary::real_files() {
        let bytes = fs::read(&real).unwrap();
        fs::write(&path, &bytes).unwrap();
        let repaired = repair(&path).unwrap_or_else(|error| panic!("{}: {error}", real.display()));
        assert!(!repaired.is_changed && repaired.lost_bytes == 0, "{}: {repaired:?}", real.display());
        assert!(fs::read(&path).unwrap() == bytes);
        count += 1;
    }
    conformance::summary::note("repair", &format!("{count} real files have nothing to repair"));
}
