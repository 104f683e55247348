#include "server/commands/job_state.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/access/nearest_name.h"
#include "server/access/permit.h"
#include "server/commands/job_class.h"
#include "server/convert/job.h"
#include "server/validation/text.h"

namespace berth {
namespace {

constexpr size_t kQueuesNamed = 8;

// "; queues that accept jobs: research, vision"
std::string DescribeLeafQueues(const ClusterState& state, Rights* rights) {
  std::vector<std::string> names;
  bool more = false;
  for (auto id = state.queues().NextFrom(QueueId{kRootQueue.value + 1}); id.has_value() && !more;
       id = state.queues().NextFrom(QueueId{id->value + 1})) {
    const Queue& queue = state.queues().At(*id);
    if (!queue.children.empty()) continue;
    if (rights != nullptr && !rights->OnQueue(state, Verb::kSubmitJob, *id)) continue;
    more = names.size() == kQueuesNamed;
    if (!more) names.push_back(queue.spec.name);
  }
  if (names.empty() && rights != nullptr && !rights->SeesAll(state)) return "";
  if (names.empty()) return "; there are no queues: create one with `berth queue create NAME`";
  return absl::StrCat("; queues that accept jobs: ", absl::StrJoin(names, ", "),
                      more ? " and others" : "");
}

// The nearest queue that the caller may submit to, or some of them.
std::string SuggestQueue(const ClusterState& state, Rights* rights, const std::string& name) {
  Caller server;
  server.administrator = true;
  Rights all(std::make_shared<const Caller>(server));
  const std::string nearest =
      NearestQueue(state, rights != nullptr ? *rights : all, Verb::kSubmitJob, name);
  return nearest.empty() ? DescribeLeafQueues(state, rights) : DidYouMean(nearest);
}

void CheckQueue(const ClusterState& state, Rights* rights, const FieldPath& path,
                const v1::JobSpec& spec, Findings& findings) {
  const std::string name = QueueNameOf(spec);
  const Queue* queue = state.FindQueue(name);
  if (queue == nullptr || queue->id == kRootQueue) {
    findings.Missing(
        path, absl::StrCat(spec.queue().empty() ? "none is set, and " : "", "there is no queue ",
                           Quoted(name), SuggestQueue(state, rights, spec.queue())));
  } else if (!queue->children.empty()) {
    const Queue& child = state.queues().At(queue->children[0]);
    findings.Invalid(path, absl::StrCat(Quoted(name), " has children, such as ",
                                        Quoted(child.spec.name), "; only leaf queues accept jobs"));
  } else if (!state.Open(queue->id)) {
    findings.Refused(path, absl::StrCat("queue ", Quoted(name), " is closed"));
  }
}

bool Exists(const ClusterState& state, Rights* rights, const std::string& name) {
  const Job* job = state.FindJob(name);
  return job != nullptr && (rights == nullptr || rights->OnJob(state, Verb::kListJobs, *job));
}

void CheckKnownDependencies(const ClusterState& state, Rights* rights,
                            const v1::SubmitJobsRequest& request,
                            const CallDependencies& dependencies, Findings& findings) {
  const FieldPath root;
  for (const CallDependencies::Edge& edge : dependencies.edges) {
    if (edge.on != CallDependencies::kInCluster) continue;
    const std::string& name = request.jobs(edge.job).spec().dependencies(edge.entry).job();
    if (Exists(state, rights, name)) continue;
    const FieldPath job(root, "jobs", edge.job);
    const FieldPath spec(job, "spec");
    const FieldPath entry(spec, "dependencies", edge.entry);
    findings.Missing({entry, "job"}, absl::StrCat("there is no job ", Quoted(name),
                                                  ", in the cluster or in this call"));
  }
}

}  // namespace

void CheckJobsAgainst(const ClusterState& state, Rights* rights,
                      const v1::SubmitJobsRequest& request, const CallDependencies& dependencies,
                      Findings& findings) {
  const FieldPath root;
  const std::string* good = nullptr;  // the last queue name that passed
  for (int i = 0; i < request.jobs_size(); ++i) {
    const std::string& name = request.jobs(i).spec().queue();
    if (good != nullptr && *good == name) continue;
    if (!name.empty() && !IsDnsLabel(name)) continue;  // already reported
    const FieldPath job(root, "jobs", i);
    const FieldPath spec(job, "spec");
    const size_t before = findings.size();
    CheckQueue(state, rights, {spec, "queue"}, request.jobs(i).spec(), findings);
    if (findings.size() == before) good = &name;
  }
  CheckKnownDependencies(state, rights, request, dependencies, findings);
  CheckClasses(state, request, findings);
}

}  // namespace berth
