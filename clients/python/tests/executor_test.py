"""Functions as jobs: results, tracebacks, cancels, checkpoints, restarts of the server, with and without a folder."""
import asyncio
import base64
import concurrent.futures
import os
import pathlib
import pickle
import subprocess
import sys
import time
import unittest
import zlib

import world

import berth


def fail(text):
    raise ValueError(text)


class Unpicklable(Exception):
    def __init__(self, one, two):
        super().__init__(one)
        self.lock = __import__("threading").Lock()


class Counter(berth.Checkpointable):
    """Counts in steps, and says how many attempts it took."""

    def __init__(self, flag):
        self.flag, self.done, self.attempts = flag, 0, 0

    def __call__(self, steps):
        self.attempts += 1
        while self.done < steps:
            self.done += 1
            if self.done == 5 and self.attempts == 1:
                with open(self.flag, "a") as flag:
                    flag.write("at five\n")
                time.sleep(60)
        return self.done, self.attempts


class OtherVersion(unittest.TestCase):
    def test_another_python_is_refused_before_the_code_runs(self):
        code = "import sys; sys.path.insert(0, sys.argv[1]); import _task; _task.main(['2.7', 'nonce', ''])"
        result = subprocess.run([sys.executable, "-c", code, str(pathlib.Path(berth.__file__).parent)], capture_output=True,
                                check=False)
        self.assertEqual(result.returncode, 70)
        nonce, line = result.stdout.split()
        good, error, _ = pickle.loads(pickle.loads(zlib.decompress(base64.b64decode(line)))[0])
        self.assertEqual((nonce, good), (b"nonce", False))
        self.assertRegex(str(error), r"pickled by Python 2.7, and the task runs Python 3\.")


