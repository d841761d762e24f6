//! The files that branches of a tree name because their baskets are there (`TBranch::SetFile`).

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tupelo_format::container;
use tupelo_storage::adapter::{Meter, MeteredSource};
use tupelo_storage::{ByteSource, Storage, display_name, local_path};

use super::super::File;
use crate::{Error, ErrorKind, Result};

/// More files of the branches of one file are refused.
const MAX_OTHER_FILES: usize = 256;

/// How a file was opened, and so how those that it names are.
#[derive(Debug, Clone)]
pub struct Origin {
    name: String,
    storage: Storage,
}

impl Origin {
    /// A file by its name, and how it is opened.
    pub fn new(name: &str, storage: &Storage) -> Self {
        Self { name: name.to_owned(), storage: storage.clone() }
    }

    /// Opens a file that this one names.
    fn open(&self, name: &str) -> Result<Arc<dyn ByteSource>> {
        let place = place(&self.name, name)?;
        let is_stranger = local_path(&self.name).is_some() && local_path(&place).is_none();
        // A file must not choose to whom credentials are sent.
        let storage = if is_stranger { self.storage.without_credentials() } else { self.storage.clone() };
        let source = storage.open(&place)?;
        let check = || File::open(Arc::clone(&source))?.attempt(container::read_header).map(drop);
        check().map_err(|error| error.within(display_name(&place)))?;
        Ok(source)
    }
}

/// The other files of a file and its clones. Each is opened when it is needed, once.
#[derive(Debug, Default)]
pub(in crate::source) struct OtherFiles {
    /// Unknown for bytes in memory and objects of the caller.
    origin: Option<Origin>,
    meter: Option<Arc<Meter>>,
    opened: Mutex<HashMap<String, Arc<dyn ByteSource>>>,
    /// Servers that could not be reached, and why: asking one again for each branch would take the time of all attempts.
    unreached: Mutex<HashMap<String, String>>,
}

impl OtherFiles {
    pub(in crate::source) fn of(origin: Origin) -> Self {
        Self { origin: Some(origin), ..Self::default() }
    }

    /// The same files, whose reads are counted.
    pub(in crate::source) fn with_meter(&self, meter: &Arc<Meter>) -> Self {
        Self { origin: self.origin.clone(), meter: Some(Arc::clone(meter)), ..Self::default() }
    }

    fn opened(&self) -> MutexGuard<'_, HashMap<String, Arc<dyn ByteSource>>> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The file with a name.
    pub(in crate::source) fn open(&self, name: &str) -> Result<Arc<dyn ByteSource>> {
        let mut opened = self.opened();
        if let Some(known) = opened.get(name) {
            return Ok(Arc::clone(known));
        }
        let open = || {
            if opened.len() >= MAX_OTHER_FILES {
                return Err(Error::limit(format!("branches are in more than {MAX_OTHER_FILES} files")));
            }
            let unknown = || Error::unsupported("it cannot be found, because this file was not opened by path or URL");
            let source = self.open_reached(self.origin.as_ref().ok_or_else(unknown)?, name)?;
            Ok(match &self.meter {
                Some(meter) => Arc::new(MeteredSource::new(source, meter)),
                None => source,
            })
        };
        let source = open().map_err(|error: Error| {
            // A name in a file may have a password, like one that the user gives.
            error.within(format!("its baskets are in another file, '{}'", display_name(name)))
        })?;
        opened.insert(name.to_owned(), Arc::clone(&source));
        Ok(source)
    }

    fn open_reached(&self, origin: &Origin, name: &str) -> Result<Arc<dyn ByteSource>> {
        let Some(server) = server(&place(&origin.name, name)?) else { return origin.open(name) };
        let mut unreached = self.unreached.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(why) = unreached.get(&server) {
            return Err(Error::unsupported(format!("{server} could not be reached for another file: {why}")));
        }
        origin.open(name).inspect_err(|error| {
            if error.kind() == ErrorKind::Storage {
                unreached.insert(server, error.to_string());
            }
        })
    }

    /// The file with a name, if it is open.
    pub(in crate::source) fn known(&self, name: &str) -> Option<Arc<dyn ByteSource>> {
        self.opened().get(name).cloned()
    }
}

/// Path or URL of the file that `own` calls `name` (`TBranch::GetRealFileName`). ROOT looks for a relative name in the folder of
/// a file that was opened by an absolute path, and else in the working directory, where its writer had it: here it is also
/// found beside the file.
///
/// # Errors
/// Unsupported for a file on a server that names anything but files in its own folder or below: a stranger's file could make
/// its reader open any other.
fn place(own: &str, name: &str) -> Result<String> {
    match local_path(own) {
        Some(own) if !Path::new(name).is_absolute() && !name.contains(":/") => {
            let beside = own.parent().unwrap_or(Path::new("")).join(name);
            let is_here = !beside.is_file() && !own.is_absolute() && Path::new(name).is_file();
            Ok(if is_here { name.to_owned() } else { beside.to_string_lossy().into_owned() })
        }
        Some(_) => Ok(name.to_owned()),
        None => place_on_server(own, name),
    }
}

