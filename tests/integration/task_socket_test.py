#!/usr/bin/env python3
"""The socket of a task, end to end: from inside a task, `berth` reads its own job and runs commands on its siblings, also
on another node, and nothing else. With rules and identities of nodes, and without TLS.
"""
import json
import os
import pathlib
import pwd
import shutil
import subprocess
import tempfile
import unittest

from berth_api import job_pb2, make_job
from berth_harness import BIN, Cluster, wait_until

KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]

# Rank 0 writes what each command printed, and how it ended.
LOOK = r"""
say() { echo "== $1"; shift; "$@" 2>&1; echo "-> $?"; }
if [ "$BERTH_GROUP_INDEX" != 0 ]; then exec sleep 100000; fi
until $BERTH exec "$BERTH_JOB" --task w-1 -n -- true 2>/dev/null; do sleep 0.2; done
say get sh -c '$0 job get "$BERTH_JOB" -o yaml | grep -o "name: [A-Zl]*"' $BERTH
say describe $BERTH job get "$BERTH_JOB"
say sibling $BERTH exec "$BERTH_JOB" --task w-1 -n -- sh -c 'echo $BERTH_TASK on $BERTH_NODE as $(id -un)'
say code $BERTH exec "$BERTH_JOB" --task w-1 -n -- sh -c 'exit 7'
say input sh -c 'echo through | $0 exec "$BERTH_JOB" --task w-1 -- cat' $BERTH
say logs $BERTH job logs "$BERTH_JOB" --task w-1
say list $BERTH job list
say other $BERTH job get other
say exec-other $BERTH exec other -n -- true
say submit $BERTH submit --name evil --queue q -- true
say cancel $BERTH job cancel "$BERTH_JOB"
say nodes $BERTH node list
say access $BERTH access list
say explain $BERTH job explain "$BERTH_JOB"
echo "== end"
sleep 100000
"""

# As a launcher of MPI does: one command on every sibling, all at once.
LAUNCH = r"""
[ "$BERTH_GROUP_INDEX" = 0 ] || exec sleep 100000
i=1
while [ $i -lt $BERTH_GROUP_SIZE ]; do
  until $BERTH exec "$BERTH_JOB" --task w-$i -n -- true; do sleep 0.2; done
  i=$((i + 1))
done
for i in $(seq 0 $((BERTH_GROUP_SIZE - 1))); do
  $BERTH exec "$BERTH_JOB" --task w-$i -n -- sh -c 'echo rank $RANK of $WORLD_SIZE; sleep 1' &
done
wait
echo launched
"""


class Keys:
    """An authority and its certificates."""

    def __init__(self, home):
        self.home = home
        self.openssl("req", "-x509", *KEY, "-days", "2", "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=ca")

    def openssl(self, *arguments):
        subprocess.run(["openssl", *arguments], cwd=self.home, check=True, capture_output=True)

    def issue(self, name, names):
        (self.home / f"{name}.ext").write_text(f"subjectAltName={names}\n")
        self.openssl("req", "-new", *KEY, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}")
        self.openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2",
                     "-out", f"{name}.pem", "-extfile", f"{name}.ext")
        return {"certificate": f"{self.home}/{name}.pem", "key": f"{self.home}/{name}.key", "ca": f"{self.home}/ca.pem"}


