"""One client with the addresses of two servers: handovers and kills of the leader lose no call and no event."""
import os
import pathlib
import shutil
import subprocess
import time
import unittest

import world

import berth


@unittest.skipUnless(shutil.which("etcd"), "no etcd (Debian's etcd-server)")
class Leaders(unittest.TestCase):
    def setUp(self):
        script = pathlib.Path(__file__).with_name("ha_servers.py")
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        self.servers = subprocess.Popen(["/usr/bin/python3", str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env=environment)
        self.addCleanup(self.end)
        self.addresses = self.servers.stdout.readline().strip()
        self.client = berth.Client(self.addresses)
        self.addCleanup(self.client.close)

    def end(self):
        self.servers.stdin.close()
        self.servers.wait(60)
        self.servers.stdout.close()

    def change(self, how):
        self.servers.stdin.write(how + "\n")
        self.servers.stdin.flush()
        self.assertEqual(self.servers.stdout.readline().strip(), "done")

    def test_calls_watches_waits_and_logs_go_to_the_next_leader(self):
        world.berth_harness.wait_until(lambda: len(self.client.members().members) == 2, 30, "the standby")
        world.berth_harness.wait_until(lambda: self.client.cluster().nodes.get("READY") == 1, 30, "the agent")
        info, seen = self.client.cluster(), []

        def collect():
            for event in self.client.watch(revision=info.revision, incarnation=info.incarnation):
                if event.type == "JobSubmitted":
                    seen.append(event.job)
                if event.job == "last":
                    return

        join = world.in_thread(collect)
        talk = berth.Group(command=["sh", "-c", "i=0; while [ $i -lt 1200 ]; do echo line $i; i=$((i+1)); sleep .01; done"],
                           resources=berth.R(cpu="50m"))
        talker = self.client.submit(berth.Job("talker", queue="default", groups=[talk]))
        world.berth_harness.wait_until(lambda: talker.get().status.state == "Running", 30, "the talker")
        wait = world.in_thread(talker.wait, 90)
        logs = world.in_thread(lambda: b"".join(talker.logs(follow=True)))
        quiet = berth.Group(command=["true"], resources=berth.R(cpu="50m"))
        wanted = ["talker"]
        for number, how in enumerate(("handover", "kill", "handover")):
            change = world.in_thread(self.change, how)
            for index in range(40):
                name = f"n-{number}-{index}"
                self.client.submit(berth.Job(name, queue="default", suspended=True, groups=[quiet]))
                wanted.append(name)
                time.sleep(0.02)
            change()
        self.client.submit(berth.Job("last", queue="default", suspended=True, groups=[quiet]))
        join(60)
        self.assertEqual([name for name in dict.fromkeys(seen) if name != "last"], wanted)
        self.assertEqual(str(wait(90).status.state), "Succeeded")
        self.assertEqual(logs().decode().split("\n")[:-1], [f"line {number}" for number in range(1200)])


if __name__ == "__main__":
    unittest.main()
