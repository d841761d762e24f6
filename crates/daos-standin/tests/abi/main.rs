//! The stand-in against the table and each sentence of what a real DAOS server does.

#![expect(unsafe_code, reason = "the tests call a C ABI")]

mod events;
mod layout;
mod library;
mod pools;
mod support;
mod values;
