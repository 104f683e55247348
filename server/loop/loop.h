// The loop: one thread owns the state machine. RPC handlers and agent streams post commands; a turn
// runs them, plans one cycle, and hands one batch to the committer. Messages that result from
// commands and decisions wait in the outbox until their batch is durable:
//
//   Post -> [commands] -> turn: command(turn)* -> PlanCycle -> Apply -> Batch -> Committer
//                                    outbox: acks, dispatch, watch <- (writer thread, group sync)
//
// The Loop itself has no thread and reads no clock but LoopDeps::clock. In production LoopThread
// (server/loop/loop_thread.h) drives it; a simulation drives it turn by turn. It may run ahead of
// the disk by a bounded number of batches. Readers take the reader lock in bounded steps, and
// respond only when the data that they saw is durable (server/reads/read_view.h).
//
// With high availability a loop first follows: it takes over the turns of the server that leads
// (Follow), and runs none of its own before Lead.
#ifndef BERTH_SERVER_LOOP_LOOP_H_
#define BERTH_SERVER_LOOP_LOOP_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "core/engine/plan.h"
#include "core/engine/policies.h"
#include "core/model/cluster_state.h"
#include "server/loop/cycle_budget.h"
#include "server/loop/histogram.h"
#include "server/loop/leadership.h"
#include "server/loop/outbox.h"
#include "server/loop/turn.h"
#include "server/planning/membership.h"
#include "storage/preserved.h"
#include "storage/store.h"
#include "storage/turn_recorder.h"
#include "support/clock.h"

namespace berth {

// Writes batches and reports durability in order. The real one has a thread and groups batches into
// one sync (server/loop/committer.h); a simulation's may be synchronous and inject failures.
class Committer {
 public:
  virtual ~Committer() = default;
  // Never blocks. `on_durable` runs after the batch and all earlier ones are durable.
  virtual void Commit(Batch batch, absl::AnyInvocable<void() &&> on_durable) = 0;
  virtual uint64_t DurableSequence() const = 0;
  // Batches not yet durable: above a bound the loop stops running commands.
  virtual size_t Backlog() const = 0;
  // Empty while writes work; otherwise why new work is refused ("disk full: ...").
  virtual std::string PausedReason() const = 0;
};

// Rows that one step of reading may examine under the lock.
inline constexpr size_t kMaxRowsPerStep = 1000;

struct LoopOptions {
  size_t pending_commands = 65536;    // waiting, by weight; above it new work is refused
  size_t essential_commands = 65536;  // additional room for commands that must not be refused
                                      // lightly
  size_t commands_per_turn = 4096;    // by weight
  size_t backlog_batches = 64;        // handed to the committer and not yet durable
  absl::Duration cycle_target = absl::Milliseconds(50);  // target of the planning budget
  absl::Duration retry_delay = absl::Seconds(1);         // reported with refusals
};

struct LoopDeps {
  Clock* clock = nullptr;
  Committer* committer = nullptr;
  const Policies* policies = nullptr;
  std::string policy_record = {};  // of these policies, for LogTurn.policies; may be empty
  // Until ReleasePolicies, it plans with these and their record; null = with `policies` at once.
  const Policies* held_policies = nullptr;
  std::string held_record = {};
  Preserved* preserved = nullptr;               // as loaded with the state; may be null
  std::function<uint32_t()> store_format = {};  // null: the newest
  // Null: this is the only server. Otherwise the loop follows until Lead.
  Leadership* leadership = nullptr;
};

// Numbers for metrics; running totals unless noted. Thread-safe to read.
struct LoopCounters {
  std::atomic<uint64_t> turns{0}, commands{0}, commands_refused{0}, cycles{0}, cycles_exhausted{0};
  std::atomic<uint64_t> events{0}, decisions{0}, tasks_placed{0}, jobs_considered{0};
  Histogram turn_seconds, cycle_seconds;
  std::atomic<uint64_t> cycle_budget{0};    // of the latest cycle
  std::atomic<size_t> pending_commands{0};  // now, by weight
};

enum class CommandClass : uint8_t {
  kNewWork,    // refused when the queue or the disk is full
  kEssential,  // reports of agents, cancels, silence: may use the reserve, also on a full disk
};

enum class TurnResult : uint8_t {
  kIdle,     // there was nothing to do
  kWorked,   // call again: there may be more
  kBlocked,  // the disk is too far behind; call again when the waker is called
};

class Loop {
 public:
  // `state` is what the store held after batch `revision`. The dependencies outlive the loop; the
  // committer is stopped before the loop is destroyed.
  Loop(LoopDeps deps, ClusterState state, uint64_t revision, LoopOptions options = {});
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  // Queues a command; never blocks on planning or the disk. Thread-safe; may be called from
  // effects. RESOURCE_EXHAUSTED with a retry delay: the command is dropped and will not run.
  // `weight`: approximate number of jobs or tasks that it carries.
  absl::Status Post(Command command, CommandClass command_class = CommandClass::kNewWork,
                    size_t weight = 1);

