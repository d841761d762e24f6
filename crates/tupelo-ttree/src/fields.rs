//! The branches of a tree as nested fields: an object that is split over branches is one field again.

use std::collections::HashMap;

use tupelo_format::object::{self, Basic, Type};
use tupelo_format::streamer::StreamerInfos;
use tupelo_format::type_name::TypeName;
use tupelo_format::wire::Memory;
use tupelo_format::{Error, ErrorKind, Result};

use crate::classes::Classes;
use crate::layout::{self, BASE, ValueLayout};
use crate::tree::{Branch, Refused, Tree};

/// A field of a tree.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// Name within its parent: without the names of its parents, dimensions, and the dot at the end; base classes are
    /// called `:_0`, `:_1`, ….
    pub name: String,
    /// C++ class or type, as the branch spells it; empty where only the layout says it.
    pub type_name: String,
    /// Free text.
    pub title: String,
    /// The branches with its values.
    pub kind: FieldKind,
}

/// The branches with the values of a field.
#[derive(Debug, Clone, PartialEq)]
pub enum FieldKind {
    /// In one branch.
    Value {
        /// Number of the branch.
        branch: usize,
        /// How they are stored.
        layout: ValueLayout,
    },
    /// In the branches of its members.
    Record(Vec<Field>),
    /// In the branches of the members of its items; each has the values of all items of an entry.
    Collection {
        /// The branch with the number of items.
        counts: usize,
        /// Members of the items.
        items: Vec<Field>,
    },
}

/// How numbers of items are stored.
pub static COUNT: ValueLayout = ValueLayout::Number(Basic::I32, None);

/// The layouts of all branches that have values, by the numbers of the branches.
pub fn layouts(fields: &[Field]) -> HashMap<usize, &ValueLayout> {
    let mut all = HashMap::new();
    let mut add = Vec::from_iter(fields);
    while let Some(field) = add.pop() {
        match &field.kind {
            FieldKind::Value { branch, layout } => drop(all.insert(*branch, layout)),
            FieldKind::Record(members) => add.extend(members),
            FieldKind::Collection { counts, items } => {
                all.insert(*counts, &COUNT);
                add.extend(items);
            }
        }
    }
    all
}

impl Tree {
    /// The fields of the tree, and the branches that are not fields.
    ///
    /// # Errors
    /// Memory where they take more than is left: classes in classes can have more members than the file has bytes, and
    /// the branches below one repeat its name.
    pub fn fields(&self, infos: &StreamerInfos, memory: &Memory) -> Result<(Vec<Field>, Vec<Refused>)> {
        let (classes, refused) = (Classes::new(infos), self.unreadable.clone());
        let mut builder = Builder { tree: self, classes, refused, memory };
        let fields = builder.members(&self.top_level, &[], false)?;
        Ok((fields, builder.refused))
    }
}

struct Builder<'t> {
    tree: &'t Tree,
    classes: Classes<'t>,
    refused: Vec<Refused>,
    memory: &'t Memory,
}

