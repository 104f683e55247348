#include "server/loop/loop.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "core/base/check.h"
#include "core/model/state_editor.h"
#include "storage/keys.h"
#include "support/errors.h"
#include "support/log.h"

namespace berth {

// One turn in progress: the effects of its commands and decisions.
class Loop::ActiveTurn final : public Turn {
 public:
  ActiveTurn(ClusterState& state, TurnRecorder& recorder, Membership& membership,
             const Policies& policies, uint64_t revision, Time now, TurnOutput& output)
      : state_(state),
        recorder_(recorder),
        membership_(membership),
        policies_(policies),
        revision_(revision),
        now_(now),
        output_(output) {}

  const ClusterState& state() const override { return state_; }
  Time now() const override { return now_; }
  uint64_t revision() const override { return revision_; }
  uint64_t seen() const override { return output_.events.empty() ? revision_ - 1 : revision_; }
  const Policies& policies() const override { return policies_; }

  ClusterState& Trial() override { return state_; }

  void By(Actor actor) override { recorder_.By(std::move(actor)); }
  void LogCommand() override { recorder_.LogCommand(); }

  absl::Status Emit(EventBody body) override {
    output_.events.push_back({now_, std::move(body)});
    absl::Status status = recorder_.Apply(output_.events.back());
    if (!status.ok()) {
      output_.events.pop_back();
    } else if (const auto* node = std::get_if<NodeRegistered>(&output_.events.back().body)) {
      registered_.push_back(node->id);
    }
    return status;
  }

  // Records a decision that planning has already applied (PlanAndAdopt).
  void Tell(EventBody body) {
    output_.events.push_back({now_, std::move(body)});
    recorder_.NoteApplied(output_.events.back());
  }

  Membership& membership() override { return membership_; }

  // Nodes that the commands registered join the HyperNodes that claim them, all at once.
  void PlaceRegistered() {
    if (registered_.empty()) return;
    for (EventBody& event : membership_.Follow(state_, registered_)) {
      BERTH_CHECK(Emit(std::move(event)).ok());
    }
    registered_.clear();
  }

  void UndoSubmits(JobId first) override {
    recorder_.UndoSubmits(first);
    while (!output_.cold.empty() && output_.cold.back().first >= first) output_.cold.pop_back();
    const auto taken_back = [&](const Event& event) {
      const auto* submitted = std::get_if<JobSubmitted>(&event.body);
      return submitted != nullptr && submitted->id >= first;
    };
    while (!output_.events.empty() && taken_back(output_.events.back())) output_.events.pop_back();
  }

  void Put(Record record) override { recorder_.Put(std::move(record)); }

  void UseNewestFormat() override { recorder_.UseNewestFormat(); }

  void PutCold(JobId job, ColdPart part) override {
    recorder_.PutCold(job, *part);
    output_.cold.emplace_back(job, std::move(part));
  }

  void OnDurable(Effect effect) override { output_.effects.push_back(std::move(effect)); }

