"""One process of a gang that trains a small model with DDP, so that any mistake in a restart shows.

The data of a step depends on its number alone, and all arithmetic is deterministic: a run that was interrupted ends with
the same bits as one that was not, if it resumes exactly where a checkpoint was made, with all its members. Every process
writes a file of its own to `RECORDS`, one JSON line for its start, each step, each checkpoint and its end.

Environment, besides what Berth and torchrun set: RECORDS, CHECKPOINT (a file that all members see), STEPS, STEP_S,
SAVE_EVERY, DEVICE (cpu, or cuda for the only visible GPU), BACKEND (gloo, or nccl with a GPU for each member). On SIGUSR1 of any member, all members agree on a step, rank 0 saves, and those that got the signal leave.
"""
import faulthandler
import hashlib
import json
import os
import pathlib
import signal
import socket
import sys
import time

import torch
import torch.distributed

STEPS, SAVE_EVERY = int(os.environ["STEPS"]), int(os.environ["SAVE_EVERY"])
STEP_S = float(os.environ["STEP_S"])
CHECKPOINT = pathlib.Path(os.environ["CHECKPOINT"])
DEVICE, BACKEND = os.environ.get("DEVICE", "cpu"), os.environ.get("BACKEND", "gloo")
SUMS_ON = DEVICE if BACKEND == "nccl" else "cpu"
SAVED = 75  # the exit code of a member that was asked to save and did: EX_TEMPFAIL, "try again later"
LEAVE_S = 5  # how long a member waits for its own signal after all have saved, before it goes on

asked = False


def ask(_signal, _frame):
    global asked
    asked = True


class Record:
    """The file of this process: what it did, and when by a clock that all processes of the machine share."""

    def __init__(self):
        self.rank, self.world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        self.common = {"task": os.environ["BERTH_TASK"], "attempt": int(os.environ["BERTH_ATTEMPT"]),
                       "epoch": int(os.environ.get("BERTH_EPOCH", 0)), "node": os.environ["BERTH_NODE"],
                       "rank": self.rank, "world": self.world, "pid": os.getpid()}
        name = f"{self.common['task']}-{self.common['attempt']}-{os.getpid()}-{time.monotonic_ns()}"
        self.file = open(pathlib.Path(os.environ["RECORDS"]) / name, "w", buffering=1, encoding="ascii")

    def write(self, what, **values):
        self.file.write(json.dumps({"what": what, "time": time.monotonic(), **self.common, **values}) + "\n")


def notify(text):
    """The protocol of sd_notify; nobody has to listen."""
    if place := os.environ.get("NOTIFY_SOCKET"):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
            channel.sendto(text.encode(), "\0" + place[1:] if place[0] == "@" else place)


def batch(step, rank, world):
    """The rank's part of the examples of this step."""
    source = torch.Generator().manual_seed(step)
    examples = torch.randn(32, 16, generator=source)
    wanted = torch.sin(examples.sum(dim=1, keepdim=True))
    return examples[rank::world].to(DEVICE), wanted[rank::world].to(DEVICE)


class Training:
    def __init__(self, record):
        self.record, self.rank, self.world = record, record.rank, record.world
        self.told = 0.0
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1))
        model.to(DEVICE)
        self.step = 0
        saved = torch.load(CHECKPOINT, map_location=DEVICE) if CHECKPOINT.exists() else None
        if saved is not None:
            model.load_state_dict(saved["model"])
            self.step = saved["step"]
        # With this, DDP does not lay out its buckets anew after the first step, which would change the order of sums
        self.model = torch.nn.parallel.DistributedDataParallel(model, find_unused_parameters=True)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.05, momentum=0.9)
        if saved is not None:
            self.optimizer.load_state_dict(saved["optimizer"])
        self.check_agreement()

    def check_agreement(self):
        """All members must have read the same checkpoint."""
        ends = torch.tensor([self.step, -self.step], device=SUMS_ON)
        torch.distributed.all_reduce(ends, op=torch.distributed.ReduceOp.MAX)
        assert ends[0] == -ends[1], f"members resume between the steps {-ends[1]} and {ends[0]}"

    def save(self):
        if self.rank == 0:
            new = CHECKPOINT.with_suffix(f".{os.environ['BERTH_TASK']}-{os.getpid()}")
            torch.save({"step": self.step, "model": self.model.module.state_dict(),
                        "optimizer": self.optimizer.state_dict()}, new)
            os.replace(new, CHECKPOINT)
            self.record.write("checkpoint", step=self.step)
            notify(f"X_BERTH_CHECKPOINT={self.step},shared")
        torch.distributed.barrier()

    def do_step(self):
        """Returns whether any member was asked to save."""
        examples, wanted = batch(self.step, self.rank, self.world)
        self.optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(self.model(examples), wanted)
        loss.backward()
        self.optimizer.step()
        sums = torch.tensor([loss.item(), float(asked)], dtype=torch.float64, device=SUMS_ON)
        torch.distributed.all_reduce(sums)
        self.step += 1
        self.record.write("step", step=self.step, loss=sums[0].item().hex())
        if time.monotonic() - self.told > 0.25:  # ten messages a second are read
            self.told = time.monotonic()
            notify(f"X_BERTH_STEP={self.step}")
        return sums[1] > 0

    def digest(self):
        parameters = b"".join(p.detach().cpu().numpy().tobytes() for p in self.model.module.parameters())
        return hashlib.sha256(parameters).hexdigest()


def leave_if_asked(record, step):
    """After a save that somebody asked for: the signal reaches the members one after the other, or not all of them."""
    deadline = time.monotonic() + LEAVE_S
    while not asked and time.monotonic() < deadline:
        time.sleep(0.01)
    if not asked:
        return
    record.write("leave", step=step)
    if "TORCHELASTIC_USE_AGENT_STORE" in os.environ:
        os.kill(os.getppid(), signal.SIGTERM)  # torchrun would start it again
    finish(SAVED)


def finish(code):
    """Without the destructors of torch 1.13: they wait for a thread of gloo that may wait for Python's lock."""
    sys.stdout.flush()
    os._exit(code)


def main():
    signal.signal(signal.SIGUSR1, ask)
    faulthandler.enable()  # SIGABRT, which a gang that hangs gets, writes the stacks
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(DEVICE != "cpu")
    record = Record()
    record.write("start")
    torch.distributed.init_process_group(BACKEND)
    training = Training(record)
    record.write("meet", step=training.step)
    notify("READY=1")
    while training.step < STEPS:
        time.sleep(STEP_S)
        save_now = training.do_step()
        if save_now or training.step % SAVE_EVERY == 0:
            training.save()
        if save_now:
            leave_if_asked(record, training.step)
    record.write("end", step=training.step, digest=training.digest())
    torch.distributed.barrier()  # rank 0 hosts the store of the others
    finish(0)


main()
