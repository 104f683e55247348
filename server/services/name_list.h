// Lists ordered by name, over maps ordered by id. Each page examines every row once (in steps) and
// keeps the first names after the previous page's last one. There are at most some 100,000 nodes or
// queues, so this stays cheap.
#ifndef BERTH_SERVER_SERVICES_NAME_LIST_H_
#define BERTH_SERVER_SERVICES_NAME_LIST_H_

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/reads/read_view.h"
#include "server/services/paging.h"

namespace berth {

template <class IdType>
using NamedRows = std::vector<std::pair<std::string, IdType>>;

// The first `count` rows with name > after, by name. map_of(state): the IdMap; name_of(state,
// value): its name, or nullopt to skip it.
template <class IdType, class MapOf, class NameOf>
NamedRows<IdType> FirstByName(ReadView& view, const std::string& after, size_t count, MapOf map_of,
                              NameOf name_of) {
  NamedRows<IdType> heap;  // the largest name on top
  IdType next{0};
  for (bool more = true; more;) {
    more = view.Step([&](const ClusterState& state) {
      const auto& map = map_of(state);
      for (size_t row = 0; row < kMaxRowsPerStep; ++row) {
        const std::optional<IdType> id = map.NextFrom(next);
        if (!id.has_value()) return false;
        next = IdType{id->value + 1};
        std::optional<std::string> name = name_of(state, map.At(*id));
        if (!name.has_value() || *name <= after) continue;
        if (heap.size() == count && *name >= heap.front().first) continue;
        heap.emplace_back(*std::move(name), *id);
        std::push_heap(heap.begin(), heap.end());
        if (heap.size() <= count) continue;
        std::pop_heap(heap.begin(), heap.end());
        heap.pop_back();
      }
      return true;
    });
  }
  std::sort_heap(heap.begin(), heap.end());
  return heap;
}

// Renders a page: render(state, value) for each of the rows that still exists.
template <class IdType, class MapOf, class Render>
void RenderRows(ReadView& view, const NamedRows<IdType>& rows, MapOf map_of, Render render) {
  for (size_t begin = 0; begin < rows.size(); begin += kMaxRenderedPerStep) {
    const size_t end = std::min(rows.size(), begin + kMaxRenderedPerStep);
    view.Step([&](const ClusterState& state) {
      for (size_t i = begin; i < end; ++i) {
        const auto* value = map_of(state).Find(rows[i].second);
        if (value != nullptr) render(state, *value);
      }
      return 0;
    });
  }
}

}  // namespace berth

#endif  // BERTH_SERVER_SERVICES_NAME_LIST_H_
