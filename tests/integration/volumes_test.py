#!/usr/bin/env python3
"""Volumes of tasks with and without an image, and the writable layer of images, end to end: manifests, real mounts, real
crun. Needs root, crun, umoci and a static busybox; without them the test is skipped.
"""
import json
import pathlib
import shutil
import unittest

from berth_api import node_pb2
from berth_harness import Cluster, wait_until
from oci_layout import Layout, crun_here, require_images


class Volumes(unittest.TestCase):
    def setUp(self):
        self.busybox = require_images(self)
        self.cluster = Cluster({"lease": "6s", "heartbeatInterval": "1s"})
        self.cluster.belongs_to(self)
        self.cluster.server.start()
        self.cluster.create_queue("q")
        self.home = self.cluster.home
        self.layout = Layout(self.home / "store" / "small")
        self.state = pathlib.Path(f"/run{self.home}")  # not below /tmp
        self.state.mkdir(parents=True)
        self.addCleanup(shutil.rmtree, self.state, ignore_errors=True)
        self.offered = self.state.parent / f"{self.state.name}-offered"
        (self.offered / "in").mkdir(parents=True)
        self.addCleanup(shutil.rmtree, self.offered, ignore_errors=True)
        (self.offered / "in" / "data").write_text("the data\n")
        shutil.chown(self.offered / "in", 65534, 65534)

    def agent(self, **config):
        config = {"images": {"directory": str(self.home / "store"), "crun": crun_here(self.home)},
                  "volumes": {"hostPaths": [{"path": str(self.offered)}]}, "stateDirectory": str(self.state), **config}
        agent = self.cluster.add_agent("n1", **config)
        self.cluster.wait_nodes(1)
        return agent

    def submit(self, name, group):
        text = (f"apiVersion: berth/v1\nkind: Job\nname: {name}\nqueue: q\ngroups:\n- name: w\n"
                "  resources: {cpu: 100m}\n")
        self.cluster.berth("submit", str(self.cluster.manifest(text + group, f"{name}.yaml")))

    def output(self, name, group):
        self.submit(name, group)
        self.cluster.wait_job(name, "SUCCEEDED")
        return self.cluster.berth("job", "logs", name)

    def message(self, name, group):
        self.submit(name, group)
        return self.cluster.wait_job(name, "FAILED").status.message

    def rootfs(self, entry):
        """Every file of the unpacked image, with owner, mode and time of its last change."""
        top = self.state / "images" / entry / "rootfs"
        return {str(path.relative_to(top)): (path.lstat().st_uid, path.lstat().st_mode, path.lstat().st_mtime_ns)
                for path in [top, *top.rglob("*")]}

    def test_all_kinds_in_an_image_whose_mount_points_do_not_exist(self):
        entry = self.layout.add("1", {"Env": ["PATH=/bin"]}, self.busybox, which="one\n")
        self.agent()
        volumes = f"""  image: small:1
  volumes:
  - {{path: /mnt/host, hostPath: {self.offered}/in}}
  - {{path: /mnt/sealed, hostPath: {self.offered}/in, readOnly: true}}
  - {{path: /mnt/file, hostPath: {self.offered}/in/data, readOnly: true}}
  - {{path: /tmp, tmpfs: {{size: 2Mi}}}}
  - {{path: /mnt/scratch, scratch: {{}}}}
  - path: /mnt/files
    files: {{files: [{{name: conf.d/a.sh, content: "echo ran\\n", mode: "0755"}}, {{name: b, content: bee}}]}}
  - {{path: /mnt/one.conf, files: {{files: [{{content: "one: 1\\n"}}]}}}}
"""
        script = """exec 2>/dev/null; cat /mnt/host/data /mnt/file /mnt/one.conf; echo new > /mnt/host/new; cat /mnt/sealed/new
/mnt/files/conf.d/a.sh; cat /mnt/files/b; echo
echo x > /mnt/sealed/x || echo sealed; echo x > /mnt/files/b || echo sealed
/bin/busybox dd if=/dev/zero of=/tmp/big bs=1M count=5 || echo full
touch /mnt/scratch/x; ls $BERTH_SCRATCH/volume-4
/bin/busybox stat -c '%u %a' /mnt/files/conf.d/a.sh"""
        out = self.output("all", volumes + "  command: [sh, -c, " + repr_yaml(script) + "]\n")
        self.assertEqual(out.rstrip("\n"), "the data\nthe data\none: 1\nnew\nran\nbee\nsealed\nsealed\nfull\nx\n65534 755")
        self.assertEqual((self.offered / "in" / "new").read_text(), "new\n")
        self.assertFalse((self.state / "images" / entry / "rootfs" / "mnt").exists(), "the image is untouched")
        shown = self.cluster.berth("job", "describe", "all")
        for text in ("w: image small:1", f"w: /mnt/sealed is hostPath {self.offered}/in, read-only",
                     "w: /tmp is tmpfs of 2", "w: /mnt/files is 2 files", "w: /mnt/scratch is scratch"):
            self.assertIn(text, shown)
        self.assertNotIn(str(self.state / "tasks"), pathlib.Path("/proc/mounts").read_text(), "no mount is left")

    def test_exec_sees_the_volumes_of_a_task_without_an_image(self):
        self.agent()
        point = self.offered.parent / f"{self.offered.name}-point"
        point.mkdir()
        self.addCleanup(shutil.rmtree, point, ignore_errors=True)
        self.submit("plain", f"  command: [sleep, '1000']\n  volumes: [{{path: {point}, hostPath: {self.offered}/in}}]\n")
        self.cluster.wait_job("plain", "RUNNING")
        self.assertEqual(self.cluster.berth("exec", "plain", "--", "cat", f"{point}/data"), "the data\n")
        self.assertEqual(list(point.iterdir()), [], "the node does not see it")

    def test_refusals_name_the_setting_and_blame_the_job(self):
        self.layout.add("1", {"Env": ["PATH=/bin"]}, self.busybox)
        self.agent()
        (self.offered / "in" / "out").symlink_to("/etc")
        group = "  image: small:1\n  command: ['true']\n  volumes: [{path: /data, hostPath: %s}]\n"
        for name, path, text in (("etc", "/etc", "volume /data: hostPath /etc is not below what this node offers "
                                                 "(volumes.hostPaths of its agent)"),
                                 ("link", f"{self.offered}/in/out", f"is a link that leads out of {self.offered} "
                                                                    "(volumes.hostPaths of the node's agent)"),
                                 ("gone", f"{self.offered}/gone", "No such file or directory")):
            self.assertIn(text, self.message(name, group % path))
        self.assertIn("/nowhere: this path does not exist on the node",
                      self.message("point", "  command: ['true']\n  volumes: [{path: /nowhere, scratch: {}}]\n"))
        status = self.cluster.api.nodes.GetNode(node_pb2.GetNodeRequest(name="n1"), timeout=10).status
        self.assertEqual(status.refusals, 0, "the job's fault, not the node's")
        wrong = self.cluster.manifest("apiVersion: berth/v1\nkind: Job\nname: w\nqueue: q\ngroups: [{name: w, command: [a], volumes: "
                                      "[{path: /dev/shm, tmpfs: {}}]}]\n")
        self.assertIn("cannot be /dev/shm: the task's devices and its shared memory are there",
                      self.cluster.run_berth("submit", str(wrong)).stderr)

    def test_links_of_an_image_lead_into_no_other_volume(self):
        """crun is root and creates mount points: nothing in an image may lead it to the node's files."""
        self.layout.add("1", {"Env": ["PATH=/bin"]}, self.busybox, links={"data/trap": "/mnt/host"})
        self.agent()
        volumes = ("  image: small:1\n  command: ['true']\n  volumes: [{path: /mnt/host, hostPath: %s/in}, "
                   "{path: /data/trap/made, scratch: {}}]\n" % self.offered)
        self.assertIn("/data/trap/made: the image has a link on the way to this path", self.message("trap", volumes))
        self.assertFalse((self.offered / "in" / "made").exists())

    def test_links_of_an_image_lead_no_volume_into_what_the_node_mounts(self):
        self.layout.add("1", {"Env": ["PATH=/bin"]}, self.busybox, links={"sys": "/elsewhere", "tmp": "/mine"})
        self.agent()
        for path, inside in (("/elsewhere/fs/cgroup/made", "/elsewhere, where the image has /sys,"),
                             ("/mine/made", "/mine, where the image has /tmp,"),
                             ("/tmp/made", "/tmp, where the task has a directory of its own")):
            volumes = f"  image: small:1\n  command: ['true']\n  volumes: [{{path: {path}, scratch: {{}}}}]\n"
            self.assertIn(f"volume {path}: is inside {inside}", self.message(path.replace("/", "x"), volumes))
        self.assertFalse(pathlib.Path("/sys/fs/cgroup/made").exists())

    def test_each_task_writes_into_its_own_copy_of_the_image(self):
        entry = self.layout.add("1", {"Env": ["PATH=/bin"]}, self.busybox, which="one\n")
        self.agent()
        script = ("exec 2>/dev/null; cat /data/which; echo changed > /data/which; rm -r /bin/env; mkdir /opt && echo y > /opt/y; "
                  "cat /data/which /opt/y; ls /bin/env || echo removed")
        for name in ("first", "second"):
            out = self.output(name, f"  image: small:1\n  command: [sh, -c, {repr_yaml(script)}]\n")
            self.assertEqual(out.splitlines(), ["one", "changed", "y", "removed"])
            if name == "first":
                before = self.rootfs(entry)
        self.assertEqual(self.rootfs(entry), before, "the shared image is untouched")
        self.assertTrue(all(owner == 0 for owner, _, _ in before.values()))
        layers = lambda: list((self.state / "tasks").glob("*/layer"))
        wait_until(lambda: not layers(), 10, "the layers go with their tasks")
        self.assertNotIn(str(self.state), pathlib.Path("/proc/mounts").read_text(), "no mount is left")

    def test_the_layer_counts_as_the_tasks_disk(self):
        self.layout.add("1", {"Env": ["PATH=/bin"]}, self.busybox)
        self.agent(maxScratch="64Mi")
        script = "/bin/busybox dd if=/dev/zero of=/big bs=1M count=300 && sleep 1000"
        message = self.message("greedy", f"  image: small:1\n  command: [sh, -c, {repr_yaml(script)}]\n")
        self.assertRegex(message, "used .* of disk; the limit is 64 MiB")

    def test_kills_leave_nothing(self):
        self.layout.add("1", {"Env": ["PATH=/bin"]}, self.busybox)
        agent = self.agent()
        self.submit("long", f"  image: small:1\n  command: [sleep, '1000']\n"
                            f"  volumes: [{{path: /x, hostPath: {self.offered}/in}}, {{path: /y, tmpfs: {{}}}}]\n")
        self.cluster.wait_job("long", "RUNNING")
        agent.kill()
        agent.start()
        self.cluster.wait_nodes(1)
        wait_until(lambda: self.cluster.berth("exec", "long", "--", "cat", "/x/data") == "the data\n", 20,
                   "the task goes on under a new agent")
        self.cluster.berth("job", "cancel", "long")
        self.cluster.wait_job("long", "CANCELLED")
        wait_until(lambda: not list((self.state / "tasks").glob("*/layer")), 10, "its layer goes")
        self.assertEqual((self.offered / "in" / "data").read_text(), "the data\n", "the volume's files stay")
        self.assertNotIn(str(self.state), pathlib.Path("/proc/mounts").read_text())

    def test_an_agent_without_root_refuses_volumes_by_name(self):
        self.state.chmod(0o777)
        agent = self.cluster.add_agent("n1", start=False, stateDirectory=str(self.state / "own"))
        agent.arguments = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *agent.arguments]
        config = pathlib.Path(agent.arguments[agent.arguments.index("--config") + 1])
        values = json.loads(config.read_text())
        values.pop("taskUser", None)
        config.write_text(json.dumps(values))
        agent.start()
        self.cluster.wait_nodes(1)
        self.assertIn("volumes require an agent that runs as root and may create namespaces",
                      self.message("plain", "  command: ['true']\n  volumes: [{path: /mnt, scratch: {}}]\n"))


def repr_yaml(text):
    """A YAML text in double quotes."""
    return json.dumps(text)


if __name__ == "__main__":
    unittest.main(verbosity=2)
