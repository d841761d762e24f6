//! The codec and level that a writer uses, and ROOT's number for the pair.

use std::fmt;
use std::str::FromStr;

use crate::{Error, Result};

/// The codecs that ROOT knows (`ROOT::RCompressionSetting::EAlgorithm`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Algorithm {
    /// Deflate in a zlib stream.
    Zlib,
    /// LZMA2 in an .xz stream.
    Lzma,
    /// LZ4 blocks.
    Lz4,
    /// Zstandard frames.
    Zstd,
}

impl Algorithm {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Zlib, Self::Lzma, Self::Lz4, Self::Zstd];

    /// The hundreds of ROOT's compression setting.
    pub const fn code(self) -> u32 {
        match self {
            Self::Zlib => 1,
            Self::Lzma => 2,
            Self::Lz4 => 4,
            Self::Zstd => 5,
        }
    }

    /// The lower-case name that commands and options use.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Zlib => "zlib",
            Self::Lzma => "lzma",
            Self::Lz4 => "lz4",
            Self::Zstd => "zstd",
        }
    }

    /// The level that ROOT uses where none is named (`ROOT::RCompressionSetting::ELevel`).
    pub const fn default_level(self) -> u8 {
        match self {
            Self::Zlib => 1,
            Self::Lzma => 7,
            Self::Lz4 => 4,
            Self::Zstd => 5,
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Algorithm {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|algorithm| algorithm.name() == text).ok_or_else(|| {
            Error::unsupported(format!("unknown compression \"{text}\": expected zlib, lzma, lz4, zstd or none"))
        })
    }
}

/// How to compress: a codec with a level from 1 to 9, or not at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Compression(Option<(Algorithm, u8)>);

impl Compression {
    /// Payloads are stored as they are.
    pub const NONE: Self = Self(None);
    /// zstd at level 5: ROOT's default for RNTuple.
    pub const DEFAULT: Self = Self(Some((Algorithm::Zstd, 5)));
    /// One that every reader has: zlib of level 1.
    pub const COMMON: Self = Self(Some((Algorithm::Zlib, 1)));

    /// A codec at a level from 1 (fast) to 9 (small), on ROOT's scale: zstd's own level is twice that.
    ///
    /// # Errors
    /// Unsupported if the level is another.
    pub fn new(algorithm: Algorithm, level: u8) -> Result<Self> {
        match level {
            1..=9 => Ok(Self(Some((algorithm, level)))),
            _ => Err(Error::unsupported(format!("{algorithm} level {level} is out of range: levels are 1 to 9"))),
        }
    }

    /// The same codec at the level that takes least time.
    #[must_use]
    pub fn fastest(self) -> Self {
        Self(self.0.map(|(algorithm, _)| (algorithm, 1)))
    }

    /// From ROOT's number, `100 * code + level`; level 0 disables compression, whatever the codec.
    ///
    /// # Errors
    /// Unsupported if codec or level are unknown here. Reading does not need the setting.
    pub fn from_setting(setting: u32) -> Result<Self> {
        let unknown = || Error::unsupported(format!("unknown compression setting {setting}"));
        if setting.is_multiple_of(100) {
            return Ok(Self::NONE);
        }
        // 0 is ROOT's global default: zlib.
        let code = (setting / 100).max(Algorithm::Zlib.code());
        let algorithm = Algorithm::ALL.into_iter().find(|algorithm| algorithm.code() == code);
        Self::new(algorithm.ok_or_else(unknown)?, (setting % 100) as u8)
    }

    /// ROOT's number, as in page lists and in the file header; 0 for no compression.
    pub const fn setting(self) -> u32 {
        match self.0 {
            Some((algorithm, level)) => algorithm.code() * 100 + level as u32,
            None => 0,
        }
    }

    /// Whether payloads are stored as they are.
    pub const fn is_none(self) -> bool {
        self.0.is_none()
    }

    pub(super) const fn codec(self) -> Option<(Algorithm, u8)> {
        self.0
    }
}

impl Default for Compression {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// `zstd:5`, or `none`.
impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some((algorithm, level)) => write!(f, "{algorithm}:{level}"),
            None => f.write_str("none"),
        }
    }
}

/// `zstd:5`, `zstd` (at its default level), `505` or `none`.
impl FromStr for Compression {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        if text == "none" {
            return Ok(Self::NONE);
        }
        if let Ok(setting) = text.parse() {
            return Self::from_setting(setting);
        }
        match text.split_once(':') {
            Some((name, level)) => {
                let algorithm = name.parse()?;
                let level =
                    level.parse().map_err(|_| Error::unsupported(format!("\"{level}\" is not a level from 1 to 9")))?;
                Self::new(algorithm, level)
            }
            None => {
                let algorithm = text.parse::<Algorithm>()?;
                Self::new(algorithm, algorithm.default_level())
            }
        }
    }
}
