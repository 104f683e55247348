#!/usr/bin/env python3
"""HyperNodes with a real daemon and simulated nodes: applied, joined, shown, and the same after a restart.

With BERTH_FIXTURES set, the manifests of another scheduler under topology/net-volcano are applied unchanged."""
import json
import os
import pathlib
import unittest

from berth_harness import Cluster, wait_until

FIXTURES = os.environ.get("BERTH_FIXTURES")


def hyper_node(name, tier, members, **spec):
    return {"apiVersion": "berth/v1", "kind": "HyperNode", "name": name, "tier": tier, "members": members, **spec}


class Topology(unittest.TestCase):
    def setUp(self):
        self.cluster = Cluster()
        self.addCleanup(self.cluster.__exit__, None, None, None)
        self.cluster.server.start()

    def apply(self, *manifests):
        path = self.cluster.home / "tree.yaml"
        path.write_text("\n---\n".join(json.dumps(manifest) for manifest in manifests))
        return self.cluster.berth("apply", "-f", str(path))

    def domains(self):
        """nodes of each HyperNode, by name"""
        listed = json.loads(self.cluster.berth("hypernode", "list", "-o", "json"))
        return {one["name"]: int(one.get("status", {}).get("nodes", 0)) for one in listed}

    def test_a_tree_survives_restarts_and_nodes_join_it(self):
        racks = [hyper_node("rack-1", 1, [{"type": "node", "label": "topology.berth/rack=rack-1"}], tierName="rack"),
                 hyper_node("rack-2", 1, [{"type": "node", "regex": "sim[4-7]"}], tierName="rack")]
        spine = hyper_node("spine", 2, [{"type": "hyperNode", "exact": f"rack-{i}"} for i in (1, 2)])
        self.assertEqual(self.apply(spine, *racks),
                         "hypernode/spine created\nhypernode/rack-1 created\nhypernode/rack-2 created\n")
        self.assertEqual(self.apply(spine), "hypernode/spine unchanged\n")
        self.assertEqual(self.domains(), {"rack-1": 0, "rack-2": 0, "spine": 0})
        self.cluster.add_simulation([{"name": "sim[0-7]", "cpu": 96, "memory": "1Ti", "devices": {"gpu": 8}, "rackSize": 4}])
        self.cluster.wait_nodes(8)
        joined = {"rack-1": 4, "rack-2": 4, "spine": 8}
        wait_until(lambda: self.domains() == joined, 30, "the nodes have joined")
        shown = self.cluster.berth("topology", "show")
        self.assertIn("  spine", shown)
        self.assertIn("    rack-2", shown)
        self.assertIn("gpu 64", shown)
        self.cluster.server.kill()
        self.cluster.server.start()
        self.assertEqual(self.domains(), joined)
        refused = self.cluster.run_berth("hypernode", "create", "other", "--tier", "2", "--child", "rack-1")
        self.assertEqual(refused.returncode, 1)
        self.assertIn("HyperNode rack-1 is a member of other and of spine: one parent each", refused.stderr)

    @unittest.skipUnless(FIXTURES, "BERTH_FIXTURES is not set: no manifests of other schedulers to apply")
    def test_manifests_of_volcano_apply_unchanged(self):
        folder = pathlib.Path(FIXTURES) / "topology" / "net-volcano"
        manifests = sorted(path for path in folder.glob("*.yaml")
                           if "apiVersion: topology.volcano.sh/v1alpha1" in path.read_text())
        self.assertTrue(manifests, f"no manifests in {folder}")
        for path in manifests:
            with self.subTest(path.name):
                self.cluster.berth("apply", "-f", str(path))
        domains = self.domains()
        self.assertEqual(len([name for name in domains if name.startswith("rack-")]), 4)
        spine = json.loads(self.cluster.berth("hypernode", "get", "spine-0", "-o", "json"))
        self.assertEqual(spine["spec"]["tier"], 2)
        self.assertEqual(int(spine["status"]["children"]), 2)


if __name__ == "__main__":
    unittest.main()
