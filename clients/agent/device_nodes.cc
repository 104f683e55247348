#include "clients/agent/device_nodes.h"

#include <dirent.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "clients/agent/supervisor/spec.h"

namespace berth {
namespace {

constexpr int kNvidiaMajor = 195;

std::vector<std::string> NamesIn(const std::string& directory) {
  std::vector<std::string> names;
  DIR* listing = opendir(directory.c_str());
  if (listing == nullptr) return names;
  while (const dirent* entry = readdir(listing)) {
    if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  }
  closedir(listing);
  std::sort(names.begin(), names.end());
  return names;
}

// "GPU UUID:   GPU-5f..." in a file of such lines; "" if there is none.
std::string Value(const std::string& text, absl::string_view name) {
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (absl::ConsumePrefix(&line, name) && absl::ConsumePrefix(&line, ":")) {
      return std::string(absl::StripAsciiWhitespace(line));
    }
  }
  return "";
}

// "226:128"; "" if the file does not exist or is not a character device.
std::string NumberOf(const std::string& file) {
  struct stat facts;
  if (stat(file.c_str(), &facts) != 0 || !S_ISCHR(facts.st_mode)) return "";
  return absl::StrCat(major(facts.st_rdev), ":", minor(facts.st_rdev));
}

// Files of the devices that the task has (or does not have), without the shared ones.
std::set<std::string> FilesOf(const DeviceAccess& access, const v1::TaskLaunch& launch, bool has) {
  const std::set<std::string> own(launch.device_uuids().begin(), launch.device_uuids().end());
  std::set<std::string> files;
  for (const auto& [uuid, device] : access.devices) {
    if (own.contains(uuid) == has) files.insert(device.files.begin(), device.files.end());
  }
  return files;
}

bool HasOneOf(const DeviceAccess& access, const v1::TaskLaunch& launch) {
  return std::any_of(launch.device_uuids().begin(), launch.device_uuids().end(),
                     [&](const std::string& uuid) { return access.devices.contains(uuid); });
}

void AddOthersOf(const DeviceAccess& access, const v1::TaskLaunch& launch,
                 std::vector<std::string>* others) {
  std::set<std::string> own;
  for (const std::string& file : FilesOf(access, launch, true)) own.insert(NumberOf(file));
  for (const std::string& file : FilesOf(access, launch, false)) {
    const std::string number = NumberOf(file);
    if (!number.empty() && !own.contains(number)) others->push_back(number);
  }
}

bool IsOfKind(const v1::TaskLaunch& launch, int i, absl::string_view kind) {
  return i < launch.device_kinds_size() && launch.device_kinds(i) == kind;
}

using Access = std::vector<DeviceAccess>;

// The UUIDs of the task's GPUs and instances that are not from other vendors.
std::vector<std::string> NvidiaUuids(const v1::TaskLaunch& launch, const Access& access) {
  std::vector<std::string> uuids;
  for (int i = 0; i < launch.device_uuids_size(); ++i) {
    if (Includes(access, launch.device_uuids(i))) continue;
    if (IsOfKind(launch, i, "gpu") || IsOfKind(launch, i, "mig"))
      uuids.push_back(launch.device_uuids(i));
  }
  return uuids;
}

std::map<std::string, int> ReadMinors(const std::string& gpus) {
  std::map<std::string, int> minors;
  for (const std::string& address : NamesIn(gpus)) {
    std::string text;
    int minor = 0;
    if (ReadWholeFile(absl::StrCat(gpus, "/", address, "/information"), &text) != 0) continue;
    const std::string uuid = Value(text, "GPU UUID");
    if (!uuid.empty() && absl::SimpleAtoi(Value(text, "Device Minor"), &minor))
      minors[uuid] = minor;
  }
  return minors;
}

// Lines "gpu0/gi3/ci0/access 31", "config 1".
std::map<std::string, int> ReadCaps(const std::string& path) {
  std::map<std::string, int> caps;
  std::string text;
  if (ReadWholeFile(path, &text) != 0) return caps;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const std::vector<std::string> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    int minor = 0;
    if (words.size() == 2 && absl::SimpleAtoi(words[1], &minor)) caps[words[0]] = minor;
  }
  return caps;
}

// A line "237 nvidia-caps" of /proc/devices.
int MajorOf(const std::string& path, absl::string_view driver) {
  std::string text;
  if (ReadWholeFile(path, &text) != 0) return 0;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const std::vector<std::string> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    int major = 0;
    if (words.size() == 2 && words[1] == driver && absl::SimpleAtoi(words[0], &major)) return major;
  }
  return 0;
}

// Minor numbers of the task's devices.
struct Own {
  std::set<int> gpus;
  std::set<int> caps;
  bool all_known = true;
};

