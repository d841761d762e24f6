//! Commands that change the objects of a ROOT file, or what an object store has.

pub(super) mod gc;
pub(super) mod mkdir;
pub(super) mod mv;
pub(super) mod repack;
pub(super) mod rm;

use std::fmt;

use tupelo::reader::Location;
use tupelo::storage::display_name;
use tupelo::{FileWriter, cancellable};

use crate::failure::Failure;
use crate::interrupt::{Interrupt, abort};

/// A file, and names of objects in it.
struct Named {
    file: Location,
    names: Vec<String>,
}

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.file.fmt(f)
    }
}

/// The names by file, in the order of the arguments; `hint` is for arguments without a name.
fn by_file(locations: impl IntoIterator<Item = Location>, hint: &str) -> Result<Vec<Named>, Failure> {
    let mut files: Vec<Named> = Vec::new();
    for location in locations {
        let Location { file, object } = location;
        let Some(name) = object else {
            let file = display_name(&file);
            return Err(Failure::usage(format_args!("expected FILE:NAME, found {file}")).with_hint(hint));
        };
        match files.iter_mut().find(|known| known.file.file == file) {
            Some(known) => known.names.push(name),
            None => files.push(Named { file: Location { file, object: None }, names: vec![name] }),
        }
    }
    Ok(files)
}

/// Opens a file for update and makes a change visible. After an error or a signal the file is as before.
pub(super) fn update<T>(
    location: &Location,
    change: impl FnOnce(&FileWriter) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let Some(path) = location.local_path() else {
        let remote = Failure::usage(format_args!("{location}: objects are changed only in local ROOT files"));
        return Err(remote.with_hint("`tupelo copy --raw` copies a file, also back to where it is from"));
    };
    let interrupt = Interrupt::watch()?;
    let watched = interrupt.clone();
    let file = tupelo::update(path).map_err(|error| match error.is_not_found() {
        true => Failure::new(error).with_hint("`tupelo copy IN FILE:NAME` writes a new file"),
        false => error.into(),
    })?;
    match cancellable(move || watched.is_set(), || change(&file)) {
        Ok(changed) if !interrupt.is_set() => {
            file.finish()?;
            Ok(changed)
        }
        Err(failure) if !interrupt.is_set() => Err(abort(file, failure)),
        _ => Err(abort(file, interrupt.failure())),
    }
}
