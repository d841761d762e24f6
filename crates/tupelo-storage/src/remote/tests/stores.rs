//! Real servers on 127.0.0.1: S3 (versitygw), GCS (fake-gcs-server), Azure (azurite) and HTTP (nginx).
//!
//! Where a server is not installed, its tests do not run.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use object_store::ClientOptions;
use object_store::azure::{AzureAccessKey, AzureAuthorizer, AzureCredential};
use object_store::client::{HttpConnector, HttpRequestBody};

use super::bytes;
use super::server::cutting_proxy;
use crate::error::{Error, ErrorKind};
use crate::laws::{SinkCase, object_laws, object_source_laws, sink_laws, source_laws};
use crate::net::{Options, run};
use crate::objects::{self, Condition, NewObject, ObjectRange, ObjectSink};
use crate::remote::client::{Connector, Purpose, Transport, client};
use crate::remote::object::Object;
use crate::remote::upload::UploadSink;
use crate::remote::{create, list, object, open};
use crate::source::ByteSource;

/// Maximum time until a server accepts connections.
const START: Duration = Duration::from_secs(20);
/// The smallest part that S3 takes.
const SMALL_PART: usize = 5 << 20;

/// A server process, which ends with this value.
struct Running {
    child: Child,
    port: u16,
    folder: tempfile::TempDir,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts a server on a free port. `command` gets the port and an empty folder. None if it is not installed.
fn start(name: &str, store: &str, command: impl Fn(&mut Command, u16, &Path)) -> Option<Running> {
    let program = crate::tests::server(name, &format!("{store} in remote::tests::stores"))?;
    // Another process may take the port before the server does.
    for _ in 0..5 {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let folder = tempfile::tempdir().unwrap();
        let mut process = Command::new(&program);
        command(&mut process, port, folder.path());
        let child = process.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let mut running = Running { child, port, folder };
        let since = Instant::now();
        while since.elapsed() < START && running.child.try_wait().unwrap().is_none() {
            if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                return Some(running);
            }
            thread::sleep(Duration::from_millis(20));
        }
    }
    panic!("{name} does not start");
}

/// A store with an empty bucket `box`.
struct TestStore {
    server: Running,
    options: Options,
    url: &'static str,
}

fn s3() -> Option<TestStore> {
    let server = start("versitygw", "S3", |command, port, folder| {
        fs::create_dir_all(folder.join("data/box")).unwrap();
        command.args(["--access", "user", "--secret", "hidden-secret", "--quiet", "--port"]);
        command.arg(format!("127.0.0.1:{port}")).arg("posix").arg(folder.join("data"));
    })?;
    let options = [
        ("aws_endpoint_url", format!("http://127.0.0.1:{}", server.port)),
        ("aws_access_key_id", "user".to_owned()),
        ("aws_secret_access_key", "hidden-secret".to_owned()),
        ("aws_region", "us-east-1".to_owned()),
    ];
    Some(TestStore { options: Options::new(options).unwrap(), server, url: "s3://box" })
}

fn gcs() -> Option<TestStore> {
    let server = start("fake-gcs-server", "GCS", |command, port, folder| {
        fs::create_dir_all(folder.join("data/box")).unwrap();
        command.args(["-scheme", "http", "-host", "127.0.0.1", "-backend", "memory", "-port", &port.to_string()]);
        command.arg("-public-host").arg(format!("127.0.0.1:{port}"));
        command.arg("-external-url").arg(format!("http://127.0.0.1:{port}"));
        command.arg("-data").arg(folder.join("data"));
    })?;
    let base = format!("http://127.0.0.1:{}", server.port);
    let options = Options::new([("google_base_url", base), ("anonymous", "true".to_owned())]).unwrap();
    Some(TestStore { options, server, url: "gs://box" })
}

