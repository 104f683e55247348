#!/usr/bin/env python3
"""Shares of GPUs from a user's view: quotas in halves, the environment of a task, a restart, and decisions that the
engine repeats from the log, including prices."""
import json
import subprocess
import unittest

from berth_api import job_pb2, make_job, types_pb2
from berth_harness import BIN, Cluster, wait_until

SHARED = [{"name": "n[1-4]", "cpu": 64, "memory": "64Gi", "devices": {"gpu": 4}, "tasksPerGpu": 4, "runTime": "2s",
           "runTimeJitter": "2s"}]


def sharing(name, queue, share, **more):
    job = make_job(name, queue, more.pop("command", ["run"]), **more)
    job.spec.groups[0].resources.devices.append(types_pb2.DeviceRequest(kind="gpu", share=share))
    return job


class Sharing(unittest.TestCase):
    def setUp(self):
        self.cluster = Cluster({"log": {"level": "warn"}}).belongs_to(self)
        self.server = self.cluster.server.start()

    def submit(self, jobs):
        self.cluster.api.jobs.SubmitJobs(job_pb2.SubmitJobsRequest(jobs=jobs), timeout=30)

    def free_gpus(self, node):
        return json.loads(self.cluster.berth("node", "get", node, "-o", "json"))["status"]["free"]["counts"].get("gpu", 0)

    def test_quotas_in_halves_and_the_environment_of_a_task(self):
        self.cluster.add_agent("one", devices=[{"kind": "gpu", "uuid": "GPU-a", "memory": "80Gi"},
                                               {"kind": "gpu", "uuid": "GPU-b", "memory": "80Gi"}],
                               sharing={"mode": "MPS", "maxTasks": 4, "mpsPipeDirectory": "/run/mps"})
        self.cluster.wait_nodes(1)
        manifest = self.cluster.manifest("apiVersion: berth/v1\nkind: Queue\nname: halves\nlimit: {gpu: 1.25}\n", "queue.yaml")
        self.cluster.berth("apply", "-f", manifest)
        script = "echo $BERTH_DEVICE_SHARE $CUDA_VISIBLE_DEVICES $CUDA_MPS_ACTIVE_THREAD_PERCENTAGE " \
               "$CUDA_MPS_PINNED_DEVICE_MEM_LIMIT $CUDA_MPS_PIPE_DIRECTORY; sleep 60"
        self.submit([sharing(f"j{i}", "halves", 0.5, command=["/bin/sh", "-c", script]) for i in range(3)])
        for name in ["j0", "j1"]:
            self.cluster.wait_job(name, "RUNNING")
        wait_until(lambda: "GPU-a" in self.cluster.berth("job", "logs", "j0"), 20, "the first task prints")
        self.assertEqual(self.cluster.berth("job", "logs", "j0").strip(), "0.500 GPU-a 50 0=40960M /run/mps")
        self.assertIn("GPU-a", self.cluster.berth("job", "logs", "j1"))  # the same one
        described = self.cluster.berth("job", "get", "j2")
        self.assertIn("needs 0.5 gpu, 0.25 free", described)
        self.assertEqual(self.free_gpus("one"), 1)
        self.assertIn("1 in use", self.cluster.berth("node", "describe", "one"))
        shares = self.cluster.berth("queue", "shares")
        self.assertIn("1.25", shares)

        self.server.kill()
        self.server.start()
        self.cluster.wait_nodes(1)
        self.assertEqual(self.free_gpus("one"), 1)
        self.cluster.berth("job", "cancel", "j0")
        self.cluster.wait_job("j2", "RUNNING")
        self.assertEqual(self.free_gpus("one"), 1)

    def test_memory_oversubscription_capability_and_scratch(self):
        devices = [{"kind": "gpu", "uuid": "GPU-40", "memory": "40Gi", "computeCapability": "8.0"},
                   {"kind": "gpu", "uuid": "GPU-80", "memory": "80Gi", "computeCapability": "9.0"}]
        self.cluster.add_agent("one", devices=devices, scratch="100Gi", cpu=16,
                               sharing={"mode": "MPS", "maxTasks": 8, "oversubscription": 200,
                                        "mpsPipeDirectory": "/run/mps"})
        self.cluster.wait_nodes(1)
        self.cluster.create_queue("q")
        berth = self.cluster.berth
        script = "echo $CUDA_VISIBLE_DEVICES $BERTH_DEVICE_SHARE/$BERTH_DEVICE_MEMORY_SHARE " \
               "$CUDA_MPS_ACTIVE_THREAD_PERCENTAGE/$CUDA_MPS_PINNED_DEVICE_MEM_LIMIT $BERTH_SCRATCH_BYTES; sleep 60"
        run = ["--", "/bin/sh", "-c", script]

        def says(name):
            self.cluster.wait_job(name, "RUNNING")
            wait_until(lambda: "GPU-" in berth("job", "logs", name), 20, f"{name} prints")
            return berth("job", "logs", name).strip()

        # By memory: half of the small GPU, although the large one is suitable too; queues count that half.
        berth("submit", "-q", "q", "-n", "small", "--gpu-memory", "20Gi", "--scratch", "60Gi", *run)
        self.assertEqual(says("small"), f"GPU-40 /0.500 /0=20480M {60 << 30}")
        manifest = self.cluster.manifest("""
apiVersion: berth/v1
kind: Job
name: large
queue: q
groups: [{name: w, replicas: 1, command: [/bin/sh, -c, '%s'], resources: {gpu: {memory: 20Gi, minComputeCapability: "8.9"}}}]
""" % script, "large.yaml")
        berth("submit", manifest)
        self.assertEqual(says("large"), "GPU-80 /0.250 /0=20480M")
        node = json.loads(berth("node", "get", "one", "-o", "json"))["status"]
        self.assertEqual(node["free"]["counts"]["gpu"], 1.25)
        self.assertEqual(node["allocated"]["counts"]["gpu"], 0.75)
        self.assertEqual(int(node["free"]["scratch"]), 40 << 30)
        queue = json.loads(berth("queue", "get", "q", "-o", "json"))["status"]["allocated"]
        self.assertEqual(queue["counts"]["gpu"], 0.75)  # 0.5 and, as only the large GPU is suitable, 0.25
        berth("submit", "-q", "q", "-n", "disk", "--scratch", "60Gi", *run)
        self.assertIn("needs scratch 60Gi, 40Gi free", berth("job", "get", "disk"))

        # Oversubscribed: two jobs with half a GPU each run in the remaining half; a job that does not agree waits.
        job = sharing("soft", "q", 0.5, command=["/bin/sh", "-c", script])
        job.spec.groups[0].replicas = 4
        job.spec.groups[0].resources.devices[0].oversubscribe = True
        self.submit([job, sharing("firm", "q", 0.5, command=["/bin/sh", "-c", script])])
        self.cluster.wait_job("soft", "RUNNING")
        self.assertIn("/0.250 50/0=", says("soft"))
        self.assertEqual(self.free_gpus("one"), 0.25)
        self.assertIn("Pending", berth("job", "get", "firm"))

        before = berth("job", "list", "-o", "name"), self.free_gpus("one")
        self.server.kill()
        self.server.start()
        self.cluster.wait_nodes(1)
        self.assertEqual((berth("job", "list", "-o", "name"), self.free_gpus("one")), before)
        berth("job", "cancel", "soft")
        self.cluster.wait_job("firm", "RUNNING")
        self.assertEqual(subprocess.run([str(BIN / "berth-sim"), "verify", str(self.stopped())]).returncode, 0)

    def stopped(self):
        self.server.stop()
        return self.server.data

    def test_a_learned_mix_with_prices_is_part_of_the_log(self):
        self.cluster.add_simulation(SHARED)
        self.cluster.wait_nodes(4)
        self.cluster.create_queue("q")
        self.submit([sharing(f"a{i}", "q", (0.25, 0.4, 0.7)[i % 3]) for i in range(60)])
        wait_until(lambda: self.server.metric("berth_request_mix_priced") == 1, 60, "prices are found")
        self.server.kill()
        self.server.start()
        wait_until(lambda: self.server.metric("berth_request_mix_priced") == 1, 60, "the prices are known again")
        self.submit([sharing(f"b{i}", "q", (0.25, 0.4, 0.7)[i % 3]) for i in range(60)])
        wait_until(lambda: len(self.cluster.api.all_jobs(states=[job_pb2.JOB_SUCCEEDED])) == 120, 120, "all end")
        self.server.stop()
        verified = subprocess.run([str(BIN / "berth-sim"), "verify", str(self.server.data), "-o", "json"],
                                  capture_output=True, text=True, timeout=300)
        self.assertEqual(verified.returncode, 0, verified.stdout + verified.stderr)
        self.assertGreater(int(json.loads(verified.stdout)["decisions"]), 200)


if __name__ == "__main__":
    unittest.main(verbosity=2)
