//! The record of a tree: what ROOT streams of a `TTree` and its branches.

use tupelo_format::streamer::Streaming;
use tupelo_format::wire::Buffer;

use super::plan::{Branch, Leaf, LeafClass};
use tupelo_format::object::{Basic, Value};
use tupelo_format::{Error, Result};

/// `ROOT::TIOFeatures` without any: byte count, no version, checksum, bits.
const IO_FEATURES: [u8; 11] = [0x40, 0, 0, 7, 0, 0, 0x1a, 0xa1, 0x2f, 0x10, 0];
/// Number of positions for which ROOT makes room in a basket at first.
const POSITIONS: i32 = 1000;
/// ROOT's numbers of places for baskets are at least this.
pub(crate) const MIN_PLACES: usize = 10;
/// `TTree`'s limits of entries (`fMaxEntries`, `fMaxEntryLoop`) and of the estimate for drawing.
const MAX_ENTRIES: i64 = 1_000_000_000_000;
const ESTIMATE: i64 = 1_000_000;
/// Bytes after which ROOT saves the tree, if it continues one (`fAutoSave`), negative.
const AUTO_SAVE: i64 = -300_000_000;
/// Sizes of baskets are multiples of this, in bytes.
const BASKET_STEP: u64 = 512;
/// Bit of a branch with an object of any class (`TBranch::kBranchAny`).
const ANY: u32 = 1 << 17;

/// A basket in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BasketPlace {
    /// Number of its first entry.
    pub first_entry: u64,
    /// Where the record begins.
    pub offset: u64,
    /// Bytes of the record.
    pub bytes: u32,
}

/// What is known of a branch once its baskets are stored.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Written {
    /// The baskets in order.
    pub baskets: Vec<BasketPlace>,
    /// Bytes of all baskets with their keys before and after compression.
    pub bytes: [u64; 2],
    /// Size at which a basket is full, in bytes.
    pub basket_bytes: u32,
    /// Largest value of a counter, or length of the longest text.
    pub maximum: i64,
}

impl Written {
    /// Changes the size of baskets so that one holds as many entries as there are now (`TTree::OptimizeBaskets`).
    pub fn optimise(&mut self, branch: &Branch, entries: u64, most: u32) {
        let positions = if branch.has_positions() { entries.saturating_mul(8) } else { 0 };
        let wanted = self.bytes[0].saturating_add(positions);
        // Rounded up, so that the last entry fits.
        let wanted = wanted.saturating_sub(wanted % BASKET_STEP).saturating_add(2 * BASKET_STEP);
        self.basket_bytes = u32::try_from(wanted).unwrap_or(most).min(most);
    }
}

/// What a tree says of itself.
#[derive(Debug)]
pub struct TreeRecord<'t> {
    /// Name.
    pub name: &'t str,
    /// Free text.
    pub title: &'t str,
    /// Number of entries.
    pub entries: u64,
    /// ROOT's compression setting.
    pub compression: u32,
    /// Entries of a cluster (positive), bytes of a cluster that was not reached (negative), or 0.
    pub auto_flush: i64,
    /// Compressed bytes when clusters were last flushed.
    pub flushed_bytes: u64,
    /// Ranges of clusters that do not follow from `auto_flush`: last entry, and entries of each cluster.
    pub cluster_ranges: &'t [(u64, u64)],
    /// Weight of the entries in histograms; 1 by default.
    pub weight: f64,
    /// Aliases: name and expression.
    pub aliases: &'t [(String, String)],
    /// Index, friends and user information: objects, or null.
    pub attached: [&'t Value; 3],
    /// Branches, and what was written of each.
    pub branches: &'t [Branch],
    /// As many.
    pub written: &'t [Written],
}

