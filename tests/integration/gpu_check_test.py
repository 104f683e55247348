#!/usr/bin/env python3
"""deploy/gpu-check without a GPU: against a fake driver (tests/unit/discovery/fake) and an nvidia-smi with the same
data. Shows that the check itself passes and fails where it should.
"""
import importlib.machinery
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

from berth_harness import BIN, SOURCE
from pause_test import has_freezer

FAKE_NVML = pathlib.Path(os.environ.get("BERTH_BUILD", SOURCE / "build" / "release")) / "tests" / "libberth_fake_nvml.so"
CHECK = SOURCE / "deploy" / "gpu-check"
HAS_TORCH = subprocess.run(["/usr/bin/python3", "-c", "import torch.distributed"], capture_output=True).returncode == 0

# GPU 2 is partitioned into two instances.
GPUS = [{"bus": 0x10 + i, "uuid": f"GPU-fake-{i + 1}", "mig": i == 2} for i in range(3)]

MIG = """<mig_device><gpu_instance_id>{gi}</gpu_instance_id><compute_instance_id>0</compute_instance_id>
<fb_memory_usage><total>40448 MiB</total></fb_memory_usage></mig_device>"""

TOPO = """\tGPU0\tGPU1\tGPU2\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID
GPU0\t X \t{a}\tPHB\t0-1\t0\t\tN/A
GPU1\t{a}\t X \tPHB\t0-1\t0\t\tN/A
GPU2\tPHB\tPHB\t X \t0-1\t0\t\tN/A

Legend:
"""

# The location of the GPUs, which a virtual machine hides and this machine lacks.
PLACES = "<system version=\"1\"><cpu numaid=\"0\" affinity=\"00000003\" arch=\"x86_64\" vendor=\"GenuineIntel\" familyid=\"6\" " \
    "modelid=\"143\">{gpus}</cpu></system>"
PLACE = "<pci busid=\"0000:{bus:02x}:00.0\" class=\"0x030200\" vendor=\"0x10de\" device=\"0x2330\" link_speed=\"32.0 GT/s PCIe\" " \
    "link_width=\"16\"><gpu dev=\"{dev}\" sm=\"90\" rank=\"{dev}\" gdr=\"1\"/></pci>"

CUDA = r"""
#include <stdlib.h>
#include <string.h>
// As many devices as CUDA_VISIBLE_DEVICES has.
int cuInit(unsigned flags) { return flags != 0; }
int cuDeviceGetCount(int* count) {
  const char* list = getenv("CUDA_VISIBLE_DEVICES");
  *count = list != 0 && *list != 0;
  for (; list != 0 && *list != 0; ++list) *count += *list == ',';
  return 0;
}
int cuDeviceGet(int* device, int index) { *device = index; return 0; }
// Every kernel writes to a wrong address.
int cuDevicePrimaryCtxRetain(void** context, int device) { *context = &cuInit; return 0; }
int cuCtxSetCurrent(void* context) { return 0; }
int cuModuleLoadData(void** module, const void* image) { *module = &cuInit; return 0; }
int cuModuleGetFunction(void** function, void* module, const char* name) { *function = &cuInit; return 0; }
int cuLaunchKernel(void* f, unsigned a, unsigned b, unsigned c, unsigned d, unsigned e, unsigned g, unsigned s, void* t,
                   void** p, void** x) { return 0; }
int cuCtxSynchronize(void) { return 700; }
// Memory holds one word.
static unsigned held;
int cuMemAlloc_v2(unsigned long long* at, unsigned long bytes) { *at = 4096; return bytes == 0; }
int cuMemsetD32_v2(unsigned long long at, unsigned word, unsigned long count) { held = word; return 0; }
int cuMemcpyDtoH_v2(void* to, unsigned long long from, unsigned long bytes) { memcpy(to, &held, 4); return 0; }
int cuDeviceGetUuid(unsigned char* uuid, int device) { memset(uuid, device + 1, 16); return 0; }
"""


