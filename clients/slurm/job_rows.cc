#include "clients/slurm/job_rows.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "clients/cli/topology/node_names.h"
#include "clients/session/ended.h"
#include "clients/slurm/job_archive.h"
#include "clients/slurm/job_end.h"
#include "clients/slurm/job_label.h"
#include "clients/slurm/job_state.h"
#include "clients/slurm/pages.h"
#include "clients/slurm/submit.h"
#include "support/proto_time.h"

namespace berth {
namespace {

using JobStub = v1::JobService::StubInterface;
constexpr size_t kMostSplitRows = 100'000;

struct IndexRange {
  int64_t first = 0, last = 0, step = 1;
  int64_t size() const { return (last - first) / step + 1; }
};

std::vector<IndexRange> IndexesOf(const v1::Array& array) {
  if (array.size() > 0) return {{0, array.size() - 1, 1}};
  std::vector<IndexRange> ranges;
  for (absl::string_view part : absl::StrSplit(array.indexes(), ',', absl::SkipEmpty())) {
    IndexRange range;
    const std::vector<absl::string_view> words = absl::StrSplit(part, absl::ByAnyChar("-:"));
    if (!absl::SimpleAtoi(words[0], &range.first)) continue;
    range.last = range.first;
    if (words.size() > 1) static_cast<void>(absl::SimpleAtoi(words[1], &range.last));
    if (words.size() > 2) static_cast<void>(absl::SimpleAtoi(words[2], &range.step));
    range.step = std::max<int64_t>(range.step, 1);
    ranges.push_back(range);
  }
  return ranges;
}

// The ranges without their first `made` indexes: jobs are made in order.
std::vector<IndexRange> UnmadeOf(const v1::Job& job) {
  std::vector<IndexRange> ranges = IndexesOf(job.spec().array());
  int64_t made = job.status().series().made();
  while (!ranges.empty() && made > 0) {
    IndexRange& first = ranges.front();
    const int64_t gone = std::min(made, first.size());
    made -= gone;
    first.first += gone * first.step;
    if (first.first > first.last) ranges.erase(ranges.begin());
  }
  return ranges;
}

std::string TextOf(const std::vector<IndexRange>& ranges) {
  return absl::StrJoin(ranges, ",", [](std::string* out, const IndexRange& range) {
    absl::StrAppend(out, range.first);
    if (range.last > range.first) absl::StrAppend(out, "-", range.last);
    if (range.step > 1) absl::StrAppend(out, ":", range.step);
  });
}

bool Among(const std::set<std::string>& wanted, const std::string& value) {
  return wanted.empty() || wanted.contains(value);
}

bool IsSelected(const v1::Job& job, const JobQuery& query) {
  const SlurmState& state = StateOf(job);
  if (query.numbers.empty() && !query.ended && state.ended) return false;
  const std::string owner = job.status().owner();
  const bool user = Among(query.users, UserOf(job)) || query.users.contains(owner);
  if (!user || !Among(query.states, state.name)) return false;
  if (!Among(query.accounts, TextLabel(job.spec(), kAccountLabel))) return false;
  if (!Among(query.qos, TextLabel(job.spec(), kQosLabel))) return false;
  if (!Among(query.partitions, PartitionOf(job)) || !Among(query.names, JobNameOf(job)))
    return false;
  const absl::Time end =
      job.status().has_end_time() ? TimeFrom(job.status().end_time()) : absl::InfiniteFuture();
  if (query.since.has_value() && end < *query.since) return false;
  return !query.until.has_value() || TimeFrom(job.status().submit_time()) <= *query.until;
}

void AddRow(v1::Job job, const JobQuery& query, std::vector<JobRow>* rows) {
  if (!job.spec().has_array()) {
    if (!IsSelected(job, query)) return;
    rows->push_back({.number = NumberOf(job)});
    rows->back().job = std::move(job);
    return;
  }
  // Of an array only what has no job yet is a row.
  if (HasEnded(job.status().state())) return;
  const std::vector<IndexRange> unmade = UnmadeOf(job);
  job.mutable_status()->set_state(v1::JOB_PENDING);
  if (unmade.empty() || !IsSelected(job, query)) return;
  if (!query.split) {
    const int32_t most = job.spec().array().parallelism();
    const std::string text = absl::StrCat(TextOf(unmade), most > 0 ? absl::StrCat("%", most) : "");
    JobRow row{.number = absl::StrCat(job.uid(), "_[", text, "]"), .unmade = text};
    row.job = std::move(job);
    rows->push_back(std::move(row));
    return;
  }
  for (const IndexRange& range : unmade) {
    for (int64_t index = range.first; index <= range.last; index += range.step) {
      if (rows->size() >= kMostSplitRows) return;
      rows->push_back(
          {.number = absl::StrCat(job.uid(), "_", index), .unmade = absl::StrCat(index)});
      rows->back().job = job;
    }
  }
}

absl::Status ListInto(Client& client, const v1::ListJobsRequest& request, const JobQuery& query,
                      std::vector<JobRow>* rows) {
  return ReadPages(client, &JobStub::ListJobs, request, [&](const v1::ListJobsResponse& page) {
    for (const v1::Job& job : page.jobs()) AddRow(job, query, rows);
  });
}

// A job by number, and of an array all its jobs. Arrays are added to `arrays` by name.
absl::Status AddNumber(Client& client, const JobNumber& number, const JobQuery& query,
                       std::vector<JobRow>* rows, std::set<std::string>* arrays) {
  absl::StatusOr<v1::Job> job = JobByNumber(client, number);
  if (absl::IsNotFound(job.status()) && number.index.has_value()) {
    // An index without a job yet.
    const auto array = JobByNumber(client, {.uid = number.uid, .index = {}});
    if (!array.ok()) return array.status();
    for (const IndexRange& range : UnmadeOf(*array)) {
      const int64_t index = *number.index;
      if (index < range.first || index > range.last || (index - range.first) % range.step != 0)
        continue;
      rows->push_back(
          {.number = absl::StrCat(number.uid, "_", index), .unmade = absl::StrCat(index)});
      rows->back().job = *array;
      rows->back().job.mutable_status()->set_state(v1::JOB_PENDING);
      return absl::OkStatus();
    }
  }
  if (!job.ok()) return job.status();
  v1::ListJobsRequest members;
  members.mutable_filter()->set_series(job->name());
  const bool array = job->spec().has_array();
  if (array) arrays->insert(job->name());
  AddRow(*std::move(job), query, rows);
  return array ? ListInto(client, members, query, rows) : absl::OkStatus();
}

absl::Status AddArchived(Client& client, const ArchiveQuery& archive, const JobQuery& query,
                         std::vector<JobRow>* rows) {
  return ReadArchive(client, archive, [&](ArchivedJob found) {
    if (!IsSelected(found.job, query)) return;
    rows->push_back({.number = NumberOf(found.job), .archived = found.exit});
    rows->back().job = std::move(found.job);
  });
}

absl::Status AddNumbers(Client& client, const JobQuery& query, std::vector<JobRow>* rows) {
  ArchiveQuery archive;
  for (const JobNumber& number : query.numbers) {
    const absl::Status status = AddNumber(client, number, query, rows, &archive.arrays);
    if (absl::IsNotFound(status)) archive.numbers.push_back(number);
    if (absl::IsNotFound(status) && !query.missing_is_error) continue;
    if (!status.ok()) return status;
  }
  if (!query.archive || !archive.named()) return absl::OkStatus();
  return AddArchived(client, archive, query, rows);
}

absl::Status AddListed(Client& client, const JobQuery& query, std::vector<JobRow>* rows) {
  v1::ListJobsRequest request;
  v1::JobFilter& filter = *request.mutable_filter();
  filter.set_active_only(!query.ended);
  if (query.nodes.size() == 1 && !query.ended) filter.set_node(*query.nodes.begin());
  if (query.users.size() != 1) return ListInto(client, request, query, rows);
  // A job has the user that sbatch gave it, or only the owner that its connection proved.
  filter.set_user(*query.users.begin());
  if (absl::Status status = ListInto(client, request, query, rows); !status.ok()) return status;
  filter.clear_user();
  filter.set_owner(*query.users.begin());
  return ListInto(client, request, query, rows);
}

absl::Status AddMatching(Client& client, const JobQuery& query, std::vector<JobRow>* rows) {
  const absl::Status listed = AddListed(client, query, rows);
  if (!listed.ok() || !query.archive) return listed;
  ArchiveQuery archive{.since = query.since};
  if (query.users.size() == 1) archive.user = *query.users.begin();
  return AddArchived(client, archive, query, rows);
}

absl::Status Complete(Client& client, const RowNeeds& needs, JobRow* row) {
  if (row->archived.has_value()) return absl::OkStatus();
  const std::string name = row->job.name();
  if (needs.whole) {
    v1::GetJobRequest request;
    request.set_name(name);
    auto job = client.Call(&JobStub::GetJob, request);
    if (!job.ok()) return job.status();
    const v1::JobState state = row->job.status().state();
    row->job = *std::move(job);
    if (!row->unmade.empty()) row->job.mutable_status()->set_state(state);
    row->whole = true;
  }
  if (needs.tasks && !row->job.spec().has_array() && row->job.status().start_count() > 0) {
    auto tasks = TasksOfJob(client, name);
    if (!tasks.ok()) return tasks.status();
    row->tasks = *std::move(tasks);
  }
  if (needs.estimate && !StateOf(row->job).ended && row->job.status().state() != v1::JOB_RUNNING) {
    v1::EstimateJobRequest request;
    request.set_job(name);
    const auto estimate = client.Call(&v1::ExplainService::StubInterface::EstimateJob, request);
    if (estimate.ok() && estimate->has_likely()) row->estimate = TimeFrom(estimate->likely());
  }
  return absl::OkStatus();
}

bool IsOnNodes(const JobRow& row, const std::set<std::string>& nodes) {
  if (nodes.empty()) return true;
  const std::vector<std::string> own = row.Nodes();
  return std::any_of(own.begin(), own.end(),
                     [&](const std::string& node) { return nodes.contains(node); });
}

std::set<std::string> SetOf(const std::string& text) {
  return absl::StrSplit(text, ',', absl::SkipWhitespace());
}

}  // namespace

std::vector<std::string> JobRow::Nodes() const {
  std::vector<std::pair<int, std::string>> places;
  for (const v1::Task& task : tasks) {
    if (task.node().empty() || task.state() == v1::TASK_PENDING) continue;
    places.emplace_back(task.rank() < 0 ? task.index() : task.rank(), task.node());
  }
  std::sort(places.begin(), places.end());
  std::vector<std::string> nodes;
  for (const auto& [rank, node] : places) {
    if (std::find(nodes.begin(), nodes.end(), node) == nodes.end()) nodes.push_back(node);
  }
  return nodes;
}

std::string PartitionOf(const v1::Job& job) {
  const std::string label = TextLabel(job.spec(), kPartitionLabel);
  return label.empty() ? job.spec().queue() : label;
}

std::string UserOf(const v1::Job& job) {
  return job.spec().user().empty() ? job.status().owner() : job.spec().user();
}

std::string JobNameOf(const v1::Job& job) {
  const std::string label = TextLabel(job.spec(), kNameLabel);
  return label.empty() ? job.name() : label;
}

absl::StatusOr<JobQuery> QueryOf(const SlurmArguments& arguments) {
  JobQuery query;
  const std::pair<const char*, std::set<std::string> JobQuery::*> sets[] = {
      {"user", &JobQuery::users},           {"uid", &JobQuery::users},
      {"account", &JobQuery::accounts},     {"accounts", &JobQuery::accounts},
      {"partition", &JobQuery::partitions}, {"name", &JobQuery::names},
      {"jobname", &JobQuery::names},        {"qos", &JobQuery::qos}};
  for (const auto& [option, member] : sets) {
    if (const std::string* text = arguments.Find(option)) query.*member = SetOf(*text);
  }
  if (arguments.Has("me")) query.users = {UserName()};
  if (const std::string* text = arguments.Find("nodelist")) {
    NameLists lists;
    const auto names = lists.ExpandNodes(*text);
    if (!names.ok()) return names.status();
    query.nodes.insert(names->begin(), names->end());
  }
  for (const GivenOption& given : arguments.options) {
    if (std::string(given.option->name) != "jobs") continue;
    std::string outside;  // commas in brackets do not separate
    bool inside = false;
    for (const char c : given.value) {
      inside = (inside || c == '[') && c != ']';
      outside += c == ',' && !inside ? ' ' : c;
    }
    for (absl::string_view part : absl::StrSplit(outside, ' ', absl::SkipWhitespace())) {
      const auto numbers = ParseJobNumbers(part, /*steps=*/true);
      if (!numbers.ok()) return numbers.status();
      query.numbers.insert(query.numbers.end(), numbers->begin(), numbers->end());
    }
  }
  return query;
}

absl::StatusOr<std::vector<JobRow>> FindRows(SlurmContext& context, const JobQuery& query,
                                             const RowNeeds& needs) {
  const absl::StatusOr<Client*> client = context.client();
  if (!client.ok()) return client.status();
  std::vector<JobRow> rows;
  const absl::Status found = query.numbers.empty() ? AddMatching(**client, query, &rows)
                                                   : AddNumbers(**client, query, &rows);
  if (!found.ok()) return found;
  std::stable_sort(rows.begin(), rows.end(),
                   [](const JobRow& a, const JobRow& b) { return a.job.uid() < b.job.uid(); });
  RowNeeds all = needs;
  all.tasks = needs.tasks || !query.nodes.empty();
  std::vector<JobRow> selected;
  std::set<std::string> seen;  // a job may be in several lists; that of the server goes first
  for (JobRow& row : rows) {
    if (seen.contains(row.number)) continue;
    const absl::Status status = Complete(**client, all, &row);
    if (absl::IsNotFound(status)) continue;  // it was deleted in the meantime
    if (!status.ok()) return status;
    seen.insert(row.number);
    if (IsOnNodes(row, query.nodes)) selected.push_back(std::move(row));
  }
  return selected;
}

}  // namespace berth
