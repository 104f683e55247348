#include "clients/agent/discover_command.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "clients/agent/device_inventory.h"
#include "clients/agent/discovery/probe.h"
#include "clients/agent/discovery/render.h"
#include "clients/agent/discovery/topo_matrix.h"
#include "support/text_file.h"

namespace berth {
namespace {

absl::StatusOr<std::string> Compare(const discovery::Machine& machine, const std::string& path) {
  const absl::StatusOr<std::string> text = ReadTextFile(path);
  if (!text.ok()) return text.status();
  const auto matrix = discovery::ParseTopoMatrix(*text);
  if (!matrix.ok())
    return absl::InvalidArgumentError(absl::StrCat(path, ": ", matrix.status().message()));
  const std::vector<std::string> differences = discovery::CompareWithTopo(machine, *matrix);
  if (!differences.empty())
    return absl::FailedPreconditionError(
        absl::StrCat("differs from ", path, ":\n", absl::StrJoin(differences, "\n")));
  return absl::StrCat("all ", matrix->devices.size(), " devices match ", path, "\n");
}

}  // namespace

absl::StatusOr<std::string> DiscoverText(const std::string& probe, const DiscoverFlags& flags,
                                         const config::v1::Discovery& config) {
  if (!flags.output.empty() && flags.output != "table" && flags.output != "json")
    return absl::InvalidArgumentError(
        absl::StrCat("-o ", flags.output, ": must be \"table\" or \"json\""));
  const auto machine = discovery::RunProbe(probe,
                                           {.from = flags.from,
                                            .topology_file = config.topology_file(),
                                            .nvml_library = config.nvml_library()},
                                           ProbeTimeout(config));
  if (!machine.ok()) return machine.status();
  if (!flags.compare.empty()) return Compare(*machine, flags.compare);
  return flags.output == "json" ? RenderJson(*machine) : RenderTable(*machine);
}

}  // namespace berth
