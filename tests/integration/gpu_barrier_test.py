#!/usr/bin/env python3
"""Tasks cannot open the GPUs and instances of other tasks, with either version of control groups. The device files have
the driver's numbers but no driver: an allowed open fails with ENXIO, a barred one with EPERM. The driver's files in
/proc are mounted over /proc in the test's own mount namespace. Needs root; without root the test is skipped.
"""
import errno
import os
import pathlib
import subprocess
import sys
import unittest

from berth_api import job_pb2, make_job
from berth_harness import SOURCE, Cluster

FAKE_NVML = pathlib.Path(os.environ.get("BERTH_BUILD", SOURCE / "build" / "release")) / "tests" / "libberth_fake_nvml.so"
INSIDE = "BERTH_TEST_INSIDE"
NVIDIA, CAPS = 195, 250
LOCAL = 251  # for local use
MINORS = "config 1\nmonitor 2\ngpu2/gi1/access 10\ngpu2/gi1/ci0/access 11\ngpu2/gi4/access 40\ngpu2/gi4/ci0/access 41\n" \
    "gpu2/gi7/access 70\n"
FILES = {f"nvidia{minor}": (NVIDIA, minor) for minor in (0, 1, 2)}
FILES |= {f"nvidia-cap{minor}": (CAPS, minor) for minor in (1, 2, 10, 11, 40, 41)}
FILES |= {"nvidiactl": (NVIDIA, 255)}

TRY = """
import os
for name in {names}:
    try:
        os.close(os.open("{dev}/" + name, os.O_RDWR))
        print(name, "OK")
    except OSError as error:
        print(name, error.errno)
"""


def run(*command):
    subprocess.run(command, check=True, capture_output=True)