impl TreeRecord<'_> {
    /// The bytes of the tree behind a key of `key_bytes`.
    ///
    /// # Errors
    /// Those of [`Value::write_pointer`] for what is attached.
    pub fn stream(&self, key_bytes: u16) -> Result<Vec<u8>> {
        let mut out = Streaming::new(key_bytes);
        let mut ids = Ids { branches: vec![0; self.branches.len()], leaves: vec![0; self.branches.len()] };
        out.versioned(20, |out| {
            out.named(0, self.name, self.title.as_bytes());
            // Lines, fillings and markers, as ROOT draws them by default.
            out.versioned(2, |out| [602, 1, 1].into_iter().for_each(|it| out.buffer.u16_be(it)));
            fill(out);
            out.versioned(3, |out| {
                out.buffer.u16_be(1);
                out.buffer.u16_be(1);
                out.buffer.f32_be(1.0);
            });
            let total = |which: usize| {
                self.written.iter().filter_map(|written| written.bytes.get(which)).sum::<u64>().cast_signed()
            };
            out.buffer.u64_be(self.entries);
            for bytes in [total(0), total(1), 0, self.flushed_bytes.cast_signed()] {
                out.buffer.i64_be(bytes);
            }
            out.buffer.f64_be(self.weight);
            for number in [0, 25, 0, POSITIONS] {
                out.buffer.i32_be(number);
            }
            out.buffer.i32_be(small(self.cluster_ranges.len()));
            for number in [MAX_ENTRIES, MAX_ENTRIES, 0, AUTO_SAVE, self.auto_flush, ESTIMATE] {
                out.buffer.i64_be(number);
            }
            array(out, self.cluster_ranges, |buffer, range| buffer.u64_be(range.0));
            array(out, self.cluster_ranges, |buffer, range| buffer.u64_be(range.1));
            out.buffer.put(&IO_FEATURES);
            self.branch_list(out, None, &mut ids);
            // All leaves were streamed with their branches.
            let leaves: Vec<u32> = (0..self.branches.len())
                .filter(|&index| self.has_leaf(index))
                .filter_map(|index| ids.leaves.get(index).copied())
                .collect();
            list(out, leaves.len(), |out| leaves.iter().for_each(|&id| out.reference(id)));
            self.alias_list(out);
            // No values of an index.
            out.buffer.i32_be(0);
            out.buffer.i32_be(0);
            self.attached.iter().try_for_each(|value| value.write_pointer(out))?;
            // No table of references.
            out.reference(0);
            Ok::<_, Error>(())
        })?;
        Ok(out.buffer.into_vec())
    }

    fn alias_list(&self, out: &mut Streaming) {
        if self.aliases.is_empty() {
            return out.reference(0);
        }
        out.pointer("TList", |out| {
            out.versioned(5, |out| {
                out.object(0);
                out.buffer.string_be("");
                out.buffer.i32_be(small(self.aliases.len()));
                for (name, expression) in self.aliases {
                    out.pointer("TNamed", |out| out.named(0, name, expression.as_bytes()));
                    // Options of the item.
                    out.buffer.u8(0);
                }
            });
        });
    }

    /// Branches of members that only have parts have no leaf.
    fn has_leaf(&self, index: usize) -> bool {
        let branch = self.branches.get(index);
        branch.is_some_and(|branch| branch.object.as_ref().is_none_or(|object| object.kind != 2))
    }

    fn branch_list(&self, out: &mut Streaming, parent: Option<usize>, ids: &mut Ids) {
        let children: Vec<usize> = (0..self.branches.len())
            .filter(|&index| self.branches.get(index).is_some_and(|branch| branch.parent == parent))
            .collect();
        list(out, children.len(), |out| {
            for &index in &children {
                let Some(branch) = self.branches.get(index) else { continue };
                if let Some(id) = ids.branches.get_mut(index) {
                    *id = out.next_id();
                }
                match &branch.object {
                    None => out.pointer("TBranch", |out| self.branch(out, branch, index, ids)),
                    Some(object) if branch.leaf.class == LeafClass::Object => out.pointer("TBranchObject", |out| {
                        out.versioned(1, |out| {
                            self.branch(out, branch, index, ids);
                            out.buffer.string_be(&object.class_name);
                        });
                    }),
                    Some(_) => out.pointer("TBranchElement", |out| self.element(out, branch, index, ids)),
                }
            }
        });
    }

    fn element(&self, out: &mut Streaming, branch: &Branch, index: usize, ids: &mut Ids) {
        let Some(object) = &branch.object else { return };
        out.versioned(10, |out| {
            self.branch(out, branch, index, ids);
            for text in [&object.class_name, &object.parent_name, &object.item_name] {
                out.buffer.string_be(text);
            }
            out.buffer.u32_be(object.checksum);
            out.buffer.u16_be(object.class_version as u16);
            let maximum = self.written.get(index).map_or(0, |written| written.maximum);
            let maximum = if branch.is_counter() { i32::try_from(maximum).unwrap_or(i32::MAX) } else { 0 };
            for number in [object.id, object.kind, object.code, maximum] {
                out.buffer.i32_be(number);
            }
            let counters = match object.kind {
                31 | 41 => [branch.parent, object.counter],
                _ => [object.counter, None],
            };
            for counter in counters {
                out.reference(counter.and_then(|counter| ids.branches.get(counter).copied()).unwrap_or(0));
            }
        });
    }

    fn branch(&self, out: &mut Streaming, branch: &Branch, index: usize, ids: &mut Ids) {
        let none = Written::default();
        let written = self.written.get(index).unwrap_or(&none);
        let is_any = branch.object.as_ref().is_some_and(|object| object.is_any);
        let places = (written.baskets.len() + 1).max(MIN_PLACES);
        out.versioned(13, |out| {
            out.named(if is_any { ANY } else { 0 }, &branch.name, branch.title.as_bytes());
            fill(out);
            out.buffer.u32_be(self.compression);
            out.buffer.u32_be(written.basket_bytes);
            out.buffer.i32_be(if branch.has_positions() { POSITIONS } else { 0 });
            out.buffer.i32_be(small(written.baskets.len()));
            out.buffer.u64_be(if branch.values.is_some() { self.entries } else { 0 });
            out.buffer.put(&IO_FEATURES);
            out.buffer.i32_be(0);
            out.buffer.i32_be(small(places));
            out.buffer.i32_be(branch.split_level.into());
            out.buffer.u64_be(self.entries);
            out.buffer.u64_be(0);
            written.bytes.iter().for_each(|&bytes| out.buffer.u64_be(bytes));
            self.branch_list(out, Some(index), ids);
            let has_leaf = self.has_leaf(index);
            list(out, usize::from(has_leaf), |out| {
                if has_leaf {
                    self.leaf(out, index, ids);
                }
            });
            // Baskets are in records of their own.
            list(out, 0, |_| ());
            let baskets = || written.baskets.iter().map(Some).chain(std::iter::repeat(None));
            out.buffer.u8(1);
            baskets().take(places).for_each(|it| out.buffer.u32_be(it.map_or(0, |basket| basket.bytes)));
            out.buffer.u8(1);
            let ends = std::iter::once(if branch.values.is_some() { self.entries } else { 0 });
            let firsts = written.baskets.iter().map(|basket| basket.first_entry).chain(ends);
            firsts.chain(std::iter::repeat(0)).take(places).for_each(|first| out.buffer.u64_be(first));
            out.buffer.u8(1);
            baskets().take(places).for_each(|it| out.buffer.u64_be(it.map_or(0, |basket| basket.offset)));
            out.buffer.string_be("");
        });
    }

    /// A leaf, or a reference to it. A counter is streamed where it is needed first.
    fn leaf(&self, out: &mut Streaming, index: usize, ids: &mut Ids) {
        let (Some(branch), Some(id)) = (self.branches.get(index), ids.leaves.get_mut(index)) else { return };
        if *id != 0 {
            return out.reference(*id);
        }
        *id = out.next_id();
        let maximum = self.written.get(index).map_or(0, |written| written.maximum);
        let Leaf { name, title, class, length, number_bytes, is_counter, counter } = &branch.leaf;
        let is_text = *class == LeafClass::Text;
        out.pointer(&class.name(), |out| {
            out.versioned(if *class == LeafClass::Object { 4 } else { 1 }, |out| {
                out.versioned(2, |out| {
                    out.named(0, name, title.as_bytes());
                    // A text ends with a zero in memory.
                    let text_bytes = i32::try_from(maximum.saturating_add(1)).unwrap_or(i32::MAX);
                    out.buffer.i32_be(if is_text { text_bytes } else { small(*length) });
                    out.buffer.i32_be(if is_text { 1 } else { small(*number_bytes) });
                    out.buffer.i32_be(0);
                    out.buffer.u8((*is_counter).into());
                    out.buffer.u8(class.is_unsigned().into());
                    match counter {
                        Some(counter) => self.leaf(out, *counter, ids),
                        None => out.reference(0),
                    }
                });
                let (least, most) = match (is_text, is_counter) {
                    (true, _) => (0, maximum.saturating_add(1)),
                    (_, true) => (0, maximum),
                    _ => (0, 0),
                };
                match class {
                    LeafClass::Element => {
                        let object = branch.object.as_ref();
                        out.buffer.i32_be(object.map_or(-1, |object| object.id));
                        out.buffer.i32_be(object.map_or(-1, |object| object.code));
                    }
                    // The name of its class is in front of each object.
                    LeafClass::Object => out.buffer.u8(1),
                    LeafClass::Text => limits(out, 4, [least, most]),
                    LeafClass::Number(Basic::F32 | Basic::F64) => limits(out, *number_bytes, [0, 0]),
                    LeafClass::Number(_) => limits(out, *number_bytes, [least, most]),
                }
            });
        });
    }
}

