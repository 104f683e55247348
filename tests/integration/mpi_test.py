#!/usr/bin/env python3
"""The MPI example as it stands in the folder: mpirun starts its daemons through `berth exec`, over the host file of a gang
of four. A node that dies in the middle costs one restart of the gang, and every round is right again."""
import shutil
import subprocess
import unittest

from berth_api import job_pb2
from berth_harness import BIN, SOURCE, Cluster, wait_until

HAS_MPI = shutil.which("mpirun", path="/usr/bin") is not None and subprocess.run(
    ["/usr/bin/python3", "-c", "import mpi4py"], capture_output=True).returncode == 0
# Of the MPI operator: its launcher, and workers with its default command. One fits on a node.
OPERATOR = """\
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata: {name: mpi, labels: {kueue.x-k8s.io/queue-name: research}}
spec:
  slotsPerWorker: 1
  mpiReplicaSpecs:
    Launcher:
      replicas: 1
      template:
        spec:
          containers:
          - name: mpi
            workingDir: EXAMPLES
            command: [mpirun, --leave-session-attached, --mca, oob_tcp_if_include, lo, --mca, btl, "tcp,self", --mca,
              btl_tcp_if_include, lo, --map-by, node, -np, "3", -x, ROUNDS, /usr/bin/python3, EXAMPLES/mpi_ring.py]
            env: [{name: PATH, value: "BIN:EXAMPLES:/usr/bin:/bin"}, {name: ROUNDS, value: "5"}]
            resources: {limits: {cpu: 5}}
    Worker:
      replicas: 2
      template:
        spec:
          containers:
          - name: mpi
            command: [/usr/sbin/sshd, -De]
            env: [{name: PATH, value: "BIN:EXAMPLES:/usr/bin:/bin"}]
            resources: {limits: {cpu: 5}}
"""
CONFIG = {"lease": "6s", "heartbeatInterval": "1s", "fenceMargin": "1s", "silentBrake": 1.0}
WITHIN_S = 120


@unittest.skipUnless(HAS_MPI, "Open MPI or mpi4py is not installed")
class Mpi(unittest.TestCase):
    def setUp(self):
        self.cluster = Cluster(CONFIG)
        self.cluster.belongs_to(self)
        self.cluster.server.start()
        # The nodes of this cluster are one host: each has another address of the loopback interface.
        for number in range(1, 6):
            self.cluster.add_agent(f"n{number}", address=f"127.0.0.{10 + number}", socketInterface="lo")
        self.cluster.wait_nodes(5)
        self.cluster.create_queue("research")
        self.examples = self.cluster.home / "examples"
        shutil.copytree(SOURCE / "deploy/examples", self.examples)
        self.examples.chmod(0o755)

    def submit(self, rounds, pause_s):
        text = (self.examples / "mpi.yaml").read_text()
        for old, new in (("/usr/local/share/berth/examples", str(self.examples)), ('ROUNDS: "10"', f'ROUNDS: "{rounds}"'),
                         ("-x ROUNDS", f"-x ROUNDS -x PAUSE_S={pause_s}"),
                         ('{ROUNDS:', '{' + f'PATH: "{BIN}:/usr/bin:/bin", ROUNDS:')):
            self.assertIn(old, text)
            text = text.replace(old, new)
        self.cluster.berth("submit", self.cluster.manifest(text))

    def logs(self):
        return self.cluster.run_berth("job", "logs", "mpi", "--task", "launcher-0").stdout

    def check(self, rounds):
        job = self.cluster.wait_job("mpi", "SUCCEEDED", "FAILED", timeout_s=WITHIN_S)
        logs = self.logs()
        self.assertEqual(job_pb2.JobState.Name(job.status.state), "JOB_SUCCEEDED", f"{job.status.message}\n{logs}")
        self.assertIn("all rounds are right", logs)
        self.assertNotIn("WRONG", logs)
        self.assertIn(f"round {rounds - 1} of {rounds} is right", logs)
        for task in self.cluster.api.tasks("mpi"):
            self.assertIn(f" in {task.group}-{task.index} on {task.node}", logs, "each task has a rank")
        return job

    def test_the_example(self):
        self.submit(rounds=10, pause_s=0)
        job = self.check(rounds=10)
        self.assertEqual((job.status.start_count, job.status.retries), (1, 0))

    def test_an_mpi_job_of_kubeflow(self):
        text = OPERATOR.replace("EXAMPLES", str(self.examples)).replace("BIN", str(BIN))
        self.cluster.berth("submit", self.cluster.manifest(text))
        self.check(rounds=5)

    def test_a_node_dies(self):
        self.submit(rounds=60, pause_s=0.1)
        wait_until(lambda: "round 15 of 60" in self.logs(), WITHIN_S, "round 15")
        lost = next(task.node for task in self.cluster.api.tasks("mpi") if task.group == "worker")
        self.cluster.kill_node(lost)
        wait_until(lambda: self.cluster.api.jobs.GetJob(job_pb2.GetJobRequest(name="mpi")).status.start_count == 2, WITHIN_S,
                   "the gang starts again")
        job = self.check(rounds=60)
        self.assertLessEqual(job.status.retries, 1)
        self.assertNotIn(lost, [task.node for task in self.cluster.api.tasks("mpi")])
        print(f"{job.status.start_count} starts, {job.status.retries} retries", flush=True)


if __name__ == "__main__":
    unittest.main(verbosity=2)
