#include "server/convert/shares.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/engine/shares/fair_share.h"
#include "server/convert/values.h"

namespace berth {
namespace {

// `top` and all below it.
std::vector<QueueId> InTreeOrder(const ClusterState& state, const Queue& top) {
  std::vector<QueueId> order;
  std::vector<const Queue*> next = {&top};
  while (!next.empty()) {
    const Queue* queue = next.back();
    next.pop_back();
    order.push_back(queue->id);
    const auto first = static_cast<std::ptrdiff_t>(next.size());
    for (const QueueId child : queue->children) next.push_back(&state.queues().At(child));
    std::sort(next.begin() + first, next.end(),
              [](const Queue* a, const Queue* b) { return a->spec.name > b->spec.name; });
  }
  return order;
}

// Cpu and memory, then the others by name: the order of interned kinds is arbitrary.
std::vector<ResourceKind> KindsByName(const Interner& interner) {
  std::vector<ResourceKind> kinds;
  for (size_t i = 0; i < interner.kind_count(); ++i) kinds.push_back({static_cast<uint8_t>(i)});
  std::sort(kinds.begin() + 2, kinds.end(), [&](ResourceKind a, ResourceKind b) {
    return interner.KindName(a) < interner.KindName(b);
  });
  return kinds;
}

// Of `kinds`, those that some queue deserves. Other kinds have no owner, and cannot be borrowed.
std::vector<ResourceKind> DeservedKinds(const ClusterState& state,
                                        const std::vector<ResourceKind>& kinds) {
  Resources deserved;
  state.queues().ForEach([&](QueueId, const Queue& queue) { deserved += queue.deserved; });
  std::vector<ResourceKind> some;
  for (const ResourceKind kind : kinds) {
    if (deserved[kind] > 0) some.push_back(kind);
  }
  return some;
}

// Common to all queues.
struct Context {
  const ClusterState& state;
  bool past_counts = false;
  std::vector<ResourceKind> kinds;
  std::vector<ResourceKind> deserved;  // of these
  std::string NameOf(ResourceKind kind) const { return state.interner().KindName(kind); }
};

// One queue, and the reasons for its shares. core/engine/shares/fair_share.h has the rules.
class Reasons {
 public:
  Reasons(const Context& context, const Queue& queue, const QueueShares& shares)
      : context_(context), queue_(queue), shares_(shares) {}

  // Resources with the same reason are named together.
  std::vector<std::string> Words() const {
    if (queue_.id == kRootQueue) return {"the root: the capacity of the ready nodes"};
    std::vector<std::pair<std::string, std::vector<std::string>>> bounds;
    for (const ResourceKind kind : context_.kinds) {
      if (!HasPart(kind)) continue;
      const std::string bound = BoundOf(kind);
      auto same = std::find_if(bounds.begin(), bounds.end(),
                               [&](const auto& one) { return one.first == bound; });
      if (same == bounds.end()) {
        bounds.push_back({bound, {}});
        same = std::prev(bounds.end());
      }
      same->second.push_back(context_.NameOf(kind));
    }
    std::vector<std::string> words;
    for (const auto& [bound, names] : bounds) {
      words.push_back(absl::StrCat("fair share of ", absl::StrJoin(names, ", "), " ", bound));
    }
    if (shares_.share.deserved_scaled) {
      words.emplace_back("deserved is scaled down: siblings deserve more than exists");
    }
    AddLoans(&words);
    AddWaiting(&words);
    return words;
  }

 private:
  bool HasPart(ResourceKind kind) const {
    return shares_.share.demand[kind] > 0 || shares_.share.deserved[kind] > 0;
  }

  std::string BoundOf(ResourceKind kind) const {
    const int64_t fair = shares_.share.fair_share[kind];
    const int64_t demand = shares_.share.demand[kind];
    const int64_t deserved = shares_.share.deserved[kind];
    if (fair > demand) return "set aside by guarantee";
    if (fair == demand) return "bounded by demand";
    if (fair >= queue_.limit[kind]) return "bounded by limit";
    if (fair < deserved) return "below deserved: its parent does not have enough for all";
    if (fair > deserved) return absl::StrCat("beyond deserved ", Merit());
    if (queue_.spec.weight == 0) return "bounded by deserved: weight 0 takes no more";
    return "bounded by deserved: nothing is left beyond";
  }

  // How the amount beyond deserved is divided.
  std::string Merit() const {
    return absl::StrCat("by priority ", queue_.spec.priority, " and weight ", queue_.spec.weight,
                        context_.past_counts ? ", less for past usage" : "");
  }

