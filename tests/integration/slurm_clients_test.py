#!/usr/bin/env python3
"""Programs that nobody here wrote, unmodified and from PyPI, run real work on a Berth of four nodes through the commands of
Slurm. Versions are pinned; each has a virtual environment in build/PRESET/slurm-clients, which is kept.

    slurm_clients_test.py               # a short choice, as deploy/test runs it
    CASES=all slurm_clients_test.py     # all of them
"""
import os
import pathlib
import shutil
import subprocess
import unittest

from berth_api import BUILD
from berth_harness import wait_until
from slurm_world import SlurmWorld

VERSIONS = {
    "submitit": ["submitit==1.5.4", "cloudpickle==3.1.2"],
    "snakemake": ["snakemake==9.27.1", "snakemake-executor-plugin-slurm==2.8.0", "snakemake-executor-plugin-slurm-jobstep==0.6.1"],
    "dask": ["dask-jobqueue==0.9.0", "dask==2026.8.0", "distributed==2026.8.0"],
    "simple-slurm": ["simple-slurm==0.3.6"],
    "executorlib": ["executorlib==1.11.0", "pysqa==1.1.1"],
    "reframe": ["reframe-hpc==4.10.4"],
}
# The last version whose parts are all on Maven Central.
NEXTFLOW = "io.nextflow:nextflow:23.10.1"
ALL = os.environ.get("CASES") == "all"


def environment_of(name):
    """The folder of the virtual environment; a test is skipped if it cannot be made."""
    folder = pathlib.Path(BUILD) / "slurm-clients" / name
    mark = folder / "berth-versions"
    if mark.exists() and mark.read_text().split() == VERSIONS[name]:
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    for command in (["/usr/bin/python3", "-m", "venv", folder],
                    [folder / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check", "--retries", "1",
                     "--timeout", "20", *VERSIONS[name]]):
        result = subprocess.run([str(word) for word in command], capture_output=True, text=True)
        if result.returncode != 0:
            raise unittest.SkipTest(f"{name} cannot be installed: {result.stderr.strip().splitlines()[-1:]}")
    mark.write_text("\n".join(VERSIONS[name]))
    return folder


def nextflow_jars():
    """The folder of Nextflow's programs; a test is skipped if they cannot be had."""
    folder = pathlib.Path(BUILD) / "slurm-clients" / "nextflow"
    mark = folder / "berth-versions"
    if mark.exists() and mark.read_text() == NEXTFLOW:
        return folder / "jars"
    if not (shutil.which("mvn") and shutil.which("java")):
        raise unittest.SkipTest("Maven or Java is not installed")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    group, name, version = NEXTFLOW.split(":")
    (folder / "pom.xml").write_text(
        "<project><modelVersion>4.0.0</modelVersion><groupId>berth</groupId><artifactId>test</artifactId><version>1</version>"
        f"<dependencies><dependency><groupId>{group}</groupId><artifactId>{name}</artifactId><version>{version}</version>"
        "</dependency></dependencies></project>")
    result = subprocess.run(["mvn", "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=jars"], cwd=folder,
                            capture_output=True, text=True)
    if result.returncode != 0:
        raise unittest.SkipTest(f"{NEXTFLOW} cannot be installed: {result.stdout.strip().splitlines()[:1]}")
    mark.write_text(NEXTFLOW)
    return folder / "jars"


