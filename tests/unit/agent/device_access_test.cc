// Devices of vendors other than NVIDIA: variables, files, and the configuration of access.
#include "clients/agent/device_access.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <catch2/catch.hpp>

#include "clients/agent/agent_config.h"
#include "clients/agent/device_nodes.h"
#include "clients/agent/environment.h"

namespace berth {
namespace {

using Catch::Matchers::Contains;
using Files = std::vector<std::string>;
using Variables = std::map<std::string, std::string>;

v1::TaskLaunch LaunchWith(const std::string& kind, const std::vector<std::string>& uuids) {
  v1::TaskLaunch launch;
  for (const std::string& uuid : uuids) {
    launch.add_device_kinds(kind);
    launch.add_device_uuids(uuid);
  }
  return launch;
}

void Declare(const std::string& kind, const std::vector<std::string>& uuids,
             config::v1::Agent* config) {
  for (const std::string& uuid : uuids) {
    v1::Device* device = config->add_devices();
    device->set_kind(kind);
    device->set_uuid(uuid);
  }
}

const std::map<std::string, AmdGpu> kAmd = {{"GPU-00a1", {128, 0, "GPU-00a1"}},
                                            {"mine", {129, 1, "GPU-00b2"}},
                                            {"PCI-0000:1e:00.0-p1", {130, 2, ""}}};

TEST_CASE("AMD GPUs: named by UUID, or by number if a partition has no UUID") {
  config::v1::Agent config;
  const auto variables = [&](bool barred, const std::vector<std::string>& uuids) {
    return AccessVariables(AccessOf(config, config.devices(), kAmd, barred),
                           LaunchWith("gpu", uuids));
  };
  CHECK(variables(true, {"mine", "GPU-00a1"}) ==
        Variables{{"ROCR_VISIBLE_DEVICES", "GPU-00b2,GPU-00a1"}});
  CHECK(variables(true, {}) == Variables{{"ROCR_VISIBLE_DEVICES", ""}});
  CHECK(variables(false, {"PCI-0000:1e:00.0-p1"}) == Variables{{"ROCR_VISIBLE_DEVICES", "2"}});
  // The driver then shows only this GPU, as its first.
  CHECK(variables(true, {"PCI-0000:1e:00.0-p1"}).empty());
  CHECK(AccessOf(config, config.devices(), {}, true).empty());
}

TEST_CASE("tasks with AMD GPUs get no CUDA variables, because AMD gives them another meaning") {
  config::v1::Agent config;
  EnvironmentContext context;
  context.has_gpus = true;
  context.mps_pipe_directory = "/run/mps";
  context.access = AccessOf(config, config.devices(), kAmd, true);
  const auto environment = [&](v1::TaskLaunch launch) {
    launch.add_device_shares(500);
    return BuildEnvironment({1, 0, 1}, launch, {}, context);
  };
  Environment env = environment(LaunchWith("gpu", {"mine"}));
  CHECK(env.at("ROCR_VISIBLE_DEVICES") == "GPU-00b2");
  CHECK(env.at("BERTH_DEVICES_GPU") == "mine");
  CHECK_FALSE(env.contains("CUDA_VISIBLE_DEVICES"));
  CHECK_FALSE(env.contains("NVIDIA_VISIBLE_DEVICES"));
  CHECK_FALSE(env.contains("CUDA_MPS_PIPE_DIRECTORY"));
  env = environment(LaunchWith("gpu", {"GPU-nvidia"}));
  CHECK(env.at("ROCR_VISIBLE_DEVICES").empty());
  CHECK(env.at("CUDA_VISIBLE_DEVICES") == "GPU-nvidia");
  env = environment(LaunchWith("gpu", {}));
  CHECK(env.at("ROCR_VISIBLE_DEVICES").empty());
  CHECK(env.at("CUDA_VISIBLE_DEVICES").empty());
}

TEST_CASE("device kinds from the configuration: variable, names, files") {
  config::v1::Agent config;
  Declare("npu", {"0000:c1:00.0", "0000:c2:00.0", "spare"}, &config);
  Declare("gpu", {"g"}, &config);
  config::v1::DeviceAccess& npu = (*config.mutable_device_access())["npu"];
  npu.set_variable("ASCEND_RT_VISIBLE_DEVICES");
  npu.add_files("/dev/davinci{}");
  npu.add_shared_files("/dev/davinci_manager");
  (*npu.mutable_names())["0000:c1:00.0"] = "0";
  (*npu.mutable_names())["0000:c2:00.0"] = "1";
  const auto access = AccessOf(config, config.devices(), kAmd, true);
  REQUIRE(access.size() == 2);
  CHECK(access[0].devices.at("0000:c2:00.0").files == Files{"/dev/davinci1"});
  CHECK(access[0].devices.at("spare").name == "spare");
  CHECK(AccessVariables(access, LaunchWith("npu", {"0000:c2:00.0", "0000:c1:00.0"})) ==
        Variables{{"ASCEND_RT_VISIBLE_DEVICES", "1,0"}, {"ROCR_VISIBLE_DEVICES", ""}});
  // A configured access for GPUs replaces the built-in one for AMD GPUs.
  (*config.mutable_device_access())["gpu"].set_variable("HIP_VISIBLE_DEVICES");
  CHECK(AccessVariables(AccessOf(config, config.devices(), kAmd, true), LaunchWith("gpu", {"g"})) ==
        Variables{{"ASCEND_RT_VISIBLE_DEVICES", ""}, {"HIP_VISIBLE_DEVICES", "g"}});
}

std::string NumberOf(const char* file) {
  struct stat facts;
  REQUIRE(stat(file, &facts) == 0);
  return std::to_string(major(facts.st_rdev)) + ":" + std::to_string(minor(facts.st_rdev));
}

TEST_CASE("files of other vendors' devices: a task sees its own, those of others are denied") {
  std::vector<DeviceAccess> access(1);
  access[0].devices = {{"a", {"0", {"/dev/null"}}},
                       {"b", {"1", {"/dev/zero", "/dev/no-such-file"}}},
                       {"c", {"2", {"/dev/full", "/dev/null"}}}};
  access[0].shared_files = {"/dev/random"};
  const NvidiaFiles none;
  CHECK(DeniedDevices(LaunchWith("npu", {"a"}), none, access) ==
        Files{NumberOf("/dev/full"), NumberOf("/dev/zero")});  // the shared file stays open
  CHECK(DeniedDevices(LaunchWith("npu", {}), none, access).size() == 3);
  CHECK(DeniedDevices(LaunchWith("npu", {"a", "b", "c"}), none, access).empty());
  CHECK(DeviceFiles(LaunchWith("npu", {"b"}), none, access) == Files{"/dev/random", "/dev/zero"});
  CHECK(DeviceFiles(LaunchWith("npu", {}), none, access).empty());
  // An AMD GPU does not make NVIDIA's files unknown.
  NvidiaFiles nvidia;
  nvidia.minors = {{"GPU-0", 0}};
  CHECK(DeniedDevices(LaunchWith("gpu", {"a"}), nvidia, access).front() == "195:0");
  CHECK(DeviceFiles(LaunchWith("gpu", {"a"}), nvidia, access) == Files{"/dev/null", "/dev/random"});
}

TEST_CASE("an invalid deviceAccess is refused with the reason") {
  config::v1::Agent config;
  CHECK(DeviceAccessProblems(config).empty());
  config::v1::DeviceAccess& npu = (*config.mutable_device_access())["npu"];
  npu.set_variable("MLU_VISIBLE_DEVICES");
  npu.add_files("/dev/cambricon_dev{}");
  npu.add_shared_files("/dev/cambricon_ctl");
  (*npu.mutable_names())["u"] = "0";
  CHECK(DeviceAccessProblems(config).empty());
  npu.set_variable("BERTH_JOB");
  npu.add_files("/etc/{}");
  npu.add_files("/dev/all");
  npu.add_shared_files("/dev/../etc/shadow");
  (*npu.mutable_names())["v"] = "0";
  (*npu.mutable_names())["w"] = "../x";
  (*config.mutable_device_access())["nic"];
  const std::vector<std::string> found = DeviceAccessProblems(config);
  REQUIRE(found.size() == 7);
  CHECK(found[0] == "deviceAccess: \"nic\" is not a valid kind here");
  CHECK_THAT(found[1], Contains("BERTH_JOB is not a variable name"));
  CHECK(found[2] == "deviceAccess.npu.files: must be below /dev, is /etc/{}");
  CHECK(found[3] == "deviceAccess.npu.sharedFiles: must be below /dev, is /dev/../etc/shadow");
  CHECK_THAT(found[4], Contains("/dev/all has no {}"));
  CHECK(found[5] == "deviceAccess.npu.names: 0 is used for u and v");
  CHECK_THAT(found[6], Contains("names.w: only letters"));
  CHECK_THAT(std::string(CheckAgentConfig(config, 1).message()),
             Contains("deviceAccess.npu.names"));
}

}  // namespace
}  // namespace berth
