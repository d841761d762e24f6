//! Whether entries of one schema can be written as those of another.

use std::collections::HashMap;
use std::mem::discriminant;

use tupelo_format::encoding::Encoding;
use tupelo_format::type_name::normalised;

use super::{Field, Kind, Primitive, Schema};
use crate::{Error, Result};

impl Schema {
    /// For each field of this schema, the position of the same field in another one, which must have the same fields in
    /// any order, and must not be stored with higher precision.
    ///
    /// # Errors
    /// Invalid argument, which names the first field that differs.
    pub fn order_of(&self, other: &Self) -> Result<Vec<usize>> {
        let places: HashMap<&str, usize> =
            other.fields.iter().enumerate().map(|(place, field)| (field.name.as_str(), place)).collect();
        let mut order = Vec::with_capacity(self.fields.len());
        for field in &self.fields {
            let Some(&place) = places.get(field.name.as_str()) else {
                // Users see hidden fields only where they look for them.
                let mut missing = self.fields.iter().filter(|other| !places.contains_key(other.name.as_str()));
                let shown = missing.find(|other| !other.hidden).unwrap_or(field);
                return Err(Error::invalid_argument(format!("field '{}' is missing", shown.name)));
            };
            same(field, &other.fields[place], &field.name)?;
            order.push(place);
        }
        if other.fields.len() > order.len() {
            let known: HashMap<&str, ()> = self.fields.iter().map(|field| (field.name.as_str(), ())).collect();
            let more = other.fields.iter().find(|field| !known.contains_key(field.name.as_str()));
            let more = more.map_or_else(String::new, |field| format!(": '{}'", field.name));
            return Err(Error::invalid_argument(format!(
                "found {} fields, expected {}{more}; select fields",
                other.fields.len(),
                self.fields.len()
            )));
        }
        Ok(order)
    }
}

impl Field {
    /// Whether another field has columns for the same values, with any encodings.
    pub fn is_stored_like(&self, other: &Self) -> bool {
        let children = self.children().iter().zip(other.children());
        discriminant(&self.kind) == discriminant(&other.kind)
            && size(self) == size(other)
            && self.children().len() == other.children().len()
            && children.into_iter().all(|(own, other)| own.is_stored_like(other))
    }
}

/// Whether values of another field can be written as those of a field.
///
/// # Errors
/// Invalid argument, which names the difference.
fn same(field: &Field, other: &Field, path: &str) -> Result<()> {
    let differ = |what: String| Err(Error::invalid_argument(format!("field '{path}' {what}")));
    let is_same_kind = discriminant(&field.kind) == discriminant(&other.kind) && size(field) == size(other);
    let names = (&field.type_name, &other.type_name);
    let is_same_type = names.0 == names.1 || normalised(names.0) == normalised(names.1);
    if !is_same_type || !is_same_kind || field.projected_from != other.projected_from {
        return differ(format!("has type {}, expected {}", told(other), told(field)));
    }
    let names = (members(field), members(other));
    if names.0 != names.1 {
        return differ(format!("has members '{}', expected '{}'", names.1, names.0));
    }
    if let Some(encoding) = field.encoding.filter(|encoding| is_lossy(field, *encoding))
        && field.encoding != other.encoding
    {
        let name = encoding.column_type().name();
        return differ(format!("would lose precision: it is stored as {name} with {} bits here", encoding.bits()));
    }
    let children = field.children().iter().zip(other.children());
    children.into_iter().try_for_each(|(child, other)| same(child, other, &format!("{path}.{}", child.name)))
}

fn members(field: &Field) -> String {
    field.children().iter().map(|child| child.name.as_str()).collect::<Vec<_>>().join("', '")
}

fn told(field: &Field) -> String {
    match &field.projected_from {
        Some(source) => format!("{} projected from '{source}'", field.display_type()),
        None => field.display_type().to_owned(),
    }
}

/// The size of a kind, besides its subfields.
fn size(field: &Field) -> Option<u64> {
    match field.kind {
        Kind::Bitset { size } | Kind::Array { size, .. } => Some(size),
        Kind::Primitive(primitive) => Some(primitive as u64),
        Kind::Cardinality { wide } => Some(wide.into()),
        _ => None,
    }
}

/// Whether a column has fewer bits than the values that are written to it.
fn is_lossy(field: &Field, encoding: Encoding) -> bool {
    match field.kind {
        Kind::Primitive(Primitive::Float) => encoding.bits() < 32,
        Kind::Primitive(Primitive::Double) => encoding.bits() < 64,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::tests::kinds::every_kind;

    fn number(name: &str, primitive: Primitive, type_name: &str) -> Field {
        Field::new(name, type_name, Kind::Primitive(primitive))
    }

    #[test]
    fn the_same_fields_are_found_in_any_order() {
        let schema = Schema { fields: every_kind() };
        let count = schema.fields.len();
        assert_eq!(schema.order_of(&schema).unwrap(), (0..count).collect::<Vec<_>>());
        let mut turned = schema.clone();
        turned.fields.reverse();
        assert_eq!(schema.order_of(&turned).unwrap(), (0..count).rev().collect::<Vec<_>>());
    }

    #[test]
    fn the_first_difference_is_named() {
        let x = number("x", Primitive::Float, "float");
        let schema = |fields: &[&Field]| Schema { fields: fields.iter().copied().cloned().collect() };
        let refused = |one: &Schema, other: &Schema| one.order_of(other).unwrap_err().to_string();
        let wide = number("x", Primitive::Double, "double");
        assert_eq!(refused(&schema(&[&x]), &schema(&[&wide])), "field 'x' has type double, expected float");
        assert!(refused(&schema(&[&x]), &schema(&[])).contains("field 'x' is missing"));
        let y = number("y", Primitive::Float, "float");
        assert!(refused(&schema(&[&x]), &schema(&[&x, &y])).contains("found 2 fields, expected 1: 'y'"));
        let record = |field: &Field| Field::new("r", "", Kind::Record(vec![field.clone()]));
        assert_eq!(
            refused(&schema(&[&record(&x)]), &schema(&[&record(&wide)])),
            "field 'r.x' has type double, expected float"
        );
        let members = refused(&schema(&[&record(&x)]), &schema(&[&record(&y)]));
        assert_eq!(members, "field 'r' has members 'y', expected 'x'");
    }

    /// Values of 32 bits would have gone into 16 without a word.
    #[test]
    fn values_are_not_written_with_fewer_bits() {
        let exact = number("x", Primitive::Float, "float");
        let half = Field { encoding: Some(super::super::arrow::parse_encoding("Real16").unwrap()), ..exact.clone() };
        let (exact, half) = (Schema { fields: vec![exact] }, Schema { fields: vec![half] });
        let error = half.order_of(&exact).unwrap_err().to_string();
        assert!(error.contains("would lose precision"), "{error}");
        assert!(exact.order_of(&half).is_ok() && half.order_of(&half).is_ok());
    }
}
