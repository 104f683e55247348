"""The first steps as printed: deploy/quickstart, then every command of README.md and of docs/users/start.md.

The commands run in a folder with the parts of a checkout that they need: deploy/ and var/. The text that a page shows
under a command must be in its output, except numbers, which differ by machine and day.
"""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

from berth_harness import BIN, SOURCE, free_port, wait_until


def blocks(section):
    """(language, lines) of each fenced block."""
    return [(language, body.split("\n")[:-1])
            for language, body in re.findall(r"^```(\w*)\n(.*?)^```$", section, re.M | re.S)]


def commands(section):
    """[(command, shown lines)] of all blocks with "$ " lines, in order."""
    found = []
    for language, lines in blocks(section):
        if language or not any(line.startswith("$ ") for line in lines):
            continue
        for line in lines:
            if line.startswith("$ "):
                found.append((line[2:], []))
            elif found:
                found[-1][1].append(line)
    return found


def plain(line):
    """The text without the parts that differ: amounts, times, and the blanks of columns."""
    return re.sub(r"\s+", " ", re.sub(r"\d[\d.:]*[a-zA-Z]*", "N", line)).strip()


class ReadmeTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.readme = (SOURCE / "README.md").read_text()
        cls.start = (SOURCE / "docs" / "users" / "start.md").read_text()
        cls.home = pathlib.Path(tempfile.mkdtemp(prefix="berth-readme-"))
        cls.home.chmod(0o755)  # tasks run as nobody
        (cls.home / "deploy").symlink_to(SOURCE / "deploy")
        port = free_port()
        cls.environment = {**os.environ, "BERTH_BIN": str(BIN), "BERTH_VAR": str(cls.home / "var"),
                           "BERTH_PORT": str(port), "BERTH_HTTP_PORT": str(free_port())}
        cls.addClassCleanup(cls.clean_up)
        started = cls.quickstart()
        assert started.returncode == 0, started.stdout[-4000:] + started.stderr[-2000:]
        cls.started = started.stdout
        cls.environment.update(PATH=f"{BIN}:{os.environ['PATH']}", BERTH_SERVER=f"127.0.0.1:{port}")

    @classmethod
    def clean_up(cls):
        cls.quickstart("--stop")
        shutil.rmtree(cls.home, ignore_errors=True)

    @classmethod
    def quickstart(cls, *arguments):
        return subprocess.run([str(SOURCE / "deploy" / "quickstart"), *arguments], capture_output=True, text=True,
                              env=cls.environment, timeout=300)

    def run_literally(self, command, cwd=None, stdin=None):
        return subprocess.run(["bash", "-c", command], capture_output=True, text=True, env=self.environment, input=stdin,
                              cwd=cwd or self.home, timeout=120)

    def check(self, command, shown):
        """Runs it until it shows the expected text: a reader may be faster than the cluster."""
        # An error: with a position, or of the command line.
        refused = any(re.match(r"(\S+:\d+:\d+|berth: (?!warning)[^ ]*.*(no queue|unknown option)).*", line) for line in shown)

        def as_shown():
            result = self.run_literally(command)
            output = result.stdout + result.stderr
            assert (result.returncode != 0) == refused, f"{command}: {result.returncode}\n{output}"
            printed = [plain(line) for line in output.split("\n")]
            missing = [line for line in shown if plain(line) not in printed]
            assert not missing, f"{command} does not print {missing}:\n{output}"
            return True
        reads = re.match(r"berth (job (list|get|describe|logs)|queue list|cluster info|topology show|node tasks)", command)
        if reads:
            wait_until(as_shown, 30, command, interval_s=0.2)
        else:
            as_shown()

    def test_1_the_first_example_is_the_file_and_runs_anywhere(self):
        example = (SOURCE / "deploy" / "examples" / "allreduce.yaml").read_text()
        yaml = ["\n".join(lines) + "\n" for language, lines in blocks(self.start) if language == "yaml"]
        self.assertEqual(yaml, [example])
        quickstart = (SOURCE / "deploy" / "quickstart").read_text()
        self.assertIn("berth submit deploy/examples/allreduce.yaml", quickstart)
        self.assertNotRegex(quickstart, r"sed .*deploy/examples", "the file is submitted unchanged")
        for line in ("$ berth submit deploy/examples/allreduce.yaml", "[rank 3] the sum of 4 ranks is 6: right"):
            self.assertIn(line, self.started)
        pasted = self.run_literally("berth submit --wait -", cwd="/", stdin=yaml[0])
        self.assertEqual((pasted.returncode, pasted.stdout, pasted.stderr),
                         (0, "job/allreduce submitted\njob/allreduce Succeeded\n", ""))
        self.assertEqual(self.run_literally("berth job delete allreduce").returncode, 0)

    def test_1_every_command_of_the_tour_works_when_copied(self):
        tour = [line[2:] for line in self.started.splitlines() if line.startswith("$ ")]
        self.assertGreater(len(tour), 25)
        for command in tour:
            if command.startswith("berth job tasks finetune"):
                self.wait_until_state("finetune", "Running|Succeeded")
            result = self.run_literally(command)
            self.assertEqual(result.returncode, 0, f"{command}\n{result.stdout}{result.stderr}")
        text = self.started
        self.assertEqual(set(re.findall(r"^worker-\d .* (rack\d)-n\d+ .*$", text, re.M)), {"rack3"}, "in one rack")
        self.assertRegex(text, r"no rack, even empty, holds 17 tasks")
        self.assertRegex(text, r"topology.highestTier: 2 +spine has room for it")
        self.assertEqual(len(re.findall(r"^notebook-[ab] .* rack4-n16-gpu-0$", text, re.M)), 2, "on one GPU")

    def wait_until_state(self, job, state):
        wait_until(lambda: re.search(rf"State: +({state})", self.run_literally(f"berth job describe {job}").stdout), 30, job)

    def test_2_every_command_of_the_readme_runs_as_printed(self):
        found = commands(self.readme)
        self.assertGreaterEqual(len(found), 5)
        self.assertEqual(found[0][0], "berth submit deploy/examples/allreduce.yaml")
        for command, shown in found:
            self.check(command, shown)
        self.forget_jobs()
        self.assertLessEqual(len(self.readme.splitlines()), 70, "one screen")

    def forget_jobs(self):
        """The next page expects the cluster as the quickstart leaves it: without jobs of these names."""
        for command in ("berth job cancel --all --yes --wait", "berth job delete --all --yes"):
            result = self.run_literally(command)
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def wait_until_nap_runs(self):
        def description():
            text = self.run_literally("berth job describe nap").stdout
            return text if re.search(r"State:\s+Running", text) else None
        return wait_until(description, 30, "nap runs", interval_s=0.1)

    def test_3_every_command_of_getting_started_runs_as_printed(self):
        found = commands(self.start)
        self.assertGreater(len(found), 12)
        self.assertEqual(found[1][0], "berth submit deploy/examples/allreduce.yaml")
        for command, shown in found:
            if command.startswith("kill -9"):
                self.wait_until_nap_runs()  # "while a job runs": people type slower than this test
            self.check(command, shown)
        nap = self.wait_until_nap_runs()
        self.assertRegex(nap, r"Starts:\s+1\n", "the task that ran when berthd was killed continues")
        manifest = (self.home / "var" / "train.yaml").read_text()
        self.assertTrue(manifest.startswith("apiVersion: berth/v1\nkind: Job\nname: train\n"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
