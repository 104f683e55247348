#!/usr/bin/env python3
"""Berth end to end through the command line: gangs, logs, limits, holds, restarts, operators."""
import json
import shutil
import unittest

from berth_api import task_state
from berth_harness import SOURCE, Cluster, alive, wait_until

RACKS = [{"name": f"rack{r}-n[01-16]", "cpu": "192", "memory": "2Ti", "devices": {"gpu": 8}, "models": {"gpu": "H100"},
          "labels": {"kind": "simulated", "rack": f"rack{r}"}, "runTime": "1s"} for r in (1, 2, 3, 4)]
HEAD = "apiVersion: berth/v1\nkind: Job\n"


class EndToEnd(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster()
        cls.addClassCleanup(cls.cluster.__exit__, None, None, None)
        cls.cluster.server.start()
        cls.cluster.add_agent("real", labels={"kind": "real"})
        cls.cluster.add_simulation(RACKS)
        cls.cluster.wait_nodes(65)
        cls.cluster.berth("apply", "-f", str(SOURCE / "deploy/examples/queues.yaml"))
        cls.examples = cls.cluster.home / "examples"
        shutil.copytree(SOURCE / "deploy/examples", cls.examples)
        cls.examples.chmod(0o755)

    def berth(self, *arguments):
        return self.cluster.berth(*arguments)

    def submit(self, text, name="job.yaml"):
        return self.berth("submit", self.cluster.manifest(text, name))

    def states(self, job):
        return [task_state(task) for task in self.cluster.api.tasks(job)]

    def test_ring_allreduce(self):
        text = (self.examples / "ring-allreduce.yaml").read_text()
        self.submit(text.replace("/usr/local/share/berth/examples", str(self.examples)))
        self.cluster.wait_job("ring-allreduce", "SUCCEEDED", timeout_s=60)
        for rank in range(4):
            logs = self.berth("job", "logs", "ring-allreduce", "--task", f"worker-{rank}")
            self.assertIn(f"[rank {rank}] all rounds are right", logs)
        tasks = self.cluster.api.tasks("ring-allreduce")
        self.assertEqual([(t.exit_code, t.node, t.attempt) for t in tasks], [(0, "real", 1)] * 4)

    def test_a_rank_with_wrong_sums_fails_the_job(self):
        text = (self.examples / "ring-allreduce.yaml").read_text()
        text = text.replace("/usr/local/share/berth/examples", str(self.examples))
        text = text.replace("name: ring-allreduce", "name: ring-corrupt").replace('ROUNDS: "3"', 'ROUNDS: "1", CORRUPT_RANK: "2"')
        self.submit(text)
        job = self.cluster.wait_job("ring-corrupt", "FAILED", timeout_s=60)
        self.assertRegex(job.status.message, r"worker-\d exited with 1 on real")

    def test_256_gpus_and_a_gang_that_never_fits(self):
        self.berth("submit", str(self.examples / "too-large.yaml"))
        self.berth("submit", str(self.examples / "sim-256gpu.yaml"))
        self.cluster.wait_job("pretrain-256gpu", "RUNNING")
        tasks = self.cluster.api.tasks("pretrain-256gpu")
        self.assertEqual(len({task.node for task in tasks}), 32)
        self.assertTrue(all(len(set(task.devices)) == 8 for task in tasks))
        described = self.berth("job", "describe", "too-large")
        self.assertRegex(described, r"(?i)never|limit|256")
        self.assertEqual(self.states("too-large"), ["PENDING"] * 65, "a gang holds nothing while it is pending")
        self.berth("job", "cancel", "too-large")
        self.cluster.wait_job("pretrain-256gpu", "SUCCEEDED", timeout_s=30)

    def test_queue_limit_runs_jobs_one_after_the_other(self):
        self.berth("queue", "create", "narrow", "--limit", "cpu=1")
        for name in ("first", "second"):
            self.submit(HEAD + f"name: {name}\nqueue: narrow\ngroups:\n- name: w\n  replicas: 1\n  resources: {{cpu: 1}}\n"
                        "  command: [sleep, '1']\n")
        self.cluster.wait_job("first", "RUNNING")
        self.assertEqual(self.states("second"), ["PENDING"])
        self.assertRegex(self.berth("job", "describe", "second"), r"(?s)limit.*narrow|narrow.*limit")
        second = self.cluster.wait_job("second", "SUCCEEDED")
        first = self.cluster.wait_job("first", "SUCCEEDED")
        self.assertGreaterEqual(second.status.start_time.ToDatetime(), first.status.end_time.ToDatetime())

    def test_suspend_resume_cancel(self):
        self.submit(HEAD + "name: hold\nqueue: research\nkillGrace: 1s\ngroups:\n- name: w\n  replicas: 2\n"
                    "  resources: {cpu: 100m}\n  nodeSelector: {matchLabels: {kind: real}}\n  command: [sleep, '1000']\n")
        self.cluster.wait_job("hold", "RUNNING")
        self.berth("job", "suspend", "hold")
        self.cluster.wait_job("hold", "SUSPENDED")
        self.berth("job", "resume", "hold")
        job = self.cluster.wait_job("hold", "RUNNING")
        self.assertEqual(job.status.start_count, 2)
        self.berth("job", "cancel", "hold", "--reason", "enough")
        job = self.cluster.wait_job("hold", "CANCELLED")
        self.assertEqual(job.status.cancel_reason, "enough")

    def test_requeue(self):
        """It runs again as a new attempt, without a retry; one that waits stays as it is."""
        self.submit(HEAD + "name: again\nqueue: research\nkillGrace: 1s\ngroups:\n- name: w\n  replicas: 2\n"
                    "  resources: {cpu: 100m}\n  nodeSelector: {matchLabels: {kind: real}}\n  command: [sleep, '1000']\n")
        self.cluster.wait_job("again", "RUNNING")
        self.assertIn("requeuing: 2 tasks are being stopped", self.berth("job", "requeue", "again"))

        def again():
            job = self.cluster.wait_job("again", "RUNNING")
            assert job.status.start_count == 2, job.status
            return job
        self.assertEqual(wait_until(again, 30, "it runs again").status.retries, 0)
        self.berth("job", "suspend", "again")
        self.cluster.wait_job("again", "SUSPENDED")
        self.assertIn("nothing to requeue", self.berth("job", "requeue", "again"))
        self.berth("job", "cancel", "again")

    def test_retries_with_back_off(self):
        self.submit(HEAD + "name: flaky\nqueue: research\nmaxRetries: 2\nretryBackoff: 100ms\ngroups:\n- name: w\n  replicas: 1\n"
                    "  resources: {cpu: 100m}\n  nodeSelector: {matchLabels: {kind: real}}\n"
                    "  command: [sh, -c, 'echo attempt $BERTH_ATTEMPT; exit 3']\n")
        job = self.cluster.wait_job("flaky", "FAILED")
        self.assertEqual((job.status.retries, job.status.start_count), (2, 3))
        self.assertRegex(job.status.message, r"w-0 exited with 3")
        self.assertIn("attempt 3", self.berth("job", "logs", "flaky"))

    def test_pipeline_example(self):
        self.berth("submit", str(self.examples / "pipeline.yaml"))
        train = self.cluster.wait_job("train", "SUCCEEDED", timeout_s=30)
        prepared = self.cluster.wait_job("prepare-data", "SUCCEEDED")
        self.assertGreaterEqual(train.status.start_time.ToDatetime(), prepared.status.end_time.ToDatetime())

    def test_elastic_example(self):
        self.berth("submit", str(self.examples / "elastic.yaml"))
        self.cluster.wait_job("elastic", "RUNNING")
        wait_until(lambda: self.states("elastic") == ["RUNNING"] * 16, 20, "all sixteen run")
        self.berth("job", "cancel", "elastic")
        self.cluster.wait_job("elastic", "CANCELLED")

    def test_volcano_example(self):
        self.berth("submit", str(self.examples / "volcano-job.yaml"))
        self.cluster.wait_job("volcano-mnist", "SUCCEEDED", timeout_s=30)

    def test_walltime(self):
        self.submit(HEAD + "name: endless\nqueue: research\nwalltime: 1s\nkillGrace: 1s\ngroups:\n- name: w\n  replicas: 1\n"
                    "  resources: {cpu: 100m}\n  nodeSelector: {matchLabels: {kind: real}}\n  command: [sleep, '1000']\n")
        job = self.cluster.wait_job("endless", "FAILED", timeout_s=20)
        self.assertRegex(job.status.message.lower(), "walltime|timeout")

    def test_follow_logs(self):
        self.submit(HEAD + "name: talker\nqueue: research\ngroups:\n- name: w\n  replicas: 1\n  resources: {cpu: 100m}\n"
                    "  nodeSelector: {matchLabels: {kind: real}}\n"
                    "  command: [sh, -c, 'for i in 1 2 3; do echo out $i; echo err $i >&2; sleep 0.2; done']\n")
        self.cluster.wait_job("talker", "RUNNING", "SUCCEEDED")
        logs = self.berth("job", "logs", "-f", "talker")
        self.assertEqual([line for line in logs.split("\n") if line.startswith("out")], ["out 1", "out 2", "out 3"])
        self.assertEqual(len([line for line in logs.split("\n") if line.startswith("err")]), 3)

    def test_cordon_and_drain(self):
        self.submit(HEAD + "name: mover\nqueue: vision\nkillGrace: 1s\ngroups:\n- name: w\n  replicas: 1\n  resources: {gpu: 8}\n"
                    "  nodeSelector: {matchLabels: {rack: rack4}}\n  env: {BERTH_SIM_RUN_TIME: 1000s}\n  command: [train]\n")
        self.cluster.wait_job("mover", "RUNNING")
        before = self.cluster.api.tasks("mover")[0].node
        self.berth("node", "drain", before)
        wait_until(lambda: self.states("mover") == ["RUNNING"] and self.cluster.api.tasks("mover")[0].node != before, 30,
                   "the job runs on another node")
        self.assertRegex(self.berth("node", "list"), rf"{before}\s.*(?i:drain)")
        self.berth("node", "uncordon", before)
        self.berth("job", "cancel", "mover")

    def test_closed_queue_holds(self):
        self.berth("queue", "create", "night")
        self.berth("queue", "close", "night")
        result = self.cluster.run_berth("submit", self.cluster.manifest(
            HEAD + "name: early\nqueue: night\ngroups:\n- {name: w, replicas: 1, command: ['true']}\n"))
        if result.returncode == 0:  # held until it opens
            self.cluster.wait_job("early", "HELD")
            self.berth("queue", "open", "night")
            self.cluster.wait_job("early", "SUCCEEDED")
        else:
            self.assertRegex(result.stderr, r"night.*clos|clos.*night")

    def test_output_forms(self):
        jobs = json.loads(self.berth("job", "list", "-o", "json"))
        self.assertIsInstance(jobs, list)
        names = self.berth("queue", "list", "-o", "name").split()
        self.assertIn("queue/research", names)
        self.assertIn("name: research", self.berth("queue", "get", "research", "-o", "yaml"))
        node = json.loads(self.berth("node", "list", "-o", "json"))
        self.assertEqual(len(node), 65)
        self.assertNotIn("\033", self.berth("job", "list"), "no colours in a pipe")
        self.assertRegex(self.berth("version"), r"\d+\.\d+")

    def test_dead_task_takes_its_children_along(self):
        mark = f"grandchild-{self.cluster.home.name}"  # its pid in the task differs from the one outside
        self.submit(HEAD + "name: forker\nqueue: research\nkillGrace: 500ms\ngroups:\n- name: w\n  replicas: 1\n"
                    "  resources: {cpu: 100m}\n  nodeSelector: {matchLabels: {kind: real}}\n"
                    f"  command: [bash, -c, 'trap \"\" TERM; (exec -a {mark} sleep 1000) & wait; wait']\n")
        self.cluster.wait_job("forker", "RUNNING")
        pid = wait_until(lambda: self.cluster.pid_of(mark), 10, "the grandchild")
        self.berth("job", "cancel", "forker")
        self.cluster.wait_job("forker", "CANCELLED")
        wait_until(lambda: not alive(pid), 5, "the grandchild is gone")


if __name__ == "__main__":
    unittest.main(verbosity=2)
