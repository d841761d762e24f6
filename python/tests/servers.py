"""Real servers on free ports of 127.0.0.1: S3 (versitygw), GCS (fake-gcs-server), Azure (azurite), XRootD, HTTP
(nginx), and a proxy with latency (toxiproxy).

`make servers` installs them. The tests and `make bench ROWS=remote` start them.
"""

import base64
import contextlib
import hashlib
import hmac
import json
import os
import shutil
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from email.utils import formatdate
from pathlib import Path
from typing import NamedTuple

SERVERS = Path(__file__).parents[2] / "target" / "servers" / "bin"
START_SECONDS = 30
MAX_STARTS = 5
"""How often a server is started that crashes before it accepts connections: XRootD does in one of 200 starts."""


class NotInstalledError(Exception):
    """A program that is missing, with the way to install it."""


class Store(NamedTuple):
    """A folder on a server."""

    url: str
    """Ends with a slash."""
    options: dict[str, str]
    port: int
    log: Path
    """Where the server notes its requests."""

    @property
    def arguments(self) -> list[str]:
        """The options of the command."""
        return [part for name, value in self.options.items() for part in ("--storage-option", f"{name}={value}")]

    def through(self, port: int) -> "Store":
        """The same folder on another port, as that of a proxy."""
        old, new = f"127.0.0.1:{self.port}", f"127.0.0.1:{port}"
        options = {name: str(value).replace(old, new) for name, value in self.options.items()}
        return self._replace(url=self.url.replace(old, new), options=options, port=port)


def program(name: str) -> str:
    """The path of a program. Raises `NotInstalledError` if there is none."""
    found = shutil.which(name, path=f"{SERVERS}{os.pathsep}{os.environ['PATH']}{os.pathsep}/usr/sbin{os.pathsep}/sbin")
    if found is None:
        raise NotInstalledError(f"{name} is not installed (make servers)")
    return found


@contextlib.contextmanager
def running(command: list[str], port: int, user: str | None = None) -> Iterator[None]:
    """A server process, from when it accepts connections."""

    def start() -> "subprocess.Popen[bytes]":
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, user=user)

    process, starts = start(), 1
    try:
        end = time.monotonic() + START_SECONDS
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            # A negative status is the number of a signal.
            if (process.poll() or 0) < 0 and starts < MAX_STARTS:
                process, starts = start(), starts + 1
            assert process.poll() is None, f"{command[0]} ended"
            assert time.monotonic() < end, f"{command[0]} does not start"
            time.sleep(0.05)
        yield
    finally:
        process.kill()
        process.wait()


