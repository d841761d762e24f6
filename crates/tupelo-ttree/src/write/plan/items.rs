//! The branches of the items of split collections, and of the numbers behind pointers.

use tupelo_format::Result;
use tupelo_format::object::Basic;
use tupelo_format::streamer::Counter;

use super::{Branch, CLONES_KIND, COUNTER, LeafClass, ObjectBranch, Planner, member_titles};
use crate::write::form::{CLONES, FlatMember, is_base};
use crate::write::values::{CLONES_VERSION, check_member, together, whole_clones};
use crate::write::{Encoding, Field, Form, Record};

/// Checksum of `TClonesArray`.
const CLONES_CHECKSUM: u32 = 0xb6c0_ca63;

/// A collection whose items are split.
struct Items<'p> {
    /// Its branch.
    parent: usize,
    /// The leaf that counts the items.
    counted: &'p str,
    /// The class of the items.
    class_name: &'p str,
    /// ROOT's kind of the branches of members.
    kind: i32,
}

impl Branch {
    /// The branch that counts the items of a split collection.
    pub(super) fn counting(name: &str, counted: &str, object: ObjectBranch, path: &[usize]) -> Self {
        let mut branch = Self::object(name, counted, object, Some((path.to_vec(), Encoding::Count)));
        counted.clone_into(&mut branch.leaf.name);
        branch
    }
}

impl Planner<'_> {
    /// A collection in the branches of the members of its items.
    pub(super) fn split_field(
        &mut self,
        field: &Field,
        item: &Record,
        path: Vec<usize>,
        object: ObjectBranch,
    ) -> Result<()> {
        let name = &field.name;
        // Readers would take a field with the name of this leaf for it.
        let counted = self.free_name(format!("{}_", name.strip_suffix('.').unwrap_or(name)));
        let branch = Branch::counting(name, &counted, object, &path);
        self.split_items(Branch { split_level: self.planning.split_level, ..branch }, item, &path)
    }

    /// The branch that counts the items of a collection, and those of their members.
    pub(super) fn split_items(&mut self, mut branch: Branch, item: &Record, path: &[usize]) -> Result<()> {
        item.add_to(&mut self.infos);
        let class_name = item.class_name.as_str();
        let prefix = branch.name.strip_suffix('.').unwrap_or(&branch.name).to_owned();
        let counted = branch.leaf.name.clone();
        let mut kind = 0;
        if let Some(object) = &mut branch.object {
            class_name.clone_into(&mut object.item_name);
            kind = object.kind * 10 + 1;
        }
        let items = Items { parent: self.push(branch)?, counted: &counted, class_name, kind };
        self.item_members(&items, &prefix, item, path)
    }

    /// The branches of the members of items, which are in a class or in a member of it.
    fn item_members(&mut self, items: &Items<'_>, prefix: &str, record: &Record, path: &[usize]) -> Result<()> {
        for FlatMember { path: own, owner, id, name, form } in record.flat_members() {
            check_member(name)?;
            let path = [path, &own].concat();
            let whole_name = format!("{prefix}.{name}");
            if let Form::Record(inner) = form
                && inner.has_values()
            {
                self.item_members(items, &whole_name, inner, &path)?;
                continue;
            }
            let object = ObjectBranch {
                class_name: owner.class_name.clone(),
                parent_name: items.class_name.to_owned(),
                checksum: owner.checksum(),
                class_version: owner.version,
                id: i32::try_from(id).unwrap_or(i32::MAX),
                kind: items.kind,
                code: owner.code_of(name, form),
                counter: self.member_counter(form, owner, &path),
                ..ObjectBranch::default()
            };
            let (branch_name, _) = member_titles(&whole_name, "", form);
            let title = format!("{name}[{}]", items.counted);
            let values = (path, Encoding::Items(Box::new(together(form)?)));
            let mut branch = Branch::object(&branch_name, &title, object, Some(values));
            branch.leaf.of_member(&whole_name, form);
            branch.leaf.counter = Some(items.parent);
            branch.parent = Some(items.parent);
            self.push(branch)?;
        }
        Ok(())
    }

    /// A `TClonesArray`: whole, or in the branches of the members of its items.
    pub(super) fn clones(&mut self, field: &Field, item: &Record, path: Vec<usize>) -> Result<()> {
        if self.planning.split_level == 0 {
            return self.whole_clones(&field.name, item, path);
        }
        let object = ObjectBranch {
            class_name: CLONES.to_owned(),
            checksum: CLONES_CHECKSUM,
            class_version: CLONES_VERSION.into(),
            kind: CLONES_KIND,
            code: -1,
            ..ObjectBranch::default()
        };
        self.split_field(field, item, path, object)
    }

    /// A whole `TClonesArray` in a branch of the old form, as ROOT writes it.
    fn whole_clones(&mut self, name: &str, item: &Record, path: Vec<usize>) -> Result<()> {
        item.add_to(&mut self.infos);
        let class_name = [&[CLONES.len() as u8], CLONES.as_bytes(), &[0]].concat();
        let encoding = Encoding::Prefixed(class_name, Box::new(whole_clones(item)?));
        let object = ObjectBranch { class_name: CLONES.to_owned(), code: -1, ..ObjectBranch::default() };
        let mut branch = Branch::object(name, CLONES, object, Some((path, encoding)));
        (branch.leaf.class, branch.title) = (LeafClass::Object, name.to_owned());
        self.push(branch).map(|_| ())
    }

    /// The branch with the number of items behind a pointer, which was planned before; `None` where it is a part of a branch.
    /// `path` is that of the pointer, which is a member of a record.
    pub(super) fn member_counter(&self, form: &Form, record: &Record, path: &[usize]) -> Option<usize> {
        let Form::Pointed(pointed) = form else { return None };
        let (_, of_record) = path.split_last()?;
        let counter = [of_record, &record.counter_path(&pointed.counter)?].concat();
        self.branches.iter().rposition(|branch| branch.values.as_ref().is_some_and(|(path, _)| *path == counter))
    }
}

impl Record {
    /// Where a member with a number of items is: in the class or in one of its bases.
    fn counter_path(&self, counter: &Counter) -> Option<Vec<usize>> {
        let is_own = |(name, _): &(String, Form)| self.class_name == counter.class_name && *name == counter.name;
        let own = self.members.iter().position(is_own).map(|place| vec![place]);
        own.or_else(|| {
            self.members.iter().enumerate().find_map(|(place, (name, form))| match form {
                Form::Record(base) if is_base(name) => Some([vec![place], base.counter_path(counter)?].concat()),
                _ => None,
            })
        })
    }

    /// ROOT's code of a branch with a member.
    pub(super) fn code_of(&self, member: &str, form: &Form) -> i32 {
        match form {
            Form::Number(Basic::I32) if self.counts(member) => COUNTER,
            form => form.branch_code(),
        }
    }
}
