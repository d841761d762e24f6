//! The `xrootd` server on this machine, for one test.

use std::fmt::Write as _;
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The user that the server runs as if the tests run as root, which it refuses.
const USER: &str = "daemon";
/// How long a server may take to start.
const START_ATTEMPTS: u32 = 200;
/// How often a server is started that crashes before it accepts connections, as one of 200 starts does.
const MAX_STARTS: u32 = 5;

/// Where plug-ins of the server are installed.
const PLUGIN_FOLDERS: [&str; 3] = ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64"];

/// A running server. It is stopped and its folder removed when it is dropped.
pub(super) struct Server {
    process: Child,
    port: u16,
    folder: tempfile::TempDir,
}

/// The program of the server, if it is installed.
fn program() -> Option<PathBuf> {
    crate::tests::server("xrootd", "XRootD in xrootd::tests::real and xrootd::tests::writing")
}

impl Server {
    /// Starts a server; none if it is not installed.
    pub(super) fn start() -> Option<Self> {
        Self::configured(|_| String::new())
    }

    /// Starts a server with more lines of configuration, which are made from its folder.
    pub(super) fn configured(more: impl Fn(&Path) -> String) -> Option<Self> {
        program().map(|_| Self::on_port(free_port(), tempfile::tempdir().unwrap(), more))
    }

    /// Starts a server that needs a plug-in which is packaged apart; none if that is not installed.
    pub(super) fn with_plugin(plugin: &str, more: impl Fn(&Path) -> String) -> Option<Self> {
        program()?;
        let found = PLUGIN_FOLDERS.iter().any(|folder| Path::new(folder).join(plugin).is_file());
        crate::tests::report(plugin, "XRootD tokens in xrootd::tests::real", found);
        if found { Self::configured(more) } else { None }
    }

    fn on_port(port: u16, folder: tempfile::TempDir, more: impl Fn(&Path) -> String) -> Self {
        let root = folder.path().to_owned();
        for name in ["data", "admin"] {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        let (data, admin) = (root.join("data"), root.join("admin"));
        let mut config = format!("xrd.port {port}\nall.export /\noss.localroot {}\n", data.display());
        writeln!(config, "all.adminpath {0}\nall.pidpath {0}\nxrd.network nodnr", admin.display()).unwrap();
        config += &more(&root);
        fs::write(root.join("xrootd.cfg"), config).unwrap();
        let mut server = Self { process: launch(&root), port, folder };
        server.wait();
        server
    }

    /// Waits until it accepts connections.
    fn wait(&mut self) {
        let mut starts = 1;
        for _ in 0..START_ATTEMPTS {
            if TcpStream::connect(("127.0.0.1", self.port)).is_ok() {
                return;
            }
            if let Some(status) = self.process.try_wait().unwrap() {
                // Without a code, a signal ended it.
                if status.code().is_none() && starts < MAX_STARTS {
                    (self.process, starts) = (launch(self.folder.path()), starts + 1);
                    continue;
                }
                panic!("xrootd: {status}\n{}", self.log());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("xrootd does not accept connections\n{}", self.log());
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// Where a file of the server lies on the disk.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join("data").join(name)
    }

    /// Writes a file and gives its URL.
    pub(super) fn put(&self, name: &str, bytes: &[u8]) -> String {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        own(self.folder.path());
        self.url(name)
    }

    pub(super) fn url(&self, name: &str) -> String {
        format!("root://127.0.0.1:{}//{name}", self.port)
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// Its folder, with its configuration.
    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Stops the server, as a crash would.
    pub(super) fn kill(&mut self) {
        // Errors mean that it has ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    /// Starts it again on the same port, after [`kill`](Self::kill).
    pub(super) fn restart(&mut self) {
        self.process = launch(self.folder.path());
        self.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

fn launch(root: &Path) -> Child {
    own(root);
    let log = fs::File::create(root.join("log")).unwrap();
    let mut command = Command::new(program().unwrap());
    command.arg("-c").arg(root.join("xrootd.cfg")).current_dir(root.join("admin"));
    command.env("XDG_CACHE_HOME", root.join("cache"));
    if is_root() {
        command.args(["-R", USER]);
    }
    let outputs = (log.try_clone().unwrap(), log);
    command.stdin(Stdio::null()).stdout(outputs.0).stderr(outputs.1).spawn().unwrap()
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Gives a folder to the user of the server.
fn own(root: &Path) {
    if is_root() {
        let status = Command::new("chown").args(["-R", USER]).arg(root).status().unwrap();
        assert!(status.success());
    }
}

fn free_port() -> u16 {
    TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port()
}
