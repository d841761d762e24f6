//! Options that several commands which write ntuples share.

use std::collections::HashSet;

use tupelo::FileWriter;
use tupelo::ops::import::copy_objects;
use tupelo::reader::Location;

use super::super::Reading;
use super::operands::Skipping;
use super::target::NtupleOptions;
use crate::console::Console;
use crate::failure::Failure;
use crate::parse::{Patterns, patterns};

/// New names of fields.
#[derive(Debug, clap::Args)]
pub(super) struct Renaming {
    /// Rename a top-level field; may be repeated
    #[arg(long = "rename", value_name = "OLD=NEW", value_parser = rename)]
    renames: Vec<(String, String)>,
}

fn rename(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((old, new)) if !old.is_empty() && !new.is_empty() => Ok((old.to_owned(), new.to_owned())),
        _ => Err("expected OLD=NEW".to_owned()),
    }
}

impl Renaming {
    pub(super) fn is_empty(&self) -> bool {
        self.renames.is_empty()
    }

    /// Pairs of old and new name.
    pub(super) fn pairs(&self) -> impl Iterator<Item = (String, String)> {
        self.renames.iter().cloned()
    }
}

/// Objects that go along with ntuples.
#[derive(Debug, clap::Args)]
pub(super) struct Carrying {
    /// Copy objects other than trees and ntuples, such as histograms, under the same paths: all, or those whose path
    /// matches; may be repeated
    #[arg(
        long,
        visible_alias = "with-objects",
        value_name = "PATTERNS",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "**"
    )]
    objects: Vec<Patterns>,
}

impl Carrying {
    pub(super) fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// Copies the chosen objects, before the ntuples; returns their paths.
    pub(super) fn carry(
        &self,
        (reading, skipping): (&Reading, &Skipping),
        locations: &[Location],
        ntuple: &NtupleOptions,
        writer: &FileWriter,
        console: &Console,
    ) -> Result<HashSet<String>, Failure> {
        let (patterns, compression) = (patterns(&self.objects), ntuple.compression());
        let (mut known, mut read) = (HashSet::new(), HashSet::new());
        read.extend(skipping.left_out().into_iter().map(|(location, _)| location.file));
        for location in locations.iter().filter(|location| !patterns.is_empty() && read.insert(location.file.clone())) {
            let file = reading.open_file(location, console)?;
            for path in copy_objects(&file, writer, &patterns, compression, &mut known)? {
                let left_out = format!("{}: '{path}' is not copied: another input contains it", file.name());
                console.warn(&left_out);
            }
        }
        Ok(known)
    }
}
