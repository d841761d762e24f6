//! Containers, objects and their variables, by the names and types of fields.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use tupelo::schema::{Field, Kind, Schema};
use tupelo::{Error, Result};

/// Ends of the names of auxiliary stores; in a tree, fields of stores lose the dot at their end.
const STATIC: &str = "Aux";
const DYNAMIC: &str = "AuxDyn";
/// Classes of stores of shallow copies begin like this.
const SHALLOW: &str = "xAOD::ShallowAux";
/// Their link to the store that they are a copy of.
const PARENT_LINK: &str = "m_parentLink";
/// End of the name of a variable that belongs to another one.
const LINKED: &str = "_linked";

/// Where a variable is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// A member of the class of the store.
    Static,
    /// A separate field.
    Dynamic,
}

/// A variable of a container or object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable {
    name: String,
    path: String,
    type_name: String,
    origin: Origin,
    id: usize,
    linked: Option<Linked>,
}

/// The variable that belongs to another one, with as many values in each entry as are needed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Linked {
    /// Dotted path of its field.
    pub(crate) path: String,
    pub(crate) kind: LinkedKind,
}

/// How values refer to those of the variable that belongs to them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LinkedKind {
    /// `SG::PackedLink`: links whose containers are a list of keys.
    Containers,
    /// `SG::JaggedVecElt`: the ends of lists whose items are one after the other.
    Items,
}

impl Variable {
    /// Name, such as `pt`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Dotted path of the field with the values.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// C++ type of the value of one element.
    pub fn type_name(&self) -> &str {
        &self.type_name
    }

    /// Whether the variable is a member of the class of the store.
    pub fn origin(&self) -> Origin {
        self.origin
    }

    /// The variable that belongs to it.
    pub(crate) fn linked(&self) -> Option<&Linked> {
        self.linked.as_ref()
    }

    /// Number of this name and type among those of the event, counted from 0 in the order of their texts. Unlike numbers in the
    /// order in which variables are first met, it is the same for the same variables in ntuples and trees, whatever was opened
    /// before.
    pub fn id(&self) -> usize {
        self.id
    }
}

/// A container of elements, or a stand-alone object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Container {
    name: String,
    class_name: String,
    store_class: String,
    is_object: bool,
    interface: Option<String>,
    /// The fields of the container itself and of its store.
    own: [Option<String>; 2],
    /// The path of the link of a shallow copy to the store that it is a copy of.
    parent_link: Option<String>,
    /// The container that it is a shallow copy of.
    parent: Option<String>,
    fields: Vec<String>,
    variables: Vec<Variable>,
    /// The places of variables by name.
    places: HashMap<String, usize>,
}

impl Container {
    /// Name, such as `AnalysisJets`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// C++ class of the container, such as `DataVector<xAOD::Jet_v1>`; empty if the file has only its store.
    pub fn class_name(&self) -> &str {
        &self.class_name
    }

    /// C++ class of the auxiliary store; empty if all variables are dynamic, and the file has no store.
    pub fn store_class(&self) -> &str {
        &self.store_class
    }

    /// Whether it is one object in each entry and not a container.
    pub fn is_object(&self) -> bool {
        self.is_object
    }

    /// The variables: those of the class of the store, then dynamic ones, as far as their names are not taken.
    pub fn variables(&self) -> &[Variable] {
        &self.variables
    }

    /// The path of the field whose items are the elements; `None` for objects, and if the file has only the store.
    pub(crate) fn interface(&self) -> Option<&str> {
        self.interface.as_deref()
    }

    /// Names of the top-level fields: the container itself, its store, and dynamic variables, hidden ones included.
    pub fn fields(&self) -> &[String] {
        &self.fields
    }

    /// The fields of the container itself and of its store.
    pub(crate) fn own_fields(&self) -> impl Iterator<Item = &str> {
        self.own.iter().flatten().map(String::as_str)
    }

