#!/usr/bin/env python3
"""NOTIFY_SOCKET: what real tasks of a real agent report reaches the server: from systemd-notify, from three lines of
Python, in an image, during a flood of another task, and across a kill of the agent. There, the server is one of the
test's own, which records what the agent sends. With berthd, users see steps and checkpoints, and a task that hangs is
restarted. The part in an image needs root and crun.
"""
import concurrent.futures
import os
import pathlib
import queue
import shutil
import threading
import time
import unittest

import grpc

from berth_api import agent_pb2, job_pb2, make_job
from berth_harness import Cluster, free_port, wait_until

WITHIN_S = 60
PYTHON = "/usr/bin/python3"
# What the documentation tells users to write.
NOTIFY = """
import os, socket, sys, time
notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
notify.connect(os.environ["NOTIFY_SOCKET"])
"""
SHARED = 3  # berth.v1.Checkpoint.Where
HYBRID = pathlib.Path("/sys/fs/cgroup/unified/cgroup.procs")


class RecordingServer:
    """Welcomes the agent, acknowledges everything, and keeps all messages, each with the time at which it came."""

    def __init__(self, takes_progress=True):
        self.takes_progress, self.epoch, self.messages, self.out = takes_progress, 0, [], None
        self.server = grpc.server(concurrent.futures.ThreadPoolExecutor(8))
        connect = grpc.stream_stream_rpc_method_handler(
            self.connect, request_deserializer=agent_pb2.AgentMessage.FromString,
            response_serializer=agent_pb2.ServerMessage.SerializeToString)
        self.server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler("berth.v1.AgentService", {"Connect": connect}),))
        self.address = f"127.0.0.1:{free_port()}"
        self.server.add_insecure_port(self.address)
        self.server.start()

    def stop(self):
        self.server.stop(0)

    def connect(self, requests, _):
        out = queue.Queue()

        def read():
            try:
                for message in requests:
                    self.messages.append((time.monotonic(), message))
                    for answer in self.answers(message, out):
                        out.put(answer)
            except grpc.RpcError:
                pass  # the agent was killed
            out.put(None)
        threading.Thread(target=read, daemon=True).start()
        while (answer := out.get()) is not None:
            yield answer

    def answers(self, message, out):
        answer = agent_pb2.ServerMessage()
        if message.HasField("hello"):
            self.out, self.epoch = out, self.epoch + 1
            answer.welcome.epoch = self.epoch
            answer.welcome.lease.seconds = 15
            answer.welcome.heartbeat_interval.nanos = 300_000_000
            answer.welcome.takes_progress = self.takes_progress
        elif message.HasField("heartbeat"):
            answer.heartbeat_ack.sequence = message.heartbeat.sequence
        elif message.HasField("report"):
            answer.report_ack.report_id = message.report.report_id
        return [answer] if answer.WhichOneof("message") else []

    def run(self, uid, command, image="", timeout_s=0):
        message = agent_pb2.ServerMessage()
        message.prepare.key.job_uid, message.prepare.key.attempt = uid, 1
        message.prepare.start_at_once = True
        launch = message.prepare.launch
        launch.job, launch.image, launch.fence = f"job-{uid}", image, True
        launch.command.extend(command)
        if timeout_s:
            launch.watchdog.timeout.seconds = launch.watchdog.start.seconds = timeout_s
        self.out.put(message)

    def states(self, uid):
        """All states of the job's task that came, in order."""
        return [state for _, message in self.messages for state in message.progress.tasks if state.key.job_uid == uid]

    def last(self, uid):
        states = self.states(uid)
        return states[-1] if states else agent_pb2.TaskProgress()

    def order(self, uid):
        """The kinds of messages about the job's task, and the steps in them."""
        kinds = []
        for _, message in self.messages:
            if message.report.key.job_uid == uid:
                kinds.append(agent_pb2.TaskReport.State.Name(message.report.state))
            kinds += [state.step for state in message.progress.tasks if state.key.job_uid == uid]
        return kinds

    def ended(self, uid):
        return [message.report for _, message in self.messages
                if message.report.key.job_uid == uid and message.report.state == agent_pb2.TaskReport.EXITED]

    def longest_silence(self):
        times = [when for when, message in self.messages if message.HasField("heartbeat")]
        return max(later - earlier for earlier, later in zip(times, times[1:]))


