#!/usr/bin/env python3
"""What operators do with high availability, and what they get wrong: a single server becomes the first of several and
goes back, a server that was away too long, a full etcd, a restore, another etcd, an etcd of another cluster."""
import re
import shutil
import subprocess
import time
import unittest

import grpc

from berth_api import cluster_pb2, job_pb2, node_pb2
from berth_harness import BIN, free_port, take_ports, wait_until, write_yaml
from ha_world import ETCD, Etcd, HaServer, HaWorld, skip_without_etcd


def run(*arguments, fails=False):
    done = subprocess.run([str(a) for a in arguments], capture_output=True, text=True, timeout=120)
    assert (done.returncode != 0) == fails, (arguments, done.stdout, done.stderr)
    return done.stdout + done.stderr


class Operations(unittest.TestCase):
    def world(self, **options):
        world = HaWorld(**options)
        world.__enter__()
        self.addCleanup(lambda: world.__exit__(None, None, None))
        return world

    def test_a_server_that_was_away_copies_anothers_store(self):
        world = self.world()
        leader, standby = world.leader(), world.standbys()[0]
        standby.stop()
        for i in range(20):
            world.client.submit(f"while-away-{i}")
        # Servers that are not heard of for 10 s keep nothing in etcd's log.
        base = lambda: world.etcdctl("get", "--prefix", "/berth/", "--keys-only").count("/log/")  # noqa: E731
        wait_until(lambda: base() <= 1, 40, "the log in etcd is trimmed")
        standby.start()
        world.await_standby()
        self.assertIn("too far behind", standby.output())
        self.assertEqual(len(list(standby.data.glob("behind-*"))), 1)
        world.client.submit("after")
        leader.halt()
        self.assertIn("while-away-19", world.client.job_names())

    def test_a_damaged_store_is_copied_again(self):
        world = self.world()
        world.client.submit("first")
        standby = world.standbys()[0]
        standby.stop()
        for log in standby.data.glob("*.log"):
            log.unlink()
        self.assertIn("it is copied from there", run(*standby.arguments, fails=True))
        shutil.rmtree(standby.data)
        standby.start()
        world.await_standby()
        world.leader().halt()
        self.assertIn("first", world.client.job_names())

    def test_a_full_etcd_is_repaired(self):
        world = self.world(quota=24 << 20)
        for i in range(60):  # another program's keys
            subprocess.run(["etcdctl", "--endpoints", world.etcds[0].address, "put", f"/junk/{i}"],
                           input="x" * 500_000, text=True, env={"ETCDCTL_API": "3"}, capture_output=True, check=False)
        self.assertIn("NOSPACE", world.etcdctl("alarm", "list"))
        leader = world.leader()
        with self.assertRaises(grpc.RpcError):
            world.client.submit("while-full", timeout_s=2)
        wait_until(lambda: "space exceeded" in leader.get("/readyz")[1], 20, "the leader says why")
        with self.assertRaises(grpc.RpcError) as refused:
            world.client.apis[leader.address].jobs.SubmitJobs(world.client.submission("refused"), timeout=5)
        self.assertEqual(refused.exception.code(), grpc.StatusCode.RESOURCE_EXHAUSTED)
        self.assertIn("space exceeded", refused.exception.details())
        world.etcdctl("del", "--prefix", "/junk/")
        text = run(BIN / "berth", "--server", ",".join(s.address for s in world.servers), "cluster", "etcd-repair")
        self.assertIn("3.", text)
        self.assertNotIn("NOSPACE", world.etcdctl("alarm", "list") or "")
        world.client.submit("after-the-repair")
        self.assertIn("after-the-repair", world.client.job_names())
        print(text)

    def test_a_restore_begins_a_new_generation(self):
        world = self.world(config={"backupDirectory": "/tmp"})
        world.client.submit("before-the-backup")
        leader = world.leader()
        name = f"berth-ha-backup-{free_port()}"
        world.client.apis[leader.address].cluster.Backup(cluster_pb2.BackupRequest(name=name), timeout=20)
        self.addCleanup(lambda: shutil.rmtree(f"/tmp/{name}", ignore_errors=True))
        world.client.submit("after-the-backup")
        first, second = world.servers
        second_up = second if leader is first else first
        leader.stop()
        shutil.move(leader.data, str(leader.data) + ".old")
        run(*leader.arguments, "--restore", f"/tmp/{name}")
        self.assertIn("--ha-init", run(*leader.arguments, fails=True))
        leader.init()  # ends the generation of the other server, which runs and led by now
        wait_until(lambda: not second_up.running() or "a restore has begun" in second_up.output(), 20,
                   "the other server of before ends")
        second_up.halt()
        self.assertIn("move the store away", run(*second_up.arguments, fails=True))
        leader.start()
        shutil.rmtree(second_up.data)
        second_up.start()
        world.await_standby()
        names = world.client.job_names()
        self.assertIn("before-the-backup", names)
        self.assertNotIn("after-the-backup", names)

    @staticmethod
    def agent_is_back(world, after):
        """Registered again since the epoch `after`; returns the new one."""
        def epoch():
            node = world.client.call("nodes", "GetNode", node_pb2.GetNodeRequest(name="n1"))
            return node.status.state == node_pb2.NODE_READY and node.status.epoch > after and node.status.epoch
        return wait_until(epoch, 30, "the agent registers")

    def test_back_to_one_server_and_again(self):
        world = self.world(servers=1)
        world.client.submit("first")
        server = world.servers[0]
        world.cluster.add_agent("n1", server=server.address)
        epoch = self.agent_is_back(world, 0)
        run(*server.arguments, "--ha-leave", fails=True)  # the store is in use
        server.stop()
        alone = write_yaml(world.home / "alone.yaml", {})
        arguments = [server.arguments[0], "--config", str(alone), *server.arguments[3:]]
        self.assertIn("belongs to a cluster in etcd", run(*arguments, fails=True))
        self.assertIn("left etcd", run(*server.arguments, "--ha-leave"))
        process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_until(lambda: server.get("/readyz")[1] == "ready\n", 20, "the single server is ready")
        self.assertIn("first", world.client.job_names())
        # Agents obey no lower term than they know, so the server tells them the last one, and then higher ones.
        epoch = self.agent_is_back(world, epoch)
        process.terminate()
        process.wait(20)
        self.assertIn("etcd has the cluster", run(*server.arguments, "--ha-init"))
        server.start()
        epoch = self.agent_is_back(world, epoch)
        # All of etcd is lost, with its disks: a new one counts from the beginning.
        server.stop()
        for etcd in world.etcds:
            etcd.kill()
            shutil.rmtree(etcd.data)
        for etcd in world.etcds:
            etcd.start()
        wait_until(lambda: world.etcdctl("endpoint", "health"), 20, "the new etcd is healthy")
        self.assertIn("older snapshot", run(*server.arguments, fails=True))  # etcd's id follows from its addresses
        self.assertIn("etcd has the cluster", run(*server.arguments, "--ha-init"))
        server.start()
        self.agent_is_back(world, epoch)
        self.assertIn("first", world.client.job_names())

    def test_wrong_etcds_are_refused_by_name(self):
        world = self.world()
        leader, standby = world.leader(), world.standbys()[0]
        standby.stop()
        peers = {"x": f"127.0.0.1:{free_port()}"}
        other = Etcd(world.home, "x", free_port(), peers).start()
        self.addCleanup(other.kill)
        wait_until(lambda: subprocess.run(["etcdctl", "--endpoints", other.address, "endpoint", "health"],
                                          env={"ETCDCTL_API": "3"}, capture_output=True).returncode == 0, 20, "etcd")
        wrong = write_yaml(world.home / "wrong.yaml", {"ha": {"etcd": [other.address], "name": standby.member}})
        arguments = [standby.arguments[0], "--config", str(wrong), *standby.arguments[3:]]
        self.assertIn("another etcd", run(*arguments, fails=True))
        # One that has lost a part of its past.
        mark = (standby.data / "HA").read_text()
        (standby.data / "HA").write_text(re.sub(r"revision \d+", "revision 999999999", mark))
        self.assertIn("restored from an older snapshot", run(*standby.arguments, fails=True))
        (standby.data / "HA").unlink()
        standby.start()
        world.await_standby()
        # A store of another cluster.
        stranger = HaServer(world.home, "stranger", [e.address for e in world.etcds], {})
        self.assertIn("etcd has the cluster", run(*stranger.arguments, "--ha-init"))
        self.assertIn("shared by several clusters", run(*self.fresh(world, stranger), fails=True))

    @staticmethod
    def fresh(world, server):
        return [*server.arguments[:-1], str(world.home / "fresh-data")]


if __name__ == "__main__":
    skip_without_etcd()
    unittest.main(verbosity=2)
