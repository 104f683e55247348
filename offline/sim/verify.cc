#include "offline/sim/verify.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "berth/config/v1/config.pb.h"
#include "berth/store/v1/store.pb.h"
#include "core/engine/plan.h"
#include "core/engine/policies.h"
#include "core/model/apply.h"
#include "core/model/state_editor.h"
#include "offline/sim/output.h"
#include "offline/sim/reload.h"
#include "server/planning/policy_record.h"
#include "storage/codec.h"
#include "storage/load.h"
#include "support/proto_time.h"
#include "support/version.h"
#include "support/visible_message.h"

namespace berth {
namespace {

constexpr size_t kTurnsPerRead = 256;

// As stored in the log: equal decisions are equal messages.
store::v1::LogEvent MessageOf(const EventBody& decision) {
  store::v1::LogEvent message;
  EncodeEvent({.time = absl::UnixEpoch(), .body = decision}, absl::UnixEpoch(), &message);
  return message;
}

// A version without epochs logged none.
bool Equal(const EventBody& logged, EventBody planned) {
  const auto* bound = std::get_if<TasksBound>(&logged);
  auto* again = std::get_if<TasksBound>(&planned);
  if (bound != nullptr && again != nullptr && bound->epoch == 0) again->epoch = 0;
  return logged.index() == planned.index() &&
         MessageOf(logged).SerializeAsString() == MessageOf(planned).SerializeAsString();
}

// Names for the ids in a decision, which may be invalid.
struct Names {
  const ClusterState& state;
  std::vector<std::string>* names;

  void Add(JobId id) const {
    if (const Job* job = state.jobs().Find(id)) names->push_back(absl::StrCat("job ", job->name));
  }
  void Add(const std::vector<Placement>& places) const {
    std::set<NodeId> named;
    for (const Placement& place : places) {
      const Node* node = state.nodes().Find(place.node);
      if (node == nullptr || !named.insert(place.node).second) continue;
      names->push_back(absl::StrCat("node ", place.node.value, " = ", node->spec.name));
    }
  }
  template <class Body>
  void operator()([[maybe_unused]] const Body& body) const {
    if constexpr (requires { body.job.value; }) Add(body.job);
    if constexpr (requires { body.placements; }) Add(body.placements);
    if constexpr (requires { body.moves_to; }) Add(body.moves_to);
    if constexpr (requires { body.reservation; }) Add(body.reservation.places);
  }
};

std::string TextOf(const ClusterState& state, const EventBody& decision) {
  std::vector<std::string> names;
  std::visit(Names{state, &names}, decision);
  std::string text = MessageOf(decision).ShortDebugString();
  if (!names.empty()) absl::StrAppend(&text, " (", absl::StrJoin(names, ", "), ")");
  return text;
}

absl::StatusOr<Policies> PoliciesOf(const LoggedTurn& turn) {
  config::v1::Server record;
  if (!record.ParseFromString(turn.policies)) {
    return absl::DataLossError(
        absl::StrCat("log ", turn.sequence, ": no valid record of policies"));
  }
  absl::StatusOr<Policies> policies = Policies::Create(PolicyConfigFrom(record));
  if (policies.ok()) return policies;
  return absl::FailedPreconditionError(absl::StrCat(
      "log ", turn.sequence,
      " was planned with policies that this program does not have: ", policies.status().message()));
}

// Replays the cycles of a log, one turn after the other.
class Replay {
 public:
  Replay(std::unique_ptr<ClusterState> state, uint64_t base) : state_(std::move(state)) {
    result_.set_base(base);
  }

  absl::Status Take(const LoggedTurn& turn);
  bool differs() const { return result_.has_difference(); }
  sim::v1::VerifyResult& result() { return result_; }

 private:
  absl::Status RestorePlanningState(const LoggedTurn& turn);
  void Forget();
  void Remember(const Remembered& remembered);
  absl::Status Apply(absl::Span<const Event> events, uint64_t sequence);
  void Run(const LoggedTurn& turn, const QuietCycle& cycle, absl::Span<const Event> logged);

