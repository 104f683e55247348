// Finds policies by name. The list is in registry.cc.
#ifndef BERTH_CORE_POLICIES_REGISTRY_H_
#define BERTH_CORE_POLICIES_REGISTRY_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/engine/policies.h"

namespace berth {

// A new policy of that plug point (Action, NodeFilter, NodeScore or JobOrder) and name, or null.
template <class Point>
std::unique_ptr<Point> MakePolicy(absl::string_view name);

// All names at that plug point, sorted.
template <class Point>
std::vector<std::string> PolicyNames();

// Built-in policies, each defined in the file of the same name.
std::unique_ptr<Action> MakeAllocate();
std::unique_ptr<Action> MakeBackfill();
std::unique_ptr<Action> MakeConsolidate();
std::unique_ptr<Action> MakeReclaim();
std::unique_ptr<Action> MakePreempt();
std::unique_ptr<Action> MakeRotate();
std::unique_ptr<Action> MakeMigrate();
std::unique_ptr<Action> MakeExpireGangs();
std::unique_ptr<NodeFilter> MakeResourcesFilter();
std::unique_ptr<NodeFilter> MakeNodeSelectorFilter();
std::unique_ptr<NodeFilter> MakeTaintsFilter();
std::unique_ptr<NodeScore> MakeBestFitScore();
std::unique_ptr<NodeScore> MakeReliableFirstScore();
std::unique_ptr<NodeScore> MakeImageLocalityScore();
std::unique_ptr<JobOrder> MakePriorityThenSubmitOrder();
std::unique_ptr<JobOrder> MakeShortestFirstOrder();
std::unique_ptr<JobOrder> MakeShortestRemainingOrder();
std::unique_ptr<JobOrder> MakeSmallestAreaOrder();
std::unique_ptr<JobOrder> MakeLeastAttainedOrder();

}  // namespace berth

#endif  // BERTH_CORE_POLICIES_REGISTRY_H_