class Notify(unittest.TestCase):
    def setUp(self):
        self.cluster = Cluster()
        self.cluster.belongs_to(self)
        self.server = RecordingServer()
        self.addCleanup(self.server.stop)

    def start_agent(self, **config):
        agent = self.cluster.add_agent("n1", server=self.server.address, **config)
        wait_until(lambda: self.server.out, WITHIN_S, "the agent registers")
        return agent

    def await_state(self, uid, condition, what):
        return wait_until(lambda: condition(self.server.last(uid)) and self.server.last(uid), WITHIN_S, what)

    def await_end(self, uid, code=0):
        wait_until(lambda: self.server.ended(uid), WITHIN_S, "the task ends")
        self.assertEqual(self.server.ended(uid)[0].exit_code, code)

    def test_python(self):
        self.start_agent()
        self.server.run(1, [PYTHON, "-c", NOTIFY + """
notify.send(b"READY=1\\nSTATUS=training")
for step in range(5):
    notify.send(f"X_BERTH_STEP={step}\\nX_BERTH_STEP_TIME_US=250000".encode())
    time.sleep(0.3)
notify.send(b"X_BERTH_CHECKPOINT=4,shared,1048576")
time.sleep(2)
notify.send(b"STOPPING=1\\nX_BERTH_STEP=5")
"""])
        state = self.await_state(1, lambda state: state.checkpoint.step == 4, "the checkpoint")
        self.assertTrue(state.ready)
        self.assertEqual((state.status, state.step, state.step_time_us, state.dropped), ("training", 4, 250_000, 0))
        self.assertEqual((state.checkpoint.where, state.checkpoint.bytes), (SHARED, 1 << 20))
        self.assertFalse(state.HasField("still"))
        self.await_end(1)
        self.assertEqual(self.server.order(1)[-2:], [5, "EXITED"], "the last state comes right before the end")
        self.assertTrue(self.server.last(1).stopping)
        self.server.run(2, ["true"])
        self.await_end(2)
        self.assertEqual(self.server.states(2), [], "nothing about a task that reported nothing")

    def test_systemd_notify(self):
        if not shutil.which("systemd-notify"):
            self.skipTest("needs systemd-notify")
        self.start_agent()
        # It waits until its descriptor was closed, and fails if that takes 5 s.
        self.server.run(1, ["sh", "-c", "systemd-notify --ready --status='warm and ready' X_BERTH_STEP=7"])
        self.await_end(1)
        state = self.server.last(1)
        self.assertEqual((state.ready, state.status, state.step), (True, "warm and ready", 7))

    def test_a_flood_of_one_task(self):
        self.start_agent()
        self.server.run(2, [PYTHON, "-c", NOTIFY + """
for step in range(1000):
    notify.send(f"X_BERTH_STEP={step}".encode())
    time.sleep(0.2)
"""])
        self.await_state(2, lambda state: state.step > 0, "the first steps of the other task")
        self.server.run(1, [PYTHON, "-c", NOTIFY + """
for i in range(10000):
    notify.send(b"X_BERTH_STEP=3\\n" + b"x" * (5000 if i % 2 else 0))
time.sleep(1000)
"""])
        before = self.server.last(2).step
        state = self.await_state(1, lambda state: state.dropped > 9000, "the count of dropped datagrams")
        self.assertLess(state.dropped, 10000)
        self.assertEqual(state.step, 3)
        self.await_state(2, lambda state: state.step > before + 5, "progress of the other task")
        self.assertEqual(self.server.last(2).dropped, 0)
        self.assertLess(self.server.longest_silence(), 10)
        self.assertEqual(self.server.epoch, 1, "the agent stayed registered")

    def test_a_watched_task_and_a_killed_agent(self):
        agent = self.start_agent()
        go = self.cluster.home / "go"
        self.server.run(1, [PYTHON, "-c", NOTIFY + f"""
assert os.environ["WATCHDOG_USEC"] == "3000000"
notify.send(b"X_BERTH_STEP=6")
while not os.path.exists({str(go)!r}):
    time.sleep(0.05)
while True:
    notify.send(b"WATCHDOG=1")
    time.sleep(0.5)
"""], timeout_s=3)
        self.await_state(1, lambda state: state.HasField("still") and not state.hung, "it is watched")
        state = self.await_state(1, lambda state: state.hung, "it hangs")
        self.assertEqual(state.step, 6)
        self.assertGreaterEqual(state.still.seconds, 3)
        agent.kill()
        self.server.messages.clear()
        agent.start()
        state = self.await_state(1, lambda state: state.HasField("still"), "the next agent continues")
        self.assertTrue(state.hung)
        self.assertEqual(state.step, 6)
        go.touch()
        self.await_state(1, lambda state: not state.hung, "it goes on")

    def test_a_server_that_does_not_take_it(self):
        self.server.takes_progress = False
        self.start_agent()
        self.server.run(1, [PYTHON, "-c", NOTIFY + "notify.send(b'READY=1'); time.sleep(2)"], timeout_s=1)
        self.await_end(1)
        self.assertEqual(self.server.states(1), [])

    def test_in_an_image(self):
        for need, there in (("root", os.getuid() == 0), ("crun", os.path.exists("/usr/bin/crun"))):
            if not there:
                self.skipTest(f"needs {need}")
        store = self.cluster.home / "store"
        rootfs = store / "host" / "rootfs"  # the programs of this machine
        for part in ("proc", "dev", "sys", "tmp", "run", "etc", "usr"):
            (rootfs / part).mkdir(parents=True)
        for link in ("bin", "lib", "lib64"):
            (rootfs / link).symlink_to(f"usr/{link}")
        state = pathlib.Path(f"/run{self.cluster.home}")  # not below /tmp; the harness searches for this name
        state.mkdir(parents=True)
        self.addCleanup(shutil.rmtree, state, ignore_errors=True)
        self.start_agent(stateDirectory=str(state),
                         images={"directory": str(store), "crun": self.crun(), "binds": ["/usr"]})
        self.server.run(1, [PYTHON, "-c", NOTIFY + """
assert os.environ["NOTIFY_SOCKET"] == "/run/berth/notify", os.environ
notify.send(b"X_BERTH_STEP=2")
time.sleep(1000)
"""], image="host")
        self.await_state(1, lambda state: state.step == 2, "the task in the image")

    def crun(self):
        """Debian's crun does not run with mounted hierarchies of both versions, unless one is hidden from it."""
        if not HYBRID.exists():
            return "/usr/bin/crun"
        path = self.cluster.home / "crun-here"
        path.write_text("#!/bin/sh\nexec unshare -m sh -c 'umount /sys/fs/cgroup/unified; exec /usr/bin/crun \"$@\"' "
                        "crun \"$@\"\n")
        path.chmod(0o755)
        return str(path)


