#!/usr/bin/env python3
"""What clients say of the usage history: it agrees with the jobs that ran, adds up, and outlives the jobs."""
import csv
import importlib.util
import io
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
from datetime import datetime

from berth_harness import SOURCE, Cluster, wait_until
from slurm_world import SlurmWorld

NODES = [{"name": "h[1-2]", "cpu": 64, "memory": "512Gi", "devices": {"gpu": 8}, "models": {"gpu": "H100"}, "runTime": "4s",
          "labels": {"pool": "h"}},
         {"name": "a1", "cpu": 32, "memory": "256Gi", "devices": {"gpu": 4}, "models": {"gpu": "A100"}, "runTime": "4s",
          "labels": {"pool": "a"}}]
JOB = """apiVersion: berth/v1
kind: Job
name: {name}
queue: {queue}
user: {user}
priority: {priority}
preemptible: {preemptible}
labels: {{account: {account}}}
groups:
- name: w
  replicas: {tasks}
  resources: {{cpu: 4, memory: 8Gi, gpu: {gpus}}}
  nodeSelector: {{matchLabels: {{pool: {pool}}}}}
  command: [run]
"""
KEYS = "queue,user,account,class,model"
ROUNDED_H = 3e-6  # six decimals, of a few rows
# From the bind to the start, and from the end to its report: on a busy machine.
AROUND_S = 3.0


def moment(text):
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


