#include "server/validation/findings.h"

#include "absl/strings/str_cat.h"
#include "server/validation/text.h"

namespace berth {

std::string FieldPath::ToString() const {
  if (parent_ == nullptr) return "";
  std::string path = parent_->ToString();
  absl::StrAppend(&path, path.empty() ? "" : ".", field_);
  if (index_ >= 0) absl::StrAppend(&path, "[", index_, "]");
  if (has_key_) absl::StrAppend(&path, "[", Quoted(key_), "]");
  return path;
}

void Findings::Add(Gravity gravity, const FieldPath& path, std::string description) {
  if (++count_ <= kMax) found_[gravity].push_back({path.ToString(), std::move(description)});
}

void Findings::Unbuilt(const FieldPath& path, absl::string_view feature) {
  Add(kUnbuilt, path, absl::StrCat(feature, " is not built yet"));
}

absl::Status Findings::ToStatus() const {
  if (ok()) return absl::OkStatus();
  constexpr std::array<absl::StatusCode, kGravities> kCodes = {
      absl::StatusCode::kInvalidArgument, absl::StatusCode::kNotFound,
      absl::StatusCode::kFailedPrecondition, absl::StatusCode::kUnimplemented};
  std::vector<Violation> all;
  absl::StatusCode code = absl::StatusCode::kOk;
  for (size_t i = 0; i < kGravities; ++i) {
    if (all.empty() && !found_[i].empty()) code = kCodes[i];
    all.insert(all.end(), found_[i].begin(), found_[i].end());
  }
  return ViolationsError(code, all);
}

}  // namespace berth
