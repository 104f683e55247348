#include "server/commands/job_class.h"

#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "server/access/nearest_name.h"
#include "server/commands/request_table.h"
#include "server/convert/job.h"
#include "server/convert/priority_class.h"
#include "server/validation/text.h"

namespace berth {
namespace {

constexpr size_t kClassEtagBytes = 8;

const PriorityClass* PriorityClassOf(const ClusterState& state, const v1::JobSpec& asked) {
  const PriorityClasses& classes = state.priority_classes();
  if (!asked.priority_class().empty()) return classes.Find(asked.priority_class());
  return asked.priority() == 0 ? classes.GlobalDefault() : nullptr;
}

// Of a job that names a class which exists.
void CheckAgainstClass(const FieldPath& path, const v1::JobSpec& asked, const PriorityClass& known,
                       Findings& findings) {
  if (!known.preempts && asked.preemption_policy() == v1::PREEMPT_LOWER_PRIORITY) {
    findings.Invalid({path, "preemption_policy"},
                     absl::StrCat("priority class ", Quoted(known.name),
                                  " has NEVER; leave it out, or name another class"));
  }
  for (int g = 0; g < asked.groups_size(); ++g) {
    if (!asked.groups(g).has_priority() || asked.groups(g).priority() <= known.value) continue;
    const FieldPath group(path, "groups", g);
    findings.Invalid(
        {group, "priority"},
        absl::StrCat("must be at most the value of priority class ", Quoted(known.name), ", ",
                     known.value, ", is ", asked.groups(g).priority()));
  }
}

}  // namespace

void CheckClasses(const ClusterState& state, const v1::SubmitJobsRequest& request,
                  Findings& findings) {
  const FieldPath root;
  for (int i = 0; i < request.jobs_size(); ++i) {
    const v1::JobSpec& asked = request.jobs(i).spec();
    if (asked.priority_class().empty()) continue;
    const FieldPath job(root, "jobs", i);
    const FieldPath spec(job, "spec");
    const PriorityClass* known = state.priority_classes().Find(asked.priority_class());
    if (known != nullptr) {
      CheckAgainstClass(spec, asked, *known, findings);
    } else {
      findings.Missing({spec, "priority_class"},
                       std::string(NoSuchPriorityClass(state, asked.priority_class()).message()));
    }
  }
}

void TakeClass(const ClusterState& state, const v1::JobSpec& asked,
               std::optional<int32_t> preemptible_below, JobSpec* spec) {
  const PriorityClass* known = PriorityClassOf(state, asked);
  if (known == nullptr) return;
  SetPriority(asked, known->value, preemptible_below, spec);
  spec->priority_class = known->name;
  if (asked.preemption_policy() == v1::PREEMPTION_POLICY_UNSPECIFIED) {
    spec->preempts = known->preempts;
  }
}

void RenderWithEtag(const PriorityClass& from, v1::PriorityClass* out) {
  RenderPriorityClass(from, out);
  out->clear_etag();
  out->set_etag(
      absl::BytesToHexString(FingerprintOf("PriorityClass", *out).substr(0, kClassEtagBytes)));
}

absl::Status CheckClassEtag(const PriorityClass& known, const std::string& etag) {
  v1::PriorityClass now;
  RenderWithEtag(known, &now);
  if (etag.empty() || etag == now.etag()) return absl::OkStatus();
  return absl::AbortedError(absl::StrCat("priority class ", Quoted(known.name),
                                         " has changed: its etag is ", now.etag(), ", not ",
                                         Quoted(etag), "; read it again and retry"));
}

}  // namespace berth
