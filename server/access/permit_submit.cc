#include "server/access/permit_submit.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "server/convert/job.h"
#include "server/validation/findings.h"
#include "server/validation/text.h"

namespace berth {
namespace {

absl::Status PermitSubmitTo(const ClusterState& state, Rights& rights, Rpc rpc, const Queue& queue,
                            const std::string& on_behalf_of) {
  absl::Status status = PermitOnQueue(state, rights, rpc, queue);
  if (!status.ok() || on_behalf_of.empty()) return status;
  return PermitVerb(state, rights, Verb::kSubmitFor, queue.id,
                    absl::StrCat("submit jobs to queue ", Quoted(queue.spec.name), " for user ",
                                 Quoted(on_behalf_of)));
}

}  // namespace

absl::Status ValidateOnBehalfOf(const v1::SubmitJobsRequest& request) {
  Findings findings;
  const FieldPath root;
  if (!request.on_behalf_of().empty() && !IsAccessName(request.on_behalf_of())) {
    findings.Invalid({root, "on_behalf_of"},
                     "must be 1 to 253 bytes without quotes, backslashes and control characters");
  }
  return findings.ToStatus();
}

absl::Status PermitSubmit(const ClusterState& state, Rights& rights, Rpc rpc,
                          const v1::SubmitJobsRequest& request) {
  const Queue* permitted = nullptr;  // the last one
  for (const v1::Job& job : request.jobs()) {
    const Queue* queue = state.FindQueue(QueueNameOf(job.spec()));
    if (queue == nullptr || queue == permitted) continue;
    absl::Status status = PermitSubmitTo(state, rights, rpc, *queue, request.on_behalf_of());
    if (!status.ok()) return status;
    permitted = queue;
  }
  return absl::OkStatus();
}

}  // namespace berth
