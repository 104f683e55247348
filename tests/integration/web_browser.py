"""A real browser for tests of the page: Debian's Chromium, driven by Playwright.

Playwright comes from PyPI with the hashes in web_requirements.txt, into a virtual environment below the build; axe-core
from npm with the page's lock file. `MISSING` says what is not there; deploy/install-deps --test installs the rest.
"""
import fcntl
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

from berth_harness import BIN, SOURCE, Program, free_port, wait_until, write_yaml

CHROMIUM = "/usr/bin/chromium"
BUILD = pathlib.Path(os.environ.get("BERTH_BUILD", SOURCE / "build" / "release"))
REQUIREMENTS = SOURCE / "tests" / "integration" / "web_requirements.txt"
AXE = BUILD / "web-page" / "node_modules" / "axe-core" / "axe.min.js"
# Not ours: the browser itself writes this when berth-web or berthd is away, which is what some tests do on purpose.
OF_THE_BROWSER = "Failed to load resource"


def make_environment():
    """Makes the virtual environment if needed, and puts it on the path. Returns what is missing, or ""."""
    venv = BUILD / "web-venv"
    stamp = venv / "requirements.sha256"
    wanted = hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()
    BUILD.mkdir(parents=True, exist_ok=True)
    with open(BUILD / "web-venv.lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not stamp.exists() or stamp.read_text() != wanted:
            shutil.rmtree(venv, ignore_errors=True)
            for command in (["/usr/bin/python3", "-m", "venv", venv],
                            [venv / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check", "--retries", "1",
                             "--timeout", "20", "--require-hashes", "--requirement", REQUIREMENTS]):
                made = subprocess.run(command, capture_output=True, text=True, check=False)
                if made.returncode:
                    return f"Playwright cannot be installed from PyPI: {made.stderr.strip().splitlines()[-1:]}"
            stamp.write_text(wanted)
    sys.path[:0] = [str(path) for path in venv.glob("lib/python*/site-packages")]
    return ""


def find_missing():
    if not pathlib.Path(CHROMIUM).exists():
        return "Chromium is missing; deploy/install-deps --test installs it"
    if not (BIN / "berth-web").exists():
        return "berth-web is not built"
    if not AXE.exists():
        return "berth-web was built without its page: npm was missing (deploy/install-deps)"
    return make_environment()


MISSING = find_missing()


class Web(Program):
    """berth-web; keeps its port across restarts."""

    def __init__(self, home, name="berth-web", **config):
        self.port = free_port()
        self.address = f"127.0.0.1:{self.port}"
        path = write_yaml(home / f"{name}.yaml", {"listen": self.address, **config})
        super().__init__(name, [str(BIN / "berth-web"), "--config", str(path)], home / f"{name}.log")

    def start(self, wait=True):
        super().start()
        if wait:
            wait_until(lambda: "berth-web is ready" in self.output() or not self.running(), 30, "berth-web is ready")
            assert self.running(), self.output()
        return self

    def memory_kib(self):
        """Of the process, resident."""
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0])


class Browser:
    """One Chromium for a test file. Pages note everything that goes wrong in them."""

    def __init__(self):
        from playwright.sync_api import sync_playwright
        self.playwright = sync_playwright().start()
        self.browser = self.playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        self.problems = []

    def close(self):
        self.browser.close()
        self.playwright.stop()

    def page(self, origin, width=1280, height=800, **context):
        made = self.browser.new_context(viewport={"width": width, "height": height}, base_url=origin, **context)
        page = made.new_page()
        page.set_default_timeout(10_000)
        page.on("pageerror", lambda error: self.problems.append(f"{page.url}: {error}"))
        page.on("console", lambda message: self.note(page, message))
        page.on("dialog", lambda dialog: self.problems.append(f"{page.url}: a script opened a dialog: {dialog.message}"))
        return page

    def note(self, page, message):
        if message.type in ("error", "warning") and OF_THE_BROWSER not in message.text:
            self.problems.append(f"{page.url}: {message.type}: {message.text}")

    @staticmethod
    def evaluate(page, expression):
        """The page's policy forbids eval, so not by Playwright's own way."""
        session = page.context.new_cdp_session(page)
        try:
            result = session.send("Runtime.evaluate", {"expression": expression, "awaitPromise": True, "returnByValue": True})
        finally:
            session.detach()
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def violations(self, page):
        """What axe finds, one line each."""
        self.evaluate(page, AXE.read_text() + "; undefined")
        found = json.loads(self.evaluate(page, "axe.run(document, {resultTypes: ['violations']}).then(r => JSON.stringify(r.violations))"))
        return [f"{entry['id']}: {entry['help']}: {node['html'][:160]} {node['failureSummary'][:200]}"
                for entry in found for node in entry["nodes"]]


def eventually(check, timeout_s, what):
    """Like wait_until, for checks of a page: Playwright's callbacks run in between."""
    deadline = time.monotonic() + timeout_s
    last = None
    while time.monotonic() < deadline:
        try:
            last = check()
            if last:
                return last
        except Exception as error:  # the page is just drawing itself
            last = error
        time.sleep(0.05)
    raise AssertionError(f"timed out after {timeout_s} s waiting for: {what} (last: {last!r})")
