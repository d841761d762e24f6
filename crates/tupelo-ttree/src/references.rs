//! References between the objects of an entry. They count from where the entry was in its basket when it was written, so that
//! entries in other baskets need other ones (`TBufferFile::ReadObjectAny`, `TBuffer::SetBufferDisplacement`).

use std::ops::Range;

use tupelo_format::object::{Entry, EntryForm};
use tupelo_format::streamer::StreamerInfos;
use tupelo_format::wire::Memory;
use tupelo_format::{ErrorKind, Result};

use crate::basket::{Basket, shift_references};
use crate::classes::Classes;
use crate::layout::form_of;
use crate::tree::Branch;

/// Finds the references in the entries of a branch.
#[derive(Debug)]
pub struct References<'a> {
    form: Result<EntryForm<'a>>,
    infos: &'a StreamerInfos,
}

impl<'a> References<'a> {
    /// Those of a branch.
    pub fn of<'i: 'a>(branch: &'a Branch, classes: &Classes<'i>) -> Self {
        Self { form: form_of(branch, classes), infos: classes.infos() }
    }

    /// Where references are in the bytes of an entry that was written at an origin: words of four bytes, ascending.
    ///
    /// # Errors
    /// Unsupported, corrupt, limit or memory if the entry, or a part of it, cannot be read, and for references to what is
    /// outside of it.
    pub fn find(&self, bytes: &[u8], origin: usize, memory: &Memory) -> Result<Vec<usize>> {
        Entry { bytes, origin, infos: self.infos, memory }.references(self.form.clone()?)
    }

    /// The values of a basket, with the references in some of its entries counting from the start of each. Entries that cannot
    /// be read stay as they are.
    ///
    /// # Errors
    /// Memory if reading the entries takes more than is left.
    pub fn detached(&self, basket: &Basket<'_>, entries: Range<usize>, memory: &Memory) -> Result<Vec<u8>> {
        let mut data = basket.data.to_vec();
        for index in entries {
            let (Some(range), Some(origin)) = (basket.entry(index), basket.origin(index)) else { continue };
            let Some(entry) = data.get_mut(range) else { continue };
            match self.find(entry, origin, memory) {
                Ok(places) => shift_references(entry, places, (origin as u32).wrapping_neg()),
                Err(error) if error.kind() == ErrorKind::Memory => return Err(error),
                Err(_) => {}
            }
        }
        Ok(data)
    }
}

#[cfg(test)]
mod tests {
    use tupelo_format::Error;
    use tupelo_format::wire::Buffer;

    use crate::basket::{BasketHead, StoredEntries};
    use crate::write::OpenBasket;

    /// A basket of entries, each a word that refers to a place four bytes behind the start of the entry, which was at `origin`
    /// when it was written, and a text.
    fn stored(entries: &[(u32, &str)], origins: Option<&[u32]>) -> StoredEntries {
        let mut key = OpenBasket::of_stored("t", "b").unwrap().finish().head(0, "t", "b", 0, 0).unwrap();
        let key_bytes = key.len() as u32;
        let (mut object, mut positions) = (Buffer::new(), Vec::new());
        for (origin, text) in entries {
            positions.push(object.len() as u32 + key_bytes);
            object.u32_be(origin + 4);
            object.put(text.as_bytes());
        }
        let last = object.len() as u32 + key_bytes;
        for places in [Some(positions.as_slice()), origins].into_iter().flatten() {
            object.u32_be(places.len() as u32 + 1);
            places.iter().for_each(|place| object.u32_be(*place));
            object.u32_be(0);
        }
        let object = object.into_vec();
        key[..4].copy_from_slice(&(key_bytes + object.len() as u32).to_be_bytes());
        key[6..10].copy_from_slice(&(object.len() as u32).to_be_bytes());
        let end = key.len() - 1;
        for (number, place) in [(entries.len() as u32, end - 8), (last, end - 4)] {
            key[place..place + 4].copy_from_slice(&number.to_be_bytes());
        }
        StoredEntries::of_record(BasketHead::read(&key, 0).unwrap(), &object).unwrap()
    }

    /// Moves all entries but the first to another basket. Returns each with its origin.
    fn moved(stored: &StoredEntries) -> Vec<(Vec<u8>, usize)> {
        let mut open = OpenBasket::of_stored("t", "b").unwrap();
        let all = stored.entries();
        assert_eq!(open.append_stored(stored, 1..all, 32_000).unwrap(), (all - 1, false));
        let finished = open.finish();
        let key = finished.head(100, "t", "b", finished.object.len(), 0).unwrap();
        let record = [key.as_slice(), &finished.object].concat();
        let basket = BasketHead::read(&record, 100).unwrap().open(&finished.object).unwrap();
        let entry = |index| (basket.data[basket.entry(index).unwrap()].to_vec(), basket.origin(index).unwrap());
        (0..all - 1).map(entry).collect()
    }

    #[test]
    fn references_fit_the_basket_that_an_entry_is_moved_to() {
        let key_bytes = OpenBasket::of_stored("t", "b").unwrap().finish().key_bytes.into();
        let target = |entry: &[u8]| u32::from_be_bytes(*entry.first_chunk().unwrap()) as usize;
        // In the basket in which they were written, and in one to which they were moved.
        let own = [(key_bytes, "first"), (key_bytes + 9, "second"), (key_bytes + 19, "3")];
        let elsewhere = [(500, "first"), (700, "second"), (900, "3")];
        for (entries, origins) in [(own, None), (elsewhere, Some([500, 700, 900]))] {
            let mut entries = stored(&entries, origins.as_ref().map(<[u32; 3]>::as_slice));
            let found = entries.find_references(|bytes, origin| {
                assert_eq!(target(bytes), origin + 4);
                Ok(vec![0])
            });
            found.unwrap();
            let all = moved(&entries);
            assert_eq!(all.iter().map(|(entry, _)| &entry[4..]).collect::<Vec<_>>(), [&b"second"[..], b"3"]);
            assert_eq!(all.iter().map(|(_, origin)| *origin as u32).collect::<Vec<_>>(), [key_bytes, key_bytes + 10]);
            assert!(all.iter().all(|(entry, origin)| target(entry) == origin + 4), "{all:?}");
        }
    }

    #[test]
    fn entries_that_cannot_be_read_are_moved_if_they_name_no_class() {
        let refused = |_: &[u8], _| Err(Error::unsupported("a class"));
        let mut unread = stored(&[(1, "first"), (2, "second")], None);
        unread.find_references(refused).unwrap();
        assert_eq!(moved(&unread)[0].0, [&6_u32.to_be_bytes()[..], b"second"].concat());
        // An object behind a pointer: others may refer to it.
        let mut named = stored(&[(1, "first"), (u32::MAX - 4, "TNamed")], None);
        assert_eq!(named.find_references(refused).unwrap_err().to_string(), "a class");
    }
}
