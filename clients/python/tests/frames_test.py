"""Frames and progress bars of what a real server tells."""
import concurrent.futures
import importlib.util
import io
import unittest

import world

import berth
from berth import frames, progress


@unittest.skipUnless(importlib.util.find_spec("pandas"), "no pandas")
class Frames(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = world.start(agents=2)
        cls.addClassCleanup(cls.cluster.stop)
        cls.client = berth.Client(cls.cluster.server.address)
        cls.addClassCleanup(cls.client.close)

    def test_jobs_that_ended_and_their_use(self):
        group = berth.Group(replicas=2, command=["sleep", "0.5"], resources=berth.R(cpu=0.5, memory="64Mi"))
        good = self.client.submit(berth.Job("good", queue="research", user="ada", groups=[group]))
        bad = self.client.submit(world.job("false", name="bad"))
        held = self.client.submit(berth.Job("held", queue="research", suspended=True, groups=[berth.Group(
            command=["x"], resources=berth.R(gpu=berth.DeviceRequest(share=0.5)))]))
        self.client.wait([good, bad], timeout=60, check=False)
        frame = frames.jobs_frame(self.client.jobs()).set_index("name").loc[["good", "bad", "held"]]
        self.assertEqual(list(frame["state"]), ["Succeeded", "Failed", "Held"])
        row = frame.loc["good"]
        self.assertEqual((row["tasks"], row["cpu"], row["memory"], row["gpu"], row["user"]), (2, 1.0, 2 * 64 * 2**20, 0, "ada"))
        self.assertGreater(row["run_s"], 0.4)
        self.assertGreaterEqual(row["wait_s"], 0)
        self.assertEqual(frame.loc["held"]["gpu"], 0.5)
        self.assertTrue(frame.loc["held"][["run_s", "gpu_hours"]].isna().all())
        ended = set(frames.jobs_frame(self.client.history())["name"])
        self.assertTrue({"good", "bad"} <= ended and "held" not in ended)
        self.assertEqual(list(frames.jobs_frame([]).columns), frames.JOBS)
        with self.assertRaisesRegex(ValueError, "not from the server"):
            frames.jobs_frame([berth.Job("mine")])
        held.cancel()

    def test_shares_and_nodes(self):
        shares = frames.shares_frame(self.client.shares()).set_index("queue")
        self.assertIn("research", shares.index)
        self.assertIn("allocated_cpu", shares.columns)
        nodes = frames.nodes_frame(self.client.nodes())
        self.assertEqual(list(nodes["name"]), ["n1", "n2"])
        self.assertEqual(list(nodes["capacity_memory"]), [8 * 2**30] * 2)

    def test_a_bar_counts_jobs(self):
        handles = self.client.submit_many([world.job("true") for _ in range(5)] + [world.job("false")])
        out = io.StringIO()
        jobs = progress.wait_with_progress(self.client, handles, timeout=60, check=False, file=out)
        self.assertEqual([job.name for job in jobs], [handle.name for handle in handles])
        self.assertRegex(out.getvalue(), r"6/6 .*failed=1")
        with self.assertRaises(berth.JobFailed):
            progress.wait_with_progress(self.client, handles, timeout=60, file=io.StringIO())

    def test_a_bar_counts_futures(self):
        futures = [concurrent.futures.Future() for _ in range(3)]
        for index, future in enumerate(futures):
            future.set_result(index) if index else future.set_exception(ValueError("no"))
        out = io.StringIO()
        self.assertEqual(progress.watch_futures(futures, file=out), futures)
        self.assertRegex(out.getvalue(), r"3/3 .*failed=1")
        with self.assertRaises(TimeoutError):
            progress.watch_futures([concurrent.futures.Future()], timeout=0.1, file=io.StringIO())


if __name__ == "__main__":
    unittest.main()
