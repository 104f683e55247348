// FreeIndex: what the nodes that take new tasks have free, ordered for best fit: by (devices
// of all kinds of which something is free, free cpu, NodeId). A search starts at the tightest node
// that could be sufficient and goes upward; an update costs O(log nodes). The key holds no interned
// order, so iteration is the same after a fold and after a load. Kept by StateEditor, without lag.
// No thread safety.
//
// Nodes on which tasks are being released are listed a second time, by what they have free once
// those are gone (soon()): for who may wait for that.
//
// Planning may mark nodes (core/engine/node_marks.h). Nodes of equal marks have an order of their
// own as well, which follows when it is asked to (SyncMarks), so that those with certain marks are
// found without walking past the others.
//
// Planning may also follow which nodes changed (StateEditor::ReadChangedNodes): several followers
// read one log, each from its own position.
#ifndef BERTH_CORE_MODEL_FREE_INDEX_H_
#define BERTH_CORE_MODEL_FREE_INDEX_H_

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "absl/container/inlined_vector.h"
#include "core/base/check.h"
#include "core/model/ids.h"
#include "core/model/node.h"
#include "core/model/resources.h"

namespace berth {

class FreeIndex {
 public:
  // `room` is free devices << 56 | free cpu in milli-cores.
  struct Key {
    uint64_t room = 0;
    NodeId node;
    auto operator<=>(const Key&) const = default;
  };
  using Order = absl::btree_set<Key>;
  using Marks = uint64_t;  // bits; their meaning is planning's
  static constexpr int kCpuBits = 56;
  static constexpr uint64_t Room(int devices, int64_t cpu_millis) {
    const auto cpu = cpu_millis < 0 ? 0 : static_cast<uint64_t>(cpu_millis);
    return static_cast<uint64_t>(devices) << kCpuBits | cpu;
  }
  static constexpr int Devices(uint64_t room) { return static_cast<int>(room >> kCpuBits); }
  static constexpr int64_t CpuMillis(uint64_t room) {
    return static_cast<int64_t>(room & ((uint64_t{1} << kCpuBits) - 1));
  }

  // Nodes that take new tasks (TakesTasks, no back-off in force, TaskRoom), tightest first.
  const Order& nodes() const { return nodes_; }

  // Calls visit(NodeId, const Resources& free) for the nodes with at least so many free devices and
  // so much free cpu, tightest first, until it returns false. Levels with too little cpu are jumped
  // over, not walked through. Memory and the split of devices into kinds are the visitor's to
  // check. The index must not change meanwhile.
  template <class Visit>
  void ForEach(int devices, int64_t cpu_millis, Visit&& visit) const {
    auto it = nodes_.lower_bound(Key{Room(devices, cpu_millis), NodeId{}});
    for (it = Sufficient(nodes_, it, cpu_millis); it != nodes_.end();
         it = Sufficient(nodes_, std::next(it), cpu_millis)) {
      if (!visit(it->node, FreeOf(it->node))) return;
    }
  }

  // As ForEach, by what is free once what is being released is gone, for the nodes alone on which
  // something is. Calls visit(NodeId).
  template <class Visit>
  void ForEachSoon(int devices, int64_t cpu_millis, Visit&& visit) const {
    auto it = soon_.lower_bound(Key{Room(devices, cpu_millis), NodeId{}});
    for (it = Sufficient(soon_, it, cpu_millis); it != soon_.end();
         it = Sufficient(soon_, std::next(it), cpu_millis)) {
      if (!visit(it->node)) return;
    }
  }
  const Order& soon() const { return soon_; }

  // The same, in the same order, for the nodes alone that have all of these marks and come after
  // that one. After StateEditor::SyncMarks.
  template <class Visit>
  void ForEachMarked(Marks marks, const Key& after, int64_t cpu_millis, Visit&& visit) const {
    BERTH_CHECK(stale_marks_.empty());
    struct Cursor {
      const Order* nodes;
      Order::const_iterator at;
    };
    absl::InlinedVector<Cursor, 16> cursors;  // none at an end
    for (const auto& [of, nodes] : by_marks_) {
      if ((of & marks) != marks) continue;
      const auto at = Sufficient(nodes, nodes.upper_bound(after), cpu_millis);
      if (at != nodes.end()) cursors.push_back({&nodes, at});
    }
    while (!cursors.empty()) {
      Cursor& next =
          *std::min_element(cursors.begin(), cursors.end(),
                            [](const Cursor& a, const Cursor& b) { return *a.at < *b.at; });
      if (!visit(next.at->node, FreeOf(next.at->node))) return;
      next.at = Sufficient(*next.nodes, std::next(next.at), cpu_millis);
      if (next.at != next.nodes->end()) continue;
      next = cursors.back();
      cursors.pop_back();
    }
  }

