//! Tests that can share a process. One program of 50 MiB holds them all, instead of one each.
//!
//! The files beside this folder have a process of their own because they count memory, threads or errors of the whole
//! process, or because the mutation tests run them alone.

mod checkpoints;
mod crash;
mod crash_faults;
mod crash_kill;
mod evolution;
mod found;
mod real_files;
mod repair;
mod roundtrip;
mod writing;
