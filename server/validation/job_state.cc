#include "server/validation/job_state.h"

#include "absl/strings/str_cat.h"
#include "server/validation/job.h"
#include "server/validation/text.h"

namespace berth {
namespace {

void CheckQueue(const ClusterState& state, const FieldPath& path, const std::string& name,
                Findings& findings) {
  const Queue* queue = state.FindQueue(name);
  if (queue == nullptr || queue->id == kRootQueue) {
    findings.Missing(path, absl::StrCat("there is no queue ", Quoted(name)));
  } else if (!queue->children.empty()) {
    const Queue& child = state.queues().At(queue->children[0]);
    findings.Invalid(path, absl::StrCat(Quoted(name), " has children, such as ",
                                        Quoted(child.spec.name), "; jobs go to leaves"));
  } else if (!state.Open(queue->id)) {
    findings.Refused(path, absl::StrCat("queue ", Quoted(name), " is closed"));
  }
}

void CheckDependencies(const ClusterState& state, const v1::SubmitJobsRequest& request,
                       Findings& findings) {
  const JobPositions here = JobsByName(request);
  const FieldPath root;
  for (int i = 0; i < request.jobs_size(); ++i) {
    const FieldPath job(root, "jobs", i);
    const FieldPath spec(job, "spec");
    const auto& dependencies = request.jobs(i).spec().dependencies();
    for (int d = 0; d < dependencies.size(); ++d) {
      const std::string& name = dependencies[d].job();
      if (here.contains(name) || state.FindJob(name) != nullptr) continue;
      const FieldPath entry(spec, "dependencies", d);
      findings.Missing({entry, "job"},
                       absl::StrCat("there is no job ", Quoted(name), ", here or in this call"));
    }
  }
}

}  // namespace

void CheckJobsAgainst(const ClusterState& state, const v1::SubmitJobsRequest& request,
                      Findings& findings) {
  const FieldPath root;
  const std::string* good = nullptr;  // the last queue name that was found to be fine
  for (int i = 0; i < request.jobs_size(); ++i) {
    const std::string& name = request.jobs(i).spec().queue();
    if (good != nullptr && *good == name) continue;
    if (!IsDnsLabel(name)) continue;  // found to be wrong already
    const FieldPath job(root, "jobs", i);
    const FieldPath spec(job, "spec");
    const size_t before = findings.size();
    CheckQueue(state, {spec, "queue"}, name, findings);
    if (findings.size() == before) good = &name;
  }
  if (HasDependencies(request)) CheckDependencies(state, request, findings);
}

}  // namespace berth
