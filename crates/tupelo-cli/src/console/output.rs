//! Output of data: stdout, another stream, or a file that appears under its name when it is complete.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use tupelo::storage::local::Replacement;
use tupelo::storage::local_path;

use crate::failure::Failure;
use crate::inputs::Inputs;

/// Maximum number of symbolic links in a chain, as in Linux.
const MAX_LINKS: usize = 40;
/// Folders with the open files of this process by number.
const OPEN_FILES: [&str; 2] = ["/proc/self/fd", "/dev/fd"];

/// Whether the pipe of an output was closed, which ends the command but is not an error.
static PIPE_IS_CLOSED: AtomicBool = AtomicBool::new(false);

/// Whether the pipe of an output was closed.
pub(crate) fn pipe_is_closed() -> bool {
    PIPE_IS_CLOSED.load(Ordering::Relaxed)
}

/// A stream or file that data are written to.
pub(crate) struct Output {
    inner: Box<dyn Write + Send>,
}

impl Output {
    pub(crate) fn stdout() -> Self {
        Self { inner: Box::new(io::stdout()) }
    }

    /// Opens stdout (`None` or `-`) or a path, which must not be one of `inputs`. Links are followed. A regular file is
    /// replaced by [`Pending::publish`] when it is complete. Other files (pipes, devices, open files of this process
    /// such as `/dev/stdout`) are written directly.
    pub(crate) fn open(target: Option<&Path>, inputs: &Inputs) -> Result<(Self, Option<Pending>), Failure> {
        let Some(path) = target.filter(|path| path.as_os_str() != "-") else {
            return Ok((Self::stdout(), None));
        };
        if path.to_str().is_some_and(|name| local_path(name).is_none()) {
            let refused = Failure::usage("this command writes only to local files and standard output");
            return Err(refused.with_hint("`tupelo copy` writes ROOT files to URLs"));
        }
        inputs.check_output(path)?;
        let failed = |e: io::Error| Failure::new(format_args!("cannot create {}: {e}", path.display()));
        match Goal::of(path).map_err(failed)? {
            Goal::StandardOutput => Ok((Self::stdout(), None)),
            Goal::StandardError => Ok((Self { inner: Box::new(io::stderr()) }, None)),
            Goal::Stream => {
                // FS: the output of the user. Appends, because the shell may have opened the same file.
                let stream = std::fs::OpenOptions::new().append(true).open(path).map_err(failed)?;
                Ok((Self { inner: Box::new(stream) }, None))
            }
            Goal::File(target) => Self::replace(target).map_err(failed),
        }
    }

    /// Creates a file that gets the name of the target when it is complete.
    fn replace(target: PathBuf) -> io::Result<(Self, Option<Pending>)> {
        // A rename needs permission only for the folder, but a read-only file must not be replaced.
        // FS: the storage of the engine is for ROOT files, and this is a text, Arrow or Parquet file.
        let replaced = match std::fs::OpenOptions::new().write(true).open(&target) {
            Ok(replaced) => Some(replaced.metadata()?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let (file, complete) = Replacement::create(target.clone())?;
        if let Some(replaced) = replaced {
            file.set_permissions(replaced.permissions())?;
        }
        Ok((Self { inner: Box::new(file) }, Some(Pending { complete, target })))
    }

    fn watch<T>(result: io::Result<T>) -> io::Result<T> {
        if let Err(error) = &result
            && error.kind() == io::ErrorKind::BrokenPipe
        {
            PIPE_IS_CLOSED.store(true, Ordering::Relaxed);
        }
        result
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Self::watch(self.inner.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        Self::watch(self.inner.flush())
    }
}

/// A complete file without its name, which is removed on drop.
pub(crate) struct Pending {
    complete: Replacement,
    target: PathBuf,
}

impl Pending {
    pub(crate) fn publish(self) -> Result<(), Failure> {
        let failed = |e: io::Error| Failure::new(format_args!("cannot write {}: {e}", self.target.display()));
        self.complete.publish().map_err(failed)
    }
}

/// The target of a chain of links.
#[derive(Debug, PartialEq, Eq)]
enum Goal {
    StandardOutput,
    StandardError,
    /// A pipe, device or open file, which cannot be replaced.
    Stream,
    /// A regular or new file.
    File(PathBuf),
}

impl Goal {
    fn of(path: &Path) -> io::Result<Self> {
        let mut goal = path.to_owned();
        for _ in 0..MAX_LINKS {
            // Such a name is also a link, but its target must not be replaced while another program has it open.
            if let Some(name) = open_file(&goal) {
                return Ok(match name {
                    "1" => Self::StandardOutput,
                    "2" => Self::StandardError,
                    _ => Self::Stream,
                });
            }
            match goal.read_link() {
                Ok(next) => goal = folder_of(&goal).join(next),
                Err(_) => break,
            }
        }
        match goal.metadata() {
            Ok(metadata) if !metadata.is_file() => Ok(Self::Stream),
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(Self::File(goal)),
        }
    }
}

/// The number of an open file of this process, for a path such as `/dev/fd/1`.
fn open_file(path: &Path) -> Option<&str> {
    let name = path.file_name()?.to_str().filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()))?;
    let folder = folder_of(path).canonicalize().ok()?;
    OPEN_FILES.iter().any(|known| Path::new(known).canonicalize().is_ok_and(|known| known == folder)).then_some(name)
}

/// The folder of a file, `.` without one.
fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_are_followed_to_files_and_streams() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        for (link, to) in [
            ("inner", "file"),
            ("outer", "inner"),
            ("circle", "circle"),
            ("out", "/proc/self/fd/1"),
            ("err", "/dev/fd/2"),
            ("fds", "/dev/fd"),
            ("null", "/dev/null"),
        ] {
            symlink(to, path(link)).unwrap();
        }
        let goal = |name: &str| Goal::of(&path(name));
        assert_eq!(goal("outer").unwrap(), Goal::File(path("file")));
        assert_eq!(goal("new").unwrap(), Goal::File(path("new")));
        assert_eq!(goal("out").unwrap(), Goal::StandardOutput);
        assert_eq!(goal("fds/1").unwrap(), Goal::StandardOutput);
        assert_eq!(goal("err").unwrap(), Goal::StandardError);
        assert_eq!(goal("fds/0").unwrap(), Goal::Stream);
        assert_eq!(goal("null").unwrap(), Goal::Stream);
        assert_eq!(goal(".").unwrap(), Goal::Stream);
        goal("circle").unwrap_err();
    }
}
