#!/usr/bin/env python3
"""Debian packages of the release build: what they contain, that lintian finds no fault, and that two builds are the same
bytes. Nothing is installed here: packages_root_test.py does that in a root of its own.
"""
import concurrent.futures
import io
import os
import pathlib
import shutil
import subprocess
import tarfile
import tempfile
import unittest

from berth_harness import BIN, SANITIZED, SOURCE

BUILD = pathlib.Path(os.environ.get("BERTH_BUILD", SOURCE / "build" / "release"))
VERSION = "0.0.1"
TOOLS = ["dh", "dh_python3", "lintian", "pybuild"]
SYSUSERS, UNITS, DOC = "usr/lib/sysusers.d", "lib/systemd/system", "usr/share/doc"
# All files but those of FOLDERS, and the two that each package has in DOC.
FILES = {
    "berth-server": ["usr/bin/berthd", f"{UNITS}/berthd.service", f"{SYSUSERS}/berth-server.conf", "etc/berth/berthd.yaml",
                     f"{UNITS}/berth-backup.service", f"{UNITS}/berth-backup.timer", "usr/libexec/berth/berth-backup", "etc/default/berth-backup",
                     "usr/share/man/man8/berthd.8.gz"],
    "berth-agent": ["usr/bin/berth-agent", *(f"usr/libexec/berth/berth-{name}" for name in ("agent", "image", "probe", "supervisor")),
                    f"{UNITS}/berth-agent.service", f"{SYSUSERS}/berth-agent.conf", "etc/berth/agent.yaml",
                    "usr/share/man/man8/berth-agent.8.gz"],
    "berth-authd": ["usr/bin/berth-authd", f"{UNITS}/berth-authd.service", f"{SYSUSERS}/berth-authd.conf", "etc/berth/authd.yaml",
                    "usr/share/man/man8/berth-authd.8.gz"],
    "berth-web": ["usr/bin/berth-web", f"{UNITS}/berth-web.service", f"{SYSUSERS}/berth-web.conf", "etc/berth/web.yaml",
                  "usr/share/man/man8/berth-web.8.gz", f"{DOC}/berth-web/licenses.txt.gz"],
    "berth-client": ["usr/bin/berth", "usr/share/bash-completion/completions/berth", "usr/share/zsh/vendor-completions/_berth",
                     "usr/share/fish/vendor_completions.d/berth.fish"],
    "berth-slurm": ["usr/lib/berth/slurm/berth-slurm"],
    "berth-sim": ["usr/bin/berth-sim", "usr/share/man/man1/berth-sim.1.gz"],
    "python3-berth": ["usr/bin/berth-ray", "usr/share/man/man1/berth-ray.1.gz"],
}
FOLDERS = {"berth-client": "usr/share/man/man1", "berth-slurm": "usr/lib/berth/slurm", "python3-berth": "usr/lib/python3/dist-packages"}
SERVICES = {"berth-server": "berthd", "berth-agent": "berth-agent", "berth-authd": "berth-authd", "berth-web": "berth-web"}


def build(out, version=VERSION, **options):
    return subprocess.run([str(SOURCE / "deploy" / "packages"), "--build", str(BUILD), "--out", str(out), "--version", version],
                          capture_output=True, text=True, timeout=600, **options)


def field(package, name):
    return subprocess.run(["dpkg-deb", "-f", str(package), name], capture_output=True, text=True, check=True).stdout.strip()


def members(package, part):
    """{name: tarfile.TarInfo}, and how to read one. `part`: --fsys-tarfile or --ctrl-tarfile."""
    archive = subprocess.run(["dpkg-deb", part, str(package)], capture_output=True, check=True).stdout
    tar = tarfile.open(fileobj=io.BytesIO(archive))
    found = {member.name.removeprefix("./"): member for member in tar.getmembers()}
    return found, lambda name: tar.extractfile(found[name]).read()


