// JSON of messages.
#include "support/proto_json.h"

#include <catch2/catch.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "berth/v1/types.pb.h"

namespace berth {
namespace {

TEST_CASE("json: maps are in order of their keys, whatever order they were filled in") {
  v1::ResourceList one, other;
  for (int i = 10; i < 60; ++i) (*one.mutable_counts())[absl::StrCat("k", i)] = i;
  for (int i = 59; i >= 10; --i) (*other.mutable_counts())[absl::StrCat("k", i)] = i;
  const std::string text = WriteJson(one);
  CHECK(text == WriteJson(other));
  CHECK(text.rfind("{\"counts\":{\"k10\":10,\"k11\":11,", 0) == 0);
  for (int i = 11; i < 60; ++i) {
    CHECK(text.find(absl::StrCat("\"k", i - 1, "\"")) < text.find(absl::StrCat("\"k", i, "\"")));
  }
}

TEST_CASE("json: what is 0 is left out, or told; what is absent is neither") {
  v1::TopologyConstraint one;
  one.set_kind("nvlink");
  CHECK(WriteJson(one) == R"({"kind":"nvlink"})");
  CHECK(WriteJson(one, {.zeros = true}) ==
        R"({"mode":"MODE_UNSPECIFIED","highestTier":0,"highestTierName":"","kind":"nvlink"})");
  CHECK(WriteJson(one, {.indented = true}) == "{\n \"kind\": \"nvlink\"\n}");
  v1::ResourceList list;
  list.set_cpu_millis(0);
  CHECK(WriteJson(list) == R"({"cpu":"0"})");
  CHECK(WriteJson(list, {.zeros = true}) == R"({"counts":{},"cpu":"0"})");
}

}  // namespace
}  // namespace berth
