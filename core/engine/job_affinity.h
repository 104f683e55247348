// Affinity between jobs: near to and apart from others, by their labels and by nodes or HyperNodes
// of the network tree (AffinityTerm, core/model/job.h).
//
//   job a {app=cache} runs in rack r1      b: near {app=cache}, tier 1: any node of r1
//   job c: apart from {app=cache}, tier 1: any node not in r1; and a, if it comes after c, keeps
//   away from c's racks in turn
//
// A place is the highest domain of at most the term's tier that holds the node; the node itself if
// there is none. Tasks count where they are placed, or kept a place; on their way out they do not.
// Decided when a task gets its place: who is near stays when the others go. The job's own tasks
// never count: what they are to each other its groups say. A term of nearness that the job's own
// labels meet holds anywhere while no other job meets it: of jobs that are all to be near each
// other, one must be the first.
#ifndef BERTH_CORE_ENGINE_JOB_AFFINITY_H_
#define BERTH_CORE_ENGINE_JOB_AFFINITY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/types/span.h"
#include "core/model/cluster_state.h"
#include "core/topology/tree.h"

namespace berth {

// For one job, as the state was when it was made, whatever tasks of its own do since: O(tasks of
// the jobs that its terms speak of, or whose terms speak of it; jobs that are to be apart from
// others).
class JobAffinity {
 public:
  JobAffinity(const ClusterState& state, TopologyTrees& trees, const Job& job);
  // Nothing bars any node.
  bool empty() const { return rules_.empty(); }
  // Tasks looked at.
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
  const TopologyTree* tree_ = nullptr;  // null: no term has a tier, or there is no tree
  std::vector<Rule> rules_;
  uint64_t work_ = 0;
};

// The job is to be near others of which none has a place, and is not the first of its like: until
// one comes it can go nowhere.
bool NearNobody(const ClusterState& state, const Job& job);

// Whether the two jobs may not be together in a place: some task of `other` among `tasks`, where it
// is, and one of `job` that is placed.
bool KeepApart(const ClusterState& state, TopologyTrees& trees, const Job& job, const Job& other,
               absl::Span<const uint32_t> tasks);

// For people: "near jobs with app=cache in one HyperNode of tier 1", and how many of those have
// places; of the job's terms, and of those of others that keep it away. Empty: there are none.
std::string AffinityText(const ClusterState& state, const Job& job);

}  // namespace berth

#endif  // BERTH_CORE_ENGINE_JOB_AFFINITY_H_
