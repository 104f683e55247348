#!/usr/bin/env python3
"""sbatch_time.py [--runs N] [--against FOLDER]: how long an sbatch of a script takes, from its start to its end.

A berthd of its own, with one agent. The programs are called in turn, so that all see the same machine: sbatch, sbatch
--version (its start alone), sbatch of another build (--against: a folder with its links), and true. Prints medians of
wall and processor time, in ms."""
import argparse
import os
import pathlib
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "integration"))
from berth_harness import Cluster  # noqa: E402
from slurm_world import SLURM  # noqa: E402


def measure(words, environment):
    begin = time.monotonic()
    pid = os.posix_spawn(words[0], words, environment, file_actions=[(os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0)])
    _, status, used = os.wait4(pid, 0)
    if status != 0:
        sys.exit(f"{words} ended with {status}")
    return (time.monotonic() - begin) * 1e3, (used.ru_utime + used.ru_stime) * 1e3


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--against")
    options = parser.parse_args()
    with Cluster({"log": {"level": "warn"}}) as cluster:
        cluster.server.start()
        cluster.add_simulation([{"name": "n[1-4]", "cpu": 4, "memory": "4Gi", "runTime": "1h"}])
        cluster.wait_nodes(4)
        script = cluster.home / "job.sh"
        script.write_text("#!/bin/sh\n#SBATCH -t 10\n#SBATCH -o /dev/null\nsrun hostname\n")
        os.chdir(cluster.home)
        environment = {"PATH": "/usr/bin:/bin", "HOME": "/tmp", "BERTH_SERVER": cluster.server.address, "BERTH_SLURM_CONFIG": ""}
        programs = {"true": ["/bin/true"], "sbatch --version": [f"{SLURM}/sbatch", "--version"],
                    "sbatch script": [f"{SLURM}/sbatch", str(script)]}
        if options.against:
            programs["sbatch script, the other build"] = [f"{options.against}/sbatch", str(script)]
        times = {name: [] for name in programs}
        for _ in range(options.runs):
            for name, words in programs.items():
                times[name].append(measure(words, environment))
    for name, pairs in times.items():
        wall, used = (sorted(one[i] for one in pairs) for i in (0, 1))
        print(f"{name}: wall {statistics.median(wall):.1f} (p10 {wall[len(wall) // 10]:.1f}, p90 {wall[len(wall) * 9 // 10]:.1f}), "
              f"processor {statistics.median(used):.1f}")


if __name__ == "__main__":
    main()
