//! Writes and removes values.

use std::collections::HashSet;

use bytes::Bytes;

use super::code;
use super::connection::{Deadline, Stop};
use super::container::DaosContainer;
use super::ffi::{IsNew, Values};
use super::key::DaosKey;
use super::plan::Group;
use crate::error::{Error, ErrorKind, Result};

/// A value to write.
#[derive(Debug, Clone)]
pub(crate) struct NewValue {
    pub(crate) key: DaosKey,
    /// Its bytes, in pieces that follow each other. They are sent from where they are.
    pub(crate) pieces: Vec<Bytes>,
    /// Whether it is an error if there is a value.
    pub(crate) is_new: bool,
}

impl NewValue {
    fn bytes(&self) -> u64 {
        self.pieces.iter().map(|piece| piece.len() as u64).sum()
    }

    fn parts(&self) -> (u64, Vec<Bytes>, IsNew) {
        (self.key.akey, self.pieces.clone(), IsNew(self.is_new))
    }
}

impl DaosContainer {
    /// Writes values, which are durable then. After an error some of them may be written.
    ///
    /// # Errors
    /// [`ErrorKind::Changed`] if one exists that must be new; [`ErrorKind::NotSupported`] for empty values, which DAOS
    /// does not have; errors of DAOS.
    pub(crate) fn update(&self, values: &[NewValue]) -> Result<()> {
        self.check(values)?;
        let groups = self.requests().group(values.iter().map(|value| (&value.key, value.bytes())));
        self.write(values, groups, &self.deadline())
    }

    /// Writes values of one dkey by one call: all or none.
    ///
    /// # Errors
    /// As [`update`](Self::update); [`ErrorKind::NotSupported`] for values of several dkeys.
    pub(crate) fn update_together(&self, values: &[NewValue]) -> Result<()> {
        self.check_together(values)?;
        let Some(first) = values.first() else { return Ok(()) };
        let group = Group { object: first.key.object(), dkey: first.key.dkey, members: (0..values.len()).collect() };
        self.write(values, vec![group], &self.deadline())
    }

    /// Refuses values that one call cannot write.
    ///
    /// # Errors
    /// Those of [`update_together`](Self::update_together) that need no request.
    pub(crate) fn check_together(&self, values: &[NewValue]) -> Result<()> {
        self.check(values)?;
        let Some(first) = values.first() else { return Ok(()) };
        if let Some(other) = values.iter().find(|value| !value.key.shares_dkey(&first.key)) {
            let reason =
                format!("DAOS writes several values at once only if they differ only in AKEY, unlike {}", first.key);
            return Err(Error::new(ErrorKind::NotSupported, "write", self.uri(&other.key), reason));
        }
        Ok(())
    }

    /// Refuses empty values and those that are given more than once.
    fn check(&self, values: &[NewValue]) -> Result<()> {
        let mut keys = HashSet::new();
        for value in values {
            let refused = |kind, reason: &'static str| Error::new(kind, "write", self.uri(&value.key), reason);
            if value.bytes() == 0 {
                return Err(refused(ErrorKind::NotSupported, "DAOS does not support empty values"));
            }
            if !keys.insert(&value.key) {
                return Err(refused(ErrorKind::Changed, "it would be written more than once"));
            }
        }
        Ok(())
    }

    fn write(&self, values: &[NewValue], groups: Vec<Group>, deadline: &Deadline) -> Result<()> {
        let make = |group: &Group, object| {
            let parts = group.members.iter().map(|at| values[*at].parts()).collect();
            Values::update(object, group.dkey, parts)
        };
        let deadline = &deadline.for_bytes(values.iter().map(NewValue::bytes).sum());
        let mut failed = None;
        for (group, result, _) in self.run("write", groups, |at| &values[at].key, make, deadline)? {
            match result {
                Ok(()) => group.members.iter().for_each(|at| self.traffic().add_put(values[*at].bytes())),
                Err(number) => failed = failed.or(Some((group, number))),
            }
        }
        match failed {
            None => Ok(()),
            Some((group, code::EXISTS)) => Err(self.existing(values, &group, deadline)?),
            Some((group, number)) => {
                Err(Stop::Failed(number).into_error("write", self.uri(&values[group.members[0]].key)))
            }
        }
    }

    /// The error that names the value that exists already.
    #[cold]
    fn existing(&self, values: &[NewValue], group: &Group, deadline: &Deadline) -> Result<Error> {
        let keys: Vec<&DaosKey> =
            group.members.iter().map(|at| &values[*at]).filter(|value| value.is_new).map(|value| &value.key).collect();
        let sizes = match keys.as_slice() {
            [_] => vec![1],
            keys => self.sizes_until(keys, deadline)?,
        };
        let found = keys.iter().zip(sizes).find(|(_, bytes)| *bytes > 0).map(|(key, _)| *key);
        let uri = self.uri(found.unwrap_or(&values[group.members[0]].key));
        Ok(Error::new(ErrorKind::Changed, "write", uri, "a value already exists"))
    }

    /// Removes values. Missing ones are not an error.
    ///
    /// # Errors
    /// Errors of DAOS.
    pub(crate) fn remove(&self, keys: &[DaosKey]) -> Result<()> {
        let groups = self.requests().group(keys.iter().map(|key| (key, 0)));
        let make = |group: &Group, object| {
            Values::remove(object, group.dkey, group.members.iter().map(|at| keys[*at].akey).collect())
        };
        for (group, result, _) in self.run("remove", groups, |at| &keys[at], make, &self.deadline())? {
            match result {
                Ok(()) | Err(code::ABSENT) => {}
                Err(number) => {
                    return Err(Stop::Failed(number).into_error("remove", self.uri(&keys[group.members[0]])));
                }
            }
        }
        Ok(())
    }
}
