#include "clients/cli/topology/ibnetdiscover.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "clients/cli/topology/fabric.h"
#include "clients/cli/topology/host_names.h"
#include "clients/cli/topology/hosts.h"

namespace berth {
namespace {

constexpr std::array<absl::string_view, 11> kIgnoredLines = {
    "vendid=", "devid=",      "sysimgguid=", "switchguid=", "caguid=", "rtguid=",
    "Chassis", "Non-Chassis", "Spine",       "Line",        "DR path"};

// Removes the text up to and including `end` from the front; false if there is no `end`.
bool TakeUntil(absl::string_view* text, char end, absl::string_view* taken) {
  const size_t at = text->find(end);
  if (at == absl::string_view::npos) return false;
  *taken = text->substr(0, at);
  text->remove_prefix(at + 1);
  return true;
}

// `"S-0002c903000000a1"`: its letter and GUID.
struct Device {
  char type = 0;  // 'S' switch, 'H' adapter, 'R' router
  std::string guid;
};
bool TakeDevice(absl::string_view* text, Device* device) {
  absl::string_view word;
  if (!absl::ConsumePrefix(text, "\"") || !TakeUntil(text, '"', &word)) return false;
  if (word.size() < 3 || word[1] != '-') return false;
  device->type = word[0];
  device->guid = GuidFrom(word.substr(2));
  return !device->guid.empty() && absl::StrContains("SHR", word.substr(0, 1));
}

// The quoted text after "#": from the first quote to the last, because a description may contain
// quotes.
std::string Description(absl::string_view comment) {
  const size_t begin = comment.find('"');
  const size_t end = comment.rfind('"');
  if (begin == absl::string_view::npos || end <= begin) return "";
  return std::string(comment.substr(begin + 1, end - begin - 1));
}

// A line of a port: `[1](OWN) "S-GUID"[9](PEER) # ... 4xNDR`.
struct Cable {
  std::string own_guid;  // of the port, if the line has it
  Device peer;
  std::string peer_guid;
  std::string peer_description;
  int64_t gbps = 0;
};
bool ReadCable(absl::string_view line, Cable* cable) {
  absl::string_view ignored, guid;
  if (!absl::ConsumePrefix(&line, "[") || !TakeUntil(&line, ']', &ignored)) return false;
  if (absl::ConsumePrefix(&line, "(")) {
    if (!TakeUntil(&line, ')', &guid)) return false;
    cable->own_guid = GuidFrom(guid);
  }
  line = absl::StripLeadingAsciiWhitespace(line);
  if (absl::ConsumePrefix(&line, "[ext") && !TakeUntil(&line, ']', &ignored)) return false;
  line = absl::StripLeadingAsciiWhitespace(line);
  if (!TakeDevice(&line, &cable->peer)) return false;
  if (!absl::ConsumePrefix(&line, "[") || !TakeUntil(&line, ']', &ignored)) return false;
  if (absl::ConsumePrefix(&line, "(")) {
    if (!TakeUntil(&line, ')', &guid)) return false;
    cable->peer_guid = GuidFrom(guid);
  }
  const size_t hash = line.find('#');
  if (hash == absl::string_view::npos) return true;
  const absl::string_view comment = absl::StripAsciiWhitespace(line.substr(hash + 1));
  cable->peer_description = Description(comment);
  cable->gbps = LinkGbps(comment.substr(comment.find_last_of(" \t") + 1));
  return true;
}

class IbnetReader {
 public:
  IbnetReader(const ImportInput& input, const PortOwners& owners)
      : hosts_(input), owners_(owners) {}

  absl::Status ReadFile(const SourceText& text) {
    YamlErrors errors(text.name);
    int number = 0;
    device_ = Device();
    for (const absl::string_view raw : absl::StrSplit(text.text, '\n')) {
      const absl::string_view line = absl::StripAsciiWhitespace(raw);
      ++number;
      if (!ReadLine(line)) errors.Add({number, 1}, "not a line of ibnetdiscover output");
    }
    if (fabric_.switches() > kMaxSwitches)
      errors.Add({}, absl::StrCat("more than the ", kMaxSwitches, " switches allowed"));
    return errors.status();
  }

  absl::StatusOr<Imported> Finish() {
    if (fabric_.switches() == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(Counted(adapters_.size(), "adapter"),
                       " and no switch: was this run at a port that is not connected?"));
    }
    Imported imported;
    for (const auto& [guid, adapter] : adapters_) AddAdapter(adapter);
    fabric_.AddGroups(/*prefix_ids=*/true, &imported);
    hosts_.AddWarnings("adapter", &imported.warnings);
    return imported;
  }

