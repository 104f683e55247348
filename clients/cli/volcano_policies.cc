#include "clients/cli/volcano_policies.h"

#include <algorithm>
#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "support/nearest.h"

namespace berth {
namespace {

using volcano::v1::Policy;

struct EventName {
  const char* volcano;
  v1::LifecyclePolicy::Event berth;
};
constexpr EventName kEvents[] = {
    {"*", v1::LifecyclePolicy::ANY},
    {"PodFailed", v1::LifecyclePolicy::TASK_FAILED},
    {"TaskFailed", v1::LifecyclePolicy::TASK_FAILED},
    {"PodEvicted", v1::LifecyclePolicy::TASK_EVICTED},
    {"PodPending", v1::LifecyclePolicy::TASK_PENDING},
    {"TaskCompleted", v1::LifecyclePolicy::TASK_COMPLETED},
};

// Volcano's "task" is Berth's group, its "pod" Berth's task.
struct ActionName {
  const char* volcano;
  v1::LifecyclePolicy::Action berth;
};
constexpr ActionName kActions[] = {
    {"AbortJob", v1::LifecyclePolicy::ABORT},
    {"TerminateJob", v1::LifecyclePolicy::ABORT},
    {"CompleteJob", v1::LifecyclePolicy::COMPLETE},
    {"RestartJob", v1::LifecyclePolicy::RESTART_JOB},
    {"RestartTask", v1::LifecyclePolicy::RESTART_GROUP},
    {"RestartPod", v1::LifecyclePolicy::RESTART_TASK},
    {"RestartPartition", v1::LifecyclePolicy::RESTART_PARTITION},
};

template <class Entry, size_t n>
const Entry* FindName(const Entry (&entries)[n], const std::string& name) {
  const auto* found =
      std::find_if(entries, entries + n, [&](const Entry& e) { return e.volcano == name; });
  return found == entries + n ? nullptr : found;
}

template <class Entry, size_t n>
std::vector<std::string> EntryNames(const Entry (&entries)[n]) {
  std::vector<std::string> names;
  for (const Entry& entry : entries) names.emplace_back(entry.volcano);
  return names;
}

constexpr char kAnyEvent[] = "*";

std::vector<std::string> EventsOf(const Policy& policy) {
  std::vector<std::string> events(policy.events().begin(), policy.events().end());
  if (!policy.event().empty()) events.push_back(policy.event());
  return events;
}

// "PodFailed" for "TaskFailed", which means the same here.
std::string FirstNameOf(const std::string& event) {
  const EventName* known = FindName(kEvents, event);
  if (known == nullptr) return event;
  for (const EventName& one : kEvents) {
    if (one.berth == known->berth) return one.volcano;
  }
  return event;
}

class PolicyConverter {
 public:
  PolicyConverter(ForeignDocument& document,
                  google::protobuf::RepeatedPtrField<v1::LifecyclePolicy>& out)
      : document_(document), out_(out) {}

  void Convert(const std::string& path, const Policy& in) {
    std::vector<std::string> events = EventsOf(in);
    if (!events.empty() && in.has_exit_code())
      document_.Error(path, "a policy has an event or an exitCode, not both");
    if (in.has_exit_code()) {
      Claim(path, absl::StrCat("exitCode ", in.exit_code()));
      if (in.exit_code() == 0) document_.Error(path, "exitCode 0 is not a failure");
      if (events.empty()) events.emplace_back("PodFailed");
    } else {
      for (const std::string& event : events) Claim(path, FirstNameOf(event));
    }
    if (events.empty()) document_.Error(path, "a policy needs an event or an exitCode");
    for (const std::string& event : events) ConvertOne(path, event, in, out_.Add());
  }

  // "*" covers all other events, also those of policies that come later.
  void CheckAny() {
    const auto any = claimed_.find(kAnyEvent);
    if (any == claimed_.end()) return;
    for (const auto& [what, path] : claimed_) {
      if (what != kAnyEvent && what.find(' ') == std::string::npos) {
        document_.Error(path, absl::StrCat("the policy on ", what,
                                           " contradicts the one on \"*\", which covers it"));
      }
    }
  }

 private:
  // Volcano takes one policy for each event.
  void Claim(const std::string& path, const std::string& what) {
    if (claimed_.emplace(what, path).second) return;
    document_.Error(path, absl::StrCat("a second policy on ", what, " contradicts the first"));
  }

  void ConvertOne(const std::string& path, const std::string& event, const Policy& in,
                  v1::LifecyclePolicy* out) {
    const EventName* known_event = FindName(kEvents, event);
    const ActionName* known_action = FindName(kActions, in.action());
    if (known_event == nullptr)
      document_.Error(path, UnknownWord("unsupported event", event, EntryNames(kEvents)));
    if (known_action == nullptr)
      document_.Error(path, UnknownWord("unsupported action", in.action(), EntryNames(kActions)));
    if (known_event != nullptr) out->set_event(known_event->berth);
    if (known_action != nullptr) out->set_action(known_action->berth);
    if (in.has_exit_code()) out->add_exit_codes(in.exit_code());
    if (in.timeout().empty()) return;
    const absl::StatusOr<SecondsAndNanos> timeout = ParseDuration(in.timeout());
    if (!timeout.ok())
      return document_.Error(path + ".timeout",
                             absl::StrCat("timeout: ", timeout.status().message()));
    out->mutable_after()->set_seconds(timeout->seconds);
    out->mutable_after()->set_nanos(timeout->nanos);
  }

  ForeignDocument& document_;
  google::protobuf::RepeatedPtrField<v1::LifecyclePolicy>& out_;
  std::map<std::string, std::string> claimed_;  // events and exit codes, and their paths
};

}  // namespace

void ConvertVolcanoPolicies(const std::string& path, const VolcanoPolicies& in,
                            ForeignDocument* document,
                            google::protobuf::RepeatedPtrField<v1::LifecyclePolicy>* out) {
  PolicyConverter converter(*document, *out);
  for (int i = 0; i < in.size(); ++i) converter.Convert(absl::StrCat(path, "[", i, "]"), in[i]);
  converter.CheckAny();
}

bool HandlesFailures(const VolcanoPolicies& policies) {
  for (const Policy& policy : policies) {
    if (policy.has_exit_code()) return true;
    for (const std::string& event : EventsOf(policy)) {
      if (event == kAnyEvent || event == "PodFailed" || event == "TaskFailed") return true;
    }
  }
  return false;
}

}  // namespace berth