  std::unique_ptr<ClusterState> state_;
  std::optional<Policies> policies_;  // nullopt: no turn has recorded them yet
  std::string version_;
  sim::v1::VerifyResult result_;
};

absl::Status Replay::Take(const LoggedTurn& turn) {
  if (turn.events_before_cycle > turn.events.size()) {
    return absl::DataLossError(absl::StrCat("log ", turn.sequence, ": a cycle after its end"));
  }
  if (!turn.policies.empty()) {
    if (absl::Status status = RestorePlanningState(turn); !status.ok()) return status;
    if (result_.first_turn() == 0) result_.set_first_turn(turn.sequence);
  }
  if (policies_.has_value()) {
    for (const QuietCycle& cycle : turn.quiet_cycles) {
      Run(turn, cycle, {});
      if (differs()) return absl::OkStatus();
    }
  }
  const bool has_cycle = turn.cycle_budget > 0;
  const auto events = absl::MakeConstSpan(turn.events);
  const size_t before = has_cycle ? turn.events_before_cycle : events.size();
  if (absl::Status status = Apply(events.first(before), turn.sequence); !status.ok()) return status;
  if (policies_.has_value()) {
    result_.set_turns(result_.turns() + 1);
    result_.set_last_turn(turn.sequence);
  }
  if (policies_.has_value() && has_cycle) {
    Run(turn, {.time = turn.time, .budget = turn.cycle_budget}, events.subspan(before));
    if (differs()) return absl::OkStatus();
  }
  absl::Status status = Apply(events.subspan(before), turn.sequence);
  state_->StampDirty(turn.sequence);
  state_->TakeDirty();
  return status;
}

// Restores what planning knew then, besides the facts.
absl::Status Replay::RestorePlanningState(const LoggedTurn& turn) {
  absl::StatusOr<Policies> policies = PoliciesOf(turn);
  if (!policies.ok()) return policies.status();
  policies_ = *std::move(policies);
  if (turn.loaded) {
    version_ = turn.version;
    auto loaded = std::make_unique<ClusterState>();
    if (absl::Status status = LoadInOrder(*state_, loaded.get()); !status.ok()) return status;
    state_ = std::move(loaded);
  }
  if (turn.remembered.has_value()) Remember(*turn.remembered);
  return absl::OkStatus();
}

// Likewise in the loop.
void Replay::Forget() {
  StateEditor editor(*state_);
  editor.ForgetVerdicts();
  editor.ForgetMissed();
}

// At the start of the replay, all jobs that may be unsettled are unsettled.
void Replay::Remember(const Remembered& remembered) {
  Forget();
  StateEditor editor(*state_);
  editor.PassTime(remembered.passed_time);
  const auto& still = remembered.unsettled;
  const std::vector<JobId> unsettled(state_->unsettled().begin(), state_->unsettled().end());
  for (JobId job : unsettled) {
    if (!std::binary_search(still.begin(), still.end(), job)) editor.Settle(job);
  }
}

absl::Status Replay::Apply(absl::Span<const Event> events, uint64_t sequence) {
  for (const Event& event : events) {
    const absl::Status status = berth::Apply(*state_, event);
    if (status.ok()) continue;
    return absl::DataLossError(
        absl::StrCat("log ", sequence, ": an impossible event: ", status.message()));
  }
  return absl::OkStatus();
}

void Replay::Run(const LoggedTurn& turn, const QuietCycle& cycle, absl::Span<const Event> logged) {
  const Plan plan = PlanCycle(*state_, *policies_, cycle.time, cycle.budget);
  result_.set_cycles(result_.cycles() + 1);
  size_t same = 0;
  while (same < logged.size() && same < plan.decisions.size() &&
         Equal(logged[same].body, plan.decisions[same])) {
    ++same;
  }
  result_.set_decisions(result_.decisions() + same);
  if (same == logged.size() && same == plan.decisions.size()) return;
  sim::v1::Difference& difference = *result_.mutable_difference();
  difference.set_turn(turn.sequence);
  ToProto(cycle.time, difference.mutable_time());
  difference.set_position(static_cast<uint32_t>(same + 1));
  if (same < logged.size()) difference.set_logged(TextOf(*state_, logged[same].body));
  if (same < plan.decisions.size()) {
    difference.set_planned(TextOf(*state_, plan.decisions[same]));
  }
  if (version_ != kBerthVersion) difference.set_version(version_);
}

std::string Table(const sim::v1::VerifyResult& result) {
  std::string text =
      absl::StrCat(result.turns(), " turns (", result.first_turn(), " to ", result.last_turn(),
                   "), ", result.cycles(), " cycles, ", result.decisions(), " decisions: equal");
  if (!result.has_difference()) return text + "\n";
  const sim::v1::Difference& difference = result.difference();
  const absl::Time time = absl::FromUnixSeconds(difference.time().seconds()) +
                          absl::Nanoseconds(difference.time().nanos());
  const auto text_of = [](const std::string& decision) {
    return decision.empty() ? "nothing (any more)" : decision.c_str();
  };
  absl::StrAppend(&text, ", then a difference\nturn ", difference.turn(), ", cycle at ",
                  absl::FormatTime(time, absl::UTCTimeZone()), ", decision ", difference.position(),
                  "\n  in the log  ", text_of(difference.logged()), "\n  planned     ",
                  text_of(difference.planned()), "\n");
  if (!difference.version().empty()) {
    absl::StrAppend(&text, "the log was written by berthd ", difference.version(), ", this is ",
                    kBerthVersion, "\n");
  }
  return text;
}

}  // namespace

absl::StatusOr<sim::v1::VerifyResult> VerifyLog(Store& store) {
  auto state = std::make_unique<ClusterState>();
  const absl::StatusOr<uint64_t> base = LoadEarliest(store, *state);
  if (!base.ok()) return base.status();
  Replay replay(std::move(state), *base);
  for (uint64_t after = *base; after < store.LastSequence() && !replay.differs();) {
    const absl::StatusOr<std::vector<LogEntry>> entries = store.ReadLog(after, kTurnsPerRead);
    if (!entries.ok()) return entries.status();
    for (const LogEntry& entry : *entries) {
      const absl::StatusOr<LoggedTurn> turn = DecodeTurn(entry.turn);
      if (!turn.ok()) return turn.status();
      if (absl::Status status = replay.Take(*turn); !status.ok()) return status;
      if (replay.differs()) break;
      after = entry.sequence;
    }
  }
  if (replay.result().first_turn() == 0 && store.LastSequence() > 0) {
    return absl::NotFoundError(
        absl::StrCat("no turn after ", *base, " records the policies of its planning"));
  }
  return std::move(replay.result());
}

std::string PrintedVerify(const sim::v1::VerifyResult& result, absl::string_view format) {
  return format == "table" ? Table(VisibleCopy(result)) : PrintedMessage(result, format);
}

}  // namespace berth
