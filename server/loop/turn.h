// What a command may do, and who learns of it. A turn is one iteration of the loop
// (server/loop/loop.h).
#ifndef BERTH_SERVER_LOOP_TURN_H_
#define BERTH_SERVER_LOOP_TURN_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "core/access/actor.h"
#include "core/engine/policies.h"
#include "core/model/cluster_state.h"
#include "core/model/event.h"
#include "server/planning/membership.h"
#include "storage/store.h"

namespace berth {

using Effect = absl::AnyInvocable<void() &&>;

// The cold part of a job (server/convert/cold.h), shared by the batch that carries it and
// the cache that launches from it.
using ColdPart = std::shared_ptr<const std::string>;
using ColdParts = std::vector<std::pair<JobId, ColdPart>>;  // by id

// What a command may do. Lives on the loop thread for one turn.
class Turn {
 public:
  virtual ~Turn() = default;
  virtual const ClusterState& state() const = 0;
  // Wall time of the turn; never before that of the previous turn.
  virtual Time now() const = 0;
  // Sequence of the batch that will carry this turn: the revision of everything it changes.
  virtual uint64_t revision() const = 0;
  // Revision of the newest change that the command sees: this one, or the previous one.
  virtual uint64_t seen() const = 0;
  // The policies of this turn's cycle.
  virtual const Policies& policies() const = 0;
  // The state for queries (core/engine/explain/dry_run.h, explain.h). They must leave it unchanged,
  // including planning's memory. A query alone causes neither a cycle nor a batch. Changes to the
  // cluster go through Emit.
  virtual ClusterState& Trial() = 0;
  // Who causes what the command changes from here on; forgotten before the next command. Without a
  // call nobody does: reports of agents, and what the server does by itself.
  virtual void By(Actor actor) = 0;
  // Logs the command with its actor, even if it changes nothing.
  virtual void LogCommand() = 0;
  // Applies the event and adds it to the turn's batch. On an error nothing has changed. Nodes that
  // registered join their HyperNodes automatically before the turn's cycle.
  virtual absl::Status Emit(EventBody event) = 0;
  // Resolves the nodes of this state's HyperNodes.
  virtual Membership& membership() = 0;
  // Undoes the submission of the command's jobs, from `first` on. Since then it must have emitted
  // and put nothing but their cold parts.
  virtual void UndoSubmits(JobId first) = 0;
  // A record besides those that the events change: responses to request ids.
  virtual void Put(Record record) = 0;
  // Upgrades the store to the newest format once the turn is durable.
  virtual void UseNewestFormat() = 0;
  // The cold part of a job that this turn submitted; required exactly once per JobSubmitted.
  virtual void PutCold(JobId job, ColdPart cold) = 0;
  // Runs once everything that the command may have seen or changed is durable, in order, one effect
  // at a time, without a lock. Must not block.
  virtual void OnDurable(Effect effect) = 0;
};

using Command = absl::AnyInvocable<void(Turn&) &&>;

// Sees each turn that changed something, on the loop thread and under the state lock, after its
// last event was applied. Returns what to do (or nullptr) once the turn is durable. So messages
// reflect the decision, even if the loop has run ahead since.
class TurnObserver {
 public:
  virtual ~TurnObserver() = default;
  virtual Effect OnTurnApplied(const ClusterState& state, absl::Span<const Event> events,
                               const ColdParts& cold) = 0;
};

// Gets durable turns, in order and one at a time. Runs after the turn's effects.
class DurableListener {
 public:
  virtual ~DurableListener() = default;
  // `turn` is the encoded store.v1.LogTurn; `events` are the same, decoded.
  virtual void OnTurnDurable(uint64_t revision, std::shared_ptr<const std::vector<Event>> events,
                             std::shared_ptr<const std::string> turn) = 0;
};

}  // namespace berth

#endif  // BERTH_SERVER_LOOP_TURN_H_
