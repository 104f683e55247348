#!/usr/bin/env python3
"""Tasks go to the node that holds their image: two agents, a real registry, restarts of berthd and of the agent, and
berth-sim verify, which makes the same decisions from the log.

Needs root, crun, umoci, skopeo, docker-registry, htpasswd and a static busybox; without them the test is skipped.
"""
import subprocess
import unittest

from berth_api import job_pb2, make_job
from berth_harness import BIN, wait_until
from registry_image_test import Base


class ImageLocality(Base):
    def warm(self):
        """n2 holds the image; n1, which comes first otherwise, does not."""
        self.add(which="one\n")
        self.agent("n1")
        self.agent("n2")
        self.cluster.berth("node", "cordon", "n1")
        self.assertEqual(self.in_image("warm"), "n2")
        self.cluster.berth("node", "uncordon", "n1")
        wait_until(lambda: len(self.node("n2").status.images) == 1, 20, "the node reports it")

    def node_of(self, name):
        self.cluster.wait_job(name, "SUCCEEDED")
        return self.cluster.api.tasks(name)[0].node

    def in_image(self, name):
        """The node on which a job in the image ran."""
        self.submit(name, "small:1", command=["cat", "/data/which"])
        return self.node_of(name)

    def without_image(self, name):
        job = make_job(name, "q", ["true"])
        self.cluster.api.jobs.SubmitJobs(job_pb2.SubmitJobsRequest(request_id=name, jobs=[job]), timeout=10)
        return self.node_of(name)

    def verify(self):
        """All decisions follow from the log."""
        result = subprocess.run([str(BIN / "berth-sim"), "verify", str(self.cluster.server.data)],
                                capture_output=True, text=True, timeout=120)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def test_the_node_that_holds_the_image_is_chosen(self):
        self.warm()
        asked = self.registry.gets("blobs/")
        for i in range(3):
            self.assertEqual(self.in_image(f"in-image-{i}"), "n2")
            self.assertEqual(self.without_image(f"plain-{i}"), "n1")
        self.assertEqual(self.registry.gets("blobs/"), asked, "nothing is pulled again")
        self.cluster.server.stop()
        self.verify()

    def test_it_counts_after_restarts_before_anything_is_reported_again(self):
        self.warm()
        self.assertEqual(self.in_image("before"), "n2")
        for name in ("n1", "n2"):
            self.cluster.agents[name].kill()
        self.cluster.server.kill()
        self.cluster.server.start()
        self.submit("after", "small:1", command=["cat", "/data/which"])
        for name in ("n1", "n2"):
            self.cluster.agents[name].start()
        self.assertEqual(self.node_of("after"), "n2")
        wait_until(lambda: len(self.node("n2").status.images) == 1, 30, "the node reports it again")
        self.assertEqual(self.in_image("later"), "n2")
        self.cluster.server.kill()
        self.verify()


if __name__ == "__main__":
    unittest.main(verbosity=2)
