// The loop: one thread owns the state machine. RPC handlers and agent streams post commands; a turn runs them, plans
// one cycle, and hands one batch to the committer. What commands and decisions want to tell the world waits in the
// outbox until their batch is durable:
//
//   Post -> [commands] -> Turn: command(turn)* -> PlanCycle -> Apply -> Batch -> Committer (writer thread, group sync)
//                                                                                  -> outbox: acks, watch, dispatch
//
// The Loop itself has no thread and reads no clock but Deps::clock: LoopThread (server/loop_thread.h) drives it for
// real, a simulation drives it turn by turn. Readers of the state take the reader lock in bounded steps, and answer
// only when what they saw is durable (server/read_view.h).
#ifndef BERTH_SERVER_LOOP_H_
#define BERTH_SERVER_LOOP_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "core/engine/plan.h"
#include "core/engine/policies.h"
#include "core/model/apply.h"
#include "core/model/cluster_state.h"
#include "storage/store.h"
#include "support/clock.h"

namespace berth {

// What a command may do. Lives on the loop thread for one turn.
class Turn {
 public:
  virtual ~Turn() = default;
  virtual const ClusterState& state() const = 0;
  virtual Time now() const = 0;
  // Sequence of the batch that will carry this turn: the revision of everything it changes.
  virtual uint64_t revision() const = 0;
  // Applies the event and puts it into the turn's batch. On an error nothing has changed.
  virtual absl::Status Emit(EventBody event) = 0;
  // A record besides those that the events change: cold job parts, answers to request ids.
  virtual void Put(Record record) = 0;
  // Runs once the batch is durable, in the order given, on the outbox thread. Must not block.
  virtual void OnDurable(absl::AnyInvocable<void() &&> effect) = 0;
};

using Command = absl::AnyInvocable<void(Turn&) &&>;

// Writes batches and reports durability in order. The real one has a thread and groups batches into one sync
// (server/committer.h); a simulation's may be synchronous and fail at will.
class Committer {
 public:
  virtual ~Committer() = default;
  // Never blocks. `on_durable` runs after the batch and all before it are durable.
  virtual void Commit(Batch batch, absl::AnyInvocable<void() &&> on_durable) = 0;
  virtual uint64_t DurableSequence() const = 0;
  // Batches handed in and not yet durable: the loop stops taking commands above a bound.
  virtual size_t Backlog() const = 0;
  // Empty while writing works; else why new work is refused ("disk full: ...").
  virtual std::string PausedReason() const = 0;
};

// Told, on the outbox thread and in order, what became durable.
class DurableListener {
 public:
  virtual ~DurableListener() = default;
  // `turn` is the encoded store.v1.LogTurn; `events` are the same, decoded.
  virtual void OnTurnDurable(uint64_t revision, std::shared_ptr<const std::vector<Event>> events,
                             std::shared_ptr<const std::string> turn) = 0;
};

}  // namespace berth

#endif  // BERTH_SERVER_LOOP_H_
