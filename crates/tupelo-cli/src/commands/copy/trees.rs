//! Trees that are copied or merged with their baskets as they are stored.

use tupelo::ops::merge::merge_tree;
use tupelo::reader::{Location, Tree};
use tupelo::storage::is_object_uri;
use tupelo::writer::WriteProgress;
use tupelo::{FileWriter, MoveOptions, Table};

use super::super::Reading;
use super::target::Target;
use super::without_cycle;
use crate::console::Console;
use crate::failure::Failure;
use crate::interrupt::Interrupt;

/// Trees to write, by path, and the inputs of each.
#[derive(Default)]
pub(super) struct TreeJobs(Vec<(String, Vec<Location>)>);

/// What became of trees.
#[derive(Default)]
pub(super) struct WrittenTrees {
    /// What was written, by path.
    pub(super) written: Vec<(String, WriteProgress)>,
    /// What was left out, and why.
    pub(super) left_out: Vec<String>,
}

impl TreeJobs {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a tree of a file.
    pub(super) fn add(&mut self, path: &str, location: Location) {
        match self.0.iter_mut().find(|(known, _)| known == path) {
            Some((_, locations)) => locations.push(location),
            None => self.0.push((path.to_owned(), vec![location])),
        }
    }

    /// Adds all trees of a file.
    pub(super) fn add_all(&mut self, names: &[String], location: &Location) {
        for name in names {
            self.add(name, Location { object: Some(name.clone()), ..location.clone() });
        }
    }

    /// Adds the inputs that name a tree, under `name` if it is given; returns the other inputs.
    pub(super) fn take_named(
        &mut self,
        reading: &Reading,
        locations: &[Location],
        name: Option<&str>,
    ) -> Vec<Location> {
        let mut others = Vec::with_capacity(locations.len());
        for location in locations {
            match &location.object {
                Some(tree) if is_tree(reading, location, tree) => {
                    self.add(name.unwrap_or_else(|| without_cycle(tree)), location.clone());
                }
                _ => others.push(location.clone()),
            }
        }
        others
    }

    /// Writes all trees; `None` if a signal ended the work.
    pub(super) fn write(
        &self,
        (reading, target): (&Reading, &Target),
        options: &MoveOptions,
        writer: &FileWriter,
        interrupt: &Interrupt,
        console: &Console,
    ) -> Result<Option<WrittenTrees>, Failure> {
        let mut all = WrittenTrees::default();
        for (name, _) in &self.0 {
            target.check_tree(writer, name)?;
        }
        for (name, trees) in &self.0 {
            let mut progress = console.progress(name, None::<u64>, "B");
            let open = |number: usize| open(reading, &trees[number]);
            let mut report = progress.until(interrupt);
            let Some(merged) = merge_tree(name, trees.len(), open, writer, options.clone(), &mut report)? else {
                return Ok(None);
            };
            all.left_out.extend(merged.left_out.iter().map(|it| format!("tree '{}': {}", it.name, it.reason)));
            all.written.extend(merged.written.map(|written| (name.clone(), written)));
        }
        Ok(Some(all))
    }
}

/// Whether an input is a tree. What cannot be opened is reported where it is read.
fn is_tree(reading: &Reading, location: &Location, name: &str) -> bool {
    let names = || reading.open_uncounted(location).ok()?.tree_names().ok();
    !is_object_uri(&location.file) && names().is_some_and(|names| names.iter().any(|tree| tree == without_cycle(name)))
}

fn open(reading: &Reading, location: &Location) -> Result<Tree, Failure> {
    match reading.open_uncounted(location)?.table(location.object.as_deref())? {
        Table::Tree(tree) => Ok(tree),
        _ => Err(Failure::new(format_args!("{location} is not a tree"))),
    }
}
