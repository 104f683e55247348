#!/usr/bin/env python3
"""Machines that are cut off: three network namespaces, each with a member of etcd, two of them with a server, with TLS
everywhere. The machine of the leader loses its network, both ways or one way, with and without etcd's leader on it."""
import json
import os
import pathlib
import subprocess
import sys
import time

import grpc

from berth_api import Api
from berth_harness import BIN, Cluster, Program, wait_until, write_yaml
from ha_world import ETCD, HaClient, skip_without_etcd

KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]


def sh(*command, check=True):
    return subprocess.run([str(c) for c in command], check=check, capture_output=True, text=True)


class Machine:
    """A namespace `number` with an address, an etcd and perhaps a server."""

    def __init__(self, net, number):
        self.net, self.number = net, number
        self.name, self.link, self.address = f"{net.prefix}{number}", f"{net.prefix}{number}h", f"{net.subnet}.{number}"
        sh("ip", "netns", "add", self.name)
        sh("ip", "link", "add", self.link, "type", "veth", "peer", "name", "eth0", "netns", self.name)
        sh("ip", "link", "set", self.link, "master", net.bridge, "up")
        sh("ip", "-n", self.name, "addr", "add", f"{self.address}/24", "dev", "eth0")
        sh("ip", "-n", self.name, "link", "set", "eth0", "up")
        sh("ip", "-n", self.name, "link", "set", "lo", "up")
        self.etcd = self.server = None

    def program(self, name, *arguments):
        return Program(name, ["ip", "netns", "exec", self.name, *arguments], self.net.home / f"{name}.log")

    def cut(self, one_way=False):
        if one_way:  # what it sends is lost; what others send arrives
            for other in self.net.others(self):
                sh("ip", "-n", self.name, "route", "add", "blackhole", f"{other}/32")
        else:
            sh("ip", "link", "set", self.link, "nomaster")

    def heal(self, one_way=False):
        if one_way:
            for other in self.net.others(self):
                sh("ip", "-n", self.name, "route", "del", "blackhole", f"{other}/32")
        else:
            sh("ip", "link", "set", self.link, "master", self.net.bridge)


class Net:
    def __init__(self):
        self.cluster = Cluster()
        self.home = pathlib.Path(self.cluster.home)
        self.prefix, self.subnet = f"bh{os.getpid() % 10000}-", f"10.{64 + os.getpid() % 60}.{os.getpid() % 250}"
        self.bridge = f"bh{os.getpid() % 10000}br"
        sh("ip", "link", "add", self.bridge, "type", "bridge")
        sh("ip", "link", "set", self.bridge, "up")
        sh("ip", "addr", "add", f"{self.subnet}.254/24", "dev", self.bridge)
        self.machines = [Machine(self, number) for number in (1, 2, 3)]
        self.certificates()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        for machine in self.machines:
            for program in (machine.server, machine.etcd):
                if kind is not None and program is not None:
                    print(f"---- {program.name}\n{program.output()[-3000:]}")
            pids = sh("ip", "netns", "pids", machine.name, check=False).stdout.split()
            sh("kill", "-9", *pids, check=False) if pids else None
            sh("ip", "netns", "del", machine.name, check=False)
        sh("ip", "link", "del", self.bridge, check=False)
        self.cluster.__exit__(None, None, None)

    def others(self, machine):
        return [m.address for m in self.machines if m is not machine] + [f"{self.subnet}.254"]

    def certificates(self):
        def openssl(*arguments):
            subprocess.run(["openssl", *arguments], cwd=self.home, check=True, capture_output=True)
        openssl("req", "-x509", *KEY, "-days", "2", "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=ca")
        openssl("req", "-new", *KEY, "-keyout", "all.key", "-out", "all.csr", "-subj", "/CN=server")
        names = ",".join(f"IP:{m.address}" for m in self.machines)
        (self.home / "ext").write_text(f"subjectAltName={names},IP:127.0.0.1\n")
        openssl("x509", "-req", "-in", "all.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2",
                "-extfile", "ext", "-out", "all.pem")

    def tls(self):
        return {"certificate": str(self.home / "all.pem"), "key": str(self.home / "all.key"),
                "ca": str(self.home / "ca.pem")}

    def credentials(self):
        return grpc.ssl_channel_credentials((self.home / "ca.pem").read_bytes(), (self.home / "all.key").read_bytes(),
                                            (self.home / "all.pem").read_bytes())

    def start_etcd(self):
        tls = self.tls()
        initial = ",".join(f"e{m.number}=https://{m.address}:2380" for m in self.machines)
        for m in self.machines:
            m.etcd = m.program(f"etcd-{m.number}", ETCD, "--name", f"e{m.number}", "--data-dir",
                               str(self.home / f"etcd-{m.number}-data"), "--heartbeat-interval", "50",
                               "--election-timeout", "500", "--pre-vote", "--snapshot-count", "500",
                               "--listen-client-urls", f"https://{m.address}:2379",
                               "--advertise-client-urls", f"https://{m.address}:2379",
                               "--listen-peer-urls", f"https://{m.address}:2380",
                               "--initial-advertise-peer-urls", f"https://{m.address}:2380",
                               "--initial-cluster", initial, "--log-level", "error",
                               "--cert-file", tls["certificate"], "--key-file", tls["key"], "--trusted-ca-file",
                               tls["ca"], "--client-cert-auth", "--peer-cert-file", tls["certificate"],
                               "--peer-key-file", tls["key"], "--peer-trusted-ca-file", tls["ca"],
                               "--peer-client-cert-auth").start()
        wait_until(lambda: len(self.etcd_leaders()) == 1, 30, "etcd has a leader")

    def etcdctl(self, *arguments):
        tls = self.tls()
        return subprocess.run(["etcdctl", "--endpoints", ",".join(f"https://{m.address}:2379" for m in self.machines),
                               "--cacert", tls["ca"], "--cert", tls["certificate"], "--key", tls["key"],
                               "--command-timeout", "3s", "--dial-timeout", "1s", *arguments],
                              env={"ETCDCTL_API": "3"}, capture_output=True, text=True)

    def etcd_leaders(self):
        status = json.loads(self.etcdctl("endpoint", "status", "-w", "json").stdout or "[]")
        return [s["Endpoint"] for s in status if s["Status"]["header"]["member_id"] == s["Status"]["leader"]]

    def move_etcd_leader(self, machine):
        """etcd's leader to the machine."""
        status = json.loads(self.etcdctl("endpoint", "status", "-w", "json").stdout)
        target = next(s for s in status if machine.address in s["Endpoint"])["Status"]["header"]["member_id"]
        tls = self.tls()
        for endpoint in self.etcd_leaders():
            subprocess.run(["etcdctl", "--endpoints", endpoint, "--cacert", tls["ca"], "--cert", tls["certificate"],
                            "--key", tls["key"], "move-leader", f"{target:x}"], env={"ETCDCTL_API": "3"},
                           capture_output=True, text=True)
        wait_until(lambda: any(machine.address in e for e in self.etcd_leaders()), 10, "etcd's leader moves")

    def start_servers(self):
        for m in self.machines[:2]:
            config = {"listen": f"{m.address}:7070", "httpListen": "off", "dataDirectory": str(self.home / f"d{m.number}"),
                      "tls": self.tls(), "ha": {"etcd": [f"{each.address}:2379" for each in self.machines],
                                                "tls": self.tls(), "name": f"s{m.number}"}}
            path = write_yaml(self.home / f"s{m.number}.yaml", config)
            if m is self.machines[0]:
                sh("ip", "netns", "exec", m.name, BIN / "berthd", "--config", path, "--ha-init")
            loop = f'while true; do "{BIN}/berthd" --config "{path}"; sleep 0.1; done'
            m.server = m.program(f"s{m.number}", "sh", "-c", loop).start()
            wait_until(lambda m=m: "berthd is ready" in m.server.output(), 20, "the server is ready")


