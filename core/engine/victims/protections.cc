#include "core/engine/victims/protections.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "core/engine/search/verdict.h"
#include "core/engine/victims/victim_units.h"

namespace berth {
namespace {

constexpr int64_t kAnyPriority = std::numeric_limits<int64_t>::max();
// What was bound in this cycle is protected only until its end (UnitMaker).
constexpr Duration kMoment = absl::Milliseconds(1);

// Cores, GiB, devices.
std::string Number(ResourceKind kind, int64_t amount) {
  if (kind == kCpu || kind.value >= kFixedKinds) return AmountText(amount, kWhole);
  return absl::StrCat(InUnits(amount, int64_t{1} << 30), "Gi");
}

void Append(absl::string_view more, std::string* text) {
  if (more.empty()) return;
  absl::StrAppend(text, text->empty() ? "" : "; ", more);
}

ResourceKind Lacking(const ClusterState& state, const Job& job, const Resources& request) {
  const PendingClass* of = state.pending().FindClass(job.pending_class);
  if (of != nullptr && of->blocked != nullptr) {
    const auto kind = state.interner().FindKind(of->blocked->resource);
    if (kind.has_value() && request[*kind] > 0) return *kind;
  }
  return Scarcest(state.interner(), request, state.free().total());
}

// What the job holds or is nominated for. What is being released does not count as held.
Resources HeldByJob(const ClusterState& state, const Job& job) {
  Resources held;
  for (size_t g = 0; g < job.groups.size(); ++g) {
    const int32_t tasks = job.tallies[g].Members() + job.tallies[g].Nominated();
    if (tasks > 0) held += state.interner().Shape(job.groups[g].shape).resources.Times(tasks);
  }
  return held;
}

// The lowest priority of the queue's running jobs other than `besides`; nullopt if there are none.
std::optional<int64_t> LowestOf(const ClusterState& state, const Queue& queue, const Job& besides) {
  std::optional<int64_t> lowest;
  const auto& jobs = queue.occupying_jobs;
  auto last = jobs.rbegin();
  if (last != jobs.rend() && last->job == besides.id) ++last;
  if (last != jobs.rend()) lowest = last->priority;
  for (const OrderKey& key : queue.graded_jobs) {
    if (key.job == besides.id) continue;
    lowest =
        std::min<int64_t>(lowest.value_or(kAnyPriority), LowestPriority(state.jobs().At(key.job)));
  }
  return lowest;
}

}  // namespace

struct Protections::Search {
  ResourceKind kind;
  bool ages = false;      // some victim was protected by its age
  bool reclaims = false;  // reclaimable = false counts
  Holding most = {};
  const Looked* first = nullptr;  // has the job whose protection ends first