/// The server of a URL, without user and password; `None` for local paths.
fn server(place: &str) -> Option<String> {
    let (scheme, rest) = place.split_once("://").filter(|_| local_path(place).is_none())?;
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    Some(format!("{scheme}://{}", host.rsplit('@').next().unwrap_or_default()))
}

fn place_on_server(own: &str, name: &str) -> Result<String> {
    // Names of objects in stores may have a question mark.
    let (scheme, _) = own.split_once("://").unwrap_or_default();
    let is_store = !scheme.starts_with("http") && !scheme.contains("root");
    let (url, parameters) = match own.find(['?', '#']) {
        Some(end) if !is_store => own.split_at(end),
        _ => (own, ""),
    };
    let folder = url.rsplit_once('/').map_or("", |(folder, _)| folder);
    let below = name.strip_prefix(folder).and_then(|rest| rest.strip_prefix('/')).unwrap_or(name);
    let is_plain = |part: &str| !part.is_empty() && part != "." && part != "..";
    let has_host = folder.split_once("://").is_some_and(|(_, host)| !host.is_empty());
    let is_relative = has_host && below.split('/').all(is_plain) && !below.contains([':', '\\']);
    // In a URL these have another meaning, and this meaning differs between servers.
    if !is_relative || !is_store && below.contains(['?', '#', '%', '@']) {
        let what = "a file on a server may only name files in its folder or below; copy both to one folder and open them there";
        return Err(Error::unsupported(what));
    }
    Ok(format!("{folder}/{below}{parameters}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_relative_to_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let own = folder.path().join("main.root");
        let beside = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
        let own = own.to_str().unwrap();
        assert_eq!(place(own, "other.root").unwrap(), beside("other.root"));
        assert_eq!(place(own, "../other.root").unwrap(), beside("../other.root"));
        assert_eq!(place(&format!("file://{own}"), "a/b.root").unwrap(), beside("a/b.root"));
        assert_eq!(place("sub/main.root", "other.root").unwrap(), "sub/other.root");
        assert_eq!(place("main.root", "other.root").unwrap(), "other.root");
        // Where there is none beside the file, one from here is the one that its writer had.
        assert_eq!(place("sub/main.root", "Cargo.toml").unwrap(), "Cargo.toml");
        assert_eq!(place(own, "Cargo.toml").unwrap(), beside("Cargo.toml"));
        for name in ["/data/other.root", "root://host//other.root", "https://host/other.root"] {
            assert_eq!(place(own, name).unwrap(), name);
        }
    }

    /// Defect: each branch of a file asked a server again that did not answer, for seven seconds each.
    #[test]
    fn servers_that_do_not_answer_are_asked_once() {
        let others = OtherFiles::of(Origin::new("main.root", &Storage::default()));
        let why = Mutex::new(HashMap::from([("http://host:1".to_owned(), "connection refused".to_owned())]));
        let others = OtherFiles { unreached: why, ..others };
        let error = others.open("http://user:secret@host:1/e01").unwrap_err().to_string();
        assert!(error.contains("http://host:1 could not be reached for another file: connection refused"), "{error}");
        // Regression: the name was shown as the file has it.
        assert!(error.contains("in another file, 'http://host:1/e01'") && !error.contains("secret"), "{error}");
        assert_eq!(server("root://host:1094//a/b"), Some("root://host:1094".to_owned()));
        assert_eq!(server("/data/a.root"), None);
    }

    #[test]
    fn files_on_servers_stay_in_their_folder() {
        for (own, name, found) in [
            ("https://host/a/main.root", "other.root", "https://host/a/other.root"),
            ("https://host/a/main.root?authz=x/y", "b/other.root", "https://host/a/b/other.root?authz=x/y"),
            ("https://host/a/main.root", "https://host/a/other.root", "https://host/a/other.root"),
            ("root://host//a/main.root", "root://host//a/b/other.root", "root://host//a/b/other.root"),
            ("s3://bucket/main?.root", "other?.root", "s3://bucket/other?.root"),
        ] {
            assert_eq!(place(own, name).unwrap(), found, "{own} {name}");
        }
        for own in ["https://host/a/main.root", "root://host//a/main.root", "s3://bucket/a/main.root"] {
            for name in [
                "/etc/passwd",
                "file:///etc/passwd",
                "file:x",
                "../other.root",
                "b/../../other.root",
                "..\\other.root",
                "https://other/a/other.root",
                "https://host/ab/other.root",
                "//host/other.root",
                "C:/other.root",
                "",
                ".",
            ] {
                let error = place(own, name).unwrap_err().to_string();
                assert!(error.contains("may only name files in its folder or below"), "{own} {name}: {error}");
            }
        }
        assert!(place("https://host", "other.root").is_err());
        for name in ["other.root?x", "%2e%2e/other.root", "a@b.root", "a#b"] {
            assert!(place("https://host/a/main.root", name).is_err(), "{name}");
        }
    }
}
