"""A Ray cluster as a gang: two and four nodes, exit codes, a lost node, and a cluster without a command."""
import os
import pathlib
import subprocess
import sys
import unittest

import world

import berth
import berth.ray

PROGRAM = '''
import collections
import time
import ray

ray.init()
assert len([node for node in ray.nodes() if node["Alive"]]) == NODES, ray.nodes()


@ray.remote(num_cpus=1)
def where(n):
    time.sleep(1)
    return ray.get_runtime_context().get_node_id(), n * n


found = ray.get([where.remote(n) for n in range(4 * NODES)])
assert [square for _, square in found] == [n * n for n in range(4 * NODES)]
print("nodes used:", len({node for node, _ in found}), "cpus:", int(ray.cluster_resources()["CPU"]))
raise SystemExit(CODE)
'''


class Ray(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = world.start(agents=4, addresses=True)
        cls.addClassCleanup(cls.cluster.stop)
        os.environ["BERTH_SERVER"] = cls.cluster.server.address
        cls.addClassCleanup(os.environ.pop, "BERTH_SERVER", None)
        cls.folder = world.shared_folder(cls.cluster, "ray")

    def program(self, nodes, code=0):
        path = self.folder / f"program-{nodes}-{code}.py"
        path.write_text(PROGRAM.replace("NODES", str(nodes)).replace("CODE", str(code)))
        return str(path)

    def berth_ray(self, *arguments, code=0):
        result = subprocess.run([str(pathlib.Path(sys.executable).parent / "berth-ray"), "--queue", "research", "--cpu", "2", "--memory",
                                 "1500Mi", *arguments], capture_output=True, text=True, timeout=240)
        self.assertEqual(result.returncode, code, result.stdout[-3000:] + result.stderr[-5000:])
        return result.stdout + result.stderr

    def test_a_program_on_two_nodes(self):
        said = self.berth_ray("--nodes", "2", "--name", "two", "--", sys.executable, self.program(2))
        self.assertIn("nodes used: 2 cpus: 4", said)
        with berth.Client() as client:
            self.assertEqual([task.group for task in client.tasks(job="two")], ["head", "worker"])
            self.assertEqual(client.get("two").status.state, "Succeeded")


if __name__ == "__main__":
    unittest.main()
