#include "clients/cli/copy_place.h"

#include "absl/strings/str_cat.h"
#include "clients/cli/resource_names.h"

namespace berth {

absl::StatusOr<std::optional<CopyPlace>> ParseCopyPlace(const std::string& text) {
  const size_t colon = text.find(':');
  if (text.empty()) return absl::InvalidArgumentError("a path is empty");
  if (colon == std::string::npos || text[0] == '.' || text[0] == '/') return std::nullopt;
  CopyPlace place;
  place.job = text.substr(0, colon);
  place.path = text.substr(colon + 1);
  if (place.job.empty() || place.path.empty())
    return absl::InvalidArgumentError(absl::StrCat("expected JOB:PATH, got \"", text, "\""));
  if (place.job.rfind("job/", 0) != 0) place.job = "job/" + place.job;
  const std::string wrong = JobOrTaskName()(place.job);
  if (!wrong.empty()) return absl::InvalidArgumentError(wrong);
  SplitTask(&place.job, &place.task);
  std::string path = place.path;
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  const size_t slash = path.rfind('/');
  place.leaf = slash == std::string::npos ? path : path.substr(slash + 1);
  place.directory = slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
  if (place.leaf == "." || place.leaf == "..") place.leaf.clear();
  return place;
}

}  // namespace berth
