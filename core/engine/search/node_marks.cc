#include "core/engine/search/node_marks.h"

#include <algorithm>

namespace berth {
namespace {

TaskShape FixedPartOf(const TaskShape& shape) {
  TaskShape fixed = shape;
  fixed.cpu_millis = fixed.memory_bytes = 0;
  fixed.extended.clear();
  for (DeviceRequest& request : fixed.devices) {
    if (!request.AsksForLinks()) request.count = request.count > 0 ? 1 : 0;  // otherwise it matters
  }
  return fixed;
}

ShapeEntry EntryOf(const TaskShape& fixed) {
  ShapeEntry entry;
  entry.shape = fixed;
  return entry;
}

}  // namespace

FixedTest::FixedTest(const Policies& policies, const TaskShape& fixed, ImageId image,
                     const Interner& interner)
    : entry_(EntryOf(fixed)), devices_(ShapeRequest{entry_, interner}), image_(image) {
  for (const auto& filter : policies.filters()) {
    if (!filter->OfNodeAlone()) continue;
    NodeTest test = filter->Prepare({entry_, interner});
    if (test != nullptr) tests_.push_back(std::move(test));
  }
}

// If any device matches, their number is checked with the amounts.
bool FixedTest::Passes(const Node& node) const {
  if (image_ != ImageId{} && !HoldsImage(node, image_)) return false;
  const Offer empty{.node = node, .free = node.capacity, .used = {}};
  for (const NodeTest& test : tests_) {
    if (!test(empty)) return false;
  }
  return devices_.AmountsSuffice(empty) || devices_.SetsIn(empty, 1) == 1;
}

FixedTest& NodeMarks::TestOf(const Policies& policies, const TaskShape& shape,
                             const Interner& interner, ImageId image) {
  Key key{FixedPartOf(shape), image};
  const auto known = tests_.find(key);
  FixedTest* test = known == tests_.end() ? nullptr : known->second.get();
  if (test == nullptr) {
    auto made = std::make_unique<FixedTest>(policies, key.first, image, interner);
    test = made.get();
    tests_.emplace(std::move(key), std::move(made));
  }
  test->last_asked_ = ++asked_;
  return *test;
}

FixedTest& NodeMarks::TestOf(const Policies& policies, ShapeId shape, const Interner& interner) {
  const auto [known, fresh] = by_shape_.try_emplace(shape, nullptr);
  if (fresh) known->second = &TestOf(policies, interner.Shape(shape).shape, interner);
  known->second->last_asked_ = ++asked_;
  return *known->second;
}

void NodeMarks::Follow(StateEditor& editor, const ClusterState& state) {
  for (NodeId id : editor.TakeNewNodes()) {
    const Node* node = state.nodes().Find(id);
    if (node == nullptr) continue;
    FreeIndex::Marks marks = 0;
    for (const FixedTest* test : marked_) marks |= test->Passes(*node) ? test->mark_ : 0;
    editor.SetNodeMarks(id, marks);
  }
  const bool many = tests_.size() > kMaxTests + marked_.size();
  if (many || by_shape_.size() > kMaxShapes) by_shape_.clear();
  if (!many) return;
  absl::erase_if(tests_, [](const auto& test) { return test.second->mark_ == 0; });
}

void NodeMarks::FailedVisits(StateEditor& editor, const ClusterState& state, FixedTest& test,
                             int64_t nodes) {
  test.failed_visits_ += nodes;
  const auto all = static_cast<int64_t>(state.nodes().size());
  if (test.mark_ == 0 && test.failed_visits_ >= all) Mark(editor, state, test);
}

void NodeMarks::Mark(StateEditor& editor, const ClusterState& state, FixedTest& test) {
  test.mark_ = FreeMark(editor, state);
  marked_.push_back(&test);
  state.nodes().ForEach([&](NodeId id, const Node& node) {
    if (test.Passes(node)) editor.SetNodeMarks(id, state.free().MarksOf(id) | test.mark_);
  });
}

// An unused mark, or that of the least recently used test, which loses it.
FreeIndex::Marks NodeMarks::FreeMark(StateEditor& editor, const ClusterState& state) {
  FreeIndex::Marks used = 0;
  for (const FixedTest* test : marked_) used |= test->mark_;
  if (~used != 0) return ~used & (used + 1);
  const auto oldest = std::min_element(
      marked_.begin(), marked_.end(),
      [](const FixedTest* a, const FixedTest* b) { return a->last_asked_ < b->last_asked_; });
  const FreeIndex::Marks mark = (*oldest)->mark_;
  (*oldest)->mark_ = 0;
  (*oldest)->failed_visits_ = 0;
  marked_.erase(oldest);
  state.nodes().ForEach(
      [&](NodeId id, const Node&) { editor.SetNodeMarks(id, state.free().MarksOf(id) & ~mark); });
  return mark;
}

}  // namespace berth