def free_port() -> int:
    """A port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def s3(folder: Path) -> Iterator[Store]:
    """An S3 server with a bucket in an empty folder."""
    server, port, log = program("versitygw"), free_port(), folder / "requests.log"
    (folder / "data" / "box").mkdir(parents=True)
    keys = ["--access", "user", "--secret", "hidden-secret", "--keep-alive", "--access-log", str(log)]
    where = ["--quiet", "--port", f"127.0.0.1:{port}", "posix", str(folder / "data")]
    options: dict[str, str] = {
        "aws_endpoint_url": f"http://127.0.0.1:{port}",
        "aws_access_key_id": "user",
        "aws_secret_access_key": "hidden-secret",
        "aws_region": "us-east-1",
    }
    with running([server, *keys, *where], port):
        yield Store("s3://box/runs/", options, port, log)


@contextlib.contextmanager
def gcs(folder: Path) -> Iterator[Store]:
    """A GCS server of the folder ``data``, whose folders are buckets, as it is when the server starts."""
    server, port, log = program("fake-gcs-server"), free_port(), folder / "requests.log"
    url = f"http://127.0.0.1:{port}"
    where = ["-scheme", "http", "-host", "127.0.0.1", "-port", str(port), "-public-host", f"127.0.0.1:{port}"]
    where += ["-external-url", url, "-backend", "memory", "-data", str(folder / "data")]
    with running([server, *where], port):
        yield Store("gs://box/", {"google_base_url": url, "anonymous": "true"}, port, log)


# The account and the key that all emulators have.
AZURE_ACCOUNT = "devstoreaccount1"
AZURE_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


@contextlib.contextmanager
def azure(folder: Path) -> Iterator[Store]:
    """An Azure server with an empty container."""
    server, port, log = program("azurite-blob"), free_port(), folder / "requests.log"
    what = ["--silent", "--inMemoryPersistence", "--skipApiVersionCheck", "--disableTelemetry"]
    where = ["--blobHost", "127.0.0.1", "--blobPort", str(port)]
    endpoint = f"http://127.0.0.1:{port}/{AZURE_ACCOUNT}"
    options = {
        "azure_storage_account_name": AZURE_ACCOUNT,
        "azure_storage_account_key": AZURE_KEY,
        "azure_storage_endpoint": endpoint,
    }
    with running([server, *what, *where], port):
        headers = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": "2021-08-06"}
        signed = "".join(f"{name}:{value}\n" for name, value in headers.items())
        signed = "PUT" + 12 * "\n" + signed + f"/{AZURE_ACCOUNT}/{AZURE_ACCOUNT}/box\nrestype:container"
        digest = hmac.new(base64.b64decode(AZURE_KEY), signed.encode(), hashlib.sha256).digest()
        headers["Authorization"] = f"SharedKey {AZURE_ACCOUNT}:{base64.b64encode(digest).decode()}"
        request = urllib.request.Request(f"{endpoint}/box?restype=container", headers=headers, method="PUT")
        with urllib.request.urlopen(request, timeout=START_SECONDS) as answer:
            answer.read()
        yield Store("az://box/", options, port, log)


@contextlib.contextmanager
def xrootd(folder: Path) -> Iterator[Store]:
    """An XRootD server of the folder ``data`` in an empty folder."""
    server, port, log = program("xrootd"), free_port(), folder / "admin" / "log"
    data, admin = folder / "data", folder / "admin"
    (data / "runs").mkdir(parents=True)
    admin.mkdir()
    lines = [f"xrd.port {port}", "all.export /", f"oss.localroot {data}", f"all.adminpath {admin}"]
    # It notes requests, with the bytes of each read.
    lines += [f"all.pidpath {admin}", "xrd.network nodnr", "xrootd.trace request fsio", ""]
    config = folder / "xrootd.cfg"
    config.write_text("\n".join(lines))
    # It refuses to run as root.
    user = "daemon" if os.getuid() == 0 else None
    if user is not None:
        for own in (folder, data, data / "runs", admin):
            shutil.chown(own, user)
    with running([server, "-c", str(config), "-l", str(log)], port, user):
        yield Store(f"root://127.0.0.1:{port}//runs/", {}, port, log)


@contextlib.contextmanager
def nginx(folder: Path, data: Path) -> Iterator[Store]:
    """An HTTP server of ``data``, which writes into ``folder``.

    A line of its log has the method, path, range, status, bytes of the body, and the times of arrival and end.
    """
    server, port, log = program("nginx"), free_port(), folder / "requests.log"
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    paths = " ".join(f"{kind}_temp_path {folder}/{kind};" for kind in kinds)
    line = '$request_method $uri "$http_range" $status $body_bytes_sent $request_time $msec'
    config = folder / "nginx.conf"
    config.write_text(
        f"daemon off; master_process off; pid {folder}/pid; error_log {folder}/errors; events {{}} "
        f"http {{ log_format requests '{line}'; access_log {log} requests; {paths} sendfile on; "
        f"keepalive_requests 1000000; server {{ listen 127.0.0.1:{port}; root {data}; }} }}\n"
    )
    with running([server, "-p", str(folder), "-e", f"{folder}/errors", "-c", str(config)], port):
        yield Store(f"http://127.0.0.1:{port}/", {}, port, log)


class Toxiproxy:
    """A proxy of TCP connections that delays answers."""

    def __init__(self, port: int) -> None:
        self._api = f"http://127.0.0.1:{port}/proxies"

    def delayed(self, upstream: int, milliseconds: int, port: int | None = None) -> int:
        """Adds a proxy of a port with a delay, and returns its port."""
        port = port or free_port()
        name = f"to-{upstream}-{port}"
        self._post("", {"name": name, "listen": f"127.0.0.1:{port}", "upstream": f"127.0.0.1:{upstream}"})
        attributes = {"latency": milliseconds}
        self._post(f"/{name}/toxics", {"type": "latency", "stream": "downstream", "attributes": attributes})
        return port

    def _post(self, path: str, content: dict[str, object]) -> None:
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(self._api + path, json.dumps(content).encode(), headers)
        with urllib.request.urlopen(request, timeout=START_SECONDS) as answer:
            answer.read()


@contextlib.contextmanager
def toxiproxy() -> Iterator[Toxiproxy]:
    """Toxiproxy without proxies."""
    server, port = program("toxiproxy-server"), free_port()
    with running([server, "-host", "127.0.0.1", "-port", str(port)], port):
        yield Toxiproxy(port)
