//! Outputs: no command overwrites its input, and links and devices are kept.

use std::fs;
use std::os::unix::fs::symlink;

use super::{Place, command, tupelo};

/// Defect: `copy -f F F` replaced a file with four ntuples and many trees by one ntuple.
#[test]
fn no_command_overwrites_its_input() {
    let place = Place::new();
    let (file, other) = (place.b2hhh(), place.nanoaod());
    let folder = place.directory.path().canonicalize().expect("a folder");
    symlink(&file, place.path("link.root")).expect("a link");
    fs::hard_link(&file, place.path("hard.root")).expect("a link");
    fs::create_dir(place.path("sub")).expect("a folder");
    symlink(&folder, place.path("sub/up")).expect("a link");
    let before = fs::read(&file).expect("a file");
    let spellings = [
        file.clone(),
        folder.join("b2hhh.root").to_str().expect("UTF-8").to_owned(),
        "b2hhh.root".to_owned(),
        "./sub/../b2hhh.root".to_owned(),
        "sub/up/b2hhh.root".to_owned(),
        "link.root".to_owned(),
        "hard.root".to_owned(),
    ];
    let refused = |arguments: &[&str]| {
        let output = command(arguments).current_dir(&folder).output().expect("the command starts");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains("is both input and output"), "{arguments:?}: {said}");
        assert!(fs::read(&file).expect("a file") == before, "{arguments:?} changed the file");
    };
    for output in &spellings {
        let named = format!("{output}:Other");
        for input in [&file, &format!("{file}:DecayTree")] {
            refused(&["copy", "-f", input, output]);
            refused(&["copy", "-f", input, &named]);
            refused(&["copy", input, output]);
            refused(&["dump", input, "-o", output]);
            refused(&["dump", input, "--format", "parquet", "-o", output]);
            refused(&["index", &other, input, "-o", output]);
        }
        refused(&["copy", "-f", "b2hhh.root", "hard.root", output]);
        refused(&["copy", "-f", "?2hhh.root", output]);
    }
    let files: Vec<_> = place.files().into_iter().filter(|path| path.is_file()).collect();
    assert_eq!(files.len(), 4, "nothing is left beside the files: {files:?}");
}

/// Appending does not change the data that are read.
#[test]
fn a_file_may_be_appended_to_itself_under_another_name() {
    let place = Place::new();
    let file = place.b2hhh();
    let expected = tupelo(&["dump", &file]).ok();
    symlink(&file, place.path("link.root")).expect("a link");
    for (arguments, name) in [
        (&["--append", "--as", "again"][..], "again"),
        (&["--append", "--as", "dir/again", "--cluster-bytes", "20kB", "--checkpoint", "20kB"], "dir/again"),
        (&["--append", "--new-cycle"], "DecayTree"),
    ] {
        let link = place.path("link.root");
        tupelo(&[&["copy", &format!("{file}:DecayTree"), &link], arguments].concat()).ok();
        assert!(tupelo(&["dump", &format!("{file}:{name}")]).ok() == expected, "{arguments:?}");
        assert!(tupelo(&["dump", &format!("{file}:DecayTree;1")]).ok() == expected, "{arguments:?}");
        tupelo(&["verify", "--deep", &file]).ok();
    }
    let error = tupelo(&["copy", &format!("{file}:DecayTree"), &file, "--append", "--extend"]).fails(2);
    assert!(error.contains("cannot be extended with itself"), "{error}");
    tupelo(&["verify", "--deep", &file]).ok();
}

/// `>>` would append text to the input.
#[test]
fn stdout_is_not_the_input() {
    let place = Place::new();
    let file = place.b2hhh();
    let before = fs::read(&file).expect("a file");
    for name in ["ls", "schema", "head", "dump", "layout", "verify", "index"] {
        let end = fs::File::options().append(true).open(&file).expect("a file");
        let output = command(&[name, &file]).stdout(end).output().expect("the command starts");
        assert_eq!(output.status.code(), Some(2), "{name}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("stdout is redirected"), "{name}");
        assert!(fs::read(&file).expect("a file") == before, "{name} changed the file");
    }
}

/// Defect: a link was replaced by a file.
#[test]
fn links_are_followed() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    let file = place.b2hhh();
    fs::create_dir(place.path("elsewhere")).expect("a folder");
    for (name, arguments) in [("out.jsonl", &["dump", &file][..]), ("out.json", &["index", &file])] {
        let (link, real) = (place.path(name), place.path(&format!("elsewhere/{name}")));
        symlink(format!("elsewhere/{name}"), &link).expect("a link");
        let expected = tupelo(arguments).ok();
        // The target of the link is created, then replaced.
        for mode in [0o600, 0o640] {
            tupelo(&[arguments, &["-o", &link]].concat()).ok();
            assert!(fs::symlink_metadata(&link).expect("a link").is_symlink());
            assert!(fs::read_to_string(&real).expect("a file") == expected, "{name}");
            fs::set_permissions(&real, fs::Permissions::from_mode(mode)).expect("a mode");
        }
        assert_eq!(fs::metadata(&real).expect("a file").permissions().mode() & 0o777, 0o640);
        tupelo(&[arguments, &["-o", &link]].concat()).ok();
        assert_eq!(fs::metadata(&real).expect("a file").permissions().mode() & 0o777, 0o640);
    }
    assert_eq!(fs::read_dir(place.path("elsewhere")).expect("a folder").count(), 2);
}

/// Defect: `-o /dev/stdout` of the superuser replaced the device by a file.
#[test]
#[cfg(target_os = "linux")]
fn pipes_and_devices_are_kept() {
    let place = Place::new();
    let file = place.b2hhh();
    let expected = tupelo(&["dump", &file]).ok();
    let (pipe, to_pipe, out) = (place.path("pipe"), place.path("to_pipe"), place.path("out"));
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo").success());
    symlink("pipe", &to_pipe).expect("a link");
    for name in [&pipe, &to_pipe] {
        let reader = std::thread::spawn({
            let pipe = pipe.clone();
            move || fs::read_to_string(pipe).expect("text")
        });
        tupelo(&["dump", &file, "-o", name]).ok();
        assert!(reader.join().expect("a thread") == expected, "{name}");
        assert!(fs::symlink_metadata(&to_pipe).expect("a link").is_symlink());
        assert!(!fs::metadata(&pipe).expect("a pipe").is_file());
    }
    symlink("/proc/self/fd/1", &out).expect("a link");
    assert!(tupelo(&["dump", &file, "-o", &out]).ok() == expected);
    // A file that the shell has opened is appended to.
    let log = place.path("log");
    for descriptor in ["1", "2"] {
        fs::write(&log, "before\n").expect("a file");
        fs::remove_file(&out).expect("a link");
        symlink(format!("/dev/fd/{descriptor}"), &out).expect("a link");
        let mut command = command(&["dump", &file, "-o", &out]);
        let log = fs::File::options().append(true).open(&log).expect("a file");
        let status = match descriptor {
            "1" => command.stdout(log).status(),
            _ => command.stderr(log).status(),
        };
        assert!(status.expect("the command starts").success());
        assert!(fs::read_to_string(place.path("log")).expect("text") == format!("before\n{expected}"), "{descriptor}");
        assert!(fs::symlink_metadata(&out).expect("a link").is_symlink());
    }
}
