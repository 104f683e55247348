// Times and durations between protobuf and Abseil, to the nanosecond.
#ifndef BERTH_SUPPORT_PROTO_TIME_H_
#define BERTH_SUPPORT_PROTO_TIME_H_

#include <google/protobuf/duration.pb.h>
#include <google/protobuf/timestamp.pb.h>

#include "absl/time/time.h"

namespace berth {

inline absl::Duration DurationFrom(const google::protobuf::Duration& duration) {
  return absl::Seconds(duration.seconds()) + absl::Nanoseconds(duration.nanos());
}
inline absl::Time TimeFrom(const google::protobuf::Timestamp& time) {
  return absl::FromUnixSeconds(time.seconds()) + absl::Nanoseconds(time.nanos());
}

// Only finite values: the messages have none for infinity. Parts of a nanosecond are dropped.
void ToProto(absl::Duration duration, google::protobuf::Duration* out);
void ToProto(absl::Time time, google::protobuf::Timestamp* out);

}  // namespace berth

#endif  // BERTH_SUPPORT_PROTO_TIME_H_
