#!/usr/bin/env python3
"""Tasks kept apart, end to end: users by the server's leave, memory bounds, commands inside tasks, images, and nodes that
say that they are not well. Needs root; without, it is skipped.
"""
import os
import pathlib
import pwd
import shutil
import subprocess
import unittest

import grpc

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

    def agent(self, **config):
        """An agent whose state is not below /tmp, so that its tasks get a /tmp of their own."""
        state = pathlib.Path(f"/run{self.cluster.home}")  # has the name by which the harness finds processes
        state.mkdir(parents=True)
        self.addCleanup(shutil.rmtree, state, ignore_errors=True)
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
            self.skipTest("no control groups here")
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
        self.assertIn("does not run", over.stderr)

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

    def crun(self):
        """Debian's crun does not run where hierarchies of both versions are mounted, unless one is out of its sight."""
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
        wait_until(lambda: self.logs("boxed") == expected, 20, "what it sees")
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
        """What runs goes on, what tolerates it comes, and all else waits until it is over."""
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
        self.assertIn("taints alone bars it", self.cluster.berth("job", "explain", "late"))
        self.assertFalse(self.node().status.cordoned)
        flag.touch()
        self.cluster.wait_job("late", "RUNNING")
        self.cluster.wait_job("first", "RUNNING")
        self.assertEqual([taint.key for taint in self.node().inventory.taints], ["rack"])

    def test_full_disk(self):
        self.agent(health={"interval": "1s", "failAfter": 1, "minFree": "1Ei"})
        wait_until(lambda: self.node().status.draining, 30, "the node drains")
        self.assertRegex(self.node().status.reason, "agent: disk-space: the disk is full: .* MiB free in /run/")

    def test_epilog(self):
        self.agent(hooks={"prolog": ["/bin/sh", "-c", "echo before"], "epilog": ["/bin/false"]})
        self.submit(make_job("short", "q", ["echo", "task"]))
        self.cluster.wait_job("short", "SUCCEEDED")
        wait_until(lambda: self.node().status.draining, 30, "the node drains")
        self.assertIn("epilog exited with 1", self.node().status.reason)
        self.assertEqual(self.logs("short"), "before\ntask\n")


if __name__ == "__main__":
    unittest.main(verbosity=2)
