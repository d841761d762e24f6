use super::*;

fn files() -> (tempfile::TempDir, ObjectFiles) {
    let directory = tempfile::tempdir().unwrap();
    let files = ObjectFiles::new(directory.path(), "base:".to_owned()).unwrap();
    (directory, files)
}

#[test]
fn files_are_synced_one_by_one_where_there_is_no_other_call() {
    let (_directory, files) = files();
    let keys = ["a/b/1", "a/b/2", "3"].map(str::to_owned);
    keys.iter().try_for_each(|key| files.create(key, &[Bytes::from_static(b"x")])).unwrap();
    files.remove("a/b/2").unwrap();
    files.sync_each(&keys).unwrap();
    files.flush().unwrap();
}

#[test]
fn a_writer_waits_for_the_lock_of_another() {
    let (directory, files) = files();
    files.publish_new("x", b"1").unwrap();
    let held = File::options().write(true).open(directory.path().join("x")).unwrap();
    held.lock().unwrap();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| files.replace("x", b"2", |old| old == b"1"));
        std::thread::sleep(std::time::Duration::from_millis(50));
        assert!(!writer.is_finished());
        held.unlock().unwrap();
        writer.join().unwrap().unwrap();
    });
    assert_eq!(files.open("x").unwrap().read(&(0..1)).unwrap(), "2");
    assert_eq!(files.replace("x", b"3", |old| old == b"1").unwrap_err().kind(), ErrorKind::Changed);
}

#[test]
fn temporary_files_are_not_listed() {
    let (directory, files) = files();
    fs::write(directory.path().join("x.tmp-abc"), "left behind").unwrap();
    files.publish_new("x", b"1").unwrap();
    let listed: Vec<String> = files.list("").unwrap().into_iter().map(|file| file.key).collect();
    assert_eq!(listed, ["x"]);
    assert_eq!(files.names().unwrap(), [("x".to_owned(), Some(1))]);
}

/// A killed writer leaves temporary files, and empty folders for its objects.
#[test]
fn remains_of_killed_writers_are_found() {
    let (directory, files) = files();
    let path = |key: &str| directory.path().join(key);
    fs::create_dir_all(path("runs/x.objects/1")).unwrap();
    fs::create_dir_all(path("runs/x.objects/2")).unwrap();
    fs::create_dir_all(path("runs/x.objects/3")).unwrap();
    fs::create_dir_all(path("runs/other")).unwrap();
    let left = ["runs/x.tmp-abc", "runs/x.objects/2/record.tmp-abc"];
    for key in left.into_iter().chain(["runs/y.tmp-abc", "runs/x.objects/3/0", "runs/x"]) {
        fs::write(path(key), "left").unwrap();
    }
    let (_file, written) = super::super::temporary::new_temporary("x", &path("runs")).unwrap();
    let found: Vec<String> =
        files.remains("runs/x", "runs/x.objects/").unwrap().into_iter().map(|file| file.key).collect();
    assert_eq!(found, ["runs/x.objects/1/", "runs/x.objects/2/record.tmp-abc", "runs/x.tmp-abc"]);
    found.iter().try_for_each(|key| files.remove(key)).unwrap();
    assert!(files.remains("runs/x", "runs/x.objects/").unwrap().is_empty());
    assert!(!path("runs/x.objects/2").exists() && path("runs/x.objects/3").exists() && path("runs/other").exists());
    assert!(written.exists() && path("runs/y.tmp-abc").exists());
    assert!(files.remains("x", "none/").unwrap().is_empty());
}

#[cfg(unix)]
#[test]
fn a_published_object_keeps_the_permissions_of_the_replaced_one() {
    use std::os::unix::fs::PermissionsExt;
    let (directory, files) = files();
    files.publish_new("x", b"1").unwrap();
    let path = directory.path().join("x");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    files.replace("x", b"2", |_| true).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
}