@unittest.skipUnless(FAKE_NVML.exists(), "the fake driver is not built")
@unittest.skipUnless(INSIDE in os.environ, "needs root, and a mount namespace")
class Barrier(unittest.TestCase):
    def setUp(self):
        self.cluster = Cluster()
        self.cluster.belongs_to(self)
        home = self.cluster.home
        (home / "driver").write_text("ecc 0 0\necc 1 0\npending 1 0\n")
        os.environ["BERTH_FAKE_NVML_STATE"] = str(home / "driver")
        self.lay_over(home)
        self.cluster.server.start()
        self.cluster.create_queue("q")

    def lay_over(self, home):
        """Mounts the files of NVIDIA's driver, for the three GPUs of the fake driver."""
        self.dev = home / "dev"
        self.dev.mkdir()
        run("mount", "-t", "tmpfs", "-o", "dev,mode=755", "tmpfs", str(self.dev))
        self.addCleanup(run, "umount", str(self.dev))
        for name, number in FILES.items():
            os.mknod(self.dev / name, 0o666 | 0o020000, os.makedev(*number))
            (self.dev / name).chmod(0o666)
        run("mount", "-t", "tmpfs", "tmpfs", "/proc/driver")
        self.addCleanup(run, "umount", "/proc/driver")
        for index in range(3):
            gpu = pathlib.Path(f"/proc/driver/nvidia/gpus/0000:1{index}:00.0")
            gpu.mkdir(parents=True)
            (gpu / "information").write_text(f"GPU UUID: \t GPU-fake-{index + 1}\nDevice Minor: \t {index}\n")
        caps = pathlib.Path("/proc/driver/nvidia-caps")
        caps.mkdir()
        (caps / "mig-minors").write_text(MINORS)
        devices = home / "devices"
        devices.write_text(f"Character devices:\n{NVIDIA} nvidia\n{CAPS} nvidia-caps\n")
        run("mount", "--bind", str(devices), "/proc/devices")
        self.addCleanup(run, "umount", "/proc/devices")

    def run_task(self, job_name, kind, program):
        """The output of a task with one such device, or none: the words of each line by its first word."""
        job = make_job(job_name, "q", ["/usr/bin/python3", "-c", program])
        if kind:
            job.spec.groups[0].resources.devices.add(kind=kind, count=1)
        self.cluster.api.jobs.SubmitJobs(job_pb2.SubmitJobsRequest(request_id=job_name, jobs=[job]), timeout=10)
        self.cluster.wait_job(job_name, "SUCCEEDED")
        return dict(line.split() for line in self.cluster.berth("job", "logs", job_name).strip().split("\n"))

    def barred(self, job_name, kind):
        """The names that it cannot open."""
        said = self.run_task(job_name, kind, TRY.format(names=sorted(FILES), dev=self.dev))
        self.assertEqual(sorted(said), sorted(FILES))
        self.assertLessEqual(set(said.values()), {str(errno.ENXIO), str(errno.EPERM), "OK"}, said)
        return {name for name, code in said.items() if code == str(errno.EPERM)}

    def check_tasks(self, version_2=False):
        every_cap = {name for name in FILES if name.startswith("nvidia-cap")}
        agent = self.cluster.add_agent("n1", discovery={"nvmlLibrary": str(FAKE_NVML)})
        self.cluster.wait_nodes(1)
        if version_2:
            self.assertNotRegex(agent.output(), r"version 1 \([^)]*devices")
        if "tasks can open the devices of other tasks" in agent.output() or "no control groups" in agent.output():
            self.skipTest("no mechanism on this machine bars devices")
        self.assertEqual(self.barred("one", "gpu"), {"nvidia1", "nvidia2"} | every_cap)
        self.assertEqual(self.barred("instance", "mig"),
                         {"nvidia0", "nvidia1", "nvidia-cap1", "nvidia-cap2", "nvidia-cap40", "nvidia-cap41"})
        self.assertEqual(self.barred("none", None), {"nvidia0", "nvidia1", "nvidia2"} | every_cap)

    def test_a_kind_that_the_operator_configures(self):
        """A task gets the variable, and can open the files of its own devices, not those of others."""
        dev = pathlib.Path("/dev/shm")  # must be below /dev: mounted over it, only in this namespace
        run("mount", "-t", "tmpfs", "-o", "dev,mode=755", "tmpfs", str(dev))
        self.addCleanup(run, "umount", str(dev))
        names = {f"npu-{index}": str(index + 4) for index in range(3)}
        files = [f"davinci{name}" for name in names.values()]
        for number, name in enumerate([*files, "davinci_manager"]):
            os.mknod(dev / name, 0o666 | 0o020000, os.makedev(LOCAL, number))
            (dev / name).chmod(0o666)
        access = {"variable": "ASCEND_RT_VISIBLE_DEVICES", "names": names, "files": [f"{dev}/davinci{{}}"],
                  "sharedFiles": [f"{dev}/davinci_manager"]}
        # The files are in the machine's /dev/shm, which tasks see only if they share it.
        agent = self.cluster.add_agent("n1", discovery={"disabled": True}, deviceAccess={"npu": access}, sharedShm=True,
                                       devices=[{"kind": "npu", "uuid": uuid} for uuid in names])
        self.cluster.wait_nodes(1)
        if "tasks can open the devices of other tasks" in agent.output() or "no control groups" in agent.output():
            self.skipTest("no mechanism on this machine bars devices")
        program = TRY.format(names=[*files, "davinci_manager"], dev=dev)
        program += "print('visible', repr(os.environ['ASCEND_RT_VISIBLE_DEVICES']))\n"
        said = self.run_task("one", "npu", program)
        own = said.pop("visible").strip("'")
        self.assertIn(own, names.values())
        self.assertEqual({name for name in said if said[name] == str(errno.EPERM)}, {*files} - {f"davinci{own}"})
        said = self.run_task("none", None, program)
        self.assertEqual(said.pop("visible"), "''")
        self.assertEqual({name for name in said if said[name] == str(errno.EPERM)}, {*files})

    def test_with_the_control_groups_of_this_machine(self):
        self.check_tasks()

    def test_version_2(self):
        """Hides the controller of version 1, if there is one."""
        with open("/proc/self/mountinfo", encoding="ascii") as mounts:
            places = [line.split() for line in mounts if " - cgroup " in line]
        for fields in places:
            if "devices" in fields[-1].split(","):
                run("umount", "-l", fields[4])
        self.check_tasks(version_2=True)


def main():
    if os.getuid() == 0 and INSIDE not in os.environ:
        command = ["unshare", "--mount", "--propagation", "private"]
        if subprocess.run([*command, "true"], check=False).returncode == 0:
            os.environ[INSIDE] = "1"
            os.execvp("unshare", [*command, sys.executable, *sys.argv])
    unittest.main()


if __name__ == "__main__":
    main()
