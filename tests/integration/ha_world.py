"""A cluster with high availability on one machine: members of a real etcd, servers that are started again when they end
with status 75, and a client that goes to whichever server leads.

    with HaWorld(servers=2, etcds=3) as world:
        world.client.submit("job-1")
        world.leader().kill()
"""
import pathlib
import shutil
import signal
import subprocess
import sys
import threading
import time

import grpc

from berth_api import Api, cluster_pb2, job_pb2, types_pb2  # noqa: F401
from relay import Relay
from berth_harness import BIN, Cluster, Program, Server, free_port, wait_until, write_yaml

RESTART_STATUS = 75
ETCD = shutil.which("etcd")


def skip_without_etcd():
    if ETCD is None:
        print("skipped: no etcd (Debian's etcd-server)")
        sys.exit(0)


class Etcd(Program):
    """One member. `peers`: name -> peer address of all members."""

    def __init__(self, home, name, client_port, peers, quota=2 << 30):
        self.member, self.address = name, f"127.0.0.1:{client_port}"
        self.data = home / f"etcd-{name}"
        client, peer = f"http://{self.address}", f"http://{peers[name]}"
        super().__init__(f"etcd {name}", [
            ETCD, "--name", name, "--data-dir", str(self.data), "--heartbeat-interval", "50", "--election-timeout",
            "500", "--pre-vote", "--snapshot-count", "500", "--quota-backend-bytes", str(quota),
            "--listen-client-urls", client, "--advertise-client-urls", client, "--listen-peer-urls", peer,
            "--initial-advertise-peer-urls", peer, "--initial-cluster",
            ",".join(f"{n}=http://{p}" for n, p in peers.items()), "--log-level", "warn"], home / f"etcd-{name}.log")
        self.environment = {"GOGC": "50"}


class HaServer(Server):
    """berthd that is started again when it asks for it, or when it was killed here with `restart`."""

    def __init__(self, home, name, etcds, config):
        folder = home / name
        folder.mkdir()
        super().__init__(folder, {**config, "ha": {"etcd": etcds, "name": name, **config.get("ha", {})}})
        self.member, self.wanted, self.restarts, self.lock = name, False, 0, threading.Lock()

    def init(self):
        subprocess.run([*self.arguments, "--ha-init"], check=True, capture_output=True, text=True)

    def start(self):
        super().start()
        self.wanted = True  # only now: `tend` would start it, too
        return self

    def stop(self, timeout_s=20):
        with self.lock:
            self.wanted = False
        return super().stop(timeout_s)

    def kill(self):
        process = self.process  # `tend` may start another one at once
        process.kill()
        process.wait()

    def halt(self):
        """Kills it, for good."""
        with self.lock:
            self.wanted = False
            if self.running():
                self.kill()

    def tend(self):
        with self.lock:
            self.tend_locked()

    def tend_locked(self):
        if self.wanted and self.process is not None and self.process.poll() is not None:
            self.restarts += 1
            self.process = None
            Program.start(self)  # without waiting until it is ready


class HaClient:
    """Calls whichever server leads; repeats with the same request id until there is an answer."""

    def __init__(self, servers):
        self.apis = {server.address: Api(server.address) for server in servers}
        self.order = list(self.apis)

    def call(self, service, method, request, timeout_s=30, patience_s=1.0, once=None):
        """`once`: the id of a request that has no field for it."""
        metadata = [("berth-request-id", once)] if once else []
        deadline = time.monotonic() + timeout_s
        while True:
            address = self.order[0]
            try:
                stub = getattr(getattr(self.apis[address], service), method)
                return stub(request, timeout=min(patience_s, max(0.1, deadline - time.monotonic())), wait_for_ready=False,
                            metadata=metadata)
            except grpc.RpcError as error:
                if error.code() not in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED,
                                        grpc.StatusCode.CANCELLED, grpc.StatusCode.RESOURCE_EXHAUSTED):
                    raise
                if time.monotonic() > deadline:
                    raise
                leader = dict(error.trailing_metadata() or ()).get("berth-leader")
                if leader in self.apis and leader != address:
                    self.order.remove(leader)
                    self.order.insert(0, leader)
                else:
                    self.order.append(self.order.pop(0))
                    time.sleep(0.01)

    def submit(self, *names, timeout_s=30):
        return self.call("jobs", "SubmitJobs", self.submission(*names), timeout_s)

    @staticmethod
    def submission(*names):
        request = job_pb2.SubmitJobsRequest(request_id="submit-" + names[0])
        for name in names:
            job = request.jobs.add(name=name)
            job.spec.queue = "default"
            group = job.spec.groups.add(name="main", replicas=1, command=["true"])
            group.resources.cpu_millis = 1000
        return request

    def job_names(self):
        names, token = set(), ""
        while True:
            page = self.call("jobs", "ListJobs", job_pb2.ListJobsRequest(page_size=1000, page_token=token))
            names.update(job.name for job in page.jobs)
            token = page.next_page_token
            if not token:
                return names