    /// The container that it is a shallow copy of, which has the variables that it lacks itself.
    pub fn parent(&self) -> Option<&str> {
        self.parent.as_deref()
    }

    /// The path of the link of a shallow copy to the store that it is a copy of.
    pub(crate) fn parent_link(&self) -> Option<&str> {
        self.parent_link.as_deref()
    }

    /// The field of the store.
    pub(crate) fn store_field(&self) -> Option<&str> {
        self.own[1].as_deref()
    }

    /// The name of the field of a new dynamic variable.
    pub(crate) fn new_field(&self, variable: &str, has_dots: bool) -> String {
        let dot = if has_dots { '.' } else { ':' };
        format!("{}{DYNAMIC}{dot}{variable}", self.name)
    }

    /// The path of a field with an item for each element.
    ///
    /// # Errors
    /// Unsupported if nothing tells how many elements there are.
    pub(crate) fn counted_by(&self) -> Result<&str> {
        let first = self.variables.first().map(Variable::path);
        let unknown = || Error::unsupported(format!("'{}' has neither elements nor variables", self.name));
        first.or(self.interface()).ok_or_else(unknown)
    }

    /// The variable with a name.
    ///
    /// # Errors
    /// Not found, with near names.
    pub fn variable(&self, name: &str) -> Result<&Variable> {
        let found = self.places.get(name).and_then(|&at| self.variables.get(at));
        found.ok_or_else(|| {
            let known = self.variables.iter().map(Variable::name);
            Error::no_such(&format!("variable of '{}'", self.name), name, known)
        })
    }
}

/// All containers and objects of an event.
#[derive(Debug, Clone, Default)]
pub struct Stores {
    containers: Vec<Container>,
    by_name: HashMap<String, usize>,
}

/// What is known of a container while fields are looked at.
#[derive(Default)]
struct Found<'s> {
    interface: Option<&'s Field>,
    store: Option<&'s Field>,
    /// Names, paths and fields.
    dynamic: Vec<(String, String, &'s Field)>,
}

impl Stores {
    /// The containers of the fields of an ntuple or tree.
    pub fn of(schema: &Schema) -> Self {
        let mut found: BTreeMap<&str, Found<'_>> = BTreeMap::new();
        for field in &schema.fields {
            if let Some((container, variable)) = dynamic(&field.name) {
                let variable = (variable.to_owned(), tupelo::schema::escaped(&field.name), field);
                found.entry(container).or_default().dynamic.push(variable);
            } else if let Some(container) = store(field) {
                found.entry(container).or_default().store = Some(field);
            }
        }
        for field in &schema.fields {
            if let Some(known) = found.get_mut(field.name.as_str()) {
                known.interface = Some(field);
            }
        }
        let mut containers: Vec<Container> = found.into_iter().map(|(name, found)| container(name, &found)).collect();
        number(&mut containers);
        let by_name = containers.iter().enumerate().map(|(at, it)| (it.name.clone(), at)).collect();
        Self { containers, by_name }
    }

    /// Gives shallow copies the variables of their originals: pairs of names.
    pub(crate) fn with_parents(mut self, pairs: &[(String, String)]) -> Self {
        for (copy, parent) in pairs {
            let Ok(inherited) = self.container(parent).map(|parent| parent.variables.clone()) else { continue };
            let Some(copy) = self.by_name.get(copy).and_then(|&at| self.containers.get_mut(at)) else { continue };
            let known: BTreeSet<String> = copy.variables.iter().map(|variable| variable.name.clone()).collect();
            copy.variables.extend(inherited.into_iter().filter(|variable| !known.contains(&variable.name)));
            copy.places = places(&copy.variables);
            copy.parent = Some(parent.clone());
        }
        self
    }

    /// All of them, in the order of their names.
    pub fn containers(&self) -> &[Container] {
        &self.containers
    }

