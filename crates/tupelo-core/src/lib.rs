//! The error type and the threads of the engine. The crate `tupelo` offers what users need of them.
//!
//! # Rooms
//! A room uses only the rooms above it in this list.
//!
//! | room | contents |
//! |---|---|
//! | [`error`] | [`Error`], the error type of the engine |
//! | [`pool`] | threads and cancellation |

pub mod error;
pub mod pool;

pub use error::{Error, ErrorKind, Result};
pub use pool::{cancellable, set_threads, threads};
