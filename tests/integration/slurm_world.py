"""A Berth of four agents behind the commands of Slurm, for tests."""
import json
import os
import pathlib
import subprocess

from berth_harness import BIN, Cluster, wait_until

SLURM = BIN / "slurm"
# Root's agents run tasks as `nobody`: everything that tasks write to must be open to everybody.
CONFIG = {"lease": "6s", "heartbeatInterval": "1s", "fenceMargin": "1s", "silentBrake": 1.0}


class SlurmWorld:
    def __init__(self, test, nodes=4, cpu="4", config=None, server=None):
        self.cluster = Cluster({**CONFIG, **(server or {})})
        self.cluster.belongs_to(test)
        self.cluster.server.start()
        for number in range(1, nodes + 1):
            self.cluster.add_agent(f"n{number}", cpu=cpu, memory="4Gi", address=f"127.0.0.{10 + number}",
                                   labels={"disk": "fast" if number <= 2 else "slow"})
        self.cluster.wait_nodes(nodes)
        self.home = self.cluster.home / "work"
        self.home.mkdir()
        self.home.chmod(0o777)
        self.environment = {**{k: v for k, v in os.environ.items() if not k.startswith(("BERTH_", "SLURM", "SBATCH"))},
                            "BERTH_SERVER": self.cluster.server.address, "PATH": f"{SLURM}:/usr/bin:/bin",
                            "BERTH_SLURM_CONFIG": self.write("slurm.yaml", json.dumps(config or {})), "TZ": "UTC"}

    def write(self, name, text, mode=0o755):
        path = self.home / name
        path.write_text(text)
        path.chmod(mode)
        return str(path)

    def run(self, *words, stdin=None, timeout_s=60, **variables):
        return subprocess.run([str(word) for word in words], cwd=self.home, input=stdin, text=True, capture_output=True,
                              timeout=timeout_s, env={**self.environment, **variables})

    def ok(self, *words, **options):
        result = self.run(*words, **options)
        assert result.returncode == 0, f"{words}: {result.returncode}\n{result.stdout}{result.stderr}"
        return result.stdout

    def refused(self, *words, **options):
        """What it says on standard error."""
        result = self.run(*words, **options)
        assert result.returncode != 0, f"{words} was accepted: {result.stdout}{result.stderr}"
        return result.stderr

    def sbatch(self, *words, **options):
        number = self.ok("sbatch", "--parsable", *words, **options).strip()
        assert number.isdigit(), number
        return number

    def script(self, name, text, *options):
        lines = "".join(f"#SBATCH {option}\n" for option in options)
        return self.write(name, f"#!/bin/sh\n{lines}{text}\n")

    def state(self, number, field="State"):
        return self.ok("sacct", "-X", "-n", "-P", "-o", field, "-j", number).strip()

    def wait_state(self, number, *states, timeout_s=60):
        def reached():
            state = self.state(number)
            if state in states:
                return state
            raise LookupError(f"{number} is {state}")
        return wait_until(reached, timeout_s, f"{number} in {states}")

    def read(self, name):
        path = self.home / name
        return path.read_text() if path.exists() else ""
