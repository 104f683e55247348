"""Tasks of Airflow that are jobs: `airflow dags test`, and a real scheduler and triggerer with many deferred tasks and kills."""
import contextlib
import json
import os
import pathlib
import sqlite3
import subprocess
import sys
import time
import unittest
import urllib.request

import world

import berth

DAGS = '''
import berth
from airflow.sdk import DAG, task
from berth.plugins.airflow import BerthOperator

SMALL = berth.R(cpu="50m", memory="32Mi")
MANIFEST = """
apiVersion: berth/v1
kind: Job
name: greet
queue: research
groups:
- name: main
  resources: {cpu: 50m, memory: 32Mi}
  command: [sh, -c, "for n in 1 2 3; do echo hello {{ ds_nodash }} $n; sleep 0.3; done; exit {{ params.code }}"]
"""


def job(*command):
    return berth.Job(queue="research", groups=[berth.Group(command=list(command), resources=SMALL)])


with DAG("plain", params={"code": 0}) as plain:
    first = BerthOperator(task_id="first", job=MANIFEST)
    second = BerthOperator(task_id="second", job=job("echo", "after"), deferrable=True)

    @task
    def names(one, two):
        print("names:", one, two)

    first >> second >> names("{{ ti.xcom_pull('first') }}", "{{ ti.xcom_pull('second') }}")

with DAG("failing", params={"code": 3}):
    BerthOperator(task_id="only", job=MANIFEST)

with DAG("deferred_failing", params={"code": 4}):
    BerthOperator(task_id="only", job=MANIFEST, deferrable=True)

with DAG("refused"):
    BerthOperator(task_id="only", job=berth.Job(queue="nowhere", groups=[berth.Group(command=["true"])]))

with DAG("long"):
    BerthOperator(task_id="waiting", job=job("sleep", "600"))
    BerthOperator(task_id="deferred", job=job("sleep", "600"), deferrable=True)

with DAG("many", max_active_tasks=MANY):
    BerthOperator.partial(task_id="one", deferrable=True).expand(job=[job("sleep", "30") for _ in range(MANY)])
'''
MANY = 30


