//! Which branches hold the values of fields.

mod items;

use std::collections::{HashMap, HashSet};

use tupelo_format::object::Basic;
use tupelo_format::streamer::code::ARRAY;
use tupelo_format::streamer::{StreamerInfos, class_checksum};
use tupelo_format::{Error, Result};

use super::classes;
use super::form::{ContainerKind, FlatMember, Jagged, OBJECT, is_base, number, vector};
use super::values::{check_member, check_name, member, members, no_form, value};
use super::{Encoding, Field, Form, Record};
use crate::streamer;

/// Version that ROOT gives to containers in branches (that of `TCollectionProxyInfo`).
const CONTAINER_VERSION: i32 = 6;
/// Version and checksum of `std::string` in branches that ROOT 6.40 writes. ROOT reads those of other versions, too.
const TEXT_VERSION: i32 = 2;
const TEXT_CHECKSUM: u32 = 1_852_773_892;
/// ROOT's code of a number of items (`TVirtualStreamerInfo::kCounter`).
const COUNTER: i32 = 6;
/// ROOT's kind of the branch of a split `TClonesArray`.
const CLONES_KIND: i32 = 3;
/// The most dimensions of a leaf that readers are known to take.
const MAX_DIMENSIONS: usize = 5;

/// How fields become branches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Planning {
    /// How lists of numbers are stored.
    pub jagged: Jagged,
    /// To how many levels members of records get branches of their own, from 0 to 99.
    pub split_level: u8,
    /// Whether branches of objects keep their names, without a dot where there is none: their members are then not named after
    /// them. They get one otherwise, and where two members would have the same name.
    pub keeps_names: bool,
}

/// The branches of a tree, parents before their children and counters before what they count.
#[derive(Debug, Clone)]
pub struct Plan {
    /// All branches.
    pub branches: Vec<Branch>,
    /// The streamer info that the file must have.
    pub infos: StreamerInfos,
}

