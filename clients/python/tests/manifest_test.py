"""Manifests: the same as the command line reads, and back."""
import unittest
from datetime import datetime, timedelta, timezone

import world

import berth

EXAMPLES = world.SOURCE / "deploy" / "examples"
GOOD = """
apiVersion: berth/v1
kind: Job
name: all
queue: research
walltime: 1h30m
startAfter: 2026-11-24T09:00:00Z
min_available: 3
checkpoint: {signal: SIGUSR1, grace: 2m, savedExitCodes: 75, before: [Eviction, DRAIN]}
labels: {team: "7"}
pause: {devices: Keep}
policies:
- {event: task_failed, exitCodes: [1, 2], action: RestartJob}
groups:
- name: worker
  replicas: 4
  command: [train, --x]
  env: {A: "1", B: two}
  resources: {cpu: 1500m, memory: 1.5Gi, gpu: 8, nic: {count: 2}}
  topology: {mode: hard, highestTier: rack}
- name: other
  command: solo
  env:
  - {name: SECRET, fromFile: /etc/secret}
  resources: {gpu: {share: 0.5, model: [H100]}}
  volumes:
  - {path: /tmpfs, tmpfs: {size: 16Gi}}
"""
BAD = {
    "nmae: x": 'unknown key "nmae"; did you mean "name"?',
    "walltime: soon": 'walltime: "soon" is no duration',
    "priority: high": "priority: expected an integer",
    "groups: 3": "groups: expected a list, got a single value",
    "groups: [{resources: {memory: 5q}}]": "memory: ",
    "policies: [{event: Never}]": 'event: "Never" is none of Any, TaskFailed',
    "suspended: yes": 'suspended: expected true or false, got "yes"',
    "queue:": '"queue" has no value',
    "queue: a\nqueue: b": 'repeated key "queue"',
    "walltime: &a 1h": "anchors and aliases are not supported",
    "queue: !!str a": "tags are not supported",
    "groups: [{volumes: [{path: /x, tmpfs: {}, scratch: {}}]}]": '"scratch" conflicts with "tmpfs"',
}


class Manifests(unittest.TestCase):
    def test_every_way_of_writing(self):
        job = berth.Job.from_yaml(GOOD)
        worker, other = job.groups
        self.assertEqual((job.name, job.walltime, job.min_available), ("all", timedelta(minutes=90), 3))
        self.assertEqual(job.start_after, datetime(2026, 11, 24, 9, tzinfo=timezone.utc))
        self.assertEqual(job.checkpoint.saved_exit_codes, [75])
        self.assertEqual(job.pause, berth.PausePolicy(devices=berth.PausePolicyDevices.KEEP))
        self.assertEqual(job.checkpoint.before, [berth.CheckpointPolicyStop.EVICTION, berth.CheckpointPolicyStop.DRAIN])
        self.assertEqual((job.policies[0].event, job.policies[0].action), ("TaskFailed", "RestartJob"))
        self.assertEqual(worker.resources, berth.R(cpu=1.5, memory=3 << 29, gpu=8, devices=[berth.DeviceRequest("nic", count=2)]))
        self.assertEqual((worker.env, worker.topology.highest_tier_name), ({"A": "1", "B": "two"}, "rack"))
        self.assertEqual((other.command, other.env), (["solo"], {"SECRET": berth.EnvVar(from_file="/etc/secret")}))
        self.assertEqual(other.resources.gpu, berth.DeviceRequest(share=0.5, model=["H100"]))

    def test_what_is_written_reads_back(self):
        job = berth.Job.from_yaml(GOOD)
        self.assertEqual(berth.Job.from_yaml(job.to_yaml()).to_proto(), job.to_proto())
        for one in (berth.Queue("q", limit=berth.ResourceList(cpu=8, counts={"gpu": 2.5}), order="FifoStrict", weight=3),
                    berth.HyperNode("rack", tier=1, kind="rail", members=[berth.HyperNodeMember(type="Node", exact="n1")]),
                    berth.PriorityClass("high", value=7, preemption_policy="Never")):
            self.assertEqual(type(one).from_yaml(one.to_yaml()).to_proto(), one.to_proto())

    def test_errors_have_places(self):
        for text, message in BAD.items():
            with self.subTest(text), self.assertRaises(berth.InvalidArgument) as caught:
                berth.Job.from_yaml(f"apiVersion: berth/v1\nkind: Job\n{text}\n", "file.yaml")
            self.assertRegex(str(caught.exception), r"^file\.yaml:[3-4]:\d+: ")
            self.assertIn(message, str(caught.exception))
        with self.assertRaisesRegex(berth.InvalidArgument, "did not find expected|expected"):
            berth.Job.from_yaml("a: [", "file.yaml")
        with self.assertRaisesRegex(berth.InvalidArgument, "the command line converts"):
            berth.Job.from_yaml("{apiVersion: batch/v1, kind: Job}")
        with self.assertRaisesRegex(berth.InvalidArgument, "expected one Job, found Queue"):
            berth.Job.from_yaml("{apiVersion: berth/v1, kind: Queue, name: a}")

    def test_values_are_refused_where_they_are_set(self):
        for make in (lambda: berth.Job(walltime="soon"), lambda: berth.R(memory="5q"), lambda: berth.R(cpu="0.0001"),
                     lambda: berth.Policy(event="Nothing"), lambda: berth.Job(deadline="tomorrow"),
                     lambda: berth.Job(deadline=datetime(2026, 1, 1)), lambda: berth.R(memory="-1")):
            self.assertRaises(ValueError, make)

    def test_values_of_newer_servers_stay(self):
        unknown = berth.JobState.from_pb(99)
        self.assertEqual((str(unknown), unknown.number), ("Unknown(99)", 99))
        self.assertNotIn(unknown, list(berth.JobState))

    def test_the_command_line_reads_the_same(self):
        cluster = world.start(agents=0)
        self.addCleanup(cluster.stop)
        texts = [path.read_text() for path in sorted(EXAMPLES.glob("*.yaml"))] + [GOOD]
        compared = 0
        with berth.Client(cluster.server.address) as client:
            for text in texts:
                try:
                    found = berth.read_manifest(text)
                except berth.InvalidArgument:
                    self.assertNotRegex(text, "(?m)^apiVersion: berth/v1\nkind: Job")
                    continue
                for job in found:
                    if isinstance(job, berth.Job):
                        compared += self.compare(cluster, client, job, text)
        self.assertGreater(compared, 8)

    def compare(self, cluster, client, job, text):
        """The job that the command line submits equals the one that Python submits."""
        if len(berth.read_manifest(text)) > 1:
            return 0
        handle = None
        try:
            job.suspended = True
            handle = client.submit(job)
        except berth.BerthError as error:
            self.assertNotIsInstance(error, berth.InvalidArgument, f"{text}\n{error}")
            return 0
        mine = client.get(handle.name)
        client.cancel(handle.name, force=True)
        client.delete(handle.name)
        cluster.berth("submit", cluster.manifest(text + "\nsuspended: true\n"))
        theirs = client.get(job.name)
        client.cancel(job.name, force=True)
        client.delete(job.name)
        for one in (mine, theirs):
            one.uid, one.status, one.etag = 0, None, ""
        self.assertEqual(mine, theirs)
        return 1


if __name__ == "__main__":
    unittest.main()