def smi_xml(change):
    text = "<nvidia_smi_log><driver_version>555.42.06</driver_version>"
    for gpu in GPUS:
        instances = "".join(MIG.format(gi=gi) for gi in (1, 4)) if gpu["mig"] else ""
        ecc = "" if gpu["mig"] else "<ecc_errors><volatile><sram_uncorrectable>0</sram_uncorrectable>" \
            "<dram_uncorrectable>0</dram_uncorrectable></volatile></ecc_errors>"
        text += f"""<gpu id="00000000:{gpu['bus']:02X}:00.0"><product_name>NVIDIA Fake</product_name>
<mig_mode><current_mig>{'Enabled' if gpu['mig'] else 'Disabled'}</current_mig></mig_mode><mig_devices>{instances}</mig_devices>
<uuid>{gpu['uuid']}</uuid><minor_number>{gpu['bus'] - 0x10}</minor_number>
<pci><pci_bus_id>00000000:{gpu['bus']:02X}:00.0</pci_bus_id></pci>
<fb_memory_usage><total>81920 MiB</total></fb_memory_usage>{ecc}
<remapped_rows><remapped_row_pending>No</remapped_row_pending><remapped_row_failure>No</remapped_row_failure></remapped_rows>
</gpu>"""
    return change(text + "</nvidia_smi_log>")


@unittest.skipUnless(FAKE_NVML.exists(), "the fake driver is not built")
class GpuCheck(unittest.TestCase):
    def setUp(self):
        self.home = pathlib.Path(tempfile.mkdtemp(prefix="berth-test-gpu-check-"))
        self.home.chmod(0o755)
        self.addCleanup(shutil.rmtree, self.home, ignore_errors=True)
        (self.home / "places.xml").write_text(
            PLACES.format(gpus="".join(PLACE.format(bus=gpu["bus"], dev=i) for i, gpu in enumerate(GPUS))))
        source = self.home / "cuda.c"
        source.write_text(CUDA)
        subprocess.run(["gcc", "-shared", "-fPIC", "-o", str(self.home / "libcuda.so"), str(source)], check=True)
        (self.home / "libcuda.so").chmod(0o755)

    def check(self, *options, state="", nvlinks="NV4", change=lambda text: text):
        (self.home / "state").write_text("ecc 0 0\necc 1 0\npending 1 0\n" + state)
        (self.home / "q.xml").write_text(smi_xml(change))
        (self.home / "topo.txt").write_text(TOPO.format(a=nvlinks))
        smi = self.home / "nvidia-smi"
        smi.write_text(f'#!/bin/sh\n[ "$1" = topo ] && exec cat {self.home}/topo.txt\nexec cat {self.home}/q.xml\n')
        smi.chmod(0o755)
        result = subprocess.run(
            [sys.executable, str(CHECK), "--bin", str(BIN), "--nvidia-smi", str(smi), "--nvml", str(FAKE_NVML),
             "--cuda", str(self.home / "libcuda.so"), "--topology", str(self.home / "places.xml"),
             "--report", str(self.home / "report"), *options],
            capture_output=True, text=True, timeout=400, env={**os.environ, "BERTH_FAKE_NVML_STATE": str(self.home / "state")})
        return result.returncode, result.stdout + result.stderr

    def failures(self, text):
        return [line.split("FAIL", 1)[1].strip() for line in text.split("\n") if line.strip().startswith("FAIL")]

    def test_a_machine_that_matches_its_description(self):
        code, text = self.check()
        self.assertEqual((code, self.failures(text)), (0, []), text)
        self.assertIn("One task for each gpu, 2 at once", text)
        self.assertRegex(text, "skip  .*: how long copying takes was not measured")
        self.assertIn("One task for each mig, 2 at once", text)
        self.assertIn("each task has a different one: MIG-fake-100 MIG-fake-103", text)
        self.assertIn("0 failed", (self.home / "report").read_text())

    def test_differences_and_faults_are_found(self):
        code, text = self.check(state="xid 0 79\n", nvlinks="NV6",
                                change=lambda smi: smi.replace("81920 MiB", "40960 MiB", 1))
        self.assertEqual(code, 1, text)
        failures = self.failures(text)
        self.assertTrue(any("GPU-fake-1 memory" in failure for failure in failures), text)
        self.assertTrue(any("every pair" in failure for failure in failures), text)
        self.assertTrue(any("no condition holds" in failure for failure in failures), text)
        self.assertIn("XID 79", text)
        self.assertNotIn("GPU-fake-2 memory", "\n".join(failures))

    @unittest.skipUnless(has_freezer(), "needs root and control groups")
    def test_saving_is_measured_where_cuda_checkpoint_exists(self):
        tools = self.home / "tools"
        tools.mkdir()
        program = tools / "cuda-checkpoint"
        program.write_text("#!/bin/sh\necho --get-state --action --timeout\n")
        program.chmod(0o755)
        with unittest.mock.patch.dict(os.environ, {"PATH": f"{tools}:{os.environ['PATH']}"}):
            code, text = self.check("--node-memory", "256Gi")
        self.assertEqual((code, self.failures(text)), (0, []), text)
        for mib in (64, 20480, 61440):
            self.assertIn(f"{mib} MiB: it finds everything where it was", text)
            self.assertRegex(text, f"{mib} MiB: saved in [0-9.]+ s")
        self.assertIn("another task runs on it meanwhile", text)

    def test_a_program_at_fault(self):
        code, text = self.check("--fault", state="xid 0 31\n")
        self.assertEqual((code, self.failures(text)), (0, []), text)
        self.assertIn("CUDA refuses it: gpu-check CUDA error 700", text)
        self.assertIn("the job fails: w-0 exited with 3", text)

    @unittest.skipUnless(HAS_TORCH, "PyTorch is not installed")
    def test_a_gang_that_trains(self):
        code, text = self.check("--train", "/usr/bin/python3", "--train-device", "cpu")
        self.assertEqual((code, self.failures(text)), (0, []), text)
        self.assertIn("it resumed from its checkpoint: at step [50]", text)

    def test_without_nvidia_smi(self):
        result = subprocess.run([sys.executable, str(CHECK), "--bin", str(BIN), "--nvidia-smi", "/nonexistent/nvidia-smi"],
                                capture_output=True, text=True, timeout=60)
        self.assertEqual(result.returncode, 3)
        self.assertIn("there is no nvidia-smi", result.stderr)

    def test_without_programs(self):
        result = subprocess.run([sys.executable, str(CHECK), "--bin", "/nonexistent", "--nvidia-smi", "/bin/true"],
                                capture_output=True, text=True, timeout=60)
        self.assertEqual(result.returncode, 4)