class AtTheServer(unittest.TestCase):
    def setUp(self):
        self.cluster = Cluster({"lease": "6s", "heartbeatInterval": "1s"})
        self.cluster.belongs_to(self)
        self.cluster.server.start()
        self.cluster.add_agent("n1")
        self.cluster.wait_nodes(1)
        self.cluster.create_queue("q")

    def submit(self, job):
        self.cluster.api.jobs.SubmitJobs(job_pb2.SubmitJobsRequest(request_id=job.name, jobs=[job]), timeout=10)

    def await_page(self, job, *texts):
        def page():
            text = self.cluster.berth("job", "describe", job)
            return all(part in text for part in texts)
        wait_until(page, WITHIN_S, f"{texts} in the description of {job}")

    def test_steps_and_checkpoints(self):
        self.submit(make_job("train", "q", [PYTHON, "-c", NOTIFY + """
notify.send(b"READY=1\\nSTATUS=epoch 1")
for step in range(1, 4):
    notify.send(f"X_BERTH_STEP={step}\\nX_BERTH_STEP_TIME_US=250000".encode())
notify.send(b"X_BERTH_CHECKPOINT=2,shared")
time.sleep(1000)
"""]))
        self.await_page("train", "step 3 (w-0 is last), 250ms a step, 1 ready: epoch 1", "step 2 on shared storage")

    def test_a_task_that_hangs_is_restarted(self):
        job = make_job("stuck", "q", [PYTHON, "-c", NOTIFY + """
notify.send(b"X_BERTH_STEP=7")
time.sleep(1000 if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0" else 0)
"""], max_retries=1)
        job.spec.watchdog.timeout.seconds = 2
        job.spec.watchdog.dump_wait.seconds = 1
        self.submit(job)
        done = self.cluster.wait_job("stuck", "SUCCEEDED")
        self.assertEqual(done.status.retries, 1)
        moving = make_job("moving", "q", [PYTHON, "-c", NOTIFY + """
for step in range(30):
    notify.send(f"X_BERTH_STEP={step}".encode())
    time.sleep(0.3)
"""])
        moving.spec.watchdog.timeout.seconds = 2
        self.submit(moving)
        self.cluster.wait_job("moving", "SUCCEEDED")


if __name__ == "__main__":
    unittest.main(verbosity=2)
