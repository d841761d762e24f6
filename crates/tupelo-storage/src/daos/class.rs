//! Object classes and levels of redundancy that a pool can hold.

use super::code;
use super::connection::{Stop, too_demanding, unknown};
use super::container::DaosContainer;
use super::key::is_class_name;
use crate::error::{Error, ErrorKind, Result};
use crate::net::{Options, Redundancy};

/// The default: as many groups as the pool has targets, one copy.
const DEFAULT_CLASS: &str = "SX";

/// Classes that messages suggest, where the pool can hold them.
const COMMON: &[&str] = &[
    "S1",
    "S2",
    "S4",
    "S8",
    "SX",
    "RP_2G1",
    "RP_2GX",
    "RP_3G1",
    "RP_3GX",
    "EC_2P1G1",
    "EC_2P1GX",
    "EC_4P1GX",
    "EC_4P2GX",
    "EC_8P2GX",
    "EC_16P2GX",
];

/// The classes of a level of redundancy; the first one that the pool supports is used.
fn classes_of(level: Redundancy) -> &'static [&'static str] {
    match level {
        Redundancy::None => &[DEFAULT_CLASS],
        Redundancy::Replicate => &["RP_2GX"],
        Redundancy::Erasure => &["EC_16P2GX", "EC_8P2GX", "EC_4P2GX", "EC_2P1GX"],
        Redundancy::Max => &["RP_3GX", "RP_2GX"],
    }
}

/// The classes of objects that are written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Classes {
    /// Of data.
    pub(crate) data: String,
    /// Of what describes it.
    pub(crate) metadata: String,
}

impl Classes {
    /// The classes that the options choose, without asking the pool.
    pub(crate) fn of(options: &Options) -> Self {
        let chosen = |name| options.get(name).filter(|class| !class.is_empty());
        let data = chosen("daos_class").unwrap_or(DEFAULT_CLASS).to_owned();
        let metadata = chosen("daos_metadata_class").unwrap_or(DEFAULT_CLASS).to_owned();
        Self { data, metadata }
    }

    /// The classes that the options choose for a pool, which can hold them.
    ///
    /// # Errors
    /// [`ErrorKind::NotSupported`] for unknown classes, for those that the pool cannot hold, and for a level of redundancy
    /// without a class that the pool can hold.
    pub(crate) fn checked(
        container: &DaosContainer,
        options: &Options,
        action: &'static str,
        uri: &str,
    ) -> Result<Self> {
        let refused = |reason: String| Error::new(ErrorKind::NotSupported, action, uri, reason);
        let mut classes = Self::of(options);
        let is_chosen = options.get("daos_class").is_some_and(|class| !class.is_empty());
        if let Some(level) = options.redundancy().filter(|_| !is_chosen) {
            let possible = |level: Redundancy| classes_of(level).iter().find(|class| container.holds(class));
            let Some(class) = possible(level) else {
                let levels = Redundancy::NAMES.iter().filter(|(_, level)| possible(*level).is_some());
                let levels: Vec<&str> = levels.map(|(name, _)| *name).collect();
                let wanted = Redundancy::NAMES.iter().find(|(_, known)| *known == level).map_or("", |(name, _)| *name);
                let wanted = format!("the pool has too few servers for the storage option redundancy={wanted}");
                return Err(refused(format!("{wanted}; it supports: {}", levels.join(", "))));
            };
            classes.data = (*class).to_owned();
        }
        for (class, option) in [(&classes.data, "daos_class"), (&classes.metadata, "daos_metadata_class")] {
            let reason = match container.check_class(class) {
                Ok(()) => continue,
                Err(Unsuitable::Unknown) => unknown(class),
                Err(Unsuitable::TooDemanding) => too_demanding(class),
                Err(Unsuitable::Failed(number)) => {
                    return Err(Stop::Failed(number).into_error(action, uri.to_owned()));
                }
            };
            let common: Vec<&str> = COMMON.iter().copied().filter(|class| container.holds(class)).collect();
            let common = common.join(", ");
            return Err(refused(format!("{reason}; classes of this pool for the storage option {option}: {common}")));
        }
        Ok(classes)
    }
}

/// Why a class cannot be used.
enum Unsuitable {
    Unknown,
    TooDemanding,
    Failed(i32),
}

impl DaosContainer {
    fn check_class(&self, class: &str) -> Result<(), Unsuitable> {
        let number = Some(class).filter(|class| is_class_name(class)).and_then(|class| self.connection().class(class));
        match self.connection().holds(number.ok_or(Unsuitable::Unknown)?) {
            Ok(()) => Ok(()),
            Err(code::INVALID) => Err(Unsuitable::TooDemanding),
            Err(number) => Err(Unsuitable::Failed(number)),
        }
    }

    fn holds(&self, class: &str) -> bool {
        self.check_class(class).is_ok()
    }
}
