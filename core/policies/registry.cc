#include "core/policies/registry.h"

#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace berth {
namespace {

// Keyed by plug point, so that a filter and a score may share a name. Ordered, because errors list
// it.
using Registry = std::map<std::pair<size_t, std::string>, PolicyFactory>;

Registry BuiltIn() {
  Registry registry;
  const auto add = [&registry](const char* name, PolicyFactory factory) {
    registry.emplace(std::pair(factory.index(), std::string(name)), factory);
  };
  add("allocate", &MakeAllocate);
  add("backfill", &MakeBackfill);
  add("consolidate", &MakeConsolidate);
  add("reclaim", &MakeReclaim);
  add("preempt", &MakePreempt);
  add("rotate", &MakeRotate);
  add("migrate", &MakeMigrate);
  add("expire_gangs", &MakeExpireGangs);
  add("resources/devices", &MakeResourcesFilter);
  add("node_selector", &MakeNodeSelectorFilter);
  add("taints", &MakeTaintsFilter);
  add("reliable_first", &MakeReliableFirstScore);
  add("image_locality", &MakeImageLocalityScore);
  add("best_fit", &MakeBestFitScore);
  add("priority_then_submit", &MakePriorityThenSubmitOrder);
  add("shortest_first", &MakeShortestFirstOrder);
  add("shortest_remaining", &MakeShortestRemainingOrder);
  add("smallest_area", &MakeSmallestAreaOrder);
  add("least_attained", &MakeLeastAttainedOrder);
  return registry;
}

Registry& TheRegistry() {
  static Registry& registry = *new Registry(BuiltIn());
  return registry;
}

template <class Point>
using Factory = std::unique_ptr<Point> (*)();

}  // namespace

template <class Point>
std::unique_ptr<Point> MakePolicy(absl::string_view name) {
  const PolicyFactory any = Factory<Point>{};
  const auto found = TheRegistry().find(std::pair(any.index(), std::string(name)));
  if (found == TheRegistry().end()) return nullptr;
  return std::get<Factory<Point>>(found->second)();
}

template <class Point>
std::vector<std::string> PolicyNames() {
  const PolicyFactory any = Factory<Point>{};
  std::vector<std::string> names;
  for (const auto& [key, factory] : TheRegistry()) {
    if (key.first == any.index()) names.push_back(key.second);
  }
  return names;
}

template std::unique_ptr<Action> MakePolicy<Action>(absl::string_view);
template std::unique_ptr<NodeFilter> MakePolicy<NodeFilter>(absl::string_view);
template std::unique_ptr<NodeScore> MakePolicy<NodeScore>(absl::string_view);
template std::unique_ptr<JobOrder> MakePolicy<JobOrder>(absl::string_view);
template std::vector<std::string> PolicyNames<Action>();
template std::vector<std::string> PolicyNames<NodeFilter>();
template std::vector<std::string> PolicyNames<NodeScore>();
template std::vector<std::string> PolicyNames<JobOrder>();

absl::Status RegisterPolicy(absl::string_view name, PolicyFactory factory) {
  if (!TheRegistry().emplace(std::pair(factory.index(), std::string(name)), factory).second) {
    return absl::AlreadyExistsError(absl::StrCat("a policy named \"", name, "\" is registered"));
  }
  return absl::OkStatus();
}

}  // namespace berth
