//! Reads and writes **RNTuple**, CERN's columnar data format, as Arrow arrays, without ROOT.
//!
//! An RNTuple is a table whose fields may nest: lists, structs, optionals, variants, and any C++ class by its members.
//! It lives in a ROOT file as compressed pages, grouped in clusters of entries, with an anchor, a header and a footer.
//!
//! # Reading
//! Open `FILE` or `FILE:NAME`, choose fields by dotted path or glob and a range of entries, take one batch or many:
//! ```no_run
//! let ntuple = tupelo::open("events.root:Events").open()?;
//! for batch in ntuple.read(["Muon_*", "MET_pt"])?.entries(0..100_000).batches_of_bytes(8 << 20)? {
//!     println!("{} entries", batch?.num_rows());
//! }
//! # Ok::<(), tupelo::Error>(())
//! ```
//! A range reads and decodes only the pages that hold it. Every checksum is verified unless
//! [`OpenOptions::with_page_checksums`] says otherwise.
//!
//! # Writing
//! A file becomes visible when it is finished, and not before:
//! ```
//! use std::sync::Arc;
//! use arrow_array::{ArrayRef, Float32Array, RecordBatch};
//! use tupelo::schema::Schema;
//!
//! let folder = tempfile::tempdir().unwrap();
//! let path = folder.path().join("new.root");
//! let pt: ArrayRef = Arc::new(Float32Array::from(vec![41.5, 30.25]));
//! let batch = RecordBatch::try_from_iter([("pt", pt)])?;
//!
//! let file = tupelo::create(&path)?;
//! let mut ntuple = file.ntuple("Events", &Schema::from_arrow(&batch.schema())?, tupelo::WriteOptions::default())?;
//! ntuple.write(&batch)?;
//! ntuple.finish()?;
//! file.finish()?;
//!
//! let read = tupelo::open(path.to_str().unwrap()).open()?;
//! assert_eq!(read.entries(), 2);
//! assert_eq!(read.read_all().to_batch()?.column(0), batch.column(0));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! An existing ntuple, from any writer, can be extended with entries ([`FileWriter::append`]), fields
//! ([`NtupleWriter::add_fields`]), attribute sets ([`NtupleWriter::attribute_set`]) and metadata
//! ([`NtupleWriter::set_metadata`]):
//! ```
//! # use std::sync::Arc;
//! # use arrow_array::{ArrayRef, Float32Array, RecordBatch, UInt64Array};
//! # use tupelo::schema::Schema;
//! # let folder = tempfile::tempdir().unwrap();
//! # let path = folder.path().join("new.root");
//! # let pt: ArrayRef = Arc::new(Float32Array::from(vec![41.5, 30.25]));
//! # let batch = RecordBatch::try_from_iter([("pt", pt.clone())])?;
//! # let file = tupelo::create(&path)?;
//! # let mut ntuple = file.ntuple("Events", &Schema::from_arrow(&batch.schema())?, tupelo::WriteOptions::default())?;
//! # ntuple.write(&batch)?;
//! # ntuple.finish()?;
//! # file.finish()?;
//! let file = tupelo::update(&path)?;
//! let mut ntuple = file.append("Events", tupelo::WriteOptions::default())?;
//! let run: ArrayRef = Arc::new(UInt64Array::from(vec![7, 7]));
//! let more = RecordBatch::try_from_iter([("pt", pt), ("run", run)])?;
//! ntuple.add_fields(&Schema { fields: Schema::from_arrow(&more.schema())?.fields.split_off(1) })?;
//! ntuple.write(&more)?;
//! ntuple.set_metadata("generator", "pythia 8.3")?;
//! ntuple.finish()?;
//! file.finish()?;
//!
//! let read = tupelo::open(path.to_str().unwrap()).open()?;
//! assert_eq!(read.entries(), 4);
//! let runs = read.read(["run"])?.to_batch()?;
//! assert_eq!(runs.column(0).as_ref(), &UInt64Array::from(vec![0, 0, 7, 7]));
//! assert_eq!(read.metadata()?["generator"], "pythia 8.3");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # How fields become Arrow
//! | RNTuple | Arrow |
//! |---|---|
//! | `bool`, integers, `float`, `double` | the same; `std::byte` is `UInt8`, `char` is `Int8` |
//! | `std::string` | `LargeUtf8` (`LargeBinary` where the bytes are not UTF-8) |
//! | vectors, sets, collection proxies | `LargeList` |
//! | maps | `LargeList<Struct<key, value>>` |
//! | `std::array`, `T[N]`, `std::bitset` | `FixedSizeList` |
//! | classes, pairs, tuples | `Struct`; base classes are called `:_0`, `:_1`, … |
//! | `std::optional`, `std::unique_ptr` | nullable values |
//! | `std::variant` | dense `Union`; type id 0 is "no value", then the alternatives |
//! | enums, `std::atomic` | what they wrap |
//! | streamer fields | `LargeBinary`; decoded by [`Ntuple::objects`] |
//!
//! C++ type names, descriptions and unusual encodings travel in the field metadata ([`schema::metadata`]).
//!
//! # Rooms
//! A room uses only the rooms above it in this list, and the crates `tupelo-core`, `tupelo-schema` and `tupelo-pages`.
//!
//! | room | contents |
//! |---|---|
//! | [`schema`] | the field tree; reading as another schema |
//! | [`reader`] | files, ntuples, batches |
//! | [`writer`] | files, ntuples and trees being written |
//! | [`dataset`] | many files: which files, and which fields of them |
//! | [`ops`] | copy, import, export, verify, inspect, layout, changes of objects, index, cost, tuning, collection |

pub mod dataset;
pub mod ops;
pub mod reader;
pub mod schema;
pub mod writer;

use std::path::Path;

pub use reader::{File, Metrics, Ntuple, OpenOptions, Table, Time, Tree};
#[doc(inline)]
pub use tupelo_core::error::{Error, ErrorKind, ErrorPlace, Remedy, Result, printable};
#[doc(inline)]
pub use tupelo_core::pool::{THREADS_VARIABLE, cancellable, set_threads, threads};
pub use tupelo_format::compression::{Algorithm, Compression, compress};
pub use tupelo_format::object;
pub use tupelo_format::streamer::StreamerInfos;
#[doc(inline)]
pub use tupelo_schema::expression::Expression;
pub use tupelo_storage::{self as storage, Storage};
pub use writer::{
    FileWriter, MoveOptions, MovedTreeWriter, NtupleWriter, TreeOptions, TreeWriter, WriteOptions, parse_bytes,
};

/// Names a file, `FILE`, or an object in it, `FILE:NAME`; nothing is opened yet. See [`reader::Location::parse`].
pub fn open(location: &str) -> OpenOptions {
    OpenOptions::new(location)
}

/// Begins a new ROOT file; see [`FileWriter::create`].
///
/// # Errors
/// Those of the file system.
pub fn create(path: impl AsRef<Path>) -> Result<FileWriter> {
    FileWriter::create(path)
}

/// Opens a ROOT file to add ntuples; see [`FileWriter::update`].
///
/// # Errors
/// Those of the file system; corrupt if it is not a complete ROOT file.
pub fn update(path: impl AsRef<Path>) -> Result<FileWriter> {
    FileWriter::update(path)
}