class SecureClient(HaClient):
    def __init__(self, net):
        self.net = net
        self.apis = {f"{m.address}:7070": Api(f"{m.address}:7070", credentials=net.credentials())
                     for m in net.machines[:2]}
        self.order = list(self.apis)


def machine_of_leader(net, client):
    return next(m for m in net.machines if client.order[0].startswith(m.address + ":"))


def measure(net, client, name, one_way, etcd_leader_on_it, bound_s):
    client.submit(f"before-{name}")  # the first of client.order leads now
    leader = machine_of_leader(net, client)
    other = next(m for m in net.machines if m is not leader)
    net.move_etcd_leader(leader if etcd_leader_on_it else other)
    client.submit(f"moved-{name}")
    assert machine_of_leader(net, client) is leader
    starts = leader.server.output().count("berthd is ready")
    begin = time.monotonic()
    leader.cut(one_way)
    client.call("jobs", "SubmitJobs", client.submission(f"after-{name}"), 30, patience_s=0.3)
    elapsed = time.monotonic() - begin
    assert machine_of_leader(net, client) is not leader
    leader.heal(one_way)
    print(f"{name}: {elapsed:.2f} s to the first accepted submit (goal {bound_s} s)", flush=True)
    wait_until(lambda: leader.server.output().count("berthd is ready") > starts, 30,
               "the old leader starts as a standby")


def main():
    skip_without_etcd()
    if os.getuid() != 0 or sh("ip", "netns", "list", check=False).returncode != 0:
        print("skipped: network namespaces need root")
        sys.exit(0)
    with Net() as net:
        net.start_etcd()
        net.start_servers()
        client = SecureClient(net)
        client.submit("first")
        rounds = [("cut off", False, False, 2), ("cut off, with etcd's leader", False, True, 3),
                  ("sends nothing", True, False, 2), ("sends nothing, with etcd's leader", True, True, 3)]
        names = {"first"}
        for name, one_way, etcd_leader, bound in rounds * 2:
            label = name.replace(" ", "-").replace(",", "").replace("'", "") + f"-{len(names)}"
            measure(net, client, label, one_way, etcd_leader, bound)
            names |= {f"before-{label}", f"moved-{label}", f"after-{label}"}
            time.sleep(2.5)
        assert names == client.job_names(), names ^ client.job_names()
        for m in net.machines[:2]:
            assert "cannot lead" not in m.server.output(), m.server.output()
    print("passed")


if __name__ == "__main__":
    main()
