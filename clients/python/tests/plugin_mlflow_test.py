"""MLflow in tasks: tags of runs, and system metrics of several tasks in one run."""
import doctest
import os
import sys
import unittest

import world

import berth

PROGRAM = '''
import os, sys, time
from berth.plugins.mlflow import log_system_metrics  # before MLflow, which loads the provider while it is imported
import mlflow

mlflow.set_tracking_uri(sys.argv[1])
mlflow.set_system_metrics_sampling_interval(0.3)
mlflow.set_system_metrics_samples_before_logging(1)
log_system_metrics()
shared = sys.argv[2] + "/run"
if os.environ["RANK"] == "0":
    run = mlflow.start_run(run_name="both")
    with open(shared + ".part", "w") as out:
        out.write(run.info.run_id)
    os.rename(shared + ".part", shared)
else:
    while not os.path.exists(shared):
        time.sleep(0.1)
    mlflow.start_run(run_id=open(shared).read())
mlflow.log_metric("rank" + os.environ["RANK"], 1)
time.sleep(4)
if os.environ["RANK"] == "1":
    mlflow.end_run()
else:
    time.sleep(3)
'''


class MLflow(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = world.start(agents=2)
        cls.addClassCleanup(cls.cluster.stop)
        cls.folder = world.shared_folder(cls.cluster, "mlflow")

    def test_tags_and_metrics_of_two_tasks_in_one_run(self):
        import mlflow
        (self.folder / "program.py").write_text(PROGRAM)
        uri = f"sqlite:///{self.folder}/mlflow.db"
        old = os.umask(0)
        self.addCleanup(os.umask, old)
        mlflow.set_tracking_uri(uri)
        client = mlflow.MlflowClient()
        client.search_experiments()  # makes the database
        for path in self.folder.iterdir():
            path.chmod(0o666)
        group = berth.Group("trainer", replicas=2, resources=berth.R(cpu=1, memory="700Mi"), env={"HOME": str(self.folder)},
                            command=[sys.executable, str(self.folder / "program.py"), uri, str(self.folder)],
                            working_dir=str(self.folder))
        with berth.Client(self.cluster.server.address) as server:
            job = server.submit(berth.Job("tracked", queue="research", groups=[group]))
            ended = job.wait(timeout=120, check=False)
            said = b"".join(server.logs("tracked", "trainer-0")) + b"".join(server.logs("tracked", "trainer-1"))
            self.assertEqual(ended.status.state, "Succeeded", said.decode())
        run, = client.search_runs(["0"])
        self.assertEqual({tag: value for tag, value in run.data.tags.items() if tag.startswith("berth.") and "node" not in tag}, {
            "berth.job": "tracked", "berth.job_uid": str(ended.uid), "berth.queue": "research", "berth.task": "trainer-0",
            "berth.attempt": "1", "berth.rank": "0", "berth.world_size": "2"})
        self.assertRegex(run.data.tags["berth.node"], r"^n[12]$")
        self.assertEqual((run.data.metrics["rank0"], run.data.metrics["rank1"]), (1, 1))
        for task in ("trainer-0", "trainer-1"):
            self.assertIn(f"system/{task}/system_memory_usage_megabytes", run.data.metrics)

    def test_outside_of_berth_there_are_no_tags(self):
        from berth.plugins import _mlflow_context
        self.assertFalse(_mlflow_context.BerthContext().in_context())
        self.assertEqual(doctest.testmod(_mlflow_context), (0, 1))


if __name__ == "__main__":
    unittest.main()
