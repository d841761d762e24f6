//! Values of options: sizes, entry ranges, lists of field patterns.

use std::ops::Range;
use std::str::FromStr;
use std::time::Duration;

/// Bytes: `65536`, `64k`, `64KiB`, `1MiB`, `128MB`; see [`tupelo::parse_bytes`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bytes(pub(crate) u64);

impl FromStr for Bytes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        tupelo::parse_bytes(text).map(Self)
    }
}

/// Bytes between checkpoints: a size, or `off`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Checkpoint(pub(crate) Option<Bytes>);

impl FromStr for Checkpoint {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.trim() {
            "off" => Ok(Self(None)),
            size => size.parse().map(|bytes| Self(Some(bytes))).map_err(|wrong: String| wrong + ", or off"),
        }
    }
}

/// An age: a number with `s`, `m`, `h` or `d`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Age(pub(crate) Duration);

impl FromStr for Age {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("'{text}' is not an age; expected a number and s, m, h or d, such as 90m or 1d");
        let text = text.trim();
        let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
        let seconds = match unit.trim() {
            "s" => 1,
            "m" => 60,
            "h" => 60 * 60,
            "d" => 24 * 60 * 60,
            "" if number == "0" => 1,
            _ => return Err(wrong()),
        };
        let age = number.parse::<u64>().ok().and_then(|number| number.checked_mul(seconds));
        age.map(|seconds| Self(Duration::from_secs(seconds))).ok_or_else(wrong)
    }
}

/// The time of a request in seconds: a number with `us`, `ms` or `s`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Latency(pub(crate) f64);

impl FromStr for Latency {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, unit) = text.split_at(split);
        let factor = match unit.trim() {
            "us" | "µs" => 1e-6,
            "ms" => 1e-3,
            "s" => 1.0,
            "" if number == "0" => 1.0,
            _ => f64::NAN,
        };
        let seconds = number.parse::<f64>().ok().map(|number| number * factor).filter(|seconds| seconds.is_finite());
        let wrong = || format!("'{text}' is not a latency; expected a number and us, ms or s, such as 30ms");
        seconds.map(Self).ok_or_else(wrong)
    }
}

/// Bytes per second: a size with `/s`, or bits as in `10Gbit/s`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Bandwidth(pub(crate) f64);

impl FromStr for Bandwidth {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let wrong = || format!("'{text}' is not a bandwidth; expected a size per second, such as 1GB/s or 10Gbit/s");
        let amount = text.strip_suffix("/s").ok_or_else(wrong)?.trim();
        let bytes = match amount.to_ascii_lowercase().strip_suffix("bit") {
            // Bits have the factors of kB, MB and GB.
            Some(bits) => tupelo::parse_bytes(&format!("{bits}B")).map(|bits| bits as f64 / 8.0),
            None => tupelo::parse_bytes(amount).map(|bytes| bytes as f64),
        };
        bytes.map(Self).map_err(|_| wrong())
    }
}

/// Entries as a Python slice: `10:20`, `:100`, `-10:`, `5`. Negative numbers count from the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Entries {
    start: Option<i64>,
    stop: Option<i64>,
}

impl FromStr for Entries {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("'{text}' is not an entry range; expected START:STOP, such as 0:100, :100, 100: or -10:");
        let number = |text: &str| match text.trim() {
            "" => Ok(None),
            text => text.parse::<i64>().map(Some).map_err(|_| wrong()),
        };
        match text.split_once(':') {
            Some((start, stop)) => Ok(Self { start: number(start)?, stop: number(stop)? }),
            None => {
                let entry = number(text)?.ok_or_else(wrong)?;
                // -1 is the last entry, so the range has no end.
                Ok(Self { start: Some(entry), stop: Some(entry + 1).filter(|&stop| stop != 0) })
            }
        }
    }
}

impl Entries {
    /// Whether the range begins after all of `count` entries.
    pub(crate) fn is_after(self, count: u64) -> bool {
        self.start.is_some_and(|start| u64::try_from(start).is_ok_and(|start| start > 0 && start >= count))
    }

    /// Whether the range in `count` entries ends before it begins.
    pub(crate) fn is_reversed(self, count: u64) -> bool {
        let (start, stop) = self.bounds(count);
        stop < start
    }

    /// The range in an ntuple with `count` entries, limited to them.
    pub(crate) fn of(self, count: u64) -> Range<u64> {
        let (start, stop) = self.bounds(count);
        start..stop.max(start)
    }

    fn bounds(self, count: u64) -> (u64, u64) {
        let place = |position: i64| match u64::try_from(position) {
            Ok(position) => position.min(count),
            Err(_) => count.saturating_sub(position.unsigned_abs()),
        };
        (self.start.map_or(0, place), self.stop.map_or(count, place))
    }
}

