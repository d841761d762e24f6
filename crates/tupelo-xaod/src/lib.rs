//! ATLAS's event data model (xAOD) over ntuples and trees, without Athena.
//!
//! An event has *containers* such as `AnalysisJets`, a `DataVector` of objects without members, and stand-alone *objects* such as
//! `EventInfo`. Their values are the *variables* of an *auxiliary store*: members of the store's class (`AnalysisJetsAux:`) are
//! static, those that anyone added (`AnalysisJetsAuxDyn:pt`) dynamic. In trees the names have dots in place of colons. A
//! container of all entries is a list of structs here, with one member for each variable:
//!
//! ```no_run
//! let event = tupelo_xaod::Event::open(tupelo::open("DAOD_PHYSLITE.root"))?;
//! for container in event.stores().containers() {
//!     println!("{}: {} variables", container.name(), container.variables().len());
//! }
//! let jets = event.select("AnalysisJets", ["pt", "eta"])?;
//! let electrons = event.select("AnalysisElectrons", ["pt", "trackParticleLinks"])?;
//! // One request for all of them.
//! let batch = event.read(&[jets, electrons], 0..event.entries())?;
//! assert_eq!(batch.num_columns(), 2);
//! # Ok::<(), tupelo::Error>(())
//! ```
//!
//! An `ElementLink` has the key of a container and an index; [`Event::resolve`] gives the elements that links refer to.
//!
//! Facts are those of Athena's `Control/xAODRootAccess` (`RAuxStore`, `AuxStoreBase`) and
//! `Database/AthenaRoot/RootAuxDynIO`.

mod derivation;
mod entries;
mod event;
mod files;
mod keys;
mod linked;
mod links;
mod lists;
mod stores;
mod thinning;

pub use derivation::{Derivation, Derived, Values};
pub use entries::{Decoded, EntryWise};
pub use event::{EVENTS, Event, Format, Selection};
pub use files::Files;
pub use keys::{Keys, METADATA};
pub use links::Dangling;
pub use stores::{Container, Origin, Stores, Variable};
