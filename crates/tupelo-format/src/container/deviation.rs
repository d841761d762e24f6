//! Rules of the file format that a file breaks and ROOT does not check.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Mutex, PoisonError};

#[cfg(test)]
mod tests;

/// Maximum number of deviations kept for a file.
const MAX_DEVIATIONS: usize = 1000;
/// Maximum number of characters of a name kept in a deviation.
const MAX_NAME_CHARS: usize = 100;

/// A broken rule that ROOT does not check. The file is read as ROOT reads it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Deviation {
    /// Offset in the file of the record that breaks the rule.
    pub offset: u64,
    /// The rule.
    pub rule: Rule,
}

/// The rules, with the values found in the file. The first one is the least severe.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Rule {
    /// The version in the header of a file is positive.
    FileVersion {
        /// The version in the header.
        stored: i32,
    },
    /// The length of a key list's record includes all of its keys.
    KeyListLength {
        /// The length in the record, in bytes.
        stored: u64,
        /// Where its keys end, in bytes from its start.
        actual: u64,
    },
    /// A key list ends with its last key, or with zeros.
    KeyListRest {
        /// Number of its keys.
        keys: u64,
        /// Bytes that follow them.
        bytes: u64,
    },
    /// The length of a key includes its names.
    KeyLength {
        /// The name in the key, possibly shortened.
        name: String,
        /// The length in the key, in bytes.
        stored: u16,
        /// Where its title ends, in bytes from its start.
        actual: u64,
    },
    /// The free list ends with what lies past the end of the file.
    FreeListEnd {
        /// Where its last segment begins.
        stored: u64,
        /// Where the file ends.
        actual: u64,
    },
    /// A writer saves the directories of its file.
    Saved,
    /// The directories of a file are those that its writer wrote.
    Recovered {
        /// Number of keys that were found instead.
        keys: u64,
    },
    /// The layouts of the classes in a file can be read.
    LostStreamerInfo,
}

impl Rule {
    /// The rule's name in JSON documents.
    pub fn name(&self) -> &'static str {
        match self {
            Self::FileVersion { .. } => "file_version",
            Self::KeyListLength { .. } => "key_list_length",
            Self::KeyListRest { .. } => "key_list_rest",
            Self::KeyLength { .. } => "key_length",
            Self::FreeListEnd { .. } => "free_list_end",
            Self::Saved => "saved",
            Self::Recovered { .. } => "recovered",
            Self::LostStreamerInfo => "lost_streamer_info",
        }
    }

    pub(super) fn key_length(name: &str, stored: u16, actual: usize) -> Self {
        Self::KeyLength { name: name.chars().take(MAX_NAME_CHARS).collect(), stored, actual: actual as u64 }
    }
}

impl fmt::Display for Deviation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.rule {
            Rule::FileVersion { stored } => write!(f, "the version in the file header is negative: {stored}"),
            Rule::KeyListLength { stored, actual } => {
                write!(f, "the key list of {actual} bytes has a recorded length of {stored} bytes")
            }
            Rule::KeyListRest { keys, bytes } => write!(f, "the key list has {bytes} bytes after its {keys} keys"),
            Rule::KeyLength { name, stored, actual } => {
                write!(f, "key '{}' of {actual} bytes has a recorded length of {stored} bytes", name.escape_debug())
            }
            Rule::FreeListEnd { stored, actual } => {
                write!(f, "the free list says that the file ends at byte {stored}, but it ends at byte {actual}")
            }
            Rule::Saved => {
                return f.write_str(
                    "the writer of the file did not save its directories; open it with the option 'recover' to read \
                     its objects",
                );
            }
            Rule::Recovered { keys } => {
                return write!(f, "its directories were rebuilt; keys found in the file: {keys}");
            }
            Rule::LostStreamerInfo => {
                return f.write_str("its streamer info is damaged; only the layouts of ROOT's own classes are known");
            }
        }?;
        write!(f, " (at byte {})", self.offset)
    }
}

/// The deviations that were found so far. Parsing the same bytes again adds none.
#[derive(Debug, Default)]
pub struct Deviations(Mutex<BTreeSet<Deviation>>);

impl Deviations {
    /// Adds one, unless it is known or there are 1000.
    pub fn add(&self, offset: u64, rule: Rule) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() < MAX_DEVIATIONS {
            known.insert(Deviation { offset, rule });
        }
    }

    /// All of them, by offset.
    pub fn list(&self) -> Vec<Deviation> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    /// The actual length of the key list whose record lies at `offset`, if the record has another.
    pub(super) fn key_list_bytes(&self, offset: u64) -> Option<u64> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let first = Deviation { offset, rule: Rule::FileVersion { stored: i32::MIN } };
        known.range(first..).take_while(|deviation| deviation.offset == offset).find_map(|it| match it.rule {
            Rule::KeyListLength { actual, .. } => Some(actual),
            _ => None,
        })
    }
}