  Clock& clock() const { return *deps_.clock; }

  // Not thread-safe: before the first turn. Observers outlive the loop.
  void AddObserver(TurnObserver* observer) { observers_.push_back(observer); }
  void AddListener(DurableListener* listener) { outbox_.AddListener(listener); }
  // Called from any thread when RunTurn may have work. Must not block.
  void SetWaker(absl::AnyInvocable<void()> waker) { waker_ = std::move(waker); }

  // Sets the policies of all cycles after the current turn, and has every pending job re-evaluated.
  // Thread-safe.
  void SetPolicies(std::shared_ptr<const Policies> policies, std::string policy_record)
      ABSL_LOCKS_EXCLUDED(queue_mutex_);
  // As SetPolicies with the current ones: from the next turn on, decisions follow from the log
  // without the turns before it. Thread-safe.
  void Replan() ABSL_LOCKS_EXCLUDED(queue_mutex_);
  // From the next turn on the policies that were configured last replace LoopDeps::held_policies.
  // Thread-safe.
  void ReleasePolicies() ABSL_LOCKS_EXCLUDED(queue_mutex_);

  // Takes over a durable turn of the leader: applies its events, and lets observers and listeners
  // know as of a turn of its own. `cold` from the batch. DATA_LOSS: the turn does not fit the
  // state, or gives other records than the leader's; the first does not change the state, and no
  // further turn can be followed. One thread at a time, before Lead.
  struct Followed {
    absl::Status status;
    bool same = true;        // the records are those of the batch
    std::string difference;  // otherwise, where they first differ
  };
  Followed Follow(const Batch& batch) ABSL_LOCKS_EXCLUDED(state_mutex_);
  // Ends following, after the last Follow and on its thread: first commands can be posted that come
  // before all others, then RunTurn runs turns.
  void AcceptCommands() ABSL_LOCKS_EXCLUDED(state_mutex_);
  void Lead() ABSL_LOCKS_EXCLUDED(state_mutex_);
  // It takes no more commands and runs no more turns, for good; queued commands are not answered.
  void Resign() { leads_ = accepts_ = false; }
  // False: it follows. Thread-safe.
  bool leads() const { return leads_.load(); }

  // Runs one turn. One thread at a time, and never from an effect.
  TurnResult RunTurn();
  // True if nothing waits for the disk, or if so much waits for the loop that it should not wait
  // either. Thread-safe.
  bool ShouldNotWait() const ABSL_LOCKS_EXCLUDED(queue_mutex_);
  // Wall time at which RunTurn has work even if nothing is posted. Loop thread.
  Time NextWake() const;

  // Calls look(state, revision) under the reader lock and returns its result. It must examine at
  // most kMaxRowsPerStep rows, keep no pointer into the state, and publish nothing that it saw
  // before `revision` is durable: use ReadView.
  template <class Look>
  auto Read(Look&& look) const ABSL_LOCKS_EXCLUDED(state_mutex_) {
    absl::ReaderMutexLock lock(&state_mutex_);
    return look(state_, revision_);
  }

