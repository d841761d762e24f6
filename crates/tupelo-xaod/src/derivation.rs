//! Derived files: fewer entries, containers, variables and elements, and new variables.

use std::collections::HashMap;
use std::ops::{ControlFlow, Range};

use arrow_array::{Array, ArrayRef};
use arrow_schema::Field as ArrowField;
use tupelo::dataset::FieldPolicy;
use tupelo::ops::Progress;
use tupelo::ops::copy::append::append_fields;
use tupelo::ops::copy::{CopyOptions, Pages, copy};
use tupelo::ops::export::{OriginalTrees, rewrite};
use tupelo::ops::merge::{UnlikeBranches, merge_objects, merge_tree};
use tupelo::reader::{Read, Skipped, Tree};
use tupelo::writer::TreeOptions;
use tupelo::{Compression, Error, Expression, FileWriter, MoveOptions, Result, Table, WriteOptions};

use crate::event::{Event, Format, Selection};
use crate::keys::METADATA;
use crate::stores::{Container, LinkedKind, Origin, Variable, ntuple_name};
use crate::thinning::{Part, Thinning};

/// Values of a variable, or which elements to keep.
#[derive(Debug, Clone)]
pub enum Values {
    /// An expression, in which the variables of the container have their own names, and those of others are written as
    /// `AnalysisJets.pt`.
    Expression(Expression),
    /// A list for each entry of the event, or a value for each entry if it is for an object.
    Given(ArrayRef),
}

/// What a derived file has of an event: see [`Event::derivation`].
#[derive(Debug, Clone)]
pub struct Derivation<'e> {
    event: &'e Event,
    kept: Option<Vec<Selection>>,
    fields: Vec<String>,
    entries: Range<u64>,
    cut: Option<Expression>,
    added: Vec<(String, String, Values)>,
    thinned: Vec<(String, Values)>,
    compression: Option<Compression>,
}

/// What was written.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Derived {
    /// Number of entries.
    pub entries: u64,
    /// What of the events and of the metadata could not be written, one sentence each.
    pub warnings: Vec<String>,
    /// Ntuples and trees of the file besides the events and the metadata, which are not copied: they refer to entries by their
    /// places in the old file.
    pub left_out: Vec<String>,
}

impl Event {
    /// A file with all that this one has, until something is left out or added.
    /// ```no_run
    /// use tupelo_xaod::{Event, Format, Values};
    ///
    /// let event = Event::open(tupelo::open("DAOD_PHYSLITE.root"))?;
    /// let jets = event.select("AnalysisJets", ["pt", "eta"])?;
    /// let derivation = event
    ///     .derivation()
    ///     .with_containers([jets, event.select("EventInfo", [""; 0])?])
    ///     .with_where("any(AnalysisJets.pt > 50000)".parse()?)
    ///     .with_variable("AnalysisJets", "ptGeV", Values::Expression("pt / 1000".parse()?))
    ///     .with_thinned("AnalysisJets", Values::Expression("pt > 20000".parse()?));
    /// let file = tupelo::create("derived.root")?;
    /// derivation.write(&file, Format::Ntuple, &mut |_| std::ops::ControlFlow::Continue(()))?;
    /// file.finish()?;
    /// # Ok::<(), tupelo::Error>(())
    /// ```
    pub fn derivation(&self) -> Derivation<'_> {
        Derivation {
            event: self,
            kept: None,
            fields: Vec::new(),
            entries: 0..self.entries(),
            cut: None,
            added: Vec::new(),
            thinned: Vec::new(),
            compression: None,
        }
    }
}

