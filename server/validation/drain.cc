#include "server/validation/drain.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/convert/node.h"
#include "server/convert/values.h"
#include "server/validation/findings.h"
#include "server/validation/text.h"
#include "server/validation/values.h"
#include "storage/store.h"

namespace berth {
namespace {

using v1::NodeDrain;

constexpr size_t kNamedDevices = 16;  // in an error

void CheckDeadline(const FieldPath& root, const v1::DrainNodeRequest& request, Findings& findings) {
  if (!request.has_deadline()) return;
  const FieldPath path(root, "deadline");
  CheckDuration(path, request.deadline(), absl::Nanoseconds(1), kMaxDrainDeadline, findings);
  if (request.mode() == NodeDrain::NOW || request.mode() == NodeDrain::MODE_UNSPECIFIED) {
    findings.Invalid(path, "needs mode CHECKPOINT or WAIT: with NOW, tasks are stopped at once");
  }
}

void CheckDevices(const FieldPath& root, const v1::DrainNodeRequest& request, Findings& findings) {
  if (request.devices_size() > static_cast<int>(kMaxDevicesPerNode)) {
    findings.Invalid({root, "devices"}, absl::StrCat("at most ", kMaxDevicesPerNode, ", not ",
                                                     request.devices_size()));
  }
}

// A cordon waits for jobs without a drain.
void CheckWaitForJobs(const FieldPath& root, const v1::DrainNodeRequest& request,
                      Findings& findings) {
  if (!request.wait_for_jobs()) return;
  const bool more = request.mode() != NodeDrain::MODE_UNSPECIFIED || request.has_deadline() ||
                    request.devices_size() > 0;
  if (!more) return;
  findings.Invalid({root, "wait_for_jobs"},
                   "only cordons the node: it cannot be combined with mode, deadline or devices");
}

void CheckFormat(const FieldPath& root, const v1::DrainNodeRequest& request, uint32_t store_format,
                 Findings& findings) {
  if (store_format >= kFormatOfProgress) return;
  const bool waits = request.mode() > NodeDrain::NOW;
  if (!waits && request.devices_size() == 0) return;
  findings.Refused({root, waits ? "mode" : "devices"},
                   absl::StrCat("needs store format ", kFormatOfProgress, ", and the store has ",
                                store_format, ": run `berth cluster finalize` first"));
}

bool NamesDevice(const v1::DrainNodeRequest& request, const std::string& uuid) {
  const auto& names = request.devices();
  return std::find(names.begin(), names.end(), uuid) != names.end();
}

DeviceSet DevicesOf(const Node& node, const v1::DrainNodeRequest& request) {
  DeviceSet devices;
  for (size_t i = 0; i < node.spec.devices.size(); ++i) {
    if (NamesDevice(request, node.spec.devices[i].uuid)) devices.Add(i);
  }
  return devices;
}

absl::Status CheckKnown(const Node& node, const v1::DrainNodeRequest& request) {
  std::vector<std::string> unknown;
  for (const std::string& uuid : request.devices()) {
    const auto& all = node.spec.devices;
    const bool known = std::any_of(all.begin(), all.end(),
                                   [&](const Device& device) { return device.uuid == uuid; });
    if (!known && unknown.size() < kNamedDevices) unknown.push_back(Quoted(uuid));
  }
  if (unknown.empty()) return absl::OkStatus();
  Findings findings;
  const FieldPath root;
  findings.Invalid({root, "devices"}, absl::StrCat("node ", Quoted(node.spec.name), " has no ",
                                                   absl::StrJoin(unknown, ", ")));
  return findings.ToStatus();
}

Time DeadlineOf(const v1::DrainNodeRequest& request, const Drain& drain, Time now) {
  if (request.has_deadline()) return now + DurationFrom(request.deadline());
  return drain.mode == DrainMode::kCheckpoint ? drain.begin + kDefaultCheckpointDrain
                                              : Time(absl::InfiniteFuture());
}

}  // namespace

absl::Status ValidateDrain(const v1::DrainNodeRequest& request, uint32_t store_format) {
  Findings findings;
  const FieldPath root;
  CheckEnum({root, "mode"}, request.mode(), findings);
  if (request.mode() == NodeDrain::WHEN_PLACED) {
    findings.Unbuilt({root, "mode"}, "WHEN_PLACED, a drain that first finds other places,");
  }
  CheckDeadline(root, request, findings);
  CheckDevices(root, request, findings);
  CheckWaitForJobs(root, request, findings);
  CheckFormat(root, request, store_format, findings);
  return findings.ToStatus();
}

absl::StatusOr<Drain> DrainFor(const Node& node, const v1::DrainNodeRequest& request, Time now) {
  if (absl::Status status = CheckKnown(node, request); !status.ok()) return status;
  const NodeStatus& before = node.status;
  if (request.devices_size() > 0 && before.draining) {
    return absl::FailedPreconditionError(
        absl::StrCat("node ", Quoted(node.spec.name),
                     " is drained as a whole; uncordon it before you drain ", "devices only"));
  }
  Drain drain{.mode = DrainModeFrom(request.mode()), .begin = now};
  drain.devices = DevicesOf(node, request);
  const bool drains = before.draining || !before.drain.devices.Empty();
  if (drains && before.drain.mode == drain.mode && before.drain.devices == drain.devices) {
    drain.begin = before.drain.begin;
  }
  drain.deadline = DeadlineOf(request, drain, now);
  return drain;
}

}  // namespace berth
