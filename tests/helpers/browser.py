"""Headless Chromium that opens pages and reports complaints, requests and sizes; tests skip where there is none.

It is driven through two pipes, by the DevTools protocol: no driver, no port.
"""

import base64
import contextlib
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
SECONDS = 30
PIPES = """
import os, sys
ends = [os.dup(os.dup(os.dup(int(end)))) for end in sys.argv[1:3]]
os.dup2(ends[0], 3)
os.dup2(ends[1], 4)
os.execv(sys.argv[3], sys.argv[3:])
"""


def found():
    return next((path for name in NAMES if (path := shutil.which(name))), None)


needed = pytest.mark.skipif(found() is None, reason="there is no Chromium here (Debian: apt-get install chromium)")


class Browser:
    """One tab; use as a context."""

    def __enter__(self):
        self._profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        mine_in, its_out = os.pipe()
        its_in, mine_out = os.pipe()
        command = [
            sys.executable,
            "-c",
            PIPES,
            str(its_in),
            str(its_out),
            found(),
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--remote-debugging-pipe",
            f"--user-data-dir={self._profile.name}",
            "about:blank",
        ]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self._process = subprocess.Popen(command, pass_fds=(its_in, its_out), **quiet)
        os.close(its_in)
        os.close(its_out)
        self._in, self._out, self._rest, self._number = mine_in, mine_out, b"", 0
        self._session, self.events = None, []
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _start(self):
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")

    def __exit__(self, *_):
        self._session = None
        with contextlib.suppress(OSError):
            self._send("Browser.close", {})
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._in)
        os.close(self._out)
        self._profile.cleanup()

    def ask(self, method, **params):
        number = self._send(method, params)
        end = time.monotonic() + SECONDS
        while True:
            message = self._next(end)
            if message.get("id") == number:
                assert "error" not in message, f"{method}: {message}"
                return message["result"]
            self.events.append(message)

    def open(self, path, width=1200, height=900, *, dark=False, phone=False, settle=True):
        """Load a file afresh at a width; afterwards `events` holds what happened since."""
        self.events.clear()
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone)
        theme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.ask("Emulation.setEmulatedMedia", features=theme)
        self.ask("Page.navigate", url=Path(path).absolute().as_uri())
        end = time.monotonic() + SECONDS
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self._next(end))
        if settle:
            self.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def run(self, script):
        """The value of an expression in the page."""
        answer = self.ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def press(self, key, code, text=""):
        for kind in ("keyDown", "keyUp"):
            self.ask(
                "Input.dispatchKeyEvent",
                type=kind,
                key=key,
                code=key,
                windowsVirtualKeyCode=code,
                **({"text": text} if kind == "keyDown" and text else {}),
            )

    def complaints(self):
        """Errors and warnings of the page."""
        methods = {"Log.entryAdded", "Runtime.exceptionThrown", "Runtime.consoleAPICalled"}
        return [event["params"] for event in self.events if event.get("method") in methods]

    def requests(self):
        """Return the addresses that were fetched, without those that the page holds itself."""
        sent = [e["params"]["request"]["url"] for e in self.events if e.get("method") == "Network.requestWillBeSent"]
        return [url for url in sent if not url.startswith("data:")]

    def picture(self, path, *, full=True):
        size = self.ask("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], 16_000), "scale": 1}
        more = {"clip": clip, "captureBeyondViewport": True} if full else {}
        Path(path).write_bytes(base64.b64decode(self.ask("Page.captureScreenshot", format="png", **more)["data"]))

    def pdf(self, path):
        answer = self.ask("Page.printToPDF", preferCSSPageSize=True, printBackground=True)
        Path(path).write_bytes(base64.b64decode(answer["data"]))

    def _send(self, method, params):
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        return self._number

    def _next(self, end):
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._in], [], [], max(0.0, end - time.monotonic()))
            assert ready, "Chromium does not answer"
            part = os.read(self._in, 1 << 16)
            assert part, "Chromium has ended"
            self._rest += part
        message, self._rest = self._rest.split(b"\0", 1)
        return json.loads(message)
