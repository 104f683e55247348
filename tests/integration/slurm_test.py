#!/usr/bin/env python3
"""The commands of Slurm on a real Berth of four nodes: what they promise, and that they refuse the rest by name."""
import json
import re
import shutil
import signal
import subprocess
import time
import unittest

from berth_harness import wait_until
from slurm_world import SlurmWorld

HAS_MPI = shutil.which("mpirun", path="/usr/bin") is not None and subprocess.run(
    ["/usr/bin/python3", "-c", "import mpi4py"], capture_output=True).returncode == 0
YAML = {"clusterName": "blue",
        "partitions": [{"name": "short", "queue": "default", "maxTime": "1h", "defaultTime": "10m"},
                       {"name": "fast", "queue": "default", "nodeLabels": {"disk": "fast"}}],
        "qos": [{"name": "free", "preemptible": True}], "features": {"ssd": "disk=fast"}}


class Slurm(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        # One cluster for all tests: their jobs are apart, and nothing is left behind that holds a node.
        cls.finish = []

        class Owner:
            _outcome = type("Outcome", (), {"result": type("Result", (), {"failures": [], "errors": []})()})()

            def addCleanup(self, function, *arguments):
                cls.finish.append((function, arguments))
        cls.world = SlurmWorld(Owner(), config=YAML)

    @classmethod
    def tearDownClass(cls):
        for function, arguments in reversed(cls.finish):
            function(*arguments)

    # ---- sbatch

    def test_script_environment_output_and_exit_code(self):
        world = self.world
        script = world.script("env.sh", 'env | grep -E "^(SLURM|MINE)" | sort; echo err >&2; echo "args $*"; exit 3',
                              "--job-name='my job(1)'", "-o '%x-%j.out'", "-e '%x-%j.err'", "--cpus-per-task=2", "-t 5")
        number = world.sbatch("--comment=note", script, "a b", "c", MINE="1 2", SLURM_FOO="old")
        self.assertEqual(world.wait_state(number, "FAILED", "COMPLETED"), "FAILED")
        out = world.read(f"my job(1)-{number}.out")
        for line in (f"SLURM_JOB_ID={number}", "SLURM_JOB_NAME=my job(1)", "SLURM_CPUS_PER_TASK=2", "SLURM_NTASKS=1",
                     "SLURM_NNODES=1", "SLURM_JOB_PARTITION=short", "SLURM_CLUSTER_NAME=blue", "MINE=1 2", "args a b c"):
            self.assertIn(line, out.splitlines())
        self.assertNotIn("SLURM_FOO", out)
        self.assertEqual(world.read(f"my job(1)-{number}.err"), "err\n")
        self.assertEqual(world.state(number, "JobName,State,ExitCode,Partition"), "my job(1)|FAILED|3:0|short")
        shown = world.ok("scontrol", "show", "job", number)
        self.assertIn(f"JobId={number} JobName=my job(1)", shown)
        self.assertIn("Comment=note", shown)
        self.assertIn("ExitCode=3:0", shown)
        self.assertEqual(world.ok("squeue", "-h", "-n", "my job(1)", "-t", "all", "-o", "%i %t"), f"{number} F\n")

    def test_order_of_command_line_environment_and_script(self):
        world = self.world
        script = world.script("order.sh", 'echo "$SLURM_JOB_NAME $SLURM_CPUS_PER_TASK $SLURM_JOB_ACCOUNT"', "-J script",
                              "-c 1", "-A script", "-o order-%j")
        number = world.sbatch("-Jline", script, SBATCH_JOB_NAME="environment", SBATCH_ACCOUNT="environment")
        world.wait_state(number, "COMPLETED")
        self.assertEqual(world.read(f"order-{number}"), "line 1 environment\n")

    def test_wrap_stdin_export_and_messages(self):
        world = self.world
        said = world.ok("sbatch", "-o", "wrap-%j", "--export=ONLY=7,PATH", "--wrap", 'echo "[$ONLY][$HIDDEN]"', HIDDEN="x")
        number = re.fullmatch(r"Submitted batch job (\d+)\n", said)[1]
        world.wait_state(number, "COMPLETED")
        self.assertEqual(world.read(f"wrap-{number}"), "[7][]\n")
        number = world.sbatch("-o", "none-%j", "--export=NONE", "--wrap", 'srun sh -c "echo [$HIDDEN] $SLURM_NTASKS"', HIDDEN="x")
        world.wait_state(number, "COMPLETED")
        self.assertEqual(world.read(f"none-{number}"), "[] 1\n")
        number = world.sbatch("-o", "stdin-%j", stdin="#!/bin/bash\necho from stdin\n")
        world.wait_state(number, "COMPLETED")
        self.assertEqual(world.read(f"stdin-{number}"), "from stdin\n")
        self.assertEqual(world.run("sbatch", "--wait", "-o", "/dev/null", "--wrap", "exit 4").returncode, 4)

    def test_refusals_come_before_anything_is_submitted(self):
        world = self.world
        before = world.ok("squeue", "-h", "-t", "all", "-o", "%i")
        cases = {("--nodelist=n1",): "--nodelist is not built: use --exclude",
                 ("--exclusive",): "--exclusive is not built: ask for all CPUs",
                 ("--frobnicate",): "unknown option --frobnicate",
                 ("--dependency=singleton",): "only afterok, afterany and afternotok are built",
                 ("--dependency=afterok:1",): "there is no job 1",
                 ("--time=2:00:00",): "--time: at most 01:00:00 in partition short",
                 ("--partition=long",): '--partition: there is no "long"',
                 ("--qos=high",): '--qos: there is no "high"',
                 ("--constraint=gpu80",): '--constraint: there is no feature "gpu80"',
                 ("--constraint=a|b",): "only features joined by & are built",
                 ("--mem=0",): "0, all memory of a node, is not built",
                 ("--output=%q",): 'expected one of %j',
                 ("--gpus=3", "--nodes=2"): "must be a multiple of the 2 nodes",
                 ("--nodes=3", "--ntasks=2"): "each node needs a task",
                 ("--ntasks=1000",): "no nodes can hold 1000 tasks",
                 ("-M", "red"): 'there is no cluster "red"'}
        for words, said in cases.items():
            with self.subTest(words):
                self.assertIn(said, world.refused("sbatch", *words, "--wrap", "true"))
        script = world.script("bad.sh", "true", "-J x", "--switches=1")
        self.assertIn("script line 3: --switches is not built: write a manifest", world.refused("sbatch", script))
        self.assertIn("first line must begin with #!", world.refused("sbatch", world.write("none.sh", "echo\n")))
        self.assertIn("SBATCH_NOSUCH is not known", world.refused("sbatch", "--wrap", "true", SBATCH_NOSUCH="1"))
        self.assertEqual(world.ok("squeue", "-h", "-t", "all", "-o", "%i"), before)
        said = world.run("sbatch", "--wckey=x", "--mail-type=END", "-o", "/dev/null", "--wrap", "true")
        self.assertEqual(said.returncode, 0)
        self.assertIn("--wckey has no meaning here", said.stderr)
        self.assertIn("--mail-type has no meaning here: Berth sends no mail", said.stderr)

    def test_array_with_a_limit_its_numbers_and_states(self):
        world = self.world
        script = world.script("array.sh", 'echo "$SLURM_ARRAY_JOB_ID $SLURM_ARRAY_TASK_ID $SLURM_ARRAY_TASK_COUNT '
                              '$SLURM_ARRAY_TASK_MIN $SLURM_ARRAY_TASK_MAX"; [ "$SLURM_ARRAY_TASK_ID" != 3 ]',
                              "--array=1-3,7%2", "-o array-%A_%a")
        number = world.sbatch(script)
        wait_until(lambda: len(world.ok("squeue", "-h", "-j", number, "-r").splitlines()) == 0, 60, "the array's end")
        rows = dict(line.split("|") for line in world.ok("sacct", "-n", "-P", "-o", "JobID,State", "-j", number).splitlines())
        self.assertEqual(rows, {f"{number}_1": "COMPLETED", f"{number}_2": "COMPLETED", f"{number}_3": "FAILED", f"{number}_7": "COMPLETED"})
        self.assertEqual(world.read(f"array-{number}_7"), f"{number} 7 4 1 7\n")
        self.assertEqual(world.state(f"{number}_3", "ExitCode"), "1:0")
        waiting = world.sbatch("--hold", "--array=0-9%3", "-o", "/dev/null", "--wrap", "sleep 100")
        self.assertEqual(world.ok("squeue", "-h", "-j", waiting, "-o", "%i %t %r %K"), f"{waiting}_[0-9%3] PD JobHeldUser 0-9%3\n")
        self.assertEqual(len(world.ok("squeue", "-h", "-r", "-j", waiting).splitlines()), 10)
        world.ok("scontrol", "release", waiting)
        wait_until(lambda: world.ok("squeue", "-h", "-t", "R", "-j", waiting, "-o", "%K").split() == ["0", "1", "2"], 60, "three run")
        world.ok("scancel", f"{waiting}_1")
        world.wait_state(f"{waiting}_1", "CANCELLED")
        self.assertIn(f"{waiting}_[4-9%3]", wait_until(lambda: world.ok("squeue", "-h", "-t", "PD", "-j", waiting, "-o", "%i"), 60, "the rest"))
        self.assertIn(f"index 9 of array {waiting} has no job", world.refused("scancel", f"{waiting}_9"))
        world.ok("scancel", waiting)
        wait_until(lambda: world.ok("squeue", "-h", "-j", waiting) == "", 60, "its end")

    def test_dependencies_begin_and_time_limit(self):
        world = self.world
        first = world.sbatch("--hold", "-o", "/dev/null", "--wrap", "exit 1")
        good = world.sbatch(f"--dependency=afterok:{first}", "-o", "/dev/null", "--wrap", "true")
        other = world.sbatch("-d", f"afternotok:{first}", "-o", "/dev/null", "--wrap", "true")
        later = world.sbatch("--begin=now+1hour", "-o", "/dev/null", "--wrap", "true")
        self.assertEqual(world.state(good, "State,Reason"), "PENDING|Dependency")
        self.assertEqual(world.state(later, "State,Reason"), "PENDING|BeginTime")
        self.assertEqual(world.ok("squeue", "-h", "-j", good, "-o", "%E"), f"afterok:{first}\n")
        world.ok("scontrol", "release", first)
        world.wait_state(first, "FAILED")
        self.assertEqual(world.wait_state(good, "CANCELLED", "COMPLETED"), "CANCELLED")
        self.assertEqual(world.state(good, "Reason"), "DependencyNeverSatisfied")
        world.wait_state(other, "COMPLETED")
        world.ok("scancel", later)
        timed = world.sbatch("--time=0:02", "-o", "/dev/null", "--wrap", "sleep 100")
        self.assertEqual(world.wait_state(timed, "TIMEOUT", "FAILED", "COMPLETED"), "TIMEOUT")

    def test_signal_before_the_limit_goes_to_steps_or_to_the_script(self):
        world = self.world
        trap = "trap 'echo script got it; exit 9' USR1; "
        wait = "i=0; while [ $i -lt 100 ]; do sleep 0.1; i=$((i + 1)); done"
        batch = world.sbatch("-t", "0:20", "--signal=B:USR1@17", "-o", "sig-%j", "--wrap", trap + wait)
        step = world.write("step.sh", "#!/bin/sh\ntrap 'echo step got it; exit 8' USR1\n" + wait + "\n")
        steps = world.sbatch("-t", "0:20", "--signal=USR1@17", "-o", "sig-%j", "--wrap", f"srun {step}; echo step gave $?")
        world.wait_state(batch, "FAILED")
        self.assertEqual(world.read(f"sig-{batch}"), "script got it\n")
        world.wait_state(steps, "COMPLETED")
        self.assertIn("step got it\n", world.read(f"sig-{steps}"))
        self.assertIn("step gave 8\n", world.read(f"sig-{steps}"))

    def test_scancel_signals_and_kills(self):
        world = self.world
        script = "trap 'echo got USR2' USR2; echo ready; i=0; while [ $i -lt 600 ]; do sleep 0.1; i=$((i + 1)); done"
        number = world.sbatch("-o", "kill-%j", "--wrap", script)
        wait_until(lambda: "ready" in world.read(f"kill-{number}"), 60, "the script")
        world.ok("scancel", "--batch", "--signal=USR2", number)
        wait_until(lambda: "got USR2" in world.read(f"kill-{number}"), 30, "the signal")
        self.assertEqual(world.state(number), "RUNNING")
        world.ok("scancel", number)
        world.wait_state(number, "CANCELLED")
        world.ok("scancel", number)  # it has ended: no error, as in Slurm
        self.assertIn("Invalid job id specified", world.refused("scancel", "17"))
        mine = world.sbatch("-J", "by-name", "-o", "/dev/null", "--wrap", "sleep 600")
        world.ok("scancel", "--name=by-name", "--me")
        world.wait_state(mine, "CANCELLED")

    def test_hold_release_requeue_and_update(self):
        world = self.world
        number = world.sbatch("--hold", "-o", "requeue-%j", "--open-mode=append", "--wrap",
                              'echo "run ${SLURM_RESTART_COUNT:-0}"; sleep 600')
        self.assertEqual(world.state(number, "State,Reason"), "PENDING|JobHeldUser")
        world.ok("scontrol", "update", f"JobId={number}", "TimeLimit=30", "Nice=5", "JobName=renamed")
        self.assertEqual(world.ok("squeue", "-h", "-j", number, "-o", "%j %l %y"), "renamed 30:00 5\n")
        self.assertIn("NumNodes cannot be changed", world.refused("scontrol", "update", f"JobId={number}", "NumNodes=2"))
        world.ok("scontrol", "release", number)
        wait_until(lambda: world.read(f"requeue-{number}") == "run 0\n", 60, "the first run")
        world.ok("scontrol", "requeue", number)
        wait_until(lambda: world.read(f"requeue-{number}") == "run 0\nrun 1\n", 60, "the second run")
        self.assertEqual(world.state(number, "Restarts"), "1")
        self.assertIn("use scontrol requeuehold", world.refused("scontrol", "hold", number))
        world.ok("scontrol", "requeuehold", number)
        wait_until(lambda: world.state(number, "State,Reason") == "PENDING|JobHeldUser", 60, "the hold")
        world.ok("scancel", number)
        once = world.sbatch("--no-requeue", "-o", "/dev/null", "--wrap", "sleep 600")
        world.wait_state(once, "RUNNING")
        self.assertIn("--no-requeue", world.refused("scontrol", "requeue", once))
        world.ok("scancel", once)
        self.assertIn("suspend is not built", world.refused("scontrol", "suspend", once))

    def test_requeue_of_its_own_job_from_inside(self):
        world = self.world
        number = world.sbatch("-o", "own-%j", "--open-mode=append", "--wrap",
                              'echo "run ${SLURM_RESTART_COUNT:-0}"; [ -n "$SLURM_RESTART_COUNT" ] || '
                              '{ scontrol requeue $SLURM_JOB_ID; sleep 600; }')
        world.wait_state(number, "COMPLETED")
        self.assertEqual(world.read(f"own-{number}"), "run 0\nrun 1\n")

    # ---- squeue, sacct, sinfo, scontrol show

    def test_sinfo_by_partitions_and_nodes(self):
        world = self.world
        self.assertEqual(world.ok("sinfo", "-h", "-o", "%P %a %l %D"), "short* up 1:00:00 4\nfast up infinite 2\n")
        self.assertEqual(world.ok("sinfo", "-h", "-N", "-p", "fast", "-o", "%N %c"), "n1 4\nn2 4\n")
        self.assertEqual(world.ok("sinfo", "--version").split()[0], "slurm")
        self.assertIn("PartitionName=fast", world.ok("scontrol", "show", "partition", "fast"))
        self.assertIn("NodeName=n3", world.ok("scontrol", "show", "node", "n3"))
        self.assertEqual(world.ok("scontrol", "show", "hostnames", "a[1-3,07],b"), "a1\na2\na3\na07\nb\n")
        self.assertEqual(world.ok("scontrol", "show", "hostlist", "a1,a2,a3,b"), "a[1-3],b\n")
        world.cluster.berth("node", "cordon", "n4", "--reason", "disk")
        self.assertEqual(world.ok("sinfo", "-h", "-R", "-o", "%E %N"), "disk n4\n")
        world.cluster.berth("node", "uncordon", "n4")

    def test_partition_and_constraint_choose_the_nodes(self):
        world = self.world
        for options in (["-p", "fast"], ["-C", "ssd"]):
            number = world.sbatch(*options, "-N2", "-o", "/dev/null", "--wrap", "true")
            world.wait_state(number, "COMPLETED")
            self.assertEqual(world.state(number, "NodeList"), "n[1-2]")
        number = world.sbatch("-x", "n[1-3]", "-o", "/dev/null", "--wrap", "true")
        world.wait_state(number, "COMPLETED")
        self.assertEqual(world.state(number, "NodeList"), "n4")

    def test_json_and_fields(self):
        world = self.world
        number = world.sbatch("-J", 'q"uote', "-o", "/dev/null", "--wrap", "true")
        world.wait_state(number, "COMPLETED")
        job = json.loads(world.ok("squeue", "--json", "-j", number, "-t", "all"))["jobs"][0]
        self.assertEqual((job["job_id"], job["name"], job["job_state"]), (int(number), 'q"uote', ["COMPLETED"]))
        job = json.loads(world.ok("sacct", "--json", "-j", number))["jobs"][0]
        self.assertEqual(job["state"]["current"], ["COMPLETED"])
        self.assertEqual(job["exit_code"]["return_code"]["number"], 0)
        # Every letter and name is accepted, as portals ask for all of them.
        letters = "aAbBcCdDeEfFgGhHiIjJkKlLmMnNoOpPqQrRStTuUvVwWxXyYzZ"
        line = world.ok("squeue", "-h", "-t", "all", "-j", number, "--noconvert", "-o", ";".join(f"%{c}" for c in letters))
        self.assertEqual(line.count(";"), len(letters) - 1)
        names = world.ok("sacct", "--helpformat").split()
        line = world.ok("sacct", "-n", "-P", "-j", number, "-o", ",".join(names))
        self.assertEqual(line.count("|"), len(names) - 1)
        self.assertIn("Berth does not measure it", world.refused("sacct", "-o", "TotalCPU"))

    # ---- srun and salloc

    def test_steps_in_an_allocation(self):
        world = self.world
        script = world.script("steps.sh", """
scontrol show hostnames
srun -l sh -c 'echo $SLURM_PROCID $SLURM_LOCALID $SLURM_NODEID $SLURM_NTASKS $SLURM_STEP_ID' | sort
echo word | srun -n 2 -l cat | sort
srun -n 2 sh -c 'exit $((3 + SLURM_PROCID))'; echo "code $?"
srun -o steps-%j.%s.%t -n 2 sh -c 'echo task $SLURM_PROCID'
srun -N1 -n9 true; echo "too many $?"
srun nosuchprogram; echo "missing $?"
""", "--nodes=2", "--ntasks-per-node=2", "-o steps-%j")
        number = world.sbatch(script)
        world.wait_state(number, "COMPLETED", "FAILED")
        said = world.read(f"steps-{number}")
        nodes = said.splitlines()[:2]
        self.assertEqual(len(set(nodes)), 2, said)
        for line in ("0: 0 0 0 4 0", "1: 1 1 0 4 0", "2: 2 0 1 4 0", "3: 3 1 1 4 0", "0: word", "1: word", "code 4", "too many 1", "missing 2"):
            self.assertIn(line, said.splitlines())
        self.assertRegex(said, r"srun: error: n\d: task 0: Exited with exit code 3")
        self.assertEqual(world.read(f"steps-{number}.3.1"), "task 1\n")

    def test_steps_wait_for_cpus_that_others_hold(self):
        world = self.world
        number = world.sbatch("-n", "2", "-N", "1", "-o", "book-%j", "--wrap",
                              'for i in 1 2 3 4; do srun -n1 sh -c "echo begin; sleep 0.7; echo end" & done; wait')
        world.wait_state(number, "COMPLETED")
        running = most = 0
        for line in world.read(f"book-{number}").splitlines():
            running += {"begin": 1, "end": -1}.get(line, 0)
            most = max(most, running)
        self.assertEqual(most, 2)

    def test_srun_alone_and_salloc(self):
        world = self.world
        result = world.run("srun", "-Q", "-n", "2", "-N", "2", "-l", "sh", "-c", 'read x; echo "$x on $SLURM_NODEID"; exit $SLURM_PROCID', stdin="hello\n")
        self.assertEqual(sorted(result.stdout.splitlines()), ["0: hello on 0", "1: hello on 1"])
        self.assertEqual(result.returncode, 1)
        result = world.run("salloc", "-N2", "sh", "-c", "echo $SLURM_JOB_ID $SLURM_NNODES; srun -l sh -c 'echo $SLURMD_NODENAME' | sort; exit 5")
        self.assertEqual(result.returncode, 5, result.stderr)
        number, count = result.stdout.splitlines()[0].split()
        self.assertEqual(count, "2")
        self.assertEqual(len(result.stdout.splitlines()), 3)
        self.assertIn(f"salloc: Relinquishing job allocation {number}", result.stderr)
        world.wait_state(number, "COMPLETED")

    def test_a_killed_srun_leaves_no_job(self):
        world = self.world
        process = subprocess.Popen(["srun", "-J", "orphan", "sleep", "600"], cwd=world.home, env=world.environment,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_until(lambda: world.ok("squeue", "-h", "-n", "orphan", "-o", "%t") == "R\n", 60, "it runs")
        time.sleep(1)
        process.kill()
        process.wait()
        wait_until(lambda: world.ok("squeue", "-h", "-n", "orphan", "-o", "%t") == "", 60, "its end")

    def test_interrupt_reaches_the_tasks(self):
        world = self.world
        ready = world.home / "ready"
        process = subprocess.Popen(["srun", "-Q", "sh", "-c", f"trap 'echo caught; exit 6' TERM; touch {ready}; while :; do sleep 0.1; done"],
                                   cwd=world.home, env=world.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        wait_until(ready.exists, 60, "the task")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.communicate(timeout=30)[0], "caught\n")
        self.assertEqual(process.returncode, 6)

    @unittest.skipUnless(HAS_MPI, "Open MPI or mpi4py is not installed")
    def test_mpirun_as_it_is_over_srun_and_over_berth_rsh(self):
        world = self.world
        ring = world.write("ring.py", "import os\nfrom mpi4py import MPI\nw = MPI.COMM_WORLD\n"
                           "os.write(1, b'sum %d of %d\\n' % (w.allreduce(w.rank), w.size))\n")
        usual = ("--mca oob_tcp_if_include lo --mca btl tcp,self --mca btl_tcp_if_include lo --mca plm_base_verbose 0 "
                 "--map-by node")
        for ways in ("", "--mca plm rsh --mca ras ^slurm --leave-session-attached --mca plm_rsh_no_tree_spawn 1 "
                     "--hostfile $BERTH_HOSTFILE"):
            with self.subTest(ways):
                number = world.sbatch("-N3", "-t", "2", "-o", "mpi-%j", "--wrap", f"mpirun {usual} {ways} -np 3 /usr/bin/python3 {ring}")
                state = world.wait_state(number, "COMPLETED", "FAILED", "TIMEOUT", timeout_s=150)
                self.assertEqual((state, world.read(f"mpi-{number}").count("sum 3 of 3")), ("COMPLETED", 3), world.read(f"mpi-{number}"))

    def test_shares_priorities_and_what_there_is_not(self):
        world = self.world
        self.assertIn("default", world.ok("sshare", "-n", "-P", "-o", "Account,EffectvUsage"))
        self.assertEqual(world.ok("sshare", "-U", "--noheader"), "")
        number = world.sbatch("--hold", "--priority=7", "-o", "/dev/null", "--wrap", "true")
        self.assertEqual(world.ok("sprio", "-h", "-j", number).split()[-1], "7")
        world.ok("scancel", number)
        self.assertIn("there are no associations", world.refused("sacctmgr", "list", "user"))
        self.assertIn("is not kept", world.refused("sstat"))
        self.assertIn("--mpi=pmix: there is no PMI or PMIx server: write mpirun COMMAND",
                      world.refused("srun", "--mpi=pmix", "true"))

    def test_help_names_only_what_is_done(self):
        for command in ("sbatch", "srun", "salloc", "squeue", "sacct", "scancel", "scontrol", "sinfo", "sshare", "sprio"):
            text = self.world.ok(command, "--help")
            self.assertTrue(text.startswith(f"Usage: {command}"))
            self.assertNotIn("--switches", text)


if __name__ == "__main__":
    unittest.main()
