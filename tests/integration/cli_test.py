#!/usr/bin/env python3
"""The command line from a user's view: names and patterns, lists, several jobs at once, the tasks of a node, logs of
all tasks, a further command inside a task. Real berth and berthd; simulated agents, and a real one for output."""
import json
import subprocess
import unittest

from berth_harness import BIN, Cluster, wait_until

HEAD = "apiVersion: berth/v1\nkind: Job\n"
NODES = [{"name": "s[1-4]", "cpu": 16, "memory": "64Gi", "devices": {"gpu": 4}, "labels": {"kind": "simulated"}, "runTime": "600s"}]


def job(name, queue="q", replicas=1, gpus=1, command="[train]", kind="simulated", more=""):
    devices = f", gpu: {gpus}" if gpus else ""
    return (HEAD + f"name: {name}\nqueue: {queue}\n{more}groups:\n- name: w\n  replicas: {replicas}\n"
            f"  resources: {{cpu: 100m{devices}}}\n  nodeSelector: {{matchLabels: {{kind: {kind}}}}}\n  command: {command}\n")


class CommandLine(unittest.TestCase):
    def setUp(self):
        self.cluster = Cluster({"log": {"level": "warn"}}).belongs_to(self)
        self.cluster.server.start()
        self.cluster.add_simulation(NODES)
        for queue in ["q", "other"]:
            self.cluster.create_queue(queue)

    def submit(self, *texts):
        self.cluster.berth("submit", "-", stdin="---\n".join(texts))

    def names(self, *arguments):
        return self.cluster.berth("job", "list", "-o", "name", *arguments).split()

    def state(self, name):
        return json.loads(self.cluster.berth("job", "get", name, "-o", "json"))["status"]["state"]

    def test_names_patterns_and_lists(self):
        self.cluster.wait_nodes(4)
        berth = self.cluster.berth
        self.submit(job("train-1", more="user: ann\n"), job("train-2", more="user: bob\n"), job("eval", queue="other"),
                    job("big", replicas=4, gpus=2, more="labels: {team: a}\n"))
        for name in ["train-1", "train-2", "eval", "big"]:
            self.cluster.wait_job(name, "RUNNING")

        self.assertEqual(self.names(), ["job/big", "job/eval", "job/train-2", "job/train-1"], "newest first")
        self.assertEqual(self.names("--sort", "name", "--limit", "2"), ["job/big", "job/eval"])
        self.assertEqual(self.names("--user", "ann"), ["job/train-1"])
        self.assertEqual(self.names("--queue", "queue/other"), ["job/eval"])
        self.assertEqual(self.names("--label", "team=a"), ["job/big"])
        self.assertEqual(self.names("--name", "train-*"), ["job/train-2", "job/train-1"])
        self.assertEqual(len(self.names("--since", "1h")), 4)
        self.assertEqual(self.names("--state", "failed"), [])

        # the verb first, the type anywhere
        self.assertEqual(berth("get", "job", "eval", "-o", "name"), "job/eval\n")
        self.assertEqual(berth("get", "job/eval", "-o", "name"), "job/eval\n")
        self.assertEqual(len(berth("get", "jobs", "-o", "name").split()), 4)
        self.assertIn("Queue:      other", berth("describe", "job/eval"))
        wrong = self.cluster.run_berth("get", "eval")
        self.assertEqual(wrong.returncode, 2)
        self.assertIn("berth job get eval", wrong.stderr)
        self.assertNotIn('did you mean "get"', wrong.stderr)
        wrong = self.cluster.run_berth("job", "cancel", "queue/q")
        self.assertEqual((wrong.returncode, "is a queue" in wrong.stderr), (2, True))

        # numbers in JSON
        described = json.loads(berth("job", "describe", "big", "-o", "json"))
        self.assertIsInstance(described["uid"], int)
        for number in ("index", "rank"):  # ranks follow the nodes
            self.assertEqual(sorted(task[number] for task in described["tasks"]), list(range(4)))
        self.assertEqual(described["status"]["retries"], 0)

        # the tasks that run on a node, and the jobs that have tasks there
        node = described["tasks"][0]["node"]
        there = json.loads(berth("node", "tasks", node, "-o", "json"))["tasks"]
        self.assertIn(("big", 0), [(task["job"], task["index"]) for task in there])
        self.assertEqual(len(next(task for task in there if task["job"] == "big")["devices"]), 2)
        self.assertIn("job/big", self.names("--node", "node/" + node))
        self.assertRegex(berth("node", "describe", node), r"Tasks:\n  JOB +TASK")

        # changes
        berth("job", "update", "job/big", "--walltime", "5h", "--priority", "7", "--label", "team=b")
        big = json.loads(berth("job", "get", "big", "-o", "json"))["spec"]
        self.assertEqual((big["walltime"], big["priority"], big["labels"]), ("18000s", 7, {"team": "b"}))
        refused = self.cluster.run_berth("job", "cancel", "--all")
        self.assertEqual((refused.returncode, len(self.names())), (2, 4), "cancelling everything needs --yes")
        listed = subprocess.run(f"{BIN}/berth job list --name 'train-*' -o name | xargs {BIN}/berth job cancel --reason enough",
                                shell=True, capture_output=True, text=True, timeout=60,
                                env={"BERTH_SERVER": self.cluster.server.address, "PATH": "/usr/bin:/bin"})
        self.assertEqual(listed.returncode, 0, listed.stderr)
        for name in ["train-1", "train-2"]:
            self.cluster.wait_job(name, "CANCELLED")
        self.assertEqual(self.names(), ["job/big", "job/eval"], "ended jobs are listed on request")
        self.assertEqual(len(self.names("--all")), 4)
        self.assertEqual(self.names("--state", "cancelled"), ["job/train-2", "job/train-1"])
        cancelled = self.cluster.run_berth("job", "cancel", "*", "--queue", "q", "--wait")
        self.assertEqual(cancelled.returncode, 0, cancelled.stderr)
        self.assertEqual(self.state("big"), "JOB_CANCELLED")
        self.assertEqual(self.cluster.run_berth("job", "cancel", "no-such-*").returncode, 3)
        self.assertEqual(self.cluster.run_berth("job", "wait", "--queue", "other", "--timeout", "1s").returncode, 11)
        berth("job", "cancel", "--queue", "other")
        self.assertEqual(self.cluster.run_berth("job", "wait", "eval", "train-1").returncode, 10)
        self.assertEqual(len(berth("job", "delete", "--all", "--yes", "-o", "name").split()), 4)
        self.assertEqual(self.names("--all"), [])

    def test_waiting_for_several(self):
        self.cluster.wait_nodes(4)
        self.submit(job("a"), job("b"), job("c"))
        for name in "abc":
            self.cluster.wait_job(name, "RUNNING")
        any_of = subprocess.Popen([str(BIN / "berth"), "--server", self.cluster.server.address, "job", "wait", "--any", "a", "b"],
                                  stdout=subprocess.PIPE, text=True)
        self.cluster.berth("job", "cancel", "b", "--wait")
        self.assertEqual(any_of.communicate(timeout=60)[0], "job/b Cancelled\n")
        self.assertEqual(any_of.returncode, 10)
        self.cluster.berth("job", "cancel", "job/a", "job/c")
        both = self.cluster.run_berth("job", "wait", "a", "c")
        self.assertEqual((both.returncode, sorted(both.stdout.split())[2:]), (10, ["job/a", "job/c"]))

    def test_output_of_all_tasks(self):
        self.cluster.add_agent("real", labels={"kind": "real"})
        self.cluster.wait_nodes(5)
        berth = self.cluster.berth
        said = "[sh, -c, 'echo hello from $RANK; echo problem >&2; sleep 600']"
        self.submit(job("talk", replicas=3, gpus=0, kind="real", command=said))
        self.cluster.wait_job("talk", "RUNNING")
        wait_until(lambda: berth("job", "logs", "talk").count("\n") == 6, 60, "every task has printed its lines")
        lines = berth("job", "logs", "talk").splitlines()
        self.assertEqual(sorted(lines), sorted(line for i in range(3) for line in
                                               [f"[w-{i}] hello from {i}", f"[w-{i}] problem"]))
        self.assertEqual(berth("job", "logs", "talk", "--stream", "stdout", "--task", "w-[12]"),
                         "[w-1] hello from 1\n[w-2] hello from 2\n")
        self.assertEqual(berth("job", "logs", "job/talk/w-2", "--stream", "stdout"), "hello from 2\n")
        follower = subprocess.Popen([str(BIN / "berth"), "--server", self.cluster.server.address, "job", "logs", "talk", "-f",
                                     "--timestamps", "--stream", "stdout"], stdout=subprocess.PIPE, text=True)
        first = sorted(follower.stdout.readline() for _ in range(3))
        for i, line in enumerate(first):
            self.assertRegex(line, rf"^\[w-{i}\] 20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+\S+ hello from {i}\n$")
        stored = berth("job", "logs", "talk", "--timestamps", "--stream", "stdout").splitlines(keepends=True)
        self.assertEqual(sorted(stored), first)  # even if they are read late
        self.assertEqual(berth("job", "exec", "talk", "--task", "w-1", "-n", "--", "sh", "-c", "echo $RANK"), "1\n")
        self.assertEqual(berth("exec", "job/talk/w-2", "-n", "--", "sh", "-c", "echo $RANK"), "2\n")
        self.assertEqual(self.cluster.run_berth("job", "logs", "talk", "-o", "json").returncode, 2)
        berth("job", "cancel", "talk", "--force", "--wait")
        self.assertEqual(follower.wait(timeout=60), 0)


if __name__ == "__main__":
    unittest.main()
