//! Writing a ROOT file again without the space that nothing uses.

use std::cell::Cell;
use std::ops::ControlFlow;

use tupelo_format::compression::Compression;
use tupelo_format::container;
use tupelo_format::open::{ANCHOR_CLASS, PRE_RELEASE_CLASS};
use tupelo_pages::source::TreeSource;
use tupelo_storage::Storage;

use super::super::merge::{merge_objects, merge_tree};
use super::extents::has_baskets;
use crate::reader::{File, OpenOptions, TREE_CLASSES, Tree};
use crate::writer::{FileWriter, MoveOptions};
use crate::{Error, Result};

/// What was written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Repacked {
    /// Number of ntuples, trees and other objects, directories not counted.
    pub objects: u64,
    /// Number of older cycles, which are not in the new file.
    pub older_cycles: u64,
    /// Size of the file.
    pub bytes_before: u64,
    /// Size of the new file.
    pub bytes_after: u64,
}

/// Writes everything that a file has to a new file at a path or URL: the newest cycles of ntuples with their pages as
/// they are stored, of trees with their baskets as they are stored, and of other objects, and all directories. The new
/// file appears when it is complete, also in place of the old one. `progress` receives the stored bytes of ntuples and
/// trees that are done, and may end the work: the result is then `None`.
///
/// # Errors
/// Unsupported, with the name, for what the new file could not have: ntuples with unsupported features, objects with
/// trees in them, directories that are in the file twice, and baskets of a tree that is in another file; corrupt where the file is
/// damaged; those of writing. No file is written then.
pub fn repack(
    from: &File,
    to: &str,
    storage: &Storage,
    progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
) -> Result<Option<Repacked>> {
    let root = from.root_file().map_err(|error| error.in_file(from.name()))?;
    let contents = Contents::of(from).map_err(|error| error.or_in_file(from.name()))?;
    // Nothing in the file leads to them.
    if contents.trees.is_empty() && has_baskets(root) {
        let what = "it has no tree, but baskets of trees in other files, which would be lost";
        return Err(Error::unsupported(what).in_file(from.name()));
    }
    let title = root.attempt(|fetched| Ok(container::Directory::top(fetched)?.title().to_owned()))?;
    let writer = FileWriter::create_titled(to, &title, storage)?;
    match contents.write(from, &writer, progress) {
        Ok(ControlFlow::Continue(())) => writer.finish()?,
        Ok(ControlFlow::Break(())) => {
            writer.abort()?;
            return Ok(None);
        }
        Err(error) => {
            // The first error is the one to report.
            let _aborted = writer.abort();
            return Err(error);
        }
    }
    let after = OpenOptions::new(to).with_storage(storage.clone()).open_file()?;
    Ok(Some(Repacked {
        objects: contents.objects,
        older_cycles: contents.older_cycles,
        bytes_before: root.size(),
        bytes_after: after.size().unwrap_or_default(),
    }))
}

/// What a file has.
struct Contents<'f> {
    /// Parents before what is in them.
    directories: Vec<&'f container::Object>,
    trees: Vec<&'f container::Object>,
    ntuples: Vec<&'f container::Object>,
    objects: u64,
    older_cycles: u64,
}

impl<'f> Contents<'f> {
    fn of(file: &'f File) -> Result<Self> {
        let (directories, trees, ntuples) = Default::default();
        let mut all = Self { directories, trees, ntuples, objects: 0, older_cycles: 0 };
        for (object, is_newest) in file.root_file()?.listing()?.objects() {
            let (path, class_name) = (object.path.escape_debug(), object.key.class_name.as_str());
            if object.key.name.contains('/') {
                return Err(Error::unsupported(format!("'{path}' has a slash in its name, which cannot be kept")));
            }
            match (object.key.is_directory(), is_newest) {
                (true, false) => {
                    let what = format!("directory '{path}' is in the file more than once, which cannot be kept");
                    return Err(Error::unsupported(what));
                }
                (true, true) => all.directories.push(object),
                (false, false) => all.older_cycles += 1,
                (false, true) => {
                    all.objects += 1;
                    match class_name {
                        ANCHOR_CLASS => all.ntuples.push(object),
                        // The error says which format it has.
                        PRE_RELEASE_CLASS => {
                            return Err(file.ntuple_of(object).err().unwrap_or_else(|| unread(object)));
                        }
                        _ if TREE_CLASSES.contains(&class_name) => all.trees.push(object),
                        _ => {}
                    }
                }
            }
        }
        Ok(all)
    }

    fn write(
        &self,
        from: &File,
        to: &FileWriter,
        progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>> {
        let (done, before) = (Cell::new(0), Cell::new(0));
        let mut progress = |now: u64| {
            done.set(before.get() + now);
            progress(done.get())
        };
        let sink = to.file_sink()?;
        for directory in &self.directories {
            sink.make_directory(&directory.path, Some(&directory.key.title))?;
        }
        to.add_streamer_info(&from.streamer_infos()?)?;
        let refused = |kind: &'static str, name: &str, reason: &str| {
            let error = Error::unsupported(format!("cannot be kept as a whole: {reason}"));
            Err(error.in_object(kind, name).in_file(from.name()))
        };
        // Their keys must be in the first 2 GiB.
        let merged = merge_objects(1, |_| Ok::<_, Error>(from.clone()), to, Compression::DEFAULT)?;
        if let Some(left) = merged.left_out.first() {
            return refused("object", &left.name, &left.reason);
        }
        for tree in &self.trees {
            let root = from.root_file()?.clone();
            let open = |_| Ok::<_, Error>(Tree::new(TreeSource::open(root.clone(), tree)?, &tree.path));
            let Some(moved) = merge_tree(&tree.path, 1, open, to, MoveOptions::default(), &mut progress)? else {
                return Ok(ControlFlow::Break(()));
            };
            if let Some(left) = moved.left_out.first() {
                return refused("tree", &tree.path, &left.reason);
            }
            before.set(done.get());
        }
        for ntuple in &self.ntuples {
            let opened = from.ntuple_of(ntuple)?;
            if to.copy_sealed(&opened, &ntuple.path, &mut progress)?.is_none() {
                return Ok(ControlFlow::Break(()));
            }
            before.set(done.get());
        }
        Ok(ControlFlow::Continue(()))
    }
}

#[cold]
fn unread(object: &container::Object) -> Error {
    Error::unsupported(format!("ntuple '{}' is of a format before 1.0", object.path))
}
