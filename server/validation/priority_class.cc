#include "server/validation/priority_class.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "core/model/priority_classes.h"
#include "server/validation/findings.h"
#include "server/validation/job.h"
#include "server/validation/one_line.h"
#include "server/validation/text.h"
#include "server/validation/values.h"

namespace berth {
namespace {

static_assert(PriorityClasses::kMaxValue == kMaxPriority);

constexpr absl::string_view kClassFields[] = {"value", "preemption_policy", "global_default",
                                              "description"};

void CheckClassFields(const FieldPath& path, const v1::PriorityClass& one, Findings& findings) {
  CheckDnsLabel({path, "name"}, one.name(), findings);
  CheckRange({path, "value"}, one.value(), -kMaxPriority, kMaxPriority, findings);
  CheckEnum({path, "preemption_policy"}, one.preemption_policy(), findings);
  if (one.description().size() > PriorityClasses::kMaxDescription) {
    findings.Invalid({path, "description"},
                     absl::StrCat("at most ", PriorityClasses::kMaxDescription, " bytes, has ",
                                  one.description().size()));
  } else {
    CheckOneLine({path, "description"}, one.description(), findings);
  }
}

}  // namespace

absl::Status ValidateCreatePriorityClass(const v1::CreatePriorityClassRequest& request) {
  Findings findings;
  const FieldPath root;
  const FieldPath path(root, "priority_class");
  CheckRequestId(request.request_id(), findings);
  CheckClassFields(path, request.priority_class(), findings);
  if (!request.priority_class().etag().empty()) {
    findings.Invalid({path, "etag"}, "is set by the server; leave it out");
  }
  return findings.ToStatus();
}

absl::Status ValidateUpdatePriorityClass(const v1::UpdatePriorityClassRequest& request) {
  Findings findings;
  const FieldPath root;
  const auto& paths = request.update_mask().paths();
  if (paths.empty()) {
    findings.Invalid({root, "update_mask"}, "required: the fields to change");
  }
  for (const std::string& path : paths) {
    if (std::find(std::begin(kClassFields), std::end(kClassFields), path) !=
        std::end(kClassFields)) {
      continue;
    }
    findings.Invalid({root, "update_mask"},
                     absl::StrCat(Quoted(path),
                                  " is no field of a priority class that may change: "
                                  "value, preemption_policy, global_default and "
                                  "description may"));
  }
  CheckClassFields({root, "priority_class"}, request.priority_class(), findings);
  return findings.ToStatus();
}

}  // namespace berth