impl Builder<'_> {
    /// The fields of sibling branches.
    fn members(&mut self, branches: &[usize], parents: &[&str], is_nested: bool) -> Result<Vec<Field>> {
        let mut fields: Vec<Field> = Vec::with_capacity(branches.len());
        let mut places: HashMap<String, usize> = HashMap::with_capacity(branches.len());
        let mut bases = 0;
        for &index in branches {
            let Some(branch) = self.tree.branches.get(index) else { continue };
            let mut field = match self.field(index, branch, parents) {
                // All of its members were refused.
                Ok(Field { kind: FieldKind::Record(members), .. })
                    if members.is_empty() && !branch.children.is_empty() =>
                {
                    continue;
                }
                Ok(field) => field,
                Err(error) if error.kind() == ErrorKind::Memory => return Err(error),
                Err(error) => {
                    self.refuse(index, &error)?;
                    continue;
                }
            };
            if is_nested && self.is_base(branch) {
                field.name = format!("{BASE}{bases}");
                bases += 1;
            }
            // Members of members that have no branch of their own.
            let within = if is_nested { field.name.clone() } else { String::new() };
            match within.split_once('.') {
                Some((record, member)) if !record.is_empty() && !member.is_empty() => {
                    field.name = member.to_owned();
                    match places.get(record).and_then(|&place| fields.get_mut(place)) {
                        Some(Field { kind: FieldKind::Record(members), .. }) => members.push(field),
                        Some(_) => self.refuse(index, &Error::unsupported("another branch has the same name"))?,
                        None => {
                            places.insert(record.to_owned(), fields.len());
                            fields.push(Field {
                                name: record.to_owned(),
                                type_name: String::new(),
                                title: String::new(),
                                kind: FieldKind::Record(vec![field]),
                            });
                        }
                    }
                }
                _ if field.name.is_empty() => self.refuse(index, &Error::unsupported("its name is empty"))?,
                _ => {
                    // Two branches `x.`, or `x` and `x.`, are two fields.
                    if places.contains_key(&field.name) {
                        field.name.push('_');
                    }
                    if places.contains_key(&field.name) {
                        self.refuse(index, &Error::unsupported("another branch has the same name"))?;
                        continue;
                    }
                    places.insert(field.name.clone(), fields.len());
                    fields.push(field);
                }
            }
        }
        Ok(fields)
    }

    fn refuse(&mut self, index: usize, error: &Error) -> Result<()> {
        let reason = error.to_string();
        self.take(self.tree.path_bytes(index) + reason.len() + size_of::<Refused>())?;
        self.refused.push(Refused { path: self.tree.path(index), reason, kind: error.kind() });
        Ok(())
    }

    fn take(&self, bytes: usize) -> Result<()> {
        self.memory.take(bytes as u64, "the fields of a tree")
    }

    fn field(&mut self, index: usize, branch: &Branch, parents: &[&str]) -> Result<Field> {
        let kind = branch.element.as_ref().map_or(0, |element| element.kind);
        let name = local_name(&branch.name, parents);
        let type_name = match (layout::member_type(branch, &self.classes), &branch.element) {
            (Some(member), _) => member,
            (None, Some(element)) if element.id < 0 => &branch.class_name,
            // Of an old branch of whole objects.
            (None, None) => &branch.class_name,
            (None, _) => "",
        };
        self.take(size_of::<Field>() + type_name.len() + self.tree.path_bytes(index))?;
        let type_name = type_name.to_owned();
        let below = || [parents, &[branch.name.as_str()]].concat();
        let kind = match (kind, branch.children.is_empty()) {
            (3 | 4, _) => {
                let items = self.members(&branch.children, &below(), true)?;
                let mut items = self.of_items(items)?;
                if let (Ok(Type::Map(..)), [first, second]) = (Type::parse(&type_name), items.as_mut_slice()) {
                    first.name = "_0".to_owned();
                    second.name = "_1".to_owned();
                    // The streamer info may lack the pair.
                    let arguments = TypeName::parse(&type_name).map_or_else(Vec::new, |name| name.arguments);
                    for (part, argument) in [first, second].into_iter().zip(arguments) {
                        if part.type_name.is_empty() {
                            part.type_name = argument.to_owned();
                        }
                    }
                }
                FieldKind::Collection { counts: index, items }
            }
            (_, false) => {
                let mut members = self.members(&branch.children, &below(), true)?;
                // Branches of leaves may have others below them and values of their own.
                if branch.element.is_none() && !branch.baskets.is_empty() {
                    match self.value(index, branch) {
                        Err(error) if error.kind() == ErrorKind::Memory => return Err(error),
                        _ if members.iter().any(|member| member.name == name) => {
                            self.refuse(index, &Error::unsupported("one of its sub-branches has the same name"))?;
                        }
                        Ok(kind) => {
                            let (type_name, title) = (String::new(), String::new());
                            members.insert(0, Field { name: name.clone(), type_name, title, kind });
                        }
                        Err(error) => self.refuse(index, &error)?,
                    }
                }
                FieldKind::Record(members)
            }
            (_, true) => self.value(index, branch)?,
        };
        let title = if is_description(branch) { branch.title.clone() } else { String::new() };
        Ok(Field { name, type_name, title, kind })
    }

    /// The members of a collection: the branches below it have the values of all its items in each entry.
    fn of_items(&mut self, members: Vec<Field>) -> Result<Vec<Field>> {
        let mut kept = Vec::with_capacity(members.len());
        for mut member in members {
            let branch = match &mut member.kind {
                FieldKind::Value { layout: ValueLayout::Rest(_), .. } => None,
                FieldKind::Record(members) if !members.is_empty() => {
                    *members = self.of_items(std::mem::take(members))?;
                    if members.is_empty() {
                        continue;
                    }
                    None
                }
                FieldKind::Record(_) => None,
                FieldKind::Value { branch, .. } | FieldKind::Collection { counts: branch, .. } => Some(*branch),
            };
            match branch {
                Some(branch) => {
                    self.refuse(branch, &Error::corrupt("it lacks values for the items of its collection"))?
                }
                None => kept.push(member),
            }
        }
        Ok(kept)
    }

    /// The values of a branch itself.
    fn value(&mut self, index: usize, branch: &Branch) -> Result<FieldKind> {
        if branch.entries == 0 && self.tree.entries > 0 {
            let what = format!("it has no entries, but the tree has {}", self.tree.entries);
            return Err(Error::unsupported(what));
        }
        let layout = match layout::of_branch(self.tree, index, &self.classes, self.memory) {
            Ok(layout) => layout,
            Err(error) if error.kind() == ErrorKind::Memory => return Err(error),
            // Values without columns are left as bytes, if they can be decoded as objects.
            Err(_) if self.is_object(branch) => ValueLayout::Opaque,
            Err(error) => return Err(error),
        };
        Ok(FieldKind::Value { branch: index, layout })
    }

    /// Whether the entries of a branch can be decoded one by one, without columns.
    fn is_object(&self, branch: &Branch) -> bool {
        branch.element.as_ref().is_some_and(|element| match element.id {
            ..0 => !branch.class_name.is_empty() && !object::has_own_format(&branch.class_name),
            _ => element.kind == 0 && layout::member_type(branch, &self.classes).is_some(),
        })
    }

    /// Whether a branch holds a base class of the object around it.
    fn is_base(&self, branch: &Branch) -> bool {
        let Some(element) = &branch.element else { return false };
        // Codes of bases: of TObject, TNamed, and other classes.
        if element.kind == 1 {
            return true;
        }
        if let Some(is_base) = layout::is_base(branch, &self.classes) {
            return is_base;
        }
        element.kind == 0 && element.id >= 0 && matches!(element.streamer_type, 0 | 66 | 67)
    }
}

