#!/usr/bin/env python3
"""Trains a small model with DDP on CPUs or GPUs, and survives restarts, lost nodes, drains and evictions.

Started by Berth directly (ddp.yaml) or by torchrun (torchrun*.yaml). What a script of your own needs from it:

- it resumes from a checkpoint that is replaced as a whole, and takes the data by the number of the step;
- when a member gets SIGUSR1, all agree on the step at which they save, and those that were asked end;
- it tells Berth how far it is (notify), and ends with 93 if starting it again would not help.

CHECKPOINT names a file that all members see. STEPS and STEP_S change the work.
"""
import os
import pathlib
import signal
import socket
import sys
import time

import torch
import torch.distributed as dist

CHECKPOINT = pathlib.Path(os.environ["CHECKPOINT"])
STEPS, SAVE_EVERY = int(os.environ.get("STEPS", "200")), 25
STEP_S = float(os.environ.get("STEP_S", "0"))
SAVED, HOPELESS = 75, 93  # exit codes: savedExitCodes and the policies of the manifests
asked = False


def ask(*_):
    global asked
    asked = True


def notify(text):
    if "NOTIFY_SOCKET" in os.environ:  # the protocol of sd_notify
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
            channel.sendto(text.encode(), os.environ["NOTIFY_SOCKET"])


def batch(step, rank, world, device):
    """This member's part of the 32 examples of the step: the same for any number of members."""
    examples = torch.randn(32, 16, generator=torch.Generator().manual_seed(step))
    wanted = torch.sin(examples.sum(dim=1, keepdim=True))
    return examples[rank::world].to(device), wanted[rank::world].to(device)


def save(step, model, optimizer):
    """Rank 0 writes a new file and then replaces the old one, so that a checkpoint is never half written."""
    if dist.get_rank() == 0:
        new = CHECKPOINT.with_suffix(".new")
        torch.save({"step": step, "model": model.module.state_dict(), "optimizer": optimizer.state_dict()}, new)
        os.replace(new, CHECKPOINT)
        notify(f"X_BERTH_CHECKPOINT={step},shared")
        print(f"saved step {step}", flush=True)
    dist.barrier()


def leave_if_asked():
    """The signal reaches the members one after the other; those that are not to leave go on after a while."""
    deadline = time.monotonic() + 5
    while not asked and time.monotonic() < deadline:
        time.sleep(0.01)
    if asked and "TORCHELASTIC_RUN_ID" in os.environ and os.environ.get("TORCHELASTIC_USE_AGENT_STORE"):
        os.kill(os.getppid(), signal.SIGTERM)  # torchrun, which would start this process again
    if asked:
        finish(SAVED)


def finish(code):
    """Ends without the destructors of gloo, which may wait for ever in torch 1.13."""
    sys.stdout.flush()
    os._exit(code)


def main():
    signal.signal(signal.SIGUSR1, ask)
    torch.set_num_threads(1)
    gpus = torch.cuda.is_available()
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if gpus else torch.device("cpu")
    dist.init_process_group("nccl" if gpus else "gloo")
    rank, world, step = dist.get_rank(), dist.get_world_size(), 0
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1)).to(device)
    model = torch.nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    if CHECKPOINT.exists():
        saved = torch.load(CHECKPOINT, map_location=device)
        model.module.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        step = saved["step"]
    print(f"rank {rank} of {world} begins at step {step}", flush=True)
    notify("READY=1")
    told = 0.0
    while step < STEPS:
        examples, wanted = batch(step, rank, world, device)
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(examples), wanted)
        loss.backward()
        optimizer.step()
        sums = torch.tensor([loss.item() / world, float(asked)], device=device)
        dist.all_reduce(sums)
        step += 1
        if time.monotonic() - told > 0.25:  # Berth reads ten messages a second
            told = time.monotonic()
            notify(f"X_BERTH_STEP={step}")
        if not torch.isfinite(sums[0]):
            finish(HOPELESS)
        if sums[1] > 0 or step % SAVE_EVERY == 0:
            save(step, model, optimizer)
        if sums[1] > 0:
            leave_if_asked()
        time.sleep(STEP_S)
    if rank == 0:
        print(f"trained {step} steps in a world of {world}: loss {sums[0]:.4f}", flush=True)
    dist.barrier()  # rank 0 hosts the store of the others
    finish(0)


if __name__ == "__main__":
    main()