 private:
  struct Adapter {
    std::string description;
    std::set<std::string> guids;                 // its own, and those of its ports
    std::map<std::string, int64_t> leaf_speeds;  // by switch
  };

  bool ReadLine(absl::string_view line) {
    if (line.empty() || line[0] == '#') return true;
    if (line[0] == '[') {
      Cable cable;
      if (device_.type == 0 || !ReadCable(line, &cable)) return false;
      AddCable(cable);
      return true;
    }
    for (const absl::string_view type : {"Switch", "Ca", "Rt"}) {
      absl::string_view rest = line;
      if (absl::ConsumePrefix(&rest, type) && !rest.empty() && absl::ascii_isspace(rest[0]))
        return ReadDevice(rest);
    }
    return std::any_of(kIgnoredLines.begin(), kIgnoredLines.end(),
                       [&](absl::string_view known) { return absl::StartsWith(line, known); });
  }

  // `65 "S-GUID" # "MF0;.." enhanced port 0 ..`
  bool ReadDevice(absl::string_view line) {
    const size_t quote = line.find('"');
    if (quote == absl::string_view::npos) return false;
    line.remove_prefix(quote);
    if (!TakeDevice(&line, &device_)) return false;
    const std::string description = Description(line);
    if (device_.type == 'S') fabric_.SetTitle(device_.guid, description);
    if (device_.type == 'H') {
      adapters_[device_.guid].description = description;
      adapters_[device_.guid].guids.insert(device_.guid);
    }
    return true;
  }

  // Most cables are listed at both of their ends.
  void AddCable(const Cable& cable) {
    const Device& peer = cable.peer;
    if (device_.type == 'S' && peer.type == 'S') {
      fabric_.AddCable(device_.guid, peer.guid, cable.gbps);
    } else if (device_.type == 'S' && peer.type == 'H') {
      Adapter& adapter = adapters_[peer.guid];
      if (adapter.description.empty()) adapter.description = cable.peer_description;
      AddPort(&adapter, {peer.guid, cable.peer_guid}, device_.guid, cable.gbps);
    } else if (device_.type == 'H' && peer.type == 'S') {
      AddPort(&adapters_[device_.guid], {device_.guid, cable.own_guid}, peer.guid, cable.gbps);
      if (!cable.peer_description.empty()) fabric_.SetTitle(peer.guid, cable.peer_description);
    }
  }
  static void AddPort(Adapter* adapter, const std::vector<std::string>& guids,
                      const std::string& leaf_switch, int64_t gbps) {
    for (const std::string& guid : guids) {
      if (!guid.empty()) adapter->guids.insert(guid);
    }
    int64_t& speed = adapter->leaf_speeds[leaf_switch];
    speed = std::max(speed, gbps);
  }

  void AddAdapter(const Adapter& adapter) {
    AdapterOwner owner = OwnerFromDescription(adapter.description);
    for (const std::string& guid : adapter.guids) {
      const auto found = owners_.find(guid);
      if (found != owners_.end()) owner = {AdapterOwner::Kind::kHost, found->second};
    }
    const bool counts = hosts_.Counts(owner);
    for (const auto& [leaf, gbps] : adapter.leaf_speeds) {
      if (counts) fabric_.AddHost(owner.node, leaf, gbps);
      if (!counts && hosts_.IsForeign(owner)) fabric_.AddForeignHost(leaf);
    }
  }

  HostFilter hosts_;
  const PortOwners& owners_;
  Fabric fabric_;
  std::map<std::string, Adapter> adapters_;  // by GUID
  Device device_;                            // whose ports are read now
};

}  // namespace

absl::StatusOr<Imported> ReadIbnetdiscover(const ImportInput& input) {
  const auto owners = ReadPortOwners(input.ports);
  if (!owners.ok()) return owners.status();
  IbnetReader reader(input, *owners);
  std::vector<std::string> problems;
  for (const SourceText& text : input.texts) {
    const absl::Status status = reader.ReadFile(text);
    if (!status.ok()) problems.emplace_back(status.message());
  }
  if (!problems.empty()) return absl::InvalidArgumentError(absl::StrJoin(problems, "\n"));
  return reader.Finish();
}

}  // namespace berth
