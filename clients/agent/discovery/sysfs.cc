#include "clients/agent/discovery/sysfs.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace berth::discovery {
namespace {

constexpr std::streamsize kMaxFileBytes = 64 << 10;
constexpr size_t kMaxEntries = 100'000;

int64_t Number(const std::string& text) {
  int64_t value = -1;
  return absl::SimpleAtoi(text, &value) ? value : -1;
}

// "4: ACTIVE" -> "active".
std::string PortState(const std::string& text) {
  const std::pair<std::string, std::string> parts = absl::StrSplit(text, absl::MaxSplits(": ", 1));
  return absl::AsciiStrToLower(parts.second);
}

// "400 Gb/sec (4X NDR)" -> 400000; "2.5 Gb/sec" -> 2500.
int64_t PortSpeed(const std::string& text) {
  const std::vector<std::string> words = absl::StrSplit(text, ' ');
  double gigabits = 0;
  if (!absl::SimpleAtod(words[0], &gigabits) || !(gigabits > 0 && gigabits < 1e6)) return 0;
  return static_cast<int64_t>(gigabits * 1000);
}

void JoinOpenFabrics(const std::string& root, Nic* nic) {
  const std::string folder = absl::StrCat(root, "/sys/class/infiniband/", nic->name);
  if (nic->guid.empty()) nic->guid = ReadSysFile(folder + "/node_guid");
  const std::vector<std::string> ports = ListSysFolder(folder + "/ports");
  if (ports.empty()) return;
  const std::string port = absl::StrCat(folder, "/ports/", ports[0]);
  if (std::string state = PortState(ReadSysFile(port + "/state")); !state.empty())
    nic->port_state = state;
  if (int64_t speed = PortSpeed(ReadSysFile(port + "/rate")); speed > 0)
    nic->megabits_per_s = speed;
}

void JoinNetwork(const std::string& root, Nic* nic) {
  const std::string folder = absl::StrCat(root, "/sys/class/net/", nic->name);
  const std::string state = ReadSysFile(folder + "/operstate");
  if (!state.empty()) nic->port_state = state == "up" ? "active" : state;
  nic->megabits_per_s = std::max<int64_t>(Number(ReadSysFile(folder + "/speed")), 0);
}

}  // namespace

std::string ReadSysFile(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return "";
  std::ifstream file(path, std::ios::binary);
  std::string text(kMaxFileBytes, '\0');
  file.read(text.data(), kMaxFileBytes);
  text.resize(static_cast<size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  return std::string(absl::StripAsciiWhitespace(text));
}

std::vector<std::string> ListSysFolder(const std::string& path) {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator at(path, error), end;
       !error && at != end && names.size() < kMaxEntries; at.increment(error)) {
    names.push_back(at->path().filename().string());
  }
  std::sort(names.begin(), names.end(), [](const std::string& a, const std::string& b) {
    const int64_t left = Number(a);
    const int64_t right = Number(b);
    return left != right ? left < right : a < b;
  });
  return names;
}

void JoinNicPorts(const std::string& root, Machine* machine) {
  for (Nic& nic : machine->nics) {
    if (nic.name.find('/') != std::string::npos || nic.name.empty()) continue;
    if (nic.kind == NicKind::kOpenFabrics) {
      JoinOpenFabrics(root, &nic);
    } else {
      JoinNetwork(root, &nic);
    }
  }
}

}  // namespace berth::discovery
