"""A headless Chromium, controlled through its DevTools pipe: renders pages and reports their errors."""

from __future__ import annotations

import base64
import itertools
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

PROGRAM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


class Chromium:
    """One browser with one page; use it as a context manager."""

    def __init__(self, profile: Path) -> None:
        to_browser, self._out = os.pipe()
        self._in, from_browser = os.pipe()

        def as_expected() -> None:
            """Set up descriptors 3 (read by the browser) and 4 (written by it); neither may be in use."""
            reader, writer = os.dup(to_browser), os.dup(from_browser)
            reader, writer = (os.dup(end) if end in (3, 4) else end for end in (reader, writer))
            os.dup2(reader, 3)
            os.dup2(writer, 4)

        self._process = subprocess.Popen(
            [
                *(str(PROGRAM), "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"),
                *("--no-first-run", "--disable-extensions", "--hide-scrollbars", "--remote-debugging-pipe"),
                *("--disable-background-networking", f"--user-data-dir={profile}", "about:blank"),
            ],
            preexec_fn=as_expected,
            close_fds=False,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        self._numbers = itertools.count(1)
        self._unread = b""
        self._events: list[dict[str, Any]] = []
        self._session: str | None = None
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")

    def __enter__(self) -> Chromium:
        return self

    def __exit__(self, *_: object) -> None:
        self._session = None
        try:
            self.ask("Browser.close")
        finally:
            os.close(self._out)
            os.close(self._in)
            self._process.wait(timeout=30)

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._unread:
            part = os.read(self._in, 1 << 20)
            assert part, f"the browser ended with {self._process.poll()}"
            self._unread += part
        message, _, self._unread = self._unread.partition(b"\0")
        return json.loads(message)

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command and wait for its answer; keep intermediate events."""
        number = next(self._numbers)
        message: dict[str, Any] = {"id": number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            found = self._receive()
            if found.get("id") == number:
                assert "error" not in found, (method, found["error"])
                return found["result"]
            self._events.append(found)

    def open(self, url: str, *, width: int = 1400, scheme: str = "light") -> None:
        """Load a page for a screen of this width, and wait until it is ready."""
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 600)
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.ask("Emulation.setEmulatedMedia", features=features)
        self._events.clear()
        answer = self.ask("Page.navigate", url=url)
        assert "errorText" not in answer, answer
        while not any(event["method"] == "Page.loadEventFired" for event in self._events):
            self._events.append(self._receive())

    @property
    def complaints(self) -> list[str]:
        """Return console messages, exceptions, and requests for anything but the page itself."""
        self.ask("Runtime.evaluate", expression="0")  # when this is answered, earlier messages have arrived
        found = []
        for event in self._events:
            if event["method"] in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"):
                found.append(json.dumps(event["params"]))
            elif event["method"] == "Network.requestWillBeSent":
                url = event["params"]["request"]["url"]
                if event["params"].get("type") != "Document" and not url.startswith("data:"):
                    found.append(f"asked for {url}")
        return found

    def evaluate(self, expression: str) -> Any:
        """Return the value of a JavaScript expression in the page."""
        answer = self.ask("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def screenshot(self, path: Path) -> bytes:
        """Return the whole page as PNG."""
        size = self.ask("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        answer = self.ask("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)
        data = base64.b64decode(answer["data"])
        path.write_bytes(data)
        return data

    def pdf(self, path: Path) -> bytes:
        """Return the page as printed, in PDF."""
        data = base64.b64decode(self.ask("Page.printToPDF", printBackground=True)["data"])
        path.write_bytes(data)
        return data
