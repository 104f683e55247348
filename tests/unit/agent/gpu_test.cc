// Health of GPUs: which reports make one unhealthy, and how the node registers that.
#include <stdlib.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "absl/strings/match.h"
#include "absl/synchronization/notification.h"
#include "clients/agent/agent_config.h"
#include "clients/agent/device_scout.h"
#include "clients/agent/gpu_checks.h"
#include "clients/agent/gpu_metrics.h"
#include "clients/agent/health_checks.h"
#include "tests/unit/agent/logic_world.h"
#include "tests/unit/agent/process_world.h"

namespace berth::testing {
namespace {

using Catch::Matchers::Contains;
using discovery::GpuReport;
using discovery::GpuSample;
using Effect = v1::NodeCondition;

// What fails, as "check device: message".
std::vector<std::string> Failing(const std::vector<CheckResult>& results) {
  std::vector<std::string> failing;
  for (const CheckResult& result : results) {
    if (!result.good) failing.push_back(absl::StrCat(result.check, " ", result.message));
  }
  return failing;
}

GpuReport One(GpuSample sample) {
  sample.kind = "gpu";
  sample.uuid = "g";
  return {.gpus = {sample}};
}

std::vector<std::string> JudgeOne(GpuChecks& checks, GpuSample sample, int64_t second = 0) {
  return Failing(checks.Judge(One(std::move(sample)), absl::Seconds(second)));
}

using Lines = std::vector<std::string>;

TEST_CASE("XIDs that need a reset make a GPU unhealthy for good, application errors do not") {
  GpuChecks checks({});
  for (const int64_t xid : {13, 31, 43, 45, 63, 68, 69, 92, 94, 144, 154, 155, 999})
    CHECK(JudgeOne(checks, {.xids = {xid}}).empty());
  CHECK(checks.last_xids().at("g") == 999);
  CHECK(JudgeOne(checks, {.xids = {31, 79}}) ==
        Lines{"gpu-xid g: XID 79: GPU has fallen off the bus"});
  CHECK(JudgeOne(checks, {}).size() == 1);  // and it stays
  CHECK_THAT(JudgeOne(checks, {.xids = {79, 48}})[0],
             Contains("XID 79: GPU has fallen off the bus, XID 48: double bit ECC error"));
  CHECK(checks.last_xids().at("g") == 48);
  checks.Forget();
  CHECK(JudgeOne(checks, {}).empty());
  CHECK(checks.last_xids().empty());
}

TEST_CASE("operators can add XIDs and ignore others") {
  config::v1::Health config;
  config.add_bad_xids(31);
  config.add_ignored_xids(109);
  GpuChecks checks(config);
  CHECK(JudgeOne(checks, {.xids = {109}}).empty());
  CHECK(JudgeOne(checks, {.xids = {31}}) == Lines{"gpu-xid g: XID 31"});
}

TEST_CASE("GPU memory errors, a requested reset, and a GPU that is lost") {
  GpuChecks checks({});
  CHECK(JudgeOne(checks, {.ecc_corrected = 900, .ecc_uncorrected = 0}).empty());
  CHECK(JudgeOne(checks, {.ecc_uncorrected = 2}) ==
        Lines{"gpu-ecc g: 2 uncorrected memory errors since driver start"});
  CHECK(JudgeOne(checks, {.replace_pending = 1}) ==
        Lines{"gpu-memory g: bad memory is pending a reset"});
  CHECK(JudgeOne(checks, {.replace_pending = 1, .replace_failed = 1}) ==
        Lines{"gpu-memory g: a row could not be remapped"});
  CHECK(JudgeOne(checks, {.recovery_action = 0}).empty());
  CHECK(JudgeOne(checks, {.recovery_action = 2}) ==
        Lines{"gpu-xid g: the driver requests a reboot of the machine"});
  CHECK(JudgeOne(checks, {.problem = "GPU is lost"}) == Lines{"gpu-xid g: GPU is lost"});
  CHECK(JudgeOne(checks, {}).empty());  // none of them persists
  // An instance is judged by its GPU.
  CHECK(Failing(checks.Judge({.gpus = {{.kind = "mig", .uuid = "m", .ecc_uncorrected = 1}}},
                             absl::Seconds(9)))
            .empty());
}

TEST_CASE("NVLink: a replay counts, CRC errors only if frequent, a counter reset is no error") {
  GpuChecks checks({});
  CHECK(JudgeOne(checks, {.nvlink_replays = 7, .nvlink_crc = 100'000}, 0).empty());
  CHECK(JudgeOne(checks, {.nvlink_replays = 7, .nvlink_crc = 100'990}, 10).empty());
  CHECK(JudgeOne(checks, {.nvlink_replays = 9, .nvlink_crc = 100'990}, 20) ==
        Lines{"gpu-nvlink g: NVLink: 2 replays"});
  CHECK(JudgeOne(checks, {.nvlink_replays = 9, .nvlink_crc = 102'000}, 30) ==
        Lines{"gpu-nvlink g: NVLink: 101 CRC errors per second"});
  CHECK(JudgeOne(checks, {.nvlink_replays = 0, .nvlink_crc = 0}, 40).empty());
  CHECK(JudgeOne(checks, {.nvlink_recoveries = 1}, 50) ==
        Lines{"gpu-nvlink g: NVLink: 1 recoveries"});
}

TEST_CASE("one condition names all devices that fail a check, and each is unhealthy separately") {
  HealthBook book(2, 2);
  const auto note = [&](const char* device, bool good, bool certain) {
    return book.Note({.check = "gpu-xid",
                      .good = good,
                      .message = absl::StrCat(device, " is ill"),
                      .device = device,
                      .certain = certain},
                     Effect::NOTE, true);
  };
  CHECK_FALSE(note("a", false, false));
  CHECK(note("b", false, true));  // at once
  CHECK(book.UnfitDevices() == std::set<std::string>{"b"});
  CHECK(note("a", false, false));
  CHECK(book.UnfitDevices() == std::set<std::string>{"a", "b"});
  REQUIRE(book.Conditions().conditions_size() == 1);
  CHECK(book.Conditions().conditions(0).message() == "a is ill; and 1 more");
  CHECK_FALSE(note("b", true, false));
  CHECK(note("b", true, false));
  CHECK(book.UnfitDevices() == std::set<std::string>{"a"});
  CHECK_FALSE(book.WhyUnfit("a").empty());
  CHECK(book.WhyUnfit("b").empty());
  CHECK(book.Conditions().conditions(0).message() == "a is ill");

  CHECK(book.Set("devices", Effect::CORDON, {{"x", "x is gone"}, {"y", "y is gone"}}));
  CHECK_FALSE(book.Set("devices", Effect::CORDON, {{"x", "x is gone"}, {"y", "y is gone"}}));
  REQUIRE(book.Conditions().conditions_size() == 2);
  CHECK(book.Conditions().conditions(0).effect() == Effect::CORDON);
  CHECK(book.Set("devices", Effect::CORDON, {}));
  CHECK(book.Conditions().conditions_size() == 1);
}

TEST_CASE("the message of a condition stays within its bound") {
  HealthBook book(1, 1);
  for (const char* device : {"a", "b"})
    book.Note({"gpu-xid", false, std::string(400, 'x'), device}, Effect::NOTE, true);
  CHECK(book.Conditions().conditions(0).message().size() == 256);
  CHECK_THAT(book.Conditions().conditions(0).message(), Contains("; and 1 more"));
}

TEST_CASE("metrics have DCGM's names and units, unknown values are omitted") {
  AgentMetrics metrics{.node = "n1"};
  v1::Device& device = *metrics.inventory.add_devices();
  device.set_kind("gpu");
  device.set_uuid("g");
  device.set_unhealthy(true);
  CHECK_THAT(MetricsText(metrics),
             Contains(R"(berth_agent_device_healthy{UUID="g",kind="gpu",node="n1"} 0)"));
  CHECK_FALSE(absl::StrContains(MetricsText(metrics), "DCGM"));
  metrics.gpus = One({.index = 3,
                      .model = "NVIDIA \"H100\"",
                      .memory_used_bytes = int64_t{3} << 20,
                      .milliwatts = 71500,
                      .nvlink_crc = 7});
  metrics.gpus->driver = "555";
  metrics.gpus->gpus.push_back({.index = 3,
                                .kind = "mig",
                                .uuid = "m",
                                .parent = "g",
                                .model = "1g.10gb",
                                .memory_used_bytes = 1 << 20});
  std::string text = MetricsText(metrics);
  const std::string gpu = R"({gpu="3",UUID="g",kind="gpu",modelName="NVIDIA \"H100\"",)"
                          R"(Hostname="n1",DCGM_FI_DRIVER_VERSION="555"})";
  CHECK_THAT(text, Contains("DCGM_FI_DEV_FB_USED" + gpu + " 3\n"));
  CHECK_THAT(text, Contains(R"(DCGM_FI_DEV_FB_USED{gpu="3",UUID="m",kind="mig",)"
                            R"(GPU_I_PROFILE="1g.10gb",parent="g",)"));
  CHECK_THAT(text, Contains("DCGM_FI_DEV_POWER_USAGE" + gpu + " 71.5\n"));
  CHECK_THAT(text, Contains("# TYPE DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL counter"));
  CHECK_FALSE(absl::StrContains(text, "DCGM_FI_DEV_GPU_UTIL"));
  CHECK_FALSE(absl::StrContains(text, "XID"));
  metrics.gpus->xids_supported = true;
  CHECK_THAT(MetricsText(metrics), Contains("DCGM_FI_DEV_XID_ERRORS" + gpu + " 0\n"));
  metrics.last_xids["g"] = 79;
  CHECK_THAT(MetricsText(metrics), Contains("DCGM_FI_DEV_XID_ERRORS" + gpu + " 79\n"));
}

TEST_CASE("the configuration sets the effects of GPU checks") {
  config::v1::Health config;
  CHECK(TakesDevice(config, kGpuXidCheck));
  CHECK(EffectOfCheck(config, kGpuXidCheck) == Effect::NOTE);
  CHECK_FALSE(TakesDevice(config, kGpuNvlinkCheck));
  CHECK(EffectOfCheck(config, kGpuDriverCheck) == Effect::CORDON);
  CHECK_FALSE(TakesDevice(config, kGpuDriverCheck));
  config.set_gpu_xid(config::v1::Health::DRAIN);
  config.set_gpu_ecc(config::v1::Health::NOTE);
  config.set_gpu_memory(config::v1::Health::IGNORE);
  config.set_gpu_nvlink(config::v1::Health::DEVICE);
  CHECK(EffectOfCheck(config, kGpuXidCheck) == Effect::DRAIN);
  CHECK(TakesDevice(config, kGpuXidCheck));
  CHECK_FALSE(TakesDevice(config, kGpuEccCheck));
  CHECK(EffectOfCheck(config, kGpuMemoryCheck) == Effect::EFFECT_UNSPECIFIED);
  CHECK(TakesDevice(config, kGpuNvlinkCheck));
  CHECK_FALSE(TaintsNode(config, kGpuNvlinkCheck));
  config.set_gpu_nvlink(config::v1::Health::TAINT);
  config.set_disk_space(config::v1::Health::TAINT);
  CHECK(TaintsNode(config, kGpuNvlinkCheck));
  CHECK(TakesDevice(config, kGpuNvlinkCheck));
  CHECK(EffectOfCheck(config, kDiskCheck) == Effect::NOTE);
  CHECK(TaintsNode(config, kDiskCheck));
  CHECK_FALSE(TaintsNode(config, kClockCheck));
  CHECK(EffectOfCheck(config, kEpilogCheck) == Effect::DRAIN);
  CHECK_FALSE(TakesDevice(config, kEpilogCheck));

  config::v1::Agent agent;
  SetAgentDefaults(&agent);
  agent.set_allow_root_tasks(true);
  agent.mutable_health()->set_clock(config::v1::Health::DEVICE);
  agent.mutable_discovery()->mutable_interval()->set_seconds(1);
  const std::string problems(CheckAgentConfig(agent, 0).message());
  CHECK_THAT(problems, Contains("allow the effect device"));
  CHECK_THAT(problems, Contains("discovery.interval: must be 10s..24h"));
}

TEST_CASE("a changed inventory causes a new registration, and tasks stay") {
  Agent agent;
  agent.Register();
  agent.RunTask(1);
  agent.link.sent.clear();
  v1::NodeInventory inventory;
  inventory.add_devices()->set_uuid("gpu-9");
  agent.logic->SetInventory(agent.Now(), inventory);
  REQUIRE(agent.link.sent.size() == 1);
  const v1::Hello& hello = agent.link.sent[0].hello();
  REQUIRE(hello.inventory().devices_size() == 1);
  CHECK(hello.inventory().devices(0).uuid() == "gpu-9");
  REQUIRE(hello.tasks_size() == 1);
  CHECK(hello.tasks(0).state() == v1::TaskReport::RUNNING);
  CHECK_FALSE(agent.logic->registered());
  agent.Welcome(8);
  CHECK(agent.logic->registered());
  CHECK(agent.logic->live_tasks() == 1);
  // Devices that are gone are refused, new ones accepted.
  agent.link.sent.clear();
  agent.Prepare(Key(2), false, true, {"gpu-0"});
  agent.Prepare(Key(3), false, true, {"gpu-9"});
  const auto reports = SentReports(agent);
  REQUIRE(reports.size() == 1);
  CHECK_THAT(reports[0].message(), Contains("gpu-0 is not on this node"));
}

TEST_CASE("without a connection the next Hello has the new inventory") {
  Agent agent;
  agent.Register();
  agent.logic->OnDisconnected(agent.Now(), "gone");
  agent.link.sent.clear();
  v1::NodeInventory inventory;
  inventory.add_devices()->set_uuid("gpu-9");
  agent.logic->SetInventory(agent.Now(), inventory);
  CHECK(agent.link.sent.empty());
  agent.Advance(absl::Seconds(3));
  REQUIRE_FALSE(agent.link.sent.empty());
  CHECK(agent.link.sent[0].hello().inventory().devices_size() == 1);
}

// A driver whose state the test writes.
struct FakeDriver {
  FakeDriver() { setenv("BERTH_FAKE_NVML_STATE", Path().c_str(), 1); }
  ~FakeDriver() { unsetenv("BERTH_FAKE_NVML_STATE"); }
  std::string Path() const { return folder.path() + "/state"; }
  void Say(const std::string& text) { std::ofstream(Path()) << text; }
  TemporaryDirectory folder;
};

TEST_CASE("check rounds query the driver, and continue without one") {
  FakeDriver driver;
  driver.Say("ecc 0 0\necc 1 0\npending 1 0\nxid 0 79\n");
  absl::Mutex mutex;
  std::vector<HealthRound> rounds;
  config::v1::Health config;
  config.mutable_interval()->set_nanos(50'000'000);
  {
    HealthChecks checks(config,
                        {.state_directory = "/",
                         .probe = ProgramBeside("berth-probe"),
                         .nvml_library = BERTH_FAKE_NVML_LIBRARY},
                        [&](HealthRound round) {
                          absl::MutexLock lock(&mutex);
                          rounds.push_back(std::move(round));
                        });
    const auto seen = [&] {
      return !rounds.empty() && rounds.back().last_xids.contains("GPU-fake-1");
    };
    absl::MutexLock lock(&mutex);
    REQUIRE(mutex.AwaitWithTimeout(absl::Condition(&seen), absl::Seconds(60)));
    REQUIRE(rounds.back().gpus);
    CHECK(rounds.back().gpus->gpus.size() == 5);
    const auto failing = Failing(rounds.back().results);
    CHECK(std::count(failing.begin(), failing.end(),
                     "gpu-xid GPU-fake-1: XID 79: GPU has fallen off the bus") == 1);
  }
  rounds.clear();
  HealthChecks none(config,
                    {.state_directory = "/",
                     .probe = ProgramBeside("berth-probe"),
                     .nvml_library = "libberth-there-is-none.so.1"},
                    [&](HealthRound round) {
                      absl::MutexLock lock(&mutex);
                      rounds.push_back(std::move(round));
                    });
  const auto twice = [&] { return rounds.size() >= 2; };
  absl::MutexLock lock(&mutex);
  REQUIRE(mutex.AwaitWithTimeout(absl::Condition(&twice), absl::Seconds(60)));
  CHECK_FALSE(rounds[1].gpus);
  for (const CheckResult& result : rounds[1].results) CHECK(result.check != kGpuDriverCheck);
}

TEST_CASE("GPUs are queried on request, between the rounds") {
  FakeDriver driver;
  driver.Say("ecc 0 0\necc 1 0\npending 1 0\n");
  absl::Mutex mutex;
  std::vector<HealthRound> rounds;
  config::v1::Health config;
  config.mutable_interval()->set_seconds(3600);
  HealthChecks checks(config,
                      {.state_directory = "/",
                       .probe = ProgramBeside("berth-probe"),
                       .nvml_library = BERTH_FAKE_NVML_LIBRARY},
                      [&](HealthRound round) {
                        absl::MutexLock lock(&mutex);
                        rounds.push_back(std::move(round));
                      });
  const auto first = [&] { return rounds.size() == 1; };
  {
    absl::MutexLock lock(&mutex);
    REQUIRE(mutex.AwaitWithTimeout(absl::Condition(&first), absl::Seconds(60)));
    CHECK(rounds[0].number == 1);
  }
  driver.Say("ecc 0 0\necc 1 0\npending 1 0\nxid 0 79\n");
  CHECK(checks.LookAtGpus() == 2);
  CHECK(checks.LookAtGpus() == 2);  // one look answers both
  const auto second = [&] { return rounds.size() == 2; };
  absl::MutexLock lock(&mutex);
  REQUIRE(mutex.AwaitWithTimeout(absl::Condition(&second), absl::Seconds(60)));
  CHECK(rounds[1].number == 2);
  const auto failing = Failing(rounds[1].results);
  CHECK(std::count(failing.begin(), failing.end(),
                   "gpu-xid GPU-fake-1: XID 79: GPU has fallen off the bus") == 1);
  for (const CheckResult& result : rounds[1].results) CHECK(result.check != kDiskCheck);
}

TEST_CASE("devices are rediscovered on request: missing ones are reported, new ones appear") {
  FakeDriver driver;
  driver.Say("");
  TemporaryDirectory state;
  config::v1::Agent config;
  config.set_state_directory(state.path());
  config.mutable_discovery()->set_nvml_library(BERTH_FAKE_NVML_LIBRARY);
  absl::Mutex mutex;
  std::vector<DeviceScout::Look> looks;
  DeviceScout scout(config, ProgramBeside("berth-probe"), [&](DeviceScout::Look look) {
    absl::MutexLock lock(&mutex);
    looks.push_back(std::move(look));
  });
  const auto look = [&](size_t count) {
    scout.ScanNow();
    const auto there = [&] { return looks.size() >= count; };
    absl::MutexLock lock(&mutex);
    REQUIRE(mutex.AwaitWithTimeout(absl::Condition(&there), absl::Seconds(60)));
    REQUIRE(looks.back().found.read);
    CHECK(looks.back().asked);
    REQUIRE(SaveKnownDevices(looks.back().found.known, state.path()).ok());
    std::map<std::string, bool> healthy;
    for (const v1::Device& device : looks.back().devices)
      healthy[device.uuid()] = !device.unhealthy();
    return healthy;
  };
  CHECK(look(1).at("GPU-fake-2"));
  driver.Say("gone 1 1\n");
  CHECK_FALSE(look(2).at("GPU-fake-2"));
  CHECK_THAT(looks.back().found.vanished.at("GPU-fake-2"), Contains("has disappeared"));
  driver.Say("");
  CHECK(look(3).at("GPU-fake-2"));
  CHECK(looks.back().found.vanished.empty());
}

// In one thread, one after the other: no look finds a GPU half divided.
TEST_CASE("a GPU is divided, and the new devices are registered with the result") {
  FakeDriver driver;
  driver.Say("");
  TemporaryDirectory state;
  config::v1::Agent config;
  config.set_state_directory(state.path());
  config.mutable_discovery()->set_nvml_library(BERTH_FAKE_NVML_LIBRARY);
  config.mutable_mig()->set_reconfigure(true);
  config.mutable_sharing()->set_mode(config::v1::Sharing::TIME_SLICING);
  config.mutable_sharing()->set_max_tasks(4);
  v1::DivideGpu wish;
  wish.set_gpu("GPU-fake-3");
  for (const int start : {0, 2, 4}) {
    wish.add_parts()->set_profile("2g.20gb");
    wish.mutable_parts(wish.parts_size() - 1)->set_start(start);
  }
  absl::Mutex mutex;
  std::vector<DeviceScout::Look> looks;
  DeviceScout scout(config, ProgramBeside("berth-probe"), [&](DeviceScout::Look look) {
    absl::MutexLock lock(&mutex);
    looks.push_back(std::move(look));
  });
  const auto divide = [&](size_t count) {
    scout.Divide(wish);
    const auto there = [&] { return looks.size() >= count; };
    absl::MutexLock lock(&mutex);
    REQUIRE(mutex.AwaitWithTimeout(absl::Condition(&there), absl::Seconds(60)));
    REQUIRE(looks.back().divided.has_value());
    CHECK(looks.back().divided->gpu == "GPU-fake-3");
    std::vector<std::string> models;
    for (const v1::Device& device : looks.back().devices) {
      if (device.kind() == "mig") models.push_back(device.model());
      if (device.kind() == "gpu") CHECK(device.max_tasks() == 4);  // as at the start
    }
    return models;
  };
  CHECK(divide(1) == std::vector<std::string>{"NVIDIA Fake", "2g.20gb", "2g.20gb", "2g.20gb"});
  CHECK(looks.back().divided->status.ok());
  CHECK(looks.back().found.mig.size() == 3);
  driver.Say("stuck 2 1\n");
  CHECK(divide(2).size() == 4);
  CHECK_THAT(std::string(looks.back().divided->status.message()), Contains("In use by another"));
}

}  // namespace
}  // namespace berth::testing
