#include "server/controllers/fabric_health.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "support/log.h"

namespace berth {
namespace {

constexpr size_t kNamed = 4;  // nodes in a reason

bool AboutLinks(const v1::NodeCondition& condition) { return condition.name() == "infiniband"; }

bool SetByTelemetry(const HyperNodeSpec& spec) {
  return spec.health == DomainHealth::kDegraded && absl::StartsWith(spec.health_reason, kTelemetry);
}

}  // namespace

bool FabricHealth::Due(absl::Duration steady) {
  if (!enabled_) return false;
  int64_t due = due_.load();
  if (due > absl::ToInt64Milliseconds(steady)) return false;
  return due_.compare_exchange_strong(due, absl::ToInt64Milliseconds(steady + kEvery));
}

void FabricHealth::Note(Turn& turn, NodeId node, const v1::NodeConditions& conditions) {
  if (!enabled_) return;
  const auto& all = conditions.conditions();
  const bool bad = std::any_of(all.begin(), all.end(), AboutLinks);
  const auto known = troubles_.find(node);
  if (!bad && (known == troubles_.end() || !known->second.now)) return;
  troubles_[node] = {.now = bad, .last = turn.now()};
  Check(turn);
}

std::map<HyperNodeId, FabricHealth::Count> FabricHealth::CountTroubles(const ClusterState& state,
                                                                       Time now) {
  std::map<HyperNodeId, Count> counts;
  for (auto it = troubles_.begin(); it != troubles_.end();) {
    auto& [id, trouble] = *it;
    const Node* node = state.nodes().Find(id);
    // Nothing more is known of a node that does not answer.
    if (node == nullptr || node->status.state != NodeState::kReady) trouble.now = false;
    if (trouble.now) trouble.last = now;
    if (node == nullptr || trouble.last + kQuiet <= now) {
      it = troubles_.erase(it);
      continue;
    }
    for (HyperNodeId domain : node->domains) {
      Count& count = counts[domain];
      count.quiet = false;
      if (trouble.last + kWindow <= now) continue;
      if (count.lately++ < kNamed) {
        absl::StrAppend(&count.names, count.names.empty() ? "" : ", ", node->spec.name);
      }
    }
    ++it;
  }
  return counts;
}

void FabricHealth::Check(Turn& turn) {
  if (!enabled_) return;
  const Time now = turn.now();
  if (began_ == absl::InfinitePast()) began_ = now;
  const auto counts = CountTroubles(turn.state(), now);
  std::vector<HyperNodeId> looked;
  turn.state().hyper_nodes().ForEach([&](HyperNodeId id, const HyperNode& domain) {
    const bool concerned = counts.contains(id) || SetByTelemetry(domain.spec);
    if (concerned && domain.spec.kind == kNetworkKind) looked.push_back(id);
  });
  for (HyperNodeId id : looked) {
    const auto found = counts.find(id);
    Judge(turn, turn.state().hyper_nodes().At(id), found == counts.end() ? Count{} : found->second);
  }
}

void FabricHealth::Judge(Turn& turn, const HyperNode& domain, const Count& count) {
  const bool many =
      count.lately >= kLeastNodes && count.lately * 100 >= domain.nodes.size() * kPercent;
  if (many && domain.spec.health == DomainHealth::kOk) {
    return Set(turn, domain, true,
               absl::StrCat(kTelemetry, count.lately, " of ", domain.nodes.size(),
                            " nodes have link errors: ", count.names,
                            count.lately > kNamed ? ", ..." : ""));
  }
  const bool ends = count.quiet && began_ + kQuiet <= turn.now();
  if (ends && SetByTelemetry(domain.spec)) Set(turn, domain, false, "");
}

void FabricHealth::Set(Turn& turn, const HyperNode& domain, bool degraded, std::string reason) {
  HyperNodeSpec spec = domain.spec;
  spec.health = degraded ? DomainHealth::kDegraded : DomainHealth::kOk;
  spec.health_reason = std::move(reason);
  const std::string name = spec.name, why = spec.health_reason;
  const absl::Status status = turn.Emit(HyperNodeChanged{domain.id, std::move(spec)});
  LogWarn(degraded ? "a HyperNode is degraded" : "a HyperNode is no longer degraded",
          {{"hyper_node", name}, {"reason", why}, {"status", status}});
}

}  // namespace berth