  // The same the other way round: most free first, by (free devices, free cpu), then id. With
  // `devices` 0 the nodes without free devices go first all the same, then those with one, ...
  template <class Visit>
  void ForEachFromTop(int devices, int64_t cpu_millis, Visit&& visit) const {
    Descend({&nodes_}, nullptr, devices, cpu_millis, visit);
  }

  // The same, in the same order, for the nodes alone that have all of these marks and come after
  // that one in it. After StateEditor::SyncMarks.
  template <class Visit>
  void ForEachMarkedFromTop(Marks marks, const Key& after, int devices, int64_t cpu_millis,
                            Visit&& visit) const {
    BERTH_CHECK(stale_marks_.empty());
    Orders orders;
    for (const auto& [of, nodes] : by_marks_) {
      if ((of & marks) == marks) orders.push_back(&nodes);
    }
    Descend(orders, &after, devices, cpu_millis, visit);
  }

  bool Has(NodeId node) const {
    return node.value < entries_.size() && entries_[node.value].listed;
  }
  // The node must be listed.
  const Resources& FreeOf(NodeId node) const { return entries_[node.value].free; }
  // Where the node stands in the order; it must be listed.
  Key KeyOf(NodeId node) const { return {entries_[node.value].key_room, node}; }
  // Of any node; those that are not listed keep theirs.
  Marks MarksOf(NodeId node) const {
    return node.value < entries_.size() ? entries_[node.value].marks : 0;
  }
  // Sum over the listed nodes: a request that does not fit in it fits nowhere.
  const Resources& total() const { return total_; }

 private:
  friend class StateEditor;
  static constexpr int64_t kMostCpu = (int64_t{1} << kCpuBits) - 1;

  // From `it` on, the first with so much cpu. Levels with too little are jumped over.
  static Order::const_iterator Sufficient(const Order& nodes, Order::const_iterator it,
                                          int64_t cpu_millis) {
    while (it != nodes.end() && CpuMillis(it->room) < cpu_millis) {
      it = nodes.lower_bound(Key{Room(Devices(it->room), cpu_millis), NodeId{}});
    }
    return it;
  }

  // Several orders, as if they were one.
  using Orders = absl::InlinedVector<const Order*, 16>;

  // From the top, or behind `after`.
  template <class Visit>
  static void Descend(const Orders& orders, const Key* after, int devices, int64_t cpu_millis,
                      Visit&& visit) {
    int low = devices, high = devices == 0 ? 0 : Devices(~uint64_t{0});
    uint64_t top = Room(high, kMostCpu);
    bool any_below = true;
    if (after != nullptr) {
      if (!VisitLevel(orders, *after, visit)) return;
      if (devices == 0) low = high = Devices(after->room);
      any_below = after->room > 0;
      top = after->room - 1;
    }
    while (true) {
      if (any_below && !VisitDown(orders, Room(low, cpu_millis), top, cpu_millis, visit)) return;
      if (devices > 0) return;
      const std::optional<int> more = LevelAbove(orders, high);
      if (!more.has_value()) return;
      low = high = *more;
      top = Room(high, kMostCpu);
      any_below = true;
    }
  }

  // The fewest free devices, of those more than that.
  static std::optional<int> LevelAbove(const Orders& orders, int devices) {
    std::optional<int> level;
    for (const Order* order : orders) {
      const auto next = order->upper_bound(Key{Room(devices, kMostCpu), NodeId{UINT32_MAX}});
      if (next == order->end()) continue;
      level = std::min(level.value_or(Devices(next->room)), Devices(next->room));
    }
    return level;
  }

