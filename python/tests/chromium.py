"""A headless Chromium, driven by the DevTools protocol over a pipe: no port, no driver and no other package."""

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

PROGRAM = next(filter(None, map(shutil.which, ["chromium", "chromium-browser", "google-chrome"])), None)
SECONDS = 60
"""What one step may take on a busy machine."""
OPTIONS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--remote-debugging-pipe",
]
START = """
import fcntl, os, sys
# The protocol has the file descriptors 3 and 4.
pipes = [fcntl.fcntl(int(number), fcntl.F_DUPFD, 10) for number in sys.argv[1:3]]
for number, pipe in enumerate(pipes, 3):
    os.dup2(pipe, number)
    os.close(pipe)
os.execv(sys.argv[3], sys.argv[3:])
"""
KEYS = {"Enter": 13, "Escape": 27, "Tab": 9, "Home": 36, "End": 35, "ArrowLeft": 37, "ArrowRight": 39}


class Chromium:
    """One browser with one page."""

    def __init__(self, folder: Path) -> None:
        (its_input, self._to), (self._from, its_output) = os.pipe(), os.pipe()
        pipes = [str(its_input), str(its_output)]
        browser = [str(PROGRAM), *OPTIONS, f"--user-data-dir={folder}", "about:blank"]
        command = [sys.executable, "-c", START, *pipes, *browser]
        self._process = subprocess.Popen(command, pass_fds=(its_input, its_output), stderr=subprocess.DEVNULL)
        os.close(its_input)
        os.close(its_output)
        self._read, self._number = b"", 0
        self.events: list[dict[str, Any]] = []
        self._session: str | None = None
        page = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        for domain in ["Page", "Runtime", "Network", "Log"]:
            self.call(f"{domain}.enable")

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._read:
            if not select.select([self._from], [], [], SECONDS)[0]:
                raise TimeoutError("Chromium does not answer")
            received = os.read(self._from, 1 << 20)
            if not received:
                raise EOFError("Chromium ended")
            self._read += received
        message, self._read = self._read.split(b"\0", 1)
        found: dict[str, Any] = json.loads(message)
        return found

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Calls a method; keeps what the browser tells meanwhile."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer["error"]
                result: dict[str, Any] = answer["result"]
                return result
            self.events.append(answer)

    def run(self, script: str) -> Any:
        """The value of an expression of JavaScript."""
        done = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in done, done["exceptionDetails"]
        return done["result"].get("value")

    def open(self, path: Path, width: int = 1400, **media: str) -> None:
        """Opens a page of a width, with such media features as `prefers_color_scheme`."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        features = [{"name": name.replace("_", "-"), "value": value} for name, value in media.items()]
        self.call("Emulation.setEmulatedMedia", features=features)
        self.call("Page.navigate", url=path.as_uri())
        until = time.monotonic() + SECONDS
        while not self.run("document.readyState === 'complete' && location.protocol === 'file:'"):
            assert time.monotonic() < until, "the page is not loaded"
            time.sleep(0.02)

    def press(self, key: str, times: int = 1) -> None:
        """Presses a key."""
        code = {"windowsVirtualKeyCode": KEYS[key]} if key in KEYS else {}
        text = {"text": "\r" if key == "Enter" else key} if key == "Enter" or len(key) == 1 else {}
        for _ in range(times):
            self.call("Input.dispatchKeyEvent", type="keyDown", key=key, **code, **text)
            self.call("Input.dispatchKeyEvent", type="keyUp", key=key, **code)

    def complaints(self) -> list[str]:
        """Errors of scripts, and messages on the console."""
        methods = ["Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"]
        return [json.dumps(event["params"]) for event in self.events if event.get("method") in methods]

    def requests(self) -> list[str]:
        """The URLs that were requested."""
        sent = [event["params"] for event in self.events if event.get("method") == "Network.requestWillBeSent"]
        return [event["request"]["url"] for event in sent]

    def picture(self, path: Path) -> None:
        """Saves what the window shows."""
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def close(self) -> None:
        """Ends the browser."""
        try:
            self.call("Browser.close")
        except (AssertionError, EOFError, OSError):
            pass
        finally:
            self._process.wait(SECONDS)
            os.close(self._to)
            os.close(self._from)