/// Whether a title contains more than the names and types of the leaves.
fn is_description(branch: &Branch) -> bool {
    let is_leaf = |part: &str| {
        part.rsplit_once('/').is_some_and(|(_, code)| code.split('[').next().is_some_and(|it| it.len() == 1))
    };
    branch.element.is_none() && branch.title != branch.name && !branch.title.split(':').all(is_leaf)
}

/// The name of a branch without those of its parents.
fn local_name(name: &str, parents: &[&str]) -> String {
    let name = match name.find('[') {
        Some(at) if name.ends_with(']') => name.get(..at).unwrap_or(name),
        _ => name,
    };
    let name = name.strip_suffix('.').unwrap_or(name);
    for parent in parents.iter().rev() {
        let parent = parent.strip_suffix('.').unwrap_or(parent);
        if let Some(rest) = name.strip_prefix(parent).and_then(|rest| rest.strip_prefix('.')) {
            return rest.to_owned();
        }
    }
    name.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lose_those_of_their_parents() {
        assert_eq!(local_name("EventInfoAux.", &[]), "EventInfoAux");
        assert_eq!(local_name("EventInfoAux.runNumber", &["EventInfoAux."]), "runNumber");
        assert_eq!(local_name("t.fSec", &["Evt", "t"]), "fSec");
        assert_eq!(local_name("ev.t.fSec", &["ev.", "ev.t"]), "fSec");
        assert_eq!(local_name("trks.pos.x", &["Evt", "trks"]), "pos.x");
        assert_eq!(local_name("fMatrix[3][3]", &["Evt"]), "fMatrix");
        assert_eq!(local_name("jets.pt", &[]), "jets.pt");
    }
}
