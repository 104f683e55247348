#include "clients/slurm/job_label.h"

#include "absl/strings/str_cat.h"

namespace berth {

absl::Status SetTextLabel(v1::JobSpec* spec, const std::string& key, const std::string& text) {
  if (text.size() > kMostLabelText) {
    return absl::InvalidArgumentError(
        absl::StrCat("at most ", kMostLabelText, " bytes, has ", text.size()));
  }
  for (const auto& [label, value] : TextLabels(key, text)) (*spec->mutable_labels())[label] = value;
  return absl::OkStatus();
}

std::string TextLabel(const v1::JobSpec& spec, const std::string& key) {
  return TextInLabels(key, [&](const std::string& label) {
    const auto found = spec.labels().find(label);
    return found == spec.labels().end() ? nullptr : &found->second;
  });
}

}  // namespace berth
