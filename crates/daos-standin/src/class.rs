//! Object classes, and the upper bits of object ids that depend on them.

use std::ffi::{c_char, c_int};

use crate::abi::{CLASS_NAME_MAX_LEN, OT_MAX, ObjectId};
use crate::control::text;
use crate::error::{DER_INVAL, Outcome};

/// `OC_UNKNOWN`: the pool chooses.
pub const OC_UNKNOWN: u32 = 0;
/// `OC_RP_XSF`: one copy on each rank.
pub const OC_RP_XSF: u32 = 80;
/// `OC_S1`: one group, one copy.
pub const OC_S1: u32 = 0x0100_0001;
/// `OC_S2`: two groups, one copy.
pub const OC_S2: u32 = 0x0100_0002;
/// `OC_SX`: as many groups as there are targets, one copy.
pub const OC_SX: u32 = 0x0100_ffff;
/// `OC_RP_2G1`: one group, two copies.
pub const OC_RP_2G1: u32 = 0x0800_0001;
/// `OC_EC_2P1GX`: two parts and one parity, as many groups as fit.
pub const OC_EC_2P1GX: u32 = 0x2000_ffff;

/// Groups of classes that end in `X`.
const MAX_GROUPS: u32 = 0xffff;
/// `OID_FMT_TYPE_SHIFT`.
const TYPE_SHIFT: u32 = 56;
/// `OID_FMT_CLASS_SHIFT`.
const CLASS_SHIFT: u32 = 48;
/// `OID_FMT_META_SHIFT`.
const GROUPS_SHIFT: u32 = 32;

/// A kind of redundancy: its number in a class, the start of its name, and the targets of a group.
struct Redundancy {
    number: u32,
    name: &'static str,
    group_size: u32,
}

const fn redundancy(number: u32, name: &'static str, group_size: u32) -> Redundancy {
    Redundancy { number, name, group_size }
}

/// All kinds, from `daos_obj_class.h`.
const REDUNDANCIES: &[Redundancy] = &[
    redundancy(0x01, "S", 1),
    redundancy(0x08, "RP_2G", 2),
    redundancy(0x09, "RP_3G", 3),
    redundancy(0x0a, "RP_4G", 4),
    redundancy(0x0b, "RP_5G", 5),
    redundancy(0x0c, "RP_6G", 6),
    redundancy(0x20, "EC_2P1G", 3),
    redundancy(0x21, "EC_2P2G", 4),
    redundancy(0x22, "EC_4P1G", 5),
    redundancy(0x23, "EC_4P2G", 6),
    redundancy(0x24, "EC_8P1G", 9),
    redundancy(0x25, "EC_8P2G", 10),
    redundancy(0x26, "EC_16P1G", 17),
    redundancy(0x27, "EC_16P2G", 18),
];

/// Numbers of groups of the classes that have a name.
const NAMED_GROUPS: [u32; 8] = [1, 2, 4, 6, 8, 12, 16, 32];

/// Redundancy and groups of a class with groups.
fn split(class: u32) -> Option<(&'static Redundancy, u32)> {
    let groups = class & 0x00ff_ffff;
    let known = REDUNDANCIES.iter().find(|known| known.number == class >> 24)?;
    (1..=MAX_GROUPS).contains(&groups).then_some((known, groups))
}

/// Name of a class.
fn name_of(class: u32) -> Option<String> {
    if class == OC_RP_XSF {
        return Some("RP_XSF".to_owned());
    }
    let (redundancy, groups) = split(class)?;
    let groups = if groups == MAX_GROUPS { "X".to_owned() } else { groups.to_string() };
    Some(format!("{}{groups}", redundancy.name))
}

/// Class of a name, without `OC_`.
fn class_of(name: &str) -> Option<u32> {
    let groups = || NAMED_GROUPS.into_iter().chain([MAX_GROUPS]);
    let classes = REDUNDANCIES.iter().flat_map(|known| groups().map(|groups| known.number << 24 | groups));
    classes.chain([OC_RP_XSF]).find(|&class| name_of(class).as_deref() == Some(name))
}

