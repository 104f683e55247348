"""Clean Debian 12 roots, in which systemd-nspawn boots systemd. Needs root, mmdebstrap and systemd-nspawn, and the network
the first time: the root and the packages that apt fetches are kept in CACHE.
"""
import fcntl
import os
import pathlib
import re
import shutil
import signal
import subprocess

from berth_harness import SOURCE, wait_until

CACHE = SOURCE / "build" / "packages" / "debian-root"
BASE = CACHE / "base.tar"
PACKAGES = "systemd,systemd-sysv,dbus,iproute2,openssl,procps,openssh-server,openssh-client"
MIRROR = os.environ.get("BERTH_DEBIAN_MIRROR", "http://deb.debian.org/debian")
KEPT = {"archives": "var/cache/apt/archives", "lists": "var/lib/apt/lists"}  # in CACHE: in a root
CLEAN = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive", "HOME": "/root"}
# For a kernel that still mounts control groups of version 1; Debian 12 has version 2.
NSPAWN = {**os.environ, "SYSTEMD_NSPAWN_UNIFIED_HIERARCHY": "1"}


def prepare():
    """Makes BASE."""
    for name in KEPT:
        (CACHE / name / "partial").mkdir(parents=True, exist_ok=True)
    with open(CACHE / "lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if BASE.exists():
            return
        part = CACHE / "part.tar"
        subprocess.run(["mmdebstrap", "--quiet", "--variant=minbase", f"--include={PACKAGES}", "bookworm", str(part), MIRROR], check=True)
        part.rename(BASE)


def link_files(source, target):
    """Hard links to all files of a folder, without those of apt's locks."""
    for path in source.iterdir():
        if path.is_file() and path.name != "lock":
            other = target / path.name
            other.unlink(missing_ok=True)
            os.link(path, other)


class Root:
    """A Debian of its own in a new folder; DEBS is /debs in it."""

    def __init__(self, folder, name, debs):
        self.folder, self.name, self.debs = pathlib.Path(folder), name, debs
        self.nspawn = self.leader = None
        self.folder.mkdir(parents=True)
        subprocess.run(["tar", "-xf", str(BASE), "-C", str(folder), "--numeric-owner"], check=True)
        (self.folder / "etc/hostname").write_text(name + "\n")
        (self.folder / "etc/machine-id").write_text("")
        self.take_kept()
        # apt's user cannot enter the folder.
        (self.folder / "etc/apt/apt.conf.d/90test").write_text('APT::Sandbox::User "root";\nDpkg::Use-Pty "0";\n')

    def nspawn_command(self, *options):
        return ["systemd-nspawn", "--quiet", f"--directory={self.folder}", f"--machine={self.name}", "--register=no", "--keep-unit",
                f"--bind-ro={self.debs}:/debs", *options]

    def take_kept(self):
        """Packages and lists that apt fetched in any root: no network is needed for them."""
        for kept, place in KEPT.items():
            link_files(CACHE / kept, self.folder / place)

    def offline(self, command, timeout=900):
        """Runs a shell command with the network of this machine, while systemd is not running there."""
        settings = [f"--setenv={key}={value}" for key, value in CLEAN.items()]
        result = subprocess.run(self.nspawn_command("--resolv-conf=replace-host", "--pipe", *settings, "sh", "-c", command),
                                capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=timeout, env=NSPAWN)
        for kept, place in KEPT.items():
            link_files(self.folder / place, CACHE / kept)
        # nspawn's own remark about folders that it shares with the machine.
        result.stderr = re.sub(r"(?m)^Attempted to remove disk file system under .*\n", "", result.stderr)
        return result

    def boot(self, *network):
        self.log = open(f"{self.folder}.log", "ab")
        self.nspawn = subprocess.Popen(self.nspawn_command("--boot", *network), stdin=subprocess.DEVNULL, stdout=self.log,
                                       stderr=self.log, start_new_session=True, env=NSPAWN)
        self.leader = wait_until(self.find_leader, 60, f"{self.name}: init has started")
        wait_until(lambda: self.run("systemctl is-system-running").stdout.strip() in ("running", "degraded"), 180,
                   f"{self.name}: systemd is ready", 0.5)

    def find_leader(self):
        """The process that is PID 1 there: a child of nspawn's child."""
        for path in pathlib.Path("/proc").glob("[0-9]*/status"):
            try:
                status = dict(line.split(":\t", 1) for line in path.read_text().splitlines() if ":\t" in line)
            except (OSError, ValueError):
                continue  # it has ended
            pids = status.get("NSpid", "").split()
            if len(pids) > 1 and pids[-1] == "1" and self.is_ours(int(status["Pid"])):
                return int(status["Pid"])
        return None

    def is_ours(self, pid):
        while pid > 1 and pid != self.nspawn.pid:
            stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
            pid = int(stat.rsplit(")", 1)[1].split()[1])
        return pid == self.nspawn.pid

    def run(self, command, timeout=300):
        """Runs a command of a shell there."""
        return subprocess.run(["nsenter", f"--target={self.leader}", "--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup",
                               "--root", "--wd", "env", "-i", *(f"{key}={value}" for key, value in CLEAN.items()), "bash", "-c", command],
                              capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=timeout)

    def must(self, command, timeout=300):
        result = self.run(command, timeout)
        if result.returncode != 0:
            raise AssertionError(f"{self.name}: {command}: exit code {result.returncode}\n{result.stdout}{result.stderr}")
        return result.stdout

    def stop(self):
        if self.nspawn is None:
            return
        if self.nspawn.poll() is None:
            os.kill(self.leader or self.nspawn.pid, signal.SIGRTMIN + 4 if self.leader else signal.SIGTERM)  # power off
            try:
                self.nspawn.wait(60)
            except subprocess.TimeoutExpired:
                self.nspawn.kill()
                self.nspawn.wait()
        self.log.close()
        self.nspawn = self.leader = None

    def files(self):
        """{path: (mode, uid, gid)} of all but what changes by itself."""
        left_out = ["./proc", "./sys", "./dev", "./run", "./tmp", "./debs", "./var/cache", "./var/log", "./var/lib/apt",
                    "./var/lib/dpkg", "./root"]
        skipped = " -o ".join(f"-path {path}" for path in left_out)
        lines = subprocess.run(f"find . \\( {skipped} \\) -prune -o -printf '%P\\t%M\\t%U\\t%G\\n'", shell=True, cwd=self.folder,
                               capture_output=True, text=True, check=True).stdout.splitlines()
        return {path: tuple(rest) for path, *rest in (line.split("\t") for line in lines)}

    def remove(self):
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)