fn azure() -> Option<TestStore> {
    let server = start("azurite-blob", "Azure", |command, port, folder| {
        command.args(["--silent", "--inMemoryPersistence", "--skipApiVersionCheck", "--disableTelemetry"]);
        command.args(["--blobHost", "127.0.0.1", "--blobPort", &port.to_string()]).current_dir(folder);
    })?;
    // The account and the key that all emulators have.
    let key = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
    let options = [
        ("azure_storage_account_name", "devstoreaccount1".to_owned()),
        ("azure_storage_account_key", key.to_owned()),
        ("azure_storage_endpoint", format!("http://127.0.0.1:{}/devstoreaccount1", server.port)),
    ];
    let request =
        http::Request::put(format!("http://127.0.0.1:{}/devstoreaccount1/box?restype=container", server.port))
            .header("content-length", "0")
            .body(HttpRequestBody::empty());
    let mut request = request.unwrap();
    let key = AzureCredential::AccessKey(AzureAccessKey::try_new(key).unwrap());
    AzureAuthorizer::new(&key, "devstoreaccount1").try_authorize(&mut request).unwrap();
    let client = Connector(Transport::new(&Options::default())).connect(&ClientOptions::new()).unwrap();
    run(async move { Ok(client.execute(request).await.unwrap()) }).unwrap();
    Some(TestStore { options: Options::new(options).unwrap(), server, url: "az://box" })
}

impl TestStore {
    fn put(&self, key: &str, content: &[u8]) {
        if self.url.starts_with("gs:") {
            // The server has uploads in its JSON dialect only.
            let mut url: reqwest::Url = format!("http://127.0.0.1:{}", self.server.port).parse().unwrap();
            url.set_path("/upload/storage/v1/b/box/o");
            url.query_pairs_mut().append_pair("uploadType", "media").append_pair("name", key);
            let request =
                client(&Transport::new(&Options::default()), Purpose::Web).unwrap().post(url).body(content.to_vec());
            let status = run(async move { Ok(request.send().await.unwrap().status()) }).unwrap();
            assert!(status.is_success(), "{status}");
            return;
        }
        let mut sink = create(&self.url(key), &self.options).unwrap();
        sink.append(content).unwrap();
        sink.commit().unwrap();
    }

    fn url(&self, key: &str) -> String {
        format!("{}/{key}", self.url)
    }

    fn check_reading(&self) {
        self.reads();
        self.lists();
        self.notices_changes();
    }

    fn reads(&self) {
        for size in [0, 1, 65_537, 3_000_000] {
            let content = bytes(size);
            self.put("a/b c+d%20é.root", &content);
            let source = open(&self.url("a/b c+d%20é.root"), &self.options).unwrap();
            assert_eq!(source.to_string(), self.url("a/b c+d%20é.root"));
            source_laws(&source, &content);
        }
        let error = open(&self.url("a/missing"), &self.options).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
        assert!(!error.to_string().contains("hidden-secret"), "{error}");
    }

    fn lists(&self) {
        for key in ["dir/x", "dir/sub/y", "dir/sub/z", "dirty"] {
            self.put(key, b"content");
        }
        let listed = |key: &str| -> Vec<(String, Option<u64>)> {
            list(&self.url(key), &self.options).unwrap().into_iter().map(|entry| (entry.url, entry.size)).collect()
        };
        let expected = vec![(self.url("dir/sub/"), None), (self.url("dir/x"), Some(7))];
        assert_eq!(listed("dir/"), expected);
        assert_eq!(listed("dir"), expected);
        assert_eq!(listed("dir/x"), [(self.url("dir/x"), Some(7))]);
        assert!(listed("").contains(&(self.url("dirty"), Some(7))));
        let error = list(&self.url("nowhere"), &self.options).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    }

