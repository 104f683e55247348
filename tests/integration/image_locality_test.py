#!/usr/bin/env python3
"""Tasks go to the node that holds their image: two agents, a real registry, and restarts of berthd and of the agent.

Needs root, crun, umoci, skopeo, docker-registry, htpasswd and a static busybox; without them the test is skipped.
"""
import subprocess
import unittest

from berth_harness import BIN, wait_until
from registry_image_test import Base


class ImageLocality(Base):
    def where(self, name, image="small:1"):
        """On which node a job in that image runs. It asks for so little that all nodes stay nearly empty."""
        self.submit(name, image, command=["cat", "/data/which"])
        self.assertEqual(self.output_of(name), "one\n")
        return self.cluster.api.tasks(name)[0].node

    def log_of_images(self):
        return self.cluster.server.output().count("images of a node are not recorded")

    def test_the_node_that_holds_the_image_is_chosen(self):
        self.add(which="one\n")
        self.agent("n2")
        self.assertEqual(self.where("warm"), "n2", "the only node pulls the image")
        wait_until(lambda: len(self.node("n2").status.images) == 1, 20, "the node reports it")
        self.agent("n1")  # a newer node, with a later id
        self.agent("n0")
        asked = self.registry.gets("blobs/")
        for i in range(3):
            self.assertEqual(self.where(f"there-{i}"), "n2")
        self.assertEqual(self.registry.gets("blobs/"), asked, "nothing is pulled again")
        self.assertEqual(self.log_of_images(), 0)

    def test_it_is_known_after_restarts(self):
        self.add(which="one\n")
        self.agent("n1")
        self.agent("n2")
        self.cluster.berth("node", "cordon", "n1")
        self.assertEqual(self.where("warm"), "n2")
        self.cluster.berth("node", "uncordon", "n1")
        wait_until(lambda: len(self.node("n2").status.images) == 1, 20, "the node reports it")
        self.assertEqual(self.where("before"), "n2", "and not n1, which comes first otherwise")
        # The facts are in the store: they count before any agent has reported again.
        self.cluster.agents["n2"].kill()
        self.cluster.server.kill()
        self.cluster.server.start()
        self.cluster.agents["n2"].start()
        wait_until(lambda: len(self.node("n2").status.images) == 1, 30, "the node reports it again")
        self.assertEqual(self.where("after"), "n2")
        self.cluster.server.kill()
        result = subprocess.run([str(BIN / "berth-sim"), "verify", str(self.cluster.server.data)],
                                capture_output=True, text=True, timeout=120)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
