#!/usr/bin/env python3
"""The web page in a real browser: every page on a cluster with simulated nodes and a real agent, names that try to be
markup, a server and a berth-web that go away, narrow and wide screens, both themes, and axe on all of it.
"""
import json
import os
import pathlib
import time
import unittest

from berth_harness import SANITIZED, Cluster
from web_browser import MISSING, Browser, Web, eventually

# Names of jobs are DNS labels; labels, commands, messages and reasons are free texts.
HOSTILE = "<img src=x onerror=alert(1)>\u202egnp.exe </script><script>alert(2)</script>"
PAGES = ["/", "/queues", "/jobs?state=all", "/nodes", "/node/sim-01", "/node/real", "/topology", "/topology?colour=state&job=gang",
         "/timeline", "/job/gang", "/job/gang?tab=places", "/job/gang?tab=events", "/job/gang?tab=spec", "/job/waits?tab=why",
         "/job/talks?tab=logs", "/job/talks?tab=terminal"]


def sim_job(name, replicas, gpus, queue="research", run_time="10m", **spec):
    return {"apiVersion": "berth/v1", "kind": "Job", "name": name, "queue": queue, "walltime": "1h", **spec,
            "groups": [{"name": "worker", "replicas": replicas, "resources": {"cpu": 1, "gpu": gpus},
                        "nodeSelector": {"matchLabels": {"kind": "simulated"}}, "command": ["sleep", run_time]}]}


