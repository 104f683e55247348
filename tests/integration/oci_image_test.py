#!/usr/bin/env python3
"""Tasks in images of OCI layouts, end to end: resolved, unpacked once, shared, refused if damaged, and intact after
kills. Needs root, crun, umoci and a static busybox; without them the test is skipped.
"""
import os
import pathlib
import shutil
import signal
import unittest

from google.protobuf import duration_pb2

from berth_api import job_pb2, make_job, node_pb2
from berth_harness import BIN, Cluster, alive, wait_until
from oci_layout import Layout, crun_here, require_images


class OciImage(unittest.TestCase):
    def setUp(self):
        self.busybox = require_images(self)
        self.cluster = Cluster({"lease": "6s", "heartbeatInterval": "1s"})
        self.cluster.belongs_to(self)
        self.cluster.server.start()
        self.cluster.create_queue("q")
        self.store = self.cluster.home / "store"
        self.layout = Layout(self.store / "team" / "small")
        self.state = pathlib.Path(f"/run{self.cluster.home}")  # not below /tmp; the harness searches for this name
        self.state.mkdir(parents=True)
        self.addCleanup(shutil.rmtree, self.state, ignore_errors=True)

    def agent(self, hooks=None, **images):
        images = {"directory": str(self.store), "crun": self.crun(), **images}
        agent = self.cluster.add_agent("n1", stateDirectory=str(self.state), images=images, hooks=hooks or {})
        self.cluster.wait_nodes(1)
        return agent

    def crun(self):
        return crun_here(self.cluster.home)

    def script(self, name, text):
        path = self.cluster.home / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
        return str(path)

    def submit(self, job, image):
        job.spec.groups[0].image = image
        self.cluster.api.jobs.SubmitJobs(job_pb2.SubmitJobsRequest(request_id=job.name, jobs=[job]), timeout=10)

    def add(self, tag, config, **files):
        return self.layout.add(tag, config, self.busybox, **files)

    def cached(self):
        return {path.name for path in (self.state / "images").glob("sha256-*")}

    def used(self):
        return list((self.state / "images" / "used").iterdir())

    def logs(self, job):
        return self.cluster.berth("job", "logs", job)

    def test_configuration_tags_and_sharing(self):
        one = self.add("1", {"Env": ["PATH=/bin", "FROM=image", "OF=image", "WORLD_SIZE=77"], "WorkingDir": "/data",
                             "Entrypoint": ["/nothing"], "User": "0"}, which="one")
        two = self.add("2", {"WorkingDir": "/"}, which="two")
        prolog = self.cluster.home / "prolog"
        self.agent(hooks={"prolog": ["/bin/sh", "-c", f"env >> {prolog}"]})
        look = ("cat /data/which; echo; pwd; id -u; echo $PATH $FROM $OF $WORLD_SIZE; "
                "touch /data/x && echo layer; touch $BERTH_SCRATCH/x && echo own; ")
        self.submit(make_job("first", "q", ["sh", "-c", look + "sleep 100000"], replicas=2, env={"OF": "job"}), "team/small:1")
        self.submit(make_job("second", "q", ["/bin/sh", "-c", look + "sleep 100000"]), "team/small:2")
        expected = {"first": "one\n/data\n65534\n/bin image job 2\nlayer\nown\n",
                    "second": "two\n/run/berth/work\n65534\n/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin 1\n"
                              "layer\nown\n"}
        for name, text in expected.items():
            self.cluster.wait_job(name, "RUNNING")
            for task in range(2 if name == "first" else 1):
                def said():
                    out = self.cluster.berth("job", "logs", name, "--task", f"w-{task}")
                    return "\n".join(line for line in out.splitlines() if "touch:" not in line) + "\n"
                wait_until(lambda: said() == text or self.fail_later(said()), 20, f"output of task {task} of {name}")
        self.assertNotIn("image", [line.partition("=")[2] for line in prolog.read_text().splitlines()],
                         "variables of an image reach no program of the node")
        self.assertEqual(self.cached(), {one, two})
        self.assertEqual(sorted(os.readlink(link) for link in self.used()), sorted([f"../{one}"] * 2 + [f"../{two}"]))
        self.assertEqual(self.cluster.berth("exec", "first", "--", "cat", "/data/which"), "one")
        for name in expected:
            self.cluster.berth("job", "cancel", name)
            self.cluster.wait_job(name, "CANCELLED")
        self.assertEqual(self.used(), [], "ended tasks hold no image")
        self.assertEqual(self.cached(), {one, two})

    @staticmethod
    def fail_later(text):
        raise LookupError(repr(text))

    def refused(self, job, image, pattern):
        self.submit(make_job(job, "q", ["true"]), image)

        self.assertRegex(self.cluster.wait_job(job, "FAILED").status.message, pattern)
        node = self.cluster.api.nodes.GetNode(node_pb2.GetNodeRequest(name="n1"), timeout=10)
        self.assertEqual(node.status.refusals, 0)  # the job's fault, not the node's

    def test_refusals(self):
        self.add("1", {}, which="one")
        self.agent()
        blob = self.layout.layers[0]["digest"]
        file = self.layout.path / "blobs" / "sha256" / blob.removeprefix("sha256:")
        data = bytearray(file.read_bytes())
        data[len(data) // 2] ^= 1
        file.write_bytes(data)
        self.refused("damaged", "team/small:1", f"image team/small:1: blob {blob} of .*/team/small is damaged")
        self.assertEqual(self.cached(), set())
        self.assertFalse((self.state / "images" / "new").exists())
        self.refused("missing", "team/other:1",
                     f"skopeo copy docker://REGISTRY/team/other:1 oci:{self.store}/team/other:1")
        self.refused("tag", "team/small:3", "the OCI layout .* has no tag 3; it has: 1")

    def test_the_socket_of_the_task(self):
        """`berth` of the node, with its libraries, reads the job and runs a command from inside the image."""
        self.add("1", {"Env": ["PATH=/bin", "BERTH_SERVER=of.the.image:1"]}, which="one")
        program = pathlib.Path(f"/run{self.cluster.home}") / "berth"
        shutil.copy(BIN / "berth", program)
        self.agent(binds=["/usr", "/lib", "/lib64", str(program)])
        self.submit(make_job("boxed", "q", ["sh", "-c", f"until {program} exec boxed -n -- cat /data/which; do sleep 0.2; done; "
                                            f"echo; env; sleep 100000"]), "team/small:1")
        wait_until(lambda: "BERTH_SERVER" in self.logs("boxed"), 60, "the command has ended")
        self.assertIn("one\n", self.logs("boxed"))
        self.assertIn("BERTH_SERVER=unix:/run/berth/door/socket\n", self.logs("boxed"))

    def slow_umoci(self):
        """Reports when it begins, and continues when the test allows it."""
        return self.script("umoci-here", f"echo $$ >> {self.cluster.home}/begun\n"
                                         f"until [ -e {self.cluster.home}/go ]; do sleep 0.05; done\n"
                                         "exec /usr/bin/umoci \"$@\"")

    def unpackers(self):
        path = self.cluster.home / "begun"
        return [int(line) for line in path.read_text().split()] if path.exists() else []

    def test_a_long_unpacking_blocks_nothing(self):
        entry = self.add("1", {"Env": ["PATH=/bin"]}, which="one")
        self.agent(umoci=self.slow_umoci())
        self.submit(make_job("boxed", "q", ["cat", "/data/which"]), "team/small:1")
        wait_until(self.unpackers, 20, "it is being unpacked")
        for i in range(4):  # longer than the lease
            self.submit(make_job(f"plain-{i}", "q", ["sleep", "2"]), "")
            self.cluster.wait_job(f"plain-{i}", "SUCCEEDED")
        self.assertEqual(self.cached(), set())
        (self.cluster.home / "go").touch()
        self.cluster.wait_job("boxed", "SUCCEEDED")
        self.assertEqual(self.logs("boxed"), "one")
        self.assertEqual(self.cached(), {entry})
        self.assertEqual(len(self.unpackers()), 1)

    def test_an_unpacking_outlasts_the_task_that_requested_it(self):
        entry = self.add("1", {"Env": ["PATH=/bin"]}, which="one")
        self.agent(umoci=self.slow_umoci())
        job = make_job("boxed", "q", ["cat", "/data/which"], prepare_timeout=duration_pb2.Duration(seconds=2))
        self.submit(job, "team/small:1")
        wait_until(self.unpackers, 20, "it is being unpacked")

        def says():
            return self.cluster.api.jobs.GetJob(job_pb2.GetJobRequest(name="boxed"), timeout=10).status.message
        wait_until(lambda: "was not prepared within 2s" in says(), 30, "the time to prepare has expired")
        node = self.cluster.api.nodes.GetNode(node_pb2.GetNodeRequest(name="n1"), timeout=10)
        self.assertEqual(node.status.refusals, 0)
        (self.cluster.home / "go").touch()
        wait_until(lambda: self.cached() == {entry}, 20, "it was unpacked anyway")
        wait_until(lambda: not self.used(), 20, "the task that ended holds no image")
        self.cluster.wait_job("boxed", "SUCCEEDED", timeout_s=120)
        self.assertEqual(self.logs("boxed"), "one")
        self.assertEqual(len(self.unpackers()), 1)

    def test_an_agent_killed_while_unpacking(self):
        entry = self.add("1", {"Env": ["PATH=/bin"]}, which="one")
        agent = self.agent(umoci=self.slow_umoci())
        self.submit(make_job("boxed", "q", ["cat", "/data/which"]), "team/small:1")
        (unpacker,) = wait_until(self.unpackers, 20, "it is being unpacked")
        agent.kill()
        self.assertTrue(alive(unpacker), "the end of an agent does not end its unpacking")
        agent.start()
        self.cluster.wait_nodes(1)
        (self.cluster.home / "go").touch()
        self.cluster.wait_job("boxed", "SUCCEEDED")
        self.assertEqual(self.logs("boxed"), "one")
        self.assertEqual(len(self.unpackers()), 1)
        self.assertEqual(self.cached(), {entry})
        wait_until(lambda: not self.used(), 20, "nothing holds the image")

    def test_all_killed_while_unpacking(self):
        entry = self.add("1", {"Env": ["PATH=/bin"]}, which="one")
        agent = self.agent(umoci=self.slow_umoci())
        self.submit(make_job("boxed", "q", ["cat", "/data/which"]), "team/small:1")
        (unpacker,) = wait_until(self.unpackers, 20, "it is being unpacked")
        agent.kill()

        def only_program():
            found = [pid for pid in self.cluster.processes()
                     if b"berth-image" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()]
            return found[0] if len(found) == 1 else None  # includes a fork of it that has not yet called exec
        try:
            program = wait_until(only_program, 20, "one unpacking program")
        except AssertionError as late:
            running = {pid: pathlib.Path(f"/proc/{pid}/cmdline").read_bytes() for pid in self.cluster.processes()}
            self.fail(f"{late}; umoci is {'' if alive(unpacker) else 'not '}there; of {running}")
        os.kill(program, signal.SIGKILL)
        wait_until(lambda: not alive(unpacker), 20, "umoci ends with the program that started it")
        self.assertEqual(self.cached(), set())
        (self.cluster.home / "go").touch()
        agent.start()
        self.cluster.wait_nodes(1)
        self.cluster.wait_job("boxed", "SUCCEEDED")
        self.assertEqual(self.cached(), {entry})
        self.assertFalse((self.state / "images" / "new").exists())


if __name__ == "__main__":
    unittest.main(verbosity=2)
