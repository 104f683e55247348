"""Lightning's Trainer in gangs: one process in each task, several processes in each task, and under torchrun.

PyTorch is Debian's, which is small; that of PyPI for Linux needs 5 GB of CUDA. Debian's 1.13 has two faults with Python 3.11: a class
without a hash as a default of a dataclass, which SHIM mends, and a value of torchrun, which --redirects and --tee avoid.
"""
import subprocess
import sys
import unittest

import world

import berth

PROGRAM = '''
import os
import sys
import lightning
import torch
from berth.plugins.lightning import trainer_options


class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)

    def training_step(self, batch, index):
        return self.layer(batch).pow(2).mean()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.01)

    def on_train_end(self):
        seen = self.all_gather(torch.tensor([self.global_rank, int(os.environ["BERTH_GROUP_INDEX"])]))
        if self.trainer.is_global_zero:
            print("ranks", seen.reshape(-1, 2).tolist(), flush=True)
        same = self.all_gather(self.layer.weight.data)
        assert torch.allclose(same.max(0).values, same.min(0).values), same


torch.manual_seed(int(os.environ["RANK"]))  # DDP makes the weights equal
options = {**trainer_options(), "accelerator": "cpu", **eval(sys.argv[1])}
trainer = lightning.Trainer(strategy="ddp", max_steps=3, logger=False, enable_checkpointing=False, enable_progress_bar=False,
                            **options)
trainer.fit(Model(), torch.utils.data.DataLoader(torch.randn(64, 4), batch_size=4))
print("done", type(trainer.strategy.cluster_environment).__name__, trainer.world_size, flush=True)
'''

SHIM = '''
import dataclasses

plain = dataclasses._process_class


def with_hash(cls, init, repr, eq, order, unsafe_hash, *rest):
    return plain(cls, init, repr, eq, order, unsafe_hash or cls.__name__ == "TensorProperties", *rest)


dataclasses._process_class = with_hash
'''


class Lightning(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = world.start(agents=2)
        cls.addClassCleanup(cls.cluster.stop)
        cls.folder = world.shared_folder(cls.cluster, "lightning")
        (cls.folder / "program.py").write_text(PROGRAM)
        (cls.folder / "usercustomize.py").write_text(SHIM)

    def run_in_tasks(self, name, tasks, options="{}", launcher=(), state="Succeeded"):
        group = berth.Group("trainer", replicas=tasks, resources=berth.R(cpu=1, memory="1Gi"), env={
            "HOME": str(self.folder), "PYTHONPATH": str(self.folder), "OMP_NUM_THREADS": "1", "TMPDIR": "/tmp"},
                            command=[sys.executable, *launcher, str(self.folder / "program.py"), options])
        with berth.Client(self.cluster.server.address) as server:
            ended = server.submit(berth.Job(name, queue="research", groups=[group])).wait(timeout=240, check=False)
            said = b"".join(b"".join(server.logs(name, f"trainer-{index}")) for index in range(tasks)).decode()
        self.assertEqual(ended.status.state, state, said)
        return said

    def test_a_process_in_each_task(self):
        said = self.run_in_tasks("single", 3)
        self.assertIn("ranks [[0, 0], [1, 1], [2, 2]]", said)
        self.assertEqual(said.count("done BerthEnvironment 3"), 3, said)

    def test_two_processes_in_each_task(self):
        said = self.run_in_tasks("double", 2, "{'devices': 2}")
        self.assertIn("ranks [[0, 0], [1, 0], [2, 1], [3, 1]]", said)
        self.assertEqual(said.count("done BerthEnvironment 4"), 4, said)

    def test_under_torchrun(self):
        said = self.run_in_tasks("elastic", 2, launcher=["-m", "torch.distributed.run", "--nproc_per_node=2", "--max_restarts=0",
                                                             "--redirects=1", "--tee=1", "--log_dir=/tmp/logs"])
        self.assertIn("ranks [[0, 0], [1, 0], [2, 1], [3, 1]]", said)
        self.assertEqual(said.count("done TorchElasticEnvironment 4"), 4, said)

    def test_outside_of_berth_there_are_no_options(self):
        code = f"{SHIM}\nimport doctest, berth.plugins.lightning as ours; print(doctest.testmod(ours))"
        said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        self.assertIn("TestResults(failed=0, attempted=1)", said.stdout, said.stderr)

    def test_another_number_of_nodes_is_refused(self):
        self.assertIn("num_nodes=5, and the job wrong has 1 tasks",
                      self.run_in_tasks("wrong", 1, "{'num_nodes': 5}", state="Failed"))


if __name__ == "__main__":
    unittest.main()
