#!/usr/bin/env python3
"""Reloading the configuration while berthd runs: by SIGHUP and by the CLI; an invalid file changes nothing."""
import signal
import unittest

from berth_harness import Cluster, wait_until, write_yaml


class Reload(unittest.TestCase):
    def setUp(self):
        self.cluster = Cluster({"log": {"level": "info"}})
        self.addCleanup(self.cluster.__exit__, None, None, None)
        self.server = self.cluster.server.start()

    def write(self, **config):
        write_yaml(self.server.config, {"log": {"level": "info"}, **config})

    def hang_up(self, expected):
        self.server.signal(signal.SIGHUP)
        wait_until(lambda: expected in self.server.output(), 10, f"the log contains {expected!r}")
        self.assertTrue(self.server.running())

    def test_sighup_applies_changes_that_need_no_restart(self):
        self.write(scheduling={"backfill": {"reservations": 3}}, limits={"watchers": 7})
        self.hang_up("configuration changed  key=scheduling.backfill.reservations before=16 after=3")
        self.hang_up("configuration needs a restart  key=limits.watchers before=1000 after=7")

    def test_an_invalid_file_changes_nothing(self):
        self.write(scheduling={"actions": ["conquer"]})
        self.hang_up('unknown action \\"conquer\\"')
        result = self.cluster.run_berth("cluster", "reload")
        self.assertEqual(result.returncode, 1)
        self.assertIn("the configuration is unchanged: ", result.stderr)
        self.assertIn('berthd.yaml:5:2: scheduling: unknown action "conquer"', result.stderr)
        self.write()
        self.assertEqual(self.cluster.berth("cluster", "reload"), "nothing has changed\n")

    def test_the_command_line_shows_the_difference(self):
        self.write(scheduling={"preemptibleBelowPriority": 5})
        difference = "scheduling.preemptible_below_priority: none -> 5\n"
        self.assertEqual(self.cluster.berth("cluster", "reload", "--dry-run"), difference)
        self.assertEqual(self.cluster.berth("cluster", "reload"), difference)
        self.assertEqual(self.cluster.berth("cluster", "reload"), "nothing has changed\n")


if __name__ == "__main__":
    unittest.main()
