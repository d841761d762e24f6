//! Formats of other files, by their first bytes.

/// Enough bytes to tell text from binary data.
const TEXT_BYTES: usize = 64;

/// First bytes of well-known formats.
const MAGICS: &[(&[u8], &str)] = &[
    (b"PAR1", "a Parquet file"),
    (b"ARROW1", "an Arrow file"),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file"),
    (b"CDF\x01", "a NetCDF file"),
    (b"CDF\x02", "a NetCDF file"),
    (b"SIMPLE  =", "a FITS file"),
    (b"\x93NUMPY", "a NumPy array"),
    (b"PK\x03\x04", "a zip archive"),
    (b"\x1f\x8b", "a file compressed with gzip"),
    (b"\x28\xb5\x2f\xfd", "a file compressed with zstd"),
    (b"\xfd7zXZ\0", "a file compressed with xz"),
    (b"BZh", "a file compressed with bzip2"),
    (b"SQLite format 3\0", "an SQLite database"),
    (b"%PDF", "a PDF document"),
    (b"\x7fELF", "a program"),
    (b"version https://git-lfs", "a Git LFS pointer to the file"),
];

/// The format of a file that begins with these bytes, which are not those of a ROOT file: `it is a Parquet file`.
pub(super) fn kind_of(head: &[u8]) -> String {
    if let Some((_, name)) = MAGICS.iter().find(|(magic, _)| head.starts_with(magic)) {
        return format!("it is {name}");
    }
    let text = head.get(..head.len().min(TEXT_BYTES)).unwrap_or_default();
    let is_text = text.iter().all(|&byte| byte >= b' ' && byte != 0x7f || matches!(byte, b'\t' | b'\n' | b'\r'));
    let words = String::from_utf8_lossy(text).trim_start().to_lowercase();
    match words.chars().next() {
        None => "it is empty".to_owned(),
        Some('<') if words.starts_with("<!doctype html") || words.starts_with("<html") => {
            "it is an HTML page".to_owned()
        }
        Some('<') if is_text => "it is an XML document".to_owned(),
        Some('{' | '[') if is_text => "it is a JSON document".to_owned(),
        Some(_) if is_text => "it is text".to_owned(),
        Some(_) if text.iter().all(|&byte| byte == 0) => "it begins with zeros".to_owned(),
        Some(_) => {
            let bytes: Vec<_> = text.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
            format!("it begins with the bytes {}", bytes.join(" "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_known_by_their_first_bytes() {
        let known: [(&[u8], &str); 9] = [
            (b"PAR1\x15\0", "it is a Parquet file"),
            (b"", "it is empty"),
            (b"  \n<!DOCTYPE HTML><title>Sign in</title>", "it is an HTML page"),
            (b"<?xml version='1.0'?>", "it is an XML document"),
            (b"{\"a\": 1}", "it is a JSON document"),
            (b"pt,eta,phi\n", "it is text"),
            ("µ = 1".as_bytes(), "it is text"),
            (&[0; 100], "it begins with zeros"),
            (&[1, 2, 0xab, 4, 5], "it begins with the bytes 01 02 ab 04"),
        ];
        for (bytes, kind) in known {
            assert_eq!(kind_of(bytes), kind);
        }
    }
}
