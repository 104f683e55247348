// ScoreBoard: caches the scores of all nodes for recurring requests. After a change of a node, only
// that node is scored again, and only for requests that recur.
#ifndef BERTH_CORE_SHARING_SCORE_BOARD_H_
#define BERTH_CORE_SHARING_SCORE_BOARD_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "core/sharing/node_room.h"
#include "core/sharing/placement_scorer.h"

namespace berth {

struct BestPlace {
  size_t node = 0;
  int16_t from = 0;   // as in Choice
  int64_t score = 0;  // likewise
};

class ScoreBoard {
 public:
  explicit ScoreBoard(PlacementScorer scorer) : scorer_(std::move(scorer)) {}

  // Sets what remains on a node. Nodes are numbered from 0 without gaps.
  void Set(size_t node, NodeRoom room);
  const std::vector<NodeRoom>& rooms() const { return rooms_; }
  // Another policy or mix: discards all scores.
  void Use(PlacementScorer scorer);

  // The lowest score; ties go to the first node. Only nodes that `may_have` accepts.
  std::optional<BestPlace> Best(const Request& request, absl::FunctionRef<bool(size_t)> may_have);

 private:
  struct Scored {
    uint32_t version = 0;  // of the node when it was scored; 0: never
    Choice choice;
  };

  PlacementScorer scorer_;
  std::vector<NodeRoom> rooms_;
  std::vector<uint32_t> versions_;                                // by node, from 1
  absl::flat_hash_map<Request, std::vector<Scored>> by_request_;  // never iterated
};

}  // namespace berth

#endif  // BERTH_CORE_SHARING_SCORE_BOARD_H_
