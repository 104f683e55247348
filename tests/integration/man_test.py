"""Manual pages: one for each program and each command of berth, with everything that --help prints. The checks of
mandoc and groff find no faults. `cmake --install` installs the pages."""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

from berth_harness import BIN, SOURCE

BUILD = pathlib.Path(os.environ.get("BERTH_BUILD", SOURCE / "build" / "release"))
DAEMONS = {"berthd": 8, "berth-agent": 8, "berth-authd": 8, "berth-web": 8, "berth-sim": 1}


def run(*arguments, **options):
    return subprocess.run([str(argument) for argument in arguments], capture_output=True, text=True, timeout=120, **options)


def help_of(*command):
    result = run(BIN / command[0], *command[1:], "--help")
    assert result.returncode == 0, result.stderr
    return result.stdout


def commands_of(text):
    """The names below "Subcommands:"."""
    below = text.split("Subcommands:\n")[1] if "Subcommands:\n" in text else ""
    return re.findall(r"^  ([\w-]+)", below, re.M)  # without aliases


class ManTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.home = pathlib.Path(tempfile.mkdtemp(prefix="berth-man-"))
        cls.addClassCleanup(shutil.rmtree, cls.home)
        written = run(BIN / "berth", "man", "--directory", cls.home)
        assert written.returncode == 0, written.stderr
        for program, section in DAEMONS.items():
            page = run(BIN / program, "--man")
            assert page.returncode == 0, page.stderr
            assert page.stdout.split(" ")[2] == str(section), page.stdout[:60]
            (cls.home / f"{program}.{section}").write_text(page.stdout)
        cls.pages = {path.name: path for path in cls.home.iterdir()}

    def shown(self, page):
        """The page as a reader sees it, with one blank between words."""
        result = run("mandoc", "-T", "ascii", "-O", "width=200", self.pages[page])
        self.assertEqual(result.returncode, 0)
        return re.sub(r"\s+", " ", re.sub(".\b", "", result.stdout))

    def test_there_is_a_page_for_each_program_and_each_command(self):
        wanted = {"berth.1"} | {f"berth-{name}.1" for name in commands_of(help_of("berth"))}
        self.assertGreater(len(wanted), 10)
        wanted |= {f"{program}.{section}" for program, section in DAEMONS.items()}
        self.assertEqual(set(self.pages), wanted)

    def test_mandoc_and_groff_find_no_fault(self):
        for tool in ("mandoc", "groff"):
            if shutil.which(tool) is None:
                self.fail(f"{tool} is not installed: deploy/install-deps --test")
        for name, path in sorted(self.pages.items()):
            lint = run("mandoc", "-T", "lint", path)
            self.assertEqual((lint.returncode, lint.stdout), (0, ""), name)
            groff = run("groff", "-man", "-ww", "-z", path)
            self.assertEqual((groff.returncode, groff.stderr), (0, ""), name)

    def test_a_page_has_all_options_and_commands_of_its_help(self):
        for noun in commands_of(help_of("berth")):
            page = self.shown(f"berth-{noun}.1")
            for command in [(noun,), *((noun, verb) for verb in commands_of(help_of("berth", noun)))]:
                self.assertIn(" ".join(("berth", *command)), page)
                for option in re.findall(r"(--[a-z][a-z-]*)", help_of("berth", *command).split("Subcommands:")[0]):
                    self.assertIn(option, page, command)
        for program, section in DAEMONS.items():
            page = self.shown(f"{program}.{section}")
            for option in re.findall(r"^  (?:-\w,)?(--[a-z-]+)", help_of(program), re.M):
                self.assertIn(option, page)
        overview = self.shown("berth.1")
        for word in ("--server", "BERTH_SERVER", "Exit codes:", "berth-job(1)", "berthd(8)"):
            self.assertIn(word, overview)

    def test_they_are_built_and_installed(self):
        prefix = self.home / "installed"
        installed = run("cmake", "--install", BUILD, "--component", "man", "--prefix", prefix)
        self.assertEqual(installed.returncode, 0, installed.stderr)
        names = {path.name for path in prefix.rglob("man*/*") if path.is_file()}
        shutil.rmtree(prefix)
        built = {name for name in self.pages if (BIN / name.rsplit(".")[0]).exists() or name.startswith("berth-")}
        self.assertLessEqual(built, names)
        one = run(BIN / "berth", "man", "job")
        self.assertTrue(one.stdout.startswith(".TH BERTH\\-JOB 1 "), one.stdout[:80])
        self.assertEqual(run(BIN / "berth", "man", "jb").stderr, 'berth: unknown command "jb"; did you mean "job"?\n')


if __name__ == "__main__":
    unittest.main(verbosity=2)
