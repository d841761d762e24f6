//! What a command writes, with the inputs of each.

use tupelo::Table;
use tupelo::dataset::FieldPolicy;
use tupelo::reader::Location;
use tupelo::storage::{display_name, is_object_uri};

use super::super::{Opened, Reading};
use super::operands::Skipping;
use super::without_cycle;
use crate::console::Console;
use crate::failure::Failure;

/// An ntuple or tree to write: the inputs of one name, one after the other.
pub(super) struct Job {
    pub(super) name: String,
    pub(super) locations: Vec<Location>,
    pub(super) table: Table,
}

/// Refuses to write several ntuples to an object store.
pub(super) fn check_single<'j>(jobs: impl IntoIterator<Item = &'j Job>, to: &Location) -> Result<(), Failure> {
    let names: Vec<&str> = jobs.into_iter().map(|job| job.name.as_str()).collect();
    match (names.as_slice(), is_object_uri(&to.file)) {
        ([first, _, ..], true) => {
            let count = names.len();
            let what = format_args!("a URI of an object store names a single ntuple, but {count} would be written");
            Err(Failure::usage(what).with_hint(format!("select one as IN:NAME, for example IN:{first}")))
        }
        _ => Ok(()),
    }
}

/// How jobs are found in inputs.
pub(super) struct JobSearch<'a> {
    pub(super) reading: &'a Reading,
    pub(super) skipping: &'a Skipping,
    pub(super) policy: FieldPolicy,
    /// The name of what is written, if it is given.
    pub(super) name: Option<&'a str>,
    pub(super) console: &'a Console,
}

impl JobSearch<'_> {
    /// What is written for each name that `names` lists in a file.
    pub(super) fn jobs(
        &self,
        locations: &[Location],
        mut names: impl FnMut(&Location) -> Result<Vec<String>, Failure>,
    ) -> Result<Vec<Job>, Failure> {
        let mut found: Vec<(String, Vec<Location>)> = Vec::new();
        for location in locations {
            let listed = match &location.object {
                Some(name) => Ok(vec![name.clone()]),
                None => names(location),
            };
            let Some(listed) = self.skipping.note(location, locations.len(), listed)? else { continue };
            if let (Some(name), 2..) = (self.name, listed.len()) {
                let file = display_name(&location.file);
                let several = format_args!("{file}: {} objects cannot have the same name '{name}'", listed.len());
                let hint = "select one as IN:NAME, or omit the name of the output";
                return Err(Failure::usage(several).with_hint(hint));
            }
            for object in listed {
                let key = self.name.unwrap_or_else(|| without_cycle(&object)).to_owned();
                let location = Location { file: location.file.clone(), object: Some(object) };
                match found.iter_mut().find(|(known, _)| *known == key) {
                    Some((_, locations)) => locations.push(location),
                    None => found.push((key, vec![location])),
                }
            }
        }
        let jobs = found.into_iter().map(|(_, locations)| self.job(locations)).collect::<Result<_, _>>()?;
        self.skipping.finish(locations.len(), self.console)?;
        Ok(jobs)
    }

    /// All inputs as one.
    pub(super) fn job(&self, locations: Vec<Location>) -> Result<Job, Failure> {
        let table = self.reading.chain(&locations, self.policy, Opened::default(), self.skipping, self.console)?;
        let name = self.name.unwrap_or_else(|| without_cycle(table.path())).to_owned();
        Ok(Job { name, locations, table })
    }
}