/// A branch with one leaf.
#[derive(Debug, Clone, PartialEq)]
pub struct Branch {
    /// Name.
    pub name: String,
    /// Title: the leaf with its type, or the name.
    pub title: String,
    /// The branch that this one is part of.
    pub parent: Option<usize>,
    /// What stands for the values: the column and the members in it, and how they are stored. `None` for branches that
    /// only have parts.
    pub values: Option<(Vec<usize>, Encoding)>,
    /// Bytes of a basket's key.
    pub key_bytes: u16,
    pub(super) split_level: u8,
    pub(super) leaf: Leaf,
    /// What only a `TBranchElement` has.
    pub(super) object: Option<ObjectBranch>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Leaf {
    pub(super) name: String,
    pub(super) title: String,
    /// `None` for `TLeafElement`.
    pub(super) class: LeafClass,
    pub(super) length: usize,
    /// Bytes of a number; 0 where there is none.
    pub(super) number_bytes: usize,
    pub(super) is_counter: bool,
    pub(super) counter: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum LeafClass {
    Number(Basic),
    Text,
    Element,
    /// Of a branch of the old form.
    Object,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct ObjectBranch {
    pub(super) class_name: String,
    pub(super) parent_name: String,
    pub(super) item_name: String,
    pub(super) checksum: u32,
    pub(super) class_version: i32,
    pub(super) id: i32,
    pub(super) kind: i32,
    pub(super) code: i32,
    /// Whether ROOT calls it an object of any class (`TBranch::kBranchAny`).
    pub(super) is_any: bool,
    /// The branch with the number of items of a member.
    pub(super) counter: Option<usize>,
}

impl ObjectBranch {
    /// A container of the standard library.
    fn of_container(class_name: &str) -> Self {
        Self { checksum: class_checksum(class_name, &[]), class_version: CONTAINER_VERSION, ..Self::default() }
    }
}

impl Branch {
    /// Whether the branch counts the items of others: its largest value belongs to the tree.
    pub fn is_counter(&self) -> bool {
        let counts = |object: &ObjectBranch| matches!(object.kind, 3 | 4) || object.code == COUNTER;
        self.leaf.is_counter || self.object.as_ref().is_some_and(counts)
    }

    /// Whether the branch holds texts in a leaf: the length of the longest belongs to the tree.
    pub fn is_text(&self) -> bool {
        self.leaf.class == LeafClass::Text
    }
}

impl Plan {
    /// Plans the branches of a tree.
    ///
    /// # Errors
    /// Unsupported for a field that has no form in a tree, and for names that occur twice; limit for long names.
    pub fn new(tree: &str, fields: &[Field], planning: Planning) -> Result<Self> {
        let unsigned = fields.iter().filter(|field| field.form == Form::Number(Basic::U32));
        let mut planner = Planner {
            tree,
            planning,
            jagged: planning.jagged,
            spelling: None,
            branches: Vec::new(),
            counters: HashMap::new(),
            unsigned: unsigned.map(|field| field.name.as_str()).collect(),
            names: fields.iter().map(|field| field.name.clone()).collect(),
            members: HashSet::new(),
            infos: StreamerInfos::default(),
        };
        let is_counted = |field: &&Field| field.is_counted(planning.jagged);
        let named: Vec<&str> = fields.iter().filter(is_counted).filter_map(|field| field.counter.as_deref()).collect();
        for (index, field) in fields.iter().enumerate() {
            // The counter of lists stands for the field itself.
            if field.form.numbers().is_none() || !named.contains(&field.name.as_str()) {
                let within = |error: Error| error.within(format_args!("field '{}'", field.name));
                planner.field(index, field).map_err(within)?;
            }
        }
        for field in fields.iter().filter(|field| !field.title.is_empty()) {
            let named = |branch: &&mut Branch| branch.name.strip_suffix('.').unwrap_or(&branch.name) == field.name;
            if let Some(branch) = planner.branches.iter_mut().filter(|branch| branch.parent.is_none()).find(named) {
                branch.title.clone_from(&field.title);
            }
        }
        let Planner { branches, infos: mut classes, .. } = planner;
        // Members of two bases of an object may have the same name.
        let mut tops: Vec<usize> = Vec::with_capacity(branches.len());
        for branch in &branches {
            let top = branch.parent.and_then(|parent| tops.get(parent)).copied();
            tops.push(top.unwrap_or(tops.len()));
        }
        let mut names: Vec<(&str, usize)> = branches.iter().map(|it| it.name.as_str()).zip(tops).collect();
        names.sort_unstable();
        names.dedup();
        if let Some(((twice, _), _)) = names.iter().zip(names.iter().skip(1)).find(|((a, _), (b, _))| a == b) {
            return Err(Error::unsupported(format!(
                "two branches would have the name '{twice}'; rename one of the fields"
            )));
        }
        let leaf_classes: Vec<String> = branches.iter().map(|branch| branch.leaf.class.name()).collect();
        let has_leaf = |class: &str| leaf_classes.iter().any(|name| name == class);
        let mut infos = streamer::classes(|name, _| match name {
            "TBranchElement" => has_leaf("TLeafElement"),
            "TBranchObject" => has_leaf("TLeafObject"),
            "TLeaf" => true,
            name => !name.starts_with("TLeaf") || has_leaf(name),
        });
        std::mem::swap(&mut infos, &mut classes);
        classes.merge(&infos);
        Ok(Self { branches, infos: classes })
    }
}

impl Field {
    /// Whether the field becomes arrays with a counter.
    pub fn is_counted(&self, jagged: Jagged) -> bool {
        let jagged = self.jagged.unwrap_or(jagged).of(self.counter.is_some());
        match &self.form {
            Form::List(item) => match &**item {
                Form::Record(record) if jagged == Jagged::Counter => {
                    record.flat_members().iter().any(|member| is_array(member.form, jagged))
                }
                item => is_array(item, jagged),
            },
            _ => false,
        }
    }
}

/// Whether a list of such items becomes an array with a counter. There are no vectors of fixed arrays.
fn is_array(item: &Form, jagged: Jagged) -> bool {
    item.numbers().is_some() && (jagged == Jagged::Counter || matches!(item, Form::Fixed(..)))
}

impl LeafClass {
    pub(super) fn name(self) -> String {
        match self {
            Self::Number(basic) => format!("TLeaf{}", number(basic).2.to_ascii_uppercase()),
            Self::Text => "TLeafC".to_owned(),
            Self::Element => "TLeafElement".to_owned(),
            Self::Object => "TLeafObject".to_owned(),
        }
    }

    pub(super) fn is_unsigned(self) -> bool {
        matches!(self, Self::Number(Basic::U8 | Basic::U16 | Basic::U32 | Basic::U64))
    }
}

struct Planner<'p> {
    tree: &'p str,
    planning: Planning,
    /// The form of lists in the field that is planned, and the spelling of its class.
    jagged: Jagged,
    spelling: Option<String>,
    branches: Vec<Branch>,
    /// Counters by name: the branch.
    counters: HashMap<String, usize>,
    /// Fields that are counted in unsigned numbers.
    unsigned: HashSet<&'p str>,
    /// Names of fields, and of the branches of members and counters, which differ from them.
    names: HashSet<String>,
    /// Names of the members of records.
    members: HashSet<String>,
    infos: StreamerInfos,
}

impl Planner<'_> {
    fn field(&mut self, index: usize, field: &Field) -> Result<()> {
        check_name(&field.name)?;
        self.jagged = field.jagged.unwrap_or(self.planning.jagged).of(field.counter.is_some());
        self.spelling.clone_from(&field.spelling);
        let path = vec![index];
        match &field.form {
            Form::List(item) => match &**item {
                Form::Record(record) => self.records(field, record, path),
                item => {
                    let counter = self.counter_name(field, is_array(item, self.jagged));
                    self.list(&field.name, item, path, counter)
                }
            },
            Form::Record(record) => self.record(&field.name, record, path),
            Form::Clones(clones) => self.clones(field, &clones.item, path),
            form @ Form::Container(_) => self.whole(&field.name, form, path),
            form => self.flat(&field.name, form, path),
        }
    }