/// An object id with the upper 32 bits that a pool gives to a type and a class.
pub(crate) fn generate(id: ObjectId, kind: u32, class: u32, targets: u32, ranks: u32) -> Outcome<ObjectId> {
    if kind > OT_MAX {
        return Err(DER_INVAL);
    }
    let class = if class == OC_UNKNOWN { OC_S1 } else { class };
    let (number, groups) = if class == OC_RP_XSF {
        (0, OC_RP_XSF)
    } else {
        let (redundancy, mut groups) = split(class).ok_or(DER_INVAL)?;
        let size = redundancy.group_size;
        if groups == MAX_GROUPS {
            groups = (targets / size).max(1);
        }
        let is_possible = size <= ranks && u64::from(groups) * u64::from(size) <= u64::from(targets);
        (redundancy.number, if is_possible { groups } else { return Err(DER_INVAL) })
    };
    let upper = u64::from(kind) << TYPE_SHIFT | u64::from(number) << CLASS_SHIFT | u64::from(groups) << GROUPS_SHIFT;
    Ok(ObjectId { lo: id.lo, hi: upper | id.hi & u64::from(u32::MAX) })
}

/// Type of the object, for an id that [`generate`] can give for the pool.
pub(crate) fn type_of(id: ObjectId, targets: u32, ranks: u32) -> Outcome<u32> {
    let [kind, number, high, low, ..] = id.hi.to_be_bytes();
    let class = u32::from_be_bytes([number, 0, high, low]);
    let is_generated = generate(id, kind.into(), class, targets, ranks) == Ok(id);
    if is_generated { Ok(kind.into()) } else { Err(DER_INVAL) }
}

/// `daos_oclass_name2id`: 0 for an unknown name.
///
/// # Safety
/// A C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn daos_oclass_name2id(name: *const c_char) -> c_int {
    // SAFETY: the caller passes a C string.
    let class = unsafe { text(name) }.ok().and_then(class_of);
    c_int::try_from(class.unwrap_or(OC_UNKNOWN)).expect("classes have 30 bits")
}

/// `daos_oclass_id2name`: `UNKNOWN` and -1 for an unknown class.
///
/// # Safety
/// Space for 24 bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn daos_oclass_id2name(class: u32, name: *mut c_char) -> c_int {
    let found = name_of(class);
    let mut bytes = found.clone().unwrap_or_else(|| "UNKNOWN".to_owned()).into_bytes();
    bytes.push(0);
    debug_assert!(bytes.len() <= CLASS_NAME_MAX_LEN, "the longest name is EC_16P2G65534");
    // SAFETY: the caller has space for 24 bytes, and names are shorter.
    unsafe { name.copy_from_nonoverlapping(bytes.as_ptr().cast(), bytes.len()) };
    if found.is_some() { 0 } else { -1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_classes() {
        let known = [
            ("SX", OC_SX),
            ("S12", 0x0100_000c),
            ("RP_3GX", 0x0900_ffff),
            ("EC_4P1GX", 0x2200_ffff),
            ("EC_16P2GX", 0x2700_ffff),
            ("RP_XSF", OC_RP_XSF),
        ];
        for (name, class) in known {
            assert_eq!(class_of(name), Some(class), "{name}");
            assert_eq!(name_of(class).as_deref(), Some(name));
        }
        assert_eq!((class_of("OC_SX"), class_of("S3"), name_of(51)), (None, None, None));
        assert_eq!(name_of(0x0100_0003).as_deref(), Some("S3"));
    }

    #[test]
    fn redundant_classes_need_ranks() {
        let upper = |class, targets, ranks| Ok(generate(ObjectId::default(), 4, class, targets, ranks)?.hi >> 32);
        assert_eq!(upper(OC_RP_2G1, 4, 2), Ok(0x0408_0001));
        assert_eq!(upper(OC_EC_2P1GX, 12, 3), Ok(0x0420_0004));
        assert_eq!(upper(OC_EC_2P1GX, 12, 2), Err::<u64, _>(DER_INVAL));
    }
}
