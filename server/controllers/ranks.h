// Ranks (DESIGN 10): where each task stands in its job.
//
// The members of a job are its tasks that were given a place since they last waited: all but those
// that are Pending or Nominated, in order of group and index. RANK is the place among the members,
// WORLD_SIZE their number. Nodes are numbered in order of their lowest rank (NODE_RANK); LOCAL_RANK
// is the place among the members on one node. So a gang of 2 + 2 tasks on nodes a, b, a, b:
//
//   task        0  1  2  3
//   node        a  b  a  b        node list: a, b
//   rank        0  1  2  3
//   node rank   0  1  0  1
//   local rank  0  0  1  1        local world size 2
#ifndef BERTH_SERVER_CONTROLLERS_RANKS_H_
#define BERTH_SERVER_CONTROLLERS_RANKS_H_

#include <cstdint>
#include <vector>

#include "core/model/ids.h"
#include "core/model/job.h"

namespace berth {

struct TaskRank {
  int32_t rank = -1;  // -1: not a member
  int32_t node_rank = 0;
  int32_t local_rank = 0;
};

struct Ranks {
  std::vector<TaskRank> tasks;        // by index in the job
  std::vector<NodeId> nodes;          // by node rank
  std::vector<int32_t> node_members;  // by node rank: local world sizes
  int32_t world_size = 0;
};

// O(tasks). Pure.
Ranks ComputeRanks(const Job& job);

// The member of rank 0, where the others meet. The job must have one.
uint32_t MasterTask(const Ranks& ranks);

}  // namespace berth

#endif  // BERTH_SERVER_CONTROLLERS_RANKS_H_