    fn push(&mut self, mut branch: Branch) -> Result<usize> {
        branch.key_bytes = classes::basket_key_bytes(self.tree, &branch.name)?;
        self.branches.push(branch);
        Ok(self.branches.len() - 1)
    }

    /// A number, a fixed array of numbers, or a text: a leaf. A text with the spelling of its class is an object.
    fn flat(&mut self, name: &str, form: &Form, path: Vec<usize>) -> Result<()> {
        if *form == Form::Text {
            if let Some(class_name) = self.spelling.clone() {
                let (checksum, class_version) = (TEXT_CHECKSUM, TEXT_VERSION);
                let object =
                    ObjectBranch { class_name, checksum, class_version, id: -1, code: -1, ..ObjectBranch::default() };
                return self.push(Branch::object(name, name, object, Some((path, Encoding::Text)))).map(|_| ());
            }
            let leaf = Leaf::new(name, name, LeafClass::Text);
            return self.push(Branch::leaves(leaf, 'C', Some((path, Encoding::Text)))).map(|_| ());
        }
        let (basic, sizes) = form.numbers().ok_or_else(|| no_form(form))?;
        self.numbers(name, basic, &sizes, "", None, (path, value(form)?)).map(|_| ())
    }

    /// Numbers in a leaf `NAME[COUNTER][SIZE]…`.
    fn numbers(
        &mut self,
        name: &str,
        basic: Basic,
        sizes: &[usize],
        counted: &str,
        counter: Option<usize>,
        values: (Vec<usize>, Encoding),
    ) -> Result<usize> {
        if sizes.len() > MAX_DIMENSIONS || sizes.contains(&0) {
            return Err(Error::unsupported(format!("a leaf cannot have a fixed array of {sizes:?} items")));
        }
        let dimensions: String = sizes.iter().map(|size| format!("[{size}]")).collect();
        // Athena's leaves have the names of variables only.
        let own = name.split_once("AuxDyn.").map_or(name, |(_, variable)| variable);
        let mut leaf = Leaf::new(own, &format!("{own}{counted}{dimensions}"), LeafClass::Number(basic));
        leaf.length = sizes.iter().product();
        leaf.number_bytes = number(basic).3;
        leaf.counter = counter;
        self.push(Branch { name: name.to_owned(), ..Branch::leaves(leaf, number(basic).2, Some(values)) })
    }

