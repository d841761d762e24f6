//! Reading the record of a tree.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use tupelo_format::object::{self, Numbers, Object, Value};
use tupelo_format::streamer::StreamerInfos;
use tupelo_format::wire::Memory;
use tupelo_format::{Error, ErrorKind, Result};

use super::{BasketPlace, Branch, BranchElement, Leaf, Refused, Stored, Tree, check_places};

/// Branches nested deeper than this are refused.
const MAX_DEPTH: usize = 24;
/// Larger sizes are assumed to be wrong: 16 TiB.
const MAX_BYTES: u64 = 1 << 44;
/// More entries are refused.
const MAX_ENTRIES: u64 = 1 << 48;

impl Tree {
    /// Reads a tree from the payload of its record, behind a key of `key_bytes`.
    ///
    /// # Errors
    /// Unsupported where the streamer info does not describe it; corrupt where numbers contradict each other or baskets
    /// overlap; limit for branches nested more than 24 deep, and for more than 2⁴⁸ entries; memory where the objects of the
    /// tree take more than is left.
    pub fn read(
        bytes: &[u8],
        key_bytes: u16,
        class_name: &str,
        infos: &StreamerInfos,
        memory: &Memory,
    ) -> Result<Self> {
        let value = object::read_behind_key(bytes, key_bytes, class_name, infos, memory)?;
        let Some(object) = value.as_object() else {
            return Err(Error::corrupt(format!("expected a {class_name}, found {}", kind(&value))));
        };
        let tree = Members(object);
        let mut branches = Branches::new(memory);
        for branch in tree.objects("fBranches")? {
            let index = branches.add(branch, None, 0)?;
            branches.top_level.extend(index);
        }
        branches.resolve_counters();
        check_places(&branches.all)?;
        let entries = tree.count("fEntries")?;
        if entries > MAX_ENTRIES {
            return Err(Error::limit(format!("tree of {entries} entries exceeds the limit of {MAX_ENTRIES}")));
        }
        Ok(Self {
            name: tree.text("fName")?,
            title: tree.text("fTitle")?,
            class_name: class_name.to_owned(),
            entries,
            bytes: stored_bytes(tree),
            auto_flush: tree.integer("fAutoFlush").unwrap_or(0),
            cluster_ranges: cluster_ranges(tree, entries),
            friends: friends(tree),
            index: index(tree),
            aliases: aliases(tree),
            user_info: user_info(tree),
            weight: weight(tree),
            has_references: tree.get("fBranchRef").is_ok_and(|table| table.as_object().is_some()),
            branches: branches.all,
            top_level: branches.top_level,
            unreadable: branches.unreadable,
        })
    }
}

/// The members of an object by name, own ones and those of bases.
#[derive(Clone, Copy)]
struct Members<'v>(&'v Object);

impl<'v> Members<'v> {
    fn get(self, name: &str) -> Result<&'v Value> {
        self.0.get(name).ok_or_else(|| {
            let reason = self.0.bases().find_map(|(_, base)| match base {
                Value::Opaque(opaque) => Some(format!(": {}", opaque.reason)),
                _ => None,
            });
            let class = self.0.class_name();
            Error::unsupported(format!("{class} lacks {name}{}", reason.unwrap_or_default()))
        })
    }

    /// A whole number; old trees have it as a floating-point number.
    fn integer(self, name: &str) -> Result<i64> {
        match *self.get(name)? {
            Value::Int(number) => Ok(number),
            Value::UInt(number) => Ok(number.cast_signed()),
            Value::Bool(truth) => Ok(truth.into()),
            Value::Float(number) if number.fract() == 0.0 && number.abs() < 1e15 => Ok(number as i64),
            ref other => Err(Error::corrupt(format!("{name} is {}", kind(other)))),
        }
    }

    /// A number that cannot be negative.
    fn count(self, name: &str) -> Result<u64> {
        let number = self.integer(name)?;
        u64::try_from(number).map_err(|_| Error::corrupt(format!("{name} is negative: {number}")))
    }

    fn text(self, name: &str) -> Result<String> {
        match self.get(name)? {
            Value::Text(text) => Ok(text.clone()),
            Value::Bytes(bytes) => Ok(String::from_utf8_lossy(bytes).into_owned()),
            Value::Null => Ok(String::new()),
            other => Err(Error::corrupt(format!("{name} is {}", kind(other)))),
        }
    }

    /// An array of integers; empty where it is null.
    fn integers(self, name: &str) -> Result<Vec<i64>> {
        Ok(match self.get(name)? {
            Value::Null => Vec::new(),
            // Before ROOT 3 it was stored with its length.
            Value::Object(array) if array.get("fArray").is_some() => return Members(array).integers("fArray"),
            Value::Numbers(Numbers::I64(numbers)) => numbers.clone(),
            Value::Numbers(Numbers::I32(numbers)) => numbers.iter().map(|&number| number.into()).collect(),
            Value::Numbers(Numbers::U32(numbers)) => numbers.iter().map(|&number| number.into()).collect(),
            Value::Numbers(Numbers::F64(numbers)) => numbers.iter().map(|&number| number as i64).collect(),
            other => return Err(Error::corrupt(format!("{name} is {}", kind(other)))),
        })
    }

    /// The items of a collection of objects.
    fn objects(self, name: &str) -> Result<&'v [Value]> {
        match self.get(name)? {
            Value::Null => Ok(&[]),
            Value::List(list) => Ok(list),
            Value::Object(collection) => match collection.get("fObjects") {
                Some(Value::List(list)) => Ok(list),
                _ => Err(Error::unsupported(format!("{name} is a {}", collection.class_name()))),
            },
            other => Err(Error::corrupt(format!("{name} is {}", kind(other)))),
        }
    }
}

