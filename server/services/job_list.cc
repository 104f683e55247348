#include "server/services/job_list.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "server/convert_job.h"
#include "server/request_table.h"
#include "server/services/paging.h"
#include "server/validation/findings.h"
#include "server/validation/text.h"
#include "server/validation/values.h"

namespace berth {
namespace {

absl::Status ValidateFilter(const v1::JobFilter& filter) {
  Findings findings;
  const FieldPath root;
  const FieldPath path(root, "filter");
  for (int i = 0; i < filter.states_size(); ++i) {
    CheckEnum({path, "states", i}, filter.states(i), findings);
  }
  if (!filter.queue().empty()) CheckDnsLabel({path, "queue"}, filter.queue(), findings);
  CheckLabels(path, "labels", filter.labels(), findings);
  return findings.ToStatus();
}

bool HasLabels(const Job& job, const v1::JobFilter& filter) {
  for (const auto& [key, value] : filter.labels()) {
    const auto found = job.labels.find(key);
    if (found == job.labels.end() || found->second != value) return false;
  }
  return true;
}

bool Matches(const ClusterState& state, const Job& job, const v1::JobFilter& filter) {
  if (filter.active_only() && Ended(job.status.state)) return false;
  if (!filter.states().empty() &&
      std::find(filter.states().begin(), filter.states().end(), JobStateToApi(job.status.state)) ==
          filter.states().end()) {
    return false;
  }
  if (!filter.queue().empty() && state.queues().At(job.queue).spec.name != filter.queue()) {
    return false;
  }
  return HasLabels(job, filter);
}

// Where a list stands between two steps.
struct Cursor {
  JobId next;  // first job not yet looked at
  size_t looked_at = 0;
  bool at_end = false;
};

// One step: looks at some jobs and renders those that match.
void AddJobs(const ClusterState& state, Time now, const v1::ListJobsRequest& request, int page_size,
             Cursor& cursor, v1::ListJobsResponse& response) {
  size_t rendered = 0;
  for (size_t row = 0; row < kMaxRowsPerStep && rendered < kMaxRenderedPerStep; ++row) {
    const std::optional<JobId> id = state.jobs().NextFrom(cursor.next);
    if (!id.has_value()) {
      cursor.at_end = true;
      return;
    }
    if (response.jobs_size() == page_size) return;  // there is more: a token is due
    cursor.next = {id->value + 1};
    ++cursor.looked_at;
    const Job& job = state.jobs().At(*id);
    if (!Matches(state, job, request.filter())) continue;
    RenderJob(state, job, now, response.add_jobs());
    ++rendered;
  }
}

}  // namespace

absl::Status NoSuchJob(absl::string_view name) {
  return absl::NotFoundError(absl::StrCat("there is no job ", Quoted(name)));
}

absl::Status ListJobs(ReadView& view, Time now, const v1::ListJobsRequest& request,
                      v1::ListJobsResponse& response) {
  if (absl::Status status = ValidateFilter(request.filter()); !status.ok()) return status;
  const std::string scope = FingerprintOf("jobs", request.filter());
  absl::StatusOr<Page> page = ReadPage(request.page_size(), request.page_token(), scope);
  if (!page.ok()) return page.status();
  Cursor cursor{JobId{PageKeyId(page->after) + 1}};
  const int size = page->size;
  do {
    view.Step([&](const ClusterState& state) {
      AddJobs(state, now, request, size, cursor, response);
      return 0;
    });
  } while (!cursor.at_end && response.jobs_size() < size && cursor.looked_at < kMaxRowsPerCall);
  if (!cursor.at_end) {
    response.set_next_page_token(PageToken(PageKey(cursor.next.value - 1), scope));
  }
  return absl::OkStatus();
}

absl::Status ListTasks(ReadView& view, const v1::ListTasksRequest& request,
                       v1::ListTasksResponse& response) {
  const std::string scope = FingerprintOf(absl::StrCat("tasks/", request.job()), v1::JobFilter());
  absl::StatusOr<Page> page = ReadPage(request.page_size(), request.page_token(), scope);
  if (!page.ok()) return page.status();
  const uint64_t first = PageKeyId(page->after);  // tasks already told
  return view.Step([&](const ClusterState& state) {
    const Job* job = state.FindJob(request.job());
    if (job == nullptr) return NoSuchJob(request.job());
    const uint64_t end =
        std::min<uint64_t>(job->tasks.size(), first + static_cast<uint64_t>(page->size));
    for (uint64_t i = first; i < end; ++i) {
      RenderTask(state, *job, static_cast<uint32_t>(i), response.add_tasks());
    }
    if (end < job->tasks.size()) response.set_next_page_token(PageToken(PageKey(end), scope));
    return absl::OkStatus();
  });
}

}  // namespace berth
