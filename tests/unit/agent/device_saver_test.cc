// What is on GPUs is saved and restored by a program that behaves like cuda-checkpoint.
#include "clients/agent/supervisor/device_saver.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "clients/agent/cuda_checkpoint.h"
#include "tests/unit/agent/fake_cuda_checkpoint.h"
#include "tests/unit/agent/process_world.h"

namespace berth {
namespace {

using testing::FakeCudaCheckpoint;
using testing::TemporaryDirectory;

// A control group of plain files, with processes that have a GPU open or not.
struct SavedWorld {
  SavedWorld() : fake(root.path() + "/cuda"), group({root.path()}) {
    std::ofstream(root.path() + "/nvidia0") << "a GPU";
    spec.cuda_checkpoint = fake.program();
    spec.gpu_files = {root.path() + "/nvidia"};
  }
  ~SavedWorld() {
    for (const pid_t pid : processes) {
      kill(pid, SIGKILL);
      waitpid(pid, nullptr, 0);
    }
  }
  // With `maps`, it has closed the file and still has it mapped.
  pid_t AddProcess(bool has_gpu, bool maps = false) {
    int ready[2];
    REQUIRE(pipe(ready) == 0);
    const pid_t pid = fork();
    if (pid == 0) {
      const std::string file = root.path() + (has_gpu ? "/nvidia0" : "/cuda/state");
      const int fd = open(file.c_str(), O_RDONLY);
      const bool mapped = mmap(nullptr, 1, PROT_READ, MAP_PRIVATE, fd, 0) != MAP_FAILED;
      if (maps) close(fd);
      if (fd < 0 || !mapped || write(ready[1], "x", 1) != 1) _exit(1);
      for (;;) pause();
    }
    char one = 0;
    REQUIRE(read(ready[0], &one, 1) == 1);
    close(ready[0]);
    close(ready[1]);
    processes.push_back(pid);
    std::ofstream procs(root.path() + "/cgroup.procs");
    for (const pid_t process : processes) procs << process << "\n";
    return pid;
  }
  // Until the saver is done, or, with `late`, as if its children had no time left.
  void Finish(bool late = false) {
    for (int i = 0; i < 5000 && saver.Busy(); ++i) {
      if (late) saver.CheckTime(BoottimeNs() + int64_t{1'000'000'000} * 1'000);
      siginfo_t info{};
      waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT);
      if (info.si_pid > 0 && saver.Owns(info.si_pid)) {
        int status = 0;
        waitpid(info.si_pid, &status, 0);
        saver.OnExit(status);
      } else {
        absl::SleepFor(absl::Milliseconds(2));
      }
    }
    REQUIRE_FALSE(saver.Busy());
  }
  void Save(bool late = false) {
    saver.Save();
    Finish(late);
  }
  void Restore() {
    saver.Restore();
    Finish();
  }

