#include "offline/replay/workload.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/engine/search/demand_watch.h"

namespace berth::replay {

std::string NameOfRecord(int64_t record) { return absl::StrCat("job-", record); }

void CapAtRequestedTime(TraceJob* job) {
  job->overran = job->run > job->requested;
  job->run = std::min(job->run, job->requested);
}

int32_t TasksOf(const TraceJob& job) {
  int32_t tasks = job.tasks;
  for (const TraceGroup& group : job.more) tasks += group.tasks;
  return tasks;
}

double GpusOf(const TraceJob& job) {
  double gpus = 0;
  const auto add = [&](const TaskShape& shape, int32_t tasks) {
    const int64_t each = RequestOf(shape, {}).amount();
    gpus += static_cast<double>(each * tasks) / static_cast<double>(kWholeDevice);
  };
  add(job.shape, job.tasks);
  for (const TraceGroup& group : job.more) add(group.shape, group.tasks);
  return gpus;
}

void SetLoad(double load, Workload* workload) {
  for (TraceJob& job : workload->jobs) {
    job.submit = absl::Trunc(job.submit / load, absl::Seconds(1));
  }
}

void SortBySubmit(Workload* workload) {
  const auto earlier = [](const TraceJob& a, const TraceJob& b) { return a.submit < b.submit; };
  std::vector<TraceJob>& jobs = workload->jobs;
  // Logs are mostly sorted, and jobs are expensive to move.
  if (std::is_sorted(jobs.begin(), jobs.end(), earlier)) return;
  std::stable_sort(jobs.begin(), jobs.end(), earlier);
}

absl::Status CheckAnyJob(const Workload& workload, const std::string& file) {
  if (!workload.jobs.empty()) return absl::OkStatus();
  if (workload.left_out.empty()) return absl::InvalidArgumentError(file + ": contains no jobs");
  int64_t records = 0;
  std::vector<std::string> reasons;
  for (const auto& [reason, count] : workload.left_out) {
    records += count;
    reasons.push_back(absl::StrCat(reason, ": ", count));
  }
  return absl::InvalidArgumentError(absl::StrCat(file, ": nothing to replay: all ", records,
                                                 " records are left out (",
                                                 absl::StrJoin(reasons, ", "), ")"));
}

std::map<std::string, int64_t> CountsOf(const Workload& workload) {
  std::map<std::string, int64_t> counts;
  for (const TraceJob& job : workload.jobs) {
    if (job.overran) ++counts["ran longer than requested"];
    if (job.ended == TraceEnd::kFailed) ++counts["failed"];
    if (job.ended == TraceEnd::kCancelled) ++counts["cancelled"];
  }
  return counts;
}

}  // namespace berth::replay
