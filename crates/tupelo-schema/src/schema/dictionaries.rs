//! The containers that ROOT reads without a dictionary of the user: vectors, and those that it has in `core/clingutils`.

use super::Field;

/// Sequences of any item, which trees have as `std::vector`.
pub const VECTORS: [&str; 2] = ["std::vector", "ROOT::VecOps::RVec"];

const SETS: [&str; 4] = ["std::set", "std::unordered_set", "std::multiset", "std::unordered_multiset"];
const SET_ITEMS: [&str; 5] = ["std::int32_t", "std::int64_t", "float", "double", "std::string"];
/// Keys and values of maps, beside those of integers and of texts.
const MAP_KEYS: [&str; 3] = ["std::int64_t", "double", "std::string"];
const MAP_VALUES: [&str; 4] = ["std::int32_t", "std::int64_t", "float", "double"];

/// Whether ROOT has a dictionary for a set of an item, or for a map of a key and a value.
pub fn has_dictionary(template: &str, arguments: &[Field]) -> bool {
    let types: Vec<&str> = arguments.iter().map(|field| field.type_name.as_str()).collect();
    match (template, types.as_slice()) {
        ("std::map" | "std::unordered_map", ["std::int32_t", "std::int32_t"]) => true,
        ("std::map", ["std::string", "std::string"]) => true,
        ("std::map" | "std::unordered_map", [key, value]) => MAP_KEYS.contains(key) && MAP_VALUES.contains(value),
        ("std::multimap" | "std::unordered_multimap", [key, value]) => {
            MAP_KEYS.contains(key) && MAP_VALUES.contains(value) && *value != "float"
        }
        (set, [item]) => SETS.contains(&set) && SET_ITEMS.contains(item),
        _ => false,
    }
}