 private:
  ClusterState& state_;
  TurnRecorder& recorder_;
  Membership& membership_;
  const Policies& policies_;
  const uint64_t revision_;
  const Time now_;
  TurnOutput& output_;
  std::vector<NodeId> registered_;
};

Loop::Loop(LoopDeps deps, ClusterState state, uint64_t revision, LoopOptions options)
    : deps_(std::move(deps)),
      options_(options),
      accepts_(deps_.leadership == nullptr),
      leads_(accepts_.load()),
      held_(deps_.held_policies != nullptr),
      state_(std::move(state)),
      revision_(revision),
      policies_(held_ ? deps_.held_policies : deps_.policies),
      policy_record_(held_ ? deps_.held_record : deps_.policy_record),
      sequence_(revision),
      handed_over_(revision),
      budget_(options.cycle_target),
      outbox_(revision) {
  if (held_) {
    const auto not_ours = [](const Policies*) {};
    new_policies_ =
        NewPolicies{std::shared_ptr<const Policies>(deps_.policies, not_ours), deps_.policy_record};
  }
  Begin();
}

Loop::~Loop() = default;

// As a process that has just loaded the state.
void Loop::Begin() {
  absl::MutexLock lock(&state_mutex_);
  recorder_.emplace(state_, deps_.preserved);
  recorder_->NotePolicies(policy_record_);
}

absl::Status Loop::Post(Command command, CommandClass command_class, size_t weight) {
  if (!accepts_.load()) return absl::UnavailableError("this server does not lead the cluster");
  const bool essential = command_class == CommandClass::kEssential;
  std::string refusal = essential ? "" : PausedReason();
  const size_t room = options_.pending_commands + (essential ? options_.essential_commands : 0);
  bool was_empty = false;
  if (refusal.empty()) {
    absl::MutexLock lock(&queue_mutex_);
    was_empty = queue_.empty();
    if (was_empty || queued_weight_ + weight <= room) {
      queue_.push_back({std::move(command), weight});
      queued_weight_ += weight;
    } else {
      refusal = "too many requests are waiting already";
    }
  }
  if (!refusal.empty()) {
    ++counters_.commands_refused;
    return RetryLaterError(absl::StatusCode::kResourceExhausted, refusal, options_.retry_delay);
  }
  if (was_empty) Wake();
  return absl::OkStatus();
}

bool Loop::ShouldNotWait() const {
  if (outbox_.durable() >= handed_over_.load()) return true;
  absl::MutexLock lock(&queue_mutex_);
  return queued_weight_ >= options_.commands_per_turn;
}

TurnResult Loop::RunTurn() {
  if (!leads()) return TurnResult::kIdle;
  if (sequence_ - outbox_.durable() >= options_.backlog_batches) return TurnResult::kBlocked;
  std::vector<Pending> commands = TakeCommands();
  std::optional<NewPolicies> policies = TakePolicies();
  if (policies.has_value()) plan_again_ = true;
  now_ = std::max(now_, deps_.clock->Now());
  if (commands.empty() && !plan_again_ && now_ < wake_at_) return TurnResult::kIdle;

  const absl::Duration begin = deps_.clock->Steady();
  TurnOutput output;
  {
    absl::MutexLock lock(&state_mutex_);
    if (policies.has_value()) Switch(*std::move(policies));
    output = RunLocked(std::move(commands));
  }
  HandOver(std::move(output));
  ++counters_.turns;
  counters_.turn_seconds.Observe(deps_.clock->Steady() - begin);
  return TurnResult::kWorked;
}

void Loop::SetPolicies(std::shared_ptr<const Policies> policies, std::string policy_record) {
  {
    absl::MutexLock lock(&queue_mutex_);
    new_policies_ = NewPolicies{std::move(policies), std::move(policy_record)};
  }
  Wake();
}

void Loop::Replan() {
  {
    absl::MutexLock lock(&queue_mutex_);
    if (!new_policies_.has_value()) new_policies_ = NewPolicies{};
  }
  Wake();
}

void Loop::ReleasePolicies() {
  {
    absl::MutexLock lock(&queue_mutex_);
    held_ = false;
  }
  Wake();
}

std::optional<Loop::NewPolicies> Loop::TakePolicies() {
  absl::MutexLock lock(&queue_mutex_);
  if (held_) return std::nullopt;
  return std::exchange(new_policies_, std::nullopt);
}

// From here planning uses only the facts and what the recorder notes here, so that a replay can
// begin with this turn.
void Loop::Switch(NewPolicies policies) {
  if (policies.policies != nullptr) {
    owned_policies_ = std::move(policies.policies);
    policies_ = owned_policies_.get();
    policy_record_ = std::move(policies.record);
  }
  recorder_->NotePolicies(policy_record_);
  ForgetVerdicts();
}

void Loop::ForgetVerdicts() {
  StateEditor editor(state_);
  editor.ForgetVerdicts();
  editor.ForgetMissed();
}

std::vector<Loop::Pending> Loop::TakeCommands() {
  std::vector<Pending> taken;
  absl::MutexLock lock(&queue_mutex_);
  for (size_t weight = 0; !queue_.empty() && weight < options_.commands_per_turn;) {
    weight += queue_.front().weight;
    queued_weight_ -= queue_.front().weight;
    taken.push_back(std::move(queue_.front()));
    queue_.pop_front();
  }
  counters_.pending_commands = queued_weight_;
  return taken;
}

Loop::TurnOutput Loop::RunLocked(std::vector<Pending> commands) {
  TurnOutput output;
  recorder_->Begin(sequence_ + 1, now_, LogsActors());
  ActiveTurn turn(state_, *recorder_, membership_, *policies_, sequence_ + 1, now_, output);
  size_t weight = 0;
  for (const Pending& command : commands) weight += command.weight;
  output.events.reserve(weight);
  for (Pending& command : commands) {
    std::move(command.run)(turn);
    recorder_->EndActor();
  }
  turn.PlaceRegistered();
  counters_.commands += commands.size();

  const bool plan = !output.events.empty() || plan_again_ || now_ >= wake_at_;
  if (plan) RunCycle(turn);
  counters_.events += output.events.size();

  output.batch = recorder_->Finish();
  if (output.batch.has_value()) {
    BERTH_CHECK(output.batch->sequence == sequence_ + 1);
    revision_ = ++sequence_;
    Observe(output);
  }
  return output;
}

// A decision that Apply refuses is a bug of the planner: continuing would act on a wrong plan.
void Loop::RunCycle(ActiveTurn& turn) {
  const uint64_t budget = budget_.Get();
  const absl::Duration begin = deps_.clock->Steady();
  Plan plan = PlanAndAdopt(state_, *policies_, now_, budget);
  const absl::Duration elapsed = deps_.clock->Steady() - begin;
  budget_.Note(plan.counters.work, elapsed);
  recorder_->NoteCycle(budget, plan.counters.work);
  const size_t decisions = plan.decisions.size();
  for (EventBody& decision : plan.decisions) {
    if (plan.applied) {
      turn.Tell(std::move(decision));
      continue;
    }
    const size_t kind = decision.index();
    const absl::Status status = turn.Emit(std::move(decision));
    if (status.ok()) continue;
    LogError("the planner made an impossible decision", {{"decision", kind}, {"error", status}});
    FlushLog();
    BERTH_CHECK(status.ok());
  }
  plan_again_ = plan.exhausted || decisions > 0;
  wake_at_ = plan.wake_at;
  ++counters_.cycles;
  counters_.cycles_exhausted += plan.exhausted ? 1 : 0;
  counters_.decisions += decisions;
  counters_.tasks_placed += plan.counters.tasks_placed;
  counters_.jobs_considered += plan.counters.jobs_considered;
  counters_.cycle_seconds.Observe(elapsed);
  counters_.cycle_budget = budget;
}

void Loop::Observe(TurnOutput& output) {
  for (TurnObserver* observer : observers_) {
    Effect effect = observer->OnTurnApplied(state_, output.events, output.cold);
    if (effect != nullptr) output.effects.push_back(std::move(effect));
  }
}

// The outbox gets the turn before the committer does, because a committer may finish at once.
void Loop::HandOver(TurnOutput output) {
  Outbox::Entry entry{.revision = sequence_, .effects = std::move(output.effects)};
  if (!output.batch.has_value()) {
    if (!entry.effects.empty()) outbox_.Add(std::move(entry));
    return;
  }
  entry.events = std::make_shared<const std::vector<Event>>(std::move(output.events));
  entry.turn = std::make_shared<const std::string>(output.batch->log);
  outbox_.Add(std::move(entry));
  handed_over_ = sequence_;
  deps_.committer->Commit(std::move(*output.batch), [this, sequence = sequence_] {
    outbox_.NoteDurable(sequence);
    Wake();
  });
}

// `wake_at_` is wall clock time, and the clock may jump: LoopThread checks at least once a second.
Time Loop::NextWake() const {
  if (!leads()) return absl::InfiniteFuture();
  return plan_again_ ? absl::InfinitePast() : wake_at_;
}

void Loop::WhenDurable(uint64_t revision, ReaderEffect effect, absl::Duration patience) {
  if (deps_.leadership == nullptr || !leads()) {
    return outbox_.WhenDurable(revision, std::move(effect), patience);
  }
  deps_.leadership->Confirm(
      [this, revision, effect = std::move(effect), patience](absl::Status led) mutable {
        if (!led.ok()) return std::move(effect)(std::move(led));
        outbox_.WhenDurable(revision, std::move(effect), patience);
      });
}

void Loop::WhenLeading(ReaderEffect effect) {
  if (deps_.leadership == nullptr) return std::move(effect)(absl::OkStatus());
  deps_.leadership->Confirm(std::move(effect));
}

void Loop::Wake() {
  if (waker_ != nullptr) waker_();
}

}  // namespace berth
