// Which nodes a shape may never use, whatever is free on them: computed once and remembered, so
// that searches do not visit the same nodes again and again.
//
// The fixed part of a shape decides: models, memory and link floors of devices, labels, excluded
// names, tolerations; not amounts, except the number of devices with a link floor. Shapes with the
// same fixed part share one FixedTest. So do searches for nodes that hold an image. Once searches
// for it have visited as many nodes without success as there are nodes, the test gets a mark
// (FreeIndex::Marks) on every node that passes. Marking costs about as much as was lost by then, so
// the total is at most twice the optimum, and a shape that is searched for once costs no more than
// its search.
//
//   4000 nodes A100, 1000 H100      task on H100: visits 4000, once or twice; then there is a mark
//
// A cache of the planner: no decision and no work counter depends on it.
#ifndef BERTH_CORE_ENGINE_SEARCH_NODE_MARKS_H_
#define BERTH_CORE_ENGINE_SEARCH_NODE_MARKS_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/engine/policies.h"
#include "core/engine/search/device_choice.h"
#include "core/model/cluster_state.h"
#include "core/model/state_editor.h"

namespace berth {

// Made by NodeMarks. Which nodes hold the image, if one is named, and pass otherwise. Calls filters
// that depend on the node alone (NodeFilter::OfNodeAlone), and checks for matching devices, in use
// or not.
class FixedTest {
 public:
  FixedTest(const Policies& policies, const TaskShape& fixed, ImageId image,
            const Interner& interner);
  FixedTest(const FixedTest&) = delete;
  FixedTest& operator=(const FixedTest&) = delete;

  bool Passes(const Node& node) const;
  // Set on every node that passes; 0 if there is none.
  FreeIndex::Marks mark() const { return mark_; }

 private:
  friend class NodeMarks;
  const ShapeEntry entry_;
  const DeviceChoice devices_;
  const ImageId image_;  // 0: any node
  std::vector<NodeTest> tests_;
  FreeIndex::Marks mark_ = 0;
  int64_t failed_visits_ = 0;  // failed visits since it was made or lost its mark
  uint64_t last_asked_ = 0;    // NodeMarks::asked_
};

// For one state and one set of policies. Not thread-safe.
class NodeMarks {
 public:
  // Call once per cycle, before requesting tests: new and changed nodes get their marks. Tests
  // returned earlier may be invalid afterwards.
  void Follow(StateEditor& editor, const ClusterState& state);
  // The test of all shapes with that fixed part; with `image`, of the nodes that hold it, too.
  FixedTest& TestOf(const Policies& policies, const TaskShape& shape, const Interner& interner,
                    ImageId image = {});
  // The same for an interned shape, without an image: remembered, so that it costs one lookup.
  FixedTest& TestOf(const Policies& policies, ShapeId shape, const Interner& interner);
  // A search visited so many nodes that do not pass. Not while iterating over FreeIndex.
  void FailedVisits(StateEditor& editor, const ClusterState& state, FixedTest& test, int64_t nodes);

 private:
  static constexpr size_t kMaxTests = 1024;      // without a mark, from cycle to cycle
  static constexpr size_t kMaxShapes = 1 << 20;  // likewise

  void Mark(StateEditor& editor, const ClusterState& state, FixedTest& test);
  FreeIndex::Marks FreeMark(StateEditor& editor, const ClusterState& state);

  using Key = std::pair<TaskShape, ImageId>;                    // the fixed part
  absl::flat_hash_map<Key, std::unique_ptr<FixedTest>> tests_;  // never iterated for a decision
  absl::flat_hash_map<ShapeId, FixedTest*> by_shape_;           // likewise
  std::vector<FixedTest*> marked_;
  uint64_t asked_ = 0;
};

}  // namespace berth

#endif  // BERTH_CORE_ENGINE_SEARCH_NODE_MARKS_H_
