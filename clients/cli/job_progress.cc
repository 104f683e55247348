#include "clients/cli/job_progress.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "clients/cli/human.h"

namespace berth {
namespace {

// "step 1200 (worker-3 is last), 420ms a step, 8 ready, 3 messages dropped: epoch 3 of 10"
std::string ProgressText(const v1::JobProgress& progress) {
  std::vector<std::string> parts;
  if (!progress.task().empty()) {
    parts.push_back(absl::StrCat("step ", progress.step(), " (", progress.task(), " is last)"));
  }
  if (progress.has_step_time()) {
    parts.push_back(
        absl::StrCat(absl::FormatDuration(DurationFrom(progress.step_time())), " a step"));
  }
  if (progress.ready() > 0) parts.push_back(absl::StrCat(progress.ready(), " ready"));
  if (progress.dropped() > 0) {
    parts.push_back(absl::StrCat(progress.dropped(), " messages dropped"));
  }
  std::string text = absl::StrJoin(parts, ", ");
  if (!progress.status().empty()) {
    absl::StrAppend(&text, text.empty() ? "" : ": ", progress.status());
  }
  return text;
}

const char* PlaceText(v1::Checkpoint::Where where) {
  switch (where) {
    case v1::Checkpoint::LOCAL:
      return " on its nodes";
    case v1::Checkpoint::PEER:
      return " in the memory of its nodes";
    case v1::Checkpoint::SHARED:
      return " on shared storage";
    default:
      return "";
  }
}

// "step 1150 on shared storage, 1.2Gi, 3m ago"
std::string SavedText(const v1::Checkpoint& checkpoint, absl::Time now) {
  const std::string size =
      checkpoint.bytes() > 0 ? absl::StrCat(", ", HumanBytes(checkpoint.bytes())) : "";
  return absl::StrCat("step ", checkpoint.step(), PlaceText(checkpoint.where()), size, ", ",
                      HumanAge(true, checkpoint.time(), now), " ago");
}

std::string HangText(const v1::Hang& hang, absl::Time now) {
  const std::string step = hang.has_step() ? absl::StrCat(", at step ", hang.step()) : "";
  return absl::StrCat(hang.task(), ": no progress for ", HumanDuration(DurationFrom(hang.still())),
                      step, "; found ", HumanAge(true, hang.time(), now), " ago");
}

}  // namespace

void AddJobProgress(const v1::Job& job, const Session& session, Page* page) {
  const v1::JobStatus& status = job.status();
  if (job.spec().has_watchdog()) {
    page->Add("Watchdog", HumanDuration(DurationFrom(job.spec().watchdog().timeout())));
  }
  if (status.has_progress()) page->Add("Progress", ProgressText(status.progress()));
  if (status.has_checkpoint()) page->Add("Saved", SavedText(status.checkpoint(), session.Now()));
  if (status.has_hang()) page->Add("Hangs", HangText(status.hang(), session.Now()));
}

}  // namespace berth
