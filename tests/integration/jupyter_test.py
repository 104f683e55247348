#!/usr/bin/env python3
"""The Jupyter example as it stands in docs/examples/jupyter, with a real Jupyter server from PyPI and a real kernel: both are
reached through berth port-forward, over HTTP and a WebSocket."""
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest
import urllib.request

from berth_harness import BIN, SOURCE, Cluster, free_port, wait_until

EXAMPLE = SOURCE / "docs" / "examples" / "jupyter"
VENV = pathlib.Path(os.environ.get("BERTH_BUILD", SOURCE / "build" / "release")).parent / "jupyter-venv"

# Runs code in a kernel, as a notebook does; prints what the kernel printed.
ASK_KERNEL = """
import json, sys, urllib.request, uuid, websocket
port, token, code = sys.argv[1:]
def call(path, method="GET"):
    request = urllib.request.Request(f"http://127.0.0.1:{port}/api/{path}", method=method,
                                     data=b"{}" if method == "POST" else None,
                                     headers={"Authorization": f"token {token}", "Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)
kernel = call("kernels", "POST")["id"]
socket = websocket.create_connection(f"ws://127.0.0.1:{port}/api/kernels/{kernel}/channels?token={token}", timeout=60)
socket.send(json.dumps({"channel": "shell", "parent_header": {}, "metadata": {}, "buffers": [],
                        "header": {"msg_id": uuid.uuid4().hex, "msg_type": "execute_request", "version": "5.3",
                                   "username": "", "session": uuid.uuid4().hex},
                        "content": {"code": code, "silent": False, "store_history": False,
                                    "user_expressions": {}, "allow_stdin": False}}))
text = ""
while True:
    message = json.loads(socket.recv())
    kind = message["header"]["msg_type"]
    if kind == "stream":
        text += message["content"]["text"]
    if kind == "error":
        sys.exit("\\n".join(message["content"]["traceback"]))
    if kind == "status" and message["content"]["execution_state"] == "idle" and text:
        break
print(text, end="")
"""


def make_environment():
    """Made again when the requirements have changed; skips the tests if PyPI cannot be reached."""
    wanted = hashlib.sha256((EXAMPLE / "requirements.txt").read_bytes()).hexdigest()
    stamp = VENV / "requirements.sha256"
    if stamp.exists() and stamp.read_text() == wanted:
        return
    shutil.rmtree(VENV, ignore_errors=True)
    for command in ([sys.executable, "-m", "venv", VENV],
                    [VENV / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check", "--retries", "1", "--timeout", "20",
                     "--require-hashes", "--requirement", EXAMPLE / "requirements.txt"]):
        made = subprocess.run(command, capture_output=True, text=True)
        if made.returncode:
            shutil.rmtree(VENV, ignore_errors=True)
            raise unittest.SkipTest(f"jupyter-server cannot be installed from PyPI: {made.stderr[-300:]}")
    stamp.write_text(wanted)


class JupyterTest(unittest.TestCase):
    def setUp(self):
        make_environment()
        self.cluster = Cluster().belongs_to(self)
        # The user of the task may not reach the build directory.
        self.venv = self.cluster.home / "venv"
        shutil.copytree(VENV, self.venv, symlinks=True)
        for script in "jupyter", "jupyter-server":
            path = self.venv / "bin" / script
            path.write_text(re.sub("^#!.*", f"#!{self.venv}/bin/python3", path.read_text(), count=1))
        self.cluster.server.start()
        self.cluster.add_agent("n1", cpu="8", memory="32Gi")
        self.cluster.wait_nodes(1)
        self.cluster.create_queue("research")

    def test_the_example(self):
        port = free_port()
        text = (EXAMPLE / "notebook.yaml").read_text()
        for old, new in (("--port=8888", f"--port={port}"), (", gpu: 1", ""), (" jupyter server", f" {self.venv}/bin/jupyter server")):
            self.assertIn(old, text)
            text = text.replace(old, new)
        text += "  env: {" + f"PATH: '{self.venv}/bin:/usr/bin:/bin', HOME: '/tmp'" + "}\n"
        self.cluster.berth("submit", self.cluster.manifest(text))
        self.cluster.wait_job("notebook", "RUNNING")
        token = wait_until(lambda: re.search(r"token=(\w+)", self.cluster.berth("job", "logs", "notebook")), 90, "its token")[1]
        forward = subprocess.Popen([str(BIN / "berth"), "--server", self.cluster.server.address, "port-forward", "notebook",
                                    f"0:{port}"], stdout=subprocess.PIPE, text=True)
        self.addCleanup(forward.communicate)
        self.addCleanup(forward.kill)
        line = forward.stdout.readline()
        self.assertRegex(line, rf"^forwarding 127\.0\.0\.1:\d+ -> job/notebook/worker-0 port {port}$")
        local = int(re.search(r":(\d+) ->", line)[1])
        request = urllib.request.Request(f"http://127.0.0.1:{local}/api/status", headers={"Authorization": f"token {token}"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            self.assertEqual(json.load(answer)["kernels"], 0)
        code = "import os\nprint(6 * 7, os.environ['BERTH_JOB'])"
        result = subprocess.run([self.venv / "bin" / "python", "-c", ASK_KERNEL, str(local), token, code],
                                capture_output=True, text=True, timeout=180)
        self.assertEqual((result.returncode, result.stdout), (0, "42 notebook\n"), result.stderr)
        self.assertIsNone(forward.poll())
        self.cluster.berth("job", "cancel", "notebook")
        self.cluster.wait_job("notebook", "CANCELLED")


if __name__ == "__main__":
    unittest.main(verbosity=2)