class Airflow(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = world.start(agents=4)
        cls.addClassCleanup(cls.cluster.stop)
        cls.home = cls.cluster.home / "airflow"
        (cls.home / "dags").mkdir(parents=True)
        (cls.home / "dags" / "all.py").write_text(DAGS.replace("MANY", str(MANY)))
        cls.url = f"http://127.0.0.1:{world.berth_harness.take_ports(1)}"
        cls.environment = {
            **os.environ, "AIRFLOW_HOME": str(cls.home), "BERTH_SERVER": cls.cluster.server.address,
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False", "AIRFLOW__CORE__UNIT_TEST_MODE": "False",
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True", "AIRFLOW__CORE__PARALLELISM": "4",
            "AIRFLOW__API__PORT": cls.url.rpartition(":")[2], "AIRFLOW__API__BASE_URL": cls.url, "AIRFLOW__API__HOST": "127.0.0.1",
            "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{cls.url}/execution/", "AIRFLOW__API_AUTH__JWT_SECRET": "0" * 64,
            "AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL": "5", "AIRFLOW__SCHEDULER__SCHEDULER_HEARTBEAT_SEC": "1",
            "PATH": f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"}
        cls.airflow("db", "migrate")

    @classmethod
    def airflow(cls, *arguments, code=0):
        result = subprocess.run(["airflow", *arguments], capture_output=True, text=True, timeout=300, env=cls.environment)
        assert result.returncode == code, f"{arguments}: {result.returncode}\n{result.stdout[-6000:]}{result.stderr[-3000:]}"
        return result.stdout + result.stderr

    def test_success_output_and_names(self):
        said = self.airflow("dags", "test", "plain", "2026-11-28")
        for word in ("hello 20261128 1", "hello 20261128 3", "after", "DagRun Finished", "state=success"):
            self.assertIn(word, said)
        with berth.Client(self.cluster.server.address) as client:
            jobs = {job.name.rpartition("-")[0]: client.get(job.name) for job in client.jobs()}
        self.assertEqual({"greet", "plain-second"} - set(jobs), set())
        self.assertEqual(jobs["greet"].annotations["airflow/task"], "first")
        self.assertIn(f"names: {jobs['greet'].name} {jobs['plain-second'].name}", said)

    def test_failures(self):
        for dag, text in (("failing", "exited with 3"), ("deferred_failing", "exited with 4"), ("refused", 'no queue "nowhere"')):
            with self.subTest(dag):
                said = self.airflow("dags", "test", dag, "2026-11-28", code=1)
                self.assertIn(text, said)
                self.assertIn("state=failed", said)

    def test_a_real_scheduler_with_deferred_tasks_and_kills(self):
        """Deferred tasks share one connection of the triggerer, and tasks that a person ends cancel their jobs."""
        self.start("scheduler", "dag-processor", "triggerer", "api-server")
        self.airflow("dags", "unpause", "many")
        self.airflow("dags", "unpause", "long")
        self.trigger("long")
        with berth.Client(self.cluster.server.address) as client:
            def running():
                return {job.name.rpartition("-")[0] for job in client.jobs(active=True) if job.status.state == "Running"}

            world.berth_harness.wait_until(lambda: running() == {"long-waiting", "long-deferred"}, 120, "both jobs", interval_s=0.5)
            world.berth_harness.wait_until(lambda: self.states("long").get("deferred") == 1, 60, "deferred", interval_s=1)
            # Until then nobody runs who could cancel its job (docs/users/python-plugins.md).
            world.berth_harness.wait_until(self.trigger_runs, 60, "its trigger", interval_s=1)
            self.end_tasks("long")
            world.berth_harness.wait_until(lambda: not running(), 150, "cancelled jobs", interval_s=0.5)
            reasons = {client.get(job.name).status.cancel_reason for job in client.jobs(name="long-*")}
            self.assertEqual(reasons, {"its task in Airflow was ended"})
            self.trigger("many")  # long enough that Airflow has noted each deferral before its trigger fires
            world.berth_harness.wait_until(lambda: self.states("many").get("success") == MANY, 500, "all deferred tasks", interval_s=3)
            self.assertEqual(len(list(client.jobs(name="many-*"))), MANY)

    def database(self, statement, *values):
        with contextlib.closing(sqlite3.connect(self.home / "airflow.db", timeout=30)) as connection:
            return connection.execute(statement, values).fetchall()

    def states(self, dag):
        return dict(self.database("select state, count(*) from task_instance where dag_id = ? group by state", dag))

    def trigger_runs(self):
        """A triggerer has taken it, and has had time to begin."""
        rows = self.database("select triggerer_id from trigger join task_instance on trigger_id = trigger.id where dag_id = 'long'")
        if any(triggerer for triggerer, in rows):
            time.sleep(5)
            return True
        return False

    def start(self, *services):
        """Each is a process of Airflow, and ends with the test."""
        for service in services:
            log = (self.home / f"{service}.log").open("w")
            self.addCleanup(log.close)
            process = subprocess.Popen(["airflow", service], stdout=log, stderr=subprocess.STDOUT, env=self.environment)
            self.addCleanup(process.wait, 60)
            self.addCleanup(process.terminate)
        world.berth_harness.wait_until(lambda: len(self.database("select dag_id from serialized_dag")) >= 6, 180, "the DAGs",
                                       interval_s=1)

    def api(self, method, path, body):
        request = urllib.request.Request(f"{self.url}/{path}", json.dumps(body).encode(), method=method, headers={
            "Content-Type": "application/json", "Authorization": f"Bearer {self.token}"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    @property
    def token(self):
        with urllib.request.urlopen(f"{self.url}/auth/token", timeout=60) as answer:
            return json.load(answer)["access_token"]

    def trigger(self, dag):
        self.airflow("dags", "trigger", dag, "--run-id", "one")

    def end_tasks(self, dag):
        """As a person does on the page."""
        for task in ("waiting", "deferred"):
            self.api("PATCH", f"api/v2/dags/{dag}/dagRuns/one/taskInstances/{task}", {"new_state": "failed"})


if __name__ == "__main__":
    unittest.main()
