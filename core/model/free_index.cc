#include "core/model/free_index.h"

namespace berth {

void FreeIndex::Put(NodeId node, const Resources& free, uint64_t room) {
  if (node.value >= entries_.size()) entries_.resize(node.value + size_t{1});
  Entry& entry = entries_[node.value];
  total_ += free;
  if (entry.listed) total_ -= entry.free;
  if (!entry.listed || entry.room != room) {
    if (entry.listed) nodes_.erase(Key{entry.room, node});
    nodes_.insert(Key{room, node});
  }
  entry = Entry{free, room, true};
}

void FreeIndex::Remove(NodeId node) {
  if (!Has(node)) return;
  Entry& entry = entries_[node.value];
  nodes_.erase(Key{entry.room, node});
  total_ -= entry.free;
  entry = Entry{};
}

}  // namespace berth
