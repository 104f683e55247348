#!/usr/bin/env python3
"""berth migrate slurm: what it writes is applied to a real berthd, and the Slurm commands work with it."""
import pathlib
import re
import subprocess
import unittest

from berth_api import hypernode_pb2
from berth_harness import SOURCE, Cluster, wait_until
from slurm_world import CONFIG, SLURM

SITE = pathlib.Path(SOURCE) / "tests" / "slurm_site"


class Migrate(unittest.TestCase):
    def setUp(self):
        self.cluster = Cluster({**CONFIG, "access": {"withoutTls": {"user": "root"}}}).belongs_to(self)
        self.cluster.server.start()
        self.out = self.cluster.home / "blue"

    def migrate(self, *more, code=0):
        result = self.cluster.run_berth("migrate", "slurm", "--conf", str(SITE / "slurm.conf"), "--output-directory", str(self.out), *more)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        return result.stdout + result.stderr

    def labels_of(self, node):
        """What labels.yaml says of a node: its blocks are agent.yaml's."""
        for block in (self.out / "labels.yaml").read_text().split("---\n"):
            names = re.findall(r"^# (?!Labels)(.*)$", block, re.MULTILINE)[0]
            if node in self.cluster_names(names):
                return dict(re.findall(r'^  (\S+): "(.*)"$', block, re.MULTILINE))
        return {}

    @staticmethod
    def cluster_names(text):
        names = set()
        for word in text.split():
            match = re.fullmatch(r"(.*)\[(\d+)-(\d+)\]", word)
            if not match:
                names.add(word)
                continue
            head, first, last = match.groups()
            names.update(f"{head}{number:0{len(first)}}" for number in range(int(first), int(last) + 1))
        return names

    def test_a_site_moves_over(self):
        said = self.migrate("--topology", str(SITE / "topology.conf"), "--associations", str(SITE / "associations.dump"),
                            "--qos", str(SITE / "qos.txt"))
        self.assertIn("slurm.conf:14: Prolog=/etc/slurm/prolog.d/*: hooks.prolog in agent.yaml", said)
        berth = self.cluster.berth
        berth("apply", "-f", str(self.out / "queues.yaml"))
        berth("apply", "-f", str(self.out / "hypernodes.yaml"))
        # Applied again, nothing changes; and the import of the same file goes on with the HyperNodes.
        self.assertNotIn("created", berth("apply", "-f", str(self.out / "queues.yaml")))
        self.assertIn("no difference, 3 unchanged", berth("topology", "import", "--from", "slurm-conf", str(SITE / "topology.conf")))
        physics = self.cluster.berth_json("queue", "get", "physics")
        self.assertEqual((physics["spec"]["weight"], physics["spec"]["limit"]["cpu"]), (60, 200_000))
        self.assertEqual(self.cluster.berth_json("queue", "get", "astro")["spec"]["parent"], "physics")
        self.assertEqual(self.cluster.berth_json("priority-class", "get", "high")["value"], 1000)
        page = self.cluster.api.hyper_nodes.ListHyperNodes(hypernode_pb2.ListHyperNodesRequest(), timeout=10)
        self.assertEqual(sorted(one.name for one in page.hyper_nodes), ["leaf1", "leaf2", "spine"])

        berth("access", "init", "--everyone", "none")
        grants = subprocess.run(["sh", str(self.out / "access.sh")], capture_output=True, text=True, timeout=120,
                                env={"PATH": f"{SLURM.parent}:/usr/bin:/bin", "BERTH_SERVER": self.cluster.server.address})
        self.assertEqual(grants.returncode, 0, grants.stdout + grants.stderr)
        self.assertRegex(berth("access", "list"), r"ada\s+queue-admin\s+queue physics")

        for node in ("cpu01", "gpu03"):
            self.cluster.add_agent(node, cpu="4", memory="4Gi", labels=self.labels_of(node))
        self.cluster.wait_nodes(2)
        self.assertEqual(self.submit("-A", "astro", "-p", "gpu", "-t", "20"), ("astro", "gpu03"))
        self.assertEqual(self.submit("-A", "ML_Lab", "-C", "rome"), ("ml-lab", "cpu01"))
        self.assertEqual(self.submit("-A", "physics", "-q", "high", "-p", "debug"), ("physics-users", "cpu01"))
        self.assertIn("--time: at most 00:30:00 in partition debug",
                      self.slurm("sbatch", "-A", "hep", "-p", "debug", "-t", "60", "--wrap", "true").stderr)
        self.assertIn("--account: name one", self.slurm("sbatch", "--wrap", "true").stderr)
        self.assertIn('there is no "chem"', self.slurm("sbatch", "-A", "chem", "--wrap", "true").stderr)
        self.assertRegex(self.slurm("sinfo", "-h", "-o", "%P %a %D").stdout, r"(?m)^batch\* up 2$")

    def slurm(self, *words):
        return subprocess.run(list(words), capture_output=True, text=True, timeout=60, cwd=self.cluster.home,
                              env={"PATH": f"{SLURM}:/usr/bin:/bin", "BERTH_SERVER": self.cluster.server.address,
                                   "BERTH_SLURM_CONFIG": str(self.out / "slurm.yaml")})

    def submit(self, *words):
        """The queue and the node of a job that ends well."""
        result = self.slurm("sbatch", "--parsable", "-o", "/dev/null", "--mem", "100", *words, "--wrap", "true")
        self.assertEqual(result.returncode, 0, result.stderr)
        number = result.stdout.strip()

        def ended():
            state, node = self.slurm("sacct", "-X", "-n", "-P", "-o", "State,NodeList", "-j", number).stdout.strip().split("|")
            assert state == "COMPLETED", state
            return node
        node = wait_until(ended, 60, f"the end of {words}")
        return self.cluster.berth_json("job", "get", f"job-{number}")["spec"]["queue"], node

    def test_partitions_alone(self):
        self.migrate()
        self.cluster.berth("apply", "-f", str(self.out / "queues.yaml"))
        queues = self.cluster.berth("queue", "list", "-o", "name").split()
        self.assertEqual(sorted(queues), ["queue/batch", "queue/cpu", "queue/debug", "queue/default", "queue/gpu"])

    def test_nothing_is_replaced_and_errors_write_nothing(self):
        self.migrate()
        self.assertIn("queues.yaml is there", self.migrate(code=1))
        before = (self.out / "slurm.yaml").read_text()
        bad = self.cluster.home / "bad.conf"
        bad.write_text("ClusterName=x\nNodeName\n")
        self.out = self.cluster.home / "other"
        self.assertIn("bad.conf:2:1: expected KEY=VALUE", self.migrate("--conf", str(bad), code=4))
        self.assertIn("/nonexistent: No such file", self.migrate("--qos", "/nonexistent", code=4))
        self.assertFalse(self.out.exists())
        self.assertIn("clusterName: blue", before)


if __name__ == "__main__":
    unittest.main()
