// Why a gang with a topology constraint cannot be placed now, with the domain that comes nearest.
#ifndef BERTH_CORE_TOPOLOGY_TOPOLOGY_VERDICT_H_
#define BERTH_CORE_TOPOLOGY_TOPOLOGY_VERDICT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/engine/cycle.h"
#include "core/engine/verdict.h"

namespace berth {

// The gang did not fit; the state is as before it was tried.
//
// kNeverFits names the first hard scope that no domain of its tiers could hold if nothing ran
// there, the largest of these domains, and the lowest tier that could. Else kInsufficientResources:
// of the first hard scope that no domain holds now, the domain with most room, and how many tasks
// fit there. Else as of a gang without constraint (ShortageVerdict).
BlockedVerdict TopologyVerdict(Cycle& cycle, const Job& job, const JobNeeds& needs);

// How much of a scope a domain holds.
struct DomainCount {
  HyperNodeId domain;  // 0: the root
  int32_t tier = 0;
  int64_t fit_now = 0;    // tasks, at most those that are needed
  int64_t fit_empty = 0;  // if nothing ran there
  bool degraded = false;
  bool operator==(const DomainCount&) const = default;
};

// One constraint of a waiting job, and what the domains that it allows hold.
struct ScopeFit {
  enum class Level : uint8_t { kJob, kGroup, kPartition };
  Level level = Level::kJob;
  uint32_t group = 0;
  int32_t highest_tier = 0;  // allowed; kRootTier: any
  std::string kind;
  int64_t needed_tasks = 0;       // in one domain
  int64_t domains = 0;            // allowed
  int64_t domains_now = 0;        // of these, with room for it now
  int64_t domains_empty = 0;      // of these, with room if nothing ran there
  std::vector<DomainCount> best;  // of those allowed, the most room now first; at most kMaxShown
  DomainCount largest;            // of those allowed, that which holds most if nothing runs there
  std::optional<int32_t> lowest_tier_empty;  // of all tiers, the lowest that could hold it
  bool operator==(const ScopeFit&) const = default;
};
inline constexpr size_t kMaxShownDomains = 5;

// Of each hard scope that asks for places, outermost first; partitions of one group, which are
// alike, are one scope. Also of soft ones with `soft`.
std::vector<ScopeFit> ScopeFits(Cycle& cycle, const Job& job, const JobNeeds& needs, bool soft);

}  // namespace berth

#endif  // BERTH_CORE_TOPOLOGY_TOPOLOGY_VERDICT_H_