impl Derivation<'_> {
    /// Keeps only these containers and objects, with these dynamic variables; by default all. The static variables of a store
    /// stay together, since its class has them all.
    #[must_use]
    pub fn with_containers(mut self, containers: impl IntoIterator<Item = Selection>) -> Self {
        self.kept = Some(containers.into_iter().collect());
        self
    }

    /// Keeps these fields, too, which belong to no container.
    #[must_use]
    pub fn with_fields(mut self, names: impl IntoIterator<Item = String>) -> Self {
        self.fields.extend(names);
        self
    }

    /// Keeps a range of entries.
    #[must_use]
    pub fn with_entries(mut self, entries: Range<u64>) -> Self {
        self.entries = entries;
        self
    }

    /// Keeps the entries for which an expression is true. It names variables as `AnalysisJets.pt`.
    #[must_use]
    pub fn with_where(mut self, expression: Expression) -> Self {
        self.cut = Some(expression);
        self
    }

    /// Keeps the elements of a container for which a boolean is true. Links to the others become null links, and those to
    /// elements that are kept refer to their new places.
    #[must_use]
    pub fn with_thinned(mut self, container: &str, keep: Values) -> Self {
        self.thinned.push((container.to_owned(), keep));
        self
    }

    /// Adds a dynamic variable to a container, with a value for each element, or to an object. Later expressions may name it.
    #[must_use]
    pub fn with_variable(mut self, container: &str, name: &str, values: Values) -> Self {
        self.added.push((container.to_owned(), name.to_owned(), values));
        self
    }

    /// Codec and level; by default those of the events, whose pages stay as they are where no value changes.
    #[must_use]
    pub fn with_compression(mut self, compression: Compression) -> Self {
        self.compression = Some(compression);
        self
    }

    /// Writes the events, the metadata and the other objects of the file of the event to an empty file; `None` if `progress`
    /// cancelled: the file can then only be dropped.
    ///
    /// # Errors
    /// Not found, with near names, for containers and variables that the event lacks; invalid argument for a new variable whose
    /// name is taken or that has another number of values than its container has elements, for a mask that is not a boolean for
    /// each element, and for a link to a thinned container that has fewer elements, with the entry; those of reading and writing.
    pub fn write(&self, file: &FileWriter, format: Format, progress: &mut Progress<'_>) -> Result<Option<Derived>> {
        let read = self.read(true)?;
        let mut derived = Derived::default();
        let compression = self.compression.unwrap_or(Compression::DEFAULT);
        let files = self.event.files();
        let objects = merge_objects(files.count(), |number| files.open(number), file, compression)?;
        derived.warnings.extend(objects.left_out.iter().map(told));
        let name = self.event.name_as(format);
        let like = self.event.tree()?;
        let Some(entries) = self.write_table(read, (file, name, format), like.as_ref(), &mut derived, progress)? else {
            return Ok(None);
        };
        derived.entries = entries;
        let own = self.event.table().path();
        for name in files.table_names()?.into_iter().filter(|table| table != own) {
            match name.starts_with(METADATA) {
                true => self.carry((file, &name, format), &mut derived)?,
                false => derived.left_out.push(name),
            }
        }
        Ok(Some(derived))
    }

    /// Adds the new variables to the ntuple of the event in its own file, which `file` updates. The values that it has stay where
    /// they are. `None` if `progress` cancelled.
    ///
    /// # Errors
    /// Invalid argument if something is left out; unsupported for trees; as [`Derivation::write`] and
    /// [`FileWriter::append_fields`].
    pub fn append(&self, file: &FileWriter, progress: &mut Progress<'_>) -> Result<Option<u64>> {
        let is_whole = self.kept.is_none() && self.cut.is_none() && self.thinned.is_empty();
        if !is_whole || self.entries != (0..self.event.entries()) {
            let what =
                "variables can only be added to the file of the event for all entries and elements; write another file";
            return Err(Error::invalid_argument(what));
        }
        if self.event.format() == Format::Tree {
            let what = "variables cannot be added to a tree in its file; write another file";
            return Err(Error::unsupported(what));
        }
        let options = self.compression.into_iter().fold(WriteOptions::default(), WriteOptions::with_compression);
        let written = append_fields(self.read(false)?, file, self.event.table().path(), options, progress)?;
        Ok(written.map(|_| self.event.entries()))
    }

    /// Copies the metadata of all files: as they are, unless the format or their fields differ.
    fn carry(&self, to: (&FileWriter, &str, Format), derived: &mut Derived) -> Result<()> {
        let (file, name, format) = to;
        let (files, path) = (self.event.files().clone(), name.to_owned());
        let count = files.count();
        let open = move |number| match files.open(number)?.table(Some(&path)) {
            Err(error) if error.is_not_found() => Ok(None),
            table => table.map(Some),
        };
        let table = Table::chain(count, 1, FieldPolicy::Defaults, open.clone())?;
        let go_on = &mut |_| ControlFlow::Continue(());
        match (&table, format) {
            (Table::Ntuple(ntuple), Format::Ntuple) => file.copy_sealed(ntuple, name, go_on).map(drop),
            (Table::Tree(tree), Format::Tree) => move_trees((file, name), 1, |_| Ok(tree.clone()), derived),
            (Table::Chain(chain), Format::Tree) if table.is_of_trees() => {
                let tree = |place: usize| {
                    let tree = open(chain.parts()[place].number)?.and_then(|table| table.tree().cloned());
                    tree.ok_or_else(|| Error::invalid_argument(format!("no tree named '{name}'")))
                };
                let count = chain.parts().len();
                match UnlikeBranches::of(count, tree)?.is_empty() {
                    true => move_trees((file, name), count, tree, derived),
                    false => self.write_table(table.read_all(), to, None, derived, go_on).map(drop),
                }
            }
            _ => self.write_table(table.read_all(), to, None, derived, go_on).map(drop),
        }
    }

    /// Writes an ntuple or tree; the number of entries, or `None` if `progress` cancelled.
    fn write_table(
        &self,
        read: Read,
        (file, name, format): (&FileWriter, &str, Format),
        like: Option<&Tree>,
        derived: &mut Derived,
        progress: &mut Progress<'_>,
    ) -> Result<Option<u64>> {
        let within = |what: String| format!("'{name}': {what}");
        match format {
            Format::Ntuple => {
                let names = read.schema_with_computed()?.fields.into_iter().map(|field| {
                    let new = ntuple_name(&field);
                    (field.name, new)
                });
                let renames: Vec<(String, String)> = names.filter(|(old, new)| old != new).collect();
                let pages = if self.compression.is_some() { Pages::Encode } else { Pages::Keep };
                let how = CopyOptions::from(pages).with_renames(renames);
                let options =
                    self.compression.into_iter().fold(WriteOptions::default(), WriteOptions::with_compression);
                let Some(copied) = copy(read, file, name, options, how, progress)? else { return Ok(None) };
                derived.warnings.extend(copied.warnings.into_iter().map(within));
                Ok(Some(copied.written.entries))
            }
            Format::Tree => {
                let options = like.map_or_else(TreeOptions::default, TreeOptions::of);
                let options = self.compression.into_iter().fold(options, TreeOptions::with_compression);
                let mut originals = OriginalTrees::of(&read);
                like.into_iter().for_each(|tree| originals.add(tree));
                let Some(rewritten) = rewrite(read, originals, file, name, options, progress)? else { return Ok(None) };
                let left_out = rewritten.left_out.into_iter().map(|what| format!("not kept: {what}"));
                derived.warnings.extend(left_out.map(within));
                Ok(Some(rewritten.written.map_or(0, |written| written.entries)))
            }
        }
    }

    /// What is read of the events, and what changes it.
    fn read(&self, with_fields: bool) -> Result<Read> {
        let event = self.event;
        let mut read = match (with_fields, self.patterns()?) {
            (false, _) => event.table().read_all().without_fields(),
            (true, None) => event.table().read_all(),
            (true, Some(patterns)) => event.table().read(&patterns)?,
        };
        let mut names = Names { event, has_dots: event.format() == Format::Tree, added: HashMap::new() };
        let mut thinning = Thinning::default();
        let (mut inputs, mut counts) = (Vec::new(), Vec::new());
        for (container, variable, values) in &self.added {
            let container = event.stores().container(container)?;
            let path = names.add(container, variable)?;
            read = match values {
                Values::Expression(expression) => read.with_defined(&path, &names.of(expression, Some(container)))?,
                Values::Given(array) => {
                    let field = ArrowField::new(&path, array.data_type().clone(), array.null_count() > 0);
                    read.with_values(field, array.clone())?.with_computed(&path, &name_of(&path)?)?
                }
            };
            if !container.is_object() {
                counts.push(format!("len(`{}`)", container.counted_by()?).parse()?);
                thinning.counted.push((path, container.name().to_owned()));
            }
        }
        for (container, keep) in &self.thinned {
            let container = event.stores().container(container)?;
            if container.is_object() {
                let what =
                    format!("'{}' is an object, not a container: it has no elements to leave out", container.name());
                return Err(Error::invalid_argument(what));
            }
            if let Some(parent) = container.parent() {
                let what = format!("'{}' is a shallow copy; thin '{parent}', whose elements it has", container.name());
                return Err(Error::invalid_argument(what));
            }
            inputs.push(match keep {
                Values::Expression(expression) => names.of(expression, Some(container)),
                Values::Given(array) => {
                    let name = format!("mask of {}", container.name());
                    let field = ArrowField::new(&name, array.data_type().clone(), array.null_count() > 0);
                    read = read.with_values(field, array.clone())?;
                    name_of(&name)?
                }
            });
            let number = thinning.containers.len();
            let keys = event.keys()?.iter().filter(|(_, name)| *name == container.name()).map(|(key, _)| key);
            thinning.containers.push((container.name().to_owned(), keys.collect()));
            let copies = event.stores().containers().iter().filter(|it| it.parent() == Some(container.name()));
            for container in copies.chain([container]) {
                let counted = thinning.counted.iter().filter(|(_, name)| name == container.name());
                let new: Vec<_> = counted.map(|(path, _)| (path.clone(), Part::Elements)).collect();
                let parts = parts(container).into_iter().chain(new);
                thinning.columns.extend(parts.map(|(field, part)| (field, (number, part))));
            }
        }
        for variable in event.stores().containers().iter().flat_map(Container::variables) {
            if let Some(linked) = variable.linked().filter(|linked| linked.kind == LinkedKind::Containers) {
                thinning.packed.insert(variable.path().to_owned(), linked.path.clone());
            }
        }
        if let Some(cut) = &self.cut {
            read = read.with_where(&names.of(cut, None))?;
        }
        inputs.extend(counts);
        if !inputs.is_empty() {
            read = read.with_edit(&inputs, move |entries| thinning.apply(entries))?;
        }
        Ok(read.entries(self.entries.clone()))
    }

    /// The fields that are kept; `None` for all.
    fn patterns(&self) -> Result<Option<Vec<String>>> {
        let Some(kept) = &self.kept else { return Ok(None) };
        let mut patterns: Vec<String> = self.fields.iter().map(|name| tupelo::schema::escaped(name)).collect();
        for selection in kept {
            let container = self.event.stores().container(selection.container())?;
            patterns.extend(container.own_fields().map(tupelo::schema::escaped));
            let dynamic = container.variables().iter().filter(|it| it.origin() == Origin::Dynamic);
            let chosen = dynamic.filter(|it| selection.variables().iter().any(|name| name == it.name()));
            for variable in chosen {
                patterns.push(variable.path().to_owned());
                patterns.extend(variable.linked().map(|linked| linked.path.clone()));
            }
        }
        Ok(Some(patterns))
    }
}