    /// The container or object with a name.
    ///
    /// # Errors
    /// Not found, with near names.
    pub fn container(&self, name: &str) -> Result<&Container> {
        let found = self.by_name.get(name).and_then(|&at| self.containers.get(at));
        found.ok_or_else(|| {
            let known = self.containers.iter().map(Container::name);
            Error::no_such("container or object", name, known)
        })
    }

    /// The container and variable that a field of one is called by, in the spelling of ntuples or of trees:
    /// `AnalysisElectronsAuxDyn:trackParticleLinks`, `AnalysisElectronsAux.pt` or `AnalysisElectrons.pt`.
    ///
    /// # Errors
    /// Not found, with near names.
    pub fn find(&self, name: &str) -> Result<(&Container, &Variable)> {
        let parts = dynamic(name).or_else(|| {
            let (container, variable) = name.split_once(['.', ':'])?;
            // `XAux:.y` is a member of a store as a path of an ntuple.
            let variable = variable.trim_start_matches(['.', ':']);
            Some((container.strip_suffix(STATIC).unwrap_or(container), variable))
        });
        let (container, variable) = parts.ok_or_else(|| {
            let what = format!("'{name}' is not a variable; name its container, as in 'AnalysisJets.pt'");
            Error::invalid_argument(what)
        })?;
        let container = self.container(container)?;
        Ok((container, container.variable(variable)?))
    }
}

/// The container and the variable of `XAuxDyn:y` or `XAuxDyn.y`.
fn dynamic(name: &str) -> Option<(&str, &str)> {
    let (container, variable) = [":", "."].iter().find_map(|dot| name.split_once(&format!("{DYNAMIC}{dot}")))?;
    (!container.is_empty() && !variable.is_empty()).then_some((container, variable))
}

/// The container of a store with this name: `XAux:` or `XAux.`.
pub(crate) fn container_of(store: &str) -> Option<&str> {
    store.strip_suffix([':', '.'])?.strip_suffix(STATIC).filter(|container| !container.is_empty())
}

/// The container of a field that is a store: `XAux:`, or `XAux` with members in a tree.
fn store(field: &Field) -> Option<&str> {
    match field.name.ends_with([':', '.']) {
        true => container_of(&field.name),
        false if matches!(field.kind, Kind::Record(_)) => {
            field.name.strip_suffix(STATIC).filter(|container| !container.is_empty())
        }
        false => None,
    }
}

fn container(name: &str, found: &Found<'_>) -> Container {
    let mut members = Vec::new();
    if let Some(store) = found.store {
        add_members(store, &tupelo::schema::escaped(&store.name), &mut members);
    }
    let is_copy = found.store.is_some_and(|store| store.type_name.starts_with(SHALLOW));
    let parent_link = members.iter().position(|(name, ..)| is_copy && name == PARENT_LINK);
    let parent_link = parent_link.map(|at| members.remove(at).1);
    let is_list = |field: &Field| matches!(field.kind, Kind::Collection(_));
    let is_object = match found.interface.map(|field| &field.kind) {
        Some(Kind::Collection(_)) => false,
        Some(Kind::Record(_)) => true,
        _ => {
            let all = members.iter().chain(&found.dynamic).map(|(_, _, field)| *field);
            !all.into_iter().all(is_list)
        }
    };
    let variable = |(name, path, field): &(String, String, &Field), origin| {
        let value = match &field.kind {
            Kind::Collection(item) if !is_object => item,
            _ => *field,
        };
        Variable { name: name.clone(), path: path.clone(), type_name: type_name(value), origin, id: 0, linked: None }
    };
    let mut variables: Vec<Variable> = members.iter().map(|it| variable(it, Origin::Static)).collect();
    let known: BTreeSet<String> = variables.iter().map(|variable| variable.name.clone()).collect();
    let dynamic = found.dynamic.iter().filter(|(name, ..)| !known.contains(name));
    variables.extend(dynamic.map(|it| variable(it, Origin::Dynamic)));
    let variables = with_linked(variables);
    let own = [found.interface, found.store].map(|field| field.map(|field| field.name.clone()));
    let fields =
        own.iter().flatten().cloned().chain(found.dynamic.iter().map(|(_, _, field)| field.name.clone())).collect();
    let class_of = |field: Option<&Field>| field.map(|field| field.type_name.clone()).unwrap_or_default();
    Container {
        name: name.to_owned(),
        class_name: class_of(found.interface),
        store_class: class_of(found.store),
        is_object,
        interface: found.interface.filter(|field| is_list(field)).map(|field| tupelo::schema::escaped(&field.name)),
        own,
        parent_link,
        parent: None,
        fields,
        places: places(&variables),
        variables,
    }
}

