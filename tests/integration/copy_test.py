#!/usr/bin/env python3
"""berth cp with the real tar of a task, and with archives that a malicious task sends."""
import io
import os
import pathlib
import tarfile
import unittest

from berth_api import make_job
from interactive_world import World


class Copies(World):
    def setUp(self):
        name = self._testMethodName.removeprefix("test_").replace("_", "-")[:40].strip("-")
        self.name = name
        self.submit(make_job(name, "q", ["sleep", "1000"]))
        self.local = self.cluster.home / name
        self.local.mkdir()

    def sh(self, script):
        return self.cluster.berth("exec", self.name, "-n", "--", "sh", "-c", script)

    def cp(self, source, target):
        return self.cluster.run_berth("cp", str(source), str(target))

    def make_tree(self):
        tree = self.local / "tree"
        (tree / "deep" / "er").mkdir(parents=True)
        (tree / "run.sh").write_text("#!/bin/sh\necho ran\n")
        (tree / "run.sh").chmod(0o750)
        (tree / "deep" / "er" / "big").write_bytes(os.urandom(3_000_000))
        (tree / "empty").mkdir()
        (tree / "link").symlink_to("deep/er/big")
        return tree

    def test_there_and_back(self):
        tree = self.make_tree()
        place = f"{self.name}:"
        self.assertEqual(self.cp(tree, place + "copied").returncode, 0)  # a new name in its working directory
        self.assertEqual(self.sh("copied/run.sh; stat -c %a copied/run.sh; readlink copied/link; ls copied"),
                         "ran\n750\ndeep/er/big\ndeep\nempty\nlink\nrun.sh\n")
        self.assertEqual(self.cp(tree / "run.sh", f"job/{self.name}/w-0:copied").returncode, 0)  # into a directory
        self.assertEqual(self.cp(f"{self.name}/w-0:copied", self.local / "back").returncode, 0)
        back = self.local / "back"
        self.assertEqual((back / "deep" / "er" / "big").read_bytes(), (tree / "deep" / "er" / "big").read_bytes())
        self.assertEqual((back / "run.sh").stat().st_mode & 0o7777, 0o750)
        self.assertEqual(os.readlink(back / "link"), "deep/er/big")
        self.assertEqual(self.cp(place + "copied/run.sh", self.local).returncode, 0)
        self.assertTrue((self.local / "run.sh").is_file())
        self.assertEqual(self.cp(place + "copied/run.sh", self.local / "named").returncode, 0)
        self.assertEqual((self.local / "named").read_text(), (tree / "run.sh").read_text())

    def test_errors(self):
        place = f"{self.name}:"
        missing = self.cp(place + "/no/such", self.local)
        self.assertEqual(missing.returncode, 1)
        self.assertIn("/no", missing.stderr)
        self.assertEqual(self.cp(self.local / "no-such", place + "/tmp").returncode, 4)
        (self.local / "file").write_text("x")
        self.assertEqual(self.cp(self.local / "file", place + "/no/such/").returncode, 4)
        self.assertNotEqual(self.cp(self.local / "file", place + "/no/such/place").returncode, 0)
        self.assertNotEqual(self.cp(place + "/etc/hostname", self.local / "none" / "x").returncode, 0)
        self.assertEqual(self.cp(self.local / "file", self.local / "other").returncode, 2)
        self.assertEqual(self.cp(place + "a", place + "b").returncode, 2)
        self.assertEqual(self.cp(place + "/", self.local).returncode, 2)
        self.assertEqual(self.cp("ghost:/etc/hostname", self.local).returncode, 3)

    def attack(self, *entries):
        """Copies from a task whose `tar` is another one that prints this archive; returns the result."""
        archive = self.cluster.home / f"{self.name}.tar"
        with tarfile.open(archive, "w") as tar:
            for name, fields in entries:
                info = tarfile.TarInfo(name)
                data = fields.pop("data", b"")
                info.size = len(data)
                for key, value in fields.items():
                    setattr(info, key, value)
                tar.addfile(info, io.BytesIO(data))
        archive.chmod(0o644)
        self.sh(f"mkdir -p bin; printf '#!/bin/sh\nexec cat {archive}\n' > bin/tar; chmod +x bin/tar")
        job = make_job(f"{self.name}-tar", "q", ["sleep", "1000"],
                       env={"PATH": self.sh("pwd").strip() + "/bin:/usr/bin:/bin"})
        self.submit(job)
        return self.cluster.run_berth("cp", f"{self.name}-tar:data", str(self.local / "data"))

    def test_an_archive_that_climbs(self):
        for name in "../outside", "data/../../outside", "/tmp/berth-outside", "other/file":
            with self.subTest(name):
                result = self.attack(("data", {"type": tarfile.DIRTYPE, "mode": 0o755}), (name, {"data": b"bad"}))
                self.assertNotEqual(result.returncode, 0)
                self.assertIn("which is not below data", result.stderr)
                self.cluster.berth("job", "cancel", f"{self.name}-tar", "--force")
                self.cluster.wait_job(f"{self.name}-tar", "CANCELLED")
                self.cluster.berth("job", "delete", f"{self.name}-tar")
        self.assertFalse((self.local / "outside").exists() or pathlib.Path("/tmp/berth-outside").exists())

    def test_an_archive_whose_links_lead_out(self):
        victim = self.local / "victim"
        victim.mkdir()
        secret = self.local / "secret"
        secret.write_text("mine")
        result = self.attack(
            ("data", {"type": tarfile.DIRTYPE, "mode": 0o755}),
            ("data/out", {"type": tarfile.SYMTYPE, "linkname": str(victim)}),
            ("data/out/file", {"data": b"bad"}),
            ("data/up", {"type": tarfile.SYMTYPE, "linkname": "../victim"}),
            ("data/up/file", {"data": b"bad"}),
            ("data/good", {"type": tarfile.SYMTYPE, "linkname": "fine"}),
            ("data/fine", {"data": b"ok", "mode": 0o4755}),
            ("data/device", {"type": tarfile.CHRTYPE, "devmajor": 1, "devminor": 3}))
        self.assertEqual(list(victim.iterdir()), [])
        self.assertIn("left out: out: a link that leads out", result.stderr)
        self.assertIn("left out: device: no file", result.stderr)
        self.assertEqual(os.readlink(self.local / "data" / "good"), "fine")
        self.assertEqual((self.local / "data" / "fine").stat().st_mode & 0o7777, 0o755)
        self.assertFalse((self.local / "data" / "device").exists())

    def test_an_archive_that_writes_through_its_own_link(self):
        result = self.attack(
            ("data", {"type": tarfile.DIRTYPE, "mode": 0o755}),
            ("data/real", {"type": tarfile.DIRTYPE, "mode": 0o755}),
            ("data/alias", {"type": tarfile.SYMTYPE, "linkname": "real"}),
            ("data/alias/file", {"data": b"through"}))
        self.assertFalse((self.local / "data" / "real" / "file").exists(), result.stderr)

    def test_an_archive_with_hard_links(self):
        secret = self.local / "secret"
        secret.write_text("mine")
        result = self.attack(
            ("data", {"type": tarfile.DIRTYPE, "mode": 0o755}),
            ("data/one", {"data": b"same"}),
            ("data/two", {"type": tarfile.LNKTYPE, "linkname": "data/one"}),
            ("data/theirs", {"type": tarfile.LNKTYPE, "linkname": str(secret)}))
        self.assertNotEqual(result.returncode, 0)
        self.assertEqual((self.local / "data" / "two").read_bytes(), b"same")
        self.assertFalse((self.local / "data" / "theirs").exists())


if __name__ == "__main__":
    unittest.main(verbosity=2)
