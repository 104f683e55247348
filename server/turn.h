// What a command may do, and who is told of it. A turn is one round of the loop (server/loop.h).
#ifndef BERTH_SERVER_TURN_H_
#define BERTH_SERVER_TURN_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "core/engine/policies.h"
#include "core/model/cluster_state.h"
#include "core/model/event.h"
#include "server/planning/membership.h"
#include "storage/store.h"

namespace berth {

using Effect = absl::AnyInvocable<void() &&>;

// The cold part of a job (server/convert_cold.h), shared by the batch that carries it and
// the cache that launches from it.
using ColdPart = std::shared_ptr<const std::string>;
using ColdParts = std::vector<std::pair<JobId, ColdPart>>;  // by id

// What a command may do. Lives on the loop thread for one turn.
class Turn {
 public:
  virtual ~Turn() = default;
  virtual const ClusterState& state() const = 0;
  // Wall time of the turn; never before that of the turn before.
  virtual Time now() const = 0;
  // Sequence of the batch that will carry this turn: the revision of everything it changes.
  virtual uint64_t revision() const = 0;
  // That of the newest change the command sees: the same, or the one before.
  virtual uint64_t seen() const = 0;
  // Those of this turn's cycle.
  virtual const Policies& policies() const = 0;
  // The state for questions (core/engine/dry_run.h, explain.h), which leave it as it was, what
  // planning remembers included: for the question's sake the turn has neither a cycle nor a batch.
  // What changes the cluster goes through Emit.
  virtual ClusterState& Trial() = 0;
  // Applies the event and puts it into the turn's batch. On an error nothing has changed. Nodes
  // that registered join their HyperNodes before the turn's cycle, by themselves.
  virtual absl::Status Emit(EventBody event) = 0;
  // Which nodes the HyperNodes of this state mean.
  virtual Membership& membership() = 0;
  // The jobs that the command has submitted, from `first` on, never were. It has emitted and put
  // nothing else since but their cold parts.
  virtual void TakeBackJobs(JobId first) = 0;
  // A record besides those that the events change: answers to request ids.
  virtual void Put(Record record) = 0;
  // The store's format is the newest once the turn is durable.
  virtual void UseNewestFormat() = 0;
  // The cold part of a job that this turn submitted; due exactly once per JobSubmitted.
  virtual void PutCold(JobId job, ColdPart cold) = 0;
  // Runs once all that the command may have seen or changed is durable, in the order given, one
  // effect at a time, with no lock held. Must not block.
  virtual void OnDurable(Effect effect) = 0;
};

using Command = absl::AnyInvocable<void(Turn&) &&>;

// Looks at each turn that changed something, on the loop thread and under the state lock, after
// its last event was applied, and returns what is to be done (or nullptr) once the turn is durable.
// So what is told to the world is what was decided, even when the loop has run ahead since.
class TurnObserver {
 public:
  virtual ~TurnObserver() = default;
  virtual Effect OnTurnApplied(const ClusterState& state, absl::Span<const Event> events,
                               const ColdParts& cold) = 0;
};

// Told, in order and one at a time, what became durable. Runs after the turn's effects.
class DurableListener {
 public:
  virtual ~DurableListener() = default;
  // `turn` is the encoded store.v1.LogTurn; `events` are the same, decoded.
  virtual void OnTurnDurable(uint64_t revision, std::shared_ptr<const std::vector<Event>> events,
                             std::shared_ptr<const std::string> turn) = 0;
};

}  // namespace berth

#endif  // BERTH_SERVER_TURN_H_
