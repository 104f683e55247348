// The watch: GPUs are queried repeatedly, by a process that may hang, crash or find no driver.
#include <stdlib.h>
#include <sys/stat.h>

#include <atomic>
#include <catch2/catch.hpp>

#include "absl/time/clock.h"
#include "clients/agent/discovery/gpu_watch.h"
#include "clients/agent/discovery/wire.h"
#include "tests/unit/discovery/samples.h"

namespace berth::discovery {
namespace {

using Catch::Matchers::Contains;

constexpr absl::Duration kLong = absl::Seconds(60);

// The fake driver, with a state that the test changes while the watch runs.
struct World {
  World() { setenv("BERTH_FAKE_NVML_STATE", (folder.path() + "/state").c_str(), 1); }
  ~World() { unsetenv("BERTH_FAKE_NVML_STATE"); }
  void Say(const std::string& text) { folder.Write("state", text); }
  GpuReport Ask() {
    absl::StatusOr<GpuReport> report = watch.Ask(kLong, stop);
    INFO(report.status());
    REQUIRE(report.ok());
    return *std::move(report);
  }

  TemporaryFolder folder;
  std::atomic<bool> stop = false;
  GpuWatch watch{BERTH_PROBE, BERTH_FAKE_NVML_LIBRARY};
};

TEST_CASE("the watch reports load, errors and instances of each GPU") {
  World world;
  world.Say("ecc 0 0\nreplays 0 2\ncrc 0 7\naction 0 1\nfailed 0 1\n");
  const GpuReport report = world.Ask();
  CHECK(report.driver == "555.42.06");
  CHECK(report.xids_supported);
  REQUIRE(report.gpus.size() == 5);
  const GpuSample& gpu = report.gpus[0];
  CHECK(gpu.kind == "gpu");
  CHECK(gpu.uuid == "GPU-fake-1");
  CHECK(gpu.index == 0);
  CHECK(ToString(gpu.pci) == "0000:10:00.0");
  CHECK(gpu.memory_used_bytes == int64_t{512} << 20);  // the same amount is reserved
  CHECK(gpu.memory_reserved_bytes == int64_t{512} << 20);
  CHECK(gpu.encoder_percent == 12);
  CHECK(gpu.decoder_percent == -1);  // the fake has no such function
  CHECK(gpu.gpu_percent == 97);
  CHECK(gpu.memory_percent == 33);
  CHECK(gpu.celsius == 40);
  CHECK(gpu.memory_celsius == -1);
  CHECK(gpu.milliwatts == 71500);
  CHECK(gpu.millijoules == -1);  // the fake has no such function
  CHECK(gpu.sm_mhz == 1980);
  CHECK(gpu.ecc_corrected == 5);
  CHECK(gpu.ecc_uncorrected == 0);
  CHECK(gpu.remapped_corrected == 2);
  CHECK(gpu.replace_pending == 0);
  CHECK(gpu.replace_failed == 1);
  CHECK(gpu.recovery_action == 1);
  CHECK(gpu.nvlink_replays == 12);  // two on each of six links
  CHECK(gpu.nvlink_recoveries == 0);
  CHECK(gpu.nvlink_crc == 42);
  CHECK(gpu.xids.empty());
  CHECK(report.gpus[2].nvlink_crc == -1);  // it has no links
  CHECK(report.gpus[2].ecc_uncorrected == -1);
  const GpuSample& mig = report.gpus[4];
  CHECK(mig.kind == "mig");
  CHECK(mig.uuid == "MIG-fake-103");
  CHECK(mig.parent == "GPU-fake-3");
  CHECK(mig.model == "3g.40gb");
  CHECK(mig.index == 2);
  CHECK(mig.memory_used_bytes == int64_t{512} << 20);
}

TEST_CASE("XIDs that occur between two reports are reported once") {
  World world;
  world.Say("");
  CHECK(world.Ask().gpus[1].xids.empty());
  world.Say("xid 1 13\nxid 0 79\nxid 1 48\n");
  std::vector<int64_t> xids;
  for (int i = 0; i < 50 && xids.size() < 2; ++i) {
    const GpuReport report = world.Ask();
    xids.insert(xids.end(), report.gpus[1].xids.begin(), report.gpus[1].xids.end());
  }
  CHECK(xids == std::vector<int64_t>{13, 48});
  CHECK(world.Ask().gpus[1].xids.empty());
}

TEST_CASE("a lost GPU is reported, the others continue") {
  World world;
  world.Say("lost 1 1\n");
  const GpuReport lost_before = world.Ask();
  REQUIRE(lost_before.gpus.size() == 4);  // including one that cannot report its UUID
  world.Say("");
  world.watch.Restart();
  CHECK(world.Ask().gpus.size() == 5);
  world.Say("lost 1 1\n");
  const GpuReport report = world.Ask();
  REQUIRE(report.gpus.size() == 5);
  CHECK_THAT(report.gpus[1].problem, Contains("GPU is lost"));
  CHECK(report.gpus[0].problem.empty());
}

TEST_CASE("an old driver reports the values that it has") {
  GpuWatch watch(BERTH_PROBE, BERTH_FAKE_NVML_OLD_LIBRARY);
  std::atomic<bool> stop = false;
  const absl::StatusOr<GpuReport> report = watch.Ask(kLong, stop);
  REQUIRE(report.ok());
  REQUIRE(report->gpus.size() == 3);
  CHECK_FALSE(report->xids_supported);
  const GpuSample& gpu = report->gpus[1];
  CHECK(gpu.retired_corrected == 0);
  CHECK(gpu.retired_uncorrected == 4);
  CHECK(gpu.replace_pending == 1);
  CHECK(gpu.replace_failed == -1);
  CHECK(gpu.remapped_corrected == -1);
  CHECK(gpu.nvlink_crc == -1);
  CHECK(gpu.recovery_action == -1);
}

TEST_CASE("no driver, a broken one, one that hangs, one that recovers") {
  std::atomic<bool> stop = false;
  GpuWatch none(BERTH_PROBE, "libberth-there-is-none.so.1");
  CHECK(absl::IsNotFound(none.Ask(kLong, stop).status()));
  CHECK(absl::IsNotFound(none.Ask(kLong, stop).status()));
  GpuWatch broken(BERTH_PROBE, "libm.so.6");
  CHECK(absl::IsInternal(broken.Ask(kLong, stop).status()));
  setenv("BERTH_FAKE_NVML", "init", 1);
  GpuWatch unloaded(BERTH_PROBE, BERTH_FAKE_NVML_LIBRARY);
  CHECK(absl::IsFailedPrecondition(unloaded.Ask(kLong, stop).status()));
  unsetenv("BERTH_FAKE_NVML");
  GpuWatch gone("/nonexistent/berth-probe", "");
  CHECK(absl::IsUnavailable(gone.Ask(kLong, stop).status()));

  World world;
  world.Say("hang 0 1\n");
  const absl::Status hangs = world.watch.Ask(absl::Milliseconds(300), stop).status();
  CHECK(absl::IsDeadlineExceeded(hangs));
  CHECK_THAT(std::string(hangs.message()), Contains("does not respond"));
  stop = true;
  CHECK(absl::IsCancelled(world.watch.Ask(kLong, stop).status()));
  stop = false;
  world.Say("");
  CHECK(world.Ask().gpus.size() == 5);
}

TEST_CASE("a watch that crashes or prints nonsense is an error, and the caller survives") {
  const TemporaryFolder folder;
  std::atomic<bool> stop = false;
  const auto script = [&](const std::string& text) {
    const std::string path = folder.Write("watch.sh", "#!/bin/sh\n" + text + "\n");
    chmod(path.c_str(), 0700);
    return GpuWatch(path, "x").Ask(absl::Seconds(20), stop).status();
  };
  CHECK_THAT(std::string(script("kill -SEGV $$").message()), Contains("crashed"));
  CHECK_THAT(std::string(script("exit 3").message()), Contains("code 3"));
  CHECK_THAT(std::string(script("head -c 100 /dev/zero | tr '\\0' x; exit 0").message()),
             Contains("too long"));
  CHECK_THAT(std::string(script("printf '\\005\\0\\0\\0\\0\\0\\0\\0abcde'; sleep 9").message()),
             Contains("another version"));
  CHECK_THAT(std::string(script("printf '\\0\\0\\0\\0\\0\\0\\0\\0no luck'; exit 113").message()),
             Contains("no luck"));
}

TEST_CASE("a report survives encoding, and damage is refused") {
  GpuReport report{.driver = "1", .gpus = {{.uuid = "a", .xids = {1, 2}}}};
  const std::string bytes = EncodeReport(report);
  const absl::StatusOr<GpuReport> back = DecodeReport(bytes);
  REQUIRE(back.ok());
  CHECK(back->gpus[0].uuid == "a");
  CHECK(back->gpus[0].xids == std::vector<int64_t>{1, 2});
  CHECK(back->gpus[0].celsius == -1);
  for (size_t size = 0; size < bytes.size(); ++size)
    CHECK_FALSE(DecodeReport(bytes.substr(0, size)).ok());
  CHECK_FALSE(DecodeReport(bytes + "x").ok());
}

}  // namespace
}  // namespace berth::discovery