  void Add(const Holding& holding) {
    if (holding.amount < most.amount || holding.amount <= 0) return;
    const bool none = most.queue == nullptr;
    if (!none && holding.amount == most.amount) {
      if (holding.kind > most.kind) return;
      if (holding.kind == most.kind && holding.queue->spec.name >= most.queue->spec.name) return;
    }
    most = holding;
  }
  void AddAged(const Queue& queue, const Looked& looked) {
    if (looked.until == absl::InfiniteFuture()) return;
    Add({.kind = Kind::kAge, .queue = &queue, .amount = looked.aged[kind]});
    if (first == nullptr || looked.until < first->until) first = &looked;
  }
};

Protections::Search Protections::SearchFor(const Job& job, const Resources& request,
                                           const VictimOutcome& outcome) const {
  const Time until = outcome.protected_until;
  return {.kind = Lacking(state_, job, request),
          .ages = until != absl::InfiniteFuture() && until > cycle_.now() + kMoment};
}

void Protections::LookAt(const Job& job, bool surplus_only, Looked* looked) {
  UnitMaker maker(state_, cycle_.policies().eviction(), cycle_.now());
  std::vector<VictimUnit> units;
  maker.AddUnitsOf(job, &units);
  Resources kept = HeldByJob(state_, job);
  looked->held += kept;
  for (const VictimUnit& unit : units) kept -= RequestOf(state_, unit);
  const Time until = maker.TakeProtectedUntil();
  if (until != absl::InfiniteFuture()) {
    looked->aged += kept;
    if (until < looked->until) looked->first = job.id;
    looked->until = std::min(looked->until, until);
  } else if (!job.preemptible) {
    looked->not_preemptible += kept;
  } else if (surplus_only) {
    looked->gangs += kept;
  }
}

// Lowest priority first.
const Protections::Looked& Protections::LookAt(const Queue& queue, int64_t below) {
  const auto [slot, fresh] = looked_.try_emplace({queue.id, below});
  Looked& looked = slot->second;
  if (!fresh) return looked;
  const bool surplus_only = SurplusOnlyAbove(state_, queue.id);
  for (auto key = queue.occupying_jobs.rbegin(); key != queue.occupying_jobs.rend(); ++key) {
    if (key->priority >= below) break;
    looked.complete = looked_at_ < kMostLookedAt;
    if (!looked.complete) break;
    ++looked_at_;
    cycle_.CountWork(1);
    LookAt(state_.jobs().At(key->job), surplus_only, &looked);
  }
  return looked;
}

void Protections::AddHeldOf(const Queue& leaf, Search* search) {
  const int64_t held = HeldAfterRelease(leaf)[search->kind];
  const int64_t firm = (leaf.nonpreemptible - leaf.nonpreemptible_leaving)[search->kind];
  search->Add({.kind = Kind::kNotPreemptible, .queue = &leaf, .amount = firm});
  if (SurplusOnlyAbove(state_, leaf.id)) {
    search->Add({.kind = Kind::kSurplusOnly, .queue = &leaf, .amount = held - firm});
  } else if (search->ages && held > firm) {
    search->AddAged(leaf, LookAt(leaf, kAnyPriority));
  }
}

void Protections::AddBelow(const Queue& queue, Search* search) {
  if (queue.running_jobs == 0) return;
  if (search->reclaims && !queue.spec.reclaimable) {
    search->Add({.kind = Kind::kNotReclaimable,
                 .queue = &queue,
                 .amount = HeldAfterRelease(queue)[search->kind]});
    return;
  }
  if (queue.children.empty()) return AddHeldOf(queue, search);
  for (const QueueId child : queue.children) AddBelow(state_.queues().At(child), search);
}

// `own`, a child of `above`, is the job's queue or an ancestor; its siblings are compared with it
// (ReclaimVictims).
void Protections::AddBeside(const Queue& own, const Queue& above, const Resources& request,
                            Search* search) {
  const FairShares& shares = cycle_.shares();
  const bool deserved = NamedInDeserved(own, search->kind.value) &&
                        WithinDeserved(own, shares.At(own.id), HeldAfterRelease(own), request);
  for (const QueueId id : above.children) {
    const Queue& side = state_.queues().At(id);
    if (id == own.id || side.running_jobs == 0) continue;
    const FairShares::OfQueue& share = shares.At(id);
    const int64_t held = HeldAfterRelease(side)[search->kind];
    const bool less = deserved && share.deserved[search->kind] < share.fair_share[search->kind];
    const int64_t keeps = (less ? share.deserved : share.fair_share)[search->kind];
    if (held > keeps || !side.spec.reclaimable) AddBelow(side, search);
    if (!side.spec.reclaimable) continue;
    search->Add({.kind = less ? Kind::kDeserved : Kind::kFairShare,
                 .queue = &side,
                 .amount = std::min(held, keeps),
                 .bound = keeps});
  }
}

std::string Protections::DescribeHolder(const Search& search) const {
  const Holding& most = search.most;
  if (most.queue == nullptr) return "";
  const std::string held =
      absl::StrCat("queue ", most.queue->spec.name, " holds ", Number(search.kind, most.amount),
                   " ", state_.interner().KindName(search.kind));
  switch (most.kind) {
    case Kind::kNotReclaimable:
      return absl::StrCat(held, " and is not reclaimable");
    case Kind::kNotPreemptible:
      return absl::StrCat(held, " in jobs that are not preemptible");
    case Kind::kSurplusOnly:
      return absl::StrCat(held, " and gives up no whole gangs (surplusOnly)");
    case Kind::kAge:
      return absl::StrCat(held, " in jobs protected by their age");
    case Kind::kFairShare:
      return absl::StrCat(held, " within its fair share of ", Number(search.kind, most.bound));
    case Kind::kDeserved:
      return absl::StrCat(held, " within the ", Number(search.kind, most.bound),
                          " that it deserves");
    case Kind::kPriority:
      return absl::StrCat(held, " in jobs of priority ", most.bound, " or higher");
  }
  return "";
}

// The job whose protection ends first.
std::string Protections::DescribeAge(const Search& search, const VictimOutcome& outcome) const {
  if (outcome.protected_until == absl::InfiniteFuture()) return "";
  if (!search.ages) return "some jobs were bound in this cycle";
  std::string who = "some jobs are";
  Time until = outcome.protected_until;
  if (search.first != nullptr) {
    until = search.first->until;
    const Job& job = state_.jobs().At(search.first->first);
    who = absl::StrCat("job ", job.name, " of queue ", state_.queues().At(job.queue).spec.name,
                       " is");
  }
  return absl::StrCat(who, " protected by min_runtime or cooldown until ",
                      absl::FormatTime("%H:%M:%S", until, absl::UTCTimeZone()), " UTC");
}

// The first queue, from the job's own upward, that has too little of its fair share left for the
// job.
std::string Protections::DescribeFullQueue(const Job& job, const Resources& request) const {
  const FairShares& shares = cycle_.shares();
  for (QueueId id = job.queue; id != kRootQueue; id = state_.queues().At(id).spec.parent) {
    const Queue& queue = state_.queues().At(id);
    const Resources held = HeldAfterRelease(queue);
    const Resources& share = shares.At(id).fair_share;
    for (size_t i = 0; i < state_.interner().kind_count(); ++i) {
      const ResourceKind kind{static_cast<uint8_t>(i)};
      if (request[kind] == 0 || held[kind] + request[kind] <= share[kind]) continue;
      return absl::StrCat("queue ", queue.spec.name, " holds ", Number(kind, held[kind]),
                          " of its fair share of ", Number(kind, share[kind]), " ",
                          state_.interner().KindName(kind), ", the job requests ",
                          Number(kind, request[kind]), ", and no job is evicted to exceed it");
    }
  }
  return "";
}

std::string Protections::Said(const Search& search, const VictimOutcome& outcome,
                              std::string spared) const {
  if (outcome.waits_until != absl::InfiniteFuture()) {
    return absl::StrCat("waits for a checkpoint of the jobs that make room, until ",
                        absl::FormatTime("%H:%M:%S", outcome.waits_until, absl::UTCTimeZone()),
                        " UTC");
  }
  std::string text = std::move(spared);
  const bool of_room = outcome.barred == nullptr || outcome.for_lack_of_room;
  const bool tell_plan = !of_room || outcome.some_may_go;
  if (text.empty() && tell_plan && outcome.barred != nullptr) text = outcome.barred;
  if (const Job* job = state_.jobs().Find(outcome.in_the_way); job != nullptr) {
    absl::StrAppend(&text, ", such as job ", job->name, " of queue ",
                    state_.queues().At(job->queue).spec.name);
  }
  if (of_room) Append(DescribeHolder(search), &text);
  if (text.empty()) text = outcome.barred == nullptr ? "no eligible victims" : outcome.barred;
  Append(DescribeAge(search, outcome), &text);
  return text;
}

std::string Protections::OfOthers(const Job& job, const Resources& request,
                                  const VictimOutcome& outcome, const std::string& spared) {
  Search search = SearchFor(job, request, outcome);
  search.reclaims = true;
  for (QueueId id = job.queue; id != kRootQueue;) {
    const Queue& own = state_.queues().At(id);
    AddBeside(own, state_.queues().At(own.spec.parent), request, &search);
    id = own.spec.parent;
  }
  return Said(search, outcome, spared);
}

std::string Protections::OfQueue(const Job& job, const JobNeeds& needs, int32_t priority,
                                 const VictimOutcome& outcome) {
  const Queue& queue = state_.queues().At(job.queue);
  const std::optional<int64_t> lowest = LowestOf(state_, queue, job);
  if (!lowest.has_value()) return absl::StrCat("no other job of queue ", queue.spec.name, " runs");
  if (*lowest >= priority) {
    return absl::StrCat("no job in queue ", queue.spec.name,
                        " has a lower priority (lowest: ", *lowest, ")");
  }
  const Resources request = RequestOf(state_, job, needs);
  Search search = SearchFor(job, request, outcome);
  if (outcome.short_of_share) return Said(search, outcome, DescribeFullQueue(job, request));
  const Looked& looked = LookAt(queue, priority);
  search.Add({Kind::kNotPreemptible, &queue, looked.not_preemptible[search.kind]});
  search.Add({Kind::kSurplusOnly, &queue, looked.gangs[search.kind]});
  search.AddAged(queue, looked);
  if (looked.complete) {
    const Resources rest = HeldAfterRelease(queue) - looked.held - HeldByJob(state_, job);
    search.Add({Kind::kPriority, &queue, rest[search.kind], priority});
  }
  return Said(search, outcome);
}

std::string Protections::OfAll(const Job& job, const JobNeeds& needs,
                               const VictimOutcome& outcome) {
  const Resources request = LeastOf(state_, job, needs);
  Search search = SearchFor(job, request, outcome);
  const Resources& free = state_.free().total();
  if (needs.gang && !request.FitsIn(free)) {
    return absl::StrCat(
        "less is free in total than it requests: ", Number(search.kind, free[search.kind]), " of ",
        Number(search.kind, request[search.kind]), " ", state_.interner().KindName(search.kind));
  }
  if (outcome.barred == nullptr || outcome.for_lack_of_room) {
    AddBelow(state_.queues().At(kRootQueue), &search);
  }
  return Said(search, outcome);
}

}  // namespace berth