class HaWorld:
    """`relays`: servers reach etcd through relays, by (server, member of etcd)."""

    def __init__(self, servers=2, etcds=3, config=None, relays=False, quota=2 << 30):
        self.cluster = Cluster()  # for its directory, and for agents
        self.home = pathlib.Path(self.cluster.home)
        names = [f"e{i + 1}" for i in range(etcds)]
        peers = {name: f"127.0.0.1:{free_port()}" for name in names}
        self.etcds = [Etcd(self.home, name, free_port(), peers, quota) for name in names]
        addresses = [etcd.address for etcd in self.etcds]
        self.relays = {}
        self.servers = []
        for i in range(servers):
            name = chr(ord("a") + i)
            if relays:
                mine = {etcd.member: Relay(int(etcd.address.rsplit(":", 1)[1])) for etcd in self.etcds}
                self.relays.update({(name, member): relay for member, relay in mine.items()})
                addresses = [relay.address for relay in mine.values()]
            self.servers.append(HaServer(self.home, name, addresses, config or {}))
        self.client = HaClient(self.servers)
        self.ending = threading.Event()
        self.tender = threading.Thread(target=self.tend, daemon=True)

    def __enter__(self):
        for etcd in self.etcds:
            etcd.start()
        wait_until(lambda: self.etcdctl("endpoint", "health"), 20, "etcd is healthy")
        self.servers[0].init()
        for server in self.servers:
            server.start()
            wait_until(lambda s=server: s.get("/readyz")[0] == 200, 20, f"server {server.member} is ready")
        wait_until(self.leader, 10, "a server leads")
        self.tender.start()
        return self

    def __exit__(self, kind, error, trace):
        if kind is not None:
            for server in self.servers:
                print(f"---- {server.member}\n{server.output()[-6000:]}")
        self.ending.set()
        for server in self.servers:
            server.wanted = False
        for program in [*self.servers, *self.etcds]:
            if program.running():
                program.signal(signal.SIGCONT)
                program.signal(signal.SIGKILL)
                program.process.wait()
        self.cluster.__exit__(None, None, None)

    def tend(self):
        while not self.ending.wait(0.02):
            for server in self.servers:
                server.tend()

    def etcdctl(self, *arguments):
        result = subprocess.run(["etcdctl", "--endpoints", ",".join(e.address for e in self.etcds), *arguments],
                                env={"ETCDCTL_API": "3"}, capture_output=True, text=True, timeout=20)
        return result.returncode == 0 and result.stdout + result.stderr

    @staticmethod
    def state(server):
        """What /readyz says; "" if there is no answer."""
        try:
            return server.get("/readyz")[1] if server.running() else ""
        except OSError:
            return ""

    def leader(self):
        """The server that leads, or None."""
        return next((s for s in self.servers if self.state(s) == "ready\n"), None)

    def standbys(self):
        return [s for s in self.servers if self.state(s).startswith("ready: standby")]

    def await_standby(self, timeout_s=20):
        wait_until(self.standbys, timeout_s, "a standby is ready")
