//! Options for writing a tree. Defaults are ROOT's (`TTree`, 6.40), but for the codec, which is that of ntuples.

use std::collections::HashMap;
use std::sync::Arc;

use tupelo_format::compression::Compression;
use tupelo_format::object::Value;
use tupelo_format::streamer::{ClassInfo, Element, ElementKind, StreamerInfos};
use tupelo_format::type_name::normalised;
use tupelo_schema::schema::Layouts;
use tupelo_ttree::Branch;
use tupelo_ttree::fields::{Field as TreeField, FieldKind};
pub use tupelo_ttree::write::Jagged;
use tupelo_ttree::write::{Planning, ROOT_OBJECT};

use super::described::is_like;
use crate::reader::{Tree, TreeExtras};
use crate::{Error, Result};

/// Flushing of clusters: by default after 30 000 000 compressed bytes.
pub const DEFAULT_AUTO_FLUSH: i64 = -30_000_000;
/// Size of a basket, in bytes before compression: 32 000.
pub const DEFAULT_BASKET_BYTES: u32 = 32_000;
/// Larger baskets are refused, in bytes before compression: 256 MiB.
pub const MAX_BASKET_BYTES: u32 = 256 << 20;
/// ROOT's kind of the branch of a split `TClonesArray` (`TBranchElement::kClonesNode`).
const CLONES_KIND: i32 = 3;
/// Levels to which members of records get branches of their own.
pub const DEFAULT_SPLIT_LEVEL: u8 = 99;

/// Options for writing a tree.
#[derive(Debug, Clone)]
pub struct TreeOptions {
    pub(super) compression: Compression,
    pub(super) auto_flush: i64,
    pub(super) basket_bytes: u32,
    pub(super) optimise_baskets: bool,
    pub(super) split_level: u8,
    pub(super) jagged: Jagged,
    pub(super) title: String,
    /// The counters of lists, by their names: a field, or a branch that no field becomes.
    pub(super) counters: HashMap<String, Option<String>>,
    /// The names of the branches of fields, where they are other ones.
    pub(super) names: HashMap<String, String>,
    /// Whether readers have the dictionaries of the classes, since they are those of a tree.
    pub(super) keeps_classes: bool,
    /// The classes that keep their names, if they have these members, by type.
    pub(super) classes: HashMap<String, Vec<Arc<ClassInfo>>>,
    /// The classes of whole containers, by fields.
    pub(super) types: HashMap<String, String>,
    /// The classes of the items of split `TClonesArray`s, by the dotted paths of the fields.
    pub(super) clones: HashMap<String, String>,
    /// Weight and aliases.
    pub(super) weight: f64,
    pub(super) aliases: Vec<(String, String)>,
    /// Index, friends and user information: objects, or null.
    pub(super) attached: [Value; 3],
}

impl Default for TreeOptions {
    fn default() -> Self {
        Self {
            compression: Compression::DEFAULT,
            auto_flush: DEFAULT_AUTO_FLUSH,
            basket_bytes: DEFAULT_BASKET_BYTES,
            optimise_baskets: true,
            split_level: DEFAULT_SPLIT_LEVEL,
            jagged: Jagged::Counter,
            title: String::new(),
            counters: HashMap::new(),
            names: HashMap::new(),
            keeps_classes: false,
            classes: HashMap::new(),
            types: HashMap::new(),
            clones: HashMap::new(),
            weight: 1.0,
            aliases: Vec::new(),
            attached: Default::default(),
        }
    }
}

impl TreeOptions {
    /// Those with which a tree was written, as far as it says: the codec of its first branch, its clusters, its title, and
    /// which lists are arrays with a counter. Branches keep their names, and classes their names and versions; classes and
    /// containers that need a dictionary, which other options refuse, are written. What it has besides branches is kept by
    /// [`OriginalTrees`](crate::ops::export::OriginalTrees).
    pub fn of(tree: &Tree) -> Self {
        let metadata = tree.metadata();
        let codec = metadata.branches.first().map_or(Compression::DEFAULT, codec_of);
        let auto_flush = if metadata.auto_flush == 0 { DEFAULT_AUTO_FLUSH } else { metadata.auto_flush };
        let options = Self { keeps_classes: true, ..Self::default() }.with_classes_of(tree);
        options
            .with_compression(codec)
            .with_auto_flush(auto_flush)
            .with_title(&metadata.title)
            .with_jagged(Jagged::Same)
    }

