#include "server/validation/resources.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/devices/device_layout.h"
#include "server/convert/values.h"
#include "server/validation/text.h"
#include "server/validation/values.h"

namespace berth {
namespace {

using google::protobuf::RepeatedPtrField;

constexpr int kMaxNames = 1024;  // models or uuids of one device request
constexpr size_t kMaxNameBytes = 128;
constexpr int64_t kMaxBandwidthGbps = 1'000'000;
constexpr absl::string_view kResourceNameRule =
    "must be a resource name: a label key other than \"cpu\", \"memory\" and \"scratch\"";

// Adds tasks * amount; both are >= 0 and checked, but may be large.
void AddTotal(absl::string_view name, int64_t amount, int64_t tasks, ResourceTotals& totals) {
  if (amount <= 0 || tasks <= 0) return;
  int64_t& total = totals[name];
  const bool fits = amount <= kMaxTotal / tasks && total <= kMaxTotal - amount * tasks;
  total = fits ? total + amount * tasks : kMaxTotal + 1;
}

void CheckNames(const FieldPath& parent, absl::string_view field,
                const RepeatedPtrField<std::string>& names, Findings& findings) {
  if (names.size() > kMaxNames) {
    findings.Invalid(FieldPath(parent, field),
                     absl::StrCat("at most ", kMaxNames, " entries, has ", names.size()));
    return;
  }
  for (int i = 0; i < names.size(); ++i) {
    if (!names[i].empty() && names[i].size() <= kMaxNameBytes) continue;
    findings.Invalid(FieldPath(parent, field, i),
                     absl::StrCat("must be 1..", kMaxNameBytes, " bytes, is ", names[i].size()));
  }
}

// In steps of 0.001.
bool IsInSteps(double value) {
  const double thousandths = value * kWhole;
  return std::isfinite(thousandths) && std::abs(thousandths - std::round(thousandths)) < 1e-6;
}

void CheckShare(const FieldPath& path, const v1::DeviceRequest& device, Findings& findings) {
  if (device.oversubscribe() && (device.share() == 0 && device.cores() == 0)) {
    findings.Invalid({path, "oversubscribe"},
                     RequestsByMemory(device)
                         ? "memory is never oversubscribed: request share or cores"
                         : "only shares can be oversubscribed");
  }
  if (!RequestsShare(device)) {
    return CheckRange({path, "count"}, device.count(), 1, kMaxDevicesPerNode, findings);
  }
  if (device.share() != 0 && device.cores() != 0) {
    findings.Invalid({path, "cores"}, "set either share or cores, not both");
  }
  const double thousandths = std::round(device.share() * kWhole);
  const bool is_part = thousandths >= 1 && thousandths < kWhole && IsInSteps(device.share());
  if (device.share() != 0 && !is_part) {
    findings.Invalid({path, "share"}, "must be 0.001..0.999 in steps of 0.001");
  }
  if (device.kind() == kNicKind) findings.Invalid({path, "share"}, "NICs cannot be shared");
  if (device.cores() != 0) CheckRange({path, "cores"}, device.cores(), 1, 99, findings);
  if (device.count() > 1 || device.count() < 0) {
    findings.Invalid({path, "count"}, "must be 0 or 1: a share is part of one device");
  }
}

// Minimums for the links between the requested devices.
void CheckLinks(const FieldPath& path, const v1::DeviceRequest& device, Findings& findings) {
  const FieldPath link(path, "min_link"), bandwidth(path, "min_bandwidth_gbps");
  CheckEnum(link, device.min_link(), findings);
  CheckRange(bandwidth, device.min_bandwidth_gbps(), 0, kMaxBandwidthGbps, findings);
  const auto refuse = [&](absl::string_view why) {
    if (device.min_link() != 0) findings.Invalid(link, std::string(why));
    if (device.min_bandwidth_gbps() != 0) findings.Invalid(bandwidth, std::string(why));
  };
  if (device.kind() == kNicKind) return refuse("links between NICs are unknown");
  if (device.count() <= 1) refuse("a single device has no links to others of its set");
}

// Short for {kind: mig, model: [PROFILE]}.
void CheckMig(const FieldPath& path, const v1::DeviceRequest& device, Findings& findings) {
  if (device.mig().empty()) return;
  const FieldPath mig(path, "mig");
  if (device.mig().size() > kMaxNameBytes) findings.Invalid(mig, "is too long for a profile");
  if (device.kind() != "gpu") findings.Invalid(mig, "requires kind gpu");
  if (device.model_size() > 0) findings.Invalid(mig, "set either a profile or models, not both");
  if (RequestsShare(device)) findings.Invalid(mig, "set either a profile or a share, not both");
}

// The kind of the requested devices.
absl::string_view RequestedKind(const v1::DeviceRequest& device) {
  return device.mig().empty() ? absl::string_view(device.kind()) : kMigKind;
}

void CheckDeviceRequest(const FieldPath& path, const v1::DeviceRequest& device,
                        Findings& findings) {
  if (!IsResourceName(device.kind())) {
    findings.Invalid({path, "kind"},
                     absl::StrCat(kResourceNameRule, ", is ", Quoted(device.kind())));
  }
  CheckShare(path, device, findings);
  CheckRange({path, "memory_bytes"}, device.memory_bytes(), 0, kMaxAmount, findings);
  if (!ComputeCapabilityFrom(device.min_compute_capability()).has_value()) {
    findings.Invalid({path, "min_compute_capability"},
                     absl::StrCat("must be MAJOR.MINOR, such as 8.0, is ",
                                  Quoted(device.min_compute_capability())));
  }
  CheckNames(path, "model", device.model(), findings);
  CheckNames(path, "deny_models", device.deny_models(), findings);
  CheckNames(path, "allow_uuids", device.allow_uuids(), findings);
  CheckNames(path, "deny_uuids", device.deny_uuids(), findings);
  CheckLinks(path, device, findings);
  CheckMig(path, device, findings);
}

void CheckDeviceRequests(const FieldPath& path, const v1::ResourceRequest& request, int64_t tasks,
                         ResourceTotals& totals, Findings& findings) {
  const auto& devices = request.devices();
  if (devices.size() > kMaxNamedKinds) {
    findings.Invalid({path, "devices"},
                     absl::StrCat("at most ", kMaxNamedKinds, " kinds, has ", devices.size()));
    return;
  }
  bool any_share = false;
  for (int i = 0; i < devices.size(); ++i) {
    const FieldPath device_path(path, "devices", i);
    CheckDeviceRequest(device_path, devices[i], findings);
    AddTotal(RequestedKind(devices[i]),
             RequestsShare(devices[i]) ? kWhole : devices[i].count() * kWhole, tasks, totals);
    if (RequestsShare(devices[i]) && std::exchange(any_share, true)) {
      findings.Invalid({device_path, "share"}, "a task can have a share of at most one device");
    }
    for (int j = 0; j < i; ++j) {
      if (RequestedKind(devices[j]) != RequestedKind(devices[i])) continue;
      findings.Invalid({device_path, "kind"},
                       absl::StrCat("at most one request per kind; devices[", j, "] also requests ",
                                    Quoted(RequestedKind(devices[i]))));
    }
  }
}

void CheckExtendedRequests(const FieldPath& path, const v1::ResourceRequest& request, int64_t tasks,
                           ResourceTotals& totals, Findings& findings) {
  for (const auto& [name, amount] : request.extended()) {
    const FieldPath entry(path, "extended", name);
    if (!IsResourceName(name)) findings.Invalid(entry, std::string(kResourceNameRule));
    CheckRange(entry, amount, 1, kMaxAmount / kWhole, findings);
    AddTotal(name, amount * kWhole, tasks, totals);
    for (const auto& device : request.devices()) {
      if (RequestedKind(device) == name)
        findings.Invalid(entry, "is already requested as a device kind");
    }
  }
}

}  // namespace

bool IsResourceName(absl::string_view name) { return !IsFixedKind(name) && IsLabelKey(name); }

void CheckRequest(const FieldPath& path, const v1::ResourceRequest& request, int64_t tasks,
                  ResourceTotals& totals, Findings& findings) {
  CheckRange({path, "cpu_millis"}, request.cpu_millis(), 0, kMaxAmount, findings);
  CheckRange({path, "memory_bytes"}, request.memory_bytes(), 0, kMaxAmount, findings);
  AddTotal("cpu", request.cpu_millis(), tasks, totals);
  CheckRange({path, "scratch_bytes"}, request.scratch_bytes(), 0, kMaxAmount, findings);
  AddTotal("memory", request.memory_bytes(), tasks, totals);
  AddTotal(kScratchName, request.scratch_bytes(), tasks, totals);
  CheckDeviceRequests(path, request, tasks, totals, findings);
  CheckExtendedRequests(path, request, tasks, totals, findings);
}

void CheckFormat(const FieldPath& path, const v1::ResourceRequest& request, uint32_t store_format,
                 Findings& findings) {
  if (store_format >= kFormatOfParts) return;
  const auto refuse = [&](const FieldPath& field) {
    findings.Refused(field,
                     absl::StrCat("needs store format ", kFormatOfParts, ", and the store has ",
                                  store_format, ": run `berth cluster finalize` first"));
  };
  if (request.scratch_bytes() != 0) refuse({path, "scratch_bytes"});
  for (int i = 0; i < request.devices_size(); ++i) {
    const v1::DeviceRequest& device = request.devices(i);
    const FieldPath device_path(path, "devices", i);
    if (RequestsByMemory(device)) refuse({device_path, "memory_bytes"});
    if (device.oversubscribe()) refuse({device_path, "oversubscribe"});
    if (!device.min_compute_capability().empty()) refuse({device_path, "min_compute_capability"});
  }
}

void CheckTotals(const FieldPath& path, const ResourceTotals& totals, Findings& findings) {
  int named = 0;
  for (const auto& [name, total] : totals) {
    named += IsFixedKind(name) ? 0 : 1;
    if (total <= kMaxTotal) continue;
    findings.Invalid(path, absl::StrCat("all tasks together request more ", name, " than ",
                                        kMaxTotal, ", the maximum for one job"));
  }
  if (named > kMaxNamedKinds) {
    findings.Invalid(path, absl::StrCat("at most ", kMaxNamedKinds,
                                        " kinds of devices and extended resources, has ", named));
  }
}

void CheckResourceList(const FieldPath& path, const v1::ResourceList& list, Findings& findings) {
  CheckRange({path, "cpu_millis"}, list.cpu_millis(), 0, kMaxAmount, findings);
  CheckRange({path, "memory_bytes"}, list.memory_bytes(), 0, kMaxAmount, findings);
  CheckRange({path, "scratch_bytes"}, list.scratch_bytes(), 0, kMaxAmount, findings);
  if (list.counts().size() > kMaxNamedKinds) {
    findings.Invalid({path, "counts"}, absl::StrCat("at most ", kMaxNamedKinds, " kinds, has ",
                                                    list.counts().size()));
  }
  for (const auto& [name, amount] : list.counts()) {
    const FieldPath entry(path, "counts", name);
    if (!IsResourceName(name)) findings.Invalid(entry, std::string(kResourceNameRule));
    if (IsInSteps(amount) && amount >= 0 && amount <= InUnits(kMaxAmount, kWhole)) continue;
    findings.Invalid(
        entry, absl::StrCat("must be 0..", kMaxAmount / kWhole, " in steps of 0.001, is ", amount));
  }
}

}  // namespace berth
