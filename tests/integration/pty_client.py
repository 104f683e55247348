"""A program on a real pseudo-terminal, as somebody at a keyboard has it.

    with PtyClient([str(BIN / "berth"), "attach", "x"], rows=33, columns=77) as client:
        client.expect("$ ")
        client.type("echo hello\\n")
        self.assertEqual(client.wait(), 0)
"""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time


class PtyClient:
    def __init__(self, arguments, rows=24, columns=80, environment=None):
        self.master, self.own = pty.openpty()
        self.resize(rows, columns)
        self.before = termios.tcgetattr(self.own)
        self.shown, self.at = "", 0

        def lead():
            os.setsid()
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        self.process = subprocess.Popen(arguments, stdin=self.own, stdout=self.own, stderr=self.own, preexec_fn=lead,
                                        env={**os.environ, "TERM": "xterm", **(environment or {})})

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if kind is not None:
            print(f"--- on the terminal\n{self.shown[-3000:]}", flush=True)
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.master)
        os.close(self.own)

    def resize(self, rows, columns):
        fcntl.ioctl(self.own, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, text):
        os.write(self.master, text.encode())

    def read(self, wait_s=0.0):
        """Takes what is there; returns whether there was something."""
        if not select.select([self.master], [], [], wait_s)[0]:
            return False
        self.shown += os.read(self.master, 65536).decode(errors="replace")
        return True

    def expect(self, pattern, timeout_s=30):
        """Waits until the pattern appears after what was expected before; returns the match."""
        end = time.monotonic() + timeout_s
        while True:
            found = re.search(pattern, self.shown[self.at:])
            if found:
                self.at += found.end()
                return found
            if time.monotonic() > end:
                raise AssertionError(f"no {pattern!r} within {timeout_s} s; after {self.shown[:self.at][-200:]!r} came "
                                     f"{self.shown[self.at:][-2000:]!r}")
            self.read(0.05)

    def wait(self, timeout_s=30):
        """The exit code; what the program still prints is read."""
        end = time.monotonic() + timeout_s
        while self.process.poll() is None:
            if time.monotonic() > end:
                raise AssertionError(f"still running after {timeout_s} s; {self.shown[-1000:]!r}")
            self.read(0.05)
        while self.read():
            pass
        return self.process.returncode

    def is_restored(self):
        """Whether the terminal is as it was before the program began."""
        return termios.tcgetattr(self.own) == self.before

    def is_raw(self):
        return not termios.tcgetattr(self.own)[3] & (termios.ICANON | termios.ECHO)

    def signal(self, number=signal.SIGTERM):
        self.process.send_signal(number)
