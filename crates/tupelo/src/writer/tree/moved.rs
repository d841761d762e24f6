//! Writing trees with the baskets of other trees as they are stored, as `hadd` and `TTree::CloneTree` do with "fast".

use std::borrow::Cow;
use std::ops::{ControlFlow, Range};

use tupelo_core::pool::{self, Ahead};
use tupelo_format::compression::{self, Compression};
use tupelo_format::streamer::StreamerInfos;
use tupelo_pages::sink::{FileSink, PageSink, Target, name_of};
use tupelo_pages::source::{BlobRange, TreeSource, check_record};
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
use crate::reader::Tree;
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
    /// Whether references between its objects may count from where an entry is.
    is_placed: bool,
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

/// Baskets on their way, and their records, one after the other.
struct Group {
    baskets: Vec<Moving>,
    records: Vec<u8>,
}

/// A basket on its way, and bytes of its values before compression.
struct Moving {
    branch: usize,
    number: usize,
    first_entry: u64,
    basket: MovedBasket,
    record_bytes: usize,
    object_bytes: u32,
    codec: Compression,
    is_placed: bool,
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
        index.into_iter().chain(references).collect()
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
        // ROOT reads its own classes with its own layouts, whatever a file says of them. Others take those of the file, which
        // may contradict those of the same version.
        let own = streamer::classes(|name, version| {
            infos.named(name).next().is_some() && infos.named(name).all(|info| info.version != version)
        });
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
        for group in Ahead::new(groups.into_iter(), read) {
            let mut group = group?;
            group.baskets.iter_mut().try_for_each(|it| it.basket.add_process_offset(process_offset))?;
            let put = self.put(group, base).map_err(|error| self.context(error))?;
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
    fn put(&mut self, mut group: Group, base: u64) -> Result<Vec<(usize, usize, BasketPlace)>> {
        // ROOT's own limit is lower than that of the key, so that there is room for other writers.
        let end = self.sink.position()? + u64::from(u32::MAX >> 4);
        if !group.baskets.iter().all(|it| it.basket.fits(end)) {
            group = group.changed(|moving, record| match moving.basket.fits(end) {
                true => Ok((moving, record.into())),
                false => with_big_key(moving, record),
            })?;
        }
        let Group { baskets, mut records } = group;
        let mut offset = self.sink.put_placed(&mut records, |mut at, mut records| {
            for it in &baskets {
                let Some((record, rest)) = records.split_at_mut_checked(it.record_bytes) else { break };
                it.basket.place(record, at);
                (at, records) = (at + it.record_bytes as u64, rest);
            }
        })?;
        let place = |it: Moving| {
            let bytes = it.record_bytes as u64;
            if let Some(new) = self.new.branches.get_mut(it.branch) {
                new.bytes[0] += it.basket.key_bytes() as u64 + u64::from(it.object_bytes);
                new.bytes[1] += bytes;
            }
            let bytes =
                u32::try_from(bytes).map_err(|_| Error::limit(format!("basket of {bytes} bytes is too long")))?;
            let place = BasketPlace { first_entry: base + it.first_entry, offset, bytes };
            offset += u64::from(bytes);
            Ok((it.branch, it.number, place))
        };
        baskets.into_iter().map(place).collect()
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
        Ok(WriteProgress { entries, entries_before: 0, clusters, unpacked_bytes: bytes(0), stored_bytes: bytes(1) })
    }

    #[cold]
    pub(super) fn context(&self, error: Error) -> Error {
        error.in_object("tree", &self.path).in_file(self.sink.name())
    }
}

impl Group {
    /// The same with other records.
    fn changed(self, change: impl Fn(Moving, &[u8]) -> Result<(Moving, Cow<'_, [u8]>)> + Sync) -> Result<Self> {
        let mut rest = self.records.as_slice();
        let record = |moving: Moving| {
            let (record, next) = rest.split_at_checked(moving.record_bytes).unwrap_or((rest, &[]));
            rest = next;
            (moving, record)
        };
        let given: Vec<(Moving, &[u8])> = self.baskets.into_iter().map(record).collect();
        let changed = pool::map(given, self.records.len() as u64, |(moving, record)| change(moving, record))?;
        let (mut baskets, mut records) = (Vec::with_capacity(changed.len()), Vec::new());
        for (moving, record) in changed {
            records.extend_from_slice(&record);
            baskets.push(Moving { record_bytes: record.len(), ..moving });
        }
        Ok(Self { baskets, records })
    }
}

/// Reads baskets. Those that get another codec are compressed again, and those of the tree's own record for the first time.
fn read(tree: &Tree, group: &[Basket], names: &[Named], codecs: &[Option<Compression>]) -> Result<Group> {
    let source = tree.source();
    let ranges: Vec<BlobRange> = group.iter().filter_map(|basket| basket.range).collect();
    let total = ranges.iter().map(BlobRange::bytes).sum();
    let _reserved = source.session().budget().reserve(total, "baskets")?;
    // Baskets of the tree's own record are behind those of the file.
    let mut records = source.fetch_joined(&ranges)?;
    let (mut baskets, mut at) = (Vec::with_capacity(group.len()), 0);
    for basket in group {
        let branch = names.get(basket.branch);
        let of_file = |record: &[u8], offset: u64| {
            if let Some(branch) = branch {
                check_record([&branch.file_name, &branch.name], record, offset)?;
            }
            of_record(basket, record, offset)
        };
        let read = match &basket.stored {
            Stored::InFile { offset, bytes } => {
                of_file(records.get(at..at + *bytes as usize).unwrap_or_default(), *offset)
            }
            Stored::Embedded(bytes) => of_embedded(basket, bytes, &mut records),
        };
        let named = |error: Error| {
            let path = branch.map_or("", |branch| branch.path.as_str());
            error.within(format!("basket {}", basket.number)).within(format!("branch '{path}'"))
        };
        let moving = read.map_err(named)?;
        at += moving.record_bytes;
        baskets.push(moving);
    }
    let new_codec = |moving: &Moving| {
        let chosen = codecs.get(moving.branch).copied().flatten();
        chosen.or(moving.basket.was_embedded().then_some(moving.codec))
    };
    let group = Group { baskets, records };
    if group.baskets.iter().all(|it| new_codec(it).is_none()) {
        return Ok(group);
    }
    group.changed(|moving, record| match new_codec(&moving) {
        Some(codec) => recoded(codec, moving, record),
        None => Ok((moving, record.into())),
    })
}

/// The basket with a key that holds places behind 2 GiB.
fn with_big_key<'a>(moving: Moving, record: &[u8]) -> Result<(Moving, Cow<'a, [u8]>)> {
    let (basket, record) = moving.basket.with_big_key(&unpacked(&moving, record)?, moving.is_placed)?;
    let record = packed(moving.codec, basket, &record)?;
    Ok((Moving { basket, ..moving }, record.into()))
}

/// The basket in another codec.
fn recoded<'a>(codec: Compression, moving: Moving, record: &[u8]) -> Result<(Moving, Cow<'a, [u8]>)> {
    let record = packed(codec, moving.basket, &unpacked(&moving, record)?)?;
    Ok((Moving { codec, ..moving }, record.into()))
}

