// Which nodes a shape may never use, whatever is free on them: worked out once and remembered, so
// that a search does not walk past the same nodes again and again.
//
// What decides is the fixed part of a shape: models, memory and least links of devices, labels,
// excluded names, tolerations; not amounts, but for how many devices are to have such links. Shapes
// with the same fixed part share one FixedTest. A test gets a mark (FreeIndex::Marks), and every
// node that passes is marked, once searches for its sake have looked at as many nodes in vain as
// there are nodes: marking costs about what was lost by then, so it is never more than twice what
// would have been best, and a shape that is searched for once costs no more than its search.
//
//   4000 nodes A100, 1000 H100      task on H100: walks past 4000, once or twice; then there is a
//   mark
//
// A cache of the planner: no decision, and no count of work, depends on it.
#ifndef BERTH_CORE_ENGINE_NODE_MARKS_H_
#define BERTH_CORE_ENGINE_NODE_MARKS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/engine/device_choice.h"
#include "core/engine/policies.h"
#include "core/model/cluster_state.h"
#include "core/model/state_editor.h"

namespace berth {

// Made by NodeMarks. Asks the filters that say so (NodeFilter::OfNodeAlone), and for devices that
// suit, taken or not.
class FixedTest {
 public:
  FixedTest(const Policies& policies, const TaskShape& fixed, const Interner& interner);
  FixedTest(const FixedTest&) = delete;
  FixedTest& operator=(const FixedTest&) = delete;

  bool Passes(const Node& node) const;
  // Of every node that passes; 0: there is none.
  FreeIndex::Marks mark() const { return mark_; }

 private:
  friend class NodeMarks;
  const ShapeEntry entry_;
  const DeviceChoice devices_;
  std::vector<NodeTest> tests_;
  FreeIndex::Marks mark_ = 0;
  int64_t in_vain_ = 0;      // nodes looked at since it was made, or lost its mark
  uint64_t last_asked_ = 0;  // NodeMarks::asked_
};

// For one state and one set of policies. No thread safety.
class NodeMarks {
 public:
  // Once a cycle, before tests are asked for: nodes that came or changed get their marks. Tests
  // handed out before may be gone afterwards.
  void Follow(StateEditor& editor, const ClusterState& state);
  // The test of all shapes with that fixed part.
  FixedTest& TestOf(const Policies& policies, const TaskShape& shape, const Interner& interner);
  // A search looked at so many nodes that do not pass. Not while FreeIndex is walked.
  void LookedInVain(StateEditor& editor, const ClusterState& state, FixedTest& test, int64_t nodes);

 private:
  static constexpr size_t kMaxTests = 1024;  // without a mark, from cycle to cycle

  void Mark(StateEditor& editor, const ClusterState& state, FixedTest& test);
  FreeIndex::Marks FreeMark(StateEditor& editor, const ClusterState& state);

  absl::flat_hash_map<TaskShape, std::unique_ptr<FixedTest>> tests_;  // by fixed part
  std::vector<FixedTest*> marked_;
  uint64_t asked_ = 0;
};

}  // namespace berth

#endif  // BERTH_CORE_ENGINE_NODE_MARKS_H_
