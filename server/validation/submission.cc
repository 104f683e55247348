#include "server/validation/submission.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/validation/graph.h"
#include "server/validation/job.h"
#include "server/validation/lifecycle.h"
#include "server/validation/resources.h"
#include "server/validation/text.h"

namespace berth {
namespace {

bool CheckCount(const v1::SubmitJobsRequest& request, const config::v1::Limits& limits,
                Findings& findings) {
  if (!request.jobs().empty() && request.jobs_size() <= limits.jobs_per_call()) return true;
  const FieldPath root;
  findings.Invalid({root, "jobs"}, absl::StrCat("must be 1..", limits.jobs_per_call(),
                                                " jobs, has ", request.jobs_size()));
  return false;
}

std::string DescribeCycle(const v1::SubmitJobsRequest& request, const std::vector<int>& cycle) {
  std::string text;
  for (const int job : cycle) absl::StrAppend(&text, request.jobs(job).name(), " -> ");
  return absl::StrCat(text, request.jobs(cycle.front()).name());
}

// Names and dependencies of the call, collected job by job. A dependency may name a later job, so
// Resolve comes after the last Add.
class Relations {
 public:
  explicit Relations(const v1::SubmitJobsRequest& request) : request_(request) {}

  void Add(int job) {
    const int dependencies = request_.jobs(job).spec().dependencies_size();
    // The name of a single job matters only to its own dependencies.
    if (request_.jobs_size() > 1 || dependencies > 0) AddName(job);
    for (int entry = 0; entry < dependencies; ++entry) {
      found_.edges.push_back({.job = job, .entry = entry});
    }
  }

  void Resolve() {
    for (CallDependencies::Edge& edge : found_.edges) {
      const auto& dependencies = request_.jobs(edge.job).spec().dependencies();
      const auto first = first_of_.find(dependencies[edge.entry].job());
      if (first == first_of_.end()) continue;
      edge.on = first->second;
      within_call_ = true;
    }
  }

  // Names within the call are unique.
  void CheckNames(Findings& findings) const {
    const FieldPath root;
    for (const auto& [job, first] : repeated_) {
      const FieldPath path(root, "jobs", job);
      findings.Invalid({path, "name"}, absl::StrCat(Quoted(request_.jobs(job).name()),
                                                    " is already the name of jobs[", first, "]"));
    }
  }

  // Dependencies between jobs of the call have an order, and so no cycle.
  void Order(Findings& findings) {
    if (!within_call_) return;
    Graph graph(static_cast<size_t>(request_.jobs_size()));
    for (const CallDependencies::Edge& edge : found_.edges) {
      if (edge.on != CallDependencies::kInCluster) {
        graph[static_cast<size_t>(edge.job)].push_back(edge.on);
      }
    }
    DependencyOrder sorted = OrderByDependencies(graph);
    if (sorted.cycle.empty()) {
      found_.order = std::move(sorted.order);
      return;
    }
    const FieldPath root;
    const FieldPath path(root, "jobs", sorted.cycle.front());
    const FieldPath spec(path, "spec");
    findings.Invalid({spec, "dependencies"},
                     absl::StrCat("dependencies between jobs form a cycle: ",
                                  DescribeCycle(request_, sorted.cycle)));
  }

  CallDependencies Take() { return std::move(found_); }

 private:
  void AddName(int job) {
    const std::string& name = request_.jobs(job).name();
    if (name.empty()) return;
    if (first_of_.empty()) first_of_.reserve(static_cast<size_t>(request_.jobs_size()));
    const auto [first, added] = first_of_.emplace(name, job);
    if (!added) repeated_.push_back({job, first->second});
  }

  const v1::SubmitJobsRequest& request_;
  absl::flat_hash_map<absl::string_view, int> first_of_;  // the first job of each name
  std::vector<std::pair<int, int>> repeated_;             // a job, and the first of its name
  bool within_call_ = false;                              // a job depends on another of the call
  CallDependencies found_;
};

// Findings about formats follow all others, so this is a second pass: only for an old store.
void CheckFormats(const v1::SubmitJobsRequest& request, uint32_t store_format, Findings& findings) {
  if (store_format >= kFormatOfSeries) return;
  const FieldPath root;
  for (int i = 0; i < request.jobs_size(); ++i) {
    const FieldPath job(root, "jobs", i), spec(job, "spec");
    CheckLifecycleFormat(spec, request.jobs(i).spec(), store_format, findings);
    for (int g = 0; g < request.jobs(i).spec().groups_size(); ++g) {
      const FieldPath group(spec, "groups", g);
      CheckFormat({group, "resources"}, request.jobs(i).spec().groups(g).resources(), store_format,
                  findings);
    }
  }
}

}  // namespace

absl::Span<const CallDependencies::Edge> CallDependencies::Of(int job) const {
  const auto begin = std::partition_point(edges.begin(), edges.end(),
                                          [job](const Edge& edge) { return edge.job < job; });
  const auto end =
      std::find_if(begin, edges.end(), [job](const Edge& edge) { return edge.job != job; });
  return absl::MakeConstSpan(edges).subspan(static_cast<size_t>(begin - edges.begin()),
                                            static_cast<size_t>(end - begin));
}

CallDependencies CheckSubmit(const v1::SubmitJobsRequest& request, const config::v1::Limits& limits,
                             uint32_t store_format, Findings& findings) {
  const FieldPath root;
  CheckRequestId(request.request_id(), findings);
  const bool allowed = CheckCount(request, limits, findings);
  if (allowed) request.ByteSizeLong();  // also caches the sizes of all parts
  Relations relations(request);
  for (int i = 0; i < request.jobs_size(); ++i) {
    if (allowed) {
      const v1::Job& job = request.jobs(i);
      const auto bytes = static_cast<size_t>(job.spec().GetCachedSize());
      CheckJob({root, "jobs", i}, job, bytes, limits, findings);
    }
    relations.Add(i);
  }
  relations.Resolve();
  if (allowed) {
    relations.CheckNames(findings);
    relations.Order(findings);
  }
  CheckFormats(request, store_format, findings);
  return relations.Take();
}

}  // namespace berth
