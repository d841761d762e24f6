//! Writing trees with the baskets of other trees as they are stored, as `hadd` and `TTree::CloneTree` do with "fast".

use std::ops::{ControlFlow, Range};

use bytes::Bytes;
use tupelo_format::compression::{self, Compression};
use tupelo_format::streamer::StreamerInfos;
use tupelo_ttree::basket::BasketHead;
use tupelo_ttree::moved::{MovableTree, MovedBasket, MovedTree};
use tupelo_ttree::tree::Stored;
use tupelo_ttree::write::BasketPlace;
use tupelo_ttree::{Branch, streamer};

use super::super::WriteProgress;
use super::MoveOptions;
use super::index::IndexOfTrees;
use super::options::codec_of;
use super::process_ids;
use crate::pool::{self, Ahead};
use crate::reader::Tree;
use crate::sink::{FileSink, PageSink, Target, name_of};
use crate::source::{BlobRange, TreeSource, check_record};
use crate::{Error, Result};

/// Bytes of baskets that are read together from storage that is read in place, and from other storage.
const GROUP_BYTES: [u64; 2] = [1 << 20, 16 << 20];

/// Writes one tree that has the entries of other trees, one after the other. Their baskets are neither decoded nor, without
/// another codec, decompressed. It must be finished before its file can be.
#[derive(Debug)]
pub struct MovedTreeWriter {
    pub(super) sink: FileSink,
    path: String,
    pub(super) options: MoveOptions,
    first: Option<MovableTree>,
    pub(super) new: MovedTree,
    pub(super) clusters: u64,
    /// Entries of the trees so far, left out ones included.
    seen_entries: u64,
    /// Entries that were moved to other baskets.
    pub(super) moved_entries: u64,
    index: IndexOfTrees,
    has_references: bool,
    /// Branches that are left out of the last tree.
    pub(super) unmovable: Vec<String>,
    /// Why nothing more can be written.
    closed: Option<String>,
}

/// A basket of the tree that is appended.
struct Basket {
    branch: usize,
    /// Its number in the branch of that tree.
    number: usize,
    entries: Range<u64>,
    /// The codec of its branch.
    codec: Compression,
    /// Its record; `None` if it is in the record of the tree.
    range: Option<BlobRange>,
    stored: Stored,
}

/// What identifies the branch of a basket, in a tree whose branches may have other numbers than those of its file.
struct Named {
    path: String,
    name: String,
    file_name: String,
}

/// A basket on its way: its key and head, its payload, and bytes before compression.
struct Moving {
    branch: usize,
    number: usize,
    first_entry: u64,
    basket: MovedBasket,
    payload: Bytes,
    object_bytes: u32,
    codec: Compression,
}

impl MovedTreeWriter {
    pub(in crate::writer) fn create(target: &dyn Target, path: &str, options: MoveOptions) -> Result<Self> {
        let name = name_of(path);
        if name.is_empty() || name.contains(';') {
            return Err(Error::invalid_argument(format!("'{path}' is not a valid name for a tree")));
        }
        let mut new = MovedTree::new(name, options.compression().map(Compression::setting));
        new.basket_bytes = options.basket_bytes();
        let sink = target.file()?.for_object();
        Ok(Self {
            sink,
            path: path.to_owned(),
            options,
            first: None,
            new,
            clusters: 0,
            seen_entries: 0,
            moved_entries: 0,
            index: IndexOfTrees::default(),
            has_references: false,
            unmovable: Vec::new(),
            closed: None,
        })
    }

    /// Appends all entries of a tree. `progress` receives the stored bytes that are done, and may end the work: the result
    /// is then false, and the tree can only be abandoned.
    ///
    /// # Errors
    /// Invalid argument for a tree with other branches than the first one; unsupported, with the reason, for one whose
    /// baskets cannot be moved; those of reading and writing. After any of them the tree can only be abandoned.
    pub fn append(&mut self, tree: &Tree, progress: &mut dyn FnMut(u64) -> ControlFlow<()>) -> Result<bool> {
        self.append_movable(tree, tree.source().movable(), progress)
    }

