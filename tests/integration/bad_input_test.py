#!/usr/bin/env python3
"""Bad input: each kind is rejected with a precise message, and leaves no trace.

Through gRPC where the client would not send it, through the command line where a person would type it, and through the
agent stream for misbehaving agents.
"""
import queue
import subprocess
import threading
import unittest

import grpc

from berth_api import Api, agent_pb2, job_pb2, make_job, node_pb2, task_state
from berth_harness import BIN, Cluster, wait_until

INVALID = grpc.StatusCode.INVALID_ARGUMENT


def job(**changes):
    return make_job("bad", "q", ["true"], **changes)


def negative_cpu():
    return [job(cpu_millis=-1)]


def overflowing_memory():
    bad = job()
    bad.spec.groups[0].resources.memory_bytes = 2**63 - 1
    return [bad]


def overflowing_total():
    bad = job(replicas=10000)
    bad.spec.groups[0].resources.memory_bytes = 2**55
    return [bad]


def gang_above_replicas():
    bad = job(replicas=4)
    bad.spec.groups[0].min_available = 5
    return [bad]


def job_gang_above_tasks():
    bad = job(replicas=4)
    bad.spec.min_available = 5
    return [bad]


def waits_for(name, other):
    waiting = make_job(name, "q", ["true"])
    waiting.spec.dependencies.add(job=other, condition=job_pb2.JobDependency.AFTER_OK)
    return waiting


def cyclic_groups():
    bad = job()
    second = bad.spec.groups.add()
    second.CopyFrom(bad.spec.groups[0])
    second.name = "v"
    bad.spec.groups[0].depends_on.add(group="v", condition=job_pb2.GroupDependency.RUNNING)
    second.depends_on.add(group="w", condition=job_pb2.GroupDependency.RUNNING)
    return [bad]


# description, jobs, code, message (a regular expression)
REFUSALS = [
    ("unknown queue", lambda: [make_job("bad", "nowhere", ["true"])], grpc.StatusCode.NOT_FOUND,
     r'jobs\[0\]\.spec\.queue: .*"nowhere"'),
    ("negative cpu", negative_cpu, INVALID, r"jobs\[0\]\.spec\.groups\[0\]\.resources\.cpu_millis: must be 0\.\.\d+, is -1"),
    ("overflowing memory", overflowing_memory, INVALID,
     r"jobs\[0\]\.spec\.groups\[0\]\.resources\.memory_bytes: must be 0\.\.\d+, is 9223372036854775807"),
    ("overflowing total", overflowing_total, INVALID, r"jobs\[0\]\.spec\.groups: .*memory"),
    ("gang larger than replicas", gang_above_replicas, INVALID,
     r"jobs\[0\]\.spec\.groups\[0\]\.min_available: must be 0\.\.4 \(replicas\), is 5"),
    ("gang larger than the job", job_gang_above_tasks, INVALID,
     r"jobs\[0\]\.spec\.min_available: a gang of 5 is larger than the job's 4 tasks"),
    ("jobs that wait for each other", lambda: [waits_for("a", "b"), waits_for("b", "a")], INVALID,
     r"jobs\[\d\]\.spec\.dependencies: dependencies between jobs form a cycle: (a -> b -> a|b -> a -> b)"),
    ("a job that waits for itself", lambda: [waits_for("a", "a")], INVALID, r"form a cycle: a -> a"),
    ("groups that wait for each other", cyclic_groups, INVALID, r"dependencies between groups form a cycle: (w -> v -> w|v -> w -> v)"),
    ("unknown dependency", lambda: [waits_for("a", "ghost")], None, r'jobs\[0\]\.spec\.dependencies\[0\]\.job: .*"ghost"'),
    ("name with capitals", lambda: [make_job("Bad_Name", "q", ["true"])], INVALID, r'jobs\[0\]\.name: .*is "Bad_Name"'),
    ("name of 64 letters", lambda: [make_job("x" * 64, "q", ["true"])], INVALID, r"jobs\[0\]\.name: "),
    ("10,001 tasks", lambda: [job(replicas=10001)], INVALID, r"jobs\[0\]\.spec\.groups\[0\]\.replicas: must be 1\.\.10000, is 10001"),
    ("no command", lambda: [make_job("bad", "q", [])], INVALID, r"jobs\[0\]\.spec\.groups\[0\]\.command: required"),
    ("duplicate name", lambda: [job(), job()], INVALID, r'jobs\[1\]\.name: "bad" is already the name of jobs\[0\]'),
    ("image outside the store", lambda: [with_image()], INVALID, r"jobs\[0\]\.spec\.groups\[0\]\.image: must be names of letters"),
    ("another user's account", lambda: [job(run_as="root")], grpc.StatusCode.PERMISSION_DENIED,
     r'jobs\[0\]\.spec\.run_as: run_as "root" is not allowed for a client without TLS'),
    ("topology without a mode", lambda: [with_topology()], INVALID, r"jobs\[0\]\.spec\.topology\.mode: required: HARD or SOFT"),
    ("user with a space", lambda: [job(user="a b")], INVALID, r"jobs\[0\]\.spec\.user: must be at most 128 letters"),
]


