"""Starts real berthd and berth-agent processes on free ports in a temporary directory, and cleans up after itself.

    with Cluster() as cluster:
        cluster.server.start()
        agent = cluster.add_agent("n1", cpu="8")
        cluster.berth("job", "list")                       # the CLI; raises if it fails
        cluster.api.jobs.GetJob(...)                       # gRPC

Tasks of a root agent run as `nobody`, so the directory is accessible to all users. Every process started here,
including tasks and supervisors, has the directory's name in its arguments, environment or working directory: stop()
finds it by that.
"""
import fcntl
import glob
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

SOURCE = pathlib.Path(os.environ.get("BERTH_SOURCE", pathlib.Path(__file__).resolve().parents[2]))
BIN = pathlib.Path(os.environ.get("BERTH_BIN", SOURCE / "build" / "release" / "bin"))
SANITIZED = BIN.parent.name in ("dev", "tsan")
START_TIMEOUT_S = 60 if SANITIZED else 20


PORTS = range(10000, 32000)  # below those that the kernel gives to outgoing connections


def take_ports(count):
    """The first of `count` consecutive ports, which no other test gets before all of PORTS were given out once."""
    with open(pathlib.Path(tempfile.gettempdir()) / f"berth-test-ports-{os.getuid()}", "a+", encoding="ascii") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        first = int(file.read() or PORTS.start)
        if first + count > PORTS.stop:
            first = PORTS.start
        file.truncate(0)
        file.write(str(first + count))
    return first


def free_port():
    while True:
        port = take_ports(1)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                pass  # another program's


def wait_until(condition, timeout_s, what, interval_s=0.05):
    """Polls until `condition()` is true and returns its value; an exception in it counts as false."""
    deadline = time.monotonic() + timeout_s
    last = None
    while True:
        try:
            value = condition()
            if value:
                return value
            last = value
        except Exception as error:  # not reachable or not present yet
            last = error
        if time.monotonic() > deadline:
            raise AssertionError(f"timed out after {timeout_s} s waiting for: {what} (last: {last!r})")
        time.sleep(interval_s)


def write_yaml(path, values):
    """JSON is YAML."""
    path.write_text(json.dumps(values, indent=1) + "\n")
    return path



class Program:
    """A child process that writes its output to a file."""

    def __init__(self, name, arguments, log):
        self.name, self.arguments, self.log, self.process, self.starts = name, arguments, log, None, 0
        self.environment = {}  # besides ours

    def start(self):
        assert not self.running(), f"{self.name} is already running"
        with open(self.log, "ab") as output:
            self.process = subprocess.Popen(self.arguments, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                                            env={**os.environ, **self.environment}, start_new_session=True)
        self.starts += 1
        return self

    def running(self):
        return self.process is not None and self.process.poll() is None

    def signal(self, number):
        os.kill(self.process.pid, number)

    def kill(self):
        """kill -9 of this process only."""
        self.signal(signal.SIGKILL)
        self.process.wait()

    def stop(self, timeout_s=20):
        if self.running():
            self.signal(signal.SIGTERM)
            try:
                self.process.wait(timeout_s)
            except subprocess.TimeoutExpired:
                self.kill()
                raise AssertionError(f"{self.name} did not end within {timeout_s} s of SIGTERM")
        return self.process.returncode if self.process else None

    def output(self):
        return pathlib.Path(self.log).read_text(errors="replace") if os.path.exists(self.log) else ""


class Server(Program):
    """berthd; keeps its ports across restarts."""

    def __init__(self, home, config=None, data=None):
        self.port, self.http_port = free_port(), free_port()
        self.address, self.http = f"127.0.0.1:{self.port}", f"127.0.0.1:{self.http_port}"
        self.data = pathlib.Path(data or home / "data")
        self.config = write_yaml(home / "berthd.yaml", config or {})
        super().__init__("berthd", [str(BIN / "berthd"), "--config", str(self.config), "--listen", self.address,
                                    "--http", self.http, "--data", str(self.data)], home / "berthd.log")

    def get(self, path):
        """(status, body) of an HTTP GET."""
        try:
            with urllib.request.urlopen(f"http://{self.http}{path}", timeout=5) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def start(self, wait=True):
        super().start()
        if wait:
            self.wait_ready()
        return self

    def wait_ready(self):
        def ready():
            assert self.running(), f"berthd ended: {self.output()[-2000:]}"
            return self.get("/readyz")[0] == 200
        deadline = time.monotonic() + START_TIMEOUT_S
        while True:
            try:
                if ready():
                    return
            except OSError:
                pass
            assert time.monotonic() < deadline, f"berthd is not ready: {self.output()[-2000:]}"
            time.sleep(0.02)

    def metric(self, name):
        """The sum over all series of one metric, or None."""
        values = [float(line.rsplit(" ", 1)[1]) for line in self.get("/metrics")[1].split("\n")
                  if line.startswith((name + " ", name + "{"))]
        return sum(values) if values else None


