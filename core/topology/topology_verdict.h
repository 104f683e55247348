// Explains why a gang with a topology constraint cannot be placed now, naming the domain that comes
// nearest.
#ifndef BERTH_CORE_TOPOLOGY_TOPOLOGY_VERDICT_H_
#define BERTH_CORE_TOPOLOGY_TOPOLOGY_VERDICT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/engine/cycle.h"
#include "core/engine/search/verdict.h"

namespace berth {

// For a gang that did not fit, with the state as before the attempt.
//
// kNeverFits names the first hard scope that no domain of its tiers could hold even if empty, the
// largest of these domains, and the lowest tier that could. Otherwise kInsufficientResources names,
// for the first hard scope that no domain holds now, the domain with the most room and how many
// tasks fit there. Otherwise the verdict is that of a gang without constraint (ShortageVerdict).
BlockedVerdict TopologyVerdict(Cycle& cycle, const Job& job, const JobNeeds& needs);

// How much of a scope a domain holds.
struct DomainCount {
  HyperNodeId domain;  // 0: the root
  int32_t tier = 0;
  int64_t fit_now = 0;    // tasks, at most those needed
  int64_t fit_empty = 0;  // if it were empty
  bool degraded = false;
  bool operator==(const DomainCount&) const = default;
};

// One constraint of a pending job, and what its allowed domains hold.
struct ScopeFit {
  enum class Level : uint8_t { kJob, kGroup, kPartition };
  Level level = Level::kJob;
  uint32_t group = 0;
  int32_t highest_tier = 0;  // allowed; kRootTier: any
  std::string kind;
  int64_t needed_tasks = 0;       // in one domain
  int64_t domains = 0;            // allowed ones
  int64_t domains_now = 0;        // of these, with room for it now
  int64_t domains_empty = 0;      // of these, with room if empty
  std::vector<DomainCount> best;  // allowed ones, the most room now first; at most kMaxShown
  DomainCount largest;            // the allowed one that holds most if empty
  std::optional<int32_t> lowest_tier_empty;  // over all tiers, the lowest that could hold it
  bool operator==(const ScopeFit&) const = default;
};
inline constexpr size_t kMaxShownDomains = 5;

// For each hard scope that needs places, outermost first. Equal partitions of one group are one
// scope. `soft` includes soft scopes.
std::vector<ScopeFit> ScopeFits(Cycle& cycle, const Job& job, const JobNeeds& needs, bool soft);

}  // namespace berth

#endif  // BERTH_CORE_TOPOLOGY_TOPOLOGY_VERDICT_H_