/// The fields of a container that is thinned. What packed links list stays.
fn parts(container: &Container) -> Vec<(String, Part)> {
    let store = container.store_field();
    let linked = |field: &str| {
        container.variables().iter().find_map(|variable| {
            let linked = variable.linked()?;
            match (linked.kind, field == variable.path(), field == linked.path) {
                (LinkedKind::Items, true, _) => Some(Some(Part::Ends(linked.path.clone()))),
                (LinkedKind::Items, _, true) => Some(Some(Part::Items(variable.path().to_owned()))),
                (LinkedKind::Containers, _, true) => Some(None),
                _ => None,
            }
        })
    };
    let part = |field: &String| {
        let part = match linked(field) {
            Some(part) => part?,
            None if Some(field.as_str()) == store => Part::Store,
            None => Part::Elements,
        };
        Some((field.clone(), part))
    };
    container.fields().iter().filter_map(part).collect()
}

/// A name as an expression.
fn name_of(path: &str) -> Result<Expression> {
    format!("`{path}`").parse()
}

/// What names stand for in expressions.
struct Names<'e> {
    event: &'e Event,
    /// Whether fields have names as in trees.
    has_dots: bool,
    /// The paths of new variables, by the names of their containers and their own.
    added: HashMap<(String, String), String>,
}