fn kind(value: &Value) -> String {
    match value {
        Value::Null => "a null pointer".into(),
        Value::Opaque(opaque) => format!("a {} that cannot be read: {}", opaque.class_name, opaque.reason),
        Value::Object(object) => format!("a {}", object.class_name()),
        Value::Text(_) | Value::Bytes(_) => "a string".into(),
        Value::List(_) | Value::Map(_) | Value::Numbers(_) | Value::Grid(..) => "a list".into(),
        Value::Enclosing | Value::Whole => "an enclosing object".into(),
        Value::Bool(_) | Value::Int(_) | Value::UInt(_) | Value::Float(_) => "a number".into(),
    }
}

/// The branches as they are found.
struct Branches<'v> {
    memory: &'v Memory,
    all: Vec<Branch>,
    top_level: Vec<usize>,
    unreadable: Vec<Refused>,
    /// Addresses of the objects of branches and leaves: each is listed once.
    known: HashSet<*const Object>,
    /// Branch and number of leaves, by the addresses of their objects; `None` for counters of other trees.
    leaves: HashMap<*const Object, Option<(usize, usize)>>,
    /// Counters that are not known yet: branch and number of the leaf, and the counter.
    counters: Vec<((usize, usize), &'v Object)>,
}

impl<'v> Branches<'v> {
    fn new(memory: &'v Memory) -> Self {
        Self {
            memory,
            all: Vec::new(),
            top_level: Vec::new(),
            unreadable: Vec::new(),
            known: HashSet::new(),
            leaves: HashMap::new(),
            counters: Vec::new(),
        }
    }

    /// Adds a branch and those below it. `None` where it cannot be read.
    fn add(&mut self, value: &'v Value, parent: Option<usize>, depth: usize) -> Result<Option<usize>> {
        if depth >= MAX_DEPTH {
            return Err(Error::limit(format!("branches are nested more than {MAX_DEPTH} deep")));
        }
        let Value::Object(object) = value else {
            if !matches!(value, Value::Null) {
                let (path, reason) = (String::new(), kind(value));
                self.unreadable.push(Refused { path, reason, kind: ErrorKind::Unsupported });
            }
            return Ok(None);
        };
        if !self.known.insert(Arc::as_ptr(object)) {
            return Err(Error::corrupt("a branch is listed twice"));
        }
        let members = Members(object);
        let index = self.all.len();
        // Before they are copied: each leaf belongs to one branch.
        for leaf in members.objects("fLeaves").unwrap_or_default() {
            if let Value::Object(leaf) = leaf
                && !self.known.insert(Arc::as_ptr(leaf))
            {
                return Err(Error::corrupt("a leaf is listed twice"));
            }
        }
        let branch = match branch(object, parent, self.memory) {
            Ok(branch) => branch,
            Err(error) if error.kind() == ErrorKind::Memory => return Err(error),
            Err(error) => {
                let path = members.text("fName").unwrap_or_default();
                self.unreadable.push(Refused { path, reason: error.to_string(), kind: error.kind() });
                return Ok(None);
            }
        };
        let name = branch.name.clone();
        self.all.push(branch);
        let leaves = members.objects("fLeaves")?.iter().filter(|leaf| **leaf != Value::Null);
        for (number, value) in leaves.enumerate() {
            if let Value::Object(leaf) = value {
                self.leaves.insert(Arc::as_ptr(leaf), Some((index, number)));
                if let Ok(Value::Object(counter)) = Members(leaf).get("fLeafCount") {
                    self.counters.push(((index, number), counter));
                }
            }
        }
        for child in members.objects("fBranches").map_err(|error| error.within(&name))? {
            if let Some(child) = self.add(child, Some(index), depth + 1)?
                && let Some(branch) = self.all.get_mut(index)
            {
                branch.children.push(child);
            }
        }
        Ok(Some(index))
    }

