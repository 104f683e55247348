"""The part of gpu-check that measures how long what a task has on its GPU takes to be saved and to come back: with
NVIDIA's cuda-checkpoint, where it exists (docs/users/pause.md, "Lending GPUs")."""
import json
import os
import shutil
import time

PLACES = ("/usr/bin", "/usr/local/bin", "/usr/local/cuda/bin", "/opt/cuda/bin")  # beside PATH, as the agent looks
RESERVE_MIB = 4096  # of memory, beside what is on the GPU

# Fills so many MiB of its GPU with a pattern, and looks again and again whether it is still there.
HOLD = r"""
import ctypes, os, sys, time
library = ctypes.CDLL(os.environ.get("GPU_CHECK_CUDA") or "libcuda.so.1")
size, pattern = int(sys.argv[1]) << 20, 0x5eed1234
device, context, memory = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_uint64()
code = (library.cuInit(0) or library.cuDeviceGet(ctypes.byref(device), 0)
        or library.cuDevicePrimaryCtxRetain(ctypes.byref(context), device) or library.cuCtxSetCurrent(context)
        or library.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(size))
        or library.cuMemsetD32_v2(memory, ctypes.c_uint(pattern), ctypes.c_size_t(size // 4)))
if code:
    raise SystemExit("CUDA error %d" % code)
tick = 0
while True:
    for at in (0, size // 2, size - 4):
        word = ctypes.c_uint()
        code = library.cuMemcpyDtoH_v2(ctypes.byref(word), ctypes.c_uint64(memory.value + at), ctypes.c_size_t(4))
        if code or word.value != pattern:
            raise SystemExit("CUDA error %d, word %x at %d" % (code, word.value, at))
    tick += 1
    print("tick", tick, flush=True)
    time.sleep(0.02)
"""


def find_program():
    return shutil.which("cuda-checkpoint") or next(
        (f"{place}/cuda-checkpoint" for place in PLACES if os.access(f"{place}/cuda-checkpoint", os.X_OK)), None)


def why_not(berth, devices):
    """Why nothing can be measured; empty: it can."""
    if find_program() is None:
        return "there is no cuda-checkpoint on this machine"
    if not berth.node()["inventory"].get("checkpointsDevices"):
        return "the agent cannot use it: it needs control groups, and the program of driver 570 or later"
    if not devices:
        return "there is no whole GPU"
    needed = devices[0].get("memory", 0)
    needed = to_mib(needed) + RESERVE_MIB
    has = to_mib(berth.node()["inventory"]["memory"])
    return f"the node has {has} MiB of memory, and {needed} are needed for a GPU" if needed > has else ""


def to_mib(amount):
    """Of a quantity as JSON shows it: bytes, or "80Gi"."""
    text = str(amount)
    units = {"Ki": 1 / 1024, "Mi": 1, "Gi": 1024, "Ti": 1024 * 1024}
    return int(float(text[:-2]) * units[text[-2:]]) if text[-2:] in units else int(text or 0) >> 20


def check_saving(berth, devices, job_spec, probe, report):
    """`devices`: the node's healthy whole GPUs; `job_spec` makes a manifest; `probe`: the program of other tasks."""
    report.title("What a task has on its GPU is saved, others use the GPU, and it comes back")
    why = why_not(berth, devices)
    if why:
        report.say(f"  skip  {why}: how long copying takes was not measured")
        return
    gpu = devices[0]
    mib = to_mib(gpu.get("memory", 0))
    for part in (0, mib // 4, mib * 3 // 4):
        measure(berth, gpu, max(part, 64), job_spec, probe, report)


def measure(berth, gpu, mib, job_spec, probe, report):
    name = f"check-save-{mib}"
    env = {"GPU_CHECK_CUDA": berth.arguments.cuda} if berth.arguments.cuda else {}
    device = {"kind": "gpu", "count": 1, "allowUuids": [gpu["uuid"]]}
    spec = job_spec(name, 1, device, env, [berth.arguments.python, berth.write("hold.py", HOLD), str(mib)],
                    f"{to_mib(gpu.get('memory', 0)) + RESERVE_MIB}Mi", pause={"devices": "Checkpoint"})
    spec["walltime"] = "30m"
    berth.berth("submit", berth.write(f"{name}.yaml", json.dumps(spec)))
    ticks = lambda: [line for line in berth.run("berth", "job", "logs", name).stdout.split("\n") if line.startswith("tick ")]
    berth.wait("the task fills its GPU", ticks, 300)
    begun = time.monotonic()
    berth.berth("job", "suspend", "--freeze", name)
    pause = lambda: json.loads(berth.berth("job", "get", name, "-o", "json"))["status"].get("pause", {})
    berth.wait("the task is paused", lambda: pause().get("state", "").upper() == "PAUSED", 700)
    saved = time.monotonic() - begun
    if not report.check(pause().get("devicesLent"), f"{mib} MiB: the task lends its GPU",
                        "" if pause().get("devicesLent") else berth.run("berth", "job", "describe", name).stdout[-1500:]):
        berth.berth("job", "cancel", name)
        return
    use_meanwhile(berth, f"check-use-{mib}", device, env, job_spec, probe, report)
    before = len(ticks())
    begun = time.monotonic()
    berth.berth("job", "resume", name)
    berth.wait("the task goes on", lambda: len(ticks()) > before, 700)
    restored = time.monotonic() - begun
    time.sleep(0.5)
    same = len(ticks()) > before + 1
    report.check(same, f"{mib} MiB: it finds everything where it was",
                 "" if same else berth.run("berth", "job", "describe", name).stdout[-1500:])
    report.say(f"        {mib} MiB: saved in {saved:.1f} s ({mib / 1024 / saved:.1f} GiB/s), back in {restored:.1f} s "
               f"({mib / 1024 / restored:.1f} GiB/s), with the time of Berth itself")
    berth.berth("job", "cancel", name)
    berth.run("berth", "job", "wait", name, "--timeout", "60s")


def use_meanwhile(berth, name, device, env, job_spec, probe, report):
    spec = job_spec(name, 1, device, {**env, "GPU_CHECK_HOLD": "0"}, [berth.arguments.python, probe])
    berth.berth("submit", berth.write(f"{name}.yaml", json.dumps(spec)))
    waited = berth.run("berth", "job", "wait", name, "--timeout", "120s", timeout=240)
    report.check(waited.returncode == 0, "another task runs on it meanwhile", waited.stderr.strip())
