#include "server/validation/drain.h"

#include "absl/strings/str_cat.h"
#include "core/model/resources.h"
#include "server/validation/findings.h"
#include "server/validation/lifecycle.h"
#include "server/validation/values.h"
#include "storage/store.h"

namespace berth {
namespace {

using v1::NodeDrain;

void CheckDrainDeadline(const FieldPath& root, const v1::DrainNodeRequest& request,
                        Findings& findings) {
  if (!request.has_deadline()) return;
  const FieldPath path(root, "deadline");
  CheckDuration(path, request.deadline(), absl::Nanoseconds(1), kMaxDrainDeadline, findings);
  if (request.mode() == NodeDrain::NOW || request.mode() == NodeDrain::MODE_UNSPECIFIED) {
    findings.Invalid(path, "needs another mode: with NOW, tasks are stopped at once");
  }
}

void CheckDrainDevices(const FieldPath& root, const v1::DrainNodeRequest& request,
                       Findings& findings) {
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

void CheckDrainFormat(const FieldPath& root, const v1::DrainNodeRequest& request,
                      uint32_t store_format, Findings& findings) {
  if (store_format >= kFormatOfProgress) return;
  const bool waits = request.mode() > NodeDrain::NOW;
  if (!waits && request.devices_size() == 0) return;
  findings.Refused({root, waits ? "mode" : "devices"},
                   absl::StrCat("needs store format ", kFormatOfProgress, ", and the store has ",
                                store_format, ": run `berth cluster finalize` first"));
}

}  // namespace

absl::Status ValidateDrain(const v1::DrainNodeRequest& request, uint32_t store_format) {
  Findings findings;
  const FieldPath root;
  CheckEnum({root, "mode"}, request.mode(), findings);
  CheckDrainDeadline(root, request, findings);
  CheckDrainDevices(root, request, findings);
  CheckWaitForJobs(root, request, findings);
  CheckDrainFormat(root, request, store_format, findings);
  return findings.ToStatus();
}

}  // namespace berth
