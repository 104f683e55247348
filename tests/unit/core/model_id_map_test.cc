#include <catch2/catch.hpp>
#include <map>
#include <string>
#include <vector>

#include "core/base/id_map.h"
#include "core/model/ids.h"

namespace berth {
namespace {

using Map = IdMap<JobId, std::string>;

std::vector<uint64_t> IdsOf(const Map& map) {
  std::vector<uint64_t> ids;
  map.ForEach([&](JobId id, const std::string&) { ids.push_back(id.value); });
  return ids;
}

TEST_CASE("IdMap finds what was inserted and nothing else", "[model]") {
  Map map;
  CHECK(map.empty());
  CHECK(map.Find(JobId{0}) == nullptr);
  map.Insert(JobId{3}, "three");
  map.Insert(JobId{1000}, "thousand");
  CHECK(map.size() == 2);
  CHECK(map.At(JobId{3}) == "three");
  CHECK(*map.Find(JobId{1000}) == "thousand");
  CHECK(map.Find(JobId{4}) == nullptr);
  CHECK(map.Find(JobId{999'999}) == nullptr);
}

TEST_CASE("IdMap iterates in id order whatever the order of insertion", "[model]") {
  Map map;
  for (uint64_t id : {700u, 5u, 256u, 255u, 0u}) map.Insert(JobId{id}, "x");
  CHECK(IdsOf(map) == std::vector<uint64_t>{0, 5, 255, 256, 700});
  CHECK(map.NextFrom(JobId{6}) == JobId{255});
  CHECK(map.NextFrom(JobId{257}) == JobId{700});
  CHECK(map.NextFrom(JobId{701}) == std::nullopt);
}

TEST_CASE("IdMap keeps pointers through insertions and other erasures", "[model]") {
  Map map;
  const std::string* kept = &map.Insert(JobId{1}, "kept");
  for (uint64_t id = 2; id < 5000; ++id) map.Insert(JobId{id}, "x");
  for (uint64_t id = 2; id < 5000; ++id) map.Erase(JobId{id});
  CHECK(map.Find(JobId{1}) == kept);
  CHECK(*kept == "kept");
  CHECK(map.size() == 1);
  CHECK(IdsOf(map) == std::vector<uint64_t>{1});
}

TEST_CASE("IdMap accepts an id again after its chunk was freed", "[model]") {
  Map map;
  map.Insert(JobId{300}, "old");
  map.Erase(JobId{300});
  CHECK(map.empty());
  CHECK(map.NextFrom(JobId{0}) == std::nullopt);
  CHECK(map.Insert(JobId{300}, "new") == "new");
}

// A directory from the first id to the last would use up all memory.
TEST_CASE("IdMap handles large gaps between ids", "[model]") {
  Map map;
  const uint64_t far = uint64_t{29'636'532'633'600}, farther = far + (uint64_t{1} << 40);
  const std::vector<uint64_t> ids = {1, 700, far, far + 1, far + 300, farther, kLastJobId.value};
  SECTION("in order") {
    for (const uint64_t id : ids) map.Insert(JobId{id}, std::to_string(id));
  }
  SECTION("backwards") {
    for (auto id = ids.rbegin(); id != ids.rend(); ++id)
      map.Insert(JobId{*id}, std::to_string(*id));
  }
  CHECK(IdsOf(map) == ids);
  for (const uint64_t id : ids) {
    CHECK(map.At(JobId{id}) == std::to_string(id));
    CHECK(map.Find(JobId{id + 10}) == nullptr);
    map.Prefetch(JobId{id + 10}, 64);
  }
  CHECK(map.Find(JobId{far - 1}) == nullptr);
  CHECK(map.Find(JobId{UINT64_MAX}) == nullptr);
  CHECK(map.NextFrom(JobId{701}) == JobId{far});
  CHECK(map.NextFrom(JobId{far + 2}) == JobId{far + 300});
  CHECK(map.NextFrom(JobId{far + 301}) == JobId{farther});
  CHECK(map.NextFrom(JobId{kLastJobId.value + 1}) == std::nullopt);
  for (const uint64_t id : ids) map.Erase(JobId{id});
  CHECK(map.empty());
  CHECK(IdsOf(map).empty());
}

// For random operations it equals a simple map.
TEST_CASE("IdMap behaves like a map", "[model]") {
  Map map;
  std::map<uint64_t, std::string> simple;
  uint64_t state = 7;
  const auto random = [&state](uint64_t below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % below;
  };
  for (int step = 0; step < 20000; ++step) {
    const uint64_t id = (random(5) << (10 + 8 * random(5))) + random(2000);
    if (simple.contains(id)) {
      map.Erase(JobId{id});
      simple.erase(id);
    } else {
      map.Insert(JobId{id}, std::to_string(id));
      simple[id] = std::to_string(id);
    }
    const uint64_t from = (random(5) << (10 + 8 * random(5))) + random(2000);
    const auto next = simple.lower_bound(from);
    const auto found = map.NextFrom(JobId{from});
    REQUIRE(found.has_value() == (next != simple.end()));
    if (found.has_value()) REQUIRE(found->value == next->first);
  }
  std::vector<uint64_t> ids;
  for (const auto& [id, value] : simple) ids.push_back(id);
  CHECK(IdsOf(map) == ids);
}

}  // namespace
}  // namespace berth