fn places(variables: &[Variable]) -> HashMap<String, usize> {
    variables.iter().enumerate().map(|(at, variable)| (variable.name.clone(), at)).collect()
}

/// Variables without those that belong to others, which know them.
fn with_linked(variables: Vec<Variable>) -> Vec<Variable> {
    let path_of: HashMap<String, String> = variables.iter().map(|it| (it.name.clone(), it.path.clone())).collect();
    let linked = |variable: &Variable| {
        let kind = LinkedKind::of(&variable.type_name)?;
        let path = path_of.get(&format!("{}{LINKED}", variable.name))?.clone();
        Some(Linked { path, kind })
    };
    let found: Vec<Option<Linked>> = variables.iter().map(linked).collect();
    let hidden: BTreeSet<String> = found.iter().flatten().map(|it| it.path.clone()).collect();
    let pairs = variables.into_iter().zip(found).filter(|(variable, _)| !hidden.contains(&variable.path));
    pairs.map(|(variable, linked)| Variable { linked, ..variable }).collect()
}

impl LinkedKind {
    /// That of the values of one element, or of lists of them.
    fn of(type_name: &str) -> Option<Self> {
        let item = type_name.strip_prefix("std::vector<").unwrap_or(type_name);
        [("SG::PackedLink<", Self::Containers), ("SG::JaggedVecElt<", Self::Items)]
            .into_iter()
            .find_map(|(prefix, kind)| item.starts_with(prefix).then_some(kind))
    }
}

/// The name of a field in an ntuple, which has colons in place of dots.
pub(crate) fn ntuple_name(field: &Field) -> String {
    let is_store = store(field).is_some() && field.name.ends_with(STATIC);
    format!("{}{}", field.name.replace('.', ":"), if is_store { ":" } else { "" })
}

/// Members of the class of a store and of its bases, in whose interfaces nothing is stored.
fn add_members<'s>(field: &'s Field, path: &str, found: &mut Vec<(String, String, &'s Field)>) {
    for member in field.children() {
        let path = format!("{path}.{}", member.name);
        match member.name.starts_with(":_") {
            true => add_members(member, &path, found),
            false => found.push((member.name.clone(), path, member)),
        }
    }
}

/// The type of a value by its structure, so that all spellings of it are one: aliases, spaces, and `long` for 64 bits.
fn type_name(field: &Field) -> String {
    let parts = || field.children().iter().map(type_name).collect::<Vec<_>>().join(",");
    match &field.kind {
        Kind::Collection(_) if field.type_name.starts_with("std::set") => format!("std::set<{}>", parts()),
        Kind::Collection(_) => format!("std::vector<{}>", parts()),
        Kind::Map(_) => format!("std::map<{}>", parts()),
        Kind::Tuple(_) => format!("std::pair<{}>", parts()),
        Kind::Wrapper(item) => type_name(item),
        Kind::Array { size, .. } => format!("std::array<{},{size}>", parts()),
        Kind::Primitive(_) if field.type_name == "char" => "std::int8_t".to_owned(),
        _ => field.type_name.replace(' ', ""),
    }
}

