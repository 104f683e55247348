#!/usr/bin/env python3
"""Real PyTorch gangs that lose processes, nodes, networks and the server: each job ends with the same bits as an
undisturbed one, repeats no more steps than since its checkpoint, and restarts exactly what it must.

By default two cases run, and CASES=all runs all: about 7 minutes on two cores.
"""
import json
import os
import signal
import time
import unittest

from berth_api import job_pb2
from berth_harness import wait_until
from training_gang import (GRACE_S, HEARTBEAT_S, LEASE_S, MARGIN_S, MEETING, MEMBERS, NODES, SAVE_EVERY, TORCHRUN,
                           WITHIN_S, TrainingGang, long)

ON_FAILURE = {"policies": [{"event": "TaskFailed", "action": "RestartTask"}]}
RENDEZVOUS = {"membership": "Rendezvous"}
COORDINATOR = {"name": "meeting", "role": "Coordinator", "resources": {"cpu": 1},
               "command": ["/usr/bin/python3", "-c", MEETING]}
SAVE = {"signal": "SIGUSR1", "grace": "20s", "savedExitCodes": [75]}


class Torch(TrainingGang):
    def begin(self, *arguments, **spec):
        name = self._testMethodName.removeprefix("test_").replace("_", "-")
        self.submit(name, *arguments, **spec)
        self.wait_step(name)
        return name

    @long
    def test_an_undisturbed_gang(self):
        self.check("undisturbed", [], starts=1, retries=0, repeated=0)

    @long
    def test_a_process_dies(self):
        name = self.begin()
        self.kill_task(name, self.task_of_rank(name, 2)[0])
        self.check(name, "all", starts=2, retries=1)

    def test_a_rigid_gang_that_restarts_single_tasks_restarts_as_a_whole(self):
        name = self.begin(worker=ON_FAILURE)
        self.kill_task(name, self.task_of_rank(name, 2)[0])
        self.check(name, "all", starts=2, retries=1)

    @long
    def test_torchrun_dies(self):
        name = self.begin(TORCHRUN, worker=RENDEZVOUS)
        task, = [t for t in self.tasks(name) if t.rank == 2]
        self.kill_task(name, f"w-{task.index}")
        self.check(name, [f"w-{task.index}"], starts=1, retries=1)

    @long
    def test_torchrun_dies_that_hosts_the_rendezvous(self):
        name = self.begin(TORCHRUN, worker=RENDEZVOUS)
        task, = [t for t in self.tasks(name) if t.rank == 0]
        self.kill_task(name, f"w-{task.index}")
        self.check(name, "all", starts=2, retries=1)

    @long
    def test_a_worker_under_torchrun_dies(self):
        name = self.begin(TORCHRUN, worker=RENDEZVOUS)
        self.kill_worker(name, self.task_of_rank(name, 1)[0])
        self.check(name, [], starts=1, retries=0)

    @long
    def test_torchrun_of_rank_0_dies_beside_a_coordinator(self):
        name = self.begin(TORCHRUN, groups=[COORDINATOR], worker=RENDEZVOUS)
        task, _ = self.task_of_rank(name, 0)
        self.kill_task(name, task)
        self.check(name, [task], starts=1, retries=1)

    @long
    def test_a_coordinator_dies(self):
        name = self.begin(TORCHRUN, groups=[COORDINATOR], worker=RENDEZVOUS)
        self.kill_task(name, "meeting-0")
        self.check(name, "all", starts=2, retries=1)

    def test_a_node_dies_beside_a_coordinator(self):
        name = self.begin(TORCHRUN, groups=[COORDINATOR], worker=RENDEZVOUS)
        beside = next(t.node for t in self.tasks(name) if t.group == "meeting")
        lost = next(t for t in self.tasks(name) if t.group == "w" and t.node != beside)
        died = time.monotonic()
        self.cluster.kill_node(lost.node)
        self.check(name, [f"w-{lost.index}"], starts=1, retries=0)
        again = next(t for t in self.tasks(name) if t.group == "w" and t.index == lost.index)
        self.assertNotEqual(again.node, lost.node)
        begun = self.records(name).processes[-1][0]["time"]
        print(f"{name}: from the death of the node to a process elsewhere {begun - died:.1f} s", flush=True)

    @long
    def test_a_node_dies_of_a_gang_with_a_spare(self):
        name = self.begin(worker={"spares": 1})
        wait_until(lambda: self.spare(name).state == job_pb2.TASK_PREPARED, WITHIN_S, "the spare is prepared")
        spare = self.spare(name).node
        lost = next(t for t in self.tasks(name) if t.group == "w" and t.rank == 2)
        self.cluster.kill_node(lost.node)
        died = time.monotonic()
        self.check(name, "all", starts=2, retries=0)
        again = {t.index: t for t in self.tasks(name) if t.group == "w"}
        self.assertEqual((again[lost.index].node, again[lost.index].rank), (spare, 2))
        self.assertEqual(self.spare(name).attempt, 1)
        begun = self.records(name).processes[-1][0]["time"]
        print(f"{name}: from the death of the node to the gang on its spare {begun - died:.1f} s", flush=True)

    def spare(self, name):
        spare, = [t for t in self.tasks(name) if t.group == "w-spares"]
        return spare

    @long
    def test_a_drain(self):
        name = self.begin(checkpoint=SAVE)
        node = self.task_of_rank(name, 1)[1]
        self.cluster.berth("node", "drain", node)
        self.addCleanup(self.cluster.berth, "node", "uncordon", node)
        self.check_saved(self.check(name, "all", starts=2, retries=0, repeated=0))
        self.assertNotIn(node, [t.node for t in self.tasks(name)])

    @long
    def test_a_move_off_a_draining_node(self):
        name = self.begin(checkpoint=SAVE)
        node = self.task_of_rank(name, 1)[1]
        others = [n for n in self.cluster.agents if n not in [t.node for t in self.tasks(name)]]
        self.cluster.berth("node", "cordon", *others)
        self.addCleanup(self.cluster.berth, "node", "uncordon", node, *others)
        self.cluster.berth("node", "drain", node, "--mode", "when-placed")
        step = self.records(name).newest_step()
        wait_until(lambda: self.records(name).newest_step() > step, WITHIN_S, "it goes on: there is no other place")
        self.cluster.berth("node", "uncordon", *others)
        self.check_saved(self.check(name, "all", starts=2, retries=0, repeated=0))
        self.assertNotIn(node, [t.node for t in self.tasks(name)])

    @long
    def test_a_drain_beside_a_coordinator(self):
        name = self.begin(TORCHRUN, groups=[COORDINATOR], worker=RENDEZVOUS, checkpoint=SAVE)
        beside = next(t.node for t in self.tasks(name) if t.group == "meeting")
        moved = next(t for t in self.tasks(name) if t.group == "w" and t.node != beside)
        self.cluster.berth("node", "drain", moved.node)
        self.addCleanup(self.cluster.berth, "node", "uncordon", moved.node)
        self.check(name, [f"w-{moved.index}"], starts=1, retries=0, repeated=0)

    @long
    def test_suspend_and_resume(self):
        name = self.begin(checkpoint=SAVE)
        self.cluster.berth("job", "suspend", name)
        self.cluster.wait_job(name, "SUSPENDED")
        self.cluster.berth("job", "resume", name)
        self.check_saved(self.check(name, "all", starts=2, retries=0, repeated=0))

    @long
    def test_an_eviction(self):
        name = self.begin(checkpoint=SAVE, preemptible=True)
        urgent = {"apiVersion": "berth/v1", "kind": "Job", "name": "urgent", "queue": "q", "priority": 10, "groups": [
            {"name": "w", "replicas": NODES, "resources": {"cpu": 6}, "command": ["sleep", "1"]}]}
        self.cluster.berth("submit", self.cluster.manifest(json.dumps(urgent), "urgent.yaml"))
        self.cluster.wait_job("urgent", "SUCCEEDED")
        self.check_saved(self.check(name, "all", starts=2, retries=0, repeated=0))

    @long
    def test_the_end_of_the_walltime(self):
        name = self.begin(checkpoint={**SAVE, "walltimeNotice": "20s"}, walltime="10m",
                          policies=[{"event": "Timeout", "action": "RestartJob"}])
        start = self.cluster.wait_job(name, "RUNNING").status.start_time.ToDatetime().timestamp()
        self.cluster.berth("job", "update", name, "--walltime", f"{int(time.time() - start) + 20}s")
        wait_until(lambda: self.records(name).lines("leave"), WITHIN_S, "members leave")
        self.cluster.berth("job", "update", name, "--walltime", "10m")
        self.check_saved(self.check(name, "all", starts=2, retries=1, repeated=0))

    def check_saved(self, records):
        """All members left at the step that they agreed on, because they were asked."""
        left = [process[-1]["step"] for process in records.processes if process[-1]["what"] == "leave"]
        self.assertEqual(len(left), MEMBERS, records.summary())
        self.assertEqual(len(set(left)), 1, records.summary())

    @long
    def test_berthd_and_an_agent_are_killed(self):
        name = self.begin()
        agent = self.cluster.agents[self.task_of_rank(name, 1)[1]]
        self.cluster.server.kill()
        agent.kill()
        time.sleep(0.5)
        agent.start()
        self.cluster.server.start()
        self.check(name, [], starts=1, retries=0, repeated=0)

    @long
    def test_a_process_is_stopped(self):
        """The others wait for it in a collective: the gang hangs, writes its stacks, and restarts."""
        timeout_s = 8
        name = self.begin(watchdog={"timeout": f"{timeout_s}s", "start": "5m", "dumpWait": "3s"})
        task, _ = self.task_of_rank(name, 2)
        pid = self.pid(name, task)
        os.kill(pid, signal.SIGSTOP)
        stopped = time.monotonic()
        job = job_pb2.GetJobRequest(name=name)
        wait_until(lambda: self.cluster.api.jobs.GetJob(job, timeout=5).status.HasField("hang"), WITHIN_S,
                   "the hang is seen", 0.05)
        seen = time.monotonic() - stopped
        print(f"{name}: seen after {seen:.1f} s, with a timeout of {timeout_s} s and a heartbeat of {HEARTBEAT_S} s")
        self.assertGreater(seen, timeout_s - 1)
        self.check(name, "all", starts=2, retries=1)
        first, _ = self.task_of_rank(name, 0)
        logs = self.cluster.run_berth("job", "logs", name, "--task", first, "--attempt", "1")
        self.assertIn("Fatal Python error: Aborted", logs.stdout + logs.stderr)
        self.assertIn("do_step", logs.stdout + logs.stderr)

    @long
    def test_a_node_without_network_for_20_s(self):
        self.cluster.berth("node", "cordon", "n1")  # n5 is behind the relay
        name = self.begin()
        self.cluster.berth("node", "uncordon", "n1")
        self.relay.cut()
        cut = time.monotonic()
        self.addCleanup(self.relay.heal)
        wait_until(lambda: len(self.records(name).processes) > MEMBERS, WITHIN_S, "the gang starts again", 0.2)
        again = self.records(name).processes[MEMBERS][0]["time"]
        self.assertGreater(again - cut, LEASE_S - 1 + GRACE_S + MARGIN_S, "it started before the fence")
        time.sleep(max(0, cut + 20 - time.monotonic()))
        self.relay.heal()
        self.check(name, "all", starts=2, retries=0)
        self.assertNotIn("n5", [t.node for t in self.tasks(name)])

    def tasks(self, name):
        return self.cluster.api.tasks(name)


if __name__ == "__main__":
    unittest.main(verbosity=2)
