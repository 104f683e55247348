#!/usr/bin/env python3
"""Tasks that see themselves as the users that their images name (images.mapUsers), with real crun and real user
namespaces. Needs root, crun, umoci and a static busybox; without them the test is skipped.
"""
import json
import os
import pathlib
import shutil
import unittest

from berth_harness import Cluster
from oci_layout import Layout, crun_here, require_images

NOBODY = 65534


class ImageUsers(unittest.TestCase):
    def setUp(self):
        self.busybox = require_images(self)
        self.cluster = Cluster({"lease": "6s", "heartbeatInterval": "1s"})
        self.cluster.belongs_to(self)
        self.cluster.server.start()
        self.cluster.create_queue("q")
        self.home = self.cluster.home
        self.state = pathlib.Path(f"/run{self.home}")  # not below /tmp
        self.state.mkdir(parents=True)
        self.addCleanup(shutil.rmtree, self.state, ignore_errors=True)
        self.kept = self.state.parent / f"{self.state.name}-kept"
        self.kept.mkdir()
        os.chown(self.kept, NOBODY, NOBODY)
        self.addCleanup(shutil.rmtree, self.kept, ignore_errors=True)
        layout = Layout(self.home / "store" / "small")
        for tag, user in (("app", "app"), ("number", "4711:12"), ("root", "root"), ("none", None)):
            config = {"Env": ["PATH=/bin"], **({"User": user} if user else {})}
            layout.add(tag, config, self.busybox, owned={"etc/passwd": ("app:x:1000:1001::/home/app:/bin/sh\n", 0, 0o644),
                                                         "home/app/own": ("mine\n", 1000, 0o600),
                                                         "etc/secret": ("root's\n", 0, 0o600)})

    def agent(self, **images):
        images = {"directory": str(self.home / "store"), "crun": crun_here(self.home), **images}
        self.cluster.add_agent("n1", images=images, stateDirectory=str(self.state),
                               volumes={"hostPaths": [{"path": str(self.kept)}]})
        self.cluster.wait_nodes(1)

    def output(self, name, tag, script, state="SUCCEEDED"):
        self.cluster.berth("submit", str(self.cluster.manifest(f"""apiVersion: berth/v1
kind: Job
name: {name}
queue: q
groups:
- name: w
  image: small:{tag}
  resources: {{cpu: 100m}}
  volumes: [{{path: /kept, hostPath: {self.kept}}}]
  command: [sh, -c, {json.dumps("exec 2>/dev/null; " + script)}]
""", f"{name}.yaml")))
        self.cluster.wait_job(name, state)
        return self.cluster.berth("job", "logs", name)

    SHOW = "id -u; id -g; echo $HOME $USER"

    def test_the_images_user_inside_the_tasks_user_on_the_node(self):
        self.agent(mapUsers=True)
        out = self.output("app", "app", self.SHOW + """; cat /home/app/own; echo more >> /home/app/own && cat /home/app/own
cat /etc/secret || echo denied; touch /etc/new || echo denied; echo x > /kept/file; busybox stat -c %u:%g /kept /kept/file
echo y > $BERTH_SCRATCH/y; busybox stat -c %u $BERTH_SCRATCH/y; busybox grep CapEff /proc/self/status""")
        self.assertEqual(out.split("\n")[:11], ["1000", "1001", "/home/app app", "mine", "mine", "more", "denied", "denied",
                                                "1000:1001", "1000:1001", "1000"])
        self.assertIn("CapEff:\t0000000000000000", out)
        info = (self.kept / "file").stat()
        self.assertEqual((info.st_uid, info.st_gid), (NOBODY, NOBODY), "on the node it is the task's user")
        self.assertEqual(self.output("number", "number", self.SHOW), "4711\n12\n/ 4711\n")

    def test_root_and_no_user_are_as_without_it(self):
        self.agent(mapUsers=True)
        for tag in ("root", "none"):
            self.assertEqual(self.output(tag, tag, "id -u; cat /etc/secret; touch /etc/new && echo may"),
                             f"{NOBODY}\nroot's\nmay\n")

    def test_off_by_default(self):
        self.agent()
        self.assertEqual(self.output("off", "app", "id -u; cat /etc/secret"), f"{NOBODY}\nroot's\n")

    def test_exec_has_the_images_user(self):
        self.agent(mapUsers=True)
        self.cluster.berth("submit", str(self.cluster.manifest("""apiVersion: berth/v1
kind: Job
name: long
queue: q
groups: [{name: w, image: 'small:app', resources: {cpu: 100m}, command: [sleep, '1000']}]
""", "long.yaml")))
        self.cluster.wait_job("long", "RUNNING")
        self.assertEqual(self.cluster.berth("exec", "long", "--", "sh", "-c", "id -u; cat /home/app/own"), "1000\nmine\n")
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if b"sleep\x001000" in (process / "cmdline").read_bytes() and \
                        str(self.state) in (process / "environ").read_bytes().decode():
                    self.assertEqual(process.stat().st_uid, NOBODY)
            except OSError:
                pass


if __name__ == "__main__":
    unittest.main()