class TaskSocket(unittest.TestCase):
    def begin(self, config=None, agents=None, **agent_config):
        self.cluster = Cluster(config)
        self.cluster.belongs_to(self)
        # Not below /tmp, so that tasks get their own /tmp; has the name by which the harness finds processes.
        self.place = pathlib.Path(f"/run{self.cluster.home}") if os.getuid() == 0 else self.cluster.home
        self.place.mkdir(parents=True, exist_ok=True)
        self.addCleanup(shutil.rmtree, self.place, ignore_errors=True)
        self.berth_program = shutil.copy(BIN / "berth", self.place / "berth")  # for users of tasks
        self.cluster.server.start()
        self.states = {}
        for name in ("n1", "n2"):
            state = self.place / f"{name}-state"
            state.mkdir()
            self.states[name] = state
            self.cluster.add_agent(name, cpu="1", stateDirectory=str(state), **agent_config, **(agents or {}).get(name, {}))

    def submit(self, job):
        self.cluster.api.jobs.SubmitJobs(job_pb2.SubmitJobsRequest(request_id=job.name, jobs=[job]), timeout=10)

    def job(self, name, script, **spec):
        return make_job(name, "q", ["sh", "-c", script], replicas=2, cpu_millis=1000, env={"BERTH": str(self.berth_program)}, **spec)

    def logs(self, job, task="w-0"):
        return self.cluster.run_berth("job", "logs", job, "--task", task).stdout

    def sections(self, text):
        """What LOOK wrote: (output, exit code) of each command."""
        found = {}
        for part in text.split("== ")[1:]:
            name, _, rest = part.partition("\n")
            output, _, code = rest.rpartition("-> ")
            found[name] = (output, int(code) if code.strip() else None)
        return found

    def check_what_a_task_may_do(self, logs, user):
        said = self.sections(logs)
        for name in ("get", "describe", "sibling", "input", "logs"):
            self.assertEqual(said[name][1], 0, f"{name}: {said[name]}")
        self.assertIn("name: l", said["get"][0])
        self.assertIn("name: BERTH", said["get"][0], "all of its own job")
        self.assertRegex(said["sibling"][0], f"^w-1 on n[12] as {user}\n$")
        self.assertEqual(said["code"][1], 7)
        self.assertEqual(said["input"][0], "through\n")
        for name in ("list", "submit", "cancel", "nodes", "access", "explain"):
            self.assertIn("tasks may not call", said[name][0], name)
            self.assertNotEqual(said[name][1], 0, name)
        for name in ("other", "exec-other"):
            self.assertIn('no job "other"', said[name][0])
            self.assertNotEqual(said[name][1], 0, name)

    def sockets(self):
        return [path for state in self.states.values() for path in state.glob("tasks/*/**/socket")
                if path.parent.name in ("berth", "in")]

    def connect_as(self, user, path):
        code = f"import os, socket; os.setresuid(*[{pwd.getpwnam(user).pw_uid}] * 3); socket.socket(socket.AF_UNIX).connect({str(path)!r})"
        return subprocess.run(["/usr/bin/python3", "-c", code], capture_output=True, text=True).stderr

    def test_without_tls(self):
        self.begin({"runAs": [{"user": "ada", "withoutTls": True}]}, **({"taskUsers": {"ada": "daemon"}} if os.getuid() == 0 else {}))
        self.cluster.wait_nodes(2)
        self.cluster.create_queue("q")
        self.submit(make_job("other", "q", ["true"], cpu_millis=64000))
        root = os.getuid() == 0
        self.submit(self.job("look", LOOK, **({"run_as": "ada"} if root else {})))
        self.cluster.wait_job("look", "RUNNING")
        wait_until(lambda: "== end" in self.logs("look"), 60, "the commands have ended")
        self.check_what_a_task_may_do(self.logs("look"), "daemon" if root else pwd.getpwuid(os.getuid()).pw_name)
        self.assertEqual(len(self.sockets()), 2)
        if root:
            for path in self.sockets():
                self.assertIn("PermissionError", self.connect_as("nobody", path))
                self.assertIn("PermissionError", self.connect_as("daemon", path), "only inside of the task's mounts")
        self.an_agent_is_killed()
        self.cluster.berth("job", "cancel", "look")
        self.cluster.wait_job("look", "CANCELLED")
        self.assertEqual(self.sockets(), [])

    def an_agent_is_killed(self):
        """The next agent listens again, at the same place in the task's mounts."""
        ask = [*"exec look -n -- sh -c".split(), '$BERTH job get "$BERTH_JOB" | tail -n 1']
        self.assertIn("look", self.cluster.berth(*ask))
        for agent in self.cluster.agents.values():
            agent.kill()
            agent.start()
        wait_until(lambda: self.cluster.run_berth(*ask).stdout.startswith("look"), 60, "the sockets are there again")
        self.cluster.server.kill()
        self.cluster.server.start()
        wait_until(lambda: self.cluster.run_berth(*ask).stdout.startswith("look"), 60, "with the next berthd as well")

    def test_a_launcher_reaches_every_sibling(self):
        self.begin()
        self.cluster.wait_nodes(2)
        self.cluster.create_queue("q")
        self.submit(self.job("mpi", LAUNCH))
        self.cluster.wait_job("mpi", "SUCCEEDED", "FAILED", "RUNNING")
        wait_until(lambda: "launched" in self.logs("mpi"), 60, "all have answered")
        self.assertEqual(sorted(line for line in self.logs("mpi").splitlines() if line.startswith("rank")),
                         ["rank 0 of 2", "rank 1 of 2"])

    def test_without_namespaces(self):
        self.begin(sharedTmp=True, sharedPid=True, sharedShm=True)
        self.cluster.wait_nodes(2)
        self.cluster.create_queue("q")
        self.submit(self.job("mpi", LAUNCH))
        wait_until(lambda: "launched" in self.logs("mpi"), 60, "all have answered")
        self.assertTrue(all(path.parent.name == "berth" for path in self.sockets()), self.sockets())
        if os.getuid() == 0:
            self.assertEqual(self.connect_as("nobody", self.sockets()[0]), "")
            self.assertIn("PermissionError", self.connect_as("daemon", self.sockets()[0]))

    def test_calls_end_with_the_task(self):
        self.begin()
        self.cluster.wait_nodes(2)
        self.cluster.create_queue("q")
        begun = self.place / "begun"
        begun.touch()
        begun.chmod(0o666)
        self.submit(self.job("ends", f"""[ "$BERTH_GROUP_INDEX" = 0 ] || exec sleep 100000
            until $BERTH exec "$BERTH_JOB" --task w-1 -n -- true; do sleep 0.2; done
            $BERTH exec "$BERTH_JOB" --task w-1 -n -- sh -c 'echo begun > $0; exec sleep 100001' {begun} &
            until [ -s {begun} ]; do sleep 0.1; done"""))
        wait_until(lambda: begun.read_text(), 60, "the command runs on the sibling")
        wait_until(lambda: not self.runs("100001"), 20, "it ends with the task that began it")
        self.cluster.berth("job", "cancel", "ends")

    @staticmethod
    def runs(word):
        return any(word.encode() in path.read_bytes().split(b"\0") for path in pathlib.Path("/proc").glob("[0-9]*/cmdline")
                   if path.exists())

    def test_with_rules_and_identities_of_nodes(self):
        self.check_with_rules(identities=True)

    def test_with_rules_and_common_names_of_agents(self):
        self.check_with_rules(identities=False)

    def check_with_rules(self, identities):
        home = pathlib.Path(tempfile.mkdtemp(prefix="berth-task-keys-"))
        self.addCleanup(shutil.rmtree, home)
        keys = Keys(home)
        users = {user: keys.issue(user, f"URI:spiffe://berth/user/{user}") for user in ("root", "ada", "bob")}
        names = {name: f"URI:spiffe://berth/node/{name}" if identities else f"DNS:{name}" for name in ("n1", "n2")}
        self.begin({"tls": keys.issue("server", "DNS:localhost,IP:127.0.0.1"), "access": {"nodeIdentities": identities}},
                   {name: {"tls": keys.issue(f"node-{name}", of)} for name, of in names.items()})

        def berth(user, *arguments, stdin=None, code=0):
            flags = [f"--tls-{key}={path}" for key, path in users[user].items()]
            result = subprocess.run([str(BIN / "berth"), "--server", self.cluster.server.address, *flags, *arguments],
                                    capture_output=True, text=True, timeout=60, input=stdin)
            self.assertEqual(result.returncode, code, result.stdout + result.stderr)
            return result.stdout + result.stderr

        self.logs = lambda job, task="w-0": berth("root", "job", "logs", job, "--task", task)
        wait_until(lambda: berth("root", "node", "list").count("Ready") == 2, 60, "two ready nodes")
        berth("root", "queue", "create", "q")
        berth("root", "access", "init", "--everyone", "none")
        berth("root", "access", "grant", "submitter", "--user", "ada", "--queue", "q")
        berth("root", "access", "grant", "submitter", "--user", "bob", "--queue", "q")
        # Of the same owner: a task has no rights of its owner.
        berth("ada", "submit", "--name", "other", "--queue", "q", "--cpu", "64", "--", "true")
        group = {"name": "w", "replicas": 2, "resources": {"cpu": 1}, "command": ["sh", "-c", LOOK],
                 "env": [{"name": "BERTH", "value": str(self.berth_program)}]}
        berth("ada", "apply", "-f", "-", stdin=json.dumps(
            {"apiVersion": "berth/v1", "kind": "Job", "name": "look", "queue": "q", "groups": [group]}))
        wait_until(lambda: "== end" in self.logs("look"), 60, "the commands have ended")
        self.check_what_a_task_may_do(self.logs("look"), "nobody" if os.getuid() == 0 else pwd.getpwuid(os.getuid()).pw_name)
        self.assertIn("job.exec", berth("bob", "exec", "look", "--", "true", code=1), "who is no task of it")
        berth("ada", "job", "cancel", "look")
        wait_until(lambda: not self.sockets(), 30, "the sockets are gone")


if __name__ == "__main__":
    unittest.main()
