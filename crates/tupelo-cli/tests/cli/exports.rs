//! The format of a dump goes by the name of its output.

use super::{Place, tupelo};

/// `dump -o out.parquet` wrote JSON lines.
#[test]
fn the_extension_tells_the_format() {
    let place = Place::new();
    let file = place.nanoaod();
    let begins: [(&str, &[u8]); 9] = [
        ("jsonl", b"{\""),
        ("ndjson", b"{\""),
        ("txt", b"{\""),
        ("csv", b"run,"),
        ("CSV", b"run,"),
        ("arrows", b"\xff\xff\xff\xff"),
        ("arrow", b"ARROW1"),
        ("feather", b"ARROW1"),
        ("parquet", b"PAR1"),
    ];
    for (extension, begin) in begins {
        let out = place.path(&format!("out.{extension}"));
        tupelo(&["dump", &file, "-o", &out]).ok();
        let bytes = std::fs::read(&out).expect("a file");
        assert!(bytes.starts_with(begin), "{extension}: {:?}", String::from_utf8_lossy(&bytes[..20]));
    }
    let file_of_arrow = std::fs::File::open(place.path("out.arrow")).expect("a file");
    let reader = arrow_ipc::reader::FileReader::try_new(file_of_arrow, None).expect("Arrow");
    assert_eq!(reader.map(|batch| batch.expect("a batch").num_rows()).sum::<usize>(), 500);
}

#[test]
fn a_format_that_contradicts_the_extension_is_refused() {
    let place = Place::new();
    let file = place.nanoaod();
    for (format, name) in [("csv", "x.parquet"), ("jsonl", "x.csv"), ("parquet", "x.feather"), ("arrow", "x.jsonl")] {
        let out = place.path(name);
        let error = tupelo(&["dump", &file, "--format", format, "-o", &out]).fails(2);
        assert!(error.contains(&format!("--format {format} contradicts")) && error.contains("hint:"), "{error}");
        assert!(!std::fs::exists(&out).expect("an answer"));
    }
    for name in ["x.csv.gz", "x.jsonl.zst", "x.root"] {
        let error = tupelo(&["dump", &file, "-o", &place.path(name)]).fails(2);
        assert!(error.contains("entries cannot be written as"), "{error}");
    }
    tupelo(&["dump", &file, "--format", "csv", "-o", &place.path("x.txt")]).ok();
    tupelo(&["dump", &file, "--format", "parquet", "-o", &place.path("x.pq")]).ok();
}
