//! Reads and writes byte ranges of named objects. This crate does not know RNTuple.
//!
//! A [`ByteSource`] is an object of fixed size with random access; a [`ByteSink`] is an object that is written and then
//! committed as a whole or not at all. The other crates use these two traits instead of the file system.
//!
//! # Reading
//! Many ranges can be read at once. Near ranges are merged to one request, by the hints of the back end.
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
//! The object is not visible under its name before [`commit`](ByteSink::commit). An error leaves the old one unchanged.
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
//! [`FileSink::update`] continues an existing file in the same way.
//!
//! # Remote objects
//! A [`Storage`] opens, creates and lists objects by path or URL.
//! ```no_run
//! use tupelo_storage::{Options, Storage};
//!
//! let options = Options::new([("aws_endpoint_url", "https://s3.example.org"), ("anonymous", "true")])?;
//! let source = Storage::new(options).open("s3://bucket/data.root")?;
//! # Ok::<(), tupelo_storage::Error>(())
//! ```
//!
//! # Rooms
//! A room uses only earlier ones.
//!
//! | room | what it does |
//! |---|---|
//! | [`cancel`] | the scope in which callers cancel work |
//! | [`error`] | the error type: what failed, on which object, and why |
//! | [`range`] | merges near ranges and splits large ones |
//! | [`source`] | the trait [`ByteSource`], the [`Hints`] of a back end and its [`Traffic`] |
//! | [`sink`] | the trait [`ByteSink`] |
//! | [`local`] | memory and local files; the only room that uses `std::fs` |
//! | [`net`] | what requests to all servers share: options, retries, tokens, hidden credentials, threads |
//! | [`remote`] | objects on HTTP servers and in S3, GCS and Azure |
//! | [`xrootd`] | files on XRootD servers |
//! | `daos` | values in DAOS containers, by libdaos, which is loaded at run time |
//! | [`objects`] | namespaces of objects, for data sets that are stored as many: directories, stores, web servers, memory |
//! | [`adapter`] | wrappers: a meter, a cache and what was read last, and with the feature `testing` an I/O log and injected faults |
//! | [`uri`] | objects and namespaces of all back ends, by path or URL |
//! | `laws` | with the feature `testing`: the contract of back ends and adapters as functions for tests |

pub mod cancel;
pub mod error;
pub mod range;
pub mod sink;
pub mod source;

mod daos;
pub mod local;
pub mod net;
pub mod objects;
pub mod remote;
pub mod xrootd;

pub mod adapter;
#[cfg(any(test, feature = "testing"))]
pub mod laws;
#[cfg(test)]
mod tests;
pub mod uri;

pub use adapter::Cache;
pub use error::{Error, ErrorKind, Result};
pub use local::memory::{self, MemoryFile, MemorySink, MemorySource};
pub use local::{FileSink, FileSource, PartialFile};
pub use net::{Entry, Options};
pub use objects::{
    Condition, Keys, NewObject, ObjectDirectory, ObjectEntry, ObjectMemory, ObjectRange, ObjectSink, ObjectSource,
    ObjectVersion, names_in_container,
};
pub use sink::ByteSink;
pub use source::{ByteSource, Hints, Traffic};
pub use uri::{Storage, display_name, is_mirror, is_object_uri, local_path, mirror_members, split_container};
