// Affinity and anti-affinity between jobs, by their labels and by nodes or HyperNodes of the
// network tree (AffinityTerm, core/model/job.h).
//
//   job a {app=cache} runs in rack r1      b: near {app=cache}, tier 1: any node of r1
//   job c: apart from {app=cache}, tier 1: any node not in r1; and a, if it comes after c, keeps
//   away from c's racks in turn
//
// A place is the highest domain that holds the node and is at most of the term's tier; the node
// itself if there is none. Tasks count where they are placed or nominated; tasks being released do
// not count. The rule applies when a task is placed: it stays when the other jobs end. The job's
// own tasks never count; its groups have their own rules. A near term that the job's own labels
// match allows any place while no other job matches it, because one of several mutually near jobs
// must be the first.
#ifndef BERTH_CORE_ENGINE_SEARCH_JOB_AFFINITY_H_
#define BERTH_CORE_ENGINE_SEARCH_JOB_AFFINITY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/types/span.h"
#include "core/model/cluster_state.h"
#include "core/topology/tree.h"

namespace berth {

// For one job, with the state at construction, whatever its own tasks do afterwards.
// O(tasks of the jobs that its terms match, or whose terms match it; jobs with anti-affinity).
class JobAffinity {
 public:
  JobAffinity(const ClusterState& state, TopologyTrees& trees, const Job& job);
  // No node is ruled out.
  bool empty() const { return rules_.empty(); }
  // Tasks visited.
  uint64_t work() const { return work_; }
  bool May(NodeId node) const;

 private:
  using Place = uint64_t;
  struct Rule {
    bool apart = false;
    int32_t tier = 0;
    absl::flat_hash_set<Place> places;  // where the others are
  };
  void AddPlaces(const Job& other, Rule* rule);
  void AddOwn(const Job& job, const AffinityTerm& term);
  void AddOfOther(const Job& job, const Job& other);

  const ClusterState& state_;
  const TopologyTree* tree_ = nullptr;  // null if no term has a tier, or there is no tree
  std::vector<Rule> rules_;
  uint64_t work_ = 0;
};

// The job must be near jobs none of which has a place, and is not the first of its kind. It cannot
// be placed until one of those is.
bool LacksNearJob(const ClusterState& state, const Job& job);

// Whether the two jobs may not share a place: a placed task of `job`, and a task of `other` among
// `tasks`, at its current place.
bool KeepApart(const ClusterState& state, TopologyTrees& trees, const Job& job, const Job& other,
               absl::Span<const uint32_t> tasks);

// For people: the job's terms, with the number of matching jobs that have a place, and the terms of
// other jobs that keep it away. Empty if there are none.
std::string AffinityText(const ClusterState& state, const Job& job);

}  // namespace berth

#endif  // BERTH_CORE_ENGINE_SEARCH_JOB_AFFINITY_H_
