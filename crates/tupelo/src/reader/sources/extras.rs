//! What a tree has besides branches and entries.

use tupelo_format::object::Value;
use tupelo_ttree::Tree;

/// What a tree has besides branches and entries.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TreeExtras {
    /// Names and expressions.
    pub(crate) aliases: Vec<(String, String)>,
    /// Alias, file and tree of each.
    pub(crate) friends: Vec<[String; 3]>,
    /// The expressions of the major and minor value of the index.
    pub(crate) index: Option<[String; 2]>,
    /// Objects that a program has added.
    pub(crate) user_info: Vec<Value>,
    pub(crate) weight: f64,
}

impl Default for TreeExtras {
    fn default() -> Self {
        Self { aliases: Vec::new(), friends: Vec::new(), index: None, user_info: Vec::new(), weight: 1.0 }
    }
}

impl TreeExtras {
    pub(crate) fn of(tree: &Tree) -> Self {
        Self {
            aliases: tree.aliases.clone(),
            friends: tree.friends.clone(),
            index: tree.index.clone(),
            user_info: tree.user_info.clone(),
            weight: tree.weight,
        }
    }

    /// Names all, for a copy that is not a tree.
    pub(crate) fn lost(&self) -> Vec<String> {
        let index = self.index.as_ref().map(|[major, minor]| format!("index of '{major}' and '{minor}'"));
        self.beyond(&Self::default()).into_iter().chain(index).collect()
    }

    /// Names all that another tree does not have, but for the index.
    pub(crate) fn beyond(&self, other: &Self) -> Vec<String> {
        let aliases = self.aliases.iter().filter(|it| !other.aliases.contains(it));
        let friends = self.friends.iter().filter(|it| !other.friends.contains(it));
        let objects = self.user_info.iter().filter(|it| !other.user_info.contains(it));
        let aliases = aliases.map(|(name, _)| format!("alias '{}'", name.escape_debug()));
        let friends = friends.map(|[name, ..]| format!("friend '{}'", name.escape_debug()));
        let objects = objects.map(|object| match object.as_object().and_then(|object| object.get("fName")) {
            Some(Value::Text(name)) if !name.is_empty() => format!("user information '{}'", name.escape_debug()),
            _ => "user information".to_owned(),
        });
        let weight = (self.weight != other.weight).then(|| format!("weight {}", self.weight));
        aliases.chain(friends).chain(objects).chain(weight).collect()
    }
}
