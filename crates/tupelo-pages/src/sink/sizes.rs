//! Sizes in bytes as text.

/// Parses `65536`, `64k`, `64KiB`, `1MiB` or `128MB`: `k`, `M`, `G` alone and `KiB`, `MiB`, `GiB` are powers of 1024,
/// `kB`, `MB`, `GB` powers of 1000. Upper and lower case are the same.
///
/// # Errors
/// An error message, also for 0.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let wrong = || format!("'{text}' is not a size; expected a number and a unit, such as 65536, 64k, 1MiB or 128MiB");
    let factor: u64 = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        _ => return Err(wrong()),
    };
    let bytes = match number.parse::<u64>() {
        Ok(whole) => whole.checked_mul(factor),
        Err(_) => number.parse::<f64>().ok().map(|n| n * factor as f64).filter(|n| *n < 1e18).map(|n| n as u64),
    };
    bytes.filter(|&bytes| bytes > 0).ok_or_else(wrong)
}

/// The shortest exact form of a size: `1MiB`, `64KiB` or `65537`.
pub fn format_bytes(bytes: u64) -> String {
    let units = [(1u64 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match units.into_iter().find(|(factor, _)| bytes >= *factor && bytes.is_multiple_of(*factor)) {
        Some((factor, unit)) => format!("{}{unit}", bytes / factor),
        None => bytes.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        for (text, bytes) in [
            ("65536", 65536),
            ("64k", 65536),
            (" 64 KiB ", 65536),
            ("1.5MiB", 3 << 19),
            ("2gb", 2_000_000_000),
            ("7b", 7),
        ] {
            assert_eq!(parse_bytes(text), Ok(bytes), "{text}");
        }
        for text in ["", "0", "x", "1TB", "-1", "1..5k", "99999999999GiB"] {
            assert!(parse_bytes(text).unwrap_err().contains("is not a size"), "{text}");
        }
    }

    #[test]
    fn the_shortest_form_is_exact() {
        for (bytes, text) in [(1 << 20, "1MiB"), (3 << 29, "1536MiB"), (65537, "65537"), (1 << 30, "1GiB"), (5, "5")] {
            assert_eq!(format_bytes(bytes), text);
            assert_eq!(parse_bytes(text), Ok(bytes));
        }
    }
}
