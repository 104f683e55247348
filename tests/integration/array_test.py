#!/usr/bin/env python3
"""Arrays and schedules with a real server and agents: indexes in the environment, retries of one index, limits, kill -9
in the middle, lists in pages, and a schedule that runs each minute."""
import time
import unittest

import grpc

from berth_api import job_pb2, make_job
from berth_harness import Cluster, wait_until


class Arrays(unittest.TestCase):
    def setUp(self):
        self.cluster = Cluster().belongs_to(self)
        self.cluster.server.start()
        self.cluster.add_agent("n1", cpu="8", memory="8Gi")
        self.cluster.wait_nodes(1)
        self.cluster.create_queue("q")

    def submit(self, name, script, array, **spec):
        job = make_job(name, "q", ["sh", "-c", script], cpu_millis=100, **spec)
        for key, value in array.items():
            setattr(job.spec.array, key, value)
        self.cluster.api.jobs.SubmitJobs(job_pb2.SubmitJobsRequest(jobs=[job]))

    def job(self, name):
        return self.cluster.api.jobs.GetJob(job_pb2.GetJobRequest(name=name))

    def test_each_index_runs_once(self):
        out = self.cluster.shared_file("out")
        self.submit("sweep", f'echo "$BERTH_ARRAY_INDEX $BERTH_ARRAY_SIZE $BERTH_ARRAY_JOB $BERTH_JOB" >> {out}',
                    {"indexes": "0-18:2,99", "parallelism": 4})
        self.cluster.wait_job("sweep", "SUCCEEDED")
        lines = sorted(out.read_text().split("\n")[:-1], key=lambda line: int(line.split()[0]))
        self.assertEqual(lines, [f"{i} 11 sweep sweep.{i}" for i in list(range(0, 19, 2)) + [99]])
        status = self.job("sweep").status.series
        self.assertEqual((status.size, status.made, status.succeeded, status.unfinished), (11, 11, 11, 0))
        # One line for the array, its jobs when asked.
        self.assertEqual(self.cluster.berth("job", "list", "-A", "-o", "name").split(), ["job/sweep"])
        self.assertEqual(len(self.cluster.berth("job", "list", "-A", "--of", "sweep", "-o", "name").split()), 11)
        print(self.cluster.berth("job", "list", "-A"))
        print(self.cluster.berth("job", "describe", "sweep"))
        print(self.cluster.berth("job", "describe", "sweep.4"))
        self.assertIn("Made by:", self.cluster.berth("job", "describe", "sweep.4"))

    def test_the_index_in_a_command(self):
        out = self.cluster.shared_file("out")
        text = ("apiVersion: berth/v1\nkind: Job\nname: words\nqueue: q\narray: {size: 3}\ngroups:\n"
                f"- {{name: w, command: [sh, -c, 'echo $0 >> {out}', \"item-$BERTH_ARRAY_INDEX\"]}}\n")
        self.cluster.berth("submit", self.cluster.manifest(text))
        self.cluster.wait_job("words", "SUCCEEDED")
        self.assertEqual(sorted(out.read_text().split()), ["item-0", "item-1", "item-2"])

    def test_retries_and_failures_of_one_index(self):
        out = self.cluster.shared_file("out")
        self.submit("part", f'echo "$BERTH_ARRAY_INDEX" >> {out}; [ "$BERTH_ARRAY_INDEX" != 3 ]', {"size": 5},
                    max_retries=2)
        self.cluster.wait_job("part", "FAILED")
        self.assertEqual(sorted(out.read_text().split()), ["0", "1", "2", "3", "3", "3", "4"])
        self.assertEqual(self.job("part").status.series.failed_indexes, "3")
        self.assertIn("1 of 5 failed: 3", self.job("part").status.message)

    def test_at_most_so_many_at_once_and_cancel(self):
        self.submit("wide", "sleep 600", {"size": 100, "parallelism": 5})
        wait_until(lambda: self.running("wide") == 5, 30, "five run")
        time.sleep(1)
        self.assertEqual(self.running("wide"), 5)
        self.assertEqual(self.job("wide").status.series.unfinished_indexes, "0-4")
        self.cluster.berth("job", "cancel", "wide")
        self.cluster.wait_job("wide", "CANCELLED")
        self.assertEqual(self.running("wide"), 0)
        self.assertEqual(self.job("wide").status.series.made, 5)

    def running(self, array):
        states = [job_pb2.JOB_RUNNING]
        listed = self.cluster.api.jobs.ListJobs(job_pb2.ListJobsRequest(
            page_size=1000, filter=job_pb2.JobFilter(series=array, states=states)))
        return len(listed.jobs)

    def test_a_killed_server_neither_loses_nor_repeats_an_index(self):
        out = self.cluster.shared_file("out")
        self.submit("long", f'echo "$BERTH_ARRAY_INDEX $BERTH_ATTEMPT" >> {out}; sleep 0.05', {"size": 300, "parallelism": 20})
        for _ in range(5):
            time.sleep(1)
            self.cluster.server.kill()
            self.cluster.server.start()
        self.cluster.wait_job("long", "SUCCEEDED", timeout_s=180)
        lines = out.read_text().split("\n")[:-1]
        self.assertEqual(len(lines), len(set(lines)))
        self.assertEqual(len(lines), 300)

    def test_names_are_looked_up_and_tasks_are_those_of_the_jobs(self):
        self.submit("a", "sleep 600", {"size": 2})
        wait_until(lambda: self.running("a") == 2, 30, "both run")
        result = self.cluster.run_berth("job", "logs", "a")
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("--of a", result.stderr)
        self.cluster.berth("exec", "a.1", "--", "true")
        with self.assertRaises(grpc.RpcError) as refused:
            self.submit("a", "true", {"size": 2})
        self.assertEqual(refused.exception.code(), grpc.StatusCode.ALREADY_EXISTS)
        result = self.cluster.run_berth("job", "delete", "a")
        self.assertIn("cancel it first", result.stderr)
        self.cluster.berth("job", "cancel", "a")
        self.cluster.wait_job("a", "CANCELLED")
        self.cluster.berth("job", "delete", "a")
        self.assertEqual(self.cluster.berth("job", "list", "-A", "--members", "-o", "name").split(), [])

    def test_wrong_arrays_are_refused_together(self):
        text = ("apiVersion: berth/v1\nkind: Job\nname: wrong\nqueue: q\narray: {size: 3, indexes: '5-1', parallelism: -1}\n"
                "minSuccess: 9\ngroups:\n- {name: w, command: [x]}\n")
        result = self.cluster.run_berth("submit", self.cluster.manifest(text))
        self.assertNotEqual(result.returncode, 0)
        for word in ("not together with indexes", "\"5-1\" is no index", "parallelism", "min_success"):
            self.assertIn(word, result.stderr)

    def test_a_template(self):
        out = self.cluster.shared_file("out")
        text = ("apiVersion: berth/v1\nkind: Template\nname: t\nparameters:\n- {name: word, description: any}\n"
                "- {name: count, default: 2}\njob:\n  name: filled-{{count}}\n  queue: q\n  groups:\n"
                f"  - {{name: w, replicas: '{{{{count}}}}', command: [sh, -c, 'echo $0 >> {out}', '{{{{ word }}}}']}}\n")
        manifest = self.cluster.manifest(text)
        self.cluster.berth("submit", manifest, "--set", "word=a: [b]", "--set", "count=3")
        self.cluster.wait_job("filled-3", "SUCCEEDED")
        self.assertEqual(out.read_text().split("\n")[:-1], ["a: [b]"] * 3)
        missing = self.cluster.run_berth("submit", manifest)
        self.assertRegex(missing.stderr, r"yaml:5:3: parameter word has no default: .*--set word=VALUE")
        unknown = self.cluster.run_berth("submit", manifest, "--set", "word=x", "--set", "cout=3")
        self.assertIn('no template here has a parameter "cout"', unknown.stderr)

    def test_a_hundred_thousand(self):
        begin = time.monotonic()
        self.submit("huge", "true", {"size": 100000, "parallelism": 100})
        took = time.monotonic() - begin
        print(f"submitted in {took:.3f} s")
        page = self.cluster.api.jobs.ListJobs(job_pb2.ListJobsRequest(
            page_size=10, filter=job_pb2.JobFilter(series="huge")))
        self.assertEqual(len(page.jobs), 10)
        self.assertTrue(page.next_page_token)
        self.cluster.berth("job", "cancel", "huge")
        self.cluster.wait_job("huge", "CANCELLED", timeout_s=120)