/// Numbers all names with types in the order of their texts.
fn number(containers: &mut [Container]) {
    let all: BTreeSet<(String, String)> =
        containers.iter().flat_map(|it| &it.variables).map(|it| (it.name.clone(), it.type_name.clone())).collect();
    let ids: HashMap<(String, String), usize> = all.into_iter().enumerate().map(|(id, key)| (key, id)).collect();
    for variable in containers.iter_mut().flat_map(|container| &mut container.variables) {
        variable.id = ids.get(&(variable.name.clone(), variable.type_name.clone())).copied().unwrap_or(0);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_schema::{DataType, Field as ArrowField, Fields, Schema as ArrowSchema};

    use super::*;

    fn list(item: DataType) -> DataType {
        DataType::LargeList(Arc::new(ArrowField::new("item", item, false)))
    }

    fn stores(fields: Vec<(&str, DataType)>) -> Stores {
        let fields: Vec<ArrowField> =
            fields.into_iter().map(|(name, data_type)| ArrowField::new(name, data_type, false)).collect();
        Stores::of(&Schema::from_arrow(&ArrowSchema::new(fields)).unwrap())
    }

    fn members(members: &[(&str, DataType)]) -> DataType {
        let field = |(name, data_type): &(&str, DataType)| ArrowField::new(*name, data_type.clone(), false);
        DataType::Struct(members.iter().map(field).collect::<Fields>())
    }

    #[test]
    fn static_variables_come_first_and_hide_dynamic_ones() {
        let base = members(&[("e", list(DataType::Float32))]);
        let store = members(&[(":_0", base), ("pt", list(DataType::Float32))]);
        let found = stores(vec![
            ("JetsAuxDyn:pt", list(DataType::Float64)),
            ("JetsAuxDyn:m", list(DataType::Float32)),
            ("JetsAux:", store),
            ("Jets", list(members(&[]))),
            ("AuxDyn:x", DataType::Int32),
            ("other", DataType::Int32),
        ]);
        let [jets] = found.containers() else { panic!("{found:?}") };
        assert!(!jets.is_object() && jets.interface() == Some("Jets"));
        let shown: Vec<(&str, &str, Origin)> =
            jets.variables().iter().map(|it| (it.name(), it.path(), it.origin())).collect();
        let expected = [
            ("e", "JetsAux:.:_0.e", Origin::Static),
            ("pt", "JetsAux:.pt", Origin::Static),
            ("m", "JetsAuxDyn:m", Origin::Dynamic),
        ];
        assert_eq!(shown, expected);
        for name in ["JetsAuxDyn:m", "JetsAuxDyn.m", "Jets.m", "JetsAux:.pt", "JetsAux.pt"] {
            assert_eq!(found.find(name).unwrap().0.name(), "Jets", "{name}");
        }
        assert!(found.find("m").unwrap_err().to_string().contains("name its container"));
    }

    /// Numbers depend neither on the order of fields nor on the spelling of names.
    #[test]
    fn variables_have_numbers_by_name_and_type() {
        let number = |stores: &Stores, name: &str| stores.find(name).unwrap().1.id();
        let ntuple = stores(vec![
            ("AAuxDyn:x", list(DataType::Float32)),
            ("BAuxDyn:x", list(DataType::Int32)),
            ("CAuxDyn:x", list(DataType::Float32)),
            ("IAuxDyn:x", DataType::Float32),
        ]);
        let tree = stores(vec![
            ("IAuxDyn.x", DataType::Float32),
            ("CAuxDyn.x", list(DataType::Float32)),
            ("BAuxDyn.x", list(DataType::Int32)),
            ("AAuxDyn.x", list(DataType::Float32)),
        ]);
        for name in ["A.x", "B.x", "C.x", "I.x"] {
            assert_eq!(number(&ntuple, name), number(&tree, name), "{name}");
        }
        assert_eq!(number(&ntuple, "A.x"), number(&ntuple, "C.x"));
        assert_eq!(number(&ntuple, "A.x"), number(&ntuple, "I.x"));
        assert_ne!(number(&ntuple, "A.x"), number(&ntuple, "B.x"));
        assert!(ntuple.container("I").unwrap().is_object());
    }
}