@unittest.skipIf(MISSING, MISSING)
class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster()
        cls.addClassCleanup(cls.cluster.__exit__, None, None, None)
        cls.cluster.server.start()
        cls.cluster.add_simulation([{"name": f"sim-0[{i}-{i + 3}]", "cpu": 64, "memory": "512Gi", "devices": {"gpu": 8},
                                     "models": {"gpu": "H100"}, "labels": {"kind": "simulated", "rack": f"rack{i // 4}"},
                                     "runTime": "10m"} for i in (1, 5)])
        cls.cluster.add_agent("real", labels={"kind": "real"})
        cls.cluster.wait_nodes(9)
        cls.cluster.create_queue("team")
        cls.cluster.create_queue("research", parent="team")
        cls.cluster.create_queue("vision", parent="team")
        for rack in ("rack0", "rack1"):
            cls.submit_yaml({"apiVersion": "berth/v1", "kind": "HyperNode", "name": rack, "tier": 1, "tierName": "rack",
                             "members": [{"type": "node", "label": f"rack={rack}"}]}, apply=True)
        cls.submit_yaml(sim_job("gang", 4, 8))
        cls.submit_yaml(sim_job("waits", 16, 8))
        cls.submit_yaml({"apiVersion": "berth/v1", "kind": "Job", "name": "talks", "queue": "vision",
                         "annotations": {"note": HOSTILE}, "labels": {"team": "x"},
                         "groups": [{"name": "main", "nodeSelector": {"matchLabels": {"kind": "real"}},
                                     "resources": {"cpu": 0.1, "memory": "32Mi"},
                                     "command": ["/bin/sh", "-c", f"echo 'first line {HOSTILE}'; sleep 3; echo 'second line'; sleep 600"]}]})
        cls.submit_yaml({"apiVersion": "berth/v1", "kind": "Job", "name": "a" * 63, "queue": "vision", "suspended": True,
                         "groups": [{"name": "main", "command": [HOSTILE]}]})
        cls.cluster.berth("job", "cancel", "a" * 63, "--reason", "<b onmouseover=alert(3)>no</b>")
        cls.cluster.wait_job("gang", "RUNNING")
        cls.cluster.wait_job("talks", "RUNNING")
        cls.web = Web(cls.cluster.home, server=cls.cluster.server.address).start()
        cls.addClassCleanup(cls.web.stop)
        cls.origin = f"http://{cls.web.address}"
        cls.browser = Browser()
        cls.addClassCleanup(cls.browser.close)

    @classmethod
    def submit_yaml(cls, message, apply=False):
        path = cls.cluster.manifest(json.dumps(message))
        cls.cluster.berth(*(["apply", "-f"] if apply else ["submit"]), path)

    def setUp(self):
        self.browser.problems.clear()

    def tearDown(self):
        problems, self.browser.problems[:] = list(self.browser.problems), []
        self.assertEqual(problems, [])

    def open(self, path, **context):
        page = self.browser.page(self.origin, **context)
        self.addCleanup(self.leave, page)
        page.goto(path)
        page.locator("h1").first.wait_for()
        return page

    def leave(self, page):
        """Shows what stood on the page of a test that failed."""
        result = self._outcome.result
        if any(case is self for case, _ in [*result.failures, *result.errors]):
            print(f"--- {page.url}\n{page.locator('body').inner_text()[:3000]}", flush=True)
        page.context.close()

    def settle(self, page):
        """Until the page shows its data, live."""
        page.get_by_text("Live", exact=True).wait_for()
        eventually(lambda: page.get_by_text("Reading…").count() == 0, 20, "the page has read its data")

    def shot(self, page, name):
        folder = os.environ.get("BERTH_WEB_PICTURES")
        if folder:
            pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
            page.screenshot(path=f"{folder}/{name}.png", full_page=True)

    def test_each_page_has_no_violation_of_axe_in_both_themes_and_on_all_screens(self):
        wide = [path for path in PAGES if path.split("?")[0] in ("/", "/jobs", "/topology", "/timeline")]
        for theme, width, paths in (("light", 1280, PAGES), ("dark", 360, PAGES), ("light", 3840, wide)):
            page = self.open("/", width=width, height=800, color_scheme=theme)
            for path in paths:
                with self.subTest(path=path, theme=theme, width=width):
                    page.goto(path)
                    self.settle(page)
                    self.assertEqual(page.get_by_role("alert").count(), 0, page.locator("main").inner_text())
                    self.assertEqual(self.browser.violations(page), [])
                    beyond = self.browser.evaluate(page, "document.documentElement.scrollWidth - innerWidth")
                    self.assertLessEqual(beyond, 0, "the page scrolls sideways")
                    self.shot(page, f"{theme}-{width}{path.replace('/', '_').replace('?', '_')}")

    def test_pages_show_what_the_cluster_says(self):
        page = self.open("/")
        self.settle(page)
        page.get_by_text("32 of 64 allocated").wait_for()
        page.get_by_role("link", name="Jobs", exact=True).click()
        page.get_by_role("link", name="waits").click()
        page.get_by_role("link", name="What would start it").click()
        self.settle(page)
        page.get_by_role("table", name="Nodes for group worker: 16 tasks need places").wait_for()
        page.get_by_role("link", name="Timeline").click()
        page.get_by_role("table", name="What runs on these nodes").get_by_text("gang").first.wait_for()
        page.get_by_role("link", name="Queues", exact=True).click()
        row = page.get_by_role("row").filter(has_text="research")
        row.get_by_text("32", exact=True).first.wait_for()

    def test_a_dry_run_shows_what_a_change_would_do_and_changes_nothing(self):
        page = self.open("/job/waits?tab=why")
        self.settle(page)
        page.get_by_role("button", name="Dry run").first.click()
        page.get_by_text("It would").first.wait_for()
        job = self.cluster.berth_json("job", "get", "waits")
        self.assertEqual(job["spec"]["groups"][0]["replicas"], 16)

    def test_changes_are_seen_without_a_reload(self):
        page = self.open("/jobs?state=all")
        self.settle(page)
        begin = time.monotonic()
        self.submit_yaml(sim_job("fresh", 1, 1))
        page.get_by_role("link", name="fresh").wait_for()
        self.assertLess(time.monotonic() - begin, 10 if SANITIZED else 5)
        page.goto("/job/fresh")
        page.get_by_text("Running").first.wait_for()
        page.get_by_role("button", name="Cancel").click()
        page.get_by_role("dialog").get_by_text("berth job cancel fresh").wait_for()
        self.assertEqual(self.browser.violations(page), [])
        page.get_by_role("dialog").get_by_role("button", name="Cancel fresh").click()
        page.get_by_text("Cancelled").first.wait_for()
        self.cluster.wait_job("fresh", "CANCELLED")

    def test_many_jobs_are_changed_at_once(self):
        for i in range(3):
            self.submit_yaml(sim_job(f"bulk-{i}", 16, 8))
        page = self.open("/jobs?name=bulk-*")
        self.settle(page)
        page.get_by_role("checkbox", name="Choose all jobs of this page").check()
        page.get_by_text("3 chosen").wait_for()
        page.get_by_role("button", name="Cancel").click()
        page.get_by_role("button", name="Cancel 3 jobs").click()
        for i in range(3):
            self.cluster.wait_job(f"bulk-{i}", "CANCELLED")

    def test_output_follows_and_is_only_text(self):
        page = self.open("/job/talks?tab=logs")
        page.get_by_text("first line <img").wait_for()
        page.get_by_text("second line").wait_for()
        for path in ("/job/talks?tab=spec", f"/job/{'a' * 63}", f"/job/{'a' * 63}?tab=spec", "/jobs?state=all"):
            page.goto(path)
            self.settle(page)
        self.assertEqual(page.locator("main img, main script, main b").count(), 0)

    def test_a_terminal_in_a_task(self):
        page = self.open("/job/talks?tab=terminal")
        page.get_by_role("button", name="Open a terminal").click()
        screen = page.get_by_role("log", name="Terminal")
        page.get_by_text("Connected").wait_for()
        page.keyboard.type("printf '\\033[1;31mred\\033[0m \\033[38;2;1;2;3mown\\033[0m %s\\n' $((6*7))")
        page.keyboard.press("Enter")
        screen.get_by_text("42").wait_for()
        self.assertEqual(screen.locator(".t-bold.t-f1").inner_text(), "red")
        self.assertEqual(screen.get_by_text("own", exact=True).evaluate("e => getComputedStyle(e).color"), "rgb(1, 2, 3)")
        page.keyboard.type("stty size; echo 'sle''ep'; sleep 100")
        page.keyboard.press("Enter")
        screen.get_by_text("sleep", exact=True).wait_for()
        page.keyboard.press("Control+c")
        page.keyboard.type(f"echo '{HOSTILE}' | tr -d 'q'; printf '\\033]0;title\\007\\033[2J\\033[H'; echo cleared")
        page.keyboard.press("Enter")
        screen.get_by_text("cleared", exact=True).wait_for()
        self.assertEqual(page.locator("main img, main script, main b").count(), 0)
        self.shot(page, "terminal")
        for theme in ("light", "dark"):
            page.emulate_media(color_scheme=theme)
            self.assertEqual(self.browser.violations(page), [], theme)
        page.keyboard.press("F6")
        page.keyboard.press("Enter")  # the button
        page.get_by_role("button", name="Open a terminal").wait_for()

    def test_a_node_is_cordoned_with_who_is_affected_shown(self):
        page = self.open("/node/sim-08")
        self.settle(page)
        page.get_by_role("button", name="Drain").click()
        page.get_by_role("dialog").get_by_text("Leave it").click()
        page.get_by_role("button", name="Cordon").click()
        page.get_by_role("button", name="Cordon sim-08").click()
        page.get_by_text("Cordoned").first.wait_for()
        page.get_by_role("button", name="Uncordon").click()
        page.get_by_role("button", name="Uncordon sim-08").click()
        page.get_by_role("button", name="Cordon", exact=True).wait_for()

    def test_everything_can_be_reached_with_the_keyboard(self):
        page = self.open("/")
        self.settle(page)
        page.keyboard.press("Tab")
        self.assertEqual(self.browser.evaluate(page, "document.activeElement.textContent"), "Skip to the content")
        for _ in range(4):
            page.keyboard.press("Tab")
        self.assertEqual(self.browser.evaluate(page, "document.activeElement.textContent"), "Jobs")
        page.keyboard.press("Enter")
        page.get_by_role("heading", name="Jobs", exact=True).wait_for()
        self.assertEqual(self.browser.evaluate(page, "document.activeElement.id"), "main")

    def test_an_open_page_survives_restarts_of_berthd_and_of_berth_web(self):
        page = self.open("/jobs?state=all")
        self.settle(page)
        self.cluster.server.kill()
        page.get_by_text("Not live since").wait_for()
        page.get_by_role("link", name="gang").wait_for()  # what was shown stays
        self.cluster.server.start()
        page.get_by_text("Live", exact=True).wait_for()
        self.submit_yaml(sim_job("after-berthd", 1, 1))
        page.get_by_role("link", name="after-berthd").wait_for()
        self.web.kill()
        page.get_by_text("Not live since").wait_for()
        self.web.start()
        page.get_by_text("Live", exact=True).wait_for()
        self.submit_yaml(sim_job("after-web", 1, 1))
        page.get_by_role("link", name="after-web").wait_for()
        self.cluster.berth("job", "cancel", "after-berthd", "after-web")

    def test_filters_are_in_the_url_and_unknown_things_say_so(self):
        page = self.open("/jobs")
        self.settle(page)
        page.get_by_label("Name").fill("gan")
        page.wait_for_url("**name=gan**")
        page.get_by_role("link", name="gang").wait_for()
        self.assertEqual(page.get_by_role("link", name="waits").count(), 0)
        page.goto("/job/nothing")
        page.get_by_role("alert").get_by_text("not found").wait_for()
        page.goto("/jobs?queue=no-such-queue")
        page.get_by_role("alert").wait_for()

    def test_the_first_paint_is_quick(self):
        page = self.open("/jobs")
        self.settle(page)
        times = []
        for _ in range(5):
            page.goto("/jobs?state=all")
            page.get_by_role("link", name="gang").wait_for()
            times.append(self.browser.evaluate(page, "performance.getEntriesByName('first-contentful-paint')[0].startTime"))
        print(f"first contentful paint, ms: {sorted(round(t) for t in times)}")
        self.assertLess(sorted(times)[2], 1000)


if __name__ == "__main__":
    unittest.main(verbosity=2)
