// Incidents: what happened to a job that its policies may answer. Derived from the state.
#ifndef BERTH_CORE_ENGINE_LIFECYCLE_INCIDENTS_H_
#define BERTH_CORE_ENGINE_LIFECYCLE_INCIDENTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/engine/lifecycle/steps.h"

namespace berth {

inline constexpr uint32_t kWholeJob = UINT32_MAX;  // as DelayedAction::task

struct Incident {
  PolicyEvent event;
  uint32_t group;  // or kWholeJob
  uint32_t task;   // or kWholeJob
  // From the matching policy.
  PolicyAction action = PolicyAction::kIgnore;
  Duration after = absl::ZeroDuration();
  std::optional<Time> due = std::nullopt;  // of the delayed action that represents it
};

// Those of a job that has places; otherwise only evictions and waits. What explains others comes
// first.
std::vector<Incident> Incidents(const Look& look);

// Binding or running.
bool Placed(const Job& job);
// The job itself caused it: a restart uses a retry.
bool OwnDoing(const Incident& incident);
// Something went wrong: policies on any event apply.
bool IsFault(PolicyEvent event);
// For people, such as "worker-3 exited with 137 on n3".
std::string MessageOf(const Look& look, const Incident& incident);

}  // namespace berth

#endif  // BERTH_CORE_ENGINE_LIFECYCLE_INCIDENTS_H_