class Cluster:
    def __init__(self, config=None, data=None):
        self.home = pathlib.Path(tempfile.mkdtemp(prefix="berth-test-"))
        self.home.chmod(0o755)
        self.server = Server(self.home, config, data)
        self.agents = {}
        self._api, self._api_of_start = None, 0

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if kind is not None:
            self.show_logs()
        self.stop()
        shutil.rmtree(self.home, ignore_errors=True)

    def belongs_to(self, test):
        """Cleans up after the test, and prints the logs of the programs if it failed."""
        def finish():
            result = test._outcome.result
            failed = any(case is test for case, _ in [*result.failures, *result.errors])
            self.__exit__(AssertionError if failed else None, None, None)
        test.addCleanup(finish)
        return self

    @property
    def api(self):
        """A connection to the running server: a new one after each start."""
        if self._api is None or self._api_of_start != self.server.starts:
            from berth_api import Api
            self._api, self._api_of_start = Api(self.server.address), self.server.starts
        return self._api

    def shared_file(self, name):
        """A file that tasks of any user may append to."""
        path = self.home / name
        path.touch()
        path.chmod(0o666)
        return path

    def add_agent(self, name, server=None, start=True, **config):
        """A real agent. `config` contains keys of its configuration file."""
        home = self.home / name
        home.mkdir(exist_ok=True)
        settings = {"server": server or self.server.address, "nodeName": name, "stateDirectory": str(home / "state"),
                    "address": "127.0.0.1", "cpu": "8", "memory": "8Gi", **config}
        settings.setdefault("cgroups", {}).setdefault("parent", f"{self.home.name}/{name}")  # unique among tests
        if os.getuid() == 0:
            settings.setdefault("taskUser", "nobody")
        if "firstPort" not in settings:  # agents of one machine must not share rendezvous ports
            settings["firstPort"] = take_ports(200)
            settings["lastPort"] = settings["firstPort"] + 199
        path = write_yaml(home / "agent.yaml", settings)
        agent = Program(f"agent {name}", [str(BIN / "berth-agent"), "--config", str(path)], home / "agent.log")
        agent.state = home / "state"
        self.agents[name] = agent
        return agent.start() if start else agent

    def add_simulation(self, nodes, name="simulation", start=True, **config):
        """`nodes`: the `nodes` list of the simulation file."""
        path = write_yaml(self.home / f"{name}.yaml", {"server": self.server.address, "nodes": nodes, **config})
        agent = Program(name, [str(BIN / "berth-agent"), "--simulate", str(path)], self.home / f"{name}.log")
        self.agents[name] = agent
        return agent.start() if start else agent

    def run_berth(self, *arguments, stdin=None, timeout_s=60):
        return subprocess.run([str(BIN / "berth"), "--server", self.server.address, *arguments], input=stdin,
                              capture_output=True, text=True, timeout=timeout_s)

    def berth(self, *arguments, stdin=None, timeout_s=60):
        result = self.run_berth(*arguments, stdin=stdin, timeout_s=timeout_s)
        assert result.returncode == 0, f"berth {' '.join(arguments)}: {result.returncode}\n{result.stdout}{result.stderr}"
        return result.stdout

    def berth_json(self, *arguments):
        return json.loads(self.berth(*arguments, "-o", "json"))

    def manifest(self, text, name="manifest.yaml"):
        path = self.home / name
        path.write_text(text)
        return str(path)

    def wait_nodes(self, count, timeout_s=60):
        wait_until(lambda: self.api.cluster.GetClusterInfo(cluster_info_request(), timeout=5).nodes.get("READY") == count
                   or ready_nodes(self.api) >= count, timeout_s, f"{count} ready nodes")

    def wait_job(self, name, *states, timeout_s=60):
        from berth_api import job_pb2, job_state

        def reached():
            job = self.api.jobs.GetJob(job_pb2.GetJobRequest(name=name), timeout=5)
            if job_state(job) in states:
                return job
            raise LookupError(f"{name} is {job_state(job)} {job.status.message} {list(job.status.reasons)}")
        return wait_until(reached, timeout_s, f"{name} in {states}")

    def create_queue(self, name, **spec):
        from berth_api import queue_pb2
        self.api.queues.CreateQueue(queue_pb2.CreateQueueRequest(
            queue=queue_pb2.Queue(name=name, spec=queue_pb2.QueueSpec(**spec))), timeout=10)

    def show_logs(self):
        for program in [self.server, *self.agents.values()]:
            print(f"--- end of the log of {program.name}\n{program.output()[-3000:]}", flush=True)

    def processes(self, directory=None):
        """Pids of all processes that name the directory; default: that of the cluster."""
        found, mark = [], str(directory or self.home).encode()
        for entry in os.listdir("/proc"):
            if not entry.isdigit() or int(entry) == os.getpid():
                continue
            try:
                parts = pathlib.Path(f"/proc/{entry}/cmdline").read_bytes(), \
                    pathlib.Path(f"/proc/{entry}/environ").read_bytes(), os.readlink(f"/proc/{entry}/cwd").encode()
            except OSError:
                continue
            if any(mark in part for part in parts):
                found.append(int(entry))
        return found

    def task_pids(self, job):
        """Pids, outside the pid namespace, of the first process of each running task of the job."""
        found = []
        for pid in self.processes():
            try:
                environment = pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
                parent = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1]
                above = pathlib.Path(f"/proc/{parent}/cmdline").read_bytes()
            except OSError:
                continue
            if b"BERTH_JOB=" + job.encode() in environment and b"berth-supervisor" in above and alive(pid):
                found.append(pid)
        return sorted(found)

    def kill_node(self, name):
        """The agent, its supervisors and all tasks at once, as if the machine had died."""
        self.agents[name].kill()
        for _ in range(3):  # a supervisor may start one more process before it dies
            for pid in self.processes(self.home / name):
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass

    def pid_of(self, name):
        """The pid, outside any pid namespace, of the process with that argv[0]; None if there is none."""
        for entry in pathlib.Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and (entry / "cmdline").read_bytes().split(b"\0")[0] == name.encode():
                    return int(entry.name)
            except OSError:
                pass
        return None

    def stop(self):
        if self._api is not None:
            self._api.close()
        for program in [*self.agents.values(), self.server]:
            if program.running():
                program.kill()
        for _ in range(20):  # supervisors and tasks; killing one may let another appear briefly
            pids = self.processes()
            if not pids:
                self.remove_groups()
                self.remove_mounts()
                return
            self.thaw_groups()
            for pid in pids:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            time.sleep(0.05)


    def thaw_groups(self):
        """Frozen tasks do not die before."""
        for name, text in (("freezer.state", "THAWED"), ("cgroup.freeze", "0")):
            for pattern in (f"*/{self.home.name}/*/*/{name}", f"{self.home.name}/*/*/{name}"):
                for file in glob.glob(f"/sys/fs/cgroup/{pattern}"):  # bears that a group goes away
                    try:
                        pathlib.Path(file).write_text(text)
                    except OSError:
                        pass

    def remove_mounts(self):
        """Removes the shared memory of tasks whose supervisors were killed."""
        for line in pathlib.Path("/proc/self/mounts").read_text().splitlines():
            kind, place = line.split()[:2]
            if kind in ("berth-shm", "nsfs") and f"/{self.home.name}/" in place:
                subprocess.run(["umount", "-l", place], check=False)

    def remove_groups(self):
        """Removes control groups that killed agents left: of tasks, of nodes, and their parent."""
        home = self.home.name
        for below in ("/*/*", "/*", ""):
            for pattern in (f"*/{home}{below}", f"{home}{below}"):
                for group in pathlib.Path("/sys/fs/cgroup").glob(pattern):
                    try:
                        group.rmdir()
                    except OSError:
                        pass  # a file, or another hierarchy of the same directory was first


def cluster_info_request():
    from berth_api import cluster_pb2
    return cluster_pb2.GetClusterInfoRequest()


def ready_nodes(api):
    from berth_api import node_pb2
    count, token = 0, ""
    while True:
        page = api.nodes.ListNodes(node_pb2.ListNodesRequest(
            page_size=1000, page_token=token, filter=node_pb2.NodeFilter(states=[node_pb2.NODE_READY])), timeout=10)
        count += len(page.nodes)
        token = page.next_page_token
        if not token:
            return count


def alive(pid):
    """A zombie does not count."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