  // Nodes with room from `low` to `high`, level by level downward. False if `visit` ended it.
  template <class Visit>
  static bool VisitDown(const Orders& orders, uint64_t low, uint64_t high, int64_t cpu_millis,
                        Visit&& visit) {
    while (true) {
      std::optional<uint64_t> room;
      for (const Order* order : orders) {
        const auto above = order->upper_bound(Key{high, NodeId{UINT32_MAX}});
        if (above == order->begin()) continue;
        room = std::max(room.value_or(0), std::prev(above)->room);
      }
      if (!room.has_value() || *room < low) return true;
      const bool enough =
          CpuMillis(*room) >= cpu_millis;  // else nor has what is below, for so many devices
      if (enough && !VisitLevel(orders, Key{*room, NodeId{}}, visit)) return false;
      high = enough ? *room : Room(Devices(*room), 0);
      if (high == 0) return true;
      --high;
    }
  }

  // Nodes with the same room that come behind that one, by id.
  template <class Visit>
  static bool VisitLevel(const Orders& orders, const Key& after, Visit&& visit) {
    struct Cursor {
      const Order* nodes;
      Order::const_iterator at;
      bool Holds(uint64_t room) const { return at != nodes->end() && at->room == room; }
    };
    absl::InlinedVector<Cursor, 16> cursors;
    for (const Order* order : orders) {
      const Cursor cursor{order, order->upper_bound(after)};
      if (cursor.Holds(after.room)) cursors.push_back(cursor);
    }
    while (!cursors.empty()) {
      Cursor& next =
          *std::min_element(cursors.begin(), cursors.end(),
                            [](const Cursor& a, const Cursor& b) { return *a.at < *b.at; });
      if (!visit(next.at->node)) return false;
      ++next.at;
      if (next.Holds(after.room)) continue;
      next = cursors.back();
      cursors.pop_back();
    }
    return true;
  }

  struct Entry {
    Resources free;
    uint64_t room = 0;
    bool listed = false;
    bool in_order = false;  // nodes_ holds it, by `key_room`
    bool waits = false;     // listed in waiting_
    bool stale = false;     // listed in stale_marks_
    bool listed_soon = false;
    bool in_soon = false;  // soon_ holds it, by `soon_key_room`
    uint64_t key_room = 0;
    uint64_t soon_room = 0;
    uint64_t soon_key_room = 0;
    Marks marks = 0;
    Marks kept_by = 0;  // by_marks_ holds it there, by `kept_room`; 0: it does not
    uint64_t kept_room = 0;
    uint64_t logged = 0;  // 1 + the position of its last line in the log
  };
  Entry& EntryOf(NodeId node);
  void Put(NodeId node, const Resources& free, uint64_t room);
  void Remove(NodeId node);  // from both orders
  void PutSoon(NodeId node, uint64_t room);
  void RemoveSoon(NodeId node);
  // Until Release, what is put or removed keeps its place in the order, which nobody may look at:
  // for many edits of the same nodes.
  void Hold() { held_ = true; }
  void Release();
  void Follow(NodeId node, Entry& entry);
  // The log of changed nodes. It is kept once somebody reads it; a node that is in it already, and
  // that nobody has read since, is not written again.
  static constexpr size_t kMaxLog = 1 << 16;
  void Log(NodeId node) {
    if (keeps_log_) AppendToLog(node);
  }
  void AppendToLog(NodeId node);
  bool ReadLog(uint64_t* position, std::vector<NodeId>* nodes);
  void FollowSoon(NodeId node, Entry& entry);
  bool Waits(NodeId node, Entry& entry);
  void MarksStale(NodeId node, Entry& entry);
  void SyncMarks();
  void SetMarks(NodeId node, Marks marks);
  void ClearMarks();

  Order nodes_;
  Order soon_;
  absl::btree_map<Marks, Order> by_marks_;  // of marked nodes; none is empty
  std::vector<NodeId> stale_marks_;         // whose place in by_marks_ may be another
  std::vector<Entry> entries_;              // by node id
  Resources total_;
  bool held_ = false;
  std::vector<NodeId> waiting_;  // while held: whose place in the order may be another
  bool keeps_log_ = false;
  std::vector<NodeId> log_;
  uint64_t log_begin_ = 1;  // position of the first line that is still there
  uint64_t log_read_ = 1;   // somebody has read all before
};

}  // namespace berth

#endif  // BERTH_CORE_MODEL_FREE_INDEX_H_
