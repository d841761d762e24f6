//! The private extension module `tupelo._core`: the engine's reader and writer as Python classes, one file for each
//! class.
//!
//! All arrays are Arrow, which the Python package converts to Awkward, NumPy and pandas. The interpreter lock is
//! released while the engine works.

mod arrow;
mod attributes;
mod dataset;
mod error;
mod file;
mod ntuple;
mod objects;
mod options;
mod rules;
mod storage;
mod table;
mod tree;
mod writer;
mod xaod;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::ops::ControlFlow;

use pyo3::prelude::*;
use tupelo::ops::index::zones::{ZoneOptions, write_zones};

use crate::error::cancellable;

/// Keeps freed memory for a while, so that buffers of pages are reused and not cleared by the system each time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The engine under the Python package `tupelo`. Private: it may change with every version.
#[pymodule]
mod _core {
    #[pymodule_export]
    use super::attributes::{AttributeSetWriter, Attributes};
    #[pymodule_export]
    use super::dataset::{
        CommonFields, MergedObjects, UnionFields, chain, join, matching_files, merge_objects, merge_tree, with_friends,
    };
    #[pymodule_export]
    use super::file::{File, Location, parse_location};
    #[pymodule_export]
    use super::ntuple::{Batches, Manifest, Table, expression_names, schema_choose, schema_fields};
    #[pymodule_export]
    use super::objects::Objects;
    #[pymodule_export]
    use super::objects::filling::fill_regular;
    #[pymodule_export]
    use super::options::check_options;
    #[pymodule_export]
    use super::storage::{Source, Storage, display_name, is_object_uri, is_remote};
    #[pymodule_export]
    use super::table::{Batch, ClusterInfo, Copied, FieldInfo, ObjectInfo, Sizes, TableSizes};
    #[pymodule_export]
    use super::tree::import::{ComparedField, Comparison, CopiedObjects, Import};
    #[pymodule_export]
    use super::tree::writer::TreeWriter;
    #[pymodule_export]
    use super::tree::{BranchInfo, TreeInfo};
    #[pymodule_export]
    use super::writer::{FieldsWriter, FileWriter, FillContext, NtupleWriter, compress, tighten, type_names};
    #[pymodule_export]
    use super::xaod::{AuxContainer, AuxDerived, AuxEntries, AuxStores, AuxVariable};
    use super::*;

    /// Sets the number of threads that decode and encode; 0 means one per core.
    ///
    /// Raises `OverflowError` for a number below 0.
    #[pyfunction]
    fn set_threads(threads: usize) {
        tupelo::set_threads(threads);
    }

    /// Adds zone maps to ntuples of a local file, by path: of the fields that the patterns select, or of all.
    #[pyfunction]
    fn add_zone_maps(py: Python<'_>, path: &str, ntuples: BTreeMap<String, Vec<String>>) -> PyResult<()> {
        let add = || {
            let file = tupelo::update(path)?;
            for (ntuple, patterns) in &ntuples {
                let options = ZoneOptions::default().with_fields(patterns);
                write_zones(&file, ntuple, &options, &mut |_| ControlFlow::Continue(()))?;
            }
            file.finish()
        };
        cancellable(py, add)
    }

    /// The number of threads that decode and encode.
    #[pyfunction]
    fn threads() -> usize {
        tupelo::threads()
    }

    /// Runs the command `tupelo` on its arguments, beginning with the name of the program.
    ///
    /// Returns the exit status. It changes the threads and the signal handlers of the whole process, so the process
    /// should end with it.
    #[pyfunction]
    fn run_command(py: Python<'_>, args: Vec<OsString>) -> u8 {
        py.detach(|| tupelo_cli::run(args))
    }

    /// The standard spelling of a fundamental C++ type, or of a template that is a type of fields, without arguments;
    /// `None` for other names.
    #[pyfunction]
    fn standard_type_name(name: &str) -> Option<&'static str> {
        tupelo::schema::standard_type_name(name)
    }

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("ERROR_KINDS", error::kinds(module.py())?)?;
        module.add("DEFAULT_PAGE_CHECKSUMS", tupelo::reader::DEFAULT_PAGE_CHECKSUMS)?;
        module.add("ATLAS_EVENTS", tupelo_xaod::EVENTS)?;
        module.add("DEFAULT_BATCH_BYTES", tupelo::reader::DEFAULT_BATCH_BYTES)?;
        module.add("DEFAULT_CHECKPOINT_BYTES", tupelo::writer::DEFAULT_CHECKPOINT_BYTES)?;
        module.add("DEFAULT_CHECKPOINT_SECONDS", tupelo::writer::DEFAULT_CHECKPOINT_TIME.as_secs_f64())?;
        module.add("MANIFEST_FORMAT", tupelo::ops::index::MANIFEST_FORMAT)?;
        module.add("MANIFEST_VERSION", tupelo::ops::index::MANIFEST_VERSION)?;
        module.add("VERSION", env!("CARGO_PKG_VERSION"))
    }
}
