#include "server/validation/hello.h"

#include <set>
#include <string>
#include <tuple>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "core/model/device_topology.h"
#include "core/model/resources.h"
#include "server/validation/findings.h"
#include "server/validation/lifecycle.h"
#include "server/validation/one_line.h"
#include "server/validation/resources.h"
#include "server/validation/text.h"
#include "server/validation/values.h"

namespace berth {
namespace {

void CheckText(const FieldPath& path, absl::string_view text, bool required, size_t most,
               Findings& findings) {
  if (required && text.empty()) findings.Invalid(path, "is missing");
  if (text.size() > most) findings.Invalid(path, absl::StrCat("has more than ", most, " bytes"));
  CheckOneLine(path, text, findings);
}

void CheckDevice(const FieldPath& path, const v1::Device& device, Findings& findings) {
  const FieldPath kind(path, "kind"), uuid(path, "uuid"), model(path, "model");
  const FieldPath memory(path, "memory_bytes"), numa(path, "numa_node"), pci(path, "pci_bus_id");
  if (!IsResourceName(device.kind())) {
    findings.Invalid(kind, absl::StrCat(Quoted(device.kind()), " is not a valid device kind"));
  }
  CheckText(uuid, device.uuid(), true, kMaxAgentTextBytes, findings);
  CheckText(model, device.model(), false, kMaxAgentTextBytes, findings);
  CheckText(pci, device.pci_bus_id(), false, kMaxAgentTextBytes, findings);
  CheckRange(memory, device.memory_bytes(), 0, kMaxAmount, findings);
  CheckRange(numa, device.numa_node(), -1, 1 << 16, findings);
  CheckRange({path, "max_tasks"}, device.max_tasks(), 0, kMaxSharers, findings);
  if (device.oversubscription() != 0) {
    CheckRange({path, "oversubscription"}, device.oversubscription(), 100, kMaxOversubscription,
               findings);
  }
  if (!ComputeCapabilityFrom(device.compute_capability()).has_value()) {
    findings.Invalid({path, "compute_capability"}, "must be MAJOR.MINOR, such as 9.0");
  }
}

void CheckDevices(const FieldPath& path, const v1::NodeInventory& inventory, Findings& findings) {
  const FieldPath all(path, "devices");
  if (inventory.devices_size() > static_cast<int>(kMaxDevicesPerNode)) {
    findings.Invalid(all, absl::StrCat(inventory.devices_size(), " devices; at most ",
                                       kMaxDevicesPerNode, " per node"));
    return;
  }
  absl::flat_hash_set<std::string> uuids;
  for (int i = 0; i < inventory.devices_size(); ++i) {
    const FieldPath one(path, "devices", i);
    CheckDevice(one, inventory.devices(i), findings);
    const FieldPath uuid(one, "uuid");
    if (!uuids.insert(inventory.devices(i).uuid()).second) {
      findings.Invalid(uuid, absl::StrCat(Quoted(inventory.devices(i).uuid()),
                                          " is also the id of an earlier device of this node"));
    }
  }
}

void CheckLink(const FieldPath& path, const v1::DeviceLink& link, Findings& findings) {
  const FieldPath of_class(path, "link"), count(path, "count"), speed(path, "mb_per_s");
  CheckEnum(of_class, link.link(), findings);
  CheckRange(count, link.count(), 0, kMaxLinkCount, findings);
  CheckRange(speed, link.mb_per_s(), 0, kMaxLinkMbPerS, findings);
}

void CheckNumaNodes(const FieldPath& path, const v1::DeviceTopology& topology, Findings& findings) {
  if (topology.numa_nodes_size() > static_cast<int>(kMaxNumaNodes)) {
    const FieldPath all(path, "numa_nodes");
    return findings.Invalid(all, absl::StrCat("more than ", kMaxNumaNodes, " NUMA nodes"));
  }
  int32_t before = -1;
  for (int i = 0; i < topology.numa_nodes_size(); ++i) {
    const v1::NumaNode& numa = topology.numa_nodes(i);
    const FieldPath one(path, "numa_nodes", i);
    const FieldPath id(one, "id"), package(one, "package"), cpus(one, "cpus");
    const FieldPath memory(one, "memory_bytes");
    CheckRange(id, numa.id(), 0, 1 << 16, findings);
    if (numa.id() <= before) findings.Invalid(id, "must be greater than the previous id");
    before = numa.id();
    CheckRange(package, numa.package(), -1, 1 << 16, findings);
    CheckRange(memory, numa.memory_bytes(), 0, kMaxAmount, findings);
    const bool listed = numa.cpus().size() <= kMaxCpuListBytes && CountCpus(numa.cpus()) >= 0;
    if (!listed) findings.Invalid(cpus, "is not a list of CPUs such as \"0-15,32-47\"");
  }
}

void CheckReportedTopology(const FieldPath& inventory_path, const v1::NodeInventory& inventory,
                           Findings& findings) {
  const v1::DeviceTopology& topology = inventory.topology();
  const FieldPath path(inventory_path, "topology"), links(path, "links"), between(path, "between");
  if (topology.links_size() > static_cast<int>(kMaxDeviceLinks)) {
    return findings.Invalid(links, absl::StrCat("more than ", kMaxDeviceLinks, " links"));
  }
  for (int i = 0; i < topology.links_size(); ++i) {
    CheckLink(FieldPath(path, "links", i), topology.links(i), findings);
  }
  CheckNumaNodes(path, topology, findings);
  const size_t pairs = PairsOf(static_cast<size_t>(inventory.devices_size()));
  if (!topology.between().empty() && topology.between().size() != pairs) {
    findings.Invalid(between,
                     absl::StrCat("has ", topology.between().size(), " bytes; the ",
                                  inventory.devices_size(), " devices make ", pairs, " pairs"));
  }
  for (const char code : topology.between()) {
    if (static_cast<uint8_t>(code) <= topology.links_size()) continue;
    return findings.Invalid(between, absl::StrCat("names link ", static_cast<uint8_t>(code), " of ",
                                                  topology.links_size()));
  }
}

// Device kinds and extended resources share one namespace.
void CheckExtended(const FieldPath& path, const v1::NodeInventory& inventory, Findings& findings) {
  std::set<std::string> kinds;
  for (const v1::Device& device : inventory.devices()) kinds.insert(device.kind());
  for (const auto& [name, amount] : inventory.extended()) {
    const FieldPath one(path, "extended", name);
    if (!IsResourceName(name)) findings.Invalid(one, "is not a valid resource name");
    if (!kinds.insert(name).second) findings.Invalid(one, "is also a device kind");
    CheckRange(one, amount, 0, kMaxAmount / kWhole, findings);
  }
  if (kinds.size() > static_cast<size_t>(kMaxNamedKinds)) {
    findings.Invalid(path, absl::StrCat(kinds.size(), " kinds of devices and extended resources; ",
                                        "at most ", kMaxNamedKinds));
  }
}

void CheckTaints(const FieldPath& path, const v1::NodeInventory& inventory, uint32_t store_format,
                 Findings& findings) {
  const FieldPath all(path, "taints");
  if (inventory.taints_size() > kMaxTaints) {
    findings.Invalid(all, absl::StrCat("more than ", kMaxTaints, " taints"));
  }
  for (int i = 0; i < inventory.taints_size(); ++i) {
    const v1::Taint& taint = inventory.taints(i);
    const FieldPath one(path, "taints", i);
    const FieldPath key(one, "key"), value(one, "value"), effect(one, "effect");
    if (!IsLabelKey(taint.key())) findings.Invalid(key, "is not a valid label key");
    if (!IsLabelValue(taint.value())) findings.Invalid(value, "is not a valid label value");
    CheckEnum(effect, taint.effect(), findings);
    if (taint.effect() == v1::Taint::NO_EXECUTE && store_format < kFormatOfProgress) {
      findings.Refused(effect, NeedsFormat(store_format));
    }
  }
}

void CheckInventory(const FieldPath& path, const v1::NodeInventory& inventory,
                    uint32_t store_format, Findings& findings) {
  const FieldPath cpu(path, "cpu_millis"), memory(path, "memory_bytes"), address(path, "address");
  const FieldPath os(path, "os"), architecture(path, "architecture");
  CheckRange(cpu, inventory.cpu_millis(), 0, kMaxAmount, findings);
  CheckRange(memory, inventory.memory_bytes(), 0, kMaxAmount, findings);
  CheckRange({path, "scratch_bytes"}, inventory.scratch_bytes(), 0, kMaxAmount, findings);
  CheckRange({path, "max_tasks"}, inventory.max_tasks(), 0, kMaxTasksInHello, findings);
  CheckText(address, inventory.address(), false, kMaxDnsNameBytes, findings);
  CheckText(os, inventory.os(), false, kMaxAgentTextBytes, findings);
  CheckText(architecture, inventory.architecture(), false, kMaxAgentTextBytes, findings);
  CheckDevices(path, inventory, findings);
  CheckReportedTopology(path, inventory, findings);
  CheckExtended(path, inventory, findings);
  CheckLabels(path, "labels", inventory.labels(), findings);
  CheckTaints(path, inventory, store_format, findings);
}

void CheckTasks(const FieldPath& root, const v1::Hello& hello, Findings& findings) {
  const FieldPath all(root, "tasks");
  if (hello.tasks_size() > kMaxTasksInHello) {
    findings.Invalid(all, absl::StrCat("more than ", kMaxTasksInHello, " tasks"));
    return;
  }
  std::set<std::tuple<uint64_t, uint64_t, uint32_t, uint32_t>> keys;
  for (int i = 0; i < hello.tasks_size(); ++i) {
    const v1::TaskReport& report = hello.tasks(i);
    const FieldPath one(root, "tasks", i);
    const FieldPath state(one, "state"), key(one, "key");
    CheckEnum(state, report.state(), findings);
    if (report.state() == v1::TaskReport::STATE_UNSPECIFIED) findings.Invalid(state, "is missing");
    const v1::TaskKey& task = report.key();
    if (!keys.emplace(task.incarnation(), task.job_uid(), task.task(), task.attempt()).second) {
      findings.Invalid(key, "is also the key of an earlier task");
    }
  }
}

}  // namespace

absl::Status ValidateHello(const v1::Hello& hello, uint32_t store_format) {
  Findings findings;
  const FieldPath root;
  const FieldPath node(root, "node"), agent_id(root, "agent_id"), boot_id(root, "boot_id");
  const FieldPath version(root, "agent_version"), inventory(root, "inventory");
  CheckDnsName(node, hello.node(), findings);
  CheckText(agent_id, hello.agent_id(), true, kMaxAgentTextBytes, findings);
  CheckText(boot_id, hello.boot_id(), true, kMaxAgentTextBytes, findings);
  CheckText(version, hello.agent_version(), false, kMaxAgentTextBytes, findings);
  CheckText({root, "cluster_id"}, hello.cluster_id(), false, kMaxAgentTextBytes, findings);
  CheckInventory(inventory, hello.inventory(), store_format, findings);
  CheckTasks(root, hello, findings);
  return findings.ok() ? absl::OkStatus() : findings.ToStatus();
}

}  // namespace berth
