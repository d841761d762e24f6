//! Lists the values of an object.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::connection::{Deadline, Stop};
use super::container::DaosContainer;
use super::ffi::List;
use super::key::DaosKey;
use super::plan::Group;
use crate::error::{Error, ErrorKind, Result};

impl DaosContainer {
    /// The values of an object with their sizes in bytes: those of the dkeys that `is_wanted` accepts.
    ///
    /// # Errors
    /// [`ErrorKind::Other`] for keys that are not integers; errors of DAOS.
    pub(crate) fn list(
        &self,
        class: &Arc<str>,
        hi: u32,
        lo: u64,
        is_wanted: impl Fn(u64) -> bool,
    ) -> Result<Vec<(DaosKey, u64)>> {
        let deadline = self.deadline();
        let object = DaosKey { class: Arc::clone(class), hi, lo, dkey: 0, akey: 0 };
        let dkeys = self.listed(std::slice::from_ref(&object), false, &deadline)?;
        let with_dkey = |dkey| DaosKey { dkey, ..object.clone() };
        let dkeys: Vec<DaosKey> = dkeys.concat().into_iter().filter(|dkey| is_wanted(*dkey)).map(with_dkey).collect();
        self.list_dkeys(&dkeys, &deadline)
    }

    /// The values of one dkey with their sizes in bytes.
    ///
    /// # Errors
    /// As [`list`](Self::list).
    pub(crate) fn list_dkey(&self, dkey: &DaosKey) -> Result<Vec<(DaosKey, u64)>> {
        self.list_dkeys(std::slice::from_ref(dkey), &self.deadline())
    }

    fn list_dkeys(&self, dkeys: &[DaosKey], deadline: &Deadline) -> Result<Vec<(DaosKey, u64)>> {
        let mut keys = Vec::new();
        for (dkey, akeys) in dkeys.iter().zip(self.listed(dkeys, true, deadline)?) {
            keys.extend(akeys.into_iter().map(|akey| DaosKey { akey, ..dkey.clone() }));
        }
        let sizes = self.sizes_until(&keys.iter().collect::<Vec<_>>(), deadline)?;
        Ok(keys.into_iter().zip(sizes).filter(|(_, bytes)| *bytes > 0).collect())
    }

    /// The dkeys of objects, or the akeys of dkeys, in order.
    fn listed(&self, of: &[DaosKey], is_dkey: bool, deadline: &Deadline) -> Result<Vec<Vec<u64>>> {
        let mut found: Vec<Vec<u64>> = vec![Vec::new(); of.len()];
        let mut groups: Vec<Group> = of
            .iter()
            .enumerate()
            .map(|(at, key)| Group { object: key.object(), dkey: key.dkey, members: vec![at] })
            .collect();
        let mut begun: Vec<List> = Vec::new();
        while !groups.is_empty() {
            let mut again = begun.into_iter();
            let make = |group: &Group, object| {
                again.next().unwrap_or_else(|| List::new(object, is_dkey.then_some(group.dkey)))
            };
            let answers = self.run("list", groups, |at| &of[at], make, deadline)?;
            (groups, begun) = (Vec::new(), Vec::new());
            for (group, result, call) in answers {
                let at = group.members[0];
                result.map_err(|number| Stop::Failed(number).into_error("list", self.uri(&of[at])))?;
                if call.has_more() {
                    groups.push(group);
                    begun.push(call);
                    continue;
                }
                let keys = call.keys().ok_or_else(|| {
                    Error::new(ErrorKind::Other, "list", self.uri(&of[at]), "a key is not an 8-byte integer")
                })?;
                // Shards may report the same key.
                found[at] = keys.into_iter().collect::<BTreeSet<_>>().into_iter().collect();
            }
        }
        Ok(found)
    }
}
