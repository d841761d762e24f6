"""What a client without any format gets from an S3 server: the same ranges of the same objects, with plain GETs.

`Recorder` notes the requests of a reader; `Client` repeats them with threads of `http.client`, signed before they are
timed, and drops the bytes.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import http.client
import re
import socket
import socketserver
import threading
import urllib.parse
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

BLOCK_BYTES = 1 << 20

Range = tuple[str, str]
"""The path of an object, and the value of the header ``Range``, which may be empty."""


class Connection(socketserver.BaseRequestHandler):
    """Passes a connection on, and notes the heads of its requests, which have no bodies."""

    server: Recorder

    def handle(self) -> None:
        with socket.create_connection(("127.0.0.1", self.server.upstream)) as upstream:
            back = threading.Thread(target=pump, args=(upstream, self.request))
            back.start()
            text = b""
            while data := self.request.recv(BLOCK_BYTES):
                upstream.sendall(data)
                *heads, text = (text + data).split(b"\r\n\r\n")
                self.server.heads += [head.decode("latin-1") for head in heads]
            with contextlib.suppress(OSError):
                upstream.shutdown(socket.SHUT_WR)
            back.join()


def pump(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(BLOCK_BYTES):
            sink.sendall(data)


class Recorder(socketserver.ThreadingTCPServer):
    """A port that leads to another one, and notes requests."""

    daemon_threads = True
    request_queue_size = 256

    def __init__(self, upstream: int) -> None:
        super().__init__(("127.0.0.1", 0), Connection)
        self.upstream = upstream
        self.heads: list[str] = []

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    def ranges(self) -> list[Range]:
        """The different requests, in the order in which they were sent."""
        found = []
        for head in self.heads:
            method, path, _ = head.split(" ", 2)
            asked = re.search(r"^range: *(\S+)", head, re.IGNORECASE | re.MULTILINE)
            if method == "GET":
                found.append((path, asked[1] if asked else ""))
        return list(dict.fromkeys(found))


@contextlib.contextmanager
def recorder(upstream: int) -> Iterator[Recorder]:
    """A `Recorder` that runs."""
    with Recorder(upstream) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


class Client:
    """Signed GETs of ranges with several threads, each with a connection that is kept.

    ``options`` are those of `servers.Store`.
    """

    def __init__(self, options: dict[str, str], rounds: list[list[Range]], threads: int) -> None:
        self.options = options
        self.host = urllib.parse.urlsplit(options["aws_endpoint_url"]).netloc
        self.rounds = [[(path, self.headers(path, asked)) for path, asked in ranges] for ranges in rounds]
        self.pool = ThreadPoolExecutor(threads)
        self.local = threading.local()

    def get(self) -> int:
        """Bytes of all answers. A round begins when the one before has ended; its requests run at once."""
        return sum(sum(self.pool.map(self.one, requests)) for requests in self.rounds)

    def one(self, request: tuple[str, dict[str, str]]) -> int:
        if not hasattr(self.local, "connection"):
            self.local.connection = http.client.HTTPConnection(self.host)
            self.local.connection.connect()
            self.local.connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.local.connection.request("GET", request[0], headers=request[1])
        answer = self.local.connection.getresponse()
        if answer.status not in (200, 206):
            raise RuntimeError(f"GET {request[0]}: {answer.status} {answer.reason}")
        return len(answer.read())

    def headers(self, path: str, asked: str) -> dict[str, str]:
        """The headers with a signature: AWS Signature Version 4 for a path without a query, of an unsigned body."""
        now, region = datetime.now(UTC), self.options["aws_region"]
        stamp, scope = f"{now:%Y%m%dT%H%M%SZ}", f"{now:%Y%m%d}/{region}/s3/aws4_request"
        signed = {"host": self.host, "x-amz-content-sha256": "UNSIGNED-PAYLOAD", "x-amz-date": stamp}
        names = ";".join(signed)
        lines = [f"{name}:{value}" for name, value in signed.items()]
        canonical = "\n".join(["GET", path, "", *lines, "", names, "UNSIGNED-PAYLOAD"])
        digest = hashlib.sha256(canonical.encode()).hexdigest()
        key = f"AWS4{self.options['aws_secret_access_key']}".encode()
        for part in scope.split("/"):
            key = hmac.digest(key, part.encode(), "sha256")
        signature = hmac.new(key, f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{digest}".encode(), "sha256").hexdigest()
        credential = f"Credential={self.options['aws_access_key_id']}/{scope}"
        authorization = f"AWS4-HMAC-SHA256 {credential}, SignedHeaders={names}, Signature={signature}"
        more = {"Range": asked} if asked else {}
        return signed | more | {"Authorization": authorization, "Accept-Encoding": "identity"}
