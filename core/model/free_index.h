// FreeIndex: the free resources of nodes that take new tasks, ordered for best fit: by (number of
// devices of all kinds with something free, free cpu, NodeId). A search starts at the tightest node
// that could be sufficient and goes upward; an update costs O(log nodes). Keys do not depend on the
// order of interned ids, so iteration is the same after a fold and after a load. Updated by
// StateEditor without delay. Not thread-safe.
//
// Nodes on which tasks are being released are also listed by what is free after the release
// (soon()), for jobs that can wait for it.
//
// Planning may mark nodes (core/engine/search/node_marks.h). Nodes with equal marks also have a
// separate order, updated on request (SyncMarks), so that a search by marks skips all other nodes.
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
  using Marks = uint64_t;  // bits, defined by planning
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

  // Calls visit(NodeId, const Resources& free) for the nodes with at least this many free devices
  // and this much free cpu, tightest first, until it returns false. Skips levels with too little
  // cpu. The visitor must check memory and the kinds of devices. The index must not change
  // meanwhile.
  template <class Visit>
  void ForEach(int devices, int64_t cpu_millis, Visit&& visit) const {
    auto it = nodes_.lower_bound(Key{Room(devices, cpu_millis), NodeId{}});
    for (it = Sufficient(nodes_, it, cpu_millis); it != nodes_.end();
         it = Sufficient(nodes_, std::next(it), cpu_millis)) {
      if (!visit(it->node, FreeOf(it->node))) return;
    }
  }

  // Like ForEach, but only for nodes on which something is being released, by what is free after
  // the release. Calls visit(NodeId).
  template <class Visit>
  void ForEachSoon(int devices, int64_t cpu_millis, Visit&& visit) const {
    auto it = soon_.lower_bound(Key{Room(devices, cpu_millis), NodeId{}});
    for (it = Sufficient(soon_, it, cpu_millis); it != soon_.end();
         it = Sufficient(soon_, std::next(it), cpu_millis)) {
      if (!visit(it->node)) return;
    }
  }
  const Order& soon() const { return soon_; }

  // The same order, but only nodes that have all of these marks and come after that key. Call
  // StateEditor::SyncMarks first.
  template <class Visit>
  void ForEachMarked(Marks marks, const Key& after, int64_t cpu_millis, Visit&& visit) const {
    BERTH_CHECK(stale_marks_.empty());
    struct Cursor {
      const Order* nodes;
      Order::const_iterator at;
    };
    absl::InlinedVector<Cursor, 16> cursors;  // none at its end
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

  // The reverse order: most free first, by (free devices, free cpu), then id. With `devices` 0, the
  // nodes without free devices still come first, then those with one, ...
  template <class Visit>
  void ForEachFromTop(int devices, int64_t cpu_millis, Visit&& visit) const {
    Descend({&nodes_}, nullptr, devices, cpu_millis, visit);
  }

  // The same order, but only nodes that have all of these marks and come after that key in it. Call
  // StateEditor::SyncMarks first.
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
  // The node's position in the order; it must be listed.
  Key KeyOf(NodeId node) const { return {entries_[node.value].key_room, node}; }
  // For any node; unlisted nodes keep theirs.
  Marks MarksOf(NodeId node) const {
    return node.value < entries_.size() ? entries_[node.value].marks : 0;
  }
  // Sum over the listed nodes: a request that exceeds it fits nowhere.
  const Resources& total() const { return total_; }

 private:
  friend class StateEditor;
  static constexpr int64_t kMostCpu = (int64_t{1} << kCpuBits) - 1;

  // The first from `it` on with this much cpu. Skips levels with too little.
  static Order::const_iterator Sufficient(const Order& nodes, Order::const_iterator it,
                                          int64_t cpu_millis) {
    while (it != nodes.end() && CpuMillis(it->room) < cpu_millis) {
      it = nodes.lower_bound(Key{Room(Devices(it->room), cpu_millis), NodeId{}});
    }
    return it;
  }

  // Several orders, iterated as one.
  using Orders = absl::InlinedVector<const Order*, 16>;

  // From the top, or after `after`.
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

  // The next higher number of free devices.
  static std::optional<int> LevelAbove(const Orders& orders, int devices) {
    std::optional<int> level;
    for (const Order* order : orders) {
      const auto next = order->upper_bound(Key{Room(devices, kMostCpu), NodeId{UINT32_MAX}});
      if (next == order->end()) continue;
      level = std::min(level.value_or(Devices(next->room)), Devices(next->room));
    }
    return level;
  }

  // Nodes with room from `low` to `high`, level by level downward. False if `visit` stopped it.
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
          CpuMillis(*room) >= cpu_millis;  // else lower rooms lack cpu too, for this device count
      if (enough && !VisitLevel(orders, Key{*room, NodeId{}}, visit)) return false;
      high = enough ? *room : Room(Devices(*room), 0);
      if (high == 0) return true;
      --high;
    }
  }

  // Nodes with the same room after that one, by id.
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
    bool in_order = false;  // nodes_ contains it, with `key_room`
    bool waits = false;     // listed in waiting_
    bool stale = false;     // listed in stale_marks_
    bool listed_soon = false;
    bool in_soon = false;  // soon_ contains it, with `soon_key_room`
    uint64_t key_room = 0;
    uint64_t soon_room = 0;
    uint64_t soon_key_room = 0;
    Marks marks = 0;
    Marks kept_by = 0;  // by_marks_ contains it there, with `kept_room`; 0: no
    uint64_t kept_room = 0;
    uint64_t logged = 0;  // 1 + the position of its last entry in the log
  };
  Entry& EntryOf(NodeId node);
  void Put(NodeId node, const Resources& free, uint64_t room);
  void Remove(NodeId node);  // from both orders
  void PutSoon(NodeId node, uint64_t room);
  void RemoveSoon(NodeId node);
  // Until Release, changed nodes keep their place in the order, which must not be read: speeds up
  // many edits of the same nodes.
  void Hold() { held_ = true; }
  void Release();
  void Follow(NodeId node, Entry& entry);
  // The log of changed nodes, kept once there is a reader. A node that is already in it and unread
  // by everyone is not added again.
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
  absl::btree_map<Marks, Order> by_marks_;  // of marked nodes; no order is empty
  std::vector<NodeId> stale_marks_;         // their place in by_marks_ may be out of date
  std::vector<Entry> entries_;              // by node id
  Resources total_;
  bool held_ = false;
  std::vector<NodeId> waiting_;  // while held: their place in the order may be out of date
  bool keeps_log_ = false;
  std::vector<NodeId> log_;
  uint64_t log_begin_ = 1;  // position of the first entry still in the log
  uint64_t log_read_ = 1;   // some reader has read everything before
};

}  // namespace berth

#endif  // BERTH_CORE_MODEL_FREE_INDEX_H_