impl Names<'_> {
    /// The path of a new variable.
    fn add(&mut self, container: &Container, variable: &str) -> Result<String> {
        let key = (container.name().to_owned(), variable.to_owned());
        if container.variable(variable).is_ok() || self.added.contains_key(&key) {
            let what = format!("'{}' already has a variable '{variable}'; choose another name", container.name());
            return Err(Error::invalid_argument(what));
        }
        if variable.is_empty() || variable.contains(['.', ':', '`']) {
            let what = format!("'{variable}' is not a valid name for a variable; leave out dots and colons");
            return Err(Error::invalid_argument(what));
        }
        let path = container.new_field(variable, self.has_dots);
        self.added.insert(key, path.clone());
        Ok(path)
    }

    /// The expression with the paths of fields in place of variables.
    fn of(&self, expression: &Expression, container: Option<&Container>) -> Expression {
        expression.clone().with_fields(|name| {
            let (first, rest) = name.split_once('.').map_or((name, None), |(first, rest)| (first, Some(rest)));
            if let Some(container) = container {
                let own = self.path(container.name(), first);
                if let Some(own) = own {
                    return Some(rest.map_or_else(|| own.clone(), |rest| format!("{own}.{rest}")));
                }
            }
            let (variable, rest) = rest?.split_once('.').map_or((rest?, None), |(first, rest)| (first, Some(rest)));
            let path = self.path(first, variable)?;
            Some(rest.map_or_else(|| path.clone(), |rest| format!("{path}.{rest}")))
        })
    }

    fn path(&self, container: &str, variable: &str) -> Option<String> {
        let added = self.added.get(&(container.to_owned(), variable.to_owned()));
        let known = || {
            let container = self.event.stores().container(container).ok()?;
            container.variable(variable).ok().map(Variable::path)
        };
        added.map(String::as_str).or_else(known).map(str::to_owned)
    }
}

/// Moves the baskets of trees into one tree.
fn move_trees(
    (file, name): (&FileWriter, &str),
    count: usize,
    open: impl Fn(usize) -> Result<Tree> + Sync,
    derived: &mut Derived,
) -> Result<()> {
    let go_on = &mut |_| ControlFlow::Continue(());
    if let Some(merged) = merge_tree(name, count, open, file, MoveOptions::default(), go_on)? {
        derived.warnings.extend(merged.left_out.iter().map(told));
    }
    Ok(())
}

fn told(skipped: &Skipped) -> String {
    format!("'{}': {}", skipped.name, skipped.reason)
}
