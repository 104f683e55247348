// Which job owes what, by the rules alone and one job at a time: for tests of reclaim at rest.
#ifndef BERTH_TESTS_PROPERTY_OWED_H_
#define BERTH_TESTS_PROPERTY_OWED_H_

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/engine/search/verdict.h"
#include "core/engine/shares/fair_share.h"
#include "core/model/cluster_state.h"

namespace berth::testing {

// Pending jobs of one task within the entitlement of their queues, while a single running job that
// may be evicted has enough on one node, and its queue holds more than its share. At rest there are
// none, if queues have neither guarantees nor limits and no job is protected by its age.
class SingleDebts {
 public:
  SingleDebts(const ClusterState& state, const Policies& policies)
      : state_(state), shares_(FairSharesOf(state, policies.fair_share())) {}

  // Each with the reason that blocks it, as users see it.
  std::vector<std::string> List() const {
    std::vector<std::string> debts;
    state_.jobs().ForEach([&](JobId, const Job& job) {
      if (job.status.state != JobState::kPending || !job.preempts || job.tasks.size() != 1) return;
      const std::vector<WaitReason> reasons = WhyWaiting(state_, job, absl::InfinitePast());
      if (!Within(job) || OfQuota(reasons)) return;
      state_.jobs().ForEach([&](JobId, const Job& other) {
        if (!Owes(other, job)) return;
        debts.push_back(absl::StrCat(other.name, " owes ", job.name, BarredBy(reasons)));
      });
    });
    return debts;
  }

 private:
  // Not preemptible, and beyond what its queue deserves: room would not help.
  static bool OfQuota(const std::vector<WaitReason>& reasons) {
    return std::any_of(reasons.begin(), reasons.end(), [](const WaitReason& reason) {
      return reason.code == WaitCode::kNonPreemptibleQuota;
    });
  }
  static std::string BarredBy(const std::vector<WaitReason>& reasons) {
    std::string why;
    for (const WaitReason& reason : reasons) {
      for (const RoomAsked& asked : reason.asked) {
        absl::StrAppend(&why, "; ", asked.action, ": ", asked.barred);
      }
    }
    return why;
  }
  Resources Asked(const Job& job) const { return RequestOf(state_, job, NeedsOf(job)); }
  // From the job's queue up to, but not including, the root.
  std::vector<QueueId> PathOf(const Job& job) const {
    std::vector<QueueId> path;
    for (QueueId id = job.queue; id != kRootQueue; id = state_.queues().At(id).spec.parent) {
      path.push_back(id);
    }
    return path;
  }
  bool Within(const Job& job) const {
    const Resources asked = Asked(job);
    for (QueueId id : PathOf(job)) {
      for (size_t i = 0; i < kMaxResourceKinds; ++i) {
        const int64_t with_job = state_.queues().At(id).allocated.amount[i] + asked.amount[i];
        if (asked.amount[i] > 0 && with_job > shares_.At(id).fair_share.amount[i]) return false;
      }
    }
    return true;
  }
  // The first of the job's queues, from the top, that is not above the other job.
  QueueId SideOf(const Job& job, const Job& other) const {
    const std::vector<QueueId> own = PathOf(job), theirs = PathOf(other);
    QueueId side = kRootQueue;
    for (size_t i = own.size(); i-- > 0 && side == kRootQueue;) {
      const bool shared = std::find(theirs.begin(), theirs.end(), own[i]) != theirs.end();
      if (!shared) side = own[i];
    }
    return side;
  }
  bool Owes(const Job& holder, const Job& job) const {
    if (holder.tasks.size() != 1 || !holder.preemptible || holder.tasks[0].claimed) return false;
    if (holder.tasks[0].state != TaskState::kRunning) return false;
    const QueueId side = SideOf(holder, job);
    if (side == kRootQueue) return false;
    for (QueueId id : PathOf(holder)) {
      if (!state_.queues().At(id).spec.reclaimable) return false;
      if (id == side) break;
    }
    const Resources asked = Asked(job);
    const Resources given = state_.interner().Shape(holder.groups[0].shape).resources;
    bool over = false;
    for (size_t i = 0; i < kMaxResourceKinds; ++i) {
      if (asked.amount[i] > given.amount[i]) return false;
      if (asked.amount[i] > 0) over |= MustGive(state_.queues().At(side), i);
    }
    return over;
  }
  // No deserved amount of another resource, nor a promise of this one, protects the queue.
  bool MustGive(const Queue& queue, size_t kind) const {
    const FairShares::OfQueue& share = shares_.At(queue.id);
    const bool names = !queue.spec.deserved.empty();
    const bool this_one = queue.deserved.amount[kind] > 0;
    if (share.deserved_scaled || (names && !this_one)) return false;
    return queue.allocated.amount[kind] > share.fair_share.amount[kind];
  }

  const ClusterState& state_;
  const FairShares shares_;
};

}  // namespace berth::testing

#endif  // BERTH_TESTS_PROPERTY_OWED_H_