  // Runs `effect` with OK once all batches up to `revision` are durable: at once, on this thread,
  // if they already are. With UNAVAILABLE if the disk does not keep up.
  // And once this server is known to have led after the call; a loop that follows answers at once.
  void WhenDurable(uint64_t revision, ReaderEffect effect,
                   absl::Duration patience = kDurablePatience);
  // Runs `effect` with OK once this server is known to have led after the call: at once without
  // high availability.
  void WhenLeading(ReaderEffect effect);

  // Gives up on readers that waited for the disk too long. Call about once a second.
  void ExpireReaders() { outbox_.Expire(deps_.clock->Steady()); }

  uint64_t DurableRevision() const { return outbox_.durable(); }
  std::string PausedReason() const { return deps_.committer->PausedReason(); }
  const LoopCounters& counters() const { return counters_; }

 private:
  class ActiveTurn;
  struct Pending {
    Command run;
    size_t weight = 1;
  };
  // Remaining work after the locked part of a turn.
  struct TurnOutput {
    std::vector<Event> events;
    ColdParts cold;
    std::vector<Effect> effects;
    std::optional<Batch> batch;  // absent: nothing changed
  };

  // Policies from SetPolicies, on their way to the loop thread.
  struct NewPolicies {
    std::shared_ptr<const Policies> policies;  // null: the current ones, restarted
    std::string record;
  };

  // Before the turn's cycle.
  void Switch(NewPolicies policies) ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_mutex_);
  void ForgetVerdicts() ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_mutex_);
  std::optional<NewPolicies> TakePolicies() ABSL_LOCKS_EXCLUDED(queue_mutex_);
  std::vector<Pending> TakeCommands() ABSL_LOCKS_EXCLUDED(queue_mutex_);
  // The turn proper: the part under the state lock.
  TurnOutput RunLocked(std::vector<Pending> commands) ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_mutex_);
  bool LogsActors() const {
    return deps_.store_format == nullptr || deps_.store_format() >= kFormatOfActors;
  }
  void RunCycle(ActiveTurn& turn) ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_mutex_);
  void Observe(TurnOutput& output) ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_mutex_);
  void HandOver(TurnOutput output) ABSL_LOCKS_EXCLUDED(state_mutex_);
  void Wake();

  void Begin() ABSL_LOCKS_EXCLUDED(state_mutex_);
  void RecordCold(const TurnOutput& output) ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_mutex_);

  const LoopDeps deps_;
  const LoopOptions options_;
  std::atomic<bool> accepts_, leads_;
  LoopCounters counters_;
  std::vector<TurnObserver*> observers_;
  absl::AnyInvocable<void()> waker_;

  mutable absl::Mutex queue_mutex_;
  std::deque<Pending> queue_ ABSL_GUARDED_BY(queue_mutex_);
  size_t queued_weight_ ABSL_GUARDED_BY(queue_mutex_) = 0;
  std::optional<NewPolicies> new_policies_ ABSL_GUARDED_BY(queue_mutex_);
  bool held_ ABSL_GUARDED_BY(queue_mutex_);  // new_policies_ wait for ReleasePolicies

  mutable absl::Mutex state_mutex_;
  ClusterState state_ ABSL_GUARDED_BY(state_mutex_);
  std::optional<TurnRecorder> recorder_ ABSL_GUARDED_BY(state_mutex_);
  Membership membership_ ABSL_GUARDED_BY(state_mutex_);
  uint64_t revision_ ABSL_GUARDED_BY(state_mutex_);  // of the last turn with a change

  // Loop thread only.
  const Policies* policies_;
  std::shared_ptr<const Policies> owned_policies_;  // owner of policies_, unless it is from
                                                    // LoopDeps
  std::string policy_record_;
  uint64_t sequence_;                  // same as revision_
  std::atomic<uint64_t> handed_over_;  // same as sequence_, for other threads
  Time now_ = absl::InfinitePast();
  Time wake_at_ = absl::InfinitePast();
  bool plan_again_ = true;  // once at the start
  CycleBudget budget_;

  Outbox outbox_;
};

}  // namespace berth

#endif  // BERTH_SERVER_LOOP_LOOP_H_
