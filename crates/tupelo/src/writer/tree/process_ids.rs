//! The processes to whose objects references (`TRef`) point. Objects name them by a number in their file (`TProcessID`), to
//! which the key of a basket adds another one (`TTreeCloner::CopyProcessIds`).

use tupelo_format::compression::Compression;
use tupelo_format::container;
use tupelo_pages::sink::FileSink;
use tupelo_pages::source::File;

use crate::{Error, Result};

/// The class of their identities.
pub(crate) const CLASS: &str = "TProcessID";
/// The name of an identity, before its number.
const NAME: &str = "ProcessID";

/// Copies the identities that a file has to another one, unless it has them. Returns what is added to their numbers there.
pub(super) fn carry(from: &File, to: &FileSink) -> Result<u16> {
    let listing = from.listing()?;
    let objects = listing.objects().filter(|(object, is_newest)| *is_newest && object.key.class_name == CLASS);
    let mut own: Vec<(u16, &container::Object)> = objects.filter_map(|(it, _)| Some((number(&it.path)?, it))).collect();
    own.sort_by_key(|(number, _)| *number);
    let Some((last, _)) = own.last() else { return Ok(0) };
    let mut known: Vec<(u16, String)> =
        to.titles(CLASS)?.into_iter().filter_map(|(name, title)| Some((number(&name)?, title))).collect();
    known.sort();
    let next = known.last().map_or(0, |(number, _)| number.saturating_add(1));
    let is_there = |offset: u16| {
        own.iter().all(|(number, it)| known.iter().any(|(at, title)| *at == number + offset && *title == it.key.title))
    };
    if next.checked_add(*last).is_none() {
        return Err(Error::limit("the processes of all objects have no numbers below 65536"));
    }
    if let Some(offset) = (0..next).find(|offset| is_there(*offset)) {
        return Ok(offset);
    }
    for (number, object) in own {
        let bytes = from.attempt(|fetched| container::object_bytes(fetched, &object.key))?;
        let renamed = container::Object { path: format!("{NAME}{}", number + next), ..object.clone() };
        to.copy_object(&renamed, &bytes, Compression::NONE)?;
    }
    Ok(next)
}

/// The same for objects that are decoded and written again, with the number 0. Says whether that is their process.
pub(in crate::writer) fn carry_first(from: &File, to: &FileSink) -> Result<bool> {
    let listing = from.listing()?;
    let mut processes = listing.objects().filter(|(object, _)| object.key.class_name == CLASS);
    Ok(processes.all(|(object, _)| number(&object.path) == Some(0)) && carry(from, to)? == 0)
}

fn number(name: &str) -> Option<u16> {
    name.strip_prefix(NAME)?.parse().ok()
}
