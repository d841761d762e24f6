//! Names and byte ranges to bytes, and back. This crate knows nothing of RNTuple.
//!
//! A [`ByteSource`] is an object of fixed size that is read at any place; a [`ByteSink`] is an object that is written
//! and then committed as a whole or not at all. Everything above asks these two traits and no file system.
//!
//! # Reading
//! Many ranges are asked for at a time; near ones become one request, by what the back end says it is good at.
//! ```
//! use tupelo_storage::{ByteSource, MemorySource};
//!
//! let source = MemorySource::new(&b"The quick brown fox"[..]);
//! let words = source.read_ranges(&[16..19, 4..9])?;
//! assert_eq!(words, ["fox", "quick"]);
//!
//! let error = source.read_range(16..30).unwrap_err();
//! assert_eq!(error.to_string(), "cannot read bytes 16..30 of memory:: it ends at byte 19");
//! # Ok::<(), tupelo_storage::Error>(())
//! ```
//!
//! # Writing
//! Nothing lies under the name before [`commit`](ByteSink::commit); an error before leaves what was there.
//! ```
//! use tupelo_storage::{ByteSink, FileSink, FileSource, ByteSource};
//!
//! # let directory = tempfile::tempdir()?;
//! # let path = directory.path().join("data.bin");
//! let mut sink = Box::new(FileSink::create(&path)?);
//! sink.append(b"size: ?, content")?;
//! sink.patch(6, b"7")?;
//! assert!(!path.exists());
//! sink.commit()?;
//! assert_eq!(FileSource::open(&path)?.read_range(0..7)?, "size: 7");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//! [`FileSink::update`] continues an existing file in the same spirit.
//!
//! # Rooms
//! A room uses only those above it.
//!
//! | room | what it does |
//! |---|---|
//! | [`error`] | the situations that can go wrong, on which object, and why |
//! | [`range`] | merging near ranges to requests and splitting large ones; pure |
//! | [`source`] | the trait [`ByteSource`] and the hints of a back end |
//! | [`sink`] | the trait [`ByteSink`] |
//! | [`local`] | memory, and files of this machine: the only room that touches `std::fs` |
//! | [`adapter`] | wrappers: an I/O log, a meter, faults on demand |
//! | [`laws`] | what every back end and adapter must pass |

pub mod error;
pub mod range;
pub mod sink;
pub mod source;

pub mod local;

pub mod adapter;
pub mod laws;

pub use error::{Error, ErrorKind, Result};
pub use local::memory::{self, MemoryFile, MemorySink, MemorySource};
pub use local::{FileSink, FileSource};
pub use sink::ByteSink;
pub use source::{ByteSource, Hints};