  std::string NamesOf(const Resources& amounts) const {
    std::vector<std::string> names;
    for (const ResourceKind kind : context_.deserved) {
      if (amounts[kind] > 0) names.push_back(context_.NameOf(kind));
    }
    return absl::StrJoin(names, ", ");
  }

  void AddLoans(std::vector<std::string>* words) const {
    if (const std::string names = NamesOf(shares_.borrowed); !names.empty()) {
      words->push_back(absl::StrCat("borrows ", names,
                                    queue_.spec.reclaimable
                                        ? ", which may be reclaimed"
                                        : ", which is not reclaimed (reclaimable: false)"));
    }
    if (const std::string names = NamesOf(shares_.lent); !names.empty()) {
      words->push_back(absl::StrCat("lends ", names));
    }
  }

  // Why actions made no room for the first pending job that they tried.
  void AddWaiting(std::vector<std::string>* words) const {
    const PendingIndex& pending = context_.state.pending();
    const auto found = pending.short_of_room().find(queue_.id);
    if (found == pending.short_of_room().end()) return;
    const auto& [key, first] = *found->second.begin();
    for (const RoomAsked& asked : pending.Class(first).blocked->asked) {
      words->push_back(absl::StrCat(asked.action, " made no room for job ",
                                    context_.state.jobs().At(key.job).name, ": ", asked.barred));
    }
  }

  const Context& context_;
  const Queue& queue_;
  const QueueShares& shares_;
};

void RenderDominant(const Context& context, const Queue& queue, const QueueShares& shares,
                    v1::QueueShares* out) {
  const Resources entitled = Entitlement(queue, shares.share);
  Share largest;
  for (const ResourceKind kind : context.kinds) {
    if (shares.allocated[kind] <= 0) continue;
    const Share share{.part = shares.allocated[kind], .whole = entitled[kind]};
    if (Compare(share, largest) <= 0) continue;
    largest = share;
    out->set_dominant_resource(context.NameOf(kind));
  }
  out->set_dominant_share(largest.whole <= 0 ? -1
                                             : static_cast<double>(largest.part) /
                                                   static_cast<double>(largest.whole));
}

void RenderOne(const Context& context, const QueueShares& shares, v1::QueueShares* out) {
  const ClusterState& state = context.state;
  const Queue& queue = state.queues().At(shares.queue);
  const Interner& interner = state.interner();
  out->set_queue(queue.spec.name);
  if (queue.spec.parent != kRootQueue) {
    out->set_parent(state.queues().At(queue.spec.parent).spec.name);
  }
  ToProto(shares.allocated, interner, out->mutable_allocated());
  ToProto(shares.share.guarantee, interner, out->mutable_guarantee());
  ToProto(shares.share.deserved, interner, out->mutable_deserved());
  ToProto(shares.share.fair_share, interner, out->mutable_fair_share());
  ToProto(shares.share.demand, interner, out->mutable_demand());
  ToProto(shares.borrowed, interner, out->mutable_borrowed());
  ToProto(shares.lent, interner, out->mutable_lent());
  if (!queue.spec.limit.empty()) ToProto(queue.spec.limit, out->mutable_limit());
  out->set_deserved_scaled(shares.share.deserved_scaled);
  RenderDominant(context, queue, shares, out);
  for (std::string& words : Reasons(context, queue, shares).Words()) {
    out->add_why(std::move(words));
  }
}

}  // namespace

absl::Status RenderShares(const ClusterState& state, const FairShareParameters& parameters,
                          const Queue& top, bool with_root, v1::ListQueueSharesResponse* out) {
  std::vector<QueueId> order = InTreeOrder(state, top);
  if (top.id == kRootQueue && !with_root) order.erase(order.begin());
  if (order.size() > kMaxListedShares) {
    return absl::FailedPreconditionError(
        absl::StrCat("these are ", order.size(), " queues; at most ", kMaxListedShares,
                     " are listed at once: name a queue with a smaller subtree"));
  }
  const std::vector<QueueShares> all = QueueSharesOf(state, FairSharesOf(state, parameters));
  absl::flat_hash_map<QueueId, const QueueShares*> by_id;
  for (const QueueShares& one : all) by_id.emplace(one.queue, &one);
  Context context{.state = state,
                  .past_counts = parameters.half_life > absl::ZeroDuration(),
                  .kinds = KindsByName(state.interner()),
                  .deserved = {}};
  context.deserved = DeservedKinds(state, context.kinds);
  for (const QueueId id : order) RenderOne(context, *by_id.at(id), out->add_shares());
  return absl::OkStatus();
}

}  // namespace berth
