#!/usr/bin/env python3
"""Isolation of tasks, end to end: users that the server allows, limits of memory and disk, separate processes and
shared memory, commands inside tasks, images, and nodes that report problems. Needs root; without root the test is
skipped.
"""
import os
import pathlib
import pwd
import shutil
import subprocess
import time
import unittest

import grpc
from google.protobuf import duration_pb2

from berth_api import job_pb2, make_job, node_pb2
from berth_harness import Cluster, wait_until

HYBRID = pathlib.Path("/sys/fs/cgroup/unified/cgroup.procs")


class Isolation(unittest.TestCase):
    def setUp(self):
        if os.getuid() != 0:
            self.skipTest("needs root")
        self.cluster = Cluster({"runAs": [{"user": "ada", "withoutTls": True}]})
        self.cluster.belongs_to(self)
        self.cluster.server.start()
        self.cluster.create_queue("q")

    def state(self):
        """Not below /tmp, so that tasks get their own /tmp; has the name by which the harness finds processes."""
        state = pathlib.Path(f"/run{self.cluster.home}")
        state.mkdir(parents=True)
        self.addCleanup(shutil.rmtree, state, ignore_errors=True)
        return state

    def small_disk(self, mebibytes):
        state = self.state()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={mebibytes}m", "tmpfs", str(state)], capture_output=True)
        if mounted.returncode != 0:
            self.skipTest("cannot mount on this machine")
        self.addCleanup(subprocess.run, ["umount", "-l", str(state)], check=False)
        self.addCleanup(self.cluster.stop)
        return state

    def agent(self, state=None, **config):
        state = state or self.state()
        agent = self.cluster.add_agent("n1", stateDirectory=str(state), **config)
        self.cluster.wait_nodes(1)
        return agent

    def submit(self, job):
        self.cluster.api.jobs.SubmitJobs(job_pb2.SubmitJobsRequest(request_id=job.name, jobs=[job]), timeout=10)

    def node(self):
        return self.cluster.api.nodes.GetNode(node_pb2.GetNodeRequest(name="n1"), timeout=10)

    def logs(self, job):
        return self.cluster.berth("job", "logs", job)

    def test_run_as(self):
        self.agent(taskUsers={"ada": "daemon"})
        self.submit(make_job("mine", "q", ["sh", "-c", "id -un; ls -A /tmp"], run_as="ada"))
        self.cluster.wait_job("mine", "SUCCEEDED")
        self.assertEqual(self.logs("mine"), "daemon\n")
        with self.assertRaises(grpc.RpcError) as refused:
            self.submit(make_job("other", "q", ["true"], run_as="daemon"))
        self.assertEqual(refused.exception.code(), grpc.StatusCode.PERMISSION_DENIED)

    def test_memory(self):
        agent = self.agent()
        if "no control groups" in agent.output():
            self.skipTest("no control groups on this machine")
        job = make_job("greedy", "q", ["/usr/bin/python3", "-c", "x = bytearray(500 << 20)"])
        job.spec.groups[0].resources.memory_bytes = 64 << 20
        self.submit(job)
        self.cluster.wait_job("greedy", "FAILED")
        (task,) = self.cluster.api.tasks("greedy")
        self.assertEqual(task.exit_signal, 9)
        self.assertIn("out of memory", task.message)

    def test_exec(self):
        self.agent()
        self.submit(make_job("long", "q", ["sh", "-c", "echo hidden > /tmp/mark; exec sleep 100000"]))
        self.cluster.wait_job("long", "RUNNING")
        wait_until(lambda: self.cluster.berth("exec", "long", "--", "cat", "/tmp/mark") == "hidden\n", 20, "its /tmp")
        result = self.cluster.run_berth("exec", "long", "--task", "w-0", "--", "sh", "-c",
                                        "id -un; echo $BERTH_JOB; cat; echo bad >&2; exit 7", stdin="words\n")
        self.assertEqual(result.returncode, 7, result.stderr)
        self.assertEqual(result.stdout, "nobody\nlong\nwords\n")
        self.assertEqual(result.stderr, "bad\n")
        big = self.cluster.run_berth("exec", "long", "--", "wc", "-c", stdin="x" * 3_000_000)
        self.assertEqual(big.stdout.strip(), "3000000")
        big = self.cluster.run_berth("exec", "long", "--", "head", "-c", "3000000", "/dev/zero")
        self.assertEqual(len(big.stdout), 3000000)
        self.assertEqual(self.cluster.run_berth("exec", "ghost", "--", "true").returncode, 3)
        self.cluster.berth("job", "cancel", "long")
        self.cluster.wait_job("long", "CANCELLED")
        over = self.cluster.run_berth("exec", "long", "--", "true")
        self.assertEqual(over.returncode, 1)
        self.assertIn("is not running", over.stderr)

    def test_exec_ends_with_its_client(self):
        self.agent()
        self.submit(make_job("long", "q", ["sleep", "100000"]))
        self.cluster.wait_job("long", "RUNNING")
        from berth_harness import BIN
        client = subprocess.Popen([str(BIN / "berth"), "--server", self.cluster.server.address, "exec", "-n", "long",
                                   "--", "sleep", "4711"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)

        def sleeper():
            return subprocess.run(["pgrep", "-fx", "sleep 4711"], capture_output=True).returncode == 0
        wait_until(sleeper, 20, "the command runs")
        client.kill()
        client.wait()
        wait_until(lambda: not sleeper(), 20, "the command was killed")
        self.assertEqual(self.cluster.wait_job("long", "RUNNING").status.start_count, 1)

    def keeps(self, state):
        return [path.name for path in (state / "keep").iterdir()] if (state / "keep").exists() else []

    def test_kept_state(self):
        """Two attempts in one place, with an agent that dies between them. What was kept goes with the job."""
        state = self.state()
        agent = self.agent(state=state)
        script = ('if [ -e "$BERTH_KEEP/far" ]; then cat "$BERTH_KEEP/far" "$BERTH_KEEP_MEMORY/near"; exec sleep 100000; fi; '
                  'echo disk > "$BERTH_KEEP/far"; echo memory > "$BERTH_KEEP_MEMORY/near"; exit 3')
        self.submit(make_job("kept", "q", ["sh", "-c", script], max_retries=3, keep=job_pb2.Keep(memory=True, disk=True),
                             retry_backoff=duration_pb2.Duration(seconds=10)))
        self.cluster.wait_job("kept", "RESTARTING")
        wait_until(lambda: self.keeps(state), 20, "something is kept")
        agent.kill()
        agent.start()
        wait_until(lambda: self.logs("kept") == "disk\nmemory\n", 60, "the second attempt finds what the first one left")
        self.assertEqual(len(self.keeps(state)), 1)
        self.assertEqual(self.cluster.run_berth("exec", "kept", "--", "sh", "-c", "ls /dev/shm").stdout, "near\n")
        self.cluster.berth("job", "cancel", "kept")
        self.cluster.wait_job("kept", "CANCELLED")
        wait_until(lambda: not self.keeps(state), 60, "the job has gone, and so has what it kept")
        self.assertEqual([entry.name for entry in (state / "shm").iterdir() if entry.is_dir()], [])

    def crun(self):
        """Debian's crun does not run with mounted hierarchies of both versions, unless one is hidden from it."""
        if not HYBRID.exists():
            return "/usr/bin/crun"
        wrapper = self.cluster.home / "crun-here"
        wrapper.write_text("#!/bin/sh\nexec unshare -m sh -c 'umount /sys/fs/cgroup/unified; exec /usr/bin/crun \"$@\"' "
                           "crun \"$@\"\n")
        wrapper.chmod(0o755)
        return str(wrapper)

    def test_image(self):
        busybox = shutil.which("busybox")
        if not os.path.exists("/usr/bin/crun") or busybox is None:
            self.skipTest("needs crun and a static busybox")
        images = self.cluster.home / "images"
        rootfs = images / "team" / "small:1" / "rootfs"
        for part in ("bin", "proc", "dev", "sys", "tmp", "run"):
            (rootfs / part).mkdir(parents=True)
        shutil.copy(busybox, rootfs / "bin" / "busybox")
        for name in ("sh", "id", "sleep"):
            (rootfs / "bin" / name).symlink_to("busybox")
        self.agent(images={"directory": str(images), "crun": self.crun()})
        job = make_job("boxed", "q", ["sh", "-c", "id -u; echo /*; sleep 100000"])
        job.spec.groups[0].image = "team/small:1"
        self.submit(job)
        self.cluster.wait_job("boxed", "RUNNING")
        expected = f"{pwd.getpwnam('nobody').pw_uid}\n/bin /dev /proc /run /sys /tmp\n"
        wait_until(lambda: self.logs("boxed") == expected, 20, "its output")
        self.assertEqual(self.cluster.berth("exec", "boxed", "--", "id", "-u"), expected.splitlines()[0] + "\n")
        self.cluster.berth("job", "cancel", "boxed")
        self.cluster.wait_job("boxed", "CANCELLED")
        job.name = "unknown"
        job.spec.groups[0].image = "team/other"
        self.submit(job)
        self.assertIn("image team/other is not in", self.cluster.wait_job("unknown", "FAILED").status.message)
        self.assertEqual(self.node().status.refusals, 0)  # the job's fault, not the node's

    def test_health(self):
        flag = self.cluster.shared_file("well")
        self.agent(health={"interval": "1s", "failAfter": 1, "recoverAfter": 1,
                           "command": ["/bin/sh", "-c", f"test -e {flag} || {{ echo not well; exit 1; }}"]})
        self.submit(make_job("long", "q", ["sleep", "100000"]))
        self.cluster.wait_job("long", "RUNNING")
        flag.unlink()
        wait_until(lambda: self.node().status.draining, 30, "the node drains")
        self.assertEqual(self.node().status.reason, "agent: command: not well")
        self.cluster.wait_job("long", "PENDING")
        self.assertEqual(self.cluster.server.metric("berth_node_conditions"), 1)
        flag.touch()
        self.cluster.wait_job("long", "RUNNING")
        self.assertFalse(self.node().status.cordoned)

    def test_taints_by_health(self):
        """Running tasks continue, tasks that tolerate the taint start, and all others wait until it is removed."""
        flag = self.cluster.shared_file("well")
        self.agent(health={"interval": "1s", "failAfter": 1, "recoverAfter": 1, "commandEffect": "taint",
                           "command": ["/bin/sh", "-c", f"test -e {flag}"]}, taints=[{"key": "rack", "effect": "NO_SCHEDULE"}])
        first, hardy, late = (make_job(name, "q", ["sleep", "100000"]) for name in ("first", "hardy", "late"))
        for job in (first, hardy, late):
            job.spec.groups[0].tolerations.add(key="rack")
        hardy.spec.groups[0].tolerations.add(key="health/command")
        self.submit(first)
        self.cluster.wait_job("first", "RUNNING")
        flag.unlink()
        wait_until(lambda: [taint.key for taint in self.node().inventory.taints] == ["rack", "health/command"], 30, "the taint")
        self.submit(late)
        self.submit(hardy)
        self.cluster.wait_job("hardy", "RUNNING")
        self.cluster.wait_job("late", "PENDING")
        self.assertIn("blocked by taints alone", self.cluster.berth("job", "explain", "late"))
        self.assertFalse(self.node().status.cordoned)
        flag.touch()
        self.cluster.wait_job("late", "RUNNING")
        self.cluster.wait_job("first", "RUNNING")
        self.assertEqual([taint.key for taint in self.node().inventory.taints], ["rack"])

    def test_full_disk_cordons(self):
        """No task is to blame: no new task starts, and running tasks continue."""
        self.agent(health={"interval": "1s", "failAfter": 1, "minFree": "1Ei"})
        self.submit(make_job("long", "q", ["sleep", "100000"]))
        wait_until(lambda: self.node().status.cordoned, 30, "the node is cordoned")
        self.assertRegex(self.node().status.reason, "agent: disk-space: the disk is nearly full: .* MiB free in /run/")
        time.sleep(3)
        self.assertFalse(self.node().status.draining)

    def test_full_disk_drains(self):
        """If the operator configured drainFree."""
        self.agent(health={"interval": "1s", "failAfter": 1, "minFree": "1Ei", "drainFree": "512Pi"})
        wait_until(lambda: self.node().status.draining, 30, "the node drains")
        self.assertIn("disk-full: the disk is nearly full", self.node().status.reason)

    def test_a_task_that_fills_the_disk(self):
        """The task is named and fails, once; its neighbour and its node continue."""
        self.agent(self.small_disk(96), health={"interval": "1s", "failAfter": 1, "recoverAfter": 1, "minFree": "16Mi"})
        self.cluster.add_agent("n2", stateDirectory=str(self.cluster.home / "n2-state"))
        self.cluster.wait_nodes(2)
        self.cluster.berth("node", "cordon", "n2")
        self.submit(make_job("neighbour", "q", ["sleep", "100000"]))
        self.cluster.wait_job("neighbour", "RUNNING")
        self.submit(make_job("hog", "q", ["sh", "-c", "dd if=/dev/zero of=file bs=1M; sleep 100000"]))
        self.cluster.wait_job("hog", "RUNNING")
        self.cluster.berth("node", "uncordon", "n2")  # it could restart there
        drained = []

        def ended():
            drained.append(self.node().status.draining)
            return self.cluster.api.tasks("hog")[0].message
        message = wait_until(ended, 60, "the hog has ended")
        self.assertRegex(message, "used 9[0-9](.[0-9])? MiB of disk; the limit is 48 MiB")
        job = self.cluster.wait_job("hog", "FAILED")
        self.assertEqual(job.status.start_count, 1)
        wait_until(lambda: not self.node().status.cordoned, 30, "the node accepts tasks again")
        self.assertNotIn(True, drained)
        self.assertEqual(self.cluster.wait_job("neighbour", "RUNNING").status.start_count, 1)

    def fill_elsewhere(self, script):
        """A hog that writes outside its directories, with a neighbour. Returns the agent of their node."""
        state = self.small_disk(96)
        agent = self.agent(state, health={"interval": "1s", "failAfter": 1, "recoverAfter": 1, "minFree": "16Mi"})
        (state / "home").mkdir()
        (state / "home").chmod(0o777)
        self.cluster.add_agent("n2", stateDirectory=str(self.cluster.home / "n2-state"))
        self.cluster.wait_nodes(2)
        self.cluster.berth("node", "cordon", "n2")
        self.submit(make_job("neighbour", "q", ["sleep", "100000"]))
        self.cluster.wait_job("neighbour", "RUNNING")
        hog = make_job("hog", "q", ["sh", "-c", script])
        hog.spec.groups[0].working_dir = str(state / "home")
        self.submit(hog)
        self.cluster.wait_job("hog", "RUNNING", "FAILED")
        self.cluster.berth("node", "uncordon", "n2")  # it could restart there
        return agent

    def check_neighbour(self):
        self.assertFalse(self.node().status.draining)
        self.assertEqual(self.cluster.wait_job("neighbour", "RUNNING").status.start_count, 1)
        self.assertEqual([task.node for task in self.cluster.api.tasks("neighbour")], ["n1"])

    def test_a_task_that_fills_the_disk_elsewhere(self):
        agent = self.fill_elsewhere("exec 5>file; dd if=/dev/zero bs=1M >&5; sleep 100000")
        if "no control groups" in agent.output():
            self.skipTest("no control groups on this machine: the processes of a task are unknown")
        job = self.cluster.wait_job("hog", "FAILED")
        self.assertRegex(self.cluster.api.tasks("hog")[0].message, "wrote .* outside its own directories, to files such as /run/.*/home/file")
        self.assertEqual(job.status.start_count, 1)
        self.check_neighbour()

    def test_a_full_disk_without_a_culprit_evicts_no_task(self):
        """Too fast to be caught writing: the node is cordoned, and nothing else happens."""
        self.fill_elsewhere("dd if=/dev/zero of=file bs=1M; sleep 100000")
        wait_until(lambda: self.node().status.cordoned, 30, "the node is cordoned")
        time.sleep(5)
        self.check_neighbour()
        self.assertEqual(self.cluster.wait_job("hog", "RUNNING").status.start_count, 1)

    def test_scratch_is_limited(self):
        state = self.small_disk(96)
        self.agent(state, scratch="64Mi")
        greedy = make_job("greedy", "q", ["sh", "-c", "dd if=/dev/zero of=$BERTH_SCRATCH/f bs=1M count=40; sleep 100000"])
        greedy.spec.groups[0].resources.scratch_bytes = 20 << 20
        modest = make_job("modest", "q", ["sh", "-c", "dd if=/dev/zero of=$BERTH_SCRATCH/f bs=1M count=15; sleep 100000"])
        modest.spec.groups[0].resources.scratch_bytes = 20 << 20
        self.submit(modest)
        self.submit(greedy)
        self.cluster.wait_job("greedy", "FAILED")
        self.assertRegex(self.cluster.api.tasks("greedy")[0].message, "used 40(.[0-9])? MiB of its 20 MiB of scratch")
        self.cluster.wait_job("modest", "RUNNING")

    def test_secrets(self):
        """Neither another user of the machine nor another task of the same user sees the value of a variable."""
        self.agent()
        self.submit(make_job("secret", "q", ["sh", "-c", "echo got $TOKEN; sleep 100000; : $TOKEN"], env={"TOKEN": "t0k3n-value"}))
        wait_until(lambda: self.logs("secret") == "got t0k3n-value\n", 30, "the task has its token")
        look = "cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ 2>/dev/null | grep -ac '[t]0k3n-value'; ps axe | grep -c '[t]0k3n-value'"
        outside = subprocess.run(["setpriv", "--reuid=daemon", "--regid=daemon", "--clear-groups", "sh", "-c", look],
                                 capture_output=True, text=True)
        self.assertEqual(outside.stdout, "0\n0\n")
        self.submit(make_job("curious", "q", ["sh", "-c", look]))
        wait_until(lambda: self.logs("curious") == "0\n0\n", 30, "the search has finished")
        files = subprocess.run(["setpriv", "--reuid=nobody", "--clear-groups", "grep", "-rl", "t0k3n-value",
                                f"/run{self.cluster.home}"], capture_output=True, text=True).stdout.split()
        self.assertEqual(files, [])  # other users cannot read its log, either
        self.assertEqual(self.cluster.wait_job("secret", "RUNNING").status.start_count, 1)

    def test_tasks_cannot_end_each_other(self):
        self.agent()
        self.submit(make_job("victim", "q", ["sleep", "100000"]))
        self.cluster.wait_job("victim", "RUNNING")
        self.submit(make_job("killer", "q", ["/usr/bin/python3", "-c", "import os; os.kill(-1, 9)"]))
        self.cluster.wait_job("killer", "SUCCEEDED", "FAILED")
        job = self.cluster.wait_job("victim", "RUNNING")
        self.assertEqual(job.status.start_count, 1)
        self.cluster.berth("job", "cancel", "victim")
        self.cluster.wait_job("victim", "CANCELLED")
        self.assertEqual(self.cluster.api.tasks("victim")[0].exit_signal, 15)  # PID 1 would have ignored it

    def test_shared_memory(self):
        """Tasks of one job on a node share /dev/shm and System V memory; another job does not; nothing remains."""
        self.agent()
        pair = make_job("pair", "q", ["sh", "-c", "echo $BERTH_TASK > /dev/shm/$BERTH_TASK; ipcmk -M 4096 >/dev/null; "
                                      "until [ -e /dev/shm/w-0 -a -e /dev/shm/w-1 ]; do sleep 0.1; done; echo both; sleep 100000"],
                        replicas=2)
        self.submit(pair)
        for task in ("w-0", "w-1"):
            wait_until(lambda: self.cluster.berth("job", "logs", "pair", "--task", task) == "both\n", 30, f"{task} sees both")
        look = "ls -A /dev/shm; ipcs -m | grep -c nobody; true"
        self.submit(make_job("other", "q", ["sh", "-c", look]))
        self.cluster.wait_job("other", "SUCCEEDED")
        self.assertEqual(self.logs("other"), "0\n")
        self.assertFalse(os.path.exists("/dev/shm/w-0"))
        shm = pathlib.Path(f"/run{self.cluster.home}/shm")
        self.assertEqual(len([entry for entry in shm.iterdir() if entry.is_dir()]), 1)
        self.cluster.berth("job", "cancel", "pair")
        self.cluster.wait_job("pair", "CANCELLED")
        self.assertEqual([entry for entry in shm.iterdir() if entry.is_dir()], [])
        self.assertNotIn(str(shm), pathlib.Path("/proc/self/mountinfo").read_text())

    def test_epilog(self):
        self.agent(hooks={"prolog": ["/bin/sh", "-c", "echo before"], "epilog": ["/bin/false"]})
        self.submit(make_job("short", "q", ["echo", "task"]))
        self.cluster.wait_job("short", "SUCCEEDED")
        wait_until(lambda: self.node().status.draining, 30, "the node drains")
        self.assertIn("epilog exited with 1", self.node().status.reason)
        self.assertEqual(self.logs("short"), "before\ntask\n")


if __name__ == "__main__":
    unittest.main(verbosity=2)