  TemporaryDirectory root;
  FakeCudaCheckpoint fake;
  SupervisorSpec spec;
  ControlGroup group;
  DeviceSaver saver{spec, group};
  std::vector<pid_t> processes;
};

TEST_CASE("device saver: the process with an open GPU is saved and restored") {
  SavedWorld world;
  world.AddProcess(false);
  const pid_t user = world.AddProcess(true);
  world.Save();
  CHECK(world.saver.saved());
  CHECK(world.saver.why().empty());
  CHECK(world.saver.OtherUser() == 0);
  CHECK(world.fake.State() == "checkpointed");
  CHECK(world.fake.Get("calls") == absl::StrCat("--action lock --pid ", user,
                                                " --timeout 20000\n--action checkpoint --pid ",
                                                user, "\n--get-state --pid ", user, "\n"));
  world.Save();  // it is already
  CHECK(world.saver.saved());
  world.Restore();
  CHECK_FALSE(world.saver.needs_restore());
  CHECK(world.fake.State() == "running");
  world.Save();
  CHECK(world.fake.State() == "checkpointed");
}

TEST_CASE("device saver: without an open GPU there is nothing to be saved") {
  SavedWorld world;
  world.AddProcess(false);
  world.Save();
  CHECK(world.saver.saved());
  CHECK(world.fake.Get("calls").empty());
  const pid_t late = world.AddProcess(true);
  CHECK(world.saver.OtherUser() == late);  // since
  world.Restore();
  CHECK_FALSE(world.saver.needs_restore());
}

TEST_CASE("device saver: several processes with open GPUs are refused by number") {
  SavedWorld world;
  const pid_t first = world.AddProcess(true), second = world.AddProcess(true);
  world.Save();
  CHECK_FALSE(world.saver.saved());
  CHECK_FALSE(world.saver.needs_restore());
  CHECK(world.saver.why() == absl::StrCat("2 of its processes have GPUs open, such as ", first,
                                          " and ", second, "; cuda-checkpoint is used for one"));
  CHECK(world.fake.Get("calls").empty());
}

TEST_CASE("device saver: a process that has closed a GPU and still has it mapped counts") {
  SavedWorld world;
  const pid_t first = world.AddProcess(true), second = world.AddProcess(true, true);
  world.Save();
  CHECK_THAT(world.saver.why(), Catch::Contains(absl::StrCat(first, " and ", second)));
}

TEST_CASE("device saver: a failed step is undone, and the process runs") {
  SavedWorld world;
  world.AddProcess(true);
  SECTION("it cannot be locked") {
    world.fake.Put("fail-lock", "operation not supported\n");
    world.Save();
    CHECK(world.saver.why() == "cuda-checkpoint exited with 1: operation not supported");
  }
  SECTION("it cannot be saved") {
    world.fake.Put("fail-checkpoint", "UVM\x1b[31m\n");
    world.Save();
    CHECK(world.saver.why() == "cuda-checkpoint exited with 1: UVM?[31m");
  }
  SECTION("locking takes too long") {
    world.fake.Put("slow-lock", "60");
    world.Save(true);
    CHECK(world.saver.why() == "cuda-checkpoint did not end in time");
  }
  SECTION("the program cannot be started") {
    world.spec.cuda_checkpoint += "-missing";
    world.Save();
    CHECK_THAT(world.saver.why(), Catch::Contains("command not found"));
  }
  CHECK_FALSE(world.saver.saved());
  CHECK(world.fake.State() == "running");
}

TEST_CASE("device saver: what cannot be undone must be restored later") {
  SavedWorld world;
  world.AddProcess(true);
  world.fake.Put("fail-checkpoint", "no memory\n");
  world.fake.Put("fail-unlock", "busy\n");
  world.Save();
  CHECK_FALSE(world.saver.saved());
  CHECK(world.saver.needs_restore());
  CHECK(world.saver.why() == "cuda-checkpoint exited with 1: no memory");
  world.Save();
  CHECK(world.saver.why() == "an earlier attempt could not be undone");
  world.Restore();
  CHECK(world.saver.why() == "cuda-checkpoint exited with 1: busy");
  CHECK(world.saver.needs_restore());
  world.fake.Remove("fail-unlock");
  world.Restore();
  CHECK_FALSE(world.saver.needs_restore());
  CHECK(world.fake.State() == "running");
}

TEST_CASE("device saver: a process that is lost to the driver is not called saved") {
  SavedWorld world;
  world.AddProcess(true);
  world.Save();
  world.fake.Put("state", "failed\n");
  world.Restore();
  CHECK(world.saver.needs_restore());
  CHECK(world.saver.why() == "cuda-checkpoint says that it is failed");
}

TEST_CASE("device saver: a process that CUDA does not know stays as it is") {
  SavedWorld world;
  world.AddProcess(true);
  world.fake.Put("fail-lock", "no CUDA\n");
  world.fake.Put("fail-get-state", "no CUDA\n");
  world.Save();
  CHECK_FALSE(world.saver.saved());
  CHECK_FALSE(world.saver.needs_restore());
  CHECK(world.saver.why() == "cuda-checkpoint exited with 1: no CUDA");
}

TEST_CASE("device saver: without room in memory nothing is saved") {
  SavedWorld world;
  world.AddProcess(true);
  world.spec.gpu_bytes = int64_t{80} << 30;
  const auto put = [&](const std::string& name, const std::string& text) {
    std::ofstream(world.root.path() + "/" + name) << text;
  };
  SECTION("version 2") {
    put("memory.max", absl::StrCat(int64_t{100} << 30, "\n"));
    put("memory.current", absl::StrCat(int64_t{30} << 30, "\n"));
    put("memory.stat", absl::StrCat("anon 1\ninactive_file ", int64_t{5} << 30, "\n"));
    world.Save();
    CHECK(world.saver.why() ==
          "the memory that it requests has 76800 MiB left, and its GPUs have 81920 MiB");
    put("memory.stat",
        absl::StrCat("inactive_file ", int64_t{5} << 30, "\nactive_file ", int64_t{5} << 30, "\n"));
  }
  SECTION("version 1") {
    put("memory.limit_in_bytes", absl::StrCat(int64_t{81} << 30, "\n"));
    put("memory.usage_in_bytes", absl::StrCat(int64_t{2} << 30, "\n"));
    world.Save();
    CHECK_THAT(world.saver.why(), Catch::Contains("has 80896 MiB left"));
    put("memory.stat", absl::StrCat("total_active_file ", int64_t{1} << 30, "\n"));
  }
  SECTION("no limit") { put("memory.max", "max\n"); }
  SECTION("no limit of version 1") { put("memory.limit_in_bytes", "9223372036854771712\n"); }
  CHECK(world.fake.Get("calls").empty());
  world.Save();
  CHECK(world.saver.saved());
}

TEST_CASE("cuda-checkpoint is found where it is configured, in PATH, or not at all") {
  const TemporaryDirectory root;
  const FakeCudaCheckpoint fake(root.path() + "/bin");
  CHECK(*FindCudaCheckpoint(fake.program(), "") == fake.program());
  CHECK(*FindCudaCheckpoint("", absl::StrCat("relative:/none:", root.path(), "/bin")) ==
        fake.program());
  CHECK(FindCudaCheckpoint(kNoCudaCheckpoint, root.path() + "/bin")->empty());
  CHECK(FindCudaCheckpoint(root.path() + "/none", "").status().message() ==
        root.path() + "/none cannot be executed");
  fake.Put("cuda-checkpoint", "#!/bin/sh\necho '--toggle --pid <pid>'\n");  // of driver 550
  CHECK_THAT(std::string(FindCudaCheckpoint(fake.program(), "").status().message()),
             Catch::Contains("does not know --get-state: the one of NVIDIA's driver 570 does"));
}

TEST_CASE("a process has a GPU by NVIDIA's files, or by those of the configuration") {
  config::v1::Agent config;
  v1::Device& gpu = *config.add_devices();
  gpu.set_kind("gpu");
  gpu.set_uuid("g0");
  v1::Device& npu = *config.add_devices();
  npu.set_kind("npu");
  npu.set_uuid("n0");
  CHECK(GpuFiles(config) == std::vector<std::string>{"/dev/nvidia"});
  (*config.mutable_device_access())["npu"].add_files("/dev/npu{}");
  CHECK(GpuFiles(config) == std::vector<std::string>{"/dev/nvidia"});
  (*config.mutable_device_access())["gpu"].add_files("/dev/gpu-{}");
  CHECK(GpuFiles(config) == std::vector<std::string>{"/dev/nvidia", "/dev/gpu-g0"});
}

}  // namespace
}  // namespace berth
