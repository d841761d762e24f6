//! ROOT's TTree: streamed trees and baskets to Arrow arrays and back, without any I/O.
//!
//! A tree has branches, a branch has baskets: compressed records of the file with the values of a range of entries, one
//! entry after the other, as ROOT's streamers wrote them. What the bytes of an entry mean follows from the leaves of the
//! branch and from the file's streamer info, never from a list of classes in this code.
//!
//! Nothing in this crate performs I/O, starts a thread or panics on any input.
//!
//! # Rooms
//! A room uses only rooms listed before it.
//!
//! | room | what it is |
//! |---|---|
//! | [`streamer`] | layouts of ROOT's own classes of trees |
//! | [`basket`] | [`Basket`]: the bytes of a range of entries |
//! | [`tree`] | [`Tree`]: branches, leaves and where their baskets are |
//! | [`classes`] | [`Classes`](classes::Classes): the members of classes that branches hold |
//! | [`layout`] | [`ValueLayout`]: how the values of a branch are stored |
//! | [`references`] | [`References`](references::References): references between the objects of an entry, wherever it is |
//! | [`fields`] | [`Field`]: the branches of a tree as nested fields |
//! | [`mod@column`] | [`Column`]: from bytes of entries to Arrow arrays |
//! | [`mod@write`] | fields to branches, Arrow arrays to baskets, and the record of a tree |
//! | [`moved`] | [`MovableTree`](moved::MovableTree): the record of a tree whose baskets are moved as they are |
//!
//! The facts come from ROOT's `TTree.cxx`, `TBranch.cxx`, `TBranchElement.cxx`, `TBasket.cxx`, the leaves, and
//! `TStreamerInfoReadBuffer.cxx`.
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

pub mod basket;
pub mod classes;
pub mod column;
pub mod fields;
pub mod layout;
pub mod moved;
pub mod references;
pub mod streamer;
#[cfg(test)]
mod tests;
pub mod tree;
pub mod write;

pub use basket::Basket;
pub use column::Column;
pub use fields::Field;
pub use layout::ValueLayout;
pub use tree::{Branch, Leaf, Tree};
