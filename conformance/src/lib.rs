//! What the judges share: ntuples in memory, ntuples taken apart and put together with something wrong in them, and
//! the list of damaged files.
//!
//! | room | what it is |
//! |---|---|
//! | [`crash`] | what a crash may leave of a file that is being written |
//! | [`memory`] | writing and reading without a file system |
//! | [`model`] | an ntuple as records, each of which can be changed before checksums are made |
//! | [`samples`] | the small ntuples from which damaged files are made |
//! | [`bad`] | the damaged files and what was done to each |
//! | [`outcome`] | what a reader makes of bytes |
//! | [`mutate`] | random damage |
//! | [`updating`] | files that are added to |
//! | [`summary`] | one line for the end of `make test` |

pub mod bad;
pub mod crash;
pub mod memory;
pub mod model;
pub mod mutate;
pub mod outcome;
pub mod samples;
pub mod summary;
pub mod updating;
