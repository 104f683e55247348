#include <catch2/catch.hpp>

#include "server/metrics/families.h"

namespace berth::testing {

TEST_CASE("metrics: labels have no characters that control a terminal or the text direction") {
  FamilyList list;
  list.Gauge("nodes", "help", 1,
             {{"model",
               "A\x1b[2J\n\xe2\x80\xae"
               "B"}});
  const std::vector<prometheus::MetricFamily> families = list.Take();
  REQUIRE(families.size() == 1);
  CHECK(families[0].metric[0].label[0].value == "A\\x1b[2J\\n\\u202eB");
}

}  // namespace berth::testing