/// References to what was streamed, by branch.
struct Ids {
    branches: Vec<u32>,
    leaves: Vec<u32>,
}

fn fill(out: &mut Streaming) {
    out.versioned(2, |out| [0, 1001].into_iter().for_each(|it| out.buffer.u16_be(it)));
}

/// A `TObjArray`.
pub(crate) fn list(out: &mut Streaming, length: usize, content: impl FnOnce(&mut Streaming)) {
    out.versioned(3, |out| {
        out.object(0);
        out.buffer.string_be("");
        out.buffer.i32_be(small(length));
        out.buffer.i32_be(0);
        content(out);
    });
}

/// An array with as many items as another member says, after a byte that says whether there are any.
fn array<T>(out: &mut Streaming, items: &[T], put: impl Fn(&mut Buffer, &T)) {
    out.buffer.u8(u8::from(!items.is_empty()));
    items.iter().for_each(|item| put(&mut out.buffer, item));
}

/// Smallest and largest value in numbers of so many bytes.
fn limits(out: &mut Streaming, bytes: usize, limits: [i64; 2]) {
    for limit in limits {
        let all = limit.to_be_bytes();
        out.buffer.put(all.get(all.len().saturating_sub(bytes)..).unwrap_or_default());
    }
}

/// Counts of what is in memory; ROOT counts it in 32 bits.
fn small(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}