class Usage(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster({"finishedJobTtl": "1s"})
        cls.addClassCleanup(cls.cluster.__exit__, None, None, None)
        cls.cluster.server.start()
        cls.cluster.add_simulation(NODES)
        cls.cluster.wait_nodes(3)
        cls.cluster.berth("queue", "create", "ai")
        for name in ("nlp", "vision"):
            cls.cluster.berth("queue", "create", name, "--parent", "ai")
        cls.submit("one", "nlp", "ada", "phys", tasks=2, gpus=4)
        cls.submit("two", "vision", "bob", "chem", tasks=1, gpus=2, pool="a")
        cls.gone("one", "two")
        # It holds both nodes, and makes way for a job of higher priority.
        cls.submit("victim", "nlp", "ada", "phys", tasks=2, gpus=8)
        cls.cluster.wait_job("victim", "RUNNING")
        cls.submit("urgent", "nlp", "eve", "phys", tasks=2, gpus=8, priority=100, preemptible="false")
        cls.gone("victim", "urgent")

    @classmethod
    def submit(cls, name, queue, user, account, tasks, gpus, priority=0, preemptible="true", pool="h"):
        text = JOB.format(name=name, queue=queue, user=user, account=account, tasks=tasks, gpus=gpus, priority=priority,
                          preemptible=preemptible, pool=pool)
        cls.cluster.berth("submit", cls.cluster.manifest(text, f"{name}.yaml"))

    @classmethod
    def gone(cls, *names):
        """Waits until the jobs have ended and were deleted."""
        for name in names:
            wait_until(lambda: cls.cluster.run_berth("job", "get", name).returncode == 3, 60, f"the end of {name}")

    def rows(self, *words):
        return list(csv.DictReader(io.StringIO(self.cluster.berth(*words, "-o", "csv"))))

    def usage(self, *words):
        return self.rows("usage", "--since", "1d", *words)

    def ended(self, *words):
        return {row["name"]: row for row in self.rows("job", "ended", *words)}

    def test_jobs_that_are_gone_are_listed(self):
        jobs = self.ended()
        self.assertEqual(set(jobs), {"one", "two", "victim", "urgent"})
        one = jobs["one"]
        self.assertEqual([one[key] for key in ("queue", "queue_path", "user", "account", "state", "tasks", "starts", "evictions")],
                         ["nlp", "ai/nlp", "ada", "phys", "Succeeded", "2", "1", "0"])
        self.assertEqual((jobs["victim"]["starts"], jobs["victim"]["evictions"] != "0"), ("2", True))
        self.assertEqual(set(self.ended("--queue", "vision")), {"two"})
        self.assertEqual(set(self.ended("--queue", "ai", "--user", "ada", "--name", "v*")), {"victim"})
        self.assertEqual(self.ended("--state", "failed"), {})
        lines = self.cluster.berth("job", "ended", "-o", "json", "--limit", "3").splitlines()
        ends = [moment(json.loads(line)["endTime"]) for line in lines]
        self.assertEqual((len(ends), ends), (3, sorted(ends, reverse=True)))

    def test_hours_agree_with_the_times_of_the_jobs(self):
        for name, gpus, cores in (("one", 8, 8), ("two", 2, 4)):
            job = self.ended("--name", name)[name]
            ran_s = moment(job["end_time"]) - moment(job["last_start"])
            self.assertGreaterEqual(ran_s, 3.9)
            for column, count in (("gpu_hours", gpus), ("core_hours", cores)):
                held_s = float(job[column]) * 3600 / count
                self.assertGreaterEqual(held_s, ran_s - 0.01, (name, column))
                self.assertLessEqual(held_s, ran_s + AROUND_S, (name, column))
            self.assertAlmostEqual(float(job["memory_gib_hours"]) / float(job["core_hours"]), 2, 3)  # 8 GiB for 4 cores

    def test_rows_add_up_to_the_jobs(self):
        jobs, total = self.ended().values(), self.usage("--by", "queue", "--depth", "1")
        self.assertEqual([row["queue"] for row in total], ["ai"])
        for column in ("gpu_hours", "core_hours", "memory_gib_hours", "gpu_hours_lost_to_preemption"):
            by_jobs = sum(float(job[column]) for job in jobs)
            for words in ((), ("--step", "hour"), ("--step", "month"), ("--by", KEYS)):
                by_rows = sum(float(row[column]) for row in self.usage(*words))
                self.assertAlmostEqual(by_jobs, by_rows, delta=4 * ROUNDED_H, msg=(column, words))
            self.assertAlmostEqual(float(total[0][column]), by_jobs, delta=2 * ROUNDED_H)

    def test_keys_and_filters(self):
        rows = self.usage("--by", "user,account")
        self.assertEqual([(row["user"], row["account"]) for row in rows], [("ada", "phys"), ("bob", "chem"), ("eve", "phys")])
        models = {row["device_model"]: float(row["gpu_hours"]) for row in self.usage("--by", "model")}
        self.assertEqual({model for model, hours in models.items() if hours}, {"H100", "A100"})
        bob = float(self.ended()["two"]["gpu_hours"])
        self.assertAlmostEqual(models["A100"], bob, delta=ROUNDED_H)
        for words in (("--user", "bob"), ("--queue", "vision"), ("--account", "chem")):
            rows = self.usage("--by", "user", *words)
            self.assertEqual([row["user"] for row in rows], ["bob"], words)
            self.assertAlmostEqual(float(rows[0]["gpu_hours"]), bob, delta=ROUNDED_H)
        self.assertEqual(self.cluster.run_berth("usage", "--queue", "nowhere").returncode, 3)

    def test_preemption_is_charged_to_the_victim(self):
        lost = {row["user"]: float(row["gpu_hours_lost_to_preemption"]) for row in self.usage("--by", "user")}
        self.assertGreater(lost["ada"], 0)
        self.assertEqual((lost["bob"], lost["eve"]), (0, 0))
        victim = self.ended("--name", "victim")["victim"]
        self.assertAlmostEqual(float(victim["gpu_hours_lost_to_preemption"]), lost["ada"], delta=ROUNDED_H)
        self.assertLess(lost["ada"], float(victim["gpu_hours"]))
        waited = {row["user"]: float(row["gpu_hours_waiting"]) for row in self.usage("--by", "user")}
        self.assertGreater(waited["ada"], 0)

    def test_capacity_adds_up(self):
        parts = ["held", "reserved", "free", "fragmented", "cordoned", "down", "unhealthy"]
        row, = self.rows("cluster", "usage", "--since", "1d")
        for unit, size in (("gpu_hours", 20), ("core_hours", 160), ("memory_gib_hours", 1280)):
            total = float(row[f"{unit}_total"]) + float(row[f"{unit}_overcommitted"])
            self.assertAlmostEqual(total, sum(float(row[f"{unit}_{part}"]) for part in parts), delta=10 * ROUNDED_H)
            # All nodes came at the same time, within a second or so.
            self.assertAlmostEqual(float(row[f"{unit}_total"]) / float(row["gpu_hours_total"]), size / 20, delta=size / 100)
        held = sum(float(one["gpu_hours"]) for one in self.ended().values())
        self.assertAlmostEqual(float(row["gpu_hours_held"]), held, delta=4 * ROUNDED_H)
        by_model = self.rows("cluster", "usage", "--since", "1d", "--by-model")
        self.assertAlmostEqual(sum(float(one["gpu_hours_held"]) for one in by_model), held, delta=4 * ROUNDED_H)
        for line in self.cluster.berth("cluster", "usage", "--since", "1d", "--no-headers").splitlines():
            shares = [float(word.strip("%")) for word in line.split()[2:] if word != "-"]
            self.assertAlmostEqual(sum(shares), 100, delta=0.001, msg=line)

    def test_tables_for_people(self):
        table = self.cluster.berth("usage", "--by", "queue,user").splitlines()
        self.assertRegex(table[0], r"^QUEUE +USER +GPU-HOURS +LOST TO PREEMPTION +LOST TO FAULTS +CORE-HOURS +GIB-HOURS$")
        self.assertEqual([line.split()[:2] for line in table[1:-1]], [["nlp", "ada"], ["nlp", "eve"], ["vision", "bob"]])
        self.assertTrue(table[-1].startswith("TOTAL"), table)
        notes = self.cluster.run_berth("usage", "--since", "30d").stderr
        self.assertIn("berth: nothing is known before ", notes)

    def test_restarts_change_nothing(self):
        before = self.usage("--by", KEYS), self.ended()
        for stop in (self.cluster.server.kill, self.cluster.server.stop):
            stop()
            self.cluster.server.start()
            after = self.usage("--by", KEYS), self.ended()
            for rows in (*before, *after):
                for row in rows.values() if isinstance(rows, dict) else rows:
                    row.pop("to", None)  # now
            self.assertEqual(before, after)


class Slurm(unittest.TestCase):
    def test_sacct_shows_jobs_that_are_gone(self):
        world = SlurmWorld(self, nodes=1, server={"finishedJobTtl": "1s"})
        number = world.sbatch("-J", "my job", "-A", "phys", "-o", "/dev/null", "--wrap", "exit 3")
        array = world.sbatch("--array=1-2", "-o", "/dev/null", "--wrap", "true")
        for name in (f"job-{number}", f"job-{array}", f"job-{array}.1", f"job-{array}.2"):
            wait_until(lambda: world.cluster.run_berth("job", "get", name).returncode == 3, 90, f"the end of {name}")
        self.assertEqual(world.state(number, "JobName,Account,State,ExitCode,NNodes,Timelimit"), "my job|phys|FAILED|3:0|1|Unknown")
        self.assertEqual(world.state(array, "JobID,State"), f"{array}_1|COMPLETED\n{array}_2|COMPLETED")
        self.assertEqual(world.state(f"{array}_2", "JobID"), f"{array}_2")
        held = world.sbatch("--hold", "-o", "/dev/null", "--wrap", "true")
        listed = world.ok("sacct", "-X", "-n", "-P", "-S", "now-1hour", "-o", "JobID").split()
        self.assertEqual(sorted(listed), sorted([number, f"{array}_1", f"{array}_2", held]))
        self.assertEqual(world.ok("sacct", "-n", "-P", "-A", "phys", "-S", "now-1hour", "-o", "JobID,State"), f"{number}|FAILED\n")
        self.assertEqual(world.ok("sacct", "-n", "-j", "12345"), "")
        job = json.loads(world.ok("sacct", "--json", "-j", number))["jobs"][0]
        self.assertEqual(job["exit_code"]["return_code"]["number"], 3)
        self.assertEqual(world.ok("squeue", "-h", "-t", "all", "-o", "%i"), f"{held}\n")


@unittest.skipUnless(importlib.util.find_spec("pandas"), "no pandas for this Python: deploy/install-deps --test")
class DebianPandas(unittest.TestCase):
    def test_frames_with_debians_packages(self):
        """The oldest pandas that the package takes; python_client_test.py has the newest."""
        tree = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="berth-test-"))) / "clients" / "python"
        shutil.copytree(SOURCE / "clients" / "python", tree, ignore=shutil.ignore_patterns("__pycache__", "v1", "*.egg-info"))
        (tree.parents[1] / "proto").symlink_to(SOURCE / "proto")
        shutil.copy(SOURCE / "CMakeLists.txt", tree.parents[1])
        subprocess.run([sys.executable, "build_support/generate.py"], cwd=tree, check=True)
        done = subprocess.run([sys.executable, "-m", "unittest", "history_test"], cwd=tree / "tests", capture_output=True, text=True,
                              timeout=300, env={**os.environ, "PYTHONPATH": str(tree / "src"), "BERTH_SOURCE": str(SOURCE)})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stderr, r"Ran \d tests")
        self.assertNotIn("skipped", done.stderr)


if __name__ == "__main__":
    unittest.main()
