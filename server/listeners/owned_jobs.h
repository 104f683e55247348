// OwnedJobs: how many jobs of each owner have not ended, for limits.active_jobs_per_user. Loop
// thread only.
#ifndef BERTH_SERVER_LISTENERS_OWNED_JOBS_H_
#define BERTH_SERVER_LISTENERS_OWNED_JOBS_H_

#include <cstdint>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "core/model/ids.h"
#include "server/loop/turn.h"

namespace berth {

class OwnedJobs final : public TurnObserver {
 public:
  // `most`: of one owner; 0: no limit, and nothing is counted.
  explicit OwnedJobs(int64_t most) : most_(most) {}

  void Begin(const ClusterState& state);
  // RESOURCE_EXHAUSTED if the owner would have more than the limit. Jobs without an owner have
  // none.
  absl::Status Check(const std::string& owner, int64_t more) const;
  // Submitted in the current turn: they count at once.
  void Add(const std::string& owner, int64_t jobs);

  Effect OnTurnApplied(const ClusterState& state, absl::Span<const Event> events,
                       const ColdParts& cold) override;

 private:
  void Start(JobId id, const std::string& owner);
  void EndIfOver(const ClusterState& state, JobId id);

  const int64_t most_;
  absl::flat_hash_map<std::string, int64_t> counts_;
  absl::flat_hash_map<std::string, int64_t> added_;   // in the current turn, not yet in counts_
  absl::flat_hash_map<JobId, std::string> owner_of_;  // active ones
};

}  // namespace berth

#endif  // BERTH_SERVER_LISTENERS_OWNED_JOBS_H_