    /// The same with the names of branches, classes and containers of another tree, where none are known yet.
    #[must_use]
    pub fn with_classes_of(mut self, tree: &Tree) -> Self {
        let metadata = tree.metadata();
        let own_names = tree.own_names();
        let names = own_names.iter().filter(|(own, field)| own.strip_suffix('.') == Some(field));
        add_new(&mut self.names, names.map(|(own, field)| (field.clone(), own.clone())));
        let mut classes: HashMap<String, Vec<Arc<ClassInfo>>> = HashMap::new();
        for info in tree.streamer_infos().shared() {
            classes.entry(normalised(&info.name)).or_default().push(Arc::clone(info));
        }
        add_new(&mut self.classes, classes);
        let whole = metadata.branches.iter().filter(|it| it.parent.is_none() && !it.class_name.is_empty());
        let field = |name: &String| own_names.get(name).unwrap_or(name).clone();
        add_new(&mut self.types, whole.map(|branch| (field(&branch.name), branch.class_name.clone())));
        let mut clones = HashMap::new();
        add_clones(tree.source().fields(), &metadata.branches, "", &mut clones);
        add_new(&mut self.clones, clones);
        self
    }

    /// A member of a class, as the source describes it.
    pub(super) fn member(&self, class: &str, member: &str) -> Option<&Element> {
        let known = self.classes.get(class)?;
        let mut elements = known.iter().rev().flat_map(|class| &class.elements);
        elements.find(|it| it.name == member && !matches!(it.kind, ElementKind::Base { .. }))
    }

    /// The same with weight and aliases, and with index, friends and user information: objects, or null.
    pub(crate) fn with_extras(self, extras: &TreeExtras, attached: [Value; 3]) -> Self {
        Self { weight: extras.weight, aliases: extras.aliases.clone(), attached, ..self }
    }

    /// Codec and level of baskets; by default zstd:5.
    #[must_use]
    pub fn with_compression(mut self, compression: Compression) -> Self {
        self.compression = compression;
        self
    }

    /// When all baskets are flushed, which ends a cluster: after this number of entries if it is positive, of compressed
    /// bytes if it is negative, never if it is 0. As in ROOT, a number of bytes ends the first cluster only, and the
    /// following ones have as many entries. By default [`DEFAULT_AUTO_FLUSH`].
    #[must_use]
    pub fn with_auto_flush(mut self, auto_flush: i64) -> Self {
        self.auto_flush = auto_flush;
        self
    }

    /// Size at which a basket is full, in bytes before compression, with its key; by default [`DEFAULT_BASKET_BYTES`].
    #[must_use]
    pub fn with_basket_bytes(mut self, basket_bytes: u32) -> Self {
        self.basket_bytes = basket_bytes;
        self
    }

    /// Whether the size of baskets changes at the end of the first cluster, so that each branch has one basket in a
    /// cluster (`TTree::OptimizeBaskets`). By default yes.
    #[must_use]
    pub fn with_optimised_baskets(mut self, optimise_baskets: bool) -> Self {
        self.optimise_baskets = optimise_baskets;
        self
    }

    /// To how many levels, 0 to 99, members of records get branches of their own. With 0, a record is one branch of
    /// objects. By default [`DEFAULT_SPLIT_LEVEL`].
    #[must_use]
    pub fn with_split_level(mut self, split_level: u8) -> Self {
        self.split_level = split_level;
        self
    }

    /// How lists of numbers are stored; by default as arrays with a counter.
    #[must_use]
    pub fn with_jagged(mut self, jagged: Jagged) -> Self {
        self.jagged = jagged;
        self
    }

    /// Title of the tree; by default empty.
    #[must_use]
    pub fn with_title(mut self, title: &str) -> Self {
        title.clone_into(&mut self.title);
        self
    }

