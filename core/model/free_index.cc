#include "core/model/free_index.h"

#include <utility>

namespace berth {

void FreeIndex::Put(NodeId node, const Resources& free, uint64_t room) {
  if (node.value >= entries_.size()) entries_.resize(node.value + size_t{1});
  Entry& entry = entries_[node.value];
  total_ += free;
  if (entry.listed) total_ -= entry.free;
  entry.free = free;
  entry.room = room;
  entry.listed = true;
  Follow(node, entry);
}

void FreeIndex::Remove(NodeId node) {
  if (!Has(node)) return;
  Entry& entry = entries_[node.value];
  total_ -= entry.free;
  entry.free = Resources{};
  entry.listed = false;
  Follow(node, entry);
}

// Its place in the order becomes what the entry says, now or with Release.
void FreeIndex::Follow(NodeId node, Entry& entry) {
  if (entry.in_order == entry.listed && entry.key_room == entry.room) return;
  if (held_) {
    if (!std::exchange(entry.waits, true)) waiting_.push_back(node);
    return;
  }
  if (entry.in_order) nodes_.erase(Key{entry.key_room, node});
  if (entry.listed) nodes_.insert(Key{entry.room, node});
  entry.in_order = entry.listed;
  entry.key_room = entry.room;
}

void FreeIndex::Release() {
  held_ = false;
  for (NodeId node : waiting_) {
    Entry& entry = entries_[node.value];
    entry.waits = false;
    Follow(node, entry);
  }
  waiting_.clear();
}

}  // namespace berth
