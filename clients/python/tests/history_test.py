"""Usage, capacity and jobs that have ended, from a real server; and their frames."""
import asyncio
import importlib.util
import tempfile
import unittest
from datetime import datetime, timedelta, timezone

import world

import berth
from berth import _values, aio, frames

HAS_PANDAS = importlib.util.find_spec("pandas") is not None


class Words(unittest.TestCase):
    def test_past_times(self):
        now = datetime.now(timezone.utc)
        for value in ("30d", timedelta(days=30)):
            self.assertLess(abs(now - timedelta(days=30) - _values.as_past(value)), timedelta(minutes=1))
        self.assertEqual(_values.as_past("2026-11-01T00:00:00Z"), datetime(2026, 11, 1, tzinfo=timezone.utc))
        self.assertEqual(_values.as_past(now), now)
        for bad in ("yesterday", "", "3 weeks"):
            with self.assertRaises(ValueError):
                _values.as_past(bad)

    def test_hours(self):
        time = berth.ResourceTime(cpu_milli_seconds=7_200_000, memory_mebibyte_seconds=3_686_400,
                                  scratch_mebibyte_seconds=1_843_200, count_milli_seconds={"gpu": 900_000, "nic": 3_600_000})
        self.assertEqual((time.core_hours, time.memory_gib_hours, time.scratch_gib_hours, time.gpu_hours), (2, 1, 0.5, 0.25))
        self.assertEqual((time.device_hours("nic"), time.device_hours("npu")), (1, 0))
        self.assertEqual((berth.EndedJob(held=time).gpu_hours, berth.EndedJob().gpu_hours), (0.25, 0))

    def test_unknown_words_are_refused_before_anything_is_called(self):
        with berth.Client("127.0.0.1:1") as client:
            with self.assertRaisesRegex(ValueError, "'color' is none of queue, user, account, class, model"):
                client.usage(by=["color"])
            with self.assertRaisesRegex(ValueError, "'week' is none of minute, hour, day, month, total"):
                client.capacity(step="week")


class History(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = world.start(agents=2, config={"finishedJobTtl": "1s"})
        cls.addClassCleanup(cls.cluster.stop)
        cls.client = berth.Client(cls.cluster.server.address)
        cls.addClassCleanup(cls.client.close)
        group = berth.Group(replicas=2, command=["sleep", "1"], resources=berth.R(cpu=2, memory="64Mi"))
        cls.client.submit(berth.Job("good", queue="research", user="ada", groups=[group]))
        bad = berth.Group(command=["sh", "-c", "exit 3"], resources=berth.R(cpu=1))
        cls.client.submit(berth.Job("bad", queue="research", user="bob", groups=[bad]))
        for name in ("good", "bad"):
            world.berth_harness.wait_until(lambda name=name: cls.gone(name), 60, f"{name} deleted")

    @classmethod
    def gone(cls, name):
        try:
            cls.client.get(name)
        except berth.NotFound:
            return True
        return False

    def test_usage_agrees_with_the_jobs(self):
        usage = self.client.usage(by=["queue", "user"], since="1h")
        rows = {row.user: row for row in usage.rows}
        self.assertEqual((set(rows), {row.queue for row in usage.rows}), ({"ada", "bob"}, {"research"}))
        jobs = {job.name: job for job in self.client.ended_jobs(since="1h")}
        self.assertAlmostEqual(rows["ada"].core_hours, jobs["good"].core_hours, delta=1e-6)
        self.assertGreater(rows["ada"].core_hours, 4 / 3600)
        self.assertIsInstance(rows["ada"].from_, datetime)
        self.assertLessEqual(rows["ada"].from_, usage.state.since)
        self.assertLess(abs(datetime.now(timezone.utc) - usage.state.as_of), timedelta(minutes=1))
        ours = self.client.usage(by=[], user="ada", step="day")
        self.assertAlmostEqual(sum(row.core_hours for row in ours.rows), rows["ada"].core_hours, delta=1e-6)
        self.assertEqual(self.client.usage(until="2020-01-01T00:00:00Z", since="2019-01-01T00:00:00Z").rows, [])

    def test_capacity_adds_up(self):
        row, = self.client.capacity(since="1h").rows
        parts = [row.held, row.reserved, row.free, row.fragmented, row.cordoned, row.down, row.unhealthy]
        total = row.total.core_hours + (row.overcommitted.core_hours if row.overcommitted else 0)
        self.assertAlmostEqual(total, sum(part.core_hours for part in parts if part), delta=1e-5)

    def test_jobs_that_have_ended_in_both_clients(self):
        jobs = list(self.client.ended_jobs(queue="research", since=timedelta(hours=1)))
        self.assertEqual({job.name for job in jobs}, {"good", "bad"})
        bad, = self.client.ended_jobs(states=["Failed"])
        self.assertEqual((bad.name, bad.user, bad.exit_code, bad.state), ("bad", "bob", 3, berth.JobState.FAILED))
        self.assertEqual(bad.groups[0].request.cpu, 1)
        self.assertEqual([job.name for job in self.client.ended_jobs(uids=[bad.uid])], ["bad"])
        self.assertEqual(list(self.client.ended_jobs(until="1h")), [])

        async def names():
            async with aio.Client(self.cluster.server.address) as client:
                return [job.name async for job in client.ended_jobs(name="g*")]
        self.assertEqual(asyncio.run(names()), ["good"])

    @unittest.skipUnless(HAS_PANDAS, "no pandas")
    def test_frames(self):
        usage = self.client.usage(by=["queue", "user"], since="1h", step="hour")
        frame = frames.usage_frame(usage)
        self.assertEqual(set(frame["queue"]), {"research"})
        self.assertAlmostEqual(frame.groupby("user")["core_hours"].sum()["ada"],
                               sum(row.core_hours for row in usage.rows if row.user == "ada"))
        self.assertFalse(frame.filter(like="hours").isna().any().any())
        self.assertEqual(str(frame["from"].dtype).split(",")[-1].strip(" ]"), "UTC")
        with tempfile.NamedTemporaryFile("r", suffix=".csv") as file:
            frame.to_csv(file.name, index=False)
            header = file.readline().strip().split(",")
        theirs = self.cluster.berth("usage", "--by", "queue,user,account,class,model", "-o", "csv").split("\n")[0].split(",")
        self.assertEqual([name for name in header if "scratch" not in name], [name for name in theirs if "scratch" not in name])
        capacity = frames.capacity_frame(self.client.capacity(since="1h", by_model=True))
        self.assertGreater(capacity["core_hours_total"].sum(), 0)
        self.assertEqual(capacity["gpu_hours_held"].sum(), 0)
        jobs = frames.ended_jobs_frame(self.client.ended_jobs(since="1h")).set_index("name")
        self.assertEqual((jobs.loc["bad", "state"], jobs.loc["bad", "exit_code"]), ("Failed", 3))
        self.assertGreater(jobs.loc["good", "core_hours"], 4 / 3600)
        empty = frames.usage_frame(berth.Usage())
        self.assertEqual((len(empty), "gpu_hours_lost_to_faults" in empty.columns), (0, True))
        self.assertEqual(len(frames.ended_jobs_frame([])), 0)


if __name__ == "__main__":
    unittest.main()