    fn notices_changes(&self) {
        self.put("changing", &bytes(300_000));
        let source = open(&self.url("changing"), &self.options).unwrap();
        self.put("changing", &bytes(300_001)[1..]);
        let error = source.read_range(100_000..110_000).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Changed, "{error}");
    }

    fn namespace(&self, folder: &str) -> Arc<dyn ObjectSink> {
        let uri = format!("ntpl+{}", self.url(folder));
        let (namespace, key) = objects::sink(&format!("{uri}x"), &self.options).unwrap();
        assert_eq!((namespace.to_string(), key), (uri, "x".to_owned()));
        namespace
    }

    fn reads_objects(&self) {
        // The emulator of Azure has an invalid answer to a range of an empty object, so that is not the first one.
        let objects = [("3+%20é", 40_000), ("a b/1", 0), ("a b/2", 1)];
        let objects = objects.map(|(key, len)| (key.to_owned(), bytes(len)));
        for (key, content) in &objects {
            self.put(&format!("data sets/{key}"), content);
        }
        let namespace = self.namespace("data sets/");
        object_source_laws(&*namespace, &objects);
        let listed = namespace.list("a").unwrap();
        let listed: Vec<(&str, u64)> = listed.iter().map(|entry| (entry.key.as_str(), entry.bytes)).collect();
        assert_eq!(listed, [("a b/1", 0), ("a b/2", 1)]);
    }

    fn writes_objects(&self) {
        self.reads_objects();
        let number = AtomicUsize::new(0);
        object_laws(|| self.namespace(&format!("laws/{}/", number.fetch_add(1, Ordering::Relaxed))), false);

        // Large ones are uploaded in parts.
        let namespace = self.namespace("large/");
        let (large, traffic) = (Bytes::from(bytes(70_000_000)), namespace.traffic().unwrap());
        let pieces = vec![large.slice(..1_000_000), large.slice(1_000_000..)];
        let small = NewObject { key: "small".to_owned(), pieces: vec![Bytes::from_static(b"small")] };
        namespace.put(&[NewObject { key: "a/large".to_owned(), pieces }, small]).unwrap();
        assert_eq!((traffic.puts(), traffic.sent_bytes()), (2, 70_000_005));
        assert!(traffic.requests() >= 10, "{} requests", traffic.requests());
        let whole = ObjectRange { key: "a/large".into(), range: 0..70_000_000 };
        assert!(namespace.get_ranges(&[whole]).unwrap()[0] == large);

        // In a bucket without folders too.
        let uri = format!("ntpl+{}/", self.url);
        namespace.put(&[NewObject { key: "x.objects/1".to_owned(), pieces: vec![] }]).unwrap();
        namespace.publish("x", "anchor".into(), &Condition::Absent).unwrap();
        let listed = |uri: &str| -> Vec<(String, Option<u64>)> {
            objects::list(uri, &self.options).unwrap().into_iter().map(|entry| (entry.url, entry.size)).collect()
        };
        let expected = [(format!("{uri}large/a/"), None), (format!("{uri}large/x"), Some(6))];
        assert_eq!(listed(&format!("{uri}large/")), expected);
        assert_eq!(listed(&format!("{uri}large")), expected);
        assert_eq!(listed(&format!("{uri}large/x")), expected[1..]);
        assert!(listed(&uri).contains(&(format!("{uri}large/"), None)));
        for missing in ["nowhere", "nowhere/", "large/small"] {
            let error = objects::list(&format!("{uri}{missing}"), &self.options).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
        }
    }

    fn writes(&self) {
        let mut numbers = 0..;
        // Cases must not share objects, because S3 keeps unfinished uploads by name.
        let number = std::cell::RefCell::new(&mut numbers);
        sink_laws(|old| {
            let url = self.url(&format!("out/{}", number.borrow_mut().next().unwrap()));
            if let Some(old) = old {
                let mut sink = create(&url, &self.options).unwrap();
                sink.append(old).unwrap();
                sink.commit().unwrap();
            }
            let Ok(Object::Store(object)) = object(&url, &self.options) else { panic!("{url} is in a store") };
            let sink = UploadSink::new(object, url.clone(), self.options.limits(), SMALL_PART);
            let options = self.options.clone();
            let content = move || {
                let read = open(&url, &options).and_then(|source| source.read_range(0..source.size()?));
                match read {
                    Err(error) if error.is_not_found() => None,
                    read => Some(read.map(Vec::from).unwrap()),
                }
            };
            SinkCase::new(sink, content).streamed(SMALL_PART as u64)
        });
        // Between the first part and the last one, the bytes are already sent.
        let Ok(Object::Store(object)) = object(&self.url("sent"), &self.options) else { panic!("in a store") };
        let mut sink = Box::new(UploadSink::new(object, "sent".to_owned(), self.options.limits(), SMALL_PART));
        crate::ByteSink::append(&mut *sink, &vec![1; 3 * SMALL_PART]).unwrap();
        let error = crate::ByteSink::patch(&mut *sink, 2 * SMALL_PART as u64, b"x").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotSupported, "{error}");
        assert!(crate::ByteSink::commit(sink).is_err());
        assert!(open(&self.url("sent"), &self.options).is_err_and(|error| error.is_not_found()));
    }
}

