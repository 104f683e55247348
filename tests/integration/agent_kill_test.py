#!/usr/bin/env python3
"""kill -9 of the agent: its tasks survive, the next agent adopts them, and their exit codes are known."""
import os
import pathlib
import time
import unittest

from berth_api import job_pb2, make_job, task_state
from berth_harness import Cluster, alive, wait_until

KILLS = int(os.environ.get("KILLS", "10"))


class AgentKill(unittest.TestCase):
    def setUp(self):
        self.cluster = Cluster({"lease": "30s"})
        self.cluster.belongs_to(self)
        self.cluster.server.start()
        self.agent = self.cluster.add_agent("n1", cpu="32")
        self.cluster.create_queue("q")
        self.cluster.wait_nodes(1)
        self.notes = self.cluster.shared_file("notes")

    def submit(self, *jobs):
        self.cluster.api.jobs.SubmitJobs(job_pb2.SubmitJobsRequest(request_id=jobs[0].name, jobs=jobs), timeout=10)

    def starts(self, job):
        return self.notes.read_text().splitlines().count(job)

    def pids(self, job, count):
        wait_until(lambda: self.starts(job) >= count, 20, f"{count} tasks of {job} have started")
        pids = self.cluster.task_pids(job)
        self.assertEqual(len(pids), count)
        return pids

    def job_command(self, rest):
        return ["sh", "-c", f'echo "$BERTH_JOB" >> "$NOTES"; {rest}']

    def test_tasks_survive_and_exit_codes_are_known(self):
        env = {"NOTES": str(self.notes), "FLAGS": str(self.flags())}
        wait_for = 'until [ -e "$FLAGS/$BERTH_JOB" ]; do sleep 0.05; done; '
        self.submit(make_job("stays", "q", self.job_command("exec sleep 100000"), replicas=3, env=env))
        self.submit(make_job("ends-7", "q", self.job_command(wait_for + "exit 7"), env=env),
                    make_job("ends-0", "q", self.job_command(wait_for + "exit 0"), env=env),
                    make_job("signalled", "q", self.job_command(wait_for + "kill -SEGV $$"), env=env))
        for name in ("stays", "ends-7", "ends-0", "signalled"):
            self.cluster.wait_job(name, "RUNNING")
        pids = self.pids("stays", 3)
        for _ in range(KILLS):
            self.agent.kill()
            time.sleep(0.1)
            self.assertTrue(all(alive(pid) for pid in pids), "a task died with its agent")
            self.agent.start()
            self.cluster.wait_nodes(1)
        self.agent.kill()
        ending = {name: self.pids(name, 1) for name in ("ends-7", "ends-0", "signalled")}
        for name in ending:
            (self.flags() / name).touch()  # they end while no agent runs
        for name, (pid,) in ending.items():
            wait_until(lambda: not alive(pid), 10, f"{name} ended")
        self.agent.start()
        self.check_ends()
        self.check_stays(pids)
        print(f"{KILLS + 1} agent kills: 3 tasks continued, exit codes 7 and 0 and SIGSEGV known", flush=True)

    def flags(self):
        flags = self.cluster.home / "flags"
        flags.mkdir(exist_ok=True)
        flags.chmod(0o755)
        return flags

    def check_ends(self):
        self.cluster.wait_job("ends-0", "SUCCEEDED")
        self.cluster.wait_job("ends-7", "FAILED")
        self.cluster.wait_job("signalled", "FAILED")
        (seven,) = self.cluster.api.tasks("ends-7")
        self.assertEqual(seven.exit_code, 7)
        (signalled,) = self.cluster.api.tasks("signalled")
        self.assertEqual(signalled.exit_signal, 11)

    def check_stays(self, pids):
        job = self.cluster.wait_job("stays", "RUNNING")
        self.assertEqual(job.status.start_count, 1)
        self.assertEqual({task_state(t) for t in self.cluster.api.tasks("stays")}, {"RUNNING"})
        self.assertEqual(self.pids("stays", 3), pids)
        self.assertEqual(self.starts("stays"), 3)
        self.cluster.api.jobs.CancelJob(job_pb2.CancelJobRequest(name="stays", reason="test"), timeout=10)
        self.cluster.wait_job("stays", "CANCELLED")
        wait_until(lambda: not any(alive(pid) for pid in pids), 10, "cancelled tasks are gone")

    def test_a_task_without_its_supervisor_is_reported_and_not_restarted(self):
        self.submit(make_job("orphan", "q", self.job_command("exec sleep 100000"), env={"NOTES": str(self.notes)}))
        self.cluster.wait_job("orphan", "RUNNING")
        (pid,) = self.pids("orphan", 1)
        self.agent.kill()
        supervisors = [p for p in self.cluster.processes()
                       if b"berth-supervisor" in pathlib.Path(f"/proc/{p}/cmdline").read_bytes()
                       and pathlib.Path(f"/proc/{p}/comm").read_text() != "berth-init\n"]
        self.assertEqual(len(supervisors), 1)
        os.kill(supervisors[0], 9)
        self.agent.start()
        self.cluster.wait_job("orphan", "FAILED")
        wait_until(lambda: not alive(pid), 10, "the orphan is gone")
        self.assertEqual(self.starts("orphan"), 1)


if __name__ == "__main__":
    unittest.main(verbosity=2)