class Parts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        loader = importlib.machinery.SourceFileLoader("gpu_check", str(CHECK))
        cls.module = importlib.util.module_from_spec(importlib.util.spec_from_loader("gpu_check", loader))
        loader.exec_module(cls.module)

    def test_uuids(self):
        digits = "513536b67d199063b0491e69664bb298"
        self.assertTrue(self.module.same_uuid("GPU-513536b6-7d19-9063-b049-1e69664bb298", digits))
        self.assertFalse(self.module.same_uuid("MIG-513536b6-7d19-9063-b049-1e69664bb299", digits))
        self.assertIsNone(self.module.same_uuid("GPU-fake-1", digits))

    def test_nvidia_smi(self):
        gpu, _, divided = self.module.parse_smi(smi_xml(lambda text: text))
        self.assertEqual((gpu["pci"], gpu["memory"], gpu["uncorrected"]), ("0000:10:00.0", 81920 << 20, 0))
        self.assertEqual(divided["instances"], {(1, 0): 40448 << 20, (4, 0): 40448 << 20})
        self.assertIsNone(divided["uncorrected"])
        old = "<nvidia_smi_log><gpu><ecc_errors><volatile><double_bit><total>3</total></double_bit></volatile></ecc_errors>" \
            "<pci><pci_bus_id>00000001:1A:00.0</pci_bus_id></pci></gpu></nvidia_smi_log>"
        (gpu,) = self.module.parse_smi(old)
        self.assertEqual((gpu["uncorrected"], gpu["pci"], gpu["memory"]), (3, "0001:1a:00.0", None))


if __name__ == "__main__":
    unittest.main()
