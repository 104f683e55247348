// Converts decisions to messages and to the short texts that expectations compare.
#include <algorithm>
#include <utility>

#include "absl/strings/str_join.h"
#include "offline/sim/names.h"
#include "offline/sim/scenario_result.h"
#include "offline/sim/specs.h"
#include "server/convert/job.h"
#include "server/convert/values.h"
#include "support/quantity.h"

namespace berth {
namespace {

using sim::v1::Decision;
using Places = RepeatedPtrField<sim::v1::Place>;

const char* WordFor(ReleaseReason reason) {
  switch (reason) {
    case ReleaseReason::kCancelled:
      return "cancelled";
    case ReleaseReason::kSuspended:
      return "suspended";
    case ReleaseReason::kRestart:
      return "restart";
    case ReleaseReason::kGangBroken:
      return "gang-broken";
    case ReleaseReason::kDrain:
      return "drain";
    case ReleaseReason::kTimeout:
      return "timeout";
    case ReleaseReason::kCompleted:
      return "completed";
    case ReleaseReason::kFailed:
      return "failed";
    case ReleaseReason::kPrepareTimeout:
      return "prepare-timeout";
    case ReleaseReason::kReclaimed:
      return "reclaimed";
    case ReleaseReason::kPreempted:
      return "preempted";
    case ReleaseReason::kConsolidated:
      return "consolidated";
    case ReleaseReason::kGangExpired:
      return "gang-expired";
  }
  return "";
}

std::string NodesIn(const Places& places) {
  std::vector<std::string> names;
  for (const sim::v1::Place& place : places) names.push_back(place.node());
  return absl::StrJoin(CompressPlaces(names), " ");
}

class DecisionConverter {
 public:
  DecisionConverter(const ClusterState& state, Time start) : state_(state), start_(start) {}

  std::vector<Decision> Convert(const TasksBound& event) {
    Decision decision = Of(Decision::BIND, event.job);
    decision.set_gang(event.gang);
    AddPlaces(event.job, event.placements, decision.mutable_places());
    return Say(std::move(decision), "bind");
  }
  std::vector<Decision> Convert(const TasksNominated& event) {
    Decision decision = Of(Decision::NOMINATE, event.job);
    AddPlaces(event.job, event.placements, decision.mutable_places());
    return Say(std::move(decision), "nominate");
  }
  std::vector<Decision> Convert(const TasksUnnominated& event) {
    Decision decision = Of(Decision::UNNOMINATE, event.job);
    AddWhere(event.job, event.tasks, decision.mutable_places());
    return Say(std::move(decision), "unnominate");
  }
  // Separate decisions for tasks that move and tasks that do not.
  std::vector<Decision> Convert(const TasksReleased& event) {
    const bool eviction = IsEviction(event.reason);
    std::vector<uint32_t> moved, rest;
    for (uint32_t task : event.tasks) {
      const bool moves = std::any_of(event.moves_to.begin(), event.moves_to.end(),
                                     [&](const Placement& to) { return to.task == task; });
      (moves ? moved : rest).push_back(task);
    }
    std::vector<Decision> decisions;
    if (!moved.empty()) decisions.push_back(Released(event, Decision::MOVE, moved));
    const Decision::Kind kind = eviction ? Decision::EVICT : Decision::RELEASE;
    if (!rest.empty()) decisions.push_back(Released(event, kind, rest));
    return decisions;
  }
  std::vector<Decision> Convert(const JobReserved& event) {
    const Reservation& reservation = event.reservation;
    const bool none = reservation.places.empty();
    Decision decision = Of(none ? Decision::UNRESERVE : Decision::RESERVE, event.job);
    if (none) return Say(std::move(decision), "unreserve");
    AddPlaces(event.job, reservation.places, decision.mutable_places());
    ToProto(reservation.start - start_, decision.mutable_start());
    if (reservation.end != absl::InfiniteFuture()) {
      ToProto(reservation.end - start_, decision.mutable_end());
    }
    const std::string at = FormatDuration({decision.start().seconds(), decision.start().nanos()});
    decision.set_text(
        absl::StrCat("reserve ", decision.job(), " at ", at, " ", NodesIn(decision.places())));
    return {decision};
  }
  std::vector<Decision> Convert(const TasksPaused& event) {
    Decision decision = Of(Decision::PAUSE, event.job);
    AddWhere(event.job, event.tasks, decision.mutable_places());
    const Job* beneficiary = state_.jobs().Find(event.beneficiary);
    if (beneficiary == nullptr) return {decision};
    decision.set_beneficiary(beneficiary->name);
    decision.set_detail(event.detail);
    decision.set_text(absl::StrCat("pause ", decision.job(), " ", NodesIn(decision.places()),
                                   " for ", beneficiary->name));
    return {decision};
  }
  std::vector<Decision> Convert(const TasksResumed& event) {
    Decision decision = Of(Decision::RESUME, event.job);
    AddWhere(event.job, event.tasks, decision.mutable_places());
    if (event.waits) decision.set_reason("waits");
    return {decision};
  }
  std::vector<Decision> Convert(const TasksStarted& event) {
    Decision decision = Of(Decision::START, event.job);
    AddWhere(event.job, event.tasks, decision.mutable_places());
    return {decision};
  }
  std::vector<Decision> Convert(const TasksRequeued& event) {
    Decision decision = Of(Decision::REQUEUE, event.job);
    const Job& job = state_.jobs().At(event.job);
    for (uint32_t task : event.tasks) decision.add_places()->set_task(TaskNameOf(job, task));
    return {decision};
  }
  std::vector<Decision> Convert(const JobStatusChanged& event) {
    Decision decision = Of(Decision::JOB, event.job);
    decision.set_state(JobStateToApi(event.status.state));
    decision.set_detail(event.status.message);
    return {decision};
  }
  std::vector<Decision> Convert(const JobDeleted& event) {
    return {Of(Decision::DELETE, event.id)};
  }
  std::vector<Decision> Convert(const NodeRefused& event) {
    Decision decision = Of(Decision::NODE, event.job);
    decision.set_node(state_.nodes().At(event.id).spec.name);
    decision.set_reason("refused");
    return {decision};
  }
  std::vector<Decision> Convert(const NodeSteered& event) {
    Decision decision;
    decision.set_kind(Decision::NODE);
    decision.set_node(state_.nodes().At(event.id).spec.name);
    decision.set_reason(event.draining ? "drained" : "cordoned");
    decision.set_detail(event.reason);
    return {decision};
  }
  std::vector<Decision> Convert(const UsageCharged&) {
    Decision decision;
    decision.set_kind(Decision::USAGE);
    return {decision};
  }
  // The rest is never decided by the engine.
  template <class Other>
  std::vector<Decision> Convert(const Other&) {
    return {};
  }

