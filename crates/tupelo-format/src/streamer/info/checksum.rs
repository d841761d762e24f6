//! The checksum of a class.

use super::{Element, ElementKind};

/// The checksum that ROOT computes of a class, from the names and checksums of its bases and the names of its members and
/// their types (`TStreamerInfo::GetCheckSum`). Containers have no members there.
pub fn class_checksum(class_name: &str, elements: &[Element]) -> u32 {
    let add = |sum: u32, number: u32| sum.wrapping_mul(3).wrapping_add(number);
    let text = |sum, text: &str| text.bytes().fold(sum, |sum, byte| add(sum, byte.into()));
    let (bases, members): (Vec<&Element>, Vec<&Element>) =
        elements.iter().partition(|element| matches!(element.kind, ElementKind::Base { .. }));
    let sum = bases.into_iter().fold(text(0, class_name), |sum, base| {
        add(text(sum, &base.name), base.max_index.get(1).map_or(0, |sum| sum.cast_unsigned()))
    });
    members.into_iter().fold(sum, |sum, element| {
        let sum = text(text(sum, &element.name), &element.type_name);
        element.dimensions().iter().fold(sum, |sum, &size| add(sum, size.cast_unsigned()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// That of ROOT 6.40.
    #[test]
    fn checksums_of_pairs_are_those_of_root() {
        let number = |name: &str| Element::new(name, "double", 8, ElementKind::Basic);
        assert_eq!(class_checksum("pair<double,double>", &[number("first"), number("second")]), 0x00d7_bed2);
    }
}