    /// Lists, each with the field that has the numbers of their items and becomes their counter: names of both. By
    /// default each list has a counter of its own, `nNAME`, and lists that are projected from a collection have the field
    /// with its size.
    #[must_use]
    pub fn with_counters(mut self, counters: impl IntoIterator<Item = (String, String)>) -> Self {
        self.counters.extend(counters.into_iter().map(|(list, counter)| (list, Some(counter))));
        self
    }

    /// Lists that no field counts, even one that is called like a counter.
    #[must_use]
    pub(crate) fn with_own_counters(mut self, lists: impl IntoIterator<Item = String>) -> Self {
        self.counters.extend(lists.into_iter().map(|list| (list, None)));
        self
    }

    /// Whether integers with the name of a counter may become one.
    pub(crate) fn takes_usual_counters(&self) -> bool {
        self.jagged != Jagged::Same
    }

    /// The title.
    pub(crate) fn title(&self) -> &str {
        &self.title
    }

    /// Layouts of classes, as the source describes those that are the same.
    pub(super) fn as_described(&self, infos: &StreamerInfos) -> StreamerInfos {
        let mut described = StreamerInfos::default();
        for info in infos.classes() {
            let is_same = |known: &&Arc<ClassInfo>| {
                let is_named =
                    (&known.name, known.checksum, known.version) == (&info.name, info.checksum, info.version);
                is_named && is_like(known, info)
            };
            let known = self.classes.get(&normalised(&info.name)).into_iter().flatten().find(is_same);
            described.push(known.map_or(info, |known| &**known).clone());
        }
        described
    }

    /// How fields become branches.
    pub(super) fn planning(&self) -> Result<Planning> {
        let out_of_range = |what: &str, given: u64, range: &str| {
            Err(Error::invalid_argument(format!("{what} {given} is out of range: expected {range}")))
        };
        match self {
            Self { split_level: 100.., .. } => out_of_range("split level", self.split_level.into(), "0 to 99"),
            Self { basket_bytes, .. } if !(1..=MAX_BASKET_BYTES).contains(basket_bytes) => {
                out_of_range("basket size", (*basket_bytes).into(), &format!("1 to {MAX_BASKET_BYTES} bytes"))
            }
            _ => {
                let Self { jagged, split_level, keeps_classes: keeps_names, .. } = *self;
                Ok(Planning { jagged, split_level, keeps_names })
            }
        }
    }
}

/// The codec and level of a branch. Before ROOT 5.30 there was only the level, of zlib.
pub(super) fn codec_of(branch: &Branch) -> Compression {
    let setting = u32::try_from(branch.compression).unwrap_or(0);
    let setting = if (1..10).contains(&setting) { 100 + setting } else { setting };
    Compression::from_setting(setting).unwrap_or(Compression::DEFAULT)
}

fn add_new<V>(known: &mut HashMap<String, V>, others: impl IntoIterator<Item = (String, V)>) {
    for (name, value) in others {
        known.entry(name).or_insert(value);
    }
}

/// Adds the classes of the items of `TClonesArray`s.
fn add_clones(fields: &[TreeField], branches: &[Branch], parent: &str, clones: &mut HashMap<String, String>) {
    for field in fields {
        let path = if parent.is_empty() { field.name.clone() } else { format!("{parent}.{}", field.name) };
        match &field.kind {
            FieldKind::Record(members) => add_clones(members, branches, &path, clones),
            FieldKind::Collection { counts, .. } => {
                let element = branches.get(*counts).and_then(|branch| branch.element.as_ref());
                let class = element.filter(|it| it.kind == CLONES_KIND).map(|it| normalised(&it.clones_class));
                clones.extend(class.filter(|class| !class.is_empty()).map(|class| (path, class)));
            }
            FieldKind::Value { .. } => {}
        }
    }
}

impl Layouts for TreeOptions {
    fn class(&self, type_name: &str) -> Option<&ClassInfo> {
        let known = self.classes.get(&normalised(type_name)).and_then(|known| known.last());
        known.map(|class| &**class).or_else(|| match type_name {
            ROOT_OBJECT => StreamerInfos::known().newest(ROOT_OBJECT).map(|class| &**class),
            _ => None,
        })
    }

    fn accepts(&self, _: &Element) -> bool {
        true
    }
}