 private:
  Decision Of(Decision::Kind kind, JobId id) {
    Decision decision;
    decision.set_kind(kind);
    const Job* job = state_.jobs().Find(id);
    if (job != nullptr) decision.set_job(job->name);
    return decision;
  }

  void AddPlaces(JobId id, const std::vector<Placement>& placements, Places* places) {
    std::vector<Placement> sorted = placements;
    std::sort(sorted.begin(), sorted.end(),
              [](const Placement& a, const Placement& b) { return a.task < b.task; });
    for (const Placement& one : sorted) AddPlace(id, one, places);
  }
  void AddPlace(JobId id, const Placement& placement, Places* places) {
    const Node& node = state_.nodes().At(placement.node);
    sim::v1::Place* place = places->Add();
    place->set_task(TaskNameOf(state_.jobs().At(id), placement.task));
    place->set_node(node.spec.name);
    RenderUuids(node, placement.devices, place->mutable_devices());
  }
  // Where the tasks are now.
  void AddWhere(JobId id, std::vector<uint32_t> tasks, Places* places) {
    std::sort(tasks.begin(), tasks.end());
    for (uint32_t task : tasks) {
      const Task& now = state_.jobs().At(id).tasks[task];
      AddPlace(id, {task, now.node, now.devices}, places);
    }
  }

  Decision Released(const TasksReleased& event, Decision::Kind kind,
                    const std::vector<uint32_t>& tasks) {
    Decision decision = Of(kind, event.job);
    AddWhere(event.job, tasks, decision.mutable_places());
    decision.set_reason(WordFor(event.reason));
    decision.set_detail(event.detail);
    decision.set_requeue(event.requeue);
    const Job* beneficiary = state_.jobs().Find(event.beneficiary);
    if (beneficiary != nullptr) decision.set_beneficiary(beneficiary->name);
    std::string text = absl::StrCat(kind == Decision::MOVE    ? "move "
                                    : kind == Decision::EVICT ? "evict "
                                                              : "release ",
                                    decision.job(), " ", NodesIn(decision.places()));
    if (kind == Decision::MOVE) {
      AddPlaces(event.job, event.moves_to, decision.mutable_moves_to());
      absl::StrAppend(&text, " to ", NodesIn(decision.moves_to()));
    }
    if (beneficiary != nullptr) absl::StrAppend(&text, " for ", beneficiary->name);
    decision.set_text(absl::StrCat(text, " ", decision.reason()));
    return decision;
  }

  std::vector<Decision> Say(Decision decision, const char* verb) {
    decision.set_text(absl::StrCat(verb, " ", decision.job(), decision.places().empty() ? "" : " ",
                                   NodesIn(decision.places())));
    return {std::move(decision)};
  }

  const ClusterState& state_;
  const Time start_;
};

}  // namespace

std::vector<Decision> DecisionMessages(const ClusterState& before, const EventBody& decision,
                                       Time start) {
  DecisionConverter converter(before, start);
  return std::visit([&](const auto& body) { return converter.Convert(body); }, decision);
}

}  // namespace berth
