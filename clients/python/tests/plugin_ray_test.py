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
import os
import time
import ray

ray.init()
if os.environ["BERTH_ATTEMPT"] == "1" and WAITS:
    time.sleep(600)
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

    def program(self, nodes, code=0, waits=False):
        path = self.folder / f"program-{nodes}-{code}.py"
        path.write_text(PROGRAM.replace("NODES", str(nodes)).replace("CODE", str(code)).replace("WAITS", str(waits)))
        return str(path)

    def berth_ray(self, *arguments, code=0):
        command = [str(pathlib.Path(sys.executable).parent / "berth-ray"), "--queue", "research", "--cpu", "2", "--memory", "1500Mi"]
        result = subprocess.run([*command, *arguments], capture_output=True, text=True, timeout=240)
        self.assertEqual(result.returncode, code, result.stdout[-3000:] + result.stderr[-5000:])
        return result.stdout + result.stderr

    def test_a_program_on_two_nodes(self):
        said = self.berth_ray("--nodes", "2", "--name", "two", "--", sys.executable, self.program(2))
        self.assertIn("nodes used: 2 cpus: 4", said)
        with berth.Client() as client:
            self.assertEqual([task.group for task in client.tasks(job="two")], ["head", "worker"])
            self.assertEqual(client.get("two").status.state, "Succeeded")

    def test_the_exit_code_and_refusals(self):
        said = self.berth_ray("--nodes", "1", "--", sys.executable, self.program(1, 7), code=7)
        self.assertIn("exited with 7", said)
        self.assertIn('no queue "nowhere"', self.berth_ray("--nodes", "1", "--queue", "nowhere", "--", "true", code=1))
        with self.assertRaisesRegex(ValueError, "at least 1 node"):
            berth.ray.cluster(0)

    def test_a_lost_node_starts_the_cluster_again(self):
        job = berth.ray.cluster(4, [sys.executable, self.program(4, waits=True)],
                                resources=berth.R(cpu=1, memory="1Gi"), queue="research", name="lost", max_retries=5,
                                policies=[berth.Policy(event="TaskFailed", action="RestartJob")])
        with berth.Client() as client:
            client.submit(job)
            world.berth_harness.wait_until(lambda: client.get("lost").status.state == "Running", 60, "running")
            world.berth_harness.wait_until(lambda: b"RAY_ADDRESS=" in b"".join(client.logs("lost", "head-0")), 90, "all nodes")
            self.assertEqual(client.exec("lost", ["pkill", "-9", "-x", "raylet"], task="worker-1").exit_code, 0)
            ended = client.wait(["lost"], timeout=240, check=False)[0]
            said = b"".join(b"".join(client.logs("lost", task)) for task in ("head-0", "worker-0", "worker-1", "worker-2"))
            self.assertEqual(ended.status.state, "Succeeded", said.decode())
            self.assertEqual(ended.status.retries, 1, "one restart of the whole gang")
            self.assertIn(b"nodes used: 4", b"".join(client.logs("lost", "head-0")))

    def test_a_cluster_without_a_command(self):
        name = self.berth_ray("--nodes", "2", "--detach").strip()
        with berth.Client() as client:
            world.berth_harness.wait_until(lambda: client.get(name).status.state == "Running", 60, "running")
            world.berth_harness.wait_until(lambda: b"RAY_ADDRESS=" in b"".join(client.logs(name, "head-0")), 90, "all nodes")
            address = b"".join(client.logs(name, "head-0")).rpartition(b"RAY_ADDRESS=")[2].split()[0].decode()
            code = (f"import os, ray; ray.init('{address}', log_to_driver=False);"
                    "print(int(ray.cluster_resources()['CPU']))")
            seen = client.exec(name, [sys.executable, "-c", code], task="head-0")
            self.assertEqual(seen.stdout.split()[-1], b"4", seen)
            client.cancel(name)
            world.berth_harness.wait_until(lambda: client.get(name).status.state == "Cancelled", 60, "cancelled")


if __name__ == "__main__":
    unittest.main()
