"""The Python package: wheel and sdist are built, and its tests run with the oldest and the newest versions that it takes.

The virtual environments build/python-client/{low,high} have what clients/python/tests/requirements-*.txt pin. Without PyPI and
without these environments the test is skipped.
"""
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

SOURCE = pathlib.Path(os.environ.get("BERTH_SOURCE", pathlib.Path(__file__).resolve().parents[2]))
PACKAGE = SOURCE / "clients" / "python"
PLACE = pathlib.Path(os.environ.get("BERTH_BUILD", SOURCE / "build" / "release")).parent / "python-client"
# What each end runs, side by side. Manifests, frames and checks do not depend on the versions.
RUNS = [("high", ["check", "doc", "executor", "frames", "manifest"]), ("high", ["client", "ha", "history", "tls"]),
        ("low", ["client", "doc", "executor", "history"])]
LONGEST_S = 240


def make_environment(name):
    """Made again when the requirements have changed."""
    requirements, venv = PACKAGE / "tests" / f"requirements-{name}.txt", PLACE / name
    wanted, stamp = hashlib.sha256(requirements.read_bytes()).hexdigest(), venv / "requirements.sha256"
    if stamp.exists() and stamp.read_text() == wanted:
        return venv
    shutil.rmtree(venv, ignore_errors=True)
    for command in ([sys.executable, "-m", "venv", venv],
                    [venv / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check", "--retries", "1", "--timeout", "20",
                     "--require-hashes", "--requirement", requirements]):
        made = subprocess.run(command, capture_output=True, text=True)
        if made.returncode:
            shutil.rmtree(venv, ignore_errors=True)
            raise unittest.SkipTest(f"the packages cannot be installed from PyPI: {made.stderr[-300:]}")
    stamp.write_text(wanted)
    return venv


def run(*command, **options):
    result = subprocess.run([str(part) for part in command], capture_output=True, text=True, **options)
    assert result.returncode == 0, f"{command}: {result.returncode}\n{result.stdout[-4000:]}{result.stderr[-4000:]}"
    return result.stdout


def build(python, source, kind, out):
    """A wheel or an sdist, without a network."""
    code = f"import sys; sys.path.insert(0, 'build_support'); import backend; print(backend.build_{kind}({str(out)!r}))"
    return out / run(python, "-c", code, cwd=source).split("\n")[-2]


class PythonClient(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.venvs = {name: make_environment(name) for name in ("high", "low")}
        cls.work = pathlib.Path(tempfile.mkdtemp(prefix="berth-python-"))
        cls.addClassCleanup(shutil.rmtree, cls.work, True)
        python = cls.venvs["high"] / "bin" / "python"
        cls.tree = cls.work / "clients" / "python"  # the build writes into the tree
        shutil.copytree(PACKAGE, cls.tree, ignore=shutil.ignore_patterns("__pycache__", "v1", "*.egg-info", "dist", "build"))
        for generated in ("_rpc_status.py", "_version.py", "client.py", "model.py"):
            (cls.tree / "src" / "berth" / generated).unlink(missing_ok=True)
        (cls.work / "proto").symlink_to(SOURCE / "proto")
        shutil.copy(SOURCE / "CMakeLists.txt", cls.work)
        cls.sdist = build(python, cls.tree, "sdist", cls.work)
        cls.wheel = build(python, cls.tree, "wheel", cls.work)

    def test_the_wheel_of_the_sdist_is_the_same(self):
        """It is built without the protos of the tree."""
        apart = self.work / "apart"
        shutil.unpack_archive(self.sdist, apart)
        again = build(self.venvs["high"] / "bin" / "python", next(apart.iterdir()), "wheel", apart)
        contents = []
        for path in (self.wheel, again):
            with zipfile.ZipFile(path) as wheel:
                contents.append({name: wheel.read(name) for name in wheel.namelist() if not name.endswith("RECORD")})
        self.assertEqual(contents[0], contents[1])
        self.assertIn("berth/py.typed", contents[0])
        self.assertIn("berth/v1/job_pb2.pyi", contents[0])
        self.assertIn("none-any", self.wheel.name)

    def test_types_and_style(self):
        bin = self.venvs["high"] / "bin"
        run(bin / "mypy", "--cache-dir", PLACE / "mypy", "--config-file", "pyproject.toml", cwd=self.tree)
        run(bin / "ruff", "check", "--no-cache", ".", cwd=self.tree)

    def test_both_ends_of_the_versions(self):
        running = []
        for name, venv in self.venvs.items():  # beside the environment, which stays as the requirements made it
            run(venv / "bin" / "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", self.work / f"site-{name}",
                self.wheel)
        for name, tests in RUNS:
            code = "import sys, unittest; unittest.main(module=None, argv=['tests', *sys.argv[1:]])"
            running.append((name, subprocess.Popen(
                [self.venvs[name] / "bin" / "python", "-c", code, *(f"{test}_test" for test in tests)], cwd=self.tree / "tests",
                env={**os.environ, "PYTHONPATH": str(self.work / f"site-{name}"), "PYTHONDONTWRITEBYTECODE": "1", "BERTH_SOURCE": str(SOURCE)},
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)))
        for name, process in running:
            with self.subTest(name):
                output = process.communicate(timeout=LONGEST_S)[0]
                self.assertEqual(process.returncode, 0, output[-8000:])
                self.assertRegex(output, r"Ran \d\d+ tests")


if __name__ == "__main__":
    unittest.main()