@unittest.skipIf(SANITIZED, "packages are made of a release build")
class Packages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        missing = [tool for tool in TOOLS if shutil.which(tool) is None]
        if missing:
            raise AssertionError(f"{', '.join(missing)}: not installed: deploy/install-deps --test")
        cls.home = pathlib.Path(tempfile.mkdtemp(prefix="berth-packages-"))
        cls.addClassCleanup(shutil.rmtree, cls.home)
        # Another path, locale, time zone, home and umask, at the same time.
        another = {**os.environ, "TZ": "Asia/Tokyo", "LC_ALL": "C.UTF-8", "HOME": str(cls.home)}
        with concurrent.futures.ThreadPoolExecutor() as pool:
            second = pool.submit(build, cls.home / "another-path", env=another, umask=0o077)
            results = [build(cls.home / "first"), second.result()]
        for result in results:
            assert result.returncode == 0, result.stderr
        cls.packages = {path.name.split("_")[0]: path for path in (cls.home / "first").glob("*.deb")}

    def test_they_contain_what_is_named_here_and_nothing_else(self):
        self.assertEqual(set(self.packages), set(FILES))
        for name, package in self.packages.items():
            found, _ = members(package, "--fsys-tarfile")
            files = {path for path, member in found.items() if not member.isdir()}
            folder = FOLDERS.get(name)
            inside = {path for path in files if folder and path.startswith(folder + "/")}
            common = {f"{DOC}/{name}/{file}" for file in ("changelog.gz", "copyright")}
            self.assertEqual(files - (inside - set(FILES[name])), set(FILES[name]) | common, name)
            self.assertEqual(bool(folder), bool(inside), name)
            for path, member in found.items():
                self.assertEqual((member.uid, member.gid, member.uname), (0, 0, "root"), path)
                if not member.issym():
                    self.assertEqual(member.mode & 0o7022, 0, f"{path}: {member.mode:o}")
            self.assertEqual(field(package, "Version"), VERSION)

    def test_nobody_overwrites_the_file_of_another(self):
        owner = {}
        for name, package in self.packages.items():
            for path, member in members(package, "--fsys-tarfile")[0].items():
                if not member.isdir():
                    self.assertIsNone(owner.get(path), path)
                    owner[path] = name

    def test_commands_manual_pages_and_completion_are_those_of_the_build(self):
        slurm, _ = members(self.packages["berth-slurm"], "--fsys-tarfile")
        links = {path.rsplit("/", 1)[1] for path, member in slurm.items() if member.issym() and member.linkname == "berth-slurm"}
        self.assertEqual(links, {path.name for path in (BIN / "slurm").iterdir()})
        self.assertGreaterEqual(links, {"sbatch", "squeue", "srun", "scancel"})
        client, read = members(self.packages["berth-client"], "--fsys-tarfile")
        pages = {path.rsplit("/", 1)[1] for path in client if path.endswith(".1.gz")}
        self.assertEqual(pages, {f"{path.name}.gz" for path in (BUILD / "man" / "man1").iterdir()} - {"berth-sim.1.gz"})
        for shell, path in [("bash", FILES["berth-client"][1]), ("zsh", FILES["berth-client"][2]), ("fish", FILES["berth-client"][3])]:
            script = subprocess.run([str(BIN / "berth"), "completion", shell], capture_output=True, check=True).stdout
            self.assertEqual(read(path), script)
        python, read = members(self.packages["python3-berth"], "--fsys-tarfile")
        for module in ("client.py", "model.py", "py.typed", "v1/job_pb2.py"):  # generated ones, too
            self.assertIn(f"usr/lib/python3/dist-packages/berth/{module}", python)
        self.assertRegex(field(self.packages["python3-berth"], "Depends"), "python3-grpcio.*python3-protobuf.*python3-yaml")

    def test_units_and_users_are_those_of_the_tree_and_configurations_are_conffiles(self):
        for name, service in SERVICES.items():
            _, read = members(self.packages[name], "--fsys-tarfile")
            self.assertEqual(read(f"{UNITS}/{service}.service"), (SOURCE / f"deploy/systemd/{service}.service").read_bytes())
            self.assertEqual(read(f"{SYSUSERS}/{name}.conf"), (SOURCE / f"deploy/systemd/{service}.sysusers").read_bytes())
            _, control = members(self.packages[name], "--ctrl-tarfile")
            configurations = [f"/{path}" for path in FILES[name] if path.startswith("etc/")]
            self.assertEqual(control("conffiles").decode().split(), configurations)
            scripts = control("postinst").decode()
            self.assertNotRegex(scripts, r"deb-systemd-invoke .*berth-backup", "an installation makes no backup")
            self.assertRegex(scripts, rf"systemd-sysusers .*{name}.conf")
            self.assertIn(f"deb-systemd-helper debian-installed '{service}.service'", scripts)  # enabled again, not at first

    def test_lintian_finds_no_fault(self):
        changes, = (self.home / "first").glob("*.changes")
        result = subprocess.run(["lintian", "--allow-root", "--fail-on", "error,warning", "--show-overrides", str(changes)],
                                capture_output=True, text=True, timeout=300, env={**os.environ, "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"})
        self.assertEqual((result.returncode, result.stdout), (0, ""), result.stderr)

    def test_two_builds_are_the_same_bytes(self):
        for name, package in self.packages.items():
            self.assertEqual(package.read_bytes(), (self.home / "another-path" / package.name).read_bytes(), name)

    def test_what_is_missing_is_named(self):
        empty = self.home / "empty"
        (empty / "bin").mkdir(parents=True)
        result = subprocess.run([str(SOURCE / "deploy" / "packages"), "--build", str(empty), "--out", str(self.home / "none")],
                                capture_output=True, text=True, timeout=60)
        self.assertEqual(result.returncode, 1)
        self.assertEqual(result.stderr, f"packages: {empty}/bin/berth is missing: cmake --build {empty}\n")
        self.assertEqual(build(self.home / "none", version="not a version").returncode, 1)
        self.assertEqual(list(self.home.glob("none/*.deb")), [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