#[test]
fn s3_keeps_the_laws() {
    let Some(store) = s3() else { return };
    store.check_reading();
    store.writes();
    store.writes_objects();
    let uploads = store.server.folder.path().join("data/box/.sgwtmp/multipart");
    let left = fs::read_dir(&uploads)
        .map_or(0, |folders| folders.filter_map(|folder| fs::read_dir(folder.ok()?.path()).ok()).flatten().count());
    assert_eq!(left, 0, "no upload is left behind in {}", uploads.display());
}

#[test]
fn uploads_and_reads_survive_cut_connections() {
    let Some(store) = s3() else { return };
    let proxy = cutting_proxy(store.server.port, 1_000_000);
    let options = Options::new([
        ("aws_endpoint_url", format!("http://127.0.0.1:{proxy}").as_str()),
        ("aws_access_key_id", "user"),
        ("aws_secret_access_key", "hidden-secret"),
    ]);
    let options = options.unwrap();
    let content = bytes(70_000_000);
    let mut sink = create("s3://box/x", &options).unwrap();
    for piece in content.chunks(3_000_000) {
        sink.append(piece).unwrap();
    }
    sink.patch(7, &content[7..100]).unwrap();
    sink.commit().unwrap();
    let source = open("s3://box/x", &options).unwrap();
    assert!(source.read_range(0..70_000_000).unwrap() == content);
}

#[test]
fn wrong_s3_keys_are_refused_without_showing_them() {
    let Some(store) = s3() else { return };
    let endpoint = format!("http://127.0.0.1:{}", store.server.port);
    let options = Options::new([
        ("aws_endpoint_url", endpoint.as_str()),
        ("aws_access_key_id", "user"),
        ("aws_secret_access_key", "wrong-secret"),
    ]);
    let error = open("s3://box/x", &options.unwrap()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
    assert!(error.to_string().contains("SignatureDoesNotMatch"), "{error}");
    assert!(!error.to_string().contains("wrong-secret"), "{error}");
}

#[test]
fn gcs_keeps_the_laws_of_a_source() {
    // The server has no uploads of the kind that object_store uses, which is that of S3.
    if let Some(store) = gcs() {
        store.check_reading();
        store.reads_objects();
    }
}

#[test]
fn azure_keeps_the_laws() {
    let Some(store) = azure() else { return };
    store.check_reading();
    store.writes();
    store.writes_objects();
}

#[test]
fn nginx_keeps_the_laws() {
    let server = start("nginx", "HTTP", |command, port, folder| {
        let root = folder.display();
        let paths: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map(|name| format!("{name}_temp_path {root}/{name};"))
            .concat();
        let config = format!(
            "daemon off; master_process off; pid {root}/pid; error_log {root}/errors; events {{}} \
             http {{ access_log off; {paths} server {{ listen 127.0.0.1:{port}; root {root}/data; \
             client_max_body_size 0; dav_methods PUT; }} }}"
        );
        fs::create_dir(folder.join("data")).unwrap();
        fs::write(folder.join("config"), config).unwrap();
        command.arg("-p").arg(folder).arg("-e").arg(folder.join("errors")).arg("-c").arg(folder.join("config"));
    });
    let Some(server) = server else { return };
    let file = server.folder.path().join("data/x.root");
    let url = format!("http://127.0.0.1:{}/x.root", server.port);
    for size in [0, 1, 65_537, 3_000_000] {
        let content = bytes(size);
        fs::write(&file, &content).unwrap();
        source_laws(&open(&url, &Options::default()).unwrap(), &content);
    }
    let source = open(&url, &Options::default()).unwrap();
    // Another size: nginx makes ETags of size and time.
    fs::write(&file, bytes(2_000_000)).unwrap();
    assert_eq!(source.read_range(100_000..110_000).unwrap_err().kind(), ErrorKind::Changed);
    fs::remove_file(&file).unwrap();
    let missing: Error = open(&url, &Options::default()).unwrap_err();
    assert!(missing.is_not_found(), "{missing}");
}
