//! Lookup of the classes of a file as branches refer to them: the time to find a member does not depend on their
//! number.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use tupelo_format::streamer::code::NOT_STORED;
use tupelo_format::streamer::{ClassInfo, Counter, Element, StreamerInfos};

use crate::tree::{Branch, BranchElement};

/// The streamer info of a file, with indices that are made when they are needed.
#[derive(Debug)]
pub struct Classes<'i> {
    infos: &'i StreamerInfos,
    versions: RefCell<HashMap<&'i str, Rc<Versions<'i>>>>,
    members: RefCell<HashMap<*const ClassInfo, Rc<Members<'i>>>>,
    headless: RefCell<HashMap<*const ClassInfo, bool>>,
}

/// A member of a class.
#[derive(Debug, Clone, Copy)]
pub struct Member<'i> {
    /// The class that has it.
    pub class: &'i Arc<ClassInfo>,
    /// The member itself.
    pub element: &'i Element,
}

/// All versions of a class.
#[derive(Debug)]
struct Versions<'i> {
    /// The newest of those with a checksum, and of those with a version.
    by_checksum: HashMap<u32, &'i Arc<ClassInfo>>,
    by_version: HashMap<i32, &'i Arc<ClassInfo>>,
    /// Each member in the newest version that has it.
    newest: HashMap<&'i str, Member<'i>>,
}

impl<'i> Versions<'i> {
    /// The version stated by a branch.
    fn stated(&self, element: &BranchElement) -> Option<&'i Arc<ClassInfo>> {
        let stated = match element.checksum {
            0 => self.by_version.get(&element.class_version),
            checksum => self.by_checksum.get(&checksum),
        };
        stated.copied()
    }
}

/// The members of one version of a class by name: the first of each name, and its place among those that are stored.
type Members<'i> = HashMap<&'i str, (&'i Element, Option<usize>)>;

impl<'i> Classes<'i> {
    /// The classes of a streamer info.
    pub fn new(infos: &'i StreamerInfos) -> Self {
        Self { infos, versions: RefCell::default(), members: RefCell::default(), headless: RefCell::default() }
    }

    /// The streamer info.
    pub fn infos(&self) -> &'i StreamerInfos {
        self.infos
    }

    /// The newest version of a class, however its name is spelt.
    pub fn newest(&self, name: &str) -> Option<&'i Arc<ClassInfo>> {
        self.infos.newest(self.infos.spelling(name)?)
    }

    /// The other versions of a class.
    pub fn other_versions(&self, class: &'i Arc<ClassInfo>) -> impl Iterator<Item = &'i Arc<ClassInfo>> + use<'i> {
        self.infos.named(&class.name).filter(move |other| !Arc::ptr_eq(other, class))
    }

    /// The version of the class of a branch, as stated by the branch.
    pub fn of_branch(&self, branch: &Branch, element: &BranchElement) -> Option<&'i Arc<ClassInfo>> {
        self.versions(self.infos.spelling(&branch.class_name)?).stated(element)
    }

    /// The version of a base class that a derived class states.
    pub fn base(&self, element: &Element, version: i32) -> Option<&'i Arc<ClassInfo>> {
        let versions = self.versions(self.infos.spelling(&element.name)?);
        let by_checksum = element.base_checksum().and_then(|checksum| versions.by_checksum.get(&checksum));
        by_checksum.or_else(|| versions.by_version.get(&version)).copied()
    }

    /// The member that a branch holds.
    pub fn member(&self, branch: &Branch, element: &BranchElement) -> Option<Member<'i>> {
        let names = [member_name(&branch.name), &branch.name];
        let classes = [&branch.class_name, &element.parent_class, &element.clones_class];
        let classes = classes.into_iter().filter(|class| !class.is_empty());
        classes.filter_map(|class| self.infos.spelling(class)).find_map(|class| {
            let versions = self.versions(class);
            let exact = versions.stated(element).and_then(|class| {
                let by_id = usize::try_from(element.id).ok().and_then(|id| class.elements.get(id));
                let by_id = by_id.filter(|element| names.contains(&element.name.as_str()));
                let by_name = || {
                    let members = self.members(class);
                    names.iter().find_map(|&name| members.get(name).map(|&(element, _)| element))
                };
                Some(Member { class, element: by_id.or_else(by_name)? })
            });
            exact.or_else(|| names.iter().find_map(|&name| versions.newest.get(name).copied()))
        })
    }

    /// [`StreamerInfos::may_lack_head`], which searches all bases.
    pub fn may_lack_head(&self, class: &'i ClassInfo) -> bool {
        let mut known = self.headless.borrow_mut();
        *known.entry(std::ptr::from_ref(class)).or_insert_with(|| self.infos.may_lack_head(class))
    }

    /// The position of a counter among the stored members of its class; `None` if it is not one of them.
    pub fn counter_place(&self, class: &'i ClassInfo, counter: &Counter) -> Option<usize> {
        match counter.class_name == class.name {
            true => self.members(class).get(counter.name.as_str()).and_then(|&(_, place)| place),
            false => None,
        }
    }

    fn versions(&self, class: &'i str) -> Rc<Versions<'i>> {
        if let Some(known) = self.versions.borrow().get(class) {
            return Rc::clone(known);
        }
        let mut all: Vec<&Arc<ClassInfo>> = self.infos.named(class).collect();
        all.sort_by_key(|info| std::cmp::Reverse(info.version));
        let mut made = Versions { by_checksum: HashMap::new(), by_version: HashMap::new(), newest: HashMap::new() };
        for class in all {
            made.by_checksum.entry(class.checksum).or_insert(class);
            made.by_version.entry(class.version).or_insert(class);
            for element in &class.elements {
                made.newest.entry(&element.name).or_insert(Member { class, element });
            }
        }
        let made = Rc::new(made);
        self.versions.borrow_mut().insert(class, Rc::clone(&made));
        made
    }

    fn members(&self, class: &'i ClassInfo) -> Rc<Members<'i>> {
        if let Some(known) = self.members.borrow().get(&std::ptr::from_ref(class)) {
            return Rc::clone(known);
        }
        let mut made = Members::with_capacity(class.elements.len());
        let mut stored = 0;
        for element in &class.elements {
            let is_stored = element.code != NOT_STORED;
            made.entry(&element.name).or_insert((element, is_stored.then_some(stored)));
            stored += usize::from(is_stored);
        }
        let made = Rc::new(made);
        self.members.borrow_mut().insert(class, Rc::clone(&made));
        made
    }
}

/// The member that a branch is called after: the last part of its name, without dimensions.
pub(crate) fn member_name(branch: &str) -> &str {
    let name = branch.split('[').next().unwrap_or(branch).trim_end_matches('.');
    // Templates may have dots in their arguments.
    let from = name.rfind('>').unwrap_or(0);
    match name.get(from..).and_then(|rest| rest.rsplit_once('.')) {
        Some((_, member)) => member,
        None => name,
    }
}
