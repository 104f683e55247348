#!/usr/bin/env python3
"""Manifests of other schedulers with a real torch.distributed: each task of a PyTorchJob, a JobSet and a Volcano
job with the plugin pytorch finds the others, by what Berth sets in place of those schedulers' operators.
"""
import subprocess
import unittest

from berth_harness import Cluster

HAS_TORCH = subprocess.run(["/usr/bin/python3", "-c", "import torch"], capture_output=True).returncode == 0
WITHIN_S = 240
SUM = """\
import os, torch, torch.distributed as dist
dist.init_process_group("gloo")
value = torch.tensor([dist.get_rank() + 1.0])
dist.all_reduce(value)
assert value.item() == 6, value
print("sum", int(value.item()), "of", dist.get_world_size(), flush=True)
dist.barrier()
os._exit(0)
"""

MANIFESTS = {
    "a-pytorch-job": """\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: a-pytorch-job}
spec:
  pytorchReplicaSpecs:
    Master: {replicas: 1, restartPolicy: OnFailure, template: {spec: {containers: [{name: pytorch, command: [/usr/bin/python3, SCRIPT]}]}}}
    Worker: {replicas: 2, restartPolicy: OnFailure, template: {spec: {containers: [{name: pytorch, command: [/usr/bin/python3, SCRIPT]}]}}}
""",
    "a-job-set": """\
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: a-job-set}
spec:
  replicatedJobs:
  - name: workers
    template:
      spec:
        parallelism: 3
        completions: 3
        backoffLimit: 0
        template:
          spec:
            restartPolicy: Never
            containers:
            - name: pytorch
              command: [/usr/bin/python3, SCRIPT]
              env:
              - {name: MASTER_ADDR, value: a-job-set-workers-0-0.a-job-set}
              - name: RANK
                valueFrom: {fieldRef: {fieldPath: "metadata.annotations['batch.kubernetes.io/job-completion-index']"}}
""",
    "a-volcano-job": """\
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: a-volcano-job}
spec:
  schedulerName: volcano
  minAvailable: 3
  plugins: {pytorch: ["--master=master", "--worker=worker", "--port=23456"]}
  tasks:
  - {name: master, replicas: 1, policies: [{event: TaskCompleted, action: CompleteJob}], template: {spec: {restartPolicy: OnFailure, containers: [{name: m, command: [/usr/bin/python3, SCRIPT]}]}}}
  - {name: worker, replicas: 2, template: {spec: {restartPolicy: OnFailure, containers: [{name: w, command: [/usr/bin/python3, SCRIPT]}]}}}
""",
}


@unittest.skipUnless(HAS_TORCH, "PyTorch is not installed")
class ManifestsTorch(unittest.TestCase):
    def setUp(self):
        self.cluster = Cluster({"lease": "6s", "heartbeatInterval": "1s"})
        self.cluster.belongs_to(self)
        self.cluster.server.start()
        self.cluster.add_agent("n1", socketInterface="lo", sharedPid=True)
        self.cluster.wait_nodes(1)
        self.script = self.cluster.home / "sum.py"
        self.script.write_text(SUM)

    def test_tasks_find_each_other(self):
        for name, text in MANIFESTS.items():
            with self.subTest(name):
                self.cluster.berth("submit", self.cluster.manifest(text.replace("SCRIPT", str(self.script))))
                job = self.cluster.wait_job(name, "SUCCEEDED", "FAILED", timeout_s=WITHIN_S)
                logs = self.cluster.berth("job", "logs", name)
                self.assertIn("sum 6 of 3", logs, job.status.message)
                self.assertEqual(job.status.start_count, 1, logs)


if __name__ == "__main__":
    unittest.main(verbosity=2)
