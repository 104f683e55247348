#!/usr/bin/env python3
"""GPUs that fail, disappear, return and are partitioned while tasks run on them: a real agent with a fake driver
(tests/unit/discovery/fake), whose state the test writes.
"""
import os
import pathlib
import signal
import unittest
import urllib.request

from berth_api import job_pb2, make_job, node_pb2
from berth_harness import SOURCE, Cluster, free_port, wait_until

FAKE_NVML = pathlib.Path(os.environ.get("BERTH_BUILD", SOURCE / "build" / "release")) / "tests" / "libberth_fake_nvml.so"
HEALTHY = "ecc 0 0\necc 1 0\npending 1 0\n"


@unittest.skipUnless(FAKE_NVML.exists(), "the fake driver is not built")
class GpuHealth(unittest.TestCase):
    def setUp(self):
        self.cluster = Cluster()
        self.cluster.belongs_to(self)
        self.state = self.cluster.home / "driver"
        self.say("")
        os.environ["BERTH_FAKE_NVML_STATE"] = str(self.state)
        self.addCleanup(os.environ.pop, "BERTH_FAKE_NVML_STATE")
        self.cluster.server.start()
        self.cluster.create_queue("q")
        self.http = f"127.0.0.1:{free_port()}"
        self.agent = self.cluster.add_agent("n1", sharedPid=True, httpListen=self.http, discovery={"nvmlLibrary": str(FAKE_NVML)},
                                            health={"interval": self.interval(), "recoverAfter": 2})
        self.cluster.wait_nodes(1)

    def interval(self):
        return "1h" if self._testMethodName == "test_a_failure_because_of_a_device_uses_no_retry" else "1s"

    def say(self, text):
        """Writes to another file and renames it: the driver must not read half of it."""
        draft = self.state.with_suffix(".draft")
        draft.write_text(HEALTHY + text)
        draft.rename(self.state)

    def devices(self):
        """UUID -> whether it is healthy."""
        node = self.cluster.api.nodes.GetNode(node_pb2.GetNodeRequest(name="n1"), timeout=10)
        return {device.uuid: not device.unhealthy for device in node.inventory.devices if device.kind in ("gpu", "mig")}

    def wait_devices(self, what, **expected):
        names = {name.replace("_", "-").replace("GPU-", "GPU-fake-").replace("MIG-", "MIG-fake-"): good
                 for name, good in expected.items()}
        wait_until(lambda: self.devices() == names, 60, f"{what}: {names}")

    def condition(self, name):
        page = self.cluster.server.get("/metrics")[1]
        return f'berth_node_conditions{{condition="{name}"}} 1' in page

    def look(self):
        self.agent.signal(signal.SIGHUP)

    def start_task(self, name, kind, model=None, policies=(), command="exec sleep 100000"):
        marks = self.cluster.shared_file(name)
        job = make_job(name, "q", ["sh", "-c", f"echo $$ $CUDA_VISIBLE_DEVICES >> {marks}; {command}"])
        for event, action in policies:
            job.spec.policies.add(event=event, action=action)
        request = job.spec.groups[0].resources.devices.add(kind=kind, count=1)
        if model:
            request.model.append(model)
        self.cluster.api.jobs.SubmitJobs(job_pb2.SubmitJobsRequest(request_id=name, jobs=[job]), timeout=10)
        self.cluster.wait_job(name, "RUNNING")
        wait_until(lambda: marks.read_text().strip(), 20, "the task prints its devices")
        return marks

    def test_faults_and_losses_affect_only_the_device(self):
        whole = {"GPU_1": True, "GPU_2": True, "MIG_100": True, "MIG_103": True}
        self.wait_devices("the inventory is correct", **whole)
        marks = self.start_task("train", "gpu", policies=[("DEVICE_UNHEALTHY", "IGNORE")])
        pid, uuid = marks.read_text().split()
        self.assertEqual(uuid, "GPU-fake-1")
        self.say("xid 1 31\nxid 0 79\n")
        self.wait_devices("an XID", **{**whole, "GPU_1": False})
        wait_until(lambda: self.condition("gpu-xid"), 30, "the condition")
        page = urllib.request.urlopen(f"http://{self.http}/metrics", timeout=10).read().decode()
        self.assertIn('DCGM_FI_DEV_XID_ERRORS{gpu="0",UUID="GPU-fake-1"', page)
        self.assertIn('berth_agent_device_healthy{UUID="GPU-fake-1",kind="gpu",node="n1"} 0', page)

        self.say("gone 1 1\n")
        self.look()  # which also clears the XID
        self.wait_devices("a GPU that disappeared", **{**whole, "GPU_2": False})
        wait_until(lambda: self.condition("devices"), 30, "the condition")
        self.say("")
        self.look()
        self.wait_devices("a GPU that returned", **whole)
        wait_until(lambda: not self.condition("devices") and not self.condition("gpu-xid"), 30, "no condition")

        self.cluster.wait_job("train", "RUNNING")
        self.assertEqual(marks.read_text().split(), [pid, uuid])  # the same process, started once
        os.kill(int(pid), 0)

    def test_a_task_leaves_a_device_that_fails(self):
        marks = self.start_task("train", "gpu")
        self.assertEqual(marks.read_text().split()[1], "GPU-fake-1")
        self.say("xid 0 79\n")
        wait_until(lambda: len(marks.read_text().split()) == 4, 60, "the task starts again")
        self.assertEqual(marks.read_text().split()[3], "GPU-fake-2")
        job = self.cluster.wait_job("train", "RUNNING")
        self.assertEqual(job.status.retries, 0)
        self.assertIn("device GPU-fake-1 of n1 is unhealthy", job.status.message)

    def test_a_failure_because_of_a_device_uses_no_retry(self):
        """The regular rounds are too rare to see the XID in time: the agent looks when the task fails."""
        go = self.cluster.home / "go"
        command = (f"case $CUDA_VISIBLE_DEVICES in GPU-fake-1) while [ ! -e {go} ]; do sleep 0.1; done; exit 134;; esac; "
                   "exec sleep 100000")
        marks = self.start_task("train", "gpu", command=command)
        self.assertEqual(marks.read_text().split()[1], "GPU-fake-1")
        self.say("xid 0 79\n")
        go.write_text("")
        wait_until(lambda: len(marks.read_text().split()) == 4, 60, "the task starts again")
        self.assertEqual(marks.read_text().split()[3], "GPU-fake-2")
        job = self.cluster.wait_job("train", "RUNNING")
        self.assertEqual(job.status.retries, 0)

    def test_instances_are_devices(self):
        marks = self.start_task("slice", "mig", "3g.40gb")
        self.assertTrue(marks.read_text().split()[1].startswith("MIG-fake-10"))
        self.say("mig 1 1\n")
        self.look()
        self.wait_devices("a GPU is partitioned", GPU_1=True, MIG_100=True, MIG_103=True, MIG_300=True, MIG_303=True)
        self.assertFalse(self.condition("devices"))
        self.say("mig 1 1\nxid 1 95\n")
        self.wait_devices("its instances fail with it", GPU_1=True, MIG_100=True, MIG_103=True, MIG_300=False,
                          MIG_303=False)

    def test_memory_errors_come_and_go_with_the_counters(self):
        self.wait_devices("the inventory is correct", GPU_1=True, GPU_2=True, MIG_100=True, MIG_103=True)
        self.say("ecc 0 3\n")
        self.wait_devices("memory errors", GPU_1=False, GPU_2=True, MIG_100=True, MIG_103=True)
        wait_until(lambda: self.condition("gpu-ecc"), 30, "the condition")
        # A reloaded driver counts from 0.
        self.say("")
        self.wait_devices("counters that restarted", GPU_1=True, GPU_2=True, MIG_100=True, MIG_103=True)


if __name__ == "__main__":
    unittest.main()
