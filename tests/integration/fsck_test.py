#!/usr/bin/env python3
"""berthd --fsck: a good store passes; fsck and the start refuse a damaged one, and name the file and the reason."""
import os
import random
import shutil
import subprocess
import unittest

import grpc

from berth_api import job_pb2, make_job
from berth_harness import BIN, Cluster, wait_until

JOBS = 1500  # their annotations exceed the write buffer: the first jobs are in a table


class Fsck(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster()
        cls.addClassCleanup(cls.cluster.__exit__, None, None, None)
        cls.cluster.server.start()
        cls.cluster.create_queue("q")
        for first in range(0, JOBS, 50):
            jobs = [make_job(f"j-{i}", "q", ["true"], annotations={"note": os.urandom(30000).hex()}) for i in range(first, first + 50)]
            cls.cluster.api.jobs.SubmitJobs(job_pb2.SubmitJobsRequest(request_id=f"r{first}", jobs=jobs), timeout=10)
        wait_until(lambda: any(table.stat().st_size > 1 << 20 for table in cls.cluster.server.data.glob("*.sst")), 60, "a table is written")
        cls.cluster.server.stop()
        cls.store = cls.cluster.home / "store-at-rest"
        shutil.copytree(cls.cluster.server.data, cls.store)

    def fsck(self, directory):
        return subprocess.run([str(BIN / "berthd"), "--fsck", str(directory)], capture_output=True, text=True, timeout=120)

    def copy(self, name):
        copy = self.cluster.home / name
        shutil.copytree(self.store, copy)
        return copy

    def test_a_good_store_passes(self):
        result = self.fsck(self.cluster.server.data)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertIn(str(JOBS), result.stdout.replace(",", ""))
        print(result.stdout.strip())

    def test_a_missing_directory_is_an_error_and_is_not_created(self):
        missing = self.cluster.home / "no-such-store"
        result = self.fsck(missing)
        self.assertNotEqual(result.returncode, 0)
        self.assertIn(str(missing), result.stdout + result.stderr)
        self.assertFalse(missing.exists())

    def largest(self, directory, suffix):
        return max(directory.rglob(f"*{suffix}"), key=lambda f: f.stat().st_size)

    def refused(self, directory, damaged):
        result = self.fsck(directory)
        self.assertNotEqual(result.returncode, 0, f"damage of {damaged.name} was not noticed")
        self.assertIn(damaged.stem, result.stdout + result.stderr)  # RocksDB reports a lost 27.sst as 27.ldb
        started = subprocess.run([*self.cluster.server.arguments[:-1], str(directory)],
                                 capture_output=True, text=True, timeout=60)
        self.assertNotEqual(started.returncode, 0, "berthd started on a damaged store")
        self.assertIn(str(directory), started.stdout + started.stderr)
        return result.stderr.strip()

    def test_a_flipped_byte_is_found(self):
        store = self.copy("flipped")
        damaged = self.largest(store, ".sst")
        content = bytearray(damaged.read_bytes())
        content[len(content) // 3] ^= 0x40
        damaged.write_bytes(content)
        print(self.refused(store, damaged))

    def test_damage_that_a_running_server_finds_is_reported(self):
        with Cluster(data=self.copy("met-later")) as cluster:
            cluster.server.start()
            self.assertEqual(cluster.server.metric("berth_store_read_errors_total"), 0)
            self.assertEqual(cluster.server.get("/readyz"), (200, "ready\n"))
            table = self.largest(cluster.server.data, ".sst")
            with open(table, "r+b") as damaged:
                for at in range(table.stat().st_size // 3, table.stat().st_size // 2, 1024):
                    damaged.seek(at)
                    damaged.write(b"\x00damage\xff")

            def damaged_job():
                for i in range(JOBS):
                    try:
                        cluster.api.jobs.GetJob(job_pb2.GetJobRequest(name=f"j-{i}"), timeout=10)
                    except grpc.RpcError as error:
                        return error.code()
            self.assertEqual(damaged_job(), grpc.StatusCode.DATA_LOSS)
            self.assertIn("the store is damaged: a read failed", cluster.server.output())
            self.assertEqual(cluster.server.metric("berth_store_read_errors_total"), 1)
            status, body = cluster.server.get("/readyz")
            self.assertEqual(status, 200)  # the next start would refuse the store
            self.assertIn("ready, but the store is damaged, 1 read has failed: ", body)
            self.assertIn(table.name, body)
            self.assertIn("the store is damaged, 1 read has failed", cluster.berth("cluster", "info"))

    def test_a_store_on_a_read_only_file_system_is_checked(self):
        if os.getuid() != 0:
            self.skipTest("needs root to mount a file system read-only")
        place = self.cluster.home / "read-only"
        place.mkdir()
        for options in (["--bind", str(self.store), str(place)], ["-o", "remount,bind,ro", str(place)]):
            mounted = subprocess.run(["mount", *options], capture_output=True, text=True)
            if mounted.returncode != 0:
                self.skipTest(f"cannot mount here: {mounted.stderr.strip()}")
            if options[0] == "--bind":
                self.addCleanup(subprocess.run, ["umount", str(place)], check=False)
        with self.assertRaises(OSError):
            (place / "new").touch()
        result = self.fsck(place)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertIn(str(JOBS), result.stdout.replace(",", ""))

    def test_a_lost_table_is_found(self):
        store = self.copy("lost")
        damaged = self.largest(store, ".sst")
        damaged.unlink()
        print(self.refused(store, damaged))

    def test_a_truncated_log_is_found(self):
        store = self.copy("torn")
        log = max(store.rglob("*.log"))  # the last log; the end of an earlier one is not the end
        log.write_bytes(log.read_bytes()[:-3])
        said = self.refused(store, log)
        self.assertIn(f"{log.name} ends at byte {log.stat().st_size}", said)
        self.assertIn("1 batches are missing", said)
        for name in ("ACKED", "WALS"):  # no record shows that it was acknowledged: a crash can leave this
            (store / name).unlink()
        result = self.fsck(store)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def test_a_damaged_store_names_the_command_that_restores(self):
        store, backup = self.copy("lived"), self.copy("backup")
        log = max(store.rglob("*.log"))
        log.write_bytes(log.read_bytes()[:-3])
        command = f"mv {store} {store}.damaged && berthd --restore BACKUP --data {store}"
        self.assertIn(command, self.fsck(store).stderr)
        started = subprocess.run([*self.cluster.server.arguments[:-1], str(store)], capture_output=True, text=True, timeout=60)
        self.assertIn(command, started.stderr)

        in_place = command.replace("BACKUP", str(backup)).replace("berthd", str(BIN / "berthd"))
        result = subprocess.run(in_place, shell=True, capture_output=True, text=True, timeout=120)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertIn("restored", result.stdout)
        self.assertEqual(self.fsck(store).returncode, 0)
        again = subprocess.run(in_place.split("&& ")[1], shell=True, capture_output=True, text=True, timeout=120)
        self.assertEqual(again.returncode, 1)
        self.assertIn("nothing is overwritten", again.stderr)

    def test_a_backup_that_is_in_use_is_not_restored(self):
        self.cluster.server.start()
        try:
            place = self.cluster.home / "place"
            result = subprocess.run([str(BIN / "berthd"), "--restore", str(self.cluster.server.data), "--data", str(place)],
                                    capture_output=True, text=True, timeout=60)
        finally:
            self.cluster.server.stop()
        self.assertEqual(result.returncode, 1)
        self.assertIn("in use by another process", result.stderr)
        self.assertFalse(place.exists())

    def test_a_backup_of_a_running_server_can_be_restored(self):
        with Cluster(config={"backupDirectory": str(self.cluster.home / "backups")}) as cluster:
            cluster.server.start()
            cluster.create_queue("q")
            cluster.api.jobs.SubmitJobs(job_pb2.SubmitJobsRequest(request_id="r1", jobs=[make_job("before", "q", ["true"])]), timeout=10)
            said = cluster.berth("cluster", "backup", "nightly-1")
            self.assertIn("berthd --restore", said)
            self.assertIn("already exists", cluster.run_berth("cluster", "backup", "nightly-1").stderr)
            self.assertIn("name: must be at most 128 letters", cluster.run_berth("cluster", "backup", "../x").stderr)
            cluster.api.jobs.SubmitJobs(job_pb2.SubmitJobsRequest(request_id="r2", jobs=[make_job("after", "q", ["true"])]), timeout=10)
            cluster.server.kill()
            shutil.rmtree(cluster.server.data)
            result = subprocess.run([str(BIN / "berthd"), "--restore", str(self.cluster.home / "backups/nightly-1"),
                                     "--data", str(cluster.server.data)], capture_output=True, text=True, timeout=60)
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
            cluster.server.start()
            names = {job.name for job in cluster.api.jobs.ListJobs(job_pb2.ListJobsRequest(), timeout=10).jobs}
            self.assertEqual(names, {"before"})

    def test_without_a_backup_directory_no_backup_is_made(self):
        with Cluster() as cluster:
            cluster.server.start()
            self.assertIn("backupDirectory", cluster.run_berth("cluster", "backup").stderr)

    def test_a_broken_manifest_is_found(self):
        store = self.copy("manifest")
        (manifest,) = [f for f in store.rglob("MANIFEST-*")]
        content = manifest.read_bytes()
        manifest.write_bytes(random.Random(1).randbytes(len(content)))
        print(self.refused(store, manifest))


if __name__ == "__main__":
    unittest.main(verbosity=2)