    /// The same, with what [`TreeSource::movable`] returned.
    ///
    /// # Errors
    /// As [`append`](Self::append).
    pub(crate) fn append_movable(
        &mut self,
        tree: &Tree,
        movable: Result<(MovableTree, StreamerInfos)>,
        progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<bool> {
        self.check_open().map_err(|error| self.context(error))?;
        self.try_append(tree, movable, progress).inspect_err(|error| {
            self.closed.get_or_insert_with(|| format!("an earlier write failed ({error})"));
            self.sink.reported();
        })
    }

    /// What of the trees so far is not in the new one.
    pub fn left_out(&self) -> Vec<String> {
        let index = self.index.left_out().filter(|_| !self.new.keeps_index());
        let references = self.has_references.then(|| "its table of references between objects (TRef)".to_owned());
        let parts = index.into_iter().chain(references);
        let branch = |path: &String| format!("branch '{path}', whose baskets cannot be divided");
        parts.chain(self.unmovable.iter().map(branch)).collect()
    }

    /// Writes the tree itself, which becomes visible when its file is finished.
    ///
    /// # Errors
    /// Invalid argument without any tree; storage errors, or an error if an earlier call failed; limit for a tree whose
    /// record is longer than 1 GiB.
    pub fn finish(&mut self) -> Result<WriteProgress> {
        let finished = self.check_open().and_then(|()| self.try_finish());
        finished.map_err(|error| self.context(error))
    }

    /// Abandons the tree: its name is free again. Other objects of the file are not affected.
    ///
    /// # Errors
    /// Invalid argument in a process other than the one that began the tree.
    pub fn abandon(self) -> Result<()> {
        self.sink.abandon(&self.path).map_err(|error| self.context(error))
    }

    fn check_open(&self) -> Result<()> {
        match &self.closed {
            Some(why) => Err(Error::invalid_argument(format!("{why}, so nothing more can be written"))),
            None => self.sink.check_open(),
        }
    }

    fn try_append(
        &mut self,
        tree: &Tree,
        movable: Result<(MovableTree, StreamerInfos)>,
        progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<bool> {
        let source = tree.source();
        let (mut movable, infos) = movable.map_err(|error| tree.context(error))?;
        let chosen = self.options.choose(&mut movable, &infos).and_then(|()| Ok(movable.check()?));
        chosen.map_err(|error| tree.context(error))?;
        if self.options.recuts() {
            self.choose_movable(tree, &mut movable).map_err(|error| tree.context(error))?;
        }
        match &self.first {
            None => {
                let record = &movable.tree;
                let begun = self.sink.begin_object(&self.path, &record.class_name, &record.title);
                begun.map_err(|error| self.context(error))?;
                self.new.branches = vec![Default::default(); record.branches.len()];
                let codecs = self.options.codecs(&movable).map_err(|error| tree.context(error))?;
                for (new, codec) in self.new.branches.iter_mut().zip(codecs) {
                    new.compression = codec.map(Compression::setting);
                }
                self.new.limits = movable.limits();
            }
            Some(first) => {
                let arranged = movable.arrange_like(first);
                arranged.and_then(|()| self.new.limits.append(&movable.limits())).map_err(|what| {
                    tree.context(Error::invalid_argument(format!("does not fit the first tree: {what}")))
                })?;
            }
        }
        // ROOT reads its own classes with its own layouts, whatever a file says of them. Others take those of the file.
        let own = streamer::classes(|name| infos.named(name).next().is_some());
        for infos in [&own, &infos] {
            self.sink.add_streamer_info(infos).map_err(|error| self.context(error))?;
        }
        let process_offset = process_ids::carry(source.file(), &self.sink).map_err(|error| tree.context(error))?;
        self.has_references |= movable.has_references();
        let chosen = self.options.entries_of(self.seen_entries, tree.entries());
        let (base, places) = (self.new.entries, chosen.places());
        // One without entries has no values for an index, but the record of the first one has its place.
        if tree.entries() > 0 || self.first.is_none() {
            self.index.append(Some(&movable), |entry| Some(base + places(entry)?));
        }
        self.seen_entries += tree.entries();
        let is_done = match self.options.recuts() {
            true => self.recut(tree, &movable, &chosen, process_offset, progress)?,
            false => self.move_baskets(tree, &movable, process_offset, progress)?,
        };
        match &self.first {
            None => self.first = Some(movable),
            // Freeing its objects takes a millisecond.
            Some(_) => drop(pool::spawn(move || drop(movable))),
        }
        Ok(is_done)
    }

    /// Moves all baskets of a tree as they are; false if `progress` ended the work.
    fn move_baskets(
        &mut self,
        tree: &Tree,
        movable: &MovableTree,
        process_offset: u16,
        progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<bool> {
        let source = tree.source();
        let base = self.new.entries;
        let mut slots: Vec<Vec<Option<BasketPlace>>> =
            movable.tree.branches.iter().map(|branch| vec![None; branch.baskets.len()]).collect();
        let mut done = 0;
        let codecs = self.options.codecs(movable).map_err(|error| tree.context(error))?;
        let from = tree.clone();
        let named = |(index, branch): (usize, &Branch)| Named {
            path: movable.tree.path(index),
            name: branch.name.clone(),
            file_name: branch.file_name.clone(),
        };
        let names: Vec<Named> = movable.tree.branches.iter().enumerate().map(named).collect();
        let groups = groups(movable, source).map_err(|error| tree.context(error))?;
        let read = move |group: Vec<Basket>| read(&from, &group, &names, &codecs).map_err(|error| from.context(error));
        for moving in Ahead::new(groups.into_iter(), read) {
            let mut moving = moving?;
            moving.iter_mut().try_for_each(|it| it.basket.add_process_offset(process_offset))?;
            let put = self.put(moving, base).map_err(|error| self.context(error))?;
            for (branch, number, place) in put {
                done += u64::from(place.bytes);
                if let Some(slot) = slots.get_mut(branch).and_then(|slots| slots.get_mut(number)) {
                    *slot = Some(place);
                }
            }
            if progress(done).is_break() {
                return Ok(false);
            }
        }
        for (new, (slots, branch)) in self.new.branches.iter_mut().zip(slots.into_iter().zip(&movable.tree.branches)) {
            new.baskets.extend(slots.into_iter().flatten());
            new.entries += branch.entries;
        }
        self.new.append(&movable.tree);
        self.clusters += source.cluster_count() as u64;
        Ok(true)
    }

    /// Writes baskets; returns the branch, the number and the place of each.
    fn put(&mut self, moving: Vec<Moving>, base: u64) -> Result<Vec<(usize, usize, BasketPlace)>> {
        // ROOT's own limit is lower than that of the key, so that there is room for other writers.
        let end = self.sink.position()? + u64::from(u32::MAX >> 4);
        let fitting = |it: Moving| if it.basket.fits(end) { Ok(it) } else { with_big_key(it) };
        let moving: Vec<Moving> = moving.into_iter().map(fitting).collect::<Result<_>>()?;
        let payloads: Vec<&[u8]> = moving.iter().map(|it| &it.payload[..]).collect();
        let head = |number: usize, at, _| {
            let basket = moving.get(number).zip(payloads.get(number));
            Ok(basket.map(|(it, payload)| it.basket.head(at, payload.len())).unwrap_or_default())
        };
        let offsets = self.sink.put_records(&payloads, head)?;
        let place = |(it, offset): (&Moving, u64)| {
            let key_bytes = it.basket.key_bytes() as u64;
            let bytes = key_bytes + it.payload.len() as u64;
            if let Some(new) = self.new.branches.get_mut(it.branch) {
                new.bytes[0] += key_bytes + u64::from(it.object_bytes);
                new.bytes[1] += bytes;
            }
            let bytes =
                u32::try_from(bytes).map_err(|_| Error::limit(format!("basket of {bytes} bytes is too long")))?;
            Ok((it.branch, it.number, BasketPlace { first_entry: base + it.first_entry, offset, bytes }))
        };
        moving.iter().zip(offsets).map(place).collect()
    }

    fn try_finish(&mut self) -> Result<WriteProgress> {
        let first = self.first.as_ref().ok_or_else(|| Error::invalid_argument("no tree was appended"))?;
        if self.options.recuts() {
            self.new.end_clusters();
        }
        if !self.new.keeps_index() {
            self.new.index = self.index.get().cloned();
        }
        let names = [first.tree.class_name.as_str(), &first.tree.title];
        // The record is a small part of the file: higher levels save little, but take several percent of the time.
        let fastest = || first.tree.branches.first().map_or(Compression::DEFAULT, codec_of).fastest();
        let compression = self.options.compression().unwrap_or_else(fastest);
        self.sink.publish_object(&self.path, names, |key_bytes| first.write(key_bytes, &self.new), compression)?;
        self.sink.end(&self.path);
        self.closed = Some("the tree is finished".to_owned());
        let bytes = |which: usize| self.new.branches.iter().filter_map(|it| it.bytes.get(which)).sum();
        let (entries, clusters) = (self.new.entries, self.clusters);
        Ok(WriteProgress { entries, clusters, unpacked_bytes: bytes(0), stored_bytes: bytes(1) })
    }

    #[cold]
    pub(super) fn context(&self, error: Error) -> Error {
        error.in_object("tree", &self.path).in_file(self.sink.name())
    }
}

/// Reads baskets. Those that get another codec are compressed again, and those of the tree's own record for the first time.
fn read(tree: &Tree, group: &[Basket], names: &[Named], codecs: &[Option<Compression>]) -> Result<Vec<Moving>> {
    let source = tree.source();
    let ranges: Vec<BlobRange> = group.iter().filter_map(|basket| basket.range).collect();
    let total = ranges.iter().map(BlobRange::bytes).sum();
    let _reserved = source.session().budget().reserve(total, "baskets")?;
    let mut records = source.fetch(&ranges)?.into_iter();
    let mut moving = Vec::with_capacity(group.len());
    for basket in group {
        let branch = names.get(basket.branch);
        let of_file = |record: Bytes, offset: u64| {
            if let Some(branch) = branch {
                check_record([&branch.file_name, &branch.name], &record, offset)?;
            }
            of_record(basket, &record, offset)
        };
        let read = match &basket.stored {
            Stored::InFile { offset, .. } => records.next().map(|record| of_file(record, *offset)),
            Stored::Embedded(bytes) => Some(of_embedded(basket, bytes)),
        };
        let named = |error: Error| {
            let path = branch.map_or("", |branch| branch.path.as_str());
            error.within(format!("basket {}", basket.number)).within(format!("branch '{path}'"))
        };
        moving.extend(read.transpose().map_err(named)?);
    }
    let new_codec = |moving: &Moving| {
        let chosen = codecs.get(moving.branch).copied().flatten();
        chosen.or(moving.basket.was_embedded().then_some(moving.codec))
    };
    // Passing a basket to another thread costs more than moving it as it is.
    match moving.iter().any(|it| new_codec(it).is_some()) {
        true => pool::map(moving, total, |moving| sealed(new_codec(&moving), moving)),
        false => Ok(moving),
    }
}

/// The basket with a key that holds places behind 2 GiB.
fn with_big_key(moving: Moving) -> Result<Moving> {
    let mut object = vec![0; moving.object_bytes as usize];
    compression::decompress_into(&moving.payload, &mut object)?;
    let (basket, object) = moving.basket.with_big_key(&object)?;
    let mut packed = Vec::new();
    compression::compress(moving.codec, &object, &mut packed)?;
    Ok(Moving { basket, payload: packed.into(), ..moving })
}

/// The baskets of a tree in the order in which they are stored, in groups.
fn groups(tree: &MovableTree, source: &TreeSource) -> Result<Vec<Vec<Basket>>> {
    let mut all = Vec::new();
    for (index, branch) in tree.tree.branches.iter().enumerate().filter(|(index, _)| tree.is_kept(*index)) {
        let named = |error: Error| error.within(format!("branch '{}'", tree.tree.path(index)));
        source.open_other(branch).map_err(named)?;
        for (number, place) in branch.baskets.iter().enumerate().filter(|(_, place)| !place.entries.is_empty()) {
            let range = source.range(branch, number);
            let range = range.map_err(|error| named(error.within(format!("basket {number}"))))?;
            let (entries, stored) = (place.entries.clone(), place.stored.clone());
            all.push(Basket { branch: index, number, entries, codec: codec_of(branch), range, stored });
        }
    }
    all.sort_by_key(|basket| (basket.range.is_none(), basket.range));
    let is_in_place = all.iter().filter_map(|basket| basket.range).all(|range| source.is_read_in_place(&range));
    let group_bytes = GROUP_BYTES[usize::from(!is_in_place)];
    let (mut groups, mut group, mut bytes) = (Vec::new(), Vec::new(), 0);
    for basket in all {
        let own = basket.stored.bytes();
        if bytes + own > group_bytes && !group.is_empty() {
            groups.push(std::mem::take(&mut group));
            bytes = 0;
        }
        bytes += own;
        group.push(basket);
    }
    groups.push(group);
    Ok(groups)
}

fn of_record(place: &Basket, record: &Bytes, offset: u64) -> Result<Moving> {
    let head = BasketHead::read(record, offset)?;
    let key_bytes = usize::from(head.key_bytes);
    let is_whole = head.stored_bytes as usize == record.len() && key_bytes <= record.len();
    if !is_whole || u64::from(head.entries) != place.entries.end - place.entries.start {
        let what = format!("found {} entries in {} bytes, expected others", head.entries, head.stored_bytes);
        return Err(Error::corrupt(what));
    }
    Ok(Moving {
        branch: place.branch,
        number: place.number,
        first_entry: place.entries.start,
        basket: MovedBasket::of_record(head, &record[..key_bytes]),
        payload: record.slice(key_bytes..),
        object_bytes: head.object_bytes,
        codec: place.codec,
    })
}

fn of_embedded(place: &Basket, bytes: &[u8]) -> Result<Moving> {
    let (basket, object) = MovedBasket::of_embedded(bytes)?;
    let object_bytes = u32::try_from(object.len()).map_err(|_| Error::limit("basket exceeds 4 GiB"))?;
    Ok(Moving {
        branch: place.branch,
        number: place.number,
        first_entry: place.entries.start,
        basket,
        payload: object.into(),
        object_bytes,
        codec: place.codec,
    })
}

/// The basket with its payload in a codec, or as it is.
fn sealed(codec: Option<Compression>, moving: Moving) -> Result<Moving> {
    pool::check()?;
    let Some(codec) = codec else { return Ok(moving) };
    let mut object = vec![0; moving.object_bytes as usize];
    compression::decompress_into(&moving.payload, &mut object)?;
    let mut packed = Vec::new();
    compression::compress(codec, &object, &mut packed)?;
    Ok(Moving { payload: packed.into(), codec, ..moving })
}
