// VainSearches: searches for a place for one task that visited every node with room and found none.
// While the state stays the same, a task with the same constraints that requests at least as much,
// and stays at least as long, finds none either, and need not be searched for. Classes that differ
// only by amounts and walltimes are so refused by one search.
//
//   no node for 4 GPUs and 32 cores until 10:00  ->  none for 8 GPUs and 40 cores until 12:00
//
// For one cycle. Not thread-safe.
#ifndef BERTH_CORE_ENGINE_SEARCH_VAIN_SEARCHES_H_
#define BERTH_CORE_ENGINE_SEARCH_VAIN_SEARCHES_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "core/engine/search/node_marks.h"
#include "core/engine/search/reservations.h"
#include "core/model/free_index.h"
#include "core/model/resources.h"

namespace berth {

class VainSearches {
 public:
  struct Request {
    const FixedTest* fixed = nullptr;
    Resources least;
    Window window;
    bool ignore_reservations = false;
  };
  // The nodes that passed the fixed part, in the order of the search.
  using Visited = std::vector<FreeIndex::Key>;

  // Some search is known for this version of the state (Transaction::version).
  bool Any(uint64_t version) const { return version_ == version && !searches_.empty(); }
  // A search whose failure implies that of the request; null if none is known. Valid until the next
  // call.
  const Visited* Find(uint64_t version, const Request& request);
  // Forgets those of other versions.
  void Add(uint64_t version, const Request& request, Visited visited);

 private:
  static constexpr size_t kMostSearches = 128;
  static constexpr size_t kMostVisited = 1024;  // nodes: of longer searches nothing is kept
  struct Search {
    Request request;
    Visited visited;
  };

  uint64_t version_ = 0;
  std::vector<std::unique_ptr<Search>> searches_;  // those that answered last come first
};

}  // namespace berth

#endif  // BERTH_CORE_ENGINE_SEARCH_VAIN_SEARCHES_H_
