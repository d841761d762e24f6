//! What the nodes stand for: the objects of a file, and the fields of its ntuples and trees.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;

use tupelo::ops::inspect::{FieldReport, Report, inspect};
use tupelo::ops::is_entries;
use tupelo::reader::Object;
use tupelo::schema::{Field, Kind};
use tupelo::{File, Table};

use super::super::ls::DIRECTORY_CLASS;
use super::outline::{Label, NodeId, Outline};
use super::values::{Values, item};
use crate::failure::Failure;

/// An ntuple or tree whose metadata were read.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) table: Table,
    pub(super) report: Report,
    /// What cannot be read, and the rules that the file breaks.
    pub(super) warnings: Vec<String>,
}

impl Opened {
    /// Reads the metadata.
    pub(super) fn read(file: &File, name: &str) -> Result<Self, Failure> {
        let table = file.table(Some(name))?;
        let report = inspect(file, &table)?;
        let deviations = table.deviations().into_iter().map(|deviation| deviation.to_string());
        let warnings = deviations.chain(table.warnings()).collect();
        Ok(Self { table, report, warnings })
    }
}

/// What is known of an ntuple or tree.
#[derive(Debug)]
pub(super) enum State {
    Unread,
    Read(Arc<Opened>),
    Failed(Failure),
}

/// An object of the file.
#[derive(Debug, Clone)]
pub(super) struct Listed {
    pub(super) object: Object,
    /// Older objects with the same name, which are not shown.
    pub(super) older: usize,
}

/// What a node stands for.
#[derive(Debug)]
pub(super) enum Content {
    Directory(Listed),
    /// An ntuple or a tree.
    Table(Listed, State),
    /// Another object.
    Object(Listed),
    Field(Box<FieldNode>),
}

impl Content {
    /// The object of the file that it is, if it is one.
    pub(super) fn listed(&self) -> Option<&Listed> {
        match self {
            Self::Directory(listed) | Self::Table(listed, _) | Self::Object(listed) => Some(listed),
            Self::Field(_) => None,
        }
    }

    /// The field that it is.
    pub(super) fn field(&self) -> Option<&FieldNode> {
        match self {
            Self::Field(field) => Some(field),
            Self::Directory(_) | Self::Table(..) | Self::Object(_) => None,
        }
    }
}

/// A field at any depth. Items of collections have no node of their own.
#[derive(Debug)]
pub(super) struct FieldNode {
    pub(super) opened: Arc<Opened>,
    /// The names on the way to it, from that of the top-level field on.
    pub(super) steps: Vec<String>,
    /// The path that the report has for its first column.
    pub(super) column_path: String,
    pub(super) values: Values,
    /// Its own columns, by their places in the report.
    pub(super) columns: Vec<usize>,
    /// Sums of all columns of the field and of what is below it.
    pub(super) pages: u64,
    pub(super) stored_bytes: u64,
    pub(super) unpacked_bytes: u64,
    pub(super) description: String,
    pub(super) projected_from: Option<String>,
    pub(super) unreadable: Option<String>,
}

impl FieldNode {
    fn new(opened: &Arc<Opened>, steps: Vec<String>, column_path: &str, values: Values) -> Self {
        Self {
            opened: Arc::clone(opened),
            steps,
            column_path: column_path.to_owned(),
            values,
            columns: Vec::new(),
            pages: 0,
            stored_bytes: 0,
            unpacked_bytes: 0,
            description: String::new(),
            projected_from: None,
            unreadable: None,
        }
    }
}

/// The newest of all objects of each name.
pub(super) fn newest(objects: Vec<Object>) -> Vec<Listed> {
    let mut older: HashMap<String, usize> = HashMap::new();
    for object in objects.iter().filter(|object| !object.is_newest) {
        *older.entry(object.path.clone()).or_default() += 1;
    }
    let newest = objects.into_iter().filter(|object| object.is_newest);
    newest.map(|object| Listed { older: older.get(&object.path).copied().unwrap_or(0), object }).collect()
}

/// Adds objects that a file lists, each in its directory. `below` is the directory whose objects these are, with a slash; it is
/// empty for the file.
pub(super) fn add_objects(outline: &mut Outline<Content>, objects: Vec<Listed>, below: &str) {
    // What is in a directory follows it.
    let mut directories: Vec<(String, NodeId)> = Vec::new();
    for listed in objects {
        let object = &listed.object;
        while directories.last().is_some_and(|(start, _)| !object.path.starts_with(start.as_str())) {
            directories.pop();
        }
        let parent = directories.last().map(|(_, id)| *id);
        let start = directories.last().map_or(below.len(), |(start, _)| start.len());
        let shown = object.name();
        let is_table = is_entries(&object.class_name);
        let mut label = Label {
            name: shown.get(start..).unwrap_or(&shown).to_owned(),
            path: shown,
            separator: '/',
            type_name: object.class_name.clone(),
            // Of ntuples and trees, the record is only the beginning.
            bytes: (!is_table).then_some(object.bytes),
        };
        if object.class_name.starts_with(DIRECTORY_CLASS) {
            label.bytes = None;
            label.name.push('/');
            let start = format!("{}/", object.path);
            directories.push((start, outline.add(parent, label, Content::Directory(listed))));
        } else if is_table {
            let id = outline.add(parent, label, Content::Table(listed, State::Unread));
            outline.node_mut(id).is_unread = true;
        } else {
            outline.add(parent, label, Content::Object(listed));
        }
    }
    outline.update();
}

