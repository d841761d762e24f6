//! Opens containers, and runs the calls of a set of values.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::code;
use super::connection::{Connection, Deadline, NoObject, Refused, Stop, Target, library, too_demanding, unknown};
use super::ffi::{Call, Object};
use super::key::{DaosKey, ObjectName};
use super::place::DaosPlace;
use super::plan::{Group, Requests};
use crate::error::{Error, ErrorKind, Result};
use crate::net::Options;
use crate::source::Traffic;

/// The access to a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
}

/// An open container. Clones share its connection. `Display` gives its URI, which precedes keys in messages.
#[derive(Debug, Clone)]
pub(crate) struct DaosContainer {
    connection: Arc<Connection>,
    base: Arc<str>,
    requests: Requests,
    total: Duration,
    traffic: Arc<Traffic>,
}

impl fmt::Display for DaosContainer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.base)
    }
}

/// The call of a group of values, and its result.
pub(super) type Answer<C> = (Group, Result<(), i32>, C);

impl DaosContainer {
    /// Opens a container; with the option `daos_create`, one that is written is created if it does not exist. `base`
    /// precedes keys in messages, and `uri` is what errors name.
    ///
    /// # Errors
    /// [`ErrorKind::NotSupported`] without libdaos, [`ErrorKind::NotFound`] if the pool or container does not exist,
    /// and errors of DAOS.
    pub(crate) fn open(
        place: &DaosPlace,
        base: &str,
        options: &Options,
        access: Access,
        action: &'static str,
        uri: &str,
    ) -> Result<Self> {
        let is_writable = access == Access::Write;
        let path = options.get("daos_library").filter(|path| !path.is_empty());
        let library = library(path, action, uri)?;
        let total = options.limits().total;
        let target =
            Target { library: path.map(str::to_owned), place: place.clone(), is_writable, process: std::process::id() };
        let creates = is_writable && options.creates_containers();
        let connection = Connection::shared(library, &target, creates, &Deadline::after(total));
        let connection = connection.map_err(|refused| not_opened(refused, place, is_writable, action, uri))?;
        let requests = options.get("daos_requests").and_then(Requests::parse).unwrap_or_default();
        Ok(Self { connection, base: base.into(), requests, total, traffic: Arc::default() })
    }

    /// Counts of calls and bytes since it was opened. A request is one call of libdaos.
    pub(crate) fn traffic(&self) -> &Arc<Traffic> {
        &self.traffic
    }

    pub(super) fn requests(&self) -> Requests {
        self.requests
    }

    pub(super) fn connection(&self) -> &Connection {
        &self.connection
    }

    /// When an operation that begins now ends without a result.
    pub(super) fn deadline(&self) -> Deadline {
        Deadline::after(self.total)
    }

    /// The URI of a value.
    pub(super) fn uri(&self, key: &DaosKey) -> String {
        format!("{}{key}", self.base)
    }

    /// Makes a call for each group of values, by the option `daos_requests`. `key` gives the key of a value, for errors.
    pub(super) fn run<'a, C: Call>(
        &self,
        action: &'static str,
        groups: Vec<Group>,
        key: impl Fn(usize) -> &'a DaosKey,
        mut make: impl FnMut(&Group, Arc<Object>) -> C,
        deadline: &Deadline,
    ) -> Result<Vec<Answer<C>>> {
        let Some(first) = groups.first().map(|group| key(group.members[0])) else { return Ok(Vec::new()) };
        let objects = self.objects(action, &groups, &key, deadline)?;
        let mut calls = Vec::with_capacity(groups.len());
        for group in &groups {
            let object = objects.get(&group.object).cloned();
            // All were opened.
            let object = object.ok_or_else(|| Stop::Failed(code::ABSENT).into_error(action, self.uri(first)))?;
            calls.push(make(group, object));
        }
        let (count, sent) = (calls.len(), Instant::now());
        calls.iter().for_each(|_| self.traffic.add_request());
        let results = match self.requests {
            Requests::Blocking => self.connection.run_blocking(calls, deadline),
            Requests::Batch | Requests::Queue => self.connection.run(calls, deadline),
        };
        let time = match self.requests {
            Requests::Blocking => sent.elapsed(),
            Requests::Batch | Requests::Queue => {
                sent.elapsed().saturating_mul(u32::try_from(count).unwrap_or(u32::MAX))
            }
        };
        self.traffic.add_time(time);
        let results = results.map_err(|stop| stop.into_error(action, self.uri(first)))?;
        Ok(groups.into_iter().zip(results).map(|(group, (result, call))| (group, result, call)).collect())
    }

    /// The open objects of some groups.
    fn objects<'a>(
        &self,
        action: &'static str,
        groups: &[Group],
        key: impl Fn(usize) -> &'a DaosKey,
        deadline: &Deadline,
    ) -> Result<HashMap<ObjectName, Arc<Object>>> {
        let mut places: HashMap<&ObjectName, usize> = HashMap::new();
        let mut names: Vec<&ObjectName> = Vec::new();
        let mut members: Vec<usize> = Vec::new();
        for group in groups {
            places.entry(&group.object).or_insert_with(|| {
                names.push(&group.object);
                members.push(group.members[0]);
                names.len() - 1
            });
        }
        self.connection.objects(&names, deadline).map_err(|(at, why)| {
            let uri = self.uri(key(members[at]));
            let refused = |reason: String| Error::new(ErrorKind::NotSupported, action, &uri, reason);
            let class = &names[at].0;
            match why {
                NoObject::UnknownClass => refused(unknown(class)),
                NoObject::RefusedClass(code::INVALID) => refused(too_demanding(class)),
                NoObject::RefusedClass(number) => Stop::Failed(number).into_error(action, uri),
                NoObject::Stopped(stop) => stop.into_error(action, uri),
            }
        })
    }
}

#[cold]
fn not_opened(
    refused: Refused,
    DaosPlace { pool, container }: &DaosPlace,
    is_writable: bool,
    action: &'static str,
    uri: &str,
) -> Error {
    let (what, stop) = match refused {
        Refused::Pool(Stop::Failed(code::ABSENT)) => {
            let reason = format!("the DAOS pool {pool} does not exist");
            return Error::new(ErrorKind::NotFound, action, uri, reason);
        }
        Refused::Container(Stop::Failed(code::ABSENT)) => {
            let hint = match is_writable {
                true => "; the storage option daos_create=true creates it",
                false => "",
            };
            let reason = format!("the container {container} does not exist in the DAOS pool {pool}{hint}");
            return Error::new(ErrorKind::NotFound, action, uri, reason);
        }
        Refused::Pool(stop) => ("pool", stop),
        Refused::Container(stop) => ("container", stop),
    };
    match stop {
        Stop::Failed(_) => {
            let error = stop.into_error(action, uri.to_owned());
            error.with_reason(&format!("DAOS reported this for the {what}"))
        }
        _ => stop.into_error(action, uri.to_owned()),
    }
}