    /// Finds the leaves that count the values of others. In old files a counter may be a copy: then its name decides.
    fn resolve_counters(&mut self) {
        let mut by_name = HashMap::new();
        for (branch, leaves) in self.all.iter().map(|branch| &branch.leaves).enumerate() {
            for (number, leaf) in leaves.iter().enumerate() {
                by_name.entry(leaf.name.as_str()).or_insert((branch, number));
            }
        }
        let mut found = Vec::with_capacity(self.counters.len());
        for &(place, counter) in &self.counters {
            let named = || match Members(counter).get("fName") {
                Ok(Value::Text(name)) => by_name.get(name.as_str()).copied(),
                _ => None,
            };
            found.push((place, *self.leaves.entry(std::ptr::from_ref(counter)).or_insert_with(named)));
        }
        for ((branch, leaf), counter) in found {
            if let Some(leaf) = self.all.get_mut(branch).and_then(|branch| branch.leaves.get_mut(leaf)) {
                leaf.counter = counter;
            }
        }
    }
}

fn branch(object: &Object, parent: Option<usize>, memory: &Memory) -> Result<Branch> {
    let members = Members(object);
    let is_element = members.0.get("fStreamerType").is_some();
    let name = members.text("fName")?;
    let element = match is_element {
        false => None,
        true => Some(BranchElement {
            kind: small(members.integer("fType")?),
            streamer_type: small(members.integer("fStreamerType")?),
            id: small(members.integer("fID")?),
            class_version: small(members.integer("fClassVersion")?),
            checksum: members.integer("fCheckSum").unwrap_or(0) as u32,
            parent_class: members.text("fParentName").unwrap_or_default(),
            clones_class: members.text("fClonesName").unwrap_or_default(),
            max_items: members.integer("fMaximum").unwrap_or(i64::MAX),
        }),
    };
    let leaf = |value: &Value| match value {
        Value::Object(object) => leaf(object),
        other => Err(Error::unsupported(format!("a leaf is {}", kind(other)))),
    };
    let entries = members.count("fEntries")?;
    let baskets = baskets(members, entries, memory).map_err(|error| error.within(format_args!("branch '{name}'")))?;
    let is_embedded = |basket: &&BasketPlace| matches!(basket.stored, Stored::Embedded(_));
    // ROOT counts a basket when it is written to the file by itself.
    let embedded: u64 = baskets.iter().filter(is_embedded).map(|basket| basket.stored.bytes()).sum();
    Ok(Branch {
        title: members.text("fTitle")?,
        branch_class: object.class_name().to_owned(),
        class_name: members.text("fClassName").unwrap_or_default(),
        element,
        parent,
        children: Vec::new(),
        // Before ROOT 3 lists end in places that are not used.
        leaves: members
            .objects("fLeaves")?
            .iter()
            .filter(|leaf| **leaf != Value::Null)
            .map(leaf)
            .collect::<Result<_>>()?,
        entries,
        baskets,
        compression: small(members.integer("fCompress").unwrap_or(0)),
        file_name: members.text("fFileName").unwrap_or_default(),
        bytes: stored_bytes(members).map(|bytes| bytes.saturating_add(embedded)),
        name,
    })
}

/// Bytes before and after compression. Sums of them must not overflow.
fn stored_bytes(members: Members<'_>) -> [u64; 2] {
    ["fTotBytes", "fZipBytes"].map(|name| members.count(name).unwrap_or(0).min(MAX_BYTES))
}

fn small(number: i64) -> i32 {
    i32::try_from(number).unwrap_or(-1)
}

fn leaf(object: &Object) -> Result<Leaf> {
    let members = Members(object);
    Ok(Leaf {
        name: members.text("fName")?,
        title: members.text("fTitle")?,
        leaf_class: object.class_name().to_owned(),
        // Some writers leave it open.
        length: u64::try_from(members.integer("fLen")?).unwrap_or(1),
        is_unsigned: members.integer("fIsUnsigned").unwrap_or(0) != 0,
        is_virtual: members.integer("fVirtual").unwrap_or(1) != 0,
        counter: None,
    })
}