/// Field patterns between commas; commas inside braces and brackets belong to the pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Patterns(pub(crate) Vec<String>);

impl FromStr for Patterns {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (mut depth, mut patterns) = (0usize, vec![String::new()]);
        for c in text.chars() {
            match c {
                '{' | '[' => depth += 1,
                '}' | ']' => depth = depth.saturating_sub(1),
                _ => {}
            }
            if c == ',' && depth == 0 {
                patterns.push(String::new());
            } else if let Some(last) = patterns.last_mut() {
                last.push(c);
            }
        }
        let patterns: Vec<_> = patterns.iter().map(|p| p.trim().to_owned()).filter(|p| !p.is_empty()).collect();
        match patterns.is_empty() {
            true => Err("expected at least one field".to_owned()),
            false => Ok(Self(patterns)),
        }
    }
}

/// All patterns of an option that may be repeated.
pub(crate) fn patterns(given: &[Patterns]) -> Vec<String> {
    given.iter().flat_map(|patterns| patterns.0.iter().cloned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_have_units() {
        for (text, seconds) in [("0", 0), ("90m", 5400), ("1d", 86400), ("2 h", 7200), ("7s", 7)] {
            assert_eq!(text.parse(), Ok(Age(Duration::from_secs(seconds))), "{text}");
        }
        for text in ["", "d", "1", "1w", "-1d", "1.5h", "99999999999999999999d", "999999999999999999d"] {
            assert!(text.parse::<Age>().unwrap_err().contains("is not an age"), "{text}");
        }
    }

    #[test]
    fn latencies_and_bandwidths_have_units() {
        for (text, seconds) in [("30ms", 0.03), ("1.5 s", 1.5), ("200us", 2e-4), ("0", 0.0)] {
            let Latency(parsed) = text.parse().unwrap();
            assert!((parsed - seconds).abs() < 1e-12, "{text}");
        }
        for text in ["", "30", "ms", "-1ms", "1m", "1e400s", "nan s"] {
            assert!(text.parse::<Latency>().unwrap_err().contains("is not a latency"), "{text}");
        }
        for (text, bytes) in [("1GB/s", 1e9), ("100 MiB/s", 104_857_600.0), ("10Gbit/s", 1.25e9), ("8kbit/s", 1000.0)] {
            assert_eq!(text.parse(), Ok(Bandwidth(bytes)), "{text}");
        }
        for text in ["", "1GB", "0/s", "/s", "bit/s", "-1MB/s", "1GB/h"] {
            assert!(text.parse::<Bandwidth>().unwrap_err().contains("is not a bandwidth"), "{text}");
        }
    }

    #[test]
    fn sizes_have_units() {
        let bytes = |text: &str| text.parse::<Bytes>().map(|b| b.0);
        for (text, expected) in
            [("1", 1), ("64k", 65_536), ("1MiB", 1 << 20), ("128MB", 128_000_000), ("1.5 KiB", 1536), ("2G", 2 << 30)]
        {
            assert_eq!(bytes(text), Ok(expected), "{text}");
        }
        for text in ["", "0", "k", "-1", "1x", "1e400", "99999999999999999999", "99999999999G", "."] {
            assert!(bytes(text).is_err(), "{text}");
        }
    }

    #[test]
    fn checkpoints_can_be_off() {
        assert_eq!("off".parse(), Ok(Checkpoint(None)));
        assert_eq!("1GiB".parse(), Ok(Checkpoint(Some(Bytes(1 << 30)))));
        let error = "0".parse::<Checkpoint>().unwrap_err();
        assert!(error.ends_with(", or off"), "{error}");
    }

    #[test]
    fn ranges_follow_python() {
        let of = |text: &str, count| text.parse::<Entries>().unwrap().of(count);
        assert_eq!(of("2:5", 10), 2..5);
        assert_eq!(of(":", 10), 0..10);
        assert_eq!(of(":100", 10), 0..10);
        assert_eq!(of("-3:", 10), 7..10);
        assert_eq!(of("-30:-8", 10), 0..2);
        assert_eq!(of("8:2", 10), 8..8);
        assert_eq!(of("20:30", 10), 10..10);
        assert_eq!(of("4", 10), 4..5);
        assert_eq!(of("-1", 10), 9..10);
        for text in ["", "a:b", "1:2:3", "1.5:"] {
            assert!(text.parse::<Entries>().is_err(), "{text}");
        }
    }

    #[test]
    fn commas_inside_braces_do_not_separate() {
        let split = |text: &str| text.parse::<Patterns>().map(|p| p.0);
        assert_eq!(split("a, b.c,{x,y}_*,[a,b]"), Ok(vec!["a".into(), "b.c".into(), "{x,y}_*".into(), "[a,b]".into()]));
        assert!(split(" ,").is_err());
    }
}
