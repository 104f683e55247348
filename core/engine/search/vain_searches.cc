#include "core/engine/search/vain_searches.h"

#include <algorithm>
#include <utility>

namespace berth {
namespace {

// Whatever bars `least` also bars `more`.
bool AsksForMore(const VainSearches::Request& more, const VainSearches::Request& least) {
  return more.fixed == least.fixed && more.ignore_reservations == least.ignore_reservations &&
         more.window.begin == least.window.begin && more.window.end >= least.window.end &&
         least.least.FitsIn(more.least);
}

}  // namespace

const VainSearches::Visited* VainSearches::Find(uint64_t version, const Request& request) {
  if (!Any(version)) return nullptr;
  for (auto it = searches_.begin(); it != searches_.end(); ++it) {
    if (!AsksForMore(request, (*it)->request)) continue;
    std::rotate(searches_.begin(), it, it + 1);
    return &searches_.front()->visited;
  }
  return nullptr;
}

void VainSearches::Add(uint64_t version, const Request& request, Visited visited) {
  if (visited.size() > kMostVisited) return;
  if (version_ != version) searches_.clear();
  version_ = version;
  if (searches_.size() == kMostSearches) searches_.pop_back();
  searches_.insert(searches_.begin(),
                   std::make_unique<Search>(Search{request, std::move(visited)}));
}

}  // namespace berth