class Schedules(unittest.TestCase):
    def setUp(self):
        self.cluster = Cluster().belongs_to(self)
        self.cluster.server.start()
        self.cluster.add_agent("n1", cpu="8", memory="8Gi")
        self.cluster.wait_nodes(1)
        self.cluster.create_queue("q")

    def test_each_minute_and_its_history(self):
        out = self.cluster.shared_file("out")
        text = ("apiVersion: berth/v1\nkind: Schedule\nname: tick\nqueue: q\n"
                "schedule: {cron: '* * * * *', timeZone: Europe/Berlin, overlap: ALLOW, history: 1}\ngroups:\n"
                f"- {{name: w, command: [sh, -c, 'echo $BERTH_SCHEDULE_TIME >> {out}']}}\n")
        self.cluster.berth("submit", self.cluster.manifest(text))
        of_arrays = self.cluster.shared_file("of_arrays")
        self.cluster.berth("submit", self.cluster.manifest(
            "apiVersion: berth/v1\nkind: Schedule\nname: sweeps\nqueue: q\narray: {size: 3, parallelism: 2}\n"
            "schedule: {cron: '* * * * *', history: 1}\ngroups:\n- name: w\n  command: [sh, -c, "
            f"'echo $BERTH_SCHEDULE_TIME $BERTH_ARRAY_JOB $BERTH_ARRAY_INDEX $BERTH_ARRAY_SIZE >> {of_arrays}']\n"))
        self.cluster.server.kill()
        self.cluster.server.start()
        wait_until(lambda: out.exists() and len(out.read_text().split()) >= 2, 150, "two minutes passed")
        times = out.read_text().split()
        self.assertTrue(all(time.endswith(":00Z") for time in times), times)
        described = self.cluster.berth("job", "describe", "tick")
        print(described)
        self.assertIn("Next time:", described)
        wait_until(lambda: len(self.cluster.berth("job", "list", "-A", "--of", "tick", "-o", "name").split()) == 1, 30,
                   "one is kept")
        self.cluster.berth("job", "cancel", "tick")
        self.cluster.wait_job("tick", "CANCELLED")
        self.check_arrays(of_arrays)

    # Each minute an array of three jobs, whose names, logs and rights are found through two series.
    def check_arrays(self, out):
        wait_until(lambda: out.exists() and len(out.read_text().splitlines()) >= 6, 30, "two arrays ran")
        lines = [line.split() for line in out.read_text().splitlines()]
        by_array = {}
        for time, array, index, size in lines:
            self.assertEqual(array, "sweeps." + time.replace("-", "").replace("T", "-").replace(":", "").rstrip("Z"))
            self.assertEqual(size, "3")
            by_array.setdefault(array, []).append(index)
        array = max(by_array)
        self.cluster.wait_job(array, "SUCCEEDED")
        member = self.cluster.api.jobs.GetJob(job_pb2.GetJobRequest(name=array + ".2"))
        self.assertEqual(member.status.member_of.series, array)
        self.assertEqual(member.spec.groups[0].command[0], "sh")  # what it runs is kept with the schedule
        self.assertEqual(len(self.cluster.berth("job", "list", "-A", "--of", array, "-o", "name").split()), 3)
        self.cluster.berth("job", "cancel", "sweeps")
        self.cluster.wait_job("sweeps", "CANCELLED")
        self.cluster.berth("job", "delete", "sweeps")
        self.assertNotEqual(self.cluster.run_berth("job", "get", array + ".2").returncode, 0)

    def test_wrong_schedules(self):
        text = ("apiVersion: berth/v1\nkind: Schedule\nname: wrong\nqueue: q\n"
                "schedule: {cron: '61 * * * *', timeZone: Mars/Olympus, history: 1000}\ngroups:\n- {name: w, command: [x]}\n")
        result = self.cluster.run_berth("submit", self.cluster.manifest(text))
        for word in ('"61" is no minute', "Mars/Olympus", "history"):
            self.assertIn(word, result.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
