// Ranks: the position of each task in its gang, as it was bound.
//
// The members in an epoch are the tasks that were bound in it, and those of earlier epochs that
// had a place then (Task::world says how many); never a coordinator. RANK and WORLD_SIZE are fixed
// with the decision to bind (core/model/apply_bind.cc): a gang that starts has 0 .. WORLD_SIZE - 1,
// later members get the lowest free number. So whenever the orders of an epoch are repeated, they
// name the same world, even if some of its members have ended. Nodes are numbered in order of their
// lowest rank (NODE_RANK); LOCAL_RANK is the position among the members on one node, by rank. So a
// gang of 2 + 2 tasks on nodes a, b, a, b:
//
//   task        0  1  2  3
//   node        a  b  a  b        node list: a, b
//   rank        0  1  2  3
//   node rank   0  1  0  1
//   local rank  0  0  1  1        local world size 2
#ifndef BERTH_SERVER_CONTROLLERS_RANKS_H_
#define BERTH_SERVER_CONTROLLERS_RANKS_H_

#include <cstdint>
#include <optional>
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
  std::vector<TaskRank> tasks;        // by index in the job; those that are no members: rank -1
  std::vector<NodeId> nodes;          // by node rank
  std::vector<int32_t> node_members;  // by node rank: local world sizes
  int32_t world_size = 0;
  // Where the others meet: the coordinator. Without one, and without a rendezvous group, members of
  // a rigid group meet at the lowest rank of the rigid groups that were bound in that epoch. All
  // others meet at the member with the lowest rank: 0, except while that task of an independent
  // group is between two attempts. An index in the job; absent if there is none.
  std::optional<uint32_t> master;
};

// For attempts of a rigid gang that were bound in that epoch; 0: for others, and attempts bound by
// a version without epochs: then the members are those of the moment. O(tasks). Pure.
Ranks ComputeRanks(const Job& job, uint32_t epoch);

}  // namespace berth

#endif  // BERTH_SERVER_CONTROLLERS_RANKS_H_
