"""Checks without a server report what the server reports, in the same words."""
import copy
import unittest

import world

import berth


def good():
    return berth.Job("fine", queue="research", groups=[berth.Group(command=["true"])])


def changed(**spec):
    job = good()
    for name, value in spec.items():
        setattr(job, name, value)
    return job


def group(**fields):
    job = good()
    for name, value in fields.items():
        setattr(job.groups[0], name, value)
    return job


def raw(change):
    job = good().to_proto()
    change(job)
    return job


WRONG = [
    changed(name="UPPER"), changed(name="job-17"), changed(name="a" * 64), changed(name="a\"b\\c\n"), changed(queue="Not_a_label"),
    changed(priority=1_000_001), changed(priority=-1_000_001), changed(priority_class="No"), changed(max_retries=1001),
    changed(max_retries=-1), changed(labels={"bad key": "x"}), changed(labels={"good": "bad value!"}),
    changed(labels={"example.com/": "x"}), changed(labels={f"k{n}": "v" for n in range(65)}), changed(groups=[]),
    changed(kill_signal="SIGFOO"), changed(min_available=2),
    changed(groups=[berth.Group("a", command=["x"]), berth.Group("a", command=["x"])]),
    changed(groups=[berth.Group(f"g{n}", command=["x"]) for n in range(65)]),
    changed(dependencies=[berth.JobDependency("a", condition="AfterOk"), berth.JobDependency("a", condition="AfterOk")]),
    changed(dependencies=[berth.JobDependency("a")]),
    group(name=""), group(name="Worker"), group(replicas=0), group(replicas=3, min_available=4), group(min_available=-1),
    group(command=[]), group(command=[""]), group(command=["a", "b\0c"]), group(args=["\0"]), group(working_dir="relative"),
    group(env={"1A": "x"}), group(env={"A": "x\0"}), group(env={"A": berth.EnvVar(from_file="relative")}),
    group(env={"A": berth.EnvVar(from_file="/f", value="v")}),
    raw(lambda job: [job.spec.groups[0].env.add(name="A"), job.spec.groups[0].env.add(name="A")]),
    group(node_selector=berth.NodeSelector(match_labels={"-": "x"})),
    group(resources=berth.R(gpu=0)), group(resources=berth.R(gpu=129)), group(resources=berth.R(gpu=-1)),
    group(resources=berth.R(gpu=berth.DeviceRequest(share=0.5, cores=50))), group(resources=berth.R(gpu=berth.DeviceRequest(
        share=1.5))), group(resources=berth.R(gpu=berth.DeviceRequest(share=0.0001))),
    group(resources=berth.R(gpu=1, devices=[berth.DeviceRequest("nic", count=1), berth.DeviceRequest("nic", count=1)])),
    group(resources=berth.R(devices=[berth.DeviceRequest("cpu", count=1)])),
    group(resources=berth.R(devices=[berth.DeviceRequest("", count=1)])),
]
# What only the server knows.
BEYOND = [changed(queue="nowhere"), group(replicas=20_000), changed(walltime="99999d"),
          group(depends_on=[berth.GroupDependency("missing", condition="Running")])]


def offline(job):
    return job.check() if isinstance(job, berth.Job) else berth._check.check_jobs([job])


class Check(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = world.start(agents=1)
        cls.addClassCleanup(cls.cluster.stop)
        cls.client = berth.Client(cls.cluster.server.address)
        cls.addClassCleanup(cls.client.close)

    def test_every_finding_is_the_servers(self):
        for index, job in enumerate(WRONG):
            with self.subTest(index=index, job=repr(job)[:200]):
                mine = offline(job)
                theirs = [one for one in self.client.check([job]) if not one.description.startswith("there is no ")]  # its state
                self.assertNotEqual(mine, [], "the corpus is of jobs that the check knows to be wrong")
                self.assertEqual(sorted(map(str, mine)), sorted(map(str, theirs)))

    def test_good_jobs_pass(self):
        examples = [good(), group(resources=berth.R(cpu=1, memory="1Gi", gpu=berth.DeviceRequest(share=0.25))),
                    group(resources=berth.R(gpu=berth.DeviceRequest(memory="8Gi"))),
                    changed(labels={"example.com/team": "a"}, dependencies=[])]
        for job in examples:
            self.assertEqual(offline(copy.deepcopy(job)), [])
            self.assertEqual(self.client.check([job]), [])

    def test_the_server_finds_more(self):
        for job in BEYOND:
            self.assertEqual(offline(job), [])
            self.assertNotEqual(self.client.check([job]), [])


if __name__ == "__main__":
    unittest.main()
