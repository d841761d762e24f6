//! Writing trees: fields to branches, Arrow arrays to baskets, and the tree's own record.
//!
//! [`Plan::new`] decides which branches hold the values of a schema. An [`OpenBasket`] takes the values of a range
//! of entries of one of them; a [`FinishedBasket`] becomes a record of the file, once the caller has compressed its
//! payload and knows its place. [`TreeRecord`] is what the tree itself says: branches, leaves and the places of baskets.
//!
//! The forms are those of ROOT 6.40 (`TTree.cxx`, `TBranch.cxx`, `TBranchElement.cxx`, `TBasket.cxx`).

pub mod basket;
mod classes;
pub mod encode;
pub mod form;
pub mod plan;
pub mod record;
#[cfg(test)]
mod tests;
pub mod values;

pub use basket::{FinishedBasket, OpenBasket};
pub use classes::basket_key_bytes;
pub use encode::{Encoding, column};
pub use form::{
    CLONES, CLONES_MEMBER, Clones, Container, ContainerKind, Field, Form, Jagged, Pointed, ROOT_OBJECT, Record, is_base,
};
pub use plan::{Branch, Plan, Planning};
pub use record::{BasketPlace, TreeRecord, Written};
pub use values::{check_fixed, check_member, text_in_items};
