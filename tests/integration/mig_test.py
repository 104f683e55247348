#!/usr/bin/env python3
"""GPUs in MIG mode that are repartitioned for pending jobs: a real server and agent with a fake driver
(tests/unit/discovery/fake), which stores the instances of its GPUs in files.
"""
import os
import pathlib
import time
import unittest

from berth_api import job_pb2, make_job, node_pb2
from berth_harness import SOURCE, Cluster, wait_until

FAKE_NVML = pathlib.Path(os.environ.get("BERTH_BUILD", SOURCE / "build" / "release")) / "tests" / "libberth_fake_nvml.so"
SEVENFOLD = "".join(f"1g.10gb {i} {i + 1} 1\n" for i in range(7))
ENVIRONMENT = ("BERTH_FAKE_NVML", "BERTH_FAKE_NVML_STATE")


@unittest.skipUnless(FAKE_NVML.exists(), "the fake driver is not built")
class Mig(unittest.TestCase):
    def setUp(self):
        self.cluster = Cluster()
        self.cluster.belongs_to(self)
        self.state = self.cluster.home / "driver"
        self.layout = self.cluster.home / "driver.gpu2"
        self.say("")
        self.layout.write_text(SEVENFOLD)
        (self.cluster.home / "driver.gpu2.next").write_text("20")
        for name, value in zip(ENVIRONMENT, ("a100", str(self.state))):
            os.environ[name] = value
            self.addCleanup(os.environ.pop, name)
        self.cluster.server.start()
        self.cluster.create_queue("q")

    def say(self, text):
        draft = self.state.with_suffix(".draft")
        draft.write_text("ecc 0 0\necc 1 0\npending 1 0\n" + text)
        draft.rename(self.state)

    def add_agent(self, reconfigure=True):
        self.agent = self.cluster.add_agent("n1", discovery={"nvmlLibrary": str(FAKE_NVML)},
                                            mig={"reconfigure": reconfigure})
        self.cluster.wait_nodes(1)

    def instances(self):
        """UUID -> profile of the healthy instances."""
        node = self.cluster.api.nodes.GetNode(node_pb2.GetNodeRequest(name="n1"), timeout=10)
        return {d.uuid: d.model for d in node.inventory.devices if d.kind == "mig" and not d.unhealthy}

    def submit(self, name, profile, count):
        self.marks = self.cluster.shared_file(name)
        job = make_job(name, "q", ["sh", "-c", f"echo $CUDA_VISIBLE_DEVICES >> {self.marks}; exec sleep 100000"])
        job.spec.groups[0].resources.devices.add(kind="gpu", mig=profile, count=count)
        self.cluster.api.jobs.SubmitJobs(job_pb2.SubmitJobsRequest(request_id=name, jobs=[job]), timeout=10)

    def wait_running(self, name, expected):
        self.cluster.wait_job(name, "RUNNING", timeout_s=120)
        wait_until(lambda: self.marks.read_text().strip(), 20, "the task prints its devices")
        found = self.instances()
        self.assertEqual(sorted(found.values()), sorted(expected))
        return self.marks.read_text().splitlines()

    def test_a_gpu_is_partitioned_for_a_job(self):
        self.add_agent()
        wait_until(lambda: len(self.instances()) == 7, 60, "seven instances")
        self.submit("train", "3g.40gb", 2)
        lines = self.wait_running("train", ["3g.40gb", "3g.40gb"])
        self.assertEqual(lines, [",".join(sorted(self.instances()))])
        self.assertEqual([line.split()[:2] for line in self.layout.read_text().splitlines()],
                         [["3g.40gb", "0"], ["3g.40gb", "4"]])
        wait_until(lambda: 'berth_gpu_divisions_total{outcome="done"} 1' in self.cluster.server.get("/metrics")[1], 10,
                   "it is counted")

        # A GPU is never taken from a job that runs on it.
        self.submit("more", "1g.10gb", 1)
        time.sleep(12)
        self.cluster.wait_job("more", "PENDING")
        self.cluster.wait_job("train", "RUNNING")

    def test_a_gpu_without_instances(self):
        self.layout.write_text("")
        self.add_agent()
        self.submit("train", "7g.80gb", 1)
        self.wait_running("train", ["7g.80gb"])

    def test_a_node_that_forbids_it(self):
        self.add_agent(reconfigure=False)
        wait_until(lambda: len(self.instances()) == 7, 60, "seven instances")
        self.submit("train", "3g.40gb", 2)
        time.sleep(12)
        self.cluster.wait_job("train", "PENDING")
        self.assertEqual(self.layout.read_text(), SEVENFOLD)
        self.assertIn("mig.reconfigure", self.cluster.berth("job", "explain", "train"))

    def test_a_driver_that_fails(self):
        self.add_agent()
        wait_until(lambda: len(self.instances()) == 7, 60, "seven instances")
        self.say("room 2 1\n")
        self.submit("train", "3g.40gb", 2)
        wait_until(lambda: sorted(self.instances().values()) == ["3g.40gb"], 120, "the instances are registered")
        wait_until(lambda: 'berth_node_conditions{condition="mig"} 1' in self.cluster.server.get("/metrics")[1], 30,
                   "the condition")
        self.cluster.wait_job("train", "PENDING")

    def kill_server_when(self, line):
        self.add_agent()
        wait_until(lambda: len(self.instances()) == 7, 60, "seven instances")
        self.say("slow 2 2000\n")
        self.submit("train", "3g.40gb", 2)
        wait_until(lambda: line in self.agent.output(), 60, line)
        self.cluster.server.kill()
        self.cluster.server.start()
        self.assertEqual(len(self.wait_running("train", ["3g.40gb", "3g.40gb"])), 1)

    def test_the_server_is_killed_while_the_gpu_is_held(self):
        self.kill_server_when("holding a GPU for division")

    def test_the_server_is_killed_while_the_gpu_is_repartitioned(self):
        self.kill_server_when("dividing a GPU")

    def test_the_agent_is_killed_while_the_gpu_is_repartitioned(self):
        self.add_agent()
        wait_until(lambda: len(self.instances()) == 7, 60, "seven instances")
        self.say("slow 2 2000\n")
        self.submit("train", "3g.40gb", 2)
        wait_until(lambda: self.layout.read_text() == "", 60, "its instances are destroyed")
        self.agent.kill()
        self.agent.start()
        self.wait_running("train", ["3g.40gb", "3g.40gb"])


if __name__ == "__main__":
    unittest.main()
