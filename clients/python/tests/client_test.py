"""The client against a real server: errors, retries, watches over restarts, logs, exec."""
import asyncio
import os
import pickle
import signal
import time
import unittest
from datetime import timedelta

import world

import berth
from berth import _settings, aio


class Calls(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = world.start(agents=2)
        cls.addClassCleanup(cls.cluster.stop)
        cls.client = berth.Client(cls.cluster.server.address)
        cls.addClassCleanup(cls.client.close)

    def test_errors_carry_all_violations(self):
        bad = berth.Job("UPPER", queue="nowhere", priority=2_000_000, groups=[berth.Group()])
        with self.assertRaises(berth.InvalidArgument) as caught:
            self.client.submit(bad)
        fields = {violation.field for violation in caught.exception.violations}
        self.assertEqual(fields, {"jobs[0].name", "jobs[0].spec.queue", "jobs[0].spec.priority",
                                  "jobs[0].spec.groups[0].command"})
        again = pickle.loads(pickle.dumps(caught.exception))
        self.assertEqual((type(again), again.violations), (berth.InvalidArgument, caught.exception.violations))
        with self.assertRaisesRegex(berth.NotFound, 'no job "nobody"'):
            self.client.get("nobody")

    def test_the_same_request_id_submits_once(self):
        job = world.job("true", suspended=True)
        first = self.client.submit(job, request_id="once-1")
        self.assertEqual(self.client.submit(job, request_id="once-1").uid, first.uid)
        with self.assertRaises(berth.AlreadyExists):
            self.client.submit(world.job("false", suspended=True), request_id="once-1")

    def test_many_jobs_in_batches(self):
        handles = self.client.submit_many([world.job("true", name=f"many-{n}", suspended=True) for n in range(2500)])
        self.assertEqual([handle.name for handle in handles], [f"many-{n}" for n in range(2500)])
        self.assertEqual(len({handle.uid for handle in handles}), 2500)
        self.assertEqual([job.name for job in self.client.jobs(name="many-*")], [f"many-{n}" for n in range(2500)])

    def test_what_comes_back_is_what_was_submitted(self):
        job = berth.Job("kept", queue="research", suspended=True, walltime="1h30m", labels={"team": "a"}, retry_backoff=2.5,
                        groups=[berth.Group(replicas=1, min_available=1, command=["./train", "$X"],
                                            env={"X": "1", "KEY": berth.EnvVar(from_file="/k")},
                                            resources=berth.R(cpu="1500m", memory="2Gi",
                                                              gpu=berth.DeviceRequest(count=1, share=0.5)),
                                            volumes=[berth.Volume(path="/data", tmpfs=berth.TmpfsVolume(size="1Gi"))])],
                        policies=[berth.Policy(event="TaskFailed", exit_codes=[93], action="Abort")])
        self.client.submit(job)
        kept = self.client.get("kept")
        self.assertEqual(kept.walltime, timedelta(hours=1, minutes=30))
        self.assertEqual((kept.groups, kept.policies, kept.labels, kept.retry_backoff),
                         (job.groups, job.policies, job.labels, job.retry_backoff))
        kept.name = "kept-again"  # uid, status and etag are left out
        self.assertEqual(self.client.submit(kept).name, "kept-again")

    def test_wait_reports_the_failure(self):
        handle = self.client.submit(world.job("sh", "-c", "exit 7"))
        with self.assertRaisesRegex(berth.JobFailed, "failed: .*exited with 7") as caught:
            handle.wait(timeout=30)
        self.assertEqual(caught.exception.job.status.state, berth.JobState.FAILED)
        self.assertEqual(handle.wait(timeout=30, check=False).status.state, "Failed")
        with self.assertRaises(berth.DeadlineExceeded):
            self.client.submit(world.job("sleep", "60", name="long")).wait(timeout=0.3)
        self.client.cancel("long")

    def test_wait_for_the_first(self):
        slow = self.client.submit(world.job("sleep", "60"))
        fast = self.client.submit(world.job("true"))
        self.assertEqual([job.name for job in self.client.wait([slow, fast], first=True, timeout=30)], [fast.name])
        slow.cancel()

    def test_a_deleted_job_ends_its_waits(self):
        handle = self.client.submit(world.job("sleep", "60", name="to-delete"))
        join = world.in_thread(handle.wait, 30)
        time.sleep(0.3)
        handle.cancel(force=True)
        with self.assertRaises((berth.JobFailed, berth.NotFound)):
            join()
        self.client.delete("to-delete")
        other = self.client.submit(world.job("true", name="to-delete"))
        other.wait(timeout=30)
        with self.assertRaisesRegex(berth.NotFound, "was deleted"):  # the handle means the first one
            handle.wait(timeout=10)

    def test_exec_with_input_and_errors(self):
        self.client.submit(world.job("sleep", "60", name="host"))
        berth_ready = world.berth_harness.wait_until
        berth_ready(lambda: self.client.get("host").status.state == "Running", 30, "host")
        data = bytes(range(256)) * 1024
        result = berth_ready(lambda: self.client.exec("host", ["sha256sum"], input=data), 30, "exec")
        import hashlib
        self.assertEqual(result.stdout.split()[0].decode(), hashlib.sha256(data).hexdigest())
        self.assertEqual(self.client.exec("host", ["sh", "-c", "echo no >&2; kill -9 $$"]), berth.ExecResult(137, b"", b"no\n"))
        with self.assertRaises(berth.DeadlineExceeded):
            self.client.exec("host", ["sleep", "60"], timeout=0.5)
        with self.assertRaises(berth.NotFound):
            self.client.exec("nobody", ["true"])
        self.client.cancel("host")

    def test_logs_of_both_streams(self):
        handle = self.client.submit(world.job("sh", "-c", "echo out; sleep .2; echo err >&2; sleep .2; echo end"))
        handle.wait(timeout=30)
        self.assertEqual(b"".join(handle.logs()), b"out\nerr\nend\n")
        self.assertEqual(b"".join(self.client.logs(handle.name, stream="stderr")), b"err\n")
        self.assertEqual(b"".join(handle.logs(tail=1)), b"end\n")
        parts = list(self.client.log_parts(handle.name, times=True))
        self.assertEqual([part.stream for part in parts], ["stdout", "stderr", "stdout"])
        self.assertTrue(all(part.time is not None for part in parts))

    def test_a_blocking_call_in_the_thread_of_the_client_is_refused(self):
        async def call():
            self.client.cluster()
        with self.assertRaisesRegex(RuntimeError, "berth.aio"):
            self.client._loop.run(call())

    def test_interrupted_iterators_end_their_streams(self):
        for _ in range(300):  # more than one user may have open at a time
            for _ in self.client.jobs(name="nothing-*"):
                pass
        revision = self.client.cluster()
        self.client.submit(world.job("true", suspended=True))
        for _ in range(250):
            events = self.client.watch(revision=revision.revision, incarnation=revision.incarnation)
            next(events)
            events.close()

    def test_updates_need_the_current_etag(self):
        handle = self.client.submit(world.job("true", suspended=True))
        before = handle.get()
        after = self.client.update(handle.name, priority=3, labels={"a": "b"}, walltime="2h", etag=before.etag)
        self.assertEqual((after.priority, after.labels, after.walltime), (3, {"a": "b"}, timedelta(hours=2)))
        with self.assertRaises(berth.Aborted):
            self.client.update(handle.name, priority=4, etag=before.etag)
        self.assertIsNone(self.client.update(handle.name, no_walltime=True).walltime)

    def test_environment_and_arguments(self):
        names = ("BERTH_SERVER", "BERTH_TLS_CERTIFICATE", "BERTH_TLS_KEY", "BERTH_TLS_CA", "BERTH_AUTH_SOCKET")
        kept = {name: os.environ.pop(name, None) for name in names}
        self.addCleanup(lambda: [os.environ.__setitem__(name, value) for name, value in kept.items() if value is not None])
        self.addCleanup(os.environ.pop, "BERTH_SERVER", None)
        os.environ["BERTH_SERVER"] = self.cluster.server.address
        with berth.Client() as client:
            self.assertEqual(client.cluster().cluster_id, self.client.cluster().cluster_id)
        for text, reason in (("a:1,a:1", "twice"), ("nowhere", "is no address"), (",".join(f"h:{n}" for n in range(1, 18)), "16")):
            with self.assertRaisesRegex(berth.InvalidArgument, reason):
                berth.Client(text)
        with self.assertRaisesRegex(berth.InvalidArgument, "all of certificate"):
            berth.Client(certificate="/x")
        self.assertEqual(_settings.servers_of(" a:1 , unix:/s "), ("a:1", "unix:/s"))

    def test_many_calls_of_one_asyncio_client(self):
        async def main():
            async with aio.Client(self.cluster.server.address) as client:
                handles = await asyncio.gather(*(client.submit(world.job("true")) for _ in range(40)))
                jobs = await client.wait(handles, timeout=60)
                return {str(job.status.state) for job in jobs}
        self.assertEqual(asyncio.run(main()), {"Succeeded"})


class Restarts(unittest.TestCase):
    def setUp(self):
        self.cluster = world.start(agents=1)
        self.addCleanup(self.cluster.stop)
        self.client = berth.Client(self.cluster.server.address)
        self.addCleanup(self.client.close)

    def restart(self, kill=True):
        self.cluster.server.kill() if kill else self.cluster.server.stop()
        time.sleep(0.3)
        self.cluster.server.start()

    def test_a_watch_skips_nothing_over_kills(self):
        info, count, rounds = self.client.cluster(), 60, 3
        seen = []

        def collect():
            for event in self.client.watch(revision=info.revision, incarnation=info.incarnation):
                if event.type == "JobSubmitted":
                    seen.append(event.job)
                if event.job == "last":
                    return

        join = world.in_thread(collect)
        for number in range(rounds):
            for index in range(count):
                self.client.submit(world.job("true", name=f"w-{number}-{index}", suspended=True))
            self.restart(kill=number % 2 == 0)
        self.client.submit(world.job("true", name="last", suspended=True))
        join()
        wanted = [f"w-{number}-{index}" for number in range(rounds) for index in range(count)]
        self.assertEqual([name for name in dict.fromkeys(seen) if name != "last"], wanted)

    def test_waits_and_logs_go_on_over_a_kill(self):
        flag = self.cluster.shared_file("flag")
        script = f"i=0; while ! grep -q go {flag}; do echo line $i; i=$((i+1)); sleep .05; done; echo line $i"
        handle = self.client.submit(world.job("sh", "-c", script))
        world.berth_harness.wait_until(lambda: handle.get().status.state == "Running", 30, "running")
        wait = world.in_thread(handle.wait, 60)
        logs = world.in_thread(lambda: b"".join(handle.logs(follow=True)))
        time.sleep(0.5)
        self.restart()
        time.sleep(0.5)
        self.restart(kill=False)
        flag.write_text("go")
        self.assertEqual(wait().status.state, "Succeeded")
        lines = logs().decode().split("\n")[:-1]
        self.assertEqual(lines, [f"line {number}" for number in range(len(lines))])
        self.assertGreater(len(lines), 10)

    def test_calls_wait_for_the_server(self):
        self.cluster.server.kill()
        submit = world.in_thread(self.client.submit, world.job("true", name="late", suspended=True))
        time.sleep(1)
        self.cluster.server.start()
        self.assertEqual(submit().name, "late")
        with berth.Client("127.0.0.1:1", timeout=1) as nobody:
            begin = time.monotonic()
            with self.assertRaises(berth.Unavailable):
                nobody.cluster()
            self.assertLess(time.monotonic() - begin, 3)

    def test_a_frozen_server_is_waited_for(self):
        self.client.cluster()
        self.cluster.server.signal(signal.SIGSTOP)
        call = world.in_thread(self.client.submit, world.job("true", name="thawed", suspended=True))
        time.sleep(1)
        self.cluster.server.signal(signal.SIGCONT)
        self.assertEqual(call().name, "thawed")

    def test_an_old_revision_is_out_of_range(self):
        with self.assertRaises(berth.OutOfRange):
            next(iter(self.client.watch(revision=1 << 40, incarnation=7)))

    def test_only_one_watch_for_all_waits(self):
        handles = self.client.submit_many([world.job("sleep", "2") for _ in range(20)])
        joins = [world.in_thread(handle.wait, 60) for handle in handles]
        time.sleep(0.5)
        self.assertEqual(self.cluster.server.metric("berth_watchers"), 1)
        for join in joins:
            self.assertEqual(join().status.state, "Succeeded")


if __name__ == "__main__":
    unittest.main()
