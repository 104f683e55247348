#!/usr/bin/env python3
"""Manifests of other schedulers, submitted unchanged to a real server with real agents: those that a cluster without
Kubernetes can run must run to the end, the others must be refused with the reason. The images are stand-ins
(manifest_images.py). Prints the counts that docs/users/manifests.md states.

Needs root, crun, umoci and a static busybox; without them the test is skipped.
"""
import concurrent.futures
import pathlib
import re
import shutil
import unittest

from berth_api import job_pb2, job_state
from berth_harness import SOURCE, Cluster, wait_until
from manifest_images import make_store
from oci_layout import crun_here, require_images

CORPUS = SOURCE / "tests" / "manifests"
MUST_RUN_PERCENT = 95
SUBMITTED = re.compile(r"^job/(\S+) submitted$", re.M)

# What a cluster without Kubernetes cannot run, or Berth does not, and what the refusal says.
REFUSED = {
    "jobset/failure-rules.yaml": ["restarts on every failure alike", "the gang restarts as a whole"],
    "kubeflow/mpi-intel.yaml": ["starts processes only by ssh"],
    "kubeflow/tfjob.yaml": ["sets no TF_CONFIG"],
    "kubeflow/trainjob-other-runtime.yaml": ["a runtime is an object of the cluster", "run it as a job of its own"],
    "kubernetes/always.yaml": ["\"Always\" is not Never or OnFailure", "one string with blanks"],
    "kubernetes/deployment.yaml": ["not services"],
    "kubernetes/indexed-service.yaml": ["tasks find each other by", "tasks have no names of their own"],
    "kubernetes/success-policy.yaml": ["not indexes"],
    "kueue/local-queue.yaml": ["berth queue create"],
    "volcano/contradicting-policies.yaml": ["a second policy on PodFailed", "contradicts the one on \"*\"",
                                            "an event or an exitCode, not both"],
    "volcano/job-flow-probe.yaml": ["only wait for the success of its targets"],
    "volcano/persistent-claim.yaml": ["mounts no claims", "\"persistentVolumeClaim\""],
    "volcano/pod-group-alone.yaml": ["no Pod of this file names the PodGroup"],
    "volcano/privileged.yaml": ["no rights beyond those of their user", "see only their own processes"],
}

SCHEDULES = {"kubernetes/cron.yaml", "volcano/cron-job.yaml"}  # wait for their times
STAYS_SUSPENDED = {"kubernetes/suspended.yaml"}  # until somebody resumes it
PRIORITY_CLASS = "apiVersion: berth/v1\nkind: PriorityClass\nname: production\nvalue: 100\n"


class Manifests(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.files = {str(path.relative_to(CORPUS)): path for path in sorted(CORPUS.rglob("*.yaml"))}
        cls.texts = {name: path.read_text() for name, path in cls.files.items()}

    def setUp(self):
        busybox = require_images(self)
        self.cluster = Cluster({"lease": "6s", "heartbeatInterval": "1s"})
        self.cluster.belongs_to(self)
        self.cluster.server.start()
        for queue in ("research", "user-queue"):
            self.cluster.create_queue(queue)
        store = self.cluster.home / "store"
        make_store(store, busybox, self.texts.values())
        states = pathlib.Path(f"/run{self.cluster.home}")  # not below /tmp
        states.mkdir(parents=True)
        self.addCleanup(shutil.rmtree, states, ignore_errors=True)
        images = {"directory": str(store), "crun": crun_here(self.cluster.home)}
        volumes = {"hostPaths": [{"path": "/usr/share", "readOnly": True}]}
        for name in ("n1", "n2"):
            devices = [{"kind": "gpu", "uuid": f"GPU-{name}-{i}"} for i in range(8)]
            self.cluster.add_agent(name, stateDirectory=str(states / name), images=images, devices=devices, cpu="64",
                                   memory="64Gi", scratch="10Gi", labels={"accelerator": "h100"}, health={"minFree": "1Mi"}, volumes=volumes)
        self.cluster.wait_nodes(2)
        self.cluster.berth("apply", "-f", self.cluster.manifest(PRIORITY_CLASS, "class.yaml"))

    def apply(self, name):
        """Names of the jobs that the manifest becomes."""
        result = self.cluster.run_berth("apply", "-f", str(self.files[name]))
        self.assertEqual(result.returncode, 0, f"{name}: {result.stderr}")
        return SUBMITTED.findall(result.stdout)

    def ended(self, job):
        def state():
            return job_state(self.cluster.api.jobs.GetJob(job_pb2.GetJobRequest(name=job), timeout=10))
        return wait_until(lambda: state() in ("SUCCEEDED", "FAILED", "CANCELLED") and state(), 180, f"{job} has ended", 0.5)

    def run_one(self, name):
        """What went wrong, or None."""
        try:
            jobs = self.apply(name)
            if not jobs:
                return f"{name}: no job"
            if name in STAYS_SUSPENDED:
                for job in jobs:
                    self.cluster.berth("job", "resume", job)
            for job in jobs:
                if name in SCHEDULES:
                    self.assertIn("Next time:", self.cluster.berth("job", "describe", job))
                    self.cluster.berth("job", "cancel", job)
                    continue
                state = self.ended(job)
                if state != "SUCCEEDED":
                    status = self.cluster.run_berth("job", "describe", job).stdout
                    return f"{name}: {job} {state}\n{status[-1500:]}"
        except AssertionError as error:
            return f"{name}: {error}"
        return None

    def check_documentation(self):
        text = " ".join((SOURCE / "docs" / "users" / "manifests.md").read_text().split())
        for count in (f"has {len(self.files)} manifests", f"{len(self.files) - len(REFUSED)} of them can run",
                      f"The other {len(REFUSED)} are refused"):
            self.assertIn(count, text)

    def test_each_runs_to_the_end_or_is_refused(self):
        self.assertGreaterEqual(len(self.files), 60)
        for names in (REFUSED, STAYS_SUSPENDED, SCHEDULES):
            self.assertLessEqual(set(names), set(self.files))
        for name, reasons in REFUSED.items():
            with self.subTest(name):
                result = self.cluster.run_berth("submit", str(self.files[name]))
                self.assertEqual(result.returncode, 4, f"{result.stdout}{result.stderr}")
                for reason in reasons:
                    self.assertIn(reason, result.stderr)
                self.assertRegex(result.stderr, r":\d+:\d+: ")
        self.check_documentation()
        runnable = [name for name in self.files if name not in REFUSED]
        first = "volcano/hypernodes.yaml"  # others name its tiers
        results = {first: self.run_one(first)}
        with concurrent.futures.ThreadPoolExecutor(6) as pool:
            others = [name for name in runnable if name != first]
            results.update(zip(others, pool.map(self.run_one, others)))
        failures = [text for text in results.values() if text]
        ran = len(runnable) - len(failures)
        print(f"manifests: {len(self.files)} in all, {len(REFUSED)} refused with their reasons, {len(runnable)} that can run, "
              f"{ran} of which ran to the end")
        for text in failures:
            print(text)
        self.assertGreaterEqual(ran * 100, MUST_RUN_PERCENT * len(runnable), "\n".join(failures))


if __name__ == "__main__":
    unittest.main(verbosity=2)
