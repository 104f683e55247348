#!/usr/bin/env python3
"""A tag moves in a real registry while a gang is prepared: all members run the same image, also across restarts of berthd
and of agents. And what nodes hold: shown, and pulled in advance for a job with a reservation.

Needs root, crun, umoci, skopeo, docker-registry, htpasswd and a static busybox; without them the test is skipped.
"""
import signal
import time
import unittest

from google.protobuf import duration_pb2

from berth_api import job_pb2, make_job, types_pb2
from berth_harness import wait_until
from registry_image_test import Base

ALWAYS = types_pb2.IMAGE_PULL_POLICY_ALWAYS


class ImageDigest(Base):
    lease = "20s"

    def gang(self, name, policy=ALWAYS, seconds=0):
        """Two members, one on each of two nodes."""
        job = make_job(name, "q", ["sh", "-c", f"cat /data/which; sleep {seconds}"], replicas=2)
        group = job.spec.groups[0]
        group.image, group.image_pull_policy = f"{self.registry.host}/team/small:1", policy
        group.resources.cpu_millis = 5000
        self.cluster.api.jobs.SubmitJobs(job_pb2.SubmitJobsRequest(request_id=name, jobs=[job]), timeout=10)

    def tasks(self, name):
        return self.cluster.api.tasks(name)

    def state_of(self, name, node):
        return next(task.state for task in self.tasks(name) if task.node == node)

    def check(self, name, text):
        """Both members print the same, and the gang started once."""
        job = self.cluster.wait_job(name, "SUCCEEDED")
        for task in range(2):
            self.assertEqual(self.cluster.berth("job", "logs", name, "--task", f"w-{task}"), text)
        self.assertEqual(job.status.start_count, 1)
        self.assertEqual(sum(self.node(node).status.refusals for node in ("n1", "n2")), 0)

    def moved(self):
        self.assertIn("the tag of an image has moved between the pulls of two tasks", self.cluster.server.output())

    def prepared_on_n1_before_the_tag_moves(self):
        """n2 sleeps meanwhile."""
        self.add(which="one\n")
        for name in ("n1", "n2"):
            self.agent(name)
        self.cluster.agents["n2"].signal(signal.SIGSTOP)
        self.gang("gang")
        wait_until(lambda: self.state_of("gang", "n1") == job_pb2.TASK_PREPARED, 15, "n1 is prepared")
        self.add("2", which="two\n")

    def test_a_tag_that_moves_between_two_pulls(self):
        self.prepared_on_n1_before_the_tag_moves()
        self.cluster.agents["n2"].signal(signal.SIGCONT)
        self.check("gang", "one\n")
        self.moved()
        self.gang("later")
        self.check("later", "two\n")

    def test_a_node_that_has_an_older_image_under_the_tag(self):
        self.add(which="one\n")
        self.agent("n1")
        self.submit("warm", "small:1", command=["cat", "/data/which"])
        self.cluster.wait_job("warm", "SUCCEEDED")
        self.add("2", which="two\n")
        self.agent("n2")
        self.gang("gang", types_pb2.IMAGE_PULL_POLICY_IF_NOT_PRESENT)
        job = self.cluster.wait_job("gang", "SUCCEEDED")
        outputs = {self.cluster.berth("job", "logs", "gang", "--task", f"w-{task}") for task in range(2)}
        self.assertEqual(len(outputs), 1, outputs)
        self.assertEqual(job.status.start_count, 1)
        self.moved()

    def test_berthd_restarts_in_the_middle(self):
        self.prepared_on_n1_before_the_tag_moves()
        self.cluster.agents["n1"].signal(signal.SIGSTOP)
        self.cluster.server.kill()
        self.cluster.agents["n2"].signal(signal.SIGCONT)
        self.cluster.server.start()
        time.sleep(4)  # n2 registers and prepares, but nobody knows yet what n1 has
        self.assertEqual(self.state_of("gang", "n2"), job_pb2.TASK_BOUND)
        self.cluster.agents["n1"].signal(signal.SIGCONT)
        self.check("gang", "one\n")

    def test_the_agent_restarts_in_the_middle(self):
        self.prepared_on_n1_before_the_tag_moves()
        self.cluster.agents["n1"].kill()
        self.cluster.agents["n1"].start()
        self.cluster.agents["n2"].signal(signal.SIGCONT)
        self.check("gang", "one\n")

    def test_what_the_registry_no_longer_has_is_nobodys_fault(self):
        self.prepared_on_n1_before_the_tag_moves()
        digest = self.layout.manifests[0]["digest"].removeprefix("sha256:")
        for path in (self.registry.home / "data").rglob(f"revisions/sha256/{digest}/link"):
            path.unlink()
        self.registry.kill()  # it remembers what it has
        self.registry.start()
        self.cluster.agents["n2"].signal(signal.SIGCONT)
        self.cluster.wait_job("gang", "SUCCEEDED")
        for task in range(2):
            self.assertEqual(self.cluster.berth("job", "logs", "gang", "--task", f"w-{task}"), "two\n")


class NodeImages(Base):
    def test_a_job_with_a_reservation_finds_its_image_there(self):
        entry = self.add(which="one\n")
        self.agent()
        holds = make_job("holds", "q", ["sleep", "1000"])
        holds.spec.groups[0].resources.cpu_millis = 8000
        holds.spec.walltime.CopyFrom(duration_pb2.Duration(seconds=300))
        self.cluster.api.jobs.SubmitJobs(job_pb2.SubmitJobsRequest(request_id="holds", jobs=[holds]), timeout=10)
        self.cluster.wait_job("holds", "RUNNING")
        self.assertEqual(len(self.node().status.images), 0)
        waits = make_job("waits", "q", ["cat", "/data/which"])
        waits.spec.groups[0].image = f"{self.registry.host}/team/small:1"
        waits.spec.groups[0].resources.cpu_millis = 8000
        waits.spec.walltime.CopyFrom(duration_pb2.Duration(seconds=60))
        self.cluster.api.jobs.SubmitJobs(job_pb2.SubmitJobsRequest(request_id="waits", jobs=[waits]), timeout=10)
        wait_until(lambda: self.cached() == {entry}, 40, "the image is there before the job")
        images = self.states / "n1" / "images"
        self.assertEqual(list((images / "used").iterdir()), [], "nothing holds it")
        image = wait_until(lambda: self.node().status.images, 20, "the node reports it")[0]
        self.assertEqual(image.image, f"{self.registry.host}/team/small:1")
        self.assertEqual(image.digest, self.layout.manifests[0]["digest"])
        self.assertGreater(image.bytes, 1000)
        self.assertIn(f"{image.image}  {image.digest[:19]}", self.cluster.berth("node", "describe", "n1"))
        before = self.registry.gets()
        self.cluster.berth("job", "cancel", "holds")
        self.assertEqual(self.output_of("waits"), "one\n")
        self.assertEqual(self.registry.gets(), before, "the registry is not asked again")

    def test_images_are_reported_again_to_another_berthd(self):
        self.add(which="one\n")
        self.agent()
        self.submit("warm", "small:1", command=["cat", "/data/which"])
        self.cluster.wait_job("warm", "SUCCEEDED")
        wait_until(lambda: len(self.node().status.images) == 1, 20, "the node reports it")
        self.cluster.server.kill()
        self.cluster.server.start()
        wait_until(lambda: len(self.node().status.images) == 1, 30, "it reports it again")


if __name__ == "__main__":
    unittest.main(verbosity=2)