/// The record of a basket without its codec.
fn unpacked(moving: &Moving, record: &[u8]) -> Result<Vec<u8>> {
    let (head, payload) = record.split_at_checked(moving.basket.key_bytes()).unwrap_or((record, &[]));
    let mut unpacked = vec![0; head.len() + moving.object_bytes as usize];
    let (new_head, object) = unpacked.split_at_mut(head.len());
    new_head.copy_from_slice(head);
    compression::decompress_into(payload, object)?;
    Ok(unpacked)
}

/// A record in a codec.
fn packed(codec: Compression, basket: MovedBasket, record: &[u8]) -> Result<Vec<u8>> {
    let (head, object) = record.split_at_checked(basket.key_bytes()).unwrap_or((record, &[]));
    let mut packed = head.to_vec();
    compression::compress(codec, object, &mut packed)?;
    Ok(packed)
}

/// The baskets of a tree in the order in which they are stored, in groups.
fn groups(tree: &MovableTree, source: &TreeSource) -> Result<Vec<Vec<Basket>>> {
    let mut all = Vec::new();
    for (index, branch) in tree.tree.branches.iter().enumerate().filter(|(index, _)| tree.is_kept(*index)) {
        let named = |error: Error| error.within(format!("branch '{}'", tree.tree.path(index)));
        source.open_other(branch).map_err(named)?;
        let (codec, is_placed) = (codec_of(branch), tree.is_placed(index));
        for (number, place) in branch.baskets.iter().enumerate().filter(|(_, place)| !place.entries.is_empty()) {
            let range = source.range(branch, number);
            let range = range.map_err(|error| named(error.within(format!("basket {number}"))))?;
            let (entries, stored) = (place.entries.clone(), place.stored.clone());
            all.push(Basket { branch: index, number, entries, codec, is_placed, range, stored });
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

fn of_record(place: &Basket, record: &[u8], offset: u64) -> Result<Moving> {
    let head = BasketHead::read(record, offset)?;
    let is_whole = head.stored_bytes as usize == record.len() && usize::from(head.key_bytes) <= record.len();
    if !is_whole || u64::from(head.entries) != place.entries.end - place.entries.start {
        let what = format!("found {} entries in {} bytes, expected others", head.entries, head.stored_bytes);
        return Err(Error::corrupt(what));
    }
    let object_bytes = head.object_bytes;
    Ok(moving(place, MovedBasket::of_record(head, record), record.len(), object_bytes))
}

/// Appends the record that an embedded basket has without a codec.
fn of_embedded(place: &Basket, bytes: &[u8], records: &mut Vec<u8>) -> Result<Moving> {
    let (basket, record) = MovedBasket::of_embedded(bytes)?;
    let object_bytes = record.len() - basket.key_bytes();
    let object_bytes = u32::try_from(object_bytes).map_err(|_| Error::limit("basket exceeds 4 GiB"))?;
    records.extend_from_slice(&record);
    Ok(moving(place, basket, record.len(), object_bytes))
}

fn moving(place: &Basket, basket: MovedBasket, record_bytes: usize, object_bytes: u32) -> Moving {
    Moving {
        branch: place.branch,
        number: place.number,
        first_entry: place.entries.start,
        basket,
        record_bytes,
        object_bytes,
        codec: place.codec,
        is_placed: place.is_placed,
    }
}
