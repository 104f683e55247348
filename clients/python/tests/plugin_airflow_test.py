"""Tasks of Airflow that are jobs: `airflow dags test`, and a real scheduler and triggerer with many deferred tasks and kills."""
import json
import os
import pathlib
import subprocess
import sys
import unittest

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
    BerthOperator.partial(task_id="one", deferrable=True).expand(job=[job("sleep", "2") for _ in range(MANY)])
'''
MANY = 100


class Airflow(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = world.start(agents=4)
        cls.addClassCleanup(cls.cluster.stop)
        cls.home = cls.cluster.home / "airflow"
        (cls.home / "dags").mkdir(parents=True)
        (cls.home / "dags" / "all.py").write_text(DAGS.replace("MANY", str(MANY)))
        cls.environment = {
            **os.environ, "AIRFLOW_HOME": str(cls.home), "BERTH_SERVER": cls.cluster.server.address,
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False", "AIRFLOW__CORE__UNIT_TEST_MODE": "False",
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


if __name__ == "__main__":
    unittest.main()
