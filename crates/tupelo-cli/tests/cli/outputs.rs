//! No command overwrites what it reads, however the path is spelled.

use std::fs;
use std::os::unix::fs::symlink;

use super::{Place, command, tupelo};

/// `copy -f F F` replaced a file with four ntuples and many trees by one ntuple.
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
        assert!(said.contains("is the file that is read"), "{arguments:?}: {said}");
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

/// Appending goes behind all that is read, and is safe.
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
    assert!(error.contains("cannot be extended with themselves"), "{error}");
    tupelo(&["verify", "--deep", &file]).ok();
}

/// `>>` would have written text behind the file.
#[test]
fn standard_output_is_not_the_file_that_is_read() {
    let place = Place::new();
    let file = place.b2hhh();
    let before = fs::read(&file).expect("a file");
    for name in ["ls", "schema", "head", "dump", "layout", "verify", "index"] {
        let end = fs::File::options().append(true).open(&file).expect("a file");
        let output = command(&[name, &file]).stdout(end).output().expect("the command starts");
        assert_eq!(output.status.code(), Some(2), "{name}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("standard output goes"), "{name}");
        assert!(fs::read(&file).expect("a file") == before, "{name} changed the file");
    }
}
