//! Options that several commands which write ntuples share.

use std::collections::{BTreeSet, HashSet};

use tupelo::FileWriter;
use tupelo::ops::import::copy_objects;
use tupelo::ops::objects::copy_as;
use tupelo::reader::{Location, Object};

use super::super::Reading;
use super::operands::Skipping;
use super::target::{NtupleOptions, Target};
use crate::console::Console;
use crate::failure::Failure;
use crate::parse::{Patterns, patterns};
use crate::table::things;

/// New names of fields.
#[derive(Debug, clap::Args)]
pub(super) struct Renaming {
    /// Rename a top-level field; may be repeated
    #[arg(long = "rename", value_name = "OLD=NEW", value_parser = rename)]
    renames: Vec<(String, String)>,
}

fn rename(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((_, new)) if new.split_once(',').is_some_and(|(_, rest)| rest.contains('=')) => {
            Err("expected one OLD=NEW; repeat --rename for others".to_owned())
        }
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

/// Objects that are copied alone: neither trees nor ntuples.
#[derive(Default)]
pub(super) struct SingleObjects {
    /// Each with its path in the output.
    chosen: Vec<(String, Location)>,
    /// The class of the first.
    class_name: String,
}

impl SingleObjects {
    pub(super) fn is_empty(&self) -> bool {
        self.chosen.is_empty()
    }

    pub(super) fn count(&self) -> usize {
        self.chosen.len()
    }

    /// Adds the object that an input names, under `name` if it is given.
    pub(super) fn add(&mut self, object: Object, location: &Location, name: Option<&str>) -> Result<(), Failure> {
        let path = name.map_or(object.path, str::to_owned);
        if let Some((_, first)) = self.chosen.iter().find(|(known, _)| *known == path) {
            let what = format_args!("{first} and {location} would both be '{path}' in the output");
            let hint = "`tupelo merge` sums histograms; or copy the objects one by one with --append --as NAME";
            return Err(Failure::usage(what).with_hint(hint));
        }
        if self.is_empty() {
            self.class_name = object.class_name;
        }
        self.chosen.push((path, location.clone()));
        Ok(())
    }

    /// Refuses options that are for entries, if nothing else is copied.
    pub(super) fn check_options(&self, given: &[(&str, bool, Option<&str>)]) -> Result<(), Failure> {
        let Some(((_, first), (option, ..))) = self.chosen.first().zip(given.iter().find(|(_, is_given, _)| *is_given))
        else {
            return Ok(());
        };
        let class_name = &self.class_name;
        let what = format_args!("{first} is a {class_name}; only ntuples and trees have entries for {option}");
        Err(Failure::usage(what).with_hint("omit the option"))
    }

    /// Refuses one name for several objects, ntuples and trees; `others` is the number of the latter.
    pub(super) fn check_name(&self, name: Option<&str>, others: usize) -> Result<(), Failure> {
        match (name, self.count() + others) {
            (Some(name), count @ 2..) if !self.is_empty() => {
                let what = format_args!("'{name}' would be the name of {}", things(count as u64, "object"));
                Err(Failure::usage(what).with_hint("omit the name of the output, or copy the objects one by one"))
            }
            _ => Ok(()),
        }
    }

    /// Copies the objects, before the ntuples and behind those of `--objects`, whose paths are given.
    pub(super) fn write(
        &self,
        (reading, target): (&Reading, &Target),
        ntuple: &NtupleOptions,
        writer: &FileWriter,
        carried: &HashSet<String>,
        console: &Console,
    ) -> Result<(), Failure> {
        let paths: BTreeSet<String> = self.chosen.iter().map(|(path, _)| path.clone()).collect();
        target.check_single_objects(writer, &paths)?;
        for (path, location) in &self.chosen {
            if carried.contains(path) {
                let what = format_args!("{location}: the objects of --objects contain '{path}'");
                return Err(Failure::usage(what).with_hint("omit the object, or give it another name with --as NAME"));
            }
            let file = reading.open_file(location, console)?;
            let name = location.object.as_deref().unwrap_or_default();
            if let Some(note) = copy_as(&file, name, writer, path, ntuple.compression())? {
                console.warn(&note);
            }
            console.note(&format!("{path}: copied from {location}"));
        }
        Ok(())
    }
}