class SlurmClients(unittest.TestCase):
    def begin(self, name, **config):
        self.environment = environment_of(name) if name in VERSIONS else pathlib.Path("/nonexistent")
        self.world = SlurmWorld(self, **config)
        self.world.environment["PATH"] = f"{self.environment}/bin:{self.world.environment['PATH']}"
        # Tasks run as another user than this test, as everywhere in these tests: what they write must be open.
        self.world.environment["HOME"] = str(self.world.home)

    def python(self, text, *words, timeout_s=300):
        program = self.world.write("program.py", "import os\nos.umask(0)\n" + text)
        result = self.world.run(self.environment / "bin" / "python", program, *words, timeout_s=timeout_s)
        self.assertEqual(result.returncode, 0, f"{result.stdout}\n{result.stderr}\n{self.jobs()}")
        return result.stdout

    def jobs(self):
        return self.world.run("sacct", "-a", "-P", "-o", "JobID,JobName,State,ExitCode,NodeList,Reason").stdout

    def test_submitit(self):
        """Results, tracebacks, arrays, ranks over nodes, and a checkpoint by requeue after a signal of scancel."""
        self.begin("submitit")
        folder = self.world.home / "submitit"
        folder.mkdir()
        folder.chmod(0o777)
        said = self.python("""
import sys, time, submitit
folder = sys.argv[1]

class Work(submitit.helpers.Checkpointable):
    def __init__(self):
        self.steps = 0

    def __call__(self, log):
        self.steps += 1
        with open(log, "a") as file:
            file.write(f"start {self.steps}\\n")
        if self.steps == 1:
            time.sleep(600)
        return self.steps

def add(a, b):
    return a + b

def fail():
    raise ValueError("as asked")

def place():
    me = submitit.JobEnvironment()
    return me.global_rank, me.num_tasks, me.node, me.local_rank, len(set(me.hostnames))

executor = submitit.SlurmExecutor(folder=folder)
executor.update_parameters(time=5, job_name="proof", mem="100MB")
print(executor.submit(add, 1, 2).result())
print([job.result() for job in executor.map_array(add, range(6), [10] * 6)])
try:
    executor.submit(fail).result()
except submitit.core.utils.FailedJobError as error:
    print("as asked" in str(error))
job = executor.submit(Work(), folder + "/log")
while not os.path.exists(folder + "/log"):
    time.sleep(0.1)
job._interrupt(timeout=False)  # scancel --signal TERM, then USR2: it saves its state and requeues itself
print(job.result(), open(folder + "/log").read().split("\\n"))
wide = submitit.SlurmExecutor(folder=folder)
wide.update_parameters(time=5, nodes=2, ntasks_per_node=2)
print(wide.submit(place).results())
""", folder)
        self.assertEqual(said.splitlines(), [
            "3", "[10, 11, 12, 13, 14, 15]", "True", "2 ['start 1', 'start 2', '']",
            "[(0, 4, 0, 0, 2), (1, 4, 0, 1, 2), (2, 4, 1, 0, 2), (3, 4, 1, 1, 2)]"])

    @unittest.skipUnless(ALL, "CASES=all")
    def test_snakemake(self):
        """A workflow with a fan-out, by the Slurm executor plugin."""
        self.begin("snakemake")
        work = self.world.home / "flow"
        work.mkdir()
        work.chmod(0o777)
        (work / "Snakefile").write_text("""
rule all:
    input: "sum.txt"
rule part:
    output: "part-{i}.txt"
    resources: slurm_partition="default", slurm_account="lab", mem_mb=600, runtime=5, cpus_per_task=1
    shell: "umask 0; echo {wildcards.i} > {output}"
rule sum:
    input: expand("part-{i}.txt", i=range(3))
    output: "sum.txt"
    resources: slurm_partition="default", slurm_account="lab", mem_mb=600, runtime=5
    shell: "umask 0; cat {input} | paste -sd+ | bc > {output}"
""".replace("| paste -sd+ | bc", "| awk '{{s += $1}} END {{print s}}'"))
        # Its cache of sources is for its own user alone, and tasks run as another one.
        result = self.world.run("sh", "-c", f"umask 0; cd {work}; exec snakemake --executor slurm --jobs 4 --latency-wait 30 "
                                "--shared-fs-usage input-output persistence software-deployment sources storage-local-copies "
                                "--slurm-init-seconds-before-status-checks 2 --seconds-between-status-checks 2", timeout_s=400)
        logs = "".join(log.read_text() for log in sorted(work.glob(".snakemake/slurm_logs/*/*/*.log")))
        self.assertEqual(result.returncode, 0, f"{result.stdout}\n{result.stderr}\n{self.jobs()}\n{logs}")
        self.assertEqual((work / "sum.txt").read_text().strip(), "3")
        self.assertEqual(self.jobs().count("COMPLETED"), 4)

    @unittest.skipUnless(ALL, "CASES=all")
    def test_dask(self):
        """Workers as jobs, which come and go with the cluster object."""
        self.begin("dask")
        said = self.python("""
from dask_jobqueue import SLURMCluster
from distributed import Client

if __name__ == "__main__":
    cluster = SLURMCluster(queue="default", cores=1, processes=1, memory="500MB", walltime="00:10:00", interface="lo",
                           local_directory="/tmp", log_directory=".", scheduler_options={"dashboard": False})
    cluster.scale(jobs=3)
    client = Client(cluster)
    client.wait_for_workers(3, timeout=120)
    print(sum(client.gather(client.map(lambda x: x * x, range(20)))))
    client.close()
    cluster.close()
""")
        self.assertEqual(said.split()[-1], str(sum(x * x for x in range(20))))
        self.world.cluster.berth("cluster", "info")
        self.assertEqual(self.jobs().count("dask-worker"), 3)

    @unittest.skipUnless(ALL, "CASES=all")
    def test_simple_slurm(self):
        self.begin("simple-slurm")
        said = self.python("""
from simple_slurm import Slurm
slurm = Slurm(array=range(3), cpus_per_task=1, job_name="simple", output=f"simple-{Slurm.JOB_ARRAY_MASTER_ID}_{Slurm.JOB_ARRAY_ID}.out")
number = slurm.sbatch("echo index " + Slurm.SLURM_ARRAY_TASK_ID)
after = Slurm(dependency=dict(afterany=number), output="simple-last.out")
print(number, after.sbatch("echo last"))
""")
        number, last = said.split()[-2:]
        self.world.wait_state(last, "COMPLETED")
        self.assertEqual(self.world.read(f"simple-{number}_2.out"), "index 2\n")
        self.assertEqual(self.world.read("simple-last.out"), "last\n")

    @unittest.skipUnless(ALL, "CASES=all")
    def test_executorlib(self):
        """Functions by a pool in one job, whose workers srun starts."""
        self.begin("executorlib")
        self.world.write("pool.py", """
from executorlib import SlurmJobExecutor

def square(x):
    return x * x

if __name__ == "__main__":
    with SlurmJobExecutor(max_workers=2) as executor:
        print([future.result() for future in [executor.submit(square, i) for i in range(4)]])
""")
        number = self.world.sbatch("-n", "2", "-N", "1", "-o", "pool-%j", "--wrap", f"{self.environment}/bin/python pool.py")
        self.assertEqual(self.world.wait_state(number, "COMPLETED", "FAILED", timeout_s=200), "COMPLETED", self.world.read(f"pool-{number}"))
        self.assertIn("[0, 1, 4, 9]", self.world.read(f"pool-{number}"))

    @unittest.skipUnless(ALL, "CASES=all")
    def test_nextflow(self):
        """A workflow with its Slurm executor: #SBATCH lines, squeue with its format, and a task that fails once."""
        jars = nextflow_jars()
        self.begin("nextflow")
        self.world.write("main.nf", """
process part {
    errorStrategy 'retry'
    maxRetries 2
    input: val x
    output: path 'part.txt'
    script:
    \"\"\"
    umask 0
    test $x -ne 2 -o $task.attempt -ne 1
    echo $x > part.txt
    \"\"\"
}
process sum {
    input: path('part-*')
    output: stdout
    script: "cat part-* | awk '{s += \\$1} END {print s}'"
}
workflow { channel.of(1, 2, 3) | part | collect | sum | view { "sum is ${it.trim()}" } }
""")
        self.world.write("nextflow.config", "process { executor = 'slurm'; queue = 'default'; cpus = 1; memory = '200 MB'; time = '5m' }\n"
                         "executor { pollInterval = '1s'; queueStatInterval = '1s'; exitReadTimeout = '20s' }\n")
        result = self.world.run("sh", "-c", f"umask 0; exec java -cp '{jars}/*' nextflow.cli.Launcher -q run main.nf", timeout_s=300,
                                NXF_OFFLINE="true", NXF_HOME=str(self.world.home / "nxf"), NXF_ANSI_LOG="false")
        self.assertEqual(result.returncode, 0, f"{result.stdout}\n{result.stderr}\n{self.jobs()}")
        self.assertIn("sum is 6", result.stdout)
        # It goes by a file that the script writes, before the job has ended.
        wait_until(lambda: self.jobs().count("COMPLETED") == 4, 30, "the end of the last job")
        self.assertEqual(self.jobs().count("FAILED"), 1, self.jobs())

    @unittest.skipUnless(ALL, "CASES=all")
    def test_reframe(self):
        """A regression test with its Slurm scheduler."""
        self.begin("reframe")
        self.world.write("settings.py", """
site_configuration = {
    "systems": [{"name": "berth", "hostnames": [".*"], "partitions": [
        {"name": "nodes", "scheduler": "slurm", "launcher": "srun", "environs": ["plain"], "max_jobs": 4}]}],
    "environments": [{"name": "plain"}],
}
""")
        self.world.write("hello.py", """
import reframe as rfm
import reframe.utility.sanity as sn

@rfm.simple_test
class Hello(rfm.RunOnlyRegressionTest):
    valid_systems = ["*"]
    valid_prog_environs = ["*"]
    executable = "echo"
    executable_opts = ["rank", "$SLURM_PROCID"]
    num_tasks = 2
    num_tasks_per_node = 1
    time_limit = "5m"

    @sanity_function
    def check(self):
        return sn.assert_eq(sn.count(sn.findall(r"rank", self.stdout)), 2)
""")
        result = self.world.run("sh", "-c", "umask 0; exec reframe -C settings.py -c hello.py -r --prefix out", timeout_s=300)
        self.assertEqual(result.returncode, 0, f"{result.stdout}\n{result.stderr}\n{self.jobs()}")
        self.assertIn("PASSED", result.stdout)


if __name__ == "__main__":
    unittest.main()
