#!/usr/bin/env python3
"""Effects of `berthd --restore` and of a new data directory on running agents: earlier tasks are ended and forgotten,
new jobs run and show their own output, and a store from before incarnations loses nothing."""
import pathlib
import shutil
import subprocess
import unittest

from berth_api import cluster_pb2, job_pb2, make_job, node_pb2
from berth_harness import BIN, SOURCE, Cluster, alive, wait_until

OLD_STORE = SOURCE / "tests/unit/storage/formats/5"  # written by a version without incarnations


class Restore(unittest.TestCase):
    def setUp(self):
        self.cluster = Cluster()
        self.cluster.belongs_to(self)
        self.backups = self.cluster.home / "backups"
        self.server = self.cluster.server
        self.server.config.write_text(f"backupDirectory: {self.backups}\n")
        self.pids = self.cluster.shared_file("pids")
        self.uids = {}

    def begin(self):
        self.server.start()
        self.cluster.create_queue("q")

    def submit(self, name, script, **spec):
        answer = self.cluster.api.jobs.SubmitJobs(job_pb2.SubmitJobsRequest(
            jobs=[make_job(name, "q", ["bash", "-c", script], **spec)]), timeout=20)
        uid = answer.jobs[0].uid
        self.assertNotIn(uid, self.uids.values(), "a uid is repeated")
        self.assertGreater(uid, max(self.uids.values(), default=0))
        self.uids[name] = uid

    def run_forever(self, name, **spec):
        """Starts a task; returns its pid outside the pid namespace that the task may have."""
        before = set(self.sleepers(name))
        self.submit(name, f"echo begins >> {self.pids}; echo {name} begins; exec -a {name}-{self.cluster.home.name} sleep 1000", **spec)
        return wait_until(lambda: set(self.sleepers(name)) - before, 60, f"{name} runs").pop()

    def sleepers(self, name):
        mark, found = f"{name}-{self.cluster.home.name}\0".encode(), []
        for entry in pathlib.Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and (entry / "cmdline").read_bytes().startswith(mark):
                    found.append(int(entry.name))
            except OSError:
                pass
        return found

    def run_to_its_end(self, name, code, **spec):
        self.submit(name, f"echo the output of {name}; exit {code}", **spec)
        self.cluster.wait_job(name, "SUCCEEDED" if code == 0 else "FAILED", timeout_s=90)
        (task,) = self.cluster.api.tasks(name)
        self.assertEqual(task.exit_code, code)
        self.assertEqual(self.cluster.berth("job", "logs", name), f"the output of {name}\n")

    def restore(self, backup):
        place = self.server.data
        result = subprocess.run([str(BIN / "berthd"), "--restore", str(backup), "--data", str(place)],
                                capture_output=True, text=True, timeout=120)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def incarnation(self):
        info = self.cluster.api.cluster.GetClusterInfo(cluster_pb2.GetClusterInfoRequest(), timeout=10)
        self.assertIn("Incarnation", self.cluster.berth("cluster", "info"))
        self.assertIn(str(info.incarnation), self.cluster.berth("cluster", "info"))
        return info.incarnation

    def directories(self):
        (agent,) = self.cluster.agents.values()
        return {path.name for path in pathlib.Path(agent.state / "tasks").iterdir()}

    def test_after_a_restore_each_job_runs(self):
        self.begin()
        self.cluster.add_agent("n1")
        self.run_to_its_end("first", 0)
        kept = self.run_forever("kept")
        before = self.incarnation()
        self.cluster.berth("cluster", "backup", "nightly")
        self.run_to_its_end("secret", 3)  # after the backup: the restored store does not contain it
        gone = self.run_forever("gone")
        self.server.kill()
        shutil.move(self.server.data, self.cluster.home / "damaged")
        self.restore(self.backups / "nightly")
        self.server.start()
        self.assertGreater(self.incarnation(), before)

        self.run_to_its_end("new-1", 0)
        self.run_to_its_end("new-2", 7)
        self.run_to_its_end("secret", 0)  # the name is free again, and the output is its own
        wait_until(lambda: not alive(kept) and not alive(gone), 60, "earlier tasks are ended")
        # The task that ran at the backup restarts, once.
        wait_until(lambda: len(self.pids.read_text().split()) == 3, 60, "kept runs again")
        self.cluster.wait_job("kept", "RUNNING")
        (again,) = wait_until(lambda: self.sleepers("kept"), 60, "kept runs")
        self.assertTrue(alive(again))
        self.assertEqual(self.cluster.berth("job", "logs", "kept"), "kept begins\n")
        names = {job.name for job in self.cluster.api.all_jobs()}
        self.assertEqual(names, {"first", "kept", "new-1", "new-2", "secret"})
        # Earlier output stays on the node for keepEnded, in separate directories, and belongs to no job.
        logs = self.cluster.run_berth("job", "logs", "first")
        self.assertNotEqual(logs.returncode, 0)
        self.assertEqual(logs.stdout, "")
        old = [name for name in self.directories() if name.endswith(f".{before}")]
        self.assertEqual(len(old), 4, self.directories())

        # Again, from the same backup.
        last = self.incarnation()
        self.server.kill()
        shutil.rmtree(self.server.data)
        self.restore(self.backups / "nightly")
        self.server.start()
        self.assertGreater(self.incarnation(), last)
        self.run_to_its_end("newer", 4)
        wait_until(lambda: not alive(again), 60, "earlier tasks are ended")

    def test_a_new_store_under_a_running_task(self):
        self.begin()
        self.cluster.add_agent("n1")
        self.run_to_its_end("done", 3)
        old = self.run_forever("train", kill_grace={"seconds": 2})
        self.server.kill()
        shutil.rmtree(self.server.data)
        self.begin()
        self.run_to_its_end("train", 0)
        self.run_to_its_end("done", 5)
        wait_until(lambda: not alive(old), 60, "the old task is ended")

    def test_a_backup_put_back_by_hand_does_not_start(self):
        self.begin()
        self.cluster.berth("cluster", "backup", "nightly")
        self.put_back(self.backups / "nightly")
        self.server.start(wait=False)
        wait_until(lambda: not self.server.running(), 60, "berthd exits")
        self.assertIn("berthd --restore", self.server.output())
        shutil.rmtree(self.server.data)
        self.restore(self.backups / "nightly")
        self.server.start()  # starts again after a restart: the mark was not copied
        self.server.stop()
        self.server.start()

    def put_back(self, backup):
        self.server.kill()
        shutil.rmtree(self.server.data)
        shutil.copytree(backup, self.server.data)

    def refused(self):
        self.server.start()
        wait_until(lambda: "put the copy back with `berthd --restore`" in self.server.output(), 60, "the log names it")

    def test_a_store_put_back_by_hand_is_refused_by_its_agents(self):
        self.begin()
        self.cluster.add_agent("n1")
        self.run_to_its_end("before", 0)
        self.cluster.berth("cluster", "backup", "nightly")
        copy = self.backups / "nightly"
        (copy / "BACKUP").unlink()  # a snapshot of the file system has no such file
        # The agent does not register again in the meantime: the copy has its epoch, but not its job.
        self.run_to_its_end("after", 3)
        self.put_back(copy)
        self.refused()
        self.server.kill()
        shutil.rmtree(self.server.data)
        self.restore(copy)
        self.server.start()
        agent = self.cluster.agents["n1"]
        agent.kill()
        agent.start()  # without this restart it would retry after half a minute
        self.run_to_its_end("new", 2)

    def test_a_copy_of_a_stopped_server_is_refused_too(self):
        self.begin()
        self.cluster.add_agent("n1")
        self.cluster.wait_nodes(1)
        self.server.stop()
        copy = self.cluster.home / "copy"
        shutil.copytree(self.server.data, copy)
        self.server.start()
        wait_until(lambda: "epoch=2" in self.cluster.agents["n1"].output(), 60, "the agent has the new epoch")
        self.put_back(copy)
        self.refused()

    def test_simulated_nodes_run_tasks_of_a_restored_store_again(self):
        self.begin()
        self.cluster.add_simulation([{"name": "s[1-2]", "cpu": 4, "memory": "8Gi"}])
        self.cluster.wait_nodes(2)
        for name in ("ended", "runs"):
            job = make_job(name, "q", ["true"], suspended=True,
                           env={"BERTH_SIM_RUN_TIME": "100ms" if name == "ended" else "5s"})
            self.cluster.api.jobs.SubmitJobs(job_pb2.SubmitJobsRequest(jobs=[job]), timeout=20)
        self.cluster.berth("cluster", "backup", "nightly")
        self.cluster.berth("job", "resume", "runs")
        self.cluster.wait_job("runs", "RUNNING")
        self.cluster.berth("job", "resume", "ended")
        self.cluster.wait_job("ended", "SUCCEEDED")
        self.server.kill()
        shutil.rmtree(self.server.data)
        self.restore(self.backups / "nightly")
        self.server.start()
        for name, least_ms in (("ended", 100), ("runs", 5000)):  # with the same uids, tasks and attempts
            self.cluster.berth("job", "resume", name)
            self.cluster.wait_job(name, "SUCCEEDED")
            (task,) = self.cluster.api.tasks(name)
            self.assertEqual(task.attempt, 1)
            ran = task.end_time.ToMilliseconds() - task.start_time.ToMilliseconds()
            self.assertGreaterEqual(ran, least_ms - 10, "the task did not run for its whole time")

    def test_nothing_starts_after_a_restore_before_all_nodes_return(self):
        self.begin()
        for node in ("n1", "n2"):
            self.cluster.add_agent(node)
        self.cluster.wait_nodes(2)
        self.submit("waits", "true", suspended=True)
        self.cluster.berth("cluster", "backup", "nightly")
        self.server.kill()
        away = self.cluster.agents["n2"]
        away.kill()
        shutil.rmtree(self.server.data)
        self.restore(self.backups / "nightly")
        self.server.start()
        wait_until(lambda: self.cluster.api.nodes.GetNode(node_pb2.GetNodeRequest(name="n1"), timeout=10).status.state
                   == node_pb2.NODE_READY, 60, "n1 is back")
        self.cluster.berth("job", "resume", "waits")
        said = "no job is placed yet after the restore: nodes that have not come back may still run tasks: n2; at most"
        for report in (lambda: self.server.get("/readyz")[1], lambda: self.cluster.berth("cluster", "info"),
                     lambda: self.cluster.berth("job", "describe", "waits")):
            wait_until(lambda: said in " ".join(report().split()), 60, "the server reports the missing nodes")
        self.assertIn("no job is placed yet after the restore", self.cluster.berth("job", "list"))
        self.assertEqual(self.server.get("/readyz")[0], 200)
        away.start()
        self.cluster.wait_job("waits", "SUCCEEDED")
        self.assertEqual(self.server.get("/readyz"), (200, "ready\n"))
        self.assertNotIn("Problem", self.cluster.berth("cluster", "info"))
        self.server.stop()  # decisions follow from the log, including those during the wait
        verified = subprocess.run([str(BIN / "berth-sim"), "verify", str(self.server.data)], capture_output=True, text=True, timeout=120)
        self.assertEqual(verified.returncode, 0, verified.stdout + verified.stderr)

    def test_a_store_and_an_agent_of_an_earlier_version_continue(self):
        shutil.copytree(OLD_STORE, self.server.data)
        self.begin()
        self.assertEqual(self.incarnation(), 0)
        # These nodes have no agents, and the restore below would wait for them.
        nodes = lambda: self.cluster.api.nodes.ListNodes(node_pb2.ListNodesRequest(), timeout=10).nodes
        wait_until(lambda: all(node.status.state == node_pb2.NODE_SILENT for node in nodes()), 60, "they are silent")
        for job in self.cluster.api.all_jobs():
            self.cluster.run_berth("job", "cancel", "--force", job.name)
        for node in nodes():
            self.cluster.berth("node", "delete", node.name)
        agent = self.cluster.add_agent("fresh")
        pid = self.run_forever("train")
        self.assertLess(self.uids["train"], 1000, "uids continue from the old store")
        self.assertEqual(self.directories(), {f"{self.uids['train']}-0-1"}, "named as in the earlier version")
        for program in (agent, self.server):  # an upgrade of each
            program.kill()
            program.start()
        self.cluster.wait_job("train", "RUNNING")
        self.run_to_its_end("other", 4)
        self.assertTrue(alive(pid))
        self.assertEqual(self.cluster.berth("job", "logs", "train"), "train begins\n")
        # Its first restore gives it an incarnation.
        self.server.stop()
        shutil.move(self.server.data, self.cluster.home / "backup")
        self.restore(self.cluster.home / "backup")
        self.server.start()
        self.assertGreater(self.incarnation(), 0)
        wait_until(lambda: not alive(pid), 60, "earlier tasks are ended")
        wait_until(lambda: len(self.pids.read_text().split()) == 2, 60, "it runs again")
        self.run_to_its_end("newest", 6)
        self.assertGreater(self.uids["newest"], 2**40)


if __name__ == "__main__":
    unittest.main(verbosity=2)
