#include "clients/agent/device_access.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"

namespace berth {
namespace {

using Devices = google::protobuf::RepeatedPtrField<v1::Device>;
using Problems = std::vector<std::string>;

constexpr int kMaxNames = kMaxRegisteredDevices;
constexpr int kMaxFiles = 32;
constexpr size_t kMaxNameBytes = 64;

// The keys in order: a proto map is unordered.
std::vector<std::string> Kinds(const config::v1::Agent& config) {
  std::vector<std::string> kinds;
  for (const auto& [kind, access] : config.device_access()) kinds.push_back(kind);
  std::sort(kinds.begin(), kinds.end());
  return kinds;
}

DeviceAccess Declared(const std::string& kind, const config::v1::DeviceAccess& said,
                      const Devices& devices) {
  DeviceAccess access{.variable = said.variable(),
                      .shared_files = {said.shared_files().begin(), said.shared_files().end()}};
  for (const v1::Device& device : devices) {
    if (device.kind() != kind) continue;
    const auto name = said.names().find(device.uuid());
    AccessibleDevice& one = access.devices[device.uuid()];
    one.name = name == said.names().end() ? device.uuid() : name->second;
    for (const std::string& file : said.files())
      one.files.push_back(absl::StrReplaceAll(file, {{"{}", one.name}}));
  }
  return access;
}

DeviceAccess Amd(const std::map<std::string, AmdGpu>& amd, bool barred) {
  DeviceAccess access{.variable = "ROCR_VISIBLE_DEVICES", .shared_files = {"/dev/kfd"}};
  for (const auto& [uuid, gpu] : amd) {
    AccessibleDevice& one = access.devices[uuid];
    one.name = gpu.uuid;
    if (gpu.uuid.empty() && !barred) one.name = absl::StrCat(gpu.index);
    if (gpu.render_minor >= 0)
      one.files.push_back(absl::StrCat("/dev/dri/renderD", gpu.render_minor));
  }
  return access;
}

bool IsVariable(absl::string_view name) {
  if (name.empty() || absl::ascii_isdigit(static_cast<unsigned char>(name[0]))) return false;
  for (const char c : name) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) && c != '_') return false;
  }
  return !absl::StartsWith(name, "BERTH_");
}

bool IsName(absl::string_view name) {
  for (const char c : name) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) && !absl::StrContains("._:-", c))
      return false;
  }
  return !name.empty() && name.size() <= kMaxNameBytes && name != "." && name != "..";
}

void CheckFiles(const std::string& where, const config::v1::DeviceAccess& access, Problems* found) {
  const auto check = [&](const auto& files, const char* field) {
    if (files.size() > kMaxFiles)
      found->push_back(absl::StrCat(where, ".", field, ": at most ", kMaxFiles));
    for (const std::string& file : files) {
      if (!absl::StartsWith(file, "/dev/") || absl::StrContains(file, "/../"))
        found->push_back(absl::StrCat(where, ".", field, ": must be below /dev, is ", file));
    }
  };
  check(access.files(), "files");
  check(access.shared_files(), "sharedFiles");
  for (const std::string& file : access.files()) {
    if (!absl::StrContains(file, "{}")) {
      found->push_back(absl::StrCat(where, ".files: ", file,
                                    " has no {} for the device name (use sharedFiles?)"));
    }
  }
}

void CheckNames(const std::string& where, const config::v1::DeviceAccess& access, Problems* found) {
  if (access.names_size() > kMaxNames)
    found->push_back(absl::StrCat(where, ".names: at most ", kMaxNames));
  std::map<std::string, std::string> holders;
  for (const auto& [uuid, name] :
       std::map<std::string, std::string>(access.names().begin(), access.names().end())) {
    if (!IsName(name))
      found->push_back(absl::StrCat(where, ".names.", uuid, ": only letters, digits and ._:-"));
    if (const auto [holder, is_new] = holders.emplace(name, uuid); !is_new) {
      found->push_back(
          absl::StrCat(where, ".names: ", name, " is used for ", holder->second, " and ", uuid));
    }
  }
}

}  // namespace

std::vector<DeviceAccess> AccessOf(const config::v1::Agent& config, const Devices& devices,
                                   const std::map<std::string, AmdGpu>& amd, bool barred) {
  std::vector<DeviceAccess> all;
  for (const std::string& kind : Kinds(config))
    all.push_back(Declared(kind, config.device_access().at(kind), devices));
  if (!amd.empty() && !config.device_access().contains("gpu")) all.push_back(Amd(amd, barred));
  return all;
}

bool Includes(const std::vector<DeviceAccess>& access, const std::string& uuid) {
  return std::any_of(access.begin(), access.end(),
                     [&](const DeviceAccess& one) { return one.devices.contains(uuid); });
}

std::vector<std::string> DeviceAccessProblems(const config::v1::Agent& config) {
  Problems found;
  for (const std::string& kind : Kinds(config)) {
    const config::v1::DeviceAccess& access = config.device_access().at(kind);
    const std::string where = absl::StrCat("deviceAccess.", kind);
    if (kind.empty() || kind == "nic" || kind == kMigDevices)
      found.push_back(absl::StrCat("deviceAccess: \"", kind, "\" is not a valid kind here"));
    if (!access.variable().empty() && !IsVariable(access.variable()))
      found.push_back(absl::StrCat(where, ".variable: ", access.variable(),
                                   " is not a variable name, or is reserved by Berth"));
    CheckFiles(where, access, &found);
    CheckNames(where, access, &found);
  }
  return found;
}

std::map<std::string, std::string> AccessVariables(const std::vector<DeviceAccess>& access,
                                                   const v1::TaskLaunch& launch) {
  std::map<std::string, std::string> variables;
  for (const DeviceAccess& one : access) {
    if (one.variable.empty() || one.devices.empty()) continue;
    std::vector<std::string> names;
    bool known = true;
    for (const std::string& uuid : launch.device_uuids()) {
      const auto device = one.devices.find(uuid);
      if (device == one.devices.end()) continue;
      names.push_back(device->second.name);
      known = known && !device->second.name.empty();
    }
    if (known) variables[one.variable] = absl::StrJoin(names, ",");
  }
  return variables;
}

}  // namespace berth
