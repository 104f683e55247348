#include <catch2/catch.hpp>
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

TEST_CASE("IdMap takes an id again after its chunk was freed", "[model]") {
  Map map;
  map.Insert(JobId{300}, "old");
  map.Erase(JobId{300});
  CHECK(map.empty());
  CHECK(map.NextFrom(JobId{0}) == std::nullopt);
  CHECK(map.Insert(JobId{300}, "new") == "new");
}

}  // namespace
}  // namespace berth
