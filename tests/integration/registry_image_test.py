#!/usr/bin/env python3
"""Images from a real registry with TLS and passwords: pulled once for all tasks of a node, by tag and digest, with the
image's own command, with credentials of operators and of jobs, from mirrors, through slow and broken connections.

    tests/integration/registry_image_test.py Heavy     16 agents and one image of 1 GiB, and how long a start takes (not
                                                       part of deploy/test)

Needs root, crun, umoci, skopeo, docker-registry, htpasswd and a static busybox; without them the test is skipped.
"""
import os
import pathlib
import pwd
import shutil
import statistics
import sys
import time
import unittest

from berth_api import job_pb2, job_state, make_job, node_pb2, types_pb2
from berth_harness import Cluster, wait_until
from oci_layout import Layout, crun_here, require_images
from registry import NEEDED, Authority, Registry
from relay import Drip, Relay

MIB = 1 << 20


class Base(unittest.TestCase):
    lease = "6s"

    def setUp(self):
        self.busybox = require_images(self, *NEEDED)
        self.cluster = Cluster({"lease": self.lease, "heartbeatInterval": "1s"})
        self.cluster.belongs_to(self)
        self.cluster.server.start()
        self.cluster.create_queue("q")
        self.home = self.cluster.home
        self.layout = Layout(self.home / "layout")
        self.authority = Authority(self.home)
        self.registry = Registry(self.home, self.authority, {"ann": "secret"}).start()
        self.addCleanup(lambda: self.registry.running() and self.registry.kill())
        self.states = pathlib.Path(f"/run{self.home}")  # not below /tmp
        self.states.mkdir(parents=True)
        self.addCleanup(shutil.rmtree, self.states, ignore_errors=True)

    def add(self, tag="1", config=None, **options):
        """Pushes a new image as team/small:1."""
        entry = self.layout.add(tag, config or {"Env": ["PATH=/bin"]}, self.busybox, **options)
        self.registry.push(self.layout, tag, "team/small:1")
        return entry

    def agent(self, name="n1", registries=None, **images):
        if registries is None:
            registries = [self.entry()]
        images = {"crun": crun_here(self.home), "registries": registries, **images}
        self.cluster.add_agent(name, stateDirectory=str(self.states / name), images=images, health={"minFree": "1Mi"})
        wait_until(lambda: self.node(name).status.state == node_pb2.NODE_READY, 20, f"{name} is ready")

    def entry(self, **more):
        """Of images.registries, with the operator's credentials."""
        path = self.registry.credentials(self.home / "auth.json", "ann", "secret", *([more["host"]] if "host" in more else []))
        return {"host": self.registry.host, "ca": self.authority.ca, "credentials": path, **more}

    def node(self, name="n1"):
        return self.cluster.api.nodes.GetNode(node_pb2.GetNodeRequest(name=name), timeout=10)

    def submit(self, name, image, command=(), args=(), host=None, **group):
        job = make_job(name, "q", list(command), replicas=group.pop("replicas", 1))
        one = job.spec.groups[0]
        one.image, one.args[:] = f"{host or self.registry.host}/team/{image}", args
        for key, value in group.items():
            setattr(one, key, value)
        self.cluster.api.jobs.SubmitJobs(job_pb2.SubmitJobsRequest(request_id=name, jobs=[job]), timeout=10)

    def output_of(self, name):
        self.cluster.wait_job(name, "SUCCEEDED")
        return self.cluster.berth("job", "logs", name)

    def message_of(self, name):
        return self.cluster.wait_job(name, "FAILED").status.message

    def cached(self, name="n1"):
        return {path.name for path in (self.states / name / "images").glob("sha256-*")}


