#include "server/services/job_list.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/commands/request_table.h"
#include "server/convert/job.h"
#include "server/convert/values.h"
#include "server/services/context.h"
#include "server/services/job_filter.h"
#include "server/services/paging.h"
#include "server/validation/findings.h"
#include "server/validation/text.h"
#include "server/validation/values.h"

namespace berth {
namespace {

// Position of a list between two steps. Ids are assigned in the order of submission.
class Cursor {
 public:
  // `seen`: the last job of the previous page; 0 begins. Jobs that are submitted later have greater
  // ids: they come last, or, newest first, never.
  Cursor(bool newest_first, uint64_t seen) : newest_first_(newest_first), seen_(seen) {}

  // The next job that was not examined yet; nullopt at the end.
  std::optional<JobId> Next(const ClusterState& state) const {
    if (!newest_first_) return state.jobs().NextFrom(JobId{seen_ + 1});
    if (seen_ == 0) return state.jobs().NextBackFrom(state.next_job_id());
    return state.jobs().NextBackFrom(JobId{seen_ - 1});
  }
  // The same for jobs ordered by id.
  std::optional<JobId> NextOf(const std::set<JobId>& jobs) const {
    if (!newest_first_) {
      const auto found = jobs.upper_bound(JobId{seen_});
      return found == jobs.end() ? std::nullopt : std::optional<JobId>(*found);
    }
    const auto found = seen_ == 0 ? jobs.end() : jobs.lower_bound(JobId{seen_});
    return found == jobs.begin() ? std::nullopt : std::optional<JobId>(*std::prev(found));
  }
  // The same for the jobs of a series.
  std::optional<JobId> NextMember(const ClusterState& state, JobId series) const {
    if (!newest_first_) return state.NextMember(series, JobId{seen_ + 1});
    return state.NextMemberBack(series, seen_ == 0 ? kLastJobId : JobId{seen_ - 1});
  }
  void See(JobId id) {
    seen_ = id.value;
    ++looked_at_;
  }
  uint64_t seen() const { return seen_; }
  size_t looked_at() const { return looked_at_; }

