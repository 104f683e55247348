#!/usr/bin/env python3
"""berth topology import against a real berthd: creates what a file describes, once, across restarts, and changes only
its own HyperNodes."""
import json
import os
import pathlib
import unittest

from berth_api import hypernode_pb2
from berth_harness import Cluster

NODES = [{"name": "n[01-08]", "cpu": 8, "memory": "8Gi", "labels": {"zone": "a", "rack": "r1"}},
         {"name": "n[09-16]", "cpu": 8, "memory": "8Gi", "labels": {"zone": "a", "rack": "r2"}}]
TREE = """SwitchName=leaf1 Nodes=n[01-08]
SwitchName=leaf2 Nodes=n[09-16] LinkSpeed=400
SwitchName=spine Switches=leaf[1-2]
"""


class TopologyImport(unittest.TestCase):
    def setUp(self):
        self.cluster = Cluster({"log": {"level": "warn"}}).belongs_to(self)
        self.cluster.server.start()
        self.cluster.add_simulation(NODES)
        self.cluster.wait_nodes(16)

    def hyper_nodes(self):
        page = self.cluster.api.hyper_nodes.ListHyperNodes(hypernode_pb2.ListHyperNodesRequest(), timeout=10)
        return {one.name: one for one in page.hyper_nodes}

    def run_import(self, *arguments, stdin=None):
        return self.cluster.run_berth("topology", "import", *arguments, stdin=stdin)

    def import_tree(self, text, *arguments):
        return self.run_import("--from", "slurm-conf", "-", *arguments, stdin=text)

    def check(self, result, code, *parts):
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        for part in parts:
            self.assertIn(part, result.stdout + result.stderr)

    def test_a_file_across_changes_and_a_restart(self):
        self.check(self.import_tree(TREE, "--dry-run"), 0, "3 to create")
        self.assertEqual(self.hyper_nodes(), {})
        self.check(self.import_tree(TREE), 0, "+ spine  network tier 2 spine, 2 hypernodes")
        made = self.hyper_nodes()
        self.assertEqual(sorted(made), ["leaf1", "leaf2", "spine"])
        self.assertEqual(made["leaf1"].status.parent, "spine")
        self.assertEqual(made["spine"].status.nodes, 16)
        self.assertEqual(made["leaf2"].spec.bandwidth_gbps, 400)
        self.assertEqual({one.spec.source for one in made.values()}, {"import/slurm-conf"})

        self.cluster.server.kill()
        self.cluster.server.start()
        self.check(self.import_tree(TREE), 0, "no difference, 3 unchanged")

        changed = TREE.replace("n[01-08]", "n[01-07]").replace("spine", "top") + "SwitchName=leaf3 Nodes=n08\n"
        self.check(self.import_tree(changed), 0, "~ leaf1", "- node n08", "+ leaf3", "- spine")
        self.assertEqual(sorted(self.hyper_nodes()), ["leaf1", "leaf2", "leaf3", "top"])
        self.assertEqual(self.hyper_nodes()["leaf3"].status.nodes, 1)

    def test_hypernodes_of_others_are_unchanged(self):
        by_hand = hypernode_pb2.HyperNode(name="leaf1", spec=hypernode_pb2.HyperNodeSpec(tier=1, tier_name="leaf"))
        by_hand.spec.members.add(type=hypernode_pb2.HyperNodeSpec.Member.NODE, exact="n01")
        self.cluster.api.hyper_nodes.CreateHyperNode(
            hypernode_pb2.CreateHyperNodeRequest(hyper_node=by_hand, request_id="1"), timeout=10)
        self.check(self.import_tree(TREE), 1, '"leaf1" (created manually)')
        # Other names, but n01 would get a second parent: the server rejects it, also with --dry-run.
        self.check(self.import_tree(TREE, "--prefix", "x-", "--dry-run"), 1, "n01")
        self.check(self.import_tree(TREE, "--prefix", "x-"), 1, "n01")
        self.assertEqual(list(self.hyper_nodes()), ["leaf1"])
        # In a separate kind it is allowed.
        self.check(self.import_tree(TREE, "--prefix", "x-", "--kind", "fabric"), 0, "3 to create")
        self.assertEqual(len(self.hyper_nodes()), 4)

    def test_labels_of_the_nodes(self):
        result = self.run_import("--from", "labels", "--labels", "zone,rack", "-o", "json")
        self.check(result, 0)
        difference = json.loads(result.stdout)
        self.assertEqual([one["name"] for one in difference["created"]], ["a-r1", "a-r2", "a"])
        self.assertEqual(self.hyper_nodes()["a"].status.nodes, 16)
        self.check(self.run_import("--from", "labels", "--labels", "zone,rack"), 0, "no difference")
        # The same import with one label fewer: the HyperNodes of the dropped label are deleted, and nothing else.
        self.check(self.run_import("--from", "labels", "--labels", "rack"), 0, "2 to create, 0 to change, 3 to delete")
        self.assertEqual(sorted(self.hyper_nodes()), ["r1", "r2"])

    def test_a_real_fabric(self):
        fixtures = os.environ.get("BERTH_FIXTURES")
        if not fixtures:
            self.skipTest("BERTH_FIXTURES is not set")
        dump = pathlib.Path(fixtures) / "topology" / "ib" / "topograph-ibnetdiscover-example.out"
        self.check(self.run_import("--from", "ibnetdiscover", str(dump)), 0, "9 to create",
                   "119 of 119 nodes are unknown to the server")
        self.check(self.run_import("--from", "ibnetdiscover", str(dump)), 0, "no difference, 9 unchanged")
        self.check(self.run_import("--from", "ibnetdiscover", str(dump), "--known-nodes"), 4, "nothing to import")
        self.assertEqual(len(self.hyper_nodes()), 9)


if __name__ == "__main__":
    unittest.main(verbosity=2)
