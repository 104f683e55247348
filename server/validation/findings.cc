#include "server/validation/findings.h"

#include "absl/strings/str_cat.h"

namespace berth {

std::string FieldPath::ToString() const {
  if (parent_ == nullptr) return "";
  std::string path = parent_->ToString();
  absl::StrAppend(&path, path.empty() ? "" : ".", field_);
  if (index_ >= 0) absl::StrAppend(&path, "[", index_, "]");
  if (has_key_) absl::StrAppend(&path, "[\"", key_, "\"]");
  return path;
}

void Findings::Unbuilt(const FieldPath& path, absl::string_view feature) {
  Add(unbuilt_, path, absl::StrCat(feature, " is not built yet"));
}

absl::Status Findings::ToStatus() const {
  if (ok()) return absl::OkStatus();
  std::vector<Violation> all = invalid_;
  all.insert(all.end(), refused_.begin(), refused_.end());
  all.insert(all.end(), unbuilt_.begin(), unbuilt_.end());
  const absl::StatusCode code = !invalid_.empty()   ? absl::StatusCode::kInvalidArgument
                                : !refused_.empty() ? absl::StatusCode::kFailedPrecondition
                                                    : absl::StatusCode::kUnimplemented;
  return ViolationsError(code, all);
}

}  // namespace berth