    /// The name of the counter of a list: its own, or another that nothing has.
    fn counter_name(&mut self, field: &Field, is_needed: bool) -> String {
        match &field.counter {
            Some(counter) => {
                self.names.insert(counter.clone());
                counter.clone()
            }
            None if is_needed => self.free_name(format!("n{}", field.name)),
            None => String::new(),
        }
    }

    /// A name that neither a field nor another branch has.
    fn free_name(&mut self, mut name: String) -> String {
        while !self.names.insert(name.clone()) {
            name.push('_');
        }
        name
    }

    /// The branch that counts the items of lists.
    fn counter(&mut self, name: &str, path: Vec<usize>) -> Result<usize> {
        if let Some(&counter) = self.counters.get(name) {
            return Ok(counter);
        }
        // Numbers of items look alike in both.
        let basic = if self.unsigned.contains(name) { Basic::U32 } else { Basic::I32 };
        let counter = self.numbers(name, basic, &[], "", None, (path, Encoding::Count))?;
        if let Some(branch) = self.branches.get_mut(counter) {
            branch.leaf.is_counter = true;
        }
        self.counters.insert(name.to_owned(), counter);
        Ok(counter)
    }

    /// Lists: counted numbers, or vectors.
    fn list(&mut self, name: &str, item: &Form, path: Vec<usize>, counter: String) -> Result<()> {
        match item.numbers() {
            Some((basic, sizes)) if is_array(item, self.jagged) => {
                let counter_branch = self.counter(&counter, path.clone())?;
                let encoding = Encoding::Items(Box::new(value(item)?));
                let counted = format!("[{counter}]");
                self.numbers(name, basic, &sizes, &counted, Some(counter_branch), (path, encoding)).map(|_| ())
            }
            _ => self.whole(name, &Form::List(Box::new(item.clone())), path),
        }
    }

    /// A whole container or object in a branch.
    fn whole(&mut self, name: &str, form: &Form, path: Vec<usize>) -> Result<()> {
        classes::add(form, &mut self.infos);
        let class_name = self.spelling.clone().unwrap_or_else(|| form.type_name());
        let object = match form {
            Form::Record(record) => ObjectBranch {
                checksum: record.checksum(),
                class_version: record.version,
                is_any: true,
                ..ObjectBranch::default()
            },
            Form::Container(container) => match container.kind {
                ContainerKind::Standard(_) => ObjectBranch::of_container(&class_name),
                ContainerKind::Class { version, .. } => ObjectBranch {
                    checksum: container.checksum(),
                    class_version: version,
                    is_any: true,
                    ..ObjectBranch::default()
                },
            },
            _ => ObjectBranch::of_container(&class_name),
        };
        let encoding = match form {
            Form::Record(record) => members(record)?,
            form => member(form)?,
        };
        let object = ObjectBranch { class_name, id: -1, code: -1, ..object };
        let split_level = if object.is_any { 0 } else { self.planning.split_level };
        let branch = Branch::object(name, name, object, Some((path, encoding)));
        self.push(Branch { split_level, ..branch }).map(|_| ())
    }

