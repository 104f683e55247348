"""berth.v1 for Python tests: message modules that protoc generates on first use, and stubs from their descriptors.

    api = Api("127.0.0.1:7070")
    api.jobs.SubmitJobs(job_pb2.SubmitJobsRequest(...), timeout=5)
"""
import fcntl
import functools
import importlib
import os
import pathlib
import subprocess
import sys

SOURCE = pathlib.Path(os.environ.get("BERTH_SOURCE", pathlib.Path(__file__).resolve().parents[2]))
BUILD = pathlib.Path(os.environ.get("BERTH_BUILD", SOURCE / "build" / "release"))

import grpc  # noqa: E402  (Debian: python3-grpcio)


def _generate():
    """Once for all tests, several of which may begin together."""
    out = BUILD / "python"
    protos = sorted((SOURCE / "proto" / "berth").glob("v1/*.proto"))
    stamp = out / ".stamp"
    out.mkdir(parents=True, exist_ok=True)
    with open(out / ".lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not stamp.exists() or stamp.stat().st_mtime < max(p.stat().st_mtime for p in protos):
            names = [str(p.relative_to(SOURCE / "proto")) for p in protos]
            subprocess.run(["protoc", "-I", str(SOURCE / "proto"), f"--python_out={out}", *names], check=True)
            stamp.touch()
    sys.path.insert(0, str(out))


_generate()
agent_pb2 = importlib.import_module("berth.v1.agent_pb2")
cluster_pb2 = importlib.import_module("berth.v1.cluster_pb2")
history_pb2 = importlib.import_module("berth.v1.history_pb2")
hypernode_pb2 = importlib.import_module("berth.v1.hypernode_pb2")
job_pb2 = importlib.import_module("berth.v1.job_pb2")
job_status_pb2 = importlib.import_module("berth.v1.job_status_pb2")
node_pb2 = importlib.import_module("berth.v1.node_pb2")
queue_pb2 = importlib.import_module("berth.v1.queue_pb2")
types_pb2 = importlib.import_module("berth.v1.types_pb2")
watch_pb2 = importlib.import_module("berth.v1.watch_pb2")


class Stub:
    """One service: a callable per method, named as in the proto. Calls wait until the server is reachable."""

    def __init__(self, channel, module, service):
        descriptor = module.DESCRIPTOR.services_by_name[service]
        for method in descriptor.methods:
            shape = ("stream" if method.client_streaming else "unary") + "_" + \
                    ("stream" if method.server_streaming else "unary")
            call = getattr(channel, shape)(
                f"/{descriptor.full_name}/{method.name}",
                request_serializer=lambda message: message.SerializeToString(),
                response_deserializer=method.output_type._concrete_class.FromString)
            setattr(self, method.name, functools.partial(call, wait_for_ready=True))


class Api:
    """`credentials`: for TLS."""

    def __init__(self, address, options=(), credentials=None):
        options = [("grpc.initial_reconnect_backoff_ms", 50), ("grpc.max_reconnect_backoff_ms", 200),
                   ("grpc.min_reconnect_backoff_ms", 50), ("grpc.use_local_subchannel_pool", 1), *options]
        self.channel = (grpc.insecure_channel(address, options) if credentials is None else
                        grpc.secure_channel(address, credentials, options))
        self.jobs = Stub(self.channel, job_pb2, "JobService")
        self.queues = Stub(self.channel, queue_pb2, "QueueService")
        self.nodes = Stub(self.channel, node_pb2, "NodeService")
        self.cluster = Stub(self.channel, cluster_pb2, "ClusterService")
        self.watch = Stub(self.channel, watch_pb2, "WatchService")
        self.agents = Stub(self.channel, agent_pb2, "AgentService")
        self.hyper_nodes = Stub(self.channel, hypernode_pb2, "HyperNodeService")
        self.history = Stub(self.channel, history_pb2, "HistoryService")

    def close(self):
        self.channel.close()

    def all_jobs(self, **filters):
        """All jobs, fetched page by page."""
        jobs, token = [], ""
        while True:
            page = self.jobs.ListJobs(job_pb2.ListJobsRequest(
                page_size=1000, page_token=token, filter=job_pb2.JobFilter(**filters)), timeout=30)
            jobs += page.jobs
            token = page.next_page_token
            if not token:
                return jobs

    def tasks(self, job):
        return list(self.jobs.ListTasks(job_pb2.ListTasksRequest(job=job, page_size=1000), timeout=10).tasks)


def make_job(name, queue, command, replicas=1, cpu_millis=100, env=None, **spec):
    """A job with one group "w". `spec` contains further fields of JobSpec."""
    group = job_pb2.TaskGroup(name="w", replicas=replicas, command=command,
                              resources=types_pb2.ResourceRequest(cpu_millis=cpu_millis),
                              env=[job_pb2.EnvVar(name=k, value=v) for k, v in (env or {}).items()])
    return job_pb2.Job(name=name, spec=job_pb2.JobSpec(queue=queue, groups=[group], **spec))


def job_state(job):
    return job_pb2.JobState.Name(job.status.state).removeprefix("JOB_")


def task_state(task):
    return job_pb2.TaskState.Name(task.state).removeprefix("TASK_")