class RegistryImage(Base):
    def test_pulled_once_with_the_images_own_command(self):
        entry = self.add(config={"Env": ["PATH=/bin", "WHO=image"], "Entrypoint": ["sh", "-c", 'echo $WHO "$0" "$@"; cat $0'],
                                 "Cmd": ["/data/which"]}, which="one\n")
        self.agent()
        self.submit("own", "small:1", replicas=1)
        self.assertEqual(self.output_of("own"), "image /data/which\none\n")
        asked = self.registry.gets()
        self.assertEqual(self.registry.gets("blobs/"), 2, "a layer and the configuration")
        self.submit("args", "small:1", args=["/data/which", "$BERTH_JOB"])
        self.assertEqual(self.output_of("args"), "image /data/which args\none\n")
        self.submit("command", "small:1", command=["cat"], args=["/data/which"])
        self.assertEqual(self.output_of("command"), "one\n")
        self.assertEqual(self.registry.gets(), asked, "the registry is not asked again for a tag that is there")
        self.assertEqual(self.cached(), {entry})
        pulled = self.states / "n1" / "images" / "pulled"
        self.assertFalse((pulled / "blobs").exists(), "layers go once the image is unpacked")
        # The tag moves: who always asks gets the new image, and others what is there.
        self.add("2", which="two\n")
        self.submit("there", "small:1", command=["cat", "/data/which"])
        self.assertEqual(self.output_of("there"), "one\n")
        self.submit("always", "small:1", command=["cat", "/data/which"], image_pull_policy=types_pb2.IMAGE_PULL_POLICY_ALWAYS)
        self.assertEqual(self.output_of("always"), "two\n")
        digest = entry.replace("sha256-", "sha256:")
        self.submit("digest", f"small@{digest}", command=["cat", "/data/which"])
        self.assertEqual(self.output_of("digest"), "one\n")
        self.submit("never", "other:1", command=["true"], image_pull_policy=types_pb2.IMAGE_PULL_POLICY_NEVER)
        self.assertIn("the node does not have it, and imagePullPolicy is Never", self.message_of("never"))

    def test_who_is_to_blame(self):
        self.add(which="one\n")
        self.agent()
        self.submit("tag", "small:7", command=["true"])
        self.assertIn(f"registry {self.registry.host} has no such image", self.message_of("tag"))
        self.submit("elsewhere", "small:1", command=["true"], host="registry.example")
        self.assertIn("registry registry.example is not configured for queue q (images.registries)",
                      self.message_of("elsewhere"))
        self.registry.kill()
        self.submit("down", "small:1", command=["cat", "/data/which"])
        wait_until(lambda: "connection refused" in self.cluster.berth("job", "describe", "down"), 30, "the reason is shown")
        self.registry.start()
        self.assertEqual(self.output_of("down"), "one\n")
        self.assertEqual(self.node().status.refusals, 0, "nothing of it was the node's fault")

    def test_a_poisoned_layer(self):
        self.add(which="one\n")
        self.agent()
        digest = self.layout.layers[0]["digest"].removeprefix("sha256:")
        blob = next((self.registry.home / "data").rglob(f"{digest}/data"))
        data = bytearray(blob.read_bytes())
        data[len(data) // 2] ^= 1
        blob.write_bytes(data)
        self.submit("poisoned", "small:1", command=["true"])
        self.assertRegex(self.message_of("poisoned"), "sent something else than the image|is damaged|digest")
        self.assertEqual(self.cached(), set())
        self.assertEqual(self.node().status.refusals, 0)

    def test_credentials(self):
        self.add(which="one\n")
        user = pwd.getpwnam("nobody")
        directory = self.home / "nobody"
        directory.mkdir()
        shutil.chown(directory, user.pw_uid)
        own = self.registry.credentials(directory / "own.json", "ann", "secret", owner=user.pw_uid)
        wrong = self.registry.credentials(directory / "wrong.json", "ann", "hunter2", owner=user.pw_uid)
        roots = self.registry.credentials(self.home / "roots.json", "ann", "secret")
        self.agent(registries=[self.entry(credentials="")])
        self.submit("without", "small:1", command=["true"])
        self.assertIn("does not accept the credentials", self.message_of("without"))
        self.submit("own", "small:1", command=["cat", "/data/which"], registry_auth=own)
        self.assertEqual(self.output_of("own"), "one\n")
        self.submit("runs", "small:1", command=["sleep", "100"], registry_auth=own)
        self.cluster.wait_job("runs", "RUNNING")
        self.assertEqual(list(self.states.rglob("registry-auth")), [], "credentials stay no longer than needed")
        # The image is on the node by now, but it is not for those without credentials.
        for name, auth, what in (("again", "", "does not accept the credentials"),
                                 ("wrong", wrong, "does not accept the credentials"),
                                 ("roots", roots, "registryAuth: cannot read .*/roots.json: Permission denied"),
                                 ("absent", "/nowhere.json", "registryAuth: cannot read /nowhere.json: No such file")):
            self.submit(name, "small:1", command=["true"], registry_auth=auth)
            self.assertRegex(self.message_of(name), what)
        for secret in ("secret", "hunter2"):
            for program in (self.cluster.server, *self.cluster.agents.values()):
                self.assertNotIn(secret, program.output())

    def test_mirrors(self):
        self.add(which="one\n")
        mirror = Registry(self.home, self.authority, {"ann": "secret"}, "mirror").start()
        self.addCleanup(lambda: mirror.running() and mirror.kill())
        mirror.push(self.layout, "1", "team/small:1")
        self.registry.credentials(self.home / "auth.json", "ann", "secret", mirror.host)
        credentials = str(self.home / "auth.json")
        one = {"host": self.registry.host, "ca": self.authority.ca, "credentials": credentials, "mirrors": [mirror.host]}
        other = {"host": mirror.host, "ca": self.authority.ca, "credentials": credentials}
        self.agent(registries=[one, other])
        self.submit("mirrored", "small:1", command=["cat", "/data/which"])
        self.assertEqual(self.output_of("mirrored"), "one\n")
        self.assertEqual(self.registry.gets(), 0)
        mirror.kill()
        self.submit("again", "small:1", command=["cat", "/data/which"], image_pull_policy=types_pb2.IMAGE_PULL_POLICY_ALWAYS)
        self.assertEqual(self.output_of("again"), "one\n")
        self.assertGreater(self.registry.gets("manifests/"), 0)

    def test_a_slow_registry_that_dies_in_the_middle(self):
        self.add(more_layers=[os.urandom(MIB), os.urandom(12 * MIB)], which="one\n")
        relay = Relay(self.registry.port)
        relay.fault = Drip(1, 3 * MIB)
        self.agent(registries=[self.entry(host=relay.address)])
        self.submit("slow", "small:1", command=["cat", "/data/which"], host=relay.address)

        def progress():
            return self.cluster.berth("job", "describe", "slow")
        wait_until(lambda: "pulling the image: " in progress(), 30, "the progress is shown")
        images = self.states / "n1" / "images"
        wait_until(lambda: len(list((images / "pulled" / "blobs" / "sha256").glob("*"))) >= 2, 60, "small layers are here")
        self.registry.kill()
        wait_until(lambda: "registry" in progress() and "pulling" not in progress(), 60, "the reason is shown")
        blobs = {blob.name for blob in (images / "pulled" / "blobs" / "sha256").glob("*")}
        relay.fault = None
        os.truncate(self.registry.home / "log", 0)
        self.registry.start()
        self.assertEqual(self.output_of("slow"), "one\n")
        for blob in blobs:
            self.assertEqual(self.registry.gets(f"blobs/sha256:{blob}"), 0, "whole layers are not pulled again")
        self.assertEqual(self.node().status.refusals, 0)

    def test_several_agents(self):
        self.add(more_layers=[os.urandom(8 * MIB)], which="one\n")
        names = [f"n{i}" for i in range(3)]
        for name in names:
            self.agent(name)
        self.submit("all", "small:1", command=["cat", "/data/which"], replicas=9)
        self.cluster.wait_job("all", "SUCCEEDED")
        nodes = [name for name in names if self.cached(name)]
        self.assertEqual(self.registry.gets("blobs/"), 3 * len(nodes), "each node pulls each blob once")


class Heavy(Base):
    def test_16_agents_pull_one_image_of_1_gib(self):
        self.add(more_layers=[os.urandom(128 * MIB) for _ in range(8)], which="one\n")
        names = [f"n{i}" for i in range(16)]
        for name in names:
            self.agent(name)
        for name in ("first", "second"):
            before, begin = self.registry.gets("blobs/"), time.monotonic()
            job = make_job(name, "q", ["cat", "/data/which"], replicas=16)
            job.spec.groups[0].image = f"{self.registry.host}/team/small:1"
            job.spec.groups[0].resources.cpu_millis = 5000  # one on each node
            self.cluster.api.jobs.SubmitJobs(job_pb2.SubmitJobsRequest(request_id=name, jobs=[job]), timeout=10)
            self.cluster.wait_job(name, "SUCCEEDED", timeout_s=1500)
            print(f"{name}: {self.registry.gets('blobs/') - before} blobs in {time.monotonic() - begin:.1f} s")
            self.assertEqual(self.registry.gets("blobs/") - before, 16 * 10 if name == "first" else 0)

    def test_from_submit_to_success(self):
        """Of a command in an image that the node has, and of one without an image."""
        self.add(which="one\n")
        self.agent()
        self.submit("warm", "small:1", command=["cat", "/data/which"])
        self.output_of("warm")
        times = {"plain": [], "image": []}
        for i in range(25):
            for kind, taken in times.items():
                job = make_job(f"{kind}-{i}", "q", ["/bin/true"] if kind == "plain" else ["cat", "/data/which"])
                if kind == "image":
                    job.spec.groups[0].image = f"{self.registry.host}/team/small:1"
                begin = time.monotonic()
                self.cluster.api.jobs.SubmitJobs(job_pb2.SubmitJobsRequest(request_id=job.name, jobs=[job]), timeout=10)
                wait_until(lambda: job_state(self.cluster.api.jobs.GetJob(job_pb2.GetJobRequest(name=job.name), timeout=5))
                           == "SUCCEEDED", 20, job.name, 0.002)
                taken.append((time.monotonic() - begin) * 1000)
        for kind, taken in times.items():
            print(f"{kind}: median {statistics.median(taken):.0f} ms ({min(taken):.0f}-{max(taken):.0f})")


if __name__ == "__main__":
    if len(sys.argv) == 1:
        sys.argv.append("RegistryImage")
    unittest.main(verbosity=2)