    /// A record: whole, or a branch for each member.
    fn record(&mut self, name: &str, record: &Record, path: Vec<usize>) -> Result<()> {
        if self.planning.split_level == 0 || !record.has_values() {
            return self.whole(name, &Form::Record(record.clone()), path);
        }
        record.add_to(&mut self.infos);
        let object = ObjectBranch {
            class_name: record.class_name.clone(),
            checksum: record.checksum(),
            class_version: record.version,
            id: -2,
            code: -1,
            is_any: true,
            ..ObjectBranch::default()
        };
        let dotted = format!("{}.", name.strip_suffix('.').unwrap_or(name));
        let keeps_name = self.planning.keeps_names && !name.ends_with('.');
        let start = self.branches.len();
        let mut split = |name: &str, prefix: &str| {
            let branch = Branch::object(name, name, object.clone(), None);
            let parent = self.push(Branch { split_level: self.planning.split_level, ..branch })?;
            self.members(prefix, record, &path, parent, self.planning.split_level - 1)?;
            let members: Vec<String> = self.branches.iter().skip(start + 1).map(|branch| branch.name.clone()).collect();
            let is_ambiguous = members.iter().any(|name| self.names.contains(name) || self.members.contains(name));
            if prefix.is_empty() && is_ambiguous {
                self.branches.truncate(start);
                return Ok(false);
            }
            self.members.extend(members);
            Ok::<_, Error>(true)
        };
        if !(keeps_name && split(name, "")?) {
            split(&dotted, &dotted)?;
        }
        Ok(())
    }

    /// The branches of the members of a record.
    fn members(&mut self, prefix: &str, record: &Record, path: &[usize], parent: usize, level: u8) -> Result<()> {
        let checksum = record.checksum();
        for (id, (member_name, form)) in record.members.iter().enumerate() {
            check_member(member_name)?;
            let base = match form {
                Form::Record(base) if is_base(member_name) => Some(base),
                _ => None,
            };
            if base.is_some_and(|base| !base.has_values()) {
                continue;
            }
            let name = format!("{prefix}{}", base.map_or(member_name, |base| &base.class_name));
            let path = [path, &[id]].concat();
            let object = ObjectBranch {
                class_name: record.class_name.clone(),
                parent_name: record.class_name.clone(),
                checksum,
                class_version: record.version,
                id: i32::try_from(id).unwrap_or(i32::MAX),
                code: base.map_or_else(|| record.code_of(member_name, form), Record::base_code),
                ..ObjectBranch::default()
            };
            match form {
                Form::Record(inner) if level > 0 && inner.has_values() => {
                    let object = ObjectBranch { kind: if base.is_some() { 1 } else { 2 }, ..object };
                    let mut branch = Branch::object(&name, &name, object, None);
                    (branch.parent, branch.split_level) = (Some(parent), level);
                    let branch = self.push(branch)?;
                    // ROOT finds the members of bases by these names: only a base of the whole object is a part of them.
                    let is_nested = base.is_some() && self.branches.get(parent).is_some_and(|it| it.parent.is_some());
                    let is_unnamed = base.is_some() && prefix.is_empty();
                    let below = if is_nested || is_unnamed { prefix.to_owned() } else { format!("{name}.") };
                    self.members(&below, inner, &path, branch, level - 1)?;
                }
                Form::Clones(clones) if level > 0 => {
                    let object = ObjectBranch { kind: CLONES_KIND, ..object };
                    let counted = format!("{name}_");
                    let mut branch = Branch::counting(&name, &counted, object, &path);
                    (branch.parent, branch.split_level) = (Some(parent), level);
                    self.split_items(branch, &clones.item, &path)?;
                }
                form => {
                    let counter = self.member_counter(form, record, &path);
                    let object = ObjectBranch { is_any: object.code == OBJECT, counter, ..object };
                    let (title, leaf_title) = member_titles(&name, &name, form);
                    let mut branch = Branch::object(&title, &leaf_title, object, Some((path, member(form)?)));
                    branch.leaf.of_member(&name, form);
                    branch.leaf.counter = counter;
                    (branch.parent, branch.split_level) = (Some(parent), level);
                    self.push(branch)?;
                }
            }
        }
        Ok(())
    }

