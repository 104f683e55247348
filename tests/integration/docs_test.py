"""The documentation: reference pages are current, the site builds, its links resolve, and it loads nothing from other
hosts."""
import html.parser
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest
import urllib.parse

from berth_harness import BIN, SOURCE, Cluster

REFERENCE = SOURCE / "docs" / "reference"
SITE = SOURCE / "build" / "site"
NO_ENVIRONMENT = 3
NOT_REACHED = re.compile(r"NewConnectionError|ConnectTimeout|ReadTimeout|ProxyError|Network is unreachable|resolve host", re.I)
SOURCES_OF_PAGES = ["deploy/docs", "deploy/reference", "docs", "proto", "server/metrics/metrics.cc", "server/metrics/ha_metrics.cc",
                    "server/metrics/usage_metrics.cc", "clients/agent/gpu_metrics.cc"]
LOADING = {"link": "href", "script": "src", "img": "src", "iframe": "src", "source": "src", "object": "data", "form": "action"}


def run_docs(command, tree=SOURCE):
    return subprocess.run([tree / "deploy" / "docs", command], capture_output=True, text=True, timeout=800,
                          env={**os.environ, "BERTH_BIN": str(BIN)})


class Page(html.parser.HTMLParser):
    """A page of the site: anchors, links, and the resources that a browser would load for it."""

    def __init__(self, path):
        super().__init__()
        self.path, self.ids, self.classes = path, set(), set()
        self.links, self.links_around_text, self.loaded = [], [], []
        self.articles = 0
        self.feed(path.read_text())

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.articles += tag == "article"
        self.ids.add(attributes.get("id"))
        self.classes.update((attributes.get("class") or "").split())
        if tag == "a" and "href" in attributes:
            (self.links if self.articles else self.links_around_text).append(attributes["href"])
        if attributes.get(LOADING.get(tag)):
            self.loaded.append(attributes[LOADING[tag]])

    def handle_endtag(self, tag):
        self.articles -= tag == "article"


def is_outside(link):
    address = urllib.parse.urlsplit(link)
    return bool(address.netloc) or address.scheme not in ("", "data")


class ReferenceTest(unittest.TestCase):
    def test_pages_are_current(self):
        result = run_docs("check")
        self.assertEqual((result.returncode, result.stderr), (0, ""))

    def test_a_page_that_is_not_current_is_named(self):
        with tempfile.TemporaryDirectory(prefix="berth-docs-") as folder:
            tree = pathlib.Path(folder)
            for name in SOURCES_OF_PAGES:
                copy = shutil.copytree if (SOURCE / name).is_dir() else shutil.copy
                (tree / name).parent.mkdir(parents=True, exist_ok=True)
                copy(SOURCE / name, tree / name)
            proto = tree / "proto/berth/v1/queue.proto"
            proto.write_text(proto.read_text().replace("message QueueSpec {", "message QueueSpec {\n  int32 added = 99;  // new", 1))
            result = run_docs("check", tree)
            self.assertEqual(result.returncode, 1)
            self.assertEqual(re.findall(r"^docs: (\S+) is not current: run deploy/docs reference$", result.stderr, re.M),
                             ["docs/reference/manifests.md", "docs/reference/api.md"])

    def test_comments_name_pages_that_exist(self):
        for page in REFERENCE.glob("*.md"):
            self.assertEqual(re.findall(r"docs/[\w/-]+\.md", page.read_text()), [], f"{page.name}: no such page")

    def test_every_metric_of_a_server_is_documented(self):
        rows = dict(re.findall(r"^\| `(berth_\w+)` \| (\w+) \|", (REFERENCE / "metrics.md").read_text(), re.M))
        with Cluster() as cluster:
            cluster.server.start()
            cluster.add_agent("n1")
            cluster.wait_nodes(1)
            status, text = cluster.server.get("/metrics")
        self.assertEqual(status, 200)
        served = dict(re.findall(r"^# TYPE (berth_\w+) (\w+)$", text, re.M))
        self.assertGreater(len(served), 40)
        self.assertEqual({name: rows.get(name) for name in served}, served)


class SiteTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        result = run_docs("site")
        if result.returncode == NO_ENVIRONMENT and NOT_REACHED.search(result.stderr):
            raise unittest.SkipTest("the site is not checked: PyPI is unreachable, and build/docs-venv does not exist")
        assert result.returncode == 0, result.stderr
        cls.pages = {path: Page(path) for path in SITE.rglob("*.html")}

    def test_all_sections_exist(self):
        names = {str(path.relative_to(SITE)) for path in self.pages}
        for page in (SOURCE / "docs").rglob("*.md"):
            self.assertIn(str(page.relative_to(SOURCE / "docs").with_suffix(".html")), names)

    def test_links_and_anchors_resolve(self):
        for page in self.pages.values():
            for link in {*page.links, *page.links_around_text, *page.loaded}:
                if not is_outside(link):
                    self.assertEqual(self.problem(page, link), "", f"{page.path.relative_to(SITE)}: {link}")

    def problem(self, page, link):
        address = urllib.parse.urlsplit(link)
        name = urllib.parse.unquote(address.path)
        target = SITE / name.lstrip("/") if name.startswith("/") else page.path.parent / name if name else page.path
        target = target.resolve()
        target = target / "index.html" if target.is_dir() else target
        if not target.is_file():
            return "no such file"
        if address.fragment and target in self.pages and urllib.parse.unquote(address.fragment) not in self.pages[target].ids:
            return "no such anchor"
        return ""

    def test_pages_load_nothing_from_other_hosts(self):
        for page in self.pages.values():
            name = page.path.relative_to(SITE)
            self.assertEqual([link for link in page.loaded + page.links_around_text if is_outside(link)], [], name)
            # These make the theme's script load something: diagrams, and repository statistics.
            self.assertEqual(page.classes & {"mermaid", "md-source"}, set(), name)
        for sheet in SITE.rglob("*.css"):
            self.assertEqual(re.findall(r"(?:url\(|@import)\s*[\"']?(?:https?:)?//[^\"')]*", sheet.read_text()), [], sheet.name)

    def test_search_needs_no_server(self):
        self.assertTrue((SITE / "search" / "search_index.js").read_text().startswith("var __index = {"))
        self.assertIn("assets/iframe-worker.js", " ".join(self.pages[SITE / "index.html"].loaded))


if __name__ == "__main__":
    unittest.main(verbosity=2)