def with_image():
    bad = job()
    bad.spec.groups[0].image = "../pytorch:2"
    return bad


def with_topology():
    bad = job()
    bad.spec.topology.highest_tier = 2
    return bad


class BadInput(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster({"lease": "3s", "heartbeatInterval": "1s", "fenceMargin": "1s", "silentBrake": 1.0})
        cls.addClassCleanup(cls.cluster.__exit__, None, None, None)
        cls.cluster.server.start()
        cls.cluster.create_queue("q")

    @property
    def api(self):
        return self.cluster.api

    def submit(self, jobs, request_id=""):
        return self.api.jobs.SubmitJobs(job_pb2.SubmitJobsRequest(request_id=request_id, jobs=jobs), timeout=10)

    def refused(self, call):
        with self.assertRaises(grpc.RpcError) as caught:
            call()
        return caught.exception.code(), caught.exception.details()


class Submits(BadInput):
    def test_each_is_rejected_with_its_reason(self):
        for what, jobs, code, message in REFUSALS:
            with self.subTest(what):
                found, details = self.refused(lambda: self.submit(jobs()))
                if code is not None:
                    self.assertEqual(found, code, details)
                self.assertRegex(details, message)
                print(f"  {what}: {details}")
        self.assertEqual(self.api.all_jobs(), [], "a rejected submit left a job")

    def test_all_violations_are_reported_at_once(self):
        bad = make_job("Bad", "q", [], replicas=0, cpu_millis=-5)
        _, details = self.refused(lambda: self.submit([bad]))
        for path in ("jobs[0].name", "groups[0].command", "groups[0].replicas", "groups[0].resources.cpu_millis"):
            self.assertIn(path, details)

    def test_request_id_with_another_body(self):
        first = self.submit([make_job("twice", "q", ["true"], suspended=True)], "the-id")
        again = self.submit([make_job("twice", "q", ["true"], suspended=True)], "the-id")
        self.assertEqual(first, again)
        code, details = self.refused(lambda: self.submit([make_job("other", "q", ["true"])], "the-id"))
        self.assertEqual(code, grpc.StatusCode.ALREADY_EXISTS)
        self.assertRegex(details, r'"?the-id"?')
        self.cluster.api.jobs.CancelJob(job_pb2.CancelJobRequest(name="twice"), timeout=5)
        self.cluster.wait_job("twice", "CANCELLED")
        self.cluster.api.jobs.DeleteJob(job_pb2.DeleteJobRequest(name="twice"), timeout=5)

    def test_oversized_message(self):
        huge = make_job("huge", "q", ["true"], annotations={"x": "y" * (5 << 20)})
        code, details = self.refused(lambda: self.submit([huge]))
        self.assertEqual(code, grpc.StatusCode.RESOURCE_EXHAUSTED)
        self.assertRegex(details, r"(?i)larger than max")
        self.assertTrue(self.cluster.server.running())

    def test_job_above_the_size_limit(self):
        large = make_job("large", "q", ["x" * (300 << 10)])
        code, details = self.refused(lambda: self.submit([large]))
        self.assertEqual(code, INVALID)
        self.assertRegex(details, r"jobs\[0\]\.spec: at most 262144 bytes \(limits\.job_bytes\), has \d+")


class CommandLine(BadInput):
    def refuse(self, text, *messages, code=4):
        result = self.cluster.run_berth("submit", self.cluster.manifest(text, "bad.yaml"))
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        self.assertEqual(result.stdout, "")
        for message in messages:
            self.assertRegex(result.stderr, message)
        print("  " + result.stderr.strip().replace("\n", "\n  "))

    def test_malformed_yaml(self):
        self.refuse("apiVersion: berth/v1\nkind: Job\ngroups: [\n", r"bad\.yaml:\d+:\d+: ")

    def test_unknown_field_suggests_the_nearest(self):
        self.refuse("apiVersion: berth/v1\nkind: Job\nname: a\nqueue: q\ngroups:\n- name: w\n  replica: 3\n  command: [x]\n",
                    r"bad\.yaml:7:3: .*replica.*replicas")

    def test_wrong_type(self):
        self.refuse("apiVersion: berth/v1\nkind: Job\nname: a\nqueue: q\ngroups:\n- name: w\n  replicas: many\n  command: [x]\n",
                    r"bad\.yaml:7:13: .*many")

    def test_negative_and_overflowing_quantities(self):
        head = "apiVersion: berth/v1\nkind: Job\nname: a\nqueue: q\ngroups:\n- name: w\n  replicas: 1\n  command: [x]\n"
        self.refuse(head + "  resources: {cpu: -1}\n", r"bad\.yaml:9:20: .*-1")
        self.refuse(head + "  resources: {memory: 99999999Ti}\n", r"bad\.yaml:9:23: .*99999999Ti")

    def test_unknown_kind(self):
        self.refuse("apiVersion: berth/v1\nkind: Jobb\nname: a\n", r"bad\.yaml:2:7: .*Jobb.*Job")

    def test_volcano_key_that_is_not_supported(self):
        self.refuse("apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: v}\nspec:\n  queue: q\n"
                    "  plugins: {svc: [], hostfiles: []}\n  tasks: []\n",
                    r"bad\.yaml:6:22: .*hostfiles")

    def test_unknown_queue(self):
        self.refuse("apiVersion: berth/v1\nkind: Job\nname: a\nqueue: nowhere\ngroups:\n- {name: w, replicas: 1, command: [x]}\n",
                    r'queue.*"nowhere"', code=3)

    def test_missing_file_and_missing_job(self):
        result = self.cluster.run_berth("submit", "/no/such/file.yaml")
        self.assertEqual(result.returncode, 4)
        self.assertIn("/no/such/file.yaml", result.stderr)
        result = self.cluster.run_berth("job", "get", "ghost")
        self.assertEqual(result.returncode, 3)
        self.assertRegex(result.stderr, r'"?ghost"?')

    def test_unknown_command_and_flag(self):
        self.assertEqual(self.cluster.run_berth("jobb", "list").returncode, 2)
        self.assertEqual(self.cluster.run_berth("job", "list", "--no-such-flag").returncode, 2)

    def test_no_server(self):
        self.cluster.server.stop()
        try:
            result = self.cluster.run_berth("--request-timeout", "1s", "job", "list")
            self.assertEqual(result.returncode, 5, result.stderr)
            self.assertIn(self.cluster.server.address, result.stderr)
        finally:
            self.cluster.server.start()


class FakeAgent:
    """One agent stream, controlled message by message."""

    def __init__(self, address, node, agent_id, cpu_millis=1000, tasks=()):
        self.api = Api(address)
        self.outbox, self.inbox = queue.Queue(), queue.Queue()
        self.call = self.api.agents.Connect(iter(self.outbox.get, None))
        threading.Thread(target=self.read, daemon=True).start()
        hello = agent_pb2.Hello(node=node, agent_id=agent_id, boot_id="boot-1", agent_version="test", tasks=tasks, knows_incarnations=True,
                                inventory=node_pb2.NodeInventory(cpu_millis=cpu_millis, memory_bytes=1 << 30,
                                                                 address="127.0.0.1"))
        self.send(agent_pb2.AgentMessage(hello=hello))
        first = self.inbox.get(timeout=5)
        self.answer = getattr(first, first.WhichOneof("message"))
        self.epoch = self.answer.epoch if first.HasField("welcome") else 0

    def read(self):
        try:
            for message in self.call:
                self.inbox.put(message)
        except grpc.RpcError as error:
            self.inbox.put(error)

    def send(self, message):
        self.outbox.put(message)

    def expect(self, kind, timeout_s=5):
        while True:
            message = self.inbox.get(timeout=timeout_s)
            if isinstance(message, grpc.RpcError):
                raise AssertionError(f"the stream ended: {message.code()} {message.details()}")
            if message.HasField(kind):
                return getattr(message, kind)

    def close(self):
        self.outbox.put(None)
        self.call.cancel()
        self.api.close()


class BadAgents(BadInput):
    def agent(self, *arguments, **options):
        agent = FakeAgent(self.cluster.server.address, *arguments, **options)
        self.addCleanup(agent.close)
        return agent

    def node_epoch(self, name):
        return self.api.nodes.GetNode(node_pb2.GetNodeRequest(name=name), timeout=5).status.epoch

    def test_second_agent_with_the_same_name(self):
        first = self.agent("twin", "id-1")
        second = self.agent("twin", "id-2")
        self.assertIsInstance(second.answer, agent_pb2.Refused)
        self.assertEqual(second.answer.code, agent_pb2.Refused.NAME_IN_USE)
        self.assertRegex(second.answer.message, "twin")
        first.send(agent_pb2.AgentMessage(epoch=first.epoch, heartbeat=agent_pb2.Heartbeat(sequence=1)))
        self.assertEqual(first.expect("heartbeat_ack").sequence, 1, "the first agent is unaffected")
        print("  " + second.answer.message)

    def test_old_epoch(self):
        agent = self.agent("late", "id-1")
        newer = self.agent("late", "id-1")
        self.assertGreater(newer.epoch, agent.epoch)
        newer.send(agent_pb2.AgentMessage(epoch=agent.epoch, heartbeat=agent_pb2.Heartbeat(sequence=9)))
        refused = newer.expect("refused")
        self.assertEqual(refused.code, agent_pb2.Refused.STALE_EPOCH)
        self.assertIn(str(agent.epoch), refused.message)
        print("  " + refused.message)

    def test_report_for_a_task_it_never_had(self):
        agent = self.agent("liar", "id-1")
        victim = self.agent("honest", "id-2", cpu_millis=4000)
        submitted = self.submit([make_job("target", "q", ["true"], cpu_millis=3000)])
        prepare = victim.expect("prepare")
        self.assertEqual(prepare.key.job_uid, submitted.jobs[0].uid)
        victim.send(self.report(victim, 1, prepare.key, agent_pb2.TaskReport.PREPARED))
        victim.send(self.report(victim, 2, prepare.key, agent_pb2.TaskReport.RUNNING))
        self.cluster.wait_job("target", "RUNNING")
        agent.send(self.report(agent, 1, prepare.key, agent_pb2.TaskReport.EXITED, exit_code=1))
        self.assertEqual(agent.expect("report_ack").report_id, 1, "acknowledged, so that it is not repeated forever")
        unknown = agent_pb2.TaskKey(job_uid=999999, task=0, attempt=1, incarnation=prepare.key.incarnation)
        agent.send(self.report(agent, 2, unknown, agent_pb2.TaskReport.RUNNING))
        self.assertEqual(agent.expect("report_ack").report_id, 2)
        (task,) = self.api.tasks("target")
        self.assertEqual((task_state(task), task.node), ("RUNNING", "honest"), "another node cannot report it")
        victim.send(self.report(victim, 3, prepare.key, agent_pb2.TaskReport.EXITED, exit_code=0))
        self.cluster.wait_job("target", "SUCCEEDED")

    @staticmethod
    def report(agent, report_id, key, state, **fields):
        return agent_pb2.AgentMessage(epoch=agent.epoch, report=agent_pb2.TaskReport(
            report_id=report_id, key=key, state=state, **fields))

    def test_first_message_must_be_hello(self):
        api = Api(self.cluster.server.address)
        self.addCleanup(api.close)
        messages = iter([agent_pb2.AgentMessage(epoch=1, heartbeat=agent_pb2.Heartbeat(sequence=1))])
        try:
            answers = list(api.agents.Connect(messages, timeout=5))
            self.assertTrue(answers[-1].HasField("refused"))
        except grpc.RpcError as error:
            self.assertNotIn(error.code(), (grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.UNAVAILABLE))

    def test_bad_inventory(self):
        agent = self.agent("negative", "id-1", cpu_millis=-5)
        self.assertIsInstance(agent.answer, agent_pb2.Refused)
        self.assertEqual(agent.answer.code, agent_pb2.Refused.INVALID)
        self.assertIn("cpu_millis", agent.answer.message)

    def test_server_is_still_healthy(self):
        wait_until(lambda: self.cluster.server.get("/readyz")[0] == 200, 5, "ready")


class WrongUsage(unittest.TestCase):
    def test_wrong_usage_exits_with_2(self):
        for program, arguments in [("berth-agent", ["--bogus"]), ("berth-agent", ["--from", "x"]), ("berth-agent", ["--config"]),
                                   ("berth-sim", ["replay", "--bogus"]), ("berth-sim", ["--bogus"]), ("berth", ["--bogus"])]:
            with self.subTest(program=program, arguments=arguments):
                done = subprocess.run([str(BIN / program), *arguments], capture_output=True, text=True, timeout=60)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertTrue(done.stderr)
                self.assertEqual(done.stdout, "")
        for program in "berth-agent", "berth-sim":
            done = subprocess.run([str(BIN / program), "--help"], capture_output=True, text=True, timeout=60)
            self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_terminal_escapes_in_scenarios_are_not_printed(self):
        evil = "\\e[2J\\u202e"  # as YAML writes it
        texts = [f'name: "a{evil}"\nnodes: [{{name: n, gpus: 1}}]\n'
                 f'steps: [cycle]\npending: "b{evil}"\nexpect: {{queues: {{"q{evil}": {{}}}}}}\n',
                 f'name: "c{evil}"\njobs: [{{name: "j{evil}", queue: "q{evil}"}}]\n',
                 f'"k{evil}": 1\n']
        for text in texts:
            for arguments in ["run", "-", "--check"], ["run", "-"], ["run", "-", "-o", "table"]:
                with self.subTest(text=text, arguments=arguments):
                    done = subprocess.run([str(BIN / "berth-sim"), *arguments], input=text, capture_output=True, text=True,
                                          timeout=60)
                    printed = done.stdout + done.stderr
                    self.assertRegex(printed, r"\\(x1b|u001b)\[2J" if arguments[-1] != "-" else ".")
                    self.assertNotRegex(printed, "[\x1b\u202e]")

if __name__ == "__main__":
    unittest.main(verbosity=2)
