"""A cluster of one node, for tests of work in running tasks; and what they share."""
import unittest

from berth_api import job_pb2, make_job
from berth_harness import BIN, Cluster
from pty_client import PtyClient

SHELL = ["bash", "--norc", "-i"]
DETACH = "\x10\x11"


def terminal_job(name, command, **spec):
    job = make_job(name, "q", command, **spec)
    job.spec.groups[0].terminal = True
    return job


class World(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster()
        cls.addClassCleanup(cls.cluster.__exit__, None, None, None)
        cls.cluster.server.start()
        cls.cluster.add_agent("n1", cpu="8")
        cls.cluster.wait_nodes(1)
        cls.cluster.create_queue("q")

    def submit(self, job, *states):
        self.cluster.api.jobs.SubmitJobs(job_pb2.SubmitJobsRequest(jobs=[job]), timeout=10)
        self.addCleanup(self.cluster.run_berth, "job", "cancel", job.name, "--force")
        self.cluster.wait_job(job.name, *(states or ("RUNNING",)))

    def berth(self, *arguments, **size):
        """`berth` on a terminal."""
        client = PtyClient([str(BIN / "berth"), "--server", self.cluster.server.address, *arguments], **size)
        self.addCleanup(client.__exit__, None, None, None)
        return client

    def attach(self, name, *arguments, **size):
        return self.berth("attach", name, *arguments, **size)
