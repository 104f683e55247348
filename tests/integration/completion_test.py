"""Completion in real shells, with names of a real berthd: bash, zsh and fish (deploy/install-deps --test)."""
import os
import shutil
import subprocess
import time
import unittest

from berth_harness import BIN, Cluster, free_port

BASH = r"""
source <(berth completion bash)
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}
$(complete -p berth | sed -n 's/.*-F \([^ ]*\) berth$/\1/p')
printf '%s\n' "${COMPREPLY[@]}"
"""
# A shell with its own terminal, in which Tab is pressed; the words that completion would insert are written to a file.
ZSH = r"""
zmodload zsh/zpty
zpty -b shell zsh -f
zpty -w shell 'PS1= PROMPT2=; setopt no_beep; autoload -U compinit; compinit -u -d %(dump)s
compadd() {
  local -a found; local word
  if [[ ${@[(I)-(O|A|D)]} -gt 0 ]]; then builtin compadd "$@"; return; fi
  builtin compadd -A found "$@"; for word in $found; do print -r -- "$word" >>%(out)s; done
  builtin compadd "$@"
}
source <(berth completion zsh); bindkey "^I" complete-word; print ready >%(ready)s'
for try in {1..200}; do [[ -s %(ready)s ]] && break; sleep 0.1; done
zpty -w -n shell $'%(line)s\t'
for try in {1..%(tries)s}; do zpty -rt shell chunk; sleep 0.1; [[ -s %(out)s ]] && sleep 0.3 && break; done
zpty -d shell
"""


class CompletionTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster()
        cls.addClassCleanup(cls.cluster.__exit__, None, None, None)
        cls.cluster.server.start()
        cls.cluster.create_queue("research")
        cls.cluster.add_agent("node-one")
        for name in ("llama", "llava", "bert"):
            cls.cluster.berth("submit", "--name", name, "--queue", "research", "--hold", "--", "true")
        cls.cluster.wait_nodes(1)
        cls.environment = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", "HOME": str(cls.cluster.home),
                           "BERTH_SERVER": cls.cluster.server.address}

    def run_shell(self, *arguments, **environment):
        result = subprocess.run(arguments, capture_output=True, text=True, env={**self.environment, **environment},
                                timeout=120, cwd=self.cluster.home)
        return result.stdout, result.stderr

    def bash(self, line, **environment):
        """`line` as bash splits it: at blanks, "=" and ":"."""
        words = line.replace("=", " = ").replace(":", " : ").split(" ")
        if line.endswith("="):
            words.pop()
        out, err = self.run_shell("bash", "-c", BASH, "bash", *words, **environment)
        self.assertEqual(err, "")
        return [word for word in out.split("\n") if word]

    def fish(self, line, **environment):
        out, err = self.run_shell("fish", "--no-config", "-c", f"berth completion fish | source; complete -C '{line}'", **environment)
        self.assertEqual(err, "")
        return [word.split("\t")[0] for word in out.split("\n") if word]

    def zsh(self, line, tries=100, **environment):
        folder = self.cluster.home / f"zsh-{time.monotonic_ns()}"
        folder.mkdir()
        script = ZSH % {"dump": folder / "dump", "out": folder / "out", "ready": folder / "ready", "line": line, "tries": tries}
        self.run_shell("zsh", "-f", "-c", script, **environment)
        out = folder / "out"
        return out.read_text().split("\n")[:-1] if out.exists() else []

    def check(self, shell, complete):
        if shutil.which(shell) is None:
            self.fail(f"{shell} is not installed: deploy/install-deps --test")
        self.assertEqual(complete("berth jo"), ["job"])
        self.assertEqual(complete("berth job desc"), ["describe"])
        self.assertEqual(complete("berth submit --node-sel"), ["--node-selector"])
        self.assertEqual(sorted(complete("berth job get ll")), ["llama", "llava"])
        self.assertEqual(complete("berth queue describe res"), ["research"])
        self.assertEqual(complete("berth node drain node"), ["node-one"])
        self.assertEqual(complete("berth job list --queue res"), ["research"])
        self.assertEqual(complete("berth job list -o ya"), ["yaml"])

    def check_unreachable(self, complete, **options):
        begin = time.monotonic()
        self.assertEqual(complete("berth job get ll", BERTH_SERVER=f"127.0.0.1:{free_port()}", **options), [])
        return time.monotonic() - begin

    def test_bash(self):
        self.check("bash", self.bash)
        self.assertEqual(self.bash("berth job list --queue=res"), ["research"])
        self.assertEqual(sorted(self.bash(f"berth --server {self.cluster.server.address} job get ll",
                                          BERTH_SERVER="127.0.0.1:1")), ["llama", "llava"])
        self.assertLess(self.check_unreachable(self.bash), 10)

    def test_fish(self):
        self.check("fish", self.fish)
        self.assertEqual(self.fish("berth job list --queue=res"), ["--queue=research"])
        self.assertLess(self.check_unreachable(self.fish), 10)

    def test_zsh(self):
        self.check("zsh", self.zsh)
        self.check_unreachable(self.zsh, tries=30)

    def test_an_unreachable_server_delays_the_shell_by_about_a_second(self):
        unreachable = {**self.environment, "BERTH_SERVER": f"127.0.0.1:{free_port()}"}
        begin = time.monotonic()
        result = subprocess.run([str(BIN / "berth"), "__complete", "job", "get", ""], capture_output=True, text=True,
                                env=unreachable, timeout=60)
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "", ""))
        self.assertLess(time.monotonic() - begin, 5, "one second, plus the delay of a loaded machine")


if __name__ == "__main__":
    unittest.main(verbosity=2)
