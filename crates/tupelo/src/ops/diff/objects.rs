//! Whether two objects have the same values.

use std::collections::HashSet;
use std::sync::Arc;

use tupelo_format::object::{Numbers, Object, Value};

/// The base of most classes of ROOT. Its bits and identifier depend on the process that wrote an object, not on its value.
const BITS: &str = "TObject";

/// Whether two objects have the same classes and values. Floating-point numbers are compared by their bits.
pub(super) fn is_same(own: &Value, other: &Value) -> bool {
    Comparison::default().is_same(own, other)
}

#[derive(Default)]
struct Comparison {
    /// Pairs that are compared already: many pointers may lead to one object, also to one around them.
    seen: HashSet<[*const Object; 2]>,
}

impl Comparison {
    fn is_same(&mut self, own: &Value, other: &Value) -> bool {
        match (own, other) {
            (Value::Float(own), Value::Float(other)) => own.to_bits() == other.to_bits(),
            (Value::Numbers(own), Value::Numbers(other)) => same_numbers(own, other),
            (Value::Grid(lengths, own), Value::Grid(others, other)) => lengths == others && same_numbers(own, other),
            (Value::List(own), Value::List(other)) => self.are_same(own.iter(), other.iter()),
            (Value::Map(own), Value::Map(other)) => {
                let flat = |(key, value)| [key, value];
                let [own, other] = [own, other].map(|map| map.iter().map(|(key, value)| (key, value)).flat_map(flat));
                self.are_same(own, other)
            }
            (Value::Object(own), Value::Object(other)) => {
                !self.seen.insert([own, other].map(Arc::as_ptr)) || self.same_objects(own, other)
            }
            (Value::Opaque(own), Value::Opaque(other)) => {
                own.class_name == other.class_name && own.bytes == other.bytes
            }
            (own, other) => own == other,
        }
    }

    fn are_same<'v>(
        &mut self,
        mut own: impl Iterator<Item = &'v Value>,
        mut other: impl Iterator<Item = &'v Value>,
    ) -> bool {
        loop {
            match (own.next(), other.next()) {
                (None, None) => return true,
                (Some(own), Some(other)) if self.is_same(own, other) => {}
                _ => return false,
            }
        }
    }

    fn same_objects(&mut self, own: &Object, other: &Object) -> bool {
        let parts = |object| -> Vec<_> {
            let object: &Object = object;
            let bases = object.bases().filter(|(name, _)| *name != BITS);
            bases.chain(object.members()).collect()
        };
        let (ours, theirs) = (parts(own), parts(other));
        own.class_name() == other.class_name()
            && own.version() == other.version()
            && ours.iter().map(|(name, _)| name).eq(theirs.iter().map(|(name, _)| name))
            && self.are_same(ours.iter().map(|(_, value)| *value), theirs.iter().map(|(_, value)| *value))
    }
}

fn same_numbers(own: &Numbers, other: &Numbers) -> bool {
    match (own, other) {
        (Numbers::F32(own), Numbers::F32(other)) => {
            own.iter().map(|number| number.to_bits()).eq(other.iter().map(|number| number.to_bits()))
        }
        (Numbers::F64(own), Numbers::F64(other)) => {
            own.iter().map(|number| number.to_bits()).eq(other.iter().map(|number| number.to_bits()))
        }
        (own, other) => own == other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_compared_by_their_bits() {
        let list = |number| Value::List(vec![Value::Float(number), Value::Numbers(Numbers::F32(vec![f32::NAN]))]);
        assert!(is_same(&list(f64::NAN), &list(f64::NAN)));
        assert!(!is_same(&list(0.0), &list(-0.0)));
        let map = |number| Value::Map(vec![(Value::Int(1), Value::Int(number))]);
        assert!(is_same(&map(2), &map(2)) && !is_same(&map(2), &map(3)));
        assert!(!is_same(&Value::List(vec![Value::Null]), &Value::List(Vec::new())));
    }
}