 private:
  const bool newest_first_;
  uint64_t seen_;
  size_t looked_at_ = 0;
};

std::set<JobId> JobsOn(const Node& node) {
  std::set<JobId> jobs;
  for (const TaskKey& key : node.tasks) jobs.insert(key.job);
  return jobs;
}

enum class Progress { kMore, kPageFull, kAtEnd, kNoNode, kNoQueue, kNoSeries };

// A filter that asks for a node asks what runs there.
absl::Status PermitNode(const ClusterState& state, Rights& rights, const std::string& node) {
  if (node.empty()) return absl::OkStatus();
  return PermitVerb(state, rights, Verb::kReadCluster, kRootQueue, "list what runs on nodes");
}

// Somebody who may do nothing in a queue does not learn whether it exists.
const Queue* FindQueueFor(const ClusterState& state, Rights& rights, const std::string& name) {
  const Queue* queue = state.FindQueue(name);
  return queue == nullptr || rights.At(state, queue->id).empty() ? nullptr : queue;
}

// Labels are not listed of jobs that the caller may not read: a filter must not tell them either.
bool MayMatch(const ClusterState& state, Rights& rights, const v1::JobFilter& filter,
              const Job& job) {
  return rights.OnJob(state, filter.labels().empty() ? Verb::kListJobs : Verb::kReadJob, job);
}

// One step: examines some jobs and renders those that match.
Progress AddJobs(const ClusterState& state, Rights& rights, Time now,
                 const v1::ListJobsRequest& request, int page_size, Cursor& cursor,
                 v1::ListJobsResponse& response) {
  const v1::JobFilter& filter = request.filter();
  std::set<JobId> on_node;
  if (!filter.queue().empty() && FindQueueFor(state, rights, filter.queue()) == nullptr)
    return Progress::kNoQueue;
  if (!filter.node().empty()) {
    const Node* node = state.FindNode(filter.node());
    if (node == nullptr) return Progress::kNoNode;
    on_node = JobsOn(*node);
  }
  const Job* series = nullptr;
  if (!filter.series().empty()) {
    series = state.FindJob(filter.series());
    if (series == nullptr || !rights.OnJob(state, Verb::kListJobs, *series))
      return Progress::kNoSeries;
  }
  const JobMatcher matches(state, filter);
  size_t rendered = 0;
  for (size_t row = 0; row < kMaxRowsPerStep && rendered < kMaxRenderedPerStep; ++row) {
    const std::optional<JobId> id = !filter.node().empty() ? cursor.NextOf(on_node)
                                    : series != nullptr    ? cursor.NextMember(state, series->id)
                                                           : cursor.Next(state);
    if (!id.has_value()) return Progress::kAtEnd;
    if (response.jobs_size() == page_size) return Progress::kPageFull;
    cursor.See(*id);
    const Job& job = state.jobs().At(*id);
    if (!matches(job) || !MayMatch(state, rights, filter, job)) continue;
    v1::Job* rendered = response.add_jobs();
    RenderJob(state, job, now, rendered);
    Show(state, rights, job, rendered);
    ++rendered;
  }
  return Progress::kMore;
}

// A task as the key of a page.
constexpr uint64_t kTaskBits = 16;
static_assert(kMaxTasksPerJob <= 1 << kTaskBits);

uint64_t KeyOfTask(TaskKey key) { return (key.job.value << kTaskBits) + key.task + 1; }

std::vector<TaskKey> TasksOn(const ClusterState& state, Rights& rights, const Node& node,
                             const Job* job, uint64_t after) {
  std::vector<TaskKey> tasks;
  for (const TaskKey& key : node.tasks) {
    if (job != nullptr && key.job != job->id) continue;
    if (!rights.OnJob(state, Verb::kListJobs, state.jobs().At(key.job))) continue;
    if (KeyOfTask(key) > after) tasks.push_back(key);
  }
  std::sort(tasks.begin(), tasks.end());
  return tasks;
}

void AddTask(const ClusterState& state, Rights& rights, const Job& job, uint32_t index,
             v1::ListTasksResponse& response) {
  v1::Task* rendered = response.add_tasks();
  RenderTask(state, job, index, rendered);
  Show(state, rights, job, rendered);
}

// A node has at most 4,096 tasks, and a page holds at most kMaxPageSize.
void AddTasksOn(const ClusterState& state, Rights& rights, const Node& node, const Job* job,
                const Page& page, const std::string& scope, v1::ListTasksResponse& response) {
  const std::vector<TaskKey> tasks = TasksOn(state, rights, node, job, PageKeyId(page.after));
  const size_t end = std::min(tasks.size(), static_cast<size_t>(page.size));
  for (size_t i = 0; i < end; ++i) {
    AddTask(state, rights, state.jobs().At(tasks[i].job), tasks[i].task, response);
  }
  if (end < tasks.size()) {
    response.set_next_page_token(PageToken(PageKey(KeyOfTask(tasks[end - 1])), scope));
  }
}

void AddTasksOf(const ClusterState& state, Rights& rights, const Job& job, const Page& page,
                const std::string& scope, v1::ListTasksResponse& response) {
  const uint64_t first = PageKeyId(page.after);  // tasks already listed
  const uint64_t end =
      std::min<uint64_t>(job.tasks.size(), first + static_cast<uint64_t>(page.size));
  for (uint64_t i = first; i < end; ++i) {
    AddTask(state, rights, job, static_cast<uint32_t>(i), response);
  }
  if (end < job.tasks.size()) response.set_next_page_token(PageToken(PageKey(end), scope));
}

absl::Status CheckTaskList(const v1::ListTasksRequest& request) {
  if (!request.job().empty() || !request.node().empty()) return absl::OkStatus();
  Findings findings;
  const FieldPath root;
  findings.Invalid({root, "job"}, "required, unless node is given");
  return findings.ToStatus();
}

std::string TaskScope(const v1::ListTasksRequest& request) {
  const std::string job = absl::StrCat("tasks/", request.job());
  return FingerprintOf(request.node().empty() ? job : absl::StrCat(job, "/", request.node()),
                       v1::JobFilter());
}

}  // namespace

absl::Status ListJobs(ReadView& view, Rights& rights, Time now, const v1::ListJobsRequest& request,
                      v1::ListJobsResponse& response) {
  if (absl::Status status = ValidateJobList(request); !status.ok()) return status;
  const absl::Status permitted = view.Step([&](const ClusterState& state) {
    return PermitNode(state, rights, request.filter().node());
  });
  if (!permitted.ok()) return permitted;
  const bool newest_first = request.order() == v1::ListJobsRequest::NEWEST_FIRST;
  const std::string scope = FingerprintOf(newest_first ? "jobs/newest" : "jobs", request.filter());
  absl::StatusOr<Page> page = ReadPage(request.page_size(), request.page_token(), scope);
  if (!page.ok()) return page.status();
  Cursor cursor(newest_first, PageKeyId(page->after));
  Progress progress = Progress::kMore;
  while (progress == Progress::kMore && cursor.looked_at() < kMaxRowsPerCall) {
    progress = view.Step([&](const ClusterState& state) {
      return AddJobs(state, rights, now, request, page->size, cursor, response);
    });
  }
  if (progress == Progress::kNoSeries) {
    return view.Step([&](const ClusterState& state) {
      return NoSuchJob(state, rights, request.filter().series());
    });
  }
  if (progress == Progress::kNoQueue || progress == Progress::kNoNode) {
    return view.Step([&](const ClusterState& state) {
      return progress == Progress::kNoQueue ? NoSuchQueue(state, rights, request.filter().queue())
                                            : NoSuchNode(state, rights, request.filter().node());
    });
  }
  if (progress != Progress::kAtEnd) {
    response.set_next_page_token(PageToken(PageKey(cursor.seen()), scope));
  }
  return absl::OkStatus();
}

absl::Status ListTasks(ReadView& view, Rights& rights, const v1::ListTasksRequest& request,
                       v1::ListTasksResponse& response) {
  if (absl::Status status = CheckTaskList(request); !status.ok()) return status;
  const std::string scope = TaskScope(request);
  absl::StatusOr<Page> page = ReadPage(request.page_size(), request.page_token(), scope);
  if (!page.ok()) return page.status();
  return view.Step([&](const ClusterState& state) {
    absl::Status permitted = PermitNode(state, rights, request.node());
    if (!permitted.ok()) return permitted;
    const Job* job = request.job().empty() ? nullptr : state.FindJob(request.job());
    if (job != nullptr && !rights.OnJob(state, Verb::kListJobs, *job)) job = nullptr;
    if (job == nullptr && !request.job().empty()) return NoSuchJob(state, rights, request.job());
    if (request.node().empty()) {
      AddTasksOf(state, rights, *job, *page, scope, response);
      return absl::OkStatus();
    }
    const Node* node = state.FindNode(request.node());
    if (node == nullptr) return NoSuchNode(state, rights, request.node());
    AddTasksOn(state, rights, *node, job, *page, scope, response);
    return absl::OkStatus();
  });
}

}  // namespace berth
