//! The storage of `Double32_t` and `Float16_t` (`TBufferFile::ReadWithFactor`, `ReadWithNbits`; `GetRange` in
//! `TStreamerElement.cxx`).

use super::cpp::Basic;
use crate::Result;
use crate::streamer::Element;
use crate::wire::Cursor;

/// Bits of the mantissa of a `Float16_t` whose comment does not say otherwise.
const FLOAT16_BITS: u32 = 12;

/// The stored form of a `Double32_t` or `Float16_t`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Packing {
    /// A `float`.
    Float,
    /// Integers of 32 bits, to be divided by the factor and added to the minimum.
    Scaled {
        /// Steps of the integer for each unit of the value.
        factor: f64,
        /// The meaning of 0.
        minimum: f64,
    },
    /// Exponent in 8 bits, then sign and this many bits of the mantissa in 16.
    Truncated {
        /// Bits of the mantissa.
        bits: u32,
    },
}

impl Packing {
    /// Of a member; `None` for all types that have only one stored form.
    pub fn of(element: &Element, basic: Basic) -> Option<Self> {
        let range = if element.has_range() { range(&element.title) } else { None };
        Self::in_range(basic, range)
    }

    /// Of a leaf of a tree, whose title may end in a range.
    pub fn of_title(title: &str, basic: Basic) -> Option<Self> {
        let range = range(title.as_bytes()).filter(|(minimum, maximum, _)| title.contains(',') && minimum <= maximum);
        Self::in_range(basic, range)
    }

    fn in_range(basic: Basic, range: Option<(f64, f64, u32)>) -> Option<Self> {
        let bits_if_truncated = match basic {
            Basic::Double32 => None,
            Basic::Float16 => Some(FLOAT16_BITS),
            _ => return None,
        };
        let bits = match range {
            Some((minimum, maximum, bits)) if minimum < maximum => {
                let steps = if bits < 32 { f64::from(1_u32 << bits) } else { f64::from(u32::MAX) };
                return Some(Self::Scaled { factor: steps / (maximum - minimum), minimum });
            }
            Some((_, _, bits)) if bits < 15 => Some(bits),
            _ => bits_if_truncated,
        };
        Some(bits.map_or(Self::Float, |bits| Self::Truncated { bits }))
    }

    /// Stored bytes of a value.
    pub fn item_bytes(self) -> usize {
        match self {
            Self::Float | Self::Scaled { .. } => 4,
            Self::Truncated { .. } => 3,
        }
    }

    /// Reads a value.
    ///
    /// # Errors
    /// Corrupt where the bytes end before.
    pub fn read(self, cursor: &mut Cursor<'_>) -> Result<f64> {
        Ok(match self {
            Self::Float => cursor.f32_be()?.into(),
            Self::Scaled { factor, minimum } => f64::from(cursor.u32_be()?) / factor + minimum,
            Self::Truncated { bits } => {
                let exponent = u32::from(cursor.u8()?);
                let mantissa = u32::from(cursor.u16_be()?);
                let shown = mantissa & ((1 << (bits + 1)) - 1);
                let value = f32::from_bits(exponent << 23 | shown << (23 - bits) & 0x007f_ffff);
                let is_negative = mantissa & 1 << (bits + 1) != 0;
                f64::from(if is_negative { -value } else { value })
            }
        })
    }
}

/// Parses minimum, maximum and bits of a comment `[min,max,bits]`, which may follow a counter name in brackets
/// (`GetRange` in `TStreamerElement.cxx`).
fn range(title: &[u8]) -> Option<(f64, f64, u32)> {
    let title = std::str::from_utf8(title).ok()?;
    let bracket = |text: &str| {
        let (inside, rest) = text.split_once('[')?.1.split_once(']')?;
        Some((inside.to_owned(), rest.to_owned()))
    };
    let (mut inside, rest) = bracket(title)?;
    if !inside.contains(',') {
        inside = bracket(&rest)?.0;
    }
    let mut parts = inside.split(',');
    let (minimum, maximum) = (bound(parts.next()?), bound(parts.next()?));
    let bits = parts.next().and_then(|bits| bits.trim().parse().ok()).filter(|bits| (2..=32).contains(bits));
    Some((minimum, maximum, bits.unwrap_or(32)))
}

fn bound(text: &str) -> f64 {
    use std::f64::consts::PI;
    let text = text.to_lowercase().replace(' ', "");
    if !text.contains("pi") {
        return text.parse().unwrap_or(0.0);
    }
    let value = match &text {
        text if text.contains("2pi") || text.contains("2*pi") || text.contains("twopi") => 2.0 * PI,
        text if text.contains("pi/2") => PI / 2.0,
        text if text.contains("pi/4") => PI / 4.0,
        _ => PI,
    };
    if text.contains('-') { -value } else { value }
}
