#include "support/proto_time.h"

#include <catch2/catch.hpp>

namespace berth {
namespace {

TEST_CASE("durations and times survive the way to protobuf and back") {
  google::protobuf::Duration length;
  for (const int64_t nanos : {int64_t{0}, int64_t{1}, int64_t{999'999'999}, int64_t{1'500'000'000},
                              int64_t{-1}, int64_t{-1'500'000'000}, INT64_MAX, INT64_MIN}) {
    ToProto(absl::Nanoseconds(nanos), &length);
    CHECK(DurationFrom(length) == absl::Nanoseconds(nanos));
    CHECK(length.seconds() == nanos / 1'000'000'000);  // both parts have the sign
    CHECK(length.nanos() == nanos % 1'000'000'000);
  }
  ToProto(absl::Hours(24 * 3'652'500), &length);  // 10,000 years
  CHECK(DurationFrom(length) == absl::Hours(24 * 3'652'500));

  google::protobuf::Timestamp time;
  for (const int64_t nanos : {int64_t{0}, int64_t{1}, int64_t{-1}, int64_t{-1'500'000'000}}) {
    ToProto(absl::FromUnixNanos(nanos), &time);
    CHECK(TimeFrom(time) == absl::FromUnixNanos(nanos));
    CHECK(time.nanos() >= 0);  // counts forward, also before 1970
  }
  CHECK(time.seconds() == -2);
  CHECK(time.nanos() == 500'000'000);
}

TEST_CASE("parts of a nanosecond are dropped") {
  google::protobuf::Duration length;
  ToProto(absl::Nanoseconds(1.75), &length);
  CHECK(length.nanos() == 1);
  ToProto(absl::Nanoseconds(-1.75), &length);
  CHECK(length.nanos() == -1);
}

}  // namespace
}  // namespace berth