@unittest.skipUnless(world.same_python(), "tasks need the Python of the machine")
class Functions(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = world.start(agents=4)
        cls.addClassCleanup(cls.cluster.stop)
        cls.client = berth.Client(cls.cluster.server.address)
        cls.addClassCleanup(cls.client.close)
        cls.template, cls.folder = world.template(cls.cluster), world.shared_folder(cls.cluster)

        import cloudpickle
        cloudpickle.register_pickle_by_value(sys.modules[__name__])

    def executor(self, folder=True, **options):
        return berth.Executor(self.client, queue="research", python="/usr/bin/python3", job=self.template,
                              folder=self.folder if folder else None, **options)

    def test_results_in_order(self):
        for folder in (True, False):
            with self.subTest(folder=folder), self.executor(folder) as executor:
                squares = executor.map(lambda a, b: a * b, range(20), range(20), chunksize=3)
                self.assertEqual(list(squares), [n * n for n in range(20)])
                futures = [executor.submit(lambda n: {"n": n}, n) for n in range(6)]
                self.assertEqual([future.result(timeout=60) for future in futures], [{"n": n} for n in range(6)])
                self.assertEqual(list(executor.map(abs, [])), [])

    def test_large_values_need_a_folder(self):
        data = os.urandom(300_000)
        with self.executor() as executor:
            self.assertEqual(executor.submit(lambda value: value[::-1], data).result(timeout=60), data[::-1])
        with self.executor(folder=False) as executor:
            with self.assertRaisesRegex(ValueError, "give the executor a folder"):
                executor.submit(len, data)
            self.assertEqual(len(executor.submit(os.urandom, 300_000).result(timeout=60)), 300_000)

    def test_exceptions_come_back_with_their_tracebacks(self):
        for folder in (True, False):
            with self.subTest(folder=folder), self.executor(folder, max_retries=2) as executor:
                future = executor.submit(fail, "no luck")
                with self.assertRaisesRegex(ValueError, "no luck") as caught:
                    future.result(timeout=60)
                self.assertRegex(str(caught.exception.__cause__), r"(?s)Traceback.*in fail.*ValueError: no luck")
                job = self.client.get(future.job)
                self.assertEqual((str(job.status.state), job.status.retries), ("Failed", 0))  # is not retried

    def test_only_the_failed_element_of_a_chunk_fails(self):
        with self.executor() as executor:
            futures = executor.map_array(lambda n: 1 // n, [1, 0, 2], chunksize=3)
            self.assertEqual([futures[0].result(timeout=60), futures[2].result()], [1, 0])
            self.assertRaises(ZeroDivisionError, futures[1].result)

    def test_chosen_chunks_have_a_process_for_each_call(self):
        def one(n):
            import random
            print("call", n)
            if n == 7:
                os.kill(os.getpid(), 9)
            if n == 8:
                os._exit(3)
            if n == 9:
                raise ValueError("nine")
            return n, os.getpid(), random.random()

        for folder in (True, False):
            with self.subTest(folder=folder), self.executor(folder, parallelism=1) as executor:
                futures = executor.map_array(one, range(40), chunksize=None)
                self.assertEqual(len({future.job for future in futures}), 4)
                with self.assertRaisesRegex(berth.JobFailed, "ended its process with signal 9"):
                    futures[7].result(timeout=60)
                self.assertRaisesRegex(berth.JobFailed, "exit code 3", futures[8].result)
                self.assertRaisesRegex(ValueError, "nine", futures[9].result)
                good = [futures[n].result(timeout=60) for n in range(40) if n not in (7, 8, 9)]
                self.assertEqual([n for n, _, _ in good], [n for n in range(40) if n not in (7, 8, 9)])
                self.assertEqual(len({chance for _, _, chance in good}), 37)
                first = [pid for n, pid, _ in good if n < 7]
                self.assertEqual(len(set(first)), 7)
                self.assertIn(b"call 9\n", b"".join(self.client.logs(futures[0].job)))
        def second_time(path):
            with open(path, "a") as seen:
                seen.write("x")
            if os.path.getsize(path) < 2:
                os._exit(1)
            return os.path.getsize(path)

        with self.executor(parallelism=1, max_retries=1) as executor:
            paths = [str(self.folder / f"seen-{n}") for n in range(6)]
            self.assertEqual(list(executor.map(second_time, paths, chunksize=None)), [2] * 6)
        with self.executor(walltime="1m", parallelism=1) as executor:
            self.assertEqual(len({future.job for future in executor.map_array(abs, range(6), chunksize=None)}), 6)

    def test_exceptions_that_cannot_be_pickled_have_their_text(self):
        def raises():
            raise Unpicklable(1, 2)
        with self.executor() as executor, self.assertRaisesRegex(RuntimeError, "Unpicklable: 1"):
            executor.submit(raises).result(timeout=60)

    def test_a_killed_task_is_a_failed_job(self):
        with self.executor() as executor:
            future = executor.submit(lambda: os.kill(os.getpid(), 9))
            with self.assertRaisesRegex(berth.JobFailed, "left no result"):
                future.result(timeout=60)

    def test_output_of_the_function_does_not_hide_the_result(self):
        def talk():
            print("x" * 70_000)
            os.write(1, b"no newline")
            return "heard"
        with self.executor(folder=False) as executor:
            future = executor.submit(talk)
            self.assertEqual(future.result(timeout=60), "heard")
            self.assertIn(b"no newline\n", b"".join(self.client.logs(future.job)))

    def test_cancel_of_one_and_at_shutdown(self):
        executor = self.executor()
        futures = executor.map_array(time.sleep, [300] * 3)
        world.berth_harness.wait_until(lambda: self.client.get(futures[0].job).status.state == "Running", 60, "running")
        self.assertTrue(futures[0].cancel())
        world.berth_harness.wait_until(lambda: self.client.get(futures[0].job).status.state == "Cancelled", 60, "cancelled")
        self.assertFalse(futures[1].done())
        executor.shutdown(cancel_futures=True)
        self.assertTrue(all(future.cancelled() for future in futures))
        self.assertRaises(RuntimeError, executor.submit, abs, 1)

    def test_a_cancelled_array_ends_its_futures(self):
        with self.executor(parallelism=2) as executor:
            futures = executor.map_array(time.sleep, [300] * 5)
            name = futures[0].job.rpartition(".")[0]
            world.berth_harness.wait_until(lambda: self.client.get(futures[0].job).status.state == "Running", 60, "running")
            self.client.cancel(name)
            for future in futures:
                self.assertRaises(berth.JobFailed, future.result, 60)

    def test_a_refused_job_says_why(self):
        with berth.Executor(self.client, queue="nowhere", folder=self.folder) as executor:
            future = executor.submit(abs, 1)
            self.assertRaisesRegex(berth.BerthError, 'no queue "nowhere"', future.result, 60)

    def test_a_suspended_function_goes_on_from_its_checkpoint(self):
        flag = self.cluster.shared_file("counter-flag")
        with self.executor(walltime="10m") as executor:
            future = executor.submit(Counter(str(flag)), 9)
            world.berth_harness.wait_until(lambda: "at five" in flag.read_text(), 60, "the first attempt")
            self.client.suspend(future.job)
            world.berth_harness.wait_until(lambda: self.client.get(future.job).status.state == "Suspended", 60, "suspended")
            self.client.resume(future.job)
            self.assertEqual(future.result(timeout=60), (9, 2))
        with self.executor(folder=False) as executor, self.assertRaisesRegex(ValueError, "needs a folder"):
            executor.submit(Counter(str(flag)), 9)

    def test_the_end_of_the_walltime_is_a_checkpoint_too(self):
        flag = self.cluster.shared_file("walltime-flag")
        with self.executor(walltime="4s", grace="2s") as executor:
            self.assertEqual(executor.submit(Counter(str(flag)), 9).result(timeout=90), (9, 2))

    def test_results_survive_restarts_of_the_server(self):
        with self.executor() as executor:
            futures = executor.map_array(lambda n: (time.sleep(1.5), n)[1], range(12))
            time.sleep(1)
            self.cluster.server.kill()
            time.sleep(0.3)
            self.cluster.server.start()
            self.assertEqual([future.result(timeout=90) for future in futures], list(range(12)))

    def test_futures_can_be_awaited(self):
        async def main(executor):
            return await asyncio.gather(executor.submit(abs, -1), executor.submit(abs, -2))
        with self.executor() as executor:
            self.assertEqual(asyncio.run(asyncio.wait_for(main(executor), 60)), [1, 2])
            done, _ = concurrent.futures.wait([executor.submit(abs, -3)], timeout=60)
            self.assertEqual(done.pop().result(), 3)


if __name__ == "__main__":
    unittest.main()
