//! Comparing what the stores load.

use serde::Serialize;
use tupelo::Result;

use crate::config::Store;
use crate::digest::Digest;
use crate::run::{Benchmark, places, selections};

/// What the stores load in the measured entries, all variables of the chosen stores.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Compared {
    /// Number of variables that were compared.
    pub variables: usize,
    /// Number of values.
    pub values: u64,
    /// Variables whose values are not compared, and why.
    pub not_compared: Vec<String>,
    /// Variables that differ; of one store only, nothing is compared.
    pub differing: Vec<String>,
    /// Digest of all values, of each store that ran.
    pub digests: Vec<(Store, String)>,
}

/// What one store loads.
struct Side {
    store: Store,
    values: u64,
    /// Of each variable, in the order of the stores.
    digests: Vec<Result<Digest>>,
}

impl Benchmark<'_> {
    /// Compares what the stores load in the measured entries: all variables, value by value.
    ///
    /// # Errors
    /// Those of opening and reading.
    pub fn compare(&self) -> Result<Compared> {
        let sides: Vec<Side> = self.config.stores.iter().map(|store| self.side(*store)).collect::<Result<_>>()?;
        let values = sides.first().map_or(0, |side| side.values);
        let mut compared =
            Compared { variables: 0, values, not_compared: Vec::new(), differing: Vec::new(), digests: Vec::new() };
        let of = |store: &str, name: &str| format!("{store}.{name}");
        let names = self.stores.iter().flat_map(|it| it.variables.iter().map(|name| of(&it.store, name)));
        for (place, name) in names.enumerate() {
            let own: Vec<&Result<Digest>> = sides.iter().filter_map(|side| side.digests.get(place)).collect();
            if let Some(Err(error)) = own.iter().find(|it| it.is_err()) {
                compared.not_compared.push(format!("{name}: {error}"));
                continue;
            }
            compared.variables += 1;
            let mut found = own.into_iter().flatten().map(Digest::finish);
            let first = found.next();
            if found.any(|other| Some(other) != first) {
                compared.differing.push(name);
            }
        }
        for side in sides {
            let all = side.digests.iter().flatten().fold(0_u64, |all, it| all.rotate_left(1) ^ it.finish());
            compared.digests.push((side.store, format!("{all:016x}")));
        }
        Ok(compared)
    }

    fn side(&self, store: Store) -> Result<Side> {
        let event = (self.open)(store, self.config.path(store))?;
        let mut entries = event.entry_wise(selections(&event, &self.stores)?)?;
        let places: Vec<(usize, usize)> = places(&entries).collect();
        let mut digests: Vec<Result<Digest>> = places.iter().map(|_| Ok(Digest::default())).collect();
        let mut values = 0;
        for entry in &self.entries.measured {
            entries.load(*entry)?;
            for ((selection, variable), digest) in places.iter().zip(&mut digests) {
                let Some((array, range)) = entries.values(*selection, *variable) else { continue };
                values += range.len() as u64;
                if let Ok(known) = digest
                    && let Err(error) = known.add(&array.slice(range.start, range.len()))
                {
                    *digest = Err(error);
                }
            }
        }
        Ok(Side { store, values, digests })
    }
}
