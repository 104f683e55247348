#include "core/model/free_index.h"

#include <utility>

namespace berth {

void FreeIndex::Put(NodeId node, const Resources& free, uint64_t room) {
  Entry& entry = EntryOf(node);
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
  if (entry.in_order) Erase(node, entry);
  entry.in_order = entry.listed;
  entry.key_room = entry.room;
  if (entry.in_order) Insert(node, entry);
}

void FreeIndex::Insert(NodeId node, Entry& entry) {
  const Key key{entry.key_room, node};
  nodes_.insert(key);
  if (entry.marks != 0) by_marks_[entry.marks].insert(key);
}

void FreeIndex::Erase(NodeId node, Entry& entry) {
  const Key key{entry.key_room, node};
  nodes_.erase(key);
  if (entry.marks == 0) return;
  const auto marked = by_marks_.find(entry.marks);
  marked->second.erase(key);
  if (marked->second.empty()) by_marks_.erase(marked);
}

void FreeIndex::SetMarks(NodeId node, Marks marks) {
  Entry& entry = EntryOf(node);
  if (entry.marks == marks) return;
  if (entry.in_order) Erase(node, entry);
  entry.marks = marks;
  if (entry.in_order) Insert(node, entry);
}

void FreeIndex::ClearMarks() {
  by_marks_.clear();
  for (Entry& entry : entries_) entry.marks = 0;
}

FreeIndex::Entry& FreeIndex::EntryOf(NodeId node) {
  if (node.value >= entries_.size()) entries_.resize(node.value + size_t{1});
  return entries_[node.value];
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
