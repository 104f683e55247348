#!/usr/bin/env python3
"""Containers of tasks, with and without images: order, shared directories, ends, output and exec, with real processes
and real crun. Needs root, crun, umoci and a static busybox; without them the test is skipped.
"""
import pathlib
import shutil
import subprocess
import time
import unittest

from berth_harness import Cluster, wait_until
from oci_layout import Layout, crun_here, require_images


class Containers(unittest.TestCase):
    def setUp(self):
        busybox = require_images(self)
        self.cluster = Cluster({"lease": "6s", "heartbeatInterval": "1s"})
        self.cluster.belongs_to(self)
        self.cluster.server.start()
        self.cluster.create_queue("q")
        self.home = self.cluster.home
        for name in ("small", "other"):
            Layout(self.home / "store" / name).add("1", {"Env": ["PATH=/bin"]}, busybox, which=f"{name}\n")
        self.state = pathlib.Path(f"/run{self.home}")  # not below /tmp
        self.state.mkdir(parents=True)
        self.addCleanup(shutil.rmtree, self.state, ignore_errors=True)
        self.cluster.add_agent("n1", images={"directory": str(self.home / "store"), "crun": crun_here(self.home)},
                               stateDirectory=str(self.state))
        self.cluster.wait_nodes(1)

    def submit(self, name, group, spec=""):
        text = (f"apiVersion: berth/v1\nkind: Job\nname: {name}\nqueue: q\n{spec}groups:\n- name: w\n"
                "  resources: {cpu: 100m}\n")
        self.cluster.berth("submit", str(self.cluster.manifest(text + group, f"{name}.yaml")))

    def logs(self, name, container=""):
        more = ["--container", container] if container else []
        return self.cluster.berth("job", "logs", name, *more)

    def leftovers(self, mark):
        found = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
        return [line for line in found.splitlines() if mark in line]

    def check_order(self, name, image, at):
        """Steps run one after the other, a sidecar is there for the later ones, peers run with the command."""
        self.submit(name, f"""{image}  command: [sh, -c, "cat {at}/steps; touch {at}/main; echo $BERTH_CONTAINER-; sleep 0.5"]
  volumes: [{{path: {at}, scratch: {{name: data}}}}]
  containers:
  - {{name: first, kind: Init, {self.inner(image)}command: [sh, -c, "echo first >> {at}/steps; echo said"], volumes: [{{path: {at}, scratch: {{name: data}}}}]}}
  - {{name: server, {self.inner(image)}command: [sh, -c, "touch {at}/up; echo $BERTH_CONTAINER; sleep 9137"], volumes: [{{path: {at}, scratch: {{name: data}}}}]}}
  - name: second
    kind: Init
    {self.inner(image, True)}
    command: [sh, -c, "while [ ! -e {at}/up ]; do sleep 0.05; done; [ ! -e {at}/main ] && echo second >> {at}/steps"]
    volumes: [{{path: {at}, scratch: {{name: data}}}}]
  - name: push
    kind: Peer
    {self.inner(image, True)}
    command: [sh, -c, "while [ ! -e {at}/main ]; do sleep 0.05; done; sleep 1; echo pushed"]
    volumes: [{{path: {at}, scratch: {{name: data}}}}]
""")
        self.cluster.wait_job(name, "SUCCEEDED")
        self.assertEqual(self.logs(name), "first\nsecond\n-\n")
        self.assertEqual(self.logs(name, "first"), "said\n")
        self.assertEqual(self.logs(name, "server"), "server\n")
        self.assertEqual(self.logs(name, "push"), "pushed\n", "the task has waited for its peer")
        wait_until(lambda: not self.leftovers("sleep 9137"), 30, "the sidecar is stopped")

    @staticmethod
    def inner(image, line=False):
        if not image:
            return "" if not line else "env: []"
        return "image: 'other:1'" + ("" if line else ", ")

    def test_order_with_images(self):
        self.check_order("pod", "  image: small:1\n", "/data")
        out = self.cluster.berth("job", "describe", "pod")
        for text in ("w/first: init", "w/server: sidecar", "w/push: peer", "w/push: image other:1",
                     "w/push: /data is scratch data"):
            self.assertIn(text, out)

    def test_order_without_images(self):
        at = self.state.parent / f"{self.state.name}-data"
        at.mkdir()
        self.addCleanup(shutil.rmtree, at, ignore_errors=True)
        self.check_order("plain", "", at)
        self.assertEqual(list(at.iterdir()), [], "the node does not see it")

    def test_a_step_that_fails_or_takes_too_long_fails_the_task(self):
        step = "  containers: [{name: fetch, kind: Init, command: [%s]%s}]\n  command: [sh, -c, 'echo never']\n"
        for name, command, more, code, text in (
                ("code", "sh, -c, 'exit 3'", "", 3, "init fetch exited with 3"),
                ("slow", "sleep, '1000'", ", timeout: 1s", 137, "init fetch took longer than 1 s")):
            self.submit(name, step % (command, more))
            job = self.cluster.wait_job(name, "FAILED")
            self.assertIn(f"{text}", job.status.message)
            self.assertIn(f"w-0 exited with {code}", job.status.message)
            self.assertEqual(self.logs(name), "", "the command has not begun")
        self.submit("none", step % ("/no/such", ""))
        self.assertIn("init fetch: command not found: /no/such", self.cluster.wait_job("none", "FAILED").status.message)

    def test_a_peer_that_fails_ends_the_others(self):
        self.submit("peer", """  command: [sh, -c, "trap 'echo got it; exit 0' TERM; sleep 9138 & wait"]
  containers: [{name: push, kind: Peer, command: [sh, -c, 'sleep 0.5; exit 4']}]
""")
        job = self.cluster.wait_job("peer", "FAILED")
        self.assertIn("container push exited with 4", job.status.message)
        self.assertEqual(self.logs("peer"), "got it\n")
        wait_until(lambda: not self.leftovers("sleep 9138"), 30, "nothing is left")

    def test_a_command_that_fails_ends_its_peers(self):
        self.submit("main", """  command: [sh, -c, 'sleep 0.5; exit 5']
  containers: [{name: push, kind: Peer, command: [sh, -c, 'trap "echo got it; exit 0" TERM; sleep 9139 & wait']}]
""")
        self.assertIn("exited with 5", self.cluster.wait_job("main", "FAILED").status.message)
        self.assertEqual(self.logs("main", "push"), "got it\n")

    def test_a_sidecar_is_started_again(self):
        self.submit("again", """  command: [sh, -c, 'while [ "$(cat $BERTH_SCRATCH/runs | wc -l)" -lt 3 ]; do sleep 0.1; done']
  containers: [{name: side, command: [sh, -c, 'echo run >> $BERTH_SCRATCH/runs; echo out; exit 1']}]
""")
        began = time.monotonic()
        self.cluster.wait_job("again", "SUCCEEDED")
        self.assertGreater(time.monotonic() - began, 2.5, "it has waited for 1 s and 2 s")
        self.assertEqual(self.logs("again", "side"), "out\n" * 3)

    def test_exec_and_cancel(self):
        self.submit("exec", """  image: small:1
  command: [sh, -c, "trap 'exit 0' TERM; sleep 9140 & wait"]
  containers: [{name: side, image: 'other:1', command: [sh, -c, "trap 'echo end; exit 0' TERM; sleep 9141 & wait"]}]
""")
        self.cluster.wait_job("exec", "RUNNING")
        self.assertEqual(self.cluster.berth("exec", "exec", "--", "cat", "/data/which"), "small\n")
        self.assertEqual(self.cluster.berth("exec", "exec", "--container", "side", "--", "cat", "/data/which"), "other\n")
        gone = self.cluster.run_berth("exec", "exec", "--container", "gone", "--", "true")
        self.assertIn("the task has no container gone", gone.stderr)
        self.cluster.berth("job", "cancel", "exec")
        self.cluster.wait_job("exec", "CANCELLED")
        self.assertEqual(self.logs("exec", "side"), "end\n", "the sidecar ends by SIGTERM, too")
        wait_until(lambda: not self.leftovers("sleep 914"), 30, "nothing is left")
        tasks = list((self.state / "tasks").glob("*/containers/side"))
        self.assertEqual(len(tasks), 1)
        for name in ("tmp", "var-tmp", "layer"):
            self.assertFalse((tasks[0] / name).exists(), f"{name} goes with the task")
        self.assertEqual(list((self.state / "images" / "used").iterdir()), [], "no image is in use")

    def test_host_names_of_tasks(self):
        """With and without an image, in the command and in a container; others than the job's tasks do not see them."""
        look = "busybox grep -h named- /etc/hosts | busybox wc -l; busybox grep -c 127.0.0.1.*named-b-1.job /etc/hosts"
        for name, image in (("with", "image: 'small:1', "), ("without", "")):
            self.submit(name, f"""  {image.strip(", ") or "env: []"}
  hostNames: [named-a]
  command: [sh, -c, "{look}; sleep 0.5"]
  containers: [{{name: side, {image}command: [sh, -c, "{look}; sleep 100"]}}]
- name: b
  replicas: 2
  hostNames: ["named-b-[0-1]", "named-b-[0-1].job"]
  command: [sleep, '3']
""")
            self.cluster.wait_job(name, "SUCCEEDED")
            self.assertEqual(self.cluster.berth("job", "logs", name, "--task", "w-0"), "3\n1\n")
            self.assertEqual(self.cluster.berth("job", "logs", name, "--task", "w-0", "-c", "side"), "3\n1\n")
        self.assertNotIn("named-", pathlib.Path("/etc/hosts").read_text())

    def test_an_agent_that_restarts_keeps_the_containers(self):
        self.submit("adopt", """  command: [sleep, '9150']
  containers:
  - {name: fetch, kind: Init, command: [sh, -c, 'sleep 4; echo fetched']}
  - {name: side, command: [sleep, '9151']}
""")
        wait_until(lambda: self.leftovers("sleep 4; echo"), 30, "the step runs")
        agent = self.cluster.agents["n1"]
        agent.kill()
        agent.start()
        self.cluster.wait_job("adopt", "RUNNING")
        self.assertEqual(self.logs("adopt", "fetch"), "fetched\n")
        self.assertEqual(self.cluster.berth("exec", "adopt", "-c", "side", "--", "echo", "in"), "in\n")
        self.cluster.berth("job", "cancel", "adopt")
        self.cluster.wait_job("adopt", "CANCELLED")
        wait_until(lambda: not self.leftovers("sleep 915"), 30, "nothing is left")


if __name__ == "__main__":
    unittest.main()