    /// A list of records: its members as lists with one counter, or as a vector of objects, split or whole.
    fn records(&mut self, field: &Field, record: &Record, path: Vec<usize>) -> Result<()> {
        let name = &field.name;
        // Only a vector shows how many items there are without members.
        if self.jagged == Jagged::Counter && !record.members.is_empty() {
            let counter = self.counter_name(field, field.is_counted(Jagged::Counter));
            for FlatMember { path: own, name: member_name, form, .. } in record.flat_members() {
                let within = |error: Error| error.within(format_args!("member '{member_name}'"));
                let path = [path.as_slice(), &own].concat();
                let branch = self.free_name(format!("{name}_{member_name}"));
                check_name(&branch).and_then(|()| self.list(&branch, form, path, counter.clone())).map_err(within)?;
            }
            return Ok(());
        }
        let members = record.flat_members();
        let is_splittable = members.iter().all(|it| it.form.numbers().is_some() || *it.form == Form::ObjectBits);
        // ROOT takes a member with the name of the field but for its last letter for the field.
        let is_mistaken = members.iter().any(|it| name.strip_prefix(it.name).is_some_and(|rest| rest.len() == 1));
        if self.planning.split_level == 0 || !is_splittable || is_mistaken {
            return self.whole(name, &Form::List(Box::new(Form::Record(record.clone()))), path);
        }
        let class_name = vector(&record.class_name);
        let object = ObjectBranch {
            checksum: class_checksum(&class_name, &[]),
            class_name,
            class_version: CONTAINER_VERSION,
            id: -1,
            kind: 4,
            code: -1,
            is_any: true,
            ..ObjectBranch::default()
        };
        self.split_field(field, record, path, object)
    }
}

/// Name of a branch with the dimensions of a member, and its title.
fn member_titles(name: &str, title: &str, form: &Form) -> (String, String) {
    if let Form::Pointed(pointed) = form {
        return (name.to_owned(), format!("{title}[{}]", pointed.counter.name));
    }
    let dimensions: String = form.dimensions().0.iter().map(|size| format!("[{size}]")).collect();
    (format!("{name}{dimensions}"), format!("{title}{dimensions}"))
}

impl Leaf {
    fn new(name: &str, title: &str, class: LeafClass) -> Self {
        Self {
            name: name.to_owned(),
            title: title.to_owned(),
            class,
            length: 1,
            number_bytes: 0,
            is_counter: false,
            counter: None,
        }
    }

    /// The leaf of a member.
    fn of_member(&mut self, name: &str, form: &Form) {
        name.clone_into(&mut self.name);
        if let Form::Pointed(pointed) = form {
            self.name = format!("{name}[{}]", pointed.counter.name);
            self.number_bytes = number(pointed.item).3;
        }
        let (sizes, item) = form.dimensions();
        self.length = sizes.iter().product();
        if let Form::Number(basic) = item {
            self.number_bytes = number(*basic).3;
        }
    }
}

impl Branch {
    fn leaves(leaf: Leaf, letter: char, values: Option<(Vec<usize>, Encoding)>) -> Self {
        Self {
            name: leaf.name.clone(),
            title: format!("{}/{letter}", leaf.title),
            parent: None,
            values,
            key_bytes: 0,
            split_level: 0,
            leaf,
            object: None,
        }
    }

    fn object(name: &str, title: &str, object: ObjectBranch, values: Option<(Vec<usize>, Encoding)>) -> Self {
        Self {
            name: name.to_owned(),
            title: title.to_owned(),
            parent: None,
            values,
            key_bytes: 0,
            split_level: 0,
            leaf: Leaf::new(name, title, LeafClass::Element),
            object: Some(object),
        }
    }

    /// The branch that counts the items of this one.
    pub fn counter(&self) -> Option<usize> {
        self.leaf.counter
    }

    /// Bytes of an entry, where all have the same number.
    pub(super) fn entry_bytes(&self) -> Option<usize> {
        self.values.as_ref().and_then(|(_, encoding)| encoding.fixed_bytes())
    }

    /// Whether baskets have the positions of entries. In branches of objects, all have them but those of single numbers.
    pub fn has_positions(&self) -> bool {
        let is_number = self.object.as_ref().is_none_or(|object| (0..ARRAY).contains(&object.code));
        !is_number || self.entry_bytes().is_none()
    }
}
