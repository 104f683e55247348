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
  Log(node);
}

void FreeIndex::Remove(NodeId node) {
  Log(node);
  RemoveSoon(node);
  if (!Has(node)) return;
  Entry& entry = entries_[node.value];
  total_ -= entry.free;
  entry.free = Resources{};
  entry.listed = false;
  Follow(node, entry);
}

void FreeIndex::PutSoon(NodeId node, uint64_t room) {
  Entry& entry = EntryOf(node);
  entry.listed_soon = true;
  entry.soon_room = room;
  FollowSoon(node, entry);
}

void FreeIndex::RemoveSoon(NodeId node) {
  Entry& entry = EntryOf(node);
  if (!entry.listed_soon) return;
  entry.listed_soon = false;
  FollowSoon(node, entry);
}

// While held, queues the update for later.
bool FreeIndex::Waits(NodeId node, Entry& entry) {
  if (held_ && !std::exchange(entry.waits, true)) waiting_.push_back(node);
  return held_;
}

// Updates its place in the order according to the entry, now or at Release.
void FreeIndex::Follow(NodeId node, Entry& entry) {
  if (entry.in_order == entry.listed && entry.key_room == entry.room) return;
  if (Waits(node, entry)) return;
  if (entry.in_order) nodes_.erase(Key{entry.key_room, node});
  if (entry.listed) nodes_.insert(Key{entry.room, node});
  entry.in_order = entry.listed;
  entry.key_room = entry.room;
  if (entry.marks != 0) MarksStale(node, entry);
}

void FreeIndex::AppendToLog(NodeId node) {
  Entry& entry = EntryOf(node);
  if (entry.logged > log_read_) return;
  if (log_.size() == kMaxLog) {  // readers that have not read the first half must restart
    log_.erase(log_.begin(), log_.begin() + kMaxLog / 2);
    log_begin_ += kMaxLog / 2;
  }
  log_.push_back(node);
  entry.logged = log_begin_ + log_.size();
}

// False if entries after `position` have been dropped.
bool FreeIndex::ReadLog(uint64_t* position, std::vector<NodeId>* nodes) {
  const bool all = std::exchange(keeps_log_, true) && *position >= log_begin_ && *position > 0;
  const uint64_t end = log_begin_ + log_.size();
  if (all) {
    const auto first = static_cast<ptrdiff_t>(*position - log_begin_);
    nodes->assign(log_.begin() + first, log_.end());
  }
  *position = log_read_ = end;
  return all;
}

void FreeIndex::FollowSoon(NodeId node, Entry& entry) {
  if (entry.in_soon == entry.listed_soon && entry.soon_key_room == entry.soon_room) return;
  if (Waits(node, entry)) return;
  if (entry.in_soon) soon_.erase(Key{entry.soon_key_room, node});
  if (entry.listed_soon) soon_.insert(Key{entry.soon_room, node});
  entry.in_soon = entry.listed_soon;
  entry.soon_key_room = entry.soon_room;
}

void FreeIndex::MarksStale(NodeId node, Entry& entry) {
  if (!std::exchange(entry.stale, true)) stale_marks_.push_back(node);
}

void FreeIndex::SyncMarks() {
  for (NodeId node : stale_marks_) {
    Entry& entry = entries_[node.value];
    entry.stale = false;
    const Marks keep_by = entry.in_order ? entry.marks : 0;
    if (keep_by == entry.kept_by && entry.key_room == entry.kept_room) continue;
    if (entry.kept_by != 0) {
      const auto kept = by_marks_.find(entry.kept_by);
      kept->second.erase(Key{entry.kept_room, node});
      if (kept->second.empty()) by_marks_.erase(kept);
    }
    if (keep_by != 0) by_marks_[keep_by].insert(Key{entry.key_room, node});
    entry.kept_by = keep_by;
    entry.kept_room = entry.key_room;
  }
  stale_marks_.clear();
}

void FreeIndex::SetMarks(NodeId node, Marks marks) {
  Entry& entry = EntryOf(node);
  if (entry.marks == marks) return;
  entry.marks = marks;
  MarksStale(node, entry);
}

void FreeIndex::ClearMarks() {
  by_marks_.clear();
  stale_marks_.clear();
  for (Entry& entry : entries_) {
    entry.marks = entry.kept_by = 0;
    entry.stale = false;
  }
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
    FollowSoon(node, entry);
  }
  waiting_.clear();
}

}  // namespace berth
