#include "server/services/explain_service.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/engine/explain/dry_run.h"
#include "core/engine/explain/explain.h"
#include "server/access/permit_submit.h"
#include "server/commands/submission.h"
#include "server/convert/explain.h"
#include "server/validation/no_such.h"
#include "support/log.h"

namespace berth {
namespace {

// Queries cost as much as a thousand ordinary commands, and more. So only few of them run in one
// turn (LoopOptions::commands_per_turn), and refused ones do not delay the others. Explaining takes
// many dry runs.
constexpr size_t kQuestionWeight = 1000;
constexpr size_t kExplainWeight = 4000;

// Violations of a submit of one job, as fields of a request that has a `job`.
absl::Status AsFieldsOfJob(const absl::Status& status) {
  std::vector<Violation> violations = ViolationsOf(status);
  if (violations.empty()) return status;
  for (Violation& violation : violations) {
    constexpr absl::string_view kFirst = "jobs[0]";
    if (absl::StartsWith(violation.field, kFirst)) violation.field.replace(0, kFirst.size(), "job");
  }
  return ViolationsError(status.code(), violations);
}

// Refuses as SubmitJobs does, or plans the job as if it had just been submitted.
absl::Status PlanNow(Turn& turn, Rights& rights, const v1::SubmitJobsRequest& submit,
                     Submission& submission, v1::PlanJobResponse& response) {
  absl::Status permitted = PermitSubmit(turn.state(), rights, Rpc::kExplainServicePlanJob, submit);
  if (!permitted.ok()) return permitted;
  if (absl::Status status = submission.Check(turn.state(), &rights); !status.ok()) {
    return AsFieldsOfJob(status);
  }
  const JobSpec spec = submission.TakeOnly(turn.state());
  const absl::StatusOr<DryRunResult> plan = DryRun(turn.Trial(), turn.policies(), spec, turn.now());
  if (!plan.ok()) {  // as in Submission: Check and Apply disagree, which is a bug of Berth
    LogError("a validated job cannot be planned", {{"error", plan.status()}});
    return absl::InternalError(absl::StrCat("the job was refused: ", plan.status().message(),
                                            "; this is a bug in berthd"));
  }
  RenderPlan(turn.state(), spec, *plan, &response);
  Show(turn.state(), rights, spec.queue, &response);
  return absl::OkStatus();
}

absl::Status ExplainByName(Turn& turn, Rights& rights, const std::string& name,
                           v1::ExplainJobResponse& response) {
  const Job* found = turn.state().FindJob(name);
  if (found == nullptr) return NoSuchJob(turn.state(), rights, name);
  absl::Status permitted =
      PermitOnJob(turn.state(), rights, Rpc::kExplainServiceExplainJob, *found);
  if (!permitted.ok()) return permitted;
  const JobId id = found->id;
  const Explanation explanation = Explain(turn.Trial(), turn.policies(), id, turn.now());
  const Job& job = turn.state().jobs().At(id);
  RenderExplanation(turn.state(), job, explanation, &response);
  Show(turn.state(), rights, job, &response);
  return absl::OkStatus();
}

absl::Status EstimateByName(Turn& turn, Rights& rights, const std::string& name,
                            v1::EstimateJobResponse& response) {
  const Job* found = turn.state().FindJob(name);
  if (found == nullptr) return NoSuchJob(turn.state(), rights, name);
  absl::Status permitted =
      PermitOnJob(turn.state(), rights, Rpc::kExplainServiceEstimateJob, *found);
  if (!permitted.ok()) return permitted;
  RenderEstimate(EstimateStart(turn.Trial(), turn.policies(), found->id, turn.now()), &response);
  return absl::OkStatus();
}

}  // namespace

grpc::ServerUnaryReactor* ExplainService::ExplainJob(grpc::CallbackServerContext* context,
                                                     const v1::ExplainJobRequest* request,
                                                     v1::ExplainJobResponse* response) {
  Reply<v1::ExplainJobResponse> reply(context, response);
  grpc::ServerUnaryReactor* reactor = reply.reactor();
  Ask(context_,
      context_.CallOf(Rpc::kExplainServiceExplainJob, *context,
                      absl::StrCat("job/", request->job())),
      std::move(reply), kExplainWeight,
      [request](Turn& turn, Rights& rights, v1::ExplainJobResponse& answer) {
        return ExplainByName(turn, rights, request->job(), answer);
      });
  return reactor;
}

grpc::ServerUnaryReactor* ExplainService::PlanJob(grpc::CallbackServerContext* context,
                                                  const v1::PlanJobRequest* request,
                                                  v1::PlanJobResponse* response) {
  Reply<v1::PlanJobResponse> reply(context, response);
  grpc::ServerUnaryReactor* reactor = reply.reactor();
  auto submit = std::make_unique<v1::SubmitJobsRequest>();  // the submission points to it
  *submit->add_jobs() = request->job();
  const Call call = context_.CallOf(Rpc::kExplainServicePlanJob, *context);
  if (!Enter(context_, call, reply)) return reactor;
  Rights rights(call.caller);
  ReadView view(*context_.loop);
  absl::Status permitted = AdmitIn(context_, view, call);
  if (permitted.ok()) {
    permitted = view.Step(
        [&](const ClusterState& state) { return PermitSubmit(state, rights, call.rpc, *submit); });
  }
  if (!permitted.ok()) {
    reply.Finish(permitted);
    return reactor;
  }
  absl::StatusOr<CheckedSubmission> checked =
      CheckSubmission(view, *submit, context_.LimitsNow(), context_.store->Format(), &rights);
  if (!checked.ok()) {
    reply.Finish(AsFieldsOfJob(checked.status()));
    return reactor;
  }
  Submission submission(*std::move(checked), context_.limits, context_.defaults->Get());
  Ask(context_, call, std::move(reply), kQuestionWeight,
      [submit = std::move(submit), submission = std::move(submission)](
          Turn& turn, Rights& now, v1::PlanJobResponse& answer) mutable {
        return PlanNow(turn, now, *submit, submission, answer);
      });
  return reactor;
}

grpc::ServerUnaryReactor* ExplainService::EstimateJob(grpc::CallbackServerContext* context,
                                                      const v1::EstimateJobRequest* request,
                                                      v1::EstimateJobResponse* response) {
  Reply<v1::EstimateJobResponse> reply(context, response);
  grpc::ServerUnaryReactor* reactor = reply.reactor();
  Ask(context_,
      context_.CallOf(Rpc::kExplainServiceEstimateJob, *context,
                      absl::StrCat("job/", request->job())),
      std::move(reply), kQuestionWeight,
      [request](Turn& turn, Rights& rights, v1::EstimateJobResponse& answer) {
        return EstimateByName(turn, rights, request->job(), answer);
      });
  return reactor;
}

}  // namespace berth