/// The baskets of a branch: those in records of the file, then those in the tree's own record.
fn baskets(branch: Members<'_>, entries: u64, memory: &Memory) -> Result<Vec<BasketPlace>> {
    // Branches may share what they refer to, which is then copied for each of them.
    let integers = |name| {
        let integers = branch.integers(name)?;
        memory.take_items::<i64>(integers.len(), "baskets")?;
        Ok::<_, Error>(integers)
    };
    let [seeks, bytes, starts] = [integers("fBasketSeek")?, integers("fBasketBytes")?, integers("fBasketEntry")?];
    let written = usize::try_from(branch.count("fWriteBasket")?).unwrap_or(usize::MAX);
    let in_file = seeks.iter().take(written).take_while(|&&seek| seek != 0).count();
    let embedded: Vec<&[u8]> = branch
        .objects("fBaskets")?
        .iter()
        // ROOT 4 also kept the last basket that it had written.
        .skip(in_file)
        .filter_map(|basket| match basket {
            Value::Opaque(opaque) if opaque.class_name == "TBasket" => Some(opaque.bytes.as_slice()),
            _ => None,
        })
        .collect();
    let start = |index: usize| {
        let start = starts.get(index).copied();
        start.map(|start| {
            u64::try_from(start).map_err(|_| Error::corrupt(format!("basket {index} begins at entry {start}")))
        })
    };
    memory.take_items::<BasketPlace>(in_file + embedded.len(), "baskets")?;
    let mut places = Vec::with_capacity(in_file + embedded.len());
    let mut next = 0;
    for index in 0..in_file {
        let first = start(index).transpose()?.unwrap_or(next);
        // Without a next basket, ROOT takes the end of the last one from the entries of the branch.
        let end = start(index + 1).transpose()?.filter(|&end| end > 0 || entries == 0).unwrap_or(entries);
        if first != next || end < first || end > entries {
            let what =
                format!("basket {index} has the entries {first} to {end}, expected entries from {next} of {entries}");
            return Err(Error::corrupt(what));
        }
        let (Some(&seek), Some(&stored)) = (seeks.get(index), bytes.get(index)) else {
            return Err(Error::corrupt(format!("basket {index} lacks a position")));
        };
        let (Ok(offset), Ok(stored)) = (u64::try_from(seek), u32::try_from(stored)) else {
            return Err(Error::corrupt(format!("basket {index}: invalid position ({stored} bytes at byte {seek})")));
        };
        places.push(BasketPlace { entries: first..end, stored: Stored::InFile { offset, bytes: stored } });
        next = end;
    }
    for basket in embedded {
        if next >= entries {
            break;
        }
        memory.take(basket.len() as u64, "baskets")?;
        let end = crate::basket::embedded_entries(basket)?.saturating_add(next).min(entries);
        places.push(BasketPlace { entries: next..end, stored: Stored::Embedded(basket.into()) });
        next = end;
    }
    Ok(places)
}

/// The ranges of clusters that a tree records; see `TTree::GetClusterIterator`.
fn cluster_ranges(tree: Members<'_>, entries: u64) -> Vec<(u64, u64)> {
    let ends = tree.integers("fClusterRangeEnd").unwrap_or_default();
    let sizes = tree.integers("fClusterSize").unwrap_or_default();
    let ranges = ends.iter().zip(&sizes);
    let ranges = ranges.filter_map(|(&end, &size)| Some((u64::try_from(end).ok()?, u64::try_from(size).ok()?)));
    ranges.filter(|&(end, _)| end < entries).collect()
}

fn friends(tree: Members<'_>) -> Vec<[String; 3]> {
    let friend = |value: &Value| {
        let friend = Members(value.as_object()?);
        Some([friend.text("fName").ok()?, friend.text("fTitle").ok()?, friend.text("fTreeName").unwrap_or_default()])
    };
    tree.objects("fFriends").unwrap_or_default().iter().filter_map(friend).collect()
}

fn index(tree: Members<'_>) -> Option<[String; 2]> {
    let index = Members(tree.get("fTreeIndex").ok()?.as_object()?);
    Some([index.text("fMajorName").ok()?, index.text("fMinorName").ok()?])
}

fn weight(tree: Members<'_>) -> f64 {
    match tree.get("fWeight") {
        Ok(Value::Float(weight)) => *weight,
        _ => 1.0,
    }
}

fn aliases(tree: Members<'_>) -> Vec<(String, String)> {
    let alias = |value: &Value| {
        let alias = Members(value.as_object()?);
        Some((alias.text("fName").ok()?, alias.text("fTitle").ok()?))
    };
    tree.objects("fAliases").unwrap_or_default().iter().filter_map(alias).collect()
}

fn user_info(tree: Members<'_>) -> Vec<Value> {
    tree.objects("fUserInfo").map(<[Value]>::to_vec).unwrap_or_default()
}
