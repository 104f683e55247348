#include "server/access/nearest_name.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "server/validation/no_such.h"
#include "server/validation/text.h"
#include "support/nearest.h"

namespace berth {
namespace {

constexpr absl::string_view kLettersOfNames = "abcdefghijklmnopqrstuvwxyz0123456789-.";

// At most as different as NearestWord allows.
bool IsOfNearLength(absl::string_view name, absl::string_view other) {
  const size_t longer = std::max(name.size(), other.size());
  const size_t shorter = std::min(name.size(), other.size());
  return longer - shorter <= std::max<size_t>(1, name.size() / 3);
}

// `shown(name)`: an object has that name, and the caller may see it. `each(use)`: calls use(name)
// for every object; called if there are few.
using Shown = absl::FunctionRef<bool(const std::string&)>;
using Use = absl::FunctionRef<void(const std::string&)>;
using Each = absl::FunctionRef<void(Use)>;

std::string NearestOf(absl::string_view name, size_t objects, Shown shown, Each each) {
  if (name.empty() || name.size() > kMaxGuessedName) return "";
  const std::string lower = absl::AsciiStrToLower(name);
  std::vector<std::string> found;
  if (lower != name && shown(lower)) return lower;
  ForEachNeighbor(lower, [&](const std::string& other) {
    if (other != name && shown(other)) found.push_back(other);
  });
  if (found.empty() && objects <= kMostCompared) {
    each([&](const std::string& other) {
      if (other != name && IsOfNearLength(name, other) && shown(other)) found.push_back(other);
    });
  }
  std::sort(found.begin(), found.end());
  return NearestWord(name, found);
}

template <class Id, class Object, class NameOfObject>
std::string NearestIn(const IdMap<Id, Object>& objects, absl::string_view name, Shown shown,
                      NameOfObject name_of) {
  return NearestOf(name, objects.size(), shown, [&](Use use) {
    objects.ForEach([&](Id, const Object& object) { use(name_of(object)); });
  });
}

absl::Status WithNearest(const absl::Status& status, absl::string_view nearest) {
  return absl::Status(status.code(), absl::StrCat(status.message(), DidYouMean(nearest)));
}

}  // namespace

void ForEachNeighbor(absl::string_view name, absl::FunctionRef<void(const std::string&)> found) {
  for (size_t i = 0; i <= name.size(); ++i) {
    const std::string before(name.substr(0, i));
    const std::string after(name.substr(i));
    for (const char letter : kLettersOfNames)
      found(absl::StrCat(before, std::string(1, letter), after));
    if (after.empty()) break;
    found(absl::StrCat(before, after.substr(1)));
    for (const char letter : kLettersOfNames) {
      if (letter == after[0]) continue;
      found(absl::StrCat(before, std::string(1, letter), after.substr(1)));
    }
    if (after.size() < 2 || after[0] == after[1]) continue;
    found(absl::StrCat(before, after.substr(1, 1), after.substr(0, 1), after.substr(2)));
  }
}

std::string DidYouMean(absl::string_view nearest) {
  return nearest.empty() ? "" : absl::StrCat("; did you mean ", Quoted(nearest), "?");
}

std::string NearestQueue(const ClusterState& state, Rights& rights, Verb verb,
                         absl::string_view name) {
  const auto shown = [&](const std::string& other) {
    const Queue* queue = state.FindQueue(other);
    return queue != nullptr && queue->id != kRootQueue && rights.OnQueue(state, verb, queue->id);
  };
  return NearestIn(state.queues(), name, shown,
                   [](const Queue& queue) -> const std::string& { return queue.spec.name; });
}

std::string NearestPriorityClass(const ClusterState& state, absl::string_view name) {
  const PriorityClasses& classes = state.priority_classes();
  const auto shown = [&](const std::string& other) { return classes.Find(other) != nullptr; };
  return NearestOf(name, classes.all().size(), shown, [&](Use use) {
    for (const auto& [other, unused] : classes.all()) use(other);
  });
}

absl::Status NoSuchJob(const ClusterState& state, Rights& rights, absl::string_view name) {
  const auto shown = [&](const std::string& other) {
    const Job* job = state.FindJob(other);
    return job != nullptr && rights.OnJob(state, Verb::kListJobs, *job);
  };
  return WithNearest(NoSuchJob(name),
                     NearestIn(state.jobs(), name, shown,
                               [](const Job& job) -> const std::string& { return job.name; }));
}

absl::Status NoSuchQueue(const ClusterState& state, Rights& rights, absl::string_view name) {
  return WithNearest(NoSuchQueue(name), NearestQueue(state, rights, Verb::kReadQueue, name));
}

absl::Status NoSuchNode(const ClusterState& state, Rights& rights, absl::string_view name) {
  if (!rights.OnCluster(state, Verb::kReadCluster)) return NoSuchNode(name);
  const auto shown = [&](const std::string& other) { return state.FindNode(other) != nullptr; };
  return WithNearest(NoSuchNode(name), NearestIn(state.nodes(), name, shown,
                                                 [](const Node& node) -> const std::string& {
                                                   return node.spec.name;
                                                 }));
}

absl::Status NoSuchHyperNode(const ClusterState& state, Rights& rights, absl::string_view name) {
  if (!rights.OnCluster(state, Verb::kReadCluster)) return NoSuchHyperNode(name);
  const auto shown = [&](const std::string& other) {
    return state.FindHyperNode(other) != nullptr;
  };
  return WithNearest(
      NoSuchHyperNode(name),
      NearestIn(state.hyper_nodes(), name, shown,
                [](const HyperNode& domain) -> const std::string& { return domain.spec.name; }));
}

absl::Status NoSuchPriorityClass(const ClusterState& state, absl::string_view name) {
  return absl::NotFoundError(absl::StrCat("there is no priority class ", Quoted(name),
                                          DidYouMean(NearestPriorityClass(state, name))));
}

}  // namespace berth
