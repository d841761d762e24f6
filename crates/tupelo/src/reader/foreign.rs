//! What a file is that is no ROOT file.

use crate::source::File;
use crate::{Error, ErrorKind};

/// Bytes from which other formats are known.
const MAGIC_BYTES: u64 = 16;

/// Formats that people mistake for ROOT files, by their first bytes.
const FORMATS: [(&[u8], &str); 13] = [
    (b"PAR1", "a Parquet file"),
    (b"ARROW1", "an Arrow file"),
    (b"\x89HDF", "an HDF5 file"),
    (b"\x93NUMPY", "a NumPy file"),
    (b"\x1f\x8b", "compressed by gzip: unpack it first"),
    (b"\x28\xb5\x2f\xfd", "compressed by zstd: unpack it first"),
    (b"\xfd7zXZ", "compressed by xz: unpack it first"),
    (b"BZh", "compressed by bzip2: unpack it first"),
    (b"PK\x03\x04", "a ZIP archive: unpack it first"),
    (b"<!DOCTYPE", "a web page, perhaps what a failed download left"),
    (b"<!doctype", "a web page, perhaps what a failed download left"),
    (b"<html", "a web page, perhaps what a failed download left"),
    (b"version https://", "a pointer of Git LFS: `git lfs pull` fetches the file"),
];

/// Adds to the error of a file that is no ROOT file what it is instead, as far as that is known.
#[cold]
pub(super) fn identify(error: Error, file: &File) -> Error {
    if error.kind() != ErrorKind::Corrupt {
        return error;
    }
    let size = file.size();
    if size == 0 {
        return Error::corrupt(format!("{error}; the file is empty")).caused_by(error);
    }
    let Ok(first) = file.source().read_range(0..size.min(MAGIC_BYTES)) else { return error };
    let is_text = first.iter().all(|&byte| byte.is_ascii_graphic() || byte.is_ascii_whitespace());
    let what = match FORMATS.iter().find(|(magic, _)| first.starts_with(magic)) {
        _ if first.starts_with(b"root") => return error,
        Some((_, what)) => what,
        None if first.iter().all(|&byte| byte == 0) => "it begins with nothing but zeros, perhaps a failed copy",
        None if is_text => "text",
        None => return error,
    };
    let what = if what.starts_with("it ") { what.to_owned() } else { format!("it is {what}") };
    Error::corrupt(format!("{error}; {what}")).caused_by(error)
}

#[cfg(test)]
mod tests {
    use crate::reader::File;

    #[test]
    fn a_file_of_another_format_is_called_by_its_name() {
        let refused = |bytes: &'static [u8]| File::of_bytes("x", bytes).unwrap_err().to_string();
        assert!(
            refused(b"").ends_with("not a ROOT file: 0 bytes (at offset 0); the file is empty"),
            "{}",
            refused(b"")
        );
        let long =
            b"PAR1 and so on, long enough to have room for the header of a file, which is a hundred bytes, and more";
        assert!(refused(long).ends_with("it is a Parquet file"), "{}", refused(long));
        assert!(refused(b"a,b\n1,2\n").ends_with("; it is text"));
        assert!(refused(&[0; 200]).ends_with("perhaps a failed copy"));
        assert!(refused(b"\x1f\x8b\x08").ends_with("unpack it first"));
        assert!(!refused(b"root\0\0").contains("it is"), "{}", refused(b"root\0\0"));
    }
}
