//! Tests that can share a process. One program of 50 MiB holds them all, instead of one each.
//!
//! The files beside this folder have a process of their own because they count memory, threads or errors of the whole
//! process, because they start processes (a child holds the locks of all files until it runs its program), or because
//! the mutation tests run them alone.

mod checkpoints;
mod crash;
mod crash_faults;
mod evolution;
mod found;
mod real_files;
mod repair;
mod roundtrip;
mod sinks;
mod sources;
mod writing;
mod zones;
