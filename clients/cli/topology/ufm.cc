#include "clients/cli/topology/ufm.h"

#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "clients/cli/topology/fabric.h"
#include "clients/cli/topology/hosts.h"
#include "clients/cli/topology/yaml_fields.h"

namespace berth {
namespace {

// UFM writes null, "" or "N/A" for missing values.
std::string Word(const YamlNode& row, absl::string_view key) {
  const YamlNode* node = row.Find(key);
  const bool known = node != nullptr && node->is_scalar() && node->text != "N/A";
  return known ? node->text : "";
}

class UfmReader {
 public:
  UfmReader(const ImportInput& input, const PortOwners& owners) : hosts_(input), owners_(owners) {}

  void ReadDocument(const YamlNode& document, YamlFields& fields) {
    if (!document.is_list()) {
      fields.Error(document, "expected the list of ports of /ufmRest/resources/ports");
      return;
    }
    for (const YamlNode& row : document.items) ReadRow(row, fields);
  }

  absl::StatusOr<Imported> Finish() {
    for (const auto& [from, to, gbps] : cables_) {
      if (switches_.count(to) > 0) fabric_.AddCable(from, to, gbps);
    }
    if (fabric_.switches() > kMaxSwitches) {
      return absl::InvalidArgumentError(
          absl::StrCat("more than the ", kMaxSwitches, " switches allowed"));
    }
    Imported imported;
    fabric_.AddGroups(/*prefix_ids=*/false, &imported);
    hosts_.AddWarnings("port", &imported.warnings);
    return imported;
  }

 private:
  void ReadRow(const YamlNode& row, YamlFields& fields) {
    if (!row.is_map()) {
      fields.Error(row, "expected a port");
      return;
    }
    const std::string description = fields.Text(row, "description", true);
    const bool computer = absl::StrContains(description, "Computer");
    if (!computer && !absl::StrContains(description, "Switch")) return;
    const std::string system = fields.Text(row, "system_name", true);
    const std::string peer = Word(row, "peer_node_name");
    if (system.empty() || peer.empty()) return;
    const int64_t gbps =
        LinkGbps(absl::StrCat(Word(row, "active_width"), Word(row, "active_speed")));
    if (!computer) {
      switches_.insert(system);
      cables_.emplace_back(system, peer, gbps);
      return;
    }
    switches_.insert(peer);
    const AdapterOwner owner = OwnerOf(row, system);
    if (hosts_.Counts(owner)) {
      fabric_.AddHost(owner.node, peer, gbps);
    } else if (hosts_.IsForeign(owner)) {
      fabric_.AddForeignHost(peer);
    }
  }

  AdapterOwner OwnerOf(const YamlNode& row, const std::string& system) const {
    const auto found = owners_.find(GuidFrom(Word(row, "guid")));
    if (found != owners_.end()) return {AdapterOwner::Kind::kHost, found->second};
    const AdapterOwner owner = OwnerFromDescription(Word(row, "node_description"));
    if (owner.kind == AdapterOwner::Kind::kAggregation) return owner;
    return OwnerFromDescription(system);
  }

  HostFilter hosts_;
  const PortOwners& owners_;
  Fabric fabric_;
  std::set<std::string> switches_;
  std::vector<std::tuple<std::string, std::string, int64_t>> cables_;  // from switches; to anything
};

}  // namespace

absl::StatusOr<Imported> ReadUfmPorts(const ImportInput& input) {
  const auto owners = ReadPortOwners(input.ports);
  if (!owners.ok()) return owners.status();
  UfmReader reader(input, *owners);
  const absl::Status status = ForEachYamlDocument(
      input.texts,
      [&](const YamlNode& document, YamlFields& fields) { reader.ReadDocument(document, fields); });
  return status.ok() ? reader.Finish() : status;
}

}  // namespace berth
