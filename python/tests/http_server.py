"""A small HTTP server for tests: ranges, ETags, PUT, and the log of its requests."""

import http.server
import re
import threading
from pathlib import Path
from typing import NamedTuple


class Requested(NamedTuple):
    """A request."""

    method: str
    path: str
    range: str | None
    authorization: str | None


class Server:
    """Serves the files of a directory on a free port of 127.0.0.1."""

    def __init__(self, directory: Path) -> None:
        self.requests: list[Requested] = []
        self.fail = 0
        """How many of the next requests are answered with 503."""
        self.end: int | None = None
        """Requests of ranges that begin here or later are answered with 503."""
        self.answers = threading.Event()
        """Requests wait until it is set."""
        self.answers.set()
        handler = type("Handler", (_Handler,), {"directory_path": directory, "log": self})
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """The URL of the directory, without a slash."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def close(self) -> None:
        """Ends the server."""
        self.answers.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    directory_path: Path
    log: Server

    def _begin(self) -> Path | None:
        path, headers = self.path.partition("?")[0], self.headers
        self.log.requests.append(Requested(self.command, self.path, headers["Range"], headers["Authorization"]))
        self.log.answers.wait()
        if self.log.fail > 0:
            self.log.fail -= 1
            self._answer(503)
            return None
        return self.directory_path / path.lstrip("/")

    def _answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        file = self._begin()
        if file is None:
            return
        if not file.is_file():
            self._answer(404)
            return
        data = file.read_bytes()
        tag = f'"{file.stat().st_mtime_ns}"'
        if self.headers.get("If-Match", tag) != tag:
            self._answer(412)
            return
        first, last = 0, len(data) - 1
        wanted = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", ""))
        if wanted is None:
            self._answer(200, data, ETag=tag, Accept_Ranges="bytes")
            return
        if wanted[1] and self.log.end is not None and int(wanted[1]) >= self.log.end:
            self._answer(503)
            return
        if wanted[1]:
            first, last = int(wanted[1]), min(last, int(wanted[2] or last))
        else:
            first = max(0, len(data) - int(wanted[2]))
        if first > last:
            self._answer(416, Content_Range=f"bytes */{len(data)}")
            return
        where = f"bytes {first}-{last}/{len(data)}"
        self._answer(206, data[first : last + 1], ETag=tag, Content_Range=where, Accept_Ranges="bytes")

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if (file := self._begin()) is not None:
            file.write_bytes(body)
            self._answer(201)

    def log_message(self, *_: object) -> None:
        pass