/// Adds the fields of an ntuple or tree below its node, with the sizes of their columns.
pub(super) fn add_fields(outline: &mut Outline<Content>, id: NodeId, opened: &Arc<Opened>) {
    let report = &opened.report;
    let mut adding = Adding { outline, opened, is_tree: opened.table.is_of_trees(), places: HashMap::new() };
    let schema = opened.table.schema();
    let known: HashMap<&str, &Field> = schema.fields.iter().map(|field| (field.name.as_str(), field)).collect();
    for reported in &report.fields {
        match known.get(reported.name.as_str()).filter(|_| reported.unreadable.is_none()) {
            Some(field) => adding.field(id, field, reported),
            None => adding.unreadable(id, reported),
        }
    }
    let places = adding.places;
    for (number, column) in report.columns.iter().enumerate() {
        let Some(&place) = nearest(&places, &column.path) else { continue };
        if let Content::Field(field) = &mut outline.node_mut(place).content {
            field.columns.push(number);
            field.pages += column.pages;
            field.stored_bytes = field.stored_bytes.saturating_add(column.stored_bytes);
            field.unpacked_bytes = field.unpacked_bytes.saturating_add(column.unpacked_bytes);
        }
    }
    // Children follow their parents.
    for node in outline.below(id).into_iter().skip(1).rev() {
        let Content::Field(field) = &outline.node(node).content else { continue };
        let (pages, stored, unpacked) = (field.pages, field.stored_bytes, field.unpacked_bytes);
        let is_projected = field.projected_from.is_some();
        outline.node_mut(node).label.bytes = (!is_projected).then_some(stored);
        let Some(parent) = outline.node(node).parent else { continue };
        if let Content::Field(above) = &mut outline.node_mut(parent).content {
            above.pages += pages;
            above.stored_bytes = above.stored_bytes.saturating_add(stored);
            above.unpacked_bytes = above.unpacked_bytes.saturating_add(unpacked);
        }
    }
    let table = outline.node_mut(id);
    table.is_unread = false;
    table.label.bytes = Some(report.bytes.stored_bytes);
    if let Content::Table(_, state) = &mut table.content {
        *state = State::Read(Arc::clone(opened));
    }
    outline.update();
}

/// The node of a column, or that of the field around it which has a node.
fn nearest<'p>(places: &'p HashMap<String, NodeId>, path: &str) -> Option<&'p NodeId> {
    let mut path = path;
    loop {
        // Branches that cannot be read have slashes.
        match (places.get(path), path.rfind(['.', '/'])) {
            (Some(place), _) => return Some(place),
            (None, Some(end)) => path = &path[..end],
            (None, None) => return None,
        }
    }
}

/// Fields that are being added.
struct Adding<'a> {
    outline: &'a mut Outline<Content>,
    opened: &'a Arc<Opened>,
    is_tree: bool,
    /// The nodes by the paths that the report has for columns.
    places: HashMap<String, NodeId>,
}

/// A field with the paths that lead to it.
struct Place<'f> {
    field: &'f Field,
    parent: NodeId,
    /// Without the items of collections.
    path: String,
    /// As the report has it for columns: of ntuples with the items of collections.
    column_path: String,
    steps: Vec<String>,
}

impl Adding<'_> {
    /// Adds a top-level field and all below it.
    fn field(&mut self, table: NodeId, field: &Field, reported: &FieldReport) {
        let (path, steps) = (field.name.clone(), vec![field.name.clone()]);
        let mut next = vec![Place { field, parent: table, column_path: path.clone(), path, steps }];
        while let Some(Place { field, parent, path, column_path, steps }) = next.pop() {
            let mut node = FieldNode::new(self.opened, steps.clone(), &column_path, Values::of(field));
            node.description.clone_from(&field.description);
            node.projected_from =
                if parent == table { &reported.projected_from } else { &field.projected_from }.clone();
            let id = self.add(parent, [&field.name, &path, field.display_type()], node);
            let (mut inner, mut inner_path) = (field, column_path.clone());
            self.places.insert(column_path, id);
            while let Some(item) = item(inner) {
                inner = item;
                if !self.is_tree {
                    inner_path += &format!(".{}", item.name);
                }
            }
            // A variant is read with all its alternatives.
            if matches!(inner.kind, Kind::Variant(_)) {
                continue;
            }
            next.extend(inner.children().iter().rev().map(|child| {
                let join = |above: &str| format!("{above}.{}", child.name);
                let steps = steps.iter().cloned().chain([child.name.clone()]).collect();
                Place { field: child, parent: id, path: join(&path), column_path: join(&inner_path), steps }
            }));
        }
    }

    /// Adds a field that cannot be read, whose columns may be known.
    fn unreadable(&mut self, table: NodeId, reported: &FieldReport) {
        let mut node = FieldNode::new(self.opened, vec![reported.name.clone()], &reported.name, Values::Members);
        node.projected_from.clone_from(&reported.projected_from);
        node.unreadable.clone_from(&reported.unreadable);
        let id = self.add(table, [&reported.name, &reported.name, &reported.type_name], node);
        self.places.insert(reported.name.clone(), id);
    }

    fn add(&mut self, parent: NodeId, [name, path, type_name]: [&str; 3], node: FieldNode) -> NodeId {
        let [name, path, type_name] = [name, path, type_name].map(str::to_owned);
        let label = Label { name, path, separator: '.', type_name, bytes: None };
        self.outline.add(Some(parent), label, Content::Field(Box::new(node)))
    }
}
