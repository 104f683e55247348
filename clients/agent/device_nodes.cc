#include "clients/agent/device_nodes.h"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>

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

// "GPU UUID:   GPU-5f..." in a file of such lines; "" without.
std::string Value(const std::string& text, absl::string_view name) {
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (absl::ConsumePrefix(&line, name) && absl::ConsumePrefix(&line, ":")) {
      return std::string(absl::StripAsciiWhitespace(line));
    }
  }
  return "";
}

std::vector<std::string> UuidsOfKind(const v1::TaskLaunch& launch, absl::string_view kind) {
  std::vector<std::string> uuids;
  for (int i = 0; i < launch.device_uuids_size(); ++i) {
    if (i < launch.device_kinds_size() && launch.device_kinds(i) == kind)
      uuids.push_back(launch.device_uuids(i));
  }
  return uuids;
}

}  // namespace

std::map<std::string, int> NvidiaMinors(const std::string& proc) {
  std::map<std::string, int> minors;
  for (const std::string& address : NamesIn(proc)) {
    std::string text;
    int minor = 0;
    if (ReadWholeFile(absl::StrCat(proc, "/", address, "/information"), &text) != 0) continue;
    const std::string uuid = Value(text, "GPU UUID");
    if (!uuid.empty() && absl::SimpleAtoi(Value(text, "Device Minor"), &minor))
      minors[uuid] = minor;
  }
  return minors;
}

std::vector<std::string> OthersDevices(const v1::TaskLaunch& launch,
                                       const std::map<std::string, int>& minors) {
  const std::vector<std::string> own = UuidsOfKind(launch, "gpu");
  for (const std::string& uuid : own) {
    if (!minors.contains(uuid)) return {};
  }
  std::vector<std::string> others;
  for (const auto& [uuid, minor] : minors) {
    if (std::find(own.begin(), own.end(), uuid) == own.end())
      others.push_back(absl::StrCat(kNvidiaMajor, ":", minor));
  }
  return others;
}

std::vector<std::string> DeviceFiles(const v1::TaskLaunch& launch,
                                     const std::map<std::string, int>& minors) {
  std::vector<std::string> files;
  const std::vector<std::string> gpus = UuidsOfKind(launch, "gpu");
  bool whole = true;
  for (const std::string& uuid : gpus) {
    const auto found = minors.find(uuid);
    whole = whole && found != minors.end();
    if (found != minors.end()) files.push_back(absl::StrCat("/dev/nvidia", found->second));
  }
  // A slice of a GPU: which one is not known, so it sees all of them.
  for (const auto& [uuid, minor] : minors) {
    if (!whole) files.push_back(absl::StrCat("/dev/nvidia", minor));
  }
  if (!gpus.empty()) {
    for (const char* shared : {"/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools",
                               "/dev/nvidia-modeset", "/dev/nvidia-caps"})
      files.emplace_back(shared);
  }
  if (!UuidsOfKind(launch, "nic").empty()) files.emplace_back("/dev/infiniband");
  std::sort(files.begin(), files.end());
  files.erase(std::unique(files.begin(), files.end()), files.end());
  std::erase_if(files, [](const std::string& file) { return access(file.c_str(), F_OK) != 0; });
  return files;
}

}  // namespace berth
