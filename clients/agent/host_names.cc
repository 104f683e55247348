#include "clients/agent/host_names.h"

#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "support/name_pattern.h"

namespace berth {
namespace {

// Of the task with this index in the job; "": it has no place yet. A single task starts without a
// Start.
std::string AddressOf(uint32_t task, uint32_t own, const v1::Start& start,
                      const EnvironmentContext& context) {
  if (task == own) return context.address;
  if (static_cast<int64_t>(task) >= start.task_nodes_size()) return "";
  const auto place = static_cast<int64_t>(start.task_nodes(static_cast<int>(task)));
  if (place == 0) return "";
  const auto node = static_cast<int>(place - 1);
  if (node == start.nodes_size()) return start.master_address();
  if (node > start.nodes_size()) return "";
  const bool addressed = node < start.node_addresses_size() && !start.node_addresses(node).empty();
  return addressed ? start.node_addresses(node) : start.nodes(node);
}

}  // namespace

std::string HostsText(const TaskId& id, const v1::TaskLaunch& launch, const v1::Start& start,
                      const EnvironmentContext& context) {
  std::map<uint32_t, std::string> names;  // by index of the task in the job
  for (const v1::HostNames& group : launch.host_names()) {
    for (const std::string& pattern : group.names()) {
      const auto expanded = ExpandNamePattern(pattern);  // checked by the server
      if (!expanded.ok()) continue;
      uint32_t task = group.first_task();
      for (const std::string& name : *expanded) absl::StrAppend(&names[task++], " ", name);
    }
  }
  std::string text;
  for (const auto& [task, all] : names) {
    const std::string address = AddressOf(task, id.task, start, context);
    if (!address.empty()) absl::StrAppend(&text, address, all, "\n");
  }
  return text;
}

}  // namespace berth