// The capabilities of an instance: of its GPU instance, and of its compute instance.
std::vector<int> CapsOf(const MigPlace& place, const NvidiaFiles& nvidia) {
  std::vector<int> caps;
  const auto gpu = nvidia.minors.find(place.gpu);
  if (gpu == nvidia.minors.end()) return caps;
  const std::string instance = absl::StrCat("gpu", gpu->second, "/gi", place.gpu_instance);
  for (const std::string& name :
       {instance + "/access", absl::StrCat(instance, "/ci", place.compute_instance, "/access")}) {
    if (const auto cap = nvidia.caps.find(name); cap != nvidia.caps.end())
      caps.push_back(cap->second);
  }
  return caps;
}

Own OwnOf(const v1::TaskLaunch& launch, const NvidiaFiles& nvidia, const Access& access) {
  Own own;
  for (const std::string& uuid : NvidiaUuids(launch, access)) {
    const auto mig = nvidia.mig.find(uuid);
    const std::string& gpu = mig == nvidia.mig.end() ? uuid : mig->second.gpu;
    const auto minor = nvidia.minors.find(gpu);
    own.all_known = own.all_known && minor != nvidia.minors.end();
    if (minor != nvidia.minors.end()) own.gpus.insert(minor->second);
    if (mig == nvidia.mig.end()) continue;
    const std::vector<int> caps = CapsOf(mig->second, nvidia);
    own.all_known = own.all_known && caps.size() == 2;
    own.caps.insert(caps.begin(), caps.end());
  }
  return own;
}

// Of existing instances only: the driver has names for thousands of possible ones.
std::set<int> CapsInUse(const NvidiaFiles& nvidia) {
  std::set<int> used;
  for (const auto& [uuid, place] : nvidia.mig) {
    const std::vector<int> caps = CapsOf(place, nvidia);
    used.insert(caps.begin(), caps.end());
  }
  for (const char* name : {"config", "monitor"}) {
    if (const auto cap = nvidia.caps.find(name); cap != nvidia.caps.end()) used.insert(cap->second);
  }
  return used;
}

std::vector<std::string> OthersOfNvidia(const v1::TaskLaunch& launch, const NvidiaFiles& nvidia,
                                        const Access& access) {
  const Own own = OwnOf(launch, nvidia, access);
  std::vector<std::string> others;
  if (!own.all_known) return others;
  for (const auto& [uuid, minor] : nvidia.minors) {
    if (!own.gpus.contains(minor)) others.push_back(absl::StrCat(kNvidiaMajor, ":", minor));
  }
  if (nvidia.caps_major == 0) return others;
  for (const int cap : CapsInUse(nvidia)) {
    if (!own.caps.contains(cap)) others.push_back(absl::StrCat(nvidia.caps_major, ":", cap));
  }
  return others;
}

}  // namespace

NvidiaFiles ReadNvidiaFiles(const std::string& proc) {
  return {.minors = ReadMinors(proc + "/driver/nvidia/gpus"),
          .caps = ReadCaps(proc + "/driver/nvidia-caps/mig-minors"),
          .caps_major = MajorOf(proc + "/devices", "nvidia-caps"),
          .mig = {}};
}

std::vector<std::string> DeniedDevices(const v1::TaskLaunch& launch, const NvidiaFiles& nvidia,
                                       const std::vector<DeviceAccess>& access) {
  std::vector<std::string> others = OthersOfNvidia(launch, nvidia, access);
  for (const DeviceAccess& one : access) AddOthersOf(one, launch, &others);
  return others;
}

std::vector<std::string> DeviceFiles(const v1::TaskLaunch& launch, const NvidiaFiles& nvidia,
                                     const std::vector<DeviceAccess>& access,
                                     const std::string& dev) {
  std::vector<std::string> files;
  for (const DeviceAccess& one : access) {
    const std::set<std::string> own = FilesOf(one, launch, true);
    files.insert(files.end(), own.begin(), own.end());
    if (HasOneOf(one, launch))
      files.insert(files.end(), one.shared_files.begin(), one.shared_files.end());
  }
  const Own own = OwnOf(launch, nvidia, access);
  for (const int minor : own.gpus) files.push_back(absl::StrCat(dev, "/nvidia", minor));
  for (const int cap : own.caps) files.push_back(absl::StrCat(dev, "/nvidia-caps/nvidia-cap", cap));
  // If a device is unknown here, the task sees all devices.
  if (!own.all_known) {
    for (const auto& [uuid, minor] : nvidia.minors)
      files.push_back(absl::StrCat(dev, "/nvidia", minor));
    files.push_back(dev + "/nvidia-caps");
  }
  if (!NvidiaUuids(launch, access).empty()) {
    for (const char* shared : {"/nvidiactl", "/nvidia-uvm", "/nvidia-uvm-tools", "/nvidia-modeset"})
      files.push_back(dev + shared);
  }
  for (int i = 0; i < launch.device_uuids_size(); ++i) {
    if (IsOfKind(launch, i, "nic")) files.push_back(dev + "/infiniband");
  }
  std::sort(files.begin(), files.end());
  files.erase(std::unique(files.begin(), files.end()), files.end());
  std::erase_if(files, [](const std::string& file) { return ::access(file.c_str(), F_OK) != 0; });
  return files;
}

}  // namespace berth
