//! Taking objects and directories out of a file.

use std::collections::BTreeSet;

use super::{Content, FileLayout};
use crate::{Error, Result};

impl FileLayout {
    /// Takes the objects and directories whose records begin at these offsets out of their directories, and directories
    /// with everything in them. Their records and the key lists of the directories are freed once a state without them
    /// is complete. Blobs that the objects refer to stay in use; [`FileLayout::release`] frees them.
    ///
    /// # Errors
    /// Unsupported if no directory lists a record at one of the offsets; nothing is changed then.
    pub fn remove_at(&mut self, offsets: &BTreeSet<u64>) -> Result<()> {
        let entries = self.directories.iter().flat_map(|directory| directory.entries.iter());
        let listed: BTreeSet<u64> = entries.filter_map(|entry| start(&entry.content)).collect();
        if let Some(other) = offsets.difference(&listed).next() {
            return Err(Error::unsupported(format!("expected an object at byte {other}, but no directory lists one")));
        }
        let mut removed = BTreeSet::new();
        // Parents come before their children.
        for (index, directory) in self.directories.iter_mut().enumerate() {
            let is_removed = removed.contains(&index);
            let is_taken = |content: &Content| start(content).is_some_and(|start| offsets.contains(&start));
            let taken = directory.entries.take(|entry| is_removed || is_taken(&entry.content));
            if is_removed {
                self.superseded.push(std::mem::replace(&mut directory.list, 0..0));
                self.changed.remove(&index);
            } else if !taken.is_empty() {
                self.changed.insert(index);
            }
            for entry in taken {
                removed.extend(entry.directory);
                if let Content::Stored { place, .. } = entry.content {
                    self.superseded.push(place);
                }
            }
        }
        Ok(())
    }
}

/// Where a record begins that is stored.
fn start(content: &Content) -> Option<u64> {
    match content {
        Content::Stored { place, .. } => Some(place.start),
        Content::Object { .. } | Content::Directory => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::super::tests::{DATIME, run, small, write};
    use super::super::super::{Object, RecordKind, list_objects, read_header, walk_keys};
    use super::*;

    fn names(file: &[u8]) -> Vec<String> {
        let name = |object: Object| format!("{};{}", object.path, object.key.cycle);
        run(file, list_objects).unwrap().into_iter().map(name).collect()
    }

    fn offsets(file: &[u8], wanted: impl Fn(&str) -> bool) -> BTreeSet<u64> {
        let objects = run(file, list_objects).unwrap().into_iter();
        objects.filter(|it| wanted(&format!("{};{}", it.path, it.key.cycle))).map(|it| it.key.seek_key).collect()
    }

    /// The file after a state without the objects, and one that lists them as free.
    fn without(file: &[u8], offsets: &BTreeSet<u64>) -> Vec<u8> {
        let mut file = file.to_vec();
        let mut layout = run(&file, |fetched| FileLayout::update(fetched, DATIME)).unwrap();
        layout.remove_at(offsets).unwrap();
        for _ in 0..2 {
            let tail = layout.finish(file.len() as u64).unwrap();
            write(&mut file, tail);
            run(&file, |fetched| FileLayout::update(fetched, DATIME)).unwrap();
        }
        file
    }

    #[test]
    fn directories_go_with_everything_in_them() {
        let file = small();
        let directory = offsets(&file, |name| name == "a;1");
        let records = run(&file, walk_keys).unwrap();
        let after = without(&file, &directory);
        assert_eq!(names(&after), ["n;1"]);
        assert_eq!(run(&after, read_header).unwrap().end, after.len() as u64);
        let walked = run(&after, walk_keys).unwrap();
        let free = |offset: u64| {
            let holds = |it: &crate::container::Record| (it.offset..it.offset + it.nbytes).contains(&offset);
            walked.iter().any(|it| it.kind == RecordKind::Gap && holds(it))
        };
        // Both directories with their key lists, and both cycles.
        let in_directories = records.iter().filter(|record| match &record.kind {
            RecordKind::Key(key) => ["a", "b"].contains(&key.name.as_str()) || key.title == "one" || key.title == "two",
            RecordKind::Gap => false,
        });
        let freed: Vec<bool> = in_directories.map(|record| free(record.offset)).collect();
        assert_eq!(freed, [true; 6]);
        let kept = offsets(&after, |name| name == "n;1");
        assert!(kept.iter().all(|&offset| !free(offset)));
    }

    #[test]
    fn one_cycle_goes_and_the_other_stays() {
        let file = small();
        let after = without(&file, &offsets(&file, |name| name == "a/b/n;2"));
        assert_eq!(names(&after), ["n;1", "a;1", "a/b;1", "a/b/n;1"]);
        let empty = without(&after, &offsets(&after, |name| name.ends_with("n;1")));
        assert_eq!(names(&empty), ["a;1", "a/b;1"]);
        // A new directory of the name of a removed one.
        let mut layout = run(&empty, |fetched| FileLayout::update(fetched, DATIME)).unwrap();
        layout.remove_at(&offsets(&empty, |name| name == "a;1")).unwrap();
        assert!(!layout.has_directory("a") && !layout.has("a"));
        assert!(layout.add_directory("a/c", Some("a title")).unwrap() && layout.has_directory("a/c"));
        let mut file = empty;
        let tail = layout.finish(file.len() as u64).unwrap();
        write(&mut file, tail);
        let listed = run(&file, list_objects).unwrap();
        assert_eq!(
            (names(&file), listed[1].key.title.as_str()),
            (vec!["a;1".to_owned(), "a/c;1".to_owned()], "a title")
        );
    }

    #[test]
    fn records_that_no_directory_lists_are_refused() {
        let file = small();
        let mut layout = run(&file, |fetched| FileLayout::update(fetched, DATIME)).unwrap();
        let error = layout.remove_at(&BTreeSet::from([7])).unwrap_err();
        assert_eq!(error.what(), "expected an object at byte 7, but no directory lists one");
        assert!(layout.has("a/b/n"));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Whatever is removed, the others stay, and the file can be changed again.
        #[test]
        fn the_others_stay(chosen in proptest::collection::vec(any::<bool>(), 5)) {
            let file = small();
            let all = run(&file, list_objects).unwrap();
            let is_chosen = |path: &str| all.iter().zip(&chosen).any(|(it, &chosen)| {
                chosen && it.path == path && it.key.is_directory()
            });
            let removed = all.iter().zip(&chosen).filter(|(_, chosen)| **chosen);
            let removed = removed.map(|(it, _)| it.key.seek_key).collect();
            let kept = all.iter().zip(&chosen).filter(|(it, chosen)| {
                !**chosen && !it.path.match_indices('/').any(|(end, _)| is_chosen(&it.path[..end]))
            });
            let expected: Vec<String> = kept.map(|(it, _)| format!("{};{}", it.path, it.key.cycle)).collect();
            prop_assert_eq!(names(&without(&file, &removed)), expected);
        }
    }
}
